/*
 * base_routes.c - the routes that every process has. See base_routes.h.
 */
#include "app/base_routes.h"

#include <unistd.h>

#include "app/debug_page.h"
#include "app/parts.h"
#include "app/serve_impl.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/json_dto.h"
#include "base/json_write.h"

static const struct ron_slice no_details = {0};

/* Answer with what was written, or with why it was not. Ends the buffer. */
static void reply_buf(struct io_request *request, const char *media, struct ron_buf *buf)
{
    struct ron_errinfo info = {0};
    enum ron_err err = ron_buf_check(buf, &info);

    if (err == RON_ERR_OK)
        io_reply(request,
                 &(struct io_reply){.status = 200, .media = media, .body = ron_buf_slice(buf)});
    else
        io_reply_error(request, err, &info, no_details);
    ron_buf_fini(buf);
}

static void healthz(void *context, struct io_request *request)
{
    (void)context;
    io_reply(request, &(struct io_reply){.status = 200,
                                         .media = "application/json",
                                         .body = RON_SLICE("{\"alive\":true}")});
}

static void version(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct ron_json_writer writer;
    struct ron_buf buf;

    ron_buf_init(&buf, APP_PAGE_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "name");
    ron_json_put_text(&writer, "ron");
    ron_json_put_name(&writer, "version");
    ron_json_put_text(&writer, server->options->version);
    ron_json_put_name(&writer, "roles");
    ron_json_put_array_begin(&writer);
    for (size_t i = 0; i < server->roles_count; i++)
        ron_json_put_text(&writer, server->roles[i].part->name);
    ron_json_put_array_end(&writer);
    ron_json_put_object_end(&writer);
    reply_buf(request, "application/json", &buf);
}

/* ---- Readiness ---- */

struct ready_query {
    char role[32]; /* empty: all */
    unsigned planes;
};

static enum ron_err read_ready_query(const struct io_request *request,
                                     struct ready_query *ret_query, struct ron_errinfo *reterr)
{
    struct ready_query query = {.planes = RT_PLANES_ALL};
    struct ron_errinfo info = {0};
    char plane[8];
    enum ron_err err = io_query_only(request, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_query_get(request, "role", query.role, sizeof(query.role), &info);
    if (err == RON_ERR_OK || err == RON_ERR_NOT_FOUND)
        err = io_query_get(request, "plane", plane, sizeof(plane), &info);
    if (err == RON_ERR_OK && strcmp(plane, "write") == 0)
        query.planes = RT_PLANE_WRITE;
    else if (err == RON_ERR_OK && strcmp(plane, "read") == 0)
        query.planes = RT_PLANE_READ;
    else if (err != RON_ERR_NOT_FOUND)
        return ron_fail(reterr, RON_ERR_MALFORMED, "query: plane is write or read, role a name");
    *ret_query = query;
    return RON_ERR_OK;
}

/* One role of the document; is it ready for the planes that were asked for? */
static bool put_role(struct ron_json_writer *writer, struct rt_lifecycle *lifecycle,
                     unsigned planes)
{
    const struct rt_life_role *role = rt_lifecycle_role(lifecycle);
    struct rt_life_status status = rt_lifecycle_status(lifecycle);
    unsigned ready = rt_ready_planes(&role->causes, status.raised);

    ron_json_put_object_begin(writer);
    ron_json_put_name(writer, "role");
    ron_json_put_text(writer, role->name);
    ron_json_put_name(writer, "state");
    ron_json_put_text(writer, rt_life_name(status.state));
    ron_json_put_name(writer, "write");
    ron_json_put_bool(writer, (ready & RT_PLANE_WRITE) != 0);
    ron_json_put_name(writer, "read");
    ron_json_put_bool(writer, (ready & RT_PLANE_READ) != 0);
    ron_json_put_name(writer, "reasons");
    ron_json_put_array_begin(writer);
    for (unsigned i = 0; i < rt_causes_count(&role->causes); i++) {
        if ((status.raised & RT_CAUSE_BIT(i)) != 0)
            ron_json_put_text(writer, rt_cause_at(&role->causes, i)->name);
    }
    ron_json_put_array_end(writer);
    ron_json_put_object_end(writer);
    return (ready & planes) == planes;
}

static void readyz(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct ready_query query;
    struct ron_errinfo info = {0};
    struct ron_json_writer writer;
    struct ron_buf buf;
    size_t roles_count = 0;
    bool ready = true;
    enum ron_err err = read_ready_query(request, &query, &info);

    if (err != RON_ERR_OK) {
        io_reply_error(request, err, &info, no_details);
        return;
    }
    ron_buf_init(&buf, APP_PAGE_SIZE_MAX);
    ron_json_writer_init(&writer, &buf, RON_JSON_FIXED);
    ron_json_put_object_begin(&writer);
    ron_json_put_name(&writer, "roles");
    ron_json_put_array_begin(&writer);
    for (size_t i = 0; i < server->lifecycles_count; i++) {
        const char *name = rt_lifecycle_role(server->lifecycles[i])->name;

        if (query.role[0] != '\0' && strcmp(query.role, name) != 0)
            continue;
        roles_count++;
        ready = put_role(&writer, server->lifecycles[i], query.planes) && ready;
    }
    ron_json_put_array_end(&writer);
    ron_json_put_name(&writer, "ready");
    ron_json_put_bool(&writer, ready);
    ron_json_put_object_end(&writer);
    if (roles_count == 0)
        err = ron_fail(&info, RON_ERR_NOT_FOUND, "no such role in this process");
    else if (!ready)
        err = ron_fail(&info, RON_ERR_NOT_READY, "not ready; details.roles has the reasons");
    if (err == RON_ERR_OK) {
        reply_buf(request, "application/json", &buf);
        return;
    }
    io_reply_error(request, err, &info,
                   err == RON_ERR_NOT_READY && ron_buf_check(&buf, NULL) == RON_ERR_OK
                       ? ron_buf_slice(&buf)
                       : no_details);
    ron_buf_fini(&buf);
}

/* ---- Documents ---- */

static void openapi(void *context, struct io_request *request)
{
    struct app_server *server = context;

    io_reply(request, &(struct io_reply){.status = 200,
                                         .media = "application/json",
                                         .body = ron_buf_slice(&server->openapi)});
}

static void index_page(void *context, struct io_request *request)
{
    static const struct io_reply_field fields[] = {
        {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"},
        {"X-Content-Type-Options", "nosniff"},
    };
    struct app_server *server = context;

    io_reply(request, &(struct io_reply){.status = 200,
                                         .media = "text/html; charset=utf-8",
                                         .body = ron_buf_slice(&server->index),
                                         .fields = fields,
                                         .fields_count = RON_ARRAY_COUNT(fields)});
}

static void collect_listeners(struct app_server *server)
{
    struct io_server_stats stats[APP_LISTENERS_COUNTED];
    bool known[APP_LISTENERS_COUNTED];

    app_server_lock(server); /* a listener is not freed while its figures are read */
    known[APP_LISTENER_API] = server->api != NULL;
    if (server->api != NULL)
        stats[APP_LISTENER_API] = io_server_get_stats(server->api);
    known[APP_LISTENER_ADMIN] = server->admin != NULL;
    if (server->admin != NULL)
        stats[APP_LISTENER_ADMIN] = io_server_get_stats(server->admin);
    app_server_unlock(server);
    for (size_t i = 0; i < APP_LISTENERS_COUNTED; i++) {
        if (known[i])
            app_serve_metrics_collect(&server->counted, server->metrics, i, &stats[i]);
    }
}

static void collect_spans(struct app_server *server)
{
    struct io_otlp_stats stats = {0};

    if (server->spans == NULL)
        return;
    app_server_lock(server); /* the exporter is there until the listeners are gone */
    stats = io_otlp_get_stats(server->otlp);
    app_server_unlock(server);
    app_serve_metrics_collect_spans(&server->counted, server->metrics, &stats,
                                    rt_spans_get_stats(server->spans).dropped_count);
}

/* The admin listener has one loop, so one thread at a time collects. */
static void metrics(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct app_access_stats access = app_access_get_stats(server->access);
    struct ron_errinfo info = {0};
    struct ron_buf buf;
    enum ron_err err;

    rt_exporter_collect(server->exporter);
    collect_listeners(server);
    app_serve_metrics_collect_access(&server->counted, server->metrics, &access);
    collect_spans(server);
    ron_buf_init(&buf, APP_PAGE_SIZE_MAX);
    err = rt_metrics_write(server->metrics, &buf, &info);
    if (err == RON_ERR_OK) {
        reply_buf(request, "text/plain; version=0.0.4; charset=utf-8", &buf);
        return;
    }
    io_reply_error(request, err, &info, no_details);
    ron_buf_fini(&buf);
}

static void topology(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct ron_errinfo info = {0};
    struct ron_buf buf;
    enum ron_err err;

    ron_buf_init(&buf, APP_PAGE_SIZE_MAX);
    err = app_debug_topology(server->routes, &buf, &info);
    if (err == RON_ERR_OK) {
        reply_buf(request, "application/json", &buf);
        return;
    }
    io_reply_error(request, err, &info, no_details);
    ron_buf_fini(&buf);
}

/* ---- Administration ---- */

static struct ron_slice caller(const struct io_request *request)
{
    const struct auth_principal *principal = request->principal;

    return auth_grant_ref(&principal->grant);
}

static void show_config(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct ron_buf buf;

    ron_buf_init(&buf, APP_PAGE_SIZE_MAX);
    app_server_lock(server);
    config_write(server->config, &buf);
    app_server_unlock(server);
    reply_buf(request, "text/plain; charset=utf-8", &buf);
}

static void drain(void *context, struct io_request *request)
{
    struct app_server *server = context;

    rt_log(server->log, RT_LOG_INFO, "drain asked for",
           rt_log_slice("capability", caller(request)));
    io_reply(request, &(struct io_reply){.status = 202,
                                         .media = "application/json",
                                         .body = RON_SLICE("{\"draining\":true}")});
    RON_MUST_ZERO(kill(getpid(), APP_SIGNAL_DRAIN));
}

/* The thread with the signals reads files and answers. */
static void reload(void *context, struct io_request *request)
{
    struct app_server *server = context;
    struct ron_errinfo info = {0};
    enum ron_err err = rt_lifecycle_admit(server->lifecycles[0], RT_PLANE_WRITE, &info);

    rt_log(server->log, RT_LOG_INFO, "reload asked for",
           rt_log_slice("capability", caller(request)));
    if (err == RON_ERR_OK)
        err = rt_queue_try_send(server->reloads, (struct rt_queue_item){request, 1}, &info);
    if (err != RON_ERR_OK) {
        io_reply_error(request, err, &info, no_details);
        return;
    }
    RON_MUST_ZERO(kill(getpid(), SIGHUP));
}

struct log_body {
    uint64_t present;
    struct ron_slice level;
};

static const char *check_level(struct ron_slice text)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; i < RON_ARRAY_COUNT(levels); i++) {
        if (ron_slice_equal(text, ron_slice_text(levels[i])))
            return NULL;
    }
    return "not debug, info, warn or error";
}

static void set_log(void *context, struct io_request *request)
{
    static const struct ron_json_field fields[] = {
        RON_JSON_FIELD_STRING(struct log_body, level, 0, 1, 5, check_level),
    };
    static const struct ron_json_dto dto = RON_JSON_DTO(struct log_body, fields);
    struct app_server *server = context;
    struct ron_errinfo info = {0};
    struct log_body body;
    struct ron_arena arena = {0};
    char level[8] = "";
    enum ron_err err = ron_arena_init(&arena, 4096, &info);

    if (err == RON_ERR_OK)
        err = ron_json_dto_read(&dto, request->body, &arena, &body, &info);
    if (err != RON_ERR_OK) {
        ron_arena_fini(&arena);
        io_reply_error(request, err, &info, no_details);
        return;
    }
    memcpy(level, body.level.data, body.level.size);
    ron_arena_fini(&arena);
    rt_log(server->log, RT_LOG_INFO, "log level changed", rt_log_text("level", level),
           rt_log_slice("capability", caller(request)));
    app_server_set_log_level(server, level);
    io_reply(request, &(struct io_reply){.status = 200,
                                         .media = "application/json",
                                         .body = RON_SLICE("{\"ok\":true}")});
}

/* ---- The rows ---- */

#define JSON  .replies = "application/json"
#define TEXT  .replies = "text/plain"
#define ALL   .role = APP_SERVER_ROLE, .flags = IO_ROUTE_BOTH
#define ADMIN .role = APP_SERVER_ROLE, .flags = IO_ROUTE_ADMIN
#define WRITE .role = APP_SERVER_ROLE, .flags = IO_ROUTE_ADMIN | IO_ROUTE_WRITE
#define SCOPE .scope = "server.admin"

static const struct io_route rows[] = {
    {HTTP_GET, "/", ALL, .name = "index", .replies = "text/html",
     .summary = "this page: what the server is and where to go", .handler = index_page},
    {HTTP_GET, "/healthz", ALL, JSON, .name = "healthz", .summary = "the process answers",
     .handler = healthz},
    {HTTP_GET, "/readyz", ALL, JSON, .name = "readyz", .summary = "is each role ready for work?",
     .query = IO_PARAMS({"role", "{\"type\":\"string\"}", "one role; all without it"},
                        {"plane", "{\"enum\":[\"write\",\"read\"]}", "one plane; both without it"}),
     .handler = readyz},
    {HTTP_GET, "/version", ALL, JSON, .name = "version", .summary = "version and roles",
     .handler = version},
    {HTTP_GET, "/openapi.json", ALL, JSON, .name = "openapi",
     .summary = "every route, as OpenAPI 3.1", .handler = openapi},
    {HTTP_GET, "/metrics", ADMIN, TEXT, .name = "metrics", .summary = "figures for Prometheus",
     .handler = metrics},
    {HTTP_GET, "/debug/topology", ADMIN, JSON, .name = "topology",
     .summary = "queues, tasks, locks and routes of this process", .handler = topology},
    {HTTP_GET, "/admin/server/config", ADMIN, SCOPE, TEXT, .name = "server_config",
     .summary = "the configuration, each value with its origin", .handler = show_config},
    {HTTP_POST, "/admin/server/drain", WRITE, SCOPE, JSON, .name = "server_drain",
     .summary = "begin the staged stop, as SIGTERM does", .handler = drain},
    {HTTP_POST, "/admin/server/reload", WRITE, SCOPE, JSON, .name = "server_reload",
     .summary =
         "read configuration, certificates and keyring again, as SIGHUP does; all or nothing",
     .handler = reload},
    {HTTP_PUT, "/admin/server/log", WRITE, SCOPE, JSON, .name = "server_log", .body_max = 256,
     .media = "application/json", .summary = "change the log level until the next reload",
     .request_schema = "{\"type\":\"object\",\"required\":[\"level\"],\"properties\":{\"level\":{"
                       "\"enum\":[\"debug\",\"info\",\"warn\",\"error\"]}}}",
     .handler = set_log},
};

enum ron_err app_base_routes_add(struct io_routes *routes, struct app_server *server,
                                 struct ron_errinfo *reterr)
{
    return io_routes_add(routes, rows, RON_ARRAY_COUNT(rows), server, reterr);
}

enum ron_err app_base_routes_finish(struct app_server *server, struct ron_errinfo *reterr)
{
    enum ron_err err = io_routes_openapi(server->routes, server->options->version, &server->openapi,
                                         reterr);

    if (err != RON_ERR_OK)
        return err;
    app_index_write(server->routes, server->options->version, &server->index);
    return ron_buf_check(&server->index, reterr);
}
