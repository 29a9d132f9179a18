/*
 * test_client.c - the client against scripted peers, on the simulated transport without faults.
 *
 * Goal: what a request says, how a reply is read, when a call is tried again. Method: the peer is a
 * function that answers from a list of texts and keeps what it was asked; backoffs of nanoseconds.
 * Sockets and TLS: tests/http/test_client.py; a bad network: models/client.c.
 */
#include "support.h"

#include <stdio.h>

#include "io/client.h"
#include "io/client_sim.h"
#include "io/flights.h"
#include "rt/metric_names.h"
#include "rt/metrics.h"
#include "rt/registry.h"

enum { ANSWERS_MAX = 16 };

struct peer {
    const char *answers[ANSWERS_MAX]; /* in turn; the last one again and again; NULL: silence */
    unsigned asked_count;
    struct ron_buf request; /* the latest, as fields and body */
    struct io_client *client;
    struct io_client_reply reply;
    struct ron_errinfo info;
};

static void answer(void *context, const struct http_head *head, struct ron_slice body,
                   struct ron_buf *reply)
{
    struct peer *peer = context;
    unsigned number = peer->asked_count++;
    const char *text = NULL;

    for (unsigned i = 0; i < ANSWERS_MAX && i <= number && peer->answers[i] != NULL; i++)
        text = peer->answers[i];
    ron_buf_reset(&peer->request);
    ron_buf_put(&peer->request, head->method_text.data, head->method_text.size);
    ron_buf_put_byte(&peer->request, ' ');
    ron_buf_put(&peer->request, head->target.data, head->target.size);
    for (size_t i = 0; i < head->fields_count; i++) {
        ron_buf_put_byte(&peer->request, '\n');
        ron_buf_put(&peer->request, head->fields[i].name.data, head->fields[i].name.size);
        ron_buf_put_byte(&peer->request, '=');
        ron_buf_put(&peer->request, head->fields[i].value.data, head->fields[i].value.size);
    }
    ron_buf_put_byte(&peer->request, '\n');
    ron_buf_put(&peer->request, body.data, body.size);
    ron_buf_put_byte(&peer->request, '\0');
    if (text != NULL)
        ron_buf_put_text(reply, text);
}

static const struct rt_backoff_policy at_once = {.base_ns = 1, .cap_ns = 1};
static const struct rt_breaker_policy never_open = {
    .failures_max = 64, .probes_count = 1, .window_ns = 1, .open_ns = 1};
static const struct io_client_request get = {.method = HTTP_GET, .path = "/x"};

#define OK_1  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
#define BUSY  "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n"
#define LATER "HTTP/1.1 503 x\r\nContent-Length: 0\r\nRetry-After: 3000\r\n\r\n"
#define FROZEN                                     \
    "HTTP/1.1 503 x\r\nContent-Length: 57\r\n\r\n" \
    "{\"error\":{\"x\":{\"code\":\"Busy\"},\"code\":\"SafeMode\",\"y\":[1]}}"

static void open_peer(struct peer *peer, const struct io_client_options *given)
{
    const struct io_sim_options network = {.handler = answer, .context = peer};
    struct io_client_options options = *given;

    rt_init();
    ron_buf_init(&peer->request, 65536);
    io_client_reply_init(&peer->reply);
    if (options.backoff == NULL)
        options.backoff = &at_once;
    assert_ok(io_transport_simulated(&network, &options.transport, NULL));
    assert_ok(io_client_new(&options, &peer->client, NULL));
}

static void close_peer(struct peer *peer)
{
    peer->client = io_client_free(peer->client);
    io_client_reply_fini(&peer->reply);
    ron_buf_fini(&peer->request);
}

static enum ron_err call(struct peer *peer, const struct io_client_request *request) RON_BLOCKS
{
    return io_client_call(peer->client, request, rt_deadline_after_ms(60000), &peer->reply,
                          &peer->info);
}

static bool asked(const struct peer *peer, const char *text)
{
    return strstr((const char *)peer->request.data, text) != NULL;
}

/* ---- Requests ---- */

static void a_request_carries_what_it_must(void **state) RON_BLOCKS
{
    static const struct io_client_field fields[] = {{"X-Mine", "a b"}};
    struct peer peer = {.answers = {OK_1}};
    struct ron_secret token = {0};
    struct io_client_request request = {.method = HTTP_POST,
                                        .path = "/v1/x?y=%20",
                                        .media = "application/json",
                                        .body = RON_SLICE("{}"),
                                        .token = &token,
                                        .corr_id = "corr-1",
                                        .idempotency_key = "key-1",
                                        .fields = fields,
                                        .fields_count = 1};

    (void)state;
    assert_ok(ron_secret_init(&token, RON_SLICE("s3cr3t"), NULL));
    open_peer(&peer, &(struct io_client_options){0});
    assert_ok(call(&peer, &request));
    assert_int_equal(peer.reply.head.status, 200);
    assert_int_equal(peer.reply.tries_count, 1);
    assert_true(ron_slice_equal(peer.reply.body, RON_SLICE("1")));
    assert_true(asked(&peer, "POST /v1/x?y=%20\nHost=simulated\nAuthorization=Bearer s3cr3t\n"
                             "Content-Type=application/json\nContent-Length=2\nX-Corr-ID=corr-1\n"
                             "Idempotency-Key=key-1\nX-Mine=a b\nX-Deadline-Ms="));
    assert_true(asked(&peer, "X-Deadline-Ms=59") || asked(&peer, "X-Deadline-Ms=60000"));
    assert_true(asked(&peer, "\n{}"));
    assert_ok(io_client_call(peer.client, &get, RT_DEADLINE_NEVER, &peer.reply, &peer.info));
    assert_false(asked(&peer, "X-Deadline-Ms"));
    assert_false(asked(&peer, "Content-Length"));
    ron_secret_fini(&token);
    close_peer(&peer);
}

static void no_text_of_a_caller_adds_a_line(void **state) RON_BLOCKS
{
    static const struct io_client_field bad_fields[] = {
        {"X-A", "b\r\nX-C: d"},  {"X-A\r\nX-B", "c"}, {"X A", "b"},
        {"X-A: b", "c"},         {"", "b"},           {"Host", "b"},
        {"Content-Length", "1"}, {"X-A", " b"},       {"Transfer-Encoding", "chunked"},
    };
    static const char *const bad_paths[] = {"x", "/a b", "/a\r\nX: y", "/\x80"};
    struct peer peer = {.answers = {OK_1}};
    struct ron_secret token = {0};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.retries_max = 3});
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad_fields); i++) {
        struct io_client_request request = get;

        request.fields = &bad_fields[i];
        request.fields_count = 1;
        assert_int_equal(call(&peer, &request), RON_ERR_MALFORMED);
    }
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad_paths); i++)
        assert_int_equal(
            call(&peer, &(struct io_client_request){.method = HTTP_GET, .path = bad_paths[i]}),
            RON_ERR_MALFORMED);
    assert_int_equal(
        call(&peer,
             &(struct io_client_request){.method = HTTP_GET, .path = "/", .corr_id = "a\nb"}),
        RON_ERR_MALFORMED);
    assert_ok(ron_secret_init(&token, RON_SLICE("hidden\r\nX-A: b"), NULL));
    assert_int_equal(
        call(&peer, &(struct io_client_request){.method = HTTP_GET, .path = "/", .token = &token}),
        RON_ERR_MALFORMED);
    assert_null(strstr(peer.info.message, "hidden"));
    assert_int_equal(peer.asked_count, 0);
    assert_int_equal(io_client_get_stats(peer.client).breaker, RT_BREAKER_CLOSED);
    ron_secret_fini(&token);
    close_peer(&peer);
}

/* ---- Replies ---- */

static void replies_are_read_to_their_end(void **state) RON_BLOCKS
{
    struct peer peer = {
        .answers = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde"
                    "\r\n0\r\nT: u\r\n\r\n",
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n" OK_1,
                    "HTTP/1.1 204 No\r\n\r\n", OK_1}};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.connections_max = 1});
    assert_ok(call(&peer, &get));
    assert_true(ron_slice_equal(peer.reply.body, RON_SLICE("abcde")));
    assert_ok(call(&peer, &get));
    assert_int_equal(peer.reply.head.status, 200);
    assert_true(ron_slice_equal(peer.reply.body, RON_SLICE("1")));
    assert_ok(call(&peer, &get));
    assert_int_equal(peer.reply.head.status, 204);
    assert_int_equal(peer.reply.body.size, 0);
    assert_ok(call(&peer, &get));
    assert_int_equal(io_client_get_stats(peer.client).connects_count, 1);
    assert_int_equal(io_client_get_stats(peer.client).reused_count, 3);
    close_peer(&peer);
}

static void a_connection_with_bytes_left_is_not_used_again(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {OK_1 "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", OK_1}};
    struct io_client_request head = {.method = HTTP_HEAD, .path = "/"};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.connections_max = 1});
    assert_ok(call(&peer, &get));
    assert_ok(call(&peer, &get));
    assert_true(ron_slice_equal(peer.reply.body, RON_SLICE("1")));
    assert_int_equal(io_client_get_stats(peer.client).connects_count, 2);
    /* The peer sends a body to HEAD: it is no reply to the next request. */
    assert_ok(call(&peer, &head));
    assert_int_equal(peer.reply.body.size, 0);
    assert_ok(call(&peer, &get));
    assert_true(ron_slice_equal(peer.reply.body, RON_SLICE("1")));
    assert_int_equal(io_client_get_stats(peer.client).connects_count, 3);
    close_peer(&peer);
}

/* The simulated transport, but what a peer says of itself (it closes what was idle too long) comes
 * just when the connection is used again: nobody could have seen it before. */
static struct {
    struct io_transport_ops ops;
    const struct io_transport_ops *simulated;
    bool speaks;
} hasty;

static bool hasty_idle(struct io_wire *wire)
{
    (void)wire;
    hasty.speaks = true;
    return true;
}

static enum ron_err hasty_step(struct io_wire *wire, struct io_exchange *exchange,
                               struct ron_errinfo *reterr)
{
    static const char words[] = "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n";

    if (!hasty.speaks)
        return hasty.simulated->step(wire, exchange, reterr);
    hasty.speaks = false;
    assert_true(exchange->in_size >= sizeof(words) - 1);
    memcpy(exchange->in, words, sizeof(words) - 1);
    exchange->received_size = sizeof(words) - 1;
    return RON_ERR_OK;
}

static enum io_flight_next fly_at_once(struct io_flight *flight)
{
    (void)flight;
    return IO_FLIGHT_SEND;
}

static enum io_flight_next take_status(struct io_flight *flight, enum ron_err err,
                                       const struct ron_errinfo *info,
                                       const struct io_client_reply *reply)
{
    (void)info;
    *(int *)flight->context = err == RON_ERR_OK ? reply->head.status : -1;
    return IO_FLIGHT_OVER;
}

static void words_before_the_request_are_no_answer(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {OK_1}};
    const struct io_sim_options network = {.handler = answer, .context = &peer};
    struct io_flights_options options = {.flights_max = 2};
    struct io_flights *flights = NULL;

    (void)state;
    rt_init();
    ron_buf_init(&peer.request, 65536);
    assert_ok(io_transport_simulated(&network, &options.transport, NULL));
    hasty.simulated = options.transport->ops;
    hasty.ops = *hasty.simulated;
    hasty.ops.idle = hasty_idle;
    hasty.ops.step = hasty_step;
    options.transport->ops = &hasty.ops;
    assert_ok(io_flights_new(&options, &flights, NULL));
    for (unsigned i = 0; i < 2; i++) {
        int status = 0;
        struct io_flight flight = {.request = {.method = HTTP_POST, .path = "/x"},
                                   .deadline = rt_deadline_after_ms(60000),
                                   .ready = fly_at_once,
                                   .done = take_status,
                                   .context = &status};

        assert_ok(io_flights_submit(flights, &flight, NULL));
        while (status == 0)
            assert_true(io_flights_turn(flights));
        assert_int_equal(status, 200); /* also of one that must not be sent twice */
        assert_int_equal(peer.asked_count, i + 1);
    }
    assert_int_equal(io_flights_get_stats(flights).stale_count, 1);
    assert_int_equal(io_flights_get_stats(flights).connects_count, 2);
    flights = io_flights_free(flights);
    ron_buf_fini(&peer.request);
}

static void replies_beyond_their_bounds_are_refused(void **state) RON_BLOCKS
{
    static char large_head[HTTP_HEAD_SIZE_MAX + 100];
    static char chunks[6000];
    struct peer peer = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n", chunks,
                                    large_head, "no HTTP at all\r\n\r\n",
                                    "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n"
                                    "\r\n"}};

    (void)state;
    (void)snprintf(chunks, sizeof(chunks),
                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n%04097d\r\n", 1);
    memset(large_head, 'a', sizeof(large_head) - 1);
    memcpy(large_head, "HTTP/1.1 200 OK\r\nA: ", 20);
    open_peer(&peer, &(struct io_client_options){.body_max = 4096, .retries_max = 2});
    support_assert_error(call(&peer, &get), &peer.info, RON_ERR_TOO_LARGE, "4097");
    support_assert_error(call(&peer, &get), &peer.info, RON_ERR_TOO_LARGE, "");
    support_assert_error(call(&peer, &get), &peer.info, RON_ERR_TOO_LARGE, "head above 16384");
    assert_int_equal(peer.asked_count, 3); /* not tried again */
    peer.answers[4] = NULL;
    assert_int_equal(
        call(&peer, &(struct io_client_request){.method = HTTP_GET, .path = "/", .once = true}),
        RON_ERR_UPSTREAM_UNAVAILABLE);
    assert_non_null(strstr(peer.info.message, "status line"));
    close_peer(&peer);
}

static void envelopes_give_their_code(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {FROZEN, "HTTP/1.1 503 x\r\nContent-Length: 3\r\n\r\n{]}",
                                    "HTTP/1.1 404 x\r\nContent-Length: 24\r\n\r\n"
                                    "{\"error\":{\"code\":\"Odd\"}}"}};
    enum ron_err err = RON_ERR_OK;

    (void)state;
    open_peer(&peer, &(struct io_client_options){0});
    assert_ok(call(&peer, &get));
    assert_true(io_client_reply_error(&peer.reply, &err));
    assert_int_equal(err, RON_ERR_SAFE_MODE);
    assert_ok(call(&peer, &get));
    assert_false(io_client_reply_error(&peer.reply, &err));
    assert_ok(call(&peer, &get));
    assert_false(io_client_reply_error(&peer.reply, &err));
    close_peer(&peer);
}

/* ---- Tries ---- */

static void what_may_pass_is_tried_again(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {BUSY, BUSY, OK_1}};
    struct rt_metrics *metrics;
    const struct rt_metric_table table = {rt_metric_table, RT_METRIC__COUNT};
    const char *const labels[] = {"wallet", "ledger", "call"};
    struct io_client_request post = {.method = HTTP_POST, .path = "/", .idempotency_key = "k"};

    (void)state;
    assert_ok(rt_metrics_new(&table, 1, &metrics, NULL));
    open_peer(&peer, &(struct io_client_options){
                         .retries_max = 3, .metrics = metrics, .role = "wallet", .svc = "ledger"});
    assert_ok(call(&peer, &post));
    assert_int_equal(peer.reply.head.status, 200);
    assert_int_equal(peer.reply.tries_count, 3);
    assert_int_equal(peer.asked_count, 3);
    assert_true(asked(&peer, "Idempotency-Key=k"));
    assert_int_equal(rt_metric_sum(rt_metrics_counter(
                         metrics, &rt_metric_table[RT_METRIC_BACKOFF_RETRIES], labels)),
                     2);
    close_peer(&peer);
    (void)rt_metrics_free(metrics);
}

static void what_may_not_pass_is_not(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {BUSY}};
    struct io_client_request post = {.method = HTTP_POST, .path = "/"};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.retries_max = 3, .breaker = &never_open});
    assert_ok(call(&peer, &post)); /* a POST without a key */
    assert_int_equal(peer.asked_count, 1);
    assert_int_equal(peer.reply.head.status, 503);
    post.idempotency_key = "k";
    post.once = true;
    assert_ok(call(&peer, &post));
    assert_int_equal(peer.asked_count, 2);
    peer.answers[0] = FROZEN; /* 503, but its code says it will not pass */
    assert_ok(call(&peer, &get));
    assert_int_equal(peer.asked_count, 3);
    peer.answers[0] = LATER; /* beyond the deadline: answered now, not waited for */
    assert_ok(call(&peer, &get));
    assert_int_equal(peer.asked_count, 4);
    peer.answers[0] = "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n";
    assert_ok(call(&peer, &get));
    assert_int_equal(peer.asked_count, 5);
    peer.answers[0] = BUSY;
    assert_ok(call(&peer, &get)); /* as often as allowed, then what came last */
    assert_int_equal(peer.asked_count, 9);
    assert_int_equal(peer.reply.head.status, 503);
    assert_int_equal(io_client_get_stats(peer.client).retries_count, 3);
    close_peer(&peer);
}

static void silence_ends_at_the_deadline(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {NULL}};
    struct rt_deadline deadline = rt_deadline_after_ms(30);

    (void)state;
    open_peer(&peer, &(struct io_client_options){
                         .retries_max = 100, .attempt_ms = 5, .breaker = &never_open});
    assert_int_equal(io_client_call(peer.client, &get, deadline, &peer.reply, &peer.info),
                     RON_ERR_TIMEOUT);
    assert_true(peer.asked_count >= 1);
    deadline.at_ns = 1; /* long past: nothing is sent */
    assert_int_equal(io_client_call(peer.client, &get, deadline, &peer.reply, &peer.info),
                     RON_ERR_TIMEOUT);
    assert_int_equal(peer.reply.tries_count, 0);
    assert_int_equal(io_client_get_stats(peer.client).timeouts_count, 2);
    close_peer(&peer);
}

static void the_breaker_opens_and_lets_a_probe_through(void **state) RON_BLOCKS
{
    const struct rt_breaker_policy policy = {.failures_max = 3,
                                             .probes_count = 1,
                                             .window_ns = 600 * RT_NS_PER_S,
                                             .open_ns = 600 * RT_NS_PER_S};
    const struct rt_breaker_policy brief = {
        .failures_max = 3, .probes_count = 1, .window_ns = 600 * RT_NS_PER_S, .open_ns = 1};
    struct peer peer = {.answers = {BUSY}};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.breaker = &policy});
    for (int i = 0; i < 3; i++)
        assert_ok(call(&peer, &get));
    assert_int_equal(io_client_get_stats(peer.client).breaker, RT_BREAKER_OPEN);
    support_assert_error(call(&peer, &get), &peer.info, RON_ERR_UPSTREAM_UNAVAILABLE, "breaker");
    assert_int_equal(peer.asked_count, 3);
    assert_int_equal(io_client_get_stats(peer.client).refused_count, 1);
    close_peer(&peer);

    peer = (struct peer){.answers = {BUSY, BUSY, BUSY, BUSY, OK_1}};
    open_peer(&peer, &(struct io_client_options){.breaker = &brief});
    for (int i = 0; i < 3; i++)
        assert_ok(call(&peer, &get));
    while (io_client_get_stats(peer.client).breaker == RT_BREAKER_OPEN)
        ;
    assert_ok(call(&peer, &get)); /* the probe fails: open again */
    while (io_client_get_stats(peer.client).breaker == RT_BREAKER_OPEN)
        ;
    assert_ok(call(&peer, &get));
    assert_int_equal(io_client_get_stats(peer.client).breaker, RT_BREAKER_CLOSED);
    close_peer(&peer);
}

static void a_canceled_client_answers_at_once(void **state) RON_BLOCKS
{
    struct peer peer = {.answers = {OK_1}};

    (void)state;
    open_peer(&peer, &(struct io_client_options){.retries_max = 3});
    assert_ok(call(&peer, &get));
    io_client_cancel(peer.client);
    io_client_cancel(peer.client);
    assert_int_equal(call(&peer, &get), RON_ERR_CANCELED);
    assert_int_equal(peer.asked_count, 1);
    close_peer(&peer);
}

/* ---- Birth ---- */

static void targets_that_are_none_are_refused(void **state)
{
    static const char *const urls[] = {
        "",
        "127.0.0.1:1",
        "ftp://127.0.0.1:1",
        "http://example.org:80",
        "http://127.0.0.1",
        "http://127.0.0.1:1/path",
        "http://127.0.0.1:99999",
        "unix:",
        "https://127.0.0.1:1",
    };
    struct io_client *client = NULL;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(urls); i++)
        assert_int_equal(io_client_new(&(struct io_client_options){.url = urls[i]}, &client, NULL),
                         RON_ERR_MALFORMED);
    assert_null(client);
    assert_ok(io_client_new(&(struct io_client_options){.url = "http://[::1]:1/"}, &client, NULL));
    client = io_client_free(client);
}

static enum ron_err attempt_call(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct peer *peer = context;
    const struct io_sim_options network = {.handler = answer, .context = peer};
    struct io_client_options options = {.backoff = &at_once};
    enum ron_err err = io_transport_simulated(&network, &options.transport, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_client_new(&options, &peer->client, reterr);
    if (err != RON_ERR_OK) {
        (void)io_transport_free(options.transport);
        return err;
    }
    io_client_reply_init(&peer->reply);
    /* A lost message is a silence, and a silence has an end. */
    err = io_client_call(peer->client, &get, rt_deadline_after_ms(10), &peer->reply, reterr);
    io_client_reply_fini(&peer->reply);
    peer->client = io_client_free(peer->client);
    return err == RON_ERR_TIMEOUT ? ron_fail(reterr, RON_ERR_NO_MEMORY, "lost") : err;
}

static void no_allocation_that_fails_leaks(void **state)
{
    struct peer peer = {.answers = {OK_1}};

    (void)state;
    rt_init();
    ron_buf_init(&peer.request, 65536);
    assert_ok(ron_buf_reserve(&peer.request, 4096, NULL)); /* the peer's own never fails */
    assert_true(support_fail_each_allocation(attempt_call, &peer, 60) > 4);
    ron_buf_fini(&peer.request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_carries_what_it_must),
        cmocka_unit_test(no_text_of_a_caller_adds_a_line),
        cmocka_unit_test(replies_are_read_to_their_end),
        cmocka_unit_test(a_connection_with_bytes_left_is_not_used_again),
        cmocka_unit_test(words_before_the_request_are_no_answer),
        cmocka_unit_test(replies_beyond_their_bounds_are_refused),
        cmocka_unit_test(envelopes_give_their_code),
        cmocka_unit_test(what_may_pass_is_tried_again),
        cmocka_unit_test(what_may_not_pass_is_not),
        cmocka_unit_test(silence_ends_at_the_deadline),
        cmocka_unit_test(the_breaker_opens_and_lets_a_probe_through),
        cmocka_unit_test(a_canceled_client_answers_at_once),
        cmocka_unit_test(targets_that_are_none_are_refused),
        cmocka_unit_test(no_allocation_that_fails_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
