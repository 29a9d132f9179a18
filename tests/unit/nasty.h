/*
 * nasty.h - texts of up to 1 MiB made to cost a reader memory or time: how a row becomes a text.
 * The rows are in nasty_json.h, nasty_canon.h, nasty_cbor.h and nasty_toml.h. The unit tests assert
 * verdict and memory, bench/bench_refuse.c the time.
 */
#ifndef RON_TESTS_NASTY_H
#define RON_TESTS_NASTY_H

#include "base/bytes.h"

enum { NASTY_SIZE = 1 << 20 };

/* A text is `open`, then `unit` as often as it fits (every % replaced by six base-62 digits
 * counting up, every ^ by 1,000 letters), then `close`; or what put writes. */
struct nasty_input {
    const char *name;
    const char *open;
    const char *unit;
    const char *close;
    bool accepted;
    void (*put)(struct ron_buf *buf);
};

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

/* Write the input's text into buf, whose size_max is larger than NASTY_SIZE. */
static inline void nasty_make(const struct nasty_input *input, struct ron_buf *buf)
{
    size_t unit_size = 0;
    size_t close_size;

    ron_buf_reset(buf);
    if (input->put != NULL) {
        input->put(buf);
        return;
    }
    close_size = strlen(input->close);
    ron_buf_put_text(buf, input->open);
    for (unsigned number = 0; buf->size + unit_size + close_size <= NASTY_SIZE; number++) {
        size_t before = buf->size;

        nasty_unit(buf, input->unit, number);
        unit_size = buf->size - before;
    }
    ron_buf_put_text(buf, input->close);
}

#endif
