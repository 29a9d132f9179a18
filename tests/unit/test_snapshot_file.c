/*
 * test_snapshot_file.c - snapshots: what was put is read back, the old one or the new one survives
 * everything, nothing damaged is believed.
 *
 * Method: content from a seeded generator; every byte of a small file flipped; every allocation and
 * every call of the file system failed; crash images before every sync; over memory and a real
 * directory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "io/snapshot_file.h"
#include "io/vfs_faulty.h"
#include "io_spy.h"

enum { KIND = 3, SIZE_BIG = 3 * IO_SNAPSHOT_CHUNK_SIZE + 12345 };

static uint8_t content[SIZE_BIG], back[SIZE_BIG];

static void fill_content(uint64_t seed, size_t size)
{
    uint64_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        content[i] = (uint8_t)(x >> 56);
    }
}

static enum ron_err write_at(struct io_vfs *vfs, const char *dir, uint64_t position, size_t size,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_snapshot_cut cut = {
        .kind = KIND, .version = 2, .position = position, .last_durable = position + 5};
    struct io_snapshot_writer *writer = NULL;
    struct io_snapshot_info info = {0};
    enum ron_err err = io_snapshot_begin(vfs, dir, &cut, &writer, reterr);

    fill_content(position, size);
    for (size_t at = 0; at < size && err == RON_ERR_OK;) {
        size_t some = size - at < 700001 ? size - at : 700001;

        err = io_snapshot_put(writer, ron_slice_of(content + at, some), reterr);
        at += some;
    }
    if (err != RON_ERR_OK) {
        writer = io_snapshot_abandon(writer);
        return err;
    }
    err = io_snapshot_commit(writer, &info, reterr);
    if (err == RON_ERR_OK)
        assert_int_equal(info.size, size);
    return err;
}

static void assert_is(struct io_snapshot *snapshot, uint64_t position, size_t size) RON_BLOCKS
{
    const struct io_snapshot_info *info = io_snapshot_info(snapshot);
    struct ron_b3 hash;

    fill_content(position, size);
    hash = ron_b3(content, size);
    assert_int_equal(info->position, position);
    assert_int_equal(info->kind, KIND);
    assert_int_equal(info->version, 2);
    assert_int_equal(info->size, size);
    assert_memory_equal(&info->hash, &hash, sizeof(hash));
    assert_ok(io_snapshot_read(snapshot, 0, back, size, NULL));
    assert_memory_equal(back, content, size);
}

static void snapshot_is_read_back(void **unused) RON_BLOCKS
{
    static const size_t sizes[] = {
        0,       1, IO_SNAPSHOT_CHUNK_SIZE - 1, IO_SNAPSHOT_CHUNK_SIZE, IO_SNAPSHOT_CHUNK_SIZE + 1,
        SIZE_BIG};
    char dir[] = "test-snapshot-XXXXXX";

    (void)unused;
    assert_non_null(mkdtemp(dir));
    for (unsigned posix = 0; posix < 2; posix++) {
        struct io_vfs *vfs = NULL;
        struct ron_errinfo info = {0};

        if (posix == 1)
            assert_ok(io_vfs_posix_new(dir, false, &vfs, NULL));
        else
            assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
        for (size_t i = 0; i < RON_ARRAY_COUNT(sizes); i++) {
            struct io_snapshot *snapshot = NULL;
            struct io_snapshot_search search = {9, 9, 9};
            uint64_t removed = 9;

            assert_ok(write_at(vfs, "", 10 + i, sizes[i], NULL));
            assert_ok(io_snapshot_open_newest(vfs, "", KIND, 1000, &snapshot, &search, NULL));
            assert_int_equal(search.ahead_count + search.damaged_count + search.foreign_count, 0);
            assert_is(snapshot, 10 + i, sizes[i]);
            if (sizes[i] == SIZE_BIG) {
                size_t at = IO_SNAPSHOT_CHUNK_SIZE - 3;

                assert_ok(io_snapshot_read(snapshot, at, back, 7, NULL));
                assert_memory_equal(back, content + at, 7);
            }
            assert_ok(io_snapshot_read(snapshot, sizes[i], back, 0, NULL));
            support_assert_error(io_snapshot_read(snapshot, sizes[i], back, 1, &info), &info,
                                 RON_ERR_TOO_LARGE, "1 bytes at");
            snapshot = io_snapshot_close(snapshot);
            assert_ok(io_snapshot_retain(vfs, "", 1, &removed, NULL));
            assert_int_equal(removed, i == 0 ? 0 : 1);
        }
        if (posix == 0) { /* whole, and not kept in the cache */
            struct io_file *file = NULL;

            assert_ok(io_vfs_open(vfs, "snap-000000000000000f", IO_OPEN_READ, &file, NULL));
            assert_int_equal(io_memory_uncached(file), SIZE_BIG);
            (void)io_file_close(file);
        }
        assert_ok(io_vfs_unlink(vfs, "snap-000000000000000f", NULL));
        vfs = io_vfs_free(vfs);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void snapshot_of_what_is_not_durable_dies(void **unused) RON_BLOCKS
{
    struct io_snapshot_writer *writer = NULL;
    struct io_vfs *vfs = NULL;
    struct io_snapshot_cut cut = {.kind = KIND, .position = 10, .last_durable = 9};

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_dies((void)!io_snapshot_begin(vfs, "", &cut, &writer, NULL),
                "cut->position <= cut->last_durable");
    cut.last_durable = 10;
    assert_ok(io_snapshot_begin(vfs, "", &cut, &writer, NULL));
    writer = io_snapshot_abandon(writer);
    vfs = io_vfs_free(vfs);
}

/* Change bytes of the head and make its sum fit again. */
static void forge(struct io_vfs *vfs, const char *path, size_t at, uint8_t value) RON_BLOCKS
{
    struct io_file *file = NULL;
    uint8_t head[4096];
    size_t size = 0;

    assert_ok(io_vfs_open(vfs, path, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, 0, head, sizeof(head), &size, NULL));
    head[at] = value;
    ron_store_le32(head + 4088, ron_crc32c(0, head, 4088));
    assert_ok(io_file_write(file, 0, &(struct ron_slice){head, sizeof(head)}, 1, NULL));
    file = io_file_close(file);
}

static void snapshot_search_passes_over_what_does_not_fit(void **unused) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    struct io_snapshot_search search;
    struct ron_errinfo info = {0};
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_vfs_make_dir(vfs, "s/snap-00000000000000ff", NULL));
    support_assert_error(io_snapshot_open_newest(vfs, "s", KIND, 9, &snapshot, &search, &info),
                         &info, RON_ERR_NOT_FOUND, "no usable snapshot in s");
    for (uint64_t position = 1; position <= 7; position++)
        assert_ok(write_at(vfs, "s", position, 100 + position, NULL));
    spy_flip(vfs, "s/snap-0000000000000005", 4096 + 50, 1); /* damaged content */
    forge(vfs, "s/snap-0000000000000004", 8, 2);            /* a newer format */
    forge(vfs, "s/snap-0000000000000003", 12, KIND + 1);    /* another kind */
    forge(vfs, "s/snap-0000000000000002", 24, 1);           /* not the position of its name */
    assert_ok(io_snapshot_open_newest(vfs, "s", KIND, 6, &snapshot, &search, NULL));
    assert_is(snapshot, 6, 106);
    assert_int_equal(search.ahead_count, 1);
    assert_int_equal(search.damaged_count, 0);
    snapshot = io_snapshot_close(snapshot);
    assert_ok(io_snapshot_open_newest(vfs, "s", KIND, 5, &snapshot, &search, NULL));
    assert_is(snapshot, 1, 101);
    assert_int_equal(search.ahead_count, 2);
    assert_int_equal(search.damaged_count, 2);
    assert_int_equal(search.foreign_count, 2);
    snapshot = io_snapshot_close(snapshot);
    forge(vfs, "s/snap-0000000000000001", 32, 0); /* cut beyond what was durable */
    support_assert_error(io_snapshot_open_newest(vfs, "s", KIND, 5, &snapshot, &search, &info),
                         &info, RON_ERR_NOT_FOUND, "cut at 1, durable was only 0");
    assert_int_equal(search.damaged_count, 3);
    assert_null(snapshot);
    vfs = io_vfs_free(vfs);
}

/* One bit anywhere in the newest: the older one is opened. */
static void snapshot_believes_no_damaged_byte(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(write_at(vfs, "", 1, 10, NULL));
    assert_ok(write_at(vfs, "", 2, 300, NULL));
    for (uint64_t at = 0; at < 4096 + 300; at++) {
        struct io_snapshot *snapshot = NULL;
        struct io_snapshot_search search;

        if (at >= 4092 && at < 4096)
            continue; /* behind the head's sum */
        spy_flip(vfs, "snap-0000000000000002", at, (uint8_t)(1u << at % 8));
        assert_ok(io_snapshot_open_newest(vfs, "", KIND, 9, &snapshot, &search, NULL));
        assert_int_equal(io_snapshot_info(snapshot)->position, 1);
        assert_int_equal(search.damaged_count, 1);
        snapshot = io_snapshot_close(snapshot);
        spy_flip(vfs, "snap-0000000000000002", at, (uint8_t)(1u << at % 8));
    }
    vfs = io_vfs_free(vfs);
}

static void snapshot_notices_a_change_after_open(void **unused) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    struct ron_errinfo info = {0};
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(write_at(vfs, "", 1, SIZE_BIG, NULL));
    assert_ok(io_snapshot_open_newest(vfs, "", KIND, 9, &snapshot, NULL, NULL));
    spy_flip(vfs, "snap-0000000000000001", 4096 + IO_SNAPSHOT_CHUNK_SIZE + 99, 4);
    assert_ok(io_snapshot_read(snapshot, 0, back, IO_SNAPSHOT_CHUNK_SIZE, NULL));
    for (unsigned i = 0; i < 2; i++)
        support_assert_error(io_snapshot_read(snapshot, IO_SNAPSHOT_CHUNK_SIZE - 1, back, 2, &info),
                             &info, RON_ERR_WAL_CORRUPT,
                             "snapshot snap-0000000000000001: chunk 1 changed");
    assert_ok(io_snapshot_read(snapshot, 2 * IO_SNAPSHOT_CHUNK_SIZE, back, 1000, NULL));
    snapshot = io_snapshot_close(snapshot);
    vfs = io_vfs_free(vfs);
}

static bool count_name(void *context, const char *name, bool is_dir)
{
    (void)name;
    (void)is_dir;
    (*(unsigned *)context)++;
    return true;
}

static void snapshot_retain_keeps_the_newest(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct io_file *file = NULL;
    struct io_snapshot *snapshot = NULL;
    uint64_t removed = 0;
    unsigned names = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(io_vfs_make_dir(vfs, "s", NULL));
    for (uint64_t position = 1; position <= 150; position++)
        assert_ok(write_at(vfs, "s", position, 20, NULL));
    assert_ok(io_vfs_open(vfs, "s/snap-0000000000000097.new", IO_OPEN_CREATE, &file, NULL));
    file = io_file_close(file);
    assert_ok(io_vfs_open(vfs, "s/snap-00000000000000zz", IO_OPEN_CREATE, &file, NULL));
    file = io_file_close(file);
    assert_ok(io_snapshot_retain(vfs, "s", 3, &removed, NULL));
    assert_int_equal(removed, 147 + 1);
    assert_int_equal(io_memory_unsynced_count(vfs),
                     1); /* the foreign file: not ours to sync away */
    assert_ok(io_vfs_list(vfs, "s", count_name, &names, NULL));
    assert_int_equal(names, 3 + 1);
    for (uint64_t position = 150; position > 147; position--) {
        assert_ok(io_snapshot_open_newest(vfs, "s", KIND, position, &snapshot, NULL, NULL));
        assert_is(snapshot, position, 20);
        snapshot = io_snapshot_close(snapshot);
    }
    assert_ok(io_snapshot_retain(vfs, "s", 3, &removed, NULL));
    assert_int_equal(removed, 0);
    assert_dies((void)!io_snapshot_retain(vfs, "s", 0, &removed, NULL), "keep > 0");
    vfs = io_vfs_free(vfs);
}

/* What must hold whatever happened: an old or a new snapshot opens and is whole. */
static void assert_old_or_new(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    struct io_snapshot_search search;
    uint64_t position;

    assert_ok(io_snapshot_open_newest(vfs, "", KIND, 9, &snapshot, &search, NULL));
    assert_int_equal(search.damaged_count, 0);
    position = io_snapshot_info(snapshot)->position;
    assert_true(position == 1 || position == 2);
    assert_is(snapshot, position, position == 1 ? 5000 : IO_SNAPSHOT_CHUNK_SIZE + 100);
    snapshot = io_snapshot_close(snapshot);
}

static enum ron_err write_second(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    uint64_t removed;
    enum ron_err err = write_at(context, "", 2, IO_SNAPSHOT_CHUNK_SIZE + 100, reterr);

    if (err == RON_ERR_OK)
        err = io_snapshot_open_newest(context, "", KIND, 9, &snapshot, NULL, reterr);
    if (err == RON_ERR_OK)
        err = io_snapshot_retain(context, "", 2, &removed, reterr);
    snapshot = io_snapshot_close(snapshot);
    return err;
}

static void snapshot_survives_failing_allocations(void **unused) RON_BLOCKS
{
    char dir[] = "test-snapshot-XXXXXX";
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    assert_ok(io_vfs_posix_new(dir, false, &vfs, NULL));
    assert_ok(write_at(vfs, "", 1, 5000, NULL));
    assert_true(support_fail_each_allocation(write_second, vfs, 100) >= 4);
    assert_old_or_new(vfs);
    assert_ok(io_vfs_unlink(vfs, "snap-0000000000000001", NULL));
    assert_ok(io_vfs_unlink(vfs, "snap-0000000000000002", NULL));
    vfs = io_vfs_free(vfs);
    assert_int_equal(rmdir(dir), 0);
}

static void snapshot_survives_failing_calls(void **unused) RON_BLOCKS
{
    static const enum ron_err errs[] = {RON_ERR_IO, RON_ERR_PERSISTENCE_FULL};
    uint64_t failed = 0;

    (void)unused;
    for (size_t e = 0; e < RON_ARRAY_COUNT(errs); e++) {
        bool hit = true;

        for (uint64_t at = 1; hit; at++) {
            struct io_vfs *vfs = NULL;
            struct io_file *file = NULL;
            struct ron_errinfo info = {0};
            enum ron_err err;

            assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
            assert_ok(write_at(vfs, "", 1, 5000, NULL));
            spy_install(vfs, NULL);
            spy.fail_at = at;
            spy.fail_err = errs[e];
            err = write_at(vfs, "", 2, IO_SNAPSHOT_CHUNK_SIZE + 100, &info);
            hit = spy.calls >= at;
            spy.fail_at = 0;
            if (hit)
                support_assert_error(err, &info, errs[e], "snapshot: ");
            else
                assert_ok(err);
            failed += hit;
            assert_old_or_new(vfs);
            assert_int_equal(
                io_vfs_open(vfs, "snap-0000000000000002.new", IO_OPEN_READ, &file, NULL),
                RON_ERR_NOT_FOUND);
            vfs = io_vfs_free(vfs);
        }
    }
    assert_true(failed >= 2 * 8);
}

/* Without a descriptor to spare the chunks go through the first one, and the snapshot is written.
 */
static void snapshot_needs_one_descriptor(void **unused) RON_BLOCKS
{
    uint64_t survived = 0;
    bool hit = true;

    (void)unused;
    for (uint64_t at = 1; hit; at++) {
        struct io_vfs *vfs = NULL;
        enum ron_err err;

        assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
        spy_install(vfs, NULL);
        spy.fail_at = at;
        spy.fail_err = RON_ERR_BUSY;
        err = write_at(vfs, "", 2, 2 * IO_SNAPSHOT_CHUNK_SIZE + 100, NULL);
        hit = spy.calls >= at;
        survived += hit && err == RON_ERR_OK;
        assert_true(err == RON_ERR_OK || (hit && err == RON_ERR_BUSY));
        vfs = io_vfs_free(vfs);
    }
    assert_int_equal(survived, 1);
}

/* No room in the middle: a typed error, the old one stays, nothing else is left. */
static void snapshot_leaves_nothing_on_a_full_disk(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;
    struct ron_errinfo info = {0};
    unsigned names = 0;

    (void)unused;
    assert_ok(io_vfs_memory_new(
        &(struct io_memory_options){.bytes_max = 2 * IO_SNAPSHOT_CHUNK_SIZE + 100000}, &vfs, NULL));
    assert_ok(write_at(vfs, "", 1, 5000, NULL));
    for (unsigned i = 0; i < 3; i++)
        support_assert_error(write_at(vfs, "", 2, SIZE_BIG, &info), &info, RON_ERR_PERSISTENCE_FULL,
                             "snapshot: ");
    assert_old_or_new(vfs);
    assert_ok(io_vfs_list(vfs, "", count_name, &names, NULL));
    assert_int_equal(names, 1);
    vfs = io_vfs_free(vfs);
}

static void check_image(struct io_vfs *image) RON_BLOCKS
{
    uint64_t removed;

    assert_old_or_new(image);
    assert_ok(io_snapshot_retain(image, "", 2, &removed, NULL));
    assert_old_or_new(image);
    assert_ok(write_second(image, NULL));
}

static void look_at_images(struct io_vfs *vfs)
{
    spy_images(vfs, check_image);
}

static void snapshot_is_whole_after_any_crash(void **unused) RON_BLOCKS
{
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    assert_ok(write_at(vfs, "", 1, 5000, NULL));
    spy_install(vfs, look_at_images);
    assert_ok(write_second(vfs, NULL));
    spy_look(vfs);
    print_message("%llu crash images\n", (unsigned long long)spy.images);
    assert_true(spy.images > 20);
    vfs = io_vfs_free(vfs);
}

/* The older one is there whatever the disk did to the newer. */
static void assert_some(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_snapshot *snapshot = NULL;
    struct io_snapshot_search search;
    uint64_t position;

    assert_ok(io_snapshot_open_newest(vfs, "", KIND, 9, &snapshot, &search, NULL));
    position = io_snapshot_info(snapshot)->position;
    assert_true(search.damaged_count == 0 || position == 1);
    assert_is(snapshot, position, position == 1 ? 5000 : IO_SNAPSHOT_CHUNK_SIZE + 100);
    snapshot = io_snapshot_close(snapshot);
}

static void snapshot_survives_a_lying_disk(void **unused) RON_BLOCKS
{
    static const struct io_fault faults[] = {
        {.kind = IO_FAULT_EIO, .call = IO_CALL_READ},
        {.kind = IO_FAULT_EIO, .call = IO_CALL_NAME},
        {.kind = IO_FAULT_ENOSPC, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_SHORT_WRITE, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_TORN_SECTOR, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_LOST_WRITE, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_MISDIRECTED, .call = IO_CALL_WRITE},
        {.kind = IO_FAULT_BIT_FLIP, .call = IO_CALL_READ},
        {.kind = IO_FAULT_LYING_SYNC, .call = IO_CALL_SYNC},
        {.kind = IO_FAULT_SYNC_EIO, .call = IO_CALL_SYNC},
    };

    (void)unused;
    for (size_t f = 0; f < RON_ARRAY_COUNT(faults); f++) {
        uint64_t struck = 1;

        for (uint64_t at = 1; struck > 0; at++) {
            struct io_fault fault = faults[f];
            struct io_vfs *memory = NULL, *vfs = NULL;
            struct io_snapshot *snapshot = NULL;

            fault.at = at;
            fault.times = 1;
            assert_ok(io_vfs_memory_new(NULL, &memory, NULL));
            assert_ok(write_at(memory, "", 1, 5000, NULL));
            assert_ok(io_vfs_faulty_new(
                memory,
                &(struct io_faulty_options){.faults = &fault, .faults_count = 1, .seed = at}, &vfs,
                NULL));
            (void)!write_at(vfs, "", 2, IO_SNAPSHOT_CHUNK_SIZE + 100, NULL);
            if (io_snapshot_open_newest(vfs, "", KIND, 9, &snapshot, NULL, NULL) == RON_ERR_OK) {
                size_t size = (size_t)io_snapshot_info(snapshot)->size;

                /* What a read answers is what was put. */
                fill_content(io_snapshot_info(snapshot)->position, size);
                if (io_snapshot_read(snapshot, 0, back, size, NULL) == RON_ERR_OK)
                    assert_memory_equal(back, content, size);
            }
            snapshot = io_snapshot_close(snapshot);
            struck = io_faulty_count(vfs, fault.kind);
            vfs = io_vfs_free(vfs);
            assert_some(memory);
            spy_images(memory, assert_some);
            memory = io_vfs_free(memory);
        }
    }
}

static void snapshot_is_on_its_way_before_the_sync(void **unused) RON_BLOCKS
{
    enum { HEAD = 4096 };
    struct io_vfs *vfs = NULL;

    (void)unused;
    assert_ok(io_vfs_memory_new(NULL, &vfs, NULL));
    spy_install(vfs, NULL);
    assert_ok(write_at(vfs, "", 1, SIZE_BIG, NULL));
    assert_int_equal(spy.sync_bytes_max, HEAD);
    assert_int_equal(spy.back_bytes_max, IO_SNAPSHOT_CHUNK_SIZE);
    vfs = io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot_is_read_back),
        cmocka_unit_test(snapshot_of_what_is_not_durable_dies),
        cmocka_unit_test(snapshot_search_passes_over_what_does_not_fit),
        cmocka_unit_test(snapshot_believes_no_damaged_byte),
        cmocka_unit_test(snapshot_notices_a_change_after_open),
        cmocka_unit_test(snapshot_retain_keeps_the_newest),
        cmocka_unit_test(snapshot_survives_failing_allocations),
        cmocka_unit_test(snapshot_survives_failing_calls),
        cmocka_unit_test(snapshot_needs_one_descriptor),
        cmocka_unit_test(snapshot_leaves_nothing_on_a_full_disk),
        cmocka_unit_test(snapshot_is_whole_after_any_crash),
        cmocka_unit_test(snapshot_survives_a_lying_disk),
        cmocka_unit_test(snapshot_is_on_its_way_before_the_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
