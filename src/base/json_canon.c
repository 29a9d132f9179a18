/*
 * json_canon.c - canonical JSON in one pass. See json_canon.h.
 *
 * The text is read once and written as it comes. Each open object keeps a list of its members: name
 * and place in the output. When it ends and its names were not ascending, the list is sorted and
 * the members, each complete and canonical by then, change places in the output. Nothing is parsed
 * twice; a byte is moved once for each unsorted object around it, so at most RON_JSON_DEPTH_MAX
 * times, by memcpy. A member costs one list node, which is used again when its object has ended.
 * Sorting finds duplicate names too, so the reader is told not to.
 */
#include "base/json_canon.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/printable.h"

enum { RUNS_LOG2_MAX = 24 }; /* an object has fewer than 2^24 members */
_Static_assert(RON_JSON_SIZE_MAX < 1 << RUNS_LOG2_MAX, "a bin for every power of two");

struct member {
    struct member *next;
    const uint8_t *name; /* decoded; in the text or the arena */
    uint32_t name_size;
    uint32_t key;   /* the name's first bytes, such that unequal keys decide the order */
    uint32_t start; /* in the output: the quote of its name */
    uint32_t size;  /* in the output: name, colon and value */
};
_Static_assert(sizeof(struct member) == 32, "the arena's documented size relies on this");

struct object {
    struct member *first; /* NULL: no members yet */
    struct member *last;
    bool ascending; /* the names so far */
};

struct canon {
    struct ron_json_reader reader;
    struct ron_json_writer writer;
    struct ron_arena *arena;
    struct ron_buf *buf;
    size_t output_start;    /* in buf */
    struct member *unused;  /* of ended objects */
    uint32_t objects_count; /* open */
    struct object objects[RON_JSON_DEPTH_MAX];
};

static struct ron_slice name_of(const struct member *member)
{
    return (struct ron_slice){member->name, member->name_size};
}

/* Four bytes, first highest. Lead bytes change places the way ron_json_name_compare explains; a
 * name that ends early is filled up with zeros, and what zeros cannot decide the names do. */
static uint32_t key_of(struct ron_slice name)
{
    uint32_t key = 0;

    for (size_t i = 0; i < 4; i++) {
        uint32_t byte = i < name.size ? name.data[i] : 0;

        if (byte >= 0xf0)
            byte -= 2;
        else if (byte >= 0xee)
            byte += 5;
        key = key << 8 | byte;
    }
    return key;
}

static bool comes_before(const struct member *a, const struct member *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return ron_json_name_compare(name_of(a), name_of(b)) < 0;
}

static struct member *merge(struct member *a, struct member *b)
{
    struct member *merged = NULL;
    struct member **tail = &merged;

    RON_ASSERT(a != NULL);
    RON_ASSERT(b != NULL);
    while (a != NULL && b != NULL) {
        struct member **lesser = comes_before(b, a) ? &b : &a;

        *tail = *lesser;
        tail = &(*lesser)->next;
        *lesser = *tail;
    }
    *tail = a != NULL ? a : b;
    return merged;
}

/* Cut the ascending run off the front of *list. */
static struct member *take_run(struct member **list)
{
    struct member *run = *list;
    struct member *last = run;

    while (last->next != NULL && comes_before(last, last->next))
        last = last->next;
    *list = last->next;
    last->next = NULL;
    return run;
}

/* Merge sort of a list: bin i holds 2^i runs, or none. */
static struct member *sort_members(struct member *list)
{
    struct member *bins[RUNS_LOG2_MAX] = {NULL};
    struct member *sorted = NULL;

    while (list != NULL) {
        struct member *carried = take_run(&list);
        size_t i = 0;

        for (; bins[i] != NULL; i++) {
            carried = merge(bins[i], carried);
            bins[i] = NULL;
            RON_ASSERT(i + 1 < RUNS_LOG2_MAX);
        }
        bins[i] = carried;
    }
    for (size_t i = 0; i < RUNS_LOG2_MAX; i++) {
        if (bins[i] != NULL)
            sorted = sorted == NULL ? bins[i] : merge(bins[i], sorted);
    }
    return sorted;
}

static size_t output_size(const struct canon *canon)
{
    return canon->buf->size - canon->output_start;
}

static RON_COLD enum ron_err fail_duplicate(const struct member *member, uint32_t object_end,
                                            struct ron_errinfo *reterr)
{
    char name[64];

    return ron_fail(reterr, RON_ERR_MALFORMED,
                    "at byte %u: the object that ends here has a duplicate member \"%s\"",
                    (unsigned)object_end, ron_printable(name_of(member), name, sizeof(name)));
}

/* Put the members of the innermost object in order. They are the end of the output. */
static enum ron_err arrange(struct canon *canon, struct object *object, uint32_t object_end,
                            struct ron_errinfo *reterr)
{
    uint8_t *output = canon->buf->data + canon->output_start;
    size_t mark = ron_arena_mark(canon->arena);
    size_t start = object->first->start;
    size_t size = output_size(canon) - start;
    uint8_t *scratch = ron_arena_alloc_bytes(canon->arena, size);
    size_t at = 0;

    if (scratch == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "no room in the arena to sort %zu bytes", size);
    object->first = sort_members(object->first);
    for (struct member *member = object->first; member != NULL; member = member->next) {
        RON_ASSERT(member->size < size - at + (at == 0));
        if (at > 0)
            scratch[at++] = ',';
        memcpy(scratch + at, output + member->start, member->size);
        at += member->size;
        object->last = member;
        if (member->next != NULL && !comes_before(member, member->next)) {
            RON_ASSERT(ron_slice_equal(name_of(member), name_of(member->next)));
            return fail_duplicate(member, object_end, reterr);
        }
    }
    RON_ASSERT(at == size);
    memcpy(output + start, scratch, size);
    ron_arena_rewind(canon->arena, mark);
    return RON_ERR_OK;
}

static void close_member(const struct canon *canon, struct object *object)
{
    if (object->last != NULL)
        object->last->size = (uint32_t)(output_size(canon) - object->last->start);
}

static enum ron_err put_name(struct canon *canon, const struct ron_json_token *token,
                             struct ron_errinfo *reterr)
{
    struct object *object = &canon->objects[canon->objects_count - 1];
    struct member *member = canon->unused;

    RON_ASSERT(canon->objects_count > 0);
    if (member != NULL)
        canon->unused = member->next;
    else
        member = ron_arena_alloc(canon->arena, sizeof(*member));
    if (member == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "at byte %u: no room in the arena for a member",
                        (unsigned)token->offset);
    close_member(canon, object);
    *member = (struct member){
        .name = token->text.data,
        .name_size = (uint32_t)token->text.size,
        .key = key_of(token->text),
        .start = (uint32_t)output_size(canon) + (object->last != NULL ? 1 : 0),
    };
    if (object->last == NULL) {
        object->first = member;
    } else {
        object->ascending = object->ascending && comes_before(object->last, member);
        object->last->next = member;
    }
    object->last = member;
    ron_json_put_name_slice(&canon->writer, token->text);
    return RON_ERR_OK;
}

static enum ron_err put_object_end(struct canon *canon, const struct ron_json_token *token,
                                   struct ron_errinfo *reterr)
{
    struct object *object = &canon->objects[canon->objects_count - 1];

    RON_ASSERT(canon->objects_count > 0);
    close_member(canon, object);
    if (!object->ascending) {
        enum ron_err err = arrange(canon, object, token->offset, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    if (object->last != NULL) {
        object->last->next = canon->unused;
        canon->unused = object->first;
    }
    canon->objects_count--;
    ron_json_put_object_end(&canon->writer);
    return RON_ERR_OK;
}

static enum ron_err put_integer(struct canon *canon, const struct ron_json_token *token,
                                struct ron_errinfo *reterr)
{
    if (token->number.v > RON_JSON_CANONICAL_INTEGER_MAX)
        return ron_fail(
            reterr, RON_ERR_MALFORMED,
            "at byte %u: an integer beyond 2^53 - 1 has no canonical form, use a string",
            (unsigned)token->offset);
    ron_json_put_integer(&canon->writer, token->negative, token->number);
    return RON_ERR_OK;
}

static enum ron_err put_token(struct canon *canon, const struct ron_json_token *token,
                              struct ron_errinfo *reterr)
{
    switch (token->kind) {
    case RON_JSON_OBJECT_BEGIN:
        RON_ASSERT(canon->objects_count < RON_JSON_DEPTH_MAX);
        canon->objects[canon->objects_count++] = (struct object){.ascending = true};
        ron_json_put_object_begin(&canon->writer);
        return RON_ERR_OK;
    case RON_JSON_OBJECT_END:
        return put_object_end(canon, token, reterr);
    case RON_JSON_ARRAY_BEGIN:
        ron_json_put_array_begin(&canon->writer);
        return RON_ERR_OK;
    case RON_JSON_ARRAY_END:
        ron_json_put_array_end(&canon->writer);
        return RON_ERR_OK;
    case RON_JSON_NAME:
        return put_name(canon, token, reterr);
    case RON_JSON_STRING:
        ron_json_put_string(&canon->writer, token->text);
        return RON_ERR_OK;
    case RON_JSON_INTEGER:
        return put_integer(canon, token, reterr);
    case RON_JSON_TRUE:
    case RON_JSON_FALSE:
        ron_json_put_bool(&canon->writer, token->kind == RON_JSON_TRUE);
        return RON_ERR_OK;
    case RON_JSON_NULL:
        ron_json_put_null(&canon->writer);
        return RON_ERR_OK;
    case RON_JSON_END:
        break;
    }
    RON_UNREACHABLE();
}

enum ron_err ron_json_canon(struct ron_slice text, struct ron_arena *arena, struct ron_buf *buf,
                            struct ron_errinfo *reterr)
{
    struct canon canon = {.arena = arena, .buf = buf, .output_start = buf->size};
    size_t mark = ron_arena_mark(arena);
    struct ron_json_token token;
    enum ron_err err;

    ron_json_reader_init(&canon.reader, text, arena);
    canon.reader.names_by_caller = true;
    /* Fixed, not canonical: until an object is arranged its names come as they are. */
    ron_json_writer_init(&canon.writer, buf, RON_JSON_FIXED);
    for (;;) {
        err = ron_json_next(&canon.reader, &token, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (token.kind == RON_JSON_END)
            break;
        err = put_token(&canon, &token, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (buf->failure != RON_ERR_OK) /* places in the output have lost their meaning */
            return ron_buf_check(buf, reterr);
    }
    err = ron_json_writer_end(&canon.writer, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(canon.objects_count == 0);
    RON_ASSERT(output_size(&canon) <= text.size);
    ron_arena_rewind(arena, mark);
    return RON_ERR_OK;
}
