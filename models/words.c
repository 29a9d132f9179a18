/*
 * words.c - what the runner says about an exploration.
 *
 * "Complete" is said only of a search that tried every schedule its budgets allow without a bound
 * on preemptions; under a bound it says so.
 */
#include <stdio.h>
#include <string.h>

#include "models/runner.h"

enum { TRACE_HEAD_LINES = 60, TRACE_TAIL_LINES = 60 };

static void append(char *text, size_t text_size, const char *addition)
{
    size_t used_size = strlen(text);

    (void)snprintf(text + used_size, text_size - used_size, "%s", addition);
}

static void append_budget(char *text, size_t text_size, const char *name, uint32_t budget)
{
    char piece[64];

    if (budget == 0)
        return;
    (void)snprintf(piece, sizeof(piece), " %s %u", name, budget);
    append(text, text_size, piece);
}

void runner_describe(const struct sim_plan *plan, char *text, size_t text_size)
{
    static const char *const strategies[] = {"dfs", "random", "pct"};
    const struct sim_config *config = &plan->config;
    char bound[16] = "none";

    if (config->preemption_bound != SIM_UNBOUNDED)
        (void)snprintf(bound, sizeof(bound), "%u", config->preemption_bound);
    (void)snprintf(text, text_size, "%s bound %s %s%s", strategies[plan->strategy], bound,
                   config->fine ? "fine" : "coarse", plan->cache ? " cache" : "");
    append_budget(text, text_size, "ticks", config->early_ticks);
    append_budget(text, text_size, "late", config->late_ticks);
    append_budget(text, text_size, "spurious", config->spurious);
    append_budget(text, text_size, "crashes", config->crashes);
    append_budget(text, text_size, "faults", config->faults);
    append_budget(text, text_size, "alloc", config->alloc_failures);
    append_budget(text, text_size, "spawn", config->spawn_failures);
    append_budget(text, text_size, "jumps", config->clock_jumps);
    if (config->wake_choice)
        append(text, text_size, " wake");
}

void runner_summarize(const struct sim_plan *plan, const struct sim_report *report, char *text,
                      size_t text_size)
{
    char extent[64] = "incomplete";
    uint64_t tenths = report->elapsed_ns / 100000000;

    if (report->failed_run != 0) {
        (void)snprintf(text, text_size, "%s found at schedule %llu: %s",
                       sim_verdict_name(report->result.verdict),
                       (unsigned long long)report->failed_run, report->result.message);
        return;
    }
    if (plan->strategy != SIM_STRATEGY_DFS)
        (void)snprintf(extent, sizeof(extent), "seed %llu", (unsigned long long)plan->seed);
    else if (report->complete && plan->config.preemption_bound == SIM_UNBOUNDED)
        (void)snprintf(extent, sizeof(extent), "complete");
    else if (report->complete)
        (void)snprintf(extent, sizeof(extent), "all within preemption bound %u",
                       plan->config.preemption_bound);
    (void)snprintf(text, text_size, "%llu schedules, %s, %llu outcomes, %llu.%llu s",
                   (unsigned long long)report->runs_count, extent,
                   (unsigned long long)report->outcomes_count, (unsigned long long)(tenths / 10),
                   (unsigned long long)(tenths % 10));
}

/* The first and the last lines of a long trace. */
static void print_trace(struct ron_slice trace, const char *prefix)
{
    size_t lines_count = 0;
    size_t line = 0;

    for (size_t i = 0; i < trace.size; i++)
        lines_count += trace.data[i] == '\n';
    for (; trace.size > 0; line++) {
        const uint8_t *end = memchr(trace.data, '\n', trace.size);
        size_t size = end == NULL ? trace.size : (size_t)(end - trace.data) + 1;

        if (line < TRACE_HEAD_LINES || line + TRACE_TAIL_LINES >= lines_count)
            (void)printf("%s%.*s", prefix, (int)size, (const char *)trace.data);
        else if (line == TRACE_HEAD_LINES)
            (void)printf("%s   ...\n", prefix);
        trace = ron_slice_of(trace.data + size, trace.size - size);
    }
}

void runner_print_failure(const struct sim_plan *plan, const struct sim_report *report,
                          const char *prefix)
{
    (void)printf("%s%s: %s\n", prefix, sim_verdict_name(report->result.verdict),
                 report->result.message);
    if (plan->strategy != SIM_STRATEGY_DFS)
        (void)printf("%sseed %llu, run %llu (seed of the run %llu)\n", prefix,
                     (unsigned long long)plan->seed, (unsigned long long)report->failed_run,
                     (unsigned long long)report->failed_seed);
    (void)printf("%strace after %u runs of shrinking:\n", prefix, report->shrink_runs);
    print_trace(ron_buf_slice(&report->trace), prefix);
    (void)printf("%sreplay: explore run %s --source replay --schedule '%.*s'\n", prefix,
                 plan->model_name, RON_SLICE_FMT(ron_buf_slice(&report->schedule)));
}
