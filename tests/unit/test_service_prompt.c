/*
 * test_service_prompt.c - small requests that wait for nobody are checked by the thread that brings
 * them, and only those. Method: their prepare function notes on which thread it runs; every
 * interleaving with a stop is models/ledger_service.c's work (service_prompt).
 */
#include "service_fixture.h"

#include <pthread.h>

#include "ledger/service_impl.h"
#include "rt/export.h"

enum { MANY = 40 }; /* more than go on together */

/* Of each call, by its place in the fixture. */
struct notes {
    pthread_t checked_by[REQUESTS_MAX];
    enum ron_err refused[REQUESTS_MAX];
    enum ron_err prepare_error, confirm_error;
    bool stops; /* the pipeline ends while a request is checked */
};
static struct notes notes;

static size_t place_of(const struct call *call)
{
    return (size_t)(call - call->fixture->calls);
}

static enum ron_err prepare(struct ledger_request *request, void *context,
                            struct ron_errinfo *reterr)
{
    struct call *call = context;

    assert_ptr_equal(request, &call->request);
    notes.checked_by[place_of(call)] = pthread_self();
    if (notes.stops)
        rt_queue_close(call->fixture->service->preval);
    if (notes.prepare_error != RON_ERR_OK)
        return ron_fail(reterr, notes.prepare_error, "as the test told it");
    return RON_ERR_OK;
}

static enum ron_err confirm(struct ledger_request *request, void *context,
                            struct ron_errinfo *reterr)
{
    (void)request;
    (void)context;
    if (notes.confirm_error != RON_ERR_OK)
        return ron_fail(reterr, notes.confirm_error, "as the test told it");
    return RON_ERR_OK;
}

static void refused(struct ledger_request *request, enum ron_err err,
                    const struct ron_errinfo *info)
{
    const struct call *call = request->context;

    assert_int_equal(info->err, err);
    assert_int_equal(notes.refused[place_of(call)], RON_ERR_OK);
    notes.refused[place_of(call)] = err;
}

static struct service_fixture *prompt_fixture(void)
{
    struct service_fixture *f = fixture_new();

    notes = (struct notes){.prepare_error = RON_ERR_OK};
    f->options.check = NULL;
    f->options.ingress_max = MANY;
    f->options.preval_max = MANY;
    f->options.commit_max = MANY;
    f->options.classes[0].count = MANY;
    return f;
}

static struct call *prompt_call(struct service_fixture *f, const char *id)
{
    struct call *call = call_new(f, id, NULL, "alice", 1, NULL);

    call->request.prepare = prepare;
    call->request.confirm = confirm;
    call->request.prompt = true;
    return call;
}

static void submit_calls(struct service_fixture *f, struct call *first, size_t count)
{
    struct ledger_request *requests[LEDGER_SUBMIT_MAX];

    for (size_t i = 0; i < count; i++)
        requests[i] = &first[i].request;
    ledger_submit_many(f->service, requests, count, refused);
}

static bool was_here(const struct call *call)
{
    return pthread_equal(notes.checked_by[place_of(call)], pthread_self()) != 0;
}

static void await_answers(struct service_fixture *f, size_t count) RON_BLOCKS
{
    for (size_t i = 0; i < count; i++)
        (void)next_answer(f);
}

static void assert_checks(struct service_fixture *f, unsigned count)
{
    struct ron_buf page;
    char line[80];

    ron_buf_init(&page, 1 << 20);
    assert_ok(rt_metrics_write(f->metrics, &page, NULL));
    ron_buf_put_byte(&page, 0);
    (void)snprintf(line, sizeof(line), "\nprevalidator_duration_seconds_count %u\n", count);
    assert_non_null(strstr((const char *)page.data, line));
    ron_buf_fini(&page);
}

static void are_checked_by_who_brings_them(void **state) RON_BLOCKS
{
    struct service_fixture *f = prompt_fixture();
    struct rt_queue_stats stats;
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof(id), "m%u", i);
        (void)prompt_call(f, id);
    }
    submit_calls(f, f->calls, MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_true(was_here(&f->calls[i])); /* when it returns, each was */
    await_answers(f, MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(f->calls[i].request.outcome.err, RON_ERR_OK);
    assert_int_equal(balance_of(f, "alice"), MANY);
    rt_queue_get_stats(f->service->ingress, &stats);
    assert_int_equal(stats.sent_count, 0);
    assert_checks(f, MANY);
    fixture_stop(f);
    fixture_free(f);
}

static void others_are_left_to_a_prevalidator(void **state) RON_BLOCKS
{
    struct service_fixture *f = prompt_fixture();
    struct call *call;

    (void)state;
    fixture_start(f);
    prompt_call(f, "may wait")->request.prompt = false;
    prompt_call(f, "large")->request.size = LIGHT_SIZE + 1;
    prompt_call(f, "small")->request.size = LIGHT_SIZE;
    submit_calls(f, f->calls, 3);
    await_answers(f, 3);
    assert_false(was_here(&f->calls[0]));
    assert_false(was_here(&f->calls[1]));
    assert_true(was_here(&f->calls[2]));
    fixture_stop(f);

    f->options.check = fixture_check; /* may wait, whatever the request says */
    fixture_start(f);
    call = prompt_call(f, "checked");
    submit_calls(f, call, 1);
    await_answers(f, 1);
    assert_false(was_here(call));
    assert_int_equal(rt_atomic_load_u32(&f->checks_count), 1);
    fixture_stop(f);
    fixture_free(f);
}

static void a_wrong_one_is_answered_at_once(void **state) RON_BLOCKS
{
    struct service_fixture *f = prompt_fixture();
    struct call *call;

    (void)state;
    fixture_start(f);
    call = prompt_call(f, "bad id!");
    submit_calls(f, call, 1);
    assert_int_equal(rt_atomic_load_u32(&call->answers_count), 1);
    assert_int_equal(call->request.outcome.err, RON_ERR_MALFORMED);
    assert_int_equal(call->request.outcome.refusal.present, LEDGER_DETAIL_INDEX);
    notes.prepare_error = RON_ERR_NO_MEMORY;
    call = prompt_call(f, "m1");
    submit_calls(f, call, 1);
    assert_int_equal(call->request.outcome.err, RON_ERR_NO_MEMORY);
    notes.prepare_error = RON_ERR_OK;
    notes.confirm_error = RON_ERR_FORBIDDEN;
    call = prompt_call(f, "m2");
    submit_calls(f, call, 1);
    assert_int_equal(call->request.outcome.err, RON_ERR_FORBIDDEN);
    call = prompt_call(f, "m3");
    call->request.deadline = (struct rt_deadline){1};
    submit_calls(f, call, 1);
    assert_int_equal(notes.refused[place_of(call)], RON_ERR_TIMEOUT); /* not taken: no answer */
    assert_int_equal(rt_atomic_load_u32(&call->answers_count), 0);
    assert_int_equal(balance_of(f, "alice"), 0);
    fixture_stop(f);
    fixture_free(f);
}

/* The stop came while they were checked: they were not taken. */
static void a_stop_meanwhile_refuses_them(void **state) RON_BLOCKS
{
    struct service_fixture *f = prompt_fixture();

    (void)state;
    fixture_start(f);
    notes.stops = true;
    (void)prompt_call(f, "m1");
    (void)prompt_call(f, "m2");
    submit_calls(f, f->calls, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(notes.refused[i], RON_ERR_DRAINING);
        assert_int_equal(rt_atomic_load_u32(&f->calls[i].answers_count), 0);
    }
    fixture_stop(f);
    fixture_free(f);
}

/* Requests of one account that go on together are ordered by its nonces, whatever their ids. */
static void nonces_of_one_account_are_put_in_order(void **state) RON_BLOCKS
{
    enum { COUNT = 6 };
    struct service_fixture *f = prompt_fixture();
    char id[TEXT_SIZE];

    (void)state;
    fixture_start(f);
    assert_ok(ask(f, call_new(f, "m", NULL, "alice", 100, NULL))->err);
    f->calls_count = 0; /* it was answered */
    for (unsigned i = 0; i < COUNT; i++) {
        struct call *call;

        (void)snprintf(id, sizeof(id), "t%u", i);
        call = call_new(f, id, "alice", "bob", 1, NULL);
        call->wire.has_nonce = true;
        call->wire.nonce = COUNT - i;
        call->request.prompt = true;
    }
    submit_calls(f, f->calls, COUNT);
    await_answers(f, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(f->calls[i].request.outcome.err, RON_ERR_OK);
    assert_int_equal(balance_of(f, "bob"), COUNT);
    fixture_stop(f);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_checked_by_who_brings_them),
        cmocka_unit_test(nonces_of_one_account_are_put_in_order),
        cmocka_unit_test(others_are_left_to_a_prevalidator),
        cmocka_unit_test(a_wrong_one_is_answered_at_once),
        cmocka_unit_test(a_stop_meanwhile_refuses_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
