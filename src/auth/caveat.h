/*
 * caveat.h - the grammar of first-party caveats, and what each does to a grant.
 *
 * A caveat is `name = value`, one space on each side of the sign, nothing around:
 *
 *     tenant = 7                        u128, canonical decimal; none means tenant 0
 *     scope = wallet.read,wallet.hold   scopes of the table, none twice
 *     aud = wallet                      one role
 *     account = acct_a  account = a*    a name or everything that begins so; `*` is any
 *     asset = roc                       one asset
 *     max_amount = 100                  of one entry; u128
 *     max_daily = 1000                  of one UTC day, all assets together; u128
 *     method = POST                     one HTTP method
 *     path = /v1/transfer  path = /v1/tx*  without query; as account
 *     ip = 10.0.0.0/8  ip = ::1/128     a network; host bits are zero; no mapped IPv6
 *     before = 2027-01-01T00:00:00Z     valid up to, not at, that moment
 *     after = 2026-01-01T00:00:00Z      valid from that moment on
 *     rate = 10/20                      requests a second and burst, 1..10^9 each
 *
 * Fail-closed: another name, a value outside its grammar, a scope or role that we do not know, each
 * refuses the token. A caveat can only narrow: of two of a kind the narrower holds, and if they
 * have nothing in common the grant is void.
 */
#ifndef RON_AUTH_CAVEAT_H
#define RON_AUTH_CAVEAT_H

#include "auth/grant.h"

/* Narrow the grant by one caveat. RON_ERR_UNAUTHORIZED when it is unknown or ill-formed (the grant
 * is then unusable); the message names the kind, never the value. */
enum ron_err auth_caveat_apply(struct auth_grant *grant, struct ron_slice caveat,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* The same for a whole token: the grant of this identifier and these caveats, in order. Says which
 * caveat is wrong, counted from 1. */
enum ron_err auth_caveats_apply(const struct auth_macaroon *macaroon, struct auth_grant *ret_grant,
                                struct ron_errinfo *reterr) RON_MUST_USE;

/* The name of a kind, as it stands in a caveat. */
const char *auth_caveat_name(enum auth_caveat kind);

#endif
