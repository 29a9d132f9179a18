/*
 * loop.c - one epoll loop: events, answers from other threads, deadlines. See conn.h.
 *
 * Connections are registered once, edge-triggered, for both directions; what the kernel said is
 * kept in flags until EAGAIN, so that no further system call is spent on telling it what to watch.
 * Deadlines hang in a wheel of WHEEL_TICK_MS slots. Moving a deadline later only changes the number
 * in the connection: the slot it hangs in finds it early and hangs it again.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/conn.h"
#include "io/stream.h"
#include "rt/local.h"

#define TICK_NS (WHEEL_TICK_MS * RT_NS_PER_MS)

/* What the event of a ring says. Its descriptor is never read: edge-triggered, each write to it is
 * an event of its own, whatever was written before. */
enum { RANG = 0 };

static void look_at_clocks(struct io_loop *loop)
{
    loop->now_ns = rt_now_ns();
    loop->utc_ms = rt_utc_ms();
    if (loop->utc_ms / 1000 == loop->date_s)
        return;
    loop->date_s = loop->utc_ms / 1000;
    http_date_print(loop->utc_ms, loop->date);
}

/* Listeners are watched by every loop; the kernel wakes one for each connection. */
static enum ron_err watch_listeners(struct io_loop *loop, struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < loop->server->listeners_count; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = i << 1 | 1};

        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->server->listeners[i].fd, &event) != 0)
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "epoll_ctl: %s", strerror(errno));
    }
    return RON_ERR_OK;
}

static void leave_listeners(struct io_loop *loop)
{
    for (size_t i = 0; i < loop->server->listeners_count; i++)
        (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->server->listeners[i].fd, NULL);
}

void loop_pause_accept(struct io_loop *loop)
{
    leave_listeners(loop);
    loop->accept_again_ns = loop->now_ns + LOOP_ACCEPT_PAUSE_MS * RT_NS_PER_MS;
}

static void resume_accept(struct io_loop *loop)
{
    if (loop->accept_again_ns == 0 || loop->stopping || loop->now_ns < loop->accept_again_ns)
        return;
    loop->accept_again_ns = 0;
    if (watch_listeners(loop, NULL) != RON_ERR_OK)
        loop_pause_accept(loop);
}

enum ron_err io_loop_new(struct io_server *server, unsigned number, struct io_loop **ret_loop,
                         struct ron_errinfo *reterr)
{
    struct io_loop *loop = ron_mem_alloc_array(1, sizeof(*loop));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = RANG};
    enum ron_err err;

    if (loop == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "I/O loop");
    loop->server = server;
    loop->number = number;
    rt_lock_init(&loop->lock, "loop", RON_RANK_net);
    net_lock(loop);
    loop->done_end = &loop->done;
    net_unlock(loop);
    loop->flush_end = &loop->flush;
    loop->done_here_end = &loop->done_here;
    look_at_clocks(loop);
    loop->tick = loop->now_ns / TICK_NS;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &event) != 0)
        err = ron_fail_sys(reterr, RON_ERR_BUSY, errno, "I/O loop: %s", strerror(errno));
    else
        err = watch_listeners(loop, reterr);
    if (err != RON_ERR_OK) {
        (void)io_loop_free(loop);
        return err;
    }
    *ret_loop = loop;
    return RON_ERR_OK;
}

struct io_loop *io_loop_free(struct io_loop *loop)
{
    if (loop == NULL)
        return NULL;
    RON_ASSERT(loop->conns == NULL);
    while (loop->spare_calls != NULL) {
        struct io_call *call = loop->spare_calls;

        loop->spare_calls = call->next;
        call_drop(call);
    }
    while (loop->spare_buffers_count > 0)
        (void)ron_mem_free(loop->spare_buffers[--loop->spare_buffers_count]);
    while (loop->spare_bodies_count > 0)
        (void)ron_mem_free(loop->spare_bodies[--loop->spare_bodies_count].data);
    if (loop->epoll_fd >= 0)
        RON_MUST_ZERO(close(loop->epoll_fd));
    if (loop->event_fd >= 0)
        RON_MUST_ZERO(close(loop->event_fd));
    rt_lock_fini(&loop->lock);
    return ron_mem_free(loop);
}

/* ---- From other threads ---- */

static void ring(struct io_loop *loop)
{
    uint64_t one = 1;
    ssize_t size;

    do
        size = write(loop->event_fd, &one, sizeof(one));
    while (size < 0 && errno == EINTR);
    RON_ASSERT(size == sizeof(one)); /* 2^64 rings fill it */
}

void io_loop_wake(struct io_loop *loop)
{
    ring(loop);
}

/* Leave the ring and the count, which keeps the server alive, to the end of the burst. */
static bool burst_take(struct io_burst *burst, struct io_loop *loop, bool asleep)
{
    size_t i = 0;

    if (burst == NULL)
        return false;
    while (i < burst->loops_count && burst->loops[i].loop != loop)
        i++;
    if (i == IO_BURST_LOOPS_MAX)
        return false;
    if (i == burst->loops_count) {
        burst->loops_count++;
        burst->loops[i].loop = loop;
        burst->loops[i].calls_count = 0;
        burst->loops[i].asleep = false;
    }
    burst->loops[i].calls_count++;
    burst->loops[i].asleep = burst->loops[i].asleep || asleep;
    return true;
}

/* By the loop itself: it looks at them in this turn or the next, and sleeps in between never. */
static void hand_in_here(struct io_loop *loop, struct io_call *call)
{
    *loop->done_here_end = call;
    loop->done_here_end = &call->next;
    rt_atomic_sub_u32(&loop->server->calls_count, 1); /* which waits for this thread to end */
}

void io_loop_hand_in(struct io_loop *loop, struct io_call *call)
{
    struct io_server *server = loop->server;
    bool asleep;

    call->next = NULL;
    if (sh_local()->loop == loop) {
        hand_in_here(loop, call);
        return;
    }
    net_lock(loop);
    *loop->done_end = call;
    loop->done_end = &call->next;
    asleep = loop->asleep;
    loop->asleep = false; /* one ring is enough */
    net_unlock(loop);
    if (burst_take(sh_local()->burst, loop, asleep))
        return;
    if (asleep)
        ring(loop);
    rt_atomic_sub_u32(&server->calls_count, 1); /* from here on the server may be gone */
}

void io_burst_begin(struct io_burst *burst)
{
    RON_ASSERT(sh_local()->burst == NULL);
    burst->loops_count = 0;
    sh_local()->burst = burst;
}

void io_burst_end(struct io_burst *burst)
{
    RON_ASSERT(sh_local()->burst == burst);
    sh_local()->burst = NULL;
    for (size_t i = 0; i < burst->loops_count; i++) {
        struct io_loop *loop = burst->loops[i].loop;
        struct io_server *server = loop->server;

        if (burst->loops[i].asleep)
            ring(loop);
        rt_atomic_sub_u32(&server->calls_count, burst->loops[i].calls_count);
    }
}

void io_loop_hand_in_stream(struct io_loop *loop, struct io_stream *stream, bool last)
{
    bool asleep;

    net_lock(loop);
    io_stream_link(stream, &loop->streams_ready, last);
    asleep = loop->asleep;
    loop->asleep = false;
    net_unlock(loop);
    if (asleep)
        ring(loop);
}

static void take_list(struct io_loop *loop, struct io_call *done)
{
    size_t count = 0;

    while (done != NULL) {
        struct io_call *next = done->next;

        if (count++ % LOOP_CLOCK_EVENTS == 0)
            look_at_clocks(loop);
        done->protocol->answered(done);
        done = next;
    }
}

/* What an answer brings about, the next request of its connection, may be answered here meanwhile:
 * that is for the next time. */
static void take_answers(struct io_loop *loop)
{
    struct io_call *here = loop->done_here;
    struct io_stream *streams;
    struct io_call *done;

    loop->done_here = NULL;
    loop->done_here_end = &loop->done_here;
    net_lock(loop);
    done = loop->done;
    loop->done = NULL;
    loop->done_end = &loop->done;
    streams = loop->streams_ready;
    loop->streams_ready = NULL;
    net_unlock(loop);
    take_list(loop, done);
    take_list(loop, here);
    io_streams_pump(streams);
}

/* ---- Deadlines ---- */

void loop_disarm(struct io_conn *conn)
{
    if (conn->wheel_link == NULL)
        return;
    *conn->wheel_link = conn->wheel_next;
    if (conn->wheel_next != NULL)
        conn->wheel_next->wheel_link = conn->wheel_link;
    conn->wheel_link = NULL;
}

static void hang(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;
    uint64_t tick = conn->deadline_ns / TICK_NS + 1; /* never early */
    struct io_conn **slot;

    if (tick <= loop->tick)
        tick = loop->tick + 1;
    if (tick > loop->tick + WHEEL_SLOTS - 1)
        tick = loop->tick + WHEEL_SLOTS - 1;
    slot = &loop->wheel[tick & (WHEEL_SLOTS - 1)];
    conn->armed_tick = tick;
    conn->wheel_next = *slot;
    conn->wheel_link = slot;
    if (*slot != NULL)
        (*slot)->wheel_link = &conn->wheel_next;
    *slot = conn;
    loop->wheel_used[tick / 64 % RON_ARRAY_COUNT(loop->wheel_used)] |= UINT64_C(1) << tick % 64;
}

void loop_arm(struct io_conn *conn, uint64_t deadline_ns)
{
    conn->deadline_ns = deadline_ns;
    if (conn->wheel_link != NULL && conn->armed_tick <= deadline_ns / TICK_NS + 1)
        return;
    loop_disarm(conn);
    hang(conn);
}

void loop_arm_ms(struct io_conn *conn, uint64_t ms)
{
    loop_arm(conn, conn->loop->now_ns + ms * RT_NS_PER_MS);
}

static void fire_slot(struct io_loop *loop, uint64_t tick, uint64_t now_ns)
{
    struct io_conn *conn = loop->wheel[tick & (WHEEL_SLOTS - 1)];

    /* Take the whole list off first: what fires may close others or hang itself again. */
    while (conn != NULL) {
        loop_disarm(conn);
        if (conn->deadline_ns <= now_ns)
            conn_deadline(conn);
        else
            hang(conn);
        conn = loop->wheel[tick & (WHEEL_SLOTS - 1)];
    }
    loop->wheel_used[tick / 64 % RON_ARRAY_COUNT(loop->wheel_used)] &= ~(UINT64_C(1) << tick % 64);
}

static void fire_deadlines(struct io_loop *loop)
{
    uint64_t now_tick;

    look_at_clocks(loop);
    now_tick = loop->now_ns / TICK_NS;
    if (now_tick > loop->tick + WHEEL_SLOTS)
        loop->tick = now_tick - WHEEL_SLOTS; /* slept long: each slot once is enough */
    while (loop->tick < now_tick) {
        loop->tick++;
        fire_slot(loop, loop->tick, loop->now_ns);
    }
}

/* ---- Turns ---- */

void loop_flush_later(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;

    if (conn->flushing)
        return;
    conn->flushing = true;
    conn->flush_next = NULL;
    *loop->flush_end = conn;
    loop->flush_end = &conn->flush_next;
    loop->flush_count++;
}

/* A connection in the list ends. */
void loop_flush_never(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;
    struct io_conn **link = &loop->flush;

    if (!conn->flushing)
        return;
    while (*link != conn)
        link = &(*link)->flush_next;
    *link = conn->flush_next;
    if (loop->flush_end == &conn->flush_next)
        loop->flush_end = link;
    conn->flushing = false;
    loop->flush_count--;
}

/* Some of those that are in the list now; the rest, and what they put there, waits for the next
 * turn: who has its reply may have asked again by then, and that is read in between. If all replies
 * of a group went out first, all its clients would ask at once, and nobody would work meanwhile. */
static void flush_some(struct io_loop *loop)
{
    const size_t most = loop->flush_count < LOOP_TOGETHER ? loop->flush_count : LOOP_TOGETHER;

    for (size_t left = most; left > 0 && loop->flush != NULL; left--) {
        struct io_conn *conn = loop->flush;

        loop_flush_never(conn);
        conn_flush(conn);
    }
}

/* Until the next slot in use: at most the wheel's length. */
static int wait_ms(struct io_loop *loop)
{
    uint64_t now_tick = rt_now_ns() / TICK_NS;

    if (loop->accept_again_ns != 0)
        return WHEEL_TICK_MS;
    for (uint64_t tick = loop->tick + 1; tick < loop->tick + WHEEL_SLOTS; tick++) {
        uint64_t word = loop->wheel_used[tick / 64 % RON_ARRAY_COUNT(loop->wheel_used)];

        if (word == 0) {
            tick |= 63;
            continue;
        }
        if ((word >> tick % 64 & 1) != 0)
            return tick <= now_tick ? 0 : (int)(tick - now_tick) * WHEEL_TICK_MS;
    }
    return WHEEL_SLOTS * WHEEL_TICK_MS;
}

/* May it sleep? From here on whoever hands something in rings. */
static bool fall_asleep(struct io_loop *loop)
{
    bool idle;

    net_lock(loop);
    idle = loop->done == NULL && loop->done_here == NULL && loop->streams_ready == NULL &&
           loop->flush == NULL;
    loop->asleep = idle;
    net_unlock(loop);
    return idle;
}

static void wake_up(struct io_loop *loop)
{
    net_lock(loop);
    loop->asleep = false;
    net_unlock(loop);
}

static void take_event(struct io_loop *loop, const struct epoll_event *event)
{
    if (event->data.u64 == RANG)
        return; /* to be awake is all it was for */
    if ((event->data.u64 & 1) != 0) {
        if (!loop->stopping)
            conn_accept(&loop->server->listeners[event->data.u64 >> 1], loop);
    } else {
        conn_ready((struct io_conn *)event->data.ptr, event->events);
    }
}

static void take_events(struct io_loop *loop, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        if (i % LOOP_CLOCK_EVENTS == 0)
            look_at_clocks(loop);
        take_event(loop, &events[i]);
        if (loop->handed_on_count >= LOOP_TOGETHER)
            loop_hand_over(loop); /* others work while the rest is read */
    }
}

/* To wake who works on requests costs as much as reading several: while more keep coming, they go
 * to it together. Of all that, `taken` included, there are no more than `most`. */
static void gather_more(struct io_loop *loop, struct epoll_event *events, int taken, int most)
{
    int count = taken;

    for (int i = 0; i < LOOP_GATHER_LOOKS && count > 0 && taken < most &&
                    loop->handed_on_count >= LOOP_GATHER_FROM;
         i++) {
        count = epoll_wait(loop->epoll_fd, events, most - taken, 0);
        RON_ASSERT(count >= 0 || errno == EINTR);
        take_events(loop, events, count);
        taken += count;
    }
}

static void stop_listening(struct io_loop *loop)
{
    loop->stopping = true;
    leave_listeners(loop);
}

static void end_streams(struct io_loop *loop)
{
    struct io_conn *next;

    for (struct io_conn *conn = loop->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->state == CONN_STREAM)
            io_stream_end(conn->stream);
        else if (conn->in_tail && conn->state == CONN_WAIT)
            io_stream_tail_end(conn);
    }
}

/* Close what waits for nothing; the rest closes after its reply. */
static void close_idle(struct io_loop *loop)
{
    struct io_conn *next;

    for (struct io_conn *conn = loop->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->call == NULL && conn->inflight == 0 && conn->state != CONN_LINGER &&
            conn->out.start == conn->out.end)
            conn_close(conn);
    }
}

enum ron_err io_loop_run(struct rt_task *task, void *argument)
{
    struct io_loop *loop = argument;
    struct epoll_event events[LOOP_EVENTS_MAX];

    loop->self = task;
    sh_local()->loop = loop;
    while (!rt_task_canceled(task)) {
        int timeout_ms = fall_asleep(loop) ? wait_ms(loop) : 0;
        /* While replies wait no more is read than is sent, about: a flood does not hold them up. */
        int most = loop->flush != NULL ? 2 * LOOP_TOGETHER : LOOP_EVENTS_MAX;
        int count = epoll_wait(loop->epoll_fd, events, most, timeout_ms);

        RON_ASSERT(count >= 0 || errno == EINTR);
        wake_up(loop);
        rt_task_beat(task);
        take_events(loop, events, count);
        gather_more(loop, events, count, most);
        take_answers(loop);
        if (loop->handed_count > 0) {
            loop_hand_over(loop); /* before the replies are sent: others work meanwhile */
            /* Who was woken may have had this processor: its answers go out in the same turn, and
             * what is asked next comes in fewer, larger turns. */
            take_answers(loop);
        }
        fire_deadlines(loop);
        resume_accept(loop);
        if (rt_atomic_load_u32(&loop->server->draining) != 0)
            end_streams(loop);
        flush_some(loop);
        loop_hand_over(loop);
        if (rt_atomic_load_u32(&loop->server->stopping) != 0) {
            if (!loop->stopping)
                stop_listening(loop);
            close_idle(loop);
        }
    }
    if (!loop->stopping)
        stop_listening(loop);
    while (loop->conns != NULL)
        conn_close(loop->conns);
    take_answers(loop);
    sh_local()->loop = NULL;
    return RON_ERR_CANCELED;
}

void io_loop_settle(struct io_loop *loop)
{
    RON_ASSERT(loop->task == NULL && loop->conns == NULL);
    take_answers(loop);
}
