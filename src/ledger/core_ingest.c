/*
 * core_ingest.c - a batch of entries: key, ids, source times, each entry, clearing.
 */
#include "ledger/core_ahead.h"

/* Step 4. */
static enum ron_err check_times(struct apply *a)
{
    const uint64_t now = a->command->stamp.commit_ms;

    if (a->command->bare_ops != NULL)
        return RON_ERR_OK;
    for (uint32_t i = 0; i < a->command->ops_count; i++) {
        const struct ledger_op *op = &a->command->ops[i];
        uint64_t distance = op->ts_ms > now ? op->ts_ms - now : now - op->ts_ms;

        if (!op->has_ts || distance <= LEDGER_TS_SKEW_MS_MAX)
            continue;
        a->refusal->present |= LEDGER_DETAIL_SERVER_MS;
        a->refusal->server_ms = now;
        refusal_index(a, i);
        return ron_fail(a->reterr, RON_ERR_MALFORMED, "entry %u: ts is %llu ms off", i,
                        (unsigned long long)distance);
    }
    return RON_ERR_OK;
}

/* The clearing account of an entry's asset is one of its sides. */
static bool is_leg(const struct ledger_core *core, const struct ledger_entry *entry)
{
    const struct ledger_id *clearing;

    if (entry->asset == 0 || entry->kind == LEDGER_ASSET)
        return false;
    clearing = &core->assets[entry->asset - 1].clearing;
    return ledger_id_equal(&entry->debit, clearing) || ledger_id_equal(&entry->credit, clearing);
}

static bool is_cleared(const struct ledger_core *core, uint32_t asset)
{
    const struct asset *legs = &core->assets[asset - 1];

    RON_ASSERT(legs->legs_command == core->commands_count);
    return ron_u256_compare(legs->legs_in, legs->legs_out) == 0;
}

/* Step 6: per asset, what went through clearing went through. */
enum ron_err apply_clearing(struct apply *a)
{
    const struct ledger_batch *batch = a->batch;
    uint32_t asset = NONE;
    uint32_t last = 0;

    if (!a->clearing_touched)
        return RON_ERR_OK;
    for (uint32_t i = 0; i < batch->entries_count; i++) {
        const struct ledger_entry *entry = &batch->entries[i];

        if (!is_leg(a->core, entry) || entry->asset > asset)
            continue;
        if (entry->asset < asset && is_cleared(a->core, entry->asset))
            continue;
        asset = entry->asset;
        last = i;
    }
    if (asset == NONE)
        return RON_ERR_OK;
    refusal_index(a, last);
    return ron_fail(a->reterr, RON_ERR_MALFORMED, "asset %u does not clear: last leg is entry %u",
                    asset, last);
}

void ledger_core_prefetch(const struct ledger_core *core, const struct ledger_command *command,
                          unsigned step)
{
    if (command->ops_count > AHEAD_FEW)
        return; /* it does so itself */
    for (uint32_t i = 0; i < command->ops_count; i++) {
        const struct ledger_bare_op *op = ledger_op_head(command, i);

        if (step == 0) {
            ledger_recent_prefetch(&core->id_index, id_hash(&op->id));
            account_prefetch_slot(core, &op->debit);
            account_prefetch_slot(core, &op->credit);
        } else if (step == 1) {
            (void)account_prefetch(core, &op->debit);
            (void)account_prefetch(core, &op->credit);
        } else {
            account_prefetch_row(core, account_prefetch(core, &op->debit));
            account_prefetch_row(core, account_prefetch(core, &op->credit));
        }
    }
}

/* Step 5, for what is left of the ops. */
static enum ron_err apply_ops(struct apply *a, struct ahead *ahead)
{
    const struct ledger_command *command = a->command;

    for (;;) {
        const uint32_t i = a->batch->entries_count;
        struct ledger_op room;
        enum ron_err err;

        if (i == command->ops_count)
            return RON_ERR_OK;
        (void)ahead_at(ahead, i);
        err = apply_op(a, ledger_op_whole(command, i, &room));
        if (err != RON_ERR_OK) {
            refusal_index(a, i);
            return ron_wrap(a->reterr, err, "entry %u", i);
        }
        apply_plain_ops(a, ahead);
    }
}

enum ron_err apply_ingest(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_command *command = a->command;
    struct ahead ahead;
    bool known = false;
    enum ron_err err;

    if (command->key.size > 0) {
        err = key_pass(a, command->key, &known, ret_result);
        if (err != RON_ERR_OK || known)
            return err;
    }
    /* Steps 3 to 5 at once, as far as there is nothing to say. */
    ahead_begin(&ahead, a->core, command);
    apply_plain_ops(a, &ahead);
    err = ids_pass(a, command, a->batch->ids_count, 0);
    if (err == RON_ERR_OK)
        err = ids_verdict(a, command->ops_count, &known, ret_result);
    if (err != RON_ERR_OK || known)
        return err;
    err = check_times(a);
    if (err != RON_ERR_OK)
        return err;
    err = apply_ops(a, &ahead);
    if (err != RON_ERR_OK)
        return err;
    err = apply_clearing(a);
    if (err != RON_ERR_OK)
        return err;
    ret_result->applied = true;
    return RON_ERR_OK;
}
