/*
 * test_books_run.c - one page and one run of the books, without threads. Method: drawn batches, an
 * oracle that looks at every entry for each answer; every byte of a run turned; every crash image
 * of writing one; every allocation failing.
 * tidy: long file because oracle, questions and damage share one world.
 */
#include <stdio.h>

#include "support.h"

#include "base/assert.h"
#include "base/b3.h"
#include "base/crc32c.h"
#include "books_frames.h"
#include "io/crash_images.h"
#include "io/vfs_faulty.h"

enum { ENTRIES_MAX = 4096, ACCOUNTS = 9, ASSETS = 3, SEQS_MAX = 4096 };

static const char path[] = "a.run";
static const char *const streams[] = {"state", "slice/1/bytes", "run/7"};

struct world {
    uint64_t random;
    uint64_t first_seq;
    size_t entries_count;
    struct ledger_entry entries[ENTRIES_MAX];
    uint8_t streams[ENTRIES_MAX];
    uint64_t batches[ENTRIES_MAX];
    bool has_key[ENTRIES_MAX]; /* the first of a batch that has one: */
    struct ledger_id keys[ENTRIES_MAX];
    struct books_page *page;
    struct io_vfs *vfs;
    struct drawn_frame drawn;
};

static const uint32_t asset_numbers[ASSETS] = {1, 2, 70000}; /* the last is wide in a page */

static uint32_t draw(struct world *w, uint32_t below)
{
    return (uint32_t)(draw_from(&w->random) % below);
}

/* The batch whose first entry comes next has a key. */
static void add_key(struct world *w)
{
    struct ledger_frame *frame = &w->drawn.frame;

    (void)snprintf(w->drawn.key, sizeof(w->drawn.key), "key %llu",
                   (unsigned long long)frame->batch);
    frame->has_key = true;
    frame->key = ron_slice_text(w->drawn.key);
    w->has_key[w->entries_count] = true;
    w->keys[w->entries_count] = ledger_key_id(&frame->stamp, frame->command, frame->key);
}

static void add_drawn(struct world *w)
{
    static const uint16_t kinds[] = {LEDGER_TRANSFER, LEDGER_TRANSFER, LEDGER_TRANSFER,
                                     LEDGER_MINT,     LEDGER_HOLD,     LEDGER_ANCHOR,
                                     LEDGER_ASSET,    LEDGER_REVERSE};
    struct ledger_entry entry = {.kind = kinds[draw(w, RON_ARRAY_COUNT(kinds))]};
    /* A few accounts do most; amounts of every size. */
    const uint32_t debit = draw(w, 3) == 0 ? draw(w, ACCOUNTS) : 0;
    const uint32_t shift = draw(w, 4) == 0 ? draw(w, 128) : draw(w, 8);

    if (entry.kind == LEDGER_MINT) { /* its debit is an account of its own */
        entry.debit = drawn_id(1, ACCOUNTS);
        entry.credit = drawn_id(1, debit);
    } else {
        entry.debit = drawn_id(1, debit);
        entry.credit = drawn_id(1, (debit + 1 + draw(w, ACCOUNTS - 1)) % ACCOUNTS);
        entry.nonce = draw(w, 2);
    }
    entry.asset = entry.kind == LEDGER_ANCHOR ? 0 : asset_numbers[draw(w, ASSETS)];
    entry.amount.v = ((unsigned __int128)draw(w, 1 << 30) << shift) + 1;
    w->streams[w->entries_count] = (uint8_t)draw(w, RON_ARRAY_COUNT(streams));
    frame_add(&w->drawn, entry,
              entry.kind == LEDGER_ANCHOR ? streams[w->streams[w->entries_count]] : NULL);
    w->entries[w->entries_count] = w->drawn.entries[w->drawn.frame.entries_count - 1];
    w->batches[w->entries_count++] = w->drawn.frame.batch;
}

/* A page of entries_count drawn entries. */
static struct world *world_new(uint64_t seed, size_t entries_count)
{
    struct world *w = ron_mem_alloc(sizeof(*w));
    uint64_t batch = 100;

    assert_non_null(w);
    w->random = seed;
    w->first_seq = 1000 + seed;
    while (w->entries_count < entries_count) {
        size_t left = entries_count - w->entries_count;

        frame_begin(&w->drawn, batch++, w->first_seq + w->entries_count);
        if (draw(w, 4) != 0)
            add_key(w);
        for (uint32_t i = draw(w, 7); i < 7 && left > 0; i++, left--)
            add_drawn(w);
        frame_end(&w->drawn);
        if (w->page == NULL)
            assert_ok(books_page_new((uint32_t)entries_count * 5 + 8, (uint32_t)entries_count,
                                     &w->drawn.frame, &w->page, NULL));
        assert_true(books_page_fits(w->page, &w->drawn.frame));
        books_page_add(w->page, &w->drawn.frame);
    }
    assert_ok(io_vfs_memory_new(NULL, &w->vfs, NULL));
    return w;
}

static void world_free(struct world *w)
{
    (void)books_page_drop(w->page);
    (void)io_vfs_free(w->vfs);
    (void)ron_mem_free(w);
}

static enum ron_err write_page(const struct books_page *page, struct io_vfs *vfs, const char *name,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct books_order *order = NULL;
    enum ron_err err = books_page_write(page, &order, vfs, name, reterr);

    (void)books_order_free(order);
    return err;
}

/* ---- The oracle ---- */

static bool belongs(const struct world *w, size_t i, const struct ledger_thread *thread)
{
    const struct ledger_entry *entry = &w->entries[i];
    const bool moves = entry->kind != LEDGER_ANCHOR && entry->kind != LEDGER_ASSET;
    struct ledger_thread stream;

    switch ((unsigned)thread->kind) {
    case LEDGER_THREAD_KEY:
        return w->has_key[i] && ledger_id_equal(&w->keys[i], &thread->id);
    case LEDGER_THREAD_ACCOUNT:
        return moves && entry->asset == thread->asset &&
               (ledger_id_equal(&entry->debit, &thread->id) ||
                ledger_id_equal(&entry->credit, &thread->id));
    case LEDGER_THREAD_HOLDS:
        return entry->kind == LEDGER_HOLD && ledger_id_equal(&entry->debit, &thread->id);
    case LEDGER_THREAD_STREAM:
        stream = ledger_stream_thread(ron_slice_text(streams[w->streams[i]]));
        return entry->kind == LEDGER_ANCHOR && ledger_id_equal(&stream.id, &thread->id);
    default:
        return entry->kind == LEDGER_ASSET;
    }
}

static size_t oracle_seqs(const struct world *w, const struct ledger_thread *thread, uint64_t after,
                          bool newest_first, uint64_t *seqs, size_t seqs_max)
{
    size_t count = 0;

    for (size_t n = 0; n < w->entries_count && count < seqs_max; n++) {
        size_t i = newest_first ? w->entries_count - 1 - n : n;
        uint64_t seq = w->entries[i].seq;

        if ((newest_first ? seq < after : seq > after) && belongs(w, i, thread))
            seqs[count++] = seq;
    }
    return count;
}

/* Credits and debits apart: no arithmetic is shared with the books. */
static void oracle_sum(const struct world *w, const struct ledger_thread *thread, uint64_t at_seq,
                       struct books_sum *ret_sum)
{
    struct ron_u256 in = {.low = ron_u128_of(0)}, out = in, rest;
    struct books_sum sum = {.count = 0};

    for (size_t i = 0; i < w->entries_count && w->entries[i].seq <= at_seq; i++) {
        const struct ledger_entry *entry = &w->entries[i];
        const struct ron_u256 amount = {.low = entry->amount};

        if (!belongs(w, i, thread))
            continue;
        if (ledger_id_equal(&entry->credit, &thread->id)) {
            assert_true(ron_u256_add(in, amount, &in));
        } else {
            assert_true(ron_u256_add(out, amount, &out));
            sum.count += entry->nonce != 0;
            sum.mint |= entry->kind == LEDGER_MINT;
        }
    }
    rest.low.v = in.low.v - out.low.v;
    rest.high.v = in.high.v - out.high.v - (in.low.v < out.low.v);
    sum.low = rest.low.v;
    sum.high = (int64_t)(uint64_t)rest.high.v;
    *ret_sum = sum;
}

/* ---- Questions ---- */

struct asked {
    struct books_page *page; /* or */
    struct books_run *run;
    bool may_fail; /* damaged: an error is an answer, a wrong one is not */
    unsigned failures_count, answers_count;
};

/* Was there an answer? */
static bool answered(struct asked *asked, enum ron_err err)
{
    if (err == RON_ERR_OK) {
        asked->answers_count++;
        return true;
    }
    assert_true(asked->may_fail);
    assert_int_equal(err, RON_ERR_WAL_CORRUPT);
    asked->failures_count++;
    return false;
}

static void check_seqs(struct world *w, struct asked *asked, const struct ledger_thread *thread,
                       uint64_t after, bool newest_first, size_t seqs_max) RON_BLOCKS
{
    static uint64_t got[SEQS_MAX], wanted[SEQS_MAX];
    const size_t wanted_count = oracle_seqs(w, thread, after, newest_first, wanted, seqs_max);
    size_t count = 0;
    enum ron_err err = RON_ERR_OK;

    if (asked->run == NULL) {
        count = books_page_seqs(asked->page, thread, after, newest_first, got, seqs_max);
    } else {
        if (wanted_count > 0)
            assert_true(books_run_may_have(asked->run, thread));
        err = books_run_seqs(asked->run, thread, after, newest_first, got, seqs_max, &count, NULL);
    }
    if (!answered(asked, err))
        return;
    assert_int_equal(count, wanted_count);
    assert_memory_equal(got, wanted, count * sizeof(got[0]));
}

static void check_thread(struct world *w, struct asked *asked,
                         const struct ledger_thread *thread) RON_BLOCKS
{
    const uint64_t last = w->first_seq + w->entries_count - 1;
    const uint64_t middle = w->first_seq + draw(w, (uint32_t)w->entries_count);

    check_seqs(w, asked, thread, 0, false, SEQS_MAX);
    check_seqs(w, asked, thread, UINT64_MAX, true, SEQS_MAX);
    check_seqs(w, asked, thread, middle, false, 1 + draw(w, 9));
    check_seqs(w, asked, thread, middle, true, 1 + draw(w, 9));
    check_seqs(w, asked, thread, last, false, 3);
    check_seqs(w, asked, thread, w->first_seq, true, 3);
}

static void check_sum(struct world *w, struct asked *asked, const struct ledger_thread *thread,
                      uint64_t at_seq) RON_BLOCKS
{
    struct books_sum got, wanted;
    enum ron_err err = RON_ERR_OK;

    oracle_sum(w, thread, at_seq, &wanted);
    if (asked->run == NULL)
        books_page_sum(asked->page, thread, at_seq, &got);
    else
        err = books_run_sum(asked->run, thread, at_seq, &got, NULL);
    if (!answered(asked, err))
        return;
    assert_true(got.low == wanted.low);
    assert_true(got.high == wanted.high);
    assert_int_equal(got.mint, wanted.mint);
    if (asked->run != NULL) /* a page counts the nonces of all assets */
        assert_int_equal(got.count, wanted.count);
}

static void check_accounts(struct world *w, struct asked *asked) RON_BLOCKS
{
    for (uint32_t n = 0; n <= ACCOUNTS; n++) {
        const struct ledger_id account = drawn_id(1, n);

        for (uint32_t asset = 0; asset < ASSETS; asset++) {
            struct ledger_thread thread = ledger_account_thread(&account, asset_numbers[asset]);

            check_thread(w, asked, &thread);
            check_sum(w, asked, &thread, w->first_seq - 1);
            check_sum(w, asked, &thread, w->first_seq);
            check_sum(w, asked, &thread, UINT64_MAX);
            for (unsigned i = 0; i < 4; i++)
                check_sum(w, asked, &thread, w->first_seq + draw(w, (uint32_t)w->entries_count));
        }
        check_thread(w, asked, &(struct ledger_thread){LEDGER_THREAD_HOLDS, 0, account});
    }
}

/* The key of the batch that the entry is the first of, if it has one. */
static void check_key(struct world *w, struct asked *asked, size_t i) RON_BLOCKS
{
    if (w->has_key[i])
        check_seqs(w, asked, &(struct ledger_thread){LEDGER_THREAD_KEY, 0, w->keys[i]}, 0, false,
                   3);
}

static void check_batch(struct world *w, struct asked *asked, size_t i) RON_BLOCKS
{
    const struct ledger_thread starts = {.kind = LEDGER_THREAD_BATCHES};
    struct books_sum sum;

    if (asked->run == NULL)
        assert_int_equal(books_page_batch(asked->page, w->entries[i].seq), w->batches[i]);
    else if (answered(asked, books_run_sum(asked->run, &starts, w->entries[i].seq, &sum, NULL)))
        assert_int_equal(asked->run->head.first_batch + sum.count - 1, w->batches[i]);
}

static void check_all(struct world *w, struct asked *asked, size_t entries_step) RON_BLOCKS
{
    struct ledger_thread thread = ledger_kind_thread(LEDGER_ASSET);

    check_thread(w, asked, &thread);
    for (size_t i = 0; i < RON_ARRAY_COUNT(streams); i++) {
        thread = ledger_stream_thread(ron_slice_text(streams[i]));
        check_thread(w, asked, &thread);
    }
    for (size_t i = 0; i < w->entries_count; i += entries_step) {
        check_key(w, asked, i);
        check_batch(w, asked, i);
    }
    thread = (struct ledger_thread){LEDGER_THREAD_KEY, 0, drawn_id(3, 0)};
    check_seqs(w, asked, &thread, 0, false, 3);
    check_accounts(w, asked);
}

/* A few of each sort: for damage that is tried thousands of times. */
static void check_few(struct world *w, struct asked *asked) RON_BLOCKS
{
    for (uint32_t n = 0; n < ACCOUNTS; n += 3) {
        const struct ledger_id account = drawn_id(1, n);
        const struct ledger_thread thread = ledger_account_thread(&account,
                                                                  asset_numbers[draw(w, ASSETS)]);

        check_sum(w, asked, &thread, w->first_seq + draw(w, (uint32_t)w->entries_count));
        check_seqs(w, asked, &thread, 0, draw(w, 2) == 0, 5);
    }
    for (size_t i = draw(w, 40); i < w->entries_count; i += 40) {
        check_key(w, asked, i);
        check_batch(w, asked, i);
    }
}

/* ---- Tests ---- */

static void a_page_and_its_run_say_what_was_added(void **state) RON_BLOCKS
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world *w = world_new(seed, seed < 6 ? seed * 3 : seed * 250);
        struct asked asked = {.page = w->page};

        check_all(w, &asked, 7);
        assert_ok(write_page(w->page, w->vfs, path, NULL));
        assert_ok(books_run_open(w->vfs, path, &asked.run, NULL));
        assert_int_equal(asked.run->head.first_batch, 100);
        assert_int_equal(asked.run->head.last_seq, w->first_seq + w->entries_count - 1);
        check_all(w, &asked, 7);
        assert_true(asked.answers_count > 200);
        (void)books_run_drop(asked.run);
        world_free(w);
    }
}

static void assets_of_an_account_come_in_order(void **state) RON_BLOCKS
{
    struct world *w = world_new(3, 2000);
    const struct ledger_id account = drawn_id(1, 0), nobody = drawn_id(9, 0);
    struct books_run *run = NULL;
    uint32_t asset = 0;

    (void)state;
    assert_ok(write_page(w->page, w->vfs, path, NULL));
    assert_ok(books_run_open(w->vfs, path, &run, NULL));
    for (uint32_t wanted = 0; wanted < ASSETS; wanted++) {
        assert_ok(books_run_next_asset(run, &account, asset + 1, &asset, NULL));
        assert_int_equal(asset, asset_numbers[wanted]);
    }
    assert_ok(books_run_next_asset(run, &account, asset + 1, &asset, NULL));
    assert_int_equal(asset, 0);
    assert_ok(books_run_next_asset(run, &nobody, 1, &asset, NULL));
    assert_int_equal(asset, 0);
    (void)books_run_drop(run);
    world_free(w);
}

static void turn_byte(struct io_vfs *vfs, uint64_t offset, uint8_t mask) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    byte ^= mask;
    assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    (void)io_file_close(file);
}

/* One byte of each place is turned: no answer is ever wrong, and the damage is seen. */
static void no_damage_is_believed(void **state) RON_BLOCKS
{
    struct world *w = world_new(5, 300);
    struct books_run *run = NULL;
    uint64_t size;

    (void)state;
    assert_ok(write_page(w->page, w->vfs, path, NULL));
    assert_ok(books_run_open(w->vfs, path, &run, NULL));
    size = run->file_size;
    assert_true(run->head.pages_count >= 2);
    (void)books_run_drop(run);
    for (uint64_t offset = 0; offset < size; offset++) {
        struct asked asked = {.may_fail = true};
        uint8_t mask = (uint8_t)(1u << offset % 8);
        enum ron_err err;

        turn_byte(w->vfs, offset, mask);
        err = books_run_open(w->vfs, path, &asked.run, NULL);
        if (err == RON_ERR_OK) {
            if (offset % 16 == 0) {
                check_all(w, &asked, 1);
                assert_true(asked.failures_count > 0);
            }
            check_few(w, &asked);
            (void)books_run_drop(asked.run);
        } else {
            assert_int_equal(err, RON_ERR_WAL_CORRUPT);
        }
        turn_byte(w->vfs, offset, mask);
    }
    world_free(w);
}

/* A page of another run, in the right place and sound in itself. */
static void a_page_of_another_run_is_not_believed(void **state) RON_BLOCKS
{
    struct world *w = world_new(5, 200), *other = world_new(6, 200);
    struct asked asked = {.may_fail = true};
    struct io_file *from = NULL, *to = NULL;
    uint8_t bytes[BOOKS_PAGE_SIZE];
    size_t size = 0;

    (void)state;
    assert_ok(write_page(w->page, w->vfs, path, NULL));
    assert_ok(write_page(other->page, other->vfs, path, NULL));
    assert_ok(io_vfs_open(other->vfs, path, IO_OPEN_READ, &from, NULL));
    assert_ok(io_vfs_open(w->vfs, path, IO_OPEN_WRITE, &to, NULL));
    assert_ok(io_file_read(from, BOOKS_PAGE_SIZE, bytes, sizeof(bytes), &size, NULL));
    assert_ok(io_file_write(to, BOOKS_PAGE_SIZE, &(struct ron_slice){bytes, size}, 1, NULL));
    (void)io_file_close(from);
    (void)io_file_close(to);
    assert_ok(books_run_open(w->vfs, path, &asked.run, NULL));
    check_all(w, &asked, 1);
    assert_true(asked.failures_count > 0);
    (void)books_run_drop(asked.run);
    world_free(w);
    world_free(other);
}

struct crash {
    struct world *w;
    bool written;
    unsigned whole_count, none_count;
};

static bool look_at(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                    enum io_crash_class class) RON_BLOCKS
{
    struct crash *crash = context;
    struct asked asked = {.page = NULL};
    enum ron_err err = books_run_open(image, path, &asked.run, NULL);

    (void)plan;
    (void)class;
    if (err == RON_ERR_OK) {
        check_accounts(crash->w, &asked);
        (void)books_run_drop(asked.run);
        crash->whole_count++;
    } else { /* never a file with that name that is not whole */
        assert_int_equal(err, RON_ERR_NOT_FOUND);
        assert_false(crash->written);
        crash->none_count++;
    }
    return true;
}

static void a_crash_leaves_the_run_or_none(void **state) RON_BLOCKS
{
    static const enum io_fault_call calls[] = {IO_CALL_OPEN, IO_CALL_WRITE, IO_CALL_SYNC,
                                               IO_CALL_NAME};
    struct crash crash = {.w = NULL};

    (void)state;
    for (size_t c = 0; c < RON_ARRAY_COUNT(calls); c++) {
        for (uint64_t at = 1; at < 12; at++) {
            const struct io_fault fault = {calls[c] == IO_CALL_WRITE ? IO_FAULT_SHORT_WRITE
                                                                     : IO_FAULT_EIO,
                                           calls[c], NULL, at, 1000};
            const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
            const struct io_crash_options images = {.seed = at, .tears_max = 8};
            struct io_crash_counts counts = {{0}};
            struct io_vfs *faulty = NULL;

            crash.w = world_new(at, 90);
            assert_ok(io_vfs_faulty_new(crash.w->vfs, &options, &faulty, NULL));
            crash.written = write_page(crash.w->page, faulty, path, NULL) == RON_ERR_OK;
            assert_ok(io_crash_images(crash.w->vfs, &images, look_at, &crash, &counts, NULL));
            (void)io_vfs_free(faulty);
            world_free(crash.w);
        }
    }
    assert_true(crash.whole_count > 10);
    assert_true(crash.none_count > 10);
}

static enum ron_err write_and_ask(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct world *w = context;
    const struct ledger_id account = drawn_id(1, 0);
    const struct ledger_thread thread = ledger_account_thread(&account, 1);
    struct books_run *run = NULL;
    uint64_t seqs[4];
    size_t count = 0;
    enum ron_err err = write_page(w->page, w->vfs, path, reterr);

    if (err == RON_ERR_OK)
        err = books_run_open(w->vfs, path, &run, reterr);
    if (err == RON_ERR_OK)
        err = books_run_seqs(run, &thread, UINT64_MAX, true, seqs, 4, &count, reterr);
    (void)books_run_drop(run);
    return err;
}

static bool fail_at(size_t size, void *context)
{
    unsigned *left = context;

    (void)size;
    return --*left == 0;
}

static enum ron_err make_page(void *context, struct ron_errinfo *reterr)
{
    struct world *w = context;
    struct books_page *page = NULL;
    enum ron_err err = books_page_new(100, 10, &w->drawn.frame, &page, reterr);

    (void)books_page_drop(page);
    return err;
}

/* The file stays from one attempt to the next: its memory is not the books'. */
static void no_memory_is_an_answer(void **state) RON_BLOCKS
{
    struct world *w = world_new(4, 200);
    unsigned left = 0, failed_count = 0;

    (void)state;
    assert_true(support_fail_each_allocation(make_page, w, 20) == 5);
    for (unsigned n = 1; n < 200; n++) {
        enum ron_err err;

        left = n;
        ron_mem_set_fail_hook(fail_at, &left);
        err = write_and_ask(w, NULL);
        ron_mem_set_fail_hook(NULL, NULL);
        if (err == RON_ERR_OK)
            break;
        assert_int_equal(err, RON_ERR_NO_MEMORY);
        failed_count++;
    }
    assert_true(failed_count > 5);
    world_free(w);
}

/* The bytes of docs/formats.md: a run of drawn entries is this one and no other. */
static void the_format_stays(void **state) RON_BLOCKS
{
    struct world *w = world_new(5, 200);
    struct io_file *file = NULL;
    static uint8_t bytes[1 << 16];
    char text[RON_B3_TEXT_SIZE];
    struct ron_b3_ctx ctx;
    struct ron_b3 hash;
    size_t size = 0;

    (void)state;
    assert_ok(write_page(w->page, w->vfs, path, NULL));
    assert_ok(io_vfs_open(w->vfs, path, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, sizeof(bytes), &size, NULL));
    assert_memory_equal(bytes, "RONBOOK\1\4\0\0\0\0\0\0\0", 16);
    assert_int_equal(ron_load_le64(bytes + 16), 1005);
    assert_int_equal(ron_load_le64(bytes + 24), 1204);
    ron_b3_init(&ctx);
    ron_b3_update(&ctx, bytes, size);
    hash = ron_b3_final(&ctx);
    ron_b3_print(&hash, text);
    assert_string_equal(text,
                        "b3:46f478bafcea0aa0f103899f044217779cc11dde96e3ecbe1e23f6145a1aeeaf");
    (void)io_file_close(file);
    world_free(w);
}

/* Sound, of the version before: it had threads of other kinds. */
static void another_version_is_made_again(void **state) RON_BLOCKS
{
    struct world *w = world_new(5, 20);
    struct books_run *run = NULL;
    struct io_file *file = NULL;
    uint8_t head[BOOKS_PAGE_SIZE];
    size_t size = 0;

    (void)state;
    assert_ok(write_page(w->page, w->vfs, path, NULL));
    assert_ok(io_vfs_open(w->vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, 0, head, sizeof(head), &size, NULL));
    ron_store_le32(head + 8, BOOKS_VERSION - 1);
    ron_store_le32(head + sizeof(head) - 4, ron_crc32c(0, head, sizeof(head) - 4));
    assert_ok(io_file_write(file, 0, &(struct ron_slice){head, sizeof(head)}, 1, NULL));
    (void)io_file_close(file);
    assert_int_equal(books_run_open(w->vfs, path, &run, NULL), RON_ERR_VERSION_SKEW);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_and_its_run_say_what_was_added),
        cmocka_unit_test(assets_of_an_account_come_in_order),
        cmocka_unit_test(no_damage_is_believed),
        cmocka_unit_test(a_page_of_another_run_is_not_believed),
        cmocka_unit_test(a_crash_leaves_the_run_or_none),
        cmocka_unit_test(no_memory_is_an_answer),
        cmocka_unit_test(the_format_stays),
        cmocka_unit_test(another_version_is_made_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
