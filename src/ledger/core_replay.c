/*
 * core_replay.c - from frames to state: apply(log) = state.
 *
 * A frame is turned back into its command and applied by the same code that made it; entries, names
 * and roots must come out as they stand in the frame. So a log that replays was made by these
 * rules.
 */
#include "base/mem.h"
#include "base/rfc3339.h"
#include "ledger/core_apply.h"
#include "ledger/core_frame.h"

struct ledger_replay {
    struct ledger_core *core;
    struct ledger_batch batch;
    struct ledger_op *ops;
    struct ron_slice *names; /* of `open` */
};

enum ron_err ledger_replay_new(struct ledger_core *core, struct ledger_replay **ret_replay,
                               struct ron_errinfo *reterr)
{
    struct ledger_replay *replay = ron_mem_alloc(sizeof(*replay));
    enum ron_err err;

    if (replay == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a replay");
    replay->core = core;
    replay->ops = ron_mem_alloc_array(LEDGER_BATCH_ENTRIES_MAX, sizeof(replay->ops[0]));
    replay->names = ron_mem_alloc_array(RON_BATCH_ENTRIES_MAX, sizeof(replay->names[0]));
    err = replay->ops == NULL || replay->names == NULL
              ? ron_fail(reterr, RON_ERR_NO_MEMORY, "a replay")
              : ledger_batch_init(&replay->batch, LEDGER_BATCH_ENTRIES_MAX, 4 * RON_BODY_SIZE_MAX,
                                  reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_replay_free(replay);
        return err;
    }
    *ret_replay = replay;
    return RON_ERR_OK;
}

struct ledger_replay *ledger_replay_free(struct ledger_replay *replay)
{
    if (replay == NULL)
        return NULL;
    ledger_batch_fini(&replay->batch);
    replay->ops = ron_mem_free(replay->ops);
    replay->names = ron_mem_free(replay->names);
    return ron_mem_free(replay);
}

/* The op that makes this leaf. */
static void op_of_leaf(const struct ledger_entry *entry, const struct ledger_ext *ext,
                       struct ron_slice id_text, struct ledger_op *ret_op)
{
    *ret_op = (struct ledger_op){
        .id = entry->id,
        .debit = entry->debit,
        .credit = entry->credit,
        .other = entry->kind == LEDGER_HOLD ? ext->payee : entry->link,
        .amount = entry->amount,
        .nonce = entry->nonce,
        .expires_ms = ext->expires_ms,
        .asset = entry->asset,
        .kind = entry->kind,
        .has_to = entry->kind == LEDGER_CAPTURE,
        .sha256 = (entry->flags & LEDGER_FLAG_SHA256) != 0,
        .id_text = id_text,
        .memo = ext->memo,
        .meta = ext->meta,
        .stream = ext->stream,
        .ref = ext->ref,
    };
    if (entry->kind != LEDGER_ANCHOR)
        ret_op->stream = (struct ron_slice){NULL, 0};
}

/* Could the command have handed this entry in? What the shape functions promise the core. */
static bool is_entry_of(enum ledger_command_kind command, const struct ledger_entry *entry,
                        const struct ledger_ext *ext)
{
    const unsigned kind = entry->kind;
    const bool may_nonce = kind == LEDGER_TRANSFER || kind == LEDGER_BURN || kind == LEDGER_HOLD ||
                           kind == LEDGER_DEBIT;

    if (kind == LEDGER_ASSET || (entry->nonce != 0 && !may_nonce))
        return false;
    if (command == LEDGER_COMMAND_INTENTS &&
        (kind != LEDGER_CAPTURE || ext->memo.data != NULL || ext->meta.data != NULL))
        return false;
    if (kind == LEDGER_ANCHOR)
        return ron_u128_is_zero(entry->amount) && ledger_is_account(ext->stream) &&
               (ext->ref.size == 0 || ledger_is_account(ext->ref));
    if ((entry->flags & LEDGER_FLAG_SHA256) != 0 || ext->expires_ms > RON_TIME_MS_MAX)
        return false;
    return entry->asset != 0 && !ron_u128_is_zero(entry->amount) &&
           !ledger_id_equal(&entry->debit, &entry->credit) &&
           ext->has_terms == (kind == LEDGER_HOLD);
}

/* All entries from first on as ops. The leaves are known to be valid; ids must be those of their
 * texts. */
static enum ron_err make_ops(struct ledger_replay *replay, const struct ledger_frame *frame,
                             uint32_t first, uint32_t *ret_count, struct ron_errinfo *reterr)
{
    const uint8_t *text = frame->texts.data;
    const uint8_t *ext_at = frame->ext.data;
    uint32_t count = 0;

    for (uint32_t i = 0; i < frame->entries_count; i++) {
        size_t ext_size = ron_load_le16(frame->ext_sizes.data + (size_t)2 * i);
        struct ron_slice id_text = ron_slice_of(text + 1, text[0]);
        struct ledger_id id = ledger_entry_id(frame->stamp.tenant, id_text);
        struct ledger_entry entry;
        struct ledger_ext ext;

        memcpy(&entry, frame->entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        if (ledger_ext_decode(ron_slice_of(ext_at, ext_size), &ext, NULL) != RON_ERR_OK)
            RON_UNREACHABLE();
        if (!ledger_id_equal(&id, &entry.id))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %u: id and text differ", i);
        if (i >= first && (!ledger_is_id(id_text) || !is_entry_of(frame->command, &entry, &ext)))
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "entry %u: not of its command", i);
        if (i >= first)
            op_of_leaf(&entry, &ext, id_text, &replay->ops[count++]);
        ext_at += ext_size;
        text += (size_t)1 + text[0];
    }
    *ret_count = count;
    return RON_ERR_OK;
}

/* The names that `open` made known are those of the frame. */
static void make_names(struct ledger_replay *replay, const struct ledger_frame *frame,
                       struct ledger_open_terms *terms)
{
    const uint8_t *at = frame->names.data;

    terms->names = replay->names;
    terms->count = frame->names_count;
    for (uint32_t i = 0; i < frame->names_count && i < RON_BATCH_ENTRIES_MAX; i++) {
        replay->names[i] = ron_slice_of(at + 1, at[0]);
        at += (size_t)1 + at[0];
    }
}

static enum ron_err make_command(struct ledger_replay *replay, const struct ledger_frame *frame,
                                 struct ledger_command *command, struct ron_errinfo *reterr)
{
    enum ron_err err;

    *command = (struct ledger_command){
        .kind = frame->command,
        .stamp = frame->stamp,
        .key = frame->command == LEDGER_COMMAND_INGEST ? frame->key : (struct ron_slice){NULL, 0},
        .fingerprint = frame->fingerprint,
        .ops = replay->ops,
    };
    err = body_decode(frame->body, command, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (frame->command == LEDGER_COMMAND_INGEST)
        err = make_ops(replay, frame, 0, &command->ops_count, reterr);
    if (frame->command == LEDGER_COMMAND_INTENTS)
        err = make_ops(replay, frame, command->run.chunk == 0 ? 2 : 0, &command->ops_count, reterr);
    if (frame->command == LEDGER_COMMAND_OPEN)
        make_names(replay, frame, &command->open);
    return err;
}

static bool same(const void *made, size_t size, struct ron_slice logged)
{
    return size == logged.size && (size == 0 || memcmp(made, logged.data, size) == 0);
}

/* Everything but the root, which sealing will show. */
static bool is_as_logged(const struct ledger_batch *batch, const struct ledger_frame *frame)
{
    return batch->number == frame->batch && batch->seq_start == frame->seq_start &&
           same(batch->entries, batch->entries_count * sizeof(batch->entries[0]), frame->entries) &&
           same(batch->ext, batch->ext_size, frame->ext) &&
           same(batch->texts, batch->texts_size, frame->texts) &&
           same(batch->names, batch->names_size, frame->names) &&
           same(batch->key, batch->key_size, frame->key) &&
           same(batch->body, batch->body_size, frame->body);
}

/* Apply the command as the frame says; on success the batch is pending. */
static enum ron_err redo(struct ledger_replay *replay, const struct ledger_frame *frame,
                         const struct ledger_command *command, struct ron_errinfo *reterr)
{
    struct name_source names = {.names = frame->names};
    struct ledger_refusal refusal;
    struct ledger_result result;
    enum ron_err err;

    RON_ASSERT(replay->core->replay == NULL);
    replay->core->replay = &names;
    err = ledger_core_apply(replay->core, command, &replay->batch, &result, &refusal, reterr);
    replay->core->replay = NULL;
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "replay of batch %llu", (unsigned long long)frame->batch);
    if (!result.applied)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu repeats an earlier one",
                        (unsigned long long)frame->batch);
    return RON_ERR_OK;
}

enum ron_err ledger_replay_frame(struct ledger_replay *replay, struct ron_slice bytes,
                                 struct ron_errinfo *reterr)
{
    struct ledger_core *core = replay->core;
    struct ledger_command command;
    struct ledger_frame frame;
    enum ron_err err;

    RON_ASSERT(core->batch_last ==
               atomic_load_explicit(&core->committed_batch, memory_order_relaxed));
    err = ledger_frame_decode(bytes, &frame, reterr);
    if (err == RON_ERR_OK)
        err = make_command(replay, &frame, &command, reterr);
    if (err == RON_ERR_OK)
        err = redo(replay, &frame, &command, reterr);
    if (err != RON_ERR_OK)
        return RON_ERR_WAL_CORRUPT;
    if (!is_as_logged(&replay->batch, &frame)) {
        ledger_core_rebuild(core);
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu comes out otherwise",
                        (unsigned long long)frame.batch);
    }
    ledger_core_seal(core, &replay->batch);
    if (memcmp(replay->batch.previous_root.bytes, frame.previous_root.bytes, RON_SHA256_SIZE) !=
            0 ||
        memcmp(replay->batch.root.bytes, frame.root.bytes, RON_SHA256_SIZE) != 0) {
        ledger_core_rebuild(core);
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu has another root",
                        (unsigned long long)frame.batch);
    }
    ledger_core_commit(core, &replay->batch);
    return RON_ERR_OK;
}

uint64_t ledger_core_missing(const struct ledger_core *core)
{
    return core->missing_batch;
}

/* Is it the batch that is wanted next, and does it fit the snapshot's head? */
static enum ron_err check_missing(const struct ledger_core *core, const struct ledger_frame *frame,
                                  struct ron_errinfo *reterr)
{
    const uint64_t seq_end = frame->seq_start + frame->entries_count - 1;
    const bool is_last = frame->batch == core->batch_last;
    const struct ron_sha256 head = ron_merkle_frontier_root(&core->frontier);

    if (frame->batch != core->missing_batch ||
        (core->missing_seq != 0 && frame->seq_start != core->missing_seq) ||
        seq_end > core->seq_last || is_last != (seq_end == core->seq_last) ||
        (is_last && memcmp(frame->root.bytes, head.bytes, RON_SHA256_SIZE) != 0))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "batch %llu: the snapshot is not of this log, or batch %llu is missing",
                        (unsigned long long)frame->batch, (unsigned long long)core->missing_batch);
    if (core->seq_last + 1 - (core->missing_seq != 0 ? core->ring_first : frame->seq_start) >
        (uint64_t)core->capacity.entries_window + LEDGER_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a window of %u entries for those from %llu on",
                        core->capacity.entries_window, (unsigned long long)frame->seq_start);
    if (core->keys_end - core->keys_first >=
        (uint64_t)core->capacity.keys_window + core->capacity.pending_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a window of %u keys is full",
                        core->capacity.keys_window);
    return RON_ERR_OK;
}

static void remember_batch(struct ledger_core *core, const struct ledger_frame *frame)
{
    struct batch_record *record = &core->batches[(uint32_t)frame->batch & core->batches_mask];

    *record = (struct batch_record){.number = frame->batch,
                                    .seq_start = frame->seq_start,
                                    .commit_ms = frame->stamp.commit_ms,
                                    .entries_count = frame->entries_count,
                                    .sealed_number = frame->batch,
                                    .root = frame->root};
    if (frame->has_key)
        key_add(core, &(struct ledger_key){ledger_key_id(&frame->stamp, frame->command, frame->key),
                                           frame->fingerprint, frame->batch});
}

enum ron_err ledger_replay_remember(struct ledger_replay *replay, struct ron_slice bytes,
                                    struct ron_errinfo *reterr)
{
    struct ledger_core *core = replay->core;
    struct ledger_frame frame;
    enum ron_err err = ledger_frame_decode(bytes, &frame, reterr);

    RON_ASSERT(core->missing_batch != 0);
    if (err != RON_ERR_OK)
        return RON_ERR_WAL_CORRUPT;
    err = check_missing(core, &frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (core->missing_seq == 0)
        core->ring_first = frame.seq_start;
    for (uint32_t i = 0; i < frame.entries_count; i++) {
        const uint32_t place = (uint32_t)(frame.seq_start + i) & core->ring_mask;
        struct ledger_entry *entry = &core->ring[place];

        memcpy(entry, frame.entries.data + (size_t)i * RON_ENTRY_SIZE, RON_ENTRY_SIZE);
        ledger_index_add(&core->id_index, id_hash(&entry->id), place);
        if (entry->nonce != 0)
            ledger_index_add(&core->nonce_index, nonce_hash(&entry->debit, entry->nonce), place);
    }
    remember_batch(core, &frame);
    core->missing_seq = frame.seq_start + frame.entries_count;
    core->missing_batch = frame.batch == core->batch_last ? 0 : frame.batch + 1;
    return RON_ERR_OK;
}

const struct ledger_batch *ledger_replay_batch(const struct ledger_replay *replay)
{
    return &replay->batch;
}
