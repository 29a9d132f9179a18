/*
 * tls.c - TLS 1.3 on connections, by OpenSSL. See tls.h; conn.h for the transport.
 *
 * One context at a time, replaced whole by a reload; a session keeps the one it started with.
 */
#include "io/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/conn.h"
#include "io/tls_files.h"

struct io_tls {
    struct io_tls_options options;
    struct rt_lock lock; /* class net */
    SSL_CTX *context RON_GUARDED_BY(net);
};

static void tls_lock(struct io_tls *tls) RON_LOCKS(net)
{
    rt_lock_take(&tls->lock);
}

static void tls_unlock(struct io_tls *tls) RON_UNLOCKS(net)
{
    rt_lock_drop(&tls->lock);
}

/* ---- Contexts ---- */

static enum ron_err fill(SSL_CTX *context, const struct io_tls_options *options,
                         struct ron_errinfo *reterr)
{
    enum ron_err err = tls_file_certificate(context, options->certificate, options->key, reterr);

    if (err != RON_ERR_OK || options->client_ca == NULL)
        return err;
    err = tls_file_check(options->client_ca, false, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (SSL_CTX_load_verify_locations(context, options->client_ca, NULL) != 1)
        return tls_file_fail(options->client_ca, "authorities", reterr);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return RON_ERR_OK;
}

static enum ron_err make_context(const struct io_tls_options *options, SSL_CTX **ret_context,
                                 struct ron_errinfo *reterr)
{
    static const unsigned char id[] = "ron";
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    enum ron_err err;

    if (context == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS context");
    RON_ASSERT(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_id_context(context, id, sizeof(id) - 1);
    err = fill(context, options, reterr);
    if (err != RON_ERR_OK) {
        SSL_CTX_free(context);
        return err;
    }
    *ret_context = context;
    return RON_ERR_OK;
}

enum ron_err io_tls_new(const struct io_tls_options *options, struct io_tls **ret_tls,
                        struct ron_errinfo *reterr)
{
    struct io_tls *tls = ron_mem_alloc_array(1, sizeof(*tls));
    SSL_CTX *context = NULL;
    enum ron_err err;

    if (tls == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS");
    err = make_context(options, &context, reterr);
    if (err != RON_ERR_OK) {
        (void)ron_mem_free(tls);
        return err;
    }
    tls->options = *options;
    rt_lock_init(&tls->lock, "tls", RON_RANK_net);
    tls_lock(tls);
    tls->context = context;
    tls_unlock(tls);
    *ret_tls = tls;
    return RON_ERR_OK;
}

struct io_tls *io_tls_free(struct io_tls *tls)
{
    if (tls == NULL)
        return NULL;
    tls_lock(tls);
    SSL_CTX_free(tls->context);
    tls_unlock(tls);
    rt_lock_fini(&tls->lock);
    return ron_mem_free(tls);
}

enum ron_err io_tls_reload(struct io_tls *tls, struct ron_errinfo *reterr)
{
    SSL_CTX *context = NULL;
    SSL_CTX *old;
    enum ron_err err = make_context(&tls->options, &context, reterr);

    if (err != RON_ERR_OK)
        return err;
    tls_lock(tls);
    old = tls->context;
    tls->context = context;
    tls_unlock(tls);
    SSL_CTX_free(old); /* sessions that use it hold their own reference */
    return RON_ERR_OK;
}

/* ---- The transport of a connection ---- */

static SSL *start_session(struct io_conn *conn)
{
    struct io_tls *tls = conn->listener->tls;
    SSL *session;

    tls_lock(tls);
    session = SSL_new(tls->context);
    tls_unlock(tls);
    if (session == NULL)
        return NULL;
    if (SSL_set_fd(session, conn->fd) != 1) {
        SSL_free(session);
        return NULL;
    }
    SSL_set_accept_state(session);
    return session;
}

static void note_certificate(struct io_conn *conn)
{
    X509 *certificate = SSL_get0_peer_certificate(conn->session);

    if (certificate == NULL)
        return;
    conn->peer.client_certificate = true;
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                    conn->peer.certificate_name,
                                    sizeof(conn->peer.certificate_name));
}

static bool wants_more(const SSL *session, int result)
{
    int error = SSL_get_error(session, result);

    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static int tls_handshake(struct io_conn *conn)
{
    int result;

    if (conn->session == NULL)
        conn->session = start_session(conn);
    if (conn->session == NULL)
        return -1;
    ERR_clear_error();
    result = SSL_do_handshake(conn->session);
    if (result == 1) {
        note_certificate(conn);
        return 1;
    }
    if (wants_more(conn->session, result))
        return 0;
    ERR_clear_error();
    return -1;
}

static ssize_t tls_receive(struct io_conn *conn, void *bytes, size_t size)
{
    size_t done = 0;
    int result;

    ERR_clear_error();
    result = SSL_read_ex(conn->session, bytes, size, &done);
    if (result == 1)
        return (ssize_t)done;
    if (wants_more(conn->session, result)) {
        errno = EAGAIN;
        return -1;
    }
    if (SSL_get_error(conn->session, result) == SSL_ERROR_ZERO_RETURN)
        return 0;
    ERR_clear_error();
    errno = ECONNRESET;
    return -1;
}

static ssize_t tls_send(struct io_conn *conn, const void *bytes, size_t size)
{
    size_t done = 0;
    int result;

    ERR_clear_error();
    result = SSL_write_ex(conn->session, bytes, size, &done);
    if (result == 1)
        return (ssize_t)done;
    errno = wants_more(conn->session, result) ? EAGAIN : ECONNRESET;
    ERR_clear_error();
    return -1;
}

static void tls_close_write(struct io_conn *conn)
{
    ERR_clear_error();
    (void)SSL_shutdown(conn->session); /* our close_notify; the peer's is not waited for */
    ERR_clear_error();
    (void)shutdown(conn->fd, SHUT_WR);
}

static void tls_end(struct io_conn *conn)
{
    SSL_free(conn->session);
    conn->session = NULL;
}

const struct conn_transport conn_tls = {
    .handshake = tls_handshake,
    .receive = tls_receive,
    .send = tls_send,
    .close_write = tls_close_write,
    .end = tls_end,
};
