/*
 * log_line.h - the format of one log line. Internal to log.c and its test.
 *
 * JSON: {"ts":"2026-01-31T23:59:59.999Z","level":"warn","service":"ron","task":"committer",
 *        "msg":"...","src":"src/x.c:12",fields...}
 * Text: 2026-01-31 23:59:59.999 WARN  committer      message  key=value key="two words"
 */
#ifndef RON_RT_LOG_LINE_H
#define RON_RT_LOG_LINE_H

#include "rt/log.h"

struct log_line {
    size_t size;
    bool cut; /* something did not fit */
    enum rt_log_form form;
    char text[RT_LOG_LINE_SIZE_MAX];
};

/* The parts every line has; utc_ms is milliseconds since 1970. */
struct log_head {
    uint64_t utc_ms;
    enum rt_log_level level;
    const char *service; /* may be NULL */
    const char *task;    /* may be NULL */
    const char *message;
    const char *file;
    int line;
};

void log_line_begin(struct log_line *line, enum rt_log_form form, const struct log_head *head);
void log_line_put(struct log_line *line, const struct rt_log_field *field);
void log_line_end(struct log_line *line); /* marks a cut line; the last byte is the line feed */

#endif
