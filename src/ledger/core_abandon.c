/*
 * core_abandon.c - the command `abandon`: the way out of a run whose next chunk can never be
 * applied.
 *
 * What is left of the run's Hold goes back to its pool, by an Anchor on the run's stream and a
 * Release. The epoch stays bound to its run_key for ever, and no chunk of it is taken any more.
 */
#include <stdio.h>

#include "base/decimal.h"
#include "ledger/core_apply.h"

enum { TEXT_SIZE = 320 };

#define PRINT(into, ...)                                           \
    do {                                                           \
        int printed = snprintf((into), sizeof(into), __VA_ARGS__); \
        RON_ASSERT(printed > 0);                                   \
        RON_ASSERT((size_t)printed < sizeof(into));                \
    } while (0)

/* Texts of the two entries. */
struct texts {
    char tenant[RON_DECIMAL_U128_SIZE];
    char rest[RON_DECIMAL_U128_SIZE];
    char stream[RON_ACCOUNT_NAME_SIZE_MAX + 1];
    char terms[TEXT_SIZE]; /* RFC 8785 */
    char anchor_id[LEDGER_ID_TEXT_SIZE_MAX];
    char release_id[LEDGER_ID_TEXT_SIZE_MAX];
};

static void make_texts(const struct ledger_command *command, struct ron_u128 rest,
                       struct texts *texts)
{
    const struct ledger_abandon_terms *terms = &command->abandon;

    (void)ron_decimal_print_u128(command->stamp.tenant, texts->tenant);
    (void)ron_decimal_print_u128(rest, texts->rest);
    PRINT(texts->stream, "run/%s/%.*s", texts->tenant, RON_SLICE_FMT(terms->epoch_id));
    PRINT(texts->terms, "{\"epoch_id\":\"%.*s\",\"rest\":\"%s\",\"run_key\":\"%.*s\"}",
          RON_SLICE_FMT(terms->epoch_id), texts->rest, RON_SLICE_FMT(terms->run_key));
    PRINT(texts->anchor_id, "runend/%.*s", RON_SLICE_FMT(terms->epoch_id));
    PRINT(texts->release_id, "runrelease/%.*s", RON_SLICE_FMT(terms->epoch_id));
}

static void make_ops(const struct ledger_command *command, struct ron_u128 rest, uint32_t asset,
                     const struct texts *texts, struct ledger_op ops[static 2])
{
    struct ron_b3 digest = ron_b3(texts->terms, strlen(texts->terms));

    ops[0] = (struct ledger_op){
        .kind = LEDGER_ANCHOR,
        .by_ledger = true,
        .id_text = ron_slice_text(texts->anchor_id),
        .stream = ron_slice_text(texts->stream),
        .ref = RON_SLICE("abandoned"),
    };
    memcpy(ops[0].debit.bytes, digest.bytes, LEDGER_ID_SIZE);
    memcpy(ops[0].credit.bytes, digest.bytes + LEDGER_ID_SIZE, LEDGER_ID_SIZE);
    ops[1] = (struct ledger_op){
        .kind = LEDGER_RELEASE,
        .by_ledger = true,
        .id_text = ron_slice_text(texts->release_id),
        .debit = ledger_run_hold_id(command->stamp.tenant, command->abandon.epoch_id),
        .amount = rest,
        .asset = asset,
    };
    for (unsigned i = 0; i < 2; i++)
        ops[i].id = ledger_entry_id(command->stamp.tenant, ops[i].id_text);
}

/* Said twice: the first time's reply. */
static void answer_again(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_command *command = a->command;
    struct ledger_entry known;
    struct ledger_id id;
    struct texts texts;

    make_texts(command, ron_u128_of(0), &texts);
    id = ledger_entry_id(command->stamp.tenant, ron_slice_text(texts.anchor_id));
    ret_result->duplicate = true;
    if (!entry_find(a->core, &id, a->core->seq_last, &known))
        RON_UNREACHABLE(); /* ids are known for ever */
    result_of_batch(a->core, known.batch, ret_result);
}

enum ron_err apply_abandon(struct apply *a, struct ledger_result *ret_result)
{
    const struct ledger_abandon_terms *terms = &a->command->abandon;
    struct ledger_core *core = a->core;
    const uint32_t place = run_find_named(core, &a->command->stamp, terms->epoch_id);
    struct ledger_id run_key = run_key_id(terms->run_key);
    struct ledger_op ops[2];
    struct ron_u128 rest;
    struct texts texts;
    const struct run *run;
    enum ron_err err;

    if (place == NONE)
        return ron_fail(a->reterr, RON_ERR_NOT_FOUND, "no such run");
    run = &core->runs[place];
    if (!ledger_id_equal(&run->run_key, &run_key))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the epoch is bound to another run_key");
    if (run->ended) {
        answer_again(a, ret_result);
        return RON_ERR_OK;
    }
    rest = run_rest(core, run);
    if (ron_u128_is_zero(rest))
        return ron_fail(a->reterr, RON_ERR_CONFLICT, "the run holds nothing any more");
    make_texts(a->command, rest, &texts);
    make_ops(a->command, rest, core->holds[run->hold].asset, &texts, ops);
    err = ids_pass_own(a, ops, 2, 2);
    if (err == RON_ERR_OK)
        err = apply_op(a, &ops[0]);
    if (err == RON_ERR_OK)
        err = apply_op(a, &ops[1]);
    if (err != RON_ERR_OK)
        return err;
    RON_ASSERT(ron_u128_is_zero(run_rest(core, run)));
    a->batch->old.has_run = true;
    a->batch->old.run = place;
    a->batch->old.run_chunk = run->next_chunk;
    a->batch->old.run_ended = false;
    run_write(core, place)->ended = true;
    ret_result->applied = true;
    return RON_ERR_OK;
}
