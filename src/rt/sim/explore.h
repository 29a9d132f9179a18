/*
 * explore.h - many runs of one model: search, count, and when one fails, say which and why.
 */
#ifndef RON_RT_SIM_EXPLORE_H
#define RON_RT_SIM_EXPLORE_H

#include "base/bytes.h"
#include "rt/sim/source.h"

enum sim_strategy { SIM_STRATEGY_DFS, SIM_STRATEGY_RANDOM, SIM_STRATEGY_PCT };

enum {
    SIM_MODEL_NAME_SIZE = 64,
    SIM_SCHEDULE_SIZE_MAX = 1 << 20, /* its text */
    SIM_TRACE_SIZE_MAX = 4 << 20,
    SIM_EXPECTED_STEPS = 64,
    SIM_PCT_DEPTH = 3,
};

struct sim_report;

struct sim_plan {
    const char *model_name;
    sim_model_fn *model;
    void *argument;
    struct sim_config config;
    enum sim_strategy strategy;
    bool cache;              /* DFS only */
    uint64_t seed;           /* run i of a seeded strategy uses sim_seed_mix(seed, i) */
    uint32_t expected_steps; /* 0: SIM_EXPECTED_STEPS */
    uint64_t runs_max;       /* 0: until complete (DFS), 2,000 (seeded) */
    uint64_t time_max_ms;    /* 0: no limit */
    void (*progress)(const struct sim_report *report, void *context); /* about once a second */
    void *progress_context;
};

struct sim_report {
    struct sim_result result; /* of the failed run; SIM_OK if none failed */
    uint64_t runs_count;      /* schedules tried, pruned ones included */
    uint64_t pruned_count;    /* cut off at a known state */
    uint64_t steps_count;
    uint64_t states_count; /* in the cache */
    bool complete;         /* DFS has tried everything its configuration allows */
    uint64_t elapsed_ns;
    /* The set of outcomes of runs that came to their end: size, and a sum that does not depend on
     * the order. */
    uint64_t outcomes_count;
    uint64_t outcomes_sum;
    uint64_t failed_run; /* from 1; 0: none failed */
    uint64_t failed_seed;
    uint32_t shrink_runs;
    struct ron_buf schedule; /* of the failed run, shrunk: one line of text */
    struct ron_buf trace;    /* the same in words */
};

/* Explore until a run fails, the search is complete, or a limit is reached. An error only if the
 * exploration itself cannot be done; a failing model is a report. The caller calls
 * sim_report_fini, on error too. */
enum ron_err sim_explore(const struct sim_plan *plan, struct sim_report *report,
                         struct ron_errinfo *reterr) RON_MUST_USE;
void sim_report_fini(struct sim_report *report);

/* Run one schedule as printed. The verdict is SIM_DIVERGED when the model no longer does what the
 * schedule describes. plan->config and strategy are not used. */
struct sim_schedule;
enum ron_err sim_replay_schedule(const struct sim_plan *plan, const struct sim_schedule *schedule,
                                 struct sim_report *report,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* "sim1:MODEL:g0,b2,t0,s0,c0:#a91f22c0:0=1,2=4": version, model, configuration, hash of the run,
 * choices other than 0 by position. */
struct sim_schedule {
    char model_name[SIM_MODEL_NAME_SIZE];
    struct sim_config config;
    uint32_t hash; /* 0: not checked */
    uint16_t *choices;
    uint32_t choices_count;
};
enum ron_err sim_schedule_parse(const char *text, struct sim_schedule *ret_schedule,
                                struct ron_errinfo *reterr) RON_MUST_USE;
void sim_schedule_fini(struct sim_schedule *schedule);
void sim_schedule_print(const char *model_name, const struct sim_config *config,
                        uint64_t trace_hash, const uint16_t *choices, uint32_t choices_count,
                        struct ron_buf *buf);
void sim_config_print(const struct sim_config *config, char *text, size_t text_size);

#endif
