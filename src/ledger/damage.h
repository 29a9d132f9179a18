/*
 * damage.h - what SafeMode(damaged) is about, and the mark that keeps it over a restart.
 *
 * The mark is one small file (docs/formats.md), written durably once damage is found or the log
 * failed; while it is there no start leaves SafeMode without an operator. What it says is for
 * people: one that cannot be read counts like any other.
 */
#ifndef RON_LEDGER_DAMAGE_H
#define RON_LEDGER_DAMAGE_H

#include "base/bytes.h"
#include "ron/types.h"
#include "rt/lock_classes.h"

struct io_vfs;

enum { LEDGER_DAMAGE_FILE_SIZE = 256 };
struct ledger_damage_place {
    char file[LEDGER_DAMAGE_FILE_SIZE]; /* "": nowhere in particular */
    uint64_t offset;
};
struct ledger_damage {
    struct ron_errinfo info; /* err OK: none */
    struct ledger_damage_place place;
    uint64_t found_ms;
    uint64_t good_seq; /* the last one that was known to be good then */
    struct ron_sha256 good_root;
};

/* Durable when it returns OK; its directory must be there. One caller at a time. */
enum ron_err ledger_damage_mark(struct io_vfs *vfs, const char *path,
                                const struct ledger_damage *damage,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* RON_ERR_NOT_FOUND: there is no mark. Any other error: there may be one. */
enum ron_err ledger_damage_read(struct io_vfs *vfs, const char *path,
                                struct ledger_damage *ret_damage,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Durably gone when it returns OK; so is one that was not there. */
enum ron_err ledger_damage_unmark(struct io_vfs *vfs, const char *path,
                                  struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
