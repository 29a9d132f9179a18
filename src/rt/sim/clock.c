/*
 * clock.c - virtual time, sleep, randomness and fault sites.
 *
 * The clock stands still while anybody can do more than poll. It moves to the earliest deadline
 * somebody waits for; budgets let it move early, or too far.
 */
#include "base/assert.h"
#include "rt/sim/internal.h"

#define START_NS  1000000000ull
#define UTC_MS    1700000000000ll /* at START_NS */
#define JUMP_MS   3600000ll
#define NS_PER_MS 1000000ull

void sim_clock_reset(void)
{
    sim.now_ns = START_NS;
    sim.utc_offset_ms = 0;
}

static bool has_deadline(const struct sh_thread *thread)
{
    return thread->state == SIM_THREAD_LIVE &&
           (thread->op == SIM_OP_WAIT || thread->op == SIM_OP_SLEEP || thread->op == SIM_OP_JOIN);
}

/* The earliest deadline later than `after_ns`. */
static bool next_after(uint64_t after_ns, uint64_t *ret_deadline_ns)
{
    uint64_t next_ns = SH_NEVER;

    for (uint32_t i = 0; i < sim.slots_count; i++) {
        const struct sh_thread *thread = &sim.threads[i];
        if (has_deadline(thread) && thread->deadline_ns > after_ns && thread->deadline_ns < next_ns)
            next_ns = thread->deadline_ns;
    }
    if (next_ns == SH_NEVER)
        return false;
    *ret_deadline_ns = next_ns;
    return true;
}

bool sim_clock_next(uint64_t *ret_deadline_ns)
{
    return next_after(sim.now_ns, ret_deadline_ns);
}

bool sim_clock_advance(void)
{
    uint64_t next_ns;
    uint64_t second_ns;

    RON_ASSERT(sim.self == NULL);
    if (!sim_clock_next(&next_ns))
        return false;
    if (sim.left.late_ticks > 0 && next_after(next_ns, &second_ns)) {
        const struct sim_point point = {.kind = SIM_CHOOSE_CLOCK,
                                        .options_count = 2,
                                        .current = (uint16_t)sim.current,
                                        .tag = "a timer is late"};
        if (sim_answer(&point) != 0) {
            sim.left.late_ticks--;
            next_ns = second_ns;
        }
        if (sim.over)
            return true;
    }
    RON_ASSERT(next_ns > sim.now_ns);
    sim.now_ns = next_ns;
    for (uint32_t i = 0; i < sim.slots_count; i++)
        sim.threads[i].yields_count = 0;
    sim_trace_event("clock", "moves to the next deadline", NULL);
    return true;
}

uint64_t sh_now_ns(void)
{
    return sim.now_ns;
}

uint64_t sh_utc_ms(void)
{
    if (sim.self != NULL && sim.left.clock_jumps > 0) {
        unsigned jump = sim_ask(SIM_CHOOSE_JUMP, 3, "the wall clock jumps");
        if (jump != 0) {
            sim.left.clock_jumps--;
            sim.utc_offset_ms += jump == 1 ? JUMP_MS : -JUMP_MS;
        }
    }
    return (uint64_t)(UTC_MS + sim.utc_offset_ms) + (sim.now_ns - START_NS) / NS_PER_MS;
}

void sh_sleep_until(uint64_t deadline_ns)
{
    struct sh_thread *self = sim.self;

    RON_ASSERT(self != NULL);
    RON_ASSERT(deadline_ns != SH_NEVER); /* would be for ever */
    self->deadline_ns = deadline_ns;
    sim_pause(SIM_OP_SLEEP, NULL);
    self->deadline_ns = SH_NEVER;
}

void sh_yield(void)
{
    if (sim.self != NULL)
        sim_pause(SIM_OP_YIELD, NULL);
}

uint64_t sh_random(void)
{
    uint64_t seed = sim.random_state;

    sim.random_state += 0x9e3779b97f4a7c15ull;
    return sim_seed_mix(seed, 1);
}

unsigned sh_choose(unsigned options_count, const char *tag)
{
    unsigned option;

    RON_ASSERT(options_count >= 1);
    if (sim.self == NULL || sim.left.faults == 0)
        return 0;
    option = sim_ask(SIM_CHOOSE_FAULT, options_count, tag);
    if (option != 0)
        sim.left.faults--;
    return option;
}
