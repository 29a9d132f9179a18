/*
 * policy.h - the one evaluator of what depends on more than the token: freezes, ceilings, rates.
 *
 * Pure: time comes from the caller, who also serialises the calls. The wallet asks early (without
 * charging), the ledger's prevalidators ask last and charge.
 *
 * Daily sums and rates are kept per capability, that is per identifier: tokens attenuated from one
 * another share them, so a holder gains nothing by making variants. The sum is of all assets
 * together; a token with max_daily should name its asset. Only grants with the caveat take a row.
 *
 * A row is given up only when it says nothing any more (yesterday's sum, a full bucket). With no
 * row to be had the answer is Busy: a counter is never dropped to make room. Rows are memory: after
 * a restart the owner of the log restores today's sums with auth_policy_charge. Those take no rows
 * (sums.h); beyond what is kept of them, a ceiling whose sum is not known refuses.
 */
#ifndef RON_AUTH_POLICY_H
#define RON_AUTH_POLICY_H

#include "auth/grant.h"

enum {
    AUTH_POLICY_WAYS = 8,
    AUTH_POLICY_ROWS_MAX = 1 << 20,
    AUTH_FREEZES_MAX = 256,
};

struct auth_policy; /* opaque */

/* What a client is told besides the code; filled when a call refuses, else untouched. */
struct auth_details {
    const char
        *reason; /* static: "frozen", "max_amount", "max_daily", "rate", "daily_sums"; or NULL */
    uint64_t wait_ms; /* until it may be tried again, for Retry-After; 0 when not known */
};

/* rows_count is a power of two, AUTH_POLICY_WAYS..AUTH_POLICY_ROWS_MAX: twice the capabilities
 * with limits that are in use on one day. The caller owns it. */
enum ron_err auth_policy_new(uint32_t rows_count, struct auth_policy **ret_policy,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* Accepts NULL, returns NULL. */
struct auth_policy *auth_policy_free(struct auth_policy *policy);

/* Freeze the writes of a role, or with an account those that debit or name it. until_ms 0 means
 * until lifted. A second freeze of the same replaces the first. RON_ERR_MALFORMED, RON_ERR_BUSY. */
enum ron_err auth_policy_freeze(struct auth_policy *policy, enum auth_role role,
                                struct ron_slice account, uint64_t until_ms, uint64_t now_ms,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* RON_ERR_NOT_FOUND when there is no such freeze. */
enum ron_err auth_policy_lift(struct auth_policy *policy, enum auth_role role,
                              struct ron_slice account, struct ron_errinfo *reterr) RON_MUST_USE;

/* Take one request from the token's rate. RON_ERR_RATE_LIMITED; RON_ERR_BUSY without a row. */
enum ron_err auth_policy_rate(struct auth_policy *policy, const struct auth_grant *grant,
                              uint64_t now_ms, uint64_t now_ns, struct auth_details *details,
                              struct ron_errinfo *reterr) RON_MUST_USE;

struct auth_act {
    enum auth_role role;
    bool is_write;
    bool charge; /* count the debit towards max_daily, if it is allowed */
    struct auth_use use;
    uint64_t now_ms; /* UTC: the day is that of this moment */
};

/* Freezes alone, of a write: RON_ERR_NOT_READY. */
enum ron_err auth_policy_check_freezes(const struct auth_policy *policy, const struct auth_act *act,
                                       struct auth_details *details,
                                       struct ron_errinfo *reterr) RON_MUST_USE;
/* Freeze (RON_ERR_NOT_READY), then what the grant covers (auth_grant_cover), then max_daily
 * (RON_ERR_LIMIT_EXCEEDED, RON_ERR_BUSY; RON_ERR_NOT_READY: its sum was not restored). */
enum ron_err auth_policy_evaluate(struct auth_policy *policy, const struct auth_grant *grant,
                                  const struct auth_act *act, struct auth_details *details,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* Count an amount towards the day of time_ms without asking: to restore sums after a restart. A sum
 * beyond 2^128-1 stays there and exceeds every ceiling. Errors of auth_sums_add. */
enum ron_err auth_policy_charge(struct auth_policy *policy,
                                const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                                struct ron_u128 amount, uint64_t time_ms,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* Nothing was restored: before it is begun anew. */
void auth_policy_forget(struct auth_policy *policy);
/* Take back what evaluate charged at time_ms, when the write did not happen after all. */
void auth_policy_refund(struct auth_policy *policy,
                        const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                        struct ron_u128 amount, uint64_t time_ms);

#endif
