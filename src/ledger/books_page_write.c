/*
 * books_page_write.c - a full page, sorted, as a run. See books_page.h.
 *
 * Records are ordered by kind and the first bytes of the id, digit by digit, which keeps those of
 * one thread in the order they came; where that leaves different threads side by side, they are
 * merged by whole places.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_page.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = 6 };

struct item {
    uint64_t rank; /* kind and the id's first 60 bits */
    uint32_t index;
};

static struct books_posting posting_of(const struct books_page *page, uint32_t index)
{
    const struct books_record *record = &page->records[index];
    const bool prefix = record->kind == LEDGER_THREAD_ENTRY || record->kind == LEDGER_THREAD_KEY;

    return (struct books_posting){
        .place = {record->high, prefix ? 0 : record->low, page->first_seq + record->seq_offset,
                  record->asset, record->kind},
        .amount = record->amount,
        .negative = record->negative,
        .mint = record->mint,
        .nonce = record->nonce,
    };
}

static int items_compare(const struct books_page *page, const struct item *a, const struct item *b)
{
    const struct books_posting first = posting_of(page, a->index);
    const struct books_posting second = posting_of(page, b->index);

    return books_place_compare(&first.place, &second.place);
}

static void sort_ranks(struct item *items, struct item *other, size_t count, uint32_t *starts)
{
    for (unsigned pass = 0; pass < PASSES; pass++) {
        const unsigned shift = pass * DIGIT_BITS;
        uint32_t sum = 0;
        struct item *swap = items;

        memset(starts, 0, DIGITS * sizeof(*starts));
        for (size_t i = 0; i < count; i++)
            starts[items[i].rank >> shift & (DIGITS - 1)]++;
        for (size_t d = 0; d < DIGITS; d++) {
            uint32_t here = starts[d];

            starts[d] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            other[starts[items[i].rank >> shift & (DIGITS - 1)]++] = items[i];
        items = other;
        other = swap;
    }
}

/* Items of one rank, by whole places; equal ones keep their order. */
static void sort_ties(const struct books_page *page, struct item *items, struct item *other,
                      size_t count)
{
    struct item *from = items, *to = other;

    for (size_t width = 1; width < count; width *= 2) {
        struct item *swap = from;

        for (size_t low = 0; low < count; low += 2 * width) {
            const size_t middle = low + width < count ? low + width : count;
            const size_t high = low + 2 * width < count ? low + 2 * width : count;
            size_t a = low, b = middle;

            for (size_t i = low; i < high; i++)
                to[i] = b == high || (a < middle && items_compare(page, &from[a], &from[b]) <= 0)
                            ? from[a++]
                            : from[b++];
        }
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}

static void sort_items(const struct books_page *page, struct item *items, struct item *other,
                       size_t count, uint32_t *starts)
{
    _Static_assert(PASSES % 2 == 0, "the result is where it began");
    sort_ranks(items, other, count, starts);
    for (size_t first = 0, end; first < count; first = end) {
        bool sorted = true;

        for (end = first + 1; end < count && items[end].rank == items[first].rank; end++)
            sorted = sorted && items_compare(page, &items[end - 1], &items[end]) <= 0;
        if (!sorted)
            sort_ties(page, items + first, other + first, end - first);
    }
}

static uint64_t count_threads(const struct books_page *page, const struct item *items, size_t count)
{
    uint64_t threads = 1; /* of the starts of batches */
    struct books_place last = {.kind = 0};

    for (size_t i = 0; i < count; i++) {
        const struct books_posting posting = posting_of(page, items[i].index);

        threads += books_thread_compare(&posting.place, &last) != 0;
        last = posting.place;
    }
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

static enum ron_err write_items(const struct books_page *page, const struct item *items,
                                struct books_writer *writer, struct ron_errinfo *reterr) RON_BLOCKS
{
    bool batches = false;
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; err == RON_ERR_OK && i < page->records_count; i++) {
        const struct books_posting posting = posting_of(page, items[i].index);

        if (!batches && posting.place.kind > LEDGER_THREAD_BATCHES) {
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

static enum ron_err write_sorted(const struct books_page *page, struct io_vfs *vfs,
                                 const char *path, struct item *items, struct item *other,
                                 uint32_t *starts, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct books_head head = {
        .first_seq = page->first_seq,
        .last_seq = books_page_last_seq(page),
        .first_batch = page->first_batch,
        .last_batch = page->first_batch + rt_atomic_load_u32(&page->batches_count) - 1,
        .root = page->root,
    };
    struct books_writer *writer = NULL;
    enum ron_err err;

    for (uint32_t i = 0; i < page->records_count; i++)
        items[i] = (struct item){(uint64_t)page->records[i].kind << 60 | page->records[i].high >> 4,
                                 i};
    sort_items(page, items, other, page->records_count, starts);
    err = books_writer_new(vfs, path, &head, count_threads(page, items, page->records_count),
                           &writer, reterr);
    if (err == RON_ERR_OK)
        err = write_items(page, items, writer, reterr);
    (void)books_writer_free(writer);
    return err;
}

enum ron_err books_page_write(const struct books_page *page, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr)
{
    struct item *items = ron_mem_alloc_array(page->records_count, sizeof(*items));
    struct item *other = ron_mem_alloc_array(page->records_count, sizeof(*other));
    uint32_t *starts = ron_mem_alloc_array(DIGITS, sizeof(*starts));
    enum ron_err err;

    _Static_assert(LEDGER_THREAD__MAX <= 16, "a kind is four bits of the rank");
    if (items == NULL || other == NULL || starts == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "order %u records", page->records_count);
    else
        err = write_sorted(page, vfs, path, items, other, starts, reterr);
    (void)ron_mem_free(items);
    (void)ron_mem_free(other);
    (void)ron_mem_free(starts);
    return err;
}
