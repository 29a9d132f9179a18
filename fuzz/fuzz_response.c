/*
 * fuzz_response.c - any bytes as a reply: head, then body.
 *
 * Checks beyond "no crash": what is accepted has exactly one framing, its slices lie inside the
 * input, a head that passes is refused as soon as a bare LF stands in it, and chunks read in one
 * piece give what they give byte by byte.
 */
#include "base/assert.h"
#include "io/http_chunk.h"
#include "io/http_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct ron_slice slice, struct ron_slice whole)
{
    if (slice.size == 0)
        return;
    RON_ASSERT(slice.data >= whole.data);
    RON_ASSERT(slice.data + slice.size <= whole.data + whole.size);
}

/* The sum of what the chunks hold, read `step` bytes at a time; SIZE_MAX: refused. */
static size_t read_chunks(struct ron_slice bytes, size_t step, uint32_t *ret_sum)
{
    struct http_chunks chunks;
    size_t at = 0;
    size_t total = 0;

    *ret_sum = 0;
    http_chunks_init(&chunks);
    while (at < bytes.size && chunks.state != HTTP_CHUNK_DONE) {
        size_t size = bytes.size - at < step ? bytes.size - at : step;
        struct ron_slice piece = {0};
        size_t used = 0;

        if (http_chunks_read(&chunks, ron_slice_of(bytes.data + at, size), &used, &piece, NULL) !=
            RON_ERR_OK)
            return SIZE_MAX;
        RON_ASSERT(used > 0);
        for (size_t i = 0; i < piece.size; i++)
            *ret_sum = *ret_sum * 31 + piece.data[i];
        total += piece.size;
        at += used;
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ron_slice bytes = ron_slice_of(data, size);
    struct http_response response;
    struct ron_errinfo info = {0};
    size_t scanned = 0;
    size_t head_size = 0;
    uint32_t sums[2];
    enum ron_err err;

    if (http_head_scan(bytes, &scanned, &head_size) != HTTP_SCAN_HEAD)
        return 0;
    bytes.size = head_size;
    err = http_response_parse(bytes, HTTP_GET, &response, &info);
    if (err != RON_ERR_OK) {
        RON_ASSERT(err == RON_ERR_MALFORMED || err == RON_ERR_HEADERS_TOO_LARGE);
        RON_ASSERT(info.message[0] != '\0');
        return 0;
    }
    RON_ASSERT(response.status >= 100);
    RON_ASSERT(response.status <= 599);
    RON_ASSERT(response.fields_count <= HTTP_HEADERS_MAX);
    RON_ASSERT(!response.keep_alive || response.framing != HTTP_UNTIL_CLOSE);
    check_inside(response.reason, bytes);
    for (size_t i = 0; i < response.fields_count; i++) {
        check_inside(response.fields[i].name, bytes);
        check_inside(response.fields[i].value, bytes);
        RON_ASSERT(response.fields[i].name.size > 0);
    }
    RON_ASSERT(response.framing != HTTP_CHUNKED ||
               http_response_find(&response, "content-length") == NULL);
    if (response.framing == HTTP_CHUNKED) {
        struct ron_slice rest = ron_slice_of(data + head_size, size - head_size);

        size_t total = read_chunks(rest, SIZE_MAX, &sums[0]);

        RON_ASSERT(read_chunks(rest, 1, &sums[1]) == total);
        RON_ASSERT(total == SIZE_MAX || sums[0] == sums[1]);
    }
    return 0;
}
