/*
 * test_base64.c - RFC 4648 base64. Method: the RFC's vectors (section 10) in all four forms, every
 * text of two and three characters, each way to be malformed with its position.
 */
#include "support.h"

#include "base/base64.h"

static void refuse(enum ron_base64 form, struct ron_slice text, const char *message)
{
    struct ron_errinfo info = {0};
    uint8_t bytes[16];
    size_t size = 99;

    memset(bytes, 0x5a, sizeof(bytes));
    support_assert_error(ron_base64_decode(form, text, bytes, sizeof(bytes), &size, &info), &info,
                         RON_ERR_MALFORMED, message);
    assert_int_equal(size, 99);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], 0x5a);
}

static void check(enum ron_base64 form, struct ron_slice bytes, const char *expected)
{
    char text[64];
    uint8_t back[64];
    size_t size = 99;

    assert_true(RON_BASE64_SIZE(bytes.size) <= sizeof(text));
    memset(text, '#', sizeof(text));
    assert_int_equal(ron_base64_encode(form, bytes, text, RON_BASE64_SIZE(bytes.size)),
                     strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(text[RON_BASE64_SIZE(bytes.size)], '#');
    assert_ok(ron_base64_decode(form, ron_slice_text(expected), back, bytes.size, &size, NULL));
    assert_true(ron_slice_equal(ron_slice_of(back, size), bytes));
}

static void rfc4648_section_10(void **state)
{
    static const struct {
        const char *bytes;
        const char *padded;
        const char *bare;
    } vectors[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(vectors); i++) {
        struct ron_slice bytes = ron_slice_text(vectors[i].bytes);

        check(RON_BASE64_STANDARD, bytes, vectors[i].padded);
        check(RON_BASE64_URL, bytes, vectors[i].padded);
        check(RON_BASE64_STANDARD_NO_PAD, bytes, vectors[i].bare);
        check(RON_BASE64_URL_NO_PAD, bytes, vectors[i].bare);
    }
}

static void alphabets_differ_in_two_characters(void **state)
{
    (void)state;
    check(RON_BASE64_STANDARD, RON_SLICE("\xfb\xef\xbe\xff\xff\xff\xfb"), "++++////+w==");
    check(RON_BASE64_URL, RON_SLICE("\xfb\xef\xbe\xff\xff\xff\xfb"), "----____-w==");
    check(RON_BASE64_URL_NO_PAD, RON_SLICE("\xfb\xef\xbe\xff\xff\xff\xfb"), "----____-w");
    refuse(RON_BASE64_STANDARD, RON_SLICE("AA-A"), "byte 2: 0x2d is not of the alphabet");
    refuse(RON_BASE64_STANDARD_NO_PAD, RON_SLICE("AAA_"), "byte 3: 0x5f is not of the alphabet");
    refuse(RON_BASE64_URL, RON_SLICE("AA+A"), "byte 2: 0x2b is not of the alphabet");
    refuse(RON_BASE64_URL_NO_PAD, RON_SLICE("/AAA"), "byte 0: 0x2f is not of the alphabet");
}

static void padding_is_exact(void **state)
{
    (void)state;
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zg"), "byte 2: '=' was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zg="), "byte 3: '=' was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zg=A"), "byte 3: '=' was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zg==="), "byte 4: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zg==Zg=="), "byte 4: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm8"), "byte 3: '=' was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm8=="), "byte 4: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm9v="), "byte 4: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("="), "byte 0: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("===="), "byte 0: the end was expected");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Z==="), "byte 0: a single character");
    refuse(RON_BASE64_URL_NO_PAD, RON_SLICE("Zg=="), "byte 2: 0x3d is not of the alphabet");
    refuse(RON_BASE64_URL_NO_PAD, RON_SLICE("Zm9vY"), "byte 4: a single character at the end");
}

static void foreign_bytes_are_refused(void **state)
{
    (void)state;
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm9v\n"), "byte 4: 0x0a is not of the alphabet");
    refuse(RON_BASE64_STANDARD, RON_SLICE(" Zm9v"), "byte 0: 0x20 is not of the alphabet");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm\0v"), "byte 2: 0x00 is not of the alphabet");
    refuse(RON_BASE64_URL_NO_PAD, RON_SLICE("Zm9\x80"), "byte 3: 0x80 is not of the alphabet");
}

/* Of the 64^2 texts for one byte, 256 are canonical; of the 64^3 for two, 65,536. */
static void unused_bits_must_be_zero(void **state)
{
    static const char characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned accepted2 = 0;
    unsigned accepted3 = 0;
    uint8_t bytes[2];
    size_t size;

    (void)state;
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zh=="), "byte 1: unused bits are not zero");
    refuse(RON_BASE64_STANDARD, RON_SLICE("Zm9="), "byte 2: unused bits are not zero");
    refuse(RON_BASE64_URL_NO_PAD, RON_SLICE("Zm9vYmF"), "byte 6: unused bits are not zero");
    for (unsigned i = 0; i < 64 * 64 * 64; i++) {
        char text[3] = {characters[i / 4096], characters[i / 64 % 64], characters[i % 64]};

        if (i < 64 * 64 && ron_base64_decode(RON_BASE64_URL_NO_PAD, ron_slice_of(text + 1, 2),
                                             bytes, 2, &size, NULL) == RON_ERR_OK) {
            assert_int_equal(size, 1);
            assert_int_equal(bytes[0], i >> 4);
            accepted2++;
        }
        if (ron_base64_decode(RON_BASE64_URL_NO_PAD, ron_slice_of(text, 3), bytes, 2, &size,
                              NULL) == RON_ERR_OK) {
            assert_int_equal(size, 2);
            assert_int_equal(bytes[0] << 8 | bytes[1], i >> 2);
            accepted3++;
        }
    }
    assert_int_equal(accepted2, 256);
    assert_int_equal(accepted3, 65536);
}

static void capacity_is_exact(void **state)
{
    struct ron_errinfo info = {0};
    uint8_t bytes[3] = {1, 2, 3};
    char text[8];
    size_t size = 99;

    (void)state;
    support_assert_error(
        ron_base64_decode(RON_BASE64_STANDARD, RON_SLICE("Zm9v"), bytes, 2, &size, &info), &info,
        RON_ERR_TOO_LARGE, "3 bytes of base64, at most 2 fit");
    support_assert_error(
        ron_base64_decode(RON_BASE64_STANDARD, RON_SLICE("Zg=="), bytes, 0, &size, &info), &info,
        RON_ERR_TOO_LARGE, "1 bytes of base64, at most 0 fit");
    assert_int_equal(size, 99);
    assert_int_equal(bytes[0], 1);
    assert_ok(ron_base64_decode(RON_BASE64_STANDARD, (struct ron_slice){0}, NULL, 0, &size, NULL));
    assert_int_equal(size, 0);
    assert_int_equal(ron_base64_encode(RON_BASE64_URL, (struct ron_slice){0}, text, 1), 0);
    assert_dies(ron_base64_encode(RON_BASE64_URL, RON_SLICE("four"), text, sizeof(text)),
                "bytes.size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc4648_section_10),
        cmocka_unit_test(alphabets_differ_in_two_characters),
        cmocka_unit_test(padding_is_exact),
        cmocka_unit_test(foreign_bytes_are_refused),
        cmocka_unit_test(unused_bits_must_be_zero),
        cmocka_unit_test(capacity_is_exact),
    };
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
