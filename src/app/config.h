/*
 * config.h - the configuration of one process: defaults < file < environment < flags.
 *
 * Every value knows where it came from. Nothing is guessed: an unknown key, a wrong type or a value
 * out of bounds is a problem with its place and, for a misspelt key, the nearest name; with one
 * problem there is no configuration. Pure: text in, values out; the caller reads file and
 * environment. A key `ledger.queues.commit` is the variable RON_LEDGER__QUEUES__COMMIT.
 */
#ifndef RON_APP_CONFIG_H
#define RON_APP_CONFIG_H

#include "app/config_keys.h"
#include "base/bytes.h"

enum { CONFIG_PROBLEMS_MAX = 32, CONFIG_ORIGIN_SIZE = 300 };

/* One problem: "ron.toml:12:1: unknown key server.lisen; did you mean server.listen?" */
typedef void config_problem_fn(void *context, const char *message);

struct config_flag {
    const char *name; /* as typed: "--listen" */
    enum config_key key;
    const char *value;
};
struct config_sources {
    const char *file_name; /* in messages; NULL: no file */
    struct ron_slice file_text;
    const char *const *environment; /* "NAME=value", NULL-terminated; or NULL */
    const struct config_flag *flags;
    size_t flags_count;
    config_problem_fn *problem; /* each of them, at most CONFIG_PROBLEMS_MAX; may be NULL */
    void *context;
};

struct config; /* opaque, never changes once made */

/* RON_ERR_MALFORMED with the first problem; RON_ERR_NO_MEMORY. Borrows nothing. */
enum ron_err config_load(const struct config_sources *sources, struct config **ret_config,
                         struct ron_errinfo *reterr) RON_MUST_USE;
struct config *config_free(struct config *config);

/* The value; the key's type must be that one. */
bool config_bool(const struct config *config, enum config_key key);
uint64_t config_number(const struct config *config, enum config_key key);  /* COUNT, ns, bytes */
const char *config_text(const struct config *config, enum config_key key); /* TEXT, CHOICE */
/* I/O threads of the API: server.loops, or a quarter of the processors, at least 1. */
uint32_t config_loops(const struct config *config, uint32_t cpus_count);
/* "default", "ron.toml:12", "environment", "--listen". */
const char *config_origin(const struct config *config, enum config_key key);

/* May `next` take the place of `now` in a running process? RON_ERR_CONFLICT names the first key
 * that differs and is not hot: the whole of `next` is then refused. */
enum ron_err config_check_reload(const struct config *now, const struct config *next,
                                 struct ron_errinfo *reterr) RON_MUST_USE;

/* As ron.toml: with each value's origin, or the defaults with each key's meaning. */
void config_write(const struct config *config, struct ron_buf *buf);
void config_write_default(struct ron_buf *buf);
/* The variable of a key: "RON_SERVER__LISTEN". */
enum { CONFIG_VARIABLE_SIZE = 80 };
void config_variable(enum config_key key, char ret_name[static CONFIG_VARIABLE_SIZE]);

#endif
