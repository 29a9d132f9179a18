/*
 * replay_dir.h - a ledger's log, done again from its first batch: for `ron ledger replay` and for
 * what reads a directory without a process around it.
 *
 * Reads only: no lock, no repair, nothing is written. What is behind the last group of a log that
 * is being written is left alone, since nobody was told of it.
 */
#ifndef RON_LEDGER_REPLAY_DIR_H
#define RON_LEDGER_REPLAY_DIR_H

#include "io/vfs.h"
#include "ledger/record_json.h"
#include "ron/verify.h"

enum { LEDGER_ANCHORS_CHECKED_MAX = 16 };

/* A state that the ledger anchored: its root when everything up to seq was committed. */
struct ledger_state_anchor {
    uint64_t seq, anchored_at; /* anchored_at: seq of the Anchor */
    struct ron_sha256 root;
};

/* What is in the log, counted frame by frame without doing any of it. */
struct ledger_survey {
    uint64_t batches_count, entries_count, bytes_count, torn_bytes;
    uint64_t last_index;
    uint64_t anchors_count; /* of states; the newest ones: */
    struct ledger_state_anchor anchors[LEDGER_ANCHORS_CHECKED_MAX]; /* n at n % MAX */
    struct ledger_capacity capacity; /* of a core that has room for all of it */
};
/* dir is "ledger"; "" is the root. RON_ERR_NOT_FOUND: no log here; RON_ERR_WAL_CORRUPT,
 * RON_ERR_MALFORMED (not the log of a ledger), RON_ERR_PRUNED (its beginning is gone),
 * RON_ERR_TOO_LARGE (beyond what a core holds), RON_ERR_VERSION_SKEW, RON_ERR_IO; the message names
 * file and offset. */
enum ron_err ledger_survey_dir(struct io_vfs *vfs, const char *dir,
                               struct ledger_survey *ret_survey,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* One entry, in order; record and names live during the call. An error ends the replay. */
typedef enum ron_err ledger_replayed_fn(void *context, const struct ledger_record *record,
                                        const struct ledger_record_names *names,
                                        struct ron_errinfo *reterr);

struct ledger_replay_dir_options {
    struct io_vfs *vfs;
    const char *dir;                                                                /* "ledger" */
    ledger_replayed_fn *visit;                                                      /* NULL: none */
    void (*progress)(void *context, uint64_t entries_done, uint64_t entries_total); /* NULL: none */
    void *context;
};
struct ledger_replay_dir_report {
    struct ledger_survey survey;
    uint64_t batches_count, entries_count, rows_count;
    uint64_t replay_ns; /* of the second reading alone */
    struct ron_tree tree;
    struct ron_sha256 state_root;
    uint64_t anchors_checked; /* those of the survey that agreed */
};
/* Survey, then every batch again in a core of its own; at each state that was anchored (the newest
 * LEDGER_ANCHORS_CHECKED_MAX) the state's root is compared. RON_ERR_CHAIN_MISMATCH: it is another;
 * RON_ERR_WAL_CORRUPT: a batch does not come out as logged, or an invariant is broken; errors of
 * the survey and of visit. *ret_report is filled as far as it got. */
enum ron_err ledger_replay_dir(const struct ledger_replay_dir_options *options,
                               struct ledger_replay_dir_report *ret_report,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
