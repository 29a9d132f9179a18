/*
 * oap_frame.c - head and HELLO of OAP/1. See oap_frame.h.
 */
#include "io/oap_frame.h"

#include "base/assert.h"

enum { /* offsets */
       AT_SIZE = 0,
       AT_VERSION = 4,
       AT_FLAGS = 6,
       AT_CODE = 8,
       AT_APP_PROTO = 10,
       AT_TENANT = 12,
       AT_CAPABILITY_SIZE = 28,
       AT_CORR_ID = 30,
};
_Static_assert(AT_CORR_ID + 8 == OAP_HEAD_SIZE, "a head ends with its corr_id");
_Static_assert(OAP_HEAD_SIZE + OAP_CAPABILITY_SIZE_MAX <= RON_FRAME_SIZE_MAX,
               "a capability fits a frame");

static enum ron_err check_flags(uint16_t flags, struct ron_errinfo *reterr)
{
    unsigned kind = flags & (OAP_REQ | OAP_RESP | OAP_EVENT);

    if ((flags & ~OAP_FLAGS_ALL) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: unknown flags 0x%04x",
                        (unsigned)(flags & ~OAP_FLAGS_ALL));
    if (kind != OAP_REQ && kind != OAP_RESP && kind != OAP_EVENT)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "frame: flags 0x%04x: exactly one of REQ, RESP and EVENT is needed", flags);
    if ((flags & (OAP_START | OAP_ACK_REQ)) != 0 && kind != OAP_REQ)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: START and ACK_REQ go with REQ only");
    if ((flags & OAP_COMP) != 0 && (flags & OAP_APP_E2E) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: COMP and APP_E2E exclude each other");
    return RON_ERR_OK;
}

static enum ron_err check(const struct oap_head *head, struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (head->size < OAP_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: %u bytes are less than its head",
                        head->size);
    if (head->size > RON_FRAME_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a frame of %u bytes; at most %d are taken",
                        head->size, RON_FRAME_SIZE_MAX);
    err = check_flags(head->flags, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (head->capability_size > 0 && (head->flags & OAP_START) == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: a capability without START");
    if (head->capability_size > OAP_CAPABILITY_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a capability of %u bytes; at most %d are taken",
                        head->capability_size, OAP_CAPABILITY_SIZE_MAX);
    if (head->capability_size > head->size - OAP_HEAD_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "frame: %u bytes do not hold a capability of %u",
                        head->size, head->capability_size);
    return RON_ERR_OK;
}

enum ron_err oap_head_decode(const uint8_t bytes[static OAP_HEAD_SIZE], struct oap_head *ret_head,
                             struct ron_errinfo *reterr)
{
    struct oap_head head = {
        .size = ron_load_be32(bytes + AT_SIZE),
        .flags = ron_load_be16(bytes + AT_FLAGS),
        .code = ron_load_be16(bytes + AT_CODE),
        .app_proto = ron_load_be16(bytes + AT_APP_PROTO),
        .capability_size = ron_load_be16(bytes + AT_CAPABILITY_SIZE),
        .tenant = ron_u128_load_be(bytes + AT_TENANT),
        .corr_id = ron_load_be64(bytes + AT_CORR_ID),
    };
    uint16_t version = ron_load_be16(bytes + AT_VERSION);
    enum ron_err err;

    /* First: in another version the rest may mean something else. */
    if (version != OAP_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "frame: version %u; only %d is spoken",
                        version, OAP_VERSION);
    err = check(&head, reterr);
    if (err == RON_ERR_OK)
        *ret_head = head;
    return err;
}

void oap_head_encode(const struct oap_head *head, uint8_t ret_bytes[static OAP_HEAD_SIZE])
{
    RON_ASSERT(check(head, NULL) == RON_ERR_OK);
    ron_store_be32(ret_bytes + AT_SIZE, head->size);
    ron_store_be16(ret_bytes + AT_VERSION, OAP_VERSION);
    ron_store_be16(ret_bytes + AT_FLAGS, head->flags);
    ron_store_be16(ret_bytes + AT_CODE, head->code);
    ron_store_be16(ret_bytes + AT_APP_PROTO, head->app_proto);
    ron_u128_store_be(ret_bytes + AT_TENANT, head->tenant);
    ron_store_be16(ret_bytes + AT_CAPABILITY_SIZE, head->capability_size);
    ron_store_be64(ret_bytes + AT_CORR_ID, head->corr_id);
}

struct oap_head oap_head_answering(const uint8_t bytes[static OAP_HEAD_SIZE])
{
    return (struct oap_head){
        .size = OAP_HEAD_SIZE,
        .flags = OAP_RESP,
        .app_proto = ron_load_be16(bytes + AT_APP_PROTO),
        .tenant = ron_u128_load_be(bytes + AT_TENANT),
        .corr_id = ron_load_be64(bytes + AT_CORR_ID),
    };
}

void oap_hello_encode(const struct oap_hello *hello, uint8_t ret_bytes[static OAP_HELLO_SIZE])
{
    ron_store_le32(ret_bytes, hello->frame_max);
    ron_store_le32(ret_bytes + 4, hello->inflated_max);
    ron_store_le16(ret_bytes + 8, hello->inflight_max);
    ron_store_le16(ret_bytes + 10, hello->flags);
    ron_store_le16(ret_bytes + 12, hello->version_min);
    ron_store_le16(ret_bytes + 14, hello->version_max);
}

enum ron_err oap_hello_decode(struct ron_slice body, struct oap_hello *ret_hello,
                              struct ron_errinfo *reterr)
{
    struct oap_hello hello;

    if (body.size != OAP_HELLO_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "HELLO: %zu bytes instead of %d", body.size,
                        OAP_HELLO_SIZE);
    hello = (struct oap_hello){
        .frame_max = ron_load_le32(body.data),
        .inflated_max = ron_load_le32(body.data + 4),
        .inflight_max = ron_load_le16(body.data + 8),
        .flags = ron_load_le16(body.data + 10) & OAP_FLAGS_ALL,
        .version_min = ron_load_le16(body.data + 12),
        .version_max = ron_load_le16(body.data + 14),
    };
    if (hello.version_min > OAP_VERSION || hello.version_max < OAP_VERSION)
        return ron_fail(reterr, RON_ERR_VERSION_SKEW, "HELLO: versions %u to %u; only %d is spoken",
                        hello.version_min, hello.version_max, OAP_VERSION);
    if (hello.frame_max < OAP_HEAD_SIZE || hello.inflight_max == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "HELLO: frames of %u bytes, %u in flight",
                        hello.frame_max, hello.inflight_max);
    *ret_hello = hello;
    return RON_ERR_OK;
}
