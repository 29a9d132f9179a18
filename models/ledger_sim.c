/*
 * ledger_sim.c - the ledger service in all weathers: four clients that retry, double, reorder and
 * vanish, 320 operations and more, on its file engine and a disk in memory.
 *
 * A seed draws the weather (struct sim_world), the moments at which the process is stopped or dies,
 * and everything else; it is thousands of points. The process dies at least once, at an operation,
 * and more often at any point at all. Processes follow one another until the clients are done;
 * then the power goes, and a last process on a sound disk must answer everybody who was left in
 * doubt. ledger_sim_oracle.c says what must hold at every answer and after every start.
 */
#include <stdio.h>

#include "base/mem.h"
#include "models/ledger_sim.h"
#include "models/ledger_support.h"
#include "models/support.h"
#include "rt/fault.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum {
    CALLS_MAX = 40, /* of a client at once */
    INGRESS = 8,
    PREVAL = 4,
    SLOTS = 4,
    PROCESSES_MAX = 32,      /* that came up */
    STARTS_FAILED_MAX = 256, /* the disk's faults are fewer */
    PANICS = 14,
    SLOW_MS = 700, /* of a sync; the drain may take less */
    DRAIN_MS = 500,
    LAG_MS = 150,
    POWER_CUTS = 6, /* in the middle of a sync */
    POWER_MS = 10,  /* a sync takes one, and nothing else takes any */
    BUSY_TRIES_MAX = 1000,
};

struct call {
    struct client *client;
    bool busy;
    unsigned key;
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    char id[16], text[8], amount[8];
};

struct client {
    struct process *process;
    struct rt_queue *answered;
    unsigned waiting_count; /* answers that will still come */
    struct call calls[CALLS_MAX];
};

struct process {
    struct sim_world *world;
    struct ledger_service *service;
    unsigned stop_at;       /* the clients leave without a word at this operation */
    bool failing;           /* it answers nobody any more */
    unsigned drained_count; /* were taken, and answered that the drain was cut short */
    struct rt_queue *power; /* closed: it stays on */
    struct client clients[SIM_CLIENTS_COUNT];
};

/* --- Clients -----------------------------------------------------------------------------------
 */

static void done(struct ledger_request *request, void *context)
{
    struct call *call = context;
    struct process *process = call->client->process;

    RON_ASSERT(request == &call->request);
    RON_ASSERT(call->busy); /* answered once */
    sim_check_outcome(process->world, process->service, call->key, &request->outcome);
    call->busy = false;
    if (request->outcome.err == RON_ERR_SAFE_MODE || request->outcome.err == RON_ERR_NOT_READY)
        process->failing = true;
    process->drained_count += request->outcome.err == RON_ERR_DRAINING ? 1 : 0;
    model_must(rt_queue_try_send(call->client->answered, (struct rt_queue_item){call, 1}, NULL));
}

/* Until there is no more than this many answers to come. */
static void await(struct client *client, unsigned waiting_max) RON_BLOCKS
{
    void *call = NULL;

    while (client->waiting_count > waiting_max) {
        model_must(rt_queue_recv(client->answered, RT_DEADLINE_NEVER, &call, NULL));
        client->waiting_count--;
    }
}

static struct call *free_call(struct client *client) RON_BLOCKS
{
    await(client, CALLS_MAX - 1);
    for (unsigned i = 0;; i++) {
        RON_ASSERT(i < CALLS_MAX);
        if (!client->calls[i].busy)
            return &client->calls[i];
    }
}

static void fill(struct call *call, unsigned key)
{
    const enum sim_kind kind = sim_kind_of(key);

    call->key = key;
    (void)snprintf(call->amount, sizeof(call->amount), "%u", key + 1);
    (void)snprintf(call->id, sizeof(call->id), "id-%u", key);
    (void)snprintf(call->text, sizeof(call->text), "k%u", key);
    call->wire = (struct ledger_wire_entry){
        .kind = RON_SLICE("Mint"), .to = RON_SLICE("alice"), .asset = RON_SLICE("roc")};
    if (key % 8 == 3)
        call->wire.to = RON_SLICE("carol");
    if (kind == SIM_TRANSFER || kind == SIM_NONCE) {
        call->wire.kind = RON_SLICE("Transfer");
        call->wire.from = kind == SIM_NONCE ? RON_SLICE("carol") : RON_SLICE("alice");
        call->wire.to = RON_SLICE("bob");
    }
    if (kind == SIM_NONCE) { /* no key, and each time another id: known by its nonce alone */
        (void)snprintf(call->id, sizeof(call->id), "n-%u-%u", key, sim_choose(3, "id"));
        call->wire.has_nonce = true;
        call->wire.nonce = key / 8 + 1;
    }
    if (kind == SIM_NONCE || kind == SIM_ID_ONLY)
        call->text[0] = 0;
    call->wire.id = ron_slice_text(call->id);
    call->wire.amount = ron_slice_text(call->amount);
}

static enum ron_err ask(struct client *client, unsigned key, struct rt_deadline deadline) RON_BLOCKS
{
    struct sim_world *world = client->process->world;
    struct call *call = free_call(client);
    enum ron_err err;

    *call = (struct call){.client = client, .busy = true};
    fill(call, key);
    call->request = ledger_model_ingest(&call->wire, &call->op, call->text, done, call);
    call->request.deadline = deadline;
    tally_add(TALLY_OPERATIONS, 1);
    tally_add(TALLY_RETRIES, world->asked[key] && !world->known[key] ? 1 : 0);
    world->asked[key] = true;
    err = ledger_submit(client->process->service, &call->request, NULL);
    if (err == RON_ERR_OK) {
        client->waiting_count++;
        return err;
    }
    call->busy = false;
    sim_check_refusal(world, key, err);
    if (err == RON_ERR_SAFE_MODE || err == RON_ERR_NOT_READY)
        client->process->failing = true;
    return err;
}

/* Any key; of the nonces mostly the next. */
static unsigned choose_key(const struct sim_world *world)
{
    const unsigned key = sim_choose(SIM_KEYS_COUNT, "key");

    if (sim_kind_of(key) != SIM_NONCE || sim_choose(3, "any nonce") == 0)
        return key;
    for (unsigned i = key % 8; i < SIM_KEYS_COUNT; i += 8)
        if (!world->known[i])
            return i;
    return key;
}

/* False: this client makes no more of them. */
static bool next_operation(struct process *process)
{
    struct sim_world *world = process->world;

    if (process->failing || world->operations_count >= process->stop_at ||
        world->operations_count >= SIM_OPERATIONS_MIN)
        return false;
    world->operations_count++;
    if (world->operations_count == world->fall_at) {
        tally_add(TALLY_FALLS, 1);
        sim_node_fall();
    }
    return true;
}

static void operate(struct client *client) RON_BLOCKS
{
    enum { VANISH, DOUBLE, REORDER, MANNERS_COUNT = 8 };
    const struct sim_world *world = client->process->world;
    const unsigned key = choose_key(world);

    switch (sim_choose(MANNERS_COUNT, "manners")) {
    case VANISH:
        tally_add(TALLY_VANISHED, 1);
        (void)ask(client, key, rt_deadline_after_ms(5));
        return;
    case DOUBLE:
        tally_add(TALLY_DOUBLES, 1);
        (void)ask(client, key, RT_DEADLINE_NEVER);
        (void)ask(client, key, RT_DEADLINE_NEVER);
        break;
    case REORDER:
        tally_add(TALLY_REORDERS, 1);
        (void)ask(client, key + 8 < SIM_KEYS_COUNT ? key + 8 : key, RT_DEADLINE_NEVER);
        (void)ask(client, key, RT_DEADLINE_NEVER);
        break;
    default:
        (void)ask(client, key, RT_DEADLINE_NEVER);
        break;
    }
    if (world->weather != SIM_OVERLOAD && sim_choose(4, "wait") != 0)
        await(client, 0);
}

static void client_fn(void *argument) RON_BLOCKS
{
    struct client *client = argument;
    const struct process *process = client->process;

    while (next_operation(client->process))
        operate(client);
    if (process->world->operations_count < process->stop_at)
        await(client, 0);
}

/* The last client asks until it is told, one after the other. */
static void resolve_fn(void *argument) RON_BLOCKS
{
    struct client *client = argument;
    struct sim_world *world = client->process->world;

    for (unsigned key = 0; key < SIM_KEYS_COUNT; key++) {
        const bool in_doubt = world->asked[key] && !world->known[key];
        unsigned tries = 0;
        enum ron_err err;

        if (!world->asked[key])
            continue;
        do {
            err = ask(client, key, RT_DEADLINE_NEVER);
            await(client, 0);
            if (err == RON_ERR_OK)
                err = client->calls[0].request.outcome.err;
            RON_ASSERT(tries++ < BUSY_TRIES_MAX);
            if (err == RON_ERR_BUSY) /* until more is indexed */
                rt_fault_delay_ms(10);
        } while (err == RON_ERR_BUSY);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_INSUFFICIENT_FUNDS ||
                   err == RON_ERR_NONCE_CONFLICT);
        tally_add(TALLY_RESOLVED, in_doubt && err == RON_ERR_OK ? 1 : 0);
    }
}

/* --- Processes ---------------------------------------------------------------------------------
 */

static enum ron_err check(void *context, const struct ledger_request *request,
                          struct ron_errinfo *reterr)
{
    struct sim_world *world = context;

    (void)request;
    (void)reterr;
    if (!world->last && world->weather == SIM_PANICS && world->panics_left > 0 &&
        sim_choose(8, "a check panics") == 1) {
        world->panics_left--;
        tally_add(TALLY_PANICS, 1);
        rt_panic("a check");
    }
    return RON_ERR_OK;
}

static struct ledger_service_options options_of(struct sim_world *world,
                                                struct ledger_engine *engine)
{
    struct ledger_service_options options = ledger_model_options(engine, SIM_WINDOW);

    options.snapshot = (struct ledger_snapshot_options){.vfs = world->disk.vfs,
                                                        .dir = "snapshots",
                                                        .entries = 15,
                                                        .write_ms_max = 600000,
                                                        .copy_max = 1};
    options.prevalidators_count = 2;
    options.ingress_max = INGRESS;
    options.preval_max = PREVAL;
    options.commit_max = SLOTS;
    options.classes[0].count = SLOTS;
    options.window_max = 3;
    options.drain_ms = 600000;
    options.check = check;
    options.check_context = world;
    if (world->weather == SIM_SLOW && !world->last) {
        options.lag_ms_max = LAG_MS;
        options.drain_ms = DRAIN_MS;
    }
    return options;
}

static void start_client(struct process *process, unsigned number, void (*fn)(void *),
                         struct sh_thread **ret_thread)
{
    static const char *const names[SIM_CLIENTS_COUNT] = {"client 1", "client 2", "client 3",
                                                         "client 4"};
    const struct rt_queue_options options = {
        .name = "answered", .owner = "model", .policy = "never full", .capacity = CALLS_MAX};
    struct client *client = &process->clients[number];

    client->process = process;
    model_must(rt_queue_new(&options, &client->answered, NULL));
    *ret_thread = model_spawn(names[number], fn, client);
}

static void run_clients(struct process *process) RON_BLOCKS
{
    const bool last = process->world->last;
    const unsigned count = last ? 1 : SIM_CLIENTS_COUNT;
    struct sh_thread *threads[SIM_CLIENTS_COUNT];

    for (unsigned i = 0; i < count; i++)
        start_client(process, i, last ? resolve_fn : client_fn, &threads[i]);
    sim_spare_allocations(process->world->weather != SIM_MEMORY || last);
    for (unsigned i = 0; i < count; i++)
        model_join(threads[i]);
    sim_spare_allocations(true);
}

/* The power goes while a sync is under way: only then does time pass. */
static void power_fn(void *argument) RON_BLOCKS
{
    struct process *process = argument;
    void *item;

    if (rt_queue_recv(process->power, rt_deadline_after_ms(1 + sim_choose(POWER_MS, "power cut")),
                      &item, NULL) != RON_ERR_TIMEOUT)
        return;
    process->world->power_cuts_left--;
    tally_add(TALLY_POWER_CUTS, 1);
    sim_node_fall();
}

static struct sh_thread *start_power(struct process *process)
{
    const struct rt_queue_options options = {
        .name = "power", .owner = "model", .policy = "never full", .capacity = 1};

    if (process->world->last || process->world->weather != SIM_POWER ||
        process->world->power_cuts_left == 0)
        return NULL;
    model_must(rt_queue_new(&options, &process->power, NULL));
    return model_spawn("power", power_fn, process);
}

static void end_power(struct process *process, struct sh_thread *power) RON_BLOCKS
{
    if (power == NULL)
        return;
    rt_queue_close(process->power);
    model_join(power);
    process->power = rt_queue_free(process->power);
}

static bool has_leaked(struct process *process)
{
    struct rt_task_counters counters[8];
    const size_t count = rt_supervisor_get_counters(ledger_service_supervisor(process->service),
                                                    counters, RON_ARRAY_COUNT(counters));

    for (size_t i = 0; i < count; i++)
        if (counters[i].leaked_count > 0)
            return true;
    return false;
}

/* Comes while the service stops. */
static void late_fn(void *argument) RON_BLOCKS
{
    for (unsigned i = 0; i < CALLS_MAX / 2; i++)
        (void)ask(argument, i, RT_DEADLINE_NEVER);
}

static void stop(struct process *process) RON_BLOCKS
{
    const struct sim_world *world = process->world;
    struct rt_life_report report = {0};
    struct sh_thread *late = NULL;
    enum ron_err err;

    tally_add(TALLY_STOPS, world->operations_count == process->stop_at ? 1 : 0);
    if (!world->last)
        late = model_spawn("late client", late_fn, &process->clients[0]);
    err = ledger_service_stop(process->service, &report, NULL);
    if (late != NULL)
        model_join(late);
    RON_ASSERT(err == RON_ERR_OK || sim_may_fail(world) || world->weather == SIM_SLOW);
    tally_add(TALLY_DRAINS_CUT, report.aborted ? 1 : 0);
    /* What was taken is finished, unless its prevalidator or the time was not there for it. */
    RON_ASSERT(process->drained_count == 0 || report.aborted || world->weather == SIM_PANICS);
    if (has_leaked(process))
        sim_node_fall(); /* as a process ends that cannot end well */
    for (unsigned i = 0; i < SIM_CLIENTS_COUNT; i++) {
        struct client *client = &process->clients[i];

        for (unsigned k = 0; k < CALLS_MAX; k++)
            RON_ASSERT(!client->calls[k].busy); /* everybody was answered */
        await(client, 0);
        client->answered = rt_queue_free(client->answered);
    }
    process->service = ledger_service_free(process->service);
}

static void serve(struct process *process, struct ledger_engine *engine) RON_BLOCKS
{
    const struct ledger_service_options options = options_of(process->world, engine);
    const bool clean = engine->clean;
    struct sh_thread *power = start_power(process);
    struct ledger_health health;

    model_must(ledger_service_new(&options, &process->service, NULL));
    ledger_read_health(process->service, &health);
    RON_ASSERT((health.status.state == RT_LIFE_SAFE_MODE) == !clean);
    model_must(ledger_service_start(process->service, NULL));
    model_must(ledger_service_await_start(process->service, RT_DEADLINE_NEVER, NULL));
    sim_check_log(process->world, process->service);
    run_clients(process);
    stop(process);
    end_power(process, power);
}

/* After some dozens of operations; or at once: such a process leaves what it found, and calls it
 * whole. */
static unsigned choose_stop(const struct sim_world *world)
{
    const bool at_once = !world->last &&
                         sim_choose(world->weather == SIM_POWER ? 2 : 8, "stop at once") == 1;

    return world->operations_count +
           (at_once ? sim_choose(3, "stop after") : 30 + sim_choose(SIM_OPERATIONS_MIN, "stop at"));
}

static void process_fn(void *argument) RON_BLOCKS
{
    struct process *process = model_alloc(sizeof(*process));
    struct sim_world *world = argument;
    const bool direct = sim_choose(2, "past the cache") == 1; /* whatever the process before did */
    struct ledger_engine *engine = NULL;
    enum ron_err err;

    process->world = world;
    process->stop_at = choose_stop(world);
    world->came_up = false;
    world->closed = false;
    world->faults_before = sim_disk_faults(&world->disk);
    rt_init(); /* what a crashed process had registered is forgotten */
    err = ledger_engine_file_open(&(struct ledger_engine_file_options){.vfs = world->disk.vfs,
                                                                       .dir = "log",
                                                                       .segment_bytes = 8192,
                                                                       .ahead_bytes = 4096,
                                                                       .group_bytes = 2048,
                                                                       .record_bytes_max = 2048,
                                                                       .direct = direct},
                                  &engine, NULL);
    tally_add(TALLY_STARTS, 1);
    if (err == RON_ERR_OK) {
        world->came_up = true;
        serve(process, engine);
        world->closed = engine->clean;
    } else {
        sim_check_fault(world);
        tally_add(TALLY_STARTS_FAILED, 1);
    }
    (void)ledger_engine_file_free(engine);
    ron_mem_free(process);
}

/* --- The world ---------------------------------------------------------------------------------
 */

static void choose_weather(struct sim_world *world, const enum sim_weather *given)
{
    /* Each `at` one of the first so many calls. */
    static const struct io_fault failing[] = {
        {.kind = IO_FAULT_EIO, .call = IO_CALL_OPEN, .at = 60},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_READ, .at = 60},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_READ, .path_prefix = "snapshots", .at = 8},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_WRITE, .at = 60},
        /* An index is tried again much later: the window fills with what is not indexed. */
        {.kind = IO_FAULT_EIO, .call = IO_CALL_WRITE, .path_prefix = "log/idx-", .at = 2},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_NAME, .at = 60},
        {.kind = IO_FAULT_SHORT_WRITE, .call = IO_CALL_WRITE, .at = 60},
        {.kind = IO_FAULT_SYNC_EIO, .call = IO_CALL_SYNC, .at = 60},
        {.kind = IO_FAULT_ENOSPC, .call = IO_CALL_WRITE, .at = 60},
    };
    struct io_faulty_options *options = &world->disk_options;
    struct io_fault *fault = &world->disk_fault;

    world->weather = given != NULL ? *given : sim_choose(SIM_WEATHERS_COUNT, "weather");
    world->fall_at = 10 + sim_choose(SIM_OPERATIONS_MIN - 10, "fall at");
    world->panics_left = PANICS;
    world->power_cuts_left = POWER_CUTS;
    *options = (struct io_faulty_options){0};
    switch (world->weather) {
    case SIM_FAILING:
        *options = sim_disk_failing;
        *fault = failing[sim_choose(RON_ARRAY_COUNT(failing), "fault")];
        fault->at = 1 + sim_choose((unsigned)fault->at, "fault at");
        fault->times = 1 + sim_choose(2, "fault for");
        break;
    case SIM_FULL:
        *fault = (struct io_fault){.kind = IO_FAULT_ENOSPC,
                                   .call = IO_CALL_WRITE,
                                   .path_prefix = "log",
                                   .at = 5 + sim_choose(100, "full at"),
                                   .times = 1 + sim_choose(12, "full for")};
        break;
    case SIM_SLOW:
        *fault = (struct io_fault){.kind = IO_FAULT_SLOW,
                                   .call = IO_CALL_SYNC,
                                   .at = 5 + sim_choose(40, "slow at"),
                                   .times = 40};
        options->slow_ms = SLOW_MS;
        break;
    case SIM_POWER:
        *fault = (struct io_fault){
            .kind = IO_FAULT_SLOW, .call = IO_CALL_SYNC, .at = 1, .times = UINT32_MAX};
        options->slow_ms = 1;
        break;
    case SIM_CALM:
    case SIM_PANICS:
    case SIM_MEMORY:
    case SIM_OVERLOAD:
    case SIM_WEATHERS_COUNT:
        break;
    }
    options->faults = fault;
    options->faults_count = fault->times > 0 ? 1 : 0;
    sim_disk_init(&world->disk, options);
}

static void tally_disk(const struct sim_disk *disk)
{
    tally_add(TALLY_TEARS, disk->tears_count);
    tally_add(TALLY_EIO, disk->faults[IO_FAULT_EIO]);
    tally_add(TALLY_ENOSPC, disk->faults[IO_FAULT_ENOSPC]);
    tally_add(TALLY_SHORT_WRITE, disk->faults[IO_FAULT_SHORT_WRITE]);
    tally_add(TALLY_SYNC_EIO, disk->faults[IO_FAULT_SYNC_EIO]);
    tally_add(TALLY_SLOW, disk->faults[IO_FAULT_SLOW]);
}

static void sim_fn(void *argument) RON_BLOCKS
{
    struct sim_world *world;
    unsigned processes_count = 0;
    unsigned failed_count = 0;
    uint64_t known_count = 0;

    sim_spare_allocations(true);
    world = model_alloc(sizeof(*world));
    choose_weather(world, argument);
    while (world->operations_count < SIM_OPERATIONS_MIN && processes_count < PROCESSES_MAX) {
        if (sim_node_wait(sim_node_start("process", true, process_fn, world))) {
            sim_spare_allocations(true);
            sim_disk_crash(&world->disk);
        }
        if (world->closed)
            sim_check_closed(world);
        /* On a full disk starts fail one after the other, each at once: they are no processes. */
        processes_count += world->came_up ? 1 : 0;
        failed_count += world->came_up ? 0 : 1;
        RON_ASSERT(failed_count < STARTS_FAILED_MAX);
    }
    sim_disk_crash(&world->disk); /* the power goes when all is done */
    sim_disk_set(&world->disk, &sim_disk_honest);
    world->last = true;
    (void)sim_node_wait(sim_node_start("last process", false, process_fn, world));
    RON_ASSERT(world->closed);
    sim_check_closed(world);
    for (unsigned i = 0; i < SIM_KEYS_COUNT; i++)
        known_count += world->known[i] ? 1 : 0;
    sim_outcome((uint64_t)world->weather << 32 | known_count << 16 | processes_count);
    sim_disk_fini(&world->disk);
    tally_disk(&world->disk);
    ron_mem_free(world);
}

#define BUDGETS                                                                                 \
    .preemption_bound = NONE, .crashes = 2, .faults = 3, .alloc_failures = 2, .clock_jumps = 2, \
    .steps_max = 2000000
static const struct model_case sim_cases[] = {
    {.config = {BUDGETS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 60,
     .expected_steps = SIM_SEED_STEPS},
};
static const enum sim_weather power = SIM_POWER;
MODEL(service_sim, "the ledger in all weathers: 320 operations of 4 clients (by seeds)", sim_fn,
      NULL, sim_cases);
MODEL(service_power, "the same while the power goes in the middle of syncs (by seeds)", sim_fn,
      MODEL_CONST(power), sim_cases);
