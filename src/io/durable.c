/*
 * durable.c - see durable.h.
 */
#include "io/durable.h"

#include <stdio.h>

#include "base/assert.h"
#include "rt/lock.h"

void io_dir_of(const char *path, char ret_dir[IO_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);

    RON_ASSERT(size <= IO_PATH_MAX);
    memcpy(ret_dir, path, size);
    ret_dir[size] = '\0';
}

enum ron_err io_durable_dir(struct io_vfs *vfs, const char *dir, struct ron_errinfo *reterr)
{
    char parent[IO_PATH_MAX + 1], next[IO_PATH_MAX + 1];
    enum ron_err err;

    rt_assert_no_lock_held();
    err = io_vfs_make_dir(vfs, dir, reterr);
    if (err != RON_ERR_OK)
        return err;
    /* A name is durable once the directory that holds it is synced: every parent, to the root. */
    io_dir_of(dir, parent);
    for (;;) {
        err = io_vfs_sync_dir(vfs, parent, reterr);
        if (err != RON_ERR_OK || parent[0] == '\0')
            return err;
        io_dir_of(parent, next);
        memcpy(parent, next, sizeof(parent));
    }
}

static enum ron_err write_new(struct io_vfs *vfs, const char *path, struct ron_slice bytes,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_unlink(vfs, path, NULL); /* of a replacement that was cut off */

    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND)
        return ron_fail(reterr, err, "%s cannot be removed", path);
    err = io_vfs_open(vfs, path, IO_OPEN_CREATE, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_file_write(file, 0, &bytes, 1, reterr);
    if (err == RON_ERR_OK)
        err = io_file_sync(file, reterr);
    file = io_file_close(file);
    return err;
}

enum ron_err io_durable_replace(struct io_vfs *vfs, const char *path, struct ron_slice bytes,
                                struct ron_errinfo *reterr)
{
    char temporary[IO_PATH_MAX + 1], dir[IO_PATH_MAX + 1];
    int size = snprintf(temporary, sizeof(temporary), "%s.new", path);
    enum ron_err err;

    rt_assert_no_lock_held();
    if (size < 0 || (size_t)size >= sizeof(temporary))
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s.new", path);
    err = write_new(vfs, temporary, bytes, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_rename(vfs, temporary, path, reterr);
    if (err != RON_ERR_OK)
        return err;
    io_dir_of(path, dir);
    return io_vfs_sync_dir(vfs, dir, reterr);
}
