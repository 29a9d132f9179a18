/*
 * thread.c - spawn and join of the seam, on pthreads. See rt/shim.h.
 *
 * A join with a deadline waits for a flag that the thread sets last, then joins for real: glibc's
 * timed joins either use the wall clock or are unknown to ThreadSanitizer. Spawned threads block
 * every signal but those of their own faults, so that the thread which asks for signals gets them.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/assert.h"
#include "base/mem.h"
#include "rt/shim.h"

enum { STACK_SIZE = 1 << 20, NAME_SIZE = 16 /* of Linux, with its NUL */ };

struct sh_thread {
    pthread_t id;
    void (*fn)(void *argument);
    void *argument;
    char name[NAME_SIZE];
    struct sh_mutex mutex; /* guards the two flags */
    struct sh_cond ended_cond;
    bool ended;
    bool detached;
};

static void thread_free(struct sh_thread *thread)
{
    sh_cond_fini(&thread->ended_cond);
    sh_mutex_fini(&thread->mutex);
    ron_mem_free(thread);
}

static void *thread_main(void *context)
{
    struct sh_thread *thread = context;
    bool detached;

    (void)pthread_setname_np(pthread_self(), thread->name); /* a courtesy to debuggers */
    thread->fn(thread->argument);
    sh_mutex_lock(&thread->mutex);
    thread->ended = true;
    detached = thread->detached;
    sh_cond_broadcast(&thread->ended_cond);
    sh_mutex_unlock(&thread->mutex);
    if (detached)
        thread_free(thread);
    return NULL;
}

static int start(struct sh_thread *thread)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    pthread_attr_t attributes;
    sigset_t blocked, before;
    int result;

    RON_MUST_ZERO(pthread_attr_init(&attributes));
    RON_MUST_ZERO(pthread_attr_setstacksize(&attributes, STACK_SIZE));
    RON_MUST_ZERO(sigfillset(&blocked));
    for (size_t i = 0; i < RON_ARRAY_COUNT(kept); i++)
        RON_MUST_ZERO(sigdelset(&blocked, kept[i]));
    RON_MUST_ZERO(pthread_sigmask(SIG_SETMASK, &blocked, &before));
    result = pthread_create(&thread->id, &attributes, thread_main, thread);
    RON_MUST_ZERO(pthread_sigmask(SIG_SETMASK, &before, NULL));
    RON_MUST_ZERO(pthread_attr_destroy(&attributes));
    return result;
}

enum ron_err sh_spawn(const char *name, void (*fn)(void *argument), void *argument,
                      struct sh_thread **ret_thread, struct ron_errinfo *reterr)
{
    struct sh_thread *thread = ron_mem_alloc(sizeof(*thread));
    int result;

    RON_ASSERT(name != NULL);
    RON_ASSERT(fn != NULL);
    if (thread == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "thread %s", name);
    thread->fn = fn;
    thread->argument = argument;
    memcpy(thread->name, name, strnlen(name, NAME_SIZE - 1));
    sh_mutex_init(&thread->mutex, "thread");
    sh_cond_init(&thread->ended_cond, "thread ended");
    result = start(thread);
    if (result != 0) {
        thread_free(thread);
        return ron_fail_sys(reterr, RON_ERR_BUSY, result, "the system refuses thread %s", name);
    }
    *ret_thread = thread;
    return RON_ERR_OK;
}

bool sh_join(struct sh_thread *thread, uint64_t deadline_ns)
{
    bool ended;

    sh_mutex_lock(&thread->mutex);
    RON_ASSERT(!thread->detached);
    while (!thread->ended) {
        if (!sh_cond_wait(&thread->ended_cond, &thread->mutex, deadline_ns))
            break;
    }
    ended = thread->ended;
    sh_mutex_unlock(&thread->mutex);
    if (!ended)
        return false;
    RON_MUST_ZERO(pthread_join(thread->id, NULL));
    thread_free(thread);
    return true;
}

/* Of the calling thread alone (setpriority(2), "C library/kernel differences"). Not the lowest: it
 * may hold what others wait for, such as the kernel's lock of the memory map. */
void sh_step_back(void)
{
    enum { NICE = 10 };

    (void)setpriority(PRIO_PROCESS, 0, NICE);
}

void sh_detach(struct sh_thread *thread)
{
    pthread_t id = thread->id;
    bool ended;

    sh_mutex_lock(&thread->mutex);
    RON_ASSERT(!thread->detached);
    thread->detached = true;
    ended = thread->ended;
    sh_mutex_unlock(&thread->mutex);
    if (!ended) { /* the thread frees it, perhaps already */
        RON_MUST_ZERO(pthread_detach(id));
        return;
    }
    RON_MUST_ZERO(pthread_join(id, NULL)); /* it has nothing left to do */
    thread_free(thread);
}
