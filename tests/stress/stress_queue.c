/*
 * stress_queue.c SECONDS - queues under real threads, with close racing every call.
 *
 * Rounds of 3 senders (one policy each, chosen by round) and 2 receivers on a small queue, which is
 * closed after a random number of items. Each item carries a word saying where it ended; after the
 * round every item must have ended exactly once, and the queue's counters must agree. The only test
 * of the thread back end under load: run it under ThreadSanitizer too.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "seconds.h"

enum { SENDERS = 3, RECEIVERS = 2, ITEMS = 400, EVICTED_MAX = 8, WEIGHT_MAX = 64 };

struct item {
    struct rt_atomic_u32 ends_count;
    uint32_t weight;
    unsigned sender;
    unsigned number;
};

struct round {
    struct rt_queue *queue;
    struct item items[SENDERS][ITEMS];
    struct rt_atomic_u64 received_count, evicted_count, refused_count;
    uint64_t close_after;
    unsigned policy;
};

struct sender {
    struct round *round;
    unsigned index;
};

static void end_item(struct item *item, struct rt_atomic_u64 *counter)
{
    RON_ASSERT(rt_atomic_add_u32(&item->ends_count, 1) == 0);
    rt_counter_add(counter, 1);
}

static void send_one(struct round *round, struct item *item, unsigned policy) RON_BLOCKS
{
    struct rt_queue_item unit = {item, item->weight};
    void *evicted[EVICTED_MAX];
    size_t evicted_count = 0;
    enum ron_err err;

    if (policy == 0)
        err = rt_queue_try_send(round->queue, unit, NULL);
    else if (policy == 1)
        err = rt_queue_send_until(round->queue, unit, rt_deadline_after_ms(1000), NULL);
    else
        err = rt_queue_send_drop_oldest(round->queue, unit, evicted, EVICTED_MAX, &evicted_count,
                                        NULL);
    for (size_t i = 0; i < evicted_count; i++)
        end_item(evicted[i], &round->evicted_count);
    RON_ASSERT(err != RON_ERR_TIMEOUT); /* a second is for ever here: a lost wake-up */
    if (err != RON_ERR_OK)
        end_item(item, &round->refused_count);
}

static void sender_main(void *context) RON_BLOCKS
{
    struct sender *sender = context;
    struct round *round = sender->round;
    unsigned policy = (round->policy + sender->index) % 3;

    for (unsigned i = 0; i < ITEMS; i++)
        send_one(round, &round->items[sender->index][i], policy);
}

static void receiver_main(void *context) RON_BLOCKS
{
    struct round *round = context;
    unsigned last[SENDERS] = {0};
    void *pointers[16];
    size_t count;
    enum ron_err err;

    for (;;) {
        uint64_t linger_ns = sh_random() % 2 == 0 ? 0 : 20000;

        err = rt_queue_recv_many(round->queue, pointers, 1 + sh_random() % 16, linger_ns,
                                 rt_deadline_after_ms(5000), &count, NULL);
        if (err != RON_ERR_OK)
            break;
        for (size_t i = 0; i < count; i++) {
            struct item *item = pointers[i];
            RON_ASSERT(item->number >= last[item->sender]); /* one sender's items keep order */
            last[item->sender] = item->number;
            end_item(item, &round->received_count);
        }
        if (rt_counter_load(&round->received_count) >= round->close_after)
            rt_queue_close(round->queue);
    }
    RON_ASSERT(err == RON_ERR_CANCELED);
}

static void check_round(struct round *round)
{
    struct rt_queue_stats stats;

    rt_queue_get_stats(round->queue, &stats);
    RON_ASSERT(stats.depth == 0);
    RON_ASSERT(stats.depth_peak <= stats.capacity);
    RON_ASSERT(stats.weight_peak <= WEIGHT_MAX);
    RON_ASSERT(stats.received_count == rt_counter_load(&round->received_count));
    RON_ASSERT(stats.dropped_count == rt_counter_load(&round->evicted_count));
    RON_ASSERT(stats.sent_count + rt_counter_load(&round->refused_count) == SENDERS * ITEMS);
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < ITEMS; i++)
            RON_ASSERT(rt_atomic_load_u32(&round->items[s][i].ends_count) == 1);
    }
}

static void run_round(struct round *round, unsigned number)
{
    const struct rt_queue_options options = {.name = "stress",
                                             .owner = "stress",
                                             .policy = "all",
                                             .capacity = 1 + (uint32_t)(sh_random() % 12),
                                             .weight_max = number % 2 == 0 ? WEIGHT_MAX : 0};
    struct sh_thread *threads[SENDERS + RECEIVERS];
    struct sender senders[SENDERS];

    *round = (struct round){.policy = number, .close_after = sh_random() % (SENDERS * ITEMS)};
    RON_MUST_ZERO(rt_queue_new(&options, &round->queue, NULL));
    for (unsigned s = 0; s < SENDERS; s++) {
        senders[s] = (struct sender){round, s};
        for (unsigned i = 0; i < ITEMS; i++) {
            /* Weightless where the weight is not bounded: the peak is checked all the same. */
            uint32_t weight = options.weight_max != 0 ? (uint32_t)(sh_random() % 24) : 0;
            round->items[s][i] = (struct item){.weight = weight, .sender = s, .number = i};
        }
        RON_MUST_ZERO(sh_spawn("sender", sender_main, &senders[s], &threads[s], NULL));
    }
    for (unsigned r = 0; r < RECEIVERS; r++)
        RON_MUST_ZERO(sh_spawn("receiver", receiver_main, round, &threads[SENDERS + r], NULL));
    for (unsigned s = 0; s < SENDERS; s++)
        RON_ASSERT(sh_join(threads[s], SH_NEVER));
    rt_queue_close(round->queue); /* it may not have come to close_after */
    for (unsigned r = 0; r < RECEIVERS; r++)
        RON_ASSERT(sh_join(threads[SENDERS + r], SH_NEVER));
    check_round(round);
    rt_queue_free(round->queue);
}

int main(int argc, char **argv)
{
    static struct round round;
    uint64_t received_count = 0, evicted_count = 0, refused_count = 0;
    unsigned rounds_count = 0;
    struct rt_deadline end;

    rt_init();
    if (!stress_deadline(argc, argv, &end))
        return 2;
    while (!rt_deadline_expired(end)) {
        run_round(&round, rounds_count++);
        received_count += rt_counter_load(&round.received_count);
        evicted_count += rt_counter_load(&round.evicted_count);
        refused_count += rt_counter_load(&round.refused_count);
    }
    RON_ASSERT(ron_mem_live_count() == 0);
    printf("1..1\nok 1 - stress_queue: %u rounds, %llu received, %llu evicted, %llu refused\n",
           rounds_count, (unsigned long long)received_count, (unsigned long long)evicted_count,
           (unsigned long long)refused_count);
    return 0;
}
