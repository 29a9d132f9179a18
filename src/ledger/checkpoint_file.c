/*
 * checkpoint_file.c - see checkpoint_file.h.
 */
#include "ledger/checkpoint_file.h"

#include <stdio.h>

#include "base/merkle_hash.h"
#include "io/durable.h"
#include "rt/lock.h"

static enum ron_err path_of(const char *dir, char ret_path[IO_PATH_MAX + 1],
                            struct ron_errinfo *reterr)
{
    const int size = snprintf(ret_path, IO_PATH_MAX + 1, "%s/checkpoint", dir);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/checkpoint", dir);
    return RON_ERR_OK;
}

enum ron_err ledger_checkpoint_read(struct ron_slice note, const struct ron_vkey *key,
                                    struct ron_tree *ret_tree, struct ron_errinfo *reterr)
{
    struct ron_checkpoint checkpoint;
    struct ron_note parsed;
    enum ron_err err;

    if (key != NULL) {
        err = ron_verify_checkpoint(note, &(struct ron_trust){.log = key}, &checkpoint, reterr);
    } else {
        err = ron_note_parse(note, &parsed, reterr);
        if (err == RON_ERR_OK)
            err = ron_checkpoint_parse(parsed.text, &checkpoint, reterr);
    }
    if (err == RON_ERR_OK)
        *ret_tree = checkpoint.tree;
    return err;
}

enum ron_err ledger_checkpoint_load(struct io_vfs *vfs, const char *dir, const struct ron_vkey *key,
                                    struct ron_tree *ret_tree, struct ron_errinfo *reterr)
{
    uint8_t bytes[LEDGER_NOTE_SIZE_MAX + 1];
    char path[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    struct io_file *file = NULL;
    size_t size = 0;
    enum ron_err err = path_of(dir, path, reterr);

    rt_assert_no_lock_held();
    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_open(vfs, path, IO_OPEN_READ, &file, &info);
    if (err == RON_ERR_NOT_FOUND) {
        *ret_tree = (struct ron_tree){0, ron_merkle_empty};
        return RON_ERR_OK;
    }
    if (err == RON_ERR_OK) {
        err = io_file_read(file, 0, bytes, sizeof(bytes), &size, &info);
        (void)io_file_close(file);
    }
    if (err == RON_ERR_OK && size > LEDGER_NOTE_SIZE_MAX)
        err = ron_fail(&info, RON_ERR_MALFORMED, "longer than any checkpoint of a ledger");
    if (err == RON_ERR_OK)
        err = ledger_checkpoint_read(ron_slice_of(bytes, size), key, ret_tree, &info);
    if (err == RON_ERR_OK)
        return err;
    if (reterr != NULL)
        *reterr = info;
    return ron_wrap(reterr, err, "%s", path);
}

enum ron_err ledger_checkpoint_store(struct io_vfs *vfs, const char *dir, struct ron_slice note,
                                     struct ron_errinfo *reterr)
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err = path_of(dir, path, reterr);

    rt_assert_no_lock_held();
    return err == RON_ERR_OK ? io_durable_replace(vfs, path, note, reterr) : err;
}
