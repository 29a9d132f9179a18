/*
 * log_ahead.c - what is done before it is needed: zeros in front of the writer, the next segment's
 * file. See log_impl.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"

enum ron_err log_write_zeros(struct io_log *log, struct io_file *file, uint64_t from, uint64_t to,
                             struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && from < to) {
        const uint64_t left = to - from;
        const struct ron_slice part = {log->zeros,
                                       left < log->zeros_size ? (size_t)left : log->zeros_size};

        err = io_file_write(file, from, &part, 1, reterr);
        from += part.size;
    }
    return err;
}

enum ron_err log_ahead_make(struct io_log *log, uint64_t number, uint64_t size,
                            struct ron_errinfo *reterr)
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    log_path(log, LOG_FILE_AHEAD, number, path);
    log->ahead_file = io_file_close(log->ahead_file);
    err = io_vfs_unlink(log->options.vfs, path, NULL); /* of an attempt that failed */
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND)
        return ron_fail(reterr, err, "cannot remove %s", path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_CREATE, &log->ahead_file, reterr);
    if (err == RON_ERR_OK && log->direct) {
        log->ahead_file = io_file_close(log->ahead_file);
        err = io_vfs_open(log->options.vfs, path, IO_OPEN_DIRECT, &log->ahead_file, reterr);
    }
    if (err == RON_ERR_OK)
        err = log_write_zeros(log, log->ahead_file, 0, size, reterr);
    if (err == RON_ERR_OK)
        err = io_file_sync(log->ahead_file, reterr);
    if (err != RON_ERR_OK) {
        log->ahead_file = io_file_close(log->ahead_file);
        return err;
    }
    log->ahead_number = number;
    log->ahead_size = size;
    return RON_ERR_OK;
}

/* What the task does next. */
struct work {
    enum { WORK_END, WORK_WAIT, WORK_ZEROS } what;
    uint64_t number;   /* of the segment to put zeros into */
    uint64_t from, to; /* from 0: the file is to be made */
    bool published;    /* it has its name */
};

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Zeros come in pieces worth a sync of their own, unless an append asks for them or the file is
 * complete with them: with every group a few more would double the syncs. */
static bool is_worth(const struct io_log *log, uint64_t from, uint64_t to) RON_NEEDS(storage)
{
    return from < to &&
           (log->zeros_wanted || to - from >= log->ahead_piece || to == log->segment_bytes);
}

bool log_ahead_is_wanted(const struct io_log *log)
{
    const uint64_t wanted = log->place_offset + log->ahead_bytes;

    return wanted > log->segment_bytes || is_worth(log, log->place_zeroed, wanted);
}

static struct work next_work(struct io_log *log) RON_NEEDS(storage)
{
    const uint64_t wanted = log->place_offset + log->ahead_bytes;
    uint64_t beyond = wanted > log->segment_bytes ? wanted - log->segment_bytes : 0;
    const uint64_t published = log->segments[log->segments_count - 1]->number;
    struct work work = {.what = WORK_WAIT, .published = true};

    if (log->closing || log->broken)
        return (struct work){.what = WORK_END};
    if (beyond > 0 && log->zeros_wanted) /* its first group may be as large as any */
        beyond = log->ahead_bytes;
    if (is_worth(log, log->place_zeroed, min(wanted, log->segment_bytes))) {
        work = (struct work){.what = WORK_ZEROS,
                             .number = log->place_number,
                             .from = log->place_zeroed,
                             .to = min(wanted, log->segment_bytes),
                             .published = log->place_number == published};
    } else if (beyond > 0 && log->place_number == published &&
               is_worth(log, log->next_zeroed,
                        min(beyond + IO_SEGMENT_HEAD_SIZE, log->segment_bytes))) {
        work = (struct work){.what = WORK_ZEROS,
                             .number = log->place_number + 1,
                             .from = log->next_zeroed,
                             .to = min(beyond + IO_SEGMENT_HEAD_SIZE, log->segment_bytes)};
    }
    if (log->direct) /* whole pages, from where such pages ended */
        work.to = min(io_direct_size(work.to), log->segment_bytes);
    work.to = min(work.to, work.from + log->zeros_size);
    return work;
}

/* Sleep until there is work, it is `until`, or the end. */
static void sleep_until(struct io_log *log, uint64_t until_ns) RON_BLOCKS
{
    log_lock(log);
    while (!log->closing && !log->broken && rt_now_ns() < until_ns) {
        if (!rt_cond_wait(&log->ahead_cond, &log->lock, until_ns))
            break;
    }
    log_unlock(log);
}

/* The handle to write zeros with: of the file it has, of another, or of a new one. */
static enum ron_err open_file(struct io_log *log, const struct work *work,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const enum io_open how = log->direct ? IO_OPEN_DIRECT : IO_OPEN_WRITE;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    if (log->ahead_file != NULL && log->ahead_number == work->number)
        return RON_ERR_OK;
    log->ahead_file = io_file_close(log->ahead_file);
    log->ahead_number = work->number;
    log_path(log, work->published ? LOG_FILE_SEGMENT : LOG_FILE_AHEAD, work->number, path);
    err = io_vfs_open(log->options.vfs, path, how, &log->ahead_file, reterr);
    if (err == RON_ERR_NOT_FOUND && !work->published) { /* the writer has named it meanwhile */
        log_path(log, LOG_FILE_SEGMENT, work->number, path);
        err = io_vfs_open(log->options.vfs, path, how, &log->ahead_file, reterr);
    }
    return err;
}

static enum ron_err add_zeros(struct io_log *log, const struct work *work,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    if (work->from == 0) {
        err = log_segments_reserve(log, reterr);
        return err == RON_ERR_OK ? log_ahead_make(log, work->number, work->to, reterr) : err;
    }
    err = open_file(log, work, reterr);
    if (err == RON_ERR_OK)
        err = log_write_zeros(log, log->ahead_file, work->from, work->to, reterr);
    if (err == RON_ERR_OK) {
        err = io_file_sync(log->ahead_file, reterr);
        if (err == RON_ERR_PERSISTENCE_FULL)
            err = RON_ERR_IO; /* a sync that failed is final, whatever it says */
    }
    return err;
}

static void tell_zeros(struct io_log *log, const struct work *work)
{
    log_lock(log);
    log->disk_full = false;
    log->zeros_wanted = false; /* who still lacks some asks again */
    log->stats.zeroed_bytes += work->to - work->from;
    /* The place may have moved on to the file meanwhile. */
    if (work->number == log->place_number && log->place_zeroed < work->to)
        log->place_zeroed = work->to;
    else if (work->number == log->place_number + 1)
        log->next_zeroed = work->to;
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
    io_log_count(&log->metrics, IO_LOG_METRIC_ZEROED, work->to - work->from);
}

/* As much as was added in front leaves the system's cache far behind: memory that is used again
 * costs less than memory that was never used, on a virtual machine eight times less. */
static void cool(struct io_log *log, uint64_t size) RON_BLOCKS
{
    log->warm_bytes += size;
    while (log->cached_bytes > 0 && log->warm_bytes >= log->cached_bytes + log->zeros_size) {
        const uint64_t piece = min(log->zeros_size, log->segment_bytes - log->cold_offset);
        char path[IO_PATH_MAX + 1];
        struct io_file *file = NULL;

        log_path(log, LOG_FILE_SEGMENT, log->cold_number, path);
        if (io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, NULL) == RON_ERR_OK)
            io_file_uncache(file, log->cold_offset, piece); /* else retention took it */
        (void)io_file_close(file);
        log->warm_bytes -= piece;
        log->cold_offset += piece;
        if (log->cold_offset == log->segment_bytes) {
            log->cold_number++;
            log->cold_offset = 0;
        }
        log_lock(log);
        log->stats.uncached_bytes += piece;
        log_unlock(log);
    }
}

static void tell_full(struct io_log *log) RON_BLOCKS
{
    log->ahead_file = io_file_close(log->ahead_file); /* a write failed: a new handle next time */
    log_lock(log);
    log->disk_full = true;
    rt_cond_broadcast(&log->room_cond); /* those who wait for zeros are answered */
    log_unlock(log);
    sleep_until(log, rt_deadline_after_ms(LOG_FULL_RETRY_MS).at_ns);
}

static enum ron_err do_zeros(struct io_log *log, const struct work *work,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t size = work->to - work->from;
    enum ron_err err;

    RON_ASSERT(size > 0);
    if (!rt_bucket_take(&log->bucket, size, rt_now_ns())) {
        const uint64_t now_ns = rt_now_ns();

        sleep_until(log, now_ns + rt_bucket_wait_ns(&log->bucket, size, now_ns));
        return RON_ERR_OK;
    }
    err = add_zeros(log, work, reterr);
    if (err == RON_ERR_OK) {
        tell_zeros(log, work);
        cool(log, size);
    } else if (err == RON_ERR_PERSISTENCE_FULL || err == RON_ERR_NO_MEMORY) {
        tell_full(log);
    }
    return err == RON_ERR_PERSISTENCE_FULL || err == RON_ERR_NO_MEMORY ? RON_ERR_OK : err;
}

enum ron_err log_ahead_fn(struct rt_task *task, void *argument)
{
    struct io_log *log = argument;
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;
    struct work work = {.what = WORK_WAIT};

    while (err == RON_ERR_OK && work.what != WORK_END) {
        log_lock(log);
        work = next_work(log);
        if (work.what == WORK_WAIT)
            (void)rt_cond_wait(&log->ahead_cond, &log->lock, SH_NEVER);
        log_unlock(log);
        if (work.what == WORK_ZEROS)
            err = do_zeros(log, &work, &info);
        rt_task_beat(task);
    }
    if (err != RON_ERR_OK)
        log_break(log, &info);
    return RON_ERR_OK;
}
