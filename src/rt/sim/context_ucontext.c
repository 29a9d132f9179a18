/*
 * context_ucontext.c - contexts for CPUs without a hand-written switch.
 *
 * swapcontext makes a system call per switch (340 ns against 10). The registers lie in a ucontext_t
 * with bytes of no meaning, so states cannot be hashed.
 */
#include <ucontext.h>

#include "base/assert.h"
#include "rt/sim/fiber.h"

static ucontext_t host;

void *sim_context_make(uint8_t *stack, size_t stack_size, void (*entry)(void))
{
    ucontext_t *context = (ucontext_t *)(void *)stack; /* its storage: the far end of the stack */

    RON_ASSERT((uintptr_t)stack % 64 == 0);
    RON_MUST_ZERO(getcontext(context));
    context->uc_stack.ss_sp = stack + sizeof(*context);
    context->uc_stack.ss_size = stack_size - sizeof(*context);
    context->uc_link = NULL;
    makecontext(context, entry, 0);
    return context;
}

void sim_context_switch(void **save, void *load)
{
    RON_MUST_ZERO(swapcontext(*save, load));
}

void *sim_context_host(void)
{
    return &host;
}

bool sim_context_is_stack_pointer(void)
{
    return false;
}
