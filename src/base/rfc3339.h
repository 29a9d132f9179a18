/*
 * rfc3339.h - UTC times as text, and the calendar below them. No clock, no time zones, no libc.
 *
 * One form only: 2025-10-16T16:11:02Z, optionally with 1 to 3 fraction digits, upper-case T and Z,
 * years 1970 to 9999. Time is milliseconds since 1970-01-01T00:00:00Z; a finer fraction is refused
 * rather than cut, and so are leap seconds (:60), which that count cannot hold.
 */
#ifndef RON_BASE_RFC3339_H
#define RON_BASE_RFC3339_H

#include "base/bytes.h"

#define RON_TIME_MS_MAX UINT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define RON_DAY_MS      86400000u

enum {
    RON_RFC3339_SIZE = 25,         /* YYYY-MM-DDTHH:MM:SS.mmmZ and NUL */
    RON_RFC3339_SECONDS_SIZE = 21, /* YYYY-MM-DDTHH:MM:SSZ and NUL */
};

/* The whole text or RON_ERR_MALFORMED with the position and what was wrong there. */
enum ron_err ron_rfc3339_parse(struct ron_slice text, uint64_t *ret_time_ms,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* Always three fraction digits. time_ms is at most RON_TIME_MS_MAX. */
void ron_rfc3339_print(uint64_t time_ms, char text[static RON_RFC3339_SIZE]);
/* Whole seconds, rounded down. time_ms is at most RON_TIME_MS_MAX. */
void ron_rfc3339_print_seconds(uint64_t time_ms, char text[static RON_RFC3339_SECONDS_SIZE]);

/* A date of the Gregorian calendar. */
struct ron_civil {
    uint32_t year;  /* 1970..9999 */
    uint32_t month; /* 1..12 */
    uint32_t day;   /* 1..31 */
};

/* The UTC day of a time: days since 1970-01-01. Any time. */
static inline uint64_t ron_day_of_ms(uint64_t time_ms)
{
    return time_ms / RON_DAY_MS;
}
/* The day must be one of the years above. */
struct ron_civil ron_civil_from_day(uint64_t day);
/* False when there is no such date within the years above; *ret_day is then untouched. */
bool ron_day_from_civil(struct ron_civil civil, uint64_t *ret_day) RON_MUST_USE;

#endif
