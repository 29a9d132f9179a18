/*
 * rfc3339.c - UTC times as text. See rfc3339.h.
 *
 * Calendar arithmetic counts from 1 March, so that the leap day is the last day of its year and the
 * months before it always start on the same day of the year.
 */
#include "base/rfc3339.h"

#include "base/assert.h"

enum {
    YEAR_MIN = 1970,
    YEAR_MAX = 9999,
    YEAR_DAYS = 365,
    YEARS_4_DAYS = 4 * YEAR_DAYS + 1,
    YEARS_100_DAYS = 25 * YEARS_4_DAYS - 1,
    YEARS_400_DAYS = 4 * YEARS_100_DAYS + 1,
    EPOCH_DAYS = 719468, /* from 0000-03-01 to 1970-01-01 */
};

/* Days from 1 March to the first of March, April, ..., February. */
static const uint32_t month_starts[12] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337};

static uint32_t days_in_month(uint32_t year, uint32_t month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    RON_ASSERT(month >= 1);
    RON_ASSERT(month <= 12);
    return month == 2 && leap ? 29 : days[month - 1];
}

struct ron_civil ron_civil_from_day(uint64_t day)
{
    RON_ASSERT(day <= RON_TIME_MS_MAX / RON_DAY_MS);
    uint32_t days = (uint32_t)day + EPOCH_DAYS;
    uint32_t year = days / YEARS_400_DAYS * 400;
    days %= YEARS_400_DAYS;
    /* The last century and the last year of a cycle are a day longer: never a fifth one. */
    uint32_t centuries = days / YEARS_100_DAYS < 3 ? days / YEARS_100_DAYS : 3;
    days -= centuries * YEARS_100_DAYS;
    year += centuries * 100 + days / YEARS_4_DAYS * 4;
    days %= YEARS_4_DAYS;
    uint32_t years = days / YEAR_DAYS < 3 ? days / YEAR_DAYS : 3;
    days -= years * YEAR_DAYS;
    year += years;
    uint32_t month = 11; /* counted from March, 0 */
    while (month_starts[month] > days)
        month--;
    days -= month_starts[month];
    struct ron_civil civil = {
        .year = month >= 10 ? year + 1 : year, /* January and February */
        .month = month >= 10 ? month - 9 : month + 3,
        .day = days + 1,
    };
    RON_ASSERT(civil.year >= YEAR_MIN);
    RON_ASSERT(civil.year <= YEAR_MAX);
    RON_ASSERT(civil.day <= days_in_month(civil.year, civil.month));
    return civil;
}

bool ron_day_from_civil(struct ron_civil civil, uint64_t *ret_day)
{
    if (civil.year < YEAR_MIN || civil.year > YEAR_MAX || civil.month < 1 || civil.month > 12)
        return false;
    if (civil.day < 1 || civil.day > days_in_month(civil.year, civil.month))
        return false;
    uint32_t year = civil.month >= 3 ? civil.year : civil.year - 1;
    uint32_t month = civil.month >= 3 ? civil.month - 3 : civil.month + 9;
    uint32_t days = year * YEAR_DAYS + year / 4 - year / 100 + year / 400 + month_starts[month] +
                    civil.day - 1;
    RON_ASSERT(days >= EPOCH_DAYS);
    *ret_day = days - EPOCH_DAYS;
    return true;
}

/* Where the parts are in the text. */
enum {
    YEAR_AT = 0,
    MONTH_AT = 5,
    DAY_AT = 8,
    HOUR_AT = 11,
    MINUTE_AT = 14,
    SECOND_AT = 17,
    FRACTION_AT = 19,
    FRACTION_DIGITS_MAX = 3,
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The fixed part, up to the seconds: digits and separators each in their place. */
static enum ron_err check_shape(struct ron_slice text, struct ron_errinfo *reterr)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";

    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        if (i == text.size)
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "byte %zu: the text ends, YYYY-MM-DDTHH:MM:SSZ was expected", i);
        if (shape[i] == 'd' && !is_digit(text.data[i]))
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: 0x%02x is not a digit", i,
                            (unsigned)text.data[i]);
        if (shape[i] != 'd' && text.data[i] != (uint8_t)shape[i])
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: '%c' was expected, not 0x%02x", i,
                            shape[i], (unsigned)text.data[i]);
    }
    return RON_ERR_OK;
}

/* The fraction, if any, and the Z that must be the last character. */
static enum ron_err parse_end(struct ron_slice text, uint32_t *ret_ms, struct ron_errinfo *reterr)
{
    uint32_t weight = 100;
    uint32_t ms = 0;
    size_t i = FRACTION_AT;

    RON_ASSERT(text.size >= FRACTION_AT);
    if (i < text.size && text.data[i] == '.') {
        size_t start = ++i;

        for (; i < text.size && is_digit(text.data[i]); i++, weight /= 10) {
            if (i - start == FRACTION_DIGITS_MAX)
                return ron_fail(reterr, RON_ERR_MALFORMED,
                                "byte %zu: a fourth fraction digit, milliseconds are the finest",
                                i);
            ms += weight * (text.data[i] - (uint32_t)'0');
        }
        if (i == start)
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: a fraction digit was expected",
                            i);
    }
    if (i == text.size || text.data[i] != 'Z')
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: 'Z' was expected, only UTC is taken",
                        i);
    if (i + 1 != text.size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: the end was expected after 'Z'",
                        i + 1);
    RON_ASSERT(ms < 1000);
    *ret_ms = ms;
    return RON_ERR_OK;
}

static uint32_t two_digits(const uint8_t *digits)
{
    return (digits[0] - (uint32_t)'0') * 10 + (digits[1] - (uint32_t)'0');
}

static enum ron_err fail_part(const char *part, size_t at, uint32_t value,
                              struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: there is no %s %u", at, part, value);
}

enum ron_err ron_rfc3339_parse(struct ron_slice text, uint64_t *ret_time_ms,
                               struct ron_errinfo *reterr)
{
    struct ron_civil civil;
    uint64_t day = 0;
    uint32_t ms = 0;
    enum ron_err err;

    RON_ASSERT(ret_time_ms != NULL);
    err = check_shape(text, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = parse_end(text, &ms, reterr);
    if (err != RON_ERR_OK)
        return err;
    civil.year = two_digits(text.data + YEAR_AT) * 100 + two_digits(text.data + YEAR_AT + 2);
    civil.month = two_digits(text.data + MONTH_AT);
    civil.day = two_digits(text.data + DAY_AT);
    uint32_t hour = two_digits(text.data + HOUR_AT);
    uint32_t minute = two_digits(text.data + MINUTE_AT);
    uint32_t second = two_digits(text.data + SECOND_AT);
    if (civil.year < YEAR_MIN)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %d: year %u is before %d", YEAR_AT,
                        civil.year, YEAR_MIN);
    if (civil.month < 1 || civil.month > 12)
        return fail_part("month", MONTH_AT, civil.month, reterr);
    if (!ron_day_from_civil(civil, &day))
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %d: there is no day %u in %04u-%02u",
                        DAY_AT, civil.day, civil.year, civil.month);
    if (hour > 23)
        return fail_part("hour", HOUR_AT, hour, reterr);
    if (minute > 59)
        return fail_part("minute", MINUTE_AT, minute, reterr);
    if (second > 59)
        return fail_part("second", SECOND_AT, second, reterr);
    *ret_time_ms = day * RON_DAY_MS + ((hour * 60 + minute) * 60 + second) * UINT64_C(1000) + ms;
    RON_ASSERT(*ret_time_ms <= RON_TIME_MS_MAX);
    return RON_ERR_OK;
}

static void write_two(char *text, uint32_t value)
{
    RON_ASSERT(value < 100);
    text[0] = (char)('0' + value / 10);
    text[1] = (char)('0' + value % 10);
}

/* Everything before the fraction; gives the milliseconds of the second. */
static uint32_t write_seconds(uint64_t time_ms, char *text)
{
    RON_ASSERT(time_ms <= RON_TIME_MS_MAX);
    struct ron_civil civil = ron_civil_from_day(ron_day_of_ms(time_ms));
    uint32_t ms = (uint32_t)(time_ms % RON_DAY_MS);

    write_two(text + YEAR_AT, civil.year / 100);
    write_two(text + YEAR_AT + 2, civil.year % 100);
    text[MONTH_AT - 1] = '-';
    write_two(text + MONTH_AT, civil.month);
    text[DAY_AT - 1] = '-';
    write_two(text + DAY_AT, civil.day);
    text[HOUR_AT - 1] = 'T';
    write_two(text + HOUR_AT, ms / 3600000);
    text[MINUTE_AT - 1] = ':';
    write_two(text + MINUTE_AT, ms / 60000 % 60);
    text[SECOND_AT - 1] = ':';
    write_two(text + SECOND_AT, ms / 1000 % 60);
    return ms % 1000;
}

void ron_rfc3339_print(uint64_t time_ms, char text[static RON_RFC3339_SIZE])
{
    uint32_t ms = write_seconds(time_ms, text);

    text[FRACTION_AT] = '.';
    text[FRACTION_AT + 1] = (char)('0' + ms / 100);
    write_two(text + FRACTION_AT + 2, ms % 100);
    text[FRACTION_AT + 4] = 'Z';
    text[FRACTION_AT + 5] = '\0';
}

void ron_rfc3339_print_seconds(uint64_t time_ms, char text[static RON_RFC3339_SECONDS_SIZE])
{
    (void)write_seconds(time_ms, text);
    text[FRACTION_AT] = 'Z';
    text[FRACTION_AT + 1] = '\0';
}
