/*
 * json_dto_value.c - scalar members of a DTO: strings, amounts, integers, words. See json_dto.h.
 */
#include <inttypes.h>

#include "base/json_dto_walk.h"
#include "base/nearest.h"
#include "base/printable.h"

/* A number that must not be negative nor beyond max, as 128 bits. */
static enum ron_err read_unsigned(struct ron_json_walk *walk, struct ron_u128 max)
{
    if (walk->token.kind != RON_JSON_INTEGER)
        return RON_JSON_REFUSE(walk, "expected an integer");
    if (walk->token.negative)
        return RON_JSON_REFUSE(walk, "negative");
    if (walk->token.number.v > max.v)
        return RON_JSON_REFUSE(walk, "above its maximum of %" PRIu64, (uint64_t)max.v);
    return RON_ERR_OK;
}

static enum ron_err read_i64(struct ron_json_walk *walk, void *member)
{
    unsigned __int128 magnitude = walk->token.number.v;
    int64_t value;

    if (walk->token.kind != RON_JSON_INTEGER)
        return RON_JSON_REFUSE(walk, "expected an integer");
    if (magnitude > (uint64_t)INT64_MAX + walk->token.negative)
        return RON_JSON_REFUSE(walk, "beyond 64 bits with sign");
    value = walk->token.negative ? (int64_t)(0 - (uint64_t)magnitude) : (int64_t)magnitude;
    memcpy(member, &value, sizeof(value));
    return RON_ERR_OK;
}

enum ron_err ron_json_walk_check_string(struct ron_json_walk *walk, uint32_t size_min,
                                        uint32_t size_max, ron_json_check_fn *check)
{
    struct ron_slice text = walk->token.text;
    const char *wrong;

    if (walk->token.kind != RON_JSON_STRING)
        return RON_JSON_REFUSE(walk, "expected a string");
    if (text.size < size_min)
        return RON_JSON_REFUSE(walk, "%zu bytes, at least %u are needed", text.size, size_min);
    if (text.size > size_max)
        return RON_JSON_REFUSE(walk, "%zu bytes, at most %u are allowed", text.size, size_max);
    if (check == NULL)
        return RON_ERR_OK;
    wrong = check(text);
    return wrong == NULL ? RON_ERR_OK : RON_JSON_REFUSE(walk, "%s", wrong);
}

static enum ron_err read_amount(struct ron_json_walk *walk, const struct ron_json_field *field,
                                void *member)
{
    struct ron_slice text = walk->token.text;
    struct ron_u128 amount = {0};

    if (walk->token.kind != RON_JSON_STRING)
        return RON_JSON_REFUSE(walk, "expected a string of decimal digits");
    if (text.size == 0 || (text.size > 1 && text.data[0] == '0'))
        return RON_JSON_REFUSE(walk, "not a decimal number");
    for (size_t i = 0; i < text.size; i++) {
        uint8_t digit = (uint8_t)(text.data[i] - '0');

        if (digit > 9)
            return RON_JSON_REFUSE(walk, "not a decimal number");
        if (i < 19) {
            amount.v = (uint64_t)amount.v * 10 + digit; /* fits 64 bits, and is then cheap */
        } else if (__builtin_mul_overflow(amount.v, 10, &amount.v) ||
                   __builtin_add_overflow(amount.v, digit, &amount.v)) {
            return RON_JSON_REFUSE(walk, "beyond 128 bits");
        }
    }
    if (amount.v == 0 && (field->flags & RON_JSON_ZERO) == 0)
        return RON_JSON_REFUSE(walk, "zero is not allowed");
    memcpy(member, &amount, sizeof(amount));
    return RON_ERR_OK;
}

RON_COLD static enum ron_err refuse_name(struct ron_json_walk *walk,
                                         const struct ron_json_field *field)
{
    struct ron_slice text = walk->token.text;
    char printed[RON_JSON_NAME_PRINTED_SIZE];
    const char *nearest = ron_nearest_name(text, field->names, sizeof(field->names[0]),
                                           field->size_max);

    (void)ron_printable(text, printed, sizeof(printed));
    if (nearest == NULL)
        return RON_JSON_REFUSE(walk, "unknown name \"%s\"", printed);
    return RON_JSON_REFUSE(walk, "unknown name \"%s\", did you mean \"%s\"?", printed, nearest);
}

static enum ron_err read_enum(struct ron_json_walk *walk, const struct ron_json_field *field,
                              void *member)
{
    struct ron_slice text = walk->token.text;
    char first;

    if (walk->token.kind != RON_JSON_STRING)
        return RON_JSON_REFUSE(walk, "expected a string");
    first = text.size > 0 ? (char)text.data[0] : '\0';
    for (uint32_t i = 0; i < field->size_max; i++) {
        const char *name = field->names[i];

        if (name[0] == first && strlen(name) == text.size &&
            ron_json_same_bytes(name, text.data, text.size)) {
            memcpy(member, &i, sizeof(i));
            return RON_ERR_OK;
        }
    }
    return refuse_name(walk, field);
}

enum ron_err ron_json_walk_scalar(struct ron_json_walk *walk, const struct ron_json_field *field,
                                  uint8_t *member)
{
    enum ron_err err;

    RON_ASSERT(field->type < RON_JSON_TYPE_RAW);
    switch ((enum ron_json_type)field->type) {
    case RON_JSON_TYPE_STRING:
        err = ron_json_walk_check_string(walk, field->size_min, field->size_max, field->check);
        if (err == RON_ERR_OK)
            memcpy(member, &walk->token.text, sizeof(walk->token.text));
        return err;
    case RON_JSON_TYPE_AMOUNT:
        return read_amount(walk, field, member);
    case RON_JSON_TYPE_U32:
    case RON_JSON_TYPE_U64:
        err = read_unsigned(walk, ron_u128_of(field->number_max));
        if (err == RON_ERR_OK) /* little-endian: the low bytes come first */
            memcpy(member, &walk->token.number, field->type == RON_JSON_TYPE_U32 ? 4 : 8);
        return err;
    case RON_JSON_TYPE_U128:
        err = read_unsigned(walk, RON_U128_MAX);
        if (err == RON_ERR_OK)
            memcpy(member, &walk->token.number, sizeof(walk->token.number));
        return err;
    case RON_JSON_TYPE_I64:
        return read_i64(walk, member);
    case RON_JSON_TYPE_BOOL:
        if (walk->token.kind != RON_JSON_TRUE && walk->token.kind != RON_JSON_FALSE)
            return RON_JSON_REFUSE(walk, "expected true or false");
        *member = walk->token.kind == RON_JSON_TRUE;
        return RON_ERR_OK;
    case RON_JSON_TYPE_ENUM:
        return read_enum(walk, field, member);
    case RON_JSON_TYPE_RAW:
    case RON_JSON_TYPE_OBJECT:
    case RON_JSON_TYPE_OBJECTS:
    case RON_JSON_TYPE_STRINGS:
    default:
        RON_UNREACHABLE();
    }
}
