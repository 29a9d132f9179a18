/*
 * snapshot_file_format.h - head and name of a snapshot file; for the two files that write and read
 * them. The offset table is in snapshot_file.h.
 */
#ifndef RON_IO_SNAPSHOT_FILE_FORMAT_H
#define RON_IO_SNAPSHOT_FILE_FORMAT_H

#include "io/snapshot_file.h"

enum {
    SNAPSHOT_VERSION = 1,
    SNAPSHOT_HEAD_SIZE = 4096,
    SNAPSHOT_NAME_SIZE = 21, /* "snap-" and 16 digits */
};

struct snapshot_head {
    struct io_snapshot_info info;
    uint64_t last_durable;
};

void io_snapshot_head_encode(const struct snapshot_head *head,
                             uint8_t ret_bytes[SNAPSHOT_HEAD_SIZE]);
/* RON_ERR_WAL_CORRUPT, RON_ERR_VERSION_SKEW. */
enum ron_err io_snapshot_head_decode(const uint8_t bytes[SNAPSHOT_HEAD_SIZE],
                                     struct snapshot_head *ret_head,
                                     struct ron_errinfo *reterr) RON_MUST_USE;
/* `dir/snap-<position>`; RON_ERR_TOO_LARGE if the directory's name is too long for it. */
enum ron_err io_snapshot_path(const char *dir, uint64_t position, char ret_path[IO_PATH_MAX + 1],
                              struct ron_errinfo *reterr) RON_MUST_USE;
/* False if the name is not that of a snapshot. */
bool io_snapshot_name_parse(const char *name, uint64_t *ret_position);

#endif
