/*
 * core_plain.c - the transfer that most entries are: between two accounts that are known and have
 * the asset already, with nothing in its way and nothing beside it.
 *
 * All that core_apply.c checks and core_effect.c does of such a one, with what cannot concern it
 * left out. Whatever is not plain, or would be refused, is left to them as it was: there is one
 * place for each refusal. That both ways end in the same state and the same bytes is what
 * unit/ledger_plain compares.
 */
#include "ledger/core_apply.h"

/* Both rows of a plain transfer. */
struct plain {
    uint32_t debit, credit;
};

/* No extension, no nonce, nothing that only some capability may do. */
static inline bool is_plain_op(const struct apply *a, const struct ledger_op *op)
{
    return op->kind == LEDGER_TRANSFER && op->nonce == 0 && !op->by_ledger && !op->sha256 &&
           (a->command->ops_bare || (op->memo.data == NULL && op->meta.data == NULL)) &&
           a->command->kind == LEDGER_COMMAND_INGEST && !a->command->cover.accounts &&
           !a->command->cover.assets;
}

/* The row that an ordinary account has of the asset: the one it got last, without limits. NONE if
 * it is not so simple. name: NULL if it is known by id alone. */
static inline uint32_t plain_row(const struct ledger_core *core, const struct ledger_id *id,
                                 const struct ron_slice *name, uint32_t asset,
                                 uint8_t flags_refused)
{
    const uint32_t place = account_find(core, id);
    const struct account *account;
    uint32_t row;

    if (place == NONE)
        return NONE;
    account = &core->accounts[place];
    if ((account->flags & (ACCOUNT_CLASS | flags_refused)) != CLASS_USER ||
        (name != NULL && is_misnamed(core, place, "", *name)))
        return NONE;
    row = atomic_load_explicit(&account->row_first, memory_order_relaxed);
    if (row == NONE ||
        atomic_load_explicit(&core->rows[row].asset, memory_order_relaxed) != asset ||
        core->rows[row].limits != NONE || (core->rows[row].flags & ROW_NEGATIVE) != 0)
        return NONE;
    return row;
}

/* May it be? Of which rows then. */
static inline bool plain_find(const struct apply *a, const struct ledger_op *op, uint32_t asset,
                              struct plain *ret_plain)
{
    const struct ledger_core *core = a->core;
    const bool bare = a->command->ops_bare; /* nobody looks at names then */
    struct ron_u128 after;

    if (asset == 0 || asset > core->assets_count)
        return false;
    ret_plain->debit = plain_row(core, &op->debit, bare ? NULL : &op->debit_name, asset,
                                 ACCOUNT_FROZEN);
    ret_plain->credit = plain_row(core, &op->credit, bare ? NULL : &op->credit_name, asset, 0);
    return ret_plain->debit != NONE && ret_plain->credit != NONE &&
           ret_plain->debit != ret_plain->credit &&
           (core->rows[ret_plain->debit].flags & ROW_LISTED) != 0 &&
           ron_u128_sub(core->rows[ret_plain->debit].balance, op->amount, &after) &&
           ron_u128_add(core->rows[ret_plain->credit].balance, op->amount, &after);
}

/* The cell has the new values at once: nobody need come back for them (finish_cells). The balance
 * is made here, not where it was looked at: from there it would come through the stack, in two
 * halves that are read as one, and such a read waits for every write before it. */
static inline struct row *plain_change(struct apply *a, uint32_t place, bool is_debit,
                                       struct ron_u128 amount)
{
    struct row *row = row_write(a->core, place);
    const uint32_t owner = atomic_load_explicit(&row->account, memory_order_relaxed);
    struct ledger_cell *cell;
    struct ron_u128 after;

    touch(a, place);
    cell = &a->batch->cells[row->cell];
    if (is_debit ? !ron_u128_sub(row->balance, amount, &after)
                 : !ron_u128_add(row->balance, amount, &after))
        RON_UNREACHABLE();
    row->balance = after;
    row->flags |= ROW_LISTED;
    cell->balance = after;
    cell->row_flags = ledger_cell_row_flags(place, row->flags);
    cell->nonce = a->core->accounts[owner].next_nonce;
    return row;
}

bool apply_plain(struct apply *a, const struct ledger_op *op)
{
    static const struct ledger_id no_link;
    const bool by_number = a->command->ops_bare || op->asset_name.size == 0;
    const uint32_t asset = by_number ? op->asset : asset_find(a->core, op->asset_name);
    struct plain plain;
    struct row *debit;

    if (!is_plain_op(a, op) || !log_has_room(a) || !plain_find(a, op, asset, &plain))
        return false;
    debit = plain_change(a, plain.debit, true, op->amount);
    (void)plain_change(a, plain.credit, false, op->amount);
    daily_add(debit, op->amount, a->command->stamp.commit_ms);
    put_entry(
        a,
        &(struct entry_parts){
            .op = op, .debit = &op->debit, .credit = &op->credit, .link = &no_link, .asset = asset},
        0);
    return true;
}
