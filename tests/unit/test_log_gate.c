/*
 * test_log_gate.c - gates of a log: one filter for the keys of many segments, in place of theirs.
 *
 * Method: a log in memory without tasks, whose indexer's steps are done one by one, and after each
 * of them every key that was ever indexed is asked for: a gate may know too much, never too little.
 * At last a log with its tasks, asked by threads while it grows.
 */
#include <pthread.h>

#include "log_world.h"

static struct io_vfs *with_records(uint64_t count) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);

    world_append_many(log, 1, count);
    world_close(log);
    return vfs;
}

/* A log without tasks: all its indexes are there, no gate is. */
static struct io_log *open_idle(struct io_vfs *vfs) RON_BLOCKS
{
    struct io_log_options options = world_options(vfs);
    struct io_log_recovery recovery;
    struct io_log *log = NULL;

    options.supervisor = NULL;
    assert_ok(log_open_idle(&options, &log, &recovery, NULL));
    return log;
}

static struct log_segment *segment_at(struct io_log *log, uint32_t i)
{
    struct log_segment *segment;

    log_lock(log);
    segment = i < log->segments_count ? log->segments[i] : NULL;
    log_unlock(log);
    return segment;
}

/* Segments with an index, of which the first `count` by now. */
static uint32_t sealed_count(struct io_log *log)
{
    uint32_t count = 0;

    while (segment_at(log, count) != NULL && segment_at(log, count)->index != NULL)
        count++;
    return count;
}

static bool is_due(struct io_log *log)
{
    uint64_t at_ns = 0;
    bool due;

    log_lock(log);
    due = log_gate_is_due(log, &at_ns);
    log_unlock(log);
    return due;
}

/* Every key of every indexed record is asked for, one by one and together. */
static void assert_knows(struct io_log *log, uint64_t first) RON_BLOCKS
{
    const uint64_t last = io_log_last_indexed(log);
    struct io_log_place place;
    uint8_t keys[64][16];

    assert_true(last >= first);
    for (uint64_t i = first; i <= last; i += 64) {
        const size_t count = last - i + 1 < 64 ? (size_t)(last - i + 1) : 64;
        uint64_t bits = 0;

        for (size_t k = 0; k < count; k++) {
            world_key(i + k, 0, keys[k]);
            assert_ok(io_log_find(log, keys[k], &place, NULL));
            assert_int_equal(place.index, i + k);
        }
        io_log_may_have(log, &(struct io_log_keys){keys[0], 16, count}, UINT64_MAX, &bits);
        assert_int_equal(bits, count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1);
    }
}

/* Keys that were never appended: how many of 1,000 may be there. */
static unsigned strangers(struct io_log *log) RON_BLOCKS
{
    unsigned wrong = 0;

    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t bit = 0;
        uint8_t key[16];

        world_key(1000000 + i, 0, key);
        io_log_may_have(log, &(struct io_log_keys){key, 16, 1}, UINT64_MAX, &bit);
        wrong += bit != 0;
    }
    return wrong;
}

static enum ron_err step_fn(struct rt_task *task, void *log) RON_BLOCKS
{
    (void)task;
    log_gate_step(log);
    return RON_ERR_OK;
}

/* As the indexer does it. */
static enum ron_err step(struct io_log *log) RON_BLOCKS
{
    const struct rt_task_options options = {.kind = "step",
                                            .name = "step",
                                            .owner = "test",
                                            .fn = step_fn,
                                            .argument = log,
                                            .restart = RT_RESTART_NEVER};
    enum ron_err result = RON_ERR_OK;
    struct rt_task *task = NULL;

    assert_ok(rt_task_spawn(world_supervisor, &options, &task, NULL));
    assert_ok(rt_task_join(task, rt_deadline_after_ms(20000), &result, NULL));
    return result;
}

/* Do all steps; after each of them all is known. Returns how many there were. */
static unsigned do_steps(struct io_log *log, uint64_t first) RON_BLOCKS
{
    unsigned count = 0;

    while (is_due(log)) {
        assert_ok(step(log));
        assert_knows(log, first);
        assert_true(++count < 1000);
    }
    return count;
}

static bool has_filter(struct log_segment *segment)
{
    uint8_t key[16];
    unsigned maybe = 0;

    for (uint64_t i = 0; i < 100; i++) {
        world_key(2000000 + i, 0, key);
        maybe += io_index_may_have(segment->index, key);
    }
    return maybe < 100;
}

/* Until a gate is open each is asked by its own filter; then none of those is kept. Sixteen
 * neighbours share one gate, four of the rest another, and what is left has its own filter. */
static void neighbours_share_a_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(1100);
    struct io_log *log = open_idle(vfs);
    const uint32_t sealed = sealed_count(log);
    unsigned steps = 0;

    (void)state;
    assert_in_range(sealed, 20, 23);
    while (log->gate_work.gate == NULL || log->gate_work.next_number <= 16) {
        assert_ok(step(log));
        steps++;
        for (uint32_t i = 0; i < sealed; i++) {
            assert_null(segment_at(log, i)->gate);
            assert_true(has_filter(segment_at(log, i)));
            assert_true((segment_at(log, i)->joining != NULL) == (i + 1 < steps));
        }
        assert_knows(log, 1);
    }
    assert_int_equal(steps, 17);
    assert_int_equal(do_steps(log, 1), 1 + 6);
    for (uint32_t i = 0; i < sealed; i++) {
        const struct log_gate *gate = segment_at(log, i)->gate;

        assert_null(segment_at(log, i)->joining);
        assert_true(has_filter(segment_at(log, i)) == (i >= 20));
        assert_true(i >= 20 ? gate == NULL : gate == segment_at(log, i < 16 ? 0 : 16)->gate);
    }
    assert_int_equal(segment_at(log, 0)->gate->level, 2);
    assert_int_equal(segment_at(log, 0)->gate->uses_count, 16);
    assert_int_equal(segment_at(log, 16)->gate->level, 1);
    assert_int_equal(segment_at(log, 16)->gate->uses_count, 4);
    assert_true(strangers(log) < 50);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* Gates of four become one of sixteen: nothing is lost on the way, no old gate stays. */
static void gates_grow_with_the_log(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(500);
    struct io_log *log;

    (void)state;
    for (uint64_t last = 500; last <= 2000; last += 500) {
        uint32_t sealed;

        log = open_idle(vfs); /* a start begins with none */
        sealed = sealed_count(log);
        assert_null(segment_at(log, 0)->gate);
        (void)do_steps(log, 1);
        assert_non_null(segment_at(log, sealed / 4 * 4 - 1)->gate);
        log_destroy(log);
        if (last < 2000) {
            log = world_open(vfs);
            world_append_many(log, last + 1, last + 500);
            world_close(log);
        }
    }
    log = open_idle(vfs);
    /* As it grows: the newest are not there yet. */
    log_lock(log);
    for (uint32_t i = 12; i < log->segments_count; i++) {
        log->segments[i]->retired = log->segments[i]->index;
        log->segments[i]->index = NULL;
    }
    log_unlock(log);
    assert_int_equal(do_steps(log, 1), 3 * 6);
    assert_ptr_not_equal(segment_at(log, 3)->gate, segment_at(log, 4)->gate);
    log_lock(log);
    for (uint32_t i = 12; i < log->segments_count; i++)
        log->segments[i]->index = RON_TAKE(log->segments[i]->retired);
    log_unlock(log);
    (void)do_steps(log, 1);
    assert_int_equal(segment_at(log, 3)->gate->level, 2);
    assert_ptr_equal(segment_at(log, 0)->gate, segment_at(log, 15)->gate);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* An index that is built again, before its gate opens or after: it is asked by its own filter. */
static void index_that_is_built_again_leaves_its_gate(void **state) RON_BLOCKS
{
    static const char *const paths[] = {"role/log/idx-0000000000000001",
                                        "role/log/idx-0000000000000002"};
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);

    (void)state;
    assert_in_range(sealed_count(log), 5, 7);
    for (unsigned i = 0; i < 3; i++) /* begin, and two join */
        assert_ok(step(log));
    assert_non_null(segment_at(log, 0)->joining);
    world_flip(vfs, paths[0], 4096 + 40);
    assert_knows(log, 1); /* which meets the damage */
    assert_null(segment_at(log, 0)->joining);
    assert_non_null(segment_at(log, 1)->joining);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(step(log));
    assert_null(segment_at(log, 0)->gate);
    assert_non_null(segment_at(log, 1)->gate);
    assert_int_equal(segment_at(log, 1)->gate->uses_count, 3);
    assert_true(has_filter(segment_at(log, 0)));
    assert_knows(log, 1);
    world_flip(vfs, paths[1], 4096 + 40);
    assert_knows(log, 1);
    assert_null(segment_at(log, 1)->gate);
    assert_true(has_filter(segment_at(log, 1)));
    assert_int_equal(segment_at(log, 2)->gate->uses_count, 2);
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 2);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* A page that cannot be believed is no key less: no gate opens, everybody keeps his filter. */
static void damaged_page_opens_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);

    (void)state;
    world_flip(vfs, "role/log/idx-0000000000000003", 4096 + 40);
    for (unsigned i = 0; i < 4; i++) /* begin; two join, the third does not */
        assert_ok(step(log));
    assert_null(log->gate_work.gate);
    assert_false(is_due(log)); /* for a while */
    for (uint32_t i = 0; i < sealed_count(log); i++) {
        assert_null(segment_at(log, i)->joining);
        assert_null(segment_at(log, i)->gate);
        assert_true(has_filter(segment_at(log, i)));
    }
    assert_knows(log, 1); /* and builds it again */
    log->gate_work.retry.at_ns = 0;
    assert_int_equal(do_steps(log, 1), 6);
    assert_non_null(segment_at(log, 2)->gate);
    log_destroy(log);
    io_vfs_free(vfs);
}

static enum ron_err panicking_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                   size_t *ret_size, struct ron_errinfo *reterr)
{
    (void)file, (void)offset, (void)bytes, (void)size, (void)ret_size, (void)reterr;
    rt_panic("as the test told it");
}

/* The task that fills a gate panics: the gate is given up, and no segment stays pinned. */
static void panic_opens_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    const struct io_vfs_ops *const ops = vfs->ops;
    struct io_vfs_ops panicking = *ops;

    (void)state;
    panicking.read = panicking_read;
    for (unsigned i = 0; i < 3; i++)
        assert_ok(step(log));
    vfs->ops = &panicking;
    assert_int_not_equal(step(log), RON_ERR_OK);
    vfs->ops = ops;
    assert_null(log->gate_work.gate);
    for (uint32_t i = 0; i < sealed_count(log); i++) {
        assert_null(segment_at(log, i)->joining);
        assert_int_equal(segment_at(log, i)->pins_count, 0);
    }
    assert_knows(log, 1);
    log->gate_work.retry.at_ns = 0;
    assert_int_equal(do_steps(log, 1), 6);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* Dropped before it could join, while joined, and of an open gate, whose memory goes with the last.
 */
static void dropped_segments_leave_their_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    const uint64_t live = ron_mem_live_count();
    uint64_t dropped = 0;

    (void)state;
    assert_in_range(sealed_count(log), 5, 7);
    assert_ok(step(log));
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_int_equal(dropped, 1);
    assert_ok(step(log));
    assert_non_null(segment_at(log, 0)->joining);
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    for (unsigned i = 0; i < 3; i++)
        assert_ok(step(log));
    assert_null(log->gate_work.gate);
    assert_int_equal(segment_at(log, 0)->gate->uses_count, 2);
    assert_int_equal(segment_at(log, 0)->number, 3);
    assert_knows(log, io_log_first_index(log));
    (void)do_steps(log, io_log_first_index(log));
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_int_equal(segment_at(log, 0)->gate->uses_count, 1);
    assert_knows(log, io_log_first_index(log));
    while (io_log_last_indexed(log) > 0)
        assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_true(ron_mem_live_count() < live);
    log_destroy(log);
    io_vfs_free(vfs);
}

struct failing {
    unsigned left;
};
static bool fail_one(size_t size, void *context)
{
    struct failing *failing = context;

    (void)size;
    return failing->left-- == 0;
}

/* Whichever allocation fails, nothing but time is lost. */
static void no_memory_is_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);

    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        struct io_log *log = open_idle(vfs);
        struct failing failing = {which};
        const uint64_t live = ron_mem_live_count();

        ron_mem_set_fail_hook(fail_one, &failing);
        log_gate_step(log); /* begins, which needs no task */
        ron_mem_set_fail_hook(NULL, NULL);
        assert_null(log->gate_work.gate);
        assert_int_equal(ron_mem_live_count(), live);
        assert_false(is_due(log));
        assert_knows(log, 1);
        log->gate_work.retry.at_ns = 0;
        assert_int_equal(do_steps(log, 1), 6);
        assert_non_null(segment_at(log, 0)->gate);
        log_destroy(log);
    }
    io_vfs_free(vfs);
}

/* A log without keys has nothing to ask for. */
static void log_without_keys_has_no_gates(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log_options options = world_options(vfs);
    struct io_log_recovery recovery;
    struct io_log *log = NULL;

    (void)state;
    options.supervisor = NULL;
    options.keys = NULL;
    assert_ok(log_open_idle(&options, &log, &recovery, NULL));
    assert_true(sealed_count(log) >= 4);
    assert_false(is_due(log));
    log_destroy(log);
    io_vfs_free(vfs);
}

/* --- With its tasks ----------------------------------------------------------------------------
 */

static struct rt_atomic_u32 over;

/* What is indexed is known, at any time. */
static void *asker_fn(void *argument) RON_BLOCKS
{
    struct io_log *log = argument;
    uint64_t round = 0;

    do {
        const uint64_t last = io_log_last_indexed(log);
        uint8_t keys[64][16];
        uint64_t bits = 0;

        if (last < 64)
            continue;
        for (uint64_t i = 0; i < 64; i++)
            world_key(1 + (round * 31 + i * 7919) % last, 0, keys[i]);
        io_log_may_have(log, &(struct io_log_keys){keys[0], 16, 64}, UINT64_MAX, &bits);
        if (bits != UINT64_MAX)
            return argument;
        for (unsigned i = 0; i < 4; i++) {
            struct io_log_place place;

            if (io_log_find(log, keys[round++ % 64], &place, NULL) != RON_ERR_OK)
                return argument;
        }
    } while (rt_atomic_load_u32(&over) == 0);
    return NULL;
}

static void keys_are_known_while_gates_open(void **state) RON_BLOCKS
{
    enum { ASKERS = 2, RECORDS = 3000 };
    struct io_vfs *vfs = world_memory();
    struct io_log *log = world_open(vfs);
    pthread_t threads[ASKERS];

    (void)state;
    rt_atomic_store_u32(&over, 0);
    for (unsigned i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, asker_fn, log), 0);
    world_append_many(log, 1, RECORDS);
    for (bool done = false; !done;) { /* there are gates for the first 32 */
        (void)sched_yield();
        log_lock(log);
        done = log->segments[15]->gate != NULL && log->segments[31]->gate != NULL;
        log_unlock(log);
    }
    rt_atomic_store_u32(&over, 1);
    for (unsigned i = 0; i < ASKERS; i++) {
        void *missed = NULL;

        assert_int_equal(pthread_join(threads[i], &missed), 0);
        assert_null(missed);
    }
    assert_knows(log, 1);
    world_close(log);
    io_vfs_free(vfs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(neighbours_share_a_gate),
        CASE(gates_grow_with_the_log),
        CASE(index_that_is_built_again_leaves_its_gate),
        CASE(damaged_page_opens_no_gate),
        CASE(panic_opens_no_gate),
        CASE(dropped_segments_leave_their_gate),
        CASE(no_memory_is_no_gate),
        CASE(log_without_keys_has_no_gates),
        CASE(keys_are_known_while_gates_open),
    };

    return cmocka_run_group_tests_name("log_gate", tests, NULL, NULL);
}
