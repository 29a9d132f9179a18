/*
 * context_x86_64.c - the first frame of a context that context_x86_64.S can enter.
 */
#include <string.h>

#include "base/assert.h"
#include "rt/sim/fiber.h"

void sim_context_begin(void);

/* What the switch pops, in its order. */
struct frame {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t unused;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    uint64_t rip;
    uint64_t end[2]; /* keeps the stack 16-byte aligned at the call in sim_context_begin */
};

void *sim_context_make(uint8_t *stack, size_t stack_size, void (*entry)(void))
{
    struct frame frame = {
        .mxcsr = 0x1f80, /* the System V ABI's values at process start */
        .x87_control = 0x037f,
        .rbx = (uint64_t)(uintptr_t)entry,
        .rip = (uint64_t)(uintptr_t)sim_context_begin,
    };
    uint8_t *top = stack + stack_size;

    RON_ASSERT((uintptr_t)top % 16 == 0);
    RON_ASSERT(sizeof(frame) % 16 == 0);
    memcpy(top - sizeof(frame), &frame, sizeof(frame));
    return top - sizeof(frame);
}

void *sim_context_host(void)
{
    return NULL;
}

bool sim_context_is_stack_pointer(void)
{
    return true;
}
