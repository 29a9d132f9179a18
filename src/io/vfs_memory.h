/*
 * vfs_memory.h - a file system in memory that knows what a crash would leave.
 *
 * Every file has bytes that are durable and a list of changes since (writes, truncations), every
 * directory the names that are durable and a list of changes since. Reads see all of it; a crash
 * keeps what a plan says. In the simulator each call is a scheduling point; the memory belongs to
 * whoever made it, so a disk outlives the node that crashed.
 */
#ifndef RON_IO_VFS_MEMORY_H
#define RON_IO_VFS_MEMORY_H

#include "io/vfs.h"

enum { IO_MEMORY_CHANGES_MAX = 65536 }; /* unsynced at once; RON_ERR_BUSY beyond */
struct io_memory_options {
    uint64_t bytes_max; /* RON_ERR_PERSISTENCE_FULL beyond; 0: no bound of its own */
};
/* options may be NULL. */
enum ron_err io_vfs_memory_new(const struct io_memory_options *options, struct io_vfs **ret_vfs,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* How many bytes of the file were said to be hardly read soon (io_file_uncache). */
uint64_t io_memory_uncached(struct io_file *file) RON_BLOCKS;

/* Changes not yet durable, in the order they were made: 0..count-1. */
size_t io_memory_unsynced_count(const struct io_vfs *vfs);
struct io_memory_change {
    enum io_change_kind { IO_CHANGE_WRITE, IO_CHANGE_TRUNCATE, IO_CHANGE_NAME } kind;
    const char *path;      /* until the next call that changes anything */
    uint64_t offset, size; /* of a write; size of a truncation */
};
struct io_memory_change io_memory_unsynced(const struct io_vfs *vfs, size_t index);

/* What survives: the changes whose bit (index % 8 of byte index / 8) of `keep` is set, made in
 * their order, and of change `torn`, a write that is kept, only the first torn_bytes (torn ==
 * SIZE_MAX: none is torn). A disk tears where (offset + torn_bytes) % IO_SECTOR is 0. A kept change
 * of a name leaves its names as they were right after it; what no name leads to is gone. */
enum { IO_SECTOR = 512 };
struct io_crash_plan {
    const uint8_t *keep;
    size_t torn;
    uint64_t torn_bytes;
};
/* A new file system as it would be found after a crash now. All files closed or not; `vfs` itself
 * does not change. */
enum ron_err io_memory_crash(const struct io_vfs *vfs, const struct io_crash_plan *plan,
                             struct io_vfs **ret_vfs, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
