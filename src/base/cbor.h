/*
 * cbor.h - pull reader of canonical CBOR, over borrowed bytes, without any allocation.
 *
 * Reads exactly one item in the core deterministic encoding of RFC 8949 §4.2.1: shortest-form
 * heads, definite lengths, map keys strictly ascending in the bytewise order of their encoding (so
 * none twice). So equal values have equal bytes, and a hash of the bytes is a hash of the value.
 * Beyond that ron's profile has no floating point, no tags and no simple values but false, true and
 * null. Everything else is RON_ERR_MALFORMED; nesting beyond RON_CBOR_DEPTH_MAX is
 * RON_ERR_TOO_LARGE. Every message ends in "at byte N".
 *
 * A claimed length is compared with the bytes that are left before anything else happens. Tokens
 * come out while later bytes are still unread: what was pulled is known good only once
 * RON_CBOR_END is reached.
 */
#ifndef RON_BASE_CBOR_H
#define RON_BASE_CBOR_H

#include "base/bytes.h"
#include "base/limits.h"

enum ron_cbor_kind {
    RON_CBOR_UINT,        /* the integer is value */
    RON_CBOR_NEGINT,      /* the integer is -1 - value, down to -2^64 */
    RON_CBOR_BYTES,       /* bytes */
    RON_CBOR_TEXT,        /* bytes, valid UTF-8 */
    RON_CBOR_ARRAY_BEGIN, /* value items follow, then ARRAY_END */
    RON_CBOR_ARRAY_END,
    RON_CBOR_MAP_BEGIN, /* value pairs of key and value follow, then MAP_END */
    RON_CBOR_MAP_END,
    RON_CBOR_FALSE,
    RON_CBOR_TRUE,
    RON_CBOR_NULL,
    RON_CBOR_END, /* the item is complete and nothing follows it */
    RON_CBOR__MAX
};

struct ron_cbor_token {
    enum ron_cbor_kind kind;
    uint64_t value;         /* of an integer; the count of an array or map; else 0 */
    struct ron_slice bytes; /* of BYTES and TEXT: borrows the input; else empty */
    size_t offset;          /* of the token's first byte, for messages */
};

/* One open array or map. */
struct ron_cbor_level {
    uint64_t items_left;       /* keys and values counted apart */
    struct ron_slice last_key; /* encoded, in the input; empty before the first */
    size_t offset;             /* of the head */
    bool is_map;
};

/* Caller's memory, nothing to free. The members belong to the functions. */
struct ron_cbor_reader {
    struct ron_slice input;
    size_t at;            /* first unread byte */
    unsigned depth;       /* open arrays and maps */
    bool complete;        /* the outermost item has been read */
    enum ron_err failure; /* of an earlier call, else RON_ERR_OK */
    struct ron_cbor_level levels[RON_CBOR_DEPTH_MAX];
};

/* Borrows input, which must outlive the reader and the slices it gives. */
void ron_cbor_reader_init(struct ron_cbor_reader *reader, struct ron_slice input);

/* The next token; RON_CBOR_END again and again once there. After a failure every further call fails
 * with the same code. RON_ERR_MALFORMED, RON_ERR_TOO_LARGE. */
enum ron_err ron_cbor_next(struct ron_cbor_reader *reader, struct ron_cbor_token *ret_token,
                           struct ron_errinfo *reterr) RON_MUST_USE;

/* Read over one whole value, checking all of it, and give its encoded bytes (a borrowed part of the
 * input, itself a canonical item). Where no value comes next - the array, map or input ends - it is
 * RON_ERR_MALFORMED, as if the value were missing. */
enum ron_err ron_cbor_skip(struct ron_cbor_reader *reader, struct ron_slice *ret_raw,
                           struct ron_errinfo *reterr) RON_MUST_USE;

/* What a message calls the kind: "text", "array". */
const char *ron_cbor_kind_name(enum ron_cbor_kind kind);

/* The value of an integer token if it fits. False for other kinds and beyond the range. */
static inline RON_MUST_USE bool ron_cbor_to_i64(const struct ron_cbor_token *token,
                                                int64_t *ret_value)
{
    if (token->kind > RON_CBOR_NEGINT || token->value > INT64_MAX)
        return false;
    *ret_value = token->kind == RON_CBOR_UINT ? (int64_t)token->value : -1 - (int64_t)token->value;
    return true;
}

#endif
