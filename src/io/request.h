/*
 * request.h - what a handler gets, and how it answers: once, now or later, from any thread.
 *
 * The handler owns the request until it replies. A reply after the peer is gone, or after the
 * deadline answered 504 in its place, is dropped silently and frees the request all the same; so a
 * handler replies exactly once, whatever happened meanwhile, and never asks. Everything in the
 * request (head, body, parameters) lives until then.
 */
#ifndef RON_IO_REQUEST_H
#define RON_IO_REQUEST_H

#include "io/route.h"
#include "rt/deadline.h"
#include "rt/span.h"

struct oap_head; /* oap_frame.h */

enum {
    IO_CORR_ID_SIZE_MAX = 64,
    IO_REPLY_FIELDS_MAX = 8,
};

struct io_peer {
    bool local_socket; /* Unix socket: uid, gid and pid are the kernel's word; else UINT32_MAX, 0 */
    bool tls, client_certificate;
    uint32_t uid, gid;
    int32_t pid;
    uint8_t address[16]; /* IPv4 mapped into IPv6; zeros on a Unix socket */
    uint16_t port;
    char certificate_name[64]; /* subject CN of a verified client certificate; empty without */
};

/* Read-only for handlers. */
struct io_request {
    const struct io_route *route;
    struct ron_slice params[IO_ROUTE_PARAMS_MAX];
    enum http_method method; /* HTTP_OTHER: an operation of OAP/1, which has no path either */
    struct ron_slice path, query;
    const struct http_head *head; /* NULL over OAP/1, also where a route is called */
    const struct oap_head *frame; /* NULL over HTTP */
    struct ron_slice capability;  /* over OAP/1, of the last START: for authorize only */
    struct ron_slice body;        /* inflated */
    const struct io_peer *peer;
    const void *principal; /* what authorize left there; NULL on public routes */
    char corr_id[IO_CORR_ID_SIZE_MAX + 1];
    struct rt_deadline deadline;
    uint64_t arrived_ns, arrived_ms; /* the second in UTC; as the loop last looked at its clocks */
    struct rt_trace trace;           /* spans of its handler begin here; not `on` as a rule */
};

/* A route that is called over OAP/1 answers as over HTTP; an operation has bytes of its own. */
static inline bool io_request_is_operation(const struct io_request *request)
{
    return request->method == HTTP_OTHER;
}

/* Memory for who holds the request, as long as that lives: the reply is the last that may lie in
 * it. Asked for once, at most IO_ROOM_SIZE_MAX bytes, not cleared: it goes round with requests,
 * which costs less than a block that one thread takes from the heap and another gives back. NULL:
 * none.
 */
enum { IO_ROOM_SIZE_MAX = 4096 };
void *io_request_room(struct io_request *request, size_t size);

/* A query parameter by name, percent-decoded into buf. RON_ERR_NOT_FOUND, RON_ERR_MALFORMED (twice,
 * bad escape), RON_ERR_TOO_LARGE. Handlers of strict routes also call io_query_only. */
enum ron_err io_query_get(const struct io_request *request, const char *name, char *buf,
                          size_t buf_size, struct ron_errinfo *reterr) RON_MUST_USE;
/* The query as the route declares it (`query`, at most IO_QUERY_NAMES_MAX). RON_ERR_MALFORMED with
 * the first name that is unknown or there twice, or is required and missing. */
enum { IO_QUERY_NAMES_MAX = 16 };
enum ron_err io_query_only(const struct io_request *request,
                           struct ron_errinfo *reterr) RON_MUST_USE;

/* Both in one pass: values[i] is what stands behind the i-th name. */
struct io_query_value {
    struct ron_slice text; /* not decoded */
    uint32_t count;        /* how often the name is there */
};
enum ron_err io_query_split(const struct io_request *request, struct io_query_value *values,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* What io_query_get would have given. *ret_text lies in buf or, where nothing was to be decoded, in
 * the query itself. */
enum ron_err io_query_decode(const struct io_query_value *value, const char *name, char *buf,
                             size_t buf_size, struct ron_slice *ret_text,
                             struct ron_errinfo *reterr) RON_MUST_USE;

struct io_reply_field {
    const char *name, *value; /* copied; checked: no control bytes */
};
struct io_reply {
    int status;
    const char *media; /* Content-Type; NULL with an empty body */
    struct ron_slice body;
    const struct io_reply_field *fields;
    size_t fields_count; /* at most IO_REPLY_FIELDS_MAX */
};
/* Any thread; copies everything; never blocks; the request is gone afterwards. */
void io_reply(struct io_request *request, const struct io_reply *reply);
/* The error envelope with the request's corr id; `details` is a JSON object or empty. */
void io_reply_error(struct io_request *request, enum ron_err err, const struct ron_errinfo *info,
                    struct ron_slice details);

/* What this thread replies between the two goes out together: each loop is woken once, at the end,
 * instead of taking the processor from whoever has more replies to give. Not nested; nothing is
 * waited for in between. */
struct io_loop;
enum { IO_BURST_LOOPS_MAX = 8 };
struct io_burst {
    struct {
        struct io_loop *loop;
        uint32_t calls_count;
        bool asleep;
    } loops[IO_BURST_LOOPS_MAX]; /* replies to further ones go out at once */
    size_t loops_count;
};
void io_burst_begin(struct io_burst *burst);
void io_burst_end(struct io_burst *burst);

struct rt_queue;
/* Leave the request to a queue: from its handler, instead of a reply. Those of a turn are sent in
 * company, in order, a receiver that sleeps is woken once for all of them. What the queue refuses
 * is answered with that. */
void io_request_send(struct io_request *request, struct rt_queue *queue, uint32_t weight);
/* The same for who does more than send: within the turn fn gets the items (not NULL) of all
 * requests in a row that were left to it, at most IO_GATHERED_MAX at once, on the loop's thread. It
 * must not block, and from then on answers each of them. */
enum { IO_GATHERED_MAX = 64 };
typedef void io_gathered_fn(void *context, void **items, size_t items_count);
void io_request_gather(struct io_request *request, io_gathered_fn *fn, void *context, void *item);
/* The same for an fn that answers there and then. Nobody else waits for work, so the turn neither
 * hurries nor looks for more: the items of a whole turn come at once. */
void io_request_gather_here(struct io_request *request, io_gathered_fn *fn, void *context,
                            void *item);

/* Server-sent events: a reply that stays open over a bounded buffer. */
struct io_stream; /* opaque */
/* Answer 200 text/event-stream and keep it open; the request is gone. buffer_max bytes are charged
 * at once: RON_ERR_BUSY or RON_ERR_NO_MEMORY, and the request has been answered with that.
 * RON_ERR_UNSUPPORTED_MEDIA likewise: it came over OAP/1, whose replies are one frame. */
enum ron_err io_stream_open(struct io_request *request, size_t buffer_max,
                            struct io_stream **ret_stream, struct ron_errinfo *reterr) RON_MUST_USE;
/* RON_ERR_BUSY: the peer reads too slowly and the buffer is full: nothing of it was sent.
 * RON_ERR_CANCELED: the peer is gone or the server drains. Any thread. id and event may be NULL. */
enum ron_err io_stream_send(struct io_stream *stream, const char *id, const char *event,
                            struct ron_slice data, struct ron_errinfo *reterr) RON_MUST_USE;
/* Would a send be answered RON_ERR_CANCELED? For owners with nothing to send. Any thread. */
bool io_stream_gone(struct io_stream *stream);
/* Send what is buffered, then end. The stream is gone. Accepts NULL, returns NULL. */
struct io_stream *io_stream_close(struct io_stream *stream);
/* A body in pieces (chunked), for replies that nobody should keep in memory: a stream as above,
 * with another media type and no events. An HTTP/1.0 peer, which could not tell its end from a cut,
 * has been answered RON_ERR_MALFORMED. */
enum ron_err io_body_open(struct io_request *request, const char *media, size_t buffer_max,
                          struct io_stream **ret_stream, struct ron_errinfo *reterr) RON_MUST_USE;
enum { IO_BODY_SPARE = 32 }; /* of the buffer, around each piece */
/* 1..buffer_max - IO_BODY_SPARE bytes, once there is room: that is the peer's pace.
 * RON_ERR_TIMEOUT: there was none until the deadline, nothing of it was sent; RON_ERR_CANCELED: as
 * io_stream_send. One thread. */
enum ron_err io_body_send(struct io_stream *stream, struct ron_slice piece,
                          struct rt_deadline deadline,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* It is whole, and the peer is told so. io_stream_close instead: cut, which the peer notices. The
 * stream is gone. Accepts NULL, returns NULL. */
struct io_stream *io_body_end(struct io_stream *stream);

/* The Last-Event-ID the client came with, or an empty slice. */
struct ron_slice io_request_last_event_id(const struct io_request *request);

#endif
