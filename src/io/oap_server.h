/*
 * oap_server.h - what a server answers over OAP/1: a table of operations by app_proto and code.
 *
 * An operation is a route without a path: role, scope, flags, body_max (inflated), deadline and
 * handler mean what they mean over HTTP, and the handler gets the same request (request.h) with
 * `frame` instead of `head` and answers the same way: once, now or later, from any thread. The
 * reply's status becomes the frame's code; media and fields are left out. Replies go out in the
 * order in which they are given and are matched by corr_id. Up to OAP_INFLIGHT_MAX requests of a
 * connection are in flight; one more is answered Busy. A refused request is answered by the error
 * envelope and the connection goes on; a frame that cannot be understood ends it.
 *
 * A row with IO_ROUTE_CALL has no handler: its body begins with a method and a target (oap_call.h),
 * and once those are there it is a request to the route of the server's table that they name,
 * admitted as such: role, scope, flags, body_max and deadline are that route's, and so is the
 * handler, which gets path, query and parameters, but no head. Who opens a stream is refused.
 */
#ifndef RON_IO_OAP_SERVER_H
#define RON_IO_OAP_SERVER_H

#include "io/oap_frame.h"
#include "io/request.h"

enum { IO_OAP_OPS_MAX = 64 };

struct io_oap_op {
    uint16_t app_proto, code; /* app_proto 0 is the protocol's own */
    /* method, path, media and schemas unused; no IO_ROUTE_STREAM. With IO_ROUTE_CALL only its
     * names count. */
    struct io_route route;
};

struct io_oap_service; /* opaque; put together before the server starts, then read only */
enum ron_err io_oap_service_new(struct io_oap_service **ret_service,
                                struct ron_errinfo *reterr) RON_MUST_USE;
struct io_oap_service *io_oap_service_free(struct io_oap_service *service);
/* Rows are borrowed for the service's life; context goes to their handlers. RON_ERR_CONFLICT: two
 * rows of one app_proto and code; RON_ERR_TOO_LARGE: more than IO_OAP_OPS_MAX. */
enum ron_err io_oap_service_add(struct io_oap_service *service, const struct io_oap_op *ops,
                                size_t ops_count, void *context,
                                struct ron_errinfo *reterr) RON_MUST_USE;

struct io_oap_match {
    const struct io_route *route;
    size_t number; /* 0..count-1: index of per-operation arrays */
    void *context;
};
/* RON_ERR_NOT_FOUND: no such app_proto, or it has no such code. */
enum ron_err io_oap_service_match(const struct io_oap_service *service, uint16_t app_proto,
                                  uint16_t code, struct io_oap_match *ret_match,
                                  struct ron_errinfo *reterr) RON_MUST_USE;
size_t io_oap_service_count(const struct io_oap_service *service);
const struct io_oap_op *io_oap_service_at(const struct io_oap_service *service, size_t number);

#endif
