/*
 * log_metrics.c - see log_metrics.h.
 */
#include "io/log_metrics.h"

#define MS UINT64_C(1000000)
static const uint64_t sync_buckets[] = {MS / 10, MS / 5,  MS / 2,  MS,       2 * MS,   5 * MS,
                                        10 * MS, 20 * MS, 50 * MS, 100 * MS, 500 * MS, 2000 * MS};

enum { LOGS_MAX = 32 };

#define BUCKETS_OF_COUNTER   NULL, 0
#define BUCKETS_OF_GAUGE     NULL, 0
#define BUCKETS_OF_HISTOGRAM sync_buckets, RON_ARRAY_COUNT(sync_buckets)

const struct rt_metric io_log_metric_table[IO_LOG_METRIC__COUNT] = {
#define X(symbol, type, metric_name, metric_scale, text)                              \
    [IO_LOG_METRIC_##symbol] = {metric_name, text,    RT_METRIC_##type, metric_scale, \
                                LOGS_MAX,    {"log"}, BUCKETS_OF_##type},
    IO_LOG_METRIC_MAP(X)
#undef X
};

static struct rt_gauge gauge_of(struct rt_metrics *metrics, unsigned metric, const char *name)
{
    return rt_metrics_gauge(metrics, &io_log_metric_table[metric], &name);
}

void io_log_metrics_init(struct io_log_metrics *handles, struct rt_metrics *metrics,
                         const char *name)
{
    *handles = (struct io_log_metrics){.on = metrics != NULL};
    if (metrics == NULL)
        return;
    for (unsigned i = 0; i < IO_LOG_METRIC__COUNT; i++) {
        if (io_log_metric_table[i].type == RT_METRIC_COUNTER)
            handles->counters[i] = rt_metrics_counter(metrics, &io_log_metric_table[i], &name);
    }
    handles->sync = rt_metrics_histogram(metrics, &io_log_metric_table[IO_LOG_METRIC_SYNC], &name);
    handles->durable = gauge_of(metrics, IO_LOG_METRIC_DURABLE, name);
    handles->damaged = gauge_of(metrics, IO_LOG_METRIC_DAMAGED, name);
    handles->broken = gauge_of(metrics, IO_LOG_METRIC_BROKEN, name);
}

void io_log_count(const struct io_log_metrics *handles, unsigned metric, uint64_t value)
{
    if (handles->on)
        rt_metric_add(handles->counters[metric], value);
}

void io_log_observe_sync(const struct io_log_metrics *handles, uint64_t sync_ns)
{
    if (handles->on)
        rt_metric_observe(&handles->sync, sync_ns);
}

void io_log_set(const struct io_log_metrics *handles, struct rt_gauge gauge, uint64_t value)
{
    if (handles->on)
        rt_metric_set(gauge, (int64_t)value);
}
