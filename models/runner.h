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

/* All cases in TAP, jobs_count processes at a time. The exit status. */
int suite_run(unsigned jobs_count, bool slow, const char *filter);

#endif
