/*
 * core_batch.h - one applied batch: its entries, what the frame needs, and how to undo it.
 *
 * Caller's memory, made once and used again. Sequencer fills it, committer seals and commits it;
 * then it is empty again.
 */
#ifndef RON_LEDGER_CORE_BATCH_H
#define RON_LEDGER_CORE_BATCH_H

#include "base/merkle_frontier.h"
#include "ledger/core_command.h"

/* A row that the batch touched, as it is afterwards: what the committed view takes over, and all
 * that the committer needs, for it comes from another processor's cache. */
struct ledger_cell {
    struct ron_u128 balance;
    uint64_t nonce; /* of its account */
    uint32_t row_flags;
    uint32_t home; /* the account's home row, or LEDGER_CELL_SINGLE */
};
_Static_assert(sizeof(struct ledger_cell) == 32, "two in a cache line");

/* The row is its account's home, and the only one of it that the batch touched. */
#define LEDGER_CELL_SINGLE UINT32_MAX

/* The row and its flags are one word, written as one: who would write a part of it would first have
 * to read the rest, and wait for that. */
enum { LEDGER_CELL_FLAGS_BITS = 2 };
#define LEDGER_ROWS_MAX (UINT32_C(1) << (32 - LEDGER_CELL_FLAGS_BITS))
static inline uint32_t ledger_cell_row_flags(uint32_t row, uint8_t flags)
{
    return row << LEDGER_CELL_FLAGS_BITS | flags;
}
static inline uint32_t ledger_cell_row(const struct ledger_cell *cell)
{
    return cell->row_flags >> LEDGER_CELL_FLAGS_BITS;
}
static inline uint8_t ledger_cell_flags(const struct ledger_cell *cell)
{
    return cell->row_flags % (1u << LEDGER_CELL_FLAGS_BITS);
}

/* The same row as it was before the batch, for undoing. */
struct ledger_old_cell {
    struct ron_u128 balance;
    struct ron_u128 daily;
    uint64_t nonce;
    uint32_t day;
    uint8_t flags;
};

/* Fill levels of the append-only tables before the batch. */
struct ledger_marks {
    uint64_t batch_last, seq_last, commit_ms_last, keys_end;
    uint32_t accounts, rows, names, assets, holds, reversals, limits, runs, streams;
};

/* The one record of each other kind that a command may change, as it was. */
struct ledger_old_terms {
    bool has_limits, has_frozen, has_run, has_stream;
    uint32_t row, row_limits, account, run, run_chunk, stream;
    uint8_t account_flags;
    bool run_ended;
    struct ron_u128 minimum, maximum, credit_line, daily;
    uint8_t limit_bits;
    uint64_t stream_next, stream_batch;
    uint8_t stream_head[LEDGER_DIGEST_SIZE];
};

struct ledger_batch {
    uint32_t entries_max; /* fixed at birth, as the next two */
    uint32_t ext_max;
    uint32_t texts_max;

    bool pending; /* borrowed by a core */
    bool sealed;
    enum ledger_command_kind command;
    struct ledger_stamp stamp;
    uint64_t number;
    uint64_t seq_start;
    uint32_t entries_count;
    uint32_t ids_count; /* of entries whose ids are in the index: all, or a part while applying */
    uint32_t ext_size;
    uint32_t texts_size;
    uint32_t names_count; /* accounts made known, in order */
    uint32_t cells_count;
    uint32_t body_size;
    uint8_t key_size;
    uint8_t key[RON_IDEM_KEY_SIZE_MAX];
    struct ron_b3 fingerprint;
    struct ron_sha256 previous_root;
    struct ron_sha256 root;
    struct ledger_marks before;
    struct ledger_old_terms old;

    struct ledger_entry *entries;
    uint16_t *ext_sizes;
    uint8_t *ext;   /* one after the other */
    uint8_t *texts; /* id texts: core_id_text.h */
    struct ledger_cell *cells;
    struct ledger_old_cell *old_cells;
    struct ron_sha256 *hashes; /* once sealed: of the leaves, until the batch is used again */
    struct ron_sha256 *nodes;  /* likewise what ron_merkle_frontier_append_keep made of them; not
                                  while a log is replayed */
    uint8_t *body;             /* the command's own part of the frame */
    uint8_t *names;            /* filled at the end: u8 size, bytes */
    uint32_t names_size;
    /* Once sealed: the tree with this batch, as far as it differs from the one before. */
    struct ron_merkle_frontier frontier;
};

enum { LEDGER_BODY_SIZE_MAX = 640 };

/* For batches of up to entries_max entries and ext_max bytes of extensions. RON_ERR_NO_MEMORY. */
enum ron_err ledger_batch_init(struct ledger_batch *batch, uint32_t entries_max, uint32_t ext_max,
                               struct ron_errinfo *reterr) RON_MUST_USE;
void ledger_batch_fini(struct ledger_batch *batch); /* accepts a zeroed one */
void ledger_batch_reset(struct ledger_batch *batch);

/* Bring what a single transfer uses of it nearer, for who will fill, seal or commit it soon: step 0
 * the batch itself, step 1, when that has arrived, the beginnings of its parts. Changes nothing. */
void ledger_batch_prefetch(const struct ledger_batch *batch, unsigned step);

/* The ext of entry index; walks those before it. */
struct ron_slice ledger_batch_ext(const struct ledger_batch *batch, uint32_t index);

#endif
