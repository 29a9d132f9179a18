/*
 * slot.h - a small number that is the running thread's own while it lives: its row in sharded
 * counters.
 *
 * The owner of a slot is the only writer of what the slot indexes, so it adds without a bus lock.
 * Threads beyond RT_SLOTS_MAX have none (0) and share row 0, which takes atomic adds. Correct in
 * any case; only the cost differs.
 */
#ifndef RON_RT_SLOT_H
#define RON_RT_SLOT_H

#include "rt/local.h"

enum { RT_SLOTS_MAX = 64 };

/* Give the thread a slot, 1..RT_SLOTS_MAX, or 0 when none is free; asked again next time. */
unsigned rt_slot_claim(void) RON_COLD;
/* Give the slot back: the last thing a thread does. What it wrote is seen by the next owner. */
void rt_slot_release(void);
/* Forget all slots. Called by rt_init only, when no other thread or fiber lives. */
void rt_slots_reset(void);

static inline unsigned rt_slot(void)
{
    unsigned slot = sh_local()->slot;

    return RON_LIKELY(slot != 0) ? slot : rt_slot_claim();
}

#endif
