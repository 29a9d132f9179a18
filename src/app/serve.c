/*
 * serve.c - the life of a serving process: start, signals, staged stop. See serve.h.
 */
#include "app/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/serve_impl.h"
#include "auth/keyring_file.h"
#include "base/assert.h"
#include "base/secret.h"
#include "io/sd_notify.h"
#include "rt/clock.h"
#include "rt/registry.h"

/* Within TimeoutStopSec=15 of the unit: the roles, what is in flight, then the admin listener. */
enum { DRAIN_MS = 14000, ROLES_MS = 6000, API_MS = 5000, ADMIN_MS = 3000, ABORT_MS = 500 };

/* ---- The staged stop ----
 *
 * The lifecycle turns readiness off before the first step. */

/* Who asks for a reload, up to now. Whoever asks while one is under way, or right after it was
 * answered, is none of them: what they want to be read may be newer. */
struct asked {
    void *requests[APP_RELOADS_MAX];
    size_t count;
};

static struct asked take_asked(struct app_server *server)
{
    struct asked asked;

    asked.count = rt_queue_try_recv_many(server->reloads, asked.requests, APP_RELOADS_MAX);
    return asked;
}

static void answer_asked(const struct asked *asked, enum ron_err err,
                         const struct ron_errinfo *info)
{
    for (size_t i = 0; i < asked->count; i++) {
        if (err == RON_ERR_OK)
            io_reply(asked->requests[i],
                     &(struct io_reply){.status = 200,
                                        .media = "application/json",
                                        .body = RON_SLICE("{\"reloaded\":true}")});
        else
            io_reply_error(asked->requests[i], err, info, (struct ron_slice){0});
    }
}

static enum ron_err refuse(void *context, struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    struct app_server *server = context;
    struct ron_errinfo info = {0};
    enum ron_err err = ron_fail(&info, RON_ERR_DRAINING, "the server is shutting down");
    struct asked asked;

    (void)deadline;
    (void)reterr;
    rt_queue_close(server->reloads);
    asked = take_asked(server); /* all: the queue has no more places than that */
    answer_asked(&asked, err, &info);
    app_server_lock(server);
    if (server->api != NULL)
        io_server_drain(server->api);
    app_server_unlock(server);
    return RON_ERR_OK;
}

static enum ron_err stop_listener(struct app_server *server, struct io_server **listener,
                                  struct rt_deadline deadline,
                                  struct ron_errinfo *reterr) RON_BLOCKS
{
    struct io_server *stopping;

    app_server_lock(server); /* from here on nobody asks it for figures */
    stopping = *listener;
    *listener = NULL;
    app_server_unlock(server);
    return stopping == NULL ? RON_ERR_OK : io_server_stop(stopping, deadline, reterr);
}

/* The API still answers reads, and what the roles accepted before. */
static enum ron_err stop_roles(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    (void)deadline; /* roles have their own */
    return app_roles_stop(context, reterr);
}

static enum ron_err stop_api(void *context, struct rt_deadline deadline,
                             struct ron_errinfo *reterr) RON_BLOCKS
{
    struct app_server *server = context;

    return stop_listener(server, &server->api, deadline, reterr);
}

static enum ron_err stop_admin(void *context, struct rt_deadline deadline,
                               struct ron_errinfo *reterr) RON_BLOCKS
{
    struct app_server *server = context;

    return stop_listener(server, &server->admin, deadline, reterr);
}

static enum ron_err give_up(void *context, struct rt_deadline deadline, struct ron_errinfo *reterr)
{
    (void)context;
    (void)deadline;
    (void)reterr; /* the process ends by _exit: nothing has to be taken down */
    return RON_ERR_OK;
}

static const struct rt_life_step steps[] = {
    {"refuse", refuse, 0},
    {"roles", stop_roles, ROLES_MS},
    {"api", stop_api, API_MS},
    {"admin", stop_admin, ADMIN_MS},
};
const struct rt_life_role app_server_role = {
    .name = APP_SERVER_ROLE,
    .steps = steps,
    .steps_count = RON_ARRAY_COUNT(steps),
    .drain_ms = DRAIN_MS,
    .abort = give_up,
    .abort_ms = ABORT_MS,
};

/* ---- Signals ---- */

static sigset_t signals_of_ours(void)
{
    sigset_t signals;

    RON_MUST_ZERO(sigemptyset(&signals));
    RON_MUST_ZERO(sigaddset(&signals, SIGTERM));
    RON_MUST_ZERO(sigaddset(&signals, SIGINT));
    RON_MUST_ZERO(sigaddset(&signals, SIGHUP));
    RON_MUST_ZERO(sigaddset(&signals, APP_SIGNAL_DRAIN));
    return signals;
}

/* Before the first thread: all of them inherit the mask, so signals wait for sigwaitinfo. */
static void take_signals(void)
{
    sigset_t signals = signals_of_ours();
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    RON_MUST_ZERO(sigaction(SIGPIPE, &ignore, NULL));
    RON_MUST_ZERO(sigprocmask(SIG_BLOCK, &signals, NULL));
}

static void end_at_once(int number)
{
    (void)number;
    _exit(APP_EXIT_FORCED);
}

/* From now on a second TERM or INT ends the process, also one that waits already. */
static void arm_second_signal(void)
{
    struct sigaction end = {.sa_handler = end_at_once};
    sigset_t signals;

    RON_MUST_ZERO(sigaction(SIGTERM, &end, NULL));
    RON_MUST_ZERO(sigaction(SIGINT, &end, NULL));
    RON_MUST_ZERO(sigemptyset(&signals));
    RON_MUST_ZERO(sigaddset(&signals, SIGTERM));
    RON_MUST_ZERO(sigaddset(&signals, SIGINT));
    RON_MUST_ZERO(sigprocmask(SIG_UNBLOCK, &signals, NULL));
}

static void notify(struct app_server *server, const char *lines)
{
    struct ron_errinfo info = {0};

    if (io_sd_notify(getenv("NOTIFY_SOCKET"), lines, &info) != RON_ERR_OK)
        rt_log(server->log, RT_LOG_WARN, "the service manager was not told", rt_log_info(&info));
}

static void obey_hangup(struct app_server *server) RON_BLOCKS
{
    const struct asked asked = take_asked(server); /* before anything is read for them */
    struct ron_errinfo info = {0};
    char lines[80];
    enum ron_err err;

    (void)snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%llu\n",
                   (unsigned long long)(rt_now_ns() / 1000));
    notify(server, lines);
    err = app_server_reload(server, &info);
    if (err == RON_ERR_OK)
        rt_log(server->log, RT_LOG_INFO, "reloaded",
               rt_log_u64("keyring_epoch", app_access_get_stats(server->access).epoch));
    else
        rt_log(server->log, RT_LOG_ERROR, "reload refused: nothing has changed",
               rt_log_info(&info));
    answer_asked(&asked, err, &info);
    notify(server, "READY=1\n");
}

/* Until a signal that ends it. */
static void obey_signals(struct app_server *server) RON_BLOCKS
{
    sigset_t signals = signals_of_ours();

    for (;;) {
        int number = sigwaitinfo(&signals, NULL);

        RON_ASSERT(number > 0 || errno == EINTR);
        if (number == SIGHUP)
            obey_hangup(server);
        else if (number > 0)
            return;
    }
}

/* ---- The life ---- */

static void announce(struct app_server *server)
{
    const struct app_serve_options *options = server->options;
    char line[APP_ADDRESS_SIZE_MAX + 64];
    char urls[2][APP_ADDRESS_SIZE_MAX];

    app_server_lock(server);
    (void)snprintf(urls[0], sizeof(urls[0]), "%s", io_server_url(server->api, 0));
    (void)snprintf(urls[1], sizeof(urls[1]), "%s", io_server_url(server->admin, 0));
    app_server_unlock(server);
    (void)snprintf(line, sizeof(line), "api %s", urls[0]);
    options->announce(options->context, line);
    (void)snprintf(line, sizeof(line), "admin %s", urls[1]);
    options->announce(options->context, line);
    if (options->amnesia) {
        options->announce(options->context, server->operator_line);
        ron_wipe(server->operator_line, sizeof(server->operator_line));
    } else {
        (void)snprintf(line, sizeof(line), "token %s/" AUTH_OPERATOR_TOKEN_NAME,
                       io_vfs_name(server->data));
        options->announce(options->context, line);
    }
    rt_log(server->log, RT_LOG_INFO, "serving", rt_log_text("version", options->version),
           rt_log_text("api", urls[0]), rt_log_text("admin", urls[1]),
           rt_log_bool("amnesia", options->amnesia));
}

static enum app_exit stop(struct app_server *server, struct ron_errinfo *reterr) RON_BLOCKS
{
    struct rt_life_report report = {0};
    struct ron_errinfo info = {0};
    enum app_exit code = APP_EXIT_OK;

    rt_log(server->log, RT_LOG_INFO, "stopping");
    notify(server, "STOPPING=1\n");
    if (rt_lifecycle_stop(server->lifecycles[0], &report, &info) != RON_ERR_OK)
        code = APP_EXIT_DRAIN;
    for (size_t i = 0; i < report.steps_count; i++) {
        if (report.steps[i].err == RON_ERR_OK)
            continue;
        code = APP_EXIT_DRAIN;
        rt_log(server->log, RT_LOG_ERROR, "a step of the stop failed",
               rt_log_text("step", report.steps[i].name), rt_log_err(report.steps[i].err));
    }
    if (code == APP_EXIT_OK) {
        rt_log(server->log, RT_LOG_INFO, "stopped");
        return code;
    }
    (void)ron_fail(reterr, RON_ERR_TIMEOUT, "the stop did not end in time: requests are lost");
    (void)!rt_log_flush(server->log, rt_deadline_after_ms(500), NULL);
    return code;
}

enum app_exit app_serve(const struct app_serve_options *options, bool *ret_told,
                        struct ron_errinfo *reterr)
{
    static struct app_server server; /* threads may outlive a stop that failed */
    enum app_exit code;

    *ret_told = false;
    take_signals();
    /* What is in memory (keys, tokens on their way) is no file: no core, no debugger of others. */
    RON_MUST_ZERO(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
    rt_init();
    server = (struct app_server){.options = options};
    rt_lock_init(&server.lock, "server", RON_RANK_cfg_snapshot);
    ron_buf_init(&server.openapi, APP_PAGE_SIZE_MAX);
    ron_buf_init(&server.index, APP_PAGE_SIZE_MAX);
    code = app_server_start(&server, ret_told, reterr);
    if (code == APP_EXIT_OK) {
        announce(&server);
        notify(&server, "READY=1\n");
        obey_signals(&server);
        arm_second_signal();
        code = stop(&server, reterr);
        if (code != APP_EXIT_OK)
            return code; /* what could not be stopped stays as it is until the process ends */
    }
    app_server_free(&server);
    return code;
}
