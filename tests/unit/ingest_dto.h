/*
 * ingest_dto.h - the ledger's ingest body as a DTO: the example of the unit test, the benchmark and
 * the fuzz target.
 */
#ifndef RON_TESTS_INGEST_DTO_H
#define RON_TESTS_INGEST_DTO_H

#include "base/json_dto.h"

enum ingest_kind {
    INGEST_MINT,
    INGEST_BURN,
    INGEST_TRANSFER,
    INGEST_HOLD,
    INGEST_CAPTURE,
    INGEST_RELEASE,
    INGEST_REVERSE,
    INGEST_CREDIT,
    INGEST_DEBIT,
    INGEST_ANCHOR,
};

static const char *const ingest_kinds[] = {
    "Mint",    "Burn",    "Transfer", "Hold",  "Capture",
    "Release", "Reverse", "Credit",   "Debit", "Anchor",
};

struct ingest_entry {
    uint64_t present;
    struct ron_slice id;
    enum ingest_kind kind;
    struct ron_slice from;
    struct ron_slice to;
    struct ron_slice asset;
    struct ron_u128 amount;
    uint64_t nonce;
    uint64_t ts;
    struct ron_slice memo;
    struct ron_slice meta;
};

enum {
    ENTRY_ID,
    ENTRY_KIND,
    ENTRY_FROM,
    ENTRY_TO,
    ENTRY_ASSET,
    ENTRY_AMOUNT,
    ENTRY_NONCE,
    ENTRY_TS,
    ENTRY_MEMO,
    ENTRY_META,
};

struct ingest_body {
    uint64_t present;
    struct ron_json_array batch;
    struct ron_slice idem_id;
};

enum { BODY_BATCH, BODY_IDEM_ID };

/* [A-Za-z0-9:/_-] */
static inline const char *ingest_check_name(struct ron_slice text)
{
    static const bool allowed[256] = {
        ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, [':'] = true,
        ['/'] = true,         ['_'] = true,         ['-'] = true,
    };

    for (size_t i = 0; i < text.size; i++)
        if (!allowed[text.data[i]])
            return "not a name: a character outside A-Z a-z 0-9 : / _ -";
    return NULL;
}

static const struct ron_json_field ingest_entry_fields[] = {
    [ENTRY_ID] = RON_JSON_FIELD_STRING(struct ingest_entry, id, 0, 1, RON_ENTRY_ID_SIZE_MAX,
                                       ingest_check_name),
    [ENTRY_KIND] = RON_JSON_FIELD_ENUM(struct ingest_entry, kind, enum ingest_kind, 0,
                                       ingest_kinds),
    [ENTRY_FROM] = RON_JSON_FIELD_STRING(struct ingest_entry, from, RON_JSON_OPTIONAL, 1,
                                         RON_ACCOUNT_NAME_SIZE_MAX, ingest_check_name),
    [ENTRY_TO] = RON_JSON_FIELD_STRING(struct ingest_entry, to, RON_JSON_OPTIONAL, 1,
                                       RON_ACCOUNT_NAME_SIZE_MAX, ingest_check_name),
    [ENTRY_ASSET] = RON_JSON_FIELD_STRING(struct ingest_entry, asset, 0, 1, RON_ASSET_NAME_SIZE_MAX,
                                          ingest_check_name),
    [ENTRY_AMOUNT] = RON_JSON_FIELD_AMOUNT(struct ingest_entry, amount, 0),
    [ENTRY_NONCE] = RON_JSON_FIELD_U64(struct ingest_entry, nonce, RON_JSON_OPTIONAL,
                                       UINT64_MAX - 1),
    [ENTRY_TS] = RON_JSON_FIELD_U64(struct ingest_entry, ts, 0, UINT64_MAX),
    [ENTRY_MEMO] = RON_JSON_FIELD_STRING(struct ingest_entry, memo,
                                         RON_JSON_OPTIONAL | RON_JSON_NULLABLE, 0,
                                         RON_MEMO_SIZE_MAX, NULL),
    [ENTRY_META] = RON_JSON_FIELD_RAW(struct ingest_entry, meta,
                                      RON_JSON_OPTIONAL | RON_JSON_OBJECT_ONLY, RON_META_SIZE_MAX),
};
static const struct ron_json_dto ingest_entry_dto = RON_JSON_DTO(struct ingest_entry,
                                                                 ingest_entry_fields);

static const struct ron_json_field ingest_body_fields[] = {
    [BODY_BATCH] = RON_JSON_FIELD_OBJECTS(struct ingest_body, batch, 0, 1, RON_BATCH_ENTRIES_MAX,
                                          &ingest_entry_dto),
    [BODY_IDEM_ID] = RON_JSON_FIELD_STRING(struct ingest_body, idem_id, RON_JSON_OPTIONAL, 1,
                                           RON_IDEM_KEY_SIZE_MAX, NULL),
};
static const struct ron_json_dto ingest_body_dto = RON_JSON_DTO(struct ingest_body,
                                                                ingest_body_fields);

#endif
