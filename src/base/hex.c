/*
 * hex.c - lower-case hexadecimal text. See hex.h.
 */
#include "base/hex.h"

#include "base/assert.h"

/* Value of a digit with VALID set, or 0. */
enum { VALID = 0x80 };
static const uint8_t digit_values[256] = {
    ['0'] = VALID + 0,  ['1'] = VALID + 1,  ['2'] = VALID + 2,  ['3'] = VALID + 3,
    ['4'] = VALID + 4,  ['5'] = VALID + 5,  ['6'] = VALID + 6,  ['7'] = VALID + 7,
    ['8'] = VALID + 8,  ['9'] = VALID + 9,  ['a'] = VALID + 10, ['b'] = VALID + 11,
    ['c'] = VALID + 12, ['d'] = VALID + 13, ['e'] = VALID + 14, ['f'] = VALID + 15,
};

/* Eight digits of four bytes at once. */
static void encode_four(const uint8_t *bytes, char *text)
{
    uint64_t v = ron_load_le32(bytes);

    v = (v | v << 16) & 0x0000ffff0000ffffu;
    v = (v | v << 8) & 0x00ff00ff00ff00ffu;      /* a byte to each 16 bits */
    v = (v >> 4 | v << 8) & 0x0f0f0f0f0f0f0f0fu; /* a nibble to each byte, the high one first */
    uint64_t letters = (v + 0x0606060606060606u) >> 4 & 0x0101010101010101u; /* 10 to 15 */
    /* No byte carries: the largest is 'f'. */
    ron_store_le64(text, v + 0x3030303030303030u + letters * ('a' - '0' - 10));
}

size_t ron_hex_encode(struct ron_slice bytes, char *text, size_t text_size)
{
    static const char digits[] = "0123456789abcdef";
    size_t i = 0;

    RON_ASSERT(text_size > 0);
    RON_ASSERT(bytes.size <= (text_size - 1) / 2);
    for (; bytes.size - i >= 4; i += 4)
        encode_four(bytes.data + i, text + 2 * i);
    for (; i < bytes.size; i++) {
        text[2 * i] = digits[bytes.data[i] >> 4];
        text[2 * i + 1] = digits[bytes.data[i] & 15];
    }
    text[2 * bytes.size] = '\0';
    return 2 * bytes.size;
}

/* How many bytes from the start are digits. */
static size_t count_hex_digits(struct ron_slice text)
{
    const uint8_t *p = text.data;
    size_t i = 0;

    while (text.size - i >= 4 && (digit_values[p[i]] & digit_values[p[i + 1]] &
                                  digit_values[p[i + 2]] & digit_values[p[i + 3]]) != 0)
        i += 4;
    while (i < text.size && digit_values[p[i]] != 0)
        i++;
    return i;
}

enum ron_err ron_hex_decode(struct ron_slice text, uint8_t *ret_bytes, size_t bytes_size,
                            size_t *ret_size, struct ron_errinfo *reterr)
{
    size_t digits_count = count_hex_digits(text);
    size_t size = digits_count / 2;

    RON_ASSERT(ret_size != NULL);
    RON_ASSERT(ret_bytes != NULL || bytes_size == 0);
    if (digits_count < text.size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: 0x%02x is not one of 0-9 and a-f",
                        digits_count, (unsigned)text.data[digits_count]);
    if (digits_count % 2 != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "byte %zu: the text ends, the second digit of a byte was expected",
                        digits_count);
    if (size > bytes_size)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%zu bytes of hex, at most %zu fit", size,
                        bytes_size);
    for (size_t i = 0; i < size; i++) {
        unsigned high = digit_values[text.data[2 * i]];
        unsigned low = digit_values[text.data[2 * i + 1]];

        ret_bytes[i] = (uint8_t)(high << 4 | (low & 15));
    }
    *ret_size = size;
    return RON_ERR_OK;
}
