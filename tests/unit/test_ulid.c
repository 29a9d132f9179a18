/*
 * test_ulid.c - time-ordered identifiers. Method: both ends of the range, every character at every
 * position, the successor at its bound and one beyond.
 */
#include "support.h"

#include "base/ulid.h"

static const uint8_t no_random[RON_ULID_RANDOM_SIZE];
static const uint8_t all_random[RON_ULID_RANDOM_SIZE] = {255, 255, 255, 255, 255,
                                                         255, 255, 255, 255, 255};

static void check_text(struct ron_ulid ulid, const char *expected)
{
    char text[RON_ULID_TEXT_SIZE];
    struct ron_ulid back;

    ron_ulid_print(ulid, text);
    assert_string_equal(text, expected);
    assert_ok(ron_ulid_parse(ron_slice_text(text), &back, NULL));
    assert_int_equal(ron_ulid_compare(ulid, back), 0);
}

static void refuse(struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    struct ron_ulid ulid;

    memset(&ulid, 0x5a, sizeof(ulid));
    support_assert_error(ron_ulid_parse(text, &ulid, &info), &info, RON_ERR_MALFORMED, message);
    for (size_t i = 0; i < sizeof(ulid.bytes); i++)
        assert_int_equal(ulid.bytes[i], 0x5a);
}

static void texts_of_both_ends(void **state)
{
    (void)state;
    check_text(ron_ulid_make(0, no_random), "00000000000000000000000000");
    check_text(ron_ulid_make(RON_ULID_TIME_MS_MAX, all_random), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    /* 2016-07-30T23:54:10.259Z, as in the specification's example 01ARZ3NDEKTSV4RRFFQ69G5FAV. */
    check_text(ron_ulid_make(1469922850259, no_random), "01ARZ3NDEK0000000000000000");
    check_text(ron_ulid_make(1, all_random), "0000000001ZZZZZZZZZZZZZZZZ");
}

static void time_comes_back(void **state)
{
    (void)state;
    assert_true(ron_ulid_time_ms(ron_ulid_make(RON_ULID_TIME_MS_MAX, no_random)) ==
                RON_ULID_TIME_MS_MAX);
    assert_true(ron_ulid_time_ms(ron_ulid_make(1469922850259, all_random)) == 1469922850259);
    assert_dies((void)ron_ulid_make(RON_ULID_TIME_MS_MAX + 1, no_random), "time_ms");
}

static void order_is_by_time_then_random(void **state)
{
    struct ron_ulid early = ron_ulid_make(255, all_random);
    struct ron_ulid late = ron_ulid_make(256, no_random);
    char early_text[RON_ULID_TEXT_SIZE];
    char late_text[RON_ULID_TEXT_SIZE];

    (void)state;
    assert_true(ron_ulid_compare(early, late) < 0);
    assert_true(ron_ulid_compare(late, early) > 0);
    ron_ulid_print(early, early_text);
    ron_ulid_print(late, late_text);
    assert_true(strcmp(early_text, late_text) < 0);
}

static void next_carries_and_stays_in_its_millisecond(void **state)
{
    uint8_t random[RON_ULID_RANDOM_SIZE];
    struct ron_ulid ulid;

    (void)state;
    memcpy(random, all_random, sizeof(random));
    random[0] = 0; /* the carry runs through nine bytes */
    assert_true(ron_ulid_next(ron_ulid_make(7, random), &ulid));
    check_text(ulid, "000000000704"
                     "00000000000000");
    assert_int_equal(ron_ulid_time_ms(ulid), 7);
    memcpy(random, all_random, sizeof(random));
    random[9] = 254;
    assert_true(ron_ulid_next(ron_ulid_make(7, random), &ulid));
    check_text(ulid, "0000000007ZZZZZZZZZZZZZZZZ");
    struct ron_ulid last = ulid;
    assert_false(ron_ulid_next(last, &ulid));
    assert_int_equal(ron_ulid_compare(ulid, last), 0);
    assert_false(ron_ulid_next(ron_ulid_make(RON_ULID_TIME_MS_MAX, all_random), &ulid));
    assert_int_equal(ron_ulid_compare(ulid, last), 0);
}

static void malformed_texts_are_refused(void **state)
{
    (void)state;
    refuse(RON_SLICE(""), "byte 0: the text ends");
    refuse(RON_SLICE("01ARZ3NDEK000000000000000"), "byte 25: the text ends");
    refuse(RON_SLICE("01ARZ3NDEK00000000000000000"), "byte 26: a ULID ends");
    refuse(RON_SLICE("80000000000000000000000000"), "byte 0: '8' is beyond 128 bits");
    refuse(RON_SLICE("Z0000000000000000000000000"), "byte 0: 'Z' is beyond 128 bits");
    refuse(RON_SLICE("01arz3ndek0000000000000000"), "byte 2: 0x61 is not");
    refuse(RON_SLICE("0000000000000000000000000U"), "byte 25: 0x55 is not");
    refuse(RON_SLICE("0000000000-000000000000000"), "byte 10: 0x2d is not");
}

static void every_byte_at_every_position(void **state)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    (void)state;
    for (size_t at = 0; at < RON_ULID_TEXT_SIZE - 1; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t text[RON_ULID_TEXT_SIZE - 1];
            struct ron_ulid ulid;
            bool valid = byte != 0 && strchr(alphabet, (int)byte) != NULL &&
                         (at > 0 || byte <= '7');
            enum ron_err err;

            memset(text, 'Y', sizeof(text));
            text[0] = '3';
            text[at] = (uint8_t)byte;
            err = ron_ulid_parse(ron_slice_of(text, sizeof(text)), &ulid, NULL);
            assert_int_equal(err, valid ? RON_ERR_OK : RON_ERR_MALFORMED);
            if (valid) {
                char back[RON_ULID_TEXT_SIZE];

                ron_ulid_print(ulid, back);
                assert_memory_equal(back, text, sizeof(text));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_both_ends),
        cmocka_unit_test(time_comes_back),
        cmocka_unit_test(order_is_by_time_then_random),
        cmocka_unit_test(next_carries_and_stays_in_its_millisecond),
        cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(every_byte_at_every_position),
    };
    return cmocka_run_group_tests_name("ulid", tests, NULL, NULL);
}
