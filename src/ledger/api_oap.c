/*
 * api_oap.c - OAP/1, app_proto 1: code 1 ingest, code 2 open accounts; bodies: core_oap.h. Code 3
 * calls any route of the API by its name: io/oap_call.h.
 *
 * The fingerprint of a binary body is BLAKE3 of everything behind its key: those bytes have one
 * spelling.
 */
#include "base/mem.h"
#include "ledger/api_impl.h"

enum { APP_PROTO_LEDGER = 1, CODE_INGEST = 1, CODE_OPEN = 2, CODE_CALL = 3 };

/* Entries become ops where they stay until the answer: the body lives as long, so nothing else of
 * it is kept. */
static enum ron_err read_ingest(struct api_call *call, struct ron_errinfo *reterr)
{
    struct ledger_command *command = &call->ledger.command;
    const struct ron_slice bytes = call->request->body;
    struct ledger_oap_body body;
    struct ledger_oap_sum sum;
    struct ledger_bare_op *ops;
    uint32_t index = UINT32_MAX;
    enum ron_err err = ledger_oap_head(bytes, &body, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = call_take_ops(call, body.count, &ops, reterr); /* as many as there are bytes for */
    if (err != RON_ERR_OK)
        return err;
    err = ledger_oap_decode(command->stamp.tenant, &body, ops, &sum, &index, reterr);
    if (err == RON_ERR_OK)
        err = access_bare_ops(call, ops, body.count, &sum, &index, reterr);
    if (err != RON_ERR_OK)
        return call_refuse_index(call, index, err); /* its answer gives the block back */
    command->key = body.key;
    if (body.key.size > 0)
        command->fingerprint = ron_b3(body.key.data + body.key.size,
                                      bytes.size - 2 - body.key.size);
    command->bare_ops = ops;
    command->ops_count = body.count;
    return RON_ERR_OK;
}

/* Names borrow the body; their list is the call's block. */
static enum ron_err read_open(struct api_call *call, struct body_scratch *scratch,
                              struct ron_errinfo *reterr)
{
    struct ledger_command *command = &call->ledger.command;
    const struct ron_slice body = call->request->body;
    const size_t room = body.size / 3 + 1; /* a name is a byte and its size at least */
    const size_t count_max = room < RON_BATCH_ENTRIES_MAX ? room : RON_BATCH_ENTRIES_MAX;
    struct ron_slice *names = ron_arena_alloc(&scratch->arena, count_max * sizeof(*names));
    uint32_t count = 0;
    uint32_t index = UINT32_MAX;
    enum ron_err err;

    if (names == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "no room for %zu names", count_max);
    err = ledger_oap_decode_names(body, names, &count, &index, reterr);
    for (uint32_t i = 0; err == RON_ERR_OK && i < count; i++) {
        err = check_reads(grant_of(call->request), names[i], reterr);
        if (err != RON_ERR_OK)
            index = i;
    }
    if (err != RON_ERR_OK)
        return call_refuse_index(call, index, err);
    err = call_take_block(call, (size_t)count * sizeof(*names), reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(call->block, names, (size_t)count * sizeof(*names));
    command->open = (struct ledger_open_terms){
        .names = (const struct ron_slice *)(const void *)call->block, .count = count};
    return RON_ERR_OK;
}

static enum ron_err prepare(struct ledger_request *request, void *context,
                            struct ron_errinfo *reterr)
{
    struct api_call *call = context;
    struct body_scratch *scratch;
    enum ron_err err;

    RON_ASSERT(call->magic == CALL_MAGIC);
    if (request->command.kind == LEDGER_COMMAND_INGEST)
        return read_ingest(call, reterr);
    err = scratch_take(call->api, &scratch, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = read_open(call, scratch, reterr);
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

static void ingest(void *context, struct io_request *request)
{
    begin(context, request, LEDGER_COMMAND_INGEST);
}

static void open_accounts(void *context, struct io_request *request)
{
    begin(context, request, LEDGER_COMMAND_OPEN);
}

static const struct io_oap_op ops[] = {
    {APP_PROTO_LEDGER,
     CODE_INGEST,
     {.role = "ledger",
      .name = "ledger_oap_ingest",
      .scope = "ledger.ingest",
      .flags = IO_ROUTE_WRITE,
      .body_max = RON_BODY_SIZE_MAX,
      .summary = "commit a batch of binary entries",
      .handler = ingest}},
    {APP_PROTO_LEDGER,
     CODE_OPEN,
     {.role = "ledger",
      .name = "ledger_oap_open",
      .scope = "ledger.ingest",
      .flags = IO_ROUTE_WRITE,
      .body_max = RON_BODY_SIZE_MAX,
      .summary = "make accounts known by name, so that entries may name them by id",
      .handler = open_accounts}},
    {APP_PROTO_LEDGER,
     CODE_CALL,
     {.role = "ledger",
      .name = "ledger_oap_call",
      .flags = IO_ROUTE_CALL,
      .summary = "what a route of the HTTP API does"}},
};

enum ron_err api_oap_add(struct io_oap_service *oap, struct ledger_api *api,
                         struct ron_errinfo *reterr)
{
    return io_oap_service_add(oap, ops, RON_ARRAY_COUNT(ops), api, reterr);
}
