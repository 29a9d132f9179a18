/*
 * test_rfc3339.c - UTC times. Method: every day from 1970 to 9999 against a calendar that counts
 * one day at a time, known times, each way to be malformed with its position.
 */
#include "support.h"

#include "base/rfc3339.h"

static void check(const char *text, uint64_t expected, const char *printed)
{
    char back[RON_RFC3339_SIZE];
    uint64_t time_ms = ~expected;

    assert_ok(ron_rfc3339_parse(ron_slice_text(text), &time_ms, NULL));
    assert_true(time_ms == expected);
    ron_rfc3339_print(time_ms, back);
    assert_string_equal(back, printed);
}

static void refuse(struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    uint64_t time_ms = 5;

    support_assert_error(ron_rfc3339_parse(text, &time_ms, &info), &info, RON_ERR_MALFORMED,
                         message);
    assert_int_equal(time_ms, 5);
}

static void known_times(void **state)
{
    (void)state;
    check("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z");
    check("1970-01-01T00:00:00.001Z", 1, "1970-01-01T00:00:00.001Z");
    check("1970-01-01T23:59:59.999Z", 86399999, "1970-01-01T23:59:59.999Z");
    check("1970-01-02T00:00:00Z", 86400000, "1970-01-02T00:00:00.000Z");
    check("2000-02-29T12:34:56Z", 951827696000, "2000-02-29T12:34:56.000Z");
    check("2001-09-09T01:46:40Z", 1000000000000, "2001-09-09T01:46:40.000Z");
    check("2025-10-16T16:11:02Z", 1760631062000, "2025-10-16T16:11:02.000Z");
    check("2038-01-19T03:14:08Z", 2147483648000, "2038-01-19T03:14:08.000Z");
    check("9999-12-31T23:59:59.999Z", RON_TIME_MS_MAX, "9999-12-31T23:59:59.999Z");
}

static void fractions_are_read_by_place(void **state)
{
    (void)state;
    check("1970-01-01T00:00:00.5Z", 500, "1970-01-01T00:00:00.500Z");
    check("1970-01-01T00:00:00.05Z", 50, "1970-01-01T00:00:00.050Z");
    check("1970-01-01T00:00:00.250Z", 250, "1970-01-01T00:00:00.250Z");
    refuse(RON_SLICE("1970-01-01T00:00:00.Z"), "byte 20: a fraction digit was expected");
    refuse(RON_SLICE("1970-01-01T00:00:00."), "byte 20: a fraction digit was expected");
    refuse(RON_SLICE("1970-01-01T00:00:00.1230Z"), "byte 23: a fourth fraction digit");
    refuse(RON_SLICE("1970-01-01T00:00:00,1Z"), "byte 19: 'Z' was expected");
}

static void whole_seconds_round_down(void **state)
{
    char text[RON_RFC3339_SECONDS_SIZE];

    (void)state;
    ron_rfc3339_print_seconds(1760631062999, text);
    assert_string_equal(text, "2025-10-16T16:11:02Z");
    ron_rfc3339_print_seconds(RON_TIME_MS_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59Z");
    assert_dies(ron_rfc3339_print_seconds(RON_TIME_MS_MAX + 1, text), "RON_TIME_MS_MAX");
}

static void calendar_is_real(void **state)
{
    (void)state;
    refuse(RON_SLICE("1969-12-31T23:59:59Z"), "byte 0: year 1969 is before 1970");
    refuse(RON_SLICE("0000-01-01T00:00:00Z"), "byte 0: year 0 is before 1970");
    refuse(RON_SLICE("2025-00-01T00:00:00Z"), "byte 5: there is no month 0");
    refuse(RON_SLICE("2025-13-01T00:00:00Z"), "byte 5: there is no month 13");
    refuse(RON_SLICE("2025-01-00T00:00:00Z"), "byte 8: there is no day 0 in 2025-01");
    refuse(RON_SLICE("2025-01-32T00:00:00Z"), "byte 8: there is no day 32 in 2025-01");
    refuse(RON_SLICE("2025-04-31T00:00:00Z"), "byte 8: there is no day 31 in 2025-04");
    refuse(RON_SLICE("2025-02-29T00:00:00Z"), "byte 8: there is no day 29 in 2025-02");
    refuse(RON_SLICE("2100-02-29T00:00:00Z"), "byte 8: there is no day 29 in 2100-02");
    check("2024-02-29T00:00:00Z", 1709164800000, "2024-02-29T00:00:00.000Z");
    check("2400-02-29T00:00:00Z", 13574563200000, "2400-02-29T00:00:00.000Z");
    refuse(RON_SLICE("2025-01-01T24:00:00Z"), "byte 11: there is no hour 24");
    refuse(RON_SLICE("2025-01-01T00:60:00Z"), "byte 14: there is no minute 60");
    refuse(RON_SLICE("2016-12-31T23:59:60Z"), "byte 17: there is no second 60");
}

static void shape_is_strict(void **state)
{
    (void)state;
    refuse(RON_SLICE(""), "byte 0: the text ends");
    refuse(RON_SLICE("2025-10-16"), "byte 10: the text ends");
    refuse(RON_SLICE("2025-10-16T16:11:0"), "byte 18: the text ends");
    refuse(RON_SLICE("2025-10-16T16:11:02"), "byte 19: 'Z' was expected");
    refuse(RON_SLICE("2025-10-16t16:11:02Z"), "byte 10: 'T' was expected, not 0x74");
    refuse(RON_SLICE("2025-10-16 16:11:02Z"), "byte 10: 'T' was expected, not 0x20");
    refuse(RON_SLICE("2025-10-16T16:11:02z"), "byte 19: 'Z' was expected");
    refuse(RON_SLICE("2025-10-16T16:11:02+00:00"), "byte 19: 'Z' was expected");
    refuse(RON_SLICE("2025-10-16T16:11:02.123+00:00"), "byte 23: 'Z' was expected");
    refuse(RON_SLICE("2025-10-16T16:11:02Z "), "byte 20: the end was expected");
    refuse(RON_SLICE("2025-10-16T16:11:02.5ZZ"), "byte 22: the end was expected");
    refuse(RON_SLICE("2025/10/16T16:11:02Z"), "byte 4: '-' was expected, not 0x2f");
    refuse(RON_SLICE("2025-1a-16T16:11:02Z"), "byte 6: 0x61 is not a digit");
    refuse(RON_SLICE("+025-10-16T16:11:02Z"), "byte 0: 0x2b is not a digit");
    refuse(RON_SLICE("12025-10-16T16:11:02Z"), "byte 4: '-' was expected, not 0x35");
}

static void every_day_goes_both_ways(void **state)
{
    static const uint32_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint64_t day = 0;

    (void)state;
    for (uint32_t year = 1970; year <= 9999; year++) {
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        for (uint32_t month = 1; month <= 12; month++) {
            uint32_t length = lengths[month - 1] + (leap && month == 2);
            uint64_t beyond = 5;

            for (uint32_t mday = 1; mday <= length; mday++, day++) {
                struct ron_civil civil = ron_civil_from_day(day);
                uint64_t back = 0;

                if (civil.year != year || civil.month != month || civil.day != mday ||
                    !ron_day_from_civil(civil, &back) || back != day)
                    fail_msg("day %u is %04u-%02u-%02u", (unsigned)day, year, month, mday);
            }
            assert_false(ron_day_from_civil((struct ron_civil){year, month, length + 1}, &beyond));
            assert_false(ron_day_from_civil((struct ron_civil){year, month, 0}, &beyond));
            assert_int_equal(beyond, 5);
        }
    }
    assert_true(day == RON_TIME_MS_MAX / RON_DAY_MS + 1);
    assert_dies((void)ron_civil_from_day(day), "RON_TIME_MS_MAX");
    assert_false(ron_day_from_civil((struct ron_civil){1969, 12, 31}, &day));
    assert_false(ron_day_from_civil((struct ron_civil){10000, 1, 1}, &day));
    assert_false(ron_day_from_civil((struct ron_civil){2000, 0, 1}, &day));
    assert_false(ron_day_from_civil((struct ron_civil){2000, 13, 1}, &day));
}

static void day_changes_at_midnight(void **state)
{
    (void)state;
    assert_int_equal(ron_day_of_ms(0), 0);
    assert_int_equal(ron_day_of_ms(RON_DAY_MS - 1), 0);
    assert_int_equal(ron_day_of_ms(RON_DAY_MS), 1);
    assert_true(ron_day_of_ms(UINT64_MAX) == UINT64_MAX / 86400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_times),
        cmocka_unit_test(fractions_are_read_by_place),
        cmocka_unit_test(whole_seconds_round_down),
        cmocka_unit_test(calendar_is_real),
        cmocka_unit_test(shape_is_strict),
        cmocka_unit_test(every_day_goes_both_ways),
        cmocka_unit_test(day_changes_at_midnight),
    };
    return cmocka_run_group_tests_name("rfc3339", tests, NULL, NULL);
}
