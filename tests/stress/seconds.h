/*
 * seconds.h - the one argument of every stress program: how many seconds, 1 by default.
 */
#ifndef RON_TESTS_STRESS_SECONDS_H
#define RON_TESTS_STRESS_SECONDS_H

#include "base/decimal.h"
#include "rt/deadline.h"

enum { STRESS_SECONDS_MAX = 3600 };

/* False if the argument is not 1..STRESS_SECONDS_MAX: exit with status 2. */
static inline bool stress_deadline(int argc, char **argv, struct rt_deadline *ret_end)
{
    uint64_t seconds = 1;

    if (argc > 1 && ron_decimal_parse_u64(ron_slice_text(argv[1]), &seconds, NULL) != RON_ERR_OK)
        return false;
    if (seconds < 1 || seconds > STRESS_SECONDS_MAX)
        return false;
    *ret_end = rt_deadline_after_ms(seconds * 1000);
    return true;
}

#endif
