/*
 * test_books_pace.c - how long a merge rests. Method: each bound, just before and at it.
 */
#include "support.h"

#include "ledger/books_pace.h"

static void rests_longer_than_it_works(void **state)
{
    (void)state;
    assert_int_equal(books_rest_ns(0, true, 64, 64), 0);
    assert_int_equal(books_rest_ns(700000, true, 64, 64), 5600000);
    assert_int_equal(books_rest_ns(BOOKS_REST_MAX_NS / 8 - 1, true, 64, 64), BOOKS_REST_MAX_NS - 8);
    assert_int_equal(books_rest_ns(BOOKS_REST_MAX_NS / 8, true, 64, 64), BOOKS_REST_MAX_NS);
    assert_int_equal(books_rest_ns(UINT64_MAX, true, 64, 64), BOOKS_REST_MAX_NS);
}

static void rests_less_while_nobody_writes(void **state)
{
    (void)state;
    assert_int_equal(books_rest_ns(700000, false, 64, 64), 1400000);
    assert_int_equal(books_rest_ns(700000, false, 127, 64), 1400000);
    assert_int_equal(books_rest_ns(700000, false, 128, 64), 0);
    assert_int_equal(books_rest_ns(UINT64_MAX, false, 64, 64), BOOKS_REST_MAX_NS);
}

static void rests_less_the_more_there_is_to_do(void **state)
{
    (void)state;
    assert_int_equal(books_rest_ns(700000, true, 95, 64), 5600000);
    assert_int_equal(books_rest_ns(700000, true, 96, 64), 1400000);
    assert_int_equal(books_rest_ns(700000, true, 127, 64), 1400000);
    assert_int_equal(books_rest_ns(700000, true, 128, 64), 0);
    assert_int_equal(books_rest_ns(700000, true, 1000, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rests_longer_than_it_works),
        cmocka_unit_test(rests_less_while_nobody_writes),
        cmocka_unit_test(rests_less_the_more_there_is_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
