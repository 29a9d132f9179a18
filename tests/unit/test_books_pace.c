/*
 * test_books_pace.c - how long a merge rests. Method: each bound, just before and at it.
 */
#include "support.h"

#include "ledger/books_pace.h"

static void rests_twice_as_long_as_it_works(void **state)
{
    (void)state;
    assert_int_equal(books_rest_ns(0, 64, 64), 0);
    assert_int_equal(books_rest_ns(700000, 64, 64), 1400000);
    assert_int_equal(books_rest_ns(BOOKS_REST_MAX_NS / 2 - 1, 64, 64), BOOKS_REST_MAX_NS - 2);
    assert_int_equal(books_rest_ns(BOOKS_REST_MAX_NS / 2, 64, 64), BOOKS_REST_MAX_NS);
    assert_int_equal(books_rest_ns(UINT64_MAX, 64, 64), BOOKS_REST_MAX_NS);
}

static void does_not_rest_when_it_is_behind(void **state)
{
    (void)state;
    assert_int_equal(books_rest_ns(700000, 127, 64), 1400000);
    assert_int_equal(books_rest_ns(700000, 128, 64), 0);
    assert_int_equal(books_rest_ns(700000, 1000, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rests_twice_as_long_as_it_works),
        cmocka_unit_test(does_not_rest_when_it_is_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
