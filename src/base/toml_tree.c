/*
 * toml_tree.c - the nodes of a TOML document, and who may add to which table. See toml_impl.h.
 *
 * The children of a table also form a PATRICIA tree over the bits of their keys. Each child has one
 * entry in it: the entry tests one bit and has two links; a link to an entry that does not test a
 * later bit is a leaf, the only child whose key can match. The first child's entry tests nothing
 * (bit -1). A path tests ascending bits of the key sought, so it is no longer than that key,
 * whatever the table holds.
 *
 * Entries are 16 bytes, side by side in chunks and linked by distances: a walk through a large
 * table is a row of cache misses, and this keeps the whole index of a full-size text in the second
 * level cache.
 */
#include "base/toml_impl.h"

#include "base/assert.h"

struct toml_index {
    int32_t links[2]; /* distances to entries, in entries */
    int32_t bit;      /* place of the bit that is tested, or -1 */
    int32_t node;     /* distance to the child, in entries */
};

enum { INDEX_CHUNK_COUNT = 32 };

_Static_assert(sizeof(struct toml_index) == 16,
               "the alignment of an arena, so distances are whole");
_Static_assert(RON_ALLOCATION_SIZE_MAX <= INT32_MAX, "distances fit");
_Static_assert(RON_TOML_SIZE_MAX <= INT32_MAX / 16, "places of bits fit");
_Static_assert(RON_TOML_DEPTH_MAX < UINT8_MAX, "a depth fits");

static struct toml_index *index_follow(struct toml_index *entry, unsigned side)
{
    return entry + entry->links[side];
}

static struct ron_toml_node *index_node(struct toml_index *entry)
{
    return (struct ron_toml_node *)(void *)(entry + entry->node);
}

static int32_t index_distance(const struct toml_index *from, const void *to)
{
    return (int32_t)((const struct toml_index *)to - from);
}

/* Places are 16 per byte of the key, ascending: at 0 whether there is such a byte (so that a key
 * and its extension by zero bytes differ), at 1..8 its bits from the highest. */
static unsigned key_bit(struct ron_slice key, int32_t place)
{
    size_t byte = (size_t)place >> 4;

    if (byte >= key.size)
        return 0;
    return ((0x100u | key.data[byte]) >> (8 - (place & 15))) & 1u;
}

/* The first place at which two keys differ, or -1 if they are equal. */
static int32_t first_difference(struct ron_slice a, struct ron_slice b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    size_t i = 0;

    while (i < common && a.data[i] == b.data[i])
        i++;
    if (i == common)
        return a.size == b.size ? -1 : (int32_t)(i * 16);
    return (int32_t)(i * 16) + __builtin_clz((unsigned)(a.data[i] ^ b.data[i])) - 23;
}

/* The entry of the one child that may have this key; NULL in an empty table. */
static struct toml_index *index_search(const struct ron_toml_node *table, struct ron_slice key)
{
    struct toml_index *entry = table->container.index;
    int32_t bit = -1;

    RON_ASSERT(table->kind == RON_TOML_TABLE);
    while (entry != NULL && entry->bit > bit) {
        bit = entry->bit;
        entry = index_follow(entry, key_bit(key, bit));
    }
    return entry;
}

/* The child by this key, or NULL and where index_insert is to begin. */
static struct ron_toml_node *find_child(const struct ron_toml_node *table, struct ron_slice key,
                                        struct toml_index **ret_nearest)
{
    struct toml_index *nearest = index_search(table, key);

    *ret_nearest = nearest;
    if (nearest == NULL || !ron_slice_equal(index_node(nearest)->key, key))
        return NULL;
    return index_node(nearest);
}

/* Give entry, of a child with a new key, its place in the tree. nearest is what find_child found
 * instead of it: no other child shares more bits with the key from the front. */
static void index_insert(struct ron_toml_node *table, struct toml_index *entry,
                         struct toml_index *nearest)
{
    struct ron_slice key = index_node(entry)->key;
    struct toml_index *below = table->container.index;
    struct toml_index *above = NULL;
    unsigned side_above = 0;
    unsigned side;

    if (nearest == NULL) {
        RON_ASSERT(below == NULL);
        entry->bit = -1;
        table->container.index = entry;
        return;
    }
    entry->bit = first_difference(index_node(nearest)->key, key);
    RON_ASSERT(entry->bit >= 0);
    while (below->bit < entry->bit && below->bit > (above == NULL ? -1 : above->bit)) {
        above = below;
        side_above = key_bit(key, below->bit);
        below = index_follow(below, side_above);
    }
    side = key_bit(key, entry->bit);
    entry->links[side] = 0; /* itself: the leaf */
    entry->links[1 - side] = index_distance(entry, below);
    if (above == NULL)
        table->container.index = entry;
    else
        above->links[side_above] = index_distance(above, entry);
}

/* An entry for node, which has its key. NULL when the arena is full. */
static struct toml_index *index_new(struct toml_lexer *lexer, const struct ron_toml_node *node)
{
    struct toml_index *entry;

    if (lexer->index_entries_count == 0) {
        lexer->index_entries = ron_arena_alloc(lexer->arena,
                                               INDEX_CHUNK_COUNT * sizeof(struct toml_index));
        if (lexer->index_entries == NULL)
            return NULL;
        lexer->index_entries_count = INDEX_CHUNK_COUNT;
    }
    lexer->index_entries_count--;
    entry = lexer->index_entries++;
    *entry = (struct toml_index){.node = index_distance(entry, node)};
    return entry;
}

const struct ron_toml_node *ron_toml_get(const struct ron_toml_node *node, struct ron_slice key)
{
    struct toml_index *nearest;

    return node->kind == RON_TOML_TABLE ? find_child(node, key, &nearest) : NULL;
}

static enum ron_err refuse_memory(struct toml_lexer *lexer, struct toml_position position,
                                  struct ron_errinfo *reterr)
{
    return TOML_FAIL(lexer, position, RON_ERR_TOO_LARGE, reterr,
                     "the document needs more than its %zu bytes of memory", lexer->arena->size);
}

static enum ron_err new_node(struct toml_lexer *lexer, struct toml_position position,
                             unsigned depth, struct ron_toml_node **ret_node,
                             struct ron_errinfo *reterr)
{
    struct ron_toml_node *node;

    if (lexer->nodes_count > RON_TOML_NODES_MAX) /* the root is not counted */
        return TOML_FAIL(lexer, position, RON_ERR_TOO_LARGE, reterr, "more than %d values",
                         RON_TOML_NODES_MAX);
    node = ron_arena_alloc(lexer->arena, sizeof(*node));
    if (node == NULL)
        return refuse_memory(lexer, position, reterr);
    RON_ASSERT(depth <= RON_TOML_DEPTH_MAX + 1);
    *node = (struct ron_toml_node){
        .line = position.line,
        .column = position.column,
        .value_column = position.column,
        .depth = (uint8_t)depth,
    };
    lexer->nodes_count++;
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

/* A child by a name that the table does not have yet; nearest comes from find_child. */
static enum ron_err add_named(struct toml_lexer *lexer, struct ron_toml_node *table,
                              const struct toml_part *part, struct toml_index *nearest,
                              struct ron_toml_node **ret_node, struct ron_errinfo *reterr)
{
    enum ron_err err = new_node(lexer, part->position, table->depth + 1u, ret_node, reterr);
    struct toml_index *entry;

    if (err != RON_ERR_OK)
        return err;
    (*ret_node)->key = part->key;
    entry = index_new(lexer, *ret_node);
    if (entry == NULL)
        return refuse_memory(lexer, part->position, reterr);
    index_insert(table, entry, nearest);
    append_child(table, *ret_node);
    RON_ASSERT_SLOW(index_node(index_search(table, part->key)) == *ret_node);
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
    struct toml_index *nearest;
    const struct ron_toml_node *existing = find_child(table, part->key, &nearest);

    if (existing != NULL)
        return refuse_duplicate(lexer, part, existing, reterr);
    return add_named(lexer, table, part, nearest, ret_node, reterr);
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
                                  const struct toml_part *part, struct toml_index *nearest,
                                  enum toml_origin origin, struct ron_toml_node **ret_node,
                                  struct ron_errinfo *reterr)
{
    enum ron_toml_kind kind = origin == TOML_HEADERS ? RON_TOML_ARRAY : RON_TOML_TABLE;
    enum ron_err err = add_named(lexer, table, part, nearest, ret_node, reterr);

    if (err == RON_ERR_OK)
        err = toml_open_container(lexer, *ret_node, kind, reterr);
    if (err == RON_ERR_OK)
        (*ret_node)->origin = (uint8_t)origin;
    return err;
}

/* A dotted key may add to a table that dotted keys made in the same section, not to one of another.
 * No section needs to be remembered for that: between the table of another section and what its
 * dotted keys made there is that table itself, which has a header (or is a closed value), and no
 * dotted key passes through it. */
enum ron_err toml_enter_dotted(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr)
{
    struct toml_index *nearest;
    struct ron_toml_node *node = find_child(table, part->key, &nearest);

    if (node == NULL)
        return add_container(lexer, table, part, nearest, TOML_DOTTED, ret_table, reterr);
    if (node->kind != RON_TOML_TABLE ||
        (node->origin != TOML_DOTTED && node->origin != TOML_IMPLICIT))
        return refuse_duplicate(lexer, part, node, reterr);
    node->origin = TOML_DOTTED; /* an implicit table is defined by its first dotted key */
    *ret_table = node;
    return RON_ERR_OK;
}

enum ron_err toml_enter_header(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr)
{
    struct toml_index *nearest;
    struct ron_toml_node *node = find_child(table, part->key, &nearest);

    if (node == NULL)
        return add_container(lexer, table, part, nearest, TOML_IMPLICIT, ret_table, reterr);
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
    struct toml_index *nearest;
    struct ron_toml_node *node = find_child(table, part->key, &nearest);

    if (node == NULL)
        return add_container(lexer, table, part, nearest, TOML_HEADER, ret_table, reterr);
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
    struct toml_index *nearest;
    struct ron_toml_node *array = find_child(table, part->key, &nearest);
    struct ron_toml_node *element = NULL;
    enum ron_err err = RON_ERR_OK;

    if (array == NULL)
        err = add_container(lexer, table, part, nearest, TOML_HEADERS, &array, reterr);
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
