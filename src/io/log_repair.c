/*
 * log_repair.c - the changes that opening a log makes. See log_recover.h.
 */
#include "io/log_recover.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"

/* Write what was read. After a sync that failed the cache may hold bytes that the disk has not, and
 * calls them clean: the next sync would keep quiet and keep nothing. Only the last group can be so:
 * its end was written after the one before it was synced. With all of its first page, which a write
 * that failed may have spoilt. */
static enum ron_err write_again(struct io_file *file, uint64_t from, uint64_t to,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    enum { PIECE = 64 * 1024, PAGE = 4096 };
    uint8_t *bytes = ron_mem_alloc(PIECE);
    enum ron_err err = RON_ERR_OK;

    if (bytes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%d bytes to write a group again", PIECE);
    for (uint64_t at = from / PAGE * PAGE; err == RON_ERR_OK && at < to; at += PIECE) {
        const size_t wanted = to - at < PIECE ? (size_t)(to - at) : (size_t)PIECE;
        struct ron_slice piece = {bytes, 0};

        err = io_file_read(file, at, bytes, wanted, &piece.size, reterr);
        if (err == RON_ERR_OK && piece.size < wanted)
            err = ron_fail(reterr, RON_ERR_IO, "a segment became shorter while it was read");
        if (err == RON_ERR_OK)
            err = io_file_write(file, at, &piece, 1, reterr);
    }
    (void)ron_mem_free(bytes);
    return err;
}

/* Overwrite the torn tail; its last bytes only when the rest is durable. If that sync fails, the
 * cache may show zeros and the disk old heads, of a group that is later than those written next:
 * whoever opens the log again must see that there is a tail. */
static enum ron_err erase_tail(struct io_log *log, const struct log_walk *walk,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t last = (walk->tail.end - 1) & ~(uint64_t)(IO_FRAME_ALIGN - 1);
    enum ron_err err = log_write_zeros(log, log->file, walk->end.offset, last, reterr);

    if (err == RON_ERR_OK)
        err = io_file_sync(log->file, reterr);
    return err == RON_ERR_OK ? log_write_zeros(log, log->file, last, walk->tail.end, reterr) : err;
}

/* Erase the torn tail, and make durable what was found: it may be in the cache only. */
static enum ron_err repair_last(struct log_recover *recover, uint64_t number,
                                const struct log_walk *walk, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    log_path(log, LOG_FILE_SEGMENT, number, path);
    err = io_vfs_open(log->options.vfs, path, IO_OPEN_WRITE, &log->file, reterr);
    if (err == RON_ERR_OK && walk->skipped_count > 0 && !walk->end.sealed) {
        /* Damage was passed over. Without what lies behind it, it would look like a torn tail the
         * next time, and records that are gone would be numbered again: seal it there. */
        log->epoch = walk->end.state.epoch;
        err = log_seal_segment(log, reterr);
        log->end.sealed = err == RON_ERR_OK;
    } else if (err == RON_ERR_OK && recover->recovery->torn_bytes > 0)
        err = erase_tail(log, walk, reterr);
    if (err == RON_ERR_OK && !recover->recovery->clean)
        err = write_again(log->file, walk->last_offset, walk->end.offset, reterr);
    if (err == RON_ERR_OK)
        err = io_file_sync(log->file, reterr);
    log->file_number = number;
    return err;
}

static enum ron_err take_ownership(struct log_recover *recover, uint32_t epoch, uint64_t last_index,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct log_owner *owner = &log->owner;
    char path[IO_PATH_MAX + 1];
    enum ron_err err = RON_ERR_OK;

    log_path(log, LOG_FILE_OWNER, 0, path);
    if (owner->file == NULL)
        err = log_owner_create(owner, log->options.vfs, path, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (owner->fresh) {
        ron_store_le64(log->log_id, sh_random());
        ron_store_le64(log->log_id + 8, sh_random());
        memcpy(owner->log_id, log->log_id, sizeof(log->log_id));
        owner->kind = log->options.kind;
        log->salt = io_log_salt(log->log_id);
    }
    owner->epoch = (owner->epoch > epoch ? owner->epoch : epoch) + 1;
    owner->last_index = last_index;
    owner->clean = false;
    err = log_owner_write(owner, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(log->options.vfs, log->dir, reterr); /* its name, at first */
    return err;
}

/* Leftovers of a crash: files ahead, index files half made or without their segment. */
static enum ron_err remove_leftovers(struct log_recover *recover, uint64_t first_number,
                                     uint64_t last_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < recover->names_count; i++) {
        const struct log_name *name = &recover->names[i];
        char path[IO_PATH_MAX + 1];
        char temp[IO_PATH_MAX + 8];

        if (name->kind == LOG_FILE_SEGMENT ||
            (name->kind == LOG_FILE_INDEX && !name->is_new && name->number >= first_number &&
             name->number <= last_number))
            continue;
        log_path(recover->log, name->kind, name->number, path);
        (void)snprintf(temp, sizeof(temp), "%s%s", path, name->is_new ? ".new" : "");
        err = io_vfs_unlink(recover->log->options.vfs, temp, reterr);
    }
    return err;
}

static enum ron_err build_indexes(struct log_recover *recover,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log *log = recover->log;
    struct log_index_work work = {0};
    enum ron_err err = RON_ERR_OK;
    bool more = true;

    for (uint32_t i = 0; err == RON_ERR_OK && more; i++) {
        struct log_segment *segment = NULL;

        log_lock(log);
        more = i < log->segments_count;
        if (more && log->segments[i]->sealed && log->segments[i]->index == NULL)
            segment = log->segments[i];
        log_unlock(log);
        if (segment == NULL)
            continue;
        err = log_index_build(log, segment, &work, &segment->index, reterr);
        if (err == RON_ERR_PERSISTENCE_FULL)
            err = RON_ERR_OK; /* the indexer tries again: the log needs no index to be true */
        else if (err == RON_ERR_OK)
            recover->recovery->indexes_built++;
    }
    log_index_work_fini(&work);
    return err;
}

/* A log without an open segment gets one. */
static enum ron_err make_segment(struct io_log *log, uint64_t number, uint64_t before_size,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_segment_head head = {.kind = log->options.kind,
                                   .number = number,
                                   .first_index = log->end.state.index + 1,
                                   .link = log->end.link,
                                   .epoch = log->epoch,
                                   .before_size = before_size};
    const uint64_t size = IO_SEGMENT_HEAD_SIZE + LOG_FIRST_ZEROS;
    enum ron_err err = log_segments_reserve(log, reterr);

    memcpy(head.log_id, log->log_id, sizeof(head.log_id));
    if (err == RON_ERR_OK)
        err = log_ahead_make(log, number, size < log->segment_bytes ? size : log->segment_bytes,
                             reterr);
    if (err == RON_ERR_OK)
        err = log_publish_segment(log, &head, reterr);
    return err;
}

/* The end of the log as the writer and the appenders see it. */
static enum ron_err start_at(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t size = 0;
    enum ron_err err = io_file_size(log->file, &size, reterr);

    if (err != RON_ERR_OK)
        return err;
    log_lock(log);
    log->next_index = log->end.state.index + 1;
    log->place_number = log->file_number;
    log->place_offset = log->end.offset;
    log->place_zeroed = size & ~(uint64_t)(IO_FRAME_ALIGN - 1);
    if (log->end.sealed) { /* all goes to the next one, which could not be made */
        log->place_offset = log->segment_bytes;
        log->place_zeroed = log->segment_bytes + IO_COMMIT_SIZE;
        log->disk_full = true;
    }
    log_unlock(log);
    rt_atomic_store_u64(&log->durable_index, log->end.state.index);
    return RON_ERR_OK;
}

/* From now on past the cache: whole pages of zeros follow, and what the last page has is known. A
 * full disk that has no room for the rest of a page is written to as it was. */
static enum ron_err go_direct(struct io_log *log, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t offset = log->end.offset;
    const size_t phase = (size_t)(offset % LOG_PAGE);
    char path[IO_PATH_MAX + 1];
    uint64_t size = 0, padded;
    size_t read_size = 0;
    enum ron_err err = io_file_size(log->file, &size, reterr);

    padded = io_direct_size(size);
    if (err == RON_ERR_OK && padded > size) {
        err = log_write_zeros(log, log->file, size, padded, reterr);
        if (err == RON_ERR_PERSISTENCE_FULL)
            return RON_ERR_OK;
        if (err == RON_ERR_OK)
            err = io_file_sync(log->file, reterr);
    }
    if (err == RON_ERR_OK)
        err = io_file_read(log->file, offset - phase, log->pages, phase, &read_size, reterr);
    if (err == RON_ERR_OK && read_size != phase)
        err = ron_fail(reterr, RON_ERR_IO, "the last page of log %s is cut", log->options.name);
    if (err != RON_ERR_OK)
        return err;
    log->file = io_file_close(log->file);
    log->ahead_file = io_file_close(log->ahead_file);
    log->direct = true;
    log_path(log, LOG_FILE_SEGMENT, log->file_number, path);
    return io_vfs_open(log->options.vfs, path, IO_OPEN_DIRECT, &log->file, reterr);
}

enum ron_err log_repair(struct log_recover *recover, const struct log_walk *walk,
                        struct ron_errinfo *reterr)
{
    struct io_log *log = recover->log;
    struct log_segment *last = NULL;
    uint64_t first_number = 1, last_number = 0;
    enum ron_err err = RON_ERR_OK;

    log_lock(log);
    if (log->segments_count > 0) {
        last = log->segments[log->segments_count - 1];
        first_number = log->segments[0]->number;
        last_number = last->number;
    }
    log_unlock(log);
    if (last != NULL)
        err = repair_last(recover, last_number, walk, reterr);
    if (err == RON_ERR_OK)
        err = take_ownership(recover, log->end.state.epoch, log->end.state.index, reterr);
    if (err == RON_ERR_OK)
        err = remove_leftovers(recover, first_number, last_number, reterr);
    if (err != RON_ERR_OK)
        return err;
    log->epoch = log->owner.epoch;
    if (last == NULL)
        memcpy(log->end.link.bytes, log->log_id, IO_LINK_SIZE);
    if (last == NULL || log->end.sealed)
        err = make_segment(log, last_number + 1, last != NULL ? log->end.offset : 0, reterr);
    if (err == RON_ERR_PERSISTENCE_FULL && last != NULL)
        err = RON_ERR_OK; /* it can be read; the writer goes on when the next file can be made */
    if (err == RON_ERR_OK)
        err = build_indexes(recover, reterr);
    if (err == RON_ERR_OK && log->options.direct)
        err = go_direct(log, reterr);
    if (err == RON_ERR_OK)
        err = start_at(log, reterr);
    return err;
}
