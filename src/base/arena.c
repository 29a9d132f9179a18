/*
 * arena.c - the per-request memory block. See arena.h.
 */
#include "base/arena.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/mem.h"

#if RON_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, size)   ASAN_POISON_MEMORY_REGION(p, size)
#define UNPOISON(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#else
#define POISON(p, size)   ((void)0)
#define UNPOISON(p, size) ((void)0)
#endif

enum { ALIGNMENT = 16 };

enum ron_err ron_arena_init(struct ron_arena *arena, size_t size, struct ron_errinfo *reterr)
{
    uint8_t *block;

    RON_ASSERT(size > 0);
    block = ron_mem_alloc(size);
    if (block == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "an arena of %zu bytes", size);
    *arena = (struct ron_arena){.block = block, .size = size};
    POISON(block, size);
    return RON_ERR_OK;
}

void ron_arena_fini(struct ron_arena *arena)
{
    if (arena->block != NULL)
        UNPOISON(arena->block, arena->size);
    arena->block = ron_mem_free(arena->block);
    arena->size = 0;
    arena->used_size = 0;
    arena->stack_size = 0;
}

void ron_arena_rewind(struct ron_arena *arena, size_t mark)
{
    RON_ASSERT(mark <= arena->used_size);
    POISON(arena->block + mark, arena->used_size - mark);
    arena->used_size = mark;
}

void ron_arena_reset(struct ron_arena *arena)
{
    ron_arena_pop(arena, arena->stack_size);
    ron_arena_rewind(arena, 0);
}

static void note_peak(struct ron_arena *arena)
{
    size_t size = arena->used_size + arena->stack_size;

    RON_ASSERT(size <= arena->size);
    if (size > arena->peak_size)
        arena->peak_size = size;
}

static void *take(struct ron_arena *arena, size_t start, size_t size)
{
    size_t limit = arena->size - arena->stack_size;

    RON_ASSERT(size > 0);
    if (start > limit || size > limit - start)
        return NULL;
    arena->used_size = start + size;
    note_peak(arena);
    UNPOISON(arena->block + start, size);
    return arena->block + start;
}

void *ron_arena_alloc(struct ron_arena *arena, size_t size)
{
    return take(arena, (arena->used_size + (ALIGNMENT - 1)) & ~(size_t)(ALIGNMENT - 1), size);
}

void *ron_arena_alloc_bytes(struct ron_arena *arena, size_t size)
{
    return take(arena, arena->used_size, size);
}

enum ron_err ron_arena_copy(struct ron_arena *arena, struct ron_slice slice,
                            struct ron_slice *ret_copy, struct ron_errinfo *reterr)
{
    uint8_t *copy;

    if (slice.size == 0) {
        *ret_copy = (struct ron_slice){0};
        return RON_ERR_OK;
    }
    copy = ron_arena_alloc_bytes(arena, slice.size);
    if (copy == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE,
                        "%zu bytes do not fit an arena of %zu with %zu used", slice.size,
                        arena->size, arena->used_size);
    memcpy(copy, slice.data, slice.size);
    *ret_copy = (struct ron_slice){copy, slice.size};
    return RON_ERR_OK;
}

void *ron_arena_push(struct ron_arena *arena, size_t size)
{
    uint8_t *pushed;

    RON_ASSERT(size > 0);
    if (size > arena->size - arena->stack_size - arena->used_size)
        return NULL;
    arena->stack_size += size;
    note_peak(arena);
    pushed = arena->block + (arena->size - arena->stack_size);
    UNPOISON(pushed, size);
    return pushed;
}

void ron_arena_pop(struct ron_arena *arena, size_t size)
{
    RON_ASSERT(size <= arena->stack_size);
    POISON(arena->block + (arena->size - arena->stack_size), size);
    arena->stack_size -= size;
}
