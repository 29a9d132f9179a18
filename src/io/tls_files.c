/*
 * tls_files.c - PEM files of certificates and keys. See tls_files.h.
 */
#include "io/tls_files.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/stat.h>

enum ron_err tls_file_fail(const char *path, const char *what, struct ron_errinfo *reterr)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    enum ron_err err = ron_fail(reterr, RON_ERR_MALFORMED, "%s: %s: %s", path, what,
                                reason == NULL ? "not usable" : reason);

    ERR_clear_error();
    return err;
}

enum ron_err tls_file_check(const char *path, bool secret, struct ron_errinfo *reterr)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return ron_fail_sys(reterr, errno == ENOENT ? RON_ERR_NOT_FOUND : RON_ERR_FORBIDDEN, errno,
                            "%s: %s", path, strerror(errno));
    if (secret && (status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "%s: others may read or change it; chmod 600",
                        path);
    return RON_ERR_OK;
}

enum ron_err tls_file_certificate(SSL_CTX *context, const char *certificate, const char *key,
                                  struct ron_errinfo *reterr)
{
    enum ron_err err = tls_file_check(certificate, false, reterr);

    if (err == RON_ERR_OK)
        err = tls_file_check(key, true, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return tls_file_fail(certificate, "certificate", reterr);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return tls_file_fail(key, "private key", reterr);
    return RON_ERR_OK;
}
