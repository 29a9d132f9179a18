/*
 * fuzz_inflate.c - any bytes as a compressed body: the first says which coding and caps.
 *
 * Checks beyond "no crash": what comes out is within size and ratio, also after a refusal, and the
 * same when opened again.
 */
#include "base/assert.h"
#include "io/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ron_buf first, second;
    struct ron_slice bytes;
    size_t size_max, ratio_max;
    enum io_coding coding;
    enum ron_err err;

    if (size == 0)
        return 0;
    coding = (data[0] & 1) != 0 ? IO_CODING_ZSTD : IO_CODING_GZIP;
    size_max = (data[0] & 2) != 0 ? 100 : 1 << 20;
    ratio_max = (data[0] & 4) != 0 ? 1 : 20;
    bytes = ron_slice_of(data + 1, size - 1);
    ron_buf_init(&first, 1 << 20);
    ron_buf_init(&second, 1 << 20);
    err = io_inflate(coding, bytes, size_max, ratio_max, &first, NULL);
    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_MALFORMED || err == RON_ERR_TOO_LARGE ||
               err == RON_ERR_DECOMPRESS_RATIO);
    RON_ASSERT(first.size <= size_max);
    RON_ASSERT(first.size < ratio_max * (bytes.size + 1024 + 1));
    RON_ASSERT(io_inflate(coding, bytes, size_max, ratio_max, &second, NULL) == err);
    RON_ASSERT(ron_slice_equal(ron_buf_slice(&first), ron_buf_slice(&second)));
    ron_buf_fini(&first);
    ron_buf_fini(&second);
    return 0;
}
