/*
 * test_log_damage.c - bytes that lie: frames inside records, damage that is skipped, index pages,
 * names that a drop removed. Method: a log in memory with a group a record, its files changed by
 * hand; what open and find say afterwards is compared with what was appended.
 */
#include "base/crc32c.h"
#include "io/crash_images.h"
#include "log_recorder.h"
#include "log_world.h"

enum { GROUPS_COUNT = 10, FORGED_COUNT = 6, FINDERS_COUNT = 4 };
#define IDX1 "role/log/idx-0000000000000001"

static struct io_log_recovery recovery;
static struct ron_errinfo info;

static enum ron_err open_idle(struct io_vfs *vfs, enum io_log_damage_policy damage,
                              struct io_log **ret_log) RON_BLOCKS
{
    struct io_log_options options = world_options(vfs);

    options.damage = damage;
    options.supervisor = NULL;
    info = (struct ron_errinfo){0};
    return log_open_idle(&options, ret_log, &recovery, &info);
}

/* What is on the disk now, in a file system of its own. */
static struct io_vfs *crashed(struct io_vfs *vfs)
{
    static uint8_t keep[8192];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    struct io_vfs *image = NULL;

    memset(keep, 0xff, sizeof(keep));
    assert_true(io_memory_unsynced_count(vfs) <= 8 * sizeof(keep));
    assert_ok(io_memory_crash(vfs, &plan, &image, NULL));
    return image;
}

/* A log of records of a group each, never closed. */
static struct io_vfs *with_groups(uint64_t count) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory(), *image;
    struct io_log *log = world_open(vfs);

    for (uint64_t i = 1; i <= count; i++)
        world_append_many(log, i, i);
    image = crashed(vfs);
    world_close(log);
    io_vfs_free(vfs);
    return image;
}

/* Where the frames of the first segment are: records, commits. */
struct frames {
    uint64_t offsets[4 * GROUPS_COUNT];
    uint16_t types[4 * GROUPS_COUNT];
    size_t count;
    uint64_t end;
    struct io_segment_head head;
};
static struct frames frames_of(struct io_vfs *vfs) RON_BLOCKS
{
    struct ron_buf bytes = world_file(vfs, SEG1);
    struct frames frames = {.end = IO_SEGMENT_HEAD_SIZE};
    struct io_frame frame;

    assert_ok(io_segment_head_decode(ron_slice_of(bytes.data, bytes.size), &frames.head, NULL));
    while (io_frame_head_sound(ron_slice_of(bytes.data + frames.end, bytes.size - frames.end),
                               io_log_salt(frames.head.log_id), &frame)) {
        assert_true(frames.count < RON_ARRAY_COUNT(frames.offsets));
        frames.types[frames.count] = frame.type;
        frames.offsets[frames.count++] = frames.end;
        frames.end += io_frame_size(frame.body.size);
    }
    ron_buf_fini(&bytes);
    return frames;
}

/* A whole frame with a body of eight bytes. */
static size_t forge(uint8_t *at, uint64_t index, uint32_t salt)
{
    const struct io_frame frame = {
        .index = index, .group = index, .epoch = 1, .type = 3, .body = {NULL, 8}};

    memset(at + IO_FRAME_HEAD_SIZE, 0x42, 8);
    io_frame_put(&frame, salt, ron_crc32c(0, at + IO_FRAME_HEAD_SIZE, 8), at);
    return IO_FRAME_HEAD_SIZE + 8;
}

/* A record was exchanged for another one whose sums are right: only the link tells. */
static void exchanged_record_breaks_the_link(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups(GROUPS_COUNT);
    const struct frames frames = frames_of(vfs);
    struct io_frame_state at = {.salt = io_log_salt(frames.head.log_id)};
    struct ron_buf bytes = world_file(vfs, SEG1);
    uint8_t *record = bytes.data + frames.offsets[2];
    struct io_log *log = NULL;
    struct io_frame frame;
    const char *why = NULL;

    (void)state;
    assert_int_equal(frames.types[2], 2);
    assert_int_equal(
        io_frame_read_first(ron_slice_of(record, bytes.size - (size_t)frames.offsets[2]), &at,
                            &frame, &why),
        IO_FRAME_VALID);
    record[IO_FRAME_HEAD_SIZE] ^= 1;
    io_frame_put(&frame, at.salt, ron_crc32c(0, frame.body.data, frame.body.size), record);
    world_write(vfs, SEG1, frames.offsets[2], record, (size_t)io_frame_size(frame.body.size));
    ron_buf_fini(&bytes);
    support_assert_error(open_idle(vfs, IO_LOG_STRICT, &log), &info, RON_ERR_WAL_CORRUPT,
                         "link to the group before it");
    assert_int_equal(recovery.damage_offset, frames.offsets[3]);
    io_vfs_free(vfs);
}

/* A client's record holds frames of later groups, made as the log makes them but for the log id,
 * and the group it is in was torn: not acknowledged, so not damage. */
static void frames_inside_a_torn_record_are_no_damage(void **state) RON_BLOCKS
{
    static const uint8_t zeros[IO_COMMIT_SIZE];
    static const uint8_t other_id[16] = {9, 9, 9};
    uint8_t body[FORGED_COUNT * (IO_FRAME_HEAD_SIZE + 8)];
    const struct ron_slice part = {body, sizeof(body)};
    struct io_vfs *vfs = world_memory(), *image;
    struct io_log *log = world_open(vfs);
    struct frames frames;
    size_t size = 0;
    uint64_t index = 0;

    (void)state;
    world_append_many(log, 1, 5);
    for (uint64_t i = 0; i < FORGED_COUNT; i++)
        size += forge(body + size, 7 + i, i % 2 == 0 ? 0 : io_log_salt(other_id));
    assert_int_equal(size, sizeof(body));
    assert_ok(io_log_append(log, 1, &part, 1, &index, NULL));
    assert_ok(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL));
    image = crashed(vfs);
    world_close(log);
    frames = frames_of(image);
    assert_int_equal(frames.types[frames.count - 1], IO_FRAME_COMMIT);
    world_write(image, SEG1, frames.offsets[frames.count - 1], zeros, sizeof(zeros));
    assert_ok(open_idle(image, IO_LOG_STRICT, &log));
    assert_int_equal(recovery.last_index, 5);
    assert_true(recovery.torn_bytes > sizeof(body));
    assert_int_equal(recovery.torn_count, 1); /* the record itself */
    log_destroy(log);
    io_vfs_free(image);
    io_vfs_free(vfs);
}

struct seen {
    uint64_t count, last;
};
static struct seen read_rising(struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    struct seen seen = {0};
    struct io_frame frame;

    assert_ok(io_log_reader_new(log, io_log_first_index(log), &reader, NULL));
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK) {
        assert_true(frame.index > seen.last);
        seen = (struct seen){seen.count + 1, frame.index};
    }
    io_log_reader_free(reader);
    return seen;
}

/* Skip the damage, twice: the second time finds what the first one left. */
static struct seen assert_skipped_alike(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_log *log = NULL;
    struct ron_b3 first_sum, second_sum;
    struct seen first, second;
    uint64_t last;

    if (open_idle(vfs, IO_LOG_SKIP, &log) != RON_ERR_OK)
        fail_msg("%s", info.message);
    first = read_rising(log);
    last = recovery.last_index;
    log_destroy(log);
    first_sum = world_sum(vfs, true);
    if (open_idle(vfs, IO_LOG_SKIP, &log) != RON_ERR_OK)
        fail_msg("the second time: %s", info.message);
    second = read_rising(log);
    assert_int_equal(recovery.last_index, last);
    assert_int_equal(recovery.torn_bytes, 0);
    log_destroy(log);
    second_sum = world_sum(vfs, true);
    assert_int_equal(first.count, second.count);
    assert_int_equal(first.last, second.last);
    assert_memory_equal(first_sum.bytes, second_sum.bytes, sizeof(first_sum.bytes));
    return first;
}

/* Each frame damaged, with and without the end of the last group. */
static void skipping_twice_finds_the_same(void **state) RON_BLOCKS
{
    static const uint8_t zeros[IO_COMMIT_SIZE];
    struct io_vfs *vfs = with_groups(GROUPS_COUNT);
    const struct frames frames = frames_of(vfs);

    (void)state;
    assert_int_equal(frames.count, 2 * GROUPS_COUNT);
    for (size_t i = 0; i < frames.count; i++) {
        for (unsigned torn = 0; torn < 2; torn++) {
            struct io_vfs *image = crashed(vfs);

            world_flip(image, SEG1, frames.offsets[i] + 33); /* the sum of its body */
            if (torn == 1)
                world_write(image, SEG1, frames.offsets[frames.count - 1], zeros, sizeof(zeros));
            (void)assert_skipped_alike(image);
            io_vfs_free(image);
        }
    }
    io_vfs_free(vfs);
}

/* Nothing of a segment can be read, but it is not torn: it is sealed without a record. */
static void segment_of_nothing_but_damage_is_gone_on_from(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_groups(3);
    const struct frames frames = frames_of(vfs);
    struct io_log *log;
    struct seen seen;

    (void)state;
    for (size_t i = 0; i < frames.count; i++) /* bodies only: a head tells of a later group */
        world_flip(vfs, SEG1, frames.offsets[i] + IO_FRAME_HEAD_SIZE);
    seen = assert_skipped_alike(vfs);
    assert_int_equal(seen.count, 0);
    log = world_open(vfs); /* as strict: what was skipped is behind a seal now */
    world_close(log);
    io_vfs_free(vfs);
}

/* A record holds copies of the log's own frames, past and far ahead; its head is damaged. */
static void frames_that_cannot_follow_are_not_gone_on_from(void **state) RON_BLOCKS
{
    uint8_t body[4 * (IO_FRAME_HEAD_SIZE + 8)];
    const struct ron_slice part = {body, sizeof(body)};
    struct io_vfs *vfs = world_memory(), *image;
    struct io_log *log = world_open(vfs);
    struct frames frames;
    struct seen seen;
    size_t size = 0;
    uint32_t salt;
    uint64_t index = 0;

    (void)state;
    world_append_many(log, 1, 1);
    world_append_many(log, 2, 2);
    frames = frames_of(vfs);
    salt = io_log_salt(frames.head.log_id);
    size += forge(body + size, 1, salt);
    size += forge(body + size, UINT64_C(1) << 40, salt);
    size += forge(body + size, 2, salt);
    size += forge(body + size, UINT64_MAX, salt);
    assert_ok(io_log_append(log, 1, &part, 1, &index, NULL));
    assert_ok(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL));
    for (uint64_t i = 4; i <= 6; i++)
        world_append_many(log, i, i);
    image = crashed(vfs);
    world_close(log);
    assert_true(size == sizeof(body) && index == 3);
    world_flip(image, SEG1, frames.end + 12); /* the head of record 3 */
    seen = assert_skipped_alike(image);
    assert_int_equal(seen.last, 6);
    assert_int_equal(seen.count, 5);
    assert_int_equal(recovery.last_index, 6);
    io_vfs_free(image);
    io_vfs_free(vfs);
}

static struct io_vfs *with_indexes(void) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    world_append_many(log, 1, 400);
    world_close(log);
    log = world_open(vfs); /* builds what the close cut short */
    assert_true(io_log_last_indexed(log) > 200);
    world_close(log);
    return vfs;
}

static void find_each(struct io_log *log, uint64_t last) RON_BLOCKS
{
    struct io_log_place place;
    uint8_t key[16];

    for (uint64_t i = 1; i <= last; i++) {
        world_key(i, 0, key);
        assert_ok(io_log_find(log, key, &place, NULL));
        assert_int_equal(place.index, i);
    }
}

static void damaged_index_page_is_built_again(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_indexes();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = world_open(vfs), *reader = NULL;
    struct io_log_place place = {.index = 77};
    uint8_t key[16];
    uint64_t last;

    (void)state;
    world_flip(vfs, IDX1, 4096 + 40); /* the first page of keys */
    world_key(1, 0, key);
    options.read_only = true; /* changes nothing */
    assert_ok(io_log_open(&options, &reader, &recovery, NULL));
    support_assert_error(io_log_find(reader, key, &place, &info), &info, RON_ERR_WAL_CORRUPT,
                         "idx-0000000000000001: page 0");
    assert_int_equal(place.index, 77);
    world_close(reader);
    last = io_log_last_indexed(log);
    find_each(log, last);
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 1);
    assert_int_equal(io_log_last_indexed(log), last);
    world_close(log);
    log = world_open(vfs);
    find_each(log, last);
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 0);
    /* The segment is damaged as well: no answer is better than a wrong one. */
    world_flip(vfs, IDX1, 4096 + 40);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + IO_FRAME_HEAD_SIZE + 60);
    support_assert_error(io_log_find(log, key, &place, &info), &info, RON_ERR_WAL_CORRUPT,
                         "seg-0000000000000001 at byte 4");
    /* Or it is gone: that does not make the key unknown. */
    assert_ok(io_vfs_unlink(vfs, SEG1, NULL));
    support_assert_error(io_log_find(log, key, &place, &info), &info, RON_ERR_WAL_CORRUPT,
                         "cannot be built again");
    world_close(log);
    io_vfs_free(vfs);
}

/* One of an older version is like none: its segment is read, and the index made anew. */
static void older_index_is_built_again(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_indexes();
    struct io_file *file = NULL;
    struct io_log *log;
    uint8_t head[4096];
    size_t size = 0;
    uint64_t last;

    (void)state;
    assert_ok(io_vfs_open(vfs, IDX1, IO_OPEN_WRITE, &file, NULL));
    assert_ok(io_file_read(file, 0, head, sizeof(head), &size, NULL));
    head[8]--;
    ron_store_le32(head + 4088, ron_crc32c(0, head, 4088));
    assert_ok(io_file_write(file, 0, &(struct ron_slice){head, sizeof(head)}, 1, NULL));
    file = io_file_close(file);
    log = world_open(vfs);
    last = io_log_last_indexed(log);
    assert_true(last > 200);
    find_each(log, last);
    world_close(log);
    assert_ok(io_vfs_open(vfs, IDX1, IO_OPEN_READ, &file, NULL));
    assert_ok(io_file_read(file, 0, head, sizeof(head), &size, NULL));
    assert_int_equal(head[8], 2);
    file = io_file_close(file);
    io_vfs_free(vfs);
}

static void *finder_fn(void *argument) RON_BLOCKS
{
    find_each(argument, 60);
    return NULL;
}

static void finders_meet_a_damaged_page_at_once(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_indexes();
    struct io_log *log = world_open(vfs);
    pthread_t finders[FINDERS_COUNT];

    (void)state;
    world_flip(vfs, IDX1, 4096 + 40);
    for (unsigned i = 0; i < FINDERS_COUNT; i++)
        assert_int_equal(pthread_create(&finders[i], NULL, finder_fn, log), 0);
    for (unsigned i = 0; i < FINDERS_COUNT; i++)
        assert_int_equal(pthread_join(finders[i], NULL), 0);
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 1);
    world_close(log);
    io_vfs_free(vfs);
}

/* Every image of a crash while segments are dropped has no gap. */
static uint64_t drop_images_count;
static bool open_dropped(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                         enum io_crash_class class) RON_BLOCKS
{
    struct io_log *log = NULL;

    (void)context;
    (void)plan;
    (void)class;
    if (open_idle(image, IO_LOG_STRICT, &log) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_int_equal(world_read(log, io_log_first_index(log)), 400);
    log_destroy(log);
    drop_images_count++;
    return true;
}

static void crash_the_drop(struct recorder *recorder)
{
    struct io_crash_counts counts = {0};
    const struct io_crash_options options = {.tears_max = 1};

    assert_ok(io_crash_images(recorder->below, &options, open_dropped, NULL, &counts, NULL));
}

static void drop_leaves_no_gap_wherever_it_crashes(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_indexes();
    struct recorder recorder;
    struct io_log *log = NULL;
    uint64_t dropped = 0;

    (void)state;
    drop_images_count = 0;
    recorder_init(&recorder, vfs, crash_the_drop, NULL);
    assert_ok(open_idle(&recorder.vfs, IO_LOG_STRICT, &log));
    assert_ok(io_log_drop_before(log, 300, &dropped, NULL));
    assert_true(dropped >= 3);
    crash_the_drop(&recorder);
    assert_true(drop_images_count > 2 * dropped);
    log_destroy(log);
    io_vfs_free(&recorder.vfs);
    io_vfs_free(vfs);
}

/* The last segment is sealed and there is no room for the next one. */
static void full_disk_behind_a_seal_opens_for_reading(void **state) RON_BLOCKS
{
    const struct io_memory_options small = {.bytes_max = 256 << 10};
    static const uint8_t zeros[4096];
    struct io_log_options options;
    struct io_vfs *vfs = NULL;
    struct io_log *log = NULL;
    struct io_file *file = NULL;
    struct ron_buf sealed, after;
    struct ron_slice part = {zeros, sizeof(zeros)};
    const struct rt_deadline patience = rt_deadline_after_ms(20000);
    enum ron_err err = RON_ERR_OK;

    (void)state;
    assert_ok(io_vfs_memory_new(&small, &vfs, NULL));
    log = world_open(vfs);
    for (uint64_t i = 1; i <= GROUPS_COUNT; i++)
        world_append_many(log, i, i);
    world_close(log);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 150); /* in record 2: skipping seals it */
    assert_ok(io_vfs_open(vfs, "ballast", IO_OPEN_CREATE, &file, NULL));
    for (uint64_t at = 0; err == RON_ERR_OK; at += part.size)
        err = io_file_write(file, at, &part, 1, NULL);
    assert_int_equal(err, RON_ERR_PERSISTENCE_FULL);
    assert_ok(io_file_sync(file, NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    io_file_close(file);
    options = world_options(vfs);
    options.damage = IO_LOG_SKIP;
    if (io_log_open(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_int_equal(read_rising(log).last, GROUPS_COUNT);
    sealed = world_file(vfs, SEG1);
    assert_int_equal(world_append(log, GROUPS_COUNT + 1), RON_ERR_PERSISTENCE_FULL);
    assert_ok(io_vfs_unlink(vfs, "ballast", NULL));
    assert_ok(io_vfs_sync_dir(vfs, "", NULL));
    do /* the disk is asked again a few times a second */
        err = world_append(log, GROUPS_COUNT + 1);
    while (err == RON_ERR_PERSISTENCE_FULL && !rt_deadline_expired(patience));
    assert_ok(err);
    assert_ok(io_log_wait(log, GROUPS_COUNT + 1, rt_deadline_after_ms(20000), NULL));
    world_close(log);
    after = world_file(vfs, SEG1); /* it was sealed once */
    assert_true(ron_slice_equal(ron_slice_of(sealed.data, sealed.size),
                                ron_slice_of(after.data, after.size)));
    ron_buf_fini(&sealed);
    ron_buf_fini(&after);
    assert_ok(io_log_open(&options, &log, &recovery, &info));
    assert_int_equal(read_rising(log).last, GROUPS_COUNT + 1);
    world_close(log);
    io_vfs_free(vfs);
}

/* A reader of late records of the open segment does not begin at its head. */
static void starts_are_close_and_few(void **state)
{
    struct log_starts starts = {0};
    uint64_t offset = IO_SEGMENT_HEAD_SIZE;

    (void)state;
    assert_int_equal(log_starts_before(&starts, 5), 0);
    for (uint64_t i = 1; i <= 1000000; i++, offset += 240)
        log_starts_add(&starts, i, offset);
    assert_true(starts.count <= LOG_STARTS_MAX);
    assert_int_equal(log_starts_before(&starts, 1), IO_SEGMENT_HEAD_SIZE);
    for (uint64_t i = 1; i <= 1000000; i += 997) {
        const uint64_t at = log_starts_before(&starts, i);
        const uint64_t exact = IO_SEGMENT_HEAD_SIZE + (i - 1) * 240;

        assert_true(at <= exact && exact - at <= (8u << 20));
        assert_int_equal((at - IO_SEGMENT_HEAD_SIZE) % 240, 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(exchanged_record_breaks_the_link),
        CASE(frames_inside_a_torn_record_are_no_damage),
        CASE(skipping_twice_finds_the_same),
        CASE(segment_of_nothing_but_damage_is_gone_on_from),
        CASE(frames_that_cannot_follow_are_not_gone_on_from),
        CASE(damaged_index_page_is_built_again),
        CASE(older_index_is_built_again),
        CASE(finders_meet_a_damaged_page_at_once),
        CASE(drop_leaves_no_gap_wherever_it_crashes),
        CASE(full_disk_behind_a_seal_opens_for_reading),
        CASE(starts_are_close_and_few),
    };

    return cmocka_run_group_tests_name("log_damage", tests, NULL, NULL);
}
