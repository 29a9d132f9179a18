/*
 * cbor.c - canonical CBOR, one token at a time. See cbor.h.
 *
 * The state is one position and one ron_cbor_level per open container, so memory does not depend on
 * the input. Key order is checked by comparing each finished key's bytes with those of the key
 * before it, both still in the input; a byte is compared at most twice per open container.
 */
#include "base/cbor.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/utf8.h"

enum major {
    MAJOR_UINT,
    MAJOR_NEGINT,
    MAJOR_BYTES,
    MAJOR_TEXT,
    MAJOR_ARRAY,
    MAJOR_MAP,
    MAJOR_TAG,
    MAJOR_SIMPLE,
};

enum {
    INFO_ONE_BYTE = 24, /* the argument follows in 1, 2, 4 or 8 bytes: 24..27 */
    INFO_EIGHT_BYTES = 27,
    INFO_INDEFINITE = 31,
    SIMPLE_FALSE = 20,
    SIMPLE_TRUE = 21,
    SIMPLE_NULL = 22,
    SIMPLE_UNDEFINED = 23,
};

static const char *const kind_names[] = {
    [RON_CBOR_UINT] = "unsigned integer",
    [RON_CBOR_NEGINT] = "negative integer",
    [RON_CBOR_BYTES] = "byte string",
    [RON_CBOR_TEXT] = "text",
    [RON_CBOR_ARRAY_BEGIN] = "array",
    [RON_CBOR_ARRAY_END] = "end of array",
    [RON_CBOR_MAP_BEGIN] = "map",
    [RON_CBOR_MAP_END] = "end of map",
    [RON_CBOR_FALSE] = "false",
    [RON_CBOR_TRUE] = "true",
    [RON_CBOR_NULL] = "null",
    [RON_CBOR_END] = "end of input",
};
_Static_assert(RON_ARRAY_COUNT(kind_names) == RON_CBOR__MAX, "one name per kind");

const char *ron_cbor_kind_name(enum ron_cbor_kind kind)
{
    RON_ASSERT((unsigned)kind < RON_CBOR__MAX);
    return kind_names[kind];
}

void ron_cbor_reader_init(struct ron_cbor_reader *reader, struct ron_slice input)
{
    RON_ASSERT(input.data != NULL || input.size == 0);
    reader->input = input;
    reader->at = 0;
    reader->depth = 0;
    reader->complete = false;
    reader->failure = RON_ERR_OK;
}

static void reader_check(const struct ron_cbor_reader *reader)
{
    RON_ASSERT(reader->at <= reader->input.size);
    RON_ASSERT(reader->depth <= RON_CBOR_DEPTH_MAX);
    RON_ASSERT(!reader->complete || reader->depth == 0);
}

static size_t bytes_left(const struct ron_cbor_reader *reader)
{
    return reader->input.size - reader->at;
}

/* Refuse the heads that no argument can make acceptable. */
static enum ron_err check_initial_byte(enum major major, unsigned info, size_t offset,
                                       struct ron_errinfo *reterr)
{
    if (info > INFO_EIGHT_BYTES && info < INFO_INDEFINITE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "reserved additional information %u at byte %zu",
                        info, offset);
    if (major == MAJOR_TAG)
        return ron_fail(reterr, RON_ERR_MALFORMED, "tags are not used: at byte %zu", offset);
    if (info == INFO_INDEFINITE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s at byte %zu",
                        major == MAJOR_SIMPLE ? "break without an indefinite length"
                        : major < MAJOR_BYTES ? "reserved additional information 31"
                                              : "indefinite length is not canonical:",
                        offset);
    if (major != MAJOR_SIMPLE || (info >= SIMPLE_FALSE && info <= SIMPLE_NULL))
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_MALFORMED, "%s at byte %zu",
                    info > INFO_ONE_BYTE       ? "floating point is not used:"
                    : info == SIMPLE_UNDEFINED ? "the value undefined is not used:"
                                               : "a simple value that is not used:",
                    offset);
}

/* Read the argument of the head at reader->at and move behind it. */
static enum ron_err read_argument(struct ron_cbor_reader *reader, unsigned info,
                                  uint64_t *ret_argument, struct ron_errinfo *reterr)
{
    const uint8_t *head = reader->input.data + reader->at;
    size_t left = bytes_left(reader) - 1;
    uint64_t argument = 0;
    size_t size;

    if (info < INFO_ONE_BYTE) {
        *ret_argument = info;
        reader->at += 1;
        return RON_ERR_OK;
    }
    RON_ASSERT(info <= INFO_EIGHT_BYTES);
    size = (size_t)1 << (info - INFO_ONE_BYTE);
    if (size > left)
        return ron_fail(reterr, RON_ERR_MALFORMED, "input ends inside the head at byte %zu",
                        reader->at);
    for (size_t i = 1; i <= size; i++)
        argument = argument << 8 | head[i];
    /* Shortest form: what the next smaller width holds must use it. */
    if (size == 1 ? argument < INFO_ONE_BYTE : argument >> (size * 4) == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "%" PRIu64 " is not in its shortest form at byte %zu", argument,
                        reader->at);
    *ret_argument = argument;
    reader->at += 1 + size;
    return RON_ERR_OK;
}

static enum ron_err read_string(struct ron_cbor_reader *reader, struct ron_cbor_token *token,
                                uint64_t size, struct ron_errinfo *reterr)
{
    size_t bad_offset = 0;

    if (size > bytes_left(reader))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "%s of %" PRIu64 " bytes with %zu bytes left at byte %zu",
                        kind_names[token->kind], size, bytes_left(reader), token->offset);
    token->bytes = (struct ron_slice){reader->input.data + reader->at, (size_t)size};
    if (token->kind == RON_CBOR_TEXT && !ron_utf8_valid(token->bytes, &bad_offset))
        return ron_fail(reterr, RON_ERR_MALFORMED, "text is not UTF-8 at byte %zu",
                        reader->at + bad_offset);
    reader->at += (size_t)size;
    return RON_ERR_OK;
}

static enum ron_err open_level(struct ron_cbor_reader *reader, struct ron_cbor_token *token,
                               uint64_t count, struct ron_errinfo *reterr)
{
    bool is_map = token->kind == RON_CBOR_MAP_BEGIN;
    unsigned item_size_min = is_map ? 2 : 1;

    if (count > bytes_left(reader) / item_size_min)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "%s of %" PRIu64 " %s with %zu bytes left at byte %zu",
                        kind_names[token->kind], count, is_map ? "pairs" : "items",
                        bytes_left(reader), token->offset);
    if (reader->depth == RON_CBOR_DEPTH_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "nested deeper than %d at byte %zu",
                        RON_CBOR_DEPTH_MAX, token->offset);
    token->value = count;
    reader->levels[reader->depth++] = (struct ron_cbor_level){
        .items_left = count * item_size_min, /* no overflow: at most the bytes left */
        .offset = token->offset,
        .is_map = is_map,
    };
    return RON_ERR_OK;
}

/* The value that began at offset ends before reader->at: count it, and check the order if it is a
 * key. In a map an even number of items is left exactly before a key. */
static enum ron_err complete_item(struct ron_cbor_reader *reader, size_t offset,
                                  struct ron_errinfo *reterr)
{
    struct ron_slice item = {reader->input.data + offset, reader->at - offset};
    struct ron_cbor_level *level;

    RON_ASSERT(item.size > 0);
    if (reader->depth == 0) {
        RON_ASSERT(!reader->complete);
        reader->complete = true;
        return RON_ERR_OK;
    }
    level = &reader->levels[reader->depth - 1];
    RON_ASSERT(level->items_left > 0);
    RON_ASSERT(level->offset < offset);
    if (level->is_map && level->items_left % 2 == 0) {
        int order = ron_slice_compare(level->last_key, item);

        if (order >= 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "%s at byte %zu",
                            order == 0 ? "map key appears twice" : "map key is out of order",
                            offset);
        level->last_key = item;
    }
    level->items_left--;
    return RON_ERR_OK;
}

static enum ron_err read_value(struct ron_cbor_reader *reader, struct ron_cbor_token *token,
                               struct ron_errinfo *reterr)
{
    static const enum ron_cbor_kind kinds[] = {RON_CBOR_UINT,        RON_CBOR_NEGINT,
                                               RON_CBOR_BYTES,       RON_CBOR_TEXT,
                                               RON_CBOR_ARRAY_BEGIN, RON_CBOR_MAP_BEGIN};
    uint64_t argument = 0;
    enum major major;
    unsigned info;
    enum ron_err err;

    if (bytes_left(reader) == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "input ends where a value must follow at byte %zu", reader->at);
    major = (enum major)(reader->input.data[reader->at] >> 5);
    info = reader->input.data[reader->at] & 0x1fu;
    err = check_initial_byte(major, info, reader->at, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = read_argument(reader, info, &argument, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (major == MAJOR_SIMPLE) {
        token->kind = info == SIMPLE_FALSE  ? RON_CBOR_FALSE
                      : info == SIMPLE_TRUE ? RON_CBOR_TRUE
                                            : RON_CBOR_NULL;
        return complete_item(reader, token->offset, reterr);
    }
    RON_ASSERT((size_t)major < RON_ARRAY_COUNT(kinds));
    token->kind = kinds[major];
    if (major >= MAJOR_ARRAY)
        return open_level(reader, token, argument, reterr);
    if (major >= MAJOR_BYTES) {
        err = read_string(reader, token, argument, reterr);
        if (err != RON_ERR_OK)
            return err;
    } else {
        token->value = argument;
    }
    return complete_item(reader, token->offset, reterr);
}

static enum ron_err read_token(struct ron_cbor_reader *reader, struct ron_cbor_token *token,
                               struct ron_errinfo *reterr)
{
    struct ron_cbor_level *level;

    *token = (struct ron_cbor_token){.offset = reader->at};
    if (reader->complete) {
        if (bytes_left(reader) > 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "%zu bytes after the value at byte %zu",
                            bytes_left(reader), reader->at);
        token->kind = RON_CBOR_END;
        return RON_ERR_OK;
    }
    if (reader->depth == 0 || reader->levels[reader->depth - 1].items_left > 0)
        return read_value(reader, token, reterr);
    level = &reader->levels[--reader->depth];
    token->kind = level->is_map ? RON_CBOR_MAP_END : RON_CBOR_ARRAY_END;
    return complete_item(reader, level->offset, reterr);
}

static enum ron_err refuse_again(const struct ron_cbor_reader *reader, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, reader->failure, "the reader failed before, at byte %zu", reader->at);
}

enum ron_err ron_cbor_next(struct ron_cbor_reader *reader, struct ron_cbor_token *ret_token,
                           struct ron_errinfo *reterr)
{
    struct ron_cbor_token token;
    enum ron_err err;

    reader_check(reader);
    if (reader->failure != RON_ERR_OK)
        return refuse_again(reader, reterr);
    err = read_token(reader, &token, reterr);
    reader_check(reader);
    if (err != RON_ERR_OK) {
        reader->failure = err;
        return err;
    }
    /* By member: copying the whole struct right after its parts were written stalls the loads. */
    ret_token->kind = token.kind;
    ret_token->value = token.value;
    ret_token->bytes.data = token.bytes.data;
    ret_token->bytes.size = token.bytes.size;
    ret_token->offset = token.offset;
    return RON_ERR_OK;
}

enum ron_err ron_cbor_skip(struct ron_cbor_reader *reader, struct ron_slice *ret_raw,
                           struct ron_errinfo *reterr)
{
    unsigned depth = reader->depth;
    size_t start = reader->at;
    struct ron_cbor_token token;
    enum ron_err err;

    reader_check(reader);
    if (reader->failure != RON_ERR_OK)
        return refuse_again(reader, reterr);
    /* Ends: each token takes at least one byte or closes a level that took one. */
    do {
        err = read_token(reader, &token, reterr);
        if (err == RON_ERR_OK && (reader->depth < depth || token.kind == RON_CBOR_END))
            err = ron_fail(reterr, RON_ERR_MALFORMED, "%s where a value must follow at byte %zu",
                           kind_names[token.kind], start);
        if (err != RON_ERR_OK) {
            reader->failure = err;
            return err;
        }
    } while (reader->depth > depth);
    reader_check(reader);
    RON_ASSERT(reader->at > start);
    *ret_raw = (struct ron_slice){reader->input.data + start, reader->at - start};
    return RON_ERR_OK;
}
