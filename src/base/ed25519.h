/*
 * ed25519.h - Ed25519 (RFC 8032) over libsodium.
 *
 * A signing key is a seed of 32 random bytes, or that and its public key behind it: expanded, it
 * signs in a third of the time. It never leaves its ron_secret. Verification is libsodium's strict
 * one: canonical encodings only, no keys of small order.
 */
#ifndef RON_BASE_ED25519_H
#define RON_BASE_ED25519_H

#include "base/secret.h"

enum {
    RON_ED25519_SEED_SIZE = 32,
    RON_ED25519_EXPANDED_SIZE = 64,
    RON_ED25519_PUBLIC_SIZE = 32,
    RON_ED25519_SIGNATURE_SIZE = 64,
};

/* Expand a key (one that is expanded is copied). RON_ERR_NO_MEMORY. */
enum ron_err ron_ed25519_expand(const struct ron_secret *key, struct ron_secret *ret_expanded,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Its public key. */
void ron_ed25519_public(const struct ron_secret *key, uint8_t ret_key[RON_ED25519_PUBLIC_SIZE]);
/* Deterministic: the same seed and message give the same signature. */
void ron_ed25519_sign(const struct ron_secret *key, struct ron_slice message,
                      uint8_t ret_signature[RON_ED25519_SIGNATURE_SIZE]);
bool ron_ed25519_verify(const uint8_t key[RON_ED25519_PUBLIC_SIZE], struct ron_slice message,
                        const uint8_t signature[RON_ED25519_SIGNATURE_SIZE]) RON_MUST_USE;

#endif
