/*
 * strands.h - thousands of single-writer lanes on a few threads.
 *
 * A lane is a bounded queue with an order: its items are handled one after the other, first in
 * first out, never two at once, on whichever thread is free. So a lane's state needs no lock. Lanes
 * with work take turns; a turn handles as many items as the lane's weight (1 to 8), then the next
 * lane is up: no lane can starve another.
 *
 * Bounded: lanes, items in one lane, items in all. Every item that was taken ends with exactly one
 * call: `handle`, or `drop` with the reason (its handler panicked, or shutdown came first).
 */
#ifndef RON_RT_STRANDS_H
#define RON_RT_STRANDS_H

#include "rt/deadline.h"
#include "rt/task.h"

enum {
    RT_LANES_MAX = 1 << 20,
    RT_LANE_ITEMS_MAX = 1 << 24, /* in all lanes */
    RT_LANE_WEIGHT_MAX = 8,
    RT_STRAND_THREADS_MAX = 16,
};

struct rt_strands; /* opaque */

/* Names one opening of one lane; a stale id answers RON_ERR_NOT_FOUND. 0 is never given. */
struct rt_lane_id {
    uint64_t value;
};

struct rt_strands_options {
    const char *name; /* texts are borrowed for the set's life */
    const char *owner;
    const char *kind; /* of its tasks, for metrics */
    uint32_t threads_count;
    uint32_t lanes_max;
    uint32_t lane_capacity; /* items in one lane */
    uint32_t items_max;     /* items in all lanes */
    /* Handle one item of a lane and own it. Without locks; may block, which holds up one thread.
     * While it may still panic it must not have given the item away: drop gets it then. */
    void (*handle)(void *context, void *lane, void *item);
    /* An item that will not be handled: answer and free it. May be called where close was. */
    void (*drop)(void *context, void *lane, void *item, enum ron_err reason);
    void *context;
};

/* Make a set and start its tasks. RON_ERR_NO_MEMORY, RON_ERR_BUSY. The caller owns it. Blocks only
 * to join what it started before a failure. */
enum ron_err rt_strands_new(const struct rt_strands_options *options,
                            struct rt_supervisor *supervisor, struct rt_strands **ret_strands,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* After its tasks have ended (stop the supervisor). Drops what is left with RON_ERR_CANCELED.
 * Accepts NULL, returns NULL. */
struct rt_strands *rt_strands_free(struct rt_strands *strands);

/* Open a lane. `lane` is the caller's object for it and is passed to the handlers; weight is 1 for
 * plain round robin. RON_ERR_BUSY when all are open, RON_ERR_CANCELED when draining. */
enum ron_err rt_lane_open(struct rt_strands *strands, void *lane, unsigned weight,
                          struct rt_lane_id *ret_id, struct ron_errinfo *reterr) RON_MUST_USE;
/* Refuse further items; those inside are still handled, then the lane is forgotten. The caller's
 * object must live until then: rt_lane_close_until waits for it. RON_ERR_NOT_FOUND. */
enum ron_err rt_lane_close(struct rt_strands *strands, struct rt_lane_id id,
                           struct ron_errinfo *reterr) RON_MUST_USE;
/* Not from the lane's own handler. RON_ERR_TIMEOUT: closed, but not yet empty. */
enum ron_err rt_lane_close_until(struct rt_strands *strands, struct rt_lane_id id,
                                 struct rt_deadline deadline,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* Append an item; never waits. Takes it on RON_ERR_OK, and only then. RON_ERR_BUSY (lane or set
 * full), RON_ERR_NOT_FOUND (no such lane, or closed), RON_ERR_CANCELED (draining). */
enum ron_err rt_lane_send(struct rt_strands *strands, struct rt_lane_id id, void *item,
                          struct ron_errinfo *reterr) RON_MUST_USE;

/* Refuse new items and lanes, and wait until all that is inside is handled. RON_ERR_TIMEOUT. */
enum ron_err rt_strands_drain(struct rt_strands *strands, struct rt_deadline deadline,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct rt_strands_stats {
    uint32_t lanes_count, lanes_ready_count, lanes_running_count;
    uint32_t items_count; /* waiting */
    uint32_t items_max;
    uint64_t handled_count, rejected_count, dropped_count;
};
void rt_strands_get_stats(struct rt_strands *strands, struct rt_strands_stats *ret_stats);

#endif
