/*
 * fuzz_index.c - any bytes as an index file.
 *
 * Sums are put right first, as an attacker would: what the file claims has to hold up by itself.
 * Checks beyond "no crash": an accepted index answers a look-up the same way twice, never takes
 * more memory than the file is long (and a little), and finds only keys it was asked for.
 */
#include "base/assert.h"
#include "base/crc32c.h"
#include "io/segment_index_format.h"
#include "io/vfs_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) RON_BLOCKS;

enum { SIZE_MAX_HERE = 1 << 16 };

static const struct io_index_of of = {.segment = 1, .last_index = 9};

/* The first byte says which sums are put right; the second, which identity. */
static void repair(uint8_t *bytes, size_t size, uint8_t what)
{
    struct index_head head = {.of = of};

    if (size < INDEX_PAGE_SIZE)
        return;
    if ((what & 1) != 0) {
        struct index_layout layout;

        head.keys_count = ron_load_le64(bytes + 80) % 2048;
        head.starts_count = ron_load_le64(bytes + 88) % 64;
        layout = io_index_layout(head.keys_count, head.starts_count);
        if (layout.file_size <= size)
            head.resident_crc = ron_crc32c(0, bytes + layout.resident_offset, layout.resident_size);
        io_index_head_encode(&head, bytes);
    }
    if ((what & 2) != 0) {
        for (size_t at = INDEX_PAGE_SIZE; at + INDEX_PAGE_SIZE <= size; at += INDEX_PAGE_SIZE) {
            uint8_t *tail = bytes + at + INDEX_PAGE_TAIL;

            ron_store_le32(tail + 8, io_index_seed(&of).tag);
            ron_store_le32(tail + 12, ron_crc32c(0, bytes + at, INDEX_PAGE_TAIL + 12));
        }
    }
}

static void ask(struct io_index *index, const uint8_t key[16]) RON_BLOCKS
{
    struct io_index_place first = {0}, second = {0};
    enum ron_err err = io_index_find(index, key, &first, NULL);

    RON_ASSERT(io_index_find(index, key, &second, NULL) == err);
    if (err == RON_ERR_OK) {
        RON_ASSERT(memcmp(&first, &second, sizeof(first)) == 0);
        RON_ASSERT(io_index_may_have(index, key));
    } else {
        RON_ASSERT(err == RON_ERR_NOT_FOUND || err == RON_ERR_WAL_CORRUPT);
    }
    (void)io_index_start_of(index, ron_load_le64(key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[SIZE_MAX_HERE];
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct io_index *index = NULL;
    enum ron_err err;

    if (size < 1 || size - 1 > sizeof(bytes))
        return 0;
    memcpy(bytes, data + 1, size - 1);
    repair(bytes, size - 1, data[0]);
    RON_ASSERT(io_vfs_memory_new(NULL, &vfs, NULL) == RON_ERR_OK);
    RON_ASSERT(io_vfs_open(vfs, "idx", IO_OPEN_CREATE, &file, NULL) == RON_ERR_OK);
    RON_ASSERT(io_file_write(file, 0, &(struct ron_slice){bytes, size - 1}, 1, NULL) == RON_ERR_OK);
    file = io_file_close(file);
    err = io_index_open(vfs, "idx", &of, &index, NULL);
    if (err == RON_ERR_OK) {
        RON_ASSERT(io_index_memory(index) <= size + 1024);
        for (size_t at = 0; at + 16 < size && at < 64 * 24; at += 24)
            ask(index, bytes + (at + INDEX_PAGE_SIZE < size ? at + INDEX_PAGE_SIZE : at));
        (void)!io_index_check(index, NULL);
    } else {
        RON_ASSERT(err == RON_ERR_WAL_CORRUPT || err == RON_ERR_VERSION_SKEW);
    }
    index = io_index_close(index);
    vfs = io_vfs_free(vfs);
    return 0;
}
