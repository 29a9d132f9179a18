/*
 * keyring_text.c - a keyring as text, both ways. See keyring.h for the format.
 *
 * The reader accepts exactly what the writer writes: it reads field by field, and what a field's
 * parser would take more loosely (a time without fraction) is checked by its size.
 */
#include "auth/caveat.h"
#include "auth/keyring.h"
#include "auth/keyring_impl.h"
#include "base/assert.h"
#include "base/b3.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/rfc3339.h"

enum {
    FIELDS_MAX = 5,
    HEX_SIZE = 2 * AUTH_KEY_SIZE,
    TIME_SIZE = RON_RFC3339_SIZE - 1,
    KEY_LINE_SIZE = 4 + AUTH_KID_SIZE_MAX + 1 + TIME_SIZE + 1 + 7 + 1 + HEX_SIZE + 1,
    REVOKED_LINE_SIZE = 8 + AUTH_IDENTIFIER_SIZE_MAX + 1 + TIME_SIZE + 1,
    SERVICE_LINE_SIZE = 8 + 16 + 1 + RON_SECRET_SIZE_MAX + 1,
    OTHER_LINES_SIZE = 256,
};
_Static_assert(OTHER_LINES_SIZE + AUTH_KEYS_MAX * KEY_LINE_SIZE +
                       AUTH_REVOKED_TOKENS_MAX * REVOKED_LINE_SIZE +
                       AUTH_ROLE__MAX * SERVICE_LINE_SIZE <=
                   AUTH_KEYRING_TEXT_SIZE_MAX,
               "any keyring can be written");

static const char *const state_names[] = {
    [KEY_VERIFY] = "verify", [KEY_SIGN] = "sign", [KEY_REVOKED] = "revoked"};

/* Writing. */

static void put_time(struct ron_buf *buf, uint64_t time_ms)
{
    char text[RON_RFC3339_SIZE];

    ron_rfc3339_print(time_ms, text);
    ron_buf_put_text(buf, text);
}

static void put_key(struct ron_buf *buf, const struct key *key)
{
    char hex[RON_HEX_SIZE(AUTH_KEY_SIZE)] = "-";

    if (key->state != KEY_REVOKED)
        (void)ron_hex_encode(ron_secret_expose(&key->root), hex, sizeof(hex));
    ron_buf_put_format(buf, "key %.*s ", RON_SLICE_FMT(key_kid(key)));
    put_time(buf, key->created_ms);
    ron_buf_put_format(buf, " %s ", state_names[key->state]);
    ron_buf_put_text(buf, hex);
    ron_buf_put_byte(buf, '\n');
    ron_wipe(hex, sizeof(hex));
}

enum ron_err auth_keyring_encode(const struct auth_keyring *keyring, struct ron_buf *buf,
                                 struct ron_errinfo *reterr)
{
    char hash_text[RON_B3_TEXT_SIZE];
    struct ron_b3 hash;
    enum ron_err err;

    keyring_check(keyring);
    RON_ASSERT(buf->size == 0);
    err = ron_buf_reserve(buf,
                          OTHER_LINES_SIZE + (size_t)keyring->keys_count * KEY_LINE_SIZE +
                              (size_t)keyring->revoked_count * REVOKED_LINE_SIZE +
                              (size_t)AUTH_ROLE__MAX * SERVICE_LINE_SIZE,
                          reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_buf_put_format(buf, "ron-keyring 1\nepoch %llu\n", (unsigned long long)keyring->epoch);
    for (uint32_t i = 0; i < keyring->keys_count; i++)
        put_key(buf, &keyring->keys[i]);
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) {
        struct ron_slice token = ron_secret_expose(&keyring->services[i].token);

        ron_buf_put_format(buf, "service %s ", auth_role_name((enum auth_role)i));
        ron_buf_put(buf, token.data, token.size);
        ron_buf_put_byte(buf, '\n');
    }
    for (uint32_t i = 0; i < keyring->revoked_count; i++) {
        const struct revoked *revoked = &keyring->revoked[i];

        ron_buf_put_format(buf, "revoked %.*s ",
                           RON_SLICE_FMT(identifier_slice(&revoked->identifier)));
        put_time(buf, revoked->when_ms);
        ron_buf_put_byte(buf, '\n');
    }
    hash = ron_b3(buf->data, buf->size);
    ron_b3_print(&hash, hash_text);
    ron_buf_put_format(buf, "end %s\n", hash_text);
    return ron_buf_check(buf, reterr);
}

/* Reading. */

struct reader {
    struct ron_slice text;
    size_t at;
    size_t line_at; /* of the current line */
    unsigned line;  /* its number, from 1 */
    unsigned fields_count;
    struct ron_slice fields[FIELDS_MAX];
    struct ron_errinfo *reterr;
};

static enum ron_err bad(const struct reader *in, const char *what)
{
    return ron_fail(in->reterr, RON_ERR_MALFORMED, "keyring: line %u: %s", in->line, what);
}

/* The next line, cut into fields at single spaces. */
static enum ron_err next_line(struct reader *in)
{
    const uint8_t *start = in->text.data + in->at;
    size_t left = in->text.size - in->at;
    const uint8_t *end = left == 0 ? NULL : memchr(start, '\n', left);
    size_t size;
    size_t field_at = 0;

    in->line++;
    in->line_at = in->at;
    in->fields_count = 0;
    if (end == NULL)
        return bad(in, "the text ends within a line, or before its `end`");
    size = (size_t)(end - start);
    for (size_t i = 0; i <= size; i++) {
        if (i < size && start[i] != ' ')
            continue;
        if (in->fields_count == FIELDS_MAX)
            return bad(in, "too many fields");
        in->fields[in->fields_count++] = ron_slice_of(start + field_at, i - field_at);
        field_at = i + 1;
    }
    in->at += size + 1;
    return RON_ERR_OK;
}

/* Is the line of this kind, with that many fields? */
static bool line_is(const struct reader *in, const char *kind, unsigned fields_count)
{
    return in->fields_count == fields_count && ron_slice_equal(in->fields[0], ron_slice_text(kind));
}

static bool read_time(struct ron_slice text, uint64_t *ret_time_ms)
{
    return text.size == TIME_SIZE && ron_rfc3339_parse(text, ret_time_ms, NULL) == RON_ERR_OK;
}

static bool read_state(struct ron_slice text, enum key_state *ret_state)
{
    for (size_t i = 0; i < RON_ARRAY_COUNT(state_names); i++) {
        if (ron_slice_equal(text, ron_slice_text(state_names[i]))) {
            *ret_state = (enum key_state)i;
            return true;
        }
    }
    return false;
}

static enum ron_err read_key(struct reader *in, struct auth_keyring *keyring)
{
    struct ron_slice kid = in->fields[1];
    uint8_t bytes[AUTH_KEY_SIZE] = {0};
    enum key_state state = KEY_REVOKED;
    uint64_t created_ms = 0;
    size_t size = 0;
    enum ron_err err;

    if (!auth_kid_valid(kid))
        return bad(in, "not a KID");
    if (keyring_find(keyring, kid) != NULL)
        return bad(in, "this KID stands here twice");
    if (keyring->keys_count == AUTH_KEYS_MAX)
        return bad(in, "too many keys");
    if (!read_time(in->fields[2], &created_ms) || !read_state(in->fields[3], &state))
        return bad(in, "not a time and sign, verify or revoked");
    if (state == KEY_REVOKED) {
        if (!ron_slice_equal(in->fields[4], RON_SLICE("-")))
            return bad(in, "a revoked key has no bytes, but a `-`");
    } else if (ron_hex_decode(in->fields[4], bytes, sizeof(bytes), &size, NULL) != RON_ERR_OK ||
               size != sizeof(bytes)) {
        ron_wipe(bytes, sizeof(bytes));
        return bad(in, "a key is 64 lower-case hex digits");
    }
    err = keyring_add(keyring, kid, state, created_ms, ron_slice_of(bytes, sizeof(bytes)),
                      in->reterr);
    ron_wipe(bytes, sizeof(bytes));
    return err;
}

static enum ron_err read_keys(struct reader *in, struct auth_keyring *keyring)
{
    unsigned signing_count = 0;
    enum ron_err err;

    for (;;) {
        err = next_line(in);
        if (err != RON_ERR_OK)
            return err;
        if (!line_is(in, "key", 5))
            break;
        err = read_key(in, keyring);
        if (err != RON_ERR_OK)
            return err;
        signing_count += keyring->keys[keyring->keys_count - 1].state == KEY_SIGN;
    }
    if (signing_count != 1)
        return bad(in, "exactly one key must sign");
    return RON_ERR_OK;
}

/* The current line is the first of the services. */
static enum ron_err read_service(struct reader *in, struct auth_keyring *keyring,
                                 enum auth_role role)
{
    struct service *service = &keyring->services[role];
    uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    struct auth_macaroon macaroon;
    struct auth_grant grant;
    const struct ron_secret *root;
    enum ron_err err = RON_ERR_OK;

    if (!line_is(in, "service", 3) ||
        !ron_slice_equal(in->fields[1], ron_slice_text(auth_role_name(role))))
        return bad(in, "a key, or the service token of the next role, was expected");
    if (in->fields[2].size > RON_SECRET_SIZE_MAX ||
        auth_macaroon_decode(in->fields[2], bytes, &macaroon, NULL) != RON_ERR_OK ||
        auth_caveats_apply(&macaroon, &grant, NULL) != RON_ERR_OK)
        return bad(in, "not a token");
    root = auth_keyring_root(keyring, auth_grant_kid(&grant));
    if (root == NULL || auth_macaroon_verify(&macaroon, root, NULL) != RON_ERR_OK)
        err = bad(in, "a token that no key here verifies");
    ron_wipe(bytes, sizeof(bytes));
    ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    if (err != RON_ERR_OK)
        return err;
    err = ron_secret_init(&service->token, in->fields[2], in->reterr);
    if (err != RON_ERR_OK)
        return err;
    service->identifier.size = grant.ref_size;
    memcpy(service->identifier.text, grant.ref, grant.ref_size);
    return RON_ERR_OK;
}

static enum ron_err read_services(struct reader *in, struct auth_keyring *keyring)
{
    for (unsigned i = 0; i < AUTH_ROLE__MAX; i++) {
        enum ron_err err = read_service(in, keyring, (enum auth_role)i);

        if (err == RON_ERR_OK)
            err = next_line(in);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

static enum ron_err read_revoked(struct reader *in, struct auth_keyring *keyring)
{
    while (line_is(in, "revoked", 3)) {
        struct ron_slice identifier = in->fields[1];
        uint64_t when_ms = 0;
        size_t kid_size = 0;
        bool added = false;
        enum ron_err err;

        if (!auth_identifier_split(identifier, &kid_size) || !read_time(in->fields[2], &when_ms))
            return bad(in, "not KID.ULID and a time");
        if (auth_keyring_root(keyring, ron_slice_of(identifier.data, kid_size)) == NULL)
            return bad(in, "a token of a key that is not here or revoked");
        if (keyring->revoked_count > 0 &&
            ron_slice_compare(
                identifier_slice(&keyring->revoked[keyring->revoked_count - 1].identifier),
                identifier) >= 0)
            return bad(in, "revoked tokens are not in ascending order");
        err = keyring_add_revoked(keyring, identifier, when_ms, &added, in->reterr);
        if (err == RON_ERR_OK)
            err = next_line(in);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

static enum ron_err read_head(struct reader *in, struct auth_keyring *keyring)
{
    enum ron_err err = next_line(in);

    if (err != RON_ERR_OK)
        return err;
    if (!line_is(in, "ron-keyring", 2) || !ron_slice_equal(in->fields[1], RON_SLICE("1")))
        return bad(in, "not a keyring of version 1");
    err = next_line(in);
    if (err != RON_ERR_OK)
        return err;
    if (!line_is(in, "epoch", 2) ||
        ron_decimal_parse_u64(in->fields[1], &keyring->epoch, NULL) != RON_ERR_OK)
        return bad(in, "not the epoch");
    return RON_ERR_OK;
}

/* The current line is the last one. */
static enum ron_err read_end(struct reader *in)
{
    struct ron_b3 said;
    struct ron_b3 hash;

    if (!line_is(in, "end", 2) || ron_b3_parse(in->fields[1], &said, NULL) != RON_ERR_OK)
        return bad(in, "a revoked token or the `end` was expected");
    hash = ron_b3(in->text.data, in->line_at);
    if (memcmp(hash.bytes, said.bytes, sizeof(hash.bytes)) != 0)
        return bad(in, "the hash does not fit what stands before it");
    if (in->at != in->text.size)
        return bad(in, "more after the `end`");
    return RON_ERR_OK;
}

enum ron_err auth_keyring_decode(struct ron_slice text, struct auth_keyring **ret_keyring,
                                 struct ron_errinfo *reterr)
{
    struct reader in = {.text = text, .reterr = reterr};
    struct auth_keyring *keyring;
    enum ron_err err;

    if (text.size > AUTH_KEYRING_TEXT_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "keyring: %zu bytes, at most %d", text.size,
                        AUTH_KEYRING_TEXT_SIZE_MAX);
    keyring = keyring_alloc();
    if (keyring == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "keyring: %zu bytes", sizeof(*keyring));
    err = read_head(&in, keyring);
    if (err == RON_ERR_OK)
        err = read_keys(&in, keyring);
    if (err == RON_ERR_OK)
        err = read_services(&in, keyring);
    if (err == RON_ERR_OK)
        err = read_revoked(&in, keyring);
    if (err == RON_ERR_OK)
        err = read_end(&in);
    if (err == RON_ERR_OK)
        *ret_keyring = RON_TAKE(keyring);
    keyring = auth_keyring_free(keyring);
    return err;
}
