/*
 * tls.h - TLS 1.3 for listeners: certificate, key, optionally the authorities of client
 * certificates; all three can be read again while connections go on.
 */
#ifndef RON_IO_TLS_H
#define RON_IO_TLS_H

#include "base/compiler.h"
#include "rt/lock_classes.h"

struct io_tls; /* opaque; any thread */

struct io_tls_options {      /* paths of PEM files; borrowed for the life of the io_tls */
    const char *certificate; /* the chain, leaf first */
    const char *key;         /* refused if others may read it */
    const char *client_ca;   /* NULL: no client certificates; else each client needs one */
};

/* RON_ERR_NOT_FOUND, RON_ERR_FORBIDDEN, RON_ERR_MALFORMED (no PEM, key of another certificate); the
 * message names the file. */
enum ron_err io_tls_new(const struct io_tls_options *options, struct io_tls **ret_tls,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* After the last server that uses it. Accepts NULL, returns NULL. */
struct io_tls *io_tls_free(struct io_tls *tls);
/* Read the files again: new connections get what they hold now. On failure nothing changes. */
enum ron_err io_tls_reload(struct io_tls *tls, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
