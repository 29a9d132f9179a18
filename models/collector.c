/*
 * collector.c - somebody reads the figures of an object that ends at that very moment.
 *
 * What the registry lists is alive while it is pinned: the simulator wipes freed memory, so a
 * figure from beyond the end is not what the object counted.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/bus.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"
#include "rt/timer.h"

enum { CAPACITY = 3, ENTRIES_MAX = 8 };

struct museum {
    struct rt_supervisor *supervisor;
    struct rt_queue *queue;
    struct rt_bus *bus;
    struct rt_strands *strands;
    struct rt_timers *timers;
    struct rt_registry_entry entries[ENTRIES_MAX];
    struct rt_bus_stats bus_stats;
    unsigned seen_count;
};

static uint64_t capacity_of(struct museum *museum, const struct rt_registry_entry *entry)
{
    void *object = (void *)(uintptr_t)entry->object;
    struct rt_queue_stats queue_stats;
    struct rt_strands_stats strands_stats;
    struct rt_timers_stats timers_stats;

    switch ((int)entry->kind) {
    case RT_KIND_QUEUE:
        rt_queue_get_stats(object, &queue_stats);
        return queue_stats.capacity;
    case RT_KIND_BUS:
        rt_bus_get_stats(object, &museum->bus_stats);
        return museum->bus_stats.capacity;
    case RT_KIND_STRANDS:
        rt_strands_get_stats(object, &strands_stats);
        return strands_stats.items_max;
    case RT_KIND_TIMER:
        rt_timers_get_stats(object, &timers_stats);
        return timers_stats.timers_max;
    default:
        return 0; /* counts nothing */
    }
}

/* As the exporter does. */
static void visitor_fn(void *argument)
{
    struct museum *museum = argument;
    size_t count;

    rt_registry_pin();
    count = rt_registry_list(museum->entries, ENTRIES_MAX);
    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++) {
        uint64_t capacity = capacity_of(museum, &museum->entries[i]);

        RON_ASSERT(capacity == 0 || capacity == CAPACITY);
        museum->seen_count += capacity == 0 ? 0 : 1;
    }
    rt_registry_unpin();
}

static void handle(void *context, void *lane, void *item)
{
    (void)context, (void)lane, (void)item;
    RON_UNREACHABLE(); /* nothing is sent */
}

static void drop(void *context, void *lane, void *item, enum ron_err reason)
{
    (void)context, (void)lane, (void)item, (void)reason;
    RON_UNREACHABLE();
}

static struct museum *begin(uint32_t tasks_max)
{
    const struct rt_supervisor_options options = {
        .name = "supervisor", .owner = "model", .tasks_max = tasks_max};
    struct museum *museum = model_alloc(sizeof(*museum));

    rt_init();
    model_must(rt_supervisor_new(&options, &museum->supervisor, NULL));
    return museum;
}

static void end(struct museum *museum)
{
    sim_outcome(museum->seen_count);
    rt_supervisor_free(museum->supervisor);
    ron_mem_free(museum);
}

static void ends_items_fn(void *argument) RON_BLOCKS
{
    const struct rt_queue_options queue_options = {
        .name = "queue", .owner = "model", .policy = "refuse", .capacity = CAPACITY};
    const struct rt_bus_options bus_options = {
        .name = "bus", .owner = "model", .capacity = CAPACITY, .message_size = 1};
    struct museum *museum = begin(1);
    struct sh_thread *visitor;

    (void)argument;
    model_must(rt_queue_new(&queue_options, &museum->queue, NULL));
    visitor = model_spawn("visitor", visitor_fn, museum);
    model_must(rt_bus_new(&bus_options, &museum->bus, NULL)); /* its birth is watched, too */
    rt_queue_free(museum->queue);
    rt_bus_free(museum->bus);
    model_join(visitor);
    end(museum);
}

static void ends_tasks_fn(void *argument) RON_BLOCKS
{
    const struct rt_strands_options strands_options = {.name = "lanes",
                                                       .owner = "model",
                                                       .kind = "lane",
                                                       .threads_count = 1,
                                                       .lanes_max = 1,
                                                       .lane_capacity = 1,
                                                       .items_max = CAPACITY,
                                                       .handle = handle,
                                                       .drop = drop};
    const struct rt_timers_options timers_options = {
        .name = "timers", .owner = "model", .timers_max = CAPACITY};
    struct museum *museum = begin(2);
    struct sh_thread *visitor;

    (void)argument;
    model_must(rt_strands_new(&strands_options, museum->supervisor, &museum->strands, NULL));
    model_must(rt_timers_new(&timers_options, museum->supervisor, &museum->timers, NULL));
    model_must(rt_supervisor_stop(museum->supervisor, RT_DEADLINE_NEVER, NULL));
    visitor = model_spawn("visitor", visitor_fn, museum);
    rt_timers_free(museum->timers);
    rt_strands_free(museum->strands);
    model_join(visitor);
    end(museum);
}

static const struct model_case cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
MODEL(ends_items, "figures are read while a queue and a bus end", ends_items_fn, NULL, cases);
MODEL(ends_tasks, "figures are read while lanes and timers end", ends_tasks_fn, NULL, cases);
