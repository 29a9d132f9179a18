/*
 * test_auth_policy.c - freezes, daily sums and rates, in given time.
 */
#include "support.h"

#include "auth/caveat.h"
#include "auth/policy.h"
#include "auth/sums.h"
#include "base/b3.h"
#include "base/rfc3339.h"

#define NOW_MS UINT64_C(1800000000000)
#define S_NS   UINT64_C(1000000000)
#define ID     "k1.01ARZ3NDEKTSV4RRFFQ69G5FAV"

static struct auth_grant grant_of(const char *identifier, const char *caveat)
{
    struct auth_grant grant;

    auth_grant_begin(&grant, ron_slice_text(identifier));
    if (caveat != NULL)
        assert_ok(auth_caveat_apply(&grant, ron_slice_text(caveat), NULL));
    return grant;
}

static struct auth_policy *policy_make(uint32_t rows)
{
    struct auth_policy *policy = NULL;

    assert_ok(auth_policy_new(rows, &policy, NULL));
    return policy;
}

static struct auth_act act_of(uint64_t amount, uint64_t now_ms)
{
    return (struct auth_act){
        .role = AUTH_ROLE_WALLET,
        .is_write = true,
        .charge = true,
        .use = {.account = RON_SLICE("acct_a"),
                .is_debit = true,
                .asset = RON_SLICE("roc"),
                .amount = ron_u128_of(amount)},
        .now_ms = now_ms,
    };
}

static enum ron_err spend(struct auth_policy *policy, const struct auth_grant *grant,
                          uint64_t amount, uint64_t now_ms)
{
    struct auth_act act = act_of(amount, now_ms);
    struct auth_details details = {0};

    return auth_policy_evaluate(policy, grant, &act, &details, NULL);
}

static void daily_sums_hold_and_end_with_the_day(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, "max_daily = 100");
    uint64_t midnight = (NOW_MS / RON_DAY_MS + 1) * RON_DAY_MS;
    struct auth_details details = {0};
    struct ron_errinfo info = {0};
    struct auth_act act = act_of(41, NOW_MS);

    (void)state;
    assert_ok(spend(policy, &grant, 60, NOW_MS));
    support_assert_error(auth_policy_evaluate(policy, &grant, &act, &details, &info), &info,
                         RON_ERR_LIMIT_EXCEEDED, "max_daily");
    assert_string_equal(details.reason, "max_daily");
    assert_ok(spend(policy, &grant, 40, midnight - 1)); /* the refused one was not counted */
    assert_int_equal(spend(policy, &grant, 1, midnight - 1), RON_ERR_LIMIT_EXCEEDED);
    assert_ok(spend(policy, &grant, 100, midnight));
    assert_int_equal(spend(policy, &grant, 1, midnight), RON_ERR_LIMIT_EXCEEDED);
    /* A clock that goes back does not give the new day's sum away. */
    assert_int_equal(spend(policy, &grant, 1, midnight - 1), RON_ERR_LIMIT_EXCEEDED);
    policy = auth_policy_free(policy);
}

static void variants_of_a_token_share_the_sum(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant wide = grant_of(ID, "max_daily = 100");
    struct auth_grant narrow = grant_of(ID, "max_daily = 50");
    struct auth_grant other = grant_of("k1.01ARZ3NDEKTSV4RRFFQ69G5FAW", "max_daily = 50");

    (void)state;
    assert_ok(spend(policy, &wide, 40, NOW_MS));
    assert_int_equal(spend(policy, &narrow, 11, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    assert_ok(spend(policy, &narrow, 10, NOW_MS));
    assert_ok(spend(policy, &other, 50, NOW_MS));
    assert_ok(spend(policy, &wide, 50, NOW_MS));
    assert_int_equal(spend(policy, &wide, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    policy = auth_policy_free(policy);
}

static void asking_charges_nothing_and_refunds_return(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, "max_daily = 100");
    struct auth_act act = act_of(100, NOW_MS);
    struct auth_details details = {0};

    (void)state;
    act.charge = false;
    for (int i = 0; i < 3; i++)
        assert_ok(auth_policy_evaluate(policy, &grant, &act, &details, NULL));
    assert_ok(spend(policy, &grant, 100, NOW_MS));
    assert_int_equal(auth_policy_evaluate(policy, &grant, &act, &details, NULL),
                     RON_ERR_LIMIT_EXCEEDED);
    auth_policy_refund(policy, grant.capability, ron_u128_of(30), NOW_MS);
    assert_ok(spend(policy, &grant, 30, NOW_MS));
    assert_int_equal(spend(policy, &grant, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    auth_policy_refund(policy, grant.capability, ron_u128_of(30), NOW_MS - 2 * RON_DAY_MS);
    assert_int_equal(spend(policy, &grant, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    policy = auth_policy_free(policy);
}

static void sums_are_restored_and_never_wrap(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, "max_daily = 340282366920938463463374607431768211455");

    (void)state;
    assert_ok(auth_policy_charge(policy, grant.capability, RON_U128_MAX, NOW_MS, NULL));
    assert_int_equal(spend(policy, &grant, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    assert_ok(auth_policy_charge(policy, grant.capability, ron_u128_of(5), NOW_MS, NULL));
    assert_int_equal(spend(policy, &grant, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    /* A sum of yesterday does not count today. */
    assert_ok(
        auth_policy_charge(policy, grant.capability, ron_u128_of(5), NOW_MS + RON_DAY_MS, NULL));
    assert_ok(auth_policy_charge(policy, grant.capability, RON_U128_MAX, NOW_MS, NULL));
    assert_ok(spend(policy, &grant, 1, NOW_MS + RON_DAY_MS));
    policy = auth_policy_free(policy);
}

/* A log tells of all capabilities: they take no rows from those with ceilings, and beyond what is
 * kept a sum that is not known refuses. */
static void restored_sums_take_no_rows(void **state)
{
    struct auth_policy *policy = policy_make(AUTH_POLICY_WAYS);
    struct auth_grant grant = grant_of(ID, "max_daily = 100");
    struct auth_grant other = grant_of("k1.01ARZ3NDEKTSV4RRFFQ69G5FA0", "max_daily = 100");
    struct auth_act act = act_of(1, NOW_MS);
    struct auth_details details = {0};
    struct ron_b3 capability;

    (void)state;
    assert_ok(auth_policy_charge(policy, grant.capability, ron_u128_of(60), NOW_MS, NULL));
    for (uint32_t i = 1; i < AUTH_SUMS_MAX; i++) {
        capability = ron_b3(&i, sizeof(i));
        assert_ok(auth_policy_charge(policy, capability.bytes, ron_u128_of(1), NOW_MS, NULL));
    }
    assert_ok(spend(policy, &other, 100, NOW_MS));
    assert_ok(spend(policy, &grant, 30, NOW_MS));
    assert_int_equal(spend(policy, &grant, 11, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    auth_policy_refund(policy, grant.capability, ron_u128_of(90), NOW_MS); /* of its own at most */
    assert_int_equal(spend(policy, &grant, 41, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    capability = ron_b3("more", 4);
    assert_int_equal(auth_policy_charge(policy, capability.bytes, ron_u128_of(1), NOW_MS, NULL),
                     RON_ERR_BUSY);
    assert_int_equal(auth_policy_evaluate(policy, &other, &act, &details, NULL), RON_ERR_NOT_READY);
    assert_string_equal(details.reason, "daily_sums");
    assert_ok(spend(policy, &grant, 40, NOW_MS));
    assert_ok(spend(policy, &other, 100, NOW_MS + RON_DAY_MS));
    auth_policy_forget(policy);
    assert_ok(spend(policy, &grant, 60, NOW_MS + RON_DAY_MS));
    policy = auth_policy_free(policy);
}

/* Begun anew it counts nothing twice. */
static void restored_sums_begin_anew(void **state)
{
    struct auth_policy *policy = policy_make(AUTH_POLICY_WAYS);
    struct auth_grant grant = grant_of(ID, "max_daily = 100");

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        auth_policy_forget(policy);
        assert_ok(auth_policy_charge(policy, grant.capability, ron_u128_of(60), NOW_MS, NULL));
    }
    assert_ok(spend(policy, &grant, 40, NOW_MS));
    assert_int_equal(spend(policy, &grant, 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    policy = auth_policy_free(policy);
}

static void a_counter_is_never_dropped_for_another(void **state)
{
    struct auth_policy *policy = policy_make(AUTH_POLICY_WAYS);
    struct auth_grant grants[AUTH_POLICY_WAYS + 1];

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(grants); i++) {
        char identifier[] = "k1.01ARZ3NDEKTSV4RRFFQ69G5FA0";

        identifier[sizeof(identifier) - 2] = (char)('0' + i);
        grants[i] = grant_of(identifier, "max_daily = 10");
    }
    for (size_t i = 0; i < AUTH_POLICY_WAYS; i++)
        assert_ok(spend(policy, &grants[i], 10, NOW_MS));
    assert_int_equal(spend(policy, &grants[AUTH_POLICY_WAYS], 1, NOW_MS), RON_ERR_BUSY);
    for (size_t i = 0; i < AUTH_POLICY_WAYS; i++)
        assert_int_equal(spend(policy, &grants[i], 1, NOW_MS), RON_ERR_LIMIT_EXCEEDED);
    assert_ok(spend(policy, &grants[AUTH_POLICY_WAYS], 1, NOW_MS + RON_DAY_MS));
    policy = auth_policy_free(policy);
}

static enum ron_err request(struct auth_policy *policy, const struct auth_grant *grant,
                            uint64_t now_ns, struct auth_details *details)
{
    return auth_policy_rate(policy, grant, NOW_MS, now_ns, details, NULL);
}

static void rates_give_a_burst_and_then_a_pace(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, "rate = 10/3");
    struct auth_grant free_grant = grant_of(ID, NULL);
    struct auth_details details = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_ok(request(policy, &grant, S_NS, &details));
    assert_int_equal(request(policy, &grant, S_NS, &details), RON_ERR_RATE_LIMITED);
    assert_string_equal(details.reason, "rate");
    assert_int_equal(details.wait_ms, 100);
    assert_ok(request(policy, &grant, S_NS + S_NS / 10, &details));
    assert_int_equal(request(policy, &grant, S_NS + S_NS / 10, &details), RON_ERR_RATE_LIMITED);
    for (int i = 0; i < 100; i++)
        assert_ok(request(policy, &free_grant, S_NS, &details));
    policy = auth_policy_free(policy);
}

/* A holder who makes variants gets no more than the token they come from. */
static void variants_of_a_token_share_the_rate(void **state)
{
    struct auth_policy *policy = policy_make(64);
    const char *rates[] = {"rate = 10/3", "rate = 9/3", "rate = 10/2", "rate = 1/1"};
    struct auth_details details = {0};
    int passed = 0;

    (void)state;
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < RON_ARRAY_COUNT(rates); i++) {
            struct auth_grant grant = grant_of(ID, rates[i]);

            passed += request(policy, &grant, S_NS, &details) == RON_ERR_OK;
        }
    }
    assert_in_range(passed, 1, 3);
    policy = auth_policy_free(policy);
}

static enum ron_err write_as(struct auth_policy *policy, enum auth_role role, const char *account,
                             uint64_t now_ms, struct auth_details *details)
{
    struct auth_grant grant = grant_of(ID, NULL);
    struct auth_act act = act_of(1, now_ms);

    act.role = role;
    act.use.account = ron_slice_text(account);
    return auth_policy_evaluate(policy, &grant, &act, details, NULL);
}

static void freezes_stop_writes_and_not_reads(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, NULL);
    struct auth_act read = act_of(0, NOW_MS);
    struct auth_details details = {0};
    struct ron_errinfo info = {0};

    (void)state;
    assert_ok(
        auth_policy_freeze(policy, AUTH_ROLE_WALLET, RON_SLICE(""), NOW_MS + 500, NOW_MS, NULL));
    assert_int_equal(write_as(policy, AUTH_ROLE_WALLET, "acct_a", NOW_MS, &details),
                     RON_ERR_NOT_READY);
    assert_string_equal(details.reason, "frozen");
    assert_int_equal(details.wait_ms, 500);
    assert_ok(write_as(policy, AUTH_ROLE_LEDGER, "acct_a", NOW_MS, &details));
    read.is_write = false;
    read.use.is_debit = false;
    assert_ok(auth_policy_evaluate(policy, &grant, &read, &details, NULL));
    assert_int_equal(write_as(policy, AUTH_ROLE_WALLET, "acct_a", NOW_MS + 499, &details),
                     RON_ERR_NOT_READY);
    assert_ok(write_as(policy, AUTH_ROLE_WALLET, "acct_a", NOW_MS + 500, &details));
    /* One account, until lifted. */
    assert_ok(auth_policy_freeze(policy, AUTH_ROLE_WALLET, RON_SLICE("acct_a"), 0, NOW_MS, NULL));
    assert_int_equal(write_as(policy, AUTH_ROLE_WALLET, "acct_a", NOW_MS + 9999, &details),
                     RON_ERR_NOT_READY);
    assert_int_equal(details.wait_ms, 0);
    assert_ok(write_as(policy, AUTH_ROLE_WALLET, "acct_b", NOW_MS + 9999, &details));
    assert_ok(auth_policy_lift(policy, AUTH_ROLE_WALLET, RON_SLICE("acct_a"), NULL));
    assert_ok(write_as(policy, AUTH_ROLE_WALLET, "acct_a", NOW_MS + 9999, &details));
    support_assert_error(auth_policy_lift(policy, AUTH_ROLE_WALLET, RON_SLICE("acct_a"), &info),
                         &info, RON_ERR_NOT_FOUND, "none");
    policy = auth_policy_free(policy);
}

static void freezes_are_bounded_and_make_room_when_over(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_details details = {0};
    char account[8] = "a000";

    (void)state;
    for (unsigned i = 0; i < AUTH_FREEZES_MAX; i++) {
        account[1] = (char)('0' + i / 100);
        account[2] = (char)('0' + i / 10 % 10);
        account[3] = (char)('0' + i % 10);
        assert_ok(auth_policy_freeze(policy, AUTH_ROLE_LEDGER, ron_slice_text(account),
                                     NOW_MS + 1 + i, NOW_MS, NULL));
    }
    assert_int_equal(auth_policy_freeze(policy, AUTH_ROLE_LEDGER, RON_SLICE("b"), 0, NOW_MS, NULL),
                     RON_ERR_BUSY);
    assert_ok(auth_policy_freeze(policy, AUTH_ROLE_LEDGER, RON_SLICE("a000"), 0, NOW_MS, NULL));
    assert_ok(auth_policy_freeze(policy, AUTH_ROLE_LEDGER, RON_SLICE("b"), 0, NOW_MS + 2, NULL));
    assert_int_equal(write_as(policy, AUTH_ROLE_LEDGER, "b", NOW_MS + 2, &details),
                     RON_ERR_NOT_READY);
    assert_int_equal(write_as(policy, AUTH_ROLE_LEDGER, "a255", NOW_MS + 2, &details),
                     RON_ERR_NOT_READY);
    policy = auth_policy_free(policy);
}

static void what_the_grant_refuses_is_refused_here(void **state)
{
    struct auth_policy *policy = policy_make(64);
    struct auth_grant grant = grant_of(ID, "max_amount = 5");
    struct auth_details details = {0};
    struct auth_act act = act_of(6, NOW_MS);

    (void)state;
    assert_int_equal(auth_policy_evaluate(policy, &grant, &act, &details, NULL),
                     RON_ERR_LIMIT_EXCEEDED);
    assert_string_equal(details.reason, "max_amount");
    grant = grant_of(ID, "account = b*");
    assert_int_equal(auth_policy_evaluate(policy, &grant, &act, &details, NULL), RON_ERR_FORBIDDEN);
    assert_null(details.reason);
    policy = auth_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daily_sums_hold_and_end_with_the_day),
        cmocka_unit_test(variants_of_a_token_share_the_sum),
        cmocka_unit_test(asking_charges_nothing_and_refunds_return),
        cmocka_unit_test(sums_are_restored_and_never_wrap),
        cmocka_unit_test(restored_sums_take_no_rows),
        cmocka_unit_test(restored_sums_begin_anew),
        cmocka_unit_test(a_counter_is_never_dropped_for_another),
        cmocka_unit_test(rates_give_a_burst_and_then_a_pace),
        cmocka_unit_test(variants_of_a_token_share_the_rate),
        cmocka_unit_test(freezes_stop_writes_and_not_reads),
        cmocka_unit_test(freezes_are_bounded_and_make_room_when_over),
        cmocka_unit_test(what_the_grant_refuses_is_refused_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
