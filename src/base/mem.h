/*
 * mem.h - the only way to heap memory.
 *
 * Every allocation may fail, and the caller answers RON_ERR_NO_MEMORY. A hook decides, for tests,
 * which ones do, and the simulator puts its own memory in place of the heap; production pays two
 * predictable branches for it.
 */
#ifndef RON_BASE_MEM_H
#define RON_BASE_MEM_H

#include <stdint.h>

#include "base/compiler.h"

/* Zeroed memory, 16-byte aligned, or NULL. size is 1..RON_ALLOCATION_SIZE_MAX. The caller owns it.
 */
void *ron_mem_alloc(size_t size) RON_MUST_USE __attribute__((malloc));
/* count items of item_size bytes, both > 0, zeroed; NULL also when the product is beyond the
 * limit. */
void *ron_mem_alloc_array(size_t count, size_t item_size) RON_MUST_USE;
/* Grow or shrink; on NULL the old memory is untouched and still the caller's. New bytes are not
 * zeroed. pointer may be NULL. */
void *ron_mem_resize(void *pointer, size_t size) RON_MUST_USE;
/* Accepts NULL, returns NULL: p = ron_mem_free(p). */
void *ron_mem_free(void *pointer);
/* For RON_CLEANUP(ron_mem_freep) on a pointer variable of any type. */
void ron_mem_freep(void *pointer_to_pointer);

/* Tables of megabytes that live as long as their owner: on pages of their own, so that the system
 * can be told what they are for. Small ones, those of a replaced allocator and (up to
 * RON_ALLOCATION_SIZE_MAX) those under AddressSanitizer come from where other memory does, and
 * nothing of this matters there. */
enum ron_table_kind {
    RON_TABLE_IN_ORDER, /* filled and read mostly one after the other */
    /* Used here and there, so that address translations are missed as often as the cache. From
     * 4 MiB on it asks for huge pages, of which each is resident from the first touch on. For what
     * is filled in order they are no gain, and the larger pages cost more to clear where a machine
     * lends memory and takes it back. */
    RON_TABLE_RANDOM,
    /* What goes to a disk or comes from it past the system's cache. From 1 MiB on it asks for huge
     * pages, too: the system pins page by page and tells the disk of each, where they do not follow
     * one another (2 MiB of zeros: 104 us of processor in small pages, 36 in one). */
    RON_TABLE_DISK,
};
/* count items of item_size bytes, both > 0, zeroed, 16-byte aligned (as a page is, where they have
 * pages of their own); NULL also beyond RON_TABLE_SIZE_MAX. The caller owns it. */
void *ron_table_alloc(uint64_t count, size_t item_size, enum ron_table_kind kind) RON_MUST_USE;
/* Accepts NULL, returns NULL. */
void *ron_table_free(void *table);

/* Asked before each allocation; true makes it fail. NULL removes the hook. Not synchronised:
 * install before threads start, or from the only thread. */
typedef bool ron_mem_fail_fn(size_t size, void *context);
void ron_mem_set_fail_hook(ron_mem_fail_fn *should_fail, void *context);

/* Does the hook want this one to fail? For memory that a library allocates on our behalf. */
bool ron_mem_should_fail(size_t size);

/* Where memory comes from: the heap, or the simulator's arena. The same contracts as above; sizes
 * are checked already, alloc gives zeroed memory. Not synchronised, like the hook. NULL restores
 * the heap. What one allocator gave must come back to it. */
struct ron_mem_allocator {
    void *(*alloc)(size_t size);
    void *(*resize)(void *pointer, size_t size);
    void (*free)(void *pointer);
};
void ron_mem_set_allocator(const struct ron_mem_allocator *replacement);
extern const struct ron_mem_allocator ron_mem_heap;

/* Live allocations of the heap, for leak checks in tests. */
uint64_t ron_mem_live_count(void);

#endif
