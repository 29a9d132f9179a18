/*
 * fault.h - for simulated devices: what the world chooses, how long it takes, whose memory it is.
 *
 * Production never sees a fault from here. In the simulator each question is a choice of the
 * source, within the budget of faults.
 */
#ifndef RON_RT_FAULT_H
#define RON_RT_FAULT_H

#include "base/assert.h"
#include "rt/clock.h"

/* 0: no fault; else 1..options_count-1. `tag` names the site in traces. */
static inline unsigned rt_fault_choose(unsigned options_count, const char *tag)
{
    return sh_choose(options_count, tag);
}

/* Take this long, as a slow device would. */
static inline void rt_fault_delay_ms(uint32_t delay_ms)
{
    sh_sleep_until(sh_now_ns() + delay_ms * RT_NS_PER_MS);
}

/* The owner of what this thread allocates (shim.h). A device notes it at birth, sets it while it
 * allocates, and sets the old one again before it returns. */
static inline unsigned rt_memory_owner(void)
{
    return sh_memory_owner();
}
static inline void rt_memory_set_owner(unsigned owner)
{
    sh_set_memory_owner(owner);
}

#endif
