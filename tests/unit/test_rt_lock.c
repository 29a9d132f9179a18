/*
 * test_rt_lock.c - ranks, held locks, conditions, the seam's threads. Method: the legal use of each
 * call, then the illegal ones as death tests.
 */
#include "support.h"

#include <errno.h>

#include "rt/atomic.h"
#include "rt/deadline.h"
#include "rt/local.h"
#include "rt/lock.h"
#include "rt/registry.h"

static struct rt_lock outer, inner;

static int locks_setup(void **state)
{
    (void)state;
    rt_init();
    rt_lock_init(&outer, "outer", RON_RANK_shard);
    rt_lock_init(&inner, "inner", RON_RANK_queue);
    return 0;
}

static int locks_teardown(void **state)
{
    (void)state;
    rt_lock_fini(&inner);
    rt_lock_fini(&outer);
    return 0;
}

static void lock_nests_in_rising_rank(void **state)
{
    (void)state;
    rt_lock_take(&outer);
    rt_lock_take(&inner);
    assert_true(rt_lock_held(&outer));
    assert_true(rt_lock_held(&inner));
    rt_lock_drop(&outer); /* any order of release */
    assert_false(rt_lock_held(&outer));
    assert_int_equal(sh_local()->held_count, 1);
    rt_lock_drop(&inner);
    assert_int_equal(sh_local()->held_count, 0);
    rt_assert_no_lock_held();
}

/* Configuration before metrics; small counters are atomics and have no lock. covers: LED-C33 */
static void ranks_rise_as_designed(void **state)
{
    struct rt_registry_entry entries[RT_REGISTRY_MAX];
    const size_t count = rt_registry_list(entries, RON_ARRAY_COUNT(entries));
    struct rt_lock config, metrics;
    uint64_t rank = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != RT_KIND_LOCK)
            continue;
        assert_true(entries[i].capacity > rank); /* no two classes have one rank */
        rank = entries[i].capacity;
        assert_null(strstr(entries[i].name, "counter"));
    }
    assert_true(rank > 0);
    rt_lock_init(&config, "config", RON_RANK_cfg_snapshot);
    rt_lock_init(&metrics, "metrics", RON_RANK_metrics);
    rt_lock_take(&config);
    rt_lock_take(&metrics);
    rt_lock_drop(&metrics);
    rt_lock_drop(&config);
    assert_dies((rt_lock_take(&metrics), rt_lock_take(&config)), "lock->rank > last->rank");
    rt_lock_fini(&metrics);
    rt_lock_fini(&config);
}

/* covers: LED-C32 */
static void lock_rank_inversion_dies(void **state)
{
    (void)state;
    assert_dies((rt_lock_take(&inner), rt_lock_take(&outer)), "lock->rank > last->rank");
    assert_dies((rt_lock_take(&inner), rt_lock_take(&outer)), "task ?, locks inner");
    assert_dies((rt_lock_take(&inner), rt_lock_take(&inner)), "lock->rank > last->rank");
}

/* covers: LED-C02 LED-C32 */
static void lock_blocking_under_a_lock_dies(void **state)
{
    (void)state;
    assert_dies((rt_lock_take(&outer), rt_assert_no_lock_held()), "locks_held_count == 0");
    assert_dies((rt_lock_take(&outer), rt_assert_no_lock_held()), "locks outer");
}

static void take_inner(void *context)
{
    (void)context;
    rt_lock_take(&inner);
    rt_lock_drop(&inner);
}

static void drop_inner(void *context)
{
    (void)context;
    rt_lock_drop(&inner);
}

static void run_elsewhere(void (*fn)(void *))
{
    struct sh_thread *thread;

    assert_ok(sh_spawn("elsewhere", fn, NULL, &thread, NULL));
    assert_true(sh_join(thread, SH_NEVER));
}

static void lock_foreign_unlock_dies(void **state)
{
    (void)state;
    assert_dies(rt_lock_drop(&inner), "held_by_caller != 0");
    assert_dies((rt_lock_take(&inner), run_elsewhere(drop_inner)), "held_by_caller != 0");
    run_elsewhere(take_inner);
}

static void cond_wait_needs_exactly_its_lock(void **state)
{
    struct rt_cond cond;

    (void)state;
    rt_cond_init(&cond, "cond");
    rt_lock_take(&inner);
    assert_false(rt_cond_wait(&cond, &inner, rt_now_ns() + RT_NS_PER_MS));
    errno = EDOM;
    assert_false(rt_cond_wait(&cond, &inner, 0)); /* past: releases and retakes */
    assert_int_equal(errno, EDOM);                /* which is not told by errno */
    assert_true(rt_lock_held(&inner));
    rt_lock_drop(&inner);
    assert_dies(rt_cond_wait(&cond, &inner, 0), "held_count == 1");
    assert_dies((rt_lock_take(&outer), rt_lock_take(&inner), rt_cond_wait(&cond, &inner, 0)),
                "held_count == 1");
    assert_dies((rt_lock_take(&outer), rt_cond_wait(&cond, &inner, 0)), "held[0] == lock");
    rt_cond_fini(&cond);
}

struct gate {
    struct rt_cond cond;
    unsigned arrived_count, left_count; /* guarded by inner */
    bool open;
};

static void wait_at_gate(void *context)
{
    struct gate *gate = context;

    rt_lock_take(&inner);
    gate->arrived_count++;
    rt_cond_broadcast(&gate->cond);
    while (!gate->open)
        (void)rt_cond_wait(&gate->cond, &inner, SH_NEVER);
    gate->left_count++;
    rt_cond_broadcast(&gate->cond);
    rt_lock_drop(&inner);
}

static void cond_broadcast_wakes_all(void **state)
{
    struct sh_thread *threads[4];
    struct gate gate = {0};

    (void)state;
    rt_cond_init(&gate.cond, "gate");
    for (unsigned i = 0; i < 4; i++)
        assert_ok(sh_spawn("a-name-beyond-fifteen-bytes", wait_at_gate, &gate, &threads[i], NULL));
    rt_lock_take(&inner);
    while (gate.arrived_count < 4)
        (void)rt_cond_wait(&gate.cond, &inner, SH_NEVER);
    rt_lock_drop(&inner);
    assert_false(sh_join(threads[0], rt_now_ns() + RT_NS_PER_MS));
    rt_lock_take(&inner);
    gate.open = true;
    rt_cond_broadcast(&gate.cond);
    rt_lock_drop(&inner);
    sh_detach(threads[3]);
    for (unsigned i = 0; i < 3; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
    rt_lock_take(&inner);
    while (gate.left_count < 4)
        (void)rt_cond_wait(&gate.cond, &inner, SH_NEVER);
    rt_lock_drop(&inner);
    /* The detached one may still be leaving: wait for its memory, the last thing it touches. */
    for (unsigned i = 0; ron_mem_live_count() > 0 && i < 5000; i++)
        sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
    assert_int_equal(ron_mem_live_count(), 0);
    rt_cond_fini(&gate.cond);
}

static enum ron_err spawn_once(void *context, struct ron_errinfo *reterr)
{
    struct sh_thread *thread;
    enum ron_err err = sh_spawn("once", take_inner, context, &thread, reterr);

    if (err == RON_ERR_OK)
        assert_true(sh_join(thread, SH_NEVER));
    return err;
}

static void spawn_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(support_fail_each_allocation(spawn_once, NULL, 5), 1);
}

static void deadline_is_carried_not_restarted(void **state)
{
    struct rt_deadline soon = rt_deadline_after_ms(2);
    struct rt_deadline later = rt_deadline_after_ms(60000);

    (void)state;
    assert_true(soon.at_ns < later.at_ns);
    assert_int_equal(rt_deadline_min(soon, later).at_ns, soon.at_ns);
    assert_int_equal(rt_deadline_min(later, soon).at_ns, soon.at_ns);
    assert_int_equal(rt_deadline_min(later, RT_DEADLINE_NEVER).at_ns, later.at_ns);
    assert_false(rt_deadline_expired(later));
    assert_true(rt_deadline_remaining_ns(later) <= 60000 * RT_NS_PER_MS);
    assert_true(rt_deadline_remaining_ns(later) > 30000 * RT_NS_PER_MS);
    sh_sleep_until(soon.at_ns);
    assert_true(rt_deadline_expired(soon)); /* at its moment, not after it */
    assert_int_equal(rt_deadline_remaining_ns(soon), 0);
    assert_true(rt_deadline_expired(rt_deadline_after_ns(0)));
    assert_false(rt_deadline_expired(RT_DEADLINE_NEVER));
    assert_true(rt_deadline_remaining_ns(RT_DEADLINE_NEVER) == UINT64_MAX);
    assert_true(rt_deadline_after_ms(UINT64_MAX).at_ns == SH_NEVER);
    assert_true(rt_deadline_after_ns(UINT64_MAX).at_ns == SH_NEVER);
    assert_true(rt_utc_ms() > UINT64_C(1600000000000));
}

static struct rt_atomic_u32 shared_word;
static struct rt_atomic_u64 shared_sum;

static void add_many(void *context)
{
    (void)context;
    for (unsigned i = 0; i < 10000; i++) {
        (void)rt_atomic_add_u32(&shared_word, 1);
        rt_counter_add(&shared_sum, 2);
    }
}

static void atomics_do_not_lose_updates(void **state)
{
    struct sh_thread *threads[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_ok(sh_spawn("adder", add_many, NULL, &threads[i], NULL));
    for (unsigned i = 0; i < 2; i++)
        assert_true(sh_join(threads[i], SH_NEVER));
    assert_int_equal(rt_atomic_load_u32(&shared_word), 20000);
    assert_int_equal(rt_counter_load(&shared_sum), 40000);
    assert_true(rt_atomic_cas_u32(&shared_word, 20000, 7));
    assert_false(rt_atomic_cas_u32(&shared_word, 20000, 8));
    assert_int_equal(rt_atomic_exchange_u32(&shared_word, 9), 7);
    assert_int_equal(rt_atomic_sub_u32(&shared_word, 4), 9);
    assert_int_equal(rt_atomic_load_u32(&shared_word), 5);
    assert_int_equal(sh_choose(3, "fault"), 0);
    assert_true(sh_random() != sh_random());
}

static void registry_lists_objects_then_lock_classes(void **state)
{
    static struct rt_registry_entry list[RT_REGISTRY_MAX + 64];
    struct rt_registry_entry entry = {
        .kind = RT_KIND_QUEUE, .policy = "reject", .owner = "test", .capacity = 5};
    struct ron_errinfo info = {0};
    size_t classes_count, count;

    (void)state;
    (void)rt_lock_classes(&classes_count);
    assert_true(classes_count >= 16);
    assert_int_equal(rt_registry_list(NULL, 0), classes_count);
    entry.object = &list[0];
    entry.name = "first";
    assert_ok(rt_registry_add(&entry, NULL));
    entry.object = &list[1];
    entry.name = "second";
    assert_ok(rt_registry_add(&entry, NULL));
    rt_registry_remove(&list[0]);
    count = rt_registry_list(list, RON_ARRAY_COUNT(list));
    assert_int_equal(count, classes_count + 1);
    assert_string_equal(list[0].name, "second");
    assert_int_equal(list[0].capacity, 5);
    assert_string_equal(rt_kind_name(list[0].kind), "queue");
    assert_string_equal(list[1].name, "cfg_snapshot");
    assert_int_equal(list[1].capacity, 10);
    assert_string_equal(rt_kind_name(list[count - 1].kind), "lock class");
    for (size_t i = 1; i < RT_REGISTRY_MAX; i++)
        assert_ok(rt_registry_add(&entry, NULL));
    support_assert_error(rt_registry_add(&entry, &info), &info, RON_ERR_BUSY, "second");
    assert_dies(rt_registry_remove(&info), "entries_count");
    rt_init();
    assert_int_equal(rt_registry_list(NULL, 0), classes_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_nests_in_rising_rank),
        cmocka_unit_test(ranks_rise_as_designed),
        cmocka_unit_test(lock_rank_inversion_dies),
        cmocka_unit_test(lock_blocking_under_a_lock_dies),
        cmocka_unit_test(lock_foreign_unlock_dies),
        cmocka_unit_test(cond_wait_needs_exactly_its_lock),
        cmocka_unit_test(cond_broadcast_wakes_all),
        cmocka_unit_test(spawn_survives_each_failed_allocation),
        cmocka_unit_test(deadline_is_carried_not_restarted),
        cmocka_unit_test(atomics_do_not_lose_updates),
        cmocka_unit_test(registry_lists_objects_then_lock_classes),
    };
    return cmocka_run_group_tests_name("rt_lock", tests, locks_setup, locks_teardown);
}
