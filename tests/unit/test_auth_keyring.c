/*
 * test_auth_keyring.c - keys, rotation, revocation, minting, the text form. Nothing of a key or
 * token may stand in any message: a marker is looked for in all of them.
 */
#include "support.h"

#include <stdio.h>

#include "auth/caveat.h"
#include "auth/keyring.h"
#include "auth/verify.h"
#include "base/b3.h"
#include "base/hex.h"

#define NOW_MS UINT64_C(1800000000000)
#define MARKER "MARKERmarkerMARKERmarkerMARKER42" /* 32 bytes: a key */

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

static void a_minted_token_verifies(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct auth_grant grant;

    (void)state;
    assert_ok(
        auth_verify(keyring, mint(keyring, "scope = wallet.read", "tenant = 7"), &grant, NULL));
    assert_int_equal(grant.scopes, AUTH_SCOPE_BIT(AUTH_SCOPE_WALLET_READ));
    assert_true(grant.tenant.v == 7);
    assert_true(ron_slice_equal(auth_grant_kid(&grant), RON_SLICE("k1")));
    assert_false(grant.is_service);
    keyring = auth_keyring_free(keyring);
}

static void nothing_is_minted_that_allows_all_or_nothing(void **state)
{
    static const struct {
        const char *caveats[2];
        const char *text;
    } cases[] = {
        {{NULL, NULL}, "scope caveat is missing"},
        {{"tenant = 7", NULL}, "scope caveat is missing"},
        {{"scope = wallet.read", "scope = wallet.burn"}, "exclude each other"},
        {{"scope = wallet.read", "unknown = 1"}, "caveat 2"},
        {{"scope = wallet.reed", NULL}, "caveat 1"},
    };
    struct auth_keyring *keyring = keyring_make();

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {0};
        struct ron_slice caveats[2];
        size_t count = 0;
        size_t size = 0;

        for (; count < 2 && cases[i].caveats[count] != NULL; count++)
            caveats[count] = ron_slice_text(cases[i].caveats[count]);
        support_assert_error(auth_keyring_mint(keyring, caveats, count, NOW_MS, text, &size, &info),
                             &info, RON_ERR_MALFORMED, cases[i].text);
        assert_int_equal(size, 0);
    }
    keyring = auth_keyring_free(keyring);
}

static void the_operator_token_names_every_scope_and_ends(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct auth_head head = {.role = AUTH_ROLE_REGISTRY, .scope = AUTH_SCOPE_REGISTRY_ADMIN};
    struct auth_grant grant;
    size_t size = 0;

    (void)state;
    assert_ok(auth_keyring_mint_operator(keyring, NOW_MS, 1000, text, &size, NULL));
    assert_ok(auth_verify(keyring, ron_slice_of(text, size), &grant, NULL));
    assert_int_equal(grant.scopes, AUTH_SCOPES_ALL);
    assert_true(auth_grant_has(&grant, AUTH_CAVEAT_SCOPE));
    head.now_ms = NOW_MS + 999;
    assert_ok(auth_grant_admit(&grant, &head, NULL));
    head.now_ms = NOW_MS + 1000;
    assert_int_equal(auth_grant_admit(&grant, &head, NULL), RON_ERR_UNAUTHORIZED);
    keyring = auth_keyring_free(keyring);
}

/* covers: LED-S05 */
static void old_keys_verify_until_they_are_revoked(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_slice token = mint(keyring, "scope = wallet.read", NULL);
    struct ron_errinfo info = {0};
    struct auth_grant grant;
    uint64_t epoch = auth_keyring_epoch(keyring);

    (void)state;
    support_assert_error(auth_keyring_revoke_key(keyring, RON_SLICE("k1"), &info), &info,
                         RON_ERR_CONFLICT, "rotate first");
    assert_ok(auth_keyring_rotate(keyring, NOW_MS + 1, NULL));
    assert_true(ron_slice_equal(auth_keyring_signing_kid(keyring), RON_SLICE("k2")));
    assert_true(auth_keyring_epoch(keyring) > epoch);
    assert_ok(auth_verify(keyring, token, &grant, NULL));
    epoch = auth_keyring_epoch(keyring);
    assert_ok(auth_keyring_revoke_key(keyring, RON_SLICE("k1"), NULL));
    assert_int_equal(auth_keyring_epoch(keyring), epoch + 1);
    assert_ok(auth_keyring_revoke_key(keyring, RON_SLICE("k1"), NULL)); /* again: nothing new */
    assert_int_equal(auth_keyring_epoch(keyring), epoch + 1);
    support_assert_error(auth_verify(keyring, token, &grant, &info), &info, RON_ERR_UNAUTHORIZED,
                         "unknown or revoked");
    support_assert_error(auth_keyring_revoke_key(keyring, RON_SLICE("k9"), &info), &info,
                         RON_ERR_NOT_FOUND, "no such key");
    support_assert_error(
        auth_keyring_rotate_to(keyring, RON_SLICE("k1"), RON_SLICE(MARKER), NOW_MS, &info), &info,
        RON_ERR_CONFLICT, "used before");
    keyring = auth_keyring_free(keyring);
}

/* covers: LED-S05 */
static void one_token_can_be_revoked_alone(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct auth_grant first;
    struct auth_grant second;
    struct ron_errinfo info = {0};
    char kept[AUTH_TOKEN_TEXT_SIZE];

    (void)state;
    assert_ok(auth_verify(keyring, mint(keyring, "scope = wallet.read", NULL), &first, NULL));
    memcpy(kept, text, sizeof(kept));
    assert_ok(auth_verify(keyring, mint(keyring, "scope = wallet.read", NULL), &second, NULL));
    assert_ok(auth_keyring_revoke_token(keyring, auth_grant_ref(&first), NOW_MS, NULL));
    support_assert_error(auth_verify(keyring, ron_slice_text(kept), &first, &info), &info,
                         RON_ERR_UNAUTHORIZED, "revoked");
    assert_ok(auth_verify(keyring, ron_slice_text(text), &second, NULL));
    support_assert_error(auth_keyring_revoke_token(keyring, RON_SLICE("k1"), NOW_MS, &info), &info,
                         RON_ERR_MALFORMED, "KID.ULID");
    support_assert_error(auth_keyring_revoke_token(
                             keyring, RON_SLICE("k7.01ARZ3NDEKTSV4RRFFQ69G5FAV"), NOW_MS, &info),
                         &info, RON_ERR_NOT_FOUND, "no key");
    keyring = auth_keyring_free(keyring);
}

static void the_list_of_revoked_tokens_is_bounded_and_searched(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_errinfo info = {0};
    char identifier[64];

    (void)state;
    for (unsigned i = 0; i < AUTH_REVOKED_TOKENS_MAX; i++) {
        (void)snprintf(identifier, sizeof(identifier), "k1.%026u", i * 2654435761u);
        assert_ok(auth_keyring_revoke_token(keyring, ron_slice_text(identifier), NOW_MS, NULL));
    }
    for (unsigned i = 0; i < AUTH_REVOKED_TOKENS_MAX; i++) {
        (void)snprintf(identifier, sizeof(identifier), "k1.%026u", i * 2654435761u);
        assert_true(auth_keyring_is_revoked(keyring, ron_slice_text(identifier)));
    }
    assert_false(auth_keyring_is_revoked(keyring, RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    support_assert_error(auth_keyring_revoke_token(
                             keyring, RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"), NOW_MS, &info),
                         &info, RON_ERR_BUSY, "revoke their key");
    assert_ok(auth_keyring_rotate(keyring, NOW_MS, NULL)); /* their key takes them along */
    assert_ok(auth_keyring_revoke_key(keyring, RON_SLICE("k1"), NULL));
    assert_false(auth_keyring_is_revoked(keyring, ron_slice_text(identifier)));
    keyring = auth_keyring_free(keyring);
}

static void a_full_ring_forgets_revoked_keys_only(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_errinfo info = {0};

    (void)state;
    for (int i = 1; i < AUTH_KEYS_MAX; i++)
        assert_ok(auth_keyring_rotate(keyring, NOW_MS, NULL));
    support_assert_error(auth_keyring_rotate(keyring, NOW_MS, &info), &info, RON_ERR_BUSY,
                         "revoke one");
    assert_ok(auth_keyring_revoke_key(keyring, RON_SLICE("k3"), NULL));
    assert_ok(auth_keyring_rotate(keyring, NOW_MS, NULL));
    assert_true(ron_slice_equal(auth_keyring_signing_kid(keyring), RON_SLICE("k65")));
    assert_null(auth_keyring_root(keyring, RON_SLICE("k3")));
    assert_non_null(auth_keyring_root(keyring, RON_SLICE("k1")));
    keyring = auth_keyring_free(keyring);
}

static void every_role_has_its_service_token(void **state)
{
    struct auth_keyring *keyring = keyring_make();

    (void)state;
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) {
        const struct ron_secret *token = auth_keyring_service(keyring, (enum auth_role)i);
        struct auth_grant grant;

        assert_ok(auth_verify(keyring, ron_secret_expose(token), &grant, NULL));
        assert_true(grant.is_service);
        assert_int_equal(grant.service, i);
        assert_true(auth_grant_has(&grant, AUTH_CAVEAT_SCOPE));
        assert_int_not_equal(grant.scopes, AUTH_SCOPES_ALL);
    }
    keyring = auth_keyring_free(keyring);
}

/* Text. */

static struct ron_buf encode(const struct auth_keyring *keyring)
{
    struct ron_buf buf;

    ron_buf_init(&buf, AUTH_KEYRING_TEXT_SIZE_MAX);
    assert_ok(auth_keyring_encode(keyring, &buf, NULL));
    return buf;
}

/* A ring with a key of each state and a revoked token. */
static struct auth_keyring *keyring_full(void)
{
    struct auth_keyring *keyring = keyring_make();

    assert_ok(auth_keyring_rotate(keyring, NOW_MS + 1, NULL));
    assert_ok(auth_keyring_rotate(keyring, NOW_MS + 2, NULL));
    assert_ok(auth_keyring_revoke_key(keyring, RON_SLICE("k1"), NULL));
    assert_ok(auth_keyring_revoke_token(keyring, RON_SLICE("k2.01ARZ3NDEKTSV4RRFFQ69G5FAV"),
                                        NOW_MS + 3, NULL));
    assert_ok(auth_keyring_revoke_token(keyring, RON_SLICE("k2.01ARZ3NDEKTSV4RRFFQ69G5FAT"),
                                        NOW_MS + 3, NULL));
    return keyring;
}

static void text_and_back_is_the_same(void **state)
{
    struct auth_keyring *keyring = keyring_full();
    struct ron_slice token = mint(keyring, "scope = wallet.read", NULL);
    struct ron_buf first = encode(keyring);
    struct auth_keyring *read = NULL;
    struct auth_grant grant;
    struct ron_buf second;

    (void)state;
    assert_ok(auth_keyring_decode(ron_buf_slice(&first), &read, NULL));
    second = encode(read);
    assert_true(ron_slice_equal(ron_buf_slice(&first), ron_buf_slice(&second)));
    assert_int_equal(auth_keyring_epoch(read), auth_keyring_epoch(keyring));
    assert_ok(auth_verify(read, token, &grant, NULL));
    assert_true(auth_keyring_is_revoked(read, RON_SLICE("k2.01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    assert_null(auth_keyring_root(read, RON_SLICE("k1")));
    keyring = auth_keyring_free(keyring);
    read = auth_keyring_free(read);
    ron_buf_fini(&first);
    ron_buf_fini(&second);
}

/* Every cut and every changed byte is noticed: the hash covers all, and the grammar the hash. */
static void damaged_text_is_refused(void **state)
{
    struct auth_keyring *keyring = keyring_full();
    struct ron_buf buf = encode(keyring);
    struct auth_keyring *read = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    for (size_t size = 0; size < buf.size; size++)
        support_assert_error(auth_keyring_decode(ron_slice_of(buf.data, size), &read, &info), &info,
                             RON_ERR_MALFORMED, "keyring: line");
    for (size_t i = 0; i < buf.size; i++) {
        buf.data[i] ^= 1;
        assert_int_equal(auth_keyring_decode(ron_buf_slice(&buf), &read, &info), RON_ERR_MALFORMED);
        buf.data[i] ^= 1;
    }
    assert_null(read);
    keyring = auth_keyring_free(keyring);
    ron_buf_fini(&buf);
}

/* Replace the first `from` by `to`, put the right hash behind, and read. */
static enum ron_err decode_changed(const struct ron_buf *buf, const char *from, const char *to,
                                   struct ron_errinfo *info)
{
    struct auth_keyring *read = NULL;
    struct ron_buf changed;
    char hash_text[RON_B3_TEXT_SIZE];
    const uint8_t *at = memmem(buf->data, buf->size, from, strlen(from));
    const uint8_t *end = memmem(buf->data, buf->size, "\nend ", 5);
    struct ron_b3 hash;
    enum ron_err err;

    assert_non_null(at);
    assert_non_null(end);
    ron_buf_init(&changed, AUTH_KEYRING_TEXT_SIZE_MAX);
    ron_buf_put(&changed, buf->data, (size_t)(at - buf->data));
    ron_buf_put_text(&changed, to);
    at += strlen(from);
    ron_buf_put(&changed, at, (size_t)(end + 1 - at));
    hash = ron_b3(changed.data, changed.size);
    ron_b3_print(&hash, hash_text);
    ron_buf_put_format(&changed, "end %s\n", hash_text);
    assert_ok(ron_buf_check(&changed, NULL));
    err = auth_keyring_decode(ron_buf_slice(&changed), &read, info);
    read = auth_keyring_free(read);
    ron_buf_fini(&changed);
    return err;
}

static void text_with_a_right_hash_is_checked_all_the_same(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        const char *text;
    } cases[] = {
        {"ron-keyring 1", "ron-keyring 2", "version 1"},
        {"epoch ", "epoch 0", "epoch"},
        {" sign ", " verify ", "exactly one key"},
        {" verify ", " sign ", "exactly one key"},
        {"key k2", "key k1", "twice"},
        {"key k1", "key k.1", "not a KID"},
        {" revoked -", " revoked 00", "no bytes"},
        {" verify ", " verify 00", "64 lower-case"},
        {" verify ", " verify 0 ", "too many fields"},
        {".001Z", "Z", "not a time"},
        {"service ledger ", "service wallet ", "next role"},
        {"service wallet ", "service wallet x", "not a token"},
        {"revoked k2.01", "revoked k1.01", "not here or revoked"},
        {"FAT ", "FAW ", "ascending"},
        {"FAT ", "FAV ", "ascending"},
        {"\nrevoked", "\n\nrevoked", "`end` was expected"},
    };
    struct auth_keyring *keyring = keyring_full();
    struct ron_buf buf = encode(keyring);

    (void)state;
    assert_ok(decode_changed(&buf, "epoch ", "epoch ", NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {0};
        enum ron_err err = decode_changed(&buf, cases[i].from, cases[i].to, &info);

        support_assert_error(err, &info, RON_ERR_MALFORMED, cases[i].text);
    }
    keyring = auth_keyring_free(keyring);
    ron_buf_fini(&buf);
}

static enum ron_err attempt_decode(void *context, struct ron_errinfo *reterr)
{
    const struct ron_buf *buf = context;
    struct auth_keyring *keyring = NULL;
    enum ron_err err = auth_keyring_decode(ron_buf_slice(buf), &keyring, reterr);

    keyring = auth_keyring_free(keyring);
    return err;
}

static enum ron_err attempt_rotate(void *context, struct ron_errinfo *reterr)
{
    const struct ron_buf *buf = context;
    struct auth_keyring *keyring = NULL;
    enum ron_err err = auth_keyring_decode(ron_buf_slice(buf), &keyring, reterr);

    if (err != RON_ERR_OK)
        return err;
    uint64_t epoch = auth_keyring_epoch(keyring);
    err = auth_keyring_rotate(keyring, NOW_MS, reterr);
    if (err != RON_ERR_OK) { /* as if nothing had been tried */
        assert_int_equal(auth_keyring_epoch(keyring), epoch);
        assert_true(ron_slice_equal(auth_keyring_signing_kid(keyring), RON_SLICE("k3")));
        assert_null(auth_keyring_root(keyring, RON_SLICE("k4")));
    }
    keyring = auth_keyring_free(keyring);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    struct auth_keyring *keyring = keyring_full();
    struct ron_buf buf = encode(keyring);

    (void)state;
    unsigned decode_count = support_fail_each_allocation(attempt_decode, &buf, 100);

    assert_true(support_fail_each_allocation(attempt_rotate, &buf, 200) > decode_count + 10);
    keyring = auth_keyring_free(keyring);
    ron_buf_fini(&buf);
}

/* Secrets. */

static void assert_no_marker(const struct ron_errinfo *info)
{
    char hex[RON_HEX_SIZE(sizeof(MARKER) - 1)];

    (void)ron_hex_encode(RON_SLICE(MARKER), hex, sizeof(hex));
    hex[12] = '\0';
    assert_null(strstr(info->message, "MARKER"));
    assert_null(strstr(info->message, hex));
}

/* A key and a caveat carry the marker; every damaged form of token and keyring is tried, and no
 * message says a word of either. */
static void no_message_holds_a_key_or_a_token(void **state)
{
    struct auth_keyring *keyring = keyring_make();
    struct ron_errinfo info = {0};
    struct auth_keyring *read = NULL;
    struct auth_grant grant;
    struct ron_slice token;
    struct ron_buf buf;
    char piece[9];

    (void)state;
    assert_ok(auth_keyring_rotate_to(keyring, RON_SLICE("k2"), RON_SLICE(MARKER), NOW_MS, NULL));
    token = mint(keyring, "scope = wallet.read", "account = MARKERmarker");
    for (size_t i = 0; i < token.size; i++) {
        char saved = text[i];

        for (unsigned change = 1; change < 128; change <<= 1) {
            text[i] = (char)(saved ^ (char)change);
            if (auth_verify(keyring, token, &grant, &info) == RON_ERR_OK)
                fail_msg("a changed token verifies");
            assert_no_marker(&info);
            text[i] = saved;
        }
        if (i + 8 <= token.size) { /* nor eight characters in a row of the token */
            memcpy(piece, text + i, 8);
            piece[8] = '\0';
            assert_null(strstr(info.message, piece));
        }
    }
    buf = encode(keyring);
    for (size_t i = 0; i < buf.size; i++) {
        buf.data[i] ^= 2;
        assert_int_equal(auth_keyring_decode(ron_buf_slice(&buf), &read, &info), RON_ERR_MALFORMED);
        assert_no_marker(&info);
        buf.data[i] ^= 2;
    }
    keyring = auth_keyring_free(keyring);
    ron_wipe(buf.data, buf.size);
    ron_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minted_token_verifies),
        cmocka_unit_test(nothing_is_minted_that_allows_all_or_nothing),
        cmocka_unit_test(the_operator_token_names_every_scope_and_ends),
        cmocka_unit_test(old_keys_verify_until_they_are_revoked),
        cmocka_unit_test(one_token_can_be_revoked_alone),
        cmocka_unit_test(the_list_of_revoked_tokens_is_bounded_and_searched),
        cmocka_unit_test(a_full_ring_forgets_revoked_keys_only),
        cmocka_unit_test(every_role_has_its_service_token),
        cmocka_unit_test(text_and_back_is_the_same),
        cmocka_unit_test(damaged_text_is_refused),
        cmocka_unit_test(text_with_a_right_hash_is_checked_all_the_same),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(no_message_holds_a_key_or_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
