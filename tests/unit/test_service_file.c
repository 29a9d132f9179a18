/*
 * test_service_file.c - the ledger's pipeline on its file engine, on a disk in memory: what a
 * second service finds, and what it does about damage. Crashes at every point are
 * models/ledger_service_crash.c's work.
 */
#include "service_fixture.h"

#include "io/log_format.h"
#include "io/vfs_memory.h"

enum { COMMITS_COUNT = 5 };

struct disk {
    struct service_fixture *f;
    struct io_vfs *vfs;
    struct ledger_engine *engine;
};

static void disk_open(struct disk *disk) RON_BLOCKS
{
    const struct ledger_engine_file_options options = {.vfs = disk->vfs,
                                                       .dir = "log",
                                                       .segment_bytes = 1 << 20,
                                                       .ahead_bytes = 1 << 16,
                                                       .group_bytes = 1 << 16,
                                                       .record_bytes_max = 1 << 14};

    assert_ok(ledger_engine_file_open(&options, &disk->engine, NULL));
    disk->f->options.engine = disk->engine;
    fixture_start(disk->f);
}

static void disk_close(struct disk *disk) RON_BLOCKS
{
    fixture_stop(disk->f);
    disk->engine = ledger_engine_file_free(disk->engine);
}

static struct disk disk_new(void) RON_BLOCKS
{
    struct disk disk = {.f = fixture_new()};

    disk.f->options.roots_max = 2;
    assert_ok(io_vfs_memory_new(NULL, &disk.vfs, NULL));
    disk_open(&disk);
    return disk;
}

static void disk_free(struct disk *disk) RON_BLOCKS
{
    (void)io_vfs_free(disk->vfs);
    fixture_free(disk->f);
}

static void commit_some(struct disk *disk) RON_BLOCKS
{
    char id[TEXT_SIZE];

    for (int i = 0; i < COMMITS_COUNT; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        accepts(disk->f, call_new(disk->f, id, NULL, "alice", 10, id));
    }
}

/* covers: LED-F22 LED-V02 */
static void a_second_service_finds_everything(void **state) RON_BLOCKS
{
    struct disk disk = disk_new();
    struct ledger_root roots[COMMITS_COUNT + 1];
    struct ledger_root before[COMMITS_COUNT + 1];
    struct ledger_health health;
    struct call *again;
    size_t count = 0;

    (void)state;
    commit_some(&disk);
    assert_ok(ledger_read_roots(disk.f->service, 0, before, COMMITS_COUNT + 1, &count, NULL));
    assert_int_equal(count, COMMITS_COUNT);
    disk_close(&disk);
    disk_open(&disk);
    ledger_read_health(disk.f->service, &health);
    assert_true(health.clean_start);
    assert_int_equal(health.replayed_batches, COMMITS_COUNT);
    assert_int_equal(health.status.state, RT_LIFE_RUNNING);
    assert_ok(ledger_read_roots(disk.f->service, 0, roots, COMMITS_COUNT + 1, &count, NULL));
    assert_int_equal(count, COMMITS_COUNT);
    assert_memory_equal(roots, before, COMMITS_COUNT * sizeof(roots[0]));
    assert_ok(ledger_read_roots(disk.f->service, 2, roots, 2, &count, NULL));
    assert_int_equal(count, 2);
    assert_int_equal(roots[0].seq, 3);
    assert_int_equal(balance_of(disk.f, "alice"), 10 * COMMITS_COUNT);
    again = call_new(disk.f, "m2", NULL, "alice", 10, "m2");
    accepts(disk.f, again);
    assert_true(again->request.outcome.repeated);
    assert_int_equal(again->request.outcome.reply.seq_start, 3);
    assert_memory_equal(&again->request.outcome.reply.root, &before[2].root,
                        sizeof(before[2].root));
    disk_close(&disk);
    disk_free(&disk);
}

/* Turn one bit at the offset of the log's first segment. */
static void turn_a_bit(struct io_vfs *vfs, uint64_t offset) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t byte = 0;
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, "log/seg-0000000000000001", IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, offset, &byte, 1, &size, NULL));
    assert_int_equal(size, 1);
    byte ^= 1;
    assert_ok(io_file_write(file, offset, &(struct ron_slice){&byte, 1}, 1, NULL));
    (void)io_file_close(file);
}

/* One bit among the first frames, with good ones after it.
 * covers: LED-F18 LED-V27 */
static void damage_before_the_tail_freezes_writes(void **state) RON_BLOCKS
{
    struct disk disk = disk_new();
    struct ledger_health health;

    (void)state;
    commit_some(&disk);
    disk_close(&disk);
    turn_a_bit(disk.vfs, IO_SEGMENT_HEAD_SIZE + 600);
    disk_open(&disk);
    ledger_read_health(disk.f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    assert_int_equal(health.damage.info.err, RON_ERR_WAL_CORRUPT);
    assert_int_equal(ledger_submit(disk.f->service,
                                   &call_new(disk.f, "n", NULL, "alice", 1, NULL)->request, NULL),
                     RON_ERR_SAFE_MODE);
    disk_close(&disk);
    disk_open(&disk); /* and it stays so */
    ledger_read_health(disk.f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    disk_close(&disk);
    disk_free(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_service_finds_everything),
        cmocka_unit_test(damage_before_the_tail_freezes_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
