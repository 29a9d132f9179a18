/*
 * atomic.h - the only atomics in ron above the seam.
 *
 * Each access is a scheduling point in the simulator and one predictable branch in production.
 * Flags and pointers are acquire/release or stronger; counters are relaxed, because nothing is
 * published through them. Prefer no atomic: one owner, or a lock.
 */
#ifndef RON_RT_ATOMIC_H
#define RON_RT_ATOMIC_H

#include <stdatomic.h>

#include "rt/shim.h"

struct rt_atomic_u32 {
    _Atomic uint32_t value;
};
struct rt_atomic_u64 {
    _Atomic uint64_t value;
};
struct rt_atomic_ptr {
    void *_Atomic value;
};

static inline void rt_atomic_point(const void *object)
{
    if (RON_UNLIKELY(sh_atomic_points))
        sh_atomic_point(object);
}

static inline uint32_t rt_atomic_load_u32(const struct rt_atomic_u32 *a)
{
    rt_atomic_point(a);
    return atomic_load_explicit(&a->value, memory_order_acquire);
}
static inline void rt_atomic_store_u32(struct rt_atomic_u32 *a, uint32_t value)
{
    rt_atomic_point(a);
    atomic_store_explicit(&a->value, value, memory_order_release);
}
/* Returns the value before. */
static inline uint32_t rt_atomic_exchange_u32(struct rt_atomic_u32 *a, uint32_t value)
{
    rt_atomic_point(a);
    return atomic_exchange_explicit(&a->value, value, memory_order_seq_cst);
}
static inline uint32_t rt_atomic_add_u32(struct rt_atomic_u32 *a, uint32_t value)
{
    rt_atomic_point(a);
    return atomic_fetch_add_explicit(&a->value, value, memory_order_seq_cst);
}
static inline uint32_t rt_atomic_sub_u32(struct rt_atomic_u32 *a, uint32_t value)
{
    rt_atomic_point(a);
    return atomic_fetch_sub_explicit(&a->value, value, memory_order_seq_cst);
}
/* Store `value` if *a is `expected`; true when it did. Never fails spuriously. */
static inline bool rt_atomic_cas_u32(struct rt_atomic_u32 *a, uint32_t expected, uint32_t value)
{
    rt_atomic_point(a);
    return atomic_compare_exchange_strong_explicit(&a->value, &expected, value,
                                                   memory_order_seq_cst, memory_order_seq_cst);
}

static inline uint64_t rt_atomic_load_u64(const struct rt_atomic_u64 *a)
{
    rt_atomic_point(a);
    return atomic_load_explicit(&a->value, memory_order_acquire);
}
static inline void rt_atomic_store_u64(struct rt_atomic_u64 *a, uint64_t value)
{
    rt_atomic_point(a);
    atomic_store_explicit(&a->value, value, memory_order_release);
}
static inline uint64_t rt_atomic_add_u64(struct rt_atomic_u64 *a, uint64_t value)
{
    rt_atomic_point(a);
    return atomic_fetch_add_explicit(&a->value, value, memory_order_seq_cst);
}

static inline void *rt_atomic_load_ptr(const struct rt_atomic_ptr *a)
{
    rt_atomic_point(a);
    return atomic_load_explicit(&a->value, memory_order_acquire);
}
static inline void rt_atomic_store_ptr(struct rt_atomic_ptr *a, void *value)
{
    rt_atomic_point(a);
    atomic_store_explicit(&a->value, value, memory_order_release);
}

/* Counters: sums that nobody synchronises by, hence relaxed and no scheduling point. `_own` may be
 * used only where one thread writes: a plain add, without the bus lock. */
static inline uint64_t rt_counter_load(const struct rt_atomic_u64 *a)
{
    return atomic_load_explicit(&a->value, memory_order_relaxed);
}
static inline void rt_counter_store(struct rt_atomic_u64 *a, uint64_t value)
{
    atomic_store_explicit(&a->value, value, memory_order_relaxed);
}
static inline void rt_counter_add(struct rt_atomic_u64 *a, uint64_t value)
{
    atomic_fetch_add_explicit(&a->value, value, memory_order_relaxed);
}
static inline void rt_counter_add_own(struct rt_atomic_u64 *a, uint64_t value)
{
    uint64_t before = atomic_load_explicit(&a->value, memory_order_relaxed);
    atomic_store_explicit(&a->value, before + value, memory_order_relaxed);
}

#endif
