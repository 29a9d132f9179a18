/*
 * client.h - one request out, one reply back, under one deadline.
 *
 * A client speaks HTTP/1.1 to one target over TCP, TLS 1.3 or a Unix socket, keeps a bounded number
 * of connections for the next call, and has one breaker. A call blocks its thread until the reply
 * is complete, the deadline has passed or io_client_cancel wakes it.
 *
 * Retries: after a failure that may pass, only if the request may be sent twice (its method, its
 * idempotency key, or because nothing of it was sent), after a backoff, and never a try that could
 * not finish before the deadline. A kept connection that turns out to be closed is replaced once,
 * at once, under the same condition. An open breaker answers at once and is not waited for.
 *
 * Any status is an answer, not an error: the caller reads reply.head.status. Processes ignore
 * SIGPIPE.
 */
#ifndef RON_IO_CLIENT_H
#define RON_IO_CLIENT_H

#include "base/secret.h"
#include "io/client_transport.h"
#include "io/http_response.h"
#include "io/tls_client.h"
#include "rt/backoff.h"
#include "rt/breaker.h"

struct io_client; /* opaque; any thread */
struct rt_metrics;

enum { IO_CLIENT_CONNECTIONS_MAX = 256, IO_CLIENT_FIELDS_MAX = 16 };

struct io_client_options {
    const char *url; /* "http://127.0.0.1:7700", "https://[::1]:7701" or "unix:/run/ron.sock" */
    const struct io_client_tls *tls;         /* with https, and only there */
    struct io_transport *transport;          /* instead of a url; taken on RON_ERR_OK */
    uint32_t connections_max;                /* 0: 8; further calls wait for one */
    uint32_t idle_ms;                        /* how long a connection is kept; 0: 30 s */
    uint32_t attempt_ms;                     /* bound of a single try; 0: the deadline alone */
    uint32_t attempt_min_ms;                 /* a retry with less time left is not begun; 0: 5 ms */
    uint32_t retries_max;                    /* beyond the first try; 0: none */
    size_t body_max;                         /* of a reply; 0: 1 MiB */
    const struct rt_backoff_policy *backoff; /* NULL: 50-150 ms, doubling up to 2 s */
    const struct rt_breaker_policy *breaker; /* NULL: 5 failures in 10 s open it for 1 s, 1 probe */
    struct rt_metrics *metrics;              /* NULL: only io_client_get_stats; borrowed */
    const char *role, *svc;                  /* labels of the metrics; borrowed until new returns */
};

/* RON_ERR_MALFORMED (url), RON_ERR_NO_MEMORY, RON_ERR_BUSY, and those of the TLS files. Connects
 * nothing yet. */
enum ron_err io_client_new(const struct io_client_options *options, struct io_client **ret_client,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Refuse further calls and wake the running ones: all answer RON_ERR_CANCELED. Any thread, never
 * blocks, idempotent: fit for a task's wake hook. */
void io_client_cancel(struct io_client *client);
/* After the last call has returned. Accepts NULL, returns NULL. */
struct io_client *io_client_free(struct io_client *client);

struct io_client_field {
    const char *name, *value;
};
struct io_client_request {
    enum http_method method;
    const char *path;  /* with its query: "/v1/x?y=1" */
    const char *media; /* Content-Type; NULL without a body */
    struct ron_slice body;
    const struct ron_secret *token;       /* sent as `Authorization: Bearer`; NULL: none */
    const char *corr_id;                  /* X-Corr-ID; NULL: the server makes one */
    const char *idempotency_key;          /* the same with each try; makes any method repeatable */
    bool repeatable;                      /* a POST that may be sent twice without a key */
    bool once;                            /* no retry at all */
    const struct io_client_field *fields; /* further ones; none of those above or of framing */
    size_t fields_count;                  /* at most IO_CLIENT_FIELDS_MAX */
};

struct io_client_reply {
    struct http_response head; /* its slices lie in head_bytes */
    struct ron_slice body;     /* in body_bytes */
    uint32_t tries_count;
    struct ron_buf head_bytes, body_bytes;
};
void io_client_reply_init(struct io_client_reply *reply);
void io_client_reply_fini(struct io_client_reply *reply); /* may be initialised again */
/* The code of an error envelope; false if the body is none. */
bool io_client_reply_error(const struct io_client_reply *reply, enum ron_err *ret_err);

/* Fills *reply, which was initialised and may hold an earlier reply. RON_ERR_TIMEOUT,
 * RON_ERR_CANCELED, RON_ERR_UPSTREAM_UNAVAILABLE (refused, reset, breaker open, no HTTP; whether
 * the request was carried out may be unknown), RON_ERR_UNAUTHORIZED (the peer's certificate),
 * RON_ERR_TOO_LARGE (head or body beyond its bound), RON_ERR_MALFORMED (the request itself),
 * RON_ERR_BUSY, RON_ERR_NO_MEMORY. Messages never hold a field's value or a body. */
enum ron_err io_client_call(struct io_client *client, const struct io_client_request *request,
                            struct rt_deadline deadline, struct io_client_reply *reply,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct io_client_stats {
    uint64_t calls_count, tries_count, retries_count, stale_count, timeouts_count;
    uint64_t connects_count, reused_count, refused_count; /* by the breaker */
    uint32_t idle_count, used_count;                      /* connections now */
    enum rt_breaker_state breaker;
};
struct io_client_stats io_client_get_stats(struct io_client *client);

#endif
