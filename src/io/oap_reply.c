/*
 * oap_reply.c - replies as frames, by the thread that answers; the loop only moves them out. See
 * request.h.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "io/conn.h"

/* Room for the whole frame: in the call, or charged to the server as bodies are. */
static enum ron_err reserve(struct io_call *call, size_t size, struct ron_errinfo *reterr)
{
    if (size > RON_FRAME_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a reply of %zu bytes does not fit a frame",
                        size);
    if (size <= CALL_INLINE_SIZE) {
        call->reply = call->inline_reply;
        return RON_ERR_OK;
    }
    if (!server_charge(call->loop->server, size))
        return ron_fail(reterr, RON_ERR_BUSY, "the memory for replies is used up");
    call->reply = ron_mem_alloc(size);
    if (call->reply == NULL) {
        server_uncharge(call->loop->server, size);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "a reply of %zu bytes", size);
    }
    call->reply_charged = size;
    return RON_ERR_OK;
}

void oap_reply(struct io_call *call, const struct io_reply *reply)
{
    bool sealed = reply->status < 400 && (call->frame.flags & OAP_APP_E2E) != 0;
    struct oap_head head = {.flags = (uint16_t)(OAP_RESP | (sealed ? OAP_APP_E2E : 0)),
                            .code = (uint16_t)reply->status,
                            .app_proto = call->frame.app_proto,
                            .tenant = call->frame.tenant,
                            .corr_id = call->frame.corr_id};
    size_t size = OAP_HEAD_SIZE + reply->body.size;
    struct ron_errinfo info = {0};
    enum ron_err err = reserve(call, size, &info);

    if (err != RON_ERR_OK) {
        /* Its envelope is short and fits the call. */
        io_reply_error(&call->request, err, &info, (struct ron_slice){0});
        return;
    }
    call->status = reply->status;
    head.size = (uint32_t)size;
    oap_head_encode(&head, call->reply);
    if (reply->body.size > 0)
        memcpy(call->reply + OAP_HEAD_SIZE, reply->body.data, reply->body.size);
    call->reply_size = size;
    io_loop_hand_in(call->loop, call);
}
