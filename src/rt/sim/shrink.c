/*
 * shrink.c - see shrink.h.
 *
 * Option 0 is the plain one everywhere, so shorter means: fewer and smaller choices other than 0.
 * Each attempt lowers one choice, or cuts the tail, and is kept if the run still fails with the
 * same verdict. Every kept attempt makes the schedule smaller, so it ends.
 */
#include "rt/sim/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

enum {
    ATTEMPTS_MAX = 3000,
    STEPS_MAX = 2000000, /* of all attempts: long runs are shrunk for a second or two only */
    TRACE_LINE_SIZE_MAX = 1024,
};

struct shrinking {
    const struct sim_job *job;
    enum sim_verdict verdict;
    uint16_t *best;
    uint32_t best_count;
    uint16_t *attempt;
    uint32_t attempts_count;
    uint64_t steps_count;
};

static bool is_spent(const struct shrinking *shrinking)
{
    return shrinking->attempts_count >= ATTEMPTS_MAX || shrinking->steps_count >= STEPS_MAX;
}

static uint32_t trimmed(const uint16_t *choices, uint32_t count)
{
    while (count > 0 && choices[count - 1] == 0)
        count--;
    return count;
}

static bool take_last(struct shrinking *shrinking)
{
    uint32_t count;
    const uint16_t *last = sim_last_choices(&count);

    count = trimmed(last, count);
    if (count > shrinking->best_count)
        return false;
    if (count > 0)
        memcpy(shrinking->best, last, count * sizeof(last[0]));
    shrinking->best_count = count;
    return true;
}

/* Run the first `count` choices of the attempt; true, and the new best, if it still fails. */
static bool try_attempt(struct shrinking *shrinking, uint32_t count)
{
    struct sim_replay replay;
    struct sim_result result;

    shrinking->attempts_count++;
    sim_replay_init(&replay, shrinking->attempt, trimmed(shrinking->attempt, count), true);
    sim_run(shrinking->job, &replay.source, &result);
    shrinking->steps_count += result.steps_count;
    return result.verdict == shrinking->verdict && take_last(shrinking);
}

static bool cut_tail(struct shrinking *shrinking)
{
    uint32_t size = shrinking->best_count;

    memcpy(shrinking->attempt, shrinking->best, size * sizeof(shrinking->best[0]));
    return size > 1 && try_attempt(shrinking, size / 2);
}

static bool lower_one(struct shrinking *shrinking)
{
    for (uint32_t i = shrinking->best_count; i-- > 0;) {
        for (uint16_t value = 0; value < shrinking->best[i]; value++) {
            if (is_spent(shrinking))
                return false;
            memcpy(shrinking->attempt, shrinking->best,
                   shrinking->best_count * sizeof(shrinking->best[0]));
            shrinking->attempt[i] = value;
            if (try_attempt(shrinking, shrinking->best_count))
                return true;
        }
    }
    return false;
}

static void print_line(const struct sim_trace_line *line, void *context)
{
    struct ron_buf *buf = context;

    if (buf->size > SIM_TRACE_SIZE_MAX - TRACE_LINE_SIZE_MAX) { /* the end is what matters */
        ron_buf_reset(buf);
        ron_buf_put_text(buf, "   ... earlier steps left out\n");
    }
    ron_buf_put_format(buf, "%6u  %-7s  %-16s %s%s%s\n", line->step,
                       line->preempted ? "PREEMPT" : "", line->who, line->what,
                       line->object != NULL ? " " : "", line->object != NULL ? line->object : "");
}

void sim_trace_into(const struct sim_job *job, struct sim_source *source, struct sim_report *report)
{
    struct sim_job traced = *job;

    ron_buf_reset(&report->trace);
    traced.trace = print_line;
    traced.trace_context = &report->trace;
    traced.hash_states = false;
    sim_run(&traced, source, &report->result);
    ron_buf_put_format(&report->trace, "%6u  %s: %s\n", report->result.steps_count,
                       sim_verdict_name(report->result.verdict), report->result.message);
}

void sim_shrink(const struct sim_job *job, const char *model_name, struct sim_report *report)
{
    struct shrinking shrinking = {.job = job, .verdict = report->result.verdict};
    struct sim_replay replay;
    uint32_t count;
    const uint16_t *last = sim_last_choices(&count);

    shrinking.best = ron_mem_alloc_array((size_t)count + 1, sizeof(uint16_t));
    shrinking.attempt = ron_mem_alloc_array((size_t)count + 1, sizeof(uint16_t));
    RON_ASSERT(shrinking.best != NULL);
    RON_ASSERT(shrinking.attempt != NULL);
    if (count > 0)
        memcpy(shrinking.best, last, count * sizeof(last[0]));
    shrinking.best_count = trimmed(shrinking.best, count);
    if (shrinking.verdict != SIM_DIVERGED)
        while (!is_spent(&shrinking) && (cut_tail(&shrinking) || lower_one(&shrinking)))
            ;
    sim_replay_init(&replay, shrinking.best, shrinking.best_count, false);
    if (shrinking.verdict == SIM_DIVERGED) {
        char message[SIM_MESSAGE_SIZE];
        memcpy(message, report->result.message, sizeof(message));
        sim_trace_into(job, &replay.source, report);
        report->result.verdict = SIM_DIVERGED;
        memcpy(report->result.message, message, sizeof(message));
    } else {
        sim_trace_into(job, &replay.source, report);
        if (report->result.verdict != shrinking.verdict) {
            report->result.verdict = SIM_DIVERGED;
            (void)snprintf(report->result.message, sizeof(report->result.message),
                           "a failure (%s) that does not repeat",
                           sim_verdict_name(shrinking.verdict));
        }
    }
    report->shrink_runs = shrinking.attempts_count;
    sim_schedule_print(model_name, job->config, report->result.trace_hash, shrinking.best,
                       shrinking.best_count, &report->schedule);
    ron_mem_free(shrinking.best);
    ron_mem_free(shrinking.attempt);
}
