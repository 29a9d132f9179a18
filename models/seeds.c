/*
 * seeds.c - `explore seeds`: thousands of runs of a simulation, and what happened in them.
 *
 * Seed i is the first run of `explore run MODEL --source random --seed i`, with the budgets of the
 * model's first case. The jobs are processes that share a page for their sums. In a run of
 * COUNTED_MIN seeds or more, everything in the tally, every budget and every RON_PROBE must have
 * happened (probes count in builds with slow checks only); every seed must be large enough; and one
 * in REPEAT_EVERY is run twice and must leave the same trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "models/runner.h"
#include "models/tally.h"

enum {
    JOBS_MAX = 16,
    PROBES_MAX = 256,
    COUNTED_MIN = 1000,
    REPEAT_EVERY = 251,
    OPERATIONS_MIN = 300,
    STEPS_MIN = 5000,
};

/* Of one job; the sum of all in the end. */
struct sums {
    bool runs; /* this seed, now; left so by one that ends its process */
    uint64_t seed;
    uint64_t seeds_count, repeated_count;
    uint64_t steps_count, steps_min;
    uint64_t crashes_count, faults_count, alloc_failures_count, jumps_count;
    uint64_t small_count; /* seeds that are too small, or in which nothing went wrong */
    uint64_t failed_count;
    struct tally tally;
    uint64_t probes[PROBES_MAX];
};

struct job {
    const struct seeds_selection *selection;
    struct sim_plan plan;
    uint64_t end_ns; /* 0: when the seeds are through */
    unsigned number;
    struct sums *sums;
};

static uint64_t real_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_seed(const struct job *job, uint64_t seed, struct sim_result *ret_result)
{
    const struct sim_job sim_job = {
        .config = &job->plan.config, .model = job->plan.model, .argument = job->plan.argument};
    struct sim_random random;

    sim_random_init(&random, sim_seed_mix(seed, 0), job->plan.expected_steps);
    sim_run(&sim_job, &random.source, ret_result);
}

/* Once more, with a trace and shrunk. */
static void print_failed(const struct job *job, uint64_t seed, const struct sim_result *result)
{
    struct sim_plan plan = job->plan;
    struct sim_report report;
    char how[256];

    runner_describe(&plan, how, sizeof(how));
    (void)printf("# seed %llu: %s: %s\n", (unsigned long long)seed,
                 sim_verdict_name(result->verdict), result->message);
    plan.seed = seed;
    plan.runs_max = 1;
    if (sim_explore(&plan, &report, NULL) == RON_ERR_OK && report.failed_run != 0)
        runner_print_failure(&plan, &report, "# ");
    sim_report_fini(&report);
    (void)fflush(stdout);
}

/* What one run did. A seed must be large enough, and something must have gone wrong in it. */
struct deeds {
    uint64_t operations_count;
    uint64_t falls_count; /* crashes at an operation */
};

static bool is_small(const struct sim_config *config, const struct sim_result *result,
                     const struct deeds *deeds)
{
    if (deeds->operations_count < OPERATIONS_MIN || result->steps_count < STEPS_MIN)
        return true;
    return deeds->falls_count == 0 && result->left.crashes == config->crashes &&
           result->left.faults == config->faults;
}

static void add_result(struct sums *sums, const struct sim_config *config,
                       const struct sim_result *result)
{
    const uint64_t crashes = config->crashes - result->left.crashes;
    const uint64_t faults = config->faults - result->left.faults;

    sums->steps_count += result->steps_count;
    if (sums->seeds_count == 0 || result->steps_count < sums->steps_min)
        sums->steps_min = result->steps_count;
    sums->seeds_count++;
    sums->crashes_count += crashes;
    sums->faults_count += faults;
    sums->alloc_failures_count += config->alloc_failures - result->left.alloc_failures;
    sums->jumps_count += config->clock_jumps - result->left.clock_jumps;
}

static int run_job(struct job *job)
{
    const struct seeds_selection *selection = job->selection;
    struct ron_probe *const *probes;
    size_t probes_count;

    for (uint64_t i = job->number; selection->seconds > 0 || i < selection->seeds_count;
         i += selection->jobs_count) {
        const struct tally before = model_tally;
        struct sim_result result, again;
        struct deeds deeds;

        if (job->end_ns != 0 && real_now_ns() >= job->end_ns)
            break;
        job->sums->runs = true;
        job->sums->seed = selection->seed + i;
        run_seed(job, selection->seed + i, &result);
        if (result.verdict != SIM_OK) {
            job->sums->failed_count++;
            print_failed(job, selection->seed + i, &result);
            break;
        }
        add_result(job->sums, &job->plan.config, &result);
        deeds = (struct deeds){model_tally.counts[TALLY_OPERATIONS] -
                                   before.counts[TALLY_OPERATIONS],
                               model_tally.counts[TALLY_FALLS] - before.counts[TALLY_FALLS]};
        if (is_small(&job->plan.config, &result, &deeds)) {
            job->sums->small_count++;
            (void)printf("# seed %llu is too small, or nothing went wrong in it: %llu operations, "
                         "%llu steps, %llu crashes at one\n",
                         (unsigned long long)(selection->seed + i),
                         (unsigned long long)deeds.operations_count,
                         (unsigned long long)result.steps_count,
                         (unsigned long long)deeds.falls_count);
            (void)fflush(stdout);
        }
        if (i % REPEAT_EVERY != 0)
            continue;
        run_seed(job, selection->seed + i, &again);
        job->sums->repeated_count++;
        if (again.trace_hash != result.trace_hash || again.outcome != result.outcome) {
            job->sums->failed_count++;
            (void)printf("# seed %llu: another run the second time\n",
                         (unsigned long long)(selection->seed + i));
        }
    }
    job->sums->runs = false;
    job->sums->tally = model_tally;
    probes = ron_probes(&probes_count);
    RON_ASSERT(probes_count <= PROBES_MAX);
    for (size_t i = 0; i < probes_count; i++)
        job->sums->probes[i] = atomic_load(&probes[i]->hits_count);
    return 0;
}

static void add_sums(struct sums *total, const struct sums *sums)
{
    if (sums->seeds_count > 0 && (total->seeds_count == 0 || sums->steps_min < total->steps_min))
        total->steps_min = sums->steps_min;
    total->seeds_count += sums->seeds_count;
    total->repeated_count += sums->repeated_count;
    total->steps_count += sums->steps_count;
    total->crashes_count += sums->crashes_count;
    total->faults_count += sums->faults_count;
    total->alloc_failures_count += sums->alloc_failures_count;
    total->jumps_count += sums->jumps_count;
    total->small_count += sums->small_count;
    total->failed_count += sums->failed_count;
    for (unsigned i = 0; i < TALLY__MAX; i++)
        total->tally.counts[i] += sums->tally.counts[i];
    for (unsigned i = 0; i < PROBES_MAX; i++)
        total->probes[i] += sums->probes[i];
}

/* One line of the report; in a long run a count of 0 is a failure. */
static bool print_count(const char *words, uint64_t count, bool counted)
{
    (void)printf("# %10llu  %s%s\n", (unsigned long long)count, words,
                 count == 0 && counted ? ": NEVER HAPPENED" : "");
    return count > 0 || !counted;
}

static bool print_probes(const struct sums *total, bool counted)
{
    size_t probes_count, hit_count = 0;
    struct ron_probe *const *probes = ron_probes(&probes_count);

    if (probes_count == 0) {
        (void)printf("# probes: none in this build\n");
        return true;
    }
    for (size_t i = 0; i < probes_count; i++) {
        hit_count += total->probes[i] > 0 ? 1 : 0;
        if (total->probes[i] == 0)
            (void)printf("# probe never hit: %s (%s:%d)\n", probes[i]->name, probes[i]->file,
                         probes[i]->line);
    }
    (void)printf("# probes hit: %zu of %zu\n", hit_count, probes_count);
    return hit_count == probes_count || !counted;
}

static int print_report(const struct sums *total, const struct job *job, uint64_t elapsed_ns)
{
    static const char *const words[] = {
#define X(name, text) text,
        TALLY_MAP(X)
#undef X
    };
    const bool counted = total->seeds_count >= COUNTED_MIN;
    const uint64_t ms = elapsed_ns / 1000000 + 1;
    bool good = total->failed_count == 0 && total->small_count == 0 && total->repeated_count > 0;

    (void)printf(
        "# %llu seeds from %llu on, %llu run twice, %llu steps (%llu at least), %llu.%llu s, "
        "%llu seeds per minute\n",
        (unsigned long long)total->seeds_count, (unsigned long long)job->selection->seed,
        (unsigned long long)total->repeated_count, (unsigned long long)total->steps_count,
        (unsigned long long)total->steps_min, (unsigned long long)(ms / 1000),
        (unsigned long long)(ms % 1000 / 100),
        (unsigned long long)(total->seeds_count * 60000 / ms));
    good &= print_count("crashes at any point", total->crashes_count, counted);
    good &= print_count("faults by choice", total->faults_count, counted);
    good &= print_count("failed allocations", total->alloc_failures_count, counted);
    good &= print_count("jumps of the wall clock", total->jumps_count, counted);
    for (unsigned i = 0; i < TALLY__MAX; i++)
        good &= print_count(words[i], total->tally.counts[i], counted);
    good &= print_probes(total, counted);
    if (total->small_count > 0)
        (void)printf("# %llu seeds are too small, or nothing went wrong in them\n",
                     (unsigned long long)total->small_count);
    (void)printf("%s 1 - %s: %llu seeds\n", good ? "ok" : "not ok", job->plan.model_name,
                 (unsigned long long)total->seeds_count);
    return good ? 0 : 1;
}

int seeds_run(const struct seeds_selection *selection)
{
    const uint64_t start_ns = real_now_ns();
    struct job job = {.selection = selection,
                      .plan = runner_plan(selection->model, &selection->model->cases[0])};
    struct sums *sums = mmap(NULL, sizeof(*sums) * JOBS_MAX, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sums total = {0};
    int status;

    RON_ASSERT(sums != MAP_FAILED);
    RON_ASSERT(selection->jobs_count >= 1);
    RON_ASSERT(selection->jobs_count <= JOBS_MAX);
    (void)printf("1..1\n");
    (void)fflush(NULL);
    if (selection->seconds > 0)
        job.end_ns = start_ns + selection->seconds * 1000000000u;
    for (unsigned i = 0; i < selection->jobs_count; i++) {
        const pid_t pid = fork();

        RON_ASSERT(pid >= 0);
        job.number = i;
        job.sums = &sums[i];
        if (pid == 0)
            exit(run_job(&job));
    }
    for (unsigned i = 0; i < selection->jobs_count; i++) {
        RON_ASSERT(wait(&status) > 0);
        total.failed_count += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
    }
    for (unsigned i = 0; i < selection->jobs_count; i++)
        add_sums(&total, &sums[i]);
    for (unsigned i = 0; i < selection->jobs_count; i++)
        if (sums[i].runs)
            (void)printf("# seed %llu: its process ended\n", (unsigned long long)sums[i].seed);
    (void)munmap(sums, sizeof(*sums) * JOBS_MAX);
    return print_report(&total, &job, real_now_ns() - start_ns);
}
