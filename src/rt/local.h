/*
 * local.h - what the runtime knows about the running thread or fiber.
 */
#ifndef RON_RT_LOCAL_H
#define RON_RT_LOCAL_H

#include "rt/shim.h"

enum {
    RT_HELD_LOCKS_MAX = 8,
    RT_SLOTS_MAX = 64, /* shards; slot 0 is shared by all threads without one of their own */
};

struct rt_task;
struct rt_lock;
struct rt_panic_frame;

struct rt_local {
    const char *name;     /* of the task; NULL on a thread the runtime did not make */
    struct rt_task *task; /* NULL outside tasks */
    struct rt_panic_frame *panic_frame;
    unsigned held_count; /* locks held, outermost first */
    const struct rt_lock *held[RT_HELD_LOCKS_MAX];
    unsigned slot; /* below RT_SLOTS_MAX; unless 0, no other live thread has it */
};

/* Give the running thread a slot of its own, if one is left; tasks do it at birth (registry.c). */
void rt_slot_take(void);
void rt_slot_give(void);

#endif
