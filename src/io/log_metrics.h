/*
 * log_metrics.h - what a log counts, as metrics labelled with its name. The figures are those of
 * io_log_get_stats, counted where they happen.
 */
#ifndef RON_IO_LOG_METRICS_H
#define RON_IO_LOG_METRICS_H

#include "rt/metrics.h"

/* X(symbol, type, name, scale, help); one label each, `log`. */
/* clang-format off */
#define IO_LOG_METRIC_MAP(X) \
    X(GROUPS,     COUNTER,   "log_groups_total",            0, "Groups of records made durable.") \
    X(RECORDS,    COUNTER,   "log_records_total",           0, "Records made durable.") \
    X(BYTES,      COUNTER,   "log_bytes_total",             0, "Bytes of durable groups, frames and commits included.") \
    X(SYNCS,      COUNTER,   "log_syncs_total",             0, "Syncs of groups.") \
    X(SYNC,       HISTOGRAM, "log_sync_seconds",            9, "Time of the last write of a group and its sync.") \
    X(ZEROED,     COUNTER,   "log_zeroed_bytes_total",      0, "Zeros written ahead of the records.") \
    X(WAITS,      COUNTER,   "log_waits_for_zeros_total",   0, "Appends that met too few zeros.") \
    X(REBUILT,    COUNTER,   "log_indexes_rebuilt_total",   0, "Indexes built again because a page of them was damaged.") \
    X(TORN,       COUNTER,   "log_torn_bytes_total",        0, "Bytes of torn tails that opening dropped.") \
    X(SKIPPED,    COUNTER,   "log_skipped_total",           0, "Places of damage that opening passed over.") \
    X(DURABLE,    GAUGE,     "log_last_durable",            0, "Index of the last durable record.") \
    X(DAMAGED,    GAUGE,     "log_damaged",                 0, "1 while a log is open for what lies before its damage.") \
    X(BROKEN,     GAUGE,     "log_broken",                  0, "1 once a write or sync failed for good.")
/* clang-format on */
enum {
#define X(symbol, type, ...) IO_LOG_METRIC_##symbol,
    IO_LOG_METRIC_MAP(X)
#undef X
        IO_LOG_METRIC__COUNT
};
extern const struct rt_metric io_log_metric_table[IO_LOG_METRIC__COUNT];

/* Handles, found at birth; without metrics nothing is counted. */
struct io_log_metrics {
    bool on;
    struct rt_counter counters[IO_LOG_METRIC__COUNT]; /* of those that are counters */
    struct rt_histogram sync;
    struct rt_gauge durable, damaged, broken;
};
/* `metrics` may be NULL; else it must hold the table and outlive the log. */
void io_log_metrics_init(struct io_log_metrics *handles, struct rt_metrics *metrics,
                         const char *name);
void io_log_count(const struct io_log_metrics *handles, unsigned metric, uint64_t value);
void io_log_observe_sync(const struct io_log_metrics *handles, uint64_t sync_ns);
void io_log_set(const struct io_log_metrics *handles, struct rt_gauge gauge, uint64_t value);

#endif
