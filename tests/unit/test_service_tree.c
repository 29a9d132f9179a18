/*
 * test_service_tree.c - the tree under the ledger's pipeline: once a batch is answered a stranger
 * can check it, nothing is signed before its sync, a second service has the tree of its log.
 * Method: real threads, an engine that is told when to sync (service_fixture.h), tiles on a disk in
 * memory that may fail; leaves are taken from the log's frames and hashed by ron/verify.h.
 */
#include "service_fixture.h"

#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "ledger/tree.h"

#define ORIGIN "ron.example/ledger"

struct world {
    struct service_fixture *f;
    struct io_vfs *vfs;
    struct ledger_tree *tree;
};

static void tree_open(struct world *world) RON_BLOCKS
{
    assert_ok(ledger_tree_open(&(struct ledger_tree_options){.vfs = world->vfs,
                                                             .dir = "ledger/tiles",
                                                             .key = "ledger/log.key",
                                                             .origin = ORIGIN,
                                                             .cache_bytes = 2 << 20},
                               &world->tree, NULL));
}

static void start(struct world *world) RON_BLOCKS
{
    tree_open(world);
    world->f->options.follower = ledger_tree_follower(world->tree);
    fixture_start(world->f);
}

static void stop(struct world *world) RON_BLOCKS
{
    fixture_stop(world->f);
    assert_int_not_equal(ledger_tree_await(world->tree, 1000, RT_DEADLINE_NEVER, NULL), RON_ERR_OK);
    world->tree = ledger_tree_free(world->tree);
}

static struct world world_new(void) RON_BLOCKS
{
    struct world world = {.f = fixture_new()};

    assert_ok(io_vfs_memory_new(NULL, &world.vfs, NULL));
    return world;
}

static void world_free(struct world *world) RON_BLOCKS
{
    world->vfs = io_vfs_free(world->vfs);
    fixture_free(world->f);
}

static struct ledger_outcome *mint(struct world *world, const char *id, const char *memo) RON_BLOCKS
{
    struct call *call = call_new(world->f, id, NULL, "alice", 10, id);

    if (memo != NULL)
        call->wire.memo = S(memo);
    accepts(world->f, call);
    return &call->request.outcome;
}

/* The leaf of a batch's only entry, from the bytes of the log. */
static struct ron_sha256 leaf_of(struct world *world, uint64_t batch) RON_BLOCKS
{
    struct ledger_frame frame;
    struct ron_buf buf, leaf;
    struct ron_sha256 hash;

    ron_buf_init(&buf, 1 << 16);
    ron_buf_init(&leaf, 1 << 16);
    assert_ok(ledger_read_batch(world->f->service, batch, &buf, NULL));
    assert_ok(ledger_frame_decode(ron_buf_slice(&buf), &frame, NULL));
    assert_int_equal(frame.entries_count, 1);
    ron_buf_put(&leaf, frame.entries.data, frame.entries.size);
    ron_buf_put(&leaf, frame.ext.data, frame.ext.size);
    hash = ron_verify_leaf_hash(leaf.data, leaf.size);
    ron_buf_fini(&leaf);
    ron_buf_fini(&buf);
    return hash;
}

/* Under a checkpoint of at least its own size, by the key that is published; of exactly this root
 * where it is of this size. */
static void check_proof(struct world *world, const struct ledger_reply *reply) RON_BLOCKS
{
    const struct ron_sha256 leaf = leaf_of(world, reply->batch);
    struct ron_vkey vkey;
    struct ron_trust trust = {.origin = RON_SLICE(ORIGIN), .log = &vkey};
    struct ron_checkpoint checkpoint;
    struct ron_buf text;
    uint64_t index = 0;

    ron_buf_init(&text, 1 << 16);
    assert_ok(ron_vkey_parse(ron_slice_text(ledger_tree_vkey(world->tree)), &vkey, NULL));
    assert_ok(ledger_tree_await(world->tree, reply->seq_end, RT_DEADLINE_NEVER, NULL));
    assert_ok(ledger_tree_proof_text(world->tree, reply->seq_start, &text, NULL));
    assert_ok(ron_verify_proof(ron_buf_slice(&text), &leaf, &trust, &index, &checkpoint, NULL));
    assert_int_equal(index, reply->seq_start - 1);
    assert_true(checkpoint.tree.size >= reply->seq_end);
    if (checkpoint.tree.size == reply->seq_end)
        assert_memory_equal(&checkpoint.tree.root, &reply->root, sizeof(reply->root));
    ron_buf_fini(&text);
}

static void what_is_answered_can_be_proved(void **state) RON_BLOCKS
{
    struct world world = world_new();
    struct ledger_reply replies[12];
    char id[TEXT_SIZE];

    (void)state;
    start(&world);
    for (unsigned i = 0; i < RON_ARRAY_COUNT(replies); i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        replies[i] = mint(&world, id, i % 3 == 1 ? "with an extension" : NULL)->reply;
        assert_true(ledger_tree_size(world.tree) >= replies[i].seq_end); /* before the answer */
        check_proof(&world, &replies[i]);
    }
    for (unsigned i = 0; i < RON_ARRAY_COUNT(replies); i++)
        check_proof(&world, &replies[i]); /* each of them under the last head */
    stop(&world);
    world_free(&world);
}

static void nothing_is_signed_before_its_sync(void **state) RON_BLOCKS
{
    struct world world = world_new();
    struct ron_buf note;
    struct call *call;
    uint64_t size = 9;

    (void)state;
    ron_buf_init(&note, 4096);
    start(&world);
    (void)mint(&world, "m1", NULL);
    assert_ok(ledger_tree_await(world.tree, 1, RT_DEADLINE_NEVER, NULL));
    gate_set(world.f->gate, false);
    call = submit(world.f, call_new(world.f, "m2", NULL, "alice", 10, NULL));
    until(rt_atomic_load_u32(&world.f->gate->waits_count) == 2); /* appended, sealed, not synced */
    assert_int_equal(ledger_tree_size(world.tree), 1);
    assert_ok(ledger_tree_checkpoint(world.tree, &note, &size, NULL));
    assert_int_equal(size, 1);
    gate_set(world.f->gate, true);
    assert_ptr_equal(next_answer(world.f), call);
    assert_ok(ledger_tree_await(world.tree, 2, RT_DEADLINE_NEVER, NULL));
    ron_buf_fini(&note);
    stop(&world);
    world_free(&world);
}

/* Batches that become durable together are told to the tree together. */
static void a_group_can_be_proved_one_by_one(void **state) RON_BLOCKS
{
    enum { GROUP = 4 };
    struct world world = world_new();
    struct ledger_reply replies[GROUP];
    struct ledger_health health;
    char id[TEXT_SIZE];

    (void)state;
    start(&world);
    (void)mint(&world, "m", NULL);
    gate_set(world.f->gate, false);
    for (unsigned i = 0; i < GROUP; i++) {
        struct call *call;

        (void)snprintf(id, sizeof(id), "g%u", i);
        call = call_new(world.f, id, NULL, "alice", 10, NULL);
        if (i % 3 == 1)
            call->wire.memo = S("with an extension");
        (void)submit(world.f, call);
        if (i == 0) /* the others wait for its sync */
            until(rt_atomic_load_u32(&world.f->gate->waits_count) == 2);
    }
    until((ledger_read_health(world.f->service, &health), health.in_flight == GROUP));
    assert_int_equal(ledger_tree_size(world.tree), 1);
    gate_set(world.f->gate, true);
    for (unsigned i = 0; i < GROUP; i++) {
        replies[i] = next_answer(world.f)->request.outcome.reply;
        assert_true(ledger_tree_size(world.tree) >= replies[i].seq_end);
    }
    for (unsigned i = 0; i < GROUP; i++)
        check_proof(&world, &replies[i]);
    stop(&world);
    world_free(&world);
}

static bool is_signed(struct world *world, uint64_t size)
{
    uint64_t signed_size = 0;
    struct ron_buf note;
    enum ron_err err;

    ron_buf_init(&note, 4096);
    err = ledger_tree_checkpoint(world->tree, &note, &signed_size, NULL);
    ron_buf_fini(&note);
    return err == RON_ERR_OK && signed_size == size;
}

/* The tree's follower, with every head noted that is signed. */
struct noting {
    struct ledger_follower inner;
    uint64_t sizes[16];
    struct rt_atomic_u32 sizes_count;
    uint64_t kept[32]; /* sizes told before each keep */
    struct rt_atomic_u32 kept_count;
};

static enum ron_err note_head(void *context, const struct ledger_root *root,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct noting *noting = context;
    const uint32_t count = rt_atomic_load_u32(&noting->sizes_count);
    enum ron_err err = noting->inner.head(noting->inner.context, root, reterr);

    assert_true(count < RON_ARRAY_COUNT(noting->sizes));
    noting->sizes[count] = root->seq;
    rt_atomic_store_u32(&noting->sizes_count, count + 1);
    return err;
}

static enum ron_err note_extend(void *context, uint64_t seq_start, const struct ron_sha256 *hashes,
                                size_t hashes_count, const struct ron_sha256 *nodes,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct noting *noting = context;

    return noting->inner.extend(noting->inner.context, seq_start, hashes, hashes_count, nodes,
                                reterr);
}

static uint64_t note_size(void *context)
{
    struct noting *noting = context;

    return noting->inner.size(noting->inner.context);
}

static enum ron_err note_settle(void *context, const struct ledger_root *head,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct noting *noting = context;

    return noting->inner.settle(noting->inner.context, head, reterr);
}

static enum ron_err note_keep(void *context, bool sync, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct noting *noting = context;
    const uint32_t told = rt_atomic_load_u32(&noting->sizes_count);
    const uint32_t count = rt_atomic_load_u32(&noting->kept_count);

    assert_true(count < RON_ARRAY_COUNT(noting->kept));
    noting->kept[count] = told == 0 ? 0 : noting->sizes[told - 1];
    rt_atomic_store_u32(&noting->kept_count, count + 1);
    return noting->inner.keep(noting->inner.context, sync, reterr);
}

static void note_end(void *context)
{
    struct noting *noting = context;

    noting->inner.end(noting->inner.context);
}

static void start_noted(struct world *world, struct noting *noting,
                        uint64_t keep_entries) RON_BLOCKS
{
    tree_open(world);
    noting->inner = ledger_tree_follower(world->tree);
    world->f->options.follower = (struct ledger_follower){.context = noting,
                                                          .extend = note_extend,
                                                          .size = note_size,
                                                          .settle = note_settle,
                                                          .head = note_head,
                                                          .keep = note_keep,
                                                          .keep_entries = keep_entries,
                                                          .end = note_end};
    fixture_start(world->f);
    until(rt_atomic_load_u32(&noting->sizes_count) == 1); /* of what recovery found: nothing */
}

/* One by one, each with its head. */
static void mint_noted(struct world *world, struct noting *noting, uint32_t count) RON_BLOCKS
{
    char id[TEXT_SIZE];

    for (uint32_t i = 1; i <= count; i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        (void)mint(world, id, NULL);
        until(rt_atomic_load_u32(&noting->sizes_count) == 1 + i);
    }
}

/* Tiles are not left to pile up until there is no room for more: not even for as long as it takes
 * until the time comes. */
static void tiles_are_kept_before_there_are_many(void **state) RON_BLOCKS
{
    enum { EVERY = 3, COUNT = 12 };
    struct world world = world_new();
    struct noting noting = {0};
    uint32_t kept_count;

    (void)state;
    start_noted(&world, &noting, EVERY);
    mint_noted(&world, &noting, COUNT);
    stop(&world);
    kept_count = rt_atomic_load_u32(&noting.kept_count);
    assert_true(kept_count >= 1 + COUNT / EVERY);
    for (uint32_t i = 1; i < kept_count; i++)
        assert_true(noting.kept[i] - noting.kept[i - 1] <= EVERY);
    assert_int_equal(noting.kept[kept_count - 1], COUNT);
    /* As delivered several times before its memory is used up. */
    tree_open(&world);
    assert_in_range(ledger_tree_follower(world.tree).keep_entries, 2048,
                    io_tlog_room(ledger_tree_log(world.tree)) / 4);
    world.tree = ledger_tree_free(world.tree);
    world_free(&world);
}

/* One signature a group, at once, though nobody waits for it: groups of one, then one of three. */
static void each_group_has_a_head(void **state) RON_BLOCKS
{
    enum { ALONE = 5, TOGETHER = 3 };
    struct world world = world_new();
    struct noting noting = {0};
    struct ledger_health health;
    char id[TEXT_SIZE];
    uint32_t count, groups_count;

    (void)state;
    start_noted(&world, &noting, 0);
    mint_noted(&world, &noting, ALONE);
    gate_set(world.f->gate, false);
    for (unsigned i = 0; i <= TOGETHER; i++) {
        (void)snprintf(id, sizeof(id), "g%u", i);
        (void)submit(world.f, call_new(world.f, id, NULL, "alice", 10, NULL));
        if (i == 0) /* the others wait for its sync */
            until(rt_atomic_load_u32(&world.f->gate->waits_count) == ALONE + 1);
    }
    until((ledger_read_health(world.f->service, &health), health.in_flight == 1 + TOGETHER));
    gate_set(world.f->gate, true);
    for (unsigned i = 0; i <= TOGETHER; i++)
        (void)next_answer(world.f);
    until(is_signed(&world, ALONE + 1 + TOGETHER));
    stop(&world);
    for (unsigned i = 0; i <= ALONE; i++)
        assert_int_equal(noting.sizes[i], i);
    /* Groups that end together may share a head; there is none within a group. */
    count = rt_atomic_load_u32(&noting.sizes_count);
    groups_count = rt_atomic_load_u32(&world.f->gate->waits_count);
    assert_in_range(count, ALONE + 2, 1 + groups_count);
    assert_true(count == ALONE + 2 || noting.sizes[ALONE + 1] == ALONE + 1);
    assert_int_equal(noting.sizes[count - 1], ALONE + 1 + TOGETHER);
    world_free(&world);
}

/* The head that recovery found is signed at once. What the tree had is done to it first. */
static void check_restart(struct world *world, const struct ledger_reply *replies,
                          size_t replies_count) RON_BLOCKS
{
    struct ledger_health health;

    start(world);
    ledger_read_health(world->f->service, &health);
    assert_int_equal(health.head.seq, replies_count);
    assert_false(health.follower_lost);
    assert_int_equal(ledger_tree_size(world->tree), replies_count);
    for (size_t i = 0; i < replies_count; i++)
        check_proof(world, &replies[i]);
    stop(world);
}

/* Leaves that are not the log's, from `first` on; durable. */
static void leave_others(struct world *world, uint64_t first) RON_BLOCKS
{
    struct ron_sha256 hash = {{1, 2, 3}};

    assert_ok(ledger_tree_open(
        &(struct ledger_tree_options){
            .vfs = world->vfs, .dir = "ledger/tiles", .key = "ledger/log.key", .origin = ORIGIN},
        &world->tree, NULL));
    assert_int_equal(ledger_tree_size(world->tree), first - 1);
    assert_ok(ledger_tree_extend(world->tree, first, &hash, 1, NULL, NULL));
    assert_ok(ledger_tree_keep(world->tree, true, NULL));
    world->tree = ledger_tree_free(world->tree);
}

static void a_second_service_has_the_tree_of_its_log(void **state) RON_BLOCKS
{
    struct world world = world_new();
    struct ledger_reply replies[5];
    char id[TEXT_SIZE];

    (void)state;
    start(&world);
    for (unsigned i = 0; i < RON_ARRAY_COUNT(replies); i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        replies[i] = mint(&world, id, i == 2 ? "with an extension" : NULL)->reply;
    }
    stop(&world);
    check_restart(&world, replies, 5); /* equal: the stop made it durable */
    assert_ok(io_vfs_unlink(world.vfs, "ledger/tiles/head", NULL));
    check_restart(&world, replies, 5); /* missing */
    leave_others(&world, 6);
    check_restart(&world, replies, 5); /* ahead */
    check_restart(&world, replies, 5); /* and now it is equal */
    assert_ok(io_vfs_unlink(world.vfs, "ledger/tiles/head", NULL));
    leave_others(&world, 1);
    check_restart(&world, replies, 5); /* behind, and of another log */
    start(&world);
    check_proof(&world, &mint(&world, "more", NULL)->reply);
    stop(&world);
    world_free(&world);
}

static bool is_lost(struct world *world)
{
    struct ledger_health health;

    ledger_read_health(world->f->service, &health);
    return health.follower_lost;
}

static void commits_go_on_without_tiles(void **state) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_EIO, IO_CALL_WRITE, "ledger/tiles/level-0", 1, 1};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct world world = world_new();
    struct io_vfs *memory = world.vfs;
    struct ledger_reply replies[2];

    (void)state;
    assert_ok(io_vfs_faulty_new(memory, &options, &world.vfs, NULL));
    start(&world);
    replies[0] = mint(&world, "m1", NULL)->reply;
    check_proof(&world, &replies[0]);
    until(is_lost(&world)); /* the publisher wrote tiles out, as it does after a head */
    replies[1] = mint(&world, "m2", NULL)->reply;
    assert_int_equal(ledger_tree_size(world.tree), 1);
    assert_int_equal(ledger_tree_await(world.tree, 2, RT_DEADLINE_NEVER, NULL), RON_ERR_IO);
    check_proof(&world, &replies[0]);
    stop(&world);
    check_restart(&world, replies, 2); /* the disk is well again */
    world.vfs = io_vfs_free(world.vfs);
    world.vfs = memory;
    world_free(&world);
}

/* The log is gone, what was signed is not: a new one under the same key would contradict it. */
static void a_log_that_lost_what_was_signed_is_signed_no_more(void **state) RON_BLOCKS
{
    struct world before = world_new(), world = {.f = NULL};
    struct ron_buf note;

    (void)state;
    start(&before);
    (void)mint(&before, "m1", NULL);
    (void)mint(&before, "m2", NULL);
    assert_ok(ledger_tree_await(before.tree, 2, RT_DEADLINE_NEVER, NULL));
    stop(&before);
    fixture_free(before.f);
    world = (struct world){.f = fixture_new(), .vfs = before.vfs};
    ron_buf_init(&note, 4096);
    start(&world);
    assert_true(is_lost(&world));
    (void)mint(&world, "m3", NULL); /* commits go on */
    assert_int_equal(ledger_tree_checkpoint(world.tree, &note, NULL, NULL), RON_ERR_NOT_READY);
    stop(&world);
    ron_buf_fini(&note);
    world_free(&world);
}

/* Cut short while it reads the log: nothing is signed, nothing is wrong. */
static void a_stop_during_recovery_leaves_the_tree_alone(void **state) RON_BLOCKS
{
    struct world world = world_new();
    struct ledger_reply reply;

    (void)state;
    start(&world);
    reply = mint(&world, "m1", NULL)->reply;
    stop(&world);
    for (int i = 0; i < 20; i++) {
        assert_ok(ledger_tree_open(&(struct ledger_tree_options){.vfs = world.vfs,
                                                                 .dir = "ledger/tiles",
                                                                 .key = "ledger/log.key",
                                                                 .origin = ORIGIN,
                                                                 .cache_bytes = 2 << 20},
                                   &world.tree, NULL));
        world.f->options.follower = ledger_tree_follower(world.tree);
        assert_ok(ledger_service_new(&world.f->options, &world.f->service, NULL));
        assert_ok(ledger_service_start(world.f->service, NULL));
        stop(&world);
    }
    check_restart(&world, &reply, 1);
    world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_answered_can_be_proved),
        cmocka_unit_test(nothing_is_signed_before_its_sync),
        cmocka_unit_test(a_group_can_be_proved_one_by_one),
        cmocka_unit_test(each_group_has_a_head),
        cmocka_unit_test(tiles_are_kept_before_there_are_many),
        cmocka_unit_test(a_second_service_has_the_tree_of_its_log),
        cmocka_unit_test(commits_go_on_without_tiles),
        cmocka_unit_test(a_log_that_lost_what_was_signed_is_signed_no_more),
        cmocka_unit_test(a_stop_during_recovery_leaves_the_tree_alone),
    };

    return cmocka_run_group_tests_name("service_tree", tests, NULL, NULL);
}
