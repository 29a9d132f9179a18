/*
 * accounting.c - the exporter's pipeline: producer -> pending queue -> router -> lane -> worker.
 *
 * Shutdown at any moment, either draining or at once. In every schedule: everybody ends; an item is
 * exported or shed and counted, never both, never neither; N+1 is not exported before N unless N
 * was shed; the lane's worker is alone. covers: ACC-V10
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"

enum { ITEMS_MAX = 3 };

struct shape {
    unsigned items_count;
    uint32_t threads_count; /* under the lanes */
    uint32_t lane_capacity;
    bool forgetful; /* planted: the router does not count what the lane refuses */
};

struct item {
    unsigned number;
    unsigned exported_count;
    unsigned shed_count;
};

struct pipeline {
    const struct shape *shape;
    struct rt_queue *pending;
    struct rt_strands *strands;
    struct rt_lane_id lane;
    bool exporting;
    struct rt_atomic_u64 shed_count; /* the metric */
    struct item items[ITEMS_MAX];
};

static void shed(struct pipeline *pipeline, struct item *item)
{
    item->shed_count++;
    rt_counter_add(&pipeline->shed_count, 1);
}

static void producer_fn(void *argument)
{
    struct pipeline *pipeline = argument;

    for (unsigned i = 0; i < pipeline->shape->items_count; i++) {
        struct item *item = &pipeline->items[i];
        enum ron_err err = rt_queue_try_send(pipeline->pending, (struct rt_queue_item){item, 1},
                                             NULL);

        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_BUSY || err == RON_ERR_CANCELED);
        if (err != RON_ERR_OK)
            shed(pipeline, item);
    }
}

static void router_fn(void *argument) RON_BLOCKS
{
    struct pipeline *pipeline = argument;
    void *item = NULL;

    while (rt_queue_recv(pipeline->pending, RT_DEADLINE_NEVER, &item, NULL) == RON_ERR_OK) {
        enum ron_err err = rt_lane_send(pipeline->strands, pipeline->lane, item, NULL);

        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_BUSY || err == RON_ERR_CANCELED);
        if (err != RON_ERR_OK && !pipeline->shape->forgetful)
            shed(pipeline, item);
    }
}

static void export_item(void *context, void *lane, void *argument)
{
    struct pipeline *pipeline = context;
    struct item *item = argument;

    RON_ASSERT(lane == pipeline);
    RON_ASSERT(!pipeline->exporting);
    pipeline->exporting = true;
    for (unsigned i = 0; i < item->number; i++)
        RON_ASSERT(pipeline->items[i].exported_count + pipeline->items[i].shed_count == 1);
    sim_point("export");
    item->exported_count++;
    pipeline->exporting = false;
}

static void drop_item(void *context, void *lane, void *item, enum ron_err reason)
{
    RON_ASSERT(lane == context);
    RON_ASSERT(reason == RON_ERR_CANCELED);
    shed(context, item);
}

static void make(struct pipeline *pipeline, struct rt_supervisor *supervisor) RON_BLOCKS
{
    const struct rt_queue_options queue_options = {
        .name = "pending", .owner = "model", .policy = "refuse", .capacity = 2};
    const struct rt_strands_options options = {.name = "lanes",
                                               .owner = "model",
                                               .kind = "lane",
                                               .threads_count = pipeline->shape->threads_count,
                                               .lanes_max = 1,
                                               .lane_capacity = pipeline->shape->lane_capacity,
                                               .items_max = ITEMS_MAX,
                                               .handle = export_item,
                                               .drop = drop_item,
                                               .context = pipeline};

    model_must(rt_queue_new(&queue_options, &pipeline->pending, NULL));
    model_must(rt_strands_new(&options, supervisor, &pipeline->strands, NULL));
    model_must(rt_lane_open(pipeline->strands, pipeline, 1, &pipeline->lane, NULL));
    for (unsigned i = 0; i < ITEMS_MAX; i++)
        pipeline->items[i].number = i;
}

static void check(const struct pipeline *pipeline)
{
    uint64_t exported = 0;
    unsigned shed_count = 0;

    for (unsigned i = 0; i < pipeline->shape->items_count; i++) {
        const struct item *item = &pipeline->items[i];

        RON_ASSERT(item->exported_count + item->shed_count == 1);
        exported |= (uint64_t)item->exported_count << i;
        shed_count += item->shed_count;
    }
    RON_ASSERT(shed_count == rt_counter_load(&pipeline->shed_count));
    sim_outcome(exported);
}

static void accounting_fn(void *argument) RON_BLOCKS
{
    const struct rt_supervisor_options supervisor_options = {
        .name = "supervisor", .owner = "model", .tasks_max = 2};
    struct pipeline *pipeline = model_alloc(sizeof(*pipeline));
    struct rt_supervisor *supervisor = NULL;
    struct sh_thread *producer;
    struct sh_thread *router;

    rt_init();
    pipeline->shape = argument;
    RON_ASSERT(pipeline->shape->items_count <= ITEMS_MAX);
    model_must(rt_supervisor_new(&supervisor_options, &supervisor, NULL));
    make(pipeline, supervisor);
    router = model_spawn("router", router_fn, pipeline);
    producer = model_spawn("producer", producer_fn, pipeline);
    rt_queue_close(pipeline->pending);
    if (sim_choose(2, "shutdown in order or at once") == 0) {
        uint64_t shed_count;

        model_join(producer);
        model_join(router);
        shed_count = rt_counter_load(&pipeline->shed_count);
        model_must(rt_strands_drain(pipeline->strands, RT_DEADLINE_NEVER, NULL));
        model_must(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
        /* What was taken in is exported. */
        RON_ASSERT(rt_counter_load(&pipeline->shed_count) == shed_count);
    } else {
        model_must(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
        model_join(producer);
        model_join(router);
    }
    pipeline->strands = rt_strands_free(pipeline->strands);
    check(pipeline);
    rt_queue_free(pipeline->pending);
    rt_supervisor_free(supervisor);
    ron_mem_free(pipeline);
}

static const struct shape one = {1, 1, 1, false};
static const struct shape two = {2, 2, 1, false};
static const struct shape three = {3, 1, 2, false};
static const struct shape forgetful = {2, 1, 1, true};

static const struct model_case one_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = 3}, .slow = true},
};
static const struct model_case two_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}, .cache = true},
    {.config = {.preemption_bound = NONE}, .cache = true, .slow = true},
};
static const struct model_case three_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 2}, .slow = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 2}, .cache = true, .expected = SIM_ASSERTION},
};
MODEL(accounting, "1 item: producer, queue, router, lane, worker; shutdown at any time",
      accounting_fn, MODEL_CONST(one), one_cases);
MODEL(accounting_2, "2 items, lane(1) on two threads", accounting_fn, MODEL_CONST(two), two_cases);
MODEL(accounting_3, "3 items, lane(2) on one thread", accounting_fn, MODEL_CONST(three),
      three_cases);
MODEL(accounting_planted, "a router that forgets what the lane refuses", accounting_fn,
      MODEL_CONST(forgetful), planted_cases);
