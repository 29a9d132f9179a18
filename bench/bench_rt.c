/*
 * bench_rt.c - what the runtime's hot operations cost. Each figure is the median of five runs, with
 * the fastest and the slowest beside it: CPU time of the thread where one thread works, so that
 * other load does not count; real time where two do.
 *
 *     bench_rt [ROUNDS]      default 1,000,000 operations a run
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "rt/atomic.h"
#include "rt/lock.h"
#include "rt/log.h"
#include "rt/metrics.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"

enum { RUNS = 5, BATCH = 64, CAPACITY = 1024 };

static uint64_t rounds = 1000000;
static struct rt_supervisor *supervisor;
static struct rt_queue *queue;
static struct rt_metrics *metrics;
static struct rt_series counter, histogram;
static struct rt_log *log_object;
static struct rt_strands *strands;
static struct rt_lane_id lanes[64];
static int payload[1];

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

enum clock { CPU, REAL };

static uint64_t read_clock(enum clock clock)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(clock == CPU ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * RT_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Run five times; report nanoseconds an operation in hundredths. */
static void measure(const char *name, void (*run)(uint64_t count), uint64_t count, enum clock clock)
{
    uint64_t hundredths[RUNS];

    run(count / 10); /* warm up */
    for (unsigned i = 0; i < RUNS; i++) {
        uint64_t begin_ns = read_clock(clock);
        run(count);
        hundredths[i] = (read_clock(clock) - begin_ns) * 100 / count;
    }
    qsort(hundredths, RUNS, sizeof(hundredths[0]), compare);
    printf("%-46s %4s %6llu.%02llu ns  (%llu.%02llu .. %llu.%02llu)\n", name,
           clock == CPU ? "cpu" : "real", (unsigned long long)hundredths[2] / 100,
           (unsigned long long)hundredths[2] % 100, (unsigned long long)hundredths[0] / 100,
           (unsigned long long)hundredths[0] % 100, (unsigned long long)hundredths[4] / 100,
           (unsigned long long)hundredths[4] % 100);
}

static void run_lock(uint64_t count)
{
    struct rt_lock lock;

    rt_lock_init(&lock, "bench", RON_RANK_queue);
    for (uint64_t i = 0; i < count; i++) {
        rt_lock_take(&lock);
        rt_lock_drop(&lock);
    }
    rt_lock_fini(&lock);
}

static void run_queue_single(uint64_t count)
{
    void *pointer;

    for (uint64_t i = 0; i < count; i++) {
        RON_MUST_ZERO(rt_queue_try_send(queue, (struct rt_queue_item){payload, 1}, NULL));
        RON_ASSERT(rt_queue_try_recv_many(queue, &pointer, 1) == 1);
    }
}

static void run_queue_batch(uint64_t count)
{
    struct rt_queue_item items[BATCH];
    void *pointers[BATCH];
    size_t sent;

    for (unsigned i = 0; i < BATCH; i++)
        items[i] = (struct rt_queue_item){payload, 1};
    for (uint64_t i = 0; i < count; i += BATCH) {
        RON_MUST_ZERO(rt_queue_try_send_many(queue, items, BATCH, &sent, NULL));
        RON_ASSERT(rt_queue_try_recv_many(queue, pointers, BATCH) == BATCH);
    }
}

static void receive_all(void *context) RON_BLOCKS
{
    uint64_t left = *(uint64_t *)context;
    void *pointers[BATCH];
    size_t count;

    while (left > 0) {
        RON_MUST_ZERO(
            rt_queue_recv_many(queue, pointers, BATCH, 0, RT_DEADLINE_NEVER, &count, NULL));
        left -= count;
    }
}

static void run_queue_pair(uint64_t count) RON_BLOCKS
{
    struct sh_thread *thread;

    RON_MUST_ZERO(sh_spawn("receiver", receive_all, &count, &thread, NULL));
    for (uint64_t i = 0; i < count; i++)
        RON_MUST_ZERO(rt_queue_send_until(queue, (struct rt_queue_item){payload, 1},
                                          RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(sh_join(thread, SH_NEVER));
}

static void run_queue_pair_batched(uint64_t count) RON_BLOCKS
{
    struct rt_queue_item items[BATCH];
    struct sh_thread *thread;
    uint64_t rest = count;

    for (unsigned i = 0; i < BATCH; i++)
        items[i] = (struct rt_queue_item){payload, 1};
    RON_MUST_ZERO(sh_spawn("receiver", receive_all, &count, &thread, NULL));
    while (rest > 0) {
        size_t sent = 0, wanted = rest < BATCH ? (size_t)rest : BATCH;

        if (rt_queue_try_send_many(queue, items, wanted, &sent, NULL) != RON_ERR_OK)
            sh_yield();
        rest -= sent;
    }
    RON_ASSERT(sh_join(thread, SH_NEVER));
}

static void run_counter(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        rt_metrics_add(metrics, counter, 1);
}

static void run_histogram(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        rt_metrics_observe(metrics, histogram, i & 1023);
}

static void run_log(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        rt_log(log_object, RT_LOG_INFO, "a line", rt_u64("i", i), rt_text("queue", "commit"));
}

static void run_strands(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        while (rt_lane_send(strands, lanes[i % 64], payload, NULL) != RON_ERR_OK)
            sh_yield();
    }
}

static void swallow(void *context, struct ron_slice lines)
{
    (void)context, (void)lines;
}

static void handle(void *context, void *lane, void *item)
{
    (void)context, (void)lane, (void)item;
}

static void drop(void *context, void *lane, void *item, enum ron_err reason)
{
    (void)context, (void)lane, (void)item, (void)reason;
}

static enum ron_err measure_in_task(struct rt_task *task, void *argument)
{
    (void)task, (void)argument;
    measure("counter add, in a task", run_counter, rounds * 10, CPU);
    measure("histogram observe, in a task", run_histogram, rounds * 10, CPU);
    return RON_ERR_OK;
}

static void make_all(void) RON_BLOCKS
{
    static const uint64_t bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    static const struct rt_metric_desc descs[] = {
        {.name = "count_total", .help = "", .kind = RT_METRIC_COUNTER},
        {.name = "latency",
         .help = "",
         .kind = RT_METRIC_HISTOGRAM,
         .bounds = bounds,
         .bounds_count = RON_ARRAY_COUNT(bounds)}};
    const struct rt_supervisor_options root = {.name = "root", .owner = "bench", .tasks_max = 8};
    const struct rt_queue_options queue_options = {
        .name = "bench", .owner = "bench", .policy = "", .capacity = CAPACITY};
    const struct rt_log_options log_options = {
        .name = "log", .owner = "bench", .lines_max = 4096, .sink = swallow};
    const struct rt_strands_options strands_options = {.name = "lanes",
                                                       .owner = "bench",
                                                       .kind = "lane",
                                                       .threads_count = 2,
                                                       .lanes_max = 64,
                                                       .lane_capacity = 64,
                                                       .items_max = 4096,
                                                       .handle = handle,
                                                       .drop = drop};

    RON_MUST_ZERO(rt_supervisor_new(&root, &supervisor, NULL));
    RON_MUST_ZERO(rt_queue_new(&queue_options, &queue, NULL));
    RON_MUST_ZERO(rt_metrics_new(descs, 2, &metrics, NULL));
    RON_MUST_ZERO(rt_log_new(&log_options, supervisor, &log_object, NULL));
    RON_MUST_ZERO(rt_strands_new(&strands_options, supervisor, &strands, NULL));
    for (unsigned i = 0; i < 64; i++)
        RON_MUST_ZERO(rt_lane_open(strands, payload, 1, &lanes[i], NULL));
    counter = rt_metrics_series(metrics, 0, NULL);
    histogram = rt_metrics_series(metrics, 1, NULL);
}

int main(int argc, char **argv) RON_BLOCKS
{
    const struct rt_task_options task_options = {
        .kind = "bench", .name = "bench", .owner = "bench", .fn = measure_in_task};
    struct rt_task *task;
    enum ron_err result;

    if (argc > 1)
        rounds = strtoull(argv[1], NULL, 10);
    if (rounds < 1000)
        return 2;
    rt_init();
    make_all();
    measure("lock and unlock, free", run_lock, rounds * 10, CPU);
    measure("queue: try_send + try_recv, one thread", run_queue_single, rounds, CPU);
    measure("queue: the same in batches of 64, per item", run_queue_batch, rounds / 64 * 64 * 10,
            CPU);
    measure("queue: send_until -> recv_many(64), 2 threads", run_queue_pair, rounds, REAL);
    measure("queue: batches of 64 both sides, 2 threads", run_queue_pair_batched, rounds * 4, REAL);
    measure("counter add, shared slot", run_counter, rounds * 10, CPU);
    RON_MUST_ZERO(rt_task_spawn(supervisor, &task_options, &task, NULL));
    RON_MUST_ZERO(rt_task_join(task, RT_DEADLINE_NEVER, &result, NULL));
    measure("log line with two fields (drops included)", run_log, rounds / 10, CPU);
    measure("lane send, 64 lanes on 2 threads", run_strands, rounds / 4, REAL);
    RON_MUST_ZERO(rt_strands_drain(strands, RT_DEADLINE_NEVER, NULL));
    RON_MUST_ZERO(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    printf("log lines dropped: %llu\n", (unsigned long long)rt_log_dropped_count(log_object));
    rt_strands_free(strands);
    rt_log_free(log_object);
    rt_metrics_free(metrics);
    rt_queue_free(queue);
    rt_supervisor_free(supervisor);
    return 0;
}
