/*
 * metrics_impl.h - what metrics.c and metrics_text.c share.
 *
 * All cells lie in rows, one row for each slot and row 0 for threads without one; a row holds all
 * series of all metrics and is padded, so that threads never write to one cache line. A counter is
 * the sum of its column. A gauge lives in row 0 alone.
 */
#ifndef RON_RT_METRICS_IMPL_H
#define RON_RT_METRICS_IMPL_H

#include "base/assert.h"
#include "rt/lock.h"
#include "rt/metrics.h"

enum { ROWS_COUNT = RT_SLOTS_MAX + 1 };

struct family {
    const struct rt_metric *metric;
    size_t labels_count;
    size_t series_cells;                           /* cells of one series */
    size_t first_cell;                             /* of the first series, in a row */
    uint32_t series_count RON_GUARDED_BY(metrics); /* `other` included, as the last one */
    /* series_max + 1 times labels_count texts. Written under the lock before series_count counts
     * the series, constant from then on: read without it. */
    char (*values)[RT_METRIC_VALUE_SIZE];
};

struct rt_metrics {
    struct rt_lock lock;
    uint32_t magic;
    size_t families_count;
    struct family *families;
    size_t row_cells;
    void *cells_memory;
    struct rt_atomic_u64 *cells; /* ROWS_COUNT rows, aligned to cache lines */
};

#define METRICS_MAGIC 0x3e721c55u

static inline void metrics_lock(struct rt_metrics *metrics) RON_LOCKS(metrics)
{
    RON_ASSERT(metrics->magic == METRICS_MAGIC);
    rt_lock_take(&metrics->lock);
}
static inline void metrics_unlock(struct rt_metrics *metrics) RON_UNLOCKS(metrics)
{
    rt_lock_drop(&metrics->lock);
}

static inline struct rt_counter metrics_column(const struct rt_metrics *metrics,
                                               const struct family *family, uint32_t series_index)
{
    size_t cell = family->first_cell + series_index * family->series_cells;

    RON_ASSERT(cell + family->series_cells <= metrics->row_cells);
    return (struct rt_counter){metrics->cells + cell, metrics->row_cells};
}

#endif
