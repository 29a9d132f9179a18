/*
 * fuzz_oap.c - any bytes as frames of OAP/1, one after the other as a connection reads them.
 *
 * Checks beyond "no crash": an accepted head keeps every bound and encodes to the same bytes, its
 * parts lie inside its frame, a refusal says why and can be answered; an accepted HELLO encodes to
 * what it was but for flags that are not known; a body as a call is judged alike in one piece and
 * byte by byte, its target lies inside it and has no byte that a path may not have.
 */
#include "base/assert.h"
#include "io/oap_call.h"
#include "io/oap_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_hello(struct ron_slice body)
{
    struct oap_hello hello;
    uint8_t bytes[OAP_HELLO_SIZE];
    struct ron_errinfo info = {0};

    if (oap_hello_decode(body, &hello, &info) != RON_ERR_OK) {
        RON_ASSERT(info.message[0] != '\0');
        return;
    }
    RON_ASSERT(body.size == OAP_HELLO_SIZE && hello.inflight_max > 0);
    RON_ASSERT(hello.version_min <= OAP_VERSION && OAP_VERSION <= hello.version_max);
    oap_hello_encode(&hello, bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        RON_ASSERT(bytes[i] == body.data[i] || i == 11); /* the high byte of its flags */
}

/* The head of a call needs all of its bytes and no other. */
static void check_call(struct ron_slice body)
{
    struct oap_call call, again;
    struct http_target target;
    struct ron_errinfo info = {0};
    size_t size = 0;

    if (oap_call_decode(body, body.size, &call, &info) != RON_ERR_OK) {
        RON_ASSERT(info.message[0] != '\0' && ron_err_http(info.err) >= 400);
        return;
    }
    RON_ASSERT(call.method != HTTP_OTHER && call.size <= body.size);
    RON_ASSERT(call.size == OAP_CALL_HEAD_SIZE + call.target.size);
    RON_ASSERT(call.target.size > 0 && call.target.size <= HTTP_TARGET_SIZE_MAX);
    RON_ASSERT(call.target.data == body.data + OAP_CALL_HEAD_SIZE);
    do {
        RON_ASSERT(oap_call_decode(ron_slice_of(body.data, size), body.size, &again, NULL) ==
                   RON_ERR_OK);
        RON_ASSERT((again.size == 0) == (size < call.size));
    } while (size++ < call.size);
    if (http_target_split(call.method, call.target, &target, &info) != RON_ERR_OK) {
        RON_ASSERT(info.message[0] != '\0');
        return;
    }
    RON_ASSERT(target.path.size > 0 && target.path.data[0] == '/');
    RON_ASSERT(memchr(target.path.data, '?', target.path.size) == NULL);
    for (size_t i = 0; i < call.target.size; i++)
        RON_ASSERT(call.target.data[i] > ' ' && call.target.data[i] <= '~');
}

/* The refusal of a head can be sent. */
static void check_refusal(const uint8_t *bytes, const struct ron_errinfo *info)
{
    struct oap_head answer = oap_head_answering(bytes), again;
    uint8_t encoded[OAP_HEAD_SIZE];

    RON_ASSERT(info->message[0] != '\0' && ron_err_http(info->err) >= 400);
    oap_head_encode(&answer, encoded);
    RON_ASSERT(oap_head_decode(encoded, &again, NULL) == RON_ERR_OK);
    RON_ASSERT(again.corr_id == answer.corr_id);
}

static void check_head(const struct oap_head *head, const uint8_t *bytes)
{
    uint8_t encoded[OAP_HEAD_SIZE];

    RON_ASSERT(bytes[0] == 0); /* tells it from HTTP */
    RON_ASSERT(head->size >= OAP_HEAD_SIZE && head->size <= RON_FRAME_SIZE_MAX);
    RON_ASSERT(head->capability_size <= OAP_CAPABILITY_SIZE_MAX);
    RON_ASSERT(oap_body_size(head) <= head->size - OAP_HEAD_SIZE);
    RON_ASSERT(head->capability_size == 0 || (head->flags & OAP_START) != 0);
    oap_head_encode(head, encoded);
    RON_ASSERT(memcmp(encoded, bytes, sizeof(encoded)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_hello(ron_slice_of(data, size));
    while (size >= OAP_HEAD_SIZE) {
        struct oap_head head;
        struct ron_slice body;
        struct ron_errinfo info = {0};

        if (oap_head_decode(data, &head, &info) != RON_ERR_OK) {
            check_refusal(data, &info);
            break;
        }
        check_head(&head, data);
        if (head.size > size)
            break;
        body = ron_slice_of(data + OAP_HEAD_SIZE + head.capability_size, oap_body_size(&head));
        if (head.app_proto == OAP_PROTO_HELLO)
            check_hello(body);
        else
            check_call(body);
        data += head.size;
        size -= head.size;
    }
    return 0;
}
