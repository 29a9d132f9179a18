/*
 * core_check.c - what must hold at every standstill, looked at from outside the paths that keep it.
 */
#include "ledger/core_types.h"

static const struct account *owner_of(const struct ledger_core *core, const struct row *row)
{
    return &core->accounts[atomic_load_explicit(&row->account, memory_order_relaxed)];
}

bool ledger_core_totals(const struct ledger_core *core, uint32_t asset, struct ron_u128 *ret_issued,
                        struct ron_u128 *ret_burned, struct ron_u128 *ret_sum)
{
    struct ron_u256 owned = {.low = ron_u128_of(0)};
    struct ron_u256 owed = {.low = ron_u128_of(0)};
    struct ron_u128 issued = ron_u128_of(0);
    struct ron_u128 burned = ron_u128_of(0);

    for (uint32_t i = 0; i < core->rows_count; i++) {
        const struct row *row = &core->rows[i];
        const struct ron_u128 balance = row_committed_balance(core, i);
        const bool is_debt = (row_committed_flags(core, i) & ROW_NEGATIVE) != 0;
        struct ron_u256 *side = is_debt ? &owed : &owned;
        enum account_class class = account_class(owner_of(core, row));

        if (atomic_load_explicit(&row->asset, memory_order_relaxed) != asset)
            continue;
        if (class == CLASS_BURN)
            burned = balance;
        if (class == CLASS_MINT)
            issued = balance;
        else if (!ron_u256_add(*side, (struct ron_u256){.low = balance}, side))
            return false;
    }
    if (!ron_u256_sub(owned, owed, &owned) || !ron_u128_is_zero(owned.high))
        return false;
    *ret_issued = issued;
    *ret_burned = burned;
    *ret_sum = owned.low;
    return true;
}

/* sys/mint, sys/burn and sys/clearing have rows of their own asset only, sys/hold of any. */
static bool is_of_its_asset(const struct ledger_core *core, const struct row *row,
                            const struct account *account)
{
    const struct asset *asset =
        &core->assets[atomic_load_explicit(&row->asset, memory_order_relaxed) - 1];
    struct ledger_id id = account_id(account);

    switch (account_class(account)) {
    case CLASS_USER:
    case CLASS_POOL:
    case CLASS_HOLD:
        return true;
    case CLASS_MINT:
        return ledger_id_equal(&id, &asset->mint);
    case CLASS_BURN:
        return ledger_id_equal(&id, &asset->burn);
    case CLASS_CLEARING:
        return ledger_id_equal(&id, &asset->clearing);
    case CLASS_SYSTEM:
    default:
        return false;
    }
}

static const char *check_row(const struct ledger_core *core, const struct row *row)
{
    const struct account *account = owner_of(core, row);
    const struct limit *limit = row->limits == NONE ? NULL : &core->limits[row->limits];

    if ((row->flags & ROW_NEGATIVE) != 0 &&
        (limit == NULL || row->balance.v >> 127 != 0 || ron_u128_is_zero(row->balance)))
        return "2: a balance is negative without a credit line, or a debt of nothing";
    if ((row->flags & ROW_LISTED) == 0 &&
        (!ron_u128_is_zero(row->balance) || !ron_u128_is_zero(row->daily)))
        return "2: money in a row that no entry touched";
    if (!is_of_its_asset(core, row, account) ||
        (limit != NULL && account_class(account) >= CLASS_MINT))
        return "4: a system account's row of another asset, or with limits";
    if (limit != NULL && (limit->bits & LIMIT_CREDIT) != 0 && (row->flags & ROW_NEGATIVE) == 0 &&
        row->balance.v >> 127 != 0)
        return "3: a balance with a credit line reaches 2^127";
    if (account_class(account) == CLASS_CLEARING && !ron_u128_is_zero(row->balance))
        return "4: clearing is not zero";
    if (account_class(account) == CLASS_MINT &&
        row->balance.v >
            core->assets[atomic_load_explicit(&row->asset, memory_order_relaxed) - 1].max_supply.v)
        return "5: more was issued than may be";
    return NULL;
}

/* Nothing is pending: the two views agree. */
static const char *check_views(const struct ledger_core *core)
{
    for (uint32_t i = 0; i < core->rows_count; i++) {
        const struct row *row = &core->rows[i];

        if (row->balance.v != row_committed_balance(core, i).v ||
            row->flags != row_committed_flags(core, i))
            return "6: pending and committed balances differ";
    }
    for (uint32_t i = 0; i < core->accounts_count; i++) {
        const uint32_t home = atomic_load_explicit(&core->accounts[i].row_home,
                                                   memory_order_relaxed);

        if (core->accounts[i].next_nonce != account_committed_nonce(core, i))
            return "6: pending and committed nonces differ";
        if (home != NONE &&
            atomic_load_explicit(&core->committed[home].stamp, memory_order_relaxed) % 2 != 0)
            return "6: an account's stamp is odd";
    }
    return NULL;
}

bool batch_is_conserved(const struct ledger_core *core, const struct ledger_batch *batch)
{
    for (uint32_t asset = 1; asset <= core->assets_count; asset++) {
        unsigned __int128 change = 0;

        for (uint32_t i = 0; i < batch->cells_count; i++) {
            const struct ledger_cell *cell = &batch->cells[i];
            const struct ledger_old_cell *old = &batch->old_cells[i];
            const struct row *row = &core->rows[ledger_cell_row(cell)];
            const uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);
            const unsigned __int128 before = old->balance.v;
            const unsigned __int128 after = cell->balance.v;
            unsigned __int128 gain;

            if (atomic_load_explicit(&row->asset, memory_order_relaxed) != asset)
                continue;
            gain = ((ledger_cell_flags(cell) & ROW_NEGATIVE) != 0 ? -after : after) -
                   ((old->flags & ROW_NEGATIVE) != 0 ? -before : before);
            change += account_class(&core->accounts[owner]) == CLASS_MINT ? -gain : gain;
        }
        if (change != 0)
            return false;
    }
    return true;
}

static const char *check_accounts(const struct ledger_core *core)
{
    for (uint32_t i = 0; i < core->accounts_count; i++) {
        struct ledger_id id = account_id(&core->accounts[i]);
        struct ledger_id named = ledger_account_id("", account_name(core, &core->accounts[i]));

        if (account_find(core, &id) != i || !ledger_id_equal(&id, &named))
            return "7: an account is not found by its id, or has another's name";
    }
    return NULL;
}

static const char *check_holds(const struct ledger_core *core)
{
    for (uint32_t i = 0; i < core->holds_count; i++) {
        const struct hold *hold = &core->holds[i];
        struct ledger_id id = account_id(&core->accounts[hold->account]);
        uint32_t row = row_find(core, hold->account, hold->asset);

        if (row == NONE || hold_find(core, &id) != i)
            return "8: a hold without money record, or not found by its account";
        if (hold->expires_ms != 0 && hold->heap_at == NONE &&
            !ron_u128_is_zero(core->rows[row].balance))
            return "8: a hold that will not expire";
    }
    return NULL;
}

static const char *check_indexes(const struct ledger_core *core)
{
    uint64_t nonces_count = 0;

    for (uint64_t seq = core->ring_first; seq <= core->seq_last; seq++)
        nonces_count += core->ring[(uint32_t)seq & core->ring_mask].nonce != 0 ? 1 : 0;
    if (core->account_index.used_count != core->accounts_count ||
        core->asset_index.used_count != core->assets_count ||
        core->hold_index.used_count != core->holds_count ||
        core->reversal_index.used_count != core->reversals_count ||
        core->run_index.used_count != core->runs_count ||
        core->stream_index.used_count != core->streams_count ||
        ledger_recent_count(&core->id_index, core->ring_first) !=
            core->seq_last + 1 - core->ring_first ||
        ledger_recent_count(&core->nonce_index, core->ring_first) != nonces_count ||
        core->key_index.used_count != core->keys_end - core->keys_first)
        return "9: an index holds more or less than its table";
    return NULL;
}

/* Runs and their Holds, one for one; what was abandoned holds nothing. */
static const char *check_runs(const struct ledger_core *core)
{
    uint32_t holds_count = 0;

    for (uint32_t i = 0; i < core->holds_count; i++)
        holds_count += core->holds[i].is_run ? 1 : 0;
    if (holds_count != core->runs_count)
        return "12: a run's Hold without its run";
    for (uint32_t i = 0; i < core->runs_count; i++) {
        const struct run *run = &core->runs[i];
        const struct hold *hold = &core->holds[run->hold];
        uint32_t row = row_find(core, hold->account, hold->asset);

        if (run_find(core, &run->id) != i || !hold->is_run || row == NONE)
            return "12: a run without its Hold";
        if (run->ended && !ron_u128_is_zero(core->rows[row].balance))
            return "12: an abandoned run holds money";
    }
    return NULL;
}

const char *ledger_core_check(const struct ledger_core *core)
{
    const char *broken = check_accounts(core);

    return broken != NULL ? broken : core_check_loaded(core);
}

const char *core_check_loaded(const struct ledger_core *core)
{
    const char *broken = check_holds(core);

    if (broken == NULL)
        broken = check_indexes(core);
    if (broken == NULL)
        broken = check_runs(core);
    for (uint32_t i = 0; broken == NULL && i < core->rows_count; i++)
        broken = check_row(core, &core->rows[i]);
    if (broken != NULL)
        return broken;
    for (uint32_t asset = 1; asset <= core->assets_count; asset++) {
        struct ron_u128 issued;
        struct ron_u128 burned;
        struct ron_u128 sum;

        if (!ledger_core_totals(core, asset, &issued, &burned, &sum) ||
            ron_u128_compare(issued, sum) != 0)
            return "1: an asset is not conserved";
    }
    if (core->batch_last == atomic_load_explicit(&core->committed_batch, memory_order_relaxed))
        broken = check_views(core);
    return broken;
}

#define HASH(ctx, lvalue) ron_b3_update((ctx), &(lvalue), sizeof(lvalue))

static void digest_tables(const struct ledger_core *core, struct ron_b3_ctx *ctx)
{
    for (uint32_t i = 0; i < core->accounts_count; i++) {
        const struct account *account = &core->accounts[i];
        struct ledger_id id = account_id(account);

        HASH(ctx, id);
        HASH(ctx, account->next_nonce);
        HASH(ctx, account->flags);
    }
    for (uint32_t i = 0; i < core->rows_count; i++) {
        const struct row *row = &core->rows[i];
        uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);
        uint32_t asset = atomic_load_explicit(&row->asset, memory_order_relaxed);

        HASH(ctx, owner);
        HASH(ctx, asset);
        HASH(ctx, row->balance);
        HASH(ctx, row->daily);
        HASH(ctx, row->day);
        HASH(ctx, row->flags);
        if (row->limits != NONE) {
            const struct limit *limit = &core->limits[row->limits];

            HASH(ctx, limit->bits);
            HASH(ctx, limit->minimum);
            HASH(ctx, limit->maximum);
            HASH(ctx, limit->credit_line);
            HASH(ctx, limit->daily);
        }
    }
    ron_b3_update(ctx, core->names, core->names_size);
    ron_b3_update(ctx, core->reversals, core->reversals_count * sizeof(core->reversals[0]));
}

static void digest_rest(const struct ledger_core *core, struct ron_b3_ctx *ctx)
{
    for (uint32_t i = 0; i < core->holds_count; i++) {
        const struct hold *hold = &core->holds[i];

        HASH(ctx, hold->tenant);
        HASH(ctx, hold->entry);
        HASH(ctx, hold->expires_ms);
        HASH(ctx, hold->account);
        HASH(ctx, hold->payer);
        HASH(ctx, hold->payee);
        HASH(ctx, hold->asset);
        HASH(ctx, hold->is_run);
    }
    for (uint32_t i = 0; i < core->runs_count; i++) {
        HASH(ctx, core->runs[i].id);
        HASH(ctx, core->runs[i].run_key);
        HASH(ctx, core->runs[i].terms);
        HASH(ctx, core->runs[i].next_chunk);
        HASH(ctx, core->runs[i].hold);
        HASH(ctx, core->runs[i].ended);
    }
    for (uint32_t i = 0; i < core->streams_count; i++) {
        HASH(ctx, core->streams[i].id);
        HASH(ctx, core->streams[i].next_seq);
        HASH(ctx, core->streams[i].batch);
        HASH(ctx, core->streams[i].head);
    }
}

static void digest_windows(const struct ledger_core *core, struct ron_b3_ctx *ctx)
{
    for (uint64_t seq = window_first(core); seq <= core->seq_last; seq++)
        HASH(ctx, core->ring[(uint32_t)seq & core->ring_mask]);
    for (uint64_t key = window_keys_first(core); key < core->keys_end; key++)
        HASH(ctx, core->keys[(uint32_t)key & core->keys_mask]);
}

static void digest_pending(const struct ledger_core *core, struct ron_b3_ctx *ctx)
{
    HASH(ctx, core->batch_last);
    HASH(ctx, core->seq_last);
    HASH(ctx, core->commit_ms_last);
    HASH(ctx, core->assets_count);
    HASH(ctx, core->limits_count);
    digest_tables(core, ctx);
    digest_rest(core, ctx);
}

struct ron_b3 ledger_core_digest(const struct ledger_core *core)
{
    struct ron_b3_ctx ctx;

    ron_b3_init(&ctx);
    digest_pending(core, &ctx);
    digest_windows(core, &ctx);
    return ron_b3_final(&ctx);
}

struct ron_b3 core_digest_kept(const struct ledger_core *core)
{
    const struct batch_record *newest =
        &core->batches[(uint32_t)core->batch_last & core->batches_mask];
    struct ron_b3_ctx ctx;

    ron_b3_init(&ctx);
    digest_pending(core, &ctx);
    for (uint32_t i = 0; i < core->accounts_count; i++) {
        uint64_t nonce = account_committed_nonce(core, i);

        HASH(&ctx, nonce);
    }
    for (uint32_t i = 0; i < core->rows_count; i++) {
        const struct ron_u128 balance = row_committed_balance(core, i);
        const uint8_t flags = row_committed_flags(core, i);

        HASH(&ctx, balance);
        HASH(&ctx, flags);
    }
    for (uint32_t i = 0; i < core->assets_count; i++) {
        const struct asset *asset = &core->assets[i];

        HASH(&ctx, asset->batch);
        HASH(&ctx, asset->max_supply);
        HASH(&ctx, asset->decimals);
        HASH(&ctx, asset->name);
    }
    HASH(&ctx, newest->number);
    HASH(&ctx, newest->root);
    HASH(&ctx, core->committed_frontier.leaves_count);
    return ron_b3_final(&ctx);
}
