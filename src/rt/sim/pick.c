/*
 * pick.c - what may happen next, in order, and which of it does. See internal.h.
 *
 * Option 0 is the fiber that ran last, if it can go on and does not yield; then the others in turn;
 * then the pseudo-processes: early clock, spurious wake-ups, crashes.
 */
#include <string.h>

#include "base/assert.h"
#include "rt/sim/internal.h"

/* The options of one pick. */
struct options {
    uint16_t pids[2 * SIM_FIBERS_MAX + SIM_NODES_MAX + 1];
    uint32_t count;
    bool stay; /* option 0 is the fiber that ran last: leaving it is a preemption */
};

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
        sim.last = SIM_PID_NONE; /* once per step, also if the clock moves and we look again */
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
        sim_end_wait(thread, false);
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
        sim_end_wait(thread, true);
        return NULL;
    }
    return thread;
}

/* The next fiber to resume; NULL when the run is over. */
struct sh_thread *sim_pick(void)
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
        if (sim.falling != 0) {
            const uint32_t node = sim.falling;

            sim.falling = 0;
            sim.last = SIM_PID_NONE;
            sim_node_crash(node);
            continue;
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
