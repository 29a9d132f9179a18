/*
 * core_oap.h - the bodies of OAP/1, app_proto 1: binary entries, and names of accounts to open.
 *
 * Pure; keys and names are borrowed. The bytes are frozen by docs/formats.md.
 */
#ifndef RON_LEDGER_CORE_OAP_H
#define RON_LEDGER_CORE_OAP_H

#include "ledger/core_command.h"

/* Code 1, entries: u16 key size, key, u32 count, count entries of 96 bytes: id, debit, credit,
 * amount, link (16 each), nonce u64, asset u32, kind u16, flags u16 = 0.
 * Accounts are known by id alone. The id text is the 32 hex digits of id; an entry's id is made
 * from that text as from any other. Kinds: Mint Burn Transfer Capture Release Reverse Credit Debit;
 * sides that the kind implies are zero, the hold is Capture's and Release's debit, link is the wire
 * id of Reverse's entry, so that a tenant reverses its own.
 *
 * First the head: how many entries there are, and the bytes are just these. RON_ERR_MALFORMED;
 * RON_ERR_TOO_LARGE, more than RON_BATCH_ENTRIES_MAX. Borrows bytes. */
struct ledger_oap_body {
    struct ron_slice key;
    const uint8_t *entries; /* count of RON_WIRE_ENTRY_SIZE bytes */
    uint32_t count;
};
enum ron_err ledger_oap_head(struct ron_slice bytes, struct ledger_oap_body *ret_body,
                             struct ron_errinfo *reterr) RON_MUST_USE;
/* Then the entries, into room for as many ops; what was in it before does not matter. ret_sum: of
 * all of them, for checks that look at nothing else. RON_ERR_MALFORMED, *ret_index is the entry.
 * Ops borrow nothing of the body, but the id text of each is in the op itself: who copies one sees
 * to that. */
struct ledger_oap_sum {
    uint32_t kinds; /* 1 << kind of those that occur */
    struct ron_u128 amount_max;
};
enum ron_err ledger_oap_decode(struct ron_u128 tenant, const struct ledger_oap_body *body,
                               struct ledger_bare_op *ops, struct ledger_oap_sum *ret_sum,
                               uint32_t *ret_index, struct ron_errinfo *reterr) RON_MUST_USE;

/* Code 2, open accounts by name: u16 size, name, and so on to the end. names has room for
 * RON_BATCH_ENTRIES_MAX. RON_ERR_MALFORMED, *ret_index is the name or UINT32_MAX;
 * RON_ERR_TOO_LARGE. Borrows bytes. */
enum ron_err ledger_oap_decode_names(struct ron_slice bytes, struct ron_slice *names,
                                     uint32_t *ret_count, uint32_t *ret_index,
                                     struct ron_errinfo *reterr) RON_MUST_USE;

#endif
