/*
 * core_undo.c - take back a batch: one that failed half-way, or the newest that is not committed.
 *
 * Afterwards the pending state is what it was before the batch, cell by cell and count by count;
 * only the layout of indexes and heap may differ, which nothing observable depends on.
 */
#include "ledger/core_types.h"

struct ledger_marks marks_of(const struct ledger_core *core)
{
    return (struct ledger_marks){
        .batch_last = core->batch_last,
        .seq_last = core->seq_last,
        .commit_ms_last = core->commit_ms_last,
        .keys_end = core->keys_end,
        .accounts = core->accounts_count,
        .rows = core->rows_count,
        .names = core->names_size,
        .assets = core->assets_count,
        .holds = core->holds_count,
        .reversals = core->reversals_count,
        .limits = core->limits_count,
        .runs = core->runs_count,
        .streams = core->streams_count,
    };
}

/* Entries leave the indexes; reversals give back what they took. */
static void undo_entries(struct ledger_core *core, struct ledger_batch *batch)
{
    const uint64_t seq_start = batch->before.seq_last + 1;

    RON_ASSERT(core->ring_first <= seq_start); /* what is pending is never forgotten */
    RON_ASSERT(batch->entries_count <= batch->ids_count);
    for (uint32_t i = batch->ids_count; i-- > 0;) {
        const struct ledger_entry *entry = &batch->entries[i];
        bool applied = i < batch->entries_count; /* else there is nothing but its id */

        if (applied && entry->kind == LEDGER_REVERSE) {
            uint32_t reversal = reversal_find(core, &entry->link);
            bool given;

            RON_ASSERT(reversal < core->reversals_count);
            given = ron_u128_sub(core->reversals[reversal].total, entry->amount,
                                 &reversal_write(core, reversal)->total);
            RON_ASSERT(given);
        }
        ledger_recent_remove(&core->id_index, id_hash(&entry->id), seq_start + i);
        if (applied && entry->nonce != 0)
            ledger_recent_remove(&core->nonce_index, nonce_hash(&entry->debit, entry->nonce),
                                 seq_start + i);
    }
}

static void undo_cells(struct ledger_core *core, struct ledger_batch *batch)
{
    for (uint32_t i = batch->cells_count; i-- > 0;) {
        const struct ledger_old_cell *old = &batch->old_cells[i];
        struct row *row = row_write(core, ledger_cell_row(&batch->cells[i]));
        uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);

        row->balance = old->balance;
        row->daily = old->daily;
        row->day = old->day;
        row->flags = old->flags;
        account_write(core, owner)->next_nonce = old->nonce;
    }
}

/* Holds made by the batch go; older ones that have something again wait for expiry again. */
static void undo_holds(struct ledger_core *core, struct ledger_batch *batch)
{
    RON_ASSERT(core->holds_count >= batch->before.holds);
    while (core->holds_count > batch->before.holds) {
        struct hold *hold = &core->holds[core->holds_count - 1];
        struct ledger_id id = account_id(&core->accounts[hold->account]);

        if (hold->heap_at != NONE)
            heap_remove(core, core->holds_count - 1);
        ledger_index_remove(&core->hold_index, id_hash(&id), core->holds_count - 1);
        core->holds_count--;
    }
    for (uint32_t i = 0; i < batch->cells_count; i++) {
        const struct row *row = &core->rows[ledger_cell_row(&batch->cells[i])];
        uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);
        struct ledger_id id = account_id(&core->accounts[owner]);
        uint32_t hold;

        if (account_class(&core->accounts[owner]) != CLASS_HOLD)
            continue;
        hold = hold_find(core, &id);
        if (hold != NONE && core->holds[hold].expires_ms > 0 && core->holds[hold].heap_at == NONE)
            heap_push(core, hold);
    }
}

static void undo_terms(struct ledger_core *core, const struct ledger_old_terms *old)
{
    if (old->has_limits) {
        struct row *row = row_write(core, old->row);

        row->limits = old->row_limits;
        if (row->limits != NONE)
            *limit_write(core, row->limits) = (struct limit){
                .minimum = old->minimum,
                .maximum = old->maximum,
                .credit_line = old->credit_line,
                .daily = old->daily,
                .bits = old->limit_bits,
            };
    }
    if (old->has_frozen)
        account_write(core, old->account)->flags = old->account_flags;
    if (old->has_run) {
        struct run *run = run_write(core, old->run);

        run->next_chunk = old->run_chunk;
        run->ended = old->run_ended;
    }
    if (old->has_stream) {
        struct stream *stream = stream_write(core, old->stream);

        stream->next_seq = old->stream_next;
        stream->batch = old->stream_batch;
        memcpy(stream->head, old->stream_head, sizeof(stream->head));
    }
}

static void undo_tables(struct ledger_core *core, const struct ledger_marks *marks)
{
    RON_ASSERT(core->reversals_count >= marks->reversals);
    RON_ASSERT(core->runs_count >= marks->runs);
    RON_ASSERT(core->streams_count >= marks->streams);
    RON_ASSERT(core->assets_count >= marks->assets);
    RON_ASSERT(core->limits_count >= marks->limits);
    while (core->reversals_count > marks->reversals) {
        const struct reversal *reversal = &core->reversals[--core->reversals_count];

        RON_ASSERT(ron_u128_is_zero(reversal->total));
        ledger_index_remove(&core->reversal_index, id_hash(&reversal->entry),
                            core->reversals_count);
    }
    while (core->runs_count > marks->runs) {
        core->runs_count--;
        ledger_index_remove(&core->run_index, id_hash(&core->runs[core->runs_count].id),
                            core->runs_count);
    }
    while (core->streams_count > marks->streams) {
        core->streams_count--;
        ledger_index_remove(&core->stream_index, id_hash(&core->streams[core->streams_count].id),
                            core->streams_count);
    }
    while (core->assets_count > marks->assets) {
        core->assets_count--;
        ledger_index_remove(&core->asset_index, asset_hash(&core->assets[core->assets_count]),
                            core->assets_count);
    }
    while (core->keys_end > marks->keys_end)
        key_remove_newest(core);
    core->limits_count = marks->limits;
    table_truncate(core, marks);
}

void batch_undo(struct ledger_core *core, struct ledger_batch *batch)
{
    undo_entries(core, batch);
    undo_cells(core, batch);
    undo_terms(core, &batch->old);
    undo_holds(core, batch);
    undo_tables(core, &batch->before);
    core->batch_last = batch->before.batch_last;
    core->seq_last = batch->before.seq_last;
    core->commit_ms_last = batch->before.commit_ms_last;
}

void ledger_core_rebuild(struct ledger_core *core)
{
    const uint64_t committed = atomic_load_explicit(&core->committed_batch, memory_order_relaxed);

    while (core->batch_last > committed) {
        struct ledger_batch *batch = core->pending[core->batch_last % core->capacity.pending_max];

        RON_ASSERT(batch->pending);
        RON_ASSERT(batch->number == core->batch_last);
        batch_undo(core, batch);
        ledger_batch_reset(batch);
    }
    core->frontier = core->committed_frontier;
    RON_ASSERT(core->seq_last == atomic_load_explicit(&core->committed_seq, memory_order_relaxed));
    RON_ASSERT(core->seq_last == core->frontier.leaves_count);
}
