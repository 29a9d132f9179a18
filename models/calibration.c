/*
 * calibration.c - the explorer measured against things whose answer is known.
 *
 * Three fibers of four steps have 12!/(4!)^3 = 34,650 orders, 3! = 6 without preemption. A two-lock
 * deadlock, a lost wake-up and a missed broadcast must be found, and must be absent from the
 * correct twin, whose search must be complete.
 */
#include "base/mem.h"
#include "models/support.h"

/* ---- steps_3x4: nothing but steps ---- */

static void four_steps(void *argument)
{
    (void)argument;
    for (int i = 0; i < 4; i++)
        sim_point("step");
}

static void steps_3x4_fn(void *argument)
{
    static const char *const names[] = {"a", "b", "c"};
    struct sh_thread *threads[3];

    (void)argument;
    for (int i = 0; i < 3; i++)
        threads[i] = model_spawn(names[i], four_steps, NULL);
    for (int i = 0; i < 3; i++)
        model_join(threads[i]);
}

static const struct model_case steps_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 34650},
    {.config = {.preemption_bound = 0}, .schedules_count = 6},
    /* One preemption: 6 orders of whole fibers, or one of them cut in two with the rest between. */
    {.config = {.preemption_bound = 1}, .schedules_count = 6 + 54},
};
MODEL(steps_3x4, "three independent fibers of four steps: 34,650 and 6 schedules", steps_3x4_fn,
      NULL, steps_cases);

/* ---- fold: many paths to few states ---- */

struct fold {
    struct sh_mutex mutex;
    unsigned value;
};

struct folder {
    struct fold *fold;
    unsigned addend;
};

static void folder_fn(void *argument)
{
    const struct folder *folder = argument;

    for (int i = 0; i < 3; i++) {
        sh_mutex_lock(&folder->fold->mutex);
        folder->fold->value = (folder->fold->value * 3 + folder->addend) % 97;
        sh_mutex_unlock(&folder->fold->mutex);
    }
}

static void fold_fn(void *argument)
{
    static const char *const names[] = {"a", "b", "c"};
    struct fold *fold = model_alloc(sizeof(*fold));
    struct folder folders[3];
    struct sh_thread *threads[3];

    (void)argument;
    sh_mutex_init(&fold->mutex, "fold");
    for (unsigned i = 0; i < 3; i++) {
        folders[i] = (struct folder){fold, i + 1};
        threads[i] = model_spawn(names[i], folder_fn, &folders[i]);
    }
    for (int i = 0; i < 3; i++)
        model_join(threads[i]);
    sim_outcome(fold->value);
    sh_mutex_fini(&fold->mutex);
    ron_mem_free(fold);
}

static const struct model_case fold_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1680}, /* 9!/(3!)^3 */
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = 0}, .compare = true},
    {.config = {.preemption_bound = 1}, .compare = true},
    {.config = {.preemption_bound = 2}, .compare = true},
    {.config = {.preemption_bound = 3}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .compare = true},
};
MODEL(fold, "three fibers fold numbers in any order: few of many paths differ", fold_fn, NULL,
      fold_cases);

/* ---- two_locks: taken in opposite orders ---- */

struct two_locks {
    struct sh_mutex first;
    struct sh_mutex second;
    unsigned counter;
    bool opposite;
};

static void up(struct two_locks *locks, struct sh_mutex *outer, struct sh_mutex *inner)
{
    sh_mutex_lock(outer);
    sh_mutex_lock(inner);
    locks->counter++;
    sh_mutex_unlock(inner);
    sh_mutex_unlock(outer);
}

static void first_then_second(void *argument)
{
    struct two_locks *locks = argument;

    up(locks, &locks->first, &locks->second);
}

static void second_then_first(void *argument)
{
    struct two_locks *locks = argument;

    if (locks->opposite)
        up(locks, &locks->second, &locks->first);
    else
        up(locks, &locks->first, &locks->second);
}

static void two_locks_fn(void *argument)
{
    struct two_locks *locks = model_alloc(sizeof(*locks));
    struct sh_thread *left;
    struct sh_thread *right;

    locks->opposite = argument == PLANTED;
    sh_mutex_init(&locks->first, "first");
    sh_mutex_init(&locks->second, "second");
    left = model_spawn("left", first_then_second, locks);
    right = model_spawn("right", second_then_first, locks);
    model_join(left);
    model_join(right);
    RON_ASSERT(locks->counter == 2);
    sh_mutex_fini(&locks->first);
    sh_mutex_fini(&locks->second);
    ron_mem_free(locks);
}

static const struct model_case clean_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE}, .compare = true},
    {.config = {.preemption_bound = 2, .fine = 1}, .compare = true},
    {.config = {.preemption_bound = 2}},
    {.config = {.preemption_bound = 2, .fine = 1}, .cache = true},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
};
static const struct model_case deadlock_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE}, .cache = true, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = 2}, .compare = true},
    {.config = {.preemption_bound = 2}, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_PCT, .expected = SIM_DEADLOCK},
};
static const struct model_case two_locks_planted_cases[] = {
    {.config = {.preemption_bound = 0}}, /* without preemption it cannot happen */
    {.config = {.preemption_bound = 1},
     .expected = SIM_DEADLOCK,
     .message = "left: lock second (held by right); right: lock first (held by left)"},
    {.config = {.preemption_bound = 2}, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE}, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE}, .cache = true, .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = 2}, .compare = true},
    {.config = {.preemption_bound = NONE},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_DEADLOCK},
    {.config = {.preemption_bound = NONE}, .strategy = SIM_STRATEGY_PCT, .expected = SIM_DEADLOCK},
};
MODEL(two_locks, "two fibers take two locks in the same order", two_locks_fn, NULL, clean_cases);
MODEL(two_locks_planted, "two fibers take two locks in opposite orders: deadlock", two_locks_fn,
      PLANTED, two_locks_planted_cases);

/* ---- gate: waiters until somebody opens ---- */

struct gate {
    struct sh_mutex mutex;
    struct sh_cond opened;
    bool open;
    bool look_outside; /* planted: the look and the wait are not one critical section */
    bool signal_once;  /* planted: one waiter is woken, two wait */
    unsigned passed_count;
};

static void pass(void *argument)
{
    struct gate *gate = argument;

    sh_mutex_lock(&gate->mutex);
    if (gate->look_outside) {
        bool open = gate->open;
        sh_mutex_unlock(&gate->mutex);
        sh_mutex_lock(&gate->mutex);
        if (!open)
            (void)sh_cond_wait(&gate->opened, &gate->mutex, SH_NEVER);
    } else {
        while (!gate->open)
            (void)sh_cond_wait(&gate->opened, &gate->mutex, SH_NEVER);
    }
    gate->passed_count++;
    sh_mutex_unlock(&gate->mutex);
}

static void open_gate(void *argument)
{
    struct gate *gate = argument;

    sh_mutex_lock(&gate->mutex);
    gate->open = true;
    if (gate->signal_once)
        sh_cond_signal(&gate->opened);
    else
        sh_cond_broadcast(&gate->opened);
    sh_mutex_unlock(&gate->mutex);
}

static void run_gate(unsigned waiters_count, bool look_outside, bool signal_once)
{
    static const char *const names[] = {"waiter 1", "waiter 2"};
    struct gate *gate = model_alloc(sizeof(*gate));
    struct sh_thread *threads[3];

    gate->look_outside = look_outside;
    gate->signal_once = signal_once;
    sh_mutex_init(&gate->mutex, "gate");
    sh_cond_init(&gate->opened, "opened");
    for (unsigned i = 0; i < waiters_count; i++)
        threads[i] = model_spawn(names[i], pass, gate);
    threads[waiters_count] = model_spawn("opener", open_gate, gate);
    for (unsigned i = 0; i <= waiters_count; i++)
        model_join(threads[i]);
    RON_ASSERT(gate->passed_count == waiters_count);
    sim_outcome(gate->passed_count);
    sh_cond_fini(&gate->opened);
    sh_mutex_fini(&gate->mutex);
    ron_mem_free(gate);
}

static void lost_wakeup_fn(void *argument)
{
    run_gate(1, argument == PLANTED, false);
}

static void broadcast_fn(void *argument)
{
    run_gate(2, false, argument == PLANTED);
}

MODEL(wakeup, "a waiter that looks and waits under one lock", lost_wakeup_fn, NULL, clean_cases);
MODEL(wakeup_planted, "a waiter that looks, unlocks, and then waits: lost wake-up", lost_wakeup_fn,
      PLANTED, deadlock_cases);
MODEL(broadcast, "two waiters, one broadcast", broadcast_fn, NULL, clean_cases);
MODEL(broadcast_planted, "two waiters, one signal: one sleeps for ever", broadcast_fn, PLANTED,
      deadlock_cases);

/* ---- race: a counter without its lock ---- */

struct counter {
    struct sh_mutex mutex;
    unsigned value;
    bool unlocked; /* planted */
};

static void count_fn(void *argument)
{
    struct counter *counter = argument;

    sh_mutex_lock(&counter->mutex);
    if (!counter->unlocked)
        counter->value++;
    sh_mutex_unlock(&counter->mutex);
    if (counter->unlocked)
        counter->value++;
}

static void race_fn(void *argument)
{
    struct counter *counter = model_alloc(sizeof(*counter));
    struct sh_thread *left;
    struct sh_thread *right;

    counter->unlocked = argument == PLANTED;
    sh_mutex_init(&counter->mutex, "counter");
    left = model_spawn("left", count_fn, counter);
    right = model_spawn("right", count_fn, counter);
    model_join(left);
    model_join(right);
    RON_ASSERT(counter->value == 2);
    sh_mutex_fini(&counter->mutex);
    ron_mem_free(counter);
}

static const struct model_case race_cases[] = {
    {.config = {.preemption_bound = NONE}},
};
static const struct model_case race_planted_cases[] = {
    {.config = {.preemption_bound = 0}, .race = true},
    {.config = {.preemption_bound = NONE}, .race = true},
};
MODEL(race, "a counter under its lock", race_fn, NULL, race_cases);
MODEL(race_planted, "a counter beside its lock: no schedule shows it, TSan does", race_fn, PLANTED,
      race_planted_cases);
