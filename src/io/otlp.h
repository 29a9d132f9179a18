/*
 * otlp.h - spans (rt/span.h) to a collector: OTLP over HTTP, as JSON.
 *
 * One task takes what is queued, at most every second, and posts it. What the collector does not
 * take (down, slow, any status but 2xx) is lost and counted: nothing is tried twice, nobody waits,
 * and a collector that fails again and again is left alone for a second (the client's breaker).
 */
#ifndef RON_IO_OTLP_H
#define RON_IO_OTLP_H

#include "base/bytes.h"
#include "rt/lock_classes.h"

struct io_otlp; /* opaque */
struct rt_span;
struct rt_spans;
struct rt_supervisor;

enum { IO_OTLP_BATCH_MAX = 128 };

struct io_otlp_options {
    const char *endpoint; /* "http://127.0.0.1:4318"; another path than /v1/traces may follow */
    const char *service;  /* service.name; borrowed */
    struct rt_spans *spans;
    struct rt_supervisor *supervisor;
};
/* RON_ERR_MALFORMED (endpoint), RON_ERR_NO_MEMORY, RON_ERR_BUSY. Connects nothing yet. */
/* Is it an endpoint? RON_ERR_MALFORMED. */
enum ron_err io_otlp_check(const char *endpoint, struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err io_otlp_start(const struct io_otlp_options *options, struct io_otlp **ret_otlp,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Close the spans, give what is queued a fifth of a second to go out, end the task. Accepts NULL,
 * returns NULL. Before the supervisor stops. */
struct io_otlp *io_otlp_stop(struct io_otlp *otlp) RON_BLOCKS;

struct io_otlp_stats {
    uint64_t sent_count, failed_count; /* spans */
};
struct io_otlp_stats io_otlp_get_stats(const struct io_otlp *otlp);

/* The body of one request. Times of spans are monotonic: utc_ms is now_ns on the wall.
 * RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err io_otlp_encode(struct ron_buf *buf, const char *service, struct rt_span *const *spans,
                            size_t spans_count, uint64_t now_ns, uint64_t utc_ms,
                            struct ron_errinfo *reterr) RON_MUST_USE;

#endif
