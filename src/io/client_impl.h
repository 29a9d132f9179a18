/*
 * client_impl.h - what the clients share: targets, the error envelope, one try on one connection.
 */
#ifndef RON_IO_CLIENT_IMPL_H
#define RON_IO_CLIENT_IMPL_H

#include "io/client.h"
#include "io/http_chunk.h"

enum {
    CLIENT_BODY_MAX_DEFAULT = 1 << 20,
    CLIENT_INTERIM_MAX = 8,     /* 1xx heads before a reply */
    CLIENT_BODY_MAX_MIN = 4096, /* the smallest bound of a reply's body */
    CLIENT_HOST_SIZE = 256,
    CLIENT_PIECE_SIZE = 4096, /* received at once, at most */
};
_Static_assert((int)CLIENT_PIECE_SIZE <= (int)CLIENT_BODY_MAX_MIN,
               "what comes behind a head has room");
extern const struct rt_breaker_policy client_breaker_default;

/* What is known of a try that failed or succeeded. */
struct client_try {
    bool sent;     /* the peer may have seen some of the request */
    bool answered; /* a byte of the reply came */
    bool keep;     /* the connection may be used again */
};

/* The head of the request into buf (reset first), checked as the server would, and a short body
 * behind it; the caller wipes it: it holds the token. RON_ERR_MALFORMED, RON_ERR_TOO_LARGE,
 * RON_ERR_NO_MEMORY. */
enum ron_err client_put_head(struct ron_buf *buf, const struct io_client_request *request,
                             const char *host, struct rt_deadline deadline,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* May the peer see it twice? */
bool client_may_repeat(const struct io_client_request *request);
/* Did client_put_head put the body behind the head? */
bool client_has_body(const struct io_client_request *request);
/* "http://ADDRESS:PORT", https or "unix:/path" into an address; *ret_tls: https. */
enum ron_err client_parse_url(const char *url, struct io_address *ret_address, bool *ret_tls,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* Sockets to a url, with TLS where it says https; what the target is called goes to ret_host. */
enum ron_err client_make_transport(const char *url, const struct io_client_tls *trust,
                                   struct io_transport **ret_transport,
                                   char ret_host[static CLIENT_HOST_SIZE],
                                   struct ron_errinfo *reterr) RON_MUST_USE;
/* A reply that is being received. */
enum client_stage { CLIENT_IN_HEAD, CLIENT_IN_BODY, CLIENT_COMPLETE };
struct client_reader {
    enum http_method method; /* of the request */
    enum client_stage stage;
    int interims_count;
    size_t scanned; /* of the head */
    struct http_chunks chunks;
    bool keep; /* complete: nothing speaks against using the connection again */
};
void client_reader_init(struct client_reader *reader, enum http_method method,
                        struct io_client_reply *reply);
/* The next 1..CLIENT_PIECE_SIZE bytes, or the peer's orderly end; not after CLIENT_COMPLETE.
 * RON_ERR_UPSTREAM_UNAVAILABLE (no HTTP, cut off), RON_ERR_TOO_LARGE, RON_ERR_NO_MEMORY. */
enum ron_err client_reader_take(struct client_reader *reader, struct io_client_reply *reply,
                                struct ron_slice bytes, struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err client_reader_end(struct client_reader *reader, struct io_client_reply *reply,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* Code and message of an error envelope into *ret_info; false if the body is none. */
bool client_read_envelope(struct ron_slice body, struct ron_errinfo *ret_info);
/* Send and receive. *ret_try is set in any case. */
enum ron_err client_exchange(struct io_wire *wire, const struct io_client_request *request,
                             struct ron_slice head, struct rt_deadline deadline,
                             struct io_client_reply *reply, struct client_try *ret_try,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
