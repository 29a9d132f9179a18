/*
 * futex_world.c - see futex_world.h.
 *
 * Comparing the word and going to sleep are one step under the world's mutex, as they are in the
 * kernel under the lock of the bucket. The only static of the models is the way to the world: the
 * code under test has no room for it. It is the same address in every run.
 */
#include "models/futex_world.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>

#include "base/mem.h"
#include "models/support.h"

enum { ADDRESSES_MAX = 8 };
#define NS_PER_S 1000000000ull

struct futex_world {
    struct sh_mutex mutex;
    unsigned addresses_count;
    const void *addresses[ADDRESSES_MAX]; /* ever slept on or woken */
    struct sh_cond sleepers[ADDRESSES_MAX];
};
static struct futex_world *world;

void futex_world_open(void)
{
    world = model_alloc(sizeof(*world));
    sh_mutex_init(&world->mutex, "kernel");
    for (unsigned i = 0; i < ADDRESSES_MAX; i++)
        sh_cond_init(&world->sleepers[i], "futex");
}

void futex_world_close(void)
{
    for (unsigned i = 0; i < ADDRESSES_MAX; i++)
        sh_cond_fini(&world->sleepers[i]);
    sh_mutex_fini(&world->mutex);
    ron_mem_free(world);
    world = NULL;
}

static struct sh_cond *sleepers_of(const void *address)
{
    unsigned i = 0;

    while (i < world->addresses_count && world->addresses[i] != address)
        i++;
    RON_ASSERT(i < ADDRESSES_MAX);
    if (i == world->addresses_count)
        world->addresses[world->addresses_count++] = address;
    return &world->sleepers[i];
}

static long sleep_on(_Atomic uint32_t *address, uint32_t value, const struct timespec *deadline)
{
    const uint64_t deadline_ns = deadline == NULL ? SH_NEVER
                                                  : (uint64_t)deadline->tv_sec * NS_PER_S +
                                                        (uint64_t)deadline->tv_nsec;
    bool woken;

    sh_mutex_lock(&world->mutex);
    if (atomic_load(address) != value) {
        sh_mutex_unlock(&world->mutex);
        errno = EAGAIN;
        return -1;
    }
    woken = sh_cond_wait(sleepers_of(address), &world->mutex, deadline_ns);
    sh_mutex_unlock(&world->mutex);
    if (woken)
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

static long wake(const void *address, uint32_t count)
{
    struct sh_cond *sleepers;

    RON_ASSERT(count == 1 || count == INT_MAX);
    sh_mutex_lock(&world->mutex);
    sleepers = sleepers_of(address);
    if (count == 1)
        sh_cond_signal(sleepers);
    else
        sh_cond_broadcast(sleepers);
    sh_mutex_unlock(&world->mutex);
    return 0;
}

long futex_call(_Atomic uint32_t *address, int operation, uint32_t value,
                const struct timespec *deadline)
{
    if (operation == FUTEX_WAKE_PRIVATE)
        return wake(address, value);
    RON_ASSERT(operation == FUTEX_WAIT_BITSET_PRIVATE);
    return sleep_on(address, value, deadline);
}

void futex_point(const void *object)
{
    sh_atomic_point(object);
}
