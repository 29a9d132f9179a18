/*
 * run.c - the frame around one run: everything back to zero, the verdict at the end. See sim.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/sim/internal.h"

static uint16_t *choices; /* of this run, or the last */
static uint32_t choices_count;
static uint32_t choices_capacity;

struct sim_config sim_config_plain(void)
{
    return (struct sim_config){.preemption_bound = SIM_UNBOUNDED, .steps_max = SIM_STEPS_MAX};
}

const char *sim_verdict_name(enum sim_verdict verdict)
{
    static const char *const names[] = {"ok",       "abandoned", "assertion", "deadlock",
                                        "livelock", "leak",      "diverged"};

    RON_ASSERT((unsigned)verdict < RON_ARRAY_COUNT(names));
    return names[verdict];
}

void sim_choices_append(uint16_t choice)
{
    if (choices_count == choices_capacity) {
        uint32_t capacity = choices_capacity == 0 ? 1024 : choices_capacity * 2;
        uint16_t *resized = ron_mem_resize(choices, capacity * sizeof(choices[0]));
        RON_ASSERT(resized != NULL);
        choices = resized;
        choices_capacity = capacity;
    }
    choices[choices_count++] = choice;
}

const uint16_t *sim_last_choices(uint32_t *ret_count)
{
    *ret_count = choices_count;
    return choices;
}

/* A failed assertion of the model ends the run; one of the simulator itself ends the process. */
static void on_assert(const struct ron_assert_failure *failure)
{
    struct sh_thread *self = sim.self;

    if (self == NULL && !sim.checking) {
        (void)fprintf(stderr, "simulator: assertion failed: %s:%d: %s(): %s\n", failure->file,
                      failure->line, failure->function, failure->expression);
        sim_print_dying("assertion in the simulator");
        abort();
    }
    sim_fail(SIM_ASSERTION, "%s:%d: %s(): %s, in %s", failure->file, failure->line,
             failure->function, failure->expression, self != NULL ? self->name : "check");
    if (self != NULL)
        sim_fiber_leave(&self->fiber);
    sim_tsan_ignore_reads(false);
    _longjmp(sim.host, 1);
}

static void reset(const struct sim_job *job, struct sim_source *source, struct sim_result *result)
{
    *result = (struct sim_result){.trace_hash = job->config->random_seed};
    sim.job = job;
    sim.source = source;
    sim.left = *job->config;
    sim.result = result;
    sim.self = NULL;
    sim.over = false;
    sim.slots_count = 0;
    sim.live_count = 0;
    sim.current = SIM_PID_NONE;
    sim.last = SIM_PID_NONE;
    sim.random_state = job->config->random_seed;
    sim.wait_orders_count = 0;
    sim.request.pending = false;
    sim.forced_count = 0;
    sim.check = NULL;
    sim.checking = false;
    sim.spared_failures = 0;
    sim.falling = 0;
    sim.nodes_count = 0;
    memset(sim.nodes, 0, sizeof(sim.nodes));
    sim.nodes[0].name = "world";
    choices_count = 0;
    sim_clock_reset();
    sim_fair_reset();
    sim_heap_reset();
}

static void check_leftovers(void)
{
    uint32_t live_count = sim_heap_live_count();

    for (uint32_t i = 0; i < sim.slots_count; i++) {
        const struct sh_thread *thread = &sim.threads[i];
        if (thread->state == SIM_THREAD_ENDED && thread->slot != 0 &&
            !sim.nodes[thread->node].crashed)
            sim_fail(SIM_LEAK, "thread %s was neither joined nor detached", thread->name);
    }
    if (live_count > 0)
        sim_fail(SIM_LEAK, "%u allocations were not freed", live_count);
}

static void finish(void)
{
    for (uint32_t i = 0; i < sim.slots_count; i++) {
        sim.self = &sim.threads[i];
        sim_fiber_abandon(&sim.threads[i].fiber);
        sim.threads[i].state = SIM_THREAD_FREE;
    }
    sim.self = NULL;
    sim.result->left = sim.left;
    sim.result->left.alloc_failures += sim.spared_failures;
    sim_heap_install(false);
    sh_atomic_points = false;
    ron_assert_set_handler(NULL);
    sim.job = NULL;
}

void sim_run(const struct sim_job *job, struct sim_source *source, struct sim_result *ret_result)
{
    RON_ASSERT(sim.job == NULL);
    RON_ASSERT(job->config->steps_max > 0);
    reset(job, source, ret_result);
    ron_assert_set_handler(on_assert);
    sim_heap_install(true);
    sh_atomic_points = true;
    if (_setjmp(sim.host) == 0) {
        struct sh_thread *first = sim_thread_new("main", 0, job->model, job->argument);
        RON_ASSERT(first != NULL);
        sim.current = first->slot;
        sim.forced[sim.forced_count++] = first;
        sim_loop();
        if (!sim.over)
            check_leftovers();
    }
    finish();
}

void sim_point(const char *tag)
{
    sim_pause(SIM_OP_POINT, tag);
    sim_tsan_acquire(&sim); /* disks and networks are no memory of one process: never a race */
}

unsigned sim_choose(unsigned options_count, const char *tag)
{
    return sim_ask(SIM_CHOOSE_DATA, options_count, tag);
}

void sim_set_check(void (*check)(void *context), void *context)
{
    RON_ASSERT(sim.self != NULL);
    sim.check = check;
    sim.check_context = context;
}

void sim_outcome(uint64_t value)
{
    RON_ASSERT(sim.self != NULL);
    sim.result->outcome = sim_hash_word(sim.result->outcome, value);
}

void sim_end_run(void)
{
    RON_ASSERT(sim.self != NULL);
    sim_fail(SIM_OK, "ended by the model");
    sim_fiber_leave(&sim.self->fiber);
}
