/*
 * queue.c - rt_queue: producers, consumers, and a shutdown at any moment.
 *
 * In every schedule: nobody waits for ever (shutdown is always seen, no wake-up is lost), an item
 * that was sent is applied exactly once, one that was refused not at all, and what was in the queue
 * at the shutdown is drained. covers: WAL-V05, REW-V05
 */
#include "rt/queue.h"

#include "base/mem.h"
#include "models/support.h"
#include "rt/registry.h"

enum { ITEMS_MAX = 8, FIBERS_MAX = 4 };

enum close_when { CLOSE_ANY_TIME, CLOSE_AFTER_SENDERS, CLOSE_AFTER_ALL };

struct shape {
    uint32_t capacity;
    unsigned senders_count;
    unsigned items_each;
    unsigned receivers_count;
    bool try_send;
    enum close_when close_when;
    unsigned receive_each; /* items a receiver takes; 0: until shutdown */
};

struct item {
    unsigned sent_count;
    unsigned applied_count;
    unsigned refused_count;
};

struct system {
    const struct shape *shape;
    struct rt_queue *queue;
    struct item items[ITEMS_MAX];
};

struct sender {
    struct system *system;
    unsigned first_item;
};

static enum ron_err send(const struct system *system, struct item *item) RON_BLOCKS
{
    const struct rt_queue_item queue_item = {item, 1};

    return system->shape->try_send
               ? rt_queue_try_send(system->queue, queue_item, NULL)
               : rt_queue_send_until(system->queue, queue_item, RT_DEADLINE_NEVER, NULL);
}

static void sender_fn(void *argument) RON_BLOCKS
{
    const struct sender *sender = argument;
    struct system *system = sender->system;

    for (unsigned i = 0; i < system->shape->items_each; i++) {
        struct item *item = &system->items[sender->first_item + i];
        enum ron_err err = send(system, item);

        if (err == RON_ERR_OK)
            item->sent_count++;
        else
            item->refused_count++;
        RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_CANCELED ||
                   (err == RON_ERR_BUSY && system->shape->try_send));
    }
}

static void receiver_fn(void *argument) RON_BLOCKS
{
    struct system *system = argument;
    unsigned left = system->shape->receive_each;
    void *pointer;

    while (rt_queue_recv(system->queue, RT_DEADLINE_NEVER, &pointer, NULL) == RON_ERR_OK) {
        ((struct item *)pointer)->applied_count++;
        if (left > 0 && --left == 0)
            return;
    }
}

static void check_items(const struct system *system)
{
    unsigned items_count = system->shape->senders_count * system->shape->items_each;
    uint64_t applied = 0;

    RON_ASSERT(items_count <= ITEMS_MAX);
    for (unsigned i = 0; i < ITEMS_MAX && i < items_count; i++) {
        const struct item *item = &system->items[i];

        RON_ASSERT(item->sent_count + item->refused_count == 1);
        RON_ASSERT(item->applied_count == item->sent_count); /* none lost, none doubled */
        if (system->shape->close_when != CLOSE_ANY_TIME && !system->shape->try_send)
            RON_ASSERT(item->applied_count == 1);
        applied |= (uint64_t)item->applied_count << i;
    }
    sim_outcome(applied);
}

static void queue_fn(void *argument)
{
    static const char *const sender_names[] = {"sender 1", "sender 2", "sender 3", "sender 4"};
    static const char *const receiver_names[] = {"receiver 1", "receiver 2", "receiver 3",
                                                 "receiver 4"};
    const struct shape *shape = argument;
    const struct rt_queue_options options = {
        .name = "queue", .owner = "model", .policy = "refuse", .capacity = shape->capacity};
    struct system *system;
    struct sender senders[FIBERS_MAX];
    struct sh_thread *sending[FIBERS_MAX];
    struct sh_thread *receiving[FIBERS_MAX];
    enum ron_err err;

    RON_ASSERT(shape->senders_count * shape->items_each <= ITEMS_MAX);
    rt_init();
    system = model_alloc(sizeof(*system));
    system->shape = shape;
    err = rt_queue_new(&options, &system->queue, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    for (unsigned i = 0; i < shape->senders_count; i++) {
        senders[i] = (struct sender){system, i * shape->items_each};
        sending[i] = model_spawn(sender_names[i], sender_fn, &senders[i]);
    }
    for (unsigned i = 0; i < shape->receivers_count; i++)
        receiving[i] = model_spawn(receiver_names[i], receiver_fn, system);
    if (shape->close_when == CLOSE_ANY_TIME)
        rt_queue_close(system->queue);
    for (unsigned i = 0; i < shape->senders_count; i++)
        model_join(sending[i]);
    if (shape->close_when == CLOSE_AFTER_SENDERS)
        rt_queue_close(system->queue);
    for (unsigned i = 0; i < shape->receivers_count; i++)
        model_join(receiving[i]);
    check_items(system);
    system->queue = rt_queue_free(system->queue);
    ron_mem_free(system);
}

/* Shapes are constant; a model's argument is a plain pointer. */
#define SHAPE(identifier) ((void *)(uintptr_t) & (identifier))

static const struct shape two_by_one = {2, 2, 1, 2, false, CLOSE_ANY_TIME, 0};
static const struct shape two_by_two = {2, 2, 2, 2, false, CLOSE_ANY_TIME, 0};
static const struct shape tries = {2, 1, 3, 1, true, CLOSE_ANY_TIME, 0};
static const struct shape single = {1, 2, 2, 1, false, CLOSE_ANY_TIME, 0};
static const struct shape tight = {1, 2, 2, 2, false, CLOSE_AFTER_SENDERS, 0};
static const struct shape each = {2, 2, 1, 2, false, CLOSE_AFTER_ALL, 1};

static const struct model_case small_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = 1, .spurious = 1}, .compare = true},
    {.config = {.preemption_bound = 1, .wake_choice = 1}, .compare = true},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
static const struct model_case large_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = NONE}, .slow = true},
};
static const struct model_case tight_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = NONE, .wake_choice = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 1}},
    {.config = {.preemption_bound = 2}, .slow = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = NONE}, .slow = true},
};
MODEL(queue_2x1, "2 senders of 1 item, queue(2), 2 receivers, shutdown at any time", queue_fn,
      SHAPE(two_by_one), small_cases);
MODEL(queue_2x2, "2 senders of 2 items, queue(2), 2 receivers, shutdown at any time", queue_fn,
      SHAPE(two_by_two), large_cases);
MODEL(queue_tries, "3 try_sends, queue(2), 1 receiver until shutdown", queue_fn, SHAPE(tries),
      small_cases);
MODEL(queue_single, "2 senders of 2 items, queue(1), 1 receiver, shutdown at any time", queue_fn,
      SHAPE(single), large_cases);
MODEL(queue_each, "2 senders of 1 item, 2 receivers that take one each, no shutdown to the rescue",
      queue_fn, SHAPE(each), small_cases);
MODEL(queue_tight, "2 senders of 2 items, queue(1), shutdown only after the senders", queue_fn,
      SHAPE(tight), tight_cases);
