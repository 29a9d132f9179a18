/*
 * test_json.c - the JSON reader, token by token.
 * tidy: long file because it is mostly two tables.
 * Method: a table of accepted texts with their tokens written out, a table of refused ones with the
 * byte and the reason; every prefix of the accepted ones; generated nasty texts of 1 MiB against
 * the memory bound.
 *
 * covers: LED-S08
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_names.h"
#include "base/json_string.h"

/* A text as a slice: literals may hold NUL. */
#define T(literal)                                         \
    {                                                      \
        (const uint8_t *)("" literal), sizeof(literal) - 1 \
    }

/* Tokens are written as { } [ ] n:NAME s:STRING i:INTEGER t f z, a space between them; bytes
 * outside printable ASCII as <hex>. */
static const struct {
    struct ron_slice text;
    const char *tokens;
} accepted[] = {
    /* Scalars and white space. */
    {T("0"), "i:0"},
    {T("7"), "i:7"},
    {T("-1"), "i:-1"},
    {T("10"), "i:10"},
    {T(" 1"), "i:1"},
    {T("1 "), "i:1"},
    {T("\t\r\n 1\n\n"), "i:1"},
    {T("true"), "t"},
    {T("false"), "f"},
    {T("null"), "z"},
    {T(" null "), "z"},
    {T("\"\""), "s:"},
    {T("\"a\""), "s:a"},
    /* Integers at the edges. */
    {T("9223372036854775807"), "i:9223372036854775807"},
    {T("9223372036854775808"), "i:9223372036854775808"},
    {T("9999999999999999999"), "i:9999999999999999999"},
    {T("18446744073709551615"), "i:18446744073709551615"},
    {T("18446744073709551616"), "i:18446744073709551616"},
    {T("-18446744073709551616"), "i:-18446744073709551616"},
    {T("99999999999999999999999999999999999999"), "i:99999999999999999999999999999999999999"},
    {T("340282366920938463463374607431768211455"), "i:340282366920938463463374607431768211455"},
    {T("-340282366920938463463374607431768211455"), "i:-340282366920938463463374607431768211455"},
    {T("[1000000000000000000,10000000000000000000]"),
     "[ i:1000000000000000000 i:10000000000000000000 ]"},
    /* Containers. */
    {T("[]"), "[ ]"},
    {T("[ ]"), "[ ]"},
    {T("{}"), "{ }"},
    {T("{ }"), "{ }"},
    {T("[[]]"), "[ [ ] ]"},
    {T("[[],[]]"), "[ [ ] [ ] ]"},
    {T("[{},{}]"), "[ { } { } ]"},
    {T("[1,2,3]"), "[ i:1 i:2 i:3 ]"},
    {T("[ 1 , 2 ]"), "[ i:1 i:2 ]"},
    {T("[1]\n"), "[ i:1 ]"},
    {T("[true,false,null]"), "[ t f z ]"},
    {T("{\"a\":1}"), "{ n:a i:1 }"},
    {T(" { \"a\" : 1 , \"b\" : [ ] } "), "{ n:a i:1 n:b [ ] }"},
    {T("{\"a\":{\"a\":{\"a\":1}}}"), "{ n:a { n:a { n:a i:1 } } }"},
    {T("[{\"a\":1},{\"a\":2}]"), "[ { n:a i:1 } { n:a i:2 } ]"},
    {T("{\"\":0}"), "{ n: i:0 }"},
    {T("{\"a\":1,\"A\":2,\"aa\":3}"), "{ n:a i:1 n:A i:2 n:aa i:3 }"},
    {T("{\"a\":{\"b\":1},\"b\":2}"), "{ n:a { n:b i:1 } n:b i:2 }"},
    {T("{\"a\\u0000b\":1,\"a\":2}"), "{ n:a<00>b i:1 n:a i:2 }"},
    {T("[\"a\",\"a\"]"), "[ s:a s:a ]"},
    {T("[\"a\",\"{\",\"]\"]"), "[ s:a s:{ s:] ]"},
    /* Escapes. */
    {T("\"\\\"\\\\\\/\""), "s:\"\\/"},
    {T("\"\\b\\f\\n\\r\\t\""), "s:<08><0c><0a><0d><09>"},
    {T("\"\\u0041\\u00e9\\u20ac\""), "s:A<c3><a9><e2><82><ac>"},
    {T("\"\\u00C9\\u00c9\""), "s:<c3><89><c3><89>"},
    {T("\"\\ud83d\\ude00\""), "s:<f0><9f><98><80>"},
    {T("\"\\uD800\\uDC00\""), "s:<f0><90><80><80>"},
    {T("\"\\udbff\\udfff\""), "s:<f4><8f><bf><bf>"},
    {T("\"\\u0000\""), "s:<00>"},
    {T("\"\\uffff\\ufffe\\ue000\\ud7ff\""), "s:<ef><bf><bf><ef><bf><be><ee><80><80><ed><9f><bf>"},
    {T("\"a\\nb\\nc\""), "s:a<0a>b<0a>c"},
    {T("\"0123456789abcdef0123456789\\tx\""), "s:0123456789abcdef0123456789<09>x"},
    {T("\"\\\\u0041\""), "s:\\u0041"},
    {T("{\"\\u0061b\":\"\\u0062\"}"), "{ n:ab s:b }"},
    /* Characters beyond ASCII, and DEL. */
    {T("\"\x7f\""), "s:<7f>"},
    {T("\"\xc2\x80\""), "s:<c2><80>"},
    {T("\"\xdf\xbf\""), "s:<df><bf>"},
    {T("\"\xe0\xa0\x80\""), "s:<e0><a0><80>"},
    {T("\"\xed\x9f\xbf\""), "s:<ed><9f><bf>"},
    {T("\"\xee\x80\x80\""), "s:<ee><80><80>"},
    {T("\"\xef\xbb\xbf\""), "s:<ef><bb><bf>"},
    {T("\"\xf0\x90\x80\x80\""), "s:<f0><90><80><80>"},
    {T("\"\xf4\x8f\xbf\xbf\""), "s:<f4><8f><bf><bf>"},
    {T("\"a\xc3\xa9\\n\xc3\xa9z\""), "s:a<c3><a9><0a><c3><a9>z"},
    {T("{\"\xc3\xa9\":1,\"e\":2}"), "{ n:<c3><a9> i:1 n:e i:2 }"},
    /* 32 levels. */
    {T("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
     "[ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ [ ] ] ] ] ] ] ] ] ] ] ] ] ] ] "
     "] ] "
     "] ] ] ] ] ] ] ] ] ] ] ] ] ] ] ]"},
};

static const struct {
    struct ron_slice text;
    uint32_t offset;
    const char *what;
} refused[] = {
    /* Nothing, too little, too much. */
    {T(""), 0, "text ends where a value"},
    {T(" "), 1, "text ends where a value"},
    {T("\n\t "), 3, "text ends where a value"},
    {T("1 2"), 2, "more text"},
    {T("1,"), 1, "more text"},
    {T("{}}"), 2, "more text"},
    {T("[]]"), 2, "more text"},
    {T("[] x"), 3, "more text"},
    {T("{}#"), 2, "more text"},
    {T("\"a\"b"), 3, "more text"},
    {T("null\0"), 4, "more text"},
    {T("1\xef\xbb\xbf"), 1, "more text"},
    {T("\xef\xbb\xbf{}"), 0, "byte order mark"},
    {T(" \xef\xbb\xbf{}"), 1, "expected a value"},
    {T("\xfe\xff"), 0, "expected a value"},
    {T("{\0"), 1, "member's name"},
    {T("\0"), 0, "expected a value"},
    {T("\v1"), 0, "expected a value"},
    {T("\f1"), 0, "expected a value"},
    {T("\xc2\xa0"
       "1"),
     0, "expected a value"},
    {T("/* */1"), 0, "expected a value"},
    {T("// 1"), 0, "expected a value"},
    {T("'a'"), 0, "expected a value"},
    {T("abc"), 0, "expected a value"},
    {T("*"), 0, "expected a value"},
    {T("\\u0041"), 0, "expected a value"},
    /* Words. */
    {T("tru"), 3, "ends inside a word"},
    {T("trux"), 3, "no such word"},
    {T("TRUE"), 0, "expected a value"},
    {T("True"), 0, "expected a value"},
    {T("truee"), 4, "more text"},
    {T("nul"), 3, "ends inside a word"},
    {T("nil"), 1, "no such word"},
    {T("falze"), 3, "no such word"},
    {T("[nullx]"), 5, "comma or ]"},
    {T("undefined"), 0, "expected a value"},
    {T("NaN"), 0, "expected a value"},
    {T("nan"), 1, "no such word"},
    {T("Infinity"), 0, "expected a value"},
    {T("-Infinity"), 1, "expected a digit"},
    /* Numbers. */
    {T("-"), 1, "ends inside a number"},
    {T("[-]"), 2, "expected a digit"},
    {T("+1"), 0, "expected a value"},
    {T("--1"), 1, "expected a digit"},
    {T("-0"), 0, "negative zero"},
    {T("[1,-0]"), 3, "negative zero"},
    {T("-0.0"), 2, "not an integer"},
    {T("00"), 0, "leading zero"},
    {T("01"), 0, "leading zero"},
    {T("-01"), 1, "leading zero"},
    {T("-00"), 1, "leading zero"},
    {T("1.0"), 1, "not an integer"},
    {T("0.5"), 1, "not an integer"},
    {T("1."), 1, "not an integer"},
    {T(".5"), 0, "expected a value"},
    {T("1e5"), 1, "not an integer"},
    {T("1E5"), 1, "not an integer"},
    {T("0e0"), 1, "not an integer"},
    {T("1e"), 1, "not an integer"},
    {T("10000000000000000000000.5"), 23, "not an integer"},
    {T("0x1F"), 1, "more text"},
    {T("1_000"), 1, "more text"},
    {T("[1 000]"), 3, "comma or ]"},
    {T("1a"), 1, "more text"},
    {T("\xef\xbc\x91"), 0, "expected a value"},
    {T("340282366920938463463374607431768211456"), 0, "beyond 128 bits"},
    {T("-340282366920938463463374607431768211456"), 0, "beyond 128 bits"},
    {T("999999999999999999999999999999999999999"), 0, "beyond 128 bits"},
    {T("[1000000000000000000000000000000000000000]"), 1, "beyond 128 bits"},
    {T("00000000000000000000000000000000000000000000"), 0, "leading zero"},
    /* Arrays. */
    {T("["), 1, "ends where a value"},
    {T("]"), 0, "expected a value"},
    {T("[1"), 2, "ends inside an array"},
    {T("[1,"), 3, "ends where a value"},
    {T("[1,]"), 3, "expected a value"},
    {T("[,1]"), 1, "expected a value"},
    {T("[,]"), 1, "expected a value"},
    {T("[1,,2]"), 3, "expected a value"},
    {T("[1 2]"), 3, "comma or ]"},
    {T("[1}"), 2, "comma or ]"},
    {T("[}"), 1, "expected a value"},
    {T("[1:2]"), 2, "comma or ]"},
    {T("[\"a\" \"b\"]"), 5, "comma or ]"},
    {T("[[1]"), 4, "ends inside an array"},
    {T("[\"a"), 3, "ends inside a string"},
    {T("[1\0]"), 2, "comma or ]"},
    {T("[\v1]"), 1, "expected a value"},
    /* Objects. */
    {T("{"), 1, "ends inside an object"},
    {T("}"), 0, "expected a value"},
    {T("{]"), 1, "member's name"},
    {T("{,}"), 1, "member's name"},
    {T("{\"a\""), 4, "ends inside an object"},
    {T("{\"a\":"), 5, "ends where a value"},
    {T("{\"a\":1"), 6, "ends inside an object"},
    {T("{\"a\":1,"), 7, "ends inside an object"},
    {T("{\"a\":1,}"), 7, "member's name"},
    {T("{\"a\":1,,\"b\":2}"), 7, "member's name"},
    {T("{\"a\" 1}"), 5, "expected a colon"},
    {T("{\"a\"::1}"), 5, "expected a value"},
    {T("{\"a\"}"), 4, "expected a colon"},
    {T("{\"a\",\"b\"}"), 4, "expected a colon"},
    {T("{\"a\":}"), 5, "expected a value"},
    {T("{\"a\":1]"), 6, "comma or }"},
    {T("{\"a\":1 \"b\":2}"), 7, "comma or }"},
    {T("{a:1}"), 1, "member's name"},
    {T("{'a':1}"), 1, "member's name"},
    {T("{1:1}"), 1, "member's name"},
    {T("{null:1}"), 1, "member's name"},
    {T("{[]:1}"), 1, "member's name"},
    {T("{\"a\":1}}"), 7, "more text"},
    {T("{\"a\":\"b\"}/**/"), 9, "more text"},
    {T("{\"a\n\":1}"), 3, "control character"},
    /* Duplicates. */
    {T("{\"a\":1,\"a\":2}"), 7, "duplicate member"},
    {T("{\"a\":1,\"b\":2,\"a\":1}"), 13, "duplicate member"},
    {T("{\"\":1,\"\":1}"), 6, "duplicate member"},
    {T("{\"a\":1,\"\\u0061\":2}"), 7, "duplicate member"},
    {T("{\"\\u0061\":1,\"a\":2}"), 12, "duplicate member"},
    {T("{\"/\":1,\"\\/\":2}"), 7, "duplicate member"},
    {T("{\"\\n\":1,\"\\u000A\":2}"), 8, "duplicate member"},
    {T("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"), 18, "duplicate member"},
    {T("{\"\\u0000\":1,\"\\u0000\":2}"), 12, "duplicate member"},
    {T("[{\"x\":{\"a\":1,\"a\":2}}]"), 13, "duplicate member"},
    {T("{\"a\":{\"b\":1},\"a\":2}"), 13, "duplicate member"},
    {T("{\"a\":[{\"a\":1}],\"a\":[]}"), 15, "duplicate member"},
    /* Strings. */
    {T("\""), 1, "ends inside a string"},
    {T("\"a"), 2, "ends inside a string"},
    {T("\"a\\"), 3, "ends inside a string"},
    {T("\"\\\""), 3, "ends inside a string"},
    {T("\"\\u00"), 5, "ends inside a string"},
    {T("\"\\u"), 3, "ends inside a string"},
    {T("\"0123456789abcdef0123456789"), 27, "ends inside a string"},
    {T("\"\\x41\""), 2, "no such escape"},
    {T("\"\\a\""), 2, "no such escape"},
    {T("\"\\'\""), 2, "no such escape"},
    {T("\"\\0\""), 2, "no such escape"},
    {T("\"\\U0041\""), 2, "no such escape"},
    {T("\"\\\n\""), 2, "no such escape"},
    {T("\"\\\0\""), 2, "no such escape"},
    {T("\"\\\xc3\xa9\""), 2, "no such escape"},
    {T("\"\\u004g\""), 6, "hexadecimal"},
    {T("\"\\u 041\""), 3, "hexadecimal"},
    {T("\"\\u00\""), 5, "hexadecimal"},
    {T("\"\\u{41}\""), 3, "hexadecimal"},
    {T("\"\n\""), 1, "control character"},
    {T("\"a\tb\""), 2, "control character"},
    {T("\"\0\""), 1, "control character"},
    {T("\"\x1f\""), 1, "control character"},
    {T("\"0123456789abcdef\x01\""), 17, "control character"},
    {T("\"\xc3\xa9\x1f\""), 3, "control character"},
    /* Surrogates. */
    {T("\"\\ud800\""), 1, "lone surrogate"},
    {T("\"\\udc00\""), 1, "lone surrogate"},
    {T("\"\\ud800x\""), 1, "lone surrogate"},
    {T("\"\\ud800\\n\""), 1, "lone surrogate"},
    {T("\"\\ud800\\ud800\""), 1, "lone surrogate"},
    {T("\"\\ud800\\u0041\""), 1, "lone surrogate"},
    {T("\"\\udc00\\ud800\""), 1, "lone surrogate"},
    {T("\"a\\ud83d\\ude00\\ude00\""), 14, "lone surrogate"},
    {T("\"\\ud800\\ue000\""), 1, "lone surrogate"},
    {T("\"\\ud800"), 1, "lone surrogate"},
    {T("\"\\ud800\\u"), 9, "ends inside a string"},
    {T("\"\\ud800\\udcxx\""), 11, "hexadecimal"},
    /* UTF-8. */
    {T("\"\x80\""), 1, "invalid UTF-8"},
    {T("\"a\xbf\""), 2, "invalid UTF-8"},
    {T("\"\xc0\x80\""), 1, "invalid UTF-8"},
    {T("\"\xc1\xbf\""), 1, "invalid UTF-8"},
    {T("\"\xc3\""), 1, "invalid UTF-8"},
    {T("\"\xc3(\""), 1, "invalid UTF-8"},
    {T("\"\xc3\xa9\xc3\""), 3, "invalid UTF-8"},
    {T("\"\xe0\x9f\xbf\""), 1, "invalid UTF-8"},
    {T("\"\xe2\x82\""), 1, "invalid UTF-8"},
    {T("\"\xed\xa0\x80\""), 1, "invalid UTF-8"},
    {T("\"\xed\xbf\xbf\""), 1, "invalid UTF-8"},
    {T("\"\xf0\x8f\xbf\xbf\""), 1, "invalid UTF-8"},
    {T("\"\xf4\x90\x80\x80\""), 1, "invalid UTF-8"},
    {T("\"\xf5\x80\x80\x80\""), 1, "invalid UTF-8"},
    {T("\"\xff\""), 1, "invalid UTF-8"},
    {T("\"\xfe\xfe\xff\xff\""), 1, "invalid UTF-8"},
    {T("\"\xe2\x82\\n\""), 1, "invalid UTF-8"},
    {T("\"\xf0\x9f\x98\n\""), 1, "invalid UTF-8"},
    {T("\"0123456789abcdef\xc3\xa9\x80\""), 19, "invalid UTF-8"},
    {T("{\"\xff\":1}"), 2, "invalid UTF-8"},
    {T("\"\xe9"), 1, "invalid UTF-8"},
    /* Depth. */
    {T("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]"), 32, "nested too deeply"},
    {T("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{}"), 32, "nested too deeply"},
};

struct dump {
    char text[1024];
    size_t size;
};

static void dump_put(struct dump *dump, const char *text)
{
    size_t size = strlen(text);

    assert_true(dump->size + size < sizeof(dump->text));
    memcpy(dump->text + dump->size, text, size + 1);
    dump->size += size;
}

static void dump_slice(struct dump *dump, struct ron_slice slice)
{
    for (size_t i = 0; i < slice.size; i++) {
        char text[8];
        uint8_t byte = slice.data[i];

        (void)snprintf(text, sizeof(text), byte < 0x20 || byte > 0x7e ? "<%02x>" : "%c", byte);
        dump_put(dump, text);
    }
}

static void dump_integer(struct dump *dump, const struct ron_json_token *token)
{
    char digits[41];
    size_t at = sizeof(digits) - 1;
    unsigned __int128 left = token->number.v;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(left % 10));
        left /= 10;
    } while (left > 0);
    dump_put(dump, token->negative ? "-" : "");
    dump_put(dump, digits + at);
}

static void dump_token(struct dump *dump, const struct ron_json_token *token)
{
    static const char *const marks[] = {"{", "}", "[", "]", "n:", "s:", "i:", "t", "f", "z"};

    dump_put(dump, dump->size > 0 ? " " : "");
    dump_put(dump, marks[token->kind]);
    if (token->kind == RON_JSON_NAME || token->kind == RON_JSON_STRING)
        dump_slice(dump, token->text);
    if (token->kind == RON_JSON_INTEGER)
        dump_integer(dump, token);
}

/* An arena of exactly twice the text, as the header promises to be enough. */
static void arena_for(struct ron_arena *arena, size_t text_size)
{
    assert_ok(ron_arena_init(arena, text_size == 0 ? 1 : 2 * text_size, NULL));
}

/* Read all of text from a copy that ends where its memory ends. */
static enum ron_err read_all(struct ron_slice text, struct dump *dump, struct ron_errinfo *reterr)
{
    struct ron_json_reader reader;
    struct ron_json_token token = {0};
    struct ron_arena arena;
    uint8_t *copy = ron_mem_alloc(text.size + 1);
    uint8_t *start = copy + 1; /* the last byte of text is the last of the memory */
    uint32_t last_end = 0;
    enum ron_err err;

    assert_non_null(copy);
    if (text.size > 0)
        memcpy(start, text.data, text.size);
    arena_for(&arena, text.size);
    ron_json_reader_init(&reader, ron_slice_of(start, text.size), &arena);
    while ((err = ron_json_next(&reader, &token, reterr)) == RON_ERR_OK) {
        assert_true(token.offset >= last_end);
        assert_true(token.end <= text.size);
        last_end = token.end;
        if (token.kind == RON_JSON_END)
            break;
        if (dump != NULL)
            dump_token(dump, &token);
    }
    if (err == RON_ERR_OK) {
        assert_ok(ron_json_next(&reader, &token, NULL));
        assert_int_equal(token.kind, RON_JSON_END);
    } else {
        uint32_t offset = reader.failed_at;

        token.offset = 12345;
        assert_int_equal(ron_json_next(&reader, &token, NULL), err);
        assert_int_equal(token.offset, 12345); /* untouched */
        assert_int_equal(reader.failed_at, offset);
    }
    assert_int_equal(arena.stack_size, 0);
    ron_arena_fini(&arena);
    copy = ron_mem_free(copy);
    return err;
}

static void reader_accepts_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(accepted); i++) {
        struct ron_errinfo info = {0};
        struct dump dump = {0};

        if (read_all(accepted[i].text, &dump, &info) != RON_ERR_OK)
            fail_msg("%s: %s", accepted[i].text.data, info.message);
        assert_string_equal(dump.text, accepted[i].tokens);
        assert_int_equal(info.err, RON_ERR_OK);
    }
}

static void reader_refuses_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(refused); i++) {
        struct ron_errinfo info = {0};
        char place[32];

        if (read_all(refused[i].text, NULL, &info) != RON_ERR_MALFORMED)
            fail_msg("row %zu is not refused: %s", i, refused[i].text.data);
        (void)snprintf(place, sizeof(place), "at byte %u: ", refused[i].offset);
        if (strncmp(info.message, place, strlen(place)) != 0 ||
            strstr(info.message, refused[i].what) == NULL)
            fail_msg("row %zu, %s: got \"%s\", expected \"%s...%s\"", i, refused[i].text.data,
                     info.message, place, refused[i].what);
    }
    assert_true(RON_ARRAY_COUNT(accepted) + RON_ARRAY_COUNT(refused) >= 120);
}

/* A proper prefix of a container or string is never a text; of others it may be. */
static void reader_refuses_every_prefix(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(accepted); i++) {
        struct ron_slice text = accepted[i].text;
        size_t last = text.size;

        if (memchr("[{\"", text.data[0], 3) == NULL)
            continue;
        while (memchr(" \n", text.data[last - 1], 2) != NULL)
            last--;
        for (size_t size = 0; size < last; size++) {
            struct ron_errinfo info = {0};
            enum ron_err err = read_all(ron_slice_of(text.data, size), NULL, &info);

            support_assert_error(err, &info, RON_ERR_MALFORMED, "at byte ");
        }
    }
}

static void reader_stays_inside_the_size_limit(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_json_token token;
    struct ron_json_reader reader;
    struct ron_arena arena;
    uint8_t *text = ron_mem_alloc(RON_JSON_SIZE_MAX + 1);

    (void)state;
    assert_non_null(text);
    memset(text, ' ', RON_JSON_SIZE_MAX + 1);
    text[0] = '1';
    arena_for(&arena, 1);
    ron_json_reader_init(&reader, ron_slice_of(text, RON_JSON_SIZE_MAX), &arena);
    assert_ok(ron_json_next(&reader, &token, NULL));
    assert_ok(ron_json_next(&reader, &token, NULL));
    assert_int_equal(token.kind, RON_JSON_END);
    ron_json_reader_init(&reader, ron_slice_of(text, RON_JSON_SIZE_MAX + 1), &arena);
    support_assert_error(ron_json_next(&reader, &token, &info), &info, RON_ERR_TOO_LARGE,
                         "8388609 bytes, at most 8388608");
    assert_int_equal(ron_json_next(&reader, &token, NULL), RON_ERR_TOO_LARGE);
    ron_arena_fini(&arena);
    text = ron_mem_free(text);
}

static void reader_refuses_when_the_arena_is_full(void **state)
{
    static const char *const texts[] = {"\"\\n0123456789abcdef\"", "{\"a\":1,\"b\":2,\"c\":3}"};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(texts); i++) {
        struct ron_errinfo info = {0};
        struct ron_json_token token = {0};
        struct ron_json_reader reader;
        struct ron_arena arena;
        enum ron_err err;

        assert_ok(ron_arena_init(&arena, 16, NULL));
        ron_json_reader_init(&reader, ron_slice_text(texts[i]), &arena);
        do
            err = ron_json_next(&reader, &token, &info);
        while (err == RON_ERR_OK && token.kind != RON_JSON_END);
        support_assert_error(err, &info, RON_ERR_TOO_LARGE, i == 0 ? "at byte 0" : "at byte 13");
        assert_int_equal(arena.stack_size, 0);
        ron_arena_fini(&arena);
    }
}

static void skip_gives_the_raw_text(void **state)
{
    static const char text[] = "{\"a\": {\"x\" : [1,\"\\u0041\", {}] } ,\"b\": [ ] , \"c\":\"\\n\","
                               "\"d\":-12, \"e\":true}";
    static const char *const raws[] = {"{\"x\" : [1,\"\\u0041\", {}] }", "[ ]", "\"\\n\"", "-12",
                                       "true"};
    struct ron_json_token token;
    struct ron_json_reader reader;
    struct ron_slice raw = {0};
    struct ron_arena arena;

    (void)state;
    arena_for(&arena, sizeof(text));
    ron_json_reader_init(&reader, ron_slice_text(text), &arena);
    assert_ok(ron_json_next(&reader, &token, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(raws); i++) {
        assert_ok(ron_json_next(&reader, &token, NULL));
        assert_int_equal(token.kind, RON_JSON_NAME);
        assert_dies(assert_ok(ron_json_skip(&reader, &token, &raw, NULL)), "RON_JSON_NAME");
        assert_ok(ron_json_next(&reader, &token, NULL));
        size_t used_before = arena.used_size;
        assert_ok(ron_json_skip(&reader, &token, &raw, NULL));
        assert_int_equal(arena.used_size, used_before);
        assert_true(ron_slice_equal(raw, ron_slice_text(raws[i])));
    }
    assert_ok(ron_json_next(&reader, &token, NULL));
    assert_int_equal(token.kind, RON_JSON_OBJECT_END);
    assert_ok(ron_json_next(&reader, &token, NULL));
    assert_int_equal(token.kind, RON_JSON_END);
    ron_arena_fini(&arena);
}

static void skip_checks_what_it_skips(void **state)
{
    static const char text[] = "[{\"a\":[1,{\"b\":2,\"b\":3}]}]";
    struct ron_errinfo info = {0};
    struct ron_json_token token;
    struct ron_json_reader reader;
    struct ron_slice raw = {NULL, 77};
    struct ron_arena arena;

    (void)state;
    arena_for(&arena, sizeof(text));
    ron_json_reader_init(&reader, ron_slice_text(text), &arena);
    assert_ok(ron_json_next(&reader, &token, NULL));
    support_assert_error(ron_json_skip(&reader, &token, &raw, &info), &info, RON_ERR_MALFORMED,
                         "at byte 16: a duplicate member");
    assert_int_equal(raw.size, 77);
    ron_arena_fini(&arena);
}

/* One object of count members "m<i>"; member `again` (if below count) repeats the name of `of`,
 * spelt with an escape. */
static void many_members(struct ron_buf *buf, unsigned count, unsigned again, unsigned of,
                         uint32_t *ret_offset)
{
    ron_buf_reset(buf);
    ron_buf_put_byte(buf, '{');
    for (unsigned i = 0; i < count; i++) {
        ron_buf_put_text(buf, i == 0 ? "" : ",");
        if (i == again) {
            *ret_offset = (uint32_t)buf->size;
            ron_buf_put_format(buf, "\"\\u006d%u\":0", of);
        } else {
            ron_buf_put_format(buf, "\"m%u\":{\"m%u\":[]}", i, i);
        }
    }
    ron_buf_put_byte(buf, '}');
    assert_ok(ron_buf_check(buf, NULL));
}

static void duplicates_are_found_at_every_count(void **state)
{
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 1 << 20);
    for (unsigned count = 2; count < 40; count++) {
        uint32_t offset = 0;

        many_members(&buf, count, count, 0, &offset);
        assert_ok(read_all(ron_buf_slice(&buf), NULL, NULL));
        for (unsigned again = 1; again < count; again++) {
            for (unsigned of = 0; of < again; of++) {
                struct ron_errinfo info = {0};
                char text[64];

                many_members(&buf, count, again, of, &offset);
                (void)snprintf(text, sizeof(text), "at byte %u: a duplicate member", offset);
                support_assert_error(read_all(ron_buf_slice(&buf), NULL, &info), &info,
                                     RON_ERR_MALFORMED, text);
            }
        }
    }
    ron_buf_fini(&buf);
}

/* Of several duplicates the first in the text is named. */
static void the_first_duplicate_is_named(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_buf buf;
    char text[64];
    uint32_t offset = 0;

    (void)state;
    ron_buf_init(&buf, 1 << 20);
    many_members(&buf, 1000, 600, 17, &offset);
    buf.size--;
    ron_buf_put_text(&buf, ",\"m3\":0,\"m4\":0,\"m17\":1,\"m999\":1}");
    (void)snprintf(text, sizeof(text), "at byte %u: a duplicate member", offset);
    support_assert_error(read_all(ron_buf_slice(&buf), NULL, &info), &info, RON_ERR_MALFORMED,
                         text);
    ron_buf_fini(&buf);
}

struct hashed {
    uint64_t hash;
    unsigned number;
};

static int compare_hashed(const void *a, const void *b)
{
    const struct hashed *x = a;
    const struct hashed *y = b;

    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static struct ron_slice numbered_name(unsigned number, char text[static 16])
{
    return ron_slice_of(text, (size_t)snprintf(text, 16, "n%u", number));
}

/* Two names of one hash: among two million, a pair or two are expected. */
static void find_colliding_names(const struct ron_json_reader *reader, unsigned *ret_a,
                                 unsigned *ret_b)
{
    enum { COUNT = 1 << 21, ROUNDS_MAX = 50 };
    struct hashed *all = ron_mem_alloc_array(COUNT, sizeof(*all));

    assert_non_null(all);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            char text[16];

            all[i].number = round * COUNT + i;
            all[i].hash = ron_json_names_hash(reader, numbered_name(all[i].number, text));
        }
        qsort(all, COUNT, sizeof(*all), compare_hashed);
        for (unsigned i = 1; i < COUNT; i++) {
            if (all[i - 1].hash == all[i].hash) {
                *ret_a = all[i - 1].number;
                *ret_b = all[i].number;
                all = ron_mem_free(all);
                return;
            }
        }
    }
    fail_msg("no two names of one hash");
}

/* Names of one hash are told apart by their bytes, in small objects and in large ones. */
static void names_of_one_hash_differ(void **state)
{
    struct ron_json_reader reader;
    struct ron_arena arena;
    struct ron_buf buf;
    unsigned a = 0;
    unsigned b = 0;

    (void)state;
    arena_for(&arena, 4096);
    ron_buf_init(&buf, 4096);
    ron_json_reader_init(&reader, RON_SLICE("{}"), &arena);
    find_colliding_names(&reader, &a, &b);
    for (unsigned others = 0; others < 40; others += 20) {
        for (int again = 0; again < 2; again++) {
            struct ron_json_token token = {0};
            enum ron_err err;

            ron_buf_reset(&buf);
            ron_buf_put_format(&buf, "{\"n%u\":0,\"n%u\":0", a, b);
            for (unsigned i = 0; i < others; i++)
                ron_buf_put_format(&buf, ",\"%u\":0", i);
            ron_buf_put_format(&buf, ",\"%s%u\":0}", again == 0 ? "x" : "\\u006e", a);
            ron_json_reader_init(&reader, ron_buf_slice(&buf), &arena);
            do
                err = ron_json_next(&reader, &token, NULL);
            while (err == RON_ERR_OK && token.kind != RON_JSON_END);
            assert_int_equal(err, again == 0 ? RON_ERR_OK : RON_ERR_MALFORMED);
        }
    }
    ron_buf_fini(&buf);
    ron_arena_fini(&arena);
}

/* The vector scan and the portable one agree at every length and place. */
static void scans_agree(void **state)
{
    uint8_t data[80];
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t size = (uint32_t)round % sizeof(data);

        for (uint32_t i = 0; i < size; i++) {
            seed = seed * 1664525u + 1013904223u;
            data[i] = seed >> 27 == 0 ? (uint8_t)(seed >> 16) : (uint8_t)(0x23 + (seed >> 16) % 32);
        }
        for (uint32_t at = 0; at <= size; at++)
            assert_int_equal(ron_json_plain_end(data, at, size),
                             ron_json_plain_end_portable(data, at, size));
    }
}

#include "nasty_json.h"

static void memory_is_at_most_twice_the_text(void **state)
{
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, NASTY_SIZE + 1);
    for (unsigned i = 0; i < NASTY_JSON_COUNT; i++) {
        struct ron_errinfo info = {0};
        struct ron_json_token token = {0};
        struct ron_json_reader reader;
        struct ron_arena arena;
        enum ron_err err;

        nasty_make(&nasty_json_inputs[i], &buf);
        assert_true(buf.size <= NASTY_SIZE);
        arena_for(&arena, buf.size);
        ron_json_reader_init(&reader, ron_buf_slice(&buf), &arena);
        do
            err = ron_json_next(&reader, &token, &info);
        while (err == RON_ERR_OK && token.kind != RON_JSON_END);
        assert_true(err == RON_ERR_OK || err == RON_ERR_MALFORMED); /* never a full arena */
        assert_int_equal(err == RON_ERR_OK, nasty_json_inputs[i].accepted);
        assert_true(arena.peak_size <= 2 * buf.size);
        assert_int_equal(arena.stack_size, 0);
        print_message("%-24s %7zu bytes, arena %7zu: %s\n", nasty_json_inputs[i].name, buf.size,
                      arena.peak_size, err == RON_ERR_OK ? "accepted" : info.message);
        ron_arena_fini(&arena);
    }
    ron_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_accepts_the_table),
        cmocka_unit_test(reader_refuses_the_table),
        cmocka_unit_test(reader_refuses_every_prefix),
        cmocka_unit_test(reader_stays_inside_the_size_limit),
        cmocka_unit_test(reader_refuses_when_the_arena_is_full),
        cmocka_unit_test(skip_gives_the_raw_text),
        cmocka_unit_test(skip_checks_what_it_skips),
        cmocka_unit_test(duplicates_are_found_at_every_count),
        cmocka_unit_test(the_first_duplicate_is_named),
        cmocka_unit_test(names_of_one_hash_differ),
        cmocka_unit_test(scans_agree),
        cmocka_unit_test(memory_is_at_most_twice_the_text),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
