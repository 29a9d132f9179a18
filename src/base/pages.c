/*
 * pages.c - see pages.h.
 */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

enum { PAGE_SIZE = 4096, PIECE_SIZE = 2 << 20, LEAST_SIZE = 2 * PIECE_SIZE };

void ron_pages_make(void *start, size_t size)
{
#if defined(MADV_POPULATE_WRITE)
    const size_t before = (size_t)(-(uintptr_t)start % PAGE_SIZE);
    size_t left = size < before ? 0 : (size - before) / PAGE_SIZE * PAGE_SIZE;

    for (uint8_t *at = (uint8_t *)start + before; left > 0;) {
        const size_t piece = left < PIECE_SIZE ? left : PIECE_SIZE;

        if (madvise(at, piece, MADV_POPULATE_WRITE) != 0)
            return;
        at += piece;
        left -= piece;
    }
#else
    (void)start;
    (void)size;
#endif
}

void ron_pages_touch(void *start, size_t size)
{
    volatile uint8_t *bytes = start;

    for (size_t at = 0; at < size; at += PAGE_SIZE - (uintptr_t)(bytes + at) % PAGE_SIZE)
        bytes[at] = bytes[at];
}

void ron_pages_give_back(void *table, size_t size)
{
    uint8_t *const start = table;
    const uintptr_t before = (uintptr_t)start % PAGE_SIZE;
    size_t at = before == 0 ? 0
                            : PAGE_SIZE - before; /* whole pages only: the rest may be others' */

    if (size < LEAST_SIZE)
        return;
    while (size - at >= PAGE_SIZE) {
        size_t piece = PIECE_SIZE - (uintptr_t)(start + at) % PIECE_SIZE; /* no huge page in two */

        if (piece > (size - at) / PAGE_SIZE * PAGE_SIZE)
            piece = (size - at) / PAGE_SIZE * PAGE_SIZE;
        (void)madvise(start + at, piece, MADV_DONTNEED); /* where not (locked ones): no harm */
        at += piece;
    }
}
