/*
 * test_rt_queue.c - the bounded queue on real threads. Method: each policy at its bound and one
 * beyond, close at each state, waiting calls from a second thread; interleavings are the
 * simulator's work, throughput and races that of tests/stress.
 * tidy: long file because each way to send and receive is tried at each bound of the same queue.
 */
#include "support.h"

#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/registry.h"

static int numbers[64]; /* items: their addresses are the payload */

static struct rt_queue_item item(unsigned index, uint32_t weight)
{
    return (struct rt_queue_item){&numbers[index], weight};
}

static struct rt_queue *make(uint32_t capacity, uint64_t weight_max)
{
    const struct rt_queue_options options = {.name = "work",
                                             .owner = "test",
                                             .policy = "reject",
                                             .capacity = capacity,
                                             .weight_max = weight_max};
    struct rt_queue *queue = NULL;

    assert_ok(rt_queue_new(&options, &queue, NULL));
    return queue;
}

static struct rt_queue_stats stats_of(struct rt_queue *queue)
{
    struct rt_queue_stats stats;

    rt_queue_get_stats(queue, &stats);
    return stats;
}

static void expect_items(struct rt_queue *queue, const unsigned *indexes, size_t count)
{
    void *pointers[64];

    assert_int_equal(rt_queue_try_recv_many(queue, pointers, 64), count);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(pointers[i], &numbers[indexes[i]]);
}
#define EXPECT_ITEMS(queue, ...)                         \
    expect_items(queue, (const unsigned[]){__VA_ARGS__}, \
                 sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

/* For waits that must not come to their end: a broken queue fails the test instead of hanging. */
#define LONG_WAIT rt_deadline_after_ms(5000)

static void queue_keeps_order_around_the_ring(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(3, 0);
    void *pointer = NULL;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        assert_ok(rt_queue_try_send(queue, item(i, 1), NULL));
        assert_ok(rt_queue_try_send(queue, item(i + 20, 1), NULL));
        assert_ok(rt_queue_recv(queue, RT_DEADLINE_NEVER, &pointer, NULL));
        assert_ptr_equal(pointer, &numbers[i]);
        assert_ok(rt_queue_recv(queue, rt_deadline_after_ms(1000), &pointer, NULL));
        assert_ptr_equal(pointer, &numbers[i + 20]);
    }
    queue = rt_queue_free(queue);
    assert_null(queue);
    assert_null(rt_queue_free(NULL));
}

static void queue_try_send_rejects_when_full(void **state)
{
    struct rt_queue *queue = make(2, 0);
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(rt_queue_try_send(queue, item(0, 9), NULL));
    assert_ok(rt_queue_try_send(queue, item(1, 9), NULL));
    support_assert_error(rt_queue_try_send(queue, item(2, 9), &info), &info, RON_ERR_BUSY,
                         "queue work of 2 items");
    assert_int_equal(stats_of(queue).rejected_count, 1);
    assert_int_equal(stats_of(queue).depth, 2);
    assert_int_equal(stats_of(queue).weight, 18);
    EXPECT_ITEMS(queue, 0, 1);
    assert_int_equal(stats_of(queue).depth_peak, 2);
    assert_int_equal(stats_of(queue).weight_peak, 18);
    assert_int_equal(stats_of(queue).weight, 0);
    rt_queue_free(queue);
}

static void queue_bounds_weight_too(void **state)
{
    struct rt_queue *queue = make(8, 100);
    struct ron_errinfo info = {0};

    (void)state;
    support_assert_error(rt_queue_try_send(queue, item(0, 101), &info), &info, RON_ERR_TOO_LARGE,
                         "100 of queue work");
    assert_ok(rt_queue_try_send(queue, item(0, 60), NULL));
    assert_ok(rt_queue_try_send(queue, item(1, 40), NULL));
    assert_int_equal(rt_queue_try_send(queue, item(2, 1), NULL), RON_ERR_BUSY);
    assert_ok(rt_queue_try_send(queue, item(3, 0), NULL)); /* weightless fits */
    EXPECT_ITEMS(queue, 0, 1, 3);
    rt_queue_free(queue);
}

static void queue_try_send_many_takes_the_prefix_that_fits(void **state)
{
    const struct rt_queue_item items[] = {item(0, 10), item(1, 10), item(2, 10), item(3, 10)};
    struct rt_queue *queue = make(3, 0);
    size_t sent_count = 77;

    (void)state;
    assert_ok(rt_queue_try_send_many(queue, items, 4, &sent_count, NULL));
    assert_int_equal(sent_count, 3);
    assert_int_equal(stats_of(queue).rejected_count, 1);
    sent_count = 77;
    assert_int_equal(rt_queue_try_send_many(queue, items, 2, &sent_count, NULL), RON_ERR_BUSY);
    assert_int_equal(sent_count, 77);
    assert_int_equal(stats_of(queue).rejected_count, 3);
    EXPECT_ITEMS(queue, 0, 1, 2);
    rt_queue_free(queue);
}

static void queue_drop_oldest_hands_the_evicted_back(void **state)
{
    struct rt_queue *queue = make(3, 100);
    void *evicted[3];
    size_t count = 77;

    (void)state;
    assert_ok(rt_queue_send_drop_oldest(queue, item(0, 30), evicted, 3, &count, NULL));
    assert_int_equal(count, 0);
    assert_ok(rt_queue_send_drop_oldest(queue, item(1, 30), evicted, 3, &count, NULL));
    assert_ok(rt_queue_send_drop_oldest(queue, item(2, 30), evicted, 3, &count, NULL));
    assert_ok(rt_queue_send_drop_oldest(queue, item(3, 30), evicted, 3, &count, NULL));
    assert_int_equal(count, 1); /* by count */
    assert_ptr_equal(evicted[0], &numbers[0]);
    count = 77;
    assert_int_equal(rt_queue_send_drop_oldest(queue, item(4, 90), evicted, 2, &count, NULL),
                     RON_ERR_BUSY); /* needs three, may take two: nothing changes */
    assert_int_equal(count, 77);
    assert_int_equal(stats_of(queue).depth, 3);
    assert_int_equal(stats_of(queue).rejected_count, 1);
    assert_ok(rt_queue_send_drop_oldest(queue, item(4, 70), evicted, 3, &count, NULL));
    assert_int_equal(count, 2); /* by weight */
    assert_ptr_equal(evicted[0], &numbers[1]);
    assert_ptr_equal(evicted[1], &numbers[2]);
    assert_int_equal(stats_of(queue).dropped_count, 3);
    EXPECT_ITEMS(queue, 3, 4);
    assert_int_equal(stats_of(queue).received_count, 2);
    rt_queue_close(queue);
    assert_int_equal(rt_queue_send_drop_oldest(queue, item(5, 1), evicted, 3, &count, NULL),
                     RON_ERR_CANCELED);
    rt_queue_free(queue);
}

/* Of the numbers, which are over: a bit each. */
static unsigned over;
static unsigned asked_count; /* for their deadlines */

static uint64_t deadline_of_number(const void *pointer)
{
    const ptrdiff_t index = (const char *)pointer - (const char *)numbers;

    asked_count++;
    return (over >> ((size_t)index / sizeof(numbers[0])) & 1) != 0 ? 1 : SH_NEVER;
}

/* What is of no use any more goes before the oldest; the others keep their order. */
static void queue_drops_what_is_over_first(void **state)
{
    const struct rt_queue_options options = {.name = "work",
                                             .owner = "test",
                                             .policy = "drop",
                                             .capacity = 4,
                                             .deadline_of = deadline_of_number};
    struct rt_queue *queue = NULL;
    void *evicted[4] = {0};
    size_t count = 0, sent_count = 0;

    (void)state;
    over = 1u << 2 | 1u << 3;
    assert_ok(rt_queue_new(&options, &queue, NULL));
    for (unsigned i = 0; i < 4; i++)
        assert_ok(rt_queue_try_send(queue, item(i, 1), NULL));
    assert_ok(rt_queue_send_drop_oldest(queue, item(4, 1), evicted, 4, &count, NULL));
    assert_int_equal(count, 1);
    assert_ptr_equal(evicted[0], &numbers[2]);
    assert_ok(rt_queue_send_drop_oldest(queue, item(5, 1), evicted, 4, &count, NULL));
    assert_ptr_equal(evicted[0], &numbers[3]);
    assert_ok(rt_queue_send_drop_oldest(queue, item(6, 1), evicted, 4, &count, NULL));
    assert_ptr_equal(evicted[0], &numbers[0]); /* the oldest again */
    over = 1u << 7 | 1u << 6;                  /* around the ring, and in one call */
    assert_ok(rt_queue_send_drop_oldest(queue, item(7, 1), evicted, 4, &count, NULL));
    assert_ptr_equal(evicted[0], &numbers[1]); /* 6 was not over when it came */
    assert_ok(rt_queue_send_many_drop_oldest(queue,
                                             (const struct rt_queue_item[]){item(8, 1), item(9, 1)},
                                             2, evicted, 4, &sent_count, &count, NULL));
    assert_int_equal(count, 2);
    assert_ptr_equal(evicted[0], &numbers[6]);
    assert_ptr_equal(evicted[1], &numbers[7]);
    EXPECT_ITEMS(queue, 4, 5, 8, 9);
    assert_int_equal(stats_of(queue).dropped_count, 6);
    rt_queue_free(queue);
}

/* By weight, too: an item of use goes only when none of the others is left. What is refused leaves
 * the order as it was, and who finds enough looks no further. */
static void queue_drops_what_is_over_by_weight(void **state)
{
    const struct rt_queue_options options = {.name = "work",
                                             .owner = "test",
                                             .policy = "drop",
                                             .capacity = 8,
                                             .weight_max = 100,
                                             .deadline_of = deadline_of_number};
    struct rt_queue *queue = NULL;
    void *evicted[4] = {0};
    size_t count = 77;

    (void)state;
    over = 1u << 1 | 1u << 3 | 1u << 4;
    assert_ok(rt_queue_new(&options, &queue, NULL));
    assert_ok(rt_queue_try_send(queue, item(0, 60), NULL));
    for (unsigned i = 1; i < 5; i++)
        assert_ok(rt_queue_try_send(queue, item(i, 10), NULL));
    assert_int_equal(rt_queue_send_drop_oldest(queue, item(5, 20), evicted, 1, &count, NULL),
                     RON_ERR_BUSY); /* two of those that are over would go */
    assert_int_equal(count, 77);
    EXPECT_ITEMS(queue, 0, 1, 2, 3, 4);
    assert_ok(rt_queue_try_send(queue, item(0, 60), NULL));
    for (unsigned i = 1; i < 5; i++)
        assert_ok(rt_queue_try_send(queue, item(i, 10), NULL));
    asked_count = 0;
    assert_ok(rt_queue_send_drop_oldest(queue, item(5, 20), evicted, 4, &count, NULL));
    assert_int_equal(count, 2);
    assert_ptr_equal(evicted[0], &numbers[1]);
    assert_ptr_equal(evicted[1], &numbers[3]);
    assert_int_equal(asked_count, 4 + 4 + 1); /* not about 4; and of what came */
    assert_ok(rt_queue_send_drop_oldest(queue, item(6, 50), evicted, 4, &count, NULL));
    assert_int_equal(count, 2);
    assert_ptr_equal(evicted[0], &numbers[4]); /* and then the oldest */
    assert_ptr_equal(evicted[1], &numbers[0]);
    EXPECT_ITEMS(queue, 2, 5, 6);
    rt_queue_free(queue);
}

static void queue_drop_oldest_takes_many(void **state)
{
    const struct rt_queue_item four[] = {item(0, 30), item(1, 30), item(2, 30), item(3, 30)};
    const struct rt_queue_item heavy[] = {item(4, 10), item(5, 90)};
    struct rt_queue *queue = make(3, 100);
    void *evicted[3];
    size_t sent_count = 77;
    size_t count = 77;

    (void)state;
    assert_ok(
        rt_queue_send_many_drop_oldest(queue, four, 4, evicted, 3, &sent_count, &count, NULL));
    assert_int_equal(sent_count, 4);
    assert_int_equal(count, 1); /* the first goes for the last */
    assert_ptr_equal(evicted[0], &numbers[0]);
    assert_ok(
        rt_queue_send_many_drop_oldest(queue, heavy, 2, evicted, 2, &sent_count, &count, NULL));
    assert_int_equal(sent_count, 1); /* the second would push out two more: one was allowed */
    assert_int_equal(count, 1);
    assert_ptr_equal(evicted[0], &numbers[1]);
    assert_int_equal(stats_of(queue).rejected_count, 0); /* its caller tries it again */
    assert_int_equal(stats_of(queue).dropped_count, 2);
    EXPECT_ITEMS(queue, 2, 3, 4);
    rt_queue_close(queue);
    sent_count = 77;
    assert_int_equal(
        rt_queue_send_many_drop_oldest(queue, heavy, 2, evicted, 2, &sent_count, &count, NULL),
        RON_ERR_CANCELED);
    assert_int_equal(sent_count, 77);
    rt_queue_free(queue);
}

static void queue_past_deadline_touches_nothing(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(2, 0);
    struct ron_errinfo info = {0};
    struct rt_deadline past = {rt_now_ns()};
    void *pointer = &info;
    size_t count = 77;

    (void)state;
    support_assert_error(rt_queue_send_until(queue, item(0, 1), past, &info), &info,
                         RON_ERR_TIMEOUT, "queue work");
    assert_int_equal(stats_of(queue).sent_count, 0);
    assert_ok(rt_queue_send_until(queue, item(0, 1), rt_deadline_after_ms(9999), NULL));
    support_assert_error(rt_queue_recv(queue, past, &pointer, &info), &info, RON_ERR_TIMEOUT,
                         "queue work");
    assert_int_equal(rt_queue_recv_many(queue, &pointer, 1, 5, past, &count, NULL),
                     RON_ERR_TIMEOUT);
    assert_ptr_equal(pointer, &info);
    assert_int_equal(count, 77);
    rt_queue_close(queue);
    assert_int_equal(rt_queue_recv(queue, past, &pointer, NULL), RON_ERR_TIMEOUT);
    EXPECT_ITEMS(queue, 0);
    rt_queue_free(queue);
}

static void queue_waits_end_at_the_deadline(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(1, 0);
    struct rt_deadline deadline = rt_deadline_after_ms(5);
    void *pointer;

    (void)state;
    assert_int_equal(rt_queue_recv(queue, deadline, &pointer, NULL), RON_ERR_TIMEOUT);
    assert_true(rt_now_ns() >= deadline.at_ns);
    assert_ok(rt_queue_try_send(queue, item(0, 1), NULL));
    deadline = rt_deadline_after_ms(5);
    assert_int_equal(rt_queue_send_until(queue, item(1, 1), deadline, NULL), RON_ERR_TIMEOUT);
    assert_true(rt_now_ns() >= deadline.at_ns);
    assert_int_equal(stats_of(queue).timed_out_count, 1);
    assert_int_equal(stats_of(queue).rejected_count, 0);
    EXPECT_ITEMS(queue, 0);
    rt_queue_free(queue);
}

static void queue_close_drains_then_cancels(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(4, 0);
    struct ron_errinfo info = {0};
    void *pointer = NULL;

    (void)state;
    assert_ok(rt_queue_try_send(queue, item(0, 1), NULL));
    assert_ok(rt_queue_try_send(queue, item(1, 1), NULL));
    assert_false(rt_queue_closed(queue));
    rt_queue_close(queue);
    rt_queue_close(queue);
    assert_true(rt_queue_closed(queue));
    support_assert_error(rt_queue_try_send(queue, item(2, 1), &info), &info, RON_ERR_CANCELED,
                         "closed");
    assert_int_equal(stats_of(queue).rejected_count, 0); /* not for want of room */
    assert_int_equal(rt_queue_send_until(queue, item(2, 1), LONG_WAIT, NULL), RON_ERR_CANCELED);
    assert_ok(rt_queue_recv(queue, LONG_WAIT, &pointer, NULL));
    assert_ptr_equal(pointer, &numbers[0]);
    assert_ok(rt_queue_recv(queue, LONG_WAIT, &pointer, NULL));
    support_assert_error(rt_queue_recv(queue, LONG_WAIT, &pointer, &info), &info, RON_ERR_CANCELED,
                         "closed and empty");
    rt_queue_free(queue);
}

static void queue_recv_many_lingers_for_more(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(8, 0);
    uint64_t before_ns;
    void *pointers[8];
    size_t count = 0;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_ok(rt_queue_try_send(queue, item(i, 1), NULL));
    before_ns = rt_now_ns(); /* a full batch does not linger */
    assert_ok(rt_queue_recv_many(queue, pointers, 2, 60 * RT_NS_PER_S, LONG_WAIT, &count, NULL));
    assert_int_equal(count, 2);
    assert_true(rt_now_ns() - before_ns < 30 * RT_NS_PER_S);
    before_ns = rt_now_ns(); /* a short one does, to its end */
    assert_ok(rt_queue_recv_many(queue, pointers, 8, 3 * RT_NS_PER_MS, LONG_WAIT, &count, NULL));
    assert_int_equal(count, 3);
    assert_ptr_equal(pointers[0], &numbers[2]);
    assert_true(rt_now_ns() - before_ns >= 3 * RT_NS_PER_MS);
    assert_ok(rt_queue_try_send(queue, item(7, 1), NULL)); /* nor beyond the deadline */
    before_ns = rt_now_ns();
    assert_ok(rt_queue_recv_many(queue, pointers, 8, 60 * RT_NS_PER_S, rt_deadline_after_ms(3),
                                 &count, NULL));
    assert_int_equal(count, 1);
    assert_true(rt_now_ns() - before_ns >= 3 * RT_NS_PER_MS); /* one item lingers, too */
    assert_true(rt_now_ns() - before_ns < 30 * RT_NS_PER_S);
    assert_ok(rt_queue_try_send(queue, item(7, 1), NULL));
    rt_queue_close(queue); /* a closed queue has no more to wait for */
    assert_ok(rt_queue_recv_many(queue, pointers, 8, 3600 * RT_NS_PER_S, LONG_WAIT, &count, NULL));
    rt_queue_free(queue);
}

static void queue_recv_light_stops_before_a_heavy_item(void **state) RON_BLOCKS
{
    static const uint32_t weights[] = {2, 1, 3, 2, 9, 9, 1};
    static const size_t counts[] = {2, 1, 1, 1, 1, 1}; /* at most two at once, of weight 2 each */
    struct rt_queue *queue = make(8, 0);
    size_t received = 0;
    void *pointers[2];
    size_t count = 0;

    (void)state;
    for (unsigned i = 0; i < RON_ARRAY_COUNT(weights); i++)
        assert_ok(rt_queue_try_send(queue, item(i, weights[i]), NULL));
    for (unsigned i = 0; i < RON_ARRAY_COUNT(counts); i++) {
        assert_ok(rt_queue_recv_light(queue, pointers, 2, 2, LONG_WAIT, &count, NULL));
        assert_int_equal(count, counts[i]);
        for (size_t j = 0; j < count; j++)
            assert_ptr_equal(pointers[j], &numbers[received++]);
    }
    assert_int_equal(received, RON_ARRAY_COUNT(weights));
    assert_int_equal(
        rt_queue_recv_light(queue, pointers, 2, 2, rt_deadline_after_ms(1), &count, NULL),
        RON_ERR_TIMEOUT);
    rt_queue_close(queue);
    assert_int_equal(rt_queue_recv_light(queue, pointers, 2, 2, LONG_WAIT, &count, NULL),
                     RON_ERR_CANCELED);
    rt_queue_free(queue);
}

/* Until that many wait: what follows then meets waiters, however slow the machine. */
static void await_waiting(struct rt_queue *queue, unsigned count)
{
    struct rt_queue_stats stats = stats_of(queue);

    while (stats.senders_waiting + stats.receivers_waiting < count) {
        sh_sleep_until(rt_now_ns() + 100000);
        stats = stats_of(queue);
    }
}

struct sender {
    struct rt_queue *queue;
    enum ron_err err;
    unsigned first, count;
};

static void send_waiting(void *context) RON_BLOCKS
{
    struct sender *sender = context;

    for (unsigned i = 0; i < sender->count && sender->err == RON_ERR_OK; i++)
        sender->err = rt_queue_send_until(sender->queue, item(sender->first + i, 1),
                                          RT_DEADLINE_NEVER, NULL);
}

static void queue_receiver_makes_room_for_waiting_sender(void **state) RON_BLOCKS
{
    struct sender sender = {.queue = make(1, 0), .first = 10, .count = 9};
    struct sh_thread *thread;
    void *pointer = NULL;

    (void)state;
    assert_ok(sh_spawn("sender", send_waiting, &sender, &thread, NULL));
    for (unsigned i = 0; i < 9; i++) {
        assert_ok(rt_queue_recv(sender.queue, LONG_WAIT, &pointer, NULL));
        assert_ptr_equal(pointer, &numbers[10 + i]);
    }
    assert_true(sh_join(thread, LONG_WAIT.at_ns));
    assert_ok(sender.err);
    rt_queue_free(sender.queue);
}

static void queue_eviction_makes_room_for_waiting_sender(void **state) RON_BLOCKS
{
    struct sender sender = {.queue = make(4, 9), .first = 10, .count = 1};
    struct sh_thread *thread;
    void *evicted[4];
    size_t evicted_count = 0;

    (void)state;
    assert_ok(rt_queue_try_send(sender.queue, item(0, 9), NULL));
    assert_ok(sh_spawn("sender", send_waiting, &sender, &thread, NULL));
    await_waiting(sender.queue, 1);
    /* A heavy one goes for a light one: there is room again, and nobody else will say so. */
    assert_ok(
        rt_queue_send_drop_oldest(sender.queue, item(1, 2), evicted, 4, &evicted_count, NULL));
    assert_int_equal(evicted_count, 1);
    assert_true(sh_join(thread, LONG_WAIT.at_ns));
    assert_ok(sender.err);
    EXPECT_ITEMS(sender.queue, 1, 10);
    rt_queue_free(sender.queue);
}

static void queue_close_wakes_waiting_senders(void **state) RON_BLOCKS
{
    struct sender senders[2] = {{.first = 10, .count = 1}, {.first = 11, .count = 1}};
    struct rt_queue *queue = make(1, 0);
    struct sh_thread *threads[2];

    (void)state;
    assert_ok(rt_queue_try_send(queue, item(0, 1), NULL));
    for (unsigned i = 0; i < 2; i++) {
        senders[i].queue = queue;
        assert_ok(sh_spawn("sender", send_waiting, &senders[i], &threads[i], NULL));
    }
    await_waiting(queue, 2);
    rt_queue_close(queue);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sh_join(threads[i], LONG_WAIT.at_ns));
        assert_int_equal(senders[i].err, RON_ERR_CANCELED);
    }
    EXPECT_ITEMS(queue, 0);
    rt_queue_free(queue);
}

struct receiver {
    struct rt_queue *queue;
    enum ron_err err;
    void *pointer;
};

static void receive_waiting(void *context) RON_BLOCKS
{
    struct receiver *receiver = context;

    receiver->err = rt_queue_recv(receiver->queue, RT_DEADLINE_NEVER, &receiver->pointer, NULL);
}

static void queue_each_send_wakes_waiting_receivers(void **state)
{
    const struct rt_queue_item items[] = {item(0, 1), item(1, 1)};
    struct rt_queue *queue = make(4, 0);

    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        struct receiver receivers[2] = {{.queue = queue}, {.queue = queue}};
        struct sh_thread *threads[2];
        size_t count = 0;
        void *evicted[1];

        for (unsigned i = 0; i < 2; i++)
            assert_ok(sh_spawn("receiver", receive_waiting, &receivers[i], &threads[i], NULL));
        await_waiting(queue, 2);
        for (unsigned i = 0; i < 2 && way == 0; i++)
            assert_ok(rt_queue_try_send(queue, items[i], NULL));
        for (unsigned i = 0; i < 2 && way == 1; i++)
            assert_ok(rt_queue_send_drop_oldest(queue, items[i], evicted, 1, &count, NULL));
        if (way == 2)
            assert_ok(rt_queue_try_send_many(queue, items, 2, &count, NULL));
        for (unsigned i = 0; i < 2; i++) {
            assert_true(sh_join(threads[i], LONG_WAIT.at_ns));
            assert_ok(receivers[i].err);
        }
        assert_ptr_not_equal(receivers[0].pointer, receivers[1].pointer);
    }
    rt_queue_free(queue);
}

static void queue_evictions_wake_a_waiting_sender(void **state)
{
    struct sender sender = {.queue = make(4, 100), .first = 10, .count = 1};
    struct sh_thread *thread;
    void *evicted[4], *pointers[8];
    size_t count = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++) /* full by count, and by weight but for 4 */
        assert_ok(rt_queue_try_send(sender.queue, item(i, 24), NULL));
    assert_ok(sh_spawn("sender", send_waiting, &sender, &thread, NULL));
    await_waiting(sender.queue, 1);
    assert_ok(rt_queue_send_drop_oldest(sender.queue, item(4, 30), evicted, 4, &count, NULL));
    assert_int_equal(count, 2); /* two went for one: there is room for the sender */
    assert_true(sh_join(thread, LONG_WAIT.at_ns));
    assert_ok(sender.err);
    assert_int_equal(rt_queue_try_recv_many(sender.queue, pointers, 8), 4);
    assert_ptr_equal(pointers[3], &numbers[10]);
    rt_queue_free(sender.queue);
}

static void queue_measures_the_wait_of_samples(void **state) RON_BLOCKS
{
    uint64_t start_ns = rt_now_ns();
    struct rt_queue *queue = make(32, 0);
    void *pointers[32];

    (void)state;
    for (unsigned i = 0; i < 17; i++)
        assert_ok(rt_queue_try_send(queue, item(i, 1), NULL));
    sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
    assert_int_equal(rt_queue_try_recv_many(queue, pointers, 32), 17);
    assert_int_equal(stats_of(queue).wait_samples_count, 2);
    assert_true(stats_of(queue).wait_ns_max >= RT_NS_PER_MS);
    assert_true(stats_of(queue).wait_ns_sum >= 2 * RT_NS_PER_MS);
    assert_true(stats_of(queue).wait_ns_max <= rt_now_ns() - start_ns);
    assert_true(stats_of(queue).wait_ns_sum <= 2 * stats_of(queue).wait_ns_max);
    rt_queue_free(queue);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr)
{
    const struct rt_queue_options options = {
        .name = "work", .owner = "test", .policy = "reject", .capacity = 4};
    struct rt_queue *queue = NULL;
    enum ron_err err = rt_queue_new(&options, &queue, reterr);

    (void)context;
    rt_queue_free(queue);
    return err;
}

static void queue_survives_each_failed_allocation(void **state)
{
    size_t before_count = rt_registry_list(NULL, 0);

    (void)state;
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 5), 3);
    assert_int_equal(rt_registry_list(NULL, 0), before_count);
}

static void queue_is_registered_while_it_lives(void **state)
{
    struct rt_queue *queue = make(5, 0);
    struct rt_registry_entry entry;
    size_t count = rt_registry_list(&entry, 1);

    (void)state;
    assert_ptr_equal(entry.object, queue);
    assert_string_equal(entry.name, "work");
    assert_string_equal(entry.owner, "test");
    assert_string_equal(entry.policy, "reject");
    assert_int_equal(entry.capacity, 5);
    rt_queue_free(queue);
    assert_int_equal(rt_registry_list(&entry, 1), count - 1);
}

static void queue_needs_room_in_the_registry(void **state)
{
    const struct rt_registry_entry filler = {
        .object = numbers, .kind = RT_KIND_QUEUE, .name = "filler", .policy = "", .owner = ""};
    const struct rt_queue_options options = {
        .name = "work", .owner = "test", .policy = "reject", .capacity = 4};
    uint64_t live_count = ron_mem_live_count();
    struct rt_queue *queue = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    while (rt_registry_add(&filler, NULL) == RON_ERR_OK)
        continue;
    support_assert_error(rt_queue_new(&options, &queue, &info), &info, RON_ERR_BUSY, "queue work");
    assert_null(queue);
    assert_int_equal(ron_mem_live_count(), live_count);
    rt_init();
}

static void use_after_free(struct rt_queue *queue)
{
    rt_queue_free(queue);
    /* The compiler must not see that this is the freed one. */
    __asm__ volatile("" : "+r"(queue));
    rt_queue_close(queue);
}

/* clang does not see this lock: it is taken past the wrappers that name its class. */
static void receive_under_lock(struct rt_queue *queue) RON_BLOCKS
{
    struct rt_lock lock;
    void *pointer;

    rt_lock_init(&lock, "shard", RON_RANK_shard);
    rt_lock_take(&lock);
    (void)!rt_queue_recv(queue, LONG_WAIT, &pointer, NULL);
}

static void queue_misuse_dies(void **state) RON_BLOCKS
{
    struct rt_queue *queue = make(2, 0);

    (void)state;
    assert_ok(rt_queue_try_send(queue, item(0, 1), NULL));
    assert_dies(rt_queue_free(queue), "queue->depth == 0");
    assert_dies(receive_under_lock(queue), "locks_held_count == 0");
    assert_dies((void)!rt_queue_try_send(queue, (struct rt_queue_item){NULL, 1}, NULL),
                "item.pointer != NULL");
    EXPECT_ITEMS(queue, 0);
    if (!RON_ASAN && !RON_TSAN) /* which report the read itself */
        assert_dies(use_after_free(queue), "queue work is used after it was freed");
    rt_queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_keeps_order_around_the_ring),
        cmocka_unit_test(queue_try_send_rejects_when_full),
        cmocka_unit_test(queue_bounds_weight_too),
        cmocka_unit_test(queue_try_send_many_takes_the_prefix_that_fits),
        cmocka_unit_test(queue_drop_oldest_hands_the_evicted_back),
        cmocka_unit_test(queue_drops_what_is_over_first),
        cmocka_unit_test(queue_drops_what_is_over_by_weight),
        cmocka_unit_test(queue_drop_oldest_takes_many),
        cmocka_unit_test(queue_past_deadline_touches_nothing),
        cmocka_unit_test(queue_waits_end_at_the_deadline),
        cmocka_unit_test(queue_close_drains_then_cancels),
        cmocka_unit_test(queue_recv_many_lingers_for_more),
        cmocka_unit_test(queue_recv_light_stops_before_a_heavy_item),
        cmocka_unit_test(queue_receiver_makes_room_for_waiting_sender),
        cmocka_unit_test(queue_eviction_makes_room_for_waiting_sender),
        cmocka_unit_test(queue_close_wakes_waiting_senders),
        cmocka_unit_test(queue_each_send_wakes_waiting_receivers),
        cmocka_unit_test(queue_evictions_wake_a_waiting_sender),
        cmocka_unit_test(queue_measures_the_wait_of_samples),
        cmocka_unit_test(queue_survives_each_failed_allocation),
        cmocka_unit_test(queue_is_registered_while_it_lives),
        cmocka_unit_test(queue_needs_room_in_the_registry),
        cmocka_unit_test(queue_misuse_dies),
    };
    rt_init();
    return cmocka_run_group_tests_name("rt_queue", tests, NULL, NULL);
}
