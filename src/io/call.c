/*
 * call.c - a request in the hands of a handler: its memory and its end. See conn.h.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"
#include "io/conn.h"

enum { BODY_FIRST_SIZE = 8192 };

struct io_call *call_new(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;
    struct io_call *call = loop->spare_calls;

    if (call != NULL) {
        loop->spare_calls = call->next;
        loop->spare_calls_count--;
    } else {
        call = ron_mem_alloc(sizeof(*call));
        if (call == NULL)
            return NULL;
    }
    /* The head is filled by its parser. */
    memset(&call->request, 0, sizeof(call->request));
    memset(&call->loop, 0, offsetof(struct io_call, room) - offsetof(struct io_call, loop));
    call->loop = loop;
    call->conn = conn;
    call->protocol = conn->protocol;
    call->request.head = &call->head;
    call->peer = conn->peer;
    call->request.peer = &call->peer;
    call->request.arrived_ns = loop->now_ns;
    call->request.arrived_ms = loop->utc_ms;
    return call;
}

void *io_request_room(struct io_request *request, size_t size)
{
    struct io_call *call = (struct io_call *)request;

    RON_ASSERT(call->dispatched);
    RON_ASSERT(size <= IO_ROOM_SIZE_MAX);
    if (call->room_size < size) {
        (void)ron_mem_free(call->room);
        call->room = ron_mem_alloc(size);
        call->room_size = call->room == NULL ? 0 : size;
    }
    return call->room;
}

/* Back to the heap. */
void call_drop(struct io_call *call)
{
    (void)ron_mem_free(call->room);
    (void)ron_mem_free(call);
}

/* Fresh pages cost more than the bytes that are copied into them: long blocks go round. */
static void free_body(struct io_call *call)
{
    struct io_loop *loop = call->loop;

    if (call->body == NULL)
        return;
    server_uncharge(loop->server, call->body_capacity);
    if (call->body_kept && call->body_capacity >= BODY_KEPT_SIZE &&
        call->body_capacity <= RON_FRAME_SIZE_MAX && loop->spare_bodies_count < LOOP_BODIES_MAX)
        loop->spare_bodies[loop->spare_bodies_count++] = (struct spare_body){call->body,
                                                                             call->body_capacity};
    else
        (void)ron_mem_free(call->body);
    call->body = NULL;
    call->body_capacity = 0;
}

/* ---- Spans ---- */

void call_trace(struct io_call *call)
{
    struct rt_spans *spans = call->loop->server->options.spans;
    const struct http_field *field;
    struct rt_trace trace;

    if (RON_LIKELY(spans == NULL || rt_atomic_load_u32(&spans->rate) == 0))
        return;
    field = call->request.frame != NULL ? NULL : http_head_find(&call->head, "traceparent");
    if (!rt_trace_start(spans, field == NULL ? (struct ron_slice){0} : field->value, &trace))
        return;
    call->span = rt_span_begin(spans, &trace, "refused");
    call->request.trace = rt_span_trace(call->span);
}

void call_end_span(struct io_call *call, int status)
{
    const struct io_request *request = &call->request;
    struct rt_span *span = RON_TAKE(call->span);

    if (span == NULL)
        return;
    if (request->route != NULL) {
        rt_span_rename(span, request->route->name);
        rt_span_put_text(span, "role", request->route->role);
    }
    rt_span_put_text(span, "corr_id", request->corr_id);
    rt_span_put_text(span, "network.protocol.name", request->frame != NULL ? "oap" : "http");
    if (status != 0)
        rt_span_put_number(span, "http.response.status_code", (uint64_t)status);
    rt_span_end(call->loop->server->options.spans, span, status == 0 || status >= 500);
}

void call_free(struct io_call *call)
{
    struct io_loop *loop = call->loop;
    struct io_server *server = loop->server;

    RON_ASSERT(call->conn == NULL || call->conn->call != call);
    call_end_span(call, call->stream != NULL ? 200 : call->status);
    if (call->counted)
        rt_atomic_sub_u32(&server->roles[call->role].inflight[call->write], 1);
    free_body(call);
    if (call->reply != NULL && call->reply != call->inline_reply)
        (void)ron_mem_free(call->reply);
    if (call->reply_charged > 0)
        server_uncharge(server, call->reply_charged);
    buffer_release(loop, &call->in);
    /* A sanitizer sees who still looks at it. */
    if (loop->spare_calls_count < LOOP_SPARE_MAX && !RON_ASAN) {
        call->next = loop->spare_calls;
        loop->spare_calls = call;
        loop->spare_calls_count++;
    } else {
        call_drop(call);
    }
}

void call_detach(struct io_call *call)
{
    struct io_conn *conn = call->conn;

    RON_ASSERT(conn->call == call);
    conn->call = NULL;
    if (!call->dispatched) {
        call_free(call);
        return;
    }
    /* The handler still reads head and body: the buffer they lie in moves with it. */
    call->conn = NULL;
    if (call->in.data == NULL) {
        call->in = conn->in;
        conn->in = (struct conn_buffer){0};
    }
}

enum ron_err call_charge_role(struct io_call *call, uint16_t role, struct ron_errinfo *reterr)
{
    struct io_loop *loop = call->loop;
    const struct io_budget *budget;
    struct rt_bucket *bucket;
    uint32_t rate;
    uint32_t most;

    if (role == 0)
        return RON_ERR_OK;
    call->role = role - 1u;
    budget = loop->server->roles[call->role].budget;
    bucket = &loop->buckets[call->role][call->write];
    rate = rt_atomic_load_u32(&loop->server->roles[call->role].rates[call->write]);
    if (RON_UNLIKELY(bucket->rate_per_s != rate)) /* the first time, or it was changed */
        rt_bucket_init(bucket, rate, rate / 10 + 1, loop->now_ns); /* a tenth of a second */
    if (rate > 0 && !rt_bucket_take(bucket, 1, loop->now_ns))
        return ron_fail(reterr, RON_ERR_RATE_LIMITED, "%s: too many %s a second", budget->role,
                        call->write ? "writes" : "reads");
    most = call->write ? budget->writes_inflight : budget->reads_inflight;
    if (rt_atomic_add_u32(&loop->server->roles[call->role].inflight[call->write], 1) >= most &&
        most > 0) {
        rt_atomic_sub_u32(&loop->server->roles[call->role].inflight[call->write], 1);
        return ron_fail(reterr, RON_ERR_BUSY, "%s: too many %s at once", budget->role,
                        call->write ? "writes" : "reads");
    }
    call->counted = true;
    return RON_ERR_OK;
}

enum ron_err call_authorize(struct io_call *call, struct ron_errinfo *reterr)
{
    const struct io_server_options *options = &call->loop->server->options;
    enum ron_err err;

    if (options->authorize == NULL)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "no capability is accepted here");
    err = options->authorize(options->context, &call->request, call->principal, reterr);
    if (err == RON_ERR_OK)
        call->request.principal = call->principal;
    return err;
}

/* ---- Bodies ---- */

/* A long body starts in a block that is there already, charged whole. */
static bool take_spare_body(struct io_call *call, size_t most)
{
    struct io_loop *loop = call->loop;

    if (call->body != NULL || most < BODY_KEPT_SIZE)
        return false;
    for (size_t i = loop->spare_bodies_count; i-- > 0;) {
        struct spare_body *spare = &loop->spare_bodies[i];

        if (spare->capacity < most || !server_charge(loop->server, spare->capacity))
            continue;
        call->body = spare->data;
        call->body_capacity = spare->capacity;
        call->body_kept = true;
        *spare = loop->spare_bodies[--loop->spare_bodies_count];
        return true;
    }
    return false;
}

enum ron_err call_reserve_body(struct io_call *call, size_t size, size_t most,
                               struct ron_errinfo *reterr)
{
    size_t capacity = call->body_capacity == 0 ? BODY_FIRST_SIZE : call->body_capacity;
    uint8_t *body;

    RON_ASSERT(size <= most);
    if (size <= call->body_capacity || take_spare_body(call, most))
        return RON_ERR_OK;
    while (capacity < size)
        capacity *= 2;
    if (capacity > most)
        capacity = most;
    if (!server_charge(call->loop->server, capacity - call->body_capacity))
        return ron_fail(reterr, RON_ERR_BUSY, "the memory for bodies is used up");
    body = ron_mem_resize(call->body, capacity);
    if (body == NULL) {
        server_uncharge(call->loop->server, capacity - call->body_capacity);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "body");
    }
    call->body = body;
    call->body_capacity = capacity;
    call->body_kept = true;
    return RON_ERR_OK;
}

/* Charged whole while it grows, and then for as long as it lives. */
enum ron_err call_open_body(struct io_call *call, enum io_coding coding, struct ron_slice sent,
                            size_t most, struct ron_errinfo *reterr)
{
    struct io_server *server = call->loop->server;
    struct ron_buf opened;
    enum ron_err err;

    if (!server_charge(server, most))
        return ron_fail(reterr, RON_ERR_BUSY, "the memory for bodies is used up");
    ron_buf_init(&opened, most);
    err = io_inflate(coding, sent, most, RON_DECOMPRESS_RATIO_MAX, &opened, reterr);
    if (err != RON_ERR_OK) {
        server_uncharge(server, most);
        ron_buf_fini(&opened);
        return err;
    }
    free_body(call);
    call->body_kept = false; /* its block may be shorter than what is charged */
    call->body = opened.data;
    call->body_size = opened.size;
    call->body_capacity = most; /* what is charged */
    if (opened.data == NULL) {  /* it was empty */
        server_uncharge(server, most);
        call->body_capacity = 0;
    }
    return RON_ERR_OK;
}
