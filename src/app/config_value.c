/*
 * config_value.c - one value of the configuration: read, checked, printed. See config_impl.h.
 */
#include "app/config_impl.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/units.h"

const struct config_row config_rows[CONFIG__MAX] = {
#define X(name, path, type, value, least, most, hot, meaning) \
    {path, CONFIG_##type, value, least, most, hot, meaning},
    CONFIG_MAP(X)
#undef X
};

/* A number in the unit of its row, for messages and files. */
static void print_number(const struct config_row *row, uint64_t number,
                         char ret_text[static RON_UNITS_TEXT_SIZE])
{
    if (row->type == CONFIG_DURATION)
        (void)ron_duration_print(number, ret_text);
    else if (row->type == CONFIG_SIZE)
        (void)ron_size_print(number, ret_text);
    else
        (void)ron_decimal_print_u64(number, ret_text);
}
_Static_assert(RON_DECIMAL_U64_SIZE <= RON_UNITS_TEXT_SIZE, "a plain number fits, too");

static enum ron_err check_bounds(const struct config_row *row, uint64_t number,
                                 struct ron_errinfo *reterr)
{
    char least[RON_UNITS_TEXT_SIZE];
    char most[RON_UNITS_TEXT_SIZE];

    if (number >= row->least && number <= row->most)
        return RON_ERR_OK;
    print_number(row, row->least, least);
    print_number(row, row->most, most);
    return ron_fail(reterr, RON_ERR_MALFORMED, "must be from %s to %s", least, most);
}

/* Is the word one of those in brackets at the start of the meaning? */
static bool is_choice(const struct config_row *row, struct ron_slice word)
{
    const char *at = row->meaning;

    RON_ASSERT(*at == '[');
    do {
        size_t size = strcspn(++at, " ]");

        if (ron_slice_equal(word, ron_slice_of(at, size)))
            return true;
        at += size;
    } while (*at == ' ');
    return false;
}

static enum ron_err read_text(const struct config_row *row, struct ron_slice text,
                              struct config_value *ret_value, struct ron_arena *arena,
                              struct ron_errinfo *reterr)
{
    char *copy;

    if (row->type == CONFIG_CHOICE && !is_choice(row, text))
        return ron_fail(reterr, RON_ERR_MALFORMED, "must be one of %.*s",
                        (int)strcspn(row->meaning, "]") - 1, row->meaning + 1);
    if (row->type == CONFIG_TEXT && (text.size < row->least || text.size > row->most))
        return ron_fail(reterr, RON_ERR_MALFORMED, "must have from %u to %u bytes",
                        (unsigned)row->least, (unsigned)row->most);
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] == 0x7f)
            return ron_fail(reterr, RON_ERR_MALFORMED, "has a control character at %zu", i);
    copy = ron_arena_alloc_bytes(arena, text.size + 1);
    if (copy == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "is more text than a configuration may hold");
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    ret_value->text = copy;
    return RON_ERR_OK;
}

enum ron_err config_value_read(const struct config_row *row, struct ron_slice text,
                               struct config_value *ret_value, struct ron_arena *arena,
                               struct ron_errinfo *reterr)
{
    uint64_t number = 0;
    enum ron_err err;

    if (row->type == CONFIG_TEXT || row->type == CONFIG_CHOICE)
        return read_text(row, text, ret_value, arena, reterr);
    if (row->type == CONFIG_BOOL) {
        number = ron_slice_equal(text, RON_SLICE("true"));
        if (number == 0 && !ron_slice_equal(text, RON_SLICE("false")))
            return ron_fail(reterr, RON_ERR_MALFORMED, "must be true or false");
        ret_value->number = number;
        return RON_ERR_OK;
    }
    if (row->type == CONFIG_DURATION)
        err = ron_duration_parse(text, &number, reterr);
    else if (row->type == CONFIG_SIZE)
        err = ron_size_parse(text, &number, reterr);
    else
        err = ron_decimal_parse_u64(text, &number, reterr);
    if (err == RON_ERR_OK)
        err = check_bounds(row, number, reterr);
    if (err == RON_ERR_OK)
        ret_value->number = number;
    return err;
}

enum ron_err config_value_node(const struct config_row *row, const struct ron_toml_node *node,
                               struct config_value *ret_value, struct ron_arena *arena,
                               struct ron_errinfo *reterr)
{
    static const uint8_t kinds[] = {
        [CONFIG_BOOL] = RON_TOML_BOOLEAN,    [CONFIG_COUNT] = RON_TOML_INTEGER,
        [CONFIG_DURATION] = RON_TOML_STRING, [CONFIG_SIZE] = RON_TOML_STRING,
        [CONFIG_TEXT] = RON_TOML_STRING,     [CONFIG_CHOICE] = RON_TOML_STRING,
    };

    if (node->kind != kinds[row->type])
        return ron_fail(reterr, RON_ERR_MALFORMED, "must be %s %s%s, not %s %s",
                        kinds[row->type] == RON_TOML_INTEGER ? "an" : "a",
                        ron_toml_kind_name((enum ron_toml_kind)kinds[row->type]),
                        row->type == CONFIG_DURATION ? " like \"5s\""
                        : row->type == CONFIG_SIZE   ? " like \"64MiB\""
                                                     : "",
                        node->kind == RON_TOML_INTEGER || node->kind == RON_TOML_ARRAY ? "an" : "a",
                        ron_toml_kind_name((enum ron_toml_kind)node->kind));
    if (node->kind == RON_TOML_STRING)
        return config_value_read(row, node->string, ret_value, arena, reterr);
    if (node->kind == RON_TOML_BOOLEAN) {
        ret_value->number = node->boolean;
        return RON_ERR_OK;
    }
    if (node->integer < 0 || check_bounds(row, (uint64_t)node->integer, reterr) != RON_ERR_OK)
        return node->integer >= 0 ? RON_ERR_MALFORMED
                                  : ron_fail(reterr, RON_ERR_MALFORMED, "must not be negative");
    ret_value->number = (uint64_t)node->integer;
    return RON_ERR_OK;
}

void config_value_print(const struct config_row *row, const struct config_value *value,
                        struct ron_buf *buf)
{
    char text[RON_UNITS_TEXT_SIZE];

    switch (row->type) {
    case CONFIG_BOOL:
        ron_buf_put_text(buf, value->number != 0 ? "true" : "false");
        return;
    case CONFIG_COUNT:
        print_number(row, value->number, text);
        ron_buf_put_text(buf, text);
        return;
    case CONFIG_DURATION:
    case CONFIG_SIZE:
        print_number(row, value->number, text);
        ron_buf_put_format(buf, "\"%s\"", text);
        return;
    case CONFIG_TEXT:
    case CONFIG_CHOICE:
        ron_buf_put_byte(buf, '"');
        for (const char *at = value->text; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\')
                ron_buf_put_byte(buf, '\\');
            ron_buf_put_byte(buf, (uint8_t)*at);
        }
        ron_buf_put_byte(buf, '"');
        return;
    }
    RON_UNREACHABLE();
}
