/*
 * sync.c - mutexes and conditions of the seam, on pthreads. See rt/shim.h.
 *
 * Conditions wait on CLOCK_MONOTONIC, so that a jump of the wall clock moves no deadline.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "rt/shim.h"

enum { NS_PER_S = 1000000000 };

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct sh_mutex), "the opaque storage holds it");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(struct sh_cond), "the opaque storage holds it");
_Static_assert(_Alignof(pthread_mutex_t) <= _Alignof(struct sh_mutex), "and aligns it");
_Static_assert(_Alignof(pthread_cond_t) <= _Alignof(struct sh_cond), "and aligns it");

bool sh_atomic_points; /* never set here: production pays one predictable branch */

void sh_atomic_point(const void *object)
{
    (void)object;
    RON_UNREACHABLE();
}

static pthread_mutex_t *mutex_of(struct sh_mutex *mutex)
{
    return (pthread_mutex_t *)(void *)mutex->opaque;
}

static pthread_cond_t *cond_of(struct sh_cond *cond)
{
    return (pthread_cond_t *)(void *)cond->opaque;
}

void sh_mutex_init(struct sh_mutex *mutex, const char *name)
{
    RON_ASSERT(name != NULL);
    memset(mutex, 0, sizeof(*mutex));
    RON_MUST_ZERO(pthread_mutex_init(mutex_of(mutex), NULL));
}

void sh_mutex_fini(struct sh_mutex *mutex)
{
    RON_MUST_ZERO(pthread_mutex_destroy(mutex_of(mutex)));
}

void sh_mutex_lock(struct sh_mutex *mutex)
{
    RON_MUST_ZERO(pthread_mutex_lock(mutex_of(mutex)));
}

void sh_mutex_unlock(struct sh_mutex *mutex)
{
    RON_MUST_ZERO(pthread_mutex_unlock(mutex_of(mutex)));
}

void sh_cond_init(struct sh_cond *cond, const char *name)
{
    pthread_condattr_t attributes;

    RON_ASSERT(name != NULL);
    memset(cond, 0, sizeof(*cond));
    RON_MUST_ZERO(pthread_condattr_init(&attributes));
    RON_MUST_ZERO(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    RON_MUST_ZERO(pthread_cond_init(cond_of(cond), &attributes));
    RON_MUST_ZERO(pthread_condattr_destroy(&attributes));
}

void sh_cond_fini(struct sh_cond *cond)
{
    RON_MUST_ZERO(pthread_cond_destroy(cond_of(cond)));
}

bool sh_cond_wait(struct sh_cond *cond, struct sh_mutex *mutex, uint64_t deadline_ns)
{
    struct timespec deadline;
    int result;

    if (deadline_ns == SH_NEVER) {
        RON_MUST_ZERO(pthread_cond_wait(cond_of(cond), mutex_of(mutex)));
        return true;
    }
    deadline.tv_sec = (time_t)(deadline_ns / NS_PER_S);
    deadline.tv_nsec = (long)(deadline_ns % NS_PER_S);
    result = pthread_cond_timedwait(cond_of(cond), mutex_of(mutex), &deadline);
    RON_ASSERT(result == 0 || result == ETIMEDOUT);
    return result == 0;
}

void sh_cond_signal(struct sh_cond *cond)
{
    RON_MUST_ZERO(pthread_cond_signal(cond_of(cond)));
}

void sh_cond_broadcast(struct sh_cond *cond)
{
    RON_MUST_ZERO(pthread_cond_broadcast(cond_of(cond)));
}
