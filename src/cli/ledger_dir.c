/*
 * ledger_dir.c - directories and files that the verbs of `ron ledger` are given. See ledger_impl.h.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/ledger_impl.h"

enum { DIR_SIZE_MAX = 1024, PIECE_SIZE = 1 << 20 /* of pages */ };

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

int named_begin(struct named *named, const struct ledger_args *args, const char *path,
                const char *suffix)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const size_t dir_size = slash == NULL ? 0 : (size_t)(slash - path) + (slash == path);
    char dir[DIR_SIZE_MAX] = ".", file[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    int size = snprintf(file, sizeof(file), "%s%s", name, suffix);
    enum ron_err err = RON_ERR_OK;

    *named = (struct named){.vfs = NULL};
    if (dir_size >= sizeof(dir) || size < 0 || size > IO_PATH_MAX)
        return ledger_usage(args, "a path that is too long");
    if (dir_size > 0) {
        memcpy(dir, path, dir_size);
        dir[dir_size] = '\0';
    }
    named->memory = ron_mem_alloc(PIECE_SIZE + IO_DIRECT_SIZE);
    if (named->memory == NULL)
        err = ron_fail(&info, RON_ERR_NO_MEMORY, "%s", path);
    else
        named->piece = io_direct_page(named->memory);
    if (err == RON_ERR_OK)
        err = io_vfs_posix_new(dir, false, &named->vfs, &info);
    if (err == RON_ERR_OK)
        err = io_replace_begin(&named->replace, named->vfs, file, &info);
    if (err == RON_ERR_OK)
        return CMD_OK;
    named_abandon(named);
    return ledger_failed(args, &info);
}

/* Past the system's cache: nobody reads it soon, and a server may sync its log beside it. */
static enum ron_err put_piece(struct named *named, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = io_replace_write_past(&named->replace, named->written,
                                             ron_slice_of(named->piece, named->piece_size), reterr);

    if (err == RON_ERR_OK) {
        named->written += named->piece_size;
        named->piece_size = 0;
    }
    return err;
}

enum ron_err named_put(struct named *named, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && bytes.size > 0) {
        const size_t room = PIECE_SIZE - named->piece_size;
        const size_t size = bytes.size < room ? bytes.size : room;

        memcpy(named->piece + named->piece_size, bytes.data, size);
        named->piece_size += size;
        bytes = ron_slice_of(bytes.data + size, bytes.size - size);
        if (named->piece_size == PIECE_SIZE)
            err = put_piece(named, reterr);
    }
    return err;
}

int named_commit(struct named *named, const struct ledger_args *args)
{
    struct ron_errinfo info = {0};
    enum ron_err err = named->piece_size == 0 ? RON_ERR_OK : put_piece(named, &info);

    if (err == RON_ERR_OK)
        err = io_replace_commit(&named->replace, &info);
    named_abandon(named);
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(args, &info);
}

void named_abandon(struct named *named)
{
    if (named->vfs != NULL)
        io_replace_abandon(&named->replace);
    (void)io_vfs_free(named->vfs);
    (void)ron_mem_free(named->memory);
    *named = (struct named){.vfs = NULL};
}

int write_named(const struct ledger_args *args, const char *path, const char *suffix,
                struct ron_slice bytes)
{
    struct named named;
    struct ron_errinfo info = {0};
    int status = named_begin(&named, args, path, suffix);

    if (status != CMD_OK)
        return status;
    if (named_put(&named, bytes, &info) == RON_ERR_OK)
        return named_commit(&named, args);
    named_abandon(&named);
    return ledger_failed(args, &info);
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
