/*
 * ledger_row.c - an object of JSON, one level deep. See ledger_row.h.
 */
#include "cli/ledger_row.h"

#include "base/decimal.h"
#include "base/json.h"

enum ron_err row_read(struct ron_slice object, struct ron_arena *arena, struct row *ret_row,
                      struct ron_errinfo *reterr)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    enum ron_err err;

    ret_row->count = 0;
    ron_json_reader_init(&reader, object, arena);
    err = ron_json_next(&reader, &token, reterr);
    if (err == RON_ERR_OK && token.kind != RON_JSON_OBJECT_BEGIN)
        return ron_fail(reterr, RON_ERR_MALFORMED, "not a JSON object");
    reader.names_by_caller = true; /* what is within is looked at by who reads that */
    while (err == RON_ERR_OK) {
        struct ron_slice name, raw;
        bool is_string;

        err = ron_json_next(&reader, &token, reterr);
        if (err != RON_ERR_OK || token.kind != RON_JSON_NAME)
            break;
        name = token.text;
        err = ron_json_next(&reader, &token, reterr);
        if (err == RON_ERR_OK)
            err = ron_json_skip(&reader, &token, &raw, reterr);
        if (err != RON_ERR_OK)
            break;
        is_string = token.kind == RON_JSON_STRING;
        if (ret_row->count == LEDGER_MEMBERS_MAX)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %d members", LEDGER_MEMBERS_MAX);
        ret_row->members[ret_row->count].name = name;
        ret_row->members[ret_row->count].text = is_string ? token.text : raw;
        ret_row->members[ret_row->count++].is_string = is_string;
    }
    if (err == RON_ERR_OK)
        err = ron_json_next(&reader, &token, reterr); /* nothing may follow */
    return err;
}

struct ron_slice row_text(const struct row *row, const char *name)
{
    const struct ron_slice wanted = ron_slice_text(name);

    for (size_t i = 0; i < row->count; i++)
        if (ron_slice_equal(row->members[i].name, wanted))
            return row->members[i].text;
    return (struct ron_slice){NULL, 0};
}

bool row_u64(const struct row *row, const char *name, uint64_t *ret_value)
{
    return ron_decimal_parse_u64(row_text(row, name), ret_value, NULL) == RON_ERR_OK;
}
