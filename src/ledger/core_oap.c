/*
 * core_oap.c - the binary ingest body. See core_command.h.
 */
#include "base/assert.h"
#include "base/hex.h"
#include "ledger/core_command.h"

#define HAS_DEBIT  0x1u
#define HAS_CREDIT 0x2u
#define HAS_LINK   0x4u
#define MAY_CREDIT 0x8u
#define MAY_NONCE  0x10u

static const uint8_t members[] = {
    [LEDGER_MINT] = HAS_CREDIT,
    [LEDGER_BURN] = HAS_DEBIT | MAY_NONCE,
    [LEDGER_TRANSFER] = HAS_DEBIT | HAS_CREDIT | MAY_NONCE,
    [LEDGER_CAPTURE] = HAS_DEBIT | MAY_CREDIT,
    [LEDGER_RELEASE] = HAS_DEBIT,
    [LEDGER_REVERSE] = HAS_LINK,
    [LEDGER_CREDIT] = HAS_CREDIT,
    [LEDGER_DEBIT] = HAS_DEBIT | MAY_NONCE,
};

static struct ledger_id load_id(const uint8_t *at)
{
    struct ledger_id id;

    memcpy(id.bytes, at, LEDGER_ID_SIZE);
    return id;
}

/* The id of the entry that the wire names by 16 bytes: their hex digits are its text. */
static struct ledger_id wire_id(struct ron_u128 tenant, const uint8_t *at, char *ret_digits)
{
    (void)ron_hex_encode(ron_slice_of(at, LEDGER_ID_SIZE), ret_digits, LEDGER_OAP_TEXT_SIZE + 1);
    return ledger_entry_id(tenant, ron_slice_of(ret_digits, LEDGER_OAP_TEXT_SIZE));
}

/* NULL or what is wrong. */
static const char *decode_entry(struct ron_u128 tenant, const uint8_t *at, struct ledger_op *op)
{
    char digits[LEDGER_OAP_TEXT_SIZE + 1];
    const unsigned kind = ron_load_le16(at + 92);
    const unsigned has = kind < RON_ARRAY_COUNT(members) ? members[kind] : 0;
    struct ledger_id link = load_id(at + 64);

    *op = (struct ledger_op){
        .debit = load_id(at + 16),
        .credit = load_id(at + 32),
        .amount = ron_u128_load_le(at + 48),
        .nonce = ron_load_le64(at + 80),
        .asset = ron_load_le32(at + 88),
        .kind = (uint16_t)kind,
    };
    if (kind == LEDGER_REVERSE)
        op->other = wire_id(tenant, at + 64, digits);
    op->has_to = kind == LEDGER_CAPTURE && !ledger_id_is_zero(&op->credit);
    if (has == 0)
        return "kind";
    if (ron_load_le16(at + 94) != 0)
        return "flags";
    if (ron_u128_is_zero(op->amount) || op->asset == 0)
        return "amount or asset";
    if (ledger_id_is_zero(&op->debit) == ((has & HAS_DEBIT) != 0))
        return "debit";
    if ((has & MAY_CREDIT) == 0 && ledger_id_is_zero(&op->credit) == ((has & HAS_CREDIT) != 0))
        return "credit";
    if (ledger_id_is_zero(&link) == ((has & HAS_LINK) != 0))
        return "link";
    if (op->nonce != 0 && (has & MAY_NONCE) == 0)
        return "nonce";
    if (ledger_id_equal(&op->debit, &op->credit) && (has & HAS_DEBIT) != 0)
        return "debit and credit are one";
    return NULL;
}

enum ron_err ledger_oap_decode(struct ron_u128 tenant, struct ron_slice bytes,
                               struct ledger_op *ops, uint8_t *texts, struct ron_slice *ret_key,
                               uint32_t *ret_count, uint32_t *ret_index, struct ron_errinfo *reterr)
{
    struct ron_slice key;
    const uint8_t *at;
    uint32_t count;

    *ret_index = UINT32_MAX;
    if (bytes.size < 6 || ron_load_le16(bytes.data) > bytes.size - 6)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a body of %zu bytes", bytes.size);
    key = ron_slice_of(bytes.data + 2, ron_load_le16(bytes.data));
    if (key.size > 0 && !ledger_is_key(key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "key is not 1..128 of [A-Za-z0-9_:.-]");
    at = key.data + key.size;
    count = ron_load_le32(at);
    at += 4;
    if (count > RON_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a batch of %u entries, at most %d", count,
                        RON_BATCH_ENTRIES_MAX);
    if (count == 0 || bytes.size != 6 + key.size + (size_t)count * RON_WIRE_ENTRY_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%u entries in %zu bytes", count, bytes.size);
    for (uint32_t i = 0; i < count; i++, at += RON_WIRE_ENTRY_SIZE) {
        uint8_t *text = texts + (size_t)i * LEDGER_OAP_TEXT_SIZE;
        char digits[LEDGER_OAP_TEXT_SIZE + 1];
        const char *wrong = decode_entry(tenant, at, &ops[i]);

        if (wrong != NULL) {
            *ret_index = i;
            return ron_fail(reterr, RON_ERR_MALFORMED, "entry %u: %s", i, wrong);
        }
        ops[i].id = wire_id(tenant, at, digits);
        memcpy(text, digits, LEDGER_OAP_TEXT_SIZE);
        ops[i].id_text = ron_slice_of(text, LEDGER_OAP_TEXT_SIZE);
    }
    *ret_key = key;
    *ret_count = count;
    return RON_ERR_OK;
}

enum ron_err ledger_oap_decode_names(struct ron_slice bytes, struct ron_slice *names,
                                     uint32_t *ret_count, uint32_t *ret_index,
                                     struct ron_errinfo *reterr)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
    uint32_t count = 0;

    *ret_index = UINT32_MAX;
    if (left == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a body without names");
    for (; left > 0; count++) {
        const size_t size = left < 2 ? SIZE_MAX : ron_load_le16(at);

        if (count == RON_BATCH_ENTRIES_MAX)
            return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %d names", RON_BATCH_ENTRIES_MAX);
        *ret_index = count;
        if (left < 2 || size > left - 2)
            return ron_fail(reterr, RON_ERR_MALFORMED, "name %u: cut", count);
        names[count] = ron_slice_of(at + 2, size);
        if (!ledger_is_account(names[count]))
            return ron_fail(reterr, RON_ERR_MALFORMED, "name %u: not an account name", count);
        *ret_index = UINT32_MAX;
        at += 2 + size;
        left -= 2 + size;
    }
    *ret_count = count;
    return RON_ERR_OK;
}
