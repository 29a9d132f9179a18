/*
 * log_open.c - birth and end of a log. See log.h, log_impl.h.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"
#include "rt/registry.h"

void log_path(const struct io_log *log, enum log_file_kind kind, uint64_t number,
              char path[IO_PATH_MAX + 1])
{
    static const char *const prefixes[] = {
        [LOG_FILE_SEGMENT] = "seg-", [LOG_FILE_INDEX] = "idx-", [LOG_FILE_AHEAD] = "ahead-"};

    const char *slash = log->dir[0] != '\0' ? "/" : "";

    if (kind == LOG_FILE_OWNER)
        (void)snprintf(path, IO_PATH_MAX + 1, "%s%sowner", log->dir, slash);
    else
        (void)snprintf(path, IO_PATH_MAX + 1, "%s%s%s%016llx", log->dir, slash, prefixes[kind],
                       (unsigned long long)number);
}

void log_wake_all(struct io_log *log)
{
    rt_cond_broadcast(&log->work_cond);
    rt_cond_broadcast(&log->room_cond);
    rt_cond_broadcast(&log->durable_cond);
    rt_cond_broadcast(&log->ahead_cond);
    rt_cond_broadcast(&log->index_cond);
}

void log_break(struct io_log *log, const struct ron_errinfo *info)
{
    bool first;

    log_lock(log);
    first = !log->broken;
    if (first) {
        log->broken = true;
        log->broken_info = *info;
        log_wake_all(log);
    }
    log_unlock(log);
    io_log_set(&log->metrics, log->metrics.broken, 1);
    if (first && log->options.on_broken != NULL)
        log->options.on_broken(log->options.context, info);
}

enum ron_err log_segments_reserve(struct io_log *log, struct ron_errinfo *reterr)
{
    struct log_segment **table, **old = NULL;
    struct log_segment *spare = ron_mem_alloc(sizeof(*spare));
    uint32_t count, capacity;

    if (spare == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a segment of log %s", log->options.name);
    log_lock(log);
    count = log->segments_count;
    capacity = log->segments_capacity;
    log_unlock(log);
    table = NULL;
    if (count == LOG_SEGMENTS_MAX) {
        ron_mem_free(spare);
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL, "log %s has %d segments: drop some",
                        log->options.name, LOG_SEGMENTS_MAX);
    }
    if (count == capacity) { /* only the caller's task adds segments, drops only make room */
        capacity = capacity * 2 + 16;
        table = ron_mem_alloc_array(capacity, sizeof(struct log_segment *));
        if (table == NULL) {
            ron_mem_free(spare);
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "segments of log %s", log->options.name);
        }
    }
    log_lock(log);
    if (table != NULL) {
        if (log->segments_count > 0)
            memcpy(table, log->segments, log->segments_count * sizeof(struct log_segment *));
        old = log->segments;
        log->segments = table;
        log->segments_capacity = capacity;
    }
    if (log->spare == NULL)
        log->spare = RON_TAKE(spare);
    log_unlock(log);
    ron_mem_free(old);
    ron_mem_free(spare);
    return RON_ERR_OK;
}

enum ron_err log_is_damaged(const struct io_log *log, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "log %s can only be read: %s", log->options.name,
                    log->damage_info.message);
}

static void set_bounds(struct io_log *log)
{
    const struct io_log_options *options = &log->options;
    const uint64_t segment = options->segment_bytes != 0 ? options->segment_bytes
                                                         : IO_LOG_SEGMENT_BYTES;
    const uint64_t ahead = options->ahead_bytes != 0 ? options->ahead_bytes : 16u << 20;
    const uint64_t rate = options->ahead_bytes_per_s != 0 ? options->ahead_bytes_per_s : 768u << 20;
    /* Of a segment with one record: head, frame, commit and seal. */
    const uint64_t record_max = segment - IO_SEGMENT_HEAD_SIZE - IO_FRAME_HEAD_SIZE -
                                IO_FRAME_ALIGN - 2 * IO_COMMIT_SIZE;

    RON_ASSERT(segment >= LOG_SEGMENT_BYTES_MIN);
    RON_ASSERT(segment <= LOG_SEGMENT_BYTES_MAX);
    RON_ASSERT(segment % IO_SEGMENT_HEAD_SIZE == 0);
    log->segment_bytes = segment;
    /* A segment is read after its seal where its keys were not collected. */
    log->cached_bytes = options->cached_bytes;
    if (log->cached_bytes > 0 && log->cached_bytes < segment + 2 * ahead)
        log->cached_bytes = segment + 2 * ahead;
    log->group_bytes = options->group_bytes != 0 ? options->group_bytes : 4u << 20;
    log->early_bytes = options->early_bytes != 0 ? options->early_bytes : LOG_EARLY_BYTES;
    log->record_bytes_max = options->record_bytes_max != 0 ? options->record_bytes_max
                                                           : IO_RECORD_SIZE_MAX;
    RON_ASSERT(log->record_bytes_max <= IO_RECORD_SIZE_MAX);
    if (log->record_bytes_max > record_max)
        log->record_bytes_max = (uint32_t)record_max;
    log->buffer_size = (size_t)io_frame_size(log->record_bytes_max);
    if (log->buffer_size < log->group_bytes)
        log->buffer_size = log->group_bytes;
    log->buffer_size += IO_COMMIT_SIZE;
    /* The largest group fits the zeros, or it would wait for ever. */
    log->ahead_bytes = ahead > log->buffer_size + 2 * IO_COMMIT_SIZE
                           ? ahead
                           : log->buffer_size + 2 * IO_COMMIT_SIZE;
    log->ahead_bytes = log->ahead_bytes < segment ? log->ahead_bytes : segment;
    log->ahead_piece = log->ahead_bytes / 4 < LOG_ZEROS_CHUNK ? log->ahead_bytes / 4
                                                              : LOG_ZEROS_CHUNK;
    log->zeros_size = segment < LOG_ZEROS_CHUNK ? (size_t)segment : LOG_ZEROS_CHUNK;
    rt_bucket_init(&log->bucket, rate < RT_BUCKET_RATE_MAX ? rate : RT_BUCKET_RATE_MAX,
                   log->zeros_size, rt_now_ns());
}

static void free_segment(struct io_log *log, struct log_segment *segment) RON_BLOCKS
{
    struct log_gate *unused = NULL;

    if (segment == NULL)
        return;
    log_lock(log);
    log_gate_leave(segment, &unused);
    log_unlock(log);
    log_gates_free(unused);
    (void)io_index_builder_free(log_collected(log, segment));
    io_index_close(segment->index);
    ron_mem_free(segment);
}

void log_segments_cut(struct io_log *log, uint32_t count)
{
    struct log_segment *segment;
    bool more;

    do {
        segment = NULL;
        log_lock(log);
        if (log->segments_count > count)
            segment = log->segments[--log->segments_count];
        log_unlock(log);
        more = segment != NULL;
        free_segment(log, segment);
    } while (more);
}

/* Its tasks have ended. */
void log_destroy(struct io_log *log)
{
    struct log_segment **segments;
    struct log_segment *spare;
    uint32_t count;

    log_gate_fini(log);
    log_lock(log);
    RON_ASSERT(log->inside_count == 0);
    segments = RON_TAKE(log->segments);
    spare = RON_TAKE(log->spare);
    count = log->segments_count;
    log_room_fini(&log->room);
    log_unlock(log);
    for (uint32_t i = 0; i < count; i++) {
        RON_ASSERT(segments[i]->pins_count == 0);
        free_segment(log, segments[i]);
    }
    free_segment(log, spare);
    ron_mem_free(segments);
    io_file_close(log->file);
    io_file_close(log->early_file);
    io_file_close(log->ahead_file);
    log_builders_fini(log);
    log_owner_close(&log->owner);
    rt_cond_fini(&log->index_cond);
    rt_cond_fini(&log->ahead_cond);
    rt_cond_fini(&log->durable_cond);
    rt_cond_fini(&log->room_cond);
    rt_cond_fini(&log->work_cond);
    rt_lock_fini(&log->lock);
    log_index_work_fini(&log->index_work);
    (void)ron_table_free(log->zeros_memory);
    (void)ron_mem_free(log->pages_memory);
    ron_mem_free(log);
}

/* Zeros, and the writer's two pages, aligned. */
static bool make_pages(struct io_log *log)
{
    log->zeros_memory = ron_table_alloc(io_direct_size(log->zeros_size) + LOG_PAGE, 1,
                                        RON_TABLE_DISK);
    log->pages_memory = ron_mem_alloc((size_t)3 * LOG_PAGE);
    if (log->zeros_memory == NULL || log->pages_memory == NULL)
        return false;
    log->zeros = io_direct_page(log->zeros_memory);
    log->pages = io_direct_page(log->pages_memory);
    return true;
}

static enum ron_err make(const struct io_log_options *options, struct io_log **ret_log,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = ron_mem_alloc(sizeof(*log));
    bool whole;

    if (log == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "log %s", options->name);
    log->options = *options;
    (void)snprintf(log->dir, sizeof(log->dir), "%s", options->dir);
    rt_lock_init(&log->lock, "log", RON_RANK_storage);
    rt_cond_init(&log->work_cond, "log work");
    rt_cond_init(&log->room_cond, "log room");
    rt_cond_init(&log->durable_cond, "log durable");
    rt_cond_init(&log->ahead_cond, "log ahead");
    rt_cond_init(&log->index_cond, "log index");
    log->gate_seed = io_gate_seed_new();
    set_bounds(log);
    io_log_metrics_init(&log->metrics, options->metrics, options->name);
    whole = options->read_only;
    if (!options->read_only) {
        whole = make_pages(log);
        log_lock(log);
        for (unsigned i = 0; i < 2; i++)
            io_heads_start(&log->groups[i].heads);
        log->open = &log->groups[0];
        whole = log_room_init(&log->room, log->buffer_size) && whole;
        log_unlock(log);
    }
    if (!whole) {
        log_destroy(log);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "buffers of log %s", options->name);
    }
    *ret_log = log;
    return RON_ERR_OK;
}

/* A task of the log is asked to stop: the log closes, and what was appended is still written. */
static void wake(void *argument)
{
    struct io_log *log = argument;

    log_lock(log);
    log->closing = true;
    log_wake_all(log);
    log_unlock(log);
}

/* Wait for the end of the tasks that were started. */
static enum ron_err join_tasks(struct io_log *log, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct rt_task **const tasks[] = {&log->writer, &log->ahead, &log->indexer};
    enum ron_err result = RON_ERR_OK;
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < RON_ARRAY_COUNT(tasks); i++) {
        if (*tasks[i] == NULL)
            continue;
        if (tasks[i] != &log->writer)
            rt_task_cancel(*tasks[i]);
        err = rt_task_join(*tasks[i], deadline, &result, reterr);
        if (err == RON_ERR_OK)
            *tasks[i] = NULL;
    }
    return err;
}

static enum ron_err spawn(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    static const struct {
        const char *name;
        rt_task_fn *fn;
        enum rt_restart restart; /* the log needs no index to be true */
    } kinds[IO_LOG_TASKS] = {{"log-ahead", log_ahead_fn, RT_RESTART_NEVER},
                             {"log-index", log_index_fn, RT_RESTART_ON_FAILURE},
                             {"log-writer", log_writer_fn, RT_RESTART_NEVER}};
    struct rt_task **const tasks[IO_LOG_TASKS] = {&log->ahead, &log->indexer, &log->writer};
    enum ron_err err = RON_ERR_OK;

    log_lock(log);
    log->cold_number = log->place_number;
    log->warm_bytes = log->place_zeroed < log->segment_bytes ? log->place_zeroed
                                                             : log->segment_bytes;
    log_unlock(log);
    for (size_t i = 0; err == RON_ERR_OK && i < IO_LOG_TASKS; i++) {
        const struct rt_task_options options = {.kind = kinds[i].name,
                                                .name = kinds[i].name,
                                                .owner = log->options.name,
                                                .fn = kinds[i].fn,
                                                .wake = wake,
                                                .argument = log,
                                                .restart = kinds[i].restart};

        err = rt_task_spawn(log->options.supervisor, &options, tasks[i], reterr);
    }
    if (err != RON_ERR_OK)
        RON_MUST_ZERO(join_tasks(log, RT_DEADLINE_NEVER, NULL)); /* the writer is not among them */
    return err;
}

enum ron_err log_open_idle(const struct io_log_options *options, struct io_log **ret_log,
                           struct io_log_recovery *recovery, struct ron_errinfo *reterr)
{
    struct io_log *log = NULL;
    enum ron_err err;

    *recovery = (struct io_log_recovery){0};
    if (strlen(options->dir) >= LOG_DIR_SIZE)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s is too long for a log", options->dir);
    err = make(options, &log, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = log_recover(log, recovery, reterr);
    if (err != RON_ERR_OK) {
        log_destroy(log);
        return ron_wrap(reterr, err, "log %s", options->name);
    }
    *ret_log = log;
    return RON_ERR_OK;
}

static enum ron_err enter_registry(struct io_log *log, struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = log,
        .kind = RT_KIND_LOG,
        .name = log->options.name,
        .policy = log->options.read_only ? "is only read"
                                         : "answers STORAGE_BUSY when full, ends at a failed sync",
        .owner = log->options.name,
        .capacity = log->group_bytes,
    };

    return rt_registry_add(&entry, reterr);
}

static void tell_recovery(const struct io_log *log, const struct io_log_recovery *recovery)
{
    io_log_count(&log->metrics, IO_LOG_METRIC_TORN, recovery->torn_bytes);
    io_log_count(&log->metrics, IO_LOG_METRIC_SKIPPED, recovery->skipped_count);
    io_log_set(&log->metrics, log->metrics.durable, recovery->last_index);
    io_log_set(&log->metrics, log->metrics.damaged, log->damaged);
    io_log_set(&log->metrics, log->metrics.broken, 0);
}

enum ron_err io_log_open(const struct io_log_options *options, struct io_log **ret_log,
                         struct io_log_recovery *ret_recovery, struct ron_errinfo *reterr)
{
    struct io_log *log = NULL;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(options->read_only || options->supervisor != NULL);
    err = log_open_idle(options, &log, ret_recovery, reterr);
    if (err != RON_ERR_OK)
        return err;
    tell_recovery(log, ret_recovery);
    err = enter_registry(log, reterr);
    if (err == RON_ERR_OK && !log->options.read_only) {
        err = spawn(log, reterr);
        if (err != RON_ERR_OK)
            rt_registry_remove(log);
    }
    if (err != RON_ERR_OK) {
        log_destroy(log);
        return err;
    }
    *ret_log = log;
    return RON_ERR_OK;
}

/* Those who slept in append_until and wait were woken; let them leave. */
static enum ron_err wait_for_callers(struct io_log *log, struct rt_deadline deadline,
                                     struct ron_errinfo *reterr) RON_BLOCKS
{
    bool empty;

    log_lock(log);
    while (log->inside_count > 0 && rt_cond_wait(&log->durable_cond, &log->lock, deadline.at_ns)) {
    }
    empty = log->inside_count == 0;
    log_unlock(log);
    if (!empty)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "log %s is still used", log->options.name);
    return RON_ERR_OK;
}

/* Mark the log as closed behind its last record. */
static enum ron_err mark_closed(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    log_lock(log);
    if (log->broken) {
        err = RON_ERR_IO;
        if (reterr != NULL)
            *reterr = log->broken_info;
    } else if (log->next_index - 1 != rt_atomic_load_u64(&log->durable_index)) {
        err = ron_fail(reterr, RON_ERR_CANCELED, "log %s was stopped before all was written",
                       log->options.name);
    }
    log_unlock(log);
    if (err != RON_ERR_OK)
        return err;
    log->owner.clean = true;
    log->owner.last_index = log->end.state.index;
    return log_owner_write(&log->owner, reterr);
}

enum ron_err io_log_close(struct io_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (!log->options.read_only) {
        wake(log);
        err = join_tasks(log, deadline, reterr);
        if (err == RON_ERR_OK)
            err = wait_for_callers(log, deadline, reterr);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "log %s: a task does not end", log->options.name);
        err = mark_closed(log, reterr);
    }
    rt_registry_remove(log);
    log_destroy(log);
    return err;
}
