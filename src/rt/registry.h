/*
 * registry.h - the runtime's list of itself: every queue, bus, watch, task, timer, strand set and
 * durable log.
 *
 * Objects enter at birth and leave at their end; lock classes are always in it.
 * docs/concurrency.md, /debug/topology and the console's diagram are made from it. A static table:
 * when it is full, the constructor of the next object answers RON_ERR_BUSY.
 */
#ifndef RON_RT_REGISTRY_H
#define RON_RT_REGISTRY_H

#include <stdint.h>

#include "base/compiler.h"

enum { RT_REGISTRY_MAX = 512 };

enum rt_kind {
    RT_KIND_QUEUE,
    RT_KIND_BUS,
    RT_KIND_WATCH,
    RT_KIND_TASK,
    RT_KIND_TIMER,
    RT_KIND_STRANDS,
    RT_KIND_LOG, /* io/log.h */
    RT_KIND_LOCK,
};

struct rt_registry_entry {
    const void *object; /* identity only; NULL for lock classes */
    enum rt_kind kind;
    const char *name;   /* all texts are borrowed for the object's life */
    const char *policy; /* what happens when it is full, or on failure */
    const char *owner;  /* the role or module that made it */
    uint64_t capacity;  /* items; bytes of a group for logs; for lock classes their rank */
    uint64_t birth;     /* set by the registry: rises, never reused; 0 for lock classes */
};

/* Install the assertion hook and start with an empty registry. The first call of a program, before
 * threads; the simulator calls it again before each run, which forgets what a lost run left. */
void rt_init(void);
/* For a library in somebody else's program: the same unless it was done already. Any thread. */
void rt_init_once(void);

/* Any thread. RON_ERR_BUSY when the table is full. */
enum ron_err rt_registry_add(const struct rt_registry_entry *entry,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* It must be in it. The first step of an object's end: waits for those who look (rt_registry_pin),
 * which is short, so the caller holds no lock. */
void rt_registry_remove(const void *object);

/* From pin to unpin the objects that a list shows are alive and may be asked for their figures.
 * Whoever pins takes no lock of its own and waits for nothing: ends of objects wait for it. */
void rt_registry_pin(void);
void rt_registry_unpin(void);

/* Copy at most entries_max entries: live objects in order of birth, then lock classes. Returns how
 * many there are in all, which may be more than were copied. The texts must still be alive. */
size_t rt_registry_list(struct rt_registry_entry *entries, size_t entries_max);

const char *rt_kind_name(enum rt_kind kind);

#endif
