/*
 * backoff.h - how long to wait before trying again: exponential, jittered, capped.
 *
 * Pure: the caller brings the random number. The delay before retry n (from 0) lies between
 * base * 2^n and that plus the jitter, and never above the cap; at the cap it still spreads over
 * the jitter below it, so that clients do not fall into step.
 */
#ifndef RON_RT_BACKOFF_H
#define RON_RT_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct rt_backoff_policy {
    uint64_t base_ns;   /* > 0 */
    uint64_t jitter_ns; /* width of the first interval */
    uint64_t cap_ns;    /* >= base_ns */
    bool jitter_grows;  /* the width doubles too: 100-400 ms, 200-800 ms, ... */
};

/* value * 2^exponent, saturating. */
static inline uint64_t rt_backoff_scale(uint64_t value, unsigned exponent)
{
    if (value == 0)
        return 0;
    return exponent >= (unsigned)__builtin_clzll(value) ? UINT64_MAX : value << exponent;
}

static inline uint64_t rt_backoff_delay_ns(const struct rt_backoff_policy *policy,
                                           unsigned retry_index, uint64_t random)
{
    uint64_t low = rt_backoff_scale(policy->base_ns, retry_index);
    uint64_t width = policy->jitter_grows ? rt_backoff_scale(policy->jitter_ns, retry_index)
                                          : policy->jitter_ns;
    uint64_t high;

    RON_ASSERT(policy->base_ns > 0);
    RON_ASSERT(policy->base_ns <= policy->cap_ns);
    RON_ASSERT(policy->cap_ns < UINT64_MAX);
    if (__builtin_add_overflow(low, width, &high) || high > policy->cap_ns) {
        uint64_t spread = policy->jitter_ns < policy->cap_ns ? policy->jitter_ns : policy->cap_ns;
        high = policy->cap_ns;
        if (low > high - spread)
            low = high - spread;
    }
    return low + random % (high - low + 1);
}

#endif
