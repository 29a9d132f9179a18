/*
 * utf8.c - well-formedness of UTF-8, ASCII sixteen bytes at a time. See utf8.h.
 */
#include "base/utf8.h"

#include "base/assert.h"

#define HIGH_BITS 0x8080808080808080u

/* Size of the well-formed sequence that starts at p and has left bytes to live in, else 0. The
 * second byte's range is what excludes overlong forms (E0, F0), surrogates (ED) and what lies
 * beyond U+10FFFF (F4); all other continuation bytes are 80..BF. */
static size_t sequence_size(const uint8_t *p, size_t left)
{
    uint8_t lead = p[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t size;

    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (size > left)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

bool ron_utf8_valid(struct ron_slice text, size_t *ret_bad_offset)
{
    size_t at = 0;

    RON_ASSERT(text.data != NULL || text.size == 0);
    while (at < text.size) {
        size_t size;

        if (text.size - at >= 16) {
            uint64_t first = ron_load_le64(text.data + at);
            uint64_t second = ron_load_le64(text.data + at + 8);

            if (((first | second) & HIGH_BITS) == 0) {
                at += 16;
                continue;
            }
        }
        /* Something in the next 16 bytes is not ASCII, or they are the last: step through them. */
        for (size_t stop = at + 16; at < stop && at < text.size; at += size) {
            size = sequence_size(text.data + at, text.size - at);
            if (size == 0) {
                if (ret_bad_offset != NULL)
                    *ret_bad_offset = at;
                return false;
            }
        }
        RON_ASSERT(at <= text.size);
    }
    return true;
}

size_t ron_utf8_encode(uint32_t code_point, uint8_t out[static RON_UTF8_SIZE_MAX])
{
    RON_ASSERT(ron_utf8_is_scalar(code_point));
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (uint8_t)(0xc0 | code_point >> 6);
        out[1] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code_point >> 12);
        out[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code_point & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code_point >> 18);
    out[1] = (uint8_t)(0x80 | (code_point >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code_point & 0x3f));
    return 4;
}
