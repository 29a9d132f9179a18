/*
 * otlp.c - spans to a collector. See otlp.h.
 *
 * The JSON form of OTLP: ids in hex, 64-bit integers as strings, enums as numbers.
 */
#include "io/otlp.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/client_impl.h"
#include "rt/atomic.h"
#include "rt/span.h"
#include "rt/task.h"

enum {
    BODY_SIZE_MAX = 1 << 20,
    URL_SIZE = 256,
    POST_MS = 2000,
    LAST_MS = 200,
    LINGER_MS = 1000,
    KIND_SERVER = 2,
    STATUS_ERROR = 2,
};
/* Names, keys and texts are short and escaped at worst six-fold. */
_Static_assert(IO_OTLP_BATCH_MAX *(RT_SPAN_ATTRIBUTES_MAX * 6 * RT_SPAN_TEXT_SIZE + 2048) <=
                   BODY_SIZE_MAX,
               "a batch fits a request");

struct io_otlp {
    struct rt_spans *spans;
    const char *service;
    struct io_client *client;
    char path[URL_SIZE];
    struct rt_task *task;
    struct rt_atomic_u64 sent_count, failed_count;
};

/* ---- JSON ---- */

static void put_hex(struct ron_json_writer *writer, const char *name, const uint8_t *id,
                    size_t size)
{
    char text[RON_HEX_SIZE(RT_TRACE_ID_SIZE)];

    (void)ron_hex_encode(ron_slice_of(id, size), text, sizeof(text));
    ron_json_put_name(writer, name);
    ron_json_put_text(writer, text);
}

static void put_decimal(struct ron_json_writer *writer, const char *name, uint64_t value)
{
    char text[RON_DECIMAL_U64_SIZE];

    (void)ron_decimal_print_u64(value, text);
    ron_json_put_name(writer, name);
    ron_json_put_text(writer, text);
}

static void put_attribute(struct ron_json_writer *writer, const struct rt_span_attribute *attribute)
{
    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "key");
    ron_json_put_text(writer, attribute->key);
    ron_json_put_name(writer, "value");
    ron_json_put_object_begin(writer);
    if (attribute->is_number) {
        put_decimal(writer, "intValue", attribute->number);
    } else {
        ron_json_put_name(writer, "stringValue");
        ron_json_put_text(writer, attribute->text);
    }
    ron_json_put_object_end(writer);
    ron_json_put_object_end(writer);
}

static void put_span(struct ron_json_writer *writer, const struct rt_span *span, uint64_t offset_ns)
{
    static const uint8_t none[RT_SPAN_ID_SIZE];

    ron_json_put_object_begin(writer);
    put_hex(writer, "traceId", span->trace_id, sizeof(span->trace_id));
    put_hex(writer, "spanId", span->span_id, sizeof(span->span_id));
    if (memcmp(span->parent_id, none, sizeof(none)) != 0)
        put_hex(writer, "parentSpanId", span->parent_id, sizeof(span->parent_id));
    ron_json_put_name(writer, "name");
    ron_json_put_text(writer, span->name);
    ron_json_put_name(writer, "kind");
    ron_json_put_u64(writer, KIND_SERVER);
    put_decimal(writer, "startTimeUnixNano", span->start_ns + offset_ns);
    put_decimal(writer, "endTimeUnixNano", span->end_ns + offset_ns);
    ron_json_put_name(writer, "attributes");
    ron_json_put_array_begin(writer);
    for (uint32_t i = 0; i < span->attributes_count; i++)
        put_attribute(writer, &span->attributes[i]);
    ron_json_put_array_end(writer);
    if (span->failed) {
        ron_json_put_name(writer, "status");
        ron_json_put_object_begin(writer);
        ron_json_put_name(writer, "code");
        ron_json_put_u64(writer, STATUS_ERROR);
        ron_json_put_object_end(writer);
    }
    ron_json_put_object_end(writer);
}

static void begin_list(struct ron_json_writer *writer, const char *name)
{
    ron_json_put_name(writer, name);
    ron_json_put_array_begin(writer);
}

enum ron_err io_otlp_encode(struct ron_buf *buf, const char *service, struct rt_span *const *spans,
                            size_t spans_count, uint64_t now_ns, uint64_t utc_ms,
                            struct ron_errinfo *reterr)
{
    struct rt_span_attribute named = {.key = "service.name"};
    struct ron_json_writer writer;

    (void)snprintf(named.text, sizeof(named.text), "%s", service);
    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    begin_list(&writer, "resourceSpans");
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "resource");
    ron_json_put_object_begin(&writer);
    begin_list(&writer, "attributes");
    put_attribute(&writer, &named);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    begin_list(&writer, "scopeSpans");
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "scope");
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "name");
    ron_json_put_text(&writer, service);
    ron_json_put_object_end(&writer);
    begin_list(&writer, "spans");
    for (size_t i = 0; i < spans_count; i++)
        put_span(&writer, spans[i], utc_ms * RT_NS_PER_MS - now_ns); /* wraps, and back again */
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    return ron_json_writer_end(&writer, reterr);
}

/* ---- The task ---- */

static bool post(struct io_otlp *otlp, struct rt_span *const *spans, size_t count) RON_BLOCKS
{
    struct io_client_request request = {
        .method = HTTP_POST, .path = otlp->path, .media = "application/json", .once = true};
    struct io_client_reply reply;
    struct ron_buf body;
    bool taken = false;

    ron_buf_init(&body, BODY_SIZE_MAX);
    io_client_reply_init(&reply);
    if (io_otlp_encode(&body, otlp->service, spans, count, rt_now_ns(), rt_utc_ms(), NULL) ==
        RON_ERR_OK) {
        request.body = ron_buf_slice(&body);
        taken = io_client_call(otlp->client, &request, rt_deadline_after_ms(POST_MS), &reply,
                               NULL) == RON_ERR_OK &&
                reply.head.status / 100 == 2;
    }
    io_client_reply_fini(&reply);
    ron_buf_fini(&body);
    return taken;
}

static enum ron_err export_spans(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct io_otlp *otlp = argument;
    struct rt_span *spans[IO_OTLP_BATCH_MAX];
    size_t count;

    while (rt_spans_take(otlp->spans, spans, IO_OTLP_BATCH_MAX, LINGER_MS * RT_NS_PER_MS, &count) ==
           RON_ERR_OK) {
        rt_task_beat(task);
        if (post(otlp, spans, count))
            rt_counter_add_own(&otlp->sent_count, count);
        else
            rt_counter_add_own(&otlp->failed_count, count);
        for (size_t i = 0; i < count; i++)
            (void)ron_mem_free(spans[i]);
    }
    return RON_ERR_CANCELED;
}

static void wake(void *argument)
{
    struct io_otlp *otlp = argument;

    rt_spans_close(otlp->spans);
    io_client_cancel(otlp->client);
}

/* ---- Birth and end ---- */

/* "http://ADDRESS:PORT/path" is an address and a path. */
static enum ron_err split_endpoint(const char *endpoint, char url[static URL_SIZE],
                                   char path[static URL_SIZE], struct ron_errinfo *reterr)
{
    static const char scheme[] = "http://";
    const char *slash;

    if (strncmp(endpoint, scheme, sizeof(scheme) - 1) != 0 || strlen(endpoint) >= URL_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "otlp.endpoint: must be http://ADDRESS:PORT, with a path or without");
    for (const char *at = endpoint; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~') /* no request could be sent there */
            return ron_fail(reterr, RON_ERR_MALFORMED, "otlp.endpoint: byte 0x%02x in it",
                            (unsigned char)*at);
    slash = strchr(endpoint + sizeof(scheme) - 1, '/');
    (void)snprintf(url, URL_SIZE, "%.*s", slash == NULL ? URL_SIZE - 1 : (int)(slash - endpoint),
                   endpoint);
    (void)snprintf(path, URL_SIZE, "%s", slash == NULL || slash[1] == '\0' ? "/v1/traces" : slash);
    return RON_ERR_OK;
}

enum ron_err io_otlp_check(const char *endpoint, struct ron_errinfo *reterr)
{
    struct io_address address;
    char url[URL_SIZE], path[URL_SIZE];
    bool secure;
    enum ron_err err = split_endpoint(endpoint, url, path, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = client_parse_url(url, &address, &secure, reterr);
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "otlp.endpoint");
}

enum ron_err io_otlp_start(const struct io_otlp_options *options, struct io_otlp **ret_otlp,
                           struct ron_errinfo *reterr)
{
    struct io_otlp *otlp = ron_mem_alloc_array(1, sizeof(*otlp));
    struct rt_task_options task = {.kind = "otlp",
                                   .name = "otlp",
                                   .owner = "io",
                                   .fn = export_spans,
                                   .wake = wake,
                                   .argument = otlp};
    char url[URL_SIZE];
    struct io_client_options client = {.url = url, .connections_max = 1};
    enum ron_err err;

    if (otlp == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "span exporter");
    otlp->spans = options->spans;
    otlp->service = options->service;
    err = split_endpoint(options->endpoint, url, otlp->path, reterr);
    if (err == RON_ERR_OK) {
        err = io_client_new(&client, &otlp->client, reterr);
        if (err != RON_ERR_OK)
            err = ron_wrap(reterr, err, "otlp.endpoint");
    }
    if (err == RON_ERR_OK)
        err = rt_task_spawn(options->supervisor, &task, &otlp->task, reterr);
    if (err != RON_ERR_OK) {
        (void)io_client_free(otlp->client);
        (void)ron_mem_free(otlp);
        return err;
    }
    *ret_otlp = otlp;
    return RON_ERR_OK;
}

struct io_otlp *io_otlp_stop(struct io_otlp *otlp)
{
    enum ron_err ended;

    if (otlp == NULL)
        return NULL;
    rt_spans_close(otlp->spans);
    if (rt_task_join(otlp->task, rt_deadline_after_ms(LAST_MS), &ended, NULL) != RON_ERR_OK) {
        enum ron_err err;

        rt_task_cancel(otlp->task);
        err = rt_task_join(otlp->task, RT_DEADLINE_NEVER, &ended, NULL);
        RON_ASSERT(err == RON_ERR_OK);
    }
    (void)io_client_free(otlp->client);
    return ron_mem_free(otlp);
}

struct io_otlp_stats io_otlp_get_stats(const struct io_otlp *otlp)
{
    return (struct io_otlp_stats){.sent_count = rt_counter_load(&otlp->sent_count),
                                  .failed_count = rt_counter_load(&otlp->failed_count)};
}
