/*
 * books_page_write.c - a full page, sorted, as a run. See books_page.h.
 *
 * Records are first dealt out by kind and the first bits of the id, so that the rest happens within
 * the cache: those of a bucket are put in order by the next bits (books_sort.h), which keeps the
 * records of one thread in the order they came. To fetch each from where it was when its turn comes
 * costs more than to move it once: they come two in a line of the cache.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_page.h"
#include "ledger/books_sort.h"
#include "ledger/books_writer.h"

_Static_assert((LEDGER_BOOKS_PAGE_MAX + LEDGER_BATCH_ENTRIES_MAX) * BOOKS_ENTRY_RECORDS <
                   1 << BOOKS_INDEX_BITS,
               "an index of a record");

enum { DEAL_AHEAD = 4 };

struct books_order {
    uint32_t starts[BOOKS_BUCKETS + 1];
    uint32_t records_max, items_max;
    struct books_record *records; /* by buckets */
    uint64_t *items;              /* of one bucket, three times: in order, and to sort */
    struct books_digits digits;
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

/* Records into buckets. */
static void deal_out(const struct books_page *page, struct books_order *order)
{
    uint32_t *starts = order->starts;

    for (uint32_t i = 0; i < page->records_count; i++) {
        const struct books_record *record = &page->records[i];
        struct books_record *to =
            &order->records[starts[books_bucket(books_record_kind(record), record->high)]++];

        ron_prefetch_write(to + DEAL_AHEAD); /* seldom near: where the bucket goes on */
        *to = *record;
    }
    for (uint32_t b = BOOKS_BUCKETS; b > 0; b--) /* each is now where the next began */
        starts[b] = starts[b - 1];
    starts[0] = 0;
}

/* Where buckets begin; how large is the largest? */
static uint32_t find_starts(const struct books_page *page, struct books_order *order)
{
    uint32_t sum = 0, largest = 0;

    for (uint32_t b = 0; b < BOOKS_BUCKETS; b++) {
        order->starts[b] = sum;
        sum += page->buckets[b];
        if (page->buckets[b] > largest)
            largest = page->buckets[b];
    }
    RON_ASSERT(sum == page->records_count);
    return largest;
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
    largest = made == NULL ? 0 : find_starts(page, made);
    if (made != NULL && made->items_max < largest) {
        made->items = ron_mem_free(made->items);
        made->items = ron_mem_alloc_array((size_t)3 * largest, sizeof(*made->items));
        made->items_max = made->items == NULL ? 0 : largest;
    }
    if (made == NULL || made->records == NULL || made->items == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "order %u records", page->records_count);
    deal_out(page, made);
    return RON_ERR_OK;
}

struct bucket {
    const struct books_page *page;
    const struct books_record *records;
    size_t count;
};

/* Of one kind, whatever their ids. */
static bool is_before(const void *context, uint32_t a, uint32_t b)
{
    const struct bucket *bucket = context;
    const struct books_record *first = &bucket->records[a], *second = &bucket->records[b];
    uint32_t asset, other;

    if (first->high != second->high)
        return first->high < second->high;
    if (first->low != second->low && books_record_kind(first) != LEDGER_THREAD_KEY)
        return first->low < second->low;
    asset = books_record_asset(bucket->page, first);
    other = books_record_asset(bucket->page, second);
    return asset != other ? asset < other : a < b; /* in the order they came */
}

static RON_HOT_INLINE enum ron_err write_record(const struct books_page *page,
                                                const struct books_record *record,
                                                struct books_writer *writer,
                                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_posting posting;

    if (books_record_kind(record) == LEDGER_THREAD_ACCOUNT &&
        (record->what & BOOKS_RECORD_WIDE) == 0)
        return books_writer_add_brief(writer,
                                      &(struct books_brief){
                                          .high = record->high,
                                          .low = record->low,
                                          .amount = record->value >> BOOKS_VALUE_AMOUNT,
                                          .seq = books_record_seq(page, record),
                                          .asset = record->value & BOOKS_VALUE_ASSET,
                                          .nonce = (record->what & BOOKS_RECORD_NONCE) != 0,
                                          .signs = record->what >> BOOKS_RECORD_SIGNS &
                                                   (BOOKS_AMOUNT_NEGATIVE | BOOKS_AMOUNT_MINT),
                                      },
                                      reterr);
    posting = books_record_posting(page, record);
    return books_writer_add_slow(writer, &posting, reterr);
}

/* Are all ties of one thread, and so in order? Without a question for each of them, which would be
 * answered wrong often. */
static bool are_ties_alike(const struct bucket *bucket, const uint64_t *items)
{
    const struct books_record *before = &bucket->records[books_item_index(items[0])];
    bool alike = true;

    for (size_t i = 1; i < bucket->count; i++) {
        const struct books_record *record = &bucket->records[books_item_index(items[i])];
        const uint64_t differ = (record->high ^ before->high) | (record->low ^ before->low) |
                                ((record->value ^ before->value) & BOOKS_VALUE_ASSET) |
                                ((record->what | before->what) & BOOKS_RECORD_WIDE);

        alike &= !books_item_ties(items[i], items[i - 1]) | (differ == 0);
        before = record;
    }
    return alike;
}

/* The first bits of an id are those of the bucket: the next ones tell its records apart. */
static const uint64_t *sort_bucket(struct books_order *order, const struct bucket *bucket)
{
    uint64_t *items;

    for (size_t i = 0; i < bucket->count; i++)
        order->items[i] = books_item(bucket->records[i].high << BOOKS_BUCKET_BITS, (uint32_t)i);
    items = books_sort_items(order->items, order->items + order->items_max, bucket->count,
                             &order->digits);
    if (!are_ties_alike(bucket, items))
        books_sort_ties(items, order->items + (size_t)2 * order->items_max, bucket->count,
                        is_before, bucket);
    return items;
}

static enum ron_err write_bucket(const struct bucket *bucket, struct books_order *order,
                                 struct books_writer *writer, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t *items = sort_bucket(order, bucket);
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < bucket->count; i++)
        err = write_record(bucket->page, &bucket->records[books_item_index(items[i])], writer,
                           reterr);
    return err;
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

static enum ron_err write_records(const struct books_page *page, struct books_order *order,
                                  struct books_writer *writer,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint32_t b = 0; err == RON_ERR_OK && b < BOOKS_BUCKETS; b++) {
        if (b == (uint32_t)LEDGER_THREAD_BATCHES
                     << BOOKS_BUCKET_BITS) /* no record is of this kind */
            err = write_batches(page, writer, reterr);
        if (err == RON_ERR_OK && page->buckets[b] > 0)
            err = write_bucket(
                &(struct bucket){page, order->records + order->starts[b], page->buckets[b]}, order,
                writer, reterr);
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
