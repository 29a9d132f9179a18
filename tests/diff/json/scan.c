/*
 * scan.c - features of a document. See scan.h.
 *
 * Knows strings from what is outside of them, and no more grammar than that: it must not share the
 * reader's mistakes.
 */
#include "scan.h"

static uint32_t set_of(enum feature feature)
{
    return 1u << feature;
}

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The code unit of the \uXXXX at p, or -1. */
static int escaped_unit(const uint8_t *p, const uint8_t *end)
{
    int unit = 0;

    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        if (hex_value(p[i]) < 0)
            return -1;
        unit = unit * 16 + hex_value(p[i]);
    }
    return unit;
}

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* p is behind the opening quote; the result is behind the closing one. */
static const uint8_t *scan_string(const uint8_t *p, const uint8_t *end, uint32_t *features)
{
    bool holds_nul = false;

    while (p < end && *p != '"') {
        int unit = escaped_unit(p, end);

        if (unit >= 0xd800 && unit <= 0xdbff) {
            int low = escaped_unit(p + 6, end);

            if (low >= 0xdc00 && low <= 0xdfff) {
                p += 12;
                continue;
            }
            *features |= set_of(FEATURE_LONE_SURROGATE);
        } else if (unit >= 0xdc00 && unit <= 0xdfff) {
            *features |= set_of(FEATURE_LONE_SURROGATE);
        }
        holds_nul = holds_nul || unit == 0;
        p += *p == '\\' ? 2 : 1;
    }
    if (p >= end)
        return end;
    p++;
    if (holds_nul && skip_space(p, end) < end && *skip_space(p, end) == ':')
        *features |= set_of(FEATURE_NUL_IN_NAME);
    return p;
}

/* Are these digits, without leading zero, a number above the limit? */
static bool is_above(const uint8_t *digits, size_t count, const char *limit)
{
    if (count != strlen(limit))
        return count > strlen(limit);
    return memcmp(digits, limit, count) > 0;
}

static const uint8_t *scan_number(const uint8_t *p, const uint8_t *end, uint32_t *features)
{
    bool negative = *p == '-';
    const uint8_t *digits = negative ? p + 1 : p;
    size_t count;
    bool fraction = false;

    for (p = digits; p < end && memchr("0123456789+-.eE", *p, 15) != NULL; p++)
        fraction = fraction || memchr(".eE", *p, 3) != NULL;
    count = (size_t)(p - digits);
    if (fraction) {
        *features |= set_of(FEATURE_FRACTION);
        return p;
    }
    if (negative && count == 1 && digits[0] == '0')
        *features |= set_of(FEATURE_NEGATIVE_ZERO);
    if (is_above(digits, count, "9007199254740991"))
        *features |= set_of(FEATURE_BEYOND_DOUBLE);
    if (is_above(digits, count, negative ? "9223372036854775808" : "9223372036854775807"))
        *features |= set_of(FEATURE_BEYOND_I64);
    if (is_above(digits, count, "340282366920938463463374607431768211455"))
        *features |= set_of(FEATURE_BEYOND_U128);
    return p;
}

uint32_t scan_document(struct ron_slice text)
{
    const uint8_t *p = text.data;
    const uint8_t *end = p + text.size;
    uint32_t features = 0;
    int depth = 0;

    while (p < end) {
        if (*p == '"') {
            p = scan_string(p + 1, end, &features);
            continue;
        }
        if (*p == '-' || (*p >= '0' && *p <= '9')) {
            p = scan_number(p, end, &features);
            continue;
        }
        if (*p == 'N' || *p == 'I')
            features |= set_of(FEATURE_CONSTANT);
        if (*p == 0)
            features |= set_of(FEATURE_NUL_OUTSIDE);
        if (*p == '[' || *p == '{')
            depth++;
        if (*p == ']' || *p == '}')
            depth--;
        if (depth > 32)
            features |= set_of(FEATURE_TOO_DEEP);
        p++;
    }
    return features;
}
