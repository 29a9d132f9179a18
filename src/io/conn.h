/*
 * conn.h - inside the server: loops, connections and the calls on them.
 *
 * Everything here belongs to one loop and is touched by its thread only, except where it says
 * "any thread". A connection reads one request at a time; while a handler has it (CONN_WAIT) the
 * bytes behind it stay where they are. A call is what a handler holds: it outlives its connection.
 *
 *     HANDSHAKE -> HEAD -> BODY -> WAIT -> HEAD ...       any -> LINGER -> closed
 *                                  WAIT -> STREAM -> closed
 *
 * That is HTTP. Over OAP/1 a connection is in HEAD or BODY while calls are in the hands of
 * handlers, and in WAIT only before its end (oap_conn.h).
 *
 * tidy: long file because loop, connection and call are one data structure of three parts
 */
#ifndef RON_IO_CONN_H
#define RON_IO_CONN_H

#include "io/address.h"
#include "io/http_chunk.h"
#include "io/http_date.h"
#include "io/inflate.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "rt/atomic.h"
#include "rt/bucket.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/task.h"

enum {
    CONN_BUFFER_SIZE = 4096,   /* of a connection that reads; none when idle */
    CONN_LINGER_BYTES = 65536, /* read and thrown away behind a refusal */
    CONN_LINGER_MS = 2000,
    CONN_OUT_MAX = 16 << 20,   /* replies not yet sent on one connection */
    CONN_OUT_PAUSE = 64 << 10, /* no further request is read before the peer reads its replies */
    CONN_TURN_REQUESTS = 64,   /* of one connection before the others; a window of OAP/1 */
    CALL_INLINE_SIZE = 1024,   /* of a reply without an allocation */
    LOOP_EVENTS_MAX = 256,
    LOOP_CLOCK_EVENTS = 16,     /* or answers */
    LOOP_ACCEPT_PAUSE_MS = 100, /* when out of descriptors */
    LOOP_HANDED_MAX = 256,      /* requests of one turn on their way to queues */
    LOOP_TOGETHER = 16,         /* requests that go at once, and replies of a turn */
    LOOP_GATHER_FROM = 8,       /* requests: more may be on their way */
    LOOP_GATHER_LOOKS = 8,      /* for more of them, in a turn */
    LOOP_SPARE_MAX = 256,       /* buffers and calls kept for the next request */
    LOOP_BODIES_MAX = 4, /* blocks of long bodies kept, BODY_KEPT_SIZE to RON_FRAME_SIZE_MAX each */
    BODY_KEPT_SIZE = 256 << 10,
    WHEEL_SLOTS = 512, /* power of two */
    WHEEL_TICK_MS = 5,
};

enum conn_state { CONN_HANDSHAKE, CONN_HEAD, CONN_BODY, CONN_WAIT, CONN_STREAM, CONN_LINGER };

struct io_loop;
struct io_conn;
struct io_call;
struct oap_session; /* oap_conn.h */

enum conn_step {
    CONN_STEP_MORE,   /* needs more bytes */
    CONN_STEP_AGAIN,  /* there may be more to do */
    CONN_STEP_WAIT,   /* a handler has it, or it is closing */
    CONN_STEP_CLOSED, /* the connection is gone */
};
/* What is spoken on a connection. Found out by its first byte; NULL: nothing to do. */
struct conn_protocol {
    /* In CONN_HEAD or CONN_BODY: go on with what has been read. */
    enum conn_step (*step)(struct io_conn *conn);
    /* Where to read to: room, or 0 for not now; -1: refused. NULL: into conn->in. */
    ssize_t (*room)(struct io_conn *conn, uint8_t **ret_at);
    void (*received)(struct io_conn *conn, size_t size); /* there */
    /* A call of this loop was answered. */
    void (*answered)(struct io_call *call);
    /* Answer for the handler: 408, 504 or a refusal. */
    void (*refuse)(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info);
    /* Instead of what conn_deadline does in HEAD, BODY and WAIT. */
    void (*deadline)(struct io_conn *conn);
    void (*flushed)(struct io_conn *conn); /* `out` is empty */
    void (*end)(struct io_conn *conn);     /* it closes: let go of calls, free what is its own */
};
extern const struct conn_protocol conn_unknown; /* before the first byte */
extern const struct conn_protocol conn_http;
extern const struct conn_protocol conn_oap;

/* Bytes [start, end) of a block; the block is charged to the server's budget. */
struct conn_buffer {
    uint8_t *data;
    size_t start, end, capacity;
};

/* How bytes move: plain sockets or TLS. Non-blocking: -1 with errno EAGAIN where it would wait. */
struct conn_transport {
    /* 1 done, 0 wait for more, -1 failed. NULL: nothing to do. */
    int (*handshake)(struct io_conn *conn);
    ssize_t (*receive)(struct io_conn *conn, void *bytes, size_t size);
    ssize_t (*send)(struct io_conn *conn, const void *bytes, size_t size);
    void (*close_write)(struct io_conn *conn);
    void (*end)(struct io_conn *conn); /* free what it holds; NULL: nothing */
    bool short_is_all;                 /* a short read means that no more is there now */
};
extern const struct conn_transport conn_plain;
extern const struct conn_transport conn_tls;

struct io_listener {
    struct io_server *server;
    int fd;
    bool bound; /* the socket file is ours */
    bool admin;
    struct io_tls *tls;
    const uint32_t *uids; /* NULL: any */
    uint32_t uids_count;
    struct io_address address; /* as bound */
    char url[IO_ADDRESS_TEXT_SIZE + 16];
};

struct io_conn {
    struct io_loop *loop;
    const struct io_listener *listener;
    const struct conn_transport *transport;
    void *session; /* of the transport */
    const struct conn_protocol *protocol;
    struct oap_session *oap; /* of OAP/1 */
    uint32_t inflight;       /* calls beside `call`: over OAP/1 only */
    int fd;
    enum conn_state state;
    bool readable, writable; /* the kernel has not said EAGAIN since */
    bool half_closed;        /* the kernel told of the peer's end: read until it shows */
    bool eof;                /* the peer sends no more */
    bool closing;            /* once `out` is sent */
    bool ending;             /* once what is in flight is answered: nothing more is read */
    bool flushing;           /* in the loop's list */
    bool again;              /* has work left from its last turn, or waits for CONN_OUT_PAUSE */
    bool in_head;            /* a first byte came: its deadline runs */
    bool in_tail;            /* `out` ends a body in pieces: it has time while its peer reads */
    struct conn_buffer in, out;
    size_t scanned;    /* of the head */
    size_t lingered;   /* bytes thrown away */
    size_t tail_start; /* of `out`, at the last beat */
    struct io_call *call;
    struct io_stream *stream;
    struct io_peer peer;
    /* Deadline of the present state, in the loop's wheel. */
    uint64_t deadline_ns;
    uint64_t armed_tick;
    struct io_conn *wheel_next, **wheel_link;
    struct io_conn *next, **link; /* all connections of the loop */
    struct io_conn *flush_next;
};

struct io_call {
    struct io_request request; /* first: what handlers hold */
    union {
        struct http_head head;
        uint8_t inline_body[sizeof(struct http_head)]; /* of a short frame */
    };
    struct io_loop *loop;
    struct io_conn *conn; /* NULL: gone, or answered in its place; the loop's */
    const struct conn_protocol *protocol;
    struct io_call *next; /* in a list of the loop */
    struct io_route_match match;
    size_t head_size; /* of the head, in conn->in */
    size_t role;      /* of server->roles, where counted */
    bool write;
    bool counted;    /* in the role's inflight */
    bool dispatched; /* a handler has it */
    bool keep_alive;
    enum io_coding coding;
    bool body_in_place; /* request.body lies in the connection's buffer */
    uint8_t *body;
    size_t body_size, body_capacity;
    bool body_kept;        /* the block is body_capacity long: fit for another call */
    struct conn_buffer in; /* taken over from a connection that closed */
    int status;
    uint8_t *reply; /* the whole message; inline_reply or owned */
    size_t reply_size;
    size_t reply_charged;     /* to the server */
    struct io_stream *stream; /* instead of a reply */
    struct oap_head frame;    /* over OAP/1 */
    uint8_t slot;             /* of the session */
    bool answered;            /* waits for room in the connection's `out` */
    struct rt_span *span;     /* of a request that is traced; the loop's */
    struct io_peer peer;      /* a copy: the connection may be gone first */
    /* From here on as they come: not cleared for each call. */
    uint8_t *room; /* io_request_room: stays with the call when that is used again */
    size_t room_size;
    struct http_chunks chunks;                                      /* of a body in chunks */
    _Alignas(max_align_t) uint8_t principal[IO_PRINCIPAL_SIZE_MAX]; /* request.principal, or junk */
    uint8_t inline_reply[CALL_INLINE_SIZE];
};

/* One for each budget of the options: a role's use of this server. */
struct role_use {
    const struct io_budget *budget;
    struct rt_atomic_u32 inflight[2]; /* reads, writes */
    struct rt_atomic_u32 rates[2];    /* the same: a second, of each loop; 0: no bound */
};

struct io_loop {
    struct io_server *server;
    unsigned number;
    struct rt_task *task;       /* the starter's, to join it */
    const struct rt_task *self; /* the same, as the loop knows it */
    int epoll_fd, event_fd;
    struct io_conn *conns;
    struct io_conn *flush, **flush_end; /* to be flushed, or given another turn, at its end */
    size_t flush_count;
    struct rt_queue_item handed_items[LOOP_HANDED_MAX]; /* hand_over.c */
    struct loop_handed {
        struct rt_queue *queue; /* NULL: gathered for fn */
        io_gathered_fn *fn;
        void *context;
    } handed_to[LOOP_HANDED_MAX];
    size_t handed_count;
    size_t handed_on_count;                     /* of them, those that others will work on */
    struct io_call *done_here, **done_here_end; /* answered by this thread: they need no lock */
    struct io_call *spare_calls;
    size_t spare_calls_count;
    uint8_t *spare_buffers[LOOP_SPARE_MAX];
    size_t spare_buffers_count;
    struct spare_body {
        uint8_t *data;
        size_t capacity;
    } spare_bodies[LOOP_BODIES_MAX];
    size_t spare_bodies_count;
    /* The clocks as this turn last saw them, every LOOP_CLOCK_EVENTS events: what one of them needs
     * is no finer, and each look costs as much as finding a route. */
    uint64_t now_ns, utc_ms;
    uint64_t date_s; /* of the text below */
    char date[HTTP_DATE_SIZE];
    uint64_t accept_again_ns; /* 0: listening */
    uint64_t tick;            /* the wheel has fired up to here */
    struct io_conn *wheel[WHEEL_SLOTS];
    uint64_t wheel_used[WHEEL_SLOTS / 64];       /* a bit for each slot that may hold something */
    struct rt_bucket buckets[IO_BUDGETS_MAX][2]; /* by budget: reads, writes; see role_use.rates */
    bool stopping;

    struct rt_lock lock; /* class net: what other threads hand in */
    struct io_call *done RON_GUARDED_BY(net);
    struct io_call **done_end RON_GUARDED_BY(net);
    struct io_stream *streams_ready RON_GUARDED_BY(net);
    bool asleep RON_GUARDED_BY(net);
    /* Counted by this thread, read by any. */
    struct rt_atomic_u64 accepted, requests, replies, bytes_in, bytes_out;
    struct rt_atomic_u64 closed_not_http, closed_no_line, closed_slow, closed_idle, closed_reset;
    struct rt_atomic_u64 closed_denied;
    struct rt_atomic_u64 refused[RON_ERR__MAX];
};

struct io_server {
    struct io_server_options options;
    struct io_listener listeners[IO_LISTENERS_MAX];
    size_t listeners_count;
    struct io_loop *loops[IO_LOOPS_MAX];
    size_t loops_count;
    struct role_use *roles;              /* options.budgets_count */
    uint16_t route_roles[IO_ROUTES_MAX]; /* index + 1 into roles; 0: no budget */
    uint16_t oap_roles[IO_OAP_OPS_MAX];  /* the same */
    struct peer_table *peers;
    struct rt_atomic_u32 draining, stopping;
    struct rt_atomic_u32 open_count;
    struct rt_atomic_u32 calls_count; /* requests and streams in the hands of others */
    struct rt_atomic_u64 bytes_held;
};

static inline void net_lock(struct io_loop *loop) RON_LOCKS(net)
{
    rt_lock_take(&loop->lock);
}
static inline void net_unlock(struct io_loop *loop) RON_UNLOCKS(net)
{
    rt_lock_drop(&loop->lock);
}

/* ---- loop.c ---- */
enum ron_err io_loop_new(struct io_server *server, unsigned number, struct io_loop **ret_loop,
                         struct ron_errinfo *reterr) RON_MUST_USE;
struct io_loop *io_loop_free(struct io_loop *loop);
enum ron_err io_loop_run(struct rt_task *task, void *loop);
void io_loop_wake(struct io_loop *loop); /* any thread */
/* After its task has ended: free what was answered too late. */
void io_loop_settle(struct io_loop *loop);
/* Leave new connections in the kernel's queue for a while. */
void loop_pause_accept(struct io_loop *loop);
void loop_arm(struct io_conn *conn, uint64_t deadline_ns);
void loop_arm_ms(struct io_conn *conn, uint64_t ms); /* from now on */
void loop_disarm(struct io_conn *conn);
void loop_flush_later(struct io_conn *conn);
void loop_flush_never(struct io_conn *conn);
/* Any thread: a call is answered. The loop's own takes no lock for it and wakes nobody. */
void io_loop_hand_in(struct io_loop *loop, struct io_call *call);
/* Any thread: a stream has something to send, or (`last`) ended. */
void io_loop_hand_in_stream(struct io_loop *loop, struct io_stream *stream, bool last);

/* ---- hand_over.c ---- */
void loop_hand_over(struct io_loop *loop); /* send what handlers left for their queues */

/* ---- conn.c ---- */
void conn_accept(struct io_listener *listener, struct io_loop *loop);
void conn_ready(struct io_conn *conn, uint32_t events);
void conn_flush(struct io_conn *conn);
void conn_close(struct io_conn *conn);
void conn_deadline(struct io_conn *conn);
/* Read and process as far as it goes, within a turn. */
void conn_turn(struct io_conn *conn);
/* Append to `out`; false when it would pass CONN_OUT_MAX or the budget: the connection is lost. */
bool conn_put(struct io_conn *conn, const void *bytes, size_t size) RON_MUST_USE;
bool buffer_reserve(struct io_loop *loop, struct conn_buffer *buffer, size_t size) RON_MUST_USE;
void buffer_release(struct io_loop *loop, struct conn_buffer *buffer);
/* Charge bytes of memory to the server; false: nothing left. Any thread. */
bool server_charge(struct io_server *server, size_t size) RON_MUST_USE;
void server_uncharge(struct io_server *server, size_t size);

/* ---- call.c ---- */
struct io_call *call_new(struct io_conn *conn);
void call_free(struct io_call *call); /* by its loop, which may keep it for another request */
void call_drop(struct io_call *call); /* one that is kept */
/* The connection goes away, or answered by itself: the handler keeps the call. */
void call_detach(struct io_call *call);
/* Is it traced? Once its corr id is known. */
void call_trace(struct io_call *call);
/* Its span ends with this status (0: none was sent), if it has one. */
void call_end_span(struct io_call *call, int status);
/* Take from the rate and inflight of a role: index + 1, 0 for none. RON_ERR_RATE_LIMITED, _BUSY. */
enum ron_err call_charge_role(struct io_call *call, uint16_t role,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Who asks? Where the route, or the operation, needs to know. What authorize answers. */
enum ron_err call_authorize(struct io_call *call, struct ron_errinfo *reterr) RON_MUST_USE;
/* Room for a body of `size` bytes, which will not pass `most`: grows with what has arrived, not
 * with what was announced. RON_ERR_BUSY, RON_ERR_NO_MEMORY. */
enum ron_err call_reserve_body(struct io_call *call, size_t size, size_t most,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* Open a compressed body into the call's. What io_inflate answers, and RON_ERR_BUSY. */
enum ron_err call_open_body(struct io_call *call, enum io_coding coding, struct ron_slice sent,
                            size_t most, struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- oap_reply.c ---- */
/* io_reply over OAP/1. Any thread. */
void oap_reply(struct io_call *call, const struct io_reply *reply);

/* ---- http_reply.c ---- */
struct reply_head {
    int status;
    const char *media;
    const struct io_reply_field *fields;
    size_t fields_count;
    const char *corr_id; /* NULL: none */
    uint64_t length;
    bool close;
    bool keep_alive; /* said only to HTTP/1.0, which expects the contrary */
    bool no_length;  /* a stream */
};
enum { REPLY_HEAD_MAX = 3072 };
/* The head of a reply, its date left blank; returns its size, at most REPLY_HEAD_MAX. Any thread.
 */
size_t http_reply_head(const struct reply_head *head, uint8_t ret_bytes[static REPLY_HEAD_MAX]);
/* Fill in the date of a reply that begins with such a head. By the loop: it has the text at hand,
 * and the reply goes out now. */
void http_reply_date(const struct io_loop *loop, uint8_t *reply, size_t size);
/* The error envelope as JSON into buf. */
void http_error_body(enum ron_err err, const struct ron_errinfo *info, const char *corr_id,
                     struct ron_slice details, struct ron_buf *buf);

#endif
