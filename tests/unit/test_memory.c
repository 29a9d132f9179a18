/*
 * test_memory.c - heap memory, its failure hook, and arenas. Method: exact bounds, and every
 * allocation made to fail once.
 */
#include "support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"

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
    const uint64_t counts[] = {1, 1000, 1 << 20, (1 << 20) + 1, 3 << 20};
    const uint64_t live = ron_mem_live_count();

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(counts); i++) {
        uint8_t *table = ron_table_alloc(counts[i], 1, (enum ron_table_kind)(i % 2));

        assert_non_null(table);
        assert_int_equal((uintptr_t)table % 16, 0);
        for (uint64_t at = 0; at < counts[i]; at++)
            assert_int_equal(table[at], 0);
        memset(table, 7, counts[i]);
        assert_int_equal(ron_mem_live_count(), live + 1);
        assert_null(ron_table_free(table));
        assert_int_equal(ron_mem_live_count(), live);
    }
    assert_null(ron_table_free(NULL));
    assert_null(ron_table_alloc(RON_TABLE_SIZE_MAX / 8 + 1, 8, RON_TABLE_SHARED));
    assert_null(ron_table_alloc(UINT64_MAX / 16 + 2, 16, RON_TABLE_SHARED)); /* wraps to 16 */
    assert_dies(assert_null(ron_table_alloc(0, 8, RON_TABLE_SHARED)), "size > 0");
}

static enum ron_err make_tables(void *context, struct ron_errinfo *reterr)
{
    void *small = ron_table_alloc(10, 10, RON_TABLE_SHARED);
    void *large = ron_table_alloc(1 << 20, 2, RON_TABLE_UNSHARED);
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

/* A copy of the process has what is shared, all of it, and dies where it looks at what is not. */
static void tables_are_in_a_fork_or_not(void **state)
{
    enum { SIZE = 3 << 20 };
    uint8_t *shared = ron_table_alloc(SIZE, 1, RON_TABLE_SHARED);
    uint8_t *unshared = ron_table_alloc(SIZE, 1, RON_TABLE_UNSHARED);

    (void)state;
    assert_non_null(shared);
    assert_non_null(unshared);
    shared[0] = shared[SIZE - 1] = unshared[0] = unshared[SIZE - 1] = 5;
    for (size_t i = 0; i < 4; i++) {
        volatile const uint8_t *byte = (i < 2 ? shared : unshared) + (i % 2 == 0 ? 0 : SIZE - 1);
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
            (void)signal(SIGSEGV, SIG_DFL);
            _exit(*byte == 5 ? 0 : 1);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (i < 2 || RON_ASAN)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
    assert_null(ron_table_free(shared));
    assert_null(ron_table_free(unshared));
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
        cmocka_unit_test(tables_are_in_a_fork_or_not),
        cmocka_unit_test(cleanup_frees_and_take_moves),
        cmocka_unit_test(arena_init_survives_failed_allocation),
        cmocka_unit_test(arena_hands_out_aligned_memory_to_its_last_byte),
        cmocka_unit_test(arena_rewinds_to_a_mark),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
