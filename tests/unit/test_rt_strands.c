/*
 * test_rt_strands.c - lanes on real threads. Method: one thread held in a handler makes the order
 * of turns exact; many threads and lanes with flags inside the handler show that a lane never runs
 * twice at once and keeps its order.
 */
#include "support.h"

#include "rt/atomic.h"
#include "rt/registry.h"
#include "rt/strands.h"
#include "rt/supervisor.h"

enum { LANES = 64, ROUNDS = 50 };

struct test_lane {
    struct rt_lane_id id;
    struct rt_atomic_u32 inside;
    uint32_t next; /* expected item; written by the lane only */
    char mark;
};

static struct rt_supervisor *supervisor;
static struct rt_strands *strands;
static struct test_lane lanes[LANES];
static uint32_t items[LANES * ROUNDS];
static struct rt_atomic_u32 gate, held, handled_count, dropped_count;
static char trail[64];
static enum ron_err drop_reason;

static void handle(void *context, void *lane_object, void *item)
{
    struct test_lane *lane = lane_object;

    assert_ptr_equal(context, items);
    assert_int_equal(rt_atomic_exchange_u32(&lane->inside, 1), 0);
    if (lane->mark == '!') {
        rt_atomic_store_u32(&held, 1);
        while (rt_atomic_load_u32(&gate) == 0)
            sh_sleep_until(rt_now_ns() + 100000);
    } else if (lane->mark == 'P') {
        lane->mark = 'p';
        rt_atomic_store_u32(&lane->inside, 0);
        rt_panic("in a handler");
    } else if (lane->mark != 0) {
        trail[rt_atomic_load_u32(&handled_count)] = lane->mark;
    } else {
        assert_int_equal(*(uint32_t *)item, lane->next);
        lane->next++;
    }
    rt_atomic_store_u32(&lane->inside, 0);
    (void)rt_atomic_add_u32(&handled_count, 1);
}

static void drop(void *context, void *lane, void *item, enum ron_err reason)
{
    assert_ptr_equal(context, items);
    assert_non_null(lane);
    assert_non_null(item);
    drop_reason = reason;
    (void)rt_atomic_add_u32(&dropped_count, 1);
}

static struct rt_strands_options options_of(uint32_t threads_count)
{
    return (struct rt_strands_options){.name = "lanes",
                                       .owner = "test",
                                       .kind = "exporter",
                                       .threads_count = threads_count,
                                       .lanes_max = LANES,
                                       .lane_capacity = 8,
                                       .items_max = 32,
                                       .handle = handle,
                                       .drop = drop,
                                       .context = items};
}

static void start(uint32_t threads_count) RON_BLOCKS
{
    static const struct rt_backoff_policy fast = {.base_ns = 1000, .cap_ns = 1000};
    const struct rt_supervisor_options root = {
        .name = "root", .owner = "test", .tasks_max = 8, .backoff = &fast};
    const struct rt_strands_options options = options_of(threads_count);

    rt_init();
    memset(lanes, 0, sizeof(lanes));
    memset(trail, 0, sizeof(trail));
    rt_atomic_store_u32(&gate, 0);
    rt_atomic_store_u32(&held, 0);
    rt_atomic_store_u32(&handled_count, 0);
    rt_atomic_store_u32(&dropped_count, 0);
    assert_ok(rt_supervisor_new(&root, &supervisor, NULL));
    assert_ok(rt_strands_new(&options, supervisor, &strands, NULL));
}

static void finish(void) RON_BLOCKS
{
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    assert_null(rt_strands_free(strands));
    rt_supervisor_free(supervisor);
    assert_int_equal(ron_mem_live_count(), 0);
}

static struct test_lane *open_lane(unsigned index, char mark, unsigned weight)
{
    lanes[index].mark = mark;
    assert_ok(rt_lane_open(strands, &lanes[index], weight, &lanes[index].id, NULL));
    return &lanes[index];
}

static void send(struct test_lane *lane, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_ok(rt_lane_send(strands, lane->id, &items[i], NULL));
}

/* One thread, kept busy until the gate opens. */
static void hold_the_thread(void)
{
    send(open_lane(LANES - 1, '!', 1), 1);
    while (rt_atomic_load_u32(&held) == 0)
        sh_sleep_until(rt_now_ns() + 100000);
}

static void drain(void) RON_BLOCKS
{
    rt_atomic_store_u32(&gate, 1);
    assert_ok(rt_strands_drain(strands, rt_deadline_after_ms(20000), NULL));
}

static void lanes_take_turns(void **state) RON_BLOCKS
{
    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'a', 1), 4);
    send(open_lane(1, 'b', 1), 2);
    send(open_lane(2, 'c', 1), 3);
    drain();
    assert_string_equal(trail + 1, "abcabcaca");
    finish();
}

static void lanes_take_turns_by_weight(void **state) RON_BLOCKS
{
    struct rt_strands_stats stats;

    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'a', 3), 8);
    send(open_lane(1, 'b', 1), 3);
    send(open_lane(2, 'c', 8), 8);
    rt_strands_get_stats(strands, &stats);
    assert_int_equal(stats.lanes_count, 4);
    assert_int_equal(stats.lanes_ready_count, 3);
    assert_int_equal(stats.lanes_running_count, 1);
    assert_int_equal(stats.items_count, 19);
    drain();
    assert_string_equal(trail + 1, "aaabccccccccaaabaab");
    rt_strands_get_stats(strands, &stats);
    assert_int_equal(stats.handled_count, 20);
    assert_int_equal(stats.items_count, 0);
    finish();
}

static void lanes_are_bounded(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    struct rt_lane_id id = {0};
    struct rt_strands_stats stats;

    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'a', 1), 8);
    support_assert_error(rt_lane_send(strands, lanes[0].id, &items[0], &info), &info, RON_ERR_BUSY,
                         "full");
    for (unsigned i = 1; i < 4; i++)
        send(open_lane(i, 'b', 1), 8);
    (void)open_lane(4, 'c', 1); /* the set is full: 32 items */
    assert_int_equal(rt_lane_send(strands, lanes[4].id, &items[0], NULL), RON_ERR_BUSY);
    for (unsigned i = 5; i < LANES - 1; i++)
        (void)open_lane(i, 'd', 1);
    support_assert_error(rt_lane_open(strands, &lanes[0], 1, &id, &info), &info, RON_ERR_BUSY,
                         "64 lanes");
    rt_strands_get_stats(strands, &stats);
    assert_int_equal(stats.rejected_count, 3);
    drain();
    assert_int_equal(rt_lane_send(strands, lanes[0].id, &items[0], NULL), RON_ERR_CANCELED);
    assert_int_equal(rt_lane_open(strands, &lanes[0], 1, &id, NULL), RON_ERR_CANCELED);
    assert_int_equal(rt_atomic_load_u32(&handled_count), 33);
    finish();
}

static void closed_lane_empties_then_is_forgotten(void **state) RON_BLOCKS
{
    struct rt_lane_id old;

    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'a', 1), 3);
    old = lanes[0].id;
    assert_int_equal(rt_lane_close_until(strands, old, rt_deadline_after_ms(2), NULL),
                     RON_ERR_TIMEOUT);
    assert_int_equal(rt_lane_send(strands, old, &items[0], NULL), RON_ERR_NOT_FOUND);
    assert_int_equal(rt_lane_close(strands, old, NULL), RON_ERR_NOT_FOUND);
    send(open_lane(1, 'b', 1), 1);
    rt_atomic_store_u32(&gate, 1);
    assert_ok(rt_lane_close_until(strands, lanes[1].id, rt_deadline_after_ms(20000), NULL));
    assert_ok(rt_lane_close(strands, lanes[LANES - 1].id, NULL)); /* idle: gone at once */
    assert_ok(rt_lane_open(strands, &lanes[2], 1, &lanes[2].id, NULL));
    assert_true(lanes[2].id.value != lanes[LANES - 1].id.value);
    assert_int_equal(rt_lane_send(strands, lanes[LANES - 1].id, &items[0], NULL),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(rt_lane_send(strands, (struct rt_lane_id){0}, &items[0], NULL),
                     RON_ERR_NOT_FOUND);
    assert_int_equal(rt_lane_send(strands, (struct rt_lane_id){LANES}, &items[0], NULL),
                     RON_ERR_NOT_FOUND); /* beyond the last; ASan sees a read there */
    drain();
    assert_string_equal(trail + 1, "abaa");
    finish();
}

static void closed_lanes_make_room_for_others(void **state) RON_BLOCKS
{
    struct rt_strands_stats stats;

    (void)state;
    start(1);
    for (unsigned round = 0; round < 3 * LANES; round++) {
        (void)open_lane(0, 'a', 1);
        assert_ok(rt_lane_close(strands, lanes[0].id, NULL));
    }
    assert_int_equal(rt_lane_close_until(strands, lanes[0].id, RT_DEADLINE_NEVER, NULL),
                     RON_ERR_NOT_FOUND);
    (void)open_lane(1, 'b', 1);
    rt_strands_get_stats(strands, &stats);
    assert_int_equal(stats.lanes_count, 1);
    drain();
    finish();
}

static void stopped_lanes_take_nothing(void **state) RON_BLOCKS
{
    (void)state;
    start(1);
    (void)open_lane(0, 'a', 1);
    assert_ok(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), NULL));
    assert_int_equal(rt_lane_send(strands, lanes[0].id, &items[0], NULL), RON_ERR_CANCELED);
    finish();
}

static void lane_never_runs_twice_at_once(void **state) RON_BLOCKS
{
    (void)state;
    start(4);
    for (unsigned i = 0; i < LANES; i++)
        (void)open_lane(i, 0, 1 + i % RT_LANE_WEIGHT_MAX);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LANES; i++) {
            items[round * LANES + i] = round;
            while (rt_lane_send(strands, lanes[i].id, &items[round * LANES + i], NULL) ==
                   RON_ERR_BUSY)
                sh_yield();
        }
    }
    drain();
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(lanes[i].next, ROUNDS);
    assert_int_equal(rt_atomic_load_u32(&handled_count), LANES * ROUNDS);
    finish();
}

static void panic_drops_its_item_and_the_lane_goes_on(void **state) RON_BLOCKS
{
    struct rt_strands_stats stats;

    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'P', 8), 3);
    drain();
    rt_strands_get_stats(strands, &stats);
    assert_int_equal(stats.dropped_count, 1);
    assert_int_equal(stats.handled_count, 3);
    assert_int_equal(rt_atomic_load_u32(&dropped_count), 1);
    assert_int_equal(drop_reason, RON_ERR_INTERNAL);
    assert_string_equal(trail + 1, "pp");
    finish();
}

static void drain_stops_at_its_deadline_and_free_drops_the_rest(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    (void)state;
    start(1);
    hold_the_thread();
    send(open_lane(0, 'a', 1), 5);
    send(open_lane(1, 'b', 1), 2);
    support_assert_error(rt_strands_drain(strands, rt_deadline_after_ms(2), &info), &info,
                         RON_ERR_TIMEOUT, "8 items");
    rt_supervisor_cancel(supervisor); /* then the thread finds the set stopping */
    rt_atomic_store_u32(&gate, 1);
    finish();
    assert_int_equal(rt_atomic_load_u32(&handled_count), 1);
    assert_int_equal(rt_atomic_load_u32(&dropped_count), 7);
    assert_int_equal(drop_reason, RON_ERR_CANCELED);
}

static enum ron_err make_once(void *context, struct ron_errinfo *reterr) RON_BLOCKS
{
    const struct rt_supervisor_options root = {.name = "root", .owner = "test", .tasks_max = 3};
    const struct rt_strands_options options = options_of(3);
    struct rt_supervisor *own_root = NULL;
    struct rt_strands *own = NULL;
    enum ron_err err = rt_supervisor_new(&root, &own_root, reterr);

    (void)context;
    if (err != RON_ERR_OK)
        return err;
    err = rt_strands_new(&options, own_root, &own, reterr);
    assert_ok(rt_supervisor_stop(own_root, RT_DEADLINE_NEVER, NULL));
    rt_strands_free(own);
    rt_supervisor_free(own_root);
    return err;
}

static void strands_survive_each_failed_allocation(void **state)
{
    (void)state;
    rt_init();
    assert_int_equal(support_fail_each_allocation(make_once, NULL, 12), 9);
}

/* Each spawn in turn is refused: what was started before is joined, all of it. */
static void strands_join_what_they_started_before_a_failure(void **state) RON_BLOCKS
{
    const struct rt_strands_options options = options_of(4);
    struct rt_supervisor_options root = {.name = "root", .owner = "test"};

    (void)state;
    for (root.tasks_max = 1; root.tasks_max < 4; root.tasks_max++) {
        struct rt_supervisor *own_root = NULL;
        struct rt_strands *own = NULL;
        struct ron_errinfo info = {0};
        size_t entries_count;

        rt_init();
        assert_ok(rt_supervisor_new(&root, &own_root, NULL));
        entries_count = rt_registry_list(NULL, 0);
        support_assert_error(rt_strands_new(&options, own_root, &own, &info), &info, RON_ERR_BUSY,
                             "no room for task lanes");
        assert_null(own);
        assert_int_equal(rt_supervisor_get_tasks(own_root, NULL, 0), 0);
        assert_int_equal(rt_registry_list(NULL, 0), entries_count);
        rt_supervisor_free(own_root); /* without a stop: nobody is left to be stopped */
        assert_int_equal(ron_mem_live_count(), 0);
    }
}

static void make_with(struct rt_strands_options options) RON_BLOCKS
{
    struct rt_strands *own = NULL;

    (void)!rt_strands_new(&options, supervisor, &own, NULL);
}

static void bad_options_die(void **state) RON_BLOCKS
{
    struct rt_strands_options none = options_of(1), many = options_of(RT_STRAND_THREADS_MAX + 1);

    (void)state;
    start(1);
    none.drop = NULL;
    assert_dies(make_with(none), "options->drop != NULL");
    assert_dies(make_with(many), "threads_count <= RT_STRAND_THREADS_MAX");
    finish();
}

static void fill_registry(size_t left_count)
{
    const struct rt_registry_entry filler = {
        .object = items, .kind = RT_KIND_QUEUE, .name = "filler", .policy = "", .owner = ""};
    size_t classes_count;

    rt_init();
    classes_count = rt_registry_list(NULL, 0);
    while (rt_registry_list(NULL, 0) - classes_count + left_count < RT_REGISTRY_MAX)
        assert_ok(rt_registry_add(&filler, NULL));
}

static void strands_need_room_in_the_registry(void **state) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    (void)state;
    /* A watch of the supervisor, the set, its three tasks: five places. */
    for (size_t left_count = 0; left_count < 5; left_count++) {
        fill_registry(left_count);
        assert_int_equal(make_once(NULL, &info), RON_ERR_BUSY);
        assert_int_equal(ron_mem_live_count(), 0);
    }
    fill_registry(5);
    assert_ok(make_once(NULL, &info));
    rt_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_take_turns),
        cmocka_unit_test(lanes_take_turns_by_weight),
        cmocka_unit_test(lanes_are_bounded),
        cmocka_unit_test(closed_lane_empties_then_is_forgotten),
        cmocka_unit_test(closed_lanes_make_room_for_others),
        cmocka_unit_test(stopped_lanes_take_nothing),
        cmocka_unit_test(lane_never_runs_twice_at_once),
        cmocka_unit_test(panic_drops_its_item_and_the_lane_goes_on),
        cmocka_unit_test(drain_stops_at_its_deadline_and_free_drops_the_rest),
        cmocka_unit_test(strands_survive_each_failed_allocation),
        cmocka_unit_test(strands_join_what_they_started_before_a_failure),
        cmocka_unit_test(bad_options_die),
        cmocka_unit_test(strands_need_room_in_the_registry),
    };
    return cmocka_run_group_tests_name("rt_strands", tests, NULL, NULL);
}
