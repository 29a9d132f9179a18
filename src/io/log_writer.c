/*
 * log_writer.c - append, wait, and the task between them. See log.h, log_impl.h.
 *
 * One group fills while the other is written and synced; a group is written only after the one
 * before it was synced (log_format.h needs that to tell a torn tail from damage). Under the append
 * lock there is one copy and no I/O; sums of bodies are made before it, heads and links after it.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/log_impl.h"

/* What an appender leaves in place of a head. */
struct stash {
    uint32_t body_size;
    uint32_t body_sum;
    uint32_t type;
};
_Static_assert(sizeof(struct stash) <= IO_FRAME_HEAD_SIZE, "a stash fits a head");

static enum ron_err wants_zeros(struct io_log *log) RON_NEEDS(storage)
{
    log->stats.waits_for_zeros++;
    rt_cond_signal(&log->ahead_cond);
    return log->disk_full ? RON_ERR_PERSISTENCE_FULL : RON_ERR_STORAGE_BUSY;
}

/* Where a new group goes. Behind it there is always room for the seal. */
static enum ron_err place_group(struct io_log *log, uint64_t need) RON_NEEDS(storage)
{
    struct log_group *group = log->open;
    const uint64_t end = log->place_offset + need + 2 * IO_COMMIT_SIZE;

    group->in_next = end > log->segment_bytes;
    group->offset = group->in_next ? IO_SEGMENT_HEAD_SIZE : log->place_offset;
    if (!group->in_next)
        return RON_ERR_OK;
    if (log->next_zeroed == 0 || log->place_zeroed < log->place_offset + IO_COMMIT_SIZE)
        return wants_zeros(log);
    return RON_ERR_OK;
}

/* May a frame of `need` bytes enter the open group? */
static enum ron_err admit(struct io_log *log, uint64_t need) RON_NEEDS(storage)
{
    struct log_group *group = log->open;
    enum ron_err err = RON_ERR_OK;
    uint64_t end;

    if (log->broken)
        return RON_ERR_IO;
    if (log->closing)
        return RON_ERR_CANCELED;
    if (group->records_count == 0)
        err = place_group(log, need);
    if (err != RON_ERR_OK)
        return err;
    end = group->offset + group->size + need + 2 * IO_COMMIT_SIZE;
    if (group->records_count > 0 &&
        (group->full || group->size + need > log->group_bytes || end > log->segment_bytes)) {
        group->full = true;
        rt_cond_signal(&log->work_cond);
        return RON_ERR_STORAGE_BUSY;
    }
    RON_ASSERT(group->size + need + IO_COMMIT_SIZE <= log->buffer_size);
    if (end > (group->in_next ? log->next_zeroed : log->place_zeroed))
        return wants_zeros(log);
    return RON_ERR_OK;
}

static uint64_t put(struct io_log *log, const struct stash *stash, const struct ron_slice *parts,
                    size_t parts_count) RON_NEEDS(storage)
{
    struct log_group *group = log->open;
    uint8_t *at = group->bytes + group->size;

    memcpy(at, stash, sizeof(*stash));
    at += IO_FRAME_HEAD_SIZE;
    for (size_t i = 0; i < parts_count; i++) {
        if (parts[i].size > 0)
            memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    if (group->records_count == 0) {
        group->first_index = log->next_index;
        group->opened_ns = log->options.linger_us > 0 ? rt_now_ns() : 0;
        rt_cond_signal(&log->work_cond);
    }
    group->records_count++;
    group->size += (size_t)io_frame_size(stash->body_size);
    if (group->size >= log->group_bytes) {
        group->full = true;
        rt_cond_signal(&log->work_cond);
    }
    return log->next_index++;
}

static enum ron_err refused(struct io_log *log, enum ron_err err, struct ron_errinfo *reterr)
{
    const char *name = log->options.name;

    switch ((int)err) {
    case RON_ERR_IO:
        return ron_fail(reterr, err, "log %s is broken: %s", name, log->broken_info.message);
    case RON_ERR_CANCELED:
        return ron_fail(reterr, err, "log %s is closed", name);
    case RON_ERR_PERSISTENCE_FULL:
        return ron_fail(reterr, err, "log %s: no room is left on the disk", name);
    case RON_ERR_TIMEOUT:
        return ron_fail(reterr, err, "log %s: not in time", name);
    default:
        return ron_fail(reterr, err, "log %s: the disk is behind", name);
    }
}

static enum ron_err measure(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                            size_t parts_count, struct stash *ret_stash, struct ron_errinfo *reterr)
{
    uint64_t size = 0;
    uint32_t sum = 0;

    RON_ASSERT(type <= IO_FRAME_TYPE_MAX);
    RON_ASSERT(!log->options.read_only);
    for (size_t i = 0; i < parts_count; i++) {
        if (parts[i].size > log->record_bytes_max)
            size = UINT32_MAX;
        size += size < UINT32_MAX ? parts[i].size : 0;
    }
    if (size > log->record_bytes_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a record beyond the %u bytes of log %s",
                        log->record_bytes_max, log->options.name);
    for (size_t i = 0; i < parts_count; i++)
        sum = ron_crc32c(sum, parts[i].data, parts[i].size);
    *ret_stash = (struct stash){(uint32_t)size, sum, type};
    return RON_ERR_OK;
}

enum ron_err io_log_append(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                           size_t parts_count, uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct stash stash;
    uint64_t index = 0;
    enum ron_err err = measure(log, type, parts, parts_count, &stash, reterr);

    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    err = admit(log, io_frame_size(stash.body_size));
    if (err == RON_ERR_OK)
        index = put(log, &stash, parts, parts_count);
    log_unlock(log);
    if (err != RON_ERR_OK)
        return refused(log, err, reterr);
    *ret_index = index;
    return RON_ERR_OK;
}

/* The last one out of a log that closes tells. */
static void leave(struct io_log *log) RON_NEEDS(storage)
{
    log->inside_count--;
    if (log->closing && log->inside_count == 0)
        rt_cond_broadcast(&log->durable_cond);
}

enum ron_err io_log_append_until(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                                 size_t parts_count, struct rt_deadline deadline,
                                 uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct stash stash;
    uint64_t index = 0;
    bool in_time = true;
    enum ron_err err = measure(log, type, parts, parts_count, &stash, reterr);

    rt_assert_no_lock_held();
    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->inside_count++;
    err = admit(log, io_frame_size(stash.body_size));
    while (err == RON_ERR_STORAGE_BUSY && in_time) {
        in_time = rt_cond_wait(&log->room_cond, &log->lock, deadline.at_ns);
        err = admit(log, io_frame_size(stash.body_size));
    }
    if (err == RON_ERR_OK)
        index = put(log, &stash, parts, parts_count);
    leave(log);
    log_unlock(log);
    if (err != RON_ERR_OK)
        return refused(log, err == RON_ERR_STORAGE_BUSY ? RON_ERR_TIMEOUT : err, reterr);
    *ret_index = index;
    return RON_ERR_OK;
}

enum ron_err io_log_wait(struct io_log *log, uint64_t index, struct rt_deadline deadline,
                         struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    bool in_time = true;

    rt_assert_no_lock_held();
    if (rt_atomic_load_u64(&log->durable_index) >= index)
        return RON_ERR_OK;
    log_lock(log);
    log->inside_count++;
    log->waiters_count++;
    rt_cond_signal(&log->work_cond);
    while (rt_atomic_load_u64(&log->durable_index) < index && !log->broken && !log->stopped &&
           in_time)
        in_time = rt_cond_wait(&log->durable_cond, &log->lock, deadline.at_ns);
    if (rt_atomic_load_u64(&log->durable_index) < index)
        err = log->broken ? RON_ERR_IO : log->stopped ? RON_ERR_CANCELED : RON_ERR_TIMEOUT;
    log->waiters_count--;
    leave(log);
    log_unlock(log);
    return err == RON_ERR_OK ? err : refused(log, err, reterr);
}

/* ---- The writer ---- */

static bool is_due(const struct io_log *log, uint64_t now_ns) RON_NEEDS(storage)
{
    const struct log_group *group = log->open;

    if (group->records_count == 0)
        return false;
    return group->full || log->closing || log->waiters_count > 0 ||
           now_ns >= group->opened_ns + log->options.linger_us * UINT64_C(1000);
}

/* Wait for a group and take it; NULL when the writer has to end. */
static struct log_group *take_group(struct io_log *log, struct rt_task *task) RON_BLOCKS
{
    const uint64_t linger_ns = log->options.linger_us * UINT64_C(1000);
    struct log_group *group = NULL;

    log_lock(log);
    while (!log->broken && !rt_task_aborted(task) &&
           !is_due(log, linger_ns > 0 ? rt_now_ns() : UINT64_MAX)) {
        if (log->open->records_count == 0 && log->closing)
            break;
        (void)rt_cond_wait(&log->work_cond, &log->lock,
                           log->open->records_count > 0 ? log->open->opened_ns + linger_ns
                                                        : SH_NEVER);
    }
    if (!log->broken && !rt_task_aborted(task) && log->open->records_count > 0) {
        group = log->open;
        log->writing = group;
        log->open = &log->groups[group == &log->groups[0] ? 1 : 0];
        if (group->in_next) {
            log->place_number++;
            log->place_zeroed = log->next_zeroed;
            log->next_zeroed = 0;
        }
        log->place_offset = group->offset + group->size + IO_COMMIT_SIZE;
        rt_cond_broadcast(&log->room_cond);
        rt_cond_signal(&log->ahead_cond);
    }
    log_unlock(log);
    return group;
}

static enum ron_err write_and_sync(struct io_log *log, uint64_t offset, const uint8_t *bytes,
                                   size_t size, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ron_slice part = {bytes, size};
    enum ron_err err = io_file_write(log->file, offset, &part, 1, reterr);

    return err == RON_ERR_OK ? io_file_sync(log->file, reterr) : err;
}

enum ron_err log_seal_segment(struct io_log *log, struct ron_errinfo *reterr)
{
    const struct io_frame seal = {.index = log->end.state.index,
                                  .group = log->end.state.index + 1,
                                  .epoch = log->epoch,
                                  .type = IO_FRAME_SEAL};
    enum ron_err err;

    io_group_end(&seal, &log->end.link, log->seal_bytes, 0);
    err = write_and_sync(log, log->end.offset, log->seal_bytes, IO_COMMIT_SIZE, reterr);
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
    }
    segment->number = head->number;
    segment->first_index = head->first_index;
    segment->link = head->link;
    log->segments[log->segments_count++] = segment;
    rt_cond_signal(&log->ahead_cond);
}

enum ron_err log_publish_segment(struct io_log *log, const struct io_segment_head *head,
                                 struct ron_errinfo *reterr)
{
    struct io_vfs *vfs = log->options.vfs;
    char ahead_path[IO_PATH_MAX + 1], path[IO_PATH_MAX + 1];
    uint8_t bytes[IO_SEGMENT_HEAD_SIZE];
    enum ron_err err;

    io_segment_head_encode(head, bytes);
    log_path(log, LOG_FILE_AHEAD, head->number, ahead_path);
    log_path(log, LOG_FILE_SEGMENT, head->number, path);
    log->file = io_file_close(log->file);
    err = io_vfs_open(vfs, ahead_path, IO_OPEN_WRITE, &log->file, reterr);
    if (err == RON_ERR_OK)
        err = write_and_sync(log, 0, bytes, sizeof(bytes), reterr);
    log->file = io_file_close(log->file);
    if (err == RON_ERR_OK)
        err = io_vfs_rename(vfs, ahead_path, path, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(vfs, log->dir, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, path, IO_OPEN_WRITE, &log->file, reterr);
    if (err != RON_ERR_OK)
        return err;
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
    enum ron_err err = log_seal_segment(log, reterr);

    if (err != RON_ERR_OK)
        return err;
    memcpy(head.log_id, log->log_id, sizeof(head.log_id));
    head.link = log->end.link;
    head.before_size = log->end.offset;
    return log_publish_segment(log, &head, reterr);
}

/* Heads, then the commit with the link. Returns the size of all of it. */
static size_t finish_group(struct io_log *log, struct log_group *group)
{
    struct io_frame frame = {
        .index = group->first_index, .group = group->first_index, .epoch = log->epoch};
    size_t at = 0;

    while (at < group->size) {
        struct stash stash;

        memcpy(&stash, group->bytes + at, sizeof(stash));
        frame.type = (uint16_t)stash.type;
        frame.body = ron_slice_of(group->bytes + at + IO_FRAME_HEAD_SIZE, stash.body_size);
        io_frame_put(&frame, stash.body_sum, group->bytes + at);
        at += (size_t)io_frame_size(stash.body_size);
        frame.index++;
    }
    RON_ASSERT(at == group->size);
    RON_ASSERT(frame.index == group->first_index + group->records_count);
    frame.index--;
    frame.type = IO_FRAME_COMMIT;
    io_group_end(&frame, &log->end.link, group->bytes, group->size);
    return group->size + IO_COMMIT_SIZE;
}

static void tell_durable(struct io_log *log, struct log_group *group, size_t size, uint64_t sync_ns)
{
    const uint64_t index = group->first_index + group->records_count - 1;

    log_lock(log);
    log->stats.groups_count++;
    log->stats.records_count += group->records_count;
    log->stats.bytes_count += size;
    log->stats.syncs_count++;
    log->stats.sync_ns_total += sync_ns;
    if (sync_ns > log->stats.sync_ns_max)
        log->stats.sync_ns_max = sync_ns;
    group->size = 0;
    group->records_count = 0;
    group->full = false;
    log->writing = NULL;
    rt_atomic_store_u64(&log->durable_index, index);
    rt_cond_broadcast(&log->durable_cond);
    rt_cond_broadcast(&log->room_cond);
    log_unlock(log);
    if (log->options.on_durable != NULL)
        log->options.on_durable(log->options.context, index);
}

static enum ron_err write_group(struct io_log *log, struct log_group *group,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    uint64_t started_ns;
    size_t size;

    if (group->in_next)
        err = switch_segment(log, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(group->offset == log->end.offset);
    RON_ASSERT(group->first_index == log->end.state.index + 1);
    size = finish_group(log, group);
    started_ns = rt_now_ns();
    err = write_and_sync(log, group->offset, group->bytes, size, reterr);
    if (err != RON_ERR_OK)
        return err;
    log->end.offset += size;
    log->end.state.index += group->records_count;
    log->end.state.group = log->end.state.index + 1;
    log->end.state.epoch = log->epoch;
    tell_durable(log, group, size, rt_now_ns() - started_ns);
    return RON_ERR_OK;
}

enum ron_err log_writer_fn(struct rt_task *task, void *argument)
{
    struct io_log *log = argument;
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;
    struct log_group *group;

    while (err == RON_ERR_OK && (group = take_group(log, task)) != NULL) {
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
