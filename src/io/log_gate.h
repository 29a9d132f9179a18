/*
 * log_gate.h - gates of a log: which sealed segments are asked together, and how that comes about.
 *
 * One gate at a time grows (segment_gate.h): the indexer adds the segments to it as their indexes
 * are made, before anybody asks these, or, where they were there when the log was opened, the
 * oldest first, each in one step. A segment whose keys are all in it is behind it from then on, and
 * its own filter is given back. When the next one does not fit, that gate stays
 * as it is and another begins: with room for what waits by then, for some segments to come and for
 * a quarter of what the log has, up to IO_GATE_KEYS_MAX keys. So a key is read into a gate once,
 * how many gates are asked grows with the logarithm of the log, and memory that is not used yet is
 * a quarter at most, or 16 MB. Where there is no memory for a gate, or a page cannot be read,
 * everything stays as it is and is tried again later.
 *
 * An index that is built again leaves its gate, is asked by its own filter, and is added as one is
 * that was there before: what a gate has of a segment are the keys of the index that was added.
 */
#ifndef RON_IO_LOG_GATE_H
#define RON_IO_LOG_GATE_H

#include "io/segment_gate.h"
#include "rt/deadline.h"
#include "rt/lock.h"

struct io_log;
struct log_segment;

enum {
    LOG_GATE_SEGMENTS = 16,      /* to come, for which a new gate has room, */
    LOG_GATE_KEYS_MIN = 8 << 20, /* unless they have more keys than that */
    LOG_GATE_PART_SHIFT = 2,     /* and for a quarter of what there is */
};

struct log_gate {
    struct io_gate *keys;
    /* Under the log's lock: who adds to it, segments that it stands for, questions under way. */
    uint32_t uses_count;
    struct log_gate *next_unused;
};

/* The indexer's own. */
struct log_gate_work {
    struct log_gate *gate; /* that grows; NULL: none */
    struct rt_deadline retry;
};

/* Is there a step to do now? If not, *ret_at_ns says when to look again. */
bool log_gate_is_due(const struct io_log *log, uint64_t *ret_at_ns) RON_NEEDS(storage);
/* One step: a segment gets behind a gate. The indexer's task. */
void log_gate_step(struct io_log *log) RON_BLOCKS;
/* An index that was just built, and nobody has seen: the gate that has its keys now, in use once
 * more for its segment. NULL: older ones have their turn first, or there is no memory; then it is
 * one of those. The indexer's task. */
struct log_gate *log_gate_join(struct io_log *log, struct io_index *index,
                               const struct io_index_builder *builder);
/* The segment leaves its gate. A gate that nobody uses any more is put in front of *unused, for
 * log_gates_free without the lock. */
void log_gate_leave(struct log_segment *segment, struct log_gate **unused) RON_NEEDS(storage);
/* One use less. */
void log_gate_drop(struct log_gate *gate, struct log_gate **unused) RON_NEEDS(storage);
void log_gates_free(struct log_gate *unused);
/* The log ends. */
void log_gate_fini(struct io_log *log);

#endif
