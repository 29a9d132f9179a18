/*
 * slot.c - slots of threads. See slot.h.
 *
 * A set of 64 bits. Neither it nor what the slots index is a scheduling point of the simulator: who
 * gets which slot changes no sum, and sums are all that is ever read.
 */
#include "rt/slot.h"

#include <stdatomic.h>

#include "base/assert.h"

_Static_assert(RT_SLOTS_MAX == 64, "one bit each");

static _Atomic uint64_t taken;

unsigned rt_slot_claim(void)
{
    struct rt_local *local = sh_local();
    uint64_t before = atomic_load_explicit(&taken, memory_order_relaxed);

    RON_ASSERT(local->slot == 0);
    while (before != UINT64_MAX) {
        unsigned bit = (unsigned)__builtin_ctzll(~before);

        /* Acquire: the counts of the previous owner are its starting point. */
        if (atomic_compare_exchange_weak_explicit(&taken, &before, before | (UINT64_C(1) << bit),
                                                  memory_order_acquire, memory_order_relaxed)) {
            local->slot = bit + 1;
            return local->slot;
        }
    }
    return 0;
}

void rt_slot_release(void)
{
    struct rt_local *local = sh_local();
    uint64_t mask, before;

    if (local->slot == 0)
        return;
    mask = UINT64_C(1) << (local->slot - 1);
    local->slot = 0;
    before = atomic_fetch_and_explicit(&taken, ~mask, memory_order_release);
    RON_ASSERT((before & mask) != 0);
}

void rt_slots_reset(void)
{
    atomic_store_explicit(&taken, 0, memory_order_relaxed);
    sh_local()->slot = 0;
}
