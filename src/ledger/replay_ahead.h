/*
 * replay_ahead.h - a log read ahead of who replays it: one task reads frames, checks them, turns
 * them back into commands and hashes their leaves, while another applies those before.
 *
 * Sheaves of frames (core_sheaf.h) go round between the two; there are LEDGER_AHEAD_SHEAVES.
 * Everything that needs no state is done by the reader; what the state says of a frame is said by
 * who applies it, in the order of the log. An error comes after the frames before it.
 */
#ifndef RON_LEDGER_REPLAY_AHEAD_H
#define RON_LEDGER_REPLAY_AHEAD_H

#include "ledger/core_pages.h"
#include "ledger/core_sheaf.h"
#include "ledger/engine.h"
#include "rt/lock_classes.h"

struct ledger_ahead; /* opaque */

enum { LEDGER_AHEAD_SHEAVES = 3 };

/* Hand every frame to fn, in order, until it answers an error: on the reader's task. */
typedef enum ron_err ledger_source_fn(void *context, ledger_frame_fn *fn, void *fn_context,
                                      struct ron_errinfo *reterr);

struct ledger_ahead_options {
    const char *owner; /* role, in the registry */
    ledger_source_fn *source;
    void *context; /* of source */
    /* Of records up to this one only the frame is wanted (ledger_ready): they are not replayed. */
    uint64_t known;
    const struct ron_merkle_frontier *frontier; /* the tree behind `known`; copied */
    struct ledger_pages *pages; /* of the core that replays, the reader's meanwhile; NULL: none */
};

/* The reader begins. RON_ERR_NO_MEMORY, RON_ERR_BUSY. */
enum ron_err ledger_ahead_start(const struct ledger_ahead_options *options,
                                struct ledger_ahead **ret_ahead,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The next frames, at least one; the sheaf before is given back. RON_ERR_NOT_FOUND: that was all.
 * Errors of the source (its RON_ERR_NOT_FOUND as RON_ERR_IO); RON_ERR_WAL_CORRUPT: a frame that is
 * none. */
enum ron_err ledger_ahead_next(struct ledger_ahead *ahead, const struct ledger_sheaf **ret_sheaf,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Stop the reader where it is and wait for it. Accepts NULL, returns NULL. */
struct ledger_ahead *ledger_ahead_free(struct ledger_ahead *ahead) RON_BLOCKS;

#endif
