/*
 * keyring_mint.c - new tokens: anybody's, the operator's, the roles' own. See keyring.h.
 */
#include <stdio.h>

#include "auth/caveat.h"
#include "auth/keyring.h"
#include "auth/keyring_impl.h"
#include "base/assert.h"
#include "base/rfc3339.h"
#include "base/ulid.h"

/* What a role asks of others. The registry calls nobody: its token may look, and no more. */
static const uint64_t service_scopes[] = {
    [AUTH_ROLE_LEDGER] = AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_READ) |
                         AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_ANCHOR),
    [AUTH_ROLE_WALLET] = AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_READ) |
                         AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_INGEST) |
                         AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_MINT) |
                         AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_BURN),
    [AUTH_ROLE_ACCOUNTING] = AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_READ) |
                             AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_SLICE) |
                             AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_ANCHOR),
    [AUTH_ROLE_REWARDER] = AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_READ) |
                           AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_INTENT) |
                           AUTH_SCOPE_BIT(AUTH_SCOPE_ACCOUNTING_READ),
    [AUTH_ROLE_REGISTRY] = AUTH_SCOPE_BIT(AUTH_SCOPE_LEDGER_READ),
};
_Static_assert(RON_ARRAY_COUNT(service_scopes) == AUTH_ROLE__MAX, "one row per role");

static enum ron_err make_identifier(struct ron_slice kid, uint64_t now_ms, struct identifier *ret,
                                    struct ron_errinfo *reterr)
{
    char ulid[RON_ULID_TEXT_SIZE];
    struct ron_secret random = {0};
    enum ron_err err = ron_secret_init_random(&random, RON_ULID_RANDOM_SIZE, reterr);

    if (err != RON_ERR_OK)
        return err;
    ron_ulid_print(ron_ulid_make(now_ms, ron_secret_expose(&random).data), ulid);
    ron_secret_fini(&random);
    ret->size = (uint8_t)snprintf(ret->text, sizeof(ret->text), "%.*s.%s", RON_SLICE_FMT(kid),
                                  ulid);
    RON_ASSERT(ret->size == kid.size + RON_ULID_TEXT_SIZE);
    return RON_ERR_OK;
}

/* Would a verifier take these caveats, and do they leave anything that may be done? */
static enum ron_err check_caveats(const struct auth_macaroon *macaroon, struct ron_errinfo *reterr)
{
    struct ron_errinfo info = {0};
    struct auth_grant grant;

    if (auth_caveats_apply(macaroon, &grant, &info) != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s", info.message);
    if (!auth_grant_has(&grant, AUTH_CAVEAT_SCOPE))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "token: a scope caveat is missing: it would allow everything");
    if (grant.is_void || grant.scopes == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "token: its caveats exclude each other: it would allow nothing");
    return RON_ERR_OK;
}

static enum ron_err mint(const struct auth_keyring *keyring, const struct ron_slice *caveats,
                         size_t caveats_count, uint64_t now_ms, struct identifier *ret_identifier,
                         char *text, size_t *ret_size, struct ron_errinfo *reterr)
{
    struct ron_slice kid = auth_keyring_signing_kid(keyring);
    struct identifier identifier = {0};
    struct auth_macaroon macaroon;
    enum ron_err err = make_identifier(kid, now_ms, &identifier, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = auth_macaroon_mint(auth_keyring_root(keyring, kid), RON_SLICE(AUTH_LOCATION),
                             identifier_slice(&identifier), &macaroon, reterr);
    for (size_t i = 0; err == RON_ERR_OK && i < caveats_count; i++) {
        err = auth_macaroon_attenuate(&macaroon, caveats[i], reterr);
        if (err != RON_ERR_OK)
            (void)ron_wrap(reterr, err, "token: caveat %zu", i + 1);
    }
    if (err == RON_ERR_OK)
        err = check_caveats(&macaroon, reterr);
    if (err == RON_ERR_OK)
        err = auth_macaroon_encode(&macaroon, text, ret_size, reterr);
    if (err == RON_ERR_OK)
        *ret_identifier = identifier;
    ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    return err;
}

enum ron_err auth_keyring_mint(const struct auth_keyring *keyring, const struct ron_slice *caveats,
                               size_t caveats_count, uint64_t now_ms,
                               char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                               struct ron_errinfo *reterr)
{
    struct identifier identifier;

    keyring_check(keyring);
    return mint(keyring, caveats, caveats_count, now_ms, &identifier, text, ret_size, reterr);
}

enum ron_err auth_keyring_mint_operator(const struct auth_keyring *keyring, uint64_t now_ms,
                                        uint64_t lifetime_ms,
                                        char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                                        struct ron_errinfo *reterr)
{
    char scopes[AUTH_SCOPES_TEXT_SIZE];
    char scope_caveat[AUTH_SCOPES_TEXT_SIZE + 16];
    char time[RON_RFC3339_SIZE];
    char before_caveat[RON_RFC3339_SIZE + 16];
    uint64_t before_ms;

    if (__builtin_add_overflow(now_ms, lifetime_ms, &before_ms) || before_ms > RON_TIME_MS_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "token: it would expire after the year 9999");
    (void)auth_scopes_print(AUTH_SCOPES_ALL, scopes);
    ron_rfc3339_print(before_ms, time);
    (void)snprintf(scope_caveat, sizeof(scope_caveat), "scope = %s", scopes);
    (void)snprintf(before_caveat, sizeof(before_caveat), "before = %s", time);
    const struct ron_slice caveats[] = {ron_slice_text(scope_caveat),
                                        ron_slice_text(before_caveat)};
    return auth_keyring_mint(keyring, caveats, RON_ARRAY_COUNT(caveats), now_ms, text, ret_size,
                             reterr);
}

static enum ron_err mint_service(const struct auth_keyring *keyring, enum auth_role role,
                                 uint64_t now_ms, struct service *ret_service,
                                 struct ron_errinfo *reterr)
{
    char scopes[AUTH_SCOPES_TEXT_SIZE];
    char caveat[AUTH_SCOPES_TEXT_SIZE + 16];
    char text[AUTH_TOKEN_TEXT_SIZE];
    struct identifier identifier = {0};
    struct ron_secret token = {0};
    size_t size = 0;
    enum ron_err err;

    (void)auth_scopes_print(service_scopes[role], scopes);
    (void)snprintf(caveat, sizeof(caveat), "scope = %s", scopes);
    struct ron_slice caveats[] = {ron_slice_text(caveat)};
    err = mint(keyring, caveats, 1, now_ms, &identifier, text, &size, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = ron_secret_init(&token, ron_slice_of(text, size), reterr);
    ron_wipe(text, size);
    if (err != RON_ERR_OK)
        return err;
    *ret_service = (struct service){.identifier = identifier, .token = token};
    return RON_ERR_OK;
}

enum ron_err keyring_mint_services(struct auth_keyring *keyring, uint64_t now_ms,
                                   struct ron_errinfo *reterr)
{
    struct service fresh[AUTH_ROLE__MAX] = {0};
    enum ron_err err = RON_ERR_OK;

    for (unsigned i = 0; err == RON_ERR_OK && i < AUTH_ROLE__MAX; i++)
        err = mint_service(keyring, (enum auth_role)i, now_ms, &fresh[i], reterr);
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) {
        struct service old = keyring->services[i];

        if (err == RON_ERR_OK) {
            keyring->services[i] = fresh[i];
            fresh[i] = old;
        }
        ron_secret_fini(&fresh[i].token);
    }
    return err;
}
