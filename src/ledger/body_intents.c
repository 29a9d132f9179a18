/*
 * body_intents.c - POST /intents. See body.h.
 */
#include <stdio.h>

#include "ledger/body_impl.h"

enum { PAYOUT_ID, PAYOUT_TO, PAYOUT_AMOUNT };
static const struct ron_json_field payout_fields[] = {
    [PAYOUT_ID] = BODY_TEXT(struct body_item, "id", wire.id, 0),
    [PAYOUT_TO] = BODY_TEXT(struct body_item, "to", wire.to, 0),
    [PAYOUT_AMOUNT] = BODY_TEXT(struct body_item, "amount", wire.amount, 0),
};
static const struct ron_json_dto payout_dto = RON_JSON_DTO(struct body_item, payout_fields);

struct intents {
    uint64_t present;
    struct ron_slice epoch_id, run_key, commitment, funding_source, asset;
    struct ron_u128 total;
    uint32_t chunk, chunks;
    struct ron_json_array payouts;
};
#define TEXT(member) BODY_TEXT(struct intents, #member, member, 0)
static const struct ron_json_field intents_fields[] = {
    TEXT(epoch_id),
    TEXT(run_key),
    TEXT(commitment),
    TEXT(funding_source),
    TEXT(asset),
    RON_JSON_FIELD_AMOUNT(struct intents, total, 0),
    RON_JSON_FIELD_U32(struct intents, chunk, 0, UINT32_MAX),
    RON_JSON_FIELD_U32(struct intents, chunks, 0, UINT32_MAX),
    RON_JSON_FIELD_OBJECTS(struct intents, payouts, 0, 1, RON_BATCH_ENTRIES_MAX, &payout_dto),
};
static const struct ron_json_dto intents_dto = RON_JSON_DTO(struct intents, intents_fields);

static enum ron_err read_terms(const struct intents *intents, struct ledger_run_terms *ret_run,
                               struct ron_errinfo *reterr)
{
    struct ledger_command command = {
        .kind = LEDGER_COMMAND_INTENTS,
        .ops_count = intents->payouts.count,
        .run = {.epoch_id = intents->epoch_id,
                .run_key = intents->run_key,
                .funding_source = intents->funding_source,
                .asset = intents->asset,
                .total = intents->total,
                .chunk = intents->chunk,
                .chunks = intents->chunks},
    };
    struct ron_b3 commitment;
    enum ron_err err = ron_b3_parse(intents->commitment, &commitment, reterr);

    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "commitment");
    memcpy(command.run.commitment, commitment.bytes, sizeof(command.run.commitment));
    err = ledger_shape_command(&command, reterr); /* before its texts are used for ids */
    if (err == RON_ERR_OK)
        *ret_run = command.run;
    return err;
}

/* The key is made of the body: a client that sends one must mean the same. */
static enum ron_err check_key(const struct ledger_run_terms *run, struct ron_slice header_key,
                              struct ron_errinfo *reterr)
{
    char key[LEDGER_RUN_KEY_SIZE_MAX + 16];
    int size = snprintf(key, sizeof(key), "%.*s:%u", RON_SLICE_FMT(run->run_key), run->chunk);

    if (header_key.size > 0 && !ron_slice_equal(header_key, ron_slice_of(key, (size_t)size)))
        return ron_fail(reterr, RON_ERR_MALFORMED, "Idempotency-Key is not <run_key>:<chunk>");
    return RON_ERR_OK;
}

enum ron_err ledger_read_intents(struct body_scratch *scratch, struct ron_slice text,
                                 struct ron_slice header_key, struct ron_u128 tenant,
                                 struct ledger_intents_body *ret_body, uint32_t *ret_index,
                                 struct ron_errinfo *reterr)
{
    struct ledger_intents_body body = {.ops = NULL};
    struct intents intents;
    struct ledger_id hold;
    enum ron_err err = ron_json_dto_read_indexed(&intents_dto, text, &scratch->arena, &intents,
                                                 ret_index, reterr);

    if (err == RON_ERR_OK)
        err = read_terms(&intents, &body.run, reterr);
    if (err == RON_ERR_OK)
        err = check_key(&body.run, header_key, reterr);
    if (err == RON_ERR_OK)
        err = body_ops(scratch, intents.payouts.count, &body.ops, reterr);
    if (err != RON_ERR_OK)
        return err;
    hold = ledger_run_hold_id(tenant, body.run.epoch_id);
    for (; body.ops_count < intents.payouts.count; body.ops_count++) {
        const struct body_item *item = (struct body_item *)intents.payouts.items + body.ops_count;

        err = ledger_shape_payout(tenant, &hold, &item->wire, &body.ops[body.ops_count], reterr);
        if (err != RON_ERR_OK) {
            *ret_index = body.ops_count;
            return ron_wrap(reterr, err, "payouts[%u]", body.ops_count);
        }
    }
    err = body_fingerprint_intents(scratch, &body.run, intents.payouts.items, body.ops_count,
                                   &body.fingerprint, reterr);
    if (err == RON_ERR_OK)
        *ret_body = body;
    return err;
}
