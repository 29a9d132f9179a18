/*
 * fuzz_ledger_oap.c - binary bodies into the ledger core. The first byte is the code: even 1,
 * odd 2.
 *
 * Checks beyond "no crash": what is refused leaves no trace, what is applied keeps every invariant;
 * keys, entries and names lie inside the input, and ops are whole: ids, zeros, sum.
 */
#include "ledger/core_oap.h"
#include "ledger_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct ron_slice part, struct ron_slice whole)
{
    return part.data >= whole.data && part.size <= whole.size &&
           (size_t)(part.data - whole.data) <= whole.size - part.size;
}

/* Ids made together are those made one by one; the sum is that of the ops. */
static void check_ops(struct ron_u128 tenant, const struct ledger_bare_op *ops, uint32_t count,
                      const struct ledger_oap_sum *sum)
{
    struct ledger_oap_sum seen = {.kinds = 0};

    for (uint32_t i = 0; i < count; i++) {
        char digits[LEDGER_ID_DIGITS + 1];
        const struct ledger_id id = ledger_entry_id(tenant,
                                                    ledger_id_text_of(ops[i].id_text, digits));

        RON_ASSERT(ledger_id_equal(&id, &ops[i].id));
        seen.kinds |= 1u << ops[i].kind;
        if (ron_u128_compare(ops[i].amount, seen.amount_max) > 0)
            seen.amount_max = ops[i].amount;
    }
    RON_ASSERT(seen.kinds == sum->kinds);
    RON_ASSERT(ron_u128_compare(seen.amount_max, sum->amount_max) == 0);
}

static bool decode(bool by_name, struct ron_slice body, struct ledger_command *command)
{
    static struct ledger_bare_op ops[RON_BATCH_ENTRIES_MAX];
    static struct ron_slice names[RON_BATCH_ENTRIES_MAX];
    struct ledger_oap_body entries;
    struct ledger_oap_sum sum;
    uint32_t index;

    command->bare_ops = by_name ? NULL : ops;
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
    if (ledger_oap_head(body, &entries, NULL) != RON_ERR_OK)
        return false;
    RON_ASSERT(is_inside(entries.key, body));
    RON_ASSERT(is_inside(ron_slice_of(entries.entries, entries.count * RON_WIRE_ENTRY_SIZE), body));
    memset(ops, 0x5a, entries.count * sizeof(ops[0])); /* nothing of it may show */
    if (ledger_oap_decode(command->stamp.tenant, &entries, ops, &sum, &index, NULL) != RON_ERR_OK)
        return false;
    check_ops(command->stamp.tenant, ops, entries.count, &sum);
    command->key = entries.key;
    command->ops_count = entries.count;
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
