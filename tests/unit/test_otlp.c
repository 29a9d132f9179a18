/*
 * test_otlp.c - spans as OTLP's JSON, byte for byte, and endpoints that are none.
 *
 * The exporter with a collector: tests/serve (spans, collectors_that_fail).
 */
#include "support.h"

#include "io/otlp.h"
#include "rt/registry.h"
#include "rt/span.h"
#include "rt/supervisor.h"

static struct rt_supervisor *supervisor;

static void encodes_what_collectors_read(void **state)
{
    static const char expected[] =
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{"
        "\"stringValue\":\"ron\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"ron\"},\"spans\":[{"
        "\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":\"f0f1f2f3f4f5f6f7\","
        "\"parentSpanId\":\"e0e1e2e3e4e5e6e7\",\"name\":\"ingress\",\"kind\":2,"
        "\"startTimeUnixNano\":\"1760000000119999000\",\"endTimeUnixNano\":\"1760000000122000000\","
        "\"attributes\":[{\"key\":\"corr_id\",\"value\":{\"stringValue\":\"a\\\"b\"}},{\"key\":"
        "\"n\",\"value\":{\"intValue\":\"18446744073709551615\"}}],\"status\":{\"code\":2}},{"
        "\"traceId\":\"000102030405060708090a0b0c0d0e0f\",\"spanId\":\"f0f1f2f3f4f5f6f7\",\"name\":"
        "\"ingress\",\"kind\":2,\"startTimeUnixNano\":\"1760000000119999000\",\"endTimeUnixNano\":"
        "\"1760000000122000000\",\"attributes\":[]}]}]}]}";
    struct rt_span first = {.name = "ingress", .start_ns = 1999000, .end_ns = 4000000};
    struct rt_span second;
    struct rt_span *const both[] = {&first, &second};
    struct ron_buf buf;

    (void)state;
    for (uint8_t i = 0; i < RT_TRACE_ID_SIZE; i++)
        first.trace_id[i] = i;
    for (uint8_t i = 0; i < RT_SPAN_ID_SIZE; i++)
        first.span_id[i] = 0xf0 + i;
    second = first;
    for (uint8_t i = 0; i < RT_SPAN_ID_SIZE; i++)
        first.parent_id[i] = 0xe0 + i;
    rt_span_put_text(&first, "corr_id", "a\"b");
    rt_span_put_number(&first, "n", UINT64_MAX);
    first.failed = true;
    ron_buf_init(&buf, 4096);
    assert_ok(io_otlp_encode(&buf, "ron", both, 2, 5000000, 1760000000123, NULL));
    assert_int_equal(buf.size, sizeof(expected) - 1);
    assert_memory_equal(buf.data, expected, sizeof(expected) - 1);
    ron_buf_fini(&buf);
}

static enum ron_err start_one(const char *endpoint, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_otlp_options options = {
        .endpoint = endpoint, .service = "ron", .supervisor = supervisor};
    struct io_otlp *otlp;
    enum ron_err err = rt_spans_new("test", 1000, &options.spans, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_otlp_start(&options, &otlp, reterr);
    if (err == RON_ERR_OK) {
        struct rt_trace trace;

        assert_true(rt_trace_start(options.spans, RON_SLICE(""), &trace));
        rt_span_end(options.spans, rt_span_begin(options.spans, &trace, "x"), false);
        assert_null(io_otlp_stop(otlp));
    }
    assert_null(rt_spans_free(options.spans));
    return err;
}

static enum ron_err start_for_memory(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_otlp_options options = {
        .endpoint = "http://127.0.0.1:1", .service = "ron", .supervisor = supervisor};
    struct io_otlp *otlp;
    enum ron_err err;

    options.spans = context;
    err = io_otlp_start(&options, &otlp, reterr);
    if (err == RON_ERR_OK)
        assert_null(io_otlp_stop(otlp));
    return err;
}

static void endpoints_are_addresses(void **state) RON_BLOCKS
{
    static const char *const bad[] = {"https://127.0.0.1:1",
                                      "127.0.0.1:1",
                                      "http://nowhere:1",
                                      "http:///v1/traces",
                                      "unix:/x",
                                      "",
                                      "http://127.0.0.1:1/v1/tr aces",
                                      "http://127.0.0.1:1/v1\r\nX: y",
                                      "http://127.0.0.1:1/\xc3\xa4",
                                      "http://u:p@127.0.0.1:1"};
    struct ron_errinfo info = {0};
    struct rt_spans *spans;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++)
        support_assert_error(io_otlp_check(bad[i], &info), &info, RON_ERR_MALFORMED,
                             "otlp.endpoint");
    assert_ok(io_otlp_check("http://127.0.0.1:1/other/path", NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++)
        support_assert_error(start_one(bad[i], &info), &info, RON_ERR_MALFORMED, "otlp.endpoint");
    assert_ok(start_one("http://127.0.0.1:1", NULL)); /* nobody listens: the span is lost */
    assert_ok(start_one("http://127.0.0.1:1/other/path", NULL));
    assert_ok(rt_spans_new("test", 0, &spans, NULL));
    assert_true(support_fail_each_allocation(start_for_memory, spans, 20) >= 2);
    assert_null(rt_spans_free(spans));
}

int main(void)
{
    static const struct rt_supervisor_options supervision = {
        .name = "test", .owner = "test", .tasks_max = 4};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_what_collectors_read),
        cmocka_unit_test(endpoints_are_addresses),
    };
    int failed;

    rt_init();
    if (rt_supervisor_new(&supervision, &supervisor, NULL) != RON_ERR_OK)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    supervisor = rt_supervisor_free(supervisor);
    return failed;
}
