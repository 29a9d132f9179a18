/*
 * keyring.c - keys, rotation, revocation. See keyring.h; its text is keyring_text.c, minting
 * keyring_mint.c.
 */
#include "auth/keyring.h"

#include <stdio.h>

#include "auth/keyring_impl.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "base/mem.h"

void keyring_check(const struct auth_keyring *keyring)
{
    RON_ASSERT(keyring != NULL);
    RON_ASSERT(keyring->magic == KEYRING_MAGIC);
    RON_ASSERT(keyring->keys_count <= AUTH_KEYS_MAX);
    RON_ASSERT(keyring->revoked_count <= keyring->revoked_capacity);
}

struct auth_keyring *keyring_alloc(void)
{
    struct auth_keyring *keyring = ron_mem_alloc(sizeof(*keyring));

    if (keyring != NULL)
        keyring->magic = KEYRING_MAGIC;
    return keyring;
}

struct auth_keyring *auth_keyring_free(struct auth_keyring *keyring)
{
    if (keyring == NULL)
        return NULL;
    keyring_check(keyring);
    for (uint32_t i = 0; i < keyring->keys_count; i++)
        ron_secret_fini(&keyring->keys[i].root);
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++)
        ron_secret_fini(&keyring->services[i].token);
    keyring->revoked = ron_mem_free(keyring->revoked);
    keyring->magic = 0;
    return ron_mem_free(keyring);
}

/* Keys. */

struct key *keyring_find(struct auth_keyring *keyring, struct ron_slice kid)
{
    for (uint32_t i = 0; i < keyring->keys_count; i++) {
        if (ron_slice_equal(key_kid(&keyring->keys[i]), kid))
            return &keyring->keys[i];
    }
    return NULL;
}

static const struct key *find_const(const struct auth_keyring *keyring, struct ron_slice kid)
{
    for (uint32_t i = 0; i < keyring->keys_count; i++) {
        if (ron_slice_equal(key_kid(&keyring->keys[i]), kid))
            return &keyring->keys[i];
    }
    return NULL;
}

enum ron_err keyring_add(struct auth_keyring *keyring, struct ron_slice kid, enum key_state state,
                         uint64_t created_ms, struct ron_slice key_bytes,
                         struct ron_errinfo *reterr)
{
    struct key *key = &keyring->keys[keyring->keys_count];
    struct ron_secret root = {0};

    RON_ASSERT(keyring->keys_count < AUTH_KEYS_MAX);
    RON_ASSERT(auth_kid_valid(kid));
    if (state != KEY_REVOKED) {
        enum ron_err err = key_bytes.data == NULL
                               ? ron_secret_init_random(&root, AUTH_KEY_SIZE, reterr)
                               : ron_secret_init(&root, key_bytes, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    key->kid_size = (uint8_t)kid.size;
    memcpy(key->kid, kid.data, kid.size);
    key->state = state;
    key->created_ms = created_ms;
    key->root = root;
    keyring->keys_count++;
    return RON_ERR_OK;
}

const struct ron_secret *auth_keyring_root(const struct auth_keyring *keyring, struct ron_slice kid)
{
    const struct key *key;

    keyring_check(keyring);
    key = find_const(keyring, kid);
    return key == NULL || key->state == KEY_REVOKED ? NULL : &key->root;
}

struct ron_slice auth_keyring_signing_kid(const struct auth_keyring *keyring)
{
    keyring_check(keyring);
    for (uint32_t i = 0; i < keyring->keys_count; i++) {
        if (keyring->keys[i].state == KEY_SIGN)
            return key_kid(&keyring->keys[i]);
    }
    RON_UNREACHABLE(); /* a keyring is born with a signing key, and that is never revoked */
}

uint64_t auth_keyring_epoch(const struct auth_keyring *keyring)
{
    keyring_check(keyring);
    return keyring->epoch;
}

/* Rotation. */

/* kN with N above every number in use, also by revoked keys: the newest is never forgotten. */
static void next_kid(const struct auth_keyring *keyring, char kid[static AUTH_KID_SIZE_MAX + 1])
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < keyring->keys_count; i++) {
        struct ron_slice text = key_kid(&keyring->keys[i]);
        uint64_t number = 0;

        if (text.data[0] == 'k' &&
            ron_decimal_parse_u64(ron_slice_of(text.data + 1, text.size - 1), &number, NULL) ==
                RON_ERR_OK &&
            number > last && number < UINT64_MAX)
            last = number;
    }
    (void)snprintf(kid, AUTH_KID_SIZE_MAX + 1, "k%llu", (unsigned long long)last + 1);
}

/* Make room for one more key by forgetting the oldest revoked one. */
static bool make_room(struct auth_keyring *keyring)
{
    uint32_t i = 0;

    if (keyring->keys_count < AUTH_KEYS_MAX)
        return true;
    while (i < keyring->keys_count && keyring->keys[i].state != KEY_REVOKED)
        i++;
    if (i == keyring->keys_count)
        return false;
    memmove(&keyring->keys[i], &keyring->keys[i + 1],
            (keyring->keys_count - i - 1) * sizeof(keyring->keys[0]));
    keyring->keys_count--;
    return true;
}

static enum ron_err rotate(struct auth_keyring *keyring, struct ron_slice kid,
                           struct ron_slice key_bytes, uint64_t now_ms, struct ron_errinfo *reterr)
{
    struct key *old = NULL;
    enum ron_err err;

    if (!make_room(keyring))
        return ron_fail(reterr, RON_ERR_BUSY, "keyring: all %d keys are in use: revoke one",
                        AUTH_KEYS_MAX);
    for (uint32_t i = 0; i < keyring->keys_count; i++) {
        if (keyring->keys[i].state == KEY_SIGN)
            old = &keyring->keys[i];
    }
    err = keyring_add(keyring, kid, KEY_SIGN, now_ms, key_bytes, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (old != NULL)
        old->state = KEY_VERIFY;
    err = keyring_mint_services(keyring, now_ms, reterr);
    if (err != RON_ERR_OK) { /* as before, but for a revoked key that may be forgotten */
        keyring->keys_count--;
        ron_secret_fini(&keyring->keys[keyring->keys_count].root);
        if (old != NULL)
            old->state = KEY_SIGN;
        return err;
    }
    keyring->epoch++;
    return RON_ERR_OK;
}

enum ron_err auth_keyring_rotate(struct auth_keyring *keyring, uint64_t now_ms,
                                 struct ron_errinfo *reterr)
{
    char kid[AUTH_KID_SIZE_MAX + 1];

    keyring_check(keyring);
    next_kid(keyring, kid);
    return rotate(keyring, ron_slice_text(kid), (struct ron_slice){0}, now_ms, reterr);
}

enum ron_err auth_keyring_rotate_to(struct auth_keyring *keyring, struct ron_slice kid,
                                    struct ron_slice key_bytes, uint64_t now_ms,
                                    struct ron_errinfo *reterr)
{
    keyring_check(keyring);
    if (!auth_kid_valid(kid))
        return ron_fail(reterr, RON_ERR_MALFORMED, "keyring: a KID is 1 to %d of A-Z a-z 0-9 _ -",
                        AUTH_KID_SIZE_MAX);
    if (key_bytes.size != AUTH_KEY_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "keyring: a key of %zu bytes, not %d",
                        key_bytes.size, AUTH_KEY_SIZE);
    if (keyring_find(keyring, kid) != NULL)
        return ron_fail(reterr, RON_ERR_CONFLICT, "keyring: KID %.*s was used before",
                        RON_SLICE_FMT(kid));
    return rotate(keyring, kid, key_bytes, now_ms, reterr);
}

enum ron_err auth_keyring_new(uint64_t now_ms, struct auth_keyring **ret_keyring,
                              struct ron_errinfo *reterr)
{
    struct auth_keyring *keyring = keyring_alloc();
    enum ron_err err;

    if (keyring == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "keyring: %zu bytes", sizeof(*keyring));
    err = auth_keyring_rotate(keyring, now_ms, reterr);
    if (err == RON_ERR_OK)
        *ret_keyring = RON_TAKE(keyring);
    keyring = auth_keyring_free(keyring);
    return err;
}

/* Revocation. */

/* Where the identifier is, or would be inserted. */
static uint32_t revoked_place(const struct auth_keyring *keyring, struct ron_slice identifier,
                              bool *ret_there)
{
    uint32_t low = 0;
    uint32_t high = keyring->revoked_count;

    *ret_there = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = ron_slice_compare(identifier_slice(&keyring->revoked[middle].identifier),
                                      identifier);

        if (order == 0) {
            *ret_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool auth_keyring_is_revoked(const struct auth_keyring *keyring, struct ron_slice identifier)
{
    bool there;

    keyring_check(keyring);
    (void)revoked_place(keyring, identifier, &there);
    return there;
}

enum ron_err keyring_add_revoked(struct auth_keyring *keyring, struct ron_slice identifier,
                                 uint64_t when_ms, bool *ret_added, struct ron_errinfo *reterr)
{
    bool there;
    uint32_t at = revoked_place(keyring, identifier, &there);
    struct revoked *place;

    RON_ASSERT(identifier.size <= AUTH_IDENTIFIER_SIZE_MAX);
    if (there) {
        *ret_added = false;
        return RON_ERR_OK;
    }
    if (keyring->revoked_count == AUTH_REVOKED_TOKENS_MAX)
        return ron_fail(reterr, RON_ERR_BUSY,
                        "keyring: %d tokens are revoked one by one: revoke their key",
                        AUTH_REVOKED_TOKENS_MAX);
    if (keyring->revoked_count == keyring->revoked_capacity) {
        uint32_t capacity = keyring->revoked_capacity == 0 ? 16 : 2 * keyring->revoked_capacity;
        struct revoked *more = ron_mem_resize(keyring->revoked,
                                              capacity * sizeof(keyring->revoked[0]));

        if (more == NULL)
            return ron_fail(reterr, RON_ERR_NO_MEMORY, "keyring: %u revoked tokens", capacity);
        keyring->revoked = more;
        keyring->revoked_capacity = capacity;
    }
    place = &keyring->revoked[at];
    memmove(place + 1, place, (keyring->revoked_count - at) * sizeof(*place));
    memset(place, 0, sizeof(*place));
    place->identifier.size = (uint8_t)identifier.size;
    memcpy(place->identifier.text, identifier.data, identifier.size);
    place->when_ms = when_ms;
    keyring->revoked_count++;
    *ret_added = true;
    return RON_ERR_OK;
}

/* Tokens of a dead key need no row of their own. */
static void forget_tokens_of(struct auth_keyring *keyring, struct ron_slice kid)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < keyring->revoked_count; i++) {
        const struct identifier *identifier = &keyring->revoked[i].identifier;
        bool of_kid = identifier->size > kid.size && identifier->text[kid.size] == '.' &&
                      memcmp(identifier->text, kid.data, kid.size) == 0;

        if (!of_kid)
            keyring->revoked[kept++] = keyring->revoked[i];
    }
    keyring->revoked_count = kept;
}

enum ron_err auth_keyring_revoke_key(struct auth_keyring *keyring, struct ron_slice kid,
                                     struct ron_errinfo *reterr)
{
    struct key *key;

    keyring_check(keyring);
    key = keyring_find(keyring, kid);
    if (key == NULL)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "keyring: no such key");
    if (key->state == KEY_SIGN)
        return ron_fail(reterr, RON_ERR_CONFLICT, "keyring: key %.*s signs: rotate first",
                        RON_SLICE_FMT(key_kid(key)));
    if (key->state == KEY_REVOKED)
        return RON_ERR_OK;
    key->state = KEY_REVOKED;
    ron_secret_fini(&key->root);
    forget_tokens_of(keyring, key_kid(key));
    keyring->epoch++;
    return RON_ERR_OK;
}

enum ron_err auth_keyring_revoke_token(struct auth_keyring *keyring, struct ron_slice identifier,
                                       uint64_t now_ms, struct ron_errinfo *reterr)
{
    const struct key *key;
    enum ron_err err;
    size_t kid_size;
    bool added = false;

    keyring_check(keyring);
    if (!auth_identifier_split(identifier, &kid_size))
        return ron_fail(reterr, RON_ERR_MALFORMED, "keyring: a token is revoked as KID.ULID");
    key = find_const(keyring, ron_slice_of(identifier.data, kid_size));
    if (key == NULL)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "keyring: no key of this token");
    if (key->state == KEY_REVOKED)
        return RON_ERR_OK;
    err = keyring_add_revoked(keyring, identifier, now_ms, &added, reterr);
    if (err == RON_ERR_OK && added)
        keyring->epoch++;
    return err;
}

/* Services. */

const struct ron_secret *auth_keyring_service(const struct auth_keyring *keyring,
                                              enum auth_role role)
{
    keyring_check(keyring);
    RON_ASSERT((unsigned)role < AUTH_ROLE__MAX);
    return &keyring->services[role].token;
}

bool auth_keyring_service_of(const struct auth_keyring *keyring, struct ron_slice identifier,
                             enum auth_role *ret_role)
{
    keyring_check(keyring);
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) {
        if (ron_slice_equal(identifier_slice(&keyring->services[i].identifier), identifier)) {
            *ret_role = (enum auth_role)i;
            return true;
        }
    }
    return false;
}
