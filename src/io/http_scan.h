/*
 * http_scan.h - how far the bytes of a head are plain, sixteen at a time. Internal to http_head.c.
 *
 * Each function answers how many bytes at the start it knows to be of its kind: all that are, or
 * fewer. The tables of http_head.c judge what comes behind; a processor without these instructions
 * leaves everything to them.
 */
#ifndef RON_IO_HTTP_SCAN_H
#define RON_IO_HTTP_SCAN_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/bytes.h"

enum { HTTP_SCAN_STEP = 16 };

#if defined(__SSE2__)

/* In each: a bit for a byte that is of the kind, those from 0x80 on are below zero. */
static inline unsigned http_scan_visible_mask(const uint8_t *bytes) /* ' ' to '~' */
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    const __m128i other = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(' ')),
                                       _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));

    return ~(unsigned)_mm_movemask_epi8(other) & 0xffffu;
}

/* '&' to 'z' without < > [ \ ] ^ `: what paths and queries are made of, but for ! $ ~ and %. */
static inline unsigned http_scan_target_mask(const uint8_t *bytes)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    const __m128i between = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('&' - 1)),
                                          _mm_cmplt_epi8(v, _mm_set1_epi8('z' + 1)));
    const __m128i bracket = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('Z')),
                                          _mm_cmplt_epi8(v, _mm_set1_epi8('_')));
    const __m128i angle = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('<')),
                                       _mm_cmpeq_epi8(v, _mm_set1_epi8('>')));
    const __m128i other = _mm_or_si128(_mm_or_si128(bracket, angle),
                                       _mm_cmpeq_epi8(v, _mm_set1_epi8('`')));

    return (unsigned)_mm_movemask_epi8(_mm_andnot_si128(other, between));
}

/* Letters, digits and '-': what names of fields are made of, as a rule. */
static inline unsigned http_scan_name_mask(const uint8_t *bytes)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    const __m128i low = _mm_or_si128(v, _mm_set1_epi8(0x20));
    const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(low, _mm_set1_epi8('a' - 1)),
                                         _mm_cmplt_epi8(low, _mm_set1_epi8('z' + 1)));
    const __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('0' - 1)),
                                        _mm_cmplt_epi8(v, _mm_set1_epi8('9' + 1)));
    const __m128i hyphen = _mm_cmpeq_epi8(v, _mm_set1_epi8('-'));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), hyphen));
}

typedef unsigned http_scan_mask_fn(const uint8_t *bytes);

static RON_HOT_INLINE size_t http_scan_all(struct ron_slice text, http_scan_mask_fn *mask_of)
{
    size_t at = 0;

    for (; text.size - at >= HTTP_SCAN_STEP; at += HTTP_SCAN_STEP) {
        const unsigned mask = mask_of(text.data + at);

        if (mask != 0xffffu)
            return at + (size_t)__builtin_ctz(~mask);
    }
    if (at == text.size || at == 0)
        return at;
    /* The last sixteen: those of them that were looked at before are plain. */
    at = text.size - HTTP_SCAN_STEP;
    return at + (size_t)__builtin_ctz(~mask_of(text.data + at) | 1u << HTTP_SCAN_STEP);
}

static inline size_t http_scan_visible(struct ron_slice text)
{
    return http_scan_all(text, http_scan_visible_mask);
}

static inline size_t http_scan_target(struct ron_slice text)
{
    return http_scan_all(text, http_scan_target_mask);
}

/* Of the first sixteen bytes. */
static inline size_t http_scan_name(struct ron_slice text)
{
    if (text.size < HTTP_SCAN_STEP)
        return 0;
    return (size_t)__builtin_ctz(~http_scan_name_mask(text.data));
}

#else

static inline size_t http_scan_visible(struct ron_slice text)
{
    (void)text;
    return 0;
}

static inline size_t http_scan_target(struct ron_slice text)
{
    (void)text;
    return 0;
}

static inline size_t http_scan_name(struct ron_slice text)
{
    (void)text;
    return 0;
}

#endif

#endif
