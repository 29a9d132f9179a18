/*
 * core.h - the ledger's state machine: stamped commands in, entries, roots and balances out.
 *
 * Pure: no clock, thread, file or randomness inside, and no allocation after ledger_core_new. Same
 * commands, same bytes, on any machine. The rules are docs/ledger-core.md, the bytes
 * docs/formats.md.
 *
 * Two views live in one table, one writer each. The *sequencer* applies commands to the pending
 * view; each applied batch fills a struct ledger_batch. The *committer* seals it (leaf hashes,
 * roots), writes it to the log and commits it to the committed view, in the order of the batches.
 * *Readers*, on any thread and without locks, see committed balances only. Which functions belong
 * to whom is said below; everything else needs the two writers to stand still.
 */
#ifndef RON_LEDGER_CORE_H
#define RON_LEDGER_CORE_H

#include "base/merkle_frontier.h"
#include "ledger/core_balance.h"
#include "ledger/core_command.h"

/* How much the core may ever hold. Beyond it: RON_ERR_BUSY. Windows forget the oldest instead, if
 * the archive has the function to ask for it; nothing is forgotten that nobody remembers: neither
 * what is not committed yet. */
struct ledger_capacity {
    uint32_t accounts_max; /* known names: also payees of holds and accounts with limits */
    uint32_t rows_max;     /* (account, asset) */
    uint32_t names_size_max;
    uint32_t assets_max;
    uint32_t holds_max;      /* for ever: a hold_id is used once */
    uint32_t reversals_max;  /* entries that were reversed, in part or whole */
    uint32_t limits_max;     /* rows that have or had limits */
    uint32_t runs_max;       /* (tenant, epoch_id) */
    uint32_t streams_max;    /* (tenant, dimension) */
    uint32_t entries_window; /* newest entries known by id and by nonce */
    uint32_t batches_window; /* newest batches whose replies are known */
    uint32_t keys_window;    /* newest idempotency keys */
    uint32_t pending_max;    /* batches applied and not yet committed */
};
/* Everything from the number of accounts: what tests and tools use. */
struct ledger_capacity ledger_capacity_of(uint32_t accounts_max);

/* Exactness beyond the windows. Any function may be NULL (the first two both or neither): then its
 * window forgets nothing, and is full one day. Called by the sequencer; find_reply and failed by
 * the committer too. Entries and keys are asked for only where the windows have forgotten them: of
 * batches after batch_max they have all, and what the archive says of those is not needed. Replies
 * are asked for of any committed batch. */
struct ledger_key {
    struct ledger_id id; /* of (tenant, caller, key) */
    struct ron_b3 fingerprint;
    uint64_t batch;
};
/* Keys of INTENTS are their own kind. */
struct ledger_id ledger_key_id(const struct ledger_stamp *stamp, enum ledger_command_kind command,
                               struct ron_slice key);
struct ledger_reply {
    uint64_t batch;
    uint64_t seq_start;
    uint64_t seq_end; /* also the size of the tree */
    uint64_t commit_ms;
    struct ron_sha256 root;
};
struct ledger_ids { /* so many bytes from one to the next */
    const struct ledger_id *first;
    size_t stride;
    uint32_t count;
};
struct ledger_archive {
    void *context;
    bool (*find_entry)(void *context, const struct ledger_id *id, uint64_t batch_max,
                       struct ledger_entry *ret_entry);
    bool (*find_nonce)(void *context, const struct ledger_id *debit, uint64_t nonce,
                       uint64_t batch_max, struct ledger_entry *ret_entry);
    bool (*find_key)(void *context, const struct ledger_id *id, uint64_t batch_max,
                     struct ledger_key *ret_key);
    /* Which of many ids find_entry might find, asked together: bit i % 64 of ret_bits[i / 64].
     * NULL: any of them. */
    void (*may_have)(void *context, const struct ledger_ids *ids, uint64_t batch_max,
                     uint64_t *ret_bits);
    bool (*find_reply)(void *context, uint64_t batch, struct ledger_reply *ret_reply);
    /* Entries and keys up to this batch are known here; only they may be forgotten by a window.
     * Never falls. NULL: everything that is committed. */
    uint64_t (*last_batch)(void *context);
    /* RON_ERR_OK, or the first error that kept it from knowing: for ever from then on. A question
     * that could not be answered looks like "not found", so whoever asked looks here before it
     * believes that: no command is applied or answered after an error. NULL: it cannot fail. */
    enum ron_err (*failed)(void *context, struct ron_errinfo *reterr);
};

struct ledger_core;
struct ledger_batch;

/* RON_ERR_NO_MEMORY. archive is copied; NULL is an empty one. The caller owns *ret_core. */
enum ron_err ledger_core_new(const struct ledger_capacity *capacity,
                             const struct ledger_archive *archive, struct ledger_core **ret_core,
                             struct ron_errinfo *reterr) RON_MUST_USE;
struct ledger_core *ledger_core_free(struct ledger_core *core); /* accepts NULL, returns NULL */

/* What a refusal says beside its code (docs/ledger-core.md names what comes when). */
#define LEDGER_DETAIL_AVAILABLE 0x01u
#define LEDGER_DETAIL_NONCE     0x02u
#define LEDGER_DETAIL_LIMIT     0x04u
#define LEDGER_DETAIL_SERVER_MS 0x08u
#define LEDGER_DETAIL_CHUNK     0x10u
#define LEDGER_DETAIL_SEQ       0x20u
#define LEDGER_DETAIL_INDEX     0x40u
struct ledger_refusal {
    unsigned present; /* LEDGER_DETAIL_ bits */
    uint32_t index;   /* of the entry, in the command's order */
    struct ron_u128 available;
    uint64_t expected; /* nonce, chunk or seq */
    uint64_t server_ms;
    const char *limit; /* static text */
};

struct ledger_result {
    bool applied;   /* a batch was made; else nothing changed */
    bool replay;    /* known key: answer as for `batch` */
    bool duplicate; /* known content: answer as for `batch` */
    uint64_t batch; /* 0: nothing to do (expire), or from before the first batch (asset roc) */
    uint64_t seq_start;
    uint64_t seq_end;
};

/* Sequencer. Was the command's key used? Then apply answers as before, or with a conflict. */
bool ledger_core_knows_key(const struct ledger_core *core, const struct ledger_command *command);
/* Sequencer. Apply all of the command to the pending view or nothing. batch must be empty and large
 * enough (RON_ERR_TOO_LARGE); if a batch was made the core borrows it until it is committed or
 * dropped. On refusal *ret_refusal is filled, and only then. */
enum ron_err ledger_core_apply(struct ledger_core *core, const struct ledger_command *command,
                               struct ledger_batch *batch, struct ledger_result *ret_result,
                               struct ledger_refusal *ret_refusal,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* Sequencer. Bring what a small command will be looked up by nearer, while others are applied: step
 * 0, 1, 2, each expecting the one before to have arrived. Changes nothing. */
void ledger_core_prefetch(const struct ledger_core *core, const struct ledger_command *command,
                          unsigned step);
/* Both writers standing still: throw away what is applied and not committed. */
void ledger_core_rebuild(struct ledger_core *core);

/* Committer. Hash the leaves and extend the tree, batch by batch in order. */
void ledger_core_seal(struct ledger_core *core, struct ledger_batch *batch);
/* The same for two that follow one another: small ones cost little more than one. */
void ledger_core_seal_two(struct ledger_core *core, struct ledger_batch *const batches[static 2]);
/* Committer. What publishing a small batch will touch. Changes nothing. */
void ledger_core_prefetch_commit(const struct ledger_core *core, const struct ledger_batch *batch);
/* Standstill. The tree with everything that is committed. */
struct ron_merkle_frontier ledger_core_frontier(const struct ledger_core *core);
/* Committer. Publish a sealed batch, in order, and let go of it. */
void ledger_core_commit(struct ledger_core *core, struct ledger_batch *batch);
/* Committer. The reply of a sealed batch: RON_ERR_PRUNED if neither window nor archive has it;
 * errors of the archive. */
enum ron_err ledger_core_reply(const struct ledger_core *core, uint64_t batch,
                               struct ledger_reply *ret_reply,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* Readers, any thread: the committed view; balances are core_balance.h. */
uint64_t ledger_core_committed_seq(const struct ledger_core *core);
/* The name of an account that a committed entry speaks of: it stays where it is as long as the core
 * does. Empty if there is no such account. */
struct ron_slice ledger_core_name(const struct ledger_core *core, const struct ledger_id *account);

/* The rest belongs to the sequencer, or needs standstill where it says so. */
bool ledger_core_find_asset(const struct ledger_core *core, struct ron_slice name,
                            uint32_t *ret_number) RON_MUST_USE;
bool ledger_core_find_entry(const struct ledger_core *core, const struct ledger_id *id,
                            struct ledger_entry *ret_entry) RON_MUST_USE;
/* Standstill. issued, burned, and the sum of all balances but sys/mint's less all debts; false if
 * the sum does not fit. They are equal to one another as docs/ledger-core.md says. */
bool ledger_core_totals(const struct ledger_core *core, uint32_t asset, struct ron_u128 *ret_issued,
                        struct ron_u128 *ret_burned, struct ron_u128 *ret_sum) RON_MUST_USE;
/* Standstill. RFC 6962 root over the committed rows (docs/formats.md); allocates its scratch. */
enum ron_err ledger_core_state_root(const struct ledger_core *core, struct ron_sha256 *ret_root,
                                    uint64_t *ret_rows_count,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* Standstill. BLAKE3 over the whole pending state, in memory order: equal before and after a
 * refusal. For tests. */
struct ron_b3 ledger_core_digest(const struct ledger_core *core);
/* Standstill. After ledger_snapshot_load: the first batch whose frame the windows need
 * (ledger_replay_remember) before anything is applied; 0: none. */
uint64_t ledger_core_missing(const struct ledger_core *core);
/* Standstill. Check every invariant of src/ledger/README.md; NULL or the first one broken. */
const char *ledger_core_check(const struct ledger_core *core);
/* How full the tables that never shrink are. */
struct ledger_usage {
    uint32_t accounts, rows, names_size, assets, holds, reversals, limits, runs, streams;
};
struct ledger_usage ledger_core_usage(const struct ledger_core *core);
/* Bytes taken at birth, and of those by accounts, their rows, index and names. */
size_t ledger_core_size(const struct ledger_core *core, size_t *ret_accounts_size);

#endif
