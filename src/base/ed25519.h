/*
 * ed25519.h - Ed25519 (RFC 8032) over libsodium.
 *
 * A signing key is made of a seed of 32 random bytes and never leaves its ron_secret. Verification
 * is libsodium's strict one: canonical encodings only, no keys of small order.
 */
#ifndef RON_BASE_ED25519_H
#define RON_BASE_ED25519_H

#include "base/secret.h"

enum {
    RON_ED25519_SEED_SIZE = 32,
    RON_ED25519_PUBLIC_SIZE = 32,
    RON_ED25519_SIGNATURE_SIZE = 64,
};

/* The public key of a seed, which must be of RON_ED25519_SEED_SIZE bytes. */
void ron_ed25519_public(const struct ron_secret *seed, uint8_t ret_key[RON_ED25519_PUBLIC_SIZE]);
/* Deterministic: the same seed and message give the same signature. */
void ron_ed25519_sign(const struct ron_secret *seed, struct ron_slice message,
                      uint8_t ret_signature[RON_ED25519_SIGNATURE_SIZE]);
bool ron_ed25519_verify(const uint8_t key[RON_ED25519_PUBLIC_SIZE], struct ron_slice message,
                        const uint8_t signature[RON_ED25519_SIGNATURE_SIZE]) RON_MUST_USE;

#endif
