/*
 * flights.h - many requests in flight to one target, moved by one thread.
 *
 * Where client.h holds a thread for each call, here a call is a flight: the caller's memory, handed
 * over by io_flights_submit and back by one of its functions. One thread (io_flights_run) owns all
 * connections, one flight on each at a time; it sends, receives and watches deadlines without ever
 * waiting for a single one. Those for which there is no connection wait for one, in their order.
 *
 * Each try is one request and one reply. What comes between tries is the caller's, said by what its
 * functions return; a kept connection that turns out to be closed is replaced at once, and once, if
 * the request may be sent twice (as in client.h).
 *
 * Everything is bounded: flights_max flights, refused with RON_ERR_BUSY beyond it, as many
 * connections at most, and every flight has a deadline.
 */
#ifndef RON_IO_FLIGHTS_H
#define RON_IO_FLIGHTS_H

#include "io/client.h"

struct io_flights; /* opaque */
struct io_flight;

enum { IO_FLIGHTS_MAX = 1 << 16 };

struct io_flights_options {
    const char *url; /* as io_client_options */
    const struct io_client_tls *tls;
    struct io_transport *transport; /* instead of a url; taken on RON_ERR_OK */
    uint32_t flights_max;           /* 1..IO_FLIGHTS_MAX */
    uint32_t connections_max;       /* 0: flights_max */
    uint32_t idle_ms;               /* a connection is kept so long without a flight; 0: 30 s */
    size_t body_max;                /* of a reply; 0: 1 MiB */
};

/* What becomes of a flight now. */
enum io_flight_next {
    IO_FLIGHT_SEND, /* a try: from begin_ns on, until the deadline; ends with `done` */
    IO_FLIGHT_HOLD, /* nothing: until io_flights_resume (`ready` again) or the deadline (`done`) */
    IO_FLIGHT_OVER, /* it is the caller's again: do not touch it */
};
/* Called by the thread that runs the flights, without locks; must not block. */
typedef enum io_flight_next io_flight_ready_fn(struct io_flight *flight);
/* A try came to this. RON_ERR_OK: *reply, until the function returns. Else *info says what; besides
 * the errors of io_client_call, RON_ERR_TIMEOUT and RON_ERR_CANCELED also for one that was held or
 * not ready yet. IO_FLIGHT_HOLD is no answer to that. */
typedef enum io_flight_next io_flight_done_fn(struct io_flight *flight, enum ron_err err,
                                              const struct ron_errinfo *info,
                                              const struct io_client_reply *reply);

struct io_flight {
    /* The caller's; all that it points to stays until the flight is over. */
    struct io_client_request request; /* of `once`, nothing: there are no retries */
    struct rt_deadline deadline;      /* of the try, or of the wait */
    uint64_t begin_ns;                /* not sent before; 0: now */
    io_flight_ready_fn *ready;        /* first of all, and after io_flights_resume */
    io_flight_done_fn *done;
    void *context;

    uint64_t begun_ns; /* told to done: when the try got a connection, made or not; 0: never */

    struct { /* the flights' own */
        struct io_flight *next, **link;
        bool fresh; /* not on a kept connection again */
    } state;
};

/* As io_client_new. */
enum ron_err io_flights_new(const struct io_flights_options *options,
                            struct io_flights **ret_flights,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* After the last run has returned and the last flight is over. Accepts NULL, returns NULL. */
struct io_flights *io_flights_free(struct io_flights *flights);

/* Any thread; never waits. Taken on RON_ERR_OK: then exactly one of its functions answers
 * IO_FLIGHT_OVER, perhaps before this returns. RON_ERR_BUSY, RON_ERR_CANCELED. */
enum ron_err io_flights_submit(struct io_flights *flights, struct io_flight *flight,
                               struct ron_errinfo *reterr) RON_MUST_USE;
/* A flight that is held is ready again. Only from functions of flights, by the thread that runs
 * them. */
void io_flights_resume(struct io_flights *flights, struct io_flight *flight);

/* Move them until canceled: then all are done with RON_ERR_CANCELED, and no more are taken. One
 * thread; one that was left by a panic of a flight's function may be followed by another. */
void io_flights_run(struct io_flights *flights) RON_BLOCKS;
/* One turn of that: what can be done, and before that a wait for something to do, unless there is
 * something. False: canceled, and nothing is left. For who has no thread to spare. */
bool io_flights_turn(struct io_flights *flights) RON_MUST_USE RON_BLOCKS;
/* Any thread, never blocks, idempotent. */
void io_flights_cancel(struct io_flights *flights);
/* The same, and all are done with RON_ERR_CANCELED here: where nobody runs them, or ever will. */
void io_flights_end(struct io_flights *flights);

struct io_flights_stats {
    uint64_t tries_count, stale_count, connects_count;
    uint32_t flights_count, flights_peak; /* taken and not over */
};
struct io_flights_stats io_flights_get_stats(struct io_flights *flights);

#endif
