/*
 * json.h - a strict one-pass JSON reader over a complete text.
 *
 * Accepts RFC 8259 text narrowed to what ron can mean exactly: integers only (sign and up to 39
 * digits, |value| < 2^128), valid UTF-8, no lone surrogates, no duplicate member in any object,
 * depth at most RON_JSON_DEPTH_MAX, nothing but white space after the value. Floats, exponents and
 * `-0` are refused, and so is a byte order mark. Every refusal is RON_ERR_MALFORMED and says at
 * which byte and what; RON_ERR_TOO_LARGE is kept for a text beyond RON_JSON_SIZE_MAX and for a full
 * arena.
 *
 * The text is borrowed: tokens point into it, except strings with escapes, which are decoded into
 * the arena. Beside those the reader keeps eight bytes for each member of the objects still open,
 * at the arena's far end, to find duplicates. An arena of twice the text's size is always enough:
 * decoding shortens, and a member is at least five bytes of text. No recursion, no heap.
 *
 * A duplicate in an object of more than 16 members is found when that object ends, not at the name:
 * act on an object's members only after its RON_JSON_OBJECT_END.
 *
 * Handlers do not use this directly: they declare a DTO (json_dto.h).
 */
#ifndef RON_BASE_JSON_H
#define RON_BASE_JSON_H

#include "base/arena.h"
#include "base/limits.h"
#include "base/u128.h"

enum ron_json_kind {
    RON_JSON_OBJECT_BEGIN,
    RON_JSON_OBJECT_END,
    RON_JSON_ARRAY_BEGIN,
    RON_JSON_ARRAY_END,
    RON_JSON_NAME, /* a member's name; its value follows */
    RON_JSON_STRING,
    RON_JSON_INTEGER,
    RON_JSON_TRUE,
    RON_JSON_FALSE,
    RON_JSON_NULL,
    RON_JSON_END, /* after the whole text; every later call gives it again */
};

struct ron_json_token {
    enum ron_json_kind kind;
    bool negative;          /* INTEGER: has a minus sign (never for zero) */
    uint32_t offset;        /* of its first byte in the text, a string's quote included */
    uint32_t end;           /* one past its last byte in the text */
    struct ron_slice text;  /* NAME, STRING: decoded content, UTF-8; may hold NUL */
    struct ron_u128 number; /* INTEGER: magnitude */
};

/* Caller's memory; the members are the reader's own. Nothing to free: a reader may be abandoned at
 * any time, its arena then has to be reset. */
struct ron_json_reader {
    const uint8_t *data;
    struct ron_arena *arena;
    size_t text_size;
    uint32_t size;      /* of the text */
    uint32_t at;        /* the next byte */
    uint32_t failed_at; /* byte of the refusal, once state is failed */
    enum ron_err failure;
    uint8_t state;
    uint8_t depth;         /* containers open */
    bool names_by_caller;  /* objects opened from now on: the caller refuses duplicates himself */
    uint64_t object_bits;  /* bit d: the container at depth d is an object */
    uint64_t tracked_bits; /* bit d: its names are remembered here */
    uint32_t names_count;  /* remembered, in all open objects */
    uint32_t names_before[RON_JSON_DEPTH_MAX + 1]; /* names_count when depth d was opened */
};

/* Start reading text, which must outlive the tokens. text.size > RON_JSON_SIZE_MAX fails at the
 * first ron_json_next with RON_ERR_TOO_LARGE. */
void ron_json_reader_init(struct ron_json_reader *reader, struct ron_slice text,
                          struct ron_arena *arena);
/* The next token. After an error the reader stays failed. */
enum ron_err ron_json_next(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Read the rest of the value that begins with the token just returned (a scalar: nothing), checking
 * it fully, and give its raw text. What it decodes it gives back to the arena; the token itself, if
 * it is a string with escapes, stays. */
enum ron_err ron_json_skip(struct ron_json_reader *reader, const struct ron_json_token *first,
                           struct ron_slice *ret_raw, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
