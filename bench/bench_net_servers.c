/*
 * bench_net_servers.c - see bench_net.h.
 */
#include "bench_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/server.h"
#include "io/tls.h"
#include "rt/queue.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_net: %s: %s\n", what, strerror(errno));
    exit(1);
}

const char *net_reply(void)
{
    static char text[NET_REPLY_SIZE + 1];

    if (text[0] == '\0')
        (void)snprintf(text, sizeof(text), "{\"value\":\"%0*d\"}", NET_REPLY_SIZE - 12, 7);
    RON_ASSERT(strlen(text) == NET_REPLY_SIZE);
    return text;
}

/* Fork; the child runs serve(url_fd, stop_fd, argument) and ends with the parent. */
static void start_child(struct net_server *server, void (*serve)(int, int, void *), void *argument)
{
    int url[2];
    int stop[2];
    ssize_t size;

    if (pipe2(url, O_CLOEXEC) != 0 || pipe2(stop, O_CLOEXEC) != 0)
        die("pipe");
    (void)fflush(NULL);
    server->pid = fork();
    if (server->pid < 0)
        die("fork");
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(url[0]);
        (void)close(stop[1]);
        serve(url[1], stop[0], argument);
        _exit(0);
    }
    (void)close(url[1]);
    (void)close(stop[0]);
    size = read(url[0], server->url, sizeof(server->url) - 1);
    if (size <= 0)
        die("the server did not start");
    server->url[size] = '\0';
    server->stop_fd = stop[1];
    (void)close(url[0]);
}

void net_stop(struct net_server *server)
{
    /* A byte, not the end: children started later hold this end of the pipe, too. */
    if (server->stop_fd < 0)
        (void)kill(server->pid, SIGTERM);
    else if (write(server->stop_fd, "", 1) < 0)
        die("stop");
    if (server->stop_fd >= 0)
        (void)close(server->stop_fd);
    (void)waitpid(server->pid, NULL, 0);
}

static void tell(int fd, const char *url)
{
    if (write(fd, url, strlen(url)) < 0)
        die("write");
    (void)close(fd);
}

static void wait_for_end(int fd)
{
    char byte;

    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        ;
}

/* ---- ron ---- */

static struct rt_queue *later;

static void hand_over(void *context, struct io_request *request)
{
    (void)context;
    io_request_send(request, later, 1);
}

static enum ron_err answer_later(struct rt_task *task, void *argument) RON_BLOCKS
{
    void *items[64];

    (void)argument;
    while (!rt_task_canceled(task)) {
        struct io_burst burst;
        size_t count = 0;

        if (rt_queue_recv_many(later, items, RON_ARRAY_COUNT(items), 0, RT_DEADLINE_NEVER, &count,
                               NULL) != RON_ERR_OK)
            break;
        io_burst_begin(&burst);
        for (size_t i = 0; i < count; i++)
            io_reply(items[i], &(struct io_reply){.status = 200,
                                                  .media = "application/json",
                                                  .body = ron_slice_text(net_reply())});
        io_burst_end(&burst);
    }
    return RON_ERR_CANCELED;
}

static void close_later(void *argument)
{
    (void)argument;
    rt_queue_close(later);
}

static void must(enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    (void)fprintf(stderr, "bench_net: ron: %s\n", info->message);
    _exit(1);
}

static void serve_ron(int url_fd, int stop_fd, void *argument) RON_BLOCKS
{
    static const struct io_route routes_table[] = {
        {HTTP_POST, "/later", .name = "later", .role = "bench", .summary = "",
         .replies = "application/json", .body_max = 65536, .media = "application/json",
         .flags = IO_ROUTE_WRITE, .handler = hand_over},
    };
    const struct io_tls_options *tls_options = argument;
    struct io_listener_options listener = {.address = "127.0.0.1:0"};
    struct rt_supervisor_options supervision = {.name = "bench", .owner = "bench", .tasks_max = 8};
    struct rt_task_options answering = {.kind = "later",
                                        .name = "later",
                                        .owner = "bench",
                                        .fn = answer_later,
                                        .wake = close_later};
    struct rt_queue_options queue = {.name = "later",
                                     .owner = "bench",
                                     .capacity = 4096,
                                     .weight_max = 4096,
                                     .policy = "reject"};
    struct io_server_options options = {
        .listeners = &listener, .listeners_count = 1, .connections_max = 4096};
    struct ron_errinfo info = {0};
    struct io_routes *routes;
    struct io_server *server;
    struct rt_task *task;

    (void)signal(SIGPIPE, SIG_IGN);
    rt_init();
    if (tls_options != NULL)
        must(io_tls_new(tls_options, &listener.tls, &info), &info);
    must(rt_supervisor_new(&supervision, &options.supervisor, &info), &info);
    must(rt_queue_new(&queue, &later, &info), &info);
    must(rt_task_spawn(options.supervisor, &answering, &task, &info), &info);
    must(io_routes_new(&routes, &info), &info);
    must(io_routes_add(routes, routes_table, RON_ARRAY_COUNT(routes_table), NULL, &info), &info);
    options.routes = routes;
    must(io_server_start(&options, &server, &info), &info);
    tell(url_fd, io_server_url(server, 0));
    wait_for_end(stop_fd);
    must(io_server_stop(server, rt_deadline_after_ms(1000), &info), &info);
}

void net_start_ron(struct net_server *server, const char *certificate, const char *key)
{
    struct io_tls_options tls = {.certificate = certificate, .key = key};

    *server = (struct net_server){.name = "ron"};
    start_child(server, serve_ron, certificate == NULL ? NULL : &tls);
}

/* ---- bare: an epoll loop with nothing but the hop ---- */

enum { BARE_CONNS_MAX = 4096, BARE_IN_SIZE = 4096 };

struct bare_conn {
    struct bare_conn *next;
    int fd;
    size_t size;
    char bytes[BARE_IN_SIZE];
};
struct bare_list {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct bare_conn *first, **end;
};
static struct bare_list asked = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .end = &asked.first};
static struct bare_list answered = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .end = &answered.first};
static int bare_event_fd;

/* True if the list was empty. */
static bool bare_put(struct bare_list *list, struct bare_conn *conn)
{
    bool was_empty;

    conn->next = NULL;
    pthread_mutex_lock(&list->mutex);
    was_empty = list->first == NULL;
    *list->end = conn;
    list->end = &conn->next;
    if (was_empty)
        pthread_cond_signal(&list->filled);
    pthread_mutex_unlock(&list->mutex);
    return was_empty;
}

static struct bare_conn *bare_take_all(struct bare_list *list, bool wait)
{
    struct bare_conn *first;

    pthread_mutex_lock(&list->mutex);
    while (wait && list->first == NULL)
        pthread_cond_wait(&list->filled, &list->mutex);
    first = list->first;
    list->first = NULL;
    list->end = &list->first;
    pthread_mutex_unlock(&list->mutex);
    return first;
}

static void *bare_work(void *argument)
{
    const uint64_t one = 1;

    (void)argument;
    for (;;) {
        struct bare_conn *conn = bare_take_all(&asked, true);

        while (conn != NULL) {
            struct bare_conn *next = conn->next;

            if (bare_put(&answered, conn) && write(bare_event_fd, &one, sizeof(one)) < 0)
                die("eventfd");
            conn = next;
        }
    }
    return NULL;
}

/* A whole request is there: its size, or 0. */
static size_t bare_request(const struct bare_conn *conn)
{
    const char *end = memmem(conn->bytes, conn->size, "\r\n\r\n", 4);
    const char *length = memmem(conn->bytes, conn->size, "Content-Length: ", 16);
    size_t size;

    if (end == NULL || length == NULL)
        return 0;
    size = (size_t)(end - conn->bytes) + 4 + strtoul(length + 16, NULL, 10);
    return size <= conn->size ? size : 0;
}

static void bare_read(struct bare_conn *conn)
{
    ssize_t size = recv(conn->fd, conn->bytes + conn->size, BARE_IN_SIZE - conn->size,
                        MSG_DONTWAIT);

    if (size <= 0) {
        if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
            (void)close(conn->fd);
            free(conn);
        }
        return;
    }
    conn->size += (size_t)size;
    if (bare_request(conn) > 0) {
        conn->size = 0; /* the generator never sends ahead */
        (void)bare_put(&asked, conn);
    }
}

static void bare_answer_all(void)
{
    struct bare_conn *conn = bare_take_all(&answered, false);
    char text[512];

    while (conn != NULL) {
        struct bare_conn *next = conn->next;
        int size = snprintf(text, sizeof(text),
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                            "Content-Length: %d\r\n\r\n%s",
                            NET_REPLY_SIZE, net_reply());

        if (send(conn->fd, text, (size_t)size, MSG_NOSIGNAL) != size)
            die("send");
        conn = next;
    }
}

static void bare_accept(int epoll_fd, int listen_fd)
{
    int one = 1;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    struct bare_conn *conn = fd < 0 ? NULL : calloc(1, sizeof(*conn));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = conn};

    if (conn == NULL)
        return;
    conn->fd = fd;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

static int listen_on_loopback(char *url, size_t url_size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        die("listen");
    (void)snprintf(url, url_size, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

static void serve_bare(int url_fd, int stop_fd, void *argument)
{
    char url[NET_URL_SIZE];
    int listen_fd = listen_on_loopback(url, sizeof(url));
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[256];
    struct epoll_event event = {.events = EPOLLIN};
    int *const special[] = {&listen_fd, &bare_event_fd, &stop_fd};
    pthread_t worker;

    (void)argument;
    bare_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < RON_ARRAY_COUNT(special); i++) {
        event.data.ptr = special[i];
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *special[i], &event) != 0)
            die("epoll_ctl");
    }
    if (pthread_create(&worker, NULL, bare_work, NULL) != 0)
        die("thread");
    tell(url_fd, url);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, (int)RON_ARRAY_COUNT(events), -1);

        for (int i = 0; i < count; i++) {
            uint64_t number;

            if (events[i].data.ptr == &stop_fd)
                return;
            if (events[i].data.ptr == &listen_fd)
                bare_accept(epoll_fd, listen_fd);
            else if (events[i].data.ptr == &bare_event_fd)
                (void)!read(bare_event_fd, &number, sizeof(number));
            else
                bare_read(events[i].data.ptr);
        }
        bare_answer_all();
    }
}

void net_start_bare(struct net_server *server)
{
    *server = (struct net_server){.name = "bare epoll loop"};
    start_child(server, serve_bare, NULL);
}

/* ---- nginx ---- */

static const char *find_nginx(void)
{
    static const char *const places[] = {"/usr/sbin/nginx", "/usr/bin/nginx"};

    for (size_t i = 0; i < RON_ARRAY_COUNT(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static void write_config(const char *path, const char *folder, const char *address)
{
    FILE *file = fopen(path, "w");

    if (file == NULL)
        die(path);
    (void)fprintf(file,
                  "daemon off;\nmaster_process off;\nworker_processes 1;\npid %s/pid;\n"
                  "error_log %s/error.log crit;\nevents { worker_connections 8192; }\n"
                  "http { access_log off; keepalive_requests 1000000000; default_type "
                  "application/json;\nclient_body_temp_path %s/body; proxy_temp_path %s/proxy;\n"
                  "fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
                  "server { listen %s; location / { return 200 '%s'; } } }\n",
                  folder, folder, folder, folder, folder, folder, folder, address, net_reply());
    if (fclose(file) != 0)
        die(path);
}

/* Until it takes connections: at most 10 s. */
static void wait_for_listener(const struct sockaddr_in *address)
{
    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int result = connect(fd, (const struct sockaddr *)address, sizeof(*address));

        (void)close(fd);
        if (result == 0)
            return;
        (void)usleep(10000);
    }
    die("nginx does not listen");
}

bool net_start_nginx(struct net_server *server, const char *folder)
{
    const char *program = find_nginx();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char path[NET_URL_SIZE];
    unsigned port;

    if (program == NULL)
        return false;
    *server = (struct net_server){.name = "nginx return 200", .stop_fd = -1};
    /* A port that was free a moment ago: nginx cannot pick one. */
    (void)close(listen_on_loopback(server->url, sizeof(server->url)));
    port = (unsigned)strtoul(strrchr(server->url, ':') + 1, NULL, 10);
    address.sin_port = htons((uint16_t)port);
    (void)snprintf(path, sizeof(path), "%s/nginx.conf", folder);
    write_config(path, folder, strstr(server->url, "127."));
    (void)fflush(NULL);
    server->pid = fork();
    if (server->pid < 0)
        die("fork");
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execl(program, "nginx", "-p", folder, "-c", path, (char *)NULL);
        _exit(127);
    }
    wait_for_listener(&address);
    return true;
}
