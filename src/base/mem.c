/*
 * mem.c - heap memory with a failure hook. See mem.h.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/limits.h"

enum { CACHED_SIZE_MAX = 1024 };

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

/* glibc's calloc never looks into the thread's cache of small blocks, malloc does. */
static void *heap_alloc(size_t size)
{
    void *pointer = size <= CACHED_SIZE_MAX ? malloc(size) : calloc(1, size);

    if (pointer == NULL)
        return NULL;
    if (size <= CACHED_SIZE_MAX)
        memset(pointer, 0, size);
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

/* --- Tables ------------------------------------------------------------------------------------
 * A head before the table says how to give it back. Of a mapping it is a page of its own, since
 * what is said about the table's pages does not hold for it. A table for huge pages begins and ends
 * where one does, so that all of it can lie on them.
 */

#define TABLE_MAGIC 0x7ab1e5a1u

enum {
    HEAD_SIZE = 64,
    PAGE_SIZE = 4096,
    MAPPED_LEAST = 1 << 20,
    HUGE_PAGE_SIZE = 2 << 20,
    HUGE_LEAST = 2 * HUGE_PAGE_SIZE,
};

struct table_head {
    uint32_t magic;
    size_t map_size; /* 0: of ron_mem_alloc */
};
_Static_assert(sizeof(struct table_head) <= HEAD_SIZE, "the head fits before the table");

static struct table_head *head_of(void *table)
{
    struct table_head *head = (struct table_head *)((uint8_t *)table - HEAD_SIZE);

    RON_ASSERT(head->magic == TABLE_MAGIC);
    return head;
}

/* size bytes, aligned, behind a page for the head; what the alignment leaves over is given back. */
static uint8_t *map_aligned(size_t size, size_t alignment)
{
    const size_t map_size = PAGE_SIZE + size + (alignment - PAGE_SIZE);
    uint8_t *map = mmap(NULL, map_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before, after;

    if (map == MAP_FAILED)
        return NULL;
    before = (size_t)(-(uintptr_t)(map + PAGE_SIZE)) % alignment;
    after = map_size - before - PAGE_SIZE - size;
    if (before > 0)
        RON_MUST_ZERO(munmap(map, before));
    if (after > 0)
        RON_MUST_ZERO(munmap(map + map_size - after, after));
    return map + before + PAGE_SIZE;
}

static void *map_table(size_t wanted_size, enum ron_table_kind kind)
{
    const bool is_huge = kind == RON_TABLE_DISK ||
                         (kind == RON_TABLE_RANDOM && wanted_size >= HUGE_LEAST);
    const size_t alignment = is_huge ? HUGE_PAGE_SIZE : PAGE_SIZE;
    const size_t size = (wanted_size + alignment - 1) / alignment * alignment;
    uint8_t *table = map_aligned(size, alignment);

    if (table == NULL)
        return NULL;
    *(struct table_head *)(table - HEAD_SIZE) = (struct table_head){TABLE_MAGIC, PAGE_SIZE + size};
    if (is_huge)
        (void)!madvise(table, size, MADV_HUGEPAGE); /* a kernel without them refuses */
    atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    return table;
}

void *ron_table_alloc(uint64_t count, size_t item_size, enum ron_table_kind kind)
{
    struct table_head *head;
    size_t size;

    if (__builtin_mul_overflow(count, item_size, &size) || size > RON_TABLE_SIZE_MAX)
        return NULL;
    RON_ASSERT(size > 0);
    if (size >= MAPPED_LEAST && allocator == NULL &&
        (!RON_ASAN || size > RON_ALLOCATION_SIZE_MAX - HEAD_SIZE))
        return ron_mem_should_fail(size) ? NULL : map_table(size, kind);
    head = ron_mem_alloc(size + HEAD_SIZE);
    if (head == NULL)
        return NULL;
    *head = (struct table_head){TABLE_MAGIC, 0};
    return (uint8_t *)head + HEAD_SIZE;
}

void *ron_table_free(void *table)
{
    struct table_head *head;
    uint64_t live_before;

    if (table == NULL)
        return NULL;
    head = head_of(table);
    head->magic = ~TABLE_MAGIC;
    if (head->map_size == 0)
        return ron_mem_free(head);
    RON_MUST_ZERO(munmap((uint8_t *)table - PAGE_SIZE, head->map_size));
    live_before = atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
    RON_ASSERT(live_before > 0);
    return NULL;
}

uint64_t ron_mem_live_count(void)
{
    return atomic_load_explicit(&live_count, memory_order_relaxed);
}
