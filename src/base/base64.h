/*
 * base64.h - RFC 4648 base64 with the standard or the URL-safe alphabet, with or without padding.
 *
 * Decoding is strict: the alphabet and padding asked for and no other, no white space, unused bits
 * zero. So each byte string has exactly one text per form.
 */
#ifndef RON_BASE_BASE64_H
#define RON_BASE_BASE64_H

#include "base/bytes.h"

enum ron_base64 {
    RON_BASE64_STANDARD,        /* + and /, padded with = */
    RON_BASE64_STANDARD_NO_PAD, /* + and /, no = */
    RON_BASE64_URL,             /* - and _, padded with = */
    RON_BASE64_URL_NO_PAD,      /* - and _, no =; tokens */
    RON_BASE64__MAX
};

/* Room for the text of bytes_size bytes in any form, and its NUL. */
#define RON_BASE64_SIZE(bytes_size) (((size_t)(bytes_size) + 2) / 3 * 4 + 1)

/* Write the text and a NUL into text_size bytes, at least RON_BASE64_SIZE(bytes.size); return the
 * number of characters. The memory must not overlap. */
size_t ron_base64_encode(enum ron_base64 form, struct ron_slice bytes, char *text,
                         size_t text_size);

/* Write the bytes, at most bytes_size, and say how many. RON_ERR_MALFORMED with the position in the
 * message; RON_ERR_TOO_LARGE when well-formed text holds more. On failure nothing is written. The
 * memory must not overlap. */
enum ron_err ron_base64_decode(enum ron_base64 form, struct ron_slice text, uint8_t *ret_bytes,
                               size_t bytes_size, size_t *ret_size,
                               struct ron_errinfo *reterr) RON_MUST_USE;

#endif
