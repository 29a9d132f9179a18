/*
 * fuzz_http.c - any bytes as requests, one behind the other on one connection.
 *
 * Checks beyond "no crash": scan, head and chunks judge alike in one piece and byte by byte; what a
 * head points to lies inside it; framing is said once; chunks give out no more than came in.
 */
#include "base/assert.h"
#include "io/http_chunk.h"
#include "io/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct ron_slice whole, struct ron_slice part)
{
    if (part.size == 0)
        return;
    RON_ASSERT(part.data >= whole.data);
    RON_ASSERT(part.data + part.size <= whole.data + whole.size);
}

/* No control byte survives in what is handed on. */
static void check_text(struct ron_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        RON_ASSERT(text.data[i] == '\t' || (text.data[i] >= ' ' && text.data[i] <= '~'));
}

static void check_head(struct ron_slice bytes, const struct http_head *head)
{
    RON_ASSERT(head->method <= HTTP_OTHER);
    RON_ASSERT(head->minor <= 1);
    RON_ASSERT(head->fields_count <= HTTP_HEADERS_MAX);
    check_inside(bytes, head->method_text);
    check_inside(bytes, head->target);
    check_inside(head->target, head->path);
    check_inside(head->target, head->query);
    check_inside(bytes, head->host);
    check_text(head->target);
    RON_ASSERT(head->path.size > 0);
    RON_ASSERT(head->path.data[0] == '/' || head->path.data[0] == '*');
    RON_ASSERT(memchr(head->path.data, '?', head->path.size) == NULL);
    for (size_t i = 0; i < head->fields_count; i++) {
        check_inside(bytes, head->fields[i].name);
        check_inside(bytes, head->fields[i].value);
        check_text(head->fields[i].name);
        check_text(head->fields[i].value);
        RON_ASSERT(head->fields[i].name.size > 0);
    }
    RON_ASSERT(!(head->chunked && head->has_length));
    RON_ASSERT(head->has_length || head->content_length == 0);
    RON_ASSERT(http_head_count(head, "content-length") == head->has_length);
    RON_ASSERT(http_head_count(head, "transfer-encoding") == head->chunked);
    RON_ASSERT(http_head_count(head, "host") == 1 || head->minor == 0);
}

static enum http_scan scan(struct ron_slice bytes, bool whole, size_t *ret_size)
{
    enum http_scan result = HTTP_SCAN_MORE;
    size_t scanned = 0;

    if (whole)
        return http_head_scan(bytes, &scanned, ret_size);
    for (size_t i = 1; i <= bytes.size && result == HTTP_SCAN_MORE; i++)
        result = http_head_scan(ron_slice_of(bytes.data, i), &scanned, ret_size);
    return result;
}

struct body {
    enum ron_err err;
    size_t used; /* of the bytes, up to the end or the failure */
    uint64_t hash, data_size;
    enum http_chunk_state state;
};

static struct body read_chunks(struct ron_slice bytes, size_t step)
{
    struct body body = {.hash = 14695981039346656037u};
    struct http_chunks chunks;

    http_chunks_init(&chunks);
    while (body.used < bytes.size && body.err == RON_ERR_OK && chunks.state != HTTP_CHUNK_DONE) {
        size_t most = bytes.size - body.used < step ? bytes.size - body.used : step;
        struct ron_slice piece = ron_slice_of(bytes.data + body.used, most);
        struct ron_slice part = {0};
        size_t used = 0;

        body.err = http_chunks_read(&chunks, piece, &used, &part, NULL);
        if (body.err != RON_ERR_OK)
            break;
        RON_ASSERT(used > 0 && used <= most);
        check_inside(piece, part);
        for (size_t i = 0; i < part.size; i++)
            body.hash = (body.hash ^ part.data[i]) * 1099511628211u;
        body.data_size += part.size;
        body.used += used;
    }
    RON_ASSERT(body.data_size == chunks.data_size);
    RON_ASSERT(body.data_size <= body.used || body.err != RON_ERR_OK);
    body.state = chunks.state;
    return body;
}

/* The size of the chunked body, 0 when it is bad or does not end. */
static size_t check_chunks(struct ron_slice bytes)
{
    struct body whole = read_chunks(bytes, SIZE_MAX);
    struct body bytewise = read_chunks(bytes, 1);
    struct body sevens = read_chunks(bytes, 7);

    RON_ASSERT(whole.err == bytewise.err && whole.err == sevens.err);
    if (whole.err != RON_ERR_OK)
        return 0;
    RON_ASSERT(whole.state == bytewise.state && whole.state == sevens.state);
    RON_ASSERT(whole.used == bytewise.used && whole.used == sevens.used);
    RON_ASSERT(whole.hash == bytewise.hash && whole.hash == sevens.hash);
    return whole.state == HTTP_CHUNK_DONE ? whole.used : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_head head;
    struct ron_slice rest = ron_slice_of(data, size);

    (void)check_chunks(rest);
    while (rest.size > 0) {
        size_t head_size = 0;
        size_t bytewise_size = 0;
        size_t body_size = 0;
        enum http_scan result = scan(rest, true, &head_size);
        enum ron_err err;

        RON_ASSERT(scan(rest, false, &bytewise_size) == result);
        RON_ASSERT(bytewise_size == head_size);
        if (result != HTTP_SCAN_HEAD)
            return 0;
        RON_ASSERT(head_size >= 4 && head_size <= rest.size && head_size <= HTTP_HEAD_SIZE_MAX);
        err = http_head_parse(ron_slice_of(rest.data, head_size), &head, NULL);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_MALFORMED ||
                   err == RON_ERR_HEADERS_TOO_LARGE);
        if (err != RON_ERR_OK)
            return 0;
        check_head(ron_slice_of(rest.data, head_size), &head);
        rest = ron_slice_of(rest.data + head_size, rest.size - head_size);
        if (head.chunked)
            body_size = check_chunks(rest);
        else
            body_size = head.content_length < rest.size ? (size_t)head.content_length : rest.size;
        if (head.chunked && body_size == 0)
            return 0;
        rest = ron_slice_of(rest.data + body_size, rest.size - body_size);
    }
    return 0;
}
