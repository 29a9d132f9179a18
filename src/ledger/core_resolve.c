/*
 * core_resolve.c - from an op to the accounts, hold and earlier entry it is about.
 */
#include "ledger/core_apply.h"

static void set_side(struct side *side, const struct ledger_id *id, const char *prefix,
                     struct ron_slice name)
{
    *side = (struct side){.id = *id, .prefix = prefix, .name = name, .account = NONE, .row = NONE};
}

/* The side that a system account of the asset takes. */
static void set_system_side(struct side *side, const struct ledger_id *id, const char *prefix,
                            const struct asset *asset)
{
    set_side(side, id, prefix, ron_slice_of(asset->name, asset->name_size));
}

static bool resolve_hold(const struct ledger_core *core, const struct ledger_op *op,
                         struct movement *m)
{
    const struct hold *hold;
    struct ledger_id id;

    set_side(&m->debit, &op->debit, "", (struct ron_slice){NULL, 0});
    set_side(&m->credit, &op->credit, "", op->credit_name);
    m->hold = hold_find(core, &op->debit);
    if (m->hold == NONE)
        return false;
    hold = &core->holds[m->hold];
    m->link = hold->entry;
    if (op->kind == LEDGER_RELEASE ||
        (hold->payee != NONE && (!op->has_to || core->replay != NULL))) {
        const struct account *target =
            &core->accounts[op->kind == LEDGER_RELEASE ? hold->payer : hold->payee];

        id = account_id(target);
        set_side(&m->credit, &id, "", account_name(core, target));
    }
    return true;
}

static bool resolve_reverse(const struct ledger_core *core, const struct ledger_op *op,
                            uint64_t seq_max, struct movement *m)
{
    const struct ron_slice none = {NULL, 0};

    m->link = op->other;
    m->has_ref = entry_find(core, &op->other, seq_max, &m->ref);
    if (!m->has_ref)
        return false;
    set_side(&m->debit, &m->ref.credit, "", none);
    set_side(&m->credit, &m->ref.debit, "", none);
    return true;
}

bool movement_resolve(const struct ledger_core *core, const struct ledger_op *op, uint64_t seq_max,
                      struct movement *ret_movement)
{
    struct movement *m = ret_movement;

    m->op = op;
    m->asset = NULL;
    m->hold = NONE;
    m->has_ref = false; /* and ref is not read */
    memset(&m->link, 0, sizeof(m->link));
    m->asset_number = op->asset_name.size > 0 ? asset_find(core, op->asset_name) : op->asset;
    if (m->asset_number > core->assets_count)
        m->asset_number = 0;
    if (m->asset_number != 0)
        m->asset = &core->assets[m->asset_number - 1];
    set_side(&m->debit, &op->debit, "", op->debit_name);
    set_side(&m->credit, &op->credit, "", op->credit_name);
    if (op->kind == LEDGER_ANCHOR) {
        m->link = ledger_anchor_link(op->stream, op->ref);
        return true;
    }
    if (op->kind == LEDGER_CAPTURE || op->kind == LEDGER_RELEASE)
        return resolve_hold(core, op, m) && m->asset != NULL;
    if (op->kind == LEDGER_REVERSE)
        return resolve_reverse(core, op, seq_max, m) && m->asset != NULL;
    if (op->kind == LEDGER_HOLD && op->credit_name.size > 0)
        set_side(&m->credit, &op->credit, "sys/hold/", op->credit_name);
    if (m->asset == NULL)
        return false;
    if (op->kind == LEDGER_MINT)
        set_system_side(&m->debit, &m->asset->mint, "sys/mint/", m->asset);
    if (op->kind == LEDGER_BURN)
        set_system_side(&m->credit, &m->asset->burn, "sys/burn/", m->asset);
    if (op->kind == LEDGER_CREDIT)
        set_system_side(&m->debit, &m->asset->clearing, "sys/clearing/", m->asset);
    if (op->kind == LEDGER_DEBIT)
        set_system_side(&m->credit, &m->asset->clearing, "sys/clearing/", m->asset);
    return true;
}

static void locate(const struct ledger_core *core, struct side *side, uint32_t asset)
{
    side->account = account_find(core, &side->id);
    if (side->account != NONE) {
        side->row = row_find(core, side->account, asset);
        side->class = account_class(&core->accounts[side->account]);
    } else if (side->prefix[0] != '\0') {
        side->class = name_class(ron_slice_text(side->prefix));
    } else {
        side->class = name_class(side->name);
    }
}

void movement_locate(const struct ledger_core *core, struct movement *movement)
{
    locate(core, &movement->debit, movement->asset_number);
    locate(core, &movement->credit, movement->asset_number);
}
