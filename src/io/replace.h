/*
 * replace.h - a file that appears whole or not at all.
 *
 * Written as `<path>.new`, synced, renamed to `<path>`, its directory synced: a crash at any moment
 * leaves what was there before or the new file, and at most a `.new` that the next attempt removes.
 * One thread, one writer of a path at a time.
 */
#ifndef RON_IO_REPLACE_H
#define RON_IO_REPLACE_H

#include "io/vfs.h"

struct io_replace {
    struct io_vfs *vfs;   /* borrowed */
    struct io_file *file; /* of `temp`; write to it freely; NULL once ended */
    struct io_file *past; /* the same past the system's cache; NULL: not yet */
    char path[IO_PATH_MAX + 1];
    char temp[IO_PATH_MAX + 1];
};

/* Make `<path>.new`, empty; one that a crash left behind is removed. The directory must exist.
 * On RON_ERR_OK the caller calls commit or abandon. RON_ERR_TOO_LARGE for a path beyond the limit.
 */
enum ron_err io_replace_begin(struct io_replace *replace, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Write what will not be read by many: whole pages past the system's cache, what is left at the end
 * out of it at once. So the disk takes it piece by piece, and a sync of another file does not wait
 * behind all of it. Offset and address are multiples of IO_DIRECT_SIZE; nobody else writes to the
 * same pages. */
enum ron_err io_replace_write_past(struct io_replace *replace, uint64_t offset,
                                   struct ron_slice part,
                                   struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Durable and named `path` on RON_ERR_OK. On failure of the last step, the sync of the directory,
 * a crash may leave either file; on any earlier one nothing has changed and `.new` is gone. */
enum ron_err io_replace_commit(struct io_replace *replace,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Close and remove `.new`; does nothing once ended. What cannot be removed stays for the next
 * attempt. */
void io_replace_abandon(struct io_replace *replace) RON_BLOCKS;

#endif
