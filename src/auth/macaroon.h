/*
 * macaroon.h - the standard macaroon, v1 text: decode, check, attenuate, mint, encode.
 *
 * Text = base64url without padding of packets, each `LLLL key SP value LF` where LLLL is the size
 * of the whole packet in four lower-case hex digits:
 *
 *     location, identifier, any number of cid, signature (32 bytes)
 *
 * The signature is a chain of HMAC-SHA256: key = HMAC("macaroons-key-generator", root), then
 * HMAC(key, identifier), then for each caveat HMAC(signature so far, caveat). So whoever holds a
 * token can add a caveat, and nobody can take one away.
 *
 * Stricter than the libraries on purpose, so that a token has one text: packets in this order and
 * no other, each once, nothing after the signature, location, identifier and caveats in printable
 * ASCII. Third-party caveats (vid, cl) are refused: we have no discharges, and to skip one would be
 * to drop a restriction. Never allocates; no message holds anything of a token.
 */
#ifndef RON_AUTH_MACAROON_H
#define RON_AUTH_MACAROON_H

#include "base/base64.h"
#include "base/secret.h"
#include "base/sha256.h"

enum {
    AUTH_MACAROON_SIZE_MAX = 4096, /* of the packets together */
    AUTH_CAVEATS_MAX = 64,
    AUTH_CAVEAT_SIZE_MAX = 1024,
    AUTH_LOCATION_SIZE_MAX = 128, /* may be empty */
    AUTH_IDENTIFIER_SIZE_MAX = 128,
};
/* Room for any token's text and its NUL. */
#define AUTH_TOKEN_TEXT_SIZE RON_BASE64_SIZE(AUTH_MACAROON_SIZE_MAX)

/* The slices borrow from whoever made the macaroon: the decoder's buffer, or the minter's texts. */
struct auth_macaroon {
    struct ron_slice location;
    struct ron_slice identifier;
    uint32_t caveats_count;
    struct ron_slice caveats[AUTH_CAVEATS_MAX];
    struct ron_sha256 signature; /* whoever has it has the token: wipe after use */
};

/* Decode the whole text into bytes, which the macaroon borrows. RON_ERR_UNAUTHORIZED says what is
 * wrong, and at which byte of the packets. Says nothing about the signature: see verify. */
enum ron_err auth_macaroon_decode(struct ron_slice text,
                                  uint8_t bytes[static AUTH_MACAROON_SIZE_MAX],
                                  struct auth_macaroon *ret_macaroon,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* Compute the chain anew and compare, in constant time: RON_ERR_UNAUTHORIZED if it differs. An
 * unset root key accepts nothing. */
enum ron_err auth_macaroon_verify(const struct auth_macaroon *macaroon,
                                  const struct ron_secret *root,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* A macaroon without caveats. RON_ERR_MALFORMED or RON_ERR_TOO_LARGE about the texts. */
enum ron_err auth_macaroon_mint(const struct ron_secret *root, struct ron_slice location,
                                struct ron_slice identifier, struct auth_macaroon *ret_macaroon,
                                struct ron_errinfo *reterr) RON_MUST_USE;

/* Add a caveat and sign on; needs no key. RON_ERR_MALFORMED when it is empty or not printable
 * ASCII, RON_ERR_TOO_LARGE at a limit; the macaroon is untouched then. Whether the caveat means
 * anything is caveat.h's business. */
enum ron_err auth_macaroon_attenuate(struct auth_macaroon *macaroon, struct ron_slice caveat,
                                     struct ron_errinfo *reterr) RON_MUST_USE;

/* Write the text and a NUL, say how many characters. RON_ERR_TOO_LARGE when the packets are. The
 * caller wipes the text in the end. */
enum ron_err auth_macaroon_encode(const struct auth_macaroon *macaroon,
                                  char text[static AUTH_TOKEN_TEXT_SIZE], size_t *ret_size,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

#endif
