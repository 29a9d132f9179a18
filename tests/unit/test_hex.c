/*
 * test_hex.c - lower-case hexadecimal text. Method: all byte values both ways, every foreign byte,
 * capacity at its bound and one below.
 */
#include "support.h"

#include <stdio.h>

#include "base/hex.h"

static void refuse(struct ron_slice text, size_t capacity, enum ron_err expected,
                   const char *message)
{
    struct ron_errinfo info = {0};
    uint8_t bytes[16];
    size_t size = 99;

    assert_true(capacity <= sizeof(bytes));
    memset(bytes, 0x5a, sizeof(bytes));
    support_assert_error(ron_hex_decode(text, bytes, capacity, &size, &info), &info, expected,
                         message);
    assert_int_equal(size, 99);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], 0x5a);
}

static void all_bytes_go_both_ways(void **state)
{
    uint8_t bytes[256];
    uint8_t back[256];
    char text[RON_HEX_SIZE(256)];
    size_t size;

    (void)state;
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(ron_hex_encode(ron_slice_of(bytes, 256), text, sizeof(text)), 512);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102030405060708090a0b0c0d0e0f1011", 36);
    assert_string_equal(text + 504, "fcfdfeff");
    assert_ok(ron_hex_decode(ron_slice_text(text), back, sizeof(back), &size, NULL));
    assert_int_equal(size, 256);
    assert_memory_equal(back, bytes, 256);
}

static void empty_is_empty(void **state)
{
    char text[1] = "#";
    size_t size = 99;

    (void)state;
    assert_int_equal(ron_hex_encode((struct ron_slice){0}, text, 1), 0);
    assert_int_equal(text[0], '\0');
    assert_ok(ron_hex_decode((struct ron_slice){0}, NULL, 0, &size, NULL));
    assert_int_equal(size, 0);
}

static void positions_are_told(void **state)
{
    (void)state;
    refuse(RON_SLICE("0"), 16, RON_ERR_MALFORMED, "byte 1: the text ends");
    refuse(RON_SLICE("abc"), 16, RON_ERR_MALFORMED, "byte 3: the text ends");
    refuse(RON_SLICE("Ab"), 16, RON_ERR_MALFORMED, "byte 0: 0x41 is not");
    refuse(RON_SLICE("00FF"), 16, RON_ERR_MALFORMED, "byte 2: 0x46 is not");
    refuse(RON_SLICE("000g"), 16, RON_ERR_MALFORMED, "byte 3: 0x67 is not");
    refuse(RON_SLICE("0x00"), 16, RON_ERR_MALFORMED, "byte 1: 0x78 is not");
    refuse(RON_SLICE("00 00"), 16, RON_ERR_MALFORMED, "byte 2: 0x20 is not");
    refuse(RON_SLICE("00\n"), 16, RON_ERR_MALFORMED, "byte 2: 0x0a is not");
}

static void capacity_is_exact(void **state)
{
    uint8_t bytes[2];
    size_t size;

    (void)state;
    assert_ok(ron_hex_decode(RON_SLICE("beef"), bytes, 2, &size, NULL));
    assert_int_equal(size, 2);
    assert_int_equal(bytes[0], 0xbe);
    assert_int_equal(bytes[1], 0xef);
    refuse(RON_SLICE("beef"), 1, RON_ERR_TOO_LARGE, "2 bytes of hex, at most 1 fit");
    refuse(RON_SLICE("be"), 0, RON_ERR_TOO_LARGE, "1 bytes of hex, at most 0 fit");
    char text[4];
    assert_dies(ron_hex_encode(ron_slice_of(bytes, 2), text, sizeof(text)), "bytes.size");
}

static void only_sixteen_characters_pass(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[2] = {'0', (uint8_t)byte};
        uint8_t value = 0x5a;
        size_t size;
        bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
        enum ron_err err = ron_hex_decode(ron_slice_of(text, 2), &value, 1, &size, NULL);

        assert_int_equal(err, digit ? RON_ERR_OK : RON_ERR_MALFORMED);
        if (digit)
            assert_int_equal(value, byte <= '9' ? byte - '0' : byte - 'a' + 10);
    }
}

/* Digits are looked at eight and thirty-two at a time: in texts of every length a foreign byte in
 * each place, and a digit likewise, is as it is alone. */
static void every_place_counts(void **state)
{
    enum { SIZE_MAX_TRIED = 2 * (32 + 8 + 1) };

    (void)state;
    for (size_t size = 2; size <= SIZE_MAX_TRIED; size += 2)
        for (size_t at = 0; at < size; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t text[SIZE_MAX_TRIED], bytes[SIZE_MAX_TRIED / 2], wanted[sizeof(bytes)];
                bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
                unsigned value = byte <= '9' ? byte - '0' : byte - 'a' + 10;
                char back[RON_HEX_SIZE(sizeof(bytes))];
                struct ron_errinfo info = {0};
                char message[32];
                size_t bytes_size;

                for (size_t i = 0; i < size; i++)
                    text[i] = i % 2 == 0 ? '8' : 'f';
                memset(wanted, 0x8f, sizeof(wanted));
                text[at] = (uint8_t)byte;
                if (!digit) {
                    (void)snprintf(message, sizeof(message), "byte %zu: 0x%02x", at, byte);
                    support_assert_error(ron_hex_decode(ron_slice_of(text, size), bytes,
                                                        sizeof(bytes), &bytes_size, &info),
                                         &info, RON_ERR_MALFORMED, message);
                    continue;
                }
                wanted[at / 2] = (uint8_t)(at % 2 == 0 ? value << 4 | 0xf : 0x80 | value);
                assert_ok(ron_hex_decode(ron_slice_of(text, size), bytes, sizeof(bytes),
                                         &bytes_size, NULL));
                assert_int_equal(bytes_size, size / 2);
                assert_memory_equal(bytes, wanted, size / 2);
                assert_int_equal(ron_hex_encode(ron_slice_of(bytes, size / 2), back, sizeof(back)),
                                 size);
                assert_memory_equal(back, text, size);
            }
    refuse(RON_SLICE("0123456789abcdeF"), 16, RON_ERR_MALFORMED, "byte 15: 0x46 is not");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_go_both_ways),       cmocka_unit_test(empty_is_empty),
        cmocka_unit_test(positions_are_told),           cmocka_unit_test(capacity_is_exact),
        cmocka_unit_test(only_sixteen_characters_pass), cmocka_unit_test(every_place_counts),
    };
    return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
