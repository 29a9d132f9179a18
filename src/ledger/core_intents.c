/*
 * core_intents.c - the command `intents`: a run's payouts, chunk by chunk, out of one Hold.
 *
 * A run is (tenant, epoch_id), bound to one run_key for ever. Chunk 0 anchors the commitment and
 * holds the total; every payout is a Capture of that hold, linked to the Anchor.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core_apply.h"

enum { NAME_SIZE = RON_ACCOUNT_NAME_SIZE_MAX + 1 };

/* Texts of a run, and the ids they give. */
struct run_names {
    char tenant[RON_DECIMAL_U128_SIZE];
    char key[RON_IDEM_KEY_SIZE_MAX + 1];
    char stream[NAME_SIZE];
    char pool[NAME_SIZE];
    char hold[NAME_SIZE]; /* behind "sys/hold/" */
    char anchor_id[LEDGER_ID_TEXT_SIZE_MAX];
    char hold_id[LEDGER_ID_TEXT_SIZE_MAX];
    struct ledger_id anchor;
};

#define PRINT(into, ...)                                           \
    do {                                                           \
        int printed = snprintf((into), sizeof(into), __VA_ARGS__); \
        RON_ASSERT(printed > 0);                                   \
        RON_ASSERT((size_t)printed < sizeof(into));                \
    } while (0)

static void make_names(const struct ledger_command *command, struct run_names *names)
{
    const struct ledger_run_terms *terms = &command->run;

    (void)ron_decimal_print_u128(command->stamp.tenant, names->tenant);
    PRINT(names->key, "%.*s:%u", RON_SLICE_FMT(terms->run_key), terms->chunk);
    PRINT(names->stream, "run/%s/%.*s", names->tenant, RON_SLICE_FMT(terms->epoch_id));
    PRINT(names->pool, "pool/%s/%.*s", names->tenant, RON_SLICE_FMT(terms->funding_source));
    PRINT(names->hold, "run/%s/%.*s", names->tenant, RON_SLICE_FMT(terms->epoch_id));
    PRINT(names->anchor_id, "run/%.*s", RON_SLICE_FMT(terms->epoch_id));
    PRINT(names->hold_id, "runhold/%.*s", RON_SLICE_FMT(terms->epoch_id));
    names->anchor = ledger_entry_id(command->stamp.tenant, ron_slice_text(names->anchor_id));
}

/* Keys of our own, never in the log. */
static struct ledger_id run_id(struct ron_slice stream)
{
    return ledger_account_id("run:", stream);
}

struct ledger_id run_key_id(struct ron_slice run_key)
{
    return ledger_account_id("run_key:", run_key);
}

uint32_t run_find(const struct ledger_core *core, const struct ledger_id *id)
{
    const uint32_t hash = id_hash(id);
    uint32_t at = hash;
    uint32_t place;

    while ((place = ledger_index_next(&core->run_index, hash, &at)) != LEDGER_INDEX_NONE)
        if (ledger_id_equal(&core->runs[place].id, id))
            return place;
    return NONE;
}

uint32_t run_find_named(const struct ledger_core *core, const struct ledger_stamp *stamp,
                        struct ron_slice epoch_id)
{
    char tenant[RON_DECIMAL_U128_SIZE];
    char stream[NAME_SIZE];
    struct ledger_id id;

    (void)ron_decimal_print_u128(stamp->tenant, tenant);
    PRINT(stream, "run/%s/%.*s", tenant, RON_SLICE_FMT(epoch_id));
    id = run_id(ron_slice_text(stream));
    return run_find(core, &id);
}

/* What every chunk must repeat. */
static struct ron_b3 terms_digest(const struct ledger_run_terms *terms)
{
    struct ron_b3_ctx ctx;
    uint8_t fixed[32 + 16 + 4 + 1];

    memcpy(fixed, terms->commitment, 32);
    ron_u128_store_le(fixed + 32, terms->total);
    ron_store_le32(fixed + 48, terms->chunks);
    fixed[52] = (uint8_t)terms->funding_source.size;
    ron_b3_init(&ctx);
    ron_b3_update(&ctx, fixed, sizeof(fixed));
    ron_b3_update(&ctx, terms->funding_source.data, terms->funding_source.size);
    ron_b3_update(&ctx, terms->asset.data, terms->asset.size);
    return ron_b3_final(&ctx);
}

static enum ron_err check_run(struct apply *a, uint32_t place, const struct ledger_id *run_key)
{
    const struct ledger_run_terms *terms = &a->command->run;
    const struct run *run = place == NONE ? NULL : &a->core->runs[place];
    const uint32_t expected = run == NULL ? 0 : run->next_chunk;
    struct ron_b3 digest = terms_digest(terms);

    if (run != NULL && !ledger_id_equal(&run->run_key, run_key))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the epoch is bound to another run_key");
    if (run != NULL && run->ended)
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the run was abandoned");
    if (terms->chunk != expected) {
        refusal_expected(a, LEDGER_DETAIL_CHUNK, expected);
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "chunk %u, expected %u", terms->chunk,
                        expected);
    }
    if (run != NULL && memcmp(run->terms.bytes, digest.bytes, RON_B3_SIZE) != 0)
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "terms other than those of chunk 0");
    return RON_ERR_OK;
}

/* Anchor and Hold of chunk 0. */
static void make_first_ops(const struct ledger_command *command, const struct run_names *names,
                           struct ledger_op ops[static 2])
{
    const struct ledger_run_terms *terms = &command->run;

    ops[0] = (struct ledger_op){
        .kind = LEDGER_ANCHOR,
        .by_ledger = true,
        .id = names->anchor,
        .id_text = ron_slice_text(names->anchor_id),
        .stream = ron_slice_text(names->stream),
    };
    memcpy(ops[0].debit.bytes, terms->commitment, LEDGER_ID_SIZE);
    memcpy(ops[0].credit.bytes, terms->commitment + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    ops[1] = (struct ledger_op){
        .kind = LEDGER_HOLD,
        .by_ledger = true,
        .amount = terms->total,
        .id_text = ron_slice_text(names->hold_id),
        .debit = ledger_account_id("", ron_slice_text(names->pool)),
        .debit_name = ron_slice_text(names->pool),
        .credit = ledger_run_hold_id(command->stamp.tenant, terms->epoch_id),
        .credit_name = ron_slice_text(names->hold),
        .asset_name = terms->asset,
    };
    ops[1].id = ledger_entry_id(command->stamp.tenant, ops[1].id_text);
}

/* Chunk 0: write Anchor and Hold, bind the run. Returns its place. */
static enum ron_err begin_run(struct apply *a, const struct ledger_op ops[static 2],
                              const struct run *run, uint32_t *ret_place)
{
    struct ledger_core *core = a->core;
    struct movement m;
    enum ron_err err = check_op(a, &ops[1], &m); /* the pool decides before there is an Anchor */

    if (err == RON_ERR_OK)
        err = apply_op(a, &ops[0]);
    if (err == RON_ERR_OK)
        err = apply_op(a, &ops[1]);
    if (err == RON_ERR_INSUFFICIENT_FUNDS) {
        a->refusal->present = 0;
        return ron_fail(a->reterr, RON_ERR_HELD, "the pool holds less than the total");
    }
    if (err != RON_ERR_OK)
        return err;
    if (core->runs_count == core->capacity.runs_max)
        return ron_fail(a->reterr, RON_ERR_BUSY, "all %u runs are taken", core->capacity.runs_max);
    RON_ASSERT(core->holds_count > 0);
    RON_ASSERT(core->holds[core->holds_count - 1].is_run);
    RON_ASSERT(core->holds[core->holds_count - 1].expires_ms == 0);
    *ret_place = core->runs_count++;
    *run_write(core, *ret_place) = *run;
    run_write(core, *ret_place)->hold = core->holds_count - 1;
    core->holds[core->holds_count - 1].entry = ops[0].id; /* payouts link to the Anchor */
    ledger_index_add(&core->run_index, id_hash(&run->id), *ret_place);
    return RON_ERR_OK;
}

struct ron_u128 run_rest(const struct ledger_core *core, const struct run *run)
{
    const struct hold *hold = &core->holds[run->hold];
    uint32_t row = row_find(core, hold->account, hold->asset);

    RON_ASSERT(row != NONE);
    return core->rows[row].balance;
}

static enum ron_err pay(struct apply *a, uint32_t place)
{
    struct ledger_core *core = a->core;
    const struct run *run = &core->runs[place];
    const struct ledger_run_terms *terms = &a->command->run;
    const uint32_t asset = core->holds[run->hold].asset;

    RON_ASSERT(place < core->runs_count);
    RON_ASSERT(!run->ended);
    RON_ASSERT(run->next_chunk == terms->chunk);
    for (uint32_t i = 0; i < a->command->ops_count; i++) {
        struct ledger_op op = a->command->ops[i];
        enum ron_err err;

        op.asset = asset;
        err = apply_op(a, &op);
        if (err != RON_ERR_OK) {
            refusal_index(a, i);
            return ron_wrap(a->reterr, err, "payout %u", i);
        }
    }
    if (terms->chunk + 1 == terms->chunks && !ron_u128_is_zero(run_rest(core, run))) {
        refusal_available(a, run_rest(core, run));
        return ron_fail(a->reterr, RON_ERR_MALFORMED, "the last chunk leaves a rest");
    }
    a->batch->old.has_run = true;
    a->batch->old.run = place;
    a->batch->old.run_chunk = run->next_chunk;
    a->batch->old.run_ended = run->ended;
    run_write(core, place)->next_chunk = terms->chunk + 1;
    return RON_ERR_OK;
}

enum ron_err apply_intents(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_command *command = a->command;
    const struct ledger_run_terms *terms = &command->run;
    const uint32_t shift = terms->chunk == 0 ? 2 : 0;
    struct ledger_op first[2];
    struct run_names names;
    struct run run = {.terms = terms_digest(terms)};
    struct ron_slice key;
    uint32_t place;
    bool known;
    enum ron_err err;

    make_names(command, &names);
    key = ron_slice_text(names.key);
    err = key_pass(a, key, &known, ret_result);
    if (err != RON_ERR_OK || known)
        return err;
    run.id = run_id(ron_slice_text(names.stream));
    run.run_key = run_key_id(terms->run_key);
    place = run_find(a->core, &run.id);
    err = check_run(a, place, &run.run_key);
    if (err != RON_ERR_OK)
        return err;
    if (shift > 0) {
        make_first_ops(command, &names, first);
        err = ids_pass_own(a, first, 2, shift);
    }
    if (err == RON_ERR_OK)
        err = ids_pass(a, command, 0, shift);
    if (err == RON_ERR_OK && shift > 0)
        err = begin_run(a, first, &run, &place);
    if (err == RON_ERR_OK)
        err = pay(a, place);
    if (err != RON_ERR_OK)
        return err;
    a->batch->key_size = (uint8_t)key.size;
    memcpy(a->batch->key, key.data, key.size);
    ret_result->applied = true;
    return RON_ERR_OK;
}
