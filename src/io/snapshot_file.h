/*
 * snapshot_file.h - derived state in one file: hashed, replaced atomically, never needed for truth.
 *
 * A snapshot is written in pieces to `<name>.new`, synced, renamed to `<name>`, its directory
 * synced: a crash leaves the old one or the new one. It carries what it is (kind, version), the log
 * position it was cut at, its size and a BLAKE3 over all of it; a reader believes nothing before
 * the hash fits. The owner decides the cut (rt: off the hot path, from a state nobody changes).
 *
 * A cut must be durable before it is named: a snapshot ahead of the log would, after a crash, hold
 * records that never were. Begin asserts it; open passes over what is ahead of the log and counts
 * it, since from an honest disk that means that acknowledged records are gone.
 *
 * File `snap-<16 hex digits of position>`, little-endian:
 *
 *      0 magic "RONSNP\0\1"  8               40 size of the content u64
 *      8 version of the format u32 = 1       48 BLAKE3 of the content 32
 *     12 kind u32                            80 zeros to 4088
 *     16 version of the content u32        4088 CRC-32C of 0..4088 u32, zero u32
 *     20 zero u32                          4096 content, to the end of the file
 *     24 position u64
 *     32 last durable position at the cut u64
 *
 * Valid: magic, sum, position as in the name and not above the last durable, file size 4096 + size,
 * hash.
 */
#ifndef RON_IO_SNAPSHOT_FILE_H
#define RON_IO_SNAPSHOT_FILE_H

#include "base/b3.h"
#include "io/vfs.h"

enum { IO_SNAPSHOT_CHUNK_SIZE = 1 << 20 }; /* unit of writing and of checked reading */

struct io_snapshot_cut {
    uint32_t kind, version; /* of the content; the caller's */
    uint64_t position;      /* log index (or seq) it holds everything up to */
    uint64_t last_durable;  /* of that log when the cut was made; at least position */
};
struct io_snapshot_info {
    uint32_t kind, version;
    uint64_t position;
    uint64_t size;      /* of the content */
    struct ron_b3 hash; /* of the content */
};

struct io_snapshot_writer; /* opaque; one thread; one per directory at a time */
/* The directory must exist. */
enum ron_err io_snapshot_begin(struct io_vfs *vfs, const char *dir,
                               const struct io_snapshot_cut *cut,
                               struct io_snapshot_writer **ret_writer,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* After a failure every further put and the commit answer it again. */
enum ron_err io_snapshot_put(struct io_snapshot_writer *writer, struct ron_slice bytes,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Durable and named when it returns. Frees the writer in any case; on failure nothing is left of it
 * but, if the last sync failed, the whole new file. */
enum ron_err io_snapshot_commit(struct io_snapshot_writer *writer,
                                struct io_snapshot_info *ret_info,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Give up and remove what was written. Accepts NULL, returns NULL. */
struct io_snapshot_writer *io_snapshot_abandon(struct io_snapshot_writer *writer) RON_BLOCKS;

struct io_snapshot_search { /* what was passed over on the way to the one that was opened */
    uint64_t ahead_count;   /* newer than position_max: the log has lost what they were cut from */
    uint64_t damaged_count; /* failed a check or could not be read */
    uint64_t foreign_count; /* of another kind or of a newer format */
};
struct io_snapshot; /* opaque: one that was checked; one thread */
/* The newest whole one at or before `position_max`, which is the log's last durable index; older
 * ones are tried where a newer is not usable. RON_ERR_NOT_FOUND says what was wrong with the last
 * one. ret_search (may be NULL) is filled in that case, too. */
enum ron_err io_snapshot_open_newest(struct io_vfs *vfs, const char *dir, uint32_t kind,
                                     uint64_t position_max, struct io_snapshot **ret_snapshot,
                                     struct io_snapshot_search *ret_search,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL. */
struct io_snapshot *io_snapshot_close(struct io_snapshot *snapshot) RON_BLOCKS;
const struct io_snapshot_info *io_snapshot_info(const struct io_snapshot *snapshot);
/* Exactly `size` bytes of the content; RON_ERR_TOO_LARGE beyond its end. Every chunk is hashed
 * again and compared with what was seen at open: RON_ERR_WAL_CORRUPT where it no longer fits. */
enum ron_err io_snapshot_read(struct io_snapshot *snapshot, uint64_t offset, void *bytes,
                              size_t size, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Remove all but the newest `keep` (at least 1; 2 survive a damaged newest) and every `.new` left
 * behind. Not while one is written. */
enum ron_err io_snapshot_retain(struct io_vfs *vfs, const char *dir, size_t keep,
                                uint64_t *ret_removed,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
