/*
 * ingress.c - the door: ledger_submit, on the caller's thread.
 *
 * Admission in order: the role's state, the deadline, the Committer's lag, then a place in the
 * queue. All of it at once and typed; nothing is taken that is not answered. Small requests that
 * wait for nobody need no place: they are checked here, and go on to the Sequencer.
 */
#include "ledger/service_impl.h"

#define NO_PREVALIDATORS "no prevalidator is left"

/* The time, for all that come together. */
struct arrival {
    uint64_t now_ns, now_ms;
};

static struct arrival arrive(void)
{
    return (struct arrival){rt_now_ns(), rt_utc_ms()};
}

static enum ron_err check_lag(struct ledger_service *service, uint64_t now_ns,
                              struct ron_errinfo *reterr)
{
    if (!service_is_behind(service, now_ns))
        return RON_ERR_OK;
    RON_PROBE("ledger: the committer is behind");
    service_tell_pressure(service);
    return ron_fail(reterr, RON_ERR_COMMIT_BACKPRESSURE, "the committer is more than %u ms behind",
                    service->options.lag_ms_max);
}

static enum ron_err admit(struct ledger_service *service, const struct ledger_request *request,
                          uint64_t now_ns, struct ron_errinfo *reterr)
{
    enum ron_err err = rt_lifecycle_admit(service->lifecycle, RT_PLANE_WRITE, reterr);

    if (err == RON_ERR_OK && now_ns >= request->deadline.at_ns)
        err = ron_fail(reterr, RON_ERR_TIMEOUT, "the deadline was past at the door");
    if (err == RON_ERR_OK)
        err = check_lag(service, now_ns, reterr);
    return err;
}

/* Everything but the place in the queue. */
static enum ron_err knock(struct ledger_service *service, struct ledger_request *request,
                          struct arrival arrival, struct ron_errinfo *reterr)
{
    enum ron_err err;

    RON_ASSERT(service->magic == SERVICE_MAGIC);
    RON_ASSERT(request->done != NULL);
    RON_ASSERT(!request->state.taken);
    request->state.arrived_ns = arrival.now_ns;
    request->state.arrived_ms = arrival.now_ms;
    request->state.charged = false;
    request->state.spent = false;
    request->state.span = NULL;
    request->outcome = (struct ledger_outcome){.err = RON_ERR_OK};
    request_enter(service, request, "ingress");
    err = admit(service, request, arrival.now_ns, reterr);
    request->state.taken = err == RON_ERR_OK;
    if (err != RON_ERR_OK) {
        request_leave(service, request, true);
        ledger_count_both(&service->metrics, service->metrics.rejected[err]);
    }
    return err;
}

static enum ron_err no_place(struct ledger_service *service, struct ledger_request *request,
                             enum ron_err err, struct ron_errinfo *reterr)
{
    if (err == RON_ERR_CANCELED) /* the stop came between admission and here */
        err = ron_fail(reterr, RON_ERR_DRAINING, "ledger is Draining");
    request->state.taken = false;
    request_leave(service, request, true);
    ledger_count_both(&service->metrics, service->metrics.rejected[err]);
    return err;
}

void ingress_turn_away(struct ledger_service *service, struct ledger_request *request,
                       ledger_refused_fn *refused)
{
    struct ron_errinfo info = {0};
    const enum ron_err err = no_place(service, request, RON_ERR_CANCELED, &info);

    refused(request, err, &info);
}

/* Whoever finds that nobody is left sweeps; if it did so before our items came, we do. */
static void look_behind(struct ledger_service *service)
{
    if (rt_atomic_load_u32(&service->prevalidators_down) == service->options.prevalidators_count)
        queue_sweep(service, service->ingress, RON_ERR_NOT_READY, NO_PREVALIDATORS);
}

enum ron_err ledger_submit(struct ledger_service *service, struct ledger_request *request,
                           struct ron_errinfo *reterr)
{
    enum ron_err err = knock(service, request, arrive(), reterr);

    if (err != RON_ERR_OK)
        return err;
    err = rt_queue_try_send(service->ingress,
                            (struct rt_queue_item){request, request_weight(request)}, reterr);
    if (err != RON_ERR_OK)
        return no_place(service, request, err, reterr);
    look_behind(service);
    return RON_ERR_OK;
}

/* Everything but the place in the queue, of one of many. */
static bool is_let_in(struct ledger_service *service, struct ledger_request *request,
                      struct arrival arrival, ledger_refused_fn *refused)
{
    const uint32_t weight = request_weight(request);
    struct ron_errinfo info = {0};
    enum ron_err err = knock(service, request, arrival, &info);

    if (err == RON_ERR_OK && weight > service->options.queue_bytes_max) {
        (void)ron_fail(&info, RON_ERR_TOO_LARGE, "a request of %u bytes", weight);
        err = no_place(service, request, RON_ERR_TOO_LARGE, &info);
    }
    if (err != RON_ERR_OK)
        refused(request, err, &info);
    return err == RON_ERR_OK;
}

static void send_many(struct ledger_service *service, const struct rt_queue_item *items,
                      size_t items_count, ledger_refused_fn *refused)
{
    struct ron_errinfo info = {0};
    size_t sent_count = 0;
    enum ron_err err = rt_queue_try_send_many(service->ingress, items, items_count, &sent_count,
                                              &info);

    if (err == RON_ERR_OK && sent_count < items_count) /* counted by the queue, each of them */
        err = ron_fail(&info, RON_ERR_BUSY, "queue ingress is full");
    for (size_t i = sent_count; i < items_count; i++) {
        struct ron_errinfo said = info;

        refused(items[i].pointer, no_place(service, items[i].pointer, err, &said), &said);
    }
    look_behind(service);
}

void ledger_submit_many(struct ledger_service *service, struct ledger_request *const *requests,
                        size_t requests_count, ledger_refused_fn *refused)
{
    const struct arrival arrival = arrive();
    struct rt_queue_item items[LEDGER_SUBMIT_MAX];
    struct ledger_request *here[LEDGER_SUBMIT_MAX];
    size_t items_count = 0;
    size_t here_count = 0;

    RON_ASSERT(requests_count <= LEDGER_SUBMIT_MAX);
    for (size_t i = 0; i < requests_count; i++) {
        if (!is_let_in(service, requests[i], arrival, refused))
            continue;
        if (prevalidator_may_check_here(service, requests[i]))
            here[here_count++] = requests[i];
        else
            items[items_count++] = (struct rt_queue_item){requests[i], request_weight(requests[i])};
    }
    if (items_count > 0) /* first: others work on them meanwhile */
        send_many(service, items, items_count, refused);
    if (here_count > 0)
        prevalidator_check_here(service, here, here_count, refused);
}

void ingress_check_prevalidators(struct ledger_service *service)
{
    if (rt_atomic_load_u32(&service->prevalidators_down) != service->options.prevalidators_count)
        return;
    RON_PROBE("ledger: no prevalidator is left");
    (void)rt_lifecycle_raise(service->lifecycle, CAUSE_NO_PREVALIDATORS);
    queue_sweep(service, service->ingress, RON_ERR_NOT_READY, NO_PREVALIDATORS);
}
