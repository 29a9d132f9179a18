/*
 * runner.h - the parts of the `explore` program.
 */
#ifndef RON_MODELS_RUNNER_H
#define RON_MODELS_RUNNER_H

#include "models/model.h"

const struct model *runner_find(const char *name); /* NULL if there is none */
/* "dfs bound 2 coarse cache spurious 1" */
void runner_describe(const struct sim_plan *plan, char *text, size_t text_size);
/* "23919 schedules, complete, 0.2 s" or the failure. */
void runner_summarize(const struct sim_plan *plan, const struct sim_report *report, char *text,
                      size_t text_size);
/* Why and how the run failed, and the command that repeats it. `prefix` starts each line. */
void runner_print_failure(const struct sim_plan *plan, const struct sim_report *report,
                          const char *prefix);
struct sim_plan runner_plan(const struct model *model, const struct model_case *model_case);

struct suite_selection {
    bool slow;                /* the slow cases too */
    const char *filter;       /* models whose name contains it; NULL: all */
    unsigned part;            /* of parts_count: every parts_count-th case, from this one */
    unsigned parts_count;     /* 0: one */
    const struct model *only; /* NULL: all */
};
/* The selected cases in TAP, jobs_count processes at a time. The exit status. */
int suite_run(unsigned jobs_count, const struct suite_selection *selection);

/* Seeds seed..seed + seeds_count - 1 of one simulation, or as many as there are seconds for. */
struct seeds_selection {
    const struct model *model;
    uint64_t seed, seeds_count, seconds;
    unsigned jobs_count;
};
int seeds_run(const struct seeds_selection *selection);

#endif
