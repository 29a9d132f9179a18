/*
 * test_service_nudge.c - the Committer while the disk is at work: what comes meanwhile is appended
 * behind it, and a disk that hangs is given up in its time all the same.
 */
#include "service_fixture.h"

#include "rt/lock.h"

/* A disk whose syncs end when the test says so. */
static struct slow_disk {
    struct rt_lock lock;
    struct rt_cond changed;
    bool open;
    uint32_t nudges;
    struct rt_atomic_u32 waits_count;
} slow;

static void slow_lock(void) RON_LOCKS(storage)
{
    rt_lock_take(&slow.lock);
}
static void slow_unlock(void) RON_UNLOCKS(storage)
{
    rt_lock_drop(&slow.lock);
}

static enum ron_err slow_wait(struct ledger_engine *engine, uint64_t number, uint32_t seen,
                              struct rt_deadline deadline, struct ron_errinfo *reterr) RON_BLOCKS
{
    bool in_time = true, open, nudged;

    (void)rt_atomic_add_u32(&slow.waits_count, 1);
    slow_lock();
    while (!slow.open && slow.nudges == seen && in_time)
        in_time = rt_cond_wait(&slow.changed, &slow.lock, deadline.at_ns);
    open = slow.open;
    nudged = slow.nudges != seen;
    slow_unlock();
    if (open)
        return gate_wait(engine, number, deadline, reterr);
    return nudged ? RON_ERR_OK : ron_fail(reterr, RON_ERR_TIMEOUT, "a sync takes too long");
}

static uint32_t slow_nudges(struct ledger_engine *engine)
{
    uint32_t nudges;

    (void)engine;
    slow_lock();
    nudges = slow.nudges;
    slow_unlock();
    return nudges;
}

static void slow_nudge(struct ledger_engine *engine)
{
    (void)engine;
    slow_lock();
    slow.nudges++;
    rt_cond_broadcast(&slow.changed);
    slow_unlock();
}

static void slow_open(void)
{
    slow_lock();
    slow.open = true;
    rt_cond_broadcast(&slow.changed);
    slow_unlock();
}

static struct service_fixture *slow_fixture(void)
{
    static struct ledger_engine_ops ops;
    struct service_fixture *f = fixture_new();

    slow = (struct slow_disk){.open = false};
    rt_lock_init(&slow.lock, "slow disk", RON_RANK_storage);
    rt_cond_init(&slow.changed, "slow disk");
    ops = gate_ops;
    ops.wait_nudged = slow_wait;
    ops.nudges = slow_nudges;
    ops.nudge = slow_nudge;
    f->gate->head.ops = &ops;
    return f;
}

static void slow_free(struct service_fixture *f)
{
    fixture_free(f);
    rt_cond_fini(&slow.changed);
    rt_lock_fini(&slow.lock);
}

static void what_comes_during_a_sync_is_appended_meanwhile(void **state) RON_BLOCKS
{
    struct service_fixture *f = slow_fixture();
    struct call *calls[3];

    (void)state;
    fixture_start(f);
    for (uint32_t i = 0; i < 3; i++) {
        const char id[3] = {'m', (char)('1' + i), 0};

        calls[i] = submit(f, call_new(f, id, NULL, "alice", 1 + i, NULL));
        until(rt_atomic_load_u32(&f->gate->appends_count) == i + 1);
        until(rt_atomic_load_u32(&slow.waits_count) > i);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rt_atomic_load_u32(&calls[i]->answers_count), 0);
    assert_int_equal(balance_of(f, "alice"), 0);
    slow_open();
    for (uint32_t i = 0; i < 3; i++) {
        assert_ptr_equal(next_answer(f), calls[i]);
        assert_int_equal(calls[i]->request.outcome.err, RON_ERR_OK);
    }
    assert_int_equal(balance_of(f, "alice"), 6);
    fixture_stop(f);
    slow_free(f);
}

static void nudges_give_a_disk_no_more_time(void **state) RON_BLOCKS
{
    struct service_fixture *f = slow_fixture();
    struct ledger_health health;
    struct call *call;

    (void)state;
    f->options.sync_ms_max = 100;
    fixture_start(f);
    call = submit(f, call_new(f, "m1", NULL, "alice", 5, NULL));
    until((slow_nudge(NULL), rt_atomic_load_u32(&call->answers_count) == 1));
    assert_int_equal(next_answer(f)->request.outcome.err, RON_ERR_SAFE_MODE);
    assert_true(call->request.outcome.unknown);
    ledger_read_health(f->service, &health);
    assert_int_equal(health.status.state, RT_LIFE_SAFE_MODE);
    slow_open();
    fixture_stop(f);
    slow_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_during_a_sync_is_appended_meanwhile),
        cmocka_unit_test(nudges_give_a_disk_no_more_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
