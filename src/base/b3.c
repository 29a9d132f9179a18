/*
 * b3.c - BLAKE3. See b3.h.
 */
#include "base/b3.h"

#include "base/assert.h"
#include "base/hex.h"

_Static_assert(RON_B3_SIZE == BLAKE3_OUT_LEN, "digest size of the library");
_Static_assert(RON_B3_BLOCK_SIZE == BLAKE3_BLOCK_LEN, "block size of the library");
_Static_assert(RON_B3_KEY_SIZE == BLAKE3_KEY_LEN, "key size of the library");
_Static_assert(RON_B3_TEXT_SIZE == sizeof("b3:") + 2 * RON_B3_SIZE, "prefix, digits, NUL");

enum { PREFIX_SIZE = 3, DIGITS_COUNT = 2 * RON_B3_SIZE };

/* The library finds out about the processor on first use, in a plain global. Use it once before
 * main, so that no two threads do it at once. */
__attribute__((constructor)) static void b3_choose(void)
{
    (void)ron_b3(NULL, 0);
}

struct ron_b3 ron_b3(const void *data, size_t size)
{
    struct ron_b3_ctx ctx;

    ron_b3_init(&ctx);
    ron_b3_update(&ctx, data, size);
    return ron_b3_final(&ctx);
}

void ron_b3_init(struct ron_b3_ctx *ctx)
{
    blake3_hasher_init(&ctx->hasher);
}

void ron_b3_init_keyed(struct ron_b3_ctx *ctx, const uint8_t key[static RON_B3_KEY_SIZE])
{
    blake3_hasher_init_keyed(&ctx->hasher, key);
}

void ron_b3_init_derive(struct ron_b3_ctx *ctx, const char *context)
{
    RON_ASSERT(context[0] != '\0');
    blake3_hasher_init_derive_key(&ctx->hasher, context);
}

void ron_b3_update(struct ron_b3_ctx *ctx, const void *data, size_t size)
{
    RON_ASSERT(data != NULL || size == 0);
    if (size > 0)
        blake3_hasher_update(&ctx->hasher, data, size);
}

struct ron_b3 ron_b3_final(const struct ron_b3_ctx *ctx)
{
    struct ron_b3 hash;

    blake3_hasher_finalize(&ctx->hasher, hash.bytes, sizeof(hash.bytes));
    return hash;
}

void ron_b3_id16(struct ron_slice domain, struct ron_slice first, struct ron_slice second,
                 uint8_t ret_id[static RON_B3_ID_SIZE])
{
    const size_t head_size = domain.size + first.size;
    uint8_t block[BLAKE3_BLOCK_LEN];
    struct ron_b3_ctx ctx;

    RON_ASSERT(domain.size > 1);
    RON_ASSERT(domain.data[domain.size - 1] == '\0'); /* RON_B3_DOMAIN, not RON_SLICE */
    ron_b3_init(&ctx);
    if (head_size <= sizeof(block) && second.size <= sizeof(block) - head_size) {
        /* As a rule it is one block, and a piece of it costs the library more than its bytes. */
        memcpy(block, domain.data, domain.size);
        if (first.size > 0)
            memcpy(block + domain.size, first.data, first.size);
        if (second.size > 0)
            memcpy(block + head_size, second.data, second.size);
        ron_b3_update(&ctx, block, head_size + second.size);
    } else {
        ron_b3_update(&ctx, domain.data, domain.size);
        ron_b3_update(&ctx, first.data, first.size);
        ron_b3_update(&ctx, second.data, second.size);
    }
    blake3_hasher_finalize(&ctx.hasher, ret_id, RON_B3_ID_SIZE);
}

void ron_b3_print(const struct ron_b3 *hash, char text[static RON_B3_TEXT_SIZE])
{
    memcpy(text, "b3:", PREFIX_SIZE);
    (void)ron_hex_encode(ron_slice_of(hash->bytes, RON_B3_SIZE), text + PREFIX_SIZE,
                         RON_HEX_SIZE(RON_B3_SIZE));
}

/* 0..15, or -1. */
static int digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

enum ron_err ron_b3_parse(struct ron_slice text, struct ron_b3 *ret_hash,
                          struct ron_errinfo *reterr)
{
    struct ron_b3 hash = {{0}};

    if (text.size != PREFIX_SIZE + DIGITS_COUNT)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a b3 hash of %zu bytes, not %d", text.size,
                        PREFIX_SIZE + DIGITS_COUNT);
    if (memcmp(text.data, "b3:", PREFIX_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a b3 hash does not start with \"b3:\"");
    for (size_t i = 0; i < DIGITS_COUNT; i++) {
        int value = digit_value(text.data[PREFIX_SIZE + i]);

        if (value < 0)
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "byte %zu of a b3 hash is 0x%02x, not a lower-case hex digit",
                            PREFIX_SIZE + i, text.data[PREFIX_SIZE + i]);
        hash.bytes[i / 2] = (uint8_t)(hash.bytes[i / 2] << 4 | value);
    }
    *ret_hash = hash;
    return RON_ERR_OK;
}
