/*
 * tls_client.h - TLS 1.3 for connections we make: whom we trust, whom we expect, who we are.
 *
 * Sessions are non-blocking: each step says whether to wait for reading or writing, and
 * client_socket.c waits under the call's deadline.
 */
#ifndef RON_IO_TLS_CLIENT_H
#define RON_IO_TLS_CLIENT_H

#include <stdint.h>

#include "base/compiler.h"
#include "rt/lock_classes.h"

struct tls_client;  /* opaque; any thread */
struct tls_session; /* opaque; one thread at a time */

struct io_client_tls {             /* paths of PEM files, read once */
    const char *ca;                /* whose certificates are trusted; the system's are not */
    const char *host;              /* DNS name or numeric address that the certificate must carry */
    const char *certificate, *key; /* ours, or NULL */
};

/* RON_ERR_NOT_FOUND, RON_ERR_FORBIDDEN (a key others may read), RON_ERR_MALFORMED; the message
 * names the file. */
enum ron_err tls_client_new(const struct io_client_tls *options, struct tls_client **ret_client,
                            struct ron_errinfo *reterr) RON_MUST_USE;
struct tls_client *tls_client_free(struct tls_client *client); /* NULL is ok; returns NULL */

enum tls_step {
    TLS_DONE,
    TLS_WANT_READ,
    TLS_WANT_WRITE,
    TLS_END,    /* the peer's orderly end */
    TLS_FAILED, /* the session is lost */
};
/* On a connected, non-blocking descriptor, borrowed. RON_ERR_NO_MEMORY. */
enum ron_err tls_session_new(struct tls_client *client, int fd, struct tls_session **ret_session,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* Says goodbye if it was well; NULL is ok; returns NULL. */
struct tls_session *tls_session_free(struct tls_session *session);
/* TLS_FAILED fills reterr: RON_ERR_UNAUTHORIZED (certificate), RON_ERR_UPSTREAM_UNAVAILABLE. */
enum tls_step tls_session_handshake(struct tls_session *session, struct ron_errinfo *reterr);
enum tls_step tls_session_send(struct tls_session *session, const void *bytes, size_t size,
                               size_t *ret_sent);
enum tls_step tls_session_receive(struct tls_session *session, void *bytes, size_t size,
                                  size_t *ret_size);

#endif
