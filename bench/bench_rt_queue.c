/*
 * bench_rt_queue.c - queues, buses and watches against what one would write without them.
 *
 * Items go from P producers to C consumers through a ring, against a plain ring under a mutex with
 * two conditions (the rival of every table) and, one to one, Concurrency Kit's wait-free ring,
 * which spins and yields where ours sleeps. Every run checks that all items came. A small ring
 * measures the system's switching of threads as much as the queue: hence a large one beside it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#ifdef RON_HAVE_CK
#include <ck_ring.h>
#endif

#include "base/assert.h"
#include "harness.h"
#include "rt/bus.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/watch.h"

enum { CAPACITY = 1024, LARGE_CAPACITY = 16384, BATCH = 64, THREADS_MAX = 4 };

static int payload; /* what all items point to */

/* The rival: what a careful afternoon gives. */
struct plain_queue {
    pthread_mutex_t mutex;
    pthread_cond_t items_cond, room_cond;
    size_t head, depth, capacity;
    bool closed;
    void *slots[LARGE_CAPACITY];
};

static void plain_init(struct plain_queue *queue, size_t capacity)
{
    memset(queue, 0, sizeof(*queue));
    queue->capacity = capacity;
    RON_MUST_ZERO(pthread_mutex_init(&queue->mutex, NULL));
    RON_MUST_ZERO(pthread_cond_init(&queue->items_cond, NULL));
    RON_MUST_ZERO(pthread_cond_init(&queue->room_cond, NULL));
}

static void plain_fini(struct plain_queue *queue)
{
    RON_MUST_ZERO(pthread_cond_destroy(&queue->room_cond));
    RON_MUST_ZERO(pthread_cond_destroy(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_destroy(&queue->mutex));
}

static void plain_send(struct plain_queue *queue, void *pointer)
{
    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == queue->capacity)
        RON_MUST_ZERO(pthread_cond_wait(&queue->room_cond, &queue->mutex));
    queue->slots[(queue->head + queue->depth++) & (queue->capacity - 1)] = pointer;
    RON_MUST_ZERO(pthread_cond_signal(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
}

/* NULL once closed and empty. */
static void *plain_recv(struct plain_queue *queue)
{
    void *pointer = NULL;

    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    while (queue->depth == 0 && !queue->closed)
        RON_MUST_ZERO(pthread_cond_wait(&queue->items_cond, &queue->mutex));
    if (queue->depth > 0) {
        pointer = queue->slots[queue->head];
        queue->head = (queue->head + 1) & (queue->capacity - 1);
        queue->depth--;
        RON_MUST_ZERO(pthread_cond_signal(&queue->room_cond));
    }
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
    return pointer;
}

static void plain_close(struct plain_queue *queue)
{
    RON_MUST_ZERO(pthread_mutex_lock(&queue->mutex));
    queue->closed = true;
    RON_MUST_ZERO(pthread_cond_broadcast(&queue->items_cond));
    RON_MUST_ZERO(pthread_mutex_unlock(&queue->mutex));
}

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

    plain_init(&traffic->plain, traffic->capacity);
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
        {.produce = produce_single, .consume = consume_single, .close = close_rt},
        {.produce = produce_batched, .consume = consume_batched, .close = close_rt},
#ifdef RON_HAVE_CK
        {.produce = produce_ck, .consume = consume_ck, .close = close_ck},
#endif
    };
    const struct bench_contestant contestants[] = {
        {"mutex + conditions", run_traffic, &kinds[0], 0},
        {"rt_queue, single", run_traffic, &kinds[1], 0},
        {"rt_queue, batches of 64", run_traffic, &kinds[2], 0},
#ifdef RON_HAVE_CK
        {"ck_ring, spinning", run_traffic, &kinds[3], 0},
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
                               .contestants_count = one_to_one ? RON_ARRAY_COUNT(contestants) : 3,
                           });
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

    plain_init(&plain, CAPACITY);
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
    compare_hops(&options);
    return 0;
}
