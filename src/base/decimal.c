/*
 * decimal.c - strict decimal text, eight digits a step in and two digits a step out. See decimal.h.
 */
#include "base/decimal.h"

#include "base/assert.h"
#include "base/limits.h"

enum {
    CHUNK_DIGITS = 19, /* the most digits that always fit 64 bits */
    U64_DIGITS = 20,
    U128_DIGITS = RON_DECIMAL_DIGITS_MAX,
};
_Static_assert(RON_DECIMAL_U64_SIZE == U64_DIGITS + 1, "20 digits and NUL");
_Static_assert(RON_DECIMAL_U128_SIZE == U128_DIGITS + 1, "39 digits and NUL");
_Static_assert(U128_DIGITS == 2 * CHUNK_DIGITS + 1, "two chunks and a digit");

static const uint64_t ten_to_19 = 10000000000000000000u;

/* Why a text is not a number of at most digits_max digits and at most max_text. Looks at no more
 * than digits_max bytes. */
static RON_COLD enum ron_err fail_decimal(struct ron_slice text, size_t digits_max,
                                          const char *max_text, struct ron_errinfo *reterr)
{
    size_t scan_size = text.size < digits_max ? text.size : digits_max;

    if (text.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte 0: empty, a digit was expected");
    for (size_t i = 0; i < scan_size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: 0x%02x is not a digit", i,
                            (unsigned)text.data[i]);
    if (text.data[0] == '0' && text.size > 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte 0: leading zero");
    return ron_fail(reterr, RON_ERR_MALFORMED, "byte %zu: out of range, the largest number is %s",
                    text.size > digits_max ? digits_max : digits_max - 1, max_text);
}

/* Eight digits at once, the first in the lowest byte. False if one of them is not a digit. */
static inline bool parse_eight(const uint8_t *digits, uint64_t *ret_value)
{
    uint64_t v = ron_load_le64(digits);

    /* High nibbles must be 3 before and after adding 6 to each byte. A byte so large that the
     * addition carries into its neighbour already fails the first half. */
    if ((v & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u ||
        ((v + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u)
        return false;
    v &= 0x0f0f0f0f0f0f0f0fu;
    v = (v * (1 + (10u << 8))) >> 8 & 0x00ff00ff00ff00ffu;    /* pairs */
    v = (v * (1 + (100u << 16))) >> 16 & 0x0000ffff0000ffffu; /* fours */
    *ret_value = (v * (1 + (UINT64_C(10000) << 32))) >> 32;   /* all eight */
    return true;
}

/* size digits, at most CHUNK_DIGITS, leading zeros allowed. False if one is not a digit. */
static inline bool parse_chunk(const uint8_t *digits, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;

    RON_ASSERT(size <= CHUNK_DIGITS);
    for (; size >= 8; digits += 8, size -= 8) {
        uint64_t eight;

        if (!parse_eight(digits, &eight))
            return false;
        value = value * 100000000 + eight;
    }
    for (; size > 0; digits++, size--) {
        unsigned digit = (unsigned)*digits - '0';

        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static inline bool has_leading_zero(struct ron_slice text)
{
    return text.data[0] == '0' && text.size > 1;
}

static bool parse_u64(struct ron_slice text, uint64_t *ret_value)
{
    uint64_t value;
    size_t head_size = text.size < CHUNK_DIGITS ? text.size : CHUNK_DIGITS;

    if (text.size == 0 || text.size > U64_DIGITS || has_leading_zero(text))
        return false;
    if (!parse_chunk(text.data, head_size, &value))
        return false;
    if (text.size > CHUNK_DIGITS) {
        unsigned digit = (unsigned)text.data[CHUNK_DIGITS] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

static bool parse_u128(struct ron_slice text, struct ron_u128 *ret_value)
{
    unsigned __int128 value;
    uint64_t head;
    uint64_t tail;

    if (text.size == 0 || text.size > U128_DIGITS || has_leading_zero(text))
        return false;
    if (text.size <= CHUNK_DIGITS) {
        if (!parse_chunk(text.data, text.size, &head))
            return false;
        *ret_value = ron_u128_of(head);
        return true;
    }
    size_t body_size = text.size < U128_DIGITS ? text.size : U128_DIGITS - 1;
    size_t head_size = body_size - CHUNK_DIGITS;
    if (!parse_chunk(text.data, head_size, &head) ||
        !parse_chunk(text.data + head_size, CHUNK_DIGITS, &tail))
        return false;
    value = (unsigned __int128)head * ten_to_19 + tail; /* below 10^38 */
    if (text.size == U128_DIGITS) {
        unsigned digit = (unsigned)text.data[U128_DIGITS - 1] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    ret_value->v = value;
    return true;
}

enum ron_err ron_decimal_parse_u64(struct ron_slice text, uint64_t *ret_value,
                                   struct ron_errinfo *reterr)
{
    RON_ASSERT(ret_value != NULL);
    if (RON_LIKELY(parse_u64(text, ret_value)))
        return RON_ERR_OK;
    return fail_decimal(text, U64_DIGITS, "18446744073709551615", reterr);
}

enum ron_err ron_decimal_parse_u128(struct ron_slice text, struct ron_u128 *ret_value,
                                    struct ron_errinfo *reterr)
{
    RON_ASSERT(ret_value != NULL);
    if (RON_LIKELY(parse_u128(text, ret_value)))
        return RON_ERR_OK;
    return fail_decimal(text, U128_DIGITS, "340282366920938463463374607431768211455", reterr);
}

#define PAIRS_OF(tens) \
    tens "0" tens "1" tens "2" tens "3" tens "4" tens "5" tens "6" tens "7" tens "8" tens "9"
static const char digit_pairs[] = PAIRS_OF("0") PAIRS_OF("1") PAIRS_OF("2") PAIRS_OF("3")
    PAIRS_OF("4") PAIRS_OF("5") PAIRS_OF("6") PAIRS_OF("7") PAIRS_OF("8") PAIRS_OF("9");
_Static_assert(sizeof(digit_pairs) == 201, "00 to 99");

/* Exactly count digits with leading zeros; the value must have no more. */
static void write_digits(char *text, uint64_t value, size_t count)
{
    while (count >= 2) {
        count -= 2;
        memcpy(text + count, digit_pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (count == 1) {
        text[0] = (char)('0' + value % 10);
        value /= 10;
    }
    RON_ASSERT(value == 0);
}

static size_t count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        0, /* so that 0 has one digit */
        10u,
        100u,
        1000u,
        10000u,
        100000u,
        1000000u,
        10000000u,
        100000000u,
        1000000000u,
        10000000000u,
        100000000000u,
        1000000000000u,
        10000000000000u,
        100000000000000u,
        1000000000000000u,
        10000000000000000u,
        100000000000000000u,
        1000000000000000000u,
        10000000000000000000u,
    };
    /* bits * log10(2), rounded down: right, or one too few, which the table settles. */
    size_t guess = ((size_t)(64 - __builtin_clzll(value | 1)) * 1233) >> 12;

    RON_ASSERT(guess < RON_ARRAY_COUNT(powers));
    return guess + (value >= powers[guess]);
}

size_t ron_decimal_print_u64(uint64_t value, char text[static RON_DECIMAL_U64_SIZE])
{
    size_t size = count_digits(value);

    RON_ASSERT(size <= U64_DIGITS);
    write_digits(text, value, size);
    text[size] = '\0';
    return size;
}

size_t ron_decimal_print_u128(struct ron_u128 value, char text[static RON_DECIMAL_U128_SIZE])
{
    size_t size = 0;

    if (value.v <= UINT64_MAX)
        return ron_decimal_print_u64((uint64_t)value.v, text);
    unsigned __int128 head = value.v / ten_to_19;
    uint64_t tail = (uint64_t)(value.v - head * ten_to_19);
    if (head >= ten_to_19) { /* 39 digits: the first is 1, 2 or 3 */
        unsigned first = (unsigned)(head / ten_to_19);

        RON_ASSERT(first <= 3);
        text[0] = (char)('0' + first);
        write_digits(text + 1, (uint64_t)(head - (unsigned __int128)first * ten_to_19),
                     CHUNK_DIGITS);
        size = 1 + CHUNK_DIGITS;
    } else {
        size = ron_decimal_print_u64((uint64_t)head, text);
    }
    write_digits(text + size, tail, CHUNK_DIGITS);
    size += CHUNK_DIGITS;
    RON_ASSERT(size <= U128_DIGITS);
    text[size] = '\0';
    return size;
}
