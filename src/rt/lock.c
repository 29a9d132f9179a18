/*
 * lock.c - ranked mutexes. See lock.h.
 *
 * The list of held locks is the thread's own (local.h), sorted by rank because ranks only rise;
 * locks may be released in any order.
 */
#include "rt/lock.h"

static const struct rt_lock_class classes[] = {
#define X(name, rank) {#name, rank},
    RON_LOCK_MAP(X)
#undef X
};

const struct rt_lock_class *rt_lock_classes(size_t *ret_count)
{
    *ret_count = RON_ARRAY_COUNT(classes);
    return classes;
}

void rt_lock_init(struct rt_lock *lock, const char *name, unsigned rank)
{
    RON_ASSERT(name != NULL);
    RON_ASSERT(rank > 0);
    lock->name = name;
    lock->rank = rank;
    sh_mutex_init(&lock->mutex, name);
}

void rt_lock_fini(struct rt_lock *lock)
{
    RON_ASSERT(lock->rank > 0); /* initialised, and not yet finished */
    RON_ASSERT(!rt_lock_held(lock));
    sh_mutex_fini(&lock->mutex);
    lock->rank = 0;
}

static unsigned held_index(const struct rt_local *local, const struct rt_lock *lock)
{
    unsigned i = local->held_count;

    while (i > 0 && local->held[i - 1] != lock)
        i--;
    return i; /* one more than the index, 0 if it is not held */
}

bool rt_lock_held(const struct rt_lock *lock)
{
    return held_index(sh_local(), lock) != 0;
}

void rt_lock_forget(struct rt_local *local, const struct rt_lock *lock)
{
    unsigned held_by_caller = held_index(local, lock);

    RON_ASSERT(held_by_caller != 0);
    for (unsigned i = held_by_caller; i < local->held_count; i++)
        local->held[i - 1] = local->held[i];
    local->held_count--;
}

void rt_cond_init(struct rt_cond *cond, const char *name)
{
    sh_cond_init(&cond->cond, name);
}

void rt_cond_fini(struct rt_cond *cond)
{
    sh_cond_fini(&cond->cond);
}

bool rt_cond_wait(struct rt_cond *cond, struct rt_lock *lock, uint64_t deadline_ns)
{
    struct rt_local *local = sh_local();

    /* The held list stays as it is: a waiting thread runs nothing that could look at it. */
    RON_ASSERT(local->held_count == 1);
    RON_ASSERT(local->held[0] == lock);
    return sh_cond_wait(&cond->cond, &lock->mutex, deadline_ns);
}

void rt_cond_signal(struct rt_cond *cond)
{
    sh_cond_signal(&cond->cond);
}

void rt_cond_broadcast(struct rt_cond *cond)
{
    sh_cond_broadcast(&cond->cond);
}
