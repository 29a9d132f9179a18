/*
 * http_head.c - the grammar of an HTTP/1.1 request head. See http_head.h.
 */
#include "io/http_head.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "io/http_scan.h"

/* Classes of bytes, as bits. */
enum {
    T = 1, /* of a token: methods and field names */
    V = 2, /* of a field value: visible, space, tab */
    R = 4, /* of a request target; '%' apart, which needs two digits */
    H = 8, /* of a host and its port */
    A = T | V | R | H,
};
static const uint8_t classes[256] = {
    ['\t'] = V,        [' '] = V,         ['!'] = A,         ['"'] = V,         ['#'] = T | V,
    ['$'] = A,         ['%'] = T | V,     ['&'] = A,         ['\''] = A,        ['('] = V | R | H,
    [')'] = V | R | H, ['*'] = A,         ['+'] = A,         [','] = V | R | H, ['-'] = A,
    ['.'] = A,         ['/'] = V | R,     ['0' ... '9'] = A, [':'] = V | R | H, [';'] = V | R | H,
    ['<'] = V,         ['='] = V | R | H, ['>'] = V,         ['?'] = V | R,     ['@'] = V | R,
    ['A' ... 'Z'] = A, ['['] = V | H,     ['\\'] = V,        [']'] = V | H,     ['^'] = T | V,
    ['_'] = A,         ['`'] = T | V,     ['a' ... 'z'] = A, ['{'] = V,         ['|'] = T | V,
    ['}'] = V,         ['~'] = A,
};

static const char *const method_names[] = {
#define X(name) #name,
    HTTP_METHOD_MAP(X)
#undef X
};
static const uint8_t method_sizes[] = {
#define X(name) sizeof(#name) - 1,
    HTTP_METHOD_MAP(X)
#undef X
};

const char *http_method_name(enum http_method method)
{
    RON_ASSERT(method <= HTTP_OTHER);
    return method == HTTP_OTHER ? "OTHER" : method_names[method];
}

static enum http_method find_method(struct ron_slice text)
{
    for (size_t i = 0; i < RON_ARRAY_COUNT(method_names); i++)
        if (text.size == method_sizes[i] && memcmp(text.data, method_names[i], text.size) == 0)
            return (enum http_method)i;
    return HTTP_OTHER;
}

static uint8_t common_class(const uint8_t *bytes, size_t count)
{
    uint8_t class = 0xff;

    for (size_t i = 0; i < count; i++)
        class &= classes[bytes[i]];
    return class;
}

/* How many bytes at the start are of the class. */
static size_t span(struct ron_slice text, uint8_t class)
{
    enum { STEP = 8 }; /* without a branch for each byte */
    size_t size = 0;

    while (text.size - size >= STEP && (common_class(text.data + size, STEP) & class) != 0)
        size += STEP;
    while (size < text.size && (classes[text.data[size]] & class) != 0)
        size++;
    return size;
}

static struct ron_slice skip(struct ron_slice text, size_t size)
{
    RON_ASSERT(size <= text.size);
    return ron_slice_of(text.data + size, text.size - size);
}

static size_t span_value(struct ron_slice text)
{
    const size_t size = http_scan_visible(text);

    return size + span(skip(text, size), V);
}

static uint8_t lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

/* Bits in which bytes differ, but for the case of letters: of what is in lower case, those alone
 * have the bit 0x40. */
static uint64_t differ(uint64_t bytes, uint64_t lower_bytes)
{
    return (bytes ^ lower_bytes) & ~((lower_bytes & UINT64_C(0x4040404040404040)) >> 1);
}

bool http_text_is_same(struct ron_slice text, const char *lower_text)
{
    const uint8_t *lower_data = (const uint8_t *)lower_text;

    if (text.size < 8) {
        for (size_t at = 0; at < text.size; at++)
            if (differ(text.data[at], lower_data[at]) != 0)
                return false;
        return true;
    }
    for (size_t at = 0; at < text.size - 8; at += 8)
        if (differ(ron_load_le64(text.data + at), ron_load_le64(lower_data + at)) != 0)
            return false;
    return differ(ron_load_le64(text.data + text.size - 8),
                  ron_load_le64(lower_data + text.size - 8)) == 0;
}

static struct ron_slice trim(struct ron_slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = skip(text, 1);
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

bool http_list_has(struct ron_slice value, const char *lower_text)
{
    for (;;) {
        const uint8_t *comma = value.size == 0 ? NULL : memchr(value.data, ',', value.size);
        size_t size = comma == NULL ? value.size : (size_t)(comma - value.data);

        if (http_text_is(trim(ron_slice_of(value.data, size)), lower_text))
            return true;
        if (comma == NULL)
            return false;
        value = skip(value, size + 1);
    }
}

/* ---- Where the head ends ---- */

static enum http_scan limit_reached(struct ron_slice bytes)
{
    if (bytes.size < HTTP_HEAD_SIZE_MAX)
        return HTTP_SCAN_MORE;
    return memchr(bytes.data, '\n', HTTP_HEAD_SIZE_MAX) == NULL ? HTTP_SCAN_NO_LINE
                                                                : HTTP_SCAN_TOO_LARGE;
}

/* Does the first byte of the request line start a method? An empty line may come before it. */
static bool starts_request(struct ron_slice bytes)
{
    size_t at = 0;

    if (bytes.data[0] == '\r') {
        if (bytes.size > 1 && bytes.data[1] != '\n')
            return false;
        at = 2;
    }
    /* LF alone and a second CR are for the search of line ends to judge. */
    return at >= bytes.size || bytes.data[at] == '\n' || bytes.data[at] == '\r' ||
           (classes[bytes.data[at]] & T) != 0;
}

enum http_scan http_head_scan(struct ron_slice bytes, size_t *scanned, size_t *ret_size)
{
    RON_ASSERT(*scanned <= bytes.size);
    if (bytes.size == 0)
        return HTTP_SCAN_MORE;
    if (!starts_request(bytes))
        return HTTP_SCAN_NOT_HTTP;
    while (*scanned < bytes.size) {
        const uint8_t *found = memchr(bytes.data + *scanned, '\n', bytes.size - *scanned);
        size_t at;

        if (found == NULL) {
            *scanned = bytes.size;
            break;
        }
        at = (size_t)(found - bytes.data);
        if (at >= HTTP_HEAD_SIZE_MAX)
            break;
        if (at == 0 || bytes.data[at - 1] != '\r')
            return HTTP_SCAN_BARE_LF;
        *scanned = at + 1;
        if (at >= 3 && bytes.data[at - 2] == '\n') {
            *ret_size = at + 1;
            return HTTP_SCAN_HEAD;
        }
    }
    return limit_reached(bytes);
}

/* ---- The request line ---- */

static enum ron_err check_target(struct ron_slice target, struct ron_errinfo *reterr)
{
    size_t at = http_scan_target(target);

    for (;;) {
        at += span(skip(target, at), R);
        if (at == target.size)
            return RON_ERR_OK;
        if (target.data[at] != '%')
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "request line: byte 0x%02x in the target at %zu", target.data[at], at);
        for (size_t i = 1; i <= 2; i++) {
            uint8_t digit = at + i < target.size ? lower(target.data[at + i]) : 0;

            if (!(digit >= '0' && digit <= '9') && !(digit >= 'a' && digit <= 'f'))
                return ron_fail(reterr, RON_ERR_MALFORMED,
                                "request line: %% without two hex digits in the target at %zu", at);
        }
        at += 3;
    }
}

static enum ron_err check_host(struct ron_slice host, struct ron_errinfo *reterr)
{
    if (host.size == 0 || span(host, H) != host.size || host.data[0] == ':')
        return ron_fail(reterr, RON_ERR_MALFORMED, "Host: not a host name with an optional port");
    return RON_ERR_OK;
}

/* "http://host/path": RFC 9112 §3.2.2; the host of the target wins over the field. */
static enum ron_err split_absolute(struct ron_slice rest, struct http_target *target,
                                   struct ron_errinfo *reterr)
{
    size_t size = 0;

    while (size < rest.size && rest.data[size] != '/' && rest.data[size] != '?')
        size++;
    target->host = ron_slice_of(rest.data, size);
    target->path = skip(rest, size);
    if (target->path.size == 0 || target->path.data[0] == '?')
        return ron_fail(reterr, RON_ERR_MALFORMED, "request line: a target without a path");
    return check_host(target->host, reterr);
}

enum ron_err http_target_split(enum http_method method, struct ron_slice target,
                               struct http_target *ret_target, struct ron_errinfo *reterr)
{
    struct http_target parts = {.path = target};
    const uint8_t *mark;
    size_t scheme_size = 0;
    enum ron_err err;

    if (target.size > HTTP_TARGET_SIZE_MAX)
        return ron_fail(reterr, RON_ERR_HEADERS_TOO_LARGE, "request line: a target of %zu bytes",
                        target.size);
    err = check_target(target, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (ron_slice_equal(target, RON_SLICE("*")) && method == HTTP_OPTIONS) {
        *ret_target = parts;
        return RON_ERR_OK;
    }
    if (target.size > 7 && http_text_is(ron_slice_of(target.data, 7), "http://"))
        scheme_size = 7;
    else if (target.size > 8 && http_text_is(ron_slice_of(target.data, 8), "https://"))
        scheme_size = 8;
    if (scheme_size != 0) {
        err = split_absolute(skip(target, scheme_size), &parts, reterr);
        if (err != RON_ERR_OK)
            return err;
    } else if (target.size == 0 || target.data[0] != '/') {
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "request line: the target is neither a path nor an http address");
    }
    mark = memchr(parts.path.data, '?', parts.path.size);
    if (mark != NULL) {
        size_t size = (size_t)(mark - parts.path.data);

        parts.query = skip(parts.path, size + 1);
        parts.path.size = size;
    }
    *ret_target = parts;
    return RON_ERR_OK;
}

static enum ron_err split_target(struct http_head *head, struct ron_errinfo *reterr)
{
    struct http_target target = {0};
    enum ron_err err = http_target_split(head->method, head->target, &target, reterr);

    head->path = target.path;
    head->query = target.query;
    head->host = target.host;
    return err;
}

static enum ron_err parse_request_line(struct ron_slice line, struct http_head *head,
                                       struct ron_errinfo *reterr)
{
    size_t size = span(line, T);
    const uint8_t *space;

    if (size == 0 || size > HTTP_METHOD_SIZE_MAX || size == line.size || line.data[size] != ' ')
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "request line: no method and space at its start");
    head->method_text = ron_slice_of(line.data, size);
    head->method = find_method(head->method_text);
    line = skip(line, size + 1);
    space = line.size == 0 ? NULL : memchr(line.data, ' ', line.size);
    if (space == NULL)
        return ron_fail(reterr, RON_ERR_MALFORMED, "request line: no HTTP version");
    size = (size_t)(space - line.data);
    head->target = ron_slice_of(line.data, size);
    line = skip(line, size + 1);
    if (ron_slice_equal(line, RON_SLICE("HTTP/1.1")))
        head->minor = 1;
    else if (ron_slice_equal(line, RON_SLICE("HTTP/1.0")))
        head->minor = 0;
    else
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "request line: the version is neither HTTP/1.1 nor HTTP/1.0");
    return split_target(head, reterr);
}

/* ---- Fields ---- */

enum ron_err http_field_parse(struct ron_slice line, struct http_field *ret_field,
                              struct ron_errinfo *reterr)
{
    size_t size = span(line, T);
    struct ron_slice value;
    size_t good;

    if (size == 0)
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        line.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t')
                            ? "a line that continues the one before it"
                            : "no field name");
    if (size == line.size || line.data[size] != ':')
        return ron_fail(reterr, RON_ERR_MALFORMED, "no colon behind the field name");
    value = skip(line, size + 1);
    good = span_value(value);
    if (good != value.size)
        return ron_fail(reterr, RON_ERR_MALFORMED, "byte 0x%02x in the value at %zu",
                        value.data[good], good);
    ret_field->name = ron_slice_of(line.data, size);
    ret_field->value = trim(value);
    return RON_ERR_OK;
}

static enum ron_err read_host(struct http_head *head, struct ron_errinfo *reterr)
{
    const struct http_field *field = http_head_find(head, "host");
    enum ron_err err;

    if (http_head_count(head, "host") > 1)
        return ron_fail(reterr, RON_ERR_MALFORMED, "Host: more than one");
    if (field == NULL)
        return head->minor == 0 ? RON_ERR_OK : ron_fail(reterr, RON_ERR_MALFORMED, "Host: missing");
    err = check_host(field->value, reterr);
    if (err == RON_ERR_OK && head->host.size == 0)
        head->host = field->value;
    return err;
}

enum ron_err http_fields_framing(const struct http_field *fields, size_t count, uint8_t minor,
                                 struct http_body_framing *ret_framing, struct ron_errinfo *reterr)
{
    const struct http_field *length = http_fields_find(fields, count, "content-length");
    const struct http_field *coding = http_fields_find(fields, count, "transfer-encoding");
    uint64_t content_length = 0;

    if (coding != NULL) {
        if (minor == 0)
            return ron_fail(reterr, RON_ERR_MALFORMED, "Transfer-Encoding: not in HTTP/1.0");
        if (length != NULL)
            return ron_fail(reterr, RON_ERR_MALFORMED, "Transfer-Encoding beside Content-Length");
        if (http_fields_count(fields, count, "transfer-encoding") > 1 ||
            !http_text_is(coding->value, "chunked"))
            return ron_fail(reterr, RON_ERR_MALFORMED, "Transfer-Encoding: only chunked, once");
    }
    if (length != NULL) {
        if (http_fields_count(fields, count, "content-length") > 1)
            return ron_fail(reterr, RON_ERR_MALFORMED, "Content-Length: more than one");
        if (ron_decimal_parse_u64(length->value, &content_length, NULL) != RON_ERR_OK)
            return ron_fail(reterr, RON_ERR_MALFORMED, "Content-Length: not a decimal number");
    }
    *ret_framing = (struct http_body_framing){coding != NULL, length != NULL, content_length};
    return RON_ERR_OK;
}

static enum ron_err read_framing(struct http_head *head, struct ron_errinfo *reterr)
{
    struct http_body_framing framing;
    enum ron_err err = http_fields_framing(head->fields, head->fields_count, head->minor, &framing,
                                           reterr);

    if (err != RON_ERR_OK)
        return err;
    head->chunked = framing.chunked;
    head->has_length = framing.has_length;
    head->content_length = framing.content_length;
    return RON_ERR_OK;
}

static enum ron_err read_connection(struct http_head *head, struct ron_errinfo *reterr)
{
    const struct http_field *expect = http_head_find(head, "expect");
    bool close = false;
    bool keep = head->minor == 1;

    for (size_t i = 0; i < head->fields_count; i++) {
        if (!http_text_is(head->fields[i].name, "connection"))
            continue;
        close |= http_list_has(head->fields[i].value, "close");
        keep |= http_list_has(head->fields[i].value, "keep-alive");
    }
    head->keep_alive = keep && !close;
    if (expect == NULL)
        return RON_ERR_OK;
    if (http_head_count(head, "expect") > 1 || !http_text_is(expect->value, "100-continue"))
        return ron_fail(reterr, RON_ERR_MALFORMED, "Expect: only 100-continue");
    /* An HTTP/1.0 client cannot have meant it: RFC 9110 §10.1.1. */
    head->expect_continue = head->minor == 1;
    return RON_ERR_OK;
}

enum ron_err http_line_take(struct ron_slice *rest, struct ron_slice *ret_line,
                            struct ron_errinfo *reterr)
{
    const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
    size_t size;

    if (end == NULL || end == rest->data || end[-1] != '\r')
        return ron_fail(reterr, RON_ERR_MALFORMED, "a line does not end in CR LF");
    size = (size_t)(end - rest->data) - 1;
    *ret_line = ron_slice_of(rest->data, size);
    *rest = skip(*rest, size + 2);
    return RON_ERR_OK;
}

/* A field as most are: a short name, a value that is visible, CR LF. False: nothing is said, its
 * line is to be taken and judged. */
static RON_HOT_INLINE bool take_plain_field(struct ron_slice *rest, struct http_field *ret_field)
{
    const size_t name_size = http_scan_name(*rest);
    struct ron_slice value;
    size_t size;

    if (name_size == 0 || name_size == HTTP_SCAN_STEP || rest->data[name_size] != ':')
        return false;
    value = skip(*rest, name_size + 1);
    size = http_scan_visible(value);
    if (value.size - size < 2 || value.data[size] != '\r' || value.data[size + 1] != '\n')
        return false;
    ret_field->name = ron_slice_of(rest->data, name_size);
    ret_field->value = trim(ron_slice_of(value.data, size));
    *rest = skip(value, size + 2);
    return true;
}

enum ron_err http_fields_parse(struct ron_slice rest, struct http_field fields[HTTP_HEADERS_MAX],
                               size_t *count, struct ron_errinfo *reterr)
{
    for (;;) {
        struct ron_slice line;
        enum ron_err err;

        if (*count < HTTP_HEADERS_MAX && take_plain_field(&rest, &fields[*count])) {
            (*count)++;
            continue;
        }
        err = http_line_take(&rest, &line, reterr);
        if (err != RON_ERR_OK)
            return err;
        if (line.size == 0)
            break;
        if (*count == HTTP_HEADERS_MAX)
            return ron_fail(reterr, RON_ERR_HEADERS_TOO_LARGE, "more than %d header fields",
                            HTTP_HEADERS_MAX);
        err = http_field_parse(line, &fields[*count], reterr);
        if (err != RON_ERR_OK)
            return ron_wrap(reterr, err, "header field %zu", *count + 1);
        (*count)++;
    }
    if (rest.size != 0)
        return ron_fail(reterr, RON_ERR_MALFORMED, "bytes behind the empty line");
    return RON_ERR_OK;
}

enum ron_err http_head_parse(struct ron_slice bytes, struct http_head *ret_head,
                             struct ron_errinfo *reterr)
{
    struct http_head *head = ret_head; /* large: filled in place, the caller drops it on failure */
    struct ron_slice line;
    enum ron_err err;

    memset(head, 0, offsetof(struct http_head, fields));
    if (bytes.size >= 2 && bytes.data[0] == '\r' && bytes.data[1] == '\n')
        bytes = skip(bytes, 2);
    err = http_line_take(&bytes, &line, reterr);
    if (err == RON_ERR_OK)
        err = parse_request_line(line, head, reterr);
    if (err == RON_ERR_OK)
        err = http_fields_parse(bytes, head->fields, &head->fields_count, reterr);
    if (err == RON_ERR_OK)
        err = read_host(head, reterr);
    if (err == RON_ERR_OK)
        err = read_framing(head, reterr);
    if (err == RON_ERR_OK)
        err = read_connection(head, reterr);
    return err;
}
