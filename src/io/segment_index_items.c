/*
 * segment_index_items.c - buckets of keys, and their order. See segment_index_items.h.
 */
#include "io/segment_index_items.h"

#include "base/assert.h"
#include "base/mem.h"

enum {
    CAPACITY_MIN = 16,
    CHUNKS_MAX = IO_INDEX_KEYS_MAX / INDEX_CHUNK_ITEMS + 1 + INDEX_BUCKETS,
    PART_ITEMS = 2, /* as many parts as leave about so many in each */
};

enum ron_err io_index_grow(void **items, size_t *capacity, size_t count, size_t item_size,
                           size_t max, const char *what, struct ron_errinfo *reterr)
{
    size_t wanted = *capacity < CAPACITY_MIN ? CAPACITY_MIN : *capacity * 2;
    void *larger;

    if (count >= max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %zu %s in one index", max, what);
    if (count < *capacity)
        return RON_ERR_OK;
    if (wanted > max)
        wanted = max;
    larger = ron_mem_resize(*items, wanted * item_size);
    if (larger == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu %s of an index", wanted, what);
    *items = larger;
    *capacity = wanted;
    return RON_ERR_OK;
}

void io_index_items_fini(struct index_items *items)
{
    items->chunks = ron_mem_free(items->chunks);
    items->sorted = ron_mem_free(items->sorted);
}

void io_index_items_reset(struct index_items *items)
{
    memset(items->buckets, 0, sizeof(items->buckets));
    items->chunks_count = 0;
}

enum ron_err io_index_items_chunk(struct index_items *items, struct index_bucket *bucket,
                                  struct ron_errinfo *reterr)
{
    void *chunks = items->chunks;
    enum ron_err err = io_index_grow(&chunks, &items->chunks_capacity, items->chunks_count,
                                     sizeof(*items->chunks), CHUNKS_MAX, "chunks of keys", reterr);

    if (err != RON_ERR_OK)
        return err;
    items->chunks = chunks;
    items->chunks[items->chunks_count].before = bucket->last;
    bucket->last = (uint32_t)items->chunks_count++;
    bucket->room = INDEX_CHUNK_ITEMS;
    return RON_ERR_OK;
}

enum ron_err io_index_items_reserve(struct index_items *items, struct ron_errinfo *reterr)
{
    size_t most = 0;
    struct index_item *larger;

    for (size_t i = 0; i < INDEX_BUCKETS; i++)
        most = items->buckets[i].count > most ? items->buckets[i].count : most;
    if (most <= items->sorted_capacity)
        return RON_ERR_OK;
    most += most / 8; /* a little more, for the largest of the next segment */
    larger = ron_mem_resize(items->sorted, most * sizeof(*larger));
    if (larger == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%zu keys of an index to sort", most);
    items->sorted = larger;
    items->sorted_capacity = most;
    return RON_ERR_OK;
}

/* --- Order -------------------------------------------------------------------------------------
 */

static void sort_by_insertion(struct index_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct index_item item = items[i];
        size_t at = i;

        for (; at > 0 && index_item_before(&item, &items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* The byte of a level, the most significant first. */
static uint8_t byte_at(const struct index_item *item, uint32_t level)
{
    return (uint8_t)(level < 8 ? item->prefix >> (56 - 8 * level)
                               : item->place >> (120 - 8 * level));
}

/* Put every item into the part of its byte; ends[b] is where part b ends. */
static void split(struct index_item *items, size_t count, uint32_t level, size_t ends[256])
{
    size_t next[256];
    size_t sum = 0;

    RON_ASSERT(level < INDEX_SORT_LEVELS);
    memset(ends, 0, 256 * sizeof(*ends));
    for (size_t i = 0; i < count; i++)
        ends[byte_at(&items[i], level)]++;
    for (size_t b = 0; b < 256; b++) {
        next[b] = sum;
        sum += ends[b];
        ends[b] = sum;
    }
    for (size_t b = 0; b < 256; b++) {
        while (next[b] < ends[b]) {
            struct index_item item = items[next[b]];
            size_t to;

            while ((to = byte_at(&item, level)) != b) {
                struct index_item other = items[next[to]];

                items[next[to]++] = item;
                item = other;
            }
            items[next[b]++] = item;
        }
    }
}

void io_index_sort(struct index_item *items, size_t count, struct index_span *spans)
{
    size_t spans_count = 0;

    RON_ASSERT(count <= IO_INDEX_KEYS_MAX);
    if (count > 1)
        spans[spans_count++] = (struct index_span){0, (uint32_t)count, 0};
    while (spans_count > 0) {
        struct index_span span = spans[--spans_count];
        struct index_item *part = items + span.first;
        size_t ends[256];
        size_t begin = 0;

        if (span.count <= INDEX_INSERT_MAX) {
            sort_by_insertion(part, span.count);
            continue;
        }
        split(part, span.count, span.level, ends);
        for (size_t b = 0; b < 256; begin = ends[b++]) {
            size_t size = ends[b] - begin;

            if (size < 2 || span.level + 1 == INDEX_SORT_LEVELS)
                continue;
            /* One span leaves and at most 256 of the next of 16 levels come. */
            RON_ASSERT(spans_count < INDEX_SPANS_MAX);
            spans[spans_count++] = (struct index_span){span.first + (uint32_t)begin, (uint32_t)size,
                                                       span.level + 1};
        }
    }
}

/* --- One bucket --------------------------------------------------------------------------------
 */

/* Its part is in the bits behind the first byte. */
static uint32_t part_of(const struct index_item *item, uint32_t bits)
{
    return (uint32_t)(item->prefix >> (56 - bits)) & ((1u << bits) - 1);
}

static uint32_t bits_for(uint32_t count)
{
    uint32_t bits = 0;

    while (bits < INDEX_PART_BITS && count >> bits > PART_ITEMS)
        bits++;
    return bits;
}

/* How many there are of each part, by which ends[p] becomes where part p begins. */
static void count_parts(struct index_items *items, const struct index_bucket *bucket, uint32_t bits)
{
    uint32_t chunk = bucket->last;
    uint32_t in_chunk = INDEX_CHUNK_ITEMS - bucket->room;
    uint32_t sum = 0;

    memset(items->ends, 0, sizeof(*items->ends) << bits);
    for (uint32_t left = bucket->count; left > 0; in_chunk = INDEX_CHUNK_ITEMS) {
        const struct index_chunk *here = &items->chunks[chunk];
        const struct index_chunk *next = &items->chunks[here->before];

        for (uint32_t i = 0; i < in_chunk; i++) {
            ron_prefetch(&next->items[i]); /* they were written long ago */
            items->ends[part_of(&here->items[i], bits)]++;
        }
        left -= in_chunk;
        chunk = here->before;
    }
    for (uint32_t p = 0; p < 1u << bits; p++) {
        const uint32_t count = items->ends[p];

        items->ends[p] = sum;
        sum += count;
    }
    RON_ASSERT(sum == bucket->count);
}

/* Every item to its part; ends[p] becomes where part p ends. */
static void gather_parts(struct index_items *items, const struct index_bucket *bucket,
                         uint32_t bits)
{
    uint32_t chunk = bucket->last;
    uint32_t in_chunk = INDEX_CHUNK_ITEMS - bucket->room;

    for (uint32_t left = bucket->count; left > 0; in_chunk = INDEX_CHUNK_ITEMS) {
        const struct index_chunk *here = &items->chunks[chunk];

        for (uint32_t i = 0; i < in_chunk; i++)
            items->sorted[items->ends[part_of(&here->items[i], bits)]++] = here->items[i];
        left -= in_chunk;
        chunk = here->before;
    }
}

const struct index_item *io_index_items_sort(struct index_items *items, uint32_t bucket)
{
    const struct index_bucket *from = &items->buckets[bucket];
    const uint32_t bits = bits_for(from->count);
    uint32_t begin = 0;

    RON_ASSERT(from->count <= items->sorted_capacity);
    count_parts(items, from, bits);
    gather_parts(items, from, bits);
    for (uint32_t p = 0; p < 1u << bits; begin = items->ends[p++]) {
        if (items->ends[p] - begin > INDEX_INSERT_MAX)
            io_index_sort(items->sorted + begin, items->ends[p] - begin, items->spans);
    }
    /* Parts are in order, so no item moves further than its part, which is small or sorted. */
    sort_by_insertion(items->sorted, from->count);
    return items->sorted;
}
