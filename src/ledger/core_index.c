/*
 * core_index.c - see core_index.h.
 */
#include "ledger/core_index.h"

bool ledger_index_init(struct ledger_index *index, uint32_t places_max)
{
    uint64_t slots_count = 16;

    RON_ASSERT(places_max > 0);
    RON_ASSERT(places_max <= UINT32_C(1) << 30);
    while (slots_count < 2 * (uint64_t)places_max)
        slots_count *= 2;
    *index = (struct ledger_index){.mask = (uint32_t)(slots_count - 1)};
    index->slots = ron_table_alloc(slots_count, sizeof(index->slots[0]), RON_TABLE_RANDOM);
    return index->slots != NULL;
}

void ledger_index_fini(struct ledger_index *index)
{
    index->slots = ron_table_free(index->slots);
}

size_t ledger_index_size(const struct ledger_index *index)
{
    return ((size_t)index->mask + 1) * sizeof(index->slots[0]);
}

static uint64_t load(const struct ledger_index *index, uint32_t at)
{
    return atomic_load_explicit(&index->slots[at & index->mask].word, memory_order_relaxed);
}

static void store(struct ledger_index *index, uint32_t at, uint64_t slot)
{
    atomic_store_explicit(&index->slots[at & index->mask].word, slot, memory_order_release);
}

void ledger_index_add(struct ledger_index *index, uint32_t hash, uint32_t place)
{
    uint32_t at = hash;

    RON_ASSERT(place < UINT32_MAX - 1);
    RON_ASSERT(index->used_count <= index->mask / 2);
    while (load(index, at) != 0)
        at++;
    store(index, at, (uint64_t)hash << 32 | (place + 1));
    index->used_count++;
}

void ledger_index_remove(struct ledger_index *index, uint32_t hash, uint32_t place)
{
    const uint64_t wanted = (uint64_t)hash << 32 | (place + 1);
    uint32_t hole = hash;
    uint32_t at;

    while (load(index, hole) != wanted) {
        RON_ASSERT(load(index, hole) != 0);
        hole++;
    }
    /* Close the gap: whoever stands behind the hole and does not belong behind it moves in. */
    for (at = hole + 1; load(index, at) != 0; at++) {
        uint64_t slot = load(index, at);
        uint32_t distance = (at - (uint32_t)(slot >> 32)) & index->mask;

        if (distance >= ((at - hole) & index->mask)) {
            store(index, hole, slot);
            hole = at;
        }
    }
    store(index, hole, 0);
    RON_ASSERT(index->used_count > 0);
    index->used_count--;
}
