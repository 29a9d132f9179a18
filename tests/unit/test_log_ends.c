/*
 * test_log_ends.c - a log that ends where it should not: a tail torn at each offset, a disk that is
 * full from each write on, or for one of them while the next segment is made, a close while others
 * wait for room. Method: a log in memory; afterwards it is opened again, holds what was
 * acknowledged, and goes on.
 */
#include <pthread.h>

#include "io/vfs_faulty.h"
#include "log_world.h"

enum {
    BEFORE_COUNT = 6,
    TORN_COUNT = 4,
    FULL_RECORDS = 90,
    STRIKES_MAX = RON_ASAN || RON_TSAN ? 20 : 200,
    APPENDERS_COUNT = 3,
};

static struct io_log_recovery recovery;
static struct ron_errinfo info;

static struct io_log *open_again(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;

    if (io_log_open(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    return log;
}

/* Of a group of several records, the first `cut` bytes were written and the rest are what was there
 * before, or rubbish. */
static void torn_at(struct io_vfs *vfs, const struct ron_buf *before, const struct ron_buf *after,
                    uint64_t from, uint64_t cut, bool rubbish) RON_BLOCKS
{
    uint8_t *bytes = ron_mem_alloc(before->size);
    struct io_log *log;

    assert_non_null(bytes);
    memcpy(bytes, before->data, before->size);
    memcpy(bytes + from, after->data + from, (size_t)(cut - from));
    if (rubbish)
        memset(bytes + cut, 0xa5, 8);
    world_write(vfs, SEG1, 0, bytes, before->size);
    log = open_again(vfs);
    assert_int_equal(recovery.last_index, BEFORE_COUNT);
    assert_false(recovery.clean);
    assert_int_equal(world_read(log, 1), BEFORE_COUNT);
    world_append_many(log, BEFORE_COUNT + 1, BEFORE_COUNT + 2);
    assert_int_equal(world_read(log, 1), BEFORE_COUNT + 2);
    log_break(log, &(struct ron_errinfo){.err = RON_ERR_IO, .message = "not closed"});
    assert_int_equal(io_log_close(log, rt_deadline_after_ms(20000), NULL), RON_ERR_IO);
    ron_mem_free(bytes);
}

static uint64_t frames_end(const struct ron_buf *bytes)
{
    struct io_segment_head head;
    struct io_frame frame;
    uint64_t at = IO_SEGMENT_HEAD_SIZE;

    assert_ok(io_segment_head_decode(ron_slice_of(bytes->data, bytes->size), &head, NULL));
    while (io_frame_head_sound(ron_slice_of(bytes->data + at, bytes->size - at),
                               io_log_salt(head.log_id), &frame))
        at += io_frame_size(frame.body.size);
    return at;
}

static void tail_torn_at_each_offset(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct ron_buf before, after, owner;
    struct io_log_options options = world_options(vfs);
    uint64_t from, to;

    (void)state;
    world_append_many(log, 1, BEFORE_COUNT);
    before = world_file(vfs, SEG1);
    owner = world_file(vfs, "role/log/owner");
    world_close(log);
    options.linger_us = 1000000;
    assert_ok(io_log_open(&options, &log, &recovery, NULL));
    world_append_many(log, BEFORE_COUNT + 1, BEFORE_COUNT + TORN_COUNT);
    assert_int_equal(io_log_get_stats(log).groups_count, 1);
    after = world_file(vfs, SEG1);
    world_close(log);
    from = frames_end(&before);
    to = frames_end(&after);
    assert_true(to > from + 400);
    before.size = before.size < after.size ? before.size : after.size;
    for (uint64_t cut = from + 1; cut < to; cut++) {
        world_write(vfs, "role/log/owner", 0, owner.data, owner.size);
        torn_at(vfs, &before, &after, from, cut, cut % 3 == 0 && cut + 8 < to);
    }
    ron_buf_fini(&before);
    ron_buf_fini(&after);
    ron_buf_fini(&owner);
    io_vfs_free(vfs);
}

/* True if the disk was full before the end. */
static bool full_from(uint64_t nth) RON_BLOCKS
{
    const struct io_fault fault = {
        .kind = IO_FAULT_ENOSPC, .call = IO_CALL_WRITE, .at = nth, .times = UINT32_MAX};
    const struct io_faulty_options faults = {.faults = &fault, .faults_count = 1, .seed = nth};
    struct io_vfs *memory = world_memory(), *faulty = NULL;
    struct io_log_options options;
    struct io_log *log = NULL;
    uint64_t appended = 0, acknowledged = 0;
    enum ron_err err;
    bool struck;

    assert_ok(io_vfs_faulty_new(memory, &faults, &faulty, NULL));
    options = world_options(faulty);
    err = io_log_open(&options, &log, &recovery, NULL);
    assert_true(err == RON_ERR_OK || err == RON_ERR_PERSISTENCE_FULL);
    while (err == RON_ERR_OK && appended < FULL_RECORDS) {
        err = world_append(log, appended + 1);
        appended += err == RON_ERR_OK;
        if (err == RON_ERR_OK &&
            io_log_wait(log, appended, rt_deadline_after_ms(20000), NULL) == RON_ERR_OK)
            acknowledged = appended;
    }
    assert_true(err == RON_ERR_OK || err == RON_ERR_PERSISTENCE_FULL || err == RON_ERR_IO);
    if (log != NULL)
        err = io_log_close(log, rt_deadline_after_ms(20000), NULL);
    assert_true(err == RON_ERR_OK || err == RON_ERR_PERSISTENCE_FULL || err == RON_ERR_IO);
    struck = io_faulty_count(faulty, IO_FAULT_ENOSPC) > 0;
    assert_true(struck || acknowledged == FULL_RECORDS);
    io_vfs_free(faulty);
    log = open_again(memory); /* there is room again */
    assert_in_range(recovery.last_index, acknowledged, appended);
    world_append_many(log, recovery.last_index + 1, recovery.last_index + 5);
    assert_int_equal(world_read(log, 1), recovery.last_index + 5);
    world_close(log);
    io_vfs_free(memory);
    return struck;
}

static void disk_full_from_each_write_on(void **state) RON_BLOCKS
{
    uint64_t nth = 1;

    (void)state;
    while (nth <= STRIKES_MAX && full_from(nth))
        nth++;
    assert_true(nth > 15);
}

/* Leave a log that ends with a seal: the next segment has no name. Returns its last record. */
static uint64_t end_with_a_seal(struct io_vfs *memory) RON_BLOCKS
{
    const struct io_fault rename = {.kind = IO_FAULT_EIO,
                                    .call = IO_CALL_NAME,
                                    .path_prefix = "role/log/ahead-0000000000000002",
                                    .at = 2, /* behind removing what an earlier attempt left */
                                    .times = 1};
    const struct io_faulty_options faults = {.faults = &rename, .faults_count = 1};
    struct io_vfs *faulty = NULL;
    struct io_log *log;
    uint64_t last = 0;

    assert_ok(io_vfs_faulty_new(memory, &faults, &faulty, NULL));
    log = world_open(faulty);
    while (world_append(log, last + 1) == RON_ERR_OK &&
           io_log_wait(log, last + 1, rt_deadline_after_ms(20000), NULL) == RON_ERR_OK)
        last++;
    assert_int_equal(io_log_close(log, rt_deadline_after_ms(20000), NULL), RON_ERR_IO);
    io_vfs_free(faulty);
    assert_true(last > 0);
    return last;
}

/* An open makes the next segment. It is no failure that there is no room for it: what is there is
 * read, and appends go on as soon as there is room. */
static void no_room_for_the_next_segment(void **state) RON_BLOCKS
{
    enum { ZEROS = 1, HEAD, BEYOND };

    (void)state;
    for (uint64_t nth = ZEROS; nth <= BEYOND; nth++) {
        const struct io_fault full = {.kind = IO_FAULT_ENOSPC,
                                      .call = IO_CALL_WRITE,
                                      .path_prefix = "role/log/ahead-",
                                      .at = nth,
                                      .times = 1};
        const struct io_faulty_options faults = {.faults = &full, .faults_count = 1};
        struct io_vfs *memory = world_memory(), *faulty = NULL;
        const uint64_t last = end_with_a_seal(memory);
        struct io_log *log;
        enum ron_err err;

        assert_ok(io_vfs_faulty_new(memory, &faults, &faulty, NULL));
        log = open_again(faulty);
        assert_int_equal(recovery.last_index, last);
        assert_int_equal(io_faulty_count(faulty, IO_FAULT_ENOSPC), nth < BEYOND ? 1 : 0);
        assert_int_equal(world_read(log, 1), last);
        while ((err = world_append(log, last + 1)) == RON_ERR_PERSISTENCE_FULL)
            sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
        assert_ok(err);
        world_append_many(log, last + 2, last + 5);
        world_close(log);
        io_vfs_free(faulty);
        log = open_again(memory);
        assert_true(recovery.clean);
        assert_int_equal(world_read(log, 1), last + 5);
        world_close(log);
        io_vfs_free(memory);
    }
}

/* Appenders that sleep for zeros which will not come. */
static struct rt_atomic_u64 asleep_count, appended_count;

static void *sleeper_fn(void *argument) RON_BLOCKS
{
    static const uint8_t body[900];
    const struct ron_slice part = {body, sizeof(body)};
    uint64_t index = 0;
    enum ron_err err;

    while ((err = io_log_append(argument, 1, &part, 1, &index, NULL)) == RON_ERR_OK)
        rt_atomic_add_u64(&appended_count, 1);
    assert_int_equal(err, RON_ERR_STORAGE_BUSY);
    rt_atomic_add_u64(&asleep_count, 1);
    while ((err = io_log_append_until(argument, 1, &part, 1, RT_DEADLINE_NEVER, &index, NULL)) ==
           RON_ERR_OK)
        rt_atomic_add_u64(&appended_count, 1);
    assert_int_equal(err, RON_ERR_CANCELED);
    return NULL;
}

static void close_wakes_those_who_wait_for_room(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;
    pthread_t threads[APPENDERS_COUNT];

    (void)state;
    rt_atomic_store_u64(&asleep_count, 0);
    rt_atomic_store_u64(&appended_count, 0);
    options.ahead_bytes_per_s = 1;
    assert_ok(io_log_open(&options, &log, &recovery, NULL));
    for (unsigned i = 0; i < APPENDERS_COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleeper_fn, log), 0);
    while (rt_atomic_load_u64(&asleep_count) < APPENDERS_COUNT)
        (void)sched_yield();
    for (bool inside = false; !inside;) { /* all of them sleep in the log */
        log_lock(log);
        inside = log->inside_count == APPENDERS_COUNT;
        log_unlock(log);
    }
    world_close(log);
    for (unsigned i = 0; i < APPENDERS_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    log = open_again(vfs);
    assert_true(recovery.clean);
    assert_int_equal(recovery.last_index, rt_atomic_load_u64(&appended_count));
    assert_true(recovery.last_index > 0);
    world_close(log);
    io_vfs_free(vfs);
}

/* What does not fit the rest of a segment goes to the next one, however large it is: that has as
 * many zeros as it needs, though as many ahead of the end would be fewer. */
static void the_largest_record_behind_a_small_one(void **state) RON_BLOCKS
{
    static const struct {
        uint64_t segment_bytes, ahead_bytes;
        size_t small, large;
    } cases[] = {{65536, 0, 12000, 50000}, {16384, 8192, 2000, 7000}, {1 << 20, 0, 300000, 800000}};

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct io_vfs *vfs = world_memory();
        struct io_log_options options = world_options(vfs);
        uint8_t *bytes = ron_mem_alloc(cases[i].large);
        const size_t sizes[] = {cases[i].small, cases[i].large, cases[i].large};
        struct io_log *log;

        assert_non_null(bytes);
        options.segment_bytes = cases[i].segment_bytes;
        options.ahead_bytes = cases[i].ahead_bytes;
        options.group_bytes = 0;
        options.record_bytes_max = 0;
        options.keys = NULL;
        log = world_open_as(&options);
        for (size_t j = 0; j < RON_ARRAY_COUNT(sizes); j++) {
            const struct ron_slice part = {bytes, sizes[j]};
            uint64_t index = 0;

            if (io_log_append_until(log, 1, &part, 1, rt_deadline_after_ms(20000), &index, &info) !=
                    RON_ERR_OK ||
                io_log_wait(log, index, rt_deadline_after_ms(20000), &info) != RON_ERR_OK)
                fail_msg("case %zu, record %zu: %s", i, j + 1, info.message);
        }
        world_close(log);
        ron_mem_free(bytes);
        io_vfs_free(vfs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail_torn_at_each_offset),
        cmocka_unit_test(disk_full_from_each_write_on),
        cmocka_unit_test(no_room_for_the_next_segment),
        cmocka_unit_test(close_wakes_those_who_wait_for_room),
        cmocka_unit_test(the_largest_record_behind_a_small_one),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
