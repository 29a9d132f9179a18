/*
 * oap_conn.c - OAP/1 on a connection: frames in, admitted, handed to their handlers. See oap_conn.h
 * for the bounds and oap_server.h for the rules; oap_answer.c has the way back.
 */
#include "io/oap_conn.h"

#include "base/assert.h"
#include "base/mem.h"
#include "io/oap_call.h"

/* ---- Admission ---- */

/* The route that is asked for is known: in the order of server.h. */
static enum ron_err admit(struct io_conn *conn, struct io_call *call, uint16_t role,
                          struct ron_errinfo *reterr)
{
    const struct io_server_options *options = &conn->loop->server->options;
    const struct oap_session *session = conn->oap;
    const struct io_route *route = call->match.route;
    struct io_request *request = &call->request;
    uint32_t deadline_ms;
    enum ron_err err;

    request->route = route;
    call->write = (route->flags & IO_ROUTE_WRITE) != 0;
    if (call->write && oap_draining(conn))
        return ron_fail(reterr, RON_ERR_DRAINING, "the server is shutting down");
    if (conn->inflight >= OAP_INFLIGHT_MAX)
        return ron_fail(reterr, RON_ERR_BUSY, "%d requests of this connection are in flight",
                        OAP_INFLIGHT_MAX);
    deadline_ms = route->deadline_ms != 0 ? route->deadline_ms : options->request_ms;
    request->deadline.at_ns = request->arrived_ns + deadline_ms * RT_NS_PER_MS;
    err = call_charge_role(call, role, reterr);
    if (err == RON_ERR_OK && route->scope != NULL) {
        request->capability = ron_slice_of(session->capability, session->capability_size);
        err = call_authorize(call, reterr);
        request->capability = (struct ron_slice){0}; /* the next START overwrites it */
    }
    if (err == RON_ERR_OK && oap_body_size(&call->frame) > route->body_max)
        err = ron_fail(reterr, RON_ERR_TOO_LARGE, "a body of %zu bytes; at most %u are taken",
                       oap_body_size(&call->frame), route->body_max);
    return err;
}

/* By the frame's head. A call is admitted when its target is there, and not before. */
static enum ron_err admit_frame(struct io_conn *conn, struct io_call *call,
                                struct ron_errinfo *reterr)
{
    const struct io_server *server = conn->loop->server;
    struct io_oap_match match;
    enum ron_err err;

    err = io_oap_service_match(server->options.oap, call->frame.app_proto, call->frame.code, &match,
                               reterr);
    if (err != RON_ERR_OK)
        return err;
    if ((match.route->flags & IO_ROUTE_CALL) != 0)
        return (call->frame.flags & (OAP_COMP | OAP_APP_E2E)) == 0
                   ? RON_ERR_OK
                   : ron_fail(reterr, RON_ERR_UNSUPPORTED_MEDIA,
                              "a call is neither compressed nor sealed: its target is read first");
    call->match.route = match.route;
    call->match.context = match.context;
    return admit(conn, call, server->oap_roles[match.number], reterr);
}

/* A call, once its target is there: from here on it is a request to that route, and its frame as
 * long as the body that is left. */
static enum ron_err admit_call(struct io_conn *conn, struct io_call *call,
                               struct ron_errinfo *reterr)
{
    const struct io_server *server = conn->loop->server;
    struct io_request *request = &call->request;
    struct http_target target = {0};
    struct oap_call asked;
    uint32_t allowed;
    enum ron_err err;

    err = oap_call_decode(
        ron_slice_of(conn->in.data + conn->in.start, conn->in.end - conn->in.start),
        oap_body_size(&call->frame), &asked, reterr);
    if (err != RON_ERR_OK || asked.size == 0)
        return err;
    if (!buffer_reserve(conn->loop, &call->in, asked.target.size))
        return ron_fail(reterr, RON_ERR_BUSY, "the memory for bodies is used up");
    memcpy(call->in.data, asked.target.data, asked.target.size);
    call->frame.size -= (uint32_t)asked.size;
    conn->oap->head.size = call->frame.size;
    conn->in.start += asked.size;
    request->method = asked.method;
    err = http_target_split(asked.method, ron_slice_of(call->in.data, asked.target.size), &target,
                            reterr);
    request->path = target.path;
    request->query = target.query;
    if (err == RON_ERR_OK)
        err = io_routes_match(server->options.routes, conn->listener->admin, request->method,
                              request->path, &call->match, &allowed, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(request->params, call->match.params, sizeof(request->params));
    return admit(conn, call, server->route_roles[call->match.number], reterr);
}

/* Its operation is a call, and what it calls is not known yet. */
static bool is_uncalled(const struct io_call *call)
{
    return call->request.route == NULL;
}

/* Two in flight with one corr_id: the peer could not tell their answers apart. */
static bool is_in_flight(const struct oap_session *session, uint64_t corr_id)
{
    if (corr_id > session->corr_high)
        return false;
    for (uint64_t left = session->used; left != 0; left &= left - 1)
        if (session->corr_ids[__builtin_ctzll(left)] == corr_id)
            return true;
    return false;
}

/* ---- Frames ---- */

/* All of the frame is read, or thrown away. */
static enum conn_step finish_frame(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;

    conn->state = CONN_HEAD;
    conn->in_head = false;
    session->read_ns = (session->began_ns != 0 ? session->began_ns : conn->loop->now_ns) +
                       conn->loop->server->options.idle_ms * RT_NS_PER_MS;
    if ((session->head.flags & OAP_END) == 0)
        return CONN_STEP_AGAIN;
    conn->ending = true;
    conn->state = CONN_WAIT;
    oap_close_if_done(conn);
    return CONN_STEP_WAIT;
}

/* Answer the frame in hand with an error; what is left of its body is thrown away. */
static void refuse_frame(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info)
{
    struct oap_session *session = conn->oap;
    size_t read = conn->call == NULL ? 0 : conn->call->body_size;
    bool last = (session->head.flags & OAP_END) != 0 && conn->inflight == 0;

    session->skip = oap_body_size(&session->head) - read;
    if (conn->call != NULL) {
        call_end_span(conn->call, ron_err_http(ron_err_wire(err)));
        call_detach(conn->call);
    }
    (void)oap_put_error(conn, &session->head, last, err, info);
}

static bool is_inline(const struct io_call *call)
{
    return oap_body_size(&call->frame) <= sizeof(call->inline_body);
}

static void dispatch(struct io_conn *conn, struct io_call *call)
{
    struct oap_session *session = conn->oap;
    struct io_request *request = &call->request;
    unsigned slot = (unsigned)__builtin_ctzll(~session->used);
    uint8_t window[OAP_ACK_SIZE];

    RON_ASSERT(conn->inflight < OAP_INFLIGHT_MAX);
    call->slot = (uint8_t)slot;
    session->used |= UINT64_C(1) << slot;
    session->slots[slot] = call;
    session->corr_ids[slot] = call->frame.corr_id;
    if (call->frame.corr_id > session->corr_high)
        session->corr_high = call->frame.corr_id;
    session->deadlines_ns[slot] = request->deadline.at_ns;
    conn->inflight++;
    conn->call = NULL;
    oap_arm_by(conn, request->deadline.at_ns);
    if ((call->frame.flags & OAP_ACK_REQ) != 0) {
        struct oap_head ack = oap_answering(&call->frame, OAP_STATUS_ACK);

        ack.app_proto = OAP_PROTO_HELLO;
        ron_store_le32(window, OAP_INFLIGHT_MAX - conn->inflight);
        /* Without room for it the connection is lost, and this call with it. */
        call->answered = true;
        if (!oap_put_frame(conn, ack, ron_slice_of(window, sizeof(window))))
            return;
        call->answered = false;
    }
    call->dispatched = true;
    rt_atomic_add_u32(&conn->loop->server->calls_count, 1);
    request->route->handler(call->match.context, request);
}

/* The body is whole: open it where it is compressed. */
static enum ron_err open_body(struct io_call *call, struct ron_errinfo *reterr)
{
    struct ron_slice sent = ron_slice_of(is_inline(call) ? call->inline_body : call->body,
                                         call->body_size);
    enum ron_err err;

    call->request.body = sent;
    if ((call->frame.flags & OAP_COMP) == 0)
        return RON_ERR_OK;
    err = call_open_body(call, IO_CODING_ZSTD, sent, call->match.route->body_max, reterr);
    if (err == RON_ERR_OK)
        call->request.body = ron_slice_of(call->body, call->body_size);
    return err;
}

/* Take what of the body lies in the buffer. */
static enum ron_err take_body(struct io_conn *conn, struct io_call *call,
                              struct ron_errinfo *reterr)
{
    size_t total = oap_body_size(&call->frame);
    size_t size = conn->in.end - conn->in.start;
    enum ron_err err = RON_ERR_OK;

    if (size > total - call->body_size)
        size = total - call->body_size;
    if (size == 0)
        return RON_ERR_OK;
    if (!is_inline(call))
        err = call_reserve_body(call, call->body_size + size, total, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy((is_inline(call) ? call->inline_body : call->body) + call->body_size,
           conn->in.data + conn->in.start, size);
    call->body_size += size;
    conn->in.start += size;
    return RON_ERR_OK;
}

static enum conn_step skip_body(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;
    size_t size = conn->in.end - conn->in.start;

    size = size < session->skip ? size : session->skip;
    conn->in.start += size;
    session->skip -= size;
    return session->skip > 0 ? CONN_STEP_MORE : finish_frame(conn);
}

static enum conn_step step_body(struct io_conn *conn)
{
    struct io_call *call = conn->call;
    struct ron_errinfo info = {0};
    enum ron_err err;

    if (call == NULL)
        return skip_body(conn);
    err = is_uncalled(call) ? admit_call(conn, call, &info) : RON_ERR_OK;
    if (err == RON_ERR_OK && is_uncalled(call))
        return CONN_STEP_MORE;
    if (err == RON_ERR_OK)
        err = take_body(conn, call, &info);
    if (err == RON_ERR_OK && call->body_size < oap_body_size(&call->frame))
        return CONN_STEP_MORE;
    if (err == RON_ERR_OK)
        err = open_body(call, &info);
    if (err != RON_ERR_OK) {
        refuse_frame(conn, err, &info);
        return conn->closing ? CONN_STEP_WAIT : skip_body(conn);
    }
    dispatch(conn, call);
    return conn->closing ? CONN_STEP_WAIT : finish_frame(conn);
}

/* HELLO takes no body and no place among those in flight. */
static void answer_hello(struct io_conn *conn)
{
    static const struct oap_hello hello = {.frame_max = RON_FRAME_SIZE_MAX,
                                           .inflated_max = RON_INFLATED_SIZE_MAX,
                                           .inflight_max = OAP_INFLIGHT_MAX,
                                           .flags = OAP_FLAGS_ALL,
                                           .version_min = OAP_VERSION,
                                           .version_max = OAP_VERSION};
    const struct oap_head *head = &conn->oap->head;
    struct oap_head reply = oap_answering(head, OAP_STATUS_OK);
    uint8_t body[OAP_HELLO_SIZE];
    struct ron_errinfo info = {0};

    if (head->code != 0 || oap_body_size(head) != 0) {
        (void)ron_fail(&info, RON_ERR_MALFORMED, "HELLO has code 0 and no body");
        refuse_frame(conn, RON_ERR_MALFORMED, &info);
        return;
    }
    if ((head->flags & OAP_END) != 0 && conn->inflight == 0)
        reply.flags |= OAP_END;
    oap_hello_encode(&hello, body);
    rt_counter_add_own(&conn->loop->replies, 1);
    (void)oap_put_frame(conn, reply, ron_slice_of(body, sizeof(body)));
}

static void begin_call(struct io_conn *conn)
{
    struct io_call *call = call_new(conn);
    struct ron_errinfo info = {0};
    enum ron_err err;

    if (call == NULL) {
        refuse_frame(conn, RON_ERR_NO_MEMORY, NULL);
        return;
    }
    conn->call = call;
    conn->oap->began_ns = call->request.arrived_ns;
    call->frame = conn->oap->head;
    call->request.head = NULL;
    call->request.frame = &call->frame;
    call->request.method = HTTP_OTHER;
    oap_print_corr_id(call->frame.corr_id, call->request.corr_id, sizeof(call->request.corr_id));
    call_trace(call);
    err = admit_frame(conn, call, &info);
    if (err != RON_ERR_OK)
        refuse_frame(conn, err, &info);
}

/* Head and capability are there. */
static enum conn_step begin(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;
    const struct oap_head *head = &session->head;
    const struct io_server_options *options = &conn->loop->server->options;

    rt_counter_add_own(&conn->loop->requests, 1);
    conn->state = CONN_BODY;
    session->skip = 0;
    session->began_ns = 0;
    if ((head->flags & OAP_START) != 0) {
        memcpy(session->capability, conn->in.data + conn->in.start + OAP_HEAD_SIZE,
               head->capability_size);
        session->capability_size = head->capability_size;
    }
    conn->in.start += OAP_HEAD_SIZE + head->capability_size;
    if (head->app_proto == OAP_PROTO_HELLO)
        answer_hello(conn);
    else
        begin_call(conn);
    if (conn->closing)
        return CONN_STEP_WAIT;
    if (conn->in.end - conn->in.start < oap_body_size(head)) {
        session->began_ns = 0;
        session->read_ns = conn->loop->now_ns + options->body_ms * RT_NS_PER_MS;
        oap_arm_by(conn, session->read_ns);
    }
    return step_body(conn);
}

/* One total deadline for a head, from its first byte. */
static enum conn_step wait_for_head(struct io_conn *conn)
{
    if (!conn->in_head) {
        conn->in_head = true;
        conn->oap->read_ns = conn->loop->now_ns +
                             conn->loop->server->options.head_ms * RT_NS_PER_MS;
        oap_arm_by(conn, conn->oap->read_ns);
    }
    return CONN_STEP_MORE;
}

static enum conn_step step_head(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;
    const uint8_t *bytes = conn->in.data + conn->in.start;
    size_t size = conn->in.end - conn->in.start;
    struct ron_errinfo info = {0};
    struct oap_head answer;
    enum ron_err err;

    if (size == 0) {
        buffer_release(conn->loop, &conn->in);
        return CONN_STEP_MORE;
    }
    if (size < OAP_HEAD_SIZE)
        return wait_for_head(conn);
    err = oap_head_decode(bytes, &session->head, &info);
    if (err == RON_ERR_OK && (session->head.flags & OAP_REQ) == 0)
        err = ron_fail(&info, RON_ERR_MALFORMED, "frame: a server takes REQ only");
    if (err == RON_ERR_OK && is_in_flight(session, session->head.corr_id))
        err = ron_fail(&info, RON_ERR_MALFORMED, "frame: its corr_id is in flight already");
    if (err != RON_ERR_OK) {
        answer = oap_head_answering(bytes);
        oap_refuse_with(conn, &answer, err, &info);
        return CONN_STEP_WAIT;
    }
    if (size < (size_t)OAP_HEAD_SIZE + session->head.capability_size)
        return wait_for_head(conn);
    return begin(conn);
}

static bool start_session(struct io_conn *conn)
{
    struct io_server *server = conn->loop->server;

    if (!server_charge(server, sizeof(*conn->oap)))
        return false;
    conn->oap = ron_mem_alloc_array(1, sizeof(*conn->oap));
    if (conn->oap == NULL) {
        server_uncharge(server, sizeof(*conn->oap));
        return false;
    }
    conn->oap->ready_end = &conn->oap->ready;
    conn->oap->read_ns = conn->deadline_ns;
    return true;
}

static enum conn_step oap_step(struct io_conn *conn)
{
    if (conn->oap == NULL && !start_session(conn)) {
        oap_refuse(conn, RON_ERR_BUSY, NULL);
        return CONN_STEP_WAIT;
    }
    if (oap_out_is_full(conn)) {
        conn->again = true; /* when some of it is sent */
        return CONN_STEP_WAIT;
    }
    return conn->state == CONN_HEAD ? step_head(conn) : step_body(conn);
}

/* A long body is received where it stays; everything else into the buffer. */
static ssize_t oap_room(struct io_conn *conn, uint8_t **ret_at)
{
    struct oap_session *session = conn->oap;
    struct io_call *call = conn->call;
    struct ron_errinfo info = {0};

    if (oap_out_is_full(conn) || conn->in.end - conn->in.start >= OAP_IN_SIZE)
        return 0;
    session->direct = false;
    if (call != NULL && !is_uncalled(call) && conn->in.start == conn->in.end &&
        oap_body_size(&call->frame) - call->body_size >= OAP_IN_SIZE) {
        enum ron_err err = call_reserve_body(call, call->body_size + 1, oap_body_size(&call->frame),
                                             &info);

        if (err == RON_ERR_OK) {
            session->direct = true;
            *ret_at = call->body + call->body_size;
            return (ssize_t)(oap_body_size(&call->frame) < call->body_capacity
                                 ? oap_body_size(&call->frame) - call->body_size
                                 : call->body_capacity - call->body_size);
        }
        refuse_frame(conn, err, &info);
        if (conn->closing)
            return 0;
    }
    if (!buffer_reserve(conn->loop, &conn->in, conn->in.data == NULL ? OAP_IN_SIZE : 1))
        return -1;
    *ret_at = conn->in.data + conn->in.end;
    return (ssize_t)(conn->in.capacity - conn->in.end);
}

static void oap_received(struct io_conn *conn, size_t size)
{
    if (conn->oap->direct)
        conn->call->body_size += size;
    else
        conn->in.end += size;
}

const struct conn_protocol conn_oap = {
    .step = oap_step,
    .room = oap_room,
    .received = oap_received,
    .answered = oap_answered,
    .refuse = oap_refuse,
    .deadline = oap_deadline,
    .flushed = oap_pump,
    .end = oap_end,
};
