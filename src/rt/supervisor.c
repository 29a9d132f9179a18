/*
 * supervisor.c - the outside of tasks: slots, spawn, cancel, stop, join, counters. See
 * supervisor.h.
 *
 * Lifetime of a slot: FREE -> RUNNING (spawn) -> ENDED (its thread's last act) -> FREE (reaped by
 * join or stop). RUNNING <-> GAVE_UP (revived); its thread waits, and ends when it is reaped.
 * LEAKED is final.
 */
#include "rt/supervisor.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/registry.h"
#include "rt/task_impl.h"

const struct rt_backoff_policy rt_supervisor_backoff_default = {
    .base_ns = 100 * RT_NS_PER_MS,
    .jitter_ns = 300 * RT_NS_PER_MS,
    .cap_ns = 5000 * RT_NS_PER_MS,
    .jitter_grows = true,
};

static enum ron_err make_shutdown(struct rt_supervisor *supervisor, struct ron_errinfo *reterr)
{
    const struct rt_watch_options options = {
        .name = "shutdown", .owner = supervisor->options.owner, .value_size = sizeof(bool)};
    const bool initial = false;

    return rt_watch_new(&options, &initial, &supervisor->shutdown, reterr);
}

enum ron_err rt_supervisor_new(const struct rt_supervisor_options *options,
                               struct rt_supervisor **ret_supervisor, struct ron_errinfo *reterr)
{
    struct rt_supervisor *supervisor = ron_mem_alloc(sizeof(*supervisor));
    struct rt_task *tasks = ron_mem_alloc_array(options->tasks_max, sizeof(*tasks));
    enum ron_err err;

    RON_ASSERT(options->tasks_max > 0);
    RON_ASSERT(options->tasks_max <= RT_TASKS_MAX);
    if (supervisor == NULL || tasks == NULL) {
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "supervisor %s of %u tasks", options->name,
                       options->tasks_max);
    } else {
        supervisor->options = *options;
        supervisor->backoff = options->backoff != NULL ? *options->backoff
                                                       : rt_supervisor_backoff_default;
        err = make_shutdown(supervisor, reterr);
    }
    if (err != RON_ERR_OK) {
        ron_mem_free(tasks);
        ron_mem_free(supervisor);
        return err;
    }
    for (uint32_t i = 0; i < options->tasks_max; i++)
        tasks[i].supervisor = supervisor;
    supervisor->tasks = tasks;
    rt_lock_init(&supervisor->lock, options->name, RON_RANK_supervisor);
    rt_cond_init(&supervisor->event_cond, options->name);
    supervisor->magic = SUPERVISOR_MAGIC;
    *ret_supervisor = supervisor;
    return RON_ERR_OK;
}

struct rt_supervisor *rt_supervisor_free(struct rt_supervisor *supervisor)
{
    if (supervisor == NULL)
        return NULL;
    supervisor_lock(supervisor);
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++)
        RON_ASSERT(supervisor->tasks[i].state == RT_TASK_FREE);
    supervisor_unlock(supervisor);
    supervisor->magic = ~SUPERVISOR_MAGIC;
    rt_watch_free(supervisor->shutdown);
    rt_cond_fini(&supervisor->event_cond);
    rt_lock_fini(&supervisor->lock);
    ron_mem_free(supervisor->tasks);
    return ron_mem_free(supervisor);
}

struct rt_watch *rt_supervisor_shutdown(struct rt_supervisor *supervisor)
{
    RON_ASSERT(supervisor->magic == SUPERVISOR_MAGIC);
    return supervisor->shutdown;
}

/* The counters of a kind, new if need be; NULL when there are too many kinds. */
static struct rt_task_counters *counters_of(struct rt_supervisor *supervisor, const char *kind)
    RON_NEEDS(supervisor)
{
    for (size_t i = 0; i < supervisor->kinds_count; i++) {
        if (strcmp(supervisor->counters[i].kind, kind) == 0)
            return &supervisor->counters[i];
    }
    if (supervisor->kinds_count == RT_TASK_KINDS_MAX)
        return NULL;
    supervisor->counters[supervisor->kinds_count].kind = kind;
    return &supervisor->counters[supervisor->kinds_count++];
}

/* Take a free slot for a task that is about to be spawned. */
static enum ron_err reserve(struct rt_supervisor *supervisor, const struct rt_task_options *options,
                            struct rt_task **ret_task) RON_NEEDS(supervisor)
{
    struct rt_task_counters *counters = counters_of(supervisor, options->kind);
    struct rt_task *task = NULL;

    if (supervisor->stopping)
        return RON_ERR_CANCELED;
    for (uint32_t i = 0; i < supervisor->options.tasks_max && task == NULL; i++) {
        if (supervisor->tasks[i].state == RT_TASK_FREE)
            task = &supervisor->tasks[i];
    }
    if (task == NULL || counters == NULL)
        return RON_ERR_BUSY;
    *task = (struct rt_task){
        .supervisor = supervisor,
        .options = *options,
        .state = RT_TASK_RUNNING,
        .spawning = true,
        .counters = counters,
    };
    *ret_task = task;
    return RON_ERR_OK;
}

static enum ron_err task_register(const struct rt_task *task, struct ron_errinfo *reterr)
{
    const struct rt_registry_entry entry = {
        .object = task,
        .kind = RT_KIND_TASK,
        .name = task->options.name,
        .policy = task->options.restart == RT_RESTART_NEVER ? "runs once" : "restarted on failure",
        .owner = task->options.owner,
        .capacity = 1,
    };
    return rt_registry_add(&entry, reterr);
}

/* Give the reserved task its thread, or free its slot. */
static enum ron_err start(struct rt_task *task, struct ron_errinfo *reterr)
{
    struct rt_supervisor *supervisor = task->supervisor;
    struct sh_thread *thread = NULL;
    enum ron_err err = task_register(task, reterr);

    if (err == RON_ERR_OK) {
        err = sh_spawn(task->options.name, rt_task_main, task, &thread, reterr);
        if (err != RON_ERR_OK)
            rt_registry_remove(task);
    }
    supervisor_lock(supervisor);
    task->spawning = false;
    task->thread = thread;
    if (err == RON_ERR_OK)
        task->counters->spawned_count++;
    else
        task->state = RT_TASK_FREE;
    rt_cond_broadcast(&supervisor->event_cond);
    supervisor_unlock(supervisor);
    return err;
}

enum ron_err rt_task_spawn(struct rt_supervisor *supervisor, const struct rt_task_options *options,
                           struct rt_task **ret_task, struct ron_errinfo *reterr)
{
    struct rt_task *task = NULL;
    enum ron_err err;

    RON_ASSERT(options->kind != NULL);
    RON_ASSERT(options->name != NULL);
    RON_ASSERT(options->fn != NULL);
    supervisor_lock(supervisor);
    err = reserve(supervisor, options, &task);
    supervisor_unlock(supervisor);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "supervisor %s %s task %s of kind %s",
                        supervisor->options.name,
                        err == RON_ERR_BUSY ? "has no room for" : "is stopping; refused",
                        options->name, options->kind);
    err = start(task, reterr);
    if (err == RON_ERR_OK)
        *ret_task = task;
    return err;
}

/* Call the wake hook, if the task has one and still runs. */
static void wake(struct rt_task *task)
{
    rt_task_wake_fn *hook = NULL;
    void *argument = NULL;

    supervisor_lock(task->supervisor);
    if (task_alive(task)) {
        hook = task->options.wake;
        argument = task->options.argument;
    }
    supervisor_unlock(task->supervisor);
    if (hook != NULL)
        hook(argument);
}

void rt_task_cancel(struct rt_task *task)
{
    supervisor_lock(task->supervisor);
    rt_atomic_store_u32(&task->canceled, 1);
    rt_cond_broadcast(&task->supervisor->event_cond); /* it may sleep or back off */
    supervisor_unlock(task->supervisor);
    wake(task);
}

void rt_supervisor_cancel(struct rt_supervisor *supervisor)
{
    const bool shutdown = true;

    supervisor_lock(supervisor);
    supervisor->stopping = true;
    supervisor_unlock(supervisor);
    rt_watch_set(supervisor->shutdown, &shutdown);
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++)
        rt_task_cancel(&supervisor->tasks[i]);
}

static unsigned count_alive(const struct rt_supervisor *supervisor) RON_NEEDS(supervisor)
{
    unsigned alive_count = 0;

    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++) {
        const struct rt_task *task = &supervisor->tasks[i];
        alive_count += task_alive(task) || task->joining ? 1 : 0;
    }
    return alive_count;
}

/* Wait until no task is alive; how many still are at the deadline. */
static unsigned await_all(struct rt_supervisor *supervisor, struct rt_deadline deadline) RON_BLOCKS
{
    unsigned alive_count;
    bool woken = true;

    supervisor_lock(supervisor);
    while ((alive_count = count_alive(supervisor)) > 0 && woken)
        woken = rt_cond_wait(&supervisor->event_cond, &supervisor->lock, deadline.at_ns);
    supervisor_unlock(supervisor);
    return alive_count;
}

static void abort_all(struct rt_supervisor *supervisor)
{
    supervisor_lock(supervisor);
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++) {
        struct rt_task *task = &supervisor->tasks[i];

        if (task_alive(task) && !rt_task_aborted(task)) {
            rt_atomic_store_u32(&task->aborted, 1);
            task->counters->aborted_count++;
        }
    }
    supervisor_unlock(supervisor); /* whoever sleeps or backs off was woken by the cancel */
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++)
        wake(&supervisor->tasks[i]);
}

/* The thread of a task that has ended, for its one caller to join; NULL if there is none: it runs,
 * its slot is free, or someone else joins it. From here on it cannot be revived. */
static struct sh_thread *claim(struct rt_task *task) RON_NEEDS(supervisor)
{
    if ((task->state != RT_TASK_ENDED && task->state != RT_TASK_GAVE_UP) || task->joining)
        return NULL;
    RON_ASSERT(task->thread != NULL);
    task->joining = true;
    rt_atomic_store_u32(&task->canceled, 1); /* it may wait to be revived */
    rt_cond_broadcast(&task->supervisor->event_cond);
    return RON_TAKE(task->thread);
}

/* Join a claimed thread and free the task's slot. */
static void join_claimed(struct rt_task *task, struct sh_thread *thread) RON_BLOCKS
{
    struct rt_supervisor *supervisor = task->supervisor;

    if (!sh_join(thread, SH_NEVER)) /* at once: it has nothing left to do */
        RON_UNREACHABLE();
    rt_registry_remove(task);
    supervisor_lock(supervisor);
    task->joining = false;
    task->down = false;
    task->state = RT_TASK_FREE;
    rt_cond_broadcast(&supervisor->event_cond);
    supervisor_unlock(supervisor);
}

static void reap(struct rt_task *task) RON_BLOCKS
{
    struct sh_thread *thread;

    supervisor_lock(task->supervisor);
    thread = claim(task);
    supervisor_unlock(task->supervisor);
    if (thread != NULL)
        join_claimed(task, thread);
}

enum ron_err rt_task_revive(struct rt_task *task, struct ron_errinfo *reterr)
{
    struct rt_supervisor *supervisor = task->supervisor;
    bool able;

    supervisor_lock(supervisor);
    able = task->state == RT_TASK_GAVE_UP && !rt_task_canceled(task);
    if (able) {
        task->state = RT_TASK_RUNNING;
        task->down = false;
        task->recent_count = 0;
        task->counters->revived_count++;
        rt_cond_broadcast(&supervisor->event_cond);
    }
    supervisor_unlock(supervisor);
    if (!able)
        return ron_fail(reterr, RON_ERR_CONFLICT, "task %s has not given up, or is canceled",
                        task->options.name);
    return RON_ERR_OK;
}

/* Count a task that will not end, and let its thread go. */
static void leak(struct rt_task *task)
{
    struct sh_thread *thread = NULL;

    supervisor_lock(task->supervisor);
    if (task_alive(task)) {
        task->state = RT_TASK_LEAKED;
        task->counters->leaked_count++;
        thread = RON_TAKE(task->thread);
    }
    supervisor_unlock(task->supervisor);
    if (thread != NULL)
        sh_detach(thread);
}

enum ron_err rt_supervisor_stop(struct rt_supervisor *supervisor, struct rt_deadline deadline,
                                struct ron_errinfo *reterr)
{
    unsigned alive_count;

    rt_assert_no_lock_held();
    rt_supervisor_cancel(supervisor);
    alive_count = await_all(supervisor, deadline);
    if (alive_count > 0) {
        abort_all(supervisor);
        alive_count = await_all(supervisor, rt_deadline_after_ms(RT_ABORT_GRACE_MS));
    }
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++) {
        leak(&supervisor->tasks[i]); /* if it is still alive */
        reap(&supervisor->tasks[i]);
    }
    (void)await_all(supervisor, RT_DEADLINE_NEVER); /* those whom others join: at once */
    if (alive_count > 0)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "supervisor %s: %u tasks did not end",
                        supervisor->options.name, alive_count);
    return RON_ERR_OK;
}

enum ron_err rt_task_join(struct rt_task *task, struct rt_deadline deadline,
                          enum ron_err *ret_result, struct ron_errinfo *reterr)
{
    struct rt_supervisor *supervisor = task->supervisor;
    struct sh_thread *thread;
    enum ron_err result;
    bool present, woken = true;

    rt_assert_no_lock_held();
    supervisor_lock(supervisor);
    RON_ASSERT(task->state != RT_TASK_FREE);
    while ((present = task_alive(task) || task->joining) && woken) /* a stop may join it, too */
        woken = rt_cond_wait(&supervisor->event_cond, &supervisor->lock, deadline.at_ns);
    result = task->result;
    thread = present ? NULL : claim(task); /* at once: nobody revives it in between */
    supervisor_unlock(supervisor);
    if (present)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "task %s did not end in time", task->options.name);
    if (thread != NULL)
        join_claimed(task, thread);
    *ret_result = result;
    return RON_ERR_OK;
}

uint32_t rt_supervisor_down_count(struct rt_supervisor *supervisor)
{
    uint32_t down_count = 0;

    supervisor_lock(supervisor);
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++)
        down_count += supervisor->tasks[i].down ? 1 : 0;
    supervisor_unlock(supervisor);
    return down_count;
}

size_t rt_supervisor_get_counters(struct rt_supervisor *supervisor,
                                  struct rt_task_counters *counters, size_t counters_max)
{
    size_t kinds_count;

    supervisor_lock(supervisor);
    kinds_count = supervisor->kinds_count;
    for (size_t i = 0; i < kinds_count && i < counters_max; i++)
        counters[i] = supervisor->counters[i];
    supervisor_unlock(supervisor);
    return kinds_count;
}

size_t rt_supervisor_get_tasks(struct rt_supervisor *supervisor, struct rt_task_info *infos,
                               size_t infos_max)
{
    size_t count = 0;

    supervisor_lock(supervisor);
    for (uint32_t i = 0; i < supervisor->options.tasks_max; i++) {
        const struct rt_task *task = &supervisor->tasks[i];

        if (task->state == RT_TASK_FREE)
            continue;
        if (count < infos_max)
            infos[count] = (struct rt_task_info){
                .kind = task->options.kind,
                .name = task->options.name,
                .state = task->state,
                .restarted_count = task->restarted_count,
                .beat_ns = rt_atomic_load_u64(&task->beat_ns),
            };
        count++;
    }
    supervisor_unlock(supervisor);
    return count;
}
