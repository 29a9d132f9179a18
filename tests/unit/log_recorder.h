/*
 * log_recorder.h - for tests: a file system in front of one in memory that tells of every moment
 * before a sync, and writes sector by sector: any of them may be lost by itself.
 *
 * All calls that change something are serialised, so the moments are whole: what a crash between
 * two syncs can leave is a subset of the changes that are unsynced then. A sync can be held before
 * it enters, so that others write meanwhile.
 */
#ifndef RON_TESTS_LOG_RECORDER_H
#define RON_TESTS_LOG_RECORDER_H

#include <pthread.h>

#include "io/vfs.h"
#include "support.h"

enum { RECORDER_SECTOR = 512 };

struct recorder {
    struct io_vfs vfs; /* first */
    struct io_vfs *below;
    void (*before_sync)(struct recorder *recorder);
    void (*hold_sync)(struct recorder *recorder, const char *path); /* before that; or NULL */
    void *context;
    pthread_mutex_t mutex;
};
struct recorder_file {
    struct io_file file; /* first */
    struct io_file *below;
};

static inline struct recorder *recorder_enter(struct io_vfs *vfs)
{
    struct recorder *recorder = (struct recorder *)vfs;

    assert_int_equal(pthread_mutex_lock(&recorder->mutex), 0);
    return recorder;
}
static inline enum ron_err recorder_leave(struct recorder *recorder, enum ron_err err)
{
    assert_int_equal(pthread_mutex_unlock(&recorder->mutex), 0);
    return err;
}
static inline struct io_file *recorder_below(struct io_file *file)
{
    return ((struct recorder_file *)file)->below;
}

static enum ron_err recorder_open(struct io_vfs *vfs, const char *path, enum io_open how,
                                  struct io_file **ret_file, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(vfs);
    struct recorder_file *file = ron_mem_alloc(sizeof(*file));
    enum ron_err err;

    assert_non_null(file);
    /* It writes in pieces of a sector. */
    err = io_vfs_open(recorder->below, path, how == IO_OPEN_DIRECT ? IO_OPEN_WRITE : how,
                      &file->below, reterr);
    if (err == RON_ERR_OK)
        *ret_file = &file->file;
    else
        ron_mem_free(file);
    return recorder_leave(recorder, err);
}
static enum ron_err recorder_rename(struct io_vfs *vfs, const char *from, const char *to,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(vfs);

    return recorder_leave(recorder, io_vfs_rename(recorder->below, from, to, reterr));
}
static enum ron_err recorder_unlink(struct io_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(vfs);

    return recorder_leave(recorder, io_vfs_unlink(recorder->below, path, reterr));
}
static enum ron_err recorder_make_dir(struct io_vfs *vfs, const char *path,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(vfs);

    return recorder_leave(recorder, io_vfs_make_dir(recorder->below, path, reterr));
}
static enum ron_err recorder_sync_dir(struct io_vfs *vfs, const char *path,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(vfs);

    recorder->before_sync(recorder);
    return recorder_leave(recorder, io_vfs_sync_dir(recorder->below, path, reterr));
}
static enum ron_err recorder_list(struct io_vfs *vfs, const char *path, io_list_fn *fn,
                                  void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_vfs_list(((struct recorder *)vfs)->below, path, fn, context, reterr);
}
static void recorder_free(struct io_vfs *vfs)
{
    assert_int_equal(pthread_mutex_destroy(&((struct recorder *)vfs)->mutex), 0);
}
static void recorder_close(struct io_file *file) RON_BLOCKS
{
    io_file_close(recorder_below(file));
    ron_mem_free(file);
}
static enum ron_err recorder_size(struct io_file *file, uint64_t *ret_size,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_size(recorder_below(file), ret_size, reterr);
}
static enum ron_err recorder_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                  size_t *ret_size, struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_read(recorder_below(file), offset, bytes, size, ret_size, reterr);
}
static enum ron_err recorder_write(struct io_file *file, uint64_t offset,
                                   const struct ron_slice *parts, size_t parts_count,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(file->vfs);
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; i < parts_count; i++) {
        struct ron_slice left = parts[i];

        while (err == RON_ERR_OK && left.size > 0) {
            const size_t room = RECORDER_SECTOR - (size_t)(offset % RECORDER_SECTOR);
            const struct ron_slice sector = {left.data, left.size < room ? left.size : room};

            err = io_file_write(recorder_below(file), offset, &sector, 1, reterr);
            offset += sector.size;
            left = ron_slice_of(left.data + sector.size, left.size - sector.size);
        }
    }
    return recorder_leave(recorder, err);
}
static enum ron_err recorder_truncate(struct io_file *file, uint64_t size,
                                      struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = recorder_enter(file->vfs);

    return recorder_leave(recorder, io_file_truncate(recorder_below(file), size, reterr));
}
static enum ron_err recorder_sync(struct io_file *file, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct recorder *recorder = (struct recorder *)file->vfs;

    if (recorder->hold_sync != NULL)
        recorder->hold_sync(recorder, file->path);
    (void)recorder_enter(file->vfs);
    recorder->before_sync(recorder);
    return recorder_leave(recorder, io_file_sync(recorder_below(file), reterr));
}
static enum ron_err recorder_lock(struct io_file *file, struct ron_errinfo *reterr) RON_BLOCKS
{
    return io_file_lock(recorder_below(file), reterr);
}

static const struct io_vfs_ops recorder_ops = {
    .open = recorder_open,
    .rename = recorder_rename,
    .unlink = recorder_unlink,
    .make_dir = recorder_make_dir,
    .sync_dir = recorder_sync_dir,
    .list = recorder_list,
    .free = recorder_free,
    .close = recorder_close,
    .size = recorder_size,
    .read = recorder_read,
    .write = recorder_write,
    .truncate = recorder_truncate,
    .sync = recorder_sync,
    .lock = recorder_lock,
};

static inline void recorder_init(struct recorder *recorder, struct io_vfs *below,
                                 void (*before_sync)(struct recorder *recorder), void *context)
{
    *recorder = (struct recorder){.vfs = {.ops = &recorder_ops, .name = "recorder"},
                                  .below = below,
                                  .before_sync = before_sync,
                                  .context = context};
    assert_int_equal(pthread_mutex_init(&recorder->mutex, NULL), 0);
}

#endif
