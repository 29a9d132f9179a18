/*
 * lifecycle.h - how a role lives and ends: one machine for all, the order and deadlines as data.
 *
 *     Running -> Draining -> Stopped                shutdown, drained in time
 *                Draining -> Aborting -> Stopped    the drain deadline passed
 *     Running, Draining -> SafeMode                 what was written may be wrong: no writes
 *     SafeMode -> Running                           recovered, unless a stop has begun
 *     SafeMode -> Stopped                           its stop is over; it stays SafeMode till then
 *
 * After an unclean stop a role is born in SafeMode. It leaves it when the last cause of it is
 * cleared: `recovering` by the role itself, `damaged` by the operator (ready.h).
 *
 * A role is a table of steps (stop intake, drain workers, flush sinks, ...) which run in order,
 * each under the smaller of its own budget and what is left of the drain deadline. State and causes
 * are published through one watch before the first step runs, so that readiness is off before
 * anything closes; the watch also carries the step, for tasks that wait for their phase.
 */
#ifndef RON_RT_LIFECYCLE_H
#define RON_RT_LIFECYCLE_H

#include "rt/deadline.h"
#include "rt/ready.h"
#include "rt/watch.h"

struct rt_supervisor; /* supervisor.h */

enum rt_life_state {
    RT_LIFE_RUNNING,
    RT_LIFE_DRAINING,
    RT_LIFE_ABORTING,
    RT_LIFE_SAFE_MODE,
    RT_LIFE_STOPPED,
};
enum rt_life_event {
    RT_LIFE_SHUTDOWN, /* a signal, or the host */
    RT_LIFE_FAULT,    /* a failed commit, damage: reads go on, writes do not */
    RT_LIFE_RECOVER,  /* the last cause of SafeMode is gone; not once a stop has begun */
    RT_LIFE_DEADLINE, /* the drain took too long */
    RT_LIFE_DONE,     /* every step is over */
};
/* The machine itself: the state after the event; the same state where the event means nothing. */
enum rt_life_state rt_life_next(enum rt_life_state state, enum rt_life_event event);
const char *rt_life_name(enum rt_life_state state); /* "Running" */

enum { RT_LIFE_STEPS_MAX = 16 };

/* One step: return RON_ERR_OK when done, RON_ERR_TIMEOUT at the deadline; another error is reported
 * and does not hold up the next step. */
typedef enum ron_err rt_life_step_fn(void *context, struct rt_deadline deadline,
                                     struct ron_errinfo *reterr);
struct rt_life_step {
    const char *name;
    rt_life_step_fn *run;
    uint32_t budget_ms; /* 0: what is left of the role's */
};
struct rt_life_role {
    const char *name;
    const struct rt_life_step *steps;
    size_t steps_count; /* 1..RT_LIFE_STEPS_MAX */
    uint32_t drain_ms;  /* all steps together, from the shutdown on */
    bool has_safe_mode;
    struct rt_causes causes; /* its own, beside those of every role */
    /* Ends what the steps did not, once the deadline passed; the rest of the steps is skipped. */
    rt_life_step_fn *abort;
    uint32_t abort_ms;
};

struct rt_life_status { /* the watch's value */
    enum rt_life_state state;
    uint32_t step;   /* number of the running step, from 1; 0 before the first */
    uint32_t raised; /* set of causes */
};
struct rt_life_report {
    size_t steps_count; /* that ran; the abort is not among them */
    bool aborted;
    uint32_t raised; /* causes at the end: `damaged` says what the next start has to look at */
    struct {
        const char *name;
        enum ron_err err;
        uint64_t took_ns;
    } steps[RT_LIFE_STEPS_MAX];
};

struct rt_lifecycle; /* opaque */

/* Born Running, or SafeMode if one of its causes is in `raised`. `role` is borrowed for its life;
 * context goes to the steps. */
enum ron_err rt_lifecycle_new(const struct rt_life_role *role, uint32_t raised, void *context,
                              struct rt_lifecycle **ret_lifecycle,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Not stopping: never asked to, or Stopped. Accepts NULL, returns NULL. */
struct rt_lifecycle *rt_lifecycle_free(struct rt_lifecycle *lifecycle);

/* Run the steps, or wait until another caller has. Afterwards the state is Stopped. RON_ERR_TIMEOUT
 * when it had to abort; ret_report may be NULL and is filled in any case but a second call. */
enum ron_err rt_lifecycle_stop(struct rt_lifecycle *lifecycle, struct rt_life_report *ret_report,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Raise or clear a cause (an index; not RT_CAUSE_DRAINING). True if that changed something. When
 * raise returns, no request begins that the cause refuses. */
bool rt_lifecycle_raise(struct rt_lifecycle *lifecycle, unsigned cause);
bool rt_lifecycle_clear(struct rt_lifecycle *lifecycle, unsigned cause);
/* Raise or clear RT_CAUSE_RESTART_STORM as the role's supervisor has such tasks or not. Called
 * after each escalation and revival (health.h), in whatever order: the last look is the newest. A
 * role that joins a task which gave up, in order to spawn another, calls it then. */
void rt_lifecycle_check_tasks(struct rt_lifecycle *lifecycle, struct rt_supervisor *supervisor);

/* A struct rt_life_status. Lives as long as the lifecycle. */
struct rt_watch *rt_lifecycle_watch(struct rt_lifecycle *lifecycle);
struct rt_life_status rt_lifecycle_status(struct rt_lifecycle *lifecycle);
const struct rt_life_role *rt_lifecycle_role(const struct rt_lifecycle *lifecycle);
/* The planes that are ready. */
unsigned rt_lifecycle_ready(struct rt_lifecycle *lifecycle);
/* May a request of this plane begin? If not: the error of the cause that refuses it. */
enum ron_err rt_lifecycle_admit(struct rt_lifecycle *lifecycle, unsigned plane,
                                struct ron_errinfo *reterr) RON_MUST_USE;

#endif
