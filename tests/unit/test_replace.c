/*
 * test_replace.c - a file that appears whole or not at all, written past the system's cache.
 */
#include <stdlib.h>
#include <unistd.h>

#include "io/replace.h"
#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "io_spy.h"
#include "support.h"

enum {
    PAGES = 3,
    TAIL = 77, /* bytes that are no page */
    ROOM_SIZE = (PAGES + 1) * IO_DIRECT_SIZE,
};
static _Alignas(IO_DIRECT_SIZE) uint8_t content[ROOM_SIZE];

static void fill_content(void)
{
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i * 7 + i / 251);
}

/* The pages first, then the rest, as who has one chunk of memory does. */
static enum ron_err write_all(struct io_replace *replace, size_t size) RON_BLOCKS
{
    const size_t first = size < IO_DIRECT_SIZE ? size : IO_DIRECT_SIZE;
    struct ron_errinfo info = {0};
    enum ron_err err = io_replace_write_past(replace, 0, ron_slice_of(content, first), &info);

    if (err == RON_ERR_OK && size > first)
        err = io_replace_write_past(replace, first, ron_slice_of(content + first, size - first),
                                    &info);
    assert_int_equal(info.err, err); /* some go by that alone */
    return err;
}

static enum ron_err replace_file(struct io_vfs *vfs, size_t size) RON_BLOCKS
{
    struct io_replace replace;
    enum ron_err err = io_replace_begin(&replace, vfs, "file", NULL);

    if (err != RON_ERR_OK)
        return err;
    err = write_all(&replace, size);
    if (err == RON_ERR_OK)
        return io_replace_commit(&replace, NULL);
    io_replace_abandon(&replace);
    return err;
}

static bool has_file(struct io_vfs *vfs, const char *path) RON_BLOCKS
{
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_open(vfs, path, IO_OPEN_READ, &file, NULL);

    assert_true(err == RON_ERR_OK || err == RON_ERR_NOT_FOUND);
    (void)io_file_close(file);
    return err == RON_ERR_OK;
}

static void assert_content(struct io_vfs *vfs, size_t size) RON_BLOCKS
{
    static uint8_t back[ROOM_SIZE + 1];
    struct io_file *file = NULL;
    size_t got = 0;

    assert_ok(io_vfs_open(vfs, "file", IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, back, sizeof(back), &got, NULL));
    assert_int_equal(got, size);
    assert_memory_equal(back, content, size);
    (void)io_file_close(file);
}

static const size_t sizes[] = {0,
                               TAIL,
                               IO_DIRECT_SIZE,
                               IO_DIRECT_SIZE + TAIL,
                               (size_t)PAGES *IO_DIRECT_SIZE,
                               (size_t)PAGES *IO_DIRECT_SIZE + TAIL};

static void every_byte_is_there(void **state) RON_BLOCKS
{
    char dir[] = "test-replace-XXXXXX";

    (void)state;
    fill_content();
    assert_non_null(mkdtemp(dir));
    for (unsigned posix = 0; posix < 2; posix++) {
        struct io_vfs *vfs = NULL;

        if (posix == 1)
            assert_ok(io_vfs_posix_new(dir, false, &vfs, NULL));
        else
            assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
        for (size_t i = 0; i < RON_ARRAY_COUNT(sizes); i++) {
            assert_ok(replace_file(vfs, sizes[i]));
            assert_content(vfs, sizes[i]);
            assert_false(has_file(vfs, "file.new"));
        }
        assert_ok(io_vfs_unlink(vfs, "file", NULL));
        (void)io_vfs_free(vfs);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* What was written past the cache is as durable as the rest: nothing of it is left unsynced, and a
 * crash that loses all that may be lost loses nothing. */
static void a_crash_after_the_commit_loses_nothing(void **state) RON_BLOCKS
{
    const size_t size = (size_t)PAGES * IO_DIRECT_SIZE + TAIL;
    struct io_vfs *after = NULL;
    struct io_vfs *vfs = NULL;

    (void)state;
    fill_content();
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(replace_file(vfs, size));
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    assert_ok(io_memory_crash(vfs, &(struct io_crash_plan){.torn = SIZE_MAX}, &after, NULL));
    assert_content(after, size);
    (void)io_vfs_free(after);
    (void)io_vfs_free(vfs);
}

static void given_up_it_leaves_what_was_there(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_replace replace;

    (void)state;
    fill_content();
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(replace_file(vfs, TAIL));
    assert_ok(io_replace_begin(&replace, vfs, "file", NULL));
    assert_ok(write_all(&replace, (size_t)PAGES * IO_DIRECT_SIZE + TAIL));
    assert_true(has_file(vfs, "file.new"));
    io_replace_abandon(&replace);
    io_replace_abandon(&replace);
    assert_false(has_file(vfs, "file.new"));
    assert_content(vfs, TAIL);
    (void)io_vfs_free(vfs);
}

/* Who has no descriptor left for a second handle writes through the first one, until there is. */
static void without_a_descriptor_it_is_written_all_the_same(void **state) RON_BLOCKS
{
    const size_t size = (size_t)PAGES * IO_DIRECT_SIZE + TAIL;
    struct io_vfs *vfs = NULL;
    struct io_replace replace;

    (void)state;
    fill_content();
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_replace_begin(&replace, vfs, "file", NULL));
    spy_install(vfs, NULL);
    spy.fail_at = 1;
    spy.fail_err = RON_ERR_BUSY;
    assert_ok(write_all(&replace, size));
    assert_int_equal(spy.past_written_bytes, (PAGES - 1) * IO_DIRECT_SIZE); /* not the first */
    assert_ok(io_replace_commit(&replace, NULL));
    vfs->ops = spy.below;
    assert_int_equal(io_memory_unsynced_count(vfs), 0);
    assert_content(vfs, size);
    (void)io_vfs_free(vfs);
}

/* The handles, the writes and the sync, each refused in turn: an error, the old file, no leftover.
 */
static void every_failure_is_told(void **state) RON_BLOCKS
{
    static const struct {
        enum io_fault_call call;
        uint64_t calls_count;
    } steps[] = {{IO_CALL_OPEN, 2},  /* of the new file, and past the cache */
                 {IO_CALL_WRITE, 3}, /* one page, the other pages, the tail */
                 {IO_CALL_SYNC, 1}};

    (void)state;
    fill_content();
    for (size_t i = 0; i < RON_ARRAY_COUNT(steps); i++) {
        for (uint64_t at = 1; at <= steps[i].calls_count; at++) {
            const struct io_fault fault = {
                .kind = IO_FAULT_EIO, .call = steps[i].call, .at = at, .times = 1};
            struct io_vfs *below = NULL;
            struct io_vfs *vfs = NULL;

            assert_ok(io_vfs_memory_new(NULL, &below, NULL));
            assert_ok(replace_file(below, TAIL));
            assert_ok(io_vfs_faulty_new(
                below, &(struct io_faulty_options){.faults = &fault, .faults_count = 1}, &vfs,
                NULL));
            assert_int_not_equal(replace_file(vfs, (size_t)PAGES * IO_DIRECT_SIZE + TAIL),
                                 RON_ERR_OK);
            assert_int_equal(io_faulty_count(vfs, IO_FAULT_EIO), 1);
            assert_content(below, TAIL);
            assert_false(has_file(below, "file.new"));
            assert_ok(replace_file(vfs, (size_t)PAGES * IO_DIRECT_SIZE + TAIL));
            assert_content(below, (size_t)PAGES * IO_DIRECT_SIZE + TAIL);
            (void)io_vfs_free(vfs);
            (void)io_vfs_free(below);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_there),
        cmocka_unit_test(a_crash_after_the_commit_loses_nothing),
        cmocka_unit_test(given_up_it_leaves_what_was_there),
        cmocka_unit_test(without_a_descriptor_it_is_written_all_the_same),
        cmocka_unit_test(every_failure_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
