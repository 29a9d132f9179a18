/*
 * test_units.c - durations and sizes. Method: each unit once, the largest value of each unit and
 * one beyond, each way to be malformed with its position.
 */
#include "support.h"

#include "base/units.h"

static void duration_is(const char *text, uint64_t expected, const char *printed)
{
    char back[RON_UNITS_TEXT_SIZE];
    uint64_t value = ~expected;

    assert_ok(ron_duration_parse(ron_slice_text(text), &value, NULL));
    assert_true(value == expected);
    assert_int_equal(ron_duration_print(value, back), strlen(printed));
    assert_string_equal(back, printed);
}

static void size_is(const char *text, uint64_t expected, const char *printed)
{
    char back[RON_UNITS_TEXT_SIZE];
    uint64_t value = ~expected;

    assert_ok(ron_size_parse(ron_slice_text(text), &value, NULL));
    assert_true(value == expected);
    assert_int_equal(ron_size_print(value, back), strlen(printed));
    assert_string_equal(back, printed);
}

static void refuse_duration(struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    uint64_t value = 5;

    support_assert_error(ron_duration_parse(text, &value, &info), &info, RON_ERR_MALFORMED,
                         message);
    assert_int_equal(value, 5);
}

static void refuse_size(struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    uint64_t value = 5;

    support_assert_error(ron_size_parse(text, &value, &info), &info, RON_ERR_MALFORMED, message);
    assert_int_equal(value, 5);
}

static void durations_have_seven_units(void **state)
{
    (void)state;
    duration_is("1ns", 1, "1ns");
    duration_is("3us", 3000, "3us");
    duration_is("250ms", 250000000, "250ms");
    duration_is("5s", 5000000000, "5s");
    duration_is("1m", 60000000000, "1m");
    duration_is("2h", 7200000000000, "2h");
    duration_is("7d", 604800000000000, "7d");
    duration_is("0ns", 0, "0s");
    duration_is("0d", 0, "0s");
}

static void durations_print_in_the_largest_exact_unit(void **state)
{
    (void)state;
    duration_is("1000ms", 1000000000, "1s");
    duration_is("90s", 90000000000, "90s");
    duration_is("120s", 120000000000, "2m");
    duration_is("36h", 129600000000000, "36h");
    duration_is("48h", 172800000000000, "2d");
    duration_is("1001us", 1001000, "1001us");
}

static void durations_are_bounded(void **state)
{
    (void)state;
    duration_is("18446744073709551615ns", UINT64_MAX, "18446744073709551615ns");
    duration_is("18446744073709551us", 18446744073709551000u, "18446744073709551us");
    duration_is("213503d", 18446659200000000000u, "213503d");
    refuse_duration(RON_SLICE("213504d"),
                    "byte 0: out of range, the largest is 18446744073709551615 "
                    "nanoseconds");
    refuse_duration(RON_SLICE("18446744073709552us"), "byte 0: out of range");
    refuse_duration(RON_SLICE("18446744073709551616ns"), "byte 19: out of range");
}

static void malformed_durations_are_refused(void **state)
{
    (void)state;
    refuse_duration(RON_SLICE(""), "byte 0: a whole number and a unit (ns, us, ms, s, m, h, d)");
    refuse_duration(RON_SLICE("s"), "byte 0: a whole number");
    refuse_duration(RON_SLICE("-1s"), "byte 0: a whole number");
    refuse_duration(RON_SLICE("5"), "byte 1: the unit must be one of ns, us, ms, s, m, h, d");
    refuse_duration(RON_SLICE("5 s"), "byte 1: the unit");
    refuse_duration(RON_SLICE("1.5s"), "byte 1: the unit");
    refuse_duration(RON_SLICE("10S"), "byte 2: the unit");
    refuse_duration(RON_SLICE("10sec"), "byte 2: the unit");
    refuse_duration(RON_SLICE("1h30m"), "byte 1: the unit");
    refuse_duration(RON_SLICE("1s\0"), "byte 1: the unit");
    refuse_duration(RON_SLICE("1w"), "byte 1: the unit");
    refuse_duration(RON_SLICE("01s"), "byte 0: leading zero");
}

static void sizes_have_nine_units(void **state)
{
    (void)state;
    size_is("512", 512, "512B");
    size_is("512B", 512, "512B");
    size_is("3KB", 3000, "3000B");
    size_is("10MB", 10000000, "10000000B");
    size_is("2GB", 2000000000, "1953125KiB");
    size_is("1TB", 1000000000000, "976562500KiB");
    size_is("64KiB", 65536, "64KiB");
    size_is("1MiB", 1048576, "1MiB");
    size_is("8GiB", 8589934592, "8GiB");
    size_is("5TiB", 5497558138880, "5TiB");
    size_is("0", 0, "0B");
    size_is("0TiB", 0, "0B");
    size_is("2048KiB", 2097152, "2MiB");
    size_is("1025KiB", 1049600, "1025KiB");
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    size_is("18446744073709551615", UINT64_MAX, "18446744073709551615B");
    size_is("16777215TiB", 16777215 * (UINT64_C(1) << 40), "16777215TiB");
    refuse_size(RON_SLICE("16777216TiB"), "byte 0: out of range, the largest is "
                                          "18446744073709551615 bytes");
    refuse_size(RON_SLICE("18446744073709551616B"), "byte 19: out of range");
}

static void malformed_sizes_are_refused(void **state)
{
    (void)state;
    refuse_size(RON_SLICE(""), "byte 0: a whole number and a unit (B, KB, MB, GB, TB, KiB, MiB, "
                               "GiB, TiB)");
    refuse_size(RON_SLICE("MiB"), "byte 0: a whole number");
    refuse_size(RON_SLICE("1 MiB"), "byte 1: the unit must be one of B, KB, MB");
    refuse_size(RON_SLICE("1M"), "byte 1: the unit");
    refuse_size(RON_SLICE("1mib"), "byte 1: the unit");
    refuse_size(RON_SLICE("10MiBs"), "byte 2: the unit");
    refuse_size(RON_SLICE("10Mi"), "byte 2: the unit");
    refuse_size(RON_SLICE("1PiB"), "byte 1: the unit");
    refuse_size(RON_SLICE("007"), "byte 0: leading zero");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_seven_units),
        cmocka_unit_test(durations_print_in_the_largest_exact_unit),
        cmocka_unit_test(durations_are_bounded),
        cmocka_unit_test(malformed_durations_are_refused),
        cmocka_unit_test(sizes_have_nine_units),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(malformed_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
