/*
 * core_recent.c - see core_recent.h.
 */
#include "ledger/core_recent.h"

bool ledger_recent_init(struct ledger_recent *recent, uint32_t places_max)
{
    uint64_t buckets_count = 2;

    RON_ASSERT(places_max > 0);
    RON_ASSERT(places_max <= UINT32_C(1) << 28);
    while (buckets_count * (LEDGER_RECENT_SLOTS + 1) < 2 * (uint64_t)places_max)
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

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* Which slots may be used? */
static uint32_t free_of(const struct ledger_bucket *bucket, uint64_t first)
{
    uint32_t bits = 0;

#pragma GCC unroll 7
    for (uint32_t i = 0; i < LEDGER_RECENT_SLOTS; i++)
        bits |= ledger_recent_is_free(load(&bucket->slots[i]), first) << i;
    return bits;
}

void ledger_recent_add(struct ledger_recent *recent, uint32_t hash, uint64_t seq, uint64_t first)
{
    const uint32_t number = ledger_tag(seq) + 1;
    uint32_t at = hash & recent->mask;
    uint32_t bits;

    RON_ASSERT(seq >= first);
    recent->is_used = true;
    while (RON_UNLIKELY((bits = free_of(&recent->buckets[at], first)) == 0)) {
        /* It is the newest: what went on before is older. */
        store(&recent->buckets[at].spilled, number);
        at = (at + 1) & recent->mask;
        RON_ASSERT(at != (hash & recent->mask));
    }
    store(&recent->buckets[at].slots[__builtin_ctz(bits)], (uint64_t)hash << 32 | number);
}

void ledger_recent_remove(struct ledger_recent *recent, uint32_t hash, uint64_t seq)
{
    const uint64_t wanted = (uint64_t)hash << 32 | (ledger_tag(seq) + 1);
    uint32_t at = hash & recent->mask;

    for (;;) {
        struct ledger_bucket *bucket = &recent->buckets[at];

        for (uint32_t i = 0; i < LEDGER_RECENT_SLOTS; i++)
            if (load(&bucket->slots[i]) == wanted) {
                store(&bucket->slots[i], 0);
                return;
            }
        RON_ASSERT(load(&bucket->spilled) != 0);
        at = (at + 1) & recent->mask;
        RON_ASSERT(at != (hash & recent->mask));
    }
}

static void clean(struct ledger_bucket *bucket, uint64_t first)
{
    if (ledger_recent_is_free(load(&bucket->spilled), first) != 0)
        store(&bucket->spilled, 0);
    for (uint32_t bits = free_of(bucket, first); bits != 0; bits &= bits - 1)
        store(&bucket->slots[__builtin_ctz(bits)], 0);
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
                 (uint32_t)__builtin_popcount(free_of(&recent->buckets[at], first));
    return count;
}
