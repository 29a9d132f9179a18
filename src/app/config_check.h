/*
 * config_check.h - what the types of the keys cannot tell: whether a process could run with it.
 */
#ifndef RON_APP_CONFIG_CHECK_H
#define RON_APP_CONFIG_CHECK_H

#include "app/config.h"

/* Addresses, the exporter's endpoint and what the chosen roles ask; no file is looked at. Each
 * problem is told to `problem`, if there is one; RON_ERR_MALFORMED with the first. */
enum ron_err app_config_check(const struct config *config, config_problem_fn *problem,
                              void *context, struct ron_errinfo *reterr) RON_MUST_USE;

#endif
