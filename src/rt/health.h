/*
 * health.h - what becomes of a task that gave up: said in the log, readiness off; and the way back.
 *
 * Every role wires its supervisor like this: escalate = rt_health_escalate, context = its struct
 * rt_health, whose pointers are set before the first task is spawned.
 */
#ifndef RON_RT_HEALTH_H
#define RON_RT_HEALTH_H

#include "rt/lifecycle.h"
#include "rt/log.h"
#include "rt/supervisor.h"

struct rt_health { /* all are borrowed */
    struct rt_lifecycle *lifecycle;
    struct rt_supervisor *supervisor;
    struct rt_log *log; /* NULL for none */
};

/* An rt_escalate_fn: one log line with the task's last failure, RT_CAUSE_RESTART_STORM raised. */
void rt_health_escalate(void *health, const struct rt_task *task, const struct ron_errinfo *info);
/* Revive a task of the supervisor, say so, and clear the cause if it was the last one down. As
 * rt_task_revive. */
enum ron_err rt_health_revive(struct rt_health *health, struct rt_task *task,
                              struct ron_errinfo *reterr) RON_MUST_USE;

#endif
