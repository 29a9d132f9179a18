/*
 * test_oap_frame.c - heads and HELLO of OAP/1. Method: golden bytes both ways, every fault with its
 * refusal, and all single-byte changes of a good head: what is still accepted encodes to the same
 * bytes.
 */
#include "support.h"

#include "io/oap_server.h"

static const uint8_t golden[OAP_HEAD_SIZE] = {
    0x00, 0x01, 0x02, 0x03,                         /* len */
    0x00, 0x01,                                     /* ver */
    0x00, 0x29,                                     /* REQ START ACK_REQ */
    0x0a, 0x0b,                                     /* code */
    0x0c, 0x0d,                                     /* app_proto */
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, /* tenant */
    0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, /* */
    0x00, 0x05,                                     /* cap_len */
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, /* corr_id */
};

static struct oap_head good_head(void)
{
    struct oap_head head;

    assert_ok(oap_head_decode(golden, &head, NULL));
    return head;
}

static void test_head_golden(void **state)
{
    struct oap_head head = good_head();
    uint8_t bytes[OAP_HEAD_SIZE];

    (void)state;
    assert_int_equal(head.size, 0x010203);
    assert_int_equal(head.flags, OAP_REQ | OAP_START | OAP_ACK_REQ);
    assert_int_equal(head.code, 0x0a0b);
    assert_int_equal(head.app_proto, 0x0c0d);
    assert_true((uint64_t)(head.tenant.v >> 64) == UINT64_C(0x1011121314151617));
    assert_true((uint64_t)head.tenant.v == UINT64_C(0x18191a1b1c1d1e1f));
    assert_int_equal(head.capability_size, 5);
    assert_true(head.corr_id == UINT64_C(0x2021222324252627));
    assert_int_equal(oap_body_size(&head), 0x010203 - 38 - 5);
    oap_head_encode(&head, bytes);
    assert_memory_equal(bytes, golden, sizeof(golden));
}

/* Decode the golden head with a field changed. */
static enum ron_err decode_with(size_t at, size_t size, uint64_t value, struct ron_errinfo *info)
{
    struct oap_head before, head;
    uint8_t bytes[OAP_HEAD_SIZE];
    enum ron_err err;

    memcpy(bytes, golden, sizeof(bytes));
    for (size_t i = 0; i < size; i++)
        bytes[at + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    memset(&head, 0x5a, sizeof(head));
    memcpy(&before, &head, sizeof(before)); /* with its padding */
    err = oap_head_decode(bytes, &head, info);
    if (err != RON_ERR_OK)
        assert_memory_equal(&head, &before, sizeof(head)); /* untouched */
    return err;
}

/* covers: LED-C50 */
static void test_head_refusals(void **state)
{
    static const struct {
        size_t at, size;
        uint64_t value;
        enum ron_err err;
        const char *text;
    } rows[] = {
        {0, 4, 0, RON_ERR_MALFORMED, "less than its head"},
        {0, 4, 37, RON_ERR_MALFORMED, "less than its head"},
        {0, 4, 38, RON_ERR_MALFORMED, "do not hold a capability"},
        {0, 4, 42, RON_ERR_MALFORMED, "do not hold a capability"},
        {0, 4, (1 << 20) + 1, RON_ERR_TOO_LARGE, "1048577 bytes"},
        {0, 4, UINT32_MAX, RON_ERR_TOO_LARGE, "4294967295 bytes"},
        {4, 2, 0, RON_ERR_VERSION_SKEW, "version 0"},
        {4, 2, 2, RON_ERR_VERSION_SKEW, "version 2"},
        {4, 2, 0x0100, RON_ERR_VERSION_SKEW, "version 256"},
        {6, 2, 0x0109, RON_ERR_MALFORMED, "unknown flags 0x0100"},
        {6, 2, 0x8009, RON_ERR_MALFORMED, "unknown flags 0x8000"},
        {6, 2, OAP_START, RON_ERR_MALFORMED, "exactly one"},
        {6, 2, OAP_START | OAP_REQ | OAP_RESP, RON_ERR_MALFORMED, "exactly one"},
        {6, 2, OAP_START | OAP_REQ | OAP_EVENT, RON_ERR_MALFORMED, "exactly one"},
        {6, 2, OAP_START | OAP_RESP, RON_ERR_MALFORMED, "go with REQ"},
        {6, 2, OAP_START | OAP_EVENT, RON_ERR_MALFORMED, "go with REQ"},
        {6, 2, OAP_ACK_REQ | OAP_RESP, RON_ERR_MALFORMED, "go with REQ"},
        {6, 2, OAP_REQ | OAP_START | OAP_COMP | OAP_APP_E2E, RON_ERR_MALFORMED, "exclude"},
        {6, 2, OAP_REQ, RON_ERR_MALFORMED, "capability without START"},
        {28, 2, 4097, RON_ERR_TOO_LARGE, "capability of 4097"},
        {28, 2, 0xffff, RON_ERR_TOO_LARGE, "capability of 65535"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(rows); i++) {
        struct ron_errinfo info = {0};
        enum ron_err err = decode_with(rows[i].at, rows[i].size, rows[i].value, &info);

        support_assert_error(err, &info, rows[i].err, rows[i].text);
    }
    assert_ok(decode_with(0, 4, 43, NULL));      /* the capability and nothing else */
    assert_ok(decode_with(0, 4, 1 << 20, NULL)); /* the largest */
    assert_ok(decode_with(28, 2, 4096, NULL));
    assert_ok(decode_with(28, 2, 0, NULL)); /* START without one */
}

static void test_head_every_byte(void **state)
{
    size_t taken = 0;

    (void)state;
    for (size_t at = 0; at < OAP_HEAD_SIZE; at++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t bytes[OAP_HEAD_SIZE], again[OAP_HEAD_SIZE];
            struct oap_head head;

            memcpy(bytes, golden, sizeof(bytes));
            bytes[at] = (uint8_t)value;
            if (oap_head_decode(bytes, &head, NULL) != RON_ERR_OK)
                continue;
            taken++;
            oap_head_encode(&head, again);
            assert_memory_equal(again, bytes, sizeof(bytes));
        }
    /* All values of 28 free bytes, and some of the ten others. */
    assert_true(taken > 28 * 256 && taken < 33 * 256);
}

static void test_head_answering(void **state)
{
    struct oap_head head = good_head();
    struct oap_head answer = oap_head_answering(golden);

    (void)state;
    assert_int_equal(answer.flags, OAP_RESP);
    assert_int_equal(answer.app_proto, head.app_proto);
    assert_true(answer.corr_id == head.corr_id);
    assert_int_equal(ron_u128_compare(answer.tenant, head.tenant), 0);
    head.flags = OAP_REQ | OAP_RESP;
    assert_dies(oap_head_encode(&head, (uint8_t[OAP_HEAD_SIZE]){0}), "check");
}

static void test_hello(void **state)
{
    static const uint8_t bytes[OAP_HELLO_SIZE] = {0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x80, 0x00,
                                                  0x40, 0x00, 0xff, 0x00, 0x01, 0x00, 0x01, 0x00};
    struct oap_hello hello = {.frame_max = RON_FRAME_SIZE_MAX,
                              .inflated_max = RON_INFLATED_SIZE_MAX,
                              .inflight_max = OAP_INFLIGHT_MAX,
                              .flags = OAP_FLAGS_ALL,
                              .version_min = 1,
                              .version_max = 1};
    struct oap_hello again;
    uint8_t encoded[OAP_HELLO_SIZE];
    struct ron_errinfo info = {0};

    (void)state;
    oap_hello_encode(&hello, encoded);
    assert_memory_equal(encoded, bytes, sizeof(bytes));
    assert_ok(oap_hello_decode(ron_slice_of(bytes, sizeof(bytes)), &again, NULL));
    assert_memory_equal(&again, &hello, sizeof(hello));
    support_assert_error(oap_hello_decode(ron_slice_of(bytes, 15), &again, &info), &info,
                         RON_ERR_MALFORMED, "15 bytes");
    encoded[11] = 0x80; /* a flag of the future */
    assert_ok(oap_hello_decode(ron_slice_of(encoded, sizeof(encoded)), &again, NULL));
    assert_int_equal(again.flags, OAP_FLAGS_ALL);
    encoded[12] = encoded[14] = 2;
    support_assert_error(oap_hello_decode(ron_slice_of(encoded, sizeof(encoded)), &again, &info),
                         &info, RON_ERR_VERSION_SKEW, "versions 2 to 2");
    encoded[12] = 0; /* 0 to 2: 1 is among them */
    assert_ok(oap_hello_decode(ron_slice_of(encoded, sizeof(encoded)), &again, NULL));
    encoded[8] = 0;
    support_assert_error(oap_hello_decode(ron_slice_of(encoded, sizeof(encoded)), &again, &info),
                         &info, RON_ERR_MALFORMED, "0 in flight");
    encoded[8] = 1;
    memcpy(encoded, "\x25\0\0\0", 4);
    support_assert_error(oap_hello_decode(ron_slice_of(encoded, sizeof(encoded)), &again, &info),
                         &info, RON_ERR_MALFORMED, "37 bytes");
}

static void handler(void *context, struct io_request *request)
{
    (void)context;
    (void)request;
}

#define OP(proto_, code_, name_)                           \
    {                                                      \
        proto_, code_,                                     \
        {                                                  \
            .role = "r", .name = name_, .handler = handler \
        }                                                  \
    }

static void test_service(void **state)
{
    static const struct io_oap_op first[] = {OP(1, 1, "a"), OP(1, 2, "b"), OP(2, 1, "c")};
    static const struct io_oap_op twice[] = {OP(3, 1, "d"), OP(1, 2, "e")};
    static const struct io_oap_op zero[] = {OP(0, 1, "f")};
    struct io_oap_op many[IO_OAP_OPS_MAX];
    struct io_oap_service *service;
    struct io_oap_match match;
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(io_oap_service_new(&service, NULL));
    assert_ok(io_oap_service_add(service, first, RON_ARRAY_COUNT(first), &info, NULL));
    assert_ok(io_oap_service_match(service, 1, 2, &match, NULL));
    assert_ptr_equal(match.route, &first[1].route);
    assert_ptr_equal(match.context, &info);
    assert_int_equal(match.number, 1);
    assert_ok(io_oap_service_match(service, 2, 1, &match, NULL));
    assert_ptr_equal(match.route, &first[2].route);
    support_assert_error(io_oap_service_match(service, 2, 2, &match, &info), &info,
                         RON_ERR_NOT_FOUND, "app_proto 2 has code 2");
    support_assert_error(io_oap_service_add(service, twice, RON_ARRAY_COUNT(twice), NULL, &info),
                         &info, RON_ERR_CONFLICT, "b and e are both app_proto 1 code 2");
    assert_dies((void)!io_oap_service_add(service, zero, 1, NULL, NULL), "app_proto");
    memset(many, 0, sizeof(many));
    support_assert_error(io_oap_service_add(service, many, IO_OAP_OPS_MAX, NULL, &info), &info,
                         RON_ERR_TOO_LARGE, "more than 64");
    assert_int_equal(io_oap_service_count(service), 4);
    assert_int_equal(io_oap_service_at(service, 3)->app_proto, 3);
    assert_null(io_oap_service_free(service));
    assert_null(io_oap_service_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_golden),     cmocka_unit_test(test_head_refusals),
        cmocka_unit_test(test_head_every_byte), cmocka_unit_test(test_head_answering),
        cmocka_unit_test(test_hello),           cmocka_unit_test(test_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
