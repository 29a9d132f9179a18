/*
 * ledger_dir.c - directories and files that the verbs of `ron ledger` are given. See ledger_impl.h.
 */
#include <string.h>

#include "cli/ledger_impl.h"
#include "io/replace.h"

enum { DIR_SIZE_MAX = 1024 };

static bool see_any(void *context, const char *name, bool is_dir)
{
    (void)context;
    (void)name;
    (void)is_dir;
    return false;
}

int dir_open(const struct ledger_args *args, const char *path, const char *expected,
             struct io_vfs **ret_vfs)
{
    struct ron_errinfo info = {0};
    struct io_vfs *vfs = NULL;

    if (path[0] == '\0')
        return ledger_usage(args, "an empty path; expected %s", expected);
    if (io_vfs_posix_new(path, false, &vfs, &info) != RON_ERR_OK) {
        fprintf(stderr, "ron ledger %s: %s; expected %s\n", args->verb, info.message, expected);
        return CMD_FAILED;
    }
    if (io_vfs_list(vfs, "ledger/log", see_any, NULL, NULL) == RON_ERR_NOT_FOUND) {
        fprintf(stderr,
                "ron ledger %s: %s is not a ledger's directory: it has no ledger/log; "
                "expected %s\n",
                args->verb, path, expected);
        (void)io_vfs_free(vfs);
        return CMD_FOREIGN;
    }
    *ret_vfs = vfs; /* what else is wrong the verb finds */
    return CMD_OK;
}

int dir_make(const struct ledger_args *args, const char *path, bool *ret_made,
             struct io_vfs **ret_vfs)
{
    struct ron_errinfo info = {0};
    enum ron_err err;

    *ret_made = false;
    if (path[0] == '\0')
        return ledger_usage(args, "an empty path; expected an empty directory, or a missing one");
    err = io_vfs_posix_new(path, false, ret_vfs, &info);
    if (err == RON_ERR_NOT_FOUND) {
        err = io_vfs_posix_new(path, true, ret_vfs, &info);
        *ret_made = err == RON_ERR_OK;
    }
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(args, &info);
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
