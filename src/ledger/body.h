/*
 * body.h - request bodies of the ledger's API: strict JSON into what a command needs.
 *
 * Pure: no clock, no state, no thread of its own; a prevalidator runs it. Reading, shape and
 * fingerprint are one call, all memory is the caller's scratch, and nothing is allocated for an
 * entry. Results point into the text and the scratch, and live as long as both.
 *
 * Refusals: RON_ERR_MALFORMED or RON_ERR_TOO_LARGE; *ret_index is the element of `batch` or
 * `payouts`, or UINT32_MAX. What is not JSON of the schema is found before what is not of the
 * grammar, whichever stands first.
 *
 * The fingerprint is BLAKE3 of the RFC 8785 text of the body as it was read, without `idem_id` and
 * without `ts`; an integer beyond 2^53 stands there with its digits. Texts are compared as they
 * were written, so one moment spelt in two ways is two bodies.
 */
#ifndef RON_LEDGER_BODY_H
#define RON_LEDGER_BODY_H

#include "base/arena.h"
#include "ledger/core_command.h"

enum {
    LEDGER_META_TEXT_MAX = 4096, /* of `meta` as it is written; RON_META_SIZE_MAX canonical */
    LEDGER_SLICE_ROWS_MAX = RON_BODY_SIZE_MAX,
    LEDGER_REASON_SIZE_MAX = 256,
};

/* Memory for reading one body at a time; used again and again. */
struct body_scratch {
    struct ron_arena arena;
    struct ron_buf meta; /* canonical meta of all entries */
    struct ron_buf text; /* what the fingerprint is made of */
};
/* Enough for every body of RON_BODY_SIZE_MAX. RON_ERR_NO_MEMORY. */
enum ron_err body_scratch_init(struct body_scratch *scratch,
                               struct ron_errinfo *reterr) RON_MUST_USE;
void body_scratch_fini(struct body_scratch *scratch); /* accepts a zeroed one */
void body_scratch_reset(struct body_scratch *scratch);

/* POST /ingest. header_key is the field Idempotency-Key, empty without; with `idem_id` they must be
 * equal. The fingerprint is made only where there is a key. */
struct ledger_ingest_body {
    struct ron_slice key;
    struct ron_b3 fingerprint;
    struct ledger_op *ops;
    uint32_t ops_count;
};
enum ron_err ledger_read_ingest(struct body_scratch *scratch, struct ron_slice text,
                                struct ron_slice header_key, struct ron_u128 tenant,
                                struct ledger_ingest_body *ret_body, uint32_t *ret_index,
                                struct ron_errinfo *reterr) RON_MUST_USE;

/* POST /intents; header_key, if any, must be `<run_key>:<chunk>`. */
struct ledger_intents_body {
    struct ledger_run_terms run;
    struct ron_b3 fingerprint;
    struct ledger_op *ops;
    uint32_t ops_count;
};
enum ron_err ledger_read_intents(struct body_scratch *scratch, struct ron_slice text,
                                 struct ron_slice header_key, struct ron_u128 tenant,
                                 struct ledger_intents_body *ret_body, uint32_t *ret_index,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* POST /assets, POST /accounts, POST /admin/ledger/abandon. */
enum ron_err ledger_read_asset(struct body_scratch *scratch, struct ron_slice text,
                               struct ledger_asset_terms *ret_terms,
                               struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_read_limits(struct body_scratch *scratch, struct ron_slice text,
                                struct ledger_limit_terms *ret_terms,
                                struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err ledger_read_abandon(struct body_scratch *scratch, struct ron_slice text,
                                 struct ledger_abandon_terms *ret_terms,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* PUT /slices/...: the bytes of a sealed slice (its digest is computed and must be the one it
 * names), or {"shed":{...}}: what is known of one that was dropped. */
struct ledger_slice_body {
    struct ron_u128 tenant;
    struct ledger_slice_terms terms;
    bool is_shed;
};
enum ron_err ledger_read_slice(struct body_scratch *scratch, struct ron_slice text,
                               struct ledger_slice_body *ret_body,
                               struct ron_errinfo *reterr) RON_MUST_USE;

#endif
