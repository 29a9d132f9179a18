/*
 * b3.h - BLAKE3 digests, the ids cut from them, and their text form "b3:" + 64 hex digits.
 *
 * A thin layer over the official C implementation (its header, <blake3.h>, is included for the size
 * of a context). Allocates nothing, cannot fail. Digests of other data than secrets are compared
 * with memcmp; MACs with ron_equal_constant_time.
 */
#ifndef RON_BASE_B3_H
#define RON_BASE_B3_H

#include <blake3.h>

#include "base/bytes.h"

enum {
    RON_B3_SIZE = 32,
    RON_B3_KEY_SIZE = 32,
    RON_B3_ID_SIZE = 16,
    RON_B3_TEXT_SIZE = 68, /* "b3:", 64 digits and NUL */
    RON_B3_BLOCK_SIZE = 64,
    RON_B3_LANES_MAX = 16,
};

/* A digest. */
struct ron_b3 {
    uint8_t bytes[RON_B3_SIZE];
};

/* A hash under way: the caller's memory, no end needed. About 2 KB; copying one forks it. */
struct ron_b3_ctx {
    blake3_hasher hasher;
};

/* The digest of size bytes; data may be NULL if size is 0. Any thread. */
struct ron_b3 ron_b3(const void *data, size_t size);

/* In pieces: one init, any number of updates, final. Final changes nothing, so more may follow. */
void ron_b3_init(struct ron_b3_ctx *ctx);
/* A MAC under a key of 32 bytes. Wipe the context after use: it holds the key. */
void ron_b3_init_keyed(struct ron_b3_ctx *ctx, const uint8_t key[static RON_B3_KEY_SIZE]);
/* Key derivation: context is a constant string that names the purpose, the updates are the key. */
void ron_b3_init_derive(struct ron_b3_ctx *ctx, const char *context);
void ron_b3_update(struct ron_b3_ctx *ctx, const void *data, size_t size);
struct ron_b3 ron_b3_final(const struct ron_b3_ctx *ctx);

/* The domain of an id as a slice, its NUL included: RON_B3_DOMAIN("ron:account:v1"). */
#define RON_B3_DOMAIN(literal) ((struct ron_slice){(const uint8_t *)("" literal), sizeof(literal)})

/* The first 16 bytes of BLAKE3(domain || first || second). The parts are not delimited: all but the
 * last must have a fixed size or end in a byte that the next cannot start with. */
void ron_b3_id16(struct ron_slice domain, struct ron_slice first, struct ron_slice second,
                 uint8_t ret_id[static RON_B3_ID_SIZE]);

/* A message of at most one block. */
struct ron_b3_block {
    uint8_t bytes[RON_B3_BLOCK_SIZE];
};

/* The first 16 bytes of BLAKE3 of each of count messages, all of one size from 1 to a block; bytes
 * behind it count for nothing. Side by side where the processor can: a whole group of
 * RON_B3_LANES_MAX takes little longer than two alone. ret_ids overlaps no block. */
void ron_b3_ids16(const struct ron_b3_block *blocks, size_t count, size_t size,
                  uint8_t (*ret_ids)[RON_B3_ID_SIZE]);
/* How many are done at once: 16, 8 or 1. Having fewer is for tests and benchmarks, before threads
 * start; more than the processor can has no effect. */
unsigned ron_b3_lanes(void);
void ron_b3_use_lanes(unsigned count_max);

/* Write "b3:", 64 lower-case hex digits and a NUL. */
void ron_b3_print(const struct ron_b3 *hash, char text[static RON_B3_TEXT_SIZE]);
/* Read exactly that (without NUL), nothing looser. RON_ERR_MALFORMED says at which byte and why. */
enum ron_err ron_b3_parse(struct ron_slice text, struct ron_b3 *ret_hash,
                          struct ron_errinfo *reterr) RON_MUST_USE;

#endif
