/*
 * utf8.h - the one UTF-8 check of every parser, and the writing of one character.
 *
 * Strict, as the Unicode standard's table of well-formed sequences: no surrogates, no overlong
 * forms, nothing beyond U+10FFFF. U+0000 is a character like any other.
 */
#ifndef RON_BASE_UTF8_H
#define RON_BASE_UTF8_H

#include "base/bytes.h"

#define RON_UTF8_CODE_POINT_MAX 0x10ffffu
#define RON_UTF8_SIZE_MAX       4 /* of one character */

/* A code point that has an encoding: not a surrogate, not beyond the last one. */
static inline bool ron_utf8_is_scalar(uint32_t code_point)
{
    return code_point <= RON_UTF8_CODE_POINT_MAX && (code_point < 0xd800u || code_point > 0xdfffu);
}

/* Is all of text well-formed? If not, *ret_bad_offset (unless NULL) is where the first bad sequence
 * begins; a sequence cut off by the end of text is bad. Untouched when true. */
bool ron_utf8_valid(struct ron_slice text, size_t *ret_bad_offset) RON_MUST_USE;

/* Write code_point, for which ron_utf8_is_scalar must hold; returns its size, 1..4. */
size_t ron_utf8_encode(uint32_t code_point, uint8_t out[static RON_UTF8_SIZE_MAX]);

#endif
