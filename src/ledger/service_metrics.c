/*
 * service_metrics.c - see service_metrics.h.
 */
#include "ledger/service_metrics.h"

#include "rt/metric_names.h"

#define MS UINT64_C(1000000)
static const uint64_t latency_buckets[] = {5 * MS,  10 * MS,  20 * MS,  40 * MS,
                                           80 * MS, 150 * MS, 300 * MS, 600 * MS};
static const uint64_t short_buckets[] = {MS / 100, MS / 20, MS / 10, MS / 2,   MS,
                                         5 * MS,   20 * MS, 80 * MS, 300 * MS, 1000 * MS};
static const uint64_t size_buckets[] = {1, 2, 4, 8, 16, 32, 64};

#define BUCKETS_PREVALIDATOR_DURATION short_buckets, RON_ARRAY_COUNT(short_buckets)
#define BUCKETS_SEQUENCER_BATCH       size_buckets, RON_ARRAY_COUNT(size_buckets)
#define BUCKETS_COMMITTER_LATENCY     latency_buckets, RON_ARRAY_COUNT(latency_buckets)
#define BUCKETS_COMMIT_LATENCY        latency_buckets, RON_ARRAY_COUNT(latency_buckets)
#define BUCKETS_CHECK_DURATION        short_buckets, RON_ARRAY_COUNT(short_buckets)

#define HISTOGRAM_OF(symbol, metric_name, metric_scale, text, max, ...)                            \
    {                                                                                              \
        metric_name, text, RT_METRIC_HISTOGRAM, metric_scale, max, {__VA_ARGS__}, BUCKETS_##symbol \
    }
#define COUNTER_OF(symbol, metric_name, metric_scale, text, max, ...)                   \
    {                                                                                   \
        metric_name, text, RT_METRIC_COUNTER, metric_scale, max, {__VA_ARGS__}, NULL, 0 \
    }
#define GAUGE_OF(symbol, metric_name, metric_scale, text, max, ...)                   \
    {                                                                                 \
        metric_name, text, RT_METRIC_GAUGE, metric_scale, max, {__VA_ARGS__}, NULL, 0 \
    }

const struct rt_metric ledger_metric_table[LEDGER_METRIC__COUNT] = {
#define X(symbol, type, metric_name, metric_scale, max, text, ...) \
    [LEDGER_METRIC_##symbol] = type##_OF(symbol, metric_name, metric_scale, text, max, __VA_ARGS__),
    LEDGER_METRIC_MAP(X)
#undef X
};

static struct rt_counter counter_of(struct rt_metrics *metrics, unsigned metric, const char *label)
{
    return rt_metrics_counter(metrics, &ledger_metric_table[metric], &label);
}

static struct rt_gauge gauge_of(struct rt_metrics *metrics, unsigned metric)
{
    return rt_metrics_gauge(metrics, &ledger_metric_table[metric], NULL);
}

static struct rt_histogram histogram_of(struct rt_metrics *metrics, unsigned metric)
{
    return rt_metrics_histogram(metrics, &ledger_metric_table[metric], NULL);
}

void ledger_metrics_init(struct ledger_metrics *handles, struct rt_metrics *metrics)
{
    static const char *const commit_labels[] = {"ledger", "", "commit", "commit"};

    *handles = (struct ledger_metrics){.on = metrics != NULL};
    if (metrics == NULL)
        return;
    handles->prevalidator = histogram_of(metrics, LEDGER_METRIC_PREVALIDATOR_DURATION);
    handles->window = histogram_of(metrics, LEDGER_METRIC_SEQUENCER_BATCH);
    handles->committer = histogram_of(metrics, LEDGER_METRIC_COMMITTER_LATENCY);
    handles->commit = histogram_of(metrics, LEDGER_METRIC_COMMIT_LATENCY);
    handles->roots[0] = counter_of(metrics, LEDGER_METRIC_ROOTS_PUBLISHED, NULL);
    handles->roots[1] = counter_of(metrics, LEDGER_METRIC_LEDGER_ROOTS, NULL);
    handles->gaps[0] = counter_of(metrics, LEDGER_METRIC_SEQ_GAP, NULL);
    handles->gaps[1] = counter_of(metrics, LEDGER_METRIC_LEDGER_SEQ_GAP, NULL);
    handles->commits = counter_of(metrics, LEDGER_METRIC_COMMITS, NULL);
    handles->fsync_fails = counter_of(metrics, LEDGER_METRIC_FSYNC_FAIL, NULL);
    handles->commit_busy = rt_metrics_counter(metrics, &rt_metric_table[RT_METRIC_BUSY_REJECTIONS],
                                              commit_labels);
    for (unsigned i = 1; i < RON_ERR__MAX; i++) {
        const char *labels[] = {"ledger", ron_err_reason((enum ron_err)i)};

        handles->rejected[i][0] = rt_metrics_counter(metrics, &rt_metric_table[RT_METRIC_REJECTED],
                                                     labels);
        handles->rejected[i][1] = counter_of(metrics, LEDGER_METRIC_LEDGER_REJECTS, labels[1]);
    }
    handles->safe_mode = gauge_of(metrics, LEDGER_METRIC_SAFE_MODE);
    handles->disk_pressure = gauge_of(metrics, LEDGER_METRIC_DISK_PRESSURE);
    handles->backlog = gauge_of(metrics, LEDGER_METRIC_BACKLOG);
}

void ledger_add(const struct ledger_metrics *handles, struct rt_counter counter, uint64_t value)
{
    if (handles->on)
        rt_metric_add(counter, value);
}

void ledger_count(const struct ledger_metrics *handles, struct rt_counter counter)
{
    ledger_add(handles, counter, 1);
}

void ledger_count_both(const struct ledger_metrics *handles, const struct rt_counter counters[2])
{
    ledger_count(handles, counters[0]);
    ledger_count(handles, counters[1]);
}

void ledger_observe(const struct ledger_metrics *handles, const struct rt_histogram *histogram,
                    uint64_t value)
{
    if (handles->on)
        rt_metric_observe(histogram, value);
}

void ledger_set(const struct ledger_metrics *handles, struct rt_gauge gauge, int64_t value)
{
    if (handles->on)
        rt_metric_set(gauge, value);
}
