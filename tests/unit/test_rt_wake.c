/*
 * test_rt_wake.c - who is woken: one waiter for each item and each slot, through chains of single
 * wake-ups; and ends of objects wait for those who look at them. Method: all threads of a case
 * sleep before the one call that must, in the end, wake each of them. Deadlines are far: whoever
 * is not woken still gets its item, but only there.
 */
#include "support.h"

#include "rt/atomic.h"
#include "rt/queue.h"
#include "rt/registry.h"

enum { THREADS_COUNT = 4, FAR_MS = 10000, SETTLE_MS = 30 };

static int payload;

struct waiter {
    struct rt_queue *queue;
    struct sh_thread *thread;
    enum ron_err err;
};

static struct rt_queue *make_queue(uint32_t capacity, uint64_t weight_max)
{
    const struct rt_queue_options options = {.name = "wake",
                                             .owner = "test",
                                             .policy = "waits",
                                             .capacity = capacity,
                                             .weight_max = weight_max};
    struct rt_queue *queue = NULL;

    assert_ok(rt_queue_new(&options, &queue, NULL));
    return queue;
}

static void receive_one(void *context) RON_BLOCKS
{
    struct waiter *waiter = context;
    void *pointer;

    waiter->err = rt_queue_recv(waiter->queue, rt_deadline_after_ms(FAR_MS), &pointer, NULL);
}

static void send_one(void *context) RON_BLOCKS
{
    struct waiter *waiter = context;

    waiter->err = rt_queue_send_until(waiter->queue, (struct rt_queue_item){&payload, 1},
                                      rt_deadline_after_ms(FAR_MS), NULL);
}

static void start(struct waiter *waiters, struct rt_queue *queue, void (*fn)(void *context))
{
    struct rt_queue_stats stats;

    for (size_t i = 0; i < THREADS_COUNT; i++) {
        waiters[i] = (struct waiter){.queue = queue, .err = RON_ERR_IO};
        assert_ok(sh_spawn("waiter", fn, &waiters[i], &waiters[i].thread, NULL));
    }
    do { /* until all sleep */
        sh_yield();
        rt_queue_get_stats(queue, &stats);
    } while (stats.senders_waiting + stats.receivers_waiting < THREADS_COUNT);
}

static void assert_all_done(struct waiter *waiters)
{
    const struct rt_deadline soon = rt_deadline_after_ms(FAR_MS / 2);

    for (size_t i = 0; i < THREADS_COUNT; i++) {
        assert_true(sh_join(waiters[i].thread, SH_NEVER));
        assert_ok(waiters[i].err);
    }
    assert_false(rt_deadline_expired(soon));
}

static void a_batch_wakes_a_receiver_for_each_item(void **state)
{
    struct rt_queue *queue = make_queue(THREADS_COUNT, 0);
    struct rt_queue_item items[THREADS_COUNT];
    struct waiter waiters[THREADS_COUNT];
    size_t sent_count = 0;

    (void)state;
    for (size_t i = 0; i < THREADS_COUNT; i++)
        items[i] = (struct rt_queue_item){&payload, 1};
    start(waiters, queue, receive_one);
    assert_ok(rt_queue_try_send_many(queue, items, THREADS_COUNT, &sent_count, NULL));
    assert_int_equal(sent_count, THREADS_COUNT);
    assert_all_done(waiters);
    rt_queue_free(queue);
}

static void single_items_wake_a_receiver_each(void **state)
{
    struct rt_queue *queue = make_queue(THREADS_COUNT, 0);
    struct waiter waiters[THREADS_COUNT];

    (void)state;
    start(waiters, queue, receive_one);
    for (size_t i = 0; i < THREADS_COUNT; i++)
        assert_ok(rt_queue_try_send(queue, (struct rt_queue_item){&payload, 1}, NULL));
    assert_all_done(waiters);
    rt_queue_free(queue);
}

/* A full queue is emptied by one call: all senders fit at once. */
static void assert_senders_wake(uint64_t weight_max)
{
    struct rt_queue *queue = make_queue(THREADS_COUNT, weight_max);
    struct waiter waiters[THREADS_COUNT];
    void *pointers[THREADS_COUNT];

    for (size_t i = 0; i < THREADS_COUNT; i++)
        assert_ok(rt_queue_try_send(queue, (struct rt_queue_item){&payload, 1}, NULL));
    start(waiters, queue, send_one);
    assert_int_equal(rt_queue_try_recv_many(queue, pointers, THREADS_COUNT), THREADS_COUNT);
    assert_all_done(waiters);
    assert_int_equal(rt_queue_try_recv_many(queue, pointers, THREADS_COUNT), THREADS_COUNT);
    rt_queue_free(queue);
}

static void freed_slots_wake_a_sender_each(void **state)
{
    (void)state;
    assert_senders_wake(0);
}

static void freed_weight_wakes_all_senders(void **state)
{
    (void)state;
    assert_senders_wake(THREADS_COUNT);
}

/* An object that somebody looks at cannot end. */
struct ending {
    struct rt_queue *queue;
    struct rt_atomic_u32 freed;
};

static void free_queue(void *context)
{
    struct ending *ending = context;

    rt_queue_free(ending->queue);
    rt_atomic_store_u32(&ending->freed, 1);
}

static void end_of_a_queue_waits_for_pins(void **state)
{
    struct ending ending = {.queue = make_queue(1, 0)};
    struct rt_registry_entry entries[RT_REGISTRY_MAX];
    struct rt_queue_stats stats;
    struct sh_thread *thread = NULL;

    (void)state;
    rt_registry_pin();
    assert_true(rt_registry_list(entries, RT_REGISTRY_MAX) > 0);
    assert_ptr_equal(entries[0].object, ending.queue);
    assert_ok(sh_spawn("ending", free_queue, &ending, &thread, NULL));
    sh_sleep_until(rt_deadline_after_ms(SETTLE_MS).at_ns);
    assert_int_equal(rt_atomic_load_u32(&ending.freed), 0);
    rt_queue_get_stats(ending.queue, &stats); /* alive */
    rt_registry_unpin();
    assert_true(sh_join(thread, SH_NEVER));
    assert_int_equal(rt_atomic_load_u32(&ending.freed), 1);
    assert_dies(rt_registry_unpin(), "pins_count");
}

static void births_rise_and_are_never_reused(void **state)
{
    struct rt_registry_entry entries[RT_REGISTRY_MAX];
    struct rt_queue *first = make_queue(1, 0);
    struct rt_queue *second = make_queue(1, 0);
    uint64_t birth;

    (void)state;
    (void)rt_registry_list(entries, RT_REGISTRY_MAX);
    birth = entries[1].birth;
    assert_true(entries[0].birth < birth);
    rt_queue_free(second);
    second = make_queue(1, 0);
    (void)rt_registry_list(entries, RT_REGISTRY_MAX);
    assert_true(entries[1].birth > birth);
    rt_queue_free(first);
    rt_queue_free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_wakes_a_receiver_for_each_item),
        cmocka_unit_test(single_items_wake_a_receiver_each),
        cmocka_unit_test(freed_slots_wake_a_sender_each),
        cmocka_unit_test(freed_weight_wakes_all_senders),
        cmocka_unit_test(end_of_a_queue_waits_for_pins),
        cmocka_unit_test(births_rise_and_are_never_reused),
    };
    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
