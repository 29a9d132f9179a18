/*
 * test_log_groups.c - groups of many records, and of one that is larger than a group. Method:
 * appended by several threads, on a disk in memory and on a real one; then every link is checked by
 * a strict open and a check of the whole log.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/log_check.h"
#include "log_world.h"

enum { THREADS_COUNT = 3, RECORDS_EACH = 300, LARGE_SIZE = 300000 };
enum { FILL_EVERY = 20, FILLED_COUNT = 31 }; /* what a thread appends besides */

static struct io_log_options group_options(struct io_vfs *vfs)
{
    struct io_log_options options = world_options(vfs);

    options.segment_bytes = 1 << 20;
    options.ahead_bytes = 1 << 20;
    options.group_bytes = 64 << 10;
    options.record_bytes_max = LARGE_SIZE;
    options.early_bytes = 8 << 10;
    options.linger_us = 500;
    return options;
}

/* Many at once, and a large one: filled in without the lock while others append. */
static void fill_in(struct io_log *log, struct ron_slice body) RON_BLOCKS
{
    static const uint8_t large[20000] = {4, 5, 6};
    const struct ron_slice parts[3] = {{large, 9000}, {large, 1}, {large, 10999}};
    struct ron_slice bodies[FILLED_COUNT - 1];
    uint64_t index = 0;
    size_t some = 0;

    for (size_t i = 0; i < RON_ARRAY_COUNT(bodies); i++)
        bodies[i] = body;
    for (size_t done = 0; done < RON_ARRAY_COUNT(bodies); done += some)
        assert_ok(io_log_append_many(log, 4, bodies + done, RON_ARRAY_COUNT(bodies) - done,
                                     rt_deadline_after_ms(20000), &some, &index, NULL));
    assert_ok(io_log_append_until(log, 4, parts, 3, rt_deadline_after_ms(20000), &index, NULL));
}

static void *appender_fn(void *argument) RON_BLOCKS
{
    static const uint8_t body[700] = {1, 2, 3};
    struct io_log *log = argument;
    uint64_t index = 0;

    for (unsigned i = 0; i < RECORDS_EACH; i++) {
        const struct ron_slice part = {body, 16 + i * 7 % 680};

        if (i % FILL_EVERY == 0)
            fill_in(log, part);
        assert_ok(io_log_append_until(log, 4, &part, 1, rt_deadline_after_ms(20000), &index, NULL));
        if (i % 64 == 63)
            assert_ok(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL));
    }
    return NULL;
}

static void check_links(struct io_vfs *vfs, uint64_t expected) RON_BLOCKS
{
    const struct io_log_check_options check = {.vfs = vfs, .dir = "role/log"};
    struct io_log_found found;
    struct ron_errinfo info = {0};

    if (io_log_check(&check, &found, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_int_equal(found.records_count, expected);
    assert_int_equal(found.torn_bytes, 0);
}

static struct io_log *open_log(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = group_options(vfs);
    struct io_log_recovery recovery;
    struct io_log *log = NULL;

    assert_ok(io_log_open(&options, &log, &recovery, NULL));
    return log;
}

static void threads_append(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_log *log = open_log(vfs);
    pthread_t threads[THREADS_COUNT];

    for (unsigned i = 0; i < THREADS_COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, appender_fn, log), 0);
    for (unsigned i = 0; i < THREADS_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    world_close(log);
}

static void groups_of_many_threads_are_linked(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();

    (void)state;
    for (uint64_t turn = 1; turn <= 6; turn++) {
        threads_append(vfs);
        check_links(vfs, turn * THREADS_COUNT *
                             (RECORDS_EACH + RECORDS_EACH / FILL_EVERY * FILLED_COUNT));
    }
    io_vfs_free(vfs);
}

/* Many at once are the same records as one by one, through groups and segments. */
static void many_are_appended_in_order(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    uint64_t last = 0, calls_count = 0;

    (void)state;
    for (unsigned i = 1; i <= 30; i++) {
        const uint64_t count = 1 + i * 53 % WORLD_RUN_MAX;

        calls_count += world_append_run(log, last + 1, last + count);
        last += count;
    }
    assert_ok(io_log_wait(log, last, rt_deadline_after_ms(20000), NULL));
    assert_true(calls_count > io_log_get_stats(log).groups_count / 2); /* a call fills one group */
    assert_true(io_log_get_stats(log).groups_count < last / 4);
    world_read_run(log, last);
    world_close(log);
    check_links(vfs, last);
    io_vfs_free(vfs);
}

/* A group that many fill is written without anybody waiting for it, however long it may linger. */
static void many_that_fill_a_group_wake_the_writer(void **state) RON_BLOCKS
{
    static const uint8_t body[1000];
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = group_options(vfs);
    struct ron_slice bodies[65];
    struct io_log_recovery recovery;
    struct io_log *log = NULL;
    uint64_t index = 0;
    size_t some = 0;

    (void)state;
    options.linger_us = 4000000000;
    assert_ok(io_log_open(&options, &log, &recovery, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(bodies); i++)
        bodies[i] = ron_slice_of(body, sizeof(body));
    assert_ok(
        io_log_append_many(log, 9, bodies, 65, rt_deadline_after_ms(20000), &some, &index, NULL));
    assert_int_equal(some, (64 << 10) / 1040);
    assert_ok(io_log_append_many(log, 9, bodies, 65, rt_deadline_after_ms(20000), &some, &index,
                                 NULL)); /* fills the second */
    assert_ok(io_log_append_many(log, 9, bodies, 1, rt_deadline_after_ms(20000), &some, &index,
                                 NULL)); /* has room once the first is durable */
    assert_in_range(io_log_last_durable(log), 63, 126);
    world_close(log);
    io_vfs_free(vfs);
}

/* What cannot be appended stops them; those before it are in, and the next call says why. */
static void many_stop_at_a_record_that_is_too_large(void **state) RON_BLOCKS
{
    static const uint8_t body[2000];
    const struct ron_slice bodies[3] = {{body, 10}, {body, 20}, {body, 2000}};
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct ron_errinfo info = {0};
    uint64_t index = 77;
    size_t some = 77;

    (void)state;
    assert_ok(io_log_append_many(log, 9, bodies, 3, deadline, &some, &index, &info));
    assert_int_equal(some, 2);
    assert_int_equal(index, 2);
    assert_int_equal(info.err, RON_ERR_OK);
    support_assert_error(io_log_append_many(log, 9, bodies + 2, 1, deadline, &some, &index, &info),
                         &info, RON_ERR_TOO_LARGE, "a record beyond the 1024 bytes of log test");
    assert_int_equal(some, 2);
    assert_int_equal(index, 2);
    assert_ok(io_log_wait(log, 2, deadline, NULL));
    world_close(log);
    check_links(vfs, 2);
    io_vfs_free(vfs);
}

/* Records larger than a group, through the ends of segments. */
static void large_records(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_log *log = open_log(vfs);
    uint8_t *body = ron_mem_alloc(LARGE_SIZE);
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    uint64_t index = 0;

    assert_non_null(body);
    for (uint64_t i = 1; i <= 12; i++) {
        const struct ron_slice part = {body, LARGE_SIZE - 1000 * (size_t)i};

        memset(body, (int)i, LARGE_SIZE);
        assert_ok(io_log_append_until(log, 4, &part, 1, rt_deadline_after_ms(20000), &index, NULL));
        if (i % 3 == 0)
            assert_ok(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL));
    }
    world_close(log);
    check_links(vfs, 12);
    log = open_log(vfs);
    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    for (uint64_t i = 1; i <= 12; i++) {
        assert_ok(io_log_reader_next(reader, &frame, NULL));
        assert_int_equal(frame.body.size, LARGE_SIZE - 1000 * (size_t)i);
        assert_int_equal(frame.body.data[frame.body.size - 1], i);
    }
    reader = io_log_reader_free(reader);
    world_close(log);
    ron_mem_free(body);
}

static void large_records_in_memory(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();

    (void)state;
    large_records(vfs);
    io_vfs_free(vfs);
}

static bool remove_name(void *context, const char *name, bool is_dir)
{
    char path[200];

    assert_false(is_dir);
    (void)snprintf(path, sizeof(path), "%s/role/log/%s", (const char *)context, name);
    return unlink(path) == 0;
}

static void large_records_on_disk(void **state) RON_BLOCKS
{
    char dir[] = "test-log-groups-XXXXXX";
    char path[100];
    struct io_vfs *vfs = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_ok(io_vfs_posix_new(dir, false, &vfs, NULL));
    large_records(vfs);
    assert_ok(io_vfs_list(vfs, "role/log", remove_name, dir, NULL));
    io_vfs_free(vfs);
    (void)snprintf(path, sizeof(path), "%s/role/log", dir);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof(path), "%s/role", dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_many_threads_are_linked),
        cmocka_unit_test(many_are_appended_in_order),
        cmocka_unit_test(many_that_fill_a_group_wake_the_writer),
        cmocka_unit_test(many_stop_at_a_record_that_is_too_large),
        cmocka_unit_test(large_records_in_memory),
        cmocka_unit_test(large_records_on_disk),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
