/*
 * nasty_canon.h - JSON texts that are dear to bring into canonical form: everything unsorted, many
 * members, bytes that move once per level.
 */
#ifndef RON_TESTS_NASTY_CANON_H
#define RON_TESTS_NASTY_CANON_H

#include "base/limits.h"
#include "nasty.h"

/* Objects that are unsorted down to the deepest level, as often as they fit 1 MiB. */
static inline void nasty_canon_put_nests(struct ron_buf *buf)
{
    static const char *const nest[] = {"{\"z\":", "0", ",\"a\":1}"};

    ron_buf_put_byte(buf, '[');
    while (buf->size < NASTY_SIZE - 1000) {
        if (buf->size > 1)
            ron_buf_put_byte(buf, ',');
        for (int i = 1; i < RON_JSON_DEPTH_MAX; i++)
            ron_buf_put_text(buf, nest[0]);
        ron_buf_put_text(buf, nest[1]);
        for (int i = 1; i < RON_JSON_DEPTH_MAX; i++)
            ron_buf_put_text(buf, nest[2]);
    }
    ron_buf_put_byte(buf, ']');
}

/* All bytes inside as many unsorted objects as there are levels. */
static inline void nasty_canon_put_deep_bulk(struct ron_buf *buf)
{
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++)
        ron_buf_put_text(buf, "{\"z\":");
    ron_buf_put_byte(buf, '"');
    while (buf->size < NASTY_SIZE - 1000)
        ron_buf_put_text(buf, "xxxxxxxxxxxxxxxx");
    ron_buf_put_byte(buf, '"');
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++)
        ron_buf_put_text(buf, ",\"a\":1}");
}

/* One object with as many distinct names as fit 1 MiB, in no order. With an empty prefix they are
 * the shortest possible: most members, most to sort. */
static inline void nasty_canon_put_names(struct ron_buf *buf, const char *prefix)
{
    const uint32_t prime = 131071; /* below 51^3 */

    ron_buf_put_byte(buf, '{');
    for (uint32_t i = 0; i < prime && buf->size < NASTY_SIZE - 32; i++) {
        uint32_t number = (uint32_t)((uint64_t)i * 48271 % prime);

        ron_buf_put_format(buf, "%s\"%s%c%c%c\":0", i > 0 ? "," : "", prefix,
                           (char)('#' + number / 51 / 51), (char)('#' + number / 51 % 51),
                           (char)('#' + number % 51));
    }
    ron_buf_put_byte(buf, '}');
}

static inline void nasty_canon_put_short_names(struct ron_buf *buf)
{
    nasty_canon_put_names(buf, "");
}

static inline void nasty_canon_put_prefixed_names(struct ron_buf *buf)
{
    nasty_canon_put_names(buf, "0123456");
}

static inline void nasty_canon_put_long_names(struct ron_buf *buf)
{
    nasty_canon_put_names(buf,
                          "0123456789012345678901234567890123456789012345678901234567890123456789");
}

/* Most nodes at once: the shortest members in all open objects. */
static inline void nasty_canon_put_open_members(struct ron_buf *buf)
{
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++) {
        ron_buf_put_byte(buf, '{');
        for (char name = '~'; name > '\\'; name--)
            ron_buf_put_format(buf, "\"%c\":0,", name);
        ron_buf_put_text(buf, "\"\":");
    }
    ron_buf_put_byte(buf, '0');
    for (int i = 0; i < RON_JSON_DEPTH_MAX; i++)
        ron_buf_put_byte(buf, '}');
}

/* The short names, then the first one spelt otherwise. */
static inline void nasty_canon_put_late_duplicate(struct ron_buf *buf)
{
    nasty_canon_put_short_names(buf);
    buf->size--; /* the brace */
    ron_buf_put_text(buf, ",\"\\u0023##\":0}");
}

static const struct nasty_input nasty_canon_inputs[] = {
    {.name = "nests", .put = nasty_canon_put_nests, .accepted = true},
    {.name = "deep bulk", .put = nasty_canon_put_deep_bulk, .accepted = true},
    {.name = "short names", .put = nasty_canon_put_short_names, .accepted = true},
    {.name = "prefixed names", .put = nasty_canon_put_prefixed_names, .accepted = true},
    {.name = "long names", .put = nasty_canon_put_long_names, .accepted = true},
    {.name = "open members", .put = nasty_canon_put_open_members, .accepted = true},
    {.name = "late duplicate", .put = nasty_canon_put_late_duplicate},
};

enum { NASTY_CANON_COUNT = sizeof(nasty_canon_inputs) / sizeof(nasty_canon_inputs[0]) };

#endif
