/*
 * test_vfs_faulty.c - every fault, shown.
 *
 * Method: what the caller is told, what the file holds afterwards, what a crash leaves, and that it
 * was counted. Plus the rules of the table (which call, which path, how often) and of poisoned
 * files.
 */
#include "io/vfs_faulty.h"
#include "io/vfs_memory.h"
#include "rt/clock.h"
#include "support.h"

enum { SIZE = 2048 };

struct pair {
    struct io_vfs *memory, *faulty;
    struct io_file *file;
};

static void close_pair(struct pair *pair) RON_BLOCKS
{
    (void)io_file_close(pair->file);
    (void)io_vfs_free(pair->faulty);
    (void)io_vfs_free(pair->memory);
    assert_int_equal(ron_mem_live_count(), 0);
}

/* A file "a" of SIZE bytes 1, durable; the faults begin with the next call. */
static struct pair open_pair(const struct io_fault *faults, size_t faults_count) RON_BLOCKS
{
    struct io_faulty_options options = {
        .faults = faults, .faults_count = faults_count, .slow_ms = 2, .seed = 5};
    struct pair pair = {0};
    uint8_t bytes[SIZE];
    const struct ron_slice part = ron_slice_of(bytes, SIZE);
    struct io_file *file = NULL;

    memset(bytes, 1, SIZE);
    assert_ok(io_vfs_memory_new(NULL, &pair.memory, NULL));
    assert_ok(io_vfs_open(pair.memory, "a", IO_OPEN_CREATE, &file, NULL));
    assert_ok(io_file_write(file, 0, &part, 1, NULL));
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_vfs_sync_dir(pair.memory, "", NULL));
    (void)io_file_close(file);
    assert_ok(io_vfs_faulty_new(pair.memory, &options, &pair.faulty, NULL));
    assert_ok(io_vfs_open(pair.faulty, "a", IO_OPEN_WRITE, &pair.file, NULL));
    return pair;
}

static struct pair one_fault(enum io_fault_kind kind, enum io_fault_call call) RON_BLOCKS
{
    return open_pair(&(struct io_fault){kind, call, NULL, 1, 1}, 1);
}

/* Write `size` bytes 2 in three parts. */
static enum ron_err write_twos(struct io_file *file, uint64_t offset, size_t size,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    static uint8_t bytes[SIZE];
    const struct ron_slice parts[] = {ron_slice_of(bytes, size / 3), ron_slice_of(bytes, size / 3),
                                      ron_slice_of(bytes, size - size / 3 * 2)};

    memset(bytes, 2, SIZE);
    return io_file_write(file, offset, parts, 3, reterr);
}

static size_t read_all(struct io_vfs *vfs, uint8_t bytes[2 * SIZE]) RON_BLOCKS
{
    struct io_file *file = NULL;
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, "a", IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, bytes, 2 * SIZE, &size, NULL));
    (void)io_file_close(file);
    return size;
}

/* How many bytes are `value`, and that those from first to last are all of them. */
static size_t count_of(const uint8_t *bytes, size_t size, uint8_t value)
{
    size_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += bytes[i] == value ? 1 : 0;
    return count;
}

static struct io_vfs *crash_keeping(struct io_vfs *vfs, uint8_t keep)
{
    struct io_vfs *image = NULL;

    assert_ok(io_memory_crash(vfs, &(struct io_crash_plan){&keep, SIZE_MAX, 0}, &image, NULL));
    return image;
}

static void eio_fails_and_does_nothing(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_EIO, IO_CALL_WRITE);
    struct ron_errinfo info;
    uint8_t bytes[2 * SIZE];
    enum ron_err err = write_twos(pair.file, 0, 100, &info);

    (void)state;
    support_assert_error(err, &info, RON_ERR_IO, "write memory/a: fault EIO");
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 1), SIZE);
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_EIO), 1);
    /* Poisoned: nothing more is written, although the disk would. */
    err = write_twos(pair.file, 0, 100, &info);
    support_assert_error(err, &info, RON_ERR_IO, "refused");
    assert_int_equal(io_file_sync(pair.file, NULL), RON_ERR_IO);
    assert_int_equal(io_file_truncate(pair.file, 0, NULL), RON_ERR_IO);
    assert_int_equal(read_all(pair.faulty, bytes), SIZE); /* reads go on, another open may write */
    (void)io_file_close(pair.file);
    assert_ok(io_vfs_open(pair.faulty, "a", IO_OPEN_WRITE, &pair.file, NULL));
    assert_ok(write_twos(pair.file, 0, 100, &info));
    close_pair(&pair);
}

static bool never(void *context, const char *name, bool is_dir)
{
    (void)context;
    (void)name;
    (void)is_dir;
    fail();
    return false;
}

static void eio_strikes_every_kind_of_call(void **state) RON_BLOCKS
{
    const struct io_fault faults[] = {{IO_FAULT_EIO, IO_CALL_OPEN, NULL, 2, 1},
                                      {IO_FAULT_EIO, IO_CALL_READ, NULL, 1, 1},
                                      {IO_FAULT_EIO, IO_CALL_SYNC, NULL, 1, 2},
                                      {IO_FAULT_EIO, IO_CALL_NAME, NULL, 1, 5}};
    struct pair pair = open_pair(faults, 4);
    struct io_file *file = NULL;
    struct ron_errinfo info;
    size_t size = 7;
    char byte;

    (void)state;
    support_assert_error(io_vfs_open(pair.faulty, "b", IO_OPEN_CREATE, &file, &info), &info,
                         RON_ERR_IO, "open memory/b: fault EIO");
    assert_int_equal(io_vfs_open(pair.memory, "b", IO_OPEN_READ, &file, NULL), RON_ERR_NOT_FOUND);
    support_assert_error(io_file_read(pair.file, 0, &byte, 1, &size, &info), &info, RON_ERR_IO,
                         "read memory/a");
    assert_int_equal(size, 7);
    support_assert_error(io_vfs_sync_dir(pair.faulty, "", &info), &info, RON_ERR_IO,
                         "sync directory");
    support_assert_error(io_vfs_rename(pair.faulty, "a", "b", &info), &info, RON_ERR_IO, "rename");
    support_assert_error(io_vfs_unlink(pair.faulty, "a", &info), &info, RON_ERR_IO, "unlink");
    support_assert_error(io_vfs_make_dir(pair.faulty, "d", &info), &info, RON_ERR_IO, "mkdir");
    support_assert_error(io_vfs_list(pair.faulty, "", never, NULL, &info), &info, RON_ERR_IO,
                         "list");
    support_assert_error(io_file_truncate(pair.file, 0, &info), &info, RON_ERR_IO, "truncate");
    assert_int_equal(io_memory_unsynced_count(pair.memory), 0); /* nothing happened below */
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_EIO), 8);
    close_pair(&pair);
}

static void enospc_writes_a_part(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_ENOSPC, IO_CALL_WRITE);
    struct ron_errinfo info;
    uint8_t bytes[2 * SIZE];
    size_t written;

    (void)state;
    support_assert_error(write_twos(pair.file, 100, 1000, &info), &info, RON_ERR_PERSISTENCE_FULL,
                         "write memory/a: fault ENOSPC");
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    written = count_of(bytes, SIZE, 2);
    assert_true(written > 0); /* by this seed */
    assert_true(written < 1000);
    assert_int_equal(count_of(bytes + 100, written, 2), written);
    assert_ok(write_twos(pair.file, 100, 1000, &info)); /* not poisoned */
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_ENOSPC), 1);
    close_pair(&pair);
}

static void short_write_writes_a_part_and_poisons(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_SHORT_WRITE, IO_CALL_WRITE);
    struct ron_errinfo info;
    uint8_t bytes[2 * SIZE];
    size_t written;

    (void)state;
    support_assert_error(write_twos(pair.file, 100, 1000, &info), &info, RON_ERR_IO,
                         "fault SHORT_WRITE");
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    written = count_of(bytes, SIZE, 2);
    assert_true(written > 0);
    assert_true(written < 1000);
    assert_int_equal(count_of(bytes + 100, written, 2), written);
    assert_int_equal(write_twos(pair.file, 100, 1000, NULL), RON_ERR_IO);
    close_pair(&pair);
}

static void torn_sector_keeps_its_old_bytes(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_TORN_SECTOR, IO_CALL_WRITE);
    uint8_t bytes[2 * SIZE];
    const uint8_t *hole;

    (void)state;
    assert_ok(write_twos(pair.file, 100, 1900, NULL));
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    assert_int_equal(count_of(bytes, 100, 1), 100);
    hole = memchr(bytes + 100, 1, 1900);
    assert_non_null(hole);
    assert_int_equal((hole - bytes) % 512, 0);
    assert_int_equal(count_of(hole, 512, 1), 512);
    assert_int_equal(count_of(bytes, SIZE, 2), 1900 - 512);
    assert_int_equal(bytes[100], 2); /* an inner one */
    assert_int_equal(bytes[1999], 2);
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_TORN_SECTOR), 1);
    close_pair(&pair);
}

static void lost_write_is_not_there(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_LOST_WRITE, IO_CALL_WRITE);
    uint8_t bytes[2 * SIZE];

    (void)state;
    assert_ok(write_twos(pair.file, 100, 1000, NULL));
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 1), SIZE);
    assert_ok(write_twos(pair.file, 100, 1000, NULL));
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 2), 1000);
    close_pair(&pair);
}

static void misdirected_write_is_elsewhere(void **state) RON_BLOCKS
{
    struct pair pair = open_pair(
        &(struct io_fault){IO_FAULT_MISDIRECTED, IO_CALL_WRITE, NULL, 1, 2}, 1);
    uint8_t bytes[2 * SIZE];
    const uint8_t *first;
    size_t size;

    (void)state;
    assert_ok(write_twos(pair.file, 10, 100, NULL)); /* nothing is before it */
    assert_int_equal(read_all(pair.memory, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 2), 100);
    assert_int_equal(count_of(bytes + 522, 100, 2), 100);
    assert_ok(write_twos(pair.file, 1536, 50, NULL));
    size = read_all(pair.memory, bytes);
    first = memchr(bytes + 700, 2, size - 700);
    assert_non_null(first);
    assert_true(first - bytes == 1024 || first - bytes == 2048);
    assert_int_equal(count_of(first, 50, 2), 50);
    assert_int_equal(size, first - bytes == 1024 ? SIZE : SIZE + 50);
    close_pair(&pair);
}

static void bit_flip_is_one_bit_of_one_read(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_BIT_FLIP, IO_CALL_READ);
    uint8_t bytes[SIZE];
    size_t size = 0;
    unsigned bits_count = 0;

    (void)state;
    assert_ok(io_file_read(pair.file, 0, bytes, SIZE, &size, NULL));
    for (size_t i = 0; i < size; i++)
        bits_count += (unsigned)__builtin_popcount(bytes[i] ^ 1u);
    assert_int_equal(bits_count, 1);
    assert_ok(io_file_read(pair.file, 0, bytes, SIZE, &size, NULL));
    assert_int_equal(count_of(bytes, SIZE, 1), SIZE);
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_BIT_FLIP), 1);
    close_pair(&pair);
}

static void lying_sync_syncs_nothing(void **state) RON_BLOCKS
{
    struct pair pair = open_pair(&(struct io_fault){IO_FAULT_LYING_SYNC, IO_CALL_SYNC, NULL, 1, 2},
                                 1);
    struct io_vfs *image;
    uint8_t bytes[2 * SIZE];

    (void)state;
    assert_ok(write_twos(pair.file, 0, 100, NULL));
    assert_ok(io_vfs_rename(pair.faulty, "a", "b", NULL));
    assert_ok(io_file_sync(pair.file, NULL));
    assert_ok(io_vfs_sync_dir(pair.faulty, "", NULL));
    assert_int_equal(io_memory_unsynced_count(pair.memory), 2);
    image = crash_keeping(pair.memory, 0);
    assert_int_equal(read_all(image, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 1), SIZE);
    (void)io_vfs_free(image);
    assert_ok(io_file_sync(pair.file, NULL)); /* an honest one */
    assert_int_equal(io_memory_unsynced_count(pair.memory), 1);
    close_pair(&pair);
}

/* After a failed sync a later one succeeds and the bytes are gone all the same: the page cache
 * calls them clean. */
static void failed_sync_loses_its_bytes_for_good(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_SYNC_EIO, IO_CALL_SYNC);
    struct io_file *other = NULL, *witness = NULL;
    struct io_vfs *image;
    struct ron_errinfo info;
    uint8_t bytes[2 * SIZE];

    (void)state;
    assert_ok(io_vfs_open(pair.faulty, "a", IO_OPEN_WRITE, &witness, NULL));
    assert_ok(write_twos(pair.file, 0, 100, NULL));
    support_assert_error(io_file_sync(pair.file, &info), &info, RON_ERR_IO,
                         "sync memory/a: fault SYNC_EIO");
    support_assert_error(io_file_sync(witness, &info), &info, RON_ERR_IO,
                         "another sync of it has failed"); /* it was open then */
    (void)io_file_close(witness);
    support_assert_error(io_file_sync(pair.file, &info), &info, RON_ERR_IO, "refused");
    support_assert_error(io_file_write_back(pair.file, 0, SIZE, &info), &info, RON_ERR_IO,
                         "refused");
    assert_int_equal(read_all(pair.faulty, bytes), SIZE); /* they can still be seen */
    assert_int_equal(count_of(bytes, SIZE, 2), 100);
    assert_ok(io_vfs_open(pair.faulty, "a", IO_OPEN_WRITE, &other, NULL));
    assert_ok(write_twos(other, 1000, 10, NULL));
    assert_ok(io_file_write_back(other, 1000, 10, NULL));
    assert_int_equal(io_memory_unsynced_count(pair.memory), 1); /* that made nothing durable */
    assert_ok(io_file_sync(other, NULL));
    assert_int_equal(io_memory_unsynced_count(pair.memory), 0);
    image = crash_keeping(pair.memory, 0xff);
    assert_int_equal(read_all(image, bytes), SIZE);
    assert_int_equal(count_of(bytes, SIZE, 2), 10); /* only what came after */
    assert_int_equal(count_of(bytes + 1000, 10, 2), 10);
    (void)io_vfs_free(image);
    (void)io_file_close(other);
    close_pair(&pair);
}

static void slow_call_takes_its_time(void **state) RON_BLOCKS
{
    struct pair pair = one_fault(IO_FAULT_SLOW, IO_CALL_SYNC);
    uint64_t before_ns = rt_now_ns();

    (void)state;
    assert_ok(write_twos(pair.file, 0, 100, NULL));
    assert_ok(io_file_sync(pair.file, NULL));
    assert_true(rt_now_ns() - before_ns >= 2 * RT_NS_PER_MS); /* never less: no upper bound */
    assert_int_equal(io_memory_unsynced_count(pair.memory), 0);
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_SLOW), 1);
    close_pair(&pair);
}

static void table_counts_by_call_and_path(void **state) RON_BLOCKS
{
    const struct io_fault faults[] = {{IO_FAULT_LOST_WRITE, IO_CALL_WRITE, "b", 2, 3},
                                      {IO_FAULT_EIO, IO_CALL_WRITE, "b", 3, 1}};
    struct pair pair = open_pair(faults, 2);
    struct io_file *file = NULL;
    uint64_t size = 0;

    (void)state;
    assert_ok(io_vfs_open(pair.faulty, "b1", IO_OPEN_CREATE, &file, NULL));
    for (uint64_t i = 0; i < 6; i++) { /* the 2nd to 4th are lost; the first rule wins */
        assert_ok(write_twos(pair.file, 0, 10, NULL));
        assert_ok(write_twos(file, i * 10, 10, NULL));
        assert_ok(io_file_size(file, &size, NULL));
        assert_int_equal(size, i == 0 || i > 3 ? (i + 1) * 10 : 10);
    }
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_LOST_WRITE), 3);
    assert_int_equal(io_faulty_count(pair.faulty, IO_FAULT_EIO), 0);
    (void)io_file_close(file);
    close_pair(&pair);
}

static void options_are_checked(void **state) RON_BLOCKS
{
    const struct io_fault foreign = {IO_FAULT_BIT_FLIP, IO_CALL_WRITE, NULL, 1, 1};
    const struct io_faulty_options options = {.faults = &foreign, .faults_count = 1};
    struct io_vfs *memory = NULL;
    struct io_vfs *vfs = NULL;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
    assert_dies((void)!io_vfs_faulty_new(memory, &options, &vfs, NULL), "can_strike");
    assert_string_equal(io_fault_name(IO_FAULT_TORN_SECTOR), "TORN_SECTOR");
    (void)io_vfs_free(memory);
}

static enum ron_err attempt(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_faulty_options options = {0};
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    enum ron_err err = io_vfs_faulty_new(context, &options, &vfs, reterr);

    if (err == RON_ERR_OK)
        err = io_vfs_open(vfs, "a", IO_OPEN_READ, &file, reterr);
    (void)io_file_close(file);
    (void)io_vfs_free(vfs);
    return err;
}

static void each_allocation_may_fail(void **state) RON_BLOCKS
{
    struct io_vfs *memory = NULL;
    struct io_file *file = NULL;

    (void)state;
    assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
    assert_ok(io_vfs_open(memory, "a", IO_OPEN_CREATE, &file, NULL));
    (void)io_file_close(file);
    assert_int_equal(support_fail_each_allocation(attempt, memory, 20), 4);
    (void)io_vfs_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eio_fails_and_does_nothing),
        cmocka_unit_test(eio_strikes_every_kind_of_call),
        cmocka_unit_test(enospc_writes_a_part),
        cmocka_unit_test(short_write_writes_a_part_and_poisons),
        cmocka_unit_test(torn_sector_keeps_its_old_bytes),
        cmocka_unit_test(lost_write_is_not_there),
        cmocka_unit_test(misdirected_write_is_elsewhere),
        cmocka_unit_test(bit_flip_is_one_bit_of_one_read),
        cmocka_unit_test(lying_sync_syncs_nothing),
        cmocka_unit_test(failed_sync_loses_its_bytes_for_good),
        cmocka_unit_test(slow_call_takes_its_time),
        cmocka_unit_test(table_counts_by_call_and_path),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
