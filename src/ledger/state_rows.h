/*
 * state_rows.h - the rows of a state, as its root is made of them: what a balance is proven with.
 *
 * Written beside a snapshot (snapshots.h), before its Anchor: a file of its own
 * (io/snapshot_file.h, kind LEDGER_ROWS_KIND, the batch as position). Content: the leaves of the
 * state root in their order, LEDGER_ROW_SIZE bytes each; seq u64; state root 32. Derived, and
 * believed only as far as its leaves lead to its root; whether that root is anchored is for the
 * caller to find out.
 *
 * Opening reads it once, to hash every row; in memory stay 84 bytes for 256 rows. A question then
 * reads a few of those blocks.
 */
#ifndef RON_LEDGER_STATE_ROWS_H
#define RON_LEDGER_STATE_ROWS_H

#include "io/vfs.h"
#include "ledger/core_snapshot.h"
#include "ron/verify.h"

enum {
    LEDGER_ROWS_KIND = 0x53444c02, /* "\2LDS" */
    LEDGER_ROWS_VERSION = 1,
    LEDGER_ROWS_TAIL = 8 + RON_SHA256_SIZE,
};

struct ledger_rows; /* opaque; one thread at a time */
struct ledger_rows_info {
    uint64_t seq, batch; /* the state is that after them */
    struct ron_tree tree;
};
/* The newest sound one up to this batch. RON_ERR_NOT_FOUND; RON_ERR_NO_MEMORY. */
enum ron_err ledger_rows_open(struct io_vfs *vfs, const char *dir, uint64_t batch_max,
                              struct ledger_rows **ret_rows,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL. */
struct ledger_rows *ledger_rows_close(struct ledger_rows *rows) RON_BLOCKS;
const struct ledger_rows_info *ledger_rows_info(const struct ledger_rows *rows);

/* How many rows stand before (account, asset), and whether the next one is it. RON_ERR_WAL_CORRUPT,
 * RON_ERR_IO: the file is not what it was. */
enum ron_err ledger_rows_find(struct ledger_rows *rows, const struct ledger_id *account,
                              uint32_t asset, uint64_t *ret_before, bool *ret_found,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* A row and its path, as ron_verify_inclusion takes it. */
struct ledger_row_proof {
    uint64_t index;
    uint8_t leaf[LEDGER_ROW_SIZE];
    struct ron_sha256 hashes[RON_PROOF_HASHES_MAX];
    size_t hashes_count;
};
enum ron_err ledger_rows_prove(struct ledger_rows *rows, uint64_t index,
                               struct ledger_row_proof *ret_proof,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
