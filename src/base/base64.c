/*
 * base64.c - strict RFC 4648 base64. See base64.h.
 */
#include "base/base64.h"

#include "base/assert.h"

enum { VALID = 0x40 }; /* set in the value of every character of an alphabet */

#define SHARED_VALUES                                                                              \
    ['A'] = VALID + 0, ['B'] = VALID + 1, ['C'] = VALID + 2, ['D'] = VALID + 3, ['E'] = VALID + 4, \
    ['F'] = VALID + 5, ['G'] = VALID + 6, ['H'] = VALID + 7, ['I'] = VALID + 8, ['J'] = VALID + 9, \
    ['K'] = VALID + 10, ['L'] = VALID + 11, ['M'] = VALID + 12, ['N'] = VALID + 13,                \
    ['O'] = VALID + 14, ['P'] = VALID + 15, ['Q'] = VALID + 16, ['R'] = VALID + 17,                \
    ['S'] = VALID + 18, ['T'] = VALID + 19, ['U'] = VALID + 20, ['V'] = VALID + 21,                \
    ['W'] = VALID + 22, ['X'] = VALID + 23, ['Y'] = VALID + 24, ['Z'] = VALID + 25,                \
    ['a'] = VALID + 26, ['b'] = VALID + 27, ['c'] = VALID + 28, ['d'] = VALID + 29,                \
    ['e'] = VALID + 30, ['f'] = VALID + 31, ['g'] = VALID + 32, ['h'] = VALID + 33,                \
    ['i'] = VALID + 34, ['j'] = VALID + 35, ['k'] = VALID + 36, ['l'] = VALID + 37,                \
    ['m'] = VALID + 38, ['n'] = VALID + 39, ['o'] = VALID + 40, ['p'] = VALID + 41,                \
    ['q'] = VALID + 42, ['r'] = VALID + 43, ['s'] = VALID + 44, ['t'] = VALID + 45,                \
    ['u'] = VALID + 46, ['v'] = VALID + 47, ['w'] = VALID + 48, ['x'] = VALID + 49,                \
    ['y'] = VALID + 50, ['z'] = VALID + 51, ['0'] = VALID + 52, ['1'] = VALID + 53,                \
    ['2'] = VALID + 54, ['3'] = VALID + 55, ['4'] = VALID + 56, ['5'] = VALID + 57,                \
    ['6'] = VALID + 58, ['7'] = VALID + 59, ['8'] = VALID + 60, ['9'] = VALID + 61

static const uint8_t standard_values[256] = {SHARED_VALUES, ['+'] = VALID + 62, ['/'] = VALID + 63};
static const uint8_t url_values[256] = {SHARED_VALUES, ['-'] = VALID + 62, ['_'] = VALID + 63};

#define SHARED_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const struct form {
    const char *characters;
    const uint8_t *values;
    bool padded;
} forms[] = {
    [RON_BASE64_STANDARD] = {SHARED_CHARACTERS "+/", standard_values, true},
    [RON_BASE64_STANDARD_NO_PAD] = {SHARED_CHARACTERS "+/", standard_values, false},
    [RON_BASE64_URL] = {SHARED_CHARACTERS "-_", url_values, true},
    [RON_BASE64_URL_NO_PAD] = {SHARED_CHARACTERS "-_", url_values, false},
};
_Static_assert(RON_ARRAY_COUNT(forms) == RON_BASE64__MAX, "one row per form");

static const struct form *form_of(enum ron_base64 form)
{
    RON_ASSERT((unsigned)form < RON_BASE64__MAX);
    return &forms[form];
}

size_t ron_base64_encode(enum ron_base64 form, struct ron_slice bytes, char *text, size_t text_size)
{
    const struct form *f = form_of(form);
    const uint8_t *in = bytes.data;
    size_t left = bytes.size;
    char *out = text;

    RON_ASSERT(text_size > 0);
    RON_ASSERT(bytes.size <= (text_size - 1) / 4 * 3);
    for (; left >= 3; left -= 3, in += 3, out += 4) {
        uint32_t bits = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];

        out[0] = f->characters[bits >> 18];
        out[1] = f->characters[bits >> 12 & 63];
        out[2] = f->characters[bits >> 6 & 63];
        out[3] = f->characters[bits & 63];
    }
    if (left > 0) {
        uint32_t bits = (uint32_t)in[0] << 16 | (left == 2 ? (uint32_t)in[1] << 8 : 0);

        *out++ = f->characters[bits >> 18];
        *out++ = f->characters[bits >> 12 & 63];
        if (left == 2)
            *out++ = f->characters[bits >> 6 & 63];
        for (; f->padded && left < 3; left++)
            *out++ = '=';
    }
    *out = '\0';
    RON_ASSERT((size_t)(out - text) < text_size);
    return (size_t)(out - text);
}

/* How many bytes from the start are of the alphabet. */
static size_t count_characters(const struct form *f, struct ron_slice text)
{
    size_t i = 0;

    while (i < text.size && f->values[text.data[i]] != 0)
        i++;
    return i;
}

/* Check what follows the first data_size characters, all of them of the alphabet. */
static enum ron_err check_end(const struct form *f, struct ron_slice text, size_t data_size,
                              struct ron_errinfo *reterr)
{
    size_t partial = data_size % 4;
    size_t padding = f->padded && partial != 0 ? 4 - partial : 0;
    unsigned unused_bits = partial == 2 ? 15 : partial == 3 ? 3 : 0;

    if (data_size < text.size && (text.data[data_size] != '=' || !f->padded))
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: 0x%02x is not of the alphabet",
                        data_size, (unsigned)text.data[data_size]);
    if (partial == 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: a single character at the end",
                        data_size - 1);
    for (size_t i = data_size; i < data_size + padding; i++)
        if (i >= text.size || text.data[i] != '=')
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: '=' was expected", i);
    if (data_size + padding < text.size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: the end was expected",
                        data_size + padding);
    if (unused_bits != 0 && (f->values[text.data[data_size - 1]] & unused_bits) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: unused bits are not zero",
                        data_size - 1);
    return RON_ERR_OK;
}

static void decode(const uint8_t *values, struct ron_slice text, uint8_t *out)
{
    const uint8_t *in = text.data;
    size_t left = text.size;

    for (; left >= 4; left -= 4, in += 4, out += 3) {
        uint32_t bits = (values[in[0]] & 63u) << 18 | (values[in[1]] & 63u) << 12 |
                        (values[in[2]] & 63u) << 6 | (values[in[3]] & 63u);

        out[0] = (uint8_t)(bits >> 16);
        out[1] = (uint8_t)(bits >> 8);
        out[2] = (uint8_t)bits;
    }
    RON_ASSERT(left != 1);
    if (left == 0)
        return;
    uint32_t bits = (values[in[0]] & 63u) << 18 | (values[in[1]] & 63u) << 12;
    if (left == 3)
        bits |= (values[in[2]] & 63u) << 6;
    out[0] = (uint8_t)(bits >> 16);
    if (left == 3)
        out[1] = (uint8_t)(bits >> 8);
}

enum ron_err ron_base64_decode(enum ron_base64 form, struct ron_slice text, uint8_t *ret_bytes,
                               size_t bytes_size, size_t *ret_size, struct ron_errinfo *reterr)
{
    const struct form *f = form_of(form);
    size_t data_size = count_characters(f, text);
    size_t size = data_size / 4 * 3 + (data_size % 4 == 0 ? 0 : data_size % 4 - 1);
    enum ron_err err;

    RON_ASSERT(ret_size != NULL);
    RON_ASSERT(ret_bytes != NULL || bytes_size == 0);
    err = check_end(f, text, data_size, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (size > bytes_size)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%zu bytes of base64, at most %zu fit", size,
                        bytes_size);
    decode(f->values, ron_slice_of(text.data, data_size), ret_bytes);
    *ret_size = size;
    return RON_ERR_OK;
}
