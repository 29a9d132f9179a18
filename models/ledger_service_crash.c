/*
 * ledger_service_crash.c - the ledger's pipeline on its file engine, on a disk in memory: crashed
 * anywhere, opened again, with clients that ask again; and on a disk that fails.
 *
 * In every schedule: what was answered OK is found by the next process with the same seq and root;
 * asking again with the same key, by whomever and whenever, gives the same reply; no key is in the
 * log twice; seqs have no gap and each frame stands on the root before it; balances are what the
 * log says and add up to what was issued; after an unclean stop the service is born in SafeMode and
 * leaves it by itself. Snapshots are taken all the time,
 * so that a crash finds them at every step of their making, and most starts begin with one; what
 * they hold must be what the log says.
 * With a tree (service_tree): who was answered gets a proof that leads to a
 * signed head, and no head that was ever signed is contradicted by what a later process finds.
 * Planted: a disk whose syncs lie.
 *
 * covers: LED-C06 LED-F07 LED-F13 LED-V02 LED-V15 LED-V24
 *
 * A run has thousands of points, so seeds explore it. Larger and in worse weather: ledger_sim.c.
 */
#include <stdio.h>

#include "base/mem.h"
#include "ledger/core_frame.h"
#include "ledger/service.h"
#include "ledger/tree.h"
#include "models/ledger_support.h"
#include "models/sim_disk.h"
#include "models/support.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { KEYS_COUNT = 3, CLIENTS_COUNT = 2, AMOUNT = 5, WINDOW = 97 };

struct shape {
    const struct io_faulty_options *disk;
    bool has_tree;
};

/* What the world outside remembers: it does not crash. */
struct world {
    struct sim_disk disk;
    const struct shape *shape;
    bool known[KEYS_COUNT]; /* was answered OK */
    struct ledger_reply replies[KEYS_COUNT];
    unsigned answers_count, failures_count;
    unsigned loads_count;        /* starts with a snapshot */
    struct ron_tree signed_head; /* the newest that any process signed */
};

struct call {
    struct client *client;
    unsigned key;
    struct ledger_request request;
    struct ledger_wire_entry wire;
    struct ledger_op op;
    char text[8];
};

struct client {
    struct process *process;
    struct rt_queue *answered;
    unsigned waiting_count; /* answers that will still come */
    struct call calls[KEYS_COUNT];
};

struct process {
    struct world *world;
    struct ledger_service *service;
    struct ledger_tree *tree; /* NULL: none */
    bool has_signed;
    uint64_t signed_seq; /* of the last head this process signed */
    struct client clients[CLIENTS_COUNT];
};

static bool is_mint(unsigned key)
{
    return key % 3 != 2;
}

static void check_reply(struct call *call)
{
    struct world *world = call->client->process->world;
    const struct ledger_outcome *outcome = &call->request.outcome;

    world->answers_count++;
    if (outcome->err != RON_ERR_OK) {
        RON_ASSERT(outcome->err == RON_ERR_SAFE_MODE || outcome->err == RON_ERR_PERSISTENCE_FULL ||
                   outcome->err == RON_ERR_COMMIT_BACKPRESSURE ||
                   (outcome->err == RON_ERR_INSUFFICIENT_FUNDS && !is_mint(call->key)));
        world->failures_count++;
        return;
    }
    if (world->known[call->key]) /* byte for byte, crashes or not */
        RON_ASSERT(memcmp(&world->replies[call->key], &outcome->reply, sizeof(outcome->reply)) ==
                   0);
    world->known[call->key] = true;
    world->replies[call->key] = outcome->reply;
}

static void done(struct ledger_request *request, void *context)
{
    struct call *call = context;

    RON_ASSERT(request == &call->request);
    check_reply(call);
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

static void ask(struct client *client, unsigned number, unsigned key)
{
    struct call *call = &client->calls[number];

    *call = (struct call){.client = client, .key = key};
    (void)snprintf(call->text, sizeof(call->text), "k%u", key);
    call->wire = (struct ledger_wire_entry){.id = ron_slice_text(call->text),
                                            .kind = RON_SLICE("Mint"),
                                            .to = RON_SLICE("alice"),
                                            .asset = RON_SLICE("roc"),
                                            .amount = RON_SLICE("5")};
    if (!is_mint(key)) {
        call->wire.kind = RON_SLICE("Transfer");
        call->wire.from = RON_SLICE("alice");
        call->wire.to = RON_SLICE("bob");
    }
    call->request = ledger_model_ingest(&call->wire, &call->op, call->text, done, call);
    if (ledger_submit(client->process->service, &call->request, NULL) == RON_ERR_OK)
        client->waiting_count++;
}

/* Each accepted call has a proof, unless tiles cannot be written. */
static void prove(struct client *client, unsigned number) RON_BLOCKS
{
    const struct ledger_outcome *outcome = &client->calls[number].request.outcome;
    struct ledger_tree *tree = client->process->tree;
    struct ron_proof proof;
    struct ron_buf text;
    enum ron_err err;

    if (tree == NULL || outcome->err != RON_ERR_OK || outcome->reply.batch == 0)
        return;
    ron_buf_init(&text, 1 << 14);
    err = ledger_tree_await(tree, outcome->reply.seq_end, RT_DEADLINE_NEVER, NULL);
    if (err == RON_ERR_OK)
        err = ledger_tree_proof_text(tree, outcome->reply.seq_start, &text, NULL);
    if (err == RON_ERR_OK)
        model_must(ron_proof_parse(ron_buf_slice(&text), &proof, NULL));
    else
        RON_ASSERT(client->process->world->disk.options->choices != 0);
    ron_buf_fini(&text);
}

static void client_fn(void *argument) RON_BLOCKS
{
    struct client *client = argument;

    for (unsigned i = 0; i < KEYS_COUNT; i++) {
        ask(client, i, i);
        await(client, 0);
        /* The other client and a snapshot's Anchor have both slots: they come back. */
        while (client->calls[i].request.outcome.err == RON_ERR_COMMIT_BACKPRESSURE) {
            sh_sleep_until(rt_deadline_after_ms(1).at_ns);
            ask(client, i, i);
            await(client, 0);
        }
        prove(client, i);
    }
}

/* One frame of the log against what the world knows. */
static void check_frame(const struct world *world, const struct ledger_frame *frame,
                        bool seen[KEYS_COUNT], uint64_t *minted, uint64_t *moved)
{
    unsigned key = 0;

    if (frame->stamp.caller == LEDGER_CALLER_LEDGER)
        return; /* the Anchor of a snapshot */
    for (size_t i = 1; i < frame->key.size; i++)
        key = key * 10 + (unsigned)(frame->key.data[i] - '0');
    RON_ASSERT(key < KEYS_COUNT);
    RON_ASSERT(!seen[key]); /* nothing twice */
    seen[key] = true;
    if (is_mint(key))
        *minted += AMOUNT;
    else
        *moved += AMOUNT;
    if (!world->known[key])
        return;
    RON_ASSERT(world->replies[key].batch == frame->batch);
    RON_ASSERT(world->replies[key].seq_start == frame->seq_start);
    RON_ASSERT(memcmp(&world->replies[key].root, &frame->root, sizeof(frame->root)) == 0);
}

static uint64_t balance_of(struct process *process, struct ron_slice account)
{
    const struct ledger_id id = ledger_account_id("", account);
    struct ledger_balance balance;

    ledger_read_balance(process->service, &id, 1, &balance);
    return (uint64_t)balance.amount.v;
}

/* What the log gave back: all that was acknowledged, once, and the balances that belong to it. */
static void check_start(struct process *process) RON_BLOCKS
{
    struct world *world = process->world;
    bool seen[KEYS_COUNT] = {false};
    struct ron_sha256 root = ron_merkle_empty;
    uint64_t minted = 0;
    uint64_t moved = 0;
    struct ledger_health health;
    struct ledger_frame frame;
    struct ron_buf buf;

    ledger_read_health(process->service, &health);
    if (health.status.state == RT_LIFE_SAFE_MODE) { /* only a failing disk may do this */
        RON_ASSERT(world->disk.options->choices != 0);
        return;
    }
    RON_ASSERT(health.snapshots.ahead_count == 0 || world->disk.options->choices != 0);
    RON_ASSERT(health.snapshots.passed_over_count == 0 || world->disk.options->choices != 0);
    world->loads_count += health.snapshots.batch > 0 ? 1 : 0;
    ron_buf_init(&buf, 1 << 16);
    for (uint64_t i = 1; i <= health.head.batch; i++) {
        ron_buf_reset(&buf);
        if (ledger_read_batch(process->service, i, &buf, NULL) != RON_ERR_OK) {
            RON_ASSERT(world->disk.options->choices != 0);
            ron_buf_fini(&buf);
            return;
        }
        model_must(ledger_frame_decode(ron_slice_of(buf.data, buf.size), &frame, NULL));
        RON_ASSERT(frame.batch == i);
        RON_ASSERT(frame.seq_start == i); /* one entry each: no gap */
        RON_ASSERT(memcmp(&frame.previous_root, &root, sizeof(root)) == 0);
        root = frame.root;
        check_frame(world, &frame, seen, &minted, &moved);
    }
    ron_buf_fini(&buf);
    for (unsigned i = 0; i < KEYS_COUNT; i++)
        RON_ASSERT(!world->known[i] || seen[i]); /* nothing acknowledged is lost */
    RON_ASSERT(balance_of(process, RON_SLICE("alice")) == minted - moved);
    RON_ASSERT(balance_of(process, RON_SLICE("bob")) == moved);
}

/* --- The tree ------------------------------------------------------------------------------------
 * A follower that hands on to it, and remembers outside of the process what was signed.
 */

static enum ron_err tree_extend(void *context, uint64_t seq_start, const struct ron_sha256 *hashes,
                                size_t hashes_count, const struct ron_sha256 *nodes,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_extend(((struct process *)context)->tree, seq_start, hashes, hashes_count,
                              nodes, reterr);
}

static uint64_t tree_size(void *context)
{
    return ledger_tree_size(((struct process *)context)->tree);
}

static enum ron_err tree_settle(void *context, const struct ledger_root *head,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_settle(((struct process *)context)->tree, head, reterr);
}

static enum ron_err tree_head(void *context, const struct ledger_root *root,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct process *process = context;
    enum ron_err err = ledger_tree_sign(process->tree, root, reterr);

    if (err == RON_ERR_OK) {
        RON_ASSERT(root->seq >= process->world->signed_head.size); /* never back, crashes or not */
        RON_ASSERT(!process->has_signed || root->seq > process->signed_seq); /* nor twice */
        process->has_signed = true;
        process->signed_seq = root->seq;
        process->world->signed_head = (struct ron_tree){root->seq, root->root};
    }
    return err;
}

static enum ron_err tree_keep(void *context, bool sync, struct ron_errinfo *reterr) RON_BLOCKS
{
    return ledger_tree_keep(((struct process *)context)->tree, sync, reterr);
}

static void tree_end(void *context)
{
    ledger_tree_cancel(((struct process *)context)->tree);
}

/* What was signed before is the beginning of what is found. */
static void check_tree(struct process *process) RON_BLOCKS
{
    struct world *world = process->world;
    struct ledger_health health;
    struct ron_sha256 root;
    struct ron_tree head;

    ledger_read_health(process->service, &health);
    if (process->tree == NULL || health.follower_lost || health.status.state == RT_LIFE_SAFE_MODE) {
        RON_ASSERT(process->tree == NULL || world->disk.options->choices != 0);
        return;
    }
    RON_ASSERT(ledger_tree_size(process->tree) >= health.head.seq);
    /* What recovery found is signed, and soon what came since (the Anchor of a snapshot). */
    RON_ASSERT(ledger_tree_await(process->tree, health.head.seq, rt_deadline_after_ms(60000),
                                 NULL) == RON_ERR_OK ||
               world->disk.options->choices != 0);
    head = world->signed_head; /* the next may be signed meanwhile */
    model_must(io_tlog_root(ledger_tree_log(process->tree), head.size, &root, NULL));
    RON_ASSERT(memcmp(&root, &head.root, sizeof(root)) == 0);
}

static struct ledger_service_options options_of(const struct world *world,
                                                struct ledger_engine *engine)
{
    struct ledger_service_options options = ledger_model_options(engine, WINDOW);

    options.snapshot = (struct ledger_snapshot_options){.vfs = world->disk.vfs,
                                                        .dir = "snapshots",
                                                        .entries = 1,
                                                        .write_ms_max = 600000,
                                                        .copy_max = 1};
    options.commit_max = 2;
    options.classes[0].count = 2;
    options.drain_ms = 600000;
    return options;
}

static void run_clients(struct process *process) RON_BLOCKS
{
    static const char *const names[CLIENTS_COUNT] = {"client 1", "client 2"};
    const struct rt_queue_options options = {
        .name = "answered", .owner = "model", .policy = "never full", .capacity = KEYS_COUNT};
    struct sh_thread *threads[CLIENTS_COUNT];

    for (unsigned i = 0; i < CLIENTS_COUNT; i++) {
        struct client *client = &process->clients[i];

        client->process = process;
        model_must(rt_queue_new(&options, &client->answered, NULL));
        threads[i] = model_spawn(names[i], client_fn, client);
    }
    for (unsigned i = 0; i < CLIENTS_COUNT; i++) {
        model_join(threads[i]);
        (void)rt_queue_free(process->clients[i].answered);
    }
}

static void serve(struct process *process, struct ledger_engine *engine) RON_BLOCKS
{
    struct ledger_service_options options = options_of(process->world, engine);
    const bool clean = engine->clean;
    struct ledger_health health;

    if (process->tree != NULL)
        options.follower = (struct ledger_follower){process,   tree_extend, tree_size, tree_settle,
                                                    tree_head, tree_keep,   tree_end};
    model_must(ledger_service_new(&options, &process->service, NULL));
    ledger_read_health(process->service, &health);
    RON_ASSERT((health.status.state == RT_LIFE_SAFE_MODE) == !clean);
    model_must(ledger_service_start(process->service, NULL));
    model_must(ledger_service_await_start(process->service, RT_DEADLINE_NEVER, NULL));
    check_start(process);
    check_tree(process);
    run_clients(process);
    if (ledger_service_stop(process->service, NULL, NULL) != RON_ERR_OK)
        RON_ASSERT(process->world->disk.options->choices != 0);
    process->service = ledger_service_free(process->service);
}

static void process_fn(void *argument) RON_BLOCKS
{
    struct process *process = model_alloc(sizeof(*process));
    struct ledger_engine *engine = NULL;
    enum ron_err err;

    process->world = argument;
    rt_init(); /* what a crashed process had registered is forgotten */
    err = ledger_engine_file_open(
        &(struct ledger_engine_file_options){.vfs = process->world->disk.vfs,
                                             .dir = "log",
                                             .segment_bytes = 8192,
                                             .ahead_bytes = 4096,
                                             .group_bytes = 2048,
                                             .record_bytes_max = 2048,
                                             .direct = true},
        &engine, NULL);
    if (err == RON_ERR_OK && process->world->shape->has_tree)
        err = ledger_tree_open(&(struct ledger_tree_options){.vfs = process->world->disk.vfs,
                                                             .dir = "tiles",
                                                             .key = "log.key",
                                                             .origin = "model/ledger",
                                                             .cache_bytes = 2 << 20},
                               &process->tree, NULL);
    if (err == RON_ERR_OK)
        serve(process, engine);
    else
        RON_ASSERT(process->world->disk.options->choices != 0);
    process->tree = ledger_tree_free(process->tree);
    (void)ledger_engine_file_free(engine);
    ron_mem_free(process);
}

static void crash_fn(void *argument) RON_BLOCKS
{
    struct world *world = model_alloc(sizeof(*world));
    unsigned crashes_count = 0;

    world->shape = argument;
    sim_disk_init(&world->disk, world->shape->disk);
    while (sim_node_wait(sim_node_start("process", true, process_fn, world))) {
        crashes_count++;
        sim_disk_crash(&world->disk);
    }
    sim_disk_crash(&world->disk); /* the power goes when all is done */
    sim_disk_set(&world->disk, &sim_disk_honest);
    (void)sim_node_wait(sim_node_start("last process", false, process_fn, world));
    for (unsigned i = 0; i < KEYS_COUNT; i++)
        RON_ASSERT(world->known[i]); /* nobody is left without an answer for good */
    sim_outcome((uint64_t)world->loads_count << 24 | (uint64_t)crashes_count << 16 |
                world->answers_count << 8 | world->failures_count);
    sim_disk_fini(&world->disk);
    ron_mem_free(world);
}

static const struct shape crash_shape = {&sim_disk_honest, false};
static const struct shape faults_shape = {&sim_disk_failing, false};
static const struct shape lies_shape = {&sim_disk_lying, false};
static const struct shape tree_shape = {&sim_disk_honest, true};
static const struct shape tree_faults_shape = {&sim_disk_failing, true};

#define STEPS .steps_max = 2000000
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
static const struct model_case tree_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 2, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 200,
     .expected_steps = 3000},
    {.config = {.preemption_bound = NONE, .crashes = 1, STEPS},
     .strategy = SIM_STRATEGY_PCT, /* a task that starts late stays late */
     .runs_max = 200,
     .expected_steps = 3000},
    {.config = {.preemption_bound = NONE, .crashes = 3, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 10000,
     .expected_steps = 4000,
     .slow = true},
};
static const struct model_case lies_cases[] = {
    {.config = {.preemption_bound = NONE, .crashes = 1, .faults = 4, STEPS},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 3000,
     .expected_steps = 500,
     .expected = SIM_ASSERTION},
};
MODEL(service_crash, "the ledger on its file engine, crashed anywhere, asked again", crash_fn,
      MODEL_CONST(crash_shape), crash_cases);
MODEL(service_crash_faults, "the same on a disk that fails", crash_fn, MODEL_CONST(faults_shape),
      fault_cases);
MODEL(service_tree, "the same with a tree: heads are never contradicted", crash_fn,
      MODEL_CONST(tree_shape), tree_cases);
MODEL(service_tree_faults, "the tree on a disk that fails", crash_fn,
      MODEL_CONST(tree_faults_shape), fault_cases);
MODEL(service_crash_lies, "the same on a disk whose syncs lie", crash_fn, MODEL_CONST(lies_shape),
      lies_cases);
