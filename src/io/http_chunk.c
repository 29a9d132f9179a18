/*
 * http_chunk.c - the chunked transfer coding. See http_chunk.h.
 */
#include "io/http_chunk.h"

#include "base/assert.h"
#include "io/http_head.h"

enum { SIZE_DIGITS_MAX = 8 };

void http_chunks_init(struct http_chunks *chunks)
{
    memset(chunks, 0, sizeof(*chunks));
}

static int digit_of(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Collect one line up to its CR LF. *ret_whole: chunks->line holds it, without CR LF. A byte that
 * no line can hold is refused as soon as it comes, so that a bad line cannot make us wait. */
static enum ron_err collect_line(struct http_chunks *chunks, struct ron_slice bytes,
                                 size_t *ret_used, bool *ret_whole, struct ron_errinfo *reterr)
{
    size_t used = 0;

    *ret_whole = false;
    while (used < bytes.size && !*ret_whole) {
        uint8_t byte = bytes.data[used++];
        bool after_cr = chunks->line_size > 0 && chunks->line[chunks->line_size - 1] == '\r';

        if (after_cr != (byte == '\n'))
            return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: CR and LF apart",
                            (unsigned long long)chunks->data_size);
        if (after_cr) {
            chunks->line_size--;
            *ret_whole = true;
        } else if (chunks->line_size == HTTP_CHUNK_LINE_MAX) {
            return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: a line above %d bytes",
                            (unsigned long long)chunks->data_size, HTTP_CHUNK_LINE_MAX);
        } else {
            chunks->line[chunks->line_size++] = byte;
        }
    }
    chunks->overhead += used;
    if (chunks->overhead > HTTP_CHUNK_OVERHEAD_MAX + HTTP_CHUNK_OVERHEAD_SHARE * chunks->data_size)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "chunk at byte %llu: far more framing than bytes",
                        (unsigned long long)chunks->data_size);
    *ret_used = used;
    return RON_ERR_OK;
}

static enum ron_err read_size(struct http_chunks *chunks, struct ron_errinfo *reterr)
{
    size_t digits = 0;
    uint32_t size = 0;

    while (digits < chunks->line_size && digit_of(chunks->line[digits]) >= 0) {
        if (digits == SIZE_DIGITS_MAX)
            return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: a size above %d digits",
                            (unsigned long long)chunks->data_size, SIZE_DIGITS_MAX);
        size = size << 4 | (uint32_t)digit_of(chunks->line[digits++]);
    }
    if (digits == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: no size",
                        (unsigned long long)chunks->data_size);
    for (size_t i = digits; i < chunks->line_size; i++) {
        uint8_t byte = chunks->line[i];

        /* An extension starts with ';' at once: "bad whitespace" before it is refused. */
        if ((i == digits && byte != ';') || (byte != '\t' && (byte < ' ' || byte > '~')))
            return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: 0x%02x behind the size",
                            (unsigned long long)chunks->data_size, byte);
    }
    chunks->left = size;
    chunks->state = size == 0 ? HTTP_CHUNK_TRAILER : HTTP_CHUNK_DATA;
    return RON_ERR_OK;
}

static enum ron_err read_trailer(struct http_chunks *chunks, struct ron_errinfo *reterr)
{
    static const char *const forbidden[] = {"content-length", "transfer-encoding", "host",
                                            "authorization",  "content-encoding",  "connection"};
    struct http_field field;
    enum ron_err err;

    if (chunks->line_size == 0) {
        chunks->state = HTTP_CHUNK_DONE;
        return RON_ERR_OK;
    }
    err = http_field_parse(ron_slice_of(chunks->line, chunks->line_size), &field, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "trailer");
    for (size_t i = 0; i < RON_ARRAY_COUNT(forbidden); i++)
        if (http_text_is(field.name, forbidden[i]))
            return ron_fail(reterr, RON_ERR_MALFORMED, "trailer: %s does not belong there",
                            forbidden[i]);
    return RON_ERR_OK;
}

static enum ron_err read_line(struct http_chunks *chunks, struct ron_slice bytes, size_t *ret_used,
                              struct ron_errinfo *reterr)
{
    bool whole;
    enum ron_err err;

    if (chunks->state == HTTP_CHUNK_END && chunks->line_size == 0 && bytes.data[0] != '\r')
        return ron_fail(reterr, RON_ERR_MALFORMED, "chunk at byte %llu: longer than its size",
                        (unsigned long long)chunks->data_size);
    err = collect_line(chunks, bytes, ret_used, &whole, reterr);
    if (err != RON_ERR_OK || !whole)
        return err;
    if (chunks->state == HTTP_CHUNK_SIZE)
        err = read_size(chunks, reterr);
    else if (chunks->state == HTTP_CHUNK_TRAILER)
        err = read_trailer(chunks, reterr);
    else
        chunks->state = HTTP_CHUNK_SIZE;
    chunks->line_size = 0;
    return err;
}

enum ron_err http_chunks_read(struct http_chunks *chunks, struct ron_slice bytes, size_t *ret_used,
                              struct ron_slice *ret_data, struct ron_errinfo *reterr)
{
    size_t used = 0;
    size_t size = 0;
    enum ron_err err;

    while (used < bytes.size && chunks->state != HTTP_CHUNK_DATA &&
           chunks->state != HTTP_CHUNK_DONE) {
        size_t line_used = 0;

        err = read_line(chunks, ron_slice_of(bytes.data + used, bytes.size - used), &line_used,
                        reterr);
        if (err != RON_ERR_OK)
            return err;
        used += line_used;
    }
    if (chunks->state == HTTP_CHUNK_DATA) {
        size = bytes.size - used < chunks->left ? bytes.size - used : chunks->left;
        chunks->left -= (uint32_t)size;
        chunks->data_size += size;
        if (chunks->left == 0)
            chunks->state = HTTP_CHUNK_END;
    }
    *ret_data = ron_slice_of(bytes.data + used, size);
    *ret_used = used + size;
    return RON_ERR_OK;
}
