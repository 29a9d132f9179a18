/*
 * fiber.c - stacks, errno, unwinding, and what the sanitizers must know. See fiber.h.
 *
 * This file is compiled without TSan instrumentation even where the program has it (the build says
 * so with RON_SIM_TSAN): the scheduler's own memory would otherwise be reported.
 */
#include "rt/sim/fiber.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

#if RON_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if RON_SIM_TSAN
#include <sanitizer/tsan_interface.h>
/* Of TSan's run time, in no header of its own. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *address,
                             unsigned long size, const char *description);
#endif

enum { GUARD_SIZE = 4096 };
#define STACK_STRIDE   (SIM_STACK_SIZE + GUARD_SIZE)
/* Low enough to be application memory under ASan and TSan; fixed, so that a run's addresses do not
 * depend on the process. */
#define STACKS_ADDRESS ((void *)0x40000000)

static uint8_t *stacks;
static struct sim_fiber *running;
static void *host_context;
#if RON_ASAN
static void *host_fake_stack;
static const void *host_stack;
static size_t host_stack_size;
#endif
#if RON_SIM_TSAN
static void *host_tsan_fiber;
#endif

static uint8_t *stack_of(unsigned slot)
{
    uint8_t *guard;

    RON_ASSERT(slot < SIM_FIBERS_MAX);
    if (stacks == NULL) {
        void *map = mmap(STACKS_ADDRESS, (size_t)STACK_STRIDE * SIM_FIBERS_MAX,
                         PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (map == MAP_FAILED) /* taken, or a kernel that refuses low addresses: any will do */
            map = mmap(NULL, (size_t)STACK_STRIDE * SIM_FIBERS_MAX, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        RON_ASSERT(map != MAP_FAILED);
        stacks = map;
        host_context = sim_context_host();
#if RON_SIM_TSAN
        host_tsan_fiber = __tsan_get_current_fiber();
        /* One errno for all fibers, saved and restored at every switch. */
        AnnotateBenignRaceSized(__FILE__, __LINE__, &errno, sizeof(errno), "errno");
#endif
    }
    guard = stacks + (size_t)slot * STACK_STRIDE;
    RON_MUST_ZERO(mprotect(guard, GUARD_SIZE, PROT_NONE));
    return guard + GUARD_SIZE;
}

/* To the host. `last` when nothing of this fiber's frames is needed again. */
static void leave_to_host(struct sim_fiber *fiber, RON_UNUSED bool last)
{
#if RON_SIM_TSAN
    sim_tsan_release(fiber); /* runs are ordered: what the host does next is after this */
    __tsan_switch_to_fiber(host_tsan_fiber, 1);
#endif
#if RON_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &fiber->asan_fake_stack, host_stack,
                                   host_stack_size);
#endif
    sim_context_switch(&fiber->context, host_context);
#if RON_ASAN
    __sanitizer_finish_switch_fiber(fiber->asan_fake_stack, &host_stack, &host_stack_size);
#endif
}

static void entry(void)
{
    struct sim_fiber *fiber = running;

#if RON_ASAN
    __sanitizer_finish_switch_fiber(NULL, &host_stack, &host_stack_size);
#endif
    errno = 0;
    if (_setjmp(fiber->base) == 0 && !fiber->killed) /* may be given up before it began */
        fiber->fn(fiber->argument);
    fiber->live = false;
    leave_to_host(fiber, true);
    RON_UNREACHABLE();
}

void sim_fiber_start(struct sim_fiber *fiber, unsigned slot, bool zero, void (*fn)(void *),
                     void *argument)
{
    RON_ASSERT(!fiber->live);
    if (fiber->stack == NULL)
        fiber->stack = stack_of(slot);
#if RON_ASAN
    __asan_unpoison_memory_region(fiber->stack, SIM_STACK_SIZE);
#endif
    if (zero)
        memset(fiber->stack, 0, SIM_STACK_SIZE);
#if RON_SIM_TSAN
    if (fiber->tsan_fiber == NULL)
        fiber->tsan_fiber = __tsan_create_fiber(0);
#endif
    fiber->fn = fn;
    fiber->argument = argument;
    fiber->live = true;
    fiber->killed = false;
    fiber->asan_fake_stack = NULL;
    fiber->context = sim_context_make(fiber->stack, SIM_STACK_SIZE, entry);
}

void sim_fiber_resume(struct sim_fiber *fiber)
{
    int saved_errno = errno;

    RON_ASSERT(fiber->live);
    RON_ASSERT(running == NULL);
    running = fiber;
#if RON_ASAN
    __sanitizer_start_switch_fiber(&host_fake_stack, fiber->stack, SIM_STACK_SIZE);
#endif
#if RON_SIM_TSAN
    __tsan_switch_to_fiber(fiber->tsan_fiber, 1); /* 1: a switch orders nothing */
#endif
    sim_context_switch(&host_context, fiber->context);
#if RON_ASAN
    __sanitizer_finish_switch_fiber(host_fake_stack, NULL, NULL);
#endif
#if RON_SIM_TSAN
    sim_tsan_acquire(fiber);
#endif
    running = NULL;
    errno = saved_errno;
}

void sim_fiber_pause(struct sim_fiber *fiber)
{
    int saved_errno = errno;

    RON_ASSERT(running == fiber);
    leave_to_host(fiber, false);
    errno = saved_errno;
    if (RON_UNLIKELY(fiber->killed))
        sim_fiber_leave(fiber);
}

void sim_fiber_leave(struct sim_fiber *fiber)
{
    RON_ASSERT(running == fiber);
    _longjmp(fiber->base, 1);
}

void sim_fiber_abandon(struct sim_fiber *fiber)
{
    if (!fiber->live)
        return;
#if RON_ASAN || RON_SIM_TSAN
    fiber->killed = true;
    sim_fiber_resume(fiber);
    RON_ASSERT(!fiber->live);
#else
    fiber->live = false;
#endif
}

bool sim_fiber_live_bytes(const struct sim_fiber *fiber, const uint8_t **ret_data, size_t *ret_size)
{
    const uint8_t *top = fiber->stack + SIM_STACK_SIZE;
    const uint8_t *low = fiber->context;

    if (!sim_context_is_stack_pointer())
        return false;
    RON_ASSERT(low > fiber->stack);
    RON_ASSERT(low < top);
    *ret_data = low;
    *ret_size = (size_t)(top - low);
    return true;
}

void sim_tsan_release(RON_UNUSED const void *object)
{
#if RON_SIM_TSAN
    __tsan_release((void *)(uintptr_t)object);
#endif
}

void sim_tsan_acquire(RON_UNUSED const void *object)
{
#if RON_SIM_TSAN
    __tsan_acquire((void *)(uintptr_t)object);
#endif
}

void sim_tsan_ignore_reads(RON_UNUSED bool ignored)
{
#if RON_SIM_TSAN
    if (ignored)
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    else
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}
