/*
 * log_walk.h - one segment file from its head to its end, with the log's policy for damage.
 */
#ifndef RON_IO_LOG_WALK_H
#define RON_IO_LOG_WALK_H

#include "io/log.h"
#include "io/log_scan.h"

/* What open found at the end of the log, and the writer goes on from. */
struct log_end {
    struct io_frame_state state;
    struct io_link link;
    uint64_t offset; /* behind the last commit or seal */
    bool sealed;
};

struct log_walk {
    struct log_end end;
    uint64_t last_offset; /* of the last group or seal; end.offset if there is none */
    uint64_t records_count;
    uint64_t skipped_count, skipped_bytes;
    uint64_t file_size;
    uint64_t last_seen;   /* index of the last valid frame */
    struct log_tail tail; /* behind the end, where there is no seal */
    uint64_t damage_offset;
    const char *damage_why; /* NULL: none (or skipped) */
};
typedef enum ron_err log_walk_fn(void *context, const struct io_frame *frame, uint64_t offset,
                                 struct ron_errinfo *reterr);
enum ron_err log_walk(struct io_file *file, const struct io_segment_head *head, bool last,
                      enum io_log_damage_policy policy, log_walk_fn *fn, void *context,
                      struct log_walk *walk, struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* The same with a scan that has just begun, which stays the caller's. */
enum ron_err log_walk_on(struct log_scan *scan, bool last, enum io_log_damage_policy policy,
                         log_walk_fn *fn, void *context, struct log_walk *walk,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
