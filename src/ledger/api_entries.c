/*
 * api_entries.c - reads of what was committed: entries, one by one and in pages.
 *
 * Everything here asks the books, so it runs on readers.
 */
#include "ledger/api_pages.h"
#include "ledger/record_json.h"

enum ron_err need_books(const struct ledger_api *api, struct ron_errinfo *reterr)
{
    if (api->options.books == NULL)
        return ron_fail(reterr, RON_ERR_NOT_READY, "the ledger has no books");
    return RON_ERR_OK;
}

/* --- One entry ---------------------------------------------------------------------------------
 */

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

enum ron_err know_asset(struct ledger_api *api, uint32_t number, struct rt_deadline deadline,
                        struct ron_errinfo *reterr)
{
    struct api_asset asset;

    if (number == 0 || assets_at(api, number, &asset))
        return RON_ERR_OK;
    return assets_refresh(api, deadline, reterr);
}

/* The names are looked for before anything is written. */
enum ron_err put_record(struct ledger_api *api, struct rt_deadline deadline,
                        struct ron_json_writer *writer, const struct ledger_record *record,
                        bool with_leaf, struct ron_errinfo *reterr)
{
    struct ledger_record_names names = {.asset = {NULL, 0}};
    struct ledger_record reversed;
    struct ledger_id payee;
    struct api_asset asset;
    struct ron_buf text;
    enum ron_err err = know_asset(api, record->entry.asset, deadline, reterr);

    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    if (record->entry.asset != 0 && assets_at(api, record->entry.asset, &asset))
        names.asset = ron_slice_of(asset.name, asset.name_size);
    if (ledger_record_payee(record, &payee))
        names.payee = ledger_read_name(api->options.service, &payee);
    if (err == RON_ERR_OK && record->entry.kind == LEDGER_REVERSE) {
        err = ledger_books_entry(api->options.books, &record->entry.link, deadline, &reversed,
                                 &text, reterr);
        if (err == RON_ERR_OK)
            names.ref = reversed.id_text;
    }
    if (err == RON_ERR_OK)
        ledger_put_record(writer, record, &names, with_leaf);
    ron_buf_fini(&text);
    return err;
}

static void read_entry(struct ledger_api *api, struct io_request *request) RON_BLOCKS
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
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    if (err == RON_ERR_OK)
        err = put_record(api, request->deadline, &writer, &record, true, &info);
    if (err == RON_ERR_OK) {
        reply_json(request, &writer, &buf);
    } else {
        ron_buf_fini(&buf);
        reply_error(request, err, &info);
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

struct page_writer {
    struct ledger_api *api;
    struct io_request *request;
    struct ron_json_writer writer;
};

static enum ron_err put_visible(void *context, const struct ledger_record *record,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct page_writer *out = context;

    if (!is_visible(grant_of(out->request), record))
        return RON_ERR_OK;
    return put_record(out->api, out->request->deadline, &out->writer, record, false, reterr);
}

/* Those that the capability may see; pages are of what is there, so that they end where they say.
 */
static void reply_page(struct ledger_api *api, struct io_request *request,
                       const struct page *page) RON_BLOCKS
{
    struct page_writer out = {.api = api, .request = request};
    struct ron_errinfo info = {0};
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&out.writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&out.writer);
    ron_json_put_name(&out.writer, page->name);
    ron_json_put_array_begin(&out.writer);
    err = ledger_books_each(api->options.books, page->seqs, page->count, request->deadline,
                            put_visible, &out, &info);
    if (err != RON_ERR_OK) {
        ron_buf_fini(&buf);
        reply_error(request, err, &info);
        return;
    }
    ron_json_put_array_end(&out.writer);
    put_u64(&out.writer, "next", page->count > 0 ? page->seqs[page->count - 1] : page->next);
    ron_json_put_object_end(&out.writer);
    reply_json(request, &out.writer, &buf);
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
    struct ledger_thread thread = ledger_account_thread(&id, 0);
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

static void read_entries(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    char account[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct page page = {.name = "entries"};
    struct ron_errinfo info = {0};
    uint64_t limit = 0;
    bool by_account = false;
    enum ron_err err = query_limit(request, &limit, &info);

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

static void read_holds(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    char account[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    struct page page = {.name = "holds"};
    struct ron_errinfo info = {0};
    uint64_t limit = 0, after = 0;
    bool given;
    enum ron_err err = query_limit(request, &limit, &info);

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
        const struct ledger_thread thread = ledger_holds_thread(&id);

        page.next = after;
        err = ledger_books_thread(api->options.books, &thread, after, false, request->deadline,
                                  page.seqs, limit, &page.count, &info);
    }
    if (err == RON_ERR_OK)
        reply_page(api, request, &page);
    else
        reply_error(request, err, &info);
}

#define READ .role = "ledger", .replies = "application/json", .scope = "ledger.read"

/* docs/ledger-api.md says what stands when. */
#define ENTRY_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"seq\",\"id\",\"kind\"],\"properties\":{\"seq\":{"      \
    "\"type\":"                                                                                  \
    "\"integer\"},\"id\":" TEXT ",\"kind\":" TEXT ",\"debit\":" TEXT ",\"credit\":" TEXT         \
    ",\"amount\":" TEXT ",\"asset\":" TEXT ",\"nonce\":{\"type\":\"integer\"},\"hold_id\":" TEXT \
    ",\"payee\":" TEXT                                                                           \
    ",\"expires_at\":{\"type\":\"string\",\"format\":\"date-time\"},\"ref\":" TEXT               \
    ",\"memo\":" TEXT ",\"meta\":{\"type\":\"object\"},\"digest\":" TEXT ",\"stream\":" TEXT     \
    ",\"by_ledger\":{\"type\":\"boolean\"},\"batch_no\":{\"type\":\"integer\"}}}"
#define PAGE_SCHEMA(name)                          \
    "{\"type\":\"object\",\"properties\":{\"" name \
    "\":{\"type\":\"array\",\"items\":" ENTRY_SCHEMA "},\"next\":{\"type\":\"integer\"}}}"

static const struct api_row rows[] = {
    {{HTTP_GET, "/entries", READ, .name = "ledger_entries", .reply_schema = PAGE_SCHEMA("entries"),
      .query = IO_PARAMS({"account", ACCOUNT, "only entries of this account"},
                         {"asset", ASSET, "with account: only those in this asset"}, PARAM_AFTER,
                         {"from", U64, "without account: the first seq of the page"}, PARAM_LIMIT),
      .summary = "entries of an account, or of the log by number, ascending"},
     read_entries},
    {{HTTP_GET, "/entries/{id...}", READ, .name = "ledger_entry", .reply_schema = ENTRY_SCHEMA,
      .summary = "one entry of this tenant by its id, with the bytes of its leaf"},
     read_entry},
    {{HTTP_GET, "/holds", READ, .name = "ledger_holds", .reply_schema = PAGE_SCHEMA("holds"),
      .query = IO_PARAMS({"account", ACCOUNT, "of the payer", true}, PARAM_AFTER, PARAM_LIMIT),
      .summary = "Holds of a payer, ascending"},
     read_holds},
};
const struct api_rows api_entry_rows = {rows, RON_ARRAY_COUNT(rows)};
