/*
 * sha256_lanes.h - SHA-256 of sixteen messages at once, each in a lane of a 512-bit vector.
 *
 * Where there is AVX-512 a block takes half as long so as by the SHA instructions two at a time,
 * which share one execution port. For who has many messages of one size: merkle_hash.c.
 */
#ifndef RON_BASE_SHA256_LANES_H
#define RON_BASE_SHA256_LANES_H

#include "base/sha256.h"

enum { RON_SHA256_LANES = 16 };

/* Whether the processor can; switching it off is for tests and benchmarks, before threads start.
 * Switching on has no effect where it cannot. */
bool ron_sha256_has_lanes(void);
void ron_sha256_use_lanes(bool wanted);

/* The digests of messages of blocks_count whole blocks each, already padded. Only where
 * ron_sha256_has_lanes. */
void ron_sha256_lanes(const uint8_t *const messages[static RON_SHA256_LANES], size_t blocks_count,
                      struct ron_sha256 ret_digests[static RON_SHA256_LANES]);

#endif
