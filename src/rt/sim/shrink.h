/*
 * shrink.h - from a failed run to the shortest schedule found that fails the same way.
 */
#ifndef RON_RT_SIM_SHRINK_H
#define RON_RT_SIM_SHRINK_H

#include "rt/sim/explore.h"

/* Start from the last run, which failed as report->result says. Replaces the result by the shrunk
 * run's and fills schedule, trace and shrink_runs. If the failure does not repeat, the verdict
 * becomes SIM_DIVERGED. */
void sim_shrink(const struct sim_job *job, const char *model_name, struct sim_report *report);

/* Run the job and write the trace in words. */
void sim_trace_into(const struct sim_job *job, struct sim_source *source,
                    struct sim_report *report);

#endif
