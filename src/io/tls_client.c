/*
 * tls_client.c - TLS 1.3 for connections we make, by OpenSSL. See tls_client.h.
 */
#include "io/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/tls_files.h"

enum { HOST_SIZE_MAX = 253 };

struct tls_client {
    SSL_CTX *context;
    bool by_address; /* host is a number: no server name is sent */
    char host[HOST_SIZE_MAX + 1];
};
struct tls_session {
    SSL *ssl;
    bool well; /* the handshake is over and nothing failed since */
};

static enum ron_err fill(struct tls_client *client, const struct io_client_tls *options,
                         struct ron_errinfo *reterr)
{
    SSL_CTX *context = client->context;
    X509_VERIFY_PARAM *expected = SSL_CTX_get0_param(context);
    enum ron_err err = tls_file_check(options->ca, false, reterr);

    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_load_verify_locations(context, options->ca, NULL) != 1)
        return tls_file_fail(options->ca, "authorities", reterr);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if ((client->by_address ? X509_VERIFY_PARAM_set1_ip_asc(expected, client->host)
                            : X509_VERIFY_PARAM_set1_host(expected, client->host, 0)) != 1)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS: expected host");
    return options->certificate == NULL
               ? RON_ERR_OK
               : tls_file_certificate(context, options->certificate, options->key, reterr);
}

static bool is_address(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

enum ron_err tls_client_new(const struct io_client_tls *options, struct tls_client **ret_client,
                            struct ron_errinfo *reterr)
{
    size_t size = strlen(options->host);
    struct tls_client *client;
    enum ron_err err;

    RON_ASSERT((options->certificate == NULL) == (options->key == NULL));
    if (size == 0 || size > HOST_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "TLS: a host name of 1 to %d bytes is needed",
                        HOST_SIZE_MAX);
    client = ron_mem_alloc(sizeof(*client));
    if (client == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS");
    memcpy(client->host, options->host, size + 1);
    client->by_address = is_address(client->host);
    client->context = SSL_CTX_new(TLS_client_method());
    err = client->context == NULL ? ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS context")
                                  : fill(client, options, reterr);
    if (err != RON_ERR_OK) {
        (void)tls_client_free(client);
        return err;
    }
    *ret_client = client;
    return RON_ERR_OK;
}

struct tls_client *tls_client_free(struct tls_client *client)
{
    if (client == NULL)
        return NULL;
    SSL_CTX_free(client->context);
    return ron_mem_free(client);
}

/* ---- Sessions ---- */

enum ron_err tls_session_new(struct tls_client *client, int fd, struct tls_session **ret_session,
                             struct ron_errinfo *reterr)
{
    struct tls_session *session = ron_mem_alloc(sizeof(*session));

    if (session == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS session");
    session->ssl = SSL_new(client->context);
    if (session->ssl == NULL || SSL_set_fd(session->ssl, fd) != 1 ||
        (!client->by_address && SSL_set_tlsext_host_name(session->ssl, client->host) != 1)) {
        ERR_clear_error();
        (void)tls_session_free(session);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "TLS session");
    }
    SSL_set_connect_state(session->ssl);
    *ret_session = session;
    return RON_ERR_OK;
}

struct tls_session *tls_session_free(struct tls_session *session)
{
    if (session == NULL)
        return NULL;
    ERR_clear_error();
    if (session->well)
        (void)SSL_shutdown(session->ssl); /* our close_notify; the peer's is not waited for */
    SSL_free(session->ssl);
    ERR_clear_error();
    return ron_mem_free(session);
}

static enum tls_step step_of(struct tls_session *session, int result)
{
    int error;

    if (result == 1)
        return TLS_DONE;
    error = SSL_get_error(session->ssl, result);
    if (error == SSL_ERROR_WANT_READ)
        return TLS_WANT_READ;
    if (error == SSL_ERROR_WANT_WRITE)
        return TLS_WANT_WRITE;
    if (error == SSL_ERROR_ZERO_RETURN)
        return TLS_END;
    session->well = false;
    return TLS_FAILED;
}

enum tls_step tls_session_handshake(struct tls_session *session, struct ron_errinfo *reterr)
{
    enum tls_step step;
    long verified;

    ERR_clear_error();
    step = step_of(session, SSL_do_handshake(session->ssl));
    if (step == TLS_DONE)
        session->well = true;
    if (step != TLS_FAILED && step != TLS_END)
        return step;
    verified = SSL_get_verify_result(session->ssl);
    if (verified != X509_V_OK) {
        (void)ron_fail(reterr, RON_ERR_UNAUTHORIZED, "TLS: the peer's certificate: %s",
                       X509_verify_cert_error_string(verified));
    } else {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());

        (void)ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, "TLS handshake: %s",
                       reason == NULL ? "the peer ended it" : reason);
    }
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_step tls_session_send(struct tls_session *session, const void *bytes, size_t size,
                               size_t *ret_sent)
{
    enum tls_step step;

    ERR_clear_error();
    step = step_of(session, SSL_write_ex(session->ssl, bytes, size, ret_sent));
    ERR_clear_error();
    return step;
}

enum tls_step tls_session_receive(struct tls_session *session, void *bytes, size_t size,
                                  size_t *ret_size)
{
    enum tls_step step;

    ERR_clear_error();
    step = step_of(session, SSL_read_ex(session->ssl, bytes, size, ret_size));
    ERR_clear_error();
    return step;
}
