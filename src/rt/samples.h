/*
 * samples.h - how long items stay in a queue, measured on every RT_SAMPLE_EVERY-th.
 *
 * Items are numbered as they enter, from 0, and leave in that order. So the numbers say which ones
 * are sampled and where their time of entry is kept: the items themselves carry nothing.
 * Synchronisation: the caller's.
 */
#ifndef RON_RT_SAMPLES_H
#define RON_RT_SAMPLES_H

#include "rt/clock.h"

enum { RT_SAMPLE_EVERY = 16 };
_Static_assert((RT_SAMPLE_EVERY & (RT_SAMPLE_EVERY - 1)) == 0, "a mask");

struct rt_samples {
    uint64_t *entered_ns; /* mask + 1 of them, a power of two */
    uint32_t mask;
    uint64_t count, wait_ns_sum, wait_ns_max;
};

/* Entries that suffice where at most `capacity` items are inside. */
static inline uint32_t rt_samples_needed(uint32_t capacity)
{
    uint32_t count = 1;

    while (count < capacity / RT_SAMPLE_EVERY + 1)
        count *= 2;
    return count;
}

/* The first number to sample from `number` on. */
static inline uint64_t rt_samples_first(uint64_t number)
{
    return (number + RT_SAMPLE_EVERY - 1) & ~(uint64_t)(RT_SAMPLE_EVERY - 1);
}

/* The time, read once a call however many items it moves, and only if a sample needs it: *now_ns is
 * 0 before. */
static inline uint64_t rt_samples_now(uint64_t *now_ns)
{
    if (*now_ns == 0)
        *now_ns = rt_now_ns();
    return *now_ns;
}

/* Items `number` up to, not including, `end` come in. */
static inline void rt_samples_enter(struct rt_samples *samples, uint64_t number, uint64_t end,
                                    uint64_t *now_ns)
{
    for (number = rt_samples_first(number); RON_UNLIKELY(number < end); number += RT_SAMPLE_EVERY)
        samples->entered_ns[number / RT_SAMPLE_EVERY & samples->mask] = rt_samples_now(now_ns);
}

/* They go out. */
static inline void rt_samples_leave(struct rt_samples *samples, uint64_t number, uint64_t end,
                                    uint64_t *now_ns)
{
    for (number = rt_samples_first(number); RON_UNLIKELY(number < end); number += RT_SAMPLE_EVERY) {
        uint64_t entered_ns = samples->entered_ns[number / RT_SAMPLE_EVERY & samples->mask];
        uint64_t wait_ns = rt_samples_now(now_ns) - entered_ns;

        samples->count++;
        samples->wait_ns_sum += wait_ns;
        if (wait_ns > samples->wait_ns_max)
            samples->wait_ns_max = wait_ns;
    }
}

#endif
