/*
 * log_collect.h - the keys of the segment that is written, taken while its groups are in memory, so
 * that nobody need read the segment for its index.
 *
 * From the first group of a segment on the writer puts the keys of each that is durable into a
 * builder, which the segment has when it is sealed; the indexer writes it out. A segment that was
 * begun before the log was opened, one for which there is no builder or no memory, and one of whose
 * groups a body fails its sum, has none: it is read, as one is whose index is damaged.
 */
#ifndef RON_IO_LOG_COLLECT_H
#define RON_IO_LOG_COLLECT_H

#include "io/segment_index.h"
#include "rt/lock_classes.h"

struct io_log;
struct log_group;
struct log_segment;

/* So many segments have their keys collected or waiting; those of one more are written out. */
enum { LOG_BUILDERS = 3 };

/* The writer: a segment begins. */
void log_collect_begin(struct io_log *log) RON_BLOCKS;
/* The writer: a group of it is durable. */
void log_collect(struct io_log *log, const struct log_group *group) RON_BLOCKS;
/* The writer: the segment is sealed, and has what was collected. */
void log_collect_end(struct io_log *log, struct log_segment *segment) RON_NEEDS(storage);

/* What was collected of the segment is the caller's; NULL: nothing. */
struct io_index_builder *log_collected(struct io_log *log, struct log_segment *segment);
/* A builder that is not used; NULL: there is none. */
struct io_index_builder *log_builder_take(struct io_log *log);
/* One that is not used any more; NULL is none. */
void log_builder_give(struct io_log *log, struct io_index_builder *builder) RON_BLOCKS;
/* The log ends; its segments are gone. */
void log_builders_fini(struct io_log *log) RON_BLOCKS;

#endif
