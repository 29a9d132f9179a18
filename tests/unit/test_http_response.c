/*
 * test_http_response.c - the grammar of response heads.
 *
 * Goal: every reply has exactly one end, or is refused. Method: tables of heads with what must come
 * out, and each good head with every byte replaced by those that must never pass.
 */
#include "support.h"

#include "io/http_response.h"

static enum ron_err parse(const char *text, enum http_method method, struct http_response *ret,
                          struct ron_errinfo *reterr)
{
    return http_response_parse(ron_slice_text(text), method, ret, reterr);
}

struct good_case {
    const char *head;
    enum http_method method;
    int status;
    enum http_framing framing;
    uint64_t length;
    bool keep_alive;
};
static const struct good_case good_cases[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 200, HTTP_LENGTH, 5, true},
    {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", HTTP_GET, 200, HTTP_LENGTH, 0, true},
    {"HTTP/1.1 404 Not Found\r\ncontent-length:7\r\n\r\n", HTTP_POST, 404, HTTP_LENGTH, 7, true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", HTTP_GET, 200, HTTP_CHUNKED, 0, true},
    {"HTTP/1.1 200 OK\r\n\r\n", HTTP_GET, 200, HTTP_UNTIL_CLOSE, 0, false},
    {"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", HTTP_GET, 200, HTTP_UNTIL_CLOSE, 0,
     false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", HTTP_HEAD, 200, HTTP_NO_BODY, 9, true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_HEAD, 200, HTTP_NO_BODY, 0,
     true},
    {"HTTP/1.1 204 No Content\r\n\r\n", HTTP_GET, 204, HTTP_NO_BODY, 0, true},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", HTTP_GET, 204, HTTP_NO_BODY, 0, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", HTTP_GET, 304, HTTP_NO_BODY, 3,
     true},
    {"HTTP/1.1 100 Continue\r\n\r\n", HTTP_POST, 100, HTTP_NO_BODY, 0, true},
    {"HTTP/1.1 503 x\r\nContent-Length: 1\r\nConnection: a, Close\r\n\r\n", HTTP_GET, 503,
     HTTP_LENGTH, 1, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", HTTP_GET, 200, HTTP_LENGTH, 1, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n", HTTP_GET, 200,
     HTTP_LENGTH, 1, true},
};

static void good_heads_say_where_the_body_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(good_cases); i++) {
        const struct good_case *expected = &good_cases[i];
        struct http_response response;
        struct ron_errinfo info = {0};

        if (parse(expected->head, expected->method, &response, &info) != RON_ERR_OK)
            fail_msg("case %zu: %s", i, info.message);
        if (response.status != expected->status || response.framing != expected->framing ||
            response.content_length != expected->length ||
            response.keep_alive != expected->keep_alive)
            fail_msg("case %zu: status %d framing %d length %d keep %d", i, response.status,
                     (int)response.framing, (int)response.content_length, response.keep_alive);
    }
}

static const struct bad_case {
    const char *head, *message;
} bad_cases[] = {
    {"HTTP/1.1 200\r\n\r\n", "status line"},
    {"HTTP/1.1  200 OK\r\n\r\n", "three digits"},
    {"HTTP/2.0 200 OK\r\n\r\n", "status line"},
    {"HTTP/1.2 200 OK\r\n\r\n", "status line"},
    {"http/1.1 200 OK\r\n\r\n", "status line"},
    {"HTTP/1.1 20 OK x\r\n\r\n", "three digits"},
    {"HTTP/1.1 099 OK\r\n\r\n", "status 99"},
    {"HTTP/1.1 600 OK\r\n\r\n", "status 600"},
    {"HTTP/1.1 2000 OK\r\n\r\n", "no space"},
    {"HTTP/1.1 200 O\x01K\r\n\r\n", "0x01"},
    {"HTTP/1.1 200 O\xc3\xa4\r\n\r\n", "0xc3"},
    {"HTTP/1.1 101 Switching\r\n\r\n", "nobody asked"},
    {"\r\nHTTP/1.1 200 OK\r\n\r\n", "status line"},
    {"HTTP/1.1 200 OK\r\nA\r\n\r\n", "field 1"},
    {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "field 1"},
    {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "field 2"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "more than one"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "not a decimal"},
    {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "not a decimal"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 01\r\n\r\n", "not a decimal"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "not a decimal"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "beside"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "only chunked"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "once"},
    {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
    {"HTTP/1.1 204 x\r\nContent-Length: 1\r\n\r\n", "with a body"},
    {"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n", "with a body"},
    {"HTTP/1.1 100 x\r\nContent-Length: 1\r\n\r\n", "with a body"},
    {"HTTP/1.1 200 OK\r\nA: b\r\n", "CR LF"},
    {"HTTP/1.1 200 OK\n\r\n", "CR LF"},
    {"HTTP/1.1 200 OK\r\n\r\nx", "behind the empty line"},
};

static void heads_with_two_readings_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(bad_cases); i++) {
        struct http_response response;
        struct ron_errinfo info = {0};
        enum ron_err err = parse(bad_cases[i].head, HTTP_GET, &response, &info);

        if (err != RON_ERR_MALFORMED || strstr(info.message, bad_cases[i].message) == NULL)
            fail_msg("case %zu: %s, \"%s\" expected \"%s\"", i, ron_err_symbol(err), info.message,
                     bad_cases[i].message);
    }
}

static void fields_are_found_and_bounded(void **state)
{
    struct http_response response;
    struct ron_errinfo info = {0};
    struct ron_buf buf;

    (void)state;
    assert_ok(parse("HTTP/1.1 429 x\r\nRetry-After:  7 \r\nretry-after: 8\r\n\r\n", HTTP_GET,
                    &response, NULL));
    assert_true(
        ron_slice_equal(http_response_find(&response, "retry-after")->value, RON_SLICE("7")));
    assert_null(http_response_find(&response, "retry"));
    assert_true(ron_slice_equal(response.reason, RON_SLICE("x")));

    ron_buf_init(&buf, HTTP_HEAD_SIZE_MAX);
    ron_buf_put_text(&buf, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i <= HTTP_HEADERS_MAX; i++)
        ron_buf_put_text(&buf, "A: b\r\n");
    ron_buf_put_text(&buf, "\r\n");
    support_assert_error(http_response_parse(ron_buf_slice(&buf), HTTP_GET, &response, &info),
                         &info, RON_ERR_HEADERS_TOO_LARGE, "64");
    ron_buf_fini(&buf);
}

/* Control bytes and line ends pass nowhere. */
static void no_byte_of_a_head_may_be_a_control(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\n";
    static const char never[] = {'\0', '\r', '\n', '\x7f', '\x1f', (char)0x80};

    (void)state;
    for (size_t at = 0; at < sizeof(head) - 1; at++) {
        for (size_t i = 0; i < sizeof(never); i++) {
            char text[sizeof(head)];
            struct http_response response;

            memcpy(text, head, sizeof(head));
            if (text[at] == never[i])
                continue;
            text[at] = never[i];
            if (http_response_parse(ron_slice_of(text, sizeof(text) - 1), HTTP_GET, &response,
                                    NULL) == RON_ERR_OK)
                fail_msg("byte 0x%02x at %zu is accepted", (unsigned char)never[i], at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_heads_say_where_the_body_ends),
        cmocka_unit_test(heads_with_two_readings_are_refused),
        cmocka_unit_test(fields_are_found_and_bounded),
        cmocka_unit_test(no_byte_of_a_head_may_be_a_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
