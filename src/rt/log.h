/*
 * log.h - structured log lines that never hold up whoever writes them.
 *
 * A line is formed on the caller's stack and copied into a bounded ring under a short lock; one
 * task hands lines to the sink. When the ring is full the line is dropped and counted, and the next
 * line that goes out is preceded by one that says how many are missing. Lines are JSON objects, or
 * a readable form for a terminal; they end in a newline and never contain one.
 *
 *     rt_log(log, RT_LOG_WARN, "queue is full", rt_text("queue", name), rt_u64("depth", depth));
 *
 * The message is a constant sentence; what varies goes into fields. There is no field for a secret.
 */
#ifndef RON_RT_LOG_H
#define RON_RT_LOG_H

#include "base/bytes.h"
#include "rt/deadline.h"
#include "rt/task.h"

enum {
    RT_LOG_LINE_SIZE_MAX = 1024, /* newline included; what does not fit is left out and said so */
    RT_LOG_LINES_MAX = 65536,
    RT_LOG_FIELDS_MAX = 16,
};

enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN, RT_LOG_ERROR };

enum rt_field_kind { RT_FIELD_TEXT, RT_FIELD_U64, RT_FIELD_I64, RT_FIELD_BOOL };
struct rt_field {
    const char *key; /* lower case, digits, underscores */
    enum rt_field_kind kind;
    struct ron_slice text; /* borrowed for the call */
    uint64_t number;
};
struct rt_field rt_text(const char *key, const char *text);
struct rt_field rt_slice(const char *key, struct ron_slice text);
struct rt_field rt_u64(const char *key, uint64_t number);
struct rt_field rt_i64(const char *key, int64_t number);
struct rt_field rt_bool(const char *key, bool value);
struct rt_field rt_error(const struct ron_errinfo *info); /* "error": "Busy: queue work ..." */

struct rt_log; /* opaque */

/* Write `lines` somewhere: whole lines, one or more. Called on the log's task only; may block. */
typedef void rt_log_sink_fn(void *context, struct ron_slice lines);

struct rt_log_options {
    const char *name;
    const char *owner;  /* role; appears in each line */
    uint32_t lines_max; /* of the ring, 1..RT_LOG_LINES_MAX */
    bool readable;      /* for people at a terminal */
    enum rt_log_level level_min;
    rt_log_sink_fn *sink;
    void *sink_context;
};

/* Make a log and start its task. RON_ERR_NO_MEMORY, RON_ERR_BUSY. The caller owns it. */
enum ron_err rt_log_new(const struct rt_log_options *options, struct rt_supervisor *supervisor,
                        struct rt_log **ret_log, struct ron_errinfo *reterr) RON_MUST_USE;
/* After its task has ended, which writes what is left first. Accepts NULL, returns NULL. */
struct rt_log *rt_log_free(struct rt_log *log);

/* Any thread; never waits. Lines after the log's task has ended are dropped and counted. */
#define rt_log(log, level, ...) rt_log_args((log), (level), __VA_ARGS__, (struct rt_field){0})
/* Its first field with a NULL key ends the list; a message alone is fine. */
#define rt_log_args(log, level, message, ...) \
    rt_log_write((log), (level), (message), (const struct rt_field[]){__VA_ARGS__})
void rt_log_write(struct rt_log *log, enum rt_log_level level, const char *message,
                  const struct rt_field *fields);

void rt_log_set_level(struct rt_log *log, enum rt_log_level level_min);
bool rt_log_enabled(const struct rt_log *log, enum rt_log_level level);

/* Wait until what was logged before is with the sink. RON_ERR_TIMEOUT; RON_ERR_CANCELED when the
 * log's task has ended before. */
enum ron_err rt_log_flush(struct rt_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Lines lost so far. */
uint64_t rt_log_dropped_count(struct rt_log *log);

#endif
