/*
 * test_sim_explore.c - search, seeds, schedules as text, shrinking. Method: counts that can be
 * computed by hand, and failures that must come back from their printed schedule.
 */
#include "support.h"

#include <string.h>

#include "base/assert.h"
#include "rt/sim/explore.h"

/* For calls inside a run that have effects besides their answer. */
static void must(bool answer)
{
    RON_ASSERT(answer);
}

static struct sh_thread *spawn(const char *name, void (*fn)(void *), void *argument)
{
    struct sh_thread *thread = NULL;

    must(sh_spawn(name, fn, argument, &thread, NULL) == RON_ERR_OK);
    return thread;
}

static struct sim_plan plan_of(const char *name, sim_model_fn *model)
{
    return (struct sim_plan){.model_name = name, .model = model, .config = sim_config_plain()};
}

/* ---- counts ---- */

struct steps {
    unsigned fibers_count;
    unsigned steps_each;
};

static void stepping_fn(void *argument)
{
    const struct steps *steps = argument;

    for (unsigned i = 0; i < steps->steps_each; i++)
        sh_atomic_point(steps);
}

static void steps_fn(void *argument)
{
    const struct steps *steps = argument;
    struct sh_thread *threads[4];

    for (unsigned i = 0; i < steps->fibers_count; i++)
        threads[i] = spawn("fiber", stepping_fn, argument);
    for (unsigned i = 0; i < steps->fibers_count; i++)
        must(sh_join(threads[i], SH_NEVER));
}

static void assert_schedules(struct steps steps, uint32_t bound, uint64_t count)
{
    struct sim_plan plan = plan_of("steps", steps_fn);
    struct sim_report report;

    plan.argument = &steps;
    plan.config.preemption_bound = bound;
    assert_ok(sim_explore(&plan, &report, NULL));
    assert_int_equal(report.failed_run, 0);
    assert_true(report.complete);
    assert_int_equal(report.runs_count, count);
    sim_report_fini(&report);
}

static void schedules_are_counted_exactly(void **state)
{
    (void)state;
    assert_schedules((struct steps){3, 4}, SIM_UNBOUNDED, 34650);
    assert_schedules((struct steps){3, 4}, 0, 6);
    assert_schedules((struct steps){2, 2}, SIM_UNBOUNDED, 6);
    assert_schedules((struct steps){2, 2}, 0, 2);
    assert_schedules((struct steps){2, 2}, 1, 4); /* aabb bbaa, and abba baab */
    assert_schedules((struct steps){2, 2}, 2, 6); /* and abab baba */
    assert_schedules((struct steps){4, 2}, SIM_UNBOUNDED, 2520);
    assert_schedules((struct steps){4, 2}, 0, 24);
    assert_schedules((struct steps){1, 9}, SIM_UNBOUNDED, 1);
}

/* ---- what costs a preemption ---- */

static void overtaken_fn(void *argument)
{
    struct sh_thread *thread = spawn("child", stepping_fn, argument);

    stepping_fn(argument);
    must(sh_join(thread, SH_NEVER));
    stepping_fn(argument);
}

static void forced_steps_cost_nothing(void **state)
{
    static const uint64_t expected[] = {2, 4, 6};
    struct steps steps = {1, 2};

    (void)state;
    for (uint32_t i = 0; i <= 3; i++) {
        struct sim_plan plan = plan_of("overtaken", overtaken_fn);
        struct sim_report report;

        plan.argument = &steps;
        plan.config.preemption_bound = i == 3 ? 0 : i;
        plan.config.fine = i == 3;
        assert_ok(sim_explore(&plan, &report, NULL));
        assert_int_equal(report.runs_count, i == 3 ? expected[0] : expected[i]);
        sim_report_fini(&report);
    }
}

/* ---- polling ends ---- */

struct flag {
    struct sh_mutex mutex;
    bool raised;
};

static void poller_fn(void *argument)
{
    struct flag *flag = argument;
    bool raised = false;

    while (!raised) {
        sh_mutex_lock(&flag->mutex);
        raised = flag->raised;
        sh_mutex_unlock(&flag->mutex);
        if (!raised)
            sh_yield();
    }
}

static void polling_fn(void *argument)
{
    struct flag *flag = ron_mem_alloc(sizeof(*flag));
    struct sh_thread *threads[2];

    (void)argument;
    sh_mutex_init(&flag->mutex, "flag");
    threads[0] = spawn("poller", poller_fn, flag);
    threads[1] = spawn("poller", poller_fn, flag);
    sh_mutex_lock(&flag->mutex);
    flag->raised = true;
    sh_mutex_unlock(&flag->mutex);
    for (int i = 0; i < 2; i++)
        must(sh_join(threads[i], SH_NEVER));
    sh_mutex_fini(&flag->mutex);
    ron_mem_free(flag);
}

static void pollers_do_not_starve_the_others(void **state)
{
    struct sim_plan plan = plan_of("polling", polling_fn);
    struct sim_report report;

    (void)state;
    assert_ok(sim_explore(&plan, &report, NULL));
    assert_int_equal(report.failed_run, 0);
    assert_true(report.complete);
    assert_true(report.runs_count > 10);
    sim_report_fini(&report);
}

/* ---- the state cache ---- */

struct fold {
    struct sh_mutex mutex;
    struct sh_cond cond;
    unsigned value;
};

static void folder_fn(void *argument)
{
    struct fold *fold = argument;
    unsigned seen = 0; /* on the stack only */

    for (unsigned i = 1; i <= 2; i++) {
        sh_mutex_lock(&fold->mutex);
        if (!sh_cond_wait(&fold->cond, &fold->mutex, sh_now_ns() + i * 1000))
            fold->value = (fold->value * 5 + i + seen) % 23;
        else
            fold->value = (fold->value * 3 + 1 + seen) % 23;
        seen = fold->value;
        fold->value %= 3;
        sh_cond_signal(&fold->cond);
        sh_mutex_unlock(&fold->mutex);
    }
}

static void fold_fn(void *argument)
{
    struct fold *fold = ron_mem_alloc(sizeof(*fold));
    struct sh_thread *threads[2];
    unsigned drawn = sim_choose(3, "kept on the stack only");

    (void)argument;
    sh_mutex_init(&fold->mutex, "fold");
    sh_cond_init(&fold->cond, "fold");
    threads[0] = spawn("one", folder_fn, fold);
    threads[1] = spawn("two", folder_fn, fold);
    for (int i = 0; i < 2; i++)
        must(sh_join(threads[i], SH_NEVER));
    sim_outcome(fold->value * 3 + drawn);
    sh_cond_fini(&fold->cond);
    sh_mutex_fini(&fold->mutex);
    ron_mem_free(fold);
}

static void cache_finds_what_plain_search_finds(void **state)
{
    const struct sim_config variants[] = {
        {.preemption_bound = SIM_UNBOUNDED},
        {.preemption_bound = 0, .early_ticks = 1},
        {.preemption_bound = 1, .early_ticks = 1, .spurious = 1},
        {.preemption_bound = 2, .spurious = 2},
        {.preemption_bound = SIM_UNBOUNDED, .early_ticks = 2, .wake_choice = 1},
        {.preemption_bound = SIM_UNBOUNDED, .spurious = 1, .late_ticks = 1},
        {.preemption_bound = 1, .fine = 1, .spurious = 1},
    };

    (void)state;
    if (!sim_state_key_possible())
        return;
    for (size_t i = 0; i < RON_ARRAY_COUNT(variants); i++) {
        struct sim_plan plan = plan_of("fold", fold_fn);
        struct sim_report plain;
        struct sim_report cached;

        plan.config = variants[i];
        plan.config.steps_max = 500;
        assert_ok(sim_explore(&plan, &plain, NULL));
        plan.cache = true;
        assert_ok(sim_explore(&plan, &cached, NULL));
        assert_int_equal(plain.failed_run, 0);
        assert_int_equal(cached.failed_run, 0);
        assert_true(plain.complete);
        assert_true(cached.complete);
        assert_true(cached.runs_count <= plain.runs_count);
        assert_int_equal(cached.outcomes_count, plain.outcomes_count);
        assert_true(cached.outcomes_sum == plain.outcomes_sum);
        sim_report_fini(&plain);
        sim_report_fini(&cached);
    }
}

static void search_stops_at_its_limit_and_says_so(void **state)
{
    struct steps steps = {3, 4};
    struct sim_plan plan = plan_of("steps", steps_fn);
    struct sim_report report;

    (void)state;
    plan.argument = &steps;
    plan.runs_max = 1000;
    assert_ok(sim_explore(&plan, &report, NULL));
    assert_int_equal(report.runs_count, 1000);
    assert_false(report.complete);
    assert_int_equal(report.failed_run, 0);
    sim_report_fini(&report);
}

/* ---- failures come back ---- */

struct race {
    struct sh_mutex mutex;
    unsigned value;
    unsigned extra_points; /* another version of the model */
};

static void increment_fn(void *argument)
{
    struct race *race = argument;

    for (int i = 0; i < 2; i++) {
        unsigned seen;

        sh_mutex_lock(&race->mutex);
        seen = race->value;
        sh_mutex_unlock(&race->mutex);
        sh_mutex_lock(&race->mutex);
        race->value = seen + 1;
        sh_mutex_unlock(&race->mutex);
        for (unsigned k = 0; k < race->extra_points; k++)
            sim_point("new in this version");
    }
}

static void race_fn(void *argument)
{
    struct race *race = ron_mem_alloc(sizeof(*race));
    struct sh_thread *threads[2];

    race->extra_points = *(const unsigned *)argument;
    sh_mutex_init(&race->mutex, "race");
    threads[0] = spawn("left", increment_fn, race);
    threads[1] = spawn("right", increment_fn, race);
    for (int i = 0; i < 2; i++)
        must(sh_join(threads[i], SH_NEVER));
    RON_ASSERT(race->value == 4);
    sh_mutex_fini(&race->mutex);
    ron_mem_free(race);
}

static void assert_replays(const struct sim_plan *plan, const struct sim_report *found)
{
    struct sim_plan changed = *plan;
    unsigned extra_points = 1;
    struct sim_schedule schedule;
    struct sim_report report;
    char text[1024] = "";

    assert_true(found->schedule.size < sizeof(text));
    memcpy(text, found->schedule.data, found->schedule.size);
    assert_ok(sim_schedule_parse(text, &schedule, NULL));
    assert_string_equal(schedule.model_name, "race");
    assert_memory_equal(&schedule.config, &plan->config, sizeof(schedule.config));
    assert_ok(sim_replay_schedule(plan, &schedule, &report, NULL));
    assert_int_equal(report.result.verdict, SIM_ASSERTION);
    assert_string_equal(report.result.message, found->result.message);
    assert_true(ron_slice_equal(ron_buf_slice(&report.trace), ron_buf_slice(&found->trace)));
    sim_report_fini(&report);
    changed.argument = &extra_points;
    assert_ok(sim_replay_schedule(&changed, &schedule, &report, NULL));
    assert_int_equal(report.result.verdict, SIM_DIVERGED);
    sim_report_fini(&report);
    sim_schedule_fini(&schedule);
}

static unsigned choices_in(const struct sim_report *report)
{
    unsigned count = 0;

    for (size_t i = 0; i < report->schedule.size; i++)
        count += report->schedule.data[i] == '=';
    return count;
}

static void failure_replays_from_its_schedule(void **state)
{
    static const enum sim_strategy strategies[] = {SIM_STRATEGY_DFS, SIM_STRATEGY_RANDOM,
                                                   SIM_STRATEGY_PCT};
    unsigned extra_points = 0;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(strategies); i++) {
        struct sim_plan plan = plan_of("race", race_fn);
        struct sim_report report;

        plan.argument = &extra_points;
        plan.strategy = strategies[i];
        plan.seed = 7;
        assert_ok(sim_explore(&plan, &report, NULL));
        assert_true(report.failed_run > 0);
        assert_int_equal(report.result.verdict, SIM_ASSERTION);
        assert_non_null(strstr(report.result.message, "race->value == 4, in main"));
        assert_true(choices_in(&report) <= 2); /* one switch too many, shrunk to the least */
        ron_buf_put_byte(&report.trace, '\0');
        assert_non_null(strstr((const char *)report.trace.data, "PREEMPT"));
        report.trace.size--;
        assert_replays(&plan, &report);
        sim_report_fini(&report);
    }
}

static void same_seed_gives_the_same_runs(void **state)
{
    struct steps steps = {3, 4};
    struct sim_config config = sim_config_plain();
    struct sim_job job = {.config = &config, .model = steps_fn, .argument = &steps};
    uint64_t hashes[2][20];
    unsigned different = 0;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 20; i++) {
            struct sim_random random;
            struct sim_result result;
            sim_random_init(&random, sim_seed_mix(99, i), 64);
            sim_run(&job, &random.source, &result);
            assert_int_equal(result.verdict, SIM_OK);
            hashes[round][i] = result.trace_hash;
        }
    }
    assert_memory_equal(hashes[0], hashes[1], sizeof(hashes[0]));
    for (unsigned i = 1; i < 20; i++)
        different += hashes[0][i] != hashes[0][0];
    assert_int_equal(different, 19);
}

/* ---- models that are not deterministic ---- */

static unsigned outside; /* what a model must not have */

static void forgetful_fn(void *argument)
{
    (void)argument;
    if (outside++ % 2 == 0)
        (void)sim_choose(2, "only every other time");
}

static void quiet_fn(void *argument)
{
    (void)argument;
    sim_outcome(outside++);
}

static void state_outside_is_noticed(void **state)
{
    sim_model_fn *const bad[] = {forgetful_fn, quiet_fn};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        struct sim_plan plan = plan_of("bad", bad[i]);
        struct sim_report report;

        outside = 0;
        assert_ok(sim_explore(&plan, &report, NULL));
        assert_int_equal(report.failed_run, 1);
        assert_int_equal(report.result.verdict, SIM_DIVERGED);
        assert_non_null(strstr(report.result.message, "outside"));
        sim_report_fini(&report);
    }
}

/* ---- faults are choices ---- */

static void faulty_fn(void *argument)
{
    void *first = ron_mem_alloc(8);
    void *second = ron_mem_alloc(8);

    (void)argument;
    sim_outcome((uint64_t)(first == NULL) << 1 | (second == NULL));
    ron_mem_free(first);
    ron_mem_free(second);
}

static void allocation_failures_stay_in_their_budget(void **state)
{
    (void)state;
    for (uint32_t budget = 0; budget <= 3; budget++) {
        static const uint64_t expected[] = {1, 3, 4, 4};
        struct sim_plan plan = plan_of("faulty", faulty_fn);
        struct sim_report report;

        plan.config.alloc_failures = budget;
        assert_ok(sim_explore(&plan, &report, NULL));
        assert_true(report.complete);
        assert_int_equal(report.runs_count, expected[budget]);
        assert_int_equal(report.outcomes_count, expected[budget]);
        sim_report_fini(&report);
    }
}

/* ---- schedules as text ---- */

static void schedule_text_goes_both_ways(void **state)
{
    struct sim_config config = sim_config_plain();
    const uint16_t choices[] = {0, 3, 0, 0, 65535};
    struct sim_schedule schedule;
    struct ron_buf buf;

    (void)state;
    config.preemption_bound = 2;
    config.fine = 1;
    config.faults = 7;
    config.steps_max = 5000;
    config.random_seed = UINT64_MAX;
    ron_buf_init(&buf, 1000);
    sim_schedule_print("m", &config, 0xabcdef0123456789ull, choices, 5, &buf);
    ron_buf_put_byte(&buf, '\0');
    assert_string_equal((const char *)buf.data,
                        "sim1:m:g1,b2,t0,s0,c0,f7,n5000,r18446744073709551615:#abcdef01:"
                        "1=3,4=65535");
    assert_ok(sim_schedule_parse((const char *)buf.data, &schedule, NULL));
    assert_memory_equal(&schedule.config, &config, sizeof(config));
    assert_int_equal(schedule.hash, 0xabcdef01);
    assert_int_equal(schedule.choices_count, 5);
    assert_memory_equal(schedule.choices, choices, sizeof(choices));
    sim_schedule_fini(&schedule);
    ron_buf_fini(&buf);
}

static void malformed_schedules_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "sim2:m:g0,b-:#1:",
        "sim1:m",
        "sim1::g0:#1:",
        "sim1:m:x0:#1:",
        "sim1:m:g0,:#1:",
        "sim1:m:g4294967296:#1:",
        "sim1:m:g:#1:",
        "sim1:m:n0:#1:",
        "sim1:m:g0:1:",
        "sim1:m:g0:#123456789:",
        "sim1:m:g0:#xyz:",
        "sim1:m:g0:#1",
        "sim1:m:g0:#1:1",
        "sim1:m:g0:#1:1=",
        "sim1:m:g0:#1:1=65536",
        "sim1:m:g0:#1:2=1,1=1",
        "sim1:m:g0:#1:1=1,1=1",
        "sim1:m:g0:#1:99999999=1",
        "sim1:m:g0:#1:1=1;2=1",
        "sim1:a-name-that-is-longer-than-sixty-four-characters-is-no-name-of-a-model:g0:#1:",
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad); i++) {
        struct sim_schedule schedule;
        struct ron_errinfo info = {0};

        support_assert_error(sim_schedule_parse(bad[i], &schedule, &info), &info, RON_ERR_MALFORMED,
                             "schedule");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_counted_exactly),
        cmocka_unit_test(forced_steps_cost_nothing),
        cmocka_unit_test(pollers_do_not_starve_the_others),
        cmocka_unit_test(cache_finds_what_plain_search_finds),
        cmocka_unit_test(search_stops_at_its_limit_and_says_so),
        cmocka_unit_test(failure_replays_from_its_schedule),
        cmocka_unit_test(same_seed_gives_the_same_runs),
        cmocka_unit_test(state_outside_is_noticed),
        cmocka_unit_test(allocation_failures_stay_in_their_budget),
        cmocka_unit_test(schedule_text_goes_both_ways),
        cmocka_unit_test(malformed_schedules_are_refused),
    };
    return cmocka_run_group_tests_name("sim_explore", tests, NULL, NULL);
}
