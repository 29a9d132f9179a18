/*
 * core_open.c - the command `open`: make accounts known by name, so that binary entries may name
 * them by id. Nothing else changes: an account has a row, and can be debited, from its first
 * credit.
 */
#include <stdio.h>

#include "ledger/core_apply.h"

enum ron_err check_open_shape(struct apply *a)
{
    const struct ledger_open_terms *terms = &a->command->open;

    for (uint32_t i = 0; i < terms->count; i++)
        if (!ledger_is_account(terms->names[i])) {
            refusal_index(a, i);
            return ron_fail(a->reterr, RON_ERR_MALFORMED, "name %u: not an account name", i);
        }
    return RON_ERR_OK;
}

/* Under replay the ids of names to come are known. */
static void prefetch_name(const struct ledger_core *core)
{
    enum { AHEAD = 8 };
    const struct name_source *source = core->replay;

    if (source != NULL && source->next + AHEAD < source->ids_count)
        account_prefetch_slot(core, &source->ids[source->next + AHEAD]);
}

/* One name; *ret_new if it was not known. */
static enum ron_err open_name(struct apply *a, struct ron_slice name, bool *ret_new)
{
    struct ledger_core *core = a->core;
    const struct ledger_capacity *capacity = &core->capacity;
    struct ledger_id id = name_id(core, name);
    uint32_t account = account_find(core, &id);

    *ret_new = account == NONE;
    if (name_class(name) >= CLASS_MINT)
        return ron_fail(a->reterr, RON_ERR_FORBIDDEN, "a system account is the ledger's to open");
    if (is_misnamed(core, account, "", name))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "another account has this id");
    if (account != NONE)
        return RON_ERR_OK;
    if (core->accounts_count == capacity->accounts_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u accounts are taken",
                        capacity->accounts_max);
    if (name.size > capacity->names_size_max - core->names_size)
        return ron_fail(a->reterr, RON_ERR_BUSY, "no room for names");
    return know_account(a, &id, "", name, &account);
}

/* The Anchor that proves the new names: BLAKE3 over u16 size, name of each. */
static enum ron_err anchor_names(struct apply *a, const struct ron_b3 *digest)
{
    struct ledger_op op = {
        .kind = LEDGER_ANCHOR,
        .by_ledger = true,
        .stream = RON_SLICE("accounts"),
    };
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    int written = snprintf(id_text, sizeof(id_text), "accounts/%llu",
                           (unsigned long long)a->batch->number);
    enum ron_err err;

    RON_ASSERT(written > 0);
    RON_ASSERT((size_t)written < sizeof(id_text));
    op.id_text = ron_slice_of(id_text, (size_t)written);
    op.id = ledger_entry_id(a->command->stamp.tenant, op.id_text);
    memcpy(op.debit.bytes, digest->bytes, LEDGER_ID_SIZE);
    memcpy(op.credit.bytes, digest->bytes + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    err = ids_pass_own(a, &op, 1, 1);
    return err == RON_ERR_OK ? apply_op(a, &op) : err;
}

enum ron_err apply_open(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_open_terms *terms = &a->command->open;
    const uint32_t accounts_before = a->core->accounts_count;
    struct ron_b3_ctx hash;
    struct ron_b3 digest;
    enum ron_err err = RON_ERR_OK;

    ron_b3_init(&hash);
    for (uint32_t i = 0; err == RON_ERR_OK && i < terms->count; i++) {
        uint8_t size[2];
        bool is_new = false;

        prefetch_name(a->core);
        err = open_name(a, terms->names[i], &is_new);
        if (err != RON_ERR_OK) {
            refusal_index(a, i);
            return ron_wrap(a->reterr, err, "name %u", i);
        }
        ron_store_le16(size, (uint16_t)terms->names[i].size);
        ron_b3_update(&hash, size, is_new ? sizeof(size) : 0);
        ron_b3_update(&hash, terms->names[i].data, is_new ? terms->names[i].size : 0);
    }
    digest = ron_b3_final(&hash);
    if (err != RON_ERR_OK || a->core->accounts_count == accounts_before)
        return err; /* all known: nothing to do */
    err = anchor_names(a, &digest);
    ret_result->applied = err == RON_ERR_OK;
    return err;
}
