/*
 * test_cbor.c - canonical CBOR.
 * Method: every row of RFC 8949 Appendix A, accepted or refused as the profile in cbor.h says; the
 * canonical rules one by one; items of 1 MiB that are dear to read. test_cbor_roundtrip.c has the
 * random documents.
 */
#include "support.h"

#include <stdio.h>

#include "cbor_dump.h"
#include "nasty_cbor.h"

static struct ron_slice from_hex(const char *hex, uint8_t *out, size_t out_size)
{
    size_t size = strlen(hex) / 2;

    assert_true(size <= out_size);
    for (size_t i = 0; i < size; i++) {
        unsigned byte = 0;

        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return ron_slice_of(out, size);
}

/* A row: the bytes, and either what they mean or how they are refused. */
struct example {
    const char *hex;
    const char *dump;  /* NULL: refused */
    const char *error; /* part of the message */
};

#define FLOAT      "floating point is not used"
#define TAG        "tags are not used"
#define INDEF      "indefinite length is not canonical"
#define SIMPLE     "a simple value that is not used"
#define TO_23      "0102030405060708090a0b0c0d0e0f1011121314151617"
#define TO_25_TEXT "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 ] "

/* RFC 8949 Appendix A, in its order. */
static const struct example appendix_a[] = {
    {"00", "0 ", NULL},
    {"01", "1 ", NULL},
    {"0a", "10 ", NULL},
    {"17", "23 ", NULL},
    {"1818", "24 ", NULL},
    {"1819", "25 ", NULL},
    {"1864", "100 ", NULL},
    {"1903e8", "1000 ", NULL},
    {"1a000f4240", "1000000 ", NULL},
    {"1b000000e8d4a51000", "1000000000000 ", NULL},
    {"1bffffffffffffffff", "18446744073709551615 ", NULL},
    {"c249010000000000000000", NULL, TAG},
    {"3bffffffffffffffff", "-18446744073709551616 ", NULL},
    {"c349010000000000000000", NULL, TAG},
    {"20", "-1 ", NULL},
    {"29", "-10 ", NULL},
    {"3863", "-100 ", NULL},
    {"3903e7", "-1000 ", NULL},
    {"f90000", NULL, FLOAT},
    {"f98000", NULL, FLOAT},
    {"f93c00", NULL, FLOAT},
    {"fb3ff199999999999a", NULL, FLOAT},
    {"f93e00", NULL, FLOAT},
    {"f97bff", NULL, FLOAT},
    {"fa47c35000", NULL, FLOAT},
    {"fa7f7fffff", NULL, FLOAT},
    {"fb7e37e43c8800759c", NULL, FLOAT},
    {"f90001", NULL, FLOAT},
    {"f90400", NULL, FLOAT},
    {"f9c400", NULL, FLOAT},
    {"fbc010666666666666", NULL, FLOAT},
    {"f97c00", NULL, FLOAT},
    {"f97e00", NULL, FLOAT},
    {"f9fc00", NULL, FLOAT},
    {"fa7f800000", NULL, FLOAT},
    {"fa7fc00000", NULL, FLOAT},
    {"faff800000", NULL, FLOAT},
    {"fb7ff0000000000000", NULL, FLOAT},
    {"fb7ff8000000000000", NULL, FLOAT},
    {"fbfff0000000000000", NULL, FLOAT},
    {"f4", "false ", NULL},
    {"f5", "true ", NULL},
    {"f6", "null ", NULL},
    {"f7", NULL, "undefined is not used"},
    {"f0", NULL, SIMPLE},
    {"f8ff", NULL, SIMPLE},
    {"c074323031332d30332d32315432303a30343a30305a", NULL, TAG},
    {"c11a514b67b0", NULL, TAG},
    {"c1fb41d452d9ec200000", NULL, TAG},
    {"d74401020304", NULL, TAG},
    {"d818456449455446", NULL, TAG},
    {"d82076687474703a2f2f7777772e6578616d706c652e636f6d", NULL, TAG},
    {"40", "h'' ", NULL},
    {"4401020304", "h'01020304' ", NULL},
    {"60", "\"\" ", NULL},
    {"6161", "\"a\" ", NULL},
    {"6449455446", "\"IETF\" ", NULL},
    {"62225c", "\"\"\\\" ", NULL},
    {"62c3bc", "\"\xc3\xbc\" ", NULL},
    {"63e6b0b4", "\"\xe6\xb0\xb4\" ", NULL},
    {"64f0908591", "\"\xf0\x90\x85\x91\" ", NULL},
    {"80", "[0 ] ", NULL},
    {"83010203", "[3 1 2 3 ] ", NULL},
    {"8301820203820405", "[3 1 [2 2 3 ] [2 4 5 ] ] ", NULL},
    {"9819" TO_23 "18181819", "[25 " TO_25_TEXT, NULL},
    {"a0", "{0 } ", NULL},
    {"a201020304", "{2 1 2 3 4 } ", NULL},
    {"a26161016162820203", "{2 \"a\" 1 \"b\" [2 2 3 ] } ", NULL},
    {"826161a161626163", "[2 \"a\" {1 \"b\" \"c\" } ] ", NULL},
    {"a56161614161626142616361436164614461656145",
     "{5 \"a\" \"A\" \"b\" \"B\" \"c\" \"C\" \"d\" \"D\" \"e\" \"E\" } ", NULL},
    {"5f42010243030405ff", NULL, INDEF},
    {"7f657374726561646d696e67ff", NULL, INDEF},
    {"9fff", NULL, INDEF},
    {"9f018202039f0405ffff", NULL, INDEF},
    {"9f01820203820405ff", NULL, INDEF},
    {"83018202039f0405ff", NULL, INDEF ": at byte 5"},
    {"83019f0203ff820405", NULL, INDEF ": at byte 2"},
    {"9f" TO_23 "18181819ff", NULL, INDEF},
    {"bf61610161629f0203ffff", NULL, INDEF},
    {"826161bf61626163ff", NULL, INDEF ": at byte 3"},
    {"bf6346756ef563416d7421ff", NULL, INDEF},
};

/* The rules one at a time. */
static const struct example rules[] = {
    /* shortest forms, at both sides of each width */
    {"1817", NULL, "23 is not in its shortest form at byte 0"},
    {"190018", NULL, "24 is not in its shortest form"},
    {"1900ff", NULL, "255 is not in its shortest form"},
    {"190100", "256 ", NULL},
    {"18ff", "255 ", NULL},
    {"1a0000ffff", NULL, "65535 is not in its shortest form"},
    {"1a00010000", "65536 ", NULL},
    {"1b00000000ffffffff", NULL, "4294967295 is not in its shortest form"},
    {"1b0000000100000000", "4294967296 ", NULL},
    {"3800", NULL, "shortest form"},
    {"3818", "-25 ", NULL},
    {"3bfffffffffffffffe", "-18446744073709551615 ", NULL},
    {"580101", NULL, "shortest form"},
    {"780161", NULL, "shortest form"},
    {"980100", NULL, "shortest form"},
    {"b8010000", NULL, "shortest form"},
    {"81b8010000", NULL, "shortest form at byte 1"},
    /* reserved and stray */
    {"1c", NULL, "reserved additional information 28 at byte 0"},
    {"3d", NULL, "reserved additional information 29"},
    {"5e", NULL, "reserved additional information 30"},
    {"fc", NULL, "reserved additional information 28"},
    {"1f", NULL, "reserved additional information 31"},
    {"3f", NULL, "reserved additional information 31"},
    {"ff", NULL, "break without"},
    {"8201ff", NULL, "break without an indefinite length at byte 2"},
    {"f818", NULL, SIMPLE},
    {"f8", NULL, SIMPLE},
    {"e0", NULL, SIMPLE},
    {"f3", NULL, SIMPLE},
    {"81d9d9f700", NULL, "tags are not used: at byte 1"},
    /* key order and duplicates */
    {"a203040102", NULL, "map key is out of order at byte 3"},
    {"a201020102", NULL, "map key appears twice at byte 3"},
    {"a2616101616101", NULL, "map key appears twice at byte 4"},
    {"a261620162616102", "{2 \"b\" 1 \"aa\" 2 } ", NULL}, /* shorter encodings come first */
    {"a262616101616202", NULL, "map key is out of order at byte 5"},
    {"a21700181800", "{2 23 0 24 0 } ", NULL},
    {"a3000020006000", "{3 0 0 -1 0 \"\" 0 } ", NULL},
    {"a220000000", NULL, "out of order at byte 3"},
    {"a2f400f500", "{2 false 0 true 0 } ", NULL},
    {"a2f500f400", NULL, "out of order"},
    {"a2810100810200", "{2 [1 1 ] 0 [1 2 ] 0 } ", NULL},
    {"a2810200810100", NULL, "map key is out of order at byte 4"},
    {"a2810100810100", NULL, "map key appears twice at byte 4"},
    {"a28000810000", "{2 [0 ] 0 [1 0 ] 0 } ", NULL},
    {"a2a000a1000000", "{2 {0 } 0 {1 0 0 } 0 } ", NULL},
    {"a2a1000000a00000", NULL, "out of order at byte 5"},
    {"a1a20100000000", NULL, "map key is out of order at byte 4"}, /* in a map in a key */
    {"a201a2010002000300", "{2 1 {2 1 0 2 0 } 3 0 } ", NULL},
    {"a203a2010002000100", NULL, "out of order at byte 7"}, /* the outer map remembers */
    {"a10001", "{1 0 1 } ", NULL},
    /* lengths against what is left */
    {"5a40000000", NULL, "byte string of 1073741824 bytes with 0 bytes left at byte 0"},
    {"7a40000000", NULL, "text of 1073741824 bytes with 0 bytes left"},
    {"9a40000000", NULL, "array of 1073741824 items with 0 bytes left at byte 0"},
    {"ba40000000", NULL, "map of 1073741824 pairs with 0 bytes left"},
    {"5bffffffffffffffff", NULL, "byte string of 18446744073709551615 bytes with 0"},
    {"bbffffffffffffffff0000", NULL, "map of 18446744073709551615 pairs with 2"},
    {"9bffffffffffffffff00", NULL, "array of 18446744073709551615 items with 1"},
    {"bb800000000000000000", NULL, "map of 9223372036854775808 pairs"}, /* twice this is 0 */
    {"44010203", NULL, "byte string of 4 bytes with 3 bytes left"},
    {"84010203", NULL, "array of 4 items with 3 bytes left"},
    {"a2010203", NULL, "map of 2 pairs with 3 bytes left"},
    {"828100", NULL, "input ends where a value must follow at byte 3"},
    {"", NULL, "input ends where a value must follow at byte 0"},
    {"18", NULL, "input ends inside the head at byte 0"},
    {"811903", NULL, "input ends inside the head at byte 1"},
    {"0000", NULL, "1 bytes after the value at byte 1"},
    {"80f6f6", NULL, "2 bytes after the value at byte 1"},
    /* text */
    {"61ff", NULL, "text is not UTF-8 at byte 1"},
    {"6361c328", NULL, "text is not UTF-8 at byte 2"},
    {"63eda080", NULL, "text is not UTF-8"},
    {"62c080", NULL, "text is not UTF-8"},
    {"61c3", NULL, "text is not UTF-8"},
    {"41ff", "h'ff' ", NULL},
    {"6100", "\"", NULL}, /* compared up to its NUL only */
};

static void check_example(const struct example *example)
{
    struct ron_errinfo info = {0};
    uint8_t bytes[128];
    struct ron_slice input;
    struct ron_buf out;
    enum ron_err err;

    input = from_hex(example->hex, bytes, sizeof(bytes));
    ron_buf_init(&out, CBOR_DUMP_SIZE_MAX);
    err = cbor_dump(input, &out, &info);
    ron_buf_put_byte(&out, '\0');
    if (example->dump != NULL) {
        if (err != RON_ERR_OK)
            fail_msg("%s refused: %s", example->hex, info.message);
        assert_string_equal((const char *)out.data, example->dump);
    } else {
        if (err == RON_ERR_OK)
            fail_msg("%s accepted as %s", example->hex, (const char *)out.data);
        support_assert_error(err, &info, RON_ERR_MALFORMED, example->error);
        assert_non_null(strstr(info.message, "at byte "));
    }
    ron_buf_fini(&out);
}

static void appendix_a_row_by_row(void **state)
{
    unsigned accepted_count = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(appendix_a); i++) {
        check_example(&appendix_a[i]);
        accepted_count += appendix_a[i].dump != NULL;
    }
    assert_int_equal(RON_ARRAY_COUNT(appendix_a), 81);
    assert_int_equal(accepted_count, 37);
}

static void rules_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rules); i++)
        check_example(&rules[i]);
}

static void depth_is_bounded(void **state)
{
    struct ron_errinfo info = {0};
    uint8_t text[RON_CBOR_DEPTH_MAX + 2];
    struct ron_buf out;

    (void)state;
    ron_buf_init(&out, CBOR_DUMP_SIZE_MAX);
    memset(text, 0x81, sizeof(text));
    text[RON_CBOR_DEPTH_MAX] = 0x00;
    assert_ok(cbor_dump(ron_slice_of(text, RON_CBOR_DEPTH_MAX + 1), &out, &info));
    text[RON_CBOR_DEPTH_MAX] = 0x80;
    support_assert_error(cbor_dump(ron_slice_of(text, RON_CBOR_DEPTH_MAX + 1), &out, &info), &info,
                         RON_ERR_TOO_LARGE, "nested deeper than 32 at byte 32");
    ron_buf_fini(&out);
}

static void skip_gives_raw_values(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_cbor_reader reader;
    struct ron_cbor_token token = {0};
    struct ron_slice raw = {0};
    uint8_t bytes[64];

    (void)state;
    /* {"a": [1, {}], "b": h'01', "c": null} */
    ron_cbor_reader_init(&reader, from_hex("a361618201a0616241016163f6", bytes, sizeof(bytes)));
    assert_ok(ron_cbor_next(&reader, &token, NULL));
    assert_int_equal(token.value, 3);
    assert_ok(ron_cbor_next(&reader, &token, NULL));
    assert_true(ron_slice_equal(token.bytes, RON_SLICE("a")));
    assert_int_equal(token.offset, 1);
    assert_ok(ron_cbor_skip(&reader, &raw, NULL));
    assert_true(ron_slice_equal(raw, RON_SLICE("\x82\x01\xa0")));
    assert_ok(ron_cbor_skip(&reader, &raw, NULL)); /* a key is a value too */
    assert_true(ron_slice_equal(raw, RON_SLICE("\x61\x62")));
    assert_ok(ron_cbor_skip(&reader, &raw, NULL));
    assert_true(ron_slice_equal(raw, RON_SLICE("\x41\x01")));
    assert_ok(ron_cbor_skip(&reader, &raw, NULL));
    assert_ok(ron_cbor_skip(&reader, &raw, NULL));
    assert_true(ron_slice_equal(raw, RON_SLICE("\xf6")));
    raw = (struct ron_slice){0};
    support_assert_error(ron_cbor_skip(&reader, &raw, &info), &info, RON_ERR_MALFORMED,
                         "end of map where a value must follow at byte 13");
    assert_null(raw.data);

    ron_cbor_reader_init(&reader, from_hex("00", bytes, sizeof(bytes)));
    assert_ok(ron_cbor_skip(&reader, &raw, NULL));
    support_assert_error(ron_cbor_skip(&reader, &raw, &info), &info, RON_ERR_MALFORMED,
                         "end of input where a value must follow at byte 1");
    ron_cbor_reader_init(&reader, from_hex("81a200000000", bytes, sizeof(bytes)));
    support_assert_error(ron_cbor_skip(&reader, &raw, &info), &info, RON_ERR_MALFORMED,
                         "map key appears twice at byte 4");
}

static void failures_stay_and_leave_the_token(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_cbor_reader reader;
    struct ron_cbor_token token = {.value = 77, .kind = RON_CBOR_NULL};
    uint8_t bytes[8];

    (void)state;
    ron_cbor_reader_init(&reader, from_hex("1817", bytes, sizeof(bytes)));
    support_assert_error(ron_cbor_next(&reader, &token, &info), &info, RON_ERR_MALFORMED, "23");
    support_assert_error(ron_cbor_next(&reader, &token, &info), &info, RON_ERR_MALFORMED, "before");
    assert_int_equal(token.value, 77);
    assert_int_equal(token.kind, RON_CBOR_NULL);
    ron_cbor_reader_init(&reader, from_hex("f6", bytes, sizeof(bytes)));
    assert_ok(ron_cbor_next(&reader, &token, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(ron_cbor_next(&reader, &token, NULL));
        assert_int_equal(token.kind, RON_CBOR_END);
    }
}

static void integers_become_i64_exactly(void **state)
{
    struct ron_cbor_token token = {.kind = RON_CBOR_UINT, .value = INT64_MAX};
    int64_t value = 5;

    (void)state;
    assert_true(ron_cbor_to_i64(&token, &value));
    assert_true(value == INT64_MAX);
    token.kind = RON_CBOR_NEGINT;
    assert_true(ron_cbor_to_i64(&token, &value));
    assert_true(value == INT64_MIN);
    token.value++;
    value = 5;
    assert_false(ron_cbor_to_i64(&token, &value));
    token.kind = RON_CBOR_UINT;
    assert_false(ron_cbor_to_i64(&token, &value));
    token = (struct ron_cbor_token){.kind = RON_CBOR_BYTES};
    assert_false(ron_cbor_to_i64(&token, &value));
    assert_int_equal(value, 5);
}

static void nasty_items_get_their_verdict(void **state)
{
    struct ron_buf item;

    (void)state;
    ron_buf_init(&item, NASTY_SIZE + 1);
    for (unsigned i = 0; i < NASTY_CBOR_COUNT; i++) {
        struct ron_errinfo info = {.message = "accepted"};
        struct ron_cbor_reader reader;
        struct ron_slice raw = {0};
        enum ron_err err;

        nasty_make(&nasty_cbor_inputs[i], &item);
        assert_ok(ron_buf_check(&item, NULL));
        assert_in_range(item.size, NASTY_SIZE - 8, NASTY_SIZE);
        ron_cbor_reader_init(&reader, ron_buf_slice(&item));
        err = ron_cbor_skip(&reader, &raw, &info);
        print_message("%-24s %s\n", nasty_cbor_inputs[i].name, info.message);
        assert_int_equal(err == RON_ERR_OK, nasty_cbor_inputs[i].accepted);
        assert_int_equal(raw.size, err == RON_ERR_OK ? item.size : 0);
    }
    ron_buf_fini(&item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appendix_a_row_by_row),
        cmocka_unit_test(rules_one_by_one),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(skip_gives_raw_values),
        cmocka_unit_test(failures_stay_and_leave_the_token),
        cmocka_unit_test(integers_become_i64_exactly),
        cmocka_unit_test(nasty_items_get_their_verdict),
    };
    return cmocka_run_group_tests_name("cbor", tests, NULL, NULL);
}
