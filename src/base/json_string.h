/*
 * json_string.h - strings of the JSON reader: find the end, check, decode. Internal to json_*.c.
 */
#ifndef RON_BASE_JSON_STRING_H
#define RON_BASE_JSON_STRING_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/utf8.h"

/* Is it a byte that stands for itself: ASCII, no control character, no quote, no backslash? */
static inline bool ron_json_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Where the run of plain bytes at `at` ends, at most size. */
static inline uint32_t ron_json_plain_end_portable(const uint8_t *data, uint32_t at, uint32_t size)
{
    while (at < size && ron_json_is_plain(data[at]))
        at++;
    return at;
}

#if defined(__SSE2__)
static inline uint32_t ron_json_plain_end(const uint8_t *data, uint32_t at, uint32_t size)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);

    while (size - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
        /* Signed: below the space are the control characters and everything from 0x80. */
        __m128i special = _mm_or_si128(
            _mm_cmplt_epi8(bytes, space),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);

        if (mask != 0)
            return at + (uint32_t)__builtin_ctz(mask);
        at += 16;
    }
    return ron_json_plain_end_portable(data, at, size);
}
#else
static inline uint32_t ron_json_plain_end(const uint8_t *data, uint32_t at, uint32_t size)
{
    return ron_json_plain_end_portable(data, at, size);
}
#endif

struct ron_json_string {
    uint32_t end;          /* of the content: the closing quote */
    uint32_t decoded_size; /* of the content, in bytes of UTF-8 */
    bool escaped;          /* decoding is needed */
};

/* Check the content that begins at `at`, behind the opening quote. NULL if it is good, else what is
 * wrong with it, and *ret_bad the offset of the offending byte (size: the text ended). */
const char *ron_json_string_scan(const uint8_t *data, uint32_t at, uint32_t size,
                                 struct ron_json_string *ret_string, uint32_t *ret_bad);
/* Write the decoded form of checked content: exactly decoded_size bytes. */
void ron_json_string_decode(const uint8_t *data, uint32_t at, const struct ron_json_string *string,
                            uint8_t *out);
/* Decode one checked escape at data, its backslash; returns how many bytes of text it takes. */
uint32_t ron_json_escape_decode(const uint8_t *data, uint8_t out[static RON_UTF8_SIZE_MAX],
                                uint32_t *ret_size);

#endif
