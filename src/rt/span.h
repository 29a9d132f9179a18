/*
 * span.h - spans of sampled requests: made anywhere, taken by one exporter (io/otlp.h).
 *
 *     if (rt_trace_start(spans, traceparent, &trace))   // where a request enters
 *     span = rt_span_begin(spans, &trace, "sequencer"); // NULL: not sampled
 *     rt_span_put_text(span, "corr_id", corr_id);
 *     rt_span_end(spans, span, failed);
 *
 * Off, or not sampled, is one atomic load and a branch: everything takes NULL for spans and span.
 * Whether a request is sampled depends on its trace id alone, so that processes agree; a caller's
 * `sampled` flag asks for nothing. In safe-mode all are sampled while fewer than 500 spans a second
 * are made. The queue holds 1,024; a full one drops its oldest, counted. Callers hold no lock of
 * class queue or above. Attributes are for identifiers, never for tokens, bodies or paths.
 */
#ifndef RON_RT_SPAN_H
#define RON_RT_SPAN_H

#include "base/bytes.h"
#include "rt/atomic.h"
#include "rt/deadline.h"
#include "rt/lock_classes.h"

enum {
    RT_SPANS_MAX = 1024, /* in the queue */
    RT_SPANS_SAFE_PER_S = 500,
    RT_SPAN_ATTRIBUTES_MAX = 6,
    RT_SPAN_TEXT_SIZE = 72, /* of an attribute; longer ones are cut */
    RT_TRACE_ID_SIZE = 16,
    RT_SPAN_ID_SIZE = 8,
};

/* What travels with a request: copied freely. */
struct rt_trace {
    bool on;
    uint8_t id[RT_TRACE_ID_SIZE];
    uint8_t parent_id[RT_SPAN_ID_SIZE]; /* of the spans that begin here; zeros: none */
};

struct rt_span_attribute {
    const char *key;
    bool is_number;
    uint64_t number;
    char text[RT_SPAN_TEXT_SIZE];
};
struct rt_span { /* read by the exporter, changed by the functions */
    uint8_t trace_id[RT_TRACE_ID_SIZE];
    uint8_t span_id[RT_SPAN_ID_SIZE], parent_id[RT_SPAN_ID_SIZE];
    const char *name;          /* static */
    uint64_t start_ns, end_ns; /* monotonic */
    bool failed;
    uint32_t attributes_count;
    struct rt_span_attribute attributes[RT_SPAN_ATTRIBUTES_MAX];
};

struct rt_spans {
    struct rt_atomic_u32 rate; /* permille, and a bit for safe-mode; 0: off */
    struct rt_spans_inside *inside;
};

/* RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). `owner` is borrowed. */
enum ron_err rt_spans_new(const char *owner, uint32_t sample_permille, struct rt_spans **ret_spans,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* Nobody makes or takes spans any more; what is queued goes with it. Accepts NULL, returns NULL. */
struct rt_spans *rt_spans_free(struct rt_spans *spans);
void rt_spans_set_sample(struct rt_spans *spans, uint32_t permille); /* any thread; 0..1000 */
void rt_spans_set_safe_mode(struct rt_spans *spans, bool on);        /* any thread; NULL is ok */

bool rt_trace_decide(struct rt_spans *spans, struct ron_slice traceparent,
                     struct rt_trace *ret_trace);
/* Is this request traced? Its ids are those of a W3C traceparent if there is a good one. */
static inline bool rt_trace_start(struct rt_spans *spans, struct ron_slice traceparent,
                                  struct rt_trace *ret_trace)
{
    ret_trace->on = false;
    if (RON_LIKELY(spans == NULL || rt_atomic_load_u32(&spans->rate) == 0))
        return false;
    return rt_trace_decide(spans, traceparent, ret_trace);
}

/* NULL if the request is not traced, or without memory. `name` is borrowed for ever. */
struct rt_span *rt_span_begin(struct rt_spans *spans, const struct rt_trace *trace,
                              const char *name);
/* What spans below this one begin with. */
struct rt_trace rt_span_trace(const struct rt_span *span);
void rt_span_rename(struct rt_span *span, const char *name);
/* Beyond RT_SPAN_ATTRIBUTES_MAX they are left out; `key` is borrowed for ever. */
void rt_span_put_text(struct rt_span *span, const char *key, const char *text);
void rt_span_put_number(struct rt_span *span, const char *key, uint64_t number);
/* It ends now and belongs to the queue. Never blocks. */
void rt_span_end(struct rt_spans *spans, struct rt_span *span, bool failed);

/* For the exporter: 1..spans_max of them, which it owns (ron_mem_free), once there is one and
 * linger_ns have passed. RON_ERR_CANCELED after close, once drained. */
enum ron_err rt_spans_take(struct rt_spans *spans, struct rt_span **ret_spans, size_t spans_max,
                           uint64_t linger_ns, size_t *ret_count) RON_MUST_USE RON_BLOCKS;
void rt_spans_close(struct rt_spans *spans); /* no more are queued; idempotent */

struct rt_spans_stats {
    uint64_t made_count, dropped_count; /* by a full queue */
};
struct rt_spans_stats rt_spans_get_stats(struct rt_spans *spans);

#endif
