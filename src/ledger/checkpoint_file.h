/*
 * checkpoint_file.h - `checkpoint` among the tiles: the newest signed head that is on disk.
 *
 * The note itself (c2sp.org/tlog-checkpoint), replaced as a whole whenever tiles are synced. It is
 * what a later start and `ron ledger verify` hold the log to: a log that lost what was signed is
 * noticed. Missing, it proves nothing.
 */
#ifndef RON_LEDGER_CHECKPOINT_FILE_H
#define RON_LEDGER_CHECKPOINT_FILE_H

#include "io/vfs.h"
#include "ron/verify.h"

enum { LEDGER_NOTE_SIZE_MAX = 1024 }; /* two names, a number, a root and a signature in base64 */
_Static_assert(2 * RON_KEY_NAME_SIZE_MAX + 256 <= LEDGER_NOTE_SIZE_MAX, "every checkpoint fits");

/* Read it; size 0 and the root of the empty tree where there is none. key NULL: its signature is
 * not looked at. Errors of ron_verify_checkpoint, with the path; RON_ERR_IO. */
enum ron_err ledger_checkpoint_load(struct io_vfs *vfs, const char *dir, const struct ron_vkey *key,
                                    struct ron_tree *ret_tree,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Durable when it returns. One caller at a time. */
enum ron_err ledger_checkpoint_store(struct io_vfs *vfs, const char *dir, struct ron_slice note,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* A note against a key, or without one: see above. */
enum ron_err ledger_checkpoint_read(struct ron_slice note, const struct ron_vkey *key,
                                    struct ron_tree *ret_tree,
                                    struct ron_errinfo *reterr) RON_MUST_USE;

#endif
