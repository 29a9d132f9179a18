/*
 * fuzz_cbor.c - any bytes into the CBOR reader.
 *
 * Checks beyond "no crash": what is accepted is canonical, so writing the tokens again gives the
 * input byte for byte; and skipping the whole item agrees with reading it.
 */
#include "base/assert.h"
#include "base/cbor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_SIZE_MAX = 1 << 20 };

static void put_head(struct ron_buf *out, unsigned major, uint64_t argument)
{
    unsigned size = argument < 24 ? 0 : argument < 0x100 ? 1 : argument < 0x10000 ? 2 : 4;
    unsigned info = argument < 24 ? (unsigned)argument : size == 1 ? 24 : size == 2 ? 25 : 26;

    if (argument > UINT32_MAX) {
        size = 8;
        info = 27;
    }
    ron_buf_put_byte(out, (uint8_t)(major << 5 | info));
    for (unsigned i = size; i-- > 0;)
        ron_buf_put_byte(out, (uint8_t)(argument >> (8 * i)));
}

static void put_token(struct ron_buf *out, const struct ron_cbor_token *token)
{
    static const int majors[] = {
        [RON_CBOR_UINT] = 0,      [RON_CBOR_NEGINT] = 1,      [RON_CBOR_BYTES] = 2,
        [RON_CBOR_TEXT] = 3,      [RON_CBOR_ARRAY_BEGIN] = 4, [RON_CBOR_ARRAY_END] = -1,
        [RON_CBOR_MAP_BEGIN] = 5, [RON_CBOR_MAP_END] = -1,    [RON_CBOR_FALSE] = 7,
        [RON_CBOR_TRUE] = 7,      [RON_CBOR_NULL] = 7,        [RON_CBOR_END] = -1,
    };
    uint64_t argument = token->value;

    if (majors[token->kind] < 0)
        return;
    if (majors[token->kind] == 7)
        argument = 20 + (uint64_t)(token->kind - RON_CBOR_FALSE);
    if (token->kind == RON_CBOR_BYTES || token->kind == RON_CBOR_TEXT)
        argument = token->bytes.size;
    put_head(out, (unsigned)majors[token->kind], argument);
    ron_buf_put(out, token->bytes.data, token->bytes.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ron_cbor_reader reader;
    struct ron_cbor_token token = {0};
    struct ron_errinfo info = {0};
    struct ron_slice raw = {0};
    static struct ron_buf out; /* made once: runs per second count */
    enum ron_err err;

    if (out.size_max == 0)
        ron_buf_init(&out, OUTPUT_SIZE_MAX);
    ron_buf_reset(&out);
    ron_cbor_reader_init(&reader, ron_slice_of(data, size));
    do {
        size_t before = reader.at;

        err = ron_cbor_next(&reader, &token, &info);
        RON_ASSERT(reader.at >= before);
        if (err == RON_ERR_OK)
            put_token(&out, &token);
    } while (err == RON_ERR_OK && token.kind != RON_CBOR_END);
    if (err == RON_ERR_OK && ron_buf_check(&out, NULL) == RON_ERR_OK)
        RON_ASSERT(ron_slice_equal(ron_buf_slice(&out), ron_slice_of(data, size)));
    if (err != RON_ERR_OK) {
        RON_ASSERT(err == RON_ERR_MALFORMED || err == RON_ERR_TOO_LARGE);
        RON_ASSERT(strstr(info.message, "at byte ") != NULL);
    }
    ron_cbor_reader_init(&reader, ron_slice_of(data, size));
    if (ron_cbor_skip(&reader, &raw, NULL) == RON_ERR_OK)
        RON_ASSERT((raw.size == size) == (err == RON_ERR_OK));
    else
        RON_ASSERT(err != RON_ERR_OK);
    return 0;
}
