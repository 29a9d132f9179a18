/*
 * metrics.h - counters, gauges and histograms, written as Prometheus text.
 *
 * All families are declared in one table before start, so the full list is known and memory is
 * bounded: a family holds at most series_max combinations of label values; further ones count in a
 * last series whose values are all "other". Find a series once and keep it: counting is then one
 * add in the task's own shard (threads that are no tasks share a shard and pay for an atomic).
 *
 * Values are integers. `decimals` says where the point goes in the text: 1500 with 6 is 0.0015, so
 * microseconds become seconds without a float.
 */
#ifndef RON_RT_METRICS_H
#define RON_RT_METRICS_H

#include "base/assert.h"
#include "base/bytes.h"
#include "rt/atomic.h"
#include "rt/local.h"
#include "rt/lock_classes.h"

enum {
    RT_METRICS_MAX = 256,
    RT_METRIC_LABELS_MAX = 8,
    RT_METRIC_SERIES_MAX = 4096, /* of one family */
    RT_METRIC_BOUNDS_MAX = 24,
    RT_METRIC_VALUE_SIZE_MAX = 64, /* of a label value; longer ones go to "other" */
    RT_METRIC_COLLECTORS_MAX = 16,
};

enum rt_metric_kind { RT_METRIC_COUNTER, RT_METRIC_GAUGE, RT_METRIC_HISTOGRAM };

/* One family. All texts and tables are borrowed for the life of the metrics. */
struct rt_metric_desc {
    const char *name;
    const char *help;
    enum rt_metric_kind kind;
    unsigned decimals;         /* 0..9 */
    unsigned labels_count;     /* 0: one series, present from the start */
    const char *const *labels; /* names */
    unsigned series_max;       /* with labels: 1..RT_METRIC_SERIES_MAX */
    unsigned bounds_count;     /* histograms: 1..RT_METRIC_BOUNDS_MAX */
    const uint64_t *bounds;    /* upper bounds, rising; +Inf is implied */
};

struct rt_metrics; /* opaque */

struct rt_series { /* valid as long as the metrics */
    uint32_t cell;
    uint16_t metric;
    uint16_t kind; /* enum rt_metric_kind, here so that counting needs no look-up */
};

/* descs_count families; RON_ERR_NO_MEMORY. The caller owns it; everything is allocated here. */
enum ron_err rt_metrics_new(const struct rt_metric_desc *descs, size_t descs_count,
                            struct rt_metrics **ret_metrics,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct rt_metrics *rt_metrics_free(struct rt_metrics *metrics); /* NULL is ok; returns NULL */

/* The series with these label values (labels_count of them, in the order of `labels`; copied). Made
 * if it is new and there is room; never fails. Takes a lock and searches: not for hot paths. */
struct rt_series rt_metrics_series(struct rt_metrics *metrics, size_t metric,
                                   const char *const *values);

/* What counting needs of the metrics, at their beginning; the rest is private. A shard is a run of
 * cells_count cells, one shard a slot (local.h). */
struct rt_metrics_shards {
    struct rt_atomic_u64 *cells;
    uint32_t cells_count;
};

/* Add to a cell of the running thread's shard. */
static inline void rt_metrics_add_cell(struct rt_metrics *metrics, uint32_t cell, uint64_t value)
{
    const struct rt_metrics_shards *shards = (const struct rt_metrics_shards *)(void *)metrics;
    unsigned slot = sh_local()->slot;
    struct rt_atomic_u64 *cells = shards->cells + (size_t)slot * shards->cells_count;

    if (RON_LIKELY(slot != 0))
        rt_counter_add_own(&cells[cell], value);
    else
        rt_counter_add(&cells[cell], value);
}

/* Any thread, no lock. Kinds must fit. */
static inline void rt_metrics_add(struct rt_metrics *metrics, struct rt_series series,
                                  uint64_t value)
{
    RON_ASSERT(series.kind == RT_METRIC_COUNTER);
    rt_metrics_add_cell(metrics, series.cell, value);
}
void rt_metrics_gauge(struct rt_metrics *metrics, struct rt_series series, int64_t value);
void rt_metrics_observe(struct rt_metrics *metrics, struct rt_series series, uint64_t value);
/* For collectors: set a counter that is counted elsewhere. Not together with rt_metrics_add. */
void rt_metrics_mirror(struct rt_metrics *metrics, struct rt_series series, uint64_t value);

/* A counter's sum, a gauge (as two's complement), or a histogram's number of observations. */
uint64_t rt_metrics_read(struct rt_metrics *metrics, struct rt_series series);

/* Called before each write, without locks, to bring gauges up to date. At most
 * RT_METRIC_COLLECTORS_MAX, before threads start. */
typedef void rt_metrics_collect_fn(struct rt_metrics *metrics, void *context);
void rt_metrics_add_collector(struct rt_metrics *metrics, rt_metrics_collect_fn *fn, void *context);

/* Append the whole exposition (text format 0.0.4). RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err rt_metrics_write(struct rt_metrics *metrics, struct ron_buf *buf,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
