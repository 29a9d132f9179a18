/*
 * vfs.h - the only way to a file.
 *
 * A vfs is one directory tree with an owner: posix (a real directory), memory (tests, the simulator
 * and the engine without a disk), faulty (either of them, with every way a disk can fail). Paths
 * are relative to its root: 1..IO_PATH_MAX bytes, parts of [A-Za-z0-9._-] joined by '/', none empty
 * or starting with '.'. Files are made 0600, directories 0700.
 *
 * What is durable: bytes written to a file after io_file_sync of it; a name made, replaced or
 * removed after io_vfs_sync_dir of its directory. Nothing else, in no order: a crash may keep any
 * part of what was not synced. A failed sync is final: the bytes may be gone although a later sync
 * succeeds, so the file answers RON_ERR_IO to every further write and sync until it is closed. So
 * is a write or truncation that failed with RON_ERR_IO; one that found no room is not.
 *
 * Errors of every call: RON_ERR_PERSISTENCE_FULL (ENOSPC, EDQUOT, EFBIG), RON_ERR_NOT_FOUND,
 * RON_ERR_FORBIDDEN (EACCES, EPERM, EROFS; a symbolic link, a device, something that others may
 * write to), RON_ERR_BUSY (too many open files), RON_ERR_CONFLICT (exists, locked, a directory
 * where a file should be or the reverse), RON_ERR_MALFORMED (not such a path), RON_ERR_NO_MEMORY,
 * else RON_ERR_IO; the message names the call and the path. Every call may block for as long as the
 * disk likes: tasks with a deadline leave them to an io helper.
 *
 * Threads: a vfs may be used by many; a file by many for reads and hints, by one for everything
 * else.
 */
#ifndef RON_IO_VFS_H
#define RON_IO_VFS_H

#include "base/bytes.h"
#include "rt/lock_classes.h"

enum {
    IO_PATH_MAX = 240,
    IO_WRITE_PARTS_MAX = 64, /* slices of one write */
    IO_NAME_MAX = 128,       /* one part of a path */
    IO_DIRECT_SIZE = 4096,   /* what is written past the cache comes in multiples of it */
};

/* As many bytes in whole such pages; the first page that begins at or behind an address. */
static inline uint64_t io_direct_size(uint64_t size)
{
    return (size + IO_DIRECT_SIZE - 1) & ~(uint64_t)(IO_DIRECT_SIZE - 1);
}
static inline uint8_t *io_direct_page(void *memory)
{
    return (uint8_t *)memory + (-(uintptr_t)memory & (uintptr_t)(IO_DIRECT_SIZE - 1));
}

enum io_open {
    IO_OPEN_READ,   /* must exist */
    IO_OPEN_WRITE,  /* must exist; reads and writes */
    IO_OPEN_CREATE, /* must not exist; reads and writes */
    /* Must exist; reads and writes, past the system's cache where system and file system can do
     * that: offset, address and size of every part are multiples of IO_DIRECT_SIZE. What other
     * handles read is what was written, as ever. */
    IO_OPEN_DIRECT,
};

struct io_vfs;  /* opaque; freed by its owner after all its files are closed */
struct io_file; /* opaque */

/* Accepts NULL, returns NULL. */
struct io_vfs *io_vfs_free(struct io_vfs *vfs);
/* Its root as a person would write it, for messages: "ron-data", "memory". */
const char *io_vfs_name(const struct io_vfs *vfs);

enum ron_err io_vfs_open(struct io_vfs *vfs, const char *path, enum io_open how,
                         struct io_file **ret_file,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Both names in one directory, both of files; replaces `to`. */
enum ron_err io_vfs_rename(struct io_vfs *vfs, const char *from, const char *to,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* A file; open ones can be used until they are closed. */
enum ron_err io_vfs_unlink(struct io_vfs *vfs, const char *path,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* And its parents; fine if it is there already. */
enum ron_err io_vfs_make_dir(struct io_vfs *vfs, const char *path,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Remove a directory if nothing is in it; "" is the root. A back end may leave it where it is. */
void io_vfs_drop_dir(struct io_vfs *vfs, const char *path) RON_BLOCKS;
/* "" is the root. */
enum ron_err io_vfs_sync_dir(struct io_vfs *vfs, const char *path,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* One entry of a directory; return false to stop. */
typedef bool io_list_fn(void *context, const char *name, bool is_dir);
/* In ascending byte order, without the names that no path can spell. RON_ERR_TOO_LARGE beyond
 * IO_LIST_MAX entries. */
enum { IO_LIST_MAX = 65536 };
enum ron_err io_vfs_list(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Accepts NULL, returns NULL; syncs nothing. Drops the lock, if it has one. */
struct io_file *io_file_close(struct io_file *file) RON_BLOCKS;
const char *io_file_path(const struct io_file *file);
bool io_file_is_direct(const struct io_file *file); /* IO_OPEN_DIRECT */
enum ron_err io_file_size(struct io_file *file, uint64_t *ret_size,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Read up to `size` bytes; fewer only at the end of the file. */
enum ron_err io_file_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                          size_t *ret_size, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Write all parts one after the other, or fail having written any part of them. A gap before
 * `offset` reads as zeros. Writing, cutting and locking need IO_OPEN_WRITE or IO_OPEN_CREATE. */
enum ron_err io_file_write(struct io_file *file, uint64_t offset, const struct ron_slice *parts,
                           size_t parts_count, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err io_file_truncate(struct io_file *file, uint64_t size,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Begin to make written bytes durable and do not wait for it, where the system can do that: the
 * sync that follows has less left to do. Promises nothing; an error is as final as one of a write.
 */
enum ron_err io_file_start(struct io_file *file, uint64_t offset, uint64_t size,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Make the bytes durable (fdatasync), and the size where it grew. */
enum ron_err io_file_sync(struct io_file *file, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Have the disk take bytes that were written, and wait for it, so that a later sync of this or
 * another file does not wait behind them. Makes nothing durable; a failure is final like a sync's.
 */
enum ron_err io_file_write_back(struct io_file *file, uint64_t offset, uint64_t size,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* A hint: these bytes (size 0: all from offset on) will hardly be read soon, so the system need not
 * keep them in memory. Only what is written back leaves it. */
void io_file_uncache(struct io_file *file, uint64_t offset, uint64_t size) RON_BLOCKS;
/* A hint: these bytes (one at least) will be read at once, after others; the system may begin to
 * fetch them. */
void io_file_fetch(struct io_file *file, uint64_t offset, uint64_t size) RON_BLOCKS;
/* Own the file among processes until it is closed; RON_ERR_CONFLICT when another does. */
enum ron_err io_file_lock(struct io_file *file, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* A directory of the system; made (0700, its parents not) and durable where it is missing and
 * `create` is set. `path` may be absolute. RON_ERR_FORBIDDEN if others may write to it. */
enum ron_err io_vfs_posix_new(const char *path, bool create, struct io_vfs **ret_vfs,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* ---- For the back ends ---- */

/* What a back end implements. Paths are checked, parts counted and poisoned files refused before it
 * is asked; it fills reterr in the words of this header. */
struct io_vfs_ops {
    enum ron_err (*open)(struct io_vfs *vfs, const char *path, enum io_open how,
                         struct io_file **ret_file, struct ron_errinfo *reterr);
    enum ron_err (*rename)(struct io_vfs *vfs, const char *from, const char *to,
                           struct ron_errinfo *reterr);
    enum ron_err (*unlink)(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr);
    enum ron_err (*make_dir)(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr);
    void (*drop_dir)(struct io_vfs *vfs, const char *path); /* may be NULL */
    enum ron_err (*sync_dir)(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr);
    enum ron_err (*list)(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                         struct ron_errinfo *reterr);
    void (*free)(struct io_vfs *vfs);

    void (*close)(struct io_file *file);
    enum ron_err (*size)(struct io_file *file, uint64_t *ret_size, struct ron_errinfo *reterr);
    enum ron_err (*read)(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                         size_t *ret_size, struct ron_errinfo *reterr);
    enum ron_err (*write)(struct io_file *file, uint64_t offset, const struct ron_slice *parts,
                          size_t parts_count, struct ron_errinfo *reterr);
    enum ron_err (*truncate)(struct io_file *file, uint64_t size, struct ron_errinfo *reterr);
    enum ron_err (*start)(struct io_file *file, uint64_t offset, uint64_t size,
                          struct ron_errinfo *reterr); /* may be NULL */
    enum ron_err (*sync)(struct io_file *file, struct ron_errinfo *reterr);
    enum ron_err (*lock)(struct io_file *file, struct ron_errinfo *reterr);
    /* May be NULL: nothing ever waits to be written. */
    enum ron_err (*write_back)(struct io_file *file, uint64_t offset, uint64_t size,
                               struct ron_errinfo *reterr);
    /* Hints, may be NULL. */
    void (*uncache)(struct io_file *file, uint64_t offset, uint64_t size);
    void (*fetch)(struct io_file *file, uint64_t offset, uint64_t size);
    /* For fault injection, may be NULL: what is not yet synced of the file will not survive a
     * crash, whatever is synced later. */
    void (*forget)(struct io_file *file);
};
struct io_vfs {
    const struct io_vfs_ops *ops;
    const char *name; /* owned by the back end */
};
/* Filled by the front; the back end allocates it in front of its own members. */
struct io_file {
    struct io_vfs *vfs;
    bool writable;
    bool direct;
    bool poisoned; /* a write or sync failed: what is on disk is unknown */
    char path[IO_PATH_MAX + 1];
};
/* Ask the back end to forget, if it can. */
void io_file_forget(struct io_file *file) RON_BLOCKS;
/* May a directory entry have this name (the rule for parts of paths)? */
bool io_name_fits(const char *name, size_t size);

#endif
