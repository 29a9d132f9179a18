/*
 * tlog_files.c - the Merkle log's files: recover, flush, sync. See tlog_impl.h.
 *
 * Order of a sync: level files written, level files synced, new names synced, `head.new` written
 * and synced, renamed to `head`, directory synced. Hashes below the old head are never written
 * again, so a crash at any moment leaves a head and the hashes it counts.
 */
#include <stdio.h>

#include "base/assert.h"
#include "io/durable.h"
#include "io/tlog_impl.h"

enum {
    HASH_SIZE = RON_SHA256_SIZE,
    WRITE_BACK_HASHES = 16 << 10, /* 512 KiB: a sync finds less than that, of each level */
};

enum ron_err tlog_path(const struct io_tlog *tlog, const char *name, char ret_path[IO_PATH_MAX + 1],
                       struct ron_errinfo *reterr)
{
    int size = snprintf(ret_path, IO_PATH_MAX + 1, "%s/%s", tlog->dir, name);

    if (size < 0 || size > IO_PATH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "path %s/%s", tlog->dir, name);
    return RON_ERR_OK;
}

static enum ron_err level_path(const struct io_tlog *tlog, unsigned level,
                               char ret_path[IO_PATH_MAX + 1], struct ron_errinfo *reterr)
{
    const char name[] = {'l', 'e', 'v', 'e', 'l', '-', (char)('0' + level), '\0'};

    RON_ASSERT(level < IO_TILE_LEVELS);
    return tlog_path(tlog, name, ret_path, reterr);
}

static struct io_file *file_of(struct io_tlog *tlog, unsigned level)
{
    struct io_file *file;

    tlog_lock(tlog);
    file = tlog->files[level];
    tlog_unlock(tlog);
    return file;
}

static void set_file(struct io_tlog *tlog, unsigned level, struct io_file *file)
{
    tlog_lock(tlog);
    RON_ASSERT(tlog->files[level] == NULL);
    tlog->files[level] = file;
    tlog_unlock(tlog);
}

/* ---- Recovery ---- */

/* Size 0 where there is no head. */
static enum ron_err read_head(struct io_tlog *tlog, struct ron_merkle_frontier *frontier,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[IO_TLOG_HEAD_SIZE_MAX + 1];
    char path[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    struct io_file *file = NULL;
    size_t size = 0;
    enum ron_err err = tlog_path(tlog, "head", path, reterr);

    ron_merkle_frontier_init(frontier);
    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_open(tlog->vfs, path, IO_OPEN_READ, &file, &info);
    if (err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (err == RON_ERR_OK) {
        err = io_file_read(file, 0, bytes, sizeof(bytes), &size, &info);
        file = io_file_close(file);
    }
    if (err == RON_ERR_OK)
        err = io_tlog_head_decode(ron_slice_of(bytes, size), frontier, &info);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "%s", path);
}

/* Open the file of a level, which must hold at least the hashes counted. A missing one is fine
 * where none is. */
static enum ron_err open_level(struct io_tlog *tlog, unsigned level, uint64_t count,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum io_open how = tlog->read_only ? IO_OPEN_READ : IO_OPEN_WRITE;
    char path[IO_PATH_MAX + 1];
    struct ron_errinfo info = {0};
    struct io_file *file = NULL;
    uint64_t size = 0;
    enum ron_err err = level_path(tlog, level, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_open(tlog->vfs, path, how, &file, &info);
    if (err == RON_ERR_NOT_FOUND && count == 0)
        return RON_ERR_OK;
    if (err == RON_ERR_NOT_FOUND)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s is missing; head counts %llu hashes", path,
                        (unsigned long long)count);
    if (err == RON_ERR_OK) {
        set_file(tlog, level, file);
        err = io_file_size(file, &size, &info);
    }
    if (err == RON_ERR_OK && size < count * HASH_SIZE)
        err = ron_fail(&info, RON_ERR_WAL_CORRUPT, "%s: %llu bytes, head counts %llu", path,
                       (unsigned long long)size, (unsigned long long)count * HASH_SIZE);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* The partial tile at a level's end, checked against the head's hashes. */
static enum ron_err load_tail(struct io_tlog *tlog, unsigned level,
                              const struct ron_merkle_frontier *frontier,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t count = tlog->counts[level];
    unsigned width = (unsigned)(count % IO_TILE_WIDTH);
    uint64_t offset = (count - width) * HASH_SIZE;
    struct io_file *file = file_of(tlog, level);
    struct tile_nodes *nodes;
    size_t size = 0;
    enum ron_err err;

    tlog_lock(tlog);
    tlog->tails[level] = tlog_tile_new(tlog, (struct tile_key){level, count / IO_TILE_WIDTH});
    tlog_unlock(tlog);
    nodes = &tlog->nodes[tlog->tails[level]];
    err = io_file_read(file, offset, nodes->at, width * HASH_SIZE, &size, reterr);
    if (err != RON_ERR_OK)
        return err;
    tlog_tile_grow(nodes, 0, width);
    for (unsigned height = 0; height < TILE_HEIGHT; height++) {
        const struct ron_sha256 *expected = &frontier->levels[TILE_HEIGHT * level + height];

        if ((width >> height & 1) == 0)
            continue;
        if (size != width * HASH_SIZE ||
            memcmp(nodes->at[tile_offset(height) + (width >> height) - 1].bytes, expected->bytes,
                   HASH_SIZE) != 0)
            return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "%s: damaged tile at offset %llu",
                            io_file_path(file), (unsigned long long)offset);
    }
    return RON_ERR_OK;
}

/* What lies beyond the head was never promised. */
static enum ron_err cut_level(struct io_tlog *tlog, unsigned level,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_file *file = file_of(tlog, level);
    uint64_t size = 0, wanted = tlog->counts[level] * HASH_SIZE;
    enum ron_err err;

    if (file == NULL)
        return RON_ERR_OK;
    err = io_file_size(file, &size, reterr);
    if (err == RON_ERR_OK && size > wanted)
        err = io_file_truncate(file, wanted, reterr);
    return err;
}

/* Start anew: the head goes, durably, before what it counts. */
static enum ron_err forget_head(struct io_tlog *tlog, struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    enum ron_err err = tlog_path(tlog, "head", path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_unlink(tlog->vfs, path, NULL);
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND)
        return ron_fail(reterr, err, "%s cannot be removed", path);
    return io_vfs_sync_dir(tlog->vfs, tlog->dir, reterr);
}

enum ron_err tlog_recover(struct io_tlog *tlog, bool rebuild, struct ron_errinfo *reterr)
{
    struct ron_merkle_frontier frontier;
    enum ron_err err;

    ron_merkle_frontier_init(&frontier);
    err = rebuild ? forget_head(tlog, reterr) : read_head(tlog, &frontier, reterr);
    tlog->names_changed = true; /* by an owner that died before it synced them, perhaps */
    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++) {
        tlog->counts[level] = frontier.leaves_count >> (TILE_HEIGHT * level);
        tlog->written[level] = tlog->on_disk[level] = tlog->counts[level];
        err = open_level(tlog, level, tlog->counts[level], reterr);
        if (err == RON_ERR_OK && tlog->counts[level] % IO_TILE_WIDTH != 0)
            err = load_tail(tlog, level, &frontier, reterr);
    }
    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++)
        if (!tlog->read_only)
            err = cut_level(tlog, level, reterr);
    tlog_lock(tlog);
    tlog->size = tlog->durable_size = frontier.leaves_count;
    tlog_unlock(tlog);
    return err;
}

/* ---- Flush ---- */

static enum ron_err create_level(struct io_tlog *tlog, unsigned level,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];
    struct io_file *file = NULL;
    enum ron_err err = level_path(tlog, level, path, reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_open(tlog->vfs, path, IO_OPEN_CREATE, &file, reterr);
    if (err != RON_ERR_OK)
        return err;
    set_file(tlog, level, file);
    tlog->names_changed = true;
    return RON_ERR_OK;
}

/* Leaves that go past the system's cache: from written on, if a tile begins there and is full. A
 * page is written one way or the other, never both: the tile that a sync has a part of is finished
 * through the cache. *ret_count: up to which. */
static enum ron_err open_leaves(struct io_tlog *tlog, uint64_t count, struct io_file **ret_file,
                                uint64_t *ret_count, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t tile_end = (tlog->written[0] / IO_TILE_WIDTH + 1) * IO_TILE_WIDTH;
    char path[IO_PATH_MAX + 1];
    enum ron_err err;

    if (tlog->written[0] % IO_TILE_WIDTH != 0 || tile_end > count) {
        *ret_count = tile_end < count ? tile_end : count;
        return RON_ERR_OK;
    }
    *ret_count = count - count % IO_TILE_WIDTH;
    if (tlog->leaves == NULL) {
        err = level_path(tlog, 0, path, reterr);
        if (err == RON_ERR_OK)
            err = io_vfs_open(tlog->vfs, path, IO_OPEN_DIRECT, &tlog->leaves, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    *ret_file = tlog->leaves;
    return RON_ERR_OK;
}

/* Up to IO_WRITE_PARTS_MAX tiles from written[level] on, as they lie in memory. */
static size_t gather(struct io_tlog *tlog, unsigned level, uint64_t count,
                     struct ron_slice parts[IO_WRITE_PARTS_MAX], uint64_t *ret_end)
{
    uint64_t at = tlog->written[level];
    size_t parts_count = 0;

    tlog_lock(tlog);
    while (at < count && parts_count < IO_WRITE_PARTS_MAX) {
        uint64_t index = at / IO_TILE_WIDTH;
        uint64_t end = (index + 1) * IO_TILE_WIDTH < count ? (index + 1) * IO_TILE_WIDTH : count;
        uint32_t slot = tlog_tile_find(tlog, (struct tile_key){level, index});

        RON_ASSERT(slot != TILE_NO_SLOT); /* dirty: it stays until it is written */
        RON_ASSERT(tlog->tiles[slot].state == TILE_DIRTY);
        parts[parts_count++] = ron_slice_of(&tlog->nodes[slot].at[at % IO_TILE_WIDTH],
                                            (size_t)(end - at) * HASH_SIZE);
        at = end;
    }
    tlog_unlock(tlog);
    *ret_end = at;
    return parts_count;
}

static void mark_written(struct io_tlog *tlog, unsigned level, uint64_t end)
{
    uint64_t first = tlog->written[level] / IO_TILE_WIDTH;

    tlog_lock(tlog);
    for (uint64_t index = first; (index + 1) * IO_TILE_WIDTH <= end; index++)
        tlog_tile_clean(tlog, tlog_tile_find(tlog, (struct tile_key){level, index}));
    tlog_unlock(tlog);
    tlog->written[level] = end;
    tlog->unsynced[level] = true;
}

static enum ron_err flush_level(struct io_tlog *tlog, unsigned level, uint64_t count,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_slice parts[IO_WRITE_PARTS_MAX];
    enum ron_err err = RON_ERR_OK;

    if (tlog->written[level] < count && file_of(tlog, level) == NULL)
        err = create_level(tlog, level, reterr);
    while (err == RON_ERR_OK && tlog->written[level] < count) {
        struct io_file *file = file_of(tlog, level);
        uint64_t end = count;
        size_t parts_count;

        if (level == 0 && tlog->direct)
            err = open_leaves(tlog, count, &file, &end, reterr);
        if (err != RON_ERR_OK)
            return err;
        parts_count = gather(tlog, level, end, parts, &end);
        err = io_file_write(file, tlog->written[level] * HASH_SIZE, parts, parts_count, reterr);
        if (err == RON_ERR_OK)
            mark_written(tlog, level, end);
    }
    return err;
}

/* Have the disk take what was written, piece by piece. Syncs are seconds apart: all of it would go
 * there at once, and a sync of the log would wait behind it. Leaves, of which there are 255 for
 * each hash above them, leave the system's cache then: the newest are in the pool, a proof of an
 * old one reads one tile of them, and memory that is used again costs less than new one. */
static enum ron_err write_back(struct io_tlog *tlog, unsigned level,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && tlog->written[level] - tlog->on_disk[level] >= WRITE_BACK_HASHES) {
        err = io_file_write_back(file_of(tlog, level), tlog->on_disk[level] * HASH_SIZE,
                                 WRITE_BACK_HASHES * HASH_SIZE, reterr);
        if (err == RON_ERR_OK && level == 0)
            io_file_uncache(file_of(tlog, level), tlog->on_disk[level] * HASH_SIZE,
                            WRITE_BACK_HASHES * HASH_SIZE);
        tlog->on_disk[level] += WRITE_BACK_HASHES;
    }
    return err;
}

static enum ron_err flush(struct io_tlog *tlog, uint64_t size,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(!tlog->read_only);
    if (tlog->broken)
        return ron_fail(reterr, RON_ERR_IO, "%s: an earlier write or sync failed", tlog->dir);
    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++)
        err = flush_level(tlog, level, size >> (TILE_HEIGHT * level), reterr);
    /* The appender has its room again. */
    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++)
        err = write_back(tlog, level, reterr);
    tlog->broken = err != RON_ERR_OK;
    return err;
}

enum ron_err io_tlog_flush(struct io_tlog *tlog, struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    return flush(tlog, io_tlog_size(tlog), reterr);
}

/* ---- Sync ---- */

static enum ron_err sync_levels(struct io_tlog *tlog, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (unsigned level = 0; err == RON_ERR_OK && level < IO_TILE_LEVELS; level++) {
        if (!tlog->unsynced[level])
            continue;
        err = io_file_sync(file_of(tlog, level), reterr);
        tlog->unsynced[level] = err != RON_ERR_OK;
    }
    if (err == RON_ERR_OK && tlog->names_changed) {
        err = io_vfs_sync_dir(tlog->vfs, tlog->dir, reterr);
        tlog->names_changed = err != RON_ERR_OK;
    }
    return err;
}

static enum ron_err frontier_at(struct io_tlog *tlog, uint64_t size,
                                struct ron_merkle_frontier *frontier,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_sha256 hashes[RON_MERKLE_LEVELS_MAX];
    struct node nodes[RON_MERKLE_LEVELS_MAX];
    size_t count = 0;
    enum ron_err err;

    for (unsigned height = 0; height < RON_MERKLE_LEVELS_MAX; height++)
        if ((size >> height & 1) != 0)
            nodes[count++] = (struct node){height, (size >> height) - 1};
    err = tlog_nodes(tlog, nodes, count, hashes, reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_merkle_frontier_init(frontier);
    frontier->leaves_count = size;
    for (size_t i = 0; i < count; i++)
        frontier->levels[nodes[i].height] = hashes[i];
    return RON_ERR_OK;
}

static enum ron_err write_head(struct io_tlog *tlog, uint64_t size,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    uint8_t bytes[IO_TLOG_HEAD_SIZE_MAX];
    struct ron_merkle_frontier frontier;
    char path[IO_PATH_MAX + 1];
    size_t bytes_size;
    enum ron_err err = frontier_at(tlog, size, &frontier, reterr);

    if (err == RON_ERR_OK)
        err = tlog_path(tlog, "head", path, reterr);
    if (err != RON_ERR_OK)
        return err;
    bytes_size = io_tlog_head_encode(&frontier, bytes);
    return io_durable_replace(tlog->vfs, path, ron_slice_of(bytes, bytes_size), reterr);
}

enum ron_err io_tlog_sync(struct io_tlog *tlog, struct ron_errinfo *reterr)
{
    uint64_t size;
    enum ron_err err;

    rt_assert_no_lock_held();
    size = io_tlog_size(tlog);
    err = flush(tlog, size, reterr);
    if (err != RON_ERR_OK || size == io_tlog_durable_size(tlog))
        return err;
    err = sync_levels(tlog, reterr);
    if (err == RON_ERR_OK)
        err = write_head(tlog, size, reterr);
    if (err != RON_ERR_OK) {
        tlog->broken = true;
        return ron_wrap(reterr, err, "tiles in %s", tlog->dir);
    }
    tlog_lock(tlog);
    tlog->durable_size = size;
    tlog_unlock(tlog);
    return RON_ERR_OK;
}
