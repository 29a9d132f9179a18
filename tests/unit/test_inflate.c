/*
 * test_inflate.c - compressed bodies. Method: packed here by the libraries themselves, opened and
 * compared; then cut at every byte, bent at every bit, and caps one below and at what is needed.
 */
#include "support.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "io/inflate.h"

enum { TEXT_SIZE = 100000, PACKED_MAX = 200000, SHORT_SIZE = 300 };

static uint8_t text[TEXT_SIZE];
static uint8_t packed[PACKED_MAX];

static const enum io_coding codings[] = {IO_CODING_GZIP, IO_CODING_ZSTD};

static size_t pack(enum io_coding coding, size_t size)
{
    if (coding == IO_CODING_GZIP) {
        z_stream stream = {.next_in = text, .avail_in = (uInt)size};

        assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                         Z_OK);
        stream.next_out = packed;
        stream.avail_out = PACKED_MAX;
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        assert_int_equal(deflateEnd(&stream), Z_OK);
        return PACKED_MAX - stream.avail_out;
    }
    size = ZSTD_compress(packed, PACKED_MAX, text, size, 3);
    assert_false(ZSTD_isError(size));
    return size;
}

/* Text that packs to about a third of itself. */
static void fill_text(unsigned seed)
{
    for (size_t i = 0; i < TEXT_SIZE; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = (uint8_t)("0123456789abcdef{},:"[(seed >> 16) % 7]);
    }
}

static enum ron_err open_all(enum io_coding coding, const uint8_t *bytes, size_t size,
                             size_t size_max, size_t ratio_max, struct ron_buf *buf)
{
    return io_inflate(coding, ron_slice_of(bytes, size), size_max, ratio_max, buf, NULL);
}

static void what_was_packed_is_opened(void **state)
{
    static const size_t sizes[] = {1, 2, 1000, 16383, 16384, 16385, TEXT_SIZE};

    (void)state;
    fill_text(1);
    for (size_t i = 0; i < RON_ARRAY_COUNT(codings); i++) {
        for (size_t j = 0; j < RON_ARRAY_COUNT(sizes); j++) {
            size_t size = pack(codings[i], sizes[j]);
            struct ron_buf buf;

            ron_buf_init(&buf, TEXT_SIZE + 10);
            ron_buf_put_text(&buf, "old");
            assert_ok(open_all(codings[i], packed, size, sizes[j], 20, &buf));
            assert_int_equal(buf.size, sizes[j] + 3);
            assert_memory_equal(buf.data + 3, text, sizes[j]);
            /* One byte less is one too few, whatever lay in the buffer before. */
            assert_int_equal(open_all(codings[i], packed, size, sizes[j] - 1, 20, &buf),
                             RON_ERR_TOO_LARGE);
            ron_buf_fini(&buf);
        }
    }
}

static void a_cut_stream_is_no_stream(void **state)
{
    (void)state;
    fill_text(2);
    for (size_t i = 0; i < RON_ARRAY_COUNT(codings); i++) {
        size_t size = pack(codings[i], SHORT_SIZE);
        struct ron_buf buf;

        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *exact = malloc(cut + 1); /* so that a read beyond the cut shows */

            assert_non_null(exact);
            memcpy(exact + 1, packed, cut);
            ron_buf_init(&buf, 10000);
            assert_int_equal(open_all(codings[i], exact + 1, cut, 10000, 20, &buf),
                             RON_ERR_MALFORMED);
            ron_buf_fini(&buf);
            free(exact);
        }
        packed[size] = 0;
        ron_buf_init(&buf, 10000);
        assert_int_equal(open_all(codings[i], packed, size + 1, 10000, 20, &buf),
                         RON_ERR_MALFORMED);
        ron_buf_fini(&buf);
    }
}

/* gzip has a checksum: a bent stream opens as what it was (a bit that says nothing, such as the
 * time in its head) or not at all. zstd has one only where asked for: caps hold all the same. */
static void a_bent_stream_stays_within_its_caps(void **state)
{
    (void)state;
    fill_text(3);
    for (size_t i = 0; i < RON_ARRAY_COUNT(codings); i++) {
        size_t size = pack(codings[i], SHORT_SIZE);

        for (size_t bit = 0; bit < size * 8; bit++) {
            struct ron_buf buf;
            enum ron_err err;

            packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
            ron_buf_init(&buf, 1000);
            err = open_all(codings[i], packed, size, 1000, 20, &buf);
            if (err == RON_ERR_OK && codings[i] == IO_CODING_GZIP)
                assert_true(buf.size == SHORT_SIZE && memcmp(buf.data, text, SHORT_SIZE) == 0);
            else
                assert_true(err == RON_ERR_OK || err == RON_ERR_MALFORMED ||
                            err == RON_ERR_TOO_LARGE || err == RON_ERR_DECOMPRESS_RATIO);
            assert_true(buf.size <= 1000);
            ron_buf_fini(&buf);
            packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

static void bombs_are_stopped_while_they_grow(void **state)
{
    (void)state;
    memset(text, '0', sizeof(text));
    for (size_t i = 0; i < RON_ARRAY_COUNT(codings); i++) {
        size_t size = pack(codings[i], TEXT_SIZE);
        struct ron_buf buf;

        assert_true(size < 200);
        ron_buf_init(&buf, TEXT_SIZE);
        assert_int_equal(open_all(codings[i], packed, size, TEXT_SIZE, 20, &buf),
                         RON_ERR_DECOMPRESS_RATIO);
        assert_true(buf.size <= 20 * (size + 1024) + 20);
        ron_buf_reset(&buf);
        assert_ok(open_all(codings[i], packed, size, TEXT_SIZE, 100, &buf));
        assert_int_equal(buf.size, TEXT_SIZE);
        ron_buf_fini(&buf);
    }
}

static void other_codings_are_not_known(void **state)
{
    enum io_coding coding = IO_CODING_ZSTD;

    (void)state;
    assert_true(io_coding_find(RON_SLICE("GZip"), &coding) && coding == IO_CODING_GZIP);
    assert_true(io_coding_find(RON_SLICE("zstd"), &coding) && coding == IO_CODING_ZSTD);
    assert_true(io_coding_find(RON_SLICE("identity"), &coding) && coding == IO_CODING_NONE);
    assert_false(io_coding_find(RON_SLICE("gzip, gzip"), &coding));
    assert_false(io_coding_find(RON_SLICE("x-gzip"), &coding));
    assert_false(io_coding_find(RON_SLICE("deflate"), &coding));
    assert_false(io_coding_find(RON_SLICE(""), &coding));
    assert_int_equal(coding, IO_CODING_NONE);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr)
{
    const size_t *size = context;
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, TEXT_SIZE);
    err = io_inflate(IO_CODING_GZIP, ron_slice_of(packed, *size), TEXT_SIZE, 20, &buf, reterr);
    ron_buf_fini(&buf);
    return err;
}

static void without_memory_nothing_is_opened(void **state)
{
    size_t size;

    (void)state;
    fill_text(4);
    size = pack(IO_CODING_GZIP, TEXT_SIZE);
    assert_true(support_fail_each_allocation(attempt, &size, 50) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_opened),
        cmocka_unit_test(a_cut_stream_is_no_stream),
        cmocka_unit_test(a_bent_stream_stays_within_its_caps),
        cmocka_unit_test(bombs_are_stopped_while_they_grow),
        cmocka_unit_test(other_codings_are_not_known),
        cmocka_unit_test(without_memory_nothing_is_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
