/*
 * fuzz_log_recover.c - any bytes as the first segment of a log, opened as strict and as skipping.
 *
 * Checks beyond "no crash": a refusal changes no byte of the segment; what was opened reads to its
 * end, and opening it again finds the same records.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/log_impl.h"
#include "io/vfs_memory.h"
#include "rt/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) RON_BLOCKS;

#define SEGMENT "log/seg-0000000000000001"

static void put(struct io_vfs *vfs, const char *path, const void *bytes, size_t size) RON_BLOCKS
{
    const struct ron_slice part = {bytes, size};
    struct io_file *file = NULL;

    RON_MUST_ZERO(io_vfs_open(vfs, path, IO_OPEN_CREATE, &file, NULL));
    RON_MUST_ZERO(io_file_write(file, 0, &part, 1, NULL));
    io_file_close(file);
}

static void check_same(struct io_vfs *vfs, const uint8_t *data, size_t size) RON_BLOCKS
{
    uint8_t *bytes = ron_mem_alloc(size + 1);
    struct io_file *file = NULL;
    size_t got = 0;

    RON_ASSERT(bytes != NULL);
    RON_MUST_ZERO(io_vfs_open(vfs, SEGMENT, IO_OPEN_READ, &file, NULL));
    RON_MUST_ZERO(io_file_read(file, 0, bytes, size + 1, &got, NULL));
    RON_ASSERT(got == size);
    RON_ASSERT(memcmp(bytes, data, size) == 0);
    io_file_close(file);
    ron_mem_free(bytes);
}

static uint64_t count_records(struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    uint64_t count = 0;

    RON_MUST_ZERO(io_log_reader_new(log, io_log_first_index(log), &reader, NULL));
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK)
        count++;
    io_log_reader_free(reader);
    return count;
}

/* A log whose owner file fits whatever head the input has. */
static struct io_vfs *make(const uint8_t *data, size_t size) RON_BLOCKS
{
    struct log_owner owner = {.kind = 1};
    struct io_vfs *vfs = NULL;

    RON_MUST_ZERO(io_vfs_memory_new(NULL, &vfs, NULL));
    RON_MUST_ZERO(io_vfs_make_dir(vfs, "log", NULL));
    RON_MUST_ZERO(log_owner_create(&owner, vfs, "log/owner", NULL));
    owner.kind = 1;
    if (size >= 32)
        memcpy(owner.log_id, data + 16, sizeof(owner.log_id));
    RON_MUST_ZERO(log_owner_write(&owner, NULL));
    log_owner_close(&owner);
    put(vfs, SEGMENT, data, size);
    return vfs;
}

static void try_policy(const uint8_t *data, size_t size,
                       enum io_log_damage_policy damage) RON_BLOCKS
{
    struct io_vfs *vfs = make(data, size);
    const struct io_log_options options = {.vfs = vfs,
                                           .dir = "log",
                                           .name = "fuzz",
                                           .kind = 1,
                                           .damage = damage,
                                           .segment_bytes = 65536,
                                           .ahead_bytes = 8192,
                                           .group_bytes = 4096,
                                           .record_bytes_max = 4096};
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;
    uint64_t count, last;

    if (log_open_idle(&options, &log, &recovery, &info) != RON_ERR_OK) {
        RON_ASSERT(info.message[0] != '\0');
        check_same(vfs, data, size);
    } else {
        count = count_records(log);
        last = recovery.last_index;
        log_destroy(log);
        RON_MUST_ZERO(log_open_idle(&options, &log, &recovery, &info));
        RON_ASSERT(recovery.last_index == last);
        RON_ASSERT(recovery.torn_bytes == 0);
        RON_ASSERT(count_records(log) == count);
        log_destroy(log);
    }
    io_vfs_free(vfs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;

    if (!ready)
        rt_init();
    ready = true;
    if (size > 0 && size <= 65536) {
        try_policy(data, size, IO_LOG_STRICT);
        try_policy(data, size, IO_LOG_SKIP);
    }
    return 0;
}
