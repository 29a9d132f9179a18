/*
 * test_rt_watch.c - watches and buses on real threads. Method: values and versions in order, the
 * bus at its capacity and beyond, close at each state, one waiting call each from another thread.
 */
#include "support.h"

#include "rt/bus.h"
#include "rt/registry.h"
#include "rt/watch.h"

static struct rt_watch *make_watch(int initial)
{
    const struct rt_watch_options options = {"ready", "test", sizeof(int)};
    struct rt_watch *watch = NULL;

    assert_ok(rt_watch_new(&options, &initial, &watch, NULL));
    return watch;
}

static void watch_gives_the_last_write(void **state) RON_BLOCKS
{
    struct rt_watch *watch = make_watch(5);
    uint64_t version = 0;
    int value = 0;

    (void)state;
    assert_int_equal(rt_watch_get(watch, &value), 1);
    assert_int_equal(value, 5);
    assert_false(rt_watch_changed(watch, 1));
    rt_watch_set(watch, &(int){6});
    rt_watch_set(watch, &(int){7});
    assert_true(rt_watch_changed(watch, 1));
    assert_ok(rt_watch_wait(watch, 1, RT_DEADLINE_NEVER, &value, &version, NULL));
    assert_int_equal(value, 7);
    assert_int_equal(version, 3);
    assert_int_equal(rt_watch_wait(watch, 3, rt_deadline_after_ms(2), &value, &version, NULL),
                     RON_ERR_TIMEOUT);
    assert_int_equal(rt_watch_wait(watch, 1, (struct rt_deadline){0}, &value, &version, NULL),
                     RON_ERR_TIMEOUT);
    assert_null(rt_watch_free(watch));
    assert_null(rt_watch_free(NULL));
}

static void watch_close_gives_the_change_before_it(void **state) RON_BLOCKS
{
    struct rt_watch *watch = make_watch(1);
    struct ron_errinfo info = {0};
    uint64_t version = 0;
    int value = 0;

    (void)state;
    rt_watch_set(watch, &(int){2});
    rt_watch_close(watch);
    rt_watch_set(watch, &(int){3}); /* too late */
    assert_ok(rt_watch_wait(watch, 1, RT_DEADLINE_NEVER, &value, &version, NULL));
    assert_int_equal(value, 2);
    support_assert_error(rt_watch_wait(watch, 2, RT_DEADLINE_NEVER, &value, &version, &info), &info,
                         RON_ERR_CANCELED, "watch ready");
    rt_watch_free(watch);
}

struct waiter {
    struct rt_watch *watch;
    struct rt_bus_subscriber *subscriber;
    enum ron_err err;
    int value;
};

static void wait_for_change(void *context) RON_BLOCKS
{
    struct waiter *waiter = context;
    uint64_t version;

    waiter->err = rt_watch_wait(waiter->watch, 1, RT_DEADLINE_NEVER, &waiter->value, &version,
                                NULL);
}

static void watch_wakes_those_who_wait(void **state)
{
    struct waiter waiters[2] = {{.watch = make_watch(1)}, {0}};
    struct sh_thread *threads[2];

    (void)state;
    waiters[1].watch = waiters[0].watch;
    for (unsigned i = 0; i < 2; i++)
        assert_ok(sh_spawn("waiter", wait_for_change, &waiters[i], &threads[i], NULL));
    assert_false(sh_join(threads[0], rt_now_ns() + 2 * RT_NS_PER_MS));
    rt_watch_set(waiters[0].watch, &(int){9});
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sh_join(threads[i], SH_NEVER));
        assert_ok(waiters[i].err);
        assert_int_equal(waiters[i].value, 9);
    }
    rt_watch_free(waiters[0].watch);
}

static struct rt_bus *make_bus(uint32_t capacity)
{
    const struct rt_bus_options options = {"events", "test", capacity, sizeof(int)};
    struct rt_bus *bus = NULL;

    assert_ok(rt_bus_new(&options, &bus, NULL));
    return bus;
}

static void expect_message(struct rt_bus_subscriber *subscriber, int message,
                           uint64_t lost_count) RON_BLOCKS
{
    int got = 0;
    uint64_t lost = 77;

    assert_ok(rt_bus_recv(subscriber, rt_deadline_after_ms(10000), &got, &lost, NULL));
    assert_int_equal(got, message);
    assert_int_equal(lost, lost_count);
}

static void publish(struct rt_bus *bus, int first, int count)
{
    for (int i = first; i < first + count; i++)
        assert_ok(rt_bus_publish(bus, &i, NULL));
}

static void bus_delivers_several_in_their_order(void **state) RON_BLOCKS
{
    static const int messages[] = {7, 8, 9, 10, 11};
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *subscriber;

    (void)state;
    assert_ok(rt_bus_subscribe(bus, "s1", &subscriber, NULL));
    assert_ok(rt_bus_publish_many(bus, messages, 3, NULL));
    assert_ok(rt_bus_publish_many(bus, messages, 0, NULL));
    expect_message(subscriber, 7, 0);
    expect_message(subscriber, 8, 0);
    expect_message(subscriber, 9, 0);
    assert_ok(rt_bus_publish_many(bus, messages, 5, NULL)); /* more than it holds */
    expect_message(subscriber, 8, 1);
    expect_message(subscriber, 9, 0);
    expect_message(subscriber, 10, 0);
    expect_message(subscriber, 11, 0);
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static void bus_gives_many_at_once(void **state) RON_BLOCKS
{
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *subscriber;
    int got[4] = {0};
    uint64_t lost = 77;
    size_t count = 0;

    (void)state;
    assert_ok(rt_bus_subscribe(bus, "s", &subscriber, NULL));
    publish(bus, 1, 3);
    assert_ok(rt_bus_recv_many(subscriber, RT_DEADLINE_NEVER, got, 2, &count, &lost, NULL));
    assert_int_equal(count, 2);
    assert_int_equal(lost, 0);
    assert_int_equal(got[0], 1);
    assert_int_equal(got[1], 2);
    assert_int_equal(got[2], 0);
    publish(bus, 4, 5); /* of six that are new, four are left */
    assert_ok(rt_bus_recv_many(subscriber, RT_DEADLINE_NEVER, got, 4, &count, &lost, NULL));
    assert_int_equal(count, 4);
    assert_int_equal(lost, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], 5 + i);
    count = 9;
    assert_int_equal(
        rt_bus_recv_many(subscriber, rt_deadline_after_ms(1), got, 4, &count, &lost, NULL),
        RON_ERR_TIMEOUT);
    assert_int_equal(count, 9);
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static uint64_t lost_count_of(struct rt_bus *bus)
{
    struct rt_bus_stats stats;

    rt_bus_get_stats(bus, &stats);
    return stats.lags[0].lost_count;
}

static void bus_lets_pass_over_what_is_there(void **state) RON_BLOCKS
{
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *subscriber;
    struct rt_bus_stats stats;

    (void)state;
    assert_ok(rt_bus_subscribe(bus, "s", &subscriber, NULL));
    publish(bus, 1, 5);
    assert_int_equal(rt_bus_skip(subscriber, (struct rt_deadline){0}, NULL), RON_ERR_TIMEOUT);
    assert_int_equal(lost_count_of(bus), 1);
    assert_ok(rt_bus_skip(subscriber, RT_DEADLINE_NEVER, NULL));
    assert_int_equal(lost_count_of(bus), 1); /* a figure that was seen stays, */
    assert_int_equal(rt_bus_skip(subscriber, rt_deadline_after_ms(1), NULL), RON_ERR_TIMEOUT);
    publish(bus, 6, 9);
    assert_int_equal(lost_count_of(bus), 1); /* but who skips loses nothing more */
    assert_ok(rt_bus_skip(subscriber, RT_DEADLINE_NEVER, NULL));
    rt_bus_get_stats(bus, &stats);
    assert_int_equal(stats.lags[0].behind_count, 0);
    assert_int_equal(stats.lags[0].lost_count, 1);
    publish(bus, 15, 1);
    rt_bus_close(bus);
    assert_ok(rt_bus_skip(subscriber, RT_DEADLINE_NEVER, NULL)); /* what came before the close */
    assert_int_equal(rt_bus_skip(subscriber, RT_DEADLINE_NEVER, NULL), RON_ERR_CANCELED);
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static void bus_delivers_all_to_each_from_its_start(void **state) RON_BLOCKS
{
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *early, *late;

    (void)state;
    publish(bus, 0, 1); /* nobody listens */
    assert_ok(rt_bus_subscribe(bus, "early", &early, NULL));
    publish(bus, 1, 1);
    assert_ok(rt_bus_subscribe(bus, "late", &late, NULL));
    publish(bus, 2, 1);
    expect_message(early, 1, 0);
    expect_message(early, 2, 0);
    expect_message(late, 2, 0);
    assert_null(rt_bus_unsubscribe(early));
    publish(bus, 3, 1);
    expect_message(late, 3, 0);
    rt_bus_unsubscribe(late);
    assert_null(rt_bus_unsubscribe(NULL));
    rt_bus_free(bus);
}

static void bus_lag_loses_oldest_and_tells(void **state) RON_BLOCKS
{
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *subscriber;
    struct rt_bus_stats stats;

    (void)state;
    assert_ok(rt_bus_subscribe(bus, "slow", &subscriber, NULL));
    publish(bus, 0, 4); /* exactly full: nothing lost */
    expect_message(subscriber, 0, 0);
    publish(bus, 4, 4);
    rt_bus_get_stats(bus, &stats);
    assert_string_equal(stats.name, "events");
    assert_int_equal(stats.capacity, 4);
    assert_int_equal(stats.subscribers_count, 1);
    assert_string_equal(stats.lags[0].consumer, "slow");
    assert_int_equal(stats.lags[0].behind_count, 4);
    assert_int_equal(stats.lags[0].lost_count, 3);
    expect_message(subscriber, 4, 3);
    for (int i = 5; i < 8; i++)
        expect_message(subscriber, i, 0);
    rt_bus_get_stats(bus, &stats);
    assert_int_equal(stats.lags[0].behind_count, 0);
    assert_int_equal(stats.lags[0].lost_count, 3);
    assert_int_equal(stats.published_count, 8);
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static void bus_close_lets_subscribers_read_the_rest(void **state) RON_BLOCKS
{
    struct rt_bus *bus = make_bus(4);
    struct rt_bus_subscriber *subscriber, *refused = NULL;
    struct rt_bus_stats stats;
    struct ron_errinfo info = {0};
    uint64_t lost = 0;
    int message = 0;

    (void)state;
    assert_ok(rt_bus_subscribe(bus, "s", &subscriber, NULL));
    assert_int_equal(rt_bus_recv(subscriber, rt_deadline_after_ms(2), &message, &lost, NULL),
                     RON_ERR_TIMEOUT);
    publish(bus, 1, 2);
    assert_int_equal(rt_bus_recv(subscriber, (struct rt_deadline){0}, &message, &lost, NULL),
                     RON_ERR_TIMEOUT);
    stats.closed = true;
    rt_bus_get_stats(bus, &stats);
    assert_false(stats.closed);
    rt_bus_close(bus);
    rt_bus_close(bus);
    rt_bus_get_stats(bus, &stats);
    assert_true(stats.closed);
    support_assert_error(rt_bus_publish(bus, &message, &info), &info, RON_ERR_CANCELED,
                         "bus events");
    support_assert_error(rt_bus_subscribe(bus, "s2", &refused, &info), &info, RON_ERR_CANCELED,
                         "bus events is closed to subscriber s2");
    expect_message(subscriber, 1, 0);
    expect_message(subscriber, 2, 0);
    support_assert_error(rt_bus_recv(subscriber, RT_DEADLINE_NEVER, &message, &lost, &info), &info,
                         RON_ERR_CANCELED, "closed and read");
    assert_dies(rt_bus_free(bus), "subscribers_count == 0");
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static void wait_for_message(void *context) RON_BLOCKS
{
    struct waiter *waiter = context;
    uint64_t lost;

    waiter->err = rt_bus_recv(waiter->subscriber, RT_DEADLINE_NEVER, &waiter->value, &lost, NULL);
}

static void bus_wakes_those_who_wait(void **state)
{
    struct rt_bus *bus = make_bus(2);
    struct waiter waiters[2] = {0};
    struct sh_thread *threads[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(rt_bus_subscribe(bus, "w", &waiters[i].subscriber, NULL));
        assert_ok(sh_spawn("waiter", wait_for_message, &waiters[i], &threads[i], NULL));
    }
    assert_false(sh_join(threads[0], rt_now_ns() + 2 * RT_NS_PER_MS));
    publish(bus, 4, 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sh_join(threads[i], rt_deadline_after_ms(10000).at_ns));
        assert_ok(waiters[i].err);
        assert_int_equal(waiters[i].value, 4);
        rt_bus_unsubscribe(waiters[i].subscriber);
    }
    rt_bus_free(bus);
}

static void bus_bounds_its_subscribers(void **state)
{
    struct rt_bus *bus = make_bus(2);
    struct rt_bus_subscriber *subscribers[RT_BUS_SUBSCRIBERS_MAX], *refused = NULL;
    struct ron_errinfo info = {0};

    (void)state;
    for (unsigned i = 0; i < RT_BUS_SUBSCRIBERS_MAX; i++)
        assert_ok(rt_bus_subscribe(bus, "many", &subscribers[i], NULL));
    support_assert_error(rt_bus_subscribe(bus, "one more", &refused, &info), &info, RON_ERR_BUSY,
                         "has no room for subscriber one more");
    for (unsigned i = 0; i < RT_BUS_SUBSCRIBERS_MAX; i++)
        rt_bus_unsubscribe(subscribers[i]);
    rt_bus_free(bus);
}

static void use_freed_bus(struct rt_bus *bus)
{
    rt_bus_free(bus);
    /* The compiler must not see that this is the freed one. */
    __asm__ volatile("" : "+r"(bus));
    rt_bus_close(bus);
}

static void unsubscribe_twice(struct rt_bus_subscriber *subscriber)
{
    rt_bus_unsubscribe(subscriber);
    __asm__ volatile("" : "+r"(subscriber));
    rt_bus_unsubscribe(subscriber);
}

static void bus_misuse_dies(void **state)
{
    struct rt_bus *bus = make_bus(2);
    struct rt_bus_subscriber *subscriber = NULL;

    (void)state;
    if (RON_ASAN || RON_TSAN) { /* which report the reads themselves */
        rt_bus_free(bus);
        return;
    }
    assert_dies(use_freed_bus(bus), "bus->magic == BUS_MAGIC");
    assert_ok(rt_bus_subscribe(bus, "s", &subscriber, NULL));
    assert_dies(unsubscribe_twice(subscriber), "subscriber->magic == SUBSCRIBER_MAGIC");
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
}

static enum ron_err make_all_once(void *context, struct ron_errinfo *reterr)
{
    const struct rt_bus_options bus_options = {"events", "test", 2, 8};
    const struct rt_watch_options watch_options = {"ready", "test", 8};
    struct rt_bus_subscriber *subscriber = NULL;
    struct rt_watch *watch = NULL;
    struct rt_bus *bus = NULL;
    uint64_t zero = 0;
    enum ron_err err = rt_watch_new(&watch_options, &zero, &watch, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        err = rt_bus_new(&bus_options, &bus, reterr);
    if (err == RON_ERR_OK)
        err = rt_bus_subscribe(bus, "s", &subscriber, reterr);
    rt_bus_unsubscribe(subscriber);
    rt_bus_free(bus);
    rt_watch_free(watch);
    return err;
}

static void constructors_survive_each_failed_allocation(void **state)
{
    size_t before_count = rt_registry_list(NULL, 0);

    (void)state;
    assert_int_equal(support_fail_each_allocation(make_all_once, NULL, 9), 4);
    assert_int_equal(rt_registry_list(NULL, 0), before_count);
}

static void constructors_need_room_in_the_registry(void **state)
{
    const struct rt_registry_entry filler = {
        .object = &filler, .kind = RT_KIND_QUEUE, .name = "filler", .policy = "", .owner = ""};
    const struct rt_bus_options bus_options = {"events", "test", 2, 8};
    const struct rt_watch_options watch_options = {"ready", "test", 8};
    struct rt_watch *watch = NULL;
    struct rt_bus *bus = NULL;
    struct ron_errinfo info = {0};
    uint64_t zero = 0;

    (void)state;
    while (rt_registry_add(&filler, NULL) == RON_ERR_OK)
        continue;
    support_assert_error(rt_watch_new(&watch_options, &zero, &watch, &info), &info, RON_ERR_BUSY,
                         "watch ready");
    support_assert_error(rt_bus_new(&bus_options, &bus, &info), &info, RON_ERR_BUSY, "bus events");
    assert_null(watch);
    assert_null(bus);
    assert_int_equal(ron_mem_live_count(), 0);
    rt_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_gives_the_last_write),
        cmocka_unit_test(watch_close_gives_the_change_before_it),
        cmocka_unit_test(watch_wakes_those_who_wait),
        cmocka_unit_test(bus_delivers_all_to_each_from_its_start),
        cmocka_unit_test(bus_delivers_several_in_their_order),
        cmocka_unit_test(bus_gives_many_at_once),
        cmocka_unit_test(bus_lets_pass_over_what_is_there),
        cmocka_unit_test(bus_lag_loses_oldest_and_tells),
        cmocka_unit_test(bus_close_lets_subscribers_read_the_rest),
        cmocka_unit_test(bus_wakes_those_who_wait),
        cmocka_unit_test(bus_bounds_its_subscribers),
        cmocka_unit_test(bus_misuse_dies),
        cmocka_unit_test(constructors_survive_each_failed_allocation),
        cmocka_unit_test(constructors_need_room_in_the_registry),
    };
    rt_init();
    return cmocka_run_group_tests_name("rt_watch", tests, NULL, NULL);
}
