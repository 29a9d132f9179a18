/*
 * ed25519.c - see ed25519.h.
 *
 * The expanded key (seed and public key) lives on the stack for one call and is wiped: deriving it
 * costs as much as a signature, a few tens of microseconds, once per checkpoint.
 */
#include "base/ed25519.h"

#include <sodium.h>

#include "base/assert.h"

_Static_assert(RON_ED25519_SEED_SIZE == crypto_sign_SEEDBYTES, "seed");
_Static_assert(RON_ED25519_PUBLIC_SIZE == crypto_sign_PUBLICKEYBYTES, "public key");
_Static_assert(RON_ED25519_SIGNATURE_SIZE == crypto_sign_BYTES, "signature");

static void expand(const struct ron_secret *seed, uint8_t ret_public[crypto_sign_PUBLICKEYBYTES],
                   uint8_t ret_key[crypto_sign_SECRETKEYBYTES])
{
    struct ron_slice bytes = ron_secret_expose(seed);

    RON_ASSERT(bytes.size == RON_ED25519_SEED_SIZE);
    RON_MUST_ZERO(crypto_sign_seed_keypair(ret_public, ret_key, bytes.data));
}

void ron_ed25519_public(const struct ron_secret *seed, uint8_t ret_key[RON_ED25519_PUBLIC_SIZE])
{
    uint8_t key[crypto_sign_SECRETKEYBYTES];

    expand(seed, ret_key, key);
    ron_wipe(key, sizeof(key));
}

void ron_ed25519_sign(const struct ron_secret *seed, struct ron_slice message,
                      uint8_t ret_signature[RON_ED25519_SIGNATURE_SIZE])
{
    uint8_t public_key[crypto_sign_PUBLICKEYBYTES];
    uint8_t key[crypto_sign_SECRETKEYBYTES];

    expand(seed, public_key, key);
    RON_MUST_ZERO(crypto_sign_detached(ret_signature, NULL, message.data, message.size, key));
    ron_wipe(key, sizeof(key));
}

bool ron_ed25519_verify(const uint8_t key[RON_ED25519_PUBLIC_SIZE], struct ron_slice message,
                        const uint8_t signature[RON_ED25519_SIGNATURE_SIZE])
{
    return crypto_sign_verify_detached(signature, message.data, message.size, key) == 0;
}
