/*
 * hmac.h - HMAC-SHA256 (RFC 2104, FIPS 198-1) without allocation.
 *
 * A key is prepared once (two blocks, hashed side by side) and then used for any number of
 * messages. A prepared key is as secret as the key: wipe it after use. Codes are compared with
 * ron_equal_constant_time.
 */
#ifndef RON_BASE_HMAC_H
#define RON_BASE_HMAC_H

#include "base/sha256.h"

/* The hash states after the inner and the outer padded key. */
struct ron_hmac_key {
    uint32_t words[2][8];
};

/* Prepare a key of any size; one longer than a block is hashed first, as the RFC says. */
void ron_hmac_key_init(struct ron_hmac_key *key, struct ron_slice bytes);
/* The code of size bytes; data may be NULL if size is 0. Any thread. */
struct ron_sha256 ron_hmac(const struct ron_hmac_key *key, const void *data, size_t size);

/* Both steps for one message; leaves nothing of the key behind. */
struct ron_sha256 ron_hmac_once(struct ron_slice key_bytes, struct ron_slice message);

#endif
