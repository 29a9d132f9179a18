/*
 * archive.h - ids, nonces and idempotency keys for ever: what the core's windows have forgotten is
 * found in the frames of the engine, by the core and its prevalidators and, entries by id, by the
 * books.
 *
 * Every frame tells the engine's index its keys of 16 bytes: the ids of its entries, the id of its
 * idempotency key, and for entries with a nonce the first half of BLAKE3("ron:nonce:v1" domain,
 * debit || nonce). `sub` says which of them it is and, above it, which entry. A hit is believed
 * only when the frame itself has what was asked for; places that do not are passed over. The ids of
 * a batch are asked together, and many segments by one filter (io/log_gate.h), so a miss costs some
 * ten nanoseconds for each of these. Of a large batch they are asked by a prevalidator, as far as
 * the index goes; the core asks for what the windows do not cover any more and nobody asked before.
 *
 * Whatever keeps it from knowing (a page or a frame that cannot be read, no memory) is kept: from
 * then on every question is answered with that error (struct ledger_archive, failed), the service
 * goes to SafeMode(damaged) and takes no more commands. "Not found" is never a guess.
 */
#ifndef RON_LEDGER_ARCHIVE_H
#define RON_LEDGER_ARCHIVE_H

#include "ledger/core.h"
#include "ledger/core_frame.h"
#include "ledger/engine.h"

typedef void ledger_emit_fn(void *index, const uint8_t key[16], uint32_t sub);
/* All keys of a frame. One whose parts cannot be told has none; neither that one nor one with a bad
 * leaf replays. */
void ledger_archive_keys(struct ron_slice frame, ledger_emit_fn *emit, void *index);

/* Opaque: one archive. Replies and its failure are asked for by any thread, the rest by one. */
struct ledger_store;
/* The engine is borrowed and has an index. */
enum ron_err ledger_store_new(struct ledger_engine *engine, struct ledger_store **ret_store,
                              struct ron_errinfo *reterr) RON_MUST_USE;
struct ledger_store *ledger_store_free(struct ledger_store *store); /* accepts NULL, returns NULL */
/* What the core asks; lives as long as the store. */
struct ledger_archive ledger_store_archive(struct ledger_store *store);

/* Any thread, for a command of so many ids: which of them its index may have, bit by bit as
 * ledger_sifted says, of the batches up to *ret_batch_max, which is as far as the index goes: those
 * that pass the filters, without those that are not in its pages either, up to the first that is
 * (or cannot be looked for). Without repetitions few pass. */
enum ron_err ledger_archive_sift(struct ledger_engine *engine, const struct ledger_ids *ids,
                                 uint64_t *ret_bits, uint64_t *ret_batch_max,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Any thread: an entry of the batches up to batch_max by its id, as far as the engine's index goes,
 * in its frame, which is read into buf. RON_ERR_NOT_FOUND, also of an engine without an index; any
 * other error means that it is not known, and stays with who asked. */
enum ron_err ledger_archive_entry(struct ledger_engine *engine, const struct ledger_id *id,
                                  uint64_t batch_max, struct ron_buf *buf,
                                  struct ledger_frame *ret_frame, uint64_t *ret_seq,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
