/*
 * serve_metrics.c - figures of listeners and caches. See serve_metrics.h.
 */
#include "app/serve_metrics.h"

#include "base/assert.h"
#include "rt/metric_names.h"

enum {
    ACCEPTED,
    OPEN,
    REQUESTS,
    REPLIES,
    RECEIVED,
    SENT,
    HELD,
    CLOSED,
    DENIED,
    CACHE_HITS,
    CACHE_MISSES,
    EPOCH,
    SPANS,
    METRICS_COUNT
};

#define LISTENER           \
    0, 2,                  \
    {                      \
        "role", "listener" \
    }
static const struct rt_metric metrics_table[METRICS_COUNT] = {
    [ACCEPTED] = {"http_connections_total", "Connections accepted.", RT_METRIC_COUNTER, LISTENER},
    [OPEN] = {"http_connections_open", "Connections that are open.", RT_METRIC_GAUGE, LISTENER},
    [REQUESTS] = {"http_requests_total", "Requests whose head arrived.", RT_METRIC_COUNTER,
                  LISTENER},
    [REPLIES] = {"http_replies_total", "Requests that were answered.", RT_METRIC_COUNTER, LISTENER},
    [RECEIVED] = {"http_received_bytes_total", "Bytes read from connections.", RT_METRIC_COUNTER,
                  LISTENER},
    [SENT] = {"http_sent_bytes_total", "Bytes written to connections.", RT_METRIC_COUNTER,
              LISTENER},
    [HELD] = {"http_held_bytes", "Memory of bodies and buffers of connections.", RT_METRIC_GAUGE,
              LISTENER},
    [CLOSED] = {"http_closed_total",
                "Connections closed without an answer, by reason.",
                RT_METRIC_COUNTER,
                0,
                16,
                {"role", "listener", "reason"}},
    [DENIED] = {"uds_denied_total", "Connections to the Unix socket by users who may not.",
                RT_METRIC_COUNTER, LISTENER},
    [CACHE_HITS] = {"auth_cache_hits_total",
                    "Capabilities found in a cache.",
                    RT_METRIC_COUNTER,
                    0,
                    1,
                    {"role"}},
    [CACHE_MISSES] = {"auth_cache_misses_total",
                      "Capabilities that had to be verified.",
                      RT_METRIC_COUNTER,
                      0,
                      1,
                      {"role"}},
    [EPOCH] = {"auth_keyring_epoch",
               "Epoch of the keyring; each revocation raises it.",
               RT_METRIC_GAUGE,
               0,
               1,
               {"role"}},
    [SPANS] = {"otlp_spans_total",
               "Spans sent to the collector, not taken by it, or dropped by a full queue.",
               RT_METRIC_COUNTER,
               0,
               3,
               {"role", "result"}},
};
#undef LISTENER

const struct rt_metric_table app_serve_metric_table = {metrics_table, METRICS_COUNT};

static const char role[] = "server";
static const char *const listener_names[] = {
    [APP_LISTENER_API] = "api", [APP_LISTENER_ADMIN] = "admin"};

static void grow(struct rt_metrics *metrics, unsigned metric, const char *const *values,
                 uint64_t now, uint64_t before)
{
    RON_ASSERT(now >= before);
    rt_metric_add(rt_metrics_counter(metrics, &metrics_table[metric], values), now - before);
}

static void set(struct rt_metrics *metrics, unsigned metric, const char *const *values,
                uint64_t now)
{
    rt_metric_set(rt_metrics_gauge(metrics, &metrics_table[metric], values), (int64_t)now);
}

void app_serve_metrics_collect(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                               size_t listener, const struct io_server_stats *stats)
{
    struct io_server_stats *seen = &counted->seen[listener];
    const char *values[] = {role, listener_names[listener], NULL};
    const struct {
        const char *reason;
        uint64_t now, before;
    } closed[] = {
        {"not_http", stats->closed_not_http, seen->closed_not_http},
        {"no_line", stats->closed_no_line, seen->closed_no_line},
        {"slow", stats->closed_slow, seen->closed_slow},
        {"idle", stats->closed_idle, seen->closed_idle},
        {"reset", stats->closed_reset, seen->closed_reset},
    };

    RON_ASSERT(listener < APP_LISTENERS_COUNTED);
    grow(metrics, ACCEPTED, values, stats->accepted_count, seen->accepted_count);
    grow(metrics, REQUESTS, values, stats->requests_count, seen->requests_count);
    grow(metrics, REPLIES, values, stats->replies_count, seen->replies_count);
    grow(metrics, RECEIVED, values, stats->bytes_in, seen->bytes_in);
    grow(metrics, SENT, values, stats->bytes_out, seen->bytes_out);
    set(metrics, OPEN, values, stats->open_count);
    set(metrics, HELD, values, stats->bytes_held);
    for (size_t i = 0; i < RON_ARRAY_COUNT(closed); i++) {
        values[2] = closed[i].reason;
        grow(metrics, CLOSED, values, closed[i].now, closed[i].before);
    }
    grow(metrics, DENIED, values, stats->closed_denied, seen->closed_denied);
    for (unsigned i = 0; i < RON_ERR__MAX; i++) {
        const char *labels[] = {role, ron_err_reason((enum ron_err)i)};

        if (stats->refused_count[i] > 0)
            rt_metric_add(rt_metrics_counter(metrics, &rt_metric_table[RT_METRIC_REJECTED], labels),
                          stats->refused_count[i] - seen->refused_count[i]);
    }
    *seen = *stats;
}

void app_serve_metrics_collect_access(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                                      const struct app_access_stats *stats)
{
    const char *values[] = {role};

    grow(metrics, CACHE_HITS, values, stats->hits_count, counted->seen_access.hits_count);
    grow(metrics, CACHE_MISSES, values, stats->misses_count, counted->seen_access.misses_count);
    set(metrics, EPOCH, values, stats->epoch);
    counted->seen_access = *stats;
}

void app_serve_metrics_collect_spans(struct app_serve_metrics *counted, struct rt_metrics *metrics,
                                     const struct io_otlp_stats *stats, uint64_t dropped_count)
{
    const char *sent[] = {role, "sent"};
    const char *failed[] = {role, "failed"};
    const char *dropped[] = {role, "dropped"};

    grow(metrics, SPANS, sent, stats->sent_count, counted->seen_otlp.sent_count);
    grow(metrics, SPANS, failed, stats->failed_count, counted->seen_otlp.failed_count);
    grow(metrics, SPANS, dropped, dropped_count, counted->seen_dropped_spans);
    counted->seen_otlp = *stats;
    counted->seen_dropped_spans = dropped_count;
}
