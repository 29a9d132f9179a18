/*
 * core_shadow.h - the state as it was at a cut, made while the core goes on: what a snapshot and a
 * state root are written from.
 *
 * At the cut nothing is copied. From then on the sequencer keeps each chunk of records before it
 * first writes to it, and beside that copies on by itself, a bounded number of chunks a turn, until
 * the shadow is whole and belongs to whoever took it. Tables that only grow are read in place, up
 * to where they ended at the cut.
 *
 * Memory: as much as accounts, rows, limits, reversals, runs and streams take, and address space
 * for a quarter more. Whoever has it may keep it for the next cut: pages that are new to the system
 * cost more than what is copied into them.
 */
#ifndef RON_LEDGER_CORE_SHADOW_H
#define RON_LEDGER_CORE_SHADOW_H

#include "ledger/core.h"

struct ledger_shadow; /* opaque */

/* Records of each table. */
enum { LEDGER_SHADOW_TABLES = 6 };
struct ledger_shadow_room {
    uint32_t counts[LEDGER_SHADOW_TABLES];
};
/* Sequencer. Would a cut now need much memory that is not at hand, in `spare` (or NULL)? How much
 * is then in *ret_room. */
bool ledger_core_shadow_lacks(const struct ledger_core *core, const struct ledger_shadow *spare,
                              struct ledger_shadow_room *ret_room) RON_MUST_USE;
/* Any thread. A spare one with so much room, whose pages were made: the sequencer does not wait
 * until the kernel has cleared them. NULL: no memory. */
struct ledger_shadow *ledger_shadow_new(const struct ledger_shadow_room *room) RON_MUST_USE;

/* Standstill, nothing pending, and no shadow under way. A core without an archive keeps its windows
 * in its snapshots: those are copied at once. *spare, if it is there, is a shadow that nobody needs
 * any more: it is taken if it is large enough, else left. RON_ERR_NO_MEMORY: nothing has changed,
 * but the spare one may be gone. */
enum ron_err ledger_core_shadow_begin(struct ledger_core *core, struct ledger_shadow **spare,
                                      struct ron_errinfo *reterr) RON_MUST_USE;
/* Sequencer. Copy at most so many chunks of LEDGER_SHADOW_CHUNK records; true: it is whole. */
enum { LEDGER_SHADOW_CHUNK = 16 };
bool ledger_core_shadow_copy(struct ledger_core *core, uint32_t chunks_max) RON_MUST_USE;
/* Sequencer. Take the whole shadow off the core; the caller owns it. */
struct ledger_shadow *ledger_core_shadow_take(struct ledger_core *core) RON_MUST_USE;
/* Sequencer. Give it up, whole or not; fine without one. */
void ledger_core_shadow_drop(struct ledger_core *core);

/* The state at the cut, for ledger_scratch_write and ledger_scratch_root only. Any thread, while
 * the core lives. */
const struct ledger_core *ledger_shadow_view(const struct ledger_shadow *shadow);
struct ledger_shadow *ledger_shadow_free(struct ledger_shadow *shadow); /* accepts, returns NULL */

#endif
