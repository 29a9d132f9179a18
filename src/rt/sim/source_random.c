/*
 * source_random.c - seeded chance: uniform among fibers, rare where a budget is spent.
 */
#include "base/assert.h"
#include "rt/sim/random.h"

uint64_t sim_seed_mix(uint64_t seed, uint64_t index)
{
    uint64_t mixed = seed + index * 0x9e3779b97f4a7c15ull; /* splitmix64 */

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
}

uint32_t sim_random_below(struct sim_random *random, uint32_t bound)
{
    RON_ASSERT(bound > 0);
    random->state += 0x9e3779b97f4a7c15ull;
    return (uint32_t)((sim_seed_mix(random->state, 0) >> 32) * bound >> 32);
}

/* Four times in a run of the expected length: budgets are then spent anywhere, not at once. */
static bool rarely(struct sim_random *random)
{
    return sim_random_below(random, random->expected_steps) < 4;
}

bool sim_random_other(struct sim_random *random, const struct sim_point *point, int *ret_option)
{
    uint32_t fibers_count = 0;
    uint32_t pseudo_count;

    if (point->kind == SIM_CHOOSE_WAKE || point->kind == SIM_CHOOSE_DATA) {
        *ret_option = (int)sim_random_below(random, point->options_count);
        return true;
    }
    if (point->kind != SIM_CHOOSE_STEP) {
        *ret_option = rarely(random) ? 1 + (int)sim_random_below(random, point->options_count - 1u)
                                     : 0;
        return true;
    }
    while (fibers_count < point->options_count && point->pids[fibers_count] < SIM_PID_CLOCK)
        fibers_count++;
    pseudo_count = point->options_count - fibers_count;
    RON_ASSERT(fibers_count > 0);
    if (pseudo_count > 0 && rarely(random)) {
        *ret_option = (int)(fibers_count + sim_random_below(random, pseudo_count));
        return true;
    }
    *ret_option = (int)fibers_count;
    return false;
}

static int random_choose(struct sim_source *source, const struct sim_point *point)
{
    struct sim_random *random = (struct sim_random *)(void *)source;
    int option;

    if (sim_random_other(random, point, &option))
        return option;
    return (int)sim_random_below(random, (uint32_t)option);
}

void sim_random_init(struct sim_random *random, uint64_t seed, uint32_t expected_steps)
{
    RON_ASSERT(expected_steps >= 4);
    *random = (struct sim_random){
        .source = {random_choose, NULL}, .state = seed, .expected_steps = expected_steps};
}
