/*
 * test_oap_call.c - calls: a frame's body that names a route.
 *
 * Method: the head as bytes, good, short and wrong; then a server in this process whose routes say
 * what they were asked, by TCP and by a Unix socket.
 */
#include "support.h"

#include <stdio.h>
#include <unistd.h>

#include "io/oap_call.h"
#include "io/oap_client.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { PROTO = 7, CALL = 3, PATIENCE_MS = 20000, BODY_MAX = 20000 };

/* ---- Bytes ---- */

static void test_decode(void **state)
{
    static const uint8_t bytes[] = {2, 4, 0, '/', 'a', '?', 'b', '{', '}'};
    const struct ron_slice whole = ron_slice_of(bytes, sizeof(bytes));
    struct oap_call call;

    (void)state;
    assert_ok(oap_call_decode(whole, whole.size, &call, NULL));
    assert_int_equal(call.method, HTTP_POST);
    assert_true(ron_slice_equal(call.target, RON_SLICE("/a?b")));
    assert_int_equal(call.size, 7);
    /* What is behind the body is another frame's. */
    assert_ok(oap_call_decode(whole, 7, &call, NULL));
    assert_int_equal(call.size, 7);
    for (size_t size = 0; size < 7; size++) {
        assert_ok(oap_call_decode(ron_slice_of(bytes, size), whole.size, &call, NULL));
        assert_int_equal(call.size, 0);
    }
}

static void test_decode_methods(void **state)
{
    static const enum http_method methods[] = {HTTP_OTHER, HTTP_GET, HTTP_POST, HTTP_PUT,
                                               HTTP_DELETE};
    struct ron_errinfo info = {0};
    struct oap_call call;

    (void)state;
    for (unsigned number = 0; number < 256; number++) {
        const uint8_t bytes[] = {(uint8_t)number, 1, 0, '/'};
        enum ron_err err = oap_call_decode(ron_slice_of(bytes, sizeof(bytes)), sizeof(bytes), &call,
                                           &info);

        if (number == 0 || number >= RON_ARRAY_COUNT(methods)) {
            support_assert_error(err, &info, RON_ERR_MALFORMED, "no method has number");
            continue;
        }
        assert_ok(err);
        assert_int_equal(call.method, methods[number]);
    }
}

static void test_decode_refusals(void **state)
{
    static const uint8_t none[] = {1, 0, 0, '/'};
    static const uint8_t beyond[] = {1, 2, 0, '/'};
    static const uint8_t longest[] = {1, 0x00, 0x10}; /* 4,096 */
    static const uint8_t longer[] = {1, 0x01, 0x10};
    struct ron_errinfo info = {0};
    struct oap_call call;

    (void)state;
    for (size_t size = 0; size < OAP_CALL_HEAD_SIZE; size++)
        support_assert_error(oap_call_decode(ron_slice_of(none, size), size, &call, &info), &info,
                             RON_ERR_MALFORMED, "less than its head");
    support_assert_error(oap_call_decode(ron_slice_of(none, 4), 4, &call, &info), &info,
                         RON_ERR_MALFORMED, "no target");
    support_assert_error(oap_call_decode(ron_slice_of(beyond, 4), 4, &call, &info), &info,
                         RON_ERR_MALFORMED, "does not fit a body of 4");
    assert_ok(oap_call_decode(ron_slice_of(longest, 3), 3 + HTTP_TARGET_SIZE_MAX, &call, &info));
    assert_int_equal(call.size, 0);
    /* At once: no byte of it is waited for. */
    support_assert_error(oap_call_decode(ron_slice_of(longer, 3), 1 << 20, &call, &info), &info,
                         RON_ERR_HEADERS_TOO_LARGE, "4097 bytes");
}

/* ---- The server ---- */

static struct rt_supervisor *supervisor;
static struct io_oap_service *service;
static struct io_routes *routes;
static struct io_server *server;
static char unix_url[80];

/* What the handler sees: route, method, path, query, its parameter and the body's size. */
static void describe(void *context, struct io_request *request)
{
    char text[512];

    assert_ptr_equal(context, &routes);
    assert_null(request->head);
    assert_non_null(request->frame);
    assert_false(io_request_is_operation(request));
    (void)snprintf(text, sizeof(text), "%s %s %.*s ?%.*s [%.*s] %zu", request->route->name,
                   http_method_name(request->method), (int)request->path.size,
                   (const char *)request->path.data, (int)request->query.size,
                   (const char *)request->query.data, (int)request->params[0].size,
                   (const char *)request->params[0].data, request->body.size);
    io_reply(request, &(struct io_reply){.status = 200, .body = ron_slice_text(text)});
}

static void echo(void *context, struct io_request *request)
{
    (void)context;
    io_reply(request, &(struct io_reply){.status = 200, .body = request->body});
}

static void stream(void *context, struct io_request *request)
{
    struct io_stream *opened;

    (void)context;
    assert_int_equal(io_stream_open(request, 4096, &opened, NULL), RON_ERR_UNSUPPORTED_MEDIA);
}

static void pieces(void *context, struct io_request *request)
{
    struct io_stream *opened;

    (void)context;
    assert_int_equal(io_body_open(request, "text/plain", 4096, &opened, NULL),
                     RON_ERR_UNSUPPORTED_MEDIA);
}

static void large(void *context, struct io_request *request)
{
    static uint8_t bytes[RON_FRAME_SIZE_MAX];
    bool fits = ron_slice_equal(request->query, RON_SLICE("fits"));

    (void)context;
    io_reply(request, &(struct io_reply){
                          .status = 200,
                          .body = ron_slice_of(bytes, sizeof(bytes) - (fits ? OAP_HEAD_SIZE : 0))});
}

/* A token is the method and the beginning of the path that it is for. */
static enum ron_err authorize(void *context, const struct io_request *request, void *principal,
                              struct ron_errinfo *reterr)
{
    char allowed[64];
    int size;

    (void)context;
    (void)principal;
    if (request->capability.size == 0)
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "no capability");
    size = snprintf(allowed, sizeof(allowed), "%s %.*s", http_method_name(request->method),
                    (int)request->path.size, (const char *)request->path.data);
    if ((size_t)size >= request->capability.size &&
        memcmp(allowed, request->capability.data, request->capability.size) == 0)
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_FORBIDDEN, "not for %s", allowed);
}

#define ROUTE .role = "test", .summary = "", .replies = "application/json"
static const struct io_route rows[] = {
    {HTTP_GET, "/things/{name}", ROUTE, .name = "thing", .handler = describe},
    {HTTP_PUT, "/things/{name}", ROUTE, .name = "put", .body_max = 10, .media = "application/json",
     .handler = describe},
    {HTTP_DELETE, "/things/{name}", ROUTE, .name = "delete", .handler = describe},
    {HTTP_POST, "/echo", ROUTE, .name = "echo", .body_max = BODY_MAX, .media = "application/json",
     .handler = echo},
    {HTTP_GET, "/safe/{name}", ROUTE, .name = "safe", .scope = "ledger.read", .handler = describe},
    {HTTP_POST, "/safe/{name}", ROUTE, .name = "write", .scope = "ledger.read", .body_max = 10,
     .media = "application/json", .flags = IO_ROUTE_WRITE, .handler = describe},
    {HTTP_GET, "/stream", ROUTE, .name = "stream", .flags = IO_ROUTE_STREAM, .handler = stream},
    {HTTP_GET, "/pieces", ROUTE, .name = "pieces", .handler = pieces},
    {HTTP_GET, "/large", ROUTE, .name = "large", .handler = large},
    {HTTP_GET, "/admin/thing", ROUTE, .name = "admin", .flags = IO_ROUTE_ADMIN, .handler = echo},
};
static const struct io_oap_op ops[] = {
    {PROTO, CALL, {.role = "test", .name = "call", .flags = IO_ROUTE_CALL, .summary = ""}},
};

static int set_up(void **state) RON_BLOCKS
{
    static const struct rt_supervisor_options supervision = {
        .name = "test", .owner = "test", .tasks_max = 8};
    static struct io_listener_options listeners[] = {{.address = "127.0.0.1:0"},
                                                     {.address = unix_url}};
    static const struct io_budget budgets[] = {{.role = "test", .writes_per_s = 1}};
    struct io_server_options options = {.listeners = listeners,
                                        .listeners_count = 2,
                                        .request_ms = PATIENCE_MS,
                                        .budgets = budgets,
                                        .budgets_count = 1,
                                        .authorize = authorize};

    (void)state;
    rt_init();
    (void)snprintf(unix_url, sizeof(unix_url), "unix:/tmp/ron-call-%d.sock", (int)getpid());
    assert_ok(rt_supervisor_new(&supervision, &supervisor, NULL));
    assert_ok(io_routes_new(&routes, NULL));
    assert_ok(io_routes_add(routes, rows, RON_ARRAY_COUNT(rows), &routes, NULL));
    assert_ok(io_oap_service_new(&service, NULL));
    assert_ok(io_oap_service_add(service, ops, RON_ARRAY_COUNT(ops), NULL, NULL));
    options.supervisor = supervisor;
    options.routes = routes;
    options.oap = service;
    assert_ok(io_server_start(&options, &server, NULL));
    return 0;
}

static int tear_down(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(io_server_stop(server, rt_deadline_after_ms(PATIENCE_MS), NULL));
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(PATIENCE_MS), NULL));
    supervisor = rt_supervisor_free(supervisor);
    service = io_oap_service_free(service);
    routes = io_routes_free(routes);
    return 0;
}

/* ---- Calls ---- */

struct peer {
    struct oap_client *client;
    struct ron_secret token;
    struct ron_buf reply;
};

static void begin(struct peer *peer, const char *url, const char *token)
{
    struct oap_client_options options = {.url = url, .supervisor = supervisor};

    *peer = (struct peer){0};
    ron_buf_init(&peer->reply, 2 << 20);
    if (token != NULL) {
        assert_ok(ron_secret_init(&peer->token, ron_slice_text(token), NULL));
        options.token = &peer->token;
    }
    assert_ok(oap_client_new(&options, &peer->client, NULL));
}

static void end(struct peer *peer) RON_BLOCKS
{
    /* Whatever was refused, the connection went on. */
    assert_int_equal(oap_client_get_stats(peer->client).connects_count, 1);
    assert_null(oap_client_free(peer->client));
    ron_secret_fini(&peer->token);
    ron_buf_fini(&peer->reply);
}

static enum ron_err call(struct peer *peer, uint8_t method, const char *target,
                         struct ron_slice body, struct ron_errinfo *reterr) RON_BLOCKS
{
    static uint8_t bytes[RON_FRAME_SIZE_MAX];
    size_t size = strlen(target);

    bytes[0] = method;
    ron_store_le16(bytes + 1, (uint16_t)size);
    memcpy(bytes + 3, target, size);
    if (body.size > 0)
        memcpy(bytes + 3 + size, body.data, body.size);
    return oap_client_call(
        peer->client,
        &(struct oap_client_request){
            .app_proto = PROTO, .code = CALL, .body = ron_slice_of(bytes, 3 + size + body.size)},
        rt_deadline_after_ms(PATIENCE_MS), &peer->reply, reterr);
}

static void assert_says(struct peer *peer, uint8_t method, const char *target, const char *body,
                        const char *said) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    assert_ok(call(peer, method, target, ron_slice_text(body), &info));
    assert_true(ron_slice_equal(ron_buf_slice(&peer->reply), ron_slice_text(said)));
}

static void assert_refused(struct peer *peer, uint8_t method, const char *target,
                           struct ron_slice body, enum ron_err err, const char *why) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    support_assert_error(call(peer, method, target, body, &info), &info, err, why);
}

static void routes_answer_as_they_do_over_http(void **state) RON_BLOCKS
{
    const char *const urls[] = {io_server_url(server, 0), unix_url};
    static uint8_t body[BODY_MAX];
    struct ron_errinfo info = {0};
    struct peer peer;

    (void)state;
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)(i * 7 >> 3);
    for (size_t i = 0; i < RON_ARRAY_COUNT(urls); i++) {
        begin(&peer, urls[i], NULL);
        assert_says(&peer, 1, "/things/a%20b?c=d&e", "",
                    "thing GET /things/a%20b ?c=d&e [a%20b] 0");
        assert_says(&peer, 3, "/things/x", "0123456789", "put PUT /things/x ? [x] 10");
        assert_says(&peer, 4, "/things/x?y", "", "delete DELETE /things/x ?y [x] 0");
        /* In the call itself, in blocks of their own, and received where they stay. */
        for (size_t size = 0; size <= BODY_MAX; size += size < 4000 ? 500 : 16000) {
            assert_ok(call(&peer, 2, "/echo", ron_slice_of(body, size), &info));
            assert_true(ron_slice_equal(ron_buf_slice(&peer.reply), ron_slice_of(body, size)));
        }
        assert_ok(call(&peer, 1, "/large?fits", (struct ron_slice){0}, &info));
        assert_int_equal(peer.reply.size, RON_FRAME_SIZE_MAX - OAP_HEAD_SIZE);
        end(&peer);
    }
}

static void what_is_refused_is_refused_by_name(void **state) RON_BLOCKS
{
    static uint8_t body[BODY_MAX + 1];
    const struct ron_slice none = {0};
    struct peer peer;

    (void)state;
    begin(&peer, io_server_url(server, 0), NULL);
    assert_refused(&peer, 1, "/nothing", none, RON_ERR_NOT_FOUND, "no such path");
    assert_refused(&peer, 1, "/admin/thing", none, RON_ERR_NOT_FOUND, "no such path");
    assert_refused(&peer, 2, "/things/x", none, RON_ERR_METHOD_NOT_ALLOWED, "this method");
    assert_refused(&peer, 5, "/things/x", none, RON_ERR_MALFORMED, "number 5");
    assert_refused(&peer, 1, "", none, RON_ERR_MALFORMED, "no target");
    assert_refused(&peer, 1, "things/x", none, RON_ERR_MALFORMED, "neither a path");
    assert_refused(&peer, 1, "/things/x y", none, RON_ERR_MALFORMED, "byte 0x20");
    assert_refused(&peer, 1, "/things/%4", none, RON_ERR_MALFORMED, "two hex digits");
    assert_refused(&peer, 1, "/stream", none, RON_ERR_UNSUPPORTED_MEDIA, "needs HTTP");
    assert_refused(&peer, 1, "/pieces", none, RON_ERR_UNSUPPORTED_MEDIA, "needs HTTP");
    assert_refused(&peer, 1, "/large", none, RON_ERR_TOO_LARGE, "does not fit a frame");
    /* The body's cap is the route's, and counts what is behind the target. */
    assert_refused(&peer, 3, "/things/x", RON_SLICE("01234567890"), RON_ERR_TOO_LARGE, "11 bytes");
    assert_refused(&peer, 1, "/things/x", RON_SLICE("0"), RON_ERR_TOO_LARGE, "at most 0");
    assert_refused(&peer, 2, "/echo", ron_slice_of(body, sizeof(body)), RON_ERR_TOO_LARGE,
                   "20001 bytes");
    assert_says(&peer, 1, "/things/x", "", "thing GET /things/x ? [x] 0");
    end(&peer);
}

static void the_capability_is_held_against_the_called_route(void **state) RON_BLOCKS
{
    const struct ron_slice none = {0};
    struct peer peer;

    (void)state;
    begin(&peer, io_server_url(server, 0), NULL);
    assert_refused(&peer, 1, "/safe/a", none, RON_ERR_UNAUTHORIZED, "no capability");
    assert_says(&peer, 1, "/things/a", "", "thing GET /things/a ? [a] 0");
    end(&peer);
    begin(&peer, io_server_url(server, 0), "GET /safe/a");
    assert_says(&peer, 1, "/safe/a?x", "", "safe GET /safe/a ?x [a] 0");
    assert_refused(&peer, 1, "/safe/b", none, RON_ERR_FORBIDDEN, "not for GET /safe/b");
    assert_refused(&peer, 2, "/safe/a", none, RON_ERR_FORBIDDEN, "not for POST /safe/a");
    end(&peer);
}

/* Its rate is the role's, for writes: one of them is enough. */
static void a_call_is_charged_as_what_it_calls(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = RON_ERR_OK;
    struct peer peer;

    (void)state;
    begin(&peer, unix_url, "POST /safe/");
    for (int i = 0; i < 100 && err == RON_ERR_OK; i++)
        err = call(&peer, 2, "/safe/a", RON_SLICE("{}"), &info);
    support_assert_error(err, &info, RON_ERR_RATE_LIMITED, "too many writes");
    assert_says(&peer, 1, "/things/a", "", "thing GET /things/a ? [a] 0");
    io_server_drain(server);
    assert_refused(&peer, 2, "/safe/a", (struct ron_slice){0}, RON_ERR_DRAINING, "shutting down");
    end(&peer);
}

static void handler(void *context, struct io_request *request)
{
    (void)context;
    (void)request;
}

static void test_rows(void **state)
{
    static const struct io_oap_op both[] = {
        {1, 1, {.role = "r", .name = "a", .handler = handler, .flags = IO_ROUTE_CALL}}};
    static const struct io_oap_op neither[] = {{1, 1, {.role = "r", .name = "a"}}};
    struct io_oap_service *none;

    (void)state;
    assert_ok(io_oap_service_new(&none, NULL));
    assert_dies((void)!io_oap_service_add(none, both, 1, NULL, NULL), "handler");
    assert_dies((void)!io_oap_service_add(none, neither, 1, NULL, NULL), "handler");
    assert_null(io_oap_service_free(none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_decode_methods),
        cmocka_unit_test(test_decode_refusals),
        cmocka_unit_test(test_rows),
        cmocka_unit_test_setup_teardown(routes_answer_as_they_do_over_http, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_is_refused_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_capability_is_held_against_the_called_route, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_call_is_charged_as_what_it_calls, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
