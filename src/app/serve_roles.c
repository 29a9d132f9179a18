/*
 * serve_roles.c - the roles of a serving process: chosen, opened, started, stopped, closed.
 */
#include "app/serve_impl.h"
#include "base/printable.h"

static const struct app_part *part_of(struct ron_slice name)
{
    for (size_t i = 0; i < app_parts_count; i++) {
        if (ron_slice_equal(name, ron_slice_text(app_parts[i]->name)))
            return app_parts[i];
    }
    return NULL;
}

static bool is_chosen(const struct app_server *server, const struct app_part *part)
{
    for (size_t i = 0; i < server->roles_count; i++) {
        if (server->roles[i].part == part)
            return true;
    }
    return false;
}

static void choose(struct app_server *server, const struct app_part *part)
{
    if (!is_chosen(server, part)) {
        RON_ASSERT(server->roles_count < APP_PARTS_MAX);
        server->roles[server->roles_count++] = (struct app_running){.part = part};
    }
}

static enum ron_err choose_by_name(struct app_server *server, struct ron_slice name,
                                   struct ron_errinfo *reterr)
{
    const struct app_part *part = part_of(name);
    enum auth_role role;
    char shown[48];

    if (part != NULL) {
        choose(server, part);
        return RON_ERR_OK;
    }
    (void)ron_printable(name, shown, sizeof(shown));
    if (auth_role_find(name, &role) && role != AUTH_ROLE_SERVER)
        return ron_fail(reterr, RON_ERR_NOT_FOUND, "role %s is not part of this build yet", shown);
    return ron_fail(reterr, RON_ERR_MALFORMED, "server.roles: there is no role '%s'", shown);
}

enum ron_err app_roles_choose(struct app_server *server, const char *list,
                              struct ron_errinfo *reterr)
{
    const struct ron_slice text = ron_slice_text(list);
    enum ron_err err = RON_ERR_OK;
    size_t start = 0;

    server->roles_count = 0;
    if (ron_slice_equal(text, RON_SLICE("all"))) {
        for (size_t i = 0; i < app_parts_count; i++)
            choose(server, app_parts[i]);
        return RON_ERR_OK;
    }
    for (size_t i = 0; i <= text.size && err == RON_ERR_OK; i++) {
        if (i < text.size && text.data[i] != ',')
            continue;
        err = choose_by_name(server, ron_slice_of(text.data + start, i - start), reterr);
        start = i + 1;
    }
    return err;
}

enum ron_err app_roles_open(struct app_server *server, const struct config *config,
                            struct ron_errinfo *reterr)
{
    const struct app_part_options options = {.config = config,
                                             .data = server->data,
                                             .metrics = server->metrics,
                                             .spans = server->spans,
                                             .log = server->log};

    for (size_t i = 0; i < server->roles_count; i++) {
        struct app_running *role = &server->roles[i];
        const enum ron_err err = role->part->open(&options, &role->state, reterr);

        if (err != RON_ERR_OK)
            return err;
        server->lifecycles[server->lifecycles_count++] = role->part->lifecycle(role->state);
        rt_exporter_follow(server->exporter, role->part->name, role->part->supervisor(role->state));
        rt_exporter_follow_role(server->exporter, role->part->lifecycle(role->state));
    }
    return RON_ERR_OK;
}

enum ron_err app_roles_add_routes(struct app_server *server, struct ron_errinfo *reterr)
{
    enum ron_err err = io_oap_service_new(&server->oap, reterr);

    for (size_t i = 0; i < server->roles_count && err == RON_ERR_OK; i++)
        err = server->roles[i].part->add_routes(server->roles[i].state, server->routes, server->oap,
                                                reterr);
    return err;
}

enum ron_err app_roles_start(struct app_server *server, struct ron_errinfo *reterr)
{
    enum ron_err err = RON_ERR_OK;

    for (size_t i = 0; i < server->roles_count && err == RON_ERR_OK; i++) {
        server->roles[i].started = true; /* also if it fails: it must be stopped all the same */
        err = server->roles[i].part->start(server->roles[i].state, reterr);
    }
    return err;
}

enum ron_err app_roles_stop(struct app_server *server, struct ron_errinfo *reterr)
{
    enum ron_err result = RON_ERR_OK;

    for (size_t i = server->roles_count; i > 0; i--) {
        struct app_running *role = &server->roles[i - 1];
        struct rt_life_report report = {0};
        struct ron_errinfo info = {0};
        enum ron_err err;

        if (!role->started)
            continue;
        err = role->part->stop(role->state, &report, &info);
        role->started = err != RON_ERR_OK; /* what did not stop must not be closed */
        for (size_t j = 0; j < report.steps_count; j++) {
            if (report.steps[j].err != RON_ERR_OK)
                rt_log(server->log, RT_LOG_ERROR, "a step of a role's drain failed",
                       rt_log_text("role", role->part->name),
                       rt_log_text("step", report.steps[j].name), rt_log_err(report.steps[j].err));
        }
        if (err != RON_ERR_OK && result == RON_ERR_OK) {
            result = err;
            if (reterr != NULL)
                *reterr = info;
        }
    }
    return result;
}

bool app_roles_close(struct app_server *server)
{
    struct ron_errinfo info = {0};

    if (app_roles_stop(server, &info) != RON_ERR_OK)
        return false;
    for (size_t i = server->roles_count; i > 0; i--) {
        struct app_running *role = &server->roles[i - 1];

        if (role->state != NULL)
            role->part->close(role->state);
        role->state = NULL;
    }
    server->roles_count = 0;
    return true;
}
