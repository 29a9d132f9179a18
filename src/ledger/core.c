/*
 * core.c - birth and death of a core, and the frame around every command.
 */
#include "ledger/core.h"

#include "base/mem.h"
#include "base/rfc3339.h"
#include "ledger/core_apply.h"
#include "ledger/core_shadow.h"

struct ledger_capacity ledger_capacity_of(uint32_t accounts_max)
{
    return (struct ledger_capacity){
        .accounts_max = accounts_max,
        .rows_max = accounts_max,
        .names_size_max = accounts_max * 32 + 4096,
        .assets_max = 64,
        .holds_max = accounts_max,
        .reversals_max = accounts_max,
        .limits_max = accounts_max,
        .runs_max = 1024,
        .streams_max = 1024,
        .entries_window = accounts_max,
        .batches_window = accounts_max,
        .keys_window = accounts_max,
        .pending_max = 1024,
    };
}

/* The largest index of a ring that holds at least count. */
static uint32_t ring_mask(uint64_t count)
{
    uint64_t size = 16;

    while (size < count)
        size *= 2;
    RON_ASSERT(size <= UINT32_C(1) << 30);
    return (uint32_t)(size - 1);
}

static void *take(struct ledger_core *core, uint64_t count, size_t item_size,
                  enum ron_table_kind kind)
{
    core->memory_size += count * item_size;
    return ron_table_alloc(count, item_size, kind);
}

/* Who writes a snapshot walks the tables and looks nothing up. */
static bool take_index(struct ledger_core *core, struct ledger_index *index, uint32_t places_max)
{
    bool taken = ledger_index_init(index, places_max);

    core->memory_size += ledger_index_size(index);
    return taken;
}

static bool take_recent(struct ledger_core *core, struct ledger_recent *recent)
{
    bool taken = ledger_recent_init(recent,
                                    core->capacity.entries_window + LEDGER_BATCH_ENTRIES_MAX);

    core->memory_size += ledger_recent_size(recent);
    return taken;
}

static bool take_tables(struct ledger_core *core)
{
    const struct ledger_capacity *c = &core->capacity;

#define TAKE(which, table, kind)                                                      \
    core->writable[which] = take(core, c->table##_max, sizeof(core->table[0]), kind); \
    core->table = core->writable[which]
    TAKE(SHADOWED_ACCOUNTS, accounts, RON_TABLE_RANDOM);
    TAKE(SHADOWED_ROWS, rows, RON_TABLE_RANDOM);
    core->committed = take(core, c->rows_max, sizeof(core->committed[0]), RON_TABLE_RANDOM);
    TAKE(SHADOWED_LIMITS, limits, RON_TABLE_IN_ORDER);
    TAKE(SHADOWED_REVERSALS, reversals, RON_TABLE_IN_ORDER);
    TAKE(SHADOWED_RUNS, runs, RON_TABLE_IN_ORDER);
    TAKE(SHADOWED_STREAMS, streams, RON_TABLE_IN_ORDER);
#undef TAKE
    core->names = take(core, c->names_size_max, 1, RON_TABLE_IN_ORDER);
    core->assets = take(core, c->assets_max, sizeof(core->assets[0]), RON_TABLE_IN_ORDER);
    core->holds = take(core, c->holds_max, sizeof(core->holds[0]), RON_TABLE_IN_ORDER);
    core->heap = take(core, c->holds_max, sizeof(core->heap[0]), RON_TABLE_IN_ORDER);
    core->pending = take(core, c->pending_max, sizeof(core->pending[0]), RON_TABLE_IN_ORDER);
    return core->accounts != NULL && core->rows != NULL && core->committed != NULL &&
           core->names != NULL && core->limits != NULL && core->assets != NULL &&
           core->holds != NULL && core->heap != NULL && core->reversals != NULL &&
           core->runs != NULL && core->streams != NULL && core->pending != NULL;
}

static bool take_windows(struct ledger_core *core)
{
    const struct ledger_capacity *c = &core->capacity;

    core->ring_mask = ring_mask((uint64_t)c->entries_window + LEDGER_BATCH_ENTRIES_MAX);
    core->keys_mask = ring_mask((uint64_t)c->keys_window + c->pending_max);
    core->batches_mask = ring_mask((uint64_t)c->batches_window + c->pending_max);
    core->ring = take(core, (uint64_t)core->ring_mask + 1, sizeof(core->ring[0]),
                      RON_TABLE_IN_ORDER);
    core->keys = take(core, (uint64_t)core->keys_mask + 1, sizeof(core->keys[0]),
                      RON_TABLE_IN_ORDER);
    core->batches = take(core, (uint64_t)core->batches_mask + 1, sizeof(core->batches[0]),
                         RON_TABLE_IN_ORDER);
    return core->ring != NULL && core->keys != NULL && core->batches != NULL;
}

static bool take_indexes(struct ledger_core *core)
{
    const struct ledger_capacity *c = &core->capacity;

    return take_index(core, &core->account_index, c->accounts_max) &&
           take_index(core, &core->asset_index, c->assets_max) &&
           take_index(core, &core->hold_index, c->holds_max) &&
           take_index(core, &core->reversal_index, c->reversals_max) &&
           take_index(core, &core->run_index, c->runs_max) &&
           take_index(core, &core->stream_index, c->streams_max) &&
           take_recent(core, &core->id_index) && take_recent(core, &core->nonce_index) &&
           take_index(core, &core->key_index, c->keys_window + c->pending_max);
}

enum ron_err ledger_core_new(const struct ledger_capacity *capacity,
                             const struct ledger_archive *archive, struct ledger_core **ret_core,
                             struct ron_errinfo *reterr)
{
    const struct ledger_asset_terms roc = {
        .name = RON_SLICE("roc"),
        .decimals = 6,
        .max_supply = RON_U128_MAX,
    };
    struct ledger_core *core = ron_mem_alloc(sizeof(*core));

    RON_ASSERT(capacity->assets_max > 0);
    RON_ASSERT(capacity->pending_max > 0);
    RON_ASSERT(capacity->rows_max <= LEDGER_ROWS_MAX);
    RON_ASSERT(archive == NULL || (archive->find_entry == NULL) == (archive->find_nonce == NULL));
    if (core == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a ledger core");
    core->magic = CORE_MAGIC;
    core->capacity = *capacity;
    core->memory_size = sizeof(*core);
    window_begin(core, 1);
    if (archive != NULL)
        core->archive = *archive;
    ron_merkle_frontier_init(&core->frontier);
    ron_merkle_frontier_init(&core->committed_frontier);
    if (!take_tables(core) || !take_windows(core) || !take_indexes(core)) {
        (void)ledger_core_free(core);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a ledger core of %u accounts",
                        capacity->accounts_max);
    }
    asset_add(core, &roc, 0);
    *ret_core = core;
    return RON_ERR_OK;
}

struct ledger_core *ledger_core_free(struct ledger_core *core)
{
    if (core == NULL)
        return NULL;
    RON_ASSERT(core->magic == CORE_MAGIC);
    ledger_index_fini(&core->account_index);
    ledger_index_fini(&core->asset_index);
    ledger_index_fini(&core->hold_index);
    ledger_index_fini(&core->reversal_index);
    ledger_index_fini(&core->run_index);
    ledger_index_fini(&core->stream_index);
    ledger_recent_fini(&core->id_index);
    ledger_recent_fini(&core->nonce_index);
    ledger_index_fini(&core->key_index);
    ledger_core_shadow_drop(core);
    for (unsigned i = 0; i < SHADOWED_COUNT; i++)
        (void)ron_table_free(core->writable[i]);
    (void)ron_table_free(core->committed);
    (void)ron_table_free(core->names);
    (void)ron_table_free(core->assets);
    (void)ron_table_free(core->holds);
    (void)ron_table_free(core->heap);
    (void)ron_table_free((void *)core->pending);
    (void)ron_table_free(core->ring);
    (void)ron_table_free(core->keys);
    (void)ron_table_free(core->batches);
    return ron_mem_free(core);
}

static enum ron_err dispatch(struct apply *a, struct ledger_result *ret_result)
{
    switch (a->command->kind) {
    case LEDGER_COMMAND_INGEST:
        return apply_ingest(a, ret_result);
    case LEDGER_COMMAND_ASSET:
        return apply_asset(a, ret_result);
    case LEDGER_COMMAND_LIMITS:
        return apply_limits(a, ret_result);
    case LEDGER_COMMAND_INTENTS:
        return apply_intents(a, ret_result);
    case LEDGER_COMMAND_SLICE:
        return apply_slice(a, ret_result);
    case LEDGER_COMMAND_EXPIRE:
        return apply_expire(a, ret_result);
    case LEDGER_COMMAND_ABANDON:
        return apply_abandon(a, ret_result);
    case LEDGER_COMMAND_OPEN:
        return apply_open(a, ret_result);
    default:
        RON_UNREACHABLE();
    }
}

/* What must hold before anything is looked up. */
static enum ron_err check_frame(struct apply *a)
{
    const struct ledger_command *command = a->command;
    const struct ledger_core *core = a->core;
    const uint64_t committed = atomic_load_explicit(&core->committed_batch, memory_order_acquire);
    uint32_t entries_max = command->ops_count + 2;
    enum ron_err err = ledger_shape_command(command, a->reterr);

    if (err == RON_ERR_OK && command->kind == LEDGER_COMMAND_OPEN)
        err = check_open_shape(a);
    if (err != RON_ERR_OK)
        return err;
    if (command->kind == LEDGER_COMMAND_EXPIRE)
        entries_max = RON_BATCH_ENTRIES_MAX;
    if (command->kind == LEDGER_COMMAND_OPEN)
        entries_max += command->open.count / 3; /* a batch has room for three names an entry */
    if (entries_max > a->batch->entries_max)
        return ron_fail(a->reterr, RON_ERR_TOO_LARGE, "%u entries for a batch of %u", entries_max,
                        a->batch->entries_max);
    if (command->stamp.commit_ms < core->commit_ms_last ||
        command->stamp.commit_ms > RON_TIME_MS_MAX)
        return ron_fail(a->reterr, RON_ERR_MALFORMED, "commit_ms goes back, or too far");
    if (core->batch_last - committed >= core->capacity.pending_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "%u batches wait for their commit",
                        core->capacity.pending_max);
    window_trim(a->core);
    if (core->archive.find_entry != NULL &&
        core->seq_last + 1 - core->ring_first > core->capacity.entries_window) {
        RON_PROBE("ledger: busy because nothing is indexed yet");
        return ron_fail(a->reterr, RON_ERR_BUSY, "%u entries wait for their commit or index",
                        core->capacity.entries_window);
    }
    if (core->archive.find_key != NULL &&
        core->keys_end - core->keys_first >=
            core->capacity.keys_window + core->capacity.pending_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "%u keys wait for their index",
                        core->capacity.keys_window);
    return RON_ERR_OK;
}

/* Without an archive no reply and no key may ever be forgotten. */
static enum ron_err check_reply_room(struct apply *a)
{
    const struct ledger_core *core = a->core;
    const bool has_key = a->command->key.size > 0 || a->batch->key_size > 0;

    if (core->archive.find_reply == NULL && core->batch_last >= core->capacity.batches_window)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u replies are taken",
                        core->capacity.batches_window);
    if (has_key && core->archive.find_key == NULL &&
        core->keys_end - core->keys_first >= core->capacity.keys_window)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u keys are taken",
                        core->capacity.keys_window);
    return RON_ERR_OK;
}

static const struct account *owner_of(const struct ledger_core *core, uint32_t row)
{
    return &core->accounts[atomic_load_explicit(&core->rows[row].account, memory_order_relaxed)];
}

/* The values that the committed view will take over. */
static void finish_cells(struct ledger_core *core, struct ledger_batch *batch)
{
    enum { AHEAD = 16 };

    for (uint32_t i = 0; i < batch->cells_count; i++) {
        struct ledger_cell *cell = &batch->cells[i];
        const uint32_t place = ledger_cell_row(cell);
        const struct row *row = &core->rows[place];

        if (i + 2 * AHEAD < batch->cells_count)
            row_prefetch(core, ledger_cell_row(&cell[2 * AHEAD]));
        if (i + AHEAD < batch->cells_count)
            ron_prefetch(owner_of(core, ledger_cell_row(&cell[AHEAD])));
        cell->balance = row->balance;
        cell->row_flags = ledger_cell_row_flags(place, row->flags);
        cell->nonce = owner_of(core, place)->next_nonce;
        RON_ASSERT((row->flags & ROW_NEGATIVE) == 0 || row->limits != NONE); /* invariant 2 */
    }
}

static bool cells_are_finished(const struct ledger_core *core, const struct ledger_batch *batch)
{
    for (uint32_t i = 0; i < batch->cells_count; i++) {
        const struct ledger_cell *cell = &batch->cells[i];
        const struct row *row = &core->rows[ledger_cell_row(cell)];

        if (ron_u128_compare(cell->balance, row->balance) != 0 ||
            ledger_cell_flags(cell) != row->flags ||
            cell->nonce != owner_of(core, ledger_cell_row(cell))->next_nonce)
            return false;
    }
    return true;
}

static void finish_names(struct ledger_core *core, struct ledger_batch *batch)
{
    batch->names_count = core->accounts_count - batch->before.accounts;
    batch->names_size = 0;
    for (uint32_t i = batch->before.accounts; i < core->accounts_count; i++) {
        struct ron_slice name = account_name(core, &core->accounts[i]);

        batch->names[batch->names_size++] = (uint8_t)name.size;
        memcpy(batch->names + batch->names_size, name.data, name.size);
        batch->names_size += (uint32_t)name.size;
    }
}

/* The batch stands: number it and remember it. */
static void finish(struct apply *a, struct ledger_result *result)
{
    struct ledger_core *core = a->core;
    struct ledger_batch *batch = a->batch;
    struct batch_record *record = &core->batches[(uint32_t)batch->number & core->batches_mask];

    RON_ASSERT(batch->entries_count > 0);
    RON_ASSERT(batch->entries_count == batch->ids_count);
    RON_ASSERT(batch->entries_count <= batch->entries_max);
    RON_ASSERT(batch->number == core->batch_last + 1);
    RON_ASSERT(batch->seq_start == core->seq_last + 1);
    if (a->command->key.size > 0 && batch->key_size == 0) {
        batch->key_size = (uint8_t)a->command->key.size;
        memcpy(batch->key, a->command->key.data, a->command->key.size);
    }
    if (batch->key_size > 0) {
        struct ledger_key key = {
            .id = ledger_key_id(&a->command->stamp, a->command->kind,
                                ron_slice_of(batch->key, batch->key_size)),
            .fingerprint = a->command->fingerprint,
            .batch = batch->number,
        };

        batch->fingerprint = a->command->fingerprint;
        key_add(core, &key);
    }
    batch->body_size = body_encode(a->command, batch->body);
    if (a->cells_open)
        finish_cells(core, batch);
    RON_ASSERT_SLOW(cells_are_finished(core, batch));
    finish_names(core, batch);
    core->batch_last = batch->number;
    core->seq_last += batch->entries_count;
    core->commit_ms_last = batch->stamp.commit_ms;
    record->number = batch->number;
    record->seq_start = batch->seq_start;
    record->commit_ms = batch->stamp.commit_ms;
    record->entries_count = batch->entries_count;
    RON_ASSERT_SLOW(batch_is_conserved(core, batch));
    batch->pending = true;
    core->pending[batch->number % core->capacity.pending_max] = batch;
    result->batch = batch->number;
    result->seq_start = batch->seq_start;
    result->seq_end = core->seq_last;
}

enum ron_err ledger_core_apply(struct ledger_core *core, const struct ledger_command *command,
                               struct ledger_batch *batch, struct ledger_result *ret_result,
                               struct ledger_refusal *ret_refusal, struct ron_errinfo *reterr)
{
    struct ledger_refusal refusal = {.present = 0};
    struct ledger_result result = {.applied = false};
    struct apply a = {
        .core = core,
        .batch = batch,
        .command = command,
        .refusal = &refusal,
        .reterr = reterr,
    };
    enum ron_err err;

    RON_ASSERT(core->magic == CORE_MAGIC);
    RON_ASSERT(!batch->pending);
    RON_ASSERT(core->missing_batch == 0); /* the windows are whole */
    err = check_frame(&a);
    if (err == RON_ERR_OK) {
        core->commands_count++;
        ledger_batch_reset(batch);
        batch->command = command->kind;
        batch->stamp = command->stamp;
        batch->before = marks_of(core);
        batch->number = core->batch_last + 1;
        batch->seq_start = core->seq_last + 1;
        err = dispatch(&a, &result);
        /* What was concluded from a question without an answer is thrown away, refusals too. */
        if (core->archive.failed != NULL &&
            core->archive.failed(core->archive.context, NULL) != RON_ERR_OK) {
            refusal = (struct ledger_refusal){.present = 0};
            err = core->archive.failed(core->archive.context, reterr);
        }
        if (err == RON_ERR_OK && result.applied)
            err = check_reply_room(&a);
        if (err == RON_ERR_OK && result.applied) {
            finish(&a, &result);
        } else {
            batch_undo(core, batch);
            ledger_batch_reset(batch);
        }
    }
    if (err != RON_ERR_OK) {
        *ret_refusal = refusal;
        return err;
    }
    *ret_result = result;
    return RON_ERR_OK;
}
