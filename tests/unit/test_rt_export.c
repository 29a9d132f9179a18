/*
 * test_rt_export.c - the collector of what queues, buses, lanes, timers and tasks count. Method:
 * objects that live, change and end between collections, alone and beside a collecting thread.
 */
#include "support.h"

#include <stdio.h>

#include "rt/atomic.h"
#include "rt/bus.h"
#include "rt/export.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/timer.h"

static bool has_text(struct rt_metrics *metrics, const char *piece)
{
    struct ron_buf buf;
    bool found;

    ron_buf_init(&buf, 1 << 16);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    ron_buf_put_byte(&buf, 0);
    found = strstr((const char *)buf.data, piece) != NULL;
    ron_buf_fini(&buf);
    return found;
}

struct plane {
    struct rt_metrics *metrics;
    struct rt_exporter *exporter;
};

static struct plane make_plane(void)
{
    const struct rt_metric_table tables[] = {{rt_metric_table, RT_METRIC__COUNT}};
    struct plane plane;
    struct rt_exporter_options options = {.q_role = "ledger"};

    rt_init();
    assert_ok(rt_metrics_new(tables, 1, &plane.metrics, NULL));
    options.metrics = plane.metrics;
    assert_ok(rt_exporter_new(&options, &plane.exporter, NULL));
    return plane;
}

static void end_plane(struct plane *plane)
{
    assert_null(rt_exporter_free(plane->exporter));
    assert_null(rt_exporter_free(NULL));
    rt_metrics_free(plane->metrics);
}

static void assert_line(struct plane *plane, const char *line)
{
    if (!has_text(plane->metrics, line))
        fail_msg("no line %s", line);
}

static struct rt_queue *make_queue(const char *name, const char *owner)
{
    const struct rt_queue_options options = {
        .name = name, .owner = owner, .policy = "reject", .capacity = 2};
    struct rt_queue *queue = NULL;

    assert_ok(rt_queue_new(&options, &queue, NULL));
    return queue;
}

static void fill(struct rt_queue *queue, unsigned count)
{
    static int item;

    for (unsigned i = 0; i < count; i++)
        (void)!rt_queue_try_send(queue, (struct rt_queue_item){&item, 1}, NULL);
}

static void drain(struct rt_queue *queue)
{
    void *items[8];

    assert_true(rt_queue_try_recv_many(queue, items, 8) <= 8);
}

static void queues_are_collected(void **state)
{
    struct plane plane = make_plane();
    struct rt_queue *ingress = make_queue("ingress", "ledger");
    struct rt_queue *work = make_queue("work", "wallet");
    struct rt_queue *twin = make_queue("work", "wallet");
    static int item;
    void *evicted[1];
    size_t evicted_count = 0;

    (void)state;
    fill(ingress, 5); /* three refused */
    fill(work, 1);
    fill(twin, 2);
    assert_ok(rt_queue_send_drop_oldest(twin, (struct rt_queue_item){&item, 1}, evicted, 1,
                                        &evicted_count, NULL));
    rt_exporter_collect(plane.exporter);
    rt_exporter_collect(plane.exporter); /* changes nothing */
    assert_line(&plane, "queue_depth{role=\"ledger\",queue=\"ingress\",q=\"ingress\"} 2\n");
    assert_line(&plane, "queue_capacity{role=\"ledger\",queue=\"ingress\",q=\"ingress\"} 2\n");
    assert_line(&plane, "queue_depth{role=\"wallet\",queue=\"work\",q=\"\"} 3\n"); /* 1 + 2 */
    assert_line(&plane, "busy_rejections_total{role=\"ledger\",endpoint=\"\",queue=\"ingress\","
                        "q=\"ingress\"} 3\n");
    assert_line(&plane, "drops_total{role=\"wallet\",queue=\"work\",q=\"\"} 1\n");
    assert_line(&plane,
                "queue_dropped_total{role=\"wallet\",queue=\"work\",reason=\"capacity\"} 1\n");
    drain(twin);
    rt_queue_free(twin);
    fill(ingress, 1);
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "queue_depth{role=\"wallet\",queue=\"work\",q=\"\"} 1\n");
    assert_line(&plane, "drops_total{role=\"wallet\",queue=\"work\",q=\"\"} 1\n"); /* never falls */
    assert_line(&plane, "endpoint=\"\",queue=\"ingress\",q=\"ingress\"} 4\n");
    drain(ingress);
    drain(work);
    rt_exporter_collect(plane.exporter);
    rt_queue_free(ingress);
    rt_queue_free(work);
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "queue_depth{role=\"wallet\",queue=\"work\",q=\"\"} 0\n");
    assert_line(&plane, "queue_wait_samples_total{role=\"ledger\",queue=\"ingress\"} 1\n");
    end_plane(&plane);
}

static void lags_of_consumers_are_collected(void **state)
{
    struct plane plane = make_plane();
    const struct rt_bus_options options = {
        .name = "events", .owner = "wallet", .capacity = 2, .message_size = 1};
    struct rt_bus *bus = NULL;
    struct rt_bus_subscriber *one = NULL, *two = NULL;

    (void)state;
    assert_ok(rt_bus_new(&options, &bus, NULL));
    assert_ok(rt_bus_subscribe(bus, "audit", &one, NULL));
    for (unsigned i = 0; i < 5; i++)
        assert_ok(rt_bus_publish(bus, "x", NULL));
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "bus_lagged_total{role=\"wallet\",bus=\"events\",consumer=\"audit\"} 3\n");
    assert_null(rt_bus_unsubscribe(one));
    assert_ok(rt_bus_subscribe(bus, "audit", &two, NULL)); /* perhaps at the same address */
    for (unsigned i = 0; i < 6; i++)
        assert_ok(rt_bus_publish(bus, "x", NULL));
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "bus_lagged_total{role=\"wallet\",bus=\"events\",consumer=\"audit\"} 7\n");
    rt_bus_unsubscribe(two);
    rt_bus_free(bus);
    end_plane(&plane);
}

static enum ron_err end_at_once(struct rt_task *task, void *argument)
{
    (void)argument;
    return rt_task_canceled(task) ? RON_ERR_CANCELED : RON_ERR_OK;
}

static void tasks_are_collected(void **state) RON_BLOCKS
{
    struct plane plane = make_plane();
    const struct rt_supervisor_options options = {"wallet", "wallet", .tasks_max = 2};
    const struct rt_task_options task_options = {
        .kind = "worker", .name = "worker 1", .owner = "wallet", .fn = end_at_once};
    struct rt_supervisor *supervisor = NULL;
    struct rt_task *task = NULL;
    enum ron_err result = RON_ERR_IO;

    (void)state;
    assert_ok(rt_supervisor_new(&options, &supervisor, NULL));
    rt_exporter_follow(plane.exporter, "wallet", supervisor);
    for (unsigned run = 1; run <= 2; run++) {
        assert_ok(rt_task_spawn(supervisor, &task_options, &task, NULL));
        assert_ok(rt_task_join(task, RT_DEADLINE_NEVER, &result, NULL));
        rt_exporter_collect(plane.exporter);
        rt_exporter_collect(plane.exporter);
        assert_line(&plane, run == 1 ? "tasks_spawned_total{role=\"wallet\",kind=\"worker\"} 1\n"
                                     : "tasks_spawned_total{role=\"wallet\",kind=\"worker\"} 2\n");
    }
    assert_line(&plane, "tasks_leaked_total{role=\"wallet\",kind=\"worker\"} 0\n");
    assert_line(&plane, "service_restarts_total{role=\"wallet\",task=\"worker\"} 0\n");
    assert_ok(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
    end_plane(&plane);
    rt_supervisor_free(supervisor);
}

static struct rt_supervisor *make_supervisor(uint32_t tasks_max)
{
    static const struct rt_backoff_policy fast = {.base_ns = 1000, .cap_ns = 1000};
    const struct rt_supervisor_options options = {
        .name = "root", .owner = "test", .tasks_max = tasks_max, .backoff = &fast};
    struct rt_supervisor *supervisor = NULL;

    assert_ok(rt_supervisor_new(&options, &supervisor, NULL));
    return supervisor;
}

static void end_supervisor(struct rt_supervisor *supervisor) RON_BLOCKS
{
    assert_ok(rt_supervisor_stop(supervisor, RT_DEADLINE_NEVER, NULL));
}

static struct rt_atomic_u32 gate, begun_count;

/* Its first item is held at the gate, then panics; the others pass. */
static void handle(void *context, void *lane, void *item)
{
    (void)context, (void)lane, (void)item;
    if (rt_atomic_add_u32(&begun_count, 1) > 0)
        return;
    while (rt_atomic_load_u32(&gate) == 0)
        sh_sleep_until(rt_now_ns() + 100000);
    rt_panic("as planned");
}

static void drop(void *context, void *lane, void *item, enum ron_err reason)
{
    (void)context, (void)lane, (void)item, (void)reason;
}

static struct rt_strands *make_strands(struct rt_supervisor *supervisor) RON_BLOCKS
{
    const struct rt_strands_options options = {.name = "lanes",
                                               .owner = "ledger",
                                               .kind = "lane",
                                               .threads_count = 1,
                                               .lanes_max = 4,
                                               .lane_capacity = 2,
                                               .items_max = 8,
                                               .handle = handle,
                                               .drop = drop};
    struct rt_strands *strands = NULL;

    assert_ok(rt_strands_new(&options, supervisor, &strands, NULL));
    return strands;
}

static void lanes_are_collected(void **state) RON_BLOCKS
{
    struct plane plane = make_plane();
    struct rt_supervisor *supervisor = make_supervisor(1);
    struct rt_strands *strands = make_strands(supervisor);
    struct rt_lane_id ids[2];
    static int item;

    (void)state;
    rt_atomic_store_u32(&gate, 0);
    rt_atomic_store_u32(&begun_count, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(rt_lane_open(strands, &ids[i], 1, &ids[i], NULL));
    assert_ok(rt_lane_send(strands, ids[0], &item, NULL));
    while (rt_atomic_load_u32(&begun_count) == 0)
        sh_yield();
    for (unsigned i = 0; i < 2; i++)
        assert_ok(rt_lane_send(strands, ids[1], &item, NULL));
    assert_int_equal(rt_lane_send(strands, ids[1], &item, NULL), RON_ERR_BUSY);
    rt_exporter_collect(plane.exporter);
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "queue_depth{role=\"ledger\",queue=\"lanes\",q=\"lanes\"} 2\n");
    assert_line(&plane, "queue_capacity{role=\"ledger\",queue=\"lanes\",q=\"lanes\"} 8\n");
    assert_line(&plane, "lanes_open{role=\"ledger\",queue=\"lanes\"} 2\n");
    assert_line(&plane, "lanes_ready{role=\"ledger\",queue=\"lanes\"} 1\n");
    assert_line(&plane, "lanes_running{role=\"ledger\",queue=\"lanes\"} 1\n");
    assert_line(&plane, "endpoint=\"\",queue=\"lanes\",q=\"lanes\"} 1\n");
    rt_atomic_store_u32(&gate, 1);
    assert_ok(rt_strands_drain(strands, RT_DEADLINE_NEVER, NULL));
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "queue_depth{role=\"ledger\",queue=\"lanes\",q=\"lanes\"} 0\n");
    assert_line(&plane, "lane_items_total{role=\"ledger\",queue=\"lanes\"} 2\n");
    assert_line(&plane,
                "queue_dropped_total{role=\"ledger\",queue=\"lanes\",reason=\"internal\"} 1\n");
    end_supervisor(supervisor);
    rt_strands_free(strands);
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "lanes_open{role=\"ledger\",queue=\"lanes\"} 0\n");
    assert_line(&plane, "lane_items_total{role=\"ledger\",queue=\"lanes\"} 2\n");
    rt_supervisor_free(supervisor);
    end_plane(&plane);
}

static void count_ring(void *argument, struct rt_timer_id id)
{
    (void)id;
    (void)rt_atomic_add_u32(argument, 1);
}

static struct rt_timers *make_timers(struct rt_supervisor *supervisor)
{
    const struct rt_timers_options options = {.name = "clock", .owner = "wallet", .timers_max = 4};
    struct rt_timers *timers = NULL;

    assert_ok(rt_timers_new(&options, supervisor, &timers, NULL));
    return timers;
}

static void timers_are_collected(void **state) RON_BLOCKS
{
    struct plane plane = make_plane();
    struct rt_supervisor *supervisor = make_supervisor(1);
    struct rt_timers *timers = make_timers(supervisor);
    struct rt_timers_stats stats;
    struct rt_timer_id id;
    char line[96];

    (void)state;
    rt_atomic_store_u32(&begun_count, 0);
    assert_ok(rt_timer_set(timers, RT_DEADLINE_NEVER, 0, count_ring, &begun_count, &id, NULL));
    /* A second late at least: both were due a second ago. */
    for (unsigned i = 0; i < 2; i++)
        assert_ok(rt_timer_set(timers, (struct rt_deadline){rt_now_ns() - RT_NS_PER_S}, 0,
                               count_ring, &begun_count, &id, NULL));
    while (rt_atomic_load_u32(&begun_count) < 2)
        sh_yield();
    rt_exporter_collect(plane.exporter);
    rt_exporter_collect(plane.exporter);
    rt_timers_get_stats(timers, &stats);
    assert_int_equal(stats.pending_count, 1);
    assert_int_equal(stats.timers_max, 4);
    assert_int_equal(stats.fired_count, 2);
    assert_true(stats.late_ns_max >= RT_NS_PER_S);
    assert_true(stats.late_ns_sum >= RT_NS_PER_S + stats.late_ns_max);
    assert_true(stats.late_ns_sum <= 2 * stats.late_ns_max);
    assert_line(&plane, "timers_armed{role=\"wallet\",timers=\"clock\"} 1\n");
    assert_line(&plane, "timers_fired_total{role=\"wallet\",timers=\"clock\"} 2\n");
    (void)snprintf(line, sizeof(line), "{role=\"wallet\",timers=\"clock\"} %llu.",
                   (unsigned long long)(stats.late_ns_sum / RT_NS_PER_S));
    assert_line(&plane, line);
    end_supervisor(supervisor);
    rt_timers_free(timers);
    rt_exporter_collect(plane.exporter);
    assert_line(&plane, "timers_armed{role=\"wallet\",timers=\"clock\"} 0\n");
    assert_line(&plane, "timers_fired_total{role=\"wallet\",timers=\"clock\"} 2\n");
    rt_supervisor_free(supervisor);
    end_plane(&plane);
}

/* Objects come and go while another thread collects: TSan and ASan watch. */
static void churn(void *context) RON_BLOCKS
{
    (void)context;
    for (unsigned i = 0; i < 100; i++) {
        const struct rt_bus_options options = {
            .name = "churn", .owner = "test", .capacity = 2, .message_size = 1};
        struct rt_queue *queue = make_queue("churn", "test");
        struct rt_supervisor *supervisor = make_supervisor(2);
        struct rt_strands *strands = make_strands(supervisor);
        struct rt_timers *timers = make_timers(supervisor);
        struct rt_bus *bus = NULL;

        assert_ok(rt_bus_new(&options, &bus, NULL));
        fill(queue, 3);
        drain(queue);
        end_supervisor(supervisor);
        rt_bus_free(bus);
        rt_timers_free(timers);
        rt_strands_free(strands);
        rt_supervisor_free(supervisor);
        rt_queue_free(queue);
    }
}

static void objects_may_end_while_they_are_collected(void **state)
{
    struct plane plane = make_plane();
    struct sh_thread *thread = NULL;

    (void)state;
    assert_ok(sh_spawn("churn", churn, NULL, &thread, NULL));
    for (unsigned i = 0; i < 200; i++)
        rt_exporter_collect(plane.exporter);
    assert_true(sh_join(thread, SH_NEVER));
    end_plane(&plane);
}

static enum ron_err attempt_exporter(void *context, struct ron_errinfo *reterr)
{
    const struct rt_exporter_options options = {.metrics = context};
    struct rt_exporter *exporter = NULL;
    enum ron_err err = rt_exporter_new(&options, &exporter, reterr);

    rt_exporter_free(exporter);
    return err;
}

static void exporter_survives_failed_allocations(void **state)
{
    struct plane plane = make_plane();

    (void)state;
    assert_int_equal(support_fail_each_allocation(attempt_exporter, plane.metrics, 20), 3);
    end_plane(&plane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_are_collected),
        cmocka_unit_test(lags_of_consumers_are_collected),
        cmocka_unit_test(tasks_are_collected),
        cmocka_unit_test(lanes_are_collected),
        cmocka_unit_test(timers_are_collected),
        cmocka_unit_test(objects_may_end_while_they_are_collected),
        cmocka_unit_test(exporter_survives_failed_allocations),
    };
    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
