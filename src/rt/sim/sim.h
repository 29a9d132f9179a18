/*
 * sim.h - the simulator: one run of a model under one source of choices.
 *
 * A model is a function that becomes the first fiber and may spawn more. Everything it and the
 * runtime do passes through rt/shim.h; where more than one thing may happen next, the source is
 * asked (source.h). The same configuration and the same choices give the same run, step by step.
 * Time is virtual: it moves when nobody can run. One OS thread; never two runs at once.
 *
 * A model keeps all its state on fiber stacks and in ron_mem memory, which the simulator takes from
 * an arena that is wiped before each run. No statics, no _Thread_local, no malloc: state outside
 * the arena makes runs differ (noticed) and the state cache unsound (mostly noticed).
 */
#ifndef RON_RT_SIM_SIM_H
#define RON_RT_SIM_SIM_H

#include <stdint.h>

#include "base/compiler.h"
#include "rt/shim.h"

#define SIM_UNBOUNDED UINT32_MAX

enum {
    SIM_STEPS_MAX = 2000, /* default; more is reported as a livelock */
    SIM_NODES_MAX = 64,
    SIM_MESSAGE_SIZE = 512,
};

/* What may happen in a run. A budget is how often it may happen; 0 is never. Part of every printed
 * schedule. sim_config_plain() gives the defaults: coarse, unbounded, no faults. */
struct sim_config {
    uint32_t fine;             /* 1: points also after unlock, at wait, start, every signal */
    uint32_t preemption_bound; /* switches away from a fiber that could go on; SIM_UNBOUNDED */
    uint32_t early_ticks;      /* the clock moves although someone can run */
    uint32_t late_ticks;       /* the clock moves past the next deadline to the one after it */
    uint32_t spurious;         /* a condition wait ends without a signal */
    uint32_t wake_choice;      /* 1: a signal may wake any waiter, not only the oldest */
    uint32_t crashes;          /* of nodes started as crashable */
    uint32_t faults;           /* sh_choose answers other than 0 */
    uint32_t alloc_failures;
    uint32_t spawn_failures;
    uint32_t clock_jumps; /* of the wall clock, an hour forward or back */
    uint32_t steps_max;
    uint64_t random_seed; /* of sh_random */
};
struct sim_config sim_config_plain(void);

enum sim_verdict {
    SIM_OK,
    SIM_ABANDONED, /* by the source: it knows how this run ends */
    SIM_ASSERTION,
    SIM_DEADLOCK,
    SIM_LIVELOCK,
    SIM_LEAK,     /* memory or an unjoined thread left over */
    SIM_DIVERGED, /* the run is not the one the schedule describes */
};
const char *sim_verdict_name(enum sim_verdict verdict);

struct sim_result {
    enum sim_verdict verdict;
    uint32_t steps_count;
    uint32_t choices_count;
    uint64_t trace_hash;            /* of everything chosen and everything that could have been */
    uint64_t outcome;               /* what the model told sim_outcome, in order */
    struct sim_config left;         /* of the configuration: budgets not spent */
    char message[SIM_MESSAGE_SIZE]; /* why the verdict is not SIM_OK */
};

/* Called for each step and each choice of a traced run. */
struct sim_trace_line {
    uint32_t step;
    bool preempted;
    const char *who;    /* fiber, "clock", "fault" ... */
    const char *what;   /* "lock" */
    const char *object; /* its name, or NULL */
};
typedef void sim_trace_fn(const struct sim_trace_line *line, void *context);

struct sim_source;
typedef void sim_model_fn(void *argument);
struct sim_job {
    const struct sim_config *config;
    sim_model_fn *model;
    void *argument;
    sim_trace_fn *trace; /* may be NULL */
    void *trace_context;
    bool hash_states; /* the source will ask for sim_state_key */
};

/* Run the model once. Fills *ret_result whatever happens; does not return if the model destroys the
 * process (the schedule is then printed to stderr). */
void sim_run(const struct sim_job *job, struct sim_source *source, struct sim_result *ret_result);
/* The choices of the last run, one per asked point; valid until the next run. */
const uint16_t *sim_last_choices(uint32_t *ret_count);

/* ---- For models, inside a run ---- */

/* A scheduling point in the model's own words. Simulated disks and networks are made of these. */
void sim_point(const char *tag);
/* 0..options_count-1, all of them explored: the environment's free will. No budget. */
unsigned sim_choose(unsigned options_count, const char *tag);
/* Called after every step, on the host: assert the model's invariants there. NULL for none. */
void sim_set_check(void (*check)(void *context), void *context);
/* Note a fact about how the run went. Two searches are compared by the sets of their outcomes. */
void sim_outcome(uint64_t value);
/* End the run here as SIM_OK, whatever else still runs. */
void sim_end_run(void) RON_NORETURN;

/* A node is a process that may crash: its fibers vanish between two steps, joins on them return,
 * its memory is lost. What must survive belongs to the caller (node 0, which never crashes): give
 * the node a pointer to its disk. Fibers spawned on a node belong to it. At most SIM_NODES_MAX
 * starts per run; a crashed node is started again as a new one. */
unsigned sim_node_start(const char *name, bool crashable, void (*fn)(void *), void *argument);
/* Wait until no fiber of the node is left. True: it crashed. */
bool sim_node_wait(unsigned node);
/* The caller's own node, which may crash, does so here and now; no budget is spent. */
void sim_node_fall(void) RON_NORETURN;

/* Until it is called again with false no allocation fails, whatever the budget. */
void sim_spare_allocations(bool spared);
/* Allocations of this run that are live. */
uint32_t sim_allocations_count(void);

#endif
