/*
 * body_terms.c - the small bodies: assets, limits, abandoned runs. See body.h.
 */
#include "ledger/body_impl.h"

struct asset_body {
    uint64_t present;
    struct ron_slice asset;
    uint32_t decimals;
    struct ron_u128 max_supply;
};
static const struct ron_json_field asset_fields[] = {
    BODY_TEXT(struct asset_body, "asset", asset, 0),
    RON_JSON_FIELD_U32(struct asset_body, decimals, 0, LEDGER_DECIMALS_MAX),
    RON_JSON_FIELD_AMOUNT(struct asset_body, max_supply, 0),
};
static const struct ron_json_dto asset_dto = RON_JSON_DTO(struct asset_body, asset_fields);

enum ron_err ledger_read_asset(struct body_scratch *scratch, struct ron_slice text,
                               struct ledger_asset_terms *ret_terms, struct ron_errinfo *reterr)
{
    struct asset_body body;
    enum ron_err err = ron_json_dto_read(&asset_dto, text, &scratch->arena, &body, reterr);

    if (err == RON_ERR_OK)
        *ret_terms = (struct ledger_asset_terms){body.asset, body.decimals, body.max_supply};
    return err;
}

struct limits_body {
    uint64_t present;
    struct ron_slice account, asset;
    struct ron_u128 minimum, maximum, credit_line, daily;
    bool frozen;
};
enum {
    LIMITS_ACCOUNT,
    LIMITS_ASSET,
    LIMITS_MINIMUM,
    LIMITS_MAXIMUM,
    LIMITS_CREDIT_LINE,
    LIMITS_DAILY,
    LIMITS_FROZEN,
};
static const struct ron_json_field limits_fields[] = {
    [LIMITS_ACCOUNT] = BODY_TEXT(struct limits_body, "account", account, 0),
    [LIMITS_ASSET] = BODY_TEXT(struct limits_body, "asset", asset, RON_JSON_OPTIONAL),
    [LIMITS_MINIMUM] = RON_JSON_FIELD_AMOUNT(struct limits_body, minimum, RON_JSON_OPTIONAL),
    [LIMITS_MAXIMUM] = RON_JSON_FIELD_AMOUNT(struct limits_body, maximum, RON_JSON_OPTIONAL),
    [LIMITS_CREDIT_LINE] = RON_JSON_FIELD_AMOUNT(struct limits_body, credit_line,
                                                 RON_JSON_OPTIONAL),
    [LIMITS_DAILY] = RON_JSON_FIELD_AMOUNT(struct limits_body, daily, RON_JSON_OPTIONAL),
    [LIMITS_FROZEN] = RON_JSON_FIELD_BOOL(struct limits_body, frozen, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto limits_dto = RON_JSON_DTO(struct limits_body, limits_fields);

enum ron_err ledger_read_limits(struct body_scratch *scratch, struct ron_slice text,
                                struct ledger_limit_terms *ret_terms, struct ron_errinfo *reterr)
{
    struct limits_body body;
    enum ron_err err = ron_json_dto_read(&limits_dto, text, &scratch->arena, &body, reterr);

    if (err == RON_ERR_OK)
        *ret_terms = (struct ledger_limit_terms){
            .account = body.account,
            .asset = body.asset,
            .has_minimum = ron_json_has(body.present, LIMITS_MINIMUM),
            .has_maximum = ron_json_has(body.present, LIMITS_MAXIMUM),
            .has_credit_line = ron_json_has(body.present, LIMITS_CREDIT_LINE),
            .has_daily = ron_json_has(body.present, LIMITS_DAILY),
            .has_frozen = ron_json_has(body.present, LIMITS_FROZEN),
            .frozen = body.frozen,
            .minimum = body.minimum,
            .maximum = body.maximum,
            .credit_line = body.credit_line,
            .daily = body.daily,
        };
    return err;
}

struct abandon_body {
    uint64_t present;
    struct ron_slice epoch_id, run_key;
};
static const struct ron_json_field abandon_fields[] = {
    BODY_TEXT(struct abandon_body, "epoch_id", epoch_id, 0),
    BODY_TEXT(struct abandon_body, "run_key", run_key, 0),
};
static const struct ron_json_dto abandon_dto = RON_JSON_DTO(struct abandon_body, abandon_fields);

enum ron_err ledger_read_abandon(struct body_scratch *scratch, struct ron_slice text,
                                 struct ledger_abandon_terms *ret_terms, struct ron_errinfo *reterr)
{
    struct abandon_body body;
    enum ron_err err = ron_json_dto_read(&abandon_dto, text, &scratch->arena, &body, reterr);

    if (err == RON_ERR_OK)
        *ret_terms = (struct ledger_abandon_terms){body.epoch_id, body.run_key};
    return err;
}
