/*
 * bus.h - broadcast: every subscriber sees every message published after it subscribed, unless it
 * falls behind by more than the ring holds; then the oldest are lost to it, and it is told how
 * many.
 *
 * Publishing never waits for a subscriber, so a bus is lossy by design: what must not be lost is
 * read again from the log. Messages are small and copied. After rt_bus_close publishing answers
 * RON_ERR_CANCELED; subscribers read what is left, then get RON_ERR_CANCELED.
 *
 * Any task may publish; a subscriber is used by one task at a time.
 */
#ifndef RON_RT_BUS_H
#define RON_RT_BUS_H

#include "rt/deadline.h"
#include "rt/lock_classes.h"

enum {
    RT_BUS_MESSAGE_SIZE_MAX = 256,
    RT_BUS_CAPACITY_MAX = 65536,
    RT_BUS_SUBSCRIBERS_MAX = 64,
};

struct rt_bus;            /* opaque */
struct rt_bus_subscriber; /* opaque */

struct rt_bus_options {
    const char *name; /* texts are borrowed for the bus's life */
    const char *owner;
    uint32_t capacity;   /* messages, 1..RT_BUS_CAPACITY_MAX */
    size_t message_size; /* 1..RT_BUS_MESSAGE_SIZE_MAX */
};

/* RON_ERR_NO_MEMORY, RON_ERR_BUSY (registry full). The caller owns it. */
enum ron_err rt_bus_new(const struct rt_bus_options *options, struct rt_bus **ret_bus,
                        struct ron_errinfo *reterr) RON_MUST_USE;
/* Without subscribers. Accepts NULL, returns NULL. */
struct rt_bus *rt_bus_free(struct rt_bus *bus);

/* Copy message_size bytes to all subscribers; never blocks. RON_ERR_CANCELED after close. */
enum ron_err rt_bus_publish(struct rt_bus *bus, const void *message,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* The same for several, one after the other, with one wake-up. */
enum ron_err rt_bus_publish_many(struct rt_bus *bus, const void *messages, size_t messages_count,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
void rt_bus_close(struct rt_bus *bus); /* idempotent */

/* From the next message on. `consumer` names it in metrics; borrowed for its life. RON_ERR_BUSY
 * beyond RT_BUS_SUBSCRIBERS_MAX, RON_ERR_NO_MEMORY; RON_ERR_CANCELED after close. */
enum ron_err rt_bus_subscribe(struct rt_bus *bus, const char *consumer,
                              struct rt_bus_subscriber **ret_subscriber,
                              struct ron_errinfo *reterr) RON_MUST_USE;
struct rt_bus_subscriber *rt_bus_unsubscribe(struct rt_bus_subscriber *subscriber); /* NULL is ok */

/* Wait for the next message and copy it. *ret_lost_count tells how many were dropped before it; a
 * subscriber that sees it above 0 must reconcile. RON_ERR_TIMEOUT (a past deadline: at once),
 * RON_ERR_CANCELED. */
enum ron_err rt_bus_recv(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                         void *ret_message, uint64_t *ret_lost_count,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* The same for all that are there, at most messages_max (> 0): copied one after the other. */
enum ron_err rt_bus_recv_many(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                              void *ret_messages, size_t messages_max, size_t *ret_count,
                              uint64_t *ret_lost_count,
                              struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Wait for a message as rt_bus_recv and pass over all that are there: for who only has to know that
 * there is something new. Nothing counts as lost from then on; not to be mixed with the others. */
enum ron_err rt_bus_skip(struct rt_bus_subscriber *subscriber, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

struct rt_bus_lag {
    const char *consumer;
    uint64_t birth;        /* number of the subscription on this bus, from 1 */
    uint64_t behind_count; /* messages it could still read */
    uint64_t lost_count;   /* bus_lagged_total, those not yet told included */
};
struct rt_bus_stats {
    const char *name;
    uint64_t published_count;
    uint32_t capacity, subscribers_count;
    bool closed;
    struct rt_bus_lag lags[RT_BUS_SUBSCRIBERS_MAX]; /* subscribers_count of them */
};
void rt_bus_get_stats(struct rt_bus *bus, struct rt_bus_stats *ret_stats);

#endif
