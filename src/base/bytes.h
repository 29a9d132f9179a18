/*
 * bytes.h - borrowed slices, growable buffers with a maximum, little- and big-endian access.
 *
 * A slice borrows: whoever made the bytes says how long they live. A buffer owns its bytes, is born
 * with the largest size it may ever reach, and answers RON_ERR_TOO_LARGE there.
 */
#ifndef RON_BASE_BYTES_H
#define RON_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "ron/types.h" /* struct ron_slice */

/* A slice of a string literal. */
#define RON_SLICE(literal) ((struct ron_slice){(const uint8_t *)("" literal), sizeof(literal) - 1})

/* printf arguments for "%.*s"; for text that is known to be printable and short. */
#define RON_SLICE_FMT(slice) (int)(slice).size, (const char *)(slice).data

static inline struct ron_slice ron_slice_of(const void *data, size_t size)
{
    return (struct ron_slice){(const uint8_t *)data, size};
}
static inline struct ron_slice ron_slice_text(const char *text)
{
    return (struct ron_slice){(const uint8_t *)text, strlen(text)};
}
static inline bool ron_slice_equal(struct ron_slice a, struct ron_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
/* Bytewise order, shorter first among equals: negative, 0 or positive. */
int ron_slice_compare(struct ron_slice a, struct ron_slice b);

/* A growable byte buffer. The members are read freely and changed only by the functions. */
struct ron_buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t size_max;      /* fixed at birth */
    enum ron_err failure; /* of the first refused append, until ron_buf_reset; RON_ERR_OK if none */
};

/* An empty buffer that may grow to size_max bytes. Allocates nothing yet; no failure. */
void ron_buf_init(struct ron_buf *buf, size_t size_max);
void ron_buf_fini(struct ron_buf *buf);  /* frees the bytes; the buffer may be initialised again */
void ron_buf_reset(struct ron_buf *buf); /* size 0, no failure; keeps the memory */

/* Make room for size more bytes. RON_ERR_TOO_LARGE beyond size_max, RON_ERR_NO_MEMORY. */
enum ron_err ron_buf_reserve(struct ron_buf *buf, size_t size,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* Append, or fail and change nothing but `failure`. */
enum ron_err ron_buf_append(struct ron_buf *buf, const void *data, size_t size,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Append and remember a failure instead of answering it: a writer makes many calls, then asks once
 * with ron_buf_check. After a failure further puts do nothing. */
void ron_buf_put(struct ron_buf *buf, const void *data, size_t size);
void ron_buf_put_byte(struct ron_buf *buf, uint8_t byte);
void ron_buf_put_text(struct ron_buf *buf, const char *text);
/* For short pieces: the formatted text must be below 512 bytes. */
void ron_buf_put_format(struct ron_buf *buf, const char *format, ...) RON_PRINTF(2, 3);
enum ron_err ron_buf_check(const struct ron_buf *buf, struct ron_errinfo *reterr) RON_MUST_USE;

static inline struct ron_slice ron_buf_slice(const struct ron_buf *buf)
{
    return (struct ron_slice){buf->data, buf->size};
}

/* Unaligned fixed-width access; the byte order is in the name. */
static inline uint16_t ron_load_le16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline uint32_t ron_load_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline uint64_t ron_load_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline void ron_store_le16(void *p, uint16_t v)
{
    memcpy(p, &v, sizeof(v));
}
static inline void ron_store_le32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof(v));
}
static inline void ron_store_le64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof(v));
}
static inline uint16_t ron_load_be16(const void *p)
{
    return __builtin_bswap16(ron_load_le16(p));
}
static inline uint32_t ron_load_be32(const void *p)
{
    return __builtin_bswap32(ron_load_le32(p));
}
static inline uint64_t ron_load_be64(const void *p)
{
    return __builtin_bswap64(ron_load_le64(p));
}
static inline void ron_store_be16(void *p, uint16_t v)
{
    ron_store_le16(p, __builtin_bswap16(v));
}
static inline void ron_store_be32(void *p, uint32_t v)
{
    ron_store_le32(p, __builtin_bswap32(v));
}
static inline void ron_store_be64(void *p, uint64_t v)
{
    ron_store_le64(p, __builtin_bswap64(v));
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ron runs on little-endian hosts");

#endif
