/*
 * task_impl.h - what task.c and supervisor.c share: the supervisor's table of tasks and its lock.
 *
 * The lock guards the table; a task's flags are atomics, because the task polls them. One condition
 * serves every wait (end of a task, backoff, sleep): the events are rare and the waiters few.
 */
#ifndef RON_RT_TASK_IMPL_H
#define RON_RT_TASK_IMPL_H

#include <setjmp.h>

#include "base/assert.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/supervisor.h"

struct rt_panic_frame {
    jmp_buf jump;
    struct rt_cleanup *cleanups; /* newest first */
    struct ron_errinfo *reterr;  /* gets the message */
};

struct rt_task {
    struct rt_supervisor *supervisor;
    struct rt_task_options options;
    struct ron_errinfo info; /* of the last failure; the task's own */
    struct rt_atomic_u32 canceled, aborted;
    struct rt_atomic_u64 beat_ns;
    enum rt_task_state state RON_GUARDED_BY(supervisor);
    bool spawning RON_GUARDED_BY(supervisor);       /* its thread is not known yet */
    bool joining RON_GUARDED_BY(supervisor);        /* ended, and its thread is being joined */
    bool down RON_GUARDED_BY(supervisor);           /* gave up, perhaps not yet told so */
    enum ron_err result RON_GUARDED_BY(supervisor); /* of the last run */
    struct sh_thread *thread RON_GUARDED_BY(supervisor);
    struct rt_task_counters *counters RON_GUARDED_BY(supervisor); /* of its kind */
    uint64_t restarted_count RON_GUARDED_BY(supervisor);
    uint64_t recent_count RON_GUARDED_BY(supervisor); /* restarts since the last revival */
    uint64_t restarts_ns[RT_RESTARTS_MAX] RON_GUARDED_BY(supervisor); /* ring of the latest */
};

struct rt_supervisor {
    struct rt_lock lock;
    uint32_t magic;
    struct rt_supervisor_options options;
    struct rt_backoff_policy backoff;
    struct rt_watch *shutdown;
    struct rt_cond event_cond;
    bool stopping RON_GUARDED_BY(supervisor);
    size_t kinds_count RON_GUARDED_BY(supervisor);
    struct rt_task_counters counters[RT_TASK_KINDS_MAX] RON_GUARDED_BY(supervisor);
    struct rt_task *tasks; /* tasks_max slots; the array never moves */
};

#define SUPERVISOR_MAGIC 0x50fe1150u

static inline void supervisor_lock(struct rt_supervisor *supervisor) RON_LOCKS(supervisor)
{
    RON_ASSERT(supervisor->magic == SUPERVISOR_MAGIC);
    rt_lock_take(&supervisor->lock);
}

static inline void supervisor_unlock(struct rt_supervisor *supervisor) RON_UNLOCKS(supervisor)
{
    rt_lock_drop(&supervisor->lock);
}

/* May its body still run? */
static inline bool task_alive(const struct rt_task *task) RON_NEEDS(supervisor)
{
    return task->spawning || task->state == RT_TASK_RUNNING || task->state == RT_TASK_BACKOFF;
}

/* The body of every task's thread: run, and run again as the policy says (task.c). */
void rt_task_main(void *task);

#endif
