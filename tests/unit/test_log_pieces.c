/*
 * test_log_pieces.c - a group whose first pages are written before its end is known.
 *
 * Method: a group is filled until some of it is written, while the disk is idle, and while the sync
 * of the group before is held; then what a crash could leave is recovered: before its end was
 * written, and at each sync, with every sector of every piece lost or kept (crash_images.h), and
 * for some the same for the recovery itself. A group is there as a whole or not at all, whatever is
 * left of it and of the next one; on a disk that fails the log breaks, and everybody is answered.
 *
 * covers: LED-F13
 */
#include <sched.h>

#include "io/crash_images.h"
#include "io/vfs_faulty.h"
#include "log_recorder.h"
#include "log_world.h"

enum {
    GROUPS_COUNT = RON_ASAN || RON_TSAN ? 3 : 8,
    PIECES_COUNT = 2, /* of a group, before its end */
    EARLY = 4096,
    NESTED_EVERY = 251, /* images whose recovery is crashed, too */
};

/* One segment, zeroed by open. A group closes when somebody waits. */
static struct io_log_options piece_options(struct io_vfs *vfs)
{
    struct io_log_options options = world_options(vfs);

    options.segment_bytes = 256 << 10;
    options.ahead_bytes = 256 << 10;
    options.group_bytes = 64 << 10;
    options.early_bytes = EARLY;
    options.linger_us = 4000000000;
    return options;
}

/* What may be found: records up to one of two, the ends of groups. */
struct expected {
    uint64_t acknowledged, appended;
    uint64_t group_size; /* bytes of the group between them */
    bool nested;         /* in a recovery that is crashed */
};
static struct {
    struct rt_atomic_u64 recording;
    struct rt_atomic_u64 acknowledged, appended, group_size;
    struct rt_atomic_u64 holding, held_count, passed_count; /* syncs */
    uint64_t images_count, torn_count, whole_count, moments_count;
    uint64_t two_count; /* tails that reach beyond the group */
    uint64_t nested_count, nested_two_count;
} trace;

static struct io_log *open_log(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = piece_options(vfs);

    return world_open_as(&options);
}

static struct io_log_recovery recover(struct io_vfs *vfs,
                                      const struct expected *expected) RON_BLOCKS
{
    struct io_log_options options = piece_options(vfs);
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;

    options.supervisor = NULL;
    if (log_open_idle(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("recovery: %s", info.message);
    if (recovery.last_index != expected->acknowledged && recovery.last_index != expected->appended)
        fail_msg("records up to %llu; %llu were acknowledged, %llu appended",
                 (unsigned long long)recovery.last_index,
                 (unsigned long long)expected->acknowledged,
                 (unsigned long long)expected->appended);
    world_read_run(log, recovery.last_index);
    log_destroy(log);
    return recovery;
}

static void crash_the_recovery(struct recorder *recorder);

/* Groups are whole or absent: the last record is that of the last group, or of the one before.
 * What is left is clean. */
static bool check_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                        enum io_crash_class class) RON_BLOCKS
{
    struct expected *expected = context;
    struct io_log_recovery recovery;
    bool two;

    (void)plan;
    (void)class;
    if (!expected->nested && ++trace.images_count % NESTED_EVERY == 0) {
        struct recorder recorder;

        expected->nested = true;
        recorder_init(&recorder, image, crash_the_recovery, expected);
        recovery = recover(&recorder.vfs, expected);
        io_vfs_free(&recorder.vfs);
        expected->nested = false;
    } else {
        recovery = recover(image, expected);
    }
    two = recovery.last_index == expected->acknowledged &&
          recovery.torn_bytes > expected->group_size;
    if (expected->nested) {
        trace.nested_count++;
        trace.nested_two_count += two;
        return true;
    }
    trace.torn_count += recovery.torn_bytes > 0;
    trace.whole_count += recovery.last_index > expected->acknowledged;
    trace.two_count += two;
    assert_int_equal(recover(image, expected).torn_bytes, 0);
    return true;
}

static void crash_the_recovery(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.nested_count, .tears_max = 4};
    struct io_crash_counts counts = {0};

    assert_ok(
        io_crash_images(recorder->below, &options, check_image, recorder->context, &counts, NULL));
}

static void crash_now(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.moments_count, .tears_max = 16};
    struct expected expected = {.acknowledged = rt_atomic_load_u64(&trace.acknowledged),
                                .appended = rt_atomic_load_u64(&trace.appended),
                                .group_size = rt_atomic_load_u64(&trace.group_size)};
    struct io_crash_counts counts = {0};

    if (rt_atomic_load_u64(&trace.recording) == 0)
        return;
    trace.moments_count++;
    assert_ok(io_crash_images(recorder->below, &options, check_image, &expected, &counts, NULL));
}

/* Between two calls of the log. */
static void crash_between(struct recorder *recorder)
{
    rt_atomic_store_u64(&trace.recording, 1);
    (void)recorder_enter(&recorder->vfs);
    crash_now(recorder);
    (void)recorder_leave(recorder, RON_ERR_OK);
}

/* Append records for one piece and no end, at once; it is written then. Returns the last of them,
 * adds their bytes to *size. */
static uint64_t append_piece(struct io_log *log, uint64_t last, uint64_t *size) RON_BLOCKS
{
    const uint64_t before = io_log_get_stats(log).early_bytes, first = last + 1, from = *size;
    uint8_t body[WORLD_RECORD_MAX];

    while (*size - from < 2 * EARLY) /* wherever the group begins in its page */
        *size += io_frame_size(world_body(++last, body));
    assert_int_equal(world_append_run(log, first, last), 1);
    assert_true(io_log_get_stats(log).early_bytes > before);
    return last;
}

static void print_trace(void)
{
    print_message("# %llu moments, %llu images, %llu torn, %llu of them with records of the next "
                  "group, %llu whole, %llu of recoveries (%llu)\n",
                  (unsigned long long)trace.moments_count, (unsigned long long)trace.images_count,
                  (unsigned long long)trace.torn_count, (unsigned long long)trace.two_count,
                  (unsigned long long)trace.whole_count, (unsigned long long)trace.nested_count,
                  (unsigned long long)trace.nested_two_count);
}

static void a_group_in_pieces_is_whole_or_absent(void **state) RON_BLOCKS
{
    struct io_vfs *memory = world_memory();
    struct recorder recorder;
    struct io_log_stats stats;
    struct io_log *log;
    uint64_t last = 0, size = 0;

    (void)state;
    memset(&trace, 0, sizeof(trace));
    recorder_init(&recorder, memory, crash_now, NULL);
    log = open_log(&recorder.vfs);
    for (unsigned i = 0; i < GROUPS_COUNT; i++) {
        for (unsigned piece = 0; piece < PIECES_COUNT; piece++)
            last = append_piece(log, last, &size);
        rt_atomic_store_u64(&trace.group_size, UINT64_MAX); /* there is no next one */
        crash_between(&recorder); /* its end is not written: none of it may be there */
        rt_atomic_store_u64(&trace.appended, last);
        assert_ok(io_log_wait(log, last, rt_deadline_after_ms(60000), NULL));
        rt_atomic_store_u64(&trace.recording, 0);
        rt_atomic_store_u64(&trace.acknowledged, last);
    }
    stats = io_log_get_stats(log);
    assert_int_equal(stats.groups_count, GROUPS_COUNT);
    assert_int_equal(stats.syncs_count, GROUPS_COUNT);
    assert_true(stats.early_bytes >= (uint64_t)GROUPS_COUNT * PIECES_COUNT * EARLY);
    assert_true(stats.early_bytes < stats.bytes_count);
    assert_int_equal(stats.meanwhile_bytes, 0);
    world_read_run(log, last);
    world_close(log);
    io_vfs_free(&recorder.vfs);
    log = open_log(memory);
    world_read_run(log, last);
    world_close(log);
    io_vfs_free(memory);
    print_trace();
    assert_true(trace.moments_count >= UINT64_C(2) * GROUPS_COUNT);
    assert_true(trace.torn_count > trace.images_count / 2);
    assert_true(trace.whole_count > 0);
    assert_true(trace.nested_count > 0);
}

static void wait_for(struct rt_atomic_u64 *count, uint64_t value)
{
    const struct rt_deadline deadline = rt_deadline_after_ms(60000);

    while (rt_atomic_load_u64(count) < value) {
        assert_true(rt_now_ns() < deadline.at_ns);
        (void)sched_yield();
    }
}

/* The sync of a group waits here until it may go on. */
static void hold_sync(struct recorder *recorder, const char *path)
{
    (void)recorder;
    if (rt_atomic_load_u64(&trace.holding) == 0 || strncmp(path, SEG1, strlen(SEG1)) != 0)
        return;
    wait_for(&trace.passed_count, rt_atomic_add_u64(&trace.held_count, 1) + 1);
}

/* While a group is synced, pages of the next one are written: any of both may be lost. */
static void pages_of_the_next_group_change_nothing(void **state) RON_BLOCKS
{
    struct io_vfs *memory = world_memory();
    struct io_log_options options;
    struct recorder recorder;
    struct io_log *log;
    uint64_t last = 0, next, size = 0, next_size;

    (void)state;
    memset(&trace, 0, sizeof(trace));
    recorder_init(&recorder, memory, crash_now, NULL);
    recorder.hold_sync = hold_sync;
    options = piece_options(&recorder.vfs);
    options.linger_us = 0; /* a group closes as soon as the disk is idle */
    log = world_open_as(&options);
    rt_atomic_store_u64(&trace.holding, 1);
    last = append_piece(log, last, &size);
    for (uint64_t i = 1; i <= GROUPS_COUNT; i++) {
        const uint64_t before = io_log_get_stats(log).meanwhile_bytes;

        wait_for(&trace.held_count, i); /* all of it is written */
        assert_int_equal(io_log_get_stats(log).groups_count, i - 1);
        rt_atomic_store_u64(&trace.acknowledged, io_log_last_durable(log));
        rt_atomic_store_u64(&trace.appended, last);
        rt_atomic_store_u64(&trace.group_size, size + IO_COMMIT_SIZE);
        next_size = 0;
        next = append_piece(log, last, &next_size);
        assert_true(io_log_get_stats(log).meanwhile_bytes >= before + EARLY);
        crash_between(&recorder);
        rt_atomic_store_u64(&trace.recording, 0); /* what is expected is about to change */
        rt_atomic_store_u64(&trace.passed_count, i);
        last = next;
        size = next_size;
    }
    wait_for(&trace.held_count, GROUPS_COUNT + 1);
    rt_atomic_store_u64(&trace.passed_count, UINT64_MAX);
    assert_ok(io_log_wait(log, last, rt_deadline_after_ms(20000), NULL));
    world_close(log);
    io_vfs_free(&recorder.vfs);
    log = open_log(memory);
    world_read_run(log, last);
    world_close(log);
    io_vfs_free(memory);
    print_trace();
    assert_true(trace.moments_count >= GROUPS_COUNT);
    assert_true(trace.two_count > trace.images_count / 2);
    assert_true(trace.whole_count > 0);
    assert_true(trace.nested_two_count > 0);
}

static void note_broken(void *context, const struct ron_errinfo *info)
{
    assert_int_equal(info->err, RON_ERR_IO);
    rt_atomic_store_u64(context, 1);
}

/* As many records as one call takes, less than a group. */
static enum ron_err append_some(struct io_log *log, size_t *ret_count) RON_BLOCKS
{
    static const uint8_t bytes[WORLD_RECORD_MAX];
    struct ron_slice bodies[60];
    uint64_t index = 0;

    for (size_t i = 0; i < RON_ARRAY_COUNT(bodies); i++)
        bodies[i] = ron_slice_of(bytes, sizeof(bytes));
    return io_log_append_many(log, WORLD_RUN_TYPE, bodies, RON_ARRAY_COUNT(bodies),
                              rt_deadline_after_ms(20000), ret_count, &index, NULL);
}

/* A log that is there already, on a disk whose call of this kind and number fails, counted from
 * before the log is opened. */
static struct io_log *open_failing(struct io_vfs *memory, enum io_fault_call call, uint64_t at,
                                   struct rt_atomic_u64 *broken, struct io_vfs **ret_vfs) RON_BLOCKS
{
    const struct io_fault fault = {
        .kind = IO_FAULT_EIO, .call = call, .path_prefix = "role/log/seg", .at = at, .times = 1};
    const struct io_faulty_options faults = {.faults = &fault, .faults_count = 1};
    struct io_log_options options;

    world_close(open_log(memory));
    rt_atomic_store_u64(broken, 0);
    assert_ok(io_vfs_faulty_new(memory, &faults, ret_vfs, NULL));
    options = piece_options(*ret_vfs);
    options.on_broken = note_broken;
    options.keys = NULL;
    options.context = broken;
    return world_open_as(&options);
}

/* A write is a write: its error is final and told, though nobody waits and no group is closed. */
static void break_at(enum io_fault_call call, uint64_t at) RON_BLOCKS
{
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_vfs *memory = world_memory(), *faulty = NULL;
    struct rt_atomic_u64 broken;
    struct io_log *log = open_failing(memory, call, at, &broken, &faulty);
    size_t count = 0;

    assert_ok(append_some(log, &count));
    assert_in_range(count, 1, 59); /* the first piece */
    assert_int_equal(rt_atomic_load_u64(&broken), 1);
    assert_int_equal(append_some(log, &count), RON_ERR_IO);
    assert_int_equal(io_log_wait(log, 1, deadline, NULL), RON_ERR_IO);
    assert_int_equal(io_log_get_stats(log).syncs_count, 0);
    assert_int_equal(io_log_close(log, deadline, NULL), RON_ERR_IO);
    io_vfs_free(faulty);
    log = open_log(memory);
    world_read_run(log, 0);
    world_close(log);
    io_vfs_free(memory);
}

/* The piece itself, and the start of its way to the disk. */
static void a_piece_that_fails_breaks_the_log(void **state) RON_BLOCKS
{
    (void)state;
    break_at(IO_CALL_WRITE, 1);
    break_at(IO_CALL_SYNC, 2); /* opening syncs once */
}

/* Nothing was tried to be written then: the writer does it. */
static void a_piece_without_a_file_is_written_later(void **state) RON_BLOCKS
{
    struct io_vfs *memory = world_memory(), *faulty = NULL;
    struct rt_atomic_u64 broken;
    /* A head, a walk, and the writer's own come first. */
    struct io_log *log = open_failing(memory, IO_CALL_OPEN, 4, &broken, &faulty);
    size_t count = 0;

    (void)state;
    assert_ok(append_some(log, &count));
    assert_int_equal(count, 60);
    assert_int_equal(io_faulty_count(faulty, IO_FAULT_EIO), 1);
    assert_ok(io_log_wait(log, count, rt_deadline_after_ms(20000), NULL));
    assert_int_equal(rt_atomic_load_u64(&broken), 0);
    world_close(log);
    io_vfs_free(faulty);
    log = open_log(memory);
    assert_int_equal(io_log_last_durable(log), count);
    world_close(log);
    io_vfs_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_in_pieces_is_whole_or_absent),
        cmocka_unit_test(pages_of_the_next_group_change_nothing),
        cmocka_unit_test(a_piece_that_fails_breaks_the_log),
        cmocka_unit_test(a_piece_without_a_file_is_written_later),
    };

    return cmocka_run_group_tests_name("log_pieces", tests, world_setup, world_teardown);
}
