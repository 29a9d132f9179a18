/*
 * local.h - what the runtime knows about the running thread or fiber.
 */
#ifndef RON_RT_LOCAL_H
#define RON_RT_LOCAL_H

#include "rt/shim.h"

enum { RT_HELD_LOCKS_MAX = 8 };

struct rt_task;
struct rt_lock;
struct rt_panic_frame;

struct rt_local {
    const char *name;     /* of the task; NULL on a thread the runtime did not make */
    struct rt_task *task; /* NULL outside tasks */
    struct rt_panic_frame *panic_frame;
    unsigned held_count; /* locks held, outermost first */
    const struct rt_lock *held[RT_HELD_LOCKS_MAX];
    void *burst;   /* replies that go out together (io/request.h); NULL: each by itself */
    void *loop;    /* the I/O loop that runs here (io/conn.h); NULL: none */
    unsigned slot; /* row in sharded counters, its own; 0 for none (slot.h) */
};

#endif
