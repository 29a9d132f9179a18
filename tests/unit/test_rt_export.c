/*
 * test_rt_export.c - the collector of what queues, buses and tasks count. Method: objects that
 * live, change and end between collections, alone and beside a collecting thread.
 */
#include "support.h"

#include "rt/bus.h"
#include "rt/export.h"
#include "rt/queue.h"
#include "rt/registry.h"

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

/* Objects come and go while another thread collects: TSan and ASan watch. */
static void churn(void *context)
{
    (void)context;
    for (unsigned i = 0; i < 200; i++) {
        struct rt_queue *queue = make_queue("churn", "test");

        fill(queue, 3);
        drain(queue);
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
        cmocka_unit_test(objects_may_end_while_they_are_collected),
        cmocka_unit_test(exporter_survives_failed_allocations),
    };
    rt_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
