/*
 * core_sheaf.h - frames of a log made ready to be replayed: taken apart, turned back into commands,
 * hashed. Pure, and without the state, so that one task can do it while another applies.
 *
 * A sheaf holds some frames in a row: as many as are worth handing to another task at once.
 */
#ifndef RON_LEDGER_CORE_SHEAF_H
#define RON_LEDGER_CORE_SHEAF_H

#include "ledger/core_frame.h"

enum { LEDGER_SHEAF_FRAMES_MAX = 64, LEDGER_SHEAF_BYTES_LEAST = 1 << 18 };

struct ledger_ready {
    struct ledger_frame frame;
    /* The rest only of what is to be replayed. */
    struct ledger_command command;
    const struct ron_sha256 *hashes;  /* of the leaves */
    const struct ledger_id *name_ids; /* of the first name_ids_count names */
    uint32_t name_ids_count;
    struct ron_sha256 previous_root, root;
    struct ron_merkle_frontier frontier; /* the tree with this batch */
};

/* Everything in it lives until the sheaf is emptied. */
struct ledger_sheaf {
    uint32_t frames_count;
    struct ledger_ready *frames;

    uint32_t entries_count, names_count;
    uint64_t root_size;     /* leaves of the tree behind the last frame made ready; 0: none yet */
    struct ron_sha256 root; /* of that tree */
    size_t bytes_size, bytes_max;
    uint8_t *bytes;
    struct ledger_op *ops;     /* as many as bytes_max bytes can hold entries */
    struct ron_sha256 *hashes; /* likewise */
    struct ron_slice *names;   /* of `open`; NULL until there is one */
    uint32_t name_ids_count;
    struct ledger_id *name_ids; /* as many as there are names; NULL until there is one */
};

/* RON_ERR_NO_MEMORY. */
enum ron_err ledger_sheaf_init(struct ledger_sheaf *sheaf, struct ron_errinfo *reterr) RON_MUST_USE;
void ledger_sheaf_fini(struct ledger_sheaf *sheaf); /* accepts a zeroed one */
/* Is there room for one more frame, of this size? */
bool ledger_sheaf_has_room(const struct ledger_sheaf *sheaf, size_t frame_size);
/* Forget what is in it, and make room for a frame of this size. RON_ERR_NO_MEMORY. */
enum ron_err ledger_sheaf_empty(struct ledger_sheaf *sheaf, size_t frame_size,
                                struct ron_errinfo *reterr) RON_MUST_USE;

/* Copy a frame into the sheaf and take it apart; there is room. RON_ERR_MALFORMED, and the sheaf is
 * as it was. One task. */
enum ron_err ledger_sheaf_add(struct ledger_sheaf *sheaf, struct ron_slice bytes,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for a frame that is to be replayed behind the tree of *frontier, which grows by it.
 * RON_ERR_WAL_CORRUPT if no command can have made it, RON_ERR_NO_MEMORY; whether its roots are
 * those of the tree is for ledger_replay_ready to say. */
enum ron_err ledger_sheaf_prepare(struct ledger_sheaf *sheaf, struct ron_slice bytes,
                                  struct ron_merkle_frontier *frontier,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* As ledger_replay_frame and ledger_replay_remember (core_frame.h), of frames that are ready. */
enum ron_err ledger_replay_ready(struct ledger_replay *replay, const struct ledger_ready *ready,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* Bring nearer what the small frames behind this one need; all of them are to be replayed. Changes
 * nothing. */
void ledger_replay_prefetch(const struct ledger_replay *replay, const struct ledger_sheaf *sheaf,
                            uint32_t index);
enum ron_err ledger_replay_recall(struct ledger_replay *replay, const struct ledger_frame *frame,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

#endif
