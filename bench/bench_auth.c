/*
 * bench_auth.c - a token with six caveats: verified cold and from the cache, against the bare chain
 * of HMACs in OpenSSL (no decoding, no caveats, no key look-up). Aims: 6 us cold, 300 ns cached.
 */
#include <stdio.h>
#include <stdlib.h>

/* HMAC_CTX is the fastest door OpenSSL has to this; 3.0 calls it deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "auth/cache.h"
#include "auth/caveat.h"
#include "base/assert.h"
#include "base/b3.h"
#include "harness.h"

#define NOW_MS UINT64_C(1800000000000)

static const struct ron_slice caveats[] = {
    {(const uint8_t *)"tenant = 7", 10},
    {(const uint8_t *)"scope = wallet.read,wallet.transfer", 35},
    {(const uint8_t *)"account = acct_alice*", 21},
    {(const uint8_t *)"asset = roc", 11},
    {(const uint8_t *)"max_amount = 1000000", 20},
    {(const uint8_t *)"before = 2027-01-01T00:00:00Z", 29},
};

struct subject {
    struct auth_keyring *keyring;
    struct auth_cache *cache;
    struct ron_slice token;
    struct ron_slice identifier;
    uint8_t root[AUTH_KEY_SIZE];
    struct ron_sha256 signature; /* that OpenSSL must arrive at */
};

static void run_cold(void *context, uint64_t rounds)
{
    const struct subject *subject = context;
    struct auth_grant grant;

    for (uint64_t i = 0; i < rounds; i++) {
        enum ron_err err = auth_verify(subject->keyring, subject->token, &grant, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(&grant);
    }
}

static void run_cached(void *context, uint64_t rounds)
{
    const struct subject *subject = context;
    const struct auth_grant *grant = NULL;

    for (uint64_t i = 0; i < rounds; i++) {
        enum ron_err err = auth_cache_verify(subject->cache, subject->keyring, subject->token,
                                             &grant, NULL);

        RON_ASSERT(err == RON_ERR_OK);
        BENCH_USE(grant);
    }
}

static void run_blake3(void *context, uint64_t rounds)
{
    const struct subject *subject = context;

    for (uint64_t i = 0; i < rounds; i++) {
        struct ron_b3 hash = ron_b3(subject->token.data, subject->token.size);

        BENCH_USE(&hash);
    }
}

/* One HMAC into mac, whose old content may be the key; context and algorithm are made once. */
static void openssl_hmac(struct ron_slice key, struct ron_slice message, uint8_t *mac)
{
    static HMAC_CTX *ctx;
    static EVP_MD *sha256;
    unsigned size = 0;
    int good = 1;

    if (ctx == NULL) {
        ctx = HMAC_CTX_new();
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        RON_ASSERT(ctx != NULL);
        RON_ASSERT(sha256 != NULL);
    }
    good &= HMAC_Init_ex(ctx, key.data, (int)key.size, sha256, NULL);
    good &= HMAC_Update(ctx, message.data, message.size);
    good &= HMAC_Final(ctx, mac, &size);
    RON_ASSERT(good == 1);
}

static void openssl_chain(const struct subject *subject, struct ron_sha256 *ret)
{
    struct ron_slice chained = ron_slice_of(ret->bytes, sizeof(ret->bytes));

    openssl_hmac(RON_SLICE("macaroons-key-generator"),
                 ron_slice_of(subject->root, sizeof(subject->root)), ret->bytes);
    openssl_hmac(chained, subject->identifier, ret->bytes);
    for (size_t i = 0; i < RON_ARRAY_COUNT(caveats); i++)
        openssl_hmac(chained, caveats[i], ret->bytes);
}

static void run_openssl(void *context, uint64_t rounds)
{
    const struct subject *subject = context;
    struct ron_sha256 signature;

    for (uint64_t i = 0; i < rounds; i++) {
        openssl_chain(subject, &signature);
        BENCH_USE(&signature);
    }
}

static void prepare(struct subject *subject, char text[static AUTH_TOKEN_TEXT_SIZE],
                    uint8_t bytes[static AUTH_MACAROON_SIZE_MAX])
{
    struct auth_macaroon macaroon;
    struct ron_sha256 theirs;
    size_t size = 0;
    enum ron_err err = auth_keyring_new(NOW_MS, &subject->keyring, NULL);

    memset(subject->root, 7, sizeof(subject->root));
    if (err == RON_ERR_OK)
        err = auth_keyring_rotate_to(subject->keyring, RON_SLICE("k2"),
                                     ron_slice_of(subject->root, sizeof(subject->root)), NOW_MS,
                                     NULL);
    if (err == RON_ERR_OK)
        err = auth_keyring_mint(subject->keyring, caveats, RON_ARRAY_COUNT(caveats), NOW_MS, text,
                                &size, NULL);
    if (err == RON_ERR_OK)
        err = auth_macaroon_decode(ron_slice_of(text, size), bytes, &macaroon, NULL);
    if (err == RON_ERR_OK)
        err = auth_cache_new(1024, &subject->cache, NULL);
    if (err != RON_ERR_OK) {
        (void)fprintf(stderr, "bench_auth: %s\n", ron_err_text(err));
        exit(1);
    }
    subject->token = ron_slice_of(text, size);
    subject->identifier = macaroon.identifier;
    subject->signature = macaroon.signature;
    openssl_chain(subject, &theirs); /* both do the same work */
    RON_ASSERT(memcmp(theirs.bytes, subject->signature.bytes, sizeof(theirs.bytes)) == 0);
}

int main(int argc, char **argv)
{
    static char text[AUTH_TOKEN_TEXT_SIZE];
    static uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct subject subject = {0};
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    prepare(&subject, text, bytes);
    const struct bench_contestant contestants[] = {
        {.name = "ron, cold", .run = run_cold, .context = &subject},
        {.name = "ron, cached", .run = run_cached, .context = &subject},
        {.name = "BLAKE3 of the text", .run = run_blake3, .context = &subject},
        {.name = "OpenSSL, HMACs alone", .run = run_openssl, .context = &subject},
    };
    char title[96];
    (void)snprintf(title, sizeof(title), "Verify a token of %zu characters with 6 caveats",
                   subject.token.size);
    const struct bench_table table = {.title = title,
                                      .rival = "OpenSSL, HMACs alone",
                                      .contestants = contestants,
                                      .contestants_count = RON_ARRAY_COUNT(contestants)};
    bench_compare(&options, &table);
    subject.cache = auth_cache_free(subject.cache);
    subject.keyring = auth_keyring_free(subject.keyring);
    return 0;
}
