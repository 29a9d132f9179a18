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
 * never move, so readers on other threads miss nothing that counts; of what dies while they look
 * they may see the tag with the hash of its successor, or none. Never more than a third full of
 * what counts: half full, one question in four would go on to another bucket, and as often as not
 * to one that is not near. One writer, who looks at all slots of a bucket at once.
 *
 * A slot has room for a seq modulo 2^31 (a tag). Less than 2^30 count, and a sweep empties what has
 * been dead for long: a bucket for each LEDGER_RECENT_PACE that die, so none is dead for 2^30.
 */
#ifndef RON_LEDGER_CORE_RECENT_H
#define RON_LEDGER_CORE_RECENT_H

#include "base/assert.h"
#include "base/mem.h"
#include "ledger/core_recent_lanes.h"

enum { LEDGER_RECENT_PACE = 4 };

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

/* A walk over the slots of a hash. */
struct ledger_recent_walk {
    uint32_t hash;
    uint32_t bucket;
    uint32_t passed_count; /* buckets */
    uint32_t bits;         /* lanes of the bucket that have the hash and were not told yet */
};

static RON_HOT_INLINE uint32_t ledger_recent_look(const struct ledger_recent *recent, bool is_own,
                                                  uint32_t bucket, uint32_t hash)
{
    return is_own ? ledger_recent_own_match(&recent->buckets[bucket], hash)
                  : ledger_recent_match(&recent->buckets[bucket], hash);
}
static RON_HOT_INLINE struct ledger_recent_walk
ledger_recent_begin_as(const struct ledger_recent *recent, bool is_own, uint32_t hash)
{
    const uint32_t bucket = hash & recent->mask;

    return (struct ledger_recent_walk){
        .hash = hash,
        .bucket = bucket,
        .bits = ledger_recent_look(recent, is_own, bucket, hash),
    };
}

#define LEDGER_RECENT_NONE UINT32_MAX
static RON_HOT_INLINE uint32_t ledger_recent_next_as(const struct ledger_recent *recent,
                                                     bool is_own, struct ledger_recent_walk *walk,
                                                     uint64_t first)
{
    for (;;) {
        const struct ledger_bucket *bucket = &recent->buckets[walk->bucket];

        while (RON_UNLIKELY(walk->bits != 0)) {
            const uint32_t number = ledger_recent_number(bucket,
                                                         (uint32_t)__builtin_ctz(walk->bits));

            walk->bits &= walk->bits - 1;
            if (ledger_recent_is_free(number, first) == 0)
                return number - 1;
        }
        if (RON_LIKELY(ledger_recent_is_free(ledger_recent_number(bucket, 0), first) != 0) ||
            walk->passed_count == recent->mask)
            return LEDGER_RECENT_NONE;
        walk->passed_count++;
        walk->bucket = (walk->bucket + 1) & recent->mask;
        walk->bits = ledger_recent_look(recent, is_own, walk->bucket, walk->hash);
    }
}

/* Any thread. The tag of the next that counts, or NONE: what counted at the beginning of the walk
 * and still does is told. So may be a newer one of another hash, which took a dead one's slot
 * meanwhile: who asks looks at what the tag is of. */
static inline struct ledger_recent_walk ledger_recent_begin(const struct ledger_recent *recent,
                                                            uint32_t hash)
{
    return ledger_recent_begin_as(recent, false, hash);
}
static inline uint32_t ledger_recent_next(const struct ledger_recent *recent,
                                          struct ledger_recent_walk *walk, uint64_t first)
{
    return ledger_recent_next_as(recent, false, walk, first);
}

/* The same for the writer. */
static inline struct ledger_recent_walk ledger_recent_own_begin(const struct ledger_recent *recent,
                                                                uint32_t hash)
{
    return ledger_recent_begin_as(recent, true, hash);
}
static inline uint32_t ledger_recent_own_next(const struct ledger_recent *recent,
                                              struct ledger_recent_walk *walk, uint64_t first)
{
    return ledger_recent_next_as(recent, true, walk, first);
}

/* The writer: does no entry have the hash? A quick look: false where only a walk can tell. */
static inline bool ledger_recent_lacks(const struct ledger_recent *recent, uint32_t hash,
                                       uint64_t first)
{
    const struct ledger_bucket *bucket = &recent->buckets[hash & recent->mask];

    return RON_LIKELY(ledger_recent_own_match(bucket, hash) == 0) &&
           RON_LIKELY(ledger_recent_is_free(ledger_recent_number(bucket, 0), first) != 0);
}

static inline void ledger_recent_prefetch(const struct ledger_recent *recent, uint32_t hash)
{
    ron_prefetch(&recent->buckets[hash & recent->mask]);
}
/* When that has arrived: where the walk goes on, if it does. Without a branch: which buckets are
 * spilled nobody can guess. */
static inline void ledger_recent_prefetch_next(const struct ledger_recent *recent, uint32_t hash,
                                               uint64_t first)
{
    const uint32_t at = hash & recent->mask;
    const uint32_t spilled = atomic_load_explicit(&recent->buckets[at].numbers[0],
                                                  memory_order_relaxed);

    ron_prefetch(
        &recent->buckets[(at + (ledger_recent_is_free(spilled, first) ^ 1)) & recent->mask]);
}

#endif
