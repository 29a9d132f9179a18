/*
 * log_recover.h - the two halves of opening a log. Included by log_recover.c, log_repair.c
 * and, for the names of files, log_check.c.
 *
 * First everything is read and checked (log_recover.c); only when nothing is wrong is the disk
 * changed (log_repair.c), in an order that a crash may end anywhere: the torn tail is overwritten
 * and synced, then the owner's new epoch is written, then leftovers are removed, indexes built and,
 * where the log has no open segment, one is made. Doing it again finds the same log.
 */
#ifndef RON_IO_LOG_RECOVER_H
#define RON_IO_LOG_RECOVER_H

#include "io/log_impl.h"

struct log_name {
    enum log_file_kind kind;
    uint64_t number;
    bool is_new; /* "idx-....new" */
};
/* False: no file of a log has such a name. */
bool log_name_parse(const char *name, struct log_name *ret_name) RON_MUST_USE;

struct log_recover {
    struct io_log *log;
    struct io_log_recovery *recovery;
    struct log_name *names;
    size_t names_count, names_capacity;
    bool has_owner;
    enum ron_err err; /* of the listing */
    struct ron_errinfo *reterr;
    struct io_segment_head head; /* of the segment looked at last */
    bool damaged;                /* the log goes up to the damage (IO_LOG_UP_TO_DAMAGE) */
};

enum ron_err log_repair(struct log_recover *recover, const struct log_walk *walk,
                        struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
