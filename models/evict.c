/*
 * evict.c - rt_queue_send_drop_oldest with a racing consumer and a sender that waits for room.
 *
 * Every item ends in exactly one place: with the consumer, back with whoever evicted it, refused,
 * or left in the queue. One place, even when several small items go for one large.
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { CAPACITY = 2, WEIGHT_MAX = 2, ITEMS_COUNT = 4, WAITER_ITEM = 3 };

struct item {
    unsigned accepted_count, refused_count;
    unsigned received_count;
    unsigned evicted_count;
};

struct tray {
    struct rt_queue *queue;
    bool careless; /* planted: the evictor looks at the first evicted item only */
    unsigned evicted_count;
    struct item items[ITEMS_COUNT];
};

static void note(struct item *item, enum ron_err err)
{
    if (err == RON_ERR_OK)
        item->accepted_count++;
    else
        item->refused_count++;
}

/* Two small ones, then one that needs the whole queue. */
static void evictor_fn(void *argument)
{
    static const uint32_t weights[] = {1, 1, WEIGHT_MAX};
    struct tray *tray = argument;

    for (unsigned i = 0; i < RON_ARRAY_COUNT(weights); i++) {
        struct item *item = &tray->items[i];
        void *evicted[CAPACITY];
        size_t count = 0;
        enum ron_err err = rt_queue_send_drop_oldest(
            tray->queue, (struct rt_queue_item){item, weights[i]}, evicted, CAPACITY, &count, NULL);

        note(item, err);
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED);
        RON_ASSERT(count <= CAPACITY);
        if (tray->careless && count > 1)
            count = 1;
        for (size_t k = 0; k < count; k++)
            ((struct item *)evicted[k])->evicted_count++;
        tray->evicted_count += (unsigned)count;
    }
}

static void waiter_fn(void *argument) RON_BLOCKS
{
    struct tray *tray = argument;
    struct item *item = &tray->items[WAITER_ITEM];
    enum ron_err err = rt_queue_send_until(tray->queue, (struct rt_queue_item){item, 1},
                                           RT_DEADLINE_NEVER, NULL);

    note(item, err);
    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED);
}

/* Takes two, so that something may be left. */
static void consumer_fn(void *argument) RON_BLOCKS
{
    struct tray *tray = argument;
    void *item = NULL;

    for (int i = 0; i < 2; i++) {
        if (rt_queue_recv(tray->queue, RT_DEADLINE_NEVER, &item, NULL) != RON_ERR_OK)
            return;
        ((struct item *)item)->received_count++;
    }
}

static void check(struct tray *tray)
{
    struct rt_queue_stats stats;
    void *left[CAPACITY];
    size_t left_count;
    uint64_t places = 0;

    rt_queue_get_stats(tray->queue, &stats);
    RON_ASSERT(stats.depth_peak <= CAPACITY);
    RON_ASSERT(stats.weight_peak <= WEIGHT_MAX);
    RON_ASSERT(stats.dropped_count == tray->evicted_count);
    left_count = rt_queue_try_recv_many(tray->queue, left, CAPACITY);
    for (size_t i = 0; i < left_count; i++)
        ((struct item *)left[i])->received_count += 2;
    for (unsigned i = 0; i < ITEMS_COUNT; i++) {
        const struct item *item = &tray->items[i];

        RON_ASSERT(item->accepted_count + item->refused_count == 1);
        RON_ASSERT(item->evicted_count <= 1);
        RON_ASSERT(item->received_count <= 2);
        RON_ASSERT((item->received_count > 0) + item->evicted_count == item->accepted_count);
        places = places << 3 | item->received_count << 1 | item->evicted_count;
    }
    sim_outcome(places);
}

static void evict_fn(void *argument)
{
    const struct rt_queue_options options = {.name = "tray",
                                             .owner = "model",
                                             .policy = "drop oldest",
                                             .capacity = CAPACITY,
                                             .weight_max = WEIGHT_MAX};
    struct tray *tray = model_alloc(sizeof(*tray));
    struct sh_thread *evictor;
    struct sh_thread *waiter;
    struct sh_thread *consumer;

    rt_init();
    tray->careless = argument == PLANTED;
    model_must(rt_queue_new(&options, &tray->queue, NULL));
    evictor = model_spawn("evictor", evictor_fn, tray);
    waiter = model_spawn("waiter", waiter_fn, tray);
    consumer = model_spawn("consumer", consumer_fn, tray);
    model_join(evictor);
    rt_queue_close(tray->queue);
    model_join(waiter);
    model_join(consumer);
    check(tray);
    rt_queue_free(tray->queue);
    ron_mem_free(tray);
}

static const struct model_case cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .fine = 1}, .cache = true},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 2}, .cache = true, .expected = SIM_ASSERTION},
};
MODEL(evict, "drop-oldest by count and weight, a waiting sender and a racing consumer", evict_fn,
      NULL, cases);
MODEL(evict_planted, "an evictor that forgets the second item", evict_fn, PLANTED, planted_cases);
