/*
 * toml.h - reader of configuration files: TOML v1.0.0 without floats and dates.
 *
 * The result is a tree of nodes in file order, each with its place in the file, because whoever
 * checks a configuration must be able to say where it is wrong. All of TOML 1.0 is read - tables,
 * dotted keys, inline tables, arrays, arrays of tables, the four kinds of strings, integers in four
 * bases, booleans, comments - except that floats, dates and times are refused (ron has no use for
 * them: durations and sizes are strings with a unit) and integers must fit 64 bits. A key or table
 * defined twice is refused as the specification says.
 *
 * Bounds: the text by RON_TOML_SIZE_MAX, nesting of tables and arrays by RON_TOML_DEPTH_MAX, keys
 * and array elements together by RON_TOML_NODES_MAX, memory by the caller's arena. Time is linear
 * in the text for any input: keys are found through a PATRICIA tree per table, whose paths are
 * never longer than the key (no hash to collide).
 *
 * Every message begins with "file:line:column: ". Lines and columns count from 1, columns in
 * characters. RON_ERR_MALFORMED, or RON_ERR_TOO_LARGE for a bound.
 */
#ifndef RON_BASE_TOML_H
#define RON_BASE_TOML_H

#include "base/arena.h"

enum ron_toml_kind {
    RON_TOML_STRING,
    RON_TOML_INTEGER,
    RON_TOML_BOOLEAN,
    RON_TOML_ARRAY, /* children without keys */
    RON_TOML_TABLE, /* children with keys, each once */
    RON_TOML__MAX
};

struct toml_index; /* internal: toml_tree.c */

/* Read-only for callers. Lives as long as the arena and the text. */
struct ron_toml_node {
    struct ron_slice key; /* decoded; empty for the root and in arrays */
    union {
        struct ron_slice string; /* decoded, valid UTF-8; may hold U+0000 */
        int64_t integer;
        bool boolean;
        struct { /* of arrays and tables; internal */
            struct ron_toml_node *last_child;
            struct toml_index *index; /* root of the tree of keys */
        } container;
    };
    struct ron_toml_node *first_child; /* of arrays and tables, in file order; else NULL */
    struct ron_toml_node *next;        /* sibling, or NULL */
    uint32_t line;                     /* of the key; in an array, of the value */
    uint32_t column;
    uint32_t value_column; /* of the value, which begins on the same line; else column */
    uint32_t children_count;
    uint8_t kind;   /* enum ron_toml_kind */
    uint8_t origin; /* internal: enum toml_origin */
    uint8_t depth;  /* 0 for the root */
};

/* Read all of text. file_name is what messages call it. Nodes and decoded strings are taken from
 * the arena; strings without escapes borrow text. On failure the arena is as before the call;
 * RON_ERR_TOO_LARGE also when the arena is too small. */
enum ron_err ron_toml_parse(struct ron_slice text, const char *file_name, struct ron_arena *arena,
                            const struct ron_toml_node **ret_root,
                            struct ron_errinfo *reterr) RON_MUST_USE;

/* The child of a table by its exact key; NULL if there is none or node is not a table. */
const struct ron_toml_node *ron_toml_get(const struct ron_toml_node *node, struct ron_slice key);
/* The same along a path of keys joined by dots, "limits.body.size"; keys that contain a dot are
 * reached by ron_toml_get only. NULL as soon as a part is missing or not a table. */
const struct ron_toml_node *ron_toml_find(const struct ron_toml_node *node, const char *path);

/* What a message calls the kind: "string", "table". */
const char *ron_toml_kind_name(enum ron_toml_kind kind);

/* for (RON_TOML_EACH(child, table)) ... in file order */
#define RON_TOML_EACH(child, node)                           \
    const struct ron_toml_node *child = (node)->first_child; \
    child != NULL;                                           \
    child = child->next

#endif
