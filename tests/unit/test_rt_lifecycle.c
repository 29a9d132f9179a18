/*
 * test_rt_lifecycle.c - the machine of a role and its readiness. Method: every (state, event) pair
 * against the table of the design, then roles whose steps note what they saw.
 */
#include "support.h"

#include "rt/lifecycle.h"
#include "rt/registry.h"

static struct rt_lifecycle *lifecycle;
static char trail[16];
static size_t trail_size;
static enum ron_err drain_result;
static bool damage_in_drain;
static uint64_t drain_remaining_ns, flush_remaining_ns;
static enum rt_life_state seen_state;
static uint32_t seen_step;
static bool clear_in_flush;
static enum rt_life_state state_after_clear;
static unsigned planes_in_first_step;

/* covers: LED-C47 */
static void machine_has_exactly_the_designed_edges(void **state)
{
    static const struct {
        enum rt_life_state from;
        enum rt_life_event event;
        enum rt_life_state to;
    } edges[] = {
        {RT_LIFE_RUNNING, RT_LIFE_SHUTDOWN, RT_LIFE_DRAINING},
        {RT_LIFE_RUNNING, RT_LIFE_FAULT, RT_LIFE_SAFE_MODE},
        {RT_LIFE_DRAINING, RT_LIFE_DEADLINE, RT_LIFE_ABORTING},
        {RT_LIFE_DRAINING, RT_LIFE_FAULT, RT_LIFE_SAFE_MODE},
        {RT_LIFE_DRAINING, RT_LIFE_DONE, RT_LIFE_STOPPED},
        {RT_LIFE_ABORTING, RT_LIFE_DONE, RT_LIFE_STOPPED},
        {RT_LIFE_SAFE_MODE, RT_LIFE_RECOVER, RT_LIFE_RUNNING},
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
    planes_in_first_step = rt_lifecycle_ready(lifecycle);
    assert_int_equal(seen_step, 1);
    return ron_fail(reterr, RON_ERR_IO, "a failed step does not hold up the next");
}

static enum ron_err drain_work(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    (void)context;
    leave_mark('d');
    drain_remaining_ns = rt_deadline_remaining_ns(deadline);
    if (damage_in_drain)
        assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    if (drain_result != RON_ERR_OK)
        return ron_fail(reterr, drain_result, "as told");
    return RON_ERR_OK;
}

static enum ron_err flush(void *context, struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    (void)context, (void)reterr;
    leave_mark('f');
    flush_remaining_ns = rt_deadline_remaining_ns(deadline);
    if (clear_in_flush) {
        assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_DAMAGED));
        state_after_clear = rt_lifecycle_status(lifecycle).state;
        assert_int_equal(rt_lifecycle_admit(lifecycle, RT_PLANE_WRITE, NULL), RON_ERR_DRAINING);
    }
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
enum { CAUSE_UPSTREAM = RT_CAUSE_OWN, CAUSE_INDEX };
static const struct rt_cause own_causes[] = {
    {"upstream", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_UPSTREAM_UNAVAILABLE},
    {"index", RT_PLANE_READ, 0, RON_ERR_OK},
};
static const struct rt_life_role role = {.name = "ledger",
                                         .steps = steps,
                                         .steps_count = 3,
                                         .drain_ms = 3000,
                                         .has_safe_mode = true,
                                         .causes = {own_causes, 2},
                                         .abort = abort_rest,
                                         .abort_ms = 1000};

static void start_with(uint32_t raised)
{
    rt_init();
    trail_size = 0;
    memset(trail, 0, sizeof(trail));
    drain_result = RON_ERR_OK;
    damage_in_drain = false;
    clear_in_flush = false;
    assert_ok(rt_lifecycle_new(&role, raised, trail, &lifecycle, NULL));
}

static void start(void)
{
    start_with(0);
}

static enum rt_life_state state_now(void)
{
    return rt_lifecycle_status(lifecycle).state;
}

static enum ron_err admit_write(struct ron_errinfo *reterr)
{
    return rt_lifecycle_admit(lifecycle, RT_PLANE_WRITE, reterr);
}

static void stop_runs_the_steps_in_order_under_their_budgets(void **state) RON_BLOCKS
{
    struct rt_life_report report;
    struct ron_errinfo info = {0};

    (void)state;
    start();
    assert_int_equal(state_now(), RT_LIFE_RUNNING);
    assert_ok(admit_write(NULL));
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
    assert_int_equal(report.raised, RT_CAUSE_BIT(RT_CAUSE_DRAINING));
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
    support_assert_error(admit_write(&info), &info, RON_ERR_DRAINING, "Stopped");
    assert_ok(rt_lifecycle_stop(lifecycle, NULL, NULL)); /* again: nothing runs twice */
    assert_string_equal(trail, "idf");
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED)); /* too late to mean anything */
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
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
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static void damage_refuses_writes_until_the_stop(void **state) RON_BLOCKS
{
    struct rt_life_report report;
    struct ron_errinfo info = {0};

    (void)state;
    start();
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    assert_false(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    support_assert_error(admit_write(&info), &info, RON_ERR_SAFE_MODE,
                         "ledger is SafeMode: damaged");
    assert_ok(rt_lifecycle_admit(lifecycle, RT_PLANE_READ, NULL));
    drain_result = RON_ERR_TIMEOUT;
    assert_int_equal(rt_lifecycle_stop(lifecycle, &report, NULL), RON_ERR_TIMEOUT);
    assert_string_equal(trail, "id!"); /* the abort runs, the state stays */
    assert_int_equal(seen_state, RT_LIFE_SAFE_MODE);
    assert_true((report.raised & RT_CAUSE_BIT(RT_CAUSE_DAMAGED)) != 0);
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static void damage_while_draining_shows_in_later_steps(void **state) RON_BLOCKS
{
    struct rt_life_report report;

    (void)state;
    start();
    damage_in_drain = true;
    assert_ok(rt_lifecycle_stop(lifecycle, &report, NULL));
    assert_string_equal(trail, "idf");
    assert_int_equal(seen_state, RT_LIFE_SAFE_MODE);
    assert_true((report.raised & RT_CAUSE_BIT(RT_CAUSE_DAMAGED)) != 0);
    rt_lifecycle_free(lifecycle);
}

static void role_born_in_safe_mode_leaves_it_when_its_replay_is_clean(void **state)
{
    struct ron_errinfo info = {0};

    (void)state;
    start_with(RT_CAUSE_BIT(RT_CAUSE_RECOVERING));
    assert_int_equal(state_now(), RT_LIFE_SAFE_MODE);
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANE_READ);
    support_assert_error(admit_write(&info), &info, RON_ERR_RECOVERING, "recovering");
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_RECOVERING));
    assert_int_equal(state_now(), RT_LIFE_RUNNING);
    assert_ok(admit_write(NULL));
    assert_false(rt_lifecycle_clear(lifecycle, RT_CAUSE_RECOVERING));
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANES_ALL);
    rt_lifecycle_free(lifecycle);
}

static void damage_found_by_a_replay_needs_the_operator(void **state)
{
    (void)state;
    start_with(RT_CAUSE_BIT(RT_CAUSE_RECOVERING));
    assert_int_equal(admit_write(NULL), RON_ERR_RECOVERING); /* come back */
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    assert_int_equal(admit_write(NULL), RON_ERR_SAFE_MODE);          /* do not */
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_RECOVERING)); /* the role is through */
    assert_int_equal(state_now(), RT_LIFE_SAFE_MODE);
    assert_int_equal(admit_write(NULL), RON_ERR_SAFE_MODE);
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_DAMAGED)); /* the operator */
    assert_int_equal(state_now(), RT_LIFE_RUNNING);
    assert_ok(admit_write(NULL));
    /* The other way round: an early word of the operator does not end the replay. */
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_RECOVERING));
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_DAMAGED));
    assert_int_equal(state_now(), RT_LIFE_SAFE_MODE);
    rt_lifecycle_free(lifecycle);
}

static void an_operator_is_told_from_damage(void **state)
{
    struct ron_errinfo info = {0};

    (void)state;
    start_with(RT_CAUSE_BIT(RT_CAUSE_RECOVERING));
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_OPERATOR));
    support_assert_error(admit_write(&info), &info, RON_ERR_SAFE_MODE,
                         "ledger is SafeMode: operator"); /* to come back soon is no use */
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED));
    support_assert_error(admit_write(&info), &info, RON_ERR_SAFE_MODE,
                         "ledger is SafeMode: damaged");
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_DAMAGED));
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_RECOVERING));
    assert_int_equal(state_now(), RT_LIFE_SAFE_MODE);
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANE_READ);
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_OPERATOR));
    assert_int_equal(state_now(), RT_LIFE_RUNNING);
    assert_ok(admit_write(NULL));
    rt_lifecycle_free(lifecycle);
}

static void recovery_during_the_stop_does_not_reopen(void **state) RON_BLOCKS
{
    struct rt_life_report report;

    (void)state;
    start();
    damage_in_drain = true;
    clear_in_flush = true;
    assert_ok(rt_lifecycle_stop(lifecycle, &report, NULL));
    assert_string_equal(trail, "idf");
    assert_int_equal(state_after_clear, RT_LIFE_SAFE_MODE);
    assert_int_equal(report.raised, RT_CAUSE_BIT(RT_CAUSE_DRAINING));
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static void freeze_is_an_order_and_no_state(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    (void)state;
    start();
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_FROZEN));
    assert_int_equal(state_now(), RT_LIFE_RUNNING);
    support_assert_error(admit_write(&info), &info, RON_ERR_NOT_READY, "ledger is Running: frozen");
    assert_ok(rt_lifecycle_admit(lifecycle, RT_PLANE_READ, NULL));
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANE_READ);
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_DAMAGED)); /* what is worse is said */
    assert_int_equal(admit_write(NULL), RON_ERR_SAFE_MODE);
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_DAMAGED));
    assert_int_equal(admit_write(NULL), RON_ERR_NOT_READY);
    assert_true(rt_lifecycle_clear(lifecycle, RT_CAUSE_FROZEN));
    assert_ok(admit_write(NULL));
    assert_true(rt_lifecycle_raise(lifecycle, RT_CAUSE_FROZEN));
    assert_ok(rt_lifecycle_stop(lifecycle, NULL, NULL)); /* drains like any other */
    assert_int_equal(seen_state, RT_LIFE_DRAINING);
    assert_int_equal(admit_write(NULL), RON_ERR_DRAINING);
    rt_lifecycle_free(lifecycle);
}

static void planes_follow_the_causes_of_the_role(void **state) RON_BLOCKS
{
    (void)state;
    start();
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANES_ALL);
    assert_true(rt_lifecycle_raise(lifecycle, CAUSE_INDEX)); /* unready, and refuses nothing */
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANE_WRITE);
    assert_ok(rt_lifecycle_admit(lifecycle, RT_PLANE_READ, NULL));
    assert_true(rt_lifecycle_raise(lifecycle, CAUSE_UPSTREAM));
    assert_int_equal(rt_lifecycle_ready(lifecycle), 0);
    assert_int_equal(admit_write(NULL), RON_ERR_UPSTREAM_UNAVAILABLE);
    assert_true(rt_lifecycle_clear(lifecycle, CAUSE_INDEX));
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANE_READ);
    assert_true(rt_lifecycle_clear(lifecycle, CAUSE_UPSTREAM));
    assert_int_equal(rt_lifecycle_ready(lifecycle), RT_PLANES_ALL);
    assert_dies(rt_lifecycle_raise(lifecycle, RT_CAUSE_DRAINING), "RT_CAUSE_DRAINING");
    assert_dies(rt_lifecycle_raise(lifecycle, CAUSE_INDEX + 1), "rt_causes_count");
    assert_ok(rt_lifecycle_stop(lifecycle, NULL, NULL));
    assert_int_equal(planes_in_first_step, 0); /* off before anything closes */
    assert_ok(rt_lifecycle_admit(lifecycle, RT_PLANE_READ, NULL));
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
    assert_int_equal(state_now(), RT_LIFE_STOPPED);
    rt_lifecycle_free(lifecycle);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr)
{
    struct rt_lifecycle *own = NULL;
    enum ron_err err = rt_lifecycle_new(&role, 0, context, &own, reterr);

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
        cmocka_unit_test(damage_refuses_writes_until_the_stop),
        cmocka_unit_test(damage_while_draining_shows_in_later_steps),
        cmocka_unit_test(role_born_in_safe_mode_leaves_it_when_its_replay_is_clean),
        cmocka_unit_test(damage_found_by_a_replay_needs_the_operator),
        cmocka_unit_test(an_operator_is_told_from_damage),
        cmocka_unit_test(recovery_during_the_stop_does_not_reopen),
        cmocka_unit_test(freeze_is_an_order_and_no_state),
        cmocka_unit_test(planes_follow_the_causes_of_the_role),
        cmocka_unit_test(second_stop_waits_for_the_first),
        cmocka_unit_test(lifecycle_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests_name("rt_lifecycle", tests, NULL, NULL);
}
