/*
 * log_index.c - the index of a sealed segment, from what it has alone; the task that makes them,
 * one of its own because it takes long and zeros cannot wait. See log_impl.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"

/* Keys of a frame on their way into a builder. */
struct telling {
    struct io_index_builder *builder;
    uint64_t offset; /* of the frame */
    enum ron_err err;
    struct ron_errinfo *reterr;
};

struct io_index_of log_index_of(const struct io_log *log, const struct log_segment *segment)
{
    struct io_index_of of = {.segment = segment->number,
                             .first_index = segment->first_index,
                             .last_index = segment->last_index,
                             .sealed_size = segment->sealed_size};

    memcpy(of.log_id, log->log_id, sizeof(of.log_id));
    memcpy(of.last_link, segment->last_link.bytes, sizeof(of.last_link));
    return of;
}

static void emit(void *index, const uint8_t key[16], uint32_t sub)
{
    struct telling *telling = index;
    struct io_index_entry entry = {.offset8 = (uint32_t)(telling->offset / 8), .sub = sub};

    memcpy(entry.key, key, sizeof(entry.key));
    if (telling->err == RON_ERR_OK)
        telling->err = io_index_add(telling->builder, &entry, telling->reterr);
}

enum ron_err log_index_add(const struct io_log *log, struct io_index_builder *builder,
                           const struct io_frame *frame, uint64_t offset,
                           struct ron_errinfo *reterr)
{
    const struct io_log_options *options = &log->options;
    struct telling telling = {.builder = builder, .offset = offset, .reterr = reterr};

    telling.err = io_index_add_start(builder, frame->index, (uint32_t)(offset / 8), reterr);
    if (options->keys != NULL)
        options->keys(options->context, frame, emit, &telling);
    return telling.err;
}

/* A segment that is read. */
struct reading {
    const struct io_log *log;
    struct io_index_builder *builder;
};

static enum ron_err add_frame(void *context, const struct io_frame *frame, uint64_t offset,
                              struct ron_errinfo *reterr)
{
    const struct reading *reading = context;

    return log_index_add(reading->log, reading->builder, frame, offset, reterr);
}

/* What was collected of a segment can also be read of it. */
uint64_t log_index_keys_max(const struct io_log *log, uint64_t sealed_size)
{
    const uint64_t bytes = sealed_size > log->segment_bytes ? sealed_size : log->segment_bytes;
    const uint64_t most = bytes / 16 + 1024;

    return most < IO_INDEX_KEYS_MAX ? most : IO_INDEX_KEYS_MAX;
}

/* A builder for this segment: one that is kept, or a new one. */
static enum ron_err make_ready(struct io_log *log, struct io_index_builder **builder,
                               const struct io_index_of *of, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t keys_max = log_index_keys_max(log, of->sealed_size);
    enum ron_err err;

    if (*builder == NULL)
        *builder = log_builder_take(log);
    if (*builder != NULL) {
        io_index_builder_reset(*builder, of, keys_max);
        return RON_ERR_OK;
    }
    err = io_index_builder_new(of, keys_max, builder, reterr);
    if (err == RON_ERR_OK && log->direct)
        io_index_builder_pass_cache(*builder);
    return err;
}

/* A segment read past the cache is read in large pieces: on a busy machine each wait for the disk
 * is followed by one for a processor. Without memory for that it takes longer. */
static void lend(struct log_index_work *work)
{
    enum { READ_SIZE = 4 << 20 };

    if (!io_file_is_direct(work->file))
        return;
    if (work->pages == NULL)
        work->pages = ron_table_alloc(READ_SIZE, 1, RON_TABLE_DISK);
    if (work->pages != NULL)
        log_scan_lend(&work->scan, work->pages, READ_SIZE);
}

static enum ron_err read_keys(struct io_log *log, struct log_index_work *work,
                              const struct io_index_of *of, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct reading reading = {.log = log};
    struct io_segment_head head;
    struct log_walk walk;
    enum ron_err err = log_scan_head(work->file, &head, reterr);

    if (err == RON_ERR_OK)
        err = make_ready(log, &work->builder, of, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_init(&work->scan, work->file, &head, reterr);
    if (err != RON_ERR_OK)
        return err;
    lend(work);
    reading.builder = work->builder;
    return log_walk_on(&work->scan, false, log->options.damage, add_frame, &reading, &walk, reterr);
}

static enum ron_err write_and_open(struct io_log *log, const struct io_index_of *of,
                                   struct log_index_work *work, struct io_index **ret_index,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    log_path(log, LOG_FILE_INDEX, of->segment, path);
    err = io_index_write(work->builder, log->options.vfs, path, reterr);
    if (err != RON_ERR_OK)
        return err;
    return io_index_open(log->options.vfs, path, of, ret_index, reterr);
}

enum ron_err log_index_build(struct io_log *log, const struct log_segment *segment,
                             struct log_index_work *work, struct io_index **ret_index,
                             struct ron_errinfo *reterr)
{
    const struct io_index_of of = log_index_of(log, segment);
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    RON_ASSERT(work->file == NULL);
    log_path(log, LOG_FILE_SEGMENT, segment->number, path);
    err = log_open_to_read(log, path, log->direct, &work->file, reterr);
    if (err == RON_ERR_OK)
        err = read_keys(log, work, &of, reterr);
    log_index_rest(work);
    if (err != RON_ERR_OK)
        return err;
    return write_and_open(log, &of, work, ret_index, reterr);
}

/* The same of one whose keys the builder has. */
static enum ron_err build_collected(struct io_log *log, const struct log_segment *segment,
                                    struct log_index_work *work,
                                    struct io_index **ret_index) RON_BLOCKS
{
    const struct io_index_of of = log_index_of(log, segment);

    io_index_builder_bind(work->builder, &of);
    return write_and_open(log, &of, work, ret_index, NULL);
}

void log_index_rest(struct log_index_work *work)
{
    log_scan_fini(&work->scan);
    work->file = io_file_close(work->file);
}

void log_index_work_fini(struct log_index_work *work)
{
    log_index_rest(work);
    work->builder = io_index_builder_free(work->builder);
    work->pages = ron_table_free(work->pages);
}

/* --- The task ----------------------------------------------------------------------------------
 */

static struct log_segment *unindexed(const struct io_log *log) RON_NEEDS(storage)
{
    for (uint32_t i = 0; i < log->segments_count; i++) {
        if (log->segments[i]->sealed && log->segments[i]->index == NULL)
            return log->segments[i];
    }
    return NULL;
}

struct building {
    struct io_log *log;
    struct log_segment *segment;
    struct io_index *index; /* NULL: it failed, or panicked */
    struct log_gate *gate;  /* that has its keys; NULL: none yet */
    enum ron_err err;
};

/* A failed index is tried again later: the log is true without it. After a panic too, by whoever
 * the supervisor starts then. */
static void end_index(void *argument) RON_BLOCKS
{
    const struct building *building = argument;
    struct io_log *log = building->log;

    log_index_rest(&log->index_work);
    log_builder_give(log, RON_TAKE(log->index_work.builder));
    log_lock(log);
    building->segment->index = building->index;
    building->segment->gate = building->gate;
    building->segment->pins_count--;
    log->index_retry.at_ns = building->err == RON_ERR_OK
                                 ? 0
                                 : rt_deadline_after_ms(LOG_FULL_RETRY_MS * UINT64_C(40)).at_ns;
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
}

static void do_index(struct io_log *log, struct log_segment *segment) RON_BLOCKS
{
    struct building building = {.log = log, .segment = segment};
    struct log_index_work *work = &log->index_work;
    struct rt_cleanup cleanup;

    rt_cleanup_push(&cleanup, end_index, &building);
    work->builder = log_collected(log, segment);
    building.err = work->builder != NULL
                       ? build_collected(log, segment, work, &building.index)
                       : log_index_build(log, segment, work, &building.index, NULL);
    if (building.err == RON_ERR_OK)
        building.gate = log_gate_join(log, building.index, work->builder);
    rt_cleanup_pop(&cleanup, true);
}

/* A sealed segment without index that may be tried now, pinned. NULL: do a step for the gates if
 * *ret_gates, and look again. Sleeps while there is nothing to do. */
static struct log_segment *next_segment(struct io_log *log, bool *ret_gates) RON_NEEDS(storage)
{
    struct log_segment *segment = unindexed(log);
    uint64_t until_ns = SH_NEVER;

    if (segment == NULL || rt_now_ns() < log->index_retry.at_ns) {
        *ret_gates = log_gate_is_due(log, &until_ns);
        if (segment != NULL && log->index_retry.at_ns < until_ns)
            until_ns = log->index_retry.at_ns;
        if (!*ret_gates)
            (void)rt_cond_wait(&log->index_cond, &log->lock, until_ns);
        return NULL;
    }
    segment->pins_count++;
    return segment;
}

enum ron_err log_index_fn(struct rt_task *task, void *argument)
{
    struct io_log *log = argument;
    bool is_over = false;

    while (!is_over) {
        struct log_segment *segment = NULL;
        bool gates = false;

        log_lock(log);
        is_over = log->closing || log->broken;
        if (!is_over)
            segment = next_segment(log, &gates);
        log_unlock(log);
        if (segment != NULL)
            do_index(log, segment);
        else if (gates)
            log_gate_step(log);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}
