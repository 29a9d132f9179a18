/*
 * tlog_export.c - the static files of c2sp.org/tlog-tiles. See tlog.h.
 */
#include <stdio.h>

#include "base/assert.h"
#include "io/durable.h"
#include "io/tlog_impl.h"

enum {
    ENTRY_SIZE_MAX = UINT16_MAX, /* a bundle has u16 lengths */
    BUNDLE_SIZE_MAX = IO_TILE_WIDTH * (2 + ENTRY_SIZE_MAX),
};

void io_tile_path(const struct io_tile *tile, bool entries, char ret_path[IO_TILE_PATH_MAX])
{
    uint64_t divisor = 1;
    int size;

    RON_ASSERT(tile->width > 0);
    RON_ASSERT(tile->width <= IO_TILE_WIDTH);
    size = entries ? snprintf(ret_path, IO_TILE_PATH_MAX, "entries")
                   : snprintf(ret_path, IO_TILE_PATH_MAX, "%u", tile->level);
    while (tile->index / divisor >= 1000)
        divisor *= 1000;
    for (; divisor > 0 && size < IO_TILE_PATH_MAX; divisor /= 1000)
        size += snprintf(ret_path + size, (size_t)(IO_TILE_PATH_MAX - size),
                         divisor > 1 ? "/x%03u" : "/%03u",
                         (unsigned)(tile->index / divisor % 1000));
    if (tile->width < IO_TILE_WIDTH && size < IO_TILE_PATH_MAX)
        size += snprintf(ret_path + size, (size_t)(IO_TILE_PATH_MAX - size), ".p/%u", tile->width);
    RON_ASSERT(size < IO_TILE_PATH_MAX);
}

/* "dir/name", or "name" at the root. */
static enum ron_err join(const char *dir, const char *name, char ret_path[IO_PATH_MAX + 1],
                         struct ron_errinfo *reterr)
{
    int size = snprintf(ret_path, IO_PATH_MAX + 1, "%s%s%s", dir, dir[0] == '\0' ? "" : "/", name);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/%s", dir, name);
    return RON_ERR_OK;
}

static enum ron_err make_parents(struct io_vfs *vfs, const char *path,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    char dir[IO_PATH_MAX + 1];

    io_dir_of(path, dir);
    return dir[0] == '\0' ? RON_ERR_OK : io_vfs_make_dir(vfs, dir, reterr);
}

/* A file of these bytes; fine if it is there already. */
static enum ron_err put_file(const struct io_tlog_export_options *options, const char *path,
                             struct ron_slice bytes, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct io_file *file = NULL;
    enum ron_err err = make_parents(options->vfs, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_open(options->vfs, path, IO_OPEN_CREATE, &file, &info);
    if (err == RON_ERR_CONFLICT)
        return RON_ERR_OK;
    if (err == RON_ERR_OK) {
        err = io_file_write(file, 0, &bytes, 1, &info);
        file = io_file_close(file);
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

static enum ron_err put_tile(const struct io_tlog_export_options *options,
                             const struct io_tile *tile, bool entries, struct ron_slice bytes,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    char name[IO_TILE_PATH_MAX], under_tile[IO_TILE_PATH_MAX + 8], path[IO_PATH_MAX + 1];
    enum ron_err err;

    io_tile_path(tile, entries, name);
    (void)snprintf(under_tile, sizeof(under_tile), "tile/%s", name);
    err = join(options->dir, under_tile, path, reterr);
    return err == RON_ERR_OK ? put_file(options, path, bytes, reterr) : err;
}

/* The leaves of a tile, each with its length in front and hashed to what the tile says. */
static enum ron_err put_bundle(const struct io_tlog_export_options *options,
                               const struct io_tile *tile, const struct ron_sha256 *hashes,
                               struct ron_buf *bundle, struct ron_errinfo *reterr) RON_BLOCKS
{
    ron_buf_reset(bundle);
    for (unsigned i = 0; i < tile->width; i++) {
        uint64_t index = tile->index * IO_TILE_WIDTH + i;
        size_t at = bundle->size + 2, size;
        struct ron_sha256 hash;
        enum ron_err err;

        ron_buf_put(bundle, "\0", 2);
        err = options->entry(options->context, index, bundle, reterr);
        if (err == RON_ERR_OK)
            err = ron_buf_check(bundle, reterr);
        if (err != RON_ERR_OK)
            return err;
        RON_ASSERT(bundle->size >= at);
        size = bundle->size - at;
        if (size > ENTRY_SIZE_MAX)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "leaf %llu of %zu bytes, at most %d",
                            (unsigned long long)index, size, ENTRY_SIZE_MAX);
        ron_store_be16(bundle->data + at - 2, (uint16_t)size);
        hash = ron_merkle_leaf(bundle->data + at, size);
        if (memcmp(hash.bytes, hashes[i].bytes, RON_SHA256_SIZE) != 0)
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "leaf %llu is not the one in the tree",
                            (unsigned long long)index);
    }
    return put_tile(options, tile, true, ron_buf_slice(bundle), reterr);
}

static enum ron_err export_level(struct io_tlog *tlog, unsigned level,
                                 const struct io_tlog_export_options *options,
                                 struct ron_buf *bundle, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint64_t index = 0; err == RON_ERR_OK; index++) {
        struct io_tile tile = io_tile_at(options->size, level, index);
        struct ron_sha256 hashes[IO_TILE_WIDTH];

        if (tile.width == 0)
            return RON_ERR_OK;
        err = io_tlog_tile(tlog, &tile, hashes, reterr);
        if (err == RON_ERR_OK)
            err = put_tile(options, &tile, false,
                           ron_slice_of(hashes, tile.width * sizeof(hashes[0])), reterr);
        if (err == RON_ERR_OK && level == 0 && options->entry != NULL)
            err = put_bundle(options, &tile, hashes, bundle, reterr);
    }
    return err;
}

/* The checkpoint is of this tree; who signed it is the caller's business. */
static enum ron_err check_note(struct io_tlog *tlog, const struct io_tlog_export_options *options,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_checkpoint checkpoint;
    struct ron_sha256 root;
    struct ron_note note;
    enum ron_err err = io_tlog_root(tlog, options->size, &root, reterr);

    if (err == RON_ERR_OK)
        err = ron_note_parse(options->note, &note, reterr);
    if (err == RON_ERR_OK)
        err = ron_checkpoint_parse(note.text, &checkpoint, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (checkpoint.tree.size != options->size ||
        memcmp(checkpoint.tree.root.bytes, root.bytes, RON_SHA256_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_CONFLICT, "a checkpoint of another tree");
    return RON_ERR_OK;
}

/* Replaces the one of an earlier export. */
static enum ron_err put_checkpoint(const struct io_tlog_export_options *options,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1], temporary[IO_PATH_MAX + 1];
    enum ron_err err = join(options->dir, "checkpoint", path, reterr);

    if (err == RON_ERR_OK)
        err = join(options->dir, "checkpoint.new", temporary, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_unlink(options->vfs, temporary, NULL);
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND)
        return ron_fail(reterr, err, "%s cannot be removed", temporary);
    err = put_file(options, temporary, options->note, reterr);
    return err == RON_ERR_OK ? io_vfs_rename(options->vfs, temporary, path, reterr) : err;
}

enum ron_err io_tlog_export(struct io_tlog *tlog, const struct io_tlog_export_options *options,
                            struct ron_errinfo *reterr)
{
    struct ron_buf bundle;
    enum ron_err err;

    rt_assert_no_lock_held();
    err = check_note(tlog, options, reterr);
    ron_buf_init(&bundle, BUNDLE_SIZE_MAX);
    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++)
        err = export_level(tlog, level, options, &bundle, reterr);
    ron_buf_fini(&bundle);
    return err == RON_ERR_OK ? put_checkpoint(options, reterr) : err;
}
