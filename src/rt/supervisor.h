/*
 * supervisor.h - owner of tasks: counts them, restarts them, stops them in time.
 *
 * Restarts: after a backoff of 100-400 ms, doubling, at most 5 s; at most five within any minute.
 * On the sixth failure it gives up: the escalate hook is called once (readiness off, one log line:
 * health.h) and the task stays down until it is revived, canceled or joined. Nothing spins.
 *
 * Stop: every task is canceled and woken and the shutdown watch becomes true; those still running
 * at the deadline are aborted (counted, woken again); those still running a second later are leaked
 * (counted), and the process should end by _exit.
 */
#ifndef RON_RT_SUPERVISOR_H
#define RON_RT_SUPERVISOR_H

#include "rt/backoff.h"
#include "rt/task.h"
#include "rt/watch.h"

enum {
    RT_TASKS_MAX = 256,
    RT_TASK_KINDS_MAX = 32,
    RT_RESTARTS_MAX = 5, /* within */
    RT_RESTARTS_WINDOW_MS = 60000,
    RT_ABORT_GRACE_MS = 1000,
};

/* A task gave up. Called on its thread, without locks; `info` has what it failed with last. */
typedef void rt_escalate_fn(void *context, const struct rt_task *task,
                            const struct ron_errinfo *info);

struct rt_supervisor_options {
    const char *name;                        /* texts are borrowed for the supervisor's life */
    const char *owner;                       /* role */
    uint32_t tasks_max;                      /* slots, 1..RT_TASKS_MAX */
    const struct rt_backoff_policy *backoff; /* of restarts; copied; NULL for the default */
    rt_escalate_fn *escalate;
    void *escalate_context;
};

extern const struct rt_backoff_policy rt_supervisor_backoff_default;

/* RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). The caller owns it. */
enum ron_err rt_supervisor_new(const struct rt_supervisor_options *options,
                               struct rt_supervisor **ret_supervisor,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* All tasks must have been joined. Accepts NULL, returns NULL. */
struct rt_supervisor *rt_supervisor_free(struct rt_supervisor *supervisor);

/* A bool: false until stop begins. Lives as long as the supervisor. */
struct rt_watch *rt_supervisor_shutdown(struct rt_supervisor *supervisor);

/* Cancel all tasks without waiting; further spawns answer RON_ERR_CANCELED. Idempotent. */
void rt_supervisor_cancel(struct rt_supervisor *supervisor);
/* Cancel, wait, abort, join. RON_ERR_TIMEOUT when tasks were leaked: the supervisor, its tasks and
 * what they use must then stay as they are until the process ends. A past deadline aborts at once.
 */
enum ron_err rt_supervisor_stop(struct rt_supervisor *supervisor, struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* How many tasks gave up and were neither revived nor joined; counted before escalate is called. */
uint32_t rt_supervisor_down_count(struct rt_supervisor *supervisor);

/* tasks_*_total{kind}. Every end of a body is one of completed, failed, canceled, panicked. */
struct rt_task_counters {
    const char *kind;
    uint64_t spawned_count;
    uint64_t restarted_count;
    uint64_t completed_count;
    uint64_t failed_count;
    uint64_t canceled_count;
    uint64_t panicked_count;
    uint64_t escalated_count;
    uint64_t revived_count;
    uint64_t aborted_count;
    uint64_t leaked_count;
};
/* Copy at most counters_max kinds, in order of first spawn; returns how many there are. */
size_t rt_supervisor_get_counters(struct rt_supervisor *supervisor,
                                  struct rt_task_counters *counters, size_t counters_max);

enum rt_task_state {
    RT_TASK_FREE,
    RT_TASK_RUNNING, /* from spawn to the end of its last run, restarts included */
    RT_TASK_BACKOFF, /* failed, will run again */
    RT_TASK_ENDED,
    RT_TASK_GAVE_UP,
    RT_TASK_LEAKED,
};
struct rt_task_info {
    const char *kind, *name;
    enum rt_task_state state;
    uint64_t restarted_count;
    uint64_t beat_ns; /* time of the last rt_task_beat; start of its last run without one */
};
/* Copy at most infos_max tasks that hold a slot; returns how many there are. */
size_t rt_supervisor_get_tasks(struct rt_supervisor *supervisor, struct rt_task_info *infos,
                               size_t infos_max);

#endif
