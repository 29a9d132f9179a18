/*
 * client_exchange.c - one request and its reply on one connection. See client_impl.h.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "io/client_impl.h"

enum {
    HEAD_ROOM = 512,       /* of a request head beyond the caller's own texts */
    BODY_JOINED_MAX = 8192 /* sent together with the head */
};

/* ---- The request ---- */

/* One line, checked as the server will: no caller's text can end it or add another. */
static enum ron_err put_line(struct ron_buf *buf, const char *name, struct ron_slice value,
                             struct ron_errinfo *reterr)
{
    size_t start = buf->size;
    struct http_field field;
    enum ron_err err;

    ron_buf_put_text(buf, name);
    ron_buf_put(buf, ": ", 2);
    ron_buf_put(buf, value.data, value.size);
    err = ron_buf_check(buf, reterr);
    if (err == RON_ERR_OK)
        err = http_field_parse(ron_slice_of(buf->data + start, buf->size - start), &field, reterr);
    if (err == RON_ERR_OK &&
        (field.name.size != strlen(name) || !ron_slice_equal(field.value, value)))
        err = ron_fail(reterr, RON_ERR_MALFORMED, "white space around it, or a colon in its name");
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "request field %.40s", name);
    ron_buf_put(buf, "\r\n", 2);
    return RON_ERR_OK;
}

static enum ron_err put_optional(struct ron_buf *buf, const char *name, const char *value,
                                 struct ron_errinfo *reterr)
{
    return value == NULL ? RON_ERR_OK : put_line(buf, name, ron_slice_text(value), reterr);
}

static enum ron_err put_token(struct ron_buf *buf, const struct ron_secret *token,
                              struct ron_errinfo *reterr)
{
    static const char name[] = "Authorization: Bearer ";
    struct ron_slice bytes;

    if (token == NULL)
        return RON_ERR_OK;
    bytes = ron_secret_expose(token);
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] <= ' ' || bytes.data[i] > '~')
            return ron_fail(reterr, RON_ERR_MALFORMED, "request: a token with other than text");
    ron_buf_put(buf, name, sizeof(name) - 1);
    ron_buf_put(buf, bytes.data, bytes.size);
    ron_buf_put(buf, "\r\n", 2);
    return RON_ERR_OK;
}

static enum ron_err put_own_fields(struct ron_buf *buf, const struct io_client_request *request,
                                   struct ron_errinfo *reterr)
{
    static const char *const ours[] = {
        "host",          "content-length", "transfer-encoding", "connection",   "expect",
        "authorization", "x-corr-id",      "x-deadline-ms",     "content-type", "idempotency-key",
    };
    enum ron_err err = RON_ERR_OK;

    RON_ASSERT(request->fields_count <= IO_CLIENT_FIELDS_MAX);
    for (size_t i = 0; i < request->fields_count && err == RON_ERR_OK; i++) {
        const struct io_client_field *field = &request->fields[i];

        for (size_t j = 0; j < RON_ARRAY_COUNT(ours); j++)
            if (http_text_is(ron_slice_text(field->name), ours[j]))
                return ron_fail(reterr, RON_ERR_MALFORMED, "request field %s: set by the client",
                                ours[j]);
        err = put_line(buf, field->name, ron_slice_text(field->value), reterr);
    }
    return err;
}

bool client_has_body(const struct io_client_request *request)
{
    return request->body.size <= BODY_JOINED_MAX;
}

/* The largest it can be: reserved at once, so that no copy with the token is left behind. */
static size_t head_bound(const struct io_client_request *request, const char *host)
{
    size_t size = HEAD_ROOM + strlen(request->path) + strlen(host);

    if (client_has_body(request))
        size += request->body.size;
    size += request->media == NULL ? 0 : strlen(request->media);
    size += request->corr_id == NULL ? 0 : strlen(request->corr_id);
    size += request->idempotency_key == NULL ? 0 : strlen(request->idempotency_key);
    size += request->token == NULL ? 0 : ron_secret_size(request->token);
    for (size_t i = 0; i < request->fields_count; i++)
        size += strlen(request->fields[i].name) + strlen(request->fields[i].value) + 4;
    return size;
}

/* Never 0, which would be a deadline in the past. */
static void put_deadline(struct ron_buf *buf, struct rt_deadline deadline)
{
    uint64_t left_ns = rt_deadline_remaining_ns(deadline);
    char text[RON_DECIMAL_U64_SIZE];

    if (left_ns == UINT64_MAX)
        return;
    (void)ron_decimal_print_u64(left_ns < RT_NS_PER_MS ? 1 : left_ns / RT_NS_PER_MS, text);
    ron_buf_put_text(buf, "X-Deadline-Ms: ");
    ron_buf_put_text(buf, text);
    ron_buf_put(buf, "\r\n", 2);
}

static enum ron_err put_request_line(struct ron_buf *buf, const struct io_client_request *request,
                                     struct ron_errinfo *reterr)
{
    RON_ASSERT(request->method < HTTP_OTHER);
    if (request->path[0] != '/')
        return ron_fail(reterr, RON_ERR_MALFORMED, "request: the path must start with /");
    for (const char *at = request->path; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return ron_fail(reterr, RON_ERR_MALFORMED, "request: byte 0x%02x in the path",
                            (unsigned char)*at);
    ron_buf_put_text(buf, http_method_name(request->method));
    ron_buf_put_byte(buf, ' ');
    ron_buf_put_text(buf, request->path);
    ron_buf_put_text(buf, " HTTP/1.1\r\n");
    return RON_ERR_OK;
}

enum ron_err client_put_head(struct ron_buf *buf, const struct io_client_request *request,
                             const char *host, struct rt_deadline deadline,
                             struct ron_errinfo *reterr)
{
    bool with_length = request->body.size > 0 || request->method == HTTP_POST ||
                       request->method == HTTP_PUT;
    char length[RON_DECIMAL_U64_SIZE];
    enum ron_err err;

    ron_buf_reset(buf);
    err = ron_buf_reserve(buf, head_bound(request, host), reterr);
    if (err == RON_ERR_OK)
        err = put_request_line(buf, request, reterr);
    if (err == RON_ERR_OK)
        err = put_line(buf, "Host", ron_slice_text(host), reterr);
    if (err == RON_ERR_OK)
        err = put_token(buf, request->token, reterr);
    if (err == RON_ERR_OK)
        err = put_optional(buf, "Content-Type", request->media, reterr);
    (void)ron_decimal_print_u64(request->body.size, length);
    if (err == RON_ERR_OK)
        err = put_optional(buf, "Content-Length", with_length ? length : NULL, reterr);
    if (err == RON_ERR_OK)
        err = put_optional(buf, "X-Corr-ID", request->corr_id, reterr);
    if (err == RON_ERR_OK)
        err = put_optional(buf, "Idempotency-Key", request->idempotency_key, reterr);
    if (err == RON_ERR_OK)
        err = put_own_fields(buf, request, reterr);
    if (err != RON_ERR_OK)
        return err;
    put_deadline(buf, deadline);
    ron_buf_put(buf, "\r\n", 2);
    if (client_has_body(request))
        ron_buf_put(buf, request->body.data, request->body.size);
    return ron_buf_check(buf, reterr);
}

static enum ron_err send_request(struct io_wire *wire, const struct io_client_request *request,
                                 struct ron_slice head, struct rt_deadline deadline,
                                 struct client_try *ret_try, struct ron_errinfo *reterr) RON_BLOCKS
{
    size_t sent = 0;
    enum ron_err err = io_wire_send(wire, head, deadline, &sent, reterr);

    ret_try->sent = sent > 0;
    if (err == RON_ERR_OK && !client_has_body(request))
        err = io_wire_send(wire, request->body, deadline, &sent, reterr);
    return err;
}

/* ---- The reply ---- */

enum ron_err client_exchange(struct io_wire *wire, const struct io_client_request *request,
                             struct ron_slice head, struct rt_deadline deadline,
                             struct io_client_reply *reply, struct client_try *ret_try,
                             struct ron_errinfo *reterr)
{
    struct client_reader reader;
    uint8_t bytes[CLIENT_PIECE_SIZE];
    enum ron_err err;
    bool whole;

    *ret_try = (struct client_try){0};
    client_reader_init(&reader, request->method, reply);
    err = send_request(wire, request, head, deadline, ret_try, reterr);
    whole = err == RON_ERR_OK;
    /* A server may answer and close before it has read all: its answer is worth more. */
    if (err != RON_ERR_OK && (err != RON_ERR_UPSTREAM_UNAVAILABLE || !ret_try->sent))
        return err;
    do {
        size_t size = 0;

        err = io_wire_receive(wire, bytes, sizeof(bytes), deadline, &size, reterr);
        if (err != RON_ERR_OK)
            return err;
        ret_try->answered |= size > 0;
        err = size > 0 ? client_reader_take(&reader, reply, ron_slice_of(bytes, size), reterr)
                       : client_reader_end(&reader, reply, reterr);
    } while (err == RON_ERR_OK && reader.stage != CLIENT_COMPLETE);
    ret_try->keep = err == RON_ERR_OK && reader.keep && whole;
    return err;
}
