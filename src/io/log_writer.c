/*
 * log_writer.c - append, wait, and the task between them. See log.h, log_impl.h.
 *
 * One group fills while the other is written and synced; a group is written only after the one
 * before it was synced (log_format.h needs that to tell a torn tail from damage). Under the append
 * lock there is one copy, heads are made and hashed for the link, and no I/O; sums of bodies are
 * made before it.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "io/log_impl.h"

/* A record to append. */
struct record {
    const struct ron_slice *parts;
    size_t parts_count;
    uint32_t size; /* of all parts */
    uint32_t sum;
    uint16_t type;
};

static enum ron_err wants_zeros(struct io_log *log) RON_NEEDS(storage)
{
    log->stats.waits_for_zeros++;
    io_log_count(&log->metrics, IO_LOG_METRIC_WAITS, 1);
    log->zeros_wanted = true;
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
static RON_HOT_INLINE enum ron_err admit(struct io_log *log, uint64_t need) RON_NEEDS(storage)
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

static RON_HOT_INLINE uint64_t put(struct io_log *log, const struct record *record)
    RON_NEEDS(storage)
{
    struct log_group *group = log->open;
    uint8_t *start = group->bytes + group->size;
    uint8_t *at = start + IO_FRAME_HEAD_SIZE;
    struct io_frame frame = {.index = log->next_index++, .epoch = log->epoch, .type = record->type};

    for (size_t i = 0; i < record->parts_count; i++) {
        if (record->parts[i].size > 0)
            memcpy(at, record->parts[i].data, record->parts[i].size);
        at += record->parts[i].size;
    }
    if (group->records_count == 0) {
        group->first_index = frame.index;
        group->opened_ns = log->options.linger_us > 0 ? rt_now_ns() : 0;
    }
    frame.group = group->first_index;
    frame.body = ron_slice_of(start + IO_FRAME_HEAD_SIZE, record->size);
    io_frame_put(&frame, log->salt, record->sum, start);
    io_heads_add(&group->heads, start);
    group->records_count++;
    group->size += (size_t)io_frame_size(record->size);
    group->full = group->size >= log->group_bytes;
    return frame.index;
}

/* After puts: the writer times a group from its first record on, and takes one that is full. */
static void tell_writer(struct io_log *log, bool was_empty) RON_NEEDS(storage)
{
    if (was_empty || log->open->full)
        rt_cond_signal(&log->work_cond);
}

static uint64_t put_one(struct io_log *log, const struct record *record) RON_NEEDS(storage)
{
    const bool was_empty = log->open->records_count == 0;
    const uint64_t index = put(log, record);

    tell_writer(log, was_empty);
    return index;
}

/* Before the caller leaves: a log that closes may be gone right after. */
static enum ron_err refused(struct io_log *log, enum ron_err err, struct ron_errinfo *reterr)
    RON_NEEDS(storage)
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

static RON_HOT_INLINE enum ron_err measure(const struct io_log *log, struct record *record,
                                           struct ron_errinfo *reterr)
{
    uint64_t size = 0;

    RON_ASSERT(record->type <= IO_FRAME_TYPE_MAX);
    if (log->damaged)
        return log_is_damaged(log, reterr);
    RON_ASSERT(!log->options.read_only);
    for (size_t i = 0; i < record->parts_count; i++) {
        if (record->parts[i].size > log->record_bytes_max)
            size = UINT32_MAX;
        size += size < UINT32_MAX ? record->parts[i].size : 0;
    }
    if (size > log->record_bytes_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a record beyond the %u bytes of log %s",
                        log->record_bytes_max, log->options.name);
    record->size = (uint32_t)size;
    for (size_t i = 0; i < record->parts_count; i++)
        record->sum = ron_crc32c(record->sum, record->parts[i].data, record->parts[i].size);
    return RON_ERR_OK;
}

enum ron_err io_log_append(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                           size_t parts_count, uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct record record = {.parts = parts, .parts_count = parts_count, .type = type};
    enum ron_err err = measure(log, &record, reterr);

    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    err = admit(log, io_frame_size(record.size));
    if (err == RON_ERR_OK)
        *ret_index = put_one(log, &record);
    else
        err = refused(log, err, reterr);
    log_unlock(log);
    return err;
}

/* The last one out of a log that closes tells. */
static void leave(struct io_log *log) RON_NEEDS(storage)
{
    log->inside_count--;
    if (log->closing && log->inside_count == 0)
        rt_cond_broadcast(&log->durable_cond);
}

/* Wait until a frame of `need` bytes may enter the open group. */
static enum ron_err admit_until(struct io_log *log, uint64_t need, struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_NEEDS(storage)
{
    enum ron_err err = admit(log, need);
    bool in_time = true;

    while (err == RON_ERR_STORAGE_BUSY && in_time) {
        in_time = rt_cond_wait(&log->room_cond, &log->lock, deadline.at_ns);
        err = admit(log, need);
    }
    if (err == RON_ERR_OK)
        return err;
    return refused(log, err == RON_ERR_STORAGE_BUSY ? RON_ERR_TIMEOUT : err, reterr);
}

enum ron_err io_log_append_until(struct io_log *log, uint16_t type, const struct ron_slice *parts,
                                 size_t parts_count, struct rt_deadline deadline,
                                 uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct record record = {.parts = parts, .parts_count = parts_count, .type = type};
    enum ron_err err = measure(log, &record, reterr);

    rt_assert_no_lock_held();
    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->inside_count++;
    err = admit_until(log, io_frame_size(record.size), deadline, reterr);
    if (err == RON_ERR_OK)
        *ret_index = put_one(log, &record);
    leave(log);
    log_unlock(log);
    return err;
}

enum ron_err io_log_append_many(struct io_log *log, uint16_t type, const struct ron_slice *bodies,
                                size_t bodies_count, struct rt_deadline deadline, size_t *ret_count,
                                uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct record record = {.parts = bodies, .parts_count = 1, .type = type};
    enum ron_err err = measure(log, &record, reterr);
    size_t count = 0;
    bool was_empty;

    rt_assert_no_lock_held();
    RON_ASSERT(bodies_count > 0);
    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->inside_count++;
    err = admit_until(log, io_frame_size(record.size), deadline, reterr);
    was_empty = err == RON_ERR_OK && log->open->records_count == 0;
    while (err == RON_ERR_OK) {
        *ret_index = put(log, &record);
        *ret_count = ++count;
        if (count == bodies_count)
            break;
        record = (struct record){.parts = bodies + count, .parts_count = 1, .type = type};
        err = measure(log, &record, NULL);
        if (err == RON_ERR_OK)
            err = admit(log, io_frame_size(record.size));
    }
    if (count > 0) /* what stopped it is the next call's to say */
        tell_writer(log, was_empty);
    leave(log);
    log_unlock(log);
    return count > 0 ? RON_ERR_OK : err;
}

enum ron_err io_log_wait(struct io_log *log, uint64_t index, struct rt_deadline deadline,
                         struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    bool in_time = true;

    rt_assert_no_lock_held();
    if (rt_atomic_load_u64(&log->durable_index) >= index)
        return RON_ERR_OK;
    if (log->damaged)
        return log_is_damaged(log, reterr);
    log_lock(log);
    log->inside_count++;
    log->waiters_count++;
    rt_cond_signal(&log->work_cond);
    while (rt_atomic_load_u64(&log->durable_index) < index && !log->broken && !log->stopped &&
           in_time)
        in_time = rt_cond_wait(&log->durable_cond, &log->lock, deadline.at_ns);
    if (rt_atomic_load_u64(&log->durable_index) < index)
        err = log->broken ? RON_ERR_IO : log->stopped ? RON_ERR_CANCELED : RON_ERR_TIMEOUT;
    if (err != RON_ERR_OK)
        err = refused(log, err, reterr);
    log->waiters_count--;
    leave(log);
    log_unlock(log);
    return err;
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
        if (log_ahead_is_wanted(log))
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
    uint8_t bytes[IO_COMMIT_SIZE];
    struct io_heads none;
    enum ron_err err;

    io_heads_start(&none);
    io_group_end(&seal, log->salt, &none, &log->end.link, bytes);
    err = write_and_sync(log, log->end.offset, bytes, IO_COMMIT_SIZE, reterr);
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
    enum ron_err err = RON_ERR_OK;

    if (!log->end.sealed) /* open may have found it so, and no room for the next one */
        err = log_seal_segment(log, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(head.log_id, log->log_id, sizeof(head.log_id));
    head.link = log->end.link;
    head.before_size = log->end.offset;
    return log_publish_segment(log, &head, reterr);
}

/* ---- The group ---- */

static void tell_durable(struct io_log *log, struct log_group *group, size_t size, uint64_t sync_ns)
{
    const uint64_t records_count = group->records_count;
    const uint64_t index = group->first_index + records_count - 1;

    log_lock(log);
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
    uint64_t started_ns;

    if (group->in_next)
        err = switch_segment(log, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(group->offset == log->end.offset);
    RON_ASSERT(group->first_index == log->end.state.index + 1);
    io_group_end(&commit, log->salt, &group->heads, &log->end.link, group->bytes + group->size);
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
