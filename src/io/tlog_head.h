/*
 * tlog_head.h - the bytes of a tile directory's `head`: what of the level files can be trusted.
 *
 * Little-endian; 28 + 32 * (bits set in size) bytes:
 *
 *      0 magic "RONTLOG\1"  8
 *      8 version u32 = 1
 *     12 zero u32
 *     16 size u64: leaves
 *     24 hashes: for each bit set in size, lowest first, the root of that complete subtree at the
 *        right edge (ron_merkle_frontier)
 *      - CRC-32C of all before u32
 *
 * Valid if magic, version, length and sum fit. It is written beside, synced, renamed, and its
 * directory synced, after the level files were synced: what it counts is durable. Upgrade rule: a
 * reader refuses a version above its own by name.
 */
#ifndef RON_IO_TLOG_HEAD_H
#define RON_IO_TLOG_HEAD_H

#include "base/merkle_frontier.h"

enum { IO_TLOG_HEAD_SIZE_MAX = 28 + 32 * RON_MERKLE_LEVELS_MAX };
#define IO_TLOG_SIZE_MAX ((uint64_t)1 << 62)

/* Returns the number of bytes. */
size_t io_tlog_head_encode(const struct ron_merkle_frontier *frontier,
                           uint8_t ret_bytes[IO_TLOG_HEAD_SIZE_MAX]);
/* RON_ERR_VERSION_SKEW, else RON_ERR_WAL_CORRUPT. */
enum ron_err io_tlog_head_decode(struct ron_slice bytes, struct ron_merkle_frontier *ret_frontier,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

#endif
