/*
 * test_rt_task.c - tasks and their supervisor on real threads. Method: bodies that end in each way,
 * backoffs of microseconds (the real ones are the simulator's, in virtual time), stop with tasks
 * that obey, that need the abort, and that never end.
 */
#include "support.h"

#include <unistd.h>

#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

static const struct rt_backoff_policy fast = {
    .base_ns = 1000, .jitter_ns = 1000, .cap_ns = 10000, .jitter_grows = true};

static struct rt_atomic_u32 runs_count, escalations_count, wakes_count, release;
static char trail[32]; /* of cleanups; written by one task, read after its join */
static size_t trail_size;
static char escalated_message[RON_ERR_MESSAGE_SIZE];

static int reset(void **state)
{
    (void)state;
    rt_init();
    rt_atomic_store_u32(&runs_count, 0);
    rt_atomic_store_u32(&escalations_count, 0);
    rt_atomic_store_u32(&wakes_count, 0);
    rt_atomic_store_u32(&release, 0);
    trail_size = 0;
    return 0;
}

static void escalate(void *context, const struct rt_task *task, const struct ron_errinfo *info)
{
    assert_ptr_equal(context, &runs_count);
    assert_string_equal(rt_task_name(task), "subject");
    memcpy(escalated_message, info->message, sizeof(escalated_message));
    (void)rt_atomic_add_u32(&escalations_count, 1);
}

static struct rt_supervisor *make(uint32_t tasks_max)
{
    const struct rt_supervisor_options options = {.name = "root",
                                                  .owner = "test",
                                                  .tasks_max = tasks_max,
                                                  .backoff = &fast,
                                                  .escalate = escalate,
                                                  .escalate_context = &runs_count};
    struct rt_supervisor *supervisor = NULL;

    assert_ok(rt_supervisor_new(&options, &supervisor, NULL));
    return supervisor;
}

static void count_wake(void *argument)
{
    (void)argument;
    (void)rt_atomic_add_u32(&wakes_count, 1);
}

static struct rt_task *spawn(struct rt_supervisor *supervisor, rt_task_fn *fn,
                             enum rt_restart restart)
{
    const struct rt_task_options options = {.kind = "worker",
                                            .name = "subject",
                                            .owner = "test",
                                            .fn = fn,
                                            .wake = count_wake,
                                            .argument = &trail,
                                            .restart = restart};
    struct rt_task *task = NULL;

    assert_ok(rt_task_spawn(supervisor, &options, &task, NULL));
    return task;
}

static enum ron_err join(struct rt_task *task) RON_BLOCKS
{
    enum ron_err result = RON_ERR__MAX;

    assert_ok(rt_task_join(task, rt_deadline_after_ms(20000), &result, NULL));
    return result;
}

static struct rt_task_counters counters_of(struct rt_supervisor *supervisor)
{
    struct rt_task_counters counters = {0};

    assert_int_equal(rt_supervisor_get_counters(supervisor, &counters, 1), 1);
    assert_string_equal(counters.kind, "worker");
    return counters;
}

static void stop_and_free(struct rt_supervisor *supervisor) RON_BLOCKS
{
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    assert_null(rt_supervisor_free(supervisor));
}

static enum ron_err finish(struct rt_task *task, void *argument)
{
    (void)rt_atomic_add_u32(&runs_count, 1);
    assert_ptr_equal(argument, &trail);
    assert_ptr_equal(rt_task_self(), task);
    return RON_ERR_OK;
}

static void task_runs_once_and_is_joined(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(1);
    struct rt_registry_entry entries[4];

    (void)state;
    for (unsigned i = 0; i < 3; i++) { /* the one slot is used again */
        struct rt_task *task = spawn(supervisor, finish, RT_RESTART_ON_FAILURE);
        assert_int_equal(join(task), RON_ERR_OK);
    }
    assert_null(rt_task_self());
    assert_int_equal(rt_atomic_load_u32(&runs_count), 3);
    assert_int_equal(counters_of(supervisor).spawned_count, 3);
    assert_int_equal(counters_of(supervisor).completed_count, 3);
    assert_int_equal(counters_of(supervisor).restarted_count, 0);
    (void)rt_registry_list(entries, 4);
    assert_int_equal(entries[0].kind, RT_KIND_WATCH);
    assert_int_equal(entries[1].kind, RT_KIND_LOCK); /* no task is left in it */
    stop_and_free(supervisor);
    assert_null(rt_supervisor_free(NULL));
}

static enum ron_err fail_always(struct rt_task *task, void *argument)
{
    (void)argument;
    (void)rt_atomic_add_u32(&runs_count, 1);
    return ron_fail(rt_task_reterr(task), RON_ERR_IO, "disk on fire");
}

static void task_gives_up_on_the_sixth_failure(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);
    struct rt_task *task = spawn(supervisor, fail_always, RT_RESTART_ON_FAILURE);
    struct rt_task_counters counters;

    (void)state;
    assert_int_equal(join(task), RON_ERR_IO);
    counters = counters_of(supervisor);
    assert_int_equal(rt_atomic_load_u32(&runs_count), 6);
    assert_int_equal(counters.restarted_count, 5);
    assert_int_equal(counters.failed_count, 6);
    assert_int_equal(counters.escalated_count, 1);
    assert_int_equal(counters.spawned_count, 1);
    assert_int_equal(rt_atomic_load_u32(&escalations_count), 1);
    assert_string_equal(escalated_message, "disk on fire");
    stop_and_free(supervisor);
}

static enum ron_err run_until_canceled(struct rt_task *task, void *argument) RON_BLOCKS
{
    (void)argument;
    (void)rt_atomic_add_u32(&runs_count, 1);
    rt_task_beat(task);
    assert_true(rt_task_sleep(task, RT_DEADLINE_NEVER));
    assert_true(rt_task_canceled(task));
    return RON_ERR_CANCELED;
}

static void await_runs(unsigned count)
{
    while (rt_atomic_load_u32(&runs_count) < count)
        sh_sleep_until(rt_now_ns() + 100000);
}

static void await_state(struct rt_supervisor *supervisor, enum rt_task_state state)
{
    struct rt_task_info info = {0};

    while (info.state != state) {
        assert_int_equal(rt_supervisor_get_tasks(supervisor, &info, 1), 1);
        sh_yield();
    }
}

static enum ron_err fail_twelve_times(struct rt_task *task, void *argument)
{
    return rt_atomic_load_u32(&runs_count) < 12 ? fail_always(task, argument)
                                                : finish(task, argument);
}

static void task_that_gave_up_is_revived(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);
    struct rt_task *task = spawn(supervisor, fail_twelve_times, RT_RESTART_ON_FAILURE);
    struct rt_task_counters counters;

    (void)state;
    for (unsigned i = 1; i <= 2; i++) { /* each time it has all of its restarts */
        await_state(supervisor, RT_TASK_GAVE_UP);
        assert_int_equal(rt_atomic_load_u32(&runs_count), 6 * i);
        assert_int_equal(rt_atomic_load_u32(&escalations_count), i);
        assert_int_equal(rt_supervisor_down_count(supervisor), 1);
        assert_ok(rt_task_revive(task, NULL));
    }
    assert_int_equal(join(task), RON_ERR_OK);
    assert_int_equal(rt_supervisor_down_count(supervisor), 0);
    counters = counters_of(supervisor);
    assert_int_equal(counters.spawned_count, 1);
    assert_int_equal(counters.restarted_count, 10);
    assert_int_equal(counters.revived_count, 2);
    assert_int_equal(counters.escalated_count, 2);
    assert_int_equal(counters.completed_count, 1);
    stop_and_free(supervisor);
}

static void only_what_gave_up_is_revived(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);
    struct rt_task *task = spawn(supervisor, run_until_canceled, RT_RESTART_ON_FAILURE);
    struct ron_errinfo info = {0};

    (void)state;
    await_runs(1);
    support_assert_error(rt_task_revive(task, &info), &info, RON_ERR_CONFLICT,
                         "task subject has not given up");
    rt_task_cancel(task);
    assert_int_equal(join(task), RON_ERR_CANCELED);
    task = spawn(supervisor, fail_always, RT_RESTART_ON_FAILURE);
    await_state(supervisor, RT_TASK_GAVE_UP);
    rt_supervisor_cancel(supervisor);
    assert_int_equal(rt_task_revive(task, NULL), RON_ERR_CONFLICT);
    assert_int_equal(rt_atomic_load_u32(&runs_count), 7);
    assert_int_equal(rt_supervisor_down_count(supervisor), 1);
    stop_and_free(supervisor);
}

static void task_that_runs_once_is_not_restarted(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);
    struct rt_task *task = spawn(supervisor, fail_always, RT_RESTART_NEVER);

    (void)state;
    assert_int_equal(join(task), RON_ERR_IO);
    assert_int_equal(rt_atomic_load_u32(&runs_count), 1);
    assert_int_equal(rt_atomic_load_u32(&escalations_count), 0);
    stop_and_free(supervisor);
}

static void leave_mark(void *argument)
{
    trail[trail_size++] = *(const char *)argument;
}

static void panic_among_cleanups(unsigned count)
{
    static char marks[] = "abcd";
    struct rt_cleanup cleanups[4];

    for (unsigned i = 0; i < count; i++) {
        rt_cleanup_push(&cleanups[i], leave_mark, &marks[i]);
    }
    rt_panic("with %u cleanups", count);
}

static enum ron_err panic_once(struct rt_task *task, void *argument)
{
    struct rt_cleanup kept, popped;

    (void)argument;
    (void)task;
    if (rt_atomic_add_u32(&runs_count, 1) > 0)
        return RON_ERR_OK;
    rt_cleanup_push(&kept, leave_mark, &(char){'k'});
    rt_cleanup_push(&popped, leave_mark, &(char){'p'});
    rt_cleanup_pop(&popped, true);
    rt_cleanup_push(&popped, leave_mark, &(char){'q'});
    rt_cleanup_pop(&popped, false);
    panic_among_cleanups(4);
    return RON_ERR_OK;
}

static void panic_runs_cleanups_newest_first_and_restarts(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);
    struct rt_task *task = spawn(supervisor, panic_once, RT_RESTART_ON_FAILURE);

    (void)state;
    assert_int_equal(join(task), RON_ERR_OK);
    assert_int_equal(trail_size, 6);
    assert_memory_equal(trail, "pdcbak", 6);
    assert_int_equal(rt_atomic_load_u32(&runs_count), 2);
    assert_int_equal(counters_of(supervisor).panicked_count, 1);
    assert_int_equal(counters_of(supervisor).failed_count, 0);
    assert_int_equal(counters_of(supervisor).completed_count, 1);
    stop_and_free(supervisor);
}

static enum ron_err panic_message(struct rt_task *task, void *argument)
{
    (void)task, (void)argument;
    rt_panic("no %s", "way");
}

static void panic_message_reaches_the_escalation(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(2);

    (void)state;
    assert_int_equal(join(spawn(supervisor, panic_message, RT_RESTART_ON_FAILURE)),
                     RON_ERR_INTERNAL);
    assert_string_equal(escalated_message, "panic: no way");
    assert_int_equal(counters_of(supervisor).panicked_count, 6);
    stop_and_free(supervisor);
}

static enum ron_err panic_with_lock(struct rt_task *task, void *argument)
{
    static struct rt_lock lock;

    (void)task, (void)argument;
    rt_lock_init(&lock, "shard 7", RON_RANK_shard);
    rt_lock_take(&lock);
    rt_panic("half done");
}

static enum ron_err leave_cleanup(struct rt_task *task, void *argument)
{
    static struct rt_cleanup cleanup;

    (void)task, (void)argument;
    rt_cleanup_push(&cleanup, leave_mark, NULL);
    return RON_ERR_OK;
}

static void run_to_death(rt_task_fn *fn) RON_BLOCKS
{
    (void)join(spawn(make(1), fn, RT_RESTART_NEVER));
}

static void panic_misuse_dies(void **state) RON_BLOCKS
{
    (void)state;
    assert_dies(run_to_death(panic_with_lock), "panic with a lock held: half done");
    assert_dies(run_to_death(panic_with_lock), "task subject, locks shard 7");
    assert_dies(run_to_death(leave_cleanup), "frame.cleanups == NULL");
    assert_dies(rt_panic("alone"), "panic outside a task: alone");
}

/* Both tasks stay until the abort has woken both. */
static enum ron_err run_until_aborted_and_woken(struct rt_task *task, void *argument) RON_BLOCKS
{
    (void)argument;
    (void)rt_atomic_add_u32(&runs_count, 1);
    while (!rt_task_aborted(task) || rt_atomic_load_u32(&wakes_count) < 4)
        sh_sleep_until(rt_now_ns() + 100000);
    return RON_ERR_CANCELED;
}

static enum ron_err run_until_released(struct rt_task *task, void *argument) RON_BLOCKS
{
    (void)task, (void)argument;
    (void)rt_atomic_add_u32(&runs_count, 1);
    while (rt_atomic_load_u32(&release) == 0)
        sh_sleep_until(rt_now_ns() + 100000);
    return RON_ERR_OK;
}

static void stop_cancels_and_wakes(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(4);
    struct rt_task_options options = {.kind = "worker", .name = "late", .owner = "test"};
    struct rt_task_info infos[4];
    struct rt_task *task = NULL;
    struct ron_errinfo info = {0};
    bool shutdown = true;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        (void)spawn(supervisor, run_until_canceled, RT_RESTART_ON_FAILURE);
    await_runs(3);
    assert_int_equal(rt_supervisor_get_tasks(supervisor, infos, 4), 3);
    assert_int_equal(infos[0].state, RT_TASK_RUNNING);
    assert_true(infos[0].beat_ns > 0);
    (void)rt_watch_get(rt_supervisor_shutdown(supervisor), &shutdown);
    assert_false(shutdown);
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    (void)rt_watch_get(rt_supervisor_shutdown(supervisor), &shutdown);
    assert_true(shutdown);
    assert_int_equal(rt_supervisor_get_tasks(supervisor, infos, 4), 0);
    assert_int_equal(counters_of(supervisor).canceled_count, 3);
    assert_int_equal(counters_of(supervisor).aborted_count, 0);
    assert_int_equal(counters_of(supervisor).leaked_count, 0);
    options.fn = finish;
    support_assert_error(rt_task_spawn(supervisor, &options, &task, &info), &info, RON_ERR_CANCELED,
                         "stopping");
    rt_supervisor_free(supervisor);
}

static void stop_aborts_after_the_deadline(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(4);

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        (void)spawn(supervisor, run_until_aborted_and_woken, RT_RESTART_ON_FAILURE);
    await_runs(2);
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(5), NULL));
    assert_int_equal(counters_of(supervisor).aborted_count, 2);
    assert_int_equal(counters_of(supervisor).canceled_count, 2);
    assert_int_equal(counters_of(supervisor).leaked_count, 0);
    assert_int_equal(rt_atomic_load_u32(&wakes_count), 4); /* by the cancel, then by the abort */
    rt_supervisor_free(supervisor);
}

static void stop_counts_the_leaked(void **state) RON_BLOCKS
{
    struct rt_supervisor *supervisor = make(4);
    struct ron_errinfo info = {0};
    uint64_t before_ns = rt_now_ns(), live_count;
    struct rt_task_info task;

    (void)state;
    (void)spawn(supervisor, run_until_released, RT_RESTART_ON_FAILURE);
    (void)spawn(supervisor, run_until_canceled, RT_RESTART_ON_FAILURE);
    await_runs(2);
    support_assert_error(rt_supervisor_stop(supervisor, (struct rt_deadline){0}, &info), &info,
                         RON_ERR_TIMEOUT, "1 tasks did not end");
    assert_true(rt_now_ns() - before_ns >= RT_ABORT_GRACE_MS * RT_NS_PER_MS);
    assert_int_equal(counters_of(supervisor).leaked_count, 1);
    assert_true(counters_of(supervisor).aborted_count >= 1);
    assert_int_equal(counters_of(supervisor).canceled_count, 1);
    assert_int_equal(rt_supervisor_get_tasks(supervisor, &task, 1), 1);
    assert_int_equal(task.state, RT_TASK_LEAKED);
    live_count = ron_mem_live_count();
    assert_dies(rt_supervisor_free(supervisor), "state == RT_TASK_FREE");
    /* A leaked task may end after all; it finds its supervisor alive. */
    rt_atomic_store_u32(&release, 1);
    while (counters_of(supervisor).completed_count == 0)
        sh_sleep_until(rt_now_ns() + 100000);
    /* Nobody joins its thread, which gives its memory back itself. */
    for (unsigned i = 0; i < 20000 && ron_mem_live_count() == live_count; i++)
        sh_sleep_until(rt_now_ns() + 100000);
    assert_int_equal(ron_mem_live_count(), live_count - 1);
}

static void cancel_ends_a_backoff(void **state) RON_BLOCKS
{
    static const struct rt_backoff_policy slow = {.base_ns = 3600 * RT_NS_PER_S,
                                                  .cap_ns = 3600 * RT_NS_PER_S};
    const struct rt_supervisor_options options = {
        .name = "root", .owner = "test", .tasks_max = 1, .backoff = &slow};
    struct rt_supervisor *supervisor = NULL;
    struct rt_task_info info = {0};
    struct rt_task *task;
    enum ron_err result;

    (void)state;
    assert_ok(rt_supervisor_new(&options, &supervisor, NULL));
    task = spawn(supervisor, fail_always, RT_RESTART_ON_FAILURE);
    while (info.state != RT_TASK_BACKOFF) {
        assert_int_equal(rt_supervisor_get_tasks(supervisor, &info, 1), 1);
        sh_yield();
    }
    assert_int_equal(rt_task_join(task, rt_deadline_after_ms(1), &result, NULL), RON_ERR_TIMEOUT);
    rt_task_cancel(task);
    assert_int_equal(join(task), RON_ERR_IO);
    assert_int_equal(rt_atomic_load_u32(&runs_count), 1);
    stop_and_free(supervisor);
}

static void supervisor_bounds_tasks_and_kinds(void **state) RON_BLOCKS
{
    static char kinds[RT_TASK_KINDS_MAX][4];
    struct rt_supervisor *supervisor = make(1);
    struct rt_task_options options = {
        .kind = "worker", .name = "one more", .owner = "test", .fn = finish, .argument = &trail};
    struct rt_task *task = spawn(supervisor, run_until_canceled, RT_RESTART_ON_FAILURE);
    struct rt_task *refused = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    support_assert_error(rt_task_spawn(supervisor, &options, &refused, &info), &info, RON_ERR_BUSY,
                         "no room for task one more");
    rt_task_cancel(task);
    await_state(supervisor,
                RT_TASK_ENDED); /* ended, but nobody has joined it: the slot is not free yet */
    assert_int_equal(rt_task_spawn(supervisor, &options, &refused, NULL), RON_ERR_BUSY);
    assert_int_equal(join(task), RON_ERR_CANCELED);
    for (unsigned i = 1; i < RT_TASK_KINDS_MAX; i++) {
        kinds[i][0] = 'k';
        kinds[i][1] = (char)('0' + i);
        options.kind = kinds[i];
        assert_ok(rt_task_spawn(supervisor, &options, &task, NULL));
        assert_int_equal(join(task), RON_ERR_OK);
    }
    options.kind = "one kind more";
    support_assert_error(rt_task_spawn(supervisor, &options, &refused, &info), &info, RON_ERR_BUSY,
                         "one kind more");
    stop_and_free(supervisor);
}

static void counters_are_kept_by_kind(void **state) RON_BLOCKS
{
    static const char *const kinds[] = {"worker", "other", "third"};
    struct rt_supervisor *supervisor = make(1);
    struct rt_task_options options = {
        .name = "subject", .owner = "test", .fn = finish, .argument = &trail};
    struct rt_task_counters counters[4] = {
        {.kind = "none"}, {.kind = "none"}, {.kind = "none"}, {.kind = "none"}};
    struct rt_task *task = NULL;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        options.kind = kinds[i % 3];
        assert_ok(rt_task_spawn(supervisor, &options, &task, NULL));
        assert_int_equal(join(task), RON_ERR_OK);
    }
    assert_int_equal(rt_supervisor_get_counters(supervisor, counters, 2), 3); /* two copied */
    assert_string_equal(counters[2].kind, "none");
    assert_int_equal(rt_supervisor_get_counters(supervisor, counters, 4), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(counters[i].kind, kinds[i]);
        assert_int_equal(counters[i].spawned_count, 2);
        assert_int_equal(counters[i].completed_count, 2);
    }
    assert_string_equal(counters[3].kind, "none");
    stop_and_free(supervisor);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_supervisor_options options = {.name = "root", .owner = "test", .tasks_max = 2};
    const struct rt_task_options task_options = {
        .kind = "worker", .name = "subject", .owner = "test", .fn = finish, .argument = &trail};
    struct rt_supervisor *supervisor = NULL;
    struct rt_task *task;
    enum ron_err err = rt_supervisor_new(&options, &supervisor, reterr);

    (void)context;
    if (err != RON_ERR_OK)
        return err;
    err = rt_task_spawn(supervisor, &task_options, &task, reterr);
    stop_and_free(supervisor);
    return err;
}

static void supervisor_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 9), 4);
}

static void backoff_grows_to_its_cap(void **state)
{
    const struct rt_backoff_policy *policy = &rt_supervisor_backoff_default;
    const struct rt_backoff_policy fixed = {.base_ns = 50, .jitter_ns = 20, .cap_ns = 1000};
    const struct rt_backoff_policy bare = {.base_ns = 50, .cap_ns = 1000};

    (void)state; /* covers: LED-C13 */
    assert_int_equal(rt_backoff_delay_ns(policy, 0, 0), 100 * RT_NS_PER_MS);
    assert_int_equal(rt_backoff_delay_ns(policy, 0, 300 * RT_NS_PER_MS), 400 * RT_NS_PER_MS);
    assert_int_equal(rt_backoff_delay_ns(policy, 0, 300 * RT_NS_PER_MS + 1), 100 * RT_NS_PER_MS);
    assert_int_equal(rt_backoff_delay_ns(policy, 1, 600 * RT_NS_PER_MS), 800 * RT_NS_PER_MS);
    assert_int_equal(rt_backoff_delay_ns(policy, 3, 0), 800 * RT_NS_PER_MS);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t delay_ns = rt_backoff_delay_ns(policy, i, UINT64_C(0x123456789abcdef) * i);
        assert_true(delay_ns <= 5000 * RT_NS_PER_MS);
        assert_true(delay_ns >= 100 * RT_NS_PER_MS);
    }
    assert_int_equal(rt_backoff_delay_ns(policy, 60, 0), 4700 * RT_NS_PER_MS);
    assert_int_equal(rt_backoff_delay_ns(&fixed, 2, 20), 220);
    assert_int_equal(rt_backoff_delay_ns(&fixed, 2, 21), 200);
    assert_int_equal(rt_backoff_delay_ns(&fixed, 64, 0), 980);
    assert_int_equal(rt_backoff_delay_ns(&fixed, 64, 20), 1000);
    assert_int_equal(rt_backoff_delay_ns(&bare, 3, 12345), 400);
    assert_int_equal(rt_backoff_delay_ns(&bare, 5, 12345), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(task_runs_once_and_is_joined, reset),
        cmocka_unit_test_setup(task_gives_up_on_the_sixth_failure, reset),
        cmocka_unit_test_setup(task_that_gave_up_is_revived, reset),
        cmocka_unit_test_setup(only_what_gave_up_is_revived, reset),
        cmocka_unit_test_setup(task_that_runs_once_is_not_restarted, reset),
        cmocka_unit_test_setup(panic_runs_cleanups_newest_first_and_restarts, reset),
        cmocka_unit_test_setup(panic_message_reaches_the_escalation, reset),
        cmocka_unit_test_setup(panic_misuse_dies, reset),
        cmocka_unit_test_setup(stop_cancels_and_wakes, reset),
        cmocka_unit_test_setup(stop_aborts_after_the_deadline, reset),
        cmocka_unit_test_setup(cancel_ends_a_backoff, reset),
        cmocka_unit_test_setup(supervisor_bounds_tasks_and_kinds, reset),
        cmocka_unit_test_setup(counters_are_kept_by_kind, reset),
        cmocka_unit_test_setup(supervisor_survives_each_failed_allocation, reset),
        cmocka_unit_test(backoff_grows_to_its_cap),
        cmocka_unit_test_setup(stop_counts_the_leaked, reset), /* last: its supervisor stays */
    };
    return cmocka_run_group_tests_name("rt_task", tests, NULL, NULL);
}
