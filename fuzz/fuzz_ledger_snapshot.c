/*
 * fuzz_ledger_snapshot.c - any bytes as a snapshot of the ledger's state, their hash put right.
 *
 * Checks beyond "no crash": what is accepted is written again byte for byte, keeps every invariant
 * and can be worked with.
 */
#include "ledger_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void work_with(struct world *w)
{
    const char *broken;

    for (size_t i = 0; i < RON_ARRAY_COUNT(world_next); i++)
        if (world_line(w, ron_slice_text(world_next[i]))) {
            ledger_core_seal(w->core, &w->batch);
            ledger_core_commit(w->core, &w->batch);
        }
    broken = ledger_core_check(w->core);
    RON_ASSERT(broken == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    static struct ron_buf bytes;
    static struct ron_buf again;
    struct ledger_capacity capacity = world_capacity();
    struct ledger_core *core;
    struct ron_b3 hash;

    if (world.core == NULL) {
        world_build(&world);
        ron_buf_init(&bytes, WORLD_SNAPSHOT_MAX);
        ron_buf_init(&again, WORLD_SNAPSHOT_MAX);
    }
    if (size < RON_B3_SIZE || size > WORLD_SNAPSHOT_MAX / 2)
        return 0;
    ron_buf_reset(&bytes);
    ron_buf_reset(&again);
    hash = ron_b3(data, size - RON_B3_SIZE);
    ron_buf_put(&bytes, data, size - RON_B3_SIZE);
    ron_buf_put(&bytes, hash.bytes, RON_B3_SIZE);
    WORLD_MUST(ledger_core_new(&capacity, NULL, &core, NULL));
    if (ledger_snapshot_load(core, ron_buf_slice(&bytes), NULL) == RON_ERR_OK) {
        struct ledger_core *first = world.core;

        WORLD_MUST(ledger_snapshot_write(core, world_keep, &again, NULL));
        RON_ASSERT(ron_slice_equal(ron_buf_slice(&bytes), ron_buf_slice(&again)));
        world.core = core;
        work_with(&world);
        world.core = first;
    }
    (void)ledger_core_free(core);
    return 0;
}
