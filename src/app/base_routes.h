/*
 * base_routes.h - the routes that every process has, whatever its roles.
 *
 * On both listeners: / /healthz /readyz /version /openapi.json. On the admin listener: /metrics and
 * /debug/topology without a capability (it is loopback, or TLS), /admin/server/... with the scope
 * `server.admin`. Handlers run on loop threads and never wait; what blocks (a reload) is left to
 * the thread that has the signals.
 */
#ifndef RON_APP_BASE_ROUTES_H
#define RON_APP_BASE_ROUTES_H

#include "io/route.h"

struct app_server;

/* Add the rows. RON_ERR_CONFLICT, RON_ERR_NO_MEMORY. */
enum ron_err app_base_routes_add(struct io_routes *routes, struct app_server *server,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* With every row there: write the documents that do not change, server->openapi and ->index. */
enum ron_err app_base_routes_finish(struct app_server *server,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* The page at `/`: what this is and where to go; plain HTML, no other resources. */
void app_index_write(const struct io_routes *routes, const char *version, struct ron_buf *buf);

#endif
