/*
 * ledger_checks.c - the ledger's remote checks in virtual time: how often they ask, how long they
 * wait, when the breaker opens and closes, and what becomes of a request's deadline.
 *
 * The shipped checks on the simulated transport, without faults of the network: the upstream itself
 * misbehaves.
 *
 * tidy: long file because every model is of the same upstreams and who asks them.
 *
 * covers: LED-C09 LED-V07
 */
#include <stdio.h>

#include "base/mem.h"
#include "io/client_sim.h"
#include "ledger/checks.h"
#include "ledger/service.h"
#include "models/ledger_support.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/fault.h"
#include "rt/registry.h"

#define MS         RT_NS_PER_MS
#define CAPABILITY "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OTHER      "k1.01ARZ3NDEKTSV4RRFFQ69G5FAW"

enum manner { YES, SILENT, BROKEN, GARBAGE, WRONG_KID, REFUSES, DENIES, BUSY, MANNERS_COUNT };

struct upstream {
    enum manner manner;
    unsigned asked_count;
    uint64_t epoch;
    bool catches_up; /* an epoch with each answer */
    const char *ref; /* the capability it speaks of */
};
struct clerk { /* who asks */
    struct upstream upstream[LEDGER_CHECK__COUNT];
    struct ledger_checks *checks;
    struct auth_grant grant;
    struct ledger_op op;
    struct ledger_request request;
    bool open[LEDGER_CHECK__COUNT]; /* as reported */
    unsigned reports_count;
};

static void put_reply(struct ron_buf *reply, const char *status, const char *body)
{
    ron_buf_put_format(reply, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body),
                       body);
}

static void serve(void *context, const struct http_head *head, struct ron_slice body,
                  struct ron_buf *reply)
{
    struct upstream *upstream = context;
    char yes[200];

    (void)head;
    RON_ASSERT(body.size > 0);
    upstream->asked_count++;
    (void)snprintf(
        yes, sizeof(yes),
        "{\"later\":[1,{}],\"ok\":true,\"kid\":\"%s\",\"capability_ref\":\"%s\",\"epoch\":%u}",
        upstream->manner == WRONG_KID ? "k2" : "k1", upstream->ref, (unsigned)upstream->epoch);
    upstream->epoch += upstream->catches_up;
    switch (upstream->manner) {
    case YES:
    case WRONG_KID:
        put_reply(reply, "200 OK", yes);
        break;
    case BROKEN:
        put_reply(reply, "500 Oops", "");
        break;
    case GARBAGE:
        put_reply(reply, "200 OK", "{\"ok\":true");
        break;
    case REFUSES:
        put_reply(reply, "403 No", "");
        break;
    case DENIES:
        put_reply(reply, "200 OK", "{\"ok\":false,\"reason\":\"not today\"}");
        break;
    case BUSY:
        put_reply(reply, "429 Later", "");
        break;
    case SILENT:
    case MANNERS_COUNT:
        break;
    }
}

static void heard(void *context, enum ledger_check_port port, bool open)
{
    struct clerk *clerk = context;

    clerk->open[port] = open;
    clerk->reports_count++;
}

/* All that are not `port` are in process; LEDGER_CHECK__COUNT: all are remote. */
static struct ledger_checks_options options_of(struct clerk *clerk, unsigned port)
{
    struct ledger_checks_options options = ledger_checks_defaults();

    options.cache_slots = 64; /* so that two capabilities do not share a row */
    options.policy_rows = AUTH_POLICY_WAYS;
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        const struct io_sim_options network = {.handler = serve, .context = &clerk->upstream[i]};

        if (port != LEDGER_CHECK__COUNT && port != i)
            continue;
        options.remotes[i].connections_max = 2;
        model_must(io_transport_simulated(&network, &options.remotes[i].transport, NULL));
    }
    return options;
}

static struct clerk *open_clerk(unsigned port, uint32_t failures_max, uint32_t cache_ms)
{
    struct clerk *clerk = model_alloc(sizeof(*clerk));
    struct ledger_checks_options options;

    rt_init();
    auth_grant_begin(&clerk->grant, ron_slice_text(CAPABILITY));
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        clerk->upstream[i].ref = CAPABILITY;
    clerk->op = (struct ledger_op){.kind = LEDGER_TRANSFER,
                                   .id_text = RON_SLICE("t1"),
                                   .debit_name = RON_SLICE("alice"),
                                   .credit_name = RON_SLICE("bob"),
                                   .asset_name = RON_SLICE("roc"),
                                   .amount = {5}};
    clerk->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST, .ops = &clerk->op, .ops_count = 1},
        .grant = &clerk->grant,
        .deadline = RT_DEADLINE_NEVER};
    options = options_of(clerk, port);
    options.cache_ms = cache_ms;
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        options.remotes[i].failures_max = failures_max;
    model_must(ledger_checks_new(&options, &clerk->checks, NULL));
    ledger_checks_attach(clerk->checks, heard, clerk);
    return clerk;
}

static void close_clerk(struct clerk *clerk)
{
    clerk->checks = ledger_checks_free(clerk->checks);
    ron_mem_free(clerk);
}

/* One question; gives what it came to, how long it took and how often the upstream was asked. */
static enum ron_err ask(struct clerk *clerk, unsigned port, uint64_t *ret_took_ns,
                        unsigned *ret_asked_count) RON_BLOCKS
{
    const uint64_t begin_ns = rt_now_ns();
    const unsigned before_count = clerk->upstream[port].asked_count;
    enum ron_err err = ledger_checks_ask(clerk->checks, &clerk->request, &(bool){false}, NULL);

    *ret_took_ns = rt_now_ns() - begin_ns;
    *ret_asked_count = clerk->upstream[port].asked_count - before_count;
    return err;
}

/* The seed's table: time of a try, retries, and the sum of their backoffs at least and at most. */
static const struct {
    uint64_t attempt_ms;
    unsigned retries_count;
    uint64_t waits_ms_min, waits_ms_max;
    enum ron_err refusal;
} rows[LEDGER_CHECK__COUNT] = {
    {1000, 2, 150, 300, RON_ERR_UNAUTHORIZED}, /* 50-100, then 100-200 */
    {800, 1, 50, 100, RON_ERR_POLICY_DENIED},
    {1000, 1, 50, 100, RON_ERR_CONFLICT},
};

static bool is_failure(enum manner manner)
{
    return manner == SILENT || manner == BROKEN || manner == GARBAGE || manner == WRONG_KID;
}

static enum ron_err expected_of(enum manner manner, unsigned port)
{
    return manner == YES                           ? RON_ERR_OK
           : manner == SILENT                      ? RON_ERR_TIMEOUT
           : manner == REFUSES || manner == DENIES ? rows[port].refusal
                                                   : RON_ERR_UPSTREAM_UNAVAILABLE;
}

/* covers: LED-C35 covers: LED-C36 covers: LED-C37 covers: LED-C39 covers: LED-C41 */
static void check_question(struct clerk *clerk, unsigned port) RON_BLOCKS
{
    const enum manner manner = clerk->upstream[port].manner;
    unsigned asked_count;
    uint64_t took_ns;
    enum ron_err err = ask(clerk, port, &took_ns, &asked_count);
    uint64_t tries_ns = manner == SILENT
                            ? (rows[port].retries_count + 1) * rows[port].attempt_ms * MS
                            : 0;

    RON_ASSERT(err == expected_of(manner, port));
    if (!is_failure(manner)) {
        RON_ASSERT(asked_count == 1); /* an answer is not asked for again */
        RON_ASSERT(took_ns == 0);
        return;
    }
    RON_ASSERT(asked_count == rows[port].retries_count + 1);
    RON_ASSERT(took_ns >= tries_ns + rows[port].waits_ms_min * MS);
    RON_ASSERT(took_ns <= tries_ns + rows[port].waits_ms_max * MS);
}

/* ---- breaker: opens with the first failed question, half-open after 5 s, one success ---- */

static void refused_at_once(struct clerk *clerk, unsigned port) RON_BLOCKS
{
    unsigned asked_count;
    uint64_t took_ns;

    RON_ASSERT(ask(clerk, port, &took_ns, &asked_count) == RON_ERR_UPSTREAM_UNAVAILABLE);
    RON_ASSERT(took_ns == 0);
    RON_ASSERT(asked_count == 0);
    RON_ASSERT(clerk->open[port]);
    RON_ASSERT(ledger_checks_breaker(clerk->checks, (enum ledger_check_port)port) ==
               RT_BREAKER_OPEN);
}

/* covers: LED-C40 */
static void checks_breaker_fn(void *argument) RON_BLOCKS
{
    const unsigned port = sim_choose(LEDGER_CHECK__COUNT, "port");
    struct clerk *clerk = open_clerk(port, 1, 0);
    struct upstream *upstream = &clerk->upstream[port];
    uint64_t half_open_ns;

    (void)argument;
    upstream->manner = (enum manner)sim_choose(MANNERS_COUNT, "manner");
    check_question(clerk, port);
    sim_outcome(upstream->manner);
    if (!is_failure(upstream->manner)) {
        RON_ASSERT(clerk->reports_count == 0);
        RON_ASSERT(ledger_checks_breaker(clerk->checks, (enum ledger_check_port)port) ==
                   RT_BREAKER_CLOSED);
        check_question(clerk, port);
        close_clerk(clerk);
        return;
    }
    half_open_ns = rt_now_ns() + 5000 * MS;
    refused_at_once(clerk, port);
    sh_sleep_until(half_open_ns - 1);
    refused_at_once(clerk, port);
    sh_sleep_until(half_open_ns);
    check_question(clerk, port); /* the probe fails as the first did */
    half_open_ns = rt_now_ns() + 5000 * MS;
    sh_sleep_until(half_open_ns - 1);
    refused_at_once(clerk, port);
    sh_sleep_until(half_open_ns);
    upstream->manner = YES;
    check_question(clerk, port); /* one success */
    RON_ASSERT(!clerk->open[port]);
    RON_ASSERT(ledger_checks_breaker(clerk->checks, (enum ledger_check_port)port) ==
               RT_BREAKER_CLOSED);
    check_question(clerk, port);
    close_clerk(clerk);
}

/* ---- order: KMS, policy, wallet; the first that does not say yes is the last ---- */

/* Also one that is not there: nothing passes without its yes. covers: LED-C15 LED-F11 LED-S15 */
static void checks_order_fn(void *argument) RON_BLOCKS
{
    struct clerk *clerk = open_clerk(LEDGER_CHECK__COUNT, 1, 0);
    const unsigned port = sim_choose(LEDGER_CHECK__COUNT, "port");
    unsigned asked_count;
    uint64_t took_ns;

    (void)argument;
    clerk->upstream[port].manner = (enum manner)sim_choose(MANNERS_COUNT, "manner");
    RON_ASSERT(ask(clerk, port, &took_ns, &asked_count) ==
               expected_of(clerk->upstream[port].manner, port));
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        const bool reached = i <= port || clerk->upstream[port].manner == YES;

        RON_ASSERT((clerk->upstream[i].asked_count > 0) == reached);
        RON_ASSERT(i == port || clerk->upstream[i].asked_count <= 1);
    }
    sim_outcome(port * MANNERS_COUNT + clerk->upstream[port].manner);
    close_clerk(clerk);
}

static const struct model_case order_cases[] = {
    {.config = {.preemption_bound = NONE}},
};
MODEL(checks_order, "the checks in their order, up to the first that does not say yes",
      checks_order_fn, NULL, order_cases);

/* ---- threshold: three failures in the window, answers between them or not ---- */

static void checks_threshold_fn(void *argument) RON_BLOCKS
{
    const unsigned port = LEDGER_CHECK_POLICY;
    struct clerk *clerk = open_clerk(port, 3, 0);
    struct upstream *upstream = &clerk->upstream[port];
    const bool slow = sim_choose(2, "slow") == 1;

    (void)argument;
    upstream->manner = BROKEN;
    check_question(clerk, port);
    check_question(clerk, port);
    RON_ASSERT(!clerk->open[port]);
    if (slow) /* the first two fall out of the window of 10 s */
        sh_sleep_until(rt_now_ns() + 10000 * MS);
    check_question(clerk, port);
    RON_ASSERT(clerk->open[port] == !slow);
    sim_outcome(slow);
    close_clerk(clerk);
}

/* ---- deadline: one for all, whatever comes ---- */

static void checks_deadline_fn(void *argument) RON_BLOCKS
{
    static const uint32_t patience_ms[] = {1, 40, 900, 1020, 1060, 2500, 9000};
    const unsigned port = sim_choose(LEDGER_CHECK__COUNT, "port");
    const uint32_t ms = patience_ms[sim_choose(RON_ARRAY_COUNT(patience_ms), "patience")];
    struct clerk *clerk = open_clerk(port, 1, 0);
    struct upstream *upstream = &clerk->upstream[port];
    const struct rt_deadline deadline = rt_deadline_after_ms(ms);
    unsigned asked_count;
    uint64_t took_ns;
    enum ron_err err;

    upstream->manner = sim_choose(2, "silent") == 1 ? SILENT : BROKEN;
    if (argument != PLANTED)
        clerk->request.deadline = deadline;
    err = ask(clerk, port, &took_ns, &asked_count);
    RON_ASSERT(err == RON_ERR_TIMEOUT || err == RON_ERR_UPSTREAM_UNAVAILABLE);
    RON_ASSERT(rt_now_ns() <= deadline.at_ns); /* never past it */
    RON_ASSERT(asked_count >= 1);
    /* Before the least backoff and time for a try are over, there is no second one. */
    if (ms < (upstream->manner == SILENT ? rows[port].attempt_ms : 0) + 50 + 5)
        RON_ASSERT(asked_count == 1);
    if (upstream->manner == BROKEN && ms < 50 + 5) /* and nobody waits for it */
        RON_ASSERT(err == RON_ERR_UPSTREAM_UNAVAILABLE && took_ns == 0);
    if (upstream->manner == BROKEN && ms >= 900)
        RON_ASSERT(asked_count == rows[port].retries_count + 1);
    /* Who had no patience says nothing about the upstream. */
    RON_ASSERT(clerk->open[port] == (upstream->manner == BROKEN || ms >= rows[port].attempt_ms));
    sim_outcome(asked_count);
    close_clerk(clerk);
}

/* ---- memory: a capability that verified is not asked about again, for a moment ---- */

static void checks_memory_fn(void *argument) RON_BLOCKS
{
    struct clerk *clerk = open_clerk(LEDGER_CHECK__COUNT, 1, 1000);
    struct upstream *kms = &clerk->upstream[LEDGER_CHECK_KMS];
    struct auth_grant other;
    unsigned asked_count;
    uint64_t took_ns;

    (void)argument;
    auth_grant_begin(&other, ron_slice_text(OTHER));
    kms->epoch = 7;
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    RON_ASSERT(asked_count == 1);
    kms->manner = DENIES;
    sh_sleep_until(rt_now_ns() + 999 * MS);
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    RON_ASSERT(asked_count == 0);
    RON_ASSERT(clerk->upstream[LEDGER_CHECK_POLICY].asked_count == 2); /* amounts: always */
    RON_ASSERT(clerk->upstream[LEDGER_CHECK_WALLET].asked_count == 2);
    clerk->request.grant = &other; /* another one is not this one */
    RON_ASSERT(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count) == RON_ERR_UNAUTHORIZED);
    RON_ASSERT(asked_count == 1);
    clerk->request.grant = &clerk->grant;
    for (unsigned i = 0; i < 3; i++) { /* nor is this one for another purpose */
        const struct ledger_command asked = clerk->request.command;

        if (i == 0)
            clerk->request.command.stamp.tenant.v++;
        else if (i == 1)
            clerk->request.command.stamp.caller = LEDGER_CALLER_REWARDER;
        else
            clerk->request.command.kind = LEDGER_COMMAND_INTENTS;
        RON_ASSERT(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count) == RON_ERR_UNAUTHORIZED);
        RON_ASSERT(asked_count == 1);
        clerk->request.command = asked;
    }
    sh_sleep_until(rt_now_ns() + 1 * MS);
    RON_ASSERT(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count) == RON_ERR_UNAUTHORIZED);
    RON_ASSERT(asked_count == 1);
    RON_ASSERT(clerk->upstream[LEDGER_CHECK_POLICY].asked_count == 2); /* not after a refusal */
    /* Somebody else's answer names a newer epoch: what verified before it is asked again. */
    kms->manner = YES;
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    clerk->request.grant = &other;
    kms->epoch = 8;
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        clerk->upstream[i].ref = OTHER;
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    RON_ASSERT(asked_count == 1);
    clerk->request.grant = &clerk->grant;
    kms->manner = DENIES;
    RON_ASSERT(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count) == RON_ERR_UNAUTHORIZED);
    RON_ASSERT(asked_count == 1);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        clerk->upstream[i].ref = CAPABILITY;
    kms->manner = YES;
    clerk->upstream[LEDGER_CHECK_WALLET].asked_count = 0;
    clerk->request.command.stamp.caller = LEDGER_CALLER_WALLET; /* it is not asked what it sent */
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    RON_ASSERT(asked_count == 1);
    RON_ASSERT(clerk->upstream[LEDGER_CHECK_WALLET].asked_count == 0);
    sim_outcome(asked_count);
    close_clerk(clerk);
}

/* ---- lagging: a yes from before a revocation that is known is none ---- */

static void checks_lagging_fn(void *argument) RON_BLOCKS
{
    struct clerk *clerk = open_clerk(LEDGER_CHECK_KMS, 1, 0);
    struct upstream *kms = &clerk->upstream[LEDGER_CHECK_KMS];
    unsigned asked_count;
    uint64_t took_ns;

    (void)argument;
    kms->epoch = 7;
    model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
    kms->catches_up = sim_choose(2, "catches up") == 1;
    kms->epoch = 6;
    if (kms->catches_up) { /* the next try is answered by one that knows */
        model_must(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count));
        RON_ASSERT(asked_count == 2);
        RON_ASSERT(!clerk->open[LEDGER_CHECK_KMS]);
    } else {
        RON_ASSERT(ask(clerk, LEDGER_CHECK_KMS, &took_ns, &asked_count) ==
                   RON_ERR_UPSTREAM_UNAVAILABLE);
        RON_ASSERT(asked_count == rows[LEDGER_CHECK_KMS].retries_count + 1);
        RON_ASSERT(clerk->open[LEDGER_CHECK_KMS]);
    }
    sim_outcome(asked_count);
    close_clerk(clerk);
}

static const struct model_case one_fiber_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .random_seed = 9}},
};
static const struct model_case deadline_planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_ASSERTION},
};
MODEL(checks_breaker, "a remote check: tries, backoffs, breaker after 5 s, each port and manner",
      checks_breaker_fn, NULL, one_fiber_cases);
MODEL(checks_threshold, "three failures within the window open, beyond it they do not",
      checks_threshold_fn, NULL, one_fiber_cases);
MODEL(checks_deadline, "a remote check never outlives the request's deadline", checks_deadline_fn,
      NULL, one_fiber_cases);
MODEL(checks_deadline_planted, "a check that is not told the deadline", checks_deadline_fn, PLANTED,
      deadline_planted_cases);
MODEL(checks_memory, "verified capabilities are remembered, for a moment and an epoch",
      checks_memory_fn, NULL, one_fiber_cases);
MODEL(checks_lagging, "a yes older than a known revocation is asked for again", checks_lagging_fn,
      NULL, one_fiber_cases);

/* ---- service: readiness follows the breaker, and a drain waits for nobody outside ---- */

enum { CALLS_COUNT = 2, DRAIN_MS = 3000 };

struct desk {
    struct clerk *clerk;
    struct ledger_engine *engine;
    struct ledger_service *service;
    struct call {
        struct ledger_request request;
        struct ledger_op op;
        struct ledger_wire_entry wire;
        struct rt_atomic_u32 answers_count;
        bool taken;
    } calls[CALLS_COUNT];
};

static void answered(struct ledger_request *request, void *context)
{
    struct call *call = context;
    const uint32_t before = rt_atomic_add_u32(&call->answers_count, 1);

    (void)request;
    RON_ASSERT(before == 0);
}

static struct desk *open_desk(void) RON_BLOCKS
{
    const struct ledger_engine_memory_options memory = {1 << 16, 4};
    struct desk *desk = model_alloc(sizeof(*desk));
    struct ledger_service_options options;

    desk->clerk = open_clerk(LEDGER_CHECK_KMS, 1, 0);
    model_must(ledger_engine_memory_new(&memory, &desk->engine, NULL));
    options = ledger_model_options(desk->engine, 8);
    options.ingress_max = options.preval_max = options.commit_max = 2;
    options.window_max = 1;
    options.drain_ms = DRAIN_MS;
    options.classes[0].count = options.commit_max;
    options.checks = desk->clerk->checks;
    model_must(ledger_service_new(&options, &desk->service, NULL));
    model_must(ledger_service_start(desk->service, NULL));
    model_must(ledger_service_await_start(desk->service, RT_DEADLINE_NEVER, NULL));
    return desk;
}

static void close_desk(struct desk *desk)
{
    for (unsigned i = 0; i < CALLS_COUNT; i++)
        RON_ASSERT(rt_atomic_load_u32(&desk->calls[i].answers_count) ==
                   (desk->calls[i].taken ? 1 : 0));
    (void)ledger_service_free(desk->service);
    (void)ledger_engine_memory_free(desk->engine);
    close_clerk(desk->clerk);
    ron_mem_free(desk);
}

static void submit(struct desk *desk, unsigned number)
{
    static const char *const ids[CALLS_COUNT] = {"a", "b"};
    struct call *call = &desk->calls[number];

    *call = (struct call){.wire = {.id = ron_slice_text(ids[number]),
                                   .kind = RON_SLICE("Mint"),
                                   .to = RON_SLICE("alice"),
                                   .asset = RON_SLICE("roc"),
                                   .amount = RON_SLICE("5")}};
    call->request = (struct ledger_request){.command = {.kind = LEDGER_COMMAND_INGEST},
                                            .wire = &call->wire,
                                            .wire_count = 1,
                                            .ops_room = &call->op,
                                            .size = 1,
                                            .grant = &desk->clerk->grant,
                                            .deadline = RT_DEADLINE_NEVER,
                                            .done = answered,
                                            .context = call};
    call->taken = ledger_submit(desk->service, &call->request, NULL) == RON_ERR_OK;
}

static enum ron_err outcome_of(struct desk *desk, unsigned number)
{
    while (rt_atomic_load_u32(&desk->calls[number].answers_count) == 0)
        rt_fault_delay_ms(1);
    return desk->calls[number].request.outcome.err;
}

static void is_ready(struct desk *desk, unsigned planes)
{
    struct ledger_health health;

    ledger_read_health(desk->service, &health);
    RON_ASSERT(health.ready == planes);
}

/* covers: LED-F11 LED-S15 LED-V10 */
static void checks_ready_fn(void *argument) RON_BLOCKS
{
    struct desk *desk = open_desk();
    struct upstream *kms = &desk->clerk->upstream[LEDGER_CHECK_KMS];

    (void)argument;
    kms->manner = BROKEN;
    is_ready(desk, RT_PLANES_ALL);
    submit(desk, 0);
    RON_ASSERT(outcome_of(desk, 0) == RON_ERR_UPSTREAM_UNAVAILABLE);
    is_ready(desk, RT_PLANE_READ);                        /* before the caller has its answer */
    RON_ASSERT(ledger_engine_durable(desk->engine) == 0); /* nothing is written unchecked */
    rt_fault_delay_ms(4900);
    is_ready(desk, RT_PLANE_READ);
    rt_fault_delay_ms(200);
    is_ready(desk, RT_PLANES_ALL); /* half-open: without traffic, too */
    kms->manner = YES;
    submit(desk, 0);
    RON_ASSERT(outcome_of(desk, 0) == RON_ERR_OK);
    is_ready(desk, RT_PLANES_ALL);
    model_must(ledger_service_stop(desk->service, NULL, NULL));
    sim_outcome(kms->asked_count);
    close_desk(desk);
}

static void client_fn(void *argument)
{
    for (unsigned i = 0; i < CALLS_COUNT; i++)
        submit(argument, i);
}

/* A silent KMS and a shutdown at any moment: all are answered and the drain is in time. */
static void checks_drain_fn(void *argument) RON_BLOCKS
{
    struct desk *desk = open_desk();
    struct sh_thread *client;
    uint64_t begin_ns;

    (void)argument;
    desk->clerk->upstream[LEDGER_CHECK_KMS].manner = SILENT;
    client = model_spawn("client", client_fn, desk);
    rt_fault_delay_ms(sim_choose(2, "later") == 1 ? 500 : 0);
    begin_ns = rt_now_ns();
    model_must(ledger_service_stop(desk->service, NULL, NULL));
    RON_ASSERT(rt_now_ns() - begin_ns <= DRAIN_MS / 2 * MS);
    model_join(client);
    for (unsigned i = 0; i < CALLS_COUNT; i++)
        RON_ASSERT(!desk->calls[i].taken || desk->calls[i].request.outcome.err == RON_ERR_DRAINING);
    sim_outcome(desk->calls[0].taken * 2u + desk->calls[1].taken);
    close_desk(desk);
}

static const struct model_case service_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .steps_max = 20000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 200},
    {.config = {.preemption_bound = NONE, .steps_max = 20000},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 200},
};
MODEL(checks_ready, "an open breaker: writes are not ready, reads are, and back after 5 s",
      checks_ready_fn, NULL, service_cases);
MODEL(checks_drain, "a drain does not wait for a check that nobody answers", checks_drain_fn, NULL,
      service_cases);
