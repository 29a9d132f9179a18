/*
 * lifecycle.c - a role between SafeMode, the operator and its stop.
 *
 * Nothing is admitted while a cause that refuses it is raised, nor once the stop has begun; what
 * recovers too late does not reopen; the watch tells no story in which a stopping role runs.
 * covers: LED-V19
 */
#include "base/mem.h"
#include "models/support.h"
#include "rt/atomic.h"
#include "rt/health.h"
#include "rt/registry.h"

enum { STEPS = 2 };

struct house {
    struct rt_lifecycle *lifecycle;
    struct rt_atomic_u64 safe;     /* odd from after a raise until before its clear */
    struct rt_atomic_u64 stopping; /* 1 once a step runs */
    struct rt_atomic_u64 steps_count[STEPS];
};

static enum ron_err run_step(struct house *house, unsigned step)
{
    struct rt_life_status status = rt_lifecycle_status(house->lifecycle);
    enum ron_err err = rt_lifecycle_admit(house->lifecycle, RT_PLANE_WRITE, NULL);

    rt_counter_store(&house->stopping, 1);
    RON_ASSERT(err == RON_ERR_DRAINING);
    RON_ASSERT(rt_lifecycle_ready(house->lifecycle) == 0);
    RON_ASSERT(status.state == RT_LIFE_DRAINING || status.state == RT_LIFE_SAFE_MODE);
    RON_ASSERT(status.step == step + 1);
    rt_counter_add(&house->steps_count[step], 1);
    return RON_ERR_OK;
}

static enum ron_err first_step(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr)
{
    (void)deadline, (void)reterr;
    return run_step(context, 0);
}

static enum ron_err last_step(void *context, struct rt_deadline deadline,
                              struct ron_errinfo *reterr)
{
    (void)deadline, (void)reterr;
    return run_step(context, 1);
}

static const struct rt_life_step steps[STEPS] = {{"first", first_step, 0}, {"last", last_step, 0}};
static const struct rt_life_role role = {.name = "role",
                                         .steps = steps,
                                         .steps_count = STEPS,
                                         .drain_ms = 1000,
                                         .has_safe_mode = true,
                                         .abort = first_step};

static void damage(struct house *house)
{
    bool changed = rt_lifecycle_raise(house->lifecycle, RT_CAUSE_DAMAGED);

    RON_ASSERT(changed);
    rt_counter_add(&house->safe, 1);
}

static void repair(struct house *house)
{
    bool changed;

    rt_counter_add(&house->safe, 1);
    changed = rt_lifecycle_clear(house->lifecycle, RT_CAUSE_DAMAGED);
    RON_ASSERT(changed);
}

/* The role's committer fails, the operator repairs. */
static void operator_fn(void *argument)
{
    damage(argument);
    repair(argument);
}

/* One write: not in SafeMode, not once a step has run. */
static void writer_fn(void *argument)
{
    struct house *house = argument;
    uint64_t safe = rt_counter_load(&house->safe);
    uint64_t stopping = rt_counter_load(&house->stopping);
    enum ron_err err = rt_lifecycle_admit(house->lifecycle, RT_PLANE_WRITE, NULL);
    enum ron_err read_err = rt_lifecycle_admit(house->lifecycle, RT_PLANE_READ, NULL);

    RON_ASSERT(err == RON_ERR_OK || err == RON_ERR_SAFE_MODE || err == RON_ERR_RECOVERING ||
               err == RON_ERR_DRAINING);
    RON_ASSERT(err == RON_ERR_DRAINING || stopping == 0);
    if (safe % 2 == 1 && rt_counter_load(&house->safe) == safe)
        RON_ASSERT(err != RON_ERR_OK);
    RON_ASSERT(read_err == RON_ERR_OK); /* reads go on, whatever happens */
}

static void stopper_fn(void *argument) RON_BLOCKS
{
    struct house *house = argument;
    struct rt_life_status status;

    model_must(rt_lifecycle_stop(house->lifecycle, NULL, NULL));
    status = rt_lifecycle_status(house->lifecycle);
    RON_ASSERT(status.state == RT_LIFE_STOPPED);
    RON_ASSERT(rt_counter_load(&house->steps_count[STEPS - 1]) == 1);
}

/* Sees the states go by: after the stop has begun none is Running, and Stopped is the last. */
static void follower_fn(void *argument) RON_BLOCKS
{
    struct house *house = argument;
    struct rt_watch *watch = rt_lifecycle_watch(house->lifecycle);
    struct rt_life_status status;
    uint64_t version = rt_watch_get(watch, &status);
    bool draining = false;

    for (;;) {
        bool safe = (status.raised & RT_CAUSES_SAFE_MODE) != 0;

        RON_ASSERT(!draining || (status.raised & RT_CAUSE_BIT(RT_CAUSE_DRAINING)) != 0);
        draining = (status.raised & RT_CAUSE_BIT(RT_CAUSE_DRAINING)) != 0;
        RON_ASSERT((status.state == RT_LIFE_RUNNING) == (!draining && !safe));
        RON_ASSERT(status.state != RT_LIFE_SAFE_MODE || draining || safe);
        if (status.state == RT_LIFE_STOPPED)
            return;
        model_must(rt_watch_wait(watch, version, RT_DEADLINE_NEVER, &status, &version, NULL));
    }
}

static struct house *begin(uint32_t raised)
{
    struct house *house = model_alloc(sizeof(*house));

    rt_init();
    model_must(rt_lifecycle_new(&role, raised, house, &house->lifecycle, NULL));
    return house;
}

static void end(struct house *house)
{
    struct rt_life_status status = rt_lifecycle_status(house->lifecycle);

    RON_ASSERT(status.state == RT_LIFE_STOPPED);
    for (unsigned i = 0; i < STEPS; i++)
        RON_ASSERT(rt_counter_load(&house->steps_count[i]) == 1);
    rt_lifecycle_free(house->lifecycle);
    ron_mem_free(house);
}

static void run_all(struct house *house, void (*const *fns)(void *), const char *const *names,
                    unsigned count)
{
    struct sh_thread *threads[3];

    for (unsigned i = 0; i < count; i++)
        threads[i] = model_spawn(names[i], fns[i], house);
    for (unsigned i = 0; i < count; i++)
        model_join(threads[i]);
}

/* ---- damage, repair and stop race ---- */

static void life_race_fn(void *argument)
{
    static void (*const fns[])(void *) = {operator_fn, writer_fn, stopper_fn};
    static const char *const names[] = {"operator", "writer", "stopper"};
    struct house *house = begin(0);

    (void)argument;
    run_all(house, fns, names, 3);
    end(house);
}

/* ---- the same, as the watch tells it ---- */

static void life_told_fn(void *argument)
{
    static void (*const fns[])(void *) = {operator_fn, follower_fn, stopper_fn};
    static const char *const names[] = {"operator", "follower", "stopper"};
    struct house *house = begin(0);

    (void)argument;
    run_all(house, fns, names, 3);
    end(house);
}

/* ---- two stops, of which one runs the steps ---- */

static void life_stops_fn(void *argument)
{
    static void (*const fns[])(void *) = {operator_fn, stopper_fn, stopper_fn};
    static const char *const names[] = {"operator", "stopper 1", "stopper 2"};
    struct house *house = begin(0);

    (void)argument;
    run_all(house, fns, names, 3);
    end(house);
}

/* ---- born in SafeMode: the replay ends, damage is found or not, the operator has a word ---- */

/* The role: its replay is through, perhaps with damage found. */
static void replayer_fn(void *argument)
{
    struct house *house = argument;
    bool changed;

    if (sim_choose(2, "damage found") == 1)
        damage(house);
    changed = rt_lifecycle_clear(house->lifecycle, RT_CAUSE_RECOVERING);
    RON_ASSERT(changed);
}

static void life_born_fn(void *argument) RON_BLOCKS
{
    static void (*const fns[])(void *) = {replayer_fn, writer_fn};
    static const char *const names[] = {"replayer", "writer"};
    struct house *house = begin(RT_CAUSE_BIT(RT_CAUSE_RECOVERING));
    struct rt_life_status status = rt_lifecycle_status(house->lifecycle);
    bool damaged;
    enum ron_err err = rt_lifecycle_admit(house->lifecycle, RT_PLANE_WRITE, NULL);

    (void)argument;
    RON_ASSERT(status.state == RT_LIFE_SAFE_MODE);
    RON_ASSERT(err == RON_ERR_RECOVERING);
    run_all(house, fns, names, 2);
    damaged = rt_counter_load(&house->safe) == 1;
    status = rt_lifecycle_status(house->lifecycle);
    RON_ASSERT(status.state == (damaged ? RT_LIFE_SAFE_MODE : RT_LIFE_RUNNING));
    if (damaged)
        repair(house);
    err = rt_lifecycle_admit(house->lifecycle, RT_PLANE_WRITE, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    sim_outcome(damaged);
    stopper_fn(house);
    end(house);
}

/* ---- one task is revived while another gives up: readiness is right in the end ---- */

struct pair {
    struct rt_health health;
    struct rt_task *tasks[2];
    struct rt_atomic_u64 runs_count[2];
};

static enum ron_err fail_six_times(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct rt_atomic_u64 *runs_count = argument;

    rt_counter_add(runs_count, 1);
    if (rt_counter_load(runs_count) <= RT_RESTARTS_MAX + 1)
        return RON_ERR_IO;
    return rt_task_sleep(task, RT_DEADLINE_NEVER) ? RON_ERR_CANCELED : RON_ERR_OK;
}

static void revive(struct pair *pair, unsigned i)
{
    while (rt_health_revive(&pair->health, pair->tasks[i], NULL) != RON_ERR_OK)
        sh_yield(); /* it has not given up yet */
}

static void reviver_fn(void *argument)
{
    revive(argument, 0);
}

static void ready_pair_fn(void *argument) RON_BLOCKS
{
    /* No jitter: both fail at the same moments. */
    static const struct rt_backoff_policy backoff = {.base_ns = 1, .cap_ns = 1};
    struct pair *pair = model_alloc(sizeof(*pair));
    const struct rt_supervisor_options options = {.name = "supervisor",
                                                  .owner = "model",
                                                  .tasks_max = 2,
                                                  .backoff = &backoff,
                                                  .escalate = rt_health_escalate,
                                                  .escalate_context = &pair->health};
    struct rt_task_options task = {
        .kind = "worker", .name = "worker", .owner = "model", .fn = fail_six_times};
    struct sh_thread *reviver;

    (void)argument;
    rt_init();
    model_must(rt_lifecycle_new(&role, 0, pair, &pair->health.lifecycle, NULL));
    model_must(rt_supervisor_new(&options, &pair->health.supervisor, NULL));
    for (unsigned i = 0; i < 2; i++) {
        task.argument = &pair->runs_count[i];
        model_must(rt_task_spawn(pair->health.supervisor, &task, &pair->tasks[i], NULL));
    }
    reviver = model_spawn("reviver", reviver_fn, pair);
    model_join(reviver);
    sh_sleep_until(rt_now_ns() + RT_NS_PER_MS); /* the other has given up, too */
    RON_ASSERT(rt_supervisor_down_count(pair->health.supervisor) == 1);
    RON_ASSERT(rt_lifecycle_ready(pair->health.lifecycle) == 0);
    revive(pair, 1);
    RON_ASSERT(rt_lifecycle_ready(pair->health.lifecycle) == RT_PLANES_ALL);
    model_must(rt_supervisor_stop(pair->health.supervisor, RT_DEADLINE_NEVER, NULL));
    rt_supervisor_free(pair->health.supervisor);
    rt_lifecycle_free(pair->health.lifecycle);
    ron_mem_free(pair);
}

static const struct model_case pair_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}, .cache = true},
    {.config = {.preemption_bound = 1, .fine = 1}, .cache = true},
};
static const struct model_case cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = NONE}, .cache = true},
    {.config = {.preemption_bound = 2, .spurious = 1}, .cache = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
};
MODEL(life_race, "damage, repair, a write and a stop: nothing is admitted in SafeMode or Draining",
      life_race_fn, NULL, cases);
MODEL(life_told, "the same seen through the watch", life_told_fn, NULL, cases);
MODEL(life_stops, "damage, repair and two stops: the steps run once", life_stops_fn, NULL, cases);
MODEL(life_born, "born in SafeMode: leaves it by itself, or by the operator if damage was found",
      life_born_fn, NULL, cases);
MODEL(ready_pair, "a task is revived while another gives up: readiness tells of the other",
      ready_pair_fn, NULL, pair_cases);
