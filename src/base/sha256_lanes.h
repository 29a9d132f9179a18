/*
 * sha256_lanes.h - SHA-256 of sixteen messages at once, each in a lane of a 512-bit vector.
 *
 * Where there is AVX-512 a block takes half as long so as by the SHA instructions two at a time,
 * which share one execution port. For who has many messages of one size: merkle_hash.c.
 */
#ifndef RON_BASE_SHA256_LANES_H
#define RON_BASE_SHA256_LANES_H

#include "base/sha256.h"

enum { RON_SHA256_LANES = 16, RON_SHA256_LANES_SIZE_MAX = 1024 };

/* Whether the processor can; switching it off is for tests and benchmarks, before threads start.
 * Switching on has no effect where it cannot. */
bool ron_sha256_has_lanes(void);
void ron_sha256_use_lanes(bool wanted);

/* The digests of count messages prefix || data, count a multiple of RON_SHA256_LANES. The data are
 * `size` bytes each, a multiple of RON_SHA256_BLOCK_SIZE up to RON_SHA256_LANES_SIZE_MAX, one after
 * the other; ret_digests may be their memory, else it overlaps nothing. Only where
 * ron_sha256_has_lanes. */
void ron_sha256_lanes(uint8_t prefix, const uint8_t *data, size_t size, size_t count,
                      struct ron_sha256 *ret_digests);

#endif
