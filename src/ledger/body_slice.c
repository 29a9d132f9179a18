/*
 * body_slice.c - PUT /slices/{tenant}/{dimension}/{seq}. See body.h.
 *
 * A slice's digest is that of its bytes without the last member, which is the digest itself: so
 * that member must stand last and without white space, and the bytes need not be written again to
 * be checked.
 */
#include "ledger/body_impl.h"

struct slice_id {
    uint64_t present;
    struct ron_u128 tenant;
    struct ron_slice dimension;
    uint64_t seq;
};
static const struct ron_json_field id_fields[] = {
    RON_JSON_FIELD_U128(struct slice_id, tenant, 0),
    BODY_TEXT(struct slice_id, "dimension", dimension, 0),
    RON_JSON_FIELD_U64(struct slice_id, seq, 0, UINT64_MAX),
};
static const struct ron_json_dto id_dto = RON_JSON_DTO(struct slice_id, id_fields);

struct slice_meta {
    uint64_t present;
    uint32_t version;
    uint64_t window_start_ms, window_end_ms, sealed_at_ms;
    struct ron_slice prev_b3;
    bool amnesia;
};
enum { META_PREV_B3 = 4 };
static const struct ron_json_field meta_fields[] = {
    RON_JSON_FIELD_U32(struct slice_meta, version, 0, 1),
    RON_JSON_FIELD_U64(struct slice_meta, window_start_ms, 0, UINT64_MAX),
    RON_JSON_FIELD_U64(struct slice_meta, window_end_ms, 0, UINT64_MAX),
    RON_JSON_FIELD_U64(struct slice_meta, sealed_at_ms, 0, UINT64_MAX),
    [META_PREV_B3] = BODY_TEXT(struct slice_meta, "prev_b3", prev_b3,
                               RON_JSON_OPTIONAL | RON_JSON_NULLABLE),
    RON_JSON_FIELD_BOOL(struct slice_meta, amnesia, 0),
};
static const struct ron_json_dto meta_dto = RON_JSON_DTO(struct slice_meta, meta_fields);

struct shed {
    uint64_t present;
    struct slice_id id;
    struct ron_slice digest, prev_b3, reason;
    uint32_t rows;
    struct ron_u128 sum;
};
enum { SHED_PREV_B3 = 2 };
static const struct ron_json_field shed_fields[] = {
    RON_JSON_FIELD_OBJECT(struct shed, id, struct slice_id, 0, &id_dto),
    BODY_TEXT(struct shed, "digest", digest, 0),
    [SHED_PREV_B3] = BODY_TEXT(struct shed, "prev_b3", prev_b3,
                               RON_JSON_OPTIONAL | RON_JSON_NULLABLE),
    RON_JSON_FIELD_U32(struct shed, rows, 0, UINT32_MAX),
    RON_JSON_FIELD_AMOUNT(struct shed, sum, RON_JSON_ZERO),
    RON_JSON_FIELD_STRING(struct shed, reason, 0, 1, LEDGER_REASON_SIZE_MAX, NULL),
};
static const struct ron_json_dto shed_dto = RON_JSON_DTO(struct shed, shed_fields);

struct slice_body {
    uint64_t present;
    struct shed shed;
    struct slice_id id;
    struct slice_meta meta;
    struct ron_slice rows, digest;
};
enum { SLICE_SHED, SLICE_ID, SLICE_META, SLICE_ROWS, SLICE_DIGEST };
static const struct ron_json_field slice_fields[] = {
    [SLICE_SHED] = RON_JSON_FIELD_OBJECT(struct slice_body, shed, struct shed, RON_JSON_OPTIONAL,
                                         &shed_dto),
    [SLICE_ID] = RON_JSON_FIELD_OBJECT(struct slice_body, id, struct slice_id, RON_JSON_OPTIONAL,
                                       &id_dto),
    [SLICE_META] = RON_JSON_FIELD_OBJECT(struct slice_body, meta, struct slice_meta,
                                         RON_JSON_OPTIONAL, &meta_dto),
    [SLICE_ROWS] = RON_JSON_FIELD_RAW(struct slice_body, rows, RON_JSON_OPTIONAL,
                                      LEDGER_SLICE_ROWS_MAX),
    [SLICE_DIGEST] = BODY_TEXT(struct slice_body, "digest", digest, RON_JSON_OPTIONAL),
};
static const struct ron_json_dto slice_dto = RON_JSON_DTO(struct slice_body, slice_fields);

#define SLICE_MEMBERS (1u << SLICE_ID | 1u << SLICE_META | 1u << SLICE_ROWS | 1u << SLICE_DIGEST)

/* Zeros where there is none: the head of a stream before its first slice. */
static enum ron_err read_prev(struct ron_slice text, uint8_t ret_prev[static LEDGER_DIGEST_SIZE],
                              struct ron_errinfo *reterr)
{
    struct ron_b3 prev;
    enum ron_err err;

    memset(ret_prev, 0, LEDGER_DIGEST_SIZE);
    if (text.data == NULL)
        return RON_ERR_OK;
    err = ron_b3_parse(text, &prev, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "prev_b3");
    memcpy(ret_prev, prev.bytes, LEDGER_DIGEST_SIZE);
    return RON_ERR_OK;
}

/* BLAKE3 of the text without `,"digest":"b3:..."`, which must be how it ends. */
static enum ron_err check_digest(struct ron_slice text, const struct ron_b3 *digest,
                                 struct ron_errinfo *reterr)
{
    char end[sizeof(",\"digest\":\"\"}") + RON_B3_TEXT_SIZE] = ",\"digest\":\"";
    size_t size = strlen(end);
    struct ron_b3_ctx ctx;
    struct ron_b3 computed;

    ron_b3_print(digest, end + size);
    size += RON_B3_TEXT_SIZE - 1;
    memcpy(end + size, "\"}", 2);
    size += 2;
    if (text.size <= size || memcmp(text.data + text.size - size, end, size) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "digest is not the last member");
    ron_b3_init(&ctx);
    ron_b3_update(&ctx, text.data, text.size - size);
    ron_b3_update(&ctx, "}", 1);
    computed = ron_b3_final(&ctx);
    if (memcmp(computed.bytes, digest->bytes, RON_B3_SIZE) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "digest is not that of the slice");
    return RON_ERR_OK;
}

enum ron_err ledger_read_slice(struct body_scratch *scratch, struct ron_slice text,
                               struct ledger_slice_body *ret_body, struct ron_errinfo *reterr)
{
    struct ledger_slice_body result = {.is_shed = false};
    struct slice_body body;
    const struct slice_id *id;
    struct ron_b3 digest;
    enum ron_err err = ron_json_dto_read(&slice_dto, text, &scratch->arena, &body, reterr);

    if (err != RON_ERR_OK)
        return err;
    result.is_shed = ron_json_has(body.present, SLICE_SHED);
    if (body.present != (result.is_shed ? 1u << SLICE_SHED : SLICE_MEMBERS))
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "neither id, meta, rows and digest, nor shed alone");
    id = result.is_shed ? &body.shed.id : &body.id;
    err = ron_b3_parse(result.is_shed ? body.shed.digest : body.digest, &digest, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "digest");
    err = read_prev(result.is_shed ? body.shed.prev_b3 : body.meta.prev_b3, result.terms.prev,
                    reterr);
    if (err == RON_ERR_OK && !result.is_shed)
        err = check_digest(text, &digest, reterr);
    if (err != RON_ERR_OK)
        return err;
    result.tenant = id->tenant;
    result.terms.dimension = id->dimension;
    result.terms.seq = id->seq;
    memcpy(result.terms.digest, digest.bytes, LEDGER_DIGEST_SIZE);
    *ret_body = result;
    return RON_ERR_OK;
}
