/*
 * core_replay.c - from frames to state: apply(log) = state.
 *
 * A frame is turned back into its command and applied by the same code that made it; entries, names
 * and roots must come out as they stand in the frame. So a log that replays was made by these
 * rules.
 */
#include "base/mem.h"
#include "ledger/core_apply.h"
#include "ledger/core_sheaf.h"

struct ledger_replay {
    struct ledger_core *core;
    struct ledger_batch batch;
    struct ledger_sheaf own; /* for one frame at a time */
};

enum ron_err ledger_replay_new(struct ledger_core *core, struct ledger_replay **ret_replay,
                               struct ron_errinfo *reterr)
{
    struct ledger_replay *replay = ron_mem_alloc(sizeof(*replay));
    enum ron_err err;

    if (replay == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a replay");
    replay->core = core;
    err = ledger_batch_init(&replay->batch, LEDGER_BATCH_ENTRIES_MAX, 4 * RON_BODY_SIZE_MAX,
                            reterr);
    if (err == RON_ERR_OK)
        err = ledger_sheaf_init(&replay->own, reterr);
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
    ledger_sheaf_fini(&replay->own);
    return ron_mem_free(replay);
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
static enum ron_err redo(struct ledger_replay *replay, const struct ledger_ready *ready,
                         struct ron_errinfo *reterr)
{
    const struct ledger_frame *frame = &ready->frame;
    struct name_source names = {
        .names = frame->names, .ids = ready->name_ids, .ids_count = ready->name_ids_count};
    struct ledger_refusal refusal;
    struct ledger_result result;
    enum ron_err err;

    RON_ASSERT(replay->core->replay == NULL);
    replay->core->replay = &names;
    err = ledger_core_apply(replay->core, &ready->command, &replay->batch, &result, &refusal,
                            reterr);
    replay->core->replay = NULL;
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "replay of batch %llu", (unsigned long long)frame->batch);
    if (!result.applied)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu repeats an earlier one",
                        (unsigned long long)frame->batch);
    return RON_ERR_OK;
}

enum ron_err ledger_replay_ready(struct ledger_replay *replay, const struct ledger_ready *ready,
                                 struct ron_errinfo *reterr)
{
    struct ledger_core *core = replay->core;
    const struct ledger_frame *frame = &ready->frame;
    const struct ron_sha256 head = root_before(core);
    enum ron_err err;

    RON_ASSERT(core->batch_last ==
               atomic_load_explicit(&core->committed_batch, memory_order_relaxed));
    err = redo(replay, ready, reterr);
    if (err != RON_ERR_OK)
        return RON_ERR_WAL_CORRUPT;
    if (!is_as_logged(&replay->batch, frame)) {
        ledger_core_rebuild(core);
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu comes out otherwise",
                        (unsigned long long)frame->batch);
    }
    /* The leaves are the frame's, byte for byte: so are their hashes, and the tree. */
    if (ready->frontier.leaves_count != core->frontier.leaves_count + frame->entries_count ||
        memcmp(ready->previous_root.bytes, head.bytes, RON_SHA256_SIZE) != 0 ||
        memcmp(ready->previous_root.bytes, frame->previous_root.bytes, RON_SHA256_SIZE) != 0 ||
        memcmp(ready->root.bytes, frame->root.bytes, RON_SHA256_SIZE) != 0) {
        ledger_core_rebuild(core);
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "batch %llu has another root",
                        (unsigned long long)frame->batch);
    }
    batch_seal(core, &replay->batch, ready->hashes, &ready->frontier, &ready->root);
    ledger_core_commit(core, &replay->batch);
    return RON_ERR_OK;
}

void ledger_replay_prefetch(const struct ledger_replay *replay, const struct ledger_sheaf *sheaf,
                            uint32_t index)
{
    enum { STEPS = 3, AHEAD = 3 }; /* of ledger_core_prefetch; frames from one to the next */

    for (unsigned step = 0; step < STEPS; step++) {
        const uint32_t at = index + AHEAD * (STEPS - step);

        if (at < sheaf->frames_count)
            ledger_core_prefetch(replay->core, &sheaf->frames[at].command, step);
    }
}

enum ron_err ledger_replay_frame(struct ledger_replay *replay, struct ron_slice bytes,
                                 struct ron_errinfo *reterr)
{
    struct ron_merkle_frontier frontier = replay->core->frontier;
    enum ron_err err = ledger_sheaf_empty(&replay->own, bytes.size, reterr);

    if (err == RON_ERR_OK)
        err = ledger_sheaf_prepare(&replay->own, bytes, &frontier, reterr);
    return err == RON_ERR_OK ? ledger_replay_ready(replay, &replay->own.frames[0], reterr) : err;
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

enum ron_err ledger_replay_recall(struct ledger_replay *replay, const struct ledger_frame *frame,
                                  struct ron_errinfo *reterr)
{
    enum { AHEAD = 8 };
    struct ledger_core *core = replay->core;
    const uint8_t *entries = frame->entries.data;
    enum ron_err err;

    RON_ASSERT(core->missing_batch != 0);
    err = check_missing(core, frame, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (core->missing_seq == 0)
        window_begin(core, frame->seq_start);
    for (uint32_t i = 0; i < frame->entries_count; i++) {
        const uint32_t place = (uint32_t)(frame->seq_start + i) & core->ring_mask;
        struct ledger_entry *entry = &core->ring[place];

        if (i + AHEAD < frame->entries_count)
            ledger_recent_prefetch(&core->id_index,
                                   ron_load_le32(entries + (size_t)(i + AHEAD) * RON_ENTRY_SIZE));
        memcpy(entry, entries + (size_t)i * RON_ENTRY_SIZE, RON_ENTRY_SIZE);
        ledger_recent_add(&core->id_index, id_hash(&entry->id), frame->seq_start + i,
                          core->ring_first);
        if (entry->nonce != 0)
            ledger_recent_add(&core->nonce_index, nonce_hash(&entry->debit, entry->nonce),
                              frame->seq_start + i, core->ring_first);
    }
    remember_batch(core, frame);
    core->missing_seq = frame->seq_start + frame->entries_count;
    core->missing_batch = frame->batch == core->batch_last ? 0 : frame->batch + 1;
    return RON_ERR_OK;
}

enum ron_err ledger_replay_remember(struct ledger_replay *replay, struct ron_slice bytes,
                                    struct ron_errinfo *reterr)
{
    struct ledger_frame frame;
    enum ron_err err = ledger_frame_decode(bytes, &frame, reterr);

    if (err != RON_ERR_OK)
        return ledger_replay_fault(err);
    return ledger_replay_recall(replay, &frame, reterr);
}

const struct ledger_batch *ledger_replay_batch(const struct ledger_replay *replay)
{
    return &replay->batch;
}
