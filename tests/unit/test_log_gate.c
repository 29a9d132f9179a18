/*
 * test_log_gate.c - gates of a log: one filter for the keys of many segments, in place of theirs.
 *
 * Method: a log in memory without tasks, whose indexer's steps are done one by one, and after each
 * of them every key that was ever indexed is asked for: a gate may know too much, never too little.
 * At last a log with its tasks, asked by threads while it grows.
 * tidy: long file because all steps of a gate are asked after in one way.
 */
#include <pthread.h>

#include "base/mem.h"
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

static struct log_gate *gate_at(struct io_log *log, uint32_t i)
{
    return segment_at(log, i)->gate;
}

/* A step puts one segment behind a gate, the oldest first: before that it is asked by its own
 * filter, from then on that is not kept. After a start one gate is enough for all. */
static void segments_get_behind_a_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(1100);
    struct io_log *log = open_idle(vfs);
    const uint32_t sealed = sealed_count(log);

    (void)state;
    assert_in_range(sealed, 20, 23);
    for (uint32_t steps = 0; steps <= sealed; steps++) {
        for (uint32_t i = 0; i < sealed; i++) {
            assert_ptr_equal(gate_at(log, i), i < steps ? log->gate_work.gate : NULL);
            assert_true(has_filter(segment_at(log, i)) == (i >= steps));
        }
        assert_knows(log, 1);
        assert_true(is_due(log) == (steps < sealed));
        assert_ok(step(log));
    }
    assert_int_equal(log->gate_work.gate->uses_count, sealed + 1);
    assert_true(strangers(log) < 10);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* As it grows: the segments from this one on are not there yet, or they come. */
static void hide_from(struct io_log *log, uint32_t first, bool hidden)
{
    log_lock(log);
    for (uint32_t i = first; i < log->segments_count; i++) {
        struct log_segment *segment = log->segments[i];

        if (hidden)
            segment->retired = RON_TAKE(segment->index);
        else
            segment->index = RON_TAKE(segment->retired);
    }
    log_unlock(log);
}

/* More keys than are looked at at once: each is answered for itself. */
static void many_keys_are_asked_together(void **state) RON_BLOCKS
{
    enum { KNOWN = 130, STRANGERS = 70, ALL = KNOWN + STRANGERS };
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    uint64_t bits[(ALL + 63) / 64];
    uint8_t keys[ALL][16];
    unsigned wrong = 0;

    (void)state;
    assert_true(do_steps(log, 1) > 0);
    assert_true(io_log_last_indexed(log) >= KNOWN);
    for (uint64_t i = 0; i < ALL; i++)
        world_key(i < STRANGERS ? 1000000 + i : 1 + i - STRANGERS, 0, keys[i]);
    for (size_t count = 1; count <= ALL; count++) {
        io_log_may_have(log, &(struct io_log_keys){keys[0], 16, count}, UINT64_MAX, bits);
        for (size_t i = STRANGERS; i < count; i++)
            assert_int_equal(bits[i / 64] >> i % 64 & 1, 1);
        for (size_t i = count; i < (count + 63) / 64 * 64; i++)
            assert_int_equal(bits[i / 64] >> i % 64 & 1, 0);
    }
    for (size_t i = 0; i < STRANGERS; i++)
        wrong += (unsigned)(bits[i / 64] >> i % 64 & 1);
    assert_true(wrong < 3);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* How many segments fit a gate that has room for sixteen like the first and a half: how many keys
 * each has depends on its groups. */
static uint32_t fitting_count(struct io_log *log)
{
    const uint64_t first = io_index_keys_count(segment_at(log, 0)->index);
    uint64_t room = 16 * first + first / 2;
    uint32_t count = 0;

    while (io_index_keys_count(segment_at(log, count)->index) <= room)
        room -= io_index_keys_count(segment_at(log, count++)->index);
    return count;
}

/* A gate takes more as they come, for sixteen in all; then the next one begins, with room for what
 * waits. The first one is asked as before, and what it knows does not go. */
static void gates_grow_with_the_log(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(2000);
    struct io_log *log = open_idle(vfs);
    const uint32_t sealed = sealed_count(log), fitting = fitting_count(log);
    struct log_gate *first;

    (void)state;
    assert_in_range(sealed, 36, 42);
    assert_in_range(fitting, 13, 20);
    hide_from(log, 3, true);
    assert_int_equal(do_steps(log, 1), 3);
    first = gate_at(log, 0);
    assert_ptr_equal(gate_at(log, 2), first);
    hide_from(log, 3, false);
    hide_from(log, 8, true);
    assert_int_equal(do_steps(log, 1), 5);
    assert_ptr_equal(gate_at(log, 7), first);
    assert_ptr_equal(log->gate_work.gate, first);
    hide_from(log, 8, false);
    assert_int_equal(do_steps(log, 1), sealed - 8);
    assert_ptr_equal(gate_at(log, 0), first);
    assert_ptr_equal(gate_at(log, fitting - 1), first);
    assert_ptr_not_equal(gate_at(log, fitting), first);
    assert_ptr_equal(gate_at(log, fitting), gate_at(log, sealed - 1));
    assert_ptr_equal(gate_at(log, fitting), log->gate_work.gate);
    assert_true(strangers(log) < 10);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* What a new gate has room for: a quarter of what there is, where that is more than sixteen. */
static void later_gates_are_larger(void **state) RON_BLOCKS
{
    enum { FIRST = 88 }; /* in the next gate */
    struct io_vfs *vfs = with_records(4800);
    struct io_log *log = open_idle(vfs);
    uint64_t all = 0; /* keys: how many a segment has depends on its groups */

    (void)state;
    assert_true(sealed_count(log) > FIRST + 1);
    hide_from(log, FIRST, true);
    (void)do_steps(log, 1);
    assert_ptr_equal(gate_at(log, 0), gate_at(log, FIRST - 1)); /* there was no gate for less */
    hide_from(log, FIRST, false);
    hide_from(log, FIRST + 1, true);
    assert_int_equal(do_steps(log, 1), 1);
    assert_ptr_not_equal(gate_at(log, FIRST), gate_at(log, FIRST - 1));
    for (uint32_t i = 0; i <= FIRST; i++)
        all += io_index_keys_count(segment_at(log, i)->index);
    assert_in_range(io_gate_room(gate_at(log, FIRST)->keys), all / 4 - all / 50,
                    all / 4 + all / 50);
    hide_from(log, FIRST + 1, false);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* An index that is built again is asked by its own filter, until it is behind a gate again. */
static void index_that_is_built_again_leaves_its_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    const uint32_t sealed = sealed_count(log);

    (void)state;
    assert_in_range(sealed, 5, 7);
    assert_int_equal(do_steps(log, 1), sealed);
    world_flip(vfs, "role/log/idx-0000000000000002", 4096 + 40);
    assert_knows(log, 1); /* which meets the damage */
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 1);
    assert_null(gate_at(log, 1));
    assert_true(has_filter(segment_at(log, 1)));
    assert_int_equal(gate_at(log, 0)->uses_count, sealed);
    assert_int_equal(do_steps(log, 1), 1);
    assert_non_null(gate_at(log, 1));
    assert_false(has_filter(segment_at(log, 1)));
    log_destroy(log);
    io_vfs_free(vfs);
}

/* A page that cannot be believed is no key less: its segment keeps its filter. */
static void damaged_page_gets_behind_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    const uint32_t sealed = sealed_count(log);

    (void)state;
    world_flip(vfs, "role/log/idx-0000000000000003", 4096 + 40);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(step(log));
    assert_non_null(gate_at(log, 1));
    assert_false(is_due(log)); /* for a while */
    for (uint32_t i = 2; i < sealed; i++) {
        assert_null(gate_at(log, i));
        assert_true(has_filter(segment_at(log, i)));
        assert_int_equal(segment_at(log, i)->pins_count, 0);
    }
    assert_knows(log, 1); /* and builds it again */
    log->gate_work.retry.at_ns = 0;
    assert_int_equal(do_steps(log, 1), sealed - 2);
    assert_ptr_equal(gate_at(log, 2), gate_at(log, 1));
    log_destroy(log);
    io_vfs_free(vfs);
}

static struct {
    struct io_log *log;
    const struct io_vfs_ops *ops;
    struct io_vfs *vfs;
} meanwhile;

/* As ever, for a vfs with other calls: its back end wants to see its own. */
static enum ron_err own_open(struct io_vfs *vfs, const char *path, enum io_open how,
                             struct io_file **ret_file, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct io_vfs_ops *const ops = vfs->ops;
    enum ron_err err;

    vfs->ops = meanwhile.ops;
    err = meanwhile.ops->open(vfs, path, how, ret_file, reterr);
    vfs->ops = ops;
    return err;
}

/* What was asked for is read; then its file is damaged and somebody else meets that. */
static enum ron_err rebuilding_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                    size_t *ret_size, struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    meanwhile.vfs->ops = meanwhile.ops;
    err = meanwhile.ops->read(file, offset, bytes, size, ret_size, reterr);
    world_flip(meanwhile.vfs, "role/log/idx-0000000000000001", 4096 + 40);
    assert_knows(meanwhile.log, 1);
    return err;
}

/* All keys of an index are in the gate, and it is another one by then: it is not behind it. */
static void index_that_is_built_again_meanwhile_is_behind_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    struct io_vfs_ops ops = *vfs->ops;

    (void)state;
    meanwhile.log = log;
    meanwhile.ops = vfs->ops;
    meanwhile.vfs = vfs;
    ops.open = own_open;
    ops.read = rebuilding_read;
    vfs->ops = &ops;
    assert_ok(step(log));
    assert_int_equal(io_log_get_stats(log).indexes_rebuilt, 1);
    assert_null(gate_at(log, 0));
    assert_true(has_filter(segment_at(log, 0)));
    assert_int_equal(segment_at(log, 0)->pins_count, 0);
    assert_true(is_due(log));
    assert_int_equal(do_steps(log, 1), sealed_count(log));
    log_destroy(log);
    io_vfs_free(vfs);
}

static enum ron_err panicking_read(struct io_file *file, uint64_t offset, void *bytes, size_t size,
                                   size_t *ret_size, struct ron_errinfo *reterr)
{
    (void)file, (void)offset, (void)bytes, (void)size, (void)ret_size, (void)reterr;
    rt_panic("as the test told it");
}

/* The task that adds to a gate panics: the segment is not behind it, and is not pinned. */
static void panic_gets_behind_no_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    const struct io_vfs_ops *const ops = vfs->ops;
    struct io_vfs_ops panicking = *ops;

    (void)state;
    meanwhile.ops = ops;
    panicking.open = own_open;
    panicking.read = panicking_read;
    for (unsigned i = 0; i < 2; i++)
        assert_ok(step(log));
    vfs->ops = &panicking;
    assert_int_not_equal(step(log), RON_ERR_OK);
    vfs->ops = ops;
    assert_null(gate_at(log, 2));
    assert_true(has_filter(segment_at(log, 2)));
    assert_int_equal(segment_at(log, 2)->pins_count, 0);
    assert_false(is_due(log)); /* for a while */
    assert_knows(log, 1);
    log->gate_work.retry.at_ns = 0;
    assert_int_equal(do_steps(log, 1), sealed_count(log) - 2);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* Of an index that was just built. */
static struct log_gate *join(struct io_log *log, struct io_vfs *vfs, const char *path,
                             struct io_index **ret_index) RON_BLOCKS
{
    static const struct io_index_of of = {.segment = 7};
    const struct io_index_entry entry = {.key = "sixteen bytes ok", .offset8 = 1};
    struct io_index_builder *builder = NULL;
    struct log_gate *gate;

    assert_ok(io_index_builder_new(&of, 10, &builder, NULL));
    assert_ok(io_index_add(builder, &entry, NULL));
    assert_ok(io_index_write(builder, vfs, path, NULL));
    assert_ok(io_index_open(vfs, path, &of, ret_index, NULL));
    gate = log_gate_join(log, *ret_index, builder);
    builder = io_index_builder_free(builder);
    return gate;
}

/* After a start the segments that were there have their turn first; then a new one is behind the
 * gate at once, and its filter is gone. */
static void a_new_index_waits_for_older_ones(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(300);
    struct io_log *log = open_idle(vfs);
    struct io_index *index = NULL;
    struct log_gate *gate, *unused = NULL;
    void *filter;

    (void)state;
    assert_null(join(log, vfs, "first", &index));
    filter = io_index_take_filter(index);
    assert_non_null(filter);
    (void)ron_table_free(filter);
    index = io_index_close(index);
    (void)do_steps(log, 1);
    gate = join(log, vfs, "second", &index);
    assert_ptr_equal(gate, gate_at(log, sealed_count(log) - 1));
    assert_true(io_gate_may_have(gate->keys, (const uint8_t *)"sixteen bytes ok"));
    assert_null(io_index_take_filter(index));
    index = io_index_close(index);
    log_lock(log);
    log_gate_drop(gate, &unused);
    log_unlock(log);
    assert_null(unused);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* Before it is behind a gate, or after; the memory of a gate that grows no more goes with its last
 * segment. */
static void dropped_segments_leave_their_gate(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = with_records(2000);
    struct io_log *log = open_idle(vfs);
    struct log_gate *first;
    uint64_t dropped = 0, live;

    (void)state;
    hide_from(log, 4, true);
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_int_equal(dropped, 1);
    assert_int_equal(do_steps(log, io_log_first_index(log)), 3);
    hide_from(log, 3, false);
    first = gate_at(log, 0);
    assert_int_equal(first->uses_count, 3 + 1);
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_int_equal(first->uses_count, 2 + 1);
    (void)do_steps(log, io_log_first_index(log));
    assert_ptr_not_equal(log->gate_work.gate, first);
    while (first->uses_count > 1)
        assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_ptr_equal(gate_at(log, 0), first);
    live = ron_mem_live_count();
    assert_ok(io_log_drop_before(log, segment_at(log, 0)->last_index + 1, &dropped, NULL));
    assert_true(ron_mem_live_count() + 2 < live);
    assert_ptr_equal(gate_at(log, 0), log->gate_work.gate);
    assert_knows(log, io_log_first_index(log));
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
        log_gate_step(log);
        ron_mem_set_fail_hook(NULL, NULL);
        assert_null(log->gate_work.gate);
        assert_int_equal(ron_mem_live_count(), live);
        assert_false(is_due(log));
        assert_knows(log, 1);
        log->gate_work.retry.at_ns = 0;
        assert_int_equal(do_steps(log, 1), sealed_count(log));
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

static void keys_are_known_while_gates_grow(void **state) RON_BLOCKS
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
        CASE(segments_get_behind_a_gate),
        CASE(many_keys_are_asked_together),
        CASE(gates_grow_with_the_log),
        CASE(later_gates_are_larger),
        CASE(index_that_is_built_again_leaves_its_gate),
        CASE(index_that_is_built_again_meanwhile_is_behind_no_gate),
        CASE(damaged_page_gets_behind_no_gate),
        CASE(panic_gets_behind_no_gate),
        CASE(a_new_index_waits_for_older_ones),
        CASE(dropped_segments_leave_their_gate),
        CASE(no_memory_is_no_gate),
        CASE(log_without_keys_has_no_gates),
        CASE(keys_are_known_while_gates_grow),
    };

    return cmocka_run_group_tests_name("log_gate", tests, NULL, NULL);
}
