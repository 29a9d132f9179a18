/*
 * http_response.h - the grammar of an HTTP/1.1 response head, as strict as the request's.
 *
 * What two readers could take two ways is refused, as in http_head.h: a client that guesses where a
 * reply ends hands one caller the reply of another. Pure; borrows the bytes of the head.
 *
 * Use: http_head_scan as bytes arrive, then http_response_parse once; a head whose status is below
 * 200 is only an interim one and is followed by another.
 */
#ifndef RON_IO_HTTP_RESPONSE_H
#define RON_IO_HTTP_RESPONSE_H

#include "io/http_head.h"

/* Where the body ends: RFC 9112 §6.3 without its leniencies. */
enum http_framing {
    HTTP_NO_BODY, /* HEAD, 1xx, 204, 304 */
    HTTP_LENGTH,  /* content_length bytes */
    HTTP_CHUNKED,
    HTTP_UNTIL_CLOSE, /* neither is given: the connection carries no other reply */
};

struct http_response {
    int status;              /* 100..599 */
    uint8_t minor;           /* HTTP/1.minor */
    bool keep_alive;         /* another request may follow on the connection */
    struct ron_slice reason; /* possibly empty */
    enum http_framing framing;
    uint64_t content_length; /* with HTTP_LENGTH */
    size_t fields_count;
    struct http_field fields[HTTP_HEADERS_MAX];
};

/* `bytes` is what http_head_scan found; `method` is what was asked, since a reply to HEAD has no
 * body. RON_ERR_MALFORMED, RON_ERR_HEADERS_TOO_LARGE (number of fields); the message never holds a
 * field's value. Filled in place: nothing in *ret_response counts after a failure. */
enum ron_err http_response_parse(struct ron_slice bytes, enum http_method method,
                                 struct http_response *ret_response,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* The field of that name (lower case), or NULL; the first of several. */
const struct http_field *http_response_find(const struct http_response *response, const char *name);

#endif
