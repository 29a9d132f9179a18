/*
 * test_service_archive.c - exact for ever: windows of a few entries over segments of 8 KiB, and
 * thousands of batches that the windows have long forgotten. Duplicates by id, by key and by nonce,
 * a Reverse of something ancient; before and after a restart; and what happens when the archive
 * cannot answer.
 */
#include "ancient_world.h"

#include "io/log_format.h"

enum { BATCHES_COUNT = 2000 };

/* covers: LED-F07, LED-F08, LED-F09 */
static void nothing_is_ever_forgotten(void **state) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);

    (void)state;
    world_open(&world);
    world_fill(&world);
    knows_the_beginning(&world);
    (void)commit(&world, reverse(&world, "r1", 3));
    refuses_it(&world, reverse(&world, "r2", 5), RON_ERR_CONFLICT);
    assert_int_equal(balance_of(world.f, "alice"), 96);
    world_close(&world);
    world_open(&world); /* the Reverse is replayed, and needs the archive for that */
    knows_the_beginning(&world);
    refuses_it(&world, reverse(&world, "r3", 5), RON_ERR_CONFLICT);
    assert_int_equal(balance_of(world.f, "alice"), 96);
    assert_int_equal(balance_of(world.f, "carol"), BATCHES_COUNT);
    world_free(&world);
}

enum { GROUP = 20 }; /* enough for a prevalidator to ask about */
struct group {
    struct ledger_wire_entry wire[GROUP];
    struct ledger_op ops[GROUP];
    char ids[GROUP][TEXT_SIZE];
    uint64_t sift_room[1];
    bool sifts;
};

/* A call with GROUP Mints: those of the batch "g", or but for one place others that are new. */
static struct call *group_call(struct ancient *world, struct group *group, unsigned place,
                               const char *others)
{
    struct call *call = one(world, "g", NULL, "dora", 1, NULL);

    for (unsigned i = 0; i < GROUP; i++) {
        const bool is_old = place == GROUP || i == place;

        (void)snprintf(group->ids[i], TEXT_SIZE, "%s%u", is_old ? "g" : others, i);
        group->wire[i] = call->wire;
        group->wire[i].id = ron_slice_text(group->ids[i]);
    }
    call->request.wire = group->wire;
    call->request.wire_count = GROUP;
    call->request.ops_room = group->ops;
    call->request.sift_room = group->sifts ? group->sift_room : NULL;
    call->request.size = 8192; /* not a small one */
    return call;
}

/* Of a call that was answered: which ids were known, by who asked before the Sequencer. */
static uint64_t sifted(const struct call *call)
{
    assert_non_null(call->request.command.sifted.bits);
    return call->request.command.sifted.bits[0];
}

/* A batch of many entries, as a whole and in part, asked about by a prevalidator or not. */
static void is_known_as_a_whole(bool sifts) RON_BLOCKS
{
    struct ancient world = world_new(300);
    struct group *group = ron_mem_alloc(sizeof(*group));
    struct ledger_reply reply;
    struct call *call;

    assert_non_null(group);
    group->sifts = sifts;
    world.f->options.classes[0] = (struct ledger_slot_class){2 * GROUP, 1 << 16, 4};
    world_open(&world);
    reply = commit(&world, group_call(&world, group, GROUP, ""));
    world_fill(&world);
    for (unsigned again = 0; again < 2; again++) {
        answers_as_before(&world, group_call(&world, group, GROUP, ""), &reply);
        for (unsigned i = 0; i < GROUP; i++) {
            call = group_call(&world, group, i, "x");
            refuses_it(&world, call, RON_ERR_CONFLICT);
            if (sifts)
                assert_int_equal(sifted(call) & ((2u << i) - 1), 1u << i);
            answers_as_before(&world, group_call(&world, group, GROUP, ""), &reply);
        }
        call = group_call(&world, group, GROUP + 1, again == 0 ? "y" : "z");
        (void)commit(&world, call);
        if (sifts)
            assert_int_equal(sifted(call), 0);
        else
            assert_null(call->request.command.sifted.bits);
        assert_int_equal(balance_of(world.f, "dora"), GROUP * (2 + again));
        world_close(&world);
        world_open(&world);
    }
    ron_mem_free(group);
    world_free(&world);
}

static void a_batch_is_known_as_a_whole(void **state) RON_BLOCKS
{
    (void)state;
    is_known_as_a_whole(false);
}

static void a_batch_that_was_asked_about_is_known_as_a_whole(void **state) RON_BLOCKS
{
    (void)state;
    is_known_as_a_whole(true);
}

/* A request that is used again: what the archive said of the ids it had before is nobody's answer.
 */
static void a_request_used_again_is_asked_about_again(void **state) RON_BLOCKS
{
    struct ancient world = world_new(300);
    struct group *group = ron_mem_alloc(sizeof(*group));
    struct ledger_reply reply;
    struct call *call;

    (void)state;
    assert_non_null(group);
    group->sifts = true;
    world.f->options.classes[0] = (struct ledger_slot_class){2 * GROUP, 1 << 16, 4};
    world_open(&world);
    reply = commit(&world, group_call(&world, group, GROUP, ""));
    world_fill(&world);
    call = group_call(&world, group, GROUP + 1, "x");
    (void)commit(&world, call);
    assert_int_equal(sifted(call), 0);
    for (unsigned i = 0; i < GROUP; i++)
        group->ids[i][0] = 'g';
    call->request.sift_room = NULL;
    call->request.outcome = (struct ledger_outcome){.err = RON_ERR_OK};
    rt_atomic_store_u32(&call->answers_count, 0);
    answers_as_before(&world, call, &reply);
    ron_mem_free(group);
    world_free(&world);
}

/* Replay is far in the past of the archive: with windows of less than a segment, the segment that
 * holds what they have forgotten holds the entry under replay as well. */
static void a_replayed_entry_is_not_its_own_past(void **state) RON_BLOCKS
{
    enum { FEW = 2 };
    struct ancient world = world_new(200);
    char id[TEXT_SIZE];

    (void)state;
    world_open(&world);
    world_fill(&world);
    for (unsigned i = 0;
         ledger_engine_durable(world.engine) - ledger_engine_indexed(world.engine) > FEW; i++) {
        assert_true(i < 200);
        (void)snprintf(id, sizeof(id), "more%u", i);
        (void)commit(&world, one(&world, id, NULL, "carol", 1, id));
        world_close(&world);
        world_open(&world); /* which builds the index of what is sealed */
    }
    world_close(&world);
    world.f->options.capacity.entries_window = 2 * FEW;
    world.f->options.capacity.keys_window = 2 * FEW;
    world_open(&world);
    knows_the_beginning(&world);
    world_free(&world);
}

/* A frame in an old segment cannot be read: that is not "not found". */
static void an_archive_that_cannot_answer_freezes(void **state) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);
    struct ledger_health health;
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    (void)state;
    world_open(&world);
    world_fill(&world);
    assert_ok(io_vfs_open(world.vfs, "log/seg-0000000000000001", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, IO_SEGMENT_HEAD_SIZE + 200, &byte, 1, &size, NULL));
    byte ^= 1;
    assert_ok(
        io_file_write(file, IO_SEGMENT_HEAD_SIZE + 200, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
    refuses_it(&world, one(&world, "m0", NULL, "alice", 100, NULL), RON_ERR_SAFE_MODE);
    ledger_read_health(world.f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_WAL_CORRUPT);
    assert_int_equal(balance_of(world.f, "alice"),
                     93); /* reads go on, and nothing was done twice */
    assert_int_equal(
        ledger_submit(world.f->service, &one(&world, "y", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_SAFE_MODE);
    world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_ever_forgotten),
        cmocka_unit_test(a_batch_is_known_as_a_whole),
        cmocka_unit_test(a_batch_that_was_asked_about_is_known_as_a_whole),
        cmocka_unit_test(a_request_used_again_is_asked_about_again),
        cmocka_unit_test(a_replayed_entry_is_not_its_own_past),
        cmocka_unit_test(an_archive_that_cannot_answer_freezes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
