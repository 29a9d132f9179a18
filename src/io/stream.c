/*
 * stream.c - server-sent events and bodies in pieces, over a bounded buffer. See stream.h and
 * request.h.
 */
#include "io/stream.h"

#include "base/assert.h"
#include "base/mem.h"

struct io_stream {
    struct io_loop *loop;
    struct io_conn *conn; /* the loop's; NULL before it is attached and after it is gone */
    size_t buffer_max;
    bool is_body;
    size_t seen_start;   /* the loop's: how far the peer had read at the last beat, */
    uint64_t seen_moves; /* and of what */
    uint64_t moves;
    struct rt_cond room; /* the buffer was moved, or the peer is gone */
    struct ron_buf buffer RON_GUARDED_BY(net);
    bool linked RON_GUARDED_BY(net);
    bool gone RON_GUARDED_BY(net);   /* the peer, or the server drains */
    bool closed RON_GUARDED_BY(net); /* by its owner, who has forgotten it */
    struct io_stream *next RON_GUARDED_BY(net);
};

void io_stream_link(struct io_stream *stream, struct io_stream **list, bool last)
{
    RON_ASSERT(!stream->closed);
    stream->closed = last;
    if (stream->linked)
        return;
    stream->linked = true;
    stream->next = *list;
    *list = stream;
}

static void stream_free(struct io_stream *stream)
{
    struct io_loop *loop = stream->loop;

    net_lock(loop);
    ron_buf_fini(&stream->buffer);
    net_unlock(loop);
    rt_cond_fini(&stream->room);
    server_uncharge(loop->server, stream->buffer_max);
    (void)ron_mem_free(stream);
}

static enum ron_err open_stream(struct io_request *request, const char *media, bool is_body,
                                size_t buffer_max, struct io_stream **ret_stream,
                                struct ron_errinfo *reterr)
{
    struct io_call *call = (struct io_call *)request;
    struct reply_head head = {
        .status = 200,
        .media = media,
        .fields = (const struct io_reply_field[]){{"Cache-Control", "no-store"},
                                                  {"Transfer-Encoding", "chunked"}},
        .fields_count = is_body ? 2 : 1,
        .corr_id = request->corr_id,
        .close = true,
        .no_length = true};
    struct io_stream *stream = NULL;
    uint8_t bytes[REPLY_HEAD_MAX];
    const char *why = "no room for another stream";
    enum ron_err err = RON_ERR_BUSY;

    if (request->frame != NULL) {
        err = RON_ERR_UNSUPPORTED_MEDIA;
        why = "a reply in pieces needs HTTP: over OAP/1 it is one frame";
    } else if (server_charge(call->loop->server, buffer_max)) {
        stream = ron_mem_alloc_array(1, sizeof(*stream));
        err = RON_ERR_NO_MEMORY;
        if (stream == NULL)
            server_uncharge(call->loop->server, buffer_max);
    }
    if (stream == NULL) {
        struct ron_errinfo info = {0};

        err = ron_fail(&info, err, "%s", why);
        io_reply_error(request, err, &info, (struct ron_slice){0});
        return ron_fail(reterr, err, "%s", why);
    }
    stream->loop = call->loop;
    stream->buffer_max = buffer_max;
    stream->is_body = is_body;
    rt_cond_init(&stream->room, "stream");
    net_lock(stream->loop);
    ron_buf_init(&stream->buffer, buffer_max);
    net_unlock(stream->loop);
    call->stream = stream;
    call->status = 200;
    call->keep_alive = false;
    call->reply_size = http_reply_head(&head, bytes);
    RON_ASSERT(call->reply_size <= CALL_INLINE_SIZE);
    memcpy(call->inline_reply, bytes, call->reply_size);
    call->reply = call->inline_reply;
    *ret_stream = stream;
    rt_atomic_add_u32(&call->loop->server->calls_count, 1); /* until its owner closes it */
    io_loop_hand_in(call->loop, call);
    return RON_ERR_OK;
}

enum ron_err io_stream_open(struct io_request *request, size_t buffer_max,
                            struct io_stream **ret_stream, struct ron_errinfo *reterr)
{
    return open_stream(request, "text/event-stream", false, buffer_max, ret_stream, reterr);
}

enum ron_err io_body_open(struct io_request *request, const char *media, size_t buffer_max,
                          struct io_stream **ret_stream, struct ron_errinfo *reterr)
{
    static const char why[] = "a reply in pieces needs HTTP/1.1";
    struct ron_errinfo info = {0};

    RON_ASSERT(buffer_max > IO_BODY_SPARE);
    if (request->head != NULL && request->head->minor == 0) {
        io_reply_error(request, ron_fail(&info, RON_ERR_MALFORMED, "%s", why), &info,
                       (struct ron_slice){0});
        return ron_fail(reterr, RON_ERR_MALFORMED, "%s", why);
    }
    return open_stream(request, media, true, buffer_max, ret_stream, reterr);
}

/* Which byte of data ends its first line: CR, LF or both end one for the reader. */
static size_t line_size(struct ron_slice data)
{
    size_t size = 0;

    while (size < data.size && data.data[size] != '\n' && data.data[size] != '\r')
        size++;
    return size;
}

static void check_line(const char *text)
{
    for (; *text != '\0'; text++)
        RON_ASSERT((uint8_t)*text >= ' '); /* ids and names are ours */
}

/* Lines of data may hold line ends: each becomes a line of its own. */
static void put_event(struct ron_buf *buf, const char *id, const char *event, struct ron_slice data)
{
    if (id != NULL) {
        check_line(id);
        ron_buf_put_format(buf, "id: %s\n", id);
    }
    if (event != NULL) {
        check_line(event);
        ron_buf_put_format(buf, "event: %s\n", event);
    }
    for (;;) {
        size_t size = line_size(data);
        size_t end = size;

        ron_buf_put_text(buf, "data: ");
        ron_buf_put(buf, data.data, size);
        ron_buf_put_byte(buf, '\n');
        if (size == data.size)
            break;
        if (data.data[end++] == '\r' && end < data.size && data.data[end] == '\n')
            end++;
        data = ron_slice_of(data.data + end, data.size - end);
    }
    ron_buf_put_byte(buf, '\n');
}

enum ron_err io_stream_send(struct io_stream *stream, const char *id, const char *event,
                            struct ron_slice data, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;
    size_t before;

    net_lock(stream->loop);
    RON_ASSERT(!stream->closed);
    before = stream->buffer.size;
    if (stream->gone) {
        err = RON_ERR_CANCELED;
    } else {
        put_event(&stream->buffer, id, event, data);
        if (stream->buffer.failure != RON_ERR_OK) {
            stream->buffer.size = before;
            stream->buffer.failure = RON_ERR_OK;
            err = RON_ERR_BUSY;
        }
    }
    net_unlock(stream->loop);
    if (err == RON_ERR_CANCELED)
        return ron_fail(reterr, err, "stream: the peer is gone");
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "stream: the peer reads too slowly");
    io_loop_hand_in_stream(stream->loop, stream, false);
    return RON_ERR_OK;
}

/* Space for a chunk of that size, or nobody who would read it. False: neither in time. */
static bool wait_for_room(struct io_stream *stream, size_t size, struct rt_deadline deadline)
    RON_NEEDS(net)
{
    bool in_time = true;

    while (in_time && !stream->gone && stream->buffer_max - stream->buffer.size < size)
        in_time = rt_cond_wait(&stream->room, &stream->loop->lock, deadline.at_ns);
    return stream->gone || stream->buffer_max - stream->buffer.size >= size;
}

enum ron_err io_body_send(struct io_stream *stream, struct ron_slice piece,
                          struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    rt_assert_no_lock_held();
    RON_ASSERT(stream->is_body);
    RON_ASSERT(piece.size > 0); /* an empty chunk is the last */
    RON_ASSERT(piece.size <= stream->buffer_max - IO_BODY_SPARE);
    net_lock(stream->loop);
    RON_ASSERT(!stream->closed);
    if (!wait_for_room(stream, piece.size + IO_BODY_SPARE, deadline)) {
        err = RON_ERR_TIMEOUT;
    } else if (stream->gone) {
        err = RON_ERR_CANCELED;
    } else {
        ron_buf_put_format(&stream->buffer, "%zx\r\n", piece.size);
        ron_buf_put(&stream->buffer, piece.data, piece.size);
        ron_buf_put_text(&stream->buffer, "\r\n");
        err = stream->buffer.failure;
    }
    net_unlock(stream->loop);
    if (err == RON_ERR_OK)
        io_loop_hand_in_stream(stream->loop, stream, false);
    if (err == RON_ERR_TIMEOUT)
        return ron_fail(reterr, err, "stream: the peer reads too slowly");
    if (err != RON_ERR_OK)
        return ron_fail(reterr, err, "stream: the peer is gone, or there is no memory");
    return RON_ERR_OK;
}

struct io_stream *io_body_end(struct io_stream *stream)
{
    if (stream == NULL)
        return NULL;
    RON_ASSERT(stream->is_body);
    net_lock(stream->loop);
    ron_buf_put_text(&stream->buffer, "0\r\n\r\n"); /* in what every piece left spare */
    net_unlock(stream->loop);
    return io_stream_close(stream);
}

bool io_stream_gone(struct io_stream *stream)
{
    bool gone;

    net_lock(stream->loop);
    RON_ASSERT(!stream->closed);
    gone = stream->gone;
    net_unlock(stream->loop);
    return gone;
}

struct io_stream *io_stream_close(struct io_stream *stream)
{
    struct io_server *server;

    if (stream == NULL)
        return NULL;
    server = stream->loop->server;
    io_loop_hand_in_stream(stream->loop, stream, true);
    rt_atomic_sub_u32(&server->calls_count, 1); /* from here on the server may be gone */
    return NULL;
}

struct ron_slice io_request_last_event_id(const struct io_request *request)
{
    const struct http_field *field = request->head == NULL
                                         ? NULL
                                         : http_head_find(request->head, "last-event-id");

    return field == NULL ? (struct ron_slice){0} : field->value;
}

/* ---- By the loop ---- */

/* Move what is buffered to the connection, if that has nothing left to send; false: no room. */
static bool move(struct io_stream *stream, struct io_conn *conn) RON_NEEDS(net)
{
    bool put;

    if (conn == NULL || conn->out.start < conn->out.end || stream->buffer.size == 0)
        return true;
    put = conn_put(conn, stream->buffer.data, stream->buffer.size);
    ron_buf_reset(&stream->buffer);
    stream->moves++;
    rt_cond_broadcast(&stream->room);
    return put;
}

/* Nothing more comes: close once it is sent. The end of a body is waited for like the rest, but not
 * by a server that drains. */
static void finish(struct io_conn *conn, bool drains)
{
    conn->in_tail = conn->stream->is_body && !drains;
    conn->tail_start = conn->out.start;
    conn->stream = NULL;
    conn->closing = true;
    conn->state = CONN_WAIT;
    loop_arm_ms(conn, (conn->in_tail ? STREAM_BEAT_MS : CONN_LINGER_MS));
    loop_flush_later(conn);
}

bool io_stream_tail_beat(struct io_conn *conn)
{
    if (!conn->in_tail || conn->out.start == conn->tail_start)
        return false;
    conn->tail_start = conn->out.start;
    loop_arm_ms(conn, STREAM_BEAT_MS);
    return true;
}

void io_stream_tail_end(struct io_conn *conn)
{
    conn->in_tail = false;
    loop_arm_ms(conn, CONN_LINGER_MS);
}

/* May close and free the connection. */
void io_stream_pump(struct io_stream *stream)
{
    struct io_conn *conn = stream->conn;
    bool closed, put;

    net_lock(stream->loop);
    put = move(stream, conn);
    /* If linked, it is freed when its turn in that list comes. */
    closed = stream->closed && !stream->linked &&
             (conn == NULL ? stream->gone : stream->buffer.size == 0);
    net_unlock(stream->loop);
    if (!put) {
        conn_close(conn); /* comes back here as gone */
        return;
    }
    if (conn != NULL && conn->out.start < conn->out.end)
        loop_flush_later(conn);
    if (!closed)
        return;
    if (conn != NULL)
        finish(conn, false);
    stream_free(stream);
}

void io_streams_pump(struct io_stream *list)
{
    while (list != NULL) {
        struct io_stream *stream = list;

        net_lock(stream->loop);
        list = stream->next;
        stream->linked = false;
        net_unlock(stream->loop);
        io_stream_pump(stream);
    }
}

void io_stream_attach(struct io_stream *stream, struct io_conn *conn)
{
    stream->conn = conn;
    if (conn == NULL) {
        io_stream_detach(stream);
        return;
    }
    conn->stream = stream;
    conn->state = CONN_STREAM;
    loop_arm_ms(conn, STREAM_BEAT_MS);
    io_stream_pump(stream);
}

void io_stream_detach(struct io_stream *stream)
{
    bool done;

    stream->conn = NULL;
    net_lock(stream->loop);
    stream->gone = true;
    rt_cond_broadcast(&stream->room);
    done = stream->closed && !stream->linked; /* if linked, the pump frees it */
    net_unlock(stream->loop);
    if (done)
        stream_free(stream);
}

void io_stream_end(struct io_stream *stream)
{
    struct io_conn *conn = stream->conn;
    bool put;

    net_lock(stream->loop);
    put = move(stream, conn);
    net_unlock(stream->loop);
    if (!put) {
        conn_close(conn);
        return;
    }
    finish(conn, true);
    io_stream_detach(stream);
}

/* A slow peer is served at its pace; one that read nothing since the last beat is not there. */
static void beat_body(struct io_stream *stream, struct io_conn *conn)
{
    if (conn->out.start < conn->out.end && conn->out.start == stream->seen_start &&
        stream->moves == stream->seen_moves) {
        rt_counter_add_own(&conn->loop->closed_slow, 1);
        conn_close(conn);
        return;
    }
    stream->seen_start = conn->out.start;
    stream->seen_moves = stream->moves;
    loop_arm_ms(conn, STREAM_BEAT_MS);
}

void io_stream_beat(struct io_stream *stream)
{
    struct io_conn *conn = stream->conn;

    if (stream->is_body) {
        beat_body(stream, conn);
        return;
    }
    /* Nothing moved since the last beat: the peer reads nothing, or is not there. */
    if (conn->out.start < conn->out.end || !conn_put(conn, ":\n\n", 3)) {
        rt_counter_add_own(&conn->loop->closed_slow, 1);
        conn_close(conn);
        return;
    }
    loop_flush_later(conn);
    loop_arm_ms(conn, STREAM_BEAT_MS);
}
