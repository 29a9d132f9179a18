/*
 * parts.h - what a process is made of: one row per role, in the order in which they are opened and
 * started; they stop and close in the opposite one.
 */
#ifndef RON_APP_PARTS_H
#define RON_APP_PARTS_H

#include "app/config.h"
#include "io/oap_server.h"
#include "io/vfs.h"
#include "rt/lifecycle.h"
#include "rt/log.h"
#include "rt/metrics.h"
#include "rt/span.h"

enum { APP_PARTS_MAX = 8 };

struct app_part_options { /* all borrowed for the part's life */
    const struct config *config;
    struct io_vfs *data;        /* NULL: amnesia */
    struct rt_metrics *metrics; /* with io_log_metric_table, for the roles' logs */
    struct rt_spans *spans;     /* NULL: none */
    struct rt_log *log;
};

struct app_part {
    const char *name;
    /* For the topology: make the part with every queue, bus, watch and task it will ever have, and
     * no outside world: no file is opened, no address bound. On failure nothing is left behind.
     * Both may block. */
    enum ron_err (*build)(void **ret_part, struct ron_errinfo *reterr);
    void (*destroy)(void *part); /* all of it, its tasks included */

    /* For a serving process. What of the configuration only the part can judge, before any file is
     * touched. */
    enum ron_err (*check)(const struct config *config, struct ron_errinfo *reterr);
    /* Open files and keys; nothing runs. Whatever is wrong then is the data's. */
    enum ron_err (*open)(const struct app_part_options *options, void **ret_part,
                         struct ron_errinfo *reterr);
    enum ron_err (*add_routes)(void *part, struct io_routes *routes, struct io_oap_service *oap,
                               struct ron_errinfo *reterr);
    enum ron_err (*start)(void *part, struct ron_errinfo *reterr);
    /* Drain within its own deadlines. RON_ERR_TIMEOUT: it had to abort, and must not be closed. */
    enum ron_err (*stop)(void *part, struct rt_life_report *ret_report, struct ron_errinfo *reterr);
    void (*close)(void *part); /* stopped, or never started */
    struct rt_lifecycle *(*lifecycle)(void *part);
    struct rt_supervisor *(*supervisor)(void *part);
    struct io_budget (*budget)(const struct config *config);
    struct rt_metric_table metrics;
};

extern const struct app_part *const app_parts[];
extern const size_t app_parts_count;

uint32_t app_cpus_count(void); /* at least 1 */

extern const struct app_part app_part_ledger; /* part_ledger.c */

#endif
