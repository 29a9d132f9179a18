/*
 * core_pages.c - see core_pages.h.
 */
#include "ledger/core_pages.h"

#include "base/pages.h"
#include "ledger/core_types.h"

enum {
    STEP_IN_ORDER = 256 << 10,
    STEP_RANDOM = 2 << 20, /* a huge page */
    /* So many entries for each step of the index, and there is one in nearly all of them. */
    IDS_PER_STEP = 16,
};

static struct ledger_pages_part part_of(const void *table, uint64_t size, uint64_t used)
{
    return (struct ledger_pages_part){
        .start = (uint8_t *)(uintptr_t)table, .size = size, .used = used, .made = used};
}

void ledger_pages_init(struct ledger_pages *ret_pages, const struct ledger_core *core)
{
    const struct ledger_capacity *c = &core->capacity;

    *ret_pages = (struct ledger_pages){
        .ring = part_of(core->ring, ((uint64_t)core->ring_mask + 1) * sizeof(core->ring[0]), 0),
        .accounts = part_of(core->accounts, (uint64_t)c->accounts_max * sizeof(core->accounts[0]),
                            core->accounts_count * sizeof(core->accounts[0])),
        .rows = part_of(core->rows, (uint64_t)c->rows_max * sizeof(core->rows[0]),
                        core->rows_count * sizeof(core->rows[0])),
        .committed = part_of(core->committed, (uint64_t)c->rows_max * sizeof(core->committed[0]),
                             core->rows_count * sizeof(core->committed[0])),
        .names = part_of(core->names, c->names_size_max, core->names_size),
        .ids = part_of(core->id_index.buckets, ledger_recent_size(&core->id_index), 0),
        .ring_mask = core->ring_mask,
    };
}

/* So much more will be used: whole steps of it, and of what there was before, are made. */
static void expect(struct ledger_pages_part *part, uint64_t size, uint64_t step)
{
    part->used = size < part->size - part->used ? part->used + size : part->size;
    if (part->used - part->made < step)
        return;
    size = (part->used - part->made) / step * step;
    ron_pages_make(part->start + part->made, size);
    part->made += size;
}

void ledger_pages_expect(struct ledger_pages *pages, const struct ledger_frame *frame,
                         bool is_known)
{
    if (pages->entries_count == 0)
        pages->ring.used = pages->ring.made = (frame->seq_start & pages->ring_mask) *
                                              sizeof(struct ledger_entry);
    pages->entries_count += frame->entries_count;
    expect(&pages->ring, frame->entries_count * sizeof(struct ledger_entry), STEP_IN_ORDER);
    if (pages->ids.made == 0 &&
        pages->entries_count / IDS_PER_STEP >= pages->ids.size / STEP_RANDOM)
        expect(&pages->ids, pages->ids.size, STEP_RANDOM);
    if (is_known)
        return;
    expect(&pages->accounts, frame->names_count * sizeof(struct account), STEP_RANDOM);
    /* As a rule an account has a row before long. */
    expect(&pages->rows, frame->names_count * sizeof(struct row), STEP_RANDOM);
    expect(&pages->committed, frame->names_count * sizeof(struct row_committed), STEP_RANDOM);
    expect(&pages->names, frame->names.size - frame->names_count, STEP_IN_ORDER);
}
