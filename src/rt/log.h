/*
 * log.h - what happened, for people and machines: JSON lines on a pipe or file, aligned text on a
 * terminal.
 *
 *     rt_log(log, RT_LOG_WARN, "upstream is slow", rt_log_text("peer", peer),
 *            rt_log_duration("took", took_ns), rt_log_info(&info));
 *
 * The caller never waits for the output: the line is formatted on its stack and copied into a
 * bounded ring, from which one thread writes. A full ring drops the line, counts it, and says so in
 * a later line. Each call site may log RT_LOG_SITE_LINES_PER_S lines a second; the rest is counted
 * and told with its next line. A line is cut at RT_LOG_LINE_SIZE_MAX and marked so; it is valid
 * JSON and UTF-8 whatever the texts hold.
 *
 * Fields are typed; a ron_secret has no field type, so logging one does not compile. May be called
 * under any lock: the log's rank is the highest. One log per process.
 */
#ifndef RON_RT_LOG_H
#define RON_RT_LOG_H

#include <stdatomic.h>

#include "rt/deadline.h"
#include "rt/lock_classes.h"
#include "rt/log_field.h"

enum {
    RT_LOG_LINE_SIZE_MAX = 1024, /* with its line feed */
    RT_LOG_RING_SIZE_MAX = 64 << 20,
    RT_LOG_SITE_LINES_PER_S = 20,
};

enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN, RT_LOG_ERROR, RT_LOG_OFF };
enum rt_log_form { RT_LOG_JSON, RT_LOG_TEXT };

/* Where lines go. Called by the log's own thread only, with whole lines; may block. */
typedef enum ron_err rt_log_write_fn(void *context, struct ron_slice lines,
                                     struct ron_errinfo *reterr);

struct rt_log; /* opaque */

struct rt_log_options {
    enum rt_log_level level; /* lines below it are not made */
    enum rt_log_form form;
    const char *service; /* a member of every JSON line; NULL for none; borrowed */
    uint32_t ring_size;  /* bytes, 4 * RT_LOG_LINE_SIZE_MAX..RT_LOG_RING_SIZE_MAX */
    rt_log_write_fn *write;
    void *write_context; /* borrowed for the log's life */
};

/* Start the log and its thread. RON_ERR_NO_MEMORY, RON_ERR_BUSY. The caller owns it. */
enum ron_err rt_log_new(const struct rt_log_options *options, struct rt_log **ret_log,
                        struct ron_errinfo *reterr) RON_MUST_USE;
/* Refuse new lines, write what is left, end the thread. RON_ERR_TIMEOUT: the output is stuck; the
 * log must stay as it is until the process ends, or be stopped again. */
enum ron_err rt_log_stop(struct rt_log *log, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
struct rt_log *rt_log_free(struct rt_log *log); /* must be stopped; NULL is ok; returns NULL */

/* Wait until everything logged before is written or dropped. RON_ERR_TIMEOUT. */
enum ron_err rt_log_flush(struct rt_log *log, struct rt_deadline deadline,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void rt_log_set_level(struct rt_log *log, enum rt_log_level level);
bool rt_log_enabled(const struct rt_log *log, enum rt_log_level level); /* false for NULL */

struct rt_log_stats {
    uint64_t accepted_count;   /* lines that entered the ring */
    uint64_t dropped_count;    /* ring full, log stopped, or output failed */
    uint64_t suppressed_count; /* by the limits of call sites */
};
void rt_log_get_stats(struct rt_log *log, struct rt_log_stats *ret_stats);

/* One for each call; its counters are relaxed atomics: they decide about a line, nothing else. */
struct rt_log_site {
    const char *file;
    int line;
    enum rt_log_level level;
    const char *message;
    _Atomic uint64_t window; /* log, second and lines logged in it (log.c) */
    _Atomic uint64_t suppressed_count;
};

/* at_level: a constant; message: a literal. Then any number of fields. */
#define rt_log(log, at_level, message, ...)                                                       \
    do {                                                                                          \
        static struct rt_log_site rt_log_here = {__FILE__, __LINE__, at_level, "" message, 0, 0}; \
        struct rt_log *rt_log_to = (log);                                                         \
        if (rt_log_enabled(rt_log_to, at_level)) {                                                \
            const struct rt_log_field rt_log_fields[] = {{.key = NULL}, ##__VA_ARGS__};           \
            rt_log_at(rt_log_to, &rt_log_here, rt_log_fields + 1,                                 \
                      RON_ARRAY_COUNT(rt_log_fields) - 1);                                        \
        }                                                                                         \
    } while (0)
void rt_log_at(struct rt_log *log, struct rt_log_site *site, const struct rt_log_field *fields,
               size_t fields_count);

#endif
