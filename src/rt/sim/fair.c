/*
 * fair.c - a fiber that polls cannot starve the fiber it polls for.
 *
 * The yield rule of CHESS (Musuvathi, Qadeer: Fair stateless model checking, PLDI 2008): when a
 * fiber yields for the second time, it becomes less urgent than every fiber that could have run
 * since its first yield and did not, until that one has run. It makes searches of polling loops
 * finite and cuts only unfair schedules. Sets are bit masks by slot: fibers beyond the 64th are
 * outside the rule (exhaustive models have six).
 */
#include <string.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

enum { FAIR_SLOTS = 64 };

static struct {
    uint64_t yielders;                 /* have yielded in this run */
    uint64_t enabled_before;           /* at the last pick */
    uint64_t below[FAIR_SLOTS];        /* fibers that go before this one */
    uint64_t enabled_ever[FAIR_SLOTS]; /* enabled all the time since its last yield */
    uint64_t disabled_by[FAIR_SLOTS];  /* made unable by it since then */
    uint64_t ran_since[FAIR_SLOTS];
} fair;

void sim_fair_reset(void)
{
    if (fair.yielders != 0)
        memset(&fair, 0, sizeof(fair));
}

bool sim_fair_active(void)
{
    return fair.yielders != 0;
}

void sim_fair_step(uint32_t slot, bool yielded, uint64_t enabled_after)
{
    uint64_t bit;

    if (slot >= FAIR_SLOTS)
        return;
    bit = 1ull << slot;
    for (uint64_t left = fair.yielders; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        fair.below[i] &= ~bit;
        fair.enabled_ever[i] &= enabled_after;
        fair.ran_since[i] |= bit;
    }
    if ((fair.yielders & bit) != 0)
        fair.disabled_by[slot] |= fair.enabled_before & ~enabled_after;
    if (!yielded)
        return;
    if ((fair.yielders & bit) != 0)
        fair.below[slot] |= (fair.enabled_ever[slot] | fair.disabled_by[slot]) &
                            ~fair.ran_since[slot] & ~bit;
    fair.yielders |= bit;
    fair.enabled_ever[slot] = enabled_after;
    fair.disabled_by[slot] = 0;
    fair.ran_since[slot] = 0;
}

uint64_t sim_fair_allowed(uint64_t enabled)
{
    uint64_t allowed = UINT64_MAX;

    fair.enabled_before = enabled;
    for (uint64_t left = fair.yielders; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if ((fair.below[i] & enabled) != 0)
            allowed &= ~(1ull << i);
    }
    /* The relation has no cycle, so somebody is left. */
    RON_ASSERT(enabled == 0 || (allowed & enabled) != 0);
    return allowed;
}

uint64_t sim_fair_hash(uint64_t hash)
{
    hash = sim_hash_word(hash, fair.yielders);
    for (uint64_t left = fair.yielders; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        hash = sim_hash_word(hash, fair.below[i]);
        hash = sim_hash_word(hash, fair.enabled_ever[i]);
        hash = sim_hash_word(hash, fair.disabled_by[i]);
        hash = sim_hash_word(hash, fair.ran_since[i]);
    }
    return hash;
}
