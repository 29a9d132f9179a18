/*
 * test_rt_timer.c - timers on real threads. Method: the timer task is held in a callback while
 * timers are set, so that order and cancelation are exact; real waiting is a few milliseconds.
 */
#include "support.h"

#include <stdlib.h>

#include "rt/atomic.h"
#include "rt/registry.h"
#include "rt/supervisor.h"
#include "rt/timer.h"

enum { MANY = 500 };

static struct rt_supervisor *supervisor;
static struct rt_timers *timers;
static struct rt_atomic_u32 gate, held, fired_count;
static uint64_t fired_values[MANY + 8]; /* written by the timer task, read after fired_count */

static void start(uint32_t timers_max)
{
    static const struct rt_backoff_policy fast = {.base_ns = 1000, .cap_ns = 1000};
    const struct rt_supervisor_options root = {
        .name = "root", .owner = "test", .tasks_max = 1, .backoff = &fast};
    const struct rt_timers_options options = {"timers", "test", timers_max};

    rt_init();
    rt_atomic_store_u32(&gate, 0);
    rt_atomic_store_u32(&held, 0);
    rt_atomic_store_u32(&fired_count, 0);
    assert_ok(rt_supervisor_new(&root, &supervisor, NULL));
    assert_ok(rt_timers_new(&options, supervisor, &timers, NULL));
}

static void finish(void) RON_BLOCKS
{
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    assert_null(rt_timers_free(timers));
    rt_supervisor_free(supervisor);
    assert_int_equal(ron_mem_live_count(), 0);
}

static void pause_shortly(void)
{
    sh_sleep_until(rt_now_ns() + 100000);
}

static void hold(void *argument, struct rt_timer_id id)
{
    (void)argument, (void)id;
    rt_atomic_store_u32(&held, 1);
    while (rt_atomic_load_u32(&gate) == 0)
        pause_shortly();
}

static void note(void *argument, struct rt_timer_id id)
{
    (void)id;
    fired_values[rt_atomic_load_u32(&fired_count)] = *(uint64_t *)argument;
    (void)rt_atomic_add_u32(&fired_count, 1);
}

static struct rt_timer_id set(uint64_t at_ns, uint64_t period_ns, rt_timer_fn *fn, void *argument)
{
    struct rt_timer_id id = {0};

    assert_ok(
        rt_timer_set(timers, (struct rt_deadline){at_ns}, period_ns, fn, argument, &id, NULL));
    assert_true(id.value != 0);
    return id;
}

static struct rt_timer_id hold_the_task(void)
{
    struct rt_timer_id id = set(0, 0, hold, NULL);

    while (rt_atomic_load_u32(&held) == 0)
        pause_shortly();
    return id;
}

static void await_fired(unsigned count)
{
    while (rt_atomic_load_u32(&fired_count) < count)
        pause_shortly();
}

static void timers_fire_in_order_and_cancel(void **state) RON_BLOCKS
{
    static uint64_t due[MANY];
    struct rt_timer_id ids[MANY];
    unsigned kept_count = 0;
    uint64_t random = 88172645463325252u;

    (void)state;
    start(MANY + 1);
    (void)hold_the_task();
    for (unsigned i = 0; i < MANY; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        due[i] = 1 + random % 300; /* all past, many equal */
        ids[i] = set(due[i], 0, note, &due[i]);
    }
    assert_int_equal(rt_timers_pending_count(timers), MANY);
    for (unsigned i = 0; i < MANY; i++) {
        if (i % 3 == 0)
            assert_true(rt_timer_cancel(timers, ids[i]));
        else
            kept_count++;
    }
    assert_false(rt_timer_cancel(timers, ids[0])); /* already */
    assert_int_equal(rt_timers_pending_count(timers), kept_count);
    rt_atomic_store_u32(&gate, 1);
    await_fired(kept_count);
    for (unsigned i = 1; i < kept_count; i++)
        assert_true(fired_values[i - 1] <= fired_values[i]);
    assert_false(rt_timer_cancel(timers, ids[1]));
    finish();
    assert_int_equal(rt_atomic_load_u32(&fired_count), kept_count);
}

static void timers_of_equal_time_fire_as_set(void **state) RON_BLOCKS
{
    static uint64_t numbers[16];

    (void)state;
    start(32);
    (void)hold_the_task();
    for (unsigned i = 0; i < 16; i++) {
        numbers[i] = i;
        (void)set(5, 0, note, &numbers[i]);
    }
    rt_atomic_store_u32(&gate, 1);
    await_fired(16);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(fired_values[i], i);
    finish();
}

static void note_time(void *argument, struct rt_timer_id id)
{
    (void)id;
    *(uint64_t *)argument = rt_now_ns();
    (void)rt_atomic_add_u32(&fired_count, 1);
}

static void timer_is_never_early(void **state) RON_BLOCKS
{
    uint64_t fired_ns[4] = {0}, due_ns[4];

    (void)state;
    start(8);
    for (unsigned i = 0; i < 4; i++) { /* later ones first: each set moves the wake-up forward */
        due_ns[i] = rt_now_ns() + (9 - 2 * i) * RT_NS_PER_MS;
        (void)set(due_ns[i], 0, note_time, &fired_ns[i]);
    }
    await_fired(4);
    for (unsigned i = 0; i < 4; i++)
        assert_true(fired_ns[i] >= due_ns[i]);
    for (unsigned i = 0; i < 50; i++) { /* due so soon that the task looks at it before its time */
        due_ns[0] = rt_now_ns() + 500000;
        (void)set(due_ns[0], 0, note_time, &fired_ns[0]);
        await_fired(5 + i);
        assert_true(fired_ns[0] >= due_ns[0]);
    }
    finish();
}

static void timer_repeats_until_canceled(void **state) RON_BLOCKS
{
    static uint64_t one = 1;
    struct rt_timer_id id;

    (void)state;
    start(1);
    id = set(rt_now_ns(), 200000, note, &one);
    await_fired(5);
    assert_ok(rt_timer_cancel_until(timers, id, rt_deadline_after_ms(20000), NULL));
    assert_int_equal(rt_timers_pending_count(timers), 0);
    unsigned count = rt_atomic_load_u32(&fired_count);
    sh_sleep_until(rt_now_ns() + 2 * RT_NS_PER_MS);
    assert_int_equal(rt_atomic_load_u32(&fired_count), count);
    finish();
}

static void cancel_itself(void *argument, struct rt_timer_id id)
{
    note(argument, id);
    if (rt_atomic_load_u32(&fired_count) == 3)
        assert_false(rt_timer_cancel(timers, id)); /* it runs, but it will not run again */
}

static void timer_may_end_its_own_repetition(void **state) RON_BLOCKS
{
    static uint64_t one = 1;

    (void)state;
    start(1);
    (void)set(rt_now_ns(), 100000, cancel_itself, &one);
    await_fired(3);
    sh_sleep_until(rt_now_ns() + 2 * RT_NS_PER_MS);
    assert_int_equal(rt_atomic_load_u32(&fired_count), 3);
    (void)set(SH_NEVER, 0, note, &one); /* its entry is free again */
    finish();
}

static void skip_periods(void *argument, struct rt_timer_id id)
{
    uint64_t *times = argument;
    uint32_t index = rt_atomic_load_u32(&fired_count);

    (void)id;
    if (index < 3)
        times[index] = rt_now_ns();
    if (index == 0)
        sh_sleep_until(rt_now_ns() + 12 * RT_NS_PER_MS); /* misses two periods */
    (void)rt_atomic_add_u32(&fired_count, 1);
}

static void late_timer_skips_periods_and_keeps_its_phase(void **state) RON_BLOCKS
{
    const uint64_t period_ns = 5 * RT_NS_PER_MS;
    uint64_t times[3] = {0}, first_ns;

    (void)state;
    start(1);
    first_ns = rt_now_ns();
    (void)set(first_ns, period_ns, skip_periods, times);
    await_fired(3);
    finish();
    /* The second firing is at the first moment of the phase after the delay, not three at once. */
    assert_true(times[1] >= first_ns + 3 * period_ns);
    assert_true(times[2] >= first_ns + 4 * period_ns);
}

static void cancel_waits_for_a_running_callback(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct rt_timer_id id;

    (void)state;
    start(1);
    id = hold_the_task();
    assert_false(rt_timer_cancel(timers, id));
    support_assert_error(rt_timer_cancel_until(timers, id, rt_deadline_after_ms(2), &info), &info,
                         RON_ERR_TIMEOUT, "timers");
    rt_atomic_store_u32(&gate, 1);
    assert_ok(rt_timer_cancel_until(timers, id, rt_deadline_after_ms(20000), NULL));
    assert_ok(rt_timer_cancel_until(timers, (struct rt_timer_id){0}, RT_DEADLINE_NEVER, NULL));
    finish();
}

static void timers_are_bounded_and_ids_are_not_reused(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct rt_timer_id first, second, refused = {9};

    (void)state;
    start(1);
    first = set(SH_NEVER, 0, hold, NULL);
    support_assert_error(rt_timer_set(timers, RT_DEADLINE_NEVER, 0, hold, NULL, &refused, &info),
                         &info, RON_ERR_BUSY, "all are set");
    assert_int_equal(refused.value, 9);
    assert_true(rt_timer_cancel(timers, first));
    second = set(SH_NEVER, 0, hold, NULL);
    assert_true(second.value != first.value);
    assert_false(rt_timer_cancel(timers, first)); /* the same entry, another setting */
    rt_timers_close(timers);
    assert_int_equal(rt_timer_set(timers, RT_DEADLINE_NEVER, 0, hold, NULL, &refused, NULL),
                     RON_ERR_CANCELED);
    finish();
}

static void chain(void *argument, struct rt_timer_id id)
{
    struct rt_timer_id next;

    note(argument, id);
    assert_false(rt_timer_cancel(timers, id));
    if (rt_atomic_load_u32(&fired_count) < 10)
        next = set(0, 0, chain, argument);
    (void)next;
}

static void callbacks_may_set_timers(void **state) RON_BLOCKS
{
    static uint64_t one = 1;

    (void)state;
    start(2);
    (void)set(0, 0, chain, &one);
    await_fired(10);
    finish();
}

static void panic_once(void *argument, struct rt_timer_id id)
{
    note(argument, id);
    if (rt_atomic_load_u32(&fired_count) == 1)
        rt_panic("in a callback");
}

static void timers_survive_a_panic_in_a_callback(void **state) RON_BLOCKS
{
    static uint64_t one = 1;
    struct rt_timer_id id;

    (void)state;
    start(2);
    id = set(rt_now_ns(), 100000, panic_once, &one);
    await_fired(3);
    assert_ok(rt_timer_cancel_until(timers, id, rt_deadline_after_ms(20000), NULL));
    finish();
}

static void panic_always(void *argument, struct rt_timer_id id)
{
    note(argument, id);
    rt_panic("in each callback");
}

static void timers_can_be_freed_after_giving_up(void **state) RON_BLOCKS
{
    static uint64_t one = 1;
    struct rt_timer_id id;

    (void)state;
    start(2);
    id = set(rt_now_ns(), 100000, panic_always, &one);
    await_fired(6); /* the task has failed six times: it is down */
    assert_ok(rt_timer_cancel_until(timers, id, rt_deadline_after_ms(20000), NULL));
    finish();
    assert_int_equal(rt_atomic_load_u32(&fired_count), 6);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_timers_options options = {"timers", "test", 4};
    enum ron_err err;

    (void)context;
    timers = NULL;
    err = rt_timers_new(&options, supervisor, &timers, reterr);
    if (err == RON_ERR_OK) {
        enum ron_err result;
        rt_timers_close(timers);
        assert_ok(rt_task_join(rt_timers_task(timers), RT_DEADLINE_NEVER, &result, NULL));
        assert_ok(result);
        rt_timers_free(timers);
    }
    return err;
}

static void timers_survive_each_failed_allocation(void **state) RON_BLOCKS
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "test", .tasks_max = 1};

    (void)state;
    rt_init();
    assert_ok(rt_supervisor_new(&root, &supervisor, NULL));
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 9), 4);
    assert_ok(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(supervisor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_and_cancel),
        cmocka_unit_test(timers_of_equal_time_fire_as_set),
        cmocka_unit_test(timer_is_never_early),
        cmocka_unit_test(timer_repeats_until_canceled),
        cmocka_unit_test(timer_may_end_its_own_repetition),
        cmocka_unit_test(late_timer_skips_periods_and_keeps_its_phase),
        cmocka_unit_test(cancel_waits_for_a_running_callback),
        cmocka_unit_test(timers_are_bounded_and_ids_are_not_reused),
        cmocka_unit_test(callbacks_may_set_timers),
        cmocka_unit_test(timers_survive_a_panic_in_a_callback),
        cmocka_unit_test(timers_can_be_freed_after_giving_up),
        cmocka_unit_test(timers_survive_each_failed_allocation),
    };
    return cmocka_run_group_tests_name("rt_timer", tests, NULL, NULL);
}
