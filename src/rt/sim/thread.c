/*
 * thread.c - spawn, join, detach, and each fiber's local block.
 */
#include "base/assert.h"
#include "rt/sim/internal.h"

static struct rt_local host_local; /* of the code around the runs */

struct rt_local *sh_local(void)
{
    return sim.self != NULL ? &sim.self->local : &host_local;
}

unsigned sh_memory_owner(void)
{
    return sim.self != NULL ? sim.self->memory_node : 0;
}

void sh_set_memory_owner(unsigned owner)
{
    RON_ASSERT(owner <= sim.nodes_count);
    if (sim.self != NULL)
        sim.self->memory_node = owner;
}

static void free_slot(struct sh_thread *thread)
{
    RON_ASSERT(thread->state == SIM_THREAD_ENDED);
    thread->state = SIM_THREAD_FREE;
}

/* Let a new fiber come to its first point: at once, or when it is picked. */
static void let_start(struct sh_thread *thread)
{
    sim.current = SIM_PID_NONE; /* a new fiber may overtake its spawner without a preemption */
    if (sim.left.fine) {
        sim_pause(SIM_OP_POINT, "spawned");
        return;
    }
    RON_ASSERT(sim.forced_count + 2 <= SIM_FIBERS_MAX);
    sim.forced[sim.forced_count++] = sim.self;
    sim.forced[sim.forced_count++] = thread; /* the last goes first */
    sim_pause(SIM_OP_GO_ON, thread);
}

enum ron_err sh_spawn(const char *name, void (*fn)(void *argument), void *argument,
                      struct sh_thread **ret_thread, struct ron_errinfo *reterr)
{
    struct sh_thread *thread;

    RON_ASSERT(sim.self != NULL);
    RON_ASSERT(name != NULL);
    if (sim.left.spawn_failures > 0 && sim_ask(SIM_CHOOSE_SPAWN, 2, "spawn is refused") != 0) {
        sim.left.spawn_failures--;
        return ron_fail(reterr, RON_ERR_BUSY, "thread %s: refused by the simulator", name);
    }
    thread = sim_thread_new(name, sim.self->node, fn, argument);
    if (thread == NULL)
        return ron_fail(reterr, RON_ERR_BUSY, "thread %s: more than %d fibers", name,
                        (int)SIM_FIBERS_MAX);
    *ret_thread = thread;
    let_start(thread);
    return RON_ERR_OK;
}

bool sh_join(struct sh_thread *thread, uint64_t deadline_ns)
{
    struct sh_thread *self = sim.self;

    RON_ASSERT(self != NULL);
    RON_ASSERT(thread != self);
    RON_ASSERT(thread->state != SIM_THREAD_FREE); /* joined already */
    RON_ASSERT(!thread->detached);
    if (thread->state != SIM_THREAD_ENDED || sim.left.fine) {
        self->deadline_ns = deadline_ns;
        sim_pause(SIM_OP_JOIN, thread);
        self->deadline_ns = SH_NEVER;
    }
    if (thread->state != SIM_THREAD_ENDED)
        return false;
    sim_tsan_acquire(thread);
    free_slot(thread);
    return true;
}

/* Who comes first is the scheduler's to explore. */
void sh_step_back(void)
{
}

void sh_detach(struct sh_thread *thread)
{
    RON_ASSERT(thread->state != SIM_THREAD_FREE);
    RON_ASSERT(!thread->detached);
    thread->detached = true;
    if (thread->state == SIM_THREAD_ENDED)
        free_slot(thread);
}
