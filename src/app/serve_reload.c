/*
 * serve_reload.c - configuration, keyring and certificates again, while requests go on.
 *
 * First everything that can fail, then everything that cannot: a bad file changes nothing.
 */
#include "app/config_read.h"
#include "app/serve_impl.h"
#include "auth/keyring_file.h"

/* Once there is a log, problems go there. */
static void log_problem(void *context, const char *message)
{
    struct app_server *server = context;

    rt_log(server->log, RT_LOG_ERROR, "a problem of the configuration",
           rt_log_text("problem", message));
}

enum ron_err app_server_read_config(struct app_server *server, bool *ret_told,
                                    struct config **ret_config, struct ron_errinfo *reterr)
{
    const struct app_serve_options *options = server->options;
    bool running = server->log != NULL;
    size_t problems_count = 0;
    enum ron_err err = app_config_read(options->config_file, options->flags, options->flags_count,
                                       running ? log_problem : options->problem,
                                       running ? server : options->context, &problems_count,
                                       ret_config, reterr);

    *ret_told = err != RON_ERR_OK && problems_count > 0 && (running || options->problem != NULL);
    return err;
}

void app_server_set_log_level(struct app_server *server, const char *level)
{
    static const struct {
        const char *name;
        enum rt_log_level level;
    } levels[] = {{"debug", RT_LOG_DEBUG},
                  {"info", RT_LOG_INFO},
                  {"warn", RT_LOG_WARN},
                  {"error", RT_LOG_ERROR}};

    for (size_t i = 0; i < RON_ARRAY_COUNT(levels); i++) {
        if (strcmp(level, levels[i].name) == 0)
            rt_log_set_level(server->log, levels[i].level);
    }
}

static enum ron_err read_keyring(struct app_server *server, const char *dir,
                                 struct app_access_stage **ret_stage,
                                 struct ron_errinfo *reterr) RON_BLOCKS
{
    struct auth_keyring *keyring RON_CLEANUP(auth_keyring_freep) = NULL;
    enum ron_err err = auth_keyring_check_private(dir, AUTH_KEYRING_NAME, reterr);

    if (err == RON_ERR_OK)
        err = auth_keyring_file_load(server->data, AUTH_KEYRING_NAME, &keyring, reterr);
    if (err == RON_ERR_OK)
        err = app_access_prepare(server->access, keyring, ret_stage, reterr);
    if (err == RON_ERR_OK)
        keyring = NULL; /* the stage has it */
    return err;
}

static void set_rates(struct io_server *listener, const struct config *config)
{
    if (listener != NULL)
        (void)io_server_set_rates(listener, APP_SERVER_ROLE,
                                  (uint32_t)config_number(config, CONFIG_SERVER_READS_PER_S), 0);
}

enum ron_err app_server_reload(struct app_server *server, struct ron_errinfo *reterr)
{
    struct app_access_stage *stage = NULL;
    struct config *next = NULL;
    struct config *now;
    bool told;
    enum ron_err err;

    app_server_lock(server);
    now = server->config; /* only this thread replaces it */
    app_server_unlock(server);
    err = app_server_read_config(server, &told, &next, reterr);
    if (err == RON_ERR_OK)
        err = config_check_reload(now, next, reterr);
    if (err == RON_ERR_OK && server->data != NULL)
        err = read_keyring(server, config_text(now, CONFIG_SERVER_DATA), &stage, reterr);
    if (err == RON_ERR_OK && server->tls != NULL)
        err = io_tls_reload(server->tls, reterr); /* the last that can fail */
    if (err != RON_ERR_OK) {
        (void)app_access_stage_free(stage);
        (void)config_free(next);
        return err;
    }
    if (stage != NULL)
        app_access_commit(server->access, stage);
    app_server_set_log_level(server, config_text(next, CONFIG_LOG_LEVEL));
    if (server->spans != NULL)
        rt_spans_set_sample(server->spans,
                            (uint32_t)config_number(next, CONFIG_OTLP_SAMPLE_PERMILLE));
    app_server_lock(server);
    set_rates(server->api, next);
    set_rates(server->admin, next);
    server->config = next;
    app_server_unlock(server);
    if (now != server->born)
        (void)config_free(now);
    return RON_ERR_OK;
}
