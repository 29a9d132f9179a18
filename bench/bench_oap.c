/*
 * bench_oap.c - OAP/1 echo through the server, beside a bare epoll loop that sends the same bytes
 * back without looking at them: what framing, admission, calls and replies cost.
 *
 * Both run on one thread each, over loopback TCP; a client on this thread keeps a fixed number of
 * frames in flight on each connection. An item is one frame there and back, a round a window on
 * each connection. Both servers live for the whole run and sleep while the other is measured.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "harness.h"
#include "io/oap_server.h"
#include "io/server.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum { CONNECTIONS_MAX = 4, SMALL_BODY = 128, LARGE_BODY = 768 * 1024, BARE_BUFFER = 1 << 20 };

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_oap: %s\n", info->message);
    exit(1);
}

/* ---- The bare loop: what is read is sent, nothing else ---- */

struct bare_conn {
    int fd;
    size_t start, end;
    uint8_t bytes[BARE_BUFFER];
};

static void bare_serve(struct bare_conn *conn)
{
    for (;;) {
        ssize_t size;

        if (conn->start < conn->end) {
            size = send(conn->fd, conn->bytes + conn->start, conn->end - conn->start,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
            if (size < 0)
                return;
            conn->start += (size_t)size;
            continue;
        }
        size = recv(conn->fd, conn->bytes, sizeof(conn->bytes), MSG_DONTWAIT);
        if (size <= 0)
            return;
        conn->start = 0;
        conn->end = (size_t)size;
    }
}

static void *bare_main(void *argument)
{
    int listener = *(const int *)argument;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    RON_ASSERT(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) == 0);
    for (;;) { /* until the process ends */
        struct epoll_event events[16];
        int count = epoll_wait(epoll_fd, events, 16, -1);

        for (int i = 0; i < count; i++) {
            struct bare_conn *conn = events[i].data.ptr;
            int one = 1;

            if (conn != NULL) {
                bare_serve(conn);
                continue;
            }
            conn = ron_mem_alloc_array(1, sizeof(*conn));
            RON_ASSERT(conn != NULL);
            conn->fd = accept(listener, NULL, NULL);
            RON_ASSERT(conn->fd >= 0);
            (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = conn};
            RON_ASSERT(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) == 0);
        }
    }
    return NULL;
}

static uint16_t start_bare(void)
{
    static int listener;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    pthread_t thread;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RON_ASSERT(listener >= 0);
    RON_ASSERT(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0);
    RON_ASSERT(listen(listener, 16) == 0);
    RON_ASSERT(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    RON_ASSERT(pthread_create(&thread, NULL, bare_main, &listener) == 0);
    return ntohs(address.sin_port);
}

/* ---- The server ---- */

static void echo(void *context, struct io_request *request)
{
    (void)context;
    io_reply(request, &(struct io_reply){.status = OAP_STATUS_OK, .body = request->body});
}

static const struct io_oap_op ops[] = {
    {7, 1, {.role = "bench", .name = "echo", .summary = "", .body_max = 1 << 20, .handler = echo}},
};

static uint16_t start_server(void) RON_BLOCKS
{
    static struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct io_server_options options = {.listeners = &listener, .listeners_count = 1};
    struct rt_supervisor_options supervision = {.name = "bench", .owner = "bench", .tasks_max = 4};
    struct ron_errinfo info = {0};
    struct io_routes *routes;
    struct io_server *server;

    must(rt_supervisor_new(&supervision, &options.supervisor, &info), &info);
    must(io_routes_new(&routes, &info), &info);
    must(io_oap_service_new(&options.oap, &info), &info);
    must(io_oap_service_add(options.oap, ops, RON_ARRAY_COUNT(ops), NULL, &info), &info);
    options.routes = routes;
    must(io_server_start(&options, &server, &info), &info);
    return (uint16_t)atoi(strrchr(io_server_url(server, 0), ':') + 1);
}

/* ---- The client ---- */

struct client {
    int fds[CONNECTIONS_MAX];
    unsigned connections, window;
    size_t body_size, frame_size;
    uint64_t corr_id;
    uint8_t *frames; /* `window` of them, one after the other */
    uint8_t *replies;
};

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    RON_ASSERT(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void client_init(struct client *client, uint16_t port, unsigned connections, unsigned window,
                        size_t body_size)
{
    struct oap_head head = {.flags = OAP_REQ, .code = 1, .app_proto = 7};

    *client = (struct client){.connections = connections,
                              .window = window,
                              .body_size = body_size,
                              .frame_size = OAP_HEAD_SIZE + body_size};
    client->frames = ron_mem_alloc_array(window, client->frame_size);
    client->replies = ron_mem_alloc_array(window, client->frame_size);
    RON_ASSERT(client->frames != NULL && client->replies != NULL);
    head.size = (uint32_t)client->frame_size;
    for (unsigned i = 0; i < window; i++) {
        head.corr_id = i;
        oap_head_encode(&head, client->frames + i * client->frame_size);
    }
    for (unsigned i = 0; i < connections; i++)
        client->fds[i] = dial(port);
}

/* A window of frames over each connection, there and back: both directions move at once. */
static void exchange(const struct client *client, unsigned connections, size_t size)
{
    size_t sent[CONNECTIONS_MAX] = {0}, got[CONNECTIONS_MAX] = {0};
    unsigned done = 0;

    while (done < connections) {
        struct pollfd polls[CONNECTIONS_MAX];

        for (unsigned i = 0; i < connections; i++) {
            ssize_t moved = sent[i] == size ? 0
                                            : send(client->fds[i], client->frames + sent[i],
                                                   size - sent[i], MSG_DONTWAIT | MSG_NOSIGNAL);

            RON_ASSERT(moved >= 0 || errno == EAGAIN);
            sent[i] += moved > 0 ? (size_t)moved : 0;
            polls[i] = (struct pollfd){.fd = got[i] == size ? -1 : client->fds[i],
                                       .events = (short)(POLLIN | (sent[i] < size ? POLLOUT : 0))};
        }
        RON_ASSERT(poll(polls, connections, -1) > 0);
        for (unsigned i = 0; i < connections; i++) {
            ssize_t moved;

            if ((polls[i].revents & POLLIN) == 0)
                continue;
            moved = recv(client->fds[i], client->replies, size - got[i], MSG_DONTWAIT);
            RON_ASSERT(moved > 0); /* the peer never hangs up */
            got[i] += (size_t)moved;
            done += got[i] == size;
        }
    }
}

static void run(void *context, uint64_t rounds)
{
    struct client *client = context;

    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned j = 0; j < client->window; j++)
            ron_store_be64(client->frames + j * client->frame_size + OAP_HEAD_SIZE - 8,
                           ++client->corr_id);
        exchange(client, client->connections, client->window * client->frame_size);
    }
}

static void compare(const struct bench_options *options, const char *title, uint16_t oap_port,
                    uint16_t bare_port, unsigned connections, unsigned window, size_t body_size)
{
    uint64_t items = (uint64_t)connections * window;
    struct client bare, oap;
    struct bench_contestant contestants[] = {{"bare epoll echo", run, &bare, items},
                                             {"OAP/1 server", run, &oap, items}};
    struct bench_table table = {.title = title,
                                .rival = "bare epoll echo",
                                .item_size = body_size >= 4096 ? body_size : 0,
                                .contestants = contestants,
                                .contestants_count = RON_ARRAY_COUNT(contestants)};

    client_init(&bare, bare_port, connections, window, body_size);
    client_init(&oap, oap_port, connections, window, body_size);
    bench_compare(options, &table);
    for (unsigned i = 0; i < connections; i++) {
        RON_MUST_ZERO(close(bare.fds[i]));
        RON_MUST_ZERO(close(oap.fds[i]));
    }
    (void)ron_mem_free(bare.frames);
    (void)ron_mem_free(bare.replies);
    (void)ron_mem_free(oap.frames);
    (void)ron_mem_free(oap.replies);
}

int main(int argc, char **argv) RON_BLOCKS
{
    struct bench_options options;
    uint16_t bare_port, oap_port;

    if (!bench_begin(argc, argv, &options))
        return 2;
    rt_init();
    bare_port = start_bare();
    oap_port = start_server();
    compare(&options, "frames of 128 bytes, 1 connection, 64 in flight", oap_port, bare_port, 1, 64,
            SMALL_BODY);
    compare(&options, "frames of 128 bytes, 4 connections, 64 in flight each", oap_port, bare_port,
            4, 64, SMALL_BODY);
    compare(&options, "frames of 128 bytes, 1 connection, 1 in flight", oap_port, bare_port, 1, 1,
            SMALL_BODY);
    compare(&options, "frames of 768 KiB, 1 connection, 4 in flight", oap_port, bare_port, 1, 4,
            LARGE_BODY);
    return 0;
}
