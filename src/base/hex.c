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

#define EACH_BYTE(value) ((value)*0x0101010101010101u)

/* The top bit of each byte that is one of a-f. Bytes are below 0x80, so no sum carries. */
static uint64_t letters_of(uint64_t v)
{
    const uint64_t from_a = v ^ EACH_BYTE(0x60u); /* 1 to 6 */

    return ~(from_a + EACH_BYTE(0x79u)) & (from_a + EACH_BYTE(0x7fu)) & EACH_BYTE(0x80u);
}

static bool are_eight_digits(const uint8_t *text)
{
    const uint64_t v = ron_load_le64(text);
    const uint64_t from_0 = v ^ EACH_BYTE(0x30u); /* 0 to 9 */

    if ((v & EACH_BYTE(0x80u)) != 0)
        return false;
    return ((~(from_0 + EACH_BYTE(0x76u)) & EACH_BYTE(0x80u)) | letters_of(v)) == EACH_BYTE(0x80u);
}

/* Four bytes of eight digits at once. */
static void decode_eight(const uint8_t *text, uint8_t *bytes)
{
    uint64_t v = ron_load_le64(text);

    v = (v & EACH_BYTE(0x0fu)) + (letters_of(v) >> 7) * 9; /* a nibble to each byte */
    v = (v << 4 | v >> 8) & 0x00ff00ff00ff00ffu;
    v = (v | v >> 8) & 0x0000ffff0000ffffu;
    ron_store_le32(bytes, (uint32_t)(v | v >> 16));
}

/* --- MANY digits at once: the size of most hashes' halves and of all binary ids ----------------
 */

enum { MANY = 32 };

#if defined(__SSE2__)
#include <emmintrin.h>

static __m128i load_16(const void *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

static void store_16(void *at, __m128i v)
{
    _mm_storeu_si128((__m128i *)at, v);
}

static __m128i digits_of(__m128i nibbles)
{
    const __m128i letters = _mm_cmpgt_epi8(nibbles, _mm_set1_epi8(9));

    return _mm_add_epi8(_mm_add_epi8(nibbles, _mm_set1_epi8('0')),
                        _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10)));
}

static void encode_many(const uint8_t *bytes, char *text)
{
    const __m128i v = load_16(bytes);
    const __m128i low = _mm_and_si128(v, _mm_set1_epi8(0x0f));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(0x0f));

    store_16(text, digits_of(_mm_unpacklo_epi8(high, low)));
    store_16(text + 16, digits_of(_mm_unpackhi_epi8(high, low)));
}

/* All bits of each byte that is a digit. Compared as signed: what is not ASCII is below them. */
static __m128i are_digits(__m128i v)
{
    const __m128i figures = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('0' - 1)),
                                          _mm_cmplt_epi8(v, _mm_set1_epi8('9' + 1)));
    const __m128i letters = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('a' - 1)),
                                          _mm_cmplt_epi8(v, _mm_set1_epi8('f' + 1)));

    return _mm_or_si128(figures, letters);
}

static bool are_many_digits(const uint8_t *text)
{
    return _mm_movemask_epi8(
               _mm_and_si128(are_digits(load_16(text)), are_digits(load_16(text + 16)))) == 0xffff;
}

/* Of sixteen digits: a byte to each 16 bits. */
static __m128i bytes_of(__m128i digits)
{
    const __m128i letters = _mm_cmpgt_epi8(digits, _mm_set1_epi8('9'));
    const __m128i nibbles = _mm_add_epi8(_mm_and_si128(digits, _mm_set1_epi8(0x0f)),
                                         _mm_and_si128(letters, _mm_set1_epi8(9)));

    return _mm_and_si128(_mm_or_si128(_mm_slli_epi16(nibbles, 4), _mm_srli_epi16(nibbles, 8)),
                         _mm_set1_epi16(0xff));
}

static void decode_many(const uint8_t *text, uint8_t *bytes)
{
    store_16(bytes, _mm_packus_epi16(bytes_of(load_16(text)), bytes_of(load_16(text + 16))));
}

#else

static void encode_many(const uint8_t *bytes, char *text)
{
    for (size_t i = 0; i < MANY; i += 8)
        encode_four(bytes + i / 2, text + i);
}

static bool are_many_digits(const uint8_t *text)
{
    return are_eight_digits(text) && are_eight_digits(text + 8) && are_eight_digits(text + 16) &&
           are_eight_digits(text + 24);
}

static void decode_many(const uint8_t *text, uint8_t *bytes)
{
    for (size_t i = 0; i < MANY; i += 8)
        decode_eight(text + i, bytes + i / 2);
}

#endif

size_t ron_hex_encode(struct ron_slice bytes, char *text, size_t text_size)
{
    static const char digits[] = "0123456789abcdef";
    size_t i = 0;

    RON_ASSERT(text_size > 0);
    RON_ASSERT(bytes.size <= (text_size - 1) / 2);
    for (; bytes.size - i >= MANY / 2; i += MANY / 2)
        encode_many(bytes.data + i, text + 2 * i);
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

    while (text.size - i >= MANY && are_many_digits(p + i))
        i += MANY;
    while (text.size - i >= 8 && are_eight_digits(p + i))
        i += 8;
    while (i < text.size && digit_values[p[i]] != 0)
        i++;
    return i;
}

enum ron_err ron_hex_decode(struct ron_slice text, uint8_t *ret_bytes, size_t bytes_size,
                            size_t *ret_size, struct ron_errinfo *reterr)
{
    size_t digits_count = count_hex_digits(text);
    size_t size = digits_count / 2;
    size_t i = 0;

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
    for (; size - i >= MANY / 2; i += MANY / 2)
        decode_many(text.data + 2 * i, ret_bytes + i);
    for (; size - i >= 4; i += 4)
        decode_eight(text.data + 2 * i, ret_bytes + i);
    for (; i < size; i++) {
        unsigned high = digit_values[text.data[2 * i]];
        unsigned low = digit_values[text.data[2 * i + 1]];

        ret_bytes[i] = (uint8_t)(high << 4 | (low & 15));
    }
    *ret_size = size;
    return RON_ERR_OK;
}
