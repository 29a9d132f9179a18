/*
 * print_metrics.c - prints the runtime's metrics with a value in every series, and one histogram,
 * for test_promtool.py.
 */
#include <stdio.h>

#include "base/assert.h"
#include "rt/export.h"
#include "rt/queue.h"
#include "rt/registry.h"

static const uint64_t latency_buckets[] = {1000000, 80000000, 1500000000};

static const struct rt_metric own_table[] = {
    {.name = "committer_batch_latency_seconds",
     .help = "Text with \\, \"quotes\" and a\nline feed.",
     .type = RT_METRIC_HISTOGRAM,
     .scale = 9,
     .series_max = 2,
     .labels = {"role", "text"},
     .buckets = latency_buckets,
     .buckets_count = RON_ARRAY_COUNT(latency_buckets)},
};

static void touch_all(struct rt_metrics *metrics)
{
    static const char *const values[RT_METRIC_LABELS_MAX] = {"ledger", "a", "b", "c", "d", "e"};

    for (size_t i = 0; i < RT_METRIC__COUNT; i++) {
        const struct rt_metric *metric = &rt_metric_table[i];

        if (metric->type == RT_METRIC_COUNTER)
            rt_metric_add(rt_metrics_counter(metrics, metric, values), 1234567890);
        else
            rt_metric_set(rt_metrics_gauge(metrics, metric, values), -5);
    }
}

int main(void)
{
    const struct rt_metric_table tables[] = {{rt_metric_table, RT_METRIC__COUNT},
                                             {own_table, RON_ARRAY_COUNT(own_table)}};
    const struct rt_queue_options queue_options = {
        .name = "ingress", .owner = "ledger", .policy = "reject", .capacity = 2000};
    struct rt_exporter_options options = {.q_role = "ledger"};
    const char *const nasty[] = {"ledger", "\\ \" \n { } = , \xc3\xa4 \xff"};
    struct rt_exporter *exporter = NULL;
    struct rt_queue *queue = NULL;
    struct rt_histogram latency;
    struct ron_buf buf;

    rt_init();
    RON_MUST_ZERO(rt_metrics_new(tables, RON_ARRAY_COUNT(tables), &options.metrics, NULL));
    RON_MUST_ZERO(rt_exporter_new(&options, &exporter, NULL));
    RON_MUST_ZERO(rt_queue_new(&queue_options, &queue, NULL));
    latency = rt_metrics_histogram(options.metrics, &own_table[0], nasty);
    for (uint64_t ns = 1; ns < 4000000000; ns *= 3)
        rt_metric_observe(&latency, ns);
    touch_all(options.metrics);
    rt_exporter_collect(exporter);
    ron_buf_init(&buf, 1 << 20);
    RON_MUST_ZERO(rt_metrics_write(options.metrics, &buf, NULL));
    RON_ASSERT(fwrite(buf.data, 1, buf.size, stdout) == buf.size);
    ron_buf_fini(&buf);
    rt_queue_free(queue);
    rt_exporter_free(exporter);
    rt_metrics_free(options.metrics);
    return fflush(stdout) == 0 ? 0 : 1;
}
