/*
 * test_books_format.c - threads and postings in a page of a run. Method: a page by hand, byte for
 * byte from docs/formats.md; drawn postings written and read back; every byte of a page changed,
 * which must end the reading within the page.
 */
#include <stdlib.h>

#include "support.h"

#include "ledger/books_get.h"

enum { FIRST_SEQ = 1000, POSTINGS_MAX = 4096 };

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static struct books_posting posting_of(uint32_t kind, uint64_t high, uint64_t low, uint32_t asset,
                                       uint64_t seq, uint64_t amount)
{
    return (struct books_posting){.place = {high, low, seq, asset, kind}, .amount = amount};
}

static bool same_thread(const struct books_posting *a, const struct books_posting *b)
{
    return books_thread_compare(&a->place, &b->place) == 0;
}

/* As many as fit one page; what a thread comes to before each posting in *ret_before. */
static size_t fill(struct books_page_writer *writer, const struct books_posting *postings,
                   size_t count, struct books_sum *before)
{
    size_t i = 0;

    books_page_begin(writer, FIRST_SEQ);
    for (; i < count; i++) {
        const bool same = i > 0 && same_thread(&postings[i - 1], &postings[i]);

        if (same) {
            before[i] = before[i - 1];
            books_sum_add(&before[i], &postings[i - 1]);
        }
        if (books_page_is_full(writer))
            break;
        books_page_put(writer, &postings[i], &before[i], same);
    }
    books_page_end(writer, 0, 7);
    return i;
}

static void a_page_is_golden(void **unused)
{
    static const uint8_t wanted[] =
        {
            /* keys: the first from zeros, the second shares three bytes with it */
            0x01, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0x05, /* seq 1005 */
            0x31, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0x00,                   /* seq 1000 */
            0x02, 0,    0,    0,    0,    0,    0,    0,    0,    0,
            0,    0,    0,    0,    0,    0,    0,    0x0b, 0x08, /* batches: 1005, 1009 */
            0x0b, 0xc1, 0,    0,    0,    0,    0,    0,    0,    0,
            0,    0,    0,    0,    0,    0,    0xc2,                   /* account, terms */
            0x00, 0x01, 0x00, 0x16, 0x01, 0x28, 0x25, 0x82, 0x2c, 0x01, /* two postings */
            0xf3, 0xc3, 0x04, 0x00,                                     /* another, of this asset */
            0xfb, 0xc4, 0x02, 0x01, 0x01, 0xff, 0x08, 0x01, 0x09,       /* terms: it goes on */
            0xfb, 0xc5, 0x00, 0x02, 0x00, 0x0c, 0x01, 0x09,             /* terms: asset 2 */
        };
    const struct books_posting postings[] = {
        posting_of(LEDGER_THREAD_KEY, 0xa1a2a3a4a5a6a7a8, 0, 0, 1005, 0),
        posting_of(LEDGER_THREAD_KEY, 0xa1a2a3b4b5b6b7b8, 0, 0, 1000, 0),
        posting_of(LEDGER_THREAD_BATCHES, 0, 0, 0, 1005, 0),
        posting_of(LEDGER_THREAD_BATCHES, 0, 0, 0, 1009, 0),
        posting_of(LEDGER_THREAD_ACCOUNT, (uint64_t)0xc1 << 56, 0xc2, 1, 1005, 0x28),
        posting_of(LEDGER_THREAD_ACCOUNT, (uint64_t)0xc1 << 56, 0xc2, 1, 1014, 0x12c),
        posting_of(LEDGER_THREAD_ACCOUNT, (uint64_t)0xc1 << 56, 0xc3, 1, 1001, 0),
        posting_of(LEDGER_THREAD_ACCOUNT, (uint64_t)0xc1 << 56, 0xc4, 1, 1002, 9),
        posting_of(LEDGER_THREAD_ACCOUNT, (uint64_t)0xc1 << 56, 0xc5, 2, 1003, 9),
    };
    struct books_posting changed[RON_ARRAY_COUNT(postings)];
    struct books_sum before[RON_ARRAY_COUNT(postings)] = {{.count = 0}};
    static struct books_page_writer writer;

    (void)unused;
    memcpy(changed, postings, sizeof(postings));
    changed[5].nonce = changed[5].negative = true;
    before[7] = (struct books_sum){.low = ~(unsigned __int128)0, .high = -1, .count = 2};
    assert_int_equal(fill(&writer, changed, RON_ARRAY_COUNT(changed), before),
                     RON_ARRAY_COUNT(changed));
    assert_int_equal(writer.used, sizeof(wanted));
    assert_memory_equal(writer.bytes, wanted, sizeof(wanted));
    assert_int_equal(ron_load_le32(writer.bytes + 4084), sizeof(wanted));
}

static int by_place(const void *a, const void *b)
{
    const struct books_posting *first = a, *second = b;

    return books_place_compare(&first->place, &second->place);
}

static size_t draw_postings(struct books_posting *postings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t kind = 1 + draw(LEDGER_THREAD__MAX - 1);
        const bool account = kind == LEDGER_THREAD_ACCOUNT;
        const bool prefix = kind == LEDGER_THREAD_KEY;
        /* Ids that share nothing, some bytes, all but the last one, everything. */
        const uint64_t high = (uint64_t)draw(3) << 56 | (uint64_t)draw(2) << 24 | draw(2);

        postings[i] = posting_of(kind, high, prefix ? 0 : (uint64_t)draw(2) << 63 | draw(2),
                                 account ? draw(3) : 0, FIRST_SEQ + draw(3) * 1000003 + i,
                                 account ? draw(1000) : 0);
        postings[i].negative = account && draw(2) == 0;
        postings[i].nonce = account && draw(2) == 0;
    }
    qsort(postings, count, sizeof(*postings), by_place);
    return count;
}

static void what_is_written_is_read(void **unused)
{
    static struct books_posting postings[POSTINGS_MAX];
    static struct books_sum before[POSTINGS_MAX];
    static struct books_page_writer writer;

    (void)unused;
    for (state = 1; state < 40; state++) {
        const uint64_t seed = state;
        const size_t count = draw_postings(postings, 1 + draw(300));
        struct books_page_reader reader;
        size_t written;

        memset(before, 0, sizeof(before));
        before[0] = (struct books_sum){.count = draw(3), .low = draw(3)};
        if (postings[0].place.kind != LEDGER_THREAD_ACCOUNT)
            before[0] = (struct books_sum){.count = 0};
        written = fill(&writer, postings, count, before);
        books_page_open(&reader, writer.bytes, FIRST_SEQ);
        for (size_t i = 0; i < written; i++) {
            struct books_sum sum = before[i];

            assert_int_equal(books_page_step(&reader), BOOKS_STEP_POSTING);
            assert_memory_equal(&reader.posting.place, &postings[i].place,
                                sizeof(postings[i].place));
            books_sum_add(&sum, &postings[i]);
            if (postings[i].place.kind == LEDGER_THREAD_ACCOUNT) {
                assert_true(reader.posting.amount == postings[i].amount);
                assert_int_equal(reader.posting.negative, postings[i].negative);
                assert_int_equal(reader.posting.nonce, postings[i].nonce);
                assert_true(reader.sum.low == sum.low && reader.sum.high == sum.high);
                assert_int_equal(reader.sum.count, sum.count);
            }
        }
        assert_int_equal(books_page_step(&reader), BOOKS_STEP_END);
        state = seed;
    }
}

/* What a page holds ends it or is bad; nothing beyond its bytes is looked at (the sanitizers'
 * business), and it takes no more steps than it has bytes. */
static void any_bytes_end_within_the_page(void **unused)
{
    static struct books_posting postings[POSTINGS_MAX];
    static struct books_sum before[POSTINGS_MAX];
    static struct books_page_writer writer;

    (void)unused;
    state = 99;
    (void)fill(&writer, postings, draw_postings(postings, 60), before);
    for (size_t at = 0; at < writer.used; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct books_page_reader reader;
            size_t steps = 0;

            writer.bytes[at] ^= (uint8_t)(1u << bit);
            books_page_open(&reader, writer.bytes, FIRST_SEQ);
            while (books_page_step(&reader) == BOOKS_STEP_POSTING)
                steps++;
            assert_true(steps <= writer.used);
            assert_true(reader.at <= writer.used);
            writer.bytes[at] ^= (uint8_t)(1u << bit);
        }
}

static void bad_threads_are_bad(void **unused)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"\x00", 1},                                          /* no kind */
        {"\xf7\x00\x00", 3},                                  /* a kind that there is not */
        {"\x81\x00", 2},                                      /* more than an id of 8 bytes */
        {"\x71", 1},                                          /* cut before the id */
        {"\xf5\x00", 2},                                      /* cut before the posting */
        {"\xfc\x00\x00\x00", 4},                              /* terms of a Hold */
        {"\xf5\x00\x01", 3},                                  /* another one should follow */
        {"\xfb\x00\x00\xff\xff\xff\xff\xff\x01\x00\x00", 11}, /* an asset of 36 bits */
    };

    (void)unused;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        static uint8_t page[BOOKS_PAGE_SIZE];
        struct books_page_reader reader;
        enum books_step step;

        memset(page, 0, sizeof(page));
        memcpy(page, cases[i].bytes, cases[i].size);
        ron_store_le32(page + BOOKS_PAGE_DATA + 4, (uint32_t)cases[i].size);
        books_page_open(&reader, page, FIRST_SEQ);
        while ((step = books_page_step(&reader)) == BOOKS_STEP_POSTING) {
        }
        assert_int_equal(step, BOOKS_STEP_BAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_golden),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(any_bytes_end_within_the_page),
        cmocka_unit_test(bad_threads_are_bad),
    };

    return cmocka_run_group_tests_name("books_format", tests, NULL, NULL);
}
