/*
 * runner.c - `explore`: list the models, run one, run all.
 */
#include "models/runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"

static const char usage[] =
    "usage: explore list\n"
    "       explore suite [--jobs N] [--part K/N] [--slow] [--filter TEXT] [--only MODEL]\n"
    "       explore seeds [MODEL] [--jobs N] [--seed S] [--seeds N | --seconds N]\n"
    "       explore run MODEL [--source dfs|random|pct] [--bound N|none] [--fine] [--cache]\n"
    "               [--seed S] [--runs N] [--seconds N] [--expected-steps N] [--steps N]\n"
    "               [--ticks N] [--late N] [--spurious N] [--wake] [--crashes N] [--faults N]\n"
    "               [--alloc N] [--spawn N] [--jumps N] [--random-seed S]\n"
    "       explore run MODEL --source replay --schedule TEXT\n";

const struct model *runner_find(const char *name)
{
    for (uint32_t i = 0; i < models_count; i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

struct sim_plan runner_plan(const struct model *model, const struct model_case *model_case)
{
    struct sim_plan plan = {.model_name = model->name,
                            .model = model->fn,
                            .argument = model->argument,
                            .config = model_case->config,
                            .strategy = model_case->strategy,
                            .cache = model_case->cache,
                            .seed = 1,
                            .runs_max = model_case->runs_max,
                            .expected_steps = model_case->expected_steps};

    if (plan.config.steps_max == 0)
        plan.config.steps_max = SIM_STEPS_MAX;
    return plan;
}

struct run_options {
    struct sim_plan plan;
    const char *schedule;
    bool replay;
};

static bool parse_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
    uint64_t value;

    if (ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK || value > max)
        return false;
    *ret_value = value;
    return true;
}

/* "2/3": the second of three parts. */
static bool parse_part(const char *text, struct suite_selection *selection)
{
    char first[8] = "";
    const char *slash = strchr(text, '/');
    uint64_t part;
    uint64_t parts_count;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(first))
        return false;
    memcpy(first, text, (size_t)(slash - text));
    if (!parse_u64(slash + 1, 64, &parts_count) || !parse_u64(first, parts_count, &part) ||
        part == 0)
        return false;
    selection->part = (unsigned)part - 1;
    selection->parts_count = (unsigned)parts_count;
    return true;
}

/* Options that are a number of the configuration. */
static uint32_t *number_option(struct sim_config *config, const char *name)
{
    const struct {
        const char *name;
        uint32_t *field;
    } table[] = {
        {"--ticks", &config->early_ticks},    {"--late", &config->late_ticks},
        {"--spurious", &config->spurious},    {"--crashes", &config->crashes},
        {"--faults", &config->faults},        {"--alloc", &config->alloc_failures},
        {"--spawn", &config->spawn_failures}, {"--jumps", &config->clock_jumps},
        {"--steps", &config->steps_max},
    };

    for (size_t i = 0; i < RON_ARRAY_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].field;
    return NULL;
}

static bool parse_source(struct run_options *options, const char *value)
{
    options->replay = strcmp(value, "replay") == 0;
    if (strcmp(value, "random") == 0)
        options->plan.strategy = SIM_STRATEGY_RANDOM;
    else if (strcmp(value, "pct") == 0)
        options->plan.strategy = SIM_STRATEGY_PCT;
    else if (strcmp(value, "dfs") != 0 && !options->replay)
        return false;
    return true;
}

/* An option with a value. */
static bool parse_pair(struct run_options *options, const char *name, const char *value)
{
    struct sim_plan *plan = &options->plan;
    uint32_t *field = number_option(&plan->config, name);
    uint64_t number = 0;

    if (strcmp(name, "--source") == 0)
        return parse_source(options, value);
    if (strcmp(name, "--schedule") == 0) {
        options->schedule = value;
        return true;
    }
    if (strcmp(name, "--bound") == 0 && strcmp(value, "none") == 0) {
        plan->config.preemption_bound = SIM_UNBOUNDED;
        return true;
    }
    if (strcmp(name, "--bound") == 0)
        field = &plan->config.preemption_bound;
    if (!parse_u64(value, field != NULL ? UINT32_MAX - 1 : UINT64_MAX, &number))
        return false;
    if (field != NULL)
        *field = (uint32_t)number;
    else if (strcmp(name, "--seed") == 0)
        plan->seed = number;
    else if (strcmp(name, "--runs") == 0)
        plan->runs_max = number;
    else if (strcmp(name, "--seconds") == 0)
        plan->time_max_ms = number * 1000;
    else if (strcmp(name, "--expected-steps") == 0)
        plan->expected_steps = number < 4 ? 4 : (uint32_t)number;
    else if (strcmp(name, "--random-seed") == 0)
        plan->config.random_seed = number;
    else
        return false;
    return true;
}

static bool parse_options(struct run_options *options, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--fine") == 0) {
            options->plan.config.fine = 1;
        } else if (strcmp(argv[i], "--cache") == 0) {
            options->plan.cache = true;
        } else if (strcmp(argv[i], "--wake") == 0) {
            options->plan.config.wake_choice = 1;
        } else if (i + 1 == argc || !parse_pair(options, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "explore: bad option %s\n%s", argv[i], usage);
            return false;
        } else {
            i++;
        }
    }
    return options->plan.config.steps_max > 0;
}

static int replay(const struct run_options *options)
{
    struct sim_schedule schedule;
    struct sim_report report;
    struct ron_errinfo info;
    bool failed = true;

    if (options->schedule == NULL || sim_schedule_parse(options->schedule, &schedule, &info) != 0) {
        (void)fprintf(stderr, "explore: %s\n",
                      options->schedule == NULL ? "replay needs --schedule" : info.message);
        return 2;
    }
    if (strcmp(schedule.model_name, options->plan.model_name) != 0) {
        (void)fprintf(stderr, "explore: the schedule is one of %s\n", schedule.model_name);
    } else if (sim_replay_schedule(&options->plan, &schedule, &report, &info) != RON_ERR_OK) {
        (void)fprintf(stderr, "explore: %s\n", info.message);
    } else {
        (void)printf("%.*s%s: %s\n", RON_SLICE_FMT(ron_buf_slice(&report.trace)),
                     sim_verdict_name(report.result.verdict), report.result.message);
        failed = report.result.verdict != SIM_OK;
        sim_report_fini(&report);
    }
    sim_schedule_fini(&schedule);
    return failed ? 1 : 0;
}

static void show_progress(const struct sim_report *report, void *context)
{
    (void)context;
    (void)fprintf(stderr, "\r%llu schedules, %llu pruned, %llu s ",
                  (unsigned long long)report->runs_count, (unsigned long long)report->pruned_count,
                  (unsigned long long)(report->elapsed_ns / 1000000000));
}

static int run(const struct model *model, int argc, char **argv)
{
    const struct model_case plain = {.config = {.preemption_bound = SIM_UNBOUNDED}};
    struct run_options options = {.plan = runner_plan(model, &plain)};
    struct sim_report report;
    struct ron_errinfo info;
    char how[256];
    char what[1024];

    if (!parse_options(&options, argc, argv))
        return 2;
    if (options.replay)
        return replay(&options);
    if (isatty(STDERR_FILENO))
        options.plan.progress = show_progress;
    if (sim_explore(&options.plan, &report, &info) != RON_ERR_OK) {
        (void)fprintf(stderr, "explore: %s\n", info.message);
        sim_report_fini(&report);
        return 2;
    }
    if (options.plan.progress != NULL)
        (void)fprintf(stderr, "\r\033[K");
    runner_describe(&options.plan, how, sizeof(how));
    runner_summarize(&options.plan, &report, what, sizeof(what));
    (void)printf("%s %s: %s\n", model->name, how, what);
    if (report.failed_run != 0)
        runner_print_failure(&options.plan, &report, "");
    sim_report_fini(&report);
    return report.failed_run != 0 ? 1 : 0;
}

static int list(void)
{
    for (uint32_t i = 0; i < models_count; i++)
        (void)printf("%-24s %2u cases  %s\n", models[i]->name, models[i]->cases_count,
                     models[i]->about);
    return 0;
}

static int suite(int argc, char **argv)
{
    struct suite_selection selection = {0};
    uint64_t jobs_count = 1;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--slow") == 0) {
            selection.slow = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--filter") == 0) {
            selection.filter = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--part") == 0 &&
                   parse_part(argv[i + 1], &selection)) {
            i++;
        } else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
            selection.only = runner_find(argv[++i]);
            if (selection.only == NULL) {
                (void)fprintf(stderr, "explore: no model %s; see explore list\n", argv[i]);
                return 2;
            }
        } else if (i + 1 == argc || strcmp(argv[i], "--jobs") != 0 ||
                   !parse_u64(argv[++i], 64, &jobs_count) || jobs_count == 0) {
            (void)fprintf(stderr, "explore: bad option %s\n%s", argv[i], usage);
            return 2;
        }
    }
    return suite_run((unsigned)jobs_count, &selection);
}

static int seeds(int argc, char **argv)
{
    struct seeds_selection selection = {.seed = 1, .seeds_count = 2000};
    uint64_t jobs_count = 1;
    int i = 0;

    selection.model = runner_find(argc > 0 && argv[0][0] != '-' ? argv[i++] : "service_sim");
    if (selection.model == NULL || selection.model->cases[0].strategy != SIM_STRATEGY_RANDOM) {
        (void)fprintf(stderr, "explore: no simulation of that name; see explore list\n");
        return 2;
    }
    for (; i < argc; i += 2) {
        const bool pair = i + 1 < argc;

        if (pair && strcmp(argv[i], "--jobs") == 0 && parse_u64(argv[i + 1], 16, &jobs_count) &&
            jobs_count > 0)
            continue;
        if (pair && strcmp(argv[i], "--seed") == 0 &&
            parse_u64(argv[i + 1], UINT64_MAX / 2, &selection.seed))
            continue;
        if (pair && strcmp(argv[i], "--seeds") == 0 &&
            parse_u64(argv[i + 1], UINT64_MAX / 2, &selection.seeds_count))
            continue;
        if (pair && strcmp(argv[i], "--seconds") == 0 &&
            parse_u64(argv[i + 1], 1000000, &selection.seconds))
            continue;
        (void)fprintf(stderr, "explore: bad option %s\n%s", argv[i], usage);
        return 2;
    }
    selection.jobs_count = (unsigned)jobs_count;
    return seeds_run(&selection);
}

int main(int argc, char **argv)
{
    const struct model *model;

    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    if (argc >= 2 && strcmp(argv[1], "suite") == 0)
        return suite(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "seeds") == 0)
        return seeds(argc - 2, argv + 2);
    if (argc < 3 || strcmp(argv[1], "run") != 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    model = runner_find(argv[2]);
    if (model == NULL) {
        (void)fprintf(stderr, "explore: no model %s; see explore list\n", argv[2]);
        return 2;
    }
    return run(model, argc - 3, argv + 3);
}
