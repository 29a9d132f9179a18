/*
 * core_recent.h - from a 32-bit hash to the seqs of entries that are known for a while.
 *
 * Entries come one after the other and are forgotten in the same order: each question says which is
 * the first that counts (`first`), and what lies before it is dead. Nothing is done when an entry
 * dies, which would be a miss of the cache for each: a slot tells by itself how old it is, and is
 * used again by who comes next.
 *
 * Buckets are lines of the cache: seven slots, and how new the newest is that found no room here
 * and went on to the next bucket. While that one counts, who looks for a hash goes on, too. Slots
 * never move, so readers on other threads miss nothing that counts. Never more than half full of
 * what counts. One writer.
 *
 * A slot has room for a seq modulo 2^31 (a tag). Less than 2^30 count, and a sweep empties what has
 * been dead for long: a bucket for each LEDGER_RECENT_PACE that die, so none is dead for 2^30.
 */
#ifndef RON_LEDGER_CORE_RECENT_H
#define RON_LEDGER_CORE_RECENT_H

#include <stdatomic.h>

#include "base/assert.h"
#include "base/mem.h"

enum { LEDGER_RECENT_SLOTS = 7, LEDGER_RECENT_PACE = 4 };

struct ledger_bucket {
    _Atomic uint64_t spilled;                    /* 0: none; else tag + 1 */
    _Atomic uint64_t slots[LEDGER_RECENT_SLOTS]; /* 0: empty; else hash << 32 | tag + 1 */
};
_Static_assert(sizeof(struct ledger_bucket) == 64, "one cache line");

struct ledger_recent {
    struct ledger_bucket *buckets;
    uint32_t mask; /* buckets - 1, a power of two */
    bool is_used;  /* else no page of it was ever touched */
};

/* Room for places_max entries that count. False when there is no memory. */
bool ledger_recent_init(struct ledger_recent *recent, uint32_t places_max) RON_MUST_USE;
void ledger_recent_fini(struct ledger_recent *recent);
size_t ledger_recent_size(const struct ledger_recent *recent);

/* seq is newer than all that count. */
void ledger_recent_add(struct ledger_recent *recent, uint32_t hash, uint64_t seq, uint64_t first);
/* Take out what counts and is there. */
void ledger_recent_remove(struct ledger_recent *recent, uint32_t hash, uint64_t seq);
/* What counts began with `before`, and begins with `first` now. */
void ledger_recent_sweep(struct ledger_recent *recent, uint64_t before, uint64_t first);
/* How many slots count? */
uint64_t ledger_recent_count(const struct ledger_recent *recent, uint64_t first);

#define LEDGER_TAG_MASK (UINT32_MAX >> 1)
static inline uint32_t ledger_tag(uint64_t seq)
{
    return (uint32_t)seq & LEDGER_TAG_MASK;
}
/* 1 or 0: does the word (of a slot or `spilled`) hold a tag that is dead, or none? Without a
 * branch: nobody can guess it. Tags are 1 to 2^31 there, so that -tag has the highest bit. */
static inline uint32_t ledger_recent_is_free(uint64_t word, uint64_t first)
{
    const uint32_t number = (uint32_t)word;

    return ((number - 1 - (uint32_t)first) >> 30 | ~-number >> 31) & 1;
}

/* A walk over the slots of a hash. */
struct ledger_recent_walk {
    uint32_t hash;
    uint32_t bucket;
    uint32_t passed_count; /* buckets */
    uint32_t bits;         /* slots of the bucket that have the hash and were not told yet */
};

static inline uint32_t ledger_recent_match(const struct ledger_bucket *bucket, uint32_t hash)
{
    uint32_t bits = 0;

#pragma GCC unroll 7
    for (uint32_t i = 0; i < LEDGER_RECENT_SLOTS; i++)
        bits |=
            (uint32_t)((uint32_t)(atomic_load_explicit(&bucket->slots[i], memory_order_acquire) >>
                                  32) == hash)
            << i;
    return bits;
}

static inline struct ledger_recent_walk ledger_recent_begin(const struct ledger_recent *recent,
                                                            uint32_t hash)
{
    const uint32_t bucket = hash & recent->mask;

    return (struct ledger_recent_walk){
        .hash = hash,
        .bucket = bucket,
        .bits = ledger_recent_match(&recent->buckets[bucket], hash),
    };
}

#define LEDGER_RECENT_NONE UINT32_MAX
/* The tag of the next that counts, or NONE. Any thread: what counted at the beginning of the walk
 * and still does is told. */
static inline uint32_t ledger_recent_next(const struct ledger_recent *recent,
                                          struct ledger_recent_walk *walk, uint64_t first)
{
    for (;;) {
        const struct ledger_bucket *bucket = &recent->buckets[walk->bucket];

        while (RON_UNLIKELY(walk->bits != 0)) {
            const uint64_t word = atomic_load_explicit(&bucket->slots[__builtin_ctz(walk->bits)],
                                                       memory_order_acquire);

            walk->bits &= walk->bits - 1;
            if ((uint32_t)(word >> 32) == walk->hash && ledger_recent_is_free(word, first) == 0)
                return (uint32_t)word - 1;
        }
        if (RON_LIKELY(
                ledger_recent_is_free(atomic_load_explicit(&bucket->spilled, memory_order_acquire),
                                      first) != 0) ||
            walk->passed_count == recent->mask)
            return LEDGER_RECENT_NONE;
        walk->passed_count++;
        walk->bucket = (walk->bucket + 1) & recent->mask;
        walk->bits = ledger_recent_match(&recent->buckets[walk->bucket], walk->hash);
    }
}

static inline void ledger_recent_prefetch(const struct ledger_recent *recent, uint32_t hash)
{
    __builtin_prefetch(&recent->buckets[hash & recent->mask]);
}
/* When that has arrived: where the walk goes on, if it does. Without a branch: which buckets are
 * spilled nobody can guess. */
static inline void ledger_recent_prefetch_next(const struct ledger_recent *recent, uint32_t hash,
                                               uint64_t first)
{
    const uint32_t at = hash & recent->mask;
    const uint64_t spilled = atomic_load_explicit(&recent->buckets[at].spilled,
                                                  memory_order_relaxed);

    __builtin_prefetch(
        &recent->buckets[(at + (ledger_recent_is_free(spilled, first) ^ 1)) & recent->mask]);
}

#endif
