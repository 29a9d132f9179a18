/*
 * test_rt_ready.c - from a task that fails to readiness, log and metrics, and back. Method: the
 * shipped hook on a supervisor with backoffs of microseconds, a log into memory, an exporter.
 */
#include "support.h"

#include "rt/atomic.h"
#include "rt/export.h"
#include "rt/health.h"
#include "rt/registry.h"

static const struct rt_backoff_policy fast = {.base_ns = 1000, .cap_ns = 1000};

static char output[4096]; /* of the log; written by its thread, read after a flush */
static size_t output_size;
static struct rt_health health;
static struct rt_exporter *exporter;
static struct rt_metrics *metrics;
static struct rt_atomic_u32 runs_count, healed;

static enum ron_err output_write(void *context, struct ron_slice lines, struct ron_errinfo *reterr)
{
    (void)context, (void)reterr;
    assert_true(lines.size < sizeof(output) - output_size);
    memcpy(output + output_size, lines.data, lines.size);
    output_size += lines.size;
    output[output_size] = 0;
    return RON_ERR_OK;
}

static enum ron_err no_step(void *context, struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    (void)context, (void)deadline, (void)reterr;
    return RON_ERR_OK;
}

static const struct rt_cause own_causes[] = {{"upstream", RT_PLANE_WRITE, 0, RON_ERR_OK}};
static const struct rt_life_step steps[] = {{"none", no_step, 0}};
static const struct rt_life_role role = {.name = "rewarder",
                                         .steps = steps,
                                         .steps_count = 1,
                                         .drain_ms = 1000,
                                         .causes = {own_causes, 1},
                                         .abort = no_step};

static int setup(void **state)
{
    const struct rt_log_options log_options = {
        .level = RT_LOG_INFO, .ring_size = 1 << 14, .write = output_write};
    const struct rt_supervisor_options options = {.name = "root",
                                                  .owner = "rewarder",
                                                  .tasks_max = 2,
                                                  .backoff = &fast,
                                                  .escalate = rt_health_escalate,
                                                  .escalate_context = &health};
    const struct rt_metric_table tables[] = {{rt_metric_table, RT_METRIC__COUNT}};
    struct rt_exporter_options exporter_options = {0};

    (void)state;
    rt_init();
    output_size = 0;
    rt_atomic_store_u32(&runs_count, 0);
    rt_atomic_store_u32(&healed, 0);
    assert_ok(rt_log_new(&log_options, &health.log, NULL));
    assert_ok(rt_lifecycle_new(&role, 0, NULL, &health.lifecycle, NULL));
    assert_ok(rt_supervisor_new(&options, &health.supervisor, NULL));
    assert_ok(rt_metrics_new(tables, 1, &metrics, NULL));
    exporter_options.metrics = metrics;
    assert_ok(rt_exporter_new(&exporter_options, &exporter, NULL));
    rt_exporter_follow(exporter, "rewarder", health.supervisor);
    rt_exporter_follow_role(exporter, health.lifecycle);
    return 0;
}

static int teardown(void **state) RON_BLOCKS
{
    (void)state;
    rt_exporter_free(exporter);
    rt_metrics_free(metrics);
    assert_ok(rt_supervisor_stop(health.supervisor, rt_deadline_after_ms(20000), NULL));
    rt_supervisor_free(health.supervisor);
    rt_lifecycle_free(health.lifecycle);
    assert_ok(rt_log_stop(health.log, rt_deadline_after_ms(20000), NULL));
    rt_log_free(health.log);
    assert_int_equal(ron_mem_live_count(), 0);
    return 0;
}

static void assert_line(const char *line)
{
    struct ron_buf buf;

    rt_exporter_collect(exporter);
    ron_buf_init(&buf, 1 << 16);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    ron_buf_put_byte(&buf, 0);
    if (strstr((const char *)buf.data, line) == NULL)
        fail_msg("no line %s in\n%s", line, (const char *)buf.data);
    ron_buf_fini(&buf);
}

static unsigned count_in_log(const char *piece) RON_BLOCKS
{
    unsigned count = 0;

    assert_ok(rt_log_flush(health.log, rt_deadline_after_ms(20000), NULL));
    for (const char *at = output; (at = strstr(at, piece)) != NULL; at++)
        count++;
    return count;
}

static enum ron_err fail_until_healed(struct rt_task *task, void *argument) RON_BLOCKS
{
    (void)argument;
    (void)rt_atomic_add_u32(&runs_count, 1);
    if (rt_atomic_load_u32(&healed) == 0)
        return ron_fail(rt_task_reterr(task), RON_ERR_IO, "disk on fire");
    while (!rt_task_sleep(task, RT_DEADLINE_NEVER))
        continue;
    return RON_ERR_CANCELED;
}

static struct rt_task *spawn(const char *name)
{
    const struct rt_task_options options = {
        .kind = "worker", .name = name, .owner = "rewarder", .fn = fail_until_healed};
    struct rt_task *task = NULL;

    assert_ok(rt_task_spawn(health.supervisor, &options, &task, NULL));
    return task;
}

/* Until `count` tasks have given up and wait. */
static void await_down(unsigned count)
{
    struct rt_task_info infos[2];
    unsigned down_count = 0;

    while (down_count < count) {
        size_t tasks_count = rt_supervisor_get_tasks(health.supervisor, infos, 2);

        down_count = 0;
        for (size_t i = 0; i < tasks_count; i++)
            down_count += infos[i].state == RT_TASK_GAVE_UP ? 1 : 0;
        sh_yield();
    }
}

/* covers: REW-C21 (the part of the runtime) */
static void sixth_failure_turns_readiness_off_and_is_logged(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct rt_task *task;

    (void)state;
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"restart_storm\"} 0\n");
    task = spawn("worker 1");
    await_down(1);
    assert_int_equal(rt_lifecycle_ready(health.lifecycle), 0);
    assert_int_equal(count_in_log("a task gave up"), 1);
    assert_int_equal(count_in_log("\"subject\":\"worker 1\""), 1);
    assert_int_equal(count_in_log("disk on fire"), 1);
    assert_int_equal(count_in_log("\"level\":\"error\""), 1);
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"restart_storm\"} 1\n");
    assert_line("tasks_gave_up_total{role=\"rewarder\",kind=\"worker\"} 1\n");
    assert_line("service_restarts_total{role=\"rewarder\",task=\"worker\"} 5\n");
    assert_int_equal(rt_atomic_load_u32(&runs_count), 6);
    assert_ok(rt_lifecycle_admit(health.lifecycle, RT_PLANE_WRITE, NULL)); /* refuses nothing */
    /* The way back. */
    rt_atomic_store_u32(&healed, 1);
    assert_ok(rt_health_revive(&health, task, NULL));
    assert_int_equal(rt_lifecycle_ready(health.lifecycle), RT_PLANES_ALL);
    assert_int_equal(count_in_log("a task runs again"), 1);
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"restart_storm\"} 0\n");
    assert_line("tasks_revived_total{role=\"rewarder\",kind=\"worker\"} 1\n");
    support_assert_error(rt_health_revive(&health, task, &info), &info, RON_ERR_CONFLICT,
                         "worker 1");
    assert_int_equal(count_in_log("a task runs again"), 1);
}

static void readiness_comes_back_with_the_last_task(void **state) RON_BLOCKS
{
    struct rt_task *tasks[2];

    (void)state;
    tasks[0] = spawn("worker 1");
    tasks[1] = spawn("worker 2");
    await_down(2);
    rt_atomic_store_u32(&healed, 1);
    assert_ok(rt_health_revive(&health, tasks[0], NULL));
    assert_int_equal(rt_lifecycle_ready(health.lifecycle), 0); /* one is still down */
    assert_ok(rt_health_revive(&health, tasks[1], NULL));
    assert_int_equal(rt_lifecycle_ready(health.lifecycle), RT_PLANES_ALL);
}

static void every_cause_is_a_metric(void **state) RON_BLOCKS
{
    (void)state;
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"draining\"} 0\n");
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"upstream\"} 0\n");
    assert_true(rt_lifecycle_raise(health.lifecycle, RT_CAUSE_OWN));
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"upstream\"} 1\n");
    assert_true(rt_lifecycle_clear(health.lifecycle, RT_CAUSE_OWN));
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"upstream\"} 0\n");
    assert_true(rt_lifecycle_raise(health.lifecycle, RT_CAUSE_FROZEN));
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"frozen\"} 1\n");
    assert_dies(rt_lifecycle_raise(health.lifecycle, RT_CAUSE_DAMAGED), "has_safe_mode");
    assert_ok(rt_lifecycle_stop(health.lifecycle, NULL, NULL));
    assert_line("readyz_degraded{role=\"rewarder\",cause=\"draining\"} 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sixth_failure_turns_readiness_off_and_is_logged, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(readiness_comes_back_with_the_last_task, setup, teardown),
        cmocka_unit_test_setup_teardown(every_cause_is_a_metric, setup, teardown),
    };
    return cmocka_run_group_tests_name("rt_ready", tests, NULL, NULL);
}
