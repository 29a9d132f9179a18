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
    const uint64_t lag_ms = slots_lag_ns(&service->slots) / RT_NS_PER_MS;

    if (service->options.lag_ms_max == 0 || lag_ms <= service->options.lag_ms_max)
        return RON_ERR_OK;
    RON_PROBE("ledger: the committer is behind");
    return ron_fail(reterr, RON_ERR_COMMIT_BACKPRESSURE, "the committer is %llu ms behind",
                    (unsigned long long)lag_ms);
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
    request->outcome = (struct ledger_outcome){.err = RON_ERR_OK};
    err = admit(service, request, reterr);
    if (err == RON_ERR_OK)
        err = rt_queue_try_send(service->ingress,
                                (struct rt_queue_item){request, request_weight(request)}, reterr);
    if (err == RON_ERR_CANCELED) /* the stop came between admission and here */
        err = ron_fail(reterr, RON_ERR_DRAINING, "ledger is Draining");
    if (err != RON_ERR_OK) {
        request->state.taken = false;
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
    RON_PROBE("ledger: no prevalidator is left");
    (void)rt_lifecycle_raise(service->lifecycle, CAUSE_NO_PREVALIDATORS);
    queue_sweep(service, service->ingress, RON_ERR_NOT_READY, NO_PREVALIDATORS);
}
