/*
 * ledger_import_line.c - a line of an import. See ledger_import_line.h.
 */
#include "cli/ledger_import_line.h"

#include "base/json_write.h"
#include "base/rfc3339.h"

static const struct exported_kind {
    const char *kind, *debit, *credit, *needs;
} exported_kinds[] = {
    {"Mint", NULL, "to", "credit"},       {"Burn", "from", NULL, "debit"},
    {"Transfer", "from", "to", "credit"}, {"Hold", "from", NULL, "payee"},
    {"Capture", NULL, NULL, "hold_id"},   {"Release", NULL, NULL, "hold_id"},
    {"Reverse", NULL, NULL, "ref"},       {"Credit", NULL, "account", "credit"},
    {"Debit", "account", NULL, "debit"},  {"Anchor", NULL, NULL, "stream"},
};

/* --- Reading ---------------------------------------------------------------------------------- */

static bool is_kind(const struct row *row, const char *kind)
{
    return ron_slice_equal(row_text(row, "kind"), ron_slice_text(kind));
}

static enum ron_err find_kind(const struct row *row, const struct exported_kind **ret_kind,
                              struct ron_errinfo *reterr)
{
    const struct ron_slice hold_id = row_text(row, "hold_id");

    for (size_t i = 0; i < RON_ARRAY_COUNT(exported_kinds); i++) {
        const struct exported_kind *kind = &exported_kinds[i];

        if (!is_kind(row, kind->kind))
            continue;
        if (row_text(row, kind->needs).size == 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "a %s without its %s", kind->kind,
                            kind->needs);
        if (hold_id.size > 0 && memchr(hold_id.data, '/', hold_id.size) != NULL)
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "a payout of a run cannot be done again from its line: send the run's "
                            "intents, or restore a backup");
        *ret_kind = kind;
        return RON_ERR_OK;
    }
    return ron_fail(reterr, RON_ERR_MALFORMED, "no kind that a client may write");
}

enum ron_err import_line_read(struct ron_slice text, struct ron_arena *arena,
                              struct import_line *ret_line, struct ron_errinfo *reterr)
{
    struct import_line line = {.kind = IMPORT_LINE_EMPTY, .text = text};
    enum ron_err err = RON_ERR_OK;

    if (text.size > IMPORT_LINE_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a line of more than %d bytes",
                        (int)IMPORT_LINE_SIZE_MAX);
    if (text.size > 0)
        err = row_read(text, arena, &line.row, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (text.size == 0) {
        line.kind = IMPORT_LINE_EMPTY;
    } else if (!row_u64(&line.row, "batch_no", &line.group)) {
        line.kind = IMPORT_LINE_PLAIN;
    } else if (is_kind(&line.row, "Asset")) {
        line.kind = IMPORT_LINE_ASSET;
        line.terms = row_text(&line.row, "terms");
    } else if (ron_slice_equal(row_text(&line.row, "by_ledger"), RON_SLICE("true"))) {
        line.kind = IMPORT_LINE_OWN;
    } else {
        line.kind = IMPORT_LINE_EXPORTED;
        line.tenant = row_text(&line.row, "tenant");
        line.is_hold = is_kind(&line.row, "Hold");
        line.is_capture = is_kind(&line.row, "Capture");
        line.hold_id = row_text(&line.row, "hold_id");
        line.hold_is_for_any = ron_slice_equal(row_text(&line.row, "payee"), RON_SLICE("*"));
        err = find_kind(&line.row, &line.exported, reterr);
    }
    if (err == RON_ERR_OK)
        *ret_line = line;
    return err;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static void put_as(struct ron_json_writer *writer, const struct row *row, const char *name,
                   const char *as)
{
    for (size_t i = 0; i < row->count; i++) {
        if (!ron_slice_equal(row->members[i].name, ron_slice_text(name)))
            continue;
        ron_json_put_name(writer, as);
        if (row->members[i].is_string)
            ron_json_put_string(writer, row->members[i].text);
        else
            ron_json_put_raw(writer, row->members[i].text);
    }
}

/* A Hold's end, and none before `until_ms`. */
static enum ron_err put_expiry(struct ron_json_writer *writer, const struct row *row,
                               uint64_t until_ms, struct ron_errinfo *reterr)
{
    struct ron_slice text = row_text(row, "expires_at");
    char until[RON_RFC3339_SIZE];
    uint64_t expires_ms = 0;
    enum ron_err err = RON_ERR_OK;

    if (text.size > 0)
        err = ron_rfc3339_parse(text, &expires_ms, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "expires_at");
    if (text.size > 0 && expires_ms < until_ms) {
        ron_rfc3339_print(until_ms, until);
        text = ron_slice_text(until);
    }
    if (text.size > 0) {
        ron_json_put_name(writer, "expires_at");
        ron_json_put_string(writer, text);
    }
    return RON_ERR_OK;
}

/* As it was asked for once. with_to: a Capture that says for whom. */
static enum ron_err put_exported(const struct import_line *line, bool with_to, uint64_t until_ms,
                                 struct ron_buf *buf, struct ron_errinfo *reterr)
{
    static const char *const kept[] = {"id",   "kind",   "asset",  "amount", "nonce",   "memo",
                                       "meta", "digest", "stream", "ref",    "hold_id", "payee"};
    const struct exported_kind *kind = line->exported;
    struct ron_json_writer writer;
    enum ron_err err;

    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    for (size_t i = 0; i < RON_ARRAY_COUNT(kept); i++)
        put_as(&writer, &line->row, kept[i], kept[i]);
    if (kind->debit != NULL)
        put_as(&writer, &line->row, "debit", kind->debit);
    if (kind->credit != NULL || with_to)
        put_as(&writer, &line->row, "credit", with_to ? "to" : kind->credit);
    err = put_expiry(&writer, &line->row, until_ms, reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}

enum ron_err import_line_put(const struct import_line *line, bool for_any, uint64_t holds_until_ms,
                             struct ron_buf *buf, struct ron_errinfo *reterr)
{
    if (line->kind == IMPORT_LINE_PLAIN)
        return ron_buf_append(buf, line->text.data, line->text.size, reterr);
    return put_exported(line, for_any && line->is_capture, holds_until_ms, buf, reterr);
}
