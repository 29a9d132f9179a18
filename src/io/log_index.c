/*
 * log_index.c - the index of a sealed segment, from the segment alone; the task that makes them,
 * one of its own because it takes long and zeros cannot wait. See log_impl.h.
 */
#include "io/log_impl.h"

struct builder {
    const struct io_log *log;
    struct io_index_builder *builder;
    uint64_t offset; /* of the frame that is being told */
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
    struct builder *builder = index;
    struct io_index_entry entry = {.offset8 = (uint32_t)(builder->offset / 8), .sub = sub};

    memcpy(entry.key, key, sizeof(entry.key));
    if (builder->err == RON_ERR_OK)
        builder->err = io_index_add(builder->builder, &entry, builder->reterr);
}

static enum ron_err add_frame(void *context, const struct io_frame *frame, uint64_t offset,
                              struct ron_errinfo *reterr)
{
    struct builder *builder = context;
    const struct io_log_options *options = &builder->log->options;

    builder->offset = offset;
    builder->reterr = reterr;
    builder->err = io_index_add_start(builder->builder, frame->index, (uint32_t)(offset / 8),
                                      reterr);
    if (options->keys != NULL)
        options->keys(options->context, frame, emit, builder);
    return builder->err;
}

static enum ron_err build(struct io_log *log, struct io_file *file, const struct io_index_of *of,
                          const char *path, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct builder builder = {.log = log};
    struct io_segment_head head;
    struct log_walk walk;
    uint64_t keys_max = of->sealed_size / 16 + 1024;
    enum ron_err err = log_scan_head(file, &head, reterr);

    if (keys_max > IO_INDEX_KEYS_MAX)
        keys_max = IO_INDEX_KEYS_MAX;
    if (err == RON_ERR_OK)
        err = io_index_builder_new(of, keys_max, &builder.builder, reterr);
    if (err == RON_ERR_OK)
        err = log_walk(file, &head, false, log->options.damage, add_frame, &builder, &walk, reterr);
    if (err == RON_ERR_OK)
        err = io_index_write(builder.builder, log->options.vfs, path, reterr);
    io_index_builder_free(builder.builder);
    return err;
}

enum ron_err log_index_build(struct io_log *log, const struct log_segment *segment,
                             struct io_index **ret_index, struct ron_errinfo *reterr)
{
    const struct io_index_of of = log_index_of(log, segment);
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err;

    log_path(log, LOG_FILE_SEGMENT, segment->number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    log_path(log, LOG_FILE_INDEX, segment->number, path);
    err = build(log, file, &of, path, reterr);
    io_file_close(file);
    if (err != RON_ERR_OK)
        return err;
    return io_index_open(log->options.vfs, path, &of, ret_index, reterr);
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

/* A failed index is tried again later: the log is true without it. */
static void do_index(struct io_log *log, struct log_segment *segment) RON_BLOCKS
{
    struct io_index *index = NULL;
    enum ron_err err = log_index_build(log, segment, &index, NULL);

    log_lock(log);
    segment->index = index;
    segment->pins_count--;
    log->index_retry.at_ns = err == RON_ERR_OK
                                 ? 0
                                 : rt_deadline_after_ms(LOG_FULL_RETRY_MS * UINT64_C(40)).at_ns;
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
}

/* A sealed segment without index that may be tried now, pinned; NULL: look again. Sleeps while
 * there is none. */
static struct log_segment *next_segment(struct io_log *log) RON_NEEDS(storage)
{
    struct log_segment *segment = unindexed(log);

    if (segment == NULL || rt_now_ns() < log->index_retry.at_ns) {
        (void)rt_cond_wait(&log->index_cond, &log->lock,
                           segment == NULL ? SH_NEVER : log->index_retry.at_ns);
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

        log_lock(log);
        is_over = log->closing || log->broken;
        if (!is_over)
            segment = next_segment(log);
        log_unlock(log);
        if (segment != NULL)
            do_index(log, segment);
        rt_task_beat(task);
    }
    return RON_ERR_OK;
}
