/*
 * test_log_recent.c - the newest records, read from the memory they were written from.
 *
 * Goal: what is read so is what the log has, never older than its memory, never changed under its
 * reader; where it is not there, the reader is told so. Method: a small log in memory, whose chunks
 * are used again every few groups.
 */
#include <pthread.h>

#include "log_world.h"

enum { PASSES = 300 };

/* Does the frame say what the record with this number was made of? */
static void assert_record(const struct io_frame *frame, uint64_t index)
{
    uint8_t body[WORLD_RECORD_MAX];
    const size_t size = world_body(index, body);

    assert_int_equal(frame->index, index);
    assert_true(frame->type == index % 100 || frame->type == WORLD_RUN_TYPE);
    assert_int_equal(frame->body.size, size);
    assert_memory_equal(frame->body.data, body, size);
}

/* Read from `first` on as far as memory goes; returns the index behind the last one. */
static uint64_t read_recent(struct io_log *log, uint64_t first)
{
    struct io_log_recent recent;
    struct io_frame frame;

    while (io_log_recent_open(log, first, &recent)) {
        while (io_log_recent_next(&recent, &frame))
            assert_record(&frame, first++);
        io_log_recent_close(&recent);
    }
    return first;
}

static void the_newest_are_there_and_old_ones_are_not(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct io_log_recent recent;

    (void)state;
    assert_false(io_log_recent_open(log, 1, &recent));
    for (uint64_t last = 1; last <= PASSES; last++) {
        world_append_many(log, last, last);
        assert_int_equal(read_recent(log, last), last + 1);
        if (last > 2)
            assert_int_equal(read_recent(log, last - 1), last + 1); /* from one chunk to the next */
        assert_false(io_log_recent_open(log, last + 1, &recent));
    }
    assert_false(io_log_recent_open(log, 1, &recent));
    assert_ok(io_log_close(log, RT_DEADLINE_NEVER, NULL));
    io_vfs_free(vfs);
}

/* Many records of one group, from each of them on. */
static void a_group_is_read_from_any_record(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    (void)state;
    assert_int_equal(world_append_run(log, 1, 9), 1);
    assert_ok(io_log_wait(log, 9, rt_deadline_after_ms(20000), NULL));
    for (uint64_t first = 1; first <= 9; first++)
        assert_int_equal(read_recent(log, first), 10);
    assert_ok(io_log_close(log, RT_DEADLINE_NEVER, NULL));
    io_vfs_free(vfs);
}

/* While it is being read the log goes on, around it. */
static void what_is_read_stays(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct io_log_recent recent, other;
    struct io_frame frame;

    (void)state;
    world_append_many(log, 1, 1);
    assert_true(io_log_recent_open(log, 1, &recent));
    assert_true(io_log_recent_next(&recent, &frame));
    for (uint64_t last = 2; last <= PASSES; last++)
        world_append_many(log, last, last);
    assert_record(&frame, 1);
    assert_false(io_log_recent_open(log, PASSES, &other)); /* one chunk at a time */
    assert_true(io_log_recent_open(log, 1, &other));
    assert_true(io_log_recent_next(&other, &frame));
    assert_record(&frame, 1);
    io_log_recent_close(&other);
    io_log_recent_close(&recent);
    assert_int_equal(read_recent(log, PASSES), PASSES + 1);
    assert_ok(io_log_close(log, RT_DEADLINE_NEVER, NULL));
    io_vfs_free(vfs);
}

struct follower {
    struct io_log *log;
    struct rt_atomic_u64 stop;
    uint64_t from_memory;
};

/* Follow at any pace, by memory or by the log. */
static void *follow(void *argument) RON_BLOCKS
{
    struct follower *follower = argument;
    uint64_t next = 1;

    while (next <= PASSES && rt_atomic_load_u64(&follower->stop) == 0) {
        const uint64_t before = next;

        next = read_recent(follower->log, next);
        follower->from_memory += next - before;
        if (next <= io_log_last_durable(follower->log)) {
            struct io_log_reader *reader = NULL;
            struct io_frame frame;

            assert_ok(io_log_reader_new(follower->log, next, &reader, NULL));
            assert_ok(io_log_reader_next(reader, &frame, NULL));
            assert_record(&frame, next++);
            io_log_reader_free(reader);
        }
    }
    return NULL;
}

static void a_follower_beside_the_writer_sees_each(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct follower follower = {.log = world_open(vfs)};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, follow, &follower), 0);
    for (uint64_t last = 1; last <= PASSES; last++)
        world_append_many(follower.log, last, last);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(follower.from_memory > 0);
    assert_ok(io_log_close(follower.log, RT_DEADLINE_NEVER, NULL));
    io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_are_there_and_old_ones_are_not),
        cmocka_unit_test(a_group_is_read_from_any_record),
        cmocka_unit_test(what_is_read_stays),
        cmocka_unit_test(a_follower_beside_the_writer_sees_each),
    };

    return cmocka_run_group_tests_name("log_recent", tests, world_setup, world_teardown);
}
