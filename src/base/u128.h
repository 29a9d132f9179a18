/*
 * u128.h - checked 128-bit arithmetic for money, with 256-bit products.
 *
 * A one-member struct, so that no amount mixes with a plain integer by accident. Every operation
 * that can overflow says so (false, result untouched); nothing wraps, saturates or rounds silently.
 */
#ifndef RON_BASE_U128_H
#define RON_BASE_U128_H

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

struct ron_u128 {
    unsigned __int128 v;
};

struct ron_u256 {
    struct ron_u128 low;
    struct ron_u128 high;
};

#define RON_U128_MAX ((struct ron_u128){~(unsigned __int128)0})

static inline struct ron_u128 ron_u128_of(uint64_t value)
{
    return (struct ron_u128){value};
}
static inline bool ron_u128_is_zero(struct ron_u128 a)
{
    return a.v == 0;
}
/* Negative, 0 or positive. */
static inline int ron_u128_compare(struct ron_u128 a, struct ron_u128 b)
{
    return a.v < b.v ? -1 : a.v > b.v;
}

/* Checked: true and *ret, or false on overflow with *ret untouched. */
static inline RON_MUST_USE bool ron_u128_add(struct ron_u128 a, struct ron_u128 b,
                                             struct ron_u128 *ret)
{
    unsigned __int128 sum;

    if (__builtin_add_overflow(a.v, b.v, &sum))
        return false;
    ret->v = sum;
    return true;
}
static inline RON_MUST_USE bool ron_u128_sub(struct ron_u128 a, struct ron_u128 b,
                                             struct ron_u128 *ret)
{
    if (b.v > a.v)
        return false;
    ret->v = a.v - b.v;
    return true;
}
bool ron_u128_mul(struct ron_u128 a, struct ron_u128 b, struct ron_u128 *ret) RON_MUST_USE;

/* The full product; cannot overflow. */
struct ron_u256 ron_u128_mul_full(struct ron_u128 a, struct ron_u128 b);
bool ron_u256_add(struct ron_u256 a, struct ron_u256 b, struct ron_u256 *ret) RON_MUST_USE;
bool ron_u256_sub(struct ron_u256 a, struct ron_u256 b, struct ron_u256 *ret) RON_MUST_USE;
int ron_u256_compare(struct ron_u256 a, struct ron_u256 b);
/* floor(a / b) and the remainder. False when b is 0 or the quotient needs more than 128 bits. */
bool ron_u256_div(struct ron_u256 a, struct ron_u128 b, struct ron_u128 *ret_quotient,
                  struct ron_u128 *ret_remainder) RON_MUST_USE;
/* floor(a * b / c) with a 256-bit product, and the remainder: shares of a pool. False as above. */
bool ron_u128_mul_div(struct ron_u128 a, struct ron_u128 b, struct ron_u128 c,
                      struct ron_u128 *ret_quotient, struct ron_u128 *ret_remainder) RON_MUST_USE;

/* 16 bytes, unaligned; the byte order is in the name. */
static inline struct ron_u128 ron_u128_load_le(const void *p)
{
    struct ron_u128 a;
    memcpy(&a.v, p, sizeof(a.v));
    return a;
}
static inline void ron_u128_store_le(void *p, struct ron_u128 a)
{
    memcpy(p, &a.v, sizeof(a.v));
}
struct ron_u128 ron_u128_load_be(const void *p);
void ron_u128_store_be(void *p, struct ron_u128 a);

#endif
