/*
 * ledger_dir.c - directories and files that the verbs of `ron ledger` are given. See ledger_impl.h.
 */
#include <string.h>

#include "cli/ledger_impl.h"
#include "io/replace.h"

enum { DIR_SIZE_MAX = 1024 };

int dir_open(const struct ledger_args *args, const char *path, bool create, struct io_vfs **ret_vfs)
{
    struct ron_errinfo info = {0};

    if (io_vfs_posix_new(path, create, ret_vfs, &info) == RON_ERR_OK)
        return CMD_OK;
    return ledger_failed(args, &info);
}

int write_named(const struct ledger_args *args, const char *path, const char *suffix,
                struct ron_slice bytes)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const size_t dir_size = slash == NULL ? 0 : (size_t)(slash - path) + (slash == path);
    char dir[DIR_SIZE_MAX] = ".", file[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    struct io_replace replace;
    struct io_vfs *vfs = NULL;
    int size = snprintf(file, sizeof(file), "%s%s", name, suffix);
    enum ron_err err;

    if (dir_size >= sizeof(dir) || size < 0 || size > IO_PATH_MAX)
        return ledger_usage(args, "a path that is too long");
    if (dir_size > 0) {
        memcpy(dir, path, dir_size);
        dir[dir_size] = '\0';
    }
    err = io_vfs_posix_new(dir, false, &vfs, &info);
    if (err == RON_ERR_OK)
        err = io_replace_begin(&replace, vfs, file, &info);
    if (err == RON_ERR_OK) {
        err = io_file_write(replace.file, 0, &bytes, 1, &info);
        if (err == RON_ERR_OK)
            err = io_replace_commit(&replace, &info);
        else
            io_replace_abandon(&replace);
    }
    (void)io_vfs_free(vfs);
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(args, &info);
}

int damage_status(enum ron_err err)
{
    switch ((unsigned)err) {
    case RON_ERR_WAL_CORRUPT:
    case RON_ERR_CHAIN_MISMATCH:
    case RON_ERR_INVALID_SIGNATURE:
        return CMD_DAMAGED;
    case RON_ERR_MALFORMED:
    case RON_ERR_CONFLICT:
    case RON_ERR_NOT_FOUND:
        return CMD_FOREIGN;
    case RON_ERR_VERSION_SKEW:
        return CMD_VERSION;
    default:
        return CMD_FAILED;
    }
}
