/*
 * core_shape.c - grammar of commands and entries, and the ids they imply. See core_command.h.
 *
 * Members belong to kinds by one table: a member that a kind does not have is refused, one that it
 * must have is asked for.
 */
#include "ledger/core_command.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/rfc3339.h"

/* What a character may be part of. */
#define OF_ACCOUNT 0x1u
#define OF_ID      0x2u
#define OF_WORD    0x4u
#define OF_ALL     (OF_ACCOUNT | OF_ID | OF_WORD)

static const uint8_t parts[256] = {
    ['0' ... '9'] = OF_ALL, ['A' ... 'Z'] = OF_ALL, ['a' ... 'z'] = OF_ALL, [':'] = OF_ALL,
    ['_'] = OF_ALL,         ['-'] = OF_ALL,         ['/'] = OF_ACCOUNT,     ['.'] = OF_ID,
};

/* 1..size_max bytes, all of which may be part of this. */
static bool is_text(struct ron_slice text, size_t size_max, uint8_t part)
{
    uint8_t common = part;

    if (text.size == 0 || text.size > size_max)
        return false;
    for (size_t i = 0; i < text.size; i++)
        common &= parts[text.data[i]];
    return common != 0;
}

bool ledger_is_account(struct ron_slice text)
{
    return is_text(text, RON_ACCOUNT_NAME_SIZE_MAX, OF_ACCOUNT);
}

bool ledger_is_asset(struct ron_slice text)
{
    if (text.size == 0 || text.size > RON_ASSET_NAME_SIZE_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool later = (c >= '0' && c <= '9') || c == '_' || c == '-';

        if (!(c >= 'a' && c <= 'z') && !(i > 0 && later))
            return false;
    }
    return true;
}

bool ledger_is_key(struct ron_slice text)
{
    return is_text(text, RON_IDEM_KEY_SIZE_MAX, OF_ID);
}

bool ledger_is_id(struct ron_slice text)
{
    return is_text(text, RON_ENTRY_ID_SIZE_MAX, OF_ID);
}

static bool is_word(struct ron_slice text, size_t size_max)
{
    return is_text(text, size_max, OF_WORD);
}

bool ledger_is_hold_id(struct ron_slice text)
{
    return is_word(text, LEDGER_HOLD_ID_SIZE_MAX);
}

static const char *const caller_names[] = {
#define X(name, text) text,
    LEDGER_CALLER_MAP(X)
#undef X
};

const char *ledger_caller_name(enum ledger_caller caller)
{
    RON_ASSERT(caller < LEDGER_CALLER__MAX);
    return caller_names[caller];
}

bool ledger_caller_find(struct ron_slice name, enum ledger_caller *ret_caller)
{
    for (unsigned i = 0; i < LEDGER_CALLER__MAX; i++)
        if (ron_slice_equal(name, ron_slice_text(caller_names[i]))) {
            *ret_caller = (enum ledger_caller)i;
            return true;
        }
    return false;
}

bool ledger_cover_account(const struct ledger_cover *cover, struct ron_slice name)
{
    const struct ron_slice bound = cover->account;

    if (!cover->accounts)
        return true;
    if (cover->account_glob ? name.size < bound.size : name.size != bound.size)
        return false;
    return bound.size == 0 || memcmp(name.data, bound.data, bound.size) == 0;
}

enum ron_err ledger_shape_digest(struct ron_slice text, uint8_t ret_digest[static 32],
                                 bool *ret_sha256, struct ron_errinfo *reterr)
{
    const struct ron_slice b3 = RON_SLICE("b3:");
    const struct ron_slice sha256 = RON_SLICE("sha256:");
    const bool is_sha256 = text.size == sha256.size + 64 &&
                           memcmp(text.data, sha256.data, sha256.size) == 0;
    struct ron_slice digits = {NULL, 0};
    uint8_t digest[LEDGER_DIGEST_SIZE];
    size_t size;
    enum ron_err err;

    if (is_sha256)
        digits = ron_slice_of(text.data + sha256.size, 64);
    else if (text.size == b3.size + 64 && memcmp(text.data, b3.data, b3.size) == 0)
        digits = ron_slice_of(text.data + b3.size, 64);
    else
        return ron_fail(reterr, RON_ERR_MALFORMED, "digest is not b3: or sha256: and 64 digits");
    err = ron_hex_decode(digits, digest, sizeof(digest), &size, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "digest");
    RON_ASSERT(size == sizeof(digest));
    memcpy(ret_digest, digest, sizeof(digest));
    *ret_sha256 = is_sha256;
    return RON_ERR_OK;
}

#define HAS_FROM    0x01u
#define HAS_TO      0x02u
#define HAS_ACCOUNT 0x04u
#define HAS_HOLD    0x08u /* hold_id */
#define HAS_TERMS   0x10u /* payee, expires_at */
#define HAS_REF     0x20u
#define HAS_STREAM  0x40u /* stream, digest */
#define HAS_MONEY   0x80u /* asset, amount */
#define HAS_NONCE   0x100u

/* What a kind must have, and may have on top. */
static const struct {
    uint16_t must;
    uint16_t may;
} members[] = {
    [LEDGER_MINT] = {HAS_TO | HAS_MONEY, 0},
    [LEDGER_BURN] = {HAS_FROM | HAS_MONEY, HAS_NONCE},
    [LEDGER_TRANSFER] = {HAS_FROM | HAS_TO | HAS_MONEY, HAS_NONCE},
    [LEDGER_HOLD] = {HAS_FROM | HAS_HOLD | HAS_TERMS | HAS_MONEY, HAS_NONCE},
    [LEDGER_CAPTURE] = {HAS_HOLD | HAS_MONEY, HAS_TO},
    [LEDGER_RELEASE] = {HAS_HOLD | HAS_MONEY, 0},
    [LEDGER_REVERSE] = {HAS_REF | HAS_MONEY, 0},
    [LEDGER_CREDIT] = {HAS_ACCOUNT | HAS_MONEY, 0},
    [LEDGER_DEBIT] = {HAS_ACCOUNT | HAS_MONEY, HAS_NONCE},
    [LEDGER_ANCHOR] = {HAS_STREAM, HAS_REF},
};

static unsigned members_present(const struct ledger_wire_entry *wire)
{
    unsigned present = 0;

    present |= wire->from.data != NULL ? HAS_FROM : 0;
    present |= wire->to.data != NULL ? HAS_TO : 0;
    present |= wire->account.data != NULL ? HAS_ACCOUNT : 0;
    present |= wire->hold_id.data != NULL ? HAS_HOLD : 0;
    present |= wire->payee.data != NULL || wire->expires_at.data != NULL ? HAS_TERMS : 0;
    present |= wire->ref.data != NULL ? HAS_REF : 0;
    present |= wire->stream.data != NULL || wire->digest.data != NULL ? HAS_STREAM : 0;
    present |= wire->asset.data != NULL || wire->amount.data != NULL ? HAS_MONEY : 0;
    present |= wire->has_nonce ? HAS_NONCE : 0;
    return present;
}

static enum ron_err shape_account(const char *member, struct ron_slice name, struct ledger_id *id,
                                  struct ron_slice *ret_name, struct ron_errinfo *reterr)
{
    if (!ledger_is_account(name))
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s is not an account name", member);
    *id = ledger_account_id("", name);
    *ret_name = name;
    return RON_ERR_OK;
}

static enum ron_err shape_money(const struct ledger_wire_entry *wire, struct ledger_op *op,
                                struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (!ledger_is_asset(wire->asset))
        return ron_fail(reterr, RON_ERR_MALFORMED, "asset is not an asset name");
    op->asset_name = wire->asset;
    err = ron_decimal_parse_u128(wire->amount, &op->amount, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "amount");
    if (ron_u128_is_zero(op->amount))
        return ron_fail(reterr, RON_ERR_MALFORMED, "amount is zero");
    return RON_ERR_OK;
}

static enum ron_err shape_terms(const struct ledger_wire_entry *wire, struct ledger_op *op,
                                struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (!ron_slice_equal(wire->payee, RON_SLICE("*"))) {
        err = shape_account("payee", wire->payee, &op->other, &op->payee_name, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    err = ron_rfc3339_parse(wire->expires_at, &op->expires_ms, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "expires_at");
    return RON_ERR_OK;
}

static enum ron_err shape_hold(const struct ledger_wire_entry *wire, struct ledger_op *op,
                               struct ron_errinfo *reterr)
{
    struct ledger_id hold;

    if (!ledger_is_hold_id(wire->hold_id))
        return ron_fail(reterr, RON_ERR_MALFORMED, "hold_id is not 1..64 of [A-Za-z0-9_:-]");
    hold = ledger_account_id("sys/hold/", wire->hold_id);
    if (op->kind == LEDGER_HOLD) {
        op->credit = hold;
        op->credit_name = wire->hold_id;
    } else {
        op->debit = hold;
        op->debit_name = wire->hold_id;
    }
    return RON_ERR_OK;
}

static enum ron_err shape_anchor(const struct ledger_wire_entry *wire, struct ledger_op *op,
                                 struct ron_errinfo *reterr)
{
    uint8_t digest[LEDGER_DIGEST_SIZE];
    bool is_sha256;
    enum ron_err err;

    if (!ledger_is_account(wire->stream))
        return ron_fail(reterr, RON_ERR_MALFORMED, "stream is not 1..160 of [A-Za-z0-9:/_-]");
    if (wire->ref.data != NULL && !ledger_is_account(wire->ref))
        return ron_fail(reterr, RON_ERR_MALFORMED, "ref is not 1..160 of [A-Za-z0-9:/_-]");
    err = ledger_shape_digest(wire->digest, digest, &is_sha256, reterr);
    if (err != RON_ERR_OK)
        return err;
    op->sha256 = is_sha256;
    memcpy(op->debit.bytes, digest, LEDGER_ID_SIZE);
    memcpy(op->credit.bytes, digest + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    op->stream = wire->stream;
    op->ref = wire->ref;
    return RON_ERR_OK;
}

/* The members of the kind, which are known to be there. */
static enum ron_err shape_members(struct ron_u128 tenant, const struct ledger_wire_entry *wire,
                                  unsigned present, struct ledger_op *op,
                                  struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    if ((present & HAS_MONEY) != 0)
        err = shape_money(wire, op, reterr);
    if (err == RON_ERR_OK && (present & HAS_FROM) != 0)
        err = shape_account("from", wire->from, &op->debit, &op->debit_name, reterr);
    if (err == RON_ERR_OK && (present & HAS_TO) != 0)
        err = shape_account("to", wire->to, &op->credit, &op->credit_name, reterr);
    if (err == RON_ERR_OK && (present & HAS_ACCOUNT) != 0)
        err = op->kind == LEDGER_CREDIT
                  ? shape_account("account", wire->account, &op->credit, &op->credit_name, reterr)
                  : shape_account("account", wire->account, &op->debit, &op->debit_name, reterr);
    if (err == RON_ERR_OK && (present & HAS_HOLD) != 0)
        err = shape_hold(wire, op, reterr);
    if (err == RON_ERR_OK && (present & HAS_TERMS) != 0)
        err = shape_terms(wire, op, reterr);
    if (err == RON_ERR_OK && op->kind == LEDGER_REVERSE) {
        if (!ledger_is_id(wire->ref))
            return ron_fail(reterr, RON_ERR_MALFORMED, "ref is not an entry id");
        op->other = ledger_entry_id(tenant, wire->ref);
    }
    if (err == RON_ERR_OK && op->kind == LEDGER_ANCHOR)
        err = shape_anchor(wire, op, reterr);
    if (err == RON_ERR_OK && op->kind == LEDGER_TRANSFER && ron_slice_equal(wire->from, wire->to))
        return ron_fail(reterr, RON_ERR_MALFORMED, "from and to are the same account");
    return err;
}

enum ron_err ledger_shape_entry(struct ron_u128 tenant, const struct ledger_wire_entry *wire,
                                struct ledger_op *ret_op, struct ron_errinfo *reterr)
{
    unsigned present = members_present(wire);
    unsigned kind = ledger_kind_find(wire->kind);
    struct ledger_op op = {.kind = (uint16_t)kind};
    enum ron_err err;

    if (!ledger_is_id(wire->id))
        return ron_fail(reterr, RON_ERR_MALFORMED, "id is not 1..64 of [A-Za-z0-9_:.-]");
    if (kind == 0 || kind == LEDGER_ASSET)
        return ron_fail(reterr, RON_ERR_MALFORMED, "kind is not one of an entry");
    if ((members[kind].must & ~present) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s lacks a member", ledger_kind_name(kind));
    if ((present & ~(unsigned)(members[kind].must | members[kind].may)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s has a member of another kind",
                        ledger_kind_name(kind));
    if (wire->has_nonce && wire->nonce == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "nonce is zero");
    if (wire->memo.size > RON_MEMO_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "memo of %zu bytes", wire->memo.size);
    if (wire->meta.size > RON_META_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_MALFORMED, "meta of %zu bytes", wire->meta.size);
    err = shape_members(tenant, wire, present, &op, reterr);
    if (err != RON_ERR_OK)
        return err;
    op.id = ledger_entry_id(tenant, wire->id);
    op.id_text = wire->id;
    op.nonce = wire->has_nonce ? wire->nonce : 0;
    op.has_ts = wire->has_ts;
    op.ts_ms = wire->ts_ms;
    op.has_to = kind == LEDGER_CAPTURE && wire->to.data != NULL;
    op.memo = wire->memo;
    op.meta = wire->meta;
    *ret_op = op;
    return RON_ERR_OK;
}

struct ledger_id ledger_run_hold_id(struct ron_u128 tenant, struct ron_slice epoch_id)
{
    char prefix[sizeof("sys/hold/run/") + RON_DECIMAL_U128_SIZE + 1] = "sys/hold/run/";
    size_t size = sizeof("sys/hold/run/") - 1;

    size += ron_decimal_print_u128(tenant, prefix + size);
    prefix[size] = '/';
    prefix[size + 1] = '\0';
    return ledger_account_id(prefix, epoch_id);
}

enum ron_err ledger_shape_payout(struct ron_u128 tenant, const struct ledger_id *hold,
                                 const struct ledger_wire_entry *wire, struct ledger_op *ret_op,
                                 struct ron_errinfo *reterr)
{
    struct ledger_op op = {.kind = LEDGER_CAPTURE, .debit = *hold, .has_to = true};
    const unsigned others = members_present(wire) & ~(HAS_TO | HAS_MONEY);
    enum ron_err err;

    if (others != 0 || wire->kind.data != NULL || wire->asset.data != NULL || wire->has_ts ||
        wire->memo.data != NULL || wire->meta.data != NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a payout has id, to and amount only");
    if (!ledger_is_id(wire->id))
        return ron_fail(reterr, RON_ERR_MALFORMED, "id is not 1..64 of [A-Za-z0-9_:.-]");
    err = shape_account("to", wire->to, &op.credit, &op.credit_name, reterr);
    if (err != RON_ERR_OK)
        return err;
    err = ron_decimal_parse_u128(wire->amount, &op.amount, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "amount");
    if (ron_u128_is_zero(op.amount))
        return ron_fail(reterr, RON_ERR_MALFORMED, "amount is zero");
    op.id = ledger_entry_id(tenant, wire->id);
    op.id_text = wire->id;
    *ret_op = op;
    return RON_ERR_OK;
}

static enum ron_err shape_limits(const struct ledger_limit_terms *terms, struct ron_errinfo *reterr)
{
    const bool any = terms->has_minimum || terms->has_maximum || terms->has_credit_line ||
                     terms->has_daily;

    if (!ledger_is_account(terms->account))
        return ron_fail(reterr, RON_ERR_MALFORMED, "account is not an account name");
    if (terms->asset.data != NULL && !ledger_is_asset(terms->asset))
        return ron_fail(reterr, RON_ERR_MALFORMED, "asset is not an asset name");
    if (terms->asset.data == NULL && any)
        return ron_fail(reterr, RON_ERR_MALFORMED, "limits without asset");
    if (terms->asset.data == NULL && !terms->has_frozen)
        return ron_fail(reterr, RON_ERR_MALFORMED, "neither asset nor frozen");
    if ((terms->has_minimum && ron_u128_is_zero(terms->minimum)) ||
        (terms->has_maximum && ron_u128_is_zero(terms->maximum)) ||
        (terms->has_credit_line && ron_u128_is_zero(terms->credit_line)) ||
        (terms->has_daily && ron_u128_is_zero(terms->daily)))
        return ron_fail(reterr, RON_ERR_MALFORMED, "a limit of zero");
    if (terms->has_credit_line && terms->credit_line.v >> 127 != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "credit_line beyond 2^127 - 1");
    return RON_ERR_OK;
}

static enum ron_err shape_run_name(struct ron_slice epoch_id, struct ron_slice run_key,
                                   struct ron_errinfo *reterr)
{
    if (!is_word(epoch_id, LEDGER_EPOCH_ID_SIZE_MAX))
        return ron_fail(reterr, RON_ERR_MALFORMED, "epoch_id is not 1..64 of [A-Za-z0-9_:-]");
    if (!is_word(run_key, LEDGER_RUN_KEY_SIZE_MAX))
        return ron_fail(reterr, RON_ERR_MALFORMED, "run_key is not 1..96 of [A-Za-z0-9_:-]");
    return RON_ERR_OK;
}

static enum ron_err shape_run(const struct ledger_run_terms *terms, struct ron_errinfo *reterr)
{
    enum ron_err err = shape_run_name(terms->epoch_id, terms->run_key, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (!is_word(terms->funding_source, LEDGER_FUNDING_SIZE_MAX))
        return ron_fail(reterr, RON_ERR_MALFORMED, "funding_source is not 1..64 of its letters");
    if (!ledger_is_asset(terms->asset))
        return ron_fail(reterr, RON_ERR_MALFORMED, "asset is not an asset name");
    if (ron_u128_is_zero(terms->total))
        return ron_fail(reterr, RON_ERR_MALFORMED, "total is zero");
    if (terms->chunk >= terms->chunks)
        return ron_fail(reterr, RON_ERR_MALFORMED, "chunk %u of %u", terms->chunk, terms->chunks);
    return RON_ERR_OK;
}

static enum ron_err shape_count(uint32_t count, const char *what, struct ron_errinfo *reterr)
{
    if (count == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a batch without %s", what);
    if (count > RON_BATCH_ENTRIES_MAX)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a batch of %u %s, at most %d", count, what,
                        RON_BATCH_ENTRIES_MAX);
    return RON_ERR_OK;
}

enum ron_err ledger_shape_command(const struct ledger_command *command, struct ron_errinfo *reterr)
{
    enum ron_err err;

    if (command->key.size > 0 && !ledger_is_key(command->key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "key is not 1..128 of [A-Za-z0-9_:.-]");
    if (command->key.size > 0 && command->kind != LEDGER_COMMAND_INGEST)
        return ron_fail(reterr, RON_ERR_MALFORMED, "a key on a command that has none");
    switch (command->kind) {
    case LEDGER_COMMAND_INGEST:
    case LEDGER_COMMAND_INTENTS:
        err = shape_count(command->ops_count, "entries", reterr);
        if (err == RON_ERR_OK && command->kind == LEDGER_COMMAND_INTENTS)
            err = shape_run(&command->run, reterr);
        return err;
    case LEDGER_COMMAND_ASSET:
        if (!ledger_is_asset(command->asset.name))
            return ron_fail(reterr, RON_ERR_MALFORMED, "asset is not an asset name");
        if (command->asset.decimals > LEDGER_DECIMALS_MAX)
            return ron_fail(reterr, RON_ERR_MALFORMED, "decimals beyond %d", LEDGER_DECIMALS_MAX);
        if (ron_u128_is_zero(command->asset.max_supply))
            return ron_fail(reterr, RON_ERR_MALFORMED, "max_supply is zero");
        return RON_ERR_OK;
    case LEDGER_COMMAND_LIMITS:
        return shape_limits(&command->limits, reterr);
    case LEDGER_COMMAND_SLICE:
        if (!is_word(command->slice.dimension, LEDGER_DIMENSION_SIZE_MAX))
            return ron_fail(reterr, RON_ERR_MALFORMED, "dimension is not 1..64 of [A-Za-z0-9_:-]");
        return RON_ERR_OK;
    case LEDGER_COMMAND_EXPIRE:
        return RON_ERR_OK;
    case LEDGER_COMMAND_ABANDON:
        return shape_run_name(command->abandon.epoch_id, command->abandon.run_key, reterr);
    case LEDGER_COMMAND_OPEN:
        return shape_count(command->open.count, "names", reterr);
    default:
        return ron_fail(reterr, RON_ERR_MALFORMED, "no such command");
    }
}
