/*
 * toml.c - reading a whole TOML document, and walking in it. See toml.h.
 */
#include "base/toml.h"

#include "base/assert.h"
#include "base/toml_impl.h"
#include "base/utf8.h"

enum { FILE_NAME_SHOWN_SIZE = 80 };

static const char *const kind_names[] = {
    [RON_TOML_STRING] = "string", [RON_TOML_INTEGER] = "integer", [RON_TOML_BOOLEAN] = "boolean",
    [RON_TOML_ARRAY] = "array",   [RON_TOML_TABLE] = "table",
};
_Static_assert(RON_ARRAY_COUNT(kind_names) == RON_TOML__MAX, "one name per kind");

const char *ron_toml_kind_name(enum ron_toml_kind kind)
{
    RON_ASSERT((unsigned)kind < RON_TOML__MAX);
    return kind_names[kind];
}

/* The end of a long path, so that a message has room for what is wrong. */
static const char *shorten_name(const char *file_name)
{
    size_t size = strlen(file_name);
    const char *slash;

    if (size <= FILE_NAME_SHOWN_SIZE)
        return file_name;
    file_name += size - FILE_NAME_SHOWN_SIZE;
    while (((unsigned char)file_name[0] & 0xc0) == 0x80)
        file_name++; /* not into the middle of a character */
    slash = strchr(file_name, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : file_name;
}

/* Where UTF-8 ends: the text before it is valid, so it can be walked. */
static enum ron_err refuse_encoding(struct toml_lexer *lexer, size_t bad_offset,
                                    struct ron_errinfo *reterr)
{
    while (lexer->at < bad_offset)
        if (!toml_take_newline(lexer))
            lexer->at++;
    return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr, "byte 0x%02x is not UTF-8",
                     (unsigned)lexer->text.data[bad_offset]);
}

enum ron_err ron_toml_parse(struct ron_slice text, const char *file_name, struct ron_arena *arena,
                            const struct ron_toml_node **ret_root, struct ron_errinfo *reterr)
{
    struct toml_lexer lexer = {
        .text = text,
        .file_name = shorten_name(file_name),
        .arena = arena,
        .line = 1,
        .counted_column = 1,
    };
    size_t mark = ron_arena_mark(arena);
    struct ron_toml_node *root = NULL;
    size_t bad_offset = 0;
    enum ron_err err;

    RON_ASSERT(text.data != NULL || text.size == 0);
    RON_ASSERT(file_name != NULL);
    if (text.size > RON_TOML_SIZE_MAX)
        return TOML_FAIL(&lexer, toml_here(&lexer), RON_ERR_TOO_LARGE, reterr,
                         "a document of %zu bytes, at most %d are read", text.size,
                         RON_TOML_SIZE_MAX);
    if (!ron_utf8_valid(text, &bad_offset))
        return refuse_encoding(&lexer, bad_offset, reterr);
    err = toml_new_root(&lexer, &root, reterr);
    if (err == RON_ERR_OK)
        err = toml_parse_document(&lexer, root, reterr);
    if (err != RON_ERR_OK) {
        ron_arena_rewind(arena, mark);
        return err;
    }
    RON_ASSERT(lexer.at == text.size);
    *ret_root = root;
    return RON_ERR_OK;
}

const struct ron_toml_node *ron_toml_find(const struct ron_toml_node *node, const char *path)
{
    RON_ASSERT(node != NULL);
    for (;;) {
        size_t size = strcspn(path, ".");

        node = ron_toml_get(node, ron_slice_of(path, size));
        if (node == NULL || path[size] == '\0')
            return node;
        path += size + 1;
    }
}
