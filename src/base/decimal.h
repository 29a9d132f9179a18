/*
 * decimal.h - strict decimal text: 0, or a digit 1..9 and digits. No sign, no leading zero, no
 * space.
 *
 * Parsing consumes the whole slice or fails with RON_ERR_MALFORMED, whose message says at which
 * byte and why (empty, leading zero, not a digit, out of range).
 */
#ifndef RON_BASE_DECIMAL_H
#define RON_BASE_DECIMAL_H

#include "base/bytes.h"
#include "base/u128.h"

#define RON_DECIMAL_U64_SIZE  21 /* 20 digits and NUL */
#define RON_DECIMAL_U128_SIZE 40 /* 39 digits and NUL */

enum ron_err ron_decimal_parse_u64(struct ron_slice text, uint64_t *ret_value,
                                   struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ron_decimal_parse_u128(struct ron_slice text, struct ron_u128 *ret_value,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

/* Write the digits and a NUL; return the number of digits. */
size_t ron_decimal_print_u64(uint64_t value, char text[static RON_DECIMAL_U64_SIZE]);
size_t ron_decimal_print_u128(struct ron_u128 value, char text[static RON_DECIMAL_U128_SIZE]);

#endif
