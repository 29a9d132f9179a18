/*
 * client.c - calls: connections, breaker, tries and what comes between them. See client.h.
 *
 * Everything shared is under one lock (class net) that is never held while anything is sent,
 * received or connected; waits for a connection or for the end of a backoff are on its condition.
 */
#include "io/client.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/client_impl.h"
#include "rt/lock.h"
#include "rt/metric_names.h"

enum {
    CONNECTIONS_DEFAULT = 8,
    IDLE_MS_DEFAULT = 30000,
    ATTEMPT_MIN_MS_DEFAULT = 5,
    RETRY_AFTER_S_MAX = 3600,
};
static const struct rt_backoff_policy default_backoff = {.base_ns = 50 * RT_NS_PER_MS,
                                                         .jitter_ns = 100 * RT_NS_PER_MS,
                                                         .cap_ns = 2 * RT_NS_PER_S,
                                                         .jitter_grows = true};
const struct rt_breaker_policy client_breaker_default = {
    .failures_max = 5, .probes_count = 1, .window_ns = 10 * RT_NS_PER_S, .open_ns = RT_NS_PER_S};

struct idle_wire {
    struct io_wire *wire;
    uint64_t since_ns;
};

struct io_client {
    struct io_transport *transport;
    char host[CLIENT_HOST_SIZE];
    uint32_t connections_max, retries_max;
    uint64_t idle_ns, attempt_ns, attempt_min_ns;
    size_t body_max;
    struct rt_backoff_policy backoff;
    bool counted;
    struct rt_counter retries, timeouts;

    struct rt_lock lock;  /* class net */
    struct rt_cond freed; /* a slot */
    struct rt_cond woken; /* from a backoff */
    bool canceled RON_GUARDED_BY(net);
    uint32_t used_count RON_GUARDED_BY(net); /* connections in calls, or being made */
    uint32_t idle_count RON_GUARDED_BY(net);
    struct rt_breaker breaker RON_GUARDED_BY(net);
    struct io_client_stats stats RON_GUARDED_BY(net);
    struct idle_wire idle[] RON_GUARDED_BY(net); /* connections_max; the newest last */
};

static void client_lock(struct io_client *client) RON_LOCKS(net)
{
    rt_lock_take(&client->lock);
}

static void client_unlock(struct io_client *client) RON_UNLOCKS(net)
{
    rt_lock_drop(&client->lock);
}

/* ---- Birth and end ---- */

enum ron_err client_parse_url(const char *url, struct io_address *ret_address, bool *ret_tls,
                              struct ron_errinfo *reterr)
{
    char text[IO_ADDRESS_TEXT_SIZE];
    size_t size;

    *ret_tls = false;
    if (strncmp(url, "unix:", 5) == 0)
        return io_address_parse(url, ret_address, reterr);
    if (strncmp(url, "https://", 8) == 0)
        *ret_tls = true;
    else if (strncmp(url, "http://", 7) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "url: must start with http://, https:// or unix:");
    url += *ret_tls ? 8 : 7;
    size = strcspn(url, "/");
    if (size >= sizeof(text) || (url[size] == '/' && url[size + 1] != '\0'))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "url: ADDRESS:PORT and nothing else must follow");
    memcpy(text, url, size);
    text[size] = '\0';
    return io_address_parse(text, ret_address, reterr);
}

enum ron_err client_make_transport(const char *url, const struct io_client_tls *trust,
                                   struct io_transport **ret_transport,
                                   char ret_host[static CLIENT_HOST_SIZE],
                                   struct ron_errinfo *reterr)
{
    struct tls_client *tls = NULL;
    struct io_address address;
    char text[IO_ADDRESS_TEXT_SIZE];
    bool secure;
    enum ron_err err = client_parse_url(url, &address, &secure, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (secure != (trust != NULL))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "url: https needs an authority to trust, and only https has one");
    io_address_print(&address, text);
    (void)snprintf(ret_host, CLIENT_HOST_SIZE, "%s",
                   io_address_is_unix(&address) ? "localhost"
                   : secure                     ? trust->host
                                                : text);
    if (secure)
        err = tls_client_new(trust, &tls, reterr);
    if (err == RON_ERR_OK)
        err = io_transport_socket(&address, tls, ret_transport, reterr);
    if (err != RON_ERR_OK)
        (void)tls_client_free(tls);
    return err;
}

static void set_options(struct io_client *client, const struct io_client_options *options)
{
    uint32_t idle_ms = options->idle_ms == 0 ? IDLE_MS_DEFAULT : options->idle_ms;
    uint32_t least_ms = options->attempt_min_ms == 0 ? ATTEMPT_MIN_MS_DEFAULT
                                                     : options->attempt_min_ms;

    client->retries_max = options->retries_max;
    client->idle_ns = idle_ms * RT_NS_PER_MS;
    client->attempt_ns = options->attempt_ms == 0 ? UINT64_MAX : options->attempt_ms * RT_NS_PER_MS;
    client->attempt_min_ns = least_ms * RT_NS_PER_MS;
    client->body_max = options->body_max == 0 ? CLIENT_BODY_MAX_DEFAULT : options->body_max;
    if (client->body_max < CLIENT_BODY_MAX_MIN)
        client->body_max = CLIENT_BODY_MAX_MIN;
    client->backoff = options->backoff == NULL ? default_backoff : *options->backoff;
    if (options->metrics != NULL) {
        const char *const retried[] = {options->role, options->svc, "call"};
        const char *const late[] = {options->role, "call", options->svc};

        client->counted = true;
        client->retries = rt_metrics_counter(options->metrics,
                                             &rt_metric_table[RT_METRIC_BACKOFF_RETRIES], retried);
        client->timeouts = rt_metrics_counter(options->metrics,
                                              &rt_metric_table[RT_METRIC_IO_TIMEOUTS], late);
    }
}

enum ron_err io_client_new(const struct io_client_options *options, struct io_client **ret_client,
                           struct ron_errinfo *reterr)
{
    uint32_t count = options->connections_max == 0 ? CONNECTIONS_DEFAULT : options->connections_max;
    struct io_client *client;
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(count <= IO_CLIENT_CONNECTIONS_MAX);
    RON_ASSERT((options->url == NULL) != (options->transport == NULL));
    client = ron_mem_alloc(sizeof(*client) + count * sizeof(client->idle[0]));
    if (client == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "client");
    client->connections_max = count;
    set_options(client, options);
    if (options->url != NULL)
        err = client_make_transport(options->url, options->tls, &client->transport, client->host,
                                    reterr);
    else
        memcpy(client->host, "simulated", sizeof("simulated"));
    if (err != RON_ERR_OK) {
        (void)ron_mem_free(client);
        return err;
    }
    if (options->transport != NULL)
        client->transport = options->transport;
    rt_lock_init(&client->lock, "client", RON_RANK_net);
    rt_cond_init(&client->freed, "client freed");
    rt_cond_init(&client->woken, "client woken");
    client_lock(client);
    rt_breaker_init(&client->breaker,
                    options->breaker == NULL ? &client_breaker_default : options->breaker);
    client_unlock(client);
    *ret_client = client;
    return RON_ERR_OK;
}

void io_client_cancel(struct io_client *client)
{
    client_lock(client);
    client->canceled = true;
    rt_cond_broadcast(&client->freed);
    rt_cond_broadcast(&client->woken);
    client_unlock(client);
    io_transport_cancel(client->transport);
}

struct io_client *io_client_free(struct io_client *client)
{
    if (client == NULL)
        return NULL;
    for (;;) {
        struct io_wire *wire = NULL;

        client_lock(client);
        RON_ASSERT(client->used_count == 0);
        if (client->idle_count > 0)
            wire = client->idle[--client->idle_count].wire;
        client_unlock(client);
        if (wire == NULL)
            break;
        (void)io_wire_close(wire);
    }
    (void)io_transport_free(client->transport);
    rt_cond_fini(&client->freed);
    rt_cond_fini(&client->woken);
    rt_lock_fini(&client->lock);
    return ron_mem_free(client);
}

struct io_client_stats io_client_get_stats(struct io_client *client)
{
    struct io_client_stats stats;

    client_lock(client);
    stats = client->stats;
    stats.idle_count = client->idle_count;
    stats.used_count = client->used_count;
    stats.breaker = rt_breaker_state(&client->breaker, rt_now_ns());
    client_unlock(client);
    return stats;
}

/* ---- Connections ---- */

/* A slot, and the newest kept connection if there is one. */
static enum ron_err take_slot(struct io_client *client, struct rt_deadline deadline,
                              struct idle_wire *ret_kept, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    *ret_kept = (struct idle_wire){0};
    client_lock(client);
    for (;;) {
        if (client->canceled)
            err = RON_ERR_CANCELED;
        else if (client->idle_count > 0)
            *ret_kept = client->idle[--client->idle_count];
        else if (client->used_count == client->connections_max) {
            if (rt_cond_wait(&client->freed, &client->lock, deadline.at_ns))
                continue;
            err = RON_ERR_TIMEOUT;
        }
        break;
    }
    if (err == RON_ERR_OK)
        client->used_count++;
    RON_ASSERT(client->used_count + client->idle_count <= client->connections_max);
    client_unlock(client);
    if (err == RON_ERR_OK)
        return err;
    return ron_fail(reterr, err, "waiting for one of %u connections", client->connections_max);
}

static void give_slot(struct io_client *client, struct io_wire *kept)
{
    client_lock(client);
    client->used_count--;
    if (kept != NULL && !client->canceled) {
        client->idle[client->idle_count++] = (struct idle_wire){kept, rt_now_ns()};
        kept = NULL;
    }
    rt_cond_signal(&client->freed);
    client_unlock(client);
    (void)io_wire_close(kept);
}

/* A connection, kept or new; `fresh` asks for a new one. */
static enum ron_err take_wire(struct io_client *client, bool fresh, struct rt_deadline deadline,
                              struct io_wire **ret_wire, bool *ret_reused,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct idle_wire kept;
    enum ron_err err;

    for (;;) {
        err = take_slot(client, deadline, &kept, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (kept.wire == NULL)
            break;
        if (!fresh && rt_now_ns() - kept.since_ns < client->idle_ns && io_wire_idle(kept.wire)) {
            *ret_wire = kept.wire;
            *ret_reused = true;
            return RON_ERR_OK;
        }
        (void)io_wire_close(kept.wire);
        give_slot(client, NULL);
    }
    err = io_wire_connect(client->transport, deadline, ret_wire, reterr);
    if (err != RON_ERR_OK) {
        give_slot(client, NULL);
        return err;
    }
    *ret_reused = false;
    return RON_ERR_OK;
}

/* ---- One try ---- */

struct call {
    struct io_client *client;
    const struct io_client_request *request;
    struct rt_deadline deadline;
    struct io_client_reply *reply;
    struct ron_buf head; /* of the request; wiped at the end */
    struct client_try last;
    bool reused; /* the last try was on a kept connection */
};

static void count_try(struct call *call, bool connected)
{
    struct io_client *client = call->client;

    client_lock(client);
    client->stats.tries_count++;
    client->stats.reused_count += connected && call->reused;
    client->stats.connects_count += connected && !call->reused;
    client_unlock(client);
    call->reply->tries_count++;
}

static enum ron_err try_once(struct call *call, bool fresh, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_client *client = call->client;
    struct rt_deadline deadline = call->deadline;
    struct io_wire *wire = NULL;
    enum ron_err err;

    if (client->attempt_ns != UINT64_MAX)
        deadline = rt_deadline_min(deadline, rt_deadline_after_ns(client->attempt_ns));
    call->last = (struct client_try){0};
    call->reused = false;
    err = take_wire(client, fresh, deadline, &wire, &call->reused, reterr);
    count_try(call, err == RON_ERR_OK);
    if (err != RON_ERR_OK)
        return err;
    /* Written now, so that X-Deadline-Ms says what is left. */
    err = client_put_head(&call->head, call->request, client->host, call->deadline, reterr);
    if (err == RON_ERR_OK)
        err = client_exchange(wire, call->request, ron_buf_slice(&call->head), deadline,
                              call->reply, &call->last, reterr);
    if (err == RON_ERR_OK && call->last.keep) {
        give_slot(client, wire);
    } else {
        (void)io_wire_close(wire);
        give_slot(client, NULL);
    }
    return err;
}

bool client_may_repeat(const struct io_client_request *request)
{
    return request->repeatable || request->idempotency_key != NULL ||
           (request->method != HTTP_POST && request->method != HTTP_OTHER);
}

/* May the request reach the peer a second time? */
static bool may_repeat(const struct call *call)
{
    return !call->last.sent || client_may_repeat(call->request);
}

/* A kept connection that the peer had closed already: not its failure, try a new one at once. */
static enum ron_err try_and_replace(struct call *call, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = try_once(call, false, &info);

    if (err == RON_ERR_UPSTREAM_UNAVAILABLE && call->reused && !call->last.answered &&
        !call->request->once && may_repeat(call)) {
        client_lock(call->client);
        call->client->stats.stale_count++;
        client_unlock(call->client);
        return try_once(call, true, reterr);
    }
    if (err != RON_ERR_OK && reterr != NULL)
        *reterr = info;
    return err;
}

/* What the try says about the target. */
static void tell_breaker(struct call *call, struct rt_breaker_ticket ticket, enum ron_err err)
{
    struct io_client *client = call->client;

    client_lock(client);
    if (err == RON_ERR_CANCELED || err == RON_ERR_NO_MEMORY || err == RON_ERR_BUSY ||
        err == RON_ERR_MALFORMED)
        rt_breaker_forget(&client->breaker, ticket);
    else if (err != RON_ERR_OK ? err != RON_ERR_TOO_LARGE : call->reply->head.status >= 500)
        rt_breaker_fail(&client->breaker, ticket, rt_now_ns());
    else
        rt_breaker_succeed(&client->breaker, ticket);
    client_unlock(client);
}

static enum ron_err try_allowed(struct call *call, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_client *client = call->client;
    struct rt_breaker_ticket ticket;
    bool canceled;
    bool allowed;
    enum ron_err err;

    client_lock(client);
    canceled = client->canceled;
    allowed = !canceled && rt_breaker_allow(&client->breaker, rt_now_ns(), &ticket);
    client->stats.refused_count += !canceled && !allowed;
    client_unlock(client);
    if (canceled)
        return ron_fail(reterr, RON_ERR_CANCELED, "the client is closed");
    if (!allowed)
        return ron_fail(reterr, RON_ERR_UPSTREAM_UNAVAILABLE,
                        "not tried: the target failed too often, the breaker is open");
    err = try_and_replace(call, reterr);
    tell_breaker(call, ticket, err);
    return err;
}

/* ---- Between tries ---- */

static bool reply_may_pass(const struct io_client_reply *reply)
{
    int status = reply->head.status;
    enum ron_err code;

    if (status != 408 && status != 429 && status < 502)
        return false;
    return io_client_reply_error(reply, &code) ? ron_err_retryable(code) : status != 505;
}

static bool retry_helps(const struct call *call, enum ron_err err)
{
    if (call->request->once || !may_repeat(call))
        return false;
    if (err == RON_ERR_OK)
        return reply_may_pass(call->reply);
    return err == RON_ERR_TIMEOUT || err == RON_ERR_UPSTREAM_UNAVAILABLE;
}

static uint64_t retry_after_ns(const struct call *call, enum ron_err err)
{
    const struct http_field *field = err == RON_ERR_OK
                                         ? http_response_find(&call->reply->head, "retry-after")
                                         : NULL;
    uint64_t seconds;

    if (field == NULL || ron_decimal_parse_u64(field->value, &seconds, NULL) != RON_ERR_OK)
        return 0;
    return (seconds < RETRY_AFTER_S_MAX ? seconds : RETRY_AFTER_S_MAX) * RT_NS_PER_S;
}

/* Wait out the backoff. RON_ERR_TIMEOUT, at once: a try after it could not finish in time;
 * RON_ERR_CANCELED. */
static enum ron_err wait_to_retry(struct call *call, unsigned retry, enum ron_err err) RON_BLOCKS
{
    struct io_client *client = call->client;
    uint64_t delay_ns = rt_backoff_delay_ns(&client->backoff, retry, sh_random());
    uint64_t asked_ns = retry_after_ns(call, err);
    uint64_t until_ns = rt_deadline_after_ns(delay_ns > asked_ns ? delay_ns : asked_ns).at_ns;
    uint64_t over_ns;
    bool go_on;

    rt_assert_no_lock_held();
    if (__builtin_add_overflow(until_ns, client->attempt_min_ns, &over_ns) ||
        over_ns > call->deadline.at_ns)
        return RON_ERR_TIMEOUT;
    client_lock(client);
    while (!client->canceled && rt_now_ns() < until_ns)
        (void)rt_cond_wait(&client->woken, &client->lock, until_ns);
    go_on = !client->canceled;
    client->stats.retries_count += go_on;
    client_unlock(client);
    if (!go_on)
        return RON_ERR_CANCELED;
    if (client->counted)
        rt_metric_add(client->retries, 1);
    return RON_ERR_OK;
}

static void count_call(struct call *call, enum ron_err err)
{
    struct io_client *client = call->client;

    client_lock(client);
    client->stats.calls_count++;
    client->stats.timeouts_count += err == RON_ERR_TIMEOUT;
    client_unlock(client);
    if (err == RON_ERR_TIMEOUT && client->counted)
        rt_metric_add(client->timeouts, 1);
}

enum ron_err io_client_call(struct io_client *client, const struct io_client_request *request,
                            struct rt_deadline deadline, struct io_client_reply *reply,
                            struct ron_errinfo *reterr)
{
    struct call call = {.client = client, .request = request, .deadline = deadline, .reply = reply};
    enum ron_err waited;
    enum ron_err err;

    rt_assert_no_lock_held();
    io_client_reply_fini(reply);
    io_client_reply_init(reply);
    reply->body_bytes.size_max = client->body_max;
    ron_buf_init(&call.head, HTTP_HEAD_SIZE_MAX);
    for (unsigned retry = 0;; retry++) {
        err = rt_deadline_expired(deadline)
                  ? ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline has passed already")
                  : try_allowed(&call, reterr);
        if (retry == client->retries_max || !retry_helps(&call, err))
            break;
        waited = wait_to_retry(&call, retry, err);
        if (waited == RON_ERR_CANCELED)
            err = ron_fail(reterr, waited, "canceled between two tries");
        if (waited != RON_ERR_OK)
            break;
    }
    if (call.head.data != NULL)
        ron_wipe(call.head.data, call.head.capacity);
    ron_buf_fini(&call.head);
    count_call(&call, err);
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "%s", client->host);
}
