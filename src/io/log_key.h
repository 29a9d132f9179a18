/*
 * log_key.h - the key that signs a log's checkpoints.
 *
 * Made on the first start from random bytes, kept in one text file of mode 0600:
 *
 *     ron-log-key v1
 *     name <origin of the log>
 *     seed <base64 of 32 bytes>
 *     public <base64 of the 32 bytes that follow from it>
 *
 * Exactly these lines. A damaged file, a newer version or another name is refused and nothing is
 * changed: a new key would be a new log. The public key is there to notice a damaged seed.
 */
#ifndef RON_IO_LOG_KEY_H
#define RON_IO_LOG_KEY_H

#include "io/note.h"
#include "io/vfs.h"

struct io_log_key; /* opaque; any thread may read it */

/* RON_ERR_NOT_FOUND; RON_ERR_MALFORMED and RON_ERR_VERSION_SKEW (the file), RON_ERR_CONFLICT (the
 * key of another name). `name` must be ron_key_name_valid; empty: whichever the file says. */
enum ron_err io_log_key_load(struct io_vfs *vfs, const char *path, struct ron_slice name,
                             struct io_log_key **ret_key,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Load it; make it where there is none: durable under its name when this returns. One process at a
 * time (the owner of the data directory). */
enum ron_err io_log_key_load_or_make(struct io_vfs *vfs, const char *path, struct ron_slice name,
                                     struct io_log_key **ret_key,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Accepts NULL, returns NULL. */
struct io_log_key *io_log_key_free(struct io_log_key *key);

/* Borrows from the key. */
struct io_signer io_log_key_signer(const struct io_log_key *key);
/* Its public half as text, for `GET /checkpoint/vkey`. */
const char *io_log_key_vkey(const struct io_log_key *key);

#endif
