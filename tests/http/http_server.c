/*
 * http_server.c - a server for tests: every way a handler may answer.
 *
 *     http_server [--tls CERT KEY [CA]] [--unix PATH] [--loops N] [--conns N] [--bytes N]
 *                 [--head-ms N] [--body-ms N] [--idle-ms N] [--rate N] [--inflight N] [--fail N]
 *
 * Prints its addresses, one a line, then serves until standard input ends; prints its counters.
 * --fail N: once it serves, about one allocation in N fails.
 *
 *     GET  /healthz   200 at once                  GET  /peer      who is asking
 *     POST /echo      the body (JSON, 1,024 bytes) POST /later     the body, by another thread
 *     GET  /never     no answer until the end      GET  /events    three events, then the end
 *     POST /upload    the length (1 MiB)           GET  /secret    needs `Bearer good`
 *     GET  /big       256 KiB                      GET  /feed      events of another thread
 *     GET  /hold      one event, open to the end   GET  /pieces    4,000 of 3,000 bytes, numbered
 *     GET  /cut       a piece, and no end
 *
 * and over OAP/1, app_proto 7, on the first address:
 *
 *     1 echo     2 later     3 never     4 secret (capability `good`)     5 upload (8 MiB)
 *     6 short (16 bytes)     7 what the frame said     8 hold, until 9 release: the last first
 *     10 call: any of the routes above
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "io/tls.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

/* A busy machine may take longer than the usual seconds; who tests a bound sets it. */
enum { PATIENCE_MS = 60000 };

static struct rt_queue *later;
static struct rt_queue *never;
static struct rt_queue *held;
static struct rt_queue *feeds;
static struct rt_queue *kept;
static struct rt_queue *bodies, *cuts;
static uint8_t big_body[256 << 10];

static void reply_text(struct io_request *request, struct ron_slice body)
{
    io_reply(request, &(struct io_reply){.status = 200, .media = "application/json", .body = body});
}

static void healthz(void *context, struct io_request *request)
{
    (void)context;
    reply_text(request, RON_SLICE("{\"ok\":true}"));
}

static void echo(void *context, struct io_request *request)
{
    (void)context;
    reply_text(request, request->body);
}

static void upload(void *context, struct io_request *request)
{
    char text[RON_DECIMAL_U64_SIZE];

    (void)context;
    (void)ron_decimal_print_u64(request->body.size, text);
    reply_text(request, ron_slice_text(text));
}

static void peer(void *context, struct io_request *request)
{
    char text[256];

    (void)context;
    (void)snprintf(text, sizeof(text),
                   "{\"local\":%d,\"uid\":%d,\"tls\":%d,\"certificate\":%d,\"name\":\"%s\"}",
                   request->peer->local_socket, (int)request->peer->uid, request->peer->tls,
                   request->peer->client_certificate, request->peer->certificate_name);
    reply_text(request, ron_slice_text(text));
}

static void hand_over(void *context, struct io_request *request)
{
    io_request_send(request, context == NULL ? later : never, 1);
}

static void events(void *context, struct io_request *request)
{
    struct ron_slice last = io_request_last_event_id(request);
    uint64_t first = 1;
    struct io_stream *stream;

    (void)context;
    if (last.size > 0 && ron_decimal_parse_u64(last, &first, NULL) == RON_ERR_OK)
        first++;
    if (io_stream_open(request, 4096, &stream, NULL) != RON_ERR_OK)
        return;
    for (uint64_t i = first; i < first + 3; i++) {
        char id[RON_DECIMAL_U64_SIZE];

        (void)ron_decimal_print_u64(i, id);
        if (io_stream_send(stream, id, "tick", RON_SLICE("a\nb"), NULL) != RON_ERR_OK)
            break;
    }
    (void)io_stream_close(stream);
}

static void big(void *context, struct io_request *request)
{
    (void)context;
    reply_text(request, ron_slice_of(big_body, sizeof(big_body)));
}

/* Open a stream and give it to another thread, or to the end of the program. */
static void give_stream(void *context, struct io_request *request)
{
    struct rt_queue *queue = context == NULL ? kept : feeds;
    struct io_stream *stream;

    if (io_stream_open(request, 4096, &stream, NULL) != RON_ERR_OK)
        return;
    if (io_stream_send(stream, "0", NULL, RON_SLICE("a\rb\r\nc\n\rd"), NULL) != RON_ERR_OK ||
        rt_queue_try_send(queue, (struct rt_queue_item){stream, 1}, NULL) != RON_ERR_OK)
        (void)io_stream_close(stream);
}

/* A body in pieces, by another thread. */
static void give_body(void *context, struct io_request *request)
{
    struct io_stream *stream;

    if (io_body_open(request, "text/plain", 4096, &stream, NULL) == RON_ERR_OK &&
        rt_queue_try_send(context == &cuts ? cuts : bodies, (struct rt_queue_item){stream, 1},
                          NULL) != RON_ERR_OK)
        (void)io_stream_close(stream);
}

/* Over OAP/1. */

static void describe(void *context, struct io_request *request)
{
    const struct oap_head *frame = request->frame;
    char text[256];

    (void)context;
    (void)snprintf(text, sizeof(text),
                   "{\"app_proto\":%u,\"code\":%u,\"flags\":%u,\"tenant_low\":%llu,"
                   "\"tenant_high\":%llu,\"corr_id\":\"%s\",\"capability\":%zu,\"head\":%d}",
                   frame->app_proto, frame->code, frame->flags, (unsigned long long)frame->tenant.v,
                   (unsigned long long)(frame->tenant.v >> 64), request->corr_id,
                   request->capability.size, request->head != NULL);
    reply_text(request, ron_slice_text(text));
}

static void hold(void *context, struct io_request *request)
{
    struct ron_errinfo info = {0};
    enum ron_err err = rt_queue_try_send(held, (struct rt_queue_item){request, 1}, &info);

    (void)context;
    if (err != RON_ERR_OK)
        io_reply_error(request, err, &info, (struct ron_slice){0});
}

static void release(void *context, struct io_request *request)
{
    void *items[4096];
    size_t count = rt_queue_try_recv_many(held, items, RON_ARRAY_COUNT(items));

    (void)context;
    while (count > 0) {
        count--;
        reply_text(items[count], ((struct io_request *)items[count])->body);
    }
    reply_text(request, (struct ron_slice){0});
}

#define OP(code_, name_, handler_, ...)                                     \
    {                                                                       \
        7, code_,                                                           \
        {                                                                   \
            .role = "test", .name = name_, .handler = handler_, __VA_ARGS__ \
        }                                                                   \
    }
static const struct io_oap_op ops[] = {
    OP(1, "oap_echo", echo, .body_max = 8 << 20),
    OP(2, "oap_later", hand_over, .body_max = 1 << 20, .flags = IO_ROUTE_WRITE),
    OP(4, "oap_secret", echo, .body_max = 1024, .scope = "test.read"),
    OP(5, "oap_upload", upload, .body_max = 8 << 20),
    OP(6, "oap_short", echo, .body_max = 16),
    OP(7, "oap_describe", describe, .body_max = 1024),
    OP(8, "oap_hold", hold, .body_max = 1 << 20, .deadline_ms = 60000),
    OP(9, "oap_release", release, .body_max = 0),
    OP(10, "oap_call", NULL, .flags = IO_ROUTE_CALL),
};
static const struct io_oap_op ops_never[] = {
    OP(3, "oap_never", hand_over, .body_max = 1024, .deadline_ms = 300),
};

#define JSON_BODY .media = "application/json"
#define REPLIES   .role = "test", .summary = "", .replies = "application/json"
static const struct io_route routes_later[] = {
    {HTTP_GET, "/healthz", .name = "healthz", REPLIES, .flags = IO_ROUTE_BOTH, .handler = healthz},
    {HTTP_GET, "/peer", .name = "peer", REPLIES, .handler = peer},
    {HTTP_GET, "/secret", .name = "secret", REPLIES, .scope = "test.read", .handler = healthz},
    {HTTP_GET, "/events", .name = "events", REPLIES, .handler = events},
    {HTTP_GET, "/big", .name = "big", REPLIES, .handler = big},
    {HTTP_GET, "/hold", .name = "hold", REPLIES, .handler = give_stream},
    {HTTP_POST, "/echo", .name = "echo", REPLIES, .body_max = 1024, JSON_BODY, .handler = echo},
    {HTTP_POST, "/later", .name = "later", REPLIES, .body_max = 65536, JSON_BODY,
     .flags = IO_ROUTE_WRITE, .handler = hand_over},
    {HTTP_POST, "/upload", .name = "upload", REPLIES, .body_max = 1 << 20, JSON_BODY,
     .handler = upload},
};
static const struct io_route routes_feed[] = {
    {HTTP_GET, "/feed", .name = "feed", REPLIES, .handler = give_stream},
};
static const struct io_route routes_bodies[] = {
    {HTTP_GET, "/pieces", .name = "pieces", REPLIES, .handler = give_body},
};
static const struct io_route routes_cuts[] = {
    {HTTP_GET, "/cut", .name = "cut", REPLIES, .handler = give_body},
};
static const struct io_route routes_never[] = {
    {HTTP_GET, "/never", .name = "never", REPLIES, .deadline_ms = 300, .handler = hand_over},
};

static enum ron_err answer_later(struct rt_task *task, void *argument) RON_BLOCKS
{
    void *items[64];

    (void)argument;
    while (!rt_task_canceled(task)) {
        size_t count = 0;
        enum ron_err err = rt_queue_recv_many(later, items, RON_ARRAY_COUNT(items), 0,
                                              RT_DEADLINE_NEVER, &count, NULL);

        if (err != RON_ERR_OK)
            break;
        for (size_t i = 0; i < count; i++)
            reply_text(items[i], ((struct io_request *)items[i])->body);
    }
    return RON_ERR_CANCELED;
}

static enum ron_err feed(struct rt_task *task, void *argument) RON_BLOCKS
{
    void *stream;

    (void)argument;
    while (!rt_task_canceled(task)) {
        size_t count = 0;

        if (rt_queue_recv_many(feeds, &stream, 1, 0, RT_DEADLINE_NEVER, &count, NULL) != RON_ERR_OK)
            break;
        for (int i = 0; i < 4; i++)
            if (io_stream_send(stream, NULL, NULL, RON_SLICE("x"), NULL) != RON_ERR_OK)
                break;
        (void)io_stream_close(stream);
    }
    return RON_ERR_CANCELED;
}

static enum ron_err send_pieces(struct rt_task *task, void *argument) RON_BLOCKS
{
    enum { PIECES = 4000, PIECE_SIZE = 3000, WAIT_MS = 4000 };
    struct rt_queue *queue = argument;
    void *stream;

    while (!rt_task_canceled(task)) {
        char piece[PIECE_SIZE];
        enum ron_err err = RON_ERR_OK;

        if (rt_queue_recv(queue, RT_DEADLINE_NEVER, &stream, NULL) != RON_ERR_OK)
            break;
        memset(piece, '.', sizeof(piece));
        for (unsigned i = 0; i < (queue == cuts ? 1 : PIECES) && err == RON_ERR_OK; i++) {
            (void)snprintf(piece, sizeof(piece), "%08u", i);
            err = io_body_send(stream, ron_slice_of(piece, sizeof(piece)),
                               rt_deadline_after_ms(WAIT_MS), NULL);
        }
        if (queue == cuts || err != RON_ERR_OK)
            (void)io_stream_close(stream);
        else
            (void)io_body_end(stream);
    }
    return RON_ERR_CANCELED;
}

static void close_bodies(void *argument)
{
    rt_queue_close(argument);
}

static void close_feeds(void *argument)
{
    (void)argument;
    rt_queue_close(feeds);
}

static void close_later(void *argument)
{
    (void)argument;
    rt_queue_close(later);
}

static enum ron_err authorize(void *context, const struct io_request *request, void *principal,
                              struct ron_errinfo *reterr)
{
    struct ron_slice given = request->capability;

    (void)context;
    if (request->head != NULL) {
        const struct http_field *field = http_head_find(request->head, "authorization");

        if (field != NULL && field->value.size > 7 && memcmp(field->value.data, "Bearer ", 7) == 0)
            given = ron_slice_of(field->value.data + 7, field->value.size - 7);
    }
    if (!ron_slice_equal(given, RON_SLICE("good")))
        return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "no valid capability");
    memcpy(principal, "good", 5);
    return RON_ERR_OK;
}

static uint32_t number(const char *text)
{
    uint64_t value;

    if (text == NULL || ron_decimal_parse_u64(ron_slice_text(text), &value, NULL) != RON_ERR_OK)
        exit(2);
    return (uint32_t)value;
}

static struct rt_atomic_u32 allocations_count, serving;
static uint32_t fail_each;

/* Not each N-th itself: requests of one kind allocate in step. */
static bool allocation_fails(size_t size, void *context)
{
    uint32_t number = rt_atomic_add_u32(&allocations_count, 1);

    (void)size;
    (void)context;
    return rt_atomic_load_u32(&serving) != 0 && number * 2654435761u / 7 % fail_each == 0;
}

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    fprintf(stderr, "http_server: %s\n", info->message);
    exit(1);
}

static void print_stats(const struct io_server *server)
{
    struct io_server_stats stats = io_server_get_stats(server);

    printf(
        "accepted %llu open %llu requests %llu replies %llu held %llu not_http %llu no_line %llu "
        "slow %llu idle %llu reset %llu\n",
        (unsigned long long)stats.accepted_count, (unsigned long long)stats.open_count,
        (unsigned long long)stats.requests_count, (unsigned long long)stats.replies_count,
        (unsigned long long)stats.bytes_held, (unsigned long long)stats.closed_not_http,
        (unsigned long long)stats.closed_no_line, (unsigned long long)stats.closed_slow,
        (unsigned long long)stats.closed_idle, (unsigned long long)stats.closed_reset);
}

static void read_options(char **argv, struct io_server_options *options, struct io_tls_options *tls,
                         const char **ret_unix, struct io_budget *budget)
{
    options->head_ms = options->body_ms = options->request_ms = PATIENCE_MS;
    for (char **at = argv + 1; *at != NULL; at++) {
        if (strcmp(*at, "--tls") == 0) {
            tls->certificate = *++at;
            tls->key = *++at;
            if (at[1] != NULL && at[1][0] != '-')
                tls->client_ca = *++at;
        } else if (strcmp(*at, "--unix") == 0)
            *ret_unix = *++at;
        else if (strcmp(*at, "--loops") == 0)
            options->loops_count = number(*++at);
        else if (strcmp(*at, "--conns") == 0)
            options->connections_max = number(*++at);
        else if (strcmp(*at, "--bytes") == 0)
            options->bytes_max = number(*++at);
        else if (strcmp(*at, "--head-ms") == 0)
            options->head_ms = number(*++at);
        else if (strcmp(*at, "--body-ms") == 0)
            options->body_ms = number(*++at);
        else if (strcmp(*at, "--idle-ms") == 0)
            options->idle_ms = number(*++at);
        else if (strcmp(*at, "--rate") == 0)
            budget->writes_per_s = number(*++at);
        else if (strcmp(*at, "--inflight") == 0)
            budget->reads_inflight = number(*++at);
        else if (strcmp(*at, "--fail") == 0)
            fail_each = number(*++at);
        else
            exit(2);
    }
}

static struct io_tls *reloaded;

/* Commands on standard input: r reload the certificate, s print the counters, d drain. */
static void obey(struct io_server *server) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    int command;

    while ((command = getchar()) != EOF) {
        if (command == 'r')
            printf("reload %s\n",
                   io_tls_reload(reloaded, &info) == RON_ERR_OK ? "ok" : info.message);
        else if (command == 's')
            print_stats(server);
        else if (command == 'd') {
            io_server_drain(server);
            puts("draining");
        } else
            continue;
        fflush(stdout);
    }
}

/* The end: what was kept is answered and closed; by then nobody waits for it. */
static void let_go(void)
{
    void *item;

    rt_atomic_store_u32(&serving, 0);
    while (rt_queue_try_recv_many(kept, &item, 1) == 1)
        (void)io_stream_close(item);
    while (rt_queue_try_recv_many(never, &item, 1) == 1 ||
           rt_queue_try_recv_many(held, &item, 1) == 1)
        reply_text(item, RON_SLICE("late"));
}

static struct rt_queue *make_queue(const char *name)
{
    struct rt_queue_options options = {
        .name = name, .owner = "test", .capacity = 4096, .weight_max = 4096, .policy = "reject"};
    struct ron_errinfo info = {0};
    struct rt_queue *queue;

    must(rt_queue_new(&options, &queue, &info), &info);
    return queue;
}

static void make_queues(void)
{
    later = make_queue("later");
    never = make_queue("never");
    feeds = make_queue("feeds");
    kept = make_queue("kept");
    held = make_queue("held");
    bodies = make_queue("bodies");
    cuts = make_queue("cuts");
}

static struct io_routes *make_routes(void)
{
    struct ron_errinfo info = {0};
    struct io_routes *routes;

    must(io_routes_new(&routes, &info), &info);
    must(io_routes_add(routes, routes_later, RON_ARRAY_COUNT(routes_later), NULL, &info), &info);
    must(io_routes_add(routes, routes_never, RON_ARRAY_COUNT(routes_never), &never, &info), &info);
    must(io_routes_add(routes, routes_feed, RON_ARRAY_COUNT(routes_feed), &feeds, &info), &info);
    must(io_routes_add(routes, routes_bodies, RON_ARRAY_COUNT(routes_bodies), &bodies, &info),
         &info);
    must(io_routes_add(routes, routes_cuts, RON_ARRAY_COUNT(routes_cuts), &cuts, &info), &info);
    return routes;
}

static struct io_oap_service *make_service(void)
{
    struct io_oap_service *service;
    struct ron_errinfo info = {0};

    must(io_oap_service_new(&service, &info), &info);
    must(io_oap_service_add(service, ops, RON_ARRAY_COUNT(ops), NULL, &info), &info);
    must(io_oap_service_add(service, ops_never, RON_ARRAY_COUNT(ops_never), &never, &info), &info);
    return service;
}

static void spawn_tasks(struct rt_supervisor *supervisor)
{
    const struct rt_task_options tasks[] = {
        {.kind = "later",
         .name = "later",
         .owner = "test",
         .fn = answer_later,
         .wake = close_later},
        {.kind = "feed", .name = "feed", .owner = "test", .fn = feed, .wake = close_feeds},
        {.kind = "body",
         .name = "body",
         .owner = "test",
         .fn = send_pieces,
         .wake = close_bodies,
         .argument = bodies},
        {.kind = "body",
         .name = "cut",
         .owner = "test",
         .fn = send_pieces,
         .wake = close_bodies,
         .argument = cuts},
    };
    struct ron_errinfo info = {0};
    struct rt_task *task;

    for (size_t i = 0; i < RON_ARRAY_COUNT(tasks); i++)
        must(rt_task_spawn(supervisor, &tasks[i], &task, &info), &info);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct io_listener_options listeners[3] = {{.address = "127.0.0.1:0"},
                                               {.address = "127.0.0.1:0", .admin = true}};
    struct io_budget budget = {.role = "test"};
    struct io_tls_options tls_options = {0};
    struct io_server_options options = {.listeners = listeners,
                                        .listeners_count = 2,
                                        .budgets = &budget,
                                        .budgets_count = 1,
                                        .authorize = authorize};
    struct rt_supervisor_options supervision = {.name = "test", .owner = "test", .tasks_max = 69};
    const char *local = NULL;
    struct ron_errinfo info = {0};
    struct rt_supervisor *supervisor;
    struct io_routes *routes;
    struct io_server *server;
    char unix_address[128];

    (void)argc;
    signal(SIGPIPE, SIG_IGN);
    rt_init();
    read_options(argv, &options, &tls_options, &local, &budget);
    if (tls_options.certificate != NULL) {
        must(io_tls_new(&tls_options, &reloaded, &info), &info);
        listeners[0].tls = reloaded;
    }
    if (local != NULL) {
        (void)snprintf(unix_address, sizeof(unix_address), "unix:%s", local);
        listeners[options.listeners_count++].address = unix_address;
    }
    must(rt_supervisor_new(&supervision, &supervisor, &info), &info);
    make_queues();
    spawn_tasks(supervisor);
    routes = make_routes();
    options.routes = routes;
    options.oap = make_service();
    options.supervisor = supervisor;
    if (fail_each > 0)
        ron_mem_set_fail_hook(allocation_fails, NULL);
    must(io_server_start(&options, &server, &info), &info);
    rt_atomic_store_u32(&serving, 1);
    for (size_t i = 0; i < options.listeners_count; i++)
        puts(io_server_url(server, i));
    fflush(stdout);

    obey(server);
    let_go();
    must(io_server_stop(server, rt_deadline_after_ms(PATIENCE_MS), &info), &info);
    rt_queue_close(later);
    rt_queue_close(feeds);
    rt_queue_close(bodies);
    rt_queue_close(cuts);
    must(rt_supervisor_stop(supervisor, rt_deadline_after_ms(PATIENCE_MS), &info), &info);
    (void)rt_supervisor_free(supervisor);
    (void)rt_queue_free(later);
    (void)rt_queue_free(never);
    (void)rt_queue_free(feeds);
    (void)rt_queue_free(kept);
    (void)rt_queue_free(held);
    (void)rt_queue_free(bodies);
    (void)rt_queue_free(cuts);
    (void)io_oap_service_free(options.oap);
    (void)io_routes_free(routes);
    (void)io_tls_free(reloaded);
    puts("stopped");
    return 0;
}
