/*
 * ed25519.c - see ed25519.h.
 *
 * An expanded key lives on the stack for one call and is wiped; to make one of a seed costs as much
 * as a signature.
 */
#include "base/ed25519.h"

#include <sodium.h>

#include "base/assert.h"

_Static_assert(RON_ED25519_SEED_SIZE == crypto_sign_SEEDBYTES, "seed");
_Static_assert(RON_ED25519_EXPANDED_SIZE == crypto_sign_SECRETKEYBYTES, "expanded key");
_Static_assert(RON_ED25519_PUBLIC_SIZE == crypto_sign_PUBLICKEYBYTES, "public key");
_Static_assert(RON_ED25519_SIGNATURE_SIZE == crypto_sign_BYTES, "signature");

static void expand(const struct ron_secret *key, uint8_t ret_key[crypto_sign_SECRETKEYBYTES])
{
    const struct ron_slice bytes = ron_secret_expose(key);
    uint8_t public_key[crypto_sign_PUBLICKEYBYTES];

    if (bytes.size == RON_ED25519_EXPANDED_SIZE) {
        memcpy(ret_key, bytes.data, RON_ED25519_EXPANDED_SIZE);
        return;
    }
    RON_ASSERT(bytes.size == RON_ED25519_SEED_SIZE);
    RON_MUST_ZERO(crypto_sign_seed_keypair(public_key, ret_key, bytes.data));
}

enum ron_err ron_ed25519_expand(const struct ron_secret *key, struct ron_secret *ret_expanded,
                                struct ron_errinfo *reterr)
{
    uint8_t bytes[crypto_sign_SECRETKEYBYTES];
    enum ron_err err;

    expand(key, bytes);
    err = ron_secret_init(ret_expanded, ron_slice_of(bytes, sizeof(bytes)), reterr);
    ron_wipe(bytes, sizeof(bytes));
    return err;
}

void ron_ed25519_public(const struct ron_secret *key, uint8_t ret_key[RON_ED25519_PUBLIC_SIZE])
{
    uint8_t bytes[crypto_sign_SECRETKEYBYTES];

    expand(key, bytes);
    memcpy(ret_key, bytes + RON_ED25519_SEED_SIZE, RON_ED25519_PUBLIC_SIZE);
    ron_wipe(bytes, sizeof(bytes));
}

void ron_ed25519_sign(const struct ron_secret *key, struct ron_slice message,
                      uint8_t ret_signature[RON_ED25519_SIGNATURE_SIZE])
{
    uint8_t bytes[crypto_sign_SECRETKEYBYTES];

    expand(key, bytes);
    RON_MUST_ZERO(crypto_sign_detached(ret_signature, NULL, message.data, message.size, bytes));
    ron_wipe(bytes, sizeof(bytes));
}

bool ron_ed25519_verify(const uint8_t key[RON_ED25519_PUBLIC_SIZE], struct ron_slice message,
                        const uint8_t signature[RON_ED25519_SIGNATURE_SIZE])
{
    return crypto_sign_verify_detached(signature, message.data, message.size, key) == 0;
}
