/*
 * pages.h - memory by the page, for who has much of it.
 */
#ifndef RON_BASE_PAGES_H
#define RON_BASE_PAGES_H

#include <stddef.h>

/* Give the pages of a table (mem.h) back to the system before it is freed, a few at a time: its
 * bytes are of no use any more. Freeing hundreds of megabytes at once holds the kernel's lock of
 * the memory map for as long as that takes, and every other thread that maps, unmaps or grows its
 * heap waits for it. Small tables are left alone. */
void ron_pages_give_back(void *table, size_t size);

#endif
