/*
 * hex.h - bytes as lower-case hexadecimal text.
 *
 * One text per byte string: capitals, odd lengths and white space are refused, so that equal bytes
 * have equal texts (hashes are compared and signed as text).
 */
#ifndef RON_BASE_HEX_H
#define RON_BASE_HEX_H

#include "base/bytes.h"

/* Room for the text of bytes_size bytes and its NUL. */
#define RON_HEX_SIZE(bytes_size) ((size_t)2 * (bytes_size) + 1)

/* Write the text and a NUL into text_size bytes, at least RON_HEX_SIZE(bytes.size); return the
 * number of characters. The memory must not overlap. */
size_t ron_hex_encode(struct ron_slice bytes, char *text, size_t text_size);

/* Write the bytes, at most bytes_size, and say how many. RON_ERR_MALFORMED with the position in the
 * message; RON_ERR_TOO_LARGE when well-formed text holds more. On failure nothing is written. The
 * memory must not overlap. */
enum ron_err ron_hex_decode(struct ron_slice text, uint8_t *ret_bytes, size_t bytes_size,
                            size_t *ret_size, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
