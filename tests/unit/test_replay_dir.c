/*
 * test_replay_dir.c - a directory's log done again. Method: a service writes it, with snapshots and
 * the Anchors of their states, on a disk in memory; the replay must come to the service's head and
 * balances, agree with every anchored state, and notice one that is not the state.
 */
#include "ancient_world.h"

#include "ledger/replay_dir.h"

enum { BATCHES_COUNT = 200 };

static struct ancient anchored_world(void) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);

    world.f->options.snapshot.vfs = world.vfs;
    world.f->options.snapshot.dir = "snapshots";
    world.f->options.snapshot.ms = 0;
    world.f->options.snapshot.entries = 0;
    world_open(&world);
    return world;
}

struct seen {
    uint64_t entries_count, last_seq, told;
    uint64_t bob; /* what the entries say that bob has */
    bool named;   /* every name was there */
    enum ron_err end;
};

static enum ron_err see(void *context, const struct ledger_record *record,
                        const struct ledger_record_names *names, struct ron_errinfo *reterr)
{
    struct seen *seen = context;
    const uint64_t amount = (uint64_t)record->entry.amount.v;

    seen->entries_count++;
    assert_int_equal(record->entry.seq, seen->last_seq + 1);
    assert_true(record->batch_seq_start <= record->entry.seq);
    assert_true(record->entry.seq <= record->batch_seq_end);
    seen->last_seq = record->entry.seq;
    if (record->entry.kind != LEDGER_ANCHOR) {
        seen->named = seen->named && record->debit_name.size > 0 && record->credit_name.size > 0;
        assert_true(ron_slice_equal(names->asset, RON_SLICE("roc")));
    }
    if (ron_slice_equal(record->credit_name, RON_SLICE("bob")))
        seen->bob += amount;
    if (ron_slice_equal(record->debit_name, RON_SLICE("bob")))
        seen->bob -= amount;
    return seen->end == RON_ERR_OK ? RON_ERR_OK : ron_fail(reterr, seen->end, "enough");
}

static void tell(void *context, uint64_t done, uint64_t total)
{
    struct seen *seen = context;

    assert_true(done <= total);
    seen->told = done;
}

static enum ron_err replay(struct ancient *world, struct seen *seen,
                           struct ledger_replay_dir_report *report) RON_BLOCKS
{
    const struct ledger_replay_dir_options options = {
        .vfs = world->vfs, .dir = "", .visit = see, .progress = tell, .context = seen};

    return ledger_replay_dir(&options, report, NULL);
}

static void a_log_is_done_again(void **state) RON_BLOCKS
{
    struct ancient world = anchored_world();
    struct ledger_replay_dir_report report;
    struct seen seen = {.named = true};
    struct ledger_root head;

    (void)state;
    world_fill(&world);
    assert_ok(ledger_service_snapshot(world.f->service, RT_DEADLINE_NEVER, NULL));
    (void)commit(&world, one(&world, "last", "alice", "bob", 1, NULL));
    assert_ok(ledger_service_snapshot(world.f->service, RT_DEADLINE_NEVER, NULL));
    head = ledger_read_head(world.f->service);
    assert_ok(replay(&world, &seen, &report)); /* while it runs */
    assert_int_equal(report.batches_count, head.batch);
    assert_int_equal(report.entries_count, head.seq);
    assert_int_equal(report.tree.size, head.seq);
    assert_memory_equal(report.tree.root.bytes, head.root.bytes, RON_SHA256_SIZE);
    assert_int_equal(report.survey.anchors_count, 2);
    assert_int_equal(report.anchors_checked, 2);
    assert_int_equal(seen.entries_count, head.seq);
    assert_int_equal(seen.told, head.seq);
    assert_true(seen.named);
    assert_int_equal(seen.bob, balance_of(world.f, "bob"));
    assert_true(report.rows_count >= 3);
    world_free(&world);
}

/* The ledger itself says of a state what it is not. */
static void another_state_is_noticed(void **state) RON_BLOCKS
{
    struct ancient world = anchored_world();
    struct ledger_replay_dir_report report;
    struct seen seen = {.named = true};
    struct call *call;

    (void)state;
    world_fill(&world);
    call = one(&world, "state-5", NULL, "x", 1, NULL);
    call->wire = (struct ledger_wire_entry){
        .id = RON_SLICE("state-5"),
        .kind = RON_SLICE("Anchor"),
        .stream = RON_SLICE("state"),
        .ref = RON_SLICE("5"),
        .digest = RON_SLICE(
            "sha256:0000000000000000000000000000000000000000000000000000000000000000")};
    call->request.command.stamp.caller = LEDGER_CALLER_LEDGER;
    (void)commit(&world, call);
    assert_int_equal(replay(&world, &seen, &report), RON_ERR_CHAIN_MISMATCH);
    assert_int_equal(report.anchors_checked, 0);
    assert_int_equal(report.entries_count, 5);
    world_free(&world);
}

static void a_visitor_ends_it(void **state) RON_BLOCKS
{
    struct ancient world = anchored_world();
    struct ledger_replay_dir_report report;
    struct seen seen = {.named = true, .end = RON_ERR_CANCELED};
    struct io_vfs *nothing = NULL;
    struct ledger_survey survey;

    (void)state;
    world_fill(&world);
    assert_int_equal(replay(&world, &seen, &report), RON_ERR_CANCELED);
    assert_int_equal(seen.entries_count, 1);
    world_free(&world);
    assert_ok(io_vfs_memory_new(NULL, &nothing, NULL));
    assert_int_equal(ledger_survey_dir(nothing, "ledger", &survey, NULL), RON_ERR_NOT_FOUND);
    (void)io_vfs_free(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_done_again),
        cmocka_unit_test(another_state_is_noticed),
        cmocka_unit_test(a_visitor_ends_it),
    };

    return cmocka_run_group_tests_name("replay_dir", tests, NULL, NULL);
}
