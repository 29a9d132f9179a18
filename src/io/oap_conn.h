/*
 * oap_conn.h - inside the server: OAP/1 on a connection. See oap_server.h for users.
 *
 * Frames are read one after the other; each that is whole goes to its handler and takes one of the
 * session's slots, and the next one is read. A slot is free again once its reply is in the
 * connection's `out`. Bounds: at most OAP_INFLIGHT_MAX slots, each with a body and a reply that are
 * charged to the server; `out` takes no further reply, and no further frame is read, while it holds
 * OAP_OUT_FULL bytes. So a peer that does not read stops being read.
 */
#ifndef RON_IO_OAP_CONN_H
#define RON_IO_OAP_CONN_H

#include "io/conn.h"

enum {
    OAP_IN_SIZE = 16384, /* of the buffer for heads, capabilities and short bodies */
    OAP_OUT_FULL = 65536,
    OAP_ADOPT_SIZE = 16384, /* a reply this long becomes `out` instead of being copied there */
};
_Static_assert(OAP_HEAD_SIZE + OAP_CAPABILITY_SIZE_MAX <= OAP_IN_SIZE,
               "head and capability are read as one");

struct oap_session {
    struct oap_head head; /* of the frame that is read: in CONN_BODY */
    size_t skip;          /* bytes of a refused frame that are still to come */
    bool direct;          /* bytes are received into the call's body */
    uint64_t began_ns;    /* when it was there, whole; 0: look at the clock */
    uint64_t read_ns;     /* deadline of the frame that is read, or of being idle */
    uint64_t used;        /* slots */
    struct io_call *slots[OAP_INFLIGHT_MAX];
    uint64_t deadlines_ns[OAP_INFLIGHT_MAX]; /* SH_NEVER once answered */
    uint64_t corr_ids[OAP_INFLIGHT_MAX];
    uint64_t corr_high; /* none above it has been in flight: what counts up needs no search */
    struct io_call *ready, **ready_end; /* answered, in order, until `out` has room */
    size_t capability_size;             /* of the last START */
    uint8_t capability[OAP_CAPABILITY_SIZE_MAX];
};
_Static_assert(OAP_INFLIGHT_MAX == 64, "slots are the bits of a word");

static inline bool oap_out_is_full(const struct io_conn *conn)
{
    return conn->out.end - conn->out.start >= OAP_OUT_FULL;
}
static inline bool oap_draining(const struct io_conn *conn)
{
    return rt_atomic_load_u32(&conn->loop->server->draining) != 0;
}

/* ---- oap_answer.c ---- */
/* The connection's deadline is this one at the latest. */
void oap_arm_by(struct io_conn *conn, uint64_t at_ns);
/* The head of an answer to that frame, without its size. */
struct oap_head oap_answering(const struct oap_head *head, int code);
/* False: there was no room, and the connection ends with all that was to go out. */
bool oap_put_frame(struct io_conn *conn, struct oap_head head, struct ron_slice body);
/* The error envelope; `last` sets END. Like oap_put_frame. */
bool oap_put_error(struct io_conn *conn, const struct oap_head *head, bool last, enum ron_err err,
                   const struct ron_errinfo *info);
/* As requests and envelopes have it: 16 hex digits. */
void oap_print_corr_id(uint64_t corr_id, char *text, size_t text_size);
/* The peer does not speak the protocol, or too slowly: say so and end. */
void oap_refuse_with(struct io_conn *conn, const struct oap_head *head, enum ron_err err,
                     const struct ron_errinfo *info);
/* If nothing more will be read and everything is answered. */
void oap_close_if_done(struct io_conn *conn);
/* Move replies to `out` while there is room. */
void oap_pump(struct io_conn *conn);
/* Of struct conn_protocol. */
void oap_answered(struct io_call *call);
void oap_refuse(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info);
void oap_deadline(struct io_conn *conn);
void oap_end(struct io_conn *conn);

#endif
