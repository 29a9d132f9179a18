/*
 * core_snapshot.h - the whole state at one seq as bytes, and back: for a quick start, never for
 * truth. Layout: docs/formats.md.
 *
 * Standstill, and nothing pending. The bytes end with their BLAKE3; loading checks it first, then
 * every count, reference and invariant.
 */
#ifndef RON_LEDGER_CORE_SNAPSHOT_H
#define RON_LEDGER_CORE_SNAPSHOT_H

#include "ledger/core.h"

/* Takes the bytes piece by piece, in order; an error ends the writing and is passed on. */
typedef enum ron_err ledger_sink_fn(void *context, struct ron_slice bytes,
                                    struct ron_errinfo *reterr);

/* Memory for one snapshot and one state root of this core as it is: 32 bytes a row, and little
 * else. */
enum { LEDGER_SCRATCH_BUFFER = 1 << 16 };
struct ledger_scratch {
    uint8_t *buffer;
    void *rows;
    size_t rows_size;
    void *leaves;
};
/* RON_ERR_NO_MEMORY. */
enum ron_err ledger_scratch_init(struct ledger_scratch *scratch, const struct ledger_core *core,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
void ledger_scratch_fini(struct ledger_scratch *scratch); /* accepts a zeroed one */
/* As ledger_core_state_root. The sink, unless NULL, gets the leaves in their order, whole ones, at
 * most LEDGER_SCRATCH_BUFFER bytes at once. */
enum { LEDGER_ROW_SIZE = 44 };
enum ron_err ledger_scratch_root(struct ledger_scratch *scratch, const struct ledger_core *core,
                                 ledger_sink_fn *sink, void *context, struct ron_sha256 *ret_root,
                                 uint64_t *ret_rows_count, struct ron_errinfo *reterr) RON_MUST_USE;
/* As ledger_snapshot_write. */
enum ron_err ledger_scratch_write(struct ledger_scratch *scratch, const struct ledger_core *core,
                                  ledger_sink_fn *sink, void *context,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* Allocates a buffer of 64 KiB. */
enum ron_err ledger_snapshot_write(const struct ledger_core *core, ledger_sink_fn *sink,
                                   void *context, struct ron_errinfo *reterr) RON_MUST_USE;
/* Into a core that has applied nothing. RON_ERR_MALFORMED; RON_ERR_TOO_LARGE if the core is too
 * small for it. After an error the core is of no use but to be freed. */
enum ron_err ledger_snapshot_load(struct ledger_core *core, struct ron_slice bytes,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

#endif
