/*
 * body_ingest.c - POST /ingest. See body.h.
 */
#include "base/assert.h"
#include "base/json_canon.h"
#include "ledger/body_impl.h"

/* Twice the text; the elements four times, because an array that shares the arena with decoded
 * strings moves as it grows (json_dto.h); the ops; and what canonical meta needs while it is made.
 */
#define SCRATCH_SIZE                                                        \
    ((size_t)2 * RON_BODY_SIZE_MAX +                                        \
     (size_t)RON_BATCH_ENTRIES_MAX *                                        \
         (4 * (sizeof(struct body_item) + 16) + sizeof(struct ledger_op)) + \
     (size_t)11 * LEDGER_META_TEXT_MAX + 65536)

enum ron_err body_scratch_init(struct body_scratch *scratch, struct ron_errinfo *reterr)
{
    enum ron_err err;

    *scratch = (struct body_scratch){0};
    err = ron_arena_init(&scratch->arena, SCRATCH_SIZE, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "memory to read bodies");
    ron_buf_init(&scratch->meta, RON_BODY_SIZE_MAX);
    ron_buf_init(&scratch->text, (size_t)8 * RON_BODY_SIZE_MAX);
    return RON_ERR_OK;
}

void body_scratch_fini(struct body_scratch *scratch)
{
    ron_arena_fini(&scratch->arena);
    ron_buf_fini(&scratch->meta);
    ron_buf_fini(&scratch->text);
}

void body_scratch_reset(struct body_scratch *scratch)
{
    ron_arena_reset(&scratch->arena);
    ron_buf_reset(&scratch->meta);
    ron_buf_reset(&scratch->text);
}

enum ron_err body_ops(struct body_scratch *scratch, uint32_t count, struct ledger_op **ret_ops,
                      struct ron_errinfo *reterr)
{
    struct ledger_op *ops = ron_arena_alloc(&scratch->arena, (size_t)count * sizeof(*ops));

    if (ops == NULL)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "no room for %u entries", count);
    *ret_ops = ops;
    return RON_ERR_OK;
}

#define TEXT(name, flags) BODY_TEXT(struct body_item, #name, wire.name, flags)

enum {
    ITEM_ID,
    ITEM_KIND,
    ITEM_FROM,
    ITEM_TO,
    ITEM_ASSET,
    ITEM_AMOUNT,
    ITEM_NONCE,
    ITEM_TS,
    ITEM_MEMO,
    ITEM_META,
    ITEM_ACCOUNT,
    ITEM_HOLD_ID,
    ITEM_PAYEE,
    ITEM_EXPIRES_AT,
    ITEM_REF,
    ITEM_STREAM,
    ITEM_DIGEST,
};
static const struct ron_json_field item_fields[] = {
    [ITEM_ID] = TEXT(id, 0),
    [ITEM_KIND] = TEXT(kind, 0),
    [ITEM_FROM] = TEXT(from, RON_JSON_OPTIONAL),
    [ITEM_TO] = TEXT(to, RON_JSON_OPTIONAL),
    [ITEM_ASSET] = TEXT(asset, RON_JSON_OPTIONAL),
    [ITEM_AMOUNT] = TEXT(amount, RON_JSON_OPTIONAL),
    [ITEM_NONCE] = BODY_FIELD(struct body_item, "nonce", wire.nonce, uint64_t, U64,
                              RON_JSON_OPTIONAL, .number_max = UINT64_MAX),
    [ITEM_TS] = BODY_FIELD(struct body_item, "ts", wire.ts_ms, uint64_t, U64, RON_JSON_OPTIONAL,
                           .number_max = UINT64_MAX),
    [ITEM_MEMO] = TEXT(memo, RON_JSON_OPTIONAL),
    [ITEM_META] = BODY_FIELD(struct body_item, "meta", wire.meta, struct ron_slice, RAW,
                             RON_JSON_OPTIONAL | RON_JSON_OBJECT_ONLY,
                             .size_max = LEDGER_META_TEXT_MAX),
    [ITEM_ACCOUNT] = TEXT(account, RON_JSON_OPTIONAL),
    [ITEM_HOLD_ID] = TEXT(hold_id, RON_JSON_OPTIONAL),
    [ITEM_PAYEE] = TEXT(payee, RON_JSON_OPTIONAL),
    [ITEM_EXPIRES_AT] = TEXT(expires_at, RON_JSON_OPTIONAL),
    [ITEM_REF] = TEXT(ref, RON_JSON_OPTIONAL),
    [ITEM_STREAM] = TEXT(stream, RON_JSON_OPTIONAL),
    [ITEM_DIGEST] = TEXT(digest, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto item_dto = RON_JSON_DTO(struct body_item, item_fields);

struct ingest {
    uint64_t present;
    struct ron_json_array batch;
    struct ron_slice idem_id;
};
enum { INGEST_BATCH, INGEST_IDEM_ID };
static const struct ron_json_field ingest_fields[] = {
    [INGEST_BATCH] = RON_JSON_FIELD_OBJECTS(struct ingest, batch, 0, 1, RON_BATCH_ENTRIES_MAX,
                                            &item_dto),
    [INGEST_IDEM_ID] = BODY_TEXT(struct ingest, "idem_id", idem_id, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto ingest_dto = RON_JSON_DTO(struct ingest, ingest_fields);

/* The key of the body or of the head; both only if they say the same. */
static enum ron_err join_keys(const struct ingest *ingest, struct ron_slice header_key,
                              struct ron_slice *ret_key, struct ron_errinfo *reterr)
{
    const bool given = ron_json_has(ingest->present, INGEST_IDEM_ID);
    struct ron_slice key = given ? ingest->idem_id : header_key;

    if (given && header_key.size > 0 && !ron_slice_equal(ingest->idem_id, header_key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "idem_id and Idempotency-Key differ");
    if ((given || header_key.size > 0) && !ledger_is_key(key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "idem_id is not 1..128 of [A-Za-z0-9_:.-]");
    *ret_key = key;
    return RON_ERR_OK;
}

/* Room for all meta first, so that what is made does not move. */
static enum ron_err canonical_meta(struct body_scratch *scratch, struct body_item *items,
                                   uint32_t count, uint32_t *ret_index, struct ron_errinfo *reterr)
{
    size_t size = 0;
    enum ron_err err;

    for (uint32_t i = 0; i < count; i++)
        size += items[i].wire.meta.size;
    if (size == 0)
        return RON_ERR_OK;
    err = ron_buf_reserve(&scratch->meta, size, reterr);
    for (uint32_t i = 0; err == RON_ERR_OK && i < count; i++) {
        struct ron_slice *meta = &items[i].wire.meta;
        const size_t before = scratch->meta.size;

        if (meta->data == NULL)
            continue;
        err = ron_json_canon(*meta, &scratch->arena, &scratch->meta, reterr);
        if (err != RON_ERR_OK) {
            *ret_index = i;
            return ron_wrap(reterr, err, "meta");
        }
        *meta = ron_slice_of(scratch->meta.data + before, scratch->meta.size - before);
    }
    return err;
}

static enum ron_err shape_items(struct ron_u128 tenant, struct body_item *items, uint32_t count,
                                struct ledger_op *ops, uint32_t *ret_index,
                                struct ron_errinfo *reterr)
{
    for (uint32_t i = 0; i < count; i++) {
        enum ron_err err;

        items[i].wire.has_nonce = ron_json_has(items[i].present, ITEM_NONCE);
        items[i].wire.has_ts = ron_json_has(items[i].present, ITEM_TS);
        err = ledger_shape_entry(tenant, &items[i].wire, &ops[i], reterr);
        if (err != RON_ERR_OK) {
            *ret_index = i;
            return ron_wrap(reterr, err, "batch[%u]", i);
        }
    }
    return RON_ERR_OK;
}

enum ron_err ledger_read_ingest(struct body_scratch *scratch, struct ron_slice text,
                                struct ron_slice header_key, struct ron_u128 tenant,
                                struct ledger_ingest_body *ret_body, uint32_t *ret_index,
                                struct ron_errinfo *reterr)
{
    struct ledger_ingest_body body = {.ops = NULL};
    struct body_item *items;
    struct ingest ingest;
    enum ron_err err = ron_json_dto_read_indexed(&ingest_dto, text, &scratch->arena, &ingest,
                                                 ret_index, reterr);

    if (err == RON_ERR_OK)
        err = join_keys(&ingest, header_key, &body.key, reterr);
    if (err != RON_ERR_OK)
        return err;
    items = ingest.batch.items;
    body.ops_count = ingest.batch.count;
    RON_ASSERT(body.ops_count > 0);
    err = canonical_meta(scratch, items, body.ops_count, ret_index, reterr);
    if (err == RON_ERR_OK)
        err = body_ops(scratch, body.ops_count, &body.ops, reterr);
    if (err == RON_ERR_OK)
        err = shape_items(tenant, items, body.ops_count, body.ops, ret_index, reterr);
    if (err == RON_ERR_OK && body.key.size > 0)
        err = body_fingerprint_ingest(scratch, items, body.ops_count, &body.fingerprint, reterr);
    if (err == RON_ERR_OK)
        *ret_body = body;
    return err;
}
