/*
 * service_metrics.h - the ledger's own metrics, under the names of the source design. What queues
 * and tasks count is the runtime's (rt/metric_names.h).
 */
#ifndef RON_LEDGER_SERVICE_METRICS_H
#define RON_LEDGER_SERVICE_METRICS_H

#include "ron/error.h"
#include "rt/metrics.h"

/* X(symbol, type, name, scale, series_max, help, labels...); two names for one figure are the
 * source's. */
/* clang-format off */
#define LEDGER_METRIC_MAP(X) \
    X(PREVALIDATOR_DURATION, HISTOGRAM, "prevalidator_duration_seconds",   9,  1, "Time a prevalidator takes for a request.") \
    X(SEQUENCER_BATCH,       HISTOGRAM, "sequencer_batch_size",            0,  1, "Requests the Sequencer orders together.") \
    X(COMMITTER_LATENCY,     HISTOGRAM, "committer_batch_latency_seconds", 9,  1, "Time from sequencing to the answer.") \
    X(COMMIT_LATENCY,        HISTOGRAM, "ledger_commit_latency_seconds",   9,  1, "Time from admission to durable.") \
    X(ROOTS_PUBLISHED,       COUNTER,   "roots_published_total",           0,  1, "Roots published.") \
    X(LEDGER_ROOTS,          COUNTER,   "ledger_roots_published_total",    0,  1, "Roots published.") \
    X(SEQ_GAP,               COUNTER,   "seq_gap_detected_total",          0,  1, "Gaps in the sequence, found before they were written.") \
    X(LEDGER_SEQ_GAP,        COUNTER,   "ledger_seq_gap_detected_total",   0,  1, "Gaps in the sequence, found before they were written.") \
    X(COMMITS,               COUNTER,   "ledger_commits_total",            0,  1, "Batches committed.") \
    X(LEDGER_REJECTS,        COUNTER,   "ledger_rejects_total",            0, 64, "Requests refused, by reason.", "reason") \
    X(SAFE_MODE,             GAUGE,     "ledger_safe_mode",                0,  1, "1 while writes are frozen because what was written may be wrong.") \
    X(DISK_PRESSURE,         GAUGE,     "disk_pressure",                   0,  1, "1 while the engine has no room.") \
    X(BACKLOG,               GAUGE,     "ledger_backlog_gauge",            0,  1, "Batches sequenced and not committed.") \
    X(FSYNC_FAIL,            COUNTER,   "wal_fsync_fail_total",            0,  1, "Appends and syncs that failed for good.") \
    X(BREAKER_OPEN,          COUNTER,   "breaker_open_total",              0,  4, "Times the breaker of a remote check opened.", "target") \
    X(BREAKER_OPEN_TIME,     COUNTER,   "breaker_open_seconds",            9,  4, "Time the breaker of a remote check was open.", "target") \
    X(BREAKER_STATE,         GAUGE,     "breaker_state",                   0,  4, "Breaker of a remote check: 0 closed, 1 half-open, 2 open.", "target") \
    X(CHECK_DURATION,        HISTOGRAM, "ledger_check_duration_seconds",   9,  4, "Time a question to a remote check takes, with its retries.", "target") \
    X(CHECKS_PARKED,         GAUGE,     "ledger_checks_parked",            0,  1, "Requests that wait for answers of remote checks.")
/* clang-format on */
enum {
#define X(symbol, type, ...) LEDGER_METRIC_##symbol,
    LEDGER_METRIC_MAP(X)
#undef X
        LEDGER_METRIC__COUNT
};
extern const struct rt_metric ledger_metric_table[LEDGER_METRIC__COUNT];

/* Handles, found at birth; without metrics nothing is counted. */
struct ledger_metrics {
    bool on;
    struct rt_histogram prevalidator, window, committer, commit;
    struct rt_counter roots[2], gaps[2], commits, fsync_fails;
    struct rt_counter
        commit_busy; /* busy_rejections_total{q="commit"}: slots are not the queue's */
    struct rt_counter rejected[RON_ERR__MAX][2];
    struct rt_gauge safe_mode, disk_pressure, backlog;
};
void ledger_metrics_init(struct ledger_metrics *handles, struct rt_metrics *metrics);
void ledger_count(const struct ledger_metrics *handles, struct rt_counter counter);
void ledger_add(const struct ledger_metrics *handles, struct rt_counter counter, uint64_t value);
void ledger_count_both(const struct ledger_metrics *handles, const struct rt_counter counters[2]);
void ledger_observe(const struct ledger_metrics *handles, const struct rt_histogram *histogram,
                    uint64_t value);
void ledger_set(const struct ledger_metrics *handles, struct rt_gauge gauge, int64_t value);

#endif
