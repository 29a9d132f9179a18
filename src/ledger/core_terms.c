/*
 * core_terms.c - the command `limits`: an account's limits in an asset, and whether it is frozen.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core_apply.h"

/* A writer of short RFC 8785 texts whose parts need no escapes. */
struct text {
    char bytes[640];
    size_t size;
};

static void put(struct text *text, const char *part, size_t size)
{
    RON_ASSERT(size <= sizeof(text->bytes) - text->size);
    memcpy(text->bytes + text->size, part, size);
    text->size += size;
}

static void put_member(struct text *text, const char *name, struct ron_slice value, bool quoted)
{
    put(text, text->size == 0 ? "{\"" : ",\"", 2);
    put(text, name, strlen(name));
    put(text, quoted ? "\":\"" : "\":", quoted ? 3 : 2);
    put(text, (const char *)value.data, value.size);
    put(text, "\"", quoted ? 1 : 0);
}

static void put_amount(struct text *text, const char *name, bool given, struct ron_u128 amount)
{
    char digits[RON_DECIMAL_U128_SIZE];
    size_t size = ron_decimal_print_u128(amount, digits);

    if (given)
        put_member(text, name, ron_slice_of(digits, size), true);
}

static struct ron_b3 terms_digest(const struct ledger_limit_terms *terms)
{
    struct text text = {.size = 0};

    put_member(&text, "account", terms->account, true);
    if (terms->asset.size > 0)
        put_member(&text, "asset", terms->asset, true);
    put_amount(&text, "credit_line", terms->has_credit_line, terms->credit_line);
    put_amount(&text, "daily", terms->has_daily, terms->daily);
    if (terms->has_frozen)
        put_member(&text, "frozen", ron_slice_text(terms->frozen ? "true" : "false"), false);
    put_amount(&text, "maximum", terms->has_maximum, terms->maximum);
    put_amount(&text, "minimum", terms->has_minimum, terms->minimum);
    put(&text, "}", 1);
    return ron_b3(text.bytes, text.size);
}

static enum ron_err check_terms(struct apply *a, uint32_t asset, uint32_t account, uint32_t row)
{
    const struct ledger_limit_terms *terms = &a->command->limits;
    const struct ledger_core *core = a->core;
    const struct ledger_capacity *capacity = &core->capacity;

    if (terms->asset.size > 0 && asset == 0)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "no such asset");
    if (name_class(terms->account) >= CLASS_MINT)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a system account has no limits");
    if (account != NONE &&
        !ron_slice_equal(account_name(core, &core->accounts[account]), terms->account))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "another account has this id");
    if (terms->has_credit_line && row != NONE && (core->rows[row].flags & ROW_NEGATIVE) == 0 &&
        core->rows[row].balance.v >> 127 != 0)
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "a balance of 2^127 takes no credit line");
    if (account == NONE && (core->accounts_count == capacity->accounts_max ||
                            capacity->names_size_max - core->names_size < terms->account.size))
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u accounts are taken",
                        capacity->accounts_max);
    if (asset != 0 && row == NONE && core->rows_count == capacity->rows_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u rows are taken", capacity->rows_max);
    if (asset != 0 && (row == NONE || core->rows[row].limits == NONE) &&
        core->limits_count == capacity->limits_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u limits are taken", capacity->limits_max);
    return RON_ERR_OK;
}

static struct ron_u128 given(bool is_given, struct ron_u128 amount)
{
    return is_given ? amount : ron_u128_of(0);
}

static void set_limits(struct apply *a, uint32_t place)
{
    const struct ledger_limit_terms *terms = &a->command->limits;
    struct ledger_old_terms *old = &a->batch->old;
    struct ledger_core *core = a->core;
    struct row *row = row_write(core, place);
    const struct limit *limit;

    RON_ASSERT(place < core->rows_count);
    RON_ASSERT(row->limits != NONE || core->limits_count < core->capacity.limits_max);
    old->has_limits = true;
    old->row = place;
    old->row_limits = row->limits;
    if (row->limits == NONE) {
        row->limits = core->limits_count++;
    } else {
        limit = &core->limits[row->limits];
        old->minimum = limit->minimum;
        old->maximum = limit->maximum;
        old->credit_line = limit->credit_line;
        old->daily = limit->daily;
        old->limit_bits = limit->bits;
    }
    *limit_write(core, row->limits) = (struct limit){
        .minimum = given(terms->has_minimum, terms->minimum),
        .maximum = given(terms->has_maximum, terms->maximum),
        .credit_line = given(terms->has_credit_line, terms->credit_line),
        .daily = given(terms->has_daily, terms->daily),
        .bits = (uint8_t)((terms->has_minimum ? LIMIT_MINIMUM : 0) |
                          (terms->has_maximum ? LIMIT_MAXIMUM : 0) |
                          (terms->has_credit_line ? LIMIT_CREDIT : 0) |
                          (terms->has_daily ? LIMIT_DAILY : 0)),
    };
}

static void set_frozen(struct apply *a, uint32_t place)
{
    struct account *account = account_write(a->core, place);

    a->batch->old.has_frozen = true;
    a->batch->old.account = place;
    a->batch->old.account_flags = account->flags;
    account->flags &= (uint8_t)~ACCOUNT_FROZEN;
    if (a->command->limits.frozen)
        account->flags |= ACCOUNT_FROZEN;
}

/* The Anchor that proves the terms. */
static enum ron_err anchor_terms(struct apply *a)
{
    struct ron_b3 digest = terms_digest(&a->command->limits);
    struct ledger_op op = {
        .kind = LEDGER_ANCHOR,
        .by_ledger = true,
        .stream = RON_SLICE("limits"),
        .ref = a->command->limits.account,
    };
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    int written = snprintf(id_text, sizeof(id_text), "limits/%llu",
                           (unsigned long long)a->batch->number);
    enum ron_err err;

    RON_ASSERT(written > 0);
    op.id_text = ron_slice_of(id_text, (size_t)written);
    op.id = ledger_entry_id(a->command->stamp.tenant, op.id_text);
    memcpy(op.debit.bytes, digest.bytes, LEDGER_ID_SIZE);
    memcpy(op.credit.bytes, digest.bytes + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    err = ids_pass_own(a, &op, 1, 1);
    if (err != RON_ERR_OK)
        return err;
    return apply_op(a, &op);
}

enum ron_err apply_limits(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_limit_terms *terms = &a->command->limits;
    struct ledger_id id = ledger_account_id("", terms->account);
    uint32_t account = account_find(a->core, &id);
    uint32_t asset = terms->asset.size > 0 ? asset_find(a->core, terms->asset) : 0;
    uint32_t row = account == NONE || asset == 0 ? NONE : row_find(a->core, account, asset);
    enum ron_err err = check_terms(a, asset, account, row);

    if (err == RON_ERR_OK)
        err = know_account(a, &id, "", terms->account, &account);
    if (err != RON_ERR_OK)
        return err;
    if (asset != 0) {
        if (row == NONE)
            row = row_add(a->core, account, asset);
        set_limits(a, row);
    }
    if (terms->has_frozen)
        set_frozen(a, account);
    err = anchor_terms(a);
    ret_result->applied = err == RON_ERR_OK;
    return err;
}
