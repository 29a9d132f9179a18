/*
 * http_chunk.h - the chunked transfer coding, byte by byte.
 *
 * Strict like the head: CR LF everywhere, at most 8 hex digits, extensions read over but bounded,
 * trailers checked as fields and dropped. Pure; keeps a few bytes of state between calls.
 */
#ifndef RON_IO_HTTP_CHUNK_H
#define RON_IO_HTTP_CHUNK_H

#include "base/bytes.h"

enum {
    HTTP_CHUNK_LINE_MAX = 256,       /* a size line with its extension, or one trailer line */
    HTTP_CHUNK_OVERHEAD_MAX = 16384, /* all size lines and trailers of one body beyond its bytes, */
    HTTP_CHUNK_OVERHEAD_SHARE = 16,  /* plus this many times the bytes of the body */
};

enum http_chunk_state {
    HTTP_CHUNK_SIZE,    /* in a size line */
    HTTP_CHUNK_DATA,    /* in the bytes of a chunk */
    HTTP_CHUNK_END,     /* in the CR LF behind them */
    HTTP_CHUNK_TRAILER, /* in the lines behind the last chunk */
    HTTP_CHUNK_DONE,
};
struct http_chunks {
    enum http_chunk_state state;
    uint32_t left;      /* of the chunk */
    uint64_t data_size; /* given out so far */
    uint64_t overhead;  /* bytes that were not data */
    size_t line_size;
    uint8_t line[HTTP_CHUNK_LINE_MAX];
};
void http_chunks_init(struct http_chunks *chunks);

/* Read on. Takes *ret_used bytes of `bytes`; *ret_data (inside them) is the next piece of the body,
 * possibly empty. Stops at the end of a piece, so it is called until all bytes are used or state is
 * HTTP_CHUNK_DONE; bytes behind the end are left alone. RON_ERR_MALFORMED: the body is lost. */
enum ron_err http_chunks_read(struct http_chunks *chunks, struct ron_slice bytes, size_t *ret_used,
                              struct ron_slice *ret_data, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
