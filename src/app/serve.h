/*
 * serve.h - one process that serves: configuration, data directory, keyring, listeners, signals.
 *
 * Everything is made in one order and taken down in the opposite one. Signals arrive at one place,
 * the thread that called app_serve: TERM and INT begin the staged stop (a second one ends the
 * process at once), HUP reads configuration, certificates and keyring again: all of it or nothing.
 */
#ifndef RON_APP_SERVE_H
#define RON_APP_SERVE_H

#include "app/config.h"
#include "rt/lock_classes.h"

/* How the process ends; part of its interface (docs/operations.md). */
enum app_exit {
    APP_EXIT_OK = 0,      /* stopped as asked, everything answered */
    APP_EXIT_FAILED = 1,  /* no memory, no thread: the system refused */
    APP_EXIT_USAGE = 2,   /* the command line */
    APP_EXIT_CONFIG = 3,  /* configuration, roles, certificates, an address that may not be used */
    APP_EXIT_ADDRESS = 4, /* an address is in use, or binding it is not allowed */
    APP_EXIT_DATA = 5,    /* data directory: missing, read-only, in use, open to others */
    APP_EXIT_KEYRING = 6, /* damaged, or open to others */
    APP_EXIT_DRAIN = 7,   /* stopped, but something was not answered in time */
    APP_EXIT_FORCED = 8,  /* a second signal */
};

enum { APP_KEYRING_FD_NONE = -1 };

struct app_serve_options {
    const char *version;
    const char *config_file; /* NULL: ./ron.toml if there is one */
    const struct config_flag *flags;
    size_t flags_count;
    bool amnesia;   /* nothing durable: no data directory, keyring in memory */
    int keyring_fd; /* with amnesia: read the keyring here, or APP_KEYRING_FD_NONE */
    config_problem_fn *problem;
    /* A line for scripts. It may hold the operator's token (amnesia): not to be kept. */
    void (*announce)(void *context, const char *line);
    void *context; /* of both */
};

/* Serve until a signal ends it. *reterr is filled unless APP_EXIT_OK; *ret_told says that the
 * problems were told one by one already. Before any thread is made. */
enum app_exit app_serve(const struct app_serve_options *options, bool *ret_told,
                        struct ron_errinfo *reterr) RON_BLOCKS;

#endif
