/*
 * core_oap.c - the binary ingest body. See core_oap.h.
 */
#include "ledger/core_oap.h"

#include "ledger/core_id_text.h"

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

/* All of the op but its id. What an entry does not say is zero already. */
static void fill_op(struct ron_u128 tenant, const uint8_t *at, struct ledger_bare_op *op)
{
    char digits[LEDGER_ID_DIGITS + 1];

    op->debit = load_id(at + 16);
    op->credit = load_id(at + 32);
    op->amount = ron_u128_load_le(at + 48);
    op->nonce = ron_load_le64(at + 80);
    op->asset = ron_load_le32(at + 88);
    op->kind = ron_load_le16(at + 92);
    /* Who applies it has the op near, and not the body, which is another processor's. */
    memcpy(op->id_digits, at, LEDGER_ID_SIZE);
    op->id_text = ron_slice_of(op->id_digits, 0);
    if (op->kind == LEDGER_REVERSE)
        op->other = ledger_entry_id(tenant, ledger_id_text_of(ron_slice_of(at + 64, 0), digits));
    op->has_to = op->kind == LEDGER_CAPTURE && !ledger_id_is_zero(&op->credit);
}

/* NULL or what is wrong. */
static const char *check_entry(const uint8_t *at, const struct ledger_bare_op *op)
{
    const unsigned has = op->kind < RON_ARRAY_COUNT(members) ? members[op->kind] : 0;
    const struct ledger_id link = load_id(at + 64);

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

enum ron_err ledger_oap_head(struct ron_slice bytes, struct ledger_oap_body *ret_body,
                             struct ron_errinfo *reterr)
{
    struct ledger_oap_body body;

    if (bytes.size < 6 || ron_load_le16(bytes.data) > bytes.size - 6)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a body of %zu bytes", bytes.size);
    body.key = ron_slice_of(bytes.data + 2, ron_load_le16(bytes.data));
    if (body.key.size > 0 && !ledger_is_key(body.key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "key is not 1..128 of [A-Za-z0-9_:.-]");
    body.count = ron_load_le32(body.key.data + body.key.size);
    body.entries = body.key.data + body.key.size + 4;
    if (body.count > RON_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a batch of %u entries, at most %d", body.count,
                        RON_BATCH_ENTRIES_MAX);
    if (body.count == 0 ||
        bytes.size != 6 + body.key.size + (size_t)body.count * RON_WIRE_ENTRY_SIZE)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%u entries in %zu bytes", body.count,
                        bytes.size);
    *ret_body = body;
    return RON_ERR_OK;
}

/* The ids of a group of ops. */
static void make_ids(struct ledger_id_maker *maker, struct ledger_bare_op *ops, uint32_t count)
{
    struct ron_slice texts[LEDGER_ID_GROUP];
    struct ledger_id ids[LEDGER_ID_GROUP];

    for (uint32_t i = 0; i < count; i++)
        texts[i] = ops[i].id_text;
    ledger_id_maker_run(maker, texts, count, ids);
    for (uint32_t i = 0; i < count; i++)
        ops[i].id = ids[i];
}

enum ron_err ledger_oap_decode(struct ron_u128 tenant, const struct ledger_oap_body *body,
                               struct ledger_bare_op *ops, struct ledger_oap_sum *ret_sum,
                               uint32_t *ret_index, struct ron_errinfo *reterr)
{
    struct ledger_oap_sum sum = {.kinds = 0};
    struct ledger_id_maker maker;

    ledger_id_maker_init(&maker, tenant);
    for (uint32_t first = 0; first < body->count; first += LEDGER_ID_GROUP) {
        const uint32_t left = body->count - first;
        const uint32_t count = left < LEDGER_ID_GROUP ? left : LEDGER_ID_GROUP;

        /* Several ops at a time: clearing one costs as much as two. */
        memset(&ops[first], 0, count * sizeof(ops[0]));
        for (uint32_t i = first; i < first + count; i++) {
            const uint8_t *at = body->entries + (size_t)i * RON_WIRE_ENTRY_SIZE;
            const char *wrong;

            fill_op(tenant, at, &ops[i]);
            wrong = check_entry(at, &ops[i]);
            if (wrong != NULL) {
                *ret_index = i;
                return ron_fail(reterr, RON_ERR_MALFORMED, "entry %u: %s", i, wrong);
            }
            sum.kinds |= 1u << ops[i].kind;
            if (ron_u128_compare(ops[i].amount, sum.amount_max) > 0)
                sum.amount_max = ops[i].amount;
        }
        make_ids(&maker, &ops[first], count);
    }
    *ret_sum = sum;
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
