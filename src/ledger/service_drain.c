/*
 * service_drain.c - the end of the pipeline, in its order: ingress, prevalidators, sequencer,
 * committer, final root; and what it says of itself meanwhile.
 */
#include "ledger/service_impl.h"

static enum ron_err join(struct rt_task **task, struct rt_deadline deadline,
                         struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err result, err;

    if (*task == NULL)
        return RON_ERR_OK;
    err = rt_task_join(*task, deadline, &result, reterr);
    if (err == RON_ERR_OK)
        *task = NULL;
    return err;
}

static enum ron_err drain_ingress(void *context, struct rt_deadline deadline,
                                  struct ron_errinfo *reterr)
{
    struct ledger_service *service = context;

    (void)deadline;
    (void)reterr;
    rt_queue_close(service->ingress);
    return RON_ERR_OK;
}

static enum ron_err join_prevalidators(struct ledger_service *service, struct rt_deadline deadline,
                                       struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err = RON_ERR_OK;

    for (uint32_t i = 0; i < service->options.prevalidators_count && err == RON_ERR_OK; i++)
        err = join(&service->prevalidators[i].task, deadline, reterr);
    return err;
}

static enum ron_err drain_prevalidators(void *context, struct rt_deadline deadline,
                                        struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = context;
    /* Half of the time is for answers from outside: the tasks behind need theirs. */
    const struct rt_deadline half = rt_deadline_after_ns(rt_deadline_remaining_ns(deadline) / 2);
    enum ron_err err = join_prevalidators(service, deadline, reterr);

    if (service->options.checks != NULL) {
        if (err == RON_ERR_OK)
            (void)!ledger_checks_await(service->options.checks, half, NULL);
        ledger_checks_cancel(service->options.checks);
    }
    for (unsigned i = 0; i < LEDGER_CHECK__COUNT && err == RON_ERR_OK; i++)
        err = join(&service->checkers[i].task, deadline, reterr);
    if (err == RON_ERR_OK)
        err = join(&service->checks_task, deadline, reterr);
    if (err != RON_ERR_OK)
        return err;
    queue_sweep(service, service->ingress, RON_ERR_DRAINING, "no prevalidator was left to take it");
    rt_queue_close(service->preval);
    return RON_ERR_OK;
}

/* The Snapshotter, which may wait for the Sequencer, is the first to go. */
static enum ron_err drain_snapshots(struct ledger_service *service, struct rt_deadline deadline,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    enum ron_err err;

    if (service->options.snapshot.vfs == NULL)
        return RON_ERR_OK;
    rt_watch_close(service->snapshots.wake);
    err = join(&service->snapshots.task, deadline, reterr);
    rt_watch_close(service->snapshots.finished);
    return err;
}

static enum ron_err drain_sequencer(void *context, struct rt_deadline deadline,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = context;
    enum ron_err err = drain_snapshots(service, deadline, reterr);

    if (err == RON_ERR_OK)
        err = join(&service->sequencer.task, deadline, reterr);
    if (err != RON_ERR_OK)
        return err;
    queue_sweep(service, service->preval, RON_ERR_DRAINING, "the sequencer has ended");
    rt_queue_close(service->commit);
    return RON_ERR_OK;
}

static enum ron_err drain_committer(void *context, struct rt_deadline deadline,
                                    struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = context;
    enum ron_err err = join(&service->committer.task, deadline, reterr);

    if (err != RON_ERR_OK)
        return err;
    queue_sweep(service, service->commit, RON_ERR_DRAINING, "the committer has ended");
    return RON_ERR_OK;
}

/* The last root is out; an engine whose log is known to be whole is closed. */
static enum ron_err drain_roots(void *context, struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = context;
    bool started = false;
    enum ron_err err;

    rt_bus_close(service->roots.bus);
    err = join(&service->roots.task, deadline, reterr);
    service_mark_again(service); /* the last chance */
    (void)rt_watch_get(service->started, &started);
    if (err == RON_ERR_OK && started && rt_atomic_load_u32(&service->broken) == 0)
        err = ledger_engine_close(service->engine, deadline, reterr);
    return err;
}

static enum ron_err drain_abort(void *context, struct rt_deadline deadline,
                                struct ron_errinfo *reterr) RON_BLOCKS
{
    struct ledger_service *service = context;
    enum ron_err err;

    if (service->options.checks != NULL)
        ledger_checks_cancel(service->options.checks);
    rt_queue_close(service->ingress);
    rt_queue_close(service->preval);
    rt_queue_close(service->commit);
    rt_bus_close(service->roots.bus);
    if (service->options.snapshot.vfs != NULL) {
        rt_watch_close(service->snapshots.wake);
        rt_watch_close(service->snapshots.finished);
    }
    err = rt_supervisor_stop(service->supervisor, deadline, reterr);
    /* A checker that was to be restarted never will be: what it had is answered here. */
    if (err == RON_ERR_OK && service->options.checks != NULL)
        ledger_checks_end(service->options.checks);
    queue_sweep(service, service->ingress, RON_ERR_DRAINING, "the drain was cut short");
    queue_sweep(service, service->preval, RON_ERR_DRAINING, "the drain was cut short");
    queue_sweep(service, service->commit, RON_ERR_DRAINING, "the drain was cut short");
    return err;
}

static const struct rt_life_step steps[] = {
    {"ingress", drain_ingress, 0},     {"prevalidators", drain_prevalidators, 0},
    {"sequencer", drain_sequencer, 0}, {"committer", drain_committer, 0},
    {"final root", drain_roots, 0},
};
static const struct rt_cause causes[] = {
    {"starting", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_NOT_READY},
    {"commit_queue_high", RT_PLANE_WRITE, 0, RON_ERR_COMMIT_BACKPRESSURE},
    {"no_prevalidators", RT_PLANE_WRITE, RT_PLANE_WRITE, RON_ERR_NOT_READY},
    {"disk_full", 0, 0, RON_ERR_PERSISTENCE_FULL},
    /* They refuse nothing at the door: the next request may be the probe that closes it. */
    {"breaker_open:kms", RT_PLANE_WRITE, 0, RON_ERR_UPSTREAM_UNAVAILABLE},
    {"breaker_open:policy", RT_PLANE_WRITE, 0, RON_ERR_UPSTREAM_UNAVAILABLE},
    {"breaker_open:wallet", RT_PLANE_WRITE, 0, RON_ERR_UPSTREAM_UNAVAILABLE},
};
const struct rt_life_role service_life_role = {
    .name = "ledger",
    .steps = steps,
    .steps_count = RON_ARRAY_COUNT(steps),
    .has_safe_mode = true,
    .causes = {causes, RON_ARRAY_COUNT(causes)},
    .abort = drain_abort,
    .abort_ms = 0,
};
