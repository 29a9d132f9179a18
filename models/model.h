/*
 * model.h - a model: a small system, every way it can go, and what must be true of all of them.
 *
 * Each file of this folder defines models and lists them in MODEL_MAP. A model runs as the first
 * fiber of the simulator (rt/sim/sim.h says what it may not do) and asserts with RON_ASSERT. Its
 * cases say how it is explored and what must come out: `./dev test` and `./dev sim` run them all. A
 * planted bug is a model of its own whose cases expect the failure.
 */
#ifndef RON_MODELS_MODEL_H
#define RON_MODELS_MODEL_H

#include "base/assert.h"
#include "rt/sim/explore.h"

/* One exploration and its expectation. */
struct model_case {
    enum sim_strategy strategy;
    bool cache;
    struct sim_config config;  /* preemption_bound as is; steps_max 0 means the default */
    uint64_t runs_max;         /* 0: all (DFS), 2,000 (seeded) */
    uint32_t expected_steps;   /* seeded: budgets are spent over so many steps; 0: the default */
    enum sim_verdict expected; /* SIM_OK needs a complete search where DFS has no runs_max */
    uint64_t schedules_count;  /* exact, if not 0 */
    const char *message;       /* part of the failure's message, or NULL */
    bool compare;              /* DFS with and without cache: same verdict, same outcomes */
    bool race;                 /* for builds with TSan only, which must report a data race */
    bool slow;                 /* not part of `explore suite`, only of `suite --slow` */
};

struct model {
    const char *name;
    const char *about;
    sim_model_fn *fn;
    void *argument;
    const struct model_case *cases;
    uint32_t cases_count;
};

/* Every model, in the order they are listed and run. */
extern const struct model *const models[];
extern const uint32_t models_count;

#define MODEL(identifier, text, function, parameter, case_array)        \
    const struct model identifier = {#identifier, text,       function, \
                                     parameter,   case_array, RON_ARRAY_COUNT(case_array)}

#endif
