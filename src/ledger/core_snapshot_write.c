/*
 * core_snapshot_write.c - see core_snapshot.h.
 */
#include "base/mem.h"
#include "ledger/core_snapshot.h"
#include "ledger/core_types.h"

struct writer {
    ledger_sink_fn *sink;
    void *context;
    struct ron_errinfo *reterr;
    enum ron_err err; /* first failure of the sink */
    struct ron_b3_ctx hash;
    uint8_t *buffer;
    size_t used;
};

static void flush(struct writer *w)
{
    if (w->err == RON_ERR_OK && w->used > 0) {
        ron_b3_update(&w->hash, w->buffer, w->used);
        w->err = w->sink(w->context, ron_slice_of(w->buffer, w->used), w->reterr);
    }
    w->used = 0;
}

static void put(struct writer *w, const void *data, size_t size)
{
    RON_ASSERT(size <= LEDGER_SCRATCH_BUFFER);
    if (size > LEDGER_SCRATCH_BUFFER - w->used)
        flush(w);
    if (size > 0)
        memcpy(w->buffer + w->used, data, size);
    w->used += size;
}

static void put_u8(struct writer *w, uint8_t value)
{
    put(w, &value, 1);
}

static void put_u32(struct writer *w, uint32_t value)
{
    uint8_t bytes[4];

    ron_store_le32(bytes, value);
    put(w, bytes, sizeof(bytes));
}

static void put_u64(struct writer *w, uint64_t value)
{
    uint8_t bytes[8];

    ron_store_le64(bytes, value);
    put(w, bytes, sizeof(bytes));
}

static void put_u128(struct writer *w, struct ron_u128 value)
{
    uint8_t bytes[16];

    ron_u128_store_le(bytes, value);
    put(w, bytes, sizeof(bytes));
}

/* What is written of the windows: all where only they know it, but for the log. Where an archive
 * says how far it knows, the log gives the rest back (ledger_replay_remember): the bytes then
 * depend on nothing but the commands. */
struct windows {
    uint64_t entries_first;
    uint64_t keys_first, keys_end;
    uint64_t batches_count;
};

static struct windows windows_of(const struct ledger_core *core)
{
    struct windows windows = {core->seq_last + 1, 0, 0, core->batch_last > 0 ? 1 : 0};

    if (core->archive.last_batch != NULL)
        return windows;
    windows = (struct windows){window_first(core), window_keys_first(core), core->keys_end,
                               core->batch_last < core->capacity.batches_window
                                   ? core->batch_last
                                   : core->capacity.batches_window};
    while (windows.batches_count > 0) {
        const uint64_t number = core->batch_last - windows.batches_count + 1;

        if (core->batches[(uint32_t)number & core->batches_mask].number == number)
            break;
        windows.batches_count--; /* lost when a later batch was taken back */
    }
    return windows;
}

static void put_head(struct writer *w, const struct ledger_core *core,
                     const struct windows *windows)
{
    put(w, "RLS1", 4);
    put_u32(w, 2); /* version */
    put_u64(w, core->seq_last);
    put_u64(w, core->batch_last);
    put_u64(w, core->commit_ms_last);
    put_u64(w, windows->entries_first);
    put_u64(w, windows->keys_first);
    put_u64(w, windows->keys_end);
    put_u64(w, windows->batches_count);
    put_u32(w, core->assets_count);
    put_u32(w, core->accounts_count);
    put_u32(w, core->rows_count);
    put_u32(w, core->holds_count);
    put_u32(w, core->reversals_count);
    put_u32(w, core->runs_count);
    put_u32(w, core->streams_count);
    for (unsigned level = 0; level < RON_MERKLE_LEVELS_MAX; level++)
        if ((core->seq_last >> level & 1) != 0)
            put(w, core->committed_frontier.levels[level].bytes, RON_SHA256_SIZE);
}

static void put_accounts(struct writer *w, const struct ledger_core *core)
{
    for (uint32_t i = 1; i < core->assets_count; i++) {
        const struct asset *asset = &core->assets[i];

        put_u64(w, asset->batch);
        put_u128(w, asset->max_supply);
        put_u8(w, (uint8_t)asset->decimals);
        put_u8(w, asset->name_size);
        put(w, asset->name, asset->name_size);
    }
    for (uint32_t i = 0; i < core->accounts_count; i++) {
        const struct account *account = &core->accounts[i];
        struct ron_slice name = account_name(core, account);

        put_u64(w, account->next_nonce);
        put_u8(w, (account->flags & ACCOUNT_FROZEN) != 0);
        put_u8(w, (uint8_t)name.size);
        put(w, name.data, name.size);
    }
}

static void put_row(struct writer *w, const struct ledger_core *core, const struct row *row)
{
    put_u32(w, atomic_load_explicit(&row->account, memory_order_relaxed));
    put_u32(w, atomic_load_explicit(&row->asset, memory_order_relaxed));
    put_u128(w, row->balance);
    put_u128(w, row->daily);
    put_u32(w, row->day);
    put_u8(w, row->flags);
    put_u8(w, row->limits != NONE);
    if (row->limits != NONE) {
        const struct limit *limit = &core->limits[row->limits];

        put_u8(w, limit->bits);
        put_u128(w, limit->minimum);
        put_u128(w, limit->maximum);
        put_u128(w, limit->credit_line);
        put_u128(w, limit->daily);
    }
}

static void put_holds(struct writer *w, const struct ledger_core *core)
{
    for (uint32_t i = 0; i < core->holds_count; i++) {
        const struct hold *hold = &core->holds[i];

        put_u128(w, hold->tenant);
        put(w, hold->entry.bytes, LEDGER_ID_SIZE);
        put_u64(w, hold->expires_ms);
        put_u32(w, hold->account);
        put_u32(w, hold->payer);
        put_u32(w, hold->payee);
        put_u32(w, hold->asset);
        put_u8(w, hold->is_run);
    }
    for (uint32_t i = 0; i < core->reversals_count; i++) {
        put(w, core->reversals[i].entry.bytes, LEDGER_ID_SIZE);
        put_u128(w, core->reversals[i].total);
    }
    for (uint32_t i = 0; i < core->runs_count; i++) {
        put(w, core->runs[i].id.bytes, LEDGER_ID_SIZE);
        put(w, core->runs[i].run_key.bytes, LEDGER_ID_SIZE);
        put(w, core->runs[i].terms.bytes, RON_B3_SIZE);
        put_u32(w, core->runs[i].next_chunk);
        put_u32(w, core->runs[i].hold);
        put_u8(w, core->runs[i].ended);
    }
    for (uint32_t i = 0; i < core->streams_count; i++) {
        put(w, core->streams[i].id.bytes, LEDGER_ID_SIZE);
        put_u64(w, core->streams[i].next_seq);
        put_u64(w, core->streams[i].batch);
        put(w, core->streams[i].head, LEDGER_DIGEST_SIZE);
    }
}

static void put_windows(struct writer *w, const struct ledger_core *core,
                        const struct windows *windows)
{
    for (uint64_t seq = windows->entries_first; seq <= core->seq_last; seq++)
        put(w, &core->ring[(uint32_t)seq & core->ring_mask], RON_ENTRY_SIZE);
    for (uint64_t number = windows->keys_first; number < windows->keys_end; number++) {
        const struct ledger_key *key = &core->keys[(uint32_t)number & core->keys_mask];

        put(w, key->id.bytes, LEDGER_ID_SIZE);
        put(w, key->fingerprint.bytes, RON_B3_SIZE);
        put_u64(w, key->batch);
    }
    for (uint64_t i = 0; i < windows->batches_count; i++) {
        uint64_t number = core->batch_last - windows->batches_count + 1 + i;
        const struct batch_record *record = &core->batches[(uint32_t)number & core->batches_mask];

        RON_ASSERT(record->number == number);
        RON_ASSERT(record->sealed_number == number);
        put_u64(w, record->seq_start);
        put_u64(w, record->commit_ms);
        put_u32(w, record->entries_count);
        put(w, record->root.bytes, RON_SHA256_SIZE);
    }
}

enum ron_err ledger_scratch_write(struct ledger_scratch *scratch, const struct ledger_core *core,
                                  ledger_sink_fn *sink, void *context, struct ron_errinfo *reterr)
{
    const struct windows windows = windows_of(core);
    struct writer w = {.sink = sink,
                       .context = context,
                       .reterr = reterr,
                       .err = RON_ERR_OK,
                       .buffer = scratch->buffer};
    struct ron_b3 hash;

    RON_ASSERT(core->batch_last ==
               atomic_load_explicit(&core->committed_batch, memory_order_relaxed));
    RON_ASSERT(core->missing_batch == 0);
    ron_b3_init(&w.hash);
    put_head(&w, core, &windows);
    put_accounts(&w, core);
    for (uint32_t i = 0; i < core->rows_count; i++)
        put_row(&w, core, &core->rows[i]);
    put_holds(&w, core);
    put_windows(&w, core, &windows);
    flush(&w);
    hash = ron_b3_final(&w.hash);
    put(&w, hash.bytes, RON_B3_SIZE);
    flush(&w);
    return w.err;
}

enum ron_err ledger_snapshot_write(const struct ledger_core *core, ledger_sink_fn *sink,
                                   void *context, struct ron_errinfo *reterr)
{
    struct ledger_scratch scratch = {.buffer = ron_mem_alloc(LEDGER_SCRATCH_BUFFER)};
    enum ron_err err;

    if (scratch.buffer == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a buffer for a snapshot");
    err = ledger_scratch_write(&scratch, core, sink, context, reterr);
    (void)ron_mem_free(scratch.buffer);
    return err;
}
