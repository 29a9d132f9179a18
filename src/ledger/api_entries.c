/*
 * api_entries.c - reads of what was committed: entries, holds, limits.
 *
 * Everything here asks the books, so it runs on readers.
 */
#include "base/hex.h"
#include "ledger/api_impl.h"
#include "ledger/core_frame.h"
#include "rt/clock.h"

enum { LIMITS_SCANNED_MAX = 4096, LIMITS_PAGE = 64, LIMITS_ASSETS_MAX = 256 };

enum ron_err need_books(const struct ledger_api *api, struct ron_errinfo *reterr)
{
    if (api->options.books == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the ledger has no books");
    return RON_ERR_OK;
}

/* --- One entry ---------------------------------------------------------------------------------
 */

static void put_account(struct ron_json_writer *writer, const char *name, const char *name_of_id,
                        struct ron_slice text, const struct ledger_id *id)
{
    if (text.size > 0)
        put_text(writer, name, text);
    else
        put_hex(writer, name_of_id, id->bytes, LEDGER_ID_SIZE);
}

static void put_digest(struct ron_json_writer *writer, const struct ledger_entry *entry)
{
    const bool is_sha256 = (entry->flags & LEDGER_FLAG_SHA256) != 0;
    char text[sizeof("sha256:") + 2 * LEDGER_DIGEST_SIZE];
    const size_t size = is_sha256 ? sizeof("sha256:") - 1 : sizeof("b3:") - 1;

    memcpy(text, is_sha256 ? "sha256:" : "b3:", size);
    (void)ron_hex_encode(ron_slice_of(entry->debit.bytes, LEDGER_ID_SIZE), text + size,
                         sizeof(text) - size);
    (void)ron_hex_encode(ron_slice_of(entry->credit.bytes, LEDGER_ID_SIZE),
                         text + size + 2 * LEDGER_ID_SIZE,
                         sizeof(text) - size - 2 * LEDGER_ID_SIZE);
    put_text(writer, "digest", ron_slice_of(text, size + 2 * LEDGER_DIGEST_SIZE));
}

static void put_payee(struct ron_json_writer *writer, const struct ledger_id *payee)
{
    if (ledger_id_is_zero(payee))
        put_text(writer, "payee", RON_SLICE("*"));
    else
        put_hex(writer, "payee_id", payee->bytes, LEDGER_ID_SIZE);
}

static void put_ext(struct ron_json_writer *writer, const struct ledger_record *record)
{
    struct ledger_ext ext;

    if (ledger_ext_decode(record->ext, &ext, NULL) != RON_ERR_OK)
        return; /* the frame was checked when it was read: nothing to show, nothing to hide */
    if (ext.memo.data != NULL)
        put_text(writer, "memo", ext.memo);
    if (ext.meta.data != NULL) {
        ron_json_put_name(writer, "meta");
        ron_json_put_raw(writer, ext.meta);
    }
    if (ext.has_terms) {
        put_payee(writer, &ext.payee);
        if (ext.expires_ms != 0)
            put_time(writer, "expires_at", ext.expires_ms);
    }
    if (ext.stream.data != NULL) {
        put_text(writer, "stream", ext.stream);
        if (ext.ref.size > 0)
            put_text(writer, "ref", ext.ref);
    }
    if (ext.asset_terms.data != NULL) {
        ron_json_put_name(writer, "terms");
        ron_json_put_raw(writer, ext.asset_terms);
    }
}

/* The bytes that are hashed: who has them checks the proof alone. */
static void put_leaf(struct ron_json_writer *writer, const struct ledger_record *record)
{
    char text[RON_HEX_SIZE(RON_LEAF_SIZE_MAX)];
    size_t size = ron_hex_encode(ron_slice_of(&record->entry, sizeof(record->entry)), text,
                                 sizeof(text));

    size += ron_hex_encode(record->ext, text + size, sizeof(text) - size);
    put_text(writer, "leaf", ron_slice_of(text, size));
}

void put_record(struct ledger_api *api, struct ron_json_writer *writer,
                const struct ledger_record *record, bool with_leaf)
{
    const struct ledger_entry *entry = &record->entry;
    struct api_asset asset;

    ron_json_put_object_begin(writer);
    put_u64(writer, "seq", entry->seq);
    put_text(writer, "id", record->id_text);
    put_text(writer, "kind", ron_slice_text(ledger_kind_name(entry->kind)));
    if (entry->kind == LEDGER_ANCHOR) {
        put_digest(writer, entry);
    } else if (entry->kind != LEDGER_ASSET) {
        put_account(writer, "debit", "debit_id", record->debit_name, &entry->debit);
        put_account(writer, "credit", "credit_id", record->credit_name, &entry->credit);
        put_amount(writer, "amount", entry->amount);
    }
    if (entry->asset != 0 && assets_at(api, entry->asset, &asset))
        put_text(writer, "asset", ron_slice_of(asset.name, asset.name_size));
    else if (entry->asset != 0)
        put_u64(writer, "asset_no", entry->asset);
    if (entry->nonce != 0)
        put_u64(writer, "nonce", entry->nonce);
    if (!ledger_id_is_zero(&entry->link))
        put_hex(writer, "link", entry->link.bytes, LEDGER_ID_SIZE);
    put_ext(writer, record);
    put_amount(writer, "tenant", record->tenant);
    put_text(writer, "caller", ron_slice_text(ledger_caller_name(record->caller)));
    put_hex(writer, "capability_ref", entry->capability, LEDGER_CAPABILITY_SIZE);
    ron_json_put_name(writer, "by_ledger");
    ron_json_put_bool(writer, (entry->flags & LEDGER_FLAG_BY_LEDGER) != 0);
    put_u64(writer, "batch_no", entry->batch);
    put_u64(writer, "batch_seq_start", record->batch_seq_start);
    put_u64(writer, "batch_seq_end", record->batch_seq_end);
    put_hex(writer, "batch_root", record->root.bytes, RON_SHA256_SIZE);
    put_time(writer, "committed_at", entry->commit_ms);
    if (with_leaf)
        put_leaf(writer, record);
    ron_json_put_object_end(writer);
}

/* One of its accounts is covered; what moves nothing is its tenant's. */
static bool is_visible(const struct auth_grant *grant, const struct ledger_record *record)
{
    const unsigned kind = record->entry.kind;

    if (!grant_is_bound(grant))
        return true;
    if (kind == LEDGER_ANCHOR || kind == LEDGER_ASSET)
        return ron_u128_compare(record->tenant, grant->tenant) == 0;
    return grant_reads(grant, record->debit_name) || grant_reads(grant, record->credit_name);
}

/* An asset that was not met yet: its name is looked for before anything is written. */
static enum ron_err know_asset(struct ledger_api *api, uint32_t number, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct api_asset asset;

    if (number == 0 || assets_at(api, number, &asset))
        return RON_ERR_OK;
    return assets_refresh(api, deadline, reterr);
}

static void read_entry(struct ledger_api *api, struct io_request *request)
{
    const struct auth_grant *grant = grant_of(request);
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    struct ron_errinfo info = {0};
    struct ledger_record record;
    struct ron_json_writer writer;
    struct ron_slice id = {NULL, 0};
    struct ron_buf buf, text;
    enum ron_err err = path_text(request->params[0], id_text, sizeof(id_text), &id, &info);

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK) {
        const struct ledger_id entry = ledger_entry_id(
            grant == NULL ? ron_u128_of(0) : grant->tenant, id);

        err = ledger_books_entry(api->options.books, &entry, request->deadline, &record, &text,
                                 &info);
    }
    if (err == RON_ERR_OK && !is_visible(grant, &record))
        err = ron_fail(&info, RON_ERR_FORBIDDEN, "the capability covers none of its accounts");
    if (err == RON_ERR_OK)
        err = know_asset(api, record.entry.asset, request->deadline, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
    } else {
        ron_buf_init(&buf, API_REPLY_SIZE_MAX);
        ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
        put_record(api, &writer, &record, true);
        reply_json(request, &writer, &buf);
    }
    ron_buf_fini(&text);
}

/* --- Pages -------------------------------------------------------------------------------------
 */

struct page {
    uint64_t seqs[LEDGER_API_PAGE_MAX];
    size_t count;
    uint64_t next; /* of the page after, if nothing is on this one */
    const char *name;
};

/* Those that the capability may see; pages are of what is there, so that they end where they say.
 */
static void reply_page(struct ledger_api *api, struct io_request *request, const struct page *page)
{
    const struct auth_grant *grant = grant_of(request);
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ron_buf buf, text;
    enum ron_err err = RON_ERR_OK;

    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, page->name);
    ron_json_put_array_begin(&writer);
    for (size_t i = 0; i < page->count && err == RON_ERR_OK; i++) {
        struct ledger_record record;

        ron_buf_reset(&text);
        err = ledger_books_at(api->options.books, page->seqs[i], request->deadline, &record, &text,
                              &info);
        if (err == RON_ERR_OK)
            err = know_asset(api, record.entry.asset, request->deadline, &info);
        if (err == RON_ERR_OK && is_visible(grant, &record))
            put_record(api, &writer, &record, false);
    }
    ron_buf_fini(&text);
    if (err != RON_ERR_OK) {
        ron_buf_fini(&buf);
        reply_error(request, err, &info);
        return;
    }
    ron_json_put_array_end(&writer);
    put_u64(&writer, "next", page->count > 0 ? page->seqs[page->count - 1] : page->next);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* By number: only for who may see everything. `from` is the first; `next` is to go on `after`. */
static enum ron_err page_by_seq(struct ledger_api *api, const struct io_request *request,
                                uint64_t limit, struct page *page, struct ron_errinfo *reterr)
{
    const struct ledger_root head = ledger_read_head(api->options.service);
    uint64_t from, after;
    enum ron_err err = query_u64(request, "from", 0, &from, reterr);

    if (err == RON_ERR_OK)
        err = query_u64(request, "after", from > 0 ? from - 1 : 0, &after, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (from > 0 && after != from - 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: from and after exclude each other");
    if (grant_is_bound(grant_of(request)))
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability does not cover every account: ask with account=");
    page->next = after;
    while (page->count < limit && after < head.seq)
        page->seqs[page->count++] = ++after;
    return RON_ERR_OK;
}

static enum ron_err page_by_account(struct ledger_api *api, const struct io_request *request,
                                    const char *account, uint64_t limit, struct page *page,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_id id = ledger_account_id("", ron_slice_text(account));
    struct ledger_id thread = ledger_account_all_thread(&id);
    char asset_name[RON_ASSET_NAME_SIZE_MAX + 1];
    struct ron_errinfo info = {0};
    struct api_asset asset;
    uint64_t after;
    enum ron_err err = query_u64(request, "after", 0, &after, reterr);

    if (err == RON_ERR_OK)
        err = check_reads(grant_of(request), ron_slice_text(account), reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_query_get(request, "asset", asset_name, sizeof(asset_name), &info);
    if (err == RON_ERR_OK) {
        err = assets_need(api, ron_slice_text(asset_name), request->deadline, &asset, reterr);
        if (err != RON_ERR_OK)
            return err;
        thread = ledger_account_thread(&id, asset.number);
    } else if (err != RON_ERR_NOT_FOUND) {
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: asset is not an asset name");
    }
    page->next = after;
    return ledger_books_thread(api->options.books, &thread, after, false, request->deadline,
                               page->seqs, limit, &page->count, reterr);
}

static void read_entries(struct ledger_api *api, struct io_request *request)
{
    static const char *const names[] = {"account", "asset", "after", "from", "limit", NULL};
    char account[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct page page = {.name = "entries"};
    struct ron_errinfo info = {0};
    uint64_t limit = 0;
    bool by_account = false;
    enum ron_err err = io_query_only(request, names, &info);

    if (err == RON_ERR_OK)
        err = query_limit(request, &limit, &info);
    if (err == RON_ERR_OK)
        err = query_account(request, false, account, &by_account, &info);
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK)
        err = by_account ? page_by_account(api, request, account, limit, &page, &info)
                         : page_by_seq(api, request, limit, &page, &info);
    if (err == RON_ERR_OK)
        reply_page(api, request, &page);
    else
        reply_error(request, err, &info);
}

static void read_holds(struct ledger_api *api, struct io_request *request)
{
    static const char *const names[] = {"account", "after", "limit", NULL};
    char account[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct page page = {.name = "holds"};
    struct ron_errinfo info = {0};
    uint64_t limit = 0, after = 0;
    bool given;
    enum ron_err err = io_query_only(request, names, &info);

    if (err == RON_ERR_OK)
        err = query_limit(request, &limit, &info);
    if (err == RON_ERR_OK)
        err = query_account(request, true, account, &given, &info);
    if (err == RON_ERR_OK)
        err = query_u64(request, "after", 0, &after, &info);
    if (err == RON_ERR_OK)
        err = check_reads(grant_of(request), ron_slice_text(account), &info);
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK) {
        const struct ledger_id id = ledger_account_id("", ron_slice_text(account));
        const struct ledger_id thread = ledger_holds_thread(&id);

        page.next = after;
        err = ledger_books_thread(api->options.books, &thread, after, false, request->deadline,
                                  page.seqs, limit, &page.count, &info);
    }
    if (err == RON_ERR_OK)
        reply_page(api, request, &page);
    else
        reply_error(request, err, &info);
}

/* --- One hold ----------------------------------------------------------------------------------
 */

/* The Hold is the first entry that touched its account. */
static enum ron_err find_hold(struct ledger_api *api, struct io_request *request,
                              const struct ledger_id *account, struct ledger_record *ret_record,
                              struct ron_buf *text, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct ledger_id thread = ledger_account_all_thread(account);
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

static bool is_payee(const struct auth_grant *grant, const struct ledger_ext *ext)
{
    const struct auth_pattern *pattern = &grant->account;
    struct ledger_id id;

    if (ledger_id_is_zero(&ext->payee) || !auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT) ||
        pattern->glob)
        return false;
    id = ledger_account_id("", ron_slice_of(pattern->text, pattern->size));
    return ledger_id_equal(&id, &ext->payee);
}

static void reply_hold(struct ledger_api *api, struct io_request *request, struct ron_slice hold_id,
                       const struct ledger_record *record, const struct ledger_ext *ext)
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
    put_payee(&writer, &ext->payee);
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

static void read_hold(struct ledger_api *api, struct io_request *request)
{
    const struct auth_grant *grant = grant_of(request);
    char hold_text[LEDGER_HOLD_ID_SIZE_MAX];
    struct ron_errinfo info = {0};
    struct ledger_record record;
    struct ledger_id account;
    struct ledger_ext ext;
    struct ron_slice hold_id;
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
    if (err == RON_ERR_OK && grant_is_bound(grant) && !is_payee(grant, &ext) &&
        !grant_reads(grant, record.debit_name))
        err = ron_fail(&info, RON_ERR_FORBIDDEN, "the capability covers none of its accounts");
    if (err == RON_ERR_OK)
        reply_hold(api, request, hold_id, &record, &ext);
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
    const struct ledger_id thread = ledger_stream_thread(RON_SLICE("limits"));
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

static void read_account(struct ledger_api *api, struct io_request *request)
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
    {{HTTP_GET, "/entries", READ, .name = "ledger_entries",
      .summary = "?account=[&asset=]&after=&limit= of an account, ?from=&limit= of the log"},
     read_entries},
    {{HTTP_GET, "/entries/{id...}", READ, .name = "ledger_entry",
      .summary = "one entry of this tenant by its id, with the bytes of its leaf"},
     read_entry},
    {{HTTP_GET, "/holds", READ, .name = "ledger_holds",
      .summary = "?account=&after=&limit=: Holds of a payer"},
     read_holds},
    {{HTTP_GET, "/holds/{hold_id}", READ, .name = "ledger_hold",
      .summary = "one hold: terms, what is left, state"},
     read_hold},
    {{HTTP_GET, "/accounts/{account...}", READ, .name = "ledger_account",
      .summary = "an account's limits and next nonce"},
     read_account},
};
const struct api_rows api_entry_rows = {rows, RON_ARRAY_COUNT(rows)};
