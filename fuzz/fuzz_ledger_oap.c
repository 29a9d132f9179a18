/*
 * fuzz_ledger_oap.c - binary bodies into the ledger core. The first byte is the code: even 1,
 * odd 2.
 *
 * Checks beyond "no crash": what is refused leaves no trace, what is applied keeps every invariant;
 * keys and names lie inside the input.
 */
#include "ledger_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct ron_slice part, struct ron_slice whole)
{
    return part.data >= whole.data && part.size <= whole.size &&
           (size_t)(part.data - whole.data) <= whole.size - part.size;
}

static bool decode(bool by_name, struct ron_slice body, struct ledger_command *command)
{
    static struct ledger_op ops[RON_BATCH_ENTRIES_MAX];
    static uint8_t texts[RON_BATCH_ENTRIES_MAX * LEDGER_OAP_TEXT_SIZE];
    static struct ron_slice names[RON_BATCH_ENTRIES_MAX];
    uint32_t index;

    command->ops = ops;
    if (by_name) {
        command->kind = LEDGER_COMMAND_OPEN;
        command->open.names = names;
        if (ledger_oap_decode_names(body, names, &command->open.count, &index, NULL) != RON_ERR_OK)
            return false;
        for (uint32_t i = 0; i < command->open.count; i++)
            RON_ASSERT(is_inside(names[i], body));
        return true;
    }
    command->kind = LEDGER_COMMAND_INGEST;
    if (ledger_oap_decode(command->stamp.tenant, body, ops, texts, &command->key,
                          &command->ops_count, &index, NULL) != RON_ERR_OK)
        return false;
    RON_ASSERT(is_inside(command->key, body));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    struct ledger_command command = {.stamp.commit_ms = 1000};
    struct ledger_result result = {.applied = false};
    struct ledger_refusal refusal;
    struct ron_b3 before;
    struct ron_b3 after;

    if (world.core == NULL)
        world_build(&world);
    if (size == 0 || !decode(data[0] % 2 == 1, ron_slice_of(data + 1, size - 1), &command))
        return 0;
    before = ledger_core_digest(world.core);
    if (ledger_core_apply(world.core, &command, &world.batch, &result, &refusal, NULL) ==
            RON_ERR_OK &&
        result.applied) {
        world_commit(&world);
        world_again(&world);
        return 0;
    }
    after = ledger_core_digest(world.core);
    RON_ASSERT(memcmp(before.bytes, after.bytes, RON_B3_SIZE) == 0);
    return 0;
}
