/*
 * ledger_parked.c - the ledger's pipeline while answers from outside are slow: many requests are
 * parked, and nobody waits with them.
 *
 * The shipped service and checks on the simulated transport, in virtual time: two prevalidators,
 * upstreams that think for half a second, or say nothing at all.
 *
 * tidy: long file because every model is of the same upstreams and who asks them.
 */
#include <stdio.h>

#include "base/mem.h"
#include "io/client_sim.h"
#include "ledger/service.h"
#include "models/ledger_support.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/fault.h"
#include "rt/registry.h"
#include "rt/task.h"

#define MS  RT_NS_PER_MS
#define REF "k1.01ARZ3NDEKTSV4RRFFQ69G5F"

enum {
    CROWD = 200,
    FEW = 5,
    THINK_MS = 500,
    DRAIN_MS = 3000,
    REF_SIZE = sizeof(REF) + 1,
    TOO_MUCH = 2
};
enum manner { YES, SILENT, DENIES, BROKEN };

struct upstream {
    enum manner manner;
    unsigned asked_count;
    uint64_t epoch;
    bool timeless; /* names none */
};
struct call {
    struct ledger_request request;
    struct ledger_op op;
    struct ledger_wire_entry wire;
    struct auth_grant grant;
    char id[8], ref[REF_SIZE + 1];
    struct rt_atomic_u32 answers_count;
    uint64_t answered_ns;
    bool taken;
};
struct hall {
    struct upstream upstream[LEDGER_CHECK__COUNT];
    struct ledger_checks *checks;
    struct ledger_engine *engine;
    struct ledger_service *service;
    struct call calls[CROWD];
};
struct plan {
    unsigned ports; /* remote ones, a bit for each */
    uint32_t in_flight_max, connections_max, think_ms, cache_ms;
    bool once; /* no retries */
    ledger_check_fn *check;
};

static const struct plan plain = {
    .ports = 1u << LEDGER_CHECK_KMS, .in_flight_max = CROWD, .think_ms = THINK_MS};

/* The answer is about the capability that the question names. */
static void serve(void *context, const struct http_head *head, struct ron_slice body,
                  struct ron_buf *reply)
{
    static const char before[] = "{\"kid\":\"k1\",\"capability_ref\":\"";
    struct upstream *upstream = context;
    char text[200];

    (void)head;
    RON_ASSERT(body.size > sizeof(before) + REF_SIZE);
    upstream->asked_count++;
    if (upstream->manner == SILENT)
        return;
    if (upstream->manner == YES)
        (void)snprintf(text, sizeof(text), "%.*s\",\"ok\":true,\"%s\":%u}",
                       (int)(sizeof(before) - 1 + REF_SIZE), (const char *)body.data,
                       upstream->timeless ? "x" : "epoch", (unsigned)upstream->epoch);
    else
        (void)snprintf(text, sizeof(text), "{\"ok\":false}");
    ron_buf_put_format(reply, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s",
                       upstream->manner == BROKEN ? "500 x" : "200 OK", strlen(text), text);
}

static struct hall *open_hall(const struct plan *plan) RON_BLOCKS
{
    const struct ledger_engine_memory_options memory = {1 << 20, 2 * CROWD};
    struct hall *hall = model_alloc(sizeof(*hall));
    struct ledger_checks_options checks = ledger_checks_defaults();
    struct ledger_service_options options;

    rt_init();
    checks.cache_slots = 64;
    checks.cache_ms = plan->cache_ms;
    checks.policy_rows = AUTH_POLICY_WAYS;
    checks.in_flight_max = plan->in_flight_max;
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        const struct io_sim_options network = {
            .handler = serve, .context = &hall->upstream[i], .think_ns = plan->think_ms * MS};

        if ((plan->ports >> i & 1) == 0)
            continue;
        checks.remotes[i].connections_max = plan->connections_max;
        if (plan->once)
            checks.remotes[i].retries_max = 0;
        model_must(io_transport_simulated(&network, &checks.remotes[i].transport, NULL));
    }
    model_must(ledger_checks_new(&checks, &hall->checks, NULL));
    model_must(ledger_engine_memory_new(&memory, &hall->engine, NULL));
    options = ledger_model_options(hall->engine, 2 * CROWD);
    options.prevalidators_count = 2;
    options.ingress_max = options.preval_max = options.commit_max = CROWD;
    options.drain_ms = DRAIN_MS;
    options.classes[0].count = options.commit_max;
    options.checks = hall->checks;
    options.check = plan->check;
    model_must(ledger_service_new(&options, &hall->service, NULL));
    model_must(ledger_service_start(hall->service, NULL));
    model_must(ledger_service_await_start(hall->service, RT_DEADLINE_NEVER, NULL));
    return hall;
}

static void close_hall(struct hall *hall) RON_BLOCKS
{
    const struct ledger_checks_parked parked = ledger_checks_get_parked(hall->checks);

    RON_ASSERT(parked.count == 0);
    RON_ASSERT(parked.bytes == 0);
    for (unsigned i = 0; i < CROWD; i++)
        RON_ASSERT(rt_atomic_load_u32(&hall->calls[i].answers_count) ==
                   (hall->calls[i].taken ? 1 : 0));
    (void)ledger_service_free(hall->service);
    (void)ledger_engine_memory_free(hall->engine);
    (void)ledger_checks_free(hall->checks);
    ron_mem_free(hall);
}

static void stop_hall(struct hall *hall) RON_BLOCKS
{
    model_must(ledger_service_stop(hall->service, NULL, NULL));
    close_hall(hall);
}

static void answered(struct ledger_request *request, void *context)
{
    struct call *call = context;

    (void)request;
    call->answered_ns = rt_now_ns();
    RON_ASSERT(rt_atomic_add_u32(&call->answers_count, 1) == 0);
}

/* A mint with the capability of that number. */
static struct call *submit_sized(struct hall *hall, unsigned number, unsigned capability,
                                 struct rt_deadline deadline, uint32_t size)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    struct call *call = &hall->calls[number];

    *call = (struct call){.wire = {.kind = RON_SLICE("Mint"),
                                   .to = RON_SLICE("alice"),
                                   .asset = RON_SLICE("roc"),
                                   .amount = RON_SLICE("5")}};
    (void)snprintf(call->id, sizeof(call->id), "m%u", number);
    (void)snprintf(call->ref, sizeof(call->ref), REF "%c%c", digits[capability / 32],
                   digits[capability % 32]);
    auth_grant_begin(&call->grant, ron_slice_text(call->ref));
    call->wire.id = ron_slice_text(call->id);
    call->request = (struct ledger_request){.command = {.kind = LEDGER_COMMAND_INGEST},
                                            .wire = &call->wire,
                                            .wire_count = 1,
                                            .ops_room = &call->op,
                                            .size = size,
                                            .grant = &call->grant,
                                            .deadline = deadline,
                                            .done = answered,
                                            .context = call};
    call->taken = true; /* before: the answer may come first */
    call->taken = ledger_submit(hall->service, &call->request, NULL) == RON_ERR_OK;
    return call;
}

static struct call *submit(struct hall *hall, unsigned number, unsigned capability,
                           struct rt_deadline deadline)
{
    return submit_sized(hall, number, capability, deadline, 1);
}

static bool is_answered(struct call *call)
{
    return rt_atomic_load_u32(&call->answers_count) != 0;
}

static enum ron_err outcome_of(struct call *call)
{
    while (!is_answered(call))
        rt_fault_delay_ms(1);
    return call->request.outcome.err;
}

/* ---- crowd: a round trip for each port, not for each request ---- */

static void parked_crowd_fn(void *argument) RON_BLOCKS
{
    static const unsigned ports[] = {1u << LEDGER_CHECK_KMS, 1u << LEDGER_CHECK_POLICY,
                                     1u << LEDGER_CHECK_KMS | 1u << LEDGER_CHECK_POLICY};
    const unsigned trips[] = {1, 1, 2};
    const unsigned which = sim_choose(RON_ARRAY_COUNT(ports), "ports");
    struct plan plan = plain;
    struct hall *hall;
    uint64_t begin_ns;

    plan.ports = ports[which];
    plan.connections_max = argument == PLANTED ? 2 : 0; /* as if each prevalidator had to wait */
    hall = open_hall(&plan);
    begin_ns = rt_now_ns();
    for (unsigned i = 0; i < CROWD; i++)
        (void)submit(hall, i, i, RT_DEADLINE_NEVER);
    for (unsigned i = 0; i < CROWD; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_OK);
        RON_ASSERT(hall->calls[i].answered_ns - begin_ns <= (trips[which] * THINK_MS + 5) * MS);
    }
    RON_ASSERT(ledger_checks_get_parked(hall->checks).peak == CROWD);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        RON_ASSERT(hall->upstream[i].asked_count == ((plan.ports >> i & 1) != 0 ? CROWD : 0));
    sim_outcome(which);
    stop_hall(hall);
}

/* ---- beside: who needs no answer from outside does not wait for those who do ---- */

static void parked_beside_fn(void *argument) RON_BLOCKS
{
    struct plan plan = plain;
    struct hall *hall;
    struct ledger_health health;
    uint64_t begin_ns;

    (void)argument;
    plan.cache_ms = 60000;
    hall = open_hall(&plan);
    RON_ASSERT(outcome_of(submit(hall, 0, 0, RT_DEADLINE_NEVER)) == RON_ERR_OK);
    hall->upstream[LEDGER_CHECK_KMS].manner = SILENT;
    for (unsigned i = 1; i <= FEW; i++)
        (void)submit(hall, i, i, rt_deadline_after_ms(400));
    rt_fault_delay_ms(10);
    begin_ns = rt_now_ns();
    RON_ASSERT(outcome_of(submit(hall, FEW + 1, 0, RT_DEADLINE_NEVER)) == RON_ERR_OK);
    RON_ASSERT(hall->calls[FEW + 1].answered_ns == begin_ns);
    ledger_read_health(hall->service, &health);
    RON_ASSERT(health.parked == FEW);
    RON_ASSERT(health.held_bytes > FEW);
    for (unsigned i = 1; i <= FEW; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_TIMEOUT);
        RON_ASSERT(hall->calls[i].answered_ns == hall->calls[i].request.deadline.at_ns);
    }
    ledger_read_health(hall->service, &health);
    RON_ASSERT(health.held_bytes == 0);
    sim_outcome(hall->upstream[LEDGER_CHECK_KMS].asked_count);
    stop_hall(hall);
}

/* ---- full: a typed answer at the bound, and room again behind it ---- */

static void parked_full_fn(void *argument) RON_BLOCKS
{
    struct plan plan = plain;
    struct hall *hall;
    uint64_t begin_ns;
    unsigned busy_count = 0;

    (void)argument;
    plan.in_flight_max = 2;
    hall = open_hall(&plan);
    for (unsigned round = 0; round < 2; round++) {
        begin_ns = rt_now_ns();
        for (unsigned i = 0; i < 3; i++)
            (void)submit(hall, i, i, RT_DEADLINE_NEVER);
        for (unsigned i = 0; i < 3; i++) {
            const enum ron_err err = outcome_of(&hall->calls[i]);
            const bool busy = err == RON_ERR_BUSY;

            busy_count += busy;
            RON_ASSERT(err == RON_ERR_OK || busy);
            RON_ASSERT(hall->calls[i].answered_ns - begin_ns == (busy ? 0 : THINK_MS * MS));
        }
        RON_ASSERT(busy_count == round + 1);
    }
    sim_outcome(busy_count);
    stop_hall(hall);
}

/* ---- once: one capability, one question; each has its own deadline ---- */

static void parked_once_fn(void *argument) RON_BLOCKS
{
    const unsigned variant = sim_choose(4, "variant");
    const enum manner manners[] = {YES, DENIES, BROKEN, YES};
    const enum ron_err expected[] = {RON_ERR_OK, RON_ERR_UNAUTHORIZED, RON_ERR_UPSTREAM_UNAVAILABLE,
                                     RON_ERR_OK};
    struct hall *hall = open_hall(&plain);
    struct upstream *kms = &hall->upstream[LEDGER_CHECK_KMS];
    uint64_t begin_ns;

    (void)argument;
    kms->manner = manners[variant];
    begin_ns = rt_now_ns();
    for (unsigned i = 0; i < FEW; i++)
        (void)submit(hall, i, 7, RT_DEADLINE_NEVER);
    if (variant == 3) /* of another's question nothing is known */
        (void)submit(hall, FEW, 8, RT_DEADLINE_NEVER);
    for (unsigned i = 0; i < FEW; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == expected[variant]);
        if (variant != 2)
            RON_ASSERT(hall->calls[i].answered_ns - begin_ns == THINK_MS * MS);
        else /* they have waited for the same tries */
            RON_ASSERT(hall->calls[i].answered_ns == hall->calls[0].answered_ns);
    }
    RON_ASSERT(ledger_checks_get_parked(hall->checks).asked_once == FEW - 1);
    RON_ASSERT(variant != 3 || outcome_of(&hall->calls[FEW]) == RON_ERR_OK);
    RON_ASSERT(kms->asked_count == (variant == 2 ? 3 : variant == 3 ? 2 : 1));
    sim_outcome(variant);
    stop_hall(hall);
}

/* The first asks and has no patience; who waits with it asks in its place, and who has less
 * patience still does not wait longer. */
static void parked_impatient_fn(void *argument) RON_BLOCKS
{
    struct plan plan = plain;
    struct hall *hall;

    (void)argument;
    plan.think_ms = 300;
    hall = open_hall(&plan);
    (void)submit(hall, 0, 7, rt_deadline_after_ms(200));
    rt_fault_delay_ms(1);
    (void)submit(hall, 1, 7, rt_deadline_after_ms(100));
    (void)submit(hall, 2, 7, RT_DEADLINE_NEVER);
    (void)submit(hall, 3, 7, RT_DEADLINE_NEVER);
    for (unsigned i = 0; i < 2; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_TIMEOUT);
        RON_ASSERT(hall->calls[i].answered_ns == hall->calls[i].request.deadline.at_ns);
    }
    for (unsigned i = 2; i < 4; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_OK);
        RON_ASSERT(hall->calls[i].answered_ns ==
                   hall->calls[0].request.deadline.at_ns + plan.think_ms * MS);
    }
    RON_ASSERT(hall->upstream[LEDGER_CHECK_KMS].asked_count == 2);
    sim_outcome(0);
    stop_hall(hall);
}

/* A yes from before a revocation that became known meanwhile is nobody else's yes. */
static void parked_revoked_fn(void *argument) RON_BLOCKS
{
    struct hall *hall = open_hall(&plain);
    struct upstream *kms = &hall->upstream[LEDGER_CHECK_KMS];

    (void)argument;
    kms->epoch = 4;
    RON_ASSERT(outcome_of(submit(hall, 0, 9, RT_DEADLINE_NEVER)) == RON_ERR_OK);
    kms->epoch = 5; /* it says so about 8, but of 7 it does not know yet */
    (void)submit(hall, 1, 8, RT_DEADLINE_NEVER);
    rt_fault_delay_ms(10);
    kms->epoch = 4;
    (void)submit(hall, 2, 7, RT_DEADLINE_NEVER);
    rt_fault_delay_ms(10);
    (void)submit(hall, 3, 7, RT_DEADLINE_NEVER); /* waits with that one */
    RON_ASSERT(outcome_of(&hall->calls[1]) == RON_ERR_OK);
    kms->epoch = 5;
    kms->manner = DENIES;
    RON_ASSERT(outcome_of(&hall->calls[2]) == RON_ERR_OK); /* its own question */
    RON_ASSERT(outcome_of(&hall->calls[3]) == RON_ERR_UNAUTHORIZED);
    RON_ASSERT(kms->asked_count == 4);
    sim_outcome(kms->asked_count);
    stop_hall(hall);
}

/* Where the answers cannot be shared, nobody waits for more than one other. */
static void parked_apart_fn(void *argument) RON_BLOCKS
{
    struct hall *hall = open_hall(&plain);
    struct upstream *kms = &hall->upstream[LEDGER_CHECK_KMS];
    uint64_t begin_ns;

    (void)argument;
    kms->epoch = 4;
    RON_ASSERT(outcome_of(submit(hall, 0, 9, RT_DEADLINE_NEVER)) == RON_ERR_OK);
    kms->timeless = true; /* as if from before all revocations */
    begin_ns = rt_now_ns();
    for (unsigned i = 1; i <= FEW; i++)
        (void)submit(hall, i, 7, RT_DEADLINE_NEVER);
    for (unsigned i = 1; i <= FEW; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_OK);
        RON_ASSERT(hall->calls[i].answered_ns - begin_ns <= 2 * THINK_MS * MS);
    }
    RON_ASSERT(kms->asked_count == 1 + FEW);
    sim_outcome(kms->asked_count);
    stop_hall(hall);
}

/* Who waits for a connection of ours until there is no time left says nothing of the upstream. */
static void parked_queued_fn(void *argument) RON_BLOCKS
{
    struct plan plan = plain;
    struct hall *hall;
    unsigned late_count = 0;

    (void)argument;
    plan.connections_max = 1;
    plan.think_ms = 900; /* of the second that a try has */
    plan.once = true;
    hall = open_hall(&plan);
    for (unsigned i = 0; i < 3; i++)
        (void)submit(hall, i, i, RT_DEADLINE_NEVER);
    for (unsigned i = 0; i < 3; i++) {
        const enum ron_err err = outcome_of(&hall->calls[i]);

        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_TIMEOUT);
        late_count += err == RON_ERR_TIMEOUT;
    }
    RON_ASSERT(late_count == 2);
    RON_ASSERT(ledger_checks_breaker(hall->checks, LEDGER_CHECK_KMS) == RT_BREAKER_CLOSED);
    hall->upstream[LEDGER_CHECK_KMS].manner = SILENT; /* but who had it all does */
    RON_ASSERT(outcome_of(submit(hall, 3, 3, RT_DEADLINE_NEVER)) == RON_ERR_TIMEOUT);
    RON_ASSERT(ledger_checks_breaker(hall->checks, LEDGER_CHECK_KMS) == RT_BREAKER_OPEN);
    sim_outcome(late_count);
    stop_hall(hall);
}

/* ---- drain: at any moment; all are answered, and nobody waits long ---- */

static void client_fn(void *argument)
{
    for (unsigned i = 0; i < 3; i++)
        (void)submit(argument, i, i / 2, RT_DEADLINE_NEVER); /* two have the same capability */
}

static void parked_drain_fn(void *argument) RON_BLOCKS
{
    struct plan plan = plain;
    struct hall *hall;
    struct sh_thread *client;
    uint64_t begin_ns;
    bool silent;

    (void)argument;
    plan.ports = 1u << LEDGER_CHECK_KMS | 1u << LEDGER_CHECK_POLICY;
    hall = open_hall(&plan);
    silent = sim_choose(2, "silent") == 1;
    hall->upstream[sim_choose(2, "which")].manner = silent ? SILENT : YES;
    client = model_spawn("client", client_fn, hall);
    rt_fault_delay_ms(sim_choose(2, "later") == 1 ? 600 : 0);
    begin_ns = rt_now_ns();
    model_must(ledger_service_stop(hall->service, NULL, NULL));
    RON_ASSERT(rt_now_ns() - begin_ns <= DRAIN_MS / 2 * MS);
    model_join(client);
    for (unsigned i = 0; i < 3; i++)
        RON_ASSERT(!hall->calls[i].taken ||
                   hall->calls[i].request.outcome.err == (silent ? RON_ERR_DRAINING : RON_ERR_OK));
    sim_outcome(0u + hall->calls[0].taken + hall->calls[1].taken + hall->calls[2].taken);
    close_hall(hall);
}

/* ---- panic: of a prevalidator beside, or of the task that has the answer ---- */

static enum ron_err panics(struct ledger_request *request, void *context,
                           struct ron_errinfo *reterr)
{
    (void)request;
    (void)context;
    (void)reterr;
    rt_panic("a confirmation");
}

static enum ron_err panics_at_last(void *context, const struct ledger_request *request,
                                   struct ron_errinfo *reterr)
{
    (void)context;
    (void)reterr;
    if (request->size == TOO_MUCH)
        rt_panic("a check");
    return RON_ERR_OK;
}

static void parked_panic_fn(void *argument) RON_BLOCKS
{
    const bool beside = sim_choose(2, "beside") == 1;
    const unsigned victim = sim_choose(2, "victim");
    struct plan plan = plain;
    struct hall *hall;
    uint64_t begin_ns;

    (void)argument;
    plan.check = beside ? panics_at_last : NULL;
    hall = open_hall(&plan);
    begin_ns = rt_now_ns();
    for (unsigned i = 0; i < 2; i++)
        (void)submit(hall, i, i, RT_DEADLINE_NEVER);
    rt_fault_delay_ms(1);
    (void)submit(hall, 2, 2, RT_DEADLINE_NEVER);
    rt_fault_delay_ms(1);
    hall->calls[victim].request.confirm = beside ? NULL : panics; /* parked: nobody looks yet */
    if (beside)
        RON_ASSERT(outcome_of(submit_sized(hall, 3, 3, RT_DEADLINE_NEVER, TOO_MUCH)) ==
                   RON_ERR_INTERNAL);
    for (unsigned i = 0; i < 3; i++) {
        RON_ASSERT(outcome_of(&hall->calls[i]) ==
                   (beside || i != victim ? RON_ERR_OK : RON_ERR_INTERNAL));
        /* No answer was overlooked, until its deadline had it looked for. */
        RON_ASSERT(hall->calls[i].answered_ns - begin_ns < 2 * THINK_MS * MS);
    }
    RON_ASSERT(outcome_of(submit(hall, 4, 4, RT_DEADLINE_NEVER)) == RON_ERR_OK);
    RON_ASSERT(hall->upstream[LEDGER_CHECK_KMS].asked_count == 4);
    sim_outcome(beside * 2u + victim);
    stop_hall(hall);
}

/* A task of a port that fails again and again is given up: whoever waits for it is told so. */
static void parked_abandoned_fn(void *argument) RON_BLOCKS
{
    struct hall *hall = open_hall(&plain);
    unsigned failed_count = 0;
    enum ron_err err = RON_ERR_INTERNAL;

    (void)argument;
    for (; err == RON_ERR_INTERNAL; failed_count++) {
        (void)submit(hall, failed_count, failed_count, RT_DEADLINE_NEVER);
        rt_fault_delay_ms(1);
        if (!is_answered(&hall->calls[failed_count]))
            hall->calls[failed_count].request.confirm = panics;
        err = outcome_of(&hall->calls[failed_count]);
    }
    RON_ASSERT(err == RON_ERR_UPSTREAM_UNAVAILABLE);
    RON_ASSERT(failed_count == 7); /* six panics, then the answer at once */
    sim_outcome(failed_count);
    stop_hall(hall);
}

/* It waits for its restart, longer than the drain does: whoever is parked is answered all the same.
 */
static void parked_restart_fn(void *argument) RON_BLOCKS
{
    enum { PANICS = 5 };
    struct hall *hall = open_hall(&plain);
    uint64_t begin_ns;

    (void)argument;
    for (unsigned i = 0; i < PANICS; i++) {
        (void)submit(hall, i, i, RT_DEADLINE_NEVER);
        rt_fault_delay_ms(1);
        hall->calls[i].request.confirm = panics;
        RON_ASSERT(outcome_of(&hall->calls[i]) == RON_ERR_INTERNAL);
    }
    for (unsigned i = PANICS; i < PANICS + 2; i++)
        (void)submit(hall, i, i, RT_DEADLINE_NEVER);
    begin_ns = rt_now_ns();
    (void)!ledger_service_stop(hall->service, NULL, NULL);
    RON_ASSERT(rt_now_ns() - begin_ns <= (DRAIN_MS + 1000) * MS);
    for (unsigned i = PANICS; i < PANICS + 2; i++)
        RON_ASSERT(hall->calls[i].request.outcome.err == RON_ERR_DRAINING ||
                   hall->calls[i].request.outcome.err == RON_ERR_OK);
    sim_outcome(hall->calls[PANICS].request.outcome.err);
    close_hall(hall);
}

static const struct model_case crowd_cases[] = {
    {.config = {.preemption_bound = NONE, .steps_max = 200000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 20},
};
static const struct model_case crowd_planted_cases[] = {
    {.config = {.preemption_bound = NONE, .steps_max = 200000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 20,
     .expected = SIM_ASSERTION},
};
static const struct model_case service_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .steps_max = 40000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 200},
    {.config = {.preemption_bound = NONE, .steps_max = 40000},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 200},
};
static const struct model_case abandoned_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .steps_max = 40000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 40},
};
MODEL(parked_crowd, "200 requests and two prevalidators: one round trip for each port",
      parked_crowd_fn, NULL, crowd_cases);
MODEL(parked_crowd_planted, "the same, two at a time", parked_crowd_fn, PLANTED,
      crowd_planted_cases);
MODEL(parked_beside, "a silent KMS delays nobody who does not need it", parked_beside_fn, NULL,
      service_cases);
MODEL(parked_full, "beyond what may be parked: Busy, at once", parked_full_fn, NULL, service_cases);
MODEL(parked_once, "one capability is asked about once, whatever the answer", parked_once_fn, NULL,
      service_cases);
MODEL(parked_impatient, "who waits for another's question keeps its own deadline",
      parked_impatient_fn, NULL, service_cases);
MODEL(parked_revoked, "a yes from before a known revocation is not shared", parked_revoked_fn, NULL,
      service_cases);
MODEL(parked_apart, "answers that cannot be shared are asked for side by side", parked_apart_fn,
      NULL, service_cases);
MODEL(parked_queued, "a queue for our own connections opens no breaker", parked_queued_fn, NULL,
      service_cases);
MODEL(parked_drain, "a drain at any moment answers all that are parked", parked_drain_fn, NULL,
      service_cases);
MODEL(parked_panic, "a panic takes one request with it, of those that are parked none",
      parked_panic_fn, NULL, service_cases);
MODEL(parked_restart, "a port whose task is to be restarted does not outlast the drain",
      parked_restart_fn, NULL, abandoned_cases);
MODEL(parked_abandoned, "a port whose task has given up answers at once", parked_abandoned_fn, NULL,
      abandoned_cases);
