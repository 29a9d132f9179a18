/*
 * engine_file.c - frames in a durable log. See engine.h.
 *
 * Record n of the log is the frame of batch n. The log's tasks live under a supervisor of the
 * engine's own, because they outlive those of the service: the log is closed after the last batch.
 * Readers come from any thread and may be under way when the log is closed: they are counted.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/log.h"
#include "ledger/archive.h"
#include "ledger/core_frame.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/supervisor.h"

#define FILE_MAGIC 0xf11ee471u

/* Left by who read in order, for who goes on where it ended: to find the place again, and to check
 * everything from the last known start, costs more than a few records. One for who follows the end
 * of the log, the others in turn. */
enum { TAIL_END, TAIL_OTHERS, TAILS = 4 };
struct tail {
    struct io_log_reader *reader; /* NULL: none */
    uint64_t next;
};

struct file_engine {
    struct ledger_engine head;
    uint32_t magic;
    struct io_log *log; /* NULL: closed */
    struct rt_supervisor *supervisor;
    struct ron_errinfo damage;           /* err OK: none; else the log is open up to there */
    struct rt_atomic_u64 closed_durable; /* once it is closed */
    struct rt_lock lock;
    struct rt_cond idle;
    bool closing RON_GUARDED_BY(storage);
    uint32_t readers_count RON_GUARDED_BY(storage);
    struct tail tails[TAILS] RON_GUARDED_BY(storage);
    unsigned tails_turn RON_GUARDED_BY(storage);
};

static void engine_lock(struct file_engine *file) RON_LOCKS(storage)
{
    rt_lock_take(&file->lock);
}
static void engine_unlock(struct file_engine *file) RON_UNLOCKS(storage)
{
    rt_lock_drop(&file->lock);
}

static struct file_engine *file_of(struct ledger_engine *engine)
{
    struct file_engine *file = (struct file_engine *)engine;

    RON_ASSERT(file->magic == FILE_MAGIC);
    return file;
}

/* The log, kept open until reader_end; NULL when it is closed or cannot be read. */
static struct io_log *reader_begin(struct file_engine *file)
{
    struct io_log *log = NULL;

    engine_lock(file);
    if (!file->closing && file->log != NULL) {
        file->readers_count++;
        log = file->log;
    }
    engine_unlock(file);
    return log;
}

static void reader_end(struct file_engine *file)
{
    engine_lock(file);
    file->readers_count--;
    if (file->readers_count == 0)
        rt_cond_broadcast(&file->idle);
    engine_unlock(file);
}

static void note_place(struct file_engine *file, const struct io_log_reader *reader)
{
    struct ledger_damage_place *place = &file->head.damage;
    const char *path = io_log_reader_damage(reader, &place->offset);

    if (path != NULL)
        (void)snprintf(place->file, sizeof(place->file), "%s", path);
}

static enum ron_err file_recover(struct ledger_engine *engine, uint64_t first, ledger_frame_fn *fn,
                                 void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    enum ron_err err;

    engine->clean = false;
    err = io_log_reader_new(file->log, first, &reader, reterr);
    while (err == RON_ERR_OK) {
        err = io_log_reader_next(reader, &frame, reterr);
        if (err == RON_ERR_WAL_CORRUPT) /* in a sealed segment: opening does not read those */
            note_place(file, reader);
        if (err != RON_ERR_OK)
            break;
        err = frame.type == LEDGER_RECORD_BATCH
                  ? fn(context, frame.index, frame.body, reterr)
                  : ron_fail(reterr, RON_ERR_WAL_CORRUPT, "record %llu is of type %u",
                             (unsigned long long)frame.index, frame.type);
    }
    (void)io_log_reader_free(reader);
    if (err != RON_ERR_NOT_FOUND)
        return err;
    if (file->damage.err != RON_ERR_OK && reterr != NULL) /* the end, but not the log's */
        *reterr = file->damage;
    return file->damage.err;
}

static enum ron_err file_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                size_t parts_count, struct rt_deadline deadline,
                                uint64_t *ret_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);

    RON_ASSERT(file->log != NULL);
    return io_log_append_until(file->log, LEDGER_RECORD_BATCH, parts, parts_count, deadline,
                               ret_number, reterr);
}

static enum ron_err file_append_many(struct ledger_engine *engine, const struct ron_slice *frames,
                                     size_t frames_count, struct rt_deadline deadline,
                                     size_t *ret_count, uint64_t *ret_number,
                                     struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);

    RON_ASSERT(file->log != NULL);
    return io_log_append_many(file->log, LEDGER_RECORD_BATCH, frames, frames_count, deadline,
                              ret_count, ret_number, reterr);
}

static enum ron_err file_wait(struct ledger_engine *engine, uint64_t number,
                              struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_log_wait(file_of(engine)->log, number, deadline, reterr);
}

static enum ron_err file_wait_nudged(struct ledger_engine *engine, uint64_t number, uint32_t seen,
                                     struct rt_deadline deadline,
                                     struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_log_wait_nudged(file_of(engine)->log, number, seen, deadline, reterr);
}

static uint32_t file_nudges(struct ledger_engine *engine)
{
    return io_log_nudges(file_of(engine)->log);
}

static void file_nudge(struct ledger_engine *engine)
{
    io_log_nudge(file_of(engine)->log);
}

static uint64_t file_durable(struct ledger_engine *engine)
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);
    uint64_t durable = rt_atomic_load_u64(&file->closed_durable);

    if (log != NULL) {
        durable = io_log_last_durable(log);
        reader_end(file);
    }
    return durable;
}

static enum ron_err file_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    enum ron_err err;

    if (log == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is closed");
    err = io_log_reader_new(log, number, &reader, reterr);
    if (err == RON_ERR_OK)
        err = io_log_reader_next(reader, &frame, reterr);
    if (err == RON_ERR_OK)
        err = ron_buf_append(buf, frame.body.data, frame.body.size, reterr);
    (void)io_log_reader_free(reader);
    reader_end(file);
    return err;
}

/* The reader that stands before the record, if it was left here. */
static struct io_log_reader *take_tail(struct file_engine *file, uint64_t next)
{
    struct io_log_reader *reader = NULL;

    engine_lock(file);
    for (unsigned i = 0; i < TAILS && reader == NULL; i++)
        if (file->tails[i].next == next)
            reader = RON_TAKE(file->tails[i].reader);
    engine_unlock(file);
    return reader;
}

/* Gives back the one that was there before, to be freed. */
static struct io_log_reader *leave_tail(struct file_engine *file, struct io_log_reader *reader,
                                        uint64_t next, bool at_end)
{
    struct io_log_reader *before;
    struct tail *tail = NULL;

    engine_lock(file);
    for (unsigned i = TAIL_OTHERS; !at_end && tail == NULL && i < TAILS; i++)
        if (file->tails[i].reader == NULL) /* whoever comes back often takes no other's place */
            tail = &file->tails[i];
    if (tail == NULL)
        tail = &file->tails[at_end ? TAIL_END : TAIL_OTHERS + file->tails_turn];
    if (!at_end)
        file->tails_turn = (file->tails_turn + 1) % (TAILS - TAIL_OTHERS);
    before = tail->reader;
    *tail = (struct tail){reader, next};
    engine_unlock(file);
    return before;
}

static void free_tails(struct file_engine *file) RON_BLOCKS
{
    for (unsigned i = 0; i < TAILS; i++) {
        struct io_log_reader *reader;

        engine_lock(file);
        reader = RON_TAKE(file->tails[i].reader);
        engine_unlock(file);
        (void)io_log_reader_free(reader);
    }
}

/* Those that are still in the log's memory, from *first on; what is left is to be read. */
static enum ron_err read_recent(struct io_log *log, uint64_t *first, uint64_t last,
                                ledger_frame_fn *fn, void *context,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    struct io_log_recent recent;
    struct io_frame frame;

    while (err == RON_ERR_OK && *first <= last && io_log_recent_open(log, *first, &recent)) {
        while (err == RON_ERR_OK && *first <= last && io_log_recent_next(&recent, &frame)) {
            err = fn(context, *first, frame.body, reterr);
            if (err == RON_ERR_OK)
                (*first)++;
        }
        io_log_recent_close(&recent);
    }
    return err;
}

static enum ron_err file_read_each(struct ledger_engine *engine, uint64_t first, uint64_t last,
                                   ledger_frame_fn *fn, void *context,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);
    const bool many = first < last;
    struct io_log_reader *reader;
    struct io_frame frame;
    enum ron_err err, told = RON_ERR_OK;

    if (log == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is closed");
    err = read_recent(log, &first, last, fn, context, reterr);
    if (err != RON_ERR_OK || first > last) {
        reader_end(file);
        return err;
    }
    reader = take_tail(file, first);
    if (reader == NULL) {
        err = io_log_reader_new(log, first, &reader, reterr);
        if (err == RON_ERR_OK && many)
            io_log_reader_pass_cache(reader);
    }
    while (err == RON_ERR_OK && told == RON_ERR_OK && first <= last) {
        err = io_log_reader_next(reader, &frame, reterr);
        if (err != RON_ERR_OK)
            break;
        told = fn(context, first, frame.body, reterr);
        if (told == RON_ERR_OK)
            first++;
        else
            io_log_reader_back(reader); /* who has no room for it now comes back */
    }
    if (err == RON_ERR_OK) {
        const bool at_end = first > io_log_last_durable(log);

        if (many || at_end || told != RON_ERR_OK) /* nobody goes on behind a single one */
            reader = leave_tail(file, reader, first, at_end);
    }
    (void)io_log_reader_free(reader);
    reader_end(file);
    return err == RON_ERR_OK ? told : err;
}

struct search {
    ledger_place_fn *fn;
    void *context;
};

static enum ron_err found(void *context, const struct io_log_place *place, bool *ret_enough,
                          struct ron_errinfo *reterr)
{
    const struct search *search = context;

    return search->fn(search->context, place->index, place->sub, ret_enough, reterr);
}

static enum ron_err file_find(struct ledger_engine *engine, const uint8_t key[16],
                              uint64_t number_max, ledger_place_fn *fn, void *context,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);
    struct search search = {fn, context};
    enum ron_err err;

    if (log == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is closed");
    err = io_log_find_each(log, key, number_max, found, &search, reterr);
    reader_end(file);
    return err;
}

static enum ron_err file_may_have(struct ledger_engine *engine, const struct io_log_keys *keys,
                                  uint64_t number_max, uint64_t *ret_bits,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);

    if (log == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the log is closed");
    io_log_may_have(log, keys, number_max, ret_bits);
    reader_end(file);
    return RON_ERR_OK;
}

static uint64_t file_indexed(struct ledger_engine *engine)
{
    struct file_engine *file = file_of(engine);
    struct io_log *log = reader_begin(file);
    uint64_t indexed = 0;

    if (log != NULL) {
        indexed = io_log_last_indexed(log);
        reader_end(file);
    }
    return indexed;
}

/* No new readers; those under way finish first. False when they did not in time. */
static bool wait_for_readers(struct file_engine *file, struct rt_deadline deadline) RON_BLOCKS
{
    bool idle;

    rt_assert_no_lock_held();
    engine_lock(file);
    file->closing = true;
    while (file->readers_count > 0 && rt_cond_wait(&file->idle, &file->lock, deadline.at_ns))
        ;
    idle = file->readers_count == 0;
    engine_unlock(file);
    return idle;
}

static enum ron_err file_close(struct ledger_engine *engine, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct file_engine *file = file_of(engine);
    uint64_t durable = file_durable(engine);
    enum ron_err err;

    if (file->log == NULL)
        return RON_ERR_OK;
    if (!wait_for_readers(file, deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "readers of the log do not end");
    free_tails(file);
    rt_atomic_store_u64(&file->closed_durable, durable);
    err = io_log_close(file->log, deadline, reterr);
    if (err == RON_ERR_TIMEOUT)
        return err; /* it stays as it is until the process ends */
    file->log = NULL;
    engine->clean = err == RON_ERR_OK;
    return err;
}

static const struct ledger_engine_ops file_ops = {
    .name = "file",
    .recover = file_recover,
    .append = file_append,
    .append_many = file_append_many,
    .wait = file_wait,
    .wait_nudged = file_wait_nudged,
    .nudges = file_nudges,
    .nudge = file_nudge,
    .durable = file_durable,
    .read = file_read,
    .read_each = file_read_each,
    .close = file_close,
    .find = file_find,
    .may_have = file_may_have,
    .indexed = file_indexed,
};

/* The log tells its index what a sealed segment holds. */
static void emit_keys(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                      void *index)
{
    (void)context;
    if (frame->type == LEDGER_RECORD_BATCH)
        ledger_archive_keys(frame->body, emit, index);
}

/* The log says what it is about when it is asked for more than it has. */
static void note_damage(struct file_engine *file, const struct io_log_recovery *recovery) RON_BLOCKS
{
    struct ledger_damage_place *place = &file->head.damage;

    if (io_log_wait(file->log, recovery->last_index + 1, RT_DEADLINE_NEVER, &file->damage) !=
        RON_ERR_WAL_CORRUPT)
        (void)ron_fail(&file->damage, RON_ERR_WAL_CORRUPT, "%s at byte %llu", recovery->damage_file,
                       (unsigned long long)recovery->damage_offset);
    (void)snprintf(place->file, sizeof(place->file), "%s", recovery->damage_file);
    place->offset = recovery->damage_offset;
}

static enum ron_err open_log(struct file_engine *file,
                             const struct ledger_engine_file_options *options,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_log_options log_options = {
        .vfs = options->vfs,
        .dir = options->dir,
        .name = "ledger",
        .kind = LEDGER_LOG_KIND,
        .damage = IO_LOG_UP_TO_DAMAGE, /* without damage as strict */
        .segment_bytes = options->segment_bytes,
        .ahead_bytes = options->ahead_bytes,
        .cached_bytes = options->cached_bytes,
        .group_bytes = options->group_bytes,
        .record_bytes_max = options->record_bytes_max,
        .linger_us = options->linger_us,
        .direct = options->direct,
        .supervisor = file->supervisor,
        .metrics = options->metrics,
        .keys = emit_keys,
    };
    struct io_log_recovery recovery = {0};
    enum ron_err err = io_log_open(&log_options, &file->log, &recovery, reterr);
    const bool damaged = err == RON_ERR_OK && recovery.damage_file[0] != '\0';

    if (err == RON_ERR_OK && recovery.torn_bytes > 0)
        RON_PROBE("ledger: a torn tail is dropped");
    file->head.clean = err == RON_ERR_OK && !damaged &&
                       (recovery.clean || recovery.last_index == 0);
    file->head.unindexed_bytes = recovery.open_bytes;
    if (damaged)
        note_damage(file, &recovery);
    return err;
}

enum ron_err ledger_engine_file_open(const struct ledger_engine_file_options *options,
                                     struct ledger_engine **ret_engine, struct ron_errinfo *reterr)
{
    const struct rt_supervisor_options supervisor_options = {
        .name = "ledger log", .owner = "ledger", .tasks_max = IO_LOG_TASKS};
    struct file_engine *file = ron_mem_alloc(sizeof(*file));
    enum ron_err err;

    rt_assert_no_lock_held();
    if (file == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a file engine");
    file->head.ops = &file_ops;
    file->magic = FILE_MAGIC;
    rt_lock_init(&file->lock, "ledger log", RON_RANK_storage);
    rt_cond_init(&file->idle, "ledger log");
    err = rt_supervisor_new(&supervisor_options, &file->supervisor, reterr);
    if (err == RON_ERR_OK)
        err = open_log(file, options, reterr);
    if (err != RON_ERR_OK) {
        (void)ledger_engine_file_free(&file->head);
        return err;
    }
    *ret_engine = &file->head;
    return RON_ERR_OK;
}

struct ledger_engine *ledger_engine_file_free(struct ledger_engine *engine)
{
    struct file_engine *file;

    rt_assert_no_lock_held();
    if (engine == NULL)
        return NULL;
    file = file_of(engine);
    /* Nobody closed it: it failed, or does not replay, which the next start finds out again. */
    if (file->log != NULL)
        (void)!file_close(engine, RT_DEADLINE_NEVER, NULL);
    if (file->supervisor != NULL)
        (void)!rt_supervisor_stop(file->supervisor, RT_DEADLINE_NEVER, NULL);
    file->supervisor = rt_supervisor_free(file->supervisor);
    rt_cond_fini(&file->idle);
    rt_lock_fini(&file->lock);
    file->magic = ~FILE_MAGIC;
    return ron_mem_free(file);
}
