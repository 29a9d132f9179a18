/*
 * nasty_json.h - JSON texts of up to 1 MiB made to cost a reader memory or time. Shared by the unit
 * test, which asserts the memory bound, and by bench/bench_json.c, which asserts the time.
 */
#ifndef RON_TESTS_NASTY_JSON_H
#define RON_TESTS_NASTY_JSON_H

#include "base/bytes.h"

enum { NASTY_SIZE = 1 << 20 };

/* A text is `open`, then `unit` as often as it fits (every % replaced by six base-62 digits
 * counting up, every ^ by 1,000 letters), then `close`. */
static const struct {
    const char *name;
    const char *open;
    const char *unit;
    const char *close;
    bool accepted;
} nasty_inputs[] = {
    {"deep arrays", "", "[", "", false},
    {"deep objects", "", "{\"\":", "", false},
    {"empty arrays", "[[]", ",[]", "]", true},
    {"empty objects", "[{}", ",{}", "]", true},
    {"one-member objects", "[0", ",{\"\":0}", "]", true},
    {"the same member", "{\"\":0", ",\"\":0", "}", false},
    {"members at 32 levels", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{\"\":0", ",\"%\":0",
     "}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", true},
    {"many members", "{\"\":0", ",\"%\":0", "}", true},
    {"many escaped members", "{\"\":0", ",\"%\\n\":\"\\n\"", "}", true},
    {"a duplicate at the end", "{\"\":0", ",\"%\":0", ",\"\":0}", false},
    {"members, common prefix", "{\"\":0", ",\"^%\":0", "}", true},
    {"members, escaped prefix", "{\"\":0", ",\"\\u0061^%\":0", "}", true},
    {"17-member objects", "[0",
     ",{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"k\":0,"
     "\"l\":0,\"m\":0,\"n\":0,\"o\":0,\"p\":0,\"q\":0}",
     "]", true},
    {"escaped strings", "[0", ",\"\\n\"", "]", true},
    {"one long escape", "\"\\n", "a", "\"", true},
    {"all NUL escapes", "\"", "\\u0000", "\"", true},
    {"all surrogate pairs", "\"", "\\ud83d\\ude00", "\"", true},
    {"no closing quote", "\"", "\\u20ac", "", false},
    {"escape and accent", "\"", "\\n\xc3\xa9", "\"", true},
    {"accents", "\"", "\xc3\xa9", "\"", true},
    {"almost UTF-8", "\"", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\"", false},
    {"digits", "", "1", "", false},
    {"long numbers", "[0", ",340282366920938463463374607431768211455", "]", true},
    {"white space", "", " \n", "0", true},
    {"spaced arrays", "[0", " , [ ] ", "]", true},
};

enum { NASTY_COUNT = sizeof(nasty_inputs) / sizeof(nasty_inputs[0]) };

static inline void nasty_unit(struct ron_buf *buf, const char *unit, unsigned number)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    for (; *unit != '\0'; unit++) {
        if (*unit == '%') {
            for (unsigned i = 0, left = number; i < 6; i++, left /= 62)
                ron_buf_put_byte(buf, (uint8_t)digits[left % 62]);
        } else if (*unit == '^') {
            for (unsigned i = 0; i < 1000; i++)
                ron_buf_put_byte(buf, (uint8_t)('a' + i % 26));
        } else {
            ron_buf_put_byte(buf, (uint8_t)*unit);
        }
    }
}

/* Write input number index into buf, whose size_max is larger than NASTY_SIZE. */
static inline void nasty_make(unsigned index, struct ron_buf *buf)
{
    size_t close_size = strlen(nasty_inputs[index].close);
    size_t unit_size = 0;

    ron_buf_reset(buf);
    ron_buf_put_text(buf, nasty_inputs[index].open);
    for (unsigned number = 0; buf->size + unit_size + close_size <= NASTY_SIZE; number++) {
        size_t before = buf->size;

        nasty_unit(buf, nasty_inputs[index].unit, number);
        unit_size = buf->size - before;
    }
    ron_buf_put_text(buf, nasty_inputs[index].close);
}

#endif
