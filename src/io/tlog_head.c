/*
 * tlog_head.c - see tlog_head.h.
 */
#include "io/tlog_head.h"

#include "base/assert.h"
#include "base/crc32c.h"

enum { VERSION = 1, FIXED_SIZE = 24, SUM_SIZE = 4 };

static const uint8_t magic[8] = {'R', 'O', 'N', 'T', 'L', 'O', 'G', 1};

size_t io_tlog_head_encode(const struct ron_merkle_frontier *frontier,
                           uint8_t ret_bytes[IO_TLOG_HEAD_SIZE_MAX])
{
    size_t size = FIXED_SIZE;

    memcpy(ret_bytes, magic, sizeof(magic));
    ron_store_le32(ret_bytes + 8, VERSION);
    ron_store_le32(ret_bytes + 12, 0);
    ron_store_le64(ret_bytes + 16, frontier->leaves_count);
    for (unsigned level = 0; level < RON_MERKLE_LEVELS_MAX; level++)
        if ((frontier->leaves_count >> level & 1) != 0) {
            memcpy(ret_bytes + size, frontier->levels[level].bytes, RON_SHA256_SIZE);
            size += RON_SHA256_SIZE;
        }
    ron_store_le32(ret_bytes + size, ron_crc32c(0, ret_bytes, size));
    RON_ASSERT(size + SUM_SIZE <= IO_TLOG_HEAD_SIZE_MAX);
    return size + SUM_SIZE;
}

enum ron_err io_tlog_head_decode(struct ron_slice bytes, struct ron_merkle_frontier *ret_frontier,
                                 struct ron_errinfo *reterr)
{
    struct ron_merkle_frontier frontier;
    uint64_t leaves_count;
    size_t at = FIXED_SIZE, expected;

    if (bytes.size < FIXED_SIZE + SUM_SIZE || memcmp(bytes.data, magic, sizeof(magic)) != 0)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "not the head of a tile directory");
    if (ron_load_le32(bytes.data + 8) > VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "head of version %u, this program knows %d",
                        ron_load_le32(bytes.data + 8), VERSION);
    leaves_count = ron_load_le64(bytes.data + 16);
    expected = FIXED_SIZE + SUM_SIZE + RON_SHA256_SIZE * (size_t)__builtin_popcountll(leaves_count);
    if (bytes.size != expected)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "head of %zu bytes, its size asks for %zu",
                        bytes.size, expected);
    if (ron_load_le32(bytes.data + expected - SUM_SIZE) !=
        ron_crc32c(0, bytes.data, expected - SUM_SIZE))
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "head: the checksum does not fit");
    if (ron_load_le32(bytes.data + 8) != VERSION || ron_load_le32(bytes.data + 12) != 0 ||
        leaves_count > IO_TLOG_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "head: version, zeros or size out of range");
    ron_merkle_frontier_init(&frontier);
    frontier.leaves_count = leaves_count;
    for (unsigned level = 0; level < RON_MERKLE_LEVELS_MAX; level++)
        if ((leaves_count >> level & 1) != 0) {
            memcpy(frontier.levels[level].bytes, bytes.data + at, RON_SHA256_SIZE);
            at += RON_SHA256_SIZE;
        }
    *ret_frontier = frontier;
    return RON_ERR_OK;
}
