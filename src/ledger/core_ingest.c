/*
 * core_ingest.c - a batch of entries: key, ids, source times, each entry, clearing.
 */
#include "ledger/core_apply.h"

/* Step 4. */
static enum ron_err check_times(struct apply *a)
{
    const uint64_t now = a->command->stamp.commit_ms;

    if (a->command->ops_bare)
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

enum {
    OPS_FEW = 4, /* so many are prefetched by who applies several such commands */
    AHEAD = 5,   /* entries from one step to the next */
    LEAD = 3 * AHEAD,
    PLACES = 8,
    /* Plain transfers to the ring in company: an entry that is read right after it was written, in
     * other pieces, waits for every write before it. */
    RING_LATER = 64,
};
_Static_assert(PLACES > AHEAD, "a place waits from one step to the next");

/* An entry as another thread left it; of a bare one the names are not looked at. */
static void prefetch_op(const struct ledger_command *command, uint32_t index)
{
    enum { LINE = 64 };
    const struct ledger_op *op = &command->ops[index];
    const size_t size = command->ops_bare ? offsetof(struct ledger_op, debit_name) : sizeof(*op);

    for (size_t i = 0; i < size; i += LINE)
        __builtin_prefetch((const uint8_t *)op + i);
}

/* The accounts of entries to come, in three steps, the first of them for entry `lead`; an Anchor's
 * digest does no harm. */
static void prefetch(const struct ledger_core *core, const struct ledger_command *command,
                     uint32_t lead, uint32_t places[PLACES][2])
{
    if (lead + AHEAD < command->ops_count)
        prefetch_op(command, lead + AHEAD);
    if (lead < command->ops_count) {
        __builtin_prefetch(command->ops[lead].id_text.data);
        account_prefetch_slot(core, &command->ops[lead].debit);
        account_prefetch_slot(core, &command->ops[lead].credit);
    }
    if (lead >= AHEAD && lead - AHEAD < command->ops_count) {
        const struct ledger_op *op = &command->ops[lead - AHEAD];

        places[(lead - AHEAD) % PLACES][0] = account_prefetch(core, &op->debit);
        places[(lead - AHEAD) % PLACES][1] = account_prefetch(core, &op->credit);
    }
    if (lead >= 2 * AHEAD && lead - 2 * AHEAD < command->ops_count) {
        account_prefetch_row(core, places[(lead - 2 * AHEAD) % PLACES][0]);
        account_prefetch_row(core, places[(lead - 2 * AHEAD) % PLACES][1]);
    }
}

void ledger_core_prefetch(const struct ledger_core *core, const struct ledger_command *command,
                          unsigned step)
{
    if (command->ops_count > OPS_FEW)
        return; /* it does so itself */
    for (uint32_t i = 0; i < command->ops_count; i++) {
        const struct ledger_op *op = &command->ops[i];

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

/* Step 5. */
static enum ron_err apply_ops(struct apply *a)
{
    const struct ledger_command *command = a->command;
    const bool is_few = command->ops_count <= OPS_FEW;
    uint32_t places[PLACES][2];

    for (uint32_t lead = 0; lead < LEAD && !is_few; lead++)
        prefetch(a->core, command, lead, places);
    for (uint32_t i = 0; i < command->ops_count; i++) {
        enum ron_err err;

        if (!is_few)
            prefetch(a->core, command, i + LEAD, places);
        if (a->batch->entries_count - a->ringed_count == RING_LATER)
            ring_catch_up(a);
        if (apply_plain(a, &command->ops[i]))
            continue;
        ring_catch_up(a);
        err = apply_op(a, &command->ops[i]);
        if (err != RON_ERR_OK) {
            refusal_index(a, i);
            return ron_wrap(a->reterr, err, "entry %u", i);
        }
    }
    ring_catch_up(a);
    return RON_ERR_OK;
}

enum ron_err apply_ingest(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_command *command = a->command;
    bool known = false;
    enum ron_err err;

    if (command->key.size > 0) {
        err = key_pass(a, command->key, &known, ret_result);
        if (err != RON_ERR_OK || known)
            return err;
    }
    err = ids_pass(a, command->ops, command->ops_count, 0);
    if (err == RON_ERR_OK)
        err = ids_verdict(a, command->ops_count, &known, ret_result);
    if (err != RON_ERR_OK || known)
        return err;
    err = check_times(a);
    if (err != RON_ERR_OK)
        return err;
    err = apply_ops(a);
    if (err != RON_ERR_OK)
        return err;
    err = apply_clearing(a);
    if (err != RON_ERR_OK)
        return err;
    ret_result->applied = true;
    return RON_ERR_OK;
}
