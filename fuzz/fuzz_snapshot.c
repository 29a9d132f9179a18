/*
 * fuzz_snapshot.c - any bytes as the newest snapshot, beside a good older one.
 *
 * With the first byte odd the head's sum and hash are put right. Checks beyond "no crash": the
 * older one is opened where the newest is refused, and what is read is what the file holds.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "io/snapshot_file_format.h"
#include "io/vfs_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) RON_BLOCKS;

enum { SIZE_MAX_HERE = 1 << 14 };

static uint8_t bytes[SIZE_MAX_HERE], back[SIZE_MAX_HERE];

static void repair(size_t size)
{
    struct snapshot_head head;

    if (size < SNAPSHOT_HEAD_SIZE)
        return;
    ron_store_le32(bytes + 4088, ron_crc32c(0, bytes, 4088));
    if (io_snapshot_head_decode(bytes, &head, NULL) != RON_ERR_OK)
        return;
    head.info.hash = ron_b3(bytes + SNAPSHOT_HEAD_SIZE, size - SNAPSHOT_HEAD_SIZE);
    io_snapshot_head_encode(&head, bytes);
}

static void put_older(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_snapshot_cut cut = {.kind = 1, .position = 1, .last_durable = 1};
    struct io_snapshot_writer *writer = NULL;
    struct io_snapshot_info info;

    RON_ASSERT(io_snapshot_begin(vfs, "", &cut, &writer, NULL) == RON_ERR_OK);
    RON_ASSERT(io_snapshot_put(writer, RON_SLICE("older"), NULL) == RON_ERR_OK);
    RON_ASSERT(io_snapshot_commit(writer, &info, NULL) == RON_ERR_OK);
}

static void look(struct io_vfs *vfs, size_t size) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    struct io_snapshot_search search;
    const struct io_snapshot_info *info;

    RON_ASSERT(io_snapshot_open_newest(vfs, "", 1, 9, &snapshot, &search, NULL) == RON_ERR_OK);
    info = io_snapshot_info(snapshot);
    RON_ASSERT(info->position == 1 || info->position == 2);
    RON_ASSERT((info->position == 1) == (search.damaged_count + search.foreign_count == 1));
    RON_ASSERT(info->size <= sizeof(back));
    RON_ASSERT(io_snapshot_read(snapshot, 0, back, info->size, NULL) == RON_ERR_OK);
    if (info->position == 2) {
        RON_ASSERT(info->size == size - SNAPSHOT_HEAD_SIZE);
        RON_ASSERT(memcmp(back, bytes + SNAPSHOT_HEAD_SIZE, info->size) == 0);
    } else {
        RON_ASSERT(memcmp(back, "older", 5) == 0);
    }
    snapshot = io_snapshot_close(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;

    if (size < 1 || size - 1 > sizeof(bytes))
        return 0;
    memcpy(bytes, data + 1, size - 1);
    if ((data[0] & 1) != 0)
        repair(size - 1);
    RON_ASSERT(io_vfs_memory_new(NULL, &vfs, NULL) == RON_ERR_OK);
    put_older(vfs);
    RON_ASSERT(io_vfs_open(vfs, "snap-0000000000000002", IO_OPEN_CREATE, &file, NULL) ==
               RON_ERR_OK);
    RON_ASSERT(io_file_write(file, 0, &(struct ron_slice){bytes, size - 1}, 1, NULL) == RON_ERR_OK);
    file = io_file_close(file);
    look(vfs, size - 1);
    vfs = io_vfs_free(vfs);
    return 0;
}
