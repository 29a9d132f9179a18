/*
 * http_response.c - the grammar of an HTTP/1.1 response head. See http_response.h.
 */
#include "io/http_response.h"

#include "base/assert.h"

enum { STATUS_LINE_MIN = 13 }; /* "HTTP/1.1 200 " */

static struct ron_slice skip(struct ron_slice text, size_t size)
{
    RON_ASSERT(size <= text.size);
    return ron_slice_of(text.data + size, text.size - size);
}

static enum ron_err parse_status_line(struct ron_slice line, struct http_response *response,
                                      struct ron_errinfo *reterr)
{
    const uint8_t *at = line.data;

    if (line.size < STATUS_LINE_MIN || memcmp(at, "HTTP/1.", 7) != 0 ||
        (at[7] != '0' && at[7] != '1') || at[8] != ' ')
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "status line: neither HTTP/1.1 nor HTTP/1.0 with a status");
    for (size_t i = 9; i < 12; i++)
        if (at[i] < '0' || at[i] > '9')
            return ron_fail(reterr, RON_ERR_MALFORMED, "status line: no status of three digits");
    response->minor = (uint8_t)(at[7] - '0');
    response->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    if (response->status < 100 || response->status > 599)
        return ron_fail(reterr, RON_ERR_MALFORMED, "status line: status %d", response->status);
    if (at[12] != ' ')
        return ron_fail(reterr, RON_ERR_MALFORMED, "status line: no space behind the status");
    response->reason = skip(line, STATUS_LINE_MIN);
    for (size_t i = 0; i < response->reason.size; i++) {
        uint8_t byte = response->reason.data[i];

        if (byte != '\t' && (byte < ' ' || byte > '~'))
            return ron_fail(reterr, RON_ERR_MALFORMED, "status line: byte 0x%02x in the reason",
                            byte);
    }
    return RON_ERR_OK;
}

const struct http_field *http_response_find(const struct http_response *response, const char *name)
{
    return http_fields_find(response->fields, response->fields_count, name);
}

static enum ron_err read_framing(struct http_response *response, enum http_method method,
                                 struct ron_errinfo *reterr)
{
    bool bodiless = response->status < 200 || response->status == 204;
    struct http_body_framing framing;
    enum ron_err err = http_fields_framing(response->fields, response->fields_count,
                                           response->minor, &framing, reterr);

    if (err != RON_ERR_OK)
        return err;
    response->content_length = framing.content_length;
    response->framing = framing.chunked      ? HTTP_CHUNKED
                        : framing.has_length ? HTTP_LENGTH
                                             : HTTP_UNTIL_CLOSE;
    /* Bytes announced where none may come: whoever counts them reads into the next reply. */
    if (bodiless && (framing.chunked || framing.content_length > 0))
        return ron_fail(reterr, RON_ERR_MALFORMED, "status %d with a body", response->status);
    if (bodiless || response->status == 304 || method == HTTP_HEAD)
        response->framing = HTTP_NO_BODY;
    return RON_ERR_OK;
}

static void read_connection(struct http_response *response)
{
    bool close = response->framing == HTTP_UNTIL_CLOSE;
    bool keep = response->minor == 1;

    for (size_t i = 0; i < response->fields_count; i++) {
        if (!http_text_is(response->fields[i].name, "connection"))
            continue;
        close |= http_list_has(response->fields[i].value, "close");
        keep |= http_list_has(response->fields[i].value, "keep-alive");
    }
    response->keep_alive = keep && !close;
}

enum ron_err http_response_parse(struct ron_slice bytes, enum http_method method,
                                 struct http_response *ret_response, struct ron_errinfo *reterr)
{
    struct ron_slice line;
    enum ron_err err;

    memset(ret_response, 0, offsetof(struct http_response, fields));
    err = http_line_take(&bytes, &line, reterr);
    if (err == RON_ERR_OK)
        err = parse_status_line(line, ret_response, reterr);
    if (err == RON_ERR_OK)
        err = http_fields_parse(bytes, ret_response->fields, &ret_response->fields_count, reterr);
    if (err == RON_ERR_OK && ret_response->status == 101)
        err = ron_fail(reterr, RON_ERR_MALFORMED, "status line: 101, but nobody asked for it");
    if (err == RON_ERR_OK)
        err = read_framing(ret_response, method, reterr);
    if (err == RON_ERR_OK)
        read_connection(ret_response);
    return err;
}
