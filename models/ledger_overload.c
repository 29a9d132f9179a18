/*
 * ledger_overload.c - ten times what the ledger can do, for ten seconds of virtual time.
 *
 * The disk takes 100 ms for a sync, so a second has room for about ten groups of what the commit
 * slots hold; clients send more than ten times that and wait for nothing. At every moment: what the
 * service holds stays below its budgets in bytes, by its own count and by the callers', and it
 * allocates nothing; who is refused is told so by one of three codes, all of which say "come back".
 * Meanwhile work goes on as fast as the disk does. When the load ends, everybody who was taken is
 * answered within 5 s, whether the service goes on or is stopped at that moment.
 *
 * covers: LED-V03 LED-V20
 */
#include <stdio.h>

#include "base/mem.h"
#include "ledger/service.h"
#include "models/ledger_support.h"
#include "models/support.h"
#include "rt/clock.h"
#include "rt/fault.h"
#include "rt/registry.h"

enum {
    SYNC_MS = 100,
    LOAD_MS = 10000,
    TICK_MS = 10,
    EACH_TICK = 12,
    PREVALIDATORS = 2,
    INGRESS = 8,
    PREVAL = 8,
    SLOTS = 40,
    WINDOW = 4,
    SIZE_STEP = 512, /* requests are 1 to 8 of these */
    SIZE_MOST = 8 * SIZE_STEP,
    BYTES_MAX = 20480, /* of each queue, and of the slots: they are full before their places are */
    BUDGET = 3 * BYTES_MAX,
    /* What is in somebody's hands: one each, and the Sequencer's window. */
    IN_HAND = (PREVALIDATORS + WINDOW) * SIZE_MOST,
    CALLS_MAX = INGRESS + PREVAL + SLOTS + PREVALIDATORS + WINDOW + EACH_TICK, /* and who knocks */
    ANSWERED_MIN = LOAD_MS / SYNC_MS * (BYTES_MAX / SIZE_MOST),
    DRAIN_MS = 5000,
};

struct call {
    struct world *world;
    bool busy;
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    char id[16];
};

/* An engine that counts: as a disk, without keeping anything. */
struct counter {
    struct ledger_engine head;
    uint64_t appended, durable;
};

struct world {
    struct counter counter;
    struct ledger_service *service;
    struct call calls[CALLS_MAX];
    uint64_t sent_count, answered_count, evicted_count, refused_count, busy_count;
    uint64_t held_bytes; /* of who was taken and not answered */
    uint32_t allocations_count;
};

/* --- The disk ----------------------------------------------------------------------------------
 */

static struct counter *counter_of(struct ledger_engine *engine)
{
    return (struct counter *)engine;
}

static enum ron_err counter_recover(struct ledger_engine *engine, uint64_t first,
                                    ledger_frame_fn *fn, void *context, struct ron_errinfo *reterr)
{
    (void)engine, (void)first, (void)fn, (void)context, (void)reterr;
    return RON_ERR_OK;
}

static enum ron_err counter_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                   size_t parts_count, struct rt_deadline deadline,
                                   uint64_t *ret_number, struct ron_errinfo *reterr)
{
    (void)parts, (void)parts_count, (void)deadline, (void)reterr;
    *ret_number = ++counter_of(engine)->appended;
    return RON_ERR_OK;
}

static enum ron_err counter_wait(struct ledger_engine *engine, uint64_t number,
                                 struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t appended = counter_of(engine)->appended;

    (void)number, (void)deadline, (void)reterr;
    rt_fault_delay_ms(SYNC_MS);
    counter_of(engine)->durable = appended;
    return RON_ERR_OK;
}

static uint64_t counter_durable(struct ledger_engine *engine)
{
    return counter_of(engine)->durable;
}

static enum ron_err counter_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                                 struct ron_errinfo *reterr)
{
    (void)engine, (void)buf;
    return ron_fail(reterr, RON_ERR_NOT_FOUND, "frame %llu was only counted",
                    (unsigned long long)number);
}

static enum ron_err counter_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                  struct ron_errinfo *reterr)
{
    (void)deadline, (void)reterr;
    engine->clean = true;
    return RON_ERR_OK;
}

static const struct ledger_engine_ops counter_ops = {
    .name = "counter",
    .recover = counter_recover,
    .append = counter_append,
    .wait = counter_wait,
    .durable = counter_durable,
    .read = counter_read,
    .close = counter_close,
};

/* --- Clients -----------------------------------------------------------------------------------
 */

/* One of the three, and it says that the same may succeed later. */
static void check_refusal(struct world *world, enum ron_err err, const struct ron_errinfo *info)
{
    RON_ASSERT(info->err == err);
    RON_ASSERT(info->message[0] != '\0');
    RON_ASSERT(ron_err_retryable(err));
    RON_ASSERT(ron_err_retry_after(err));
    world->busy_count += err == RON_ERR_BUSY ? 1 : 0;
    world->evicted_count += err == RON_ERR_PREVAL_DROP_OLDEST ? 1 : 0;
    world->refused_count += err == RON_ERR_COMMIT_BACKPRESSURE ? 1 : 0;
    RON_ASSERT(err == RON_ERR_BUSY || err == RON_ERR_PREVAL_DROP_OLDEST ||
               err == RON_ERR_COMMIT_BACKPRESSURE);
}

static void done(struct ledger_request *request, void *context)
{
    struct call *call = context;
    struct world *world = call->world;

    RON_ASSERT(call->busy); /* answered once */
    call->busy = false;
    world->held_bytes -= request->size;
    if (request->outcome.err != RON_ERR_OK) {
        RON_ASSERT(!request->outcome.unknown);
        check_refusal(world, request->outcome.err, &request->outcome.info);
        return;
    }
    world->answered_count++;
    RON_ASSERT(request->outcome.reply.batch <= world->counter.durable);
}

/* There is always one: places are bounded, too. */
static struct call *free_call(struct world *world)
{
    for (unsigned i = 0;; i++) {
        RON_ASSERT(i < CALLS_MAX);
        if (!world->calls[i].busy)
            return &world->calls[i];
    }
}

static struct ledger_request *next_request(struct world *world)
{
    struct call *call = free_call(world);

    *call = (struct call){.world = world, .busy = true};
    (void)snprintf(call->id, sizeof(call->id), "id-%llu", (unsigned long long)world->sent_count);
    call->wire = (struct ledger_wire_entry){.id = ron_slice_text(call->id),
                                            .kind = RON_SLICE("Mint"),
                                            .to = RON_SLICE("alice"),
                                            .asset = RON_SLICE("roc"),
                                            .amount = RON_SLICE("1")};
    call->request = ledger_model_ingest(&call->wire, &call->op, call->id, done, call);
    call->request.size = SIZE_STEP * (1 + (uint32_t)(world->sent_count * 5 % 8));
    world->held_bytes += call->request.size; /* before: the answer may come first */
    world->sent_count++;
    return &call->request;
}

static void refused(struct ledger_request *request, enum ron_err err,
                    const struct ron_errinfo *info)
{
    struct call *call = request->context;

    call->busy = false;
    call->world->held_bytes -= request->size;
    check_refusal(call->world, err, info);
}

/* One by one, or in one piece as a loop of connections does. */
static void send(struct world *world, bool together)
{
    struct ledger_request *requests[EACH_TICK];

    for (unsigned i = 0; i < EACH_TICK; i++) {
        struct ron_errinfo info = {0};
        enum ron_err err = RON_ERR_OK;

        requests[i] = next_request(world);
        if (!together)
            err = ledger_submit(world->service, requests[i], &info);
        if (err != RON_ERR_OK)
            refused(requests[i], err, &info);
    }
    if (together)
        ledger_submit_many(world->service, requests, EACH_TICK, refused);
}

/* --- The load ----------------------------------------------------------------------------------
 */

static void check_budget(struct world *world)
{
    struct ledger_health health;

    ledger_read_health(world->service, &health);
    RON_ASSERT(health.held_bytes <= BUDGET);
    RON_ASSERT(world->held_bytes <= BUDGET + IN_HAND);
    RON_ASSERT(sim_allocations_count() == world->allocations_count); /* flat */
}

static void load(struct world *world) RON_BLOCKS
{
    world->allocations_count = sim_allocations_count();
    for (unsigned ms = 0; ms < LOAD_MS; ms += TICK_MS) {
        send(world, ms / TICK_MS % 2 == 0);
        check_budget(world);
        rt_fault_delay_ms(TICK_MS);
        check_budget(world);
    }
}

static enum ron_err check(void *context, const struct ledger_request *request,
                          struct ron_errinfo *reterr)
{
    (void)context, (void)request, (void)reterr;
    return RON_ERR_OK;
}

static struct ledger_service_options options_of(struct world *world)
{
    struct ledger_service_options options = ledger_model_options(&world->counter.head,
                                                                 LOAD_MS / SYNC_MS * SLOTS);

    options.prevalidators_count = PREVALIDATORS;
    options.ingress_max = INGRESS;
    options.preval_max = PREVAL;
    options.commit_max = SLOTS;
    options.window_max = WINDOW;
    options.queue_bytes_max = BYTES_MAX;
    options.classes[0].count = SLOTS;
    options.drain_ms = DRAIN_MS;
    options.check = check; /* a prevalidator takes one at a time */
    return options;
}

static void await_all(struct world *world) RON_BLOCKS
{
    while (world->held_bytes > 0)
        rt_fault_delay_ms(TICK_MS);
}

static void overload_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    struct ledger_service_options options;
    struct rt_life_report report = {0};
    struct ledger_health health;
    uint64_t end_ns;

    (void)argument;
    rt_init();
    world->counter.head = (struct ledger_engine){.ops = &counter_ops, .clean = true};
    options = options_of(world);
    model_must(ledger_service_new(&options, &world->service, NULL));
    model_must(ledger_service_start(world->service, NULL));
    model_must(ledger_service_await_start(world->service, RT_DEADLINE_NEVER, NULL));
    load(world);
    end_ns = rt_now_ns();
    if (sim_choose(2, "stopped at once") == 0) {
        await_all(world);
        RON_ASSERT(rt_now_ns() - end_ns <= DRAIN_MS * RT_NS_PER_MS);
        ledger_read_health(world->service, &health);
        RON_ASSERT(health.ready == RT_PLANES_ALL);
        RON_ASSERT(health.held_bytes == 0);
    }
    model_must(ledger_service_stop(world->service, &report, NULL));
    RON_ASSERT(rt_now_ns() - end_ns <= DRAIN_MS * RT_NS_PER_MS);
    RON_ASSERT(!report.aborted);
    RON_ASSERT(world->held_bytes == 0); /* none was left behind, or told that the drain ended */
    RON_ASSERT(world->busy_count > 0);
    RON_ASSERT(world->evicted_count > 0);
    RON_ASSERT(world->refused_count > 0);
    RON_ASSERT(world->answered_count >= ANSWERED_MIN); /* no collapse */
    RON_ASSERT(world->sent_count >= 10 * world->answered_count);
    RON_ASSERT(world->answered_count == world->counter.durable);
    RON_ASSERT(ledger_read_head(world->service).seq == world->answered_count);
    sim_outcome(world->answered_count);
    (void)ledger_service_free(world->service);
    ron_mem_free(world);
}

static const struct model_case overload_cases[] = {
    {.config = {.preemption_bound = NONE, .steps_max = 4000000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 20,
     .expected_steps = 500000},
};
MODEL(service_overload, "ten times too much for ten seconds: bounded, typed, drained", overload_fn,
      NULL, overload_cases);
