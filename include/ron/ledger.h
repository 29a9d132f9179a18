/*
 * ron/ledger.h - a whole ledger inside your program: no server, no token, no network.
 *
 * The same state machine, log, tree and books that `ron serve` runs, on threads of their own. A
 * ledger is a directory (0700, made if it is missing) that one process uses at a time; `ron serve
 * --data` and `ron ledger verify` take the same one. Without a directory it lives in memory, keeps
 * nothing and makes no file.
 *
 * Calls block until they are answered, at most timeout_ms; RON_ERR_OK of a write means durable. A
 * write that was given its place in the log before the time was up is waited for a little longer
 * (a disk's sync). Any thread may call anything but close; as many writes as calls_max go on at
 * once, further ones wait for their turn. The program is trusted: there are no capabilities here,
 * and whoever holds the handle may mint.
 *
 * Conventions are those of ron/error.h: `ret_x` is untouched on failure, `reterr` may be NULL.
 * Texts that are given are borrowed for the call. Rules of entries, accounts and amounts:
 * docs/ledger-core.md. Amounts are decimal digits without sign or point, up to 2^128 - 1.
 *
 *     struct ron_ledger *ledger;
 *     ron_ledger_open("data", NULL, 10000, &ledger, &info);
 *     ron_ledger_write(ledger, &(struct ron_ledger_entry){.id = "m1", .kind = "Mint",
 *                      .to = "alice", .asset = "roc", .amount = "100"}, 1, "key-1", 1000,
 *                      &written, NULL, &info);
 */
#ifndef RON_LEDGER_H
#define RON_LEDGER_H

#include <stdint.h>

#include "ron/verify.h"

struct ron_ledger; /* opaque */

enum {
    RON_LEDGER_AMOUNT_SIZE = 40, /* 39 digits and NUL */
    RON_LEDGER_CALLS_MAX = 64,
    RON_LEDGER_NO_INDEX = -1,
};

struct ron_ledger_options {
    const char *origin;    /* name of the log and its key; NULL: "ron.local/ledger" */
    uint32_t accounts_max; /* 0: 65536; a ledger holds no more, for ever */
    uint64_t tenant;       /* of everything that is written */
    uint64_t memory_max;   /* bytes of a log in memory; 0: 64 MiB */
    uint32_t calls_max;    /* writes at once, about 14 MiB each; 0: 4 */
};
/* path NULL: in memory. options NULL: all zero. Opens, reads the log and waits until it is ready.
 * RON_ERR_CONFLICT: another process has it, or its key is of another origin; RON_ERR_WAL_CORRUPT:
 * damaged (`ron ledger verify` says where); RON_ERR_FORBIDDEN, RON_ERR_VERSION_SKEW,
 * RON_ERR_MALFORMED (calls_max, origin), RON_ERR_TIMEOUT, RON_ERR_NO_MEMORY, RON_ERR_IO. The caller
 * closes it. */
enum ron_err ron_ledger_open(const char *path, const struct ron_ledger_options *options,
                             uint32_t timeout_ms, struct ron_ledger **ret_ledger,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* Finish what is under way, write everything out, end the threads. No other call may be running or
 * come later, whatever is answered. RON_ERR_TIMEOUT: something does not end; its memory is left
 * alone. Accepts NULL. */
enum ron_err ron_ledger_close(struct ron_ledger *ledger, struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Writing ---- */

/* One batch: entries seq_start .. seq_end. */
struct ron_ledger_written {
    uint64_t seq_start, seq_end;
    uint64_t batch;
    uint64_t committed_ms;  /* UTC */
    struct ron_sha256 root; /* of the tree with seq_end entries */
    bool repeated;          /* it was written before: this is its first answer */
};
/* What a refusal is about. */
struct ron_ledger_refusal {
    int64_t index;           /* of the entry, from 0; RON_LEDGER_NO_INDEX */
    bool unknown;            /* it may have been written: ask again with the same key */
    uint64_t expected_nonce; /* 0: says nothing */
    char available[RON_LEDGER_AMOUNT_SIZE]; /* "": says nothing */
};

/* All of a batch or nothing, {"batch":[...],"idem_id":"..."}: the body of POST /ingest, byte for
 * byte the same rules, keys and fingerprints as the server's. key: an idempotency key, NULL for
 * none; the same key and body again is answered as before and changes nothing.
 * RON_ERR_MALFORMED, RON_ERR_TOO_LARGE, RON_ERR_INSUFFICIENT_FUNDS, RON_ERR_NONCE_CONFLICT,
 * RON_ERR_IDEMPOTENCY_CONFLICT, RON_ERR_CONFLICT, RON_ERR_NOT_FOUND (asset, hold, entry),
 * RON_ERR_LIMIT_EXCEEDED, RON_ERR_FORBIDDEN, RON_ERR_BUSY, RON_ERR_TIMEOUT, RON_ERR_SAFE_MODE,
 * RON_ERR_PERSISTENCE_FULL. ret_refusal (may be NULL) is written on failure, and only then. */
enum ron_err ron_ledger_write_json(struct ron_ledger *ledger, struct ron_slice body,
                                   const char *key, uint32_t timeout_ms,
                                   struct ron_ledger_written *ret_written,
                                   struct ron_ledger_refusal *ret_refusal,
                                   struct ron_errinfo *reterr) RON_MUST_USE;

/* An entry as it stands in such a body; NULL and 0: not given. Which members a kind takes:
 * docs/ledger-core.md. */
struct ron_ledger_entry {
    const char *id, *kind; /* "Transfer", "Mint", "Burn", "Hold", "Capture", ... */
    const char *from, *to, *account;
    const char *asset, *amount;
    const char *hold_id, *payee, *expires_at; /* RFC 3339 */
    const char *ref, *memo;
    uint64_t nonce;
};
/* The same, from structs: exactly the body that they spell. */
enum ron_err ron_ledger_write(struct ron_ledger *ledger, const struct ron_ledger_entry *entries,
                              size_t entries_count, const char *key, uint32_t timeout_ms,
                              struct ron_ledger_written *ret_written,
                              struct ron_ledger_refusal *ret_refusal,
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* A new asset ("roc" is there from the start). The same terms again are fine; others
 * RON_ERR_CONFLICT. */
enum ron_err ron_ledger_add_asset(struct ron_ledger *ledger, const char *name, uint32_t decimals,
                                  const char *max_supply, uint32_t timeout_ms,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Reading: what is committed, your own writes included ---- */

struct ron_ledger_balance {
    char amount[RON_LEDGER_AMOUNT_SIZE];
    bool debt;           /* of a credit line: amount is what is owed */
    uint64_t next_nonce; /* 1 for an account that never spent with one */
    uint64_t as_of_seq;
};
/* An account that is not there has nothing. RON_ERR_MALFORMED (no such name can be),
 * RON_ERR_NOT_FOUND (the asset). */
enum ron_err ron_ledger_balance(struct ron_ledger *ledger, const char *account, const char *asset,
                                uint32_t timeout_ms, struct ron_ledger_balance *ret_balance,
                                struct ron_errinfo *reterr) RON_MUST_USE;
/* The tree of everything committed; size 0 before the first entry. Never blocks. */
struct ron_tree ron_ledger_head(struct ron_ledger *ledger);

/* ---- Proving: for ron/verify.h, by anybody, without this library's word ---- */

/* The log's public key, for ron_vkey_parse; lives as long as the ledger. */
const char *ron_ledger_vkey(struct ron_ledger *ledger);
/* Texts are written with a NUL behind them; RON_ERR_TOO_LARGE if they do not fit `size`. */
/* A signed head of at least tree_size entries (RON_CHECKPOINT_SIZE_MAX is always enough). */
enum ron_err ron_ledger_checkpoint(struct ron_ledger *ledger, uint64_t tree_size,
                                   uint32_t timeout_ms, char *ret_text, size_t size,
                                   struct ron_errinfo *reterr) RON_MUST_USE;
/* The proof of entry seq under a signed head, for ron_verify_proof (8 KiB are always enough). */
enum ron_err ron_ledger_proof(struct ron_ledger *ledger, uint64_t seq, uint32_t timeout_ms,
                              char *ret_text, size_t size, struct ron_errinfo *reterr) RON_MUST_USE;
/* The bytes of entry seq that are hashed, for ron_verify_leaf_hash (4 KiB are always enough). */
enum ron_err ron_ledger_leaf(struct ron_ledger *ledger, uint64_t seq, uint32_t timeout_ms,
                             uint8_t *ret_bytes, size_t size, size_t *ret_size,
                             struct ron_errinfo *reterr) RON_MUST_USE;

#endif
