/*
 * verify.h - from a token's text to the grant of its holder.
 *
 * In this order: text, location, identifier, key, MAC, revocation, caveats. Every refusal is
 * RON_ERR_UNAUTHORIZED: there is no valid capability. Whether the grant allows the request, and
 * whether it has expired, is asked of the grant (grant.h), each time.
 */
#ifndef RON_AUTH_VERIFY_H
#define RON_AUTH_VERIFY_H

#include "auth/grant.h"
#include "auth/keyring.h"

/* Any thread, as long as nobody changes the keyring. Allocates nothing. */
enum ron_err auth_verify(const struct auth_keyring *keyring, struct ron_slice token,
                         struct auth_grant *ret_grant, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
