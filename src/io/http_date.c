/*
 * http_date.c - the Date field. See http_date.h.
 */
#include "io/http_date.h"

#include <string.h>

#include "base/assert.h"
#include "base/rfc3339.h"

static char *put(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    return at + size;
}

static char *put_two(char *at, uint32_t value)
{
    at[0] = (char)('0' + value / 10);
    at[1] = (char)('0' + value % 10);
    return at + 2;
}

void http_date_print(uint64_t time_ms, char ret_text[static HTTP_DATE_SIZE])
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t day = ron_day_of_ms(time_ms);
    uint32_t seconds = (uint32_t)(time_ms % RON_DAY_MS / 1000);
    struct ron_civil civil = ron_civil_from_day(day);
    char *at = ret_text;

    RON_ASSERT(time_ms <= RON_TIME_MS_MAX);
    at = put(at, days + day % 7 * 3, 3);
    at = put(at, ", ", 2);
    at = put_two(at, civil.day);
    at = put(at, " ", 1);
    at = put(at, months + (civil.month - 1) * 3, 3);
    at = put(at, " ", 1);
    at = put_two(at, civil.year / 100);
    at = put_two(at, civil.year % 100);
    at = put(at, " ", 1);
    at = put_two(at, seconds / 3600);
    at = put(at, ":", 1);
    at = put_two(at, seconds / 60 % 60);
    at = put(at, ":", 1);
    at = put_two(at, seconds % 60);
    at = put(at, " GMT", 5);
    RON_ASSERT(at == ret_text + HTTP_DATE_SIZE);
}
