/*
 * tlog.c - the Merkle log: open, append, tiles. See tlog.h; tlog_impl.h has the memory.
 */
#include "io/tlog.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/durable.h"
#include "io/tlog_impl.h"

/* ---- Life ---- */

enum ron_err io_tlog_open(const struct io_tlog_options *options, struct io_tlog **ret_tlog,
                          struct ron_errinfo *reterr)
{
    struct io_tlog *tlog;
    int dir_size;
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    RON_ASSERT(!options->read_only || !options->rebuild);
    tlog = ron_mem_alloc(sizeof(*tlog));
    if (tlog == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a Merkle log");
    rt_lock_init(&tlog->lock, "tlog", RON_RANK_storage);
    tlog->vfs = options->vfs;
    tlog->read_only = options->read_only;
    tlog->direct = options->direct;
    dir_size = snprintf(tlog->dir, sizeof(tlog->dir), "%s", options->dir);
    if (dir_size < 0 || (size_t)dir_size >= sizeof(tlog->dir))
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "path of a tile directory");
    if (err == RON_ERR_OK)
        err = tlog_pool_init(tlog, options->cache_bytes, reterr);
    if (err == RON_ERR_OK && !tlog->read_only)
        err = io_durable_dir(tlog->vfs, tlog->dir, reterr);
    if (err == RON_ERR_OK)
        err = tlog_recover(tlog, options->rebuild, reterr);
    if (err != RON_ERR_OK) {
        tlog = io_tlog_free(tlog);
        return err;
    }
    *ret_tlog = tlog;
    return RON_ERR_OK;
}

struct io_tlog *io_tlog_free(struct io_tlog *tlog)
{
    rt_assert_no_lock_held();
    if (tlog == NULL)
        return NULL;
    for (unsigned level = 0; level < IO_TILE_LEVELS; level++) {
        struct io_file *file;

        tlog_lock(tlog);
        file = tlog->files[level];
        tlog->files[level] = NULL;
        tlog_unlock(tlog);
        file = io_file_close(file);
    }
    tlog->leaves = io_file_close(tlog->leaves);
    tlog_pool_fini(tlog);
    rt_lock_fini(&tlog->lock);
    return ron_mem_free(tlog);
}

uint64_t io_tlog_size(struct io_tlog *tlog)
{
    uint64_t size;

    tlog_lock(tlog);
    size = tlog->size;
    tlog_unlock(tlog);
    return size;
}

uint64_t io_tlog_durable_size(struct io_tlog *tlog)
{
    uint64_t size;

    tlog_lock(tlog);
    size = tlog->durable_size;
    tlog_unlock(tlog);
    return size;
}

uint64_t io_tlog_room(const struct io_tlog *tlog)
{
    return (uint64_t)tlog->dirty_max * IO_TILE_WIDTH;
}

/* ---- Append ---- */

/* Tiles that a level of `before` hashes must get to hold `after`. */
static uint64_t new_tiles(uint64_t before, uint64_t after)
{
    return (after + IO_TILE_WIDTH - 1) / IO_TILE_WIDTH -
           (before + IO_TILE_WIDTH - 1) / IO_TILE_WIDTH;
}

/* Is there memory for all of it? Only the flusher changes that meanwhile, for the better. */
static bool has_room(struct io_tlog *tlog, size_t hashes_count)
{
    uint64_t tiles_count = 0;
    bool has;

    for (unsigned level = 0; level < IO_TILE_LEVELS; level++) {
        uint64_t after = (tlog->counts[0] + hashes_count) >> (TILE_HEIGHT * level);

        tiles_count += new_tiles(tlog->counts[level], after);
    }
    tlog_lock(tlog);
    has = tlog->dirty_count + tiles_count <= tlog->dirty_max;
    tlog_unlock(tlog);
    return has;
}

/* Nodes of heights 1 to TILE_HEIGHT that are known already: of each height, and which is the first.
 */
struct known {
    const struct ron_sha256 *at[TILE_HEIGHT + 1];
    uint64_t first[TILE_HEIGHT + 1];
};

static void known_init(struct known *known, uint64_t size, size_t hashes_count,
                       const struct ron_sha256 *nodes)
{
    for (unsigned height = 1; height <= TILE_HEIGHT; height++) {
        known->first[height] = size >> height;
        known->at[height] = nodes;
        nodes += ((size + hashes_count) >> height) - known->first[height];
    }
}

/* As tlog_tile_grow, from what is known. */
static void grow_known(struct tile_nodes *nodes, uint64_t tile_start, unsigned from, unsigned to,
                       const struct known *known)
{
    for (unsigned height = 1; height <= TILE_HEIGHT; height++) {
        const unsigned first = from >> height, end = to >> height;
        const uint64_t skip = (tile_start >> height) + first - known->first[height];

        if (first == end)
            return;
        memcpy(&nodes->at[tile_offset(height) + first], known->at[height] + skip,
               (end - first) * sizeof(nodes->at[0]));
    }
}

/* Hashes onto the end of a level, at most to the end of its tile. known: of the lowest level, or
 * NULL. Returns how many. */
static size_t append_to_tile(struct io_tlog *tlog, unsigned level, const struct ron_sha256 *hashes,
                             size_t hashes_count, const struct known *known)
{
    unsigned from = (unsigned)(tlog->counts[level] % IO_TILE_WIDTH);
    size_t room = IO_TILE_WIDTH - from;
    size_t count = hashes_count < room ? hashes_count : room;
    struct tile_nodes *nodes;

    if (from == 0) {
        tlog_lock(tlog);
        tlog->tails[level] = tlog_tile_new(
            tlog, (struct tile_key){level, tlog->counts[level] / IO_TILE_WIDTH});
        tlog_unlock(tlog);
    }
    nodes = &tlog->nodes[tlog->tails[level]];
    memcpy(&nodes->at[from], hashes, count * sizeof(*hashes));
    if (known != NULL)
        grow_known(nodes, tlog->counts[level] - from, from, from + (unsigned)count, known);
    else
        tlog_tile_grow(nodes, from, from + (unsigned)count);
    tlog->counts[level] += count;
    return count;
}

enum ron_err io_tlog_append(struct io_tlog *tlog, const struct ron_sha256 *hashes,
                            size_t hashes_count, const struct ron_sha256 *nodes,
                            struct ron_errinfo *reterr)
{
    struct known known;
    size_t done = 0;

    RON_ASSERT(!tlog->read_only);
    RON_ASSERT(hashes_count <= IO_TLOG_APPEND_MAX);
    RON_ASSERT(tlog->counts[0] + hashes_count <= IO_TLOG_SIZE_MAX);
    if (!has_room(tlog, hashes_count))
        return ron_fail(reterr, RON_ERR_STORAGE_BUSY, "%s: %u tiles wait to be written", tlog->dir,
                        tlog->dirty_max);
    if (nodes != NULL)
        known_init(&known, tlog->counts[0], hashes_count, nodes);
    while (done < hashes_count) {
        done += append_to_tile(tlog, 0, hashes + done, hashes_count - done,
                               nodes == NULL ? NULL : &known);
        /* A full tile is one hash of the level above. */
        for (unsigned level = 0;
             tlog->counts[level] % IO_TILE_WIDTH == 0 && level + 1 < IO_TILE_LEVELS; level++) {
            const struct ron_sha256 *root = &tlog->nodes[tlog->tails[level]].at[TILE_ROOT];

            (void)append_to_tile(tlog, level + 1, root, 1, NULL);
        }
    }
    tlog_lock(tlog);
    tlog->size = tlog->counts[0];
    tlog_unlock(tlog);
    return RON_ERR_OK;
}

/* ---- Tiles ---- */

struct io_tile io_tile_at(uint64_t size, unsigned level, uint64_t index)
{
    uint64_t count = level < IO_TILE_LEVELS ? size >> (TILE_HEIGHT * level) : 0;
    uint64_t full_count = count / IO_TILE_WIDTH;
    unsigned width = 0;

    if (index < full_count)
        width = IO_TILE_WIDTH;
    else if (index == full_count)
        width = (unsigned)(count % IO_TILE_WIDTH);
    return (struct io_tile){level, index, width};
}

enum ron_err io_tlog_tile(struct io_tlog *tlog, const struct io_tile *tile,
                          struct ron_sha256 ret_hashes[IO_TILE_WIDTH], struct ron_errinfo *reterr)
{
    rt_assert_no_lock_held();
    if (tile->width == 0 || tile->width > IO_TILE_WIDTH)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a tile of %u hashes", tile->width);
    if (tile->width > io_tile_at(io_tlog_size(tlog), tile->level, tile->index).width)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no tile %u/%llu of %u hashes yet", tile->level,
                        (unsigned long long)tile->index, tile->width);
    return tlog_tile_hashes(tlog, (struct tile_key){tile->level, tile->index}, tile->width,
                            ret_hashes, reterr);
}
