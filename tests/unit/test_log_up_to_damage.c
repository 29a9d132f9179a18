/*
 * test_log_up_to_damage.c - a damaged log is read up to the damage, and nothing else happens to it.
 *
 * Method: a log of several segments in memory, a group a record; one byte of it is turned at
 * offsets all over every segment, or a whole file is taken away. What must be readable is computed
 * from the frames of the sound log.
 */
#include "io/crash_images.h"
#include "io/log_check.h"
#include "log_world.h"

#define OWNER "role/log/owner"

enum { RECORDS_COUNT = 150, SEGMENTS_MAX = 8, STEP = 61, VERSION_AT = 8 };

/* The log before it was damaged. */
struct sound {
    struct io_vfs *vfs;
    struct ron_buf files[SEGMENTS_MAX]; /* of the segments */
    unsigned count;
    uint32_t salt;
};

static struct io_log_recovery recovery;
static struct ron_errinfo info;

static const char *segment_path(unsigned number)
{
    static char path[IO_PATH_MAX + 1];

    (void)snprintf(path, sizeof(path), "role/log/seg-%016x", number);
    return path;
}

static bool count_segments(void *context, const char *name, bool is_dir)
{
    unsigned *count = context;

    assert_false(is_dir);
    *count += strncmp(name, "seg-", 4) == 0;
    return true;
}

static struct sound make_sound(void) RON_BLOCKS
{
    struct sound sound = {.vfs = world_memory()};
    struct io_segment_head head;
    struct io_log *log = world_open(sound.vfs);

    for (uint64_t i = 1; i <= RECORDS_COUNT; i++)
        world_append_many(log, i, i);
    world_close(log);
    log = world_open(sound.vfs); /* builds the indexes that close did not wait for */
    world_close(log);
    assert_ok(io_vfs_list(sound.vfs, "role/log", count_segments, &sound.count, NULL));
    assert_in_range(sound.count, 3, SEGMENTS_MAX);
    for (unsigned i = 0; i < sound.count; i++)
        sound.files[i] = world_file(sound.vfs, segment_path(i + 1));
    assert_ok(io_segment_head_decode(ron_slice_of(sound.files[0].data, sound.files[0].size), &head,
                                     NULL));
    sound.salt = io_log_salt(head.log_id);
    return sound;
}

static void free_sound(struct sound *sound)
{
    for (unsigned i = 0; i < sound->count; i++)
        ron_buf_fini(&sound->files[i]);
    io_vfs_free(sound->vfs);
}

/* The last record of a group that ends before `offset` of a segment, and where the frames end. */
static uint64_t last_before(const struct sound *sound, unsigned number, uint64_t offset,
                            uint64_t *ret_end)
{
    const struct ron_buf *bytes = &sound->files[number - 1];
    struct io_segment_head head;
    struct io_frame frame;
    uint64_t at = IO_SEGMENT_HEAD_SIZE, last;

    assert_ok(io_segment_head_decode(ron_slice_of(bytes->data, bytes->size), &head, NULL));
    last = head.first_index - 1;
    while (io_frame_head_sound(ron_slice_of(bytes->data + at, bytes->size - at), sound->salt,
                               &frame)) {
        at += io_frame_size(frame.body.size);
        if (frame.type > IO_FRAME_TYPE_MAX && at <= offset)
            last = frame.index;
    }
    *ret_end = at;
    return last;
}

static struct io_vfs *copy_of(const struct sound *sound)
{
    static uint8_t keep[8192];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    struct io_vfs *image = NULL;

    memset(keep, 0xff, sizeof(keep));
    assert_true(io_memory_unsynced_count(sound->vfs) <= 8 * sizeof(keep));
    assert_ok(io_memory_crash(sound->vfs, &plan, &image, NULL));
    return image;
}

static enum ron_err open_with(struct io_vfs *vfs, enum io_log_damage_policy damage,
                              struct io_log **ret_log) RON_BLOCKS
{
    struct io_log_options options = world_options(vfs);

    options.damage = damage;
    return io_log_open(&options, ret_log, &recovery, &info);
}

static void remove_file(struct io_vfs *vfs, const char *kind, unsigned number) RON_BLOCKS
{
    char path[IO_PATH_MAX + 1];

    (void)snprintf(path, sizeof(path), "role/log/%s-%016x", kind, number);
    assert_ok(io_vfs_unlink(vfs, path, NULL));
}

static void takes_nothing(struct io_log *log, uint64_t last) RON_BLOCKS
{
    const struct ron_slice part = RON_SLICE("one more");
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    uint64_t got = 77;

    support_assert_error(io_log_append(log, 1, &part, 1, &got, &info), &info, RON_ERR_WAL_CORRUPT,
                         "can only be read");
    support_assert_error(io_log_append_until(log, 1, &part, 1, deadline, &got, &info), &info,
                         RON_ERR_WAL_CORRUPT, "can only be read");
    support_assert_error(io_log_wait(log, last + 1, deadline, &info), &info, RON_ERR_WAL_CORRUPT,
                         "can only be read");
    assert_ok(io_log_wait(log, last, deadline, NULL));
    support_assert_error(io_log_drop_before(log, last, &got, &info), &info, RON_ERR_WAL_CORRUPT,
                         "can only be read");
    assert_int_equal(got, 77);
}

/* All up to `last` is read and found, nothing changes, and strict refuses the log. Returns up to
 * where the indexes reach. */
static uint64_t reads_up_to(struct io_vfs *vfs, uint64_t last, const char *file) RON_BLOCKS
{
    const struct ron_b3 before = world_sum(vfs, false);
    struct io_log *log = NULL;
    struct io_log_place place;
    struct ron_b3 after;
    uint64_t indexed;
    uint8_t key[16];

    info = (struct ron_errinfo){0};
    if (open_with(vfs, IO_LOG_UP_TO_DAMAGE, &log) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_string_equal(recovery.damage_file, file);
    assert_int_equal(recovery.last_index, last);
    assert_int_equal(recovery.first_index, 1);
    assert_int_equal(recovery.records_count, last);
    assert_int_equal(io_log_last_durable(log), last);
    assert_int_equal(world_read(log, 1), last);
    assert_int_equal(world_read(log, last / 2 + 1), last);
    takes_nothing(log, last);
    indexed = io_log_last_indexed(log);
    assert_true(indexed <= last);
    for (uint64_t i = 1; i <= RECORDS_COUNT; i++) {
        world_key(i, 0, key);
        assert_int_equal(io_log_find(log, key, &place, NULL),
                         i <= indexed ? RON_ERR_OK : RON_ERR_NOT_FOUND);
        assert_true(i > indexed || place.index == i);
    }
    world_close(log);
    assert_int_equal(open_with(vfs, IO_LOG_STRICT, &log), RON_ERR_WAL_CORRUPT);
    after = world_sum(vfs, false);
    assert_memory_equal(after.bytes, before.bytes, sizeof(before.bytes));
    return indexed;
}

/* What a look at the whole log says, and where. */
static enum ron_err checked(struct io_vfs *vfs, struct io_log_found *ret_found) RON_BLOCKS
{
    const struct io_log_check_options options = {.vfs = vfs, .dir = "role/log"};

    return io_log_check(&options, ret_found, &info);
}

/* A byte of any segment, sealed ones and the last. */
static void byte_anywhere(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();

    (void)state;
    for (unsigned number = 1; number <= sound.count; number++) {
        uint64_t end, before;

        (void)last_before(&sound, number, 0, &end);
        for (uint64_t at = VERSION_AT + 4; at < end; at += STEP) {
            struct io_vfs *vfs = copy_of(&sound);
            const uint64_t last = last_before(&sound, number, at, &end);

            world_flip(vfs, segment_path(number), at);
            if (number < sound.count)
                remove_file(vfs, "idx", number); /* which would vouch for it */
            before = reads_up_to(vfs, last, segment_path(number));
            assert_int_equal(before, number == 1 ? 0 : last_before(&sound, number, 0, &end));
            if (at >= IO_SEGMENT_HEAD_SIZE) { /* at the damaged frame or its group's end */
                assert_true(recovery.damage_offset + 1024 > at);
                assert_true(recovery.damage_offset < at + 1024);
            }
            io_vfs_free(vfs);
        }
    }
    free_sound(&sound);
}

static void magic_of_a_segment(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_vfs *vfs = copy_of(&sound);
    struct io_log *log = NULL;
    uint64_t end;

    (void)state;
    world_flip(vfs, SEG2, 3);
    assert_ok(open_with(vfs, IO_LOG_UP_TO_DAMAGE, &log));
    assert_int_equal(recovery.last_index, last_before(&sound, 2, 0, &end));
    assert_int_equal(world_read(log, 1), recovery.last_index);
    world_close(log);
    io_vfs_free(vfs);
    free_sound(&sound);
}

/* A seal that lies, beside an index that vouches for the rest. */
static void seal_of_an_indexed_segment(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_vfs *vfs = copy_of(&sound);
    uint64_t end, last;

    (void)state;
    (void)last_before(&sound, 2, 0, &end);
    last = last_before(&sound, 2, end, &end);
    world_flip(vfs, SEG2, end - 3);
    assert_int_equal(reads_up_to(vfs, last, SEG2), last_before(&sound, 2, 0, &end));
    io_vfs_free(vfs);
    free_sound(&sound);
}

static void missing_segment(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_log_found found;
    uint64_t end;

    (void)state;
    for (unsigned number = 2; number <= sound.count; number++) {
        struct io_vfs *vfs = copy_of(&sound);
        const uint64_t last = last_before(&sound, number, 0, &end);
        const bool is_last = number == sound.count; /* the owner's note tells that it was there */

        remove_file(vfs, "seg", number);
        support_assert_error(checked(vfs, &found), &info, RON_ERR_WAL_CORRUPT,
                             is_last ? "but 150 was durable" : "is missing");
        assert_string_equal(found.damage_file, segment_path(is_last ? number - 1 : number + 1));
        assert_int_equal(reads_up_to(vfs, last, segment_path(is_last ? number - 1 : number + 1)),
                         last);
        io_vfs_free(vfs);
    }
    free_sound(&sound);
}

/* Damage in two places: the first one counts. */
static void two_places(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_vfs *vfs = copy_of(&sound);
    uint64_t end;
    const uint64_t last = last_before(&sound, 1, 6000, &end);

    (void)state;
    world_flip(vfs, SEG1, 6000);
    remove_file(vfs, "idx", 1);
    remove_file(vfs, "seg", 3);
    assert_int_equal(reads_up_to(vfs, last, SEG1), 0);
    io_vfs_free(vfs);
    free_sound(&sound);
}

/* The owner file is missing, empty or damaged: the segments are whole, and say whose they are. */
static void lost_owner(void **state) RON_BLOCKS
{
    static const uint8_t zeros[1024];
    struct sound sound = make_sound();
    struct io_log_found found;
    uint64_t end;
    const uint64_t last = last_before(&sound, 2, 6000, &end);

    (void)state;
    assert_ok(checked(sound.vfs, &found));
    assert_true(found.has_owner);
    for (unsigned way = 0; way < 3; way++) {
        struct io_vfs *vfs = copy_of(&sound);

        if (way == 0)
            assert_ok(io_vfs_unlink(vfs, OWNER, NULL));
        else if (way == 1)
            world_write(vfs, OWNER, 0, zeros, sizeof(zeros));
        for (unsigned slot = 0; way == 2 && slot < 2; slot++)
            world_flip(vfs, OWNER, slot * UINT64_C(512) + 40);
        assert_int_equal(checked(vfs, &found), way == 0 ? RON_ERR_OK : RON_ERR_WAL_CORRUPT);
        assert_int_equal(found.has_owner, way != 0);
        assert_string_equal(found.damage_file, way == 0 ? "" : OWNER);
        assert_true(reads_up_to(vfs, RECORDS_COUNT, OWNER) > 0);
        world_flip(vfs, SEG2, 6000);
        remove_file(vfs, "idx", 2);
        (void)reads_up_to(vfs, last, SEG2);
        world_flip(vfs, SEG2, 20); /* its head */
        (void)reads_up_to(vfs, last_before(&sound, 2, 0, &end), SEG2);
        io_vfs_free(vfs);
    }
    free_sound(&sound);
}

/* Strict takes it for the file of somebody else. */
static void magic_of_the_owner(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_log *log = NULL;

    (void)state;
    world_flip(sound.vfs, OWNER, 3);
    world_flip(sound.vfs, OWNER, 512 + 3);
    assert_int_equal(open_with(sound.vfs, IO_LOG_STRICT, &log), RON_ERR_MALFORMED);
    assert_ok(open_with(sound.vfs, IO_LOG_UP_TO_DAMAGE, &log));
    assert_string_equal(recovery.damage_file, OWNER);
    assert_int_equal(world_read(log, 1), RECORDS_COUNT);
    world_close(log);
    free_sound(&sound);
}

/* Without damage it is a log like any other; what is no damage stays an error. */
static void no_damage(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_log *log = NULL;

    (void)state;
    assert_ok(open_with(sound.vfs, IO_LOG_UP_TO_DAMAGE, &log));
    assert_string_equal(recovery.damage_file, "");
    assert_true(recovery.clean);
    world_append_many(log, RECORDS_COUNT + 1, RECORDS_COUNT + 20);
    assert_int_equal(world_read(log, 1), RECORDS_COUNT + 20);
    world_close(log);
    world_write(sound.vfs, "role/log/notes", 0, "x", 1);
    assert_int_equal(open_with(sound.vfs, IO_LOG_UP_TO_DAMAGE, &log), RON_ERR_MALFORMED);
    free_sound(&sound);
}

static enum ron_err open_starved(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_log_options options = world_options(context);
    struct io_log *log = NULL;
    enum ron_err err;

    options.damage = IO_LOG_UP_TO_DAMAGE;
    err = io_log_open(&options, &log, &recovery, reterr);
    if (err == RON_ERR_OK)
        world_close(log);
    return err;
}

static void no_memory(void **state) RON_BLOCKS
{
    struct sound sound = make_sound();
    struct io_vfs *vfs = copy_of(&sound);

    (void)state;
    world_flip(vfs, SEG2, 6000);
    remove_file(vfs, "idx", 2);
    assert_true(support_fail_each_allocation(open_starved, vfs, 500) > 5);
    io_vfs_free(vfs);
    free_sound(&sound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_anywhere),
        cmocka_unit_test(magic_of_a_segment),
        cmocka_unit_test(seal_of_an_indexed_segment),
        cmocka_unit_test(missing_segment),
        cmocka_unit_test(two_places),
        cmocka_unit_test(lost_owner),
        cmocka_unit_test(magic_of_the_owner),
        cmocka_unit_test(no_damage),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
