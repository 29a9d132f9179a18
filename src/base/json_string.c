/*
 * json_string.c - strings of the JSON reader. See json_string.h.
 *
 * Two passes: the first checks everything and counts, so that the second writes into memory of
 * exactly the decoded size and needs no checks of its own.
 */
#include "base/json_string.h"

#include "base/assert.h"

enum { ESCAPE_SHORT_SIZE = 2, ESCAPE_UNICODE_SIZE = 6 };

/* The character behind a backslash to the one it means; 0 is no escape (`u` is handled apart). */
static const uint8_t escape_values[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* The value of a hexadecimal digit, or 16 and more. */
static inline uint32_t hex_value(uint8_t byte)
{
    uint32_t digit = (uint32_t)byte - '0';
    uint32_t letter = ((uint32_t)byte | 0x20u) - 'a';

    if (digit < 10)
        return digit;
    return letter < 6 ? letter + 10 : 16;
}

static uint32_t four_digits(const uint8_t *data)
{
    return hex_value(data[0]) << 12 | hex_value(data[1]) << 8 | hex_value(data[2]) << 4 |
           hex_value(data[3]);
}

static inline bool is_high_surrogate(uint32_t unit)
{
    return (unit & 0xfc00u) == 0xd800u;
}

static inline bool is_low_surrogate(uint32_t unit)
{
    return (unit & 0xfc00u) == 0xdc00u;
}

static inline uint32_t utf8_size(uint32_t code_point)
{
    return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

/* Check the XXXX of an escape \uXXXX whose backslash is at `at`. */
static const char *scan_unit(const uint8_t *data, uint32_t at, uint32_t size, uint32_t *ret_unit,
                             uint32_t *ret_bad)
{
    for (uint32_t i = at + ESCAPE_SHORT_SIZE; i < at + ESCAPE_UNICODE_SIZE; i++) {
        if (i >= size || hex_value(data[i]) >= 16) {
            *ret_bad = i >= size ? size : i;
            return i >= size ? "the text ends inside a string" : "expected a hexadecimal digit";
        }
    }
    *ret_unit = four_digits(data + at + ESCAPE_SHORT_SIZE);
    return NULL;
}

/* Check one escape whose backslash is at `at`: its size in the text and decoded. */
static const char *scan_escape(const uint8_t *data, uint32_t at, uint32_t size,
                               uint32_t *ret_text_size, uint32_t *ret_size, uint32_t *ret_bad)
{
    uint32_t unit = 0;
    uint32_t low = 0;
    const char *wrong;

    RON_ASSERT(data[at] == '\\');
    *ret_bad = at + 1;
    if (at + 1 >= size)
        return "the text ends inside a string";
    if (data[at + 1] != 'u') {
        *ret_text_size = ESCAPE_SHORT_SIZE;
        *ret_size = 1;
        return escape_values[data[at + 1]] == 0 ? "no such escape" : NULL;
    }
    wrong = scan_unit(data, at, size, &unit, ret_bad);
    if (wrong != NULL)
        return wrong;
    *ret_text_size = ESCAPE_UNICODE_SIZE;
    *ret_size = utf8_size(unit);
    if (!is_high_surrogate(unit) && !is_low_surrogate(unit))
        return NULL;
    *ret_bad = at;
    if (is_low_surrogate(unit) || size - at < ESCAPE_UNICODE_SIZE + ESCAPE_SHORT_SIZE ||
        data[at + ESCAPE_UNICODE_SIZE] != '\\' || data[at + ESCAPE_UNICODE_SIZE + 1] != 'u')
        return "a lone surrogate";
    wrong = scan_unit(data, at + ESCAPE_UNICODE_SIZE, size, &low, ret_bad);
    if (wrong != NULL)
        return wrong;
    *ret_bad = at;
    *ret_text_size = 2 * ESCAPE_UNICODE_SIZE;
    *ret_size = 4;
    return is_low_surrogate(low) ? NULL : "a lone surrogate";
}

/* Check the run of characters beyond ASCII (with plain ones between them) that begins at `at`. */
static const char *scan_utf8(const uint8_t *data, uint32_t at, uint32_t size, uint32_t *ret_end,
                             uint32_t *ret_bad)
{
    uint32_t end = at;
    size_t bad = 0;

    while (end < size && (data[end] >= 0x80 || ron_json_is_plain(data[end])))
        end++;
    if (!ron_utf8_valid(ron_slice_of(data + at, end - at), &bad)) {
        *ret_bad = at + (uint32_t)bad;
        return "invalid UTF-8";
    }
    RON_ASSERT(end > at);
    *ret_end = end;
    return NULL;
}

const char *ron_json_string_scan(const uint8_t *data, uint32_t at, uint32_t size,
                                 struct ron_json_string *ret_string, uint32_t *ret_bad)
{
    uint32_t start = at;
    uint32_t saved = 0; /* by decoding */
    const char *wrong;

    RON_ASSERT(at <= size);
    for (;;) {
        at = ron_json_plain_end(data, at, size);
        *ret_bad = at;
        if (at == size)
            return "the text ends inside a string";
        if (data[at] == '"')
            break;
        if (data[at] < 0x20)
            return "a control character inside a string";
        if (data[at] == '\\') {
            uint32_t text_size = 0;
            uint32_t escape_size = 0;

            wrong = scan_escape(data, at, size, &text_size, &escape_size, ret_bad);
            if (wrong != NULL)
                return wrong;
            RON_ASSERT(escape_size < text_size);
            saved += text_size - escape_size;
            at += text_size;
        } else {
            wrong = scan_utf8(data, at, size, &at, ret_bad);
            if (wrong != NULL)
                return wrong;
        }
    }
    RON_ASSERT(saved <= at - start);
    *ret_string = (struct ron_json_string){
        .end = at, .decoded_size = at - start - saved, .escaped = saved > 0};
    return NULL;
}

uint32_t ron_json_escape_decode(const uint8_t *data, uint8_t out[static RON_UTF8_SIZE_MAX],
                                uint32_t *ret_size)
{
    uint32_t unit;

    RON_ASSERT(data[0] == '\\');
    if (data[1] != 'u') {
        out[0] = escape_values[data[1]];
        *ret_size = 1;
        return ESCAPE_SHORT_SIZE;
    }
    unit = four_digits(data + ESCAPE_SHORT_SIZE);
    if (!is_high_surrogate(unit)) {
        *ret_size = (uint32_t)ron_utf8_encode(unit, out);
        return ESCAPE_UNICODE_SIZE;
    }
    uint32_t low = four_digits(data + ESCAPE_UNICODE_SIZE + ESCAPE_SHORT_SIZE);
    RON_ASSERT(is_low_surrogate(low));
    *ret_size = (uint32_t)ron_utf8_encode(0x10000u + ((unit - 0xd800u) << 10) + (low - 0xdc00u),
                                          out);
    return 2 * ESCAPE_UNICODE_SIZE;
}

void ron_json_string_decode(const uint8_t *data, uint32_t at, const struct ron_json_string *string,
                            uint8_t *out)
{
    uint32_t written = 0;

    while (at < string->end) {
        uint8_t bytes[RON_UTF8_SIZE_MAX];
        uint32_t bytes_size = 0;
        const uint8_t *backslash = memchr(data + at, '\\', string->end - at);
        uint32_t run = backslash == NULL ? string->end - at : (uint32_t)(backslash - data) - at;

        RON_ASSERT(run <= string->decoded_size - written);
        memcpy(out + written, data + at, run);
        written += run;
        at += run;
        if (at == string->end)
            break;
        at += ron_json_escape_decode(data + at, bytes, &bytes_size);
        RON_ASSERT(bytes_size <= string->decoded_size - written);
        memcpy(out + written, bytes, bytes_size);
        written += bytes_size;
    }
    RON_ASSERT(written == string->decoded_size);
    RON_ASSERT(at == string->end);
}
