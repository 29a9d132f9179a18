/*
 * toml_tree.c - the nodes of a TOML document, and who may add to which table. See toml_impl.h.
 *
 * The children of a table also form a PATRICIA tree over the bits of their keys. A node of it is a
 * child: it tests one bit and has two links; a link to a node that does not test a later bit is a
 * leaf, the only child whose key can match. The first child tests nothing (bit -1). A path tests
 * ascending bits of the key sought, so it is no longer than that key, whatever the table holds.
 *
 * A key of n bytes is a sequence of 9 n bits, followed by zeros: for each byte a 1, then its bits
 * from the highest. So a key and its extension differ, also by zero bytes.
 */
#include "base/toml_impl.h"

#include "base/assert.h"

enum { BITS_PER_BYTE = 9 };

_Static_assert(RON_TOML_SIZE_MAX <= INT32_MAX / BITS_PER_BYTE, "bit positions fit");
_Static_assert(RON_TOML_DEPTH_MAX < UINT8_MAX, "a depth fits");

static unsigned key_bit(struct ron_slice key, int32_t bit)
{
    size_t byte = (size_t)bit / BITS_PER_BYTE;
    unsigned place = (unsigned)bit % BITS_PER_BYTE;

    if (byte >= key.size)
        return 0;
    return place == 0 ? 1 : (key.data[byte] >> (8 - place)) & 1u;
}

/* The first bit in which two keys differ, or -1 if they are equal. */
static int32_t first_difference(struct ron_slice a, struct ron_slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    size_t i = 0;
    int place;

    while (i < common && a.data[i] == b.data[i])
        i++;
    if (i == common)
        return a.size == b.size ? -1 : (int32_t)(i * BITS_PER_BYTE);
    place = __builtin_clz((unsigned)(a.data[i] ^ b.data[i])) - 24 + 1;
    return (int32_t)(i * BITS_PER_BYTE) + place;
}

/* The one child that may have this key. The table has children. */
static struct ron_toml_node *index_candidate(const struct ron_toml_node *table,
                                             struct ron_slice key)
{
    struct ron_toml_node *node = table->container.index;
    int32_t bit = -1;

    while (node->bit > bit) {
        bit = node->bit;
        node = node->links[key_bit(key, bit)];
    }
    return node;
}

static struct ron_toml_node *find_child(const struct ron_toml_node *table, struct ron_slice key)
{
    struct ron_toml_node *node;

    RON_ASSERT(table->kind == RON_TOML_TABLE);
    if (table->container.index == NULL)
        return NULL;
    node = index_candidate(table, key);
    return ron_slice_equal(node->key, key) ? node : NULL;
}

static void index_insert(struct ron_toml_node *table, struct ron_toml_node *node)
{
    struct ron_toml_node **link = &table->container.index;
    int32_t bit = -1;
    int32_t difference;
    unsigned side;

    if (*link == NULL) {
        node->bit = -1;
        *link = node;
        return;
    }
    difference = first_difference(index_candidate(table, node->key)->key, node->key);
    RON_ASSERT(difference >= 0); /* the caller looked before */
    while ((*link)->bit > bit && (*link)->bit < difference) {
        bit = (*link)->bit;
        link = &(*link)->links[key_bit(node->key, bit)];
    }
    side = key_bit(node->key, difference);
    node->bit = difference;
    node->links[side] = node;
    node->links[1 - side] = *link;
    *link = node;
}

const struct ron_toml_node *ron_toml_get(const struct ron_toml_node *node, struct ron_slice key)
{
    return node->kind == RON_TOML_TABLE ? find_child(node, key) : NULL;
}

static enum ron_err new_node(struct toml_lexer *lexer, struct toml_position position,
                             unsigned depth, struct ron_toml_node **ret_node,
                             struct ron_errinfo *reterr)
{
    struct ron_toml_node *node = ron_arena_alloc(lexer->arena, sizeof(*node));

    if (node == NULL)
        return TOML_FAIL(lexer, position, RON_ERR_TOO_LARGE, reterr,
                         "the document needs more than its %zu bytes of memory",
                         lexer->arena->size);
    RON_ASSERT(depth <= RON_TOML_DEPTH_MAX + 1);
    *node = (struct ron_toml_node){
        .line = position.line,
        .column = position.column,
        .value_column = position.column,
        .depth = (uint8_t)depth,
    };
    *ret_node = node;
    return RON_ERR_OK;
}

enum ron_err toml_new_root(struct toml_lexer *lexer, struct ron_toml_node **ret_root,
                           struct ron_errinfo *reterr)
{
    enum ron_err err = new_node(lexer, toml_here(lexer), 0, ret_root, reterr);

    if (err != RON_ERR_OK)
        return err;
    (*ret_root)->kind = RON_TOML_TABLE;
    (*ret_root)->origin = TOML_HEADER;
    return RON_ERR_OK;
}

static void append_child(struct ron_toml_node *parent, struct ron_toml_node *node)
{
    RON_ASSERT(parent->kind == RON_TOML_ARRAY || parent->kind == RON_TOML_TABLE);
    RON_ASSERT(node->next == NULL);
    RON_ASSERT(node->depth == parent->depth + 1);
    if (parent->first_child == NULL)
        parent->first_child = node;
    else
        parent->container.last_child->next = node;
    parent->container.last_child = node;
    parent->children_count++;
}

enum ron_err toml_add_element(struct toml_lexer *lexer, struct ron_toml_node *array,
                              struct toml_position position, struct ron_toml_node **ret_node,
                              struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(array->kind == RON_TOML_ARRAY);
    err = new_node(lexer, position, array->depth + 1u, ret_node, reterr);
    if (err == RON_ERR_OK)
        append_child(array, *ret_node);
    return err;
}

/* A child by a name that the table does not have yet. */
static enum ron_err add_named(struct toml_lexer *lexer, struct ron_toml_node *table,
                              const struct toml_part *part, struct ron_toml_node **ret_node,
                              struct ron_errinfo *reterr)
{
    enum ron_err err = new_node(lexer, part->position, table->depth + 1u, ret_node, reterr);

    if (err != RON_ERR_OK)
        return err;
    (*ret_node)->key = part->key;
    index_insert(table, *ret_node);
    append_child(table, *ret_node);
    RON_ASSERT_SLOW(find_child(table, part->key) == *ret_node);
    return RON_ERR_OK;
}

static enum ron_err refuse_duplicate(struct toml_lexer *lexer, const struct toml_part *part,
                                     const struct ron_toml_node *existing,
                                     struct ron_errinfo *reterr)
{
    char shown[TOML_SHOWN_SIZE];

    return TOML_FAIL(lexer, part->position, RON_ERR_MALFORMED, reterr,
                     "%s is already defined as %s in line %u", toml_shown_key(part->key, shown),
                     ron_toml_kind_name(existing->kind), existing->line);
}

enum ron_err toml_add_value(struct toml_lexer *lexer, struct ron_toml_node *table,
                            const struct toml_part *part, struct ron_toml_node **ret_node,
                            struct ron_errinfo *reterr)
{
    const struct ron_toml_node *existing = find_child(table, part->key);

    if (existing != NULL)
        return refuse_duplicate(lexer, part, existing, reterr);
    return add_named(lexer, table, part, ret_node, reterr);
}

enum ron_err toml_open_container(struct toml_lexer *lexer, struct ron_toml_node *node,
                                 enum ron_toml_kind kind, struct ron_errinfo *reterr)
{
    RON_ASSERT(kind == RON_TOML_ARRAY || kind == RON_TOML_TABLE);
    RON_ASSERT(node->first_child == NULL);
    if (node->depth > RON_TOML_DEPTH_MAX)
        return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_TOO_LARGE, reterr,
                         "tables and arrays are nested deeper than %d", RON_TOML_DEPTH_MAX);
    node->kind = (uint8_t)kind;
    node->container.last_child = NULL;
    node->container.index = NULL;
    return RON_ERR_OK;
}

static enum ron_err add_container(struct toml_lexer *lexer, struct ron_toml_node *table,
                                  const struct toml_part *part, enum ron_toml_kind kind,
                                  enum toml_origin origin, struct ron_toml_node **ret_node,
                                  struct ron_errinfo *reterr)
{
    enum ron_err err = add_named(lexer, table, part, ret_node, reterr);

    if (err == RON_ERR_OK)
        err = toml_open_container(lexer, *ret_node, kind, reterr);
    if (err == RON_ERR_OK)
        (*ret_node)->origin = (uint8_t)origin;
    return err;
}

enum ron_err toml_enter_dotted(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node *owner,
                               struct ron_toml_node **ret_table, struct ron_errinfo *reterr)
{
    struct ron_toml_node *node = find_child(table, part->key);
    enum ron_err err;

    if (node == NULL) {
        err = add_container(lexer, table, part, RON_TOML_TABLE, TOML_DOTTED, &node, reterr);
        if (err != RON_ERR_OK)
            return err;
    } else if (node->kind != RON_TOML_TABLE ||
               !(node->origin == TOML_IMPLICIT ||
                 (node->origin == TOML_DOTTED && node->owner == owner))) {
        return refuse_duplicate(lexer, part, node, reterr);
    }
    /* An implicit table that gets its first dotted key is defined by it. */
    node->origin = TOML_DOTTED;
    node->owner = owner;
    *ret_table = node;
    return RON_ERR_OK;
}

enum ron_err toml_enter_header(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr)
{
    struct ron_toml_node *node = find_child(table, part->key);

    if (node == NULL)
        return add_container(lexer, table, part, RON_TOML_TABLE, TOML_IMPLICIT, ret_table, reterr);
    if (node->kind == RON_TOML_ARRAY && node->origin == TOML_HEADERS) {
        RON_ASSERT(node->container.last_child != NULL);
        node = node->container.last_child;
    }
    if (node->kind != RON_TOML_TABLE || node->origin == TOML_VALUE)
        return refuse_duplicate(lexer, part, node, reterr);
    *ret_table = node;
    return RON_ERR_OK;
}

enum ron_err toml_define_table(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr)
{
    struct ron_toml_node *node = find_child(table, part->key);

    if (node == NULL)
        return add_container(lexer, table, part, RON_TOML_TABLE, TOML_HEADER, ret_table, reterr);
    if (node->kind != RON_TOML_TABLE || node->origin != TOML_IMPLICIT)
        return refuse_duplicate(lexer, part, node, reterr);
    node->origin = TOML_HEADER;
    node->line = part->position.line;
    node->column = part->position.column;
    node->value_column = part->position.column;
    *ret_table = node;
    return RON_ERR_OK;
}

enum ron_err toml_append_table(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr)
{
    struct ron_toml_node *array = find_child(table, part->key);
    struct ron_toml_node *element = NULL;
    enum ron_err err = RON_ERR_OK;

    if (array == NULL)
        err = add_container(lexer, table, part, RON_TOML_ARRAY, TOML_HEADERS, &array, reterr);
    else if (array->kind != RON_TOML_ARRAY || array->origin != TOML_HEADERS)
        err = refuse_duplicate(lexer, part, array, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = toml_add_element(lexer, array, part->position, &element, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = toml_open_container(lexer, element, RON_TOML_TABLE, reterr);
    if (err != RON_ERR_OK)
        return err;
    element->origin = TOML_HEADER;
    *ret_table = element;
    return RON_ERR_OK;
}
