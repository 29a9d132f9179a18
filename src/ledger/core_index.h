/*
 * core_index.h - from a 32-bit hash to places in an array: open addressing, linear probing.
 *
 * A slot holds hash and place, so a look-up touches a record only if 32 bits agree, and removal
 * needs no record at all. Keys are the caller's business: several places may have one hash. Never
 * more than half full. Slots are atomic for the readers of the account index; one writer.
 */
#ifndef RON_LEDGER_CORE_INDEX_H
#define RON_LEDGER_CORE_INDEX_H

#include <stdatomic.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

struct ledger_slot {
    _Atomic uint64_t word; /* 0: empty; else hash << 32 | place + 1 */
};
struct ledger_index {
    struct ledger_slot *slots;
    uint32_t mask; /* slots - 1, a power of two */
    uint32_t used_count;
};

#define LEDGER_INDEX_NONE UINT32_MAX

/* Room for places_max places. False when there is no memory. */
bool ledger_index_init(struct ledger_index *index, uint32_t places_max) RON_MUST_USE;
void ledger_index_fini(struct ledger_index *index);
size_t ledger_index_size(const struct ledger_index *index);

void ledger_index_add(struct ledger_index *index, uint32_t hash, uint32_t place);
/* The pair must be there. */
void ledger_index_remove(struct ledger_index *index, uint32_t hash, uint32_t place);

/* Walk the places of a hash: for (at = hash; (place = ledger_index_next(index, hash, &at)) !=
 * LEDGER_INDEX_NONE;) */
static inline uint32_t ledger_index_next(const struct ledger_index *index, uint32_t hash,
                                         uint32_t *at)
{
    for (;;) {
        uint64_t slot = atomic_load_explicit(&index->slots[*at & index->mask].word,
                                             memory_order_acquire);

        if (slot == 0)
            return LEDGER_INDEX_NONE;
        (*at)++;
        if ((uint32_t)(slot >> 32) == hash)
            return (uint32_t)slot - 1;
    }
}

static inline void ledger_index_prefetch(const struct ledger_index *index, uint32_t hash)
{
    ron_prefetch(&index->slots[hash & index->mask]);
}

#endif
