/*
 * api_write.c - the writes that are a JSON body: /ingest, /intents, /assets, /accounts, abandon.
 *
 * Handlers, on a loop thread, do no more than take the head apart and submit; prepare functions
 * read the body: on a prevalidator, or of small ones that wait for nobody on the loop's thread.
 */
#include "ledger/api_impl.h"
#include "ledger/api_schema.h"

/* Was it written before? Then a ceiling that it filled itself does not refuse its repetition: a
 * known key or id is never applied again, whatever comes of it. */
static bool is_known(struct api_call *call, const struct ledger_ingest_body *body) RON_BLOCKS
{
    struct ledger_books *books = call->api->options.books;
    const struct ledger_stamp *stamp = &call->ledger.command.stamp;
    const struct rt_deadline deadline = call->ledger.deadline;
    enum ron_err err;

    RON_ASSERT(!call->ledger.prompt);
    if (books == NULL)
        return false;
    if (body->key.size > 0) {
        const struct ledger_id id = ledger_key_id(stamp, LEDGER_COMMAND_INGEST, body->key);
        struct ledger_key key;
        struct ledger_reply reply;

        err = ledger_books_key(books, &id, deadline, &key, &reply, NULL);
    } else {
        struct ledger_record record;
        struct ron_buf text;

        ron_buf_init(&text, RON_BODY_SIZE_MAX);
        err = ledger_books_entry(books, &body->ops[0].id, deadline, &record, &text, NULL);
        ron_buf_fini(&text);
    }
    return err == RON_ERR_OK;
}

static enum ron_err check_ops(struct api_call *call, const struct ledger_ingest_body *body,
                              uint32_t *ret_index, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = access_ops(call, body->ops, body->ops_count, ret_index, &info);

    if (err == RON_ERR_LIMIT_EXCEEDED && call->reason != NULL &&
        strcmp(call->reason, "max_daily") == 0 && is_known(call, body)) {
        call->reason = NULL;
        return RON_ERR_OK;
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

static enum ron_err read_ingest(struct api_call *call, struct body_scratch *scratch,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_command *command = &call->ledger.command;
    struct ledger_ingest_body body;
    uint32_t index = UINT32_MAX;
    enum ron_err err = ledger_read_ingest(scratch, call->request->body, call->header_key,
                                          command->stamp.tenant, &body, &index, reterr);

    if (err == RON_ERR_OK)
        err = check_ops(call, &body, &index, reterr);
    if (err != RON_ERR_OK)
        return call_refuse_index(call, index, err);
    command->key = body.key;
    command->fingerprint = body.fingerprint;
    return call_keep(call, scratch, body.ops, body.ops_count, reterr);
}

static enum ron_err read_intents(struct api_call *call, struct body_scratch *scratch,
                                 struct ron_errinfo *reterr)
{
    struct ledger_command *command = &call->ledger.command;
    struct ledger_intents_body body;
    uint32_t index = UINT32_MAX;
    enum ron_err err = ledger_read_intents(scratch, call->request->body, call->header_key,
                                           command->stamp.tenant, &body, &index, reterr);

    if (err != RON_ERR_OK)
        return call_refuse_index(call, index, err);
    command->run = body.run;
    command->fingerprint = body.fingerprint;
    command->cover = (struct ledger_cover){.accounts = false}; /* the scope is the right */
    return call_keep(call, scratch, body.ops, body.ops_count, reterr);
}

static enum ron_err refuse_key(const struct api_call *call, struct ron_errinfo *reterr)
{
    if (call->header_key.size > 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "this route takes no Idempotency-Key");
    return RON_ERR_OK;
}

static enum ron_err read_terms(struct api_call *call, struct body_scratch *scratch,
                               struct ron_errinfo *reterr)
{
    struct ledger_command *command = &call->ledger.command;
    const struct ron_slice text = call->request->body;
    enum ron_err err = refuse_key(call, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (command->kind == LEDGER_COMMAND_ASSET)
        err = ledger_read_asset(scratch, text, &command->asset, reterr);
    else if (command->kind == LEDGER_COMMAND_LIMITS)
        err = ledger_read_limits(scratch, text, &command->limits, reterr);
    else
        err = ledger_read_abandon(scratch, text, &command->abandon, reterr);
    if (err == RON_ERR_OK)
        err = call_keep(call, scratch, NULL, 0, reterr);
    return err;
}

/* A ledger_prepare_fn. */
static enum ron_err prepare(struct ledger_request *request, void *context,
                            struct ron_errinfo *reterr) RON_BLOCKS
{
    struct api_call *call = context;
    struct body_scratch *scratch;
    enum ron_err err;

    RON_ASSERT(call->magic == CALL_MAGIC);
    RON_ASSERT(&call->ledger == request);
    err = scratch_take(call->api, &scratch, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (request->command.kind == LEDGER_COMMAND_INGEST)
        err = read_ingest(call, scratch, reterr);
    else if (request->command.kind == LEDGER_COMMAND_INTENTS)
        err = read_intents(call, scratch, reterr);
    else
        err = read_terms(call, scratch, reterr);
    scratch_give(call->api, scratch);
    return err;
}

static void begin(struct ledger_api *api, struct io_request *request, enum ledger_command_kind kind)
{
    struct api_call *call;

    if (call_begin(api, request, kind, &call) != RON_ERR_OK)
        return;
    call->ledger.prepare = prepare;
    call_submit_in_turn(call);
}

static void post_ingest(void *context, struct io_request *request)
{
    begin(context, request, LEDGER_COMMAND_INGEST);
}

static void post_intents(void *context, struct io_request *request)
{
    begin(context, request, LEDGER_COMMAND_INTENTS);
}

static void audit(struct ledger_api *api, const struct io_request *request, const char *what)
{
    rt_log(api->options.log, RT_LOG_INFO, "the ledger's operator asked", rt_log_text("for", what),
           rt_log_slice("capability", auth_grant_ref(grant_of(request))),
           rt_log_text("corr_id", request->corr_id));
}

static void post_assets(void *context, struct io_request *request)
{
    audit(context, request, "an asset");
    begin(context, request, LEDGER_COMMAND_ASSET);
}

static void post_accounts(void *context, struct io_request *request)
{
    audit(context, request, "limits of an account");
    begin(context, request, LEDGER_COMMAND_LIMITS);
}

static void post_abandon(void *context, struct io_request *request)
{
    audit(context, request, "the end of a run");
    begin(context, request, LEDGER_COMMAND_ABANDON);
}

#define ID     "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_:.-]{1,64}$\"}"
#define STRICT "\"type\":\"object\",\"additionalProperties\":false"

#define INGEST_SCHEMA                                                                          \
    "{" STRICT ",\"required\":[\"batch\"],\"properties\":{\"idem_id\":{\"type\":\"string\","   \
    "\"pattern\":\"^[A-Za-z0-9_:.-]{1,128}$\"},\"batch\":{\"type\":\"array\",\"minItems\":1,"  \
    "\"maxItems\":8000,\"items\":{" STRICT ",\"required\":[\"id\",\"kind\"],\"properties\":{"  \
    "\"id\":" ID ",\"kind\":{\"enum\":[\"Mint\",\"Burn\",\"Transfer\",\"Hold\",\"Capture\","   \
    "\"Release\",\"Reverse\",\"Credit\",\"Debit\",\"Anchor\"]},\"from\":" ACCOUNT              \
    ",\"to\":" ACCOUNT ",\"account\":" ACCOUNT ",\"asset\":" TEXT ",\"amount\":" AMOUNT        \
    ",\"nonce\":" U64 ",\"ts\":" U64                                                           \
    ",\"memo\":{\"type\":\"string\",\"maxLength\":256},\"meta\":{\"type\":"                    \
    "\"object\"},\"hold_id\":" TEXT ",\"payee\":" TEXT ",\"expires_at\":{\"type\":\"string\"," \
    "\"format\":\"date-time\"},\"ref\":" TEXT ",\"stream\":" TEXT ",\"digest\":" TEXT "}}}}}"
#define INTENTS_SCHEMA                                                                            \
    "{" STRICT ",\"required\":[\"epoch_id\",\"run_key\",\"commitment\",\"funding_source\","       \
    "\"asset\",\"total\",\"chunk\",\"chunks\",\"payouts\"],\"properties\":{\"epoch_id\":" TEXT    \
    ",\"run_key\":" TEXT ",\"commitment\":" TEXT ",\"funding_source\":" TEXT ",\"asset\":" TEXT   \
    ",\"total\":" AMOUNT ",\"chunk\":" U64 ",\"chunks\":" U64 ",\"payouts\":{\"type\":\"array\"," \
    "\"minItems\":1,\"maxItems\":8000,\"items\":{" STRICT ",\"required\":[\"id\",\"to\","         \
    "\"amount\"],\"properties\":{\"id\":" ID ",\"to\":" ACCOUNT ",\"amount\":" AMOUNT "}}}}}"
#define ASSET_SCHEMA                                                                              \
    "{" STRICT ",\"required\":[\"asset\",\"decimals\",\"max_supply\"],\"properties\":{\"asset\":" \
    "{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9_-]{0,31}$\"},\"decimals\":{\"type\":"       \
    "\"integer\",\"minimum\":0,\"maximum\":38},\"max_supply\":" AMOUNT "}}"
#define LIMITS_SCHEMA                                                                           \
    "{" STRICT ",\"required\":[\"account\"],\"properties\":{\"account\":" ACCOUNT               \
    ",\"asset\":" TEXT ",\"minimum\":" AMOUNT ",\"maximum\":" AMOUNT ",\"credit_line\":" AMOUNT \
    ",\"daily\":" AMOUNT ",\"frozen\":{\"type\":\"boolean\"}}}"
#define ABANDON_SCHEMA                                                                       \
    "{" STRICT ",\"required\":[\"epoch_id\",\"run_key\"],\"properties\":{\"epoch_id\":" TEXT \
    ",\"run_key\":" TEXT "}}"
#define KEYED .fields = IO_PARAMS({"Idempotency-Key", KEY, "ask again with it, answered the same"})

#define WRITE                                                               \
    .role = "ledger", .flags = IO_ROUTE_WRITE, .media = "application/json", \
    .replies = "application/json", .reply_schema = BATCH_SCHEMA, .query = IO_PARAMS(PARAM_PROOF)

static const struct api_row rows[] = {
    {{HTTP_POST, "/ingest", WRITE, .name = "ledger_ingest", .scope = "ledger.ingest",
      .body_max = RON_BODY_SIZE_MAX, .request_schema = INGEST_SCHEMA, KEYED,
      .summary = "commit a batch of entries, all or nothing", .handler = post_ingest},
     NULL},
    {{HTTP_POST, "/intents", WRITE, .name = "ledger_intents", .scope = "ledger.intent",
      .body_max = RON_BODY_SIZE_MAX, .request_schema = INTENTS_SCHEMA, KEYED,
      .summary = "pay one chunk of a run from its pool", .handler = post_intents},
     NULL},
    {{HTTP_POST, "/assets", WRITE, .name = "ledger_asset", .scope = "ledger.admin",
      .body_max = 4096, .request_schema = ASSET_SCHEMA, .summary = "register an asset",
      .handler = post_assets},
     NULL},
    {{HTTP_POST, "/accounts", WRITE, .name = "ledger_limits", .scope = "ledger.admin",
      .body_max = 4096, .request_schema = LIMITS_SCHEMA,
      .summary = "replace the limits of an account in an asset, freeze or unfreeze it",
      .handler = post_accounts},
     NULL},
    {{HTTP_POST, "/admin/ledger/abandon", .role = "ledger",
      .flags = IO_ROUTE_WRITE | IO_ROUTE_ADMIN, .media = "application/json",
      .replies = "application/json", .reply_schema = BATCH_SCHEMA, .query = IO_PARAMS(PARAM_PROOF),
      .name = "ledger_abandon", .scope = "ledger.admin", .body_max = 4096,
      .request_schema = ABANDON_SCHEMA,
      .summary = "end a run that cannot go on; what it holds returns to its pool",
      .handler = post_abandon},
     NULL},
};
const struct api_rows api_write_rows = {rows, RON_ARRAY_COUNT(rows)};
