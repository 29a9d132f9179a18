/*
 * ledger_json.c - replies of the server, for people. See ledger_impl.h.
 */
#include <string.h>

#include "base/json.h"
#include "base/printable.h"
#include "cli/ledger_impl.h"

enum { ARENA_SPARE = 64, TEXT_SIZE = 8256, ROW_SIZE_MAX = 256 << 10 };

int rows_each(const struct ledger_args *args, struct ron_slice array, row_fn *fn, void *context)
{
    struct ron_arena arena = {0}, row_arena = {0};
    struct ron_json_reader reader;
    struct ron_json_token token;
    struct ron_errinfo info = {0};
    struct row row;
    int status = CMD_OK;
    enum ron_err err = ron_arena_init(&arena, 2 * array.size + ARENA_SPARE, &info);

    if (err == RON_ERR_OK)
        err = ron_arena_init(&row_arena, ROW_SIZE_MAX, &info);
    if (err == RON_ERR_OK) {
        ron_json_reader_init(&reader, array, &arena);
        reader.names_by_caller = true; /* row_read does */
        err = ron_json_next(&reader, &token, &info);
        if (err == RON_ERR_OK && token.kind != RON_JSON_ARRAY_BEGIN)
            err = ron_fail(&info, RON_ERR_MALFORMED,
                           "the reply has no list where one was expected");
    }
    while (err == RON_ERR_OK && status == CMD_OK) {
        struct ron_slice object;

        err = ron_json_next(&reader, &token, &info);
        if (err != RON_ERR_OK || token.kind == RON_JSON_ARRAY_END)
            break;
        err = ron_json_skip(&reader, &token, &object, &info);
        ron_arena_reset(&row_arena);
        if (err == RON_ERR_OK)
            err = row_read(object, &row_arena, &row, &info);
        if (err == RON_ERR_OK)
            status = fn(context, &row, object);
    }
    ron_arena_fini(&row_arena);
    ron_arena_fini(&arena);
    return err == RON_ERR_OK ? status : ledger_failed(args, &info);
}

int print_object(const struct ledger_args *args, struct ron_slice object)
{
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct row row;
    enum ron_err err;

    if (args->json) {
        printf("%.*s\n", RON_SLICE_FMT(object));
        return CMD_OK;
    }
    err = ron_arena_init(&arena, 2 * object.size + ARENA_SPARE, &info);
    if (err == RON_ERR_OK)
        err = row_read(object, &arena, &row, &info);
    for (size_t i = 0; err == RON_ERR_OK && i < row.count; i++) {
        char text[TEXT_SIZE];

        printf("%-16.*s ", RON_SLICE_FMT(row.members[i].name));
        if (row.members[i].is_string) /* may be anybody's: nothing for the terminal to obey */
            puts(ron_printable(row.members[i].text, text, sizeof(text)));
        else
            printf("%.*s\n", RON_SLICE_FMT(row.members[i].text));
    }
    ron_arena_fini(&arena);
    return err == RON_ERR_OK ? CMD_OK : ledger_failed(args, &info);
}

/* --- Tables ----------------------------------------------------------------------------------- */

void print_titles(const struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%*s%s", columns[i].width, columns[i].title, i + 1 < count ? "  " : "\n");
}

void print_row(const struct column *columns, size_t count, const struct row *row)
{
    for (size_t i = 0; i < count; i++) {
        struct ron_slice text = {NULL, 0};
        char shown[TEXT_SIZE];

        for (size_t j = 0; j < RON_ARRAY_COUNT(columns[i].names) && text.size == 0; j++)
            if (columns[i].names[j] != NULL)
                text = row_text(row, columns[i].names[j]);
        if (text.size == 0)
            text = RON_SLICE("-");
        printf("%*s%s", columns[i].width, ron_printable(text, shown, sizeof(shown)),
               i + 1 < count ? "  " : "\n");
    }
}
