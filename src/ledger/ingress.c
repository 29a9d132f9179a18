/*
 * ingress.c - the door: ledger_submit, on the caller's thread.
 *
 * Admission in order: the role's state, the deadline, the Committer's lag, then a place in the
 * queue. All of it at once and typed; nothing is taken that is not answered.
 */
#include "ledger/service_impl.h"

#define NO_PREVALIDATORS "no prevalidator is left"

static enum ron_err check_lag(struct ledger_service *service, struct ron_errinfo *reterr)
{
    if (!service_is_behind(service))
        return RON_ERR_OK;
    service_tell_pressure(service);
    return ron_fail(reterr, RON_ERR_COMMIT_BACKPRESSURE, "the committer is more than %u ms behind",
                    service->options.lag_ms_max);
}

static enum ron_err admit(struct ledger_service *service, const struct ledger_request *request,
                          struct ron_errinfo *reterr)
{
    enum ron_err err = rt_lifecycle_admit(service->lifecycle, RT_PLANE_WRITE, reterr);

    if (err == RON_ERR_OK && rt_deadline_expired(request->deadline))
        err = ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline was past at the door");
    if (err == RON_ERR_OK)
        err = check_lag(service, reterr);
    return err;
}

enum ron_err ledger_submit(struct ledger_service *service, struct ledger_request *request,
                           struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(service->magic == SERVICE_MAGIC);
    RON_ASSERT(request->done != NULL);
    RON_ASSERT(!request->state.taken);
    request->state.arrived_ns = rt_now_ns();
    request->state.arrived_ms = rt_utc_ms();
    request->state.taken = true;
    request->state.charged = false;
    request->state.spent = false;
    request->state.span = NULL;
    request->outcome = (struct ledger_outcome){.err = RON_ERR_OK};
    request_enter(service, request, "ingress");
    err = admit(service, request, reterr);
    if (err == RON_ERR_OK)
        err = rt_queue_try_send(service->ingress,
                                (struct rt_queue_item){request, request_weight(request)}, reterr);
    if (err == RON_ERR_CANCELED) /* the stop came between admission and here */
        err = ron_fail(reterr, RON_ERR_DRAINING, "ledger is Draining");
    if (err != RON_ERR_OK) {
        request->state.taken = false;
        request_leave(service, request, true);
        ledger_count_both(&service->metrics, service->metrics.rejected[err]);
        return err;
    }
    /* Whoever finds that nobody is left sweeps; if it did so before our item came, we do. */
    if (rt_atomic_load_u32(&service->prevalidators_down) == service->options.prevalidators_count)
        queue_sweep(service, service->ingress, RON_ERR_NOT_READY, NO_PREVALIDATORS);
    return RON_ERR_OK;
}

void ingress_check_prevalidators(struct ledger_service *service)
{
    if (rt_atomic_load_u32(&service->prevalidators_down) != service->options.prevalidators_count)
        return;
    (void)rt_lifecycle_raise(service->lifecycle, CAUSE_NO_PREVALIDATORS);
    queue_sweep(service, service->ingress, RON_ERR_NOT_READY, NO_PREVALIDATORS);
}
