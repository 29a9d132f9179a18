/*
 * config_read.h - the configuration of this process: ron.toml, environment and flags, read now.
 */
#ifndef RON_APP_CONFIG_READ_H
#define RON_APP_CONFIG_READ_H

#include "app/config.h"
#include "rt/lock_classes.h"

/* `file` NULL: ./ron.toml if there is one. Each problem is told to `problem` and counted. Errors as
 * config_load and io_path_read. */
enum ron_err app_config_read(const char *file, const struct config_flag *flags, size_t flags_count,
                             config_problem_fn *problem, void *context, size_t *ret_problems,
                             struct config **ret_config,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

#endif
