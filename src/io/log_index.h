/*
 * log_index.h - the index of a sealed segment: built from the segment alone, opened.
 */
#ifndef RON_IO_LOG_INDEX_H
#define RON_IO_LOG_INDEX_H

#include "io/log_scan.h"
#include "io/segment_index.h"
#include "rt/supervisor.h"

struct io_log;
struct log_segment;

/* What a build holds: not on the stack, since its task may panic, and the builder's memory, tens of
 * megabytes, is kept for the next segment. Zeroed at birth; one thread. */
struct log_index_work {
    struct io_file *file;             /* the segment's */
    struct log_scan scan;             /* of it */
    struct io_index_builder *builder; /* NULL until it is needed */
    void *pages;                      /* past the cache: what the scan reads into; NULL: its own */
};
/* Scan a sealed segment, write its index and open it. */
enum ron_err log_index_build(struct io_log *log, const struct log_segment *segment,
                             struct log_index_work *work, struct io_index **ret_index,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Where a build ends, or one that panicked is ended. */
void log_index_rest(struct log_index_work *work) RON_BLOCKS;
void log_index_work_fini(struct log_index_work *work) RON_BLOCKS;

struct io_index_of log_index_of(const struct io_log *log, const struct log_segment *segment);
/* The task. */
enum ron_err log_index_fn(struct rt_task *task, void *argument) RON_BLOCKS;

#endif
