/*
 * ledger_service_crash.c - the ledger's pipeline on its file engine, on a disk in memory: crashed
 * anywhere, opened again, with clients that ask again; and on a disk that fails.
 *
 * In every schedule: what was answered OK is found by the next process with the same seq and root;
 * asking again with the same key gives the same reply; nothing is there twice; the balance is what
 * the log says; after an unclean stop the service is born in SafeMode and leaves it by itself.
 * Planted: a disk whose syncs lie.
 *
 * A run has thousands of points, so seeds explore it.
 */
#include "base/mem.h"
#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "ledger/service.h"
#include "models/support.h"
#include "rt/registry.h"
#include "rt/watch.h"

enum { KEYS_COUNT = 3, AMOUNT = 5, SURVIVE_MAX = 6 };

/* What the world outside remembers: it does not crash. */
struct world {
    struct io_vfs *disk, *faulty;
    const struct io_faulty_options *options;
    bool known[KEYS_COUNT]; /* was answered OK */
    struct ledger_reply replies[KEYS_COUNT];
    unsigned starts_count, answers_count, failures_count;
};

struct call {
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    struct rt_watch *answered; /* bool */
};

struct process {
    struct world *world;
    struct ledger_service *service;
    struct call calls[KEYS_COUNT];
};

static const char *const keys[KEYS_COUNT] = {"a", "b", "c"};

static void done(struct ledger_request *request, void *context)
{
    struct call *call = context;
    const bool answered = true;

    (void)request;
    rt_watch_set(call->answered, &answered);
}

static void check_reply(struct world *world, unsigned key, const struct ledger_outcome *outcome)
{
    world->answers_count++;
    if (outcome->err != RON_ERR_OK) {
        RON_ASSERT(outcome->err == RON_ERR_SAFE_MODE || outcome->err == RON_ERR_DRAINING ||
                   outcome->err == RON_ERR_PERSISTENCE_FULL);
        world->failures_count++;
        return;
    }
    if (world->known[key]) /* byte for byte, crashes or not */
        RON_ASSERT(memcmp(&world->replies[key], &outcome->reply, sizeof(outcome->reply)) == 0);
    world->known[key] = true;
    world->replies[key] = outcome->reply;
}

static void ask(struct process *process, unsigned key) RON_BLOCKS
{
    struct call *call = &process->calls[key];
    const struct rt_watch_options options = {
        .name = "answered", .owner = "model", .value_size = sizeof(bool)};
    bool answered = false;
    uint64_t version;

    call->wire = (struct ledger_wire_entry){.id = ron_slice_text(keys[key]),
                                            .kind = RON_SLICE("Mint"),
                                            .to = RON_SLICE("alice"),
                                            .asset = RON_SLICE("roc"),
                                            .amount = RON_SLICE("5")};
    call->request = (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST, .key = ron_slice_text(keys[key])},
        .wire = &call->wire,
        .wire_count = 1,
        .ops_room = &call->op,
        .size = 1,
        .deadline = RT_DEADLINE_NEVER,
        .done = done,
        .context = call,
    };
    model_must(rt_watch_new(&options, &answered, &call->answered, NULL));
    version = rt_watch_get(call->answered, NULL);
    if (ledger_submit(process->service, &call->request, NULL) == RON_ERR_OK) {
        model_must(
            rt_watch_wait(call->answered, version, RT_DEADLINE_NEVER, &answered, &version, NULL));
        check_reply(process->world, key, &call->request.outcome);
    }
    (void)rt_watch_free(call->answered);
}

static void client_fn(void *argument) RON_BLOCKS
{
    for (unsigned i = 1; i < KEYS_COUNT; i++)
        ask(argument, i);
}

/* What the log gave back: all that was acknowledged, and the balance that belongs to it. */
static void check_start(struct process *process)
{
    struct world *world = process->world;
    const struct ledger_id alice = ledger_account_id("", RON_SLICE("alice"));
    struct ledger_balance balance;
    struct ledger_health health;

    ledger_read_health(process->service, &health);
    if (health.status.state == RT_LIFE_SAFE_MODE) { /* only a failing disk may do this */
        RON_ASSERT(world->options->choices != 0);
        return;
    }
    ledger_read_balance(process->service, &alice, 1, &balance);
    RON_ASSERT(balance.amount.v == (unsigned __int128)health.head.seq * AMOUNT);
    RON_ASSERT(health.head.seq <= KEYS_COUNT);
    for (unsigned i = 0; i < KEYS_COUNT; i++)
        RON_ASSERT(!world->known[i] || world->replies[i].seq_end <= health.head.seq);
}

static struct ledger_service_options options_of(struct ledger_engine *engine)
{
    struct ledger_service_options options = ledger_service_defaults(8, 2);

    options.capacity = (struct ledger_capacity){.accounts_max = 8,
                                                .rows_max = 8,
                                                .names_size_max = 512,
                                                .assets_max = 1,
                                                .holds_max = 1,
                                                .reversals_max = 1,
                                                .limits_max = 1,
                                                .runs_max = 1,
                                                .streams_max = 1,
                                                .entries_window = 8,
                                                .batches_window = 8,
                                                .keys_window = 8};
    options.engine = engine;
    options.prevalidators_count = 1;
    options.commit_max = 2;
    options.roots_max = 2;
    options.expire_ms = 0;
    options.lag_ms_max = 0;
    options.drain_ms = 600000;
    options.classes[0] = (struct ledger_slot_class){3, LEDGER_EXT_SIZE_MAX, 2};
    options.classes[1].count = 0;
    options.classes[2].count = 0;
    return options;
}

static void serve(struct process *process, struct ledger_engine *engine) RON_BLOCKS
{
    const struct ledger_service_options options = options_of(engine);
    const bool clean = engine->clean;
    struct ledger_health health;
    struct sh_thread *client;

    model_must(ledger_service_new(&options, &process->service, NULL));
    ledger_read_health(process->service, &health);
    RON_ASSERT((health.status.state == RT_LIFE_SAFE_MODE) == !clean);
    model_must(ledger_service_start(process->service, NULL));
    model_must(ledger_service_await_start(process->service, RT_DEADLINE_NEVER, NULL));
    check_start(process);
    client = model_spawn("client", client_fn, process);
    ask(process, 0);
    model_join(client);
    if (ledger_service_stop(process->service, NULL, NULL) != RON_ERR_OK)
        RON_ASSERT(process->world->options->choices != 0);
    process->service = ledger_service_free(process->service);
}

static void process_fn(void *argument) RON_BLOCKS
{
    struct process *process = model_alloc(sizeof(*process));
    struct ledger_engine *engine = NULL;
    enum ron_err err;

    process->world = argument;
    process->world->starts_count++;
    rt_init(); /* what a crashed process had registered is forgotten */
    err = ledger_engine_file_open(
        &(struct ledger_engine_file_options){.vfs = process->world->faulty,
                                             .dir = "log",
                                             .segment_bytes = 8192,
                                             .ahead_bytes = 4096,
                                             .group_bytes = 2048,
                                             .record_bytes_max = 2048},
        &engine, NULL);
    if (err == RON_ERR_OK)
        serve(process, engine);
    else
        RON_ASSERT(process->world->options->choices != 0);
    (void)ledger_engine_file_free(engine);
    ron_mem_free(process);
}

static void start_disk(struct world *world, struct io_vfs *disk)
{
    world->disk = disk;
    model_must(io_vfs_faulty_new(disk, world->options, &world->faulty, NULL));
}

/* Any subset of the last few changes survives, and all or none of those before them. */
static void crash_disk(struct world *world) RON_BLOCKS
{
    const size_t count = io_memory_unsynced_count(world->disk);
    const size_t chosen = count < SURVIVE_MAX ? count : SURVIVE_MAX;
    uint8_t *keep = model_alloc(count / 8 + 1);
    struct io_vfs *image = NULL;
    unsigned subset;

    if (count > chosen && sim_choose(2, "what survives of the older") == 1)
        memset(keep, 0xff, count / 8 + 1);
    subset = sim_choose(1u << chosen, "what survives");
    for (size_t i = 0; i < chosen; i++) {
        const size_t at = count - chosen + i;
        const uint8_t bit = (uint8_t)(1u << at % 8);

        keep[at / 8] = (uint8_t)((subset >> i & 1) != 0 ? keep[at / 8] | bit : keep[at / 8] & ~bit);
    }
    model_must(
        io_memory_crash(world->disk, &(struct io_crash_plan){keep, SIZE_MAX, 0}, &image, NULL));
    (void)io_vfs_free(world->faulty);
    (void)io_vfs_free(world->disk);
    ron_mem_free(keep);
    start_disk(world, image);
}

static void crash_fn(void *argument) RON_BLOCKS
{
    static const struct io_faulty_options honest = {0};
    struct world *world = model_alloc(sizeof(*world));
    struct io_vfs *disk = NULL;
    unsigned crashes_count = 0;

    world->options = argument;
    model_must(io_vfs_memory_new(NULL, &disk, NULL));
    start_disk(world, disk);
    while (sim_node_wait(sim_node_start("process", true, process_fn, world))) {
        crashes_count++;
        crash_disk(world);
    }
    crash_disk(world); /* the power goes when all is done */
    world->options = &honest;
    (void)io_vfs_free(world->faulty);
    start_disk(world, world->disk);
    (void)sim_node_wait(sim_node_start("last process", false, process_fn, world));
    for (unsigned i = 0; i < KEYS_COUNT; i++) /* nobody is left without an answer for good */
        RON_ASSERT(world->known[i]);
    sim_outcome((uint64_t)crashes_count << 16 | world->answers_count << 8 | world->failures_count);
    (void)io_vfs_free(world->faulty);
    (void)io_vfs_free(world->disk);
    ron_mem_free(world);
}

static const struct io_faulty_options honest_disk = {0};
static const struct io_faulty_options failing_disk = {
    .choices = 1u << IO_FAULT_EIO | 1u << IO_FAULT_ENOSPC | 1u << IO_FAULT_SHORT_WRITE |
               1u << IO_FAULT_SYNC_EIO};
static const struct io_faulty_options lying_disk = {.choices = 1u << IO_FAULT_LYING_SYNC};

#define STEPS .steps_max = 200000
static const struct model_case crash_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 300,
     .expected_steps = 2000},
    {.config = {.preemption_bound = NONE, .crashes = 1, STEPS},
     .strategy = SIM_STRATEGY_PCT,
     .runs_max = 300,
     .expected_steps = 2000},
    {.config = {.preemption_bound = NONE, .crashes = 3, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 20000,
     .expected_steps = 3000,
     .slow = true},
};
static const struct model_case fault_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 300,
     .expected_steps = 2000},
};
static const struct model_case lies_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 4, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 3000,
     .expected_steps = 500,
     .expected = SIM_ASSERTION},
};
MODEL(service_crash, "the ledger on its file engine, crashed anywhere, asked again", crash_fn,
      MODEL_CONST(honest_disk), crash_cases);
MODEL(service_crash_faults, "the same on a disk that fails", crash_fn, MODEL_CONST(failing_disk),
      fault_cases);
MODEL(service_crash_lies, "the same on a disk whose syncs lie", crash_fn, MODEL_CONST(lying_disk),
      lies_cases);
