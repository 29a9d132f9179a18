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

static inline uint32_t space_end(const uint8_t *data, uint32_t at, uint32_t size)
{
    while (at < size && data[at] <= ' ' &&
           (data[at] == ' ' || data[at] == '\n' || data[at] == '\r' || data[at] == '\t'))
        at++;
    return at;
}

static inline bool in_object(const struct ron_json_reader *reader)
{
    return (reader->object_bits >> reader->depth & 1) != 0;
}

static inline bool names_tracked(const struct ron_json_reader *reader)
{
    return (reader->tracked_bits >> reader->depth & 1) != 0;
}

/* A token is complete: the only place that writes one, but for the members its kind adds. */
static inline void give_token(struct ron_json_token *ret_token, enum ron_json_kind kind,
                              uint32_t offset, uint32_t end)
{
    ret_token->kind = kind;
    ret_token->negative = false;
    ret_token->offset = offset;
    ret_token->end = end;
}

/* A value has ended at byte end: what may follow depends on where it stood. */
static inline void value_ends(struct ron_json_reader *reader, uint32_t end)
{
    reader->at = end;
    reader->state = reader->depth == 0 ? STATE_DONE : STATE_AFTER_VALUE;
}

/* A string that has something else in it than plain bytes, or no end. */
static __attribute__((noinline)) enum ron_err
read_unusual_string(struct ron_json_reader *reader, uint32_t at, struct ron_slice *ret_text,
                    uint32_t *ret_end, struct ron_errinfo *reterr)
{
    struct ron_json_string string;
    const char *wrong;
    uint32_t bad = 0;
    uint8_t *decoded;

    wrong = ron_json_string_scan(reader->data, at + 1, reader->size, &string, &bad);
    if (wrong != NULL)
        return refuse(reader, reterr, bad, wrong);
    *ret_end = string.end + 1;
    *ret_text = ron_slice_of(reader->data + at + 1, string.end - (at + 1));
    if (!string.escaped)
        return RON_ERR_OK;
    decoded = ron_arena_alloc_bytes(reader->arena, string.decoded_size);
    if (decoded == NULL)
        return refuse_full(reader, reterr, at);
    ron_json_string_decode(reader->data, at + 1, &string, decoded);
    *ret_text = ron_slice_of(decoded, string.decoded_size);
    return RON_ERR_OK;
}

/* The string whose quote is at `at`. */
static inline enum ron_err read_string(struct ron_json_reader *reader, uint32_t at,
                                       struct ron_slice *ret_text, uint32_t *ret_end,
                                       struct ron_errinfo *reterr)
{
    uint32_t end = ron_json_plain_end(reader->data, at + 1, reader->size);

    if (RON_UNLIKELY(end == reader->size || reader->data[end] != '"'))
        return read_unusual_string(reader, at, ret_text, ret_end, reterr);
    *ret_end = end + 1;
    *ret_text = ron_slice_of(reader->data + at + 1, end - (at + 1));
    return RON_ERR_OK;
}

/* Take the digits at *at into *ret_number; false when they are beyond 128 bits. */
static inline bool read_digits(const struct ron_json_reader *reader, uint32_t *at,
                               struct ron_u128 *ret_number)
{
    uint32_t i = *at;
    uint32_t small_end = reader->size - i < DIGITS_SMALL ? reader->size : i + DIGITS_SMALL;
    uint64_t small = 0;

    for (; i < small_end && (uint8_t)(reader->data[i] - '0') < 10; i++)
        small = small * 10 + (uint8_t)(reader->data[i] - '0');
    ret_number->v = small;
    if (RON_UNLIKELY(i == small_end)) {
        for (; i < reader->size && (uint8_t)(reader->data[i] - '0') < 10; i++) {
            if (__builtin_mul_overflow(ret_number->v, 10, &ret_number->v) ||
                __builtin_add_overflow(ret_number->v, (uint8_t)(reader->data[i] - '0'),
                                       &ret_number->v))
                return false;
        }
    }
    *at = i;
    return true;
}

static enum ron_err read_number(struct ron_json_reader *reader, uint32_t start,
                                struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    bool negative = reader->data[start] == '-';
    uint32_t digits_at = start + negative;
    uint32_t at = digits_at;
    struct ron_u128 number;
    uint8_t next;

    if (!read_digits(reader, &at, &number))
        return refuse(reader, reterr, start, "a number beyond 128 bits");
    if (at == digits_at)
        return refuse(reader, reterr, at,
                      at == reader->size ? "the text ends inside a number" : "expected a digit");
    if (at - digits_at > 1 && reader->data[digits_at] == '0')
        return refuse(reader, reterr, digits_at, "a leading zero");
    next = at < reader->size ? reader->data[at] : ' ';
    if (next == '.' || next == 'e' || next == 'E')
        return refuse(reader, reterr, at, "not an integer");
    if (negative && number.v == 0)
        return refuse(reader, reterr, start, "negative zero");
    give_token(ret_token, RON_JSON_INTEGER, start, at);
    ret_token->negative = negative;
    ret_token->number = number;
    value_ends(reader, at);
    return RON_ERR_OK;
}

static enum ron_err read_word(struct ron_json_reader *reader, uint32_t at, struct ron_slice word,
                              enum ron_json_kind kind, struct ron_json_token *ret_token,
                              struct ron_errinfo *reterr)
{
    uint32_t i = 0;

    while (i < word.size && at + i < reader->size && reader->data[at + i] == word.data[i])
        i++;
    if (i < word.size)
        return refuse(reader, reterr, at + i,
                      at + i == reader->size ? "the text ends inside a word" : "no such word");
    give_token(ret_token, kind, at, at + i);
    value_ends(reader, at + i);
    return RON_ERR_OK;
}

static enum ron_err open_container(struct ron_json_reader *reader, uint32_t at, bool object,
                                   struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    uint64_t bit;

    if (reader->depth == RON_JSON_DEPTH_MAX)
        return refuse(reader, reterr, at, "nested too deeply");
    reader->depth++;
    bit = (uint64_t)1 << reader->depth;
    reader->object_bits = object ? reader->object_bits | bit : reader->object_bits & ~bit;
    reader->tracked_bits = object && !reader->names_by_caller ? reader->tracked_bits | bit
                                                              : reader->tracked_bits & ~bit;
    reader->names_before[reader->depth] = reader->names_count;
    reader->state = object ? STATE_FIRST_NAME : STATE_FIRST_VALUE;
    reader->at = at + 1;
    give_token(ret_token, object ? RON_JSON_OBJECT_BEGIN : RON_JSON_ARRAY_BEGIN, at, at + 1);
    return RON_ERR_OK;
}

static enum ron_err close_container(struct ron_json_reader *reader, uint32_t at,
                                    struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    RON_ASSERT(reader->depth > 0);
    if (names_tracked(reader)) {
        uint32_t duplicate = ron_json_names_end(reader);

        if (duplicate != RON_JSON_NO_DUPLICATE)
            return refuse(reader, reterr, duplicate, "a duplicate member");
    }
    give_token(ret_token, in_object(reader) ? RON_JSON_OBJECT_END : RON_JSON_ARRAY_END, at, at + 1);
    reader->depth--;
    value_ends(reader, at + 1);
    return RON_ERR_OK;
}

static inline enum ron_err read_value(struct ron_json_reader *reader, uint32_t at,
                                      struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    struct ron_slice text;
    uint32_t end;
    enum ron_err err;

    if (at == reader->size)
        return refuse(reader, reterr, at, "the text ends where a value is expected");
    switch (reader->data[at]) {
    case '"':
        err = read_string(reader, at, &text, &end, reterr);
        if (err != RON_ERR_OK)
            return err;
        give_token(ret_token, RON_JSON_STRING, at, end);
        ret_token->text = text;
        value_ends(reader, end);
        return RON_ERR_OK;
    case '{':
        return open_container(reader, at, true, ret_token, reterr);
    case '[':
        return open_container(reader, at, false, ret_token, reterr);
    case 't':
        return read_word(reader, at, RON_SLICE("true"), RON_JSON_TRUE, ret_token, reterr);
    case 'f':
        return read_word(reader, at, RON_SLICE("false"), RON_JSON_FALSE, ret_token, reterr);
    case 'n':
        return read_word(reader, at, RON_SLICE("null"), RON_JSON_NULL, ret_token, reterr);
    case '-':
    case '0' ... '9':
        return read_number(reader, at, ret_token, reterr);
    default:
        return refuse(reader, reterr, at, "expected a value");
    }
}

static __attribute__((noinline)) enum ron_err remember_name(struct ron_json_reader *reader,
                                                            uint32_t offset, struct ron_slice name,
                                                            struct ron_errinfo *reterr)
{
    uint32_t duplicate = RON_JSON_NO_DUPLICATE;

    if (!ron_json_names_add(reader, offset, name, &duplicate))
        return refuse_full(reader, reterr, offset);
    if (duplicate != RON_JSON_NO_DUPLICATE)
        return refuse(reader, reterr, duplicate, "a duplicate member");
    return RON_ERR_OK;
}

/* A member's name and its colon. */
static inline enum ron_err read_name(struct ron_json_reader *reader, uint32_t at,
                                     struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    struct ron_slice name;
    uint32_t end;
    uint32_t colon;
    enum ron_err err;

    if (at == reader->size)
        return refuse(reader, reterr, at, "the text ends inside an object");
    if (reader->data[at] != '"')
        return refuse(reader, reterr, at, "expected a member's name");
    err = read_string(reader, at, &name, &end, reterr);
    if (err != RON_ERR_OK)
        return err;
    colon = space_end(reader->data, end, reader->size);
    if (colon == reader->size)
        return refuse(reader, reterr, colon, "the text ends inside an object");
    if (reader->data[colon] != ':')
        return refuse(reader, reterr, colon, "expected a colon");
    /* Only now: with its colon a member is four bytes, which pay for the eight remembered. */
    if (names_tracked(reader)) {
        err = remember_name(reader, at, name, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    give_token(ret_token, RON_JSON_NAME, at, end);
    ret_token->text = name;
    reader->at = colon + 1;
    reader->state = STATE_VALUE;
    return RON_ERR_OK;
}

/* Behind a value in a container, where no comma is: only its end may follow. */
static enum ron_err read_end(struct ron_json_reader *reader, uint32_t at,
                             struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    bool object = in_object(reader);

    if (at == reader->size)
        return refuse(reader, reterr, at,
                      object ? "the text ends inside an object" : "the text ends inside an array");
    if (reader->data[at] != (object ? '}' : ']'))
        return refuse(reader, reterr, at,
                      object ? "expected a comma or }" : "expected a comma or ]");
    return close_container(reader, at, ret_token, reterr);
}

/* What no text may begin with. */
static enum ron_err check_start(struct ron_json_reader *reader, struct ron_errinfo *reterr)
{
    if (reader->text_size > RON_JSON_SIZE_MAX) {
        reader->state = STATE_FAILED;
        reader->failure = RON_ERR_TOO_LARGE;
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a text of %zu bytes, at most %d are read",
                        reader->text_size, RON_JSON_SIZE_MAX);
    }
    if (reader->size >= 3 && memcmp(reader->data, "\xef\xbb\xbf", 3) == 0)
        return refuse(reader, reterr, 0, "a byte order mark");
    return RON_ERR_OK;
}

/* Behind the outermost value, or a refusal. */
static enum ron_err read_nothing(struct ron_json_reader *reader, uint32_t at,
                                 struct ron_json_token *ret_token, struct ron_errinfo *reterr)
{
    if (reader->state == STATE_FAILED)
        return ron_fail(reterr, reader->failure, "at byte %u: refused before", reader->failed_at);
    RON_ASSERT(reader->state == STATE_DONE);
    RON_ASSERT(reader->depth == 0);
    if (at < reader->size)
        return refuse(reader, reterr, at, "more text after the value");
    give_token(ret_token, RON_JSON_END, at, at);
    return RON_ERR_OK;
}

enum ron_err ron_json_next(struct ron_json_reader *reader, struct ron_json_token *ret_token,
                           struct ron_errinfo *reterr)
{
    const uint8_t *data = reader->data;
    uint32_t size = reader->size;
    uint32_t at = space_end(data, reader->at, size);
    bool name = false;
    enum ron_err err;

    RON_ASSERT(at <= size);
    switch (reader->state) {
    case STATE_VALUE:
        break;
    case STATE_AFTER_VALUE:
        if (at == size || data[at] != ',')
            return read_end(reader, at, ret_token, reterr);
        at = space_end(data, at + 1, size);
        name = in_object(reader);
        break;
    case STATE_FIRST_VALUE:
        if (at < size && data[at] == ']')
            return close_container(reader, at, ret_token, reterr);
        break;
    case STATE_FIRST_NAME:
        if (at < size && data[at] == '}')
            return close_container(reader, at, ret_token, reterr);
        name = true;
        break;
    case STATE_START:
        err = check_start(reader, reterr);
        if (err != RON_ERR_OK)
            return err;
        break;
    default:
        return read_nothing(reader, at, ret_token, reterr);
    }
    return name ? read_name(reader, at, ret_token, reterr)
                : read_value(reader, at, ret_token, reterr);
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
