/*
 * log_early.c - pages of a group that are written before its end is known. See log_format.h for why
 * they may be.
 *
 * Whoever fills the open group (`filling`: nobody else changes it, and it is not closed meanwhile)
 * writes whole pages of it, a piece worth a write at a time, from memory that is still in its
 * processor's cache. While the disk is idle their way to it is started at once. While the writer
 * syncs the group before, it is not, or that sync would wait for them, too: they are in the
 * system's cache when their own comes. The end of a group is the writer's alone.
 */
#include "base/assert.h"
#include "io/log_impl.h"

struct piece {
    uint64_t number; /* of the segment */
    size_t size;     /* 0: too little, or not now */
    bool start;
};

static struct piece next_piece(const struct io_log *log, size_t ready) RON_NEEDS(storage)
{
    const struct log_group *group = log->open;
    const uint64_t end = (group->offset + ready) & ~(uint64_t)(LOG_PAGE - 1);
    const uint64_t written = group->offset + group->written_size;
    struct piece piece = {.number = log->place_number, .start = log->writing == NULL};

    RON_ASSERT(log->filling);
    if (!log->broken && !group->in_next && end >= written + log->early_bytes)
        piece.size = (size_t)(end - written);
    return piece;
}

/* A file is one thread's to write: those who fill, one at a time, have one of their own. It has no
 * name yet if the group that starts its segment is the one under way. */
static enum ron_err open_file(struct io_log *log, uint64_t number) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];

    if (log->early_file != NULL)
        return RON_ERR_OK;
    log->early_number = number;
    log_path(log, LOG_FILE_SEGMENT, number, path);
    return io_vfs_open(log->options.vfs, path, IO_OPEN_WRITE, &log->early_file, NULL);
}

void log_write_early(struct io_log *log, struct log_group *group, size_t ready)
{
    const uint64_t offset = group->offset + group->written_size;
    struct ron_slice part = {.data = group->bytes + group->written_size};
    struct ron_errinfo info = {0};
    struct piece piece;
    enum ron_err err;

    if (log->direct)
        return;
    log_lock(log);
    RON_ASSERT(log->open == group);
    piece = next_piece(log, ready);
    log_unlock(log);
    part.size = piece.size;
    if (log->early_number != piece.number) /* it may be dropped, and would keep its room */
        log->early_file = io_file_close(log->early_file);
    if (piece.size == 0 || open_file(log, piece.number) != RON_ERR_OK)
        return; /* the writer will write it */
    err = io_file_write(log->early_file, offset, &part, 1, &info);
    if (err == RON_ERR_OK && piece.start)
        err = io_file_start(log->early_file, offset, piece.size, &info);
    if (err != RON_ERR_OK) {
        log_break(log, &info);
        return;
    }
    log_lock(log);
    group->written_size += piece.size;
    log->stats.early_bytes += piece.size;
    if (!piece.start)
        log->stats.meanwhile_bytes += piece.size;
    log_unlock(log);
}
