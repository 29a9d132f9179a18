/*
 * sync.c - mutexes and conditions of the shim, on fibers.
 *
 * There are no wait lists: a fiber that wants a mutex is simply not enabled while the mutex has an
 * owner, and any of those that want it may be picked next. Waiters of a condition are the fibers
 * whose operation is WAIT on it, ordered by wait_order. So a crash has nothing to take apart.
 */
#include "base/assert.h"
#include "rt/sim/internal.h"

_Static_assert(sizeof(struct sim_mutex) <= sizeof(((struct sh_mutex *)0)->opaque), "fits");
_Static_assert(sizeof(struct sim_cond) <= sizeof(struct sh_cond), "fits");

bool sh_atomic_points;

static struct sim_mutex *mutex_of(struct sh_mutex *mutex)
{
    struct sim_mutex *inner = (struct sim_mutex *)(void *)mutex->opaque;

    RON_ASSERT(inner->magic == SIM_MUTEX_MAGIC);
    return inner;
}

static struct sim_cond *cond_of(struct sh_cond *cond)
{
    struct sim_cond *inner = (struct sim_cond *)(void *)cond->opaque;

    RON_ASSERT(inner->magic == SIM_COND_MAGIC);
    return inner;
}

void sh_mutex_init(struct sh_mutex *mutex, const char *name)
{
    RON_ASSERT(name != NULL);
    *mutex = (struct sh_mutex){0}; /* a state of 0: every lock and unlock comes here */
    *(struct sim_mutex *)(void *)mutex->opaque = (struct sim_mutex){.magic = SIM_MUTEX_MAGIC,
                                                                    .name = name};
}

void sh_mutex_fini(struct sh_mutex *mutex)
{
    struct sim_mutex *inner = mutex_of(mutex);

    RON_ASSERT(inner->owner == 0);
    inner->magic = 0;
}

/* Outside a run there is one thread: a mutex is then only checked, with this as its owner. */
enum { OWNER_HOST = UINT32_MAX };

static uint32_t me(void)
{
    return sim.self == NULL ? (uint32_t)OWNER_HOST : sim.self->slot + 1;
}

static void take(struct sim_mutex *mutex)
{
    RON_ASSERT(mutex->owner == 0);
    mutex->owner = me();
    if (sim.self != NULL)
        sim.self->held_count++;
    sim_tsan_acquire(mutex);
}

static void give(struct sim_mutex *mutex)
{
    RON_ASSERT(mutex->owner == me()); /* unlock by another than the owner */
    sim_tsan_release(mutex);
    mutex->owner = 0;
    if (sim.self == NULL)
        return;
    RON_ASSERT(sim.self->held_count > 0);
    sim.self->held_count--;
}

void sh_mutex_lock_slow(struct sh_mutex *mutex)
{
    struct sim_mutex *inner = mutex_of(mutex);

    RON_ASSERT(inner->owner != me()); /* locked twice by one thread */
    if (sim.self != NULL)
        sim_pause(SIM_OP_LOCK, inner);
    take(inner);
}

void sh_mutex_unlock_slow(struct sh_mutex *mutex)
{
    struct sim_mutex *inner = mutex_of(mutex);

    give(inner);
    if (sim.self != NULL && sim.left.fine)
        sim_pause(SIM_OP_UNLOCKED, inner);
}

void sh_cond_init(struct sh_cond *cond, const char *name)
{
    RON_ASSERT(name != NULL);
    *cond = (struct sh_cond){{0}};
    *(struct sim_cond *)(void *)cond->opaque = (struct sim_cond){.magic = SIM_COND_MAGIC,
                                                                 .name = name};
}

void sh_cond_fini(struct sh_cond *cond)
{
    struct sim_cond *inner = cond_of(cond);

    RON_ASSERT(inner->waiters_count == 0);
    inner->magic = 0;
}

bool sh_cond_wait(struct sh_cond *cond, struct sh_mutex *mutex, uint64_t deadline_ns)
{
    struct sim_cond *inner = cond_of(cond);
    struct sim_mutex *held = mutex_of(mutex);
    struct sh_thread *self = sim.self;

    RON_ASSERT(self != NULL);
    RON_ASSERT(held->owner == me());
    if (sim.left.fine)
        sim_pause(SIM_OP_WAIT_ENTRY, inner);
    give(held);
    self->mutex = held;
    self->deadline_ns = deadline_ns;
    self->wait_order = ++sim.wait_orders_count;
    self->timed_out = false;
    inner->waiters_count++;
    sim_pause(SIM_OP_WAIT, inner);
    RON_ASSERT(self->op == SIM_OP_RELOCK);
    self->mutex = NULL;
    self->deadline_ns = SH_NEVER;
    self->wait_order = 0;
    take(held);
    return !self->timed_out;
}

void sim_end_wait(struct sh_thread *thread, bool timed_out)
{
    struct sim_cond *cond = (struct sim_cond *)(uintptr_t)thread->object;

    RON_ASSERT(thread->op == SIM_OP_WAIT);
    RON_ASSERT(cond->waiters_count > 0);
    cond->waiters_count--;
    thread->op = SIM_OP_RELOCK;
    thread->timed_out = timed_out;
}

/* The waiter with `skip` older ones before it; NULL if there are not so many. */
static struct sh_thread *waiter_of(const struct sim_cond *cond, unsigned skip)
{
    uint64_t after = 0;
    struct sh_thread *found = NULL;

    for (unsigned i = 0; i <= skip; i++) {
        found = NULL;
        for (uint32_t slot = 0; slot < sim.slots_count; slot++) {
            struct sh_thread *thread = &sim.threads[slot];
            if (thread->state != SIM_THREAD_LIVE || thread->op != SIM_OP_WAIT ||
                thread->object != cond || thread->wait_order <= after)
                continue;
            if (found == NULL || thread->wait_order < found->wait_order)
                found = thread;
        }
        if (found == NULL)
            return NULL;
        after = found->wait_order;
    }
    return found;
}

/* Under a lock nobody else can be about to wait, so coarse needs no point there. */
static void announce(enum sim_op op, const struct sim_cond *cond)
{
    if (sim.self != NULL && (sim.left.fine || sim.self->held_count == 0))
        sim_pause(op, cond);
}

void sh_cond_signal(struct sh_cond *cond)
{
    struct sim_cond *inner = cond_of(cond);
    unsigned skip = 0;
    struct sh_thread *thread;

    announce(SIM_OP_SIGNAL, inner);
    if (inner->waiters_count == 0)
        return;
    if (sim.left.wake_choice)
        skip = sim_ask(SIM_CHOOSE_WAKE, inner->waiters_count, "wake a younger waiter");
    thread = waiter_of(inner, skip);
    RON_ASSERT(thread != NULL);
    sim_end_wait(thread, false);
}

void sh_cond_broadcast(struct sh_cond *cond)
{
    struct sim_cond *inner = cond_of(cond);
    struct sh_thread *thread;

    announce(SIM_OP_BROADCAST, inner);
    while ((thread = waiter_of(inner, 0)) != NULL)
        sim_end_wait(thread, false);
    RON_ASSERT(inner->waiters_count == 0);
}

void sh_atomic_point(const void *object)
{
    if (sim.self != NULL)
        sim_pause(SIM_OP_ATOMIC, object);
}
