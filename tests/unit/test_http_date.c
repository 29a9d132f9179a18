/*
 * test_http_date.c - the Date field. Method: dates known from elsewhere (RFC 9110 and a calendar
 * written by others), the ends of the range, and that weekdays follow each other.
 */
#include "support.h"

#include "base/rfc3339.h"
#include "io/http_date.h"

static void known_dates(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } dates[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777000, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400000, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {951868799999, "Tue, 29 Feb 2000 23:59:59 GMT"},
        {1000000000000, "Sun, 09 Sep 2001 01:46:40 GMT"},
        {1709164800000, "Thu, 29 Feb 2024 00:00:00 GMT"},
        {4102444799000, "Thu, 31 Dec 2099 23:59:59 GMT"},
        {RON_TIME_MS_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    };
    char text[HTTP_DATE_SIZE];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(dates); i++) {
        http_date_print(dates[i].ms, text);
        assert_string_equal(text, dates[i].text);
    }
    assert_dies(http_date_print(RON_TIME_MS_MAX + 1, text), "RON_TIME_MS_MAX");
}

static void a_year_of_days_in_order(void **state)
{
    static const char days[] = "ThuFriSatSunMonTueWed";
    char text[HTTP_DATE_SIZE];

    (void)state;
    for (unsigned i = 0; i < 366; i++) {
        http_date_print((uint64_t)i * RON_DAY_MS + 45296000, text);
        assert_memory_equal(text, days + i % 7 * 3, 3);
        assert_string_equal(text + 17, "12:34:56 GMT");
        assert_true(strncmp(text + 12, i < 365 ? "1970" : "1971", 4) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_dates),
        cmocka_unit_test(a_year_of_days_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
