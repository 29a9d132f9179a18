/*
 * lifecycle.h - how a role ends: one machine for all, the order and deadlines as data.
 *
 *     Running -> Draining -> Stopped            shutdown, drained in time
 *                Draining -> Aborting -> Stopped   the drain deadline passed
 *     Running, Draining -> SafeMode -> Stopped  writes frozen (roles that can; then only stop is
 * left)
 *
 * A role is a table of steps (stop intake, drain workers, flush sinks, ...) which run in order,
 * each under the smaller of its own budget and what is left of the drain deadline. The state is
 * published through a watch before the first step runs, so that readiness is off before anything
 * closes; the watch also carries the step, for tasks that wait for their phase.
 */
#ifndef RON_RT_LIFECYCLE_H
#define RON_RT_LIFECYCLE_H

#include "rt/deadline.h"
#include "rt/watch.h"

enum rt_life_state {
    RT_LIFE_RUNNING,
    RT_LIFE_DRAINING,
    RT_LIFE_ABORTING,
    RT_LIFE_SAFE_MODE,
    RT_LIFE_STOPPED,
};
enum rt_life_event {
    RT_LIFE_SHUTDOWN, /* a signal, or the host */
    RT_LIFE_FREEZE,   /* a failed commit: reads go on, writes do not */
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
    bool can_freeze;    /* has SafeMode */
    /* Ends what the steps did not, once the deadline passed; the rest of the steps is skipped. */
    rt_life_step_fn *abort;
    uint32_t abort_ms;
};

struct rt_life_status { /* the watch's value */
    enum rt_life_state state;
    uint32_t step; /* number of the running step, from 1; 0 before the first */
};
struct rt_life_report {
    size_t steps_count; /* that ran; the abort is not among them */
    bool aborted, frozen;
    struct {
        const char *name;
        enum ron_err err;
        uint64_t took_ns;
    } steps[RT_LIFE_STEPS_MAX];
};

struct rt_lifecycle; /* opaque */

/* Born Running. `role` is borrowed for its life; context goes to the steps. */
enum ron_err rt_lifecycle_new(const struct rt_life_role *role, void *context,
                              struct rt_lifecycle **ret_lifecycle,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Running or Stopped, and nobody in stop. Accepts NULL, returns NULL. */
struct rt_lifecycle *rt_lifecycle_free(struct rt_lifecycle *lifecycle);

/* Run the steps, or wait until another caller has. Afterwards the state is Stopped. RON_ERR_TIMEOUT
 * when it had to abort; ret_report may be NULL and is filled in any case but a second call. */
enum ron_err rt_lifecycle_stop(struct rt_lifecycle *lifecycle, struct rt_life_report *ret_report,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Freeze writes. True the first time; false when it was frozen, aborting or stopped already. */
bool rt_lifecycle_freeze(struct rt_lifecycle *lifecycle);

/* A struct rt_life_status. Lives as long as the lifecycle. */
struct rt_watch *rt_lifecycle_watch(struct rt_lifecycle *lifecycle);
enum rt_life_state rt_lifecycle_state(struct rt_lifecycle *lifecycle);
/* May a write begin? RON_ERR_DRAINING, RON_ERR_SAFE_MODE. */
enum ron_err rt_lifecycle_admit(struct rt_lifecycle *lifecycle,
                                struct ron_errinfo *reterr) RON_MUST_USE;

#endif
