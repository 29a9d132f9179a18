/*
 * api_assets.c - assets by name and number. They are never changed and never go, so what is known
 * here is exact, and what is not is looked for in the books.
 */
#include "ledger/api_pages.h"

enum { SEQS_MAX = 64 };

bool assets_find(struct ledger_api *api, struct ron_slice name, struct api_asset *ret_asset)
{
    const uint32_t count = rt_atomic_load_u32(&api->assets_count);

    for (uint32_t i = 0; i < count; i++) {
        const struct api_asset *asset = &api->assets[i];

        if (ron_slice_equal(name, ron_slice_of(asset->name, asset->name_size))) {
            *ret_asset = *asset;
            return true;
        }
    }
    return false;
}

bool assets_at(struct ledger_api *api, uint32_t number, struct api_asset *ret_asset)
{
    const bool found = number > 0 && number <= rt_atomic_load_u32(&api->assets_count);

    if (found)
        *ret_asset = api->assets[number - 1];
    return found;
}

static uint64_t last_seq(struct ledger_api *api)
{
    return api->assets[rt_atomic_load_u32(&api->assets_count) - 1].seq;
}

/* The next one; others than the next are known already, to another reader's credit. */
static enum ron_err add(struct ledger_api *api, const struct ledger_record *record,
                        struct ron_errinfo *reterr)
{
    struct body_scratch *scratch;
    struct ledger_asset_terms terms;
    struct ledger_ext ext;
    struct api_asset asset = {.seq = record->entry.seq, .number = record->entry.asset};
    uint32_t count;
    enum ron_err err = ledger_ext_decode(record->ext, &ext, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = scratch_take(api, &scratch, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = ledger_read_asset(scratch, ext.asset_terms, &terms, reterr);
    if (err == RON_ERR_OK) {
        RON_ASSERT(terms.name.size <= sizeof(asset.name));
        asset.name_size = (uint8_t)terms.name.size;
        memcpy(asset.name, terms.name.data, terms.name.size);
        asset.decimals = terms.decimals;
        asset.max_supply = terms.max_supply;
    }
    scratch_give(api, scratch);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "terms of asset %u", asset.number);
    api_lock(api);
    count = rt_atomic_load_u32(&api->assets_count);
    if (asset.number == count + 1 && count < API_ASSETS_MAX) {
        api->assets[count] = asset;
        rt_atomic_store_u32(&api->assets_count, count + 1); /* after it: readers take no lock */
    }
    api_unlock(api);
    return RON_ERR_OK;
}

enum ron_err assets_refresh(struct ledger_api *api, struct rt_deadline deadline,
                            struct ron_errinfo *reterr)
{
    struct ledger_books *books = api->options.books;
    const struct ledger_thread thread = ledger_kind_thread(LEDGER_ASSET);
    uint64_t seqs[SEQS_MAX];
    size_t count = SEQS_MAX;
    struct ron_buf text;
    enum ron_err err = need_books(api, reterr);

    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&text, RON_BODY_SIZE_MAX);
    for (uint64_t after = last_seq(api); err == RON_ERR_OK && count == SEQS_MAX;) {
        err = ledger_books_thread(books, &thread, after, false, deadline, seqs, SEQS_MAX, &count,
                                  reterr);
        for (size_t i = 0; err == RON_ERR_OK && i < count; i++) {
            struct ledger_record record;

            ron_buf_reset(&text);
            err = ledger_books_at(books, seqs[i], deadline, &record, &text, reterr);
            if (err == RON_ERR_OK)
                err = add(api, &record, reterr);
            after = seqs[i];
        }
    }
    ron_buf_fini(&text);
    return err;
}

enum ron_err assets_need(struct ledger_api *api, struct ron_slice name, struct rt_deadline deadline,
                         struct api_asset *ret_asset, struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (assets_find(api, name, ret_asset))
        return RON_ERR_OK;
    err = assets_refresh(api, deadline, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (!assets_find(api, name, ret_asset))
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "no such asset");
    return RON_ERR_OK;
}
