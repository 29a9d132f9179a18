/*
 * api_access.c - what the capability of a request allows it to do, beyond the route's scope.
 *
 * Scopes by kind on top of ledger.ingest: Mint ledger.mint, Burn ledger.burn, Reverse
 * ledger.reverse, Anchor ledger.anchor. The account caveat covers what is debited; of a Mint and a
 * Credit what is credited; of Capture and Release the payee, which the core knows (ledger_cover).
 */
#include "base/decimal.h"
#include "ledger/api_impl.h"
#include "rt/clock.h"

const struct auth_grant *grant_of(const struct io_request *request)
{
    const struct auth_principal *principal = request->principal;

    return principal == NULL ? NULL : &principal->grant;
}

enum ron_err grant_rate(struct ledger_api *api, const struct auth_grant *grant,
                        struct ron_errinfo *reterr)
{
    struct auth_details details = {0};

    if (grant == NULL || !auth_grant_has(grant, AUTH_CAVEAT_RATE))
        return RON_ERR_OK;
    return ledger_checks_rate(api->checks, grant, &details, reterr);
}

/* --- Who ---------------------------------------------------------------------------------------
 */

static enum ledger_caller caller_of(const struct auth_grant *grant)
{
    static const enum ledger_caller callers[AUTH_ROLE__MAX] = {
        [AUTH_ROLE_LEDGER] = LEDGER_CALLER_LEDGER,
        [AUTH_ROLE_WALLET] = LEDGER_CALLER_WALLET,
        [AUTH_ROLE_ACCOUNTING] = LEDGER_CALLER_ACCOUNTING,
        [AUTH_ROLE_REWARDER] = LEDGER_CALLER_REWARDER,
        [AUTH_ROLE_REGISTRY] = LEDGER_CALLER_REGISTRY,
    };

    return grant->is_service ? callers[grant->service] : LEDGER_CALLER_DIRECT;
}

/* A service says for whom: X-On-Behalf is the identifier of the caller's capability, and
 * X-On-Behalf-Tenant his tenant. Nobody else may. */
static enum ron_err read_on_behalf(const struct io_request *request, const struct auth_grant *grant,
                                   struct ledger_stamp *stamp, struct ron_errinfo *reterr)
{
    const struct http_head *head = request->head;
    const struct http_field *who = http_head_find(head, "x-on-behalf");
    const struct http_field *tenant = http_head_find(head, "x-on-behalf-tenant");
    struct ron_b3 hash;
    size_t kid_size;

    if (who == NULL && tenant == NULL)
        return RON_ERR_OK;
    if (!grant->is_service)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "only a role acts on behalf of others");
    if (http_head_count(head, "x-on-behalf") > 1 || http_head_count(head, "x-on-behalf-tenant") > 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "on behalf of more than one");
    if (who != NULL) {
        if (!auth_identifier_split(who->value, &kid_size))
            return ron_fail(reterr, RON_ERR_MALFORMED, "X-On-Behalf is not <kid>.<ULID>");
        hash = ron_b3(who->value.data, who->value.size);
        memcpy(stamp->capability, hash.bytes, LEDGER_CAPABILITY_SIZE);
    }
    if (tenant != NULL) {
        enum ron_err err = ron_decimal_parse_u128(tenant->value, &stamp->tenant, reterr);

        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "X-On-Behalf-Tenant");
    }
    return RON_ERR_OK;
}

/* A frame names a tenant: that of the capability, or for a role any. */
static enum ron_err read_frame(const struct io_request *request, const struct auth_grant *grant,
                               struct ledger_stamp *stamp, struct ron_errinfo *reterr)
{
    const struct ron_u128 tenant = request->frame->tenant;

    if (grant->is_service)
        stamp->tenant = tenant;
    else if (!ron_u128_is_zero(tenant) && ron_u128_compare(tenant, grant->tenant) != 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "the capability is of another tenant");
    return RON_ERR_OK;
}

enum ron_err stamp_of(const struct io_request *request, struct ledger_stamp *ret_stamp,
                      struct ron_errinfo *reterr)
{
    const struct auth_grant *grant = grant_of(request);
    struct ledger_stamp stamp = {.caller = LEDGER_CALLER_DIRECT};
    enum ron_err err;

    RON_ASSERT(grant != NULL); /* no write is public */
    stamp.tenant = grant->tenant;
    stamp.caller = caller_of(grant);
    stamp.reserved_ok = auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT) &&
                        auth_account_reserved(
                            ron_slice_of(grant->account.text, grant->account.size));
    memcpy(stamp.capability, grant->capability, LEDGER_CAPABILITY_SIZE);
    err = request->frame != NULL ? read_frame(request, grant, &stamp, reterr)
                                 : read_on_behalf(request, grant, &stamp, reterr);
    if (err == RON_ERR_OK)
        *ret_stamp = stamp;
    return err;
}

struct ledger_cover cover_of(const struct auth_grant *grant)
{
    const bool named = auth_grant_has(grant, AUTH_CAVEAT_ACCOUNT);

    return (struct ledger_cover){
        .accounts = named || !ron_u128_is_zero(grant->tenant), /* a tenant without one has none */
        .account_glob = named && grant->account.glob,
        .account = ron_slice_of(grant->account.text, named ? grant->account.size : 0),
        .assets = auth_grant_has(grant, AUTH_CAVEAT_ASSET),
        .asset = ron_slice_of(grant->asset, grant->asset_size),
    };
}

/* --- What --------------------------------------------------------------------------------------
 */

static enum ron_err check_scope(const struct auth_grant *grant, unsigned kind,
                                struct ron_errinfo *reterr)
{
    static const enum auth_scope scopes[] = {
        [LEDGER_MINT] = AUTH_SCOPE_LEDGER_MINT,       [LEDGER_BURN] = AUTH_SCOPE_LEDGER_BURN,
        [LEDGER_TRANSFER] = AUTH_SCOPE_LEDGER_INGEST, [LEDGER_HOLD] = AUTH_SCOPE_LEDGER_INGEST,
        [LEDGER_CAPTURE] = AUTH_SCOPE_LEDGER_INGEST,  [LEDGER_RELEASE] = AUTH_SCOPE_LEDGER_INGEST,
        [LEDGER_REVERSE] = AUTH_SCOPE_LEDGER_REVERSE, [LEDGER_CREDIT] = AUTH_SCOPE_LEDGER_INGEST,
        [LEDGER_DEBIT] = AUTH_SCOPE_LEDGER_INGEST,    [LEDGER_ANCHOR] = AUTH_SCOPE_LEDGER_ANCHOR,
    };

    RON_ASSERT(kind > 0);
    RON_ASSERT(kind < RON_ARRAY_COUNT(scopes));
    if ((grant->scopes & AUTH_SCOPE_BIT(scopes[kind])) == 0)
        return ron_fail(reterr, RON_ERR_FORBIDDEN, "%s: the capability lacks scope %s",
                        ledger_kind_name(kind), auth_scope_name(scopes[kind]));
    return RON_ERR_OK;
}

/* What the body says of an entry: empty where it names nothing, or an id alone. Freezes are by
 * name: while there are some, the ledger says it. */
static struct auth_use use_of(const struct ledger_api *api, const struct ledger_op *op,
                              bool has_freezes)
{
    struct auth_use use = {.asset = op->asset_name, .amount = op->amount};
    const struct ledger_id *account = NULL;

    if (op->kind == LEDGER_MINT || op->kind == LEDGER_CREDIT ||
        (op->kind == LEDGER_CAPTURE && op->has_to)) {
        use.account = op->credit_name;
        account = &op->credit;
    } else if (op->kind == LEDGER_TRANSFER || op->kind == LEDGER_BURN || op->kind == LEDGER_HOLD ||
               op->kind == LEDGER_DEBIT) {
        use.account = op->debit_name;
        use.is_debit = true;
        account = &op->debit;
    }
    if (has_freezes && use.account.size == 0 && account != NULL)
        use.account = ledger_read_name(api->options.service, account);
    return use;
}

/* Freezes and daily ceilings: what depends on more than the token. */
static enum ron_err evaluate(struct api_call *call, const struct auth_grant *grant,
                             const struct auth_use *use, uint64_t now_ms,
                             struct ron_errinfo *reterr)
{
    const struct auth_act act = {.role = AUTH_ROLE_LEDGER,
                                 .is_write = true,
                                 .charge = use->is_debit,
                                 .use = *use,
                                 .now_ms = now_ms};
    struct auth_details details = {0};
    enum ron_err err = ledger_checks_evaluate(call->api->checks, grant, &act, &details, reterr);

    if (err != RON_ERR_OK) {
        call->reason = details.reason;
        call->wait_ms = details.wait_ms;
    } else if (use->is_debit && auth_grant_has(grant, AUTH_CAVEAT_MAX_DAILY)) {
        call->charged.v += use->amount.v; /* within max_daily, so it does not wrap */
    }
    return err;
}

/* A ledger_prepare_fn: a freeze that came while others were asked binds, too. */
static enum ron_err confirm(struct ledger_request *request, void *context,
                            struct ron_errinfo *reterr)
{
    struct api_call *call = context;
    const struct ledger_command *command = &request->command;

    if (rt_atomic_load_u32(&call->api->freezes_count) == 0)
        return RON_ERR_OK;
    for (uint32_t i = 0; i < command->ops_count; i++) {
        struct ledger_op room;
        const struct auth_act act = {
            .role = AUTH_ROLE_LEDGER,
            .is_write = true,
            .use = use_of(call->api, ledger_op_whole(command, i, &room), true),
            .now_ms = rt_utc_ms()};
        struct auth_details details = {0};
        enum ron_err err = ledger_checks_freezes(call->api->checks, &act, &details, reterr);

        if (err != RON_ERR_OK) {
            call->reason = details.reason;
            call->wait_ms = details.wait_ms;
            return ron_wrap(reterr, call_refuse_index(call, i, err), "batch[%u]", i);
        }
    }
    return RON_ERR_OK;
}

/* Does the grant allow each entry that names nothing, because it allows the kinds that occur and
 * the largest amount? Then it allows every smaller one. */
static bool allows_all(const struct auth_grant *grant, const struct ledger_oap_sum *sum)
{
    const struct auth_use use = {.amount = sum->amount_max};

    RON_ASSERT(sum->kinds != 0);
    for (uint32_t kinds = sum->kinds; kinds != 0; kinds &= kinds - 1)
        if (check_scope(grant, (unsigned)__builtin_ctz(kinds), NULL) != RON_ERR_OK)
            return false;
    return auth_grant_cover(grant, &use, NULL) == RON_ERR_OK;
}

/* Of ops, or of bare_ops with their sum. */
static enum ron_err access_each(struct api_call *call, const struct ledger_op *ops,
                                const struct ledger_bare_op *bare_ops, uint32_t ops_count,
                                const struct ledger_oap_sum *sum, uint32_t *ret_index,
                                struct ron_errinfo *reterr)
{
    const struct auth_grant *grant = grant_of(call->request);
    const bool has_freezes = rt_atomic_load_u32(&call->api->freezes_count) > 0;
    const bool asks_policy = has_freezes || auth_grant_has(grant, AUTH_CAVEAT_MAX_DAILY);
    enum ron_err err = RON_ERR_OK;
    uint32_t i;

    call->ledger.policy_asked = true;
    call->ledger.confirm = ledger_checks_are_remote(call->api->checks) ? confirm : NULL;
    if (auth_grant_has(grant, AUTH_CAVEAT_MAX_DAILY) &&
        rt_atomic_load_u32(&call->api->sums_state) != API_SUMS_KNOWN) {
        *ret_index = UINT32_MAX;
        call->reason = "daily_sums";
        return ron_fail(reterr, RON_ERR_NOT_READY,
                        "what the capability spent today is not known yet");
    }
    call->charged_ms = rt_utc_ms();
    memcpy(call->charged_to, grant->capability, AUTH_CAPABILITY_SIZE);
    if (!asks_policy && sum != NULL && allows_all(grant, sum))
        return RON_ERR_OK;
    for (i = 0; i < ops_count && err == RON_ERR_OK; i++) {
        struct ledger_op room;
        const struct ledger_op *op = bare_ops == NULL ? &ops[i]
                                                      : ledger_op_of_bare(&bare_ops[i], &room);
        const struct auth_use use = use_of(call->api, op, has_freezes);

        err = check_scope(grant, op->kind, reterr);
        if (err == RON_ERR_OK)
            err = asks_policy ? evaluate(call, grant, &use, call->charged_ms, reterr)
                              : auth_grant_cover(grant, &use, reterr);
    }
    if (err == RON_ERR_OK)
        return RON_ERR_OK;
    *ret_index = i - 1;
    access_refund(call);
    return ron_wrap(reterr, err, "batch[%u]", i - 1);
}

enum ron_err access_ops(struct api_call *call, const struct ledger_op *ops, uint32_t ops_count,
                        uint32_t *ret_index, struct ron_errinfo *reterr)
{
    return access_each(call, ops, NULL, ops_count, NULL, ret_index, reterr);
}

enum ron_err access_bare_ops(struct api_call *call, const struct ledger_bare_op *ops,
                             uint32_t ops_count, const struct ledger_oap_sum *sum,
                             uint32_t *ret_index, struct ron_errinfo *reterr)
{
    return access_each(call, NULL, ops, ops_count, sum, ret_index, reterr);
}

void access_refund(struct api_call *call)
{
    if (ron_u128_is_zero(call->charged))
        return;
    ledger_checks_take_back(call->api->checks, call->charged_to, call->charged, call->charged_ms);
    call->charged = ron_u128_of(0);
}

/* --- Reading -----------------------------------------------------------------------------------
 */

bool grant_is_bound(const struct auth_grant *grant)
{
    return grant != NULL && cover_of(grant).accounts &&
           !(ron_u128_is_zero(grant->tenant) && grant->account.glob && grant->account.size == 0);
}

enum ron_err check_reads(const struct auth_grant *grant, struct ron_slice account,
                         struct ron_errinfo *reterr)
{
    const struct auth_use use = {.account = account};

    return grant == NULL ? RON_ERR_OK : auth_grant_cover(grant, &use, reterr);
}

bool grant_reads(const struct auth_grant *grant, struct ron_slice account)
{
    return account.size > 0 && check_reads(grant, account, NULL) == RON_ERR_OK;
}
