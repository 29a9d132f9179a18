/*
 * test_decimal.c - strict decimal text. Method: every length at its bounds, every byte at every
 * position, one beyond the largest numbers.
 */
#include "support.h"

#include "base/decimal.h"

#define U128_MAX_TEXT "340282366920938463463374607431768211455"

static void check_u64(uint64_t value, const char *text)
{
    char printed[RON_DECIMAL_U64_SIZE + 1];
    uint64_t parsed = ~value;

    memset(printed, '#', sizeof(printed));
    assert_int_equal(ron_decimal_print_u64(value, printed), strlen(text));
    assert_string_equal(printed, text);
    assert_int_equal(printed[RON_DECIMAL_U64_SIZE], '#');
    assert_ok(ron_decimal_parse_u64(ron_slice_text(text), &parsed, NULL));
    assert_true(parsed == value);
}

static void check_u128(struct ron_u128 value, const char *text)
{
    char printed[RON_DECIMAL_U128_SIZE + 1];
    struct ron_u128 parsed = {~value.v};

    memset(printed, '#', sizeof(printed));
    assert_int_equal(ron_decimal_print_u128(value, printed), strlen(text));
    assert_string_equal(printed, text);
    assert_int_equal(printed[RON_DECIMAL_U128_SIZE], '#');
    assert_ok(ron_decimal_parse_u128(ron_slice_text(text), &parsed, NULL));
    assert_true(parsed.v == value.v);
}

static void refuse_both(struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    uint64_t small = 5;
    struct ron_u128 large = {6};

    support_assert_error(ron_decimal_parse_u64(text, &small, &info), &info, RON_ERR_MALFORMED,
                         message);
    support_assert_error(ron_decimal_parse_u128(text, &large, &info), &info, RON_ERR_MALFORMED,
                         message);
    assert_int_equal(small, 5);
    assert_true(large.v == 6);
}

/* 10^n - 1, 10^n and 12...: all lengths, in both widths. */
static void every_length_goes_both_ways(void **state)
{
    unsigned __int128 power = 1;

    (void)state;
    check_u64(0, "0");
    check_u128(ron_u128_of(0), "0");
    for (unsigned digits = 1; digits <= 39; digits++) {
        char ones[40] = "1";
        char rising[40] = {0};
        unsigned __int128 rising_value = 0;

        memset(ones + 1, '0', digits - 1);
        for (unsigned i = 0; i < digits; i++) {
            rising[i] = (char)('0' + (i + 1) % 10);
            rising_value = rising_value * 10 + (i + 1) % 10;
        }
        check_u128((struct ron_u128){power}, ones);
        check_u128((struct ron_u128){rising_value}, rising); /* 1.23e38 still fits */
        if (digits <= 20) {
            check_u64((uint64_t)power, ones);
            check_u64((uint64_t)rising_value, rising);
        }
        if (digits > 1) {
            char nines[40] = {0};

            memset(nines, '9', digits - 1);
            check_u128((struct ron_u128){power - 1}, nines);
            if (digits <= 20)
                check_u64((uint64_t)(power - 1), nines);
        }
        if (digits < 39)
            power *= 10;
    }
}

static void bounds_are_exact(void **state)
{
    struct ron_errinfo info = {0};
    uint64_t small = 5;
    struct ron_u128 large = {6};

    (void)state;
    check_u64(UINT64_MAX, "18446744073709551615");
    check_u64(UINT64_MAX - 1, "18446744073709551614");
    check_u128(ron_u128_of(UINT64_MAX), "18446744073709551615");
    check_u128((struct ron_u128){(unsigned __int128)1 << 64}, "18446744073709551616");
    check_u128(RON_U128_MAX, U128_MAX_TEXT);
    static const char *const beyond_u64[] = {"18446744073709551616", "18446744073709551620",
                                             "20000000000000000000", "99999999999999999999"};
    for (size_t i = 0; i < RON_ARRAY_COUNT(beyond_u64); i++)
        support_assert_error(ron_decimal_parse_u64(ron_slice_text(beyond_u64[i]), &small, &info),
                             &info, RON_ERR_MALFORMED, "byte 19: out of range");
    support_assert_error(ron_decimal_parse_u64(RON_SLICE("100000000000000000000"), &small, &info),
                         &info, RON_ERR_MALFORMED, "byte 20: out of range");
    static const char *const beyond_u128[] = {
        "340282366920938463463374607431768211456", "340282366920938463463374607431768211460",
        "400000000000000000000000000000000000000", "999999999999999999999999999999999999999"};
    for (size_t i = 0; i < RON_ARRAY_COUNT(beyond_u128); i++)
        support_assert_error(ron_decimal_parse_u128(ron_slice_text(beyond_u128[i]), &large, &info),
                             &info, RON_ERR_MALFORMED, "byte 38: out of range");
    support_assert_error(ron_decimal_parse_u128(RON_SLICE(U128_MAX_TEXT "0"), &large, &info), &info,
                         RON_ERR_MALFORMED, "byte 39: out of range, the largest number is 3402");
    assert_int_equal(small, 5);
    assert_true(large.v == 6);
}

static void malformed_texts_are_refused(void **state)
{
    (void)state;
    refuse_both(RON_SLICE(""), "byte 0: empty");
    refuse_both((struct ron_slice){0}, "byte 0: empty");
    refuse_both(RON_SLICE("00"), "byte 0: leading zero");
    refuse_both(RON_SLICE("01"), "byte 0: leading zero");
    refuse_both(RON_SLICE("0000000000000000001"), "byte 0: leading zero");
    refuse_both(RON_SLICE("00000000000000000000000000000000000000000000"), "byte 0: leading zero");
    refuse_both(RON_SLICE("-1"), "byte 0: 0x2d is not a digit");
    refuse_both(RON_SLICE("+1"), "byte 0: 0x2b is not a digit");
    refuse_both(RON_SLICE(" 1"), "byte 0: 0x20");
    refuse_both(RON_SLICE("1 "), "byte 1: 0x20");
    refuse_both(RON_SLICE("1\0"), "byte 1: 0x00");
    refuse_both(RON_SLICE("1.0"), "byte 1: 0x2e");
    refuse_both(RON_SLICE("1e3"), "byte 1: 0x65");
    refuse_both(RON_SLICE("0x10"), "byte 1: 0x78");
}

/* All 256 bytes at each position of texts of each length: only digits pass. */
static void every_byte_at_every_position(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 39; size++) {
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t text[39];
                struct ron_u128 value;
                uint64_t small;
                bool valid = byte >= (at == 0 && size > 1 ? '1' : '0') && byte <= '9';
                bool in_range = size < 39 || at != 0 || byte <= '3';

                memset(text, '1', sizeof(text));
                text[at] = (uint8_t)byte;
                assert_int_equal(ron_decimal_parse_u128(ron_slice_of(text, size), &value, NULL),
                                 valid && in_range ? RON_ERR_OK : RON_ERR_MALFORMED);
                if (size > 20)
                    continue;
                in_range = size < 20 || (at == 0 ? byte <= '1' : at > 1 || byte <= '8');
                assert_int_equal(ron_decimal_parse_u64(ron_slice_of(text, size), &small, NULL),
                                 valid && in_range ? RON_ERR_OK : RON_ERR_MALFORMED);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_goes_both_ways),
        cmocka_unit_test(bounds_are_exact),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(every_byte_at_every_position),
    };
    return cmocka_run_group_tests_name("decimal", tests, NULL, NULL);
}
