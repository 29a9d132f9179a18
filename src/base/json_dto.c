/*
 * json_dto.c - filling structs from JSON by table. See json_dto.h.
 *
 * The walk keeps one frame per object being filled, so the path of an error is there when it is
 * needed and costs nothing before. Duplicates among declared members are seen by a bit set, so the
 * reader remembers names only inside raw values.
 */
#include "base/json_dto.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json_dto_walk.h"
#include "base/nearest.h"
#include "base/printable.h"

enum {
    PATH_SIZE = 96,
    WHAT_SIZE = 128,
    ITEM_STRING_SIZE = sizeof(struct ron_slice),
};

/* "batch[17].amount ", with a space at its end; empty outside of all members. */
static void print_path(const struct ron_json_walk *walk, char path[static PATH_SIZE])
{
    size_t size = 0;

    path[0] = '\0';
    for (unsigned i = 0; i < walk->depth && walk->frames[i].field != NULL; i++) {
        const struct ron_json_frame *frame = &walk->frames[i];

        size += (size_t)snprintf(path + size, PATH_SIZE - size, "%s%s", i == 0 ? "" : ".",
                                 frame->field->name);
        if (frame->in_array && size < PATH_SIZE)
            size += (size_t)snprintf(path + size, PATH_SIZE - size, "[%u]", frame->item_index);
        if (size >= PATH_SIZE - 1)
            return; /* cut: the byte still says where */
    }
    if (size > 0)
        (void)snprintf(path + size, PATH_SIZE - size, " ");
}

enum ron_err ron_json_walk_fail(const struct ron_json_walk *walk, enum ron_err err,
                                const char *file, int line, const char *format, ...)
{
    char path[PATH_SIZE];
    char what[WHAT_SIZE];
    va_list args;

    print_path(walk, path);
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return ron_fail_at(walk->reterr, err, 0, file, line, "%sat byte %u: %s", path,
                       walk->token.offset, what);
}

/* Put the path before the reader's own message. */
RON_COLD static enum ron_err fail_reader(const struct ron_json_walk *walk, enum ron_err err)
{
    char path[PATH_SIZE];
    char message[RON_ERR_MESSAGE_SIZE];

    if (walk->reterr == NULL)
        return err;
    print_path(walk, path);
    memcpy(message, walk->reterr->message, sizeof(message));
    return ron_fail_at(walk->reterr, err, 0, walk->reterr->file, walk->reterr->line, "%s%s", path,
                       message);
}

static inline enum ron_err next(struct ron_json_walk *walk)
{
    enum ron_err err = ron_json_next(&walk->reader, &walk->token, walk->reterr);

    return RON_LIKELY(err == RON_ERR_OK) ? RON_ERR_OK : fail_reader(walk, err);
}

static uint64_t required_fields(const struct ron_json_dto *dto)
{
    uint64_t required = 0;

    RON_ASSERT(dto->fields_count > 0);
    RON_ASSERT(dto->fields_count <= RON_JSON_FIELDS_MAX);
    for (uint32_t i = 0; i < dto->fields_count; i++) {
        const struct ron_json_field *field = &dto->fields[i];

        RON_ASSERT(field->name != NULL); /* a hole in the table */
        RON_ASSERT(field->offset < dto->size);
        if (field->type == RON_JSON_TYPE_U32)
            RON_ASSERT(field->number_max <= UINT32_MAX);
        if ((field->flags & RON_JSON_OPTIONAL) == 0) {
            RON_ASSERT((field->flags & RON_JSON_NULLABLE) == 0);
            required |= (uint64_t)1 << i;
        }
    }
    return required;
}

/* Begin an object of dto at memory of its size. */
static void push(struct ron_json_walk *walk, const struct ron_json_dto *dto, uint64_t required,
                 uint8_t *object)
{
    struct ron_json_frame *frame;

    RON_ASSERT(walk->depth < RON_JSON_DTO_DEPTH_MAX);
    frame = &walk->frames[walk->depth++];
    memset(object, 0, dto->size);
    frame->dto = dto;
    frame->object = object;
    frame->seen = 0;
    frame->present = 0;
    frame->required = required;
    frame->expected = 0;
    frame->field = NULL;
    frame->in_array = false;
}

static inline bool is_name(const struct ron_json_field *field, struct ron_slice name)
{
    return field->name_size == name.size && ron_json_same_bytes(field->name, name.data, name.size);
}

RON_COLD static enum ron_err refuse_unknown(struct ron_json_walk *walk,
                                            const struct ron_json_dto *dto)
{
    char name[RON_JSON_NAME_PRINTED_SIZE];
    const char *nearest = ron_nearest_name(walk->token.text, &dto->fields[0].name,
                                           sizeof(dto->fields[0]), dto->fields_count);

    (void)ron_printable(walk->token.text, name, sizeof(name));
    if (nearest == NULL)
        return RON_JSON_REFUSE(walk, "unknown member \"%s\"", name);
    return RON_JSON_REFUSE(walk, "unknown member \"%s\", did you mean \"%s\"?", name, nearest);
}

/* The field that the name token means, marked as seen. */
static enum ron_err find_field(struct ron_json_walk *walk, uint32_t *ret_index)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    const struct ron_json_dto *dto = frame->dto;
    struct ron_slice name = walk->token.text;
    uint32_t index = frame->expected;

    if (index >= dto->fields_count || !is_name(&dto->fields[index], name)) {
        for (index = 0; index < dto->fields_count; index++)
            if (is_name(&dto->fields[index], name))
                break;
        if (index == dto->fields_count)
            return refuse_unknown(walk, dto);
    }
    if ((frame->seen >> index & 1) != 0)
        return RON_JSON_REFUSE(walk, "duplicate member \"%s\"", dto->fields[index].name);
    frame->seen |= (uint64_t)1 << index;
    frame->expected = index + 1;
    *ret_index = index;
    return RON_ERR_OK;
}

static enum ron_err read_raw(struct ron_json_walk *walk, const struct ron_json_field *field,
                             void *member)
{
    struct ron_slice raw;
    enum ron_err err;

    if ((field->flags & RON_JSON_OBJECT_ONLY) != 0 && walk->token.kind != RON_JSON_OBJECT_BEGIN)
        return RON_JSON_REFUSE(walk, "expected an object");
    err = ron_json_skip(&walk->reader, &walk->token, &raw, walk->reterr);
    walk->reader.names_by_caller = true;
    if (err != RON_ERR_OK)
        return fail_reader(walk, err);
    if (raw.size > field->size_max)
        return RON_JSON_REFUSE(walk, "%zu bytes, at most %u are allowed", raw.size,
                               field->size_max);
    memcpy(member, &raw, sizeof(raw));
    return RON_ERR_OK;
}

/* Room for one more element of the array of the top frame; NULL when the arena is full. */
static uint8_t *add_item(struct ron_json_walk *walk, struct ron_json_frame *frame,
                         uint32_t item_size, uint32_t count_max)
{
    struct ron_arena *arena = walk->arena;
    uint32_t capacity = frame->items_capacity;

    RON_ASSERT(frame->items_count < count_max);
    if (frame->items_count == capacity) {
        uint8_t *end = arena->block + arena->used_size;
        bool newest = capacity > 0 && frame->items + (size_t)capacity * item_size == end;
        uint32_t more = newest || capacity == 0 ? 1 : capacity;
        uint8_t *items;

        if (more > count_max - capacity)
            more = count_max - capacity;
        if (newest) {
            if (ron_arena_alloc_bytes(arena, (size_t)more * item_size) == NULL)
                return NULL;
        } else {
            items = ron_arena_alloc(arena, (size_t)(capacity + more) * item_size);
            if (items == NULL)
                return NULL;
            if (capacity > 0)
                memcpy(items, frame->items, (size_t)capacity * item_size);
            frame->items = items;
        }
        frame->items_capacity = capacity + more;
    }
    return frame->items + (size_t)frame->items_count++ * item_size;
}

static enum ron_err begin_array(struct ron_json_walk *walk)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);

    if (walk->token.kind != RON_JSON_ARRAY_BEGIN)
        return RON_JSON_REFUSE(walk, "expected an array");
    frame->in_array = true;
    frame->item_index = 0;
    frame->items_count = 0;
    frame->items_capacity = 0;
    frame->items = NULL;
    return RON_ERR_OK;
}

static enum ron_err end_array(struct ron_json_walk *walk, uint32_t item_size)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    const struct ron_json_field *field = frame->field;
    struct ron_json_array array = {frame->items, frame->items_count};
    uint8_t *end = walk->arena->block + walk->arena->used_size;
    uint32_t spare = frame->items_capacity - frame->items_count;

    RON_ASSERT(walk->token.kind == RON_JSON_ARRAY_END);
    frame->in_array = false;
    if (array.count < field->size_min)
        return RON_JSON_REFUSE(walk, "%u elements, at least %u are needed", array.count,
                               field->size_min);
    if (spare > 0 && frame->items + (size_t)frame->items_capacity * item_size == end)
        ron_arena_rewind(walk->arena, walk->arena->used_size - (size_t)spare * item_size);
    memcpy(frame->object + field->offset, &array, sizeof(array));
    frame->field = NULL;
    return RON_ERR_OK;
}

/* One more element begins with the last token: its memory. */
static enum ron_err begin_item(struct ron_json_walk *walk, uint32_t item_size, uint8_t **ret_item)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    uint32_t count_max = frame->field->size_max;
    uint8_t *item;

    if (frame->items_count == count_max) {
        frame->in_array = false; /* the path names the array */
        return RON_JSON_REFUSE_LARGE(walk, "more than %u elements", count_max);
    }
    item = add_item(walk, frame, item_size, count_max);
    if (item == NULL)
        return RON_JSON_REFUSE_LARGE(walk, "no room left for its elements");
    *ret_item = item;
    return RON_ERR_OK;
}

/* Behind [ or behind an element: the next one, or the end of the array. */
static enum ron_err next_object(struct ron_json_walk *walk)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    const struct ron_json_dto *dto = frame->field->dto;
    uint8_t *item = NULL;
    enum ron_err err;

    frame->item_index = frame->items_count;
    err = next(walk);
    if (err != RON_ERR_OK)
        return err;
    if (walk->token.kind == RON_JSON_ARRAY_END)
        return end_array(walk, dto->size);
    err = begin_item(walk, dto->size, &item);
    if (err != RON_ERR_OK)
        return err;
    if (walk->token.kind != RON_JSON_OBJECT_BEGIN)
        return RON_JSON_REFUSE(walk, "expected an object");
    push(walk, dto, frame->item_required, item);
    return RON_ERR_OK;
}

static enum ron_err read_strings(struct ron_json_walk *walk, const struct ron_json_field *field)
{
    enum ron_err err = begin_array(walk);

    while (err == RON_ERR_OK) {
        uint8_t *item = NULL;

        ron_json_walk_top(walk)->item_index = ron_json_walk_top(walk)->items_count;
        err = next(walk);
        if (err != RON_ERR_OK)
            return err;
        if (walk->token.kind == RON_JSON_ARRAY_END)
            return end_array(walk, ITEM_STRING_SIZE);
        err = begin_item(walk, ITEM_STRING_SIZE, &item);
        if (err != RON_ERR_OK)
            return err;
        err = ron_json_walk_check_string(walk, 1, (uint32_t)field->number_max, field->check);
        memcpy(item, &walk->token.text, ITEM_STRING_SIZE);
    }
    return err;
}

/* The value of a field, or (objects and arrays of them) its beginning. */
static enum ron_err read_value(struct ron_json_walk *walk, const struct ron_json_field *field)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    uint8_t *member = frame->object + field->offset;
    enum ron_err err;

    switch ((enum ron_json_type)field->type) {
    case RON_JSON_TYPE_STRING:
    case RON_JSON_TYPE_AMOUNT:
    case RON_JSON_TYPE_U32:
    case RON_JSON_TYPE_U64:
    case RON_JSON_TYPE_U128:
    case RON_JSON_TYPE_I64:
    case RON_JSON_TYPE_BOOL:
    case RON_JSON_TYPE_ENUM:
        return ron_json_walk_scalar(walk, field, member);
    case RON_JSON_TYPE_RAW:
        return read_raw(walk, field, member);
    case RON_JSON_TYPE_OBJECT:
        if (walk->token.kind != RON_JSON_OBJECT_BEGIN)
            return RON_JSON_REFUSE(walk, "expected an object");
        push(walk, field->dto, required_fields(field->dto), member);
        return RON_ERR_OK;
    case RON_JSON_TYPE_OBJECTS:
        err = begin_array(walk);
        if (err != RON_ERR_OK)
            return err;
        frame->item_required = required_fields(field->dto);
        return next_object(walk);
    case RON_JSON_TYPE_STRINGS:
        return read_strings(walk, field);
    default:
        RON_UNREACHABLE();
    }
}

/* A member: the token is its name. */
static enum ron_err read_member(struct ron_json_walk *walk)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    const struct ron_json_field *field;
    uint32_t index = 0;
    enum ron_err err = find_field(walk, &index);

    if (err != RON_ERR_OK)
        return err;
    field = &frame->dto->fields[index];
    frame->field = field;
    /* Of a raw value only the reader sees the names; it decides at the object's beginning. */
    walk->reader.names_by_caller = field->type != RON_JSON_TYPE_RAW;
    err = next(walk);
    if (err != RON_ERR_OK)
        return err;
    if (walk->token.kind == RON_JSON_NULL) {
        walk->reader.names_by_caller = true;
        if ((field->flags & RON_JSON_NULLABLE) != 0) {
            frame->field = NULL;
            return RON_ERR_OK;
        }
        if (field->type != RON_JSON_TYPE_RAW) /* for which it is a value */
            return RON_JSON_REFUSE(walk, "null is not allowed");
    }
    frame->present |= (uint64_t)1 << index;
    err = read_value(walk, field);
    if (err == RON_ERR_OK && field->type < RON_JSON_TYPE_OBJECT)
        frame->field = NULL;
    return err;
}

/* The top frame's object ends with the last token. */
static enum ron_err end_object(struct ron_json_walk *walk)
{
    struct ron_json_frame *frame = ron_json_walk_top(walk);
    uint64_t missing = frame->required & ~frame->seen;

    RON_ASSERT(walk->token.kind == RON_JSON_OBJECT_END);
    if (missing != 0)
        return RON_JSON_REFUSE(walk, "member \"%s\" is missing",
                               frame->dto->fields[__builtin_ctzll(missing)].name);
    memcpy(frame->object + frame->dto->present_offset, &frame->present, sizeof(frame->present));
    walk->depth--;
    if (walk->depth == 0)
        return RON_ERR_OK;
    frame = ron_json_walk_top(walk);
    if (frame->in_array)
        return next_object(walk);
    frame->field = NULL;
    return RON_ERR_OK;
}

/* Everything up to the end of the text. */
static enum ron_err read_document(struct ron_json_walk *walk, const struct ron_json_dto *dto,
                                  uint8_t *object)
{
    enum ron_err err = next(walk);

    if (err != RON_ERR_OK)
        return err;
    if (walk->token.kind != RON_JSON_OBJECT_BEGIN)
        return RON_JSON_REFUSE(walk, "expected an object");
    push(walk, dto, required_fields(dto), object);
    while (walk->depth > 0) {
        err = next(walk);
        if (err != RON_ERR_OK)
            return err;
        err = walk->token.kind == RON_JSON_NAME ? read_member(walk) : end_object(walk);
        if (err != RON_ERR_OK)
            return err;
    }
    err = next(walk);
    if (err == RON_ERR_OK)
        RON_ASSERT(walk->token.kind == RON_JSON_END);
    return err;
}

enum ron_err ron_json_dto_read_indexed(const struct ron_json_dto *dto, struct ron_slice text,
                                       struct ron_arena *arena, void *ret_object,
                                       uint32_t *ret_index, struct ron_errinfo *reterr)
{
    struct ron_json_walk walk;
    uint8_t *object;
    enum ron_err err;

    walk.arena = arena;
    walk.reterr = reterr;
    walk.depth = 0;
    *ret_index = UINT32_MAX;
    object = ron_arena_alloc(arena, dto->size);
    if (object == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "no room for an object of %u bytes", dto->size);
    ron_json_reader_init(&walk.reader, text, arena);
    walk.reader.names_by_caller = true;
    err = read_document(&walk, dto, object);
    if (err == RON_ERR_OK)
        memcpy(ret_object, object, dto->size);
    else if (walk.depth > 0 && walk.frames[0].field != NULL && walk.frames[0].in_array)
        *ret_index = walk.frames[0].item_index;
    return err;
}

enum ron_err ron_json_dto_read(const struct ron_json_dto *dto, struct ron_slice text,
                               struct ron_arena *arena, void *ret_object,
                               struct ron_errinfo *reterr)
{
    uint32_t index;

    return ron_json_dto_read_indexed(dto, text, arena, ret_object, &index, reterr);
}
