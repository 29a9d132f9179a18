/*
 * fuzz_ledger_body.c - bodies of the ledger's API. The first byte picks the reader: /ingest,
 * /intents, /assets, /accounts, abandon, slices.
 *
 * Checks beyond "no crash": what was read has the shape of a command; its texts lie in the input or
 * the scratch; its canonical text is a body that is read as the same, with the same fingerprint.
 */
#include "base/assert.h"
#include "ledger/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { READERS_COUNT = 6 };

static const struct ron_u128 tenant = {7};

static bool is_inside(struct ron_slice part, const void *whole, size_t size)
{
    const uint8_t *begin = whole;

    return part.data >= begin && part.size <= size &&
           (size_t)(part.data - begin) <= size - part.size;
}

static void check_text(const struct body_scratch *scratch, struct ron_slice input,
                       struct ron_slice text)
{
    if (text.size == 0)
        return;
    RON_ASSERT(is_inside(text, input.data, input.size) ||
               is_inside(text, scratch->arena.block, scratch->arena.size) ||
               is_inside(text, scratch->meta.data, scratch->meta.size));
}

static void check_ops(const struct body_scratch *scratch, struct ron_slice input,
                      const struct ledger_op *ops, uint32_t count)
{
    RON_ASSERT(count > 0);
    RON_ASSERT(count <= RON_BATCH_ENTRIES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        RON_ASSERT(ops[i].kind >= LEDGER_MINT);
        RON_ASSERT(ops[i].kind <= LEDGER_ANCHOR);
        check_text(scratch, input, ops[i].id_text);
        check_text(scratch, input, ops[i].debit_name);
        check_text(scratch, input, ops[i].credit_name);
        check_text(scratch, input, ops[i].memo);
        check_text(scratch, input, ops[i].meta);
        check_text(scratch, input, ops[i].stream);
    }
}

static void try_ingest(struct body_scratch *scratch, struct ron_slice text)
{
    static uint8_t again[8 * RON_BODY_SIZE_MAX];
    struct ledger_ingest_body body, second;
    size_t size;
    uint32_t index;
    enum ron_err err;

    body_scratch_reset(scratch);
    if (ledger_read_ingest(scratch, text, RON_SLICE("key"), tenant, &body, &index, NULL) !=
        RON_ERR_OK)
        return;
    check_ops(scratch, text, body.ops, body.ops_count);
    size = scratch->text.size;
    memcpy(again, scratch->text.data, size);
    if (size > RON_JSON_SIZE_MAX)
        return;
    body_scratch_reset(scratch);
    err = ledger_read_ingest(scratch, ron_slice_of(again, size), RON_SLICE("key"), tenant, &second,
                             &index, NULL);
    RON_ASSERT(err == RON_ERR_OK);
    RON_ASSERT(second.ops_count == body.ops_count);
    RON_ASSERT(memcmp(second.fingerprint.bytes, body.fingerprint.bytes, RON_B3_SIZE) == 0);
}

static void try_intents(struct body_scratch *scratch, struct ron_slice text)
{
    struct ledger_intents_body body;
    struct ledger_command command = {.kind = LEDGER_COMMAND_INTENTS};
    uint32_t index;
    enum ron_err err;

    body_scratch_reset(scratch);
    if (ledger_read_intents(scratch, text, (struct ron_slice){NULL, 0}, tenant, &body, &index,
                            NULL) != RON_ERR_OK)
        return;
    check_ops(scratch, text, body.ops, body.ops_count);
    command.run = body.run;
    command.ops_count = body.ops_count;
    err = ledger_shape_command(&command, NULL);
    RON_ASSERT(err == RON_ERR_OK);
}

static void try_terms(struct body_scratch *scratch, unsigned reader, struct ron_slice text)
{
    struct ledger_command command = {.kind = LEDGER_COMMAND_ASSET};
    struct ledger_slice_body slice;

    body_scratch_reset(scratch);
    if (reader == 2) {
        (void)!ledger_read_asset(scratch, text, &command.asset, NULL);
    } else if (reader == 3) {
        (void)!ledger_read_limits(scratch, text, &command.limits, NULL);
    } else if (reader == 4) {
        (void)!ledger_read_abandon(scratch, text, &command.abandon, NULL);
    } else if (ledger_read_slice(scratch, text, &slice, NULL) == RON_ERR_OK) {
        check_text(scratch, text, slice.terms.dimension);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct body_scratch scratch;
    struct ron_slice text;
    unsigned reader;

    if (scratch.arena.block == NULL && body_scratch_init(&scratch, NULL) != RON_ERR_OK)
        return 0;
    if (size == 0 || size > RON_BODY_SIZE_MAX)
        return 0;
    reader = data[0] % READERS_COUNT;
    text = ron_slice_of(data + 1, size - 1);
    if (reader == 0)
        try_ingest(&scratch, text);
    else if (reader == 1)
        try_intents(&scratch, text);
    else
        try_terms(&scratch, reader, text);
    return 0;
}
