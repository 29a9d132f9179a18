/*
 * log_line.h - one log line as text: JSON, or readable. Pure; used by log.c.
 */
#ifndef RON_RT_LOG_LINE_H
#define RON_RT_LOG_LINE_H

#include "rt/log.h"

struct rt_log_head {
    uint64_t utc_ms;
    enum rt_log_level level;
    const char *owner;
    const char *task; /* NULL outside tasks */
    const char *message;
};

/* Form a line, newline included; returns its size, at most RT_LOG_LINE_SIZE_MAX. Fields that do not
 * fit are left out whole and "cut":true is added. `fields` ends with a NULL key. */
size_t rt_log_form(char line[RT_LOG_LINE_SIZE_MAX], const struct rt_log_head *head,
                   const struct rt_field *fields, bool readable);

#endif
