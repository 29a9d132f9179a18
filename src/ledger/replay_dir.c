/*
 * replay_dir.c - see replay_dir.h.
 *
 * Two walks: the first counts, so that the core of the second has room for everything and forgets
 * nothing, and finds the anchored states and the entries that are reversed later, before the replay
 * passes them. The second is a task's that reads ahead (replay_ahead.h), while the caller applies.
 */
#include "ledger/replay_dir.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "io/log_check.h"
#include "ledger/core_frame.h"
#include "ledger/core_types.h"
#include "ledger/replay_ahead.h"
#include "rt/clock.h"
#include "rt/lock.h"

enum {
    COUNT_MAX = 1 << 28, /* of anything that a core holds */
    COUNT_LEAST = 1024,
    PROGRESS_STEP = 4096,
    PLACES = 256, /* more than there are frames between the two tasks */
};
_Static_assert((int)PLACES > (int)LEDGER_AHEAD_SHEAVES * (int)LEDGER_SHEAF_FRAMES_MAX,
               "a place lives until its frame is replayed");

struct survey {
    struct ledger_survey found;
    uint64_t names_count, names_size;
    struct ron_buf *links; /* of Reverses, 16 bytes each; NULL: nobody asks */
};

static enum ron_err put_log_dir(char ret_path[IO_PATH_MAX + 1], const char *dir,
                                struct ron_errinfo *reterr)
{
    const int size = snprintf(ret_path, IO_PATH_MAX + 1, "%s%slog", dir, dir[0] != '\0' ? "/" : "");

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/log", dir);
    return RON_ERR_OK;
}

/* --- Survey ------------------------------------------------------------------------------------
 */

static void see_entry(struct survey *survey, bool by_ledger, const struct ledger_entry *entry,
                      struct ron_slice ext_bytes)
{
    struct ledger_survey *found = &survey->found;
    struct ledger_state_anchor anchor = {.anchored_at = entry->seq};
    struct ledger_ext ext;

    if (entry->kind == LEDGER_REVERSE && survey->links != NULL)
        ron_buf_put(survey->links, entry->link.bytes, LEDGER_ID_SIZE);
    if (entry->kind != LEDGER_ANCHOR || !by_ledger ||
        ledger_ext_decode(ext_bytes, &ext, NULL) != RON_ERR_OK ||
        !ron_slice_equal(ext.stream, RON_SLICE("state")) ||
        ron_decimal_parse_u64(ext.ref, &anchor.seq, NULL) != RON_ERR_OK)
        return;
    memcpy(anchor.root.bytes, entry->debit.bytes, LEDGER_ID_SIZE);
    memcpy(anchor.root.bytes + LEDGER_ID_SIZE, entry->credit.bytes, LEDGER_ID_SIZE);
    found->anchors[found->anchors_count++ % LEDGER_ANCHORS_CHECKED_MAX] = anchor;
}

static enum ron_err count_frame(void *context, const struct io_frame *frame, uint64_t segment,
                                uint64_t offset, struct ron_errinfo *reterr)
{
    struct survey *survey = context;
    struct ledger_frame batch;
    size_t ext_at = 0;
    bool by_ledger;
    enum ron_err err;

    (void)segment;
    (void)offset;
    if (frame->type != LEDGER_RECORD_BATCH)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "record %llu is of type %u",
                        (unsigned long long)frame->index, frame->type);
    err = ledger_frame_decode(frame->body, &batch, reterr);
    if (err != RON_ERR_OK) {
        (void)ron_wrap(reterr, err, "batch %llu", (unsigned long long)frame->index);
        return RON_ERR_WAL_CORRUPT;
    }
    survey->found.batches_count++;
    survey->found.entries_count += batch.entries_count;
    survey->names_count += batch.names_count;
    survey->names_size += batch.names.size;
    by_ledger = batch.stamp.caller == LEDGER_CALLER_LEDGER; /* who anchors states */
    if (!by_ledger && survey->links == NULL)
        return RON_ERR_OK;
    for (uint32_t i = 0; i < batch.entries_count; i++) {
        const uint16_t ext_size = ron_load_le16(batch.ext_sizes.data + 2 * (size_t)i);
        struct ledger_entry entry;

        memcpy(&entry, batch.entries.data + (size_t)i * RON_ENTRY_SIZE, sizeof(entry));
        see_entry(survey, by_ledger, &entry, ron_slice_of(batch.ext.data + ext_at, ext_size));
        ext_at += ext_size;
    }
    return RON_ERR_OK;
}

static uint32_t room_for(uint64_t count)
{
    return (uint32_t)(count < COUNT_LEAST ? COUNT_LEAST : count);
}

static enum ron_err size_core(struct survey *survey, struct ron_errinfo *reterr)
{
    const uint64_t entries = survey->found.entries_count;
    const uint64_t names = survey->names_count;
    struct ledger_capacity capacity;

    if (entries > COUNT_MAX || names > COUNT_MAX || survey->names_size > COUNT_MAX * 8ull)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%llu entries and %llu names in one log",
                        (unsigned long long)entries, (unsigned long long)names);
    /* An entry touches two rows; holds, reversals and limits are entries or accounts each. */
    capacity = ledger_capacity_of(room_for(names + 64));
    capacity.rows_max = room_for(2 * entries + 64 < COUNT_MAX ? 2 * entries + 64 : COUNT_MAX);
    capacity.names_size_max = (uint32_t)(survey->names_size + 65536);
    capacity.assets_max = 4096;
    capacity.holds_max = capacity.reversals_max = room_for(entries);
    capacity.entries_window = capacity.batches_window = capacity.keys_window = room_for(entries);
    capacity.pending_max = 16;
    survey->found.capacity = capacity;
    return RON_ERR_OK;
}

static enum ron_err survey_dir(struct io_vfs *vfs, const char *dir, struct ron_buf *links,
                               struct ledger_survey *ret_survey,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct survey survey = {.links = links};
    char log_dir[IO_PATH_MAX + 1];
    const struct io_log_check_options options = {
        .vfs = vfs, .dir = log_dir, .visit = count_frame, .context = &survey};
    struct io_log_found found = {0};
    enum ron_err err = put_log_dir(log_dir, dir, reterr);

    rt_assert_no_lock_held();
    if (err == RON_ERR_OK)
        err = io_log_check(&options, &found, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (found.kind != LEDGER_LOG_KIND)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: not the log of a ledger", log_dir);
    if (found.first_index > 1)
        return ron_fail(reterr, RON_ERR_PRUNED,
                        "%s begins with batch %llu: what was before is gone", log_dir,
                        (unsigned long long)found.first_index);
    survey.found.bytes_count = found.bytes_count;
    survey.found.torn_bytes = found.torn_bytes;
    survey.found.last_index = found.last_index;
    err = size_core(&survey, reterr);
    if (err == RON_ERR_OK && links != NULL)
        err = ron_buf_check(links, reterr);
    if (err == RON_ERR_OK)
        *ret_survey = survey.found;
    return err;
}

enum ron_err ledger_survey_dir(struct io_vfs *vfs, const char *dir,
                               struct ledger_survey *ret_survey, struct ron_errinfo *reterr)
{
    return survey_dir(vfs, dir, NULL, ret_survey, reterr);
}

/* --- Replay ------------------------------------------------------------------------------------
 */

/* An entry that is reversed later: its text is kept from when it is passed. */
struct reversed {
    struct ledger_id id;
    uint8_t size; /* 0: not passed yet */
    char text[LEDGER_ID_TEXT_SIZE_MAX];
};

struct replay_dir {
    const struct ledger_replay_dir_options *options;
    struct ledger_replay_dir_report *report;
    struct ledger_core *core;
    struct ledger_replay *replay;
    uint64_t told;
    struct reversed *reversed; /* by id */
    size_t reversed_count;
    char log_dir[IO_PATH_MAX + 1];
    struct io_log_found found; /* by the reader */
    /* Where record n is, at n % PLACES: the reader's, until it has handed the record on. */
    struct {
        uint64_t segment, offset;
    } places[PLACES];
};

/* Whom the reader tells of a record. */
struct listener {
    struct replay_dir *replay;
    ledger_frame_fn *fn;
    void *context;
};

static int compare_reversed(const void *a, const void *b)
{
    const struct reversed *first = a, *second = b;

    return memcmp(first->id.bytes, second->id.bytes, LEDGER_ID_SIZE);
}

static struct reversed *reversed_find(const struct replay_dir *replay, const struct ledger_id *id)
{
    const struct reversed wanted = {.id = *id};

    return replay->reversed_count == 0 ? NULL
                                       : bsearch(&wanted, replay->reversed, replay->reversed_count,
                                                 sizeof(wanted), compare_reversed);
}

/* One that is reversed twice may be there twice: either is found, whenever it is looked for. */
static enum ron_err make_reversed(struct replay_dir *replay, const struct ron_buf *links,
                                  struct ron_errinfo *reterr)
{
    const size_t count = links->size / LEDGER_ID_SIZE;

    if (count == 0)
        return RON_ERR_OK;
    replay->reversed = ron_mem_alloc_array(count, sizeof(replay->reversed[0]));
    if (replay->reversed == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu reversed entries", count);
    for (size_t i = 0; i < count; i++)
        memcpy(replay->reversed[i].id.bytes, links->data + i * LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    replay->reversed_count = count;
    qsort(replay->reversed, count, sizeof(replay->reversed[0]), compare_reversed);
    return RON_ERR_OK;
}

static enum ron_err check_anchors(struct replay_dir *replay, uint64_t seq,
                                  struct ron_errinfo *reterr)
{
    const struct ledger_survey *survey = &replay->report->survey;
    const uint64_t kept = survey->anchors_count < LEDGER_ANCHORS_CHECKED_MAX
                              ? survey->anchors_count
                              : LEDGER_ANCHORS_CHECKED_MAX;

    for (uint64_t i = 0; i < kept; i++) {
        const struct ledger_state_anchor *anchor = &survey->anchors[i];
        struct ron_sha256 root;
        uint64_t rows;
        enum ron_err err;

        if (anchor->seq != seq)
            continue;
        err = ledger_core_state_root(replay->core, &root, &rows, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (memcmp(root.bytes, anchor->root.bytes, RON_SHA256_SIZE) != 0)
            return ron_fail(reterr, RON_ERR_CHAIN_MISMATCH,
                            "entry %llu anchors another state of entry %llu",
                            (unsigned long long)anchor->anchored_at, (unsigned long long)seq);
        replay->report->anchors_checked++;
    }
    return RON_ERR_OK;
}

static struct ron_slice name_of(const struct ledger_core *core, const struct ledger_id *id)
{
    const uint32_t account = account_find(core, id);

    return account == NONE ? (struct ron_slice){NULL, 0}
                           : account_name(core, &core->accounts[account]);
}

static struct ron_slice asset_name_of(const struct ledger_core *core, uint32_t number)
{
    if (number == 0 || number > core->assets_count)
        return (struct ron_slice){NULL, 0};
    return ron_slice_of(core->assets[number - 1].name, core->assets[number - 1].name_size);
}

/* Its own text is kept if it is reversed later. */
static struct ledger_record_names names_of(struct replay_dir *replay,
                                           const struct ledger_record *record)
{
    struct ledger_record_names names = {.asset = asset_name_of(replay->core, record->entry.asset)};
    struct reversed *reversed = reversed_find(replay, &record->entry.id);
    struct ledger_id payee;

    if (reversed != NULL && reversed->size == 0) {
        RON_ASSERT(record->id_text.size <= sizeof(reversed->text));
        memcpy(reversed->text, record->id_text.data, record->id_text.size);
        reversed->size = (uint8_t)record->id_text.size;
    }
    if (ledger_record_payee(record, &payee))
        names.payee = name_of(replay->core, &payee);
    reversed = record->entry.kind == LEDGER_REVERSE ? reversed_find(replay, &record->entry.link)
                                                    : NULL;
    if (reversed != NULL)
        names.ref = ron_slice_of(reversed->text, reversed->size);
    return names;
}

static enum ron_err visit_batch(struct replay_dir *replay, struct ron_errinfo *reterr)
{
    const struct ledger_batch *batch = ledger_replay_batch(replay->replay);
    const uint8_t *text = batch->texts, *ext = batch->ext;
    struct ledger_record record = {
        .tenant = batch->stamp.tenant,
        .caller = batch->stamp.caller,
        .root = batch->root,
        .batch_seq_start = batch->seq_start,
        .batch_seq_end = batch->seq_start + batch->entries_count - 1,
    };
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; i < batch->entries_count && err == RON_ERR_OK; i++) {
        struct ledger_record_names names;
        char digits[LEDGER_ID_DIGITS + 1];

        record.entry = batch->entries[i];
        record.id_text = ledger_id_text_get(text, digits);
        record.ext = ron_slice_of(ext, batch->ext_sizes[i]);
        record.debit_name = name_of(replay->core, &record.entry.debit);
        record.credit_name = name_of(replay->core, &record.entry.credit);
        names = names_of(replay, &record);
        err = replay->options->visit(replay->options->context, &record, &names, reterr);
        text += ledger_id_text_stored(text);
        ext += batch->ext_sizes[i];
    }
    return err;
}

static enum ron_err redo(struct replay_dir *replay, const struct ledger_ready *ready,
                         struct ron_errinfo *reterr)
{
    struct ledger_replay_dir_report *report = replay->report;
    const uint64_t number = ready->frame.batch;
    const struct ledger_batch *batch;
    enum ron_err err = ledger_replay_ready(replay->replay, ready, reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "batch %llu, segment %llu at byte %llu",
                        (unsigned long long)number,
                        (unsigned long long)replay->places[number % PLACES].segment,
                        (unsigned long long)replay->places[number % PLACES].offset);
    batch = ledger_replay_batch(replay->replay);
    report->batches_count++;
    report->entries_count += batch->entries_count;
    report->tree.size = report->entries_count;
    report->tree.root = batch->root;
    err = check_anchors(replay, report->entries_count, reterr);
    if (err == RON_ERR_OK && replay->options->visit != NULL)
        err = visit_batch(replay, reterr);
    if (replay->options->progress != NULL &&
        (report->entries_count >= replay->told + PROGRESS_STEP ||
         report->entries_count == report->survey.entries_count)) {
        replay->told = report->entries_count;
        replay->options->progress(replay->options->context, report->entries_count,
                                  report->survey.entries_count);
    }
    return err;
}

/* On the reader's task, as the next. */
static enum ron_err tell(void *context, const struct io_frame *frame, uint64_t segment,
                         uint64_t offset, struct ron_errinfo *reterr)
{
    struct listener *listener = context;
    struct replay_dir *replay = listener->replay;
    enum ron_err err;

    if (frame->index > replay->report->survey.last_index) /* came after the survey, or torn */
        return RON_ERR_OK;
    replay->places[frame->index % PLACES].segment = segment;
    replay->places[frame->index % PLACES].offset = offset;
    err = listener->fn(listener->context, frame->index, frame->body, reterr);
    if (err != RON_ERR_WAL_CORRUPT)
        return err;
    return ron_wrap(reterr, err, "batch %llu, segment %llu at byte %llu",
                    (unsigned long long)frame->index, (unsigned long long)segment,
                    (unsigned long long)offset);
}

static enum ron_err read_log(void *context, ledger_frame_fn *fn, void *fn_context,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct replay_dir *replay = context;
    struct listener listener = {replay, fn, fn_context};
    const struct io_log_check_options options = {
        .vfs = replay->options->vfs, .dir = replay->log_dir, .visit = tell, .context = &listener};

    return io_log_check(&options, &replay->found, reterr);
}

static enum ron_err redo_all(struct replay_dir *replay, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_merkle_frontier frontier = ledger_core_frontier(replay->core);
    struct ledger_pages pages;
    const struct ledger_ahead_options options = {.owner = "ledger",
                                                 .source = read_log,
                                                 .context = replay,
                                                 .frontier = &frontier,
                                                 .pages = &pages};
    const struct ledger_sheaf *sheaf = NULL;
    struct ledger_ahead *ahead = NULL;
    enum ron_err err;

    ledger_pages_init(&pages, replay->core);
    err = ledger_ahead_start(&options, &ahead, reterr);
    while (err == RON_ERR_OK && (err = ledger_ahead_next(ahead, &sheaf, reterr)) == RON_ERR_OK)
        for (uint32_t i = 0; err == RON_ERR_OK && i < sheaf->frames_count; i++) {
            ledger_replay_prefetch(replay->replay, sheaf, i);
            err = redo(replay, &sheaf->frames[i], reterr);
        }
    ahead = ledger_ahead_free(ahead);
    if (err != RON_ERR_NOT_FOUND)
        return err;
    if (replay->report->batches_count != replay->report->survey.batches_count)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "the log ends at batch %llu: it had %llu",
                        (unsigned long long)replay->report->batches_count,
                        (unsigned long long)replay->report->survey.batches_count);
    return RON_ERR_OK;
}

static enum ron_err run(struct replay_dir *replay, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_replay_dir_report *report = replay->report;
    const char *breach;
    struct ron_buf links;
    uint64_t start_ns;
    enum ron_err err = put_log_dir(replay->log_dir, replay->options->dir, reterr);

    ron_buf_init(&links, RON_ALLOCATION_SIZE_MAX);
    if (err == RON_ERR_OK)
        err = survey_dir(replay->options->vfs, replay->options->dir,
                         replay->options->visit != NULL ? &links : NULL, &report->survey, reterr);
    if (err == RON_ERR_OK)
        err = make_reversed(replay, &links, reterr);
    ron_buf_fini(&links);
    if (err == RON_ERR_OK)
        err = ledger_core_new(&report->survey.capacity, NULL, &replay->core, reterr);
    if (err == RON_ERR_OK)
        err = ledger_replay_new(replay->core, &replay->replay, reterr);
    if (err != RON_ERR_OK)
        return err;
    start_ns = rt_now_ns();
    err = redo_all(replay, reterr);
    report->replay_ns = rt_now_ns() - start_ns;
    if (err != RON_ERR_OK)
        return err;
    breach = ledger_core_check(replay->core);
    if (breach != NULL)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "after batch %llu: invariant %s",
                        (unsigned long long)report->batches_count, breach);
    return ledger_core_state_root(replay->core, &report->state_root, &report->rows_count, reterr);
}

enum ron_err ledger_replay_dir(const struct ledger_replay_dir_options *options,
                               struct ledger_replay_dir_report *ret_report,
                               struct ron_errinfo *reterr)
{
    struct replay_dir replay = {.options = options, .report = ret_report};
    enum ron_err err;

    rt_assert_no_lock_held();
    *ret_report = (struct ledger_replay_dir_report){.tree.root = ron_merkle_empty};
    err = run(&replay, reterr);
    replay.replay = ledger_replay_free(replay.replay);
    replay.core = ledger_core_free(replay.core);
    (void)ron_mem_free(replay.reversed);
    return err;
}
