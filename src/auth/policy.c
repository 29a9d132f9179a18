/*
 * policy.c - freezes, daily sums and rates. See policy.h.
 */
#include "auth/policy.h"

#include "auth/sums.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/rfc3339.h"
#include "rt/bucket.h"

#define POLICY_MAGIC 0x706f6c79u
#define NS_PER_MS    UINT64_C(1000000)

struct row {
    bool in_use;
    bool has_bucket;
    uint8_t capability[AUTH_CAPABILITY_SIZE];
    uint64_t day; /* that spent belongs to */
    struct ron_u128 spent;
    struct rt_bucket bucket;
};

struct freeze {
    enum auth_role role;
    uint8_t account_size; /* 0: the whole role */
    char account[RON_ACCOUNT_NAME_SIZE_MAX];
    uint64_t until_ms; /* 0: until lifted */
};

struct auth_policy {
    uint32_t magic;
    uint32_t sets_mask;
    uint32_t freezes_count;
    struct freeze freezes[AUTH_FREEZES_MAX];
    struct row *rows; /* sets of AUTH_POLICY_WAYS */
    struct auth_sums restored;
};

enum ron_err auth_policy_new(uint32_t rows_count, struct auth_policy **ret_policy,
                             struct ron_errinfo *reterr)
{
    struct auth_policy *policy;

    RON_ASSERT(rows_count >= AUTH_POLICY_WAYS);
    RON_ASSERT(rows_count <= AUTH_POLICY_ROWS_MAX);
    RON_ASSERT((rows_count & (rows_count - 1)) == 0);
    policy = ron_mem_alloc(sizeof(*policy));
    if (policy == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "policy");
    policy->magic = POLICY_MAGIC;
    policy->sets_mask = rows_count / AUTH_POLICY_WAYS - 1;
    policy->rows = ron_mem_alloc_array(rows_count, sizeof(policy->rows[0]));
    if (policy->rows == NULL) {
        (void)auth_policy_free(policy);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "policy of %u rows", rows_count);
    }
    *ret_policy = policy;
    return RON_ERR_OK;
}

struct auth_policy *auth_policy_free(struct auth_policy *policy)
{
    if (policy == NULL)
        return NULL;
    RON_ASSERT(policy->magic == POLICY_MAGIC);
    policy->rows = ron_mem_free(policy->rows);
    auth_sums_fini(&policy->restored);
    policy->magic = 0;
    return ron_mem_free(policy);
}

/* Freezes. */

static bool freeze_is_over(const struct freeze *freeze, uint64_t now_ms)
{
    return freeze->until_ms != 0 && now_ms >= freeze->until_ms;
}

static bool freeze_is(const struct freeze *freeze, enum auth_role role, struct ron_slice account)
{
    return freeze->role == role &&
           ron_slice_equal(ron_slice_of(freeze->account, freeze->account_size), account);
}

static struct freeze *freeze_find(struct auth_policy *policy, enum auth_role role,
                                  struct ron_slice account)
{
    for (uint32_t i = 0; i < policy->freezes_count; i++) {
        if (freeze_is(&policy->freezes[i], role, account))
            return &policy->freezes[i];
    }
    return NULL;
}

static void freezes_sweep(struct auth_policy *policy, uint64_t now_ms)
{
    for (uint32_t i = policy->freezes_count; i-- > 0;) {
        if (freeze_is_over(&policy->freezes[i], now_ms))
            policy->freezes[i] = policy->freezes[--policy->freezes_count];
    }
}

enum ron_err auth_policy_freeze(struct auth_policy *policy, enum auth_role role,
                                struct ron_slice account, uint64_t until_ms, uint64_t now_ms,
                                struct ron_errinfo *reterr)
{
    struct freeze *freeze;

    RON_ASSERT(policy->magic == POLICY_MAGIC);
    RON_ASSERT((unsigned)role < AUTH_ROLE__MAX);
    if (account.size > RON_ACCOUNT_NAME_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "freeze: an account of %zu bytes, at most %d",
                        account.size, RON_ACCOUNT_NAME_SIZE_MAX);
    freeze = freeze_find(policy, role, account);
    if (freeze == NULL && policy->freezes_count == AUTH_FREEZES_MAX)
        freezes_sweep(policy, now_ms);
    if (freeze == NULL && policy->freezes_count == AUTH_FREEZES_MAX)
        return ron_fail(reterr, RON_ERR_BUSY, "freeze: %d are in force", AUTH_FREEZES_MAX);
    if (freeze == NULL) {
        freeze = &policy->freezes[policy->freezes_count++];
        freeze->role = role;
        freeze->account_size = (uint8_t)account.size;
        if (account.size > 0)
            memcpy(freeze->account, account.data, account.size);
    }
    freeze->until_ms = until_ms;
    return RON_ERR_OK;
}

enum ron_err auth_policy_lift(struct auth_policy *policy, enum auth_role role,
                              struct ron_slice account, struct ron_errinfo *reterr)
{
    struct freeze *freeze;

    RON_ASSERT(policy->magic == POLICY_MAGIC);
    freeze = freeze_find(policy, role, account);
    if (freeze == NULL)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "freeze: none of this in role %s",
                        auth_role_name(role));
    *freeze = policy->freezes[--policy->freezes_count];
    return RON_ERR_OK;
}

enum ron_err auth_policy_check_freezes(const struct auth_policy *policy, const struct auth_act *act,
                                       struct auth_details *details, struct ron_errinfo *reterr)
{
    RON_ASSERT(policy->magic == POLICY_MAGIC);
    for (uint32_t i = 0; i < policy->freezes_count; i++) {
        const struct freeze *freeze = &policy->freezes[i];

        if (freeze_is_over(freeze, act->now_ms))
            continue;
        if (!freeze_is(freeze, act->role, (struct ron_slice){0}) &&
            !freeze_is(freeze, act->role, act->use.account))
            continue;
        details->reason = "frozen";
        details->wait_ms = freeze->until_ms == 0 ? 0 : freeze->until_ms - act->now_ms;
        return ron_fail(reterr, RON_ERR_NOT_READY, "writes of %s are frozen%s",
                        auth_role_name(act->role),
                        freeze->account_size == 0 ? "" : " for this account");
    }
    return RON_ERR_OK;
}

/* Rows. */

static struct row *row_find(struct auth_policy *policy, const uint8_t *capability)
{
    size_t set = ron_load_le32(capability) & policy->sets_mask;
    struct row *rows = policy->rows + set * AUTH_POLICY_WAYS;

    for (size_t i = 0; i < AUTH_POLICY_WAYS; i++) {
        if (rows[i].in_use && memcmp(rows[i].capability, capability, AUTH_CAPABILITY_SIZE) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Does the row say nothing that a new one would not? now_ns 0: buckets are not known to be full. */
static bool row_is_spent(struct row *row, uint64_t day, uint64_t now_ns)
{
    if (!row->in_use)
        return true;
    if (row->day >= day && !ron_u128_is_zero(row->spent))
        return false;
    if (!row->has_bucket)
        return true;
    rt_bucket_refill(&row->bucket, now_ns);
    return row->bucket.level == row->bucket.level_max;
}

static enum ron_err row_get(struct auth_policy *policy, const uint8_t *capability, uint64_t day,
                            uint64_t now_ns, struct row **ret_row, struct ron_errinfo *reterr)
{
    struct row *rows = policy->rows +
                       (ron_load_le32(capability) & policy->sets_mask) * (size_t)AUTH_POLICY_WAYS;
    struct row *row = row_find(policy, capability);

    for (size_t i = 0; row == NULL && i < AUTH_POLICY_WAYS; i++) {
        if (!row_is_spent(&rows[i], day, now_ns))
            continue;
        row = &rows[i];
        *row = (struct row){.in_use = true, .day = day};
        memcpy(row->capability, capability, AUTH_CAPABILITY_SIZE);
    }
    if (row == NULL)
        return ron_fail(reterr, RON_ERR_BUSY, "policy: no row is free for this capability");
    *ret_row = row;
    return RON_ERR_OK;
}

/* Rates. */

enum ron_err auth_policy_rate(struct auth_policy *policy, const struct auth_grant *grant,
                              uint64_t now_ms, uint64_t now_ns, struct auth_details *details,
                              struct ron_errinfo *reterr)
{
    struct rt_bucket *bucket;
    struct row *row = NULL;
    uint64_t wait_ns;
    enum ron_err err;

    RON_ASSERT(policy->magic == POLICY_MAGIC);
    if (!auth_grant_has(grant, AUTH_CAVEAT_RATE))
        return RON_ERR_OK;
    err = row_get(policy, grant->capability, ron_day_of_ms(now_ms), now_ns, &row, reterr);
    if (err != RON_ERR_OK)
        return err;
    bucket = &row->bucket;
    if (!row->has_bucket)
        rt_bucket_init(bucket, grant->rate_per_s, grant->rate_burst, now_ns);
    row->has_bucket = true;
    /* A narrower variant of the token may have come before: its level is kept, so all variants
     * together never take more than the widest of them alone. */
    bucket->rate_per_s = grant->rate_per_s;
    bucket->level_max = grant->rate_burst * RT_BUCKET_UNIT;
    if (bucket->level > bucket->level_max)
        bucket->level = bucket->level_max;
    if (rt_bucket_take(bucket, 1, now_ns))
        return RON_ERR_OK;
    wait_ns = rt_bucket_wait_ns(bucket, 1, now_ns);
    details->reason = "rate";
    details->wait_ms = wait_ns / NS_PER_MS + (wait_ns % NS_PER_MS != 0);
    return ron_fail(reterr, RON_ERR_RATE_LIMITED, "the capability's rate of %u/s is used up",
                    grant->rate_per_s);
}

/* Daily sums. */

/* The sum of that day; a row of an earlier day starts anew, one of a later day stays. */
static struct ron_u128 *row_sum(struct row *row, uint64_t day)
{
    if (row->day < day) {
        row->day = day;
        row->spent = (struct ron_u128){0};
    }
    return &row->spent;
}

static enum ron_err check_daily(struct auth_policy *policy, const struct auth_grant *grant,
                                const struct auth_act *act, struct auth_details *details,
                                struct ron_errinfo *reterr)
{
    struct ron_u128 sum, spent = {0};
    struct row *row = NULL;
    uint64_t day = ron_day_of_ms(act->now_ms);

    if (!auth_grant_has(grant, AUTH_CAVEAT_MAX_DAILY) || !act->use.is_debit)
        return RON_ERR_OK;
    if (!auth_sums_get(&policy->restored, grant->capability, day, &sum)) {
        details->reason = "daily_sums";
        details->wait_ms = 0;
        return ron_fail(reterr, RON_ERR_NOT_READY,
                        "what the capability spent before the restart is not known");
    }
    if (act->charge) {
        enum ron_err err = row_get(policy, grant->capability, day, 0, &row, reterr);

        if (err != RON_ERR_OK)
            return err;
    } else {
        row = row_find(policy, grant->capability);
    }
    if (row != NULL)
        spent = *row_sum(row, day);
    if (!ron_u128_add(spent, act->use.amount, &spent) || !ron_u128_add(sum, spent, &sum) ||
        ron_u128_compare(sum, grant->max_daily) > 0) {
        details->reason = "max_daily";
        details->wait_ms = 0;
        return ron_fail(reterr, RON_ERR_LIMIT_EXCEEDED,
                        "the amount is above what is left of the capability's max_daily");
    }
    if (act->charge)
        row->spent = spent;
    return RON_ERR_OK;
}

enum ron_err auth_policy_evaluate(struct auth_policy *policy, const struct auth_grant *grant,
                                  const struct auth_act *act, struct auth_details *details,
                                  struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(policy->magic == POLICY_MAGIC);
    if (act->is_write)
        err = auth_policy_check_freezes(policy, act, details, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = auth_grant_cover(grant, &act->use, reterr);
    if (err != RON_ERR_OK) {
        details->reason = err == RON_ERR_LIMIT_EXCEEDED ? "max_amount" : NULL;
        details->wait_ms = 0;
        return err;
    }
    return check_daily(policy, grant, act, details, reterr);
}

enum ron_err auth_policy_charge(struct auth_policy *policy,
                                const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                                struct ron_u128 amount, uint64_t time_ms,
                                struct ron_errinfo *reterr)
{
    RON_ASSERT(policy->magic == POLICY_MAGIC);
    return auth_sums_add(&policy->restored, capability, amount, ron_day_of_ms(time_ms), reterr);
}

void auth_policy_forget(struct auth_policy *policy)
{
    RON_ASSERT(policy->magic == POLICY_MAGIC);
    auth_sums_fini(&policy->restored);
}

void auth_policy_refund(struct auth_policy *policy,
                        const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                        struct ron_u128 amount, uint64_t time_ms)
{
    struct row *row;

    RON_ASSERT(policy->magic == POLICY_MAGIC);
    row = row_find(policy, capability);
    if (row == NULL || row->day != ron_day_of_ms(time_ms))
        return; /* the day is over, and its sum with it */
    if (!ron_u128_sub(row->spent, amount, &row->spent))
        row->spent = (struct ron_u128){0};
}
