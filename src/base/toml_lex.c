/*
 * toml_lex.c - characters of TOML: places, space, comments, strings. See toml_impl.h.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/toml_impl.h"
#include "base/utf8.h"

struct toml_position toml_here(struct toml_lexer *lexer)
{
    RON_ASSERT(lexer->counted_at <= lexer->at);
    RON_ASSERT(lexer->at <= lexer->text.size);
    for (; lexer->counted_at < lexer->at; lexer->counted_at++)
        lexer->counted_column += (lexer->text.data[lexer->counted_at] & 0xc0) != 0x80;
    return (struct toml_position){lexer->line, lexer->counted_column};
}

const char *toml_shown_front(const struct toml_lexer *lexer, char shown[static TOML_SHOWN_SIZE])
{
    int c = toml_peek(lexer);
    uint32_t code_point;
    size_t size;

    if (c < 0)
        return "end of file";
    if (c == '\n')
        return "end of line";
    if (c >= 0x20 && c < 0x7f) {
        (void)snprintf(shown, TOML_SHOWN_SIZE, "'%c'", c);
        return shown;
    }
    size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    RON_ASSERT(size <= lexer->text.size - lexer->at); /* the text is UTF-8 */
    code_point = (uint32_t)c & (size == 1 ? 0x7fu : 0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++)
        code_point = code_point << 6 | (lexer->text.data[lexer->at + i] & 0x3fu);
    (void)snprintf(shown, TOML_SHOWN_SIZE, "U+%04X", code_point);
    return shown;
}

const char *toml_shown_key(struct ron_slice key, char shown[static TOML_SHOWN_SIZE])
{
    static const char cut_mark[] = "...";
    size_t room = TOML_SHOWN_SIZE - sizeof(cut_mark) - 2;
    size_t size = key.size;
    size_t at = 0;

    if (size > room)
        for (size = room; size > 0 && (key.data[size] & 0xc0) == 0x80;)
            size--; /* between characters */
    shown[at++] = '\'';
    for (size_t i = 0; i < size; i++)
        shown[at++] = key.data[i] < 0x20 || key.data[i] == 0x7f ? '?' : (char)key.data[i];
    if (size < key.size) {
        memcpy(shown + at, cut_mark, sizeof(cut_mark) - 1);
        at += sizeof(cut_mark) - 1;
    }
    shown[at++] = '\'';
    shown[at] = '\0';
    RON_ASSERT(at < TOML_SHOWN_SIZE);
    return shown;
}

void toml_skip_space(struct toml_lexer *lexer)
{
    while (toml_peek(lexer) == ' ' || toml_peek(lexer) == '\t')
        lexer->at++;
}

bool toml_take_newline(struct toml_lexer *lexer)
{
    size_t left = lexer->text.size - lexer->at;
    const uint8_t *front = lexer->text.data + lexer->at;

    if (left >= 1 && front[0] == '\n')
        lexer->at += 1;
    else if (left >= 2 && front[0] == '\r' && front[1] == '\n')
        lexer->at += 2;
    else
        return false;
    lexer->line++;
    lexer->counted_at = lexer->at;
    lexer->counted_column = 1;
    return true;
}

/* What no comment and no string may hold: controls other than tab; newlines are looked at before.
 */
static bool is_control(int c)
{
    return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
}

static enum ron_err refuse_control(struct toml_lexer *lexer, const char *where,
                                   struct ron_errinfo *reterr)
{
    char shown[TOML_SHOWN_SIZE];

    return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr,
                     "control character %s in a %s", toml_shown_front(lexer, shown), where);
}

enum ron_err toml_skip_comment(struct toml_lexer *lexer, struct ron_errinfo *reterr)
{
    if (toml_peek(lexer) != '#')
        return RON_ERR_OK;
    while (!is_control(toml_peek(lexer)) && toml_peek(lexer) >= 0)
        lexer->at++;
    if (toml_peek(lexer) < 0 || toml_peek(lexer) == '\n')
        return RON_ERR_OK;
    if (toml_peek(lexer) == '\r' && lexer->at + 1 < lexer->text.size &&
        lexer->text.data[lexer->at + 1] == '\n')
        return RON_ERR_OK;
    return refuse_control(lexer, "comment", reterr);
}

/* A string between its quotes. */
struct string_span {
    size_t end;   /* of the content */
    size_t after; /* behind the closing quotes */
    bool basic;   /* in double quotes: with escapes */
    bool multiline;
    bool borrowed; /* the content is its own value */
};

/* Find the closing quotes of the string whose content begins at lexer->at. */
static bool find_string_end(const struct toml_lexer *lexer, uint8_t quote, struct string_span *span)
{
    const uint8_t *data = lexer->text.data;
    size_t size = lexer->text.size;
    size_t run_size = 0; /* of quotes before at */

    for (size_t at = lexer->at; at < size; at++) {
        if (data[at] == quote && !span->multiline) {
            span->end = at;
            span->after = at + 1;
            return true;
        }
        if (data[at] == quote) {
            if (++run_size < 3)
                continue;
            /* Up to two quotes before the closing three are content. */
            for (unsigned extra = 0; extra < 2 && at + 1 < size && data[at + 1] == quote; extra++)
                at++;
            span->end = at - 2;
            span->after = at + 1;
            return true;
        }
        run_size = 0;
        if (data[at] == '\n' && !span->multiline)
            return false;
        if (data[at] == '\r')
            span->borrowed = false;
        if (data[at] == '\\' && span->basic) {
            span->borrowed = false;
            at++; /* the next character cannot close the string */
        }
    }
    return false;
}

/* A backslash that ends a line takes the newline and all space after it. */
static enum ron_err skip_line_ending(struct toml_lexer *lexer, const struct string_span *span,
                                     struct ron_errinfo *reterr)
{
    struct toml_position position = toml_here(lexer);

    lexer->at++;
    toml_skip_space(lexer);
    if (lexer->at >= span->end || !toml_take_newline(lexer))
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr,
                         "a backslash before a space must end the line");
    do {
        toml_skip_space(lexer);
    } while (toml_take_newline(lexer));
    RON_ASSERT(lexer->at <= span->end); /* a quote stops the skipping */
    return RON_ERR_OK;
}

/* \uXXXX or \UXXXXXXXX, of which the backslash is at the front. */
static enum ron_err read_code_point(struct toml_lexer *lexer, const struct string_span *span,
                                    uint32_t *ret_code_point, struct ron_errinfo *reterr)
{
    unsigned digits_count = lexer->text.data[lexer->at + 1] == 'u' ? 4 : 8;
    uint32_t code_point = 0;

    for (unsigned i = 0; i < digits_count; i++) {
        size_t at = lexer->at + 2 + i;
        int c = at < span->end ? lexer->text.data[at] : -1;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr,
                             "the escape needs %u hexadecimal digits", digits_count);
        code_point = code_point << 4 | (uint32_t)digit;
    }
    if (!ron_utf8_is_scalar(code_point))
        return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr,
                         "U+%04X is not a character", code_point);
    lexer->at += 2 + digits_count;
    *ret_code_point = code_point;
    return RON_ERR_OK;
}

/* Decode the escape at the front to out; *size grows. Never writes more than it reads. */
static enum ron_err read_escape(struct toml_lexer *lexer, const struct string_span *span,
                                uint8_t *out, size_t *size, struct ron_errinfo *reterr)
{
    static const char letters[] = "btnfr\"\\";
    static const char meanings[] = "\b\t\n\f\r\"\\";
    uint8_t encoded[RON_UTF8_SIZE_MAX];
    uint32_t code_point = 0;
    size_t encoded_size;
    const char *letter;
    enum ron_err err;
    int c;

    RON_ASSERT(lexer->at + 1 < span->end); /* find_string_end paired the backslash */
    c = lexer->text.data[lexer->at + 1];
    if (c == 'u' || c == 'U') {
        err = read_code_point(lexer, span, &code_point, reterr);
        if (err != RON_ERR_OK)
            return err;
        encoded_size = ron_utf8_encode(code_point, encoded);
        memcpy(out + *size, encoded, encoded_size);
        *size += encoded_size;
        return RON_ERR_OK;
    }
    if (span->multiline && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
        return skip_line_ending(lexer, span, reterr);
    letter = c == '\0' ? NULL : strchr(letters, c);
    if (letter == NULL)
        return TOML_FAIL(lexer, toml_here(lexer), RON_ERR_MALFORMED, reterr,
                         "a backslash must be followed by one of b t n f r u U \" \\");
    out[(*size)++] = (uint8_t)meanings[letter - letters];
    lexer->at += 2;
    return RON_ERR_OK;
}

/* Walk over the content, checking it and, if out is given, decoding it. */
static enum ron_err read_content(struct toml_lexer *lexer, const struct string_span *span,
                                 uint8_t *out, size_t *ret_size, struct ron_errinfo *reterr)
{
    size_t size = 0;
    enum ron_err err;

    while (lexer->at < span->end) {
        uint8_t c = lexer->text.data[lexer->at];

        if (c == '\\' && span->basic) {
            RON_ASSERT(out != NULL);
            err = read_escape(lexer, span, out, &size, reterr);
            if (err != RON_ERR_OK)
                return err;
            continue;
        }
        if (span->multiline && toml_take_newline(lexer))
            c = '\n';
        else if (is_control(c))
            return refuse_control(lexer, "string", reterr);
        else
            lexer->at++;
        if (out != NULL)
            out[size] = c;
        size++;
    }
    RON_ASSERT(lexer->at == span->end);
    *ret_size = size;
    return RON_ERR_OK;
}

enum ron_err toml_read_string(struct toml_lexer *lexer, bool multiline_allowed,
                              struct ron_slice *ret_string, struct ron_errinfo *reterr)
{
    struct toml_position position = toml_here(lexer);
    uint8_t quote = lexer->text.data[lexer->at];
    struct string_span span = {.basic = quote == '"', .borrowed = true};
    size_t left = lexer->text.size - lexer->at;
    size_t start, size = 0;
    uint8_t *out = NULL;
    enum ron_err err;

    RON_ASSERT(quote == '"' || quote == '\'');
    lexer->at++;
    if (multiline_allowed && left >= 3 && lexer->text.data[lexer->at] == quote &&
        lexer->text.data[lexer->at + 1] == quote) {
        span.multiline = true;
        lexer->at += 2;
        (void)toml_take_newline(lexer); /* one right after the quotes is not content */
    }
    if (!find_string_end(lexer, quote, &span))
        return TOML_FAIL(lexer, position, RON_ERR_MALFORMED, reterr, "the string is not closed");
    start = lexer->at;
    if (!span.borrowed) {
        out = ron_arena_alloc_bytes(lexer->arena, span.end - start);
        if (out == NULL)
            return TOML_FAIL(lexer, position, RON_ERR_TOO_LARGE, reterr,
                             "the document needs more than its %zu bytes of memory",
                             lexer->arena->size);
    }
    err = read_content(lexer, &span, out, &size, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(size <= span.end - start);
    if (out != NULL) /* what decoding saved goes back */
        ron_arena_rewind(lexer->arena, lexer->arena->used_size - (span.end - start - size));
    *ret_string = (struct ron_slice){out != NULL ? out : lexer->text.data + start, size};
    lexer->at = span.after;
    return RON_ERR_OK;
}
