/*
 * log_world.h - for tests of the log: a small log in memory, records that tell their own number,
 * and a look at all of them. tidy: long file because the tests of the log share one world.
 */
#ifndef RON_TESTS_LOG_WORLD_H
#define RON_TESTS_LOG_WORLD_H

#include <stdio.h>

#include "io/log.h"
#include "io/log_impl.h"
#include "io/vfs_memory.h"
#include "rt/registry.h"
#include "rt/supervisor.h"
#include "support.h"

/* Past the system's cache? Tests that hold for both are built twice (test_X_direct.c). */
#ifndef WORLD_DIRECT
#define WORLD_DIRECT false
#endif

enum { WORLD_KIND = 7, WORLD_RECORD_MAX = 400, WORLD_RUN_MAX = 100, WORLD_RUN_TYPE = 9 };

static struct rt_supervisor *world_supervisor;

static inline int world_setup(void **state)
{
    const struct rt_supervisor_options options = {.name = "root", .owner = "test", .tasks_max = 8};

    (void)state;
    rt_init();
    return rt_supervisor_new(&options, &world_supervisor, NULL) == RON_ERR_OK ? 0 : -1;
}

static inline int world_teardown(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(rt_supervisor_stop(world_supervisor, rt_deadline_after_ms(20000), NULL));
    world_supervisor = rt_supervisor_free(world_supervisor);
    return 0;
}

static inline struct io_vfs *world_memory(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

/* Key 1 of each record is its number; every third record has a second one. */
static inline void world_key(uint64_t index, uint32_t sub, uint8_t key[16])
{
    ron_store_le64(key, index * UINT64_C(0x9e3779b97f4a7c15) + sub);
    ron_store_le64(key + 8, ~index);
}

static inline void world_keys(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                              void *index)
{
    uint8_t key[16];

    (void)context;
    world_key(frame->index, 0, key);
    emit(index, key, 0);
    if (frame->index % 3 == 0) {
        world_key(frame->index, 1, key);
        emit(index, key, 1);
    }
}

static inline struct io_log_options world_options(struct io_vfs *vfs)
{
    return (struct io_log_options){.vfs = vfs,
                                   .dir = "role/log",
                                   .name = "test",
                                   .kind = WORLD_KIND,
                                   .segment_bytes = 16384,
                                   .ahead_bytes = 8192,
                                   .ahead_bytes_per_s = 500u << 20,
                                   .group_bytes = 4096,
                                   .record_bytes_max = 1024,
                                   .direct = WORLD_DIRECT,
                                   .supervisor = world_supervisor,
                                   .keys = world_keys};
}

static inline size_t world_body(uint64_t index, uint8_t body[WORLD_RECORD_MAX])
{
    const size_t size = (size_t)(index * 37 % WORLD_RECORD_MAX);

    uint8_t byte = (uint8_t)(index * 131);

    for (size_t i = 0; i < size; i++, byte = (uint8_t)(byte + 7))
        body[i] = (uint8_t)(byte + (i >> 8));
    return size;
}

/* Append the record that `index` will be, in two parts. */
static inline enum ron_err world_append(struct io_log *log, uint64_t index) RON_BLOCKS
{
    uint8_t body[WORLD_RECORD_MAX];
    const size_t size = world_body(index, body);
    const struct ron_slice parts[2] = {{body, size / 2}, {body + size / 2, size - size / 2}};
    uint64_t got = 0;
    enum ron_err err = io_log_append_until(log, (uint16_t)(index % 100), parts, 2,
                                           rt_deadline_after_ms(20000), &got, NULL);

    if (err == RON_ERR_OK)
        assert_int_equal(got, index);
    return err;
}

static inline void world_append_many(struct io_log *log, uint64_t first, uint64_t last) RON_BLOCKS
{
    for (uint64_t i = first; i <= last; i++)
        assert_ok(world_append(log, i));
    assert_ok(io_log_wait(log, last, rt_deadline_after_ms(20000), NULL));
}

static inline struct io_log *world_open_as(const struct io_log_options *options) RON_BLOCKS
{
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;

    if (io_log_open(options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    return log;
}

static inline struct io_log *world_open(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = world_options(vfs);

    return world_open_as(&options);
}

static inline void world_close(struct io_log *log) RON_BLOCKS
{
    assert_ok(io_log_close(log, rt_deadline_after_ms(20000), NULL));
}

/* All records from `first` on, as they were appended, and none beyond; returns the last. */
static inline uint64_t world_read(struct io_log *log, uint64_t first) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    uint8_t body[WORLD_RECORD_MAX];
    struct io_frame frame;
    struct ron_errinfo info = {0};
    enum ron_err err;

    assert_ok(io_log_reader_new(log, first, &reader, NULL));
    while ((err = io_log_reader_next(reader, &frame, &info)) == RON_ERR_OK) {
        const size_t size = world_body(frame.index, body);

        assert_int_equal(frame.index, first);
        assert_int_equal(frame.type, first % 100);
        assert_true(ron_slice_equal(frame.body, ron_slice_of(body, size)));
        first++;
    }
    if (err != RON_ERR_NOT_FOUND)
        fail_msg("record %llu: %s", (unsigned long long)first, info.message);
    reader = io_log_reader_free(reader);
    assert_null(reader);
    return first - 1;
}

/* Records `first` to `last` as io_log_append_many takes them, of one type; returns the number of
 * calls. */
static inline uint64_t world_append_run(struct io_log *log, uint64_t first,
                                        uint64_t last) RON_BLOCKS
{
    static uint8_t bytes[WORLD_RUN_MAX][WORLD_RECORD_MAX];
    struct ron_slice bodies[WORLD_RUN_MAX];
    const size_t count = (size_t)(last - first + 1);
    uint64_t calls_count = 0, index = 0;
    size_t some = 0;

    assert_true(count <= WORLD_RUN_MAX);
    for (size_t i = 0; i < count; i++)
        bodies[i] = ron_slice_of(bytes[i], world_body(first + i, bytes[i]));
    for (size_t done = 0; done < count; done += some) {
        assert_ok(io_log_append_many(log, WORLD_RUN_TYPE, bodies + done, count - done,
                                     rt_deadline_after_ms(20000), &some, &index, NULL));
        assert_in_range(some, 1, count - done);
        assert_int_equal(index, first + done + some - 1);
        calls_count++;
    }
    return calls_count;
}

/* All of them, up to `last`, and none beyond. */
static inline void world_read_run(struct io_log *log, uint64_t last) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    uint8_t body[WORLD_RECORD_MAX];
    struct io_frame frame;

    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    for (uint64_t i = 1; i <= last; i++) {
        assert_ok(io_log_reader_next(reader, &frame, NULL));
        assert_int_equal(frame.index, i);
        assert_int_equal(frame.type, WORLD_RUN_TYPE);
        assert_true(ron_slice_equal(frame.body, ron_slice_of(body, world_body(i, body))));
    }
    assert_int_equal(io_log_reader_next(reader, &frame, NULL), RON_ERR_NOT_FOUND);
    reader = io_log_reader_free(reader);
}

/* The bytes of a file, in memory of the heap. */
static inline struct ron_buf world_file(struct io_vfs *vfs, const char *path) RON_BLOCKS
{
    struct io_file *file = NULL;
    struct ron_buf buf;
    uint64_t size = 0;
    size_t got = 0;

    ron_buf_init(&buf, 64u << 20);
    assert_ok(io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_size(file, &size, NULL));
    assert_ok(ron_buf_reserve(&buf, (size_t)size + 1, NULL));
    assert_ok(io_file_read(file, 0, buf.data, (size_t)size, &got, NULL));
    buf.size = got;
    io_file_close(file);
    return buf;
}

static inline void world_write(struct io_vfs *vfs, const char *path, uint64_t offset,
                               const void *bytes, size_t size) RON_BLOCKS
{
    const struct ron_slice part = {bytes, size};
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL);

    if (err == RON_ERR_NOT_FOUND)
        err = io_vfs_open(vfs, path, IO_OPEN_CREATE, &file, NULL);
    assert_ok(err);
    assert_ok(io_file_write(file, offset, &part, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    io_file_close(file);
}

static inline void world_flip(struct io_vfs *vfs, const char *path, uint64_t offset) RON_BLOCKS
{
    struct ron_buf bytes = world_file(vfs, path);
    uint8_t byte;

    assert_true(offset < bytes.size);
    byte = bytes.data[offset] ^ 0x10;
    world_write(vfs, path, offset, &byte, 1);
    ron_buf_fini(&bytes);
}

/* A sum over names and bytes of all files of the log, to see that nothing changed. */
struct world_sum {
    struct io_vfs *vfs;
    struct ron_b3_ctx ctx;
    bool segments_only;
    char names[64][IO_NAME_MAX + 1];
    size_t names_count;
};
static inline bool world_sum_name(void *context, const char *name, bool is_dir)
{
    struct world_sum *sum = context;

    assert_false(is_dir);
    assert_true(sum->names_count < 64);
    if (!sum->segments_only || strncmp(name, "seg-", 4) == 0)
        (void)snprintf(sum->names[sum->names_count++], IO_NAME_MAX + 1, "%s", name);
    return true;
}
static inline struct ron_b3 world_sum(struct io_vfs *vfs, bool segments_only) RON_BLOCKS
{
    struct world_sum sum = {.vfs = vfs, .segments_only = segments_only};

    ron_b3_init(&sum.ctx);
    assert_ok(io_vfs_list(vfs, "role/log", world_sum_name, &sum, NULL));
    for (size_t i = 0; i < sum.names_count; i++) {
        char path[IO_PATH_MAX + 1];
        struct ron_buf bytes;

        (void)snprintf(path, sizeof(path), "role/log/%s", sum.names[i]);
        bytes = world_file(vfs, path);
        ron_b3_update(&sum.ctx, sum.names[i], strlen(sum.names[i]) + 1);
        ron_b3_update(&sum.ctx, bytes.data, bytes.size);
        ron_buf_fini(&bytes);
    }
    return ron_b3_final(&sum.ctx);
}

#define SEG1 "role/log/seg-0000000000000001"
#define SEG2 "role/log/seg-0000000000000002"

#endif
