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

#include "rt/lock_classes.h"
#include "rt/shim.h"

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
void rt_lock_take(struct rt_lock *lock); /* its rank must be above every lock held */
void rt_lock_drop(struct rt_lock *lock); /* must be held by the caller */
/* For "caller holds the lock" assertions. */
bool rt_lock_held(const struct rt_lock *lock);

void rt_cond_init(struct rt_cond *cond, const char *name);
void rt_cond_fini(struct rt_cond *cond);
/* Release the lock, wait, take it again. The lock must be the only one held. False when the
 * deadline passed without a wake-up; true may be spurious. Call it in a loop on the condition. */
bool rt_cond_wait(struct rt_cond *cond, struct rt_lock *lock, uint64_t deadline_ns);
void rt_cond_signal(struct rt_cond *cond);
void rt_cond_broadcast(struct rt_cond *cond);

/* The first statement of every RON_BLOCKS function. */
void rt_assert_no_lock_held(void);

/* The classes of lock_classes.h, for generated documents. */
struct rt_lock_class {
    const char *name;
    unsigned rank;
};
const struct rt_lock_class *rt_lock_classes(size_t *ret_count);

#endif
