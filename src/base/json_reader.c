/*
 * json_reader.c - the JSON pull reader: grammar and numbers. See json.h.
 *
 * One state says what may come next; the kinds of the open containers are bits of a word, so depth
 * costs no memory and there is no recursion.
 */
#include "base/assert.h"
#include "base/json.h"
#include "base/json_names.h"
#include "base/json_string.h"

enum {
    STATE_START,       /* nothing read yet */
    STATE_VALUE,       /* behind a colon */
    STATE_FIRST_VALUE, /* behind [ */
    STATE_FIRST_NAME,  /* behind { */
    STATE_AFTER_VALUE, /* in a container, behind a value: a comma or the end */
    STATE_DONE,        /* behind the outermost value */
    STATE_FAILED,
};

/* The largest power of ten steps that cannot overflow 64 bits. */
enum { DIGITS_SMALL = 19 };

void ron_json_reader_init(struct ron_json_reader *reader, struct ron_slice text,
                          struct ron_arena *arena)
{
    RON_ASSERT(text.data != NULL || text.size == 0);
    RON_ASSERT(arena != NULL);
    reader->data = text.data;
    reader->arena = arena;
    reader->text_size = text.size;
    reader->size = text.size > RON_JSON_SIZE_MAX ? 0 : (uint32_t)text.size;
    reader->at = 0;
    reader->failed_at = 0;
    reader->failure = RON_ERR_OK;
    reader->state = STATE_START;
    reader->depth = 0;
    reader->names_by_caller = false;
    reader->object_bits = 0;
    reader->tracked_bits = 0;
    reader->names_count = 0;
    reader->names_before[0] = 0;
}

#define refuse(reader, reterr, offset, what) \
    fail_here((reader), (reterr), RON_ERR_MALFORMED, (offset), (what), __LINE__)
#define refuse_full(reader, reterr, offset)                                                     \
    fail_here((reader), (reterr), RON_ERR_TOO_LARGE, (offset), "no room left for reading this", \
              __LINE__)

RON_COLD static enum ron_err fail_here(struct ron_json_reader *reader, struct ron_errinfo *reterr,
                                       enum ron_err err, uint32_t offset, const char *what,
                                       int line)
{
    RON_ASSERT(offset <= reader->size);
    ron_json_names_clear(reader);
    reader->state = STATE_FAILED;
    reader->failure = err;
    reader->failed_at = offset;
    return ron_fail_at(reterr, err, 0, __FILE__, line, "at byte %u: %s", offset, what);
}

static inline void skip_space(struct ron_json_reader *reader)
{
    uint32_t at = reader->at;

    while (at < reader->size && reader->data[at] <= 0x20 &&
           (reader->data[at] == ' ' || reader->data[at] == '\n' || reader->data[at] == '\r' ||
            reader->data[at] == '\t'))
        at++;
    reader->at = at;
}

static inline bool in_object(const struct ron_json_reader *reader)
{
    return (reader->object_bits >> reader->depth & 1) != 0;
}

/* A value has ended at byte end: what may follow depends on where it stood. */
static inline void value_ends(struct ron_json_reader *reader, uint32_t end)
{
    reader->at = end;
    reader->state = reader->depth == 0 ? STATE_DONE : STATE_AFTER_VALUE;
}

/* The string whose quote is at reader->at; leaves reader->at alone. */
static enum ron_err read_string(struct ron_json_reader *reader, enum ron_json_kind kind,
                                struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    uint32_t start = reader->at + 1;
    uint32_t end = ron_json_plain_end(reader->data, start, reader->size);
    struct ron_json_string string;
    const char *wrong;
    uint32_t bad = 0;
    uint8_t *decoded;

    RON_ASSERT(reader->data[reader->at] == '"');
    ret_token->kind = kind;
    ret_token->offset = reader->at;
    if (RON_LIKELY(end < reader->size && reader->data[end] == '"')) {
        ret_token->end = end + 1;
        ret_token->text = ron_slice_of(reader->data + start, end - start);
        return RON_ERR_OK;
    }
    wrong = ron_json_string_scan(reader->data, start, reader->size, &string, &bad);
    if (wrong != NULL)
        return refuse(reader, reterr, bad, wrong);
    ret_token->end = string.end + 1;
    ret_token->text = ron_slice_of(reader->data + start, string.end - start);
    if (!string.escaped)
        return RON_ERR_OK;
    decoded = ron_arena_alloc_bytes(reader->arena, string.decoded_size);
    if (decoded == NULL)
        return refuse_full(reader, reterr, reader->at);
    ron_json_string_decode(reader->data, start, &string, decoded);
    ret_token->text = ron_slice_of(decoded, string.decoded_size);
    return RON_ERR_OK;
}

/* Take the digits at *at into *ret_number; false when they are beyond 128 bits. */
static inline bool read_digits(const struct ron_json_reader *reader, uint32_t *at,
                               struct ron_u128 *ret_number)
{
    uint32_t i = *at;
    uint32_t small_end = reader->size - i < DIGITS_SMALL ? reader->size : i + DIGITS_SMALL;
    uint64_t small = 0;
    unsigned __int128 large;

    for (; i < small_end && (uint8_t)(reader->data[i] - '0') < 10; i++)
        small = small * 10 + (uint8_t)(reader->data[i] - '0');
    large = small;
    if (i == small_end) {
        for (; i < reader->size && (uint8_t)(reader->data[i] - '0') < 10; i++) {
            if (__builtin_mul_overflow(large, 10, &large) ||
                __builtin_add_overflow(large, (uint8_t)(reader->data[i] - '0'), &large))
                return false;
        }
    }
    *at = i;
    ret_number->v = large;
    return true;
}

static enum ron_err read_number(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                                struct ron_errinfo *reterr)
{
    uint32_t at = reader->at;
    bool negative = reader->data[at] == '-';
    struct ron_u128 number = {0};
    uint32_t digits_at;
    uint8_t next;

    at += negative;
    digits_at = at;
    if (!read_digits(reader, &at, &number))
        return refuse(reader, reterr, reader->at, "a number beyond 128 bits");
    if (at == digits_at)
        return refuse(reader, reterr, at,
                      at == reader->size ? "the text ends inside a number" : "expected a digit");
    if (at - digits_at > 1 && reader->data[digits_at] == '0')
        return refuse(reader, reterr, digits_at, "a leading zero");
    next = at < reader->size ? reader->data[at] : ' ';
    if (next == '.' || next == 'e' || next == 'E')
        return refuse(reader, reterr, at, "not an integer");
    if (negative && number.v == 0)
        return refuse(reader, reterr, reader->at, "negative zero");
    ret_token->kind = RON_JSON_INTEGER;
    ret_token->negative = negative;
    ret_token->offset = reader->at;
    ret_token->end = at;
    ret_token->number = number;
    value_ends(reader, at);
    return RON_ERR_OK;
}

static enum ron_err read_word(struct ron_json_reader *reader, struct ron_slice word,
                              enum ron_json_kind kind, struct ron_json_token *ret_token,
                              struct ron_errinfo *reterr)
{
    uint32_t at = reader->at;
    uint32_t i = 0;

    while (i < word.size && at + i < reader->size && reader->data[at + i] == word.data[i])
        i++;
    if (i < word.size)
        return refuse(reader, reterr, at + i,
                      at + i == reader->size ? "the text ends inside a word" : "no such word");
    ret_token->kind = kind;
    ret_token->offset = at;
    ret_token->end = at + i;
    value_ends(reader, at + i);
    return RON_ERR_OK;
}

static enum ron_err open_container(struct ron_json_reader *reader, bool object,
                                   struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    uint64_t bit;

    if (reader->depth == RON_JSON_DEPTH_MAX)
        return refuse(reader, reterr, reader->at, "nested too deeply");
    reader->depth++;
    bit = (uint64_t)1 << reader->depth;
    reader->object_bits = object ? reader->object_bits | bit : reader->object_bits & ~bit;
    reader->tracked_bits = object && !reader->names_by_caller ? reader->tracked_bits | bit
                                                              : reader->tracked_bits & ~bit;
    reader->names_before[reader->depth] = reader->names_count;
    reader->state = object ? STATE_FIRST_NAME : STATE_FIRST_VALUE;
    ret_token->kind = object ? RON_JSON_OBJECT_BEGIN : RON_JSON_ARRAY_BEGIN;
    ret_token->offset = reader->at;
    ret_token->end = ++reader->at;
    return RON_ERR_OK;
}

static enum ron_err close_container(struct ron_json_reader *reader,
                                    struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    RON_ASSERT(reader->depth > 0);
    if ((reader->tracked_bits >> reader->depth & 1) != 0) {
        uint32_t duplicate = ron_json_names_end(reader);

        if (duplicate != RON_JSON_NO_DUPLICATE)
            return refuse(reader, reterr, duplicate, "a duplicate member");
    }
    ret_token->kind = in_object(reader) ? RON_JSON_OBJECT_END : RON_JSON_ARRAY_END;
    ret_token->offset = reader->at;
    ret_token->end = reader->at + 1;
    reader->depth--;
    value_ends(reader, reader->at + 1);
    return RON_ERR_OK;
}

static enum ron_err read_value(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                               struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (reader->at == reader->size)
        return refuse(reader, reterr, reader->at, "the text ends where a value is expected");
    switch (reader->data[reader->at]) {
    case '"':
        err = read_string(reader, RON_JSON_STRING, ret_token, reterr);
        if (err == RON_ERR_OK)
            value_ends(reader, ret_token->end);
        return err;
    case '{':
        return open_container(reader, true, ret_token, reterr);
    case '[':
        return open_container(reader, false, ret_token, reterr);
    case 't':
        return read_word(reader, RON_SLICE("true"), RON_JSON_TRUE, ret_token, reterr);
    case 'f':
        return read_word(reader, RON_SLICE("false"), RON_JSON_FALSE, ret_token, reterr);
    case 'n':
        return read_word(reader, RON_SLICE("null"), RON_JSON_NULL, ret_token, reterr);
    case '-':
    case '0' ... '9':
        return read_number(reader, ret_token, reterr);
    default:
        return refuse(reader, reterr, reader->at, "expected a value");
    }
}

/* A member's name and its colon. */
static enum ron_err read_name(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                              struct ron_errinfo *reterr)
{
    uint32_t duplicate = RON_JSON_NO_DUPLICATE;
    enum ron_err err;

    if (reader->at == reader->size)
        return refuse(reader, reterr, reader->at, "the text ends inside an object");
    if (reader->data[reader->at] != '"')
        return refuse(reader, reterr, reader->at, "expected a member's name");
    err = read_string(reader, RON_JSON_NAME, ret_token, reterr);
    if (err != RON_ERR_OK)
        return err;
    reader->at = ret_token->end;
    skip_space(reader);
    if (reader->at == reader->size)
        return refuse(reader, reterr, reader->at, "the text ends inside an object");
    if (reader->data[reader->at] != ':')
        return refuse(reader, reterr, reader->at, "expected a colon");
    reader->at++;
    /* Only now: with its colon a member is four bytes, which pay for the eight remembered. */
    if ((reader->tracked_bits >> reader->depth & 1) != 0) {
        if (!ron_json_names_add(reader, ret_token->offset, ret_token->text, &duplicate))
            return refuse_full(reader, reterr, ret_token->offset);
        if (duplicate != RON_JSON_NO_DUPLICATE)
            return refuse(reader, reterr, duplicate, "a duplicate member");
    }
    reader->state = STATE_VALUE;
    return RON_ERR_OK;
}

/* Behind a value in a container: the end of it, or a comma and what follows. */
static enum ron_err read_after_value(struct ron_json_reader *reader,
                                     struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    bool object = in_object(reader);

    if (reader->at == reader->size)
        return refuse(reader, reterr, reader->at,
                      object ? "the text ends inside an object" : "the text ends inside an array");
    if (reader->data[reader->at] == ',') {
        reader->at++;
        skip_space(reader);
        return object ? read_name(reader, ret_token, reterr)
                      : read_value(reader, ret_token, reterr);
    }
    if (reader->data[reader->at] != (object ? '}' : ']'))
        return refuse(reader, reterr, reader->at,
                      object ? "expected a comma or }" : "expected a comma or ]");
    return close_container(reader, ret_token, reterr);
}

static enum ron_err read_start(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                               struct ron_errinfo *reterr)
{
    if (reader->text_size > RON_JSON_SIZE_MAX) {
        reader->state = STATE_FAILED;
        reader->failure = RON_ERR_TOO_LARGE;
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a text of %zu bytes, at most %d are read",
                        reader->text_size, RON_JSON_SIZE_MAX);
    }
    if (reader->size >= 3 && memcmp(reader->data, "\xef\xbb\xbf", 3) == 0)
        return refuse(reader, reterr, 0, "a byte order mark");
    return read_value(reader, ret_token, reterr);
}

static enum ron_err read_next(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                              struct ron_errinfo *reterr)
{
    bool closes;

    skip_space(reader);
    switch (reader->state) {
    case STATE_START:
        return read_start(reader, ret_token, reterr);
    case STATE_VALUE:
        return read_value(reader, ret_token, reterr);
    case STATE_FIRST_VALUE:
        closes = reader->at < reader->size && reader->data[reader->at] == ']';
        return closes ? close_container(reader, ret_token, reterr)
                      : read_value(reader, ret_token, reterr);
    case STATE_FIRST_NAME:
        closes = reader->at < reader->size && reader->data[reader->at] == '}';
        return closes ? close_container(reader, ret_token, reterr)
                      : read_name(reader, ret_token, reterr);
    case STATE_AFTER_VALUE:
        return read_after_value(reader, ret_token, reterr);
    case STATE_DONE:
        if (reader->at < reader->size)
            return refuse(reader, reterr, reader->at, "more text after the value");
        ret_token->kind = RON_JSON_END;
        ret_token->offset = reader->size;
        ret_token->end = reader->size;
        return RON_ERR_OK;
    case STATE_FAILED:
        return ron_fail(reterr, reader->failure, "at byte %u: refused before", reader->failed_at);
    default:
        RON_UNREACHABLE();
    }
}

enum ron_err ron_json_next(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                           struct ron_errinfo *reterr)
{
    struct ron_json_token token = {0};
    enum ron_err err = read_next(reader, &token, reterr);

    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(token.offset <= token.end);
    RON_ASSERT(token.end <= reader->size);
    *ret_token = token;
    return RON_ERR_OK;
}

enum ron_err ron_json_skip(struct ron_json_reader *reader, const struct ron_json_token *first,
                           struct ron_slice *ret_raw, struct ron_errinfo *reterr)
{
    size_t mark = ron_arena_mark(reader->arena);
    struct ron_json_token token = *first;
    unsigned outside = reader->depth;

    RON_ASSERT(first->kind != RON_JSON_NAME);
    RON_ASSERT(first->kind != RON_JSON_OBJECT_END);
    RON_ASSERT(first->kind != RON_JSON_ARRAY_END);
    RON_ASSERT(first->kind != RON_JSON_END);
    if (first->kind == RON_JSON_OBJECT_BEGIN || first->kind == RON_JSON_ARRAY_BEGIN) {
        RON_ASSERT(outside > 0);
        outside--;
    }
    while (reader->depth > outside) {
        enum ron_err err = ron_json_next(reader, &token, reterr);

        /* Names are remembered by their place in the text: what was decoded is not needed. */
        ron_arena_rewind(reader->arena, mark);
        if (err != RON_ERR_OK)
            return err;
    }
    *ret_raw = ron_slice_of(reader->data + first->offset, token.end - first->offset);
    return RON_ERR_OK;
}
