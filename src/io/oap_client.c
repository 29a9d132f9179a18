/*
 * oap_client.c - requests into slots, and waiting for them. See oap_client.h; the connection is
 * oap_client_task.c.
 */
#include "io/oap_client.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/inflate.h"
#include "io/oap_client_impl.h"
#include "rt/supervisor.h"

enum { CONNECT_MS_DEFAULT = 2000, SILENT_MS_DEFAULT = 10000, QUEUED_MAX_DEFAULT = 4 << 20 };

/* ---- Birth and end ---- */

static void set_options(struct oap_client *client, const struct oap_client_options *options)
    RON_NEEDS(net)
{
    size_t queued_max = options->queued_max == 0 ? QUEUED_MAX_DEFAULT : options->queued_max;

    RON_ASSERT(options->inflight_max <= OAP_INFLIGHT_MAX);
    client->token = options->token;
    client->connect_ns = (options->connect_ms == 0 ? CONNECT_MS_DEFAULT : options->connect_ms) *
                         RT_NS_PER_MS;
    client->silent_ns = (options->silent_ms == 0 ? SILENT_MS_DEFAULT : options->silent_ms) *
                        RT_NS_PER_MS;
    client->compress_min = options->compress_min;
    client->inflight_max = options->inflight_max == 0 ? OAP_INFLIGHT_MAX : options->inflight_max;
    client->frame_max = RON_FRAME_SIZE_MAX;
    /* Not from 1 on: what two clients ask shall differ in the peer's log. */
    client->corr_next = sh_random() >> (OAP_SLOT_BITS + 2);
    if (queued_max < RON_FRAME_SIZE_MAX)
        queued_max = RON_FRAME_SIZE_MAX;
    ron_buf_init(&client->filling, queued_max);
    ron_buf_init(&client->sending, queued_max);
    ron_buf_init(&client->opened, RON_INFLATED_SIZE_MAX);
    rt_breaker_init(&client->breaker,
                    options->breaker == NULL ? &client_breaker_default : options->breaker);
}

static void wake_task(void *argument)
{
    oap_client_cancel(argument);
}

static void take_down(struct oap_client *client)
{
    oap_client_lock(client);
    ron_buf_fini(&client->filling);
    oap_client_unlock(client);
    ron_buf_fini(&client->sending);
    ron_buf_fini(&client->opened);
    (void)ron_mem_free(client->in);
    rt_cond_fini(&client->freed);
    rt_cond_fini(&client->queued);
    rt_lock_fini(&client->lock);
    (void)ron_mem_free(client);
}

enum ron_err oap_client_new(const struct oap_client_options *options,
                            struct oap_client **ret_client, struct ron_errinfo *reterr)
{
    struct oap_client *client = ron_mem_alloc_array(1, sizeof(*client));
    struct rt_task_options task = {.kind = "oap-client",
                                   .name = "oap-client",
                                   .owner = "io",
                                   .fn = oap_client_run,
                                   .wake = wake_task,
                                   .argument = client};
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT((options->url == NULL) != (options->transport == NULL));
    if (client == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "OAP client");
    rt_lock_init(&client->lock, "oap client", RON_RANK_net);
    rt_cond_init(&client->freed, "oap client freed");
    rt_cond_init(&client->queued, "oap client queued");
    oap_client_lock(client);
    set_options(client, options);
    oap_client_unlock(client);
    if (options->url != NULL)
        err = client_make_transport(options->url, options->tls, &client->transport, client->host,
                                    reterr);
    else
        memcpy(client->host, "given", sizeof("given"));
    if (options->transport != NULL)
        client->transport = options->transport;
    if (err == RON_ERR_OK)
        err = rt_task_spawn(options->supervisor, &task, &client->task, reterr);
    if (err != RON_ERR_OK) {
        if (options->transport == NULL)
            client->transport = io_transport_free(client->transport);
        take_down(client);
        return err;
    }
    *ret_client = client;
    return RON_ERR_OK;
}

void oap_client_cancel(struct oap_client *client)
{
    oap_client_lock(client);
    client->canceled = true;
    rt_cond_broadcast(&client->freed);
    rt_cond_broadcast(&client->queued);
    oap_client_unlock(client);
    io_transport_cancel(client->transport);
}

struct oap_client *oap_client_free(struct oap_client *client)
{
    enum ron_err ended;
    enum ron_err err;

    if (client == NULL)
        return NULL;
    oap_client_cancel(client);
    err = rt_task_join(client->task, RT_DEADLINE_NEVER, &ended, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    (void)io_transport_free(client->transport);
    take_down(client);
    return NULL;
}

struct oap_client_stats oap_client_get_stats(struct oap_client *client)
{
    struct oap_client_stats stats;

    oap_client_lock(client);
    stats = client->stats;
    stats.inflight_count = client->inflight_count;
    stats.breaker = rt_breaker_state(&client->breaker, rt_now_ns());
    oap_client_unlock(client);
    return stats;
}

/* ---- Slots ---- */

bool oap_client_take(struct oap_client *client, uint64_t corr_id, struct oap_taken *ret_taken)
{
    unsigned number = corr_id & (OAP_INFLIGHT_MAX - 1);
    const struct oap_slot *slot = &client->slots[number];

    if ((client->used >> number & 1) == 0 || slot->corr_id != corr_id)
        return false;
    *ret_taken = (struct oap_taken){*slot, slot->begin < client->sent_end};
    client->dead_count += !ret_taken->sent;
    client->used &= ~(UINT64_C(1) << number);
    RON_ASSERT(client->inflight_count > 0);
    client->inflight_count--;
    rt_cond_broadcast(&client->freed);
    return true;
}

/* Wait until a frame of that size has a slot and room. */
static enum ron_err wait_for_room(struct oap_client *client, size_t size,
                                  struct rt_deadline deadline, struct ron_errinfo *reterr)
    RON_NEEDS(net)
{
    for (;;) {
        if (client->canceled)
            return ron_fail(reterr, RON_ERR_CANCELED, "the client is closed");
        if (size > client->frame_max)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "a frame of %zu bytes; at most %u are taken",
                            size, client->frame_max);
        if (client->inflight_count < client->inflight_max &&
            size <= client->filling.size_max - client->filling.size)
            return RON_ERR_OK;
        if (rt_task_self() == client->task)
            return ron_fail(reterr, RON_ERR_BUSY, "%u requests are in flight",
                            client->inflight_count);
        if (!rt_cond_wait(&client->freed, &client->lock, deadline.at_ns))
            return ron_fail(reterr, RON_ERR_TIMEOUT, "%u requests are in flight, and none ended",
                            client->inflight_count);
    }
}

static enum ron_err queue_frame(struct oap_client *client, struct oap_head *head,
                                struct ron_slice body, const struct oap_slot *given,
                                uint64_t *ret_corr_id, struct ron_errinfo *reterr) RON_NEEDS(net)
{
    unsigned number = (unsigned)__builtin_ctzll(~client->used);
    uint8_t bytes[OAP_HEAD_SIZE];
    enum ron_err err = ron_buf_reserve(&client->filling, head->size, reterr);

    if (err != RON_ERR_OK)
        return err;
    head->corr_id = client->corr_next++ << OAP_SLOT_BITS | number;
    oap_head_encode(head, bytes);
    ron_buf_put(&client->filling, bytes, sizeof(bytes));
    ron_buf_put(&client->filling, body.data, body.size);
    RON_ASSERT(ron_buf_check(&client->filling, NULL) == RON_ERR_OK);
    client->slots[number] = *given;
    client->slots[number].corr_id = head->corr_id;
    client->slots[number].begin = client->queued_end;
    client->queued_end += head->size;
    client->used |= UINT64_C(1) << number;
    client->inflight_count++;
    client->stats.submitted_count++;
    *ret_corr_id = head->corr_id;
    return RON_ERR_OK;
}

/* The body as one zstd stream, where that is shorter and the peer's caps let it through. */
static bool compress(const struct oap_client *client, const struct oap_client_request *request,
                     struct ron_buf *packed)
{
    struct ron_buf opened;
    bool fits;

    if (client->compress_min == 0 || request->sealed || request->body.size < client->compress_min)
        return false;
    ron_buf_init(packed, request->body.size);
    ron_buf_init(&opened, request->body.size);
    fits = io_deflate_zstd(request->body, packed, NULL) == RON_ERR_OK &&
           io_inflate(IO_CODING_ZSTD, ron_buf_slice(packed), request->body.size,
                      RON_DECOMPRESS_RATIO_MAX, &opened, NULL) == RON_ERR_OK;
    ron_buf_fini(&opened);
    if (!fits)
        ron_buf_fini(packed);
    return fits;
}

static enum ron_err submit(struct oap_client *client, const struct oap_client_request *request,
                           const struct oap_slot *slot, uint64_t *ret_corr_id,
                           struct ron_errinfo *reterr) RON_BLOCKS
{
    struct rt_deadline deadline = {slot->deadline_ns};
    struct oap_head head = {.flags = (uint16_t)(OAP_REQ | (request->sealed ? OAP_APP_E2E : 0)),
                            .code = request->code,
                            .app_proto = request->app_proto,
                            .tenant = request->tenant};
    struct ron_slice body = request->body;
    struct ron_buf packed = {0};
    bool ring = false;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(request->app_proto != OAP_PROTO_HELLO);
    if (rt_deadline_expired(deadline))
        return ron_fail(reterr, RON_ERR_TIMEOUT, "%s: the deadline has passed already",
                        client->host);
    if (compress(client, request, &packed)) {
        head.flags |= OAP_COMP;
        body = ron_buf_slice(&packed);
    }
    if (body.size > RON_FRAME_SIZE_MAX - OAP_HEAD_SIZE) {
        ron_buf_fini(&packed);
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a body of %zu bytes does not fit a frame",
                        request->body.size);
    }
    head.size = (uint32_t)(OAP_HEAD_SIZE + body.size);
    oap_client_lock(client);
    err = wait_for_room(client, head.size, deadline, reterr);
    if (err == RON_ERR_OK)
        err = queue_frame(client, &head, body, slot, ret_corr_id, reterr);
    if (err == RON_ERR_OK) {
        ring = client->waiting;
        client->waiting = false;
        rt_cond_signal(&client->queued);
    }
    oap_client_unlock(client);
    if (ring)
        io_transport_wake(client->transport);
    ron_buf_fini(&packed);
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "%s", client->host);
}

enum ron_err oap_client_submit(struct oap_client *client, const struct oap_client_request *request,
                               struct rt_deadline deadline, oap_client_done_fn *done, void *context,
                               struct ron_errinfo *reterr)
{
    const struct oap_slot slot = {.deadline_ns = deadline.at_ns, .done = done, .context = context};
    uint64_t corr_id;

    RON_ASSERT(done != NULL);
    return submit(client, request, &slot, &corr_id, reterr);
}

/* ---- A call that waits ---- */

struct call {
    struct oap_client *client;
    struct rt_cond done;
    bool is_done;
    enum ron_err err;
    struct ron_errinfo info;
    struct ron_buf *reply;
};

static void finish_call(void *context, const struct oap_client_result *result)
{
    struct call *call = context;

    call->err = result->err;
    if (result->err == RON_ERR_OK)
        call->err = ron_buf_append(call->reply, result->body.data, result->body.size, &call->info);
    else
        call->info = *result->info;
    oap_client_lock(call->client);
    call->is_done = true;
    rt_cond_signal(&call->done);
    oap_client_unlock(call->client);
}

/* The task completes it, or at its deadline this thread, which need not wait for a task that is
 * busy connecting. */
static enum ron_err await(struct call *call, uint64_t corr_id, struct rt_deadline deadline)
{
    struct oap_client *client = call->client;
    struct oap_taken taken = {0};
    uint64_t until_ns = deadline.at_ns;
    bool late = false;

    oap_client_lock(client);
    while (!call->is_done && !late) {
        if (rt_cond_wait(&call->done, &client->lock, until_ns))
            continue;
        late = !call->is_done && oap_client_take(client, corr_id, &taken);
        until_ns = SH_NEVER; /* the task has it and is about to say so */
    }
    client->stats.timeouts_count += late;
    oap_client_unlock(client);
    if (!late)
        return call->err;
    return ron_fail(&call->info, RON_ERR_TIMEOUT, "the deadline passed; %s",
                    taken.sent ? "whether the request was carried out is unknown"
                               : "the request was not sent");
}

enum ron_err oap_client_call(struct oap_client *client, const struct oap_client_request *request,
                             struct rt_deadline deadline, struct ron_buf *reply,
                             struct ron_errinfo *reterr)
{
    struct call call = {.client = client, .reply = reply};
    const struct oap_slot slot = {
        .deadline_ns = deadline.at_ns, .done = finish_call, .context = &call};
    uint64_t corr_id;
    enum ron_err err;

    rt_assert_no_lock_held();
    RON_ASSERT(rt_task_self() == NULL || rt_task_self() != client->task);
    ron_buf_reset(reply);
    rt_cond_init(&call.done, "oap call");
    err = submit(client, request, &slot, &corr_id, &call.info);
    if (err == RON_ERR_OK) {
        err = await(&call, corr_id, deadline);
        if (err != RON_ERR_OK)
            err = ron_wrap(&call.info, err, "%s", client->host);
    }
    rt_cond_fini(&call.done);
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = call.info;
    return err;
}
