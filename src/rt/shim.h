/*
 * shim.h - the seam between the runtime and what runs it: OS threads or the simulator.
 *
 * Everything in src/rt above this header is compiled once; the object files are linked either with
 * src/rt/thread (production) or with src/rt/sim (fibers on one OS thread, virtual time, a choice at
 * every scheduling point). So what the explorer proves is the code that ships. Only src/rt includes
 * this header; services use queue.h, task.h and the rest.
 *
 * Times are nanoseconds of the monotonic clock; SH_NEVER is no deadline. No function here is a
 * cancellation point; waking on shutdown is the business of the layer above.
 */
#ifndef RON_RT_SHIM_H
#define RON_RT_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define SH_NEVER UINT64_MAX

/* Storage for either back end; the contents are its own. Of a mutex only these two states are known
 * here, for the sake of the usual case. The simulator keeps the state 0, so that every call reaches
 * it; on threads 0 is a mutex that is not initialised or finished. */
enum { SH_MUTEX_FREE = 1, SH_MUTEX_HELD = 2 };
struct sh_mutex {
    _Atomic uint32_t state;
    _Alignas(8) unsigned char opaque[40];
};
struct sh_cond {
    _Alignas(8) unsigned char opaque[40];
};
struct sh_thread; /* one spawned thread or fiber, until joined */

/* The per-thread block of the layer above (local.h), one for each thread or fiber, zeroed at birth.
 * The back end stores it and never looks inside. A function runs on one thread or fiber from its
 * first line to its last, so the compiler need not ask twice in one (`const`). */
struct rt_local;
struct rt_local *sh_local(void) __attribute__((const));

/* `name` is borrowed for the life of the object and appears in traces. */
void sh_mutex_init(struct sh_mutex *mutex, const char *name);
void sh_mutex_fini(struct sh_mutex *mutex);      /* must be unlocked */
void sh_mutex_lock_slow(struct sh_mutex *mutex); /* the back end's part of the next two */
void sh_mutex_unlock_slow(struct sh_mutex *mutex);

static RON_HOT_INLINE void sh_mutex_lock(struct sh_mutex *mutex)
{
    uint32_t state = SH_MUTEX_FREE;

    if (RON_UNLIKELY(!atomic_compare_exchange_strong_explicit(
            &mutex->state, &state, SH_MUTEX_HELD, memory_order_acquire, memory_order_relaxed)))
        sh_mutex_lock_slow(mutex);
}

static RON_HOT_INLINE void sh_mutex_unlock(struct sh_mutex *mutex)
{
    uint32_t state = SH_MUTEX_HELD;

    if (RON_UNLIKELY(!atomic_compare_exchange_strong_explicit(
            &mutex->state, &state, SH_MUTEX_FREE, memory_order_release, memory_order_relaxed)))
        sh_mutex_unlock_slow(mutex);
}

void sh_cond_init(struct sh_cond *cond, const char *name);
void sh_cond_fini(struct sh_cond *cond); /* nobody may be waiting */
/* Release the mutex, wait, take it again. False when the deadline passed without a wake-up; a
 * wake-up may be spurious. A deadline in the past still releases and retakes the mutex. */
bool sh_cond_wait(struct sh_cond *cond, struct sh_mutex *mutex, uint64_t deadline_ns);
/* The mutex of the waiters must be held. A signal wakes at least one; those who wait on a condition
 * that is signalled must all wait for the same thing. */
void sh_cond_signal(struct sh_cond *cond);
void sh_cond_broadcast(struct sh_cond *cond);

/* Start fn(argument) on a new thread. RON_ERR_BUSY when the system refuses, RON_ERR_NO_MEMORY. The
 * caller owns *ret_thread and must join it, or give it up with sh_detach. */
enum ron_err sh_spawn(const char *name, void (*fn)(void *argument), void *argument,
                      struct sh_thread **ret_thread, struct ron_errinfo *reterr) RON_MUST_USE;
/* Wait for its end. True: it has ended and *thread is freed. False: the deadline passed. */
bool sh_join(struct sh_thread *thread, uint64_t deadline_ns) RON_MUST_USE;
void sh_detach(struct sh_thread *thread);
/* From now on the calling thread gets the processor after others, where the system allows it. */
void sh_step_back(void);

uint64_t sh_now_ns(void);                  /* monotonic */
uint64_t sh_utc_ms(void);                  /* wall clock; may jump */
void sh_sleep_until(uint64_t deadline_ns); /* used by the timer task and tests only */
void sh_yield(void);                       /* every polling loop calls it */
uint64_t sh_random(void);                  /* not for keys; the seed decides it in the simulator */

/* A fault site: 0 means "no fault" and is what production always gets. The simulator may answer
 * 1..options_count-1, within its fault budget. `tag` names the site in traces. */
unsigned sh_choose(unsigned options_count, const char *tag);

/* Whose memory this thread allocates: in the simulator that of its node, lost when the node
 * crashes. A simulated disk sets the owner to whoever made it for the length of a call, because it
 * must outlive its users. Production knows one owner, 0. */
unsigned sh_memory_owner(void);
void sh_set_memory_owner(unsigned owner);

/* Atomics are scheduling points in the simulator (rt/atomic.h). One predictable branch in
 * production: the thread back end never sets the flag. */
extern bool sh_atomic_points;
void sh_atomic_point(const void *object);

#endif
