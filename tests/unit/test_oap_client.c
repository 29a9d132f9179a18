/*
 * test_oap_client.c - the client of OAP/1 against the real server, and against peers that
 * misbehave.
 *
 * Method: a server in this process over TCP and a Unix socket whose operations echo, refuse, ask
 * for a capability or keep the request; and a task that plays a peer on a plain socket, step by
 * step, for what the server never does.
 * tidy: long file because the real and the scripted peers are asked by the same few helpers
 */
#include "support.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/decimal.h"
#include "io/inflate.h"
#include "io/oap_client.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"
#include "rt/task.h"

enum {
    PROTO = 7,
    ECHO = 1,
    KEEP = 2,
    REFUSE = 3,
    SECURED = 4,
    PATIENCE_MS = 20000,
    SILENT_MS = 30
};

static struct rt_supervisor *supervisor;
static struct rt_queue *kept; /* requests of KEEP */
static struct io_oap_service *service;
static struct io_routes *routes;
static struct io_server *server;
static char unix_path[64];
static char unix_url[80];

static struct rt_deadline patience(void)
{
    return rt_deadline_after_ms(PATIENCE_MS);
}

/* ---- The server ---- */

static void reply_with(struct io_request *request, struct ron_slice body)
{
    io_reply(request, &(struct io_reply){.status = OAP_STATUS_OK, .body = body});
}

static void echo(void *context, struct io_request *request)
{
    (void)context;
    reply_with(request, request->body);
}

static void keep(void *context, struct io_request *request)
{
    (void)context;
    assert_ok(rt_queue_try_send(kept, (struct rt_queue_item){request, 1}, NULL));
}

static void refuse(void *context, struct io_request *request)
{
    struct ron_errinfo info;

    (void)context;
    (void)ron_fail(&info, RON_ERR_INSUFFICIENT_FUNDS, "entry 3: \"a\" has 5, not 7");
    io_reply_error(request, info.err, &info, RON_SLICE("{\"index\":3,\"message\":\"no\"}"));
}

static enum ron_err authorize(void *context, const struct io_request *request, void *principal,
                              struct ron_errinfo *reterr)
{
    (void)context;
    (void)principal;
    if (ron_slice_equal(request->capability, RON_SLICE("the-token")))
        return RON_ERR_OK;
    return ron_fail(reterr, RON_ERR_UNAUTHORIZED, "not this capability");
}

#define OP(number, text, ...)                                                             \
    {                                                                                     \
        PROTO, number,                                                                    \
        {                                                                                 \
            .role = "test", .name = text, .summary = "", .body_max = 8 << 20, __VA_ARGS__ \
        }                                                                                 \
    }
static const struct io_oap_op ops[] = {
    OP(ECHO, "echo", .handler = echo),
    OP(KEEP, "keep", .handler = keep),
    OP(REFUSE, "refuse", .handler = refuse),
    OP(SECURED, "secured", .handler = echo, .scope = "ledger.read"),
};

static struct io_request *next_kept(void) RON_BLOCKS
{
    void *request;

    assert_ok(rt_queue_recv(kept, patience(), &request, NULL));
    return request;
}

static int make_supervisor(void **state)
{
    static const struct rt_supervisor_options supervision = {
        .name = "test", .owner = "test", .tasks_max = 16};

    (void)state;
    rt_init();
    assert_ok(rt_supervisor_new(&supervision, &supervisor, NULL));
    return 0;
}

static int end_supervisor(void **state) RON_BLOCKS
{
    (void)state;
    assert_ok(rt_supervisor_stop(supervisor, patience(), NULL));
    supervisor = rt_supervisor_free(supervisor);
    return 0;
}

static int set_up(void **state) RON_BLOCKS
{
    static const struct rt_queue_options queue = {
        .name = "kept", .owner = "test", .policy = "", .capacity = 128};
    static char address[80];
    static struct io_listener_options listeners[] = {{.address = "127.0.0.1:0"},
                                                     {.address = address}};
    struct io_server_options options = {.listeners = listeners,
                                        .listeners_count = 2,
                                        .request_ms = PATIENCE_MS * 2,
                                        .authorize = authorize};

    (void)make_supervisor(state);
    (void)snprintf(unix_path, sizeof(unix_path), "/tmp/ron-oap-%d.sock", (int)getpid());
    (void)snprintf(address, sizeof(address), "unix:%s", unix_path);
    (void)snprintf(unix_url, sizeof(unix_url), "unix:%s", unix_path);
    assert_ok(rt_queue_new(&queue, &kept, NULL));
    assert_ok(io_routes_new(&routes, NULL));
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
    assert_ok(io_server_stop(server, patience(), NULL));
    (void)end_supervisor(state);
    kept = rt_queue_free(kept);
    service = io_oap_service_free(service);
    routes = io_routes_free(routes);
    (void)unlink(unix_path);
    return 0;
}

/* ---- Calls ---- */

static struct oap_client *client_to(const char *url, struct oap_client_options options)
{
    struct oap_client *client;

    options.url = url;
    options.supervisor = supervisor;
    assert_ok(oap_client_new(&options, &client, NULL));
    return client;
}

static struct oap_client *connect_server(void)
{
    return client_to(io_server_url(server, 0), (struct oap_client_options){0});
}

static const struct oap_client_request hello_request = {
    .app_proto = PROTO, .code = ECHO, .body = {(const uint8_t *)"hello", 5}};

static void assert_echoes(struct oap_client *client) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    ron_buf_init(&reply, 1 << 20);
    assert_ok(oap_client_call(client, &hello_request, patience(), &reply, &info));
    assert_true(ron_slice_equal(ron_buf_slice(&reply), RON_SLICE("hello")));
    ron_buf_fini(&reply);
}

static void calls_bring_back_their_replies(void **state) RON_BLOCKS
{
    const char *const urls[] = {io_server_url(server, 0), unix_url};
    static uint8_t large[RON_FRAME_SIZE_MAX - OAP_HEAD_SIZE + 1];
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (uint8_t)(i * 7 >> 3);
    ron_buf_init(&reply, 1 << 20);
    for (size_t i = 0; i < RON_ARRAY_COUNT(urls); i++) {
        struct oap_client *client = client_to(urls[i], (struct oap_client_options){0});
        struct oap_client_request request = {.app_proto = PROTO, .code = ECHO};

        assert_echoes(client);
        assert_ok(oap_client_call(client, &request, patience(), &reply, &info));
        assert_int_equal(reply.size, 0);
        request.body = ron_slice_of(large, sizeof(large) - 1);
        assert_ok(oap_client_call(client, &request, patience(), &reply, &info));
        assert_true(ron_slice_equal(ron_buf_slice(&reply), request.body));
        request.body.size++;
        support_assert_error(oap_client_call(client, &request, patience(), &reply, &info), &info,
                             RON_ERR_TOO_LARGE, "does not fit");
        assert_int_equal(oap_client_get_stats(client).connects_count, 1);
        assert_int_equal(oap_client_get_stats(client).replies_count, 3);
        assert_null(oap_client_free(client));
    }
    ron_buf_fini(&reply);
}

static void envelopes_come_back_as_code_and_message(void **state) RON_BLOCKS
{
    struct oap_client *client = connect_server();
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    support_assert_error(
        oap_client_call(client, &(struct oap_client_request){.app_proto = PROTO, .code = REFUSE},
                        patience(), &reply, &info),
        &info, RON_ERR_INSUFFICIENT_FUNDS, "entry 3: \"a\" has 5, not 7");
    assert_int_equal(reply.size, 0);
    support_assert_error(
        oap_client_call(client, &(struct oap_client_request){.app_proto = PROTO, .code = 99},
                        patience(), &reply, &info),
        &info, RON_ERR_NOT_FOUND, "code 99");
    assert_echoes(client); /* the connection goes on */
    assert_int_equal(oap_client_get_stats(client).connects_count, 1);
    ron_buf_fini(&reply);
    assert_null(oap_client_free(client));
}

static void the_capability_goes_with_start(void **state) RON_BLOCKS
{
    const struct oap_client_request request = {
        .app_proto = PROTO, .code = SECURED, .body = RON_SLICE("x")};
    static const char *const tokens[] = {NULL, "another", "the-token"};
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    for (size_t i = 0; i < RON_ARRAY_COUNT(tokens); i++) {
        struct ron_secret token = {0};
        struct oap_client *client;
        enum ron_err err;

        if (tokens[i] != NULL)
            assert_ok(ron_secret_init(&token, ron_slice_text(tokens[i]), NULL));
        client = client_to(io_server_url(server, 0),
                           (struct oap_client_options){.token = tokens[i] == NULL ? NULL : &token});
        for (int again = 0; again < 3; again++) { /* also with those after it */
            err = oap_client_call(client, &request, patience(), &reply, &info);
            assert_int_equal(err, i == 2 ? RON_ERR_OK : RON_ERR_UNAUTHORIZED);
        }
        assert_null(oap_client_free(client));
        ron_secret_fini(&token);
    }
    ron_buf_fini(&reply);
}

/* ---- Many in flight ---- */

struct tally {
    struct rt_atomic_u32 done_count;
    unsigned order[OAP_INFLIGHT_MAX];
    enum ron_err errs[OAP_INFLIGHT_MAX];
    bool sent[OAP_INFLIGHT_MAX];
};
struct ticket {
    struct tally *tally;
    uint8_t number;
};

static void count_done(void *context, const struct oap_client_result *result)
{
    const struct ticket *ticket = context;
    struct tally *tally = ticket->tally;
    uint32_t place = rt_atomic_load_u32(&tally->done_count);

    tally->order[place] = ticket->number;
    tally->errs[ticket->number] = result->err;
    tally->sent[ticket->number] = result->sent;
    if (result->err == RON_ERR_OK && result->body.size == 1 &&
        result->body.data[0] != ticket->number)
        tally->errs[ticket->number] = RON_ERR_INTERNAL; /* another one's reply */
    rt_atomic_store_u32(&tally->done_count, place + 1);
}

static void wait_for_count(const struct rt_atomic_u32 *count, uint32_t wanted)
{
    struct rt_deadline deadline = patience();

    while (rt_atomic_load_u32(count) < wanted) {
        assert_false(rt_deadline_expired(deadline));
        sh_yield();
    }
}

static void replies_find_their_requests_in_any_order(void **state) RON_BLOCKS
{
    struct oap_client *client = connect_server();
    struct io_request *requests[OAP_INFLIGHT_MAX];
    struct ticket tickets[OAP_INFLIGHT_MAX];
    struct tally tally = {0};
    struct ron_errinfo info = {0};

    (void)state;
    for (unsigned i = 0; i < OAP_INFLIGHT_MAX; i++) {
        struct oap_client_request request = {.app_proto = PROTO, .code = KEEP};

        tickets[i] = (struct ticket){&tally, (uint8_t)i};
        request.body = ron_slice_of(&tickets[i].number, 1);
        assert_ok(oap_client_submit(client, &request, patience(), count_done, &tickets[i], &info));
    }
    for (unsigned i = 0; i < OAP_INFLIGHT_MAX; i++)
        requests[i] = next_kept();
    /* The next one has to wait, here in vain. */
    support_assert_error(oap_client_submit(client, &hello_request, rt_deadline_after_ms(20),
                                           count_done, &tickets[0], &info),
                         &info, RON_ERR_TIMEOUT, "64 requests are in flight");
    assert_int_equal(rt_atomic_load_u32(&tally.done_count), 0);
    for (unsigned i = OAP_INFLIGHT_MAX; i-- > 0;)
        reply_with(requests[i], requests[i]->body);
    wait_for_count(&tally.done_count, OAP_INFLIGHT_MAX);
    for (unsigned i = 0; i < OAP_INFLIGHT_MAX; i++) {
        assert_int_equal(tally.order[i], OAP_INFLIGHT_MAX - 1 - i);
        assert_ok(tally.errs[i]);
    }
    assert_int_equal(oap_client_get_stats(client).inflight_count, 0);
    assert_null(oap_client_free(client));
}

struct chain {
    struct oap_client *client;
    struct rt_atomic_u32 *left;
    struct rt_atomic_u32 *done_count;
    struct rt_atomic_u32 *bad_count;
};

static void next_link(void *context, const struct oap_client_result *result) RON_BLOCKS
{
    struct chain *chain = context;

    if (result->err != RON_ERR_OK || !ron_slice_equal(result->body, RON_SLICE("hello")))
        rt_atomic_add_u32(chain->bad_count, 1);
    if (rt_atomic_load_u32(chain->left) > 0) {
        rt_atomic_sub_u32(chain->left, 1);
        if (oap_client_submit(chain->client, &hello_request, patience(), next_link, chain, NULL) !=
            RON_ERR_OK)
            rt_atomic_add_u32(chain->bad_count, 1);
    }
    rt_atomic_add_u32(chain->done_count, 1);
}

static void a_completion_may_submit_the_next(void **state) RON_BLOCKS
{
    struct rt_atomic_u32 left = {5000}, done_count = {0}, bad_count = {0};
    struct chain chain = {connect_server(), &left, &done_count, &bad_count};

    (void)state;
    for (int i = 0; i < OAP_INFLIGHT_MAX; i++)
        assert_ok(
            oap_client_submit(chain.client, &hello_request, patience(), next_link, &chain, NULL));
    wait_for_count(&done_count, 5000 + OAP_INFLIGHT_MAX);
    assert_int_equal(rt_atomic_load_u32(&bad_count), 0);
    assert_int_equal(oap_client_get_stats(chain.client).connects_count, 1);
    assert_null(oap_client_free(chain.client));
}

static void count_large(void *context, const struct oap_client_result *result)
{
    const struct ticket *ticket = context;
    bool good = result->err == RON_ERR_OK && result->body.size == 200000 &&
                result->body.data[0] == ticket->number &&
                result->body.data[199999] == ticket->number;

    ticket->tally->errs[ticket->number] = good ? RON_ERR_OK : RON_ERR_INTERNAL;
    rt_atomic_add_u32(&ticket->tally->done_count, 1);
}

/* More than all buffers hold: neither side may wait for the other to read first. */
static void both_directions_flow_at_once(void **state) RON_BLOCKS
{
    struct oap_client *client = connect_server();
    struct ticket tickets[OAP_INFLIGHT_MAX];
    struct tally tally = {0};
    static uint8_t bytes[200000];

    (void)state;
    for (unsigned i = 0; i < OAP_INFLIGHT_MAX; i++) {
        struct oap_client_request request = {
            .app_proto = PROTO, .code = ECHO, .body = {bytes, sizeof(bytes)}};

        tickets[i] = (struct ticket){&tally, (uint8_t)i};
        memset(bytes, (int)i, sizeof(bytes)); /* it was copied */
        assert_ok(oap_client_submit(client, &request, patience(), count_large, &tickets[i], NULL));
    }
    wait_for_count(&tally.done_count, OAP_INFLIGHT_MAX);
    for (unsigned i = 0; i < OAP_INFLIGHT_MAX; i++)
        assert_ok(tally.errs[i]);
    assert_int_equal(oap_client_get_stats(client).connects_count, 1);
    assert_null(oap_client_free(client));
}

static void a_late_reply_is_nobodys(void **state) RON_BLOCKS
{
    struct oap_client *client = connect_server();
    const struct oap_client_request request = {
        .app_proto = PROTO, .code = KEEP, .body = RON_SLICE("old")};
    struct tally tally = {0};
    struct ticket ticket = {&tally, 0};
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    assert_echoes(client); /* it is connected: what follows is sent long before its deadline */
    support_assert_error(
        oap_client_call(client, &request, rt_deadline_after_ms(200), &reply, &info), &info,
        RON_ERR_TIMEOUT, "carried out is unknown");
    assert_ok(
        oap_client_submit(client, &request, rt_deadline_after_ms(200), count_done, &ticket, &info));
    wait_for_count(&ticket.tally->done_count, 1);
    assert_int_equal(ticket.tally->errs[0], RON_ERR_TIMEOUT);
    assert_true(ticket.tally->sent[0]);
    reply_with(next_kept(), RON_SLICE("late"));
    reply_with(next_kept(), RON_SLICE("late"));
    assert_echoes(client); /* on the same connection, with its own reply */
    assert_int_equal(oap_client_get_stats(client).late_count, 2);
    assert_int_equal(oap_client_get_stats(client).timeouts_count, 2);
    assert_int_equal(oap_client_get_stats(client).connects_count, 1);
    support_assert_error(oap_client_call(client, &request, (struct rt_deadline){1}, &reply, &info),
                         &info, RON_ERR_TIMEOUT, "already");
    ron_buf_fini(&reply);
    assert_null(oap_client_free(client));
}

static void bodies_are_compressed_where_that_helps(void **state) RON_BLOCKS
{
    enum { SIZE = 2 << 20 };
    struct oap_client *client = client_to(io_server_url(server, 1),
                                          (struct oap_client_options){.compress_min = 1000});
    uint8_t *bytes = ron_mem_alloc(SIZE);
    struct ron_errinfo info = {0};
    struct ron_buf reply;
    struct oap_client_request request = {.app_proto = PROTO, .code = KEEP};
    struct tally tally = {0};
    struct ticket ticket = {&tally, 0};
    struct io_request *got;

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++) /* two random bytes and six known ones */
        bytes[i] = i % 8 < 2 ? (uint8_t)(sh_random()) : 'x';
    ron_buf_init(&reply, SIZE);
    request.body = ron_slice_of(bytes, SIZE); /* twice what a frame holds */
    assert_ok(oap_client_submit(client, &request, patience(), count_done, &ticket, &info));
    got = next_kept();
    assert_true((got->frame->flags & OAP_COMP) != 0);
    assert_true(ron_slice_equal(got->body, request.body));
    reply_with(got, RON_SLICE(""));
    request.code = ECHO;
    request.body.size = 999; /* too short for it */
    assert_ok(oap_client_call(client, &request, patience(), &reply, &info));
    assert_true(ron_slice_equal(ron_buf_slice(&reply), request.body));
    /* Zeros shrink so well that the peer would take them for a bomb: they go as they are. */
    memset(bytes, 0, SIZE);
    request.body = ron_slice_of(bytes, 500000);
    assert_ok(oap_client_call(client, &request, patience(), &reply, &info));
    assert_true(ron_slice_equal(ron_buf_slice(&reply), request.body));
    wait_for_count(&ticket.tally->done_count, 1);
    assert_ok(ticket.tally->errs[0]);
    ron_buf_fini(&reply);
    (void)ron_mem_free(bytes);
    assert_null(oap_client_free(client));
}

static void cancel_ends_everything(void **state) RON_BLOCKS
{
    struct oap_client *client = connect_server();
    const struct oap_client_request request = {.app_proto = PROTO, .code = KEEP};
    struct ticket tickets[3];
    struct tally tally = {0};
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    for (uint8_t i = 0; i < 3; i++) {
        tickets[i] = (struct ticket){&tally, i};
        assert_ok(
            oap_client_submit(client, &request, RT_DEADLINE_NEVER, count_done, &tickets[i], &info));
    }
    for (int i = 0; i < 3; i++)
        reply_with(next_kept(), RON_SLICE("")); /* perhaps too late */
    oap_client_cancel(client);
    ron_buf_init(&reply, 4096);
    assert_int_equal(oap_client_call(client, &request, patience(), &reply, &info),
                     RON_ERR_CANCELED);
    assert_null(oap_client_free(client));
    assert_int_equal(rt_atomic_load_u32(&tally.done_count), 3);
    ron_buf_fini(&reply);
}

/* ---- Peers that misbehave ---- */

/* A script, a letter a step: a accept, h take HELLO, H answer it, t take "hello"; answer "hello" to
 * what was taken last: r; with another id: x; and END: E; as an event: e; as REQ: q; as COMP that
 * it is not: z; give text that is no frame: g; close: c. */
struct peer {
    const char *script;
    int listener;
    char url[64];
    struct rt_task *task;
    struct oap_head last; /* that was taken */
};

static void take_frame(int fd, struct peer *peer, bool hello)
{
    uint8_t bytes[512];

    assert_int_equal(recv(fd, bytes, OAP_HEAD_SIZE, MSG_WAITALL), OAP_HEAD_SIZE);
    assert_ok(oap_head_decode(bytes, &peer->last, NULL));
    assert_int_equal(peer->last.app_proto, hello ? OAP_PROTO_HELLO : PROTO);
    assert_int_equal(oap_body_size(&peer->last), hello ? 0 : 5);
    if (!hello) {
        assert_int_equal(recv(fd, bytes, 5, MSG_WAITALL), 5);
        assert_memory_equal(bytes, "hello", 5);
    }
}

static void give_frame(int fd, const struct peer *peer, unsigned flags, struct ron_slice body,
                       uint64_t corr_add)
{
    struct oap_head head = {.size = (uint32_t)(OAP_HEAD_SIZE + body.size),
                            .flags = (uint16_t)flags,
                            .code = OAP_STATUS_OK,
                            .app_proto = peer->last.app_proto,
                            .corr_id = peer->last.corr_id + corr_add};
    uint8_t bytes[512];

    oap_head_encode(&head, bytes);
    memcpy(bytes + OAP_HEAD_SIZE, body.data, body.size);
    assert_int_equal(send(fd, bytes, head.size, MSG_NOSIGNAL), head.size);
}

static void give_hello(int fd, const struct peer *peer)
{
    static const struct oap_hello hello = {.frame_max = 1024,
                                           .inflated_max = 1024,
                                           .inflight_max = 2,
                                           .flags = OAP_FLAGS_ALL,
                                           .version_min = 1,
                                           .version_max = 1};
    uint8_t body[OAP_HELLO_SIZE];

    oap_hello_encode(&hello, body);
    give_frame(fd, peer, OAP_RESP, ron_slice_of(body, sizeof(body)), 0);
}

static void give(int fd, const struct peer *peer, char step)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    unsigned flags = step == 'e'   ? OAP_EVENT
                     : step == 'q' ? OAP_REQ
                     : step == 'z' ? OAP_RESP | OAP_COMP
                     : step == 'E' ? OAP_RESP | OAP_END
                                   : OAP_RESP;

    if (step == 'g')
        assert_int_equal(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL), sizeof(text) - 1);
    else if (step == 'H')
        give_hello(fd, peer);
    else
        give_frame(fd, peer, flags, step == 'x' ? RON_SLICE("nobody's") : RON_SLICE("hello"),
                   step == 'x' ? OAP_INFLIGHT_MAX : 0);
}

static enum ron_err play(struct rt_task *task, void *argument)
{
    struct peer *peer = argument;
    int fd = -1;

    (void)task;
    for (const char *step = peer->script; *step != '\0'; step++) {
        int before = fd; /* open until the client has come again */

        if (*step == 'a') {
            fd = accept(peer->listener, NULL, NULL);
            assert_true(fd >= 0);
        } else if (*step == 'c') {
            fd = -1;
        } else if (*step == 'h' || *step == 't') {
            take_frame(fd, peer, *step == 'h');
        } else {
            give(fd, peer, *step);
        }
        if (fd != before && before >= 0)
            assert_int_equal(close(before), 0);
    }
    if (fd >= 0)
        assert_int_equal(close(fd), 0);
    return RON_ERR_OK;
}

static struct oap_client *start_peer(struct peer *peer, const char *script, uint32_t connect_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct rt_task_options options = {.kind = "peer",
                                      .name = "peer",
                                      .owner = "test",
                                      .fn = play,
                                      .argument = peer,
                                      .restart = RT_RESTART_NEVER};

    *peer = (struct peer){.script = script, .listener = socket(AF_INET, SOCK_STREAM, 0)};
    assert_true(peer->listener >= 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(peer->listener, 4), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(peer->url, sizeof(peer->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_ok(rt_task_spawn(supervisor, &options, &peer->task, NULL));
    return client_to(peer->url,
                     (struct oap_client_options){.connect_ms = connect_ms, .silent_ms = SILENT_MS});
}

static void end_peer(struct peer *peer, struct oap_client *client) RON_BLOCKS
{
    enum ron_err result;

    assert_null(oap_client_free(client));
    assert_ok(rt_task_join(peer->task, patience(), &result, NULL));
    assert_ok(result);
    assert_int_equal(close(peer->listener), 0);
}

static void a_lost_connection_is_unknown_and_made_again(void **state) RON_BLOCKS
{
    struct peer peer;
    struct oap_client *client = start_peer(&peer,
                                           "ahHtc"
                                           "ahHtxeE"
                                           "ahHtr",
                                           0);
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    support_assert_error(oap_client_call(client, &hello_request, patience(), &reply, &info), &info,
                         RON_ERR_UPSTREAM_UNAVAILABLE, "closed the connection");
    assert_int_equal(oap_client_get_stats(client).lost_count, 1);
    assert_echoes(client);
    assert_int_equal(oap_client_get_stats(client).late_count, 1);
    assert_int_equal(oap_client_get_stats(client).events_count, 1);
    assert_echoes(client); /* after END: on another connection */
    assert_int_equal(oap_client_get_stats(client).connects_count, 3);
    ron_buf_fini(&reply);
    end_peer(&peer, client);
}

/* A host that is gone says nothing, and TCP notices late: the next request must not go there. */
static void a_silent_peer_is_left_at_a_deadline(void **state) RON_BLOCKS
{
    struct tally tally = {0};
    struct ticket ticket = {&tally, 0};
    struct peer peer;
    struct oap_client *client = start_peer(&peer,
                                           "ahHtt"
                                           "ahHtr",
                                           0);
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    assert_ok(oap_client_submit(client, &hello_request, RT_DEADLINE_NEVER, count_done, &ticket,
                                &info)); /* goes with the connection */
    assert_int_equal(
        oap_client_call(client, &hello_request, rt_deadline_after_ms(300), &reply, &info),
        RON_ERR_TIMEOUT);
    wait_for_count(&tally.done_count, 1);
    assert_int_equal(tally.errs[0], RON_ERR_UPSTREAM_UNAVAILABLE);
    assert_true(tally.sent[0]);
    assert_echoes(client);
    assert_int_equal(oap_client_get_stats(client).connects_count, 2);
    ron_buf_fini(&reply);
    end_peer(&peer, client);
}

static void what_the_peer_can_take_is_respected(void **state) RON_BLOCKS
{
    static const uint8_t large[1024];
    const struct oap_client_request request = {
        .app_proto = PROTO, .code = ECHO, .body = {large, sizeof(large)}};
    struct tally tally = {0};
    struct ticket tickets[] = {{&tally, 0}, {&tally, 1}};
    struct peer peer;
    struct oap_client *client = start_peer(&peer, "ahHtrttc", 0);
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    assert_echoes(client); /* now its bounds are known: 1,024 bytes, 2 in flight */
    support_assert_error(oap_client_call(client, &request, patience(), &reply, &info), &info,
                         RON_ERR_TOO_LARGE, "at most 1024");
    for (int i = 0; i < 2; i++)
        assert_ok(
            oap_client_submit(client, &hello_request, patience(), count_done, &tickets[i], NULL));
    wait_for_count(&tally.done_count, 2);
    assert_int_equal(tally.errs[0], RON_ERR_UPSTREAM_UNAVAILABLE);
    assert_true(tally.sent[0]);
    ron_buf_fini(&reply);
    end_peer(&peer, client);
}

/* Its caller was told that it was not sent: it must not be, later. The peer takes "hello" only. */
static void what_ended_unsent_is_never_sent(void **state) RON_BLOCKS
{
    const struct oap_client_request first = {
        .app_proto = PROTO, .code = ECHO, .body = RON_SLICE("first")};
    struct tally tally = {0};
    struct ticket tickets[] = {{&tally, 0}, {&tally, 1}};
    struct peer peer;
    struct oap_client *client = start_peer(&peer,
                                           "ah"
                                           "ahHtr",
                                           PATIENCE_MS);

    (void)state;
    assert_ok(
        oap_client_submit(client, &first, rt_deadline_after_ms(50), count_done, &tickets[0], NULL));
    assert_ok(oap_client_submit(client, &hello_request, patience(), count_done, &tickets[1], NULL));
    wait_for_count(&tally.done_count, 2);
    assert_int_equal(tally.errs[0], RON_ERR_TIMEOUT);
    assert_false(tally.sent[0]);
    assert_ok(tally.errs[1]);
    end_peer(&peer, client);
}

static void peers_that_speak_otherwise_are_left(void **state) RON_BLOCKS
{
    static const struct {
        const char *script;
        enum ron_err err;
        const char *text;
    } cases[] = {{"ahg", RON_ERR_UPSTREAM_UNAVAILABLE, "speaks no OAP/1"},
                 {"ahc", RON_ERR_UPSTREAM_UNAVAILABLE, "instead of saying HELLO"},
                 {"ahr", RON_ERR_MALFORMED, "HELLO: 5 bytes"},
                 {"ahx", RON_ERR_UPSTREAM_UNAVAILABLE, "speaks no OAP/1"},
                 {"ahe", RON_ERR_UPSTREAM_UNAVAILABLE, "speaks no OAP/1"},
                 {"ahHtq", RON_ERR_UPSTREAM_UNAVAILABLE, "no REQ"},
                 {"ahHtg", RON_ERR_UPSTREAM_UNAVAILABLE, "version"},
                 {"ahHtz", RON_ERR_UPSTREAM_UNAVAILABLE, "reply: zstd"}};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {0};
        struct peer peer;
        struct oap_client *client = start_peer(&peer, cases[i].script, 0);

        support_assert_error(oap_client_call(client, &hello_request, patience(), &reply, &info),
                             &info, cases[i].err, cases[i].text);
        end_peer(&peer, client);
    }
    ron_buf_fini(&reply);
}

static void the_breaker_spares_a_target_that_is_down(void **state) RON_BLOCKS
{
    static const struct rt_breaker_policy policy = {.failures_max = 3,
                                                    .probes_count = 1,
                                                    .window_ns = 600 * RT_NS_PER_S,
                                                    .open_ns = 600 * RT_NS_PER_S};
    struct oap_client *client = client_to("unix:/nowhere/at/all.sock",
                                          (struct oap_client_options){.breaker = &policy});
    struct ron_errinfo info = {0};
    struct ron_buf reply;

    (void)state;
    ron_buf_init(&reply, 4096);
    for (int i = 0; i < 3; i++)
        support_assert_error(oap_client_call(client, &hello_request, patience(), &reply, &info),
                             &info, RON_ERR_UPSTREAM_UNAVAILABLE, "connect");
    assert_int_equal(oap_client_get_stats(client).breaker, RT_BREAKER_OPEN);
    support_assert_error(oap_client_call(client, &hello_request, patience(), &reply, &info), &info,
                         RON_ERR_UPSTREAM_UNAVAILABLE, "breaker");
    ron_buf_fini(&reply);
    assert_null(oap_client_free(client));
}

static enum ron_err make_one(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct oap_client_options options = {.url = context, .supervisor = supervisor};
    struct oap_client *client;
    enum ron_err err = oap_client_new(&options, &client, reterr);

    if (err == RON_ERR_OK)
        assert_null(oap_client_free(client));
    return err;
}

static void bad_births_leave_nothing(void **state) RON_BLOCKS
{
    char url[] = "http://127.0.0.1:1";
    char bad[] = "oap://127.0.0.1:1";

    (void)state;
    assert_true(support_fail_each_allocation(make_one, url, 20) >= 2);
    assert_int_equal(make_one(bad, NULL), RON_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_bring_back_their_replies),
        cmocka_unit_test(envelopes_come_back_as_code_and_message),
        cmocka_unit_test(the_capability_goes_with_start),
        cmocka_unit_test(replies_find_their_requests_in_any_order),
        cmocka_unit_test(a_completion_may_submit_the_next),
        cmocka_unit_test(both_directions_flow_at_once),
        cmocka_unit_test(a_late_reply_is_nobodys),
        cmocka_unit_test(bodies_are_compressed_where_that_helps),
        cmocka_unit_test(cancel_ends_everything),
        cmocka_unit_test(a_lost_connection_is_unknown_and_made_again),
        cmocka_unit_test(a_silent_peer_is_left_at_a_deadline),
        cmocka_unit_test(what_the_peer_can_take_is_respected),
        cmocka_unit_test(what_ended_unsent_is_never_sent),
        cmocka_unit_test(peers_that_speak_otherwise_are_left),
        cmocka_unit_test(the_breaker_spares_a_target_that_is_down),
    };
    /* Alone: the hook that fails allocations is for one thread. */
    const struct CMUnitTest births[] = {cmocka_unit_test(bad_births_leave_nothing)};

    return cmocka_run_group_tests(births, make_supervisor, end_supervisor) +
           cmocka_run_group_tests(tests, set_up, tear_down);
}
