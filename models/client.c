/*
 * client.c - calls over a network that loses, doubles, delays, reorders and resets.
 *
 * The shipped client on the simulated transport (io/client_sim.h) against a peer that counts. Every
 * call ends by its deadline; a reply belongs to its request; each time the peer sees a request it
 * carries the same key; with fewer faults than retries the call succeeds; a cancel ends it at once.
 */
#include <stdio.h>

#include "base/mem.h"
#include "io/client.h"
#include "io/client_sim.h"
#include "models/support.h"
#include "rt/registry.h"

enum {
    CALLS_COUNT = 2,
    RETRIES_MAX = 3,
    KEY_SIZE = 16,
    ATTEMPT_MS = 100,
    ATTEMPT_MIN_MS = 5,
    DELAY_MS = 130,     /* beyond one try */
    PATIENCE_MS = 3000, /* four tries and their backoffs fit */
    BUSY_TRIES = 9
};

struct shop {
    unsigned seen_count[CALLS_COUNT];
    char keys[CALLS_COUNT][KEY_SIZE];
    struct rt_deadline deadlines[CALLS_COUNT];
    struct io_transport *transport;
    struct io_client *client;
    bool silent; /* never answers */
    bool busy;   /* answers 429 */
    uint64_t times_ns[BUSY_TRIES];
};

/* POST /N with a key: answers N. */
static void serve(void *context, const struct http_head *head, struct ron_slice body,
                  struct ron_buf *reply)
{
    struct shop *shop = context;
    const struct http_field *key = http_head_find(head, "idempotency-key");
    const struct http_field *left = http_head_find(head, "x-deadline-ms");
    unsigned number = (unsigned)(head->path.data[1] - '0');

    RON_ASSERT(number < CALLS_COUNT);
    RON_ASSERT(key != NULL);
    RON_ASSERT(left != NULL);
    RON_ASSERT(key->value.size < KEY_SIZE);
    RON_ASSERT(body.size == 1 && body.data[0] == head->path.data[1]);
    if (shop->busy && shop->seen_count[number] < BUSY_TRIES)
        shop->times_ns[shop->seen_count[number]] = rt_now_ns();
    if (shop->seen_count[number]++ == 0)
        memcpy(shop->keys[number], key->value.data, key->value.size);
    RON_ASSERT(ron_slice_equal(key->value, ron_slice_text(shop->keys[number]))); /* same key */
    if (shop->silent)
        return;
    if (shop->busy) {
        ron_buf_put_format(reply, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}");
        return;
    }
    ron_buf_put_format(reply, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%u", number);
}

static struct shop *open_shop(unsigned retries_max)
{
    struct shop *shop = model_alloc(sizeof(*shop));
    const struct io_sim_options network = {
        .handler = serve, .context = shop, .delay_ns = DELAY_MS * RT_NS_PER_MS};
    struct io_client_options options = {.connections_max = 1,
                                        .attempt_ms = ATTEMPT_MS,
                                        .attempt_min_ms = ATTEMPT_MIN_MS,
                                        .retries_max = retries_max};

    rt_init();
    model_must(io_transport_simulated(&network, &shop->transport, NULL));
    options.transport = shop->transport;
    model_must(io_client_new(&options, &shop->client, NULL));
    return shop;
}

static void close_shop(struct shop *shop)
{
    io_sim_settle(shop->transport); /* what comes late carries its key, too */
    shop->client = io_client_free(shop->client);
    ron_mem_free(shop);
}

/* One call; checks what must be true of every one of them. */
static enum ron_err call(struct shop *shop, unsigned number, const char *key,
                         struct rt_deadline deadline, bool once) RON_BLOCKS
{
    char path[] = {'/', (char)('0' + number), '\0'};
    const struct io_client_request request = {.method = HTTP_POST,
                                              .path = path,
                                              .body = ron_slice_of(path + 1, 1),
                                              .idempotency_key = key,
                                              .once = once};
    struct io_client_reply *reply = model_alloc(sizeof(*reply));
    enum ron_err err;

    io_client_reply_init(reply);
    err = io_client_call(shop->client, &request, deadline, reply, NULL);
    RON_ASSERT(rt_now_ns() <= deadline.at_ns); /* ended by its deadline */
    if (err == RON_ERR_OK) {
        RON_ASSERT(reply->head.status == 200);
        RON_ASSERT(ron_slice_equal(reply->body, request.body)); /* belongs to its request */
        RON_ASSERT(shop->seen_count[number] > 0);
    } else {
        RON_ASSERT(err == RON_ERR_TIMEOUT || err == RON_ERR_UPSTREAM_UNAVAILABLE ||
                   err == RON_ERR_CANCELED);
    }
    io_client_reply_fini(reply);
    ron_mem_free(reply);
    return err;
}

/* ---- lossy: fewer faults than retries, and time enough ---- */

/* Planted: the caller retries by himself, with a key of its own for each try. */
static enum ron_err call_forgetfully(struct shop *shop, unsigned number,
                                     struct rt_deadline deadline) RON_BLOCKS
{
    enum ron_err err = RON_ERR_TIMEOUT;

    for (int i = 0; i <= RETRIES_MAX && err != RON_ERR_OK; i++) {
        const char key[] = {'t', 'r', 'y', (char)('0' + i), '\0'};

        err = call(shop, number, key, deadline, true);
    }
    return err;
}

static void client_lossy_fn(void *argument) RON_BLOCKS
{
    struct shop *shop = open_shop(RETRIES_MAX);

    for (unsigned i = 0; i < CALLS_COUNT; i++) {
        const char key[] = {'k', 'e', 'y', (char)('0' + i), '\0'};
        struct rt_deadline deadline = rt_deadline_after_ms(PATIENCE_MS);
        enum ron_err err = argument == PLANTED ? call_forgetfully(shop, i, deadline)
                                               : call(shop, i, key, deadline, false);

        RON_ASSERT(argument == PLANTED || err == RON_ERR_OK);
    }
    sim_outcome(shop->seen_count[0] * 16 + shop->seen_count[1]);
    close_shop(shop);
}

static const struct model_case lossy_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    {.config = {.preemption_bound = NONE, .faults = 1}},
    {.config = {.preemption_bound = NONE, .faults = 2}},
    {.config = {.preemption_bound = NONE, .faults = 2}, .compare = true},
    {.config = {.preemption_bound = NONE, .faults = RETRIES_MAX, .random_seed = 5},
     .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .faults = 2, .spurious = 1}, .runs_max = 20000},
};
static const struct model_case lossy_planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    {.config = {.preemption_bound = NONE, .faults = 1}, .expected = SIM_ASSERTION},
};
MODEL(client_lossy, "calls over a lossy network: deadline, own reply, same key", client_lossy_fn,
      NULL, lossy_cases);
MODEL(client_lossy_planted, "a caller who retries with a new key", client_lossy_fn, PLANTED,
      lossy_planted_cases);

/* ---- hurried: any faults, little time ---- */

static void client_hurried_fn(void *argument) RON_BLOCKS
{
    static const uint32_t patience_ms[] = {1, 90, 160, 400};
    struct shop *shop = open_shop(RETRIES_MAX);
    uint32_t ms = patience_ms[sim_choose(4, "patience")];
    struct rt_deadline deadline = rt_deadline_after_ms(ms);
    enum ron_err err;

    (void)argument;
    shop->silent = sim_choose(2, "silent") == 1;
    err = call(shop, 0, "key", deadline, false);
    RON_ASSERT(!shop->silent || err != RON_ERR_OK);
    /* A try takes until its bound or the deadline; none begins that could not end. */
    if (shop->silent && ms <= ATTEMPT_MS + ATTEMPT_MIN_MS)
        RON_ASSERT(io_client_get_stats(shop->client).retries_count <= 1);
    sim_outcome((uint64_t)err);
    close_shop(shop);
}

static const struct model_case hurried_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .faults = 2}},
    {.config = {.preemption_bound = NONE, .faults = 2, .random_seed = 3}},
    {.config = {.preemption_bound = NONE, .faults = 4}, .strategy = SIM_STRATEGY_RANDOM},
};
MODEL(client_hurried, "calls with little time: none outlives its deadline", client_hurried_fn, NULL,
      hurried_cases);

/* ---- canceled: two calls share one connection, a cancel at any moment ---- */

static void call_until_canceled(struct shop *shop, unsigned number, const char *key) RON_BLOCKS
{
    enum ron_err err = call(shop, number, key, rt_deadline_after_ms(PATIENCE_MS), false);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED || shop->silent);
}

static void first_fn(void *argument) RON_BLOCKS
{
    call_until_canceled(argument, 0, "key0");
}

static void second_fn(void *argument) RON_BLOCKS
{
    call_until_canceled(argument, 1, "key1");
}

static void client_canceled_fn(void *argument) RON_BLOCKS
{
    static const uint64_t after_ms[] = {0, 20, 150, 5000};
    struct shop *shop = open_shop(RETRIES_MAX);
    struct sh_thread *first;
    struct sh_thread *second;
    uint64_t canceled_ns;

    (void)argument;
    shop->silent = sim_choose(2, "silent") == 1;
    first = model_spawn("first", first_fn, shop);
    second = model_spawn("second", second_fn, shop);
    canceled_ns = rt_now_ns() + after_ms[sim_choose(4, "cancel after")] * RT_NS_PER_MS;
    sh_sleep_until(canceled_ns);
    canceled_ns = rt_now_ns();
    io_client_cancel(shop->client);
    model_join(first);
    model_join(second);
    RON_ASSERT(rt_now_ns() == canceled_ns); /* nobody waits out a try or a backoff */
    RON_ASSERT(call(shop, 0, "key0", rt_deadline_after_ms(1), false) == RON_ERR_CANCELED);
    sim_outcome(shop->seen_count[0] * 16 + shop->seen_count[1]);
    close_shop(shop);
}

static const struct model_case canceled_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1, .faults = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1, .faults = 1}},
};
MODEL(client_canceled, "a cancel at any moment of a call ends it at once", client_canceled_fn, NULL,
      canceled_cases);

/* ---- busy: 50 ms to begin with, doubling, never beyond 2 s, spread by chance ---- */

/* covers: LED-F41 */
static void client_busy_fn(void *argument) RON_BLOCKS
{
    struct shop *shop = open_shop(BUSY_TRIES - 1);
    const struct io_client_request request = {
        .method = HTTP_POST, .path = "/0", .body = RON_SLICE("0"), .idempotency_key = "key0"};
    struct io_client_reply *reply = model_alloc(sizeof(*reply));
    uint64_t least_ms = 50;
    bool spread = false;

    (void)argument;
    shop->busy = true;
    io_client_reply_init(reply);
    model_must(io_client_call(shop->client, &request, rt_deadline_after_ms(60000), reply, NULL));
    RON_ASSERT(reply->head.status == 429);
    RON_ASSERT(shop->seen_count[0] == BUSY_TRIES);
    for (unsigned i = 1; i < BUSY_TRIES; i++, least_ms *= 2) {
        const uint64_t waited_ns = shop->times_ns[i] - shop->times_ns[i - 1];

        RON_ASSERT(waited_ns <= 2000 * RT_NS_PER_MS);
        RON_ASSERT(waited_ns >= (least_ms < 1900 ? least_ms : 1900) * RT_NS_PER_MS);
        RON_ASSERT(waited_ns <= 3 * least_ms * RT_NS_PER_MS);
        spread = spread ||
                 (waited_ns != least_ms * RT_NS_PER_MS && waited_ns < 1900 * RT_NS_PER_MS);
    }
    RON_ASSERT(spread);
    io_client_reply_fini(reply);
    ron_mem_free(reply);
    close_shop(shop);
}

static const struct model_case busy_cases[] = {
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_RANDOM, .runs_max = 200},
};
MODEL(client_busy, "tries against a peer that is busy come ever more slowly", client_busy_fn, NULL,
      busy_cases);
