/*
 * ledger_store.c - `ron ledger backup | restore`: a copy of the ledger in a data directory.
 *
 * The server may run meanwhile. What others count is copied before what it is counted in (signed
 * head, tiles, then the log), and everything of the log from its end to its beginning: it only
 * grows at the end, so whatever is in the copy, all that was before it is too. What was being
 * written is a torn tail, which nobody was told of. The copy is verified as a whole afterwards.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/ledger_impl.h"
#include "cli/ledger_verify.h"

enum { PIECE_SIZE = 1 << 20, NAMES_MAX = 65536 };

struct names {
    char (*items)[IO_NAME_MAX + 1];
    size_t count;
    bool full;
};

struct copying {
    const struct ledger_args *args;
    struct io_vfs *from, *to;
    uint8_t *piece;
    struct names names;
    uint64_t files_count, bytes_count;
};

static bool add_name(void *context, const char *name, bool is_dir)
{
    struct names *names = context;
    const size_t size = strlen(name);

    if (is_dir || (size > 4 && strcmp(name + size - 4, ".new") == 0))
        return true; /* not whole yet */
    if (names->count == NAMES_MAX || size > IO_NAME_MAX) {
        names->full = true;
        return false;
    }
    memcpy(names->items[names->count++], name, size + 1);
    return true;
}

/* --- One file --------------------------------------------------------------------------------- */

static enum ron_err copy_bytes(struct copying *copying, struct io_file *from, struct io_file *to,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t end = 0;
    enum ron_err err = io_file_size(from, &end, reterr);

    copying->bytes_count += end;
    while (err == RON_ERR_OK && end > 0) { /* from the end: see above */
        const uint64_t at = (end - 1) / PIECE_SIZE * PIECE_SIZE;
        struct ron_slice part = {copying->piece, 0};

        err = io_file_read(from, at, copying->piece, (size_t)(end - at), &part.size, reterr);
        if (err == RON_ERR_OK && part.size > 0)
            err = io_file_write(to, at, &part, 1, reterr);
        end = at;
    }
    return err == RON_ERR_OK ? io_file_sync(to, reterr) : err;
}

/* A file that is gone by now was not needed. */
static enum ron_err copy_file(struct copying *copying, const char *path,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *from = NULL, *to = NULL;
    struct ron_errinfo info = {0};
    enum ron_err err = io_vfs_open(copying->from, path, IO_OPEN_READ, &from, &info);

    if (err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (err == RON_ERR_OK)
        err = io_vfs_open(copying->to, path, IO_OPEN_CREATE, &to, &info);
    if (err == RON_ERR_OK)
        err = copy_bytes(copying, from, to, &info);
    (void)io_file_close(to);
    (void)io_file_close(from);
    copying->files_count++;
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

static enum ron_err copy_named(struct copying *copying, const char *dir, const char *name,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    const int size = snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/%s", dir, name);
    return copy_file(copying, path, reterr);
}

/* --- Directories ------------------------------------------------------------------------------ */

static bool is_first(const char *name)
{
    return strcmp(name, "checkpoint") == 0 || strcmp(name, "head") == 0 ||
           strcmp(name, "owner") == 0;
}

/* Every file in it, last name first; what says how much there must be before all
 * others. */
static enum ron_err copy_dir(struct copying *copying, const char *dir, bool must,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct names *names = &copying->names;
    struct ron_errinfo info = {0};
    enum ron_err err;

    names->count = 0;
    err = io_vfs_list(copying->from, dir, add_name, names, &info);
    if (err == RON_ERR_NOT_FOUND && !must)
        return RON_ERR_OK;
    if (err == RON_ERR_OK && names->full)
        err = ron_fail(&info, RON_ERR_TOO_LARGE, "%s: more than %d files", dir, NAMES_MAX);
    if (err == RON_ERR_OK)
        err = io_vfs_make_dir(copying->to, dir, &info);
    for (size_t i = 0; err == RON_ERR_OK && i < names->count; i++)
        if (is_first(names->items[i]))
            err = copy_named(copying, dir, names->items[i], &info);
    for (size_t i = names->count; err == RON_ERR_OK && i > 0; i--) {
        ledger_progress(copying->args, dir, names->count - i, names->count);
        if (!is_first(names->items[i - 1]))
            err = copy_named(copying, dir, names->items[i - 1], &info);
    }
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(copying->to, dir, &info);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

static bool note_entry(void *context, const char *name, bool is_dir)
{
    (void)name;
    (void)is_dir;
    *(bool *)context = true;
    return false;
}

static enum ron_err copy_all(struct copying *copying, bool with_key,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    bool used = false;
    enum ron_err err = io_vfs_list(copying->to, "", note_entry, &used, reterr);

    if (err == RON_ERR_OK && used)
        err = ron_fail(reterr, RON_ERR_CONFLICT, "%s: not empty", io_vfs_name(copying->to));
    if (err == RON_ERR_OK)
        err = io_vfs_make_dir(copying->to, "ledger", reterr);
    if (err == RON_ERR_OK)
        err = copy_dir(copying, "ledger/tiles", false, reterr);
    if (err == RON_ERR_OK)
        err = copy_dir(copying, "ledger/snapshots", false, reterr);
    if (err == RON_ERR_OK)
        err = copy_dir(copying, "ledger/state", false, reterr);
    if (err == RON_ERR_OK)
        err = copy_dir(copying, "ledger/slices", false, reterr);
    if (err == RON_ERR_OK)
        err = copy_dir(copying, "ledger/log", true, reterr);
    if (err == RON_ERR_OK && with_key)
        err = copy_file(copying, "ledger/log.key", reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(copying->to, "ledger", reterr);
    if (err == RON_ERR_OK)
        err = io_vfs_sync_dir(copying->to, "", reterr);
    return err;
}

static bool has_key(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_file *file = NULL;
    const bool there = io_vfs_open(vfs, "ledger/log.key", IO_OPEN_READ, &file, NULL) == RON_ERR_OK;

    (void)io_file_close(file);
    return there;
}

static int copy_and_verify(struct copying *copying, bool with_key) RON_BLOCKS
{
    const struct ledger_args *args = copying->args;
    struct ledger_verify_report report;
    struct ron_errinfo info = {0};
    int status;

    copying->piece = ron_mem_alloc(PIECE_SIZE);
    copying->names.items = ron_mem_alloc_array(NAMES_MAX, sizeof(copying->names.items[0]));
    if (copying->piece == NULL || copying->names.items == NULL)
        (void)ron_fail(&info, RON_ERR_NO_MEMORY, "memory for a copy");
    else
        (void)copy_all(copying, with_key, &info);
    copying->piece = ron_mem_free(copying->piece);
    copying->names.items = ron_mem_free(copying->names.items);
    ledger_progress(args, NULL, 0, 0);
    if (info.err != RON_ERR_OK)
        return ledger_failed(args, &info);
    status = verify_open_dir(args, copying->to, &report);
    if (status != CMD_OK)
        return status;
    printf(args->json ? "{\"files\":%llu,\"bytes\":%llu,\"entries\":%llu,\"key\":%s}\n"
                      : "%llu files, %llu bytes, %llu entries, verified; the log's key: %s\n",
           (unsigned long long)copying->files_count, (unsigned long long)copying->bytes_count,
           (unsigned long long)report.tree.size,
           has_key(copying->to) ? (args->json ? "true" : "copied")
                                : (args->json ? "false"
                                              : "not copied: without it the copy is served only "
                                                "as a new log"));
    return CMD_OK;
}

static int copy(const struct ledger_args *args, const char *from, const char *to,
                bool with_key) RON_BLOCKS
{
    struct copying copying = {.args = args};
    int status = dir_open(args, from, false, &copying.from);

    if (status == CMD_OK)
        status = dir_open(args, to, true, &copying.to);
    if (status == CMD_OK)
        status = copy_and_verify(&copying, with_key);
    (void)io_vfs_free(copying.to);
    (void)io_vfs_free(copying.from);
    return status;
}

int ledger_backup(const struct ledger_args *args)
{
    return copy(args, args->data != NULL ? args->data : "ron-data", args->words[0], args->with_key);
}

int ledger_restore(const struct ledger_args *args)
{
    if (args->data == NULL)
        return ledger_usage(args, "--data DIR: where to");
    return copy(args, args->words[0], args->data, true);
}
