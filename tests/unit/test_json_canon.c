/*
 * test_json_canon.c - canonical JSON (RFC 8785).
 * Method: published vectors, every bound and one beyond, shuffled members against their known
 * order, and the documents that are worst for memory. tests/diff/json compares with
 * Python.
 */
#include "support.h"

#include <stdio.h>

#include "base/json_canon.h"
#include "base/limits.h"
#include "nasty_canon.h"

enum { MIB = 1 << 20 };

static enum ron_err canon(struct ron_slice text, struct ron_buf *buf, struct ron_errinfo *reterr)
{
    struct ron_arena arena;
    enum ron_err err;

    /* Exactly what the header promises to be enough. */
    assert_ok(ron_arena_init(&arena, 10 * text.size + 64, NULL));
    err = ron_json_canon(text, &arena, buf, reterr);
    if (err == RON_ERR_OK)
        assert_int_equal(arena.used_size, 0);
    ron_arena_fini(&arena);
    return err;
}

static void expect(struct ron_slice text, struct ron_slice expected)
{
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    ron_buf_init(&buf, text.size);
    if (canon(text, &buf, &info) != RON_ERR_OK)
        fail_msg("%.*s: %s", RON_SLICE_FMT(text), info.message);
    if (!ron_slice_equal(ron_buf_slice(&buf), expected))
        fail_msg("got %.*s, expected %.*s", RON_SLICE_FMT(ron_buf_slice(&buf)),
                 RON_SLICE_FMT(expected));
    ron_buf_fini(&buf);
}

static void expect_error(struct ron_slice text, enum ron_err expected, const char *message)
{
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    ron_buf_init(&buf, text.size + 1);
    support_assert_error(canon(text, &buf, &info), &info, expected, message);
    ron_buf_fini(&buf);
}

static void read_vector(const char *name, const char *suffix, struct ron_buf *buf)
{
    char path[512];
    char piece[256];
    size_t size;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/jcs/%s.%s.json", RON_VECTORS, name, suffix);
    file = fopen(path, "rb");
    if (file == NULL)
        fail_msg("cannot open %s", path);
    ron_buf_init(buf, 4096);
    while ((size = fread(piece, 1, sizeof(piece), file)) > 0)
        ron_buf_put(buf, piece, size);
    (void)fclose(file);
    assert_ok(ron_buf_check(buf, NULL));
    assert_true(buf->size > 0);
}

static void published_vectors(void **state)
{
    static const char *const names[] = {
        "arrays",     "french",  "rfc8785-sorting", "rfc8785-values",
        "structures", "unicode", "values",          "weird",
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(names); i++) {
        struct ron_buf in, out;

        read_vector(names[i], "in", &in);
        read_vector(names[i], "out", &out);
        expect(ron_buf_slice(&in), ron_buf_slice(&out));
        expect(ron_buf_slice(&out), ron_buf_slice(&out)); /* a fixed point */
        ron_buf_fini(&in);
        ron_buf_fini(&out);
    }
}

static void scalars_are_texts(void **state)
{
    (void)state;
    expect(RON_SLICE(" null\n"), RON_SLICE("null"));
    expect(RON_SLICE("true"), RON_SLICE("true"));
    expect(RON_SLICE("[false]"), RON_SLICE("[false]"));
    expect(RON_SLICE("\"\\u0000\\u001F\\u007f\\/\""), RON_SLICE("\"\\u0000\\u001f\x7f/\""));
    expect(RON_SLICE("\t-17 "), RON_SLICE("-17"));
}

static void integers_stay_within_doubles(void **state)
{
    (void)state;
    expect(RON_SLICE("9007199254740991"), RON_SLICE("9007199254740991"));
    expect(RON_SLICE("-9007199254740991"), RON_SLICE("-9007199254740991"));
    expect_error(RON_SLICE("[1, 9007199254740992]"), RON_ERR_MALFORMED,
                 "at byte 4: an integer beyond 2^53 - 1 has no canonical form, use a string");
    expect_error(RON_SLICE("-9007199254740992"), RON_ERR_MALFORMED, "use a string");
    expect_error(RON_SLICE("18446744073709551617"), RON_ERR_MALFORMED, "use a string");
}

static void the_readers_refusals_pass(void **state)
{
    (void)state;
    expect_error(RON_SLICE("{\"b\":1,\"a\":2,\"\\u0062\":3}"), RON_ERR_MALFORMED,
                 "at byte 23: the object that ends here has a duplicate member \"b\"");
    expect_error(RON_SLICE("[{\"a\":1,\"a\":1}]"), RON_ERR_MALFORMED, "at byte 13");
    expect_error(RON_SLICE("[1.0]"), RON_ERR_MALFORMED, "");
    expect_error(RON_SLICE("{\"b\":1,\"a\":2"), RON_ERR_MALFORMED, "");
    expect_error(RON_SLICE("{} {}"), RON_ERR_MALFORMED, "");
    expect_error(RON_SLICE(""), RON_ERR_MALFORMED, "");
}

static void members_are_sorted_at_every_level(void **state)
{
    (void)state;
    expect(
        RON_SLICE("{\"b\":{\"d\":[{\"f\":1,\"e\":{}}],\"c\":\"\\t\"},\"a\":{\"h\":2,\"g\":{}}}"),
        RON_SLICE("{\"a\":{\"g\":{},\"h\":2},\"b\":{\"c\":\"\\t\",\"d\":[{\"e\":{},\"f\":1}]}}"));
    /* A prefix first; NUL is a character; bytes decide like UTF-16 does. */
    expect(RON_SLICE("{\"ab\":1,\"a\\u0000\":2,\"a\":3,\"\":4}"),
           RON_SLICE("{\"\":4,\"a\":3,\"a\\u0000\":2,\"ab\":1}"));
    expect(RON_SLICE("{\"\\ue000\":1,\"\\ud800\\udc00\":2,\"\\ud7ff\":3,\"\\uffff\":4,"
                     "\"\\udbff\\udfff\":5}"),
           RON_SLICE("{\"\xed\x9f\xbf\":3,\"\xf0\x90\x80\x80\":2,\"\xf4\x8f\xbf\xbf\":5,"
                     "\"\xee\x80\x80\":1,\"\xef\xbf\xbf\":4}"));
    expect(RON_SLICE("{\"0123456789\\ue000\":1,\"0123456789\\ud800\\udc00\":2}"),
           RON_SLICE("{\"0123456789\xf0\x90\x80\x80\":2,\"0123456789\xee\x80\x80\":1}"));
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* {"PREFIX0000042":42,...} with these numbers in this order. */
static void put_members(struct ron_buf *buf, const char *prefix, const uint32_t *numbers,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        ron_buf_put_format(buf, "%c\"%s%07u\":%u", i == 0 ? '{' : ',', prefix, (unsigned)numbers[i],
                           (unsigned)numbers[i]);
    ron_buf_put_byte(buf, '}');
    assert_ok(ron_buf_check(buf, NULL));
}

static void shuffled_members_find_their_order(void **state)
{
    static const size_t counts[] = {1, 2, 3, 7, 8, 9, 100, 1023, 1024, 1025};
    static uint32_t numbers[1025];
    uint64_t random = 8785;

    (void)state;
    for (size_t c = 0; c < RON_ARRAY_COUNT(counts); c++) {
        for (int round = 0; round < 6; round++) {
            const char *prefix = round % 2 == 0 ? "" : "a prefix longer than any key";
            size_t count = counts[c];
            struct ron_buf sorted, shuffled;

            ron_buf_init(&sorted, MIB);
            ron_buf_init(&shuffled, MIB);
            for (size_t i = 0; i < count; i++)
                numbers[i] = (uint32_t)(i * 3);
            put_members(&sorted, prefix, numbers, count);
            for (size_t i = count; i > 1; i--) {
                size_t other = round < 2 ? i / 2 : (size_t)next_random(&random) % i;
                uint32_t swapped = numbers[i - 1];

                numbers[i - 1] = numbers[other];
                numbers[other] = swapped;
            }
            put_members(&shuffled, prefix, numbers, count);
            expect(ron_buf_slice(&shuffled), ron_buf_slice(&sorted));
            ron_buf_fini(&sorted);
            ron_buf_fini(&shuffled);
        }
    }
}

static void output_is_appended(void **state)
{
    struct ron_buf buf;

    (void)state;
    ron_buf_init(&buf, 64);
    ron_buf_put_text(&buf, "x=");
    assert_ok(canon(RON_SLICE("{\"b\":[],\"a\":1}"), &buf, NULL));
    assert_ok(canon(RON_SLICE("{\"d\":[],\"c\":1}"), &buf, NULL));
    assert_true(
        ron_slice_equal(ron_buf_slice(&buf), RON_SLICE("x={\"a\":1,\"b\":[]}{\"c\":1,\"d\":[]}")));
    ron_buf_fini(&buf);
}

static void every_smaller_arena_or_buffer_is_refused(void **state)
{
    struct ron_slice text = RON_SLICE(
        "{\"b\":{\"d\":1,\"\\n\":2},\"a\":[\"\\t\",{\"f\":1,\"e\":2}]}");
    struct ron_slice expected = RON_SLICE(
        "{\"a\":[\"\\t\",{\"e\":2,\"f\":1}],\"b\":{\"\\n\":2,\"d\":1}}");
    size_t first_ok = 0;
    struct ron_buf buf;

    (void)state;
    for (size_t size = 1; size < 600; size++) {
        struct ron_errinfo info = {0};
        struct ron_arena arena;
        enum ron_err err;

        ron_buf_init(&buf, expected.size);
        assert_ok(ron_arena_init(&arena, size, NULL));
        err = ron_json_canon(text, &arena, &buf, &info);
        if (err == RON_ERR_OK && first_ok == 0)
            first_ok = size;
        if (first_ok == 0)
            support_assert_error(err, &info, RON_ERR_TOO_LARGE, "no room");
        else
            assert_ok(err);
        ron_arena_fini(&arena);
        ron_buf_fini(&buf);
    }
    assert_true(first_ok > 100);
    assert_true(first_ok <= 10 * text.size + 64);
    for (size_t size = 1; size <= expected.size; size++) {
        struct ron_errinfo info = {0};
        enum ron_err err;

        ron_buf_init(&buf, size);
        err = canon(text, &buf, &info);
        if (size < expected.size)
            support_assert_error(err, &info, RON_ERR_TOO_LARGE, "at most");
        else
            assert_ok(err);
        ron_buf_fini(&buf);
    }
}

static void nodes_are_used_again(void **state)
{
    struct ron_arena arena;
    struct ron_buf text, out;

    (void)state;
    ron_buf_init(&text, MIB);
    ron_buf_init(&out, MIB);
    for (int i = 0; i < 10000; i++) {
        ron_buf_put_byte(&text, i == 0 ? '[' : ',');
        ron_buf_put_text(&text, "{\"c\":0,\"b\":{\"e\":1,\"d\":2},\"a\":3}");
    }
    ron_buf_put_byte(&text, ']');
    assert_ok(ron_buf_check(&text, NULL));
    assert_ok(ron_arena_init(&arena, 256, NULL)); /* five nodes and the longest object */
    assert_ok(ron_json_canon(ron_buf_slice(&text), &arena, &out, NULL));
    assert_int_equal(out.size, text.size);
    ron_arena_fini(&arena);
    ron_buf_fini(&text);
    ron_buf_fini(&out);
}

static enum ron_err canon_attempt(void *context, struct ron_errinfo *reterr)
{
    struct ron_slice *text = context;
    struct ron_arena arena;
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, text->size);
    err = ron_arena_init(&arena, 10 * text->size + 64, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = ron_json_canon(*text, &arena, &buf, reterr);
    ron_arena_fini(&arena);
    ron_buf_fini(&buf);
    return err;
}

static void canon_survives_each_failed_allocation(void **state)
{
    uint32_t numbers[40];
    struct ron_slice text;
    struct ron_buf buf;

    (void)state;
    for (uint32_t i = 0; i < RON_ARRAY_COUNT(numbers); i++)
        numbers[i] = 100 - i;
    ron_buf_init(&buf, 4096);
    put_members(&buf, "", numbers, RON_ARRAY_COUNT(numbers));
    text = ron_buf_slice(&buf);
    assert_true(support_fail_each_allocation(canon_attempt, &text, 20) >= 3);
    ron_buf_fini(&buf);
}

static void worst_documents_stay_in_bounds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NASTY_CANON_COUNT; i++) {
        const struct nasty_input *input = &nasty_canon_inputs[i];
        struct ron_buf text, once, twice;

        ron_buf_init(&text, NASTY_SIZE + 1);
        ron_buf_init(&once, NASTY_SIZE);
        ron_buf_init(&twice, NASTY_SIZE);
        nasty_make(input, &text);
        assert_ok(ron_buf_check(&text, NULL));
        assert_true(text.size <= NASTY_SIZE);
        if (input->accepted) {
            assert_ok(canon(ron_buf_slice(&text), &once, NULL));
            assert_int_equal(once.size, text.size); /* no white space in them */
            assert_false(ron_slice_equal(ron_buf_slice(&once), ron_buf_slice(&text)));
            assert_ok(canon(ron_buf_slice(&once), &twice, NULL));
            assert_true(ron_slice_equal(ron_buf_slice(&once), ron_buf_slice(&twice)));
        } else {
            assert_int_equal(canon(ron_buf_slice(&text), &once, NULL), RON_ERR_MALFORMED);
        }
        ron_buf_fini(&text);
        ron_buf_fini(&once);
        ron_buf_fini(&twice);
    }
}

static void late_duplicate_is_refused(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_buf text, out;

    (void)state;
    ron_buf_init(&text, MIB);
    ron_buf_init(&out, MIB);
    nasty_canon_put_late_duplicate(&text);
    assert_ok(ron_buf_check(&text, NULL));
    support_assert_error(canon(ron_buf_slice(&text), &out, &info), &info, RON_ERR_MALFORMED,
                         "at byte 1048557: the object");
    ron_buf_fini(&text);
    ron_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(scalars_are_texts),
        cmocka_unit_test(integers_stay_within_doubles),
        cmocka_unit_test(the_readers_refusals_pass),
        cmocka_unit_test(members_are_sorted_at_every_level),
        cmocka_unit_test(shuffled_members_find_their_order),
        cmocka_unit_test(output_is_appended),
        cmocka_unit_test(every_smaller_arena_or_buffer_is_refused),
        cmocka_unit_test(nodes_are_used_again),
        cmocka_unit_test(canon_survives_each_failed_allocation),
        cmocka_unit_test(worst_documents_stay_in_bounds),
        cmocka_unit_test(late_duplicate_is_refused),
    };
    return cmocka_run_group_tests_name("json_canon", tests, NULL, NULL);
}
