/*
 * log_check.c - every frame and link of a log. See log_check.h.
 */
#include "io/log_check.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/log_recover.h"

enum { NAME_SIZE = sizeof("seg-0123456789abcdef") };

struct check {
    const struct io_log_check_options *options;
    struct io_log_found *found;
    char (*names)[NAME_SIZE];
    size_t names_count, names_capacity;
    bool no_memory;
    struct log_owner owner;        /* closed */
    struct ron_errinfo owner_info; /* of reading it */
    bool foreign;                  /* a name that no log has */
    uint64_t segment;              /* number of the one looked at */
    struct log_end end;
};

static bool add_name(void *context, const char *name, bool is_dir)
{
    struct check *check = context;
    struct log_name parsed = {0};

    if (is_dir || !log_name_parse(name, &parsed)) {
        (void)snprintf(check->found->damage_file, sizeof(check->found->damage_file), "%s", name);
        check->foreign = true;
        return false;
    }
    check->found->has_owner |= parsed.kind == LOG_FILE_OWNER;
    if (parsed.kind != LOG_FILE_SEGMENT)
        return true;
    if (check->names_count == check->names_capacity) {
        size_t capacity = check->names_capacity * 2 + 16;
        void *names = ron_mem_resize(check->names, capacity * NAME_SIZE);

        check->no_memory = names == NULL;
        if (names == NULL)
            return false;
        check->names = names;
        check->names_capacity = capacity;
    }
    memcpy(check->names[check->names_count++], name, NAME_SIZE);
    return true;
}

static enum ron_err visit(void *context, const struct io_frame *frame, uint64_t offset,
                          struct ron_errinfo *reterr)
{
    struct check *check = context;

    if (check->options->visit == NULL || frame->index < check->options->from)
        return RON_ERR_OK;
    return check->options->visit(check->options->context, frame, check->segment, offset, reterr);
}

/* Does the segment follow the one before it? */
static enum ron_err check_join(struct check *check, const char *path,
                               const struct io_segment_head *head, struct ron_errinfo *reterr)
{
    struct io_log_found *found = check->found;

    if (found->segments_count == 0) {
        found->kind = head->kind;
        memcpy(found->log_id, head->log_id, sizeof(found->log_id));
        found->first_index = head->first_index;
        found->last_index = head->first_index - 1;
        return RON_ERR_OK;
    }
    if (memcmp(found->log_id, head->log_id, sizeof(found->log_id)) != 0 ||
        found->kind != head->kind)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: a segment of another log", path);
    if (head->number != check->segment + 1)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s: segment %llu before it is missing", path,
                        (unsigned long long)(head->number - 1));
    if (!check->end.sealed || head->first_index != found->last_index + 1 ||
        head->before_size != check->end.offset ||
        memcmp(head->link.bytes, check->end.link.bytes, IO_LINK_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "%s at byte 40: it does not follow the end of segment %llu", path,
                        (unsigned long long)check->segment);
    return RON_ERR_OK;
}

static enum ron_err check_segment(struct check *check, const char *path, bool last,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_found *found = check->found;
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct log_walk walk = {0};
    enum ron_err err = io_vfs_open(check->options->vfs, path, IO_OPEN_READ, &file, reterr);

    if (err == RON_ERR_OK)
        err = log_scan_head(file, &head, reterr);
    if (err == RON_ERR_OK)
        err = check_join(check, path, &head, reterr);
    if (err == RON_ERR_OK) {
        check->segment = head.number;
        err = log_walk(file, &head, last, IO_LOG_STRICT, visit, check, &walk, reterr);
    }
    io_file_close(file);
    if (err != RON_ERR_OK) {
        (void)snprintf(found->damage_file, sizeof(found->damage_file), "%s", path);
        found->damage_offset = walk.damage_offset;
        return err;
    }
    check->end = walk.end;
    found->segments_count++;
    found->last_index = walk.end.state.index;
    found->records_count = found->last_index + 1 - found->first_index;
    found->bytes_count += walk.file_size;
    found->torn_bytes = walk.end.sealed ? 0 : walk.tail.end - walk.end.offset;
    return RON_ERR_OK;
}

/* What the segment after this one starts with: all of this one may be skipped. */
static bool may_skip(const struct check *check, const char *next_path) RON_BLOCKS
{
    struct io_segment_head head;
    struct io_file *file = NULL;
    bool skipped = false;

    if (check->options->from == 0 ||
        io_vfs_open(check->options->vfs, next_path, IO_OPEN_READ, &file, NULL) != RON_ERR_OK)
        return false;
    if (log_scan_head(file, &head, NULL) == RON_ERR_OK)
        skipped = head.first_index <= check->options->from;
    io_file_close(file);
    return skipped;
}

static void make_path(const struct check *check, size_t i, char path[IO_PATH_MAX + 1])
{
    const char *dir = check->options->dir;

    (void)snprintf(path, IO_PATH_MAX + 1, "%.200s%s%s", dir, dir[0] != '\0' ? "/" : "",
                   check->names[i]);
}

static enum ron_err check_all(struct check *check, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < check->names_count; i++) {
        const bool last = i + 1 == check->names_count;
        char path[IO_PATH_MAX + 1], next[IO_PATH_MAX + 1];

        make_path(check, i, path);
        make_path(check, last ? i : i + 1, next);
        if (check->found->segments_count == 0 && !last && may_skip(check, next))
            continue;
        err = check_segment(check, path, last, reterr);
        if (err == RON_ERR_OK && check->options->progress != NULL)
            check->options->progress(check->options->context, i + 1, check->names_count);
    }
    return err;
}

static void owner_path(const struct check *check, char path[IO_PATH_MAX + 1])
{
    const char *dir = check->options->dir;

    (void)snprintf(path, IO_PATH_MAX + 1, "%.200s%sowner", dir, dir[0] != '\0' ? "/" : "");
}

/* Before the segments: what it knows to be durable must be found later, also while a log grows. */
static void read_owner(struct check *check) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    owner_path(check, path);
    err = log_owner_open(&check->owner, check->options->vfs, path, true, &check->owner_info);
    if (err != RON_ERR_OK)
        return;
    log_owner_close(&check->owner);
    if (check->owner.fresh)
        (void)ron_fail(&check->owner_info, RON_ERR_WAL_CORRUPT,
                       "%s is empty, but there are segments: restore it", path);
}

/* An end that was cut off cleanly is seen nowhere but in the owner's note. */
static enum ron_err check_owner(const struct check *check, struct ron_errinfo *reterr)
{
    struct io_log_found *found = check->found;
    enum ron_err err = check->owner_info.err;

    owner_path(check, found->damage_file);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "%s", check->owner_info.message);
    if (memcmp(check->owner.log_id, found->log_id, sizeof(found->log_id)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s: the owner of another log: move it away",
                        found->damage_file);
    if (found->last_index < check->owner.last_index) {
        make_path(check, check->names_count - 1, found->damage_file);
        found->damage_offset = check->end.offset;
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT,
                        "%s at byte %llu: record %llu is the last, but %llu was durable: restore "
                        "the file from a copy",
                        found->damage_file, (unsigned long long)check->end.offset,
                        (unsigned long long)found->last_index,
                        (unsigned long long)check->owner.last_index);
    }
    found->damage_file[0] = '\0';
    return RON_ERR_OK;
}

enum ron_err io_log_check(const struct io_log_check_options *options,
                          struct io_log_found *ret_found, struct ron_errinfo *reterr)
{
    struct check check = {.options = options, .found = ret_found};
    enum ron_err err;

    rt_assert_no_lock_held();
    *ret_found = (struct io_log_found){0};
    err = io_vfs_list(options->vfs, options->dir, add_name, &check, reterr);
    if (err == RON_ERR_OK && check.no_memory)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "names of segments");
    if (err == RON_ERR_OK && check.foreign)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%s is not part of a log: move it away",
                       ret_found->damage_file);
    if (err == RON_ERR_OK && check.names_count == 0)
        err = ron_fail(reterr, RON_ERR_NOT_FOUND, "no segments (seg-...) here: not a log");
    if (err == RON_ERR_OK && ret_found->has_owner)
        read_owner(&check);
    if (err == RON_ERR_OK)
        err = check_all(&check, reterr);
    if (err == RON_ERR_OK && ret_found->has_owner)
        err = check_owner(&check, reterr);
    ron_mem_free(check.names);
    return err;
}
