/*
 * ulid.h - 128-bit identifiers that sort by time: 48 bits of unix milliseconds, 80 random bits.
 *
 * The text is 26 characters of Crockford's base32 in upper case and sorts as the bytes do. Here is
 * neither a clock nor randomness: the caller brings both.
 */
#ifndef RON_BASE_ULID_H
#define RON_BASE_ULID_H

#include "base/bytes.h"

enum {
    RON_ULID_BYTES_SIZE = 16,
    RON_ULID_RANDOM_SIZE = 10,
    RON_ULID_TEXT_SIZE = 27, /* 26 characters and NUL */
};
#define RON_ULID_TIME_MS_MAX ((UINT64_C(1) << 48) - 1)

struct ron_ulid {
    uint8_t bytes[RON_ULID_BYTES_SIZE]; /* big-endian: 6 of time, 10 random */
};

/* time_ms is at most RON_ULID_TIME_MS_MAX (the year 10889). */
struct ron_ulid ron_ulid_make(uint64_t time_ms, const uint8_t random[static RON_ULID_RANDOM_SIZE]);
uint64_t ron_ulid_time_ms(struct ron_ulid ulid);

/* The next identifier of the same millisecond. False, with *ret_next untouched, when all 80 low
 * bits are set: wait for the next millisecond. */
bool ron_ulid_next(struct ron_ulid ulid, struct ron_ulid *ret_next) RON_MUST_USE;

/* The whole text or RON_ERR_MALFORMED with the position: no lower case, no I L O U, at most 128
 * bits (first character 0 to 7). */
enum ron_err ron_ulid_parse(struct ron_slice text, struct ron_ulid *ret_ulid,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Writes 26 characters and a NUL. */
void ron_ulid_print(struct ron_ulid ulid, char text[static RON_ULID_TEXT_SIZE]);

/* Order of time, then of the random part: negative, 0 or positive. */
static inline int ron_ulid_compare(struct ron_ulid a, struct ron_ulid b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes));
}

#endif
