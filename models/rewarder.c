/*
 * rewarder.c - producer -> bounded queue -> consumer, and a shutdown at any moment.
 *
 * An item is memory of its own, freed by whoever is the last to hold it: the simulator reports what
 * is freed twice or never. In every schedule each item is processed or dropped and counted, never
 * both. covers: REW-V05, LED-V20
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/watch.h"

#define PATIENCE_MS 100

enum { ITEMS_MAX = 4, PRODUCERS_MAX = 2 };

struct shape {
    unsigned producers_count;
    unsigned items_each;
    uint32_t capacity;
    bool patient; /* a producer waits for room, but not for ever */
    bool hasty;   /* planted: the consumer leaves at the shutdown, whatever is in the queue */
};

struct run {
    unsigned number;
};

struct rewarder {
    const struct shape *shape;
    struct rt_queue *queue;
    struct rt_watch *shutdown;
    unsigned processed_count[ITEMS_MAX];
    unsigned dropped_count[ITEMS_MAX];
    struct rt_atomic_u64 dropped_total; /* the metric */
};

struct producer {
    struct rewarder *rewarder;
    unsigned first;
};

static void drop(struct rewarder *rewarder, struct run *run)
{
    rewarder->dropped_count[run->number]++;
    rt_counter_add(&rewarder->dropped_total, 1);
    ron_mem_free(run);
}

static void producer_fn(void *argument) RON_BLOCKS
{
    const struct producer *producer = argument;
    struct rewarder *rewarder = producer->rewarder;

    for (unsigned i = 0; i < rewarder->shape->items_each; i++) {
        struct run *run = model_alloc(sizeof(*run));
        const struct rt_queue_item item = {run, 1};
        enum ron_err err;

        run->number = producer->first + i;
        err = rewarder->shape->patient
                  ? rt_queue_send_until(rewarder->queue, item, rt_deadline_after_ms(PATIENCE_MS),
                                        NULL)
                  : rt_queue_try_send(rewarder->queue, item, NULL);
        if (err != RON_ERR_OK)
            drop(rewarder, run);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED ||
                   err == (rewarder->shape->patient ? RON_ERR_TIMEOUT : RON_ERR_BUSY));
    }
}

/* Processes until the shutdown; what is left then is dropped and counted. */
static void consumer_fn(void *argument) RON_BLOCKS
{
    struct rewarder *rewarder = argument;
    void *pointer = NULL;

    while (rt_queue_recv(rewarder->queue, RT_DEADLINE_NEVER, &pointer, NULL) == RON_ERR_OK) {
        struct run *run = pointer;
        bool stopping = rt_watch_changed(rewarder->shutdown, 1);

        if (stopping) {
            drop(rewarder, run);
            if (rewarder->shape->hasty)
                return;
            continue;
        }
        rewarder->processed_count[run->number]++;
        ron_mem_free(run);
    }
    RON_ASSERT(rt_queue_closed(rewarder->queue)); /* there is no other reason to leave */
}

static void make(struct rewarder *rewarder)
{
    const struct rt_queue_options queue_options = {.name = "work",
                                                   .owner = "model",
                                                   .policy = "refuse",
                                                   .capacity = rewarder->shape->capacity};
    const struct rt_watch_options watch_options = {
        .name = "shutdown", .owner = "model", .value_size = sizeof(bool)};
    const bool initial = false;

    model_must(rt_queue_new(&queue_options, &rewarder->queue, NULL));
    model_must(rt_watch_new(&watch_options, &initial, &rewarder->shutdown, NULL));
}

static void check(const struct rewarder *rewarder)
{
    unsigned items_count = rewarder->shape->producers_count * rewarder->shape->items_each;
    uint64_t dropped_total = 0;
    uint64_t processed = 0;

    for (unsigned i = 0; i < items_count; i++) {
        RON_ASSERT(rewarder->processed_count[i] + rewarder->dropped_count[i] == 1);
        processed |= (uint64_t)rewarder->processed_count[i] << i;
        dropped_total += rewarder->dropped_count[i];
    }
    RON_ASSERT(dropped_total == rt_counter_load(&rewarder->dropped_total));
    sim_outcome(processed);
}

static void rewarder_fn(void *argument)
{
    static const char *const names[] = {"producer 1", "producer 2"};
    const bool stopping = true;
    struct rewarder *rewarder = model_alloc(sizeof(*rewarder));
    struct producer producers[PRODUCERS_MAX];
    struct sh_thread *threads[PRODUCERS_MAX];
    struct sh_thread *consumer;

    rt_init();
    rewarder->shape = argument;
    RON_ASSERT(rewarder->shape->producers_count * rewarder->shape->items_each <= ITEMS_MAX);
    make(rewarder);
    for (unsigned i = 0; i < rewarder->shape->producers_count; i++) {
        producers[i] = (struct producer){rewarder, i * rewarder->shape->items_each};
        threads[i] = model_spawn(names[i], producer_fn, &producers[i]);
    }
    consumer = model_spawn("consumer", consumer_fn, rewarder);
    rt_watch_set(rewarder->shutdown, &stopping);
    rt_queue_close(rewarder->queue);
    for (unsigned i = 0; i < rewarder->shape->producers_count; i++)
        model_join(threads[i]);
    model_join(consumer);
    check(rewarder);
    rt_queue_free(rewarder->queue);
    rt_watch_free(rewarder->shutdown);
    ron_mem_free(rewarder);
}

static const struct shape one = {2, 1, 1, false, false};
static const struct shape two = {2, 2, 2, false, false};
static const struct shape patient = {2, 1, 1, true, false};
static const struct shape hasty = {1, 2, 2, false, true};

static const struct model_case one_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
static const struct model_case two_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2}},
};
static const struct model_case patient_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1, .early_ticks = 2},
     .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .early_ticks = 2}, .cache = true},
    {.config = {.preemption_bound = NONE, .late_ticks = 1, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1, .early_ticks = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1, .early_ticks = 1}, .cache = true},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 2}, .cache = true, .expected = SIM_ASSERTION},
};
MODEL(rewarder, "2 producers of 1 item, queue(1), consumer, shutdown at any time", rewarder_fn,
      MODEL_CONST(one), one_cases);
MODEL(rewarder_2x2, "2 producers of 2 items, queue(2)", rewarder_fn, MODEL_CONST(two), two_cases);
MODEL(rewarder_patient, "producers wait 100 ms for room in queue(1)", rewarder_fn,
      MODEL_CONST(patient), patient_cases);
MODEL(rewarder_planted, "a consumer that leaves items behind at the shutdown", rewarder_fn,
      MODEL_CONST(hasty), planted_cases);
