/*
 * test_books_merge.c - putting items in order, and many runs that become one, without threads.
 * Method: drawn postings, sorted as a whole by the library; what the merge wrote must be the same,
 * one by one. Ids spread evenly, one that has nearly all, ids that differ in their last bytes only,
 * older runs with all of theirs where newer ones have few, and small amounts of two assets alone.
 */
#include <stdlib.h>

#include "support.h"

#include "io/vfs_memory.h"
#include "io_spy.h"
#include "ledger/books_impl.h"
#include "ledger/books_merge.h"
#include "ledger/books_sort.h"

enum { RUNS = 7, POSTINGS = 60000, ITEMS = 3000 };

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

/* ---- Items ---- */

static int item_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static struct books_digits digits;

static void sort_and_compare(uint64_t *items, size_t count)
{
    static uint64_t wanted[ITEMS], other[ITEMS];
    const uint64_t *sorted;

    memcpy(wanted, items, count * sizeof(*items));
    qsort(wanted, count, sizeof(*wanted), item_compare);
    sorted = books_sort_items(items, other, count, &digits);
    assert_memory_equal(sorted, wanted, count * sizeof(*wanted));
}

static void items_are_sorted_from_any_order(void **unused)
{
    static uint64_t items[ITEMS];
    const size_t counts[] = {0, 1, 2, 3, 7, 24, 100, ITEMS};

    (void)unused;
    for (size_t c = 0; c < RON_ARRAY_COUNT(counts); c++) {
        for (int way = 0; way < 5; way++) {
            for (size_t i = 0; i < counts[c]; i++) {
                /* The last: all but one of one digit, in any order. */
                const uint64_t keys[] = {i << 40, (counts[c] - i) << 40, draw(UINT64_MAX) << 31,
                                         draw(3) << 40,
                                         i == 0 ? UINT64_MAX : draw(ITEMS) << BOOKS_INDEX_BITS};

                items[i] = books_item(keys[way], (uint32_t)(counts[c] - 1 - i));
            }
            sort_and_compare(items, counts[c]);
        }
    }
}

/* The order of `names`, by what the index says. */
static bool name_before(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *names = context;

    return names[a] != names[b] ? names[a] < names[b] : a < b;
}

/* Ties are sorted among themselves, few and many, and nothing else moves. */
static void ties_are_sorted_among_themselves(void **unused)
{
    static uint64_t items[ITEMS], scratch[ITEMS];
    static uint32_t names[ITEMS];

    (void)unused;
    for (size_t ties = 1; ties <= ITEMS; ties = ties * 3 + 1) {
        for (uint32_t i = 0; i < ITEMS; i++) {
            items[i] = books_item((uint64_t)(i / ties) << BOOKS_INDEX_BITS, i);
            names[i] = (uint32_t)draw(ITEMS / 2);
        }
        books_sort_ties(items, scratch, ITEMS, name_before, names);
        for (size_t i = 1; i < ITEMS; i++) {
            assert_int_equal(items[i] >> BOOKS_INDEX_BITS, i / ties);
            if (books_item_ties(items[i - 1], items[i]))
                assert_true(
                    name_before(names, books_item_index(items[i - 1]), books_item_index(items[i])));
        }
    }
}

/* ---- Runs ---- */

enum ids { EVEN, BUSY, ALIKE, APART, PLAIN, IDS__MAX };

struct world {
    struct io_vfs *vfs;
    size_t count;
    struct books_posting postings[POSTINGS]; /* by run, then in order */
    size_t starts[RUNS + 1];
    struct books_run *runs[RUNS];
    struct books_head head; /* of all */
    size_t round_max;       /* postings of the longest round of its merge */
};

static int posting_compare(const void *left, const void *right)
{
    const struct books_posting *a = left, *b = right;

    return books_place_compare(&a->place, &b->place);
}

/* One posting of each seq at most: the order is the same for everybody. */
static struct books_posting draw_posting(enum ids ids, uint64_t seq)
{
    const uint64_t n = draw(1000);
    struct books_posting posting = {
        .place = {n * 0x9e3779b97f4a7c15u, n * 0xd6e8feb86659fd93u, seq, 1 + (uint32_t)draw(2),
                  LEDGER_THREAD_ACCOUNT},
        .amount = (unsigned __int128)draw(1000000) << (ids == PLAIN ? 0 : draw(100)),
        .negative = draw(2) == 0,
        .nonce = draw(2) == 0,
    };
    const uint32_t kinds[] = {LEDGER_THREAD_KEY, LEDGER_THREAD_BATCHES, LEDGER_THREAD_HOLDS};

    if (ids == BUSY && draw(10) != 0) {
        posting.place.high = UINT64_MAX / 3;
        posting.place.low = 5;
    }
    if (ids == ALIKE) {
        posting.place.high = UINT64_MAX / 7;
        posting.place.low = draw(50);
    }
    if (ids == APART && seq < POSTINGS / 2)
        posting.place.high >>= 20;
    if (ids != PLAIN && draw(8) == 0) {
        posting = (struct books_posting){.place = {.kind = kinds[draw(3)], .seq = seq}};
        if (posting.place.kind == LEDGER_THREAD_KEY)
            posting.place.high = draw(UINT64_MAX) << 31 ^ draw(UINT64_MAX);
        if (posting.place.kind == LEDGER_THREAD_HOLDS)
            posting.place.low = draw(5);
    }
    return posting;
}

static void write_run(struct world *w, size_t run, const char *path,
                      struct books_hashes *hashes) RON_BLOCKS
{
    const struct books_head head = {.first_seq = w->starts[run] + 1,
                                    .last_seq = w->starts[run + 1],
                                    .first_batch = run + 1,
                                    .last_batch = run + 1};
    struct books_writer *writer = NULL;

    assert_ok(books_writer_new(w->vfs, path, &head, 0, hashes, &writer, NULL));
    for (size_t i = w->starts[run]; i < w->starts[run + 1]; i++)
        assert_ok(books_writer_add(writer, &w->postings[i], NULL));
    assert_ok(books_writer_end(writer, NULL));
    (void)books_writer_free(writer);
}

/* The last run is small; seqs are 1, 2, 3 ... */
static struct world *world_new(enum ids ids) RON_BLOCKS
{
    struct world *w = ron_mem_alloc(sizeof(*w));

    assert_non_null(w);
    random_state = 1 + (uint64_t)ids;
    assert_ok(io_vfs_memory_new(NULL, &w->vfs, NULL));
    for (size_t run = 0; run < RUNS; run++) {
        const size_t size = run == RUNS - 1 ? 3 : POSTINGS / RUNS - draw(2000);
        const char path[] = {'r', (char)('0' + run), 0};
        struct books_hashes hashes = {.count = 0};

        w->starts[run] = w->count;
        for (size_t i = 0; i < size; i++, w->count++)
            w->postings[w->count] = draw_posting(ids, w->count + 1);
        w->starts[run + 1] = w->count;
        qsort(&w->postings[w->starts[run]], size, sizeof(w->postings[0]), posting_compare);
        write_run(w, run, path, &hashes);
        books_hashes_fini(&hashes);
        assert_ok(books_run_open(w->vfs, path, &w->runs[run], NULL));
    }
    w->head = (struct books_head){
        .first_seq = 1, .last_seq = w->count, .first_batch = 1, .last_batch = RUNS};
    return w;
}

static void world_free(struct world *w) RON_BLOCKS
{
    for (size_t run = 0; run < RUNS; run++)
        (void)books_run_drop(w->runs[run]);
    (void)io_vfs_free(w->vfs);
    (void)ron_mem_free(w);
}

static enum ron_err merge(struct world *w, struct books_run **ret_blamed,
                          struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_merger *merger = NULL;
    struct books_writer *writer = NULL;
    size_t count = 0;
    enum ron_err err = books_merger_new(w->runs, RUNS, &merger, reterr);

    if (err == RON_ERR_OK)
        err = books_writer_new(w->vfs, "all", &w->head, w->count, NULL, &writer, reterr);
    if (err == RON_ERR_OK)
        do {
            err = books_merger_step(merger, writer, &count, ret_blamed, reterr);
            if (err == RON_ERR_OK && count > w->round_max)
                w->round_max = count;
        } while (err == RON_ERR_OK && count > 0);
    if (err == RON_ERR_OK)
        err = books_writer_end(writer, reterr);
    (void)books_writer_free(writer);
    (void)books_merger_free(merger);
    return err;
}

static void check_merged(struct world *w) RON_BLOCKS
{
    static uint8_t memory[BOOKS_CURSOR_SIZE + IO_DIRECT_SIZE];
    struct books_cursor cursor = {.bytes = io_direct_page(memory)};
    struct books_run *all = NULL;
    size_t i = 0;

    qsort(w->postings, w->count, sizeof(w->postings[0]), posting_compare);
    assert_ok(books_run_open(w->vfs, "all", &all, NULL));
    assert_ok(books_cursor_begin(&cursor, all, NULL));
    for (; !cursor.ended; i++) {
        const struct books_posting *is = &cursor.reader.posting;
        const struct books_posting *wanted = &w->postings[i];

        assert_true(i < w->count);
        assert_int_equal(posting_compare(is, wanted), 0);
        if (is->place.kind == LEDGER_THREAD_ACCOUNT) {
            assert_true(is->amount == wanted->amount);
            assert_int_equal(is->negative, wanted->negative);
            assert_int_equal(is->nonce, wanted->nonce);
        }
        assert_ok(books_cursor_next(&cursor, NULL));
    }
    assert_int_equal(i, w->count);
    books_cursor_end(&cursor);
    (void)books_run_drop(all);
}

static void runs_become_one_in_order(void **unused) RON_BLOCKS
{
    (void)unused;
    for (int ids = 0; ids < IDS__MAX; ids++) {
        struct world *w = world_new((enum ids)ids);
        struct books_run *blamed = NULL;

        assert_ok(merge(w, &blamed, NULL));
        /* Two pages of each run, of which a posting of a thread of its own takes 8 bytes. */
        if (ids != BUSY && ids != ALIKE)
            assert_in_range(w->round_max, 1, RUNS * 2 * BOOKS_PAGE_DATA / 8);
        check_merged(w);
        world_free(w);
    }
}

/* A page in the middle of a run is damaged: that run is named, and there is no result. */
static void a_damaged_run_is_blamed(void **unused) RON_BLOCKS
{
    struct world *w = world_new(EVEN);
    struct books_run *blamed = NULL;

    (void)unused;
    spy_flip(w->vfs, "r3", (w->runs[3]->head.pages_count / 2 + 1) * BOOKS_PAGE_SIZE + 100, 4);
    assert_int_equal(merge(w, &blamed, NULL), RON_ERR_WAL_CORRUPT);
    assert_ptr_equal(blamed, w->runs[3]);
    world_free(w);
}

/* A fence that lies before what is left of every run would end the merge too early. */
static void a_fence_that_is_too_low_is_blamed(void **unused) RON_BLOCKS
{
    struct world *w = world_new(EVEN);
    struct books_run *blamed = NULL;
    struct ron_errinfo info = {0};

    (void)unused;
    memcpy((void *)(uintptr_t)&w->runs[3]->fences[7], &w->runs[3]->fences[1],
           sizeof(w->runs[3]->fences[1]));
    support_assert_error(merge(w, &blamed, &info), &info, RON_ERR_WAL_CORRUPT,
                         "pages and fences do not agree");
    assert_ptr_equal(blamed, w->runs[3]);
    world_free(w);
}

/* Page `number` of run 3 is now this one, with sums that are right. */
static void put_page(struct world *w, uint32_t number, struct books_page_writer *page) RON_BLOCKS
{
    struct io_file *file = NULL;

    books_page_end(page, number, w->runs[3]->tag);
    assert_ok(io_vfs_open(w->vfs, "r3", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_write(file, (uint64_t)(1 + number) * BOOKS_PAGE_SIZE,
                            &(struct ron_slice){page->bytes, BOOKS_PAGE_SIZE}, 1, NULL));
    (void)io_file_close(file);
}

static void get_page(struct world *w, uint32_t number, struct books_page_writer *page) RON_BLOCKS
{
    struct io_file *file = NULL;
    size_t done = 0;

    assert_ok(io_vfs_open(w->vfs, "r3", IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, (uint64_t)(1 + number) * BOOKS_PAGE_SIZE, page->bytes,
                           BOOKS_PAGE_SIZE, &done, NULL));
    (void)io_file_close(file);
    page->used = ron_load_le32(page->bytes + BOOKS_PAGE_DATA + 4);
}

static void assert_blamed(struct world *w, const char *message) RON_BLOCKS
{
    struct books_run *blamed = NULL;
    struct ron_errinfo info = {0};

    support_assert_error(merge(w, &blamed, &info), &info, RON_ERR_WAL_CORRUPT, message);
    assert_ptr_equal(blamed, w->runs[3]);
    world_free(w);
}

/* Whatever wrote it: a run out of order is damaged, though each of its pages has the right sum. */
static void a_run_out_of_order_is_blamed(void **unused) RON_BLOCKS
{
    static struct books_page_writer first, second;
    struct world *w = world_new(EVEN);
    const uint32_t middle = (uint32_t)w->runs[3]->head.pages_count / 2;

    (void)unused;
    get_page(w, middle, &first);
    get_page(w, middle + 1, &second);
    put_page(w, middle, &second);
    put_page(w, middle + 1, &first);
    assert_blamed(w, "is malformed");
}

/* The same thread twice, the second time with an older entry. */
static void a_thread_out_of_order_is_blamed(void **unused) RON_BLOCKS
{
    static struct books_page_writer page;
    struct world *w = world_new(EVEN);
    const uint64_t first_seq = w->runs[3]->head.first_seq;
    struct books_posting posting = {
        .place = {UINT64_MAX, UINT64_MAX, first_seq + 9, 0, LEDGER_THREAD_HOLDS}};

    (void)unused;
    books_page_begin(&page, first_seq);
    books_page_put(&page, &posting, &(struct books_sum){.count = 0}, false);
    posting.place.seq = first_seq + 8;
    books_page_put(&page, &posting, &(struct books_sum){.count = 0}, false);
    put_page(w, (uint32_t)w->runs[3]->head.pages_count - 1, &page);
    assert_blamed(w, "is malformed");
}

/* A posting of an entry that the run does not reach. */
static void seqs_of_others_are_blamed(void **unused) RON_BLOCKS
{
    (void)unused;
    for (int further = 0; further < 2; further++) {
        static struct books_page_writer page;
        struct world *w = world_new(EVEN);
        const struct books_head *head = &w->runs[3]->head;
        const struct books_posting posting = {.place = {UINT64_MAX, UINT64_MAX,
                                                        head->last_seq + (uint64_t)further, 0,
                                                        LEDGER_THREAD_HOLDS}};

        books_page_begin(&page, head->first_seq);
        books_page_put(&page, &posting, &(struct books_sum){.count = 0}, false);
        put_page(w, (uint32_t)head->pages_count - 1, &page);
        if (further > 0) {
            assert_blamed(w, "is malformed");
        } else {
            struct books_run *blamed = NULL;

            assert_ok(merge(w, &blamed, NULL));
            world_free(w);
        }
    }
}

/* Written with the memory of a larger one before it, a run has the same bytes. */
static void memory_used_again_leaves_nothing(void **unused) RON_BLOCKS
{
    struct world *w = world_new(EVEN);
    struct books_hashes hashes = {.count = 0};
    struct books_run *again = NULL;

    (void)unused;
    write_run(w, 0, "large", &hashes);
    write_run(w, RUNS - 1, "again", &hashes);
    assert_ok(books_run_open(w->vfs, "again", &again, NULL));
    assert_memory_equal(&again->head, &w->runs[RUNS - 1]->head, sizeof(again->head));
    (void)books_run_drop(again);
    books_hashes_fini(&hashes);
    world_free(w);
}

/* Pages are read once by who merges them, and written for who will seldom ask: neither leaves
 * anything in the system's cache. */
static void pages_pass_the_cache(void **unused) RON_BLOCKS
{
    struct world *w = world_new(PLAIN);
    struct books_hashes hashes = {.count = 0};
    struct books_run *blamed = NULL, *all = NULL;
    uint64_t pages_count = 0;
    uint64_t uncached;

    (void)unused;
    spy_install(w->vfs, NULL);
    write_run(w, 0, "again", &hashes);
    assert_int_equal(spy.past_written_bytes, w->runs[0]->head.pages_count * BOOKS_PAGE_SIZE);
    for (size_t run = 0; run < RUNS; run++)
        pages_count += w->runs[run]->head.pages_count;
    spy.past_written_bytes = 0;
    assert_ok(merge(w, &blamed, NULL));
    assert_int_equal(spy.past_read_bytes, pages_count * BOOKS_PAGE_SIZE);
    assert_int_equal(spy.read_bytes, spy.past_read_bytes);
    assert_ok(books_run_open(w->vfs, "all", &all, NULL));
    assert_int_equal(spy.past_written_bytes, all->head.pages_count * BOOKS_PAGE_SIZE);
    (void)books_run_drop(all);
    /* What is in memory since then leaves it too: of a run as the memory counts it. */
    w->vfs->ops = spy.below;
    assert_ok(books_run_open(w->vfs, "all", &all, NULL));
    uncached = io_memory_uncached(all->file);
    (void)books_run_drop(all);
    assert_ok(books_run_open(w->vfs, "all", &all, NULL));
    assert_int_equal(io_memory_uncached(all->file) - uncached,
                     BOOKS_PAGE_SIZE + all->resident_size);
    (void)books_run_drop(all);
    books_hashes_fini(&hashes);
    world_free(w);
}

/* A run that cannot be opened a second time, or not be read so, is read as it is. */
static void what_cannot_pass_the_cache_is_read(void **unused) RON_BLOCKS
{
    static uint8_t memory[BOOKS_CURSOR_SIZE + IO_DIRECT_SIZE];
    struct world *w = world_new(PLAIN);

    (void)unused;
    for (uint64_t fail_at = 1; fail_at <= 3; fail_at++) { /* the open, the first reads */
        const uint64_t live = ron_mem_live_count();
        struct books_cursor cursor = {.bytes = io_direct_page(memory)};
        size_t count = 0;

        spy_install(w->vfs, NULL);
        spy.fail_at = fail_at;
        spy.fail_err = fail_at == 1 ? RON_ERR_BUSY : RON_ERR_IO;
        assert_ok(books_cursor_begin(&cursor, w->runs[0], NULL));
        for (; !cursor.ended; count++)
            assert_ok(books_cursor_next(&cursor, NULL));
        assert_int_equal(count, w->starts[1]);
        assert_true(spy.past_read_bytes < spy.read_bytes);
        assert_true(spy.past_read_bytes <= (fail_at - 1) * BOOKS_CURSOR_SIZE);
        books_cursor_end(&cursor);
        assert_int_equal(ron_mem_live_count(), live);
        w->vfs->ops = spy.below;
    }
    world_free(w);
}

/* The pages that a balance begins with are asked for before the first is read. */
static void a_balance_asks_for_all_pages_at_once(void **unused) RON_BLOCKS
{
    struct world *w = world_new(PLAIN);
    struct books_view *view = ron_mem_alloc(sizeof(*view) + RUNS * sizeof(view->runs[0]));
    const struct books_place *place = &w->postings[0].place;
    struct ledger_thread thread = {.kind = LEDGER_THREAD_ACCOUNT, .asset = place->asset};
    struct books_sum sum = {.count = 0};
    uint64_t damaged = 0;

    (void)unused;
    assert_non_null(view);
    view->runs_count = RUNS;
    memcpy(view->runs, w->runs, sizeof(w->runs));
    ron_store_be64(thread.id.bytes, place->high);
    ron_store_be64(thread.id.bytes + 8, place->low);
    spy_install(w->vfs, NULL);
    assert_ok(books_view_balance(view, &thread, w->count, &sum, &damaged, NULL));
    assert_in_range(spy.fetched_count, RUNS - 1, 2 * RUNS); /* the last run has it not */
    assert_false(spy.fetched_late);
    assert_int_equal(spy.unfetched_reads, 0);
    assert_true(spy.read_bytes > 0);
    (void)ron_mem_free(view);
    world_free(w);
}

/* Some cursors are open then, and others were never begun. */
static void a_merge_that_fails_at_its_first_pages_leaves_nothing(void **unused) RON_BLOCKS
{
    struct world *w = world_new(EVEN);
    struct books_merger *merger = NULL;
    struct books_run *blamed = NULL;
    size_t count = 0;
    uint64_t live;

    (void)unused;
    spy_flip(w->vfs, "r3", BOOKS_PAGE_SIZE + 100, 4);
    live = ron_mem_live_count();
    assert_ok(books_merger_new(w->runs, RUNS, &merger, NULL));
    assert_int_equal(books_merger_step(merger, NULL, &count, &blamed, NULL), RON_ERR_WAL_CORRUPT);
    assert_ptr_equal(blamed, w->runs[3]);
    merger = books_merger_free(merger);
    assert_int_equal(ron_mem_live_count(), live);
    world_free(w);
}

static enum ron_err make_merger(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct world *w = context;
    struct books_merger *merger = NULL;
    enum ron_err err = books_merger_new(w->runs, RUNS, &merger, reterr);

    (void)books_merger_free(merger);
    return err;
}

static void no_memory_is_an_answer(void **unused) RON_BLOCKS
{
    struct world *w = world_new(EVEN);

    (void)unused;
    assert_int_equal(support_fail_each_allocation(make_merger, w, 20), 8);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_sorted_from_any_order),
        cmocka_unit_test(ties_are_sorted_among_themselves),
        cmocka_unit_test(runs_become_one_in_order),
        cmocka_unit_test(a_damaged_run_is_blamed),
        cmocka_unit_test(a_fence_that_is_too_low_is_blamed),
        cmocka_unit_test(a_run_out_of_order_is_blamed),
        cmocka_unit_test(a_thread_out_of_order_is_blamed),
        cmocka_unit_test(seqs_of_others_are_blamed),
        cmocka_unit_test(memory_used_again_leaves_nothing),
        cmocka_unit_test(pages_pass_the_cache),
        cmocka_unit_test(what_cannot_pass_the_cache_is_read),
        cmocka_unit_test(a_merge_that_fails_at_its_first_pages_leaves_nothing),
        cmocka_unit_test(a_balance_asks_for_all_pages_at_once),
        cmocka_unit_test(no_memory_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
