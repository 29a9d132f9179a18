/*
 * ledger_read.c - `ron ledger balance | history | entries | holds | assets | limits`.
 */
#include <string.h>

#include "cli/ledger_impl.h"

enum { PAGE_MAX = 1000 };

static const struct column entry_columns[] = {
    {"SEQ", 8, {"seq"}},
    {"KIND", -8, {"kind"}},
    {"DEBIT", -24, {"debit", "debit_id"}},
    {"CREDIT", -24, {"credit", "credit_id"}},
    {"AMOUNT", 20, {"amount"}},
    {"ASSET", -8, {"asset", "asset_no"}},
    {"COMMITTED", -24, {"committed_at"}},
    {"ID", -1, {"id"}},
};
static const struct column asset_columns[] = {
    {"ASSET", -16, {"asset", "name"}},
    {"DECIMALS", 8, {"decimals"}},
    {"MAX_SUPPLY", -39, {"max_supply"}},
};

struct listing {
    const struct ledger_args *args;
    const struct column *columns;
    size_t columns_count;
    uint64_t rows_count;
    bool titled;
};

/* A line each: of the table, or with --json the object. */
static int list_row(void *context, const struct row *row, struct ron_slice object)
{
    struct listing *listing = context;

    listing->rows_count++;
    if (listing->args->json) {
        printf("%.*s\n", RON_SLICE_FMT(object));
        return CMD_OK;
    }
    if (!listing->titled)
        print_titles(listing->columns, listing->columns_count);
    listing->titled = true;
    print_row(listing->columns, listing->columns_count, row);
    return CMD_OK;
}

/* Nothing on stdout looks like a failure. */
static void say_none(const struct listing *listing, const char *name)
{
    if (listing->rows_count == 0 && !listing->args->json)
        fprintf(stderr, "ron ledger %s: no %s\n", listing->args->verb, name);
}

/* The reply is {NAME: [...], "next": N}. */
static int list_page(struct session *session, struct listing *listing, const char *name,
                     uint64_t *ret_next)
{
    const struct ron_slice body = session_body(session);
    struct ron_arena arena = {0};
    struct ron_errinfo info = {0};
    struct row page;
    int status;
    enum ron_err err = ron_arena_init(&arena, 2 * body.size + 64, &info);

    if (err == RON_ERR_OK)
        err = row_read(body, &arena, &page, &info);
    if (err != RON_ERR_OK) {
        ron_arena_fini(&arena);
        return ledger_failed(listing->args, &info);
    }
    if (!row_u64(&page, "next", ret_next))
        *ret_next = 0;
    status = rows_each(listing->args, row_text(&page, name), list_row, listing);
    ron_arena_fini(&arena);
    return status;
}

/* Page after page, until there are no more or enough; wanted 0: all. */
static int list_all(struct session *session, const char *path, const char *name,
                    const char *account, uint64_t after, uint64_t wanted) RON_BLOCKS
{
    const struct ledger_args *args = session->args;
    struct listing listing = {args, entry_columns, RON_ARRAY_COUNT(entry_columns), 0, false};
    int status = CMD_OK;

    while (status == CMD_OK) {
        const uint64_t left = wanted == 0 ? PAGE_MAX : wanted - listing.rows_count;
        const uint64_t before = listing.rows_count;
        uint64_t next = 0;

        path_begin(session, path);
        path_query(session, "account", account);
        if (strcmp(name, "entries") == 0)
            path_query(session, "asset", account == NULL ? NULL : args->asset);
        path_query_u64(session, "after", after);
        path_query_u64(session, "limit", left < PAGE_MAX ? left : PAGE_MAX);
        status = session_get(session);
        if (status == CMD_OK)
            status = list_page(session, &listing, name, &next);
        if (listing.rows_count == before || next <= after ||
            (wanted > 0 && listing.rows_count >= wanted))
            break;
        after = next;
    }
    if (status == CMD_OK)
        say_none(&listing, name);
    return status;
}

static int list(const struct ledger_args *args, const char *path, const char *name,
                const char *account, uint64_t after, uint64_t wanted) RON_BLOCKS
{
    struct session session;
    int status = session_open(&session, args);

    if (status == CMD_OK)
        status = list_all(&session, path, name, account, after, wanted);
    session_close(&session);
    return status;
}

/* One object: GET path/word?... */
static int show(const struct ledger_args *args, const char *path, const char *word,
                const char *account) RON_BLOCKS
{
    struct session session;
    int status = session_open(&session, args);

    if (status == CMD_OK) {
        path_begin(&session, path);
        if (word != NULL)
            path_segment(&session, word);
        if (account != NULL) {
            path_query(&session, "account", account);
            path_query(&session, "asset", args->asset != NULL ? args->asset : "roc");
            path_query(&session, "at_seq", args->at_seq);
        }
        status = session_get(&session);
    }
    if (status == CMD_OK)
        status = print_object(args, session_body(&session));
    session_close(&session);
    return status;
}

int ledger_balance(const struct ledger_args *args)
{
    return show(args, "/balance", NULL, args->words[0]);
}

int ledger_limits(const struct ledger_args *args)
{
    return show(args, "/accounts/", args->words[0], NULL);
}

int ledger_history(const struct ledger_args *args)
{
    uint64_t after, limit;

    if (!ledger_number(args, "after", args->after, 0, 0, UINT64_MAX, &after) ||
        !ledger_number(args, "limit", args->limit, 100, 0, UINT64_MAX, &limit))
        return CMD_USAGE;
    return list(args, "/entries", "entries", args->words[0], after, limit);
}

int ledger_entries(const struct ledger_args *args)
{
    uint64_t from, limit;

    if (args->words_count == 1)
        return show(args, "/entries/", args->words[0], NULL);
    if (!ledger_number(args, "from", args->from, 1, 1, UINT64_MAX, &from) ||
        !ledger_number(args, "limit", args->limit, 100, 0, UINT64_MAX, &limit))
        return CMD_USAGE;
    return list(args, "/entries", "entries", NULL, from - 1, limit);
}

int ledger_holds(const struct ledger_args *args)
{
    uint64_t after, limit;

    if ((args->words_count == 1) == (args->account != NULL))
        return ledger_usage(args, "a HOLD_ID or --account");
    if (args->words_count == 1)
        return show(args, "/holds/", args->words[0], NULL);
    if (!ledger_number(args, "after", args->after, 0, 0, UINT64_MAX, &after) ||
        !ledger_number(args, "limit", args->limit, 100, 0, UINT64_MAX, &limit))
        return CMD_USAGE;
    return list(args, "/holds", "holds", args->account, after, limit);
}

int ledger_assets(const struct ledger_args *args)
{
    struct listing listing = {args, asset_columns, RON_ARRAY_COUNT(asset_columns), 0, false};
    struct session session;
    uint64_t next;
    int status = session_open(&session, args);

    if (status == CMD_OK) {
        path_begin(&session, "/assets");
        status = session_get(&session);
    }
    if (status == CMD_OK)
        status = list_page(&session, &listing, "assets", &next);
    if (status == CMD_OK)
        say_none(&listing, "assets");
    session_close(&session);
    return status;
}
