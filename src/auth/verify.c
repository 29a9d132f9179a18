/*
 * verify.c - token, key and revocations give a grant. See verify.h.
 */
#include "auth/verify.h"

#include "auth/caveat.h"

static enum ron_err check(const struct auth_keyring *keyring, const struct auth_macaroon *macaroon,
                          struct auth_grant *ret_grant, struct ron_errinfo *reterr)
{
    const struct ron_secret *root;
    struct auth_grant grant;
    size_t kid_size = 0;
    enum ron_err err;

    /* The chain does not cover the location; ours is fixed, so that a token has one text. */
    if (!ron_slice_equal(macaroon->location, RON_SLICE(AUTH_LOCATION)))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: its location is not %s",
                        AUTH_LOCATION);
    if (!auth_identifier_split(macaroon->identifier, &kid_size))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: its identifier is not KID.ULID");
    root = auth_keyring_root(keyring, ron_slice_of(macaroon->identifier.data, kid_size));
    if (root == NULL)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: its key is unknown or revoked");
    err = auth_macaroon_verify(macaroon, root, reterr);
    if (err != RON_ERR_OK)
        return err;
    /* After the MAC: who guesses an identifier does not learn whether it was revoked. */
    if (auth_keyring_is_revoked(keyring, macaroon->identifier))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: it is revoked");
    err = auth_caveats_apply(macaroon, &grant, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (auth_keyring_service_of(keyring, macaroon->identifier, &grant.service))
        grant.is_service = true;
    *ret_grant = grant;
    return RON_ERR_OK;
}

enum ron_err auth_verify(const struct auth_keyring *keyring, struct ron_slice token,
                         struct auth_grant *ret_grant, struct ron_errinfo *reterr)
{
    uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct auth_macaroon macaroon;
    enum ron_err err = auth_macaroon_decode(token, bytes, &macaroon, reterr);

    if (err == RON_ERR_OK) {
        err = check(keyring, &macaroon, ret_grant, reterr);
        ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    }
    /* The token's bytes are no more than its text. */
    ron_wipe(bytes, token.size < sizeof(bytes) ? token.size : sizeof(bytes));
    return err;
}
