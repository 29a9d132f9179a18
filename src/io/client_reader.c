/*
 * client_reader.c - a reply as it comes, piece by piece. See client_impl.h. Pure.
 */
#include "base/assert.h"
#include "io/client_impl.h"

void client_reader_init(struct client_reader *reader, enum http_method method,
                        struct io_client_reply *reply)
{
    *reader = (struct client_reader){.method = method, .stage = CLIENT_IN_HEAD};
    ron_buf_reset(&reply->head_bytes);
    ron_buf_reset(&reply->body_bytes);
}

static enum ron_err fail_scan(enum http_scan scan, struct ron_errinfo *reterr)
{
    if (scan == HTTP_SCAN_TOO_LARGE || scan == HTTP_SCAN_NO_LINE)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "reply: a head above %d bytes",
                        HTTP_HEAD_SIZE_MAX);
    return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: %s",
                    scan == HTTP_SCAN_BARE_LF ? "a line ends without CR" : "not HTTP");
}

static enum ron_err take_length(struct client_reader *reader, struct io_client_reply *reply,
                                struct ron_slice bytes, struct ron_errinfo *reterr)
{
    struct ron_buf *body = &reply->body_bytes;
    uint64_t length = reply->head.framing == HTTP_NO_BODY ? 0 : reply->head.content_length;
    enum ron_err err;

    if (length > body->size_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "reply: a body of %llu bytes, at most %zu",
                        (unsigned long long)length, body->size_max);
    /* Bytes nobody asked for: never reuse it. */
    if (bytes.size > length - body->size) {
        reader->keep = false;
        bytes.size = (size_t)(length - body->size);
    }
    err = ron_buf_append(body, bytes.data, bytes.size, reterr);
    if (err == RON_ERR_OK && body->size == length) {
        reply->body = ron_slice_of(body->data, (size_t)length);
        reader->stage = CLIENT_COMPLETE;
    }
    return err;
}

static enum ron_err take_chunks(struct client_reader *reader, struct io_client_reply *reply,
                                struct ron_slice bytes, struct ron_errinfo *reterr)
{
    size_t at = 0;

    while (at < bytes.size && reader->chunks.state != HTTP_CHUNK_DONE) {
        struct ron_slice data = {0};
        struct ron_errinfo info = {0};
        size_t used = 0;
        enum ron_err err = http_chunks_read(
            &reader->chunks, ron_slice_of(bytes.data + at, bytes.size - at), &used, &data, &info);

        if (err != RON_ERR_OK)
            return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: %s", info.message);
        at += used;
        err = ron_buf_append(&reply->body_bytes, data.data, data.size, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    if (reader->chunks.state == HTTP_CHUNK_DONE) {
        reader->keep = reader->keep && at == bytes.size;
        reply->body = ron_buf_slice(&reply->body_bytes);
        reader->stage = CLIENT_COMPLETE;
    }
    return RON_ERR_OK;
}

static enum ron_err take_body(struct client_reader *reader, struct io_client_reply *reply,
                              struct ron_slice bytes, struct ron_errinfo *reterr)
{
    if (reply->head.framing == HTTP_CHUNKED)
        return take_chunks(reader, reply, bytes, reterr);
    if (reply->head.framing == HTTP_UNTIL_CLOSE)
        return ron_buf_append(&reply->body_bytes, bytes.data, bytes.size, reterr);
    return take_length(reader, reply, bytes, reterr);
}

/* A head is whole at `size` bytes: the reply's own, or an interim one, which is read over. */
static enum ron_err take_head(struct client_reader *reader, struct io_client_reply *reply,
                              size_t size, struct ron_errinfo *reterr)
{
    struct ron_buf *bytes = &reply->head_bytes;
    const size_t rest_size = bytes->size - size;
    struct ron_errinfo info = {0};
    enum ron_err err = http_response_parse(ron_slice_of(bytes->data, size), reader->method,
                                           &reply->head, &info);

    if (err != RON_ERR_OK)
        return ron_fail(reterr,
                        err == RON_ERR_MALFORMED ? RON_ERR_UPSTREAM_UNAVAILABLE : RON_ERR_TOO_LARGE,
                        "reply: %s", info.message);
    reader->scanned = 0;
    if (reply->head.status >= 200) {
        reader->stage = CLIENT_IN_BODY;
        reader->keep = reply->head.keep_alive;
        http_chunks_init(&reader->chunks);
        return take_body(reader, reply, ron_slice_of(bytes->data + size, rest_size), reterr);
    }
    if (reader->interims_count++ == CLIENT_INTERIM_MAX)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "reply: more than %d interim heads",
                        CLIENT_INTERIM_MAX);
    memmove(bytes->data, bytes->data + size, rest_size);
    bytes->size = rest_size;
    return RON_ERR_OK;
}

enum ron_err client_reader_take(struct client_reader *reader, struct io_client_reply *reply,
                                struct ron_slice bytes, struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(reader->stage != CLIENT_COMPLETE);
    if (reader->stage == CLIENT_IN_BODY)
        return take_body(reader, reply, bytes, reterr);
    err = ron_buf_append(&reply->head_bytes, bytes.data, bytes.size, reterr);
    while (err == RON_ERR_OK && reader->stage == CLIENT_IN_HEAD) {
        size_t size = 0;
        enum http_scan scan = http_head_scan(ron_buf_slice(&reply->head_bytes), &reader->scanned,
                                             &size);

        if (scan == HTTP_SCAN_MORE)
            return RON_ERR_OK;
        err = scan == HTTP_SCAN_HEAD ? take_head(reader, reply, size, reterr)
                                     : fail_scan(scan, reterr);
    }
    return err;
}

enum ron_err client_reader_end(struct client_reader *reader, struct io_client_reply *reply,
                               struct ron_errinfo *reterr)
{
    RON_ASSERT(reader->stage != CLIENT_COMPLETE);
    if (reader->stage == CLIENT_IN_HEAD)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                        "the peer closed the connection before its reply");
    if (reply->head.framing != HTTP_UNTIL_CLOSE)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                        "reply: its body is cut after %zu bytes", reply->body_bytes.size);
    reader->keep = false;
    reply->body = ron_buf_slice(&reply->body_bytes);
    reader->stage = CLIENT_COMPLETE;
    return RON_ERR_OK;
}
