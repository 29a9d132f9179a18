/*
 * snapshot_file.h - derived state in one file: hashed, replaced atomically, never needed for truth.
 *
 * A snapshot is written in pieces to `<name>.new`, synced, renamed to `<name>`, its directory
 * synced: a crash leaves the old one or the new one. It carries what it is (kind, version), the log
 * position it was cut at, its size and a BLAKE3 over all of it; a reader believes nothing before
 * the hash fits. The owner decides the cut (rt: off the hot path, from a state nobody changes).
 */
#ifndef RON_IO_SNAPSHOT_FILE_H
#define RON_IO_SNAPSHOT_FILE_H

#include "base/b3.h"
#include "io/vfs.h"

struct io_snapshot_info {
    uint32_t kind, version; /* of the content; the caller's */
    uint64_t position;      /* log index (or seq) it holds everything up to */
    uint64_t size;          /* of the content */
    struct ron_b3 hash;     /* of the content */
};

struct io_snapshot_writer; /* opaque */
enum ron_err io_snapshot_begin(struct io_vfs *vfs, const char *dir, uint32_t kind, uint32_t version,
                               uint64_t position, struct io_snapshot_writer **ret_writer,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err io_snapshot_put(struct io_snapshot_writer *writer, struct ron_slice bytes,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Durable and named `snap-<16 hex of position>` when it returns. Frees the writer in any case. */
enum ron_err io_snapshot_commit(struct io_snapshot_writer *writer,
                                struct io_snapshot_info *ret_info,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Give up and remove what was written. Accepts NULL, returns NULL. */
struct io_snapshot_writer *io_snapshot_abandon(struct io_snapshot_writer *writer) RON_BLOCKS;

struct io_snapshot; /* opaque: one that was checked */
/* The newest whole one at or before `position_max`; older ones are tried where a newer is damaged
 * (counted in *ret_damaged). RON_ERR_NOT_FOUND. */
enum ron_err io_snapshot_open_newest(struct io_vfs *vfs, const char *dir, uint32_t kind,
                                     uint64_t position_max, struct io_snapshot **ret_snapshot,
                                     uint64_t *ret_damaged,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
struct io_snapshot *io_snapshot_close(struct io_snapshot *snapshot) RON_BLOCKS;
const struct io_snapshot_info *io_snapshot_info(const struct io_snapshot *snapshot);
/* RON_ERR_WAL_CORRUPT when a piece no longer fits the hash tree seen at open. */
enum ron_err io_snapshot_read(struct io_snapshot *snapshot, uint64_t offset, void *bytes,
                              size_t size, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Remove all but the newest `keep` and every `.new` left behind. */
enum ron_err io_snapshot_retain(struct io_vfs *vfs, const char *dir, size_t keep,
                                uint64_t *ret_removed,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
