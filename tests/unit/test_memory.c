/*
 * test_memory.c - heap memory, its failure hook, and arenas. Method: exact bounds, and every
 * allocation made to fail once.
 */
#include "support.h"

#include <sys/mman.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/pages.h"

static void alloc_gives_zeroed_counted_memory(void **state)
{
    uint64_t live = ron_mem_live_count();
    uint8_t *bytes = ron_mem_alloc(1000);

    (void)state;
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes % 16, 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(ron_mem_live_count(), live + 1);
    bytes[0] = 7;
    bytes = ron_mem_resize(bytes, 5000);
    assert_non_null(bytes);
    assert_int_equal(bytes[0], 7);
    assert_int_equal(ron_mem_live_count(), live + 1);
    assert_null(ron_mem_free(bytes));
    assert_null(ron_mem_free(NULL));
    assert_int_equal(ron_mem_live_count(), live);
    assert_dies(assert_null(ron_mem_alloc(0)), "size > 0");
}

static void alloc_refuses_beyond_its_limit(void **state)
{
    (void)state;
    assert_null(ron_mem_alloc((size_t)RON_ALLOCATION_SIZE_MAX + 1));
    assert_null(ron_mem_resize(NULL, SIZE_MAX));
    assert_null(ron_mem_alloc_array(SIZE_MAX / 16 + 2, 16)); /* the product wraps to 16 */
    assert_null(ron_mem_alloc_array((size_t)RON_ALLOCATION_SIZE_MAX / 16 + 1, 16));
}

static void tables_are_zeroed_and_counted(void **state)
{
    const uint64_t counts[] = {1, 1000, 1 << 20, (1 << 20) + 1, 3 << 20, 4 << 20, (4 << 20) + 1};
    const uint64_t live = ron_mem_live_count();

    (void)state;
    for (size_t i = 0; i < 3 * RON_ARRAY_COUNT(counts); i++) {
        const enum ron_table_kind kind = (enum ron_table_kind)(i % 3);
        const uint64_t huge_least = kind == RON_TABLE_DISK     ? 1 << 20
                                    : kind == RON_TABLE_RANDOM ? 4 << 20
                                                               : UINT64_MAX;
        uint8_t *table = ron_table_alloc(counts[i / 3], 1, kind);

        assert_non_null(table);
        assert_int_equal((uintptr_t)table % 16, 0);
        if (counts[i / 3] >= huge_least && !RON_ASAN)
            assert_int_equal((uintptr_t)table % (2 << 20), 0); /* huge pages fit */
        for (uint64_t at = 0; at < counts[i / 3]; at++)
            if (table[at] != 0)
                fail_msg("byte %llu", (unsigned long long)at);
        memset(table, 7, counts[i / 3]);
        assert_int_equal(ron_mem_live_count(), live + 1);
        assert_null(ron_table_free(table));
        assert_int_equal(ron_mem_live_count(), live);
    }
    assert_null(ron_table_free(NULL));
    assert_null(ron_table_alloc(RON_TABLE_SIZE_MAX / 8 + 1, 8, RON_TABLE_IN_ORDER));
    assert_null(ron_table_alloc(UINT64_MAX / 16 + 2, 16, RON_TABLE_IN_ORDER)); /* wraps to 16 */
    assert_dies(assert_null(ron_table_alloc(0, 8, RON_TABLE_IN_ORDER)), "size > 0");
}

/* Whole pages among the bytes, no other, and what is in them stays. */
static void pages_are_made_before_their_use(void **state)
{
    enum { PAGE = 4096, PAGES = 1024 };
    uint8_t *table = ron_table_alloc(PAGES * PAGE, 1, RON_TABLE_IN_ORDER);
    unsigned char resident[PAGES];

    (void)state;
    assert_non_null(table);
    (void)!madvise(table, PAGES * PAGE, MADV_NOHUGEPAGE); /* where each is `always` one */
    table[10 * PAGE + 5] = 7;
    ron_pages_make(table + 8 * PAGE - 1, 0);
    ron_pages_make(table + 8 * PAGE - 1, PAGE);         /* no whole page */
    ron_pages_make(table + 8 * PAGE - 1, 4 * PAGE + 5); /* 8 to 11 */
    assert_int_equal(table[10 * PAGE + 5], 7);
#if defined(MADV_POPULATE_WRITE)
    if (!RON_ASAN && madvise(table, PAGE, MADV_POPULATE_WRITE) == 0) {
        assert_int_equal(mincore(table, sizeof(resident) * PAGE, resident), 0);
        for (size_t i = 0; i < PAGES; i++)
            assert_int_equal(resident[i] & 1, i == 0 || (i >= 8 && i < 12));
    }
#endif
    assert_null(ron_table_free(table));
}

/* Every page that a byte is in, no other. */
static void pages_are_touched_by_their_owner(void **state)
{
    enum { PAGE = 4096, PAGES = 1024 };
    uint8_t *table = ron_table_alloc(PAGES * PAGE, 1, RON_TABLE_IN_ORDER);
    unsigned char resident[PAGES];

    (void)state;
    assert_non_null(table);
    table[10 * PAGE + 5] = 7;
    table[9 * PAGE] = 8;
    ron_pages_touch(table + 20 * PAGE, 0);
    ron_pages_touch(table + 8 * PAGE - 1, 4 * PAGE + 2); /* 7 to 12 */
    ron_pages_touch(table + 30 * PAGE, 2 * PAGE);        /* 30, 31 */
    assert_int_equal(table[10 * PAGE + 5], 7);
    assert_int_equal(table[9 * PAGE], 8);
    if (!RON_ASAN) {
        assert_int_equal(mincore(table, sizeof(resident) * PAGE, resident), 0);
        for (size_t i = 0; i < PAGES; i++)
            assert_int_equal(resident[i] & 1, (i >= 7 && i <= 12) || i == 30 || i == 31);
    }
    assert_null(ron_table_free(table));
}

static enum ron_err make_tables(void *context, struct ron_errinfo *reterr)
{
    void *small = ron_table_alloc(10, 10, RON_TABLE_IN_ORDER);
    void *large = ron_table_alloc(1 << 20, 2, RON_TABLE_IN_ORDER);
    const bool made = small != NULL && large != NULL;

    (void)context;
    (void)ron_table_free(small);
    (void)ron_table_free(large);
    return made ? RON_ERR_OK : ron_fail(reterr, RON_ERR_NO_MEMORY, "tables");
}

static void tables_fail_when_told(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make_tables, NULL, 4), 2);
}

static void cleanup_frees_and_take_moves(void **state)
{
    uint64_t live = ron_mem_live_count();
    uint8_t *kept = NULL;

    (void)state;
    {
        RON_CLEANUP(ron_mem_freep) uint8_t *freed = ron_mem_alloc(10);
        RON_CLEANUP(ron_mem_freep) uint8_t *moved = ron_mem_alloc(10);

        assert_non_null(freed);
        kept = RON_TAKE(moved);
        assert_null(moved);
    }
    assert_non_null(kept);
    assert_int_equal(ron_mem_live_count(), live + 1);
    kept = ron_mem_free(kept);
    assert_int_equal(ron_mem_live_count(), live);
}

static enum ron_err make_arena(void *context, struct ron_errinfo *reterr)
{
    struct ron_arena arena = {0};
    enum ron_err err = ron_arena_init(&arena, 1024, reterr);

    (void)context;
    ron_arena_fini(&arena);
    return err;
}

static void arena_init_survives_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make_arena, NULL, 5), 1);
}

static void arena_hands_out_aligned_memory_to_its_last_byte(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_arena arena;
    struct ron_slice copy;
    uint8_t *first;
    uint8_t *second;
    uint8_t *text;

    (void)state;
    assert_ok(ron_arena_init(&arena, 64, NULL));
    first = ron_arena_alloc(&arena, 1);
    second = ron_arena_alloc(&arena, 16);
    assert_int_equal((uintptr_t)second % 16, 0);
    assert_ptr_equal(second, first + 16);
    text = ron_arena_alloc_bytes(&arena, 31);
    assert_ptr_equal(text, second + 16);
    assert_null(ron_arena_alloc_bytes(&arena, 2));
    assert_null(ron_arena_alloc(&arena, 1)); /* alignment leaves nothing */
    assert_int_equal(arena.used_size, 63);
    assert_non_null(ron_arena_alloc_bytes(&arena, 1));
    assert_int_equal(arena.used_size, 64);
    support_assert_error(ron_arena_copy(&arena, RON_SLICE("x"), &copy, &info), &info,
                         RON_ERR_TOO_LARGE, "arena of 64");
    assert_ok(ron_arena_copy(&arena, RON_SLICE(""), &copy, NULL)); /* nothing always fits */
    assert_int_equal(copy.size, 0);
    assert_null(ron_arena_alloc(&arena, SIZE_MAX));
    assert_int_equal(arena.peak_size, 64);
    ron_arena_fini(&arena);
}

static void arena_rewinds_to_a_mark(void **state)
{
    struct ron_arena arena;
    struct ron_slice kept;
    struct ron_slice again;
    size_t mark;

    (void)state;
    assert_ok(ron_arena_init(&arena, 32, NULL));
    assert_ok(ron_arena_copy(&arena, RON_SLICE("kept"), &kept, NULL));
    mark = ron_arena_mark(&arena);
    assert_ok(ron_arena_copy(&arena, RON_SLICE("scratch"), &again, NULL));
    ron_arena_rewind(&arena, mark);
    assert_ok(ron_arena_copy(&arena, RON_SLICE("other"), &again, NULL));
    assert_true(ron_slice_equal(kept, RON_SLICE("kept")));
    assert_ptr_equal(again.data, kept.data + kept.size);
    assert_int_equal(arena.peak_size, 11);
    ron_arena_reset(&arena);
    assert_int_equal(arena.used_size, 0);
    assert_dies(ron_arena_rewind(&arena, 1), "mark <= arena->used_size");
    ron_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_gives_zeroed_counted_memory),
        cmocka_unit_test(alloc_refuses_beyond_its_limit),
        cmocka_unit_test(tables_are_zeroed_and_counted),
        cmocka_unit_test(tables_fail_when_told),
        cmocka_unit_test(pages_are_made_before_their_use),
        cmocka_unit_test(pages_are_touched_by_their_owner),
        cmocka_unit_test(cleanup_frees_and_take_moves),
        cmocka_unit_test(arena_init_survives_failed_allocation),
        cmocka_unit_test(arena_hands_out_aligned_memory_to_its_last_byte),
        cmocka_unit_test(arena_rewinds_to_a_mark),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
