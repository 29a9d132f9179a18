/*
 * arena.h - memory for one request: taken piece by piece, given back all at once.
 *
 * One block, sized at birth, never grown: the arena's size is the request's memory bound, and
 * exhausting it is RON_ERR_TOO_LARGE. ron_arena_alloc is a pointer bump; there is no free. The far
 * end of the block serves as a stack, for a parser that must remember things only while they are
 * open and hands out lasting pieces meanwhile.
 */
#ifndef RON_BASE_ARENA_H
#define RON_BASE_ARENA_H

#include "base/bytes.h"

struct ron_arena {
    uint8_t *block;
    size_t size;       /* of the block, fixed at birth */
    size_t used_size;  /* handed out, alignment included */
    size_t stack_size; /* pushed at the far end */
    size_t peak_size;  /* largest sum of both since birth */
};

/* Make an arena of exactly size bytes. RON_ERR_NO_MEMORY. The caller calls ron_arena_fini. */
enum ron_err ron_arena_init(struct ron_arena *arena, size_t size,
                            struct ron_errinfo *reterr) RON_MUST_USE;
void ron_arena_fini(struct ron_arena *arena); /* accepts a zeroed arena */
/* Give back everything handed out or pushed since birth; it must not be used again. */
void ron_arena_reset(struct ron_arena *arena);

/* Uninitialised memory, 16-byte aligned, living until reset; NULL when it does not fit. size > 0.
 */
void *ron_arena_alloc(struct ron_arena *arena, size_t size) RON_MUST_USE;
/* The same, byte-aligned: for text. */
void *ron_arena_alloc_bytes(struct ron_arena *arena, size_t size) RON_MUST_USE;
/* A copy of slice that lives in the arena. RON_ERR_TOO_LARGE when it does not fit. */
enum ron_err ron_arena_copy(struct ron_arena *arena, struct ron_slice slice,
                            struct ron_slice *ret_copy, struct ron_errinfo *reterr) RON_MUST_USE;

/* Scratch use: remember the fill level, then go back to it. */
static inline size_t ron_arena_mark(const struct ron_arena *arena)
{
    return arena->used_size;
}
void ron_arena_rewind(struct ron_arena *arena, size_t mark);

/* Push size bytes, not aligned: the result lies directly below what was pushed before, and stays
 * where it is until popped. NULL when it does not fit. One user at a time. */
void *ron_arena_push(struct ron_arena *arena, size_t size) RON_MUST_USE;
void ron_arena_pop(struct ron_arena *arena, size_t size);

#endif
