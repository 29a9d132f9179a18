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

/* The options of one pick. */
struct options {
    uint16_t pids[2 * SIM_FIBERS_MAX + SIM_NODES_MAX + 1];
    uint32_t count;
    bool stay; /* option 0 is the fiber that ran last: leaving it is a preemption */
};

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

/* Who can run, in the order of the options: the fiber that ran last first, if it may go on. */
static void gather(struct options *options)
{
    uint64_t enabled = 0;
    uint64_t allowed = UINT64_MAX;
    uint32_t first = sim.current == SIM_PID_NONE ? 0 : sim.current;

    options->count = 0;
    options->stay = false;
    for (uint32_t k = 0, slot = first; k < sim.slots_count; k++) {
        const struct sh_thread *thread = &sim.threads[slot];

        if (thread->state == SIM_THREAD_LIVE && sim_enabled(thread)) {
            options->pids[options->count++] = (uint16_t)slot;
            if (slot < 64)
                enabled |= 1ull << slot;
        }
        slot = slot + 1 == sim.slots_count ? 0 : slot + 1;
    }
    if (sim.last != SIM_PID_NONE) {
        bool yields = sim.threads[sim.last].state == SIM_THREAD_LIVE &&
                      sim.threads[sim.last].op == SIM_OP_YIELD;
        if (yields || sim_fair_active())
            sim_fair_step(sim.last, yields, enabled);
    }
    if (sim_fair_active())
        allowed = sim_fair_allowed(enabled);
    if (allowed != UINT64_MAX) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < options->count; i++)
            if (options->pids[i] >= 64 || (allowed >> options->pids[i] & 1) != 0)
                options->pids[kept++] = options->pids[i];
        options->count = kept;
    }
    if (options->count == 0 || options->pids[0] != sim.current)
        return;
    if (sim.threads[sim.current].op != SIM_OP_YIELD) {
        options->stay = true;
    } else { /* a fiber that yields goes last */
        memmove(options->pids, options->pids + 1, (options->count - 1) * sizeof(options->pids[0]));
        options->pids[options->count - 1] = (uint16_t)sim.current;
    }
}

/* True when all that can run has been polling: time must pass. */
static bool only_polling(const struct options *options)
{
    for (uint32_t i = 0; i < options->count; i++)
        if (sim.threads[options->pids[i]].yields_count < SIM_YIELDS_MAX)
            return false;
    return true;
}

static void add_pseudo_options(struct options *options)
{
    uint64_t deadline_ns;

    if (sim.left.early_ticks > 0 && sim_clock_next(&deadline_ns))
        options->pids[options->count++] = SIM_PID_CLOCK;
    if (sim.left.spurious > 0)
        for (uint32_t i = 0; i < sim.slots_count; i++)
            if (sim.threads[i].state == SIM_THREAD_LIVE && sim.threads[i].op == SIM_OP_WAIT)
                options->pids[options->count++] = (uint16_t)(SIM_PID_SPURIOUS + i);
    if (sim.left.crashes > 0)
        for (uint32_t i = 1; i <= sim.nodes_count; i++)
            if (sim.nodes[i].crashable && sim.nodes[i].live_count > 0)
                options->pids[options->count++] = (uint16_t)(SIM_PID_CRASH + i);
}

/* A waiter stops waiting; it still has to take its mutex again. */
static void end_wait(struct sh_thread *thread, bool timed_out)
{
    struct sim_cond *cond = (struct sim_cond *)(uintptr_t)thread->object;

    RON_ASSERT(thread->op == SIM_OP_WAIT);
    RON_ASSERT(cond->waiters_count > 0);
    cond->waiters_count--;
    thread->op = SIM_OP_RELOCK;
    thread->timed_out = timed_out;
}

/* What the chosen pseudo-process does. */
static void perform(uint32_t pid)
{
    sim.last = SIM_PID_NONE;
    if (pid == SIM_PID_CLOCK) {
        sim.left.early_ticks--;
        sim_trace_event("clock", "moves early", NULL);
        (void)sim_clock_advance();
    } else if (pid < SIM_PID_CRASH) {
        struct sh_thread *thread = &sim.threads[pid - SIM_PID_SPURIOUS];
        sim.left.spurious--;
        sim_trace_event(thread->name, "wakes spuriously from",
                        sim_object_name(thread->op, thread->object));
        end_wait(thread, false);
    } else {
        sim.left.crashes--;
        sim_node_crash(pid - SIM_PID_CRASH);
    }
}

/* The fiber to resume for this pid; NULL when the pick changed something but nobody runs. */
static struct sh_thread *take_up(const struct options *options, uint32_t pid)
{
    struct sh_thread *thread;
    bool preempted = options->stay && pid != sim.current;

    if (pid >= SIM_PID_CLOCK) {
        perform(pid);
        return NULL;
    }
    thread = &sim.threads[pid];
    if (preempted && sim.left.preemption_bound != SIM_UNBOUNDED) {
        RON_ASSERT(sim.left.preemption_bound > 0);
        sim.left.preemption_bound--;
    }
    sim_trace_step(thread, preempted);
    sim.current = pid;
    sim.last = pid;
    if (thread->op == SIM_OP_WAIT) { /* others may take the mutex before it does */
        end_wait(thread, true);
        return NULL;
    }
    return thread;
}

/* The next fiber to resume; NULL when the run is over. */
static struct sh_thread *pick(void)
{
    struct options options;

    while (!sim.over) {
        struct sh_thread *thread;
        uint32_t option = 0;

        if (sim.forced_count > 0) {
            thread = sim.forced[--sim.forced_count];
            sim_trace_step(thread, false);
            return thread;
        }
        gather(&options);
        if ((options.count == 0 || only_polling(&options)) && sim_clock_advance())
            continue;
        if (options.count == 0) {
            char text[SIM_MESSAGE_SIZE];
            if (sim.live_count == 0)
                return NULL;
            sim_describe_deadlock(text, sizeof(text));
            sim_fail(SIM_DEADLOCK, "%s", text);
            return NULL;
        }
        if (options.stay && sim.left.preemption_bound == 0)
            options.count = 1;
        add_pseudo_options(&options);
        if (options.count > 1) {
            const struct sim_point point = {
                .kind = SIM_CHOOSE_STEP,
                .options_count = (uint16_t)options.count,
                .current = (uint16_t)(options.stay ? sim.current : SIM_PID_NONE),
                .pids = options.pids,
            };
            option = sim_answer(&point);
            if (sim.over)
                return NULL;
        }
        thread = take_up(&options, options.pids[option]);
        if (thread != NULL)
            return thread;
    }
    return NULL;
}

void sim_loop(void)
{
    for (;;) {
        struct sh_thread *thread = pick();
        if (thread == NULL)
            return;
        step(thread);
    }
}
