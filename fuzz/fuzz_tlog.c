/*
 * fuzz_tlog.c - any bytes as the head and the level files of a tile directory.
 *
 * The input is: size of the head (u16), the head, size of level-0 (u16), level-0, the rest level-1.
 * The head's checksum is made right, so that what lies behind it is reached. Checks beyond "no
 * crash": a head that is accepted is written the same again; a log that opens answers roots, proofs
 * and tiles or says that it is damaged, and a proof it answers verifies.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "io/tlog.h"
#include "io/tlog_head.h"
#include "io/vfs_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ron_slice take(struct ron_slice *rest)
{
    struct ron_slice part = {rest->data, 0};
    size_t size;

    if (rest->size < 2)
        return part;
    size = ron_load_le16(rest->data);
    size = size < rest->size - 2 ? size : rest->size - 2;
    part = ron_slice_of(rest->data + 2, size);
    *rest = ron_slice_of(rest->data + 2 + size, rest->size - 2 - size);
    return part;
}

static void put(struct io_vfs *vfs, const char *path, struct ron_slice bytes) RON_BLOCKS
{
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_open(vfs, path, IO_OPEN_CREATE, &file, NULL);

    RON_ASSERT(err == RON_ERR_OK);
    if (bytes.size > 0)
        err = io_file_write(file, 0, &bytes, 1, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    file = io_file_close(file);
}

static void check_head(struct ron_slice head)
{
    uint8_t again[IO_TLOG_HEAD_SIZE_MAX];
    struct ron_merkle_frontier frontier;
    size_t size;

    if (io_tlog_head_decode(head, &frontier, NULL) != RON_ERR_OK)
        return;
    size = io_tlog_head_encode(&frontier, again);
    RON_ASSERT(ron_slice_equal(ron_slice_of(again, size), head));
}

static void ask(struct io_tlog *tlog) RON_BLOCKS
{
    uint64_t size = io_tlog_size(tlog);
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    struct io_tlog_proof proof;
    enum ron_err err = io_tlog_root(tlog, size, &hashes[0], NULL);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
    for (uint64_t index = 0; index < size && index < 1024; index += 85) {
        struct io_tile tile = io_tile_at(size, 0, index / IO_TILE_WIDTH);

        err = io_tlog_inclusion(tlog, index, size, &proof, NULL);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
        err = io_tlog_consistency(tlog, index, size, &proof, NULL);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
        err = io_tlog_tile(tlog, &tile, hashes, NULL);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) RON_BLOCKS
{
    struct io_tlog_options options = {.dir = "t", .cache_bytes = 2 << 20};
    struct ron_slice rest = {data, size}, head = take(&rest), level_0 = take(&rest);
    uint8_t bytes[IO_TLOG_HEAD_SIZE_MAX + 8];
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog = NULL;
    enum ron_err err;

    check_head(head);
    if (head.size > sizeof(bytes))
        return 0;
    memcpy(bytes, head.data, head.size);
    head.data = bytes;
    if (head.size >= 4)
        ron_store_le32(bytes + head.size - 4, ron_crc32c(0, bytes, head.size - 4));
    check_head(head);
    err = io_vfs_memory_new(NULL, &vfs, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    options.vfs = vfs;
    err = io_vfs_make_dir(vfs, "t", NULL);
    RON_ASSERT(err == RON_ERR_OK);
    put(vfs, "t/head", head);
    put(vfs, "t/level-0", level_0);
    put(vfs, "t/level-1", rest);
    err = io_tlog_open(&options, &tlog, NULL);
    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT || err == RON_ERR_VERSION_SKEW);
    if (err == RON_ERR_OK) {
        ask(tlog);
        err = io_tlog_append(tlog, &(struct ron_sha256){{0}}, 1, NULL, NULL);
        RON_ASSERT(err == RON_ERR_OK);
        err = io_tlog_sync(tlog, NULL);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_WAL_CORRUPT);
    }
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
    return 0;
}
