/*
 * ledger.c - the bounded-queue model of the ledger: capacity 2, a producer that tries three sends,
 * a consumer that loops until the shutdown, which comes at any moment.
 *
 * In every state: consumed <= produced, and never more than two items are in the queue. In the end
 * everybody has left and each item is consumed, left in the queue or refused. covers: LED-V18
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/watch.h"

enum { CAPACITY = 2, ITEMS_COUNT = 3 };

struct ledger {
    struct rt_queue *queue;
    struct rt_watch *shutdown;
    bool deaf; /* planted: nobody closes the queue for the consumer that waits */
    unsigned refused_count, canceled_count;
    /* Looked at after every step. */
    struct rt_atomic_u64 tried_count, accepted_count, consumed_count;
    struct rt_atomic_u64 asked_count; /* receives begun */
    unsigned numbers[ITEMS_COUNT];
};

static void check_always(void *context)
{
    const struct ledger *ledger = context;

    RON_ASSERT(rt_counter_load(&ledger->consumed_count) <= rt_counter_load(&ledger->tried_count));
    /* Without looking into the queue: what went in beyond its capacity was asked for before. */
    RON_ASSERT(rt_counter_load(&ledger->accepted_count) <=
               CAPACITY + rt_counter_load(&ledger->asked_count));
}

static void producer_fn(void *argument)
{
    struct ledger *ledger = argument;

    for (unsigned i = 0; i < ITEMS_COUNT; i++) {
        enum ron_err err;

        ledger->numbers[i] = i;
        rt_counter_add(&ledger->tried_count, 1);
        err = rt_queue_try_send(ledger->queue, (struct rt_queue_item){&ledger->numbers[i], 1},
                                NULL);
        if (err == RON_ERR_OK)
            rt_counter_add(&ledger->accepted_count, 1);
        else if (err == RON_ERR_BUSY)
            ledger->refused_count++;
        else if (err == RON_ERR_CANCELED)
            ledger->canceled_count++;
    }
}

static void consumer_fn(void *argument) RON_BLOCKS
{
    struct ledger *ledger = argument;
    void *item = NULL;

    while (!rt_watch_changed(ledger->shutdown, 1)) {
        rt_counter_add(&ledger->asked_count, 1);
        if (rt_queue_recv(ledger->queue, RT_DEADLINE_NEVER, &item, NULL) != RON_ERR_OK)
            break;
        rt_counter_add(&ledger->consumed_count, 1);
    }
}

static void check_end(struct ledger *ledger)
{
    struct rt_queue_stats stats;
    void *left[ITEMS_COUNT];
    size_t left_count;

    rt_queue_get_stats(ledger->queue, &stats);
    RON_ASSERT(stats.depth_peak <= CAPACITY);
    RON_ASSERT(stats.rejected_count == ledger->refused_count);
    RON_ASSERT(ledger->refused_count <= ITEMS_COUNT - CAPACITY); /* none for which there is room */
    left_count = rt_queue_try_recv_many(ledger->queue, left, ITEMS_COUNT);
    RON_ASSERT(left_count <= CAPACITY);
    RON_ASSERT(rt_counter_load(&ledger->consumed_count) + left_count ==
               rt_counter_load(&ledger->accepted_count));
    RON_ASSERT(rt_counter_load(&ledger->accepted_count) + ledger->refused_count +
                   ledger->canceled_count ==
               ITEMS_COUNT);
    sim_outcome(rt_counter_load(&ledger->consumed_count) << 8 | left_count << 4 |
                ledger->refused_count);
}

static void ledger_fn(void *argument)
{
    const struct rt_queue_options queue_options = {
        .name = "ingress", .owner = "model", .policy = "refuse", .capacity = CAPACITY};
    const struct rt_watch_options watch_options = {
        .name = "shutdown", .owner = "model", .value_size = sizeof(bool)};
    const bool initial = false;
    const bool stopping = true;
    struct ledger *ledger = model_alloc(sizeof(*ledger));
    struct sh_thread *producer;
    struct sh_thread *consumer;

    rt_init();
    ledger->deaf = argument == PLANTED;
    model_must(rt_queue_new(&queue_options, &ledger->queue, NULL));
    model_must(rt_watch_new(&watch_options, &initial, &ledger->shutdown, NULL));
    sim_set_check(check_always, ledger);
    producer = model_spawn("producer", producer_fn, ledger);
    consumer = model_spawn("consumer", consumer_fn, ledger);
    rt_watch_set(ledger->shutdown, &stopping);
    if (!ledger->deaf)
        rt_queue_close(ledger->queue);
    model_join(producer);
    model_join(consumer);
    sim_set_check(NULL, NULL);
    check_end(ledger);
    rt_queue_free(ledger->queue);
    rt_watch_free(ledger->shutdown);
    ron_mem_free(ledger);
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
    {.config = {.preemption_bound = NONE}, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = 2}, .cache = true, .expected = SIM_DEADLOCK},
};
MODEL(ledger, "queue(2), 3 try_sends, a consumer until shutdown", ledger_fn, NULL, cases);
MODEL(ledger_planted, "a shutdown that does not close the queue", ledger_fn, PLANTED,
      planted_cases);
