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

/* Have the whole pages among these bytes made now, by this thread, so that who uses them first does
 * not wait until the kernel has cleared them. Nothing changes but the time; bytes that others use
 * meanwhile may be among them. A kernel that cannot (before Linux 5.14) makes them as ever.
 * In pieces, for the same reason: it holds that lock, which is why it is for times when nobody else
 * is in a hurry. */
void ron_pages_make(void *start, size_t size);

/* The same for memory that nobody else uses yet, every page that a byte is in, while others work:
 * each page is touched, for which the kernel (from Linux 6.4 on) takes no lock of the whole map. A
 * thread that stepped back would hold that lock until it has the processor again, and whoever maps
 * memory meanwhile would wait for it. The bytes stay what they are. */
void ron_pages_touch(void *start, size_t size);

#endif
