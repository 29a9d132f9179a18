/*
 * tlog.h - an append-only Merkle tree (RFC 6962) as tiles: roots and proofs at any size.
 *
 * Tiles are derived data: the log they are made from stays the truth. On disk there is one file per
 * tile level, `level-0` .. `level-7`, an array of hashes (tile n of 256 hashes at n * 8192), and
 * `head`: the size up to which the files are durable, and the hashes that vouch for them
 * (tlog_head.h). The caller appends what its log has beyond io_tlog_size after an open.
 *
 * Nothing is served unchecked. A tile read from a file must hash to its parent, up to tiles that
 * were built or checked in memory; and each proof is verified against the root it claims before it
 * leaves. Damage is RON_ERR_WAL_CORRUPT with file and offset, never a wrong proof; the way out is
 * to open with `rebuild` and to append everything again.
 *
 * Threads: one appends, one flushes and syncs (they may be two), any read. Appending touches no
 * file. Memory is bounded: tiles wait in memory until they are flushed, and an append that finds no
 * room is answered RON_ERR_STORAGE_BUSY and changes nothing.
 */
#ifndef RON_IO_TLOG_H
#define RON_IO_TLOG_H

#include "base/merkle_hash.h"
#include "io/vfs.h"
#include "ron/verify.h"

enum {
    IO_TILE_WIDTH = 256, /* hashes of a full tile */
    IO_TILE_LEVELS = 8,
    IO_TLOG_APPEND_MAX = 8192, /* hashes of one append */
};

struct io_tlog; /* opaque */

struct io_tlog_options {
    struct io_vfs *vfs;   /* borrowed */
    const char *dir;      /* "ledger/tiles"; copied */
    uint64_t cache_bytes; /* tiles in memory, 16 KiB each; 0: 32 MiB; at least 2 MiB */
    bool direct;          /* full tiles of leaves are written past the system's cache */
    bool rebuild;         /* forget what is there and start at size 0 */
    bool read_only;       /* change nothing; no append, no sync */
};

/* RON_ERR_WAL_CORRUPT: head or files are damaged; RON_ERR_VERSION_SKEW: a newer head. In both no
 * byte has changed. */
enum ron_err io_tlog_open(const struct io_tlog_options *options, struct io_tlog **ret_tlog,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Syncs nothing. Accepts NULL, returns NULL. */
struct io_tlog *io_tlog_free(struct io_tlog *tlog) RON_BLOCKS;

uint64_t io_tlog_size(struct io_tlog *tlog);         /* leaves; any thread */
uint64_t io_tlog_durable_size(struct io_tlog *tlog); /* as of the last sync; any thread */

/* Leaves that there is memory for before they are flushed, about; any thread. */
uint64_t io_tlog_room(const struct io_tlog *tlog);

/* Append leaf hashes, at most IO_TLOG_APPEND_MAX. All are visible to readers at once when it
 * returns. nodes: NULL, or what ron_merkle_frontier_append_keep made of the same hashes in a tree
 * of this size: then nothing is hashed twice. */
enum ron_err io_tlog_append(struct io_tlog *tlog, const struct ron_sha256 *hashes,
                            size_t hashes_count, const struct ron_sha256 *nodes,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Write what is in memory only: makes room, promises nothing. */
enum ron_err io_tlog_flush(struct io_tlog *tlog,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Make all that was appended before the call durable. An error of either is final: both answer
 * RON_ERR_IO from then on, until the tree is opened again; readers go on. */
enum ron_err io_tlog_sync(struct io_tlog *tlog, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Readers, any thread. Sizes beyond the current one: RON_ERR_NOT_FOUND. RON_ERR_BUSY: too many read
 * tiles from files at this moment. */
enum ron_err io_tlog_root(struct io_tlog *tlog, uint64_t size, struct ron_sha256 *ret_root,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct io_tlog_proof {
    struct ron_tree tree; /* that it leads to */
    struct ron_tree old;  /* consistency: that it leads from */
    size_t hashes_count;
    struct ron_sha256 hashes[RON_CONSISTENCY_HASHES_MAX];
};
/* Leaf `index` in the tree of `size`; RON_ERR_MALFORMED unless index < size. */
enum ron_err io_tlog_inclusion(struct io_tlog *tlog, uint64_t index, uint64_t size,
                               struct io_tlog_proof *ret_proof,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The tree of old_size is the beginning of that of `size`; RON_ERR_MALFORMED unless old_size <=
 * size. From size 0 the proof is empty. */
enum ron_err io_tlog_consistency(struct io_tlog *tlog, uint64_t old_size, uint64_t size,
                                 struct io_tlog_proof *ret_proof,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* A tile of c2sp.org/tlog-tiles: `width` hashes, 256 for a full one. */
struct io_tile {
    unsigned level;
    uint64_t index;
    unsigned width;
};
enum ron_err io_tlog_tile(struct io_tlog *tlog, const struct io_tile *tile,
                          struct ron_sha256 ret_hashes[IO_TILE_WIDTH],
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The widest tile at this place in the tree of `size`; width 0: there is none. */
struct io_tile io_tile_at(uint64_t size, unsigned level, uint64_t index);

/* "0/x001/x234/067.p/5", or "entries/..." for a bundle. */
enum { IO_TILE_PATH_MAX = 64 };
void io_tile_path(const struct io_tile *tile, bool entries, char ret_path[IO_TILE_PATH_MAX]);

/* The static layout of c2sp.org/tlog-tiles under `dir` of another vfs: tile/..., `checkpoint` last.
 * Tiles that are there are left alone, so an export can go on where one ended. For publishing:
 * makes nothing durable. */
struct io_tlog_export_options {
    struct io_vfs *vfs;
    const char *dir;       /* "" is its root */
    uint64_t size;         /* of the tree */
    struct ron_slice note; /* of its checkpoint; must be of this size and root */
    /* Append the bytes of leaf `index`; NULL: no entry bundles. */
    enum ron_err (*entry)(void *context, uint64_t index, struct ron_buf *out,
                          struct ron_errinfo *reterr);
    void *context;
};
enum ron_err io_tlog_export(struct io_tlog *tlog, const struct io_tlog_export_options *options,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
