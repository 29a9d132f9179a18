/*
 * test_ledger_verify_dir.c - a ledger's directory checked link by link. Method: a directory is made
 * by the parts that make it in service (core, file engine, tree) on a disk in memory; then one
 * thing at a time is damaged, forged or taken away, and the report must name that link, its file
 * and place.
 */
#include "ledger_fixture.h"

#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "ledger/engine.h"
#include "ledger/tree.h"
#include "ledger/verify_dir.h"
#include "rt/registry.h"

enum { BATCHES_COUNT = 300 };

struct world {
    struct io_vfs *vfs;
    struct ledger_capacity capacity;
    struct ledger_root head;
    char vkey[RON_VKEY_SIZE_MAX + 1];
    struct ron_buf note;
    struct ledger_verify_report report;
    struct ron_errinfo info;
    uint64_t done, total, calls_count; /* of progress */
};

static struct ledger_tree *open_tree(struct io_vfs *vfs) RON_BLOCKS
{
    struct ledger_tree *tree = NULL;

    assert_ok(ledger_tree_open(&(struct ledger_tree_options){.vfs = vfs,
                                                             .dir = "ledger/tiles",
                                                             .key = "ledger/log.key",
                                                             .origin = "ron.example/ledger",
                                                             .cache_bytes = 2 << 20},
                               &tree, NULL));
    return tree;
}

static struct ledger_engine *open_engine(struct io_vfs *vfs) RON_BLOCKS
{
    struct ledger_engine *engine = NULL;

    assert_ok(
        ledger_engine_file_open(&(struct ledger_engine_file_options){.vfs = vfs,
                                                                     .dir = "ledger/log",
                                                                     .segment_bytes = 32768,
                                                                     .ahead_bytes = 16384,
                                                                     .group_bytes = 8192,
                                                                     .record_bytes_max = 8192},
                                &engine, NULL));
    return engine;
}

/* One batch: done, into the log and the tree. Batch `forged` says another amount in the log. */
static void commit(struct fixture *f, struct ledger_engine *engine, struct ledger_tree *tree,
                   unsigned i, unsigned forged) RON_BLOCKS
{
    uint64_t number = 0;
    char line[128];

    (void)snprintf(line, sizeof(line),
                   i % 4 == 3 ? "Mint id=m%u to=alice asset=roc amount=%u memo=x"
                              : "Mint id=m%u to=alice asset=roc amount=%u",
                   i, i + 1);
    applies(f, line, NULL);
    if (i + 1 == forged)
        f->frame[LEDGER_FRAME_HEAD_SIZE + 48] ^= 1;
    assert_ok(ledger_engine_append(engine, &(struct ron_slice){f->frame, f->frame_size}, 1,
                                   RT_DEADLINE_NEVER, &number, NULL));
    assert_int_equal(number, i + 1);
    assert_ok(ledger_tree_extend(tree, f->batch.seq_start, f->batch.hashes, f->batch.entries_count,
                                 NULL, NULL));
}

/* A directory of BATCHES_COUNT batches; its note is kept outside. */
static struct world *world_new(unsigned forged) RON_BLOCKS
{
    struct world *world = ron_mem_alloc(sizeof(*world));
    void *state = NULL;
    struct fixture *f;
    struct ledger_engine *engine;
    struct ledger_tree *tree;

    assert_non_null(world);
    world->capacity = fixture_capacity();
    world->capacity.accounts_max = 16;
    state = fixture_new(&world->capacity, NULL);
    f = state;
    assert_ok(io_vfs_memory_new(NULL, &world->vfs, NULL));
    engine = open_engine(world->vfs);
    assert_ok(engine->ops->recover(engine, 1, NULL, NULL, NULL));
    tree = open_tree(world->vfs);
    for (unsigned i = 0; i < BATCHES_COUNT; i++)
        commit(f, engine, tree, i, forged);
    assert_ok(ledger_engine_wait(engine, BATCHES_COUNT, RT_DEADLINE_NEVER, NULL));
    world->head = (struct ledger_root){.seq = f->result.seq_end, .root = f->root};
    assert_ok(ledger_tree_sign(tree, &world->head, NULL));
    assert_ok(ledger_tree_keep(tree, true, NULL));
    ron_buf_init(&world->note, 4096);
    assert_ok(ledger_tree_checkpoint(tree, &world->note, NULL, NULL));
    (void)snprintf(world->vkey, sizeof(world->vkey), "%s", ledger_tree_vkey(tree));
    tree = ledger_tree_free(tree);
    engine = ledger_engine_file_free(engine);
    (void)fixture_teardown(&state);
    return world;
}

static void world_free(struct world *world) RON_BLOCKS
{
    ron_buf_fini(&world->note);
    (void)io_vfs_free(world->vfs);
    (void)ron_mem_free(world);
}

static void progress(void *context, uint64_t done, uint64_t total)
{
    struct world *world = context;

    assert_true(done > world->done || world->calls_count == 0);
    assert_true(done <= total);
    world->done = done;
    world->total = total;
    world->calls_count++;
}

static enum ron_err verify_on(struct world *world, struct io_vfs *vfs) RON_BLOCKS
{
    world->done = world->calls_count = 0;
    return ledger_verify_dir(&(struct ledger_verify_options){.vfs = vfs,
                                                             .dir = "ledger",
                                                             .capacity = world->capacity,
                                                             .vkey = S(world->vkey),
                                                             .note = ron_buf_slice(&world->note),
                                                             .progress = progress,
                                                             .context = world},
                             &world->report, &world->info);
}

static void breaks(struct world *world, enum ron_err expected, const char *link, const char *file,
                   uint64_t offset) RON_BLOCKS
{
    assert_int_equal(verify_on(world, world->vfs), expected);
    assert_non_null(world->report.link);
    assert_string_equal(world->report.link, link);
    assert_string_equal(world->report.file, file);
    assert_int_equal(world->report.offset, offset);
    assert_int_equal(world->info.err, expected);
    assert_true(world->info.message[0] != '\0');
}

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

static void a_whole_ledger_holds_and_is_not_touched(void **state) RON_BLOCKS
{
    struct world *world = world_new(0);
    const size_t unsynced = io_memory_unsynced_count(world->vfs);

    (void)state;
    assert_ok(verify_on(world, world->vfs));
    assert_null(world->report.link);
    assert_int_equal(world->report.batches_count, BATCHES_COUNT);
    assert_int_equal(world->report.tree.size, world->head.seq);
    assert_memory_equal(&world->report.tree.root, &world->head.root, sizeof(world->head.root));
    assert_int_equal(world->report.tiles_size, world->head.seq);
    assert_int_equal(world->report.checkpoint_size, world->head.seq);
    assert_true(world->report.segments_count > 2);
    assert_int_equal(world->report.torn_bytes, 0);
    assert_true(world->calls_count > 0);
    assert_int_equal(world->done, world->total);
    assert_int_equal(io_memory_unsynced_count(world->vfs), unsynced);
    world_free(world);
}

/* Each of them alone; what is turned is turned back.
 * covers: LED-F26 LED-S13 */
static void the_first_broken_link_is_named(void **state) RON_BLOCKS
{
    static const struct {
        const char *path;
        uint64_t offset;
        enum ron_err expected;
        const char *link, *file;
        uint64_t place;
    } cases[] = {
        {"ledger/log/seg-0000000000000001", 4096 + 40 + 200, RON_ERR_WAL_CORRUPT, "log",
         "ledger/log/seg-0000000000000001", 4096},
        {"ledger/log/seg-0000000000000002", 100, RON_ERR_WAL_CORRUPT, "log",
         "ledger/log/seg-0000000000000002", 0},
        {"ledger/tiles/head", 20, RON_ERR_WAL_CORRUPT, "tiles", "ledger/tiles", 0},
        {"ledger/tiles/level-0", 280 * 32, RON_ERR_WAL_CORRUPT, "tiles", "ledger/tiles", 0},
        {"ledger/tiles/level-0", 100 * 32, RON_ERR_WAL_CORRUPT, "tiles", "ledger/tiles/level-0", 0},
    };
    struct world *world = world_new(0);

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        turn_a_bit(world->vfs, cases[i].path, cases[i].offset);
        breaks(world, cases[i].expected, cases[i].link, cases[i].file, cases[i].place);
        turn_a_bit(world->vfs, cases[i].path, cases[i].offset);
        assert_ok(verify_on(world, world->vfs));
    }
    world_free(world);
}

/* Sums and links are right, the batch is not: only doing it again shows it. */
static void a_forged_batch_is_named(void **state) RON_BLOCKS
{
    struct world *world = world_new(7);

    (void)state;
    assert_int_equal(verify_on(world, world->vfs), RON_ERR_WAL_CORRUPT);
    assert_string_equal(world->report.link, "frames");
    assert_string_equal(world->report.file, "ledger/log/seg-0000000000000001");
    assert_true(world->report.offset > 4096);
    assert_int_equal(world->report.batches_count, 6);
    assert_int_equal(world->report.tree.size, 6);
    world_free(world);
}

static void heads_that_the_log_does_not_have(void **state) RON_BLOCKS
{
    struct world *world = world_new(0);
    struct world *other = world_new(0); /* the same entries, another key */
    struct ron_sha256 hash = {{1}};
    struct ledger_tree *tree;
    struct ron_buf note = world->note;

    (void)state;
    world->note = other->note;
    breaks(world, RON_ERR_INVALID_SIGNATURE, "note", "", 0);
    world->note = note;
    turn_a_bit(world->vfs, "ledger/tiles/checkpoint", 21); /* a digit of its size */
    breaks(world, RON_ERR_INVALID_SIGNATURE, "checkpoint", "ledger/tiles/checkpoint", 0);
    turn_a_bit(world->vfs, "ledger/tiles/checkpoint", 21);
    tree = open_tree(world->vfs); /* a tree of one more */
    assert_ok(ledger_tree_extend(tree, world->head.seq + 1, &hash, 1, NULL, NULL));
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
    breaks(world, RON_ERR_CHAIN_MISMATCH, "tiles", "ledger/tiles", 0);
    world_free(world);
    world_free(other);
}

/* Tiles that hold together, of leaves that are not the log's. */
static void a_tile_of_other_leaves_is_named(void **state) RON_BLOCKS
{
    const struct io_tile tile = {0, 0, IO_TILE_WIDTH};
    struct world *world = world_new(0);
    struct ron_sha256 hashes[IO_TILE_WIDTH];
    struct ledger_tree *tree = open_tree(world->vfs);

    (void)state;
    assert_ok(io_tlog_tile(ledger_tree_log(tree), &tile, hashes, NULL));
    tree = ledger_tree_free(tree);
    assert_ok(io_vfs_unlink(world->vfs, "ledger/tiles/head", NULL));
    hashes[100].bytes[31] ^= 1;
    tree = open_tree(world->vfs);
    assert_ok(ledger_tree_extend(tree, 1, hashes, IO_TILE_WIDTH, NULL, NULL));
    assert_ok(ledger_tree_keep(tree, true, NULL));
    tree = ledger_tree_free(tree);
    breaks(world, RON_ERR_CHAIN_MISMATCH, "tiles", "ledger/tiles/level-0", 100 * 32);
    world_free(world);
}

/* Without tiles and checkpoint the log stands alone, and a note still binds it. */
static void a_note_alone_binds_the_log(void **state) RON_BLOCKS
{
    struct world *world = world_new(0);
    struct ron_sha256 hashes[2] = {{{1}}, {{2}}};
    struct ledger_tree *tree;
    struct ledger_root head;
    struct ron_buf note;
    char vkey;

    (void)state;
    assert_ok(io_vfs_unlink(world->vfs, "ledger/tiles/checkpoint", NULL));
    assert_ok(io_vfs_unlink(world->vfs, "ledger/tiles/head", NULL));
    assert_ok(verify_on(world, world->vfs));
    assert_int_equal(world->report.tiles_size, 0);
    assert_int_equal(world->report.checkpoint_size, 0);
    assert_int_equal(world->report.signature, LEDGER_SIGNATURE_NO_HEAD);
    assert_int_equal(world->report.note_signature, LEDGER_SIGNATURE_BY_VKEY);
    note = world->note;
    world->note.size = 0; /* now nothing of it is signed */
    breaks(world, RON_ERR_INVALID_SIGNATURE, "checkpoint", "ledger/tiles/checkpoint", 0);
    vkey = world->vkey[0];
    world->vkey[0] = '\0';
    assert_ok(verify_on(world, world->vfs)); /* and nobody asks for it */
    assert_int_equal(world->report.note_signature, LEDGER_SIGNATURE_NO_HEAD);
    world->vkey[0] = vkey;
    world->note = note;
    tree = open_tree(world->vfs); /* the key signs what never was in the log */
    assert_ok(ledger_tree_extend(tree, 1, hashes, 2, NULL, NULL));
    head.seq = 2;
    assert_ok(io_tlog_root(ledger_tree_log(tree), 2, &head.root, NULL));
    assert_ok(ledger_tree_sign(tree, &head, NULL));
    ron_buf_reset(&world->note);
    assert_ok(ledger_tree_checkpoint(tree, &world->note, NULL, NULL));
    tree = ledger_tree_free(tree);
    breaks(world, RON_ERR_CHAIN_MISMATCH, "note", "", 0);
    world_free(world);
}

/* The key that is given, else the one that lies beside the log, else none. */
static void whose_key_signed_is_told(void **state) RON_BLOCKS
{
    struct world *world = world_new(0);
    struct world *other = world_new(0); /* the same entries, another key */
    char vkey[sizeof(world->vkey)];

    (void)state;
    memcpy(vkey, world->vkey, sizeof(vkey));
    assert_ok(verify_on(world, world->vfs));
    assert_int_equal(world->report.signature, LEDGER_SIGNATURE_BY_VKEY);
    memcpy(world->vkey, other->vkey, sizeof(vkey));
    breaks(world, RON_ERR_INVALID_SIGNATURE, "checkpoint", "ledger/tiles/checkpoint", 0);
    world->vkey[0] = '\0';
    assert_ok(verify_on(world, world->vfs));
    assert_int_equal(world->report.signature, LEDGER_SIGNATURE_BY_OWN_KEY);
    turn_a_bit(world->vfs, "ledger/tiles/checkpoint", 21);
    breaks(world, RON_ERR_INVALID_SIGNATURE, "checkpoint", "ledger/tiles/checkpoint", 0);
    turn_a_bit(world->vfs, "ledger/tiles/checkpoint", 21);
    turn_a_bit(world->vfs, "ledger/log.key", 60); /* of its seed */
    breaks(world, RON_ERR_MALFORMED, "key", "ledger/log.key", 0);
    assert_ok(io_vfs_unlink(world->vfs, "ledger/log.key", NULL));
    assert_ok(verify_on(world, world->vfs));
    assert_int_equal(world->report.signature, LEDGER_SIGNATURE_UNCHECKED);
    memcpy(world->vkey, vkey, sizeof(vkey));
    assert_ok(verify_on(world, world->vfs));
    assert_int_equal(world->report.signature, LEDGER_SIGNATURE_BY_VKEY);
    world_free(world);
    world_free(other);
}

/* What cannot be looked at is no verdict. */
static void no_verdict_without_a_look(void **state) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_EIO, IO_CALL_READ, "ledger/log/seg-0000000000000002", 1,
                                   UINT32_MAX};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct world *world = world_new(0);
    struct io_vfs *faulty = NULL, *nothing = NULL;

    (void)state;
    assert_ok(io_vfs_faulty_new(world->vfs, &options, &faulty, NULL));
    assert_int_equal(verify_on(world, faulty), RON_ERR_IO);
    assert_null(world->report.link);
    faulty = io_vfs_free(faulty);
    assert_ok(io_vfs_memory_new(NULL, &nothing, NULL));
    assert_int_equal(verify_on(world, nothing), RON_ERR_NOT_FOUND);
    assert_null(world->report.link);
    nothing = io_vfs_free(nothing);
    world->capacity.entries_window = 100;
    assert_int_equal(verify_on(world, world->vfs), RON_ERR_BUSY);
    assert_null(world->report.link);
    world_free(world);
}

static int setup(void **state)
{
    (void)state;
    rt_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_ledger_holds_and_is_not_touched),
        cmocka_unit_test(the_first_broken_link_is_named),
        cmocka_unit_test(a_forged_batch_is_named),
        cmocka_unit_test(heads_that_the_log_does_not_have),
        cmocka_unit_test(a_tile_of_other_leaves_is_named),
        cmocka_unit_test(a_note_alone_binds_the_log),
        cmocka_unit_test(whose_key_signed_is_told),
        cmocka_unit_test(no_verdict_without_a_look),
    };

    return cmocka_run_group_tests_name("ledger_verify_dir", tests, setup, NULL);
}
