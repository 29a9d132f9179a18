/*
 * suite.c - every case of every model, in TAP, each in a process of its own.
 *
 * A process per case: a model that destroys its process fails its own line only, and cores are used
 * without the explorer knowing of threads. Lines come out in order.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/runner.h"

enum { JOBS_MAX = 64, CASES_MAX = 1024, TSAN_STATUS = 66 };

/* Sanitizers keep bytes of their own on the stacks: hardly two states look equal. */
static const bool with_cache = !RON_ASAN && !RON_TSAN;

struct entry {
    const struct model *model;
    const struct model_case *model_case;
    FILE *output; /* of its process */
    pid_t pid;    /* 0: not started */
    int status;
    bool ended;
};

static bool as_expected(const struct model_case *model_case, const struct sim_plan *plan,
                        const struct sim_report *report)
{
    bool whole = plan->strategy == SIM_STRATEGY_DFS && plan->runs_max == 0;

    if (report->result.verdict == SIM_DIVERGED)
        return false;
    if (model_case->schedules_count != 0 && report->runs_count != model_case->schedules_count)
        return false;
    if (model_case->expected == SIM_OK)
        return report->failed_run == 0 && (report->complete || !whole);
    if (report->failed_run == 0 || report->result.verdict != model_case->expected)
        return false;
    return model_case->message == NULL ||
           strstr(report->result.message, model_case->message) != NULL;
}

/* The search with the cache must find what the plain one finds. */
static int run_comparison(const struct entry *entry, unsigned number)
{
    struct sim_plan plan = runner_plan(entry->model, entry->model_case);
    struct sim_report reports[2];
    char how[256];
    bool good;

    for (int i = 0; i < 2; i++) {
        plan.cache = i == 1;
        if (sim_explore(&plan, &reports[i], NULL) != RON_ERR_OK)
            return 2;
    }
    good = reports[0].result.verdict == entry->model_case->expected &&
           reports[1].result.verdict == entry->model_case->expected &&
           reports[0].complete == reports[1].complete &&
           reports[0].outcomes_count == reports[1].outcomes_count &&
           reports[0].outcomes_sum == reports[1].outcomes_sum &&
           reports[1].runs_count <= reports[0].runs_count;
    plan.cache = false;
    runner_describe(&plan, how, sizeof(how));
    (void)printf(
        "%s %u - %s %s: plain %llu schedules, cache %llu, verdict %s and %s, "
        "outcomes %llu and %llu\n",
        good ? "ok" : "not ok", number, plan.model_name, how,
        (unsigned long long)reports[0].runs_count, (unsigned long long)reports[1].runs_count,
        sim_verdict_name(reports[0].result.verdict), sim_verdict_name(reports[1].result.verdict),
        (unsigned long long)reports[0].outcomes_count,
        (unsigned long long)reports[1].outcomes_count);
    sim_report_fini(&reports[0]);
    sim_report_fini(&reports[1]);
    return good ? 0 : 1;
}

/* A sanitizer makes a run several times as long and looks at what every run does: samples that are
 * expected to find nothing are cut, the plain build has them all; searches that must be whole, or
 * must find something, stay. */
static void shorten(struct sim_plan *plan, const struct model_case *model_case)
{
    const uint64_t share = RON_TSAN ? 8 : 4; /* one in so many */
    uint64_t runs_max = plan->runs_max;

    if (model_case->expected != SIM_OK || model_case->race)
        return;
    if (runs_max == 0 && plan->strategy == SIM_STRATEGY_DFS)
        return;
    plan->runs_max = (runs_max == 0 ? 2000 : runs_max) / share + 1;
}

/* In its own process; the exit status is the answer. */
static int run_case(const struct entry *entry, unsigned number)
{
    const struct model_case *model_case = entry->model_case;
    struct sim_plan plan = runner_plan(entry->model, model_case);
    struct sim_report report;
    struct ron_errinfo info;
    char how[256];
    char what[1024];
    bool good;

    if (RON_TSAN || RON_ASAN)
        shorten(&plan, model_case);
    runner_describe(&plan, how, sizeof(how));
    if (sim_explore(&plan, &report, &info) != RON_ERR_OK) {
        (void)printf("not ok %u - %s %s: %s\n", number, plan.model_name, how, info.message);
        return 1;
    }
    runner_summarize(&plan, &report, what, sizeof(what));
    good = as_expected(model_case, &plan, &report);
    (void)printf("%s %u - %s %s: %s\n", good ? "ok" : "not ok", number, plan.model_name, how, what);
    if (!good) {
        (void)printf("# expected %s", sim_verdict_name(model_case->expected));
        if (model_case->schedules_count != 0)
            (void)printf(", %llu schedules", (unsigned long long)model_case->schedules_count);
        if (model_case->message != NULL)
            (void)printf(", \"%s\"", model_case->message);
        (void)printf("\n");
        if (report.failed_run != 0)
            runner_print_failure(&plan, &report, "# ");
    }
    sim_report_fini(&report);
    return good ? 0 : 1;
}

static void start(struct entry *entry, unsigned number)
{
    entry->output = tmpfile();
    RON_ASSERT(entry->output != NULL);
    (void)fflush(NULL);
    entry->pid = fork();
    RON_ASSERT(entry->pid >= 0);
    if (entry->pid != 0)
        return;
    (void)dup2(fileno(entry->output), STDOUT_FILENO);
    (void)dup2(fileno(entry->output), STDERR_FILENO);
    exit(entry->model_case->compare ? run_comparison(entry, number) : run_case(entry, number));
}

static void wait_for_one(struct entry *entries, unsigned count)
{
    int status;
    pid_t pid = wait(&status);

    RON_ASSERT(pid > 0);
    for (unsigned i = 0; i < count; i++) {
        if (entries[i].pid != pid)
            continue;
        entries[i].status = status;
        entries[i].ended = true;
    }
}

/* Copy the output of a finished case; false if it failed. */
static bool print_entry(struct entry *entry, unsigned number)
{
    char line[4096];
    bool good = WIFEXITED(entry->status) && WEXITSTATUS(entry->status) == 0;
    bool exited = WIFEXITED(entry->status) && WEXITSTATUS(entry->status) <= 1;

    if (entry->model_case->race) {
        good = WIFEXITED(entry->status) && WEXITSTATUS(entry->status) == TSAN_STATUS;
        (void)printf("%s %u - %s: TSan reports its data race\n", good ? "ok" : "not ok", number,
                     entry->model->name);
        (void)fclose(entry->output);
        return good;
    }
    if (!exited)
        (void)printf("not ok %u - %s: the process died (status %d)\n", number, entry->model->name,
                     entry->status);
    rewind(entry->output);
    while (fgets(line, sizeof(line), entry->output) != NULL)
        (void)printf("%s%s", exited ? "" : "# ", line);
    (void)fclose(entry->output);
    (void)fflush(stdout);
    return good;
}

/* Their fibers keep notes for the checks in plain memory, which ThreadSanitizer rightly calls races
 * of the model; what they run is under it in the unit tests, on real threads. */
static bool races_by_itself(const struct model *model)
{
    static const char *const prefixes[] = {"disk_faults", "flights_awake", "log_", "parked_",
                                           "service_"};

    for (size_t i = 0; i < RON_ARRAY_COUNT(prefixes); i++)
        if (strncmp(model->name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static unsigned collect(struct entry *entries, const struct suite_selection *selection)
{
    const unsigned parts_count = selection->parts_count == 0 ? 1 : selection->parts_count;
    unsigned fitting = 0;
    unsigned count = 0;

    for (uint32_t i = 0; i < models_count; i++) {
        if ((selection->filter != NULL && strstr(models[i]->name, selection->filter) == NULL) ||
            (selection->only != NULL && selection->only != models[i]) ||
            (RON_TSAN && races_by_itself(models[i])))
            continue;
        for (uint32_t k = 0; k < models[i]->cases_count; k++) {
            const struct model_case *model_case = &models[i]->cases[k];

            if ((model_case->slow && !selection->slow) || (model_case->race && !RON_TSAN) ||
                ((model_case->cache || model_case->compare) && !with_cache))
                continue;
            if (fitting++ % parts_count != selection->part)
                continue;
            RON_ASSERT(count < CASES_MAX);
            entries[count++] = (struct entry){.model = models[i],
                                              .model_case = &models[i]->cases[k]};
        }
    }
    return count;
}

int suite_run(unsigned jobs_count, const struct suite_selection *selection)
{
    static struct entry entries[CASES_MAX];
    unsigned count = collect(entries, selection);
    unsigned started = 0;
    unsigned ended = 0;
    unsigned printed = 0;
    unsigned failed = 0;

    RON_ASSERT(jobs_count >= 1);
    RON_ASSERT(jobs_count <= JOBS_MAX);
    (void)printf("1..%u\n", count);
    while (printed < count) {
        while (started < count && started - ended < jobs_count) {
            start(&entries[started], started + 1);
            started++;
        }
        wait_for_one(entries, count);
        ended++;
        for (; printed < count && entries[printed].ended; printed++)
            failed += print_entry(&entries[printed], printed + 1) ? 0 : 1;
    }
    if (failed > 0)
        (void)printf("# %u of %u cases failed\n", failed, count);
    return failed > 0 ? 1 : 0;
}
