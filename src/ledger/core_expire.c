/*
 * core_expire.c - the command `expire`: what is left of holds past their time goes back.
 *
 * A Release that the payer's balance cannot take (beyond 2^128 - 1, or 2^127 - 1 with a credit
 * line) is left out and tried again by the next command; everything else is released whatever the
 * payer's limits say.
 */
#include "ledger/core_apply.h"

static struct ron_u128 rest_of(const struct ledger_core *core, const struct hold *hold)
{
    uint32_t row = row_find(core, hold->account, hold->asset);

    RON_ASSERT(row != NONE);
    return core->rows[row].balance;
}

static void make_op(const struct ledger_core *core, const struct hold *hold, char *id_text,
                    struct ledger_op *op)
{
    struct ron_slice name = account_name(core, &core->accounts[hold->account]);
    const size_t prefix_size = sizeof("sys/hold/") - 1;
    const size_t expire_size = sizeof("expire/") - 1;

    RON_ASSERT(name.size > prefix_size);
    RON_ASSERT(expire_size + name.size - prefix_size <= LEDGER_ID_TEXT_SIZE_MAX);
    memcpy(id_text, "expire/", expire_size);
    memcpy(id_text + expire_size, name.data + prefix_size, name.size - prefix_size);
    *op = (struct ledger_op){
        .kind = LEDGER_RELEASE,
        .by_ledger = true,
        .debit = account_id(&core->accounts[hold->account]),
        .amount = rest_of(core, hold),
        .asset = hold->asset,
        .id_text = ron_slice_of(id_text, expire_size + name.size - prefix_size),
    };
    op->id = ledger_entry_id(hold->tenant, op->id_text);
}

static enum ron_err release(struct apply *a, const struct hold *hold, bool *ret_done)
{
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    struct ledger_op op;
    struct movement m;
    enum ron_err err;

    make_op(a->core, hold, id_text, &op);
    if (!movement_resolve(a->core, &op, a->core->seq_last, &m))
        RON_UNREACHABLE();
    movement_locate(a->core, &m);
    *ret_done = credit_fits(a->core, &m);
    if (!*ret_done)
        return RON_ERR_OK;
    err = ids_pass_own(a, &op, 1, UINT32_MAX);
    return err == RON_ERR_OK ? apply_op(a, &op) : err;
}

enum ron_err apply_expire(struct apply *a, struct ledger_result *ret_result)
{
    struct ledger_core *core = a->core;
    const uint64_t now = a->command->stamp.commit_ms;
    uint32_t left_out = NONE; /* chain of holds, through heap_at */
    enum ron_err err = RON_ERR_OK;

    while (err == RON_ERR_OK && core->heap_count > 0 &&
           a->batch->entries_count < RON_BATCH_ENTRIES_MAX) {
        uint32_t place = core->heap[0];
        struct hold *hold = &core->holds[place];
        bool done = true;

        RON_ASSERT(!hold->is_run);
        RON_ASSERT(hold->expires_ms > 0);
        if (hold->expires_ms > now)
            break;
        heap_remove(core, place);
        if (!ron_u128_is_zero(rest_of(core, hold)))
            err = release(a, hold, &done);
        if (!done || err != RON_ERR_OK) {
            hold->heap_at = left_out;
            left_out = place;
        }
    }
    while (left_out != NONE) {
        uint32_t place = left_out;

        left_out = core->holds[place].heap_at;
        core->holds[place].heap_at = NONE;
        heap_push(core, place);
    }
    ret_result->applied = err == RON_ERR_OK && a->batch->entries_count > 0;
    return err;
}
