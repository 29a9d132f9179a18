/*
 * sha256.h - SHA-256 (FIPS 180-4) without allocation or set-up cost, for the Merkle log.
 *
 * Uses the processor's SHA instructions where there are any, else OpenSSL's block function. Short
 * messages are what ron hashes most, so nothing here looks up, locks or allocates. Contexts are the
 * caller's memory and need no end; wipe one that has seen a secret.
 */
#ifndef RON_BASE_SHA256_H
#define RON_BASE_SHA256_H

#include "base/bytes.h"

enum { RON_SHA256_BLOCK_SIZE = 64 }; /* the digest is struct ron_sha256 of ron/types.h */

/* A hash under way. Copying one forks it. */
struct ron_sha256_ctx {
    uint32_t words[8];
    uint64_t size; /* bytes so far; the last size % 64 of them wait in block */
    uint8_t block[RON_SHA256_BLOCK_SIZE];
};

/* The digest of size bytes; data may be NULL if size is 0. Any thread. */
struct ron_sha256 ron_sha256(const void *data, size_t size);

/* The digests of two messages of one size, side by side: little dearer than one of them. */
void ron_sha256_two(const uint8_t *const data[static 2], size_t size,
                    struct ron_sha256 ret_digests[static 2]);

/* The same in pieces: init, any number of updates, final. After final the context is spent. */
void ron_sha256_init(struct ron_sha256_ctx *ctx);
void ron_sha256_update(struct ron_sha256_ctx *ctx, const void *data, size_t size);
struct ron_sha256 ron_sha256_final(struct ron_sha256_ctx *ctx);

/* Underneath: compress whole blocks into the eight words of a state. The caller pads. `_two` works
 * on two independent messages at once, which takes little longer than one: the instructions wait
 * for their own results most of the time. */
#define RON_SHA256_START                                                                    \
    {                                                                                       \
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, \
            0x5be0cd19                                                                      \
    }
extern const uint32_t ron_sha256_constants[64]; /* of the rounds */
void ron_sha256_blocks(uint32_t words[static 8], const uint8_t *data, size_t blocks_count);
void ron_sha256_blocks_two(uint32_t words[static 2][8], const uint8_t *const data[static 2],
                           size_t blocks_count);
/* The eight words as a digest. Two words at a time, straight into place: a digest that is copied
 * from smaller stores waits for them. */
static inline void ron_sha256_store(struct ron_sha256 *ret_digest, const uint32_t words[static 8])
{
    for (size_t i = 0; i < 4; i++)
        ron_store_be64(ret_digest->bytes + 8 * i, (uint64_t)words[2 * i] << 32 | words[2 * i + 1]);
}

/* Whether the processor's instructions are used; switching them off is for tests and benchmarks,
 * before threads start. Switching on has no effect where there are none. */
bool ron_sha256_is_hardware(void);
void ron_sha256_use_hardware(bool wanted);

#endif
