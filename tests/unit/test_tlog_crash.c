/*
 * test_tlog_crash.c - the Merkle log's files after a crash at any moment. Method: a trace of
 * appends, flushes and syncs is cut off at every call of the file system that changes something;
 * every crash image of that moment opens, holds at least what was synced, at a size that a sync was
 * asked for, with the roots of the definition, and goes on from there. A crash during that recovery
 * is tried as well.
 */
#include "support.h"

#include "io/crash_images.h"
#include "io/tlog.h"
#include "io/vfs_faulty.h"
#include "merkle_oracle.h"

#ifndef TLOG_DIRECT
#define TLOG_DIRECT false
#endif

enum { LEAVES_COUNT = 900, CACHE_BYTES = 2 << 20 };

/* Where the trace syncs; it flushes at every fifth between. */
static const size_t sync_sizes[] = {0, 3, 255, 256, 300, 512, 800};

static struct ron_sha256 leaves[LEAVES_COUNT];
static struct ron_sha256 roots[LEAVES_COUNT + 1];

static int make_leaves(void **state)
{
    (void)state;
    oracle_leaves(leaves, LEAVES_COUNT);
    for (size_t n = 0; n <= LEAVES_COUNT; n++)
        roots[n] = oracle_root(leaves, n);
    return 0;
}

static enum ron_err open_in(struct io_vfs *vfs, struct io_tlog **ret_tlog) RON_BLOCKS
{
    struct io_tlog_options options = {
        .vfs = vfs, .dir = "tiles", .cache_bytes = CACHE_BYTES, .direct = TLOG_DIRECT};

    return io_tlog_open(&options, ret_tlog, NULL);
}

static enum ron_err append_to(struct io_tlog *tlog, size_t size)
{
    size_t at = (size_t)io_tlog_size(tlog);

    return size > at ? io_tlog_append(tlog, leaves + at, size - at, NULL, NULL) : RON_ERR_OK;
}

/* Run the trace until something fails; answers what was promised. */
static size_t run_trace(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_tlog *tlog = NULL;
    size_t durable = 0;
    enum ron_err err = open_in(vfs, &tlog);

    for (size_t i = 1; err == RON_ERR_OK && i < RON_ARRAY_COUNT(sync_sizes); i++) {
        for (size_t fifth = 1; err == RON_ERR_OK && fifth < 5; fifth++) {
            size_t step = (sync_sizes[i] - sync_sizes[i - 1]) * fifth / 5;

            err = append_to(tlog, sync_sizes[i - 1] + step);
            if (err == RON_ERR_OK)
                err = io_tlog_flush(tlog, NULL);
        }
        if (err == RON_ERR_OK)
            err = append_to(tlog, sync_sizes[i]);
        if (err == RON_ERR_OK)
            err = io_tlog_sync(tlog, NULL);
        if (err == RON_ERR_OK)
            durable = sync_sizes[i];
    }
    tlog = io_tlog_free(tlog);
    return durable;
}

static bool is_sync_size(uint64_t size)
{
    for (size_t i = 0; i < RON_ARRAY_COUNT(sync_sizes); i++)
        if (sync_sizes[i] == size)
            return true;
    return false;
}

static void check_roots(struct io_tlog *tlog) RON_BLOCKS
{
    uint64_t size = io_tlog_size(tlog);

    for (uint64_t n = 0; n <= size; n += n < 4 || size - n < 4 ? 1 : 61) {
        struct ron_sha256 root;

        assert_ok(io_tlog_root(tlog, n, &root, NULL));
        assert_memory_equal(root.bytes, roots[n].bytes, 32);
        if (n + 61 > size)
            break;
    }
}

struct look {
    size_t durable;
    uint64_t images_count;
    bool again; /* this image is of a crash during recovery */
};

static bool look_at(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                    enum io_crash_class class) RON_BLOCKS
{
    struct look *look = context;
    struct io_tlog *tlog = NULL;
    struct ron_sha256 root;

    (void)plan;
    (void)class;
    look->images_count++;
    assert_ok(open_in(image, &tlog));
    assert_true(io_tlog_size(tlog) >= look->durable);
    assert_true(is_sync_size(io_tlog_size(tlog)));
    assert_int_equal(io_tlog_durable_size(tlog), io_tlog_size(tlog));
    check_roots(tlog);
    if (!look->again && look->images_count % 4 == 0) {
        struct look second = {.durable = look->durable, .again = true};
        struct io_crash_options options = {.seed = look->images_count};
        struct io_crash_counts counts = {{0}};

        assert_ok(io_crash_images(image, &options, look_at, &second, &counts, NULL));
        look->images_count += second.images_count;
    }
    assert_ok(append_to(tlog, LEAVES_COUNT));
    assert_ok(io_tlog_sync(tlog, NULL));
    tlog = io_tlog_free(tlog);
    assert_ok(open_in(image, &tlog));
    assert_int_equal(io_tlog_size(tlog), LEAVES_COUNT);
    assert_ok(io_tlog_root(tlog, LEAVES_COUNT, &root, NULL));
    assert_memory_equal(root.bytes, roots[LEAVES_COUNT].bytes, 32);
    tlog = io_tlog_free(tlog);
    return true;
}

/* The nth call of a kind and all after it fail; false when the trace has fewer. */
static bool cut_at(enum io_fault_call call, uint64_t nth, uint64_t *images_count) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_EIO, call, NULL, nth, UINT32_MAX};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct io_vfs *memory = NULL, *faulty = NULL;
    struct io_crash_options crash = {.seed = nth};
    struct io_crash_counts counts = {{0}};
    struct look look = {.durable = 0};
    bool struck;

    assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
    assert_ok(io_vfs_faulty_new(memory, &options, &faulty, NULL));
    look.durable = run_trace(faulty);
    struck = io_faulty_count(faulty, IO_FAULT_EIO) > 0;
    faulty = io_vfs_free(faulty);
    assert_ok(io_crash_images(memory, &crash, look_at, &look, &counts, NULL));
    memory = io_vfs_free(memory);
    *images_count += look.images_count;
    return struck;
}

static void every_crash_leaves_a_head_and_what_it_counts(void **state) RON_BLOCKS
{
    static const enum io_fault_call calls[] = {IO_CALL_OPEN, IO_CALL_WRITE, IO_CALL_SYNC,
                                               IO_CALL_NAME};
    uint64_t images_count = 0, cuts_count = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(calls); i++)
        for (uint64_t nth = 1; cut_at(calls[i], nth, &images_count); nth++)
            cuts_count++;
    print_message("# %llu cuts, %llu crash images\n", (unsigned long long)cuts_count,
                  (unsigned long long)images_count);
    assert_true(cuts_count > 40);
    assert_true(images_count > 500);
}

/* A failed sync is final, and readers go on. */
static void a_failed_sync_is_final(void **state) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_SYNC_EIO, IO_CALL_SYNC, "tiles/level-0", 1, 1};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct io_vfs *memory = NULL, *faulty = NULL;
    struct io_tlog *tlog = NULL;
    struct ron_errinfo info = {0};
    struct ron_sha256 root;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
    assert_ok(io_vfs_faulty_new(memory, &options, &faulty, NULL));
    assert_ok(open_in(faulty, &tlog));
    assert_ok(append_to(tlog, 300));
    assert_int_equal(io_tlog_sync(tlog, &info), RON_ERR_IO);
    assert_int_equal(io_tlog_sync(tlog, &info), RON_ERR_IO);
    assert_int_equal(io_tlog_flush(tlog, &info), RON_ERR_IO);
    assert_int_equal(io_tlog_durable_size(tlog), 0);
    assert_ok(append_to(tlog, 310));
    assert_ok(io_tlog_root(tlog, 310, &root, NULL));
    assert_memory_equal(root.bytes, roots[310].bytes, 32);
    tlog = io_tlog_free(tlog);
    assert_ok(open_in(memory, &tlog));
    assert_int_equal(io_tlog_size(tlog), 0);
    tlog = io_tlog_free(tlog);
    faulty = io_vfs_free(faulty);
    memory = io_vfs_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_crash_leaves_a_head_and_what_it_counts),
        cmocka_unit_test(a_failed_sync_is_final),
    };
    return cmocka_run_group_tests_name("tlog_crash", tests, make_leaves, NULL);
}
