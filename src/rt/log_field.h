/*
 * log_field.h - what a log line may carry beside its message: typed values. Included by log.h.
 *
 * A ron_secret has no type here, so logging one does not compile.
 */
#ifndef RON_RT_LOG_FIELD_H
#define RON_RT_LOG_FIELD_H

#include "base/bytes.h"

/* Fields. Texts are borrowed for the call; keys are identifiers. */
enum rt_log_type {
    RT_LOG_TYPE_TEXT,
    RT_LOG_TYPE_U64,
    RT_LOG_TYPE_I64,
    RT_LOG_TYPE_BOOL,
    RT_LOG_TYPE_DURATION,
    RT_LOG_TYPE_ERROR,
};
struct rt_log_field {
    const char *key;
    enum rt_log_type type;
    union {
        struct ron_slice text;
        uint64_t u64;
        int64_t i64;
        struct {
            enum ron_err err;
            const struct ron_errinfo *info; /* NULL: the code is all there is */
        } error;
    };
};

static inline struct rt_log_field rt_log_slice(const char *key, struct ron_slice text)
{
    return (struct rt_log_field){.key = key, .type = RT_LOG_TYPE_TEXT, .text = text};
}
static inline struct rt_log_field rt_log_text(const char *key, const char *text)
{
    return rt_log_slice(key, ron_slice_text(text));
}
static inline struct rt_log_field rt_log_u64(const char *key, uint64_t value)
{
    return (struct rt_log_field){.key = key, .type = RT_LOG_TYPE_U64, .u64 = value};
}
static inline struct rt_log_field rt_log_i64(const char *key, int64_t value)
{
    return (struct rt_log_field){.key = key, .type = RT_LOG_TYPE_I64, .i64 = value};
}
static inline struct rt_log_field rt_log_bool(const char *key, bool value)
{
    return (struct rt_log_field){.key = key, .type = RT_LOG_TYPE_BOOL, .u64 = value};
}
/* Nanoseconds. JSON has exact seconds in key_s, text the fitting unit. */
static inline struct rt_log_field rt_log_duration(const char *key, uint64_t duration_ns)
{
    return (struct rt_log_field){.key = key, .type = RT_LOG_TYPE_DURATION, .u64 = duration_ns};
}
/* As `error`: the wire code. */
static inline struct rt_log_field rt_log_err(enum ron_err err)
{
    return (struct rt_log_field){.key = "error", .type = RT_LOG_TYPE_ERROR, .error = {err, NULL}};
}
/* As `error`, `error_text`, `error_at` and, if there was one, `errno`. */
static inline struct rt_log_field rt_log_info(const struct ron_errinfo *info)
{
    return (struct rt_log_field){
        .key = "error", .type = RT_LOG_TYPE_ERROR, .error = {info->err, info}};
}

#endif
