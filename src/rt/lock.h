/*
 * lock.h - ranked mutexes and their conditions.
 *
 * A thread takes locks in rising rank only, so no cycle of waiting can exist; it holds none while
 * it waits for anything but a condition; and it never unlocks what it did not lock. clang proves
 * what it can (lock_classes.h); these functions assert the rest at run time, in production too.
 *
 * Each module wraps them for its class, and calls only the wrappers:
 *
 *     static void queue_lock(struct rt_queue *q) RON_LOCKS(queue) { rt_lock_take(&q->lock); }
 *     static void queue_unlock(struct rt_queue *q) RON_UNLOCKS(queue) { rt_lock_drop(&q->lock); }
 *
 * Copy out under the lock, unlock, then act: no callback runs under a lock.
 */
#ifndef RON_RT_LOCK_H
#define RON_RT_LOCK_H

#include "base/assert.h"
#include "rt/local.h"
#include "rt/lock_classes.h"

struct rt_lock {
    struct sh_mutex mutex;
    const char *name;
    unsigned rank;
};
struct rt_cond {
    struct sh_cond cond;
};

/* `name` is borrowed for the life of the lock; `rank` is RON_RANK_class. */
void rt_lock_init(struct rt_lock *lock, const char *name, unsigned rank);
void rt_lock_fini(struct rt_lock *lock); /* must be free */
/* For "caller holds the lock" assertions. */
bool rt_lock_held(const struct rt_lock *lock);

/* Its rank must be above every lock held. Inline, like the drop: these are most of a short call. */
static RON_HOT_INLINE void rt_lock_take(struct rt_lock *lock)
{
    struct rt_local *local = sh_local();
    const unsigned held_count = local->held_count;

    RON_ASSERT(lock->rank > 0);
    RON_ASSERT(held_count < RT_HELD_LOCKS_MAX);
    if (RON_UNLIKELY(held_count > 0)) {
        const struct rt_lock *last = local->held[held_count - 1];
        RON_ASSERT(lock->rank > last->rank); /* lock order; the rank table is lock_classes.h */
    }
    sh_mutex_lock(&lock->mutex);
    local->held[held_count] = lock;
    local->held_count = held_count + 1;
}

/* Take a lock that is not the last one taken, or not held at all, off the list. */
void rt_lock_forget(struct rt_local *local, const struct rt_lock *lock) RON_COLD;

/* Must be held by the caller. */
static RON_HOT_INLINE void rt_lock_drop(struct rt_lock *lock)
{
    struct rt_local *local = sh_local();
    const unsigned last = local->held_count - 1; /* beyond the list if nothing is held */

    if (RON_LIKELY(last < RT_HELD_LOCKS_MAX) && RON_LIKELY(local->held[last] == lock))
        local->held_count = last;
    else
        rt_lock_forget(local, lock);
    sh_mutex_unlock(&lock->mutex);
}

void rt_cond_init(struct rt_cond *cond, const char *name);
void rt_cond_fini(struct rt_cond *cond);
/* Release the lock, wait, take it again. The lock must be the only one held. False when the
 * deadline passed without a wake-up; true may be spurious. Call it in a loop on the condition. */
bool rt_cond_wait(struct rt_cond *cond, struct rt_lock *lock, uint64_t deadline_ns);
void rt_cond_signal(struct rt_cond *cond);
void rt_cond_broadcast(struct rt_cond *cond);

/* The first statement of every RON_BLOCKS function. */
static RON_HOT_INLINE void rt_assert_no_lock_held(void)
{
    unsigned locks_held_count = sh_local()->held_count;

    RON_ASSERT(locks_held_count == 0);
}

/* The classes of lock_classes.h, for generated documents. */
struct rt_lock_class {
    const char *name;
    unsigned rank;
};
const struct rt_lock_class *rt_lock_classes(size_t *ret_count);

#endif
