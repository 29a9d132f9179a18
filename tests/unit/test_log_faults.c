/*
 * test_log_faults.c - the log on a disk that fails. Method: each kind of fault strikes the Nth call
 * of each sort, for every N until the run no longer has so many; the run appends and waits, then
 * the machine crashes (once keeping all that was not synced, once nothing) and what is recovered is
 * compared with what was acknowledged. Faults that a call reports may cost nothing acknowledged;
 * silent ones may, but a record that is read is one that was appended.
 */
#include "base/mem.h"
#include "io/segment_index.h"
#include "io/vfs_faulty.h"
#include "io_spy.h"
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

/* Frames larger than what is read ahead: of each the first part is in memory when its size is
 * known, and that is not read again. */
static void no_byte_is_read_twice(void **state) RON_BLOCKS
{
    enum { SIZE = 1 << 20, COUNT = 6 };
    static uint8_t body[SIZE];
    const struct ron_slice part = {body, sizeof(body)};
    const struct rt_deadline deadline = rt_deadline_after_ms(20000);
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_segment_head head;
    struct io_file *file = NULL;
    struct log_walk walk;
    struct io_log *log;
    uint64_t index = 0;

    (void)state;
    options.segment_bytes = options.ahead_bytes = (COUNT + 1) * SIZE;
    options.group_bytes = options.record_bytes_max = SIZE;
    log = world_open_as(&options);
    for (unsigned i = 0; i < COUNT; i++) {
        memset(body, (int)i, sizeof(body));
        assert_ok(io_log_append_until(log, 1, &part, 1, deadline, &index, NULL));
    }
    assert_ok(io_log_wait(log, index, deadline, NULL));
    world_close(log);
    assert_ok(io_vfs_open(vfs, SEG1, IO_OPEN_READ, &file, NULL));
    assert_ok(log_scan_head(file, &head, NULL));
    spy_install(vfs, NULL);
    assert_ok(log_walk(file, &head, true, IO_LOG_STRICT, NULL, NULL, &walk, NULL));
    assert_int_equal(walk.records_count, COUNT);
    assert_true(spy.read_bytes <= walk.file_size);
    io_file_close(file);
    io_vfs_free(vfs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

/* Who builds an index panics once, while the segment is read: it is built by the next turn, and
 * nothing is left pinned, open or allocated. */
static struct rt_atomic_u32 panics_left;

static void keys_that_panic(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                            void *index)
{
    if (rt_task_self() != NULL && strstr(rt_task_name(rt_task_self()), "index") != NULL &&
        rt_atomic_exchange_u32(&panics_left, 0) > 0)
        rt_panic("as the test told it");
    world_keys(context, frame, emit, index);
}

static void an_index_outlives_a_panic(void **state) RON_BLOCKS
{
    const uint64_t live_count = ron_mem_live_count();
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log;

    (void)state;
    options.keys = keys_that_panic;
    rt_atomic_store_u32(&panics_left, 1);
    log = world_open_as(&options);
    world_append_many(log, 1, 300);
    while (io_log_last_indexed(log) == 0)
        sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
    world_close(log);
    io_vfs_free(vfs);
    assert_int_equal(ron_mem_live_count(), live_count);
}

/* A panic while the file is written: it is the builder's, which ends it, whether it goes on to
 * another segment or not. */
static struct io_vfs *index_vfs;

static void panic_once(struct io_vfs *vfs)
{
    (void)vfs;
    spy.before_sync = NULL;
    rt_panic("as the test told it");
}

static enum ron_err write_index_fn(struct rt_task *task, void *builder) RON_BLOCKS
{
    (void)task;
    return io_index_write(builder, index_vfs, "idx", NULL);
}

static void a_panic_leaves_no_half_an_index(void **state) RON_BLOCKS
{
    static const struct io_index_of of = {.segment = 7};
    const struct io_index_entry entry = {.key = "sixteen bytes ok", .offset8 = 1};

    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        const uint64_t live_count = ron_mem_live_count();
        struct rt_task_options options = {.kind = "index",
                                          .name = "index",
                                          .owner = "test",
                                          .fn = write_index_fn,
                                          .restart = RT_RESTART_NEVER};
        enum ron_err result = RON_ERR_OK;
        struct io_index_builder *builder = NULL;
        struct io_index *index = NULL;
        struct io_file *file = NULL;
        struct rt_task *task = NULL;

        index_vfs = world_memory();
        spy_install(index_vfs, panic_once);
        assert_ok(io_index_builder_new(&of, 10, &builder, NULL));
        assert_ok(io_index_add(builder, &entry, NULL));
        options.argument = builder;
        assert_ok(rt_task_spawn(world_supervisor, &options, &task, NULL));
        assert_ok(rt_task_join(task, rt_deadline_after_ms(20000), &result, NULL));
        assert_int_not_equal(result, RON_ERR_OK);
        if (again == 1) {
            io_index_builder_reset(builder, &of, 10);
            assert_ok(io_index_add(builder, &entry, NULL));
            assert_ok(io_index_write(builder, index_vfs, "idx", NULL));
            assert_ok(io_index_open(index_vfs, "idx", &of, &index, NULL));
            index = io_index_close(index);
        }
        builder = io_index_builder_free(builder);
        assert_int_equal(io_vfs_open(index_vfs, "idx.new", IO_OPEN_READ, &file, NULL),
                         RON_ERR_NOT_FOUND);
        index_vfs = io_vfs_free(index_vfs);
        assert_int_equal(ron_mem_live_count(), live_count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reported_faults_cost_nothing_acknowledged),
        CASE(silent_faults_never_make_up_a_record),
        CASE(what_an_open_finds_is_durable),
        CASE(no_byte_is_read_twice),
        CASE(an_index_outlives_a_panic),
        CASE(a_panic_leaves_no_half_an_index),
    };

    return cmocka_run_group_tests_name("log_faults", tests, NULL, NULL);
}
