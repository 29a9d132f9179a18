/*
 * mem.c - heap memory with a failure hook. See mem.h.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"

static ron_mem_fail_fn *fail_hook;
static void *fail_context;
static const struct ron_mem_allocator *allocator; /* NULL: the heap */
static _Atomic uint64_t live_count;

void ron_mem_set_fail_hook(ron_mem_fail_fn *should_fail, void *context)
{
    fail_hook = should_fail;
    fail_context = context;
}

void ron_mem_set_allocator(const struct ron_mem_allocator *replacement)
{
    allocator = replacement;
}

bool ron_mem_should_fail(size_t size)
{
    return RON_UNLIKELY(fail_hook != NULL) && fail_hook(size, fail_context);
}

static bool refused(size_t size)
{
    RON_ASSERT(size > 0);
    return size > RON_ALLOCATION_SIZE_MAX || ron_mem_should_fail(size);
}

static void *heap_alloc(size_t size)
{
    void *pointer = calloc(1, size);

    if (pointer != NULL)
        atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    return pointer;
}

static void *heap_resize(void *pointer, size_t size)
{
    void *resized = realloc(pointer, size);

    if (resized != NULL && pointer == NULL)
        atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    return resized;
}

static void heap_free(void *pointer)
{
    uint64_t live_before = atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);

    RON_ASSERT(live_before > 0);
    free(pointer);
}

const struct ron_mem_allocator ron_mem_heap = {heap_alloc, heap_resize, heap_free};

void *ron_mem_alloc(size_t size)
{
    if (refused(size))
        return NULL;
    return RON_UNLIKELY(allocator != NULL) ? allocator->alloc(size) : heap_alloc(size);
}

void *ron_mem_alloc_array(size_t count, size_t item_size)
{
    size_t size;

    if (__builtin_mul_overflow(count, item_size, &size))
        return NULL;
    return ron_mem_alloc(size);
}

void *ron_mem_resize(void *pointer, size_t size)
{
    if (refused(size))
        return NULL;
    return RON_UNLIKELY(allocator != NULL) ? allocator->resize(pointer, size)
                                           : heap_resize(pointer, size);
}

void *ron_mem_free(void *pointer)
{
    if (pointer == NULL)
        return NULL;
    if (RON_UNLIKELY(allocator != NULL))
        allocator->free(pointer);
    else
        heap_free(pointer);
    return NULL;
}

void ron_mem_freep(void *pointer_to_pointer)
{
    void *pointer;

    memcpy(&pointer, pointer_to_pointer, sizeof(pointer));
    pointer = ron_mem_free(pointer);
    memcpy(pointer_to_pointer, &pointer, sizeof(pointer));
}

uint64_t ron_mem_live_count(void)
{
    return atomic_load_explicit(&live_count, memory_order_relaxed);
}
