/*
 * books_sort.c - items in any order, merged. See books_sort.h.
 */
#include "ledger/books_sort.h"

#include <string.h>

void books_merge_items(struct books_item *items, struct books_item *scratch, size_t count,
                       books_alike_fn *alike, const void *context)
{
    struct books_item *from = items, *to = scratch;

    for (size_t width = 1; width < count; width *= 2) {
        struct books_item *swap = from;

        for (size_t left = 0; left < count; left += 2 * width) {
            const size_t middle = left + width < count ? left + width : count;
            const size_t right = left + 2 * width < count ? left + 2 * width : count;
            size_t a = left, b = middle;

            for (size_t i = left; i < right; i++) {
                const bool second = a == middle ||
                                    (b < right &&
                                     books_item_before(&from[b], &from[a], alike, context));

                to[i] = second ? from[b++] : from[a++];
            }
        }
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}
