/*
 * tree.h - the ledger's Merkle tree as others see it: signed heads, proofs, tiles.
 *
 * Over io/tlog: the leaves of every committed batch are appended in order, the newest head of a
 * group is signed after its sync. The tree is derived: at start whatever the log has beyond the
 * tiles is appended again; tiles that are damaged, longer than the log or of another log are made
 * again from it. The key is not derived, nor the newest signed head (checkpoint_file.h). In amnesia
 * all of it lives in a vfs in memory.
 *
 * Who calls: ledger_tree_extend, the Committer (and the Sequencer while it recovers), in order;
 * ledger_tree_sign and ledger_tree_keep, one task of the service; ledger_tree_settle while nobody
 * extends or signs; everything else any thread. ledger_tree_follower wires it so.
 */
#ifndef RON_LEDGER_TREE_H
#define RON_LEDGER_TREE_H

#include "io/tlog.h"
#include "ledger/port.h"

struct ledger_tree; /* opaque */
struct ledger_follower;

struct ledger_tree_options {
    struct io_vfs *vfs; /* borrowed; a memory vfs for amnesia */
    const char *dir;    /* "ledger/tiles" */
    const char *key;    /* path of the log key: "ledger/log.key"; made on first start */
    const char *origin; /* of the log, and name of its key: "ron.example/ledger"; copied */
    uint64_t cache_bytes;
    uint64_t log_size; /* records of the log: one that is not empty has a key */
    bool direct;       /* tiles of leaves are written past the system's cache (io/tlog.h) */
    bool new_key;      /* an operator's word: the key is lost, and one may be made all the same */
};
/* RON_ERR_CONFLICT: the key is of another origin, or there is none where there are tiles or records
 * (a new key would be a new log to everybody who knows the old one); RON_ERR_MALFORMED: the origin
 * is no name, or the key's file damaged; RON_ERR_VERSION_SKEW: key or tiles are newer. Damaged
 * tiles are no error: ledger_tree_size is then 0 and the log gives them again. */
enum ron_err ledger_tree_open(const struct ledger_tree_options *options,
                              struct ledger_tree **ret_tree,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Was its key made by this start? */
bool ledger_tree_key_made(const struct ledger_tree *tree);
/* Syncs nothing. Nobody waits any more. Accepts NULL, returns NULL. */
struct ledger_tree *ledger_tree_free(struct ledger_tree *tree) RON_BLOCKS;
/* For struct ledger_service_options; borrows the tree, which serves one service: whose end cancels
 * it. Tiles are written LEDGER_KEEP_MS after a head, or when they take a part of the room they have
 * in memory, and synced when 8 s have passed since the last time. */
struct ledger_follower ledger_tree_follower(struct ledger_tree *tree);

/* Append the leaf hashes of whole committed batches: entries seq_start .. seq_start + hashes_count
 * - 1; nodes: see io_tlog_append. Those the tree has already are passed over (recovery), but a gap
 * is a bug. Writes tiles where there is no room for more. An error means that tiles cannot be
 * written and is final: heads and proofs stop at the last good size. */
enum ron_err ledger_tree_extend(struct ledger_tree *tree, uint64_t seq_start,
                                const struct ron_sha256 *hashes, size_t hashes_count,
                                const struct ron_sha256 *nodes,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The log is read and this is its head: a tree that is longer, or has another root there, is
 * emptied, for the log to be given again, once in a tree's life. RON_ERR_CHAIN_MISMATCH: the log
 * does not have what a stored checkpoint counts; nothing is signed then, since it would contradict.
 */
enum ron_err ledger_tree_settle(struct ledger_tree *tree, const struct ledger_root *head,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The log is damaged: instead of a new head the one on disk is the checkpoint, if tiles have it.
 * Nothing is signed, nothing changes. RON_ERR_NOT_FOUND: none was signed; RON_ERR_CHAIN_MISMATCH:
 * the tiles are another tree's. While nobody signs. */
enum ron_err ledger_tree_recall(struct ledger_tree *tree,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Sign this committed head: from now on it is the checkpoint. Asserts that the tree has this root
 * at this size and that heads never go back. RON_ERR_NOT_FOUND beyond the tree's size. */
enum ron_err ledger_tree_sign(struct ledger_tree *tree, const struct ledger_root *head,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Write tiles out; with `sync`, durable, and the newest head with them (before a snapshot is
 * named). An error is final. */
enum ron_err ledger_tree_keep(struct ledger_tree *tree, bool sync,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

uint64_t ledger_tree_size(struct ledger_tree *tree);
/* Append the signed note of the newest head. RON_ERR_NOT_READY before the first. */
enum ron_err ledger_tree_checkpoint(struct ledger_tree *tree, struct ron_buf *out,
                                    uint64_t *ret_size, struct ron_errinfo *reterr) RON_MUST_USE;
const char *ledger_tree_vkey(const struct ledger_tree *tree);
/* Wait until a head of at least this size is signed. RON_ERR_TIMEOUT, RON_ERR_CANCELED; RON_ERR_IO:
 * it will not be, because tiles cannot be written. */
enum ron_err ledger_tree_await(struct ledger_tree *tree, uint64_t size, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Nobody is left waiting: RON_ERR_CANCELED from now on, unless such a head is there. Heads that are
 * signed afterwards count. */
void ledger_tree_cancel(struct ledger_tree *tree);
/* Append the tlog-proof text of entry seq under the newest signed head. RON_ERR_NOT_FOUND: there is
 * no such entry under it (seq counts from 1); RON_ERR_NOT_READY before the first head;
 * RON_ERR_BUSY, RON_ERR_WAL_CORRUPT as io/tlog. */
enum ron_err ledger_tree_proof_text(struct ledger_tree *tree, uint64_t seq, struct ron_buf *out,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Proofs at any size, and hash tiles: straight from io/tlog, for sizes up to the checkpoint's.
 * Lives as long as the tree. */
struct io_tlog *ledger_tree_log(struct ledger_tree *tree);

#endif
