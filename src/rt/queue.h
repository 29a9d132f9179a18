/*
 * queue.h - bounded hand-off between tasks: many senders, many receivers, first in first out.
 *
 * Holds owned pointers, each with a weight (bytes, as a rule); bounded by count and by weight. What
 * happens when it is full is chosen at the call: refuse, wait until a deadline, or evict the
 * oldest. Every item ends in exactly one place: with a receiver, back with its sender, or evicted
 * and handed to the evictor, so that whoever waits for an answer gets one.
 *
 * After rt_queue_close sends answer RON_ERR_CANCELED at once and receivers drain what is left, then
 * get RON_ERR_CANCELED. A past deadline answers RON_ERR_TIMEOUT without touching the queue.
 * Synchronisation: any function from any task, except that rt_queue_free must be the last one.
 */
#ifndef RON_RT_QUEUE_H
#define RON_RT_QUEUE_H

#include "rt/deadline.h"
#include "rt/lock_classes.h"

enum { RT_QUEUE_CAPACITY_MAX = 1 << 20 };

struct rt_queue; /* opaque */

struct rt_queue_options {
    const char *name;    /* of the channel, "ingress"; texts are borrowed for the queue's life */
    const char *owner;   /* role or module */
    const char *policy;  /* in a few words, for the generated documents */
    uint32_t capacity;   /* items, 1..RT_QUEUE_CAPACITY_MAX */
    uint64_t weight_max; /* sum over the items held; 0 means no bound but the count */
    /* How many items the receiver took and is not done with, where figures should count them as
     * waiting. Any thread, without locks. NULL: none. */
    uint32_t (*count_held)(const void *held_context);
    const void *held_context;
    /* When an item is of no use any more (SH_NEVER: never): where something has to be evicted such
     * items go first, then the oldest. Called under the lock: a look at the item and no more.
     * NULL: the oldest go. */
    uint64_t (*deadline_of)(const void *pointer);
};

struct rt_queue_item {
    void *pointer; /* not NULL */
    uint32_t weight;
};

/* Allocates the whole ring. RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). Caller owns it. */
enum ron_err rt_queue_new(const struct rt_queue_options *options, struct rt_queue **ret_queue,
                          struct ron_errinfo *reterr) RON_MUST_USE;
/* The queue must be empty and nobody may use it any more. Accepts NULL, returns NULL. */
struct rt_queue *rt_queue_free(struct rt_queue *queue);

/* Sends take the item on RON_ERR_OK, and only then. Besides what is listed: RON_ERR_CANCELED after
 * close, RON_ERR_TOO_LARGE for a weight the queue could never hold. */

/* Never waits. RON_ERR_BUSY when it does not fit; counted. */
enum ron_err rt_queue_try_send(struct rt_queue *queue, struct rt_queue_item item,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for items_count > 0 items under one lock: takes the longest prefix that fits and says
 * how long it is; RON_ERR_BUSY (or another) when not even the first fits. The rest is counted. */
enum ron_err rt_queue_try_send_many(struct rt_queue *queue, const struct rt_queue_item *items,
                                    size_t items_count, size_t *ret_sent_count,
                                    struct ron_errinfo *reterr) RON_MUST_USE;
/* Waits for room. RON_ERR_TIMEOUT. */
enum ron_err rt_queue_send_until(struct rt_queue *queue, struct rt_queue_item item,
                                 struct rt_deadline deadline,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Never waits: evicts oldest items (but see deadline_of) until the new one fits and gives them to
 * the caller, who owns and answers them. RON_ERR_BUSY, changing nothing, if more than evicted_max
 * (> 0) would have to go. Evictions are counted as drops. */
enum ron_err rt_queue_send_drop_oldest(struct rt_queue *queue, struct rt_queue_item item,
                                       void **evicted, size_t evicted_max,
                                       size_t *ret_evicted_count,
                                       struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for items_count > 0 items under one lock, one after the other: takes a prefix and says
 * how long it is. It ends before an item that fails as above; that is the answer if it is the
 * first. */
enum ron_err rt_queue_send_many_drop_oldest(struct rt_queue *queue,
                                            const struct rt_queue_item *items, size_t items_count,
                                            void **evicted, size_t evicted_max,
                                            size_t *ret_sent_count, size_t *ret_evicted_count,
                                            struct ron_errinfo *reterr) RON_MUST_USE;

/* Waits for an item; the caller owns it. RON_ERR_TIMEOUT, RON_ERR_CANCELED. */
enum ron_err rt_queue_recv(struct rt_queue *queue, struct rt_deadline deadline, void **ret_pointer,
                           struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Waits until the deadline for the first item, takes what is there, and while there is room for
 * more waits for it at most linger_ns (nor beyond the deadline). Gives 1..pointers_max items. */
enum ron_err rt_queue_recv_many(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                uint64_t linger_ns, struct rt_deadline deadline, size_t *ret_count,
                                struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Waits for the first item; takes more that are there as long as it and they weigh at most
 * weight_each (< UINT32_MAX) each. What is left wakes the next receiver. */
enum ron_err rt_queue_recv_light(struct rt_queue *queue, void **pointers, size_t pointers_max,
                                 uint32_t weight_each, struct rt_deadline deadline,
                                 size_t *ret_count,
                                 struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Never waits; gives 0..pointers_max items, also after close. */
size_t rt_queue_try_recv_many(struct rt_queue *queue, void **pointers,
                              size_t pointers_max) RON_MUST_USE;

/* Refuse new items and wake everyone who waits. Idempotent. */
void rt_queue_close(struct rt_queue *queue);
bool rt_queue_closed(struct rt_queue *queue);

struct rt_queue_stats {
    const char *name;
    uint64_t weight, weight_peak;
    uint64_t sent_count, received_count; /* evicted items are not received */
    uint64_t rejected_count;             /* RON_ERR_BUSY, each item of a batch */
    uint64_t dropped_count;              /* evicted */
    uint64_t timed_out_count;            /* send_until */
    uint64_t wait_samples_count;         /* every 16th item's time in the queue is measured */
    uint64_t wait_ns_sum, wait_ns_max;   /* over the samples */
    uint32_t capacity, depth, depth_peak;
    uint32_t held_count;                         /* beside depth (rt_queue_options) */
    uint32_t senders_waiting, receivers_waiting; /* now */
    bool closed;
};
void rt_queue_get_stats(struct rt_queue *queue, struct rt_queue_stats *ret_stats);

static inline void rt_queue_freep(struct rt_queue **queue)
{
    *queue = rt_queue_free(*queue);
}

#endif
