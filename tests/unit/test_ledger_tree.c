/*
 * test_ledger_tree.c - the ledger's tree by itself: heads and proofs as ron/verify.h accepts them,
 * and what a start makes of tiles that are behind, ahead, damaged, missing or of another log.
 * Method: leaves and roots from their definition; a disk in memory that fails or crashes at every
 * call. Under the service it is test_service_tree.c's.
 * tidy: long file because all of it needs the same leaves, disks and looks of a stranger.
 */
#include "support.h"

#include <stdio.h>

#include "base/merkle_frontier.h"
#include "io/crash_images.h"
#include "io/vfs_faulty.h"
#include "ledger/checkpoint_file.h"
#include "ledger/tree.h"
#include "merkle_oracle.h"
#include "rt/registry.h"

enum { LEAVES_COUNT = 70000, CACHE_BYTES = 2 << 20, OTHER_FROM = 700 };
#define ORIGIN "ron.example/ledger"

static struct ron_sha256 leaves[LEAVES_COUNT];
static struct ron_sha256 other[LEAVES_COUNT]; /* the same up to OTHER_FROM */

static int make_leaves(void **state)
{
    (void)state;
    rt_init();
    oracle_leaves(leaves, LEAVES_COUNT);
    memcpy(other, leaves, sizeof(other));
    for (size_t i = OTHER_FROM; i < LEAVES_COUNT; i++)
        other[i].bytes[0] ^= 1;
    return 0;
}

static struct ledger_root root_of(const struct ron_sha256 *from, size_t size)
{
    static struct ron_sha256 scratch[LEAVES_COUNT];
    struct ron_merkle_frontier frontier;

    memcpy(scratch, from, size * sizeof(scratch[0]));
    ron_merkle_frontier_init(&frontier);
    ron_merkle_frontier_append(&frontier, scratch, size);
    return (struct ledger_root){.seq = size, .root = ron_merkle_frontier_root(&frontier)};
}

static enum ron_err open_with(struct io_vfs *vfs, const char *origin, struct ledger_tree **ret_tree,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_open(&(struct ledger_tree_options){.vfs = vfs,
                                                          .dir = "ledger/tiles",
                                                          .key = "ledger/log.key",
                                                          .origin = origin,
                                                          .cache_bytes = CACHE_BYTES},
                            ret_tree, reterr);
}

static struct ledger_tree *open_tree(struct io_vfs *vfs) RON_BLOCKS
{
    struct ledger_tree *tree = NULL;

    assert_ok(open_with(vfs, ORIGIN, &tree, NULL));
    return tree;
}

static struct io_vfs *memory_new(void)
{
    struct io_vfs *vfs = NULL;

    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    return vfs;
}

/* Entries up to `size`, in batches of 500. */
static enum ron_err give(struct ledger_tree *tree, const struct ron_sha256 *from,
                         uint64_t size) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint64_t at = 0; at < size && err == RON_ERR_OK; at += 500)
        err = ledger_tree_extend(tree, at + 1, from + at, size - at < 500 ? size - at : 500, NULL,
                                 NULL);
    return err;
}

/* What a service does after a start on a log of these leaves: true if the tree had to be emptied.
 */
static bool recover(struct ledger_tree *tree, const struct ron_sha256 *from,
                    uint64_t size) RON_BLOCKS
{
    const struct ledger_root head = root_of(from, size);
    bool emptied;

    assert_ok(give(tree, from, size));
    assert_ok(ledger_tree_settle(tree, &head, NULL));
    emptied = ledger_tree_size(tree) < size;
    if (emptied) {
        assert_int_equal(ledger_tree_size(tree), 0);
        assert_ok(give(tree, from, size));
        assert_ok(ledger_tree_settle(tree, &head, NULL));
    }
    assert_int_equal(ledger_tree_size(tree), size);
    assert_ok(ledger_tree_sign(tree, &head, NULL));
    return emptied;
}

/* A stranger's look: the checkpoint is of this size and root, each proof leads to it. */
static void check_tree(struct ledger_tree *tree, const struct ron_sha256 *from, uint64_t size,
                       uint64_t step) RON_BLOCKS
{
    const struct ledger_root head = root_of(from, size);
    struct ron_vkey vkey;
    struct ron_trust trust = {.origin = RON_SLICE(ORIGIN), .log = &vkey};
    struct ron_checkpoint checkpoint;
    struct ron_buf note, text;
    uint64_t index = 0, signed_size = 0;

    ron_buf_init(&note, 4096);
    ron_buf_init(&text, 1 << 16);
    assert_ok(ron_vkey_parse(ron_slice_text(ledger_tree_vkey(tree)), &vkey, NULL));
    assert_ok(ledger_tree_checkpoint(tree, &note, &signed_size, NULL));
    assert_int_equal(signed_size, size);
    assert_ok(ron_verify_checkpoint(ron_buf_slice(&note), &trust, &checkpoint, NULL));
    assert_int_equal(checkpoint.tree.size, size);
    assert_memory_equal(checkpoint.tree.root.bytes, head.root.bytes, RON_SHA256_SIZE);
    for (uint64_t seq = 1; seq <= size;
         seq += seq + step > size && seq < size ? size - seq : step) {
        ron_buf_reset(&text);
        assert_ok(ledger_tree_proof_text(tree, seq, &text, NULL));
        assert_ok(ron_verify_proof(ron_buf_slice(&text), &from[seq - 1], &trust, &index,
                                   &checkpoint, NULL));
        assert_int_equal(index, seq - 1);
        assert_int_equal(checkpoint.tree.size, size);
    }
    ron_buf_fini(&text);
    ron_buf_fini(&note);
}

/* --- Heads and proofs ----------------------------------------------------------------------------
 */

static void batches_of_any_size_give_the_root_of_the_log(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);
    uint64_t seed = 7, size = 0;

    (void)state;
    while (size < 6000) {
        uint64_t count = 1 + oracle_next(&seed) % (size % 2 == 0 ? 5 : 600);
        struct ledger_root head = root_of(leaves, size + count);

        assert_ok(ledger_tree_extend(tree, size + 1, leaves + size, count, NULL, NULL));
        size += count;
        if (oracle_next(&seed) % 3 == 0) /* newest wins: not every one is signed */
            continue;
        assert_ok(ledger_tree_sign(tree, &head, NULL));
        check_tree(tree, leaves, size, 1 + size / 5);
        if (oracle_next(&seed) % 4 == 0)
            assert_ok(ledger_tree_keep(tree, oracle_next(&seed) % 2 == 0, NULL));
    }
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

/* Also where the tree has the first of the leaves that they are of. */
static void nodes_that_come_with_leaves_give_the_root_of_the_log(void **state) RON_BLOCKS
{
    enum { COUNT = 700, KNOWN = 300 };
    static struct ron_sha256 nodes[RON_MERKLE_NODES_MAX(COUNT)];
    const struct ledger_root head = root_of(leaves, COUNT);

    (void)state;
    for (uint64_t known = 0; known <= KNOWN; known += KNOWN) {
        struct io_vfs *vfs = memory_new();
        struct ledger_tree *tree = open_tree(vfs);
        struct ron_merkle_frontier frontier;

        ron_merkle_frontier_init(&frontier);
        ron_merkle_frontier_append_keep(&frontier, leaves, COUNT, nodes);
        assert_ok(ledger_tree_extend(tree, 1, leaves, known, NULL, NULL));
        assert_ok(ledger_tree_extend(tree, 1, leaves, COUNT, nodes, NULL));
        assert_ok(ledger_tree_sign(tree, &head, NULL));
        check_tree(tree, leaves, COUNT, 1);
        tree = ledger_tree_free(tree);
        vfs = io_vfs_free(vfs);
    }
}

/* 2 MiB of tiles are 96 that may wait: 24,576 leaves. */
static void extending_makes_room_for_itself(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);
    const struct ledger_root head = root_of(leaves, LEAVES_COUNT);

    (void)state;
    for (uint64_t at = 0; at < LEAVES_COUNT; at += 7000)
        assert_ok(ledger_tree_extend(tree, at + 1, leaves + at, 7000, NULL, NULL));
    assert_ok(ledger_tree_sign(tree, &head, NULL));
    check_tree(tree, leaves, LEAVES_COUNT, 9973);
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

static void proofs_are_under_the_signed_head(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);
    const struct ledger_root head = root_of(leaves, 300);
    struct ron_errinfo info = {0};
    struct ron_buf out;

    (void)state;
    ron_buf_init(&out, 1 << 16);
    assert_ok(give(tree, leaves, 300));
    support_assert_error(ledger_tree_proof_text(tree, 1, &out, &info), &info, RON_ERR_NOT_READY,
                         "no head");
    support_assert_error(ledger_tree_checkpoint(tree, &out, NULL, &info), &info, RON_ERR_NOT_READY,
                         "no head");
    assert_ok(ledger_tree_sign(tree, &head, NULL));
    assert_ok(give(tree, leaves, 1000)); /* committed, not signed yet */
    check_tree(tree, leaves, 300, 37);
    support_assert_error(ledger_tree_proof_text(tree, 301, &out, &info), &info, RON_ERR_NOT_FOUND,
                         "301");
    assert_int_equal(ledger_tree_proof_text(tree, 0, &out, NULL), RON_ERR_NOT_FOUND);
    assert_int_equal(out.size, 0);
    ron_buf_fini(&out);
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

static void an_empty_log_has_a_head(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);

    (void)state;
    assert_false(recover(tree, leaves, 0));
    check_tree(tree, leaves, 0, 1);
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

static void waiting_ends_with_the_head_or_the_deadline_or_the_end(void **state) RON_BLOCKS
{
    const struct rt_deadline past = {0};
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);
    const struct ledger_root first = root_of(leaves, 10), second = root_of(leaves, 20);

    (void)state;
    assert_int_equal(ledger_tree_await(tree, 0, past, NULL), RON_ERR_TIMEOUT);
    assert_ok(give(tree, leaves, 20));
    assert_ok(ledger_tree_sign(tree, &first, NULL));
    assert_ok(ledger_tree_await(tree, 10, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(ledger_tree_await(tree, 11, past, NULL), RON_ERR_TIMEOUT);
    ledger_tree_cancel(tree);
    assert_int_equal(ledger_tree_await(tree, 11, RT_DEADLINE_NEVER, NULL), RON_ERR_CANCELED);
    assert_ok(ledger_tree_await(tree, 10, RT_DEADLINE_NEVER, NULL));
    assert_ok(ledger_tree_sign(tree, &second, NULL));
    assert_ok(ledger_tree_await(tree, 11, RT_DEADLINE_NEVER, NULL));
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

static void what_is_not_the_logs_is_never_signed(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);
    const struct ledger_root wrong = root_of(other, 1000), beyond = root_of(leaves, 1001),
                             good = root_of(leaves, 1000), old = root_of(leaves, 999);

    (void)state;
    assert_ok(give(tree, leaves, 1000));
    assert_int_equal(ledger_tree_sign(tree, &beyond, NULL), RON_ERR_NOT_FOUND);
    assert_dies((void)!ledger_tree_sign(tree, &wrong, NULL), "tree.c");
    assert_ok(ledger_tree_sign(tree, &good, NULL));
    assert_dies((void)!ledger_tree_sign(tree, &old, NULL), "tree.c");
    assert_dies((void)!ledger_tree_extend(tree, 1002, leaves + 1001, 1, NULL, NULL), "tree.c");
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

/* --- Starts --------------------------------------------------------------------------------------
 */

static void turn_a_bit(struct io_vfs *vfs, const char *path, uint64_t offset) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    assert_int_equal(size, 1);
    byte ^= 1;
    assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
}

/* A tree of `size` of these leaves, durable. */
static void leave(struct io_vfs *vfs, const struct ron_sha256 *from, uint64_t size) RON_BLOCKS
{
    struct ledger_tree *tree = open_tree(vfs);

    assert_ok(give(tree, from, size));
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
}

/* The tree that is found has this size and must be emptied or not to be that of 1,000 leaves; the
 * one after it finds all of it. */
static void start_on(struct io_vfs *vfs, uint64_t size_found, bool emptied) RON_BLOCKS
{
    struct ledger_tree *tree = open_tree(vfs);

    assert_int_equal(ledger_tree_size(tree), size_found);
    assert_int_equal(recover(tree, leaves, 1000), emptied);
    check_tree(tree, leaves, 1000, 83);
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
    tree = open_tree(vfs);
    assert_int_equal(ledger_tree_size(tree), 1000);
    assert_false(recover(tree, leaves, 1000));
    check_tree(tree, leaves, 1000, 83);
    tree = ledger_tree_free(tree);
}

static void a_start_makes_the_tree_that_of_the_log(void **state) RON_BLOCKS
{
    static const struct {
        const struct ron_sha256 *leaves;
        uint64_t size, size_found;
        const char *damaged; /* file whose first byte that counts is turned */
        uint64_t offset;
        const char *removed;
        bool emptied;
    } cases[] = {
        {leaves, 0, 0, NULL, 0, NULL, false},                    /* none */
        {leaves, 600, 600, NULL, 0, NULL, false},                /* behind */
        {leaves, 613, 613, NULL, 0, NULL, false},                /* inside a batch */
        {leaves, 1000, 1000, NULL, 0, NULL, false},              /* equal */
        {leaves, 1500, 1500, NULL, 0, NULL, true},               /* ahead */
        {other, 1000, 1000, NULL, 0, NULL, true},                /* another log */
        {other, 900, 900, NULL, 0, NULL, true},                  /* and behind */
        {other, OTHER_FROM, OTHER_FROM, NULL, 0, NULL, false},   /* not yet another */
        {leaves, 1000, 0, "ledger/tiles/head", 20, NULL, false}, /* damaged */
        {leaves, 1000, 0, "ledger/tiles/level-0", 999 * 32, NULL, false},
        {leaves, 1000, 0, NULL, 0, "ledger/tiles/level-0", false}, /* missing */
        {leaves, 1000, 0, NULL, 0, "ledger/tiles/head", false},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct io_vfs *vfs = memory_new();

        leave(vfs, cases[i].leaves, cases[i].size);
        if (cases[i].damaged != NULL)
            turn_a_bit(vfs, cases[i].damaged, cases[i].offset);
        if (cases[i].removed != NULL)
            assert_ok(io_vfs_unlink(vfs, cases[i].removed, NULL));
        start_on(vfs, cases[i].size_found, cases[i].emptied);
        vfs = io_vfs_free(vfs);
    }
}

/* A tile below the edge is looked at when it is read, and never served. */
static void a_damaged_tile_gives_no_proof(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree;
    struct ron_errinfo info = {0};
    struct ron_buf out;

    (void)state;
    leave(vfs, leaves, 1000);
    turn_a_bit(vfs, "ledger/tiles/level-0", 300 * 32);
    tree = open_tree(vfs);
    assert_false(recover(tree, leaves, 1000));
    ron_buf_init(&out, 1 << 16);
    support_assert_error(ledger_tree_proof_text(tree, 300, &out, &info), &info, RON_ERR_WAL_CORRUPT,
                         "level-0");
    assert_int_equal(out.size, 0);
    assert_ok(ledger_tree_proof_text(tree, 1000, &out, NULL));
    ron_buf_fini(&out);
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

static void a_log_keeps_its_key(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs), *second = NULL;
    struct ron_errinfo info = {0};
    char vkey[RON_VKEY_SIZE_MAX + 1];

    (void)state;
    (void)snprintf(vkey, sizeof(vkey), "%s", ledger_tree_vkey(tree));
    tree = ledger_tree_free(tree);
    support_assert_error(open_with(vfs, "ron.example/other", &second, &info), &info,
                         RON_ERR_CONFLICT, "log.key");
    support_assert_error(open_with(vfs, "two words", &second, &info), &info, RON_ERR_MALFORMED,
                         "origin");
    leave(vfs, leaves, 10);
    tree = open_tree(vfs);
    assert_string_equal(ledger_tree_vkey(tree), vkey);
    tree = ledger_tree_free(tree);
    assert_ok(io_vfs_unlink(vfs, "ledger/log.key", NULL));
    support_assert_error(open_with(vfs, ORIGIN, &second, &info), &info, RON_ERR_CONFLICT,
                         "ledger/log.key is missing");
    turn_a_bit(vfs, "ledger/tiles/head", 20); /* damaged is not absent */
    support_assert_error(open_with(vfs, ORIGIN, &second, &info), &info, RON_ERR_CONFLICT,
                         "ledger/log.key is missing");
    assert_null(second);
    vfs = io_vfs_free(vfs);
}

/* The tiles can be made again, so their absence says nothing: the log's records do. */
static void a_log_without_tiles_keeps_its_key(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree_options options = {
        .vfs = vfs, .dir = "ledger/tiles", .key = "ledger/log.key", .origin = ORIGIN};
    struct ledger_tree *tree = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    options.log_size = 3;
    support_assert_error(ledger_tree_open(&options, &tree, &info), &info, RON_ERR_CONFLICT,
                         "the log has 3 records");
    assert_null(tree);
    options.log_size = 0;
    assert_ok(ledger_tree_open(&options, &tree, NULL)); /* the first start */
    assert_true(ledger_tree_key_made(tree));
    tree = ledger_tree_free(tree);
    options.log_size = 3;
    assert_ok(ledger_tree_open(&options, &tree, NULL));
    assert_false(ledger_tree_key_made(tree));
    tree = ledger_tree_free(tree);
    assert_ok(io_vfs_unlink(vfs, "ledger/log.key", NULL));
    options.new_key = true;
    assert_ok(ledger_tree_open(&options, &tree, NULL));
    assert_true(ledger_tree_key_made(tree));
    tree = ledger_tree_free(tree);
    vfs = io_vfs_free(vfs);
}

/* A head of 1,000 leaves of `from` was signed, and is on disk. */
static struct io_vfs *signed_before(const struct ron_sha256 *from) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();
    struct ledger_tree *tree = open_tree(vfs);

    assert_false(recover(tree, from, 1000));
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
    return vfs;
}

/* A log that lost what was signed, or never had it, is signed no more. covers: LED-S13 */
static void no_head_contradicts_one_that_was_signed(void **state) RON_BLOCKS
{
    static const struct {
        const struct ron_sha256 *log; /* what the log has now; a head of `leaves` was signed */
        uint64_t size;
        enum ron_err expected;
    } cases[] = {
        {leaves, 1000, RON_ERR_OK},
        {leaves, 1200, RON_ERR_OK},
        {leaves, 999, RON_ERR_CHAIN_MISMATCH},
        {leaves, 0, RON_ERR_CHAIN_MISMATCH},
        {other, 1000, RON_ERR_CHAIN_MISMATCH},
        {other, 1200, RON_ERR_CHAIN_MISMATCH},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct io_vfs *vfs = signed_before(leaves);
        struct ledger_tree *tree = open_tree(vfs);
        const struct ledger_root head = root_of(cases[i].log, cases[i].size);
        struct ron_errinfo info = {0};
        enum ron_err err;

        assert_ok(give(tree, cases[i].log, cases[i].size));
        err = ledger_tree_settle(tree, &head, &info);
        if (err == RON_ERR_OK && ledger_tree_size(tree) < cases[i].size) {
            assert_ok(give(tree, cases[i].log, cases[i].size));
            err = ledger_tree_settle(tree, &head, &info);
        }
        assert_int_equal(err, cases[i].expected);
        if (cases[i].size < 1000) /* nothing is thrown away that shows what was signed */
            assert_int_equal(ledger_tree_size(tree), 1000);
        if (err != RON_ERR_OK)
            support_assert_error(ledger_tree_extend(tree, 1, leaves, 1, NULL, &info), &info,
                                 RON_ERR_IO, "tiles");
        tree = ledger_tree_free(tree);
        vfs = io_vfs_free(vfs);
    }
}

/* A damaged one binds nobody, and the next one replaces it. */
static void a_damaged_checkpoint_is_replaced(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = signed_before(leaves);
    struct ron_tree stored = {.size = 0};
    struct ron_errinfo info = {0};
    struct ron_vkey vkey;
    struct ledger_tree *tree;
    char text[RON_VKEY_SIZE_MAX + 1];

    (void)state;
    turn_a_bit(vfs, "ledger/tiles/checkpoint", 30);
    tree = open_tree(vfs);
    (void)snprintf(text, sizeof(text), "%s", ledger_tree_vkey(tree));
    assert_ok(ron_vkey_parse(ron_slice_text(text), &vkey, NULL));
    assert_int_not_equal(ledger_checkpoint_load(vfs, "ledger/tiles", &vkey, &stored, &info),
                         RON_ERR_OK);
    assert_non_null(strstr(info.message, "ledger/tiles/checkpoint"));
    (void)recover(tree, leaves, 900);
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
    assert_ok(ledger_checkpoint_load(vfs, "ledger/tiles", &vkey, &stored, NULL));
    assert_int_equal(stored.size, 900);
    vfs = io_vfs_free(vfs);
}

/* --- Failures ------------------------------------------------------------------------------------
 */

static void heads_stop_where_tiles_cannot_be_written(void **state) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_EIO, IO_CALL_WRITE, "ledger/tiles/level-0", 1, 1};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct io_vfs *vfs = memory_new(), *faulty = NULL;
    const struct ledger_root head = root_of(leaves, 500);
    struct ledger_tree *tree;
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(io_vfs_faulty_new(vfs, &options, &faulty, NULL));
    tree = open_tree(faulty);
    assert_ok(give(tree, leaves, 500));
    assert_ok(ledger_tree_sign(tree, &head, NULL));
    assert_int_equal(ledger_tree_keep(tree, false, NULL), RON_ERR_IO);
    support_assert_error(ledger_tree_extend(tree, 501, leaves + 500, 1, NULL, &info), &info,
                         RON_ERR_IO, "tiles");
    support_assert_error(ledger_tree_await(tree, 501, RT_DEADLINE_NEVER, &info), &info, RON_ERR_IO,
                         "501");
    check_tree(tree, leaves, 500, 41); /* readers go on */
    tree = ledger_tree_free(tree);
    faulty = io_vfs_free(faulty);
    vfs = io_vfs_free(vfs);
}

static enum ron_err open_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_tree *tree = NULL;
    enum ron_err err = open_with(context, ORIGIN, &tree, reterr);

    if (err == RON_ERR_OK)
        tree = ledger_tree_free(tree);
    return err;
}

static void opening_survives_every_failed_allocation(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = memory_new();

    (void)state;
    leave(vfs, leaves, 10);
    assert_true(support_fail_each_allocation(open_once, vfs, 100) > 5);
    vfs = io_vfs_free(vfs);
}

struct trace {
    bool opened;
    char vkey[RON_VKEY_SIZE_MAX + 1];
    uint64_t durable;
    uint64_t images_count;
};

/* Extend, sign and keep until something fails. */
static void run_trace(struct io_vfs *vfs, struct trace *trace) RON_BLOCKS
{
    struct ledger_tree *tree = NULL;
    enum ron_err err = open_with(vfs, ORIGIN, &tree, NULL);

    trace->opened = err == RON_ERR_OK;
    if (!trace->opened)
        return;
    (void)snprintf(trace->vkey, sizeof(trace->vkey), "%s", ledger_tree_vkey(tree));
    for (uint64_t size = 150; size <= 900 && err == RON_ERR_OK; size += 150) {
        const struct ledger_root head = root_of(leaves, size);
        const bool sync = size % 300 == 0;

        err = ledger_tree_extend(tree, size - 149, leaves + size - 150, 150, NULL, NULL);
        if (err == RON_ERR_OK)
            err = ledger_tree_sign(tree, &head, NULL);
        if (err == RON_ERR_OK)
            err = ledger_tree_keep(tree, sync, NULL);
        if (err == RON_ERR_OK && sync)
            trace->durable = size;
    }
    tree = ledger_tree_free(tree);
}

static bool look_at(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                    enum io_crash_class class) RON_BLOCKS
{
    struct trace *trace = context;
    struct ledger_tree *tree = open_tree(image);
    uint64_t size;

    (void)plan;
    (void)class;
    trace->images_count++;
    if (trace->opened)
        assert_string_equal(ledger_tree_vkey(tree), trace->vkey);
    assert_true(ledger_tree_size(tree) >= trace->durable);
    size = 900 + trace->images_count % 3 * 150; /* of the log, which is synced first */
    (void)recover(tree, leaves, size);
    check_tree(tree, leaves, size, 211);
    tree = ledger_tree_free(tree);
    return true;
}

static void every_crash_leaves_key_and_tree(void **state) RON_BLOCKS
{
    static const enum io_fault_call calls[] = {IO_CALL_OPEN, IO_CALL_WRITE, IO_CALL_SYNC,
                                               IO_CALL_NAME};
    uint64_t cuts_count = 0, images_count = 0;
    bool struck = true;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(calls); i++, struck = true)
        for (uint64_t nth = 1; struck; nth++, cuts_count++) {
            const struct io_fault fault = {IO_FAULT_EIO, calls[i], NULL, nth, UINT32_MAX};
            const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
            struct io_vfs *memory = memory_new(), *faulty = NULL;
            struct io_crash_options crash = {.seed = nth};
            struct io_crash_counts counts = {{0}};
            struct trace trace = {.opened = false};

            assert_ok(io_vfs_faulty_new(memory, &options, &faulty, NULL));
            run_trace(faulty, &trace);
            struck = io_faulty_count(faulty, IO_FAULT_EIO) > 0;
            faulty = io_vfs_free(faulty);
            assert_ok(io_crash_images(memory, &crash, look_at, &trace, &counts, NULL));
            memory = io_vfs_free(memory);
            images_count += trace.images_count;
        }
    print_message("# %llu cuts, %llu crash images\n", (unsigned long long)cuts_count,
                  (unsigned long long)images_count);
    assert_true(cuts_count > 40);
    assert_true(images_count > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_any_size_give_the_root_of_the_log),
        cmocka_unit_test(nodes_that_come_with_leaves_give_the_root_of_the_log),
        cmocka_unit_test(extending_makes_room_for_itself),
        cmocka_unit_test(proofs_are_under_the_signed_head),
        cmocka_unit_test(an_empty_log_has_a_head),
        cmocka_unit_test(waiting_ends_with_the_head_or_the_deadline_or_the_end),
        cmocka_unit_test(what_is_not_the_logs_is_never_signed),
        cmocka_unit_test(a_start_makes_the_tree_that_of_the_log),
        cmocka_unit_test(a_damaged_tile_gives_no_proof),
        cmocka_unit_test(a_log_keeps_its_key),
        cmocka_unit_test(a_log_without_tiles_keeps_its_key),
        cmocka_unit_test(no_head_contradicts_one_that_was_signed),
        cmocka_unit_test(a_damaged_checkpoint_is_replaced),
        cmocka_unit_test(heads_stop_where_tiles_cannot_be_written),
        cmocka_unit_test(opening_survives_every_failed_allocation),
        cmocka_unit_test(every_crash_leaves_key_and_tree),
    };

    return cmocka_run_group_tests_name("ledger_tree", tests, make_leaves, NULL);
}
