/*
 * test_service_pressure.c - the ledger's pipeline when a stage stands still: what waits where, who
 * is refused or pushed out, in which order the rest is sequenced. Method: a request whose answer
 * holds the Sequencer's thread until the test lets go; the fixture's gate holds the Committer.
 * Under TSan nothing passes that stages share by other means than atomics, queues and watches.
 *
 * covers: LED-C31
 */
#include "service_fixture.h"

#include <pthread.h>

#include "ledger/service_impl.h"
#include "rt/clock.h"
#include "rt/export.h"

enum { THREADS = 4, DEBITS = 40, FUNDS = 17 };

/* Answered by the Sequencer, which then waits. */
struct stopper {
    struct call *call;
    struct rt_watch *open; /* bool */
    struct rt_atomic_u32 reached;
};

static void stopper_done(struct ledger_request *request, void *context) RON_BLOCKS
{
    struct stopper *stopper = context;
    bool open = false;
    uint64_t version = rt_watch_get(stopper->open, &open);

    assert_int_equal(request->outcome.err, RON_ERR_INSUFFICIENT_FUNDS);
    rt_atomic_store_u32(&stopper->reached, 1);
    while (!open)
        assert_ok(rt_watch_wait(stopper->open, version, RT_DEADLINE_NEVER, &open, &version, NULL));
}

static void stopper_set(struct stopper *stopper, bool open)
{
    rt_watch_set(stopper->open, &open);
}

/* Until the Sequencer stands still. */
static void stop_sequencer(struct service_fixture *f, struct stopper *ret_stopper) RON_BLOCKS
{
    *ret_stopper = (struct stopper){.open = fixture_watch("stopper")};
    stopper_set(ret_stopper, false);
    ret_stopper->call = call_new(f, "stop", "nobody", "bob", 1, NULL);
    ret_stopper->call->request.done = stopper_done;
    ret_stopper->call->request.context = ret_stopper;
    submit(f, ret_stopper->call);
    until(rt_atomic_load_u32(&ret_stopper->reached) != 0);
}

static uint32_t depth_of(struct rt_queue *queue)
{
    struct rt_queue_stats stats;

    rt_queue_get_stats(queue, &stats);
    return stats.depth;
}

static void make_room(struct service_fixture *f, uint32_t commits_max)
{
    f->options.commit_max = commits_max;
    f->options.classes[0].count = commits_max;
}

static void assert_line(struct service_fixture *f, const char *line)
{
    struct rt_exporter *exporter = NULL;
    struct ron_buf page;

    assert_ok(rt_exporter_new(
        &(struct rt_exporter_options){.metrics = f->metrics, .q_role = "ledger"}, &exporter, NULL));
    rt_exporter_collect(exporter);
    ron_buf_init(&page, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &page, NULL));
    ron_buf_put_byte(&page, 0);
    if (strstr((const char *)page.data, line) == NULL)
        fail_msg("not on the page: %s", line);
    ron_buf_fini(&page);
    (void)rt_exporter_free(exporter);
}

/* Ingress, prevalidators, sequencer, committer, roots: each stage holds what the next does not
 * take. covers: LED-C16 LED-C17 LED-C25 */
static void requests_pass_the_stages_in_order(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct stopper stopper;
    char id[TEXT_SIZE];

    (void)state;
    f->options.prevalidators_count = 1;
    fixture_start(f);
    stop_sequencer(f, &stopper);
    gate_set(f->gate, false);
    checks_set(f, false);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    until(rt_atomic_load_u32(&f->checks_count) == 2); /* the stopper's, and one that waits */
    assert_int_equal(depth_of(f->service->ingress), 3);
    assert_int_equal(depth_of(f->service->preval), 0);
    checks_set(f, true);
    until(depth_of(f->service->preval) == 4);
    assert_int_equal(depth_of(f->service->ingress), 0);
    assert_int_equal(slots_in_flight(&f->service->slots), 0);
    stopper_set(&stopper, true);
    until(slots_in_flight(&f->service->slots) == 4);
    assert_int_equal(depth_of(f->service->preval), 0);
    assert_int_equal(ledger_read_head(f->service).seq, 0);
    assert_int_equal(depth_of(f->answered), 0);
    gate_set(f->gate, true);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(next_answer(f)->request.outcome.reply.seq_start, i);
    assert_int_equal(ledger_read_head(f->service).seq, 4);
    fixture_stop(f);
    (void)rt_watch_free(stopper.open);
    fixture_free(f);
}

/* What was checked first goes, with a definite answer and before it has a seq.
 * covers: LED-C27 LED-C30 LED-C53 LED-V03 */
static void the_oldest_checked_request_is_evicted(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *calls[8], *late;
    struct stopper stopper;
    char id[TEXT_SIZE];
    uint64_t seqs = 0;

    (void)state;
    f->options.prevalidators_count = 1; /* keeps the order of submission */
    make_room(f, 16);
    fixture_start(f);
    stop_sequencer(f, &stopper);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        calls[i] = submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    until(depth_of(f->service->preval) == 8);
    late = submit(f, call_new(f, "late", NULL, "alice", 1, NULL));
    assert_ptr_equal(next_answer(f), calls[0]);
    assert_int_equal(calls[0]->request.outcome.err, RON_ERR_PREVAL_DROP_OLDEST);
    assert_false(calls[0]->request.outcome.unknown);
    assert_int_equal(ron_err_http(RON_ERR_PREVAL_DROP_OLDEST), 429);
    assert_true(ron_err_retryable(RON_ERR_PREVAL_DROP_OLDEST));
    assert_true(ron_err_retry_after(RON_ERR_PREVAL_DROP_OLDEST));
    assert_int_equal(depth_of(f->service->preval), 8);
    assert_line(f, "drops_total{role=\"ledger\",queue=\"preval\",q=\"preval\"} 1\n");
    assert_line(f, "queue_depth{role=\"ledger\",queue=\"preval\",q=\"preval\"} 8\n");
    stopper_set(&stopper, true);
    for (int i = 0; i < 8; i++) {
        struct call *call = next_answer(f);

        assert_ptr_not_equal(call, calls[0]);
        assert_int_equal(call->request.outcome.err, RON_ERR_OK);
        seqs |= UINT64_C(1) << call->request.outcome.reply.seq_start;
    }
    assert_int_equal(seqs, 0x1fe); /* 1..8: the eviction left no gap */
    assert_int_equal(rt_atomic_load_u32(&late->answers_count), 1);
    assert_int_equal(balance_of(f, "alice"), 8);
    fixture_stop(f);
    (void)rt_watch_free(stopper.open);
    fixture_free(f);
}

/* On the prevalidator, behind its look at the deadline: as if the rest of the way took too long. */
static enum ron_err let_expire(struct ledger_request *request, void *context,
                               struct ron_errinfo *reterr)
{
    (void)context;
    (void)reterr;
    request->deadline.at_ns = 1;
    return RON_ERR_OK;
}

/* Who does not wait any more goes before those who do, however long they have been there.
 * covers: LED-C27 */
static void an_expired_request_is_evicted_first(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *calls[8], *late;
    struct stopper stopper;
    char id[TEXT_SIZE];

    (void)state;
    f->options.prevalidators_count = 1;
    make_room(f, 16);
    fixture_start(f);
    stop_sequencer(f, &stopper);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        calls[i] = call_new(f, id, NULL, "alice", 1, NULL);
        calls[i]->request.prepare = i == 5 ? let_expire : NULL;
        (void)submit(f, calls[i]);
    }
    until(depth_of(f->service->preval) == 8);
    late = submit(f, call_new(f, "late", NULL, "alice", 1, NULL));
    assert_ptr_equal(next_answer(f), calls[5]);
    assert_int_equal(calls[5]->request.outcome.err, RON_ERR_PREVAL_DROP_OLDEST);
    stopper_set(&stopper, true);
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_OK);
    assert_int_equal(rt_atomic_load_u32(&late->answers_count), 1);
    fixture_stop(f);
    (void)rt_watch_free(stopper.open);
    fixture_free(f);
}

/* Whoever was checked first: in one window the source time decides, then the id.
 * covers: LED-C04 LED-C16 LED-F10 */
static void a_window_is_sequenced_by_source_time(void **state) RON_BLOCKS
{
    static const struct {
        const char *id;
        uint64_t after_ms;
        uint64_t seq;
    } rows[] = {{"d", 30, 4}, {"c", 10, 2}, {"a", 20, 3}, {"b", 10, 1}};
    struct service_fixture *f = fixture_new();
    struct call *calls[RON_ARRAY_COUNT(rows)];
    const uint64_t now_ms = rt_utc_ms();
    struct stopper stopper;

    (void)state;
    fixture_start(f);
    stop_sequencer(f, &stopper);
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        calls[i] = call_new(f, rows[i].id, NULL, "alice", 1, NULL);
        calls[i]->wire.has_ts = true;
        calls[i]->wire.ts_ms = now_ms + rows[i].after_ms;
        submit(f, calls[i]);
        until(depth_of(f->service->preval) == i + 1);
    }
    stopper_set(&stopper, true);
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++)
        (void)next_answer(f);
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        assert_int_equal(calls[i]->request.outcome.err, RON_ERR_OK);
        assert_int_equal(calls[i]->request.outcome.reply.seq_start, rows[i].seq);
    }
    fixture_stop(f);
    (void)rt_watch_free(stopper.open);
    fixture_free(f);
}

/* Bodies are bounded together, not only counted: in the queues, and between seq and answer.
 * covers: LED-C07 */
static void memory_is_bounded_in_bytes(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *calls[7];
    char id[TEXT_SIZE];

    (void)state;
    f->options.prevalidators_count = 1;
    f->options.queue_bytes_max = 1000;
    fixture_start(f);
    for (int i = 0; i < 7; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        calls[i] = call_new(f, id, NULL, "alice", 1, NULL);
        calls[i]->request.size = 400;
    }
    checks_set(f, false);
    submit(f, calls[0]);
    until(rt_atomic_load_u32(&f->checks_count) == 1);
    submit(f, calls[1]);
    submit(f, calls[2]);
    assert_int_equal(ledger_submit(f->service, &calls[3]->request, NULL), RON_ERR_BUSY);
    checks_set(f, true);
    for (int i = 0; i < 3; i++) /* the next queue may be full of them, too */
        (void)next_answer(f);
    gate_set(f->gate, false);
    for (uint32_t i = 4; i < 6; i++) {
        submit(f, calls[i]);
        until(slots_in_flight(&f->service->slots) == i - 3);
    }
    assert_int_equal(ask(f, calls[6])->err, RON_ERR_COMMIT_BACKPRESSURE);
    gate_set(f->gate, true);
    for (int i = 4; i < 6; i++)
        assert_ptr_equal(next_answer(f), calls[i]);
    accepts(f, calls[3]); /* what was answered is not charged any more */
    fixture_stop(f);
    fixture_free(f);
}

/* The Committer takes in all that came during a sync and waits once for it. covers: LED-C60 */
static void one_sync_serves_all_that_waited(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    char id[TEXT_SIZE];

    (void)state;
    make_room(f, 16);
    fixture_start(f);
    gate_set(f->gate, false);
    submit(f, call_new(f, "first", NULL, "alice", 1, NULL));
    until(rt_atomic_load_u32(&f->gate->waits_count) == 1);
    for (uint32_t i = 0; i < 12; i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
        until(slots_in_flight(&f->service->slots) == i + 2);
    }
    gate_set(f->gate, true);
    for (uint32_t i = 0; i < 13; i++)
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_OK);
    assert_int_equal(rt_atomic_load_u32(&f->gate->appends_count), 13);
    assert_int_equal(rt_atomic_load_u32(&f->gate->waits_count), 2);
    fixture_stop(f);
    fixture_free(f);
}

/* The Committer's own count of seqs disagrees: nothing is written, writes are frozen, and it is
 * counted. covers: LED-C55 LED-F18 */
static void a_gap_freezes_writes(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    f->service->committer.seq_last++; /* it is idle: as if a batch had been lost */
    assert_int_equal(ask(f, call_new(f, "m2", NULL, "alice", 5, NULL))->err, RON_ERR_SAFE_MODE);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.ready & RT_PLANE_WRITE, 0);
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "m3", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_SAFE_MODE);
    assert_int_equal(rt_atomic_load_u32(&f->gate->appends_count), 1);
    assert_int_equal(ledger_read_head(f->service).seq, 1); /* reads go on */
    assert_int_equal(balance_of(f, "alice"), 5);
    assert_line(f, "seq_gap_detected_total 1\n");
    assert_line(f, "ledger_seq_gap_detected_total 1\n");
    assert_line(f, "ledger_safe_mode 1\n");
    fixture_stop(f);
    assert_false(f->gate->head.clean); /* the next start looks at the log */
    fixture_free(f);
}

/* ---- Many debits, one account ---- */

struct racer {
    struct service_fixture *f;
    struct call *calls[DEBITS / THREADS];
};

static void *race(void *argument)
{
    struct racer *racer = argument;

    for (size_t i = 0; i < RON_ARRAY_COUNT(racer->calls); i++)
        submit(racer->f, racer->calls[i]);
    return NULL;
}

/* Nothing is durable before all are sequenced, so only the pending view knows what is left.
 * covers: LED-V34 */
static void debits_of_one_account_race(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct racer racers[THREADS];
    pthread_t threads[THREADS];
    uint32_t paid_count = 0;
    char id[TEXT_SIZE];

    (void)state;
    f->options.prevalidators_count = 4;
    f->options.ingress_max = DEBITS;
    f->options.preval_max = DEBITS;
    make_room(f, DEBITS);
    fixture_start(f);
    accepts(f, call_new(f, "m", NULL, "alice", FUNDS, NULL));
    gate_set(f->gate, false);
    for (uint32_t i = 0; i < DEBITS; i++) {
        (void)snprintf(id, sizeof(id), "t%u", i);
        racers[i % THREADS].f = f;
        racers[i % THREADS].calls[i / THREADS] = call_new(f, id, "alice", "bob", 1, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < DEBITS - FUNDS; i++)
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_INSUFFICIENT_FUNDS);
    gate_set(f->gate, true);
    for (uint64_t seq = 2; seq < 2 + FUNDS; seq++) {
        struct call *call = next_answer(f);

        assert_int_equal(call->request.outcome.err, RON_ERR_OK);
        assert_int_equal(call->request.outcome.reply.seq_start, seq);
        paid_count++;
    }
    assert_int_equal(paid_count, FUNDS);
    assert_int_equal(balance_of(f, "alice"), 0);
    assert_int_equal(balance_of(f, "bob"), FUNDS);
    fixture_stop(f);
    fixture_free(f);
}

/* Which of three slots a request would get: its number, or 3 for none. */
static unsigned slot_found(struct slots *slots, const struct ledger_request *request)
{
    const struct ledger_slot *slot = slots_find(slots, request);

    return slot == NULL ? 3 : (unsigned)(slot - slots->classes[0].slots);
}

static void slots_come_back_as_they_were_taken(void **state)
{
    const struct ledger_service_options options = {
        .commit_max = 3,
        .queue_bytes_max = 1000,
        .classes = {{4, 2 * LEDGER_EXT_SIZE_MAX, 3}},
    };
    struct ledger_request requests[3] = {{.size = 1}, {.size = 1}, {.size = 1}};
    struct slots slots;
    unsigned taken[3];

    (void)state;
    assert_ok(slots_init(&slots, &options, NULL));
    for (unsigned i = 0; i < 3; i++) {
        taken[i] = slot_found(&slots, &requests[i]);
        slots_take(&slots, &requests[i], &slots.classes[0].slots[taken[i]], i);
    }
    assert_int_equal(taken[0] + taken[1] + taken[2], 0 + 1 + 2);
    assert_int_equal(slot_found(&slots, &requests[0]), 3);
    slots_return(&slots, 0, 1); /* the first: no other can have come back */
    assert_int_equal(slot_found(&slots, &requests[0]), taken[0]);
    slots_take(&slots, &requests[0], &slots.classes[0].slots[taken[0]], 4);
    assert_int_equal(slot_found(&slots, &requests[0]), 3);
    slots_return(&slots, 0, 1);
    slots_return(&slots, 0, 1); /* the newest is in the cache */
    assert_int_equal(slot_found(&slots, &requests[0]), taken[2]);
    slots_take(&slots, &requests[1], &slots.classes[0].slots[taken[2]], 5);
    assert_int_equal(slot_found(&slots, &requests[0]), taken[1]);
    assert_int_equal(slots_in_flight(&slots), 2);
    slots_fini(&slots);
}

/* An engine without room, until the test makes some. */
static struct rt_watch *room; /* bool */
static struct rt_atomic_u32 roomless_count;

static enum ron_err append_with_room(struct ledger_engine *engine, const struct ron_slice *parts,
                                     size_t parts_count, struct rt_deadline deadline,
                                     uint64_t *ret_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;
    bool open = false;
    uint64_t version = rt_watch_get(room, &open);

    if (!open)
        (void)rt_atomic_add_u32(&roomless_count, 1);
    while (!open && err == RON_ERR_OK)
        err = rt_watch_wait(room, version, deadline, &open, &version, reterr);
    return err == RON_ERR_OK ? gate_append(engine, parts, parts_count, deadline, ret_number, reterr)
                             : err;
}

/* The append of the next batch waits for room in the log: what is durable meanwhile is answered. */
static void who_is_durable_does_not_wait_for_room(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_engine_ops ops = gate_ops;
    const bool none = false, some = true;
    struct call *first, *second;

    (void)state;
    room = fixture_watch("room");
    ops.append = append_with_room;
    f->gate->head.ops = &ops;
    fixture_start(f);
    accepts(f, call_new(f, "m", NULL, "alice", 10, NULL));
    gate_set(f->gate, false);
    rt_atomic_store_u32(&f->gate->waits_count, 0);
    first = submit(f, call_new(f, "a", NULL, "alice", 10, NULL));
    until(rt_atomic_load_u32(&f->gate->waits_count) > 0); /* for its sync */
    rt_watch_set(room, &none);
    second = submit(f, call_new(f, "b", NULL, "alice", 10, NULL));
    until(depth_of(f->service->commit) > 0);
    gate_set(f->gate, true);
    assert_ptr_equal(next_answer(f), first); /* or the test hangs: the sync may take minutes */
    assert_int_equal(first->request.outcome.err, RON_ERR_OK);
    until(rt_atomic_load_u32(&roomless_count) > 0);
    assert_int_equal(depth_of(f->answered), 0);
    rt_watch_set(room, &some);
    assert_ptr_equal(next_answer(f), second);
    assert_int_equal(second->request.outcome.err, RON_ERR_OK);
    fixture_stop(f);
    fixture_free(f);
    room = rt_watch_free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_pass_the_stages_in_order),
        cmocka_unit_test(the_oldest_checked_request_is_evicted),
        cmocka_unit_test(an_expired_request_is_evicted_first),
        cmocka_unit_test(a_window_is_sequenced_by_source_time),
        cmocka_unit_test(memory_is_bounded_in_bytes),
        cmocka_unit_test(one_sync_serves_all_that_waited),
        cmocka_unit_test(who_is_durable_does_not_wait_for_room),
        cmocka_unit_test(a_gap_freezes_writes),
        cmocka_unit_test(debits_of_one_account_race),
        cmocka_unit_test(slots_come_back_as_they_were_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
