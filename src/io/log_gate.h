/*
 * log_gate.h - gates of a log: which sealed segments are asked together, and how that comes about.
 *
 * Four neighbours get a gate (segment_gate.h), sixteen one in place of their four, and so on up to
 * IO_GATE_KEYS_MAX keys: how many filters a key is asked of grows with the logarithm of the log. A
 * gate is filled by the indexer, one segment at a time, because an index that lacks cannot wait; a
 * segment whose keys are in it *joins*, and goes on being asked by its own filter until the gate
 * opens, for all that joined at once. Then the filters of these are given back. Where there is no
 * memory for a gate, or a page cannot be read, everything stays as it is and is tried again later.
 *
 * An index that is built again leaves its gate and is asked by its own filter: what a gate has of a
 * segment are the keys of the index that joined.
 */
#ifndef RON_IO_LOG_GATE_H
#define RON_IO_LOG_GATE_H

#include "io/segment_gate.h"
#include "rt/deadline.h"
#include "rt/lock.h"

struct io_log;
struct log_segment;

enum {
    LOG_GATE_FAN_BITS = 2, /* four of one level make one of the next */
    LOG_GATE_LEVEL_MAX = 4,
};

struct log_gate {
    struct io_gate *keys; /* does not change once the gate is open */
    uint32_t level;       /* stands for 4^level segments */
    /* Under the log's lock: who fills it, segments that it stands for, questions under way. */
    uint32_t uses_count;
    struct log_gate *next_unused;
};

/* The indexer's own. */
struct log_gate_work {
    struct log_gate *gate;              /* being filled; NULL: none */
    uint64_t first_number, last_number; /* of the segments that are to join */
    uint64_t next_number;
    struct rt_deadline retry;
};

/* Is there a step to do now? If not, *ret_at_ns says when to look again. */
bool log_gate_is_due(const struct io_log *log, uint64_t *ret_at_ns) RON_NEEDS(storage);
/* One step: begin a gate, read one segment into it, or open it. The indexer's task. */
void log_gate_step(struct io_log *log) RON_BLOCKS;
/* The segment leaves its gate, or the one it was about to join. A gate that nobody uses any more is
 * put in front of *unused, for log_gates_free without the lock. */
void log_gate_leave(struct log_segment *segment, struct log_gate **unused) RON_NEEDS(storage);
/* One use less. */
void log_gate_drop(struct log_gate *gate, struct log_gate **unused) RON_NEEDS(storage);
void log_gates_free(struct log_gate *unused);
/* The log ends. */
void log_gate_fini(struct io_log *log);

#endif
