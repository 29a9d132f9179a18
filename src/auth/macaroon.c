/*
 * macaroon.c - macaroons v1: packets, base64url, the chain of MACs. See macaroon.h.
 */
#include "auth/macaroon.h"

#include "base/assert.h"
#include "base/hmac.h"

enum {
    LENGTH_DIGITS = 4,
    OVERHEAD = LENGTH_DIGITS + 2, /* the length, the space, the line feed */
};

#define KEY_GENERATOR "macaroons-key-generator"

_Static_assert(OVERHEAD + AUTH_CAVEAT_SIZE_MAX + 16 <= 0xffff, "four digits hold any packet");

static bool is_printable(struct ron_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] > 0x7e)
            return false;
    }
    return true;
}

/* Reading. */

struct packets {
    const uint8_t *bytes;
    size_t size;
    size_t at;
};

struct packet {
    size_t at;
    struct ron_slice key;
    struct ron_slice value;
};

static bool read_length(const uint8_t digits[static LENGTH_DIGITS], size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < LENGTH_DIGITS; i++) {
        unsigned digit;

        if (digits[i] >= '0' && digits[i] <= '9')
            digit = digits[i] - (unsigned)'0';
        else if (digits[i] >= 'a' && digits[i] <= 'f')
            digit = digits[i] - (unsigned)'a' + 10;
        else
            return false;
        length = length << 4 | digit;
    }
    *ret_length = length;
    return true;
}

static enum ron_err read_packet(struct packets *in, struct packet *ret_packet,
                                struct ron_errinfo *reterr)
{
    const uint8_t *start = in->bytes + in->at;
    size_t left = in->size - in->at;
    size_t length = 0;
    const uint8_t *space;

    RON_ASSERT(in->at <= in->size);
    if (left < LENGTH_DIGITS || !read_length(start, &length))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: byte %zu: no packet length", in->at);
    if (length < OVERHEAD || length > left)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: a packet of %zu bytes does not fit", in->at, length);
    space = memchr(start + LENGTH_DIGITS, ' ', length - LENGTH_DIGITS);
    if (space == NULL || start[length - 1] != '\n')
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: a packet without its space or line feed", in->at);
    ret_packet->at = in->at;
    ret_packet->key = ron_slice_of(start + LENGTH_DIGITS, (size_t)(space - start) - LENGTH_DIGITS);
    /* The space lies before the line feed, so the size is not negative. */
    ret_packet->value = ron_slice_of(space + 1, (size_t)(start + length - 1 - (space + 1)));
    in->at += length;
    return RON_ERR_OK;
}

static bool has_key(const struct packet *packet, struct ron_slice key)
{
    return ron_slice_equal(packet->key, key);
}

static enum ron_err read_text(struct packets *in, const char *key, size_t size_max,
                              struct ron_slice *ret_text, struct ron_errinfo *reterr)
{
    struct packet packet = {0};
    enum ron_err err = read_packet(in, &packet, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (!has_key(&packet, ron_slice_text(key)))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: byte %zu: no %s here", packet.at,
                        key);
    if (packet.value.size > size_max || !is_printable(packet.value))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: the %s is not up to %zu characters of ASCII", packet.at,
                        key, size_max);
    *ret_text = packet.value;
    return RON_ERR_OK;
}

static enum ron_err take_caveat(const struct packet *packet, struct auth_macaroon *macaroon,
                                struct ron_errinfo *reterr)
{
    if (has_key(packet, RON_SLICE("vid")) || has_key(packet, RON_SLICE("cl")))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: third-party caveats are not accepted", packet->at);
    if (!has_key(packet, RON_SLICE("cid")))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: neither a caveat nor the signature", packet->at);
    if (macaroon->caveats_count == AUTH_CAVEATS_MAX)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: more than %d caveats",
                        AUTH_CAVEATS_MAX);
    if (packet->value.size == 0 || packet->value.size > AUTH_CAVEAT_SIZE_MAX ||
        !is_printable(packet->value))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: byte %zu: caveat %u is not 1 to %d characters of ASCII", packet->at,
                        macaroon->caveats_count + 1, AUTH_CAVEAT_SIZE_MAX);
    macaroon->caveats[macaroon->caveats_count++] = packet->value;
    return RON_ERR_OK;
}

static enum ron_err read_packets(struct packets *in, struct auth_macaroon *macaroon,
                                 struct ron_errinfo *reterr)
{
    struct packet packet = {0};
    enum ron_err err;

    err = read_text(in, "location", AUTH_LOCATION_SIZE_MAX, &macaroon->location, reterr);
    if (err == RON_ERR_OK)
        err = read_text(in, "identifier", AUTH_IDENTIFIER_SIZE_MAX, &macaroon->identifier, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (macaroon->identifier.size == 0)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: the identifier is empty");
    macaroon->caveats_count = 0;
    for (;;) {
        err = read_packet(in, &packet, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (has_key(&packet, RON_SLICE("signature")))
            break;
        err = take_caveat(&packet, macaroon, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    if (packet.value.size != RON_SHA256_SIZE)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: a signature of %zu bytes, not %d",
                        packet.value.size, RON_SHA256_SIZE);
    memcpy(macaroon->signature.bytes, packet.value.data, RON_SHA256_SIZE);
    if (in->at != in->size)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: byte %zu: more after the signature",
                        in->at);
    return RON_ERR_OK;
}

enum ron_err auth_macaroon_decode(struct ron_slice text,
                                  uint8_t bytes[static AUTH_MACAROON_SIZE_MAX],
                                  struct auth_macaroon *ret_macaroon, struct ron_errinfo *reterr)
{
    struct packets in = {.bytes = bytes};
    struct auth_macaroon macaroon;
    enum ron_err err;

    if (text.size == 0)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: it is empty");
    if (text.size >= AUTH_TOKEN_TEXT_SIZE)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: %zu characters, at most %zu",
                        text.size, AUTH_TOKEN_TEXT_SIZE - 1);
    /* base64's own message would quote a character of the token. */
    err = ron_base64_decode(RON_BASE64_URL_NO_PAD, text, bytes, AUTH_MACAROON_SIZE_MAX, &in.size,
                            NULL);
    if (err != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED,
                        "token: not base64url without padding, or more than %d bytes",
                        AUTH_MACAROON_SIZE_MAX);
    err = read_packets(&in, &macaroon, reterr);
    if (err == RON_ERR_OK)
        *ret_macaroon = macaroon;
    ron_wipe(&macaroon.signature, sizeof(macaroon.signature));
    return err;
}

/* The chain. */

static struct ron_sha256 sign_identifier(const struct ron_secret *root, struct ron_slice identifier)
{
    struct ron_sha256 key = ron_hmac_once(RON_SLICE(KEY_GENERATOR), ron_secret_expose(root));
    struct ron_sha256 signature = ron_hmac_once(ron_slice_of(key.bytes, sizeof(key.bytes)),
                                                identifier);

    ron_wipe(&key, sizeof(key));
    return signature;
}

static struct ron_sha256 sign_caveat(const struct ron_sha256 *signature, struct ron_slice caveat)
{
    return ron_hmac_once(ron_slice_of(signature->bytes, sizeof(signature->bytes)), caveat);
}

enum ron_err auth_macaroon_verify(const struct auth_macaroon *macaroon,
                                  const struct ron_secret *root, struct ron_errinfo *reterr)
{
    struct ron_sha256 signature;
    bool equal;

    RON_ASSERT(macaroon->caveats_count <= AUTH_CAVEATS_MAX);
    if (ron_secret_size(root) == 0)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: its key is not set");
    signature = sign_identifier(root, macaroon->identifier);
    for (uint32_t i = 0; i < macaroon->caveats_count; i++)
        signature = sign_caveat(&signature, macaroon->caveats[i]);
    equal = ron_equal_constant_time(signature.bytes, macaroon->signature.bytes, RON_SHA256_SIZE);
    ron_wipe(&signature, sizeof(signature)); /* that of a token the caller may not have */
    if (!equal)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "token: the signature does not verify");
    return RON_ERR_OK;
}

/* Writing. */

static enum ron_err check_text(const char *what, struct ron_slice text, size_t size_max,
                               struct ron_errinfo *reterr)
{
    if (text.size > size_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "%s of %zu characters, at most %zu", what,
                        text.size, size_max);
    if (!is_printable(text))
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s that is not printable ASCII", what);
    return RON_ERR_OK;
}

enum ron_err auth_macaroon_mint(const struct ron_secret *root, struct ron_slice location,
                                struct ron_slice identifier, struct auth_macaroon *ret_macaroon,
                                struct ron_errinfo *reterr)
{
    enum ron_err err = check_text("a location", location, AUTH_LOCATION_SIZE_MAX, reterr);

    RON_ASSERT(ron_secret_size(root) > 0);
    if (err == RON_ERR_OK)
        err = check_text("an identifier", identifier, AUTH_IDENTIFIER_SIZE_MAX, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (identifier.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "an empty identifier");
    ret_macaroon->location = location;
    ret_macaroon->identifier = identifier;
    ret_macaroon->caveats_count = 0;
    ret_macaroon->signature = sign_identifier(root, identifier);
    return RON_ERR_OK;
}

enum ron_err auth_macaroon_attenuate(struct auth_macaroon *macaroon, struct ron_slice caveat,
                                     struct ron_errinfo *reterr)
{
    enum ron_err err = check_text("a caveat", caveat, AUTH_CAVEAT_SIZE_MAX, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (caveat.size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "an empty caveat");
    if (macaroon->caveats_count == AUTH_CAVEATS_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a token has at most %d caveats",
                        AUTH_CAVEATS_MAX);
    macaroon->caveats[macaroon->caveats_count++] = caveat;
    macaroon->signature = sign_caveat(&macaroon->signature, caveat);
    return RON_ERR_OK;
}

/* Append a packet; a size beyond the limit is only counted, so that the caller can tell. */
static size_t write_packet(uint8_t bytes[static AUTH_MACAROON_SIZE_MAX], size_t at,
                           struct ron_slice key, struct ron_slice value)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = OVERHEAD + key.size + value.size;
    uint8_t *out = bytes + at;

    if (at > AUTH_MACAROON_SIZE_MAX || length > AUTH_MACAROON_SIZE_MAX - at)
        return AUTH_MACAROON_SIZE_MAX + 1;
    for (size_t i = 0; i < LENGTH_DIGITS; i++)
        out[i] = (uint8_t)digits[length >> (4 * (LENGTH_DIGITS - 1 - i)) & 15];
    out += LENGTH_DIGITS;
    memcpy(out, key.data, key.size);
    out += key.size;
    *out++ = ' ';
    if (value.size > 0)
        memcpy(out, value.data, value.size);
    out[value.size] = '\n';
    return at + length;
}

enum ron_err auth_macaroon_encode(const struct auth_macaroon *macaroon,
                                  char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                                  struct ron_errinfo *reterr)
{
    uint8_t bytes[AUTH_MACAROON_SIZE_MAX];
    size_t size = 0;

    RON_ASSERT(macaroon->caveats_count <= AUTH_CAVEATS_MAX);
    size = write_packet(bytes, size, RON_SLICE("location"), macaroon->location);
    size = write_packet(bytes, size, RON_SLICE("identifier"), macaroon->identifier);
    for (uint32_t i = 0; i < macaroon->caveats_count; i++)
        size = write_packet(bytes, size, RON_SLICE("cid"), macaroon->caveats[i]);
    size = write_packet(bytes, size, RON_SLICE("signature"),
                        ron_slice_of(macaroon->signature.bytes, RON_SHA256_SIZE));
    if (size <= AUTH_MACAROON_SIZE_MAX)
        *ret_size = ron_base64_encode(RON_BASE64_URL_NO_PAD, ron_slice_of(bytes, size), text,
                                      AUTH_TOKEN_TEXT_SIZE);
    ron_wipe(bytes, sizeof(bytes));
    if (size > AUTH_MACAROON_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a token of more than %d bytes",
                        AUTH_MACAROON_SIZE_MAX);
    return RON_ERR_OK;
}
