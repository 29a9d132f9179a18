/*
 * tlog_impl.h - inside the Merkle log: the pool of tiles.
 *
 * A tile in memory is whole: 256 hashes and the 255 nodes above them, node k of height d at
 * tile_offset(d) + k. The pool has a fixed number of them, found by level and index through a hash
 * table. A tile is
 *
 *   free     nobody's
 *   loading  being read from its file by one reader; not found by others yet
 *   dirty    has hashes that are not in its file: pinned. The last, partial tile of a level always
 * is clean    full and in its file: may be evicted
 *
 * The lock (class storage) covers table, states and sizes and is held for copying at most 256
 * hashes. Nodes below the published size never change while their tile has its place, so the
 * flusher reads those of dirty tiles without it: only the flusher makes a dirty tile clean. The
 * appender writes nodes at and above the published size without it: nobody looks there.
 */
#ifndef RON_IO_TLOG_IMPL_H
#define RON_IO_TLOG_IMPL_H

#include "io/tlog.h"
#include "io/tlog_head.h"
#include "rt/lock.h"

enum { TILE_NODES = 2 * IO_TILE_WIDTH - 1, TILE_HEIGHT = 8, TILE_ROOT = TILE_NODES - 1 };

static inline unsigned tile_offset(unsigned height)
{
    return 2u * IO_TILE_WIDTH - (2u * IO_TILE_WIDTH >> height);
}

enum tile_state { TILE_FREE, TILE_LOADING, TILE_DIRTY, TILE_CLEAN };

struct tile {
    uint64_t index;
    uint32_t next; /* in its chain of the table: slot + 1, 0 ends it */
    uint8_t level;
    uint8_t state; /* enum tile_state */
    bool recent;   /* used since the clock hand passed */
};
/* Whole pages, and the hashes a file has of it are the first two of them: so full tiles can be
 * written from where they lie, past the system's cache. */
struct tile_nodes {
    struct ron_sha256 at[TILE_NODES];
    struct ron_sha256 unused;
};

struct io_tlog {
    struct io_vfs *vfs;
    bool read_only, direct;
    char dir[IO_PATH_MAX + 1];

    struct rt_lock lock;
    uint64_t size RON_GUARDED_BY(storage); /* published */
    uint64_t durable_size RON_GUARDED_BY(storage);
    struct io_file *files[IO_TILE_LEVELS] RON_GUARDED_BY(storage); /* set once, by the flusher */
    struct ron_tree last_root RON_GUARDED_BY(storage);             /* most proofs are at one size */
    uint32_t *table RON_GUARDED_BY(storage);                       /* slot + 1 */
    struct tile *tiles RON_GUARDED_BY(storage);
    uint32_t hand RON_GUARDED_BY(storage);
    uint32_t dirty_count RON_GUARDED_BY(storage);
    uint32_t loading_count RON_GUARDED_BY(storage);
    /* Fixed at birth. */
    struct tile_nodes *nodes; /* of each slot; who may touch them: see above */
    void *nodes_memory;
    uint32_t slots_count;
    uint32_t dirty_max;
    uint32_t loading_max;
    uint32_t table_mask;
    /* The appender's. */
    uint64_t counts[IO_TILE_LEVELS]; /* hashes of each level */
    uint32_t tails[IO_TILE_LEVELS];  /* slot of its last tile, where that is partial */
    /* The flusher's. */
    struct io_file *leaves; /* level 0 again, past the cache; NULL: not yet, or not so */
    uint64_t written[IO_TILE_LEVELS];
    uint64_t on_disk[IO_TILE_LEVELS]; /* of those, as far as the disk was made to take them */
    bool unsynced[IO_TILE_LEVELS];
    bool names_changed;
    bool broken;
};

static inline void tlog_lock(struct io_tlog *tlog) RON_LOCKS(storage)
{
    rt_lock_take(&tlog->lock);
}
static inline void tlog_unlock(struct io_tlog *tlog) RON_UNLOCKS(storage)
{
    rt_lock_drop(&tlog->lock);
}

/* ---- tlog_tiles.c ---- */

struct tile_key {
    unsigned level;
    uint64_t index;
};
enum { TILE_NO_SLOT = UINT32_MAX };

enum ron_err tlog_pool_init(struct io_tlog *tlog, uint64_t cache_bytes, struct ron_errinfo *reterr);
void tlog_pool_fini(struct io_tlog *tlog);
/* TILE_NO_SLOT if it is not there. */
uint32_t tlog_tile_find(struct io_tlog *tlog, struct tile_key key) RON_NEEDS(storage);
/* A dirty tile at this place, for the appender. There is room: the caller counted. */
uint32_t tlog_tile_new(struct io_tlog *tlog, struct tile_key key) RON_NEEDS(storage);
void tlog_tile_clean(struct io_tlog *tlog, uint32_t slot) RON_NEEDS(storage);
/* All nodes above hashes [from, to) of a tile, where they are complete. */
void tlog_tile_grow(struct tile_nodes *nodes, unsigned from, unsigned to);

/* A node of the tree: the root of the complete subtree of leaves [index << height, (index + 1) <<
 * height). */
struct node {
    unsigned height;
    uint64_t index;
};
/* Their hashes; all must be below the published size. Fast where neighbours share a tile. */
enum ron_err tlog_nodes(struct io_tlog *tlog, const struct node *nodes, size_t nodes_count,
                        struct ron_sha256 *ret_hashes,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The first `width` hashes of a tile, likewise. */
enum ron_err tlog_tile_hashes(struct io_tlog *tlog, struct tile_key key, unsigned width,
                              struct ron_sha256 *ret_hashes,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* ---- tlog_files.c ---- */

enum ron_err tlog_path(const struct io_tlog *tlog, const char *name, char ret_path[IO_PATH_MAX + 1],
                       struct ron_errinfo *reterr) RON_MUST_USE;
/* Head, level files and partial tiles as they were left. */
enum ron_err tlog_recover(struct io_tlog *tlog, bool rebuild,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
