/*
 * books_page_write.c - a full page, sorted, as a run. See books_page.h.
 *
 * Records are first dealt out by kind and the first bits of the id, so that the rest happens within
 * the cache: those of a bucket are put in order by the next bits, which keeps the records of one
 * thread in the order they came, and the rest is books_sort.h's.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_page.h"
#include "ledger/books_sort.h"
#include "ledger/books_writer.h"

enum {
    DIGIT_BITS = 10,
    DIGITS = 1 << DIGIT_BITS,
    DIGIT_SHIFT = 64 - BOOKS_BUCKET_BITS - DIGIT_BITS,
    DIGITS_FROM = 24, /* fewer records are not worth it */
    DEAL_AHEAD = 4,
};

struct books_order {
    uint32_t starts[BOOKS_BUCKETS + 1];
    uint32_t records_max, items_max;
    struct books_record *records; /* by buckets */
    struct books_item *items;     /* of one bucket, twice */
    struct books_hashes hashes;
};

struct books_order *books_order_free(struct books_order *order)
{
    if (order == NULL)
        return NULL;
    order->records = ron_table_free(order->records);
    order->items = ron_mem_free(order->items);
    books_hashes_fini(&order->hashes);
    return ron_mem_free(order);
}

/* Records into buckets; how large is the largest? */
static uint32_t deal_out(const struct books_page *page, struct books_order *order)
{
    uint32_t *starts = order->starts;
    uint32_t sum = 0, largest = 0;

    for (uint32_t b = 0; b < BOOKS_BUCKETS; b++) {
        starts[b] = sum;
        sum += page->buckets[b];
        if (page->buckets[b] > largest)
            largest = page->buckets[b];
    }
    RON_ASSERT(sum == page->records_count);
    for (uint32_t i = 0; i < page->records_count; i++) {
        const struct books_record *record = &page->records[i];
        struct books_record *to =
            &order->records[starts[books_bucket(books_record_kind(record), record->high)]++];

        __builtin_prefetch(to + DEAL_AHEAD, 1); /* seldom near: where the bucket goes on */
        *to = *record;
    }
    for (uint32_t b = BOOKS_BUCKETS; b > 0; b--) /* each is now where the next began */
        starts[b] = starts[b - 1];
    starts[0] = 0;
    return largest;
}

static size_t digit_of(uint64_t high)
{
    return (size_t)(high >> DIGIT_SHIFT & (DIGITS - 1));
}

static void sort_by_digit(const struct books_record *records, struct books_item *to, uint32_t count)
{
    uint32_t starts[DIGITS] = {0};
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        starts[digit_of(records[i].high)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const uint32_t here = starts[d];

        starts[d] = sum;
        sum += here;
    }
    for (uint32_t i = 0; i < count; i++)
        to[starts[digit_of(records[i].high)]++] = (struct books_item){records[i].high, i};
}

struct bucket {
    const struct books_page *page;
    const struct books_record *records;
};

/* With the same first half of the id. */
static bool is_before_alike(const void *context, uint32_t a, uint32_t b)
{
    const struct bucket *bucket = context;
    const struct books_record *first = &bucket->records[a], *second = &bucket->records[b];
    uint32_t asset, other;

    if (first->low != second->low && books_record_kind(first) != LEDGER_THREAD_KEY)
        return first->low < second->low;
    asset = books_record_asset(bucket->page, first);
    other = books_record_asset(bucket->page, second);
    return asset != other ? asset < other : a < b; /* in the order they came */
}

/* The items of a bucket, in order. */
static const struct books_item *sort_bucket(const struct books_order *order,
                                            const struct bucket *bucket, uint32_t count)
{
    struct books_item *items = order->items, *scratch = order->items + order->items_max / 2;

    if (count >= DIGITS_FROM)
        sort_by_digit(bucket->records, items, count);
    else
        for (uint32_t i = 0; i < count; i++)
            items[i] = (struct books_item){bucket->records[i].high, i};
    books_sort_items(items, scratch, count, is_before_alike, bucket, bucket->records,
                     sizeof(*bucket->records));
    return items;
}

static enum ron_err make_order(const struct books_page *page, struct books_order **order,
                               struct ron_errinfo *reterr)
{
    struct books_order *made = *order != NULL ? *order : ron_mem_alloc(sizeof(*made));
    uint32_t largest;

    *order = made;
    if (made != NULL && made->records_max < page->records_count) {
        made->records = ron_table_free(made->records);
        made->records = ron_table_alloc(page->records_count, sizeof(*made->records),
                                        RON_TABLE_RANDOM); /* written in all buckets at once */
        made->records_max = made->records == NULL ? 0 : page->records_count;
    }
    if (made != NULL && made->records != NULL) {
        largest = deal_out(page, made);
        if (made->items_max < 2 * largest) {
            made->items = ron_mem_free(made->items);
            made->items = ron_mem_alloc_array((size_t)2 * largest, sizeof(*made->items));
            made->items_max = made->items == NULL ? 0 : 2 * largest;
        }
    }
    if (made == NULL || made->records == NULL || made->items == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "order %u records", page->records_count);
    return RON_ERR_OK;
}

static enum ron_err write_batches(const struct books_page *page, struct books_writer *writer,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_posting posting = {.place = {.kind = LEDGER_THREAD_BATCHES}};
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; err == RON_ERR_OK && i < rt_atomic_load_u32(&page->batches_count); i++) {
        posting.place.seq = page->first_seq + page->batch_starts[i];
        err = books_writer_add(writer, &posting, reterr);
    }
    return err;
}

static enum ron_err write_records(const struct books_page *page, const struct books_order *order,
                                  struct books_writer *writer,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint32_t b = 0; err == RON_ERR_OK && b < BOOKS_BUCKETS; b++) {
        const struct books_record *records = order->records + order->starts[b];
        const uint32_t count = order->starts[b + 1] - order->starts[b];
        const struct books_item *items = order->items;

        if (b == (uint32_t)LEDGER_THREAD_BATCHES
                     << BOOKS_BUCKET_BITS) /* no record is of this kind */
            err = write_batches(page, writer, reterr);
        if (count > 0)
            items = sort_bucket(order, &(struct bucket){page, records}, count);
        for (uint32_t i = 0; err == RON_ERR_OK && i < count; i++) {
            const struct books_posting posting = books_record_posting(page,
                                                                      &records[items[i].index]);

            err = books_writer_add(writer, &posting, reterr);
        }
    }
    return err == RON_ERR_OK ? books_writer_end(writer, reterr) : err;
}

enum ron_err books_page_write(const struct books_page *page, struct books_order **order,
                              struct io_vfs *vfs, const char *path, struct ron_errinfo *reterr)
{
    const struct books_head head = {
        .first_seq = page->first_seq,
        .last_seq = books_page_last_seq(page),
        .first_batch = page->first_batch,
        .last_batch = page->first_batch + rt_atomic_load_u32(&page->batches_count) - 1,
        .root = page->root,
    };
    struct books_writer *writer = NULL;
    enum ron_err err = make_order(page, order, reterr);

    if (err == RON_ERR_OK)
        err = books_writer_new(vfs, path, &head, 0, &(*order)->hashes, &writer, reterr);
    if (err == RON_ERR_OK)
        err = write_records(page, *order, writer, reterr);
    (void)books_writer_free(writer);
    return err;
}
