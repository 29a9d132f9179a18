/*
 * toml_scalar.c - booleans and integers of TOML, and the refusal of its other bare values. See
 * toml_impl.h.
 */
#include "base/assert.h"
#include "base/toml_impl.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Of any bare value, also of those that are refused. */
static bool is_scalar_character(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == ':';
}

/* Digits of the base, with single underscores between them. */
static bool is_digits(struct ron_slice text, unsigned base)
{
    bool digit_before = false;

    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;

        if (c == '_' ? !digit_before : digit >= base)
            return false;
        digit_before = c != '_';
    }
    return digit_before;
}

/* The magnitude of checked digits; false when it does not fit. */
static bool read_digits(struct ron_slice text, unsigned base, uint64_t *ret_magnitude)
{
    uint64_t magnitude = 0;

    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        unsigned digit = is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);

        if (c == '_')
            continue;
        RON_ASSERT(digit < base);
        if (__builtin_mul_overflow(magnitude, base, &magnitude) ||
            __builtin_add_overflow(magnitude, digit, &magnitude))
            return false;
    }
    *ret_magnitude = magnitude;
    return true;
}

enum integer_result { INTEGER_OK, INTEGER_NOT, INTEGER_BEYOND };

static enum integer_result read_integer(struct ron_slice text, int64_t *ret_value)
{
    bool is_signed = text.data[0] == '+' || text.data[0] == '-';
    bool negative = text.data[0] == '-';
    unsigned base = 10;
    uint64_t magnitude = 0;

    if (!is_signed && text.size > 2 && text.data[0] == '0') {
        base = text.data[1] == 'x' ? 16 : text.data[1] == 'o' ? 8 : text.data[1] == 'b' ? 2 : 10;
        if (base != 10)
            text = ron_slice_of(text.data + 2, text.size - 2);
    } else if (is_signed) {
        text = ron_slice_of(text.data + 1, text.size - 1);
    }
    if (!is_digits(text, base))
        return INTEGER_NOT;
    if (base == 10 && text.size > 1 && text.data[0] == '0')
        return INTEGER_NOT; /* leading zero */
    if (!read_digits(text, base, &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return INTEGER_BEYOND;
    *ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return INTEGER_OK;
}

/* 1979-05-27..., 07:32... */
static bool looks_like_date(struct ron_slice text)
{
    size_t digits_count = 0;

    while (digits_count < text.size && is_digit(text.data[digits_count]))
        digits_count++;
    if (digits_count == text.size)
        return false;
    return (digits_count == 4 && text.data[4] == '-') || (digits_count == 2 && text.data[2] == ':');
}

/* 1.5, 1e3, inf, nan, with or without a sign. */
static bool looks_like_float(struct ron_slice text)
{
    if (text.data[0] == '+' || text.data[0] == '-')
        text = ron_slice_of(text.data + 1, text.size - 1);
    if (ron_slice_equal(text, RON_SLICE("inf")) || ron_slice_equal(text, RON_SLICE("nan")))
        return true;
    if (text.size == 0 || !is_digit(text.data[0]))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '.' || text.data[i] == 'e' || text.data[i] == 'E')
            return true;
        if (!is_digit(text.data[i]) && text.data[i] != '_')
            return false;
    }
    return false;
}

static enum ron_err refuse_scalar(struct toml_lexer *lexer, struct ron_slice text,
                                  struct toml_position position, struct ron_errinfo *reterr)
{
    char shown[TOML_SHOWN_SIZE];

    if (looks_like_date(text))
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr,
                         "dates are not used in ron configuration: write a string");
    if (looks_like_float(text))
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr,
                         "floats are not used in ron configuration: write an integer, or a string "
                         "with a unit");
    return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr,
                     "%s is not a value: strings need quotes, integers no leading zero",
                     toml_shown_key(text, shown));
}

enum ron_err toml_read_scalar(struct toml_lexer *lexer, struct ron_toml_node *node,
                              struct ron_errinfo *reterr)
{
    struct toml_position position = toml_here(lexer);
    size_t start = lexer->at;
    struct ron_slice text;
    char shown[TOML_SHOWN_SIZE];
    int64_t value = 0;

    while (is_scalar_character(toml_peek(lexer)))
        lexer->at++;
    text = ron_slice_of(lexer->text.data + start, lexer->at - start);
    if (text.size == 0)
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr, "expected a value, found %s",
                         toml_shown_front(lexer, shown));
    if (ron_slice_equal(text, RON_SLICE("true")) || ron_slice_equal(text, RON_SLICE("false"))) {
        node->kind = RON_TOML_BOOLEAN;
        node->boolean = text.size == 4;
        return RON_ERR_OK;
    }
    switch (read_integer(text, &value)) {
    case INTEGER_OK:
        node->kind = RON_TOML_INTEGER;
        node->integer = value;
        return RON_ERR_OK;
    case INTEGER_BEYOND:
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr,
                         "the integer does not fit 64 bits with a sign");
    case INTEGER_NOT:
        break;
    }
    return refuse_scalar(lexer, text, position, reterr);
}
