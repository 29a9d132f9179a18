/*
 * clock.h - what time it is. Monotonic nanoseconds for intervals, UTC milliseconds for people.
 *
 * Cores never call these: their time arrives in the command.
 */
#ifndef RON_RT_CLOCK_H
#define RON_RT_CLOCK_H

#include "rt/shim.h"

#define RT_NS_PER_MS UINT64_C(1000000)
#define RT_NS_PER_S  UINT64_C(1000000000)

static inline uint64_t rt_now_ns(void)
{
    return sh_now_ns();
}
/* May jump, also backwards. */
static inline uint64_t rt_utc_ms(void)
{
    return sh_utc_ms();
}

#endif
