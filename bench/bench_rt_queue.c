/*
 * bench_rt_queue.c - queues, buses and watches against what one would write without them.
 *
 * Items go from P producers to C consumers through a ring, against a plain ring under a mutex with
 * two conditions (the rival of every table), one that is tuned (plain_queue.h) and, one to one,
 * Concurrency Kit's wait-free ring, which spins and yields where ours sleeps. Every run checks that
 * all items came. A small ring measures the system's switching of threads as much as the queue:
 * hence a large one beside it.
 */
#include <sched.h>
#include <stdio.h>

#ifdef RON_HAVE_CK
#include <ck_ring.h>
#endif

#include "base/assert.h"
#include "harness.h"
#include "plain_queue.h"
#include "rt/bus.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/watch.h"

enum { CAPACITY = 1024, LARGE_CAPACITY = PLAIN_CAPACITY_MAX, BATCH = 64, THREADS_MAX = 4 };

static int payload; /* what all items point to */

/* One traffic pattern over one kind of queue. */
struct traffic {
    unsigned producers_count, consumers_count;
    unsigned capacity;
    void (*produce)(struct traffic *traffic, uint64_t items_count);
    uint64_t (*consume)(struct traffic *traffic);
    void (*close)(struct traffic *traffic);
    struct plain_queue plain;
    struct rt_queue *queue;
#ifdef RON_HAVE_CK
    ck_ring_t ring;
    ck_ring_buffer_t slots[LARGE_CAPACITY];
    _Atomic bool closed;
#endif
};
struct worker {
    struct traffic *traffic;
    uint64_t items_count; /* to send, or received */
};

static void produce_plain(struct traffic *traffic, uint64_t items_count)
{
    for (uint64_t i = 0; i < items_count; i++)
        plain_send(&traffic->plain, &payload);
}

static uint64_t consume_plain(struct traffic *traffic)
{
    uint64_t count = 0;

    while (plain_recv(&traffic->plain) != NULL)
        count++;
    return count;
}

static void produce_tuned(struct traffic *traffic, uint64_t items_count)
{
    for (uint64_t i = 0; i < items_count; i++)
        tuned_send(&traffic->plain, &payload);
}

static uint64_t consume_tuned(struct traffic *traffic)
{
    uint64_t count = 0;

    while (tuned_recv(&traffic->plain) != NULL)
        count++;
    return count;
}

static void close_plain(struct traffic *traffic)
{
    plain_close(&traffic->plain);
}

static void produce_single(struct traffic *traffic, uint64_t items_count) RON_BLOCKS
{
    for (uint64_t i = 0; i < items_count; i++)
        RON_MUST_ZERO(rt_queue_send_until(traffic->queue, (struct rt_queue_item){&payload, 1},
                                          RT_DEADLINE_NEVER, NULL));
}

static uint64_t consume_single(struct traffic *traffic) RON_BLOCKS
{
    uint64_t count = 0;
    void *pointer;

    while (rt_queue_recv(traffic->queue, RT_DEADLINE_NEVER, &pointer, NULL) == RON_ERR_OK)
        count++;
    return count;
}

/* As many as there is room for; when there is none, wait with the first. */
static void produce_batched(struct traffic *traffic, uint64_t items_count) RON_BLOCKS
{
    struct rt_queue_item items[BATCH];

    for (unsigned i = 0; i < BATCH; i++)
        items[i] = (struct rt_queue_item){&payload, 1};
    while (items_count > 0) {
        size_t sent_count = 1, wanted_count = items_count < BATCH ? (size_t)items_count : BATCH;

        if (rt_queue_try_send_many(traffic->queue, items, wanted_count, &sent_count, NULL) !=
            RON_ERR_OK)
            RON_MUST_ZERO(rt_queue_send_until(traffic->queue, items[0], RT_DEADLINE_NEVER, NULL));
        items_count -= sent_count;
    }
}

static uint64_t consume_batched(struct traffic *traffic) RON_BLOCKS
{
    void *pointers[BATCH];
    uint64_t total = 0;
    size_t count;

    while (rt_queue_recv_many(traffic->queue, pointers, BATCH, 0, RT_DEADLINE_NEVER, &count,
                              NULL) == RON_ERR_OK)
        total += count;
    return total;
}

static void close_rt(struct traffic *traffic)
{
    rt_queue_close(traffic->queue);
}

#ifdef RON_HAVE_CK
static void produce_ck(struct traffic *traffic, uint64_t items_count)
{
    for (uint64_t i = 0; i < items_count; i++)
        while (!ck_ring_enqueue_spsc(&traffic->ring, traffic->slots, &payload))
            (void)sched_yield();
}

static uint64_t consume_ck(struct traffic *traffic)
{
    uint64_t count = 0;

    for (;;) {
        bool closed = atomic_load_explicit(&traffic->closed, memory_order_acquire);
        void *pointer;

        if (ck_ring_dequeue_spsc(&traffic->ring, traffic->slots, &pointer))
            count++;
        else if (closed)
            return count;
        else
            (void)sched_yield();
    }
}

static void close_ck(struct traffic *traffic)
{
    atomic_store_explicit(&traffic->closed, true, memory_order_release);
}
#endif

static void run_producer(void *context) RON_BLOCKS
{
    struct worker *worker = context;

    worker->traffic->produce(worker->traffic, worker->items_count);
}

static void run_consumer(void *context) RON_BLOCKS
{
    struct worker *worker = context;

    worker->items_count = worker->traffic->consume(worker->traffic);
}

static void run_traffic(void *context, uint64_t rounds) RON_BLOCKS
{
    struct traffic *traffic = context;
    struct worker producers[THREADS_MAX], consumers[THREADS_MAX];
    struct sh_thread *producing[THREADS_MAX], *consuming[THREADS_MAX];
    const struct rt_queue_options options = {
        .name = "bench", .owner = "bench", .policy = "waits", .capacity = traffic->capacity};
    uint64_t received_count = 0;

    plain_init(&traffic->plain, traffic->capacity, traffic->produce == produce_tuned);
    RON_MUST_ZERO(rt_queue_new(&options, &traffic->queue, NULL));
#ifdef RON_HAVE_CK
    ck_ring_init(&traffic->ring, traffic->capacity);
    traffic->closed = false;
#endif
    for (unsigned i = 0; i < traffic->consumers_count; i++) {
        consumers[i] = (struct worker){traffic, 0};
        RON_MUST_ZERO(sh_spawn("consumer", run_consumer, &consumers[i], &consuming[i], NULL));
    }
    for (unsigned i = 0; i < traffic->producers_count; i++) {
        uint64_t rest = i == 0 ? rounds % traffic->producers_count : 0;
        producers[i] = (struct worker){traffic, rounds / traffic->producers_count + rest};
        RON_MUST_ZERO(sh_spawn("producer", run_producer, &producers[i], &producing[i], NULL));
    }
    for (unsigned i = 0; i < traffic->producers_count; i++)
        RON_MUST_ZERO(!sh_join(producing[i], SH_NEVER));
    traffic->close(traffic);
    for (unsigned i = 0; i < traffic->consumers_count; i++) {
        RON_MUST_ZERO(!sh_join(consuming[i], SH_NEVER));
        received_count += consumers[i].items_count;
    }
    RON_ASSERT(received_count == rounds);
    traffic->queue = rt_queue_free(traffic->queue);
    plain_fini(&traffic->plain);
}

struct shape {
    unsigned producers_count, consumers_count;
    unsigned capacity; /* a power of two */
};

static void compare_queues(const struct bench_options *options, struct shape shape)
{
    static struct traffic kinds[] = {
        {.produce = produce_plain, .consume = consume_plain, .close = close_plain},
        {.produce = produce_tuned, .consume = consume_tuned, .close = close_plain},
        {.produce = produce_single, .consume = consume_single, .close = close_rt},
        {.produce = produce_batched, .consume = consume_batched, .close = close_rt},
#ifdef RON_HAVE_CK
        {.produce = produce_ck, .consume = consume_ck, .close = close_ck},
#endif
    };
    const struct bench_contestant contestants[] = {
        {"mutex + conditions", run_traffic, &kinds[0], 0},
        {"the same, tuned", run_traffic, &kinds[1], 0},
        {"rt_queue, single", run_traffic, &kinds[2], 0},
        {"rt_queue, batches of 64", run_traffic, &kinds[3], 0},
#ifdef RON_HAVE_CK
        {"ck_ring, spinning", run_traffic, &kinds[4], 0},
#endif
    };
    const bool one_to_one = shape.producers_count == 1 && shape.consumers_count == 1;
    char title[64];

    for (size_t i = 0; i < RON_ARRAY_COUNT(kinds); i++) {
        kinds[i].producers_count = shape.producers_count;
        kinds[i].consumers_count = shape.consumers_count;
        kinds[i].capacity = shape.capacity;
    }
    (void)snprintf(title, sizeof(title), "queue of %u, %u to %u threads, an item", shape.capacity,
                   shape.producers_count, shape.consumers_count);
    bench_compare(options, &(struct bench_table){
                               .title = title,
                               .rival = contestants[0].name,
                               .contestants = contestants,
                               .contestants_count = one_to_one ? RON_ARRAY_COUNT(contestants) : 4,
                           });
}

/* Two threads, one item to and fro: how long until a waiting one goes on. */

struct rally {
    struct plain_queue plain[2];
    struct rt_queue *queues[2];
    uint64_t rounds;
    void (*send)(struct rally *rally, unsigned side);
    void (*recv)(struct rally *rally, unsigned side);
};

static void rally_send_plain(struct rally *rally, unsigned side)
{
    plain_send(&rally->plain[side], &payload);
}

static void rally_recv_plain(struct rally *rally, unsigned side)
{
    RON_ASSERT(plain_recv(&rally->plain[side]) == &payload);
}

static void rally_send_rt(struct rally *rally, unsigned side)
{
    RON_MUST_ZERO(
        rt_queue_try_send(rally->queues[side], (struct rt_queue_item){&payload, 1}, NULL));
}

static void rally_recv_rt(struct rally *rally, unsigned side) RON_BLOCKS
{
    void *pointer;

    RON_MUST_ZERO(rt_queue_recv(rally->queues[side], RT_DEADLINE_NEVER, &pointer, NULL));
}

static void run_returns(void *context) RON_BLOCKS
{
    struct rally *rally = context;

    for (uint64_t i = 0; i < rally->rounds; i++) {
        rally->recv(rally, 0);
        rally->send(rally, 1);
    }
}

static void run_rally(void *context, uint64_t rounds) RON_BLOCKS
{
    struct rally *rally = context;
    struct sh_thread *other;

    rally->rounds = rounds;
    RON_MUST_ZERO(sh_spawn("returns", run_returns, rally, &other, NULL));
    for (uint64_t i = 0; i < rounds; i++) {
        rally->send(rally, 0);
        rally->recv(rally, 1);
    }
    RON_MUST_ZERO(!sh_join(other, SH_NEVER));
}

static void compare_rallies(const struct bench_options *options) RON_BLOCKS
{
    const struct rt_queue_options queue_options = {
        .name = "bench", .owner = "bench", .policy = "rejects", .capacity = CAPACITY};
    static struct rally plain = {.send = rally_send_plain, .recv = rally_recv_plain};
    static struct rally rt = {.send = rally_send_rt, .recv = rally_recv_rt};
    const struct bench_contestant contestants[] = {
        {"mutex + conditions", run_rally, &plain, 0},
        {"rt_queue, single", run_rally, &rt, 0},
    };

    for (unsigned i = 0; i < 2; i++) {
        plain_init(&plain.plain[i], CAPACITY, false);
        RON_MUST_ZERO(rt_queue_new(&queue_options, &rt.queues[i], NULL));
    }
    bench_compare(options,
                  &(struct bench_table){.title = "round trip of one item, two threads",
                                        .rival = contestants[0].name,
                                        .contestants = contestants,
                                        .contestants_count = RON_ARRAY_COUNT(contestants)});
    for (unsigned i = 0; i < 2; i++) {
        rt_queue_free(rt.queues[i]);
        plain_fini(&plain.plain[i]);
    }
}

/* One thread, nobody waits: the cost of the calls. */

static void hop_plain(void *context, uint64_t rounds)
{
    struct plain_queue *queue = context;

    for (uint64_t i = 0; i < rounds; i++) {
        plain_send(queue, &payload);
        BENCH_USE(plain_recv(queue));
    }
}

static void hop_queue(void *context, uint64_t rounds)
{
    struct rt_queue *queue = context;
    void *pointer;

    for (uint64_t i = 0; i < rounds; i++) {
        RON_MUST_ZERO(rt_queue_try_send(queue, (struct rt_queue_item){&payload, 1}, NULL));
        RON_MUST_ZERO(rt_queue_try_recv_many(queue, &pointer, 1) != 1);
    }
}

static void hop_single(void *context, uint64_t rounds) RON_BLOCKS
{
    struct rt_queue *queue = context;
    void *pointer;

    for (uint64_t i = 0; i < rounds; i++) {
        RON_MUST_ZERO(rt_queue_send_until(queue, (struct rt_queue_item){&payload, 1},
                                          RT_DEADLINE_NEVER, NULL));
        RON_MUST_ZERO(rt_queue_recv(queue, RT_DEADLINE_NEVER, &pointer, NULL));
    }
}

static void hop_batched(void *context, uint64_t rounds) RON_BLOCKS
{
    struct rt_queue *queue = context;
    struct rt_queue_item items[BATCH];
    void *pointers[BATCH];
    size_t count;

    for (unsigned i = 0; i < BATCH; i++)
        items[i] = (struct rt_queue_item){&payload, 1};
    for (uint64_t i = 0; i < rounds; i++) {
        RON_MUST_ZERO(rt_queue_try_send_many(queue, items, BATCH, &count, NULL));
        RON_ASSERT(count == BATCH);
        RON_MUST_ZERO(
            rt_queue_recv_many(queue, pointers, BATCH, 0, RT_DEADLINE_NEVER, &count, NULL));
        RON_ASSERT(count == BATCH);
    }
}

struct bus_pair {
    struct rt_bus *bus;
    struct rt_bus_subscriber *subscriber;
};

static void hop_bus(void *context, uint64_t rounds) RON_BLOCKS
{
    struct bus_pair *pair = context;
    uint64_t lost_count;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t message;

        RON_MUST_ZERO(rt_bus_publish(pair->bus, &i, NULL));
        RON_MUST_ZERO(
            rt_bus_recv(pair->subscriber, RT_DEADLINE_NEVER, &message, &lost_count, NULL));
        RON_ASSERT(message == i);
    }
}

static void hop_watch(void *context, uint64_t rounds)
{
    struct rt_watch *watch = context;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t value;

        rt_watch_set(watch, &i);
        RON_MUST_ZERO(rt_watch_get(watch, &value) == 0);
        RON_ASSERT(value == i);
    }
}

static void compare_hops(const struct bench_options *options) RON_BLOCKS
{
    const struct rt_queue_options queue_options = {
        .name = "bench", .owner = "bench", .policy = "rejects", .capacity = CAPACITY};
    const struct rt_bus_options bus_options = {"bench", "bench", CAPACITY, sizeof(uint64_t)};
    const struct rt_watch_options watch_options = {"bench", "bench", sizeof(uint64_t)};
    static struct plain_queue plain;
    struct rt_queue *queue;
    struct rt_watch *watch;
    struct bus_pair pair;

    plain_init(&plain, CAPACITY, false);
    RON_MUST_ZERO(rt_queue_new(&queue_options, &queue, NULL));
    RON_MUST_ZERO(rt_bus_new(&bus_options, &pair.bus, NULL));
    RON_MUST_ZERO(rt_bus_subscribe(pair.bus, "bench", &pair.subscriber, NULL));
    RON_MUST_ZERO(rt_watch_new(&watch_options, &(uint64_t){0}, &watch, NULL));
    const struct bench_contestant contestants[] = {
        {"mutex + conditions", hop_plain, &plain, 0},
        {"rt_queue, single", hop_single, queue, 0},
        {"rt_queue, try both ways", hop_queue, queue, 0},
        {"rt_queue, batches of 64", hop_batched, queue, BATCH},
        {"rt_bus, publish and recv", hop_bus, &pair, 0},
        {"rt_watch, set and get", hop_watch, watch, 0},
    };
    bench_compare(options,
                  &(struct bench_table){.title = "hop, one thread, in and out",
                                        .rival = contestants[0].name,
                                        .contestants = contestants,
                                        .contestants_count = RON_ARRAY_COUNT(contestants)});
    rt_watch_free(watch);
    rt_bus_unsubscribe(pair.subscriber);
    rt_bus_free(pair.bus);
    rt_queue_free(queue);
    plain_fini(&plain);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;

    if (!bench_begin(argc, argv, &options))
        return 2;
    rt_init();
    compare_queues(&options, (struct shape){1, 1, CAPACITY});
    compare_queues(&options, (struct shape){1, 1, LARGE_CAPACITY});
    compare_queues(&options, (struct shape){4, 1, CAPACITY});
    compare_queues(&options, (struct shape){4, 1, LARGE_CAPACITY});
    compare_queues(&options, (struct shape){4, 4, CAPACITY});
    compare_queues(&options, (struct shape){4, 4, LARGE_CAPACITY});
    compare_rallies(&options);
    compare_hops(&options);
    return 0;
}
