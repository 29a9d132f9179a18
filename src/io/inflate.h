/*
 * inflate.h - compressed bodies, opened under two caps: size and ratio.
 *
 * A bomb is stopped while it grows: output is made piece by piece, and each piece is checked
 * against the size that is allowed and against ratio times the bytes read so far. Exactly one whole
 * stream; bytes behind it are refused.
 */
#ifndef RON_IO_INFLATE_H
#define RON_IO_INFLATE_H

#include "base/bytes.h"

enum io_coding { IO_CODING_NONE, IO_CODING_GZIP, IO_CODING_ZSTD };

/* The coding of a Content-Encoding value; false if it is not known. */
bool io_coding_find(struct ron_slice value, enum io_coding *ret_coding) RON_MUST_USE;

/* Append the opened bytes to buf. RON_ERR_TOO_LARGE beyond size_max, RON_ERR_DECOMPRESS_RATIO
 * beyond ratio_max times (the input + 1 KiB), RON_ERR_MALFORMED, RON_ERR_NO_MEMORY. */
enum ron_err io_inflate(enum io_coding coding, struct ron_slice bytes, size_t size_max,
                        size_t ratio_max, struct ron_buf *buf,
                        struct ron_errinfo *reterr) RON_MUST_USE;

/* Append the bytes as one zstd stream. RON_ERR_TOO_LARGE (buf), RON_ERR_NO_MEMORY. */
enum ron_err io_deflate_zstd(struct ron_slice bytes, struct ron_buf *buf,
                             struct ron_errinfo *reterr) RON_MUST_USE;

#endif
