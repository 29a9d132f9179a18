/*
 * principal.h - who makes a request: what a server's authorize callback leaves for the handlers of
 * all roles (io_request.principal).
 */
#ifndef RON_AUTH_PRINCIPAL_H
#define RON_AUTH_PRINCIPAL_H

#include "auth/grant.h"

struct auth_principal {
    struct auth_grant grant;
    bool local_socket; /* then uid, gid and pid are the peer's */
    uint32_t uid, gid;
    int32_t pid;
};

#endif
