/*
 * test_service_shape.c - what the ledger's pipeline is made of: its numbers, its channels, its
 * tasks, and that nothing of it depends on the engine. Method: the registry, the supervisor's list
 * and the metrics page of a running service.
 */
#include "service_fixture.h"

#include "io/vfs_memory.h"
#include "ledger/core_id_text.h"
#include "ledger/service_impl.h"
#include "rt/export.h"

enum { ENTRIES_MAX = RT_REGISTRY_MAX, SCRIPT_COUNT = 7 };

/* covers: LED-C22 LED-C26 LED-C27 LED-C28 LED-C29 LED-C44 */
static void defaults_are_those_of_the_design(void **state)
{
    static const struct {
        uint32_t cpus, prevalidators;
    } rows[] = {{1, 2}, {2, 2}, {4, 2}, {5, 2}, {6, 3}, {16, 8}, {1000, LEDGER_PREVALIDATORS_MAX}};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        struct ledger_service_options options = ledger_service_defaults(256, rows[i].cpus);

        assert_int_equal(options.prevalidators_count, rows[i].prevalidators);
        assert_int_equal(options.ingress_max, 2000);
        assert_int_equal(options.preval_max, 2000);
        assert_int_equal(options.commit_max, 1000);
        assert_int_equal(options.classes[0].count, options.commit_max);
        assert_int_equal(options.classes[LEDGER_SLOT_CLASSES_MAX - 1].entries_max,
                         LEDGER_BATCH_ENTRIES_MAX);
        assert_int_equal(options.classes[LEDGER_SLOT_CLASSES_MAX - 1].count, 8);
        assert_int_equal(options.queue_bytes_max, 64 << 20);
        assert_int_equal(options.drain_ms, 3000);
        assert_int_equal(options.roots_max, 1024);
        assert_true(options.window_max <= LEDGER_WINDOW_MAX);
        assert_true(options.linger_us <= 2000);
    }
}

static const struct rt_registry_entry *find(const struct rt_registry_entry *entries, size_t count,
                                            enum rt_kind kind, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == kind && strcmp(entries[i].name, name) == 0)
            return &entries[i];
    fail_msg("no %s %s", rt_kind_name(kind), name);
    return NULL;
}

static void assert_on_page(const char *page, const char *name, const char *queue, uint64_t value)
{
    char line[160];

    (void)snprintf(line, sizeof(line), "%s{role=\"ledger\",queue=\"%s\",q=\"%s\"} %llu\n", name,
                   queue, queue, (unsigned long long)value);
    if (strstr(page, line) == NULL)
        fail_msg("not on the page: %s", line);
}

/* Every channel has a capacity, a policy for when it is full, and figures. covers: LED-C03 */
static void channels_are_bounded_and_say_what_they_do(void **state) RON_BLOCKS
{
    static const char *const queues[] = {"ingress", "preval", "commit"};
    static const char *const policies[] = {"refuse: Busy",
                                           "drop expired, then oldest: PrevalDropOldest",
                                           "refuse, before a seq is used: CommitBackpressure"};
    static struct rt_registry_entry entries[ENTRIES_MAX];
    struct service_fixture *f = fixture_new();
    const uint64_t capacities[] = {f->options.ingress_max, f->options.preval_max,
                                   f->options.commit_max};
    struct rt_exporter *exporter = NULL;
    struct ron_buf page;
    size_t count;

    (void)state;
    fixture_start(f);
    assert_ok(rt_exporter_new(
        &(struct rt_exporter_options){.metrics = f->metrics, .q_role = "ledger"}, &exporter, NULL));
    rt_exporter_collect(exporter);
    ron_buf_init(&page, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &page, NULL));
    ron_buf_put_byte(&page, 0);
    count = rt_registry_list(entries, ENTRIES_MAX);
    for (size_t i = 0; i < RON_ARRAY_COUNT(queues); i++) {
        const struct rt_registry_entry *entry = find(entries, count, RT_KIND_QUEUE, queues[i]);

        assert_string_equal(entry->policy, policies[i]);
        assert_int_equal(entry->capacity, capacities[i]);
        assert_on_page((const char *)page.data, "queue_depth", queues[i], 0);
        assert_on_page((const char *)page.data, "queue_capacity", queues[i], capacities[i]);
    }
    assert_int_equal(find(entries, count, RT_KIND_BUS, "roots")->capacity, f->options.roots_max);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind == RT_KIND_LOCK || strcmp(entries[i].owner, "ledger") != 0)
            continue;
        if (entries[i].kind == RT_KIND_QUEUE || entries[i].kind == RT_KIND_BUS)
            assert_true(entries[i].capacity > 0 && entries[i].policy[0] != '\0');
    }
    ron_buf_fini(&page);
    (void)rt_exporter_free(exporter);
    fixture_stop(f);
    fixture_free(f);
}

/* One sequencer, one committer, whatever the machine; each task is in the supervisor's hand, and
 * gone after the stop. covers: LED-C08 LED-C24 LED-C25 */
static void tasks_are_those_of_the_design(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct rt_task_counters counters[8];
    struct rt_task_info infos[8];
    const struct {
        const char *kind;
        uint64_t spawned_count;
    } expected[] = {
        {"roots publisher", 1}, {"committer", 1}, {"sequencer", 1}, {"prevalidator", 3}};

    (void)state;
    f->options.prevalidators_count = 3;
    fixture_start(f);
    assert_int_equal(rt_supervisor_get_tasks(ledger_service_supervisor(f->service), infos, 8), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(infos[i].state, RT_TASK_RUNNING);
    assert_ok(ledger_service_stop(f->service, NULL, NULL));
    assert_int_equal(rt_supervisor_get_counters(ledger_service_supervisor(f->service), counters, 8),
                     RON_ARRAY_COUNT(expected));
    for (size_t i = 0; i < RON_ARRAY_COUNT(expected); i++) {
        assert_string_equal(counters[i].kind, expected[i].kind);
        assert_int_equal(counters[i].spawned_count, expected[i].spawned_count);
        assert_int_equal(counters[i].completed_count, expected[i].spawned_count);
        assert_int_equal(counters[i].leaked_count, 0);
    }
    assert_int_equal(rt_supervisor_get_tasks(ledger_service_supervisor(f->service), infos, 8), 0);
    f->service = ledger_service_free(f->service);
    fixture_free(f);
}

/* Subscribers get every root in order; who falls behind is told, and finds the rest in the log.
 * covers: LED-C18 LED-C29 */
static void roots_reach_followers_and_readers(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct rt_bus_subscriber *quick = NULL, *slow = NULL;
    struct ledger_root root, roots[8];
    uint64_t lost_count = 0;
    size_t count = 0;
    char id[TEXT_SIZE];

    (void)state;
    f->options.roots_max = 2;
    fixture_start(f);
    assert_ok(ledger_follow_roots(f->service, "quick", &quick, NULL));
    assert_ok(ledger_follow_roots(f->service, "slow", &slow, NULL));
    for (uint64_t i = 1; i <= 5; i++) {
        struct call *call;

        (void)snprintf(id, sizeof(id), "m%d", (int)i);
        call = call_new(f, id, NULL, "alice", 1, NULL);
        accepts(f, call);
        assert_ok(rt_bus_recv(quick, RT_DEADLINE_NEVER, &root, &lost_count, NULL));
        assert_int_equal(lost_count, 0);
        assert_int_equal(root.seq, i);
        assert_int_equal(root.commit_ms, call->request.outcome.reply.commit_ms);
        assert_memory_equal(&root.root, &call->request.outcome.reply.root, sizeof(root.root));
    }
    assert_ok(rt_bus_recv(slow, RT_DEADLINE_NEVER, &root, &lost_count, NULL));
    assert_int_equal(lost_count, 3);
    assert_int_equal(root.seq, 4);
    assert_ok(ledger_read_roots(f->service, 0, roots, 8, &count, NULL));
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(roots[i].seq, i + 1);
    assert_memory_equal(&roots[3], &root, sizeof(root));
    assert_ok(ledger_read_roots(f->service, 4, roots, 8, &count, NULL)); /* from where it was */
    assert_int_equal(count, 1);
    assert_int_equal(roots[0].seq, 5);
    (void)rt_bus_unsubscribe(slow);
    (void)rt_bus_unsubscribe(quick);
    fixture_stop(f);
    fixture_free(f);
}

/* ---- Frames, small ones and large ones ---- */

enum { LARGE = 2400 };
struct batch {
    struct ledger_wire_entry wire[LARGE];
    struct ledger_op ops[LARGE];
    struct ron_sha256 hashes[LARGE];
    char ids[LARGE][TEXT_SIZE];
};

static struct call *batch_call(struct service_fixture *f, struct batch *batch, uint32_t count)
{
    struct call *call = call_new(f, "b", NULL, "alice", 1, NULL);

    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(batch->ids[i], TEXT_SIZE, "entry-%u", i);
        batch->wire[i] = call->wire;
        batch->wire[i].id = ron_slice_text(batch->ids[i]);
    }
    call->request.wire = batch->wire;
    call->request.wire_count = count;
    call->request.ops_room = batch->ops;
    return call;
}

/* The frame says what was asked for, under the root that was answered. */
static void assert_frame(struct batch *batch, struct ron_slice bytes, uint32_t count,
                         const struct ron_sha256 *root)
{
    struct ron_merkle_frontier frontier;
    struct ledger_frame frame;
    struct ron_sha256 made;
    size_t at = 0;

    assert_ok(ledger_frame_decode(bytes, &frame, NULL));
    assert_int_equal(frame.entries_count, count);
    assert_memory_equal(&frame.root, root, sizeof(*root));
    for (uint32_t i = 0; i < count; i++) {
        const struct ron_slice text = ledger_id_text_at(frame.texts.data + at);

        assert_int_equal(text.size, strlen(batch->ids[i]));
        assert_memory_equal(text.data, batch->ids[i], text.size);
        at += ledger_id_text_stored(frame.texts.data + at);
    }
    assert_int_equal(at, frame.texts.size);
    ledger_leaves_hash(
        &(struct ledger_leaves){frame.entries.data, frame.ext_sizes.data, frame.ext.data, count},
        batch->hashes);
    ron_merkle_frontier_init(&frontier);
    ron_merkle_frontier_append(&frontier, batch->hashes, count);
    made = ron_merkle_frontier_root(&frontier);
    assert_memory_equal(&made, root, sizeof(made));
}

/* Beyond a size a frame is appended from where its parts lie. */
static void frames_are_whole_whatever_their_size(void **state) RON_BLOCKS
{
    static const uint32_t counts[] = {1, 17, 400, LARGE};
    struct batch *batch = ron_mem_alloc(sizeof(*batch));

    (void)state;
    assert_non_null(batch);
    for (size_t i = 0; i < RON_ARRAY_COUNT(counts); i++) {
        struct service_fixture *f = fixture_new();
        struct ron_buf frame;
        struct call *call;

        f->options.classes[0] = (struct ledger_slot_class){LARGE + 2, 1 << 16, 2};
        f->options.capacity.entries_window = 2 * LARGE;
        fixture_start(f);
        call = batch_call(f, batch, counts[i]);
        accepts(f, call);
        ron_buf_init(&frame, 1 << 20);
        assert_ok(ledger_engine_read(f->options.engine, 1, &frame, NULL));
        assert_true((frame.size >= COMMIT_FRAME_SIZE) == (counts[i] == LARGE));
        assert_frame(batch, ron_buf_slice(&frame), counts[i], &call->request.outcome.reply.root);
        ron_buf_fini(&frame);
        fixture_stop(f);
        fixture_free(f);
    }
    (void)ron_mem_free(batch);
}

/* ---- The same on both engines ---- */

struct seen {
    struct ledger_outcome outcomes[SCRIPT_COUNT];
    uint64_t alice, bob;
    char shape[4096]; /* the role's objects, a line each */
};

static uint64_t last_birth(void)
{
    static struct rt_registry_entry entries[ENTRIES_MAX];
    const size_t count = rt_registry_list(entries, ENTRIES_MAX);
    uint64_t birth = 0;

    for (size_t i = 0; i < count; i++)
        birth = entries[i].birth > birth ? entries[i].birth : birth;
    return birth;
}

/* What was born after `birth`: not the engine's own. */
static void describe(uint64_t birth, char *text, size_t size)
{
    static struct rt_registry_entry entries[ENTRIES_MAX];
    const size_t count = rt_registry_list(entries, ENTRIES_MAX);
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (entries[i].birth <= birth)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s %s %s %llu\n",
                                 rt_kind_name(entries[i].kind), entries[i].name, entries[i].policy,
                                 (unsigned long long)entries[i].capacity);
        assert_true(used < size);
    }
}

static void play(struct service_fixture *f, struct seen *ret_seen) RON_BLOCKS
{
    struct call *calls[SCRIPT_COUNT] = {
        call_new(f, "m1", NULL, "alice", 100, "k1"),   call_new(f, "t1", "alice", "bob", 40, NULL),
        call_new(f, "t2", "bob", "alice", 41, NULL),   call_new(f, "bad id!", NULL, "bob", 1, NULL),
        call_new(f, "m1", NULL, "alice", 100, "k1"),   call_new(f, "m3", NULL, "alice", 7, "k1"),
        call_new(f, "t3", "alice", "bob", 60, "k-t3"),
    };

    const uint64_t birth = last_birth();

    calls[5]->request.command.fingerprint.bytes[0] = 1;
    fixture_start(f);
    describe(birth, ret_seen->shape, sizeof(ret_seen->shape));
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        ret_seen->outcomes[i] = *ask(f, calls[i]);
    ret_seen->alice = balance_of(f, "alice");
    ret_seen->bob = balance_of(f, "bob");
    fixture_stop(f);
}

/* covers: LED-C12 */
static void engines_differ_in_the_sink_only(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_engine_file_options file = {.dir = "log",
                                              .segment_bytes = 1 << 20,
                                              .ahead_bytes = 1 << 16,
                                              .group_bytes = 1 << 16,
                                              .record_bytes_max = 1 << 14};
    struct ledger_engine *engine = NULL;
    static struct seen memory, disk;

    (void)state;
    play(f, &memory);
    assert_ok(io_vfs_memory_new(NULL, &file.vfs, NULL));
    assert_ok(ledger_engine_file_open(&file, &engine, NULL));
    f->options.engine = engine;
    play(f, &disk);
    (void)ledger_engine_file_free(engine);
    assert_string_equal(memory.shape, disk.shape);
    assert_non_null(strstr(memory.shape, "committer"));
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        const struct ledger_outcome *a = &memory.outcomes[i], *b = &disk.outcomes[i];

        assert_int_equal(a->err, b->err);
        assert_int_equal(a->repeated, b->repeated);
        assert_int_equal(a->reply.seq_start, b->reply.seq_start);
        assert_int_equal(a->reply.seq_end, b->reply.seq_end);
        assert_int_equal(a->reply.batch, b->reply.batch);
    }
    assert_int_equal(memory.outcomes[2].err, RON_ERR_INSUFFICIENT_FUNDS);
    assert_int_equal(memory.outcomes[5].err, RON_ERR_IDEMPOTENCY_CONFLICT);
    assert_int_equal(memory.alice, 0);
    assert_int_equal(disk.alice, 0);
    assert_int_equal(memory.bob, 100);
    assert_int_equal(disk.bob, 100);
    (void)io_vfs_free(file.vfs);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_design),
        cmocka_unit_test(channels_are_bounded_and_say_what_they_do),
        cmocka_unit_test(tasks_are_those_of_the_design),
        cmocka_unit_test(roots_reach_followers_and_readers),
        cmocka_unit_test(frames_are_whole_whatever_their_size),
        cmocka_unit_test(engines_differ_in_the_sink_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
