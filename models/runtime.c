/*
 * runtime.c - watches, buses, supervised tasks and lanes of src/rt, explored.
 *
 * Each model ends by itself: nothing is closed early that would wake a waiter whose wake-up was
 * lost.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/bus.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"
#include "rt/watch.h"

#define SECOND_NS 1000000000ull

/* ---- watch: a reader that remembers the version cannot miss the last write ---- */

static void watch_reader_fn(void *argument) RON_BLOCKS
{
    struct rt_watch *watch = argument;
    unsigned value = 0;
    unsigned before = 0;
    uint64_t version = 1;

    while (value != 2) {
        model_must(rt_watch_wait(watch, version, RT_DEADLINE_NEVER, &value, &version, NULL));
        RON_ASSERT(value > before);
        before = value;
    }
    RON_ASSERT(version == 3);
}

static void watch_writer_fn(void *argument)
{
    struct rt_watch *watch = argument;

    for (unsigned value = 1; value <= 2; value++)
        rt_watch_set(watch, &value);
}

static void watch_fn(void *argument)
{
    const struct rt_watch_options options = {
        .name = "watch", .owner = "model", .value_size = sizeof(unsigned)};
    const unsigned initial = 0;
    struct rt_watch *watch = NULL;
    struct sh_thread *threads[3];

    (void)argument;
    rt_init();
    model_must(rt_watch_new(&options, &initial, &watch, NULL));
    threads[0] = model_spawn("reader 1", watch_reader_fn, watch);
    threads[1] = model_spawn("reader 2", watch_reader_fn, watch);
    threads[2] = model_spawn("writer", watch_writer_fn, watch);
    for (int i = 0; i < 3; i++)
        model_join(threads[i]);
    rt_watch_free(watch);
}

/* ---- watch: two writers; the last write is what everybody ends with ---- */

struct board {
    struct rt_watch *watch;
    uint64_t last_version; /* the reader's */
    unsigned last_value;
};

static void writer_1_fn(void *argument)
{
    const unsigned value = 1;

    rt_watch_set(((struct board *)argument)->watch, &value);
}

static void writer_2_fn(void *argument)
{
    const unsigned value = 2;

    rt_watch_set(((struct board *)argument)->watch, &value);
}

/* Follows until the watch is closed; each version has one value, and it never goes back. */
static void follower_fn(void *argument) RON_BLOCKS
{
    struct board *board = argument;
    unsigned value = 0;
    uint64_t version = 1;
    unsigned looked = 0;

    while (rt_watch_wait(board->watch, version, RT_DEADLINE_NEVER, &value, &version, NULL) ==
           RON_ERR_OK) {
        RON_ASSERT(version > board->last_version);
        RON_ASSERT(value != board->last_value); /* the two write different values */
        board->last_version = version;
        board->last_value = value;
        version = rt_watch_get(board->watch, &looked);
        RON_ASSERT(version > board->last_version || looked == value);
        RON_ASSERT(version == board->last_version || looked != value);
        version = board->last_version;
    }
}

static void watch_pair_fn(void *argument)
{
    const struct rt_watch_options options = {
        .name = "watch", .owner = "model", .value_size = sizeof(unsigned)};
    const unsigned initial = 0;
    struct board *boards = model_alloc(2 * sizeof(*boards));
    struct sh_thread *writers[2];
    struct sh_thread *followers[2];
    unsigned value = 0;
    uint64_t version;

    (void)argument;
    rt_init();
    model_must(rt_watch_new(&options, &initial, &boards[0].watch, NULL));
    boards[1].watch = boards[0].watch;
    followers[0] = model_spawn("follower 1", follower_fn, &boards[0]);
    followers[1] = model_spawn("follower 2", follower_fn, &boards[1]);
    writers[0] = model_spawn("writer 1", writer_1_fn, &boards[0]);
    writers[1] = model_spawn("writer 2", writer_2_fn, &boards[0]);
    model_join(writers[0]);
    model_join(writers[1]);
    rt_watch_close(boards[0].watch);
    model_join(followers[0]);
    model_join(followers[1]);
    version = rt_watch_get(boards[0].watch, &value);
    RON_ASSERT(version == 3);
    for (int i = 0; i < 2; i++) {
        RON_ASSERT(boards[i].last_version == version);
        RON_ASSERT(boards[i].last_value == value);
    }
    sim_outcome(value);
    rt_watch_free(boards[0].watch);
    ron_mem_free(boards);
}

/* ---- bus: what a slow subscriber does not get, it is told of; no close wakes it ---- */

struct listener {
    struct rt_bus_subscriber *subscriber;
    unsigned last; /* message after which it leaves; 0: it stays until the bus is closed */
    unsigned received_count;
    uint64_t lost_count;
};

static void listener_fn(void *argument) RON_BLOCKS
{
    struct listener *listener = argument;
    unsigned message = 0;
    unsigned before = 0;
    uint64_t lost_count = 0;

    while (rt_bus_recv(listener->subscriber, RT_DEADLINE_NEVER, &message, &lost_count, NULL) ==
           RON_ERR_OK) {
        RON_ASSERT(message == before + 1 + lost_count);
        before = message;
        listener->received_count++;
        listener->lost_count += lost_count;
        if (message == listener->last)
            return;
    }
}

static void publisher_fn(void *argument)
{
    struct rt_bus *bus = argument;

    for (unsigned message = 1; message <= 3; message++)
        model_must(rt_bus_publish(bus, &message, NULL));
}

static void bus_fn(void *argument)
{
    const struct rt_bus_options options = {
        .name = "bus", .owner = "model", .capacity = 2, .message_size = sizeof(unsigned)};
    static const char *const names[] = {"listener 1", "listener 2"};
    struct rt_bus *bus = NULL;
    struct listener *listeners = model_alloc(2 * sizeof(*listeners));
    struct sh_thread *threads[3];

    (void)argument;
    rt_init();
    model_must(rt_bus_new(&options, &bus, NULL));
    for (int i = 0; i < 2; i++) {
        model_must(rt_bus_subscribe(bus, names[i], &listeners[i].subscriber, NULL));
        listeners[i].last = 3;
        threads[i] = model_spawn(names[i], listener_fn, &listeners[i]);
    }
    threads[2] = model_spawn("publisher", publisher_fn, bus);
    for (int i = 0; i < 3; i++)
        model_join(threads[i]);
    for (int i = 0; i < 2; i++) {
        RON_ASSERT(listeners[i].received_count + listeners[i].lost_count == 3);
        sim_outcome(listeners[i].lost_count);
        rt_bus_unsubscribe(listeners[i].subscriber);
    }
    rt_bus_free(bus);
    ron_mem_free(listeners);
}

/* ---- bus: lag more than once; the total is the sum of what was told ---- */

static void bus_lag_publisher_fn(void *argument)
{
    struct rt_bus *bus = argument;

    for (unsigned message = 1; message <= 4; message++)
        model_must(rt_bus_publish(bus, &message, NULL));
    rt_bus_close(bus);
}

static void bus_lag_fn(void *argument)
{
    const struct rt_bus_options options = {
        .name = "bus", .owner = "model", .capacity = 1, .message_size = sizeof(unsigned)};
    struct rt_bus_stats *stats = model_alloc(sizeof(*stats));
    struct listener *listener = model_alloc(sizeof(*listener));
    struct rt_bus *bus = NULL;
    struct sh_thread *threads[2];

    (void)argument;
    rt_init();
    model_must(rt_bus_new(&options, &bus, NULL));
    model_must(rt_bus_subscribe(bus, "listener", &listener->subscriber, NULL));
    threads[0] = model_spawn("listener", listener_fn, listener);
    threads[1] = model_spawn("publisher", bus_lag_publisher_fn, bus);
    model_join(threads[0]);
    model_join(threads[1]);
    rt_bus_get_stats(bus, stats);
    RON_ASSERT(listener->received_count + listener->lost_count == 4);
    RON_ASSERT(stats->lags[0].lost_count == listener->lost_count);
    RON_ASSERT(stats->lags[0].behind_count == 0);
    sim_outcome(listener->lost_count);
    rt_bus_unsubscribe(listener->subscriber);
    rt_bus_free(bus);
    ron_mem_free(listener);
    ron_mem_free(stats);
}

/* ---- supervisor: a worker that panics with an item in hand, and a stop at any moment ---- */

struct plant {
    struct rt_queue *queue;
    unsigned items[2];
    unsigned handled_count;
    unsigned returned_count; /* by the cleanup of a panic */
    bool panicked;
};

static void give_back(void *argument)
{
    struct plant *plant = argument;

    plant->returned_count++;
}

static enum ron_err plant_worker(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct plant *plant = argument;
    void *item = NULL;

    while (!rt_task_canceled(task)) {
        struct rt_cleanup cleanup;
        enum ron_err err = rt_queue_recv(plant->queue, RT_DEADLINE_NEVER, &item, NULL);

        if (err != RON_ERR_OK)
            return err;
        rt_cleanup_push(&cleanup, give_back, plant);
        if (!plant->panicked) {
            plant->panicked = true;
            rt_panic("the first item is too much");
        }
        rt_cleanup_pop(&cleanup, false);
        plant->handled_count++;
    }
    return RON_ERR_CANCELED;
}

static void plant_wake(void *argument)
{
    rt_queue_close(((struct plant *)argument)->queue);
}

static void plant_fn(void *argument) RON_BLOCKS
{
    const struct rt_queue_options queue_options = {
        .name = "queue", .owner = "model", .policy = "refuse", .capacity = 2};
    const struct rt_supervisor_options supervisor_options = {
        .name = "supervisor", .owner = "model", .tasks_max = 1};
    struct rt_supervisor *supervisor = NULL;
    struct rt_task *task = NULL;
    struct plant *plant = model_alloc(sizeof(*plant));
    const struct rt_task_options task_options = {.kind = "worker",
                                                 .name = "worker",
                                                 .owner = "model",
                                                 .fn = plant_worker,
                                                 .wake = plant_wake,
                                                 .argument = plant};
    void *left[2];
    size_t left_count;

    (void)argument;
    rt_init();
    model_must(rt_queue_new(&queue_options, &plant->queue, NULL));
    model_must(rt_supervisor_new(&supervisor_options, &supervisor, NULL));
    model_must(rt_task_spawn(supervisor, &task_options, &task, NULL));
    for (int i = 0; i < 2; i++)
        model_must(
            rt_queue_try_send(plant->queue, (struct rt_queue_item){&plant->items[i], 1}, NULL));
    model_must(rt_supervisor_stop(supervisor, rt_deadline_after_ns(SECOND_NS), NULL));
    left_count = rt_queue_try_recv_many(plant->queue, left, 2);
    RON_ASSERT(plant->handled_count + plant->returned_count + left_count == 2);
    RON_ASSERT(plant->returned_count == (plant->panicked ? 1 : 0));
    sim_outcome(plant->handled_count << 8 | plant->returned_count << 4 | left_count);
    rt_supervisor_free(supervisor);
    rt_queue_free(plant->queue);
    ron_mem_free(plant);
}

/* ---- lanes: in order, never two at once, everything handled or dropped ---- */

struct lane_state {
    bool running;
    unsigned handled_count;
};

static void lane_handle(void *context, void *lane, void *item)
{
    struct lane_state *state = lane;
    const unsigned *number = item;

    (void)context;
    RON_ASSERT(!state->running);
    state->running = true;
    RON_ASSERT(*number == state->handled_count);
    sim_point("handle an item");
    state->handled_count++;
    state->running = false;
}

static void lane_drop(void *context, void *lane, void *item, enum ron_err reason)
{
    (void)context;
    (void)lane;
    (void)item;
    (void)reason;
    RON_UNREACHABLE(); /* the drain leaves nothing */
}

static void lanes_fn(void *argument) RON_BLOCKS
{
    static const unsigned numbers[] = {0, 1};
    const struct rt_supervisor_options supervisor_options = {
        .name = "supervisor", .owner = "model", .tasks_max = 2};
    const struct rt_strands_options options = {.name = "lanes",
                                               .owner = "model",
                                               .kind = "lane",
                                               .threads_count = 2,
                                               .lanes_max = 1,
                                               .lane_capacity = 2,
                                               .items_max = 2,
                                               .handle = lane_handle,
                                               .drop = lane_drop};
    struct rt_supervisor *supervisor = NULL;
    struct rt_strands *strands = NULL;
    struct lane_state *state = model_alloc(sizeof(*state));
    struct rt_lane_id id;

    (void)argument;
    rt_init();
    model_must(rt_supervisor_new(&supervisor_options, &supervisor, NULL));
    model_must(rt_strands_new(&options, supervisor, &strands, NULL));
    model_must(rt_lane_open(strands, state, 1, &id, NULL));
    for (int i = 0; i < 2; i++)
        model_must(rt_lane_send(strands, id, (void *)(uintptr_t)&numbers[i], NULL));
    model_must(rt_strands_drain(strands, RT_DEADLINE_NEVER, NULL));
    RON_ASSERT(state->handled_count == 2);
    model_must(rt_supervisor_stop(supervisor, rt_deadline_after_ns(SECOND_NS), NULL));
    rt_strands_free(strands);
    rt_supervisor_free(supervisor);
    ron_mem_free(state);
}

static const struct model_case light_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 1, .fine = 1}, .cache = true},
};
static const struct model_case heavy_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2, .early_ticks = 1}, .cache = true},
    {.config = {.preemption_bound = 2, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 1, .fine = 1}, .cache = true},
};
MODEL(watch, "two readers follow two writes and see the last", watch_fn, NULL, light_cases);
MODEL(bus, "two listeners of a bus(2): received and lost are all there was", bus_fn, NULL,
      light_cases);
MODEL(watch_pair, "two writers, two followers until the close: the last write wins", watch_pair_fn,
      NULL, light_cases);
MODEL(bus_lag, "a listener of a bus(1) lags again and again: the counts agree", bus_lag_fn, NULL,
      light_cases);
MODEL(worker_panic, "a worker panics with an item in hand; stop at any moment", plant_fn, NULL,
      heavy_cases);
MODEL(lanes, "one lane on two threads keeps its order", lanes_fn, NULL, heavy_cases);
