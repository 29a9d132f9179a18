/*
 * test_log.c - the durable log in memory. Method: small segments, records that tell their own
 * number; write, close, open, read, break files by hand, and compare what open says and changes.
 */
#include "log_world.h"

static struct io_log_recovery recovery;
static struct ron_errinfo info;

static enum ron_err try_open(const struct io_log_options *options,
                             struct io_log **ret_log) RON_BLOCKS
{
    info = (struct ron_errinfo){0};
    return io_log_open(options, ret_log, &recovery, &info);
}

/* Open must fail so, and change no byte. */
static void assert_refused(struct io_vfs *vfs, enum ron_err expected, const char *text) RON_BLOCKS
{
    const struct io_log_options options = world_options(vfs);
    const struct ron_b3 before = world_sum(vfs, false);
    struct io_log *log = NULL;
    struct ron_b3 after;

    support_assert_error(try_open(&options, &log), &info, expected, text);
    assert_null(log);
    after = world_sum(vfs, false);
    assert_memory_equal(before.bytes, after.bytes, sizeof(before.bytes));
}

static struct io_vfs *with_records(uint64_t count) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    world_append_many(log, 1, count);
    world_close(log);
    return vfs;
}

static void log_keeps_what_was_appended(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;

    (void)state;
    assert_ok(try_open(&options, &log));
    assert_int_equal(recovery.epoch, 1);
    assert_int_equal(recovery.records_count, 0);
    assert_int_equal(world_read(log, 1), 0);
    world_append_many(log, 1, 300);
    assert_int_equal(io_log_last_durable(log), 300);
    assert_int_equal(world_read(log, 1), 300);
    assert_int_equal(world_read(log, 157), 300);
    world_close(log);
    assert_ok(try_open(&options, &log));
    assert_true(recovery.clean);
    assert_int_equal(recovery.epoch, 2);
    assert_int_equal(recovery.last_index, 300);
    assert_int_equal(recovery.torn_bytes, 0);
    assert_int_equal(world_read(log, 1), 300);
    world_append_many(log, 301, 400);
    for (uint64_t i = 1; i <= 400; i += 23)
        assert_int_equal(world_read(log, i), 400);
    world_close(log);
    io_vfs_free(vfs);
}

static void reader_follows_the_writer(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct io_log_reader *reader = NULL;
    struct io_frame frame;

    (void)state;
    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    for (uint64_t i = 1; i <= 200; i++) {
        assert_int_equal(io_log_reader_next(reader, &frame, NULL), RON_ERR_NOT_FOUND);
        world_append_many(log, i, i);
        assert_ok(io_log_reader_next(reader, &frame, NULL));
        assert_int_equal(frame.index, i);
    }
    io_log_reader_free(reader);
    world_close(log);
    io_vfs_free(vfs);
}

/* Whatever comes in between, and through several segments: what was told is told again, once. */
static void reader_tells_again(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(400);
    struct io_log *log = world_open(vfs);
    struct io_log_reader *reader = NULL;
    uint8_t body[WORLD_RECORD_MAX];
    struct io_frame frame;

    (void)state;
    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    for (uint64_t i = 1; i <= 400; i++) {
        const size_t size = world_body(i, body);

        for (unsigned times = 0; times < 1 + i % 3; times++) {
            if (times > 0)
                io_log_reader_back(reader);
            assert_ok(io_log_reader_next(reader, &frame, NULL));
            assert_int_equal(frame.index, i);
            assert_true(ron_slice_equal(frame.body, ron_slice_of(body, size)));
        }
    }
    io_log_reader_back(reader);
    world_append_many(log, 401, 401);
    for (uint64_t i = 400; i <= 401; i++) {
        assert_ok(io_log_reader_next(reader, &frame, NULL));
        assert_int_equal(frame.index, i);
    }
    assert_int_equal(io_log_reader_next(reader, &frame, NULL), RON_ERR_NOT_FOUND);
    assert_dies(io_log_reader_back(reader), "index != 0");
    io_log_reader_free(reader);
    world_close(log);
    io_vfs_free(vfs);
}

static void find_knows_keys_of_sealed_segments(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(400);
    struct io_log *log = world_open(vfs); /* an open builds what the close cut short */
    const uint64_t indexed = io_log_last_indexed(log);
    struct io_log_place place;
    uint8_t key[16];

    (void)state;
    assert_true(indexed > 200);
    for (uint64_t i = 1; i <= indexed; i++) {
        world_key(i, 0, key);
        assert_ok(io_log_find(log, key, &place, NULL));
        assert_int_equal(place.index, i);
        assert_int_equal(place.sub, 0);
        world_key(i, 1, key);
        assert_int_equal(io_log_find(log, key, &place, NULL),
                         i % 3 == 0 ? RON_ERR_OK : RON_ERR_NOT_FOUND);
    }
    world_key(indexed + 1, 0, key);
    assert_int_equal(io_log_find(log, key, &place, NULL), RON_ERR_NOT_FOUND);
    world_close(log);
    io_vfs_free(vfs);
}

static enum ron_err count_place(void *context, const struct io_log_place *place, bool *ret_enough,
                                struct ron_errinfo *reterr)
{
    (void)place;
    (void)ret_enough;
    (void)reterr;
    ++*(unsigned *)context;
    return RON_ERR_OK;
}

/* Together, and up to a record: every key that a look for it would find, and little else. */
static void may_have_knows_all_keys_at_once(void **state) RON_BLOCKS
{
    enum { KEYS = 1000, STRIDE = 24 };
    struct io_vfs *vfs = with_records(2000);
    struct io_log *log = world_open(vfs);
    static uint8_t keys[KEYS * STRIDE];
    uint64_t bits[KEYS / 64 + 1];
    unsigned needless = 0, found = 0;

    (void)state;
    assert_true(io_log_last_indexed(log) > 600);
    for (uint64_t i = 0; i < KEYS; i++) /* the keys of records 1 to 500, and 500 of none */
        world_key(i / 2 + (i % 2) * 100000 + 1, 0, keys + i * STRIDE);
    for (uint64_t index_max = 0; index_max <= 600; index_max += 50) {
        memset(bits, 0xff, sizeof(bits));
        io_log_may_have(log, &(struct io_log_keys){keys, STRIDE, KEYS}, index_max, bits);
        for (uint64_t i = 0; i < KEYS; i++) {
            const bool is_marked = (bits[i / 64] >> i % 64 & 1) != 0;
            unsigned places = 0;

            assert_ok(
                io_log_find_each(log, keys + i * STRIDE, index_max, count_place, &places, NULL));
            assert_true(places <= 1);
            if (i % 2 == 0 && i / 2 < index_max)
                assert_int_equal(places, 1); /* the segment of index_max is asked, to its end */
            assert_true(is_marked || places == 0);
            needless += i % 2 == 1 && is_marked && places == 0; /* a gate knows newer ones, too */
            found += places;
        }
    }
    assert_true(found < 12 * KEYS / 2 - 1000); /* the newer segments are not asked */
    assert_true(needless < 13 * KEYS / 2 / 10);
    assert_int_equal(bits[KEYS / 64] >> KEYS % 64, 0);
    world_close(log);
    io_vfs_free(vfs);
}

static void drop_removes_whole_segments_from_the_front(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(400);
    struct io_log *log = world_open(vfs);
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    uint64_t dropped = 0, first;

    (void)state;
    assert_ok(io_log_drop_before(log, 1, &dropped, NULL));
    assert_int_equal(dropped, 0);
    assert_ok(io_log_drop_before(log, 200, &dropped, NULL));
    assert_true(dropped > 0);
    first = io_log_first_index(log);
    assert_true(first > 1 && first <= 200);
    assert_int_equal(world_read(log, first), 400);
    assert_ok(io_log_reader_new(log, first - 1, &reader, NULL));
    assert_int_equal(io_log_reader_next(reader, &frame, NULL), RON_ERR_PRUNED);
    io_log_reader_free(reader);
    world_close(log);
    log = world_open(vfs);
    assert_int_equal(io_log_first_index(log), first);
    assert_int_equal(world_read(log, first), 400);
    assert_ok(io_log_drop_before(log, UINT64_MAX, &dropped, NULL)); /* never the open one */
    world_append_many(log, 401, 410);
    world_close(log);
    io_vfs_free(vfs);
}

/* covers: LED-F42 */
static void second_owner_is_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = world_open(vfs), *second = NULL;

    (void)state;
    support_assert_error(try_open(&options, &second), &info, RON_ERR_CONFLICT,
                         "another process owns");
    options.read_only = true;
    world_append_many(log, 1, 5);
    assert_ok(try_open(&options, &second));
    assert_int_equal(world_read(second, 1), 5);
    world_close(second);
    world_close(log);
    io_vfs_free(vfs);
}

static void records_beyond_the_limit_are_refused(void **state) RON_BLOCKS
{
    static uint8_t body[2000];
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    struct ron_slice part = {body, 1025};
    uint64_t index = 77;

    (void)state;
    assert_int_equal(io_log_append(log, 1, &part, 1, &index, NULL), RON_ERR_TOO_LARGE);
    assert_int_equal(index, 77);
    part.size = 1024;
    assert_ok(io_log_append(log, 1, &part, 1, &index, NULL));
    assert_int_equal(index, 1);
    world_close(log);
    io_vfs_free(vfs);
}

/* covers: LED-F15 */
static void torn_tail_is_overwritten(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(20);
    struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;
    struct log_walk walk;
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct ron_buf bytes;

    (void)state;
    assert_ok(io_vfs_open(vfs, SEG1, IO_OPEN_READ, &file, NULL));
    assert_ok(log_scan_head(file, &head, NULL));
    assert_ok(log_walk(file, &head, true, IO_LOG_STRICT, NULL, NULL, &walk, NULL));
    io_file_close(file);
    assert_int_equal(walk.end.state.index, 20);
    world_write(vfs, SEG1, walk.end.offset + 100, "torn", 4);
    assert_ok(try_open(&options, &log));
    assert_int_equal(recovery.torn_bytes, 104);
    assert_int_equal(recovery.last_index, 20);
    bytes = world_file(vfs, SEG1);
    assert_true(io_bytes_are_zero(bytes.data + walk.end.offset, bytes.size - walk.end.offset));
    ron_buf_fini(&bytes);
    world_append_many(log, 21, 30);
    world_close(log);
    log = world_open(vfs);
    assert_int_equal(world_read(log, 1), 30);
    world_close(log);
    io_vfs_free(vfs);
}

/* Every byte of the log's files, flipped: open refuses or gives all that was durable. */
static void any_flipped_byte_is_noticed(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(60);
    struct io_log_options options = world_options(vfs);
    struct ron_buf bytes = world_file(vfs, SEG1);
    uint64_t refused_count = 0, seal_end = 0;

    (void)state;
    assert_true(bytes.size > 8192);
    while (seal_end < bytes.size &&
           !io_bytes_are_zero(bytes.data + seal_end, bytes.size - seal_end))
        seal_end += 8;
    for (uint64_t at = 0; at < seal_end; at += 61) {
        struct io_log *log = NULL;
        enum ron_err err;

        world_flip(vfs, SEG1, at);
        err = io_vfs_unlink(vfs, "role/log/idx-0000000000000001", NULL);
        assert_true(err == RON_ERR_OK || err == RON_ERR_NOT_FOUND);
        err = try_open(&options, &log);
        assert_true(err == RON_ERR_WAL_CORRUPT || err == RON_ERR_MALFORMED ||
                    err == RON_ERR_VERSION_SKEW);
        assert_non_null(strstr(info.message, "seg-0000000000000001"));
        assert_string_equal(recovery.damage_file, SEG1);
        refused_count++;
        world_flip(vfs, SEG1, at);
    }
    assert_true(refused_count > 100);
    ron_buf_fini(&bytes);
    io_vfs_free(vfs);
}

/* covers: LED-F15 */
static void damage_in_the_last_segment_is_told_from_a_torn_tail(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        world_append_many(log, i, i); /* a group each */
    world_close(log);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 200);
    assert_refused(vfs, RON_ERR_WAL_CORRUPT, "seg-0000000000000001 at byte 4");
    assert_true(recovery.damage_offset >= IO_SEGMENT_HEAD_SIZE);
    assert_true(recovery.damage_offset <= IO_SEGMENT_HEAD_SIZE + 200);
    io_vfs_free(vfs);
}

static void lost_end_of_a_closed_log_is_damage(void **state) RON_BLOCKS
{
    static const uint8_t zeros[4096];
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    (void)state;
    world_append_many(log, 1, 5);
    world_close(log);
    world_write(vfs, SEG1, IO_SEGMENT_HEAD_SIZE, zeros, sizeof(zeros));
    assert_refused(vfs, RON_ERR_WAL_CORRUPT, "5 was durable");
    io_vfs_free(vfs);
}

static void skip_passes_over_damage_and_counts_it(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log_reader *reader = NULL;
    struct io_log *log = world_open(vfs);
    struct io_frame frame;
    uint64_t count = 0, last = 0;

    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        world_append_many(log, i, i);
    world_close(log);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 150); /* in record 2 */
    options.damage = IO_LOG_SKIP;
    assert_ok(try_open(&options, &log));
    assert_int_equal(recovery.skipped_count, 1);
    assert_true(recovery.skipped_bytes > 0);
    assert_int_equal(recovery.last_index, 10);
    assert_ok(world_append(log, 11));
    assert_ok(io_log_wait(log, 11, rt_deadline_after_ms(20000), NULL));
    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK) {
        assert_true(frame.index > last);
        last = frame.index;
        count++;
    }
    assert_int_equal(last, 11);
    assert_int_equal(count, 10);
    io_log_reader_free(reader);
    world_close(log);
    io_vfs_free(vfs);
}

/* covers: LED-F34 */
static void foreign_and_newer_files_are_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(100);
    struct io_log_options options = world_options(vfs);
    uint8_t version = IO_SEGMENT_VERSION + 1;

    (void)state;
    world_write(vfs, "role/log/notes.txt", 0, "hello", 5);
    assert_refused(vfs, RON_ERR_MALFORMED, "role/log/notes.txt is not part of a log: move it away");
    assert_ok(io_vfs_unlink(vfs, "role/log/notes.txt", NULL));
    world_write(vfs, SEG1, 8, &version, 1);
    assert_refused(vfs, RON_ERR_VERSION_SKEW, "version 3");
    version = IO_SEGMENT_VERSION;
    world_write(vfs, SEG1, 8, &version, 1);
    options.kind++;
    {
        struct io_log *log = NULL;
        support_assert_error(try_open(&options, &log), &info, RON_ERR_MALFORMED, "kind 7");
    }
    assert_ok(io_vfs_rename(vfs, SEG1, "role/log/seg-00000000000000ff", NULL));
    assert_refused(vfs, RON_ERR_WAL_CORRUPT, "seg-00000000000000ff");
    assert_ok(io_vfs_unlink(vfs, "role/log/seg-00000000000000ff", NULL));
    io_vfs_free(vfs);
}

static void missing_segment_and_owner_are_refused(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(400);
    struct ron_buf owner = world_file(vfs, "role/log/owner");
    static const uint8_t junk[1024] = {1, 2, 3};

    (void)state;
    assert_ok(io_vfs_unlink(vfs, "role/log/owner", NULL));
    assert_refused(vfs, RON_ERR_WAL_CORRUPT, "role/log/owner is missing");
    world_write(vfs, "role/log/owner", 0, junk, sizeof(junk));
    assert_refused(vfs, RON_ERR_MALFORMED, "role/log/owner: not the owner file");
    world_write(vfs, "role/log/owner", 0, owner.data, owner.size);
    assert_ok(io_vfs_unlink(vfs, SEG2, NULL));
    assert_refused(vfs, RON_ERR_WAL_CORRUPT, "(0000000000000002) is missing");
    ron_buf_fini(&owner);
    io_vfs_free(vfs);
}

/* covers: LED-F17 */
static void full_disk_refuses_before_the_append(void **state) RON_BLOCKS
{
    const struct io_memory_options small = {.bytes_max = 40000};
    struct io_vfs *vfs = NULL;
    struct io_log *log;
    uint64_t last = 0;
    enum ron_err err = RON_ERR_OK;

    (void)state;
    assert_ok(io_vfs_memory_new(&small, &vfs, NULL));
    log = world_open(vfs);
    while (err == RON_ERR_OK) {
        err = world_append(log, last + 1);
        last += err == RON_ERR_OK ? 1 : 0;
        assert_true(last < 1000);
    }
    assert_int_equal(err, RON_ERR_PERSISTENCE_FULL);
    assert_true(last > 50);
    assert_ok(io_log_wait(log, last, rt_deadline_after_ms(20000), NULL));
    assert_int_equal(world_read(log, 1), last);
    world_close(log); /* a full disk does not keep it from closing, or from being opened */
    log = world_open(vfs);
    assert_int_equal(world_read(log, 1), last);
    world_close(log);
    io_vfs_free(vfs);
}

static struct rt_atomic_u64 told_index;
static void note_durable(void *context, uint64_t index)
{
    assert_ptr_equal(context, &told_index);
    assert_true(index > rt_atomic_load_u64(&told_index));
    rt_atomic_store_u64(&told_index, index);
}

static void on_durable_is_told_in_order(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;

    (void)state;
    rt_atomic_store_u64(&told_index, 0);
    options.on_durable = note_durable;
    options.context = &told_index;
    options.keys = NULL;
    assert_ok(try_open(&options, &log));
    world_append_many(log, 1, 100);
    world_close(log);
    assert_int_equal(rt_atomic_load_u64(&told_index), 100);
    io_vfs_free(vfs);
}

static enum ron_err open_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_options options = world_options(context);
    struct io_log *log = NULL;
    enum ron_err err;

    options.read_only = true; /* what is written stays in the memory of the file system */
    err = log_open_idle(&options, &log, &recovery, reterr);

    if (err == RON_ERR_OK)
        log_destroy(log);
    return err;
}

static void open_survives_every_failing_allocation(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);

    (void)state;
    assert_true(support_fail_each_allocation(open_once, vfs, 2000) > 10);
    io_vfs_free(vfs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(log_keeps_what_was_appended),
        CASE(reader_follows_the_writer),
        CASE(reader_tells_again),
        CASE(find_knows_keys_of_sealed_segments),
        CASE(may_have_knows_all_keys_at_once),
        CASE(drop_removes_whole_segments_from_the_front),
        CASE(second_owner_is_refused),
        CASE(records_beyond_the_limit_are_refused),
        CASE(torn_tail_is_overwritten),
        CASE(any_flipped_byte_is_noticed),
        CASE(damage_in_the_last_segment_is_told_from_a_torn_tail),
        CASE(lost_end_of_a_closed_log_is_damage),
        CASE(skip_passes_over_damage_and_counts_it),
        CASE(foreign_and_newer_files_are_refused),
        CASE(missing_segment_and_owner_are_refused),
        CASE(full_disk_refuses_before_the_append),
        CASE(on_durable_is_told_in_order),
        CASE(open_survives_every_failing_allocation),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
