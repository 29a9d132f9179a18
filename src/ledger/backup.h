/*
 * backup.h - a copy of a ledger's data directory, made while its server runs or not, and what it
 * claims to be.
 *
 * What others count is copied before what it is counted in (signed head, tiles, then the log), and
 * everything of the log from its end to its beginning: it only grows at the end, so whatever is in
 * the copy, all that was before it is too. What was being written is a torn tail, which nobody was
 * told of. A copy that was not finished therefore lacks its beginning, and no check takes it for
 * whole; one that was says so in its *note*, `backup.json`, which is written last and at once.
 */
#ifndef RON_LEDGER_BACKUP_H
#define RON_LEDGER_BACKUP_H

#include "base/sha256.h"
#include "io/vfs.h"

struct ledger_copy_options {
    struct io_vfs *from, *to;      /* may be the same */
    const char *from_dir, *to_dir; /* that hold "ledger"; "" is the root */
    bool with_key;                 /* the key that signs: who has it signs in this log's name */
    /* After every piece of a file; an error ends the copy. NULL: none. */
    enum ron_err (*tick)(void *context, const char *dir, uint64_t files_done, uint64_t files_total,
                         struct ron_errinfo *reterr);
    void *context;
};
struct ledger_copy_report {
    uint64_t files_count, bytes_count;
    bool has_key;
};
/* Everything is durable on RON_ERR_OK. RON_ERR_CONFLICT: there is something in to_dir already
 * (empty directories of an earlier attempt are fine); RON_ERR_NOT_FOUND: no ledger in from_dir;
 * RON_ERR_PERSISTENCE_FULL; errors of tick and of vfs.h. After another error than RON_ERR_CONFLICT
 * what was copied is removed again, as far as possible, with the directories made for it. */
enum ron_err ledger_copy(const struct ledger_copy_options *options,
                         struct ledger_copy_report *ret_report,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Remove every file of a copy; its directories stay, empty. */
void ledger_copy_remove(struct io_vfs *vfs, const char *dir) RON_BLOCKS;

/* What a backup claims. */
struct ledger_backup_note {
    uint64_t entries_count;
    struct ron_sha256 root; /* of all of them */
    uint64_t made_ms;
    bool has_key;
};
/* Read the log of a copy again, every sum and link of it, and say how far it goes; no batch is done
 * again, so that it takes no memory to speak of (ledger_verify_dir does the rest). tick is asked
 * here, too. RON_ERR_WAL_CORRUPT. */
enum ron_err ledger_copy_check(const struct ledger_copy_options *options,
                               struct ledger_backup_note *ret_note,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err ledger_backup_note_write(struct io_vfs *vfs, const char *dir,
                                      const struct ledger_backup_note *note,
                                      struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* RON_ERR_NOT_FOUND: not a backup, or not finished; RON_ERR_MALFORMED. */
enum ron_err ledger_backup_note_read(struct io_vfs *vfs, const char *dir,
                                     struct ledger_backup_note *ret_note,
                                     struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
