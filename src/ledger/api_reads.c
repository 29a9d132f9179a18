/*
 * api_reads.c - reads of state: balances, assets, keys, roots, recovery.
 */
#include "base/rfc3339.h"
#include "ledger/api_pages.h"
#include "rt/clock.h"

/* --- Balances ----------------------------------------------------------------------------------
 */

struct balance_query {
    struct ron_slice account, asset; /* in the query or the texts below */
    uint64_t at_seq;                 /* UINT64_MAX: now */
    char account_text[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    char asset_text[RON_ASSET_NAME_SIZE_MAX + 1];
};

enum { ACCOUNT_AT, ASSET_AT, AT_SEQ_AT, BALANCE_PARAMS };
static const struct io_param balance_params[] = {
    [ACCOUNT_AT] = {"account", ACCOUNT, "whose balance", true},
    [ASSET_AT] = {"asset", ASSET, "name of an asset", true},
    [AT_SEQ_AT] = {"at_seq", SEQ, "after this entry; now without it"},
    [BALANCE_PARAMS] = {.name = NULL},
};

/* "account=NAME&asset=NAME" and nothing else, as it is asked for by far the most often. Neither
 * alphabet has an escape, '&' or '=': what has the shape of a name is the whole value, and no other
 * parameter hides in it. False: nothing is said. */
static bool read_plain_query(struct ron_slice query, struct balance_query *ret_query)
{
    static const char account[] = "account=", asset[] = "&asset=";
    const size_t before = sizeof(account) - 1, between = sizeof(asset) - 1;
    const uint8_t *end;

    if (query.size < before + between || memcmp(query.data, account, before) != 0)
        return false;
    query = ron_slice_of(query.data + before, query.size - before);
    end = memchr(query.data, '&', query.size);
    if (end == NULL || query.size - (size_t)(end - query.data) < between ||
        memcmp(end, asset, between) != 0)
        return false;
    ret_query->account = ron_slice_of(query.data, (size_t)(end - query.data));
    ret_query->asset = ron_slice_of(end + between, query.size - ret_query->account.size - between);
    ret_query->at_seq = UINT64_MAX;
    return ledger_is_account(ret_query->account) && ledger_is_asset(ret_query->asset);
}

static enum ron_err read_balance_query(const struct io_request *request,
                                       struct balance_query *ret_query, struct ron_errinfo *reterr)
{
    struct io_query_value values[BALANCE_PARAMS];
    enum ron_err err;

    if (read_plain_query(request->query, ret_query))
        return check_reads(grant_of(request), ret_query->account, reterr);
    err = io_query_split(request, values, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = io_query_decode(&values[ACCOUNT_AT], "account", ret_query->account_text,
                          sizeof(ret_query->account_text), &ret_query->account, NULL);
    if (err != RON_ERR_OK || !ledger_is_account(ret_query->account))
        return query_no_account(reterr);
    err = io_query_decode(&values[ASSET_AT], "asset", ret_query->asset_text,
                          sizeof(ret_query->asset_text), &ret_query->asset, NULL);
    if (err != RON_ERR_OK || !ledger_is_asset(ret_query->asset))
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: asset is not an asset name");
    ret_query->at_seq = UINT64_MAX;
    if (values[AT_SEQ_AT].count > 0)
        err = query_u64(request, "at_seq", UINT64_MAX, &ret_query->at_seq, reterr);
    if (err == RON_ERR_OK && ret_query->at_seq == 0) /* there is no time of it */
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: at_seq is 1 or more");
    if (err == RON_ERR_OK)
        err = check_reads(grant_of(request), ret_query->account, reterr);
    return err;
}

/* A question about now, in its request's room until the end of the turn. */
struct balance_call {
    struct io_request *request;
    uint32_t asset; /* its number */
    struct balance_query query;
};
_Static_assert(sizeof(struct balance_call) <= IO_ROOM_SIZE_MAX, "it lies in its request's room");

/* All of a turn: accounts lie anywhere in memory, and are waited for together. */
static void answer_balances(void *context, void **items, size_t items_count)
{
    struct ledger_api *api = context;
    struct ledger_balance_ask asks[LEDGER_BALANCES_MAX];
    struct ron_slice names[LEDGER_BALANCES_MAX];
    struct ledger_id ids[LEDGER_BALANCES_MAX];
    char as_of[RON_RFC3339_SIZE];

    _Static_assert((int)IO_GATHERED_MAX <= (int)LEDGER_BALANCES_MAX, "a turn is asked at once");
    RON_ASSERT(items_count > 0);
    for (size_t i = 0; i < items_count; i++) {
        const struct balance_call *call = items[i];

        names[i] = call->query.account;
        asks[i].asset = call->asset;
    }
    ledger_account_ids(names, items_count, ids);
    for (size_t i = 0; i < items_count; i++)
        asks[i].account = ids[i];
    ledger_read_balances(api->options.service, asks, items_count);
    ron_rfc3339_print(rt_utc_ms(), as_of);
    for (size_t i = 0; i < items_count; i++) {
        const struct balance_call *call = items[i];

        reply_balance(call->request, call->query.account, call->query.asset, &asks[i].balance,
                      as_of);
    }
}

/* On the loop, unless the books are needed: for the past, or for an asset not met before. */
static void get_balance(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct balance_call *call = io_request_room(request, sizeof(*call));
    struct ron_errinfo info = {0};
    struct api_asset asset;
    enum ron_err err = grant_rate(api, grant_of(request), &info);

    if (err == RON_ERR_OK && call == NULL)
        err = ron_fail(&info, RON_ERR_NO_MEMORY, "a question for a balance");
    if (err == RON_ERR_OK)
        err = read_balance_query(request, &call->query, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
    } else if (call->query.at_seq == UINT64_MAX && assets_find(api, call->query.asset, &asset)) {
        call->request = request;
        call->asset = asset.number;
        io_request_gather_here(request, answer_balances, api, call);
    } else {
        io_request_send(request, api->reads_queue, 1);
    }
}

static void reply_balance_at(struct io_request *request, const struct balance_query *query,
                             const struct ledger_balance *balance, uint64_t as_of_ms)
{
    char as_of[RON_RFC3339_SIZE];

    ron_rfc3339_print(as_of_ms, as_of);
    reply_balance(request, query->account, query->asset, balance, as_of);
}

static void read_balance(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    const struct rt_deadline deadline = request->deadline;
    struct balance_query query;
    struct ledger_balance balance;
    struct ledger_record record;
    struct ledger_id id;
    struct ron_errinfo info = {0};
    struct api_asset asset;
    struct ron_buf text;
    enum ron_err err = read_balance_query(request, &query, &info);

    if (err == RON_ERR_OK)
        err = assets_need(api, query.asset, deadline, &asset, &info);
    if (err == RON_ERR_OK && query.at_seq == UINT64_MAX) {
        id = ledger_account_id("", query.account);
        ledger_read_balance(api->options.service, &id, asset.number, &balance);
        reply_balance_at(request, &query, &balance, rt_utc_ms());
        return;
    }
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    id = ledger_account_id("", query.account);
    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    err = ledger_books_balance(api->options.books, &id, asset.number, query.at_seq, deadline,
                               &balance, &info);
    if (err == RON_ERR_OK)
        err = ledger_books_at(api->options.books, query.at_seq, deadline, &record, &text, &info);
    ron_buf_fini(&text);
    if (err == RON_ERR_OK)
        reply_balance_at(request, &query, &balance, record.entry.commit_ms);
    else
        reply_error(request, err, &info);
}

/* --- Assets ------------------------------------------------------------------------------------
 */

static void read_assets(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct api_asset asset;
    struct ron_buf buf;
    enum ron_err err = assets_refresh(api, request->deadline, &info);

    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "assets");
    ron_json_put_array_begin(&writer);
    for (uint32_t number = 1; assets_at(api, number, &asset); number++) {
        ron_json_put_object_begin(&writer);
        put_text(&writer, "asset", ron_slice_of(asset.name, asset.name_size));
        put_u64(&writer, "number", asset.number);
        put_u64(&writer, "decimals", asset.decimals);
        put_amount(&writer, "max_supply", asset.max_supply);
        put_u64(&writer, "seq", asset.seq);
        ron_json_put_object_end(&writer);
    }
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* --- Keys --------------------------------------------------------------------------------------
 */

/* The reply that the key has, as the write gave it. */
static void read_idem(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    const struct auth_grant *grant = grant_of(request);
    char key_text[RON_IDEM_KEY_SIZE_MAX];
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ledger_stamp stamp = {.caller = LEDGER_CALLER_DIRECT};
    struct ledger_reply reply;
    struct ledger_key key;
    struct ledger_id id;
    struct ron_slice text;
    struct ron_buf buf;
    enum ron_err err = path_text(request->params[0], key_text, sizeof(key_text), &text, &info);

    if (err == RON_ERR_OK && !ledger_is_key(text))
        err = ron_fail(&info, RON_ERR_MALFORMED, "path: not a key");
    if (err == RON_ERR_OK && grant != NULL)
        err = stamp_of(request, &stamp, &info);
    if (err == RON_ERR_OK)
        err = need_books(api, &info);
    if (err == RON_ERR_OK) {
        id = ledger_key_id(&stamp, LEDGER_COMMAND_INGEST, text);
        err = ledger_books_key(api->options.books, &id, request->deadline, &key, &reply, &info);
    }
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "accepted");
    ron_json_put_bool(&writer, true);
    put_u64(&writer, "seq_start", reply.seq_start);
    put_u64(&writer, "seq_end", reply.seq_end);
    put_u64(&writer, "batch_no", reply.batch);
    put_u64(&writer, "tree_size", reply.seq_end);
    put_hex(&writer, "new_root", reply.root.bytes, RON_SHA256_SIZE);
    put_time(&writer, "committed_at", reply.commit_ms);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

/* --- Roots -------------------------------------------------------------------------------------
 */

static void put_roots(struct ron_json_writer *writer, const struct ledger_root *roots, size_t count,
                      uint64_t since)
{
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "roots");
    ron_json_put_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        ron_json_put_object_begin(writer);
        put_u64(writer, "seq", roots[i].seq);
        put_hex(writer, "root", roots[i].root.bytes, RON_SHA256_SIZE);
        put_u64(writer, "ts", roots[i].commit_ms);
        put_u64(writer, "batch_no", roots[i].batch);
        ron_json_put_object_end(writer);
    }
    ron_json_put_array_end(writer);
    put_u64(writer, "next", count > 0 ? roots[count - 1].seq : since);
    ron_json_put_object_end(writer);
}

static void read_roots(struct ledger_api *api, struct io_request *request) RON_BLOCKS
{
    struct ledger_root roots[LEDGER_API_PAGE_MAX];
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ron_buf buf;
    uint64_t since, limit;
    size_t count = 0;
    enum ron_err err = query_u64(request, "since", 0, &since, &info);

    if (err == RON_ERR_OK)
        err = query_limit(request, &limit, &info);
    if (err == RON_ERR_OK)
        err = ledger_read_roots(api->options.service, since, roots, limit, &count, &info);
    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    put_roots(&writer, roots, count, since);
    reply_json(request, &writer, &buf);
}

/* --- Recovery ----------------------------------------------------------------------------------
 */

/* What was found, where, and how far the log was good then. */
static void put_damage(struct ron_json_writer *writer, const struct ledger_health *health)
{
    const struct ledger_damage *damage = &health->damage;

    ron_json_put_name(writer, "damage");
    if (damage->info.err == RON_ERR_OK) {
        ron_json_put_null(writer);
        return;
    }
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "file");
    if (damage->place.file[0] == '\0')
        ron_json_put_null(writer);
    else
        ron_json_put_text(writer, damage->place.file);
    ron_json_put_name(writer, "offset");
    if (damage->place.file[0] == '\0')
        ron_json_put_null(writer);
    else
        ron_json_put_u64(writer, damage->place.offset);
    put_text(writer, "message", ron_slice_text(damage->info.message));
    put_u64(writer, "found_ms", damage->found_ms);
    put_u64(writer, "last_good_seq", damage->good_seq);
    put_hex(writer, "last_good_root", damage->good_root.bytes, RON_SHA256_SIZE);
    ron_json_put_name(writer, "marked");
    ron_json_put_bool(writer, health->damage_marked);
    ron_json_put_name(writer, "over");
    ron_json_put_bool(writer, health->damage_over);
    ron_json_put_object_end(writer);
}

/* In one word, or null: of damage which, else as a refused write is told. */
static const char *cause_of(const struct ledger_health *health)
{
    const struct rt_cause *cause = rt_ready_refusal(&(struct rt_causes){.own_count = 0},
                                                    health->status.raised & RT_CAUSES_SAFE_MODE,
                                                    RT_PLANE_WRITE);

    if (health->damage.info.err != RON_ERR_OK)
        return ron_err_reason(health->damage.info.err);
    return cause == NULL ? NULL : cause->name;
}

static void get_recovery(void *context, struct io_request *request)
{
    struct ledger_api *api = context;
    struct ron_errinfo info = {0};
    struct ledger_health health;
    struct ron_json_writer writer;
    struct ron_buf buf;
    const enum ron_err err = io_query_only(request, &info);

    if (err != RON_ERR_OK) {
        reply_error(request, err, &info);
        return;
    }
    ledger_read_health(api->options.service, &health);
    ron_buf_init(&buf, API_REPLY_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    put_text(&writer, "state", ron_slice_text(rt_life_name(health.status.state)));
    ron_json_put_name(&writer, "safe_mode");
    ron_json_put_bool(&writer, (health.status.raised & RT_CAUSES_SAFE_MODE) != 0);
    ron_json_put_name(&writer, "cause");
    if (cause_of(&health) == NULL)
        ron_json_put_null(&writer);
    else
        ron_json_put_text(&writer, cause_of(&health));
    put_u64(&writer, "last_good_seq", health.head.seq);
    put_hex(&writer, "last_good_root", health.head.root.bytes, RON_SHA256_SIZE);
    ron_json_put_name(&writer, "clean_start");
    ron_json_put_bool(&writer, health.clean_start);
    put_u64(&writer, "replayed_batches", health.replayed_batches);
    put_damage(&writer, &health);
    ron_json_put_object_end(&writer);
    reply_json(request, &writer, &buf);
}

#define READ .role = "ledger", .replies = "application/json"

static const struct api_row rows[] = {
    {{HTTP_GET, "/balance", READ, .name = "ledger_balance", .scope = "ledger.read",
      .query = balance_params, .reply_schema = BALANCE_SCHEMA,
      .summary = "committed balance and next nonce", .handler = get_balance},
     read_balance},
    {{HTTP_GET, "/assets", READ, .name = "ledger_assets", .scope = "ledger.read",
      .reply_schema = ASSETS_SCHEMA, .summary = "every asset with its terms"},
     read_assets},
    {{HTTP_GET, "/idem/{key}", READ, .name = "ledger_idem", .scope = "ledger.read",
      .reply_schema = BATCH_SCHEMA,
      .summary = "the reply that an idempotency key of this tenant and caller has"},
     read_idem},
    {{HTTP_GET, "/roots", READ, .name = "ledger_roots",
      .query = IO_PARAMS(PARAM_SINCE, PARAM_LIMIT), .reply_schema = ROOTS_SCHEMA,
      .summary = "roots of committed batches, one each, since exclusive"},
     read_roots},
    {{HTTP_GET, "/recovery", READ, .name = "ledger_recovery", .scope = "ledger.read",
      .reply_schema = RECOVERY_SCHEMA,
      .summary = "is the ledger in safe-mode, why, and how far is the log known to be good?",
      .handler = get_recovery},
     NULL},
};
const struct api_rows api_read_rows = {rows, RON_ARRAY_COUNT(rows)};
