/*
 * log_check.h - look at every frame and link of a log, without changing or owning it.
 *
 * For people and tools: reads all segments from the first to the last, trusts no index, and stops
 * at the first damage; an end before what the owner file knows to be durable is damage, too. A log
 * that is being written may show a torn tail.
 */
#ifndef RON_IO_LOG_CHECK_H
#define RON_IO_LOG_CHECK_H

#include "io/log_format.h"
#include "io/vfs.h"

struct io_log_found {
    uint32_t kind;
    uint8_t log_id[16];
    uint64_t segments_count, records_count, bytes_count;
    uint64_t first_index, last_index;  /* of whole groups, as the count of records */
    uint64_t torn_bytes;               /* behind the last group, never acknowledged */
    bool has_owner;                    /* without it nobody knows whether the end is the end */
    char damage_file[IO_PATH_MAX + 1]; /* "" if none */
    uint64_t damage_offset;
};

/* A record, and where it is; those above last_index are of a torn tail. Anything but RON_ERR_OK
 * ends the walk and is answered. */
typedef enum ron_err io_log_visit_fn(void *context, const struct io_frame *frame, uint64_t segment,
                                     uint64_t offset, struct ron_errinfo *reterr);
/* So many segments of all were looked at. */
typedef void io_log_progress_fn(void *context, uint64_t done, uint64_t total);

struct io_log_check_options {
    struct io_vfs *vfs;
    const char *dir;              /* "" is the root */
    uint64_t from;                /* segments that end before this record are skipped; 0: none */
    io_log_visit_fn *visit;       /* may be NULL */
    io_log_progress_fn *progress; /* may be NULL */
    void *context;
};
/* RON_ERR_NOT_FOUND: no segments here; RON_ERR_WAL_CORRUPT, RON_ERR_MALFORMED,
 * RON_ERR_VERSION_SKEW with file and offset. *ret_found is filled as far as it got. */
enum ron_err io_log_check(const struct io_log_check_options *options,
                          struct io_log_found *ret_found,
                          struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
