/*
 * test_u128.c - checked 128-bit arithmetic. Method: the bounds and one beyond, and division checked
 * by multiplying back over all pairs of edge values; tests/diff compares with another
 * implementation.
 */
#include "support.h"

#include "base/u128.h"

static struct ron_u128 make(uint64_t high, uint64_t low)
{
    return (struct ron_u128){(unsigned __int128)high << 64 | low};
}

static bool equal(struct ron_u128 a, struct ron_u128 b)
{
    return a.v == b.v;
}

static const uint64_t edge_words[] = {
    0,
    1,
    2,
    3,
    10,
    0x7fffffffffffffff,
    0x8000000000000000,
    0x8000000000000001,
    0xfffffffffffffffe,
    0xffffffffffffffff,
    0xffffffff,
    0x100000000,
    10000000000000000000u,
};
enum { EDGES_COUNT = RON_ARRAY_COUNT(edge_words) * RON_ARRAY_COUNT(edge_words) };

static struct ron_u128 edge(size_t i)
{
    return make(edge_words[i / RON_ARRAY_COUNT(edge_words)],
                edge_words[i % RON_ARRAY_COUNT(edge_words)]);
}

static void add_and_sub_refuse_to_wrap(void **state)
{
    struct ron_u128 r = ron_u128_of(7);

    (void)state;
    assert_true(ron_u128_add(make(0, UINT64_MAX), ron_u128_of(1), &r));
    assert_true(equal(r, make(1, 0)));
    assert_true(ron_u128_add(make(UINT64_MAX, UINT64_MAX - 1), ron_u128_of(1), &r));
    assert_true(equal(r, RON_U128_MAX));
    assert_false(ron_u128_add(RON_U128_MAX, ron_u128_of(1), &r));
    assert_true(equal(r, RON_U128_MAX)); /* untouched */
    assert_true(ron_u128_sub(make(1, 0), ron_u128_of(1), &r));
    assert_true(equal(r, make(0, UINT64_MAX)));
    assert_false(ron_u128_sub(ron_u128_of(1), ron_u128_of(2), &r));
    assert_true(equal(r, make(0, UINT64_MAX)));
    assert_true(ron_u128_sub(RON_U128_MAX, RON_U128_MAX, &r));
    assert_true(ron_u128_is_zero(r));
}

static void compare_orders(void **state)
{
    (void)state;
    assert_true(ron_u128_compare(make(0, UINT64_MAX), make(1, 0)) < 0);
    assert_true(ron_u128_compare(make(1, 0), make(0, UINT64_MAX)) > 0);
    assert_int_equal(ron_u128_compare(make(5, 6), make(5, 6)), 0);
    struct ron_u256 small = {.low = RON_U128_MAX, .high = {0}};
    struct ron_u256 large = {.low = {0}, .high = {1}};
    assert_true(ron_u256_compare(small, large) < 0);
    assert_true(ron_u256_compare(large, small) > 0);
    assert_int_equal(ron_u256_compare(large, large), 0);
    assert_true(ron_u256_compare((struct ron_u256){.low = {1}, .high = {1}}, large) > 0);
}

static void mul_is_exact_up_to_the_maximum(void **state)
{
    struct ron_u128 r = ron_u128_of(7);

    (void)state;
    assert_true(ron_u128_mul(make(0, UINT64_MAX), make(0, UINT64_MAX), &r));
    assert_true(equal(r, make(UINT64_MAX - 1, 1)));
    /* 2^128 - 1 = (2^64 - 1)(2^64 + 1) */
    assert_true(ron_u128_mul(make(0, UINT64_MAX), make(1, 1), &r));
    assert_true(equal(r, RON_U128_MAX));
    assert_false(ron_u128_mul(make(1, 0), make(1, 0), &r)); /* 2^128 */
    assert_false(ron_u128_mul(make(0, UINT64_MAX), make(1, 2), &r));
    assert_true(equal(r, RON_U128_MAX));
    assert_true(ron_u128_mul(RON_U128_MAX, ron_u128_of(0), &r));
    assert_true(ron_u128_is_zero(r));
    assert_true(ron_u128_mul(RON_U128_MAX, ron_u128_of(1), &r));
    assert_true(equal(r, RON_U128_MAX));
}

static void mul_full_carries(void **state)
{
    (void)state;
    struct ron_u256 p = ron_u128_mul_full(RON_U128_MAX, RON_U128_MAX);
    assert_true(equal(p.low, ron_u128_of(1)));
    assert_true(equal(p.high, make(UINT64_MAX, UINT64_MAX - 1)));
    p = ron_u128_mul_full(make(1, 0), make(1, 0));
    assert_true(equal(p.low, ron_u128_of(0)));
    assert_true(equal(p.high, ron_u128_of(1)));
    /* Both cross products and the low one together carry twice into the high part. */
    p = ron_u128_mul_full(make(UINT64_MAX, UINT64_MAX), make(UINT64_MAX, 1));
    assert_true(equal(p.low, make(0, UINT64_MAX)));
    assert_true(equal(p.high, make(UINT64_MAX, 0)));
}

static void u256_add_and_sub_carry_and_refuse(void **state)
{
    struct ron_u256 one = {.low = {1}, .high = {0}};
    struct ron_u256 max = {.low = RON_U128_MAX, .high = RON_U128_MAX};
    struct ron_u256 r = one;

    (void)state;
    assert_false(ron_u256_add(max, one, &r));
    assert_int_equal(ron_u256_compare(r, one), 0);
    /* The carry alone overflows: high parts sum to the maximum. */
    assert_false(
        ron_u256_add((struct ron_u256){.low = RON_U128_MAX, .high = RON_U128_MAX}, one, &r));
    assert_false(ron_u256_add((struct ron_u256){.low = {0}, .high = {1}}, max, &r));
    assert_true(ron_u256_add((struct ron_u256){.low = RON_U128_MAX, .high = {4}}, one, &r));
    assert_true(equal(r.low, ron_u128_of(0)));
    assert_true(equal(r.high, ron_u128_of(5)));
    assert_true(ron_u256_sub(r, one, &r));
    assert_true(equal(r.low, RON_U128_MAX));
    assert_true(equal(r.high, ron_u128_of(4)));
    assert_false(ron_u256_sub(one, r, &r));
    assert_true(equal(r.high, ron_u128_of(4)));
    assert_true(ron_u256_sub(max, max, &r));
    assert_true(ron_u128_is_zero(r.low));
    assert_true(ron_u128_is_zero(r.high));
}

/* quotient * b + remainder == a, remainder < b. */
static void check_division(struct ron_u256 a, struct ron_u128 b)
{
    struct ron_u128 q = ron_u128_of(11);
    struct ron_u128 r = ron_u128_of(12);
    struct ron_u256 back;

    if (ron_u128_compare(a.high, b) >= 0) {
        assert_false(ron_u256_div(a, b, &q, &r));
        assert_true(equal(q, ron_u128_of(11)));
        assert_true(equal(r, ron_u128_of(12)));
        return;
    }
    assert_true(ron_u256_div(a, b, &q, &r));
    assert_true(ron_u128_compare(r, b) < 0);
    back = ron_u128_mul_full(q, b);
    assert_true(ron_u256_add(back, (struct ron_u256){.low = r}, &back));
    assert_int_equal(ron_u256_compare(back, a), 0);
}

static void division_multiplies_back_for_all_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < EDGES_COUNT; i++)
        for (size_t j = 0; j < EDGES_COUNT; j++)
            for (size_t k = 0; k < EDGES_COUNT; k++)
                check_division((struct ron_u256){.low = edge(i), .high = edge(j)}, edge(k));
}

static void division_at_every_shift(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 128; shift++) {
        struct ron_u128 b = {((unsigned __int128)1 << shift) | 1};

        check_division((struct ron_u256){.low = RON_U128_MAX, .high = {b.v - 1}}, b);
        check_division((struct ron_u256){.low = {0}, .high = {b.v - 1}}, b);
        check_division((struct ron_u256){.low = {0}, .high = b}, b); /* one beyond */
        b.v = ~(unsigned __int128)0 >> shift;
        check_division((struct ron_u256){.low = RON_U128_MAX, .high = {b.v - 1}}, b);
        check_division((struct ron_u256){.low = {0}, .high = {b.v >> 1}}, b);
    }
}

static void mul_div_floors_and_refuses(void **state)
{
    struct ron_u128 q = ron_u128_of(7);
    struct ron_u128 r = ron_u128_of(8);

    (void)state;
    assert_true(ron_u128_mul_div(ron_u128_of(10), ron_u128_of(1), ron_u128_of(3), &q, &r));
    assert_true(equal(q, ron_u128_of(3)));
    assert_true(equal(r, ron_u128_of(1)));
    assert_true(ron_u128_mul_div(RON_U128_MAX, RON_U128_MAX, RON_U128_MAX, &q, &r));
    assert_true(equal(q, RON_U128_MAX));
    assert_true(ron_u128_is_zero(r));
    assert_false(ron_u128_mul_div(RON_U128_MAX, ron_u128_of(2), ron_u128_of(1), &q, &r));
    assert_false(
        ron_u128_mul_div(RON_U128_MAX, RON_U128_MAX, make(UINT64_MAX, UINT64_MAX - 1), &q, &r));
    assert_false(ron_u128_mul_div(ron_u128_of(1), ron_u128_of(1), ron_u128_of(0), &q, &r));
    assert_false(ron_u128_mul_div(ron_u128_of(0), ron_u128_of(0), ron_u128_of(0), &q, &r));
    assert_true(equal(q, RON_U128_MAX));
}

static void bytes_keep_their_order(void **state)
{
    uint8_t bytes[17];
    struct ron_u128 value = make(0x0102030405060708u, 0x090a0b0c0d0e0f10u);

    (void)state;
    ron_u128_store_be(bytes + 1, value);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(bytes[1 + i], i + 1);
    assert_true(equal(ron_u128_load_be(bytes + 1), value));
    ron_u128_store_le(bytes + 1, value);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(bytes[1 + i], 16 - i);
    assert_true(equal(ron_u128_load_le(bytes + 1), value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_and_sub_refuse_to_wrap),
        cmocka_unit_test(compare_orders),
        cmocka_unit_test(mul_is_exact_up_to_the_maximum),
        cmocka_unit_test(mul_full_carries),
        cmocka_unit_test(u256_add_and_sub_carry_and_refuse),
        cmocka_unit_test(division_multiplies_back_for_all_edges),
        cmocka_unit_test(division_at_every_shift),
        cmocka_unit_test(mul_div_floors_and_refuses),
        cmocka_unit_test(bytes_keep_their_order),
    };
    return cmocka_run_group_tests_name("u128", tests, NULL, NULL);
}
