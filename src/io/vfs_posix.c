/*
 * vfs_posix.c - a directory of the system. See vfs.h.
 *
 * The root is held open; every path is walked from there, one part at a time, without following a
 * symbolic link, so that nobody can lead ron out of its directory. This is the only file of ron
 * that opens others (tools/tidy).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/vfs_names.h"

enum { FILE_MODE = 0600, DIR_MODE = 0700, OTHERS_WRITE = S_IWGRP | S_IWOTH, INTERRUPTS_MAX = 1000 };

struct posix_vfs {
    struct io_vfs vfs; /* first */
    int root_fd;
    char name[]; /* the path it was opened by */
};
struct posix_file {
    struct io_file file; /* first */
    int fd;
};

static struct posix_vfs *of_vfs(struct io_vfs *vfs)
{
    return (struct posix_vfs *)vfs;
}

static struct posix_file *of_file(struct io_file *file)
{
    return (struct posix_file *)file;
}

static enum ron_err err_of(int sys_errno)
{
    switch (sys_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return RON_ERR_PERSISTENCE_FULL;
    case ENOENT:
        return RON_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP: /* a symbolic link, and O_NOFOLLOW */
        return RON_ERR_FORBIDDEN;
    case EMFILE:
    case ENFILE:
        return RON_ERR_BUSY;
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case EWOULDBLOCK: /* of flock */
        return RON_ERR_CONFLICT;
    default:
        return RON_ERR_IO;
    }
}

static enum ron_err fail(struct ron_errinfo *reterr, const char *call, const char *root,
                         const char *path, int sys_errno)
{
    return ron_fail_sys(reterr, err_of(sys_errno), sys_errno, "%s %s%s%s: %s", call, root,
                        path[0] == '\0' ? "" : "/", path, strerrordesc_np(sys_errno));
}

static enum ron_err fail_file(struct ron_errinfo *reterr, const char *call,
                              const struct posix_file *file, int sys_errno)
{
    return fail(reterr, call, file->file.vfs->name, file->file.path, sys_errno);
}

/* Only the owner may write to anything ron trusts. */
static enum ron_err check_mode(const struct stat *status, const char *call, const char *root,
                               const char *path, struct ron_errinfo *reterr)
{
    if ((status->st_mode & OTHERS_WRITE) == 0)
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_FORBIDDEN,
                    "%s %s%s%s: others may write to it (mode %04o); chmod go-w it", call, root,
                    path[0] == '\0' ? "" : "/", path, (unsigned)(status->st_mode & 07777));
}

/* ---- Directories ---- */

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Open `name` below dir_fd as a directory, or set errno; ELOOP for a symbolic link. */
static int open_part(int dir_fd, const char *name)
{
    struct stat status;
    int fd = openat(dir_fd, name, OPEN_DIR);

    if (fd < 0 && errno == ENOTDIR) {
        bool is_link = fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISLNK(status.st_mode);
        errno = is_link ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Open the directory named by the first `size` bytes of path, the root for 0; make what is missing
 * if `create` is set. The caller closes *ret_fd. */
static enum ron_err open_dir(const struct posix_vfs *vfs, const char *call, const char *path,
                             size_t size, bool create, int *ret_fd, struct ron_errinfo *reterr)
{
    int fd = openat(vfs->root_fd, ".", OPEN_DIR);
    size_t start = 0;

    if (fd < 0)
        return fail(reterr, call, vfs->name, "", errno);
    while (start < size) {
        size_t part_size = strcspn(path + start, "/");
        char part[IO_NAME_MAX + 1];
        struct stat status;
        enum ron_err err = RON_ERR_OK;
        int next_fd;

        RON_ASSERT(part_size <= IO_NAME_MAX);
        memcpy(part, path + start, part_size);
        part[part_size] = '\0';
        start += part_size + 1;
        if (create && mkdirat(fd, part, DIR_MODE) != 0 && errno != EEXIST)
            err = fail(reterr, call, vfs->name, path, errno);
        next_fd = err == RON_ERR_OK ? open_part(fd, part) : -1;
        if (err == RON_ERR_OK && next_fd < 0)
            err = fail(reterr, call, vfs->name, path, errno);
        (void)close(fd);
        fd = next_fd;
        if (err == RON_ERR_OK && fstat(fd, &status) != 0)
            err = fail(reterr, call, vfs->name, path, errno);
        if (err == RON_ERR_OK)
            err = check_mode(&status, call, vfs->name, path, reterr);
        if (err != RON_ERR_OK) {
            if (fd >= 0)
                (void)close(fd);
            return err;
        }
    }
    *ret_fd = fd;
    return RON_ERR_OK;
}

/* Open the directory that holds `path`; *ret_leaf is its last part. */
static enum ron_err open_parent(const struct posix_vfs *vfs, const char *call, const char *path,
                                int *ret_fd, const char **ret_leaf, struct ron_errinfo *reterr)
{
    const char *slash = strrchr(path, '/');

    *ret_leaf = slash == NULL ? path : slash + 1;
    return open_dir(vfs, call, path, slash == NULL ? 0 : (size_t)(slash - path), false, ret_fd,
                    reterr);
}

static enum ron_err posix_make_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    int fd;
    enum ron_err err = open_dir(of_vfs(vfs), "mkdir", path, strlen(path), true, &fd, reterr);

    if (err == RON_ERR_OK)
        (void)close(fd);
    return err;
}

static enum ron_err posix_sync_dir(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    int fd;
    enum ron_err err = open_dir(of_vfs(vfs), "sync directory", path, strlen(path), false, &fd,
                                reterr);

    if (err != RON_ERR_OK)
        return err;
    if (fsync(fd) != 0)
        err = fail(reterr, "sync directory", vfs->name, path, errno);
    (void)close(fd);
    return err;
}

static bool is_dir(int dir_fd, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

static enum ron_err posix_list(struct io_vfs *vfs, const char *path, io_list_fn *fn, void *context,
                               struct ron_errinfo *reterr)
{
    struct io_names names;
    const struct dirent *entry;
    DIR *dir;
    int fd;
    enum ron_err err = open_dir(of_vfs(vfs), "list", path, strlen(path), false, &fd, reterr);

    if (err != RON_ERR_OK)
        return err;
    dir = fdopendir(fd);
    if (dir == NULL) {
        err = fail(reterr, "list", vfs->name, path, errno);
        (void)close(fd);
        return err;
    }
    io_names_init(&names);
    for (;;) {
        errno = 0;
        entry = readdir(dir);
        if (entry == NULL) {
            if (errno != 0)
                err = fail(reterr, "list", vfs->name, path, errno);
            break;
        }
        if (!io_name_fits(entry->d_name, strlen(entry->d_name)))
            continue;
        err = io_names_add(&names, entry->d_name, is_dir(fd, entry), reterr);
        if (err != RON_ERR_OK) {
            err = ron_wrap(reterr, err, "list %s/%s", vfs->name, path);
            break;
        }
    }
    (void)closedir(dir);
    if (err == RON_ERR_OK)
        err = io_names_tell(&names, fn, context, reterr);
    io_names_fini(&names);
    return err;
}

/* ---- Names ---- */

/* Past the cache from now on, if the file system can do that with our pages; a system that does not
 * say so (before Linux 6.1) is not asked to. */
static void make_direct(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx status;
    const int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) != 0 && status.stx_dio_offset_align != 0 &&
        status.stx_dio_offset_align <= IO_DIRECT_SIZE && status.stx_dio_mem_align <= IO_DIRECT_SIZE)
        (void)fcntl(fd, F_SETFL, flags | O_DIRECT);
#else
    (void)fd;
#endif
}

static enum ron_err posix_open(struct io_vfs *vfs, const char *path, enum io_open how,
                               struct io_file **ret_file, struct ron_errinfo *reterr)
{
    static const int flags[] = {[IO_OPEN_READ] = O_RDONLY,
                                [IO_OPEN_WRITE] = O_RDWR,
                                [IO_OPEN_CREATE] = O_RDWR | O_CREAT | O_EXCL,
                                [IO_OPEN_DIRECT] = O_RDWR};
    struct posix_file *file = ron_mem_alloc(sizeof(*file));
    struct stat status;
    const char *leaf;
    int dir_fd;
    enum ron_err err;

    if (file == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "open %s/%s", vfs->name, path);
    file->fd = -1;
    err = open_parent(of_vfs(vfs), "open", path, &dir_fd, &leaf, reterr);
    if (err == RON_ERR_OK) {
        /* O_NONBLOCK: a fifo must not make us wait; files do not know it. */
        file->fd = openat(dir_fd, leaf, flags[how] | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                          FILE_MODE);
        if (file->fd < 0 || fstat(file->fd, &status) != 0)
            err = fail(reterr, "open", vfs->name, path, errno);
        (void)close(dir_fd);
    }
    if (err == RON_ERR_OK && S_ISDIR(status.st_mode))
        err = fail(reterr, "open", vfs->name, path, EISDIR);
    else if (err == RON_ERR_OK && !S_ISREG(status.st_mode))
        err = ron_fail(reterr, RON_ERR_FORBIDDEN, "open %s/%s: not a file", vfs->name, path);
    else if (err == RON_ERR_OK)
        err = check_mode(&status, "open", vfs->name, path, reterr);
    if (err != RON_ERR_OK) {
        if (file->fd >= 0)
            (void)close(file->fd);
        ron_mem_free(file);
        return err;
    }
    if (how == IO_OPEN_DIRECT)
        make_direct(file->fd);
    *ret_file = &file->file;
    return RON_ERR_OK;
}

static enum ron_err posix_rename(struct io_vfs *vfs, const char *from, const char *to,
                                 struct ron_errinfo *reterr)
{
    const char *leaf;
    const char *to_leaf = strrchr(to, '/') == NULL ? to : strrchr(to, '/') + 1;
    struct stat status;
    int dir_fd;
    enum ron_err err = open_parent(of_vfs(vfs), "rename", from, &dir_fd, &leaf, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (fstatat(dir_fd, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
        err = fail(reterr, "rename", vfs->name, from, errno);
    else if (S_ISDIR(status.st_mode))
        err = fail(reterr, "rename", vfs->name, from, EISDIR);
    else if (renameat(dir_fd, leaf, dir_fd, to_leaf) != 0)
        err = fail(reterr, "rename to", vfs->name, to, errno);
    (void)close(dir_fd);
    return err;
}

static enum ron_err posix_unlink(struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    const char *leaf;
    int dir_fd;
    enum ron_err err = open_parent(of_vfs(vfs), "unlink", path, &dir_fd, &leaf, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (unlinkat(dir_fd, leaf, 0) != 0)
        err = fail(reterr, "unlink", vfs->name, path, errno);
    (void)close(dir_fd);
    return err;
}

static void posix_drop_dir(struct io_vfs *vfs, const char *path)
{
    const char *leaf = vfs->name;
    int dir_fd = AT_FDCWD;

    if (path[0] == '\0' ||
        open_parent(of_vfs(vfs), "rmdir", path, &dir_fd, &leaf, NULL) == RON_ERR_OK)
        (void)unlinkat(dir_fd, leaf, AT_REMOVEDIR);
    if (dir_fd >= 0)
        (void)close(dir_fd);
}

/* ---- Files ---- */

static void posix_close(struct io_file *file)
{
    (void)close(of_file(file)->fd); /* also drops the lock; what it says about writes comes late */
    ron_mem_free(file);
}

static enum ron_err posix_size(struct io_file *base, uint64_t *ret_size, struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);
    struct stat status;

    if (fstat(file->fd, &status) != 0)
        return fail_file(reterr, "size of", file, errno);
    *ret_size = (uint64_t)status.st_size;
    return RON_ERR_OK;
}

/* A file system may say that it can go past the cache and refuse it all the same: from now on it is
 * a file like others. False: that is not why it failed. */
static bool leave_direct(const struct posix_file *file, int number)
{
    const int flags = number == EINVAL && file->file.direct ? fcntl(file->fd, F_GETFL) : -1;

    return flags >= 0 && (flags & O_DIRECT) != 0 &&
           fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) == 0;
}

static enum ron_err posix_read(struct io_file *base, uint64_t offset, void *bytes, size_t size,
                               size_t *ret_size, struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);
    size_t done = 0;
    unsigned interrupts_count = 0;

    while (done < size) {
        ssize_t count = pread(file->fd, (uint8_t *)bytes + done, size - done,
                              (off_t)(offset + done));

        if (count < 0 &&
            ((errno == EINTR && interrupts_count++ < INTERRUPTS_MAX) || leave_direct(file, errno)))
            continue;
        if (count < 0)
            return fail_file(reterr, "read", file, errno);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    *ret_size = done;
    return RON_ERR_OK;
}

/* Leave out `size` bytes that are done. */
static size_t advance(struct iovec *parts, size_t first, size_t size)
{
    while (size > 0 && size >= parts[first].iov_len)
        size -= parts[first++].iov_len;
    if (size > 0) {
        parts[first].iov_base = (uint8_t *)parts[first].iov_base + size;
        parts[first].iov_len -= size;
    }
    return first;
}

static enum ron_err posix_write(struct io_file *base, uint64_t offset,
                                const struct ron_slice *slices, size_t slices_count,
                                struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);
    struct iovec parts[IO_WRITE_PARTS_MAX];
    size_t parts_count = 0;
    size_t first = 0;
    unsigned interrupts_count = 0;

    for (size_t i = 0; i < slices_count; i++)
        if (slices[i].size > 0) /* iovec has no const; pwritev only reads */
            parts[parts_count++] = (struct iovec){(void *)(uintptr_t)slices[i].data,
                                                  slices[i].size};
    while (first < parts_count) {
        ssize_t count = pwritev(file->fd, parts + first, (int)(parts_count - first), (off_t)offset);

        if (count < 0 &&
            ((errno == EINTR && interrupts_count++ < INTERRUPTS_MAX) || leave_direct(file, errno)))
            continue;
        if (count <= 0)
            return fail_file(reterr, "write", file, count < 0 ? errno : EIO);
        offset += (uint64_t)count;
        first = advance(parts, first, (size_t)count);
    }
    return RON_ERR_OK;
}

static enum ron_err posix_truncate(struct io_file *base, uint64_t size, struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);

    return ftruncate(file->fd, (off_t)size) == 0 ? RON_ERR_OK
                                                 : fail_file(reterr, "truncate", file, errno);
}

/* Where system or file system do not know the call, or a filter forbids it, the sync does all of
 * the work. */
static bool is_unknown_call(int error)
{
    return error == ENOSYS || error == EPERM || error == EINVAL || error == EOPNOTSUPP;
}

static enum ron_err posix_start(struct io_file *base, uint64_t offset, uint64_t size,
                                struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);

    if (sync_file_range(file->fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE) == 0 ||
        is_unknown_call(errno))
        return RON_ERR_OK;
    return fail_file(reterr, "start the sync of", file, errno);
}

/* Never retried: after an error the kernel may call the same pages clean. */
static enum ron_err posix_sync(struct io_file *base, struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);

    return fdatasync(file->fd) == 0 ? RON_ERR_OK : fail_file(reterr, "sync", file, errno);
}

static enum ron_err posix_write_back(struct io_file *base, uint64_t offset, uint64_t size,
                                     struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);
    const unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                           SYNC_FILE_RANGE_WAIT_AFTER;

    if (sync_file_range(file->fd, (off64_t)offset, (off64_t)size, flags) == 0 ||
        is_unknown_call(errno))
        return RON_ERR_OK;
    return fail_file(reterr, "write back", file, errno);
}

static void posix_uncache(struct io_file *base, uint64_t offset, uint64_t size)
{
    /* What the system does not do costs memory, nothing else. */
    (void)posix_fadvise(of_file(base)->fd, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

static void posix_fetch(struct io_file *base, uint64_t offset, uint64_t size)
{
    (void)posix_fadvise(of_file(base)->fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
}

/* flock belongs to the open file: two opens in one process exclude each other, too. */
static enum ron_err posix_lock(struct io_file *base, struct ron_errinfo *reterr)
{
    struct posix_file *file = of_file(base);

    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return RON_ERR_OK;
    if (errno != EWOULDBLOCK)
        return fail_file(reterr, "lock", file, errno);
    return ron_fail_sys(reterr, RON_ERR_CONFLICT, EWOULDBLOCK,
                        "lock %s/%s: another process owns it", base->vfs->name, base->path);
}

/* ---- Birth and end ---- */

static void posix_free(struct io_vfs *vfs)
{
    (void)close(of_vfs(vfs)->root_fd);
    ron_mem_free(vfs);
}

static const struct io_vfs_ops posix_ops = {
    .open = posix_open,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .drop_dir = posix_drop_dir,
    .make_dir = posix_make_dir,
    .sync_dir = posix_sync_dir,
    .list = posix_list,
    .free = posix_free,
    .close = posix_close,
    .size = posix_size,
    .read = posix_read,
    .write = posix_write,
    .truncate = posix_truncate,
    .start = posix_start,
    .sync = posix_sync,
    .lock = posix_lock,
    .write_back = posix_write_back,
    .uncache = posix_uncache,
    .fetch = posix_fetch,
};

/* The directory was made just now: its own name must last, too. */
static enum ron_err sync_parent(const struct posix_vfs *vfs, struct ron_errinfo *reterr)
{
    int fd = openat(vfs->root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum ron_err err = RON_ERR_OK;

    if (fd < 0 || fsync(fd) != 0)
        err = fail(reterr, "sync directory", vfs->name, "..", errno);
    if (fd >= 0)
        (void)close(fd);
    return err;
}

static enum ron_err open_root(struct posix_vfs *vfs, bool create, struct ron_errinfo *reterr)
{
    struct stat status;
    bool made = false;
    enum ron_err err;

    if (create) {
        made = mkdir(vfs->name, DIR_MODE) == 0;
        if (!made && errno != EEXIST)
            return fail(reterr, "mkdir", vfs->name, "", errno);
    }
    /* The root itself may be reached by a link: that is the operator's choice. */
    vfs->root_fd = open(vfs->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (vfs->root_fd < 0 || fstat(vfs->root_fd, &status) != 0)
        return fail(reterr, "open directory", vfs->name, "", errno);
    err = check_mode(&status, "open directory", vfs->name, "", reterr);
    if (err == RON_ERR_OK && made)
        err = sync_parent(vfs, reterr);
    return err;
}

enum ron_err io_vfs_posix_new(const char *path, bool create, struct io_vfs **ret_vfs,
                              struct ron_errinfo *reterr)
{
    size_t path_size = strlen(path);
    struct posix_vfs *vfs;
    enum ron_err err;

    RON_ASSERT(path_size > 0);
    vfs = ron_mem_alloc(sizeof(*vfs) + path_size + 1);
    if (vfs == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "open directory %s", path);
    memcpy(vfs->name, path, path_size + 1);
    vfs->vfs = (struct io_vfs){&posix_ops, vfs->name};
    vfs->root_fd = -1;
    err = open_root(vfs, create, reterr);
    if (err != RON_ERR_OK) {
        if (vfs->root_fd >= 0)
            (void)close(vfs->root_fd);
        ron_mem_free(vfs);
        return err;
    }
    *ret_vfs = &vfs->vfs;
    return RON_ERR_OK;
}
