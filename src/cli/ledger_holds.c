/*
 * ledger_holds.c - see ledger_holds.h. Open addressing by the hash of the hold_id.
 */
#include "cli/ledger_holds.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/mem.h"

enum { SLOTS_LEAST = 256 };

static struct hold_slot slot_of(struct ron_slice hold_id)
{
    const struct ron_b3 hash = ron_b3(hold_id.data, hold_id.size);
    struct hold_slot slot = {.what = 0};

    memcpy(slot.hash, hash.bytes, sizeof(slot.hash));
    return slot;
}

/* Where it is, or where it would be. */
static struct hold_slot *look(const struct hold_set *set, const struct hold_slot *wanted)
{
    size_t at = (size_t)ron_load_le64(wanted->hash) & (set->slots_count - 1);

    RON_ASSERT(2 * set->count <= set->slots_count);
    while (set->slots[at].what != 0 &&
           memcmp(set->slots[at].hash, wanted->hash, sizeof(wanted->hash)) != 0)
        at = (at + 1) & (set->slots_count - 1);
    return &set->slots[at];
}

static enum ron_err grow(struct hold_set *set, struct ron_errinfo *reterr)
{
    struct hold_set larger = {
        .slots_count = set->slots_count == 0 ? SLOTS_LEAST : 2 * set->slots_count,
        .count = set->count,
    };

    if (larger.slots_count > 2 * (size_t)HOLD_SET_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %d holds", HOLD_SET_MAX);
    larger.slots = ron_mem_alloc_array(larger.slots_count, sizeof(larger.slots[0]));
    if (larger.slots == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu holds", set->count);
    for (size_t i = 0; i < set->slots_count; i++)
        if (set->slots[i].what != 0)
            *look(&larger, &set->slots[i]) = set->slots[i];
    (void)ron_mem_free(set->slots);
    *set = larger;
    return RON_ERR_OK;
}

enum ron_err hold_set_add(struct hold_set *set, struct ron_slice hold_id, bool any,
                          struct ron_errinfo *reterr)
{
    struct hold_slot added = slot_of(hold_id);
    struct hold_slot *slot;

    if (2 * (set->count + 1) > set->slots_count) {
        enum ron_err err = grow(set, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    slot = look(set, &added);
    if (slot->what != 0)
        return RON_ERR_OK;
    added.what = any ? 2 : 1;
    *slot = added;
    set->count++;
    return RON_ERR_OK;
}

bool hold_set_find(const struct hold_set *set, struct ron_slice hold_id, bool *ret_any)
{
    const struct hold_slot wanted = slot_of(hold_id);
    const struct hold_slot *slot = set->count == 0 ? NULL : look(set, &wanted);

    if (slot == NULL || slot->what == 0)
        return false;
    *ret_any = slot->what == 2;
    return true;
}

void hold_set_fini(struct hold_set *set)
{
    (void)ron_mem_free(set->slots);
    *set = (struct hold_set){.slots = NULL};
}
