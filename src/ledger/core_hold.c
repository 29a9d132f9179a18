/*
 * core_hold.c - holds by account, waiting for expiry in order, and what of entries was reversed.
 *
 * The heap orders holds by (expires_ms, account id). A hold that was used up stays in it until it
 * comes to the top; one that is taken back leaves at once.
 */
#include "ledger/core_types.h"

uint32_t hold_find(const struct ledger_core *core, const struct ledger_id *account)
{
    const uint32_t hash = id_hash(account);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->hold_index, hash, &at)) != LEDGER_INDEX_NONE) {
        struct ledger_id id = account_id(&core->accounts[core->holds[place].account]);

        if (ledger_id_equal(&id, account))
            return place;
    }
    return NONE;
}

uint32_t reversal_find(const struct ledger_core *core, const struct ledger_id *entry)
{
    const uint32_t hash = id_hash(entry);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->reversal_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (ledger_id_equal(&core->reversals[place].entry, entry))
            return place;
    return NONE;
}

/* Does a expire before b? */
static bool before(const struct ledger_core *core, uint32_t a, uint32_t b)
{
    const struct hold *first = &core->holds[a];
    const struct hold *second = &core->holds[b];
    struct ledger_id first_id = account_id(&core->accounts[first->account]);
    struct ledger_id second_id = account_id(&core->accounts[second->account]);

    if (first->expires_ms != second->expires_ms)
        return first->expires_ms < second->expires_ms;
    return memcmp(first_id.bytes, second_id.bytes, LEDGER_ID_SIZE) < 0;
}

static void place_at(struct ledger_core *core, uint32_t at, uint32_t hold)
{
    core->heap[at] = hold;
    RON_ASSERT(at < core->heap_count);
    core->holds[hold].heap_at = at;
}

static void sift_up(struct ledger_core *core, uint32_t at, uint32_t hold)
{
    while (at > 0 && before(core, hold, core->heap[(at - 1) / 2])) {
        place_at(core, at, core->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place_at(core, at, hold);
}

static void sift_down(struct ledger_core *core, uint32_t at, uint32_t hold)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= core->heap_count)
            break;
        if (child + 1 < core->heap_count && before(core, core->heap[child + 1], core->heap[child]))
            child++;
        if (!before(core, core->heap[child], hold))
            break;
        place_at(core, at, core->heap[child]);
        at = child;
    }
    place_at(core, at, hold);
}

void heap_push(struct ledger_core *core, uint32_t hold)
{
    RON_ASSERT(core->heap_count < core->capacity.holds_max);
    RON_ASSERT(hold < core->capacity.holds_max);
    RON_ASSERT(core->holds[hold].heap_at == NONE);
    RON_ASSERT(core->holds[hold].expires_ms > 0);
    core->heap_count++;
    sift_up(core, core->heap_count - 1, hold);
}

void heap_remove(struct ledger_core *core, uint32_t hold)
{
    uint32_t at = core->holds[hold].heap_at;
    uint32_t last;

    RON_ASSERT(at < core->heap_count);
    RON_ASSERT(core->heap[at] == hold);
    core->holds[hold].heap_at = NONE;
    last = core->heap[--core->heap_count];
    if (last == hold)
        return;
    if (at > 0 && before(core, last, core->heap[(at - 1) / 2]))
        sift_up(core, at, last);
    else
        sift_down(core, at, last);
}
