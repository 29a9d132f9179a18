/*
 * oap_frame.h - OAP/1 frames as bytes: a head of 38 bytes, a capability, a body.
 *
 * Pure and strict: a head is looked at as a whole before a byte behind it is asked for, and every
 * fault has its own refusal. Heads are big-endian, bodies little-endian; docs/formats.md has the
 * offsets. The first byte of a frame is always 0: no frame is as long as 2^24.
 *
 *     len u32 (all of it)   ver u16 = 1   flags u16   code u16   app_proto u16
 *     tenant u128           cap_len u16   corr_id u64 | capability | body
 */
#ifndef RON_IO_OAP_FRAME_H
#define RON_IO_OAP_FRAME_H

#include "base/bytes.h"
#include "base/limits.h"
#include "base/u128.h"

enum {
    OAP_VERSION = 1,
    OAP_HEAD_SIZE = RON_FRAME_HEAD_SIZE,
    OAP_CAPABILITY_SIZE_MAX = 4096,
    OAP_INFLIGHT_MAX = 64,
    OAP_HELLO_SIZE = 16,
    OAP_ACK_SIZE = 4,
};
enum oap_flags {
    OAP_REQ = 1,       /* exactly one of REQ, RESP and EVENT */
    OAP_RESP = 2,      /* code is a status: 200, or that of an error, whose envelope is the body */
    OAP_EVENT = 4,     /* asks for no answer */
    OAP_START = 8,     /* with REQ: the capability of this frame and of those after it */
    OAP_END = 16,      /* the sender's last frame */
    OAP_ACK_REQ = 32,  /* with REQ: say when it is in hand, and how many more may come */
    OAP_COMP = 64,     /* the body is one zstd stream */
    OAP_APP_E2E = 128, /* the body is sealed end to end; not with COMP */
    OAP_FLAGS_ALL = 255,
};
/* app_proto 0 is the protocol itself: code 0 asks HELLO; its replies are 200 and, for ACK_REQ, 202.
 */
enum { OAP_PROTO_HELLO = 0, OAP_STATUS_OK = 200, OAP_STATUS_ACK = 202 };

struct oap_head {
    uint32_t size; /* of the whole frame */
    uint16_t flags;
    uint16_t code;
    uint16_t app_proto;
    uint16_t capability_size;
    struct ron_u128 tenant;
    uint64_t corr_id;
};
/* RON_ERR_VERSION_SKEW; RON_ERR_TOO_LARGE (frame, capability); RON_ERR_MALFORMED (a length that
 * does not hold its parts, unknown flags, flags that exclude each other). */
enum ron_err oap_head_decode(const uint8_t bytes[static OAP_HEAD_SIZE], struct oap_head *ret_head,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* The head must be one that decodes. */
void oap_head_encode(const struct oap_head *head, uint8_t ret_bytes[static OAP_HEAD_SIZE]);
/* What a refusal of any 38 bytes is sent back with. */
struct oap_head oap_head_answering(const uint8_t bytes[static OAP_HEAD_SIZE]);

static inline size_t oap_body_size(const struct oap_head *head)
{
    return head->size - OAP_HEAD_SIZE - head->capability_size;
}

/* What one side can do: the body of the answer to HELLO. */
struct oap_hello {
    uint32_t frame_max, inflated_max;
    uint16_t inflight_max;
    uint16_t flags; /* known ones */
    uint16_t version_min, version_max;
};
void oap_hello_encode(const struct oap_hello *hello, uint8_t ret_bytes[static OAP_HELLO_SIZE]);
/* RON_ERR_MALFORMED: size, or bounds that cannot be; RON_ERR_VERSION_SKEW: version 1 not among
 * them. Flags that are not known here are left out. */
enum ron_err oap_hello_decode(struct ron_slice body, struct oap_hello *ret_hello,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
