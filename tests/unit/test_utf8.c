/*
 * test_utf8.c - UTF-8 validity and encoding.
 * Method: a decoder written here from the definition (decode by bits, then ask whether the value
 * needed that many bytes) answers for every code point, every sequence of one and two bytes, and
 * sampled longer ones, each placed at every offset of the fast path.
 */
#include "support.h"

#include "base/utf8.h"

/* The definition: lead bits say the size, the payload must not fit fewer bytes, and must be a
 * Unicode scalar value. Returns the size or 0. */
static size_t reference_decode(const uint8_t *p, size_t left, uint32_t *ret_value)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size;
    uint32_t value;

    if ((p[0] & 0x80) == 0) {
        *ret_value = p[0];
        return 1;
    }
    if ((p[0] & 0xe0) == 0xc0) {
        size = 2;
        value = p[0] & 0x1fu;
    } else if ((p[0] & 0xf0) == 0xe0) {
        size = 3;
        value = p[0] & 0x0fu;
    } else if ((p[0] & 0xf8) == 0xf0) {
        size = 4;
        value = p[0] & 0x07u;
    } else {
        return 0;
    }
    if (size > left)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3fu);
    }
    if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *ret_value = value;
    return size;
}

static bool reference_valid(struct ron_slice text, size_t *ret_bad_offset)
{
    uint32_t value;

    for (size_t at = 0; at < text.size;) {
        size_t size = reference_decode(text.data + at, text.size - at, &value);

        if (size == 0) {
            *ret_bad_offset = at;
            return false;
        }
        at += size;
    }
    return true;
}

static void assert_like_reference(struct ron_slice text)
{
    size_t bad_expected = 999;
    size_t bad = 999;
    bool expected = reference_valid(text, &bad_expected);

    if (ron_utf8_valid(text, &bad) != expected || bad != bad_expected)
        fail_msg("%zu bytes starting %02x: expected %d (bad at %zu), got bad at %zu", text.size,
                 text.size > 0 ? text.data[0] : 0, expected, bad_expected, bad);
}

static void every_code_point_goes_out_and_in(void **state)
{
    (void)state;
    for (uint32_t code_point = 0; code_point <= RON_UTF8_CODE_POINT_MAX; code_point++) {
        uint8_t text[RON_UTF8_SIZE_MAX];
        uint32_t decoded = 0;
        size_t size;

        if (code_point >= 0xd800 && code_point <= 0xdfff) {
            assert_false(ron_utf8_is_scalar(code_point));
            text[0] = 0xed;
            text[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
            text[2] = (uint8_t)(0x80 | (code_point & 0x3f));
            assert_false(ron_utf8_valid(ron_slice_of(text, 3), NULL));
            continue;
        }
        assert_true(ron_utf8_is_scalar(code_point));
        size = ron_utf8_encode(code_point, text);
        if (reference_decode(text, size, &decoded) != size || decoded != code_point ||
            !ron_utf8_valid(ron_slice_of(text, size), NULL))
            fail_msg("U+%04X became %zu bytes that read U+%04X", code_point, size, decoded);
        for (size_t cut = 1; cut < size; cut++)
            if (ron_utf8_valid(ron_slice_of(text, cut), NULL))
                fail_msg("U+%04X cut to %zu bytes is valid", code_point, cut);
    }
    assert_false(ron_utf8_is_scalar(0x110000));
    assert_dies((void)ron_utf8_encode(0xd800, (uint8_t[4]){0}), "ron_utf8_is_scalar");
    assert_dies((void)ron_utf8_encode(0x110000, (uint8_t[4]){0}), "ron_utf8_is_scalar");
}

static void short_sequences_match_the_definition(void **state)
{
    uint8_t text[2];

    (void)state;
    for (unsigned i = 0; i < 0x100; i++) {
        text[0] = (uint8_t)i;
        assert_like_reference(ron_slice_of(text, 1));
    }
    for (unsigned i = 0; i < 0x10000; i++) {
        text[0] = (uint8_t)(i >> 8);
        text[1] = (uint8_t)i;
        assert_like_reference(ron_slice_of(text, 2));
    }
}

/* Bytes at and next to every boundary that the definition has. */
static const uint8_t corners[] = {0x00, 0x41, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x9f, 0xa0, 0xbe, 0xbf,
                                  0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0,
                                  0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xfb, 0xfc, 0xfd, 0xfe, 0xff};

static void long_sequences_match_the_definition(void **state)
{
    enum { COUNT = RON_ARRAY_COUNT(corners) };

    (void)state;
    for (size_t i = 0; i < (size_t)COUNT * COUNT * COUNT * COUNT; i++) {
        uint8_t text[4] = {corners[i % COUNT], corners[i / COUNT % COUNT],
                           corners[i / COUNT / COUNT % COUNT],
                           corners[i / COUNT / COUNT / COUNT % COUNT]};

        assert_like_reference(ron_slice_of(text, 4));
        if (i < (size_t)COUNT * COUNT * COUNT)
            assert_like_reference(ron_slice_of(text, 3));
    }
}

/* Each pattern at each offset of texts around the block sizes, in memory that ends where the text
 * does, so that a sanitizer sees any reading beyond. */
static void fast_path_sees_every_offset(void **state)
{
    static const struct ron_slice patterns[] = {
        {(const uint8_t *)"\x80", 1},         {(const uint8_t *)"\xc3\xa9", 2},
        {(const uint8_t *)"\xe2\x82\xac", 3}, {(const uint8_t *)"\xf0\x9f\x98\x80", 4},
        {(const uint8_t *)"\xc0\x80", 2},     {(const uint8_t *)"\xed\xa0\x80", 3},
        {(const uint8_t *)"\xe2\x82", 2},     {(const uint8_t *)"\xf4\x90\x80\x80", 4},
    };

    (void)state;
    for (size_t size = 1; size <= 70; size++) {
        uint8_t *text = ron_mem_alloc(size);

        assert_non_null(text);
        for (size_t p = 0; p < RON_ARRAY_COUNT(patterns); p++) {
            for (size_t at = 0; at + patterns[p].size <= size; at++) {
                memset(text, 'a', size);
                memcpy(text + at, patterns[p].data, patterns[p].size);
                assert_like_reference(ron_slice_of(text, size));
            }
        }
        ron_mem_free(text);
    }
    assert_true(ron_utf8_valid((struct ron_slice){0}, NULL));
}

static void random_texts_match_the_definition(void **state)
{
    uint64_t random = 0x9e3779b97f4a7c15u;
    uint8_t text[96];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t size = 0;

        while (size < sizeof(text) - 4) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t code_point = (uint32_t)(random >> 40) % 0x110000;

            if (random >> 62 == 0)
                code_point &= 0x7f;
            if (ron_utf8_is_scalar(code_point))
                size += ron_utf8_encode(code_point, text + size);
        }
        assert_true(ron_utf8_valid(ron_slice_of(text, size), NULL));
        text[random >> 33 & 63] ^= (uint8_t)(1u << (random >> 59 & 7));
        assert_like_reference(ron_slice_of(text, size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_goes_out_and_in),
        cmocka_unit_test(short_sequences_match_the_definition),
        cmocka_unit_test(long_sequences_match_the_definition),
        cmocka_unit_test(fast_path_sees_every_offset),
        cmocka_unit_test(random_texts_match_the_definition),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
