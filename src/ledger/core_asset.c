/*
 * core_asset.c - assets by name, and the command that registers one.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core_apply.h"

static uint32_t name_hash(struct ron_slice name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ name.data[i]) * 16777619u;
    return hash;
}

static struct ron_slice name_of(const struct asset *asset)
{
    return ron_slice_of(asset->name, asset->name_size);
}

uint32_t asset_hash(const struct asset *asset)
{
    return name_hash(name_of(asset));
}

uint32_t asset_find(const struct ledger_core *core, struct ron_slice name)
{
    const uint32_t hash = name_hash(name);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->asset_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (ron_slice_equal(name_of(&core->assets[place]), name))
            return place + 1;
    return 0;
}

bool ledger_core_find_asset(const struct ledger_core *core, struct ron_slice name,
                            uint32_t *ret_number)
{
    uint32_t number = asset_find(core, name);

    if (number == 0)
        return false;
    *ret_number = number;
    return true;
}

void asset_add(struct ledger_core *core, const struct ledger_asset_terms *terms, uint64_t batch)
{
    uint32_t place = core->assets_count++;
    struct asset *asset = &core->assets[place];

    RON_ASSERT(place < core->capacity.assets_max);
    RON_ASSERT(terms->name.size > 0);
    RON_ASSERT(terms->name.size <= sizeof(asset->name));
    RON_ASSERT(terms->decimals <= LEDGER_DECIMALS_MAX);
    RON_ASSERT(!ron_u128_is_zero(terms->max_supply));
    *asset = (struct asset){
        .max_supply = terms->max_supply,
        .mint = ledger_account_id("sys/mint/", terms->name),
        .burn = ledger_account_id("sys/burn/", terms->name),
        .clearing = ledger_account_id("sys/clearing/", terms->name),
        .batch = batch,
        .decimals = terms->decimals,
        .name_size = (uint8_t)terms->name.size,
    };
    memcpy(asset->name, terms->name.data, terms->name.size);
    ledger_index_add(&core->asset_index, asset_hash(asset), place);
}

/* The terms as RFC 8785 text; names and numbers need no escapes. */
static struct ron_slice terms_text(const struct ledger_asset_terms *terms, char *text, size_t size)
{
    char supply[RON_DECIMAL_U128_SIZE];
    int written;

    (void)ron_decimal_print_u128(terms->max_supply, supply);
    written = snprintf(text, size, "{\"asset\":\"%.*s\",\"decimals\":%u,\"max_supply\":\"%s\"}",
                       RON_SLICE_FMT(terms->name), terms->decimals, supply);
    RON_ASSERT(written > 0);
    RON_ASSERT((size_t)written < size);
    return ron_slice_of(text, (size_t)written);
}

enum ron_err apply_asset(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_asset_terms *terms = &a->command->asset;
    uint32_t number = asset_find(a->core, terms->name);
    struct ledger_op op = {.kind = LEDGER_ASSET};
    char id_text[LEDGER_ID_TEXT_SIZE_MAX];
    char text[160];
    enum ron_err err;
    int written;

    if (number != 0) {
        const struct asset *asset = &a->core->assets[number - 1];

        if (asset->batch == 0)
            return ron_fail(a->reterr, RON_ERR_CONFLICT, "the asset is there from the start");
        if (asset->decimals != terms->decimals ||
            ron_u128_compare(asset->max_supply, terms->max_supply) != 0)
            return ron_fail(a->reterr, RON_ERR_CONFLICT, "the asset exists with other terms");
        ret_result->duplicate = true;
        result_of_batch(a->core, asset->batch, ret_result);
        return RON_ERR_OK;
    }
    if (a->core->assets_count == a->core->capacity.assets_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u assets are taken",
                        a->core->capacity.assets_max);
    written = snprintf(id_text, sizeof(id_text), "asset/%.*s", RON_SLICE_FMT(terms->name));
    RON_ASSERT(written > 0);
    op.id_text = ron_slice_of(id_text, (size_t)written);
    op.id = ledger_entry_id(a->command->stamp.tenant, op.id_text);
    err = ids_pass_own(a, &op, 1, 1);
    if (err != RON_ERR_OK)
        return err;
    asset_add(a->core, terms, a->batch->number);
    err = apply_record(a, &op, a->core->assets_count, terms_text(terms, text, sizeof(text)));
    ret_result->applied = err == RON_ERR_OK;
    return err;
}
