/*
 * test_rt_policy.c - breaker, token bucket and pulse: pure machines, driven with made-up times.
 * (Backoff is tested with tasks.) Method: each edge at its bound and one nanosecond or token
 * beyond.
 */
#include "support.h"

#include "rt/breaker.h"
#include "rt/bucket.h"
#include "rt/pulse.h"

static const struct rt_breaker_policy policy = {
    .failures_max = 3, .probes_count = 2, .window_ns = 100, .open_ns = 50};

static struct rt_breaker_ticket allow(struct rt_breaker *breaker, uint64_t now_ns)
{
    struct rt_breaker_ticket ticket = {UINT32_MAX};

    assert_true(rt_breaker_allow(breaker, now_ns, &ticket));
    return ticket;
}

static void assert_refused(struct rt_breaker *breaker, uint64_t now_ns)
{
    struct rt_breaker_ticket ticket = {77};

    assert_false(rt_breaker_allow(breaker, now_ns, &ticket));
    assert_int_equal(ticket.era, 77);
}

static void fail_at(struct rt_breaker *breaker, uint64_t now_ns)
{
    rt_breaker_fail(breaker, allow(breaker, now_ns), now_ns);
}

static void breaker_opens_on_failures_within_the_window(void **state)
{
    struct rt_breaker breaker;

    (void)state;
    rt_breaker_init(&breaker, &policy);
    fail_at(&breaker, 1000);
    fail_at(&breaker, 1050);
    rt_breaker_succeed(&breaker, allow(&breaker, 1060)); /* rolling: a success forgives nothing */
    assert_int_equal(rt_breaker_state(&breaker, 1060), RT_BREAKER_CLOSED);
    fail_at(&breaker, 1099);
    assert_int_equal(rt_breaker_state(&breaker, 1099), RT_BREAKER_OPEN);
    assert_int_equal(breaker.opened_count, 1);
    assert_refused(&breaker, 1099);
    assert_refused(&breaker, 1148);
    assert_int_equal(rt_breaker_state(&breaker, 1149), RT_BREAKER_HALF_OPEN);
}

static void breaker_stays_closed_when_failures_are_spread(void **state)
{
    struct rt_breaker breaker;

    (void)state;
    rt_breaker_init(&breaker, &policy);
    for (uint64_t now_ns = 0; now_ns < 5000; now_ns += 50) /* the third is just outside */
        fail_at(&breaker, now_ns);
    assert_int_equal(rt_breaker_state(&breaker, 5000), RT_BREAKER_CLOSED);
    fail_at(&breaker, 4999);
    assert_int_equal(rt_breaker_state(&breaker, 5000), RT_BREAKER_OPEN);
}

static void open_breaker(struct rt_breaker *breaker)
{
    rt_breaker_init(breaker, &policy);
    for (unsigned i = 0; i < 3; i++)
        fail_at(breaker, 0);
}

static void breaker_closes_after_all_probes(void **state)
{
    struct rt_breaker_ticket first, second;
    struct rt_breaker breaker;

    (void)state;
    open_breaker(&breaker);
    first = allow(&breaker, 50);
    rt_breaker_succeed(&breaker, first);
    assert_int_equal(rt_breaker_state(&breaker, 50), RT_BREAKER_HALF_OPEN); /* one of two */
    open_breaker(&breaker);
    first = allow(&breaker, 50);
    second = allow(&breaker, 50);
    assert_refused(&breaker, 1000); /* both probes are out */
    rt_breaker_succeed(&breaker, first);
    assert_int_equal(rt_breaker_state(&breaker, 1000), RT_BREAKER_HALF_OPEN);
    assert_refused(&breaker, 1000);
    rt_breaker_succeed(&breaker, second);
    assert_int_equal(rt_breaker_state(&breaker, 1000), RT_BREAKER_CLOSED);
    fail_at(&breaker, 1000); /* the failures from before do not count any more */
    fail_at(&breaker, 1000);
    assert_int_equal(rt_breaker_state(&breaker, 1000), RT_BREAKER_CLOSED);
}

static void breaker_opens_again_when_a_probe_fails(void **state)
{
    struct rt_breaker_ticket first, second;
    struct rt_breaker breaker;

    (void)state;
    open_breaker(&breaker);
    first = allow(&breaker, 50);
    second = allow(&breaker, 50);
    rt_breaker_fail(&breaker, first, 60);
    assert_refused(&breaker, 109);
    rt_breaker_succeed(&breaker, second); /* of a past era */
    assert_refused(&breaker, 109);
    (void)allow(&breaker, 110);
    assert_int_equal(breaker.opened_count, 2);
}

static void breaker_ignores_late_answers_and_forgets_probes(void **state)
{
    struct rt_breaker_ticket late, probe;
    struct rt_breaker breaker;

    (void)state;
    rt_breaker_init(&breaker, &policy);
    late = allow(&breaker, 0);
    for (unsigned i = 0; i < 3; i++)
        fail_at(&breaker, 0);
    probe = allow(&breaker, 50);
    rt_breaker_fail(&breaker, late, 50); /* was sent before the break: no probe */
    assert_int_equal(rt_breaker_state(&breaker, 50), RT_BREAKER_HALF_OPEN);
    (void)allow(&breaker, 50);
    assert_refused(&breaker, 50);
    rt_breaker_forget(&breaker, probe);
    (void)allow(&breaker, 50);
    assert_refused(&breaker, 50);
    rt_breaker_forget(&breaker, late);
    assert_refused(&breaker, 50);
}

static void bucket_gives_its_burst_then_its_rate(void **state)
{
    struct rt_bucket bucket;
    const uint64_t s = RT_BUCKET_UNIT;

    (void)state;
    rt_bucket_init(&bucket, 10, 5, s);
    assert_true(rt_bucket_take(&bucket, 5, s));
    assert_false(rt_bucket_take(&bucket, 1, s));
    assert_true(rt_bucket_take(&bucket, 0, s));
    assert_int_equal(rt_bucket_wait_ns(&bucket, 1, s), s / 10);
    assert_int_equal(rt_bucket_wait_ns(&bucket, 5, s), s / 2);
    assert_false(rt_bucket_take(&bucket, 1, s + s / 10 - 1));
    assert_int_equal(rt_bucket_wait_ns(&bucket, 1, s + s / 10 - 1), 1);
    assert_true(rt_bucket_take(&bucket, 1, s + s / 10));
    assert_true(rt_bucket_wait_ns(&bucket, 6, s) == UINT64_MAX);
    rt_bucket_init(&bucket, 3, 1, 0);
    assert_true(rt_bucket_take(&bucket, 1, 0));
    assert_int_equal(rt_bucket_wait_ns(&bucket, 1, 0), s / 3 + 1); /* rounded up: enough by then */
    assert_false(rt_bucket_take(&bucket, 1, s / 3));
    assert_true(rt_bucket_take(&bucket, 1, s / 3 + 1));
}

static void bucket_never_holds_more_than_its_burst(void **state)
{
    struct rt_bucket bucket;

    (void)state;
    rt_bucket_init(&bucket, RT_BUCKET_RATE_MAX, RT_BUCKET_BURST_MAX, 0);
    assert_false(rt_bucket_take(&bucket, (uint64_t)RT_BUCKET_BURST_MAX + 1, UINT64_MAX));
    assert_true(rt_bucket_take(&bucket, RT_BUCKET_BURST_MAX, UINT64_MAX));
    assert_false(rt_bucket_take(&bucket, 1, UINT64_MAX));
    assert_false(rt_bucket_take(&bucket, 1, 0)); /* time went back: nothing */
    assert_true(rt_bucket_wait_ns(&bucket, (uint64_t)RT_BUCKET_BURST_MAX + 1, 0) == UINT64_MAX);
}

static void bucket_counts_exactly_over_odd_steps(void **state)
{
    struct rt_bucket bucket;
    uint64_t taken = 0, now_ns = 0;

    (void)state;
    rt_bucket_init(&bucket, 7, 1, 0);
    assert_true(rt_bucket_take(&bucket, 1, 0));
    for (unsigned i = 0; now_ns < 100 * RT_BUCKET_UNIT; i++) {
        taken += rt_bucket_take(&bucket, 1, now_ns) ? 1 : 0;
        now_ns += 1234567 + i % 89;
    }
    assert_in_range(taken, 693,
                    700); /* a taker that polls every 1.2 ms loses less than one in 100 */
    rt_bucket_init(&bucket, 0, 1, 0);
    assert_true(rt_bucket_take(&bucket, 1, 0));
    assert_false(rt_bucket_take(&bucket, 1, UINT64_MAX));
    assert_true(rt_bucket_wait_ns(&bucket, 1, UINT64_MAX) == UINT64_MAX);
}

static void pulse_dies_of_silence_and_needs_good_beats_in_a_row(void **state)
{
    struct rt_pulse pulse;

    (void)state;
    rt_pulse_init(&pulse, 500, 3);
    assert_false(rt_pulse_alive(&pulse, 0)); /* born dead */
    for (uint64_t now_ns = 1000; now_ns < 1003; now_ns++) {
        assert_false(rt_pulse_alive(&pulse, now_ns));
        rt_pulse_beat(&pulse, now_ns);
    }
    assert_true(rt_pulse_alive(&pulse, 1002)); /* the third */
    assert_true(rt_pulse_alive(&pulse, 1002 + 499));
    rt_pulse_beat(&pulse, 1002 + 499);
    assert_true(rt_pulse_alive(&pulse, 2000));
    assert_true(rt_pulse_alive(&pulse, 900)); /* time that goes back is no silence */
    assert_false(rt_pulse_alive(&pulse, 1501 + 500));
    assert_false(rt_pulse_alive(&pulse, 1600)); /* dead is dead */
    rt_pulse_beat(&pulse, 3000);
    rt_pulse_beat(&pulse, 3499);
    rt_pulse_beat(&pulse, 3999); /* after a silence: the first of a new row */
    rt_pulse_beat(&pulse, 4000);
    assert_false(rt_pulse_alive(&pulse, 4000));
    rt_pulse_beat(&pulse, 4001);
    assert_true(rt_pulse_alive(&pulse, 4001));
}

static void pulse_row_is_broken_by_a_bad_answer(void **state)
{
    struct rt_pulse pulse;

    (void)state;
    rt_pulse_init(&pulse, 500, 3);
    rt_pulse_beat(&pulse, 1000);
    rt_pulse_beat(&pulse, 1001);
    rt_pulse_miss(&pulse);
    rt_pulse_beat(&pulse, 1002);
    rt_pulse_beat(&pulse, 1003);
    assert_false(rt_pulse_alive(&pulse, 1003));
    rt_pulse_beat(&pulse, 1004);
    assert_true(rt_pulse_alive(&pulse, 1004));
    rt_pulse_miss(&pulse); /* alone it does not kill */
    assert_true(rt_pulse_alive(&pulse, 1503));
    assert_false(rt_pulse_alive(&pulse, 1504));
    rt_pulse_beat(&pulse, 900); /* a beat from before is a beat, and no step back */
    assert_false(rt_pulse_alive(&pulse, 1504));
    assert_dies(rt_pulse_init(&pulse, 0, 3), "silence_ns > 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaker_opens_on_failures_within_the_window),
        cmocka_unit_test(breaker_stays_closed_when_failures_are_spread),
        cmocka_unit_test(breaker_closes_after_all_probes),
        cmocka_unit_test(breaker_opens_again_when_a_probe_fails),
        cmocka_unit_test(breaker_ignores_late_answers_and_forgets_probes),
        cmocka_unit_test(bucket_gives_its_burst_then_its_rate),
        cmocka_unit_test(bucket_never_holds_more_than_its_burst),
        cmocka_unit_test(bucket_counts_exactly_over_odd_steps),
        cmocka_unit_test(pulse_dies_of_silence_and_needs_good_beats_in_a_row),
        cmocka_unit_test(pulse_row_is_broken_by_a_bad_answer),
    };
    return cmocka_run_group_tests_name("rt_policy", tests, NULL, NULL);
}
