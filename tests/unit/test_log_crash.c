/*
 * test_log_crash.c - nothing acknowledged is lost, whatever a crash leaves.
 *
 * Method: a trace of appends, waits, drops and re-opens runs on the real tasks; at every sync, of a
 * file or a directory, each image that a crash right then could leave (QUALITY's classes: subsets,
 * prefixes, losses, seeded, tears) is recovered and compared with what was acknowledged by then and
 * what was appended. Every eighth image is recovered twice: the segments' bytes must not change;
 * for every thousandth the recovery itself is crashed the same way. Indexes are part of all of it.
 *
 * So are the tiles of a Merkle log (io/tlog.h) that the durable records are leaves of: never ahead
 * of the log nor behind their last sync, and once recovery has appended what they lack, their root
 * is that of the records which the log still tells.
 *
 * covers: LED-F13 LED-V33
 */
#include "io/crash_images.h"
#include "io/tlog.h"
#include "log_recorder.h"
#include "log_world.h"
#include "merkle_oracle.h"

enum {
    OPERATIONS_SHORT = RON_ASAN || RON_TSAN ? 30 : 100, /* without an argument */
    OPERATIONS_LONG = 1000,
    BURST_MAX = 5,
    KEPT_MAX = 60, /* records that drops leave at least */
    LEAVES_MAX = OPERATIONS_LONG * BURST_MAX,
    NESTED_EVERY = 3000, /* images whose recovery is crashed, too */
    TWICE_EVERY = 8,     /* images that are recovered twice */
};
static unsigned operations_count = OPERATIONS_SHORT;

struct trace {
    struct rt_atomic_u64 appended;     /* the highest index handed to append */
    struct rt_atomic_u64 acknowledged; /* the highest index told durable */
    struct rt_atomic_u64 kept_from;    /* drops were asked up to here */
    struct rt_atomic_u64 tiled;        /* leaves that a sync of the tiles covers */
    struct io_crash_counts counts, nested_counts;
    uint64_t moments_count, nested_count, changes_max;
    uint64_t torn_count;
    uint64_t untiled_count; /* leaves that recoveries appended */
    uint64_t since_nested;  /* images */
};
static struct trace trace;

struct expectation {
    uint64_t appended, acknowledged, kept_from, tiled;
    bool sync; /* recovery makes the tiles durable, too */
};

/* The leaf of each record, and the root of the first n of them: by definition, when asked for. */
static struct ron_sha256 leaves[LEAVES_MAX], roots[LEAVES_MAX + 1];
static bool roots_known[LEAVES_MAX + 1];

static void make_leaves(void)
{
    uint8_t body[WORLD_RECORD_MAX];

    for (uint64_t i = 0; i < LEAVES_MAX; i++)
        leaves[i] = ron_merkle_leaf(body, world_body(i + 1, body));
}

static const struct ron_sha256 *root_of(uint64_t size)
{
    assert_true(size <= LEAVES_MAX);
    if (!roots_known[size])
        roots[size] = oracle_root(leaves, (size_t)size);
    roots_known[size] = true;
    return &roots[size];
}

static struct io_tlog *open_tiles(struct io_vfs *vfs) RON_BLOCKS
{
    const struct io_tlog_options options = {
        .vfs = vfs, .dir = "role/tiles", .cache_bytes = 2 << 20};
    struct ron_errinfo info = {0};
    struct io_tlog *tiles = NULL;

    if (io_tlog_open(&options, &tiles, &info) != RON_ERR_OK)
        fail_msg("tiles: %s", info.message);
    return tiles;
}

/* Append what the log tells beyond them; returns how much. */
static uint64_t feed_tiles(struct io_tlog *tiles, struct io_log *log) RON_BLOCKS
{
    struct io_log_reader *reader = NULL;
    struct io_frame frame;
    uint64_t count = 0;

    assert_ok(io_log_reader_new(log, io_tlog_size(tiles) + 1, &reader, NULL));
    while (io_log_reader_next(reader, &frame, NULL) == RON_ERR_OK) {
        const struct ron_sha256 leaf = ron_merkle_leaf(frame.body.data, frame.body.size);

        assert_int_equal(frame.index, io_tlog_size(tiles) + 1);
        assert_ok(io_tlog_append(tiles, &leaf, 1, NULL, NULL));
        count++;
    }
    reader = io_log_reader_free(reader);
    return count;
}

static void assert_tiles(struct io_vfs *image, struct io_log *log,
                         const struct expectation *expected) RON_BLOCKS
{
    const uint64_t last = io_log_last_durable(log);
    struct io_tlog *tiles = open_tiles(image);
    struct ron_sha256 root;

    if (io_tlog_size(tiles) < expected->tiled || io_tlog_size(tiles) > last)
        fail_msg("tiles of %llu leaves; %llu were synced, the log has %llu",
                 (unsigned long long)io_tlog_size(tiles), (unsigned long long)expected->tiled,
                 (unsigned long long)last);
    trace.untiled_count += feed_tiles(tiles, log);
    assert_int_equal(io_tlog_size(tiles), last);
    assert_ok(io_tlog_root(tiles, last, &root, NULL));
    assert_memory_equal(root.bytes, root_of(last)->bytes, sizeof(root.bytes));
    if (expected->sync)
        assert_ok(io_tlog_sync(tiles, NULL));
    tiles = io_tlog_free(tiles);
}

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
    assert_tiles(image, log, expected);
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
    struct expectation *expected = context;
    struct recorder recorder;

    (void)plan;
    (void)class;
    expected->sync = true;
    if (++trace.since_nested == NESTED_EVERY) {
        trace.since_nested = 0;
        trace.nested_count++;
        recorder_init(&recorder, image, crash_the_recovery, context);
        assert_recovered(&recorder.vfs, expected);
        io_vfs_free(&recorder.vfs);
    }
    if (trace.since_nested % TWICE_EVERY == 0) {
        assert_recovered_twice(image, expected);
    } else {
        expected->sync = false;
        assert_recovered(image, expected);
    }
    return true;
}

static void crash_now(struct recorder *recorder)
{
    const struct io_crash_options options = {.seed = trace.moments_count};
    const uint64_t changes = io_memory_unsynced_count(recorder->below);
    /* In this order: what is acknowledged later need not be in the image, what was appended
     * earlier may be. */
    struct expectation expected = {.acknowledged = rt_atomic_load_u64(&trace.acknowledged),
                                   .kept_from = rt_atomic_load_u64(&trace.kept_from),
                                   .tiled = rt_atomic_load_u64(&trace.tiled)};

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

/* What the trace works on. */
struct things {
    struct io_log *log;
    struct io_tlog *tiles;
    struct recorder *recorder;
};

/* The tiles get what is durable; some of it stays unsynced. */
static void tile(struct things *things, bool sync) RON_BLOCKS
{
    (void)feed_tiles(things->tiles, things->log);
    if (!sync) {
        assert_ok(io_tlog_flush(things->tiles, NULL));
        return;
    }
    assert_ok(io_tlog_sync(things->tiles, NULL));
    rt_atomic_store_u64(&trace.tiled, io_tlog_durable_size(things->tiles));
}

/* Only what the tiles hold for good may go. */
static void drop(struct things *things, uint64_t last) RON_BLOCKS
{
    const uint64_t tiled = rt_atomic_load_u64(&trace.tiled);
    uint64_t before = last > KEPT_MAX ? last - KEPT_MAX : 1, dropped = 0;

    before = before < tiled + 1 ? before : tiled + 1;
    if (before > rt_atomic_load_u64(&trace.kept_from))
        rt_atomic_store_u64(&trace.kept_from, before);
    assert_ok(io_log_drop_before(things->log, before, &dropped, NULL));
}

static void open_again(struct things *things, uint64_t last) RON_BLOCKS
{
    world_close(things->log);
    things->tiles = io_tlog_free(things->tiles);
    things->log = open_recorded(things->recorder);
    things->tiles = open_tiles(&things->recorder->vfs);
    assert_int_equal(io_tlog_size(things->tiles), rt_atomic_load_u64(&trace.tiled));
    assert_int_equal(io_log_last_durable(things->log), last);
    assert_int_equal(world_read(things->log, io_log_first_index(things->log)), last);
}

/* One operation of the trace; a burst of appends counts as one. */
static void operate(struct things *things, uint64_t *random) RON_BLOCKS
{
    const uint64_t roll = next_random(random) % 100;
    const uint64_t last = rt_atomic_load_u64(&trace.appended);

    if (roll < 76) {
        const uint64_t burst_end = last + 1 + next_random(random) % BURST_MAX;

        for (uint64_t i = last + 1; i <= burst_end; i++) {
            rt_atomic_store_u64(&trace.appended, i);
            assert_ok(world_append(things->log, i));
        }
    } else if (roll < 84) {
        tile(things, roll < 82);
    } else if (roll < 94) {
        assert_ok(io_log_wait(things->log, last, rt_deadline_after_ms(60000), NULL));
        assert_true(rt_atomic_load_u64(&trace.acknowledged) <= last);
    } else if (roll < 98) {
        drop(things, last);
    } else {
        open_again(things, last);
    }
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
    struct things things = {.recorder = &recorder};
    uint64_t random = 88172645463325252, total;

    (void)state;
    rt_atomic_store_u64(&trace.kept_from, 1);
    recorder_init(&recorder, memory, crash_now, NULL);
    make_leaves();
    things.log = open_recorded(&recorder);
    things.tiles = open_tiles(&recorder.vfs);
    for (unsigned i = 0; i < operations_count; i++)
        operate(&things, &random);
    world_close(things.log);
    things.tiles = io_tlog_free(things.tiles);
    io_vfs_free(&recorder.vfs);
    io_vfs_free(memory);
    total = print_counts("images", &trace.counts);
    total += print_counts("images of recoveries", &trace.nested_counts);
    print_message("# %u operations, %llu moments, at most %llu changes, %llu images, %llu torn "
                  "tails, %llu recoveries crashed, %llu leaves tiled again, %llu ms\n",
                  operations_count, (unsigned long long)trace.moments_count,
                  (unsigned long long)trace.changes_max, (unsigned long long)total,
                  (unsigned long long)trace.torn_count, (unsigned long long)trace.nested_count,
                  (unsigned long long)trace.untiled_count,
                  (unsigned long long)((rt_now_ns() - started_ns) / RT_NS_PER_MS));
    assert_true(total >= operations_count * 10);
    if (operations_count == OPERATIONS_LONG)
        assert_true(total >= 100000);
    assert_true(trace.torn_count > 0);
    assert_true(trace.nested_count > 0);
    assert_true(trace.untiled_count > 0);
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
