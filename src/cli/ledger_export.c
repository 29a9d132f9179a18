/*
 * ledger_export.c - `ron ledger export`: every entry as JSON lines, CSV, or a journal that
 * ledger-cli and hledger read.
 *
 * Server and directory give the same objects (ledger/record_json.h); ledger/record_lines.h turns
 * one of them into its lines. With --out they are a file that is written piece by piece under
 * another name: memory is bounded whatever its size.
 */
#include <string.h>

#include "cli/ledger_impl.h"
#include "ledger/record_lines.h"
#include "ledger/replay_dir.h"
#include "rt/registry.h"

enum { RECORD_SIZE_MAX = 64 << 10, PAGE = 1000 };

struct exporting {
    const struct ledger_args *args;
    enum ledger_lines form;
    struct named out; /* of --out */
    struct ron_buf record, lines;
    struct ron_arena arena;
    uint64_t entries_count, last_seq;
};

static enum ron_err put_lines(struct exporting *export, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = ron_buf_check(&export->lines, reterr);

    if (err == RON_ERR_OK && export->args->out != NULL)
        err = named_put(&export->out, ron_buf_slice(&export->lines), reterr);
    else if (err == RON_ERR_OK && export->lines.size > 0)
        (void)fwrite(export->lines.data, 1, export->lines.size, stdout); /* main asks for errors */
    return err;
}

/* One entry, as its JSON object says it. */
static enum ron_err put_entry(struct exporting *export, struct ron_slice object,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    ron_buf_reset(&export->lines);
    ron_arena_reset(&export->arena);
    err = ledger_lines_put(export->form, object, &export->arena, &export->lines, reterr);
    return err == RON_ERR_OK ? put_lines(export, reterr) : err;
}

/* --- From a server ---------------------------------------------------------------------------- */

static int take_row(void *context, const struct row *row, struct ron_slice object) RON_BLOCKS
{
    struct exporting *export = context;
    struct ron_errinfo info = {0};

    if (!row_u64(row, "seq", &export->last_seq))
        return CMD_FAILED;
    export->entries_count++;
    return put_entry(export, object, &info) == RON_ERR_OK ? CMD_OK
                                                          : ledger_failed(export->args, &info);
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
    if (status == CMD_UNREACHED)
        fprintf(stderr, "ron ledger export: without a server: --url none --data %s\n",
                export->args->data != NULL ? export->args->data : "DIR");
    return status;
}

/* --- From a directory ------------------------------------------------------------------------- */

static enum ron_err take_record(void *context, const struct ledger_record *record,
                                const struct ledger_record_names *names,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct exporting *export = context;
    struct ron_json_writer writer;
    enum ron_err err;

    ron_buf_reset(&export->record);
    ron_json_writer_init(&writer, &export->record, RON_JSON_FIXED);
    ledger_put_record(&writer, record, names, false);
    err = ron_json_writer_end(&writer, reterr);
    if (err == RON_ERR_OK)
        err = put_entry(export, ron_buf_slice(&export->record), reterr);
    export->entries_count++;
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
    status = dir_open(export->args, path, LEDGER_DIR_EXPECTED, &options.vfs);
    if (status != CMD_OK)
        return status;
    rt_init(); /* the replay has a task */
    if (ledger_replay_dir(&options, &report, &info) != RON_ERR_OK) {
        (void)ledger_failed(export->args, &info);
        status = damage_status(info.err);
    }
    (void)io_vfs_free(options.vfs);
    return status;
}

int ledger_export(const struct ledger_args *args)
{
    struct exporting export = {.args = args, .form = LEDGER_LINES_JSON};
    struct ron_errinfo info = {0};
    int status = CMD_OK;

    if (args->format != NULL && !ledger_lines_find(ron_slice_text(args->format), &export.form))
        return ledger_usage(args, "--format is jsonl, csv or journal");
    ron_buf_init(&export.record, RECORD_SIZE_MAX);
    ron_buf_init(&export.lines, 4 * RECORD_SIZE_MAX);
    if (args->out != NULL)
        status = named_begin(&export.out, args, args->out, "");
    ledger_lines_begin(export.form, &export.lines);
    if (status == CMD_OK &&
        (ron_arena_init(&export.arena, 4 * RECORD_SIZE_MAX, &info) != RON_ERR_OK ||
         put_lines(&export, &info) != RON_ERR_OK))
        status = ledger_failed(args, &info);
    if (status == CMD_OK)
        status = args->url != NULL && strcmp(args->url, "none") == 0 ? export_dir(&export)
                                                                     : export_server(&export);
    ledger_progress(args, NULL, 0, 0);
    if (status == CMD_OK && args->out != NULL) {
        status = named_commit(&export.out, args);
        if (status == CMD_OK)
            printf(args->json ? "{\"entries\":%llu}\n" : "%llu entries\n",
                   (unsigned long long)export.entries_count);
    }
    named_abandon(&export.out); /* of a failure: what was there before stays */
    ron_arena_fini(&export.arena);
    ron_buf_fini(&export.lines);
    ron_buf_fini(&export.record);
    return status;
}
