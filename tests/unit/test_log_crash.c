/*
 * test_log_crash.c - nothing acknowledged is lost, whatever a crash leaves.
 *
 * Method: a trace of appends, waits, drops and re-opens runs on the real tasks; at every sync, of a
 * file or a directory, each image that a crash right then could leave (QUALITY's classes: subsets,
 * prefixes, losses, seeded, tears) is recovered and compared with what was acknowledged by then and
 * what was appended. Every eighth image is recovered twice: the segments' bytes must not change;
 * for every thousandth the recovery itself is crashed the same way. Indexes are part of all of it.
 *
 * covers: LED-F13 LED-V33
 */
#include "io/crash_images.h"
#include "log_recorder.h"
#include "log_world.h"

enum {
    OPERATIONS_SHORT = RON_ASAN || RON_TSAN ? 30 : 100, /* without an argument */
    OPERATIONS_LONG = 1000,
    BURST_MAX = 5,
    NESTED_EVERY = 2000, /* images whose recovery is crashed, too */
    TWICE_EVERY = 8,     /* images that are recovered twice */
};
static unsigned operations_count = OPERATIONS_SHORT;

struct trace {
    struct rt_atomic_u64 appended;     /* the highest index handed to append */
    struct rt_atomic_u64 acknowledged; /* the highest index told durable */
    struct rt_atomic_u64 kept_from;    /* drops were asked up to here */
    struct io_crash_counts counts, nested_counts;
    uint64_t moments_count, nested_count, changes_max;
    uint64_t torn_count;
    uint64_t since_nested; /* images */
};
static struct trace trace;

struct expectation {
    uint64_t appended, acknowledged, kept_from;
};

static void assert_recovered(struct io_vfs *image, const struct expectation *expected) RON_BLOCKS
{
    struct io_log_options options = world_options(image);
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;
    uint64_t last;

    options.supervisor = NULL;
    if (log_open_idle(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("recovery: %s", info.message);
    assert_true(recovery.first_index <= expected->kept_from);
    last = world_read(log, recovery.first_index);
    assert_int_equal(last, recovery.last_index);
    if (last < expected->acknowledged || last > expected->appended)
        fail_msg("records up to %llu; %llu were acknowledged, %llu appended",
                 (unsigned long long)last, (unsigned long long)expected->acknowledged,
                 (unsigned long long)expected->appended);
    trace.torn_count += recovery.torn_bytes > 0;
    log_destroy(log);
}

static void assert_recovered_twice(struct io_vfs *image,
                                   const struct expectation *expected) RON_BLOCKS
{
    struct ron_b3 first, second;

    assert_recovered(image, expected);
    first = world_sum(image, true);
    assert_recovered(image, expected);
    second = world_sum(image, true);
    assert_memory_equal(first.bytes, second.bytes, sizeof(first.bytes));
}

/* An image of a recovery that was cut short. */
static bool check_nested(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                         enum io_crash_class class) RON_BLOCKS
{
    (void)plan;
    (void)class;
    assert_recovered(image, context);
    return true;
}

static void crash_the_recovery(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.nested_count, .tears_max = 4};

    assert_ok(io_crash_images(recorder->below, &options, check_nested, recorder->context,
                              &trace.nested_counts, NULL));
}

static bool check_image(void *context, struct io_vfs *image, const struct io_crash_plan *plan,
                        enum io_crash_class class) RON_BLOCKS
{
    const struct expectation *expected = context;
    struct recorder recorder;

    (void)plan;
    (void)class;
    if (++trace.since_nested == NESTED_EVERY) {
        trace.since_nested = 0;
        trace.nested_count++;
        recorder_init(&recorder, image, crash_the_recovery, context);
        assert_recovered(&recorder.vfs, expected);
        io_vfs_free(&recorder.vfs);
    }
    if (trace.since_nested % TWICE_EVERY == 0)
        assert_recovered_twice(image, expected);
    else
        assert_recovered(image, expected);
    return true;
}

static void crash_now(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.moments_count};
    const uint64_t changes = io_memory_unsynced_count(recorder->below);
    /* In this order: what is acknowledged later need not be in the image, what was appended
     * earlier may be. */
    struct expectation expected = {.acknowledged = rt_atomic_load_u64(&trace.acknowledged),
                                   .kept_from = rt_atomic_load_u64(&trace.kept_from)};

    expected.appended = rt_atomic_load_u64(&trace.appended);
    trace.moments_count++;
    if (changes > trace.changes_max)
        trace.changes_max = changes;
    assert_ok(
        io_crash_images(recorder->below, &options, check_image, &expected, &trace.counts, NULL));
}

static void note_durable(void *context, uint64_t index)
{
    (void)context;
    rt_atomic_store_u64(&trace.acknowledged, index);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct io_log *open_recorded(struct recorder *recorder) RON_BLOCKS
{
    struct io_log_options options = world_options(&recorder->vfs);
    struct io_log_recovery recovery;
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;

    options.on_durable = note_durable;
    if (io_log_open(&options, &log, &recovery, &info) != RON_ERR_OK)
        fail_msg("%s", info.message);
    assert_true(recovery.clean || recovery.epoch == 1);
    return log;
}

/* One operation of the trace; a burst of appends counts as one. */
static struct io_log *operate(struct io_log *log, struct recorder *recorder,
                              uint64_t *random) RON_BLOCKS
{
    const uint64_t roll = next_random(random) % 100;
    const uint64_t last = rt_atomic_load_u64(&trace.appended);
    uint64_t dropped = 0;

    if (roll < 82) {
        const uint64_t burst_end = last + 1 + next_random(random) % BURST_MAX;

        for (uint64_t i = last + 1; i <= burst_end; i++) {
            rt_atomic_store_u64(&trace.appended, i);
            assert_ok(world_append(log, i));
        }
    } else if (roll < 96) {
        assert_ok(io_log_wait(log, last, rt_deadline_after_ms(60000), NULL));
        assert_true(rt_atomic_load_u64(&trace.acknowledged) <= last);
    } else if (roll < 98) {
        const uint64_t before = last > 100 ? last - 100 : 1;

        if (before > rt_atomic_load_u64(&trace.kept_from))
            rt_atomic_store_u64(&trace.kept_from, before);
        assert_ok(io_log_drop_before(log, before, &dropped, NULL));
    } else {
        world_close(log);
        log = open_recorded(recorder);
        assert_int_equal(io_log_last_durable(log), last);
        assert_int_equal(world_read(log, io_log_first_index(log)), last);
    }
    return log;
}

static uint64_t print_counts(const char *what, const struct io_crash_counts *counts)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < IO_CRASH__MAX; i++) {
        print_message("# %s %s: %llu\n", what, io_crash_class_name((enum io_crash_class)i),
                      (unsigned long long)counts->images[i]);
        total += counts->images[i];
    }
    return total;
}

static void nothing_acknowledged_is_lost_and_nothing_is_made_up(void **state) RON_BLOCKS
{
    struct io_vfs *memory = world_memory();
    const uint64_t started_ns = rt_now_ns();
    struct recorder recorder;
    struct io_log *log;
    uint64_t random = 88172645463325252, total;

    (void)state;
    rt_atomic_store_u64(&trace.kept_from, 1);
    recorder_init(&recorder, memory, crash_now, NULL);
    log = open_recorded(&recorder);
    for (unsigned i = 0; i < operations_count; i++)
        log = operate(log, &recorder, &random);
    world_close(log);
    io_vfs_free(&recorder.vfs);
    io_vfs_free(memory);
    total = print_counts("images", &trace.counts);
    total += print_counts("images of recoveries", &trace.nested_counts);
    print_message("# %u operations, %llu moments, at most %llu changes, %llu images, %llu torn "
                  "tails, %llu recoveries crashed, %llu ms\n",
                  operations_count, (unsigned long long)trace.moments_count,
                  (unsigned long long)trace.changes_max, (unsigned long long)total,
                  (unsigned long long)trace.torn_count, (unsigned long long)trace.nested_count,
                  (unsigned long long)((rt_now_ns() - started_ns) / RT_NS_PER_MS));
    assert_true(total >= operations_count * 10);
    if (operations_count == OPERATIONS_LONG)
        assert_true(total >= 100000);
    assert_true(trace.torn_count > 0);
    assert_true(trace.nested_count > 0);
}

/* `test_log_crash long` is the trace of 1,000 operations. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_and_nothing_is_made_up,
                                        world_setup, world_teardown),
    };

    if (argc == 2 && strcmp(argv[1], "long") == 0)
        operations_count = OPERATIONS_LONG;
    trace.since_nested = NESTED_EVERY - 200; /* a short trace has one, too */
    return cmocka_run_group_tests_name("log_crash", tests, NULL, NULL);
}
