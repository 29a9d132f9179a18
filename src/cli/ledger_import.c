/*
 * ledger_import.c - `ron ledger import`: JSON lines into a server, batch by batch.
 *
 * The file is read line by line, in bounded memory. Every batch has a key made of the lines up to
 * its end: the same file again repeats the same batches under the same keys, and the server answers
 * as before; so it does for the part of a file that was the same.
 *
 * What a line is: ledger_import_line.h.
 */
#include <string.h>

#include "base/assert.h"
#include "base/b3.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/rfc3339.h"
#include "cli/ledger_holds.h"
#include "cli/ledger_impl.h"
#include "cli/ledger_import_line.h"
#include "io/path_file.h"

enum {
    BATCH_SIZE_MAX = RON_BODY_SIZE_MAX - 64, /* of the entries, without what is around them */
    CHUNK_DEFAULT = 500,
    KEY_SIZE_MAX = RON_IDEM_KEY_SIZE_MAX - RON_DECIMAL_U64_SIZE, /* before "-" and a number */
};

struct import {
    struct session session;
    const struct ledger_args *args;
    struct ron_b3_ctx hash; /* of the lines before the one at hand */
    uint64_t chunk;
    struct ron_buf entries; /* with commas between */
    struct ron_buf line;    /* the entry of the line at hand */
    struct ron_arena arena;
    uint64_t lines_count, batch_lines, batch_first; /* batch_first: its first line */
    uint64_t last_group;                            /* batch of the exported line before; 0: none */
    uint64_t batches_count, entries_count, passed_over, repeated;
    struct hold_set holds;   /* of the lines so far, and those the server was asked about */
    uint64_t holds_until_ms; /* none ends before; 0: each as its line says */
    char tenant[RON_DECIMAL_U128_SIZE]; /* of the exported lines; empty: none yet */
};

/* --- Lines ------------------------------------------------------------------------------------ */

/* Is the hold for any payee? Its Hold is a line of before, or in the server. */
static int look_up_hold(struct import *import, struct ron_slice hold_id, bool *ret_any) RON_BLOCKS
{
    char text[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct row row;
    int status;

    if (hold_set_find(&import->holds, hold_id, ret_any))
        return CMD_OK;
    (void)snprintf(text, sizeof(text), "%.*s", RON_SLICE_FMT(hold_id));
    path_begin(&import->session, "/holds/");
    path_segment(&import->session, text);
    status = session_get(&import->session);
    if (status != CMD_OK)
        return status;
    if (ron_arena_init(&arena, 2 * session_body(&import->session).size + 64, &info) != RON_ERR_OK ||
        row_read(session_body(&import->session), &arena, &row, &info) != RON_ERR_OK) {
        status = ledger_failed(import->args, &info);
    } else {
        *ret_any = ron_slice_equal(row_text(&row, "payee"), RON_SLICE("*"));
        if (hold_set_add(&import->holds, hold_id, *ret_any, &info) != RON_ERR_OK)
            status = ledger_failed(import->args, &info);
    }
    ron_arena_fini(&arena);
    return status;
}

/* One tenant's: ids are unique in a tenant, and a token writes for one. */
static enum ron_err check_tenant(struct import *import, struct ron_slice tenant,
                                 struct ron_errinfo *reterr)
{
    if (tenant.size >= sizeof(import->tenant))
        return ron_fail(reterr, RON_ERR_MALFORMED, "no tenant");
    if (import->tenant[0] == '\0')
        (void)snprintf(import->tenant, sizeof(import->tenant), "%.*s", RON_SLICE_FMT(tenant));
    if (!ron_slice_equal(tenant, ron_slice_text(import->tenant)))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "of tenant %.*s, lines before of tenant %s: import each by itself, with "
                        "its own token",
                        RON_SLICE_FMT(tenant), import->tenant);
    return RON_ERR_OK;
}

static int say_bad_line(const struct import *import, const struct ron_errinfo *info)
{
    fprintf(stderr, "ron ledger import: line %llu: %s\n", (unsigned long long)import->lines_count,
            info->message);
    return CMD_FAILED;
}

/* The entry of the line into import->line. */
static int take_entry(struct import *import, const struct import_line *line) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    bool for_any = false;
    int status = CMD_OK;
    enum ron_err err = RON_ERR_OK;

    if (line->kind == IMPORT_LINE_EXPORTED)
        err = check_tenant(import, line->tenant, &info);
    if (err == RON_ERR_OK && line->is_hold)
        err = hold_set_add(&import->holds, line->hold_id, line->hold_is_for_any, &info);
    if (err == RON_ERR_OK && line->is_capture)
        status = look_up_hold(import, line->hold_id, &for_any);
    if (err == RON_ERR_OK && status == CMD_OK)
        err = import_line_put(line, for_any, import->holds_until_ms, &import->line, &info);
    return err == RON_ERR_OK ? status : say_bad_line(import, &info);
}

/* --- Batches ---------------------------------------------------------------------------------- */

static int say_line(const struct import *import, uint64_t line, int status)
{
    fprintf(stderr, "ron ledger import: %llu batches were written; this one begins at line %llu\n",
            (unsigned long long)import->batches_count, (unsigned long long)line);
    return status;
}

/* Of all lines up to the end of the batch: they alone say what is in it. */
static void make_key(const struct import *import, char ret_key[static RON_IDEM_KEY_SIZE_MAX + 1])
{
    const unsigned long long number = import->batches_count + 1;
    char hex[RON_HEX_SIZE(16)];
    struct ron_b3 hash;
    int size;

    if (import->args->key != NULL) {
        size = snprintf(ret_key, RON_IDEM_KEY_SIZE_MAX + 1, "%s-%llu", import->args->key, number);
    } else {
        hash = ron_b3_final(&import->hash);
        (void)ron_hex_encode(ron_slice_of(hash.bytes, 16), hex, sizeof(hex));
        size = snprintf(ret_key, RON_IDEM_KEY_SIZE_MAX + 1, "import-%s-%llu-%llu", hex,
                        (unsigned long long)import->chunk, number);
    }
    RON_ASSERT(size > 0 && size <= RON_IDEM_KEY_SIZE_MAX);
}

static int send_batch(struct import *import) RON_BLOCKS
{
    char key[RON_IDEM_KEY_SIZE_MAX + 1];
    struct ron_errinfo info = {0};
    struct ron_buf body;
    int status;

    if (import->batch_lines == 0)
        return CMD_OK;
    make_key(import, key);
    ron_buf_init(&body, RON_BODY_SIZE_MAX);
    ron_buf_put_text(&body, "{\"batch\":[");
    ron_buf_put(&body, import->entries.data, import->entries.size);
    ron_buf_put_text(&body, "]}");
    if (ron_buf_check(&body, &info) == RON_ERR_OK) {
        path_begin(&import->session, "/ingest");
        status = session_post(&import->session, ron_buf_slice(&body), key);
    } else {
        status = ledger_failed(import->args, &info);
    }
    ron_buf_fini(&body);
    if (status != CMD_OK) {
        if (import->session.reply.head.status == 410)
            fputs("ron ledger import: a hold of this batch has ended; --holds-until TIME lets none "
                  "end before TIME\n",
                  stderr);
        return say_line(import, import->batch_first, status);
    }
    if (http_response_find(&import->session.reply.head, "idempotent-replay") != NULL)
        import->repeated++;
    import->batches_count++;
    import->entries_count += import->batch_lines;
    import->batch_lines = 0;
    ron_buf_reset(&import->entries);
    return CMD_OK;
}

/* An asset is a request of its own; one that is there already with these terms is fine. */
static int send_asset(struct import *import, const struct import_line *line) RON_BLOCKS
{
    int status = send_batch(import);

    if (status != CMD_OK)
        return status;
    path_begin(&import->session, "/assets");
    status = session_post(&import->session, line->terms, NULL);
    import->entries_count += status == CMD_OK;
    return status == CMD_OK ? CMD_OK : say_line(import, import->lines_count, status);
}

static int add_entry(struct import *import, uint64_t group) RON_BLOCKS
{
    const bool whole = group == 0 || group != import->last_group; /* of what is there already */
    struct ron_errinfo info = {0};
    int status = CMD_OK;

    if (whole && (import->batch_lines >= import->chunk ||
                  import->entries.size + import->line.size + 1 > BATCH_SIZE_MAX))
        status = send_batch(import);
    if (status != CMD_OK)
        return status;
    if (import->batch_lines == 0)
        import->batch_first = import->lines_count;
    else
        ron_buf_put_byte(&import->entries, ',');
    ron_buf_put(&import->entries, import->line.data, import->line.size);
    import->batch_lines++;
    import->last_group = group;
    if (ron_buf_check(&import->entries, &info) != RON_ERR_OK)
        return say_line(import, import->batch_first, ledger_failed(import->args, &info));
    return CMD_OK;
}

static int take_line(struct import *import, struct ron_slice text) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct import_line line;
    int status;

    ron_arena_reset(&import->arena);
    ron_buf_reset(&import->line);
    if (import_line_read(text, &import->arena, &line, &info) != RON_ERR_OK)
        return say_bad_line(import, &info);
    switch (line.kind) {
    case IMPORT_LINE_EMPTY:
        return CMD_OK;
    case IMPORT_LINE_OWN:
        import->passed_over++;
        return CMD_OK;
    case IMPORT_LINE_ASSET:
        return send_asset(import, &line);
    case IMPORT_LINE_PLAIN:
    case IMPORT_LINE_EXPORTED:
    default:
        status = take_entry(import, &line);
        return status == CMD_OK ? add_entry(import, line.group) : status;
    }
}

/* What a line sends before itself has a key of the lines before it: it is hashed afterwards. */
static int take_lines(struct import *import, struct io_path_lines *lines) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_slice line;
    bool there = true;
    int status = CMD_OK;

    while (status == CMD_OK) {
        import->lines_count++;
        if (io_path_lines_next(lines, &line, &there, &info) != RON_ERR_OK)
            status = say_bad_line(import, &info);
        if (status != CMD_OK || !there)
            break;
        status = take_line(import, line);
        ron_b3_update(&import->hash, line.data, line.size);
        ron_b3_update(&import->hash, "\n", 1);
        if (import->lines_count % 100 == 0)
            ledger_progress(import->args, "import", lines->done, lines->total);
    }
    if (status == CMD_OK)
        status = send_batch(import);
    ledger_progress(import->args, NULL, 0, 0);
    return status;
}

static int run(struct import *import, struct io_path_lines *lines) RON_BLOCKS
{
    const int status = take_lines(import, lines);

    if (status != CMD_OK)
        return status;
    printf(import->args->json ? "{\"batches\":%llu,\"entries\":%llu,\"repeated\":%llu,"
                                "\"passed_over\":%llu}\n"
                              : "%llu batches with %llu entries, %llu of them known before; %llu "
                                "lines of the ledger's own passed over\n",
           (unsigned long long)import->batches_count, (unsigned long long)import->entries_count,
           (unsigned long long)import->repeated, (unsigned long long)import->passed_over);
    return CMD_OK;
}

int ledger_import(const struct ledger_args *args)
{
    struct import import = {.args = args};
    struct io_path_lines lines = {.total = 0};
    struct ron_errinfo info = {0};
    int status;

    if (!ledger_number(args, "chunk", args->chunk, CHUNK_DEFAULT, 1, RON_BATCH_ENTRIES_MAX,
                       &import.chunk))
        return CMD_USAGE;
    if (args->holds_until != NULL && ron_rfc3339_parse(ron_slice_text(args->holds_until),
                                                       &import.holds_until_ms, NULL) != RON_ERR_OK)
        return ledger_usage(args, "--holds-until: a time as 2026-01-31T00:00:00Z");
    if (args->key != NULL && strlen(args->key) > KEY_SIZE_MAX)
        return ledger_usage(args, "--key is too long");
    ron_b3_init(&import.hash);
    ron_buf_init(&import.entries, RON_BODY_SIZE_MAX);
    ron_buf_init(&import.line, 2 * IMPORT_LINE_SIZE_MAX);
    status = session_open(&import.session, args);
    if (status == CMD_OK &&
        (ron_arena_init(&import.arena, IMPORT_LINE_ARENA_SIZE, &info) != RON_ERR_OK ||
         io_path_lines_open(&lines, args->words[0], IMPORT_LINE_SIZE_MAX, &info) != RON_ERR_OK))
        status = ledger_failed(args, &info);
    if (status == CMD_OK)
        status = run(&import, &lines);
    io_path_lines_close(&lines);
    session_close(&import.session);
    ron_arena_fini(&import.arena);
    hold_set_fini(&import.holds);
    ron_buf_fini(&import.line);
    ron_buf_fini(&import.entries);
    return status;
}
