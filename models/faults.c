/*
 * faults.c - what the world may refuse: spurious wake-ups, memory, threads, and named fault sites.
 */
#include "base/mem.h"
#include "models/support.h"

/* ---- spurious: `if` where `while` belongs ---- */

struct slot {
    struct sh_mutex mutex;
    struct sh_cond filled_cond;
    bool filled;
    bool wait_once; /* planted */
};

static void filler_fn(void *argument)
{
    struct slot *slot = argument;

    sh_mutex_lock(&slot->mutex);
    slot->filled = true;
    sh_cond_signal(&slot->filled_cond);
    sh_mutex_unlock(&slot->mutex);
}

static void spurious_fn(void *argument)
{
    struct slot *slot = model_alloc(sizeof(*slot));
    struct sh_thread *filler;

    slot->wait_once = argument == PLANTED;
    sh_mutex_init(&slot->mutex, "slot");
    sh_cond_init(&slot->filled_cond, "filled");
    filler = model_spawn("filler", filler_fn, slot);
    sh_mutex_lock(&slot->mutex);
    if (slot->wait_once) {
        if (!slot->filled)
            (void)sh_cond_wait(&slot->filled_cond, &slot->mutex, SH_NEVER);
    } else {
        while (!slot->filled)
            (void)sh_cond_wait(&slot->filled_cond, &slot->mutex, SH_NEVER);
    }
    RON_ASSERT(slot->filled);
    sh_mutex_unlock(&slot->mutex);
    model_join(filler);
    sh_cond_fini(&slot->filled_cond);
    sh_mutex_fini(&slot->mutex);
    ron_mem_free(slot);
}

static const struct model_case spurious_cases[] = {
    {.config = {.preemption_bound = NONE, .spurious = 2}},
    {.config = {.preemption_bound = NONE, .spurious = 2}, .compare = true},
    {.config = {.preemption_bound = 2, .spurious = 2, .fine = 1}},
    {.config = {.preemption_bound = NONE, .spurious = 2}, .strategy = SIM_STRATEGY_RANDOM},
};
static const struct model_case spurious_planted_cases[] = {
    {.config = {.preemption_bound = NONE}}, /* right as long as nothing spurious happens */
    {.config = {.preemption_bound = NONE, .spurious = 1}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = 0, .spurious = 1}, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .spurious = 1}, .cache = true, .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .spurious = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_ASSERTION},
    {.config = {.preemption_bound = NONE, .spurious = 1},
     .strategy = SIM_STRATEGY_PCT,
     .expected = SIM_ASSERTION},
};
MODEL(spurious, "a wait in a loop survives spurious wake-ups", spurious_fn, NULL, spurious_cases);
MODEL(spurious_planted, "a wait under `if` does not", spurious_fn, PLANTED, spurious_planted_cases);

/* ---- construction: three allocations and two threads, any of which may fail ---- */

struct machine {
    unsigned *parts[2];
    struct sh_thread *threads[2];
    unsigned stepped[2];
};

static void part_fn(void *argument)
{
    unsigned *stepped = argument;

    *stepped += 1;
}

static struct machine *machine_free(struct machine *machine)
{
    if (machine == NULL)
        return NULL;
    for (int i = 0; i < 2; i++) {
        if (machine->threads[i] != NULL)
            model_join(machine->threads[i]);
        ron_mem_free(machine->parts[i]);
    }
    return ron_mem_free(machine);
}

static enum ron_err machine_new(bool forgetful, struct machine **ret_machine)
{
    struct machine *machine = ron_mem_alloc(sizeof(*machine));

    if (machine == NULL)
        return RON_ERR_NO_MEMORY;
    for (int i = 0; i < 2; i++) {
        enum ron_err err = RON_ERR_OK;

        machine->parts[i] = ron_mem_alloc(sizeof(unsigned));
        if (machine->parts[i] == NULL)
            err = RON_ERR_NO_MEMORY;
        else
            err = sh_spawn("part", part_fn, &machine->stepped[i], &machine->threads[i], NULL);
        if (err == RON_ERR_OK)
            continue;
        if (!forgetful || i == 0)
            machine_free(machine); /* planted: the second step's failure forgets the first */
        return err;
    }
    *ret_machine = machine;
    return RON_ERR_OK;
}

static void construction_fn(void *argument)
{
    struct machine *machine = NULL;
    enum ron_err err = machine_new(argument == PLANTED, &machine);

    sim_outcome((uint64_t)err);
    if (err == RON_ERR_OK)
        machine_free(machine);
}

static const struct model_case construction_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    /* No failure, or one of three allocations. */
    {.config = {.preemption_bound = NONE, .alloc_failures = 1}, .schedules_count = 4},
    {.config = {.preemption_bound = NONE, .spawn_failures = 1}, .schedules_count = 3},
    {.config = {.preemption_bound = NONE, .alloc_failures = 1, .spawn_failures = 1}, .cache = true},
};
static const struct model_case construction_planted_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .alloc_failures = 1},
     .expected = SIM_LEAK,
     .message = "neither joined"},
    {.config = {.preemption_bound = NONE, .spawn_failures = 1}, .expected = SIM_LEAK},
    {.config = {.preemption_bound = NONE, .alloc_failures = 1},
     .strategy = SIM_STRATEGY_RANDOM,
     .expected = SIM_LEAK},
};
MODEL(construction, "a constructor that undoes what it did when a step fails", construction_fn,
      NULL, construction_cases);
MODEL(construction_planted, "a constructor that forgets", construction_fn, PLANTED,
      construction_planted_cases);

/* ---- sites: sh_choose within its budget ---- */

static void sites_fn(void *argument)
{
    unsigned faults_count = 0;

    for (int i = 0; i < 3; i++)
        faults_count += sh_choose(3, "disk error") != 0;
    sim_outcome(faults_count);
    RON_ASSERT(argument != PLANTED || faults_count < 2);
}

static const struct model_case sites_cases[] = {
    {.config = {.preemption_bound = NONE}, .schedules_count = 1},
    {.config = {.preemption_bound = NONE, .faults = 1}, .schedules_count = 1 + 3 * 2},
    {.config = {.preemption_bound = NONE, .faults = 3}, .schedules_count = 27},
};
static const struct model_case sites_planted_cases[] = {
    {.config = {.preemption_bound = NONE, .faults = 1}},
    {.config = {.preemption_bound = NONE, .faults = 2}, .expected = SIM_ASSERTION},
};
MODEL(sites, "three fault sites of three answers each, within the budget", sites_fn, NULL,
      sites_cases);
MODEL(sites_planted, "code that does not survive two faults", sites_fn, PLANTED,
      sites_planted_cases);
