/*
 * metric_names.h - the metrics of the runtime, in one table.
 *
 * Names are those of the source designs. One label set for each name: `role` and what any role
 * needs; labels without meaning for a series are empty. Queue series of the ledger carry the
 * queue's name also as `q`, so that its alerts run unchanged. A set of lanes shows as a queue, too:
 * its items are `queue_depth`, what it refuses is `busy_rejections_total`. What a receiver took and
 * still has in hand counts as depth where its queue says so (rt_queue_options.count_held).
 */
#ifndef RON_RT_METRIC_NAMES_H
#define RON_RT_METRIC_NAMES_H

#include "rt/metrics.h"

/* X(symbol, type, name, scale, series_max, help, labels...) */
/* clang-format off */
#define RT_METRIC_MAP(X)                                                                                               \
    X(QUEUE_DEPTH,       GAUGE,   "queue_depth",                  0, 128, "Items waiting in a queue.",                            "role", "queue", "q") \
    X(QUEUE_CAPACITY,    GAUGE,   "queue_capacity",               0, 128, "Items a queue can hold.",                              "role", "queue", "q") \
    X(QUEUE_WAIT,        COUNTER, "queue_wait_seconds_total",     9, 128, "Time sampled items spent in a queue.",                 "role", "queue") \
    X(QUEUE_SAMPLES,     COUNTER, "queue_wait_samples_total",     0, 128, "Items whose time in a queue was measured.",            "role", "queue") \
    X(BUSY_REJECTIONS,   COUNTER, "busy_rejections_total",        0, 256, "Requests refused because a queue was full.",           "role", "endpoint", "queue", "q") \
    X(DROPS,             COUNTER, "drops_total",                  0, 128, "Items evicted by newer ones.",                         "role", "queue", "q") \
    X(QUEUE_DROPPED,     COUNTER, "queue_dropped_total",          0, 256, "Items a queue lost, by reason.",                       "role", "queue", "reason") \
    X(BUS_LAGGED,        COUNTER, "bus_lagged_total",             0, 128, "Messages a slow consumer of a bus missed.",            "role", "bus", "consumer") \
    X(LANES_OPEN,        GAUGE,   "lanes_open",                   0, 128, "Lanes that are open.",                                 "role", "queue") \
    X(LANES_READY,       GAUGE,   "lanes_ready",                  0, 128, "Lanes with items that wait for their turn.",           "role", "queue") \
    X(LANES_RUNNING,     GAUGE,   "lanes_running",                0, 128, "Lanes whose handler runs.",                            "role", "queue") \
    X(LANE_ITEMS,        COUNTER, "lane_items_total",             0, 128, "Items of lanes that were handled.",                    "role", "queue") \
    X(TIMERS_ARMED,      GAUGE,   "timers_armed",                 0,  64, "Timers that are set and have not fired.",              "role", "timers") \
    X(TIMERS_FIRED,      COUNTER, "timers_fired_total",           0,  64, "Timers that fired.",                                   "role", "timers") \
    X(TIMERS_LATE,       COUNTER, "timers_late_seconds_total",    9,  64, "Time from when timers were due to when they fired.",   "role", "timers") \
    X(BACKOFF_RETRIES,   COUNTER, "backoff_retries_total",        0, 128, "Retries after a backoff.",                             "role", "svc", "op") \
    X(IO_TIMEOUTS,       COUNTER, "io_timeouts_total",            0, 256, "Operations that missed their deadline.",               "role", "op", "peer") \
    X(TASKS_SPAWNED,     COUNTER, "tasks_spawned_total",          0, 128, "Tasks started.",                                       "role", "kind") \
    X(TASKS_ABORTED,     COUNTER, "tasks_aborted_total",          0, 128, "Tasks that overran the drain deadline.",               "role", "kind") \
    X(TASKS_CANCELED,    COUNTER, "tasks_canceled_total",         0, 128, "Tasks that stopped when asked to.",                    "role", "kind") \
    X(TASKS_PANICKED,    COUNTER, "tasks_panicked_total",         0, 128, "Ends of a task by panic.",                             "role", "kind") \
    X(TASKS_LEAKED,      COUNTER, "tasks_leaked_total",           0, 128, "Tasks still running after abort.",                     "role", "kind") \
    X(TASKS_GAVE_UP,     COUNTER, "tasks_gave_up_total",          0, 128, "Tasks that failed too often and stay down.",           "role", "kind") \
    X(TASKS_REVIVED,     COUNTER, "tasks_revived_total",          0, 128, "Tasks that gave up and were revived.",                 "role", "kind") \
    X(SERVICE_RESTARTS,  COUNTER, "service_restarts_total",       0, 128, "Restarts of a task by its supervisor.",                "role", "task") \
    X(REJECTED,          COUNTER, "rejected_total",               0, 512, "Requests refused, by reason.",                         "role", "reason") \
    X(READYZ_DEGRADED,   GAUGE,   "readyz_degraded",              0, 128, "1 while a cause keeps a role from being ready.",       "role", "cause") \
    X(LOG_LINES,         COUNTER, "log_lines_total",              0,   1, "Log lines accepted.") \
    X(LOG_DROPPED,       COUNTER, "log_lines_dropped_total",      0,   1, "Log lines lost: ring full, or output failed.") \
    X(LOG_SUPPRESSED,    COUNTER, "log_lines_suppressed_total",   0,   1, "Log lines held back by the limit of their call site.")
/* clang-format on */

enum {
#define X(symbol, type, ...) RT_METRIC_##symbol,
    RT_METRIC_MAP(X)
#undef X
        RT_METRIC__COUNT
};

extern const struct rt_metric rt_metric_table[RT_METRIC__COUNT];

#endif
