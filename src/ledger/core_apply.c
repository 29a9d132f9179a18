/*
 * core_apply.c - one entry: its checks in the order of docs/ledger-core.md, then its effect.
 */
#include "ledger/core_apply.h"

enum ron_err refuse_limit(struct apply *a, const char *limit)
{
    a->refusal->present |= LEDGER_DETAIL_LIMIT;
    a->refusal->limit = limit;
    return ron_fail(a->reterr, RON_ERR_LIMIT_EXCEEDED, "the account's limit %s", limit);
}

static bool is_system(enum account_class class)
{
    return class >= CLASS_MINT;
}

static enum account_class payee_class(const struct ledger_core *core, const struct ledger_op *op)
{
    uint32_t account;

    if (op->payee_name.size > 0)
        return name_class(op->payee_name);
    account = ledger_id_is_zero(&op->other) ? NONE : account_find(core, &op->other);
    return account == NONE ? CLASS_USER : account_class(&core->accounts[account]);
}

/* Step 2: names that only the ledger, or a special capability, may use. */
static enum ron_err check_reserved(struct apply *a, const struct movement *m)
{
    const struct ledger_op *op = m->op;
    const unsigned kind = op->kind;
    const bool names_debit = kind == LEDGER_TRANSFER || kind == LEDGER_BURN ||
                             kind == LEDGER_HOLD || kind == LEDGER_DEBIT;
    const bool names_credit = kind == LEDGER_TRANSFER || kind == LEDGER_MINT ||
                              kind == LEDGER_CREDIT || (kind == LEDGER_CAPTURE && op->has_to);
    const bool correction = kind == LEDGER_TRANSFER && a->command->stamp.reserved_ok &&
                            ledger_id_equal(&op->debit, &m->asset->burn);

    if (names_debit && is_system(m->debit.class) && !correction)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a system account cannot be debited so");
    if (names_credit && is_system(m->credit.class))
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a system account cannot be credited so");
    if (kind == LEDGER_HOLD && is_system(payee_class(a->core, op)))
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a system account cannot be a payee");
    if (m->debit.class == CLASS_POOL && a->command->kind != LEDGER_COMMAND_INTENTS)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a pool is debited by intents only");
    return RON_ERR_OK;
}

static enum ron_err check_new_hold(struct apply *a, const struct movement *m)
{
    if (m->credit.account != NONE) /* only a Hold makes its account known */
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the hold_id was used before");
    if (!m->op->by_ledger && m->op->expires_ms <= a->command->stamp.commit_ms)
        return ron_fail(a->reterr, RON_ERR_EXPIRED, "the hold would expire before it begins");
    return RON_ERR_OK;
}

static enum ron_err check_hold(struct apply *a, const struct movement *m)
{
    const enum ledger_command_kind command = a->command->kind;
    const struct hold *hold;

    if (m->hold == NONE)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "no such hold");
    hold = &a->core->holds[m->hold];
    if (hold->is_run && command != LEDGER_COMMAND_INTENTS && command != LEDGER_COMMAND_ABANDON)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "the hold belongs to a run");
    if (m->op->kind == LEDGER_CAPTURE && a->core->replay == NULL &&
        m->op->has_to != (hold->payee == NONE))
        return ron_fail(a->reterr, RON_ERR_MALFORMED, "the hold %s a payee, so `to` is %s",
                        hold->payee == NONE ? "lacks" : "has",
                        hold->payee == NONE ? "needed" : "refused");
    if (hold->expires_ms != 0 && a->command->stamp.commit_ms >= hold->expires_ms &&
        command != LEDGER_COMMAND_EXPIRE)
        return ron_fail(a->reterr, RON_ERR_EXPIRED, "the hold has expired");
    if (hold->asset != m->asset_number)
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the hold is of another asset");
    return RON_ERR_OK;
}

static bool is_reversible(unsigned kind)
{
    return kind == LEDGER_MINT || kind == LEDGER_BURN || kind == LEDGER_TRANSFER ||
           kind == LEDGER_CREDIT || kind == LEDGER_DEBIT;
}

static enum ron_err check_reverse(struct apply *a, const struct movement *m)
{
    uint32_t reversal = m->has_ref ? reversal_find(a->core, &m->link) : NONE;
    struct ron_u128 left;

    if (!m->has_ref)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "no such entry to reverse");
    if (!is_reversible(m->ref.kind))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "a %s cannot be reversed",
                        ledger_kind_name(m->ref.kind));
    if (m->ref.asset != m->asset_number)
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the entry is of another asset");
    left = m->ref.amount;
    if (reversal != NONE && !ron_u128_sub(left, a->core->reversals[reversal].total, &left))
        left = ron_u128_of(0); /* only with a snapshot that is not of this log */
    if (ron_u128_compare(m->op->amount, left) > 0) {
        refusal_available(a, left);
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "less than that is left to reverse");
    }
    return RON_ERR_OK;
}

static struct ron_slice side_name(const struct ledger_core *core, const struct side *side)
{
    return side->account != NONE ? account_name(core, &core->accounts[side->account]) : side->name;
}

/* After step 3: what the capability covers, where the body did not name it. A hold for any payee is
 * released only by who covers any. */
static enum ron_err check_cover(struct apply *a, const struct movement *m)
{
    const struct ledger_cover *cover = &a->command->cover;
    const struct ledger_op *op = m->op;
    struct ron_slice name = {NULL, 0};

    if (cover->assets && op->asset_name.size == 0 &&
        !ron_slice_equal(cover->asset, ron_slice_of(m->asset->name, m->asset->name_size)))
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "the capability is for another asset");
    if (!cover->accounts || a->command->kind != LEDGER_COMMAND_INGEST)
        return RON_ERR_OK;
    if (op->kind == LEDGER_CAPTURE) {
        name = side_name(a->core, &m->credit);
    } else if (op->kind == LEDGER_RELEASE) {
        const uint32_t payee = a->core->holds[m->hold].payee;

        if (payee != NONE)
            name = account_name(a->core, &a->core->accounts[payee]);
    } else if (op->kind == LEDGER_MINT || op->kind == LEDGER_CREDIT) {
        name = side_name(a->core, &m->credit);
    } else {
        name = side_name(a->core, &m->debit);
    }
    if (!ledger_cover_account(cover, name))
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "the capability does not cover the account");
    return RON_ERR_OK;
}

/* Step 3: what the entry refers to must exist and be usable. */
static enum ron_err check_target(struct apply *a, const struct movement *m)
{
    switch (m->op->kind) {
    case LEDGER_HOLD:
        return check_new_hold(a, m);
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
        return check_hold(a, m);
    case LEDGER_REVERSE:
        return check_reverse(a, m);
    default:
        return RON_ERR_OK;
    }
}

bool is_misnamed(const struct ledger_core *core, uint32_t account, const char *prefix,
                 struct ron_slice name)
{
    const size_t prefix_size = strlen(prefix);
    struct ron_slice known;

    if (account == NONE || name.size == 0)
        return false;
    known = account_name(core, &core->accounts[account]);
    return known.size != prefix_size + name.size || memcmp(known.data, prefix, prefix_size) != 0 ||
           memcmp(known.data + prefix_size, name.data, name.size) != 0;
}

/* Step 4: two names, one id. And an account that is not known must have a name. */
static enum ron_err check_names(struct apply *a, const struct movement *m)
{
    const struct ledger_op *op = m->op;
    uint32_t payee = op->payee_name.size > 0 ? account_find(a->core, &op->other) : NONE;

    if (is_misnamed(a->core, m->debit.account, m->debit.prefix, m->debit.name) ||
        is_misnamed(a->core, m->credit.account, m->credit.prefix, m->credit.name) ||
        is_misnamed(a->core, payee, "", op->payee_name))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "another account has this id");
    if (m->credit.account == NONE && m->credit.name.size == 0 && a->core->replay == NULL)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "an account known by id alone is not open");
    return RON_ERR_OK;
}

/* Step 5. */
static enum ron_err check_nonce(struct apply *a, const struct movement *m)
{
    uint64_t expected = m->debit.account == NONE ? 1
                                                 : a->core->accounts[m->debit.account].next_nonce;

    if (m->op->nonce == 0 || m->op->nonce == expected)
        return RON_ERR_OK;
    refusal_expected(a, LEDGER_DETAIL_NONCE, expected);
    return ron_fail(a->reterr, RON_ERR_NONCE_CONFLICT, "nonce %llu, expected %llu",
                    (unsigned long long)m->op->nonce, (unsigned long long)expected);
}

/* Step 10: room for whatever the effect may add. */
static enum ron_err check_room(struct apply *a, const struct movement *m)
{
    const struct ledger_core *core = a->core;
    const struct ledger_capacity *capacity = &core->capacity;
    const bool has_payee = m->op->kind == LEDGER_HOLD && !ledger_id_is_zero(&m->op->other);
    uint32_t accounts = has_payee && account_find(core, &m->op->other) == NONE ? 1 : 0;
    uint32_t rows = 0;

    accounts += m->debit.account == NONE ? 1 : 0;
    accounts += m->credit.account == NONE ? 1 : 0;
    rows += m->debit.row == NONE ? 1 : 0;
    rows += m->credit.row == NONE ? 1 : 0;
    if (accounts > capacity->accounts_max - core->accounts_count)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u accounts are taken",
                        capacity->accounts_max);
    if (accounts * RON_ACCOUNT_NAME_SIZE_MAX > capacity->names_size_max - core->names_size)
        return ron_fail(a->reterr, RON_ERR_BUSY, "no room for names");
    if (rows > capacity->rows_max - core->rows_count)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u rows are taken", capacity->rows_max);
    if (m->op->kind == LEDGER_HOLD && core->holds_count == capacity->holds_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u holds are taken", capacity->holds_max);
    if (m->op->kind == LEDGER_REVERSE && core->reversals_count == capacity->reversals_max &&
        reversal_find(core, &m->link) == NONE)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u reversals are taken",
                        capacity->reversals_max);
    return RON_ERR_OK;
}

/* Step 2 for Anchors: streams that belong to a role. */
static enum ron_err check_stream(struct apply *a, struct ron_slice stream)
{
    static const char *const of_ledger[] = {"slice", "run",    "registry",
                                            "state", "limits", "accounts"};
    const enum ledger_caller caller = a->command->stamp.caller;
    const uint8_t *slash = memchr(stream.data, '/', stream.size);
    struct ron_slice first = slash == NULL
                                 ? stream
                                 : ron_slice_of(stream.data, (size_t)(slash - stream.data));
    bool is_ledgers = false;

    for (size_t i = 0; i < RON_ARRAY_COUNT(of_ledger); i++)
        is_ledgers = is_ledgers || ron_slice_equal(first, ron_slice_text(of_ledger[i]));
    if (is_ledgers && caller != LEDGER_CALLER_LEDGER)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "the stream belongs to the ledger");
    if (ron_slice_equal(first, RON_SLICE("snapshot")) && caller != LEDGER_CALLER_ACCOUNTING)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "the stream belongs to accounting");
    return RON_ERR_OK;
}

static enum ron_err check_movement(struct apply *a, const struct movement *m)
{
    enum ron_err err = check_reserved(a, m);

    if (err == RON_ERR_OK)
        err = check_target(a, m);
    if (err == RON_ERR_OK)
        err = check_cover(a, m);
    if (err == RON_ERR_OK)
        err = check_names(a, m);
    if (err == RON_ERR_OK)
        err = check_nonce(a, m);
    if (err == RON_ERR_OK)
        err = check_debit(a, m);
    if (err == RON_ERR_OK)
        err = check_credit(a, m);
    if (err == RON_ERR_OK)
        err = check_room(a, m);
    return err;
}

/* The checks of a movement alone, against the state as it is. */
enum ron_err check_op(struct apply *a, const struct ledger_op *op, struct movement *ret_movement)
{
    (void)movement_resolve(a->core, op, a->core->seq_last + a->batch->entries_count, ret_movement);
    if (ret_movement->asset == NULL)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "no such asset");
    movement_locate(a->core, ret_movement);
    return check_movement(a, ret_movement);
}

enum ron_err apply_op(struct apply *a, const struct ledger_op *op)
{
    struct ledger_ext ext = {.memo = op->memo, .meta = op->meta};
    struct movement m;
    enum ron_err err;

    RON_ASSERT(op->kind != LEDGER_ASSET);
    if (op->kind == LEDGER_ANCHOR) {
        err = op->by_ledger ? RON_ERR_OK : check_stream(a, op->stream);
        if (err != RON_ERR_OK)
            return err;
        return apply_record(a, op, 0, (struct ron_slice){NULL, 0});
    }
    if (op->kind == LEDGER_HOLD) {
        ext.has_terms = true;
        ext.payee = op->other;
        ext.expires_ms = op->expires_ms;
    }
    err = check_op(a, op, &m);
    if (err == RON_ERR_OK)
        err = check_log_room(a, &ext);
    if (err == RON_ERR_OK)
        err = effect(a, &m);
    if (err != RON_ERR_OK)
        return err;
    write_entry(a, &m, &ext);
    return RON_ERR_OK;
}

enum ron_err apply_record(struct apply *a, const struct ledger_op *op, uint32_t asset,
                          struct ron_slice asset_terms)
{
    struct ledger_ext ext = {
        .memo = op->memo,
        .meta = op->meta,
        .stream = op->stream,
        .ref = op->ref,
        .asset_terms = asset_terms,
    };
    struct movement m = {
        .op = op,
        .asset_number = asset,
        .debit = {.id = op->debit},
        .credit = {.id = op->credit},
    };
    enum ron_err err = check_log_room(a, &ext);

    if (op->kind == LEDGER_ANCHOR)
        m.link = ledger_anchor_link(op->stream, op->ref);
    if (err == RON_ERR_OK)
        write_entry(a, &m, &ext);
    return err;
}
