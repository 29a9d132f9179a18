/*
 * deadline.h - the moment by which something must be done.
 *
 * Made once, where a request enters, and carried along by value. Passing it on never restarts it;
 * a step with a bound of its own takes rt_deadline_min of both. Past means: now or before.
 */
#ifndef RON_RT_DEADLINE_H
#define RON_RT_DEADLINE_H

#include "rt/clock.h"

struct rt_deadline {
    uint64_t at_ns; /* monotonic; SH_NEVER for none */
};

#define RT_DEADLINE_NEVER ((struct rt_deadline){SH_NEVER})

/* From now on; saturates at "never". */
static inline struct rt_deadline rt_deadline_after_ns(uint64_t timeout_ns)
{
    uint64_t at_ns;

    if (__builtin_add_overflow(rt_now_ns(), timeout_ns, &at_ns))
        at_ns = SH_NEVER;
    return (struct rt_deadline){at_ns};
}
static inline struct rt_deadline rt_deadline_after_ms(uint64_t timeout_ms)
{
    return timeout_ms > UINT64_MAX / RT_NS_PER_MS ? RT_DEADLINE_NEVER
                                                  : rt_deadline_after_ns(timeout_ms * RT_NS_PER_MS);
}
/* The earlier of two. */
static inline struct rt_deadline rt_deadline_min(struct rt_deadline a, struct rt_deadline b)
{
    return a.at_ns <= b.at_ns ? a : b;
}
static inline bool rt_deadline_expired(struct rt_deadline deadline)
{
    return deadline.at_ns != SH_NEVER && rt_now_ns() >= deadline.at_ns;
}
/* 0 when past; UINT64_MAX for "never". */
static inline uint64_t rt_deadline_remaining_ns(struct rt_deadline deadline)
{
    uint64_t now_ns;

    if (deadline.at_ns == SH_NEVER)
        return UINT64_MAX;
    now_ns = rt_now_ns();
    return deadline.at_ns > now_ns ? deadline.at_ns - now_ns : 0;
}

#endif
