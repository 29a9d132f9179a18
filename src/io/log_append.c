/*
 * log_append.c - append and wait. See log.h, log_impl.h; the task between them is log_writer.c.
 *
 * One group fills while the other is written and synced. A small record is summed without the lock
 * and copied under it. Many records and large ones are filled in without it: who does that has the
 * open group for itself (`filling`) and, if it may block, writes what is ready piece by piece
 * (log_early.c).
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
    log_room_place(log);
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
    if (log->filling)
        return RON_ERR_STORAGE_BUSY;
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

/* ---- Filling ---- */

/* Records on their way into the open group, of which the log is not told yet. */
struct fill {
    struct log_group *group;
    uint64_t next_index;
    uint64_t records_count; /* of the group */
    size_t size;            /* of the group's frames */
    size_t offered_size;    /* of them, to be written early */
    size_t size_max;        /* there is room for so much */
};

/* How far the frames of the open group may go, as admit sees it. */
static size_t room(const struct io_log *log) RON_NEEDS(storage)
{
    const struct log_group *group = log->open;
    const uint64_t zeroed = group->in_next ? log->next_zeroed : log->place_zeroed;
    const uint64_t end = zeroed < log->segment_bytes ? zeroed : log->segment_bytes;
    const uint64_t size = end - group->offset - UINT64_C(2) * IO_COMMIT_SIZE;

    return size < log->group_bytes ? (size_t)size : log->group_bytes;
}

static RON_HOT_INLINE struct fill fill_begin(const struct io_log *log) RON_NEEDS(storage)
{
    return (struct fill){.group = log->open,
                         .next_index = log->next_index,
                         .records_count = log->open->records_count,
                         .size = log->open->size,
                         .offered_size = log->open->size,
                         .size_max = room(log)};
}

static RON_HOT_INLINE void fill_tell(struct io_log *log, const struct fill *fill) RON_NEEDS(storage)
{
    fill->group->records_count = fill->records_count;
    fill->group->size = fill->size;
    fill->group->full = fill->size >= log->group_bytes;
    log->next_index = fill->next_index;
}

/* The head of a record whose body comes behind it: where that goes. */
static RON_HOT_INLINE uint8_t *put_head(struct io_log *log, struct fill *fill,
                                        const struct record *record)
{
    struct log_group *group = fill->group;
    uint8_t *start = group->bytes + fill->size;
    struct io_frame frame = {.index = fill->next_index, .epoch = log->epoch, .type = record->type};

    if (fill->records_count == 0) {
        group->first_index = frame.index;
        group->opened_ns = log->options.linger_us > 0 ? rt_now_ns() : 0;
    }
    frame.group = group->first_index;
    frame.body = ron_slice_of(start + IO_FRAME_HEAD_SIZE, record->size);
    io_frame_put(&frame, log->salt, record->sum, start);
    io_heads_add(&group->heads, start);
    return start + IO_FRAME_HEAD_SIZE;
}

static RON_HOT_INLINE void put_done(struct fill *fill, const struct record *record)
{
    fill->records_count++;
    fill->next_index++;
    fill->size += (size_t)io_frame_size(record->size);
}

static RON_HOT_INLINE void put(struct io_log *log, struct fill *fill, const struct record *record)
{
    uint8_t *at = put_head(log, fill, record);

    for (size_t i = 0; i < record->parts_count; i++) {
        if (record->parts[i].size > 0)
            memcpy(at, record->parts[i].data, record->parts[i].size);
        at += record->parts[i].size;
    }
    put_done(fill, record);
}

/* The same for a large record, without the lock, by somebody who may block. */
static void put_large(struct io_log *log, struct fill *fill, const struct record *record) RON_BLOCKS
{
    uint8_t *at = put_head(log, fill, record);

    for (size_t i = 0; i < record->parts_count; i++) {
        struct ron_slice rest = record->parts[i];

        while (rest.size > 0) {
            const size_t size = rest.size < log->early_bytes ? rest.size : log->early_bytes;

            memcpy(at, rest.data, size);
            at += size;
            rest = ron_slice_of(rest.data + size, rest.size - size);
            if ((size_t)(at - fill->group->bytes) - fill->offered_size < log->early_bytes)
                continue;
            fill->offered_size = (size_t)(at - fill->group->bytes);
            log_write_early(log, fill->group, fill->offered_size);
        }
    }
    put_done(fill, record);
}

/* The last one out of a log that closes tells. */
static void leave(struct io_log *log) RON_NEEDS(storage)
{
    log->inside_count--;
    if (log->closing && log->inside_count == 0)
        rt_cond_broadcast(&log->durable_cond);
}

/* Have the open group to oneself, without the lock, up to fill_end: close waits for it. */
static struct fill fill_alone(struct io_log *log) RON_NEEDS(storage)
{
    log->filling = true;
    log->inside_count++;
    return fill_begin(log);
}

/* Those who were kept out go on. */
static void fill_end(struct io_log *log) RON_NEEDS(storage)
{
    log->filling = false;
    rt_cond_signal(&log->work_cond);
    rt_cond_broadcast(&log->room_cond);
    leave(log);
}

/* Put a record that was admitted, under the lock; or, if it is large, begin to fill. */
static bool put_small(struct io_log *log, const struct record *record, struct fill *ret_fill)
    RON_NEEDS(storage)
{
    if (record->size >= log->early_bytes) {
        *ret_fill = fill_alone(log);
        return false;
    }
    *ret_fill = fill_begin(log);
    put(log, ret_fill, record);
    fill_tell(log, ret_fill);
    /* The writer times a group from its first record on, and takes one that is full. */
    if (ret_fill->records_count == 1 || ret_fill->group->full)
        rt_cond_signal(&log->work_cond);
    return true;
}

static void fill_tell_and_end(struct io_log *log, const struct fill *fill)
{
    log_lock(log);
    fill_tell(log, fill);
    fill_end(log);
    log_unlock(log);
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
    struct fill fill;
    bool done = true;

    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    err = admit(log, io_frame_size(record.size));
    if (err == RON_ERR_OK)
        done = put_small(log, &record, &fill);
    else
        err = refused(log, err, reterr);
    log_unlock(log);
    if (!done) { /* as a whole: whoever writes early may block */
        put(log, &fill, &record);
        fill_tell_and_end(log, &fill);
    }
    if (err == RON_ERR_OK)
        *ret_index = fill.next_index - 1;
    return err;
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
    struct fill fill;
    bool done = true;

    rt_assert_no_lock_held();
    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->inside_count++;
    err = admit_until(log, io_frame_size(record.size), deadline, reterr);
    if (err == RON_ERR_OK)
        done = put_small(log, &record, &fill);
    leave(log);
    log_unlock(log);
    if (!done) {
        put_large(log, &fill, &record);
        fill_tell_and_end(log, &fill);
    }
    if (err == RON_ERR_OK)
        *ret_index = fill.next_index - 1;
    return err;
}

/* Put records, from the measured one on, while the group has room for them and until there is
 * enough to write early. *ret_err: what the next one was refused for. Without the lock. */
static size_t fill_some(struct io_log *log, struct fill *fill, const struct ron_slice *bodies,
                        size_t bodies_count, struct record *record,
                        enum ron_err *ret_err) RON_BLOCKS
{
    size_t count = 0;

    *ret_err = RON_ERR_OK;
    do {
        if (record->size < log->early_bytes)
            put(log, fill, record);
        else
            put_large(log, fill, record);
        if (++count == bodies_count)
            break;
        *record = (struct record){.parts = bodies + count, .parts_count = 1, .type = record->type};
        *ret_err = measure(log, record, NULL);
    } while (*ret_err == RON_ERR_OK && fill->size + io_frame_size(record->size) <= fill->size_max &&
             fill->size - fill->offered_size < log->early_bytes);
    return count;
}

/* What was put is told. May it go on with a frame of `need` bytes? */
static bool fill_on(struct io_log *log, struct fill *fill, uint64_t need) RON_NEEDS(storage)
{
    enum ron_err err;

    log->filling = false; /* nobody else can ask here */
    err = admit(log, need);
    log->filling = true;
    *fill = fill_begin(log);
    return err == RON_ERR_OK;
}

enum ron_err io_log_append_many(struct io_log *log, uint16_t type, const struct ron_slice *bodies,
                                size_t bodies_count, struct rt_deadline deadline, size_t *ret_count,
                                uint64_t *ret_index, struct ron_errinfo *reterr)
{
    struct record record = {.parts = bodies, .parts_count = 1, .type = type};
    enum ron_err err = measure(log, &record, reterr);
    struct fill fill;
    size_t count = 0;
    bool more;

    rt_assert_no_lock_held();
    RON_ASSERT(bodies_count > 0);
    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->inside_count++;
    err = admit_until(log, io_frame_size(record.size), deadline, reterr);
    more = err == RON_ERR_OK;
    if (more)
        fill = fill_alone(log);
    leave(log);
    log_unlock(log);
    while (more) {
        enum ron_err next_err;

        count += fill_some(log, &fill, bodies + count, bodies_count - count, &record, &next_err);
        *ret_count = count;
        *ret_index = fill.next_index - 1;
        if (fill.size >= log->early_bytes)
            log_write_early(log, fill.group, fill.size);
        log_lock(log);
        fill_tell(log, &fill);
        more = next_err == RON_ERR_OK && count < bodies_count &&
               fill_on(log, &fill, io_frame_size(record.size));
        if (!more) /* what stopped them is the next call's to say */
            fill_end(log);
        log_unlock(log);
    }
    return err;
}

/* What a wait is for. */
struct awaited {
    uint64_t index;
    bool nudgeable;
    uint32_t seen; /* nudges */
};

static bool has_come(struct io_log *log, const struct awaited *awaited)
{
    return rt_atomic_load_u64(&log->durable_index) >= awaited->index ||
           (awaited->nudgeable && rt_atomic_load_u32(&log->nudges) != awaited->seen);
}

static enum ron_err wait_for(struct io_log *log, const struct awaited *awaited,
                             struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    bool in_time = true;

    rt_assert_no_lock_held();
    if (has_come(log, awaited))
        return RON_ERR_OK;
    if (log->damaged)
        return log_is_damaged(log, reterr);
    if (awaited->nudgeable)
        (void)rt_atomic_add_u32(&log->nudgeable, 1);
    log_lock(log);
    log->inside_count++;
    log->waiters_count++;
    rt_cond_signal(&log->work_cond);
    while (!has_come(log, awaited) && !log->broken && !log->stopped && in_time)
        in_time = rt_cond_wait(&log->durable_cond, &log->lock, deadline.at_ns);
    if (!has_come(log, awaited))
        err = log->broken ? RON_ERR_IO : log->stopped ? RON_ERR_CANCELED : RON_ERR_TIMEOUT;
    if (err != RON_ERR_OK)
        err = refused(log, err, reterr);
    log->waiters_count--;
    if (awaited->nudgeable)
        (void)rt_atomic_sub_u32(&log->nudgeable, 1);
    leave(log);
    log_unlock(log);
    return err;
}

enum ron_err io_log_wait(struct io_log *log, uint64_t index, struct rt_deadline deadline,
                         struct ron_errinfo *reterr)
{
    return wait_for(log, &(struct awaited){.index = index}, deadline, reterr);
}

enum ron_err io_log_wait_nudged(struct io_log *log, uint64_t index, uint32_t seen,
                                struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    return wait_for(log, &(struct awaited){index, true, seen}, deadline, reterr);
}

uint32_t io_log_nudges(const struct io_log *log)
{
    return rt_atomic_load_u32(&log->nudges);
}

void io_log_nudge(struct io_log *log)
{
    (void)rt_atomic_add_u32(&log->nudges, 1);
    if (rt_atomic_load_u32(&log->nudgeable) == 0)
        return;
    log_lock(log);
    rt_cond_broadcast(&log->durable_cond);
    log_unlock(log);
}
