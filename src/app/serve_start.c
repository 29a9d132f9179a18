/*
 * serve_start.c - from a command line to listeners, and all the way back. See serve.h.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/base_routes.h"
#include "app/config_check.h"
#include "app/parts.h"
#include "app/serve_impl.h"
#include "auth/keyring_file.h"
#include "base/decimal.h"
#include "base/secret.h"
#include "io/address.h"
#include "io/log_metrics.h"
#include "rt/clock.h"
#include "rt/export.h"
#include "rt/log_fd.h"

#define LOCK_NAME "lock" /* in the data directory: one process at a time */

enum {
    LOG_RING_SIZE = 1 << 20,
    TASKS_MAX = IO_LOOPS_MAX + 8,
    STDERR_FD = 2,
    DESCRIPTORS_MAX = 1 << 16
};

static const uint64_t operator_lifetime_ms = UINT64_C(10) * 365 * 24 * 3600 * 1000;

/* Failures of one kind end the process with one code. */
static enum app_exit exit_of(enum ron_err err, enum app_exit code)
{
    return err == RON_ERR_OK ? APP_EXIT_OK : err == RON_ERR_NO_MEMORY ? APP_EXIT_FAILED : code;
}

/* ---- Data and keys ---- */

static enum ron_err open_data(struct app_server *server, const char *dir,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    enum ron_err err = io_vfs_posix_new(dir, true, &server->data, reterr);

    if (err != RON_ERR_OK)
        return err;
    err = io_vfs_open(server->data, LOCK_NAME, IO_OPEN_WRITE, &server->data_lock, &info);
    if (err == RON_ERR_NOT_FOUND)
        err = io_vfs_open(server->data, LOCK_NAME, IO_OPEN_CREATE, &server->data_lock, &info);
    if (err != RON_ERR_OK) {
        *reterr = info;
        return err;
    }
    err = io_file_lock(server->data_lock, &info);
    if (err == RON_ERR_CONFLICT)
        return ron_fail(reterr, err, "%s: another process serves this data directory", dir);
    if (err != RON_ERR_OK)
        *reterr = info;
    return err;
}

static enum ron_err open_keyring(struct app_server *server, const char *dir,
                                 struct auth_keyring **ret_keyring,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ron_errinfo info = {0};
    bool made = false;
    enum ron_err err = auth_keyring_check_private(dir, AUTH_KEYRING_NAME, &info);

    if (err == RON_ERR_OK || err == RON_ERR_NOT_FOUND)
        err = auth_keyring_check_private(dir, AUTH_OPERATOR_TOKEN_NAME, &info);
    if (err != RON_ERR_OK && err != RON_ERR_NOT_FOUND) {
        *reterr = info;
        return err;
    }
    err = auth_keyring_file_open(server->data, rt_utc_ms(), operator_lifetime_ms, ret_keyring,
                                 &made, reterr);
    if (err == RON_ERR_OK && made)
        rt_log(server->log, RT_LOG_INFO, "first start: made a keyring and the operator's token",
               rt_log_text("data", dir));
    return err;
}

static enum ron_err make_access(struct app_server *server, const char *dir, uint32_t loops_count,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    enum ron_err err;

    if (!server->options->amnesia)
        err = open_keyring(server, dir, &keyring, reterr);
    else if (server->options->keyring_fd != APP_KEYRING_FD_NONE)
        err = auth_keyring_read_fd((uint32_t)server->options->keyring_fd, &keyring, reterr);
    else
        err = auth_keyring_new(rt_utc_ms(), &keyring, reterr);
    if (err == RON_ERR_OK)
        err = app_access_new(keyring, loops_count + 1, &server->access, reterr);
    if (err != RON_ERR_OK)
        return err;
    if (server->options->amnesia) {
        static const char word[] = "token ";
        size_t size;

        memcpy(server->operator_line, word, sizeof(word));
        err = auth_keyring_mint_operator(keyring, rt_utc_ms(), operator_lifetime_ms,
                                         server->operator_line + sizeof(word) - 1, &size, reterr);
    }
    keyring = NULL; /* the access has it */
    return err;
}

/* ---- The runtime ---- */

static enum ron_err make_log(struct app_server *server, const struct config *config,
                             struct ron_errinfo *reterr)
{
    const char *format = config_text(config, CONFIG_LOG_FORMAT);
    struct rt_log_options options = {
        .level = RT_LOG_INFO,
        .form = strcmp(format, "json") == 0   ? RT_LOG_JSON
                : strcmp(format, "text") == 0 ? RT_LOG_TEXT
                                              : rt_log_fd_form(STDERR_FD),
        .service = "ron",
        .ring_size = LOG_RING_SIZE,
        .write = rt_log_fd_write,
        .write_context = &server->log_fd,
    };
    enum ron_err err;

    server->log_fd = STDERR_FD;
    err = rt_log_new(&options, &server->log, reterr);
    if (err == RON_ERR_OK)
        app_server_set_log_level(server, config_text(config, CONFIG_LOG_LEVEL));
    return err;
}

static enum ron_err make_runtime(struct app_server *server, struct ron_errinfo *reterr)
{
    struct rt_metric_table tables[3 + APP_PARTS_MAX] = {{rt_metric_table, RT_METRIC__COUNT},
                                                        {io_log_metric_table, IO_LOG_METRIC__COUNT},
                                                        app_serve_metric_table};
    size_t tables_count = 3;
    struct rt_supervisor_options supervision = {.name = "server",
                                                .owner = APP_SERVER_ROLE,
                                                .tasks_max = TASKS_MAX,
                                                .escalate = rt_health_escalate,
                                                .escalate_context = &server->health};
    struct rt_queue_options queue = {.name = "reloads",
                                     .owner = APP_SERVER_ROLE,
                                     .policy = "reject",
                                     .capacity = APP_RELOADS_MAX};
    struct rt_exporter_options exporting = {.log = server->log, .q_role = "ledger"};
    enum ron_err err = rt_supervisor_new(&supervision, &server->supervisor, reterr);

    if (err == RON_ERR_OK)
        err = rt_queue_new(&queue, &server->reloads, reterr);
    if (err == RON_ERR_OK)
        err = rt_lifecycle_new(&app_server_role, 0, server, &server->lifecycles[0], reterr);
    if (err != RON_ERR_OK)
        return err;
    server->lifecycles_count = 1;
    server->health = (struct rt_health){
        .lifecycle = server->lifecycles[0], .supervisor = server->supervisor, .log = server->log};
    for (size_t i = 0; i < server->roles_count; i++)
        tables[tables_count++] = server->roles[i].part->metrics;
    err = rt_metrics_new(tables, tables_count, &server->metrics, reterr);
    exporting.metrics = server->metrics;
    if (err == RON_ERR_OK)
        err = rt_exporter_new(&exporting, &server->exporter, reterr);
    if (err != RON_ERR_OK)
        return err;
    rt_exporter_follow(server->exporter, APP_SERVER_ROLE, server->supervisor);
    rt_exporter_follow_role(server->exporter, server->lifecycles[0]);
    return RON_ERR_OK;
}

static enum ron_err make_spans(struct app_server *server, const struct config *config,
                               struct ron_errinfo *reterr)
{
    struct io_otlp_options options = {.endpoint = config_text(config, CONFIG_OTLP_ENDPOINT),
                                      .service = "ron",
                                      .supervisor = server->supervisor};
    struct io_otlp *otlp;
    enum ron_err err;

    if (options.endpoint[0] == '\0')
        return RON_ERR_OK;
    err = rt_spans_new(APP_SERVER_ROLE,
                       (uint32_t)config_number(config, CONFIG_OTLP_SAMPLE_PERMILLE), &server->spans,
                       reterr);
    if (err != RON_ERR_OK)
        return err;
    options.spans = server->spans;
    err = io_otlp_start(&options, &otlp, reterr);
    if (err != RON_ERR_OK)
        return err;
    app_server_lock(server);
    server->otlp = otlp;
    app_server_unlock(server);
    return RON_ERR_OK;
}

/* ---- Listeners ---- */

static enum ron_err make_routes(struct app_server *server, struct ron_errinfo *reterr)
{
    enum ron_err err = io_routes_new(&server->routes, reterr);

    if (err == RON_ERR_OK)
        err = app_base_routes_add(server->routes, server, reterr);
    if (err == RON_ERR_OK)
        err = app_roles_add_routes(server, reterr);
    if (err == RON_ERR_OK)
        err = app_base_routes_finish(server, reterr);
    return err;
}

static enum ron_err make_tls(struct app_server *server, const struct config *config,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    const char *client_ca = config_text(config, CONFIG_SERVER_TLS_CLIENT_CA);
    struct io_tls_options options = {
        .certificate = config_text(config, CONFIG_SERVER_TLS_CERTIFICATE),
        .key = config_text(config, CONFIG_SERVER_TLS_KEY),
        .client_ca = client_ca[0] == '\0' ? NULL : client_ca};

    if (options.certificate[0] == '\0' && options.key[0] == '\0' && client_ca[0] == '\0')
        return RON_ERR_OK;
    if (options.certificate[0] == '\0' || options.key[0] == '\0')
        return ron_fail(reterr, RON_ERR_MALFORMED,
                        "server.tls: certificate and key are needed together");
    return io_tls_new(&options, &server->tls, reterr);
}

static bool beyond_loopback(const char *text)
{
    struct io_address address;

    return io_address_parse(text, &address, NULL) == RON_ERR_OK &&
           !io_address_is_loopback(&address);
}

/* Said before anything is made; the listeners would refuse it, too. */
static enum ron_err check_addresses(const struct app_server *server, const struct config *config,
                                    struct ron_errinfo *reterr)
{
    static const enum config_key keys[] = {CONFIG_SERVER_LISTEN, CONFIG_SERVER_ADMIN};

    for (size_t i = 0; i < RON_ARRAY_COUNT(keys); i++) {
        const char *text = config_text(config, keys[i]);

        if (server->tls == NULL && beyond_loopback(text))
            return ron_fail(reterr, RON_ERR_FORBIDDEN,
                            "%s is not loopback: configure server.tls, or listen on 127.0.0.1",
                            text);
        if (keys[i] == CONFIG_SERVER_ADMIN && beyond_loopback(text) &&
            config_text(config, CONFIG_SERVER_TLS_CLIENT_CA)[0] == '\0')
            return ron_fail(reterr, RON_ERR_FORBIDDEN,
                            "%s is not loopback: admin routes need server.tls.client_ca there",
                            text);
    }
    return RON_ERR_OK;
}

static uint32_t ms_of(const struct config *config, enum config_key key)
{
    return (uint32_t)(config_number(config, key) / RT_NS_PER_MS);
}

static enum ron_err listen_on(struct app_server *server, const struct config *config,
                              const struct io_listener_options *listeners, size_t listeners_count,
                              uint32_t loops_count, struct io_server **ret_server,
                              struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_server_options options = {
        .listeners = listeners,
        .listeners_count = listeners_count,
        .routes = server->routes,
        .loops_count = loops_count,
        .connections_max = (uint32_t)config_number(config, CONFIG_SERVER_MAX_CONNS),
        .bytes_max = config_number(config, CONFIG_SERVER_MAX_BYTES),
        .head_ms = ms_of(config, CONFIG_SERVER_HEAD_TIMEOUT),
        .body_ms = ms_of(config, CONFIG_SERVER_BODY_TIMEOUT),
        .idle_ms = ms_of(config, CONFIG_SERVER_IDLE_TIMEOUT),
        .request_ms = ms_of(config, CONFIG_SERVER_REQUEST_TIMEOUT),
        .oap = server->oap,
        .budgets = server->budgets,
        .budgets_count = server->roles_count + 1,
        .authorize = app_access_authorize,
        .context = server->access,
        .supervisor = server->supervisor,
        .spans = server->spans,
    };

    return io_server_start(&options, ret_server, reterr);
}

/* Numbers, separated by commas; none: our own. */
static enum ron_err read_uids(struct app_server *server, const char *text,
                              struct ron_errinfo *reterr)
{
    server->unix_uids[0] = (uint32_t)geteuid();
    server->unix_uids_count = text[0] == '\0' ? 1 : 0;
    for (const char *rest = text; text[0] != '\0' && rest != NULL;) {
        const char *comma = strchr(rest, ',');
        const size_t size = comma == NULL ? strlen(rest) : (size_t)(comma - rest);
        uint64_t uid;

        if (server->unix_uids_count == APP_UNIX_UIDS_MAX ||
            ron_decimal_parse_u64(ron_slice_of(rest, size), &uid, NULL) != RON_ERR_OK ||
            uid >= UINT32_MAX)
            return ron_fail(reterr, RON_ERR_MALFORMED,
                            "server.unix_uids: at most %d numbers of users, separated by commas",
                            APP_UNIX_UIDS_MAX);
        server->unix_uids[server->unix_uids_count++] = (uint32_t)uid;
        rest = comma == NULL ? NULL : comma + 1;
    }
    return RON_ERR_OK;
}

/* The admin address has a server of its own, so that it can be the last to go. */
static enum ron_err start_listeners(struct app_server *server, const struct config *config,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    const char *local = config_text(config, CONFIG_SERVER_UNIX);
    const char *admin_address = config_text(config, CONFIG_SERVER_ADMIN);
    struct io_listener_options api[] = {
        {.address = config_text(config, CONFIG_SERVER_LISTEN), .tls = server->tls},
        {.address = server->unix_address},
    };
    struct io_listener_options admin = {.address = admin_address, .admin = true};
    struct io_server *started;
    enum ron_err err;

    if (beyond_loopback(admin_address))
        admin.tls = server->tls;
    err = read_uids(server, config_text(config, CONFIG_SERVER_UNIX_UIDS), reterr);
    if (err != RON_ERR_OK)
        return err;
    api[1].uids = server->unix_uids;
    api[1].uids_count = server->unix_uids_count;
    (void)snprintf(server->unix_address, sizeof(server->unix_address), "unix:%s", local);
    server->budgets[0] = (struct io_budget){
        .role = APP_SERVER_ROLE,
        .reads_per_s = (uint32_t)config_number(config, CONFIG_SERVER_READS_PER_S)};
    for (size_t i = 0; i < server->roles_count; i++)
        server->budgets[i + 1] = server->roles[i].part->budget(config);
    err = listen_on(server, config, api, local[0] == '\0' ? 1 : 2,
                    config_loops(config, app_cpus_count()), &started, reterr);
    if (err != RON_ERR_OK)
        return err;
    app_server_lock(server);
    server->api = started;
    app_server_unlock(server);
    err = listen_on(server, config, &admin, 1, 1, &started, reterr);
    if (err != RON_ERR_OK)
        return err;
    app_server_lock(server);
    server->admin = started;
    app_server_unlock(server);
    return RON_ERR_OK;
}

/* An address that may not be used is the configuration's fault; else it is the system's word. */
static enum app_exit exit_of_listen(enum ron_err err, const struct ron_errinfo *info)
{
    return exit_of(err, err == RON_ERR_CONFLICT || info->sys_errno != 0 ? APP_EXIT_ADDRESS
                                                                        : APP_EXIT_CONFIG);
}

/* ---- Descriptors ---- */

/* Connections of ours and to us need many; the soft limit is for programs that use select. Where
 * it cannot be raised, what there is must do. */
static void raise_descriptors(struct app_server *server)
{
    struct rlimit limit;
    rlim_t wanted;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    wanted = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    rt_log(server->log, RT_LOG_DEBUG, "descriptors", rt_log_u64("limit", limit.rlim_cur));
}

/* ---- All of it ---- */

enum app_exit app_server_start(struct app_server *server, bool *ret_told,
                               struct ron_errinfo *reterr)
{
    struct config *config;
    const char *dir;
    enum ron_err err = app_server_read_config(server, ret_told, &config, reterr);

    if (err != RON_ERR_OK)
        return exit_of(err, APP_EXIT_CONFIG);
    app_server_lock(server);
    server->config = config;
    server->born = config;
    app_server_unlock(server);
    dir = config_text(config, CONFIG_SERVER_DATA);
    err = app_roles_choose(server, config_text(config, CONFIG_SERVER_ROLES), reterr);
    if (err == RON_ERR_OK)
        err = app_config_check(config, NULL, NULL, reterr);
    if (err == RON_ERR_OK)
        err = make_tls(server, config, reterr);
    if (err == RON_ERR_OK)
        err = check_addresses(server, config, reterr);
    if (err != RON_ERR_OK)
        return exit_of(err, APP_EXIT_CONFIG);
    err = make_log(server, config, reterr);
    if (err == RON_ERR_OK)
        err = make_runtime(server, reterr);
    if (err != RON_ERR_OK)
        return APP_EXIT_FAILED;
    raise_descriptors(server);
    err = make_spans(server, config, reterr);
    if (err != RON_ERR_OK)
        return err == RON_ERR_MALFORMED ? APP_EXIT_CONFIG : APP_EXIT_FAILED;
    if (!server->options->amnesia)
        err = open_data(server, dir, reterr);
    if (err != RON_ERR_OK)
        return exit_of(err, APP_EXIT_DATA);
    err = make_access(server, dir, config_loops(config, app_cpus_count()), reterr);
    if (err != RON_ERR_OK)
        return exit_of(err, server->options->amnesia || err == RON_ERR_MALFORMED ||
                                    err == RON_ERR_TOO_LARGE ||
                                    (err == RON_ERR_FORBIDDEN && reterr->sys_errno == 0)
                                ? APP_EXIT_KEYRING
                                : APP_EXIT_DATA);
    err = app_roles_open(server, config, reterr);
    if (err != RON_ERR_OK)
        return exit_of(err, APP_EXIT_DATA);
    err = make_routes(server, reterr);
    if (err == RON_ERR_OK)
        err = app_roles_start(server, reterr);
    if (err != RON_ERR_OK)
        return APP_EXIT_FAILED;
    err = start_listeners(server, config, reterr);
    return exit_of_listen(err, reterr);
}

/* After the stop, or after a start that failed half-way: listeners that are there are stopped. */
void app_server_free(struct app_server *server)
{
    struct io_server *listening[2];
    struct ron_errinfo info = {0};
    struct io_otlp *otlp;

    app_server_lock(server);
    listening[0] = RON_TAKE(server->api);
    listening[1] = RON_TAKE(server->admin);
    app_server_unlock(server);
    for (size_t i = 0; i < RON_ARRAY_COUNT(listening); i++) {
        if (listening[i] != NULL &&
            io_server_stop(listening[i], rt_deadline_after_ms(0), &info) != RON_ERR_OK)
            return; /* its tasks go on: everything they use stays until the process ends */
    }
    app_server_lock(server);
    otlp = RON_TAKE(server->otlp);
    app_server_unlock(server);
    (void)io_otlp_stop(otlp);
    if (server->supervisor != NULL &&
        rt_supervisor_stop(server->supervisor, rt_deadline_after_ms(1000), &info) != RON_ERR_OK)
        return;
    server->exporter = rt_exporter_free(server->exporter);
    if (!app_roles_close(server))
        return;
    server->lifecycles[0] = rt_lifecycle_free(server->lifecycles[0]);
    server->supervisor = rt_supervisor_free(server->supervisor);
    server->reloads = rt_queue_free(server->reloads);
    server->spans = rt_spans_free(server->spans);
    server->metrics = rt_metrics_free(server->metrics);
    server->access = app_access_free(server->access);
    ron_wipe(server->operator_line, sizeof(server->operator_line));
    if (server->log != NULL &&
        rt_log_stop(server->log, rt_deadline_after_ms(1000), &info) == RON_ERR_OK)
        server->log = rt_log_free(server->log);
    server->routes = io_routes_free(server->routes);
    server->oap = io_oap_service_free(server->oap);
    server->tls = io_tls_free(server->tls);
    server->data_lock = io_file_close(server->data_lock);
    server->data = io_vfs_free(server->data);
    ron_buf_fini(&server->openapi);
    ron_buf_fini(&server->index);
    app_server_lock(server);
    if (server->config != server->born)
        server->config = config_free(server->config);
    app_server_unlock(server);
    server->born = config_free(server->born);
    rt_lock_fini(&server->lock);
}
