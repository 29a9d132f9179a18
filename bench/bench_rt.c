/*
 * bench_rt.c - counting, logging and waking: what the runtime's smallest operations cost, beside
 * what they are made of. Queues are in bench_rt_queue.c.
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "harness.h"
#include "rt/log.h"
#include "rt/metrics.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/watch.h"

enum { CAPACITY = 1024, THREADS_MAX = 4 };

/* Counters. */

struct counting {
    struct rt_counter counter;
    struct rt_histogram histogram;
    _Atomic uint64_t shared;
    void (*count)(struct counting *counting, uint64_t rounds);
    uint64_t rounds;
};

static void count_shared(struct counting *counting, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        atomic_fetch_add_explicit(&counting->shared, 1, memory_order_relaxed);
}

static void count_metric(struct counting *counting, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        rt_metric_add(counting->counter, 1);
        BENCH_FORGET();
    }
}

static void count_histogram(struct counting *counting, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        rt_metric_observe(&counting->histogram, i & 1023);
}

static void count_here(void *context, uint64_t rounds)
{
    struct counting *counting = context;

    counting->count(counting, rounds);
}

static void run_counting(void *context)
{
    struct counting *counting = context;

    counting->count(counting, counting->rounds);
    rt_slot_release();
}

static void count_in_threads(void *context, uint64_t rounds)
{
    struct counting *counting = context;
    struct sh_thread *threads[THREADS_MAX];

    counting->rounds = rounds;
    for (unsigned i = 0; i < THREADS_MAX; i++)
        RON_MUST_ZERO(sh_spawn("counting", run_counting, counting, &threads[i], NULL));
    for (unsigned i = 0; i < THREADS_MAX; i++)
        RON_MUST_ZERO(!sh_join(threads[i], SH_NEVER));
}

static void compare_counters(const struct bench_options *options)
{
    static const uint64_t buckets[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    static const struct rt_metric metrics_table[] = {
        {.name = "count_total", .help = "", .series_max = 1},
        {.name = "latency",
         .help = "",
         .type = RT_METRIC_HISTOGRAM,
         .series_max = 1,
         .buckets = buckets,
         .buckets_count = RON_ARRAY_COUNT(buckets)},
    };
    const struct rt_metric_table table = {metrics_table, 2};
    static struct counting kinds[3] = {
        {.count = count_shared}, {.count = count_metric}, {.count = count_histogram}};
    struct rt_metrics *metrics;
    struct bench_contestant contestants[] = {
        {"one shared atomic", count_here, &kinds[0], 0},
        {"rt_metric_add", count_here, &kinds[1], 0},
        {"rt_metric_observe, 10", count_here, &kinds[2], 0},
    };

    RON_MUST_ZERO(rt_metrics_new(&table, 1, &metrics, NULL));
    for (size_t i = 0; i < 3; i++) {
        kinds[i].counter = rt_metrics_counter(metrics, &metrics_table[0], NULL);
        kinds[i].histogram = rt_metrics_histogram(metrics, &metrics_table[1], NULL);
    }
    bench_compare(options, &(struct bench_table){.title = "count, on its own thread",
                                                 .rival = contestants[0].name,
                                                 .contestants = contestants,
                                                 .contestants_count = 3});
    for (size_t i = 0; i < 3; i++)
        contestants[i].run = count_in_threads;
    bench_compare(options,
                  &(struct bench_table){.title = "count, in 4 threads at once (wall time an add of "
                                                 "one thread)",
                                        .rival = contestants[0].name,
                                        .contestants = contestants,
                                        .contestants_count = 3});
    rt_metrics_free(metrics);
}

/* The log. */

static enum ron_err swallow(void *context, struct ron_slice lines, struct ron_errinfo *reterr)
{
    (void)context, (void)lines, (void)reterr;
    return RON_ERR_OK;
}

static void log_lines(void *context, uint64_t rounds)
{
    static struct rt_log_site site = {__FILE__, __LINE__, RT_LOG_INFO, "a line", 0, 0};

    for (uint64_t i = 0; i < rounds; i++) {
        const struct rt_log_field fields[] = {rt_log_text("queue", "commit"), rt_log_u64("i", i)};

        atomic_store_explicit(&site.window, 0, memory_order_relaxed); /* no limit here */
        rt_log_at(context, &site, fields, 2);
    }
}

static void print_lines(void *context, uint64_t rounds)
{
    char text[RT_LOG_LINE_SIZE_MAX];

    for (uint64_t i = 0; i < rounds; i++) {
        (void)snprintf(text, sizeof(text),
                       "{\"ts\":%llu,\"level\":\"%s\",\"msg\":\"%s\",\"src\":\"%s:%d\","
                       "\"queue\":\"%s\",\"i\":%llu}\n",
                       (unsigned long long)rt_utc_ms(), "info", "a line", __FILE__, __LINE__,
                       (const char *)context, (unsigned long long)i);
        BENCH_USE(text);
    }
}

static void compare_log(const struct bench_options *options) RON_BLOCKS
{
    const struct rt_log_options log_options = {
        .level = RT_LOG_INFO, .form = RT_LOG_JSON, .ring_size = 8 << 20, .write = swallow};
    struct rt_log_stats stats;
    struct rt_log *log;
    char queue[] = "commit";

    RON_MUST_ZERO(rt_log_new(&log_options, &log, NULL));
    const struct bench_contestant contestants[] = {
        {"snprintf of the line", print_lines, queue, 0},
        {"rt_log, to the ring", log_lines, log, 0},
    };
    bench_compare(options, &(struct bench_table){.title = "log line with two fields",
                                                 .rival = contestants[0].name,
                                                 .contestants = contestants,
                                                 .contestants_count = 2});
    RON_MUST_ZERO(rt_log_stop(log, RT_DEADLINE_NEVER, NULL));
    rt_log_get_stats(log, &stats);
    printf("  %llu lines, %llu of them dropped\n", (unsigned long long)stats.accepted_count,
           (unsigned long long)stats.dropped_count);
    rt_log_free(log);
}

/* Wake-ups. */

struct waking {
    const char *name;
    void (*wake)(struct waking *waking, uint64_t sent_ns);
    uint64_t (*wait)(struct waking *waking); /* the sent_ns of the wake-up */
    struct rt_queue *queue;
    struct rt_watch *watch;
    uint64_t watch_version;
    uint64_t sent_ns;
    _Atomic uint32_t futex;
    _Atomic uint64_t done_count;
    size_t samples_count;
    uint64_t samples_ns[4096];
};

static void wake_futex(struct waking *waking, uint64_t sent_ns)
{
    waking->sent_ns = sent_ns;
    atomic_store_explicit(&waking->futex, 1, memory_order_release);
    (void)syscall(SYS_futex, &waking->futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint64_t wait_futex(struct waking *waking)
{
    while (atomic_exchange_explicit(&waking->futex, 0, memory_order_acquire) == 0)
        (void)syscall(SYS_futex, &waking->futex, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return waking->sent_ns;
}

static void wake_queue(struct waking *waking, uint64_t sent_ns)
{
    waking->sent_ns = sent_ns;
    RON_MUST_ZERO(rt_queue_try_send(waking->queue, (struct rt_queue_item){waking, 1}, NULL));
}

static uint64_t wait_queue(struct waking *waking) RON_BLOCKS
{
    void *pointer;

    RON_MUST_ZERO(rt_queue_recv(waking->queue, RT_DEADLINE_NEVER, &pointer, NULL));
    return waking->sent_ns;
}

static void wake_watch(struct waking *waking, uint64_t sent_ns)
{
    rt_watch_set(waking->watch, &sent_ns);
}

static uint64_t wait_watch(struct waking *waking) RON_BLOCKS
{
    uint64_t sent_ns;

    RON_MUST_ZERO(rt_watch_wait(waking->watch, waking->watch_version, RT_DEADLINE_NEVER, &sent_ns,
                                &waking->watch_version, NULL));
    return sent_ns;
}

static void run_waiter(void *context) RON_BLOCKS
{
    struct waking *waking = context;

    for (size_t i = 0; i < waking->samples_count; i++) {
        uint64_t sent_ns = waking->wait(waking);

        waking->samples_ns[i] = bench_now_ns() - sent_ns;
        atomic_store_explicit(&waking->done_count, i + 1, memory_order_release);
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void measure_waking(struct waking *waking) RON_BLOCKS
{
    struct sh_thread *thread;

    waking->done_count = 0;
    RON_MUST_ZERO(sh_spawn("waiter", run_waiter, waking, &thread, NULL));
    for (size_t i = 0; i < waking->samples_count; i++) {
        while (atomic_load_explicit(&waking->done_count, memory_order_acquire) < i)
            (void)sched_yield();
        sh_sleep_until(bench_now_ns() + 100000); /* until it surely sleeps */
        waking->wake(waking, bench_now_ns());
    }
    RON_MUST_ZERO(!sh_join(thread, SH_NEVER));
    qsort(waking->samples_ns, waking->samples_count, sizeof(waking->samples_ns[0]), compare_u64);
    printf("  %-26s %11.1f %11.1f %11.1f\n", waking->name,
           (double)waking->samples_ns[waking->samples_count / 2],
           (double)waking->samples_ns[waking->samples_count * 99 / 100],
           (double)waking->samples_ns[waking->samples_count - 1]);
    (void)fflush(stdout);
}

static void compare_waking(const struct bench_options *options) RON_BLOCKS
{
    static struct waking kinds[] = {
        {.name = "raw futex", .wake = wake_futex, .wait = wait_futex},
        {.name = "rt_queue", .wake = wake_queue, .wait = wait_queue},
        {.name = "rt_watch", .wake = wake_watch, .wait = wait_watch, .watch_version = 1},
    };
    const struct rt_queue_options queue_options = {
        .name = "bench", .owner = "bench", .policy = "rejects", .capacity = CAPACITY};
    const struct rt_watch_options watch_options = {"bench", "bench", sizeof(uint64_t)};

    RON_MUST_ZERO(rt_queue_new(&queue_options, &kinds[1].queue, NULL));
    RON_MUST_ZERO(rt_watch_new(&watch_options, &(uint64_t){0}, &kinds[2].watch, NULL));
    for (unsigned run = 0; run < (options->quick ? 1 : 3); run++) {
        printf("\nwake-up of a sleeping thread, call to return\n");
        printf("  %-26s %11s %11s %11s\n", "", "p50 ns", "p99 ns", "max ns");
        for (size_t i = 0; i < RON_ARRAY_COUNT(kinds); i++) {
            kinds[i].samples_count = options->quick ? 64 : RON_ARRAY_COUNT(kinds[i].samples_ns);
            measure_waking(&kinds[i]);
        }
    }
    rt_watch_free(kinds[2].watch);
    rt_queue_free(kinds[1].queue);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    rt_init();
    compare_counters(&options);
    compare_log(&options);
    compare_waking(&options);
    return 0;
}
