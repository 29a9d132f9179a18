/*
 * api_call.c - one write from its request to the pipeline and back to its answer.
 *
 * The body stays where the server has it until the reply. What reading it makes beyond (ops, texts
 * with escapes, canonical meta) is copied out of the reader's scratch into one block, so that a
 * request that waits for its commit keeps what it needs and no more. Binary entries become ops in
 * that block at once (api_oap.c). Behind the ops it has room for what the archive says of them.
 */
#include "base/mem.h"
#include "ledger/api_pages.h"

/* --- Scratch -----------------------------------------------------------------------------------
 */

enum ron_err scratch_take(struct ledger_api *api, struct body_scratch **ret_scratch,
                          struct ron_errinfo *reterr)
{
    struct body_scratch *scratch = NULL;
    enum ron_err err = RON_ERR_OK;

    api_lock(api);
    if (api->scratches_free != 0) {
        const unsigned number = (unsigned)__builtin_ctzll(api->scratches_free);

        api->scratches_free &= api->scratches_free - 1;
        scratch = &api->scratches[number];
    }
    api_unlock(api);
    if (scratch == NULL)
        return ron_fail(reterr, RON_ERR_BUSY, "%u bodies are being read", api->options.bodies_max);
    if (scratch->arena.block == NULL)
        err = body_scratch_init(scratch, reterr); /* made when first used, then kept */
    if (err != RON_ERR_OK) {
        scratch_give(api, scratch);
        return err;
    }
    body_scratch_reset(scratch);
    *ret_scratch = scratch;
    return RON_ERR_OK;
}

void scratch_give(struct ledger_api *api, struct body_scratch *scratch)
{
    api_lock(api);
    api->scratches_free |= UINT64_C(1) << (scratch - api->scratches);
    api_unlock(api);
}

/* --- Memory ------------------------------------------------------------------------------------
 */

static const size_t op_texts[] = {
    offsetof(struct ledger_op, id_text),     offsetof(struct ledger_op, debit_name),
    offsetof(struct ledger_op, credit_name), offsetof(struct ledger_op, payee_name),
    offsetof(struct ledger_op, asset_name),  offsetof(struct ledger_op, memo),
    offsetof(struct ledger_op, meta),        offsetof(struct ledger_op, stream),
    offsetof(struct ledger_op, ref),
};

static bool is_scratch(const struct body_scratch *scratch, struct ron_slice text)
{
    const uint8_t *arena = scratch->arena.block;
    const uint8_t *meta = scratch->meta.data;

    return (text.data >= arena && text.data < arena + scratch->arena.size) ||
           (meta != NULL && text.data >= meta && text.data < meta + scratch->meta.capacity);
}

/* Texts of the command itself. */
static size_t command_texts(struct ledger_command *command, struct ron_slice *ret_texts[4])
{
    size_t count = 0;

    ret_texts[count++] = &command->key;
    if (command->kind == LEDGER_COMMAND_INTENTS) {
        ret_texts[count - 1] = &command->run.epoch_id;
        ret_texts[count++] = &command->run.run_key;
        ret_texts[count++] = &command->run.funding_source;
        ret_texts[count++] = &command->run.asset;
    } else if (command->kind == LEDGER_COMMAND_ASSET) {
        ret_texts[count - 1] = &command->asset.name;
    } else if (command->kind == LEDGER_COMMAND_LIMITS) {
        ret_texts[count - 1] = &command->limits.account;
        ret_texts[count++] = &command->limits.asset;
    } else if (command->kind == LEDGER_COMMAND_ABANDON) {
        ret_texts[count - 1] = &command->abandon.epoch_id;
        ret_texts[count++] = &command->abandon.run_key;
    } else if (command->kind == LEDGER_COMMAND_SLICE) {
        ret_texts[count - 1] = &command->slice.dimension;
    }
    return count;
}

static size_t texts_size(const struct body_scratch *scratch, struct ledger_command *command,
                         const struct ledger_op *ops, uint32_t ops_count)
{
    struct ron_slice *texts[4];
    const size_t count = command_texts(command, texts);
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += is_scratch(scratch, *texts[i]) ? texts[i]->size : 0;
    for (uint32_t i = 0; i < ops_count; i++)
        for (size_t j = 0; j < RON_ARRAY_COUNT(op_texts); j++) {
            struct ron_slice text;

            memcpy(&text, (const uint8_t *)&ops[i] + op_texts[j], sizeof(text));
            size += is_scratch(scratch, text) ? text.size : 0;
        }
    return size;
}

static void move_text(const struct body_scratch *scratch, void *place, uint8_t **at)
{
    struct ron_slice text;

    memcpy(&text, place, sizeof(text));
    if (!is_scratch(scratch, text))
        return;
    if (text.size > 0)
        memcpy(*at, text.data, text.size);
    text.data = *at; /* also an empty one: it is there */
    *at += text.size;
    memcpy(place, &text, sizeof(text));
}

enum ron_err call_take_block(struct api_call *call, size_t size, struct ron_errinfo *reterr)
{
    struct ledger_api *api = call->api;
    uint64_t after = rt_atomic_add_u64(&api->bytes, size) + size;

    if (after > api->options.bytes_max) {
        (void)rt_atomic_add_u64(&api->bytes, (uint64_t)0 - size);
        return ron_fail(reterr, RON_ERR_BUSY, "%llu bytes wait for their commit",
                        (unsigned long long)(after - size));
    }
    call->block = ron_mem_resize(NULL, size); /* not zeroed: it may be megabytes */
    if (call->block == NULL) {
        (void)rt_atomic_add_u64(&api->bytes, (uint64_t)0 - size);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu bytes of a batch", size);
    }
    call->block_size = size;
    return RON_ERR_OK;
}

/* Of a request's sift_room. */
static size_t sift_size(uint32_t ops_count)
{
    return ((size_t)ops_count + 63) / 64 * sizeof(uint64_t);
}

enum ron_err call_take_ops(struct api_call *call, uint32_t ops_count,
                           struct ledger_bare_op **ret_ops, struct ron_errinfo *reterr)
{
    enum { LINE_SIZE = 64 }; /* an op is two lines of the cache if it begins one */
    uintptr_t start;
    enum ron_err err;

    RON_ASSERT(call->block == NULL);
    if (ops_count <= API_OPS_INLINE) {
        *ret_ops = call->few_bare;
        return RON_ERR_OK;
    }
    err = call_take_block(
        call, (size_t)ops_count * sizeof(**ret_ops) + LINE_SIZE + sift_size(ops_count), reterr);
    if (err != RON_ERR_OK)
        return err;
    start = (uintptr_t)call->block;
    *ret_ops = (struct ledger_bare_op *)(void *)(call->block +
                                                 (LINE_SIZE - start % LINE_SIZE) % LINE_SIZE);
    call->ledger.sift_room = (uint64_t *)(void *)(*ret_ops + ops_count);
    return RON_ERR_OK;
}

enum ron_err call_keep(struct api_call *call, const struct body_scratch *scratch,
                       const struct ledger_op *ops, uint32_t ops_count, struct ron_errinfo *reterr)
{
    struct ledger_command *command = &call->ledger.command;
    const size_t ops_size = (size_t)ops_count * sizeof(*ops);
    const size_t extra = texts_size(scratch, command, ops, ops_count);
    struct ledger_op *kept = call->few;
    struct ron_slice *texts[4];
    size_t count;
    uint8_t *at;

    RON_ASSERT(call->block == NULL);
    if (ops_count > API_OPS_INLINE || extra > 0) {
        enum ron_err err = call_take_block(call, ops_size + sift_size(ops_count) + extra + 1,
                                           reterr);

        if (err != RON_ERR_OK)
            return err;
        kept = (struct ledger_op *)(void *)call->block;
        call->ledger.sift_room = (uint64_t *)(void *)(call->block + ops_size);
    }
    if (ops_size > 0)
        memcpy(kept, ops, ops_size);
    at = call->block == NULL ? NULL : call->block + ops_size + sift_size(ops_count);
    for (uint32_t i = 0; extra > 0 && i < ops_count; i++)
        for (size_t j = 0; j < RON_ARRAY_COUNT(op_texts); j++)
            move_text(scratch, (uint8_t *)&kept[i] + op_texts[j], &at);
    count = command_texts(command, texts);
    for (size_t i = 0; extra > 0 && i < count; i++)
        move_text(scratch, texts[i], &at);
    command->ops = kept;
    command->ops_count = ops_count;
    return RON_ERR_OK;
}

enum ron_err call_refuse_index(struct api_call *call, uint32_t index, enum ron_err err)
{
    if (index != UINT32_MAX)
        call->ledger.outcome.refusal = (struct ledger_refusal){.present = LEDGER_DETAIL_INDEX,
                                                               .index = index};
    return err;
}

/* --- Life --------------------------------------------------------------------------------------
 */

/* All but its outcome, which the reply is made of: the call itself goes with the request. */
static struct ledger_api *call_close(struct api_call *call)
{
    struct ledger_api *api = call->api;

    RON_ASSERT(call->magic == CALL_MAGIC);
    if (call->block != NULL) {
        (void)rt_atomic_add_u64(&api->bytes, (uint64_t)0 - call->block_size);
        call->block = ron_mem_free(call->block);
    }
    if (call->wants_proof)
        (void)rt_atomic_sub_u32(&api->proofs_count, 1);
    call->magic = 0;
    return api;
}

void call_refuse(struct api_call *call, enum ron_err err, const struct ron_errinfo *info)
{
    call->ledger.outcome.err = err;
    call->ledger.outcome.info = *info;
    call_end(call);
}

void call_end(struct api_call *call)
{
    struct ledger_api *api = call_close(call);

    reply_call(call);
    (void)rt_atomic_sub_u32(&api->calls_count, 1);
}

void call_end_with(struct api_call *call, struct ron_slice proofs)
{
    struct ledger_api *api = call_close(call);

    reply_call_with(call, proofs);
    (void)rt_atomic_sub_u32(&api->calls_count, 1);
}

/* From any thread of the pipeline: must not block. */
static void call_done(struct ledger_request *request, void *context)
{
    struct api_call *call = context;
    const struct ledger_outcome *outcome = &request->outcome;

    RON_ASSERT(call->magic == CALL_MAGIC);
    if (!outcome->unknown && (outcome->err != RON_ERR_OK || outcome->repeated))
        access_refund(call);
    if (call->wants_proof && outcome->err == RON_ERR_OK && outcome->reply.batch != 0 &&
        rt_queue_try_send(call->api->proofs_queue, (struct rt_queue_item){call, 1}, NULL) ==
            RON_ERR_OK)
        return;
    call_end(call);
}

/* ?proof=1: a place among those that wait for theirs is taken before the write. */
static enum ron_err read_proof(struct api_call *call, struct ron_errinfo *reterr)
{
    struct ledger_api *api = call->api;
    char text[4];
    enum ron_err err = io_query_only(call->request, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_query_get(call->request, "proof", text, sizeof(text), NULL);
    if (err == RON_ERR_NOT_FOUND)
        return RON_ERR_OK;
    if (err != RON_ERR_OK || (strcmp(text, "0") != 0 && strcmp(text, "1") != 0))
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: proof is 0 or 1");
    if (text[0] == '0')
        return RON_ERR_OK;
    err = need_tree(api, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (rt_atomic_add_u32(&api->proofs_count, 1) >= LEDGER_API_PROOFS_MAX) {
        (void)rt_atomic_sub_u32(&api->proofs_count, 1);
        return ron_fail(reterr, RON_ERR_BUSY, "%d writes wait for their proofs",
                        LEDGER_API_PROOFS_MAX);
    }
    call->wants_proof = true;
    return RON_ERR_OK;
}

/* What head and query say; over OAP/1 there is no head, and an operation has no query either. */
static enum ron_err read_head(struct api_call *call, struct ron_errinfo *reterr)
{
    const struct http_head *head = call->request->head;
    const struct http_field *field;

    if (io_request_is_operation(call->request))
        return RON_ERR_OK;
    if (head == NULL)
        return read_proof(call, reterr);
    if (http_head_count(head, "idempotency-key") > 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "more than one Idempotency-Key");
    field = http_head_find(head, "idempotency-key");
    if (field != NULL) {
        if (!ledger_is_key(field->value))
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "Idempotency-Key is not 1..128 of [A-Za-z0-9_:.-]");
        call->header_key = field->value;
    }
    return read_proof(call, reterr);
}

enum ron_err call_begin(struct ledger_api *api, struct io_request *request,
                        enum ledger_command_kind kind, struct api_call **ret_call)
{
    const struct auth_grant *grant = grant_of(request);
    struct ron_errinfo info = {0};
    struct api_call *call = NULL;
    const uint32_t before = rt_atomic_add_u32(&api->calls_count, 1);
    enum ron_err err = grant_rate(api, grant, &info);

    if (err == RON_ERR_OK && before >= LEDGER_API_CALLS_MAX)
        err = ron_fail(&info, RON_ERR_BUSY, "%d writes are in flight", LEDGER_API_CALLS_MAX);
    if (err == RON_ERR_OK) {
        call = io_request_room(request, sizeof(*call));
        if (call == NULL)
            err = ron_fail(&info, RON_ERR_NO_MEMORY, "a write");
    }
    if (err != RON_ERR_OK) {
        (void)rt_atomic_sub_u32(&api->calls_count, 1);
        reply_error(request, err, &info);
        return err;
    }
    memset(call, 0, offsetof(struct api_call, few)); /* ops are copied whole */
    call->magic = CALL_MAGIC;
    call->api = api;
    call->request = request;
    call->ledger.command.kind = kind;
    call->ledger.size = (uint32_t)(sizeof(*call) + request->body.size);
    call->ledger.deadline = request->deadline;
    call->ledger.done = call_done;
    call->ledger.context = call;
    call->ledger.grant = grant; /* lives as long as the request */
    call->ledger.trace = request->trace;
    call->ledger.corr_id = request->corr_id;
    err = stamp_of(request, &call->ledger.command.stamp, &info);
    if (err == RON_ERR_OK)
        err = read_head(call, &info);
    if (err != RON_ERR_OK) {
        call_refuse(call, err, &info);
        return err;
    }
    call->ledger.command.cover = cover_of(grant);
    /* Who has a ceiling may be asked for in the books (api_write.c, is_known). */
    call->ledger.prompt = !auth_grant_has(grant, AUTH_CAVEAT_MAX_DAILY);
    *ret_call = call;
    return RON_ERR_OK;
}

/* The cause that refuses writes, by its name: details.reason. */
static const char *reason_of(struct ledger_service *service)
{
    struct rt_lifecycle *lifecycle = ledger_service_lifecycle(service);
    const struct rt_cause *cause = rt_ready_refusal(&rt_lifecycle_role(lifecycle)->causes,
                                                    rt_lifecycle_status(lifecycle).raised,
                                                    RT_PLANE_WRITE);

    return cause == NULL ? NULL : cause->name;
}

static void refuse(struct api_call *call, enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_NOT_READY || err == RON_ERR_SAFE_MODE || err == RON_ERR_RECOVERING)
        call->reason = reason_of(call->api->options.service);
    call_refuse(call, err, info);
}

void call_submit(struct api_call *call)
{
    struct ron_errinfo info = {0};
    const enum ron_err err = ledger_submit(call->api->options.service, &call->ledger, &info);

    if (err != RON_ERR_OK)
        refuse(call, err, &info);
}

static void refused(struct ledger_request *request, enum ron_err err,
                    const struct ron_errinfo *info)
{
    struct api_call *call = request->context;

    RON_ASSERT(call->magic == CALL_MAGIC);
    refuse(call, err, info);
}

static void submit_turn(void *context, void **items, size_t items_count)
{
    struct ledger_api *api = context;
    struct ledger_request *requests[LEDGER_SUBMIT_MAX];

    _Static_assert((int)IO_GATHERED_MAX <= (int)LEDGER_SUBMIT_MAX, "a turn is one submission");
    for (size_t i = 0; i < items_count; i++)
        requests[i] = &((struct api_call *)items[i])->ledger;
    ledger_submit_many(api->options.service, requests, items_count, refused);
}

void call_submit_in_turn(struct api_call *call)
{
    io_request_gather(call->request, submit_turn, call->api, call);
}
