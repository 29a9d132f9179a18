/*
 * log_read.c - readers, retention, figures. See log.h, log_impl.h.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"

struct io_log_reader {
    struct io_log *log;
    uint64_t next_index;
    uint64_t durable_index; /* known when the buffer was filled */
    uint64_t number;        /* of the segment that is open */
    bool past_cache;        /* it reads much, and once */
    struct io_file *file;   /* NULL: none is open */
    struct log_scan scan;
    void *large; /* memory that a scan came to need, for the scans of later segments; NULL: none */
    size_t large_size;
    struct io_frame last; /* that was told */
    bool again;           /* it is the next */
    uint64_t damaged_at;
};

uint64_t io_log_last_durable(const struct io_log *log)
{
    return rt_atomic_load_u64(&log->durable_index);
}

uint64_t io_log_first_index(const struct io_log *log)
{
    return rt_atomic_load_u64(&log->first_index);
}

struct io_log_stats io_log_get_stats(struct io_log *log)
{
    struct io_log_stats stats;

    log_lock(log);
    stats = log->stats;
    log_unlock(log);
    return stats;
}

/* The segment that holds the record, pinned, and where to begin in it; NULL if none does. */
static struct log_segment *pin_segment(struct io_log *log, uint64_t index, uint64_t *ret_offset)
{
    struct log_segment *found = NULL;
    uint32_t low = 0, high;

    log_lock(log);
    high = log->segments_count;
    while (low < high) { /* the last one that does not start behind it */
        uint32_t middle = low + (high - low) / 2;

        if (log->segments[middle]->first_index <= index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) {
        found = log->segments[low - 1];
        found->pins_count++;
        *ret_offset = log_starts_before(&found->starts, index);
        if (found->index != NULL) {
            const struct io_index_start start = io_index_start_of(found->index, index);

            *ret_offset = start.index <= index ? start.offset8 * UINT64_C(8) : 0;
        }
    }
    log_unlock(log);
    return found;
}

enum ron_err log_open_to_read(const struct io_log *log, const char *path, bool past_cache,
                              struct io_file **ret_file, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_FORBIDDEN;

    if (past_cache)
        err = io_vfs_open(log->options.vfs, path, IO_OPEN_DIRECT, ret_file, reterr);
    if (err == RON_ERR_FORBIDDEN) /* or not ours to write any more: read it as it is */
        err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, ret_file, reterr);
    return err;
}

void log_unpin(struct io_log *log, struct log_segment *segment)
{
    struct io_index *retired = NULL;
    void *filter = NULL;

    log_lock(log);
    RON_ASSERT(segment->pins_count > 0);
    segment->pins_count--;
    if (segment->pins_count == 0) {
        retired = RON_TAKE(segment->retired);
        if (segment->gate != NULL)
            filter = io_index_take_filter(segment->index);
    }
    rt_cond_broadcast(&log->room_cond); /* who drops segments waits there */
    log_unlock(log);
    io_index_close(retired);
    ron_table_free(filter);
}

enum ron_err io_log_reader_new(struct io_log *log, uint64_t first,
                               struct io_log_reader **ret_reader, struct ron_errinfo *reterr)
{
    struct io_log_reader *reader = ron_mem_alloc(sizeof(*reader));

    rt_assert_no_lock_held();
    if (reader == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a reader of log %s", log->options.name);
    reader->log = log;
    reader->next_index = first > 0 ? first : 1;
    *ret_reader = reader;
    return RON_ERR_OK;
}

void io_log_reader_pass_cache(struct io_log_reader *reader)
{
    reader->past_cache = reader->log->direct;
}

static void close_file(struct io_log_reader *reader) RON_BLOCKS
{
    if (reader->file != NULL && reader->large == NULL)
        reader->large = log_scan_take(&reader->scan, &reader->large_size);
    if (reader->file != NULL)
        log_scan_fini(&reader->scan);
    reader->file = io_file_close(reader->file);
}

struct io_log_reader *io_log_reader_free(struct io_log_reader *reader)
{
    if (reader == NULL)
        return NULL;
    close_file(reader);
    (void)ron_table_free(reader->large);
    return ron_mem_free(reader);
}

/* Open the segment of the next record, at the last known start before it. */
static enum ron_err open_segment(struct io_log_reader *reader,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = reader->log;
    uint64_t offset = 0;
    struct log_segment *segment = pin_segment(log, reader->next_index, &offset);
    char path[IO_PATH_MAX + 1];
    struct io_segment_head head;
    enum ron_err err;

    if (segment == NULL)
        return ron_fail(reterr, RON_ERR_PRUNED, "record %llu of log %s was removed",
                        (unsigned long long)reader->next_index, log->options.name);
    log_path(log, LOG_FILE_SEGMENT, segment->number, path);
    err = log_open_to_read(log, path, reader->past_cache, &reader->file, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_head(reader->file, &head, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_init(&reader->scan, reader->file, &head, reterr);
    if (err == RON_ERR_OK) {
        if (reader->large != NULL && io_file_is_direct(reader->file))
            log_scan_lend(&reader->scan, reader->large, reader->large_size);
        reader->number = segment->number;
        if (offset > IO_SEGMENT_HEAD_SIZE)
            log_scan_jump(&reader->scan, offset);
    } else {
        reader->file = io_file_close(reader->file);
    }
    log_unpin(log, segment);
    return err;
}

static enum ron_err skip_damage(struct io_log_reader *reader, const char *why,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct log_scan *scan = &reader->scan;
    uint64_t found = 0;
    enum ron_err err;

    reader->damaged_at = scan->offset;
    if (reader->log->options.damage != IO_LOG_SKIP || reader->log->options.read_only)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s at byte %llu: %s",
                        io_file_path(reader->file), (unsigned long long)scan->offset, why);
    err = log_scan_search(scan, scan->offset + IO_FRAME_ALIGN, reader->next_index - 1, &found,
                          reterr);
    if (err == RON_ERR_OK)
        log_scan_jump(scan, found);
    return err;
}

/* The segment is read to its end: the next one, if there is one. */
static enum ron_err next_segment(struct io_log_reader *reader,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = reader->log;
    uint64_t first_index = 0;

    log_lock(log);
    for (uint32_t i = 0; i < log->segments_count && first_index == 0; i++) {
        if (log->segments[i]->number == reader->number + 1)
            first_index = log->segments[i]->first_index;
    }
    log_unlock(log);
    close_file(reader);
    if (first_index == 0)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "log %s ends before record %llu",
                        log->options.name, (unsigned long long)reader->next_index);
    if (reader->next_index < first_index)
        reader->next_index = first_index; /* the rest of the segment was damaged, and skipped */
    return open_segment(reader, reterr);
}

/* The next frame of the open segment, whatever it is. */
static enum ron_err step(struct io_log_reader *reader, struct io_frame *ret_frame, bool *ret_found,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    enum io_frame_verdict verdict = IO_FRAME_BAD;
    const char *why = "a record is missing";
    enum ron_err err = log_scan_next(&reader->scan, &verdict, ret_frame, &why, reterr);

    *ret_found = false;
    if (err != RON_ERR_OK)
        return err;
    if (verdict != IO_FRAME_VALID) {
        if (reader->scan.offset >= reader->scan.size)
            return next_segment(reader, reterr);
        return skip_damage(reader, why, reterr);
    }
    if (ret_frame->type == IO_FRAME_SEAL)
        return next_segment(reader, reterr);
    *ret_found = ret_frame->type <= IO_FRAME_TYPE_MAX && ret_frame->index >= reader->next_index;
    return RON_ERR_OK;
}

enum ron_err io_log_reader_next(struct io_log_reader *reader, struct io_frame *ret_frame,
                                struct ron_errinfo *reterr)
{
    struct io_log *log = reader->log;
    struct io_frame frame;
    bool found = false;
    uint64_t size = 0;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (reader->again) {
        reader->again = false;
        *ret_frame = reader->last;
        return RON_ERR_OK;
    }
    reader->last.index = 0; /* its bytes may go now */
    if (reader->next_index > reader->durable_index) {
        reader->durable_index = rt_atomic_load_u64(&log->durable_index);
        if (reader->next_index > reader->durable_index)
            return ron_fail(reterr, RON_ERR_NOT_FOUND, "record %llu of log %s is not there yet",
                            (unsigned long long)reader->next_index, log->options.name);
        if (reader->file != NULL) { /* what was behind the end is written now */
            err = io_file_size(reader->file, &size, reterr);
            if (err == RON_ERR_OK)
                log_scan_refresh(&reader->scan, size);
        }
    }
    if (err == RON_ERR_OK && reader->next_index < rt_atomic_load_u64(&log->first_index))
        return ron_fail(reterr, RON_ERR_PRUNED, "record %llu of log %s was removed",
                        (unsigned long long)reader->next_index, log->options.name);
    if (err == RON_ERR_OK && reader->file == NULL)
        err = open_segment(reader, reterr);
    while (err == RON_ERR_OK && !found)
        err = step(reader, &frame, &found, reterr);
    if (err != RON_ERR_OK)
        return err;
    reader->next_index = frame.index + 1;
    reader->last = frame;
    *ret_frame = frame;
    return RON_ERR_OK;
}

void io_log_reader_back(struct io_log_reader *reader)
{
    RON_ASSERT(!reader->again);
    RON_ASSERT(reader->last.index != 0);
    reader->again = true;
}

const char *io_log_reader_damage(const struct io_log_reader *reader, uint64_t *ret_offset)
{
    if (reader->file == NULL)
        return NULL;
    *ret_offset = reader->damaged_at;
    return io_file_path(reader->file);
}

/* Take the oldest segment out of the table, if all of it is before the index and nobody uses it. */
static struct log_segment *take_oldest(struct io_log *log, uint64_t index)
{
    struct log_segment *segment = NULL;
    struct log_gate *unused = NULL;

    log_lock(log);
    if (log->segments_count > 1 && log->segments[0]->sealed &&
        log->segments[0]->last_index < index) {
        segment = log->segments[0]; /* drops are one thread's business: it stays the first */
        while (segment->pins_count > 0)
            (void)rt_cond_wait(&log->room_cond, &log->lock, SH_NEVER);
        log->segments_count--;
        memmove(log->segments, log->segments + 1,
                log->segments_count * sizeof(struct log_segment *));
        rt_atomic_store_u64(&log->first_index, log->segments[0]->first_index);
        log_gate_leave(segment, &unused);
    }
    log_unlock(log);
    log_gates_free(unused);
    return segment;
}

enum ron_err io_log_drop_before(struct io_log *log, uint64_t index, uint64_t *ret_segments,
                                struct ron_errinfo *reterr)
{
    struct io_vfs *vfs = log->options.vfs;
    struct log_segment *segment;
    uint64_t dropped_count = 0;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (log->damaged)
        return log_is_damaged(log, reterr);
    RON_ASSERT(!log->options.read_only);
    while (err == RON_ERR_OK && (segment = take_oldest(log, index)) != NULL) {
        char path[IO_PATH_MAX + 1];

        /* One name at a time, oldest first: no crash leaves a gap. */
        log_path(log, LOG_FILE_SEGMENT, segment->number, path);
        err = io_vfs_unlink(vfs, path, reterr);
        if (err == RON_ERR_OK)
            err = io_vfs_sync_dir(vfs, log->dir, reterr);
        log_path(log, LOG_FILE_INDEX, segment->number, path);
        segment->index = io_index_close(segment->index);
        (void)io_index_builder_free(log_collected(log, segment));
        if (err == RON_ERR_OK) {
            err = io_vfs_unlink(vfs, path, reterr);
            err = err == RON_ERR_NOT_FOUND ? RON_ERR_OK : err;
            dropped_count++;
        }
        ron_mem_free(segment);
    }
    if (err == RON_ERR_OK)
        *ret_segments = dropped_count;
    return err;
}
