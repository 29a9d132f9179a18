/*
 * supervision.c - tasks that fail: restarts, their backoff, the sixth failure, and a stop at any
 * moment. All in virtual time.
 *
 * A body that is wanted again runs again, after its backoff and not before; the sixth failure in a
 * minute is the last: the hook is called once, readiness goes off once, nothing spins. A stop ends
 * a backoff at once. covers: LED-C13 LED-V19
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

#define MINUTE_NS (60 * RT_NS_PER_S)

enum { RUNS_MAX = 12, LAST_FAILURE = 6 };

struct shift {
    unsigned failures_count;      /* runs that fail before one succeeds */
    unsigned runs_count;          /* begun */
    uint64_t began_ns[RUNS_MAX];  /* of each run */
    uint64_t failed_ns[RUNS_MAX]; /* of each run that failed */
    unsigned escalated_count;
    struct rt_watch *ready;
    struct rt_supervisor *supervisor;
    struct rt_task *task;
    bool waits_for_minute, minute_over;
    bool waits_for_cancel;
};

/* When the sixth run shall fail: just within a minute of the first failure, or a minute after the
 * first restart. */
static uint64_t last_moment(const struct shift *shift)
{
    return shift->minute_over ? shift->began_ns[1] + MINUTE_NS
                              : shift->failed_ns[0] + MINUTE_NS - 1;
}

/* Fails by error and by panic in turns. */
static enum ron_err body(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct shift *shift = argument;
    unsigned run = shift->runs_count++;

    RON_ASSERT(run < RUNS_MAX);
    shift->began_ns[run] = rt_now_ns();
    if (shift->waits_for_cancel && rt_task_sleep(task, RT_DEADLINE_NEVER))
        return RON_ERR_CANCELED;
    if (shift->waits_for_minute && run + 1 == LAST_FAILURE &&
        rt_task_sleep(task, (struct rt_deadline){last_moment(shift)}))
        return RON_ERR_CANCELED;
    if (run >= shift->failures_count)
        return RON_ERR_OK;
    shift->failed_ns[run] = rt_now_ns();
    if (run % 2 == 1)
        rt_panic("run %u", run);
    return RON_ERR_IO;
}

static void escalate(void *context, const struct rt_task *task, const struct ron_errinfo *info)
{
    struct shift *shift = context;
    const bool ready = false;

    RON_ASSERT(task == rt_task_self());
    RON_ASSERT(info->err != RON_ERR_OK);
    shift->escalated_count++;
    rt_watch_set(shift->ready, &ready);
}

static struct shift *begin(unsigned failures_count)
{
    struct shift *shift = model_alloc(sizeof(*shift));
    const struct rt_supervisor_options options = {.name = "supervisor",
                                                  .owner = "model",
                                                  .tasks_max = 1,
                                                  .escalate = escalate,
                                                  .escalate_context = shift};
    const struct rt_watch_options watch_options = {
        .name = "ready", .owner = "model", .value_size = sizeof(bool)};
    const bool ready = true;

    rt_init();
    shift->failures_count = failures_count;
    model_must(rt_watch_new(&watch_options, &ready, &shift->ready, NULL));
    model_must(rt_supervisor_new(&options, &shift->supervisor, NULL));
    return shift;
}

static void start_task(struct shift *shift)
{
    const struct rt_task_options options = {
        .kind = "worker", .name = "worker", .owner = "model", .fn = body, .argument = shift};

    model_must(rt_task_spawn(shift->supervisor, &options, &shift->task, NULL));
}

/* Restart n waits 100-400 ms times 2^n, and no more than 5 s. */
static void check_backoffs(const struct shift *shift)
{
    for (unsigned i = 1; i < shift->runs_count; i++) {
        uint64_t waited_ns = shift->began_ns[i] - shift->failed_ns[i - 1];
        uint64_t shortest_ns = (100 * RT_NS_PER_MS) << (i - 1);
        uint64_t longest_ns = (400 * RT_NS_PER_MS) << (i - 1);

        if (longest_ns > 5 * RT_NS_PER_S)
            longest_ns = 5 * RT_NS_PER_S;
        RON_ASSERT(shift->began_ns[i] >= shift->failed_ns[i - 1]);
        RON_ASSERT(waited_ns >= shortest_ns);
        RON_ASSERT(waited_ns <= longest_ns);
    }
}

static void check_counters(const struct shift *shift)
{
    struct rt_task_counters counters = {0};
    size_t kinds_count = rt_supervisor_get_counters(shift->supervisor, &counters, 1);
    uint64_t ends_count = counters.completed_count + counters.failed_count +
                          counters.panicked_count + counters.canceled_count;

    RON_ASSERT(kinds_count == 1);
    RON_ASSERT(counters.spawned_count == 1);
    RON_ASSERT(ends_count == shift->runs_count);
    RON_ASSERT(counters.restarted_count + 1 == shift->runs_count);
    RON_ASSERT(counters.escalated_count == shift->escalated_count);
    RON_ASSERT(counters.leaked_count == 0);
}

static void end(struct shift *shift)
{
    rt_supervisor_free(shift->supervisor);
    rt_watch_free(shift->ready);
    ron_mem_free(shift);
}

/* ---- fails some times, then does its work ---- */

static void restart_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(sim_choose(LAST_FAILURE, "failures"));
    enum ron_err result = RON_ERR_INTERNAL;

    (void)argument;
    start_task(shift);
    model_must(rt_task_join(shift->task, RT_DEADLINE_NEVER, &result, NULL));
    RON_ASSERT(result == RON_ERR_OK);
    RON_ASSERT(shift->runs_count == shift->failures_count + 1);
    RON_ASSERT(shift->escalated_count == 0);
    check_backoffs(shift);
    check_counters(shift);
    sim_outcome(shift->runs_count);
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    end(shift);
}

/* ---- fails for ever ---- */

/* Sees readiness go off, once. */
static void probe_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = argument;
    bool ready = true;
    uint64_t version = 0;
    enum ron_err err;

    model_must(rt_watch_wait(shift->ready, 1, RT_DEADLINE_NEVER, &ready, &version, NULL));
    RON_ASSERT(!ready);
    err = rt_watch_wait(shift->ready, version, RT_DEADLINE_NEVER, &ready, &version, NULL);
    RON_ASSERT(err == RON_ERR_CANCELED);
    RON_ASSERT(version == 2);
}

static void escalation_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(RUNS_MAX);
    struct sh_thread *probe = model_spawn("probe", probe_fn, shift);

    (void)argument;
    start_task(shift);
    sh_sleep_until(rt_now_ns() + 2 * MINUTE_NS);
    check_counters(shift);
    RON_ASSERT(shift->runs_count == LAST_FAILURE); /* and no run since */
    RON_ASSERT(shift->escalated_count == 1);
    check_backoffs(shift);
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    rt_watch_close(shift->ready);
    model_join(probe);
    RON_ASSERT(shift->runs_count == LAST_FAILURE);
    end(shift);
}

/* ---- the minute: a failure after it is not the sixth ---- */

static void restart_window_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(LAST_FAILURE);
    enum ron_err result = RON_ERR_OK;

    (void)argument;
    shift->waits_for_minute = true;
    shift->minute_over = sim_choose(2, "the minute is over") == 1;
    start_task(shift);
    model_must(rt_task_join(shift->task, RT_DEADLINE_NEVER, &result, NULL));
    RON_ASSERT(shift->escalated_count == (shift->minute_over ? 0 : 1));
    RON_ASSERT(shift->runs_count == (shift->minute_over ? LAST_FAILURE + 1 : LAST_FAILURE));
    RON_ASSERT((result == RON_ERR_OK) == shift->minute_over);
    sim_outcome(shift->minute_over);
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    end(shift);
}

/* ---- a stop at any moment ---- */

static void stopper_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = argument;
    /* At once, at the end of the first backoff or in the second, or after all of them. */
    static const uint64_t after_ms[] = {0, 300, 700, 120000};
    uint64_t stopped_ns = rt_now_ns() + after_ms[sim_choose(4, "stop after")] * RT_NS_PER_MS;

    sh_sleep_until(stopped_ns);
    stopped_ns = rt_now_ns();
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(rt_now_ns() == stopped_ns); /* nobody waits out a backoff */
}

static void restart_stop_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(RUNS_MAX);
    struct sh_thread *stopper;
    unsigned runs_count;
    uint64_t version;

    (void)argument;
    start_task(shift);
    stopper = model_spawn("stopper", stopper_fn, shift);
    model_join(stopper);
    runs_count = shift->runs_count;
    RON_ASSERT(runs_count >= 1);
    RON_ASSERT(runs_count <= LAST_FAILURE);
    RON_ASSERT(shift->escalated_count == (runs_count == LAST_FAILURE ? 1 : 0));
    sh_sleep_until(rt_now_ns() + MINUTE_NS);
    RON_ASSERT(shift->runs_count == runs_count);
    version = rt_watch_get(rt_supervisor_shutdown(shift->supervisor), NULL);
    RON_ASSERT(version == 2);
    check_backoffs(shift);
    check_counters(shift);
    sim_outcome(runs_count);
    end(shift);
}

/* ---- the way back: revived, a task has all of its restarts again ---- */

/* Revives the task as soon as it has given up, while the supervisor may be stopping. */
static void reviver_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = argument;
    bool ready = true;
    uint64_t version = 1;

    model_must(rt_watch_wait(shift->ready, 1, RT_DEADLINE_NEVER, &ready, &version, NULL));
    while (rt_task_revive(shift->task, NULL) != RON_ERR_OK && !rt_task_canceled(shift->task))
        sh_yield(); /* the hook may still run */
}

static void revive_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(LAST_FAILURE + sim_choose(LAST_FAILURE, "failures after that"));
    struct sh_thread *reviver;
    enum ron_err result = RON_ERR_INTERNAL;
    struct rt_task_counters counters;

    (void)argument;
    start_task(shift);
    reviver = model_spawn("reviver", reviver_fn, shift);
    model_join(reviver);
    model_must(rt_task_join(shift->task, RT_DEADLINE_NEVER, &result, NULL));
    (void)rt_supervisor_get_counters(shift->supervisor, &counters, 1);
    RON_ASSERT(result == RON_ERR_OK);
    RON_ASSERT(shift->runs_count == shift->failures_count + 1);
    RON_ASSERT(shift->escalated_count == 1);
    RON_ASSERT(counters.revived_count == 1);
    RON_ASSERT(rt_supervisor_down_count(shift->supervisor) == 0);
    sim_outcome(shift->runs_count);
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    end(shift);
}

/* ---- a stop while it is being revived ---- */

static void revive_stop_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(LAST_FAILURE);
    struct sh_thread *reviver;
    bool ready = true;
    uint64_t version = 1;
    size_t tasks_count;

    (void)argument;
    start_task(shift);
    reviver = model_spawn("reviver", reviver_fn, shift);
    model_must(rt_watch_wait(shift->ready, 1, RT_DEADLINE_NEVER, &ready, &version, NULL));
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    tasks_count = rt_supervisor_get_tasks(shift->supervisor, NULL, 0);
    RON_ASSERT(tasks_count == 0);
    model_join(reviver);
    RON_ASSERT(shift->runs_count == LAST_FAILURE || shift->runs_count == LAST_FAILURE + 1);
    RON_ASSERT(rt_supervisor_down_count(shift->supervisor) == 0);
    sim_outcome(shift->runs_count);
    end(shift);
}

/* ---- a join while it is being revived: it takes the task as it is, or waits for its end ---- */

static void revive_join_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(LAST_FAILURE);
    struct sh_thread *reviver;
    enum ron_err result = RON_ERR_INTERNAL;
    size_t tasks_count;
    bool ready = true;
    uint64_t version = 1;

    (void)argument;
    start_task(shift);
    reviver = model_spawn("reviver", reviver_fn, shift);
    model_must(rt_watch_wait(shift->ready, 1, RT_DEADLINE_NEVER, &ready, &version, NULL));
    model_must(rt_task_join(shift->task, RT_DEADLINE_NEVER, &result, NULL));
    tasks_count = rt_supervisor_get_tasks(shift->supervisor, NULL, 0);
    RON_ASSERT(tasks_count == 0);
    RON_ASSERT(shift->runs_count == LAST_FAILURE + (result == RON_ERR_OK ? 1 : 0));
    sim_outcome(shift->runs_count);
    model_join(reviver);
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    end(shift);
}

/* ---- a join and a stop at once: both return when the task is gone ---- */

static void joiner_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = argument;
    enum ron_err result = RON_ERR_INTERNAL;

    size_t tasks_count;

    model_must(rt_task_join(shift->task, RT_DEADLINE_NEVER, &result, NULL));
    tasks_count = rt_supervisor_get_tasks(shift->supervisor, NULL, 0);
    RON_ASSERT(tasks_count == 0);
    RON_ASSERT(result == RON_ERR_CANCELED);
}

static void join_stop_fn(void *argument) RON_BLOCKS
{
    struct shift *shift = begin(0);
    struct sh_thread *joiner;
    size_t tasks_count;

    (void)argument;
    shift->waits_for_cancel = true;
    start_task(shift);
    joiner = model_spawn("joiner", joiner_fn, shift);
    sh_sleep_until(rt_now_ns() + RT_NS_PER_MS); /* the joiner waits */
    model_must(rt_supervisor_stop(shift->supervisor, RT_DEADLINE_NEVER, NULL));
    tasks_count = rt_supervisor_get_tasks(shift->supervisor, NULL, 0);
    RON_ASSERT(tasks_count == 0);
    model_join(joiner);
    end(shift);
}

static const struct model_case race_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
static const struct model_case cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = 2, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .random_seed = 7}},
    {.config = {.preemption_bound = 2, .random_seed = 99}},
};
MODEL(restart, "a task fails 0 to 5 times, then does its work", restart_fn, NULL, cases);
MODEL(restart_window, "the sixth failure just within a minute, or just after", restart_window_fn,
      NULL, cases);
MODEL(restart_stop, "a task that fails for ever, and a stop at any moment", restart_stop_fn, NULL,
      cases);
MODEL(escalation, "six failures turn readiness off once; then nothing moves", escalation_fn, NULL,
      cases);
MODEL(revive, "a task that gave up is revived: it may fail five times more", revive_fn, NULL,
      cases);
MODEL(revive_stop, "revived while the supervisor stops", revive_stop_fn, NULL, race_cases);
MODEL(revive_join, "revived while it is joined", revive_join_fn, NULL, race_cases);
MODEL(join_stop, "a join and a stop of one task: neither returns before it is gone", join_stop_fn,
      NULL, race_cases);
