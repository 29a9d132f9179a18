/*
 * stress_tasks.c SECONDS - tasks, lanes, timers and a bus under real threads, with stop racing all.
 *
 * Rounds: a supervisor with a set of lanes, a set of timers, a bus, and senders that are tasks.
 * Some handlers panic, so workers restart in the middle of things; senders close and reopen their
 * lanes; timers are set and canceled; the supervisor stops at a random moment. Afterwards every
 * item that was accepted was handled or dropped exactly once, no lane was entered twice, no timer
 * fired early or after its cancelation, the bus's subscriber saw or was told of every message, and
 * no memory is left.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/bus.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"
#include "rt/timer.h"
#include "seconds.h"

enum { SENDERS = 2, LANES = 4 /* of each sender */, PANICS_MAX = 4, ROUND_MS_MAX = 30 };

struct lane {
    struct rt_lane_id id;
    struct rt_atomic_u32 inside;
};

struct timer {
    struct round *round;
    uint64_t due_ns;
    struct rt_atomic_u32 forbidden; /* canceled in time: must not begin */
};

struct round {
    struct rt_supervisor *supervisor;
    struct rt_strands *strands;
    struct rt_timers *timers;
    struct rt_bus *bus;
    struct rt_bus_subscriber *subscriber;
    struct lane lanes[SENDERS][LANES];
    struct timer sender_timers[SENDERS];
    struct rt_atomic_u32 senders_count, panics_count;
    struct rt_atomic_u64 accepted_count, handled_count, dropped_count, fired_count;
    struct rt_atomic_u64 published_count, heard_count, lost_count;
};

static int item; /* all items are alike: they are counted */

static void handle(void *context, void *lane_object, void *pointer)
{
    struct round *round = context;
    struct lane *lane = lane_object;
    uint64_t random = sh_random();

    RON_ASSERT(pointer == &item);
    RON_ASSERT(rt_atomic_exchange_u32(&lane->inside, 1) == 0);
    if (random % 4 == 0)
        sh_yield();
    rt_atomic_store_u32(&lane->inside, 0);
    if (random % 64 == 1 && rt_atomic_add_u32(&round->panics_count, 1) < PANICS_MAX)
        rt_panic("as planned");
    rt_counter_add(&round->handled_count, 1);
}

static void drop(void *context, void *lane, void *pointer, enum ron_err reason)
{
    struct round *round = context;

    RON_ASSERT(lane != NULL);
    RON_ASSERT(pointer == &item);
    RON_ASSERT(reason == RON_ERR_INTERNAL || reason == RON_ERR_CANCELED);
    rt_counter_add(&round->dropped_count, 1);
}

static void fire(void *argument, struct rt_timer_id id)
{
    struct timer *timer = argument;

    RON_ASSERT(id.value != 0);
    RON_ASSERT(rt_now_ns() >= timer->due_ns);
    RON_ASSERT(rt_atomic_load_u32(&timer->forbidden) == 0);
    rt_counter_add(&timer->round->fired_count, 1);
}

/* Set a timer and cancel it at about its time; false when the timers are closed. */
static bool race_timer(struct round *round, struct timer *timer) RON_BLOCKS
{
    struct rt_timer_id id;

    timer->round = round;
    timer->due_ns = rt_now_ns() + sh_random() % 20000;
    rt_atomic_store_u32(&timer->forbidden, 0);
    if (rt_timer_set(round->timers, (struct rt_deadline){timer->due_ns}, 0, fire, timer, &id,
                     NULL) != RON_ERR_OK)
        return false;
    if (sh_random() % 2 == 0)
        sh_yield();
    if (rt_timer_cancel(round->timers, id))
        rt_atomic_store_u32(&timer->forbidden, 1);
    RON_MUST_ZERO(rt_timer_cancel_until(round->timers, id, RT_DEADLINE_NEVER, NULL));
    return true;
}

/* Close a lane, wait until it is empty, open it again; false when the set is stopping. */
static bool reopen(struct round *round, struct lane *lane) RON_BLOCKS
{
    if (rt_lane_close_until(round->strands, lane->id, rt_deadline_after_ms(2), NULL) != RON_ERR_OK)
        return false; /* the set stopped with items in the lane: it stays closed */
    return rt_lane_open(round->strands, lane, 1 + (unsigned)(sh_random() % RT_LANE_WEIGHT_MAX),
                        &lane->id, NULL) == RON_ERR_OK;
}

static enum ron_err send_items(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct round *round = argument;
    uint32_t self = rt_atomic_add_u32(&round->senders_count, 1);
    uint64_t number = 0;

    while (!rt_task_canceled(task)) {
        struct lane *lane = &round->lanes[self][sh_random() % LANES];
        enum ron_err err = rt_lane_send(round->strands, lane->id, &item, NULL);

        if (err == RON_ERR_OK)
            rt_counter_add(&round->accepted_count, 1);
        if (rt_bus_publish(round->bus, &number, NULL) == RON_ERR_OK)
            rt_counter_add(&round->published_count, 1);
        number++;
        if (number % 32 == 0 && !race_timer(round, &round->sender_timers[self]))
            break;
        if (number % 64 == 0 && err != RON_ERR_NOT_FOUND)
            (void)reopen(round, lane);
    }
    return RON_ERR_CANCELED;
}

static enum ron_err listen(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct round *round = argument;
    uint64_t number, lost_count;

    (void)task;
    while (rt_bus_recv(round->subscriber, RT_DEADLINE_NEVER, &number, &lost_count, NULL) ==
           RON_ERR_OK) {
        rt_counter_add(&round->heard_count, 1);
        rt_counter_add(&round->lost_count, lost_count);
    }
    return RON_ERR_CANCELED;
}

static void close_bus(void *argument)
{
    struct round *round = argument;

    rt_bus_close(round->bus);
}

static void spawn_tasks(struct round *round)
{
    const struct rt_task_options sender = {
        .kind = "sender", .name = "sender", .owner = "stress", .fn = send_items, .argument = round};
    const struct rt_task_options listener = {.kind = "listener",
                                             .name = "listener",
                                             .owner = "stress",
                                             .fn = listen,
                                             .wake = close_bus,
                                             .argument = round};
    struct rt_task *task;

    RON_MUST_ZERO(rt_task_spawn(round->supervisor, &listener, &task, NULL));
    for (unsigned i = 0; i < SENDERS; i++)
        RON_MUST_ZERO(rt_task_spawn(round->supervisor, &sender, &task, NULL));
}

static void build(struct round *round) RON_BLOCKS
{
    static const struct rt_backoff_policy fast = {.base_ns = 1000, .cap_ns = 1000};
    const struct rt_supervisor_options root = {
        .name = "root", .owner = "stress", .tasks_max = 8, .backoff = &fast};
    const struct rt_strands_options strands = {.name = "lanes",
                                               .owner = "stress",
                                               .kind = "lane",
                                               .threads_count = 2,
                                               .lanes_max = SENDERS * LANES,
                                               .lane_capacity = 8,
                                               .items_max = 24,
                                               .handle = handle,
                                               .drop = drop,
                                               .context = round};
    const struct rt_timers_options timers = {"timers", "stress", 8};
    const struct rt_bus_options bus = {"bus", "stress", 16, sizeof(uint64_t)};

    *round = (struct round){0};
    RON_MUST_ZERO(rt_supervisor_new(&root, &round->supervisor, NULL));
    RON_MUST_ZERO(rt_bus_new(&bus, &round->bus, NULL));
    RON_MUST_ZERO(rt_bus_subscribe(round->bus, "listener", &round->subscriber, NULL));
    RON_MUST_ZERO(rt_strands_new(&strands, round->supervisor, &round->strands, NULL));
    RON_MUST_ZERO(rt_timers_new(&timers, round->supervisor, &round->timers, NULL));
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < LANES; i++)
            RON_MUST_ZERO(
                rt_lane_open(round->strands, &round->lanes[s][i], 1, &round->lanes[s][i].id, NULL));
    }
    spawn_tasks(round);
}

static void check(struct round *round)
{
    RON_ASSERT(rt_counter_load(&round->accepted_count) ==
               rt_counter_load(&round->handled_count) + rt_counter_load(&round->dropped_count));
    RON_ASSERT(rt_counter_load(&round->published_count) ==
               rt_counter_load(&round->heard_count) + rt_counter_load(&round->lost_count));
    RON_ASSERT(ron_mem_live_count() == 0);
}

static void run_round(struct round *round) RON_BLOCKS
{
    bool drain = sh_random() % 2 == 0;

    build(round);
    sh_sleep_until(rt_now_ns() + sh_random() % ROUND_MS_MAX * RT_NS_PER_MS);
    if (drain)
        RON_MUST_ZERO(rt_strands_drain(round->strands, rt_deadline_after_ms(10000), NULL));
    RON_MUST_ZERO(rt_supervisor_stop(round->supervisor, rt_deadline_after_ms(10000), NULL));
    rt_timers_free(round->timers);
    rt_strands_free(round->strands);
    rt_bus_unsubscribe(round->subscriber);
    rt_bus_free(round->bus);
    rt_supervisor_free(round->supervisor);
    check(round);
}

int main(int argc, char **argv) RON_BLOCKS
{
    static struct round round;
    uint64_t handled_count = 0, dropped_count = 0, fired_count = 0, lost_count = 0;
    unsigned rounds_count = 0;
    struct rt_deadline end;

    rt_init();
    if (!stress_deadline(argc, argv, &end))
        return 2;
    while (!rt_deadline_expired(end)) {
        run_round(&round);
        rounds_count++;
        handled_count += rt_counter_load(&round.handled_count);
        dropped_count += rt_counter_load(&round.dropped_count);
        fired_count += rt_counter_load(&round.fired_count);
        lost_count += rt_counter_load(&round.lost_count);
    }
    RON_ASSERT(ron_mem_live_count() == 0);
    printf("1..1\nok 1 - stress_tasks: %u rounds, %llu handled, %llu dropped, %llu timers fired, "
           "%llu messages lost and told\n",
           rounds_count, (unsigned long long)handled_count, (unsigned long long)dropped_count,
           (unsigned long long)fired_count, (unsigned long long)lost_count);
    return 0;
}
