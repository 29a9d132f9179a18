/*
 * cbor_dump.h - what the CBOR reader gives, as one line of diagnostic notation.
 */
#ifndef RON_TESTS_CBOR_DUMP_H
#define RON_TESTS_CBOR_DUMP_H

#include "support.h"

#include <inttypes.h>

#include "base/cbor.h"

enum { CBOR_DUMP_SIZE_MAX = 1 << 20 };

static inline void cbor_put_hex(struct ron_buf *out, struct ron_slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        ron_buf_put_format(out, "%02x", bytes.data[i]);
}

static inline void cbor_put_integer(struct ron_buf *out, bool negative, uint64_t value)
{
    if (negative && value == UINT64_MAX)
        ron_buf_put_text(out, "-18446744073709551616");
    else if (negative)
        ron_buf_put_format(out, "-%" PRIu64, value + 1);
    else
        ron_buf_put_format(out, "%" PRIu64, value);
}

/* Write what the reader gives as one line of space-separated diagnostic notation. */
static inline enum ron_err cbor_dump(struct ron_slice input, struct ron_buf *out,
                                     struct ron_errinfo *reterr)
{
    struct ron_cbor_reader reader;
    struct ron_cbor_token token = {0};

    ron_cbor_reader_init(&reader, input);
    for (;;) {
        enum ron_err err = ron_cbor_next(&reader, &token, reterr);

        if (err != RON_ERR_OK)
            return err;
        switch (token.kind) {
        case RON_CBOR_UINT:
        case RON_CBOR_NEGINT:
            cbor_put_integer(out, token.kind == RON_CBOR_NEGINT, token.value);
            break;
        case RON_CBOR_BYTES:
            ron_buf_put_text(out, "h'");
            cbor_put_hex(out, token.bytes);
            ron_buf_put_text(out, "'");
            break;
        case RON_CBOR_TEXT:
            ron_buf_put_text(out, "\"");
            ron_buf_put(out, token.bytes.data, token.bytes.size);
            ron_buf_put_text(out, "\"");
            break;
        case RON_CBOR_ARRAY_BEGIN:
            ron_buf_put_format(out, "[%" PRIu64, token.value);
            break;
        case RON_CBOR_MAP_BEGIN:
            ron_buf_put_format(out, "{%" PRIu64, token.value);
            break;
        case RON_CBOR_ARRAY_END:
            ron_buf_put_text(out, "]");
            break;
        case RON_CBOR_MAP_END:
            ron_buf_put_text(out, "}");
            break;
        case RON_CBOR_FALSE:
        case RON_CBOR_TRUE:
        case RON_CBOR_NULL:
            ron_buf_put_text(out, ron_cbor_kind_name(token.kind));
            break;
        case RON_CBOR_END:
            assert_int_equal(token.offset, input.size);
            return RON_ERR_OK;
        case RON_CBOR__MAX:
            fail();
        }
        ron_buf_put_text(out, " ");
    }
}

#endif
