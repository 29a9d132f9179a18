/*
 * fuzz_ledger_json.c - JSON requests into the ledger core: read, shaped, applied.
 *
 * Checks beyond "no crash": what is refused leaves no trace, what is applied keeps every invariant.
 */
#include "ledger_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world; /* made once: runs per second count */

    if (world.core == NULL)
        world_build(&world);
    if (world_line(&world, ron_slice_of(data, size))) {
        world_commit(&world);
        world_again(&world);
    }
    return 0;
}
