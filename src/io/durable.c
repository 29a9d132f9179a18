/*
 * durable.c - see durable.h.
 */
#include "io/durable.h"

#include "base/assert.h"
#include "io/replace.h"
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

enum ron_err io_durable_replace(struct io_vfs *vfs, const char *path, struct ron_slice bytes,
                                struct ron_errinfo *reterr)
{
    struct io_replace replace;
    enum ron_err err = io_replace_begin(&replace, vfs, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_file_write(replace.file, 0, &bytes, 1, reterr);
    if (err == RON_ERR_OK)
        return io_replace_commit(&replace, reterr);
    io_replace_abandon(&replace);
    return err;
}
