/*
 * embed.c - a ledger in somebody else's program: its life, and writing. See ron/ledger.h.
 */
#include "ledger/embed_impl.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "rt/lock.h"
#include "rt/registry.h"

enum {
    ACCOUNTS_DEFAULT = 65536,
    CALLS_DEFAULT = 4,
    MEMORY_DEFAULT = 64 << 20,
    FRAME_SIZE_LEAST = 256, /* a frame in memory: how many may there be in so many bytes */
    PREVALIDATORS = 2,
};

/* --- Life --------------------------------------------------------------------------------------
 */

static enum ron_err make_calls(struct ron_ledger *ledger, struct ron_errinfo *reterr)
{
    const uint32_t count = ledger->options.calls_max;
    const struct rt_queue_options queue = {
        .name = "embedded calls", .owner = "ledger", .policy = "callers wait", .capacity = count};
    const struct rt_watch_options watch = {
        .name = "embedded answer", .owner = "ledger", .value_size = sizeof(bool)};
    const bool nothing = false;
    enum ron_err err = rt_queue_new(&queue, &ledger->free_calls, reterr);

    if (err != RON_ERR_OK)
        return err;
    ledger->calls = ron_mem_alloc_array(count, sizeof(*ledger->calls));
    if (ledger->calls == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u calls", count);
    for (uint32_t i = 0; i < count && err == RON_ERR_OK; i++) {
        struct embed_call *call = &ledger->calls[i];

        ron_buf_init(&call->text, RON_BODY_SIZE_MAX);
        err = rt_watch_new(&watch, &nothing, &call->answered, reterr);
        if (err == RON_ERR_OK)
            err = rt_queue_try_send(ledger->free_calls, (struct rt_queue_item){call, 1}, reterr);
    }
    return err;
}

/* Stopped, or never started. */
static void destroy(struct ron_ledger *ledger) RON_BLOCKS
{
    void *item;

    ledger->role = ledger_role_free(ledger->role);
    ledger->vfs = io_vfs_free(ledger->vfs);
    for (uint32_t i = 0; ledger->calls != NULL && i < ledger->options.calls_max; i++) {
        body_scratch_fini(&ledger->calls[i].scratch);
        ron_buf_fini(&ledger->calls[i].text);
        (void)rt_watch_free(ledger->calls[i].answered);
    }
    ledger->calls = ron_mem_free(ledger->calls);
    while (ledger->free_calls != NULL && rt_queue_try_recv_many(ledger->free_calls, &item, 1) > 0)
        continue; /* they are all there, since nobody calls any more */
    ledger->free_calls = rt_queue_free(ledger->free_calls);
    ledger->magic = 0;
    (void)ron_mem_free(ledger);
}

static enum ron_err open_role(struct ron_ledger *ledger, const char *path,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t frames = ledger->options.memory_max / FRAME_SIZE_LEAST;
    struct ledger_role_options options = {
        .origin = ledger->options.origin,
        .service = ledger_service_defaults(ledger->options.accounts_max, PREVALIDATORS),
        .memory_bytes_max = ledger->options.memory_max,
        .memory_frames_max = frames > UINT32_MAX ? UINT32_MAX : (uint32_t)frames,
    };
    enum ron_err err = RON_ERR_OK;

    if (path != NULL)
        err = io_vfs_posix_new(path, true, &ledger->vfs, reterr);
    options.vfs = ledger->vfs;
    if (err == RON_ERR_OK)
        err = ledger_role_open(&options, &ledger->role, reterr);
    if (err != RON_ERR_OK)
        return err;
    ledger->service = ledger_role_service(ledger->role);
    ledger->tree = ledger_role_tree(ledger->role);
    ledger->books = ledger_role_books(ledger->role);
    return RON_ERR_OK;
}

/* Until it takes writes, or will not. */
static enum ron_err start(struct ron_ledger *ledger, uint32_t timeout_ms,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_health health;
    enum ron_err err;

    ledger->started = true;
    err = ledger_role_start(ledger->role, reterr);
    if (err == RON_ERR_OK)
        err = ledger_service_await_start(ledger->service, rt_deadline_after_ms(timeout_ms), reterr);
    if (err != RON_ERR_OK)
        return err;
    ledger_read_health(ledger->service, &health);
    if (health.damage.err != RON_ERR_OK && reterr != NULL)
        *reterr = health.damage;
    return health.damage.err;
}

static struct ron_ledger_options filled_in(const struct ron_ledger_options *options)
{
    struct ron_ledger_options made = {0};

    if (options != NULL)
        made = *options;
    if (made.origin == NULL)
        made.origin = "ron.local/ledger";
    if (made.accounts_max == 0)
        made.accounts_max = ACCOUNTS_DEFAULT;
    if (made.calls_max == 0)
        made.calls_max = CALLS_DEFAULT;
    if (made.memory_max == 0)
        made.memory_max = MEMORY_DEFAULT;
    return made;
}

enum ron_err ron_ledger_open(const char *path, const struct ron_ledger_options *options,
                             uint32_t timeout_ms, struct ron_ledger **ret_ledger,
                             struct ron_errinfo *reterr)
{
    struct ron_ledger *ledger;
    enum ron_err err;

    rt_init_once();
    if (options != NULL && options->calls_max > RON_LEDGER_CALLS_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%u calls at once, at most %d are possible",
                        options->calls_max, RON_LEDGER_CALLS_MAX);
    ledger = ron_mem_alloc(sizeof(*ledger));
    if (ledger == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a ledger");
    ledger->magic = EMBED_MAGIC;
    ledger->options = filled_in(options);
    err = make_calls(ledger, reterr);
    if (err == RON_ERR_OK)
        err = open_role(ledger, path, reterr);
    if (err == RON_ERR_OK)
        err = start(ledger, timeout_ms, reterr);
    if (err == RON_ERR_OK) {
        *ret_ledger = ledger;
        return RON_ERR_OK;
    }
    /* The first error is the one to tell; what does not end is left alone. */
    if (!ledger->started || ledger_role_stop(ledger->role, NULL, NULL) == RON_ERR_OK)
        destroy(ledger);
    return err;
}

enum ron_err ron_ledger_close(struct ron_ledger *ledger, struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (ledger == NULL)
        return RON_ERR_OK;
    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    err = ledger_role_stop(ledger->role, NULL, reterr);
    if (err == RON_ERR_OK)
        destroy(ledger);
    return err;
}

/* --- Calls -------------------------------------------------------------------------------------
 */

enum ron_err embed_take(struct ron_ledger *ledger, struct rt_deadline deadline,
                        struct embed_call **ret_call, struct ron_errinfo *reterr)
{
    struct embed_call *call;
    void *item = NULL;
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(ledger->magic == EMBED_MAGIC);
    if (rt_queue_try_recv_many(ledger->free_calls, &item, 1) == 0 &&
        rt_queue_recv(ledger->free_calls, deadline, &item, NULL) != RON_ERR_OK)
        return ron_fail(reterr, RON_ERR_BUSY, "%u calls are under way", ledger->options.calls_max);
    call = item;
    if (call->scratch.arena.block == NULL)
        err = body_scratch_init(&call->scratch, reterr); /* made when first used, then kept */
    if (err != RON_ERR_OK) {
        embed_give(ledger, call);
        return err;
    }
    body_scratch_reset(&call->scratch);
    ron_buf_reset(&call->text);
    *ret_call = call;
    return RON_ERR_OK;
}

void embed_give(struct ron_ledger *ledger, struct embed_call *call)
{
    /* There is room: it was taken from there. */
    RON_MUST_ZERO(rt_queue_try_send(ledger->free_calls, (struct rt_queue_item){call, 1}, NULL));
}

/* A ledger_done_fn. */
static void answer(struct ledger_request *request, void *context)
{
    const bool done = true;

    (void)request;
    rt_watch_set(context, &done);
}

/* Hand the command in and wait for its one answer, which always comes. */
static enum ron_err submit(struct ron_ledger *ledger, struct embed_call *call,
                           const struct ledger_command *command, uint32_t size,
                           struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t version = rt_watch_get(call->answered, NULL);
    enum ron_err err;

    call->request = (struct ledger_request){
        .command = *command,
        .size = size,
        .deadline = deadline,
        .done = answer,
        .context = call->answered,
    };
    call->request.command.stamp = (struct ledger_stamp){
        .tenant = ron_u128_of(ledger->options.tenant), .caller = LEDGER_CALLER_DIRECT};
    err = ledger_submit(ledger->service, &call->request, reterr);
    if (err != RON_ERR_OK)
        return err;
    RON_MUST_ZERO(rt_watch_wait(call->answered, version, RT_DEADLINE_NEVER, NULL, &version, NULL));
    if (call->request.outcome.err != RON_ERR_OK && reterr != NULL)
        *reterr = call->request.outcome.info;
    return call->request.outcome.err;
}

/* --- Writing -----------------------------------------------------------------------------------
 */

static struct ron_ledger_refusal refusal_of(const struct ledger_outcome *outcome, uint32_t index)
{
    const struct ledger_refusal *refusal = &outcome->refusal;
    struct ron_ledger_refusal told = {
        .index = index != UINT32_MAX                             ? (int64_t)index
                 : (refusal->present & LEDGER_DETAIL_INDEX) != 0 ? (int64_t)refusal->index
                                                                 : RON_LEDGER_NO_INDEX,
        .unknown = outcome->unknown,
        .expected_nonce = (refusal->present & LEDGER_DETAIL_NONCE) != 0 ? refusal->expected : 0,
    };

    if ((refusal->present & LEDGER_DETAIL_AVAILABLE) != 0)
        (void)ron_decimal_print_u128(refusal->available, told.available);
    return told;
}

/* The body is read in the call's scratch, where its parts stay until the answer. */
static enum ron_err write_body(struct ron_ledger *ledger, struct embed_call *call,
                               struct ron_slice body, struct ron_slice key,
                               struct rt_deadline deadline, struct ron_ledger_written *ret_written,
                               struct ron_ledger_refusal *ret_refusal,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_command command = {.kind = LEDGER_COMMAND_INGEST};
    const struct ledger_outcome *outcome = &call->request.outcome;
    struct ledger_ingest_body read;
    uint32_t index = UINT32_MAX;
    enum ron_err err = RON_ERR_OK;

    call->request = (struct ledger_request){.size = 0};
    if (body.size > RON_BODY_SIZE_MAX)
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "a body of %zu bytes", body.size);
    else if (key.size > 0 && !ledger_is_key(key))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "the key is not 1..128 of [A-Za-z0-9_:.-]");
    if (err == RON_ERR_OK)
        err = ledger_read_ingest(&call->scratch, body, key, ron_u128_of(ledger->options.tenant),
                                 &read, &index, reterr);
    if (err == RON_ERR_OK) {
        command.key = read.key;
        command.fingerprint = read.fingerprint;
        command.ops = read.ops;
        command.ops_count = read.ops_count;
        err = submit(ledger, call, &command, (uint32_t)(sizeof(*call) + body.size), deadline,
                     reterr);
        index = UINT32_MAX;
    }
    if (err != RON_ERR_OK) {
        if (ret_refusal != NULL)
            *ret_refusal = refusal_of(outcome, index);
        return err;
    }
    *ret_written = (struct ron_ledger_written){.seq_start = outcome->reply.seq_start,
                                               .seq_end = outcome->reply.seq_end,
                                               .batch = outcome->reply.batch,
                                               .committed_ms = outcome->reply.commit_ms,
                                               .root = outcome->reply.root,
                                               .repeated = outcome->repeated};
    return RON_ERR_OK;
}

static struct ron_slice text_of(const char *text)
{
    return text == NULL ? (struct ron_slice){NULL, 0} : ron_slice_text(text);
}

static enum ron_err take_or_refuse(struct ron_ledger *ledger, struct rt_deadline deadline,
                                   struct embed_call **ret_call,
                                   struct ron_ledger_refusal *ret_refusal,
                                   struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = embed_take(ledger, deadline, ret_call, reterr);

    if (err != RON_ERR_OK && ret_refusal != NULL)
        *ret_refusal = (struct ron_ledger_refusal){.index = RON_LEDGER_NO_INDEX};
    return err;
}

enum ron_err ron_ledger_write_json(struct ron_ledger *ledger, struct ron_slice body,
                                   const char *key, uint32_t timeout_ms,
                                   struct ron_ledger_written *ret_written,
                                   struct ron_ledger_refusal *ret_refusal,
                                   struct ron_errinfo *reterr)
{
    const struct rt_deadline deadline = rt_deadline_after_ms(timeout_ms);
    struct embed_call *call;
    enum ron_err err = take_or_refuse(ledger, deadline, &call, ret_refusal, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = write_body(ledger, call, body, text_of(key), deadline, ret_written, ret_refusal, reterr);
    embed_give(ledger, call);
    return err;
}

static void put_entry(struct ron_json_writer *writer, const struct ron_ledger_entry *entry)
{
    const struct {
        const char *name, *text;
    } members[] = {
        {"id", entry->id},           {"kind", entry->kind},
        {"from", entry->from},       {"to", entry->to},
        {"account", entry->account}, {"asset", entry->asset},
        {"amount", entry->amount},   {"hold_id", entry->hold_id},
        {"payee", entry->payee},     {"expires_at", entry->expires_at},
        {"ref", entry->ref},         {"memo", entry->memo},
    };

    ron_json_put_object_begin(writer);
    for (size_t i = 0; i < RON_ARRAY_COUNT(members); i++) {
        if (members[i].text == NULL)
            continue;
        ron_json_put_name(writer, members[i].name);
        ron_json_put_text(writer, members[i].text);
    }
    if (entry->nonce > 0) {
        ron_json_put_name(writer, "nonce");
        ron_json_put_u64(writer, entry->nonce);
    }
    ron_json_put_object_end(writer);
}

enum ron_err ron_ledger_write(struct ron_ledger *ledger, const struct ron_ledger_entry *entries,
                              size_t entries_count, const char *key, uint32_t timeout_ms,
                              struct ron_ledger_written *ret_written,
                              struct ron_ledger_refusal *ret_refusal, struct ron_errinfo *reterr)
{
    const struct rt_deadline deadline = rt_deadline_after_ms(timeout_ms);
    struct ron_json_writer writer;
    struct embed_call *call;
    enum ron_err err = take_or_refuse(ledger, deadline, &call, ret_refusal, reterr);

    if (err != RON_ERR_OK)
        return err;
    ron_json_writer_init(&writer, &call->text, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "batch");
    ron_json_put_array_begin(&writer);
    for (size_t i = 0; i < entries_count; i++)
        put_entry(&writer, &entries[i]);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    err = ron_json_writer_end(&writer, reterr);
    if (err == RON_ERR_OK)
        err = write_body(ledger, call, ron_buf_slice(&call->text), text_of(key), deadline,
                         ret_written, ret_refusal, reterr);
    else if (ret_refusal != NULL)
        *ret_refusal = (struct ron_ledger_refusal){.index = RON_LEDGER_NO_INDEX};
    embed_give(ledger, call);
    return err;
}

enum ron_err ron_ledger_add_asset(struct ron_ledger *ledger, const char *name, uint32_t decimals,
                                  const char *max_supply, uint32_t timeout_ms,
                                  struct ron_errinfo *reterr)
{
    const struct rt_deadline deadline = rt_deadline_after_ms(timeout_ms);
    struct ledger_command command = {
        .kind = LEDGER_COMMAND_ASSET,
        .asset = {.name = ron_slice_text(name), .decimals = decimals},
    };
    struct embed_call *call;
    enum ron_err err = ron_decimal_parse_u128(ron_slice_text(max_supply), &command.asset.max_supply,
                                              reterr);

    if (err == RON_ERR_OK)
        err = embed_take(ledger, deadline, &call, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = submit(ledger, call, &command, (uint32_t)sizeof(*call), deadline, reterr);
    embed_give(ledger, call);
    return err;
}
