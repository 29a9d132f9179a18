/*
 * segment_index_items.h - the keys of an index that is being built: what its file has of them,
 * taken in any order, given back in the file's.
 *
 * Keys are hashes, so their first byte divides them evenly: each goes to one of 256 buckets as it
 * comes, and a bucket is sorted when it is asked for, in the processor's cache. Whatever the keys
 * are instead, nothing but speed and the memory for the largest bucket depends on it.
 */
#ifndef RON_IO_SEGMENT_INDEX_ITEMS_H
#define RON_IO_SEGMENT_INDEX_ITEMS_H

#include "io/segment_index.h"

enum {
    INDEX_BUCKETS = 256,
    INDEX_CHUNK_ITEMS = 63,
    INDEX_PART_BITS = 12, /* a bucket is divided into so many parts at most, as a power of two */
    INDEX_SORT_LEVELS = 16,
    INDEX_SPANS_MAX = INDEX_SORT_LEVELS * 256,
    INDEX_INSERT_MAX = 24, /* items sorted by insertion */
};

/* An entry of the file, whose order is that of these numbers, the prefix first. */
struct index_item {
    uint64_t prefix; /* the first 8 bytes of the key, as a big-endian number */
    uint64_t place;  /* offset8 above sub */
};
_Static_assert(sizeof(struct index_item) == INDEX_SORT_LEVELS, "sorted by all of it");
struct index_chunk {
    struct index_item items[INDEX_CHUNK_ITEMS];
    uint32_t before; /* the chunk before it in its bucket */
    uint32_t zero[3];
};
struct index_bucket {
    uint32_t count; /* of its items */
    uint32_t last;  /* its last chunk, */
    uint32_t room;  /* which has so much of it */
};
/* A part of the items that agree in their first `level` bytes. */
struct index_span {
    uint32_t first, count, level;
};

/* Zeroed at birth. One thread. */
struct index_items {
    struct index_chunk *chunks;
    size_t chunks_count, chunks_capacity;
    struct index_bucket buckets[INDEX_BUCKETS];
    struct index_item *sorted; /* the last bucket that was sorted */
    size_t sorted_capacity;
    struct index_span spans[INDEX_SPANS_MAX];
    uint32_t ends[1 << INDEX_PART_BITS];
};

void io_index_items_fini(struct index_items *items);
void io_index_items_reset(struct index_items *items); /* none; the memory stays */
/* One more chunk for a bucket. RON_ERR_NO_MEMORY. */
enum ron_err io_index_items_chunk(struct index_items *items, struct index_bucket *bucket,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_COLD;
/* Room to sort any of its buckets. RON_ERR_NO_MEMORY. */
enum ron_err io_index_items_reserve(struct index_items *items,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* The items of a bucket in order, until the next call; reserved before. Changes none of them, so it
 * may be asked again. */
const struct index_item *io_index_items_sort(struct index_items *items, uint32_t bucket);

/* In place, whatever the items: at most 16 passes. spans: room for INDEX_SPANS_MAX. */
void io_index_sort(struct index_item *items, size_t count, struct index_span *spans);
/* Double an array within `max` items. It has room for one more on RON_ERR_OK. */
enum ron_err io_index_grow(void **items, size_t *capacity, size_t count, size_t item_size,
                           size_t max, const char *what, struct ron_errinfo *reterr) RON_MUST_USE;

static inline struct index_item index_item_of(const struct io_index_entry *entry)
{
    return (struct index_item){.prefix = ron_load_be64(entry->key),
                               .place = (uint64_t)entry->offset8 << 32 | entry->sub};
}
/* At most IO_INDEX_KEYS_MAX. RON_ERR_NO_MEMORY. */
static inline enum ron_err index_items_add(struct index_items *items, struct index_item item,
                                           struct ron_errinfo *reterr)
{
    struct index_bucket *bucket = &items->buckets[item.prefix >> 56];
    enum ron_err err = bucket->room > 0 ? RON_ERR_OK : io_index_items_chunk(items, bucket, reterr);
    struct index_item *to;

    if (err != RON_ERR_OK)
        return err;
    to = &items->chunks[bucket->last].items[INDEX_CHUNK_ITEMS - bucket->room--];
    ron_prefetch_write((const uint8_t *)to + 64); /* for the bucket's next turns */
    *to = item;
    bucket->count++;
    return RON_ERR_OK;
}
/* In one number, since a branch for each half is guessed wrong too often. */
static inline bool index_item_before(const struct index_item *a, const struct index_item *b)
{
    return ((unsigned __int128)a->prefix << 64 | a->place) <
           ((unsigned __int128)b->prefix << 64 | b->place);
}

#endif
