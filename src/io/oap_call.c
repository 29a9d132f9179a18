/*
 * oap_call.c - what a call asks for, as bytes. See oap_call.h.
 */
#include "io/oap_call.h"

static const enum http_method methods[] = {HTTP_OTHER, HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE};

enum ron_err oap_call_decode(struct ron_slice bytes, size_t body_size, struct oap_call *ret_call,
                             struct ron_errinfo *reterr)
{
    struct oap_call call = {.method = HTTP_OTHER};
    size_t target_size;

    if (body_size < OAP_CALL_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "call: %zu bytes are less than its head",
                        body_size);
    if (bytes.size < OAP_CALL_HEAD_SIZE) {
        *ret_call = call;
        return RON_ERR_OK;
    }
    target_size = ron_load_le16(bytes.data + 1);
    if (bytes.data[0] < RON_ARRAY_COUNT(methods))
        call.method = methods[bytes.data[0]];
    if (call.method == HTTP_OTHER)
        return ron_fail(reterr, RON_ERR_MALFORMED, "call: no method has number %u", bytes.data[0]);
    if (target_size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "call: no target");
    if (target_size > HTTP_TARGET_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_HEADERS_TOO_LARGE, "call: a target of %zu bytes",
                        target_size);
    if (target_size > body_size - OAP_CALL_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "call: a target of %zu bytes does not fit a body of %zu", target_size,
                        body_size);
    if (bytes.size - OAP_CALL_HEAD_SIZE >= target_size) {
        call.target = ron_slice_of(bytes.data + OAP_CALL_HEAD_SIZE, target_size);
        call.size = OAP_CALL_HEAD_SIZE + target_size;
    }
    *ret_call = call;
    return RON_ERR_OK;
}
