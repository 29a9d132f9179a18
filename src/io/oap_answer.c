/*
 * oap_answer.c - OAP/1 on a connection: answers, refusals, deadlines and ends. See oap_conn.h.
 *
 * Time: one deadline of the connection stands for all. It is never later than the earliest of what
 * the session knows (calls, the frame that is read, idleness); when it fires the session looks.
 */
#include "io/oap_conn.h"

#include "base/assert.h"
#include "base/hex.h"
#include "base/mem.h"

enum { ENVELOPE_MAX = 8192 };

void oap_arm_by(struct io_conn *conn, uint64_t at_ns)
{
    if (at_ns < conn->deadline_ns || conn->wheel_link == NULL)
        loop_arm(conn, at_ns);
}

/* ---- Ends ---- */

static void free_slot(struct io_conn *conn, const struct io_call *call)
{
    struct oap_session *session = conn->oap;

    RON_ASSERT(session->slots[call->slot] == call && conn->inflight > 0);
    session->used &= ~(UINT64_C(1) << call->slot);
    session->slots[call->slot] = NULL;
    conn->inflight--;
}

/* Handlers keep their calls; answers to them are dropped. */
static void let_go(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;

    if (conn->call != NULL)
        call_detach(conn->call);
    while (session != NULL && session->used != 0) {
        struct io_call *call = session->slots[__builtin_ctzll(session->used)];

        free_slot(conn, call);
        call_end_span(call, ron_err_http(RON_ERR_TIMEOUT));
        call->conn = NULL;
        if (call->answered)
            call_free(call);
    }
    if (session != NULL) {
        session->ready = NULL;
        session->ready_end = &session->ready;
    }
}

/* Nothing more is read; once `out` is sent, it ends. */
static void close_after(struct io_conn *conn)
{
    conn->state = CONN_WAIT;
    conn->closing = true;
    loop_arm_ms(conn, CONN_LINGER_MS);
    loop_flush_later(conn);
}

void oap_close_if_done(struct io_conn *conn)
{
    if (conn->inflight == 0 && conn->ending && !conn->closing)
        close_after(conn);
}

void oap_end(struct io_conn *conn)
{
    let_go(conn);
    if (conn->oap == NULL)
        return;
    server_uncharge(conn->loop->server, sizeof(*conn->oap));
    conn->oap = ron_mem_free(conn->oap);
}

/* ---- Frames of our own ---- */

/* False: there was no room, and the connection is lost with all that was to go out. */
bool oap_put_frame(struct io_conn *conn, struct oap_head head, struct ron_slice body)
{
    uint8_t bytes[OAP_HEAD_SIZE];

    head.size = (uint32_t)(OAP_HEAD_SIZE + body.size);
    oap_head_encode(&head, bytes);
    if (conn_put(conn, bytes, sizeof(bytes)) && conn_put(conn, body.data, body.size)) {
        loop_flush_later(conn);
        return true;
    }
    let_go(conn);
    conn->out.end = conn->out.start;
    close_after(conn);
    return false;
}

/* A RESP to this frame. */
struct oap_head oap_answering(const struct oap_head *head, int code)
{
    return (struct oap_head){.flags = OAP_RESP,
                             .code = (uint16_t)code,
                             .app_proto = head->app_proto,
                             .tenant = head->tenant,
                             .corr_id = head->corr_id};
}

void oap_print_corr_id(uint64_t corr_id, char *text, size_t text_size)
{
    uint8_t bytes[8];

    ron_store_be64(bytes, corr_id);
    (void)ron_hex_encode(ron_slice_of(bytes, sizeof(bytes)), text, text_size);
}

bool oap_put_error(struct io_conn *conn, const struct oap_head *head, bool last, enum ron_err err,
                   const struct ron_errinfo *info)
{
    struct oap_head reply = oap_answering(head, ron_err_http(ron_err_wire(err)));
    char corr_id[IO_CORR_ID_SIZE_MAX + 1];
    struct ron_buf body;
    bool put;

    if (last)
        reply.flags |= OAP_END;
    rt_counter_add_own(&conn->loop->refused[err], 1);
    rt_counter_add_own(&conn->loop->replies, 1);
    oap_print_corr_id(head->corr_id, corr_id, sizeof(corr_id));
    ron_buf_init(&body, ENVELOPE_MAX);
    http_error_body(err, info, corr_id, (struct ron_slice){0}, &body);
    put = oap_put_frame(conn, reply, ron_buf_slice(&body));
    ron_buf_fini(&body);
    return put;
}

/* The peer does not speak the protocol, or too slowly: say so and end. */
void oap_refuse_with(struct io_conn *conn, const struct oap_head *head, enum ron_err err,
                     const struct ron_errinfo *info)
{
    let_go(conn);
    if (oap_put_error(conn, head, true, err, info))
        close_after(conn);
}

void oap_refuse(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info)
{
    struct oap_head none = {0};

    oap_refuse_with(conn, conn->oap != NULL && conn->state == CONN_BODY ? &conn->oap->head : &none,
                    err, info);
}

/* ---- Answers ---- */

/* Into `out`: a long reply takes its place if it can. */
static bool put_reply(struct io_conn *conn, struct io_call *call)
{
    if (conn->out.start < conn->out.end || call->reply_charged < OAP_ADOPT_SIZE)
        return conn_put(conn, call->reply, call->reply_size);
    buffer_release(conn->loop, &conn->out);
    conn->out = (struct conn_buffer){call->reply, 0, call->reply_size, call->reply_charged};
    call->reply = NULL;
    call->reply_charged = 0;
    return true;
}

/* Move replies out while there is room. */
void oap_pump(struct io_conn *conn)
{
    struct oap_session *session = conn->oap;
    bool last = false;

    while (session->ready != NULL && !oap_out_is_full(conn)) {
        struct io_call *call = session->ready;
        bool put;

        session->ready = call->next;
        if (session->ready == NULL)
            session->ready_end = &session->ready;
        free_slot(conn, call);
        last = conn->inflight == 0 && (conn->ending || oap_draining(conn));
        if (last)
            call->reply[7] |= OAP_END; /* the low byte of its flags */
        rt_counter_add_own(&conn->loop->replies, 1);
        put = put_reply(conn, call);
        call_free(call);
        session->read_ns = conn->loop->now_ns + conn->loop->server->options.idle_ms * RT_NS_PER_MS;
        if (!put) {
            let_go(conn);
            conn->out.end = conn->out.start;
            close_after(conn);
            return;
        }
        loop_flush_later(conn);
    }
    if (last)
        close_after(conn);
}

void oap_answered(struct io_call *call)
{
    struct io_conn *conn = call->conn;
    struct oap_session *session;

    if (conn == NULL) {
        call_free(call);
        return;
    }
    session = conn->oap;
    RON_ASSERT(session->slots[call->slot] == call && !call->answered);
    call->answered = true;
    session->deadlines_ns[call->slot] = SH_NEVER;
    call->next = NULL;
    *session->ready_end = call;
    session->ready_end = &call->next;
    oap_pump(conn);
}

/* ---- Time ---- */

/* Calls whose time is up are answered in their handlers' place. False: the connection ends. */
static bool expire_calls(struct io_conn *conn, uint64_t now_ns)
{
    struct oap_session *session = conn->oap;

    for (uint64_t left = session->used; left != 0; left &= left - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(left);
        struct io_call *call = session->slots[slot];

        if (session->deadlines_ns[slot] > now_ns)
            continue;
        free_slot(conn, call);
        call->conn = NULL;
        if (!oap_put_error(conn, &call->frame, conn->ending && conn->inflight == 0, RON_ERR_TIMEOUT,
                           NULL))
            return false;
    }
    oap_close_if_done(conn);
    return !conn->closing;
}

/* The frame that is read, or the peer as a whole, took too long. False: the connection ends. */
static bool expire_reading(struct io_conn *conn, uint64_t now_ns)
{
    struct oap_session *session = conn->oap;

    if (session->read_ns > now_ns)
        return true;
    if (!oap_out_is_full(conn) && (conn->in_head || conn->state == CONN_BODY)) {
        rt_counter_add_own(&conn->loop->closed_slow, 1);
        oap_refuse(conn, RON_ERR_REQUEST_TIMEOUT, NULL);
        return false;
    }
    if (conn->out.start < conn->out.end) {
        rt_counter_add_own(&conn->loop->closed_slow, 1); /* it does not read */
        conn_close(conn);
        return false;
    }
    if (conn->inflight == 0) {
        rt_counter_add_own(&conn->loop->closed_idle, 1);
        conn_close(conn);
        return false;
    }
    session->read_ns = now_ns + conn->loop->server->options.idle_ms * RT_NS_PER_MS;
    return true;
}

void oap_deadline(struct io_conn *conn)
{
    const struct oap_session *session = conn->oap;
    uint64_t now_ns = conn->loop->now_ns;
    uint64_t next_ns;

    if (!expire_calls(conn, now_ns) || !expire_reading(conn, now_ns))
        return;
    next_ns = session->read_ns;
    for (uint64_t left = session->used; left != 0; left &= left - 1) {
        uint64_t at_ns = session->deadlines_ns[__builtin_ctzll(left)];

        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    loop_arm(conn, next_ns);
}
