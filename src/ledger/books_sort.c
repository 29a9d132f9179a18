/*
 * books_sort.c - items by digits, by insertion, merged. See books_sort.h.
 */
#include "ledger/books_sort.h"

#include <string.h>

enum {
    MOVES_MAX = 8,    /* for each item, before they are merged */
    DIGITS_FROM = 24, /* fewer are not worth it */
};

static bool is_less(const void *context, uint64_t a, uint64_t b)
{
    (void)context;
    return a < b;
}

struct ties {
    books_before_fn *before;
    const void *context;
};

static bool is_before(const void *context, uint64_t a, uint64_t b)
{
    const struct ties *ties = context;

    return ties->before(ties->context, books_item_index(a), books_item_index(b));
}

typedef bool less_fn(const void *context, uint64_t a, uint64_t b);

static RON_HOT_INLINE void merge_items(uint64_t *items, uint64_t *scratch, size_t count,
                                       less_fn *less, const void *context)
{
    uint64_t *from = items, *to = scratch;

    for (size_t width = 1; width < count; width *= 2) {
        uint64_t *swap = from;

        for (size_t left = 0; left < count; left += 2 * width) {
            const size_t middle = left + width < count ? left + width : count;
            const size_t right = left + 2 * width < count ? left + 2 * width : count;
            size_t a = left, b = middle;

            for (size_t i = left; i < right; i++) {
                const bool second = a == middle || (b < right && less(context, from[b], from[a]));

                to[i] = second ? from[b++] : from[a++];
            }
        }
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}

static RON_HOT_INLINE void insert_items(uint64_t *items, uint64_t *scratch, size_t count,
                                        less_fn *less, const void *context)
{
    size_t moves_left = MOVES_MAX * count;

    for (size_t i = 1; i < count; i++) {
        const uint64_t item = items[i];
        size_t at = i;

        for (; at > 0 && less(context, item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
        if (i - at > moves_left) {
            merge_items(items, scratch, count, less, context);
            return;
        }
        moves_left -= i - at;
    }
}

/* Each item to the right past those that are smaller: two of one digit are then in order, which is
 * nearly all that is left to do, without a question that is answered wrong every second time. */
static void lift_items(uint64_t *items, size_t count)
{
    uint64_t most = count > 0 ? items[0] : 0;

    for (size_t i = 1; i < count; i++) {
        const uint64_t item = items[i];

        items[i - 1] = item < most ? item : most;
        most = item < most ? most : item;
    }
    if (count > 0)
        items[count - 1] = most;
}

void books_sort_ties(uint64_t *items, uint64_t *scratch, size_t count, books_before_fn *before,
                     const void *context)
{
    const struct ties ties = {before, context};

    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && books_item_ties(items[end], items[i]);)
            end++;
        insert_items(items + i, scratch, end - i, is_before, &ties);
    }
}

/* Into `to`, by the first bits in which they differ. */
static void deal_out(const uint64_t *items, uint64_t *to, size_t count, struct books_digits *digits)
{
    uint32_t *starts = digits->starts;
    uint64_t least = UINT64_MAX, most = 0;
    unsigned bits = 1, range_bits, shift;
    uint32_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        least = items[i] < least ? items[i] : least;
        most = items[i] > most ? items[i] : most;
    }
    range_bits = 64 - (unsigned)__builtin_clzll((most - least) | 1);
    while (bits < BOOKS_DIGIT_BITS && count >> bits > 0)
        bits++;
    shift = range_bits > bits ? range_bits - bits : 0;
    memset(starts, 0, sizeof(*starts) << bits);
    for (size_t i = 0; i < count; i++)
        starts[(items[i] - least) >> shift]++;
    for (size_t d = 0; d < (size_t)1 << bits; d++) {
        const uint32_t here = starts[d];

        starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[(items[i] - least) >> shift]++] = items[i];
}

uint64_t *books_sort_items(uint64_t *items, uint64_t *other, size_t count,
                           struct books_digits *digits)
{
    uint64_t *dealt = items, *scratch = other;

    if (count >= DIGITS_FROM) {
        deal_out(items, other, count, digits);
        dealt = other;
        scratch = items;
    }
    lift_items(dealt, count);
    insert_items(dealt, scratch, count, is_less, NULL);
    return dealt;
}
