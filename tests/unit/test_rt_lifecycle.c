/*
 * test_rt_lifecycle.c - the shutdown machine. Method: every (state, event) pair against the table
 * of the design, then roles whose steps note what they saw.
 */
#include "support.h"

#include "rt/lifecycle.h"
#include "rt/registry.h"

static struct rt_lifecycle *lifecycle;
static char trail[16];
static size_t trail_size;
static enum ron_err drain_result;
static bool freeze_in_drain;
static uint64_t drain_remaining_ns, flush_remaining_ns;
static enum rt_life_state seen_state;
static uint32_t seen_step;

static void machine_has_exactly_the_designed_edges(void **state)
{
    static const struct {
        enum rt_life_state from;
        enum rt_life_event event;
        enum rt_life_state to;
    } edges[] = {
        {RT_LIFE_RUNNING, RT_LIFE_SHUTDOWN, RT_LIFE_DRAINING},
        {RT_LIFE_RUNNING, RT_LIFE_FREEZE, RT_LIFE_SAFE_MODE},
        {RT_LIFE_DRAINING, RT_LIFE_DEADLINE, RT_LIFE_ABORTING},
        {RT_LIFE_DRAINING, RT_LIFE_FREEZE, RT_LIFE_SAFE_MODE},
        {RT_LIFE_DRAINING, RT_LIFE_DONE, RT_LIFE_STOPPED},
        {RT_LIFE_ABORTING, RT_LIFE_DONE, RT_LIFE_STOPPED},
        {RT_LIFE_SAFE_MODE, RT_LIFE_DONE, RT_LIFE_STOPPED},
    };
    unsigned changes_count = 0;

    (void)state;
    for (unsigned from = RT_LIFE_RUNNING; from <= RT_LIFE_STOPPED; from++) {
        for (unsigned event = RT_LIFE_SHUTDOWN; event <= RT_LIFE_DONE; event++)
            changes_count +=
                rt_life_next((enum rt_life_state)from, (enum rt_life_event)event) != from ? 1 : 0;
    }
    assert_int_equal(changes_count, RON_ARRAY_COUNT(edges));
    for (unsigned i = 0; i < RON_ARRAY_COUNT(edges); i++)
        assert_int_equal(rt_life_next(edges[i].from, edges[i].event), edges[i].to);
    assert_string_equal(rt_life_name(RT_LIFE_SAFE_MODE), "SafeMode");
}

static void leave_mark(char mark)
{
    struct rt_life_status status;

    trail[trail_size++] = mark;
    (void)rt_watch_get(rt_lifecycle_watch(lifecycle), &status);
    seen_state = status.state;
    seen_step = status.step;
}

static enum ron_err stop_intake(void *context, struct rt_deadline deadline,
                                struct ron_errinfo *reterr)
{
    assert_ptr_equal(context, trail);
    assert_false(rt_deadline_expired(deadline));
    leave_mark('i');
    assert_int_equal(seen_step, 1);
    return ron_fail(reterr, RON_ERR_IO, "a failed step does not hold up the next");
}

static enum ron_err drain_work(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    (void)context;
    leave_mark('d');
    drain_remaining_ns = rt_deadline_remaining_ns(deadline);
    if (freeze_in_drain)
        assert_true(rt_lifecycle_freeze(lifecycle));
    if (drain_result != RON_ERR_OK)
        return ron_fail(reterr, drain_result, "as told");
    return RON_ERR_OK;
}

static enum ron_err flush(void *context, struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    (void)context, (void)reterr;
    leave_mark('f');
    flush_remaining_ns = rt_deadline_remaining_ns(deadline);
    return RON_ERR_OK;
}

static enum ron_err abort_rest(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    (void)context, (void)reterr;
    assert_true(rt_deadline_remaining_ns(deadline) <= 1000 * RT_NS_PER_MS);
    leave_mark('!');
    return RON_ERR_OK;
}

static const struct rt_life_step steps[] = {
    {"stop intake", stop_intake, 0}, {"drain work", drain_work, 300}, {"flush", flush, 60000}};
static const struct rt_life_role role = {.name = "ledger",
                                         .steps = steps,
                                         .steps_count = 3,
                                         .drain_ms = 3000,
                                         .can_freeze = true,
                                         .abort = abort_rest,
                                         .abort_ms = 1000};

static void start(void)
{
    rt_init();
    trail_size = 0;
    memset(trail, 0, sizeof(trail));
    drain_result = RON_ERR_OK;
    freeze_in_drain = false;
    assert_ok(rt_lifecycle_new(&role, trail, &lifecycle, NULL));
}

static void stop_runs_the_steps_in_order_under_their_budgets(void **state) RON_BLOCKS
{
    struct rt_life_report report;
    struct ron_errinfo info = {0};

    (void)state;
    start();
    assert_int_equal(rt_lifecycle_state(lifecycle), RT_LIFE_RUNNING);
    assert_ok(rt_lifecycle_admit(lifecycle, NULL));
    assert_ok(rt_lifecycle_stop(lifecycle, &report, NULL));
    assert_string_equal(trail, "idf");
    assert_int_equal(seen_state, RT_LIFE_DRAINING);
    assert_int_equal(seen_step, 3);
    assert_true(drain_remaining_ns <= 300 * RT_NS_PER_MS);
    assert_true(flush_remaining_ns <= 3000 * RT_NS_PER_MS); /* what is left, not its 60 s */
    assert_true(flush_remaining_ns > 300 * RT_NS_PER_MS);
    assert_int_equal(report.steps_count, 3);
    assert_int_equal(report.steps[0].err, RON_ERR_IO);
    assert_string_equal(report.steps[1].name, "drain work");
    assert_false(report.aborted);
    assert_false(report.frozen);
    assert_int_equal(rt_lifecycle_state(lifecycle), RT_LIFE_STOPPED);
    support_assert_error(rt_lifecycle_admit(lifecycle, &info), &info, RON_ERR_DRAINING, "Stopped");
    assert_ok(rt_lifecycle_stop(lifecycle, NULL, NULL)); /* again: nothing runs twice */
    assert_string_equal(trail, "idf");
    assert_false(rt_lifecycle_freeze(lifecycle));
    assert_null(rt_lifecycle_free(lifecycle));
    assert_null(rt_lifecycle_free(NULL));
}

static void stop_aborts_when_a_step_takes_too_long(void **state) RON_BLOCKS
{
    struct rt_life_report report;
    struct ron_errinfo info = {0};

    (void)state;
    start();
    drain_result = RON_ERR_TIMEOUT;
    support_assert_error(rt_lifecycle_stop(lifecycle, &report, &info), &info, RON_ERR_TIMEOUT,
                         "ledger: step drain work");
    assert_string_equal(trail, "id!");
    assert_int_equal(seen_state, RT_LIFE_ABORTING);
    assert_true(report.aborted);
    assert_int_equal(report.steps_count, 2);
    assert_int_equal(rt_lifecycle_state(lifecycle), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static void freeze_refuses_writes_until_the_stop(void **state) RON_BLOCKS
{
    struct rt_life_report report;
    struct ron_errinfo info = {0};

    (void)state;
    start();
    assert_true(rt_lifecycle_freeze(lifecycle));
    assert_false(rt_lifecycle_freeze(lifecycle));
    support_assert_error(rt_lifecycle_admit(lifecycle, &info), &info, RON_ERR_SAFE_MODE, "ledger");
    drain_result = RON_ERR_TIMEOUT;
    assert_int_equal(rt_lifecycle_stop(lifecycle, &report, NULL), RON_ERR_TIMEOUT);
    assert_string_equal(trail, "id!"); /* the abort runs, the state stays */
    assert_int_equal(seen_state, RT_LIFE_SAFE_MODE);
    assert_true(report.frozen);
    assert_int_equal(rt_lifecycle_state(lifecycle), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static void freeze_while_draining_shows_in_later_steps(void **state) RON_BLOCKS
{
    struct rt_life_report report;

    (void)state;
    start();
    freeze_in_drain = true;
    assert_ok(rt_lifecycle_stop(lifecycle, &report, NULL));
    assert_string_equal(trail, "idf");
    assert_int_equal(seen_state, RT_LIFE_SAFE_MODE);
    assert_true(report.frozen);
    rt_lifecycle_free(lifecycle);
}

static void stop_too(void *context) RON_BLOCKS
{
    (void)context;
    assert_ok(rt_lifecycle_stop(lifecycle, NULL, NULL));
}

static void second_stop_waits_for_the_first(void **state) RON_BLOCKS
{
    struct sh_thread *threads[2];

    (void)state;
    start();
    for (unsigned i = 0; i < 2; i++)
        assert_ok(sh_spawn("stopper", stop_too, NULL, &threads[i], NULL));
    for (unsigned i = 0; i < 2; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
    assert_string_equal(trail, "idf");
    assert_int_equal(rt_lifecycle_state(lifecycle), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr)
{
    struct rt_lifecycle *own = NULL;
    enum ron_err err = rt_lifecycle_new(&role, context, &own, reterr);

    rt_lifecycle_free(own);
    return err;
}

static void lifecycle_survives_each_failed_allocation(void **state)
{
    (void)state;
    rt_init();
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 5), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_has_exactly_the_designed_edges),
        cmocka_unit_test(stop_runs_the_steps_in_order_under_their_budgets),
        cmocka_unit_test(stop_aborts_when_a_step_takes_too_long),
        cmocka_unit_test(freeze_refuses_writes_until_the_stop),
        cmocka_unit_test(freeze_while_draining_shows_in_later_steps),
        cmocka_unit_test(second_stop_waits_for_the_first),
        cmocka_unit_test(lifecycle_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests_name("rt_lifecycle", tests, NULL, NULL);
}
