/*
 * test_service_snapshot.c - the ledger's snapshots on a disk in memory: taken while it runs, found
 * again, passed over when they are not to be trusted; and the state that a start with one comes to,
 * which is that of a start without.
 */
#include "ancient_world.h"

#include "io/snapshot_file.h"
#include "ledger/service_impl.h"
#include "ledger/state_rows.h"

enum { BATCHES_COUNT = 300 };

static struct ancient snapshot_world(void) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);

    world.f->options.snapshot.vfs = world.vfs;
    world.f->options.snapshot.dir = "snapshots";
    world.f->options.snapshot.ms = 0;
    world.f->options.snapshot.entries = 0;
    world.f->options.roots_max = 4;
    world_open(&world);
    return world;
}

static struct ledger_health health_of(struct ancient *world)
{
    struct ledger_health health;

    ledger_read_health(world->f->service, &health);
    return health;
}

static enum ron_err append_bytes(void *context, struct ron_slice bytes, struct ron_errinfo *reterr)
{
    return ron_buf_append(context, bytes.data, bytes.size, reterr);
}

/* Everything the state is, windows apart; and its invariants hold. The service stands still. */
static struct ron_b3 state_of(struct ancient *world)
{
    struct ron_buf buf;
    struct ron_b3 hash;

    ron_buf_init(&buf, 1 << 24);
    assert_null(ledger_core_check(world->f->service->core));
    assert_ok(ledger_snapshot_write(world->f->service->core, append_bytes, &buf, NULL));
    hash = ron_b3(buf.data, buf.size);
    ron_buf_fini(&buf);
    return hash;
}

static void take_one(struct ancient *world) RON_BLOCKS
{
    assert_ok(ledger_service_snapshot(world->f->service, RT_DEADLINE_NEVER, NULL));
}

static void more(struct ancient *world, const char *prefix, unsigned count) RON_BLOCKS
{
    char id[TEXT_SIZE];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "%s%u", prefix, i);
        (void)commit(world, one(world, id, NULL, "dave", 1, id));
    }
}

/* The newest entry is the Anchor of the state root at the cut. */
static void check_anchor(struct ancient *world, uint64_t seq) RON_BLOCKS
{
    const struct ledger_root head = ledger_read_head(world->f->service);
    struct ledger_frame frame;
    struct ledger_entry entry;
    struct ron_buf buf;
    char ref[24];

    ron_buf_init(&buf, 1 << 16);
    assert_int_equal(head.seq, seq + 1);
    assert_ok(ledger_read_batch(world->f->service, head.batch, &buf, NULL));
    assert_ok(ledger_frame_decode(ron_slice_of(buf.data, buf.size), &frame, NULL));
    memcpy(&entry, frame.entries.data, sizeof(entry));
    (void)snprintf(ref, sizeof(ref), "%llu", (unsigned long long)seq);
    assert_int_equal(entry.kind, LEDGER_ANCHOR);
    assert_int_equal(entry.flags & LEDGER_FLAG_SHA256, LEDGER_FLAG_SHA256);
    assert_int_equal(frame.stamp.caller, LEDGER_CALLER_LEDGER);
    assert_int_equal(frame.ext.size, 3 + sizeof("state") + strlen(ref));
    assert_memory_equal(frame.ext.data + 3, "state", sizeof("state"));
    assert_memory_equal(frame.ext.data + 3 + sizeof("state"), ref, strlen(ref));
    ron_buf_fini(&buf);
}

/* Whoever answers has the processors first. */
static void the_snapshotter_steps_back(void **state) RON_BLOCKS
{
    struct ancient world = snapshot_world();

    (void)state;
    world_fill(&world);
    take_one(&world);
    assert_true(support_nice_of("snapshotter") >= 10);
    assert_true(support_nice_of("sequencer") < support_nice_of("snapshotter"));
    assert_true(support_nice_of("committer") < support_nice_of("snapshotter"));
    world_free(&world);
}

/* covers: LED-F25 */
static void a_start_with_a_snapshot_is_a_start_without(void **state) RON_BLOCKS
{
    struct ancient world = snapshot_world();
    struct ron_b3 before, with;
    struct ledger_root roots[8];
    size_t count = 0;

    (void)state;
    world_fill(&world);
    take_one(&world);
    assert_int_equal(health_of(&world).snapshots.seq, BATCHES_COUNT + 2);
    check_anchor(&world, BATCHES_COUNT + 2);
    (void)commit(&world, reverse(&world, "r1", 3)); /* of what only the archive knows */
    more(&world, "p", 10);
    before = state_of(&world);
    world_close(&world);

    world_open(&world);
    assert_int_equal(health_of(&world).snapshots.batch, BATCHES_COUNT + 2);
    assert_int_equal(health_of(&world).replayed_batches, 12);
    with = state_of(&world);
    assert_memory_equal(&with, &before, sizeof(with));
    knows_the_beginning(&world);
    refuses_it(&world, reverse(&world, "r2", 5), RON_ERR_CONFLICT);
    assert_ok(ledger_read_roots(world.f->service, BATCHES_COUNT, roots, 8, &count, NULL));
    assert_int_equal(count, 8);
    assert_int_equal(roots[0].seq, BATCHES_COUNT + 1);
    world_close(&world);

    world.f->options.snapshot.vfs = NULL;
    world_open(&world);
    assert_int_equal(health_of(&world).replayed_batches, BATCHES_COUNT + 14);
    with = state_of(&world);
    assert_memory_equal(&with, &before, sizeof(with));
    world_free(&world);
}

/* With an archive a snapshot has the newest batch and no more of the windows, and the state is all
 * there. */
static void the_state_is_written_without_the_windows(void **state) RON_BLOCKS
{
    struct ancient world = world_new(40);
    struct ron_b3 before, with;

    (void)state;
    world.f->options.snapshot.vfs = world.vfs;
    world.f->options.snapshot.dir = "snapshots";
    world.f->options.snapshot.ms = 0;
    world.f->options.snapshot.entries = 0;
    world.f->options.capacity.accounts_max = 1 << 17;
    world.f->options.capacity.rows_max = 1 << 17;
    world.f->options.capacity.entries_window = 1 << 15;
    world.f->options.capacity.keys_window = 1 << 15;
    world.f->options.capacity.batches_window = 1 << 15;
    world_open(&world);
    world_fill(&world);
    take_one(&world);
    more(&world, "c", 3);
    before = state_of(&world);
    world_close(&world);
    world_open(&world);
    assert_int_equal(health_of(&world).snapshots.batch, 42);
    assert_int_equal(health_of(&world).replayed_batches, 4);
    assert_int_equal(health_of(&world).start.replayed_entries, 4);
    with = state_of(&world);
    assert_memory_equal(&with, &before, sizeof(with));
    world_free(&world);
}

static void pay(struct ancient *world, const char *id, unsigned account, uint64_t amount) RON_BLOCKS
{
    char name[TEXT_SIZE];

    (void)snprintf(name, sizeof(name), "u%u", account);
    (void)commit(world, one(world, id, NULL, name, amount, NULL));
}

/* One chunk a turn, and payments to accounts all over the tables meanwhile: what is written is the
 * state of the cut, so a start from it that replays the rest ends where the service was. */
static void payments_go_on_while_the_state_is_copied(void **state) RON_BLOCKS
{
    enum { ACCOUNTS = 400, ROUNDS = 3 };
    struct ancient world = world_new(0);
    struct ron_b3 before, with;
    char id[TEXT_SIZE];
    unsigned number = 0;

    (void)state;
    world.f->options.snapshot = (struct ledger_snapshot_options){
        .vfs = world.vfs, .dir = "s", .write_ms_max = 60000, .copy_max = 1};
    world.f->options.capacity.accounts_max = 2 * ACCOUNTS;
    world.f->options.capacity.rows_max = 2 * ACCOUNTS;
    world.f->options.capacity.names_size_max = 64 * ACCOUNTS;
    world_open(&world);
    for (; number < ACCOUNTS; number++) {
        (void)snprintf(id, sizeof(id), "p%u", number);
        pay(&world, id, number, 1);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t head_seq = ledger_read_head(world.f->service).seq;
        uint64_t failed_count = UINT64_MAX;

        do {
            /* Its Anchor may find the window full of what is not indexed yet: Busy, once more. */
            if (health_of(&world).snapshots.failed_count != failed_count) {
                failed_count = health_of(&world).snapshots.failed_count;
                assert_int_equal(
                    ledger_service_snapshot(world.f->service, rt_deadline_after_ms(0), NULL),
                    RON_ERR_TIMEOUT);
            }
            (void)snprintf(id, sizeof(id), "p%u", number);
            pay(&world, id, number * 37 % (ACCOUNTS + 10 * round), 1 + number);
            number++;
        } while (health_of(&world).snapshots.taken_count == 0);
        assert_true(health_of(&world).snapshots.seq >= head_seq);
        before = state_of(&world);
        world_close(&world);
        world_open(&world);
        assert_int_equal(health_of(&world).snapshots.passed_over_count, 0);
        with = state_of(&world);
        assert_memory_equal(&with, &before, sizeof(with));
    }
    world_free(&world);
}

/* A ledger of more than a MiB of accounts and rows: the Snapshotter has the memory ready before the
 * cut, and the snapshot is whole all the same. */
static void a_large_state_has_its_memory_first(void **state) RON_BLOCKS
{
    enum { ACCOUNTS = 7500 };
    struct ancient world = world_new(0);
    struct ron_b3 before, with;
    char id[TEXT_SIZE];

    (void)state;
    world.f->options.snapshot = (struct ledger_snapshot_options){
        .vfs = world.vfs, .dir = "s", .write_ms_max = 60000, .copy_max = 64};
    world.f->options.capacity.accounts_max = ACCOUNTS + 16;
    world.f->options.capacity.rows_max = ACCOUNTS + 16;
    world.f->options.capacity.names_size_max = 64 * ACCOUNTS;
    world_open(&world);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        (void)snprintf(id, sizeof(id), "p%u", i);
        pay(&world, id, i, 1);
    }
    take_one(&world);
    assert_true(world.f->service->snapshots.room.counts[0] >= ACCOUNTS); /* it was asked for */
    assert_int_equal(health_of(&world).snapshots.taken_count, 1);
    pay(&world, "last", 1, 1);
    take_one(&world); /* into the memory of the first */
    assert_int_equal(health_of(&world).snapshots.taken_count, 2);
    before = state_of(&world);
    world_close(&world);
    world_open(&world);
    assert_int_equal(health_of(&world).snapshots.passed_over_count, 0);
    assert_int_equal(health_of(&world).replayed_batches, 1);
    with = state_of(&world);
    assert_memory_equal(&with, &before, sizeof(with));
    world_free(&world);
}

/* Between the last index and the cut lie ids that only the log's last segment has. */
static void the_windows_come_back_from_the_log(void **state) RON_BLOCKS
{
    struct ancient world = snapshot_world();
    char id[TEXT_SIZE];

    (void)state;
    world_fill(&world);
    more(&world, "w", 20);
    take_one(&world);
    world_close(&world);
    world_open(&world);
    assert_int_equal(health_of(&world).replayed_batches, 1);
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "w%u", i);
        refuses_it(&world, one(&world, id, NULL, "dave", 2, NULL), RON_ERR_CONFLICT);
        assert_true(
            ask_patiently(&world, one(&world, id, NULL, "dave", 1, id))->request.outcome.repeated);
    }
    world_free(&world);
}

static void turn_a_bit(struct ancient *world, const char *path, uint64_t offset) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    assert_ok(io_vfs_open(world->vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    byte ^= 1;
    assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
}

static void snapshot_path(uint64_t batch, char path[64])
{
    (void)snprintf(path, 64, "snapshots/snap-%016llx", (unsigned long long)batch);
}

/* A file that says it is a snapshot of ours, at this position. */
static void forge(struct ancient *world, uint64_t position, struct ron_slice content) RON_BLOCKS
{
    const struct io_snapshot_cut cut = {LEDGER_SNAPSHOT_KIND, LEDGER_SNAPSHOT_VERSION, position,
                                        position};
    struct io_snapshot_writer *writer = NULL;
    struct io_snapshot_info info;

    assert_ok(io_snapshot_begin(world->vfs, "snapshots", &cut, &writer, NULL));
    assert_ok(io_snapshot_put(writer, content, NULL));
    assert_ok(io_snapshot_commit(writer, &info, NULL));
}

static void what_is_not_to_be_trusted_is_passed_over(void **state) RON_BLOCKS
{
    struct ancient world = snapshot_world();
    struct ledger_health health;
    struct ron_buf whole;
    struct ron_b3 before, after;
    char path[64];

    (void)state;
    world_fill(&world);
    take_one(&world);
    more(&world, "p", 3);
    take_one(&world);
    more(&world, "q", 3);
    ron_buf_init(&whole, 1 << 24);
    assert_ok(ledger_snapshot_write(world.f->service->core, append_bytes, &whole, NULL));
    before = state_of(&world);
    world_close(&world);

    snapshot_path(BATCHES_COUNT + 6, path); /* the newer one is damaged: the older one serves */
    turn_a_bit(&world, path, 5000);
    world_open(&world);
    health = health_of(&world);
    assert_int_equal(health.snapshots.passed_over_count, 1);
    assert_int_equal(health.snapshots.batch, BATCHES_COUNT + 2);
    after = state_of(&world);
    assert_memory_equal(&after, &before, sizeof(after));
    world_close(&world);

    forge(&world, BATCHES_COUNT + 500, ron_slice_of(whole.data, whole.size)); /* ahead of the log */
    forge(&world, BATCHES_COUNT + 9, ron_slice_of(whole.data, whole.size)); /* not of that batch */
    forge(&world, BATCHES_COUNT + 8, RON_SLICE("nothing of the kind"));
    snapshot_path(BATCHES_COUNT + 2, path);
    turn_a_bit(&world, path, 5000);
    world_open(&world);
    health = health_of(&world);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    assert_int_equal(health.snapshots.ahead_count, 1);
    assert_int_equal(health.snapshots.passed_over_count, 4);
    assert_int_equal(health.snapshots.batch, 0);
    assert_int_equal(health.replayed_batches, BATCHES_COUNT + 10);
    after = state_of(&world);
    assert_memory_equal(&after, &before, sizeof(after));
    ron_buf_fini(&whole);
    world_free(&world);
}

/* Another ledger's snapshot, whole and at a batch that this log has, too. */
static void a_snapshot_of_another_log_is_not_used(void **state) RON_BLOCKS
{
    struct ancient other = snapshot_world();
    struct ancient world = {0};
    struct ron_buf whole;

    (void)state;
    more(&other, "other", 5);
    ron_buf_init(&whole, 1 << 24);
    assert_ok(ledger_snapshot_write(other.f->service->core, append_bytes, &whole, NULL));
    world_free(&other);
    world = snapshot_world();
    more(&world, "mine", 6);
    take_one(&world);
    world_close(&world);
    turn_a_bit(&world, "snapshots/snap-0000000000000006", 5000);
    forge(&world, 5, ron_slice_of(whole.data, whole.size));
    world_open(&world);
    assert_int_equal(health_of(&world).snapshots.passed_over_count, 2);
    assert_int_equal(health_of(&world).replayed_batches, 7);
    assert_int_equal(balance_of(world.f, "dave"), 6);
    ron_buf_fini(&whole);
    world_free(&world);
}

/* Nobody asks: after so many entries, but not twice within the pause. */
static void enough_entries_bring_one(void **state) RON_BLOCKS
{
    struct ancient world = world_new(0);

    (void)state;
    world.f->options.snapshot = (struct ledger_snapshot_options){
        .vfs = world.vfs, .dir = "s", .entries = 5, .write_ms_max = 60000, .copy_max = 1};
    world_open(&world);
    more(&world, "a", 4);
    assert_int_equal(health_of(&world).snapshots.taken_count, 0);
    more(&world, "b", 1);
    until(health_of(&world).snapshots.taken_count == 1);
    more(&world, "c", 5);
    until(health_of(&world).snapshots.taken_count == 2);
    assert_int_equal(ledger_service_snapshot(world.f->service, rt_deadline_after_ms(0), NULL),
                     RON_ERR_TIMEOUT);
    until(health_of(&world).snapshots.taken_count == 3);
    world_free(&world);
}

static enum ron_err refuse(void *context, uint64_t seq, struct ron_errinfo *reterr)
{
    *(uint64_t *)context = seq;
    return ron_fail(reterr, RON_ERR_IO, "the tree is not durable");
}

/* What is derived beside it must be durable first: else the snapshot gets no name. */
static void no_name_before_the_tree_is_durable(void **state) RON_BLOCKS
{
    struct ancient world = world_new(0);
    uint64_t asked_seq = 0;

    (void)state;
    world.f->options.snapshot = (struct ledger_snapshot_options){.vfs = world.vfs,
                                                                 .dir = "s",
                                                                 .write_ms_max = 60000,
                                                                 .copy_max = 1,
                                                                 .before = refuse,
                                                                 .before_context = &asked_seq};
    world_open(&world);
    assert_int_equal(ledger_service_snapshot(world.f->service, RT_DEADLINE_NEVER, NULL),
                     RON_ERR_NOT_FOUND);
    more(&world, "a", 3);
    assert_int_equal(ledger_service_snapshot(world.f->service, RT_DEADLINE_NEVER, NULL),
                     RON_ERR_IO);
    assert_int_equal(asked_seq, 3);
    assert_int_equal(health_of(&world).snapshots.failed_count, 1);
    assert_int_equal(ledger_read_head(world.f->service).seq, 3); /* and no Anchor */
    world_close(&world);
    world_open(&world);
    assert_int_equal(health_of(&world).snapshots.batch, 0);
    world_free(&world);
}

/* A client may take any id that it can write: none of them is that of an Anchor to come. */
static void no_client_can_take_the_id_of_an_anchor(void **state) RON_BLOCKS
{
    static const char marks[] = {'-', ':', '.', '/'};
    struct ancient world = world_new(4);
    struct ledger_rows *rows = NULL;
    char id[TEXT_SIZE];

    (void)state;
    world.f->options.snapshot = (struct ledger_snapshot_options){.vfs = world.vfs,
                                                                 .dir = "snapshots",
                                                                 .rows_dir = "state",
                                                                 .write_ms_max = 10000,
                                                                 .copy_max = 1};
    world_open(&world);
    world_fill(&world);
    for (size_t i = 0; i < RON_ARRAY_COUNT(marks); i++) {
        const uint64_t seq = ledger_read_head(world.f->service).seq + 1;
        const bool written = marks[i] != '/';

        (void)snprintf(id, sizeof(id), "state%c%llu", marks[i], (unsigned long long)seq);
        if (written)
            (void)commit(&world, one(&world, id, NULL, "dave", 1, NULL));
        else
            assert_false(ledger_is_id(ron_slice_text(id)));
        take_one(&world);
        check_anchor(&world, written ? seq : seq - 1);
    }
    assert_int_equal(health_of(&world).snapshots.failed_count, 0);
    assert_ok(ledger_service_rows(world.f->service, UINT64_MAX, &rows, NULL));
    assert_null(ledger_rows_close(rows));
    world_close(&world);
    world.f->options.snapshot.vfs = NULL;
    world_open(&world); /* and a start reads them */
    assert_int_equal(health_of(&world).replayed_batches, 6 + 7);
    assert_null(ledger_core_check(world.f->service->core));
    world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_with_a_snapshot_is_a_start_without),
        cmocka_unit_test(the_snapshotter_steps_back),
        cmocka_unit_test(the_state_is_written_without_the_windows),
        cmocka_unit_test(payments_go_on_while_the_state_is_copied),
        cmocka_unit_test(a_large_state_has_its_memory_first),
        cmocka_unit_test(the_windows_come_back_from_the_log),
        cmocka_unit_test(what_is_not_to_be_trusted_is_passed_over),
        cmocka_unit_test(a_snapshot_of_another_log_is_not_used),
        cmocka_unit_test(enough_entries_bring_one),
        cmocka_unit_test(no_name_before_the_tree_is_durable),
        cmocka_unit_test(no_client_can_take_the_id_of_an_anchor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
