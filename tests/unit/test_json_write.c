/*
 * test_json_write.c - the JSON writer.
 * Method: golden bytes for every kind of value and escape, every misuse dies, and whatever data can
 * do wrong is remembered to the end.
 */
#include "support.h"

#include "base/json_write.h"

struct fixture {
    struct ron_buf buf;
    struct ron_json_writer writer;
};

static struct ron_json_writer *begin(struct fixture *fixture, enum ron_json_form form)
{
    ron_buf_init(&fixture->buf, 1 << 16);
    ron_json_writer_init(&fixture->writer, &fixture->buf, form);
    return &fixture->writer;
}

static void expect(struct fixture *fixture, const char *text)
{
    struct ron_slice output = ron_buf_slice(&fixture->buf);

    assert_ok(ron_json_writer_end(&fixture->writer, NULL));
    if (!ron_slice_equal(output, ron_slice_text(text)))
        fail_msg("got %.*s, expected %s", RON_SLICE_FMT(output), text);
    ron_buf_fini(&fixture->buf);
}

static void members_keep_the_callers_order(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);

    (void)state;
    ron_json_put_object_begin(w);
    ron_json_put_name(w, "z");
    ron_json_put_u64(w, UINT64_MAX);
    ron_json_put_name(w, "a");
    ron_json_put_array_begin(w);
    ron_json_put_bool(w, true);
    ron_json_put_bool(w, false);
    ron_json_put_null(w);
    ron_json_put_array_begin(w);
    ron_json_put_array_end(w);
    ron_json_put_object_begin(w);
    ron_json_put_object_end(w);
    ron_json_put_array_end(w);
    ron_json_put_name_slice(w, RON_SLICE("n\0n"));
    ron_json_put_raw(w, RON_SLICE("[1]"));
    ron_json_put_name(w, "");
    ron_json_put_text(w, "");
    ron_json_put_object_end(w);
    expect(&f, "{\"z\":18446744073709551615,\"a\":[true,false,null,[],{}],"
               "\"n\\u0000n\":[1],\"\":\"\"}");
}

static void integers_are_exact(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);

    (void)state;
    ron_json_put_array_begin(w);
    ron_json_put_u64(w, 0);
    ron_json_put_i64(w, 0);
    ron_json_put_i64(w, -1);
    ron_json_put_i64(w, INT64_MIN);
    ron_json_put_i64(w, INT64_MAX);
    ron_json_put_u128(w, ron_u128_of(UINT64_MAX));
    ron_json_put_u128(w, (struct ron_u128){(unsigned __int128)1 << 64});
    ron_json_put_u128(w, RON_U128_MAX);
    ron_json_put_integer(w, true, RON_U128_MAX);
    ron_json_put_amount(w, ron_u128_of(0));
    ron_json_put_amount(w, RON_U128_MAX);
    ron_json_put_array_end(w);
    expect(&f, "[0,0,-1,-9223372036854775808,9223372036854775807,18446744073709551615,"
               "18446744073709551616,340282366920938463463374607431768211455,"
               "-340282366920938463463374607431768211455,\"0\","
               "\"340282366920938463463374607431768211455\"]");
}

static void strings_are_escaped_minimally(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);
    uint8_t controls[0x20];

    (void)state;
    for (size_t i = 0; i < sizeof(controls); i++)
        controls[i] = (uint8_t)i;
    ron_json_put_array_begin(w);
    ron_json_put_string(w, ron_slice_of(controls, sizeof(controls)));
    ron_json_put_text(w, "a\"b\\c/d'<\x7f>");
    ron_json_put_text(w, "\xc2\x80\xe2\x80\xa8\xef\xbf\xbf\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
    ron_json_put_string(w, (struct ron_slice){0});
    ron_json_put_array_end(w);
    expect(&f, "[\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r"
               "\\u000e\\u000f\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018"
               "\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f\",\"a\\\"b\\\\c/d'<\x7f>\","
               "\"\xc2\x80\xe2\x80\xa8\xef\xbf\xbf\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\",\"\"]");
}

static void a_scalar_is_a_text(void **state)
{
    struct fixture f;

    (void)state;
    ron_json_put_null(begin(&f, RON_JSON_CANONICAL));
    expect(&f, "null");
}

static void output_is_appended(void **state)
{
    struct fixture f;

    (void)state;
    ron_buf_init(&f.buf, 64);
    for (uint64_t i = 1; i <= 2; i++) {
        ron_json_writer_init(&f.writer, &f.buf, RON_JSON_FIXED);
        ron_json_put_u64(&f.writer, i);
        assert_ok(ron_json_writer_end(&f.writer, NULL));
        ron_buf_put_byte(&f.buf, '\n');
    }
    assert_true(ron_slice_equal(ron_buf_slice(&f.buf), RON_SLICE("1\n2\n")));
    ron_buf_fini(&f.buf);
}

static void invalid_utf8_fails_the_writer(void **state)
{
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82", "\xf0\x9f\x98",
    };
    struct ron_errinfo info = {0};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        char text[16] = "ab";
        struct fixture f;
        struct ron_json_writer *w;

        for (size_t k = 0; k <= strlen(bad[i]); k++)
            text[2 + k] = bad[i][k];
        w = begin(&f, RON_JSON_FIXED);
        ron_json_put_array_begin(w);
        ron_json_put_text(w, text);
        ron_json_put_text(w, "\xff"); /* the first failure counts */
        ron_json_put_array_end(w);
        support_assert_error(ron_json_writer_end(w, &info), &info, RON_ERR_MALFORMED,
                             "invalid UTF-8 at byte 2 of a value, output byte 1");
        ron_buf_fini(&f.buf);

        w = begin(&f, RON_JSON_FIXED);
        ron_json_put_object_begin(w);
        ron_json_put_name(w, text);
        ron_json_put_null(w);
        ron_json_put_object_end(w);
        assert_int_equal(ron_json_writer_end(w, NULL), RON_ERR_MALFORMED);
        ron_buf_fini(&f.buf);
    }
}

static void full_buffer_is_remembered(void **state)
{
    struct ron_errinfo info = {0};
    struct fixture f;

    (void)state;
    ron_buf_init(&f.buf, 8);
    ron_json_writer_init(&f.writer, &f.buf, RON_JSON_CANONICAL);
    ron_json_put_object_begin(&f.writer);
    ron_json_put_name(&f.writer, "b");
    ron_json_put_text(&f.writer, "12345");
    ron_json_put_name(&f.writer, "c");
    ron_json_put_null(&f.writer);
    ron_json_put_object_end(&f.writer);
    support_assert_error(ron_json_writer_end(&f.writer, &info), &info, RON_ERR_TOO_LARGE,
                         "at most 8");
    ron_buf_fini(&f.buf);
}

static enum ron_err write_much(void *context, struct ron_errinfo *reterr)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);
    enum ron_err err;

    (void)context;
    ron_json_put_array_begin(w);
    for (uint64_t i = 0; i < 200; i++)
        ron_json_put_u64(w, i);
    ron_json_put_array_end(w);
    err = ron_json_writer_end(w, reterr);
    ron_buf_fini(&f.buf);
    return err;
}

static void writer_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(write_much, NULL, 20) >= 3);
}

static void nesting_reaches_its_maximum(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);

    (void)state;
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++)
        ron_json_put_array_begin(w);
    assert_dies(ron_json_put_array_begin(w), "depth < RON_JSON_DEPTH_MAX");
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++)
        ron_json_put_array_end(w);
    expect(&f, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}

static void misuse_dies(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_FIXED);

    (void)state;
    assert_dies(assert_ok(ron_json_writer_end(w, NULL)), "complete");
    assert_dies(ron_json_put_array_end(w), "depth > 0");
    assert_dies(ron_json_put_name(w, "a"), "depth > 0");
    assert_dies(ron_json_put_raw(w, RON_SLICE("")), "json.size > 0");
    assert_dies(ron_json_put_integer(w, true, ron_u128_of(0)), "!negative");
    ron_json_put_array_begin(w);
    assert_dies(assert_ok(ron_json_writer_end(w, NULL)), "depth == 0");
    assert_dies(ron_json_put_name(w, "a"), "level->object");
    assert_dies(ron_json_put_object_end(w), "level->object == object");
    ron_json_put_object_begin(w);
    assert_dies(ron_json_put_null(w), "level->named");
    assert_dies(ron_json_put_array_begin(w), "level->named");
    assert_dies(ron_json_put_array_end(w), "level->object == object");
    ron_json_put_name(w, "a");
    assert_dies(ron_json_put_name(w, "b"), "!level->named");
    assert_dies(ron_json_put_object_end(w), "!level->named");
    ron_json_put_text(w, "\xff"); /* also after a failure */
    assert_dies(ron_json_put_null(w), "level->named");
    ron_json_put_object_end(w);
    ron_json_put_array_end(w);
    assert_dies(ron_json_put_null(w), "!writer->complete");
    ron_buf_fini(&f.buf);
}

/* Ascending UTF-16: escapes count as what they stand for, and U+1F600 comes before U+FB33. */
static const char *const ascending[] = {
    "",
    "\x01",
    "\b",
    "\t",
    "\r",
    "\x1f",
    " ",
    "\"",
    "1",
    "10",
    "2",
    "[",
    "\\",
    "]",
    "a",
    "a\x1f",
    "aa",
    "\xc2\x80",
    "\xc3\xb6",
    "\xe2\x82\xac",
    "\xed\x9f\xbf",
    "\xf0\x90\x80\x80",
    "\xf0\x9f\x98\x80",
    "\xf4\x8f\xbf\xbf",
    "\xee\x80\x80",
    "\xef\xac\xb3",
    "\xef\xbf\xbd",
};

static void name_order_is_that_of_utf16(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(ascending); i++) {
        for (size_t k = 0; k < RON_ARRAY_COUNT(ascending); k++) {
            int order = ron_json_name_compare(ron_slice_text(ascending[i]),
                                              ron_slice_text(ascending[k]));

            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    assert_true(ron_json_name_compare(RON_SLICE("0123456789abcde\xf0\x90\x80\x80"),
                                      RON_SLICE("0123456789abcde\xee\x80\x80")) < 0);
    assert_true(
        ron_json_name_compare(RON_SLICE("0123456789abcdef"), RON_SLICE("0123456789abcdef\0")) < 0);
}

static void canonical_names_ascend(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_CANONICAL);

    (void)state;
    ron_json_put_object_begin(w);
    for (size_t i = 0; i < RON_ARRAY_COUNT(ascending); i++) {
        ron_json_put_name(w, ascending[i]);
        ron_json_put_object_begin(w); /* each object has an order of its own */
        ron_json_put_name(w, "0");
        ron_json_put_null(w);
        ron_json_put_object_end(w);
#ifdef RON_SLOW_CHECKS
        for (size_t k = 0; k <= i; k++)
            assert_dies(ron_json_put_name(w, ascending[k]), "names_ascend");
#endif
    }
    ron_json_put_object_end(w);
    assert_ok(ron_json_writer_end(w, NULL));
    ron_buf_fini(&f.buf);
}

static void canonical_integers_are_doubles(void **state)
{
    struct fixture f;
    struct ron_json_writer *w = begin(&f, RON_JSON_CANONICAL);

    (void)state;
    ron_json_put_array_begin(w);
    ron_json_put_u64(w, 9007199254740991);
    ron_json_put_i64(w, -9007199254740991);
    ron_json_put_amount(w, RON_U128_MAX);
    struct ron_errinfo info = {0};

    ron_json_put_u64(w, 9007199254740992);
    ron_json_put_array_end(w);
    support_assert_error(ron_json_writer_end(w, &info), &info, RON_ERR_MALFORMED,
                         "an integer beyond 2^53 - 1 (use a string) at byte 0 of a value");
    ron_buf_fini(&f.buf);
}

/* Texts of every length with one special byte at every place, where the buffer has room already and
 * where it has not: both ways write the same. */
static void plain_text_is_told_from_what_needs_an_escape(void **state)
{
    static const char *const specials[] = {"\"", "\\", "\x01", "\x1f", "\n", "\x7f",
                                           " ",  "!",  "#",    "[",    "]",  "\xc3\xa9"};

    (void)state;
    for (size_t size = 0; size <= 20; size++) {
        for (size_t at = 0; at <= size; at++) {
            for (size_t i = 0; i < RON_ARRAY_COUNT(specials); i++) {
                struct ron_buf text, roomy, grown;
                struct ron_json_writer writer;

                ron_buf_init(&text, 64);
                ron_buf_put(&text, "abcdefghijklmnopqrst", at);
                ron_buf_put_text(&text, specials[i]);
                ron_buf_put(&text, "uvwxyzABCDEFGHIJKLMN", size - at);
                ron_buf_init(&roomy, 4096);
                assert_ok(ron_buf_reserve(&roomy, 2048, NULL));
                ron_json_writer_init(&writer, &roomy, RON_JSON_FIXED);
                ron_json_put_string(&writer, ron_buf_slice(&text));
                assert_ok(ron_json_writer_end(&writer, NULL));
                ron_buf_init(&grown, 4096); /* has no room: goes the long way */
                ron_json_writer_init(&writer, &grown, RON_JSON_FIXED);
                ron_json_put_string(&writer, ron_buf_slice(&text));
                assert_ok(ron_json_writer_end(&writer, NULL));
                assert_int_equal(roomy.size, grown.size);
                assert_memory_equal(roomy.data, grown.data, grown.size);
                assert_int_equal(roomy.size > text.size + 2, i < 5);
                ron_buf_fini(&text);
                ron_buf_fini(&roomy);
                ron_buf_fini(&grown);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_keep_the_callers_order),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(strings_are_escaped_minimally),
        cmocka_unit_test(a_scalar_is_a_text),
        cmocka_unit_test(output_is_appended),
        cmocka_unit_test(invalid_utf8_fails_the_writer),
        cmocka_unit_test(full_buffer_is_remembered),
        cmocka_unit_test(writer_survives_each_failed_allocation),
        cmocka_unit_test(nesting_reaches_its_maximum),
        cmocka_unit_test(misuse_dies),
        cmocka_unit_test(name_order_is_that_of_utf16),
        cmocka_unit_test(canonical_names_ascend),
        cmocka_unit_test(plain_text_is_told_from_what_needs_an_escape),
        cmocka_unit_test(canonical_integers_are_doubles),
    };
    return cmocka_run_group_tests_name("json_write", tests, NULL, NULL);
}
