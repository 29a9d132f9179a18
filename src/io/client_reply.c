/*
 * client_reply.c - what a call brought back. See client.h.
 */
#include "base/json.h"
#include "io/client_impl.h"

enum { ENVELOPE_SIZE_MAX = 4096 };

void io_client_reply_init(struct io_client_reply *reply)
{
    memset(&reply->head, 0, offsetof(struct http_response, fields));
    reply->body = (struct ron_slice){0};
    reply->tries_count = 0;
    ron_buf_init(&reply->head_bytes, HTTP_HEAD_SIZE_MAX + CLIENT_BODY_MAX_MIN);
    ron_buf_init(&reply->body_bytes, CLIENT_BODY_MAX_DEFAULT);
}

void io_client_reply_fini(struct io_client_reply *reply)
{
    ron_buf_fini(&reply->head_bytes);
    ron_buf_fini(&reply->body_bytes);
    reply->body = (struct ron_slice){0};
}

struct envelope {
    char code[64];
    char message[2 * RON_ERR_MESSAGE_SIZE]; /* cut to whole characters by ron_fail */
};
enum member { MEMBER_OTHER, MEMBER_ERROR, MEMBER_CODE, MEMBER_MESSAGE };

static enum member member_of(struct ron_slice name, unsigned depth)
{
    if (depth == 1 && ron_slice_equal(name, RON_SLICE("error")))
        return MEMBER_ERROR;
    if (depth == 2 && ron_slice_equal(name, RON_SLICE("code")))
        return MEMBER_CODE;
    return depth == 2 && ron_slice_equal(name, RON_SLICE("message")) ? MEMBER_MESSAGE
                                                                     : MEMBER_OTHER;
}

/* What fits of a text. */
static void keep(struct ron_slice text, char *ret_text, size_t text_size)
{
    size_t size = text.size < text_size ? text.size : text_size - 1;

    memcpy(ret_text, text.data, size);
    ret_text[size] = '\0';
}

/* error.code and error.message; false if this is not strict JSON. The rest is read over. */
static bool read_members(struct ron_json_reader *reader, struct envelope *ret_envelope)
{
    struct ron_json_token token;
    unsigned depth = 0;
    bool in_error = false;
    enum member member = MEMBER_OTHER;

    do {
        if (ron_json_next(reader, &token, NULL) != RON_ERR_OK)
            return false;
        if (token.kind == RON_JSON_NAME) {
            member = member_of(token.text, depth);
            continue;
        }
        if (token.kind == RON_JSON_OBJECT_BEGIN && depth++ == 1)
            in_error = member == MEMBER_ERROR;
        if (token.kind == RON_JSON_OBJECT_END)
            depth--;
        if (token.kind == RON_JSON_STRING && depth == 2 && in_error) {
            if (member == MEMBER_CODE)
                keep(token.text, ret_envelope->code, sizeof(ret_envelope->code));
            else if (member == MEMBER_MESSAGE)
                keep(token.text, ret_envelope->message, sizeof(ret_envelope->message));
        }
        member = MEMBER_OTHER;
    } while (token.kind != RON_JSON_END);
    return true;
}

bool client_read_envelope(struct ron_slice body, struct ron_errinfo *ret_info)
{
    struct envelope envelope = {0};
    struct ron_json_reader reader;
    struct ron_arena arena = {0};
    enum ron_err err;
    bool found;

    if (body.size == 0 || body.size > ENVELOPE_SIZE_MAX ||
        ron_arena_init(&arena, (size_t)2 * ENVELOPE_SIZE_MAX, NULL) != RON_ERR_OK)
        return false;
    ron_json_reader_init(&reader, body, &arena);
    found = read_members(&reader, &envelope) && ron_err_find(envelope.code, &err);
    ron_arena_fini(&arena);
    if (found && err != RON_ERR_OK)
        (void)ron_fail(ret_info, err, "%s", envelope.message);
    return found && err != RON_ERR_OK;
}

bool io_client_reply_error(const struct io_client_reply *reply, enum ron_err *ret_err)
{
    struct ron_errinfo info;

    if (reply->head.status < 400 || !client_read_envelope(reply->body, &info))
        return false;
    *ret_err = info.err;
    return true;
}
