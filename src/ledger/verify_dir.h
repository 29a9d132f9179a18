/*
 * verify_dir.h - check a ledger's data directory, link by link, without a process around it: for
 * `ron ledger verify`.
 *
 *     log       every frame, group and segment of `log` (io/log_check.h)
 *     frames    each batch, done again by a core: entries, names, roots come out as logged
 *     state     the invariants of what that leads to: conservation above all
 *     tiles     every hash in `tiles` is the log's, every tile that of its parent, the root as well
 *     key       the log's key, if it lies in the directory and no other one is given
 *     checkpoint  the signed head among the tiles is one that the log has, and signed by the key;
 *               with a key from elsewhere, a log with entries must have one, or a note
 *     note      so is a checkpoint that came from elsewhere, if one is given
 *
 * Reads only: no lock, no repair, nothing is written. A ledger that runs meanwhile may show a torn
 * tail, which is no damage: it was never acknowledged.
 */
#ifndef RON_LEDGER_VERIFY_DIR_H
#define RON_LEDGER_VERIFY_DIR_H

#include "io/vfs.h"
#include "ledger/core.h"
#include "ron/verify.h"

struct ledger_verify_options {
    struct io_vfs *vfs;
    const char *dir;                 /* "ledger" */
    struct ledger_capacity capacity; /* of the core that does it again: as the service's */
    struct ron_slice vkey;           /* of the log; empty: that of DIR/log.key, if it is there */
    struct ron_slice note;           /* a checkpoint from elsewhere; empty: none */
    /* Bytes of all that is to be read; the log is read twice. NULL: nobody asks. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* What was done about the signature of a head. */
enum ledger_signature {
    LEDGER_SIGNATURE_NO_HEAD,    /* nothing: no head of any entry is there */
    LEDGER_SIGNATURE_UNCHECKED,  /* nothing: no key is there, or none that may be read */
    LEDGER_SIGNATURE_BY_OWN_KEY, /* it is that of the key in the directory: they may be forged
                                    together */
    LEDGER_SIGNATURE_BY_VKEY,    /* it is that of options->vkey */
};

struct ledger_verify_report {
    uint64_t segments_count, bytes_count; /* of the log */
    uint64_t torn_bytes;
    uint64_t batches_count;
    struct ron_tree tree; /* of the log, as far as it was read */
    uint64_t tiles_size;
    uint64_t checkpoint_size;             /* 0: none */
    enum ledger_signature signature;      /* of the head in the directory */
    enum ledger_signature note_signature; /* of the note */
    /* The first broken link: its name above, file, and offset in it. NULL: none is known. */
    const char *link;
    char file[IO_PATH_MAX + 1];
    uint64_t offset;
};

/* RON_ERR_OK: every link holds. Else *ret_report is filled as far as it got; with `link` the error
 * is what broke it (RON_ERR_WAL_CORRUPT, RON_ERR_CHAIN_MISMATCH, RON_ERR_INVALID_SIGNATURE,
 * RON_ERR_MALFORMED, RON_ERR_CONFLICT), without it nothing is known: RON_ERR_NOT_FOUND (no log
 * here), RON_ERR_PRUNED (its beginning is gone), RON_ERR_BUSY (beyond the capacity),
 * RON_ERR_VERSION_SKEW, RON_ERR_NO_MEMORY, RON_ERR_IO. */
enum ron_err ledger_verify_dir(const struct ledger_verify_options *options,
                               struct ledger_verify_report *ret_report,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
