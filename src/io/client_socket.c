/*
 * client_socket.c - the client's transport over TCP and Unix sockets, plain or with TLS. See
 * client_transport.h.
 *
 * Descriptors are non-blocking; every wait is one ppoll on the socket and on an eventfd that
 * io_transport_cancel rings once and nobody ever empties: a call that begins later wakes as well.
 * An exchange also waits on a second one, which it empties. Wires that are waited for together hang
 * in an epoll descriptor, edge-triggered, with these two.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/client_transport.h"
#include "io/tls_client.h"

struct socket_transport {
    struct io_transport transport; /* first */
    struct io_address address;
    struct tls_client *tls; /* NULL: plain */
    int cancel_fd, wake_fd;
    int epoll_fd; /* both, and the wires that were begun */
};
struct socket_wire {
    struct io_wire wire; /* first */
    int fd;
    bool connected;              /* of one that was begun: and hands are shaken */
    struct tls_session *session; /* NULL: plain */
};

static const struct socket_transport *transport_of(const struct io_wire *wire)
{
    return (const struct socket_transport *)wire->transport;
}

/* ---- Waiting ---- */

static void ring(int fd)
{
    uint64_t one = 1;
    ssize_t size;

    do
        size = write(fd, &one, sizeof(one));
    while (size < 0 && errno == EINTR);
    RON_ASSERT(size == sizeof(one) || errno == EAGAIN); /* full: it wakes anyway */
}

/* wake_fd may be -1. */
static enum ron_err wait_or_wake(const struct io_wire *wire, short events, int wake_fd,
                                 struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    struct pollfd fds[3] = {{.fd = ((const struct socket_wire *)wire)->fd, .events = events},
                            {.fd = transport_of(wire)->cancel_fd, .events = POLLIN},
                            {.fd = wake_fd, .events = POLLIN}};
    uint64_t rings;

    for (;;) {
        uint64_t left_ns = rt_deadline_remaining_ns(deadline);
        struct timespec timeout = {.tv_sec = (time_t)(left_ns / RT_NS_PER_S),
                                   .tv_nsec = (long)(left_ns % RT_NS_PER_S)};
        int count = ppoll(fds, 3, left_ns == UINT64_MAX ? NULL : &timeout, NULL);

        if (count < 0 && errno != EINTR)
            return ron_fail_sys(reterr, RON_ERR_IO, errno, "poll: %s", strerror(errno));
        if (count > 0 && fds[1].revents != 0)
            return ron_fail(reterr, RON_ERR_CANCELED, "canceled while waiting for the peer");
        if (count > 0 && fds[2].revents != 0)
            (void)!read(wake_fd, &rings, sizeof(rings)); /* whoever rings again is seen again */
        if (count > 0)
            return RON_ERR_OK;
        if (rt_deadline_expired(deadline))
            return ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline passed waiting for the peer");
    }
}

static enum ron_err wait_for(const struct io_wire *wire, short events, struct rt_deadline deadline,
                             struct ron_errinfo *reterr)
{
    return wait_or_wake(wire, events, -1, deadline, reterr);
}

static enum ron_err fail_lost(int number, const char *what, struct ron_errinfo *reterr)
{
    return ron_fail_sys(reterr, RON_ERR_UPSTREAM_UNAVAILABLE, number, "%s: %s", what,
                        strerror(number));
}

/* ---- Connecting ---- */

static enum ron_err open_socket(const struct socket_transport *transport, int *ret_fd,
                                struct ron_errinfo *reterr)
{
    int one = 1;
    int fd = socket(transport->address.storage.ss_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return ron_fail_sys(reterr, RON_ERR_BUSY, errno, "socket: %s", strerror(errno));
    if (!io_address_is_unix(&transport->address))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only slower */
    *ret_fd = fd;
    return RON_ERR_OK;
}

static enum ron_err finish_connect(struct socket_wire *wire, struct rt_deadline deadline,
                                   struct ron_errinfo *reterr)
{
    const struct io_address *address = &transport_of(&wire->wire)->address;
    int number = 0;
    socklen_t size = sizeof(number);
    enum ron_err err;

    if (connect(wire->fd, (const struct sockaddr *)&address->storage, address->size) == 0)
        return RON_ERR_OK;
    /* A Unix socket whose queue is full says EAGAIN at once and cannot be waited for. */
    if (errno != EINPROGRESS && errno != EINTR)
        return fail_lost(errno, "connect", reterr);
    err = wait_for(&wire->wire, POLLOUT, deadline, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "connect");
    RON_MUST_ZERO(getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &number, &size));
    return number == 0 ? RON_ERR_OK : fail_lost(number, "connect", reterr);
}

static enum ron_err shake_hands(struct socket_wire *wire, struct rt_deadline deadline,
                                struct ron_errinfo *reterr)
{
    enum ron_err err = tls_session_new(transport_of(&wire->wire)->tls, wire->fd, &wire->session,
                                       reterr);

    while (err == RON_ERR_OK) {
        struct ron_errinfo info = {0};
        enum tls_step step = tls_session_handshake(wire->session, &info);

        if (step == TLS_DONE)
            return RON_ERR_OK;
        if (step == TLS_FAILED)
            return ron_fail(reterr, info.err, "%s", info.message);
        err = wait_for(&wire->wire, step == TLS_WANT_READ ? POLLIN : POLLOUT, deadline, reterr);
    }
    return ron_wrap(reterr, err, "TLS handshake");
}

static void socket_close(struct io_wire *wire)
{
    struct socket_wire *mine = (struct socket_wire *)wire;

    mine->session = tls_session_free(mine->session);
    if (mine->fd >= 0)
        (void)close(mine->fd); /* what was not sent is of no use to anybody */
    (void)ron_mem_free(mine);
}

/* A wire with a socket of its own, not connected. */
static enum ron_err make_wire(struct socket_transport *transport, struct socket_wire **ret_wire,
                              struct ron_errinfo *reterr)
{
    struct socket_wire *wire = ron_mem_alloc(sizeof(*wire));
    enum ron_err err;

    if (wire == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "connection");
    wire->wire.transport = &transport->transport;
    wire->fd = -1;
    err = open_socket(transport, &wire->fd, reterr);
    if (err == RON_ERR_OK)
        *ret_wire = wire;
    else
        socket_close(&wire->wire);
    return err;
}

static enum ron_err socket_connect(struct io_transport *transport, struct rt_deadline deadline,
                                   struct io_wire **ret_wire, struct ron_errinfo *reterr)
{
    struct socket_transport *mine = (struct socket_transport *)transport;
    struct socket_wire *wire = NULL;
    enum ron_err err = make_wire(mine, &wire, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = finish_connect(wire, deadline, reterr);
    if (err == RON_ERR_OK && mine->tls != NULL)
        err = shake_hands(wire, deadline, reterr);
    if (err != RON_ERR_OK) {
        socket_close(&wire->wire);
        return err;
    }
    *ret_wire = &wire->wire;
    return RON_ERR_OK;
}

/* ---- Bytes ---- */

/* One try. RON_ERR_OK with *ret_done 0: wait for *ret_events. */
static enum ron_err try_send(struct socket_wire *wire, struct ron_slice bytes, size_t *ret_done,
                             short *ret_events, struct ron_errinfo *reterr)
{
    enum tls_step step;
    ssize_t size;

    *ret_done = 0;
    *ret_events = POLLOUT;
    if (wire->session == NULL) {
        size = send(wire->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (size >= 0)
            *ret_done = (size_t)size;
        else if (errno != EAGAIN && errno != EINTR)
            return fail_lost(errno, "send", reterr);
        return RON_ERR_OK;
    }
    step = tls_session_send(wire->session, bytes.data, bytes.size, ret_done);
    if (step == TLS_FAILED || step == TLS_END)
        return fail_lost(ECONNRESET, "send", reterr);
    if (step == TLS_WANT_READ)
        *ret_events = POLLIN;
    return RON_ERR_OK;
}

static enum ron_err socket_send(struct io_wire *wire, struct ron_slice bytes,
                                struct rt_deadline deadline, size_t *ret_sent,
                                struct ron_errinfo *reterr)
{
    while (*ret_sent < bytes.size) {
        struct ron_slice rest = {bytes.data + *ret_sent, bytes.size - *ret_sent};
        size_t done;
        short events;
        enum ron_err err = try_send((struct socket_wire *)wire, rest, &done, &events, reterr);

        *ret_sent += done;
        if (err == RON_ERR_OK && done == 0)
            err = wait_for(wire, events, deadline, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

/* One try. *ret_wait: nothing is there, wait for *ret_events. */
static enum ron_err try_receive(struct socket_wire *wire, void *bytes, size_t size,
                                size_t *ret_size, short *ret_events, struct ron_errinfo *reterr)
{
    enum tls_step step;
    ssize_t got;

    *ret_events = 0;
    if (wire->session == NULL) {
        got = recv(wire->fd, bytes, size, 0);
        if (got >= 0)
            *ret_size = (size_t)got;
        else if (errno == EAGAIN || errno == EINTR)
            *ret_events = POLLIN;
        else
            return fail_lost(errno, "receive", reterr);
        return RON_ERR_OK;
    }
    step = tls_session_receive(wire->session, bytes, size, ret_size);
    if (step == TLS_FAILED)
        return fail_lost(ECONNRESET, "receive", reterr);
    if (step == TLS_END)
        *ret_size = 0;
    else if (step != TLS_DONE)
        *ret_events = step == TLS_WANT_READ ? POLLIN : POLLOUT;
    return RON_ERR_OK;
}

static enum ron_err socket_receive(struct io_wire *wire, void *bytes, size_t size,
                                   struct rt_deadline deadline, size_t *ret_size,
                                   struct ron_errinfo *reterr)
{
    for (;;) {
        short events;
        enum ron_err err = try_receive((struct socket_wire *)wire, bytes, size, ret_size, &events,
                                       reterr);

        if (err != RON_ERR_OK || events == 0)
            return err;
        err = wait_for(wire, events, deadline, reterr);
        if (err != RON_ERR_OK)
            return err;
    }
}

/* What came is looked at first: a peer that refuses says why before it stops reading. */
static enum ron_err socket_exchange(struct io_wire *wire, struct io_exchange *exchange,
                                    struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    struct socket_wire *mine = (struct socket_wire *)wire;
    short receive_events = 0;
    short send_events = 0;
    enum ron_err err = try_receive(mine, exchange->in, exchange->in_size, &exchange->received_size,
                                   &receive_events, reterr);

    if (err != RON_ERR_OK)
        return err;
    exchange->ended = receive_events == 0 && exchange->received_size == 0;
    if (exchange->ended)
        return RON_ERR_OK;
    if (exchange->out.size > 0)
        err = try_send(mine, exchange->out, &exchange->sent_size, &send_events, reterr);
    if (exchange->received_size > 0)
        return RON_ERR_OK; /* if it could not be sent, that comes up again */
    if (err != RON_ERR_OK || exchange->sent_size > 0)
        return err;
    return wait_or_wake(wire, receive_events | send_events, transport_of(wire)->wake_fd, deadline,
                        reterr);
}

/* ---- Many wires ---- */

static enum ron_err watch_fd(int epoll_fd, int fd, uint32_t events, void *pointer,
                             struct ron_errinfo *reterr)
{
    struct epoll_event event = {.events = events, .data.ptr = pointer};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return ron_fail_sys(reterr, RON_ERR_BUSY, errno, "epoll_ctl: %s", strerror(errno));
    return RON_ERR_OK;
}

static enum ron_err socket_begin(struct io_transport *transport, struct io_wire **ret_wire,
                                 struct ron_errinfo *reterr)
{
    struct socket_transport *mine = (struct socket_transport *)transport;
    struct socket_wire *wire = NULL;
    enum ron_err err = make_wire(mine, &wire, reterr);

    if (err != RON_ERR_OK)
        return err;
    if (connect(wire->fd, (const struct sockaddr *)&mine->address.storage, mine->address.size) !=
            0 &&
        errno != EINPROGRESS && errno != EINTR)
        err = errno == EAGAIN ? ron_fail(reterr, RON_ERR_BUSY, "connect: the peer's queue is full")
                              : fail_lost(errno, "connect", reterr);
    if (err == RON_ERR_OK)
        err = watch_fd(mine->epoll_fd, wire->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, wire,
                       reterr);
    if (err != RON_ERR_OK) {
        socket_close(&wire->wire);
        return err;
    }
    *ret_wire = &wire->wire;
    return RON_ERR_OK;
}

/* RON_ERR_OK and not connected: not yet. Asked again, connect says how far it is. */
static enum ron_err go_on_connecting(struct socket_wire *wire, struct ron_errinfo *reterr)
{
    const struct socket_transport *transport = transport_of(&wire->wire);
    enum ron_err err = RON_ERR_OK;

    if (wire->session == NULL) {
        if (connect(wire->fd, (const struct sockaddr *)&transport->address.storage,
                    transport->address.size) != 0 &&
            errno != EISCONN)
            return errno == EALREADY || errno == EINPROGRESS || errno == EINTR
                       ? RON_ERR_OK
                       : fail_lost(errno, "connect", reterr);
        wire->connected = transport->tls == NULL;
        if (wire->connected)
            return RON_ERR_OK;
        err = tls_session_new(transport->tls, wire->fd, &wire->session, reterr);
    }
    if (err == RON_ERR_OK) {
        struct ron_errinfo info = {0};
        enum tls_step step = tls_session_handshake(wire->session, &info);

        wire->connected = step == TLS_DONE;
        if (step == TLS_FAILED)
            err = ron_fail(reterr, info.err, "%s", info.message);
    }
    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "TLS handshake");
}

static enum ron_err socket_step(struct io_wire *wire, struct io_exchange *exchange,
                                struct ron_errinfo *reterr)
{
    struct socket_wire *mine = (struct socket_wire *)wire;
    short events = 0;
    enum ron_err err = mine->connected ? RON_ERR_OK : go_on_connecting(mine, reterr);

    if (err != RON_ERR_OK || !mine->connected)
        return err;
    err = try_receive(mine, exchange->in, exchange->in_size, &exchange->received_size, &events,
                      reterr);
    if (err != RON_ERR_OK)
        return err;
    exchange->ended = events == 0 && exchange->received_size == 0;
    if (exchange->out.size == 0 || exchange->ended)
        return RON_ERR_OK;
    err = try_send(mine, exchange->out, &exchange->sent_size, &events, reterr);
    if (err == RON_ERR_OK || exchange->received_size > 0)
        return RON_ERR_OK;
    /* What it said before it closed is worth more. */
    if (try_receive(mine, exchange->in, exchange->in_size, &exchange->received_size, &events,
                    NULL) == RON_ERR_OK &&
        exchange->received_size > 0)
        return RON_ERR_OK;
    return err;
}

static enum ron_err socket_wait(struct io_transport *transport, struct rt_deadline deadline,
                                struct io_wire **wires, size_t wires_max, size_t *ret_count,
                                struct ron_errinfo *reterr)
{
    enum { EVENTS_MAX = 64, WAIT_MS_MAX = 3600000 };
    struct socket_transport *mine = (struct socket_transport *)transport;
    const uint64_t left_ns = rt_deadline_remaining_ns(deadline);
    const uint64_t left_ms = left_ns / RT_NS_PER_MS + (left_ns % RT_NS_PER_MS != 0);
    struct epoll_event events[EVENTS_MAX];
    enum ron_err err = RON_ERR_OK;
    uint64_t rings;
    int count;

    count = epoll_wait(mine->epoll_fd, events, wires_max < EVENTS_MAX ? (int)wires_max : EVENTS_MAX,
                       left_ms < WAIT_MS_MAX ? (int)left_ms : WAIT_MS_MAX);
    RON_ASSERT(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == &mine->cancel_fd)
            err = ron_fail(reterr, RON_ERR_CANCELED, "canceled while waiting for the peer");
        else if (events[i].data.ptr == &mine->wake_fd)
            (void)!read(mine->wake_fd, &rings, sizeof(rings));
        else
            wires[(*ret_count)++] = &((struct socket_wire *)events[i].data.ptr)->wire;
    }
    return err;
}

static bool socket_idle(struct io_wire *wire)
{
    struct socket_wire *mine = (struct socket_wire *)wire;
    uint8_t byte;
    size_t size;

    /* Else it is closed, or there are bytes nobody asked for. TLS 1.3 sends tickets behind the
     * handshake, and may have bytes that are no longer in the socket: the session looks itself. */
    if (mine->session != NULL)
        return tls_session_receive(mine->session, &byte, 1, &size) == TLS_WANT_READ;
    return recv(mine->fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

/* ---- The transport ---- */

static void socket_wake(struct io_transport *transport)
{
    ring(((struct socket_transport *)transport)->wake_fd);
}

static void socket_cancel(struct io_transport *transport)
{
    ring(((struct socket_transport *)transport)->cancel_fd);
}

static void socket_free(struct io_transport *transport)
{
    struct socket_transport *mine = (struct socket_transport *)transport;

    mine->tls = tls_client_free(mine->tls);
    RON_MUST_ZERO(close(mine->cancel_fd));
    RON_MUST_ZERO(close(mine->wake_fd));
    RON_MUST_ZERO(close(mine->epoll_fd));
    (void)ron_mem_free(mine);
}

static enum ron_err open_descriptors(struct socket_transport *transport, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    transport->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transport->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transport->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (transport->cancel_fd < 0 || transport->wake_fd < 0 || transport->epoll_fd < 0)
        err = ron_fail_sys(reterr, RON_ERR_BUSY, errno, "eventfd: %s", strerror(errno));
    if (err == RON_ERR_OK)
        err = watch_fd(transport->epoll_fd, transport->cancel_fd, EPOLLIN, &transport->cancel_fd,
                       reterr);
    if (err == RON_ERR_OK)
        err = watch_fd(transport->epoll_fd, transport->wake_fd, EPOLLIN, &transport->wake_fd,
                       reterr);
    if (err == RON_ERR_OK)
        return RON_ERR_OK;
    if (transport->cancel_fd >= 0)
        RON_MUST_ZERO(close(transport->cancel_fd));
    if (transport->wake_fd >= 0)
        RON_MUST_ZERO(close(transport->wake_fd));
    if (transport->epoll_fd >= 0)
        RON_MUST_ZERO(close(transport->epoll_fd));
    return err;
}

enum ron_err io_transport_socket(const struct io_address *address, struct tls_client *tls,
                                 struct io_transport **ret_transport, struct ron_errinfo *reterr)
{
    static const struct io_transport_ops ops = {
        .connect = socket_connect,
        .send = socket_send,
        .receive = socket_receive,
        .exchange = socket_exchange,
        .begin = socket_begin,
        .step = socket_step,
        .wait = socket_wait,
        .idle = socket_idle,
        .close = socket_close,
        .wake = socket_wake,
        .cancel = socket_cancel,
        .free = socket_free,
    };
    struct socket_transport *transport = ron_mem_alloc(sizeof(*transport));
    enum ron_err err;

    if (transport == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "client");
    transport->transport.ops = &ops;
    transport->address = *address;
    err = open_descriptors(transport, reterr);
    if (err != RON_ERR_OK) {
        (void)ron_mem_free(transport);
        return err;
    }
    transport->tls = tls;
    *ret_transport = &transport->transport;
    return RON_ERR_OK;
}
