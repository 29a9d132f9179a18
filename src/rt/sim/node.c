/*
 * node.c - processes that may crash. See sim.h.
 */
#include "base/assert.h"
#include "rt/sim/internal.h"

unsigned sim_node_start(const char *name, bool crashable, void (*fn)(void *), void *argument)
{
    struct sh_thread *thread;
    uint32_t node;

    RON_ASSERT(sim.self != NULL);
    RON_ASSERT(sim.nodes_count < SIM_NODES_MAX);
    node = ++sim.nodes_count;
    sim.nodes[node] = (struct sim_node){.name = name, .crashable = crashable};
    thread = sim_thread_new(name, node, fn, argument);
    RON_ASSERT(thread != NULL);
    thread->detached = true;    /* sim_node_wait is its join */
    sim.current = SIM_PID_NONE; /* as in sh_spawn */
    if (sim.left.fine)
        return node;
    sim.forced[sim.forced_count++] = sim.self;
    sim.forced[sim.forced_count++] = thread;
    sim_pause(SIM_OP_GO_ON, thread);
    return node;
}

bool sim_node_wait(unsigned node)
{
    RON_ASSERT(node >= 1);
    RON_ASSERT(node <= sim.nodes_count);
    RON_ASSERT(sim.self->node != node);
    if (sim.nodes[node].live_count > 0 || sim.left.fine)
        sim_pause(SIM_OP_NODE_WAIT, &sim.nodes[node]);
    RON_ASSERT(sim.nodes[node].live_count == 0);
    sim_tsan_acquire(&sim);
    return sim.nodes[node].crashed;
}

void sim_node_crash(uint32_t node)
{
    RON_ASSERT(sim.self == NULL);
    RON_ASSERT(sim.nodes[node].crashable);
    RON_ASSERT(sim.forced_count == 0);
    sim_trace_event(sim.nodes[node].name, "crashes", NULL);
    sim.nodes[node].crashed = true;
    for (uint32_t i = 0; i < sim.slots_count; i++) {
        struct sh_thread *thread = &sim.threads[i];
        if (thread->state != SIM_THREAD_LIVE || thread->node != node)
            continue;
        if (thread->op == SIM_OP_WAIT) /* the condition may belong to somebody who lives on */
            ((struct sim_cond *)(uintptr_t)thread->object)->waiters_count--;
        sim.self = thread;
        sim_fiber_abandon(&thread->fiber);
        sim.self = NULL;
        sim_thread_ended(thread);
    }
    sim_heap_lose(node);
}

void sim_node_fall(void)
{
    RON_ASSERT(sim.self != NULL);
    RON_ASSERT(sim.nodes[sim.self->node].crashable);
    sim.falling = sim.self->node;
    sim_pause(SIM_OP_POINT, "fall");
    RON_UNREACHABLE(); /* nobody of the node runs again */
}
