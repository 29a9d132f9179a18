/*
 * log_index.h - the index of a sealed segment: built from its records, opened.
 */
#ifndef RON_IO_LOG_INDEX_H
#define RON_IO_LOG_INDEX_H

#include "io/log_scan.h"
#include "io/segment_index.h"
#include "rt/supervisor.h"

struct io_log;
struct log_segment;

/* What a build holds: not on the stack, since its task may panic. Zeroed at birth; one thread. */
struct log_index_work {
    struct io_file *file;             /* the segment's, while it is read */
    struct log_scan scan;             /* of it */
    struct io_index_builder *builder; /* tens of megabytes; NULL until it is needed */
    void *pages;                      /* past the cache: what the scan reads into; NULL: its own */
};
/* Scan a sealed segment, write its index and open it. */
enum ron_err log_index_build(struct io_log *log, const struct log_segment *segment,
                             struct log_index_work *work, struct io_index **ret_index,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Where a build ends, or one that panicked is ended. */
void log_index_rest(struct log_index_work *work) RON_BLOCKS;
void log_index_work_fini(struct log_index_work *work) RON_BLOCKS;

/* The keys of a record whose frame lies at an offset of its segment. */
enum ron_err log_index_add(const struct io_log *log, struct io_index_builder *builder,
                           const struct io_frame *frame, uint64_t offset,
                           struct ron_errinfo *reterr) RON_MUST_USE;
uint64_t log_index_keys_max(const struct io_log *log, uint64_t sealed_size);
struct io_index_of log_index_of(const struct io_log *log, const struct log_segment *segment);
/* The task. */
enum ron_err log_index_fn(struct rt_task *task, void *argument) RON_BLOCKS;

#endif
