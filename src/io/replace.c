/*
 * replace.c - a file that appears whole or not at all. See replace.h.
 */
#include "io/replace.h"

#include "base/assert.h"

/* The directory a path is in; "" for the root. */
static void dir_of(const char *path, char ret_dir[IO_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);

    memcpy(ret_dir, path, size);
    ret_dir[size] = '\0';
}

static enum ron_err remove_leftover(struct io_vfs *vfs, const char *path,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = io_vfs_unlink(vfs, path, &info);

    if (err == RON_ERR_OK || err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (reterr != NULL)
        *reterr = info;
    return err;
}

enum ron_err io_replace_begin(struct io_replace *replace, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr)
{
    size_t size = strlen(path);
    struct io_file *file = NULL;
    enum ron_err err;

    if (size + sizeof(".new") > sizeof(replace->temp))
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a path of %zu bytes, at most %zu: %s", size,
                        sizeof(replace->temp) - sizeof(".new"), path);
    memcpy(replace->path, path, size + 1);
    memcpy(replace->temp, path, size);
    memcpy(replace->temp + size, ".new", sizeof(".new"));
    err = remove_leftover(vfs, replace->temp, reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, replace->temp, IO_OPEN_CREATE, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    replace->vfs = vfs;
    replace->file = file;
    replace->past = NULL;
    return RON_ERR_OK;
}

/* And where there is no way past the cache, or what is no page: out of it. */
static enum ron_err write_out(struct io_file *file, uint64_t offset, struct ron_slice part,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = io_file_write(file, offset, &part, 1, reterr);

    if (err == RON_ERR_OK)
        err = io_file_write_back(file, offset, part.size, reterr);
    if (err == RON_ERR_OK)
        io_file_uncache(file, offset, part.size);
    return err;
}

enum ron_err io_replace_write_past(struct io_replace *replace, uint64_t offset,
                                   struct ron_slice part, struct ron_errinfo *reterr)
{
    const size_t pages_size = part.size - part.size % IO_DIRECT_SIZE;
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(replace->file != NULL);
    if (pages_size > 0 && replace->past == NULL)
        err = io_vfs_open(replace->vfs, replace->temp, IO_OPEN_DIRECT, &replace->past, &info);
    if (err == RON_ERR_BUSY) /* no descriptor is left for it: nobody need know */
        return write_out(replace->file, offset, part, reterr);
    if (err != RON_ERR_OK) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    if (pages_size > 0)
        err = write_out(replace->past, offset, ron_slice_of(part.data, pages_size), reterr);
    if (err == RON_ERR_OK && pages_size < part.size)
        err = write_out(replace->file, offset + pages_size,
                        ron_slice_of(part.data + pages_size, part.size - pages_size), reterr);
    return err;
}

/* As well as it goes: with the name durably gone, its room is free again. */
static void give_up(struct io_replace *replace) RON_BLOCKS
{
    char dir[IO_PATH_MAX + 1];

    dir_of(replace->path, dir);
    if (remove_leftover(replace->vfs, replace->temp, NULL) == RON_ERR_OK)
        (void)!io_vfs_sync_dir(replace->vfs, dir, NULL);
}

enum ron_err io_replace_commit(struct io_replace *replace, struct ron_errinfo *reterr)
{
    char dir[IO_PATH_MAX + 1];
    enum ron_err err;

    RON_ASSERT(replace->file != NULL);
    replace->past = io_file_close(replace->past);
    err = io_file_sync(replace->file, reterr); /* of the file, whoever wrote to it */
    replace->file = io_file_close(replace->file);
    if (err == RON_ERR_OK)
        err = io_vfs_rename(replace->vfs, replace->temp, replace->path, reterr);
    if (err != RON_ERR_OK) {
        give_up(replace);
        return err;
    }
    dir_of(replace->path, dir);
    return io_vfs_sync_dir(replace->vfs, dir, reterr);
}

void io_replace_abandon(struct io_replace *replace)
{
    if (replace->file == NULL)
        return;
    replace->past = io_file_close(replace->past);
    replace->file = io_file_close(replace->file);
    give_up(replace);
}
