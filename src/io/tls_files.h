/*
 * tls_files.h - inside io/tls: PEM files of certificates and keys, for servers and clients alike.
 */
#ifndef RON_IO_TLS_FILES_H
#define RON_IO_TLS_FILES_H

#include <openssl/ssl.h>

#include "base/compiler.h"

/* Is the file there, and, if it is a secret, hidden from others? RON_ERR_NOT_FOUND,
 * RON_ERR_FORBIDDEN. */
enum ron_err tls_file_check(const char *path, bool secret, struct ron_errinfo *reterr) RON_MUST_USE;
/* RON_ERR_MALFORMED with OpenSSL's word on a file it could not use; its queue of errors is empty
 * afterwards. */
enum ron_err tls_file_fail(const char *path, const char *what, struct ron_errinfo *reterr);
/* The chain and its key, checked as above, into the context. */
enum ron_err tls_file_certificate(SSL_CTX *context, const char *certificate, const char *key,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

#endif
