/*
 * call.c - a request in the hands of a handler: its memory and its end. See conn.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/conn.h"

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
    /* The head is filled by its parser, the inline reply by the reply. */
    memset(&call->request, 0, sizeof(call->request));
    memset(&call->loop, 0, offsetof(struct io_call, inline_reply) - offsetof(struct io_call, loop));
    call->loop = loop;
    call->conn = conn;
    call->request.head = &call->head;
    call->peer = conn->peer;
    call->request.peer = &call->peer;
    call->request.arrived_ns = rt_now_ns();
    return call;
}

void call_free(struct io_call *call)
{
    struct io_loop *loop = call->loop;
    struct io_server *server = loop->server;

    RON_ASSERT(call->conn == NULL || call->conn->call != call);
    if (call->counted)
        rt_atomic_sub_u32(&server->roles[call->role].inflight[call->write], 1);
    if (call->request.principal != NULL && server->options.release_principal != NULL)
        server->options.release_principal(server->options.context, call->request.principal);
    if (call->body != NULL) {
        server_uncharge(server, call->body_capacity);
        (void)ron_mem_free(call->body);
    }
    if (call->reply != NULL && call->reply != call->inline_reply)
        (void)ron_mem_free(call->reply);
    buffer_release(loop, &call->in);
    if (loop->spare_calls_count < LOOP_SPARE_MAX) {
        call->next = loop->spare_calls;
        loop->spare_calls = call;
        loop->spare_calls_count++;
    } else {
        (void)ron_mem_free(call);
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
