/*
 * test_log_pieces.c - a group whose first pages are written before its end is known.
 *
 * Method: a group is filled until the writer has written some of it; then what a crash could leave
 * is recovered: before its end was written, and at each sync, with every sector of every piece lost
 * or kept (crash_images.h). A group is there as a whole or not at all, whatever is left of it; on a
 * disk that fails the log breaks, and everybody is answered.
 *
 * covers: LED-F13
 */
#include "io/crash_images.h"
#include "io/vfs_faulty.h"
#include "log_recorder.h"
#include "log_world.h"

enum {
    GROUPS_COUNT = RON_ASAN || RON_TSAN ? 3 : 8,
    PIECES_COUNT = 2, /* of a group, before its end */
    EARLY = 4096,
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

static struct {
    struct rt_atomic_u64 recording;
    struct rt_atomic_u64 acknowledged, appended; /* ends of groups */
    uint64_t images_count, torn_count, whole_count, moments_count;
} trace;

static struct io_log *open_log(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = piece_options(vfs);

    return world_open_as(&options);
}

/* Groups are whole or absent: the last record is that of the last group, or of the one before. */
static bool check_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                        enum io_crash_class class) RON_BLOCKS
{
    struct io_log_options options = piece_options(image);
    const uint64_t *expected = context; /* acknowledged, appended */
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;

    (void)plan;
    (void)class;
    options.supervisor = NULL;
    if (log_open_idle(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("recovery: %s", info.message);
    if (recovery.last_index != expected[0] && recovery.last_index != expected[1])
        fail_msg("records up to %llu; %llu were acknowledged, %llu appended",
                 (unsigned long long)recovery.last_index, (unsigned long long)expected[0],
                 (unsigned long long)expected[1]);
    assert_int_equal(world_read(log, 1), recovery.last_index);
    trace.images_count++;
    trace.torn_count += recovery.torn_bytes > 0;
    trace.whole_count += recovery.last_index > expected[0];
    log_destroy(log);
    return true;
}

static void crash_now(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.moments_count, .tears_max = 16};
    uint64_t expected[2] = {rt_atomic_load_u64(&trace.acknowledged),
                            rt_atomic_load_u64(&trace.appended)};
    struct io_crash_counts counts = {0};

    if (rt_atomic_load_u64(&trace.recording) == 0)
        return;
    trace.moments_count++;
    assert_ok(io_crash_images(recorder->below, &options, check_image, expected, &counts, NULL));
}

/* Append records for one piece and no end; wait until it is written. Returns the last of them. */
static uint64_t append_piece(struct io_log *log, uint64_t last) RON_BLOCKS
{
    const uint64_t before = io_log_get_stats(log).early_bytes;
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    uint64_t size = 0;

    while (size < 2 * EARLY) { /* wherever the group begins in its page */
        uint8_t body[WORLD_RECORD_MAX];

        assert_ok(world_append(log, ++last));
        size += io_frame_size(world_body(last, body));
    }
    while (io_log_get_stats(log).early_bytes == before)
        assert_true(rt_now_ns() < deadline.at_ns);
    return last;
}

static void a_group_in_pieces_is_whole_or_absent(void **state) RON_BLOCKS
{
    struct io_vfs *memory = world_memory();
    struct recorder recorder;
    struct io_log_stats stats;
    struct io_log *log;
    uint64_t last = 0;

    (void)state;
    recorder_init(&recorder, memory, crash_now, NULL);
    log = open_log(&recorder.vfs);
    for (unsigned i = 0; i < GROUPS_COUNT; i++) {
        for (unsigned piece = 0; piece < PIECES_COUNT; piece++)
            last = append_piece(log, last);
        rt_atomic_store_u64(&trace.recording, 1);
        (void)recorder_enter(&recorder.vfs); /* its end is not written: none of it may be there */
        crash_now(&recorder);
        (void)recorder_leave(&recorder, RON_ERR_OK);
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
    assert_int_equal(world_read(log, 1), last);
    world_close(log);
    io_vfs_free(&recorder.vfs);
    log = open_log(memory);
    assert_int_equal(world_read(log, 1), last);
    world_close(log);
    io_vfs_free(memory);
    print_message("# %llu moments, %llu images, %llu torn, %llu whole\n",
                  (unsigned long long)trace.moments_count, (unsigned long long)trace.images_count,
                  (unsigned long long)trace.torn_count, (unsigned long long)trace.whole_count);
    assert_true(trace.moments_count >= UINT64_C(2) * GROUPS_COUNT);
    assert_true(trace.torn_count > trace.images_count / 2);
    assert_true(trace.whole_count > 0);
}

static void note_broken(void *context, const struct ron_errinfo *info)
{
    assert_int_equal(info->err, RON_ERR_IO);
    rt_atomic_store_u64(context, 1);
}

/* A write is a write: its error is final and told, though nobody waits and no group is closed. The
 * call of this kind and number fails, counted from before the log is opened. */
static void break_at(enum io_fault_call call, uint64_t at) RON_BLOCKS
{
    const struct io_fault fault = {
        .kind = IO_FAULT_EIO, .call = call, .path_prefix = "role/log/seg", .at = at, .times = 1};
    const struct io_faulty_options faults = {.faults = &fault, .faults_count = 1};
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_vfs *memory = world_memory(), *faulty = NULL;
    struct io_log_recovery recovery;
    struct io_log_options options;
    struct rt_atomic_u64 broken;
    struct io_log *log = open_log(memory);

    world_close(log);
    rt_atomic_store_u64(&broken, 0);
    assert_ok(io_vfs_faulty_new(memory, &faults, &faulty, NULL));
    options = piece_options(faulty);
    options.on_broken = note_broken;
    options.keys = NULL;
    options.context = &broken;
    assert_ok(io_log_open(&options, &log, &recovery, NULL));
    for (uint64_t i = 1; i <= 60 && world_append(log, i) == RON_ERR_OK; i++) /* less than a group */
        ;
    while (rt_atomic_load_u64(&broken) == 0)
        assert_true(rt_now_ns() < deadline.at_ns);
    assert_int_equal(world_append(log, 61), RON_ERR_IO);
    assert_int_equal(io_log_wait(log, 1, deadline, NULL), RON_ERR_IO);
    assert_int_equal(io_log_get_stats(log).syncs_count, 0);
    assert_int_equal(io_log_close(log, deadline, NULL), RON_ERR_IO);
    io_vfs_free(faulty);
    log = open_log(memory);
    assert_int_equal(world_read(log, 1), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_in_pieces_is_whole_or_absent, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_piece_that_fails_breaks_the_log, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests_name("log_pieces", tests, NULL, NULL);
}
