/*
 * lock_classes.h - every class of lock in ron, its rank, and the compiler's proof of their use.
 *
 * clang's thread safety analysis works in C with one never-defined token per class. Guarded data
 * names its class; a function that blocks says RON_BLOCKS and cannot be called with any lock held:
 * the C form of "no lock across await". Ranks rise inward: a thread may take a lock only if its
 * rank is above all it holds (checked at run time). gcc sees empty macros.
 *
 * clang does not see a call through a pointer, nor a helper without RON_BLOCKS that takes and drops
 * a lock and then blocks (the drop proves to it that none is held): rt_assert_no_lock_held does.
 *
 * Compile with -Wthread-safety and not with -Wthread-safety-negative: that one wants every function
 * that takes a lock to say it holds none, but nesting in rising rank is legal. What RON_BLOCKS says
 * is checked by the former.
 */
#ifndef RON_RT_LOCK_CLASSES_H
#define RON_RT_LOCK_CLASSES_H

#if defined(__clang__)
#define RON_TSA(x) __attribute__((x))
#else
#define RON_TSA(x)
#endif

struct RON_TSA(capability("lock")) ron_cap {
    char unused;
};
extern struct ron_cap *const ron_cap_any; /* held while any lock is held */

/* X(class, rank): the order of the source designs, outermost first. */
#define RON_LOCK_MAP(X)  \
    X(cfg_snapshot, 10)  \
    X(lifecycle, 12)     \
    X(supervisor, 15)    \
    X(run_registry, 20)  \
    X(balance_cache, 22) \
    X(routing_table, 24) \
    X(export_cache, 26)  \
    X(shard, 30)         \
    X(strands, 35)       \
    X(queue, 40)         \
    X(bus, 42)           \
    X(watch, 44)         \
    X(timer, 50)         \
    X(breaker, 55)       \
    X(storage, 60)       \
    X(vfs, 65)           \
    X(registry, 75)      \
    X(metrics, 80)       \
    X(log, 90)

#define X(name, rank)                            \
    extern struct ron_cap *const ron_cap_##name; \
    enum { RON_RANK_##name = (rank) };
RON_LOCK_MAP(X)
#undef X

#define RON_GUARDED_BY(class) RON_TSA(guarded_by(ron_cap_##class))
#define RON_NEEDS(class)      RON_TSA(requires_capability(ron_cap_##class))
#define RON_LOCKS(class) \
    RON_TSA(acquire_capability(ron_cap_##class, ron_cap_any)) RON_TSA(no_thread_safety_analysis)
#define RON_UNLOCKS(class) \
    RON_TSA(release_capability(ron_cap_##class, ron_cap_any)) RON_TSA(no_thread_safety_analysis)
/* Waits for something outside: fsync, send, join, a queue. Spreads to callers like `async`. */
#define RON_BLOCKS RON_TSA(requires_capability(!ron_cap_any))

#endif
