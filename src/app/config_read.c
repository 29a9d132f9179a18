/*
 * config_read.c - the configuration of this process. See config_read.h.
 */
#include "app/config_read.h"

#include <unistd.h>

#include "base/limits.h"
#include "io/path_file.h"

struct counted {
    config_problem_fn *problem;
    void *context;
    size_t count;
};

static void count_problem(void *context, const char *message)
{
    struct counted *counted = context;

    counted->count++;
    if (counted->problem != NULL)
        counted->problem(counted->context, message);
}

enum ron_err app_config_read(const char *file, const struct config_flag *flags, size_t flags_count,
                             config_problem_fn *problem, void *context, size_t *ret_problems,
                             struct config **ret_config, struct ron_errinfo *reterr)
{
    struct counted counted = {problem, context, 0};
    struct config_sources sources = {
        .file_name = file == NULL ? "ron.toml" : file,
        .environment = (const char *const *)environ,
        .flags = flags,
        .flags_count = flags_count,
        .problem = count_problem,
        .context = &counted,
    };
    struct ron_errinfo info = {0};
    struct ron_buf text;
    enum ron_err err;

    ron_buf_init(&text, RON_TOML_SIZE_MAX);
    err = io_path_read(sources.file_name, RON_TOML_SIZE_MAX, &text, &info);
    if (err == RON_ERR_NOT_FOUND && file == NULL) {
        sources.file_name = NULL;
        err = RON_ERR_OK;
    }
    sources.file_text = ron_buf_slice(&text);
    if (err == RON_ERR_OK)
        err = config_load(&sources, ret_config, reterr);
    else
        err = ron_fail_sys(reterr, err, info.sys_errno, "%s", info.message);
    ron_buf_fini(&text);
    *ret_problems = counted.count;
    return err;
}
