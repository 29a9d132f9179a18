/*
 * log_recover.c - what is on the disk, and whether it may be gone on from. See log_recover.h.
 */
#include "io/log_recover.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"

static bool parse_number(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 16; i++) {
        const char c = text[i];

        if (c >= '0' && c <= '9')
            number = number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret_number = number;
    return number > 0;
}

bool log_name_parse(const char *name, struct log_name *ret_name)
{
    static const struct {
        const char *prefix;
        enum log_file_kind kind;
    } kinds[] = {{"seg-", LOG_FILE_SEGMENT}, {"idx-", LOG_FILE_INDEX}, {"ahead-", LOG_FILE_AHEAD}};

    if (strcmp(name, "owner") == 0) {
        *ret_name = (struct log_name){.kind = LOG_FILE_OWNER};
        return true;
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(kinds); i++) {
        const size_t prefix_size = strlen(kinds[i].prefix);
        const char *rest = name + prefix_size;

        if (strncmp(name, kinds[i].prefix, prefix_size) != 0 ||
            !parse_number(rest, &ret_name->number))
            continue;
        ret_name->kind = kinds[i].kind;
        ret_name->is_new = kinds[i].kind == LOG_FILE_INDEX && strcmp(rest + 16, ".new") == 0;
        return rest[16] == '\0' || ret_name->is_new;
    }
    return false;
}

static bool add_name(void *context, const char *text, bool is_dir)
{
    struct log_recover *recover = context;
    struct log_name name = {0};

    if (is_dir || !log_name_parse(text, &name)) {
        recover->err = ron_fail(recover->reterr, RON_ERR_MALFORMED,
                                "%s/%s is not part of a log: move it away", recover->log->dir,
                                text);
        return false;
    }
    if (name.kind == LOG_FILE_OWNER) {
        recover->has_owner = true;
        return true;
    }
    if (recover->names_count == recover->names_capacity) {
        size_t capacity = recover->names_capacity * 2 + 16;
        struct log_name *names = ron_mem_resize(recover->names, capacity * sizeof(*names));

        if (names == NULL) {
            recover->err = ron_fail(recover->reterr, RON_ERR_NO_MEMORY, "names of %s",
                                    recover->log->dir);
            return false;
        }
        recover->names = names;
        recover->names_capacity = capacity;
    }
    recover->names[recover->names_count++] = name;
    return true;
}

/* The directories above it, too: a name is durable once its directory is synced. */
static enum ron_err make_dir(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[LOG_DIR_SIZE];
    enum ron_err err = io_vfs_make_dir(log->options.vfs, log->dir, reterr);

    memcpy(path, log->dir, sizeof(path));
    while (err == RON_ERR_OK && path[0] != '\0') {
        char *slash = strrchr(path, '/');

        *(slash != NULL ? slash : path) = '\0';
        err = io_vfs_sync_dir(log->options.vfs, path, reterr);
    }
    return err;
}

static enum ron_err list(struct log_recover *recover, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    enum ron_err err;

    recover->reterr = reterr;
    err = io_vfs_list(log->options.vfs, log->dir, add_name, recover, reterr);
    /* It may be empty because the sync of its own name failed. */
    if ((err == RON_ERR_NOT_FOUND ||
         (err == RON_ERR_OK && recover->err == RON_ERR_OK && recover->names_count == 0)) &&
        !log->options.read_only)
        return make_dir(log, reterr);
    return err != RON_ERR_OK ? err : recover->err;
}

static enum ron_err damage_at(struct log_recover *recover, const char *path, uint64_t offset,
                              enum ron_err err)
{
    (void)snprintf(recover->recovery->damage_file, sizeof(recover->recovery->damage_file), "%s",
                   path);
    recover->recovery->damage_offset = offset;
    return err;
}

static enum ron_err check_head(struct log_recover *recover, const char *path, uint64_t number,
                               struct ron_errinfo *reterr)
{
    const struct io_log *log = recover->log;
    const struct io_segment_head *head = &recover->head;

    if (head->kind != log->options.kind)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a log of kind %u, not %u", path, head->kind,
                        log->options.kind);
    if (memcmp(head->log_id, log->log_id, sizeof(head->log_id)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a segment of another log: move it away",
                        path);
    if (head->number != number)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s at byte 32: its head says number %llu",
                        path, (unsigned long long)head->number);
    return RON_ERR_OK;
}

/* The head of this segment tells how the one before it ends. */
static enum ron_err check_join(struct log_recover *recover, const char *path,
                               struct log_segment *before, struct ron_errinfo *reterr)
{
    const struct io_segment_head *head = &recover->head;

    if (head->number != before->number + 1)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "%s: the segment before it (%016llx) is missing: restore it", path,
                        (unsigned long long)(head->number - 1));
    if (head->first_index < before->first_index ||
        head->before_size < IO_SEGMENT_HEAD_SIZE + IO_COMMIT_SIZE)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s at byte 40: does not follow segment %llu",
                        path, (unsigned long long)before->number);
    before->sealed = true;
    before->last_index = head->first_index - 1;
    before->last_link = head->link;
    before->sealed_size = head->before_size;
    return RON_ERR_OK;
}

static enum ron_err add_segment(struct log_recover *recover, uint64_t number,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct log_segment *segment;
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err;

    log_path(log, LOG_FILE_SEGMENT, number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = log_scan_head(file, &recover->head, reterr);
    io_file_close(file);
    if (err == RON_ERR_MALFORMED && log->options.damage == IO_LOG_UP_TO_DAMAGE)
        err = RON_ERR_WAL_CORRUPT; /* its name says what it was */
    if (err == RON_ERR_OK)
        err = check_head(recover, path, number, reterr);
    if (err == RON_ERR_OK)
        err = log_segments_reserve(log, reterr);
    if (err != RON_ERR_OK)
        return damage_at(recover, path, 0, err);
    log_lock(log);
    segment = log->spare;
    if (log->segments_count > 0)
        err = check_join(recover, path, log->segments[log->segments_count - 1], reterr);
    if (err == RON_ERR_OK) {
        log->spare = NULL;
        segment->number = number;
        segment->first_index = recover->head.first_index;
        segment->link = recover->head.link;
        log->segments[log->segments_count++] = segment;
    }
    log_unlock(log);
    return err == RON_ERR_OK ? err : damage_at(recover, path, 0, err);
}

/* Of a sealed segment that an index vouches for, only the end is looked at. */
static enum ron_err check_seal(const struct io_log *log, struct io_file *file,
                               const struct log_segment *segment,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t offset = segment->sealed_size - IO_COMMIT_SIZE;
    uint8_t bytes[IO_COMMIT_SIZE];
    struct io_frame_state state = {.salt = log->salt};
    struct io_frame frame;
    const char *why = NULL;
    size_t size = 0;
    enum ron_err err = io_file_read(file, offset, bytes, sizeof(bytes), &size, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (io_frame_read_first(ron_slice_of(bytes, size), &state, &frame, &why) != IO_FRAME_VALID ||
        frame.type != IO_FRAME_SEAL || frame.index != segment->last_index ||
        memcmp(frame.body.data, segment->last_link.bytes, IO_LINK_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s at byte %llu: not the seal it had",
                        io_file_path(file), (unsigned long long)offset);
    return RON_ERR_OK;
}

static void count_walk(struct log_recover *recover, const char *path, const struct log_walk *walk)
{
    recover->recovery->skipped_count += walk->skipped_count;
    recover->recovery->skipped_bytes += walk->skipped_bytes;
    if (walk->damage_why != NULL)
        (void)damage_at(recover, path, walk->damage_offset, RON_ERR_OK);
}

static enum io_log_damage_policy policy_of(const struct io_log *log)
{
    return log->options.damage == IO_LOG_SKIP && !log->options.read_only ? IO_LOG_SKIP
                                                                         : IO_LOG_STRICT;
}

static enum ron_err walk_sealed(struct log_recover *recover, struct io_file *file, const char *path,
                                const struct log_segment *segment,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_segment_head head;
    struct log_walk walk = {0};
    enum ron_err err = log_scan_head(file, &head, reterr);

    if (err == RON_ERR_OK)
        err = log_walk(file, &head, false, policy_of(recover->log), NULL, NULL, &walk, reterr);
    count_walk(recover, path, &walk);
    if (err != RON_ERR_OK || policy_of(recover->log) == IO_LOG_SKIP)
        return err;
    if (walk.end.state.index == segment->last_index && walk.end.offset == segment->sealed_size &&
        memcmp(walk.end.link.bytes, segment->last_link.bytes, IO_LINK_SIZE) == 0)
        return RON_ERR_OK;
    (void)damage_at(recover, path, walk.end.offset, RON_ERR_OK);
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                    "%s at byte %llu: it does not end as the segment after it says", path,
                    (unsigned long long)walk.end.offset);
}

static enum ron_err check_sealed(struct log_recover *recover, struct log_segment *segment,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    const struct io_index_of of = log_index_of(log, segment);
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err;

    log_path(log, LOG_FILE_INDEX, segment->number, path);
    err = io_index_open(log->options.vfs, path, &of, &segment->index, NULL);
    if (err == RON_ERR_NO_MEMORY || err == RON_ERR_IO)
        return ron_fail(reterr, err, "cannot read %s", path);
    log_path(log, LOG_FILE_SEGMENT, segment->number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (segment->index != NULL) {
        err = check_seal(log, file, segment, reterr);
        if (err == RON_ERR_WAL_CORRUPT && policy_of(log) == IO_LOG_SKIP) {
            recover->recovery->skipped_count++;
            err = RON_ERR_OK;
        }
        if (err == RON_ERR_WAL_CORRUPT)
            (void)damage_at(recover, path, segment->sealed_size - IO_COMMIT_SIZE, err);
    } else {
        err = walk_sealed(recover, file, path, segment, reterr);
    }
    io_file_close(file);
    return err;
}

/* A tail is about to be overwritten: not because of a bit that was read wrong once. */
static enum ron_err walk_again(struct io_file *file, const struct io_segment_head *head,
                               enum io_log_damage_policy policy, const struct log_walk *walk,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct log_walk again;
    enum ron_err err;

    if (walk->end.sealed || walk->tail.end == walk->end.offset)
        return RON_ERR_OK;
    err = log_walk(file, head, true, policy, NULL, NULL, &again, reterr);
    if (err == RON_ERR_OK &&
        (again.end.offset != walk->end.offset || again.tail.end != walk->tail.end))
        err = ron_fail(reterr, RON_ERR_IO,
                       "%s at byte %llu: read twice with different answers: check the disk",
                       io_file_path(file), (unsigned long long)walk->end.offset);
    return err;
}

static enum ron_err add_start(void *context, const struct io_frame *frame, uint64_t offset,
                              struct ron_errinfo *reterr)
{
    (void)reterr;
    log_starts_add(context, frame->index, offset);
    return RON_ERR_OK;
}

/* The last segment: where the log ends. */
static enum ron_err check_last(struct log_recover *recover, struct log_segment *segment,
                               struct log_walk *ret_walk, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct io_log_recovery *recovery = recover->recovery;
    struct io_segment_head head;
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err;

    log_path(log, LOG_FILE_SEGMENT, segment->number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_head(file, &head, reterr);
    if (err == RON_ERR_OK)
        err = log_walk(file, &head, true, policy_of(log), add_start, &segment->starts, ret_walk,
                       reterr);
    if (err == RON_ERR_OK)
        err = walk_again(file, &head, policy_of(log), ret_walk, reterr);
    io_file_close(file);
    count_walk(recover, path, ret_walk);
    if (err != RON_ERR_OK)
        return err;
    recovery->torn_bytes = ret_walk->end.sealed ? 0 : ret_walk->tail.end - ret_walk->end.offset;
    recovery->torn_count = ret_walk->tail.sound_count;
    if (ret_walk->end.state.index < log->owner.last_index && policy_of(log) == IO_LOG_STRICT &&
        !recover->damaged) {
        (void)damage_at(recover, path, ret_walk->end.offset, err);
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "%s at byte %llu: record %llu is the last, but %llu was durable: restore "
                        "the file from a copy",
                        path, (unsigned long long)ret_walk->end.offset,
                        (unsigned long long)ret_walk->end.state.index,
                        (unsigned long long)log->owner.last_index);
    }
    return RON_ERR_OK;
}

static enum ron_err check_owner(struct log_recover *recover, bool has_segments,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct log_owner *owner = &log->owner;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    log_path(log, LOG_FILE_OWNER, 0, path);
    *owner = (struct log_owner){.fresh = true};
    if (recover->has_owner) {
        err = log_owner_open(owner, log->options.vfs, path, log->options.read_only, reterr);
        if (err == RON_ERR_MALFORMED && log->options.damage == IO_LOG_UP_TO_DAMAGE)
            err = RON_ERR_WAL_CORRUPT; /* its name says what it was */
        if (err != RON_ERR_OK)
            return err == RON_ERR_WAL_CORRUPT ? damage_at(recover, path, 0, err) : err;
    }
    if (owner->fresh && has_segments)
        return damage_at(recover, path, 0,
                         ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                                  "%s is missing or empty, but there are segments: restore it",
                                  path));
    if (owner->fresh)
        return RON_ERR_OK;
    if (owner->kind != log->options.kind)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a log of kind %u, not %u", path,
                        owner->kind, log->options.kind);
    if (!has_segments && owner->last_index > 0)
        return damage_at(recover, path, 0,
                         ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                                  "%s: %llu records were durable, but all segments are gone",
                                  log->dir, (unsigned long long)owner->last_index));
    memcpy(log->log_id, owner->log_id, sizeof(log->log_id));
    log->salt = io_log_salt(log->log_id);
    recover->recovery->clean = owner->clean;
    return RON_ERR_OK;
}

/* Is it damage that the log is read up to? What it was is told to whoever wants more. */
static bool goes_up_to(struct log_recover *recover, enum ron_err err,
                       const struct ron_errinfo *info)
{
    struct io_log *log = recover->log;

    if (err != RON_ERR_WAL_CORRUPT || log->options.damage != IO_LOG_UP_TO_DAMAGE)
        return false;
    recover->damaged = true;
    log->damage_info = *info;
    return true;
}

/* The owner file is lost: the first segment tells whose log it was. What it adds, the last durable
 * record, stays unknown, so the log is only read. */
static enum ron_err adopt_segments(struct log_recover *recover,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct io_segment_head head = {0};
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    size_t first = 0;
    enum ron_err err;

    while (recover->names[first].kind != LOG_FILE_SEGMENT)
        first++;
    log_path(log, LOG_FILE_SEGMENT, recover->names[first].number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_head(file, &head, reterr);
    io_file_close(file);
    if (err != RON_ERR_OK)
        return err;
    memcpy(log->log_id, head.log_id, sizeof(log->log_id));
    log->salt = io_log_salt(log->log_id);
    return RON_ERR_OK;
}

/* The segment before one that is damaged or missing: its own seal tells what that one's head did.
 */
static enum ron_err end_at_seal(struct log_recover *recover, struct log_segment *segment,
                                const struct log_walk *walk, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_index_of of;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    if (!walk->end.sealed)
        return RON_ERR_OK;
    segment->sealed = true;
    segment->last_index = walk->end.state.index;
    segment->last_link = walk->end.link;
    segment->sealed_size = walk->end.offset;
    of = log_index_of(recover->log, segment);
    log_path(recover->log, LOG_FILE_INDEX, segment->number, path);
    err = io_index_open(recover->log->options.vfs, path, &of, &segment->index, NULL);
    if (err == RON_ERR_NO_MEMORY || err == RON_ERR_IO)
        return ron_fail(reterr, err, "cannot read %s", path);
    return RON_ERR_OK;
}

/* The end of a damaged segment that is not the last: behind its last good group. */
static enum ron_err end_before_damage(struct log_recover *recover, struct log_segment *segment,
                                      struct log_walk *ret_walk,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_recovery *recovery = recover->recovery;
    struct io_segment_head head;
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err;

    segment->sealed = false;
    segment->index = io_index_close(segment->index); /* it knows what is lost */
    log_path(recover->log, LOG_FILE_SEGMENT, segment->number, path);
    err = io_vfs_open(recover->log->options.vfs, path, IO_OPEN_READ, &file, reterr);
    if (err == RON_ERR_OK)
        err = log_scan_head(file, &head, reterr);
    if (err == RON_ERR_OK)
        err = log_walk(file, &head, false, IO_LOG_STRICT, add_start, &segment->starts, ret_walk,
                       reterr);
    io_file_close(file);
    if (err == RON_ERR_WAL_CORRUPT && ret_walk->damage_why != NULL) {
        recovery->damage_offset = ret_walk->damage_offset; /* earlier than a seal that lies */
        err = RON_ERR_OK;
    }
    return err;
}

/* Check segment after segment; nothing changes on disk. */
static enum ron_err check_segments(struct log_recover *recover, struct log_walk *walk,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;
    uint32_t count;

    log_lock(log);
    count = log->segments_count;
    log_unlock(log);
    for (uint32_t i = 0; err == RON_ERR_OK && i < count; i++) {
        const bool last = i + 1 == count;
        struct log_segment *segment;

        log_lock(log);
        segment = log->segments[i];
        log_unlock(log);
        err = last ? check_last(recover, segment, walk, &info)
                   : check_sealed(recover, segment, &info);
        if (err != RON_ERR_OK && goes_up_to(recover, err, &info)) {
            err = last ? RON_ERR_OK : end_before_damage(recover, segment, walk, &info);
            count = i + 1;
        }
        if (err == RON_ERR_OK && last && recover->damaged)
            err = end_at_seal(recover, segment, walk, &info);
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    if (err == RON_ERR_OK && recover->damaged)
        log_segments_cut(log, count);
    return err;
}

/* Read and check all of it; nothing changes. */
static enum ron_err check_all(struct log_recover *recover, struct log_walk *walk,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    bool has_segments = false, more = true;
    enum ron_err err = list(recover, reterr);

    for (size_t i = 0; i < recover->names_count; i++)
        has_segments |= recover->names[i].kind == LOG_FILE_SEGMENT;
    if (err != RON_ERR_OK)
        return err;
    err = check_owner(recover, has_segments, &info);
    if (err != RON_ERR_OK && has_segments && goes_up_to(recover, err, &info))
        err = adopt_segments(recover, &info);
    for (size_t i = 0; err == RON_ERR_OK && more && i < recover->names_count; i++) {
        if (recover->names[i].kind != LOG_FILE_SEGMENT)
            continue;
        err = add_segment(recover, recover->names[i].number, &info);
        if (err != RON_ERR_OK && goes_up_to(recover, err, &info)) {
            more = false; /* up to the segment before it */
            err = RON_ERR_OK;
        }
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err == RON_ERR_OK ? check_segments(recover, walk, reterr) : err;
}

enum ron_err log_recover(struct io_log *log, struct io_log_recovery *recovery,
                         struct ron_errinfo *reterr)
{
    struct log_recover recover = {.log = log, .recovery = recovery};
    struct log_walk walk = {0};
    uint64_t first_index = 1;
    enum ron_err err = check_all(&recover, &walk, reterr);

    log->end = walk.end;
    if (err == RON_ERR_OK) {
        log->damaged = recover.damaged;
        log->options.read_only |= recover.damaged;
        log_lock(log);
        if (log->segments_count > 0)
            first_index = log->segments[0]->first_index;
        log_unlock(log);
        rt_atomic_store_u64(&log->first_index, first_index);
        rt_atomic_store_u64(&log->durable_index, log->end.state.index);
        recovery->first_index = first_index;
        recovery->last_index = log->end.state.index;
        recovery->records_count = log->end.state.index + 1 - first_index;
        recovery->open_bytes = log->end.offset;
        if (!log->options.read_only)
            err = log_repair(&recover, &walk, reterr);
        recovery->epoch = log->owner.epoch;
    }
    ron_mem_free(recover.names);
    return err;
}
