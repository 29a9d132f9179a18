/*
 * ledger_support.h - what the models of the ledger service share.
 */
#ifndef RON_MODELS_LEDGER_SUPPORT_H
#define RON_MODELS_LEDGER_SUPPORT_H

#include "ledger/service.h"

/* A service as small as it gets: one prevalidator, nothing that runs by the clock; `window` entries
 * and keys are remembered without the archive. commit_max and the count of slots are the caller's.
 */
struct ledger_service_options ledger_model_options(struct ledger_engine *engine, unsigned window);
/* One entry under a key; an empty key is none. All is borrowed. */
struct ledger_request ledger_model_ingest(struct ledger_wire_entry *wire, struct ledger_op *op,
                                          const char *key, ledger_done_fn *done, void *context);

#endif
