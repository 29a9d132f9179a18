/*
 * test_rt_metrics.c - metrics: exact text of an exposition, bounded series, shards that lose
 * nothing. Method: golden text; tasks that count together.
 */
#include "support.h"

#include "rt/local.h"
#include "rt/metrics.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { UPTIME, DEPTH, BUSY, LATENCY, SIZES };

static const char *const queue_labels[] = {"role", "queue"};
static const uint64_t latency_bounds_us[] = {500, 1000, 2500000};
static const uint64_t size_bounds[] = {1, 10};
static const struct rt_metric_desc descs[] = {
    [UPTIME] = {.name = "uptime_seconds",
                .help = "time since start",
                .kind = RT_METRIC_COUNTER,
                .decimals = 3},
    [DEPTH] = {.name = "queue_depth",
               .help = "items \"now\"\nper \\ queue",
               .kind = RT_METRIC_GAUGE,
               .labels = queue_labels,
               .labels_count = 2,
               .series_max = 3},
    [BUSY] = {.name = "busy_rejections_total",
              .help = "refused for want of room",
              .kind = RT_METRIC_COUNTER,
              .labels = queue_labels + 1,
              .labels_count = 1,
              .series_max = 2},
    [LATENCY] = {.name = "commit_seconds",
                 .help = "time to commit",
                 .kind = RT_METRIC_HISTOGRAM,
                 .decimals = 6,
                 .bounds = latency_bounds_us,
                 .bounds_count = 3},
    [SIZES] = {.name = "batch_size",
               .help = "entries",
               .kind = RT_METRIC_HISTOGRAM,
               .labels = queue_labels,
               .labels_count = 2,
               .series_max = 1,
               .bounds = size_bounds,
               .bounds_count = 2},
};

static struct rt_metrics *make(void)
{
    struct rt_metrics *metrics = NULL;

    assert_ok(rt_metrics_new(descs, RON_ARRAY_COUNT(descs), &metrics, NULL));
    return metrics;
}

static struct rt_series series_of(struct rt_metrics *metrics, size_t metric, const char *first,
                                  const char *second)
{
    const char *values[] = {first, second};

    return rt_metrics_series(metrics, metric, values);
}

static void collect_depth(struct rt_metrics *metrics, void *context)
{
    rt_metrics_gauge(metrics, series_of(metrics, DEPTH, "led\"ger", "in\\gress\n"), -7);
    rt_metrics_gauge(metrics, series_of(metrics, DEPTH, "", "commit"), *(int64_t *)context);
    rt_metrics_mirror(metrics, series_of(metrics, BUSY, "commit", NULL), 12);
}

static void metrics_write_the_exact_text(void **state)
{
    static const char expected[] = "# HELP uptime_seconds time since start\n"
                                   "# TYPE uptime_seconds counter\n"
                                   "uptime_seconds 1.25\n"
                                   "# HELP queue_depth items \"now\"\\nper \\\\ queue\n"
                                   "# TYPE queue_depth gauge\n"
                                   "queue_depth{role=\"led\\\"ger\",queue=\"in\\\\gress\\n\"} -7\n"
                                   "queue_depth{role=\"\",queue=\"commit\"} 9223372036854775807\n"
                                   "# HELP busy_rejections_total refused for want of room\n"
                                   "# TYPE busy_rejections_total counter\n"
                                   "busy_rejections_total{queue=\"commit\"} 12\n"
                                   "# HELP commit_seconds time to commit\n"
                                   "# TYPE commit_seconds histogram\n"
                                   "commit_seconds_bucket{le=\"0.0005\"} 2\n"
                                   "commit_seconds_bucket{le=\"0.001\"} 3\n"
                                   "commit_seconds_bucket{le=\"2.5\"} 3\n"
                                   "commit_seconds_bucket{le=\"+Inf\"} 4\n"
                                   "commit_seconds_sum 3.001001\n"
                                   "commit_seconds_count 4\n"
                                   "# HELP batch_size entries\n"
                                   "# TYPE batch_size histogram\n"
                                   "batch_size_bucket{role=\"ledger\",queue=\"\",le=\"1\"} 0\n"
                                   "batch_size_bucket{role=\"ledger\",queue=\"\",le=\"10\"} 1\n"
                                   "batch_size_bucket{role=\"ledger\",queue=\"\",le=\"+Inf\"} 1\n"
                                   "batch_size_sum{role=\"ledger\",queue=\"\"} 10\n"
                                   "batch_size_count{role=\"ledger\",queue=\"\"} 1\n";
    struct rt_metrics *metrics = make();
    struct rt_series latency = rt_metrics_series(metrics, LATENCY, NULL);
    int64_t depth = INT64_MAX;
    struct ron_buf buf;

    (void)state;
    rt_metrics_add_collector(metrics, collect_depth, &depth);
    rt_metrics_add(metrics, rt_metrics_series(metrics, UPTIME, NULL), 1250);
    rt_metrics_observe(metrics, latency, 0);
    rt_metrics_observe(metrics, latency, 500);
    rt_metrics_observe(metrics, latency, 501);
    rt_metrics_observe(metrics, latency, 3000000);
    rt_metrics_observe(metrics, series_of(metrics, SIZES, "ledger", ""), 10);
    assert_int_equal(rt_metrics_read(metrics, latency), 4);
    ron_buf_init(&buf, 16384);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    ron_buf_put_byte(&buf, '\0');
    assert_string_equal((const char *)buf.data, expected);
    ron_buf_fini(&buf);
    ron_buf_init(&buf, 300);
    assert_int_equal(rt_metrics_write(metrics, &buf, NULL), RON_ERR_TOO_LARGE);
    ron_buf_fini(&buf);
    rt_metrics_free(metrics);
}

static void series_beyond_the_bound_are_other(void **state)
{
    char long_value[RT_METRIC_VALUE_SIZE_MAX + 1];
    struct rt_metrics *metrics = make();
    struct rt_series a = series_of(metrics, BUSY, "a", NULL);
    struct rt_series b = series_of(metrics, BUSY, "b", NULL);
    struct rt_series c = series_of(metrics, BUSY, "c", NULL);

    (void)state;
    assert_int_equal(series_of(metrics, BUSY, "a", NULL).cell, a.cell);
    assert_int_equal(series_of(metrics, BUSY, "d", NULL).cell, c.cell);
    assert_int_equal(series_of(metrics, BUSY, "other", NULL).cell, c.cell);
    assert_true(a.cell != b.cell);
    assert_true(b.cell != c.cell);
    rt_metrics_add(metrics, a, 1);
    rt_metrics_add(metrics, c, 5);
    assert_int_equal(rt_metrics_read(metrics, a), 1);
    assert_int_equal(rt_metrics_read(metrics, b), 0);
    assert_int_equal(rt_metrics_read(metrics, series_of(metrics, BUSY, "e", NULL)), 5);
    memset(long_value, 'x', sizeof(long_value) - 1);
    long_value[sizeof(long_value) - 1] = '\0';
    struct rt_series other = series_of(metrics, DEPTH, "a", long_value);
    assert_int_equal(series_of(metrics, DEPTH, "other", "other").cell, other.cell);
    long_value[sizeof(long_value) - 2] = '\0'; /* one shorter fits */
    assert_true(series_of(metrics, DEPTH, "a", long_value).cell != other.cell);
    rt_metrics_free(metrics);
}

struct counting {
    struct rt_metrics *metrics;
    struct rt_series counter, histogram;
};

enum { COUNTS = 20000 };

static enum ron_err count(struct rt_task *task, void *argument)
{
    struct counting *counting = argument;

    (void)task;
    assert_true(sh_local()->slot > 0);
    for (unsigned i = 0; i < COUNTS; i++) {
        rt_metrics_add(counting->metrics, counting->counter, 3);
        rt_metrics_observe(counting->metrics, counting->histogram, 700);
    }
    return RON_ERR_OK;
}

static void count_together(const struct rt_task_options *options,
                           struct counting *counting) RON_BLOCKS
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "test", .tasks_max = 3};
    struct rt_supervisor *supervisor = NULL;
    struct rt_task *task;

    assert_ok(rt_supervisor_new(&root, &supervisor, NULL));
    for (unsigned i = 0; i < 3; i++)
        assert_ok(rt_task_spawn(supervisor, options, &task, NULL));
    for (unsigned i = 0; i < COUNTS; i++)
        rt_metrics_add(counting->metrics, counting->counter, 1); /* the shared slot */
    assert_ok(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(supervisor);
}

static void shards_lose_nothing(void **state) RON_BLOCKS
{
    struct counting counting = {.metrics = make()};
    const struct rt_task_options options = {
        .kind = "counter", .name = "counter", .owner = "test", .fn = count, .argument = &counting};

    (void)state;
    counting.counter = series_of(counting.metrics, BUSY, "q", NULL);
    counting.histogram = rt_metrics_series(counting.metrics, LATENCY, NULL);
    for (unsigned round = 0; round < 3; round++) /* later tasks go on in the slots of earlier */
        count_together(&options, &counting);
    assert_int_equal(rt_metrics_read(counting.metrics, counting.counter), 3 * COUNTS * (3 * 3 + 1));
    assert_int_equal(rt_metrics_read(counting.metrics, counting.histogram), 3 * 3 * COUNTS);
    rt_metrics_free(counting.metrics);
}

static void count_outside(void *argument)
{
    struct counting *counting = argument;

    assert_int_equal(sh_local()->slot, 0);
    for (unsigned i = 0; i < 100 * COUNTS; i++)
        rt_metrics_add(counting->metrics, counting->counter, 1);
}

static void threads_share_the_first_shard(void **state)
{
    struct counting counting = {.metrics = make()};
    struct sh_thread *threads[2];

    (void)state;
    counting.counter = series_of(counting.metrics, BUSY, "q", NULL);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(sh_spawn("outsider", count_outside, &counting, &threads[i], NULL));
    for (unsigned i = 0; i < 2; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
    assert_int_equal(rt_metrics_read(counting.metrics, counting.counter), 200 * COUNTS);
    rt_metrics_free(counting.metrics);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr)
{
    struct rt_metrics *metrics = NULL;
    enum ron_err err = rt_metrics_new(descs, RON_ARRAY_COUNT(descs), &metrics, reterr);

    (void)context;
    rt_metrics_free(metrics);
    return err;
}

static void metrics_survive_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 12), 8);
}

static void metrics_misuse_dies(void **state)
{
    static const struct rt_metric_desc bad_name = {.name = "9lives", .help = ""};
    static const uint64_t falling[] = {2, 1};
    static const struct rt_metric_desc bad_bounds = {
        .name = "h", .help = "", .kind = RT_METRIC_HISTOGRAM, .bounds = falling, .bounds_count = 2};
    struct rt_metrics *metrics = make();
    struct rt_metrics *bad = NULL;

    (void)state;
    assert_dies((void)!rt_metrics_new(&bad_name, 1, &bad, NULL), "is_name(desc->name)");
    assert_dies((void)!rt_metrics_new(&bad_bounds, 1, &bad, NULL), "desc->bounds[i - 1]");
    assert_dies(rt_metrics_gauge(metrics, rt_metrics_series(metrics, UPTIME, NULL), 1),
                "series.kind == RT_METRIC_GAUGE");
    rt_metrics_free(metrics);
    assert_null(rt_metrics_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_write_the_exact_text),
        cmocka_unit_test(series_beyond_the_bound_are_other),
        cmocka_unit_test(shards_lose_nothing),
        cmocka_unit_test(threads_share_the_first_shard),
        cmocka_unit_test(metrics_survive_each_failed_allocation),
        cmocka_unit_test(metrics_misuse_dies),
    };
    rt_init();
    return cmocka_run_group_tests_name("rt_metrics", tests, NULL, NULL);
}
