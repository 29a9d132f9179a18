/*
 * ledger_lines.c - see ledger_lines.h.
 */
#include "ledger_lines.h"

#include "base/hex.h"
#include "base/json_canon.h"
#include "base/json_dto.h"
#include "base/mem.h"

enum {
    L_CMD,
    L_CALLER,
    L_CAPABILITY,
    L_KEY,
    L_FINGERPRINT,
    L_ASSET,
    L_ACCOUNT,
    L_EPOCH,
    L_RUN_KEY,
    L_COMMITMENT,
    L_FUNDING,
    L_DIMENSION,
    L_DIGEST,
    L_PREV,
    L_BATCH,
    L_PAYOUTS,
    L_TENANT,
    L_SUPPLY,
    L_MINIMUM,
    L_MAXIMUM,
    L_CREDIT,
    L_DAILY,
    L_TOTAL,
    L_COMMIT,
    L_SEQ,
    L_UPTO,
    L_DECIMALS,
    L_CHUNK,
    L_CHUNKS,
    L_RESERVED,
    L_FROZEN,
    L_ON,
    L_NAMES,
};
#define STRING(s, member) \
    RON_JSON_FIELD_STRING(s, member, RON_JSON_OPTIONAL, 0, LINES_TEXT_MAX, NULL)
#define AMOUNT(s, member)  RON_JSON_FIELD_AMOUNT(s, member, RON_JSON_OPTIONAL | RON_JSON_ZERO)
#define NUMBER(s, member)  RON_JSON_FIELD_U64(s, member, RON_JSON_OPTIONAL, UINT64_MAX)
#define NUMBER4(s, member) RON_JSON_FIELD_U32(s, member, RON_JSON_OPTIONAL, UINT32_MAX)
#define BOOL(s, member)    RON_JSON_FIELD_BOOL(s, member, RON_JSON_OPTIONAL)
#define RAW(s, member)     RON_JSON_FIELD_RAW(s, member, RON_JSON_OPTIONAL, LINE_SIZE_MAX)

static const struct ron_json_field line_fields[] = {
    [L_CMD] = STRING(struct line, cmd),
    [L_CALLER] = STRING(struct line, caller),
    [L_CAPABILITY] = STRING(struct line, capability),
    [L_KEY] = STRING(struct line, key),
    [L_FINGERPRINT] = STRING(struct line, fingerprint),
    [L_ASSET] = STRING(struct line, asset),
    [L_ACCOUNT] = STRING(struct line, account),
    [L_EPOCH] = STRING(struct line, epoch_id),
    [L_RUN_KEY] = STRING(struct line, run_key),
    [L_COMMITMENT] = STRING(struct line, commitment),
    [L_FUNDING] = STRING(struct line, funding_source),
    [L_DIMENSION] = STRING(struct line, dimension),
    [L_DIGEST] = STRING(struct line, digest),
    [L_PREV] = STRING(struct line, prev),
    [L_BATCH] = RAW(struct line, batch),
    [L_PAYOUTS] = RAW(struct line, payouts),
    [L_TENANT] = AMOUNT(struct line, tenant),
    [L_SUPPLY] = AMOUNT(struct line, max_supply),
    [L_MINIMUM] = AMOUNT(struct line, minimum),
    [L_MAXIMUM] = AMOUNT(struct line, maximum),
    [L_CREDIT] = AMOUNT(struct line, credit_line),
    [L_DAILY] = AMOUNT(struct line, daily),
    [L_TOTAL] = AMOUNT(struct line, total),
    [L_COMMIT] = NUMBER(struct line, commit_ms),
    [L_SEQ] = NUMBER(struct line, seq),
    [L_UPTO] = NUMBER(struct line, upto),
    [L_DECIMALS] = NUMBER4(struct line, decimals),
    [L_CHUNK] = NUMBER4(struct line, chunk),
    [L_CHUNKS] = NUMBER4(struct line, chunks),
    [L_RESERVED] = BOOL(struct line, reserved_ok),
    [L_FROZEN] = BOOL(struct line, frozen),
    [L_ON] = BOOL(struct line, on),
    [L_NAMES] = RAW(struct line, names),
};
static const struct ron_json_dto line_dto = RON_JSON_DTO(struct line, line_fields);

struct entry_line {
    uint64_t present;
    struct ron_slice id, kind, from, to, account, hold_id, payee, expires_at, ref, stream, digest;
    struct ron_slice asset, amount, memo, meta;
    uint64_t nonce, ts;
};
enum { E_NONCE = 15, E_TS = 16 };
static const struct ron_json_field entry_fields[] = {
    STRING(struct entry_line, id),
    STRING(struct entry_line, kind),
    STRING(struct entry_line, from),
    STRING(struct entry_line, to),
    STRING(struct entry_line, account),
    STRING(struct entry_line, hold_id),
    STRING(struct entry_line, payee),
    STRING(struct entry_line, expires_at),
    STRING(struct entry_line, ref),
    STRING(struct entry_line, stream),
    STRING(struct entry_line, digest),
    STRING(struct entry_line, asset),
    STRING(struct entry_line, amount),
    STRING(struct entry_line, memo),
    RON_JSON_FIELD_RAW(struct entry_line, meta, RON_JSON_OPTIONAL | RON_JSON_OBJECT_ONLY,
                       LINES_TEXT_MAX),
    [E_NONCE] = NUMBER(struct entry_line, nonce),
    [E_TS] = NUMBER(struct entry_line, ts),
};
static const struct ron_json_dto entry_dto = RON_JSON_DTO(struct entry_line, entry_fields);

/* Members by command; the stamp is of all of them. */
#define BIT(member) (UINT64_C(1) << (member))
#define STAMP       (BIT(L_CMD) | BIT(L_COMMIT) | BIT(L_TENANT) | BIT(L_CALLER) | BIT(L_CAPABILITY))
static const struct {
    const char *name;
    uint64_t members;
} commands[] = {
    [LEDGER_COMMAND_INGEST] = {"ingest",
                               BIT(L_RESERVED) | BIT(L_KEY) | BIT(L_FINGERPRINT) | BIT(L_BATCH)},
    [LEDGER_COMMAND_ASSET] = {"asset", BIT(L_ASSET) | BIT(L_DECIMALS) | BIT(L_SUPPLY)},
    [LEDGER_COMMAND_LIMITS] = {"limits", BIT(L_ACCOUNT) | BIT(L_ASSET) | BIT(L_MINIMUM) |
                                             BIT(L_MAXIMUM) | BIT(L_CREDIT) | BIT(L_DAILY) |
                                             BIT(L_FROZEN)},
    [LEDGER_COMMAND_INTENTS] = {"intents", BIT(L_FINGERPRINT) | BIT(L_EPOCH) | BIT(L_RUN_KEY) |
                                               BIT(L_COMMITMENT) | BIT(L_FUNDING) | BIT(L_ASSET) |
                                               BIT(L_TOTAL) | BIT(L_CHUNK) | BIT(L_CHUNKS) |
                                               BIT(L_PAYOUTS)},
    [LEDGER_COMMAND_SLICE] = {"slice", BIT(L_DIMENSION) | BIT(L_SEQ) | BIT(L_DIGEST) | BIT(L_PREV)},
    [LEDGER_COMMAND_EXPIRE] = {"expire", 0},
    [LEDGER_COMMAND_ABANDON] = {"abandon", BIT(L_EPOCH) | BIT(L_RUN_KEY)},
    [LEDGER_COMMAND_OPEN] = {"open", BIT(L_NAMES)},
};

enum ron_err lines_init(struct lines *l, struct ron_errinfo *reterr)
{
    enum ron_err err = ron_arena_init(&l->arena, LINES_ARENA_SIZE, reterr);

    if (err != RON_ERR_OK)
        return err;
    ron_buf_init(&l->meta, LINES_TEXT_MAX);
    l->ops = ron_mem_alloc_array(RON_BATCH_ENTRIES_MAX, sizeof(l->ops[0]));
    if (l->ops != NULL)
        return RON_ERR_OK;
    lines_fini(l);
    return ron_fail(reterr, RON_ERR_NO_MEMORY, "room for entries");
}

void lines_fini(struct lines *l)
{
    ron_arena_fini(&l->arena);
    ron_buf_fini(&l->meta);
    l->ops = ron_mem_free(l->ops);
}

enum ron_err lines_read(struct lines *l, struct ron_slice text, struct line *ret_line,
                        struct ron_errinfo *reterr)
{
    struct line line;
    enum ledger_command_kind kind;

    ron_arena_reset(&l->arena);
    if (ron_json_dto_read(&line_dto, text, &l->arena, &line, reterr) != RON_ERR_OK)
        return RON_ERR_MALFORMED;
    kind = lines_kind(&line);
    if (kind != 0 && (line.present & ~(STAMP | commands[kind].members)) != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s has a member of another command",
                        commands[kind].name);
    *ret_line = line;
    return RON_ERR_OK;
}

enum ledger_command_kind lines_kind(const struct line *line)
{
    for (unsigned kind = LEDGER_COMMAND_INGEST; kind < RON_ARRAY_COUNT(commands); kind++)
        if (ron_slice_equal(line->cmd, ron_slice_text(commands[kind].name)))
            return (enum ledger_command_kind)kind;
    return 0;
}

static enum ron_err read_hex(struct ron_slice text, uint8_t *ret_bytes, size_t size,
                             struct ron_errinfo *reterr)
{
    size_t decoded;
    enum ron_err err = ron_hex_decode(text, ret_bytes, size, &decoded, reterr);

    if (err == RON_ERR_OK && decoded != size)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "%zu bytes of hex, not %zu", decoded, size);
    return err;
}

static enum ron_err read_stamp(const struct line *line, struct ledger_command *command,
                               struct ron_errinfo *reterr)
{
    struct ledger_stamp *stamp = &command->stamp;

    stamp->commit_ms = line->commit_ms;
    stamp->tenant = line->tenant;
    stamp->reserved_ok = line->reserved_ok;
    if (line->caller.data != NULL && !ledger_caller_find(line->caller, &stamp->caller))
        return ron_fail(reterr, RON_ERR_MALFORMED, "no such caller");
    if (ron_json_has(line->present, L_KEY) && !ledger_is_key(line->key))
        return ron_fail(reterr, RON_ERR_MALFORMED, "key");
    command->key = line->key;
    if (line->fingerprint.data != NULL) {
        enum ron_err err = read_hex(line->fingerprint, command->fingerprint.bytes, RON_B3_SIZE,
                                    reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    if (line->capability.data == NULL)
        return RON_ERR_OK;
    return read_hex(line->capability, stamp->capability, sizeof(stamp->capability), reterr);
}

static enum ron_err read_meta(struct lines *l, struct ron_slice raw, struct ron_slice *ret_meta,
                              struct ron_errinfo *reterr)
{
    enum ron_err err;

    ron_buf_reset(&l->meta);
    err = ron_json_canon(raw, &l->arena, &l->meta, reterr);
    if (err == RON_ERR_OK)
        err = ron_arena_copy(&l->arena, ron_buf_slice(&l->meta), ret_meta, reterr);
    return err == RON_ERR_TOO_LARGE ? RON_ERR_MALFORMED : err;
}

static enum ron_err read_entry(struct lines *l, const struct ledger_command *command,
                               struct ron_slice raw, const struct ledger_id *hold,
                               struct ledger_op *op, struct ron_errinfo *reterr)
{
    struct entry_line e;
    struct ledger_wire_entry wire;
    enum ron_err err = ron_json_dto_read(&entry_dto, raw, &l->arena, &e, reterr);

    if (err != RON_ERR_OK)
        return RON_ERR_MALFORMED;
    wire = (struct ledger_wire_entry){
        .id = e.id,
        .kind = e.kind,
        .from = e.from,
        .to = e.to,
        .account = e.account,
        .hold_id = e.hold_id,
        .payee = e.payee,
        .expires_at = e.expires_at,
        .ref = e.ref,
        .stream = e.stream,
        .digest = e.digest,
        .asset = e.asset,
        .amount = e.amount,
        .memo = e.memo,
        .has_nonce = ron_json_has(e.present, E_NONCE),
        .nonce = e.nonce,
        .has_ts = ron_json_has(e.present, E_TS),
        .ts_ms = e.ts,
    };
    if (hold != NULL)
        return ledger_shape_payout(command->stamp.tenant, hold, &wire, op, reterr);
    if (e.meta.data != NULL) {
        err = read_meta(l, e.meta, &wire.meta, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return ledger_shape_entry(command->stamp.tenant, &wire, op, reterr);
}

/* The elements of an array, as ops. At most one beyond the limit is read, to be refused. */
static enum ron_err read_entries(struct lines *l, struct ron_slice array,
                                 const struct ledger_id *hold, struct ledger_command *command,
                                 struct ledger_refusal *refusal, struct ron_errinfo *reterr)
{
    struct ron_slice *raws = ron_arena_alloc(&l->arena,
                                             (RON_BATCH_ENTRIES_MAX + 2) * sizeof(*raws));
    struct ron_json_reader reader;
    struct ron_json_token token;
    uint32_t count = 0;
    enum ron_err err;

    ron_json_reader_init(&reader, array, &l->arena);
    err = array.data == NULL ? RON_ERR_MALFORMED : ron_json_next(&reader, &token, reterr);
    if (err == RON_ERR_OK && token.kind != RON_JSON_ARRAY_BEGIN)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "no array");
    while (err == RON_ERR_OK && count <= RON_BATCH_ENTRIES_MAX) {
        err = ron_json_next(&reader, &token, reterr);
        if (err != RON_ERR_OK || token.kind == RON_JSON_ARRAY_END)
            break;
        err = ron_json_skip(&reader, &token, &raws[count++], reterr);
    }
    if (err != RON_ERR_OK)
        return err;
    command->ops = l->ops;
    command->ops_count = count;
    err = ledger_shape_command(command, reterr);
    for (uint32_t i = 0; err == RON_ERR_OK && i < count; i++) {
        err = read_entry(l, command, raws[i], hold, &l->ops[i], reterr);
        if (err != RON_ERR_OK) {
            refusal->present = LEDGER_DETAIL_INDEX;
            refusal->index = i;
        }
    }
    return err;
}

/* The names of `open`; what is no string is refused with its index, like a name that is none. */
static enum ron_err read_names(struct lines *l, struct ron_slice array,
                               struct ledger_command *command, struct ledger_refusal *refusal,
                               struct ron_errinfo *reterr)
{
    struct ron_slice *names = ron_arena_alloc(&l->arena,
                                              (RON_BATCH_ENTRIES_MAX + 2) * sizeof(*names));
    struct ron_json_reader reader;
    struct ron_json_token token;
    uint32_t count = 0;
    enum ron_err err;

    ron_json_reader_init(&reader, array, &l->arena);
    err = array.data == NULL ? RON_ERR_MALFORMED : ron_json_next(&reader, &token, reterr);
    if (err == RON_ERR_OK && token.kind != RON_JSON_ARRAY_BEGIN)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "no array");
    while (err == RON_ERR_OK && count <= RON_BATCH_ENTRIES_MAX) {
        err = ron_json_next(&reader, &token, reterr);
        if (err != RON_ERR_OK || token.kind == RON_JSON_ARRAY_END)
            break;
        if (token.kind != RON_JSON_STRING) {
            refusal->present = LEDGER_DETAIL_INDEX;
            refusal->index = count;
            return ron_fail(reterr, RON_ERR_MALFORMED, "name %u is no string", count);
        }
        names[count++] = token.text;
    }
    command->open = (struct ledger_open_terms){names, count};
    return err;
}

static enum ron_err read_terms(struct lines *l, const struct line *line,
                               struct ledger_command *command, struct ledger_refusal *refusal,
                               struct ron_errinfo *reterr)
{
    struct ledger_id hold;
    bool sha256 = false;
    enum ron_err err;

    switch (command->kind) {
    case LEDGER_COMMAND_INGEST:
        return read_entries(l, line->batch, NULL, command, refusal, reterr);
    case LEDGER_COMMAND_ASSET:
        command->asset = (struct ledger_asset_terms){line->asset, line->decimals, line->max_supply};
        return RON_ERR_OK;
    case LEDGER_COMMAND_LIMITS:
        command->limits = (struct ledger_limit_terms){
            .account = line->account,
            .asset = line->asset,
            .has_minimum = ron_json_has(line->present, L_MINIMUM),
            .has_maximum = ron_json_has(line->present, L_MAXIMUM),
            .has_credit_line = ron_json_has(line->present, L_CREDIT),
            .has_daily = ron_json_has(line->present, L_DAILY),
            .has_frozen = ron_json_has(line->present, L_FROZEN),
            .frozen = line->frozen,
            .minimum = line->minimum,
            .maximum = line->maximum,
            .credit_line = line->credit_line,
            .daily = line->daily,
        };
        return RON_ERR_OK;
    case LEDGER_COMMAND_INTENTS:
        command->run = (struct ledger_run_terms){
            .epoch_id = line->epoch_id,
            .run_key = line->run_key,
            .funding_source = line->funding_source,
            .asset = line->asset,
            .total = line->total,
            .chunk = line->chunk,
            .chunks = line->chunks,
        };
        err = ledger_shape_digest(line->commitment, command->run.commitment, &sha256, reterr);
        if (err == RON_ERR_OK && sha256)
            err = ron_fail(reterr, RON_ERR_MALFORMED, "a commitment is b3:");
        if (err != RON_ERR_OK)
            return err;
        hold = ledger_run_hold_id(command->stamp.tenant, line->epoch_id);
        return read_entries(l, line->payouts, &hold, command, refusal, reterr);
    case LEDGER_COMMAND_SLICE:
        command->slice.dimension = line->dimension;
        command->slice.seq = line->seq;
        err = ledger_shape_digest(line->digest, command->slice.digest, &sha256, reterr);
        if (err == RON_ERR_OK && !sha256)
            err = ledger_shape_digest(line->prev, command->slice.prev, &sha256, reterr);
        if (err == RON_ERR_OK && sha256)
            err = ron_fail(reterr, RON_ERR_MALFORMED, "a slice's digest is b3:");
        return err;
    case LEDGER_COMMAND_ABANDON:
        command->abandon = (struct ledger_abandon_terms){line->epoch_id, line->run_key};
        return RON_ERR_OK;
    case LEDGER_COMMAND_OPEN:
        return read_names(l, line->names, command, refusal, reterr);
    case LEDGER_COMMAND_EXPIRE:
    default:
        return RON_ERR_OK;
    }
}

enum ron_err lines_command(struct lines *l, const struct line *line,
                           struct ledger_command *ret_command, struct ledger_refusal *ret_refusal,
                           struct ron_errinfo *reterr)
{
    struct ledger_command command = {.kind = lines_kind(line)};
    enum ron_err err = read_stamp(line, &command, reterr);

    ret_refusal->present = 0;
    if (err == RON_ERR_OK)
        err = read_terms(l, line, &command, ret_refusal, reterr);
    if (err == RON_ERR_OK)
        *ret_command = command;
    return err;
}
