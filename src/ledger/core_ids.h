/*
 * core_ids.h - where the window may have an entry, by its id: for readers, any thread, no lock.
 *
 * The window knows places by the first four bytes of an id, and its ring is the sequencer's: what
 * is told here is where to look in the log, and who asks compares the id there. Of what is
 * committed the window forgets nothing that the archive does not have: who is told that there is no
 * more asks the archive next, in this order.
 */
#ifndef RON_LEDGER_CORE_IDS_H
#define RON_LEDGER_CORE_IDS_H

#include "ledger/core.h"

/* The newest seq below `below` (UINT64_MAX at first) and up to seq_max, which is committed, whose
 * id begins like this one; or, seldom, that of another; 0: no more. */
uint64_t ledger_core_seq_of(const struct ledger_core *core, const struct ledger_id *id,
                            uint64_t seq_max, uint64_t below);

#endif
