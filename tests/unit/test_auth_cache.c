/*
 * test_auth_cache.c - the cache in front of verification. Method: whatever is like a token that it
 * knows, and is not it, must be refused; hits are counted.
 */
#include "auth/cache.h"

#include "support.h"

#define NOW_MS UINT64_C(1800000000000)

static char text[AUTH_TOKEN_TEXT_SIZE];

static struct auth_keyring *keyring_make(void)
{
    struct auth_keyring *keyring = NULL;

    assert_ok(auth_keyring_new(NOW_MS, &keyring, NULL));
    return keyring;
}

/* Mint with one or two caveats; the token lives until the next call. */
static struct ron_slice mint(const struct auth_keyring *keyring, const char *a, const char *b)
{
    struct ron_slice caveats[2] = {ron_slice_text(a),
                                   b == NULL ? RON_SLICE("") : ron_slice_text(b)};
    size_t size = 0;

    assert_ok(auth_keyring_mint(keyring, caveats, b == NULL ? 1 : 2, NOW_MS, text, &size, NULL));
    return ron_slice_of(text, size);
}

static void the_cache_remembers_and_revocation_empties_it(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_slice token = mint(keyring, "scope = wallet.read", NULL);
    const struct auth_grant *grant = NULL;
    struct auth_cache *cache = NULL;
    struct ron_errinfo info = {0};
    char ref[AUTH_IDENTIFIER_SIZE_MAX];
    size_t ref_size;

    (void)state;
    assert_ok(auth_cache_new(64, &cache, NULL));
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 1);
    assert_int_equal(auth_cache_misses(cache), 1);
    assert_int_equal(grant->scopes, AUTH_SCOPE_BIT(AUTH_SCOPE_WALLET_READ));
    ref_size = grant->ref_size;
    memcpy(ref, grant->ref, ref_size);
    assert_ok(auth_keyring_revoke_token(keyring, ron_slice_of(ref, ref_size), NOW_MS, NULL));
    support_assert_error(auth_cache_verify(cache, keyring, token, &grant, &info), &info,
                         RON_ERR_UNAUTHORIZED, "revoked");
    assert_int_equal(auth_cache_hits(cache), 1);
    cache = auth_cache_free(cache);
    keyring = auth_keyring_free(keyring);
}

static void a_token_like_a_cached_one_is_verified_anew(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_slice token = mint(keyring, "scope = wallet.read", NULL);
    const struct auth_grant *grant = NULL;
    struct auth_cache *cache = NULL;

    (void)state;
    assert_ok(auth_cache_new(AUTH_CACHE_WAYS, &cache, NULL));
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    for (size_t i = 0; i < token.size; i++) {
        char saved = text[i];

        text[i] = saved == 'A' ? 'B' : 'A';
        if (auth_cache_verify(cache, keyring, token, &grant, NULL) == RON_ERR_OK)
            fail_msg("accepted with character %zu changed", i);
        text[i] = saved;
    }
    for (size_t size = 0; size < token.size; size++)
        assert_int_equal(auth_cache_verify(cache, keyring, ron_slice_of(text, size), &grant, NULL),
                         RON_ERR_UNAUTHORIZED);
    /* None of them pushed the good one out. */
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 1);
    cache = auth_cache_free(cache);
    keyring = auth_keyring_free(keyring);
}

/* What an attacker who sees a token's size, and parts of it, could make of them. */
static void no_other_order_of_a_cached_text_is_taken_for_it(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_slice token = mint(keyring, "scope = wallet.read", "tenant = 7");
    const struct auth_grant *grant = NULL;
    struct auth_cache *cache = NULL;
    char good[AUTH_TOKEN_TEXT_SIZE];

    (void)state;
    memcpy(good, text, token.size);
    assert_ok(auth_cache_new(AUTH_CACHE_WAYS, &cache, NULL));
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    for (size_t size = 8; size <= 32; size *= 2) {
        for (size_t i = 0; i + 2 * size <= token.size; i += size) {
            for (size_t j = i + size; j + size <= token.size; j += size) {
                memcpy(text + i, good + j, size);
                memcpy(text + j, good + i, size);
                if (memcmp(text, good, token.size) != 0 &&
                    auth_cache_verify(cache, keyring, token, &grant, NULL) == RON_ERR_OK)
                    fail_msg("accepted with %zu bytes at %zu and %zu exchanged", size, i, j);
                memcpy(text, good, token.size);
            }
        }
    }
    assert_ok(auth_cache_verify(cache, keyring, token, &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 1);
    cache = auth_cache_free(cache);
    keyring = auth_keyring_free(keyring);
}

static void texts_of_every_size_are_verified(void **state)
{
    enum { COUNT = 22 }; /* of caveats: longer than what is remembered */
    struct auth_keyring *keyring = keyring_make();
    const struct auth_grant *grant = NULL;
    struct ron_slice caveats[COUNT] = {RON_SLICE("scope = wallet.read")};
    struct auth_cache *cache = NULL;
    char account[160] = "account = ";
    bool hit = false, missed = false;
    size_t size = 0;

    (void)state;
    memset(account + 10, 'a', sizeof(account) - 10);
    assert_ok(auth_cache_new(AUTH_CACHE_WAYS, &cache, NULL));
    for (size_t i = 1; i < COUNT; i++) {
        const uint64_t hits_before = auth_cache_hits(cache);

        caveats[i] = ron_slice_of(account, sizeof(account)); /* the same says nothing new */
        assert_ok(auth_keyring_mint(keyring, caveats, i + 1, NOW_MS, text, &size, NULL));
        for (unsigned times = 0; times < 2; times++) {
            assert_ok(auth_cache_verify(cache, keyring, ron_slice_of(text, size), &grant, NULL));
            assert_true(auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT));
            assert_int_equal(grant->account.size, caveats[1].size - 10);
        }
        hit = hit || auth_cache_hits(cache) > hits_before;
        missed = missed || auth_cache_hits(cache) == hits_before;
        text[size / 2] ^= 1;
        assert_int_equal(auth_cache_verify(cache, keyring, ron_slice_of(text, size), &grant, NULL),
                         RON_ERR_UNAUTHORIZED);
    }
    assert_true(hit && missed);
    cache = auth_cache_free(cache);
    keyring = auth_keyring_free(keyring);
}

static void the_least_recently_used_goes_first(void **state)
{
    static char tokens[AUTH_CACHE_WAYS + 1][AUTH_TOKEN_TEXT_SIZE];
    struct auth_keyring *keyring = keyring_make();
    const struct auth_grant *grant = NULL;
    struct auth_cache *cache = NULL;

    (void)state;
    assert_ok(auth_cache_new(AUTH_CACHE_WAYS, &cache, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(tokens); i++) {
        (void)mint(keyring, "scope = wallet.read", NULL);
        memcpy(tokens[i], text, sizeof(tokens[i]));
    }
    for (size_t i = 0; i < AUTH_CACHE_WAYS; i++)
        assert_ok(auth_cache_verify(cache, keyring, ron_slice_text(tokens[i]), &grant, NULL));
    assert_ok(auth_cache_verify(cache, keyring, ron_slice_text(tokens[0]), &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 1);
    assert_ok(
        auth_cache_verify(cache, keyring, ron_slice_text(tokens[AUTH_CACHE_WAYS]), &grant, NULL));
    assert_ok(auth_cache_verify(cache, keyring, ron_slice_text(tokens[0]), &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 2); /* still there */
    assert_ok(auth_cache_verify(cache, keyring, ron_slice_text(tokens[1]), &grant, NULL));
    assert_int_equal(auth_cache_hits(cache), 2); /* was the oldest */
    cache = auth_cache_free(cache);
    keyring = auth_keyring_free(keyring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_remembers_and_revocation_empties_it),
        cmocka_unit_test(a_token_like_a_cached_one_is_verified_anew),
        cmocka_unit_test(no_other_order_of_a_cached_text_is_taken_for_it),
        cmocka_unit_test(texts_of_every_size_are_verified),
        cmocka_unit_test(the_least_recently_used_goes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
