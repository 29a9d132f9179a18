/*
 * toml_dump.c - answers TOML documents with a canonical dump, for diff_toml.py.
 *
 * stdin: documents, each a 32-bit little-endian size and that many bytes. stdout: one answer per
 * document in the same framing: "ok " and the dump, or "CODE message". A dump is i:N, b:0 or b:1,
 * s:HEX, [value,...] or {HEX=value,...} in file order.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/toml.h"

enum {
    ARENA_SIZE = 8 << 20, /* more than RON_TOML_NODES_MAX nodes need */
    OUTPUT_SIZE_MAX = 64 << 20,
};

static void put_hex(struct ron_buf *out, struct ron_slice bytes)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.size; i++) {
        ron_buf_put_byte(out, (uint8_t)digits[bytes.data[i] >> 4]);
        ron_buf_put_byte(out, (uint8_t)digits[bytes.data[i] & 15]);
    }
}

/* Write a node; for an array or table only its opening bracket. */
static void put_node(struct ron_buf *out, const struct ron_toml_node *node, bool keyed)
{
    if (keyed) {
        put_hex(out, node->key);
        ron_buf_put_byte(out, '=');
    }
    switch ((enum ron_toml_kind)node->kind) {
    case RON_TOML_STRING:
        ron_buf_put_text(out, "s:");
        put_hex(out, node->string);
        break;
    case RON_TOML_INTEGER:
        ron_buf_put_format(out, "i:%" PRId64, node->integer);
        break;
    case RON_TOML_BOOLEAN:
        ron_buf_put_text(out, node->boolean ? "b:1" : "b:0");
        break;
    case RON_TOML_ARRAY:
        ron_buf_put_byte(out, '[');
        break;
    case RON_TOML_TABLE:
        ron_buf_put_byte(out, '{');
        break;
    case RON_TOML__MAX:
        RON_UNREACHABLE();
    }
}

static void put_tree(struct ron_buf *out, const struct ron_toml_node *root)
{
    const struct ron_toml_node *open[RON_TOML_DEPTH_MAX + 2]; /* containers being written */
    const struct ron_toml_node *next[RON_TOML_DEPTH_MAX + 2]; /* their next child */
    unsigned depth = 0;

    put_node(out, root, false);
    open[0] = root;
    next[0] = root->first_child;
    for (;;) {
        const struct ron_toml_node *child = next[depth];
        bool is_table = open[depth]->kind == RON_TOML_TABLE;

        if (child == NULL) {
            ron_buf_put_byte(out, is_table ? '}' : ']');
            if (depth-- == 0)
                return;
            continue;
        }
        if (child != open[depth]->first_child)
            ron_buf_put_byte(out, ',');
        next[depth] = child->next;
        put_node(out, child, is_table);
        if (child->kind == RON_TOML_TABLE || child->kind == RON_TOML_ARRAY) {
            depth++;
            RON_ASSERT(depth < RON_ARRAY_COUNT(open));
            open[depth] = child;
            next[depth] = child->first_child;
        }
    }
}

static bool read_document(struct ron_buf *text)
{
    uint8_t head[4];
    uint32_t size;

    if (fread(head, 1, sizeof(head), stdin) != sizeof(head))
        return false;
    size = ron_load_le32(head);
    ron_buf_reset(text);
    if (ron_buf_reserve(text, size, NULL) != RON_ERR_OK)
        return false;
    text->size = fread(text->data, 1, size, stdin);
    return text->size == size;
}

int main(void)
{
    struct ron_arena arena;
    struct ron_buf text, out;
    int status = 0;

    if (ron_arena_init(&arena, ARENA_SIZE, NULL) != RON_ERR_OK)
        return 2;
    ron_buf_init(&text, 2 * RON_TOML_SIZE_MAX);
    ron_buf_init(&out, OUTPUT_SIZE_MAX);
    while (read_document(&text)) {
        const struct ron_toml_node *root = NULL;
        struct ron_errinfo info = {0};
        uint8_t head[4];
        enum ron_err err;

        ron_buf_reset(&out);
        err = ron_toml_parse(ron_buf_slice(&text), "doc.toml", &arena, &root, &info);
        if (err == RON_ERR_OK) {
            ron_buf_put_text(&out, "ok ");
            put_tree(&out, root);
        } else {
            ron_buf_put_format(&out, "%s %s", ron_err_symbol(err), info.message);
        }
        ron_arena_reset(&arena);
        if (ron_buf_check(&out, NULL) != RON_ERR_OK) {
            status = 2;
            break;
        }
        ron_store_le32(head, (uint32_t)out.size);
        if (fwrite(head, 1, sizeof(head), stdout) != sizeof(head) ||
            fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0) {
            status = 2;
            break;
        }
    }
    ron_buf_fini(&text);
    ron_buf_fini(&out);
    ron_arena_fini(&arena);
    return status;
}
