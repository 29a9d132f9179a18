/*
 * record_lines.c - see record_lines.h.
 */
#include "ledger/record_lines.h"

#include <string.h>

#include "base/json.h"
#include "base/printable.h"

enum { TEXT_SIZE = 1024 };

/* Columns of CSV, in their order; then what stands in for a name that is not known. */
enum field {
    SEQ,
    ID,
    KIND,
    DEBIT,
    CREDIT,
    AMOUNT,
    ASSET,
    NONCE,
    MEMO,
    TENANT,
    CALLER,
    COMMITTED_AT,
    BATCH_NO,
    COLUMNS,
    DEBIT_ID = COLUMNS,
    CREDIT_ID,
    ASSET_NO,
    FIELDS,
};
static const char *const names[FIELDS] = {
    [SEQ] = "seq",
    [ID] = "id",
    [KIND] = "kind",
    [DEBIT] = "debit",
    [CREDIT] = "credit",
    [AMOUNT] = "amount",
    [ASSET] = "asset",
    [NONCE] = "nonce",
    [MEMO] = "memo",
    [TENANT] = "tenant",
    [CALLER] = "caller",
    [COMMITTED_AT] = "committed_at",
    [BATCH_NO] = "batch_no",
    [DEBIT_ID] = "debit_id",
    [CREDIT_ID] = "credit_id",
    [ASSET_NO] = "asset_no",
};

bool ledger_lines_find(struct ron_slice name, enum ledger_lines *ret_lines)
{
    static const struct {
        const char *name;
        enum ledger_lines lines;
    } forms[] = {{"jsonl", LEDGER_LINES_JSON},
                 {"csv", LEDGER_LINES_CSV},
                 {"journal", LEDGER_LINES_JOURNAL},
                 {"ledger", LEDGER_LINES_JOURNAL}};

    for (size_t i = 0; i < RON_ARRAY_COUNT(forms); i++) {
        if (ron_slice_equal(name, ron_slice_text(forms[i].name))) {
            *ret_lines = forms[i].lines;
            return true;
        }
    }
    return false;
}

const char *ledger_lines_media(enum ledger_lines lines)
{
    switch (lines) {
    case LEDGER_LINES_JSON:
        return "application/x-ndjson";
    case LEDGER_LINES_CSV:
        return "text/csv";
    case LEDGER_LINES_JOURNAL:
        break;
    }
    return "text/plain; charset=utf-8";
}

void ledger_lines_begin(enum ledger_lines lines, struct ron_buf *buf)
{
    if (lines != LEDGER_LINES_CSV)
        return;
    for (size_t i = 0; i < COLUMNS; i++) {
        ron_buf_put_text(buf, i > 0 ? "," : "");
        ron_buf_put_text(buf, names[i]);
    }
    ron_buf_put_text(buf, "\r\n");
}

/* The members that are asked for, a string's content or the value as it stands. */
static enum ron_err read_fields(struct ron_slice object, struct ron_arena *arena,
                                struct ron_slice fields[static FIELDS], struct ron_errinfo *reterr)
{
    struct ron_json_reader reader;
    struct ron_json_token token;
    enum ron_err err;

    ron_json_reader_init(&reader, object, arena);
    err = ron_json_next(&reader, &token, reterr);
    if (err == RON_ERR_OK && token.kind != RON_JSON_OBJECT_BEGIN)
        return ron_fail(reterr, RON_ERR_MALFORMED, "not a JSON object");
    while (err == RON_ERR_OK) {
        struct ron_slice name, raw;

        err = ron_json_next(&reader, &token, reterr);
        if (err != RON_ERR_OK || token.kind != RON_JSON_NAME)
            return err;
        name = token.text;
        err = ron_json_next(&reader, &token, reterr);
        if (err == RON_ERR_OK)
            err = ron_json_skip(&reader, &token, &raw, reterr);
        for (size_t i = 0; err == RON_ERR_OK && i < FIELDS; i++)
            if (ron_slice_equal(name, ron_slice_text(names[i])))
                fields[i] = token.kind == RON_JSON_STRING ? token.text : raw;
    }
    return err;
}

static void put_slice(struct ron_buf *buf, struct ron_slice text)
{
    ron_buf_put(buf, text.data, text.size);
}

/* RFC 4180. */
static void put_csv(struct ron_buf *buf, const struct ron_slice fields[static FIELDS])
{
    for (size_t i = 0; i < COLUMNS; i++) {
        ron_buf_put_text(buf, i > 0 ? ",\"" : "\"");
        for (size_t j = 0; j < fields[i].size; j++) {
            if (fields[i].data[j] == '"')
                ron_buf_put_byte(buf, '"');
            ron_buf_put_byte(buf, fields[i].data[j]);
        }
        ron_buf_put_byte(buf, '"');
    }
    ron_buf_put_text(buf, "\r\n");
}

/* Accounts are a tree there, with ':' between; ours with '/'. */
static void put_posting(struct ron_buf *buf, struct ron_slice account, const char *sign,
                        const struct ron_slice fields[static FIELDS])
{
    ron_buf_put_text(buf, "\n    ");
    for (size_t i = 0; i < account.size; i++)
        ron_buf_put_byte(buf, account.data[i] == '/' ? ':' : account.data[i]);
    ron_buf_put_text(buf, sign);
    put_slice(buf, fields[AMOUNT]);
    ron_buf_put_text(buf, " \"");
    put_slice(buf, fields[ASSET].size > 0 ? fields[ASSET] : fields[ASSET_NO]);
    ron_buf_put_text(buf, "\"");
}

/* A transaction each; what moves nothing is a comment. The asset in quotes: digits and dashes. */
static void put_journal(struct ron_buf *buf, const struct ron_slice fields[static FIELDS])
{
    const bool moves = fields[AMOUNT].size > 0 && fields[COMMITTED_AT].size >= 10;
    char memo[TEXT_SIZE];

    if (moves) {
        put_slice(buf, ron_slice_of(fields[COMMITTED_AT].data, 10));
        ron_buf_put_text(buf, " * (");
        put_slice(buf, fields[SEQ]);
        ron_buf_put_text(buf, ") ");
    } else {
        ron_buf_put_text(buf, "; ");
    }
    put_slice(buf, fields[KIND]);
    ron_buf_put_text(buf, " ");
    put_slice(buf, fields[ID]);
    if (moves && fields[MEMO].size > 0) {
        ron_buf_put_text(buf, "  ; ");
        ron_buf_put_text(buf, ron_printable(fields[MEMO], memo, sizeof(memo)));
    }
    if (moves) {
        put_posting(buf, fields[CREDIT], "  ", fields);
        put_posting(buf, fields[DEBIT], "  -", fields);
    }
    ron_buf_put_text(buf, "\n\n");
}

enum ron_err ledger_lines_put(enum ledger_lines lines, struct ron_slice object,
                              struct ron_arena *arena, struct ron_buf *buf,
                              struct ron_errinfo *reterr)
{
    struct ron_slice fields[FIELDS] = {{NULL, 0}};
    enum ron_err err;

    if (lines == LEDGER_LINES_JSON) {
        put_slice(buf, object);
        ron_buf_put_byte(buf, '\n');
        return RON_ERR_OK;
    }
    err = read_fields(object, arena, fields, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (fields[DEBIT].size == 0)
        fields[DEBIT] = fields[DEBIT_ID];
    if (fields[CREDIT].size == 0)
        fields[CREDIT] = fields[CREDIT_ID];
    if (lines == LEDGER_LINES_CSV)
        put_csv(buf, fields);
    else
        put_journal(buf, fields);
    return RON_ERR_OK;
}
