/*
 * test_log_collect.c - the keys of a segment, taken while it is written. Method: logs in memory,
 * whose indexes are compared byte by byte with those of the same segments, read. Who was asked for
 * the keys of a record is told by the name of the task.
 */
#include <sched.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "io_spy.h"
#include "log_world.h"

enum { RECORDS = 2500 };

static struct rt_atomic_u64 told_to_writer, told_to_readers;

static bool is_writer(void)
{
    return rt_task_self() != NULL && strstr(rt_task_name(rt_task_self()), "writer") != NULL;
}

static void counted_keys(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                         void *index)
{
    (void)rt_atomic_add_u64(is_writer() ? &told_to_writer : &told_to_readers, 1);
    world_keys(context, frame, emit, index);
}

static struct io_log_options counted_options(struct io_vfs *vfs)
{
    struct io_log_options options = world_options(vfs);

    options.keys = counted_keys;
    rt_atomic_store_u64(&told_to_writer, 0);
    rt_atomic_store_u64(&told_to_readers, 0);
    return options;
}

/* The record behind the segment that is `number`. */
static uint64_t last_of(struct io_log *log, uint32_t number)
{
    uint64_t last;

    log_lock(log);
    last = log->segments[number - 1]->last_index;
    log_unlock(log);
    return last;
}

/* Until every sealed segment has its index and is behind a gate. What has an index has a gate, too,
 * from the moment on that anybody can see it, and no filter, unless it was there when the log was
 * opened. */
static void await_indexes(struct io_log *log, bool opened_with_some) RON_BLOCKS
{
    uint32_t waiting = 1;

    while (waiting > 0) {
        uint32_t ungated = 0, filters = 0, keys = 0;

        (void)sched_yield();
        waiting = 0;
        log_lock(log);
        for (uint32_t i = 0; i + 1 < log->segments_count; i++) {
            const struct log_segment *segment = log->segments[i];

            if (segment->index == NULL) {
                waiting++;
                continue;
            }
            ungated += segment->gate == NULL;
            keys += segment->keys != NULL;
            if (segment->gate != NULL && segment->pins_count == 0)
                filters += io_index_take_filter(segment->index) != NULL;
        }
        log_unlock(log);
        if (opened_with_some)
            waiting += ungated;
        else
            assert_int_equal(ungated, 0);
        assert_int_equal(filters, 0);
        assert_int_equal(keys, 0);
    }
}

static void assert_finds_all(struct io_log *log, uint64_t last) RON_BLOCKS
{
    for (uint64_t i = 1; i <= last; i++) {
        for (uint32_t sub = 0; sub < (i % 3 == 0 ? 2 : 1); sub++) {
            struct io_log_place place;
            uint8_t key[16];

            world_key(i, sub, key);
            assert_ok(io_log_find(log, key, &place, NULL));
            assert_int_equal(place.index, i);
            assert_int_equal(place.sub, sub);
        }
    }
}

static const char *index_path(uint32_t number)
{
    static char path[IO_PATH_MAX];

    (void)snprintf(path, sizeof(path), "role/log/idx-%016x", number);
    return path;
}

static uint32_t sealed_count(struct io_log *log)
{
    uint32_t count;

    log_lock(log);
    count = log->segments_count - 1;
    log_unlock(log);
    return count;
}

/* In steps, so that the indexer keeps up. */
static void append_in_steps(struct io_log *log, uint64_t first, uint64_t last) RON_BLOCKS
{
    for (uint64_t i = first; i <= last; i += 50) {
        world_append_many(log, i, i + 49);
        await_indexes(log, first > 1);
    }
}

/* The first segment was there before its writer, and is read; the others are not, and what was
 * collected of them is what would have been read. */
static void what_is_collected_is_what_is_read(void **state) RON_BLOCKS
{
    enum { SEALED_MAX = 200 };
    static struct ron_buf collected[SEALED_MAX];
    struct io_vfs *vfs = world_memory();
    const struct io_log_options options = counted_options(vfs);
    struct io_log *log = world_open_as(&options);
    uint64_t first_last, last;
    uint32_t sealed;

    (void)state;
    append_in_steps(log, 1, RECORDS);
    sealed = sealed_count(log);
    assert_in_range(sealed, 20, SEALED_MAX);
    first_last = last_of(log, 1);
    last = last_of(log, sealed);
    assert_int_equal(rt_atomic_load_u64(&told_to_readers), first_last);
    assert_int_equal(rt_atomic_load_u64(&told_to_writer), RECORDS - first_last);
    assert_finds_all(log, last);
    world_close(log);
    for (uint32_t i = 0; i < sealed; i++) {
        collected[i] = world_file(vfs, index_path(i + 1));
        assert_ok(io_vfs_unlink(vfs, index_path(i + 1), NULL));
    }
    log = world_open_as(&options);
    await_indexes(log, true);
    assert_int_equal(rt_atomic_load_u64(&told_to_readers), first_last + last);
    assert_int_equal(rt_atomic_load_u64(&told_to_writer), RECORDS - first_last);
    for (uint32_t i = 0; i < sealed; i++) {
        struct ron_buf read = world_file(vfs, index_path(i + 1));

        assert_true(ron_slice_equal(ron_buf_slice(&collected[i]), ron_buf_slice(&read)));
        ron_buf_fini(&read);
        ron_buf_fini(&collected[i]);
    }
    /* The segment that was begun before is read, once it is sealed; the next one is not. */
    append_in_steps(log, RECORDS + 1, RECORDS + 500);
    assert_int_equal(rt_atomic_load_u64(&told_to_readers),
                     first_last + last + last_of(log, sealed + 1) - last);
    assert_finds_all(log, last_of(log, sealed_count(log)));
    world_close(log);
    io_vfs_free(vfs);
}

static enum ron_err begin_fn(struct rt_task *task, void *log) RON_BLOCKS
{
    (void)task;
    log_collect_begin(log);
    return RON_ERR_OK;
}

/* By a task, as the writer is one. */
static void run(rt_task_fn *fn, void *argument) RON_BLOCKS
{
    const struct rt_task_options options = {.kind = "writer",
                                            .name = "writer",
                                            .owner = "test",
                                            .fn = fn,
                                            .argument = argument,
                                            .restart = RT_RESTART_NEVER};
    enum ron_err result = RON_ERR_OK;
    struct rt_task *task = NULL;

    assert_ok(rt_task_spawn(world_supervisor, &options, &task, NULL));
    assert_ok(rt_task_join(task, rt_deadline_after_ms(20000), &result, NULL));
    assert_ok(result);
}

static void begin(struct io_log *log) RON_BLOCKS
{
    run(begin_fn, log);
}

static void end(struct io_log *log, struct log_segment *segment)
{
    log_lock(log);
    log_collect_end(log, segment);
    log_unlock(log);
}

static uint32_t collected_count(struct io_log *log)
{
    uint32_t count;

    log_lock(log);
    count = log->collected_count;
    log_unlock(log);
    return count;
}

static struct io_log *open_idle(struct io_log_options *options) RON_BLOCKS
{
    struct io_log_recovery recovery;
    struct io_log *log = NULL;

    options->supervisor = NULL;
    assert_ok(log_open_idle(options, &log, &recovery, NULL));
    return log;
}

/* Where the pages of keys go. */
static bool passes_cache(struct io_index_builder *builder) RON_BLOCKS
{
    const struct io_index_entry entry = {.key = "sixteen bytes ok", .offset8 = 1};
    struct io_vfs *vfs = world_memory();

    spy_install(vfs, NULL);
    assert_ok(io_index_add(builder, &entry, NULL));
    assert_ok(io_index_write(builder, vfs, "idx", NULL));
    io_vfs_free(vfs);
    return spy.past_written_bytes > 0;
}

/* While the indexer is behind no more than so many segments have their keys in memory; whose keys
 * it took gives its place to another, and a builder that is not used is used again. */
static void an_indexer_that_is_behind_reads(void **state) RON_BLOCKS
{
    const uint64_t live_count = ron_mem_live_count();
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = open_idle(&options);
    struct log_segment segments[LOG_BUILDERS + 1] = {{.number = 1}};
    struct io_index_builder *builder;

    (void)state;
    for (unsigned i = 0; i < LOG_BUILDERS; i++) {
        begin(log);
        assert_non_null(log->collecting);
        end(log, &segments[i]);
        assert_non_null(segments[i].keys);
        assert_null(log->collecting);
    }
    begin(log);
    assert_null(log->collecting);
    end(log, &segments[LOG_BUILDERS]);
    assert_null(log_collected(log, &segments[LOG_BUILDERS]));
    builder = log_collected(log, &segments[1]);
    assert_non_null(builder);
    assert_null(segments[1].keys);
    assert_int_equal(passes_cache(builder), options.direct);
    log_builder_give(log, builder);
    begin(log);
    assert_ptr_equal(log->collecting, builder);
    assert_int_equal(passes_cache(builder), options.direct);
    end(log, &segments[1]);
    for (unsigned i = 0; i < LOG_BUILDERS; i++)
        log_builder_give(log, log_collected(log, &segments[i]));
    assert_int_equal(collected_count(log), 0);
    assert_ok(io_index_builder_new(&(struct io_index_of){.segment = 1}, 1, &builder, NULL));
    log_builder_give(log, builder); /* one too many: it is let go */
    begin(log);                     /* what collects when the log ends goes with it */
    log_destroy(log);
    io_vfs_free(vfs);
    assert_int_equal(ron_mem_live_count(), live_count);
}

static enum ron_err collect_fn(struct rt_task *task, void *argument) RON_BLOCKS
{
    struct {
        struct io_log *log;
        const struct log_group *group;
    } *work = argument;

    (void)task;
    log_collect(work->log, work->group);
    return RON_ERR_OK;
}

/* A key in a body that is not what was summed is no key: whoever reads the segment will say what is
 * wrong. Whatever bit it is. */
static void a_body_that_fails_its_sum_is_not_collected(void **state) RON_BLOCKS
{
    enum { BODY = 64, SIZE = IO_FRAME_HEAD_SIZE + BODY };
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = open_idle(&options);
    uint8_t bytes[2 * SIZE] = {0};
    struct log_group group = {.bytes = bytes, .size = sizeof(bytes), .offset = 4096};

    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        const struct io_frame frame = {
            .index = 1 + i, .group = 1, .body = {bytes + i * SIZE + IO_FRAME_HEAD_SIZE, BODY}};

        memset(bytes + i * SIZE + IO_FRAME_HEAD_SIZE, 7, BODY);
        io_frame_put(&frame, log->salt, ron_crc32c(0, frame.body.data, BODY), bytes + i * SIZE);
    }
    for (size_t bit = 0; bit <= 8 * sizeof(bytes); bit += 31) {
        struct {
            struct io_log *log;
            const struct log_group *group;
        } work = {log, &group};
        const bool is_flipped = bit >= 31;

        begin(log);
        if (is_flipped)
            bytes[(bit - 31) / 8] ^= (uint8_t)(1u << (bit - 31) % 8);
        run(collect_fn, &work);
        assert_int_equal(log->collecting == NULL, is_flipped);
        assert_int_equal(collected_count(log), !is_flipped);
        if (is_flipped) {
            bytes[(bit - 31) / 8] ^= (uint8_t)(1u << (bit - 31) % 8);
        } else {
            struct log_segment segment = {.number = 1};

            end(log, &segment);
            log_builder_give(log, log_collected(log, &segment));
        }
    }
    log_destroy(log);
    io_vfs_free(vfs);
}

static bool no_memory(size_t size, void *context)
{
    (void)size, (void)context;
    return true;
}

static void without_memory_or_keys_nothing_is_collected(void **state) RON_BLOCKS
{
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log = open_idle(&options);

    (void)state;
    ron_mem_set_fail_hook(no_memory, NULL);
    log_collect_begin(log);
    ron_mem_set_fail_hook(NULL, NULL);
    assert_null(log->collecting);
    assert_int_equal(collected_count(log), 0);
    log_destroy(log);
    options.keys = NULL;
    log = open_idle(&options);
    log_collect_begin(log);
    assert_null(log->collecting);
    log_destroy(log);
    io_vfs_free(vfs);
}

/* More keys than an index can have, as the writer sees it: what was collected is let go, the record
 * is durable, and its segment is read. */
static void too_many_keys(void *context, const struct io_frame *frame, io_log_emit_fn *emit,
                          void *index)
{
    uint8_t key[16];

    (void)context;
    for (uint32_t sub = 0; sub < (frame->index % 200 == 0 && is_writer() ? 3000 : 1); sub++) {
        world_key(frame->index, sub, key);
        emit(index, key, sub);
    }
}

static bool is_collecting(const struct io_log *log)
{
    return log->collecting != NULL; /* the writer's own: nothing is under way */
}

static void too_many_keys_cost_an_index_only(void **state) RON_BLOCKS
{
    enum { TIMES = LOG_BUILDERS + 2 };
    struct io_vfs *vfs = world_memory();
    struct io_log_options options = world_options(vfs);
    struct io_log *log;
    uint64_t next = 1;

    (void)state;
    options.keys = too_many_keys;
    log = world_open_as(&options);
    for (uint64_t i = 1; i <= TIMES; i++) {
        world_append_many(log, next, 200 * i);
        assert_false(is_collecting(log));
        for (next = 200 * i + 1; !is_collecting(log); next++) { /* with the next segment */
            assert_true(next < 200 * i + 150);
            world_append_many(log, next, next);
            await_indexes(log, false);
        }
    }
    assert_int_equal(world_read(log, 1), next - 1);
    world_close(log);
    io_vfs_free(vfs);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_collected_is_what_is_read),
        CASE(an_indexer_that_is_behind_reads),
        CASE(a_body_that_fails_its_sum_is_not_collected),
        CASE(without_memory_or_keys_nothing_is_collected),
        CASE(too_many_keys_cost_an_index_only),
    };

    return cmocka_run_group_tests_name("log_collect", tests, NULL, NULL);
}
