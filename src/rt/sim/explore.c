/*
 * explore.c - the loop over runs, the checks on the way, and what a failure turns into.
 *
 * Determinism is checked, not assumed: the first run and about one in a thousand later ones are
 * repeated from their choices and must give the same trace, outcome and verdict. That notices a
 * model that keeps state outside the arena.
 */
#include "rt/sim/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/sim/internal.h"
#include "rt/sim/shrink.h"

enum { REPEAT_EVERY = 1009, RUNS_SEEDED = 2000, CLOCK_EVERY = 256 };
#define NS_PER_S 1000000000ull

struct exploration {
    const struct sim_plan *plan;
    struct sim_report *report;
    struct sim_job job;
    struct sim_dfs *dfs;
    struct sim_random random;
    struct sim_pct pct;
    struct sim_source *source;
    uint64_t *outcomes; /* open addressing; 0 is empty */
    uint64_t outcomes_capacity;
    uint64_t start_ns;
    uint64_t progress_ns;
    char label[SIM_MODEL_NAME_SIZE + 256]; /* for guard.c */
};

static uint64_t real_now_ns(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static bool outcomes_insert(uint64_t *table, uint64_t capacity, uint64_t outcome)
{
    uint64_t at = outcome & (capacity - 1);

    while (table[at] != 0) {
        if (table[at] == outcome)
            return false;
        at = (at + 1) & (capacity - 1);
    }
    table[at] = outcome;
    return true;
}

static void note_outcome(struct exploration *exploration, const struct sim_result *result)
{
    struct sim_report *report = exploration->report;
    uint64_t outcome = sim_hash_word(result->outcome, (uint64_t)result->verdict) | 1;

    if (!outcomes_insert(exploration->outcomes, exploration->outcomes_capacity, outcome))
        return;
    report->outcomes_count++;
    report->outcomes_sum += outcome;
    if (report->outcomes_count * 2 > exploration->outcomes_capacity) {
        uint64_t capacity = exploration->outcomes_capacity * 2;
        uint64_t *table = ron_mem_alloc_array(capacity, sizeof(table[0]));
        RON_ASSERT(table != NULL);
        for (uint64_t i = 0; i < exploration->outcomes_capacity; i++)
            if (exploration->outcomes[i] != 0)
                (void)outcomes_insert(table, capacity, exploration->outcomes[i]);
        ron_mem_free(exploration->outcomes);
        exploration->outcomes = table;
        exploration->outcomes_capacity = capacity;
    }
}

/* The source of run `index`, counted from 0. */
static void prepare_source(struct exploration *exploration, uint64_t index)
{
    const struct sim_plan *plan = exploration->plan;
    uint32_t expected_steps = plan->expected_steps != 0 ? plan->expected_steps : SIM_EXPECTED_STEPS;
    uint64_t seed = sim_seed_mix(plan->seed, index);

    switch (plan->strategy) {
    case SIM_STRATEGY_DFS:
        exploration->source = sim_dfs_source(exploration->dfs);
        return;
    case SIM_STRATEGY_RANDOM:
        sim_random_init(&exploration->random, seed, expected_steps);
        exploration->source = &exploration->random.source;
        return;
    case SIM_STRATEGY_PCT:
        sim_pct_init(&exploration->pct, seed, SIM_PCT_DEPTH, expected_steps);
        exploration->source = &exploration->pct.random.source;
        return;
    }
    RON_UNREACHABLE();
}

/* Run the same choices again. A difference turns *result into SIM_DIVERGED. */
static void repeat(const struct sim_job *job, struct sim_result *result)
{
    struct sim_result again;
    struct sim_replay replay;
    uint32_t choices_count;
    const uint16_t *last = sim_last_choices(&choices_count);
    uint16_t *choices = ron_mem_alloc_array((size_t)choices_count + 1, sizeof(choices[0]));

    RON_ASSERT(choices != NULL);
    if (choices_count > 0)
        memcpy(choices, last, choices_count * sizeof(choices[0]));
    sim_replay_init(&replay, choices, choices_count, false);
    sim_run(job, &replay.source, &again);
    ron_mem_free(choices);
    if (again.trace_hash == result->trace_hash && again.outcome == result->outcome &&
        again.verdict == result->verdict && again.steps_count == result->steps_count)
        return;
    result->verdict = SIM_DIVERGED;
    (void)snprintf(result->message, sizeof(result->message),
                   "the same choices gave another run (%s after %u steps, then %s after %u): the "
                   "model keeps state outside ron_mem",
                   "first", result->steps_count, sim_verdict_name(again.verdict),
                   again.steps_count);
}

static bool is_failure(enum sim_verdict verdict)
{
    return verdict != SIM_OK && verdict != SIM_ABANDONED;
}

static void report_failure(struct exploration *exploration, uint64_t index)
{
    struct sim_report *report = exploration->report;

    report->failed_run = index + 1;
    report->failed_seed = sim_seed_mix(exploration->plan->seed, index);
    sim_shrink(&exploration->job, exploration->plan->model_name, report);
}

/* True: go on with another run. */
static bool one_run(struct exploration *exploration, uint64_t index)
{
    struct sim_report *report = exploration->report;
    struct sim_result *result = &report->result;
    struct sim_source *source;

    prepare_source(exploration, index);
    source = exploration->source;
    sim_run(&exploration->job, source, result);
    report->runs_count++;
    report->steps_count += result->steps_count;
    if (exploration->dfs != NULL && sim_dfs_diverged(exploration->dfs)) {
        result->verdict = SIM_DIVERGED;
        (void)snprintf(result->message, sizeof(result->message),
                       "a known path asked for another choice: the model is not deterministic");
        report->failed_run = index + 1;
        return false;
    }
    if (result->verdict == SIM_ABANDONED)
        report->pruned_count++;
    else if (index == 0 || index % REPEAT_EVERY == 0)
        repeat(&exploration->job, result);
    if (is_failure(result->verdict)) {
        report_failure(exploration, index);
        return false;
    }
    if (result->verdict == SIM_OK)
        note_outcome(exploration, result);
    return source->next == NULL || source->next(source, result);
}

static bool within_limits(struct exploration *exploration, uint64_t runs_max)
{
    const struct sim_plan *plan = exploration->plan;
    struct sim_report *report = exploration->report;
    uint64_t now_ns;

    if (runs_max != 0 && report->runs_count >= runs_max)
        return false;
    if (report->runs_count % CLOCK_EVERY != 0)
        return true;
    now_ns = real_now_ns();
    report->elapsed_ns = now_ns - exploration->start_ns;
    if (plan->progress != NULL && now_ns >= exploration->progress_ns + NS_PER_S) {
        exploration->progress_ns = now_ns;
        plan->progress(report, plan->progress_context);
    }
    return plan->time_max_ms == 0 || report->elapsed_ns / 1000000 < plan->time_max_ms;
}

static void job_init(struct exploration *exploration, const struct sim_plan *plan)
{
    size_t size;

    exploration->job = (struct sim_job){.config = &plan->config,
                                        .model = plan->model,
                                        .argument = plan->argument,
                                        .hash_states = plan->cache};
    (void)snprintf(exploration->label, sizeof(exploration->label) - 256, "%s:", plan->model_name);
    size = strlen(exploration->label);
    sim_config_print(&plan->config, exploration->label + size, sizeof(exploration->label) - size);
    sim_guard_set_label(exploration->label);
    sim_guard_install();
}

enum ron_err sim_explore(const struct sim_plan *plan, struct sim_report *report,
                         struct ron_errinfo *reterr)
{
    struct exploration exploration = {.plan = plan, .report = report};
    uint64_t runs_max = plan->runs_max;
    enum ron_err err = RON_ERR_OK;

    *report = (struct sim_report){0};
    ron_buf_init(&report->schedule, SIM_SCHEDULE_SIZE_MAX);
    ron_buf_init(&report->trace, SIM_TRACE_SIZE_MAX);
    job_init(&exploration, plan);
    if (plan->strategy == SIM_STRATEGY_DFS) {
        err = sim_dfs_new(plan->cache, &exploration.dfs, reterr);
        if (err != RON_ERR_OK)
            return err;
    } else if (runs_max == 0) {
        runs_max = RUNS_SEEDED;
    }
    exploration.outcomes_capacity = 64;
    exploration.outcomes = ron_mem_alloc_array(64, sizeof(exploration.outcomes[0]));
    RON_ASSERT(exploration.outcomes != NULL);
    exploration.start_ns = real_now_ns();
    exploration.progress_ns = exploration.start_ns;
    while (one_run(&exploration, report->runs_count) && within_limits(&exploration, runs_max))
        ;
    report->elapsed_ns = real_now_ns() - exploration.start_ns;
    if (exploration.dfs != NULL) {
        report->complete = sim_dfs_is_complete(exploration.dfs);
        report->states_count = sim_dfs_states_count(exploration.dfs);
    }
    if (report->failed_run == 0)
        report->result.verdict = SIM_OK; /* the last run may have been a pruned one */
    if (report->complete && report->outcomes_count == 0) { /* the cache cuts endless loops */
        report->failed_run = report->runs_count;
        report->result.verdict = SIM_LIVELOCK;
        (void)snprintf(report->result.message, sizeof(report->result.message),
                       "no schedule comes to an end");
    }
    sim_guard_set_label("?");
    ron_mem_free(exploration.outcomes);
    sim_dfs_free(exploration.dfs);
    return RON_ERR_OK;
}

enum ron_err sim_replay_schedule(const struct sim_plan *plan, const struct sim_schedule *schedule,
                                 struct sim_report *report, struct ron_errinfo *reterr)
{
    struct sim_job job = {
        .config = &schedule->config, .model = plan->model, .argument = plan->argument};
    struct sim_replay replay;
    uint32_t hash;

    *report = (struct sim_report){0};
    ron_buf_init(&report->schedule, SIM_SCHEDULE_SIZE_MAX);
    ron_buf_init(&report->trace, SIM_TRACE_SIZE_MAX);
    sim_replay_init(&replay, schedule->choices, schedule->choices_count, false);
    sim_trace_into(&job, &replay.source, report);
    report->runs_count = 1;
    report->steps_count = report->result.steps_count;
    hash = (uint32_t)(report->result.trace_hash >> 32);
    if (replay.diverged || (schedule->hash != 0 && schedule->hash != hash) ||
        replay.position < schedule->choices_count) {
        report->result.verdict = SIM_DIVERGED;
        (void)snprintf(report->result.message, sizeof(report->result.message),
                       "the schedule belongs to another version of the model (hash %08x, now %08x)",
                       (unsigned)schedule->hash, (unsigned)hash);
    }
    return ron_buf_check(&report->trace, reterr);
}

void sim_report_fini(struct sim_report *report)
{
    ron_buf_fini(&report->schedule);
    ron_buf_fini(&report->trace);
}
