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

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    PASSES = 4,
    TIE_SHIFT = 64 - PASSES * DIGIT_BITS, /* bits of an id that digits do not reach */
    INDEX_BITS = 28,                      /* of a record; the kind is above */
    AHEAD = 24,                           /* records are asked for before they are needed */
};

/* Enough of a record for its order; of an entry's id and a key, all that is written. */
struct item {
    uint64_t high;
    uint32_t place; /* kind and index */
    uint32_t seq_offset;
};

static uint32_t kind_of(const struct item *item)
{
    return item->place >> INDEX_BITS;
}

static const struct books_record *record_of(const struct books_page *page, const struct item *item)
{
    return &page->records[item->place & ((1u << INDEX_BITS) - 1)];
}

static bool has_prefix_only(const struct item *item)
{
    return kind_of(item) == LEDGER_THREAD_ENTRY || kind_of(item) == LEDGER_THREAD_KEY;
}

static struct books_posting posting_of(const struct books_page *page, const struct item *item)
{
    struct books_posting posting = {
        .place = {item->high, 0, page->first_seq + item->seq_offset, 0, kind_of(item)}};
    const struct books_record *record;

    if (has_prefix_only(item))
        return posting;
    record = record_of(page, item);
    posting.place.low = record->low;
    posting.place.asset = record->asset;
    posting.amount = record->amount;
    posting.negative = record->negative;
    posting.mint = record->mint;
    posting.nonce = record->nonce;
    return posting;
}

static int items_compare(const struct books_page *page, const struct item *a, const struct item *b)
{
    const struct books_posting first = posting_of(page, a), second = posting_of(page, b);

    return books_place_compare(&first.place, &second.place);
}

/* A record lies in one line of the cache or two. */
static void fetch(const struct books_page *page, const struct item *items, size_t at, size_t count)
{
    if (at < count && !has_prefix_only(&items[at])) {
        const struct books_record *record = record_of(page, &items[at]);

        __builtin_prefetch(record);
        __builtin_prefetch((const uint8_t *)(record + 1) - 1);
    }
}

static void sort_by(struct item *from, struct item *to, size_t count, uint32_t *starts,
                    unsigned shift)
{
    uint32_t sum = 0;

    memset(starts, 0, DIGITS * sizeof(*starts));
    for (size_t i = 0; i < count; i++)
        starts[shift < 64 ? from[i].high >> shift & (DIGITS - 1) : kind_of(&from[i])]++;
    for (size_t d = 0; d < DIGITS; d++) {
        uint32_t here = starts[d];

        starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[shift < 64 ? from[i].high >> shift & (DIGITS - 1) : kind_of(&from[i])]++] =
            from[i];
}

/* Lowest digit first, the kind last; the result is in `other`. */
static void sort_ranks(struct item *items, struct item *other, size_t count, uint32_t *starts)
{
    for (unsigned pass = 0; pass < PASSES; pass += 2) {
        sort_by(items, other, count, starts, TIE_SHIFT + pass * DIGIT_BITS);
        sort_by(other, items, count, starts, TIE_SHIFT + (pass + 1) * DIGIT_BITS);
    }
    sort_by(items, other, count, starts, 64);
}

static bool same_rank(const struct item *a, const struct item *b)
{
    return a->high >> TIE_SHIFT == b->high >> TIE_SHIFT && kind_of(a) == kind_of(b);
}

/* Items of one rank, by whole places. */
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

/* The result is in `other`. */
static void sort_items(const struct books_page *page, struct item *items, struct item *other,
                       size_t count, uint32_t *starts)
{
    _Static_assert(PASSES % 2 == 0, "and one for the kind");
    sort_ranks(items, other, count, starts);
    for (size_t first = 0, end; first < count; first = end) {
        bool sorted = true;

        for (end = first + 1; end < count && same_rank(&other[end], &other[first]); end++) {
            fetch(page, other, end + AHEAD, count);
            sorted = sorted && items_compare(page, &other[end - 1], &other[end]) <= 0;
        }
        if (!sorted)
            sort_ties(page, other + first, items + first, end - first);
    }
}

/* Near enough for the filter, without a look at the records. */
static uint64_t count_threads(const struct item *items, size_t count)
{
    uint64_t threads = 1; /* of the starts of batches */

    for (size_t i = 0; i < count; i++)
        threads += i == 0 || !same_rank(&items[i], &items[i - 1]);
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
        const struct books_posting posting = posting_of(page, &items[i]);

        fetch(page, items, i + AHEAD, page->records_count);
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

    RON_ASSERT(page->records_count < 1u << INDEX_BITS);
    for (uint32_t i = 0; i < page->records_count; i++)
        items[i] = (struct item){page->records[i].high,
                                 (uint32_t)page->records[i].kind << INDEX_BITS | i,
                                 page->records[i].seq_offset};
    sort_items(page, items, other, page->records_count, starts);
    err = books_writer_new(vfs, path, &head, count_threads(other, page->records_count), &writer,
                           reterr);
    if (err == RON_ERR_OK)
        err = write_items(page, other, writer, reterr);
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

    _Static_assert(LEDGER_THREAD__MAX <= 16, "a kind is four bits of the place");
    if (items == NULL || other == NULL || starts == NULL)
        err = ron_fail(reterr, RON_ERR_NO_MEMORY, "order %u records", page->records_count);
    else
        err = write_sorted(page, vfs, path, items, other, starts, reterr);
    (void)ron_mem_free(items);
    (void)ron_mem_free(other);
    (void)ron_mem_free(starts);
    return err;
}
