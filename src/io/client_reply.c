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

/* The text of error.code, or false. Strict JSON; the rest is checked and read over. */
static bool find_code(struct ron_json_reader *reader, char *ret_code, size_t code_size)
{
    struct ron_json_token token;
    unsigned depth = 0;
    bool in_error = false;
    bool found = false;
    const char *wanted = NULL;

    do {
        if (ron_json_next(reader, &token, NULL) != RON_ERR_OK)
            return false;
        if (token.kind == RON_JSON_NAME) {
            wanted = depth == 1 && ron_slice_equal(token.text, RON_SLICE("error")) ? "error"
                     : depth == 2 && in_error && ron_slice_equal(token.text, RON_SLICE("code"))
                         ? "code"
                         : NULL;
            continue;
        }
        if (token.kind == RON_JSON_OBJECT_BEGIN && depth++ == 1)
            in_error = wanted != NULL;
        if (token.kind == RON_JSON_OBJECT_END)
            depth--;
        if (token.kind == RON_JSON_STRING && wanted != NULL && depth == 2 && in_error &&
            token.text.size < code_size) {
            memcpy(ret_code, token.text.data, token.text.size);
            ret_code[token.text.size] = '\0';
            found = true;
        }
        wanted = NULL;
    } while (token.kind != RON_JSON_END);
    return found;
}

bool io_client_reply_error(const struct io_client_reply *reply, enum ron_err *ret_err)
{
    struct ron_json_reader reader;
    struct ron_arena arena = {0};
    char code[64] = "";
    bool found;

    if (reply->head.status < 400 || reply->body.size == 0 || reply->body.size > ENVELOPE_SIZE_MAX ||
        ron_arena_init(&arena, (size_t)2 * ENVELOPE_SIZE_MAX, NULL) != RON_ERR_OK)
        return false;
    ron_json_reader_init(&reader, reply->body, &arena);
    found = find_code(&reader, code, sizeof(code)) && ron_err_find(code, ret_err);
    ron_arena_fini(&arena);
    return found;
}
