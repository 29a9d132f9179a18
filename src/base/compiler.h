/*
 * compiler.h - the few language extensions ron uses, named once.
 */
#ifndef RON_BASE_COMPILER_H
#define RON_BASE_COMPILER_H

#include <stddef.h>

#include "ron/error.h"

#define RON_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RON_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RON_UNUSED      __attribute__((unused))
#define RON_NORETURN    __attribute__((noreturn))
#define RON_COLD        __attribute__((cold))
#define RON_HOT_INLINE  inline __attribute__((always_inline)) /* where a call would cost as much */
#define RON_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))

#define RON_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Run fn(&variable) when the variable leaves its scope. For memory and descriptors, never locks. */
#define RON_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Move a pointer out of a variable, leaving NULL: the value is the old pointer. */
#define RON_TAKE(pointer)                                \
    (__extension__({                                     \
        __typeof__(pointer) *ron_take_from = &(pointer); \
        __typeof__(pointer) ron_taken = *ron_take_from;  \
        *ron_take_from = NULL;                           \
        ron_taken;                                       \
    }))

/* Ask for memory that will be read, or written, soon. gcc takes a prefetch for nothing and drops
 * calls of a function that does nothing else; the empty statement keeps them. */
static RON_HOT_INLINE void ron_prefetch(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("");
}
static RON_HOT_INLINE void ron_prefetch_write(const void *at)
{
    __builtin_prefetch(at, 1);
    __asm__ volatile("");
}

/* 1 only where AddressSanitizer or ThreadSanitizer instruments this file. */
#if defined(__SANITIZE_ADDRESS__)
#define RON_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define RON_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RON_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define RON_TSAN 1
#endif
#endif
#ifndef RON_ASAN
#define RON_ASAN 0
#endif
#ifndef RON_TSAN
#define RON_TSAN 0
#endif

#endif
