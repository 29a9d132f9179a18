/*
 * toml_parse.c - the grammar of TOML: headers, keys, nested values. See toml_impl.h.
 *
 * No recursion: open arrays and inline tables are frames on a stack of RON_TOML_DEPTH_MAX, and
 * step_frame takes one element, comma or closing bracket of the innermost.
 */
#include "base/assert.h"
#include "base/toml_impl.h"

enum { PATH_COUNT_MAX = RON_TOML_DEPTH_MAX + 1 }; /* the last part may name a scalar */

/* An open array or inline table. */
struct frame {
    struct ron_toml_node *container;
    uint32_t line; /* where it was opened */
    bool after_item;
    bool after_comma;
};

struct parser {
    struct toml_lexer *lexer;
    struct toml_part path[PATH_COUNT_MAX]; /* of the key just read */
    unsigned path_count;
    struct frame frames[RON_TOML_DEPTH_MAX];
    unsigned frames_count;
};

static bool is_bare_key_character(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
}

static enum ron_err refuse_front(struct toml_lexer *lexer, const char *expected,
                                 struct ron_errinfo *reterr)
{
    char shown[TOML_SHOWN_SIZE];

    return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr, "expected %s, found %s",
                     expected, toml_shown_front(lexer, shown));
}

static enum ron_err read_key_part(struct toml_lexer *lexer, struct toml_part *ret_part,
                                  struct ron_errinfo *reterr)
{
    size_t start = lexer->at;

    ret_part->position = toml_here(lexer);
    if (toml_peek(lexer) == '"' || toml_peek(lexer) == '\'')
        return toml_read_string(lexer, false, &ret_part->key, reterr);
    while (is_bare_key_character(toml_peek(lexer)))
        lexer->at++;
    if (lexer->at == start)
        return refuse_front(lexer, "a key", reterr);
    ret_part->key = ron_slice_of(lexer->text.data + start, lexer->at - start);
    return RON_ERR_OK;
}

/* Read a dotted key into parser->path, and the space after it. */
static enum ron_err read_key(struct parser *parser, struct ron_errinfo *reterr)
{
    struct toml_lexer *lexer = parser->lexer;

    parser->path_count = 0;
    for (;;) {
        enum ron_err err;

        if (parser->path_count == PATH_COUNT_MAX)
            return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_TOO_LARGE, reterr,
                             "tables and arrays are nested deeper than %d", RON_TOML_DEPTH_MAX);
        err = read_key_part(lexer, &parser->path[parser->path_count], reterr);
        if (err != RON_ERR_OK)
            return err;
        parser->path_count++;
        toml_skip_space(lexer);
        if (toml_peek(lexer) != '.')
            return RON_ERR_OK;
        lexer->at++;
        toml_skip_space(lexer);
    }
}

/* Read `key =` and make the node of its value, below table. */
static enum ron_err read_assignment(struct parser *parser, struct ron_toml_node *table,
                                    struct ron_toml_node **ret_node, struct ron_errinfo *reterr)
{
    enum ron_err err = read_key(parser, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (toml_peek(parser->lexer) != '=')
        return refuse_front(parser->lexer, "'='", reterr);
    parser->lexer->at++;
    toml_skip_space(parser->lexer);
    RON_ASSERT(parser->path_count > 0);
    for (unsigned i = 0; i + 1 < parser->path_count; i++) {
        err = toml_enter_dotted(parser->lexer, table, &parser->path[i], &table, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return toml_add_value(parser->lexer, table, &parser->path[parser->path_count - 1], ret_node,
                          reterr);
}

/* Read the value at the front into node; an array or inline table is only opened. */
static enum ron_err begin_value(struct parser *parser, struct ron_toml_node *node,
                                struct ron_errinfo *reterr)
{
    struct toml_lexer *lexer = parser->lexer;
    int c = toml_peek(lexer);
    enum ron_err err;

    node->value_column = toml_here(lexer).column;
    if (c == '"' || c == '\'') {
        node->kind = RON_TOML_STRING;
        return toml_read_string(lexer, true, &node->string, reterr);
    }
    if (c != '[' && c != '{')
        return toml_read_scalar(lexer, node, reterr);
    err = toml_open_container(lexer, node, c == '[' ? RON_TOML_ARRAY : RON_TOML_TABLE, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(node->origin == TOML_VALUE);
    RON_ASSERT(parser->frames_count < RON_TOML_DEPTH_MAX); /* a frame is a level of depth */
    parser->frames[parser->frames_count++] = (struct frame){
        .container = node,
        .line = lexer->line,
    };
    lexer->at++;
    return RON_ERR_OK;
}

/* Space, newlines and comments, as between the elements of an array. */
static enum ron_err skip_lines(struct toml_lexer *lexer, struct ron_errinfo *reterr)
{
    enum ron_err err;

    do {
        toml_skip_space(lexer);
        err = toml_skip_comment(lexer, reterr);
        if (err != RON_ERR_OK)
            return err;
    } while (toml_take_newline(lexer));
    return RON_ERR_OK;
}

/* One element, comma or closing bracket of the innermost open array or inline table. */
static enum ron_err step_frame(struct parser *parser, struct ron_errinfo *reterr)
{
    struct frame *frame = &parser->frames[parser->frames_count - 1];
    struct toml_lexer *lexer = parser->lexer;
    bool is_array = frame->container->kind == RON_TOML_ARRAY;
    struct ron_toml_node *node = NULL;
    enum ron_err err = RON_ERR_OK;

    if (is_array)
        err = skip_lines(lexer, reterr);
    else
        toml_skip_space(lexer);
    if (err != RON_ERR_OK)
        return err;
    if (toml_peek(lexer) < 0)
        return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr,
                         "the %s opened in line %u is not closed", is_array ? "array" : "table",
                         frame->line);
    if (toml_peek(lexer) == (is_array ? ']' : '}')) {
        if (!is_array && frame->after_comma)
            return refuse_front(lexer, "a key after the comma", reterr);
        lexer->at++;
        parser->frames_count--;
        return RON_ERR_OK;
    }
    if (frame->after_item) {
        if (toml_peek(lexer) != ',')
            return refuse_front(lexer, is_array ? "',' or ']'" : "',' or '}' on the same line",
                                reterr);
        lexer->at++;
        frame->after_item = false;
        frame->after_comma = true;
        return RON_ERR_OK;
    }
    if (is_array)
        err = toml_add_element(lexer, frame->container, toml_here(lexer), &node, reterr);
    else
        err = read_assignment(parser, frame->container, &node, reterr);
    if (err != RON_ERR_OK)
        return err;
    frame->after_item = true;
    frame->after_comma = false;
    return begin_value(parser, node, reterr);
}

/* key = value, in the section of table. */
static enum ron_err parse_key_value(struct parser *parser, struct ron_toml_node *table,
                                    struct ron_errinfo *reterr)
{
    struct ron_toml_node *node = NULL;
    enum ron_err err = read_assignment(parser, table, &node, reterr);

    if (err == RON_ERR_OK)
        err = begin_value(parser, node, reterr);
    while (err == RON_ERR_OK && parser->frames_count > 0)
        err = step_frame(parser, reterr); /* takes at least one character */
    return err;
}

/* [table] or [[array of tables]]; *ret_table is what the following lines belong to. */
static enum ron_err parse_header(struct parser *parser, struct ron_toml_node *root,
                                 struct ron_toml_node **ret_table, struct ron_errinfo *reterr)
{
    struct toml_lexer *lexer = parser->lexer;
    struct ron_toml_node *table = root;
    bool is_array;
    enum ron_err err;

    RON_ASSERT(toml_peek(lexer) == '[');
    lexer->at++;
    is_array = toml_peek(lexer) == '[';
    lexer->at += is_array;
    toml_skip_space(lexer);
    err = read_key(parser, reterr);
    if (err != RON_ERR_OK)
        return err;
    for (int i = 0; i <= is_array; i++) {
        if (toml_peek(lexer) != ']')
            return refuse_front(lexer, is_array ? "']]'" : "']'", reterr);
        lexer->at++;
    }
    for (unsigned i = 0; i + 1 < parser->path_count; i++) {
        err = toml_enter_header(lexer, table, &parser->path[i], &table, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return (is_array ? toml_append_table : toml_define_table)(
        lexer, table, &parser->path[parser->path_count - 1], ret_table, reterr);
}

enum ron_err toml_parse_document(struct toml_lexer *lexer, struct ron_toml_node *root,
                                 struct ron_errinfo *reterr)
{
    struct parser parser = {.lexer = lexer};
    struct ron_toml_node *table = root;

    for (;;) {
        enum ron_err err = skip_lines(lexer, reterr);

        if (err != RON_ERR_OK)
            return err;
        if (toml_peek(lexer) < 0)
            return RON_ERR_OK;
        if (toml_peek(lexer) == '[')
            err = parse_header(&parser, root, &table, reterr);
        else
            err = parse_key_value(&parser, table, reterr);
        if (err != RON_ERR_OK)
            return err;
        RON_ASSERT(parser.frames_count == 0);
        toml_skip_space(lexer);
        err = toml_skip_comment(lexer, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (toml_peek(lexer) >= 0 && !toml_take_newline(lexer))
            return refuse_front(lexer, "the end of the line", reterr);
    }
}
