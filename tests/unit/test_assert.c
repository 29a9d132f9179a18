/*
 * test_assert.c - assertions and probes. Method: death tests in a child; the output is what an
 * operator sees. Probes are compared with the hits made here.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"

static void fail_at_depth(int value)
{
    RON_ASSERT(value == 42);
}

static void assert_says_where_and_what(void **state)
{
    (void)state;
    fail_at_depth(42);
    assert_dies(fail_at_depth(41), "assertion failed: tests/unit/test_assert.c:");
    assert_dies(fail_at_depth(41), "fail_at_depth(): value == 42");
    assert_dies(fail_at_depth(41), "backtrace:");
    assert_dies(fail_at_depth(41), "test_assert(");
    assert_dies(fail_at_depth(41), "in task ?");
    assert_dies(RON_UNREACHABLE(), "unreachable");
}

static void describe_committer(char *text, size_t text_size)
{
    (void)snprintf(text, text_size, "task committer, locks queue metrics");
}

static void assert_names_task_and_locks(void **state)
{
    (void)state;
    ron_assert_set_describe(describe_committer);
    assert_dies(fail_at_depth(0), "in task committer, locks queue metrics");
    ron_assert_set_describe(NULL);
    assert_dies(fail_at_depth(0), "in task ?");
}

static void report_to_stderr(const struct ron_assert_failure *failure)
{
    dprintf(STDERR_FILENO, "handled %s in %s\n", failure->expression, failure->function);
}

static void handler_replaces_the_report_and_abort_follows(void **state)
{
    (void)state;
    ron_assert_set_handler(report_to_stderr);
    assert_dies(fail_at_depth(0), "handled value == 42 in fail_at_depth");
    ron_assert_set_handler(NULL);
}

static void describe_badly(char *text, size_t text_size)
{
    (void)text;
    RON_ASSERT(text_size == 0);
}

static void assertion_inside_the_report_ends_it(void **state)
{
    (void)state;
    ron_assert_set_describe(describe_badly);
    assert_dies(fail_at_depth(0), "value == 42");
    ron_assert_set_describe(NULL);
}

static int must_zero_calls;

static int returns(int value)
{
    must_zero_calls++;
    return value;
}

static void must_zero_calls_once(void **state)
{
    (void)state;
    RON_MUST_ZERO(returns(0));
    assert_int_equal(must_zero_calls, 1);
    assert_dies(RON_MUST_ZERO(returns(3)), "returns(3)");
}

static void slow_assertions_are_for_slow_builds(void **state)
{
    int calls = 0;

    (void)state;
    RON_ASSERT_SLOW(++calls > 0);
#ifdef RON_SLOW_CHECKS
    assert_int_equal(calls, 1);
    assert_dies(RON_ASSERT_SLOW(calls == 7), "calls == 7");
#else
    assert_int_equal(calls, 0);
#endif
}

static void reach(int which)
{
    if (which == 1)
        RON_PROBE("test: first");
    if (which == 2)
        RON_PROBE("test: second");
}

static void probes_count_hits_and_list_the_unreached(void **state)
{
    size_t probes_count = 0;
    struct ron_probe *const *probes;
    unsigned seen = 0;

    (void)state;
    reach(1);
    reach(1);
    probes = ron_probes(&probes_count);
    for (size_t i = 0; i < probes_count; i++) {
        assert_non_null(probes[i]->name);
        if (strcmp(probes[i]->name, "test: first") == 0) {
            assert_int_equal(atomic_load(&probes[i]->hits_count), 2);
            assert_string_equal(probes[i]->file, "tests/unit/test_assert.c");
            seen++;
        }
        if (strcmp(probes[i]->name, "test: second") == 0) {
            assert_int_equal(atomic_load(&probes[i]->hits_count), 0);
            seen++;
        }
    }
#ifdef RON_SLOW_CHECKS
    assert_int_equal(seen, 2);
#else
    assert_int_equal(seen, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assert_says_where_and_what),
        cmocka_unit_test(assert_names_task_and_locks),
        cmocka_unit_test(handler_replaces_the_report_and_abort_follows),
        cmocka_unit_test(assertion_inside_the_report_ends_it),
        cmocka_unit_test(must_zero_calls_once),
        cmocka_unit_test(slow_assertions_are_for_slow_builds),
        cmocka_unit_test(probes_count_hits_and_list_the_unreached),
    };
    return cmocka_run_group_tests_name("assert", tests, NULL, NULL);
}
