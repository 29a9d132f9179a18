/*
 * ledger_load_http.c - JSON over HTTP/1.1: one epoll loop, one request a connection in flight.
 *
 * A body is a template whose digits are drawn again for each request, so that it costs the
 * generator little. So is the path of a read: an account's digits in it are drawn again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/mem.h"
#include "harness.h"
#include "io/address.h"
#include "ledger_load.h"
#include "rt/lock.h"

#define ENTRY_FORMAT                                                                         \
    "{\"id\":\"%032d\",\"kind\":\"Transfer\",\"from\":\"acct:%019d\",\"to\":\"acct:%019d\"," \
    "\"asset\":\"roc\",\"amount\":\"1\"}"

enum {
    CONNECTIONS_MAX = 1024,
    EVENTS_MAX = 64,
    HEAD_SIZE_MAX = 4096,
    ENTRY_SIZE_MAX = 256,
    IN_SIZE = 4 << 20, /* a batch's proofs */
    ID_AT = 7,
    FROM_AT = 67, /* of the names */
    TO_AT = 99,
};

struct conn {
    int fd;
    uint8_t *out;
    size_t head_size, out_size, sent;
    size_t name_at; /* of a read: the account in its path; 0: none */
    uint8_t *in;
    size_t in_size, in_max;
    uint64_t asked_ns;
    bool busy;
};

static struct load_draw draw;
static size_t entry_size;
static uint64_t stop_ns;
static uint32_t busy_count;
static int epoll_fd;

static void make_read(struct conn *conn, const struct load_options *options)
{
    const uint8_t *name;
    int size;

    conn->out = ron_mem_alloc(HEAD_SIZE_MAX);
    conn->in_max = 16384;
    conn->in = ron_mem_alloc(conn->in_max);
    RON_ASSERT(conn->out != NULL && conn->in != NULL);
    size = snprintf((char *)conn->out, HEAD_SIZE_MAX,
                    "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
                    options->path, options->token_text);
    if (size <= 0 || size >= HEAD_SIZE_MAX)
        load_die("the token is too long");
    conn->out_size = conn->head_size = (size_t)size;
    name = memmem(conn->out, strlen(options->path), "acct:", 5);
    conn->name_at = name == NULL ? 0 : (size_t)(name - conn->out);
}

static void make_request(struct conn *conn, const struct load_options *options)
{
    char entry[ENTRY_SIZE_MAX];
    const size_t room = HEAD_SIZE_MAX + (size_t)options->batch * (ENTRY_SIZE_MAX + 1);
    uint8_t *at;
    size_t body_size;
    int size;

    entry_size = (size_t)snprintf(entry, sizeof(entry), ENTRY_FORMAT, 0, 0, 0);
    body_size = options->batch * (entry_size + 1) - 1 + 12;
    conn->out = ron_mem_alloc(room);
    RON_ASSERT(conn->out != NULL);
    size = snprintf((char *)conn->out, HEAD_SIZE_MAX,
                    "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Authorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n{\"batch\":[",
                    options->path, options->token_text, body_size);
    if (size <= 0 || size >= HEAD_SIZE_MAX)
        load_die("the token is too long");
    conn->head_size = (size_t)size;
    at = conn->out + size;
    for (uint32_t i = 0; i < options->batch; i++) {
        if (i > 0)
            *at++ = ',';
        memcpy(at, entry, entry_size);
        at += entry_size;
    }
    *at++ = ']';
    *at++ = '}';
    conn->out_size = (size_t)(at - conn->out);
    conn->in_max = options->batch == 1 ? 16384 : IN_SIZE;
    conn->in = ron_mem_alloc(conn->in_max);
    RON_ASSERT(conn->in != NULL);
}

/* Nineteen digits would be more than any number here needs. */
static void put_digits(uint8_t *name, uint32_t value)
{
    for (int i = LOAD_NAME_SIZE - 1; i >= LOAD_NAME_SIZE - 10; i--, value /= 10)
        name[i] = (uint8_t)('0' + value % 10);
}

static void draw_body(struct conn *conn, const struct load_options *options)
{
    uint8_t *at = conn->out + conn->head_size;

    if (options->reads) {
        if (conn->name_at > 0)
            put_digits(conn->out + conn->name_at,
                       (uint32_t)(load_draw_next(&draw) % options->accounts_count));
        return;
    }
    for (uint32_t i = 0; i < options->batch; i++, at += entry_size + 1) {
        const uint64_t drawn[2] = {load_draw_next(&draw), load_draw_next(&draw)};
        char digits[33];
        uint32_t from, to;

        (void)ron_hex_encode(ron_slice_of((const uint8_t *)drawn, sizeof(drawn)), digits,
                             sizeof(digits));
        memcpy(at + ID_AT, digits, 32);
        load_draw_pair(&draw, options, drawn[0] >> 11, &from, &to);
        put_digits(at + FROM_AT, from);
        put_digits(at + TO_AT, to);
    }
}

static void send_on(struct conn *conn)
{
    while (conn->sent < conn->out_size) {
        const ssize_t size = send(conn->fd, conn->out + conn->sent, conn->out_size - conn->sent,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size < 0)
            load_die("a connection was lost while sending");
        conn->sent += (size_t)size;
    }
}

static void ask(struct conn *conn, const struct load_options *options)
{
    draw_body(conn, options);
    conn->sent = 0;
    conn->in_size = 0;
    conn->busy = true;
    conn->asked_ns = bench_now_ns();
    send_on(conn);
}

/* Is the reply whole? One that is no success ends the run: nothing here may be refused. */
static bool is_whole(const struct conn *conn)
{
    static const char field[] = "Content-Length: ";
    const uint8_t *end = memmem(conn->in, conn->in_size, "\r\n\r\n", 4);
    const uint8_t *length;
    size_t head_size;

    if (end == NULL)
        return false;
    head_size = (size_t)(end - conn->in) + 4;
    length = memmem(conn->in, head_size, field, sizeof(field) - 1);
    if (memcmp(conn->in, "HTTP/1.1 200", 12) != 0 || length == NULL) {
        (void)fprintf(stderr, "ledger_load: %.*s\n", (int)conn->in_size, (const char *)conn->in);
        load_die("refused");
    }
    return conn->in_size == head_size + strtoul((const char *)length + sizeof(field) - 1, NULL, 10);
}

static void receive(struct conn *conn, const struct load_options *options)
{
    for (;;) {
        const ssize_t size = recv(conn->fd, conn->in + conn->in_size, conn->in_max - conn->in_size,
                                  MSG_DONTWAIT);
        uint64_t now_ns;

        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size <= 0)
            load_die("a connection was lost, or a reply was too long");
        conn->in_size += (size_t)size;
        if (!is_whole(conn))
            continue;
        now_ns = bench_now_ns();
        load_note(conn->asked_ns, now_ns, options->batch);
        conn->busy = false;
        if (now_ns < stop_ns)
            ask(conn, options);
        else
            busy_count--;
        return; /* nothing else was asked for */
    }
}

static void open_conn(struct conn *conn, uint32_t index, const struct load_options *options)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = index};
    struct ron_errinfo info = {0};
    struct io_address address;

    if (strncmp(options->url, "http://", 7) != 0)
        load_die("the url is not http://ADDRESS:PORT");
    load_must(io_address_parse(options->url + 7, &address, &info), &info);
    conn->fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 ||
        connect(conn->fd, (const struct sockaddr *)&address.storage, address.size) != 0 ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        load_die("no connection");
}

void load_http_run(const struct load_options *options)
{
    static struct conn conns[CONNECTIONS_MAX];
    struct epoll_event events[EVENTS_MAX];

    if (options->connections_count > CONNECTIONS_MAX)
        load_die("too many connections");
    rt_assert_no_lock_held();
    load_draw_init(&draw);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    RON_ASSERT(epoll_fd >= 0);
    for (uint32_t i = 0; i < options->connections_count; i++) {
        if (options->reads)
            make_read(&conns[i], options);
        else
            make_request(&conns[i], options);
        open_conn(&conns[i], i, options);
    }
    load_begin();
    stop_ns = bench_now_ns() + options->duration_ns;
    busy_count = options->connections_count;
    for (uint32_t i = 0; i < options->connections_count; i++)
        ask(&conns[i], options);
    while (busy_count > 0) {
        const int count = epoll_wait(epoll_fd, events, EVENTS_MAX, 1000);

        for (int i = 0; i < count; i++) {
            struct conn *conn = &conns[events[i].data.u32];

            if ((events[i].events & EPOLLOUT) != 0)
                send_on(conn);
            if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && conn->busy)
                receive(conn, options);
        }
    }
    for (uint32_t i = 0; i < options->connections_count; i++) {
        (void)close(conns[i].fd);
        conns[i].out = ron_mem_free(conns[i].out);
        conns[i].in = ron_mem_free(conns[i].in);
    }
    (void)close(epoll_fd);
}
