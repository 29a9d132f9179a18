/*
 * books_sort.h - put items in order, by digits of their keys. Pure.
 *
 * An item is one number: the first bits of a key, and in the low bits the index of what it stands
 * for. No two are the same, and those with the same bits of a key stay in the order of their
 * indexes. Dealt out by the next digit of their keys they are nearly in order, and what is out of
 * place is put where it belongs, one by one. Where that is much, because somebody chose ids that
 * are alike, all of them are merged instead.
 *
 * What the bits of a key cannot tell apart are *ties*. Most of them are of one thread, and in
 * order; whoever finds others has the ties sorted.
 */
#ifndef RON_LEDGER_BOOKS_SORT_H
#define RON_LEDGER_BOOKS_SORT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOOKS_INDEX_BITS = 22,
    BOOKS_DIGIT_BITS = 14, /* at most */
};

/* Memory for digits. */
struct books_digits {
    uint32_t starts[1 << BOOKS_DIGIT_BITS];
};

/* The first bits of a key. */
static inline uint64_t books_item(uint64_t key, uint32_t index)
{
    return (key & ~(uint64_t)0 << BOOKS_INDEX_BITS) | index;
}
static inline uint32_t books_item_index(uint64_t item)
{
    return (uint32_t)item & ((1u << BOOKS_INDEX_BITS) - 1);
}
static inline bool books_item_ties(uint64_t a, uint64_t b)
{
    return (a ^ b) >> BOOKS_INDEX_BITS == 0;
}

/* In any order; `other` is as large. They are in order in the one or the other: what it returns. */
uint64_t *books_sort_items(uint64_t *items, uint64_t *other, size_t count,
                           struct books_digits *digits);

/* Does what stands at index a come before what stands at index b? A total order. */
typedef bool books_before_fn(const void *context, uint32_t a, uint32_t b);
/* All items are in order but for ties; `scratch` is as large. */
void books_sort_ties(uint64_t *items, uint64_t *scratch, size_t count, books_before_fn *before,
                     const void *context);

#endif
