/*
 * test_log_tail.c - what lies behind the last whole group: torn, or damage.
 *
 * A crash leaves parts of two groups at most, and of the second no end (log_format.h). Method: a
 * log of groups of a record each that was never closed, in which frames are overwritten with zeros;
 * what is left decides whether open drops the tail or refuses the log.
 */
#include "io/log_check.h"
#include "io/vfs_faulty.h"
#include "log_world.h"

enum { GROUPS_COUNT = 10 };

static struct io_log_recovery recovery;
static struct ron_errinfo info;

static uint64_t record_at(uint64_t index)
{
    uint8_t body[WORLD_RECORD_MAX];
    uint64_t offset = IO_SEGMENT_HEAD_SIZE;

    for (uint64_t i = 1; i < index; i++)
        offset += io_frame_size(world_body(i, body)) + IO_COMMIT_SIZE;
    return offset;
}

static uint64_t commit_at(uint64_t index)
{
    return record_at(index + 1) - IO_COMMIT_SIZE;
}

/* What a crash leaves of it that takes nothing. Takes log and file system. */
static struct io_vfs *crash(struct io_log *log, struct io_vfs *vfs) RON_BLOCKS
{
    static uint8_t keep[8192];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    struct io_vfs *image = NULL;

    memset(keep, 0xff, sizeof(keep));
    assert_ok(io_memory_crash(vfs, &plan, &image, NULL));
    world_close(log);
    io_vfs_free(vfs);
    return image;
}

static struct io_vfs *with_groups(void) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    for (uint64_t i = 1; i <= GROUPS_COUNT; i++)
        world_append_many(log, i, i);
    return crash(log, vfs);
}

static void erase(struct io_vfs *vfs, uint64_t from, uint64_t to) RON_BLOCKS
{
    static const uint8_t zeros[1024];

    assert_true(to - from <= sizeof(zeros));
    world_write(vfs, SEG1, from, zeros, (size_t)(to - from));
}

static void erase_commit(struct io_vfs *vfs, uint64_t index) RON_BLOCKS
{
    erase(vfs, commit_at(index), record_at(index + 1));
}

static enum ron_err open_idle(struct io_vfs *vfs, enum io_log_damage_policy damage,
                              struct io_log **ret_log) RON_BLOCKS
{
    struct io_log_options options = world_options(vfs);

    options.damage = damage;
    options.supervisor = NULL;
    info = (struct ron_errinfo){0};
    return log_open_idle(&options, ret_log, &recovery, &info);
}

/* Dropped, by every policy and for good. Takes the file system. */
static void assert_torn(struct io_vfs *vfs, uint64_t last, uint64_t sound_count) RON_BLOCKS
{
    const struct io_log_check_options check = {.vfs = vfs, .dir = "role/log"};
    struct io_log_found found;
    struct io_log *log = NULL;

    assert_ok(io_log_check(&check, &found, NULL));
    assert_int_equal(found.last_index, last);
    assert_true(found.torn_bytes > 0);
    if (open_idle(vfs, IO_LOG_STRICT, &log) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_int_equal(recovery.last_index, last);
    assert_int_equal(recovery.torn_count, sound_count);
    assert_int_equal(recovery.torn_bytes, found.torn_bytes);
    log_destroy(log);
    log = world_open(vfs); /* what is appended now is all that is there */
    world_append_many(log, last + 1, last + 1);
    assert_int_equal(world_read(log, 1), last + 1);
    world_close(log);
    assert_ok(io_log_check(&check, &found, NULL));
    assert_int_equal(found.last_index, last + 1);
    assert_int_equal(found.torn_bytes, 0);
    io_vfs_free(vfs);
}

/* Refused, read up to, and passed over. Takes the file system. */
static void assert_damaged(struct io_vfs *vfs, uint64_t last, uint64_t offset) RON_BLOCKS
{
    const struct io_log_check_options check = {.vfs = vfs, .dir = "role/log"};
    const struct ron_b3 before = world_sum(vfs, false);
    struct io_log_found found;
    struct io_log *log = NULL;
    struct ron_b3 after;

    assert_int_equal(io_log_check(&check, &found, NULL), RON_ERR_WAL_CORRUPT);
    assert_int_equal(found.damage_offset, offset);
    support_assert_error(open_idle(vfs, IO_LOG_STRICT, &log), &info, RON_ERR_WAL_CORRUPT, SEG1);
    assert_int_equal(recovery.damage_offset, offset);
    assert_ok(open_idle(vfs, IO_LOG_UP_TO_DAMAGE, &log));
    assert_int_equal(recovery.last_index, last);
    assert_int_equal(recovery.damage_offset, offset);
    log_destroy(log);
    after = world_sum(vfs, false);
    assert_memory_equal(before.bytes, after.bytes, sizeof(before.bytes));
    assert_ok(open_idle(vfs, IO_LOG_SKIP, &log));
    assert_true(recovery.skipped_count > 0);
    log_destroy(log);
    io_vfs_free(vfs);
}

static void a_group_without_its_end_is_torn(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups();

    (void)state;
    erase_commit(vfs, 10);
    assert_torn(vfs, 9, 1);
}

static void records_of_the_next_group_are_torn(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups();

    (void)state;
    erase_commit(vfs, 9);
    erase_commit(vfs, 10);
    assert_torn(vfs, 8, 2);
    vfs = with_groups(); /* and nothing else is left */
    erase(vfs, record_at(9), record_at(10));
    erase_commit(vfs, 10);
    assert_torn(vfs, 8, 1);
}

static void the_end_of_the_next_group_is_damage(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups();

    (void)state;
    erase_commit(vfs, 9);
    assert_damaged(vfs, 8, commit_at(9));
    vfs = with_groups();
    erase_commit(vfs, 9);
    erase(vfs, record_at(10), commit_at(10)); /* nothing but its end */
    assert_damaged(vfs, 8, commit_at(9));
    vfs = with_groups();
    erase_commit(vfs, 9);
    world_flip(vfs, SEG1, commit_at(10) + IO_FRAME_HEAD_SIZE); /* its head tells enough */
    assert_damaged(vfs, 8, commit_at(9));
}

static void records_of_two_later_groups_are_damage(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups();

    (void)state;
    for (uint64_t i = 8; i <= 10; i++)
        erase_commit(vfs, i);
    assert_damaged(vfs, 7, commit_at(8));
}

/* A seal is written behind a group that is durable. */
static void a_seal_behind_a_torn_group_is_damage(void **state) RON_BLOCKS
{
    struct io_frame seal = {.index = 10, .group = 11, .epoch = 1, .type = IO_FRAME_SEAL};
    struct io_vfs *vfs = with_groups();
    struct ron_buf bytes = world_file(vfs, SEG1);
    struct io_segment_head head;
    struct io_heads heads;
    struct io_link link = {{0}};
    uint8_t end[IO_COMMIT_SIZE];

    (void)state;
    assert_ok(io_segment_head_decode(ron_slice_of(bytes.data, bytes.size), &head, NULL));
    ron_buf_fini(&bytes);
    io_heads_start(&heads);
    io_group_end(&seal, io_log_salt(head.log_id), &heads, &link, end);
    erase_commit(vfs, 10);
    world_write(vfs, SEG1, record_at(11), end, sizeof(end));
    assert_damaged(vfs, 9, commit_at(10));
}

/* Groups of one up to 8, then 9 to 20 without their end, and the record of the group behind them.
 */
static struct io_vfs *with_two_torn(void) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    uint8_t body[WORLD_RECORD_MAX];
    uint64_t at = record_at(9);

    for (uint64_t i = 1; i <= 8; i++)
        world_append_many(log, i, i);
    assert_int_equal(world_append_run(log, 9, 20), 1);
    assert_ok(io_log_wait(log, 20, rt_deadline_after_ms(20000), NULL));
    world_append_many(log, 21, 21);
    vfs = crash(log, vfs);
    for (uint64_t i = 9; i <= 20; i++)
        at += io_frame_size(world_body(i, body));
    erase(vfs, at, at + IO_COMMIT_SIZE);
    at += IO_COMMIT_SIZE + io_frame_size(world_body(21, body));
    erase(vfs, at, at + IO_COMMIT_SIZE);
    return vfs;
}

/* A repair whose sync fails shows zeros that the disk does not have. */
static void fail_repair(struct io_vfs *vfs, uint64_t sync) RON_BLOCKS
{
    const struct io_fault fault = {IO_FAULT_SYNC_EIO, IO_CALL_SYNC, "role/log/seg", sync, 1};
    const struct io_faulty_options options = {.faults = &fault, .faults_count = 1};
    struct io_vfs *faulty = NULL;
    struct io_log *log = NULL;

    assert_ok(io_vfs_faulty_new(vfs, &options, &faulty, NULL));
    assert_int_equal(open_idle(faulty, IO_LOG_STRICT, &log), RON_ERR_IO);
    io_vfs_free(faulty);
}

/* Old heads would be those of a second group later than the last one. */
static void a_failed_repair_leaves_no_proof(void **state) RON_BLOCKS
{
    (void)state;
    for (uint64_t sync = 1; sync <= 2; sync++) {
        struct io_vfs *vfs = with_two_torn();
        struct io_log *log;

        fail_repair(vfs, sync);
        log = world_open(vfs);
        for (uint64_t i = 9; i <= 11; i++)
            world_append_many(log, i, i);
        vfs = crash(log, vfs);
        erase_commit(vfs, 10);
        erase(vfs, commit_at(11), commit_at(11) + IO_COMMIT_SIZE);
        assert_torn(vfs, 9, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_without_its_end_is_torn),
        cmocka_unit_test(records_of_the_next_group_are_torn),
        cmocka_unit_test(the_end_of_the_next_group_is_damage),
        cmocka_unit_test(records_of_two_later_groups_are_damage),
        cmocka_unit_test(a_seal_behind_a_torn_group_is_damage),
        cmocka_unit_test(a_failed_repair_leaves_no_proof),
    };

    return cmocka_run_group_tests_name("log_tail", tests, world_setup, world_teardown);
}
