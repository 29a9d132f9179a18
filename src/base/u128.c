/*
 * u128.c - 128-bit products and 256-bit division. See u128.h.
 */
#include "base/u128.h"

#include "base/assert.h"
#include "base/bytes.h"

static inline uint64_t high_half(unsigned __int128 a)
{
    return (uint64_t)(a >> 64);
}

static inline uint64_t low_half(unsigned __int128 a)
{
    return (uint64_t)a;
}

static inline unsigned __int128 join(uint64_t high, uint64_t low)
{
    return (unsigned __int128)high << 64 | low;
}

bool ron_u128_mul(struct ron_u128 a, struct ron_u128 b, struct ron_u128 *ret)
{
    unsigned __int128 product;

    if (__builtin_mul_overflow(a.v, b.v, &product))
        return false;
    ret->v = product;
    return true;
}

struct ron_u256 ron_u128_mul_full(struct ron_u128 a, struct ron_u128 b)
{
    unsigned __int128 low = (unsigned __int128)low_half(a.v) * low_half(b.v);
    unsigned __int128 cross = (unsigned __int128)low_half(a.v) * high_half(b.v);
    unsigned __int128 cross2 = (unsigned __int128)high_half(a.v) * low_half(b.v);
    unsigned __int128 high = (unsigned __int128)high_half(a.v) * high_half(b.v);
    /* Three halves of less than 2^64 each: no overflow. */
    unsigned __int128 middle = (unsigned __int128)high_half(low) + low_half(cross) +
                               low_half(cross2);

    /* The product is below 2^256, so its high part cannot overflow either. */
    high += (unsigned __int128)high_half(cross) + high_half(cross2) + high_half(middle);
    return (struct ron_u256){
        .low = {join(low_half(middle), low_half(low))},
        .high = {high},
    };
}

bool ron_u256_add(struct ron_u256 a, struct ron_u256 b, struct ron_u256 *ret)
{
    struct ron_u256 sum;
    bool carry = __builtin_add_overflow(a.low.v, b.low.v, &sum.low.v);

    if (__builtin_add_overflow(a.high.v, b.high.v, &sum.high.v))
        return false;
    if (__builtin_add_overflow(sum.high.v, (unsigned __int128)carry, &sum.high.v))
        return false;
    *ret = sum;
    return true;
}

bool ron_u256_sub(struct ron_u256 a, struct ron_u256 b, struct ron_u256 *ret)
{
    if (ron_u256_compare(a, b) < 0)
        return false;
    unsigned __int128 borrow = a.low.v < b.low.v;
    *ret = (struct ron_u256){
        .low = {a.low.v - b.low.v}, /* wraps by design when it borrows */
        .high = {a.high.v - b.high.v - borrow},
    };
    return true;
}

int ron_u256_compare(struct ron_u256 a, struct ron_u256 b)
{
    int order = ron_u128_compare(a.high, b.high);

    return order != 0 ? order : ron_u128_compare(a.low, b.low);
}

/* One step of schoolbook division in base 2^64 (Knuth 4.3.1 D): (rest:next) / divisor, where
 * rest < divisor and the divisor's top bit is set. Gives the quotient digit and the new rest. */
static uint64_t divide_step(unsigned __int128 *rest, uint64_t next, unsigned __int128 divisor)
{
    uint64_t divisor_high = high_half(divisor);
    uint64_t divisor_low = low_half(divisor);

    RON_ASSERT(*rest < divisor);
    /* Too large by at most 2, because the divisor is normalised. */
    unsigned __int128 digit = *rest / divisor_high;
    unsigned __int128 left = *rest % divisor_high;
    /* The divisor has only these two digits, so this test is exact and nothing is added back. */
    while (high_half(digit) != 0 || digit * divisor_low > join(low_half(left), next)) {
        digit--;
        left += divisor_high;
        if (high_half(left) != 0)
            break; /* the right side of the test is now beyond any left side */
    }
    RON_ASSERT(high_half(digit) == 0);
    /* The true difference is below the divisor, so arithmetic modulo 2^128 gives it. */
    *rest = join(low_half(*rest), next) - digit * divisor;
    RON_ASSERT(*rest < divisor);
    return low_half(digit);
}

bool ron_u256_div(struct ron_u256 a, struct ron_u128 b, struct ron_u128 *ret_quotient,
                  struct ron_u128 *ret_remainder)
{
    RON_ASSERT(ret_quotient != NULL);
    RON_ASSERT(ret_remainder != NULL);
    if (a.high.v >= b.v)
        return false; /* covers b == 0 */
    if (a.high.v == 0) {
        ret_quotient->v = a.low.v / b.v;
        ret_remainder->v = a.low.v % b.v;
        return true;
    }
    /* Normalise: the same factor on both sides changes the remainder only. a.high < b, so no bit of
     * a.high is lost. b is at least 2 here. */
    unsigned shift = (unsigned)(high_half(b.v) != 0 ? __builtin_clzll(high_half(b.v))
                                                    : 64 + __builtin_clzll(low_half(b.v)));
    unsigned __int128 divisor = b.v << shift;
    unsigned __int128 rest = a.high.v << shift;
    unsigned __int128 low = a.low.v << shift;
    if (shift != 0)
        rest |= a.low.v >> (128 - shift);
    uint64_t digit_high = divide_step(&rest, high_half(low), divisor);
    uint64_t digit_low = divide_step(&rest, low_half(low), divisor);
    ret_quotient->v = join(digit_high, digit_low);
    ret_remainder->v = rest >> shift;
    RON_ASSERT(ret_remainder->v < b.v);
    return true;
}

bool ron_u128_mul_div(struct ron_u128 a, struct ron_u128 b, struct ron_u128 c,
                      struct ron_u128 *ret_quotient, struct ron_u128 *ret_remainder)
{
    return ron_u256_div(ron_u128_mul_full(a, b), c, ret_quotient, ret_remainder);
}

struct ron_u128 ron_u128_load_be(const void *p)
{
    return (struct ron_u128){join(ron_load_be64(p), ron_load_be64((const uint8_t *)p + 8))};
}

void ron_u128_store_be(void *p, struct ron_u128 a)
{
    ron_store_be64(p, high_half(a.v));
    ron_store_be64((uint8_t *)p + 8, low_half(a.v));
}
