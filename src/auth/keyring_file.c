/*
 * keyring_file.c - the keyring on disk. See keyring_file.h.
 */
#include "auth/keyring_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"
#include "io/path_file.h"
#include "io/replace.h"

enum { STACK_SIZE = 16384 };

/* Functions that returned leave their variables behind, such as the last block that BLAKE3 hashed:
 * the end of a service token. A frame of its own over where theirs were. */
static __attribute__((noinline)) void wipe_stack(void)
{
    uint8_t left[STACK_SIZE];

    ron_wipe(left, sizeof(left));
}

/* The text of a keyring, and what reading or writing it left. */
static void wipe(struct ron_buf *buf)
{
    if (buf->data != NULL)
        ron_wipe(buf->data, buf->capacity);
    ron_buf_fini(buf);
    wipe_stack();
}

/* Append a whole file; its memory is taken in one piece, so no copy stays behind. */
static enum ron_err read_file(struct io_vfs *vfs, const char *name, struct ron_buf *buf,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file;
    uint64_t size = 0;
    size_t got = 0;
    enum ron_err err = io_vfs_open(vfs, name, IO_OPEN_READ, &file, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_file_size(file, &size, reterr);
    if (err == RON_ERR_OK && size > AUTH_KEYRING_TEXT_SIZE_MAX)
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "%s/%s: %llu bytes are no keyring",
                       io_vfs_name(vfs), name, (unsigned long long)size);
    if (err == RON_ERR_OK)
        err = ron_buf_reserve(buf, (size_t)size + 1, reterr);
    if (err == RON_ERR_OK)
        err = io_file_read(file, 0, buf->data, (size_t)size, &got, reterr);
    if (err == RON_ERR_OK)
        buf->size = got;
    (void)io_file_close(file);
    return err;
}

static enum ron_err write_file(struct io_vfs *vfs, const char *name, struct ron_slice bytes,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_replace replace;
    enum ron_err err = io_replace_begin(&replace, vfs, name, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_file_write(replace.file, 0, &bytes, 1, reterr);
    if (err == RON_ERR_OK)
        return io_replace_commit(&replace, reterr);
    io_replace_abandon(&replace);
    return err;
}

enum ron_err auth_keyring_file_load(struct io_vfs *vfs, const char *name,
                                    struct auth_keyring **ret_keyring, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, AUTH_KEYRING_TEXT_SIZE_MAX + 1);
    err = read_file(vfs, name, &buf, reterr);
    if (err == RON_ERR_OK) {
        err = auth_keyring_decode(ron_buf_slice(&buf), ret_keyring, reterr);
        if (err != RON_ERR_OK)
            err = ron_wrap(reterr, err, "%s/%s", io_vfs_name(vfs), name);
    }
    wipe(&buf);
    return err;
}

enum ron_err auth_keyring_file_save(struct io_vfs *vfs, const char *name,
                                    const struct auth_keyring *keyring, struct ron_errinfo *reterr)
{
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, AUTH_KEYRING_TEXT_SIZE_MAX);
    err = auth_keyring_encode(keyring, &buf, reterr);
    if (err == RON_ERR_OK)
        err = write_file(vfs, name, ron_buf_slice(&buf), reterr);
    wipe(&buf);
    return err;
}

/* Token first, keyring second: see the header. */
static enum ron_err make_both(struct io_vfs *vfs, uint64_t now_ms, uint64_t lifetime_ms,
                              struct auth_keyring **ret_keyring,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    char token[AUTH_TOKEN_TEXT_SIZE];
    size_t size = 0;
    enum ron_err err = auth_keyring_new(now_ms, &keyring, reterr);

    if (err == RON_ERR_OK)
        err = auth_keyring_mint_operator(keyring, now_ms, lifetime_ms, token, &size, reterr);
    if (err == RON_ERR_OK) {
        token[size++] = '\n'; /* over its NUL */
        err = write_file(vfs, AUTH_OPERATOR_TOKEN_NAME, ron_slice_of(token, size), reterr);
        ron_wipe(token, sizeof(token));
    }
    if (err == RON_ERR_OK)
        err = auth_keyring_file_save(vfs, AUTH_KEYRING_NAME, keyring, reterr);
    if (err == RON_ERR_OK)
        *ret_keyring = RON_TAKE(keyring);
    return err;
}

enum ron_err auth_keyring_file_open(struct io_vfs *vfs, uint64_t now_ms, uint64_t lifetime_ms,
                                    struct auth_keyring **ret_keyring, bool *ret_made,
                                    struct ron_errinfo *reterr)
{
    struct ron_errinfo info = {0};
    enum ron_err err = auth_keyring_file_load(vfs, AUTH_KEYRING_NAME, ret_keyring, &info);

    if (err == RON_ERR_OK) {
        *ret_made = false;
        return RON_ERR_OK;
    }
    if (err != RON_ERR_NOT_FOUND) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    err = make_both(vfs, now_ms, lifetime_ms, ret_keyring, reterr);
    if (err == RON_ERR_OK)
        *ret_made = true;
    return err;
}

/* The lock has a file of its own: the keyring is replaced, and a lock stays with the old file. */
static enum ron_err take_lock(struct io_vfs *vfs, struct io_file **ret_file,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_file *file;
    enum ron_err err = io_vfs_open(vfs, AUTH_KEYRING_LOCK_NAME, IO_OPEN_WRITE, &file, &info);

    if (err == RON_ERR_NOT_FOUND)
        err = io_vfs_open(vfs, AUTH_KEYRING_LOCK_NAME, IO_OPEN_CREATE, &file, &info);
    if (err == RON_ERR_CONFLICT) /* made meanwhile */
        err = io_vfs_open(vfs, AUTH_KEYRING_LOCK_NAME, IO_OPEN_WRITE, &file, &info);
    if (err != RON_ERR_OK) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    err = io_file_lock(file, reterr);
    if (err != RON_ERR_OK) {
        (void)io_file_close(file);
        return err;
    }
    *ret_file = file;
    return RON_ERR_OK;
}

enum ron_err auth_keyring_file_change(struct io_vfs *vfs, const char *name,
                                      auth_keyring_change_fn *change, void *context,
                                      struct ron_errinfo *reterr)
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    struct io_file *lock;
    enum ron_err err = take_lock(vfs, &lock, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = auth_keyring_file_load(vfs, name, &keyring, reterr);
    if (err == RON_ERR_OK)
        err = change(keyring, context, reterr);
    if (err == RON_ERR_OK)
        err = auth_keyring_file_save(vfs, name, keyring, reterr);
    (void)io_file_close(lock);
    return err;
}

/* Paths of the system. */

enum { PATH_SIZE_MAX = 1024, OTHERS = S_IRWXG | S_IRWXO };

enum ron_err auth_keyring_check_private(const char *dir, const char *name,
                                        struct ron_errinfo *reterr)
{
    char path[PATH_SIZE_MAX];
    struct stat status;
    int size = snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (size < 0 || (size_t)size >= sizeof(path))
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a path of %d bytes", size);
    if (lstat(path, &status) != 0)
        return ron_fail_sys(reterr, errno == ENOENT ? RON_ERR_NOT_FOUND : RON_ERR_IO, errno,
                            "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "%s: not a file", path);
    if ((status.st_mode & OTHERS) != 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "%s: others may use it (mode %04o); chmod 600 it, and rotate its key", path,
                        (unsigned)(status.st_mode & 07777));
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "%s: belongs to user %u", path,
                        (unsigned)status.st_uid);
    return RON_ERR_OK;
}

enum ron_err auth_keyring_locate(const char *path, struct io_vfs **ret_vfs,
                                 char ret_name[static IO_NAME_MAX + 1], struct ron_errinfo *reterr)
{
    char dir[PATH_SIZE_MAX];
    const char *name = AUTH_KEYRING_NAME;
    size_t dir_size = strlen(path);
    struct ron_errinfo info = {0};
    struct stat status;
    enum ron_err err;

    if (stat(path, &status) != 0)
        return ron_fail_sys(reterr, errno == ENOENT ? RON_ERR_NOT_FOUND : RON_ERR_IO, errno,
                            "%s: %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode)) {
        const char *slash = strrchr(path, '/');

        name = slash == NULL ? path : slash + 1;
        dir_size = slash == NULL ? 0 : (size_t)(slash - path);
        if (slash == path)
            dir_size = 1;
    }
    if (dir_size >= sizeof(dir) || strlen(name) > IO_NAME_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%s: the path is too long", path);
    if (dir_size == 0)
        (void)snprintf(dir, sizeof(dir), ".");
    else
        (void)snprintf(dir, sizeof(dir), "%.*s", (int)dir_size, path);
    err = auth_keyring_check_private(dir, name, &info);
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND) {
        if (reterr != NULL)
            *reterr = info;
        return err;
    }
    err = io_vfs_posix_new(dir, false, ret_vfs, reterr);
    if (err == RON_ERR_OK)
        (void)snprintf(ret_name, IO_NAME_MAX + 1, "%s", name);
    return err;
}

enum ron_err auth_keyring_read_fd(uint32_t fd, struct auth_keyring **ret_keyring,
                                  struct ron_errinfo *reterr)
{
    char path[32];
    struct ron_buf buf;
    enum ron_err err;

    (void)snprintf(path, sizeof(path), "/dev/fd/%u", fd);
    ron_buf_init(&buf, AUTH_KEYRING_TEXT_SIZE_MAX);
    err = ron_buf_reserve(&buf, AUTH_KEYRING_TEXT_SIZE_MAX, reterr);
    if (err == RON_ERR_OK)
        err = io_path_read(path, AUTH_KEYRING_TEXT_SIZE_MAX, &buf, reterr);
    if (err == RON_ERR_OK)
        err = auth_keyring_decode(ron_buf_slice(&buf), ret_keyring, reterr);
    wipe(&buf);
    return err;
}
