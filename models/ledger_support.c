/*
 * ledger_support.c - see ledger_support.h.
 */
#include "models/ledger_support.h"

struct ledger_service_options ledger_model_options(struct ledger_engine *engine, unsigned window)
{
    struct ledger_service_options options = ledger_service_defaults(8, 2);

    options.capacity = (struct ledger_capacity){.accounts_max = 8,
                                                .rows_max = 8,
                                                .names_size_max = 512,
                                                .assets_max = 1,
                                                .holds_max = 1,
                                                .reversals_max = 1,
                                                .limits_max = 1,
                                                .runs_max = 1,
                                                .streams_max = 1,
                                                .entries_window = window,
                                                .batches_window = window,
                                                .keys_window = window};
    options.engine = engine;
    options.prevalidators_count = 1;
    options.roots_max = 2;
    options.expire_ms = 0;
    options.lag_ms_max = 0;
    options.classes[0] = (struct ledger_slot_class){3, LEDGER_EXT_SIZE_MAX, options.commit_max};
    options.classes[1].count = 0;
    options.classes[2].count = 0;
    return options;
}

struct ledger_request ledger_model_ingest(struct ledger_wire_entry *wire, struct ledger_op *op,
                                          const char *key, ledger_done_fn *done, void *context)
{
    return (struct ledger_request){
        .command = {.kind = LEDGER_COMMAND_INGEST, .key = ron_slice_text(key)},
        .wire = wire,
        .wire_count = 1,
        .ops_room = op,
        .size = 1,
        .deadline = RT_DEADLINE_NEVER,
        .done = done,
        .context = context,
    };
}
