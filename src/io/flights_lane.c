/*
 * flights_lane.c - connections of flights: begun, moved, kept, given up. See flights_impl.h.
 */
#include "base/mem.h"
#include "io/flights_impl.h"

enum { CONNECT_AGAIN_MS = 10 };

enum ron_err lanes_init(struct io_flights *flights, struct ron_errinfo *reterr)
{
    flights->lanes = ron_mem_alloc_array(flights->lanes_max, sizeof(flights->lanes[0]));
    if (flights->lanes == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "%u connections", flights->lanes_max);
    for (uint32_t i = flights->lanes_max; i > 0; i--) {
        struct flight_lane *lane = &flights->lanes[i - 1];

        ron_buf_init(&lane->head, HTTP_HEAD_SIZE_MAX);
        io_client_reply_init(&lane->reply);
        lane->reply.body_bytes.size_max = flights->body_max;
        lane->next = flights->free;
        flights->free = lane;
    }
    return RON_ERR_OK;
}

void lanes_fini(struct io_flights *flights)
{
    for (uint32_t i = 0; flights->lanes != NULL && i < flights->lanes_max; i++) {
        struct flight_lane *lane = &flights->lanes[i];

        lane->wire = io_wire_close(lane->wire);
        ron_buf_fini(&lane->head);
        io_client_reply_fini(&lane->reply);
    }
    flights->lanes = ron_mem_free(flights->lanes);
}

/* The connection is of no use any more. What was received stays until the lane is used again. */
static void lane_shut(struct io_flights *flights, struct flight_lane *lane)
{
    lane->wire = io_wire_close(lane->wire);
    lane->next = flights->free;
    flights->free = lane;
}

static void lane_keep(struct io_flights *flights, struct flight_lane *lane)
{
    lane->idle_ns = rt_now_ns();
    lane->next = flights->kept;
    flights->kept = lane;
}

struct io_flight *lane_leave(struct io_flights *flights, struct flight_lane *lane, bool keep)
{
    struct io_flight *flight = RON_TAKE(lane->flight);

    if (lane->head.data != NULL) /* a token may be in it */
        ron_wipe(lane->head.data, lane->head.capacity);
    flights->used_count--;
    flights->again = true;
    if (keep)
        lane_keep(flights, lane);
    else
        lane_shut(flights, lane);
    return flight;
}

/* A kept connection that the peer had closed already is not its failure: once more, at once. */
static void lane_fail(struct io_flights *flights, struct flight_lane *lane, enum ron_err err,
                      struct ron_errinfo *info)
{
    const bool stale = err == RON_ERR_UPSTREAM_UNAVAILABLE && lane->reused && !lane->answered &&
                       (lane->sent == 0 || client_may_repeat(&lane->flight->request));
    struct io_flight *flight = lane_leave(flights, lane, false);

    if (stale) {
        flights_lock(flights);
        flights->stats.stale_count++;
        flights_unlock(flights);
        flight->state.fresh = true;
        list_put(&flights->waiting, flight);
        return;
    }
    flights_tell(flights, flight, ron_wrap(info, err, "%s", flights->host), info, NULL);
}

/* Nobody waits for anything on it. */
static void kept_lost(struct io_flights *flights, struct flight_lane *lane)
{
    struct flight_lane **link = &flights->kept;

    while (*link != lane)
        link = &(*link)->next;
    *link = lane->next;
    lane_shut(flights, lane);
}

uint64_t lanes_end_idle(struct io_flights *flights, uint64_t now_ns)
{
    struct flight_lane **link = &flights->kept;
    uint64_t next_ns = SH_NEVER;

    while (*link != NULL && now_ns < (*link)->idle_ns + flights->idle_ns) {
        next_ns = (*link)->idle_ns + flights->idle_ns;
        link = &(*link)->next;
    }
    while (*link != NULL) { /* as old, or older */
        struct flight_lane *lane = *link;

        *link = lane->next;
        lane_shut(flights, lane);
    }
    return next_ns;
}

static size_t lane_out_size(const struct flight_lane *lane)
{
    const struct io_client_request *request = &lane->flight->request;

    return lane->head.size + (client_has_body(request) ? 0 : request->body.size);
}

/* What is left to be sent of head and body. */
static struct ron_slice lane_out(const struct flight_lane *lane)
{
    const struct io_client_request *request = &lane->flight->request;

    if (lane->sent < lane->head.size)
        return ron_slice_of(lane->head.data + lane->sent, lane->head.size - lane->sent);
    if (lane->sent == lane_out_size(lane))
        return (struct ron_slice){0};
    return ron_slice_of(request->body.data + (lane->sent - lane->head.size),
                        request->body.size - (lane->sent - lane->head.size));
}

/* One step of a lane with a flight; false: nothing moves any more, or the flight has left. */
static bool lane_step(struct io_flights *flights, struct flight_lane *lane)
{
    struct io_exchange exchange = {
        .out = lane_out(lane), .in = flights->piece, .in_size = sizeof(flights->piece)};
    struct ron_errinfo info = {0};
    enum ron_err err = io_wire_step(lane->wire, &exchange, &info);
    /* It receives first: this is no answer of ours, and the connection as bad as a closed one. */
    const bool early = lane->reused && lane->sent == 0 && exchange.received_size > 0;

    lane->sent += exchange.sent_size;
    lane->answered = lane->answered || (exchange.received_size > 0 && !early);
    if (err == RON_ERR_OK && early)
        err = ron_fail(&info, RON_ERR_UPSTREAM_UNAVAILABLE, "bytes came before the request");
    else if (err == RON_ERR_OK && exchange.received_size > 0)
        err = client_reader_take(&lane->reader, &lane->reply,
                                 ron_slice_of(exchange.in, exchange.received_size), &info);
    else if (err == RON_ERR_OK && exchange.ended)
        err = client_reader_end(&lane->reader, &lane->reply, &info);
    if (err != RON_ERR_OK) {
        lane_fail(flights, lane, err, &info);
        return false;
    }
    if (lane->reader.stage == CLIENT_COMPLETE) {
        const bool keep = lane->reader.keep && lane->sent == lane_out_size(lane);
        struct io_flight *flight = lane_leave(flights, lane, keep);

        flights_tell(flights, flight, RON_ERR_OK, &info, &lane->reply);
        return false;
    }
    return exchange.sent_size > 0 || exchange.received_size > 0;
}

void lane_move(struct io_flights *flights, struct flight_lane *lane)
{
    struct io_exchange exchange = {.in = flights->piece, .in_size = sizeof(flights->piece)};

    if (lane->wire == NULL)
        return;
    if (lane->flight == NULL) {
        /* TLS reads over tickets; else there is an end, an error, or bytes nobody asked for. */
        if (io_wire_step(lane->wire, &exchange, NULL) != RON_ERR_OK || exchange.ended ||
            exchange.received_size > 0)
            kept_lost(flights, lane);
        return;
    }
    while (lane_step(flights, lane))
        ;
}

/* ---- Beginning ---- */

/* A lane with a connection. RON_ERR_OK and NULL: there is none now. */
static enum ron_err take_lane(struct io_flights *flights, const struct io_flight *flight,
                              struct flight_lane **ret_lane, struct ron_errinfo *reterr)
{
    struct flight_lane *lane;
    enum ron_err err;

    *ret_lane = NULL;
    while (flights->kept != NULL && (!flight->state.fresh || flights->free == NULL)) {
        lane = flights->kept;
        flights->kept = lane->next;
        if (!flight->state.fresh && rt_now_ns() - lane->idle_ns < flights->idle_ns &&
            io_wire_idle(lane->wire)) {
            lane->reused = true;
            *ret_lane = lane;
            return RON_ERR_OK;
        }
        lane_shut(flights, lane);
    }
    lane = flights->free;
    if (lane == NULL || rt_now_ns() < flights->connect_again_ns)
        return RON_ERR_OK;
    err = io_wire_begin(flights->transport, &lane->wire, reterr);
    if (err == RON_ERR_BUSY && flights->used_count > 0) {
        flights->connect_again_ns = rt_now_ns() + CONNECT_AGAIN_MS * RT_NS_PER_MS;
        return RON_ERR_OK;
    }
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "%s", flights->host);
    flights->free = lane->next;
    lane->wire->owner = lane;
    lane->reused = false;
    *ret_lane = lane;
    return RON_ERR_OK;
}

static void count_try(struct io_flights *flights, const struct flight_lane *lane)
{
    flights_lock(flights);
    flights->stats.tries_count++;
    flights->stats.connects_count += !lane->reused;
    flights_unlock(flights);
}

bool lane_begin(struct io_flights *flights, struct io_flight *flight)
{
    struct ron_errinfo info = {0};
    struct flight_lane *lane;
    enum ron_err err = take_lane(flights, flight, &lane, &info);

    if (err == RON_ERR_OK && lane == NULL)
        return false;
    (void)list_take(&flights->waiting, flight);
    if (err == RON_ERR_OK) {
        lane->flight = flight;
        flight->begun_ns = rt_now_ns();
        lane->sent = 0;
        lane->answered = false;
        flights->used_count++;
        client_reader_init(&lane->reader, flight->request.method, &lane->reply);
        lane->reply.tries_count = flight->state.fresh ? 2 : 1;
        count_try(flights, lane);
        /* Written now, so that X-Deadline-Ms says what is left. */
        err = client_put_head(&lane->head, &flight->request, flights->host, flight->deadline,
                              &info);
        if (err != RON_ERR_OK)
            (void)lane_leave(flights, lane, true);
    }
    if (err == RON_ERR_OK)
        lane_move(flights, lane);
    else
        flights_tell(flights, flight, err, &info, NULL);
    return true;
}
