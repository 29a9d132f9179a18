/*
 * ledger_proof.h - what the proofs of entries and of balances share. Private to
 * src/cli/ledger_proof*.c.
 */
#ifndef RON_CLI_LEDGER_PROOF_H
#define RON_CLI_LEDGER_PROOF_H

#include "cli/ledger_impl.h"
#include "ron/verify.h"

int ledger_proof_balance(const struct ledger_args *args) RON_BLOCKS;
/* The log's public key: of --vkey, else the server's own. CMD_OK, or said why. */
int proof_vkey(const struct ledger_args *args, struct session *session,
               struct ron_buf *buf) RON_BLOCKS;
/* A checked JSON array of hashes in hex. */
enum ron_err proof_hashes(struct ron_slice list, struct ron_sha256 hashes[RON_PROOF_HASHES_MAX],
                          size_t *ret_count, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
