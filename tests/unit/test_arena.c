/*
 * test_arena.c - the request's memory from both ends. Method: the last byte and one beyond.
 */
#include "support.h"

#include "base/arena.h"

static void both_ends_meet(void **state)
{
    struct ron_arena arena;
    uint8_t *first;
    uint8_t *second;
    uint8_t *pushed;

    (void)state;
    assert_ok(ron_arena_init(&arena, 101, NULL));
    first = ron_arena_alloc_bytes(&arena, 3);
    second = ron_arena_alloc(&arena, 16);
    assert_ptr_equal(first, arena.block);
    assert_ptr_equal(second, arena.block + 16);
    pushed = ron_arena_push(&arena, 8);
    assert_ptr_equal(pushed, arena.block + 93);
    memset(pushed, 0xaa, 8);
    assert_ptr_equal(ron_arena_push(&arena, 60), arena.block + 33);
    assert_null(ron_arena_push(&arena, 2));
    assert_null(ron_arena_alloc_bytes(&arena, 2));
    assert_non_null(ron_arena_alloc_bytes(&arena, 1));
    assert_null(ron_arena_alloc_bytes(&arena, 1));
    assert_null(ron_arena_push(&arena, 1));
    assert_int_equal(arena.peak_size, 101);
    ron_arena_pop(&arena, 60);
    assert_int_equal(pushed[7], 0xaa);
    assert_non_null(ron_arena_alloc_bytes(&arena, 60));
    assert_null(ron_arena_alloc_bytes(&arena, 1));
    assert_dies(ron_arena_pop(&arena, 9), "stack_size");
    ron_arena_fini(&arena);
}

static void rewind_and_reset_give_back(void **state)
{
    struct ron_arena arena;
    size_t mark;

    (void)state;
    assert_ok(ron_arena_init(&arena, 64, NULL));
    assert_non_null(ron_arena_alloc(&arena, 10));
    mark = ron_arena_mark(&arena);
    assert_non_null(ron_arena_alloc(&arena, 20));
    assert_non_null(ron_arena_push(&arena, 20));
    ron_arena_rewind(&arena, mark);
    assert_int_equal(arena.used_size, 10);
    assert_int_equal(arena.stack_size, 20);
    assert_dies(ron_arena_rewind(&arena, 11), "used_size");
    ron_arena_reset(&arena);
    assert_int_equal(arena.stack_size, 0);
    assert_non_null(ron_arena_alloc(&arena, 64));
    assert_int_equal(arena.peak_size, 64);
    ron_arena_fini(&arena);
}

static void copies_live_in_the_arena(void **state)
{
    struct ron_errinfo info = {0};
    struct ron_slice copy = {NULL, 7};
    struct ron_arena arena;

    (void)state;
    assert_ok(ron_arena_init(&arena, 8, NULL));
    support_assert_error(ron_arena_copy(&arena, RON_SLICE("123456789"), &copy, &info), &info,
                         RON_ERR_TOO_LARGE, "9 bytes");
    assert_int_equal(copy.size, 7);
    assert_ok(ron_arena_copy(&arena, RON_SLICE("12345678"), &copy, NULL));
    assert_ptr_equal(copy.data, arena.block);
    assert_true(ron_slice_equal(copy, RON_SLICE("12345678")));
    assert_ok(ron_arena_copy(&arena, (struct ron_slice){0}, &copy, NULL));
    assert_int_equal(copy.size, 0);
    ron_arena_fini(&arena);
}

static enum ron_err make(void *context, struct ron_errinfo *reterr)
{
    struct ron_arena arena;
    enum ron_err err = ron_arena_init(&arena, 100, reterr);

    (void)context;
    if (err == RON_ERR_OK)
        ron_arena_fini(&arena);
    return err;
}

static void arena_survives_a_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(make, NULL, 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_meet),
        cmocka_unit_test(rewind_and_reset_give_back),
        cmocka_unit_test(copies_live_in_the_arena),
        cmocka_unit_test(arena_survives_a_failed_allocation),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
