/*
 * futex_names.h - included before everything else in sources of the runtime that are compiled once
 * more for futex.c: their functions get other names, each of their atomics is a scheduling point,
 * and their system call is the modelled one. The sources themselves are the shipped ones.
 */
#ifndef RON_MODELS_FUTEX_NAMES_H
#define RON_MODELS_FUTEX_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "models/futex_world.h"

/* ---- names: of the seam, of locks, of queues ---- */

#define sh_mutex_init        futex_mutex_init
#define sh_mutex_fini        futex_mutex_fini
#define sh_mutex_lock        futex_mutex_lock
#define sh_mutex_lock_slow   futex_mutex_lock_slow
#define sh_mutex_unlock      futex_mutex_unlock
#define sh_mutex_unlock_slow futex_mutex_unlock_slow
#define sh_cond_init         futex_cond_init
#define sh_cond_fini         futex_cond_fini
#define sh_cond_wait         futex_cond_wait
#define sh_cond_signal       futex_cond_signal
#define sh_cond_broadcast    futex_cond_broadcast
#define sh_atomic_points     futex_atomic_points
#define sh_atomic_point      futex_atomic_point

#define rt_lock_init      futex_lock_init
#define rt_lock_fini      futex_lock_fini
#define rt_lock_held      futex_lock_held
#define rt_lock_forget    futex_lock_forget
#define rt_lock_classes   futex_lock_classes
#define rt_cond_init      futex_rt_cond_init
#define rt_cond_fini      futex_rt_cond_fini
#define rt_cond_wait      futex_rt_cond_wait
#define rt_cond_signal    futex_rt_cond_signal
#define rt_cond_broadcast futex_rt_cond_broadcast

#define rt_queue_new                   futex_queue_new
#define rt_queue_free                  futex_queue_free
#define rt_queue_try_send              futex_queue_try_send
#define rt_queue_try_send_many         futex_queue_try_send_many
#define rt_queue_send_until            futex_queue_send_until
#define rt_queue_send_drop_oldest      futex_queue_send_drop_oldest
#define rt_queue_send_many_drop_oldest futex_queue_send_many_drop_oldest
#define rt_queue_recv                  futex_queue_recv
#define rt_queue_recv_many             futex_queue_recv_many
#define rt_queue_recv_light            futex_queue_recv_light
#define rt_queue_try_recv_many         futex_queue_try_recv_many
#define rt_queue_close                 futex_queue_close
#define rt_queue_closed                futex_queue_closed
#define rt_queue_get_stats             futex_queue_get_stats

/* ---- atomics: a point before each; behind those that may release, one more ---- */

static inline __attribute__((always_inline)) uint32_t futex_load(const _Atomic uint32_t *a,
                                                                 memory_order order)
{
    futex_point(a);
    return atomic_load_explicit(a, order);
}

static inline __attribute__((always_inline)) uint32_t
futex_exchange(_Atomic uint32_t *a, uint32_t value, memory_order order)
{
    uint32_t before;

    futex_point(a);
    before = atomic_exchange_explicit(a, value, order);
    futex_point(a);
    return before;
}

static inline __attribute__((always_inline)) bool futex_cas(_Atomic uint32_t *a, uint32_t *expected,
                                                            uint32_t value, memory_order order,
                                                            memory_order failed_order)
{
    bool done;

    futex_point(a);
    done = atomic_compare_exchange_strong_explicit(a, expected, value, order, failed_order);
    futex_point(a);
    return done;
}

static inline __attribute__((always_inline)) uint32_t futex_add(_Atomic uint32_t *a, uint32_t value,
                                                                memory_order order)
{
    futex_point(a);
    return atomic_fetch_add_explicit(a, value, order);
}

static inline __attribute__((always_inline)) uint32_t futex_or(_Atomic uint32_t *a, uint32_t value,
                                                               memory_order order)
{
    futex_point(a);
    return atomic_fetch_or_explicit(a, value, order);
}

#undef atomic_load_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#define atomic_load_explicit(a, order)            futex_load(a, order)
#define atomic_exchange_explicit(a, value, order) futex_exchange(a, value, order)
#define atomic_compare_exchange_strong_explicit(a, expected, value, order, failed_order) \
    futex_cas(a, expected, value, order, failed_order)
#define atomic_fetch_add_explicit(a, value, order) futex_add(a, value, order)
#define atomic_fetch_sub_explicit(a, value, order) futex_add(a, 0 - (uint32_t)(value), order)
#define atomic_fetch_or_explicit(a, value, order)  futex_or(a, value, order)

/* ---- the system call, and how often to look before it ---- */

#define syscall(number, address, operation, value, deadline, address2, bits) \
    futex_call(address, operation, (uint32_t)(value), deadline)
#define SYNC_LOOKS(usual_count) 1

#endif
