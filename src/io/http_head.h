/*
 * http_head.h - the grammar of an HTTP/1.1 request head, as strict as RFC 9112 allows.
 *
 * What two readers could take two ways is refused: bare LF, folded lines, white space before a
 * colon, Content-Length more than once, signed, listed or beside Transfer-Encoding, any coding but
 * one `chunked`, no Host or two, control and high bytes anywhere, HTTP/0.9. Everything here is pure
 * and borrows the bytes of the head; nothing is decoded.
 *
 * Use: http_head_scan as bytes arrive, until it finds the end; then http_head_parse once.
 */
#ifndef RON_IO_HTTP_HEAD_H
#define RON_IO_HTTP_HEAD_H

#include "base/bytes.h"

enum {
    HTTP_HEAD_SIZE_MAX = 16384, /* from the first byte to the empty line */
    HTTP_HEADERS_MAX = 64,
    HTTP_TARGET_SIZE_MAX = 4096,
    HTTP_METHOD_SIZE_MAX = 16,
};

/* X(name): methods that have a name here; all others are HTTP_OTHER. */
#define HTTP_METHOD_MAP(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(OPTIONS)

enum http_method {
#define X(name) HTTP_##name,
    HTTP_METHOD_MAP(X)
#undef X
        HTTP_OTHER
};
const char *http_method_name(enum http_method method); /* "GET"; "OTHER" */

enum http_scan {
    HTTP_SCAN_MORE,     /* no end yet */
    HTTP_SCAN_HEAD,     /* *ret_size bytes are the head, its empty line included */
    HTTP_SCAN_BARE_LF,  /* a line ends without CR: answer 400 */
    HTTP_SCAN_NOT_HTTP, /* the first byte starts no request (TLS on the plain port): close */
    HTTP_SCAN_NO_LINE,  /* the limit is reached and no line has ended: close */
    HTTP_SCAN_TOO_LARGE /* the limit is reached inside the fields: answer 431 */
};
/* *scanned is where the last call stopped: 0 at first, kept by the caller between calls on a
 * growing buffer. One empty line before the request line is allowed and part of the head. */
enum http_scan http_head_scan(struct ron_slice bytes, size_t *scanned, size_t *ret_size);

struct http_field {
    struct ron_slice name;  /* as sent: compare with http_text_is */
    struct ron_slice value; /* without white space around it */
};
struct http_head {
    enum http_method method;
    struct ron_slice method_text;
    struct ron_slice target; /* as sent */
    struct ron_slice path;   /* "/a/b"; "*" for OPTIONS alone; escapes not decoded */
    struct ron_slice query;  /* behind '?'; empty without */
    struct ron_slice host;   /* of the target where it has one, else of the field */
    uint8_t minor;           /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;
    bool chunked;
    bool has_length;
    bool expect_continue;
    uint64_t content_length; /* 0 without */
    size_t fields_count;
    struct http_field fields[HTTP_HEADERS_MAX];
};

/* What a target asks for: a path, or an http address with one. Borrows it. */
struct http_target {
    struct ron_slice path, query, host; /* as in a head; no host without an address */
};
/* RON_ERR_MALFORMED, RON_ERR_HEADERS_TOO_LARGE. */
enum ron_err http_target_split(enum http_method method, struct ron_slice target,
                               struct http_target *ret_target,
                               struct ron_errinfo *reterr) RON_MUST_USE;

/* `bytes` is what http_head_scan found. RON_ERR_MALFORMED, RON_ERR_HEADERS_TOO_LARGE (target,
 * number of fields); the message says which line and what, never a field's value. *ret_head is
 * large and filled in place: nothing in it counts after a failure. */
enum ron_err http_head_parse(struct ron_slice bytes, struct http_head *ret_head,
                             struct ron_errinfo *reterr) RON_MUST_USE;

/* ASCII case-insensitive equality with text.size bytes in lower case, of which none is '@' or above
 * but letters. */
bool http_text_is_same(struct ron_slice text, const char *lower);
/* The same with a whole text in lower case. Inline, as are those that look for a name: most names
 * differ in size already, which the compiler knows of a literal. */
static inline bool http_text_is(struct ron_slice text, const char *lower)
{
    return text.size == strlen(lower) && http_text_is_same(text, lower);
}
/* The first field of that name (lower case), or NULL. */
static inline const struct http_field *http_fields_find(const struct http_field *fields,
                                                        size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (http_text_is(fields[i].name, name))
            return &fields[i];
    return NULL;
}
static inline const struct http_field *http_head_find(const struct http_head *head,
                                                      const char *name)
{
    return http_fields_find(head->fields, head->fields_count, name);
}
/* How many of that name there are. */
static inline size_t http_fields_count(const struct http_field *fields, size_t count,
                                       const char *name)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += http_text_is(fields[i].name, name);
    return found;
}
static inline size_t http_head_count(const struct http_head *head, const char *name)
{
    return http_fields_count(head->fields, head->fields_count, name);
}
/* Both in one pass. */
static inline const struct http_field *http_head_find_counted(const struct http_head *head,
                                                              const char *name, size_t *ret_count)
{
    const struct http_field *first = NULL;
    size_t count = 0;

    for (size_t i = 0; i < head->fields_count; i++) {
        if (!http_text_is(head->fields[i].name, name))
            continue;
        first = count++ == 0 ? &head->fields[i] : first;
    }
    *ret_count = count;
    return first;
}
/* Is `lower` one of the comma-separated tokens of value? */
bool http_list_has(struct ron_slice value, const char *lower);

/* The next line of a head without its CR LF; *rest moves behind it. */
enum ron_err http_line_take(struct ron_slice *rest, struct ron_slice *ret_line,
                            struct ron_errinfo *reterr) RON_MUST_USE;
/* All field lines up to and with the empty one, which must end `rest`. *count starts at 0. Requests
 * and responses alike. */
enum ron_err http_fields_parse(struct ron_slice rest, struct http_field fields[HTTP_HEADERS_MAX],
                               size_t *count, struct ron_errinfo *reterr) RON_MUST_USE;
/* How long the body is: RFC 9112 section 6.3 without its leniencies, requests and responses alike.
 * RON_ERR_MALFORMED. */
struct http_body_framing {
    bool chunked, has_length;
    uint64_t content_length; /* 0 without */
};
enum ron_err http_fields_framing(const struct http_field *fields, size_t count, uint8_t minor,
                                 struct http_body_framing *ret_framing,
                                 struct ron_errinfo *reterr) RON_MUST_USE;
/* One field line without its CRLF, for heads and for trailers. */
enum ron_err http_field_parse(struct ron_slice line, struct http_field *ret_field,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
