/*
 * lanes.c - strands: turns by weight, one thread per lane, order, and a handler that panics.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"

enum { LANES_MAX = 2, ITEMS_MAX = 4 };

struct item {
    unsigned lane;
    unsigned number; /* in its lane */
    unsigned handled_count, dropped_count;
};

struct lane {
    struct works *works;
    bool running;
    unsigned ended_count;
    /* Shared with whoever sends, hence counters: 1 when an item of it has begun; 1 when one is in
     * and has not; how many of the other lane's have begun since. */
    struct rt_atomic_u64 begun, waiting, overtaken_count;
};

struct works {
    struct rt_supervisor *supervisor;
    struct rt_strands *strands;
    struct rt_lane_id ids[LANES_MAX];
    struct lane lanes[LANES_MAX];
    struct item items[LANES_MAX][ITEMS_MAX];
    bool panics; /* the first item of lane 0 is too much */
};

static void handle(void *context, void *object, void *argument)
{
    struct works *works = context;
    struct lane *lane = object;
    struct item *item = argument;

    RON_ASSERT(lane == &works->lanes[item->lane]);
    RON_ASSERT(!lane->running); /* never two at once */
    lane->running = true;
    RON_ASSERT(item->number == lane->ended_count); /* first in, first out */
    sim_point("handle");
    lane->running = false;
    if (works->panics && item->lane == 0 && item->number == 0)
        rt_panic("too much");
    lane->ended_count++;
    item->handled_count++;
}

static void drop(void *context, void *object, void *argument, enum ron_err reason)
{
    struct works *works = context;
    struct lane *lane = object;
    struct item *item = argument;

    RON_ASSERT(works->panics);
    RON_ASSERT(reason == RON_ERR_INTERNAL);
    RON_ASSERT(item->lane == 0 && item->number == 0);
    lane->ended_count++;
    item->dropped_count++;
}

static struct works *begin(uint32_t threads_count,
                           void (*handler)(void *, void *, void *)) RON_BLOCKS
{
    struct works *works = model_alloc(sizeof(*works));
    const struct rt_supervisor_options supervisor_options = {
        .name = "supervisor", .owner = "model", .tasks_max = threads_count};
    const struct rt_strands_options options = {.name = "lanes",
                                               .owner = "model",
                                               .kind = "lane",
                                               .threads_count = threads_count,
                                               .lanes_max = LANES_MAX,
                                               .lane_capacity = ITEMS_MAX,
                                               .items_max = LANES_MAX * ITEMS_MAX,
                                               .handle = handler,
                                               .drop = drop,
                                               .context = works};

    rt_init();
    model_must(rt_supervisor_new(&supervisor_options, &works->supervisor, NULL));
    model_must(rt_strands_new(&options, works->supervisor, &works->strands, NULL));
    for (unsigned i = 0; i < LANES_MAX; i++) {
        works->lanes[i].works = works;
        for (unsigned k = 0; k < ITEMS_MAX; k++)
            works->items[i][k] = (struct item){.lane = i, .number = k};
    }
    return works;
}

static void send_item(struct works *works, unsigned lane, unsigned number)
{
    model_must(rt_lane_send(works->strands, works->ids[lane], &works->items[lane][number], NULL));
}

static void end(struct works *works) RON_BLOCKS
{
    model_must(rt_supervisor_stop(works->supervisor, RT_DEADLINE_NEVER, NULL));
    rt_strands_free(works->strands);
    rt_supervisor_free(works->supervisor);
    ron_mem_free(works);
}

/* ---- two lanes on two threads; perhaps one handler panics ---- */

static void run_pair(bool panics) RON_BLOCKS
{
    struct works *works = begin(2, handle);
    struct rt_strands_stats stats;

    works->panics = panics;
    for (unsigned i = 0; i < LANES_MAX; i++)
        model_must(rt_lane_open(works->strands, &works->lanes[i], 1, &works->ids[i], NULL));
    send_item(works, 0, 0);
    send_item(works, 1, 0);
    send_item(works, 0, 1);
    model_must(rt_strands_drain(works->strands, RT_DEADLINE_NEVER, NULL));
    for (unsigned i = 0; i < LANES_MAX; i++) {
        for (unsigned k = 0; k + i < 2; k++) {
            const struct item *item = &works->items[i][k];

            RON_ASSERT(item->handled_count + item->dropped_count == 1);
            RON_ASSERT(item->dropped_count == (panics && i == 0 && k == 0 ? 1 : 0));
        }
    }
    rt_strands_get_stats(works->strands, &stats);
    RON_ASSERT(stats.handled_count == (panics ? 2 : 3));
    RON_ASSERT(stats.dropped_count == (panics ? 1 : 0));
    end(works);
}

static void lanes_pair_fn(void *argument) RON_BLOCKS
{
    (void)argument;
    run_pair(false);
}

static void lanes_panic_fn(void *argument) RON_BLOCKS
{
    (void)argument;
    run_pair(true);
}

/* ---- turns: a lane with work waits for one turn of the other, not longer ---- */

static void handle_in_turn(void *context, void *object, void *argument)
{
    struct works *works = context;
    struct lane *lane = object;
    struct lane *other = lane == &works->lanes[0] ? &works->lanes[1] : &works->lanes[0];
    static const unsigned weights[] = {2, 1};

    rt_counter_store(&lane->begun, 1);
    rt_counter_store(&lane->waiting, 0);
    rt_counter_store(&lane->overtaken_count, 0);
    rt_counter_add(&other->overtaken_count, rt_counter_load(&other->waiting));
    /* Its own turn at most: the weight of the lane that runs. */
    RON_ASSERT(rt_counter_load(&other->overtaken_count) <= weights[lane - works->lanes]);
    handle(context, object, argument);
}

static void lanes_fair_fn(void *argument) RON_BLOCKS
{
    struct works *works = begin(1, handle_in_turn);

    (void)argument;
    model_must(rt_lane_open(works->strands, &works->lanes[0], 2, &works->ids[0], NULL));
    model_must(rt_lane_open(works->strands, &works->lanes[1], 1, &works->ids[1], NULL));
    for (unsigned k = 0; k < 3; k++)
        send_item(works, 0, k);
    send_item(works, 1, 0);
    rt_counter_store(&works->lanes[1].waiting, 1 - rt_counter_load(&works->lanes[1].begun));
    send_item(works, 0, 3);
    model_must(rt_strands_drain(works->strands, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(works->lanes[0].ended_count == 4);
    RON_ASSERT(works->lanes[1].ended_count == 1);
    end(works);
}

/* ---- alone: while a handler takes its time, the other thread stays out of its lane ---- */

static void handle_slowly(void *context, void *object, void *argument)
{
    struct works *works = context;
    struct lane *lane = object;
    const struct item *item = argument;

    if (item->number == 0) {
        RON_ASSERT(!lane->running);
        lane->running = true;
        send_item(works, 0, 1);
        sh_sleep_until(rt_now_ns() + RT_NS_PER_MS); /* the others do whatever they can */
        lane->running = false;
    }
    handle(context, object, argument);
}

static void lanes_alone_fn(void *argument) RON_BLOCKS
{
    struct works *works = begin(2, handle_slowly);

    (void)argument;
    model_must(rt_lane_open(works->strands, &works->lanes[0], 1, &works->ids[0], NULL));
    send_item(works, 0, 0);
    sh_sleep_until(rt_now_ns() + 2 * RT_NS_PER_MS);
    model_must(rt_strands_drain(works->strands, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(works->lanes[0].ended_count == 2);
    end(works);
}

static const struct model_case pair_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}, .cache = true},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 1, .fine = 1}, .cache = true},
};
static const struct model_case fair_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
MODEL(lanes_pair, "two lanes on two threads: order, and never two threads in one lane",
      lanes_pair_fn, NULL, pair_cases);
MODEL(lanes_panic, "a handler panics: its item is dropped once, its lane goes on", lanes_panic_fn,
      NULL, pair_cases);
MODEL(lanes_alone, "a handler sends to its own lane and takes its time: nobody else runs it",
      lanes_alone_fn, NULL, pair_cases);
MODEL(lanes_fair, "lanes of weight 2 and 1: nobody waits for more than a turn", lanes_fair_fn, NULL,
      fair_cases);
