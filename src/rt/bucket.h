/*
 * bucket.h - token bucket: a rate with a burst. Exact integers, no drift.
 *
 * Pure: time comes from the caller, who also serialises the calls. Time that goes backwards refills
 * nothing. The level is kept in billionths of a token: one nanosecond at one token a second.
 */
#ifndef RON_RT_BUCKET_H
#define RON_RT_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

#define RT_BUCKET_UNIT UINT64_C(1000000000)
enum { RT_BUCKET_RATE_MAX = 1000000000, RT_BUCKET_BURST_MAX = 1000000000 };

struct rt_bucket {
    uint64_t rate_per_s; /* tokens; 0 never refills */
    uint64_t level;      /* billionths of a token, <= burst * RT_BUCKET_UNIT */
    uint64_t level_max;
    uint64_t updated_ns;
};

/* A full bucket. */
static inline void rt_bucket_init(struct rt_bucket *bucket, uint64_t rate_per_s, uint64_t burst,
                                  uint64_t now_ns)
{
    RON_ASSERT(rate_per_s <= RT_BUCKET_RATE_MAX);
    RON_ASSERT(burst > 0);
    RON_ASSERT(burst <= RT_BUCKET_BURST_MAX);
    bucket->rate_per_s = rate_per_s;
    bucket->level_max = burst * RT_BUCKET_UNIT;
    bucket->level = bucket->level_max;
    bucket->updated_ns = now_ns;
}

static inline void rt_bucket_refill(struct rt_bucket *bucket, uint64_t now_ns)
{
    unsigned __int128 level = bucket->level;

    if (now_ns <= bucket->updated_ns)
        return;
    level += (unsigned __int128)(now_ns - bucket->updated_ns) * bucket->rate_per_s;
    bucket->level = level < bucket->level_max ? (uint64_t)level : bucket->level_max;
    bucket->updated_ns = now_ns;
}

/* Take tokens (0..burst) if they are there; all or none. */
static inline bool rt_bucket_take(struct rt_bucket *bucket, uint64_t tokens, uint64_t now_ns)
{
    rt_bucket_refill(bucket, now_ns);
    if (tokens > bucket->level / RT_BUCKET_UNIT)
        return false;
    bucket->level -= tokens * RT_BUCKET_UNIT;
    return true;
}

/* Nanoseconds until that many could be taken, for Retry-After: 0 now, UINT64_MAX never. */
static inline uint64_t rt_bucket_wait_ns(struct rt_bucket *bucket, uint64_t tokens, uint64_t now_ns)
{
    uint64_t missing;

    rt_bucket_refill(bucket, now_ns);
    if (tokens > bucket->level_max / RT_BUCKET_UNIT)
        return UINT64_MAX;
    if (tokens * RT_BUCKET_UNIT <= bucket->level)
        return 0;
    if (bucket->rate_per_s == 0)
        return UINT64_MAX;
    missing = tokens * RT_BUCKET_UNIT - bucket->level;
    return missing / bucket->rate_per_s + (missing % bucket->rate_per_s != 0);
}

#endif
