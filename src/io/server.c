/*
 * server.c - listeners, loops, start, drain and stop. See server.h.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "io/conn.h"
#include "io/peer_table.h"

enum { BACKLOG = 1024, POLL_MS = 5 };

/* ---- Listening ---- */

/* A socket file left behind by a process that is gone: nobody answers on it. */
static void remove_stale(const struct io_address *address)
{
    struct sockaddr_un local;
    struct stat status;
    int fd;

    memcpy(&local, &address->storage, sizeof(local));
    if (lstat(local.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)&address->storage, address->size) != 0 &&
        errno == ECONNREFUSED)
        (void)unlink(local.sun_path);
    RON_MUST_ZERO(close(fd));
}

static enum ron_err fail_bind(const char *text, int error, struct ron_errinfo *reterr)
{
    enum ron_err err = error == EADDRINUSE                                   ? RON_ERR_CONFLICT
                       : error == EACCES || error == EPERM || error == EROFS ? RON_ERR_FORBIDDEN
                                                                             : RON_ERR_IO;

    return ron_fail_sys(reterr, err, error, "cannot listen on %s: %s", text, strerror(error));
}

static enum ron_err open_socket(struct io_listener *listener, const char *text,
                                struct ron_errinfo *reterr)
{
    struct io_address *address = &listener->address;
    bool local = io_address_is_unix(address);
    int one = 1;
    int fd;

    if (local)
        remove_stale(address);
    fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail_bind(text, errno, reterr);
    listener->fd = fd;
    if (!local)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (const struct sockaddr *)&address->storage, address->size) != 0)
        return fail_bind(text, errno, reterr);
    listener->bound = true;
    if (local) {
        struct sockaddr_un bound;

        memcpy(&bound, &address->storage, sizeof(bound));
        if (chmod(bound.sun_path, 0600) != 0)
            return fail_bind(text, errno, reterr);
    }
    if (listen(fd, BACKLOG) != 0)
        return fail_bind(text, errno, reterr);
    address->size = sizeof(address->storage);
    if (!local && getsockname(fd, (struct sockaddr *)&address->storage, &address->size) != 0)
        return fail_bind(text, errno, reterr);
    return RON_ERR_OK;
}

static enum ron_err open_listener(struct io_server *server,
                                  const struct io_listener_options *options,
                                  struct ron_errinfo *reterr)
{
    struct io_listener *listener = &server->listeners[server->listeners_count];
    char text[IO_ADDRESS_TEXT_SIZE];
    enum ron_err err;

    *listener = (struct io_listener){.server = server,
                                     .fd = -1,
                                     .admin = options->admin,
                                     .tls = options->tls,
                                     .uids = options->uids,
                                     .uids_count = options->uids_count};
    err = io_address_parse(options->address, &listener->address, reterr);
    if (err != RON_ERR_OK)
        return ron_wrap(reterr, err, "%s", options->address);
    if (options->tls == NULL && !io_address_is_loopback(&listener->address))
        return ron_fail(reterr, RON_ERR_FORBIDDEN,
                        "%s is not loopback: configure server.tls, or listen on 127.0.0.1",
                        options->address);
    server->listeners_count++;
    err = open_socket(listener, options->address, reterr);
    if (err != RON_ERR_OK)
        return err;
    io_address_print(&listener->address, text);
    (void)snprintf(listener->url, sizeof(listener->url), "%s%s",
                   io_address_is_unix(&listener->address) ? ""
                   : options->tls != NULL                 ? "https://"
                                                          : "http://",
                   text);
    return RON_ERR_OK;
}

static void close_listeners(struct io_server *server)
{
    for (size_t i = 0; i < server->listeners_count; i++) {
        struct io_listener *listener = &server->listeners[i];
        struct sockaddr_un local;

        if (listener->fd < 0)
            continue;
        RON_MUST_ZERO(close(listener->fd));
        listener->fd = -1;
        if (listener->bound && io_address_is_unix(&listener->address)) {
            memcpy(&local, &listener->address.storage, sizeof(local));
            (void)unlink(local.sun_path);
        }
    }
}

/* ---- Birth and end ---- */

static void set_defaults(struct io_server_options *options)
{
    if (options->loops_count == 0)
        options->loops_count = 1;
    if (options->connections_max == 0)
        options->connections_max = 1024;
    if (options->bytes_max == 0)
        options->bytes_max = 64 << 20;
    if (options->head_ms == 0)
        options->head_ms = 5000;
    if (options->body_ms == 0)
        options->body_ms = 5000;
    if (options->idle_ms == 0)
        options->idle_ms = 60000;
    if (options->request_ms == 0)
        options->request_ms = 5000;
}

/* Loops share a role's rate in equal parts. */
static void set_rates(struct io_server *server, size_t role, uint32_t reads_per_s,
                      uint32_t writes_per_s)
{
    const uint32_t rates[2] = {reads_per_s, writes_per_s};

    for (size_t i = 0; i < 2; i++)
        rt_atomic_store_u32(&server->roles[role].rates[i],
                            rates[i] / server->options.loops_count + (rates[i] > 0));
}

bool io_server_set_rates(struct io_server *server, const char *role, uint32_t reads_per_s,
                         uint32_t writes_per_s)
{
    for (size_t i = 0; i < server->options.budgets_count; i++) {
        if (strcmp(server->roles[i].budget->role, role) != 0)
            continue;
        set_rates(server, i, reads_per_s, writes_per_s);
        return true;
    }
    return false;
}

static void find_roles(struct io_server *server)
{
    const struct io_server_options *options = &server->options;

    for (size_t i = 0; i < options->budgets_count; i++) {
        server->roles[i].budget = &options->budgets[i];
        set_rates(server, i, options->budgets[i].reads_per_s, options->budgets[i].writes_per_s);
    }
    for (size_t i = 0; i < io_routes_count(options->routes); i++)
        for (size_t j = 0; j < options->budgets_count; j++)
            if (strcmp(io_routes_at(options->routes, i)->role, options->budgets[j].role) == 0)
                server->route_roles[i] = (uint16_t)(j + 1);
    for (size_t i = 0; options->oap != NULL && i < io_oap_service_count(options->oap); i++)
        for (size_t j = 0; j < options->budgets_count; j++)
            if (strcmp(io_oap_service_at(options->oap, i)->route.role, options->budgets[j].role) ==
                0)
                server->oap_roles[i] = (uint16_t)(j + 1);
}

static void server_free(struct io_server *server)
{
    close_listeners(server);
    for (size_t i = 0; i < server->loops_count; i++)
        (void)io_loop_free(server->loops[i]);
    (void)peer_table_free(server->peers);
    (void)ron_mem_free(server->roles);
    (void)ron_mem_free(server);
}

static void wake_loop(void *argument)
{
    io_loop_wake(argument);
}

static enum ron_err build(struct io_server *server, struct ron_errinfo *reterr)
{
    const struct io_server_options *options = &server->options;
    uint32_t each_max = options->connections_max / 4 > 0 ? options->connections_max / 4 : 1;
    enum ron_err err;

    server->roles = ron_mem_alloc_array(options->budgets_count + 1, sizeof(*server->roles));
    if (server->roles == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "server");
    find_roles(server);
    err = peer_table_new(options->connections_max, each_max, &server->peers, reterr);
    for (size_t i = 0; i < options->listeners_count && err == RON_ERR_OK; i++)
        err = open_listener(server, &options->listeners[i], reterr);
    server->loops_count = options->loops_count; /* loops share rates by it */
    for (unsigned i = 0; i < options->loops_count && err == RON_ERR_OK; i++)
        err = io_loop_new(server, i, &server->loops[i], reterr);
    return err;
}

static enum ron_err spawn(struct io_server *server, struct ron_errinfo *reterr)
{
    for (size_t i = 0; i < server->loops_count; i++) {
        struct rt_task_options options = {.kind = "io_loop",
                                          .name = "io loop",
                                          .owner = "server",
                                          .fn = io_loop_run,
                                          .wake = wake_loop,
                                          .argument = server->loops[i],
                                          .restart = RT_RESTART_NEVER};
        enum ron_err err = rt_task_spawn(server->options.supervisor, &options,
                                         &server->loops[i]->task, reterr);

        if (err != RON_ERR_OK)
            return err;
    }
    return RON_ERR_OK;
}

static enum ron_err join(struct io_server *server, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    for (size_t i = 0; i < server->loops_count; i++) {
        enum ron_err result;
        enum ron_err err;

        if (server->loops[i] == NULL || server->loops[i]->task == NULL)
            continue;
        rt_task_cancel(server->loops[i]->task);
        err = rt_task_join(server->loops[i]->task, deadline, &result, reterr);
        if (err != RON_ERR_OK)
            return err;
        server->loops[i]->task = NULL;
    }
    return RON_ERR_OK;
}

enum ron_err io_server_start(const struct io_server_options *options, struct io_server **ret_server,
                             struct ron_errinfo *reterr)
{
    struct io_server *server = ron_mem_alloc_array(1, sizeof(*server));
    enum ron_err err;

    RON_ASSERT(options->listeners_count > 0 && options->listeners_count <= IO_LISTENERS_MAX);
    RON_ASSERT(options->budgets_count <= IO_BUDGETS_MAX);
    RON_ASSERT(options->loops_count <= IO_LOOPS_MAX);
    rt_assert_no_lock_held();
    if (server == NULL)
        return ron_fail(reterr, RON_ERR_NO_MEMORY, "server");
    server->options = *options;
    set_defaults(&server->options);
    err = build(server, reterr);
    if (err == RON_ERR_OK)
        err = spawn(server, reterr);
    if (err != RON_ERR_OK) {
        struct ron_errinfo ignored = {0};

        if (join(server, RT_DEADLINE_NEVER, &ignored) == RON_ERR_OK)
            server_free(server);
        return err;
    }
    *ret_server = server;
    return RON_ERR_OK;
}

const char *io_server_url(const struct io_server *server, size_t listener)
{
    RON_ASSERT(listener < server->listeners_count);
    return server->listeners[listener].url;
}

void io_server_drain(struct io_server *server)
{
    rt_atomic_store_u32(&server->draining, 1);
    for (size_t i = 0; i < server->loops_count; i++)
        io_loop_wake(server->loops[i]);
}

enum ron_err io_server_stop(struct io_server *server, struct rt_deadline deadline,
                            struct ron_errinfo *reterr)
{
    enum ron_err err;

    rt_assert_no_lock_held();
    io_server_drain(server);
    rt_atomic_store_u32(&server->stopping, 1);
    /* Handlers answer in their own time; loops notice an empty house by themselves. */
    while ((rt_atomic_load_u32(&server->open_count) > 0 ||
            rt_atomic_load_u32(&server->calls_count) > 0) &&
           !rt_deadline_expired(deadline)) {
        for (size_t i = 0; i < server->loops_count; i++)
            io_loop_wake(server->loops[i]);
        sh_sleep_until(rt_now_ns() + POLL_MS * RT_NS_PER_MS);
    }
    err = join(server, rt_deadline_after_ms(1000), reterr);
    if (err != RON_ERR_OK)
        return err;
    if (rt_atomic_load_u32(&server->calls_count) > 0)
        return ron_fail(reterr, RON_ERR_TIMEOUT, "%u requests or streams were never ended",
                        rt_atomic_load_u32(&server->calls_count));
    for (size_t i = 0; i < server->loops_count; i++)
        io_loop_settle(server->loops[i]);
    RON_ASSERT(rt_atomic_load_u64(&server->bytes_held) == 0); /* who was charged gave it back */
    server_free(server);
    return RON_ERR_OK;
}

struct io_server_stats io_server_get_stats(const struct io_server *server)
{
    struct io_server_stats stats = {0};

    stats.open_count = rt_atomic_load_u32(&server->open_count);
    stats.bytes_held = rt_atomic_load_u64(&server->bytes_held);
    for (size_t i = 0; i < server->loops_count; i++) {
        const struct io_loop *loop = server->loops[i];

        stats.accepted_count += rt_counter_load(&loop->accepted);
        stats.requests_count += rt_counter_load(&loop->requests);
        stats.replies_count += rt_counter_load(&loop->replies);
        stats.bytes_in += rt_counter_load(&loop->bytes_in);
        stats.bytes_out += rt_counter_load(&loop->bytes_out);
        stats.closed_not_http += rt_counter_load(&loop->closed_not_http);
        stats.closed_no_line += rt_counter_load(&loop->closed_no_line);
        stats.closed_slow += rt_counter_load(&loop->closed_slow);
        stats.closed_idle += rt_counter_load(&loop->closed_idle);
        stats.closed_reset += rt_counter_load(&loop->closed_reset);
        stats.closed_denied += rt_counter_load(&loop->closed_denied);
        for (unsigned j = 0; j < RON_ERR__MAX; j++)
            stats.refused_count[j] += rt_counter_load(&loop->refused[j]);
    }
    return stats;
}
