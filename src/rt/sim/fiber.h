/*
 * fiber.h - stacks and the switch between them.
 *
 * One OS thread. The host (the scheduler, on the thread's own stack) resumes a fiber; the fiber
 * pauses back to the host; fibers never switch to each other. errno, mxcsr and the x87 control word
 * belong to each fiber. ASan and TSan are told about every switch. What a CPU needs is behind
 * sim_context_*: context_x86_64.S, or context_ucontext.c elsewhere (thirty times slower, no state
 * cache).
 */
#ifndef RON_RT_SIM_FIBER_H
#define RON_RT_SIM_FIBER_H

#include <setjmp.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
    SIM_FIBERS_MAX = 256,
    SIM_STACK_SIZE = 64 * 1024, /* fprintf to stderr alone needs 14 KB */
};

struct sim_fiber {
    void *context;  /* of the paused fiber; with the x86-64 switch its stack pointer */
    uint8_t *stack; /* lowest usable byte; a guard page is below; NULL until first used */
    void (*fn)(void *argument);
    void *argument;
    bool live;    /* started, has not left */
    bool killed;  /* unwinds to its base when resumed */
    jmp_buf base; /* of the outermost frame */
    void *asan_fake_stack;
    void *tsan_fiber; /* kept for reuse */
};

/* Make the fiber ready to run fn(argument); its stack is that of `slot`, at the same address in
 * every run. `zero` wipes the stack first, so that its bytes depend on this run alone. Aborts where
 * the system has no memory for a stack. */
void sim_fiber_start(struct sim_fiber *fiber, unsigned slot, bool zero, void (*fn)(void *),
                     void *argument);
/* Host: run the fiber until it pauses or leaves. */
void sim_fiber_resume(struct sim_fiber *fiber);
/* Fiber: back to the host; returns when resumed, or unwinds if killed meanwhile. */
void sim_fiber_pause(struct sim_fiber *fiber);
/* Fiber: unwind to the base and leave for good. No cleanup in between runs. */
void sim_fiber_leave(struct sim_fiber *fiber) RON_NORETURN;
/* Host: give up a paused fiber. Unwound where a sanitizer keeps books about its frames. */
void sim_fiber_abandon(struct sim_fiber *fiber);

/* The bytes of a paused fiber that decide what it does next; false where they cannot be told. */
bool sim_fiber_live_bytes(const struct sim_fiber *fiber, const uint8_t **ret_data,
                          size_t *ret_size) RON_MUST_USE;

/* What happens-before means to TSan: release on one side, acquire on the other. Nothing without
 * TSan. */
void sim_tsan_release(const void *object);
void sim_tsan_acquire(const void *object);
void sim_tsan_ignore_reads(bool ignored); /* those of the host */

/* Of the CPU. `save` holds the context left, `load` the one entered. */
void *sim_context_make(uint8_t *stack, size_t stack_size, void (*entry)(void));
void sim_context_switch(void **save, void *load);
void *sim_context_host(void); /* what *save must hold for the host before its first switch */
bool sim_context_is_stack_pointer(void);

#endif
