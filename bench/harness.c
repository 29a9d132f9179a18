/*
 * harness.c - see harness.h.
 */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/assert.h"

/* How long one measured run takes at least. */
enum { RUN_MS = 100, RUN_QUICK_MS = 2 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(clock, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t bench_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void print_processor(void)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    const char *name = NULL;

    while (file != NULL && name == NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL)
            name = strchr(line, ':') + 2;
    printf("processor %.*s, ", name == NULL ? 7 : (int)strcspn(name, "\n"),
           name == NULL ? "unknown" : name);
    if (file != NULL)
        (void)fclose(file);
}

void bench_print_machine(void)
{
    print_processor();
#if defined(__clang__)
    printf("compiler clang %s", __clang_version__);
#else
    printf("compiler gcc %s", __VERSION__);
#endif
#if !defined(__OPTIMIZE__)
    printf(" WITHOUT OPTIMISATION");
#endif
    printf("\n");
}

bool bench_begin(int argc, char **argv, struct bench_options *ret_options)
{
    struct bench_options options = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            options.quick = true;
        } else if (strcmp(argv[i], "--cpu-time") == 0) {
            options.cpu_time = true;
        } else {
            (void)fprintf(stderr, "usage: %s [--quick] [--cpu-time]\n", argv[0]);
            return false;
        }
    }
    *ret_options = options;
    bench_print_machine();
    printf("%d runs of at least %d ms of %s time each, alternating%s\n", BENCH_RUNS,
           options.quick ? RUN_QUICK_MS : RUN_MS, options.cpu_time ? "processor" : "wall clock",
           options.quick ? " (quick: figures mean little)" : "");
    return true;
}

/* How often the system took the processor away: the usual reason of a wide spread. */
static long preemptions_count(void)
{
    struct rusage usage;

    RON_MUST_ZERO(getrusage(RUSAGE_SELF, &usage));
    return usage.ru_nivcsw;
}

static uint64_t run_ns(const struct bench_options *options,
                       const struct bench_contestant *contestant, uint64_t rounds)
{
    const clockid_t clock = options->cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    uint64_t start_ns = clock_ns(clock);

    contestant->run(contestant->context, rounds);
    return clock_ns(clock) - start_ns;
}

/* Rounds that take at least run_min_ns; the search also warms caches and branch predictors. */
static uint64_t calibrate(const struct bench_options *options,
                          const struct bench_contestant *contestant, uint64_t run_min_ns)
{
    uint64_t rounds = 1;

    for (;;) {
        uint64_t took_ns = run_ns(options, contestant, rounds);

        if (took_ns >= run_min_ns)
            return rounds;
        RON_ASSERT(rounds <= UINT64_MAX / 16); /* the work was optimised away */
        if (took_ns < run_min_ns / 16)
            rounds *= 8;
        else
            rounds = rounds * run_min_ns / took_ns + rounds / 8 + 1;
    }
}

struct result {
    uint64_t rounds;
    double raw_ns[BENCH_RUNS]; /* per item, in the order of running */
    double sorted_ns[BENCH_RUNS];
};

static void sort_runs(struct result *result)
{
    memcpy(result->sorted_ns, result->raw_ns, sizeof(result->raw_ns));
    for (size_t i = 1; i < BENCH_RUNS; i++)
        for (size_t j = i; j > 0 && result->sorted_ns[j] < result->sorted_ns[j - 1]; j--) {
            double swap = result->sorted_ns[j];

            result->sorted_ns[j] = result->sorted_ns[j - 1];
            result->sorted_ns[j - 1] = swap;
        }
}

static double median_ns(const struct result *result)
{
    return result->sorted_ns[BENCH_RUNS / 2];
}

static void print_table(const struct bench_table *table, const struct result *results,
                        size_t rival_index, long preempted_count)
{
    printf("\n%s; preempted %ld times\n", table->title, preempted_count);
    printf("  %-26s %11s %25s %9s", "", "median ns", "min .. max", "ratio");
    if (table->item_size > 0)
        printf(" %8s", "GB/s");
    printf("   raw ns\n");
    for (size_t i = 0; i < table->contestants_count; i++) {
        const struct result *result = &results[i];
        double min_ns = result->sorted_ns[0];
        double max_ns = result->sorted_ns[BENCH_RUNS - 1];

        printf("  %-26s %11.1f %10.1f .. %10.1f%c %8.2f%c", table->contestants[i].name,
               median_ns(result), min_ns, max_ns, max_ns > 1.25 * min_ns ? '~' : ' ',
               median_ns(&results[rival_index]) / median_ns(result), i == rival_index ? '*' : ' ');
        if (table->item_size > 0)
            printf(" %7.2f", (double)table->item_size / median_ns(result));
        printf("  ");
        for (size_t r = 0; r < BENCH_RUNS; r++)
            printf(" %.1f", result->raw_ns[r]);
        printf("\n");
    }
    (void)fflush(stdout);
}

void bench_compare(const struct bench_options *options, const struct bench_table *table)
{
    const uint64_t run_min_ns = (options->quick ? RUN_QUICK_MS : RUN_MS) * 1000000u;
    const size_t count = table->contestants_count;
    struct result results[BENCH_CONTESTANTS_MAX] = {0};
    size_t rival_index = count;
    long preempted_count;

    RON_ASSERT(count > 0);
    RON_ASSERT(count <= BENCH_CONTESTANTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table->contestants[i].name, table->rival) == 0)
            rival_index = i;
        results[i].rounds = calibrate(options, &table->contestants[i], run_min_ns);
    }
    RON_ASSERT(rival_index < count);
    preempted_count = preemptions_count();
    for (size_t r = 0; r < BENCH_RUNS; r++)
        for (size_t turn = 0; turn < count; turn++) {
            size_t i = (turn + r) % count; /* nobody always follows the same neighbour's heat */
            uint64_t items_count = table->contestants[i].items_count;
            uint64_t took_ns = run_ns(options, &table->contestants[i], results[i].rounds);

            if (items_count == 0)
                items_count = 1;
            results[i].raw_ns[r] = (double)took_ns /
                                   ((double)results[i].rounds * (double)items_count);
        }
    preempted_count = preemptions_count() - preempted_count;
    for (size_t i = 0; i < count; i++)
        sort_runs(&results[i]);
    print_table(table, results, rival_index, preempted_count);
}
