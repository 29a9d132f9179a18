/*
 * server.h - HTTP/1.1 and OAP/1 on epoll loops, one per I/O thread.
 *
 * Order of admission (each step answers by itself and is counted by reason): connection caps ->
 * head limits and one total head deadline -> corr id -> route -> rate and inflight -> authorize
 * (capability, before a byte of the body is asked for) -> Content-Length against the route's cap ->
 * body under a total deadline and the global byte budget -> inflate under size and ratio caps ->
 * handler. A refused upload is still answered so that the client can read it: lingering close, at
 * most 64 KiB read beyond the head.
 *
 * Who does not read its replies is not read either, and has idle_ms to read what waits. Without
 * descriptors left, new connections wait in the kernel's queue.
 *
 * Listeners: TCP (plain only on loopback), TLS 1.3 (optionally with client certificates), Unix
 * socket (SO_PEERCRED). The first bytes of a connection tell OAP/1 from HTTP where both are
 * allowed.
 */
#ifndef RON_IO_SERVER_H
#define RON_IO_SERVER_H

#include "io/request.h"
#include "rt/lock_classes.h"

struct rt_supervisor;
struct io_server;      /* opaque */
struct io_tls;         /* tls.h */
struct io_oap_service; /* oap_server.h */

enum { IO_LISTENERS_MAX = 8, IO_LOOPS_MAX = 64, IO_BUDGETS_MAX = 16 };

struct io_listener_options {
    const char *address; /* "127.0.0.1:7700", "[::1]:0", "unix:/path" */
    bool admin;          /* serves the admin routes */
    struct io_tls *tls;  /* NULL: plain; shared, borrowed */
    /* Of a Unix socket: the users who may connect, borrowed for the server's life; NULL: any. */
    const uint32_t *uids;
    uint32_t uids_count;
};
/* What a role may use up; charged by the matched route's role, writes and reads apart. */
struct io_budget {
    const char *role;
    uint32_t writes_per_s, reads_per_s; /* 0: no bound */
    uint32_t writes_inflight, reads_inflight;
};

/* Before the body is read. Fills `principal`: IO_PRINCIPAL_SIZE_MAX bytes, aligned for anything,
 * not cleared, that live as long as the request and go round with requests. Over OAP/1 the request
 * has no head: its capability is that of the connection's last START, asked for each frame.
 * RON_ERR_UNAUTHORIZED, RON_ERR_FORBIDDEN, ... On a loop thread: must not block. */
enum { IO_PRINCIPAL_SIZE_MAX = 768 };
typedef enum ron_err io_authorize_fn(void *context, const struct io_request *request,
                                     void *principal, struct ron_errinfo *reterr);

struct io_server_options {
    const struct io_listener_options *listeners; /* all texts borrowed for the server's life */
    size_t listeners_count;
    const struct io_routes *routes; /* complete; borrowed */
    struct io_oap_service *oap;     /* NULL: HTTP only */
    uint32_t loops_count;           /* 0: one */
    uint32_t connections_max;       /* 0: 1024; one address at most a quarter of it */
    uint64_t bytes_max;             /* of all bodies and buffers together; 0: 64 MiB */
    uint32_t head_ms, body_ms, idle_ms, request_ms; /* 0: 5 s, 5 s, 60 s, 5 s */
    const struct io_budget *budgets;
    size_t budgets_count;
    io_authorize_fn *authorize;
    void *context;
    struct rt_supervisor *supervisor; /* owner of the loop tasks */
    struct rt_spans *spans;           /* one for each sampled request; NULL: none; borrowed */
};
/* Bind everything, then start. RON_ERR_CONFLICT: address in use; RON_ERR_FORBIDDEN: plain TCP
 * beyond loopback, or no right to bind; RON_ERR_MALFORMED: address. */
enum ron_err io_server_start(const struct io_server_options *options, struct io_server **ret_server,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* "http://127.0.0.1:41234": what a client uses, with the port that was picked. */
const char *io_server_url(const struct io_server *server, size_t listener);

/* Change the rates of a role's budget, from the next request on. Any thread. False: it has none. */
bool io_server_set_rates(struct io_server *server, const char *role, uint32_t reads_per_s,
                         uint32_t writes_per_s);

/* Draining: writes are answered 503 Draining, streams end, connections close after their reply.
 * Any thread; reads go on. */
void io_server_drain(struct io_server *server);
/* Stop listening, let requests in flight be answered and streams be closed until the deadline,
 * close, free. RON_ERR_TIMEOUT: some were not; everything is closed, and the server stays for them:
 * may be called again. */
enum ron_err io_server_stop(struct io_server *server, struct rt_deadline deadline,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct io_server_stats {
    uint64_t accepted_count, open_count, requests_count, replies_count;
    uint64_t bytes_in, bytes_out, bytes_held;
    uint64_t refused_count[RON_ERR__MAX]; /* by code */
    uint64_t closed_not_http, closed_no_line, closed_slow, closed_idle, closed_reset;
    uint64_t closed_denied; /* users who may not connect */
};
struct io_server_stats io_server_get_stats(const struct io_server *server);

#endif
