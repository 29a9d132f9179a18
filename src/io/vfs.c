/*
 * vfs.c - the front of every file system: checks what does not depend on the back end. See vfs.h.
 */
#include "io/vfs.h"

#include <stdio.h>

#include "base/assert.h"
#include "rt/lock.h"

static bool fits_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool io_name_fits(const char *name, size_t size)
{
    if (size == 0 || size > IO_NAME_MAX || name[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!fits_in_name(name[i]))
            return false;
    return true;
}

static enum ron_err check_path(const struct io_vfs *vfs, const char *call, const char *path,
                               struct ron_errinfo *reterr)
{
    size_t size = strnlen(path, IO_PATH_MAX + 1);
    size_t start = 0;

    if (size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s in %s: a path of more than %d bytes", call,
                        vfs->name, (int)IO_PATH_MAX);
    while (start <= size) {
        size_t part_size = strcspn(path + start, "/");

        if (!io_name_fits(path + start, part_size))
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "%s in %s: a path has a part that is empty, longer than %d bytes, "
                            "starts with a dot or has other than A-Z a-z 0-9 . _ -",
                            call, vfs->name, (int)IO_NAME_MAX);
        start += part_size + 1;
    }
    return RON_ERR_OK;
}

struct io_vfs *io_vfs_free(struct io_vfs *vfs)
{
    if (vfs != NULL)
        vfs->ops->free(vfs);
    return NULL;
}

const char *io_vfs_name(const struct io_vfs *vfs)
{
    return vfs->name;
}

enum ron_err io_vfs_open(struct io_vfs *vfs, const char *path, enum io_open how,
                         struct io_file **ret_file, struct ron_errinfo *reterr)
{
    struct io_file *file = NULL;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(how <= IO_OPEN_DIRECT);
    err = check_path(vfs, "open", path, reterr);
    if (err == RON_ERR_OK)
        err = vfs->ops->open(vfs, path, how, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    file->vfs = vfs;
    file->writable = how != IO_OPEN_READ;
    file->direct = how == IO_OPEN_DIRECT;
    file->poisoned = false;
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    *ret_file = file;
    return RON_ERR_OK;
}

/* Bytes of a path up to its last part. */
static size_t parent_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path);
}

enum ron_err io_vfs_rename(struct io_vfs *vfs, const char *from, const char *to,
                           struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    err = check_path(vfs, "rename", from, reterr);
    if (err == RON_ERR_OK)
        err = check_path(vfs, "rename", to, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(parent_size(from) == parent_size(to));
    RON_ASSERT(memcmp(from, to, parent_size(from)) == 0);
    return vfs->ops->rename(vfs, from, to, reterr);
}

enum ron_err io_vfs_unlink(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    err = check_path(vfs, "unlink", path, reterr);
    return err != RON_ERR_OK ? err : vfs->ops->unlink(vfs, path, reterr);
}

enum ron_err io_vfs_make_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    err = check_path(vfs, "mkdir", path, reterr);
    return err != RON_ERR_OK ? err : vfs->ops->make_dir(vfs, path, reterr);
}

void io_vfs_drop_dir(struct io_vfs *vfs, const char *path)
{
    rt_assert_no_lock_held();
    if (vfs->ops->drop_dir != NULL &&
        (path[0] == '\0' || check_path(vfs, "rmdir", path, NULL) == RON_ERR_OK))
        vfs->ops->drop_dir(vfs, path);
}

enum ron_err io_vfs_sync_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (path[0] != '\0')
        err = check_path(vfs, "sync directory", path, reterr);
    return err != RON_ERR_OK ? err : vfs->ops->sync_dir(vfs, path, reterr);
}

enum ron_err io_vfs_list(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                         struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    if (path[0] != '\0')
        err = check_path(vfs, "list", path, reterr);
    return err != RON_ERR_OK ? err : vfs->ops->list(vfs, path, fn, context, reterr);
}

struct io_file *io_file_close(struct io_file *file)
{
    rt_assert_no_lock_held();
    if (file != NULL)
        file->vfs->ops->close(file);
    return NULL;
}

const char *io_file_path(const struct io_file *file)
{
    return file->path;
}

bool io_file_is_direct(const struct io_file *file)
{
    return file->direct;
}

enum ron_err io_file_size(struct io_file *file, uint64_t *ret_size, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return file->vfs->ops->size(file, ret_size, reterr);
}

static bool is_in_pages(uint64_t offset, const struct ron_slice *part)
{
    return ((offset | (uintptr_t)part->data | part->size) & (IO_DIRECT_SIZE - 1)) == 0;
}

enum ron_err io_file_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                          size_t *ret_size, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(!file->direct || is_in_pages(offset, &(struct ron_slice){bytes, size}));
    if (size == 0 || offset > INT64_MAX) { /* beyond every file */
        *ret_size = 0;
        return RON_ERR_OK;
    }
    if (size > INT64_MAX - offset)
        size = (size_t)(INT64_MAX - offset);
    return file->vfs->ops->read(file, offset, bytes, size, ret_size, reterr);
}

static enum ron_err refuse_poisoned(const struct io_file *file, const char *call,
                                    struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_IO,
                    "%s %s/%s: refused, because a write or sync of it failed before", call,
                    file->vfs->name, file->path);
}

enum ron_err io_file_write(struct io_file *file, uint64_t offset, const struct ron_slice *parts,
                           size_t parts_count, struct ron_errinfo *reterr)
{
    uint64_t total = 0;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(file->writable);
    RON_ASSERT(parts_count <= IO_WRITE_PARTS_MAX);
    if (file->poisoned)
        return refuse_poisoned(file, "write", reterr);
    for (size_t i = 0; i < parts_count; i++) {
        RON_ASSERT(parts[i].size <= (size_t)INT64_MAX / IO_WRITE_PARTS_MAX);
        RON_ASSERT(!file->direct || is_in_pages(offset, &parts[i]));
        total += parts[i].size;
    }
    if (offset > INT64_MAX - total)
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL,
                        "write %s/%s: no file is as long as %llu bytes", file->vfs->name,
                        file->path, (unsigned long long)offset);
    if (total == 0)
        return RON_ERR_OK;
    err = file->vfs->ops->write(file, offset, parts, parts_count, reterr);
    if (err == RON_ERR_IO)
        file->poisoned = true;
    return err;
}

enum ron_err io_file_truncate(struct io_file *file, uint64_t size, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(file->writable);
    if (file->poisoned)
        return refuse_poisoned(file, "truncate", reterr);
    if (size > INT64_MAX)
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL,
                        "truncate %s/%s: no file is as long as %llu bytes", file->vfs->name,
                        file->path, (unsigned long long)size);
    err = file->vfs->ops->truncate(file, size, reterr);
    if (err == RON_ERR_IO)
        file->poisoned = true;
    return err;
}

enum ron_err io_file_start(struct io_file *file, uint64_t offset, uint64_t size,
                           struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    RON_ASSERT(file->writable);
    RON_ASSERT(offset <= INT64_MAX);
    RON_ASSERT(size <= INT64_MAX - offset);
    if (file->poisoned)
        return refuse_poisoned(file, "start the sync of", reterr);
    if (size > 0 && file->vfs->ops->start != NULL)
        err = file->vfs->ops->start(file, offset, size, reterr);
    if (err != RON_ERR_OK)
        file->poisoned = true;
    return err;
}

enum ron_err io_file_sync(struct io_file *file, struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    if (file->poisoned)
        return refuse_poisoned(file, "sync", reterr);
    err = file->vfs->ops->sync(file, reterr);
    if (err != RON_ERR_OK)
        file->poisoned = true;
    return err;
}

enum ron_err io_file_write_back(struct io_file *file, uint64_t offset, uint64_t size,
                                struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(file->writable);
    if (file->poisoned)
        return refuse_poisoned(file, "write back", reterr);
    if (file->vfs->ops->write_back == NULL)
        return RON_ERR_OK;
    err = file->vfs->ops->write_back(file, offset, size, reterr);
    if (err != RON_ERR_OK)
        file->poisoned = true;
    return err;
}

void io_file_uncache(struct io_file *file, uint64_t offset, uint64_t size)
{
    rt_assert_no_lock_held();
    RON_ASSERT(offset <= INT64_MAX);
    RON_ASSERT(size <= INT64_MAX - offset);
    if (file->vfs->ops->uncache != NULL)
        file->vfs->ops->uncache(file, offset, size);
}

void io_file_fetch(struct io_file *file, uint64_t offset, uint64_t size)
{
    rt_assert_no_lock_held();
    RON_ASSERT(size > 0); /* to the system 0 is all of it */
    RON_ASSERT(offset <= INT64_MAX);
    RON_ASSERT(size <= INT64_MAX - offset);
    if (file->vfs->ops->fetch != NULL)
        file->vfs->ops->fetch(file, offset, size);
}

enum ron_err io_file_lock(struct io_file *file, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    RON_ASSERT(file->writable);
    return file->vfs->ops->lock(file, reterr);
}

void io_file_forget(struct io_file *file)
{
    rt_assert_no_lock_held();
    if (file->vfs->ops->forget != NULL)
        file->vfs->ops->forget(file);
}
