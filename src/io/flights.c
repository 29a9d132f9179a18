/*
 * flights.c - many requests in flight, moved by one thread: in, out, and its turns. See flights.h,
 * flights_impl.h.
 */
#include "base/mem.h"
#include "io/flights_impl.h"

enum { WIRES_MAX = 64, IDLE_MS_DEFAULT = 30000 };

/* ---- Birth and end ---- */

enum ron_err io_flights_new(const struct io_flights_options *options,
                            struct io_flights **ret_flights, struct ron_errinfo *reterr)
{
    const uint32_t idle_ms = options->idle_ms == 0 ? IDLE_MS_DEFAULT : options->idle_ms;
    struct io_flights *flights = ron_mem_alloc(sizeof(*flights));
    enum ron_err err;

    RON_ASSERT(options->flights_max >= 1);
    RON_ASSERT(options->flights_max <= IO_FLIGHTS_MAX);
    RON_ASSERT((options->url == NULL) != (options->transport == NULL));
    if (flights == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "flights");
    flights->flights_max = options->flights_max;
    flights->lanes_max = options->connections_max == 0 ||
                                 options->connections_max > options->flights_max
                             ? options->flights_max
                             : options->connections_max;
    flights->idle_ns = idle_ms * RT_NS_PER_MS;
    flights->body_max = options->body_max == 0 ? CLIENT_BODY_MAX_DEFAULT : options->body_max;
    if (flights->body_max < CLIENT_BODY_MAX_MIN)
        flights->body_max = CLIENT_BODY_MAX_MIN;
    rt_lock_init(&flights->lock, "flights", RON_RANK_net);
    flights_lock(flights);
    list_init(&flights->inbox);
    flights_unlock(flights);
    list_init(&flights->fresh);
    list_init(&flights->waiting);
    list_init(&flights->held);
    memcpy(flights->host, "simulated", sizeof("simulated"));
    err = lanes_init(flights, reterr);
    if (err == RON_ERR_OK && options->url != NULL)
        err = client_make_transport(options->url, options->tls, &flights->transport, flights->host,
                                    reterr);
    if (err != RON_ERR_OK) {
        (void)io_flights_free(flights);
        return err;
    }
    if (options->transport != NULL)
        flights->transport = options->transport;
    *ret_flights = flights;
    return RON_ERR_OK;
}

struct io_flights *io_flights_free(struct io_flights *flights)
{
    if (flights == NULL)
        return NULL;
    flights_lock(flights);
    RON_ASSERT(flights->stats.flights_count == 0);
    flights_unlock(flights);
    lanes_fini(flights);
    (void)io_transport_free(flights->transport);
    rt_lock_fini(&flights->lock);
    return ron_mem_free(flights);
}

struct io_flights_stats io_flights_get_stats(struct io_flights *flights)
{
    struct io_flights_stats stats;

    flights_lock(flights);
    stats = flights->stats;
    flights_unlock(flights);
    return stats;
}

/* ---- In and out ---- */

enum ron_err io_flights_submit(struct io_flights *flights, struct io_flight *flight,
                               struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    bool first = false; /* else a ring is on its way already */

    flight->state.fresh = false;
    flight->begun_ns = 0;
    flights_lock(flights);
    if (flights->canceled) {
        err = ron_fail(reterr, RON_ERR_CANCELED, "%s: closed", flights->host);
    } else if (flights->stats.flights_count == flights->flights_max) {
        err = ron_fail(reterr, RON_ERR_BUSY, "%s: %u requests are in flight", flights->host,
                       flights->flights_max);
    } else {
        first = flights->inbox.first == NULL;
        list_put(&flights->inbox, flight);
        flights->stats.flights_count++;
        if (flights->stats.flights_peak < flights->stats.flights_count)
            flights->stats.flights_peak = flights->stats.flights_count;
    }
    flights_unlock(flights);
    if (first)
        io_transport_wake(flights->transport);
    return err;
}

void io_flights_resume(struct io_flights *flights, struct io_flight *flight)
{
    list_put(&flights->fresh, list_take(&flights->held, flight));
}

void io_flights_cancel(struct io_flights *flights)
{
    flights_lock(flights);
    flights->canceled = true;
    flights_unlock(flights);
    io_transport_cancel(flights->transport);
}

/* It has left: perhaps the memory of it is gone. Before its function says so, for that may be
 * followed by the end of all. */
static void count_out(struct io_flights *flights)
{
    flights_lock(flights);
    flights->stats.flights_count--;
    flights_unlock(flights);
}

static void count_in(struct io_flights *flights)
{
    flights_lock(flights);
    flights->stats.flights_count++;
    flights_unlock(flights);
}

static void follow(struct io_flights *flights, struct io_flight *flight, enum io_flight_next next)
{
    if (next == IO_FLIGHT_OVER) {
        flights->again = true;
        return;
    }
    count_in(flights);
    flight->begun_ns = 0;
    list_put(next == IO_FLIGHT_SEND ? &flights->waiting : &flights->held, flight);
}

void flights_tell(struct io_flights *flights, struct io_flight *flight, enum ron_err err,
                  const struct ron_errinfo *info, const struct io_client_reply *reply)
{
    flight->state.fresh = false;
    flights->again = true;
    count_out(flights);
    follow(flights, flight, flight->done(flight, err, info, reply));
}

/* Those whose time has come, in their order, as long as there are connections. */
static void begin_waiting(struct io_flights *flights, uint64_t now_ns)
{
    struct io_flight *flight = flights->waiting.first;

    while (flight != NULL) {
        if (flight->begin_ns > now_ns || flight->deadline.at_ns <= now_ns) {
            flight = flight->state.next;
            continue;
        }
        if (!lane_begin(flights, flight))
            return;
        flight = flights->waiting.first; /* its function may have changed the list */
    }
}

/* ---- Turns ---- */

/* False: canceled. */
static bool take_inbox(struct io_flights *flights)
{
    bool canceled;

    flights_lock(flights);
    canceled = flights->canceled;
    while (flights->inbox.first != NULL)
        list_put(&flights->fresh, list_take(&flights->inbox, flights->inbox.first));
    flights_unlock(flights);
    return !canceled;
}

static void tell_late(struct io_flights *flights, struct io_flight *flight, const char *where)
{
    struct ron_errinfo info = {0};
    enum ron_err err = ron_fail(&info, RON_ERR_TIMEOUT, "%s: the deadline passed %s", flights->host,
                                where);

    flights_tell(flights, flight, err, &info, NULL);
}

static void ask_fresh(struct io_flights *flights)
{
    while (flights->fresh.first != NULL) {
        struct io_flight *flight = list_take(&flights->fresh, flights->fresh.first);

        if (rt_deadline_expired(flight->deadline)) {
            tell_late(flights, flight, "before it was sent");
            continue;
        }
        count_out(flights);
        follow(flights, flight, flight->ready(flight));
    }
}

/* The first of a list whose deadline has passed, or NULL; and when the next passes. */
static struct io_flight *find_late(const struct flight_list *list, uint64_t now_ns,
                                   uint64_t *next_ns)
{
    for (struct io_flight *flight = list->first; flight != NULL; flight = flight->state.next) {
        if (flight->deadline.at_ns <= now_ns)
            return flight;
        if (flight->deadline.at_ns < *next_ns)
            *next_ns = flight->deadline.at_ns;
        if (flight->begin_ns > now_ns && flight->begin_ns < *next_ns)
            *next_ns = flight->begin_ns;
    }
    return NULL;
}

static bool is_late(const struct flight_lane *lane, uint64_t now_ns)
{
    return lane->flight != NULL && lane->flight->deadline.at_ns <= now_ns;
}

/* End what is late; returns when there is something to do again. The lists change with each end. */
static uint64_t end_late(struct io_flights *flights, uint64_t now_ns)
{
    uint64_t next_ns = lanes_end_idle(flights, now_ns);
    struct io_flight *late;

    for (uint32_t i = 0; i < flights->lanes_max && flights->used_count > 0; i++) {
        struct flight_lane *lane = &flights->lanes[i];

        if (is_late(lane, now_ns) && lane->sent > 0)
            lane_move(flights, lane); /* it is we who are late, if its answer is there already */
        if (is_late(lane, now_ns))
            tell_late(flights, lane_leave(flights, lane, false), "waiting for the peer");
        else if (lane->flight != NULL && lane->flight->deadline.at_ns < next_ns)
            next_ns = lane->flight->deadline.at_ns;
    }
    while ((late = find_late(&flights->waiting, now_ns, &next_ns)) != NULL)
        tell_late(flights, list_take(&flights->waiting, late), "before it was sent");
    while ((late = find_late(&flights->held, now_ns, &next_ns)) != NULL)
        tell_late(flights, list_take(&flights->held, late), "waiting for another's answer");
    if (flights->waiting.first != NULL && flights->connect_again_ns > now_ns &&
        flights->connect_again_ns < next_ns)
        next_ns = flights->connect_again_ns;
    return next_ns;
}

/* One function may make others ready that were held. */
static void end_all(struct io_flights *flights)
{
    struct flight_list *const lists[] = {&flights->fresh, &flights->waiting, &flights->held};
    struct ron_errinfo info = {0};
    const enum ron_err err = ron_fail(&info, RON_ERR_CANCELED, "%s: canceled", flights->host);

    for (uint32_t i = 0; i < flights->lanes_max; i++)
        if (flights->lanes[i].flight != NULL)
            flights_tell(flights, lane_leave(flights, &flights->lanes[i], false), err, &info, NULL);
    while (flights->fresh.first != NULL || flights->waiting.first != NULL ||
           flights->held.first != NULL)
        for (size_t i = 0; i < RON_ARRAY_COUNT(lists); i++)
            while (lists[i]->first != NULL)
                flights_tell(flights, list_take(lists[i], lists[i]->first), err, &info, NULL);
}

void io_flights_end(struct io_flights *flights)
{
    io_flights_cancel(flights);
    (void)take_inbox(flights);
    end_all(flights);
}

bool io_flights_turn(struct io_flights *flights)
{
    struct io_wire *wires[WIRES_MAX];
    size_t count = 0;
    uint64_t next_ns;
    uint64_t now_ns;
    enum ron_err err;

    rt_assert_no_lock_held();
    if (!take_inbox(flights)) {
        end_all(flights);
        return false;
    }
    flights->again = false;
    for (uint32_t i = 0; flights->in_turn && i < flights->lanes_max; i++)
        lane_move(flights, &flights->lanes[i]);
    flights->in_turn = true;
    ask_fresh(flights);
    now_ns = rt_now_ns(); /* one for both: whose time comes between them waits for nobody else */
    begin_waiting(flights, now_ns);
    next_ns = end_late(flights, now_ns);
    if (flights->again || flights->fresh.first != NULL)
        next_ns = 0;
    err = io_transport_wait(flights->transport, (struct rt_deadline){next_ns}, wires, WIRES_MAX,
                            &count, NULL);
    for (size_t i = 0; err == RON_ERR_OK && i < count; i++)
        lane_move(flights, wires[i]->owner);
    flights->in_turn = false;
    return true;
}

void io_flights_run(struct io_flights *flights)
{
    while (io_flights_turn(flights))
        ;
}
