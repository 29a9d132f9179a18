/*
 * core_effect.c - what an entry does once its checks have passed: accounts, rows, holds, the entry
 * itself. Everything here can be taken back by core_undo.c.
 */
#include "ledger/core_id_text.h"
#include "ledger/core_touch.h"

/* The id of a name: made already, if it is the replayed frame's next. */
struct ledger_id name_id(const struct ledger_core *core, struct ron_slice name)
{
    const struct name_source *source = core->replay;

    if (source != NULL && source->next < source->ids_count && source->at < source->names.size &&
        name.data == source->names.data + source->at + 1 &&
        name.size == source->names.data[source->at])
        return source->ids[source->next];
    return ledger_account_id("", name);
}

/* Make an account known. Under replay its name is the frame's next. */
enum ron_err know_account(struct apply *a, const struct ledger_id *id, const char *prefix,
                          struct ron_slice name, uint32_t *account)
{
    struct name_source *source = a->core->replay;

    if (*account != NONE)
        return RON_ERR_OK;
    if (source != NULL) {
        struct ledger_id named;

        if (source->at == source->names.size)
            return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame lacks a name");
        prefix = "";
        name = ron_slice_of(source->names.data + source->at + 1, source->names.data[source->at]);
        named = name_id(a->core, name);
        if (!ledger_id_equal(&named, id) || !ledger_is_account(name))
            return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's name is of another id");
        source->at += 1 + name.size;
        source->next++;
    }
    *account = account_add(a->core, id, prefix, name);
    return RON_ERR_OK;
}

static void add_hold(struct apply *a, const struct movement *m, uint32_t payee)
{
    struct ledger_core *core = a->core;
    uint32_t place = core->holds_count++;

    RON_ASSERT(place < core->capacity.holds_max);
    RON_ASSERT(m->credit.class == CLASS_HOLD);
    RON_ASSERT(m->debit.account != NONE);
    core->holds[place] = (struct hold){
        .tenant = a->command->stamp.tenant,
        .entry = m->op->id,
        .expires_ms = m->op->expires_ms,
        .account = m->credit.account,
        .payer = m->debit.account,
        .payee = payee,
        .asset = m->asset_number,
        .heap_at = NONE,
        .is_run = a->command->kind == LEDGER_COMMAND_INTENTS,
    };
    ledger_index_add(&core->hold_index, id_hash(&m->credit.id), place);
    if (m->op->expires_ms != 0)
        heap_push(core, place);
}

static void add_reversal(struct ledger_core *core, const struct movement *m)
{
    uint32_t place = reversal_find(core, &m->link);
    struct reversal *reversal;

    if (place == NONE) {
        RON_ASSERT(core->reversals_count < core->capacity.reversals_max);
        place = core->reversals_count++;
        *reversal_write(core, place) = (struct reversal){.entry = m->link};
        ledger_index_add(&core->reversal_index, id_hash(&m->link), place);
    }
    reversal = reversal_write(core, place);
    if (!ron_u128_add(reversal->total, m->op->amount, &reversal->total))
        RON_UNREACHABLE();
}

/* Step 10, for the leaf and its id. */
enum ron_err check_log_room(struct apply *a, const struct ledger_ext *ext)
{
    if (!log_has_room(a))
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u ids are taken, and there is no archive",
                        a->core->capacity.entries_window);
    if (ledger_ext_size(ext) > a->batch->ext_max - a->batch->ext_size)
        return ron_fail(a->reterr, RON_ERR_TOO_LARGE, "extensions beyond %u bytes in one batch",
                        a->batch->ext_max);
    return RON_ERR_OK;
}

/* Made by the ledger itself, or handed in under its own name. */
static bool is_by_ledger(const struct apply *a, const struct ledger_op *op)
{
    return op->by_ledger || (a->command->kind == LEDGER_COMMAND_INGEST &&
                             a->command->stamp.caller == LEDGER_CALLER_LEDGER);
}

static void put_entry(struct apply *a, const struct movement *m, size_t ext_size)
{
    struct ledger_batch *batch = a->batch;
    const struct ledger_op *op = m->op;
    const uint32_t i = batch->entries_count;
    struct ledger_entry *entry = &batch->entries[i];

    RON_ASSERT(i < batch->ids_count);
    RON_ASSERT(i < batch->entries_max);
    RON_ASSERT(batch->texts_max - batch->texts_size > LEDGER_ID_TEXT_SIZE_MAX);
    RON_ASSERT(op->kind == LEDGER_ANCHOR || op->kind == LEDGER_ASSET ||
               !ron_u128_is_zero(op->amount));
    *entry = (struct ledger_entry){
        .id = op->id,
        .debit = m->debit.id,
        .credit = m->credit.id,
        .amount = op->amount,
        .link = m->link,
        .seq = a->core->seq_last + 1 + i,
        .commit_ms = a->command->stamp.commit_ms,
        .nonce = op->nonce,
        .batch = batch->number,
        .asset = m->asset_number,
        .kind = op->kind,
        .flags = (uint16_t)((ext_size > 0 ? LEDGER_FLAG_EXT : 0) |
                            (op->sha256 ? LEDGER_FLAG_SHA256 : 0) |
                            (is_by_ledger(a, op) ? LEDGER_FLAG_BY_LEDGER : 0)),
    };
    if (a->command->kind != LEDGER_COMMAND_EXPIRE)
        memcpy(entry->capability, a->command->stamp.capability, sizeof(entry->capability));
    a->core->ring[(uint32_t)entry->seq & a->core->ring_mask] = *entry;
    batch->ext_sizes[i] = (uint16_t)ext_size;
    batch->texts_size += (uint32_t)ledger_id_text_put(op->id_text,
                                                      batch->texts + batch->texts_size);
    batch->entries_count++;
}

/* Write entry, ext and id text as the batch's next. There is room. */
void write_entry(struct apply *a, const struct movement *m, const struct ledger_ext *ext)
{
    struct ledger_batch *batch = a->batch;
    const size_t ext_size = ledger_ext_size(ext);

    RON_ASSERT(ext_size <= batch->ext_max - batch->ext_size);
    if (ext_size > 0)
        ledger_ext_encode(ext, batch->ext + batch->ext_size);
    batch->ext_size += (uint32_t)ext_size;
    if (m->op->nonce != 0)
        ledger_recent_add(&a->core->nonce_index, nonce_hash(&m->debit.id, m->op->nonce),
                          batch->seq_start + batch->entries_count, a->core->ring_first);
    put_entry(a, m, ext_size);
}

/* Count what goes through clearing; 8,000 amounts cannot reach 2^256. */
static void add_leg(struct apply *a, const struct movement *m)
{
    struct asset *asset = &a->core->assets[m->asset_number - 1];
    const struct ron_u256 amount = {.low = m->op->amount};
    struct ron_u256 *legs;

    if (asset->legs_command != a->core->commands_count) {
        asset->legs_command = a->core->commands_count;
        asset->legs_in = (struct ron_u256){.low = ron_u128_of(0)};
        asset->legs_out = asset->legs_in;
    }
    legs = m->debit.class == CLASS_CLEARING ? &asset->legs_out : &asset->legs_in;
    if (!ron_u256_add(*legs, amount, legs))
        RON_UNREACHABLE();
    a->clearing_touched = true;
}

/* Under replay the names of new accounts come from the frame, after the checks that they decide. */
static enum ron_err check_replayed(struct apply *a, struct movement *m, uint32_t payee)
{
    const struct ledger_core *core = a->core;
    const struct account *credit = &core->accounts[m->credit.account];
    const size_t prefix_size = sizeof("sys/hold/") - 1;
    struct ron_slice name = account_name(core, credit);

    if (core->replay == NULL || m->op->by_ledger)
        return RON_ERR_OK;
    if (m->credit.class == CLASS_USER && account_class(credit) != CLASS_USER)
        m->credit.class = account_class(credit);
    if (m->op->kind == LEDGER_HOLD &&
        (m->credit.class != CLASS_HOLD ||
         !ledger_is_hold_id(ron_slice_of(name.data + prefix_size, name.size - prefix_size))))
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's Hold is of no hold_id");
    if (m->credit.class >= CLASS_MINT && m->credit.prefix[0] == '\0' &&
        m->op->kind != LEDGER_HOLD && m->op->kind != LEDGER_REVERSE)
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame credits a system account");
    if (payee != NONE && account_class(&core->accounts[payee]) >= CLASS_MINT)
        return ron_fail(a->reterr, RON_ERR_WAL_CORRUPT, "a frame's payee is a system account");
    return RON_ERR_OK;
}

/* All checks have passed and there is room. */
enum ron_err effect(struct apply *a, struct movement *m)
{
    struct ledger_core *core = a->core;
    const struct ledger_op *op = m->op;
    const bool has_payee = op->kind == LEDGER_HOLD && !ledger_id_is_zero(&op->other);
    uint32_t payee = has_payee ? account_find(core, &op->other) : NONE;
    enum ron_err err;

    err = know_account(a, &m->debit.id, m->debit.prefix, m->debit.name, &m->debit.account);
    if (err == RON_ERR_OK)
        err = know_account(a, &m->credit.id, m->credit.prefix, m->credit.name, &m->credit.account);
    if (err == RON_ERR_OK && has_payee) {
        payee = account_find(core, &op->other); /* it may be the payer's or the hold's */
        err = know_account(a, &op->other, "", op->payee_name, &payee);
    }
    if (err == RON_ERR_OK)
        err = check_replayed(a, m, payee);
    if (err != RON_ERR_OK)
        return err;
    if (m->debit.row == NONE)
        m->debit.row = row_add(core, m->debit.account, m->asset_number);
    if (m->credit.row == NONE)
        m->credit.row = row_add(core, m->credit.account, m->asset_number);
    (void)touch(a, &core->accounts[m->debit.account], m->debit.row);
    (void)touch(a, &core->accounts[m->credit.account], m->credit.row);
    a->cells_open = true;
    move_amount(core, m, a->command->stamp.commit_ms);
    if (op->nonce != 0) {
        RON_ASSERT(op->nonce == core->accounts[m->debit.account].next_nonce);
        RON_ASSERT(op->nonce < UINT64_MAX);
        account_write(core, m->debit.account)->next_nonce = op->nonce + 1;
    }
    if (op->kind == LEDGER_HOLD)
        add_hold(a, m, payee);
    if (op->kind == LEDGER_REVERSE)
        add_reversal(core, m);
    if (m->debit.class == CLASS_CLEARING || m->credit.class == CLASS_CLEARING)
        add_leg(a, m);
    return RON_ERR_OK;
}
