/*
 * http_reply.c - replies as bytes, and handing them in. See request.h.
 *
 * The thread that answers formats the whole message; the loop only copies it out, with its date.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/decimal.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "io/conn.h"

enum { ERROR_BODY_MAX = 16384, FIELD_VALUE_MAX = 256 };

/* Behind the status line: see http_reply_date. */
#define DATE_BLANK "Date:                              \r\n"
enum { DATE_AT = 6 };
_Static_assert(sizeof(DATE_BLANK) - 1 == DATE_AT + HTTP_DATE_SIZE - 1 + 2, "a date fits");

struct text {
    uint8_t *at, *end;
};

/* Inline: a literal is copied with its size known. */
static RON_HOT_INLINE void put(struct text *text, const char *part)
{
    size_t size = strlen(part);

    RON_ASSERT(size <= (size_t)(text->end - text->at));
    memcpy(text->at, part, size);
    text->at += size;
}

static RON_HOT_INLINE void put_field(struct text *text, const char *name, const char *value)
{
    put(text, name);
    put(text, ": ");
    put(text, value);
    put(text, "\r\n");
}

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "HTTP/1.1 200 OK\r\n";
    case 201:
        return "HTTP/1.1 201 Created\r\n";
    case 202:
        return "HTTP/1.1 202 Accepted\r\n";
    case 204:
        return "HTTP/1.1 204 No Content\r\n";
    case 304:
        return "HTTP/1.1 304 Not Modified\r\n";
    case 400:
        return "HTTP/1.1 400 Bad Request\r\n";
    case 401:
        return "HTTP/1.1 401 Unauthorized\r\n";
    case 403:
        return "HTTP/1.1 403 Forbidden\r\n";
    case 404:
        return "HTTP/1.1 404 Not Found\r\n";
    case 405:
        return "HTTP/1.1 405 Method Not Allowed\r\n";
    case 408:
        return "HTTP/1.1 408 Request Timeout\r\n";
    case 409:
        return "HTTP/1.1 409 Conflict\r\n";
    case 410:
        return "HTTP/1.1 410 Gone\r\n";
    case 411:
        return "HTTP/1.1 411 Length Required\r\n";
    case 413:
        return "HTTP/1.1 413 Content Too Large\r\n";
    case 415:
        return "HTTP/1.1 415 Unsupported Media Type\r\n";
    case 422:
        return "HTTP/1.1 422 Unprocessable Content\r\n";
    case 429:
        return "HTTP/1.1 429 Too Many Requests\r\n";
    case 431:
        return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 500:
        return "HTTP/1.1 500 Internal Server Error\r\n";
    case 503:
        return "HTTP/1.1 503 Service Unavailable\r\n";
    case 504:
        return "HTTP/1.1 504 Gateway Timeout\r\n";
    default:
        RON_UNREACHABLE(); /* handlers answer with what the error table and this list have */
    }
}

/* A value of ours with a byte that would end the line, or too long, is a bug. */
static void check_field(const struct io_reply_field *field)
{
    RON_ASSERT(strlen(field->name) + strlen(field->value) <= FIELD_VALUE_MAX);
    for (const char *at = field->value; *at != '\0'; at++)
        RON_ASSERT((*at >= ' ' || *at == '\t') && *at != 0x7f);
}

size_t http_reply_head(const struct reply_head *head, uint8_t ret_bytes[static REPLY_HEAD_MAX])
{
    struct text text = {ret_bytes, ret_bytes + REPLY_HEAD_MAX};
    char length[RON_DECIMAL_U64_SIZE];

    RON_ASSERT(head->fields_count <= IO_REPLY_FIELDS_MAX);
    put(&text, status_text(head->status));
    put(&text, DATE_BLANK);
    if (head->media != NULL)
        put_field(&text, "Content-Type", head->media);
    if (!head->no_length && head->status != 204 && head->status != 304) {
        (void)ron_decimal_print_u64(head->length, length);
        put_field(&text, "Content-Length", length);
    }
    if (head->corr_id != NULL)
        put_field(&text, "X-Corr-ID", head->corr_id);
    for (size_t i = 0; i < head->fields_count; i++) {
        check_field(&head->fields[i]);
        put_field(&text, head->fields[i].name, head->fields[i].value);
    }
    if (head->close)
        put_field(&text, "Connection", "close");
    else if (head->keep_alive)
        put_field(&text, "Connection", "keep-alive");
    put(&text, "\r\n");
    return (size_t)(text.at - ret_bytes);
}
void http_reply_date(const struct io_loop *loop, uint8_t *reply, size_t size)
{
    uint8_t *line = memchr(reply, '\n', size);

    RON_ASSERT(line != NULL && size - (size_t)(line + 1 - reply) >= sizeof(DATE_BLANK) - 1);
    memcpy(line + 1 + DATE_AT, loop->date, HTTP_DATE_SIZE - 1);
}

_Static_assert(IO_REPLY_FIELDS_MAX *(FIELD_VALUE_MAX + 4) + 512 <= REPLY_HEAD_MAX,
               "the fields of a reply fit its head, and what each reply has");

static void reply_http(struct io_call *call, const struct io_reply *reply)
{
    struct io_request *request = &call->request;
    struct reply_head head = {.status = reply->status,
                              .media = reply->media,
                              .fields = reply->fields,
                              .fields_count = reply->fields_count,
                              .corr_id = request->corr_id,
                              .length = reply->body.size,
                              .close = !call->keep_alive ||
                                       rt_atomic_load_u32(&call->loop->server->draining) != 0,
                              .keep_alive = call->head.minor == 0};
    bool with_body = request->method != HTTP_HEAD && reply->status != 204 && reply->status != 304;
    uint8_t bytes[REPLY_HEAD_MAX];
    size_t head_size = http_reply_head(&head, bytes);
    size_t size = head_size + (with_body ? reply->body.size : 0);

    call->status = reply->status;
    call->reply = size <= CALL_INLINE_SIZE ? call->inline_reply : ron_mem_alloc(size);
    if (call->reply == NULL) {
        /* Too large for the memory that is left: say that in the room there is. */
        struct ron_errinfo info = {0};

        (void)ron_fail(&info, RON_ERR_NO_MEMORY, "a reply of %zu bytes", size);
        io_reply_error(request, RON_ERR_NO_MEMORY, &info, (struct ron_slice){0});
        return;
    }
    memcpy(call->reply, bytes, head_size);
    if (with_body && reply->body.size > 0)
        memcpy(call->reply + head_size, reply->body.data, reply->body.size);
    call->reply_size = size;
    io_loop_hand_in(call->loop, call);
}

void io_reply(struct io_request *request, const struct io_reply *reply)
{
    struct io_call *call = (struct io_call *)request;

    RON_ASSERT(call->dispatched);
    RON_ASSERT(call->reply == NULL && call->stream == NULL); /* once */
    if (request->frame != NULL)
        oap_reply(call, reply);
    else
        reply_http(call, reply);
}

void http_error_body(enum ron_err err, const struct ron_errinfo *info, const char *corr_id,
                     struct ron_slice details, struct ron_buf *buf)
{
    enum ron_err wire = ron_err_wire(err);
    struct ron_json_writer writer;

    ron_json_writer_init(&writer, buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "error");
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "code");
    ron_json_put_text(&writer, ron_err_name(wire));
    ron_json_put_name(&writer, "message");
    /* What went wrong inside is for the log. */
    ron_json_put_text(&writer, info == NULL || info->message[0] == '\0' || wire != err ||
                                       wire == RON_ERR_INTERNAL
                                   ? ron_err_text(wire)
                                   : info->message);
    ron_json_put_name(&writer, "retryable");
    ron_json_put_bool(&writer, ron_err_retryable(wire));
    ron_json_put_name(&writer, "corr_id");
    ron_json_put_text(&writer, corr_id);
    ron_json_put_name(&writer, "details");
    ron_json_put_raw(&writer, details.size == 0 ? RON_SLICE("{}") : details);
    ron_json_put_object_end(&writer);
    ron_json_put_object_end(&writer);
    if (ron_json_writer_end(&writer, NULL) == RON_ERR_OK)
        return;
    /* A message that is no UTF-8, or no room: the code alone always fits. */
    ron_buf_reset(buf);
    ron_buf_put_format(buf,
                       "{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"retryable\":%s,"
                       "\"corr_id\":\"%s\",\"details\":{}}}",
                       ron_err_name(wire), ron_err_text(wire),
                       ron_err_retryable(wire) ? "true" : "false", corr_id);
}

void io_reply_error(struct io_request *request, enum ron_err err, const struct ron_errinfo *info,
                    struct ron_slice details)
{
    static const struct io_reply_field retry_after[] = {{"Retry-After", "1"}};
    enum ron_err wire = ron_err_wire(err);
    struct ron_buf body;

    RON_ASSERT(err != RON_ERR_OK);
    ron_buf_init(&body, ERROR_BODY_MAX);
    http_error_body(err, info, request->corr_id, details, &body);
    io_reply(request, &(struct io_reply){
                          .status = ron_err_http(wire),
                          .media = "application/json",
                          .body = ron_buf_slice(&body),
                          .fields = retry_after,
                          .fields_count = ron_err_retry_after(wire) ? 1 : 0,
                      });
    ron_buf_fini(&body);
}
