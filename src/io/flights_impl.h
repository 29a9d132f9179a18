/*
 * flights_impl.h - what the files of the flights share.
 *
 * A flight is in one place: the inbox (under the lock; everything else is the running thread's),
 * among those that wait for their time or a connection, among those that are held, or in a lane. A
 * lane is a place for a connection with what is being sent and received on it. Before a function of
 * a flight is called the flight is in none of them, so that a panic in it loses nothing else; what
 * a turn had still to look at is looked at again by the next run.
 */
#ifndef RON_IO_FLIGHTS_IMPL_H
#define RON_IO_FLIGHTS_IMPL_H

#include "base/assert.h"
#include "io/client_impl.h"
#include "io/flights.h"
#include "rt/lock.h"

struct flight_lane {
    struct flight_lane *next; /* of those that are free or kept */
    struct io_wire *wire;     /* NULL: free */
    struct io_flight *flight; /* NULL: free or kept */
    bool reused, answered;
    size_t sent;      /* of head and body */
    uint64_t idle_ns; /* kept since */
    struct ron_buf head;
    struct client_reader reader;
    struct io_client_reply reply;
};
struct flight_list {
    struct io_flight *first, **end;
};

struct io_flights {
    struct io_transport *transport;
    char host[CLIENT_HOST_SIZE];
    uint32_t flights_max, lanes_max;
    uint64_t idle_ns;
    size_t body_max;

    struct rt_lock lock; /* class net */
    bool canceled RON_GUARDED_BY(net);
    struct flight_list inbox RON_GUARDED_BY(net);
    struct io_flights_stats stats RON_GUARDED_BY(net);

    /* Of who runs them: */
    struct flight_list fresh;   /* from the inbox, or resumed: ready is to be called */
    struct flight_list waiting; /* to be sent; in the order they came */
    struct flight_list held;
    struct flight_lane *lanes, *free, *kept; /* kept: the newest first */
    uint32_t used_count;                     /* lanes with a flight */
    bool in_turn; /* still, at the begin of one: the last was not finished */
    bool again;   /* in this turn a flight was told something, or left a lane: there may be more to
                   * do, and who drives it looks whether that was all */
    uint64_t connect_again_ns; /* no connection could be had; 0: not so */
    uint8_t piece[CLIENT_PIECE_SIZE];
};

static inline void flights_lock(struct io_flights *flights) RON_LOCKS(net)
{
    rt_lock_take(&flights->lock);
}

static inline void flights_unlock(struct io_flights *flights) RON_UNLOCKS(net)
{
    rt_lock_drop(&flights->lock);
}

static inline void list_init(struct flight_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static inline void list_put(struct flight_list *list, struct io_flight *flight)
{
    flight->state.next = NULL;
    flight->state.link = list->end;
    *list->end = flight;
    list->end = &flight->state.next;
}

static inline struct io_flight *list_take(struct flight_list *list, struct io_flight *flight)
{
    *flight->state.link = flight->state.next;
    if (flight->state.next != NULL)
        flight->state.next->state.link = flight->state.link;
    else
        list->end = flight->state.link;
    return flight;
}

/* --- flights.c --- */

/* A try, or the wait, came to this: what its function says happens to it. */
void flights_tell(struct io_flights *flights, struct io_flight *flight, enum ron_err err,
                  const struct ron_errinfo *info, const struct io_client_reply *reply);

/* --- flights_lane.c --- */

enum ron_err lanes_init(struct io_flights *flights, struct ron_errinfo *reterr) RON_MUST_USE;
void lanes_fini(struct io_flights *flights); /* also of those that were not initialised */
/* Until nothing moves: what may move again is then said by the transport. */
void lane_move(struct io_flights *flights, struct flight_lane *lane);
/* Close what was kept too long; returns when the next will be. */
uint64_t lanes_end_idle(struct io_flights *flights, uint64_t now_ns);
/* Its flight leaves the lane; keep: the connection may be used again. */
struct io_flight *lane_leave(struct io_flights *flights, struct flight_lane *lane, bool keep);
/* Give a flight that waits a lane and send what goes. False: it waits on, for a connection. */
bool lane_begin(struct io_flights *flights, struct io_flight *flight);

#endif
