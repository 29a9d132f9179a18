/*
 * checks.c - the checks' life, the watch over their breakers, and policy in process. See checks.h.
 */
#include "ledger/checks.h"

#include "base/mem.h"
#include "ledger/checks_impl.h"

#define CHECKS_MAGIC 0xc4ec5001u
enum {
    POLICY_ROWS_DEFAULT = 1 << 14,
    CACHE_SLOTS_DEFAULT = 4096,
    IN_FLIGHT_DEFAULT = 1024,
    BYTES_DEFAULT = 64 << 20,
    TICK_MS = 1000,
};

const char *const ledger_check_names[LEDGER_CHECK__COUNT] = {"kms", "policy", "wallet"};

/* --- Birth and end ------------------------------------------------------------------------------
 */

struct ledger_checks_options ledger_checks_defaults(void)
{
    return (struct ledger_checks_options){
        .remotes =
            {
                [LEDGER_CHECK_KMS] = {.attempt_ms = 1000,
                                      .retries_max = 2,
                                      .backoff_ms_max = 250,
                                      .failures_max = 1,
                                      .window_ms = 10000,
                                      .half_open_ms = 5000},
                [LEDGER_CHECK_POLICY] = {.attempt_ms = 800,
                                         .retries_max = 1,
                                         .backoff_ms_max = 150,
                                         .failures_max = 1,
                                         .window_ms = 10000,
                                         .half_open_ms = 5000},
                [LEDGER_CHECK_WALLET] = {.attempt_ms = 1000,
                                         .retries_max = 1,
                                         .backoff_ms_max = 150,
                                         .failures_max = 1,
                                         .window_ms = 10000,
                                         .half_open_ms = 5000},
            },
        .cache_slots = CACHE_SLOTS_DEFAULT,
        .cache_ms = 1000,
        .in_flight_max = IN_FLIGHT_DEFAULT,
        .bytes_max = BYTES_DEFAULT,
        .policy_rows = POLICY_ROWS_DEFAULT,
    };
}

static enum ron_err make_state(struct ledger_checks *checks, struct ron_errinfo *reterr)
{
    const uint32_t slots_count = checks->options.cache_slots;
    struct check_cache cache = {.slots_count = slots_count};
    struct auth_policy *policy = NULL;
    enum ron_err err = auth_policy_new(checks->options.policy_rows, &policy, reterr);

    RON_ASSERT((slots_count & (slots_count - 1)) == 0);
    RON_ASSERT(slots_count <= LEDGER_CHECKS_CACHE_MAX);
    if (err == RON_ERR_OK && slots_count > 0) {
        cache.rows = ron_mem_alloc_array(slots_count, sizeof(cache.rows[0]));
        if (cache.rows == NULL)
            err = ron_fail(reterr, RON_ERR_NO_MEMORY, "%u verified capabilities", slots_count);
    }
    checks_lock(checks);
    checks->policy = policy;
    checks->cache = cache;
    checks_unlock(checks);
    return err;
}

enum ron_err ledger_checks_new(const struct ledger_checks_options *options,
                               struct ledger_checks **ret_checks, struct ron_errinfo *reterr)
{
    struct ledger_checks *checks = ron_mem_alloc(sizeof(*checks));
    enum ron_err err;

    if (checks == NULL) {
        for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
            (void)io_transport_free(options->remotes[i].transport);
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "checks");
    }
    checks->magic = CHECKS_MAGIC;
    checks->options = *options;
    rt_lock_init(&checks->lock, "checks", RON_RANK_breaker);
    rt_cond_init(&checks->changed, "checks");
    err = make_state(checks, reterr);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT && err == RON_ERR_OK; i++)
        err = remote_init(checks, (enum ledger_check_port)i, reterr);
    if (err == RON_ERR_OK && ledger_checks_are_remote(checks))
        err = walk_init(checks, reterr);
    if (err != RON_ERR_OK) {
        for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
            if (checks->remotes[i].flights == NULL)
                (void)io_transport_free(options->remotes[i].transport);
        (void)ledger_checks_free(checks);
        return err;
    }
    *ret_checks = checks;
    return RON_ERR_OK;
}

struct ledger_checks *ledger_checks_free(struct ledger_checks *checks)
{
    struct auth_policy *policy;
    struct check_cache_row *rows;

    if (checks == NULL)
        return NULL;
    RON_ASSERT(checks->magic == CHECKS_MAGIC);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        checks->remotes[i].flights = io_flights_free(checks->remotes[i].flights);
    walk_fini(checks);
    checks_lock(checks);
    policy = checks->policy;
    rows = checks->cache.rows;
    checks_unlock(checks);
    (void)auth_policy_free(policy);
    (void)ron_mem_free(rows);
    rt_cond_fini(&checks->changed);
    rt_lock_fini(&checks->lock);
    checks->magic = ~CHECKS_MAGIC;
    return ron_mem_free(checks);
}

void ledger_checks_attach(struct ledger_checks *checks, ledger_report_fn *report, void *context)
{
    RON_ASSERT(checks->magic == CHECKS_MAGIC);
    checks->report = report;
    checks->report_context = context;
}

bool ledger_checks_is_remote(const struct ledger_checks *checks, enum ledger_check_port port)
{
    return checks->remotes[port].flights != NULL;
}

bool ledger_checks_are_remote(const struct ledger_checks *checks)
{
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        if (ledger_checks_is_remote(checks, (enum ledger_check_port)i))
            return true;
    return false;
}

void ledger_checks_serve(struct ledger_checks *checks, enum ledger_check_port port)
{
    io_flights_run(checks->remotes[port].flights);
}

void ledger_checks_abandon(struct ledger_checks *checks, enum ledger_check_port port)
{
    struct remote *remote = &checks->remotes[port];

    rt_atomic_store_u32(&remote->abandoned, 1);
    io_flights_end(remote->flights);
}

void ledger_checks_cancel(struct ledger_checks *checks)
{
    checks_lock(checks);
    checks->canceled = true;
    rt_cond_broadcast(&checks->changed);
    checks_unlock(checks);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        if (checks->remotes[i].flights != NULL)
            io_flights_cancel(checks->remotes[i].flights);
}

void ledger_checks_end(struct ledger_checks *checks)
{
    ledger_checks_cancel(checks);
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++)
        if (checks->remotes[i].flights != NULL)
            io_flights_end(checks->remotes[i].flights);
}

enum rt_breaker_state ledger_checks_breaker(struct ledger_checks *checks,
                                            enum ledger_check_port port)
{
    enum rt_breaker_state state;

    checks_lock(checks);
    state = rt_breaker_state(&checks->remotes[port].breaker, rt_now_ns());
    checks_unlock(checks);
    return state;
}

/* --- Watch --------------------------------------------------------------------------------------
 */

/* When there is something to do again; *ret_late: who must be told, or LEDGER_CHECK__COUNT. */
static uint64_t look(struct ledger_checks *checks, unsigned *ret_late) RON_NEEDS(breaker)
{
    const uint64_t now_ns = rt_now_ns();
    uint64_t next_ns = SH_NEVER;

    *ret_late = LEDGER_CHECK__COUNT;
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT; i++) {
        struct remote *remote = &checks->remotes[i];
        const bool open = remote_is_open(remote, now_ns);
        uint64_t tick_ns = now_ns + TICK_MS * RT_NS_PER_MS;

        if (remote->flights == NULL)
            continue;
        remote_count_open(remote, now_ns);
        if (open != remote->told_open)
            *ret_late = i;
        if (open && tick_ns > remote->breaker.open_until_ns)
            tick_ns = remote->breaker.open_until_ns;
        if (open && tick_ns < next_ns)
            next_ns = tick_ns;
    }
    return next_ns;
}

void ledger_checks_watch(struct ledger_checks *checks)
{
    bool canceled = false;

    rt_assert_no_lock_held();
    while (!canceled) {
        uint64_t next_ns;
        unsigned late;

        checks_lock(checks);
        next_ns = look(checks, &late);
        if (late == LEDGER_CHECK__COUNT && !checks->canceled)
            (void)rt_cond_wait(&checks->changed, &checks->lock, next_ns);
        canceled = checks->canceled;
        checks_unlock(checks);
        if (late != LEDGER_CHECK__COUNT)
            remote_tell(checks, (enum ledger_check_port)late);
    }
}

/* --- Policy in process --------------------------------------------------------------------------
 */

/* A caveat that cannot be compared, because the op is known by number alone, is not kept. */
static enum ron_err check_names(const struct auth_grant *grant, const struct ledger_op *op,
                                struct ron_errinfo *reterr)
{
    if (check_kind_debits(op->kind) && op->debit_name.size == 0 &&
        auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT))
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability is for named accounts, the entry names none");
    if (op->asset_name.size == 0 && op->asset > 0 && auth_grant_has(grant, AUTH_CAVEAT_ASSET))
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "the capability is for one asset, the entry names none");
    return RON_ERR_OK;
}

static struct auth_act act_of(const struct ledger_request *request, const struct ledger_op *op)
{
    const bool debits = check_kind_debits(op->kind);

    return (struct auth_act){.role = AUTH_ROLE_LEDGER,
                             .is_write = true,
                             .charge = debits,
                             .use = {.account = debits ? op->debit_name : (struct ron_slice){0},
                                     .is_debit = debits,
                                     .asset = op->asset_name,
                                     .amount = op->amount},
                             .now_ms = request->state.arrived_ms};
}

static void refund_ops(struct ledger_checks *checks, const struct ledger_request *request,
                       uint32_t ops_count) RON_NEEDS(breaker)
{
    if (!auth_grant_has(request->grant, AUTH_CAVEAT_MAX_DAILY))
        return;
    for (uint32_t i = 0; i < ops_count; i++) {
        const struct ledger_bare_op *op = ledger_op_head(&request->command, i);

        if (check_kind_debits(op->kind))
            auth_policy_refund(checks->policy, request->grant->capability, op->amount,
                               request->state.arrived_ms);
    }
}

enum ron_err check_evaluate(struct ledger_checks *checks, const struct ledger_request *request,
                            bool *ret_spent, struct ron_errinfo *reterr)
{
    const struct ledger_command *command = &request->command;
    const struct ledger_op none = {0};
    struct auth_details details = {0};
    enum ron_err err = RON_ERR_OK;

    if (command->ops_count == 0) { /* a role that is frozen takes no other command either */
        const struct auth_act act = act_of(request, &none);

        return auth_policy_evaluate(checks->policy, request->grant, &act, &details, reterr);
    }
    for (uint32_t i = 0; i < command->ops_count; i++) {
        struct ledger_op room;
        const struct ledger_op *op = ledger_op_whole(command, i, &room);
        const struct auth_act act = act_of(request, op);

        err = check_names(request->grant, op, reterr);
        if (err == RON_ERR_OK)
            err = auth_policy_evaluate(checks->policy, request->grant, &act, &details, reterr);
        if (err != RON_ERR_OK) {
            refund_ops(checks, request, i);
            if (details.reason != NULL && strcmp(details.reason, "max_daily") == 0 &&
                command->key.size > 0) {
                *ret_spent = true;
                return RON_ERR_OK;
            }
            return ron_wrap(reterr, err, "entry %u", i);
        }
    }
    return RON_ERR_OK;
}

void ledger_checks_refund(struct ledger_checks *checks, const struct ledger_request *request)
{
    if (request->policy_asked)
        return;
    checks_lock(checks);
    refund_ops(checks, request, request->command.ops_count);
    checks_unlock(checks);
}

enum ron_err ledger_checks_evaluate(struct ledger_checks *checks, const struct auth_grant *grant,
                                    const struct auth_act *act, struct auth_details *details,
                                    struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_evaluate(checks->policy, grant, act, details, reterr);
    checks_unlock(checks);
    return err;
}

enum ron_err ledger_checks_freezes(struct ledger_checks *checks, const struct auth_act *act,
                                   struct auth_details *details, struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_check_freezes(checks->policy, act, details, reterr);
    checks_unlock(checks);
    return err;
}

enum ron_err ledger_checks_rate(struct ledger_checks *checks, const struct auth_grant *grant,
                                struct auth_details *details, struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_rate(checks->policy, grant, rt_utc_ms(), rt_now_ns(), details, reterr);
    checks_unlock(checks);
    return err;
}

void ledger_checks_take_back(struct ledger_checks *checks,
                             const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                             struct ron_u128 amount, uint64_t time_ms)
{
    checks_lock(checks);
    auth_policy_refund(checks->policy, capability, amount, time_ms);
    checks_unlock(checks);
}

enum ron_err ledger_checks_freeze(struct ledger_checks *checks, struct ron_slice account,
                                  uint64_t until_ms, struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_freeze(checks->policy, AUTH_ROLE_LEDGER, account, until_ms, rt_utc_ms(),
                             reterr);
    checks_unlock(checks);
    return err;
}

enum ron_err ledger_checks_lift(struct ledger_checks *checks, struct ron_slice account,
                                struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_lift(checks->policy, AUTH_ROLE_LEDGER, account, reterr);
    checks_unlock(checks);
    return err;
}

enum ron_err ledger_checks_charge(struct ledger_checks *checks,
                                  const uint8_t capability[static AUTH_CAPABILITY_SIZE],
                                  struct ron_u128 amount, uint64_t time_ms,
                                  struct ron_errinfo *reterr)
{
    enum ron_err err;

    checks_lock(checks);
    err = auth_policy_charge(checks->policy, capability, amount, time_ms, reterr);
    checks_unlock(checks);
    return err;
}

void ledger_checks_forget(struct ledger_checks *checks)
{
    checks_lock(checks);
    auth_policy_forget(checks->policy);
    checks_unlock(checks);
}
