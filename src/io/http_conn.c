/*
 * http_conn.c - HTTP on a connection: one request after the other, admitted step by step. See
 * server.h for the order and conn.h for the states.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "base/secret.h"
#include "base/ulid.h"
#include "io/conn.h"
#include "io/stream.h"

enum { REFUSAL_MAX = 8192 };

/* ---- Refusing ---- */

static const char *allow_text(uint32_t allowed, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < HTTP_OTHER; i++) {
        const char *name = http_method_name((enum http_method)i);

        if ((allowed >> i & 1) == 0 || used + strlen(name) + 3 > size)
            continue;
        if (used > 0) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        memcpy(text + used, name, strlen(name) + 1);
        used += strlen(name);
    }
    return text;
}

/* Answer the request in hand from here, and close. `allowed` is for 405. */
static void refuse(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info,
                   uint32_t allowed)
{
    enum ron_err wire = ron_err_wire(err);
    const char *corr_id = conn->call == NULL ? "" : conn->call->request.corr_id;
    bool head_only = conn->call != NULL && conn->call->request.method == HTTP_HEAD;
    struct io_reply_field fields[2];
    char allow[64];
    struct reply_head head = {.status = ron_err_http(wire),
                              .media = "application/json",
                              .fields = fields,
                              .corr_id = corr_id[0] == '\0' ? NULL : corr_id,
                              .close = true};
    uint8_t bytes[REPLY_HEAD_MAX];
    struct ron_buf body;
    size_t size;
    bool put;

    rt_counter_add_own(&conn->loop->refused[err], 1);
    if (ron_err_retry_after(wire))
        fields[head.fields_count++] = (struct io_reply_field){"Retry-After", "1"};
    if (err == RON_ERR_METHOD_NOT_ALLOWED)
        fields[head.fields_count++] = (struct io_reply_field){
            "Allow", allow_text(allowed, allow, sizeof(allow))};
    ron_buf_init(&body, REFUSAL_MAX);
    http_error_body(err, info, corr_id, (struct ron_slice){0}, &body);
    head.length = body.size;
    size = http_reply_head(&head, bytes);
    http_reply_date(conn->loop, bytes, size);
    put = conn_put(conn, bytes, size) && (head_only || conn_put(conn, body.data, body.size));
    ron_buf_fini(&body);
    rt_counter_add_own(&conn->loop->replies, 1);
    if (conn->call != NULL) {
        call_end_span(conn->call, head.status);
        call_detach(conn->call);
    }
    conn->state = CONN_WAIT;
    conn->closing = true;
    if (!put) /* not even room for this: nothing of it goes out */
        conn->out.end = conn->out.start;
    loop_arm_ms(conn, CONN_LINGER_MS);
    loop_flush_later(conn);
}

static void http_refuse(struct io_conn *conn, enum ron_err err, const struct ron_errinfo *info)
{
    refuse(conn, err, info, 0);
}

/* ---- Admission ---- */

static void set_corr_id(struct io_call *call)
{
    const struct http_field *field = http_head_find(&call->head, "x-corr-id");
    struct ron_slice text = field == NULL ? (struct ron_slice){0} : field->value;
    bool good = text.size > 0 && text.size <= IO_CORR_ID_SIZE_MAX;
    uint64_t random[2];

    for (size_t i = 0; i < text.size && good; i++) {
        uint8_t byte = text.data[i];

        good = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
               (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_' || byte == '.' ||
               byte == ':';
    }
    if (good) {
        memcpy(call->request.corr_id, text.data, text.size);
        call->request.corr_id[text.size] = '\0';
        return;
    }
    random[0] = sh_random();
    random[1] = sh_random();
    ron_ulid_print(ron_ulid_make(call->loop->utc_ms, (const uint8_t *)random),
                   call->request.corr_id);
}
_Static_assert((int)RON_ULID_TEXT_SIZE <= (int)IO_CORR_ID_SIZE_MAX, "an id of our own fits");

/* One deadline for the whole request: the route's, or sooner if the client says so. */
static enum ron_err set_deadline(struct io_call *call, struct ron_errinfo *reterr)
{
    const struct http_field *field = http_head_find(&call->head, "x-deadline-ms");
    uint32_t route_ms = call->match.route->deadline_ms;
    uint64_t ms = route_ms != 0 ? route_ms : call->loop->server->options.request_ms;
    uint64_t asked;

    if (field != NULL) {
        if (ron_decimal_parse_u64(field->value, &asked, NULL) != RON_ERR_OK)
            return ron_fail(reterr, RON_ERR_MALFORMED, "X-Deadline-Ms: not a decimal number");
        if (asked == 0)
            return ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline has passed already");
        ms = asked < ms ? asked : ms;
    }
    call->request.deadline.at_ns = call->request.arrived_ns + ms * RT_NS_PER_MS;
    return RON_ERR_OK;
}

static bool media_is(const struct http_head *head, const char *media)
{
    const struct http_field *field = http_head_find(head, "content-type");
    size_t size = 0;

    if (field == NULL)
        return false;
    if (http_text_is(field->value, media))
        return true;
    while (size < field->value.size && field->value.data[size] != ';' &&
           field->value.data[size] != ' ')
        size++;
    return http_text_is(ron_slice_of(field->value.data, size), media);
}

/* Is the body one that the route takes? Nothing of it has been read. */
static enum ron_err check_body(struct io_call *call, struct ron_errinfo *reterr)
{
    const struct http_head *head = &call->head;
    const struct io_route *route = call->match.route;
    const struct http_field *coding = http_head_find(head, "content-encoding");

    if (!head->chunked && !head->has_length && route->body_max > 0)
        return ron_fail(reterr, RON_ERR_LENGTH_REQUIRED,
                        "Content-Length or Transfer-Encoding: chunked is needed");
    if (!head->chunked && head->content_length == 0)
        return RON_ERR_OK;
    if (route->body_max == 0)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "the route takes no body");
    if (head->content_length > route->body_max)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "a body of %llu bytes; at most %u are taken",
                        (unsigned long long)head->content_length, route->body_max);
    if (!media_is(head, route->media))
        return ron_fail(reterr, RON_ERR_UNSUPPORTED_MEDIA, "Content-Type must be %s", route->media);
    if (coding != NULL && (http_head_count(head, "content-encoding") > 1 ||
                           !io_coding_find(coding->value, &call->coding)))
        return ron_fail(reterr, RON_ERR_UNSUPPORTED_MEDIA,
                        "Content-Encoding must be gzip, zstd or identity");
    return RON_ERR_OK;
}

static enum ron_err admit(struct io_conn *conn, struct io_call *call, uint32_t *ret_allowed,
                          struct ron_errinfo *reterr)
{
    const struct io_server_options *options = &conn->loop->server->options;
    struct io_request *request = &call->request;
    enum ron_err err;

    err = io_routes_match(options->routes, conn->listener->admin, request->method, request->path,
                          &call->match, ret_allowed, reterr);
    if (err != RON_ERR_OK)
        return err;
    request->route = call->match.route;
    memcpy(request->params, call->match.params, sizeof(request->params));
    call->write = (request->route->flags & IO_ROUTE_WRITE) != 0;
    if (call->write && rt_atomic_load_u32(&conn->loop->server->draining) != 0)
        return ron_fail(reterr, RON_ERR_DRAINING, "the server is shutting down");
    err = set_deadline(call, reterr);
    if (err == RON_ERR_OK)
        err = call_charge_role(call, conn->loop->server->route_roles[call->match.number], reterr);
    if (err == RON_ERR_OK && request->route->scope != NULL)
        err = call_authorize(call, reterr);
    if (err == RON_ERR_OK)
        err = check_body(call, reterr);
    return err;
}

/* ---- Bodies ---- */

/* The whole of a short body fits behind its head in the buffer and stays there; else the call takes
 * the head's buffer over and the connection starts a new one with what is behind the head. */
static bool place_body(struct io_conn *conn, struct io_call *call)
{
    size_t behind = conn->in.start + call->head_size;
    size_t size = conn->in.end - behind;
    struct conn_buffer fresh = {0};

    call->body_in_place = !call->head.chunked &&
                          call->head.content_length <= conn->in.capacity - behind;
    if (call->body_in_place)
        return true;
    http_chunks_init(&call->chunks);
    if (!buffer_reserve(conn->loop, &fresh, size > 0 ? size : 1))
        return false;
    memcpy(fresh.data, conn->in.data + behind, size);
    fresh.end = size;
    call->in = conn->in;
    conn->in = fresh;
    return true;
}

static enum ron_err append_body(struct io_call *call, struct ron_slice data,
                                struct ron_errinfo *reterr)
{
    size_t most = call->match.route->body_max;
    enum ron_err err;

    if (data.size == 0)
        return RON_ERR_OK;
    if (call->body_size + data.size > most)
        return ron_fail(reterr, RON_ERR_TOO_LARGE, "more than %zu bytes of body", most);
    err = call_reserve_body(call, call->body_size + data.size,
                            call->head.chunked ? most : (size_t)call->head.content_length, reterr);
    if (err != RON_ERR_OK)
        return err;
    memcpy(call->body + call->body_size, data.data, data.size);
    call->body_size += data.size;
    return RON_ERR_OK;
}

/* Take what has arrived; *ret_whole says whether that was all. */
static enum ron_err read_body(struct io_conn *conn, struct io_call *call, bool *ret_whole,
                              struct ron_errinfo *reterr)
{
    struct ron_slice bytes = ron_slice_of(conn->in.data + conn->in.start,
                                          conn->in.end - conn->in.start);
    enum ron_err err = RON_ERR_OK;

    *ret_whole = false;
    if (call->body_in_place) {
        *ret_whole = bytes.size >= call->head_size + call->head.content_length;
        return RON_ERR_OK;
    }
    if (!call->head.chunked) {
        uint64_t left = call->head.content_length - call->body_size;

        bytes.size = bytes.size < left ? bytes.size : (size_t)left;
        conn->in.start += bytes.size;
        err = append_body(call, bytes, reterr);
        *ret_whole = call->body_size == call->head.content_length;
        return err;
    }
    while (err == RON_ERR_OK && bytes.size > 0 && call->chunks.state != HTTP_CHUNK_DONE) {
        struct ron_slice data;
        size_t used;

        err = http_chunks_read(&call->chunks, bytes, &used, &data, reterr);
        if (err != RON_ERR_OK)
            break;
        err = append_body(call, data, reterr);
        conn->in.start += used;
        bytes = ron_slice_of(bytes.data + used, bytes.size - used);
    }
    *ret_whole = call->chunks.state == HTTP_CHUNK_DONE;
    return err;
}

/* The body as it was sent. */
static struct ron_slice sent_body(const struct io_conn *conn, const struct io_call *call)
{
    if (call->body_in_place)
        return ron_slice_of(conn->in.data + conn->in.start + call->head_size,
                            (size_t)call->head.content_length);
    return ron_slice_of(call->body, call->body_size);
}

/* ---- Steps ---- */

static void dispatch(struct io_conn *conn, struct io_call *call)
{
    struct io_request *request = &call->request;

    request->body = call->coding == IO_CODING_NONE ? sent_body(conn, call)
                                                   : ron_slice_of(call->body, call->body_size);
    conn->state = CONN_WAIT;
    call->dispatched = true;
    rt_atomic_add_u32(&conn->loop->server->calls_count, 1);
    loop_arm(conn, request->deadline.at_ns);
    request->route->handler(call->match.context, request);
}

static enum conn_step step_body(struct io_conn *conn)
{
    struct io_call *call = conn->call;
    struct ron_errinfo info = {0};
    bool whole;
    enum ron_err err = read_body(conn, call, &whole, &info);

    if (err != RON_ERR_OK) {
        refuse(conn, err, &info, 0);
        return CONN_STEP_WAIT;
    }
    if (!whole)
        return CONN_STEP_MORE;
    if (call->coding != IO_CODING_NONE)
        err = call_open_body(call, call->coding, sent_body(conn, call), call->match.route->body_max,
                             &info);
    if (err != RON_ERR_OK) {
        refuse(conn, err, &info, 0);
        return CONN_STEP_WAIT;
    }
    dispatch(conn, call);
    return CONN_STEP_WAIT;
}

/* Nobody needs the capability once it was looked at, and the buffer outlives the request: what
 * dumps memory finds no token in it. */
static void forget_capability(struct io_conn *conn, const struct http_head *head)
{
    for (size_t i = 0; i < head->fields_count; i++) {
        const struct http_field *field = &head->fields[i];

        if (http_text_is(field->name, "authorization"))
            ron_wipe(conn->in.data + (field->value.data - conn->in.data), field->value.size);
    }
}

static enum conn_step begin(struct io_conn *conn, size_t head_size)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct ron_slice bytes = ron_slice_of(conn->in.data + conn->in.start, head_size);
    struct io_call *call = call_new(conn);
    struct ron_errinfo info = {0};
    uint32_t allowed = 0;
    enum conn_step step;
    enum ron_err err;

    if (call == NULL) {
        refuse(conn, RON_ERR_NO_MEMORY, NULL, 0);
        return CONN_STEP_WAIT;
    }
    conn->call = call;
    call->head_size = head_size;
    rt_counter_add_own(&conn->loop->requests, 1);
    err = http_head_parse(bytes, &call->head, &info);
    if (err == RON_ERR_OK) {
        call->request.method = call->head.method;
        call->request.path = call->head.path;
        call->request.query = call->head.query;
        call->keep_alive = call->head.keep_alive;
        set_corr_id(call);
        call_trace(call);
        err = admit(conn, call, &allowed, &info);
        forget_capability(conn, &call->head);
    }
    if (err == RON_ERR_OK && !place_body(conn, call))
        err = ron_fail(&info, RON_ERR_BUSY, "the memory for bodies is used up");
    if (err == RON_ERR_OK && call->head.expect_continue &&
        !conn_put(conn, go_on, sizeof(go_on) - 1))
        err = ron_fail(&info, RON_ERR_BUSY, "the memory for replies is used up");
    if (err != RON_ERR_OK) {
        refuse(conn, err, &info, allowed);
        return CONN_STEP_WAIT;
    }
    if (call->head.expect_continue)
        loop_flush_later(conn);
    conn->state = CONN_BODY;
    conn->in_head = false;
    conn->scanned = 0;
    step = step_body(conn);
    if (step == CONN_STEP_MORE) /* one deadline for the body, from here on */
        loop_arm_ms(conn, conn->loop->server->options.body_ms);
    return step;
}

static enum conn_step step_head(struct io_conn *conn)
{
    struct ron_slice bytes = ron_slice_of(conn->in.data + conn->in.start,
                                          conn->in.end - conn->in.start);
    struct ron_errinfo info = {0};
    size_t size = 0;

    if (bytes.size == 0) {
        buffer_release(conn->loop, &conn->in);
        return CONN_STEP_MORE;
    }
    switch (http_head_scan(bytes, &conn->scanned, &size)) {
    case HTTP_SCAN_MORE:
        if (!conn->in_head) /* one deadline for the head, from its first byte */
            loop_arm_ms(conn, conn->loop->server->options.head_ms);
        conn->in_head = true;
        return CONN_STEP_MORE;
    case HTTP_SCAN_HEAD:
        return begin(conn, size);
    case HTTP_SCAN_BARE_LF:
        (void)ron_fail(&info, RON_ERR_MALFORMED, "a line does not end in CR LF");
        refuse(conn, RON_ERR_MALFORMED, &info, 0);
        return CONN_STEP_WAIT;
    case HTTP_SCAN_TOO_LARGE:
        (void)ron_fail(&info, RON_ERR_HEADERS_TOO_LARGE, "a head above %d bytes",
                       HTTP_HEAD_SIZE_MAX);
        refuse(conn, RON_ERR_HEADERS_TOO_LARGE, &info, 0);
        return CONN_STEP_WAIT;
    case HTTP_SCAN_NOT_HTTP:
        rt_counter_add_own(&conn->loop->closed_not_http, 1);
        break;
    case HTTP_SCAN_NO_LINE:
        rt_counter_add_own(&conn->loop->closed_no_line, 1);
        break;
    }
    if (conn->out.start == conn->out.end) {
        conn_close(conn);
        return CONN_STEP_CLOSED;
    }
    /* Replies to what came before are still on their way out. */
    conn->state = CONN_WAIT;
    conn->closing = true;
    loop_arm_ms(conn, CONN_LINGER_MS);
    loop_flush_later(conn);
    return CONN_STEP_WAIT;
}

static enum conn_step http_step(struct io_conn *conn)
{
    RON_ASSERT(conn->state == CONN_HEAD || conn->state == CONN_BODY);
    return conn->state == CONN_HEAD ? step_head(conn) : step_body(conn);
}

/* ---- Answers ---- */

/* The request's bytes are done with: the next one starts behind them. */
static void advance(struct io_conn *conn, const struct io_call *call)
{
    if (call->body_in_place)
        conn->in.start += call->head_size + (size_t)call->head.content_length;
    RON_ASSERT(conn->in.start <= conn->in.end);
}

static void http_answered(struct io_call *call)
{
    struct io_loop *loop = call->loop;
    struct io_conn *conn = call->conn;
    struct io_stream *stream = call->stream;
    bool head_only = call->request.method == HTTP_HEAD;
    bool keep, put;

    if (conn == NULL) {
        call_free(call);
        if (stream != NULL)
            io_stream_attach(stream, NULL);
        return;
    }
    RON_ASSERT(conn->call == call && conn->state == CONN_WAIT);
    rt_counter_add_own(&loop->replies, 1);
    http_reply_date(loop, call->reply, call->reply_size);
    put = conn_put(conn, call->reply, call->reply_size);
    keep = call->keep_alive && rt_atomic_load_u32(&loop->server->draining) == 0;
    advance(conn, call);
    conn->call = NULL;
    call_free(call);
    if (!put) {
        conn_close(conn);
        if (stream != NULL)
            io_stream_attach(stream, NULL);
        return;
    }
    loop_flush_later(conn);
    if (stream != NULL && !head_only) {
        io_stream_attach(stream, conn);
        return;
    }
    if (stream != NULL)
        io_stream_attach(stream, NULL); /* its head is all that was asked for */
    conn->closing = !keep;
    conn->state = keep ? CONN_HEAD : CONN_WAIT;
    /* Also what a peer has for reading the reply, before a connection that ends lingers. */
    loop_arm_ms(conn, loop->server->options.idle_ms);
    if (keep)
        conn_turn(conn);
}

const struct conn_protocol conn_http = {
    .step = http_step,
    .answered = http_answered,
    .refuse = http_refuse,
};

/* ---- Which protocol? ---- */

/* A frame begins with 0, a request line never does. */
static enum conn_step unknown_step(struct io_conn *conn)
{
    const struct conn_buffer *in = &conn->in;

    if (in->start == in->end)
        return step_head(conn);
    conn->protocol = in->data[in->start] == 0 && conn->loop->server->options.oap != NULL &&
                             !conn->listener->admin
                         ? &conn_oap
                         : &conn_http;
    return conn->protocol->step(conn);
}

const struct conn_protocol conn_unknown = {
    .step = unknown_step,
    .refuse = http_refuse,
};
