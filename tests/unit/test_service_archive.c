/*
 * test_service_archive.c - exact for ever: windows of a few entries over segments of 8 KiB, and
 * thousands of batches that the windows have long forgotten. Duplicates by id, by key and by nonce,
 * a Reverse of something ancient; before and after a restart; and what happens when the archive
 * cannot answer.
 */
#include "ancient_world.h"

#include "io/log_format.h"

enum { BATCHES_COUNT = 2000 };

/* covers: LED-F07, LED-F08, LED-F09 */
static void nothing_is_ever_forgotten(void **state) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);

    (void)state;
    world_open(&world);
    world_fill(&world);
    knows_the_beginning(&world);
    (void)commit(&world, reverse(&world, "r1", 3));
    refuses_it(&world, reverse(&world, "r2", 5), RON_ERR_CONFLICT);
    assert_int_equal(balance_of(world.f, "alice"), 96);
    world_close(&world);
    world_open(&world); /* the Reverse is replayed, and needs the archive for that */
    knows_the_beginning(&world);
    refuses_it(&world, reverse(&world, "r3", 5), RON_ERR_CONFLICT);
    assert_int_equal(balance_of(world.f, "alice"), 96);
    assert_int_equal(balance_of(world.f, "carol"), BATCHES_COUNT);
    world_free(&world);
}

/* A frame in an old segment cannot be read: that is not "not found". */
static void an_archive_that_cannot_answer_freezes(void **state) RON_BLOCKS
{
    struct ancient world = world_new(BATCHES_COUNT);
    struct ledger_health health;
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    (void)state;
    world_open(&world);
    world_fill(&world);
    assert_ok(io_vfs_open(world.vfs, "log/seg-0000000000000001", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, IO_SEGMENT_HEAD_SIZE + 200, &byte, 1, &size, NULL));
    byte ^= 1;
    assert_ok(
        io_file_write(file, IO_SEGMENT_HEAD_SIZE + 200, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
    refuses_it(&world, one(&world, "m0", NULL, "alice", 100, NULL), RON_ERR_SAFE_MODE);
    ledger_read_health(world.f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_WAL_CORRUPT);
    assert_int_equal(balance_of(world.f, "alice"),
                     93); /* reads go on, and nothing was done twice */
    assert_int_equal(
        ledger_submit(world.f->service, &one(&world, "y", NULL, "alice", 1, NULL)->request, NULL),
        RON_ERR_SAFE_MODE);
    world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_ever_forgotten),
        cmocka_unit_test(an_archive_that_cannot_answer_freezes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
