/*
 * serve_metrics.h - what the listeners and the token caches count, carried into metrics.
 *
 * Read at scrape time, like the runtime's own figures (rt/export.h). A listener's name is its
 * label; what is refused is `rejected_total` by reason, the source designs' name for it.
 */
#ifndef RON_APP_SERVE_METRICS_H
#define RON_APP_SERVE_METRICS_H

#include "app/access.h"
#include "io/otlp.h"
#include "io/server.h"
#include "rt/metrics.h"

enum { APP_LISTENER_API, APP_LISTENER_ADMIN, APP_LISTENERS_COUNTED };

extern const struct rt_metric_table app_serve_metric_table;

/* What was carried over already. One thread at a time. */
struct app_serve_metrics {
    struct io_server_stats seen[APP_LISTENERS_COUNTED];
    struct app_access_stats seen_access;
    struct io_otlp_stats seen_otlp;
    uint64_t seen_dropped_spans;
};

void app_serve_metrics_collect(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                               size_t listener, const struct io_server_stats *stats);
void app_serve_metrics_collect_access(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                                      const struct app_access_stats *stats);
void app_serve_metrics_collect_spans(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                                     const struct io_otlp_stats *stats, uint64_t dropped_count);

#endif
