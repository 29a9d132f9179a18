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
    VALUE_AMOUNT = 16, /* shift; below it the asset */
    VALUE_ASSET = (1 << VALUE_AMOUNT) - 1,
};

/* A posting, small: a round stays in the cache. */
struct gathered {
    uint64_t high, low;
    uint64_t value; /* asset and amount, or where the whole posting is in `wide` */
    uint32_t seq;   /* since the first of the merge */
    uint8_t kind;
    bool is_wide;
    uint8_t signs, nonce; /* of a brief one */
};
_Static_assert(sizeof(struct gathered) == 32, "two in a line of the cache");

struct books_merger {
    struct books_cursor *cursors; /* in order of runs */
    size_t cursors_count;
    uint8_t *pages;                /* of the cursors, as allocated */
    struct books_run *const *runs; /* NULL: they are begun */
    /* Of one round, run by run; most of the room is never touched. */
    struct gathered *postings;
    struct books_posting *wide;
    uint64_t *keys, *items, *scratch;
    size_t count, wide_count, max;
    uint64_t key_min, key_max;
    uint64_t first_seq;
    struct books_digits digits;
};

struct books_merger *books_merger_free(struct books_merger *merger)
{
    if (merger == NULL)
        return NULL;
    for (size_t i = 0; merger->cursors != NULL && i < merger->cursors_count; i++)
        books_cursor_end(&merger->cursors[i]);
    merger->cursors = ron_mem_free(merger->cursors);
    merger->pages = ron_mem_free(merger->pages);
    merger->postings = ron_table_free(merger->postings);
    merger->wide = ron_table_free(merger->wide);
    merger->keys = ron_table_free(merger->keys);
    merger->items = ron_table_free(merger->items);
    merger->scratch = ron_table_free(merger->scratch);
    return ron_mem_free(merger);
}

enum ron_err books_merger_new(struct books_run *const *runs, size_t runs_count,
                              struct books_merger **ret_merger, struct ron_errinfo *reterr)
{
    struct books_merger *merger = ron_mem_alloc(sizeof(*merger));

    RON_ASSERT(runs_count * ROUND_PAGES * PAGE_POSTINGS < (size_t)1 << BOOKS_INDEX_BITS);
    if (merger != NULL) {
        merger->runs = runs;
        merger->cursors_count = runs_count;
        merger->max = runs_count * ROUND_PAGES * PAGE_POSTINGS;
        merger->cursors = ron_mem_alloc_array(runs_count, sizeof(*merger->cursors));
        merger->pages = ron_mem_alloc(runs_count * BOOKS_CURSOR_SIZE + IO_DIRECT_SIZE);
        merger->postings = ron_table_alloc(merger->max, sizeof(*merger->postings),
                                           RON_TABLE_IN_ORDER);
        merger->wide = ron_table_alloc(merger->max, sizeof(*merger->wide), RON_TABLE_IN_ORDER);
        merger->keys = ron_table_alloc(merger->max, sizeof(*merger->keys), RON_TABLE_IN_ORDER);
        merger->items = ron_table_alloc(merger->max, sizeof(*merger->items), RON_TABLE_IN_ORDER);
        merger->scratch = ron_table_alloc(merger->max, sizeof(*merger->scratch),
                                          RON_TABLE_IN_ORDER);
    }
    if (merger == NULL || merger->cursors == NULL || merger->pages == NULL ||
        merger->postings == NULL || merger->wide == NULL || merger->keys == NULL ||
        merger->items == NULL || merger->scratch == NULL) {
        (void)books_merger_free(merger);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "merge %zu runs", runs_count);
    }
    for (size_t i = 0; i < runs_count; i++)
        merger->cursors[i].bytes = io_direct_page(merger->pages) + i * BOOKS_CURSOR_SIZE;
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

static void gather(struct books_merger *merger, const struct books_posting *posting, uint64_t key)
{
    const struct books_place *place = &posting->place;
    struct gathered *to = &merger->postings[merger->count];

    *to = (struct gathered){
        .high = place->high,
        .low = place->low,
        .value = place->asset | (uint64_t)posting->amount << VALUE_AMOUNT,
        .seq = (uint32_t)(place->seq - merger->first_seq),
        .kind = (uint8_t)place->kind,
        .signs = posting->negative ? BOOKS_AMOUNT_NEGATIVE : 0,
        .nonce = posting->nonce,
    };
    if (RON_UNLIKELY(place->asset >> VALUE_AMOUNT != 0 || posting->mint ||
                     posting->amount >> (64 - VALUE_AMOUNT) != 0 ||
                     place->kind != LEDGER_THREAD_ACCOUNT)) {
        to->is_wide = true;
        to->value = merger->wide_count;
        merger->wide[merger->wide_count++] = *posting;
    }
    merger->keys[merger->count++] = key;
    merger->key_min = key < merger->key_min ? key : merger->key_min;
    merger->key_max = key > merger->key_max ? key : merger->key_max;
}

/* What a cursor has below the bound. What is not in order, or of another's seqs, is damage whatever
 * the sums of its pages say: who writes relies on both. */
static enum ron_err collect(struct books_merger *merger, struct books_cursor *cursor,
                            const struct books_place *bound, struct ron_errinfo *reterr) RON_BLOCKS
{
    const uint64_t bound_key = bound == NULL ? UINT64_MAX : key_of(bound);
    const struct books_posting *posting = &cursor->reader.posting;
    const struct books_head *head = &cursor->run->head;
    struct books_place before = {.kind = 0};
    uint64_t key_before = 0;
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && !cursor->ended) {
        const uint64_t key = key_of(&posting->place);

        if (key > bound_key ||
            (key == bound_key && bound != NULL && books_place_compare(&posting->place, bound) >= 0))
            break;
        if (merger->count == merger->max)
            return disagree(cursor->run, reterr);
        if (posting->place.seq - head->first_seq > head->last_seq - head->first_seq ||
            (key <= key_before && books_place_compare(&before, &posting->place) > 0))
            return books_cursor_bad(cursor, reterr);
        before = posting->place;
        key_before = key;
        gather(merger, posting, key);
        err = books_cursor_next(cursor, reterr);
    }
    return err;
}

static uint32_t asset_of(const struct books_merger *merger, const struct gathered *posting)
{
    return posting->is_wide ? merger->wide[posting->value].place.asset
                            : (uint32_t)(posting->value & VALUE_ASSET);
}

/* Those of one thread: the older run first, since its seqs are the smaller. */
static bool is_before(const void *context, uint32_t a, uint32_t b)
{
    const struct books_merger *merger = context;
    const struct gathered *first = &merger->postings[a], *second = &merger->postings[b];
    uint32_t asset, other;

    if (first->kind != second->kind)
        return first->kind < second->kind;
    if (first->high != second->high)
        return first->high < second->high;
    if (first->low != second->low)
        return first->low < second->low;
    asset = asset_of(merger, first);
    other = asset_of(merger, second);
    return asset != other ? asset < other : a < b;
}

/* As many bits of the keys as there is room for, of those in which they differ. */
static uint64_t *sort(struct books_merger *merger)
{
    const uint64_t range = merger->key_max - merger->key_min;
    const unsigned shift = (unsigned)__builtin_clzll(range | 1);

    for (size_t i = 0; i < merger->count; i++)
        merger->keys[i] = books_item((merger->keys[i] - merger->key_min) << shift, (uint32_t)i);
    return books_sort_items(merger->keys, merger->items, merger->count, &merger->digits);
}

static RON_HOT_INLINE enum ron_err write_one(const struct books_merger *merger,
                                             const struct gathered *posting,
                                             struct books_writer *writer,
                                             struct ron_errinfo *reterr) RON_BLOCKS
{
    if (posting->is_wide)
        return books_writer_add_slow(writer, &merger->wide[posting->value], reterr);
    return books_writer_add_brief(writer,
                                  &(struct books_brief){
                                      .high = posting->high,
                                      .low = posting->low,
                                      .amount = posting->value >> VALUE_AMOUNT,
                                      .seq = merger->first_seq + posting->seq,
                                      .asset = (uint32_t)(posting->value & VALUE_ASSET),
                                      .nonce = posting->nonce,
                                      .signs = posting->signs,
                                  },
                                  reterr);
}

/* Are all ties of one thread, and so in order? */
static bool are_ties_alike(const struct books_merger *merger, const uint64_t *items)
{
    const struct gathered *before = &merger->postings[books_item_index(items[0])];
    bool alike = true;

    for (size_t i = 1; i < merger->count; i++) {
        const struct gathered *posting = &merger->postings[books_item_index(items[i])];
        const uint64_t differ = (posting->high ^ before->high) | (posting->low ^ before->low) |
                                ((posting->value ^ before->value) & VALUE_ASSET) |
                                (posting->is_wide | before->is_wide);

        alike &= !books_item_ties(items[i], items[i - 1]) | (differ == 0);
        before = posting;
    }
    return alike;
}

static enum ron_err write_round(struct books_merger *merger, struct books_writer *writer,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    uint64_t *items = sort(merger);
    enum ron_err err = RON_ERR_OK;

    if (!are_ties_alike(merger, items))
        books_sort_ties(items, merger->scratch, merger->count, is_before, merger);
    for (size_t i = 0; err == RON_ERR_OK && i < merger->count; i++)
        err = write_one(merger, &merger->postings[books_item_index(items[i])], writer, reterr);
    return err;
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
    merger->first_seq = merger->runs[0]->head.first_seq;
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
    merger->wide_count = 0;
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
    *ret_count = merger->count;
    return merger->count > 0 ? write_round(merger, writer, reterr) : RON_ERR_OK;
}
