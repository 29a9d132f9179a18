/*
 * test_log_figures.c - what a log shows of itself: its row in the registry and its metrics. Method:
 * a log in memory with metrics; figures are compared with io_log_get_stats and with what was done.
 */
#include <sched.h>

#include "io/vfs_faulty.h"
#include "log_world.h"

enum { RECORDS_COUNT = 120 };

static struct rt_metrics *metrics;
static struct io_log_recovery opened; /* of open_named */

static int setup(void **state)
{
    static const struct rt_metric_table table = {io_log_metric_table, IO_LOG_METRIC__COUNT};

    assert_int_equal(world_setup(state), 0);
    return rt_metrics_new(&table, 1, &metrics, NULL) == RON_ERR_OK ? 0 : -1;
}

static int teardown(void **state) RON_BLOCKS
{
    metrics = rt_metrics_free(metrics);
    return world_teardown(state);
}

static struct io_log *open_named(struct io_vfs *vfs, const char *name,
                                 enum io_log_damage_policy damage) RON_BLOCKS
{
    struct io_log_options options = world_options(vfs);
    struct io_log *log = NULL;

    options.metrics = metrics;
    options.name = name;
    options.damage = damage;
    assert_ok(io_log_open(&options, &log, &opened, NULL));
    return log;
}

static uint64_t counted(unsigned metric, const char *name)
{
    return rt_metric_sum(rt_metrics_counter(metrics, &io_log_metric_table[metric], &name));
}

static int64_t level(unsigned metric, const char *name)
{
    return rt_metric_level(rt_metrics_gauge(metrics, &io_log_metric_table[metric], &name));
}

static bool page_has(const char *line)
{
    struct ron_buf buf;
    bool found;

    ron_buf_init(&buf, 1 << 20);
    assert_ok(rt_metrics_write(metrics, &buf, NULL));
    assert_ok(ron_buf_reserve(&buf, buf.size + 1, NULL));
    buf.data[buf.size] = '\0';
    found = strstr((const char *)buf.data, line) != NULL;
    ron_buf_fini(&buf);
    return found;
}

/* How many rows of logs there are, and the last of them. */
static unsigned rows(struct rt_registry_entry *ret_entry)
{
    static struct rt_registry_entry entries[RT_REGISTRY_MAX];
    const size_t count = rt_registry_list(entries, RT_REGISTRY_MAX);
    unsigned logs = 0;

    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind == RT_KIND_LOG) {
            *ret_entry = entries[i];
            logs++;
        }
    }
    return logs;
}

static void figures_are_counted(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = open_named(vfs, "books", IO_LOG_STRICT);
    struct io_log_stats stats;

    (void)state;
    world_append_many(log, 1, RECORDS_COUNT);
    stats = io_log_get_stats(log);
    world_close(log); /* the writer has counted all of it */
    assert_int_equal(counted(IO_LOG_METRIC_RECORDS, "books"), RECORDS_COUNT);
    assert_int_equal(counted(IO_LOG_METRIC_GROUPS, "books"), stats.groups_count);
    assert_int_equal(counted(IO_LOG_METRIC_BYTES, "books"), stats.bytes_count);
    assert_int_equal(counted(IO_LOG_METRIC_SYNCS, "books"), stats.syncs_count);
    assert_true(counted(IO_LOG_METRIC_ZEROED, "books") >= stats.zeroed_bytes);
    assert_true(stats.zeroed_bytes > 0);
    assert_int_equal(counted(IO_LOG_METRIC_WAITS, "books"), stats.waits_for_zeros);
    assert_int_equal(level(IO_LOG_METRIC_DURABLE, "books"), RECORDS_COUNT);
    assert_true(page_has("log_records_total{log=\"books\"} 120\n"));
    assert_true(page_has("log_sync_seconds_bucket{log=\"books\",le=\"+Inf\"}"));
    assert_true(page_has("log_broken{log=\"books\"} 0\n"));
    io_vfs_free(vfs);
}

enum { CACHED = 32 << 10, SEGMENT = 16 << 10 };

/* The task has let go of as much as it should, and of no more. */
static void await_cold(struct io_log *log)
{
    struct io_log_stats stats;

    do {
        (void)sched_yield();
        stats = io_log_get_stats(log);
    } while (stats.uncached_bytes + CACHED + SEGMENT <= stats.zeroed_bytes);
    assert_true(stats.uncached_bytes > 0);
    assert_true(stats.uncached_bytes + CACHED <= stats.zeroed_bytes + SEGMENT); /* open's zeros */
}

/* What was let go of the segments from the first on, which was so as a whole; none after it. */
static uint64_t cold_bytes(struct io_log *log) RON_BLOCKS
{
    uint64_t sum = 0, bytes = SEGMENT;

    for (uint64_t number = 1; bytes > 0; number++) {
        char path[IO_PATH_MAX + 1];
        struct io_file *file = NULL;

        log_path(log, LOG_FILE_SEGMENT, number, path);
        assert_ok(io_vfs_open(log->options.vfs, path, IO_OPEN_READ, &file, NULL));
        bytes = io_memory_uncached(file);
        assert_true(bytes == 0 || (bytes <= SEGMENT && sum % SEGMENT == 0));
        sum += bytes;
        (void)io_file_close(file);
    }
    return sum;
}

/* What is far behind leaves the system's cache, as fast as zeros are added; it stays readable, and
 * what retention took meanwhile is passed over. */
static void what_is_behind_is_let_go(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log;
    uint64_t dropped = 0;

    (void)state;
    options.cached_bytes = CACHED;
    log = world_open_as(&options);
    world_append_many(log, 1, 60); /* less than that */
    assert_int_equal(io_log_get_stats(log).uncached_bytes, 0);
    world_append_many(log, 61, 500);
    await_cold(log);
    assert_int_equal(cold_bytes(log), io_log_get_stats(log).uncached_bytes);
    assert_int_equal(world_read(log, 1), 500);
    assert_ok(io_log_drop_before(log, 500, &dropped, NULL));
    world_append_many(log, 501, 1000);
    await_cold(log);
    world_close(log);
    io_vfs_free(vfs);
}

static void row_lives_as_long_as_the_log(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct rt_registry_entry entry;
    struct io_log *log;

    (void)state;
    assert_int_equal(rows(&entry), 0);
    log = open_named(vfs, "rows", IO_LOG_STRICT);
    assert_int_equal(rows(&entry), 1);
    assert_string_equal(entry.name, "rows");
    assert_string_equal(rt_kind_name(entry.kind), "log");
    assert_int_equal(entry.capacity, 4096);
    assert_non_null(strstr(entry.policy, "STORAGE_BUSY"));
    world_close(log);
    assert_int_equal(rows(&entry), 0);
    io_vfs_free(vfs);
}

static void full_registry_opens_no_log(void **state) RON_BLOCKS
{
    static const char fillers[RT_REGISTRY_MAX];
    struct rt_registry_entry filler = {
        .kind = RT_KIND_QUEUE, .name = "filler", .policy = "", .owner = ""};
    struct io_vfs *vfs = world_memory();
    const struct io_log_options options = world_options(vfs);
    struct io_log_recovery recovery;
    struct io_log *log = NULL;
    size_t count = 0;

    (void)state;
    filler.object = &fillers[count];
    while (rt_registry_add(&filler, NULL) == RON_ERR_OK)
        filler.object = &fillers[++count];
    assert_int_equal(io_log_open(&options, &log, &recovery, NULL), RON_ERR_BUSY);
    assert_null(log);
    while (count > 0)
        rt_registry_remove(&fillers[--count]);
    log = world_open(vfs); /* whose owner let go of it */
    world_close(log);
    io_vfs_free(vfs);
}

static void broken_log_says_so(void **state) RON_BLOCKS
{
    static const struct io_fault fault = {.kind = IO_FAULT_SYNC_EIO,
                                          .call = IO_CALL_SYNC,
                                          .path_prefix = "role/log/seg-",
                                          .at = 2, /* the first is of the open */
                                          .times = 1};
    const struct io_faulty_options faults = {.faults = &fault, .faults_count = 1};
    struct io_vfs *memory = world_memory(), *vfs = NULL;
    struct io_log *log;
    uint64_t index = 0;
    const struct ron_slice part = RON_SLICE("lost");

    (void)state;
    world_close(open_named(memory, "fragile", IO_LOG_STRICT));
    assert_ok(io_vfs_faulty_new(memory, &faults, &vfs, NULL));
    log = open_named(vfs, "fragile", IO_LOG_STRICT);
    assert_int_equal(level(IO_LOG_METRIC_BROKEN, "fragile"), 0);
    if (io_log_append(log, 1, &part, 1, &index, NULL) == RON_ERR_OK)
        assert_int_equal(io_log_wait(log, index, rt_deadline_after_ms(20000), NULL), RON_ERR_IO);
    assert_int_equal(io_log_close(log, rt_deadline_after_ms(20000), NULL), RON_ERR_IO);
    assert_int_equal(level(IO_LOG_METRIC_BROKEN, "fragile"), 1);
    assert_int_equal(counted(IO_LOG_METRIC_SYNCS, "fragile"), 0);
    io_vfs_free(vfs);
    log = open_named(memory, "fragile", IO_LOG_STRICT);
    assert_int_equal(level(IO_LOG_METRIC_BROKEN, "fragile"), 0);
    world_close(log);
    io_vfs_free(memory);
}

static void damaged_log_says_so(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = open_named(vfs, "damaged", IO_LOG_UP_TO_DAMAGE);
    struct rt_registry_entry entry;

    (void)state;
    world_append_many(log, 1, 5);
    assert_int_equal(level(IO_LOG_METRIC_DAMAGED, "damaged"), 0);
    world_close(log);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 50);
    log = open_named(vfs, "damaged", IO_LOG_UP_TO_DAMAGE);
    assert_int_equal(level(IO_LOG_METRIC_DAMAGED, "damaged"), 1);
    assert_int_equal(level(IO_LOG_METRIC_DURABLE, "damaged"), 0);
    assert_int_equal(rows(&entry), 1);
    assert_string_equal(entry.policy, "is only read");
    world_close(log);
    io_vfs_free(vfs);
}

/* A record that was written, but not its group's end: what a crash leaves. */
static void torn_bytes_are_counted(void **state) RON_BLOCKS
{
    static const uint8_t keep[64];
    const struct io_crash_plan plan = {.keep = keep, .torn = SIZE_MAX};
    struct io_vfs *vfs = world_memory(), *image = NULL;
    struct io_log *log = open_named(vfs, "torn", IO_LOG_STRICT);
    struct ron_buf bytes;
    uint64_t end;

    (void)state;
    world_append_many(log, 1, 1);
    world_append_many(log, 2, 2);
    assert_true(io_memory_unsynced_count(vfs) <= 8 * sizeof(keep));
    assert_ok(io_memory_crash(vfs, &plan, &image, NULL)); /* before the close: not clean */
    world_close(log);
    io_vfs_free(vfs);
    bytes = world_file(image, SEG1);
    for (end = bytes.size; bytes.data[end - 1] == 0; end--)
        continue;
    ron_buf_fini(&bytes);
    world_flip(image, SEG1, end - 1); /* of the last commit */
    assert_int_equal(counted(IO_LOG_METRIC_TORN, "torn"), 0);
    log = open_named(image, "torn", IO_LOG_STRICT);
    assert_int_equal(io_log_last_durable(log), 1);
    assert_true(opened.torn_bytes > 0);
    assert_int_equal(counted(IO_LOG_METRIC_TORN, "torn"), opened.torn_bytes);
    assert_int_equal(counted(IO_LOG_METRIC_SKIPPED, "torn"), 0);
    world_close(log);
    world_close(open_named(image, "torn", IO_LOG_STRICT)); /* it was mended: nothing is added */
    assert_int_equal(opened.torn_bytes, 0);
    assert_true(counted(IO_LOG_METRIC_TORN, "torn") > 0);
    io_vfs_free(image);
}

static void skipped_damage_is_counted(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = open_named(vfs, "skipped", IO_LOG_SKIP);

    (void)state;
    for (uint64_t i = 1; i <= 20; i++)
        world_append_many(log, i, i);
    world_close(log);
    assert_int_equal(counted(IO_LOG_METRIC_SKIPPED, "skipped"), 0);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 300);
    world_flip(vfs, SEG1, IO_SEGMENT_HEAD_SIZE + 2000);
    log = open_named(vfs, "skipped", IO_LOG_SKIP);
    assert_int_equal(opened.skipped_count, 2);
    assert_int_equal(counted(IO_LOG_METRIC_SKIPPED, "skipped"), 2);
    assert_int_equal(counted(IO_LOG_METRIC_TORN, "skipped"), 0);
    world_close(log);
    io_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_counted),
        cmocka_unit_test(what_is_behind_is_let_go),
        cmocka_unit_test(row_lives_as_long_as_the_log),
        cmocka_unit_test(full_registry_opens_no_log),
        cmocka_unit_test(broken_log_says_so),
        cmocka_unit_test(damaged_log_says_so),
        cmocka_unit_test(torn_bytes_are_counted),
        cmocka_unit_test(skipped_damage_is_counted),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
