/*
 * keyring.h - root keys by KID, what was revoked, and the roles' service tokens.
 *
 * One key signs; older ones still verify until they are revoked. Revoking names a key (all its
 * tokens end) or one token by its identifier. Each change that can end a token raises the epoch,
 * which is part of the key of the cache of verified tokens (cache.h): a revoked token is never
 * answered from it.
 *
 * Bytes in, bytes out: here is no file. Not synchronised; whoever shares a keyring replaces it as a
 * whole. The text form:
 *
 *     ron-keyring 1
 *     epoch 3
 *     key k1 2026-11-16T08:00:00.000Z verify <64 hex digits>     oldest first, one `sign`
 *     key k2 2026-11-17T08:00:00.000Z sign <64 hex digits>
 *     service ledger <token>                                     every role once, in their order
 *     revoked k1.01ARZ3NDEKTSV4RRFFQ69G5FAV 2026-11-18T08:00:00.000Z    ascending
 *     end b3:<64 hex digits>                                     of all bytes before this line
 *
 * A revoked key stays as `key k1 <time> revoked -`: without its bytes, so that its KID is not used
 * again. Decoding accepts exactly what encoding writes; the last line keeps a file that was cut
 * from losing its revocations. A service token is one that its key verifies.
 */
#ifndef RON_AUTH_KEYRING_H
#define RON_AUTH_KEYRING_H

#include "auth/grant.h"

enum {
    AUTH_KEYS_MAX = 64, /* revoked ones included */
    AUTH_KEY_SIZE = 32,
    AUTH_REVOKED_TOKENS_MAX = 4096,
    AUTH_KEYRING_TEXT_SIZE_MAX = 1 << 20,
};
#define AUTH_LOCATION "ron"

struct auth_keyring; /* opaque */

/* A keyring with one fresh random key (k1) and the service tokens. The caller owns it. */
enum ron_err auth_keyring_new(uint64_t now_ms, struct auth_keyring **ret_keyring,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Wipes. Accepts NULL, returns NULL. */
struct auth_keyring *auth_keyring_free(struct auth_keyring *keyring);
static inline void auth_keyring_freep(struct auth_keyring **keyring)
{
    *keyring = auth_keyring_free(*keyring);
}

/* RON_ERR_MALFORMED with the line, RON_ERR_NO_MEMORY. The caller wipes the text. */
enum ron_err auth_keyring_decode(struct ron_slice text, struct auth_keyring **ret_keyring,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* Appends to an empty buffer that may grow to AUTH_KEYRING_TEXT_SIZE_MAX; its memory is taken in
 * one piece, so no copy stays behind. The caller wipes it. */
enum ron_err auth_keyring_encode(const struct auth_keyring *keyring, struct ron_buf *buf,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* A fresh random key signs from now on, under the next KID; the service tokens are minted anew.
 * When the ring is full the oldest revoked key is forgotten (its tokens stay refused: no such key);
 * RON_ERR_BUSY if none is revoked. */
enum ron_err auth_keyring_rotate(struct auth_keyring *keyring, uint64_t now_ms,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* The same with a given key, for a KMS and tests: RON_ERR_CONFLICT when the KID was used. */
enum ron_err auth_keyring_rotate_to(struct auth_keyring *keyring, struct ron_slice kid,
                                    struct ron_slice key_bytes, uint64_t now_ms,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

/* Each is idempotent. RON_ERR_NOT_FOUND: no such key. RON_ERR_CONFLICT: the key signs, so rotate
 * first. RON_ERR_BUSY: the list of tokens is full; revoke their key. */
enum ron_err auth_keyring_revoke_key(struct auth_keyring *keyring, struct ron_slice kid,
                                     struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err auth_keyring_revoke_token(struct auth_keyring *keyring, struct ron_slice identifier,
                                       uint64_t now_ms, struct ron_errinfo *reterr) RON_MUST_USE;
bool auth_keyring_is_revoked(const struct auth_keyring *keyring, struct ron_slice identifier);

uint64_t auth_keyring_epoch(const struct auth_keyring *keyring);
/* The key that verifies tokens of this KID; NULL when it is unknown or revoked. */
const struct ron_secret *auth_keyring_root(const struct auth_keyring *keyring,
                                           struct ron_slice kid);
/* The KID that signs. */
struct ron_slice auth_keyring_signing_kid(const struct auth_keyring *keyring);

/* The token with which a role calls others; lives until the next rotation. */
const struct ron_secret *auth_keyring_service(const struct auth_keyring *keyring,
                                              enum auth_role role);
/* Is it the identifier of a service token, and whose? */
bool auth_keyring_service_of(const struct auth_keyring *keyring, struct ron_slice identifier,
                             enum auth_role *ret_role) RON_MUST_USE;

/* Mint a token with the signing key: identifier `<kid>.<ULID>`, these caveats. A scope caveat is
 * required: without one a token could do everything. RON_ERR_MALFORMED says which caveat is wrong,
 * or that they exclude each other; RON_ERR_TOO_LARGE. The caller wipes the text. */
enum ron_err auth_keyring_mint(const struct auth_keyring *keyring, const struct ron_slice *caveats,
                               size_t caveats_count, uint64_t now_ms,
                               char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The operator's token of a first start: every scope by name, any tenant, valid for lifetime_ms. */
enum ron_err auth_keyring_mint_operator(const struct auth_keyring *keyring, uint64_t now_ms,
                                        uint64_t lifetime_ms,
                                        char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                                        struct ron_errinfo *reterr) RON_MUST_USE;

#endif
