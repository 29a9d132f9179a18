/*
 * printable.c - see printable.h.
 */
#include "base/printable.h"

#include "base/assert.h"

enum { ESCAPE_SIZE = 4, MARK_SIZE = 3 };

static size_t printed_size(uint8_t byte)
{
    return byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\' ? ESCAPE_SIZE : 1;
}

const char *ron_printable(struct ron_slice text, char *out, size_t out_size)
{
    static const char digits[] = "0123456789abcdef";
    size_t written = 0;
    size_t fitting = 0; /* bytes of text that leave room for the mark */
    size_t whole = 0;

    RON_ASSERT(out_size >= ESCAPE_SIZE + MARK_SIZE + 1);
    for (size_t i = 0; i < text.size && whole < out_size; i++) {
        whole += printed_size(text.data[i]);
        if (whole + MARK_SIZE < out_size)
            fitting = i + 1;
    }
    if (whole < out_size)
        fitting = text.size;
    for (size_t i = 0; i < fitting; i++) {
        uint8_t byte = text.data[i];

        if (printed_size(byte) == 1) {
            out[written++] = (char)byte;
        } else {
            out[written++] = '\\';
            out[written++] = 'x';
            out[written++] = digits[byte >> 4];
            out[written++] = digits[byte & 15];
        }
    }
    if (fitting < text.size) {
        memcpy(out + written, "...", MARK_SIZE);
        written += MARK_SIZE;
    }
    RON_ASSERT(written < out_size);
    out[written] = '\0';
    return out;
}
