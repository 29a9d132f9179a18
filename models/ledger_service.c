/*
 * ledger_service.c - the ledger's pipeline itself, small: one prevalidator, sequencer, committer
 * and roots publisher on an engine in memory, a client that sends and doubles, a shutdown at any
 * moment.
 *
 * In every schedule: who was taken is answered exactly once, and a drain that has its time refuses
 * none of them; what was accepted has its own seqs,
 * without gap, and its double the same reply; the log holds exactly what was accepted (or more only
 * if the engine failed), each frame on the root of the one before; a reader never sees what is not
 * in the log; the engine has one writer; an answer OK comes after the sync and after its root. All
 * tasks join, none is leaked.
 *
 * tidy: long file because one world has all its shapes here.
 *
 * covers: LED-C01 LED-C08 LED-C34 LED-C42 LED-C46 LED-F12 LED-V19 LED-V20 LED-V21 LED-V25
 */
#include "base/mem.h"
#include "base/rfc3339.h"
#include "ledger/core_frame.h"
#include "ledger/service.h"
#include "models/ledger_support.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/fault.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { CALLS_MAX = 3, FRAMES_MAX = 4, AMOUNT = 5 };

struct shape {
    uint32_t calls_count;
    uint32_t ingress_max, preval_max, commit_max, window_max;
    bool doubles;          /* the second call repeats the first */
    bool prompt;           /* nobody is waited for: the client's thread checks them */
    bool waits;            /* the stop comes after the client is done */
    bool faults;           /* the engine asks for faults */
    uint32_t panics_count; /* checks that panic, from the first on */
    uint32_t expire_ms;
    uint32_t stuck_ms; /* a sync takes so long, which is longer than the drain may */
    bool forgets;      /* planted: the engine says durable and has nothing */
};

/* An engine in memory with points, faults and a witness. */
struct shelf {
    struct ledger_engine head;
    struct ledger_engine *memory;
    const struct shape *shape;
    bool writing;
    bool failed; /* an append or sync failed for good */
    uint64_t durable;
};

struct call {
    struct world *world;
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    bool taken;
    unsigned answers_count;
};

struct world {
    const struct shape *shape;
    struct shelf shelf;
    struct ledger_service *service;
    struct rt_atomic_u32 panics_left;
    struct call calls[CALLS_MAX];
};

static struct shelf *shelf_of(struct ledger_engine *engine)
{
    return (struct shelf *)engine;
}

static enum ron_err shelf_recover(struct ledger_engine *engine, uint64_t first, ledger_frame_fn *fn,
                                  void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    engine->clean = false;
    return ledger_engine_recover(shelf_of(engine)->memory, first, fn, context, reterr);
}

static enum ron_err shelf_append(struct ledger_engine *engine, const struct ron_slice *parts,
                                 size_t parts_count, struct rt_deadline deadline,
                                 uint64_t *ret_number, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct shelf *shelf = shelf_of(engine);
    unsigned fault = 0;
    enum ron_err err;

    RON_ASSERT(!shelf->writing); /* one writer */
    RON_ASSERT(!shelf->failed);  /* never again after a failure */
    shelf->writing = true;
    sim_point("append");
    if (shelf->shape->faults)
        fault = rt_fault_choose(3, "append");
    shelf->writing = false;
    if (fault == 1)
        return ron_fail(reterr, RON_ERR_PERSISTENCE_FULL, "no room");
    if (fault == 2) {
        shelf->failed = true;
        return ron_fail(reterr, RON_ERR_IO, "append");
    }
    if (shelf->shape->forgets && ledger_engine_durable(shelf->memory) == 1) {
        *ret_number = 2;
        return RON_ERR_OK;
    }
    err = ledger_engine_append(shelf->memory, parts, parts_count, deadline, ret_number, reterr);
    return err;
}

static enum ron_err shelf_wait(struct ledger_engine *engine, uint64_t number,
                               struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct shelf *shelf = shelf_of(engine);

    (void)deadline;
    RON_ASSERT(!shelf->writing);
    RON_ASSERT(!shelf->failed);
    sim_point("sync");
    if (shelf->shape->stuck_ms > 0)
        rt_fault_delay_ms(shelf->shape->stuck_ms);
    if (shelf->shape->faults && rt_fault_choose(2, "sync") != 0) {
        shelf->failed = true;
        return ron_fail(reterr, RON_ERR_IO, "sync");
    }
    shelf->durable = number;
    return RON_ERR_OK;
}

static uint64_t shelf_durable(struct ledger_engine *engine)
{
    return shelf_of(engine)->durable;
}

static enum ron_err shelf_read(struct ledger_engine *engine, uint64_t number, struct ron_buf *buf,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_engine_read(shelf_of(engine)->memory, number, buf, reterr);
}

static enum ron_err shelf_close(struct ledger_engine *engine, struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    engine->clean = true;
    return ledger_engine_close(shelf_of(engine)->memory, deadline, reterr);
}

static const struct ledger_engine_ops shelf_ops = {
    .name = "shelf",
    .recover = shelf_recover,
    .append = shelf_append,
    .wait = shelf_wait,
    .durable = shelf_durable,
    .read = shelf_read,
    .close = shelf_close,
};

static void done(struct ledger_request *request, void *context)
{
    struct call *call = context;

    call->answers_count++;
    RON_ASSERT(call->answers_count == 1);
    RON_ASSERT(request->outcome.err != RON_ERR_MALFORMED); /* time never goes back */
    if (request->outcome.err == RON_ERR_OK) { /* synced and published before it is answered */
        RON_ASSERT(call->world->shelf.durable >= request->outcome.reply.batch);
        RON_ASSERT(ledger_read_head(call->world->service).seq >= request->outcome.reply.seq_end);
    }
}

static enum ron_err check(void *context, const struct ledger_request *request,
                          struct ron_errinfo *reterr)
{
    struct world *world = context;
    uint32_t left = rt_atomic_load_u32(&world->panics_left); /* one prevalidator */

    (void)request;
    (void)reterr;
    if (left > 0) {
        rt_atomic_store_u32(&world->panics_left, left - 1);
        rt_panic("a check");
    }
    return RON_ERR_OK;
}

static void refused(struct ledger_request *request, enum ron_err err,
                    const struct ron_errinfo *info)
{
    struct call *call = request->context;

    (void)err;
    (void)info;
    RON_ASSERT(call->taken); /* once */
    call->taken = false;
}

static void submit(struct world *world, struct call *call)
{
    struct ledger_request *request = &call->request;

    request->prompt = world->shape->prompt;
    call->taken = true;
    if (request->prompt)
        ledger_submit_many(world->service, &request, 1, refused);
    else
        call->taken = ledger_submit(world->service, request, NULL) == RON_ERR_OK;
}

static void client_fn(void *argument)
{
    static const char *const ids[CALLS_MAX] = {"a", "b", "c"};
    struct world *world = argument;

    for (uint32_t i = 0; i < world->shape->calls_count; i++) {
        struct call *call = &world->calls[i];
        const char *id = ids[world->shape->doubles && i == 1 ? 0 : i];

        call->world = world;
        call->answers_count = 0;
        call->wire = (struct ledger_wire_entry){.id = ron_slice_text(id),
                                                .kind = RON_SLICE("Mint"),
                                                .to = RON_SLICE("alice"),
                                                .asset = RON_SLICE("roc"),
                                                .amount = RON_SLICE("5")};
        call->request = ledger_model_ingest(&call->wire, &call->op, id, done, call);
        submit(world, call);
    }
}

static struct ledger_service_options options_of(struct world *world)
{
    const struct shape *shape = world->shape;
    struct ledger_service_options options = ledger_model_options(&world->shelf.head, 8);

    options.ingress_max = shape->ingress_max;
    options.preval_max = shape->preval_max;
    options.commit_max = shape->commit_max;
    options.window_max = shape->window_max;
    options.expire_ms = shape->expire_ms;
    options.drain_ms = shape->stuck_ms > 0 ? shape->stuck_ms - 100 : 60000;
    options.classes[0].count = shape->commit_max;
    options.classes[2] = (struct ledger_slot_class){LEDGER_BATCH_ENTRIES_MAX, LEDGER_EXT_SIZE_MAX,
                                                    shape->expire_ms > 0 ? 1 : 0};
    options.capacity.holds_max = 2;
    options.check = shape->prompt ? NULL : check;
    options.check_context = world;
    return options;
}

/* The log: frames in order, each on the root of the one before. Returns how many. */
static uint64_t check_log(const struct world *world) RON_BLOCKS
{
    const uint64_t frames_count = ledger_engine_durable(world->shelf.memory);
    struct ron_sha256 root = ron_merkle_empty;
    struct ledger_frame frame;
    struct ron_buf buf;

    for (uint64_t i = 1; i <= frames_count; i++) {
        ron_buf_init(&buf, 1 << 16);
        model_must(ledger_engine_read(world->shelf.memory, i, &buf, NULL));
        model_must(ledger_frame_decode(ron_slice_of(buf.data, buf.size), &frame, NULL));
        RON_ASSERT(frame.batch == i);
        RON_ASSERT(frame.seq_start == i); /* one entry each: no gap */
        RON_ASSERT(memcmp(&frame.previous_root, &root, sizeof(root)) == 0);
        root = frame.root;
        ron_buf_fini(&buf);
    }
    return frames_count;
}

static void check_end(struct world *world) RON_BLOCKS
{
    const struct ledger_id alice = ledger_account_id("", RON_SLICE("alice"));
    const uint64_t frames_count = check_log(world);
    const struct ledger_root head = ledger_read_head(world->service);
    struct ledger_balance balance;
    uint64_t seqs = 0;
    uint64_t made_count = 0;
    bool unknown = false;

    for (uint32_t i = 0; i < world->shape->calls_count; i++) {
        const struct call *call = &world->calls[i];
        const struct ledger_outcome *outcome = &call->request.outcome;

        RON_ASSERT(call->answers_count == (call->taken ? 1 : 0));
        sim_outcome(call->taken ? outcome->err : 0xffu);
        /* The drain had its time: what was taken is finished, unless its prevalidator fell. */
        RON_ASSERT(!call->taken || outcome->err != RON_ERR_DRAINING ||
                   world->shape->panics_count > 0);
        if (!call->taken || outcome->err != RON_ERR_OK) {
            unknown = unknown || (call->taken && outcome->unknown);
            continue;
        }
        RON_ASSERT(outcome->reply.seq_start >= 1);
        RON_ASSERT(outcome->reply.seq_start <= head.seq);
        if (!outcome->repeated) {
            RON_ASSERT((seqs >> outcome->reply.seq_start & 1) == 0); /* nothing twice */
            seqs |= UINT64_C(1) << outcome->reply.seq_start;
            made_count++;
        }
    }
    if (world->shape->doubles && world->calls[0].taken && world->calls[1].taken &&
        world->calls[0].request.outcome.err == RON_ERR_OK &&
        world->calls[1].request.outcome.err == RON_ERR_OK)
        RON_ASSERT(memcmp(&world->calls[0].request.outcome.reply,
                          &world->calls[1].request.outcome.reply,
                          sizeof(struct ledger_reply)) == 0);
    RON_ASSERT(seqs == ((UINT64_C(1) << (made_count + 1)) - 2)); /* 1..made_count */
    ledger_read_balance(world->service, &alice, 1, &balance);
    RON_ASSERT(balance.amount.v == made_count * AMOUNT);
    RON_ASSERT(head.seq == made_count);
    RON_ASSERT(unknown ? frames_count >= made_count : frames_count == made_count);
    RON_ASSERT(world->shelf.head.clean == !world->shelf.failed);
}

static void check_tasks(struct world *world)
{
    struct rt_task_counters counters[8];
    size_t count = rt_supervisor_get_counters(ledger_service_supervisor(world->service), counters,
                                              RON_ARRAY_COUNT(counters));

    RON_ASSERT(count == 4);
    for (size_t i = 0; i < count; i++) {
        RON_ASSERT(counters[i].leaked_count == 0);
        RON_ASSERT(counters[i].aborted_count == 0);
    }
}

static struct world *begin(const struct shape *shape) RON_BLOCKS
{
    const struct ledger_engine_memory_options memory = {1 << 16, FRAMES_MAX};
    struct world *world = model_alloc(sizeof(*world));
    struct ledger_service_options options;

    rt_init();
    world->shape = shape;
    world->panics_left.value = shape->panics_count;
    world->shelf = (struct shelf){.head = {&shelf_ops, true}, .shape = shape};
    model_must(ledger_engine_memory_new(&memory, &world->shelf.memory, NULL));
    options = options_of(world);
    model_must(ledger_service_new(&options, &world->service, NULL));
    model_must(ledger_service_start(world->service, NULL));
    model_must(ledger_service_await_start(world->service, RT_DEADLINE_NEVER, NULL));
    return world;
}

static void end(struct world *world)
{
    (void)ledger_service_free(world->service);
    (void)ledger_engine_memory_free(world->shelf.memory);
    ron_mem_free(world);
}

static void service_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin(argument);
    struct sh_thread *client = model_spawn("client", client_fn, world);

    if (world->shape->waits)
        model_join(client);
    model_must(ledger_service_stop(world->service, NULL, NULL));
    if (!world->shape->waits)
        model_join(client);
    check_tasks(world);
    check_end(world);
    end(world);
}

static bool is_anyone_waiting(const struct world *world)
{
    for (uint32_t i = 0; i < world->shape->calls_count; i++)
        if (world->calls[i].taken && world->calls[i].answers_count == 0)
            return true;
    return false;
}

/* The disk is slower than the drain may take: it ends all the same, everybody is answered, and the
 * log is not called whole. covers: LED-C45 */
static void stuck_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin(argument);
    struct rt_life_report report;
    enum ron_err err;

    client_fn(world);
    err = ledger_service_stop(world->service, &report, NULL);
    for (uint32_t i = 0; i < world->shape->calls_count; i++)
        RON_ASSERT(world->calls[i].answers_count == (world->calls[i].taken ? 1 : 0));
    RON_ASSERT((err == RON_ERR_TIMEOUT) == report.aborted);
    RON_ASSERT(report.aborted == !world->shelf.head.clean);
    (void)check_log(world);
    sim_outcome(report.aborted);
    end(world);
}

/* Every check panics, until the only prevalidator stays down: who is there is answered, who comes
 * is refused, and after its revival work goes on. */
static void gave_up_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin(argument);
    struct ledger_health health;
    unsigned refused_count = 0;

    while (refused_count == 0) {
        client_fn(world);
        for (uint32_t i = 0; i < world->shape->calls_count; i++)
            refused_count += world->calls[i].taken ? 0 : 1;
        while (is_anyone_waiting(world))
            rt_fault_delay_ms(1000);
    }
    ledger_read_health(world->service, &health);
    RON_ASSERT((health.ready & RT_PLANE_WRITE) == 0);
    RON_ASSERT(health.head.seq == 0);
    rt_atomic_store_u32(&world->panics_left, 0);
    while (ledger_read_health(world->service, &health),
           (health.status.raised & RT_CAUSE_BIT(RT_CAUSE_RESTART_STORM)) == 0)
        rt_fault_delay_ms(1000);
    model_must(ledger_service_revive(world->service, NULL));
    client_fn(world);
    while (is_anyone_waiting(world))
        rt_fault_delay_ms(1000);
    ledger_read_health(world->service, &health);
    RON_ASSERT(health.ready == RT_PLANES_ALL);
    RON_ASSERT(health.head.seq > 0);
    model_must(ledger_service_stop(world->service, NULL, NULL));
    end(world);
}

/* A hold that nobody captures, with its end 10 s ahead: the Sequencer's timer gives it back, once,
 * and not before. */
static void expire_fn(void *argument) RON_BLOCKS
{
    struct world *world = begin(argument);
    const struct ledger_id alice = ledger_account_id("", RON_SLICE("alice"));
    const uint64_t end_ms = rt_utc_ms() + 10000;
    struct call *call = &world->calls[CALLS_MAX - 1];
    struct ledger_balance balance;
    char end_text[RON_RFC3339_SIZE];

    client_fn(world);
    while (is_anyone_waiting(world))
        rt_fault_delay_ms(1);
    ron_rfc3339_print(end_ms, end_text);
    *call = world->calls[0];
    call->answers_count = 0;
    call->wire = (struct ledger_wire_entry){.id = RON_SLICE("h"),
                                            .kind = RON_SLICE("Hold"),
                                            .from = RON_SLICE("alice"),
                                            .hold_id = RON_SLICE("hold"),
                                            .payee = RON_SLICE("bob"),
                                            .expires_at = ron_slice_text(end_text),
                                            .asset = RON_SLICE("roc"),
                                            .amount = RON_SLICE("2")};
    call->request = (struct ledger_request){.command = {.kind = LEDGER_COMMAND_INGEST},
                                            .wire = &call->wire,
                                            .wire_count = 1,
                                            .ops_room = &call->op,
                                            .deadline = RT_DEADLINE_NEVER,
                                            .done = done,
                                            .context = call};
    model_must(ledger_submit(world->service, &call->request, NULL));
    while (call->answers_count == 0)
        rt_fault_delay_ms(1);
    RON_ASSERT(call->request.outcome.err == RON_ERR_OK);
    while (rt_utc_ms() + 1 < end_ms) {
        ledger_read_balance(world->service, &alice, 1, &balance);
        RON_ASSERT(balance.amount.v == AMOUNT - 2);
        rt_fault_delay_ms((uint32_t)(end_ms - rt_utc_ms()) / 2);
    }
    rt_fault_delay_ms(5000); /* some looks of the timer */
    ledger_read_balance(world->service, &alice, 1, &balance);
    RON_ASSERT(balance.amount.v == AMOUNT);
    RON_ASSERT(ledger_read_head(world->service).seq == 3);
    model_must(ledger_service_stop(world->service, NULL, NULL));
    end(world);
}

static const struct shape stop = {.calls_count = 3,
                                  .ingress_max = 2,
                                  .preval_max = 2,
                                  .commit_max = 2,
                                  .window_max = 2,
                                  .doubles = true};
static const struct shape evict = {.calls_count = 3,
                                   .ingress_max = 3,
                                   .preval_max = 1,
                                   .commit_max = 2,
                                   .window_max = 1,
                                   .waits = true};
static const struct shape slots = {.calls_count = 3,
                                   .ingress_max = 3,
                                   .preval_max = 3,
                                   .commit_max = 1,
                                   .window_max = 2,
                                   .waits = true};
static const struct shape faults = {.calls_count = 3,
                                    .ingress_max = 3,
                                    .preval_max = 3,
                                    .commit_max = 2,
                                    .window_max = 2,
                                    .waits = true,
                                    .faults = true};
static const struct shape panics = {.calls_count = 2,
                                    .ingress_max = 2,
                                    .preval_max = 2,
                                    .commit_max = 2,
                                    .window_max = 2,
                                    .panics_count = 1};
static const struct shape prompt = {.calls_count = 3,
                                    .ingress_max = 1,
                                    .preval_max = 2,
                                    .commit_max = 2,
                                    .window_max = 2,
                                    .doubles = true,
                                    .prompt = true};
static const struct shape stuck = {.calls_count = 3,
                                   .ingress_max = 3,
                                   .preval_max = 3,
                                   .commit_max = 2,
                                   .window_max = 2,
                                   .stuck_ms = 3500};
static const struct shape expire = {.calls_count = 1,
                                    .ingress_max = 2,
                                    .preval_max = 2,
                                    .commit_max = 2,
                                    .window_max = 2,
                                    .expire_ms = 1000};
static const struct shape gave_up = {.calls_count = 3,
                                     .ingress_max = 3,
                                     .preval_max = 3,
                                     .commit_max = 3,
                                     .window_max = 2,
                                     .panics_count = 1000};
static const struct shape forgets = {.calls_count = 2,
                                     .ingress_max = 3,
                                     .preval_max = 3,
                                     .commit_max = 3,
                                     .window_max = 1,
                                     .waits = true,
                                     .forgets = true};

/* The same, as small as they can be: bound 2 is complete in some minutes (--slow). */
static const struct shape small_stop = {.calls_count = 2,
                                        .ingress_max = 1,
                                        .preval_max = 1,
                                        .commit_max = 1,
                                        .window_max = 1,
                                        .doubles = true};
static const struct shape small_evict = {.calls_count = 2,
                                         .ingress_max = 2,
                                         .preval_max = 1,
                                         .commit_max = 2,
                                         .window_max = 1,
                                         .waits = true};
static const struct shape small_slots = {.calls_count = 2,
                                         .ingress_max = 2,
                                         .preval_max = 2,
                                         .commit_max = 1,
                                         .window_max = 1,
                                         .waits = true};
static const struct shape small_faults = {.calls_count = 2,
                                          .ingress_max = 2,
                                          .preval_max = 2,
                                          .commit_max = 2,
                                          .window_max = 1,
                                          .waits = true,
                                          .faults = true};
static const struct shape small_panics = {.calls_count = 1,
                                          .ingress_max = 1,
                                          .preval_max = 1,
                                          .commit_max = 1,
                                          .window_max = 1,
                                          .panics_count = 1};

static const struct shape small_prompt = {.calls_count = 2,
                                          .ingress_max = 1,
                                          .preval_max = 1,
                                          .commit_max = 1,
                                          .window_max = 1,
                                          .prompt = true};

static const struct model_case stop_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE, .clock_jumps = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 500,
     .expected_steps = 300},
    {.config = {.preemption_bound = 1}, .cache = true},
};
static const struct model_case fault_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .faults = 2},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected_steps = 300},
    {.config = {.preemption_bound = NONE, .fine = 1, .faults = 2}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 0, .faults = 1}, .cache = true},
    {.config = {.preemption_bound = 1, .faults = 1}, .cache = true, .slow = true},
};
static const struct model_case small_cases[] = {
    {.config = {.preemption_bound = 2}, .cache = true, .slow = true},
};
static const struct model_case small_fault_cases[] = {
    {.config = {.preemption_bound = 1, .faults = 1}, .cache = true},
};
static const struct model_case time_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .steps_max = 20000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 500},
    {.config = {.preemption_bound = NONE, .steps_max = 20000},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 500},
};
static const struct model_case expire_cases[] = {
    {.config = {.preemption_bound = NONE, .steps_max = 20000},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 100},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 0}, .expected = SIM_ASSERTION},
};
MODEL(service_stop, "the ledger's pipeline, 3 requests, one doubled, shutdown at any time",
      service_fn, MODEL_CONST(stop), stop_cases);
MODEL(service_evict, "preval(1): an evicted caller is answered", service_fn, MODEL_CONST(evict),
      stop_cases);
MODEL(service_slots, "one commit slot: refused before a seq is used", service_fn,
      MODEL_CONST(slots), stop_cases);
MODEL(service_faults, "an engine without room, or that fails", service_fn, MODEL_CONST(faults),
      fault_cases);
MODEL(service_panic, "a prevalidator that panics, shutdown at any time", service_fn,
      MODEL_CONST(panics), stop_cases);
MODEL(service_prompt, "3 requests that their client checks, shutdown at any time", service_fn,
      MODEL_CONST(prompt), stop_cases);
MODEL(service_stop_2, "2 requests, one doubled, queues of 1, shutdown at any time", service_fn,
      MODEL_CONST(small_stop), small_cases);
MODEL(service_evict_2, "2 requests, preval(1)", service_fn, MODEL_CONST(small_evict), small_cases);
MODEL(service_slots_2, "2 requests, one commit slot", service_fn, MODEL_CONST(small_slots),
      small_cases);
MODEL(service_faults_2, "2 requests, an engine without room, or that fails", service_fn,
      MODEL_CONST(small_faults), small_fault_cases);
MODEL(service_panic_1, "a request whose prevalidator panics, shutdown at any time", service_fn,
      MODEL_CONST(small_panics), small_cases);
MODEL(service_prompt_2, "2 requests that their client checks, preval(1)", service_fn,
      MODEL_CONST(small_prompt), small_cases);
MODEL(service_stuck, "a disk slower than the drain may take", stuck_fn, MODEL_CONST(stuck),
      time_cases);
MODEL(service_gave_up, "the only prevalidator stays down, and is revived", gave_up_fn,
      MODEL_CONST(gave_up), time_cases);
MODEL(service_expire, "the sequencer's timer gives an expired hold back", expire_fn,
      MODEL_CONST(expire), expire_cases);
MODEL(service_planted, "an engine that forgets what it called durable", service_fn,
      MODEL_CONST(forgets), planted_cases);
