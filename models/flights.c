/*
 * flights.c - requests in flight together, over a network that loses, doubles, delays, reorders and
 * resets.
 *
 * The shipped flights (io/flights.h) on the simulated transport against a peer that counts. Every
 * flight is over exactly once, by its deadline; a reply belongs to its request; a flight that is
 * held ends with its deadline unless it is resumed; a cancel ends all, whoever submits meanwhile.
 */
#include <stdio.h>

#include "base/mem.h"
#include "io/client_sim.h"
#include "io/flights.h"
#include "models/support.h"
#include "rt/fault.h"
#include "rt/registry.h"

enum { FLIGHTS_COUNT = 3, RETRIES_MAX = 3, TRY_MS = 100, DELAY_MS = 130, PATIENCE_MS = 2000 };

struct sky;
struct trip {
    struct io_flight flight;
    struct sky *sky;
    unsigned number, tries_count;
    bool taken, held, resumes;
    bool bad;                    /* no request: it fails before it is sent */
    bool patient;                /* one try has all the time */
    uint32_t begin_ms, retry_ms; /* before its first try, and the others; 0: at once, 10 ms */
    uint32_t stall_ms;           /* what its end, or the end of its first try, takes */
    struct rt_deadline deadline; /* of all its tries */
    unsigned over_count;
    uint64_t over_ns;
    enum ron_err err;
    char path[3];
};
struct sky {
    struct io_transport *transport;
    struct io_flights *flights;
    struct trip trips[FLIGHTS_COUNT];
    bool silent, planted;
    bool mute; /* to the first */
};

/* GET /N: answers N. */
static void serve(void *context, const struct http_head *head, struct ron_slice body,
                  struct ron_buf *reply)
{
    const struct sky *sky = context;

    (void)body;
    if (!sky->silent && !(sky->mute && head->path.data[1] == '0'))
        ron_buf_put_format(reply, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%c",
                           sky->planted ? '0' : head->path.data[1]);
}

static struct sky *open_slow_sky(uint32_t flights_max, uint32_t connections_max, uint32_t think_ms)
{
    struct sky *sky = model_alloc(sizeof(*sky));
    const struct io_sim_options network = {.handler = serve,
                                           .context = sky,
                                           .delay_ns = DELAY_MS * RT_NS_PER_MS,
                                           .think_ns = think_ms * RT_NS_PER_MS};
    struct io_flights_options options = {.flights_max = flights_max,
                                         .connections_max = connections_max};

    rt_init();
    model_must(io_transport_simulated(&network, &sky->transport, NULL));
    options.transport = sky->transport;
    model_must(io_flights_new(&options, &sky->flights, NULL));
    return sky;
}

static struct sky *open_sky(uint32_t flights_max, uint32_t connections_max)
{
    return open_slow_sky(flights_max, connections_max, 0);
}

static void close_sky(struct sky *sky)
{
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++)
        RON_ASSERT(sky->trips[i].over_count == (sky->trips[i].taken ? 1 : 0));
    RON_ASSERT(io_flights_get_stats(sky->flights).flights_count == 0);
    io_sim_settle(sky->transport);
    sky->flights = io_flights_free(sky->flights);
    ron_mem_free(sky);
}

static enum io_flight_next over(struct trip *trip, enum ron_err err)
{
    RON_ASSERT(rt_now_ns() <= trip->deadline.at_ns);
    trip->over_count++;
    trip->over_ns = rt_now_ns();
    trip->err = err;
    return IO_FLIGHT_OVER;
}

static enum io_flight_next ready(struct io_flight *flight)
{
    struct trip *trip = flight->context;

    if (trip->held) {
        trip->held = false;
        return IO_FLIGHT_HOLD;
    }
    flight->begin_ns = rt_now_ns() + trip->begin_ms * RT_NS_PER_MS;
    flight->deadline = trip->patient
                           ? trip->deadline
                           : rt_deadline_min(trip->deadline, rt_deadline_after_ms(TRY_MS));
    return IO_FLIGHT_SEND;
}

static enum io_flight_next done(struct io_flight *flight, enum ron_err err,
                                const struct ron_errinfo *info, const struct io_client_reply *reply)
{
    struct trip *trip = flight->context;
    const uint32_t retry_ms = trip->retry_ms == 0 ? 10 : trip->retry_ms;

    (void)info;
    RON_ASSERT(trip->over_count == 0);
    rt_fault_delay_ms(trip->stall_ms);
    trip->stall_ms = 0;
    if (trip->resumes) { /* the other is held: its turn */
        trip->resumes = false;
        io_flights_resume(trip->sky->flights, &trip->sky->trips[1].flight);
    }
    if (err == RON_ERR_OK) {
        RON_ASSERT(reply->head.status == 200);
        RON_ASSERT(reply->body.size == 1 && reply->body.data[0] == (uint8_t)trip->path[1]);
        return over(trip, err);
    }
    RON_ASSERT(err == RON_ERR_TIMEOUT || err == RON_ERR_UPSTREAM_UNAVAILABLE ||
               err == RON_ERR_CANCELED || (trip->bad && err == RON_ERR_MALFORMED));
    if (err == RON_ERR_CANCELED || trip->tries_count++ == RETRIES_MAX ||
        rt_deadline_expired(trip->deadline))
        return over(trip, err);
    flight->begin_ns = rt_now_ns() + retry_ms * RT_NS_PER_MS;
    flight->deadline = rt_deadline_min(trip->deadline, rt_deadline_after_ms(retry_ms + TRY_MS));
    return IO_FLIGHT_SEND;
}

static void submit(struct sky *sky, unsigned number, uint32_t patience_ms)
{
    struct trip *trip = &sky->trips[number];

    trip->sky = sky;
    trip->number = number;
    trip->deadline = rt_deadline_after_ms(patience_ms);
    trip->path[0] = trip->bad ? ' ' : '/';
    trip->path[1] = (char)('0' + number);
    trip->flight = (struct io_flight){.request = {.method = HTTP_GET, .path = trip->path},
                                      .deadline = trip->deadline,
                                      .ready = ready,
                                      .done = done,
                                      .context = trip};
    trip->taken = io_flights_submit(sky->flights, &trip->flight, NULL) == RON_ERR_OK;
}

static bool is_over(const struct sky *sky)
{
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++)
        if (sky->trips[i].taken && sky->trips[i].over_count == 0)
            return false;
    return true;
}

/* ---- lossy: fewer faults than tries, and time enough: all arrive, on few connections or many ----
 */

static void flights_lossy_fn(void *argument) RON_BLOCKS
{
    struct sky *sky = open_sky(FLIGHTS_COUNT, 1 + sim_choose(2, "connections"));

    sky->planted = argument == PLANTED;
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++)
        submit(sky, i, PATIENCE_MS);
    RON_ASSERT(io_flights_submit(sky->flights, &(struct io_flight){0}, NULL) == RON_ERR_BUSY);
    while (!is_over(sky))
        RON_ASSERT(io_flights_turn(sky->flights));
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++)
        RON_ASSERT(sky->trips[i].err == RON_ERR_OK);
    sim_outcome(io_flights_get_stats(sky->flights).tries_count);
    close_sky(sky);
}

/* ---- held: until it is resumed by another one's end, or its deadline ---- */

static void flights_held_fn(void *argument) RON_BLOCKS
{
    struct sky *sky = open_sky(FLIGHTS_COUNT, 1);
    const uint32_t patience_ms = sim_choose(2, "impatient") == 1 ? TRY_MS / 2 : PATIENCE_MS;

    (void)argument;
    sky->trips[0].resumes = patience_ms == PATIENCE_MS;
    sky->trips[1].held = true;
    submit(sky, 0, PATIENCE_MS);
    submit(sky, 1, patience_ms);
    while (!is_over(sky))
        RON_ASSERT(io_flights_turn(sky->flights));
    RON_ASSERT(sky->trips[0].err == RON_ERR_OK);
    RON_ASSERT(sky->trips[1].err == (patience_ms == PATIENCE_MS ? RON_ERR_OK : RON_ERR_TIMEOUT));
    sim_outcome(patience_ms);
    close_sky(sky);
}

/* ---- stalled: the pilot is late itself, the answers are there ---- */

static void flights_stalled_fn(void *argument) RON_BLOCKS
{
    struct sky *sky = open_slow_sky(FLIGHTS_COUNT, FLIGHTS_COUNT, TRY_MS / 2);

    sky->trips[0].stall_ms = 2 * TRY_MS;
    sky->trips[1].begin_ms = argument == PLANTED ? 2 * TRY_MS : 10;
    sky->trips[1].patient = argument == PLANTED;
    submit(sky, 0, PATIENCE_MS);
    submit(sky, 1, PATIENCE_MS);
    while (!is_over(sky))
        RON_ASSERT(io_flights_turn(sky->flights));
    for (unsigned i = 0; i < 2; i++) {
        RON_ASSERT(sky->trips[i].err == RON_ERR_OK);
        RON_ASSERT(sky->trips[i].tries_count == 0); /* no other try */
    }
    RON_ASSERT(sky->trips[1].over_ns == sky->trips[0].over_ns);
    sim_outcome(0);
    close_sky(sky);
}

/* ---- prompt: whose time, or connection, comes in the middle of a turn is begun then ---- */

static void flights_prompt_fn(void *argument) RON_BLOCKS
{
    const bool room = sim_choose(2, "room") == 1;
    struct sky *sky = open_sky(FLIGHTS_COUNT, 1);
    const uint64_t begin_ns = rt_now_ns();

    (void)argument;
    if (room) { /* the first has the connection, and gives it back for a while */
        sky->mute = true;
    } else { /* the first fails while the turn begins others, and that takes a moment */
        sky->trips[0].bad = true;
        sky->trips[0].stall_ms = TRY_MS;
        sky->trips[1].begin_ms = TRY_MS / 2;
    }
    sky->trips[0].retry_ms = 5 * TRY_MS;
    sky->trips[1].patient = true;
    submit(sky, 0, PATIENCE_MS);
    submit(sky, 1, PATIENCE_MS);
    while (!is_over(sky))
        RON_ASSERT(io_flights_turn(sky->flights));
    RON_ASSERT(sky->trips[1].err == RON_ERR_OK);
    RON_ASSERT(sky->trips[1].over_ns == begin_ns + TRY_MS * RT_NS_PER_MS);
    sim_outcome(room);
    close_sky(sky);
}

/* ---- idle: a connection that nobody needs is closed in time, without being asked for ---- */

static struct {
    struct io_transport_ops ops;
    void (*close)(struct io_wire *wire);
    uint64_t closed_ns;
} watched;

static void close_watched(struct io_wire *wire)
{
    watched.closed_ns = rt_now_ns();
    watched.close(wire);
}

static void flights_idle_fn(void *argument) RON_BLOCKS
{
    enum { IDLE_MS = 30000 }; /* the default */
    struct sky *sky = open_sky(FLIGHTS_COUNT, 1);
    const uint64_t begin_ns = rt_now_ns();

    (void)argument;
    watched.ops = *sky->transport->ops;
    watched.close = watched.ops.close;
    watched.closed_ns = 0;
    watched.ops.close = close_watched;
    sky->transport->ops = &watched.ops;
    sky->trips[1].held = true; /* the pilot has somebody to wait for */
    submit(sky, 0, PATIENCE_MS);
    submit(sky, 1, 2 * IDLE_MS);
    while (!is_over(sky))
        RON_ASSERT(io_flights_turn(sky->flights));
    RON_ASSERT(sky->trips[0].err == RON_ERR_OK);
    RON_ASSERT(watched.closed_ns == begin_ns + IDLE_MS * RT_NS_PER_MS);
    sim_outcome(0);
    close_sky(sky);
}

/* ---- canceled: at any moment, while others submit ---- */

static void pilot_fn(void *argument) RON_BLOCKS
{
    io_flights_run(((struct sky *)argument)->flights);
}

static void traveller_fn(void *argument)
{
    submit(argument, 1, PATIENCE_MS);
    submit(argument, 2, PATIENCE_MS);
}

static void flights_canceled_fn(void *argument) RON_BLOCKS
{
    struct sky *sky = open_sky(FLIGHTS_COUNT, 2);
    struct sh_thread *pilot;
    struct sh_thread *traveller;
    unsigned taken = 0;

    (void)argument;
    sky->silent = sim_choose(2, "silent") == 1;
    pilot = model_spawn("pilot", pilot_fn, sky);
    traveller = model_spawn("traveller", traveller_fn, sky);
    submit(sky, 0, PATIENCE_MS);
    io_flights_cancel(sky->flights);
    model_join(traveller);
    model_join(pilot);
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++) {
        taken += sky->trips[i].taken;
        RON_ASSERT(!sky->trips[i].taken || sky->trips[i].err == RON_ERR_CANCELED ||
                   (!sky->silent && sky->trips[i].err == RON_ERR_OK));
    }
    sim_outcome(taken);
    close_sky(sky);
}

/* ---- awake: nobody comes to the rescue of a pilot that sleeps ---- */

static void flights_awake_fn(void *argument) RON_BLOCKS
{
    struct sky *sky = open_sky(FLIGHTS_COUNT, FLIGHTS_COUNT);
    struct sh_thread *pilot = model_spawn("pilot", pilot_fn, sky);
    struct sh_thread *traveller = model_spawn("traveller", traveller_fn, sky);

    (void)argument;
    submit(sky, 0, PATIENCE_MS);
    model_join(traveller);
    while (!is_over(sky))
        sh_sleep_until(rt_now_ns() + RT_NS_PER_MS);
    for (unsigned i = 0; i < FLIGHTS_COUNT; i++) {
        RON_ASSERT(sky->trips[i].taken);
        RON_ASSERT(sky->trips[i].err == RON_ERR_OK);
    }
    io_flights_cancel(sky->flights);
    model_join(pilot);
    sim_outcome(io_flights_get_stats(sky->flights).connects_count);
    close_sky(sky);
}

static const struct model_case lossy_cases[] = {
    {.config = {.preemption_bound = NONE}},
    {.config = {.preemption_bound = NONE, .faults = 2}},
    {.config = {.preemption_bound = NONE, .faults = 3},
     .strategy = SIM_STRATEGY_RANDOM,
     .runs_max = 2000},
};
static const struct model_case planted_cases[] = {
    {.config = {.preemption_bound = NONE}, .expected = SIM_ASSERTION},
};
static const struct model_case held_cases[] = {
    {.config = {.preemption_bound = NONE}},
};
static const struct model_case threads_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1, .faults = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}},
};
static const struct model_case awake_cases[] = {
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_RANDOM},
    {.config = {.preemption_bound = NONE, .fine = 1}, .strategy = SIM_STRATEGY_PCT},
    {.config = {.preemption_bound = 2}},
};
MODEL(flights_lossy, "flights over a lossy network: each arrives, with its own reply",
      flights_lossy_fn, NULL, lossy_cases);
MODEL(flights_lossy_planted, "a peer that answers another's request", flights_lossy_fn, PLANTED,
      planted_cases);
MODEL(flights_held, "a flight that is held goes on when told, or ends with its deadline",
      flights_held_fn, NULL, held_cases);
MODEL(flights_stalled, "an answer that came while the pilot was away is one", flights_stalled_fn,
      NULL, held_cases);
MODEL(flights_stalled_planted, "one that did not", flights_stalled_fn, PLANTED, planted_cases);
MODEL(flights_prompt, "a time or a connection that comes within a turn is not overlooked",
      flights_prompt_fn, NULL, held_cases);
MODEL(flights_idle, "a connection without flights is closed when its time is over", flights_idle_fn,
      NULL, held_cases);
MODEL(flights_canceled, "a cancel at any moment ends every flight, once", flights_canceled_fn, NULL,
      threads_cases);
MODEL(flights_awake, "no flight waits for a pilot that sleeps", flights_awake_fn, NULL,
      awake_cases);
