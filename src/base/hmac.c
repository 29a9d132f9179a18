/*
 * hmac.c - HMAC-SHA256 over prepared hash states. See hmac.h.
 */
#include "base/hmac.h"

#include "base/assert.h"
#include "base/secret.h"

enum { INNER_PAD = 0x36, OUTER_PAD = 0x5c };

void ron_hmac_key_init(struct ron_hmac_key *key, struct ron_slice bytes)
{
    static const uint32_t start_words[2][8] = {RON_SHA256_START, RON_SHA256_START};
    uint8_t blocks[2][RON_SHA256_BLOCK_SIZE];
    struct ron_sha256 digest;

    RON_ASSERT(bytes.data != NULL || bytes.size == 0);
    if (bytes.size > RON_SHA256_BLOCK_SIZE) {
        digest = ron_sha256(bytes.data, bytes.size);
        bytes = ron_slice_of(digest.bytes, sizeof(digest.bytes));
    }
    memset(blocks[0], INNER_PAD, sizeof(blocks[0]));
    memset(blocks[1], OUTER_PAD, sizeof(blocks[1]));
    for (size_t i = 0; i < bytes.size; i++) {
        blocks[0][i] ^= bytes.data[i];
        blocks[1][i] ^= bytes.data[i];
    }
    memcpy(key->words, start_words, sizeof(start_words));
    ron_sha256_blocks_two(key->words, (const uint8_t *const[2]){blocks[0], blocks[1]}, 1);
    ron_wipe(blocks, sizeof(blocks));
    if (bytes.data == digest.bytes)
        ron_wipe(&digest, sizeof(digest));
}

/* Go on from the state after the padded key. */
static void ctx_after_key(struct ron_sha256_ctx *ctx, const uint32_t words[static 8])
{
    memcpy(ctx->words, words, sizeof(ctx->words));
    ctx->size = RON_SHA256_BLOCK_SIZE;
}

struct ron_sha256 ron_hmac(const struct ron_hmac_key *key, const void *data, size_t size)
{
    struct ron_sha256_ctx ctx;
    struct ron_sha256 inner;

    ctx_after_key(&ctx, key->words[0]);
    ron_sha256_update(&ctx, data, size);
    inner = ron_sha256_final(&ctx);
    ctx_after_key(&ctx, key->words[1]);
    ron_sha256_update(&ctx, inner.bytes, sizeof(inner.bytes));
    return ron_sha256_final(&ctx);
}

struct ron_sha256 ron_hmac_once(struct ron_slice key_bytes, struct ron_slice message)
{
    struct ron_hmac_key key;
    struct ron_sha256 code;

    ron_hmac_key_init(&key, key_bytes);
    code = ron_hmac(&key, message.data, message.size);
    ron_wipe(&key, sizeof(key));
    return code;
}
