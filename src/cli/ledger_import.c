/*
 * ledger_import.c - `ron ledger import`: JSON lines into a server, batch by batch.
 *
 * Every batch has a key made of the file's bytes and its number: the same file again repeats the
 * same batches under the same keys, and the server answers as before.
 *
 * A line of `export` becomes the entry that its client once asked for. What the ledger wrote itself
 * is passed over: this one writes its own.
 */
#include <string.h>

#include "base/b3.h"
#include "base/hex.h"
#include "base/json_write.h"
#include "base/rfc3339.h"
#include "cli/ledger_holds.h"
#include "cli/ledger_impl.h"
#include "io/path_file.h"

enum {
    FILE_SIZE_MAX = 512 << 20,
    BATCH_SIZE_MAX = RON_BODY_SIZE_MAX - 64, /* of the entries, without what is around them */
    CHUNK_DEFAULT = 500,
    LINE_SIZE_MAX = 64 << 10,
    PREFIX_SIZE = RON_IDEM_KEY_SIZE_MAX + 1,
};

struct import {
    struct session session;
    const struct ledger_args *args;
    char prefix[PREFIX_SIZE];
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

static bool is_kind(const struct row *row, const char *kind)
{
    return ron_slice_equal(row_text(row, "kind"), ron_slice_text(kind));
}

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

/* How an exported entry was asked for: where its accounts stood, and what its line must have
 * besides. */
static const struct exported_kind {
    const char *kind, *debit, *credit, *needs;
} exported_kinds[] = {
    {"Mint", NULL, "to", "credit"},       {"Burn", "from", NULL, "debit"},
    {"Transfer", "from", "to", "credit"}, {"Hold", "from", NULL, "payee"},
    {"Capture", NULL, NULL, "hold_id"},   {"Release", NULL, NULL, "hold_id"},
    {"Reverse", NULL, NULL, "ref"},       {"Credit", NULL, "account", "credit"},
    {"Debit", "account", NULL, "debit"},  {"Anchor", NULL, NULL, "stream"},
};

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

/* A Hold's end, and no earlier than --holds-until. */
static enum ron_err put_expiry(const struct import *import, struct ron_json_writer *writer,
                               const struct row *row, struct ron_errinfo *reterr)
{
    struct ron_slice text = row_text(row, "expires_at");
    char until[RON_RFC3339_SIZE];
    uint64_t expires_ms = 0;
    enum ron_err err = RON_ERR_OK;

    if (text.size > 0)
        err = ron_rfc3339_parse(text, &expires_ms, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "expires_at");
    if (text.size > 0 && expires_ms < import->holds_until_ms) {
        ron_rfc3339_print(import->holds_until_ms, until);
        text = ron_slice_text(until);
    }
    if (text.size > 0) {
        ron_json_put_name(writer, "expires_at");
        ron_json_put_string(writer, text);
    }
    return RON_ERR_OK;
}

/* An exported entry as it was asked for once. `with_to`: a Capture that says for whom. */
static enum ron_err put_exported(struct import *import, const struct row *row,
                                 const struct exported_kind *kind, bool with_to,
                                 struct ron_errinfo *reterr)
{
    static const char *const kept[] = {"id",   "kind",   "asset",  "amount", "nonce",   "memo",
                                       "meta", "digest", "stream", "ref",    "hold_id", "payee"};
    struct ron_json_writer writer;
    enum ron_err err;

    ron_json_writer_init(&writer, &import->line, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    for (size_t j = 0; j < RON_ARRAY_COUNT(kept); j++)
        put_as(&writer, row, kept[j], kept[j]);
    if (kind->debit != NULL)
        put_as(&writer, row, "debit", kind->debit);
    if (kind->credit != NULL || with_to)
        put_as(&writer, row, "credit", with_to ? "to" : kind->credit);
    err = put_expiry(import, &writer, row, reterr);
    if (err != RON_ERR_OK)
        return err;
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}

/* One tenant's: ids are unique in a tenant, and a token writes for one. */
static enum ron_err check_tenant(struct import *import, const struct row *row,
                                 struct ron_errinfo *reterr)
{
    const struct ron_slice tenant = row_text(row, "tenant");

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

static int take_exported(struct import *import, const struct row *row) RON_BLOCKS
{
    const struct ron_slice hold_id = row_text(row, "hold_id");
    const struct exported_kind *kind = NULL;
    struct ron_errinfo info = {0};
    bool any = false;
    int status = CMD_OK;
    enum ron_err err = find_kind(row, &kind, &info);

    if (err == RON_ERR_OK)
        err = check_tenant(import, row, &info);
    if (err == RON_ERR_OK && is_kind(row, "Hold"))
        err = hold_set_add(&import->holds, hold_id,
                           ron_slice_equal(row_text(row, "payee"), RON_SLICE("*")), &info);
    if (err == RON_ERR_OK && is_kind(row, "Capture"))
        status = look_up_hold(import, hold_id, &any);
    if (err == RON_ERR_OK && status == CMD_OK)
        err = put_exported(import, row, kind, any, &info);
    return err == RON_ERR_OK ? status : say_bad_line(import, &info);
}

/* --- Batches ---------------------------------------------------------------------------------- */

static int say_line(const struct import *import, uint64_t line, int status)
{
    fprintf(stderr, "ron ledger import: %llu batches were written; this one begins at line %llu\n",
            (unsigned long long)import->batches_count, (unsigned long long)line);
    return status;
}

static int send_batch(struct import *import) RON_BLOCKS
{
    char key[PREFIX_SIZE + RON_DECIMAL_U64_SIZE];
    struct ron_errinfo info = {0};
    struct ron_buf body;
    int status;

    if (import->batch_lines == 0)
        return CMD_OK;
    (void)snprintf(key, sizeof(key), "%s-%llu", import->prefix,
                   (unsigned long long)import->batches_count + 1);
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
static int send_asset(struct import *import, const struct row *row) RON_BLOCKS
{
    int status = send_batch(import);

    if (status != CMD_OK)
        return status;
    path_begin(&import->session, "/assets");
    status = session_post(&import->session, row_text(row, "terms"), NULL);
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

static int take_line(struct import *import, struct ron_slice line) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct row row;
    uint64_t group = 0;
    bool exported;
    int status;
    enum ron_err err;

    import->lines_count++;
    ron_arena_reset(&import->arena);
    ron_buf_reset(&import->line);
    if (line.size == 0)
        return CMD_OK;
    err = row_read(line, &import->arena, &row, &info);
    exported = err == RON_ERR_OK && row_u64(&row, "batch_no", &group);
    if (exported && ron_slice_equal(row_text(&row, "by_ledger"), RON_SLICE("true")) &&
        !is_kind(&row, "Asset")) {
        import->passed_over++; /* the ledger writes its own */
        return CMD_OK;
    }
    if (exported && is_kind(&row, "Asset"))
        return send_asset(import, &row);
    if (err == RON_ERR_OK && !exported)
        err = ron_buf_append(&import->line, line.data, line.size, &info);
    if (err != RON_ERR_OK)
        return say_bad_line(import, &info);
    status = exported ? take_exported(import, &row) : CMD_OK;
    return status == CMD_OK ? add_entry(import, group) : status;
}

static int take_lines(struct import *import, struct ron_slice text) RON_BLOCKS
{
    size_t at = 0;
    int status = CMD_OK;

    while (at < text.size && status == CMD_OK) {
        const uint8_t *end = memchr(text.data + at, '\n', text.size - at);
        const size_t size = end == NULL ? text.size - at : (size_t)(end - (text.data + at));

        status = take_line(import, ron_slice_of(text.data + at, size));
        at += size + 1;
        if (import->lines_count % 100 == 0)
            ledger_progress(import->args, "import", at, text.size);
    }
    if (status == CMD_OK)
        status = send_batch(import);
    ledger_progress(import->args, NULL, 0, 0);
    return status;
}

static bool make_prefix(struct import *import, struct ron_slice text)
{
    const struct ron_b3 hash = ron_b3(text.data, text.size);
    char hex[RON_HEX_SIZE(16)];
    int size;

    (void)ron_hex_encode(ron_slice_of(hash.bytes, 16), hex, sizeof(hex));
    size = import->args->key != NULL
               ? snprintf(import->prefix, sizeof(import->prefix), "%s", import->args->key)
               : snprintf(import->prefix, sizeof(import->prefix), "import-%s-%llu", hex,
                          (unsigned long long)import->chunk);
    return size > 0 && (size_t)size + RON_DECIMAL_U64_SIZE < sizeof(import->prefix);
}

static int run(struct import *import, struct ron_slice text) RON_BLOCKS
{
    int status;

    if (!make_prefix(import, text))
        return ledger_usage(import->args, "--key is too long");
    status = take_lines(import, text);
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
    struct ron_errinfo info = {0};
    struct ron_buf text;
    int status;

    if (!ledger_number(args, "chunk", args->chunk, CHUNK_DEFAULT, 1, RON_BATCH_ENTRIES_MAX,
                       &import.chunk))
        return CMD_USAGE;
    if (args->holds_until != NULL && ron_rfc3339_parse(ron_slice_text(args->holds_until),
                                                       &import.holds_until_ms, NULL) != RON_ERR_OK)
        return ledger_usage(args, "--holds-until: a time as 2026-01-31T00:00:00Z");
    ron_buf_init(&text, FILE_SIZE_MAX);
    ron_buf_init(&import.entries, RON_BODY_SIZE_MAX);
    ron_buf_init(&import.line, LINE_SIZE_MAX);
    status = session_open(&import.session, args);
    if (status == CMD_OK &&
        (ron_arena_init(&import.arena, 4 * LINE_SIZE_MAX, &info) != RON_ERR_OK ||
         io_path_read(args->words[0], FILE_SIZE_MAX, &text, &info) != RON_ERR_OK))
        status = ledger_failed(args, &info);
    if (status == CMD_OK)
        status = run(&import, ron_buf_slice(&text));
    session_close(&import.session);
    ron_arena_fini(&import.arena);
    hold_set_fini(&import.holds);
    ron_buf_fini(&import.line);
    ron_buf_fini(&import.entries);
    ron_buf_fini(&text);
    return status;
}
