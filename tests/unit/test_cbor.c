/*
 * test_cbor.c - canonical CBOR.
 * Method: every row of RFC 8949 Appendix A, accepted or refused as the profile in cbor.h says; the
 * canonical rules one by one; a valid document cut at every byte; and random documents from an
 * encoder that knows nothing of the reader, read back and compared as diagnostic notation.
 */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cbor.h"

enum { DUMP_SIZE_MAX = 1 << 20 };

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

static void put_hex(struct ron_buf *out, struct ron_slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        ron_buf_put_format(out, "%02x", bytes.data[i]);
}

static void put_integer(struct ron_buf *out, bool negative, uint64_t value)
{
    if (negative && value == UINT64_MAX)
        ron_buf_put_text(out, "-18446744073709551616");
    else if (negative)
        ron_buf_put_format(out, "-%" PRIu64, value + 1);
    else
        ron_buf_put_format(out, "%" PRIu64, value);
}

/* Write what the reader gives as one line of space-separated diagnostic notation. */
static enum ron_err dump(struct ron_slice input, struct ron_buf *out, struct ron_errinfo *reterr)
{
    struct ron_cbor_reader reader;
    struct ron_cbor_token token = {0};

    ron_cbor_reader_init(&reader, input);
    for (;;) {
        enum ron_err err = ron_cbor_next(&reader, &token, reterr);

        if (err != RON_ERR_OK)
            return err;
        switch (token.kind) {
        case RON_CBOR_UINT:
        case RON_CBOR_NEGINT:
            put_integer(out, token.kind == RON_CBOR_NEGINT, token.value);
            break;
        case RON_CBOR_BYTES:
            ron_buf_put_text(out, "h'");
            put_hex(out, token.bytes);
            ron_buf_put_text(out, "'");
            break;
        case RON_CBOR_TEXT:
            ron_buf_put_text(out, "\"");
            ron_buf_put(out, token.bytes.data, token.bytes.size);
            ron_buf_put_text(out, "\"");
            break;
        case RON_CBOR_ARRAY_BEGIN:
            ron_buf_put_format(out, "[%" PRIu64, token.value);
            break;
        case RON_CBOR_MAP_BEGIN:
            ron_buf_put_format(out, "{%" PRIu64, token.value);
            break;
        case RON_CBOR_ARRAY_END:
            ron_buf_put_text(out, "]");
            break;
        case RON_CBOR_MAP_END:
            ron_buf_put_text(out, "}");
            break;
        case RON_CBOR_FALSE:
        case RON_CBOR_TRUE:
        case RON_CBOR_NULL:
            ron_buf_put_text(out, ron_cbor_kind_name(token.kind));
            break;
        case RON_CBOR_END:
            assert_int_equal(token.offset, input.size);
            return RON_ERR_OK;
        case RON_CBOR__MAX:
            fail();
        }
        ron_buf_put_text(out, " ");
    }
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
    ron_buf_init(&out, DUMP_SIZE_MAX);
    err = dump(input, &out, &info);
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
    ron_buf_init(&out, DUMP_SIZE_MAX);
    memset(text, 0x81, sizeof(text));
    text[RON_CBOR_DEPTH_MAX] = 0x00;
    assert_ok(dump(ron_slice_of(text, RON_CBOR_DEPTH_MAX + 1), &out, &info));
    text[RON_CBOR_DEPTH_MAX] = 0x80;
    support_assert_error(dump(ron_slice_of(text, RON_CBOR_DEPTH_MAX + 1), &out, &info), &info,
                         RON_ERR_TOO_LARGE, "nested deeper than 32 at byte 32");
    ron_buf_fini(&out);
}

/* The encoder: nothing of it comes from the reader. */
struct generator {
    uint64_t random;
};

static uint32_t generator_below(struct generator *g, uint32_t bound)
{
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g->random >> 32) % bound);
}

static uint64_t generator_number(struct generator *g)
{
    uint64_t value = (uint64_t)generator_below(g, UINT32_MAX) << 32 |
                     generator_below(g, UINT32_MAX);

    return value >> generator_below(g, 64);
}

static void put_head(struct ron_buf *out, unsigned major, uint64_t argument)
{
    unsigned width = argument < 24            ? 0
                     : argument <= UINT8_MAX  ? 1
                     : argument <= UINT16_MAX ? 2
                     : argument <= UINT32_MAX ? 4
                                              : 8;
    static const unsigned infos[] = {0, 24, 25, 0, 26, 0, 0, 0, 27};

    if (width == 0)
        ron_buf_put_byte(out, (uint8_t)(major << 5 | argument));
    else
        ron_buf_put_byte(out, (uint8_t)(major << 5 | infos[width]));
    while (width-- > 0)
        ron_buf_put_byte(out, (uint8_t)(argument >> (8 * width)));
}

struct pair {
    struct ron_buf key;
    struct ron_buf value;
    struct ron_buf text;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a;
    const struct pair *right = b;
    size_t common = left->key.size < right->key.size ? left->key.size : right->key.size;
    int order = memcmp(left->key.data, right->key.data, common);

    return order != 0 ? order
                      : (left->key.size > right->key.size) - (left->key.size < right->key.size);
}

static void generate(struct generator *g, unsigned depth, struct ron_buf *out,
                     struct ron_buf *text);

static void generate_map(struct generator *g, unsigned depth, struct ron_buf *out,
                         struct ron_buf *text)
{
    enum { PAIRS_MAX = 30 };
    struct pair pairs[PAIRS_MAX];
    unsigned made_count = generator_below(g, generator_below(g, 8) == 0 ? PAIRS_MAX + 1 : 5);
    unsigned count = 0;

    for (unsigned i = 0; i < made_count; i++) {
        ron_buf_init(&pairs[i].key, DUMP_SIZE_MAX);
        ron_buf_init(&pairs[i].value, DUMP_SIZE_MAX);
        ron_buf_init(&pairs[i].text, DUMP_SIZE_MAX);
        generate(g, generator_below(g, 4) == 0 ? depth : 0, &pairs[i].key, &pairs[i].text);
        generate(g, depth, &pairs[i].value, &pairs[i].text);
    }
    qsort(pairs, made_count, sizeof(pairs[0]), compare_pairs);
    for (unsigned i = 0; i < made_count; i++)
        count += i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0;
    put_head(out, 5, count);
    ron_buf_put_format(text, "{%u ", count);
    for (unsigned i = 0; i < made_count; i++) {
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            ron_buf_put(out, pairs[i].key.data, pairs[i].key.size);
            ron_buf_put(out, pairs[i].value.data, pairs[i].value.size);
            ron_buf_put(text, pairs[i].text.data, pairs[i].text.size);
        }
    }
    ron_buf_put_text(text, "} ");
    for (unsigned i = 0; i < made_count; i++) {
        ron_buf_fini(&pairs[i].key);
        ron_buf_fini(&pairs[i].value);
        ron_buf_fini(&pairs[i].text);
    }
}

static void generate_string(struct generator *g, bool is_text, struct ron_buf *out,
                            struct ron_buf *text)
{
    unsigned size = generator_below(g, generator_below(g, 8) == 0 ? 300 : 5);

    put_head(out, is_text ? 3 : 2, is_text ? size * 2 : size);
    ron_buf_put_text(text, is_text ? "\"" : "h'");
    for (unsigned i = 0; i < size; i++) {
        unsigned byte = generator_below(g, 256);
        char pair[2] = {(char)0xc3, (char)(0x80 | (byte & 0x3f))};

        if (is_text) {
            ron_buf_put(out, pair, 2);
            ron_buf_put(text, pair, 2);
        } else {
            ron_buf_put_byte(out, (uint8_t)byte);
            ron_buf_put_format(text, "%02x", byte);
        }
    }
    ron_buf_put_text(text, is_text ? "\" " : "' ");
}

static void generate(struct generator *g, unsigned depth, struct ron_buf *out, struct ron_buf *text)
{
    static const char *const simple_names[] = {"false ", "true ", "null "};
    unsigned choice = generator_below(g, depth == 0 ? 7 : 14);

    if (choice < 3) {
        uint64_t value = generator_number(g);
        bool negative = choice == 2;

        put_head(out, negative, value);
        put_integer(text, negative, value);
        ron_buf_put_text(text, " ");
    } else if (choice < 6) {
        generate_string(g, choice != 3, out, text);
    } else if (choice == 6) {
        unsigned which = generator_below(g, 3);

        ron_buf_put_byte(out, (uint8_t)(0xf4 + which));
        ron_buf_put_text(text, simple_names[which]);
    } else if (choice < 10) {
        unsigned count = generator_below(g, generator_below(g, 8) == 0 ? 30 : 4);

        put_head(out, 4, count);
        ron_buf_put_format(text, "[%u ", count);
        while (count-- > 0)
            generate(g, depth - 1, out, text);
        ron_buf_put_text(text, "] ");
    } else {
        generate_map(g, depth - 1, out, text);
    }
}

/* Read a copy in memory that ends where the input does, so that sanitizers see reading beyond. */
static enum ron_err dump_exact(struct ron_slice input, struct ron_buf *out,
                               struct ron_errinfo *reterr)
{
    uint8_t *copy = ron_mem_alloc(input.size > 0 ? input.size : 1);
    enum ron_err err;

    assert_non_null(copy);
    if (input.size > 0)
        memcpy(copy, input.data, input.size);
    err = dump(ron_slice_of(copy, input.size), out, reterr);
    ron_mem_free(copy);
    return err;
}

static void random_documents_round_trip(void **state)
{
    struct generator g = {.random = 20240807};
    struct ron_buf encoded, expected, got;
    size_t encoded_size_sum = 0;

    (void)state;
    ron_buf_init(&encoded, DUMP_SIZE_MAX);
    ron_buf_init(&expected, DUMP_SIZE_MAX);
    ron_buf_init(&got, DUMP_SIZE_MAX);
    for (int round = 0; round < 3000; round++) {
        struct ron_errinfo info = {0};
        struct ron_cbor_reader reader;
        struct ron_slice raw = {0};

        ron_buf_reset(&encoded);
        ron_buf_reset(&expected);
        ron_buf_reset(&got);
        generate(&g, (unsigned)round % 5, &encoded, &expected);
        assert_ok(ron_buf_check(&encoded, NULL));
        assert_ok(ron_buf_check(&expected, NULL));
        if (dump_exact(ron_buf_slice(&encoded), &got, &info) != RON_ERR_OK)
            fail_msg("round %d refused: %s", round, info.message);
        assert_true(ron_slice_equal(ron_buf_slice(&got), ron_buf_slice(&expected)));
        encoded_size_sum += encoded.size;
        ron_cbor_reader_init(&reader, ron_buf_slice(&encoded));
        assert_ok(ron_cbor_skip(&reader, &raw, NULL));
        assert_true(ron_slice_equal(raw, ron_buf_slice(&encoded)));
        /* A flipped bit is refused, or a different document. */
        encoded.data[generator_below(&g, (uint32_t)encoded.size)] ^=
            (uint8_t)(1u << generator_below(&g, 8));
        ron_buf_reset(&got);
        if (dump_exact(ron_buf_slice(&encoded), &got, NULL) == RON_ERR_OK)
            assert_false(ron_slice_equal(ron_buf_slice(&got), ron_buf_slice(&expected)));
    }
    assert_true(encoded_size_sum > 100000);
    ron_buf_fini(&encoded);
    ron_buf_fini(&expected);
    ron_buf_fini(&got);
}

static void every_truncation_is_refused(void **state)
{
    struct generator g = {.random = 3};
    struct ron_buf encoded, text;

    (void)state;
    ron_buf_init(&encoded, DUMP_SIZE_MAX);
    ron_buf_init(&text, DUMP_SIZE_MAX);
    put_head(&encoded, 4, 40);
    for (int i = 0; i < 40; i++)
        generate(&g, 3, &encoded, &text);
    ron_buf_reset(&text);
    assert_ok(dump_exact(ron_buf_slice(&encoded), &text, NULL));
    assert_true(encoded.size > 2000);
    for (size_t size = 0; size < encoded.size; size++) {
        struct ron_errinfo info = {0};

        ron_buf_reset(&text);
        support_assert_error(dump_exact(ron_slice_of(encoded.data, size), &text, &info), &info,
                             RON_ERR_MALFORMED, "at byte ");
    }
    ron_buf_put_byte(&encoded, 0);
    ron_buf_reset(&text);
    assert_int_equal(dump_exact(ron_buf_slice(&encoded), &text, NULL), RON_ERR_MALFORMED);
    ron_buf_fini(&encoded);
    ron_buf_fini(&text);
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

/* Time is judged where the code is compiled as it is shipped. */
#if RON_ASAN || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
enum { CPU_US_MAX = 5000000 };
#elif defined(__has_feature)
enum { CPU_US_MAX = __has_feature(thread_sanitizer) ? 5000000 : 50000 };
#else
enum { CPU_US_MAX = 50000 };
#endif

static uint64_t cpu_us_now(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The dearest shapes of 1 MiB: many small items, many containers, two keys equal to the last byte.
 */
static void a_mebibyte_is_quick(void **state)
{
    enum { SIZE = 1 << 20, KEY_SIZE = (SIZE - 1) / 2 - 6 };
    static uint8_t text[SIZE];
    struct ron_cbor_reader reader;
    struct ron_slice raw = {0};

    (void)state;
    for (int shape = 0; shape < 3; shape++) {
        size_t size = SIZE;
        uint64_t start;
        uint64_t cpu_us;
        enum ron_err err;

        memset(text, shape == 1 ? 0x80 : 0x00, sizeof(text));
        if (shape < 2) {
            text[0] = 0x9a;
            ron_store_be32(text + 1, SIZE - 5);
        } else {
            text[0] = 0xa2;
            text[1] = text[KEY_SIZE + 7] = 0x5a;
            ron_store_be32(text + 2, KEY_SIZE);
            ron_store_be32(text + KEY_SIZE + 8, KEY_SIZE);
            text[2 * KEY_SIZE + 11] = 1;
            size = 2 * KEY_SIZE + 13;
        }
        ron_cbor_reader_init(&reader, ron_slice_of(text, size));
        start = cpu_us_now();
        err = ron_cbor_skip(&reader, &raw, NULL);
        cpu_us = cpu_us_now() - start;
        print_message("shape %d: %" PRIu64 " us\n", shape, cpu_us);
        assert_ok(err);
        assert_int_equal(raw.size, size);
        assert_true(cpu_us < CPU_US_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appendix_a_row_by_row),
        cmocka_unit_test(rules_one_by_one),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(random_documents_round_trip),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(skip_gives_raw_values),
        cmocka_unit_test(failures_stay_and_leave_the_token),
        cmocka_unit_test(integers_become_i64_exactly),
        cmocka_unit_test(a_mebibyte_is_quick),
    };
    return cmocka_run_group_tests_name("cbor", tests, NULL, NULL);
}
