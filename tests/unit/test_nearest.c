/*
 * test_nearest.c - suggestions for unknown names, and untrusted text in messages.
 * Method: each kind of edit at its limit and one beyond; all cuts of an escaped text.
 */
#include "support.h"

#include "base/nearest.h"
#include "base/printable.h"

static const char *const names[] = {"amount", "asset", "from", "to", "memo", "nonce", "meta", "i"};

static const char *nearest(const char *name)
{
    return ron_nearest_name(ron_slice_text(name), names, sizeof(names[0]), RON_ARRAY_COUNT(names));
}

static void assert_nearest(const char *name, const char *expected)
{
    const char *got = nearest(name);

    if (expected == NULL ? got != NULL : got == NULL || strcmp(got, expected) != 0)
        fail_msg("%s: got %s, expected %s", name, got == NULL ? "nothing" : got,
                 expected == NULL ? "nothing" : expected);
}

static void nearest_takes_two_steps(void **state)
{
    (void)state;
    assert_nearest("amount", "amount");
    assert_nearest("amoun", "amount");    /* delete */
    assert_nearest("mount", "amount");    /* delete the first */
    assert_nearest("amountt", "amount");  /* insert */
    assert_nearest("Amount", "amount");   /* replace */
    assert_nearest("amuont", "amount");   /* swap */
    assert_nearest("maoutn", "amount");   /* swap twice */
    assert_nearest("amoxyt", "amount");   /* replace twice */
    assert_nearest("amountss", "amount"); /* insert twice */
    assert_nearest("amou", "amount");
    assert_nearest("amo", NULL);
    assert_nearest("amounsst", "amount");
    assert_nearest("amountsss", NULL);
    assert_nearest("xmxuxt", NULL);
    assert_nearest("ofmr", NULL);
}

static void nearest_prefers_fewer_steps_then_order(void **state)
{
    (void)state;
    assert_nearest("mema", "memo"); /* meta is one step away too, but comes later */
    assert_nearest("mta", "meta");
    assert_nearest("form", "from");
    assert_nearest("tomato", NULL);
    assert_nearest("tx", NULL); /* half of "to" */
    assert_nearest("mexx", NULL);
    assert_nearest("memoxx", NULL);
    assert_nearest("noce", "nonce");
    assert_nearest("x", NULL);
    assert_nearest("", NULL);
}

static void nearest_leaves_long_names_alone(void **state)
{
    static const char long_name[] =
        "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg";
    static const char longer_name[] =
        "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg";
    const char *const table[] = {longer_name, long_name};

    (void)state;
    assert_int_equal(sizeof(long_name) - 1, RON_NEAREST_SIZE_MAX);
    assert_ptr_equal(ron_nearest_name(ron_slice_text(long_name), table, sizeof(table[0]), 2),
                     long_name);
    assert_null(ron_nearest_name(ron_slice_text(longer_name), table, sizeof(table[0]), 2));
    assert_null(ron_nearest_name(ron_slice_text(long_name), table, sizeof(table[0]), 1));
}

static void nearest_walks_table_rows(void **state)
{
    static const struct {
        int other;
        const char *name;
        int another;
    } rows[] = {{1, "alpha", 2}, {3, "beta", 4}};

    (void)state;
    assert_string_equal(ron_nearest_name(RON_SLICE("betta"), &rows[0].name, sizeof(rows[0]), 2),
                        "beta");
    assert_null(ron_nearest_name(RON_SLICE("betta"), &rows[0].name, sizeof(rows[0]), 1));
}

static void printable_escapes_and_cuts(void **state)
{
    static const char whole[] = "a\\x00\\x22\\x5c\\x7f\\xffz";
    struct ron_slice text = RON_SLICE("a\0\"\\\x7f\xffz");
    char out[64];

    (void)state;
    assert_string_equal(ron_printable(text, out, sizeof(out)), whole);
    assert_string_equal(ron_printable(text, out, sizeof(whole)), whole);
    assert_string_equal(ron_printable(text, out, sizeof(whole) - 1), "a\\x00\\x22\\x5c\\x7f...");
    assert_string_equal(ron_printable(text, out, 8), "a...");
    assert_string_equal(ron_printable(text, out, 9), "a\\x00...");
    assert_string_equal(ron_printable(RON_SLICE("0123456"), out, 8), "0123456");
    assert_string_equal(ron_printable(RON_SLICE("01234567"), out, 8), "0123...");
    assert_string_equal(ron_printable((struct ron_slice){0}, out, 8), "");
    assert_dies((void)ron_printable(text, out, 7), "out_size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_takes_two_steps),
        cmocka_unit_test(nearest_prefers_fewer_steps_then_order),
        cmocka_unit_test(nearest_leaves_long_names_alone),
        cmocka_unit_test(nearest_walks_table_rows),
        cmocka_unit_test(printable_escapes_and_cuts),
    };
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
