/*
 * toml_impl.h - what the parts of the TOML reader share. Included by toml*.c only.
 *
 * toml_lex.c turns characters into keys and scalars and knows lines and columns; toml_tree.c holds
 * the nodes and the rules about defining things twice; toml_parse.c is the grammar.
 */
#ifndef RON_BASE_TOML_IMPL_H
#define RON_BASE_TOML_IMPL_H

#include "base/limits.h"
#include "base/toml.h"

struct toml_position {
    uint32_t line;
    uint32_t column;
};

struct toml_lexer {
    struct ron_slice text;
    const char *file_name;
    struct ron_arena *arena;
    size_t at;                        /* first unread byte */
    uint32_t line;                    /* of at */
    uint32_t counted_column;          /* of counted_at, on the same line */
    size_t counted_at;                /* columns are counted up to here: each byte once */
    struct toml_index *index_entries; /* not used yet, of the last chunk taken from the arena */
    unsigned index_entries_count;
    unsigned nodes_count;
};

/* One part of a dotted key. */
struct toml_part {
    struct ron_slice key;
    struct toml_position position;
};

/* How a table or array came to be decides who may still add to it. */
enum toml_origin {
    TOML_VALUE,    /* written as a value: closed for good */
    TOML_IMPLICIT, /* a table named on the way by a [header.of.another] */
    TOML_HEADER,   /* a table with its own [header], or an element of an array of tables */
    TOML_DOTTED,   /* a table made by a dotted key */
    TOML_HEADERS,  /* an array of tables */
};

#define TOML_FAIL(lexer, position, err, reterr, format, ...)                            \
    ron_fail((reterr), (err), "%s:%u:%u: " format, (lexer)->file_name, (position).line, \
             (position).column, ##__VA_ARGS__)

enum { TOML_SHOWN_SIZE = 48 };

/* The byte at the front, or -1 at the end. */
static inline int toml_peek(const struct toml_lexer *lexer)
{
    return lexer->at < lexer->text.size ? lexer->text.data[lexer->at] : -1;
}

/* Where lexer->at is. */
struct toml_position toml_here(struct toml_lexer *lexer);
/* For messages: the character at the front ("'x'", "U+0007", "end of file"). */
const char *toml_shown_front(const struct toml_lexer *lexer, char shown[static TOML_SHOWN_SIZE]);
/* For messages: a key, cut and with control characters replaced. */
const char *toml_shown_key(struct ron_slice key, char shown[static TOML_SHOWN_SIZE]);

void toml_skip_space(struct toml_lexer *lexer); /* spaces and tabs */
/* Move over a newline if one is at the front. */
bool toml_take_newline(struct toml_lexer *lexer);
/* Move over a comment, if one is at the front, up to its newline. */
enum ron_err toml_skip_comment(struct toml_lexer *lexer, struct ron_errinfo *reterr) RON_MUST_USE;
/* Read a string whose opening quote is at the front. */
enum ron_err toml_read_string(struct toml_lexer *lexer, bool multiline_allowed,
                              struct ron_slice *ret_string,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Read a boolean or an integer into node. */
enum ron_err toml_read_scalar(struct toml_lexer *lexer, struct ron_toml_node *node,
                              struct ron_errinfo *reterr) RON_MUST_USE;

/* The tree. Each may fail with RON_ERR_TOO_LARGE (arena, depth); those that name a part also with
 * RON_ERR_MALFORMED when what exists by that name does not allow it. */
enum ron_err toml_new_root(struct toml_lexer *lexer, struct ron_toml_node **ret_root,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* A new element of an array. */
enum ron_err toml_add_element(struct toml_lexer *lexer, struct ron_toml_node *array,
                              struct toml_position position, struct ron_toml_node **ret_node,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* A new value in a table: part = ... */
enum ron_err toml_add_value(struct toml_lexer *lexer, struct ron_toml_node *table,
                            const struct toml_part *part, struct ron_toml_node **ret_node,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* The table that a dotted key passes through: part.more = ... */
enum ron_err toml_enter_dotted(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The table that a header passes through: [part.more] */
enum ron_err toml_enter_header(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The table that a header defines: [part], and [[part]] */
enum ron_err toml_define_table(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err toml_append_table(struct toml_lexer *lexer, struct ron_toml_node *table,
                               const struct toml_part *part, struct ron_toml_node **ret_table,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* Make a fresh value an open array or inline table. */
enum ron_err toml_open_container(struct toml_lexer *lexer, struct ron_toml_node *node,
                                 enum ron_toml_kind kind, struct ron_errinfo *reterr) RON_MUST_USE;

/* The grammar: everything from lexer->at to the end goes below root. */
enum ron_err toml_parse_document(struct toml_lexer *lexer, struct ron_toml_node *root,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

#endif
