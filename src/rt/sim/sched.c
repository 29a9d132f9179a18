/*
 * sched.c - the host's loop: who can run, who is picked, one step. See internal.h.
 *
 * Coarse granularity runs the start of a fiber and the end of a join at once, without a choice:
 * sound for code without data races (TSan's business), and far fewer schedules. Such forced steps
 * leave nobody current: whoever runs next costs nothing, and no preemption is hidden.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

struct sim sim;

void sim_fail(enum sim_verdict verdict, const char *format, ...)
{
    va_list args;

    if (sim.over)
        return;
    sim.over = true;
    sim.result->verdict = verdict;
    va_start(args, format);
    (void)vsnprintf(sim.result->message, sizeof(sim.result->message), format, args);
    va_end(args);
}

void sim_pause(enum sim_op op, const void *object)
{
    struct sh_thread *self = sim.self;

    RON_ASSERT(self != NULL);
    self->op = op;
    self->object = object;
    sim_tsan_release(&sim); /* to the world: see sim_point, sim_node_wait */
    sim_fiber_pause(&self->fiber);
}

unsigned sim_ask(enum sim_choice_kind kind, unsigned options_count, const char *tag)
{
    RON_ASSERT(options_count >= 1);
    RON_ASSERT(options_count <= UINT16_MAX);
    if (options_count == 1)
        return 0;
    sim.request = (struct sim_request){true, kind, options_count, tag, 0};
    sim_pause(SIM_OP_GO_ON, tag);
    return sim.request.answer;
}

static bool due(const struct sh_thread *thread)
{
    return thread->deadline_ns <= sim.now_ns;
}

bool sim_enabled(const struct sh_thread *thread)
{
    switch (thread->op) {
    case SIM_OP_LOCK:
        return ((const struct sim_mutex *)thread->object)->owner == 0;
    case SIM_OP_RELOCK:
        return thread->mutex->owner == 0;
    case SIM_OP_WAIT:
    case SIM_OP_SLEEP:
        return due(thread);
    case SIM_OP_JOIN:
        return ((const struct sh_thread *)thread->object)->state == SIM_THREAD_ENDED || due(thread);
    case SIM_OP_NODE_WAIT:
        return ((const struct sim_node *)thread->object)->live_count == 0;
    case SIM_OP_START:
    case SIM_OP_GO_ON:
    case SIM_OP_UNLOCKED:
    case SIM_OP_WAIT_ENTRY:
    case SIM_OP_SIGNAL:
    case SIM_OP_BROADCAST:
    case SIM_OP_ATOMIC:
    case SIM_OP_YIELD:
    case SIM_OP_POINT:
        return true;
    }
    return true;
}

static void thread_main(void *argument)
{
    struct sh_thread *self = argument;

    sim_tsan_acquire(self);
    self->fn(self->argument);
    RON_ASSERT(self->held_count == 0); /* ended while holding a mutex */
    sim_tsan_release(self);
    sim_tsan_release(&sim);
}

struct sh_thread *sim_thread_new(const char *name, uint32_t node, void (*fn)(void *),
                                 void *argument)
{
    struct sim_fiber fiber;
    struct sh_thread *thread;
    uint32_t slot = 0;

    while (slot < sim.slots_count && sim.threads[slot].state != SIM_THREAD_FREE)
        slot++;
    if (slot == SIM_FIBERS_MAX)
        return NULL;
    if (slot == sim.slots_count)
        sim.slots_count++;
    thread = &sim.threads[slot];
    fiber = thread->fiber; /* keeps its stack */
    *thread = (struct sh_thread){.fiber = fiber,
                                 .name = name,
                                 .fn = fn,
                                 .argument = argument,
                                 .state = SIM_THREAD_LIVE,
                                 .op = SIM_OP_START,
                                 .slot = slot,
                                 .node = node,
                                 .memory_node = node,
                                 .deadline_ns = SH_NEVER};
    sim_fiber_start(&thread->fiber, slot, sim.job->hash_states, thread_main, thread);
    sim.live_count++;
    sim.nodes[node].live_count++;
    sim_tsan_release(thread);
    return thread;
}

/* Host: the fiber is gone, by its end or its node's. */
void sim_thread_ended(struct sh_thread *thread)
{
    struct sim_node *node = &sim.nodes[thread->node];

    RON_ASSERT(thread->state == SIM_THREAD_LIVE);
    RON_ASSERT(sim.live_count > 0);
    RON_ASSERT(node->live_count > 0);
    thread->state = thread->detached ? SIM_THREAD_FREE : SIM_THREAD_ENDED;
    sim.live_count--;
    node->live_count--;
    if (sim.current == thread->slot)
        sim.current = SIM_PID_NONE;
    if (sim.job->config->fine)
        return;
    for (uint32_t i = 0; i < sim.slots_count; i++) {
        struct sh_thread *waiter = &sim.threads[i];
        bool joins = waiter->op == SIM_OP_JOIN && waiter->object == thread;
        bool waits = waiter->op == SIM_OP_NODE_WAIT && waiter->object == node;

        if (waiter->state != SIM_THREAD_LIVE || !(joins || (waits && node->live_count == 0)))
            continue;
        if (node->crashed && waiter->node == thread->node)
            continue; /* about to vanish as well */
        sim.forced[sim.forced_count++] = waiter;
        sim.current = SIM_PID_NONE; /* whoever is left current by a forced step leaves for free */
    }
}

unsigned sim_answer(const struct sim_point *point)
{
    int option = sim.source->choose(sim.source, point);
    uint64_t hash = sim.result->trace_hash;

    if (option < 0) {
        sim_fail(SIM_ABANDONED, "abandoned by the source");
        return 0;
    }
    RON_ASSERT((unsigned)option < point->options_count);
    hash = sim_hash_word(hash, (uint64_t)point->kind << 32 | (uint64_t)point->options_count << 16 |
                                   (unsigned)option);
    if (point->pids != NULL)
        for (uint32_t i = 0; i < point->options_count; i++)
            hash = sim_hash_word(hash, point->pids[i]);
    sim.result->trace_hash = hash;
    sim_choices_append((uint16_t)option);
    sim.result->choices_count++;
    return (unsigned)option;
}

static void answer_request(void)
{
    struct sim_request *request = &sim.request;
    const struct sim_point point = {
        .kind = request->kind,
        .options_count = (uint16_t)request->options_count,
        .current = (uint16_t)sim.current,
        .tag = request->tag,
    };

    RON_ASSERT(request->options_count >= 2);
    request->answer = sim_answer(&point);
    request->pending = false;
    if (request->answer != 0)
        sim_trace_event("choice", request->tag, NULL);
}

static void count_yield(struct sh_thread *thread)
{
    if (thread->op == SIM_OP_YIELD && thread->yields_count < SIM_YIELDS_MAX)
        thread->yields_count++;
    else if (thread->op == SIM_OP_WAIT || thread->op == SIM_OP_SLEEP || thread->op == SIM_OP_JOIN)
        thread->yields_count = 0;
}

static void step(struct sh_thread *thread)
{
    RON_ASSERT(thread->state == SIM_THREAD_LIVE);
    sim.result->steps_count++;
    for (;;) {
        sim.self = thread;
        sim_fiber_resume(&thread->fiber);
        sim.self = NULL;
        if (sim.over || !sim.request.pending)
            break;
        answer_request();
        if (sim.over)
            break;
    }
    count_yield(thread);
    if (!thread->fiber.live)
        sim_thread_ended(thread);
    if (!sim.over && sim.result->steps_count >= sim.job->config->steps_max)
        sim_fail(SIM_LIVELOCK, "no end after %u steps; last was %s", sim.result->steps_count,
                 thread->name);
    if (!sim.over && sim.check != NULL) {
        sim.checking = true;
        sim_tsan_ignore_reads(true); /* the check looks at everything from between two steps */
        sim.check(sim.check_context);
        sim_tsan_ignore_reads(false);
        sim.checking = false;
    }
}

void sim_loop(void)
{
    for (;;) {
        struct sh_thread *thread = sim_pick();
        if (thread == NULL)
            return;
        step(thread);
    }
}
