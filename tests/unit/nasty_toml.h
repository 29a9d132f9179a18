/*
 * nasty_toml.h - TOML texts of the largest size: many keys, long paths in the index of keys, many
 * nodes, many escapes, deep nesting.
 */
#ifndef RON_TESTS_NASTY_TOML_H
#define RON_TESTS_NASTY_TOML_H

#include "base/limits.h"
#include "nasty.h"

_Static_assert(NASTY_SIZE == (int)RON_TOML_SIZE_MAX, "a larger text would be refused unread");

/* Each key far from the one before it in the index. */
static inline void nasty_toml_put_scattered_keys(struct ron_buf *buf)
{
    for (uint32_t i = 0; buf->size + 24 < NASTY_SIZE; i++)
        ron_buf_put_format(buf, "%x=1\n", (i * 0x9e3779b1u) >> 8);
}

/* Keys x, xx, xxx ... : each path in the index is as long as it can be. */
static inline void nasty_toml_put_growing_keys(struct ron_buf *buf)
{
    for (unsigned size = 1; buf->size + size + 3 <= NASTY_SIZE; size++) {
        for (unsigned i = 0; i < size; i++)
            ron_buf_put_byte(buf, 'x');
        ron_buf_put_text(buf, "=1\n");
    }
}

/* Those with more values than RON_TOML_NODES_MAX are refused for that. */
static const struct nasty_input nasty_toml_inputs[] = {
    {"many keys", "", "%=1\n", "", false},
    {"many dotted keys", "", "a.b.%=1\n", "", false},
    {"many tables", "", "[a.%]\n", "", false},
    {.name = "scattered keys", .put = nasty_toml_put_scattered_keys},
    {.name = "growing keys", .put = nasty_toml_put_growing_keys, .accepted = true},
    {"keys, common prefix", "", "^%=1\n", "", true},
    {"many elements", "a=[", "1,", "]", false},
    {"empty inline tables", "a=[", "{},", "]", false},
    {"array of tables", "", "[[a]]\n", "", false},
    {"all escapes", "a=\"", "\\n", "\"", true},
    {"all line continuations", "a=\"\"\"", "\\\n", "\"\"\"", true},
    {"no closing quotes", "a=\"\"\"", "\\u20ac\n", "\"\"", false},
    {"deep dotted key", "", "a.", "", false},
    {"digits", "a=", "9", "", false},
    {"deep arrays", "a=[", "[", "", false},
    {"comments", "", "#\n", "", true},
};

enum { NASTY_TOML_COUNT = sizeof(nasty_toml_inputs) / sizeof(nasty_toml_inputs[0]) };

#endif
