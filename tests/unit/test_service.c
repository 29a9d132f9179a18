/*
 * test_service.c - the ledger's pipeline on real threads: what is answered, when, and what is left
 * behind. Method: an engine that waits, fails or is full when told to (service_fixture.h); every
 * interleaving of small pipelines is models/ledger_service.c's work.
 * tidy: long file because the pipeline is asked in many ways with one fixture.
 */
#include "service_fixture.h"

#include "ledger/service_impl.h"
#include "rt/export.h"

static void commits_and_reads(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_root roots[4];
    struct ledger_root head;
    struct ledger_frame frame;
    struct ron_buf buf;
    struct call *call;
    size_t count = 0;

    (void)state;
    fixture_start(f);
    assert_int_equal(ledger_read_head(f->service).seq, 0);
    accepts(f, call_new(f, "m1", NULL, "alice", 100, NULL));
    call = call_new(f, "t1", "alice", "bob", 40, "k1");
    accepts(f, call);
    assert_int_equal(call->request.outcome.reply.seq_start, 2);
    assert_int_equal(call->request.outcome.reply.seq_end, 2);
    assert_int_equal(call->request.outcome.reply.batch, 2);
    assert_int_equal(balance_of(f, "alice"), 60);
    assert_int_equal(balance_of(f, "bob"), 40);
    assert_int_equal(ledger_read_head(f->service).seq, 2);
    head = ledger_read_head(f->service);
    assert_memory_equal(&head.root, &call->request.outcome.reply.root, sizeof(head.root));
    /* since is exclusive and the caller goes on with what it saw last: W6. */
    assert_ok(ledger_read_roots(f->service, 1, roots, 4, &count, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(roots[0].seq, 2);
    assert_ok(ledger_read_roots(f->service, roots[0].seq, roots, 4, &count, NULL));
    assert_int_equal(count, 0);
    assert_ok(ledger_read_roots(f->service, 0, roots, 1, &count, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(roots[0].seq, 1);
    ron_buf_init(&buf, 1 << 16);
    assert_ok(ledger_read_batch(f->service, 2, &buf, NULL));
    assert_ok(ledger_frame_decode(ron_slice_of(buf.data, buf.size), &frame, NULL));
    assert_int_equal(frame.batch, 2);
    assert_int_equal(ledger_read_batch(f->service, 3, &buf, NULL), RON_ERR_NOT_FOUND);
    ron_buf_fini(&buf);
    fixture_stop(f);
    fixture_free(f);
}

/* Whoever goes on with the last seq it saw sees every root once, from the ring (which a start
 * fills) and from the log, whatever the page: W6. */
static void no_root_is_skipped(void **state) RON_BLOCKS
{
    enum { COUNT = 7, PAGES = 3 };
    static const uint32_t rings[] = {2, 4, 16};
    struct ledger_root roots[COUNT + 1];
    char id[TEXT_SIZE];

    (void)state;
    for (size_t r = 0; r < RON_ARRAY_COUNT(rings); r++) {
        struct service_fixture *f = fixture_new();

        f->options.roots_max = rings[r];
        fixture_start(f);
        for (unsigned i = 0; i < COUNT; i++) {
            (void)snprintf(id, sizeof(id), "m%u", i);
            accepts(f, call_new(f, id, NULL, "alice", 1, NULL));
        }
        fixture_stop(f);
        fixture_start(f);
        for (size_t page = 1; page <= PAGES; page++) {
            uint64_t seen = 0;

            for (size_t count = 1; count > 0;) {
                assert_ok(ledger_read_roots(f->service, seen, roots, page, &count, NULL));
                assert_true(count <= page);
                for (size_t i = 0; i < count; i++)
                    assert_int_equal(roots[i].seq, ++seen);
            }
            assert_int_equal(seen, COUNT);
        }
        fixture_stop(f);
        fixture_free(f);
    }
}

/* The same key and body: the same reply to the byte; another body: a conflict. covers: LED-F07
 * LED-V02 */
static void repeats_are_byte_identical(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *first, *again, *other;

    (void)state;
    fixture_start(f);
    first = call_new(f, "m1", NULL, "alice", 100, "k1");
    again = first;
    other = call_new(f, "m2", NULL, "alice", 101, "k1");
    other->request.command.fingerprint.bytes[0] = 1;
    accepts(f, first);
    for (int i = 0; i < 6; i++) { /* more than there are slots */
        again = call_new(f, "m1", NULL, "alice", 100, "k1");
        accepts(f, again);
    }
    assert_true(again->request.outcome.repeated);
    assert_memory_equal(&again->request.outcome.reply, &first->request.outcome.reply,
                        sizeof(first->request.outcome.reply));
    assert_int_equal(ask(f, other)->err, RON_ERR_IDEMPOTENCY_CONFLICT);
    assert_int_equal(balance_of(f, "alice"), 100);
    fixture_stop(f);
    fixture_free(f);
}

static void refusals_say_why(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *call;

    (void)state;
    fixture_start(f);
    call = call_new(f, "bad id!", NULL, "alice", 1, NULL);
    assert_int_equal(ask(f, call)->err, RON_ERR_MALFORMED);
    assert_int_equal(call->request.outcome.refusal.present, LEDGER_DETAIL_INDEX);
    call = call_new(f, "t1", "alice", "bob", 1, NULL);
    assert_int_equal(ask(f, call)->err, RON_ERR_INSUFFICIENT_FUNDS);
    assert_true((call->request.outcome.refusal.present & LEDGER_DETAIL_AVAILABLE) != 0);
    call = call_new(f, "m1", NULL, "alice", 1, NULL);
    call->request.command.stamp.capability[0] = 'X';
    assert_int_equal(ask(f, call)->err, RON_ERR_POLICY_DENIED);
    call = call_new(f, "m1", NULL, "alice", 1, NULL);
    call->wire.memo = S("a memo as long as it pleases");
    accepts(f, call);
    assert_int_equal(call->request.outcome.reply.seq_start, 1); /* refusals used no seq */
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-C26 LED-C52 LED-V03 */
static void a_full_ingress_refuses_at_once(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    const uint32_t workers = f->options.prevalidators_count;
    struct rt_queue_stats stats;
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    checks_set(f, false);
    for (uint32_t i = 0; i < workers; i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    until(rt_atomic_load_u32(&f->checks_count) == workers);
    for (uint32_t i = 0; i < f->options.ingress_max; i++) {
        (void)snprintf(id, sizeof(id), "n%u", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "o", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_BUSY);
    rt_queue_get_stats(f->service->ingress, &stats);
    assert_int_equal(stats.rejected_count, 1);
    checks_set(f, true);
    for (uint32_t i = 0; i < workers + f->options.ingress_max; i++)
        (void)next_answer(f);
    fixture_stop(f);
    fixture_free(f);
}

/* No slot, no seq: W1.
 * covers: LED-C16 LED-C19 LED-C28 LED-C54 LED-V03 LED-V10 */
static void no_slot_no_seq(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;
    struct call *calls[4];
    struct call *late;
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    gate_set(f->gate, false);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        calls[i] = submit(f, call_new(f, id, NULL, "alice", 1, NULL));
        until(slots_in_flight(&f->service->slots) == (uint32_t)i + 1);
    }
    late = call_new(f, "late", NULL, "alice", 1, NULL);
    assert_int_equal(ask(f, late)->err, RON_ERR_COMMIT_BACKPRESSURE);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.in_flight, 4);
    assert_int_equal(health.ready & RT_PLANE_WRITE, 0);
    assert_int_equal(rt_metric_sum(f->service->metrics.commit_busy), 1);
    assert_int_equal(balance_of(f, "alice"), 0); /* sequenced, not durable: nobody sees it */
    gate_set(f->gate, true);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(next_answer(f), calls[i]);
        assert_int_equal(calls[i]->request.outcome.reply.seq_start, i + 1);
    }
    ledger_read_health(f->service, &health);
    assert_int_equal(health.ready, RT_PLANES_ALL); /* by itself: nobody sends to who is not ready */
    late = call_new(f, "late", NULL, "alice", 1, NULL);
    accepts(f, late);
    assert_int_equal(late->request.outcome.reply.seq_start, 5);
    fixture_stop(f);
    fixture_free(f);
}

/* A second request with the key of one that is under way waits for it. */
static void doubles_wait_for_the_first(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *first, *second;

    (void)state;
    fixture_start(f);
    gate_set(f->gate, false);
    first = submit(f, call_new(f, "m1", NULL, "alice", 7, "k"));
    until(slots_in_flight(&f->service->slots) == 1);
    second = submit(f, call_new(f, "m1", NULL, "alice", 7, "k"));
    until(slots_in_flight(&f->service->slots) == 2);
    until(rt_atomic_load_u32(&f->gate->waits_count) > 0);
    assert_int_equal(rt_atomic_load_u32(&first->answers_count), 0);
    assert_int_equal(rt_atomic_load_u32(&second->answers_count), 0);
    gate_set(f->gate, true);
    assert_ptr_equal(next_answer(f), first);
    assert_ptr_equal(next_answer(f), second);
    assert_int_equal(second->request.outcome.err, RON_ERR_OK);
    assert_memory_equal(&second->request.outcome.reply, &first->request.outcome.reply,
                        sizeof(first->request.outcome.reply));
    assert_int_equal(balance_of(f, "alice"), 7);
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-C38 LED-C55 LED-F19 LED-V10 */
static void a_failed_sync_freezes_writes(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;
    struct call *call;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    rt_atomic_store_u32(&f->gate->wait_error, RON_ERR_IO);
    call = call_new(f, "m2", NULL, "alice", 6, "k2");
    assert_int_equal(ask(f, call)->err, RON_ERR_SAFE_MODE);
    assert_true(call->request.outcome.unknown);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.ready, RT_PLANE_READ);
    assert_int_equal(health.damage.info.err, RON_ERR_IO);
    rt_atomic_store_u32(&f->gate->wait_error, 0); /* never tried again */
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "m3", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_SAFE_MODE);
    assert_int_equal(balance_of(f, "alice"), 5); /* reads go on */
    assert_int_equal(rt_metric_level(f->service->metrics.safe_mode), 1);
    fixture_stop(f);
    assert_false(f->gate->head.clean);
    /* The frame was there after all: the retry finds its outcome. */
    fixture_start(f);
    call = call_new(f, "m2", NULL, "alice", 6, "k2");
    accepts(f, call);
    assert_true(call->request.outcome.repeated);
    assert_int_equal(balance_of(f, "alice"), 11);
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-F17 LED-V26 */
static void no_room_changes_nothing_and_passes(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;
    struct call *call;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    rt_atomic_store_u32(&f->gate->append_error, RON_ERR_PERSISTENCE_FULL);
    for (int i = 0; i < 6; i++) { /* more than there are slots */
        call = call_new(f, "m2", NULL, "alice", 6, "k2");
        assert_int_equal(ask(f, call)->err, RON_ERR_PERSISTENCE_FULL);
        assert_false(call->request.outcome.unknown);
    }
    ledger_read_health(f->service, &health);
    assert_true(health.disk_pressure);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    rt_atomic_store_u32(&f->gate->append_error, 0);
    call = call_new(f, "m2", NULL, "alice", 6, "k2");
    accepts(f, call);
    assert_false(call->request.outcome.repeated);
    assert_int_equal(call->request.outcome.reply.seq_start, 2);
    assert_int_equal(balance_of(f, "alice"), 11);
    ledger_read_health(f->service, &health);
    assert_false(health.disk_pressure);
    fixture_stop(f);
    fixture_free(f);
}

/* A segment may be set smaller than the largest batch: that one is refused, and nothing else. */
static void a_batch_beyond_a_segment_is_refused_alone(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    rt_atomic_store_u32(&f->gate->append_error, RON_ERR_TOO_LARGE);
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(f, call_new(f, "m2", NULL, "alice", 6, NULL))->err, RON_ERR_TOO_LARGE);
    ledger_read_health(f->service, &health);
    assert_false(health.disk_pressure);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    rt_atomic_store_u32(&f->gate->append_error, 0);
    accepts(f, call_new(f, "m3", NULL, "alice", 7, NULL));
    assert_int_equal(balance_of(f, "alice"), 12);
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-C10 LED-V25 */
static void a_prevalidator_that_panics_is_answered_for(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();

    (void)state;
    fixture_start(f);
    rt_atomic_store_u32(&f->panics_left, 2);
    assert_int_equal(ask(f, call_new(f, "m1", NULL, "alice", 5, NULL))->err, RON_ERR_INTERNAL);
    assert_int_equal(ask(f, call_new(f, "m2", NULL, "alice", 5, NULL))->err, RON_ERR_INTERNAL);
    accepts(f, call_new(f, "m3", NULL, "alice", 5, NULL));
    assert_int_equal(balance_of(f, "alice"), 5);
    fixture_stop(f);
    fixture_free(f);
}

/* The first one waits for the gate, so that those behind it are taken together. */
static enum ron_err prepare_first(struct ledger_request *request, void *context,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct call *call = context;
    bool open = false;
    uint64_t version = rt_watch_get(call->fixture->checks_open, &open);
    enum ron_err err = RON_ERR_OK;

    (void)request;
    (void)rt_atomic_add_u32(&call->fixture->checks_count, 1);
    while (!open && err == RON_ERR_OK)
        err = rt_watch_wait(call->fixture->checks_open, version, RT_DEADLINE_NEVER, &open, &version,
                            reterr);
    return err;
}

static enum ron_err prepare_panic(struct ledger_request *request, void *context,
                                  struct ron_errinfo *reterr)
{
    (void)request;
    (void)context;
    (void)reterr;
    rt_panic("a body");
}

/* A worker took several and fails on one: that one is answered, the others go on. covers: LED-C10
 */
static void a_panic_takes_only_its_own_request(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *calls[4];
    static const char *const ids[] = {"m1", "m2", "m3", "m4"};

    (void)state;
    f->options.check = NULL;
    f->options.prevalidators_count = 1;
    fixture_start(f);
    checks_set(f, false);
    for (int i = 0; i < 4; i++)
        calls[i] = call_new(f, ids[i], NULL, "alice", 5, NULL);
    calls[0]->request.prepare = prepare_first;
    calls[2]->request.prepare = prepare_panic;
    submit(f, calls[0]);
    until(rt_atomic_load_u32(&f->checks_count) == 1);
    for (int i = 1; i < 4; i++)
        submit(f, calls[i]);
    checks_set(f, true);
    for (int i = 0; i < 4; i++) {
        void *call = NULL;

        assert_ok(rt_queue_recv(f->answered, rt_deadline_after_ms(60000), &call, NULL));
        assert_int_equal(((struct call *)call)->request.outcome.err,
                         call == calls[2] ? RON_ERR_INTERNAL : RON_ERR_OK);
    }
    assert_int_equal(balance_of(f, "alice"), 15);
    fixture_stop(f);
    fixture_free(f);
}

/* What was taken before the stop is committed and answered; later ones are refused. covers: LED-C43
 */
static void a_drain_answers_everybody(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct rt_life_report report;
    struct ledger_root head, again;
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    checks_set(f, false);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    checks_set(f, true);
    assert_ok(ledger_service_stop(f->service, &report, NULL));
    assert_int_equal(report.steps_count, 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_OK);
    head = ledger_read_head(f->service);
    assert_int_equal(head.seq, 4);
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "late", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_DRAINING);
    f->service = ledger_service_free(f->service);
    assert_true(f->gate->head.clean);
    fixture_start(f); /* covers: LED-C06 */
    again = ledger_read_head(f->service);
    assert_memory_equal(&again, &head, sizeof(head));
    assert_int_equal(balance_of(f, "alice"), 4);
    fixture_stop(f);
    fixture_free(f);
}

static void an_unclean_stop_starts_in_safe_mode_and_leaves_it(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;
    struct call *call;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, "k1"));
    fixture_stop(f);
    f->gate->head.clean = false; /* as if it had been killed */
    assert_ok(ledger_service_new(&f->options, &f->service, NULL));
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "m2", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_RECOVERING);
    assert_true(ron_err_retryable(RON_ERR_RECOVERING)); /* unlike damage */
    assert_false(ron_err_retryable(RON_ERR_SAFE_MODE));
    assert_ok(ledger_service_start(f->service, NULL));
    assert_ok(ledger_service_await_start(f->service, RT_DEADLINE_NEVER, NULL));
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    assert_false(health.clean_start);
    assert_int_equal(health.replayed_batches, 1);
    call = call_new(f, "m1", NULL, "alice", 5, "k1");
    accepts(f, call);
    assert_true(call->request.outcome.repeated);
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-F14 */
static void damage_is_safe_mode_and_reads_go_on(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;

    (void)state;
    fixture_start(f);
    accepts(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    accepts(f, call_new(f, "m2", NULL, "alice", 6, NULL));
    fixture_stop(f);
    f->gate->corrupt_number = 2;
    fixture_start(f);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_WAL_CORRUPT);
    assert_int_equal(health.head.seq, 1);
    assert_int_equal(balance_of(f, "alice"), 5);
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "m3", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_SAFE_MODE);
    fixture_stop(f);
    assert_false(f->gate->head.clean);
    fixture_free(f);
}

static void a_past_deadline_is_answered_without_effect(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct call *call;

    (void)state;
    fixture_start(f);
    call = call_new(f, "m1", NULL, "alice", 5, NULL);
    call->request.deadline = rt_deadline_after_ms(0);
    assert_int_equal(ledger_submit(f->service, &call->request, NULL), RON_ERR_TIMEOUT);
    checks_set(f, false);
    call = call_new(f, "m2", NULL, "alice", 5, NULL);
    call->request.deadline = rt_deadline_after_ms(20);
    if (ledger_submit(f->service, &call->request, NULL) == RON_ERR_OK) {
        until(rt_deadline_expired(call->request.deadline));
        checks_set(f, true);
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_TIMEOUT);
    }
    checks_set(f, true);
    assert_int_equal(balance_of(f, "alice"), 0);
    fixture_stop(f);
    fixture_free(f);
}

/* The Committer is behind by more than is allowed: nothing is admitted, and it is not ready until
 * it has caught up. W11 covers: LED-C19 */
static void lag_closes_the_door(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct ledger_health health;

    (void)state;
    f->options.lag_ms_max = 1;
    f->options.commit_max = f->options.classes[0].count = 16; /* one of them is no pressure */
    fixture_start(f);
    gate_set(f->gate, false);
    submit(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    until(slots_lag_ns(&f->service->slots, rt_now_ns()) > 2 * RT_NS_PER_MS);
    assert_int_equal(
        ledger_submit(f->service, &call_new(f, "m2", NULL, "alice", 5, NULL)->request, NULL),
        RON_ERR_COMMIT_BACKPRESSURE);
    ledger_read_health(f->service, &health);
    assert_true(health.lag_ms > 1);
    assert_int_equal(health.ready, RT_PLANE_READ);
    assert_int_equal(rt_metric_sum(f->service->metrics.commit_busy), 1);
    gate_set(f->gate, true);
    assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_OK);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.ready, RT_PLANES_ALL);
    accepts(f, call_new(f, "m3", NULL, "alice", 5, NULL));
    fixture_stop(f);
    fixture_free(f);
}

/* covers: LED-F10 */
static void a_window_is_ordered(void **state) RON_BLOCKS
{
    static const struct {
        uint64_t ts_ms;
        const char *id;
        uint64_t nonce;
        char account;
    } rows[] = {
        {30, "c", 0, 0},   {10, "b", 2, 'a'}, {10, "a", 0, 0},
        {20, "d", 1, 'a'}, {40, "e", 1, 'b'}, {10, "ab", 0, 0},
    };
    static const char *const expected[] = {"a", "ab", "d", "b", "c", "e"};
    struct ledger_request requests[RON_ARRAY_COUNT(rows)];
    struct ledger_op ops[RON_ARRAY_COUNT(rows)];
    struct ledger_request *window[RON_ARRAY_COUNT(rows)];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        ops[i] = (struct ledger_op){.id_text = S(rows[i].id),
                                    .has_ts = true,
                                    .ts_ms = rows[i].ts_ms,
                                    .nonce = rows[i].nonce,
                                    .debit = {{(uint8_t)rows[i].account}}};
        requests[i] = (struct ledger_request){.command = {.ops = &ops[i], .ops_count = 1}};
        request_find_lane(&requests[i]);
        window[i] = &requests[i];
    }
    requests_order(window, RON_ARRAY_COUNT(rows));
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++)
        assert_true(ron_slice_equal(window[i]->command.ops[0].id_text, S(expected[i])));
}

/* A window of two is one already; one of one stays as it is, whatever is in it. */
static void two_are_ordered_too(void **state)
{
    struct ledger_op ops[2] = {{.id_text = RON_SLICE("a"), .nonce = 2},
                               {.id_text = RON_SLICE("b"), .nonce = 1}};
    struct ledger_request requests[2] = {{.command = {.ops = &ops[0], .ops_count = 1}},
                                         {.command = {.ops = &ops[1], .ops_count = 1}}};
    struct ledger_request *window[2] = {&requests[0], &requests[1]};

    (void)state;
    request_find_lane(&requests[0]);
    request_find_lane(&requests[1]);
    requests_order(window, 1);
    assert_ptr_equal(window[0], &requests[0]);
    requests_order(window, 2); /* by their nonces, against their ids */
    assert_ptr_equal(window[0], &requests[1]);
    assert_ptr_equal(window[1], &requests[0]);
}

/* Ids that are bytes stand where their digits do, among those that are texts.
 * covers: LED-F10 */
static void binary_ids_are_ordered_by_their_digits(void **state)
{
    static const struct ron_slice ids[] = {
        {(const uint8_t *)"\x1f\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\xff", 0},
        RON_SLICE("1f456789abcdef01234"),
        {(const uint8_t *)"\x1f\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x0f", 0},
        RON_SLICE("1f456789abcdef0123z"),
        {(const uint8_t *)"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0},
        RON_SLICE("1f456789abcdef0123456789abcdef0f0"),
        RON_SLICE("1f"),
        RON_SLICE("01"),
    };
    static const unsigned expected[] = {4, 7, 6, 1, 2, 5, 0, 3};
    struct ledger_request requests[RON_ARRAY_COUNT(ids)];
    struct ledger_op ops[RON_ARRAY_COUNT(ids)];
    struct ledger_request *window[RON_ARRAY_COUNT(ids)];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(ids); i++) {
        ops[i] = (struct ledger_op){.id_text = ids[i]};
        requests[i] = (struct ledger_request){.command = {.ops = &ops[i], .ops_count = 1}};
        window[i] = &requests[i];
    }
    requests_order(window, RON_ARRAY_COUNT(ids));
    for (size_t i = 0; i < RON_ARRAY_COUNT(ids); i++)
        assert_ptr_equal(window[i], &requests[expected[i]]);
}

/* Ids of one time, against the plain rule: bytes first, then the shorter one; also where the first
 * eight or sixteen bytes are the same, and where a byte is zero or high.
 * covers: LED-F10 */
static void ids_of_one_time_are_ordered_by_their_bytes(void **state)
{
    static const struct ron_slice ids[] = {
        RON_SLICE("12345678b"),
        RON_SLICE("12345678"),
        RON_SLICE("12345678a"),
        RON_SLICE("1234567"),
        RON_SLICE("\xff"),
        RON_SLICE("1"),
        RON_SLICE("1\0"),
        RON_SLICE("1\0\0"),
        RON_SLICE("12345678ab"),
        RON_SLICE("1234567\x80"),
        RON_SLICE("0zzzzzzzzz"),
        RON_SLICE("12345678a"),
        RON_SLICE("12345678abcdefghz"),
        RON_SLICE("12345678abcdefgh"),
        RON_SLICE("12345678abcdefgha"),
        RON_SLICE("12345678abcdefg\x80"),
        RON_SLICE("12345678abcdefg"),
    };
    struct ledger_request requests[RON_ARRAY_COUNT(ids)];
    struct ledger_op ops[RON_ARRAY_COUNT(ids)];
    struct ledger_request *window[RON_ARRAY_COUNT(ids)];

    (void)state;
    for (size_t turn = 0; turn < RON_ARRAY_COUNT(ids); turn++) {
        for (size_t i = 0; i < RON_ARRAY_COUNT(ids); i++) {
            ops[i] = (struct ledger_op){.id_text = ids[(i + turn) % RON_ARRAY_COUNT(ids)]};
            requests[i] = (struct ledger_request){.command = {.ops = &ops[i], .ops_count = 1}};
            window[i] = &requests[i];
        }
        requests_order(window, RON_ARRAY_COUNT(ids));
        for (size_t i = 1; i < RON_ARRAY_COUNT(ids); i++) {
            const struct ron_slice a = window[i - 1]->command.ops[0].id_text;
            const struct ron_slice b = window[i]->command.ops[0].id_text;
            const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

            assert_true(order < 0 || (order == 0 && a.size <= b.size));
            if (order == 0 && a.size == b.size) /* as they came */
                assert_true(window[i - 1] < window[i]);
        }
    }
}

/* Every name of the source design is on the page, also before anything was counted.
 * covers: LED-C11 LED-V17 */
static void metrics_have_their_names(void **state) RON_BLOCKS
{
    static const char *const lines[] = {
        "queue_depth{role=\"ledger\",queue=\"ingress\",q=\"ingress\"} 0\n",
        "queue_depth{role=\"ledger\",queue=\"preval\",q=\"preval\"} 0\n",
        "queue_depth{role=\"ledger\",queue=\"commit\",q=\"commit\"} 0\n",
        "busy_rejections_total{role=\"ledger\",endpoint=\"\",queue=\"ingress\",q=\"ingress\"} 0\n",
        "busy_rejections_total{role=\"ledger\",endpoint=\"\",queue=\"commit\",q=\"commit\"} 0\n",
        "drops_total{role=\"ledger\",queue=\"preval\",q=\"preval\"} 0\n",
        "tasks_leaked_total{role=\"ledger\",kind=\"committer\"} 0\n",
        "prevalidator_duration_seconds_count 2\n",
        "sequencer_batch_size_count 1\n",
        "committer_batch_latency_seconds_count 1\n",
        "ledger_commit_latency_seconds_count 1\n",
        "roots_published_total 1\n",
        "ledger_roots_published_total 1\n",
        "seq_gap_detected_total 0\n",
        "ledger_commits_total 1\n",
        "rejected_total{role=\"ledger\",reason=\"malformed\"} 1\n",
        "ledger_rejects_total{reason=\"malformed\"} 1\n",
        "ledger_safe_mode 0\n",
        "disk_pressure 0\n",
        "ledger_backlog_gauge 0\n",
        "wal_fsync_fail_total 0\n",
    };
    struct service_fixture *f = fixture_new();
    struct rt_exporter *exporter = NULL;
    struct ron_buf page;

    (void)state;
    fixture_start(f);
    assert_ok(rt_exporter_new(
        &(struct rt_exporter_options){.metrics = f->metrics, .q_role = "ledger"}, &exporter, NULL));
    rt_exporter_follow(exporter, "ledger", ledger_service_supervisor(f->service));
    accepts(f, call_new(f, "m1", NULL, "alice", 100, NULL));
    assert_int_equal(ask(f, call_new(f, "bad id!", NULL, "alice", 1, NULL))->err,
                     RON_ERR_MALFORMED);
    rt_exporter_collect(exporter);
    ron_buf_init(&page, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &page, NULL));
    ron_buf_put_byte(&page, 0);
    for (size_t i = 0; i < RON_ARRAY_COUNT(lines); i++)
        if (strstr((const char *)page.data, lines[i]) == NULL)
            fail_msg("not on the page: %s", lines[i]);
    ron_buf_fini(&page);
    (void)rt_exporter_free(exporter);
    fixture_stop(f);
    fixture_free(f);
}

/* The Committer takes what it is sent and waits for the disk with it: the seed's alert looks at
 * queue_depth{q="commit"}, which must show that the places are taken. covers: LED-C28 */
static bool metrics_say(struct service_fixture *f, struct rt_exporter *exporter, const char *line)
{
    struct ron_buf page;
    bool said;

    rt_exporter_collect(exporter);
    ron_buf_init(&page, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &page, NULL));
    ron_buf_put_byte(&page, 0);
    said = strstr((const char *)page.data, line) != NULL;
    ron_buf_fini(&page);
    return said;
}

static void a_slow_disk_shows_in_the_commit_queue(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();
    struct rt_exporter *exporter = NULL;
    struct rt_queue_stats stats;
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    assert_ok(rt_exporter_new(
        &(struct rt_exporter_options){.metrics = f->metrics, .q_role = "ledger"}, &exporter, NULL));
    gate_set(f->gate, false);
    for (uint32_t i = 0; i < f->options.commit_max; i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        submit(f, call_new(f, id, NULL, "alice", 1, NULL));
    }
    /* On their way from the queue into the Committer's hand they are nowhere for a moment. */
    until(
        metrics_say(f, exporter, "queue_depth{role=\"ledger\",queue=\"commit\",q=\"commit\"} 4\n"));
    assert_true(metrics_say(f, exporter,
                            "queue_capacity{role=\"ledger\",queue=\"commit\",q=\"commit\"} 4\n"));
    gate_set(f->gate, true);
    for (uint32_t i = 0; i < f->options.commit_max; i++)
        assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_OK);
    rt_queue_get_stats(f->service->commit, &stats);
    assert_int_equal(stats.held_count, 0);
    (void)rt_exporter_free(exporter);
    fixture_stop(f);
    fixture_free(f);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr)
{
    struct service_fixture *f = context;
    struct ledger_service *service = NULL;
    enum ron_err err = ledger_service_new(&f->options, &service, reterr);

    (void)ledger_service_free(service);
    return err;
}

static void every_allocation_may_fail(void **state) RON_BLOCKS
{
    struct service_fixture *f = fixture_new();

    (void)state;
    (void)support_fail_each_allocation(make_once, f, 200);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commits_and_reads),
        cmocka_unit_test(no_root_is_skipped),
        cmocka_unit_test(repeats_are_byte_identical),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(a_full_ingress_refuses_at_once),
        cmocka_unit_test(no_slot_no_seq),
        cmocka_unit_test(doubles_wait_for_the_first),
        cmocka_unit_test(a_failed_sync_freezes_writes),
        cmocka_unit_test(no_room_changes_nothing_and_passes),
        cmocka_unit_test(a_batch_beyond_a_segment_is_refused_alone),
        cmocka_unit_test(a_prevalidator_that_panics_is_answered_for),
        cmocka_unit_test(a_panic_takes_only_its_own_request),
        cmocka_unit_test(a_drain_answers_everybody),
        cmocka_unit_test(an_unclean_stop_starts_in_safe_mode_and_leaves_it),
        cmocka_unit_test(damage_is_safe_mode_and_reads_go_on),
        cmocka_unit_test(a_past_deadline_is_answered_without_effect),
        cmocka_unit_test(lag_closes_the_door),
        cmocka_unit_test(a_window_is_ordered),
        cmocka_unit_test(two_are_ordered_too),
        cmocka_unit_test(binary_ids_are_ordered_by_their_digits),
        cmocka_unit_test(ids_of_one_time_are_ordered_by_their_bytes),
        cmocka_unit_test(metrics_have_their_names),
        cmocka_unit_test(a_slow_disk_shows_in_the_commit_queue),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
