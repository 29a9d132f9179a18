/*
 * books_sort.h - put items in order that nearly are. Pure.
 *
 * Whoever sorts deals items out by the digits of their keys first, which leaves little to do: what
 * is out of place is put where it belongs, one by one. Where that is much, because somebody chose
 * ids that are alike, all of them are merged instead.
 */
#ifndef RON_LEDGER_BOOKS_SORT_H
#define RON_LEDGER_BOOKS_SORT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct books_item {
    uint64_t key;
    uint32_t index; /* of what it stands for; no two are the same */
};

/* Of two with the same key: does the one of index a come before the one of index b? A total
 * order. */
typedef bool books_alike_fn(const void *context, uint32_t a, uint32_t b);

enum {
    BOOKS_MOVES_MAX = 8,   /* for each item, before they are merged */
    BOOKS_SORT_AHEAD = 12, /* items: what they stand for is fetched while others are looked at */
};

/* In any order; `scratch` is as large. */
void books_merge_items(struct books_item *items, struct books_item *scratch, size_t count,
                       books_alike_fn *alike, const void *context);

static RON_HOT_INLINE bool books_item_before(const struct books_item *a, const struct books_item *b,
                                             books_alike_fn *alike, const void *context)
{
    return a->key != b->key ? a->key < b->key : alike(context, a->index, b->index);
}

/* What they stand for are things of thing_size bytes. */
static RON_HOT_INLINE void books_sort_items(struct books_item *items, struct books_item *scratch,
                                            size_t count, books_alike_fn *alike,
                                            const void *context, const void *things,
                                            size_t thing_size)
{
    size_t moves_left = BOOKS_MOVES_MAX * count;

    for (size_t i = 1; i < count; i++) {
        const struct books_item item = items[i];
        size_t at = i;

        if (i + BOOKS_SORT_AHEAD < count)
            __builtin_prefetch((const char *)things +
                               items[i + BOOKS_SORT_AHEAD].index * thing_size);
        for (; at > 0 && books_item_before(&item, &items[at - 1], alike, context); at--)
            items[at] = items[at - 1];
        items[at] = item;
        if (i - at > moves_left) {
            books_merge_items(items, scratch, count, alike, context);
            return;
        }
        moves_left -= i - at;
    }
}

#endif
