/*
 * bytes.c - slices and growable buffers. See bytes.h.
 */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"

enum { CAPACITY_MIN = 64 };

int ron_slice_compare(struct ron_slice a, struct ron_slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    if (order != 0)
        return order;
    return a.size < b.size ? -1 : a.size > b.size;
}

void ron_buf_init(struct ron_buf *buf, size_t size_max)
{
    RON_ASSERT(size_max > 0);
    RON_ASSERT(size_max <= RON_ALLOCATION_SIZE_MAX);
    *buf = (struct ron_buf){.size_max = size_max};
}

void ron_buf_fini(struct ron_buf *buf)
{
    buf->data = ron_mem_free(buf->data);
    buf->size = 0;
    buf->capacity = 0;
}

void ron_buf_reset(struct ron_buf *buf)
{
    buf->size = 0;
    buf->failure = RON_ERR_OK;
}

static void buf_check(const struct ron_buf *buf)
{
    RON_ASSERT(buf->size <= buf->capacity);
    RON_ASSERT(buf->capacity <= buf->size_max);
}

enum ron_err ron_buf_reserve(struct ron_buf *buf, size_t size, struct ron_errinfo *reterr)
{
    size_t capacity;
    uint8_t *data;

    buf_check(buf);
    if (size <= buf->capacity - buf->size)
        return RON_ERR_OK;
    if (size > buf->size_max - buf->size)
        return ron_fail(reterr, RON_ERR_TOO_LARGE,
                        "%zu bytes more than a buffer of at most %zu takes",
                        size - (buf->size_max - buf->size), buf->size_max);
    capacity = buf->capacity < CAPACITY_MIN ? CAPACITY_MIN : buf->capacity * 2;
    if (capacity < buf->size + size)
        capacity = buf->size + size;
    if (capacity > buf->size_max)
        capacity = buf->size_max;
    data = ron_mem_resize(buf->data, capacity);
    if (data == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a buffer of %zu bytes", capacity);
    buf->data = data;
    buf->capacity = capacity;
    buf_check(buf);
    return RON_ERR_OK;
}

enum ron_err ron_buf_append(struct ron_buf *buf, const void *data, size_t size,
                            struct ron_errinfo *reterr)
{
    enum ron_err err = ron_buf_reserve(buf, size, reterr);

    if (err != RON_ERR_OK) {
        if (buf->failure == RON_ERR_OK)
            buf->failure = err;
        return err;
    }
    if (size > 0)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    return RON_ERR_OK;
}

void ron_buf_put(struct ron_buf *buf, const void *data, size_t size)
{
    enum ron_err err;

    if (buf->failure != RON_ERR_OK)
        return;
    err = ron_buf_append(buf, data, size, NULL);
    RON_ASSERT(err == buf->failure);
}

void ron_buf_put_byte(struct ron_buf *buf, uint8_t byte)
{
    if (buf->failure == RON_ERR_OK && buf->size < buf->capacity)
        buf->data[buf->size++] = byte;
    else
        ron_buf_put(buf, &byte, 1);
}

void ron_buf_put_text(struct ron_buf *buf, const char *text)
{
    ron_buf_put(buf, text, strlen(text));
}

void ron_buf_put_format(struct ron_buf *buf, const char *format, ...)
{
    char text[512];
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    RON_ASSERT(size >= 0);
    RON_ASSERT((size_t)size < sizeof(text)); /* for short pieces; long ones go through put */
    ron_buf_put(buf, text, (size_t)size);
}

enum ron_err ron_buf_check(const struct ron_buf *buf, struct ron_errinfo *reterr)
{
    buf_check(buf);
    if (buf->failure == RON_ERR_OK)
        return RON_ERR_OK;
    return ron_fail(reterr, buf->failure, "output after %zu bytes, at most %zu", buf->size,
                    buf->size_max);
}
