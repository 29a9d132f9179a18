/*
 * test_log_faults.c - the log on a disk that fails. Method: each kind of fault strikes the Nth call
 * of each sort, for every N until the run no longer has so many; the run appends and waits, then
 * the machine crashes (once keeping all that was not synced, once nothing) and what is recovered is
 * compared with what was acknowledged. Faults that a call reports may cost nothing acknowledged;
 * silent ones may, but a record that is read is one that was appended.
 */
#include "io/vfs_faulty.h"
#include "log_world.h"

enum { LARGE_SIZE = 14000, LARGE_COUNT = 8 };
enum { RECORDS_COUNT = 90, BATCH = 6, STRIKES_MAX = RON_ASAN || RON_TSAN ? 12 : 80 };

struct run {
    struct io_vfs *memory, *faulty;
    uint64_t acknowledged, appended;
    enum ron_err err; /* of the first call that failed */
    unsigned broken_count;
};

static void note_broken(void *context, const struct ron_errinfo *info)
{
    struct run *run = context;

    assert_int_not_equal(info->err, RON_ERR_OK);
    run->broken_count++;
}

/* Whatever it is told: so that each run reads. */
static void read_one(struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    struct io_frame frame;

    assert_ok(io_log_reader_new(log, io_log_first_index(log), &reader, NULL));
    (void)!io_log_reader_next(reader, &frame, NULL);
    (void)io_log_reader_free(reader);
}

static void append_all(struct run *run, struct io_log *log) RON_BLOCKS
{
    uint64_t dropped;

    while (run->err == RON_ERR_OK && run->appended < RECORDS_COUNT) {
        const uint64_t end = run->appended + BATCH;

        while (run->err == RON_ERR_OK && run->appended < end) {
            run->err = world_append(log, run->appended + 1);
            run->appended += run->err == RON_ERR_OK;
        }
        if (run->err == RON_ERR_OK)
            run->err = io_log_wait(log, end, rt_deadline_after_ms(20000), NULL);
        run->acknowledged = io_log_last_durable(log);
    }
    if (run->err == RON_ERR_OK)
        run->err = io_log_drop_before(log, 2, &dropped, NULL);
    read_one(log);
    if (run->err == RON_ERR_IO) { /* once broken, always */
        assert_int_not_equal(world_append(log, run->appended + 1), RON_ERR_OK);
        assert_int_equal(io_log_wait(log, RECORDS_COUNT + 1, rt_deadline_after_ms(20000), NULL),
                         RON_ERR_IO);
        /* A group that was under way when another task broke the log may still have come down. */
        assert_true(io_log_last_durable(log) >= run->acknowledged);
        run->acknowledged = io_log_last_durable(log);
    }
}

static void do_run(struct run *run, enum io_fault_kind kind, enum io_fault_call call,
                   uint64_t at) RON_BLOCKS
{
    const struct io_fault fault = {.kind = kind, .call = call, .at = at, .times = 1};
    const struct io_faulty_options faulty = {
        .faults = &fault, .faults_count = 1, .slow_ms = 1, .seed = at};
    struct io_log_options options;
    struct io_log_recovery recovery;
    struct io_log *log = NULL;

    *run = (struct run){.memory = world_memory()};
    assert_ok(io_vfs_faulty_new(run->memory, &faulty, &run->faulty, NULL));
    options = world_options(run->faulty);
    options.on_broken = note_broken;
    options.context = run;
    run->err = io_log_open(&options, &log, &recovery, NULL);
    if (run->err != RON_ERR_OK)
        return;
    append_all(run, log);
    if (io_log_close(log, rt_deadline_after_ms(20000), NULL) == RON_ERR_OK) {
        assert_int_equal(run->broken_count, 0);
        assert_true(run->acknowledged <= run->appended);
    }
    assert_true(run->broken_count <= 1);
}

static bool is_silent(enum io_fault_kind kind)
{
    return kind == IO_FAULT_TORN_SECTOR || kind == IO_FAULT_LOST_WRITE ||
           kind == IO_FAULT_MISDIRECTED || kind == IO_FAULT_BIT_FLIP || kind == IO_FAULT_LYING_SYNC;
}

/* What a crash leaves; true if it was refused. */
static bool check_image(struct run *run, bool keep_all, bool silent) RON_BLOCKS
{
    static uint8_t keep[8192];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    struct io_log_options options;
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_vfs *image = NULL;
    struct io_log *log = NULL;
    uint64_t last;
    enum ron_err err;

    memset(keep, keep_all ? 0xff : 0, sizeof(keep));
    assert_true(io_memory_unsynced_count(run->memory) <= 8 * sizeof(keep));
    assert_ok(io_memory_crash(run->memory, &plan, &image, NULL));
    options = world_options(image);
    err = log_open_idle(&options, &log, &recovery, &info);
    if (err == RON_ERR_OK) {
        last = world_read(log, recovery.first_index);
        assert_true(last <= run->appended);
        if (!silent)
            assert_true(last >= run->acknowledged);
        log_destroy(log);
    } else if (!silent) {
        fail_msg("%s", info.message);
    } else {
        assert_true(err == RON_ERR_WAL_CORRUPT || err == RON_ERR_MALFORMED ||
                    err == RON_ERR_VERSION_SKEW);
    }
    io_vfs_free(image);
    return err != RON_ERR_OK;
}

static void strike_each(enum io_fault_kind kind, enum io_fault_call call) RON_BLOCKS
{
    unsigned failed_count = 0, refused_count = 0, strikes_count = 0;
    bool struck = true;

    for (uint64_t at = 1; struck && at <= STRIKES_MAX; at++) {
        struct run run;

        do_run(&run, kind, call, at);
        struck = io_faulty_count(run.faulty, kind) > 0;
        strikes_count += struck;
        failed_count += run.err != RON_ERR_OK;
        refused_count += check_image(&run, true, is_silent(kind));
        refused_count += check_image(&run, false, is_silent(kind));
        run.faulty = io_vfs_free(run.faulty);
        run.memory = io_vfs_free(run.memory);
    }
    print_message("# %s: %u strikes, %u runs failed, %u images refused\n", io_fault_name(kind),
                  strikes_count, failed_count, refused_count);
    assert_true(strikes_count > 0);
}

static void reported_faults_cost_nothing_acknowledged(void **state) RON_BLOCKS
{
    (void)state;
    strike_each(IO_FAULT_EIO, IO_CALL_WRITE);
    strike_each(IO_FAULT_EIO, IO_CALL_SYNC);
    strike_each(IO_FAULT_EIO, IO_CALL_NAME);
    strike_each(IO_FAULT_EIO, IO_CALL_OPEN);
    strike_each(IO_FAULT_ENOSPC, IO_CALL_WRITE);
    strike_each(IO_FAULT_SHORT_WRITE, IO_CALL_WRITE);
    strike_each(IO_FAULT_SYNC_EIO, IO_CALL_SYNC);
    strike_each(IO_FAULT_SLOW, IO_CALL_SYNC);
}

static void silent_faults_never_make_up_a_record(void **state) RON_BLOCKS
{
    (void)state;
    strike_each(IO_FAULT_TORN_SECTOR, IO_CALL_WRITE);
    strike_each(IO_FAULT_LOST_WRITE, IO_CALL_WRITE);
    strike_each(IO_FAULT_MISDIRECTED, IO_CALL_WRITE);
    strike_each(IO_FAULT_LYING_SYNC, IO_CALL_SYNC);
    strike_each(IO_FAULT_BIT_FLIP, IO_CALL_READ);
}

/* Groups of several pages, for what follows. */
static struct io_log_options large_options(struct io_vfs *vfs)
{
    struct io_log_options options = world_options(vfs);

    options.segment_bytes = 64 << 10;
    options.ahead_bytes = 64 << 10;
    options.group_bytes = LARGE_SIZE;
    options.record_bytes_max = LARGE_SIZE;
    return options;
}

/* How many there are, each as it was appended. */
static uint64_t read_large(struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    uint8_t body[LARGE_SIZE];
    struct io_frame frame;
    uint64_t count = 0;

    assert_ok(io_log_reader_new(log, 1, &reader, NULL));
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK) {
        memset(body, (int)++count, sizeof(body));
        assert_int_equal(frame.index, count);
        assert_true(ron_slice_equal(frame.body, ron_slice_of(body, sizeof(body))));
    }
    (void)io_log_reader_free(reader);
    return count;
}

/* Large records, one a group, until a sync of their segment fails. Returns the acknowledged. */
static uint64_t append_large(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_log_options options = large_options(vfs);
    struct io_log_recovery recovery;
    uint8_t body[LARGE_SIZE];
    const struct ron_slice part = {body, sizeof(body)};
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_log *log = NULL;
    uint64_t index = 0, acknowledged;
    enum ron_err err = io_log_open(&options, &log, &recovery, NULL);

    if (err != RON_ERR_OK)
        return 0;
    for (unsigned i = 1; err == RON_ERR_OK && i <= LARGE_COUNT; i++) {
        memset(body, (int)i, sizeof(body));
        err = io_log_append_until(log, 1, &part, 1, deadline, &index, NULL);
        if (err == RON_ERR_OK)
            err = io_log_wait(log, index, deadline, NULL);
    }
    acknowledged = io_log_last_durable(log);
    (void)!io_log_close(log, deadline, NULL);
    return acknowledged;
}

/* A sync fails, the next owner finds in the cache what the disk has not, and then the power goes:
 * what it found it had made durable, all pages of it. */
static void what_an_open_finds_is_durable(void **state) RON_BLOCKS
{
    static uint8_t keep[8192];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    uint64_t more_count = 0;
    bool struck = true;

    (void)state;
    for (uint64_t at = 1; struck; at++) {
        const struct io_fault fault = {.kind = IO_FAULT_SYNC_EIO,
                                       .call = IO_CALL_SYNC,
                                       .path_prefix = "role/log/seg",
                                       .at = at,
                                       .times = 1};
        const struct io_faulty_options faults = {.faults = &fault, .faults_count = 1};
        struct io_vfs *memory = world_memory(), *faulty = NULL, *image = NULL;
        struct io_log_options options = large_options(memory);
        struct io_log_recovery recovery;
        struct io_log *log = NULL;
        uint64_t acknowledged, found;

        assert_ok(io_vfs_faulty_new(memory, &faults, &faulty, NULL));
        acknowledged = append_large(faulty);
        struck = io_faulty_count(faulty, IO_FAULT_SYNC_EIO) > 0;
        faulty = io_vfs_free(faulty);
        assert_ok(log_open_idle(&options, &log, &recovery, NULL));
        found = read_large(log);
        log_destroy(log);
        assert_true(found >= acknowledged);
        more_count += found > acknowledged;
        assert_true(io_memory_unsynced_count(memory) <= 8 * sizeof(keep));
        assert_ok(io_memory_crash(memory, &plan, &image, NULL));
        options.vfs = image;
        assert_ok(log_open_idle(&options, &log, &recovery, NULL));
        assert_int_equal(read_large(log), found);
        log_destroy(log);
        io_vfs_free(image);
        io_vfs_free(memory);
    }
    assert_true(more_count >= LARGE_COUNT / 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reported_faults_cost_nothing_acknowledged),
        CASE(silent_faults_never_make_up_a_record),
        CASE(what_an_open_finds_is_durable),
    };

    return cmocka_run_group_tests_name("log_faults", tests, NULL, NULL);
}
