/*
 * json_dto_walk.h - the state of filling a struct, shared by the walk (json_dto.c) and the scalar
 * values (json_dto_value.c). Internal to them.
 */
#ifndef RON_BASE_JSON_DTO_WALK_H
#define RON_BASE_JSON_DTO_WALK_H

#include "base/assert.h"
#include "base/json_dto.h"

enum { RON_JSON_NAME_PRINTED_SIZE = 48 }; /* of an untrusted name, escaped */

struct ron_json_frame {
    const struct ron_json_dto *dto;
    uint8_t *object;                    /* the struct being filled */
    uint64_t seen;                      /* members met, by index */
    uint64_t present;                   /* those that were not null */
    uint64_t required;                  /* of the table */
    uint32_t expected;                  /* the field after the last one: clients keep an order */
    const struct ron_json_field *field; /* being read; NULL between members */
    /* The array being read as this field, if any. */
    bool in_array;
    uint32_t item_index; /* for the path */
    uint32_t items_count;
    uint32_t items_capacity;
    uint64_t item_required;
    uint8_t *items;
};

struct ron_json_walk {
    struct ron_json_reader reader;
    struct ron_json_token token; /* the last one */
    struct ron_arena *arena;
    struct ron_errinfo *reterr;
    unsigned depth; /* frames in use */
    struct ron_json_frame frames[RON_JSON_DTO_DEPTH_MAX];
};

static inline struct ron_json_frame *ron_json_walk_top(struct ron_json_walk *walk)
{
    RON_ASSERT(walk->depth > 0);
    return &walk->frames[walk->depth - 1];
}

/* Refuse what the last token says: fills walk->reterr with path, byte and reason. */
#define RON_JSON_REFUSE(walk, ...) \
    ron_json_walk_fail((walk), RON_ERR_MALFORMED, __FILE__, __LINE__, __VA_ARGS__)
#define RON_JSON_REFUSE_LARGE(walk, ...) \
    ron_json_walk_fail((walk), RON_ERR_TOO_LARGE, __FILE__, __LINE__, __VA_ARGS__)

enum ron_err ron_json_walk_fail(const struct ron_json_walk *walk, enum ron_err err,
                                const char *file, int line, const char *format, ...) RON_COLD
    RON_PRINTF(5, 6);

/* Read the last token as the value of a scalar field (before RAW in enum ron_json_type) into its
 * member. */
enum ron_err ron_json_walk_scalar(struct ron_json_walk *walk, const struct ron_json_field *field,
                                  uint8_t *member) RON_MUST_USE;
/* Is the last token a string of these sizes that check (may be NULL) accepts? */
enum ron_err ron_json_walk_check_string(struct ron_json_walk *walk, uint32_t size_min,
                                        uint32_t size_max, ron_json_check_fn *check) RON_MUST_USE;

/* Names are short: two overlapping words compare most of them. */
static inline bool ron_json_same_bytes(const void *a, const void *b, size_t size)
{
    const uint8_t *x = a;
    const uint8_t *y = b;

    if (size > 16)
        return memcmp(a, b, size) == 0;
    if (size >= 8)
        return ((ron_load_le64(x) ^ ron_load_le64(y)) |
                (ron_load_le64(x + size - 8) ^ ron_load_le64(y + size - 8))) == 0;
    if (size >= 4)
        return ((ron_load_le32(x) ^ ron_load_le32(y)) |
                (ron_load_le32(x + size - 4) ^ ron_load_le32(y + size - 4))) == 0;
    if (size >= 2)
        return ((ron_load_le16(x) ^ ron_load_le16(y)) |
                (ron_load_le16(x + size - 2) ^ ron_load_le16(y + size - 2))) == 0;
    return size == 0 || x[0] == y[0];
}

#endif
