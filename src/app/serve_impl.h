/*
 * serve_impl.h - the state of a serving process, shared by the files serve*.c and base_routes.c.
 */
#ifndef RON_APP_SERVE_IMPL_H
#define RON_APP_SERVE_IMPL_H

#include <signal.h>

#include "app/access.h"
#include "app/parts.h"
#include "app/serve.h"
#include "app/serve_metrics.h"
#include "io/otlp.h"
#include "io/tls.h"
#include "io/vfs.h"
#include "rt/export.h"
#include "rt/health.h"
#include "rt/lock.h"
#include "rt/queue.h"
#include "rt/span.h"

#define APP_SERVER_ROLE "server" /* what all roles share: its routes, tasks and readiness */

/* What a request for a drain sends to the thread with the signals. Not TERM: asked twice, that
 * would end the process at once. */
#define APP_SIGNAL_DRAIN SIGUSR1

enum {
    APP_PAGE_SIZE_MAX = 1 << 20, /* of a reply that is made here */
    APP_RELOADS_MAX = 8,         /* POST /admin/server/reload that wait */
    APP_ADDRESS_SIZE_MAX = 200,  /* as the configuration's */
    APP_UNIX_UIDS_MAX = 16,
    APP_LISTENERS_MAX = 3, /* API, API on a Unix socket, admin */
};

struct app_running { /* a role of this process */
    const struct app_part *part;
    void *state; /* NULL: not opened */
    bool started;
};

struct app_server {
    const struct app_serve_options *options;
    struct rt_lock lock; /* class cfg_snapshot */
    struct config *config RON_GUARDED_BY(cfg_snapshot);
    struct config *born; /* of the start: listeners and certificates borrow its texts */
    struct io_server *
        api RON_GUARDED_BY(cfg_snapshot); /* NULL before its start and after its stop */
    struct io_server *admin RON_GUARDED_BY(cfg_snapshot);

    struct io_vfs *data; /* NULL with amnesia */
    struct io_file *data_lock;
    struct app_access *access;
    struct rt_log *log;
    int log_fd;
    struct rt_metrics *metrics;
    struct rt_exporter *exporter;
    struct app_serve_metrics counted;
    struct rt_health health;
    struct rt_supervisor *supervisor;
    struct rt_lifecycle *lifecycles[APP_PARTS_MAX + 1]; /* the server's own first */
    size_t lifecycles_count;
    struct rt_queue *reloads;                          /* of struct io_request */
    struct rt_spans *spans;                            /* NULL without a collector */
    struct io_otlp *otlp RON_GUARDED_BY(cfg_snapshot); /* the same */
    struct io_tls *tls;
    struct io_routes *routes;
    struct ron_buf openapi, index;
    struct app_running roles[APP_PARTS_MAX];
    size_t roles_count;
    struct io_oap_service *oap;
    struct io_budget budgets[APP_PARTS_MAX + 1]; /* the server's own first */
    char unix_address[APP_ADDRESS_SIZE_MAX + 8];
    uint32_t unix_uids[APP_UNIX_UIDS_MAX];
    uint32_t unix_uids_count;
    char operator_line[sizeof("token ") + AUTH_TOKEN_TEXT_SIZE]; /* amnesia: wiped once told */
};

static inline void app_server_lock(struct app_server *server) RON_LOCKS(cfg_snapshot)
{
    rt_lock_take(&server->lock);
}
static inline void app_server_unlock(struct app_server *server) RON_UNLOCKS(cfg_snapshot)
{
    rt_lock_drop(&server->lock);
}

/* serve_start.c: make everything up to the listeners; on failure what was made is still there. */
enum app_exit app_server_start(struct app_server *server, bool *ret_told,
                               struct ron_errinfo *reterr) RON_BLOCKS;
void app_server_free(struct app_server *server) RON_BLOCKS;

/* serve_roles.c. `all`, or names with commas between: RON_ERR_MALFORMED no such role,
 * RON_ERR_NOT_FOUND one that is not built. */
enum ron_err app_roles_choose(struct app_server *server, const char *list,
                              struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err app_roles_open(struct app_server *server, const struct config *config,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
enum ron_err app_roles_add_routes(struct app_server *server,
                                  struct ron_errinfo *reterr) RON_MUST_USE;
enum ron_err app_roles_start(struct app_server *server,
                             struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* Drain them, the last started first; may be called again. */
enum ron_err app_roles_stop(struct app_server *server,
                            struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
/* False if one did not stop: then nothing is closed. */
bool app_roles_close(struct app_server *server) RON_MUST_USE RON_BLOCKS;

/* serve_reload.c: configuration, keyring and certificates again; all or nothing. */
enum ron_err app_server_reload(struct app_server *server,
                               struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;
void app_server_set_log_level(struct app_server *server, const char *level);
/* What the start and every reload read. */
enum ron_err app_server_read_config(struct app_server *server, bool *ret_told,
                                    struct config **ret_config,
                                    struct ron_errinfo *reterr) RON_MUST_USE RON_BLOCKS;

/* serve_stop.c: the staged stop. */
extern const struct rt_life_role app_server_role;

#endif
