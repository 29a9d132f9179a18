/*
 * task.c - the inside of a task: its runs, restarts, panics and cleanups. See task.h.
 *
 * A task restarts on its own thread: the frame that catches a panic also decides whether to run the
 * body again. So a restart needs no allocation, no new thread and no second party that could fail.
 * A task that gave up waits on its thread, too: reviving it cannot fail either.
 */
#include "rt/task.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "rt/local.h"
#include "rt/slot.h"
#include "rt/task_impl.h"

enum outcome { RAN, PANICKED };

/* One run of the body. What the panic left registered or held is impossible afterwards. */
static enum outcome run_body(struct rt_task *task, enum ron_err *ret_result)
{
    struct rt_panic_frame frame = {.cleanups = NULL, .reterr = &task->info};
    struct rt_local *local = sh_local();
    volatile enum outcome outcome = RAN;

    RON_ASSERT(local->panic_frame == NULL);
    task->info = (struct ron_errinfo){0};
    rt_atomic_store_u64(&task->beat_ns, rt_now_ns());
    local->panic_frame = &frame;
    if (setjmp(frame.jump) == 0) {
        *ret_result = task->options.fn(task, task->options.argument);
        RON_ASSERT(frame.cleanups == NULL); /* their nodes are dead stack now */
    } else {
        outcome = PANICKED;
        *ret_result = RON_ERR_INTERNAL;
    }
    sh_local()->panic_frame = NULL;
    rt_assert_no_lock_held();
    return outcome;
}

static unsigned restarts_in_window(const struct rt_task *task, uint64_t now_ns)
    RON_NEEDS(supervisor)
{
    unsigned count = 0;

    for (unsigned i = 0; i < RT_RESTARTS_MAX && i < task->recent_count; i++) {
        if (now_ns - task->restarts_ns[i] < RT_RESTARTS_WINDOW_MS * RT_NS_PER_MS)
            count++;
    }
    return count;
}

static void count_outcome(struct rt_task *task, enum outcome outcome, enum ron_err result)
    RON_NEEDS(supervisor)
{
    if (outcome == PANICKED)
        task->counters->panicked_count++;
    else if (result == RON_ERR_OK)
        task->counters->completed_count++;
    else if (result == RON_ERR_CANCELED)
        task->counters->canceled_count++;
    else
        task->counters->failed_count++;
}

/* Wait out the backoff; RUNNING if the body shall run again, ENDED if it was canceled meanwhile. */
static enum rt_task_state back_off(struct rt_task *task, uint64_t now_ns) RON_NEEDS(supervisor)
{
    struct rt_supervisor *supervisor = task->supervisor;
    unsigned recent_count = restarts_in_window(task, now_ns);
    uint64_t until_ns = now_ns +
                        rt_backoff_delay_ns(&supervisor->backoff, recent_count, sh_random());

    RON_ASSERT(recent_count < RT_RESTARTS_MAX);
    task->state = RT_TASK_BACKOFF;
    while (rt_now_ns() < until_ns && !rt_task_canceled(task))
        (void)rt_cond_wait(&supervisor->event_cond, &supervisor->lock, until_ns);
    if (rt_task_canceled(task))
        return RT_TASK_ENDED;
    task->restarts_ns[task->recent_count % RT_RESTARTS_MAX] = rt_now_ns();
    task->recent_count++;
    task->restarted_count++;
    task->counters->restarted_count++;
    return RT_TASK_RUNNING;
}

/* The state after a run. */
static enum rt_task_state next_state(struct rt_task *task, enum outcome outcome,
                                     enum ron_err result) RON_NEEDS(supervisor)
{
    uint64_t now_ns = rt_now_ns();
    bool failed = outcome == PANICKED || (result != RON_ERR_OK && result != RON_ERR_CANCELED);

    if (!failed || rt_task_canceled(task) || task->options.restart == RT_RESTART_NEVER)
        return RT_TASK_ENDED;
    if (restarts_in_window(task, now_ns) == RT_RESTARTS_MAX) {
        task->counters->escalated_count++;
        task->down = true;
        return RT_TASK_GAVE_UP;
    }
    return back_off(task, now_ns);
}

static enum rt_task_state run_once(struct rt_task *task) RON_BLOCKS
{
    struct rt_supervisor *supervisor = task->supervisor;
    enum ron_err result = RON_ERR_INTERNAL;
    enum outcome outcome = run_body(task, &result);
    enum rt_task_state state;

    if (outcome == RAN && result != RON_ERR_OK && task->info.err != result)
        (void)ron_fail(&task->info, result, "task %s: %s", task->options.name,
                       ron_err_text(result)); /* it did not say why */
    supervisor_lock(supervisor);
    task->result = result;
    count_outcome(task, outcome, result);
    state = next_state(task, outcome, result);
    if (state == RT_TASK_RUNNING)
        task->state = state;
    supervisor_unlock(supervisor);
    return state;
}

/* Tell that it gave up, then wait: RUNNING if it is revived, GAVE_UP if it shall end. */
static enum rt_task_state give_up(struct rt_task *task) RON_BLOCKS
{
    struct rt_supervisor *supervisor = task->supervisor;
    bool revived;

    if (supervisor->options.escalate != NULL)
        supervisor->options.escalate(supervisor->options.escalate_context, task, &task->info);
    supervisor_lock(supervisor);
    if (task->state != RT_TASK_LEAKED) {
        task->state = RT_TASK_GAVE_UP;
        rt_cond_broadcast(&supervisor->event_cond);
    }
    while (task->state == RT_TASK_GAVE_UP && !rt_task_canceled(task))
        (void)rt_cond_wait(&supervisor->event_cond, &supervisor->lock, SH_NEVER);
    revived = task->state == RT_TASK_RUNNING && !rt_task_canceled(task);
    supervisor_unlock(supervisor);
    return revived ? RT_TASK_RUNNING : RT_TASK_GAVE_UP;
}

void rt_task_main(void *context) RON_BLOCKS
{
    struct rt_task *task = context;
    struct rt_supervisor *supervisor = task->supervisor;
    struct rt_local *local = sh_local();
    enum rt_task_state state;

    local->name = task->options.name;
    local->task = task;
    do {
        state = run_once(task);
        if (state == RT_TASK_GAVE_UP)
            state = give_up(task);
    } while (state == RT_TASK_RUNNING);
    rt_slot_release();
    supervisor_lock(supervisor);
    if (task->state != RT_TASK_LEAKED) /* too late: it is counted, and nobody waits any more */
        task->state = state;
    rt_cond_broadcast(&supervisor->event_cond);
    supervisor_unlock(supervisor);
    local->task = NULL; /* the slot may be another task's from here on */
    local->name = NULL;
}

bool rt_task_canceled(const struct rt_task *task)
{
    return rt_atomic_load_u32(&task->canceled) != 0;
}

bool rt_task_aborted(const struct rt_task *task)
{
    return rt_atomic_load_u32(&task->aborted) != 0;
}

bool rt_task_sleep(struct rt_task *task, struct rt_deadline deadline)
{
    struct rt_supervisor *supervisor = task->supervisor;

    rt_assert_no_lock_held();
    supervisor_lock(supervisor);
    while (!rt_task_canceled(task) && !rt_deadline_expired(deadline))
        (void)rt_cond_wait(&supervisor->event_cond, &supervisor->lock, deadline.at_ns);
    supervisor_unlock(supervisor);
    return rt_task_canceled(task);
}

void rt_task_beat(struct rt_task *task)
{
    rt_atomic_store_u64(&task->beat_ns, rt_now_ns());
}

struct ron_errinfo *rt_task_reterr(struct rt_task *task)
{
    return &task->info;
}

void rt_task_step_back(void)
{
    sh_step_back();
}

const char *rt_task_name(const struct rt_task *task)
{
    return task->options.name;
}

struct rt_task *rt_task_self(void)
{
    return sh_local()->task;
}

void rt_panic(const char *format, ...)
{
    struct rt_local *local = sh_local();
    struct rt_panic_frame *frame = local->panic_frame;
    char message[RON_ERR_MESSAGE_SIZE];
    char text[RON_ERR_MESSAGE_SIZE + 32];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (frame == NULL || local->held_count > 0) {
        /* Nobody to catch it, or guarded data may be half changed. */
        (void)snprintf(text, sizeof(text), "panic %s: %s",
                       frame == NULL ? "outside a task" : "with a lock held", message);
        ron_assert_fail(__FILE__, __LINE__, __func__, text);
    }
    (void)ron_fail(frame->reterr, RON_ERR_INTERNAL, "panic: %s", message);
    while (frame->cleanups != NULL) {
        struct rt_cleanup *cleanup = frame->cleanups;
        frame->cleanups = cleanup->below; /* first: should it panic too, it is not run again */
        cleanup->fn(cleanup->argument);
    }
    longjmp(frame->jump, 1);
}

void rt_cleanup_push(struct rt_cleanup *cleanup, void (*fn)(void *argument), void *argument)
{
    struct rt_panic_frame *frame = sh_local()->panic_frame;

    RON_ASSERT(frame != NULL); /* inside a task */
    RON_ASSERT(fn != NULL);
    *cleanup = (struct rt_cleanup){.below = frame->cleanups, .fn = fn, .argument = argument};
    frame->cleanups = cleanup;
}

void rt_cleanup_pop(struct rt_cleanup *cleanup, bool run)
{
    struct rt_panic_frame *frame = sh_local()->panic_frame;

    RON_ASSERT(frame != NULL);
    RON_ASSERT(frame->cleanups == cleanup); /* popped in the reverse order of pushing */
    frame->cleanups = cleanup->below;
    if (run)
        cleanup->fn(cleanup->argument);
}
