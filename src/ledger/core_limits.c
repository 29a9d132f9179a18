/*
 * core_limits.c - balances: may an amount leave, may it arrive, and the move itself.
 *
 * A balance is a magnitude and a sign. Only accounts with a credit line, and sys/clearing inside a
 * batch, are ever negative. The record of sys/mint counts what was issued: a debit raises it.
 */
#include "ledger/core_apply.h"

#include "base/rfc3339.h"

static const struct ron_u128 signed_max = {((unsigned __int128)1 << 127) - 1};
static const struct limit no_limit;

static const struct limit *limit_of(const struct ledger_core *core, uint32_t row)
{
    if (row == NONE || core->rows[row].limits == NONE)
        return &no_limit;
    return &core->limits[core->rows[row].limits];
}

/* A balance as a value. */
struct amount {
    struct ron_u128 magnitude;
    bool negative;
};

static struct amount amount_of(const struct ledger_core *core, uint32_t row)
{
    if (row == NONE)
        return (struct amount){.negative = false};
    return (struct amount){core->rows[row].balance, (core->rows[row].flags & ROW_NEGATIVE) != 0};
}

/* a + b or a - b; false when the magnitude does not fit. */
static bool amount_add(struct amount a, struct ron_u128 b, bool subtract, struct amount *ret)
{
    struct amount sum = a;

    if (a.negative == subtract) {
        if (!ron_u128_add(a.magnitude, b, &sum.magnitude))
            return false;
    } else if (!ron_u128_sub(a.magnitude, b, &sum.magnitude)) {
        bool fits = ron_u128_sub(b, a.magnitude, &sum.magnitude);

        RON_ASSERT(fits);
        sum.negative = !a.negative;
    }
    if (ron_u128_is_zero(sum.magnitude))
        sum.negative = false;
    *ret = sum;
    return true;
}

/* Balance and undrawn line together: what may be debited. */
static struct ron_u128 available(struct amount balance, const struct limit *limit)
{
    struct ron_u128 line = (limit->bits & LIMIT_CREDIT) != 0 ? limit->credit_line : ron_u128_of(0);
    struct ron_u128 sum = ron_u128_of(0);

    if (balance.negative) {
        if (!ron_u128_sub(line, balance.magnitude, &sum))
            return ron_u128_of(0); /* the line was lowered below what is drawn */
        return sum;
    }
    if (ron_u128_is_zero(line))
        return balance.magnitude;
    RON_ASSERT(balance.magnitude.v <= signed_max.v); /* README invariant 3 */
    if (!ron_u128_add(balance.magnitude, line, &sum))
        RON_UNREACHABLE();
    return sum;
}

/* Has an entry ever touched the account, in any asset? Its first one was a credit. */
static bool is_open(const struct ledger_core *core, const struct side *side)
{
    uint32_t row = side->row;

    if (row != NONE && (core->rows[row].flags & ROW_LISTED) != 0)
        return true;
    if (side->account == NONE)
        return false;
    row = atomic_load_explicit(&core->accounts[side->account].row_first, memory_order_relaxed);
    while (row != NONE && (core->rows[row].flags & ROW_LISTED) == 0)
        row = atomic_load_explicit(&core->rows[row].next, memory_order_relaxed);
    return row != NONE;
}

/* What a daily ceiling counts; not the Hold of a run. */
static bool is_user_debit(const struct ledger_op *op)
{
    return !op->by_ledger && (op->kind == LEDGER_TRANSFER || op->kind == LEDGER_BURN ||
                              op->kind == LEDGER_HOLD || op->kind == LEDGER_DEBIT);
}

static uint32_t day_of(uint64_t commit_ms)
{
    RON_ASSERT(commit_ms <= RON_TIME_MS_MAX);
    return (uint32_t)ron_day_of_ms(commit_ms);
}

/* Debits of the day so far, this amount included. False if that passes 2^128 - 1 and with it every
 * ceiling; *ret_sum then stays at the top. */
static bool daily_with(const struct row *row, uint32_t day, struct ron_u128 amount,
                       struct ron_u128 *ret_sum)
{
    *ret_sum = row->day == day ? RON_U128_MAX : amount;
    return row->day != day || ron_u128_add(row->daily, amount, ret_sum);
}

static bool daily_fits(const struct apply *a, const struct movement *m, struct ron_u128 ceiling)
{
    uint32_t day = day_of(a->command->stamp.commit_ms);
    struct ron_u128 sum;

    return daily_with(&a->core->rows[m->debit.row], day, m->op->amount, &sum) &&
           ron_u128_compare(sum, ceiling) <= 0;
}

static enum ron_err check_supply(struct apply *a, const struct movement *m)
{
    struct ron_u128 issued;

    if (!ron_u128_add(amount_of(a->core, m->debit.row).magnitude, m->op->amount, &issued) ||
        ron_u128_compare(issued, m->asset->max_supply) > 0)
        return refuse_limit(a, "supply");
    return RON_ERR_OK;
}

enum ron_err check_debit(struct apply *a, const struct movement *m)
{
    const struct limit *limit = limit_of(a->core, m->debit.row);
    struct amount balance = amount_of(a->core, m->debit.row);
    struct ron_u128 left;
    struct amount after;

    if (m->debit.class == CLASS_MINT)
        return check_supply(a, m);
    if (m->debit.class == CLASS_CLEARING)
        return RON_ERR_OK; /* apply_clearing decides */
    if (m->debit.account != NONE &&
        (a->core->accounts[m->debit.account].flags & ACCOUNT_FROZEN) != 0)
        return refuse_limit(a, "frozen");
    left = m->op->by_ledger ? available(balance, &no_limit) /* a run draws on no line */
                            : available(balance, limit);
    if (!is_open(a->core, &m->debit))
        left = ron_u128_of(0);
    if (ron_u128_compare(left, m->op->amount) < 0) {
        refusal_available(a, left);
        return ron_fail(a->reterr, RON_ERR_INSUFFICIENT_FUNDS, "the debit account has too little");
    }
    if (!amount_add(balance, m->op->amount, true, &after))
        RON_UNREACHABLE();
    if ((limit->bits & LIMIT_MINIMUM) != 0 &&
        (after.negative || ron_u128_compare(after.magnitude, limit->minimum) < 0))
        return refuse_limit(a, "minimum");
    if ((limit->bits & LIMIT_DAILY) != 0 && is_user_debit(m->op) && !daily_fits(a, m, limit->daily))
        return refuse_limit(a, "daily");
    return RON_ERR_OK;
}

bool credit_fits(const struct ledger_core *core, const struct movement *m)
{
    const struct limit *limit = limit_of(core, m->credit.row);
    struct amount after;

    if (m->credit.class == CLASS_MINT || m->credit.class == CLASS_CLEARING)
        return true; /* a reversed Mint: issued falls; clearing: apply_clearing decides */
    if (!amount_add(amount_of(core, m->credit.row), m->op->amount, false, &after))
        return false;
    return (limit->bits & LIMIT_CREDIT) == 0 || after.negative ||
           ron_u128_compare(after.magnitude, signed_max) <= 0;
}

enum ron_err check_credit(struct apply *a, const struct movement *m)
{
    const struct limit *limit = limit_of(a->core, m->credit.row);
    struct amount after;

    if (!credit_fits(a->core, m))
        return refuse_limit(a, "maximum");
    if ((limit->bits & LIMIT_MAXIMUM) == 0 || a->command->kind == LEDGER_COMMAND_EXPIRE ||
        a->command->kind == LEDGER_COMMAND_ABANDON)
        return RON_ERR_OK; /* its own money comes back */
    if (!amount_add(amount_of(a->core, m->credit.row), m->op->amount, false, &after))
        RON_UNREACHABLE();
    if (!after.negative && ron_u128_compare(after.magnitude, limit->maximum) > 0)
        return refuse_limit(a, "maximum");
    return RON_ERR_OK;
}

/* One side of the move. Clearing stays at zero: what goes through it is counted beside. */
static void change(struct ledger_core *core, const struct side *side, struct ron_u128 amount,
                   bool subtract)
{
    struct row *row = row_write(core, side->row);
    struct amount after;

    row->flags |= ROW_LISTED;
    if (side->class == CLASS_CLEARING)
        return;
    if (!amount_add(amount_of(core, side->row), amount, subtract, &after))
        RON_UNREACHABLE();
    row->balance = after.magnitude;
    row->flags &= (uint8_t)~ROW_NEGATIVE;
    if (after.negative)
        row->flags |= ROW_NEGATIVE;
    RON_ASSERT(side->class < CLASS_MINT || !after.negative); /* README invariant 2 */
    RON_ASSERT(!after.negative || ron_u128_compare(after.magnitude, signed_max) <= 0);
}

void daily_add(struct row *debit, struct ron_u128 amount, uint64_t commit_ms)
{
    const uint32_t day = day_of(commit_ms);
    struct ron_u128 sum;

    (void)daily_with(debit, day, amount, &sum);
    debit->daily = sum;
    debit->day = day;
}

void move_amount(struct ledger_core *core, const struct movement *m, uint64_t commit_ms)
{
    RON_ASSERT(m->debit.row != m->credit.row);
    RON_ASSERT(m->debit.row < core->rows_count);
    RON_ASSERT(m->credit.row < core->rows_count);
    RON_ASSERT(!ron_u128_is_zero(m->op->amount));
    change(core, &m->debit, m->op->amount, m->debit.class != CLASS_MINT);
    change(core, &m->credit, m->op->amount, m->credit.class == CLASS_MINT);
    if (is_user_debit(m->op))
        daily_add(row_write(core, m->debit.row), m->op->amount, commit_ms);
}
