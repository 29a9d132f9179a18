/*
 * inflate.c - gzip by zlib, zstd by libzstd, under caps. See inflate.h.
 */
#include "io/inflate.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/assert.h"
#include "io/http_head.h"

enum {
    PIECE_SIZE = 16384,
    RATIO_FREE_SIZE = 1024, /* what a short text may grow by, whatever its ratio */
    WINDOW_LOG_MAX = 23,    /* 8 MiB: what a zstd stream may ask for */
};

bool io_coding_find(struct ron_slice value, enum io_coding *ret_coding)
{
    if (http_text_is(value, "identity"))
        *ret_coding = IO_CODING_NONE;
    else if (http_text_is(value, "gzip"))
        *ret_coding = IO_CODING_GZIP;
    else if (http_text_is(value, "zstd"))
        *ret_coding = IO_CODING_ZSTD;
    else
        return false;
    return true;
}

struct caps {
    size_t size_max, ratio_max;
    size_t start; /* of the output in buf */
};

/* Take a piece of output after `used` bytes of input. */
static enum ron_err take(const struct caps *caps, size_t used, const uint8_t *piece, size_t size,
                         struct ron_buf *buf, struct ron_errinfo *reterr)
{
    size_t total = buf->size - caps->start + size;

    if (total > caps->size_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "the body inflates beyond %zu bytes",
                        caps->size_max);
    if (total / caps->ratio_max > used + RATIO_FREE_SIZE)
        return ron_fail(reterr, RON_ERR_DECOMPRESS_RATIO,
                        "the body inflates to more than %zu times its size", caps->ratio_max);
    return ron_buf_append(buf, piece, size, reterr);
}

static enum ron_err run_gzip(z_stream *stream, struct ron_slice bytes, const struct caps *caps,
                             struct ron_buf *buf, struct ron_errinfo *reterr)
{
    uint8_t piece[PIECE_SIZE];

    for (;;) {
        enum ron_err err;
        int result;

        stream->next_out = piece;
        stream->avail_out = sizeof(piece);
        result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "gzip");
        if (result != Z_OK && result != Z_STREAM_END)
            return ron_fail(reterr, RON_ERR_MALFORMED, "gzip: %s",
                            result == Z_BUF_ERROR ? "it ends too early" : "it is damaged");
        err = take(caps, bytes.size - stream->avail_in, piece, sizeof(piece) - stream->avail_out,
                   buf, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (result == Z_STREAM_END)
            return stream->avail_in == 0
                       ? RON_ERR_OK
                       : ron_fail(reterr, RON_ERR_MALFORMED, "gzip: bytes behind its end");
    }
}

static enum ron_err open_gzip(struct ron_slice bytes, const struct caps *caps, struct ron_buf *buf,
                              struct ron_errinfo *reterr)
{
    z_stream stream = {0};
    enum ron_err err;

    RON_ASSERT(bytes.size <= UINT32_MAX);
    if (inflateInit2(&stream, 15 + 16) != Z_OK) /* a gzip head, nothing else */
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "gzip");
    stream.next_in = (z_const Bytef *)(uintptr_t)bytes.data; /* zlib does not change it */
    stream.avail_in = (uInt)bytes.size;
    err = run_gzip(&stream, bytes, caps, buf, reterr);
    (void)inflateEnd(&stream);
    return err;
}

static enum ron_err run_zstd(ZSTD_DStream *stream, struct ron_slice bytes, const struct caps *caps,
                             struct ron_buf *buf, struct ron_errinfo *reterr)
{
    ZSTD_inBuffer in = {bytes.data, bytes.size, 0};
    uint8_t piece[PIECE_SIZE];

    for (;;) {
        ZSTD_outBuffer out = {piece, sizeof(piece), 0};
        size_t before = in.pos;
        size_t result = ZSTD_decompressStream(stream, &out, &in);
        enum ron_err err;

        if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "zstd");
        if (ZSTD_isError(result))
            return ron_fail(reterr, RON_ERR_MALFORMED, "zstd: %s", ZSTD_getErrorName(result));
        err = take(caps, in.pos, piece, out.pos, buf, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (result == 0)
            return in.pos == in.size
                       ? RON_ERR_OK
                       : ron_fail(reterr, RON_ERR_MALFORMED, "zstd: bytes behind its end");
        if (out.pos == 0 && in.pos == before)
            return ron_fail(reterr, RON_ERR_MALFORMED, "zstd: it ends too early");
    }
}

static enum ron_err open_zstd(struct ron_slice bytes, const struct caps *caps, struct ron_buf *buf,
                              struct ron_errinfo *reterr)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    enum ron_err err;

    if (stream == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "zstd");
    if (ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        err = ron_fail(reterr, RON_ERR_INTERNAL, "zstd: window");
    else
        err = run_zstd(stream, bytes, caps, buf, reterr);
    (void)ZSTD_freeDStream(stream);
    return err;
}

enum ron_err io_inflate(enum io_coding coding, struct ron_slice bytes, size_t size_max,
                        size_t ratio_max, struct ron_buf *buf, struct ron_errinfo *reterr)
{
    struct caps caps = {size_max, ratio_max, buf->size};

    RON_ASSERT(ratio_max > 0);
    if (bytes.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "the compressed body is empty");
    switch (coding) {
    case IO_CODING_NONE:
        return ron_buf_append(buf, bytes.data, bytes.size, reterr);
    case IO_CODING_GZIP:
        return open_gzip(bytes, &caps, buf, reterr);
    case IO_CODING_ZSTD:
        return open_zstd(bytes, &caps, buf, reterr);
    }
    RON_UNREACHABLE();
}

enum ron_err io_deflate_zstd(struct ron_slice bytes, struct ron_buf *buf,
                             struct ron_errinfo *reterr)
{
    enum { LEVEL = 1 }; /* on the way of every call: speed before size */
    ZSTD_CStream *stream = ZSTD_createCStream();
    ZSTD_inBuffer in = {bytes.data, bytes.size, 0};
    uint8_t piece[PIECE_SIZE];
    enum ron_err err = RON_ERR_OK;
    size_t left = 1;

    if (stream == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "zstd");
    if (ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, LEVEL)))
        err = ron_fail(reterr, RON_ERR_INTERNAL, "zstd: level %d", LEVEL);
    while (err == RON_ERR_OK && left != 0) {
        ZSTD_outBuffer out = {piece, sizeof(piece), 0};

        left = ZSTD_compressStream2(stream, &out, &in, ZSTD_e_end);
        err = ZSTD_isError(left)
                  ? ron_fail(reterr, RON_ERR_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(left))
                  : ron_buf_append(buf, piece, out.pos, reterr);
    }
    (void)ZSTD_freeCStream(stream);
    return err;
}
