/*
 * note.h - write signed notes, checkpoints and proof texts (ron/verify.h reads them).
 *
 * Writers append to a buffer and remember a failure there, as ron_buf_put does: ask once with
 * ron_buf_check. They write only what the readers accept; names and sizes beyond that are bugs of
 * the caller and asserted.
 */
#ifndef RON_IO_NOTE_H
#define RON_IO_NOTE_H

#include "base/secret.h"
#include "ron/verify.h"

enum { IO_PROOF_EXTRA_MAX = 32 << 10 };

/* Who signs; all of it borrowed. */
struct io_signer {
    struct ron_slice name;        /* ron_key_name_valid */
    const struct ron_secret *key; /* Ed25519, better expanded */
};

/* The text form of its public key: for ron_vkey_parse. */
void io_vkey_put(struct ron_buf *out, const struct io_signer *signer, enum ron_key_type type);

/* Text of a checkpoint. */
void io_checkpoint_put(struct ron_buf *out, const struct ron_checkpoint *checkpoint);
/* A note: text (ends in a newline), empty line, signature. Further signatures are further lines. */
void io_note_put(struct ron_buf *out, struct ron_slice text, const struct io_signer *signer);
void io_note_put_signature(struct ron_buf *out, struct ron_slice text,
                           const struct io_signer *signer);
/* The line of a witness (cosignature/v1): it saw this text at time_s and nothing contradicts it. */
void io_note_put_cosignature(struct ron_buf *out, struct ron_slice text,
                             const struct io_signer *signer, uint64_t time_s);

/* The note with further signature lines, as a witness answers them; the lines are kept byte for
 * byte, one that is there already is left out. `out` must be empty. RON_ERR_MALFORMED,
 * RON_ERR_TOO_LARGE (too many); nothing here is verified. */
enum ron_err io_note_add_lines(struct ron_slice note, struct ron_slice lines, struct ron_buf *out,
                               struct ron_errinfo *reterr) RON_MUST_USE;

struct io_proof_text {
    struct ron_slice extra; /* opaque, at most IO_PROOF_EXTRA_MAX; empty: none */
    uint64_t index;
    const struct ron_sha256 *hashes;
    size_t hashes_count;
    struct ron_slice note;
};
void io_proof_put(struct ron_buf *out, const struct io_proof_text *proof);

#endif
