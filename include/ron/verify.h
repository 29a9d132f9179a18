/*
 * ron/verify.h - check what a transparency log says, without trusting it.
 *
 * Everything here is pure: no file, clock, thread, allocation or global state; results borrow from
 * the text they were read from. The formats are those logs share: RFC 6962 trees and C2SP signed
 * notes, checkpoints, cosignatures and proofs (docs/formats.md, "Transparency log"). Readers are
 * strict and bounded; whatever they refuse, they say where and why.
 *
 * Errors: RON_ERR_MALFORMED (grammar), RON_ERR_TOO_LARGE (a bound below), RON_ERR_INVALID_SIGNATURE
 * (of a known key, or none of one), RON_ERR_QUORUM_FAILED (too few witnesses), RON_ERR_CONFLICT
 * (another log), RON_ERR_CHAIN_MISMATCH (the proof does not lead to the root).
 */
#ifndef RON_VERIFY_H
#define RON_VERIFY_H

#include "ron/error.h"
#include "ron/types.h"

enum {
    RON_PROOF_HASHES_MAX = 64,       /* inclusion: one a level */
    RON_CONSISTENCY_HASHES_MAX = 65, /* and one more */
    RON_NOTE_SIZE_MAX = 256 << 10,
    RON_NOTE_SIGNATURES_MAX = 32,
    RON_SIGNATURE_KEPT_MAX = 72, /* bytes behind the key id; a longer one is of an unknown type */
    RON_CHECKPOINT_SIZE_MAX = 4096, /* of its text */
    RON_KEY_NAME_SIZE_MAX = 255,
    RON_VKEY_SIZE_MAX = RON_KEY_NAME_SIZE_MAX + 1 + 8 + 1 + 44,
    RON_VKEYS_MAX = 64, /* in one check */
};

/* ---- Trees (RFC 6962) ---- */

struct ron_tree {
    uint64_t size;
    struct ron_sha256 root; /* SHA-256 of nothing for size 0 */
};

struct ron_sha256 ron_verify_leaf_hash(const void *data, size_t size);
/* The leaf stands at `index` of the tree. */
enum ron_err ron_verify_inclusion(const struct ron_sha256 *leaf, uint64_t index,
                                  const struct ron_tree *tree, const struct ron_sha256 *proof,
                                  size_t proof_count, struct ron_errinfo *reterr) RON_MUST_USE;
/* The tree begins with all of `old`, unchanged. From size 0 there is nothing to prove: the proof is
 * empty and the root that of the empty tree. */
enum ron_err ron_verify_consistency(const struct ron_tree *old, const struct ron_tree *tree,
                                    const struct ron_sha256 *proof, size_t proof_count,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Keys and signed notes (c2sp.org/signed-note) ---- */

enum ron_key_type { RON_KEY_ED25519 = 1, RON_KEY_COSIGNATURE = 4 };

/* Who may sign: the text form is name+<8 hex digits of the id>+base64(type || public key). */
struct ron_vkey {
    struct ron_slice name; /* borrowed */
    enum ron_key_type type;
    uint32_t id;
    uint8_t public_key[32];
};
/* Is it fit for the name of a key: UTF-8, 1..255 bytes, no space of any kind, no '+', no control
 * character? */
bool ron_key_name_valid(struct ron_slice name);
/* First 4 bytes, big-endian, of SHA-256(name || "\n" || type || public key). */
uint32_t ron_key_id(struct ron_slice name, enum ron_key_type type, const uint8_t public_key[32]);
enum ron_err ron_vkey_parse(struct ron_slice text, struct ron_vkey *ret_key,
                            struct ron_errinfo *reterr) RON_MUST_USE;

struct ron_note_signature {
    struct ron_slice line; /* without its newline, as it stands */
    struct ron_slice name;
    uint32_t key_id;
    size_t size;                           /* behind the key id */
    uint8_t bytes[RON_SIGNATURE_KEPT_MAX]; /* as many of them as there is room for */
};
struct ron_note {
    struct ron_slice text; /* what is signed, its last newline included */
    size_t signatures_count;
    struct ron_note_signature signatures[RON_NOTE_SIGNATURES_MAX];
};
enum ron_err ron_note_parse(struct ron_slice bytes, struct ron_note *ret_note,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* Check every signature of a known key (name and id); unknown ones are passed over. Bit i of
 * *ret_signers is set if keys[i] signed. One bad signature of a known key, or none of any: refused.
 */
enum ron_err ron_note_verify(const struct ron_note *note, const struct ron_vkey *keys,
                             size_t keys_count, uint64_t *ret_signers,
                             struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Checkpoints (c2sp.org/tlog-checkpoint, tlog-cosignature) ---- */

struct ron_checkpoint {
    struct ron_slice origin;
    struct ron_tree tree;
    struct ron_slice extensions; /* further lines with their newlines; often empty */
};
/* The text of a note, not yet trusted. */
enum ron_err ron_checkpoint_parse(struct ron_slice text, struct ron_checkpoint *ret_checkpoint,
                                  struct ron_errinfo *reterr) RON_MUST_USE;

/* Whom to believe. */
struct ron_trust {
    struct ron_slice origin; /* of the log; empty: the name of its key */
    const struct ron_vkey *log;
    const struct ron_vkey *witnesses; /* at most RON_VKEYS_MAX - 1; may be NULL */
    size_t witnesses_count;
    size_t quorum; /* of the witnesses, how many must have signed as well; 0: none */
};
/* The log and enough witnesses signed it, and it is that log's. */
enum ron_err ron_verify_checkpoint(struct ron_slice note, const struct ron_trust *trust,
                                   struct ron_checkpoint *ret_checkpoint,
                                   struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Proofs as text (c2sp.org/tlog-proof@v1) ---- */

struct ron_proof {
    struct ron_slice extra; /* base64, not authenticated; empty if there is none */
    uint64_t index;
    size_t hashes_count;
    struct ron_sha256 hashes[RON_PROOF_HASHES_MAX];
    struct ron_slice note; /* of the checkpoint */
};
enum ron_err ron_proof_parse(struct ron_slice text, struct ron_proof *ret_proof,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* The leaf stands in the log, under a checkpoint that ron_verify_checkpoint accepts. Both results
 * may be NULL. */
enum ron_err ron_verify_proof(struct ron_slice text, const struct ron_sha256 *leaf,
                              const struct ron_trust *trust, uint64_t *ret_index,
                              struct ron_checkpoint *ret_checkpoint,
                              struct ron_errinfo *reterr) RON_MUST_USE;

/* ---- Balances of a ron ledger (docs/formats.md, "Balance proof") ---- */

enum { RON_ROW_SIZE = 44, RON_ACCOUNT_ID_SIZE = 16 };

/* BLAKE3("ron:account:v1" NUL name), first 16 bytes. */
void ron_account_id(struct ron_slice name, uint8_t ret_id[RON_ACCOUNT_ID_SIZE]);

/* A row of a state and its path to the state's root. */
struct ron_row_proof {
    uint64_t index;
    struct ron_slice leaf; /* RON_ROW_SIZE bytes */
    const struct ron_sha256 *hashes;
    size_t hashes_count;
};
struct ron_balance_proof {
    uint64_t state_size; /* rows of the state */
    /* The row; or, of one that is not there, those on both sides, or the one there is. */
    struct ron_row_proof rows[2];
    size_t rows_count;
    struct ron_slice anchor; /* leaf of the Anchor that holds the state's root */
    struct ron_slice proof;  /* tlog-proof text of that leaf */
};
struct ron_balance {
    bool present;                       /* else no entry had touched it */
    uint64_t balance_high, balance_low; /* 0 if absent; a debt d is 2^128 - d */
    uint64_t next_nonce;                /* 0 if absent: the rows of other assets may have one */
    uint64_t as_of_seq;                 /* the state is that after this entry, not the newest */
    uint64_t anchor_seq;
};
/* What (account, asset) held after entry as_of_seq, by an Anchor in the log. ret_checkpoint may be
 * NULL. That states are complete and in order is what the ledger claims with the Anchor; doing the
 * log again (`ron ledger replay`) checks it. */
enum ron_err ron_verify_balance(const struct ron_balance_proof *proof,
                                const uint8_t account[RON_ACCOUNT_ID_SIZE], uint32_t asset,
                                const struct ron_trust *trust, struct ron_balance *ret_balance,
                                struct ron_checkpoint *ret_checkpoint,
                                struct ron_errinfo *reterr) RON_MUST_USE;

#endif
