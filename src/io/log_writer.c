/*
 * log_writer.c - the task that makes groups durable. See log.h, log_impl.h, log_append.c.
 *
 * A group is ended only after the one before it was synced (log_format.h needs that to tell a torn
 * tail from damage). While it is still being filled, what is ready of it is written early, in whole
 * pages (log_early.c); its end, with the link, and the sync come when it is closed.
 */
#include "base/assert.h"
#include "io/log_impl.h"

static bool is_due(const struct io_log *log, uint64_t now_ns) RON_NEEDS(storage)
{
    const struct log_group *group = log->open;

    if (group->records_count == 0 || log->filling)
        return false;
    return group->full || log->closing || log->waiters_count > 0 ||
           now_ns >= group->opened_ns + log->options.linger_us * UINT64_C(1000);
}

static void close_group(struct io_log *log) RON_NEEDS(storage)
{
    struct log_group *group = log->open;

    log->writing = group;
    log->open = &log->groups[group == &log->groups[0] ? 1 : 0];
    if (group->in_next) {
        log->place_number++;
        log->place_zeroed = log->next_zeroed;
        log->next_zeroed = 0;
    }
    log->place_offset = group->offset + group->size + IO_COMMIT_SIZE;
    log_room_close(log, group);
    rt_cond_broadcast(&log->room_cond);
    if (log_ahead_is_wanted(log))
        rt_cond_signal(&log->ahead_cond);
}

/* Sleep until the open group may be due. */
static void wait_for_group(struct io_log *log, uint64_t linger_ns) RON_NEEDS(storage)
{
    const bool timed = log->open->records_count > 0 && !log->filling;

    (void)rt_cond_wait(&log->work_cond, &log->lock,
                       timed ? log->open->opened_ns + linger_ns : SH_NEVER);
}

/* The group to write, closed; NULL: end. */
static struct log_group *next_group(struct io_log *log, struct rt_task *task) RON_BLOCKS
{
    const uint64_t linger_ns = log->options.linger_us * UINT64_C(1000);
    struct log_group *group = NULL;

    log_lock(log);
    while (!log->broken && !rt_task_aborted(task)) {
        if (is_due(log, linger_ns > 0 ? rt_now_ns() : UINT64_MAX)) {
            group = log->open;
            close_group(log);
            break;
        }
        if (log->open->records_count == 0 && log->closing && !log->filling)
            break;
        wait_for_group(log, linger_ns);
    }
    log_unlock(log);
    return group;
}

static enum ron_err write_and_sync(struct io_file *file, uint64_t offset, const uint8_t *bytes,
                                   size_t size, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_slice part = {bytes, size};
    enum ron_err err = io_file_write(file, offset, &part, 1, reterr);

    return err == RON_ERR_OK ? io_file_sync(file, reterr) : err;
}

/* What ends at `offset` + `size` - (where `offset` lies in its page) lies at `pages`, from the
 * start of that page on: write it, and zeros to the end of its last page, which are there already.
 */
static enum ron_err write_pages(struct io_log *log, uint64_t offset, uint8_t *pages, size_t size,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const size_t padded = (size_t)io_direct_size(size);

    memset(pages + size, 0, padded - size);
    return write_and_sync(log->file, offset - offset % LOG_PAGE, pages, padded, reterr);
}

/* The group where it lies, with the end of the one before it in its first page. No page that was
 * written is read again: what is written of the last one is kept. */
static enum ron_err write_direct(struct io_log *log, const struct log_group *group, size_t size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    const size_t phase = (size_t)(group->offset % LOG_PAGE);
    uint8_t *pages = group->bytes - phase;
    enum ron_err err;

    memcpy(pages, log->pages, phase);
    err = write_pages(log, group->offset, pages, phase + size, reterr);
    memcpy(log->pages, pages + ((phase + size) & ~(size_t)(LOG_PAGE - 1)),
           (phase + size) % LOG_PAGE);
    return err;
}

enum ron_err log_seal_segment(struct io_log *log, struct ron_errinfo *reterr)
{
    const struct io_frame seal = {.index = log->end.state.index,
                                  .group = log->end.state.index + 1,
                                  .epoch = log->epoch,
                                  .type = IO_FRAME_SEAL};
    uint8_t bytes[IO_COMMIT_SIZE];
    struct io_heads none;
    enum ron_err err;

    io_heads_start(&none);
    io_group_end(&seal, log->salt, &none, &log->end.link, bytes);
    if (log->direct) {
        const size_t phase = (size_t)(log->end.offset % LOG_PAGE);

        memcpy(log->pages + phase, bytes, IO_COMMIT_SIZE);
        err = write_pages(log, log->end.offset, log->pages, phase + IO_COMMIT_SIZE, reterr);
    } else {
        err = write_and_sync(log->file, log->end.offset, bytes, IO_COMMIT_SIZE, reterr);
    }
    log->end.offset += IO_COMMIT_SIZE;
    return err;
}

static void add_published(struct io_log *log, const struct io_segment_head *head) RON_NEEDS(storage)
{
    struct log_segment *segment = RON_TAKE(log->spare);

    RON_ASSERT(segment != NULL);
    RON_ASSERT(log->segments_count < log->segments_capacity);
    if (log->segments_count > 0) {
        struct log_segment *before = log->segments[log->segments_count - 1];

        before->sealed = true;
        before->last_index = head->first_index - 1;
        before->last_link = head->link;
        before->sealed_size = head->before_size;
        log_collect_end(log, before);
    }
    segment->number = head->number;
    segment->first_index = head->first_index;
    segment->link = head->link;
    log->segments[log->segments_count++] = segment;
    rt_cond_signal(&log->ahead_cond);
    rt_cond_signal(&log->index_cond);
}

enum ron_err log_publish_segment(struct io_log *log, const struct io_segment_head *head,
                                 struct ron_errinfo *reterr)
{
    struct io_vfs *vfs = log->options.vfs;
    char ahead_path[IO_PATH_MAX + 1], path[IO_PATH_MAX + 1];
    uint8_t bytes[IO_SEGMENT_HEAD_SIZE];
    struct io_file *file = NULL;
    enum ron_err err;

    io_segment_head_encode(head, bytes);
    log_path(log, LOG_FILE_AHEAD, head->number, ahead_path);
    log_path(log, LOG_FILE_SEGMENT, head->number, path);
    err = io_vfs_open(vfs, ahead_path, IO_OPEN_WRITE, &file, reterr);
    if (err == RON_ERR_OK)
        err = write_and_sync(file, 0, bytes, sizeof(bytes), reterr);
    file = io_file_close(file);
    if (err == RON_ERR_OK)
        err = io_vfs_rename(vfs, ahead_path, path, reterr);
    if (err == RON_ERR_OK) {
        err = io_vfs_sync_dir(vfs, log->dir, reterr);
        if (err == RON_ERR_PERSISTENCE_FULL)
            err = RON_ERR_IO; /* a sync that failed is final, whatever it says */
    }
    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, path, log->direct ? IO_OPEN_DIRECT : IO_OPEN_WRITE, &file, reterr);
    if (err != RON_ERR_OK)
        return err; /* an open that finds no room goes on with the file before */
    (void)io_file_close(log->file);
    log->file = file;
    log->file_number = head->number;
    log->end.offset = IO_SEGMENT_HEAD_SIZE;
    log->end.sealed = false;
    log_lock(log);
    add_published(log, head);
    log_unlock(log);
    return RON_ERR_OK;
}

static enum ron_err switch_segment(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_segment_head head = {.kind = log->options.kind,
                                   .number = log->file_number + 1,
                                   .first_index = log->end.state.index + 1,
                                   .epoch = log->epoch};
    enum ron_err err = RON_ERR_OK;

    if (!log->end.sealed) /* open may have found it so, and no room for the next one */
        err = log_seal_segment(log, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(head.log_id, log->log_id, sizeof(head.log_id));
    head.link = log->end.link;
    head.before_size = log->end.offset;
    err = log_publish_segment(log, &head, reterr);
    if (err == RON_ERR_OK)
        log_collect_begin(log);
    return err;
}

/* ---- The group ---- */

static void tell_durable(struct io_log *log, struct log_group *group, size_t size, uint64_t sync_ns)
{
    const uint64_t records_count = group->records_count;
    const uint64_t index = group->first_index + records_count - 1;

    log_lock(log);
    log_room_keep(log, group);
    log->stats.groups_count++;
    log->stats.records_count += records_count;
    log->stats.bytes_count += size;
    log->stats.syncs_count++;
    log->stats.sync_ns_total += sync_ns;
    if (sync_ns > log->stats.sync_ns_max)
        log->stats.sync_ns_max = sync_ns;
    log_starts_add(&log->segments[log->segments_count - 1]->starts, group->first_index,
                   group->offset);
    group->size = 0;
    group->written_size = 0;
    group->records_count = 0;
    group->full = false;
    log->writing = NULL;
    rt_atomic_store_u64(&log->durable_index, index);
    rt_cond_broadcast(&log->durable_cond);
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
    io_log_count(&log->metrics, IO_LOG_METRIC_GROUPS, 1);
    io_log_count(&log->metrics, IO_LOG_METRIC_RECORDS, records_count);
    io_log_count(&log->metrics, IO_LOG_METRIC_BYTES, size);
    io_log_count(&log->metrics, IO_LOG_METRIC_SYNCS, 1);
    io_log_observe_sync(&log->metrics, sync_ns);
    io_log_set(&log->metrics, log->metrics.durable, index);
    if (log->options.on_durable != NULL)
        log->options.on_durable(log->options.context, index);
}

static enum ron_err write_group(struct io_log *log, struct log_group *group,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_frame commit = {.index = group->first_index + group->records_count - 1,
                                    .group = group->first_index,
                                    .epoch = log->epoch,
                                    .type = IO_FRAME_COMMIT};
    const size_t size = group->size + IO_COMMIT_SIZE;
    enum ron_err err = RON_ERR_OK;
    uint64_t started_ns, sync_ns;

    if (group->in_next)
        err = switch_segment(log, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(group->offset == log->end.offset);
    RON_ASSERT(group->first_index == log->end.state.index + 1);
    io_group_end(&commit, log->salt, &group->heads, &log->end.link, group->bytes + group->size);
    started_ns = rt_now_ns();
    if (log->direct)
        err = write_direct(log, group, size, reterr);
    else
        err = write_and_sync(log->file, group->offset + group->written_size,
                             group->bytes + group->written_size, size - group->written_size,
                             reterr);
    if (err != RON_ERR_OK)
        return err;
    log->end.offset += size;
    log->end.state.index += group->records_count;
    log->end.state.group = log->end.state.index + 1;
    log->end.state.epoch = log->epoch;
    sync_ns = rt_now_ns() - started_ns;
    log_collect(log, group);
    tell_durable(log, group, size, sync_ns);
    return RON_ERR_OK;
}

enum ron_err log_writer_fn(struct rt_task *task, void *argument)
{
    struct io_log *log = argument;
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;
    struct log_group *group;

    while (err == RON_ERR_OK && (group = next_group(log, task)) != NULL) {
        err = write_group(log, group, &info);
        rt_task_beat(task);
    }
    if (err != RON_ERR_OK)
        log_break(log, &info);
    log_lock(log);
    log->stopped = true;
    log_wake_all(log);
    log_unlock(log);
    return RON_ERR_OK; /* a broken log is told to on_broken; a restart would not heal it */
}
