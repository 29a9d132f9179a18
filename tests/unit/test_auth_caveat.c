/*
 * test_auth_caveat.c - what each caveat accepts, what it refuses, how two of a kind meet, and what
 * the grant answers. Fail-closed is tested by what must not be accepted.
 */
#include "support.h"

#include <stdio.h>

#include "auth/caveat.h"

#define NOW_MS UINT64_C(1800000000000) /* 2027-01-15T08:00:00Z */
#define ID     "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"

/* A grant of up to four caveats; they must all be well-formed. */
static struct auth_grant grant_of(const char *a, const char *b, const char *c)
{
    const char *caveats[] = {a, b, c};
    struct auth_grant grant;

    auth_grant_begin(&grant, RON_SLICE(ID));
    for (size_t i = 0; i < RON_ARRAY_COUNT(caveats) && caveats[i] != NULL; i++)
        assert_ok(auth_caveat_apply(&grant, ron_slice_text(caveats[i]), NULL));
    return grant;
}

static struct auth_head head_of(void)
{
    struct auth_head head = {
        .role = AUTH_ROLE_WALLET,
        .scope = AUTH_SCOPE_WALLET_TRANSFER,
        .method = RON_SLICE("POST"),
        .path = RON_SLICE("/v1/transfer"),
        .now_ms = NOW_MS,
    };

    assert_true(auth_ip_parse(RON_SLICE("10.1.2.3"), &head.peer));
    return head;
}

static enum ron_err admit(const char *a, const char *b)
{
    struct auth_grant grant = grant_of(a, b, NULL);
    struct auth_head head = head_of();

    return auth_grant_admit(&grant, &head, NULL);
}

static enum ron_err cover(const char *a, const char *b, const char *account, uint64_t amount)
{
    struct auth_grant grant = grant_of(a, b, NULL);
    struct auth_use use = {.account = ron_slice_text(account),
                           .is_debit = true,
                           .asset = RON_SLICE("roc"),
                           .amount = ron_u128_of(amount)};

    return auth_grant_cover(&grant, &use, NULL);
}

static const char *const bad_caveats[] = {
    "",
    "tenant",
    "tenant =",
    "tenant = ",
    "tenant=7",
    "tenant = 07",
    "tenant = -1",
    "tenant = 7 ",
    " tenant = 7",
    "tenant  = 7",
    "Tenant = 7",
    "tenants = 7",
    "tenant = 340282366920938463463374607431768211456",
    "scope = ",
    "scope = wallet",
    "scope = wallet.read,",
    "scope = ,wallet.read",
    "scope = wallet.read, wallet.burn",
    "scope = wallet.read,wallet.read",
    "scope = wallet.reads",
    "scope = *",
    "scope = wallet.*",
    "aud = ",
    "aud = bank",
    "aud = wallet,ledger",
    "account = ",
    "account = a b",
    "account = *a",
    "account = a*b",
    "account = a**",
    "account = a.b",
    "asset = ",
    "asset = Roc",
    "asset = 1c",
    "asset = ro*",
    "asset = abcdefghijklmnopqrstuvwxyz0123456",
    "max_amount = ",
    "max_amount = 1.5",
    "max_amount = 0x10",
    "max_amount = 00",
    "max_daily = ten",
    "method = ",
    "method = post",
    "method = GET,POST",
    "method = ABCDEFGHIJKLMNOPQ",
    "path = ",
    "path = v1",
    "path = /v1 /x",
    "path = /v1?x",
    "path = /%2e",
    "path = *",
    "ip = ",
    "ip = 10.0.0.0",
    "ip = 10.0.0.0/",
    "ip = 10.0.0.0/33",
    "ip = 10.0.0.1/8",
    "ip = 10.0.0.0/08",
    "ip = 010.0.0.0/8",
    "ip = 10.0.0/8",
    "ip = ::/129",
    "ip = ::1/64",
    "ip = ::ffff:10.0.0.0/104",
    "ip = fe80::1%eth0/128",
    "ip = /0",
    "before = ",
    "before = 2027-01-01",
    "before = 2027-01-01T00:00:00+00:00",
    "before = 1800000000",
    "after = never",
    "rate = ",
    "rate = 5",
    "rate = 5/",
    "rate = /5",
    "rate = 0/5",
    "rate = 5/0",
    "rate = 1000000001/1",
    "rate = 1/1000000001",
    "rate = 1/1/1",
    "rate = 5 / 5",
    "nonce = 1",
    "max = 1",
    "dev = true",
};

static void ill_formed_and_unknown_caveats_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad_caveats); i++) {
        struct auth_grant grant = grant_of(NULL, NULL, NULL);
        struct ron_errinfo info = {0};
        enum ron_err err = auth_caveat_apply(&grant, ron_slice_text(bad_caveats[i]), &info);

        if (err != RON_ERR_UNAUTHORIZED)
            fail_msg("accepted: '%s'", bad_caveats[i]);
        assert_non_null(strstr(info.message, "caveat"));
    }
}

static void a_token_without_restrictions_is_admitted(void **state)
{
    (void)state;
    assert_ok(admit(NULL, NULL));
    assert_ok(cover(NULL, NULL, "acct_a", 7));
}

/* covers: LED-S05 */
static void time_limits_answer_unauthorized_to_the_millisecond(void **state)
{
    struct auth_grant grant = grant_of("before = 2027-01-15T08:00:00.500Z",
                                       "after = 2027-01-15T07:59:59.500Z", NULL);
    struct auth_head head = head_of();

    (void)state;
    head.now_ms = NOW_MS + 499;
    assert_ok(auth_grant_admit(&grant, &head, NULL));
    head.now_ms = NOW_MS + 500; /* at the moment itself it is over */
    assert_int_equal(auth_grant_admit(&grant, &head, NULL), RON_ERR_UNAUTHORIZED);
    head.now_ms = NOW_MS - 500; /* and at its beginning valid */
    assert_ok(auth_grant_admit(&grant, &head, NULL));
    head.now_ms = NOW_MS - 501;
    assert_int_equal(auth_grant_admit(&grant, &head, NULL), RON_ERR_UNAUTHORIZED);
    /* Of two the earlier end and the later start hold, in either order. */
    assert_int_equal(admit("before = 2027-01-15T08:00:00Z", "before = 2028-01-15T08:00:00Z"),
                     RON_ERR_UNAUTHORIZED);
    assert_int_equal(admit("before = 2028-01-15T08:00:00Z", "before = 2027-01-15T08:00:00Z"),
                     RON_ERR_UNAUTHORIZED);
    assert_int_equal(admit("after = 2027-01-15T08:00:00.001Z", "after = 2020-01-15T08:00:00Z"),
                     RON_ERR_UNAUTHORIZED);
    assert_ok(admit("after = 2027-01-15T08:00:00Z", "after = 2020-01-15T08:00:00Z"));
}

static void what_the_head_tells_answers_forbidden(void **state)
{
    (void)state;
    assert_ok(admit("aud = wallet", "scope = wallet.read,wallet.transfer"));
    assert_int_equal(admit("aud = ledger", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("aud = wallet", "aud = ledger"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("aud = ledger", "aud = wallet"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("scope = wallet.read", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("scope = wallet.admin", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("scope = wallet.transfer", "scope = wallet.read"), RON_ERR_FORBIDDEN);
    assert_ok(admit("scope = wallet.transfer,ledger.read", "scope = wallet.transfer"));
    assert_ok(admit("method = POST", "path = /v1/transfer"));
    assert_int_equal(admit("method = GET", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("method = POST", "method = GET"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("method = POS", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("path = /v1/transfe", NULL), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("path = /v1/transfers", NULL), RON_ERR_FORBIDDEN);
    assert_ok(admit("path = /v1/*", "path = /v1/tran*"));
    assert_int_equal(admit("path = /v1/*", "path = /v2/*"), RON_ERR_FORBIDDEN);
    assert_ok(admit("tenant = 7", "tenant = 7"));
    assert_int_equal(admit("tenant = 7", "tenant = 8"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("tenant = 7", "tenant = 0"), RON_ERR_FORBIDDEN);
}

static void paths_that_can_be_read_twice_are_not_covered(void **state)
{
    static const char *const paths[] = {
        "/v1/../admin", "/v1//x", "/v1/%2e%2e/x", "/v1/./x", "/v1/x?y", "/v1/\\x", "", "v1/x"};
    struct auth_grant grant = grant_of("path = /*", NULL, NULL);
    struct auth_head head = head_of();

    (void)state;
    assert_ok(auth_grant_admit(&grant, &head, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(paths); i++) {
        head.path = ron_slice_text(paths[i]);
        assert_int_equal(auth_grant_admit(&grant, &head, NULL), RON_ERR_FORBIDDEN);
    }
}

static bool ip_allows(const char *caveat, const char *peer)
{
    struct auth_grant grant = grant_of(caveat, NULL, NULL);
    struct auth_head head = head_of();

    head.peer = (struct auth_ip){0};
    if (peer != NULL)
        assert_true(auth_ip_parse(ron_slice_text(peer), &head.peer));
    return auth_grant_admit(&grant, &head, NULL) == RON_ERR_OK;
}

static void networks_cover_their_addresses(void **state)
{
    (void)state;
    assert_true(ip_allows("ip = 10.0.0.0/8", "10.255.255.255"));
    assert_false(ip_allows("ip = 10.0.0.0/8", "11.0.0.0"));
    assert_true(ip_allows("ip = 10.0.0.0/8", "::ffff:10.1.1.1")); /* mapped is the same */
    assert_true(ip_allows("ip = 192.168.4.0/22", "192.168.7.255"));
    assert_false(ip_allows("ip = 192.168.4.0/22", "192.168.8.0"));
    assert_true(ip_allows("ip = 1.2.3.4/32", "1.2.3.4"));
    assert_false(ip_allows("ip = 1.2.3.4/32", "1.2.3.5"));
    assert_true(ip_allows("ip = 0.0.0.0/0", "1.2.3.4"));
    assert_false(ip_allows("ip = ::/0", "1.2.3.4")); /* another family */
    assert_true(ip_allows("ip = 2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(ip_allows("ip = 2001:db8::/33", "2001:db8:8000::1"));
    assert_false(ip_allows("ip = 0.0.0.0/0", "::1"));
    assert_false(ip_allows("ip = 0.0.0.0/0", NULL)); /* a Unix socket has no address */
    assert_ok(admit("ip = 10.0.0.0/8", "ip = 10.1.0.0/16"));
    assert_ok(admit("ip = 10.1.0.0/16", "ip = 10.0.0.0/8"));
    assert_int_equal(admit("ip = 10.2.0.0/16", "ip = 10.0.0.0/8"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("ip = 10.1.0.0/16", "ip = 10.2.0.0/16"), RON_ERR_FORBIDDEN);
    assert_int_equal(admit("ip = 10.0.0.0/8", "ip = ::/0"), RON_ERR_FORBIDDEN);
}

static void accounts_match_names_and_globs(void **state)
{
    (void)state;
    assert_ok(cover("account = acct_a", NULL, "acct_a", 1));
    assert_int_equal(cover("account = acct_a", NULL, "acct_ab", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = acct_a", NULL, "acct_", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("account = acct_*", NULL, "acct_a", 1));
    assert_ok(cover("account = acct_*", NULL, "acct_", 1));
    assert_int_equal(cover("account = acct_*", NULL, "acct", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = acct_*", NULL, "bcct_a", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("account = *", NULL, "anything", 1));
    /* Two of them: what both cover. */
    assert_ok(cover("account = a*", "account = ab*", "abc", 1));
    assert_int_equal(cover("account = a*", "account = ab*", "ac", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = ab*", "account = a*", "ac", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("account = ab*", "account = abc", "abc", 1));
    assert_ok(cover("account = abc", "account = ab*", "abc", 1));
    assert_int_equal(cover("account = abc", "account = ab*", "abd", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = ab", "account = ab*", "abc", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = ab*", "account = ab", "abc", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = a", "account = b", "a", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = a", "account = b", "b", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = a*", "account = b*", "a1", 1), RON_ERR_FORBIDDEN);
}

static void another_tenant_reaches_only_covered_accounts(void **state)
{
    (void)state;
    assert_ok(cover("tenant = 0", NULL, "acct_a", 1));
    assert_int_equal(cover("tenant = 7", NULL, "acct_a", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("tenant = 7", "account = acct_*", "acct_a", 1));
    assert_int_equal(cover("tenant = 7", "account = t7/*", "acct_a", 1), RON_ERR_FORBIDDEN);
}

static void reserved_accounts_must_be_named(void **state)
{
    struct auth_grant grant = grant_of("account = pool/7/*", NULL, NULL);
    struct auth_use read = {.account = RON_SLICE("pool/7/x")};

    (void)state;
    assert_int_equal(cover(NULL, NULL, "pool/7/x", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = *", NULL, "sys/burn/roc", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = p*", NULL, "pool/7/x", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("account = pool*", NULL, "pool/7/x", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("account = pool/7/*", NULL, "pool/7/x", 1));
    assert_ok(cover("account = sys/burn/roc", NULL, "sys/burn/roc", 1));
    assert_ok(cover(NULL, NULL, "system", 1)); /* not reserved */
    assert_true(auth_grant_names_reserved(&grant, RON_SLICE("pool/7/x")));
    assert_false(auth_grant_names_reserved(&grant, RON_SLICE("pool/8/x")));
    grant = grant_of(NULL, NULL, NULL);
    assert_false(auth_grant_names_reserved(&grant, RON_SLICE("pool/7/x")));
    assert_ok(auth_grant_cover(&grant, &read, NULL)); /* looking is another matter */
}

static void asset_and_amount_are_checked(void **state)
{
    (void)state;
    assert_ok(cover("asset = roc", NULL, "a", 1));
    assert_int_equal(cover("asset = usd", NULL, "a", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("asset = ro", NULL, "a", 1), RON_ERR_FORBIDDEN);
    assert_int_equal(cover("asset = roc", "asset = usd", "a", 1), RON_ERR_FORBIDDEN);
    assert_ok(cover("max_amount = 10", NULL, "a", 10));
    assert_int_equal(cover("max_amount = 10", NULL, "a", 11), RON_ERR_LIMIT_EXCEEDED);
    assert_int_equal(cover("max_amount = 10", "max_amount = 100", "a", 11), RON_ERR_LIMIT_EXCEEDED);
    assert_int_equal(cover("max_amount = 100", "max_amount = 10", "a", 11), RON_ERR_LIMIT_EXCEEDED);
    /* Who may not touch the account is not told about the amount. */
    assert_int_equal(cover("account = b", "max_amount = 1", "a", 5), RON_ERR_FORBIDDEN);
}

static void rates_and_daily_sums_keep_the_lower(void **state)
{
    struct auth_grant grant = grant_of("rate = 10/20", "rate = 5/40", "rate = 7/30");

    (void)state;
    assert_int_equal(grant.rate_per_s, 5);
    assert_int_equal(grant.rate_burst, 20);
    grant = grant_of("max_daily = 9", "max_daily = 8", "max_daily = 10");
    assert_true(grant.max_daily.v == 8);
}

static void the_grant_knows_who_it_is(void **state)
{
    /* First 8 bytes of BLAKE3("k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"), from an independent
     * implementation. */
    static const uint8_t expected[8] = {0x8d, 0xfc, 0x47, 0xe1, 0x46, 0x9e, 0x43, 0x58};
    struct auth_grant grant = grant_of(NULL, NULL, NULL);
    size_t kid_size;

    (void)state;
    assert_true(ron_slice_equal(auth_grant_ref(&grant), RON_SLICE(ID)));
    assert_true(ron_slice_equal(auth_grant_kid(&grant), RON_SLICE("k1")));
    assert_memory_equal(grant.capability, expected, sizeof(expected));
    assert_false(auth_identifier_split(RON_SLICE(".01ARZ3NDEKTSV4RRFFQ69G5FAV"), &kid_size));
    assert_false(auth_identifier_split(RON_SLICE("k101ARZ3NDEKTSV4RRFFQ69G5FAV"), &kid_size));
    assert_false(auth_identifier_split(RON_SLICE("k1.01ARZ3NDEKTSV4RRFFQ69G5FAv"), &kid_size));
    assert_false(auth_identifier_split(RON_SLICE("k.1.01ARZ3NDEKTSV4RRFFQ69G5FAV"), &kid_size));
    assert_false(auth_identifier_split(RON_SLICE("k1"), &kid_size));
}

static void scopes_are_listed_once(void **state)
{
    char text[AUTH_SCOPES_TEXT_SIZE];
    uint64_t scopes = 0;

    (void)state;
    assert_true(auth_scopes_print(AUTH_SCOPES_ALL, text) > 0);
    assert_true(auth_scopes_parse(ron_slice_text(text), &scopes));
    assert_int_equal(scopes, AUTH_SCOPES_ALL);
    for (unsigned i = 0; i < AUTH_SCOPE__MAX; i++) {
        enum auth_scope found = AUTH_SCOPE__MAX;
        const char *name = auth_scope_name((enum auth_scope)i);
        const char *role = auth_role_name(auth_scope_role((enum auth_scope)i));

        assert_true(auth_scope_find(ron_slice_text(name), &found));
        assert_int_equal(found, i);
        assert_memory_equal(name, role, strlen(role));
    }
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) { /* every role has its admin */
        char name[32];
        enum auth_scope found;

        (void)snprintf(name, sizeof(name), "%s.admin", auth_role_name((enum auth_role)i));
        assert_true(auth_scope_find(ron_slice_text(name), &found));
    }
    assert_string_equal(auth_scope_nearest(RON_SLICE("wallet.raed")), "wallet.read");
}

static void a_copy_is_the_grant(void **state)
{
    const struct auth_grant grants[] = {
        grant_of(NULL, NULL, NULL),
        grant_of("account = alice/*", "path = /v1/transfer", "ip = 10.0.0.0/8"),
        grant_of("account = bob", "asset = roc", "rate = 10/3"),
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(grants); i++) {
        const struct auth_grant *grant = &grants[i];
        struct auth_grant copy;

        memset(&copy, 0xaa, sizeof(copy)); /* what was there before */
        auth_grant_copy(grant, &copy);
        assert_memory_equal(&copy, grant, offsetof(struct auth_grant, account));
        assert_int_equal(copy.account.size, grant->account.size);
        assert_int_equal(copy.account.glob, grant->account.glob);
        assert_memory_equal(copy.account.text, grant->account.text, grant->account.size);
        assert_int_equal(copy.path.size, grant->path.size);
        assert_int_equal(copy.path.glob, grant->path.glob);
        assert_memory_equal(copy.path.text, grant->path.text, grant->path.size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_the_grant),
        cmocka_unit_test(ill_formed_and_unknown_caveats_are_refused),
        cmocka_unit_test(a_token_without_restrictions_is_admitted),
        cmocka_unit_test(time_limits_answer_unauthorized_to_the_millisecond),
        cmocka_unit_test(what_the_head_tells_answers_forbidden),
        cmocka_unit_test(paths_that_can_be_read_twice_are_not_covered),
        cmocka_unit_test(networks_cover_their_addresses),
        cmocka_unit_test(accounts_match_names_and_globs),
        cmocka_unit_test(another_tenant_reaches_only_covered_accounts),
        cmocka_unit_test(reserved_accounts_must_be_named),
        cmocka_unit_test(asset_and_amount_are_checked),
        cmocka_unit_test(rates_and_daily_sums_keep_the_lower),
        cmocka_unit_test(the_grant_knows_who_it_is),
        cmocka_unit_test(scopes_are_listed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
