/*
 * ledger_export.c - `ron ledger export`: every entry as JSON lines, CSV, or a journal that
 * ledger-cli and hledger read.
 *
 * Server and directory give the same objects (ledger/record_json.h); a format turns one of them
 * into its lines.
 */
#include <string.h>

#include "base/printable.h"
#include "cli/ledger_impl.h"
#include "ledger/record_json.h"
#include "ledger/replay_dir.h"

enum { OUT_SIZE_MAX = 64 << 20, RECORD_SIZE_MAX = 64 << 10, PAGE = 1000, TEXT_SIZE = 1024 };

struct exporting {
    const struct ledger_args *args;
    int (*put)(struct exporting *export, const struct row *row, struct ron_slice object);
    struct ron_buf out; /* for --out; else straight to stdout */
    struct ron_buf record;
    struct ron_arena arena;
    uint64_t entries_count, last_seq;
};

static void put_out(struct exporting *export, const char *text, size_t size)
{
    if (export->args->out != NULL)
        ron_buf_put(&export->out, text, size);
    else
        (void)fwrite(text, 1, size, stdout); /* main asks whether it arrived */
}

static void put_text(struct exporting *export, const char *text)
{
    put_out(export, text, strlen(text));
}

static void put_slice(struct exporting *export, struct ron_slice text)
{
    put_out(export, (const char *)text.data, text.size);
}

/* --- Formats ---------------------------------------------------------------------------------- */

static int put_jsonl(struct exporting *export, const struct row *row, struct ron_slice object)
{
    (void)row;
    put_slice(export, object);
    put_text(export, "\n");
    return CMD_OK;
}

static const char *const csv_columns[] = {
    "seq",   "id",   "kind",   "debit",  "credit",       "amount",   "asset",
    "nonce", "memo", "tenant", "caller", "committed_at", "batch_no",
};

/* RFC 4180. */
static void put_field(struct exporting *export, struct ron_slice text)
{
    put_text(export, "\"");
    for (size_t i = 0; i < text.size; i++)
        put_out(export, text.data[i] == '"' ? "\"\"" : (const char *)&text.data[i],
                text.data[i] == '"' ? 2 : 1);
    put_text(export, "\"");
}

static struct ron_slice side_of(const struct row *row, const char *name, const char *id_name)
{
    const struct ron_slice text = row_text(row, name);

    return text.size > 0 ? text : row_text(row, id_name);
}

static int put_csv(struct exporting *export, const struct row *row, struct ron_slice object)
{
    (void)object;
    for (size_t i = 0; i < RON_ARRAY_COUNT(csv_columns); i++) {
        struct ron_slice text = row_text(row, csv_columns[i]);

        if (strcmp(csv_columns[i], "debit") == 0)
            text = side_of(row, "debit", "debit_id");
        else if (strcmp(csv_columns[i], "credit") == 0)
            text = side_of(row, "credit", "credit_id");
        if (i > 0)
            put_text(export, ",");
        put_field(export, text);
    }
    put_text(export, "\r\n");
    return CMD_OK;
}

/* Accounts are a tree there, with ':' between; ours with '/'. */
static void put_account(struct exporting *export, struct ron_slice name)
{
    for (size_t i = 0; i < name.size; i++)
        put_out(export, name.data[i] == '/' ? ":" : (const char *)&name.data[i], 1);
}

/* A transaction each; what moves nothing is a comment. The asset in quotes: digits and dashes. */
static int put_ledger(struct exporting *export, const struct row *row, struct ron_slice object)
{
    const struct ron_slice amount = row_text(row, "amount"), time = row_text(row, "committed_at");
    struct ron_slice asset = row_text(row, "asset");
    char memo[TEXT_SIZE];

    (void)object;
    if (asset.size == 0)
        asset = row_text(row, "asset_no");
    if (amount.size == 0 || time.size < 10) {
        put_text(export, "; ");
        put_slice(export, row_text(row, "kind"));
        put_text(export, " ");
        put_slice(export, row_text(row, "id"));
        put_text(export, "\n\n");
        return CMD_OK;
    }
    put_slice(export, ron_slice_of(time.data, 10));
    put_text(export, " * (");
    put_slice(export, row_text(row, "seq"));
    put_text(export, ") ");
    put_slice(export, row_text(row, "kind"));
    put_text(export, " ");
    put_slice(export, row_text(row, "id"));
    if (row_text(row, "memo").size > 0) {
        put_text(export, "  ; ");
        put_text(export, ron_printable(row_text(row, "memo"), memo, sizeof(memo)));
    }
    for (unsigned side = 0; side < 2; side++) {
        put_text(export, "\n    ");
        put_account(export, side == 0 ? side_of(row, "credit", "credit_id")
                                      : side_of(row, "debit", "debit_id"));
        put_text(export, side == 0 ? "  " : "  -");
        put_slice(export, amount);
        put_text(export, " \"");
        put_slice(export, asset);
        put_text(export, "\"");
    }
    put_text(export, "\n\n");
    return CMD_OK;
}

static void put_titles(struct exporting *export)
{
    if (export->put != put_csv)
        return;
    for (size_t i = 0; i < RON_ARRAY_COUNT(csv_columns); i++) {
        put_text(export, i > 0 ? "," : "");
        put_text(export, csv_columns[i]);
    }
    put_text(export, "\r\n");
}

/* --- From a server ---------------------------------------------------------------------------- */

static int take_row(void *context, const struct row *row, struct ron_slice object)
{
    struct exporting *export = context;

    if (!row_u64(row, "seq", &export->last_seq))
        return CMD_FAILED;
    export->entries_count++;
    return export->put(export, row, object);
}

static int export_page(struct exporting *export, struct session *session, uint64_t *after,
                       bool *ret_more) RON_BLOCKS
{
    const uint64_t before = export->entries_count;
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct row page;
    int status;

    path_begin(session, "/entries");
    path_query_u64(session, "after", *after);
    path_query_u64(session, "limit", PAGE);
    status = session_get(session);
    if (status != CMD_OK)
        return status;
    if (ron_arena_init(&arena, 2 * session_body(session).size + 64, &info) != RON_ERR_OK ||
        row_read(session_body(session), &arena, &page, &info) != RON_ERR_OK)
        status = ledger_failed(export->args, &info);
    else
        status = rows_each(export->args, row_text(&page, "entries"), take_row, export);
    ron_arena_fini(&arena);
    *after = export->last_seq;
    *ret_more = export->entries_count > before;
    ledger_progress(export->args, "export", export->entries_count, 0);
    return status;
}

static int export_server(struct exporting *export) RON_BLOCKS
{
    struct session session;
    uint64_t after;
    bool more = true;
    int status;

    if (!ledger_number(export->args, "from", export->args->from, 1, 1, UINT64_MAX, &after))
        return CMD_USAGE;
    after--;
    status = session_open(&session, export->args);
    while (status == CMD_OK && more)
        status = export_page(export, &session, &after, &more);
    session_close(&session);
    return status;
}

/* --- From a directory ------------------------------------------------------------------------- */

static enum ron_err take_record(void *context, const struct ledger_record *record,
                                const struct ledger_record_names *names, struct ron_errinfo *reterr)
{
    struct exporting *export = context;
    struct ron_json_writer writer;
    struct row row;
    enum ron_err err;

    ron_buf_reset(&export->record);
    ron_arena_reset(&export->arena);
    ron_json_writer_init(&writer, &export->record, RON_JSON_FIXED);
    ledger_put_record(&writer, record, names, false);
    err = ron_json_writer_end(&writer, reterr);
    if (err == RON_ERR_OK)
        err = row_read(ron_buf_slice(&export->record), &export->arena, &row, reterr);
    if (err == RON_ERR_OK && take_row(export, &row, ron_buf_slice(&export->record)) != CMD_OK)
        err = ron_fail(reterr, RON_ERR_INTERNAL, "an entry without its number");
    return err;
}

static void tell(void *context, uint64_t done, uint64_t total)
{
    const struct exporting *export = context;

    ledger_progress(export->args, "export", done, total);
}

static int export_dir(struct exporting *export) RON_BLOCKS
{
    static struct ledger_replay_dir_report report;
    struct ledger_replay_dir_options options = {
        .dir = "ledger", .visit = take_record, .progress = tell, .context = export};
    struct ron_errinfo info = {0};
    const char *path = export->args->data != NULL ? export->args->data : "ron-data";
    int status;

    if (export->args->from != NULL)
        return ledger_usage(export->args, "--from is for a server");
    status = dir_open(export->args, path, false, &options.vfs);
    if (status != CMD_OK)
        return status;
    if (ron_arena_init(&export->arena, 4 * RECORD_SIZE_MAX, &info) != RON_ERR_OK)
        status = ledger_failed(export->args, &info);
    else if (ledger_replay_dir(&options, &report, &info) != RON_ERR_OK) {
        (void)ledger_failed(export->args, &info);
        status = damage_status(info.err);
    }
    ron_arena_fini(&export->arena);
    (void)io_vfs_free(options.vfs);
    return status;
}

int ledger_export(const struct ledger_args *args)
{
    struct exporting export = {.args = args, .put = put_jsonl};
    struct ron_errinfo info = {0};
    int status;

    if (args->format != NULL && strcmp(args->format, "csv") == 0)
        export.put = put_csv;
    else if (args->format != NULL && strcmp(args->format, "ledger") == 0)
        export.put = put_ledger;
    else if (args->format != NULL && strcmp(args->format, "jsonl") != 0)
        return ledger_usage(args, "--format is jsonl, csv or ledger");
    ron_buf_init(&export.out, OUT_SIZE_MAX);
    ron_buf_init(&export.record, RECORD_SIZE_MAX);
    put_titles(&export);
    if (args->url != NULL && strcmp(args->url, "none") == 0)
        status = export_dir(&export);
    else
        status = export_server(&export);
    ledger_progress(args, NULL, 0, 0);
    if (status == CMD_OK && args->out != NULL) {
        if (ron_buf_check(&export.out, &info) != RON_ERR_OK)
            status = ledger_failed(args, &info);
        else
            status = write_named(args, args->out, "", ron_buf_slice(&export.out));
        if (status == CMD_OK)
            printf(args->json ? "{\"entries\":%llu}\n" : "%llu entries\n",
                   (unsigned long long)export.entries_count);
    }
    ron_buf_fini(&export.record);
    ron_buf_fini(&export.out);
    return status;
}
