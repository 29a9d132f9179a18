/*
 * config_check.c - see config_check.h.
 */
#include "app/config_check.h"

#include <string.h>

#include "app/parts.h"
#include "io/address.h"
#include "io/otlp.h"

static bool chosen(const char *list, const char *role)
{
    const size_t size = strlen(role);

    if (strcmp(list, "all") == 0)
        return true;
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, role, size) == 0 && (at[size] == ',' || at[size] == '\0'))
            return true;
    }
    return false;
}

static enum ron_err check_address(const struct config *config, enum config_key key,
                                  const char *name, struct ron_errinfo *reterr)
{
    const char *text = config_text(config, key);
    struct io_address address;
    const enum ron_err err = io_address_parse(text, &address, reterr);

    return err == RON_ERR_OK ? err : ron_wrap(reterr, err, "%s: %s", name, text);
}

static enum ron_err check_endpoint(const struct config *config, struct ron_errinfo *reterr)
{
    const char *endpoint = config_text(config, CONFIG_OTLP_ENDPOINT);

    return endpoint[0] == '\0' ? RON_ERR_OK : io_otlp_check(endpoint, reterr);
}

struct found {
    config_problem_fn *problem;
    void *context;
    struct ron_errinfo *reterr;
    enum ron_err first;
};

static void take(struct found *found, enum ron_err err, const struct ron_errinfo *info)
{
    if (err == RON_ERR_OK)
        return;
    if (found->problem != NULL)
        found->problem(found->context, info->message);
    if (found->first == RON_ERR_OK) {
        found->first = err;
        if (found->reterr != NULL)
            *found->reterr = *info;
    }
}

enum ron_err app_config_check(const struct config *config, config_problem_fn *problem,
                              void *context, struct ron_errinfo *reterr)
{
    const char *roles = config_text(config, CONFIG_SERVER_ROLES);
    struct found found = {.problem = problem, .context = context, .reterr = reterr};
    struct ron_errinfo info = {0};

    take(&found, check_address(config, CONFIG_SERVER_LISTEN, "server.listen", &info), &info);
    take(&found, check_address(config, CONFIG_SERVER_ADMIN, "server.admin", &info), &info);
    take(&found, check_endpoint(config, &info), &info);
    for (size_t i = 0; i < app_parts_count; i++)
        if (chosen(roles, app_parts[i]->name))
            take(&found, app_parts[i]->check(config, &info), &info);
    return found.first;
}
