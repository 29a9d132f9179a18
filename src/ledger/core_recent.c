/*
 * core_recent.c - see core_recent.h.
 */
#include "ledger/core_recent.h"

bool ledger_recent_init(struct ledger_recent *recent, uint32_t places_max)
{
    uint64_t buckets_count = 2;

    RON_ASSERT(places_max > 0);
    RON_ASSERT(places_max <= UINT32_C(1) << 28);
    while (buckets_count * LEDGER_RECENT_SLOTS < 3 * (uint64_t)places_max)
        buckets_count *= 2;
    *recent = (struct ledger_recent){.mask = (uint32_t)(buckets_count - 1)};
    recent->buckets = ron_table_alloc(buckets_count, sizeof(recent->buckets[0]), RON_TABLE_RANDOM);
    return recent->buckets != NULL;
}

void ledger_recent_fini(struct ledger_recent *recent)
{
    recent->buckets = ron_table_free(recent->buckets);
}

size_t ledger_recent_size(const struct ledger_recent *recent)
{
    return ((size_t)recent->mask + 1) * sizeof(recent->buckets[0]);
}

static uint32_t free_slots(const struct ledger_bucket *bucket, uint64_t first)
{
    return ledger_recent_own_free(bucket, first) & LEDGER_RECENT_LANES_USED;
}

static void store(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* The hash before the number that says it is there. */
static void put(struct ledger_bucket *bucket, uint32_t lane, uint32_t hash, uint32_t number)
{
    atomic_store_explicit(&bucket->hashes[lane], hash, memory_order_relaxed);
    store(&bucket->numbers[lane], number);
}

void ledger_recent_add(struct ledger_recent *recent, uint32_t hash, uint64_t seq, uint64_t first)
{
    const uint32_t number = ledger_tag(seq) + 1;
    uint32_t at = hash & recent->mask;
    uint32_t bits;

    RON_ASSERT(seq >= first);
    recent->is_used = true;
    while (RON_UNLIKELY((bits = free_slots(&recent->buckets[at], first)) == 0)) {
        /* It is the newest: what went on before is older. */
        store(&recent->buckets[at].numbers[0], number);
        at = (at + 1) & recent->mask;
        RON_ASSERT(at != (hash & recent->mask));
    }
    put(&recent->buckets[at], (uint32_t)__builtin_ctz(bits), hash, number);
}

void ledger_recent_remove(struct ledger_recent *recent, uint32_t hash, uint64_t seq)
{
    const uint32_t number = ledger_tag(seq) + 1;
    uint32_t at = hash & recent->mask;

    for (;;) {
        struct ledger_bucket *bucket = &recent->buckets[at];

        for (uint32_t bits = ledger_recent_own_match(bucket, hash); bits != 0; bits &= bits - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(bits);

            if (ledger_recent_number(bucket, lane) == number) {
                store(&bucket->numbers[lane], 0);
                return;
            }
        }
        RON_ASSERT(ledger_recent_number(bucket, 0) != 0);
        at = (at + 1) & recent->mask;
        RON_ASSERT(at != (hash & recent->mask));
    }
}

/* What is dead or none becomes none. */
static void clean(struct ledger_bucket *bucket, uint64_t first)
{
    for (uint32_t bits = ledger_recent_own_free(bucket, first); bits != 0; bits &= bits - 1)
        store(&bucket->numbers[__builtin_ctz(bits)], 0);
}

void ledger_recent_sweep(struct ledger_recent *recent, uint64_t before, uint64_t first)
{
    const uint64_t end = first / LEDGER_RECENT_PACE;
    uint64_t at = before / LEDGER_RECENT_PACE;

    RON_ASSERT(first >= before);
    if (!recent->is_used)
        return;
    for (uint32_t done = 0; at < end && done <= recent->mask; at++, done++)
        clean(&recent->buckets[(uint32_t)at & recent->mask], first);
}

uint64_t ledger_recent_count(const struct ledger_recent *recent, uint64_t first)
{
    uint64_t count = 0;

    for (uint64_t at = 0; recent->is_used && at <= recent->mask; at++)
        count += LEDGER_RECENT_SLOTS -
                 (uint32_t)__builtin_popcount(free_slots(&recent->buckets[at], first));
    return count;
}
