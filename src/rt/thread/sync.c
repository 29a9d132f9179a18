/*
 * sync.c - mutexes and conditions of the seam, on futexes. See rt/shim.h, which has the fast paths.
 *
 * Mutex. The state is a word: free, held, or held with marks that send the unlock here. Whoever
 * cannot have it looks again a few times with growing pauses, so that the holder, whose cache the
 * protected lines are in, does several calls in a row instead of passing them on after each. Then
 * it exchanges the state for HELD | SLEEPERS and sleeps while it is that. The exchange that finds
 * FREE has taken the mutex; the mark it leaves costs at most one wake-up for nobody. No sleeper is
 * forgotten: after the last exchange of a sleeper the state keeps the mark until an unlock takes it
 * off and wakes one, which puts it back when it wakes, whether others sleep or not.
 *
 * Condition. A waiter notes the sequence number under the mutex, releases it, and waits until the
 * number differs. Signals are sent under the mutex, so whoever was waiting before the signal has an
 * older number: in the kernel it is woken, on its way there the kernel compares and refuses. What a
 * signal changes is done under the mutex; the call that wakes is made after the unlock (wakes[] of
 * the mutex), so that the woken one finds it free. By then the condition may be freed and its
 * memory used anew: only the address is handed to the kernel, and whoever sleeps there now is woken
 * for nothing, which every futex must bear. A waiter that came after the signal may take the
 * wake-up of an older one: the kernel promises no order. So a wake-up ends the wait of whoever gets
 * it, although the number may be the one noted, and who gets it looks again in place of the other:
 * a caller may count whom it has woken, as queues do. That is why all waiters of a condition that
 * is signalled, not broadcast, must wait for the same thing (shim.h).
 * A number that comes round in 2^32 signals while a waiter has not got from its unlock to the
 * kernel would be missed; at a signal every 10 ns that takes 43 seconds.
 *
 * Memory order. The acquire of the lock's exchange pairs with the release of the unlock's. Between
 * signal and waiter, of two locations, each side writes one and reads the other: the signal adds to
 * `sequence`, then reads `sleepers_count`; the waiter adds to `sleepers_count`, then has the kernel
 * read `sequence`. All four are sequentially consistent (the kernel's by its own full barrier), so
 * at least one sees the other: the signal wakes, or the kernel refuses the sleep.
 *
 * Deadlines are of CLOCK_MONOTONIC, so that a jump of the wall clock moves none.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "rt/shim.h"

enum { NS_PER_S = 1000000000 };

/* Marks beside SH_MUTEX_HELD. */
enum {
    SLEEPERS = 4, /* someone sleeps, or did */
    WAKES = 8,    /* wakes[] is not empty; may be missing beside SLEEPERS */
};

/* Looking again: the n-th time after n pauses more, a pause being 20 to 60 ns. */
#ifndef SYNC_LOOKS /* the model of this file (models/futex.c) looks less often */
#define SYNC_LOOKS(usual_count) (usual_count)
#endif
enum { LOCK_LOOKS = SYNC_LOOKS(8), WAIT_LOOKS_MIN = 1, WAIT_LOOKS_MAX = SYNC_LOOKS(20) };
enum { PAUSES_STEP = 8 };
enum { TRY_LONG_EVERY = 32 }; /* waits; a power of two */

enum { WAKES_MAX = 2 };

struct wake {
    _Atomic uint32_t *address; /* of a condition's sequence; perhaps freed when it is used */
    int count;
};

/* What is inside sh_mutex beside its state; the holder's. */
struct mutex {
    struct wake wakes[WAKES_MAX]; /* for after the unlock */
    uint32_t wakes_count;
};

/* What is inside sh_cond. All but the atomics is guarded by the mutex it is waited on with. */
struct cond {
    _Atomic uint32_t sequence;       /* of signals sent to somebody */
    _Atomic uint32_t sleepers_count; /* in the kernel, or nearly */
    struct sh_mutex *mutex;          /* of the waiters */
    uint32_t waiters_count;
    uint32_t waits_count;
    uint32_t looks_count; /* worth while before sleeping, as experience has it */
};

_Static_assert(sizeof(struct mutex) <= sizeof(((struct sh_mutex *)0)->opaque), "holds it");
_Static_assert(sizeof(struct cond) <= sizeof(struct sh_cond), "holds it");
_Static_assert(_Alignof(struct mutex) <= 8 && _Alignof(struct cond) <= 8, "and aligns it");
_Static_assert(sizeof(_Atomic uint32_t) == 4, "what a futex is");
_Static_assert(sizeof(time_t) == sizeof(long), "what SYS_futex reads of a deadline");

bool sh_atomic_points; /* never set here: production pays one predictable branch */

void sh_atomic_point(const void *object)
{
    (void)object;
    RON_UNREACHABLE();
}

static void futex_wake(_Atomic uint32_t *address, int count)
{
    (void)syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* How a sleep ended. SLEPT_NOT: the value is another one, or a signal handler ran. */
enum slept { SLEPT_WOKEN, SLEPT_NOT, SLEPT_TOO_LONG };

/* Sleep while *address is `value`. A wake-up that was taken from another is SLEPT_WOKEN, always. */
static enum slept futex_wait(_Atomic uint32_t *address, uint32_t value, uint64_t deadline_ns)
{
    const int errno_before = errno; /* a lock is nothing that a caller's errno should tell of */
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                      .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    const long result = syscall(SYS_futex, address, FUTEX_WAIT_BITSET_PRIVATE, value,
                                deadline_ns == SH_NEVER ? NULL : &deadline, NULL,
                                FUTEX_BITSET_MATCH_ANY);
    const int error = result == 0 ? 0 : errno;

    errno = errno_before;
    if (error == EAGAIN || error == EINTR)
        return SLEPT_NOT;
    RON_ASSERT(error == 0 || error == ETIMEDOUT);
    return error == 0 ? SLEPT_WOKEN : SLEPT_TOO_LONG;
}

static void pause_for(unsigned pauses_count)
{
    for (unsigned i = 0; i < pauses_count; i++)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#else
        __asm__ volatile("" ::: "memory");
#endif
}

static struct mutex *mutex_of(struct sh_mutex *mutex)
{
    return (struct mutex *)(void *)mutex->opaque;
}

static struct cond *cond_of(struct sh_cond *cond)
{
    return (struct cond *)(void *)cond->opaque;
}

void sh_mutex_init(struct sh_mutex *mutex, const char *name)
{
    RON_ASSERT(name != NULL);
    memset(mutex, 0, sizeof(*mutex));
    atomic_init(&mutex->state, SH_MUTEX_FREE);
}

void sh_mutex_fini(struct sh_mutex *mutex)
{
    uint32_t state = atomic_exchange_explicit(&mutex->state, 0, memory_order_acquire);

    RON_ASSERT(state == SH_MUTEX_FREE);
}

void sh_mutex_lock_slow(struct sh_mutex *mutex)
{
    uint32_t state;

    for (unsigned look = 1; look <= LOCK_LOOKS; look++) {
        pause_for(look * PAUSES_STEP);
        state = atomic_load_explicit(&mutex->state, memory_order_relaxed);
        if (state == SH_MUTEX_FREE &&
            atomic_compare_exchange_strong_explicit(&mutex->state, &state, SH_MUTEX_HELD,
                                                    memory_order_acquire, memory_order_relaxed))
            return;
        RON_ASSERT(state != 0); /* not initialised, or finished */
    }
    while (atomic_exchange_explicit(&mutex->state, SH_MUTEX_HELD | SLEEPERS,
                                    memory_order_acquire) != SH_MUTEX_FREE)
        (void)futex_wait(&mutex->state, SH_MUTEX_HELD | SLEEPERS, SH_NEVER);
}

void sh_mutex_unlock_slow(struct sh_mutex *mutex)
{
    struct mutex *inner = mutex_of(mutex);
    const struct mutex after = *inner; /* the mutex may be gone once it is free */
    uint32_t state;

    inner->wakes_count = 0;
    state = atomic_exchange_explicit(&mutex->state, SH_MUTEX_FREE, memory_order_release);
    RON_ASSERT(state & SH_MUTEX_HELD); /* unlocked twice, or never locked */
    if (state & SLEEPERS)
        futex_wake(&mutex->state, 1);
    for (uint32_t i = 0; i < after.wakes_count; i++)
        futex_wake(after.wakes[i].address, after.wakes[i].count);
}

void sh_cond_init(struct sh_cond *cond, const char *name)
{
    RON_ASSERT(name != NULL);
    memset(cond, 0, sizeof(*cond));
    cond_of(cond)->looks_count = WAIT_LOOKS_MAX;
}

void sh_cond_fini(struct sh_cond *cond)
{
    RON_ASSERT(cond_of(cond)->waiters_count == 0);
}

/* Look whether the number has moved on, without sleeping. */
static bool look_for_signal(struct cond *cond, uint32_t sequence, uint32_t looks_count)
{
    for (uint32_t look = 1; look <= looks_count; look++) {
        pause_for(look * PAUSES_STEP);
        if (atomic_load_explicit(&cond->sequence, memory_order_relaxed) != sequence)
            return true;
    }
    return false;
}

static bool sleep_for_signal(struct cond *cond, uint32_t sequence, uint64_t deadline_ns)
{
    enum slept slept = SLEPT_NOT;

    atomic_fetch_add_explicit(&cond->sleepers_count, 1, memory_order_seq_cst);
    while (slept == SLEPT_NOT &&
           atomic_load_explicit(&cond->sequence, memory_order_seq_cst) == sequence)
        slept = futex_wait(&cond->sequence, sequence, deadline_ns);
    atomic_fetch_sub_explicit(&cond->sleepers_count, 1, memory_order_relaxed);
    return slept != SLEPT_TOO_LONG;
}

bool sh_cond_wait(struct sh_cond *cond, struct sh_mutex *mutex, uint64_t deadline_ns)
{
    struct cond *inner = cond_of(cond);
    const uint32_t sequence = atomic_load_explicit(&inner->sequence, memory_order_relaxed);
    const bool try_long = inner->waits_count++ % TRY_LONG_EVERY == 0;
    const uint32_t looks_count = try_long ? WAIT_LOOKS_MAX : inner->looks_count;
    bool looked, signalled;

    RON_ASSERT(inner->waiters_count == 0 || inner->mutex == mutex);
    inner->mutex = mutex;
    inner->waiters_count++;
    sh_mutex_unlock(mutex);
    looked = look_for_signal(inner, sequence, looks_count);
    signalled = looked || sleep_for_signal(inner, sequence, deadline_ns);
    sh_mutex_lock(mutex);
    inner->waiters_count--;
    if (looked && inner->looks_count < WAIT_LOOKS_MAX)
        inner->looks_count++;
    else if (!looked && inner->looks_count > WAIT_LOOKS_MIN)
        inner->looks_count /= 2;
    return signalled;
}

static void notify(struct cond *cond, int count)
{
    struct mutex *held;
    uint32_t state;

    if (cond->waiters_count == 0)
        return;
    state = atomic_load_explicit(&cond->mutex->state, memory_order_relaxed);
    RON_ASSERT(state & SH_MUTEX_HELD); /* signals are sent under the lock */
    atomic_fetch_add_explicit(&cond->sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&cond->sleepers_count, memory_order_seq_cst) == 0)
        return; /* those who look will see it */
    held = mutex_of(cond->mutex);
    if (held->wakes_count == WAKES_MAX) {
        futex_wake(&cond->sequence, count);
        return;
    }
    held->wakes[held->wakes_count++] = (struct wake){&cond->sequence, count};
    atomic_fetch_or_explicit(&cond->mutex->state, WAKES, memory_order_relaxed);
}

void sh_cond_signal(struct sh_cond *cond)
{
    notify(cond_of(cond), 1);
}

void sh_cond_broadcast(struct sh_cond *cond)
{
    notify(cond_of(cond), INT_MAX);
}
