/*
 * test_server.c - the server's start and end. Method: a server in this process, requests that
 * nobody answers yet and streams that nobody closes yet, then a stop; starts without memory and on
 * addresses that are taken.
 */
#include "support.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "base/decimal.h"
#include "io/client.h"
#include "io/conn.h"
#include "io/server.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"
#include "rt/task.h"

static struct rt_supervisor *supervisor;
static struct io_routes *routes;
static struct rt_queue *kept; /* what the handlers got */
static struct rt_atomic_u32 held, gathered_calls;

static void keep(void *context, struct io_request *request)
{
    (void)context;
    assert_ok(rt_queue_try_send(kept, (struct rt_queue_item){request, 1}, NULL));
}

static void keep_stream(void *context, struct io_request *request)
{
    struct io_stream *stream;

    (void)context;
    assert_ok(io_stream_open(request, 4096, &stream, NULL));
    assert_ok(rt_queue_try_send(kept, (struct rt_queue_item){stream, 1}, NULL));
}

static void answer(void *context, struct io_request *request)
{
    (void)context;
    io_reply(request, &(struct io_reply){.status = 204});
}

/* The loop stands still until the test lets it go on. */
static void hold(void *context, struct io_request *request)
{
    (void)context;
    assert_ok(rt_queue_try_send(kept, (struct rt_queue_item){request, 1}, NULL));
    while (rt_atomic_load_u32(&held) != 0)
        (void)sched_yield();
    io_reply(request, &(struct io_reply){.status = 204});
}

static void answer_gathered(void *context, void **items, size_t items_count)
{
    (void)context;
    (void)rt_atomic_add_u32(&gathered_calls, 1);
    for (size_t i = 0; i < items_count; i++)
        io_reply(items[i], &(struct io_reply){.status = 204});
}

static void gather(void *context, struct io_request *request)
{
    io_request_gather(request, answer_gathered, context, request);
}

static void gather_here(void *context, struct io_request *request)
{
    io_request_gather_here(request, answer_gathered, context, request);
}

static const struct io_route rows[] = {
    {HTTP_GET, "/hold", .role = "test", .name = "hold", .summary = "", .handler = hold},
    {HTTP_GET, "/gather", .role = "test", .name = "gather", .summary = "", .handler = gather},
    {HTTP_GET, "/here", .role = "test", .name = "here", .summary = "", .handler = gather_here},
    {HTTP_GET, "/now", .role = "test", .name = "now", .summary = "", .handler = answer},
    {HTTP_GET, "/keep", .role = "test", .name = "keep", .summary = "", .handler = keep},
    {HTTP_GET, "/stream", .role = "test", .name = "stream", .summary = "", .handler = keep_stream},
};

static struct io_server_options options_for(const struct io_listener_options *listener)
{
    return (struct io_server_options){.listeners = listener,
                                      .listeners_count = 1,
                                      .routes = routes,
                                      .loops_count = 2,
                                      .supervisor = supervisor};
}

static struct io_server *start(void) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct io_server_options options = options_for(&listener);
    struct io_server *server;

    assert_ok(io_server_start(&options, &server, NULL));
    return server;
}

static int ask(const struct io_server *server, const char *request) RON_BLOCKS
{
    const char *colon = strrchr(io_server_url(server, 0), ':');
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint64_t port;

    assert_true(fd >= 0);
    assert_ok(ron_decimal_parse_u64(ron_slice_text(colon + 1), &port, NULL));
    address.sin_port = htons((uint16_t)port);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    return fd;
}

/* Send a request, take what the handler kept of it, and leave. */
static void *ask_and_leave(const struct io_server *server, const char *request) RON_BLOCKS
{
    struct linger reset = {1, 0};
    int fd = ask(server, request);
    size_t count;
    void *item;

    assert_ok(rt_queue_recv_many(kept, &item, 1, 0, rt_deadline_after_ms(10000), &count, NULL));
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    assert_int_equal(close(fd), 0);
    return item;
}

static void reply(struct io_request *request)
{
    io_reply(request, &(struct io_reply){.status = 204});
}

static void a_stop_that_leaves_a_request_may_be_repeated(void **state) RON_BLOCKS
{
    struct io_server *server = start();
    struct io_request *request = ask_and_leave(server, "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
    struct ron_errinfo info = {0};

    (void)state;
    support_assert_error(io_server_stop(server, rt_deadline_after_ms(50), &info), &info,
                         RON_ERR_TIMEOUT, "1 requests or streams");
    assert_true(ron_slice_equal(request->path, RON_SLICE("/keep"))); /* still whole */
    reply(request);
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

static void replies_of_a_burst_all_go_out(void **state) RON_BLOCKS
{
    struct io_server *server = start();
    struct io_burst burst;
    void *items[3];
    int fds[3];
    size_t count;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = ask(server, "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_ok(
            rt_queue_recv_many(kept, &items[i], 1, 0, rt_deadline_after_ms(10000), &count, NULL));
    }
    io_burst_begin(&burst);
    for (unsigned i = 0; i < 3; i++)
        reply(items[i]);
    io_burst_end(&burst);
    for (unsigned i = 0; i < 3; i++) {
        char head[13] = "";

        assert_int_equal(recv(fds[i], head, 12, MSG_WAITALL), 12);
        assert_string_equal(head, "HTTP/1.1 204");
        assert_int_equal(close(fds[i]), 0);
    }
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

static bool sleeps(struct io_loop *loop)
{
    struct pollfd ready = {.fd = loop->epoll_fd, .events = POLLIN};
    bool asleep;

    net_lock(loop);
    asleep = loop->asleep;
    net_unlock(loop);
    return asleep && poll(&ready, 1, 0) == 0;
}

/* What woke it is over: nothing is left that wakes it again and again. */
/* How often those that gather are called for `count` requests that come in one turn. */
static uint32_t calls_of_a_turn(const char *request, unsigned count) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct io_server_options options = options_for(&listener);
    struct io_server *server;
    size_t kept_count;
    char bytes[256];
    void *item;
    int fds[64];
    int holder;

    options.loops_count = 1;
    assert_in_range(count, 1, RON_ARRAY_COUNT(fds));
    assert_ok(io_server_start(&options, &server, NULL));
    for (unsigned i = 0; i < count; i++) { /* an answer: the loop has the connection */
        fds[i] = ask(server, "GET /now HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(recv(fds[i], bytes, sizeof(bytes), 0) > 0);
    }
    rt_atomic_store_u32(&held, 1);
    rt_atomic_store_u32(&gathered_calls, 0);
    holder = ask(server, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_ok(
        rt_queue_recv_many(kept, &item, 1, 0, rt_deadline_after_ms(10000), &kept_count, NULL));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(send(fds[i], request, strlen(request), 0), strlen(request));
    rt_atomic_store_u32(&held, 0);
    for (unsigned i = 0; i < count; i++) {
        assert_true(recv(fds[i], bytes, sizeof(bytes), 0) > 0);
        assert_int_equal(close(fds[i]), 0);
    }
    assert_int_equal(close(holder), 0);
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
    return rt_atomic_load_u32(&gathered_calls);
}

static void what_is_answered_here_is_gathered_for_a_whole_turn(void **state) RON_BLOCKS
{
    enum { COUNT = 3 * LOOP_TOGETHER };

    (void)state;
    assert_int_equal(calls_of_a_turn("GET /here HTTP/1.1\r\nHost: a\r\n\r\n", COUNT), 1);
    /* Others could begin: they get theirs as soon as there are enough of them. */
    assert_int_equal(calls_of_a_turn("GET /gather HTTP/1.1\r\nHost: a\r\n\r\n", COUNT),
                     COUNT / LOOP_TOGETHER);
}

static void a_loop_that_was_woken_sleeps_again(void **state) RON_BLOCKS
{
    const struct rt_deadline deadline = rt_deadline_after_ms(10000);
    struct io_server *server = start();

    (void)state;
    for (int i = 0; i < 3; i++) {
        io_loop_wake(server->loops[0]);
        while (!sleeps(server->loops[0])) {
            assert_false(rt_deadline_expired(deadline));
            (void)sched_yield();
        }
    }
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

static void a_stop_that_leaves_a_stream_may_be_repeated(void **state) RON_BLOCKS
{
    struct io_server *server = start();
    struct io_stream *stream = ask_and_leave(server, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");

    (void)state;
    assert_int_equal(io_server_stop(server, rt_deadline_after_ms(50), NULL), RON_ERR_TIMEOUT);
    assert_int_equal(io_stream_send(stream, NULL, NULL, RON_SLICE("x"), NULL), RON_ERR_CANCELED);
    assert_null(io_stream_close(stream));
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

struct late {
    struct io_server *server;
    struct io_request *request;
    struct io_stream *stream;
};

/* Answers once the connections are gone: the stop has nothing left to wait for but this. */
static enum ron_err answer_late(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct late *late = argument;

    (void)task;
    while (io_server_get_stats(late->server).open_count > 0)
        sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
    sh_sleep_until(rt_now_ns() + 20 * RT_NS_PER_MS); /* to be late, not to be in order */
    reply(late->request);
    (void)io_stream_close(late->stream);
    return RON_ERR_OK;
}

static void a_stop_waits_for_late_answers(void **state) RON_BLOCKS
{
    struct io_server *server = start();
    struct late late = {server, ask_and_leave(server, "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"),
                        ask_and_leave(server, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")};
    struct rt_task_options options = {
        .kind = "late", .name = "late", .owner = "test", .fn = answer_late, .argument = &late};
    struct rt_task *task;
    enum ron_err result;

    (void)state;
    assert_ok(rt_task_spawn(supervisor, &options, &task, NULL));
    assert_ok(io_server_stop(server, rt_deadline_after_ms(20000), NULL));
    assert_ok(rt_task_join(task, rt_deadline_after_ms(20000), &result, NULL));
}

static int status_of(struct io_client *client) RON_BLOCKS
{
    struct io_client_reply reply;
    int status;

    io_client_reply_init(&reply);
    assert_ok(io_client_call(client,
                             &(struct io_client_request){.method = HTTP_GET, .path = "/now"},
                             rt_deadline_after_ms(20000), &reply, NULL));
    status = reply.head.status;
    io_client_reply_fini(&reply);
    return status;
}

static void rates_change_while_it_runs(void **state) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    static const struct io_budget budget = {.role = "test"};
    struct io_server_options options = options_for(&listener);
    struct io_client_options dialing = {0};
    struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_client *client;
    struct io_server *server;

    (void)state;
    options.budgets = &budget;
    options.budgets_count = 1;
    assert_ok(io_server_start(&options, &server, NULL));
    dialing.url = io_server_url(server, 0);
    assert_ok(io_client_new(&dialing, &client, NULL));
    for (int i = 0; i < 20; i++)
        assert_int_equal(status_of(client), 204);
    assert_false(io_server_set_rates(server, "another", 1, 1));
    assert_int_equal(status_of(client), 204);
    assert_true(io_server_set_rates(server, "test", 1, 0));
    while (status_of(client) != 429)
        assert_false(rt_deadline_expired(deadline));
    assert_true(io_server_set_rates(server, "test", 1000000, 0));
    for (int i = 0; i < 20; i++)
        assert_int_equal(status_of(client), 204);
    assert_true(io_server_set_rates(server, "test", 0, 1)); /* writes only: these are reads */
    for (int i = 0; i < 20; i++)
        assert_int_equal(status_of(client), 204);
    client = io_client_free(client);
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

/* A span a request, with its parent, route and status; its handler's spans are below it. */
static void requests_leave_spans(void **state) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    static const struct io_client_field field = {
        "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
    struct io_server_options options = options_for(&listener);
    struct io_client_options dialing = {0};
    struct io_client_reply reply;
    struct io_client *client;
    struct io_server *server;
    struct rt_span *span;
    size_t count;

    (void)state;
    assert_ok(rt_spans_new("test", 1000, &options.spans, NULL));
    assert_ok(io_server_start(&options, &server, NULL));
    dialing.url = io_server_url(server, 0);
    assert_ok(io_client_new(&dialing, &client, NULL));
    io_client_reply_init(&reply);
    assert_ok(io_client_call(client,
                             &(struct io_client_request){.method = HTTP_GET,
                                                         .path = "/now",
                                                         .corr_id = "c-1",
                                                         .fields = &field,
                                                         .fields_count = 1},
                             rt_deadline_after_ms(20000), &reply, NULL));
    assert_ok(rt_spans_take(options.spans, &span, 1, 0, &count));
    assert_string_equal(span->name, "now");
    assert_int_equal(span->trace_id[0], 0x0a);
    assert_int_equal(span->parent_id[0], 0xb7);
    assert_false(span->failed);
    assert_string_equal(span->attributes[0].text, "test");
    assert_string_equal(span->attributes[1].text, "c-1");
    assert_int_equal(span->attributes[3].number, 204);
    (void)ron_mem_free(span);
    io_client_reply_fini(&reply);
    client = io_client_free(client);
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
    assert_null(rt_spans_free(options.spans));
}

static enum ron_err start_and_stop(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    static const struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct io_server_options options = options_for(&listener);
    struct io_server *server;
    enum ron_err err = io_server_start(&options, &server, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
    return err;
}

static void without_memory_it_does_not_start(void **state)
{
    (void)state;
    assert_true(support_fail_each_allocation(start_and_stop, NULL, 100) > 5);
}

static void addresses_are_refused_before_anything_runs(void **state) RON_BLOCKS
{
    static const struct {
        const char *address;
        enum ron_err err;
    } bad[] = {{"127.0.0.1", RON_ERR_MALFORMED},
               {"0.0.0.0:0", RON_ERR_FORBIDDEN},
               {"[::]:0", RON_ERR_FORBIDDEN},
               {"unix:/nowhere/at/all/s", RON_ERR_IO}};
    struct io_server *server = start();
    struct io_listener_options listener = {.address = io_server_url(server, 0) + 7};
    struct io_server_options options = options_for(&listener);
    struct ron_errinfo info = {0};
    struct io_server *other = NULL;

    (void)state;
    support_assert_error(io_server_start(&options, &other, &info), &info, RON_ERR_CONFLICT,
                         listener.address);
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        listener.address = bad[i].address;
        support_assert_error(io_server_start(&options, &other, &info), &info, bad[i].err,
                             bad[i].address);
    }
    assert_null(other);
    assert_ok(io_server_stop(server, rt_deadline_after_ms(5000), NULL));
}

static int set_up(void **state)
{
    static const struct rt_supervisor_options supervision = {
        .name = "test", .owner = "test", .tasks_max = 16};
    static const struct rt_queue_options queue = {
        .name = "kept", .owner = "test", .capacity = 16, .weight_max = 16, .policy = "reject"};

    (void)state;
    assert_ok(rt_supervisor_new(&supervision, &supervisor, NULL));
    assert_ok(rt_queue_new(&queue, &kept, NULL));
    assert_ok(io_routes_new(&routes, NULL));
    assert_ok(io_routes_add(routes, rows, RON_ARRAY_COUNT(rows), NULL, NULL));
    return 0;
}

static int tear_down(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(5000), NULL));
    (void)rt_supervisor_free(supervisor);
    rt_queue_close(kept);
    (void)rt_queue_free(kept);
    (void)io_routes_free(routes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_that_leaves_a_request_may_be_repeated),
        cmocka_unit_test(replies_of_a_burst_all_go_out),
        cmocka_unit_test(what_is_answered_here_is_gathered_for_a_whole_turn),
        cmocka_unit_test(a_loop_that_was_woken_sleeps_again),
        cmocka_unit_test(a_stop_that_leaves_a_stream_may_be_repeated),
        cmocka_unit_test(a_stop_waits_for_late_answers),
        cmocka_unit_test(rates_change_while_it_runs),
        cmocka_unit_test(requests_leave_spans),
        cmocka_unit_test(without_memory_it_does_not_start),
        cmocka_unit_test(addresses_are_refused_before_anything_runs),
    };

    rt_init();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
