/*
 * fuzz_toml.c - any bytes into the TOML reader.
 *
 * Checks beyond "no crash": each child is found by its key and is the only one, counts and places
 * make sense, strings are UTF-8, a refusal names a place in the text and leaves the arena alone.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/toml.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_SIZE = 1 << 18 };

static void check_node(const struct ron_toml_node *parent, const struct ron_toml_node *node)
{
    RON_ASSERT(ron_utf8_valid(node->key, NULL));
    RON_ASSERT(node->line >= 1);
    RON_ASSERT(node->column >= 1);
    RON_ASSERT(node->value_column >= node->column);
    RON_ASSERT(node->depth == parent->depth + 1);
    if (parent->kind == RON_TOML_TABLE)
        RON_ASSERT(ron_toml_get(parent, node->key) == node);
    if (node->kind == RON_TOML_STRING)
        RON_ASSERT(ron_utf8_valid(node->string, NULL));
    if (node->kind < RON_TOML_ARRAY)
        RON_ASSERT(node->first_child == NULL);
}

static void check_tree(const struct ron_toml_node *root)
{
    const struct ron_toml_node *open[RON_TOML_DEPTH_MAX + 2];
    const struct ron_toml_node *next[RON_TOML_DEPTH_MAX + 2];
    uint32_t seen_counts[RON_TOML_DEPTH_MAX + 2] = {0};
    unsigned depth = 0;

    open[0] = root;
    next[0] = root->first_child;
    for (;;) {
        const struct ron_toml_node *child = next[depth];

        if (child == NULL) {
            RON_ASSERT(seen_counts[depth] == open[depth]->children_count);
            if (depth-- == 0)
                return;
            continue;
        }
        check_node(open[depth], child);
        seen_counts[depth]++;
        next[depth] = child->next;
        if (child->kind >= RON_TOML_ARRAY) {
            depth++;
            RON_ASSERT(depth <= RON_TOML_DEPTH_MAX);
            open[depth] = child;
            next[depth] = child->first_child;
            seen_counts[depth] = 0;
        }
    }
}

static void check_place(struct ron_slice text, const char *message)
{
    unsigned line = 0;
    unsigned column = 0;
    size_t lines_count = 1;

    RON_ASSERT(sscanf(message, "t:%u:%u: ", &line, &column) == 2);
    for (size_t i = 0; i < text.size; i++)
        lines_count += text.data[i] == '\n';
    RON_ASSERT(line >= 1);
    RON_ASSERT(line <= lines_count);
    RON_ASSERT(column >= 1);
    RON_ASSERT(column <= text.size + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ron_toml_node *root = NULL;
    struct ron_errinfo info = {0};
    static struct ron_arena arena; /* made once: runs per second count */
    enum ron_err err;

    if (arena.block == NULL && ron_arena_init(&arena, ARENA_SIZE, NULL) != RON_ERR_OK)
        return 0;
    err = ron_toml_parse(ron_slice_of(data, size), "t", &arena, &root, &info);
    if (err == RON_ERR_OK) {
        check_tree(root);
    } else {
        RON_ASSERT(err == RON_ERR_MALFORMED || err == RON_ERR_TOO_LARGE);
        RON_ASSERT(arena.used_size == 0);
        check_place(ron_slice_of(data, size), info.message);
    }
    ron_arena_reset(&arena);
    return 0;
}
