/*
 * books_page_write.c - a full page, sorted, as a run. See books_page.h.
 *
 * Records are first dealt out by kind and the first bits of the id, so that the rest happens within
 * the cache: the records of a bucket are put in order digit by digit, which keeps those of one
 * thread in the order they came; where that leaves different threads side by side, they are merged
 * by whole places.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_page.h"

enum {
    BUCKET_BITS = 10, /* of an id, for each kind */
    KINDS = 16,
    BUCKETS = KINDS << BUCKET_BITS,
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    PASSES = 3,
    TIE_SHIFT = 64 - PASSES * DIGIT_BITS, /* bits of a key that digits do not reach */
    DIGITS_FROM = 24,                     /* fewer records are merged only */
};

struct item {
    uint64_t key;   /* the id's first bits behind those of the bucket */
    uint32_t index; /* in the bucket */
};

struct sorting {
    struct books_record *records; /* a copy, by buckets, then in order */
    uint32_t *starts;             /* of buckets, one more */
    uint32_t largest;
    struct item *items, *other; /* of the largest bucket */
    struct books_record *room;
};

static bool has_prefix_only(const struct books_record *record)
{
    return record->kind == LEDGER_THREAD_ENTRY || record->kind == LEDGER_THREAD_KEY;
}

static struct books_place place_of(const struct books_page *page, const struct books_record *record)
{
    return (struct books_place){record->high, has_prefix_only(record) ? 0 : record->low,
                                page->first_seq + record->seq_offset, record->asset, record->kind};
}

static uint32_t bucket_of(const struct books_record *record)
{
    return (uint32_t)record->kind << BUCKET_BITS | (uint32_t)(record->high >> (64 - BUCKET_BITS));
}

static void deal_out(const struct books_page *page, struct sorting *sorting)
{
    uint32_t *starts = sorting->starts;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < page->records_count; i++)
        starts[bucket_of(&page->records[i])]++;
    for (uint32_t b = 0; b <= BUCKETS; b++) {
        const uint32_t here = b < BUCKETS ? starts[b] : 0;

        starts[b] = sum;
        sum += here;
        if (here > sorting->largest)
            sorting->largest = here;
    }
    for (uint32_t i = 0; i < page->records_count; i++)
        sorting->records[starts[bucket_of(&page->records[i])]++] = page->records[i];
    for (uint32_t b = BUCKETS; b > 0; b--) /* each is now where the next began */
        starts[b] = starts[b - 1];
    starts[0] = 0;
}

static void sort_by(const struct item *from, struct item *to, size_t count, unsigned shift)
{
    uint32_t starts[DIGITS] = {0};
    uint32_t sum = 0;

    for (size_t i = 0; i < count; i++)
        starts[from[i].key >> shift & (DIGITS - 1)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const uint32_t here = starts[d];

        starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

static int items_compare(const struct books_page *page, const struct books_record *records,
                         const struct item *a, const struct item *b)
{
    const struct books_place first = place_of(page, &records[a->index]);
    const struct books_place second = place_of(page, &records[b->index]);

    return books_place_compare(&first, &second);
}

/* By whole places. */
static void merge_items(const struct books_page *page, const struct books_record *records,
                        struct item *items, struct item *other, size_t count)
{
    struct item *from = items, *to = other;

    for (size_t width = 1; width < count; width *= 2) {
        struct item *swap = from;

        for (size_t low = 0; low < count; low += 2 * width) {
            const size_t middle = low + width < count ? low + width : count;
            const size_t high = low + 2 * width < count ? low + 2 * width : count;
            size_t a = low, b = middle;

            for (size_t i = low; i < high; i++)
                to[i] = b == high || (a < middle &&
                                      items_compare(page, records, &from[a], &from[b]) <= 0)
                            ? from[a++]
                            : from[b++];
        }
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}

/* Those that digits cannot tell apart. */
static void sort_ties(const struct books_page *page, const struct books_record *records,
                      struct item *items, struct item *other, size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        bool sorted = true;

        for (end = first + 1;
             end < count && items[end].key >> TIE_SHIFT == items[first].key >> TIE_SHIFT; end++)
            sorted = sorted && items_compare(page, records, &items[end - 1], &items[end]) <= 0;
        if (!sorted)
            merge_items(page, records, items + first, other + first, end - first);
    }
}

static void sort_bucket(const struct books_page *page, const struct sorting *sorting,
                        struct books_record *records, uint32_t count)
{
    struct item *items = sorting->items, *other = sorting->other;

    _Static_assert(PASSES % 2 == 1, "the result is in `other`");
    for (uint32_t i = 0; i < count; i++)
        items[i] = (struct item){records[i].high << BUCKET_BITS, i};
    if (count < DIGITS_FROM) {
        merge_items(page, records, items, other, count);
    } else {
        sort_by(items, other, count, TIE_SHIFT);
        sort_by(other, items, count, TIE_SHIFT + DIGIT_BITS);
        sort_by(items, other, count, TIE_SHIFT + 2 * DIGIT_BITS);
        sort_ties(page, records, other, items, count);
        items = other;
    }
    for (uint32_t i = 0; i < count; i++)
        sorting->room[i] = records[items[i].index];
    memcpy(records, sorting->room, count * sizeof(*records));
}

static enum ron_err sort_records(const struct books_page *page, struct sorting *sorting,
                                 struct ron_errinfo *reterr)
{
    sorting->records = ron_table_alloc(page->records_count, sizeof(*sorting->records),
                                       RON_TABLE_UNSHARED);
    sorting->starts = ron_mem_alloc_array(BUCKETS + 1, sizeof(*sorting->starts));
    if (sorting->records != NULL && sorting->starts != NULL) {
        deal_out(page, sorting);
        sorting->items = ron_mem_alloc_array(sorting->largest, sizeof(*sorting->items));
        sorting->other = ron_mem_alloc_array(sorting->largest, sizeof(*sorting->other));
        sorting->room = ron_mem_alloc_array(sorting->largest, sizeof(*sorting->room));
    }
    if (sorting->items == NULL || sorting->other == NULL || sorting->room == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "order %u records", page->records_count);
    for (uint32_t b = 0; b < BUCKETS; b++) {
        const uint32_t count = sorting->starts[b + 1] - sorting->starts[b];

        if (count > 1)
            sort_bucket(page, sorting, sorting->records + sorting->starts[b], count);
    }
    return RON_ERR_OK;
}

/* One for the starts of batches. */
static uint64_t count_threads(const struct books_page *page, const struct books_record *records)
{
    uint64_t threads = 2;

    for (uint32_t i = 1; i < page->records_count; i++)
        threads += records[i].high != records[i - 1].high || records[i].low != records[i - 1].low ||
                   records[i].kind != records[i - 1].kind;
    return threads;
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

static enum ron_err write_records(const struct books_page *page, const struct books_record *records,
                                  struct books_writer *writer,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    bool batches = false;
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; err == RON_ERR_OK && i < page->records_count; i++) {
        const struct books_record *record = &records[i];
        const struct books_posting posting = {
            .place = place_of(page, record),
            .amount = record->amount,
            .negative = record->negative,
            .mint = record->mint,
            .nonce = record->nonce,
        };

        if (!batches && record->kind > LEDGER_THREAD_BATCHES) {
            err = write_batches(page, writer, reterr);
            batches = true;
        }
        if (err == RON_ERR_OK)
            err = books_writer_add(writer, &posting, reterr);
    }
    if (err == RON_ERR_OK && !batches)
        err = write_batches(page, writer, reterr);
    return err == RON_ERR_OK ? books_writer_end(writer, reterr) : err;
}

enum ron_err books_page_write(const struct books_page *page, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr)
{
    const struct books_head head = {
        .first_seq = page->first_seq,
        .last_seq = books_page_last_seq(page),
        .first_batch = page->first_batch,
        .last_batch = page->first_batch + rt_atomic_load_u32(&page->batches_count) - 1,
        .root = page->root,
    };
    struct sorting sorting = {.largest = 1};
    struct books_writer *writer = NULL;
    enum ron_err err;

    _Static_assert((int)LEDGER_THREAD__MAX <= (int)KINDS, "a bucket for each");
    err = sort_records(page, &sorting, reterr);
    if (err == RON_ERR_OK)
        err = books_writer_new(vfs, path, &head, count_threads(page, sorting.records), &writer,
                               reterr);
    if (err == RON_ERR_OK)
        err = write_records(page, sorting.records, writer, reterr);
    (void)books_writer_free(writer);
    (void)ron_table_free(sorting.records);
    (void)ron_mem_free(sorting.starts);
    (void)ron_mem_free(sorting.items);
    (void)ron_mem_free(sorting.other);
    (void)ron_mem_free(sorting.room);
    return err;
}
