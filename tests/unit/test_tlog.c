/*
 * test_tlog.c - the Merkle log in memory and on files. Method: roots, proofs and tiles at every
 * size up to 70 and at random sizes of larger trees against the recursive definition of RFC 6962,
 * with everything in memory and with every tile read back from its file; damage of any byte of a
 * file is an error, never a proof.
 */
#include "support.h"

#include <stdlib.h>

#include "base/merkle_frontier.h"
#include "io/tlog.h"
#include "io/vfs_memory.h"
#include "io_spy.h"
#include "merkle_oracle.h"

#ifndef TLOG_DIRECT
#define TLOG_DIRECT false
#endif

enum { SMALL_COUNT = 70, LARGE_COUNT = 256 * 256 * 2 + 777, CACHE_BYTES = 2 << 20 };

static struct ron_sha256 *leaves; /* LARGE_COUNT */

static int make_leaves(void **state)
{
    (void)state;
    leaves = malloc(LARGE_COUNT * sizeof(*leaves));
    oracle_leaves(leaves, LARGE_COUNT);
    return leaves == NULL;
}
static int free_leaves(void **state)
{
    (void)state;
    free(leaves);
    return 0;
}

static struct io_tlog *open_tlog(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_tlog_options options = {
        .vfs = vfs, .dir = "tiles", .cache_bytes = CACHE_BYTES, .direct = TLOG_DIRECT};
    struct ron_errinfo info = {0};
    struct io_tlog *tlog = NULL;

    if (io_tlog_open(&options, &tlog, &info) != RON_ERR_OK)
        fail_msg("open: %s", info.message);
    return tlog;
}

/* In pieces of changing sizes; flushes when asked to. */
static void append(struct io_tlog *tlog, size_t to) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    size_t at = (size_t)io_tlog_size(tlog), piece = 1;

    while (at < to) {
        size_t count = piece < to - at ? piece : to - at;
        enum ron_err err = io_tlog_append(tlog, leaves + at, count, NULL, &info);

        if (err == RON_ERR_STORAGE_BUSY) {
            assert_int_equal(io_tlog_size(tlog), at);
            assert_ok(io_tlog_flush(tlog, NULL));
            continue;
        }
        assert_ok(err);
        at += count;
        piece = piece * 3 % 7919 + 1;
    }
    assert_int_equal(io_tlog_size(tlog), to);
}

static void check_path(const struct io_tlog_proof *proof, const struct oracle_path *path)
{
    assert_int_equal(proof->hashes_count, path->count);
    assert_memory_equal(proof->hashes, path->hashes, path->count * sizeof(path->hashes[0]));
}

static void check_inclusion(struct io_tlog *tlog, size_t m, size_t n) RON_BLOCKS
{
    struct ron_sha256 root = oracle_root(leaves, n);
    struct oracle_path path = {.count = 0};
    struct io_tlog_proof proof;

    oracle_inclusion(leaves, m, n, &path);
    assert_ok(io_tlog_inclusion(tlog, m, n, &proof, NULL));
    check_path(&proof, &path);
    assert_int_equal(proof.tree.size, n);
    assert_memory_equal(proof.tree.root.bytes, root.bytes, 32);
}

static void check_consistency(struct io_tlog *tlog, size_t m, size_t n) RON_BLOCKS
{
    struct ron_sha256 old = oracle_root(leaves, m), root = oracle_root(leaves, n);
    struct oracle_path path = {.count = 0};
    struct io_tlog_proof proof;

    if (m > 0)
        oracle_consistency(leaves, m, n, true, &path);
    assert_ok(io_tlog_consistency(tlog, m, n, &proof, NULL));
    check_path(&proof, &path);
    assert_int_equal(proof.old.size, m);
    assert_memory_equal(proof.old.root.bytes, old.bytes, 32);
    assert_memory_equal(proof.tree.root.bytes, root.bytes, 32);
}

static void small_trees_are_those_of_the_definition(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    for (size_t n = 0; n <= SMALL_COUNT; n++) {
        struct ron_sha256 root, expected = oracle_root(leaves, n);

        append(tlog, n);
        assert_ok(io_tlog_root(tlog, n, &root, NULL));
        assert_memory_equal(root.bytes, expected.bytes, 32);
    }
    for (size_t n = 0; n <= SMALL_COUNT; n++)
        for (size_t m = 0; m <= n; m++) {
            if (m < n)
                check_inclusion(tlog, m, n);
            check_consistency(tlog, m, n);
        }
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

/* MTH of a tile's hash, straight from the leaves. */
static void check_tile(struct io_tlog *tlog, const struct io_tile *tile) RON_BLOCKS
{
    size_t span = (size_t)1 << (8 * tile->level);
    struct ron_sha256 hashes[IO_TILE_WIDTH];

    assert_ok(io_tlog_tile(tlog, tile, hashes, NULL));
    for (size_t i = 0; i < tile->width; i++) {
        size_t first = ((size_t)tile->index * IO_TILE_WIDTH + i) * span;
        struct ron_sha256 expected = oracle_root(leaves + first, span);

        assert_memory_equal(hashes[i].bytes, expected.bytes, 32);
    }
}

static void check_samples(struct io_tlog *tlog, unsigned count, uint64_t seed) RON_BLOCKS
{
    size_t size = (size_t)io_tlog_size(tlog);

    for (unsigned i = 0; i < count; i++) {
        size_t n = 1 + oracle_next(&seed) % size, m = oracle_next(&seed) % n;

        if (i % 4 == 0)
            n = size;
        check_inclusion(tlog, m, n);
        check_consistency(tlog, m, n);
    }
}

/* Some appends bring the nodes that their hashes complete, others do not. */
static void nodes_that_are_known_are_those_of_the_definition(void **state) RON_BLOCKS
{
    enum { COUNT = 70000, PIECE_MAX = 7919 };
    static struct ron_sha256 nodes[RON_MERKLE_NODES_MAX(PIECE_MAX)];
    struct ron_merkle_frontier frontier;
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;
    size_t piece = 1;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    ron_merkle_frontier_init(&frontier);
    for (size_t at = 0; at < COUNT; at = (size_t)frontier.leaves_count) {
        const size_t count = piece < COUNT - at ? piece : COUNT - at;

        ron_merkle_frontier_append_keep(&frontier, leaves + at, count, nodes);
        assert_ok(io_tlog_flush(tlog, NULL));
        assert_ok(io_tlog_append(tlog, leaves + at, count, piece % 4 == 0 ? NULL : nodes, NULL));
        for (size_t i = 0; i < 8; i++) /* the newest tiles are in memory, with all their nodes */
            check_inclusion(tlog, at + count - 1 - i * count / 8, at + count);
        piece = piece * 3 % PIECE_MAX + 1;
    }
    check_samples(tlog, 200, 11);
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

static void large_trees_read_back_from_files(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    append(tlog, LARGE_COUNT); /* more tiles than memory: busy, flush, evict */
    check_samples(tlog, 12, 1);
    assert_ok(io_tlog_sync(tlog, NULL));
    assert_int_equal(io_tlog_durable_size(tlog), LARGE_COUNT);
    tlog = io_tlog_free(tlog);

    tlog = open_tlog(vfs);
    assert_int_equal(io_tlog_size(tlog), LARGE_COUNT);
    check_samples(tlog, 24, 2);
    for (unsigned level = 0; level < 3; level++)
        for (uint64_t index = 0;; index += level == 0 ? 37 : 1) {
            struct io_tile tile = io_tile_at(LARGE_COUNT, level, index);

            if (tile.width == 0)
                break;
            check_tile(tlog, &tile);
            tile.width = (tile.width + 1) / 2; /* narrower ones of smaller trees */
            check_tile(tlog, &tile);
        }
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

/* Every boundary around full tiles, through a new open each time. */
static void sizes_around_tiles_survive_a_restart(void **state) RON_BLOCKS
{
    static const size_t sizes[] = {0,   1,   255,  256,   257,   511,   512,
                                   513, 767, 1023, 65535, 65536, 65537, 65536 + 257};
    struct io_vfs *vfs = NULL;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(sizes); i++) {
        struct io_tlog *tlog = open_tlog(vfs);
        struct ron_sha256 root, expected = oracle_root(leaves, sizes[i]);

        append(tlog, sizes[i]);
        assert_ok(io_tlog_sync(tlog, NULL));
        tlog = io_tlog_free(tlog);
        tlog = open_tlog(vfs);
        assert_int_equal(io_tlog_size(tlog), sizes[i]);
        assert_ok(io_tlog_root(tlog, sizes[i], &root, NULL));
        assert_memory_equal(root.bytes, expected.bytes, 32);
        if (sizes[i] > 0)
            check_samples(tlog, 3, i);
        tlog = io_tlog_free(tlog);
    }
    vfs = io_vfs_free(vfs);
}

static void what_was_not_synced_is_cut_off(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct io_tlog *tlog;
    uint64_t size = 0;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    append(tlog, 300);
    assert_ok(io_tlog_sync(tlog, NULL));
    append(tlog, 1000);
    assert_ok(io_tlog_flush(tlog, NULL)); /* in the files, not in the head */
    assert_int_equal(io_tlog_durable_size(tlog), 300);
    tlog = io_tlog_free(tlog);
    tlog = open_tlog(vfs);
    assert_int_equal(io_tlog_size(tlog), 300);
    tlog = io_tlog_free(tlog);
    assert_ok(io_vfs_open(vfs, "tiles/level-0", IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_size(file, &size, NULL));
    assert_int_equal(size, 300 * 32);
    file = io_file_close(file);
    vfs = io_vfs_free(vfs);
}

static void questions_beyond_the_tree_are_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;
    struct io_tlog_proof proof;
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    struct ron_errinfo info = {0};
    static const struct io_tile missing[] = {{0, 1, 45}, {0, 2, 1}, {1, 0, 2}, {1, 1, 1},
                                             {2, 0, 1},  {8, 0, 1}, {63, 0, 1}};

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    append(tlog, 300);
    support_assert_error(io_tlog_inclusion(tlog, 5, 5, &proof, &info), &info, RON_ERR_MALFORMED,
                         "leaf 5 of a tree of 5");
    support_assert_error(io_tlog_inclusion(tlog, 0, 0, &proof, &info), &info, RON_ERR_MALFORMED,
                         "leaf 0 of a tree of 0");
    support_assert_error(io_tlog_inclusion(tlog, 5, 301, &proof, &info), &info, RON_ERR_NOT_FOUND,
                         "size 301 of a tree of 300");
    support_assert_error(io_tlog_consistency(tlog, 7, 6, &proof, &info), &info, RON_ERR_MALFORMED,
                         "from a tree of 7 to one of 6");
    support_assert_error(io_tlog_consistency(tlog, 7, UINT64_MAX, &proof, &info), &info,
                         RON_ERR_NOT_FOUND, "of a tree of 300");
    for (size_t i = 0; i < RON_ARRAY_COUNT(missing); i++)
        support_assert_error(io_tlog_tile(tlog, &missing[i], hashes, &info), &info,
                             RON_ERR_NOT_FOUND, "no tile");
    support_assert_error(io_tlog_tile(tlog, &(struct io_tile){0, 0, 257}, hashes, &info), &info,
                         RON_ERR_MALFORMED, "257");
    support_assert_error(io_tlog_tile(tlog, &(struct io_tile){0, 0, 0}, hashes, &info), &info,
                         RON_ERR_MALFORMED, "a tile of 0");
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

static void flip(struct io_vfs *vfs, const char *path, uint64_t offset) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;
    struct ron_slice part = {&byte, 1};

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    assert_int_equal(size, 1);
    byte ^= 0x10;
    assert_ok(io_file_write(file, offset, &part, 1, NULL));
    file = io_file_close(file);
}

/* A damaged tile is noticed where it is used: by its parent, or at open by the head. */
static void damage_is_an_error_never_a_proof(void **state) RON_BLOCKS
{
    static const struct {
        const char *path;
        uint64_t hash;
        bool at_open;
    } places[] = {
        {"tiles/level-0", 0, false},           {"tiles/level-0", 65535, false},
        {"tiles/level-0", 131072 + 776, true}, {"tiles/level-1", 3, false},
        {"tiles/level-1", 513, true},          {"tiles/level-2", 1, true},
    };
    struct io_tlog_options options = {
        .dir = "tiles", .cache_bytes = CACHE_BYTES, .direct = TLOG_DIRECT};
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    options.vfs = vfs;
    tlog = open_tlog(vfs);
    append(tlog, LARGE_COUNT);
    assert_ok(io_tlog_sync(tlog, NULL));
    tlog = io_tlog_free(tlog);
    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++) {
        struct ron_errinfo info = {0};
        struct io_tlog_proof proof;
        enum ron_err err;

        flip(vfs, places[i].path, places[i].hash * 32 + i);
        err = io_tlog_open(&options, &tlog, &info);
        if (!places[i].at_open) {
            size_t index = places[i].path[12] == '0' ? places[i].hash : places[i].hash * 256;
            struct ron_sha256 root;

            assert_ok(err);
            assert_ok(io_tlog_root(tlog, LARGE_COUNT, &root, NULL)); /* needs no such tile */
            err = io_tlog_inclusion(tlog, index, LARGE_COUNT, &proof, &info);
            support_assert_error(err, &info, RON_ERR_WAL_CORRUPT, places[i].path);
            tlog = io_tlog_free(tlog);
        }
        support_assert_error(err, &info, RON_ERR_WAL_CORRUPT, places[i].path);
        flip(vfs, places[i].path, places[i].hash * 32 + i);
    }
    vfs = io_vfs_free(vfs);
}

static void a_damaged_head_is_refused_and_rebuilt_on_demand(void **state) RON_BLOCKS
{
    struct io_tlog_options options = {
        .dir = "tiles", .cache_bytes = CACHE_BYTES, .direct = TLOG_DIRECT};
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    options.vfs = vfs;
    tlog = open_tlog(vfs);
    append(tlog, 3000);
    assert_ok(io_tlog_sync(tlog, NULL));
    tlog = io_tlog_free(tlog);
    for (uint64_t at = 0; at < 40; at++) {
        enum ron_err err;

        flip(vfs, "tiles/head", at);
        err = io_tlog_open(&options, &tlog, &info);
        assert_true(err == RON_ERR_WAL_CORRUPT || err == RON_ERR_VERSION_SKEW);
        assert_non_null(strstr(info.message, "tiles/head"));
        flip(vfs, "tiles/head", at);
    }
    flip(vfs, "tiles/head", 20);
    options.rebuild = true;
    assert_ok(io_tlog_open(&options, &tlog, NULL));
    assert_int_equal(io_tlog_size(tlog), 0);
    append(tlog, 2000);
    assert_ok(io_tlog_sync(tlog, NULL));
    tlog = io_tlog_free(tlog);
    tlog = open_tlog(vfs);
    assert_int_equal(io_tlog_size(tlog), 2000);
    check_samples(tlog, 5, 9);
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

static void a_reader_changes_nothing(void **state) RON_BLOCKS
{
    struct io_tlog_options options = {.dir = "tiles", .read_only = true};
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    options.vfs = vfs;
    tlog = open_tlog(vfs);
    append(tlog, 700);
    assert_ok(io_tlog_sync(tlog, NULL));
    append(tlog, 900);
    assert_ok(io_tlog_flush(tlog, NULL));
    tlog = io_tlog_free(tlog);
    {
        size_t unsynced = io_memory_unsynced_count(vfs);

        assert_ok(io_tlog_open(&options, &tlog, NULL));
        assert_int_equal(io_tlog_size(tlog), 700);
        check_samples(tlog, 5, 3);
        assert_int_equal(io_memory_unsynced_count(vfs), unsynced);
        assert_dies((void)!io_tlog_append(tlog, leaves, 1, NULL, NULL), "read_only");
        tlog = io_tlog_free(tlog);
    }
    vfs = io_vfs_free(vfs);
}

static enum ron_err attempt_open(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_tlog_options options = {
        .vfs = context, .dir = "tiles", .cache_bytes = CACHE_BYTES, .direct = TLOG_DIRECT};
    struct io_tlog *tlog = NULL;
    enum ron_err err = io_tlog_open(&options, &tlog, reterr);

    tlog = io_tlog_free(tlog);
    return err;
}

static void open_survives_every_failing_allocation(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    tlog = open_tlog(vfs);
    append(tlog, 1000);
    assert_ok(io_tlog_sync(tlog, NULL));
    tlog = io_tlog_free(tlog);
    assert_true(support_fail_each_allocation(attempt_open, vfs, 100) >= 4);
    vfs = io_vfs_free(vfs);
}

/* Syncs are seconds apart: nobody's may find all that was written meanwhile. */
static void tiles_are_on_their_way_before_a_sync(void **state) RON_BLOCKS
{
    enum { PIECE = 512 << 10, LEVELS_ABOVE = (LARGE_COUNT / 255 + 1) * RON_SHA256_SIZE };
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    spy_install(vfs, NULL);
    tlog = open_tlog(vfs);
    append(tlog, LARGE_COUNT - 100);
    assert_ok(io_tlog_flush(tlog, NULL));
    assert_true(spy.waiting_bytes > 0); /* little things wait for company */
    assert_true(spy.waiting_bytes < PIECE + LEVELS_ABOVE);
    assert_ok(io_tlog_sync(tlog, NULL));
    assert_true(spy.sync_bytes_max < PIECE + LEVELS_ABOVE);
    assert_int_equal(spy.back_bytes_max, PIECE);
    tlog = io_tlog_free(tlog);
    spy.back_bytes_max = 0;
    tlog = open_tlog(vfs); /* what was there before is not written back again */
    append(tlog, LARGE_COUNT);
    assert_ok(io_tlog_sync(tlog, NULL));
    assert_int_equal(spy.back_bytes_max, 0);
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

/* Memory for all leaves there ever were is taken from nobody. */
static void leaves_leave_the_systems_cache_once_they_are_on_the_disk(void **state) RON_BLOCKS
{
    enum { PIECE = 512 << 10 };
    struct io_vfs *vfs = NULL;
    struct io_tlog *tlog;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    spy_install(vfs, NULL);
    tlog = open_tlog(vfs);
    append(tlog, LARGE_COUNT);
    assert_ok(io_tlog_flush(tlog, NULL));
    assert_int_equal(spy.uncached_bytes, LARGE_COUNT * RON_SHA256_SIZE / PIECE * PIECE);
    assert_int_equal(spy.uncached_bytes, spy.back_bytes);
    assert_false(spy.uncached_early);
    check_samples(tlog, 50, 4); /* and are read from there */
    tlog = io_tlog_free(tlog);
    vfs = io_vfs_free(vfs);
}

static void paths_are_those_of_the_specification(void **state)
{
    char path[IO_TILE_PATH_MAX];

    (void)state;
    io_tile_path(&(struct io_tile){0, 1234067, 256}, false, path);
    assert_string_equal(path, "0/x001/x234/067");
    io_tile_path(&(struct io_tile){7, 0, 5}, false, path);
    assert_string_equal(path, "7/000.p/5");
    io_tile_path(&(struct io_tile){0, 999, 255}, true, path);
    assert_string_equal(path, "entries/999.p/255");
    io_tile_path(&(struct io_tile){1, 1000, 256}, true, path);
    assert_string_equal(path, "entries/x001/000");
    io_tile_path(&(struct io_tile){0, UINT64_MAX >> 8, 255}, true, path);
    assert_string_equal(path, "entries/x072/x057/x594/x037/x927/935.p/255");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_trees_are_those_of_the_definition),
        cmocka_unit_test(nodes_that_are_known_are_those_of_the_definition),
        cmocka_unit_test(large_trees_read_back_from_files),
        cmocka_unit_test(sizes_around_tiles_survive_a_restart),
        cmocka_unit_test(what_was_not_synced_is_cut_off),
        cmocka_unit_test(questions_beyond_the_tree_are_refused),
        cmocka_unit_test(damage_is_an_error_never_a_proof),
        cmocka_unit_test(a_damaged_head_is_refused_and_rebuilt_on_demand),
        cmocka_unit_test(a_reader_changes_nothing),
        cmocka_unit_test(open_survives_every_failing_allocation),
        cmocka_unit_test(tiles_are_on_their_way_before_a_sync),
        cmocka_unit_test(leaves_leave_the_systems_cache_once_they_are_on_the_disk),
        cmocka_unit_test(paths_are_those_of_the_specification),
    };
    return cmocka_run_group_tests_name("tlog", tests, make_leaves, free_leaves);
}
