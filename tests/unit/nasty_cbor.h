/*
 * nasty_cbor.h - CBOR items that are dear to read: many small items, many containers, and keys that
 * are equal up to their last byte.
 */
#ifndef RON_TESTS_NASTY_CBOR_H
#define RON_TESTS_NASTY_CBOR_H

#include "nasty.h"

enum {
    NASTY_CBOR_HEAD_SIZE = 5, /* of a length in four bytes */
    NASTY_CBOR_LONG_SIZE = NASTY_SIZE - NASTY_CBOR_HEAD_SIZE,
    NASTY_CBOR_KEY_SIZE = (NASTY_SIZE - 3) / 2 - NASTY_CBOR_HEAD_SIZE, /* two fill the text */
    NASTY_CBOR_PAIR_SIZE = 6,                                          /* of a short key and 0 */
    NASTY_CBOR_PAIRS_COUNT = NASTY_CBOR_LONG_SIZE / NASTY_CBOR_PAIR_SIZE,
};

/* A head with its argument in four bytes. */
static inline void nasty_cbor_put_head(struct ron_buf *buf, uint8_t initial, uint32_t argument)
{
    uint8_t bytes[4];

    ron_store_be32(bytes, argument);
    ron_buf_put_byte(buf, initial);
    ron_buf_put(buf, bytes, sizeof(bytes));
}

static inline void nasty_cbor_put_repeated(struct ron_buf *buf, uint8_t byte, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ron_buf_put_byte(buf, byte);
}

static inline void nasty_cbor_put_integers(struct ron_buf *buf)
{
    nasty_cbor_put_head(buf, 0x9a, NASTY_CBOR_LONG_SIZE);
    nasty_cbor_put_repeated(buf, 0x00, NASTY_CBOR_LONG_SIZE);
}

static inline void nasty_cbor_put_empty_arrays(struct ron_buf *buf)
{
    nasty_cbor_put_head(buf, 0x9a, NASTY_CBOR_LONG_SIZE);
    nasty_cbor_put_repeated(buf, 0x80, NASTY_CBOR_LONG_SIZE);
}

static inline void nasty_cbor_put_deep_arrays(struct ron_buf *buf)
{
    nasty_cbor_put_repeated(buf, 0x81, NASTY_SIZE);
}

/* {key: 0, key: 0} */
static inline void nasty_cbor_put_two_keys(struct ron_buf *buf, uint8_t last)
{
    ron_buf_put_byte(buf, 0xa2);
    for (int i = 0; i < 2; i++) {
        nasty_cbor_put_head(buf, 0x5a, NASTY_CBOR_KEY_SIZE);
        nasty_cbor_put_repeated(buf, 0x00, NASTY_CBOR_KEY_SIZE - 1);
        ron_buf_put_byte(buf, i == 0 ? 0 : last);
        ron_buf_put_byte(buf, 0x00);
    }
}

static inline void nasty_cbor_put_long_keys(struct ron_buf *buf)
{
    nasty_cbor_put_two_keys(buf, 1);
}

static inline void nasty_cbor_put_equal_keys(struct ron_buf *buf)
{
    nasty_cbor_put_two_keys(buf, 0);
}

/* {65536: 0, 65537: 0, ...}, the last key as given */
static inline void nasty_cbor_put_pairs(struct ron_buf *buf, uint32_t last)
{
    nasty_cbor_put_head(buf, 0xba, NASTY_CBOR_PAIRS_COUNT);
    for (uint32_t i = 0; i < NASTY_CBOR_PAIRS_COUNT; i++) {
        nasty_cbor_put_head(buf, 0x1a, i + 1 < NASTY_CBOR_PAIRS_COUNT ? 65536 + i : last);
        ron_buf_put_byte(buf, 0x00);
    }
}

static inline void nasty_cbor_put_many_keys(struct ron_buf *buf)
{
    nasty_cbor_put_pairs(buf, UINT32_MAX);
}

static inline void nasty_cbor_put_late_duplicate(struct ron_buf *buf)
{
    nasty_cbor_put_pairs(buf, 65536 + NASTY_CBOR_PAIRS_COUNT - 2);
}

static inline void nasty_cbor_put_almost_utf8(struct ron_buf *buf)
{
    nasty_cbor_put_head(buf, 0x7a, NASTY_CBOR_LONG_SIZE);
    for (size_t i = 0; i < NASTY_CBOR_LONG_SIZE / 2; i++)
        ron_buf_put_text(buf, "\xc3\xa9");
    ron_buf_put_byte(buf, 0xc3);
}

static const struct nasty_input nasty_cbor_inputs[] = {
    {.name = "integers", .put = nasty_cbor_put_integers, .accepted = true},
    {.name = "empty arrays", .put = nasty_cbor_put_empty_arrays, .accepted = true},
    {.name = "deep arrays", .put = nasty_cbor_put_deep_arrays},
    {.name = "two long keys", .put = nasty_cbor_put_long_keys, .accepted = true},
    {.name = "the same long key", .put = nasty_cbor_put_equal_keys},
    {.name = "many keys", .put = nasty_cbor_put_many_keys, .accepted = true},
    {.name = "a duplicate at the end", .put = nasty_cbor_put_late_duplicate},
    {.name = "almost UTF-8", .put = nasty_cbor_put_almost_utf8},
};

enum { NASTY_CBOR_COUNT = sizeof(nasty_cbor_inputs) / sizeof(nasty_cbor_inputs[0]) };
_Static_assert(NASTY_CBOR_LONG_SIZE % 2 == 1, "half a character is left over");

#endif
