/*
 * source_pct.c - probabilistic concurrency testing. See source.h.
 */
#include "base/assert.h"
#include "rt/sim/random.h"

/* Priorities drawn are above SIM_PCT_DEPTH_MAX, those given at change points are below. */
static uint32_t priority_of(struct sim_pct *pct, uint16_t slot)
{
    RON_ASSERT(slot < RON_ARRAY_COUNT(pct->priorities));
    if (pct->priorities[slot] == 0)
        pct->priorities[slot] = SIM_PCT_DEPTH_MAX + 1 +
                                sim_random_below(&pct->random, UINT32_MAX / 2);
    return pct->priorities[slot];
}

static int most_urgent(struct sim_pct *pct, const struct sim_point *point, int fibers_count)
{
    int best = 0;

    for (int i = 1; i < fibers_count; i++)
        if (priority_of(pct, point->pids[i]) > priority_of(pct, point->pids[best]))
            best = i;
    return best;
}

static int pct_choose(struct sim_source *source, const struct sim_point *point)
{
    struct sim_pct *pct = (struct sim_pct *)(void *)source;
    int option;

    if (sim_random_other(&pct->random, point, &option))
        return option;
    pct->steps_count++;
    for (uint32_t i = 0; i + 1 < pct->depth; i++)
        if (pct->change_steps[i] == pct->steps_count)
            pct->priorities[point->pids[most_urgent(pct, point, option)]] = i + 1;
    return most_urgent(pct, point, option);
}

void sim_pct_init(struct sim_pct *pct, uint64_t seed, uint32_t depth, uint32_t expected_steps)
{
    RON_ASSERT(depth >= 1);
    RON_ASSERT(depth <= SIM_PCT_DEPTH_MAX);
    *pct = (struct sim_pct){.depth = depth};
    sim_random_init(&pct->random, seed, expected_steps);
    pct->random.source.choose = pct_choose;
    for (uint32_t i = 0; i + 1 < depth; i++)
        pct->change_steps[i] = 1 + sim_random_below(&pct->random, expected_steps);
}
