/*
 * metrics.h - counters, gauges and histograms, and their Prometheus text.
 *
 * A metric is a static description; all of them are given at birth, so the full list is known
 * before start. Its series (one for each set of label values) are found once, by values, and from
 * then on used through a handle: adding is two loads and a store in the thread's own row. At most
 * series_max series exist for a metric; further values are counted in one series whose labels all
 * read `other`, so that no client can make memory or pages grow.
 *
 * Values are integers; `scale` says how they are printed: 9 turns nanoseconds into exact seconds.
 * Metrics are no scheduling points of the simulator: nothing is published through them and nobody
 * decides by them, so interleavings of adds are all alike, and exploring them would hide the
 * others.
 *
 * Any function from any thread; rt_metrics_free must be the last one.
 */
#ifndef RON_RT_METRICS_H
#define RON_RT_METRICS_H

#include "base/bytes.h"
#include "rt/atomic.h"
#include "rt/slot.h"

enum {
    RT_METRIC_LABELS_MAX = 6,
    RT_METRIC_BUCKETS_MAX = 32,
    RT_METRIC_SERIES_MAX = 1024,
    RT_METRIC_VALUE_SIZE = 64, /* of a label value with its NUL; longer ones are cut */
    RT_METRICS_TABLES_MAX = 16,
};

enum rt_metric_type { RT_METRIC_COUNTER, RT_METRIC_GAUGE, RT_METRIC_HISTOGRAM };

struct rt_metric {
    const char *name;
    const char *help;
    enum rt_metric_type type;
    unsigned scale;                           /* printed value = value * 10^-scale */
    unsigned series_max;                      /* 1..RT_METRIC_SERIES_MAX */
    const char *labels[RT_METRIC_LABELS_MAX]; /* names; the rest is NULL */
    const uint64_t *buckets;                  /* rising upper bounds; histograms only */
    size_t buckets_count;
};
struct rt_metric_table { /* borrowed for the life of the metrics */
    const struct rt_metric *metrics;
    size_t metrics_count;
};

struct rt_metrics; /* opaque */

/* RON_ERR_NO_MEMORY. A bad description (name, label, buckets, two of one name) is an assertion. */
enum ron_err rt_metrics_new(const struct rt_metric_table *tables, size_t tables_count,
                            struct rt_metrics **ret_metrics,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct rt_metrics *rt_metrics_free(struct rt_metrics *metrics); /* NULL is ok; returns NULL */

/* Handles; copied freely, valid while the metrics live. */
struct rt_counter {
    struct rt_atomic_u64 *cells; /* in row 0 */
    size_t row_cells;            /* from one row to the next */
};
struct rt_gauge {
    struct rt_atomic_u64 *cell; /* two's complement */
};
struct rt_histogram {
    struct rt_counter counts; /* one cell a bucket, then +Inf, then the sum */
    const uint64_t *buckets;
    size_t buckets_count;
};

/* Find or make the series with these label values: one for each label of the description, in its
 * order; NULL is "". Texts are copied; bytes that are no UTF-8 become '?'. Not for hot paths. */
struct rt_counter rt_metrics_counter(struct rt_metrics *metrics, const struct rt_metric *metric,
                                     const char *const *values);
struct rt_gauge rt_metrics_gauge(struct rt_metrics *metrics, const struct rt_metric *metric,
                                 const char *const *values);
struct rt_histogram rt_metrics_histogram(struct rt_metrics *metrics, const struct rt_metric *metric,
                                         const char *const *values);

static inline void rt_metric_add(struct rt_counter counter, uint64_t value)
{
    unsigned slot = rt_slot();

    if (RON_LIKELY(slot != 0))
        rt_counter_add_own(&counter.cells[slot * counter.row_cells], value);
    else
        rt_counter_add(counter.cells, value);
}
static inline void rt_metric_set(struct rt_gauge gauge, int64_t value)
{
    rt_counter_store(gauge.cell, (uint64_t)value);
}
static inline void rt_metric_change(struct rt_gauge gauge, int64_t value)
{
    rt_counter_add(gauge.cell, (uint64_t)value);
}
/* Counts value in the first bucket whose bound is not below it, and adds it to the sum. */
void rt_metric_observe(const struct rt_histogram *histogram, uint64_t value);

uint64_t rt_metric_sum(struct rt_counter counter); /* over all threads */
int64_t rt_metric_level(struct rt_gauge gauge);

/* Set every series of a gauge to 0: before a collector sets those that are still alive. */
void rt_metrics_clear_gauge(struct rt_metrics *metrics, const struct rt_metric *metric);

/* Append all metrics in Prometheus text format 0.0.4, in the order of the tables, series in order
 * of birth. What is counted meanwhile may be missing; buckets and _count of one histogram always
 * agree. RON_ERR_TOO_LARGE or RON_ERR_NO_MEMORY of the buffer. */
enum ron_err rt_metrics_write(struct rt_metrics *metrics, struct ron_buf *buf,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
