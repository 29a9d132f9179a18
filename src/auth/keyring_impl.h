/*
 * keyring_impl.h - the inside of a keyring, for keyring*.c only.
 */
#ifndef RON_AUTH_KEYRING_IMPL_H
#define RON_AUTH_KEYRING_IMPL_H

#include "auth/keyring.h"

enum key_state { KEY_VERIFY, KEY_SIGN, KEY_REVOKED };

struct key {
    uint8_t kid_size;
    char kid[AUTH_KID_SIZE_MAX];
    enum key_state state;
    uint64_t created_ms;
    struct ron_secret root; /* empty when revoked */
};

/* A text of a bounded size. */
struct identifier {
    uint8_t size;
    char text[AUTH_IDENTIFIER_SIZE_MAX];
};

struct service {
    struct identifier identifier;
    struct ron_secret token;
};

struct revoked {
    struct identifier identifier;
    uint64_t when_ms;
};

#define KEYRING_MAGIC 0x6b657972u
struct auth_keyring {
    uint32_t magic;
    uint64_t epoch;
    uint32_t keys_count;
    struct key keys[AUTH_KEYS_MAX]; /* oldest first; exactly one signs */
    struct service services[AUTH_ROLE__MAX];
    uint32_t revoked_count;
    uint32_t revoked_capacity;
    struct revoked *revoked; /* ascending by identifier */
};

static inline struct ron_slice key_kid(const struct key *key)
{
    return ron_slice_of(key->kid, key->kid_size);
}
static inline struct ron_slice identifier_slice(const struct identifier *identifier)
{
    return ron_slice_of(identifier->text, identifier->size);
}

/* An empty keyring, not yet valid. */
struct auth_keyring *keyring_alloc(void);
struct key *keyring_find(struct auth_keyring *keyring, struct ron_slice kid);
/* Append a key that is not in the ring; takes nothing over. */
enum ron_err keyring_add(struct auth_keyring *keyring, struct ron_slice kid, enum key_state state,
                         uint64_t created_ms, struct ron_slice key_bytes,
                         struct ron_errinfo *reterr) RON_MUST_USE;
/* Insert in order; false when it is there already. */
enum ron_err keyring_add_revoked(struct auth_keyring *keyring, struct ron_slice identifier,
                                 uint64_t when_ms, bool *ret_added,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* Make the token of every role with the signing key; all or none is replaced. */
enum ron_err keyring_mint_services(struct auth_keyring *keyring, uint64_t now_ms,
                                   struct ron_errinfo *reterr) RON_MUST_USE;
void keyring_check(const struct auth_keyring *keyring);

#endif
