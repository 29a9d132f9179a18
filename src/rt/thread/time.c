/*
 * time.c - clocks, sleep and random numbers of the seam, from Linux. See rt/shim.h.
 */
#include <errno.h>
#include <sched.h>
#include <sys/random.h>
#include <time.h>

#include "base/assert.h"
#include "rt/shim.h"

enum { NS_PER_S = 1000000000, MS_PER_S = 1000, NS_PER_MS = 1000000 };

uint64_t sh_now_ns(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t sh_utc_ms(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_REALTIME, &now));
    RON_ASSERT(now.tv_sec >= 0); /* a clock before 1970 is not a clock */
    return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / NS_PER_MS;
}

void sh_sleep_until(uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                                .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    int result;

    RON_ASSERT(deadline_ns != SH_NEVER);
    do {
        result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
    } while (result == EINTR);
    RON_ASSERT(result == 0);
}

void sh_yield(void)
{
    (void)sched_yield();
}

/* splitmix64 (Steele, Lea, Flood 2014), seeded by the kernel once a thread. */
uint64_t sh_random(void)
{
    static _Thread_local uint64_t state;
    static _Thread_local bool seeded;
    uint64_t z;

    if (!seeded) {
        if (getrandom(&state, sizeof(state), 0) != (ssize_t)sizeof(state))
            state = sh_now_ns(); /* jitter needs no secret */
        seeded = true;
    }
    state += UINT64_C(0x9e3779b97f4a7c15);
    z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

unsigned sh_choose(unsigned options_count, const char *tag)
{
    RON_ASSERT(options_count > 0);
    RON_ASSERT(tag != NULL);
    return 0;
}

unsigned sh_memory_owner(void)
{
    return 0;
}

void sh_set_memory_owner(unsigned owner)
{
    RON_ASSERT(owner == 0);
}
