/*
 * conn.c - one connection: accepting, buffers, reading and writing until EAGAIN, closing. See
 * conn.h.
 */
#include "io/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/secret.h"
#include "io/peer_table.h"
#include "io/stream.h"

/* ---- Memory, charged to the server ---- */

bool server_charge(struct io_server *server, size_t size)
{
    uint64_t before = rt_atomic_add_u64(&server->bytes_held, size);

    if (before + size <= server->options.bytes_max)
        return true;
    server_uncharge(server, size);
    return false;
}

void server_uncharge(struct io_server *server, size_t size)
{
    uint64_t before = rt_atomic_add_u64(&server->bytes_held, (uint64_t)0 - size);

    RON_ASSERT(before >= size);
}

/* Room for `size` more bytes behind end; moves the bytes to the front or to a larger block. */
bool buffer_reserve(struct io_loop *loop, struct conn_buffer *buffer, size_t size)
{
    size_t used = buffer->end - buffer->start;
    size_t capacity = buffer->capacity == 0 ? CONN_BUFFER_SIZE : buffer->capacity;
    uint8_t *data;

    if (buffer->capacity - buffer->end >= size)
        return true;
    if (buffer->capacity - used >= size) {
        memmove(buffer->data, buffer->data + buffer->start, used);
        if (buffer->end > used)
            ron_wipe(buffer->data + used, buffer->end - used); /* no second copy of a token */
        buffer->start = 0;
        buffer->end = used;
        return true;
    }
    while (capacity < used + size)
        capacity *= 2;
    if (!server_charge(loop->server, capacity))
        return false;
    if (capacity == CONN_BUFFER_SIZE && loop->spare_buffers_count > 0)
        data = loop->spare_buffers[--loop->spare_buffers_count];
    else
        data = ron_mem_alloc(capacity);
    if (data == NULL) {
        server_uncharge(loop->server, capacity);
        return false;
    }
    if (used > 0)
        memcpy(data, buffer->data + buffer->start, used);
    buffer_release(loop, buffer);
    *buffer = (struct conn_buffer){data, 0, used, capacity};
    return true;
}

void buffer_release(struct io_loop *loop, struct conn_buffer *buffer)
{
    if (buffer->data == NULL)
        return;
    server_uncharge(loop->server, buffer->capacity);
    /* Bytes nobody has looked at, or that moved to a larger block: there may be a token in them. */
    if (buffer->end > buffer->start)
        ron_wipe(buffer->data + buffer->start, buffer->end - buffer->start);
    if (buffer->capacity == CONN_BUFFER_SIZE && loop->spare_buffers_count < LOOP_SPARE_MAX)
        loop->spare_buffers[loop->spare_buffers_count++] = buffer->data;
    else
        (void)ron_mem_free(buffer->data);
    *buffer = (struct conn_buffer){0};
}

/* ---- Plain sockets ---- */

/* The library's recv and send let the thread be canceled in them, which takes two locked operations
 * each, half of what reading a head takes. Nobody is canceled here, and neither call waits. A
 * sanitizer sees what passes through the library's alone. */
static ssize_t receive_some(int fd, void *bytes, size_t size)
{
    if (RON_ASAN || RON_TSAN)
        return recv(fd, bytes, size, MSG_DONTWAIT);
    return syscall(SYS_recvfrom, fd, bytes, size, MSG_DONTWAIT, NULL, NULL);
}

static ssize_t send_some(int fd, const void *bytes, size_t size)
{
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

    if (RON_ASAN || RON_TSAN)
        return send(fd, bytes, size, flags);
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

static ssize_t plain_receive(struct io_conn *conn, void *bytes, size_t size)
{
    ssize_t result;

    do
        result = receive_some(conn->fd, bytes, size);
    while (result < 0 && errno == EINTR);
    return result;
}

static ssize_t plain_send(struct io_conn *conn, const void *bytes, size_t size)
{
    ssize_t result;

    do
        result = send_some(conn->fd, bytes, size);
    while (result < 0 && errno == EINTR);
    return result;
}

static void plain_close_write(struct io_conn *conn)
{
    (void)shutdown(conn->fd, SHUT_WR); /* a peer that is gone already is fine */
}

const struct conn_transport conn_plain = {
    .receive = plain_receive,
    .send = plain_send,
    .close_write = plain_close_write,
    .short_is_all = true,
};

/* ---- Accepting ---- */

static void describe_peer(struct io_conn *conn, const struct io_address *address)
{
    struct ucred credentials = {0};
    socklen_t size = sizeof(credentials);

    io_address_bytes(address, conn->peer.address, &conn->peer.port);
    conn->peer.uid = conn->peer.gid = UINT32_MAX; /* nobody, where the kernel does not say */
    if (!io_address_is_unix(&conn->listener->address))
        return;
    conn->peer.local_socket = true;
    if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
        conn->peer.uid = credentials.uid;
        conn->peer.gid = credentials.gid;
        conn->peer.pid = credentials.pid;
    }
}

/* Say so and hang up: the socket's buffer is empty, so a short answer fits without waiting. */
static void turn_away(int fd, bool tls)
{
    static const char answer[] =
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n"
        "Content-Length: 101\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
        "{\"error\":{\"code\":\"Busy\",\"message\":\"too many connections\",\"retryable\":true,"
        "\"corr_id\":\"\",\"details\":{}}}";

    _Static_assert(sizeof(answer) - 1 > 101, "the length is counted by a test");
    if (!tls) {
        uint8_t asked[CONN_BUFFER_SIZE];

        (void)send(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        /* A request that lies there unread would make the close a reset. */
        (void)recv(fd, asked, sizeof(asked), MSG_DONTWAIT);
    }
    RON_MUST_ZERO(close(fd));
}

static bool admit(struct io_server *server, const struct io_conn *conn)
{
    if (rt_atomic_add_u32(&server->open_count, 1) >= server->options.connections_max) {
        rt_atomic_sub_u32(&server->open_count, 1);
        return false;
    }
    if (conn->peer.local_socket || peer_table_enter(server->peers, conn->peer.address))
        return true;
    rt_atomic_sub_u32(&server->open_count, 1);
    return false;
}

/* Who the kernel says it is, on top of any capability. */
static bool may_connect(const struct io_conn *conn)
{
    const struct io_listener *listener = conn->listener;

    if (!conn->peer.local_socket || listener->uids == NULL)
        return true;
    for (uint32_t i = 0; i < listener->uids_count; i++)
        if (listener->uids[i] == conn->peer.uid)
            return true;
    return false;
}

static struct io_conn *conn_new(const struct io_listener *listener, struct io_loop *loop, int fd,
                                const struct io_address *address)
{
    struct io_conn *conn = ron_mem_alloc_array(1, sizeof(*conn));

    if (conn == NULL)
        return NULL;
    conn->loop = loop;
    conn->listener = listener;
    conn->fd = fd;
    conn->protocol = &conn_unknown;
    conn->transport = listener->tls == NULL ? &conn_plain : &conn_tls;
    conn->state = conn->transport->handshake == NULL ? CONN_HEAD : CONN_HANDSHAKE;
    conn->peer.tls = listener->tls != NULL;
    describe_peer(conn, address);
    return conn;
}

static void conn_start(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = conn};
    int one = 1;

    conn->next = loop->conns;
    conn->link = &loop->conns;
    if (conn->next != NULL)
        conn->next->link = &conn->next;
    loop->conns = conn;
    rt_counter_add_own(&loop->accepted, 1);
    if (!conn->peer.local_socket)
        (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    conn->writable = true;
    loop_arm_ms(conn, (conn->state == CONN_HANDSHAKE ? loop->server->options.head_ms
                                                     : loop->server->options.idle_ms));
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        conn_close(conn);
}

void conn_accept(struct io_listener *listener, struct io_loop *loop)
{
    /* A bounded turn: the listener is level-triggered and comes again. */
    for (int i = 0; i < CONN_TURN_REQUESTS; i++) {
        struct io_address address = {.size = sizeof(address.storage)};
        int fd = accept4(listener->fd, (struct sockaddr *)&address.storage, &address.size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct io_conn *conn;

        if (fd < 0) {
            /* The listener is level-triggered: while there is no room it would come at once. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                loop_pause_accept(loop);
            return; /* else none left, or one that is gone already */
        }
        conn = conn_new(listener, loop, fd, &address);
        if (conn != NULL && !may_connect(conn)) {
            rt_counter_add_own(&loop->closed_denied, 1);
            (void)ron_mem_free(conn);
            RON_MUST_ZERO(close(fd));
            continue;
        }
        if (conn == NULL || !admit(loop->server, conn)) {
            rt_counter_add_own(&loop->refused[RON_ERR_BUSY], 1);
            (void)ron_mem_free(conn);
            turn_away(fd, listener->tls != NULL);
            continue;
        }
        conn_start(conn);
    }
}

/* ---- Closing ---- */

void conn_close(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;

    loop_disarm(conn);
    loop_flush_never(conn);
    if (conn->call != NULL)
        call_detach(conn->call);
    if (conn->stream != NULL)
        io_stream_detach(conn->stream);
    if (conn->protocol->end != NULL)
        conn->protocol->end(conn);
    if (conn->transport->end != NULL)
        conn->transport->end(conn);
    buffer_release(loop, &conn->in);
    buffer_release(loop, &conn->out);
    *conn->link = conn->next;
    if (conn->next != NULL)
        conn->next->link = conn->link;
    RON_MUST_ZERO(close(conn->fd)); /* leaves the epoll set by itself */
    if (!conn->peer.local_socket)
        peer_table_leave(loop->server->peers, conn->peer.address);
    rt_atomic_sub_u32(&loop->server->open_count, 1);
    (void)ron_mem_free(conn);
}

/* The output is sent: let the peer read it before the connection goes. Data that arrives on a
 * closed socket would reset the connection and take our last words with it. */
static void linger(struct io_conn *conn)
{
    conn->transport->close_write(conn);
    conn->state = CONN_LINGER;
    conn->closing = false;
    buffer_release(conn->loop, &conn->in);
    loop_arm_ms(conn, CONN_LINGER_MS);
}

/* ---- Writing ---- */

bool conn_put(struct io_conn *conn, const void *bytes, size_t size)
{
    if (conn->out.end - conn->out.start + size > CONN_OUT_MAX ||
        !buffer_reserve(conn->loop, &conn->out, size))
        return false;
    if (size > 0)
        memcpy(conn->out.data + conn->out.end, bytes, size);
    conn->out.end += size;
    return true;
}

/* False: the connection is closed. */
static bool send_out(struct io_conn *conn)
{
    while (conn->writable && conn->out.start < conn->out.end) {
        ssize_t size = conn->transport->send(conn, conn->out.data + conn->out.start,
                                             conn->out.end - conn->out.start);

        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            conn->writable = false;
        } else if (size < 0) {
            rt_counter_add_own(&conn->loop->closed_reset, 1);
            conn_close(conn);
            return false;
        } else {
            conn->out.start += (size_t)size;
            rt_counter_add_own(&conn->loop->bytes_out, (uint64_t)size);
        }
    }
    return true;
}

void conn_flush(struct io_conn *conn)
{
    bool again = conn->again;

    conn->again = false;
    if (conn->state == CONN_HANDSHAKE || !send_out(conn))
        return;
    if (conn->out.start == conn->out.end) {
        buffer_release(conn->loop, &conn->out);
        if (conn->closing && conn->eof) {
            conn_close(conn);
            return;
        }
        if (conn->closing) {
            linger(conn);
        } else if (conn->state == CONN_STREAM) {
            io_stream_pump(conn->stream); /* the connection may be gone */
            return;
        } else if (conn->protocol->flushed != NULL) {
            conn->protocol->flushed(conn);
        }
    }
    if (again || conn->state == CONN_LINGER)
        conn_turn(conn);
}

/* ---- Reading ---- */

/* Throw away what comes; false: the connection is closed. */
static bool drain_lingering(struct io_conn *conn)
{
    uint8_t bytes[4096];

    /* Beyond that the peer's sending stalls until it reads us. */
    while (conn->readable && conn->lingered <= CONN_LINGER_BYTES) {
        ssize_t size = conn->transport->receive(conn, bytes, sizeof(bytes));

        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            conn->readable = false;
        } else if (size <= 0) {
            conn_close(conn);
            return false;
        } else {
            conn->lingered += (size_t)size;
        }
    }
    return true;
}

/* Room in the buffer, or 0 for not now; -1: none to be had. A request whose body is in place points
 * into the buffer, which then has room enough and does not move (http_conn.c). */
static ssize_t room_in(struct io_conn *conn, uint8_t **ret_at)
{
    if (conn->in.end == conn->in.capacity && conn->state == CONN_BODY && conn->call->body_in_place)
        return 0;
    if (!buffer_reserve(conn->loop, &conn->in, 1))
        return -1;
    *ret_at = conn->in.data + conn->in.end;
    return (ssize_t)(conn->in.capacity - conn->in.end);
}

/* Read once into what room there is; false: the connection is closed. */
static bool receive_in(struct io_conn *conn)
{
    const struct conn_protocol *protocol = conn->protocol;
    uint8_t *at = NULL;
    ssize_t room, size;

    if (!conn->readable || conn->eof)
        return true;
    room = protocol->room == NULL ? room_in(conn, &at) : protocol->room(conn, &at);
    if (room < 0)
        protocol->refuse(conn, RON_ERR_BUSY, NULL);
    if (room <= 0)
        return true;
    size = conn->transport->receive(conn, at, (size_t)room);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        conn->readable = false;
    } else if (size < 0) {
        rt_counter_add_own(&conn->loop->closed_reset, 1);
        conn_close(conn);
        return false;
    } else if (size == 0) {
        conn->eof = true;
    } else {
        if (protocol->received == NULL)
            conn->in.end += (size_t)size;
        else
            protocol->received(conn, (size_t)size);
        rt_counter_add_own(&conn->loop->bytes_in, (uint64_t)size);
        /* epoll(7): a short read of a stream is as good as EAGAIN, unless the end is near. */
        if (conn->transport->short_is_all && size < room && !conn->half_closed)
            conn->readable = false;
    }
    return true;
}

static void handshake(struct io_conn *conn)
{
    int result = conn->transport->handshake(conn);

    if (result < 0) {
        conn_close(conn);
        return;
    }
    if (result == 0)
        return;
    conn->state = CONN_HEAD;
    loop_arm_ms(conn, conn->loop->server->options.idle_ms);
    conn_turn(conn);
}

/* The peer sends no more and a request is not whole: nobody waits for an answer to it. */
static void finish_at_eof(struct io_conn *conn)
{
    if (conn->inflight > 0)
        conn->ending = true; /* those before it are answered */
    else if (conn->out.start < conn->out.end) {
        conn->closing = true;
        loop_flush_later(conn);
    } else {
        conn_close(conn);
    }
}

void conn_turn(struct io_conn *conn)
{
    if (conn->state == CONN_LINGER) {
        (void)drain_lingering(conn);
        return;
    }
    for (int i = 0; i < CONN_TURN_REQUESTS && !conn->closing; i++) {
        if (conn->state != CONN_HEAD && conn->state != CONN_BODY)
            return;
        if (conn->state == CONN_HEAD && conn->out.end - conn->out.start > CONN_OUT_PAUSE) {
            conn->again = true; /* looked at whenever some of it is sent */
            if (conn->writable)
                loop_flush_later(conn);
            return;
        }
        if (!receive_in(conn) || conn->closing)
            return;
        switch (conn->protocol->step(conn)) {
        case CONN_STEP_MORE:
            if (conn->eof) {
                finish_at_eof(conn);
                return;
            }
            if (!conn->readable)
                return;
            break;
        case CONN_STEP_AGAIN:
            break;
        case CONN_STEP_WAIT:
        case CONN_STEP_CLOSED:
            return;
        }
    }
    /* The turn is over with work left: the others first, then again. */
    if (!conn->closing) {
        conn->again = true;
        loop_flush_later(conn);
    }
}

void conn_ready(struct io_conn *conn, uint32_t events)
{
    /* Both ends have said their last word. What the peer sent before it is still read: a close with
     * unread bytes would be a reset, and the peer lose what it has not read of ours. */
    if ((events & (EPOLLERR | EPOLLHUP)) == EPOLLHUP && conn->state == CONN_LINGER) {
        conn->readable = true;
        (void)drain_lingering(conn);
        return;
    }
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        rt_counter_add_own(&conn->loop->closed_reset, 1);
        conn_close(conn);
        return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP)) != 0)
        conn->readable = true;
    if ((events & EPOLLRDHUP) != 0)
        conn->half_closed = true;
    if ((events & EPOLLOUT) != 0) {
        conn->writable = true;
        if (!conn->transport->short_is_all)
            conn->readable = true; /* TLS may have had to write before it could read on */
    }
    if (conn->state == CONN_HANDSHAKE) {
        handshake(conn);
        return;
    }
    if (conn->out.start < conn->out.end)
        loop_flush_later(conn);
    conn_turn(conn);
}

void conn_deadline(struct io_conn *conn)
{
    struct io_loop *loop = conn->loop;

    if (conn->protocol->deadline != NULL && conn->state != CONN_LINGER && !conn->closing) {
        conn->protocol->deadline(conn);
        return;
    }
    switch (conn->state) {
    case CONN_HEAD:
        if (!conn->in_head) {
            rt_counter_add_own(&loop->closed_idle, 1);
            conn_close(conn);
            return;
        }
        if (!conn->closing) {
            rt_counter_add_own(&loop->closed_slow, 1);
            conn->protocol->refuse(conn, RON_ERR_REQUEST_TIMEOUT, NULL);
            return;
        }
        break;
    case CONN_BODY:
        if (!conn->closing) {
            rt_counter_add_own(&loop->closed_slow, 1);
            conn->protocol->refuse(conn, RON_ERR_REQUEST_TIMEOUT, NULL);
            return;
        }
        break;
    case CONN_WAIT:
        if (conn->call != NULL) {
            conn->protocol->refuse(conn, RON_ERR_TIMEOUT, NULL);
            return;
        }
        if (io_stream_tail_beat(conn))
            return;
        break;
    case CONN_STREAM:
        io_stream_beat(conn->stream);
        return;
    case CONN_HANDSHAKE:
        rt_counter_add_own(&loop->closed_slow, 1);
        break;
    case CONN_LINGER:
        break;
    }
    conn_close(conn);
}
