/*
 * health.c - see health.h.
 */
#include "rt/health.h"

void rt_health_escalate(void *context, const struct rt_task *task, const struct ron_errinfo *info)
{
    struct rt_health *health = context;

    rt_log(health->log, RT_LOG_ERROR, "a task gave up: it failed too often and stays down",
           rt_log_text("role", rt_lifecycle_role(health->lifecycle)->name),
           rt_log_text("subject", rt_task_name(task)), rt_log_info(info));
    rt_lifecycle_check_tasks(health->lifecycle, health->supervisor);
}

enum ron_err rt_health_revive(struct rt_health *health, struct rt_task *task,
                              struct ron_errinfo *reterr)
{
    enum ron_err err = rt_task_revive(task, reterr);

    if (err != RON_ERR_OK)
        return err;
    rt_log(health->log, RT_LOG_WARN, "a task runs again",
           rt_log_text("role", rt_lifecycle_role(health->lifecycle)->name),
           rt_log_text("subject", rt_task_name(task)));
    rt_lifecycle_check_tasks(health->lifecycle, health->supervisor);
    return RON_ERR_OK;
}
