/*
 * oap_call.h - a body of OAP/1 that is a request to a route: method, target, and behind them the
 * body as HTTP would have it. Pure; docs/formats.md has the offsets.
 *
 *     method u8 (1 GET, 2 POST, 3 PUT, 4 DELETE)   target_size u16 LE   target | body
 */
#ifndef RON_IO_OAP_CALL_H
#define RON_IO_OAP_CALL_H

#include "io/http_head.h"

enum { OAP_CALL_HEAD_SIZE = 3 };

struct oap_call {
    enum http_method method;
    struct ron_slice target; /* 1..HTTP_TARGET_SIZE_MAX bytes, not looked at */
    size_t size;             /* of all that is before the body; 0: it is not all there yet */
};
/* `bytes` is how much is there of a body of body_size bytes, or of more than it. Nothing is waited
 * for that could not be right. RON_ERR_MALFORMED (no such method, no target, a body that does not
 * hold it); RON_ERR_HEADERS_TOO_LARGE (target). */
enum ron_err oap_call_decode(struct ron_slice bytes, size_t body_size, struct oap_call *ret_call,
                             struct ron_errinfo *reterr) RON_MUST_USE;

#endif
