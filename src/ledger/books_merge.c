/*
 * books_merge.c - the rounds of a merge. See books_merge.h.
 */
#include "ledger/books_merge.h"

#include "base/assert.h"
#include "base/mem.h"
#include "ledger/books_sort.h"

enum {
    /* Of one round: each run has an open page, and the next. A posting has a byte at least. */
    ROUND_PAGES = 2,
    PAGE_POSTINGS = BOOKS_PAGE_DATA,
    DIGIT_BITS_MIN = 4,
    DIGIT_BITS_MAX = 14,
};

struct books_merger {
    struct books_cursor *cursors; /* in order of runs */
    size_t cursors_count;
    struct books_run *const *runs; /* NULL: they are begun */
    /* Of one round, run by run; most of the room is never touched. */
    struct books_posting *postings;
    struct books_item *items, *sorted;
    size_t count, max;
    uint64_t key_min, key_max;
    uint32_t starts[1 << DIGIT_BITS_MAX];
};

struct books_merger *books_merger_free(struct books_merger *merger)
{
    if (merger == NULL)
        return NULL;
    merger->cursors = ron_mem_free(merger->cursors);
    merger->postings = ron_table_free(merger->postings);
    merger->items = ron_table_free(merger->items);
    merger->sorted = ron_table_free(merger->sorted);
    return ron_mem_free(merger);
}

enum ron_err books_merger_new(struct books_run *const *runs, size_t runs_count,
                              struct books_merger **ret_merger, struct ron_errinfo *reterr)
{
    struct books_merger *merger = ron_mem_alloc(sizeof(*merger));

    if (merger != NULL) {
        merger->runs = runs;
        merger->cursors_count = runs_count;
        merger->max = runs_count * ROUND_PAGES * PAGE_POSTINGS;
        merger->cursors = ron_mem_alloc_array(runs_count, sizeof(*merger->cursors));
        merger->postings = ron_table_alloc(merger->max, sizeof(*merger->postings),
                                           RON_TABLE_IN_ORDER);
        merger->items = ron_table_alloc(merger->max, sizeof(*merger->items), RON_TABLE_IN_ORDER);
        merger->sorted = ron_table_alloc(merger->max, sizeof(*merger->sorted), RON_TABLE_IN_ORDER);
    }
    if (merger == NULL || merger->cursors == NULL || merger->postings == NULL ||
        merger->items == NULL || merger->sorted == NULL) {
        (void)books_merger_free(merger);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "merge %zu runs", runs_count);
    }
    *ret_merger = merger;
    return RON_ERR_OK;
}

/* Kind and first bits of the id: in the order of places, as far as they go. */
static uint64_t key_of(const struct books_place *place)
{
    return (uint64_t)place->kind << 61 | place->high >> 3;
}

/* Before which place does each run reach with the pages of one round, and who says so? NULL:
 * everything. */
static const struct books_place *find_bound(const struct books_merger *merger,
                                            struct books_run **ret_run)
{
    const struct books_place *bound = NULL;

    *ret_run = NULL;
    for (size_t i = 0; i < merger->cursors_count; i++) {
        const struct books_cursor *cursor = &merger->cursors[i];
        const uint64_t page = cursor->page + ROUND_PAGES - 1; /* the one before it is open */

        if (page < cursor->run->head.pages_count &&
            (bound == NULL || books_place_compare(&cursor->run->fences[page], bound) < 0)) {
            bound = &cursor->run->fences[page];
            *ret_run = cursor->run;
        }
    }
    return bound;
}

static enum ron_err disagree(const struct books_run *run, struct ron_errinfo *reterr)
{
    return ron_fail(reterr, RON_ERR_WAL_CORRUPT, "run of seq %llu: pages and fences do not agree",
                    (unsigned long long)run->head.first_seq);
}

static enum ron_err collect(struct books_merger *merger, struct books_cursor *cursor,
                            const struct books_place *bound, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t bound_key = bound == NULL ? UINT64_MAX : key_of(bound);
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && !cursor->ended) {
        const struct books_posting *posting = &cursor->reader.posting;
        const uint64_t key = key_of(&posting->place);

        if (key > bound_key ||
            (key == bound_key && bound != NULL && books_place_compare(&posting->place, bound) >= 0))
            break;
        if (merger->count == merger->max)
            return disagree(cursor->run, reterr);
        merger->postings[merger->count] = *posting;
        merger->items[merger->count] = (struct books_item){key, (uint32_t)merger->count};
        merger->count++;
        if (key < merger->key_min)
            merger->key_min = key;
        if (key > merger->key_max)
            merger->key_max = key;
        err = books_cursor_next(cursor, reterr);
    }
    return err;
}

/* Those of one thread: the older run first, since its seqs are the smaller. */
static bool is_before_alike(const void *context, uint32_t a, uint32_t b)
{
    const struct books_posting *postings = context;
    const int order = books_thread_compare(&postings[a].place, &postings[b].place);

    return order != 0 ? order < 0 : a < b;
}

static void sort(struct books_merger *merger)
{
    const uint64_t range = merger->key_max - merger->key_min;
    const unsigned range_bits = range == 0 ? 0 : 64 - (unsigned)__builtin_clzll(range);
    unsigned bits = DIGIT_BITS_MIN, shift;
    uint32_t sum = 0;

    while (bits < DIGIT_BITS_MAX && merger->count >> bits > 0)
        bits++;
    shift = range_bits > bits ? range_bits - bits : 0;
    memset(merger->starts, 0, sizeof(merger->starts[0]) << bits);
    for (size_t i = 0; i < merger->count; i++)
        merger->starts[(merger->items[i].key - merger->key_min) >> shift]++;
    for (size_t d = 0; d < (size_t)1 << bits; d++) {
        const uint32_t here = merger->starts[d];

        merger->starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < merger->count; i++)
        merger->sorted[merger->starts[(merger->items[i].key - merger->key_min) >> shift]++] =
            merger->items[i];
    books_sort_items(merger->sorted, merger->items, merger->count, is_before_alike,
                     merger->postings, merger->postings, sizeof(*merger->postings));
}

static enum ron_err begin(struct books_merger *merger, struct books_run **ret_blamed,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    for (size_t i = 0; i < merger->cursors_count; i++) {
        enum ron_err err = books_cursor_begin(&merger->cursors[i], merger->runs[i], reterr);

        if (err != RON_ERR_OK) {
            *ret_blamed = merger->runs[i];
            return err;
        }
    }
    merger->runs = NULL;
    return RON_ERR_OK;
}

enum ron_err books_merger_step(struct books_merger *merger, struct books_writer *writer,
                               size_t *ret_count, struct books_run **ret_blamed,
                               struct ron_errinfo *reterr)
{
    const struct books_place *bound;
    struct books_run *bounding;
    enum ron_err err = RON_ERR_OK;

    *ret_blamed = NULL;
    if (merger->runs != NULL)
        err = begin(merger, ret_blamed, reterr);
    if (err != RON_ERR_OK)
        return err;
    merger->count = 0;
    merger->key_min = UINT64_MAX;
    merger->key_max = 0;
    bound = find_bound(merger, &bounding);
    for (size_t i = 0; i < merger->cursors_count; i++) {
        err = collect(merger, &merger->cursors[i], bound, reterr);
        if (err != RON_ERR_OK) {
            *ret_blamed = merger->cursors[i].run;
            return err;
        }
    }
    if (merger->count == 0 && bounding != NULL) { /* its pages are still to come */
        *ret_blamed = bounding;
        return disagree(bounding, reterr);
    }
    if (merger->count > 0)
        sort(merger);
    for (size_t i = 0; err == RON_ERR_OK && i < merger->count; i++) {
        if (i + BOOKS_SORT_AHEAD < merger->count)
            __builtin_prefetch(&merger->postings[merger->sorted[i + BOOKS_SORT_AHEAD].index]);
        err = books_writer_add(writer, &merger->postings[merger->sorted[i].index], reterr);
    }
    *ret_count = merger->count;
    return err;
}
