/*
 * test_http.c - the grammar of HTTP requests. Method: every line of tests/http/cases.txt, in one
 * piece and byte by byte, judged by grammar alone; then what a good head says, field by field.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/http_chunk.h"
#include "io/http_head.h"

enum { REQUEST_MAX = 40000, LINE_MAX_SIZE = 8192 };

enum outcome { GOOD, BAD, LARGE, CLOSED, UNFINISHED };

/* ---- Reading the cases ---- */

static unsigned hex_byte(const char *text)
{
    unsigned value = 0;

    for (int i = 0; i < 2; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = strchr(digits, text[i]);

        assert_non_null(digit);
        value = value << 4 | (unsigned)(digit - digits);
    }
    return value;
}

static size_t unescape(const char *text, uint8_t *bytes)
{
    size_t size = 0;

    while (*text != '\0' && *text != '\n') {
        size_t times = 1;
        bool repeated = false;
        uint8_t byte;

        if (text[0] == '\\' && text[1] == '{') {
            repeated = true;
            text += 2;
        }
        if (text[0] != '\\') {
            byte = (uint8_t)*text++;
        } else if (text[1] == 'x') {
            byte = (uint8_t)hex_byte(text + 2);
            text += 4;
        } else {
            byte = text[1] == 'r'   ? '\r'
                   : text[1] == 'n' ? '\n'
                   : text[1] == 't' ? '\t'
                                    : (uint8_t)text[1];
            text += 2;
        }
        if (repeated) {
            assert_true(*text == '*');
            for (times = 0, text++; *text != '}'; text++)
                times = times * 10 + (size_t)(*text - '0');
            text++;
        }
        assert_true(size + times <= REQUEST_MAX);
        memset(bytes + size, byte, times);
        size += times;
    }
    return size;
}

/* ---- Judging a request by grammar alone ---- */

static enum outcome judge_head(struct ron_slice bytes, size_t step, struct http_head *head,
                               size_t *ret_size)
{
    size_t scanned = 0;

    for (size_t size = 0; size <= bytes.size; size += step) {
        struct ron_slice seen = ron_slice_of(bytes.data, size);

        switch (http_head_scan(seen, &scanned, ret_size)) {
        case HTTP_SCAN_MORE:
            break;
        case HTTP_SCAN_BARE_LF:
            return BAD;
        case HTTP_SCAN_TOO_LARGE:
            return LARGE;
        case HTTP_SCAN_NOT_HTTP:
        case HTTP_SCAN_NO_LINE:
            return CLOSED;
        case HTTP_SCAN_HEAD:
            switch ((unsigned)http_head_parse(ron_slice_of(bytes.data, *ret_size), head, NULL)) {
            case RON_ERR_OK:
                return GOOD;
            case RON_ERR_HEADERS_TOO_LARGE:
                return LARGE;
            default:
                return BAD;
            }
        }
    }
    return UNFINISHED;
}

static enum outcome judge_chunks(struct ron_slice bytes, size_t step)
{
    struct http_chunks chunks;
    size_t at = 0;

    http_chunks_init(&chunks);
    while (chunks.state != HTTP_CHUNK_DONE) {
        struct ron_slice data;
        size_t size = bytes.size - at < step ? bytes.size - at : step;
        size_t used;

        if (size == 0)
            return UNFINISHED;
        if (http_chunks_read(&chunks, ron_slice_of(bytes.data + at, size), &used, &data, NULL) !=
            RON_ERR_OK)
            return BAD;
        assert_true(used <= size && data.size <= used);
        at += used;
    }
    assert_int_equal(at, bytes.size);
    return GOOD;
}

static enum outcome judge(struct ron_slice bytes, size_t step)
{
    static struct http_head head;
    size_t size = 0;
    enum outcome outcome = judge_head(bytes, step, &head, &size);

    if (outcome != GOOD || !head.chunked)
        return outcome;
    return judge_chunks(ron_slice_of(bytes.data + size, bytes.size - size), step);
}

static enum outcome expected_of(int status)
{
    switch (status) {
    case 400:
        return BAD;
    case 431:
        return LARGE;
    case 0:
        return CLOSED;
    default:
        return GOOD;
    }
}

static void every_case_is_judged_alike_in_any_pieces(void **state)
{
    static char line[LINE_MAX_SIZE];
    static uint8_t bytes[REQUEST_MAX];
    FILE *file = fopen(RON_HTTP_CASES, "r");
    size_t count = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        static const size_t steps[] = {REQUEST_MAX, 1, 7};
        char *request;
        int status = 0;

        if (line[0] == '#')
            continue;
        assert_non_null(strchr(line, '\n'));
        for (const char *at = line; *at != '|'; at++)
            if (*at != ' ')
                status = status * 10 + (*at - '0');
        request = strchr(strchr(line, '|') + 1, '|') + 2;
        for (size_t i = 0; i < RON_ARRAY_COUNT(steps); i++) {
            struct ron_slice all = ron_slice_of(bytes, unescape(request, bytes));
            size_t step = steps[i] == REQUEST_MAX ? all.size : steps[i];
            enum outcome outcome;

            /* A step that does not divide the size never shows the last bytes: use what does. */
            while (all.size % step != 0)
                step--;
            outcome = judge(all, step);
            if (outcome != expected_of(status))
                fail_msg("outcome %d in steps of %zu: %s", outcome, step, line);
        }
        count++;
    }
    assert_int_equal(fclose(file), 0);
    assert_true(count >= 130);
}

/* ---- What a good head says ---- */

static void parse(const char *text, struct http_head *head)
{
    struct ron_errinfo info = {0};
    enum ron_err err = http_head_parse(ron_slice_text(text), head, &info);

    if (err != RON_ERR_OK)
        fail_msg("%s", info.message);
}

static bool is(struct ron_slice slice, const char *text)
{
    return ron_slice_equal(slice, ron_slice_text(text));
}

static void a_head_is_taken_apart(void **state)
{
    struct http_head head;

    (void)state;
    parse("PUT http://h:1/a/b?c=d?e HTTP/1.1\r\nHost: other\r\nX-A:  1 \r\nx-a: 2\r\n"
          "Content-Length: 18446744073709551615\r\nExpect: 100-continue\r\n\r\n",
          &head);
    assert_int_equal(head.method, HTTP_PUT);
    assert_true(is(head.path, "/a/b") && is(head.query, "c=d?e") && is(head.host, "h:1"));
    assert_int_equal(head.minor, 1);
    assert_true(head.has_length && head.content_length == UINT64_MAX);
    assert_true(head.expect_continue && head.keep_alive && !head.chunked);
    assert_int_equal(head.fields_count, 5);
    assert_int_equal(http_head_count(&head, "x-a"), 2);
    assert_true(is(http_head_find(&head, "x-a")->value, "1"));
    assert_null(http_head_find(&head, "x"));
    assert_string_equal(http_method_name(head.method), "PUT");
}

static void connections_stay_open_as_the_version_says(void **state)
{
    static const struct {
        const char *text;
        bool keep_alive;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x,close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
    };
    struct http_head head;

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        parse(cases[i].text, &head);
        assert_int_equal(head.keep_alive, cases[i].keep_alive);
        assert_false(head.expect_continue);
    }
    /* A client of 1.0 cannot wait for 100. */
    parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", &head);
    assert_false(head.expect_continue);
}

static void messages_say_where_and_never_the_value(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"GET /a\x01 HTTP/1.1\r\n\r\n", "request line: byte 0x01 in the target at 2"},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: secret\x02\r\n\r\n",
         "header field 2: byte 0x02 in the value at 7"},
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
         "header field 2: a line that continues the one before it"},
        {"GET / HTTP/1.1\r\n\r\n", "Host: missing"},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\nmore", "bytes behind the empty line"},
    };

    (void)state;
    for (size_t i = 0; i < RON_ARRAY_COUNT(cases); i++) {
        struct ron_errinfo info = {0};
        struct http_head head;

        support_assert_error(http_head_parse(ron_slice_text(cases[i].text), &head, &info), &info,
                             RON_ERR_MALFORMED, cases[i].message);
        assert_null(strstr(info.message, "secret"));
    }
}

/* Sixteen at a time, or one by one, or both: each byte counts in each place of each length. */
static void every_byte_of_a_value_is_looked_at(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 35; size++) {
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bool good = byte == '\t' || (byte >= ' ' && byte <= '~');
                struct http_field field;
                char line[48] = "a:";

                memset(line + 2, '~', size);
                line[2 + at] = (char)byte;
                assert_int_equal(http_field_parse(ron_slice_of(line, 2 + size), &field, NULL),
                                 good ? RON_ERR_OK : RON_ERR_MALFORMED);
            }
        }
    }
}

enum part { PART_TARGET, PART_NAME, PART_VALUE };

/* A head of two fields with `size` bytes of 'g' in a part of it, but for one. What it must say. */
static bool head_is_good(enum part part, size_t size, size_t at, unsigned byte)
{
    static const char *const tokens = "!#$%&'*+-.^_`|~", *const marks = "!$&'()*+,-./:;=?@_~";
    const bool word = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                      (byte >= 'a' && byte <= 'z');
    char run[64] = {0}, text[256];
    struct http_head head;
    size_t text_size;
    enum ron_err err;

    memset(run, 'g', size); /* no hex digit: an escape is a bad one */
    run[at] = '\n';         /* a place for any byte, NUL too */
    (void)snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\n%s:%s \r\nHost: long.example\r\n\r\n",
                   part == PART_TARGET ? run : "", part == PART_NAME ? run : "x-name",
                   part == PART_VALUE ? run : "v");
    text_size = strlen(text);
    *(strstr(text, run) + at) = (char)byte;
    err = http_head_parse(ron_slice_of(text, text_size), &head, NULL);
    if (err == RON_ERR_OK) {
        assert_int_equal(head.fields_count, 2);
        assert_int_equal(head.fields[0].value.size, part == PART_VALUE ? size : 1);
        assert_int_equal(head.fields[0].name.size, part == PART_NAME ? size : 6);
    }
    assert_int_equal(err == RON_ERR_OK,
                     part == PART_TARGET ? word || (byte != 0 && strchr(marks, (int)byte) != NULL)
                     : part == PART_NAME ? word || (byte != 0 && strchr(tokens, (int)byte) != NULL)
                                         : byte == '\t' || (byte >= ' ' && byte <= '~'));
    return err == RON_ERR_OK;
}

/* Nothing that a table refuses gets past those who look at sixteen bytes at once. */
static void every_byte_of_a_head_is_looked_at(void **state)
{
    size_t good = 0;

    (void)state;
    for (size_t size = 3; size <= 35; size++) {
        for (size_t at = 1; at + 1 < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' || byte == ':')
                    continue; /* they end what they stand in */
                good += head_is_good(PART_TARGET, size, at, byte);
                good += head_is_good(PART_NAME, size, at, byte);
                good += head_is_good(PART_VALUE, size, at, byte);
            }
        }
    }
    assert_true(good > 0);
}

static void texts_are_the_same_but_for_the_case_of_letters(void **state)
{
    static const char text[] = "x-long/name:of-0123456789+=;";

    (void)state;
    for (size_t size = 1; size < sizeof(text); size++) {
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bool letter = text[at] >= 'a' && text[at] <= 'z';
                char name[sizeof(text)] = {0};
                char sent[sizeof(text)];

                memcpy(name, text, size);
                memcpy(sent, name, sizeof(sent));
                sent[at] = (char)byte;
                assert_int_equal(http_text_is(ron_slice_of(sent, size), name),
                                 byte == (unsigned)text[at] ||
                                     (letter && byte == (unsigned)text[at] - 'a' + 'A'));
                assert_false(http_text_is(ron_slice_of(name, size - 1), name));
            }
        }
    }
}

static void chunks_give_the_body_back(void **state)
{
    static const char text[] =
        "5;x=y\r\nhello\r\n1\r\n,\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\nNEXT";

    (void)state;
    for (size_t step = 1; step < sizeof(text); step++) {
        struct http_chunks chunks;
        char body[32] = "";
        size_t body_size = 0;
        size_t at = 0;

        http_chunks_init(&chunks);
        while (chunks.state != HTTP_CHUNK_DONE) {
            size_t size = sizeof(text) - 1 - at < step ? sizeof(text) - 1 - at : step;
            struct ron_slice data;
            size_t used;

            assert_ok(http_chunks_read(&chunks, ron_slice_of(text + at, size), &used, &data, NULL));
            memcpy(body + body_size, data.data, data.size);
            body_size += data.size;
            at += used;
        }
        assert_string_equal(body, "hello,0123456789");
        assert_int_equal(chunks.data_size, 16);
        assert_string_equal(text + at, "NEXT");
    }
}

/* A body of one-byte chunks with long extensions costs its reader more than it brings. */
static void framing_is_bounded_by_what_it_frames(void **state)
{
    struct http_chunks chunks;
    char piece[300];
    enum ron_err err = RON_ERR_OK;
    int count = 0;

    (void)state;
    memset(piece, 'x', sizeof(piece));
    memcpy(piece, "1;", 2);
    memcpy(piece + 250, "\r\n.\r\n", 6);
    http_chunks_init(&chunks);
    for (; err == RON_ERR_OK && count < 1000; count++) {
        for (size_t at = 0; at < 255 && err == RON_ERR_OK;) {
            struct ron_slice data;
            size_t used = 0;

            err = http_chunks_read(&chunks, ron_slice_of(piece + at, 255 - at), &used, &data, NULL);
            at += used;
        }
    }
    assert_int_equal(err, RON_ERR_MALFORMED);
    assert_true(count > 16384 / 255 && count < 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_is_judged_alike_in_any_pieces),
        cmocka_unit_test(a_head_is_taken_apart),
        cmocka_unit_test(connections_stay_open_as_the_version_says),
        cmocka_unit_test(messages_say_where_and_never_the_value),
        cmocka_unit_test(every_byte_of_a_value_is_looked_at),
        cmocka_unit_test(every_byte_of_a_head_is_looked_at),
        cmocka_unit_test(texts_are_the_same_but_for_the_case_of_letters),
        cmocka_unit_test(chunks_give_the_body_back),
        cmocka_unit_test(framing_is_bounded_by_what_it_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
