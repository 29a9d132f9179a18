/*
 * cache.h - a bounded memory of tokens that verified, so that the next request need not.
 *
 * The key is a hash of the token's text, its size, and the keyring's epoch: a revocation makes
 * every entry unreachable at once. What depends on time or on the request (expiry, scope, ...) is
 * not remembered; it is asked of the grant. Only tokens that verified get in, so an attacker
 * without a token cannot push others out. The token itself is not kept.
 *
 * The hash is universal, under a random secret of the cache's own that nobody sees: of two texts
 * that were chosen without knowing it, 2^-128 is the chance that they are taken for one. It takes a
 * tenth of the time of SHA-256. A text near 4 KiB or longer, which the secret does not cover, is
 * verified each time.
 *
 * Not synchronised: one cache per network loop. It serves one keyring and what that becomes.
 */
#ifndef RON_AUTH_CACHE_H
#define RON_AUTH_CACHE_H

#include "auth/verify.h"

enum { AUTH_CACHE_WAYS = 4, AUTH_CACHE_SLOTS_MAX = 1 << 16 };

struct auth_cache; /* opaque */

/* slots_count is a power of two, AUTH_CACHE_WAYS..AUTH_CACHE_SLOTS_MAX. The caller owns it. */
enum ron_err auth_cache_new(uint32_t slots_count, struct auth_cache **ret_cache,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Accepts NULL, returns NULL. */
struct auth_cache *auth_cache_free(struct auth_cache *cache);

/* auth_verify through the cache. The grant lives until the next call. */
enum ron_err auth_cache_verify(struct auth_cache *cache, const struct auth_keyring *keyring,
                               struct ron_slice token, const struct auth_grant **ret_grant,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* How often it helped, for metrics. */
uint64_t auth_cache_hits(const struct auth_cache *cache);
uint64_t auth_cache_misses(const struct auth_cache *cache);

#endif
