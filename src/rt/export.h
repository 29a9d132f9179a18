/*
 * export.h - what the runtime's objects count about themselves, carried into metrics.
 *
 * Queues, buses, lanes, timers, supervisors, lifecycles and the log keep their own figures; a
 * collector reads them at scrape time. Counters grow by what was added since the last collection,
 * so they never fall when an object ends; what an object counted between its last collection and
 * its end is lost.
 */
#ifndef RON_RT_EXPORT_H
#define RON_RT_EXPORT_H

#include "rt/lifecycle.h"
#include "rt/log.h"
#include "rt/metric_names.h"
#include "rt/supervisor.h"

enum { RT_EXPORTER_SUPERVISORS_MAX = 16, RT_EXPORTER_ROLES_MAX = 16 };

struct rt_exporter; /* opaque */

struct rt_exporter_options {
    struct rt_metrics *metrics; /* must hold rt_metric_table; borrowed for the exporter's life */
    const char *q_role;         /* role whose queues are labelled `q` too; NULL for none */
    struct rt_log *log;         /* NULL for none; must outlive the exporter */
};

/* RON_ERR_NO_MEMORY. The caller owns it. */
enum ron_err rt_exporter_new(const struct rt_exporter_options *options,
                             struct rt_exporter **ret_exporter,
                             struct ron_errinfo *reterr) RON_MUST_USE;
struct rt_exporter *rt_exporter_free(struct rt_exporter *exporter); /* NULL is ok */

/* Read this supervisor's tasks too, as of `role` (borrowed). It must live as long as the exporter.
 * Before the first collection; at most RT_EXPORTER_SUPERVISORS_MAX. */
void rt_exporter_follow(struct rt_exporter *exporter, const char *role,
                        struct rt_supervisor *supervisor);

/* Show this role's readiness too: readyz_degraded of each of its causes. It must live as long as
 * the exporter. Before the first collection; at most RT_EXPORTER_ROLES_MAX. */
void rt_exporter_follow_role(struct rt_exporter *exporter, struct rt_lifecycle *lifecycle);

/* Read every queue, bus, set of lanes and set of timers of the registry, what is followed, and the
 * log. One thread at a time, holding no lock. */
void rt_exporter_collect(struct rt_exporter *exporter);

#endif
