/*
 * api_accounts.c - one hold; one account with its limits. Both ask the books, on readers.
 */
#include "ledger/api_pages.h"
#include "ledger/core_frame.h"
#include "rt/clock.h"

enum { LIMITS_SCANNED_MAX = 4096, LIMITS_PAGE = 64, LIMITS_ASSETS_MAX = 256 };

/* --- One hold ----------------------------------------------------------------------------------
 */

/* The Hold is the first entry that touched its account. */
static enum ron_err find_hold(struct ledger_api *api, struct io_request *request,
                              const struct ledger_id *account, struct ledger_record *ret_record,
                              struct ron_buf *text, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_thread thread = ledger_account_thread(account, 0);
    size_t count = 0;
    uint64_t seq;
    enum ron_err err = need_books(api, reterr);

    if (err == RON_ERR_OK)
        err = ledger_books_thread(api->options.books, &thread, 0, false, request->deadline, &seq, 1,
                                  &count, reterr);
    if (err == RON_ERR_OK && count == 0)
        err = ron_fail(reterr, RON_ERR_NOT_FOUND, "no such hold");
    if (err == RON_ERR_OK)
        err = ledger_books_at(api->options.books, seq, request->deadline, ret_record, text, reterr);
    if (err == RON_ERR_OK)
        err = know_asset(api, ret_record->entry.asset, request->deadline, reterr);
    return err;
}

static void reply_hold(struct ledger_api *api, struct io_request *request, struct ron_slice hold_id,
                       const struct ledger_record *record, const struct ledger_ext *ext,
                       struct ron_slice payee)
{
    struct ledger_balance rest;
    struct ron_json_writer writer;
    struct api_asset asset;
    struct ron_buf buf;

    ledger_read_balance(api->options.service, &record->entry.credit, record->entry.asset, &rest);
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "hold_id", hold_id);
    put_text(&writer, "id", record->id_text);
    put_u64(&writer, "seq", record->entry.seq);
    put_account(&writer, "from", "from_id", record->debit_name, &record->entry.debit);
    put_payee(&writer, &ext->payee, payee);
    if (assets_at(api, record->entry.asset, &asset))
        put_text(&writer, "asset", ron_slice_of(asset.name, asset.name_size));
    put_amount(&writer, "amount", record->entry.amount);
    put_amount(&writer, "rest", rest.amount);
    if (ext->expires_ms != 0)
        put_time(&writer, "expires_at", ext->expires_ms);
    put_text(&writer, "state",
             ron_u128_is_zero(rest.amount)                            ? RON_SLICE("ended")
             : ext->expires_ms != 0 && rt_utc_ms() >= ext->expires_ms ? RON_SLICE("expired")
                                                                      : RON_SLICE("open"));
    put_u64(&writer, "as_of_seq", rest.as_of_seq);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

static void read_hold(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    const struct auth_grant *grant = grant_of(request);
    char hold_text[LEDGER_HOLD_ID_SIZE_MAX];
    struct ron_errinfo info = {0};
    struct ledger_record record;
    struct ledger_id account;
    struct ledger_ext ext;
    struct ron_slice hold_id, payee = {NULL, 0};
    struct ron_buf text;
    enum ron_err err = path_text(request->params[0], hold_text, sizeof(hold_text), &hold_id, &info);

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    if (err == RON_ERR_OK && !ledger_is_hold_id(hold_id))
        err = ron_fail(&info, RON_ERR_MALFORMED, "path: not a hold_id");
    if (err == RON_ERR_OK) {
        account = ledger_account_id("sys/hold/", hold_id);
        err = find_hold(api, request, &account, &record, &text, &info);
    }
    if (err == RON_ERR_OK)
        err = ledger_ext_decode(record.ext, &ext, &info);
    if (err == RON_ERR_OK && !ledger_id_is_zero(&ext.payee))
        payee = ledger_read_name(api->options.service, &ext.payee);
    if (err == RON_ERR_OK && grant_is_bound(grant) && !grant_reads(grant, payee) &&
        !grant_reads(grant, record.debit_name))
        err = ron_fail(&info, RON_ERR_FORBIDDEN, "the capability covers none of its accounts");
    if (err == RON_ERR_OK)
        reply_hold(api, request, hold_id, &record, &ext, payee);
    else
        reply_error(request, err, &info);
    ron_buf_fini(&text);
}

/* --- Limits ------------------------------------------------------------------------------------
 */

struct limits {
    uint64_t scanned;
    bool complete, frozen_known, frozen;
    size_t count;
    struct ledger_limit_terms terms[LIMITS_ASSETS_MAX];
    char names[LIMITS_ASSETS_MAX][RON_ASSET_NAME_SIZE_MAX];
};

/* Newest first: what is known already stays. */
static void add_terms(struct limits *limits, const struct ledger_limit_terms *terms)
{
    struct ledger_limit_terms *added;

    if (terms->has_frozen && !limits->frozen_known) {
        limits->frozen_known = true;
        limits->frozen = terms->frozen;
    }
    if (terms->asset.size == 0)
        return;
    for (size_t i = 0; i < limits->count; i++)
        if (ron_slice_equal(limits->terms[i].asset, terms->asset))
            return;
    if (limits->count == LIMITS_ASSETS_MAX) {
        limits->complete = false;
        return;
    }
    added = &limits->terms[limits->count];
    *added = *terms;
    memcpy(limits->names[limits->count], terms->asset.data, terms->asset.size);
    added->asset.data = (const uint8_t *)limits->names[limits->count++];
}

/* The Anchor proves the terms; the frame has them. */
static enum ron_err read_terms(struct ledger_api *api, uint64_t batch, struct ron_slice account,
                               struct limits *limits, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_command command;
    struct ledger_frame frame;
    struct ron_buf bytes;
    enum ron_err err;

    ron_buf_init(&bytes, API_REPLY_SIZE_MAX);
    err = ledger_read_batch(api->options.service, batch, &bytes, reterr);
    if (err == RON_ERR_OK)
        err = ledger_frame_decode(ron_buf_slice(&bytes), &frame, reterr);
    if (err == RON_ERR_OK && frame.command == LEDGER_COMMAND_LIMITS) {
        err = ledger_frame_terms(&frame, &command, reterr);
        if (err == RON_ERR_OK && ron_slice_equal(command.limits.account, account))
            add_terms(limits, &command.limits);
    }
    ron_buf_fini(&bytes);
    return err;
}

static enum ron_err scan_limits(struct ledger_api *api, const struct io_request *request,
                                struct ron_slice account, struct limits *limits,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_thread thread = ledger_stream_thread(RON_SLICE("limits"));
    uint64_t seqs[LIMITS_PAGE];
    uint64_t before = UINT64_MAX;
    size_t count = LIMITS_PAGE;
    struct ron_buf text;
    enum ron_err err = RON_ERR_OK;

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    limits->complete = true;
    while (err == RON_ERR_OK && count == LIMITS_PAGE && limits->complete) {
        err = ledger_books_thread(api->options.books, &thread, before, true, request->deadline,
                                  seqs, LIMITS_PAGE, &count, reterr);
        for (size_t i = 0; err == RON_ERR_OK && i < count; i++) {
            struct ledger_record record;
            struct ledger_ext ext;

            before = seqs[i];
            ron_buf_reset(&text);
            err = ledger_books_at(api->options.books, seqs[i], request->deadline, &record, &text,
                                  reterr);
            if (err == RON_ERR_OK)
                err = ledger_ext_decode(record.ext, &ext, reterr);
            if (err == RON_ERR_OK && ron_slice_equal(ext.ref, account))
                err = read_terms(api, record.entry.batch, account, limits, reterr);
        }
        limits->scanned += count;
        limits->complete = limits->complete && limits->scanned < LIMITS_SCANNED_MAX;
    }
    ron_buf_fini(&text);
    return err;
}

static void put_limits(struct ron_json_writer *writer, const struct limits *limits)
{
    ron_json_put_name(writer, "limits");
    ron_json_put_array_begin(writer);
    for (size_t i = 0; i < limits->count; i++) {
        const struct ledger_limit_terms *terms = &limits->terms[i];

        ron_json_put_object_begin(writer);
        put_text(writer, "asset", terms->asset);
        if (terms->has_minimum)
            put_amount(writer, "minimum", terms->minimum);
        if (terms->has_maximum)
            put_amount(writer, "maximum", terms->maximum);
        if (terms->has_credit_line)
            put_amount(writer, "credit_line", terms->credit_line);
        if (terms->has_daily)
            put_amount(writer, "daily", terms->daily);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
    ron_json_put_name(writer, "complete"); /* false: older ones were not looked at */
    ron_json_put_bool(writer, limits->complete);
}

static void read_account(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    char name[RON_ACCOUNT_NAME_SIZE_MAX];
    struct limits limits = {.count = 0};
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ledger_balance balance;
    struct ledger_id id;
    struct ron_slice account;
    struct ron_buf buf;
    enum ron_err err = path_text(request->params[0], name, sizeof(name), &account, &info);

    if (err == RON_ERR_OK && !ledger_is_account(account))
        err = ron_fail(&info, RON_ERR_MALFORMED, "path: not an account name");
    if (err == RON_ERR_OK)
        err = check_reads(grant_of(request), account, &info);
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK)
        err = scan_limits(api, request, account, &limits, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    id = ledger_account_id("", account);
    ledger_read_balance(api->options.service, &id, 1, &balance); /* the nonce is of all assets */
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "account", account);
    put_hex(&writer, "id", id.bytes, LEDGER_ID_SIZE);
    put_u64(&writer, "next_nonce", balance.next_nonce);
    ron_json_put_name(&writer, "frozen");
    ron_json_put_bool(&writer, limits.frozen);
    put_limits(&writer, &limits);
    put_u64(&writer, "as_of_seq", balance.as_of_seq);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

#define READ .role = "ledger", .replies = "application/json", .scope = "ledger.read"

static const struct api_row rows[] = {
    {{HTTP_GET, "/holds/{hold_id}", READ, .name = "ledger_hold", .reply_schema = HOLD_SCHEMA,
      .summary = "one hold: terms, what is left, state"},
     read_hold},
    {{HTTP_GET, "/accounts/{account...}", READ, .name = "ledger_account",
      .reply_schema = ACCOUNT_SCHEMA, .summary = "an account's limits and next nonce"},
     read_account},
};
const struct api_rows api_account_rows = {rows, RON_ARRAY_COUNT(rows)};
