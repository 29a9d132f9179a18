/*
 * test_snapshot_pace.c - when a snapshot is due. Method: moments just before and at each bound.
 */
#include "support.h"

#include "ledger/snapshot_pace.h"

#define S UINT64_C(1000000000)

/* Due at this moment, and not before: what is said to be waited for is exact. */
static void due_at(const struct snapshot_pace *pace, uint64_t fresh_count, uint64_t at_ns)
{
    for (uint64_t now_ns = pace->end_ns; now_ns < at_ns; now_ns += S / 4)
        assert_int_equal(snapshot_wait_ns(pace, fresh_count, now_ns), at_ns - now_ns);
    assert_int_equal(snapshot_wait_ns(pace, fresh_count, at_ns - 1), 1);
    assert_int_equal(snapshot_wait_ns(pace, fresh_count, at_ns), 0);
    assert_int_equal(snapshot_wait_ns(pace, fresh_count, at_ns + 100 * S), 0);
}

static void many_entries_wait_for_a_rest(void **state)
{
    struct snapshot_pace pace = {
        .entries = 1000, .period_ns = 60 * S, .begin_ns = 100 * S, .end_ns = 103 * S};

    (void)state;
    due_at(&pace, 1000, 115 * S);
    due_at(&pace, 999, 163 * S);
    due_at(&pace, 1, 163 * S);
    pace.end_ns = 150 * S; /* so long that a rest of four times that would be no snapshot at all */
    due_at(&pace, 1000, 210 * S);
    pace.period_ns = 0;
    due_at(&pace, UINT64_MAX, 210 * S);
    pace.entries = 0;
    assert_int_equal(snapshot_wait_ns(&pace, UINT64_MAX, 1000 * S), SNAPSHOT_NEVER);
}

static void nothing_new_is_no_reason(void **state)
{
    const struct snapshot_pace pace = {
        .entries = 1, .period_ns = 60 * S, .begin_ns = 100 * S, .end_ns = 101 * S};

    (void)state;
    assert_int_equal(snapshot_wait_ns(&pace, 0, 101 * S), 60 * S);
    assert_int_equal(snapshot_wait_ns(&pace, 0, 161 * S), 60 * S);
    assert_int_equal(snapshot_wait_ns(&pace, 0, 1000 * S), 60 * S);
}

static void never_two_within_what_is_set(void **state)
{
    struct snapshot_pace pace = {.entries = 1000,
                                 .period_ns = 60 * S,
                                 .apart_ns = 300 * S,
                                 .begin_ns = 100 * S,
                                 .end_ns = 101 * S};

    (void)state;
    due_at(&pace, 5000, 400 * S);
    due_at(&pace, 1, 400 * S);
    pace.apart_ns = 10 * S;
    due_at(&pace, 5000, 110 * S);
    due_at(&pace, 1, 161 * S);
    pace.period_ns = 0;
    assert_int_equal(snapshot_wait_ns(&pace, 999, 1000 * S), SNAPSHOT_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_entries_wait_for_a_rest),
        cmocka_unit_test(nothing_new_is_no_reason),
        cmocka_unit_test(never_two_within_what_is_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
