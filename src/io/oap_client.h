/*
 * oap_client.h - OAP/1 to one target: many requests in flight on one connection.
 *
 * One task owns the connection: it connects when there is something to send, says HELLO with the
 * client's capability (START), sends what was submitted, and completes each request exactly once:
 * with its reply, its deadline, the loss of the connection or oap_client_cancel. A call that waits
 * for its reply and a submit that leaves a function to be called share the same slots.
 *
 * Nothing is sent twice: after RON_ERR_TIMEOUT or RON_ERR_UPSTREAM_UNAVAILABLE `sent` says whether
 * the peer may have carried the request out, and the caller decides whether it may be repeated.
 * A target that cannot be reached is left alone for a while (breaker), and requests are refused at
 * once meanwhile. A connection whose peer says nothing is given up when a deadline passes silent_ms
 * after the first request that it did not answer: the host behind it may be gone without a word.
 */
#ifndef RON_IO_OAP_CLIENT_H
#define RON_IO_OAP_CLIENT_H

#include "base/secret.h"
#include "base/u128.h"
#include "io/client_transport.h"
#include "io/oap_frame.h"
#include "io/tls_client.h"
#include "rt/breaker.h"

struct oap_client; /* opaque; any thread */
struct rt_supervisor;

struct oap_client_options {
    const char *url; /* as io/client.h: that of the HTTP listener, or "unix:/run/ron.sock" */
    const struct io_client_tls *tls;         /* with https, and only there */
    struct io_transport *transport;          /* instead of a url; taken on RON_ERR_OK */
    const struct ron_secret *token;          /* of every request; NULL: none; borrowed for life */
    uint32_t inflight_max;                   /* 0: OAP_INFLIGHT_MAX; the peer's bound counts, too */
    uint32_t connect_ms;                     /* connect and HELLO; 0: 2 s */
    uint32_t silent_ms;                      /* without a byte of the peer; 0: 10 s */
    size_t queued_max;                       /* bytes that wait to be sent; 0: 4 MiB */
    size_t compress_min;                     /* bodies from here on go as COMP; 0: none */
    const struct rt_breaker_policy *breaker; /* NULL: as io/client.h */
    struct rt_supervisor *supervisor;        /* of the task; outlives the client */
};

/* RON_ERR_MALFORMED (url), RON_ERR_NO_MEMORY, RON_ERR_BUSY, and those of the TLS files. Connects
 * nothing yet. */
enum ron_err oap_client_new(const struct oap_client_options *options,
                            struct oap_client **ret_client,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Refuse further requests and complete all others with RON_ERR_CANCELED. Any thread, never blocks,
 * idempotent. */
void oap_client_cancel(struct oap_client *client);
/* Cancel, wait for the task's end (so for functions that it calls), free. Accepts NULL, returns
 * NULL. Before the supervisor stops, and not from a completion. */
struct oap_client *oap_client_free(struct oap_client *client) RON_BLOCKS;

struct oap_client_request {
    uint16_t app_proto, code; /* app_proto 0 is the protocol's own */
    bool sealed;              /* APP_E2E: never compressed */
    struct ron_u128 tenant;
    struct ron_slice body;
};

struct oap_client_result {
    enum ron_err err;               /* of the way, or the code of the peer's error envelope */
    const struct ron_errinfo *info; /* with its message; valid if err is not RON_ERR_OK */
    uint16_t status;                /* of the reply; 0: none came */
    bool sent;                      /* the peer may have seen the request */
    uint64_t corr_id;               /* as the peer logs it, in 16 hex digits */
    struct ron_slice body;          /* inflated; valid during the call only */
};
/* On the client's task, without locks; must not wait for anything of this client. */
typedef void oap_client_done_fn(void *context, const struct oap_client_result *result);

/* Queue a request; waits for room until the deadline, but never in a completion: there it answers
 * RON_ERR_BUSY. On RON_ERR_OK `done` is called exactly once, perhaps before this returns.
 * RON_ERR_TIMEOUT, RON_ERR_CANCELED, RON_ERR_TOO_LARGE (a frame's bound), RON_ERR_NO_MEMORY. */
enum ron_err oap_client_submit(struct oap_client *client, const struct oap_client_request *request,
                               struct rt_deadline deadline, oap_client_done_fn *done, void *context,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Submit and wait. *reply is reset and gets the body of a reply below 400; of an error envelope the
 * code is returned and its message is in *reterr. Not from a completion. */
enum ron_err oap_client_call(struct oap_client *client, const struct oap_client_request *request,
                             struct rt_deadline deadline, struct ron_buf *reply,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct oap_client_stats {
    uint64_t submitted_count, replies_count, timeouts_count, connects_count;
    uint64_t lost_count;   /* connections that ended with requests in flight */
    uint64_t late_count;   /* replies to requests that were completed already */
    uint64_t events_count; /* frames nobody asked for; read over */
    uint32_t inflight_count;
    enum rt_breaker_state breaker;
};
struct oap_client_stats oap_client_get_stats(struct oap_client *client);

#endif
