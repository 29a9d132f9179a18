/*
 * json_dto.h - requests declared as tables: JSON straight into a struct, in one pass, with no tree.
 *
 * A DTO is a static const table of fields. Members may come in any order; an unknown, duplicate or
 * missing one, a wrong type or a broken bound is refused, with the path and the byte:
 * `batch[17].amount at byte 2031: not a decimal number`. RON_ERR_MALFORMED, except that an array of
 * too many elements, a text beyond RON_JSON_SIZE_MAX and a full arena are RON_ERR_TOO_LARGE. `null`
 * is refused unless the field is RON_JSON_NULLABLE, and then means the same as absence; a raw field
 * that is not takes it as a value.
 *
 * Strings and raw values borrow the text (or the arena, where they had escapes), so both must
 * outlive the struct. Arrays lie in the arena, each in one piece. An array grows in place while it
 * is the newest thing there and by doubling into new memory otherwise, so the arena needs at most
 * twice the text, the struct, and four times the elements' structs (each rounded up to 16 bytes);
 * once those structs where no string has escapes and no element holds an array.
 *
 *     struct entry { uint64_t present; struct ron_slice id; struct ron_u128 amount; };
 *     enum { ENTRY_ID, ENTRY_AMOUNT };
 *     static const struct ron_json_field entry_fields[] = {
 *         [ENTRY_ID] = RON_JSON_FIELD_STRING(struct entry, id, 0, 1, 64, NULL),
 *         [ENTRY_AMOUNT] = RON_JSON_FIELD_AMOUNT(struct entry, amount, RON_JSON_OPTIONAL),
 *     };
 *     static const struct ron_json_dto entry_dto = RON_JSON_DTO(struct entry, entry_fields);
 */
#ifndef RON_BASE_JSON_DTO_H
#define RON_BASE_JSON_DTO_H

#include "base/json.h"

enum ron_json_type {
    RON_JSON_TYPE_STRING,  /* struct ron_slice */
    RON_JSON_TYPE_AMOUNT,  /* struct ron_u128, from a JSON string of decimal digits */
    RON_JSON_TYPE_U32,     /* uint32_t */
    RON_JSON_TYPE_U64,     /* uint64_t */
    RON_JSON_TYPE_U128,    /* struct ron_u128, from a JSON number */
    RON_JSON_TYPE_I64,     /* int64_t */
    RON_JSON_TYPE_BOOL,    /* bool */
    RON_JSON_TYPE_ENUM,    /* an enum: the index of the string in a table */
    RON_JSON_TYPE_RAW,     /* struct ron_slice: any value, checked, as its text */
    RON_JSON_TYPE_OBJECT,  /* a struct, filled by its own DTO */
    RON_JSON_TYPE_OBJECTS, /* struct ron_json_array of such structs */
    RON_JSON_TYPE_STRINGS, /* struct ron_json_array of struct ron_slice */
};

/* Flags of a field. */
#define RON_JSON_OPTIONAL    0x1u
#define RON_JSON_NULLABLE    0x2u /* with OPTIONAL only */
#define RON_JSON_ZERO        0x4u /* AMOUNT: "0" is allowed */
#define RON_JSON_OBJECT_ONLY 0x8u /* RAW: the value must be an object */

enum { RON_JSON_DTO_DEPTH_MAX = 8 }; /* DTOs inside DTOs */

struct ron_json_array {
    void *items; /* in the arena; NULL when empty */
    uint32_t count;
};

/* NULL if text is acceptable, else what is wrong with it, as a static text without the value. */
typedef const char *ron_json_check_fn(struct ron_slice text);

struct ron_json_dto;

struct ron_json_field {
    const char *name;
    uint32_t name_size;
    uint8_t type; /* enum ron_json_type */
    uint8_t flags;
    uint32_t offset;                /* of the member in the struct */
    uint32_t size_min;              /* bytes of a string, elements of an array */
    uint32_t size_max;              /* the same; bytes of a raw value; names of an enum */
    uint64_t number_max;            /* U32, U64 */
    ron_json_check_fn *check;       /* STRING, STRINGS: may be NULL */
    const char *const *names;       /* ENUM */
    const struct ron_json_dto *dto; /* OBJECT, OBJECTS */
};

struct ron_json_dto {
    const struct ron_json_field *fields;
    uint32_t fields_count;   /* at most RON_JSON_FIELDS_MAX */
    uint32_t size;           /* of the struct */
    uint32_t present_offset; /* of its `uint64_t present`: bit i is set if field i was there */
};

/* offsetof, refusing to compile when the member is not of the type the field fills. */
#define RON_JSON_OFFSET(structure, member, type)                                                 \
    (uint32_t)(                                                                                  \
        offsetof(structure, member) +                                                            \
        0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((structure *)0)->member), type) \
                            ? 1                                                                  \
                            : -1]))
#define RON_JSON_FIELD(structure, member, ctype, kind, flag_bits, ...)                         \
    {                                                                                          \
        .name = #member, .name_size = sizeof(#member) - 1, .type = RON_JSON_TYPE_##kind,       \
        .flags = (flag_bits), .offset = RON_JSON_OFFSET(structure, member, ctype), __VA_ARGS__ \
    }

#define RON_JSON_FIELD_STRING(structure, member, flags, min, max, check_fn)               \
    RON_JSON_FIELD(structure, member, struct ron_slice, STRING, flags, .size_min = (min), \
                   .size_max = (max), .check = (check_fn))
#define RON_JSON_FIELD_AMOUNT(structure, member, flags) \
    RON_JSON_FIELD(structure, member, struct ron_u128, AMOUNT, flags)
#define RON_JSON_FIELD_U32(structure, member, flags, max) \
    RON_JSON_FIELD(structure, member, uint32_t, U32, flags, .number_max = (max))
#define RON_JSON_FIELD_U64(structure, member, flags, max) \
    RON_JSON_FIELD(structure, member, uint64_t, U64, flags, .number_max = (max))
#define RON_JSON_FIELD_U128(structure, member, flags) \
    RON_JSON_FIELD(structure, member, struct ron_u128, U128, flags)
#define RON_JSON_FIELD_I64(structure, member, flags) \
    RON_JSON_FIELD(structure, member, int64_t, I64, flags)
#define RON_JSON_FIELD_BOOL(structure, member, flags) \
    RON_JSON_FIELD(structure, member, bool, BOOL, flags)
/* The enumeration must be as wide as unsigned: that many bytes are written. */
#define RON_JSON_FIELD_ENUM(structure, member, enumeration, flags, table)         \
    RON_JSON_FIELD(structure, member, enumeration, ENUM, flags, .names = (table), \
                   .size_max = RON_ARRAY_COUNT(table) +                           \
                               0 * sizeof(char[sizeof(enumeration) == sizeof(unsigned) ? 1 : -1]))
#define RON_JSON_FIELD_RAW(structure, member, flags, max) \
    RON_JSON_FIELD(structure, member, struct ron_slice, RAW, flags, .size_max = (max))
#define RON_JSON_FIELD_OBJECT(structure, member, inner, flags, inner_dto) \
    RON_JSON_FIELD(structure, member, inner, OBJECT, flags, .dto = (inner_dto))
#define RON_JSON_FIELD_OBJECTS(structure, member, flags, min, max, item_dto)                    \
    RON_JSON_FIELD(structure, member, struct ron_json_array, OBJECTS, flags, .size_min = (min), \
                   .size_max = (max), .dto = (item_dto))
#define RON_JSON_FIELD_STRINGS(structure, member, flags, max_count, max, check_fn) \
    RON_JSON_FIELD(structure, member, struct ron_json_array, STRINGS, flags,       \
                   .size_max = (max_count), .number_max = (max), .check = (check_fn))

#define RON_JSON_DTO(structure, table)                                                        \
    {                                                                                         \
        .fields = (table), .fields_count = RON_ARRAY_COUNT(table), .size = sizeof(structure), \
        .present_offset = RON_JSON_OFFSET(structure, present, uint64_t)                       \
    }

/* Was field number index there? */
static inline bool ron_json_has(uint64_t present, unsigned index)
{
    return (present >> index & 1) != 0;
}

/* Read text, one object, into *ret_object, which has dto->size bytes. Absent members are zero. */
enum ron_err ron_json_dto_read(const struct ron_json_dto *dto, struct ron_slice text,
                               struct ron_arena *arena, void *ret_object,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The same. *ret_index, always written: after an error the element of the outermost array in which
 * it was met; UINT32_MAX if in none. */
enum ron_err ron_json_dto_read_indexed(const struct ron_json_dto *dto, struct ron_slice text,
                                       struct ron_arena *arena, void *ret_object,
                                       uint32_t *ret_index,
                                       struct ron_errinfo *reterr) RON_MUST_USE;

#endif
