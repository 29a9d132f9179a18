/*
 * core_recent_lanes.h - a bucket of core_recent.h: its slots, side by side.
 *
 * The writer looks at all slots at once. Any thread may look at them one by one: a number that was
 * there before has its hash; of what dies meanwhile the tag may come with the hash of its
 * successor.
 */
#ifndef RON_LEDGER_CORE_RECENT_LANES_H
#define RON_LEDGER_CORE_RECENT_LANES_H

#include <stdatomic.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/bytes.h"

enum { LEDGER_RECENT_SLOTS = 7, LEDGER_RECENT_LANES = 8 };

/* Slot i is lane i + 1 of both halves. A number is tag + 1; 0: there is none. */
struct ledger_bucket {
    _Atomic uint32_t numbers[LEDGER_RECENT_LANES]; /* the first: of what spilled */
    _Atomic uint32_t hashes[LEDGER_RECENT_LANES];  /* the first: unused */
};
_Static_assert(sizeof(struct ledger_bucket) == 64, "one cache line");
#define LEDGER_RECENT_LANES_USED 0xfeu

#define LEDGER_TAG_MASK (UINT32_MAX >> 1)
static inline uint32_t ledger_tag(uint64_t seq)
{
    return (uint32_t)seq & LEDGER_TAG_MASK;
}
/* 1 or 0: is the tag of this number dead, or none? Without a branch: nobody can guess it. Numbers
 * are 1 to 2^31, so that -number has the highest bit. */
static inline uint32_t ledger_recent_is_free(uint32_t number, uint64_t first)
{
    return ((number - 1 - (uint32_t)first) >> 30 | ~-number >> 31) & 1;
}

static inline uint32_t ledger_recent_number(const struct ledger_bucket *bucket, uint32_t lane)
{
    return atomic_load_explicit(&bucket->numbers[lane], memory_order_acquire);
}

/* Lanes of the bucket that have the hash, alive or dead. Any thread: a number that was there before
 * has its hash. */
static inline uint32_t ledger_recent_match(const struct ledger_bucket *bucket, uint32_t hash)
{
    uint32_t bits = 0;

#pragma GCC unroll 7
    for (uint32_t i = 1; i < LEDGER_RECENT_LANES; i++) {
        (void)ledger_recent_number(bucket, i); /* first: then the hash is not an older one */
        bits |= (uint32_t)(atomic_load_explicit(&bucket->hashes[i], memory_order_relaxed) == hash)
                << i;
    }
    return bits;
}

/* The same for the writer, and which lanes are free, the first among them. */
#if defined(__SSE2__)
static inline __m128i ledger_recent_quarter(const void *at)
{
    return _mm_load_si128((const __m128i *)at);
}
static inline uint32_t ledger_recent_signs(__m128i low, __m128i high)
{
    return (uint32_t)(_mm_movemask_ps(_mm_castsi128_ps(low)) |
                      _mm_movemask_ps(_mm_castsi128_ps(high)) << 4);
}
static inline uint32_t ledger_recent_own_match(const struct ledger_bucket *bucket, uint32_t hash)
{
    const __m128i wanted = _mm_set1_epi32((int)hash);

    return ledger_recent_signs(_mm_cmpeq_epi32(ledger_recent_quarter(&bucket->hashes[0]), wanted),
                               _mm_cmpeq_epi32(ledger_recent_quarter(&bucket->hashes[4]), wanted)) &
           LEDGER_RECENT_LANES_USED;
}
static inline __m128i ledger_recent_free_four(__m128i numbers, __m128i after_first)
{
    const __m128i is_dead = _mm_slli_epi32(_mm_sub_epi32(numbers, after_first), 1);

    return _mm_or_si128(is_dead, _mm_cmpeq_epi32(numbers, _mm_setzero_si128()));
}
static inline uint32_t ledger_recent_own_free(const struct ledger_bucket *bucket, uint64_t first)
{
    const __m128i after_first = _mm_set1_epi32((int)((uint32_t)first + 1));

    return ledger_recent_signs(
        ledger_recent_free_four(ledger_recent_quarter(&bucket->numbers[0]), after_first),
        ledger_recent_free_four(ledger_recent_quarter(&bucket->numbers[4]), after_first));
}
#else
static inline uint32_t ledger_recent_own_match(const struct ledger_bucket *bucket, uint32_t hash)
{
    return ledger_recent_match(bucket, hash);
}
static inline uint32_t ledger_recent_own_free(const struct ledger_bucket *bucket, uint64_t first)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < LEDGER_RECENT_LANES; i++)
        bits |= ledger_recent_is_free(ledger_recent_number(bucket, i), first) << i;
    return bits;
}
#endif

#endif
