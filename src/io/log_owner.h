/*
 * log_owner.h - the file `owner` of a log: who may write it, and the epoch that tells owners apart.
 *
 * The file is locked for as long as the log is open and has two slots of 512 bytes; a change is
 * written to the slot that is not the newest and synced, so a torn one leaves the other. It never
 * grows after its birth: a full disk does not keep a log from being opened.
 *
 *      0 magic "RONOWN\0\1" 8      32 sequence u64: the higher of two valid slots counts
 *      8 version u32 = 1           40 last index u64: known to be durable when this was written
 *     12 kind u32                  48 epoch u32, clean u32 (1: closed, 0: open or crashed)
 *     16 log id 16                 56 CRC-32C of 0..56 u32, zeros to 512
 *
 * Valid: magic, version, sum and zeros fit. A log whose last valid index is below the last index
 * here has lost what was durable: damage.
 */
#ifndef RON_IO_LOG_OWNER_H
#define RON_IO_LOG_OWNER_H

#include "io/vfs.h"

struct log_owner {
    struct io_file *file; /* locked; NULL for read_only logs without one */
    bool fresh;           /* no slot was ever written */
    uint32_t kind;
    uint8_t log_id[16];
    uint64_t sequence;
    uint64_t last_index;
    uint32_t epoch;
    bool clean;
};

/* Open, lock unless read_only, and read. RON_ERR_NOT_FOUND; RON_ERR_CONFLICT: another process has
 * it; RON_ERR_WAL_CORRUPT: both slots are damaged; RON_ERR_VERSION_SKEW; RON_ERR_MALFORMED. */
enum ron_err log_owner_open(struct log_owner *owner, struct io_vfs *vfs, const char *path,
                            bool read_only, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Make the file, empty, and lock it. */
enum ron_err log_owner_create(struct log_owner *owner, struct io_vfs *vfs, const char *path,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Write the fields above into the older slot and sync. */
enum ron_err log_owner_write(struct log_owner *owner,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void log_owner_close(struct log_owner *owner) RON_BLOCKS;

#endif
