/*
 * task.h - a supervised thread: what a service's loop runs in.
 *
 * A task fails by returning an error or by rt_panic; its supervisor restarts it after a backoff,
 * and gives up on the sixth failure within a minute (supervisor.h), until revived. It is asked to
 * stop, never killed: loops look at rt_task_canceled, waits carry deadlines, and the wake hook
 * interrupts what cannot look (closes its queue, shuts its socket down).
 *
 * rt_panic is for what a task cannot go on from, but the process can. It runs the cleanups that are
 * registered, newest first, so that no queue item or reply is lost with the task; panicking with a
 * lock held ends the process, because what the lock guards may be half changed.
 */
#ifndef RON_RT_TASK_H
#define RON_RT_TASK_H

#include "base/compiler.h"
#include "rt/deadline.h"
#include "rt/lock_classes.h"

struct rt_task;       /* lives in its supervisor */
struct rt_supervisor; /* supervisor.h */

/* The task's body. RON_ERR_OK: its work is done. RON_ERR_CANCELED: it stopped because it was asked
 * to. Anything else is a failure. It may use rt_task_reterr as reterr of what it calls. */
typedef enum ron_err rt_task_fn(struct rt_task *task, void *argument);

/* Interrupt the task's waiting. Called without locks, on another thread, each time the task is
 * canceled or aborted while it runs; perhaps just after its body returned. Must not block. */
typedef void rt_task_wake_fn(void *argument);

enum rt_restart {
    RT_RESTART_ON_FAILURE,
    RT_RESTART_NEVER,
};

struct rt_task_options {
    const char *kind;  /* metric label: "worker"; all texts are borrowed for the task's life */
    const char *name;  /* "worker 3" */
    const char *owner; /* role or module */
    rt_task_fn *fn;
    rt_task_wake_fn *wake; /* may be NULL */
    void *argument;        /* of fn and wake; must live until the task is joined */
    enum rt_restart restart;
};

/* Start a task. RON_ERR_BUSY: no free slot, too many kinds, or the system refuses;
 * RON_ERR_CANCELED: the supervisor is stopping. *ret_task is valid until joined or until the
 * supervisor is freed. */
enum ron_err rt_task_spawn(struct rt_supervisor *supervisor, const struct rt_task_options *options,
                           struct rt_task **ret_task, struct ron_errinfo *reterr) RON_MUST_USE;

/* Ask one task to stop and wake it. Any task; idempotent. */
void rt_task_cancel(struct rt_task *task);
/* Run a task again that gave up, as if it had never failed. RON_ERR_CONFLICT: it has not given up
 * (yet), or it is canceled. */
enum ron_err rt_task_revive(struct rt_task *task, struct ron_errinfo *reterr) RON_MUST_USE;
/* Wait for its end and free its slot. *ret_result is what it ended with. RON_ERR_TIMEOUT. */
enum ron_err rt_task_join(struct rt_task *task, struct rt_deadline deadline,
                          enum ron_err *ret_result,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* From inside the task. */
bool rt_task_canceled(const struct rt_task *task); /* stop: finish or give back what is in hand */
bool rt_task_aborted(const struct rt_task *task);  /* the drain deadline passed: return at once */
/* Sleep until the deadline or until canceled; true if canceled. */
bool rt_task_sleep(struct rt_task *task, struct rt_deadline deadline) RON_MUST_USE RON_BLOCKS;
void rt_task_beat(struct rt_task *task); /* "still alive", for health checks */
/* From now on others get the processor first: for long work that nobody waits for. */
void rt_task_step_back(void);
struct ron_errinfo *rt_task_reterr(struct rt_task *task);
const char *rt_task_name(const struct rt_task *task);
struct rt_task *rt_task_self(void); /* NULL outside tasks */

/* End the running task with a message. Must be inside a task and without locks. */
void rt_panic(const char *format, ...) RON_NORETURN RON_COLD RON_PRINTF(1, 2);

/* A function to run if the task panics. The node lives on the stack of whoever pushes it, and must
 * be popped before it dies; run says whether to call it then (the usual end of a scope). */
struct rt_cleanup {
    struct rt_cleanup *below;
    void (*fn)(void *argument);
    void *argument;
};
void rt_cleanup_push(struct rt_cleanup *cleanup, void (*fn)(void *argument), void *argument);
void rt_cleanup_pop(struct rt_cleanup *cleanup, bool run);

#endif
